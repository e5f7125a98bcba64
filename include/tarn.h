/* Tarn: the memory manager for multi-stream accelerators.
 *
 * This header includes the whole public API. A program goes top to bottom through it:
 *
 *     error.h      status codes and the one error struct that every call fills
 *     bytes.h      memory and functions of the caller in place of files
 *     hooks.h      where the library's own memory comes from; its log
 *     text.h       foreign names, made safe for terminals and files
 *     graph.h      a computation graph whose ops are partitioned into streams
 *     simulate.h   a model of the streams at work: time, memory over time
 *     transform.h  graph in, new graph out: what may be changed before planning
 *     plan.h       where every storage lives, which waits are needed; the verifier
 *     device.h     what an accelerator must be able to do; the host device
 *     cuda.h       CUDA devices
 *     session.h    a plan at work on a device; checked execution
 *     arena.h      one arena for several sessions, which take turns
 *
 * Objects are opaque handles. Graphs and plans are immutable once made and may be shared by
 * threads; builders and sessions belong to one thread at a time.
 *
 * NULL where a call needs something: what returns a status answers TARN_USAGE, a getter 0, NULL,
 * false, TARN_NONE or UINT64_MAX, and every destroy and finish accepts it. tarn_builder_finish
 * takes a NULL builder for one that had no memory (TARN_SYSTEM). `error` may always be NULL; other
 * arguments may where their comment says so.
 *
 * Forks: between calls the library keeps no locks, and no threads but those of sessions and, of
 * each thread that has planned, a pool of OpenMP's, which the planner leaves alone in a child. A
 * forked child may use graphs and plans of its parent and make new ones, also where other threads
 * of the parent were inside the library; it may make sessions where none of them was making one. A
 * session of the parent is of no use to the child, not even to be destroyed: its threads and queues
 * are not there.
 * Sizes and offsets are bytes in uint64_t unless a name says otherwise.
 */
#ifndef TARN_H
#define TARN_H

#include "tarn/arena.h"
#include "tarn/bytes.h"
#include "tarn/cuda.h"
#include "tarn/device.h"
#include "tarn/error.h"
#include "tarn/graph.h"
#include "tarn/hooks.h"
#include "tarn/plan.h"
#include "tarn/session.h"
#include "tarn/simulate.h"
#include "tarn/text.h"
#include "tarn/transform.h"

#endif
