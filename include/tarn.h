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
 *     nccl.h       NCCL's symmetric memory for arenas
 *     session.h    a plan at work on a device; checked execution
 *     arena.h      one arena for several sessions, which take turns
 *
 * Objects are opaque handles. Graphs and plans are immutable once made and may be shared by
 * threads; builders and sessions belong to one thread at a time.
 *
 * If a required argument is NULL, a function with a status returns TARN_USAGE and a getter returns
 * 0, NULL, false, TARN_NONE or UINT64_MAX. Every destroy and finish accepts NULL.
 * tarn_builder_finish takes a NULL builder to be one that could not be allocated (TARN_SYSTEM).
 * `error` may always be NULL; other arguments may be NULL if their comment says so.
 *
 * Forks: between calls the library holds no locks. It keeps no threads except the threads of
 * sessions and one OpenMP pool for each thread that has planned; the planner does not use such a
 * pool in a child. A forked child may use graphs and plans of its parent and make new ones, even if
 * other threads of the parent were inside the library. It may make sessions if no thread of the
 * parent was making one at the fork. A child must not use a session of the parent, not even to
 * destroy it: the session's threads and queues do not exist there.
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
#include "tarn/nccl.h"
#include "tarn/plan.h"
#include "tarn/session.h"
#include "tarn/simulate.h"
#include "tarn/text.h"
#include "tarn/transform.h"

#endif
