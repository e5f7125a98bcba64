/* A session: a plan at work on a device, over one arena allocated once.
 *
 * Bind a kernel to every op (or one default kernel), write the persistent tensors, submit
 * iterations, wait. Nothing is allocated and no lock is taken per op in steady state.
 */
#ifndef TARN_SESSION_H
#define TARN_SESSION_H

#include "device.h"
#include "plan.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tarn_session;
struct tarn_arena;
typedef uint64_t tarn_ticket;

#define TARN_FOREVER UINT64_MAX

/* Called by the inline functions of the same names, see graph.h. */
struct tarn_memory_needs;
struct tarn_session_options;
struct tarn_check_report;
struct tarn_check_options;
TARN_API enum tarn_status
tarn_session_needs_sized(const struct tarn_plan *plan, struct tarn_device device,
                         const struct tarn_session_options *options, tarn_space space,
                         struct tarn_memory_needs *needs, size_t size, struct tarn_error *error);
TARN_API void *tarn_session_memory_sized(const struct tarn_session *session, tarn_space space,
                                         struct tarn_memory_needs *needs, size_t size);
TARN_API enum tarn_status tarn_session_check_sized(struct tarn_session *session,
                                                   const struct tarn_check_options *options,
                                                   struct tarn_check_report *report, size_t size,
                                                   struct tarn_error *error);

/* The arguments of a kernel's call; valid during the call only. Addresses are in the order of the
 * op's inputs and outputs, and stay the same from call to call. */
struct tarn_call {
    size_t struct_size;
    tarn_op op;     /* in the plan's graph */
    tarn_op origin; /* the source graph's op that `op` comes from; equal to `op` unless a transform
                     * ran */
    /* Which of the origin's `implementations` to run: the call has that implementation's inputs and
     * outputs, which may be fewer. TARN_NONE: the op as written. */
    uint32_t implementation;
    /* This run recomputes outputs of another run that were not kept: the same bytes, in separate
     * memory. It must not change anything else. */
    bool recomputed;
    uint32_t stream;
    /* Counts from 0 over the life of the session. In a capture: from 0 inside the captured block,
     * as a kernel that enqueues is called once and its work runs at every replay. */
    uint64_t iteration;
    void *queue; /* native queue handle; NULL on the host device */
    void *const *inputs;
    void *const *outputs;
    void *workspace; /* NULL if the op has none */
    /* Bytes of each input and output, and of the workspace (0: none). */
    size_t inputs_count, outputs_count;
    const uint64_t *input_sizes;
    const uint64_t *output_sizes;
    uint64_t workspace_size;
};

/* On the host device, and if kernels are closures, it does the op's work. On other devices it
 * enqueues the work on call->queue and returns without blocking. Non-zero stops the session with
 * TARN_DEVICE; the first such code is kept. */
typedef int (*tarn_kernel)(void *user, const struct tarn_call *call);

/* A line of text, without a newline. */
typedef void (*tarn_line)(void *user, const char *line);

/* Memory of the caller for one memory space. */
struct tarn_space_memory {
    void *memory; /* NULL: the session, or the arena, allocates */
    uint64_t size;
};

struct tarn_session_options {
    size_t struct_size;
    /* Ids of streams whose kernels may block (MPI, files): the host device gives each its own
     * thread. */
    struct tarn_list blocking;
    /* Ids of streams whose queues are urgent. NULL: the streams that hold only communication, by
     * the kinds of their ops (collectives, sends and receives, copies between host and device).
     * docs/formats.md, "What a kind says", has the list; an op's own class takes precedence. */
    const struct tarn_list *urgent;

    /* ---- Memory ---- */
    /* An allocation of the device that the caller keeps, as large and as aligned as
     * tarn_session_needs says; NULL: the session allocates. The session fills it with zeros, and
     * may use it until tarn_session_destroy returns TARN_OK; until then no other session or arena
     * of the process may use any part of it. Sessions that take turns on one memory are made on a
     * tarn_arena, which owns the memory. */
    void *memory;
    uint64_t memory_size;
    /* No persistent part: the caller binds every persistent tensor to the caller's memory. */
    bool binds_persistent;

    /* ---- Captured execution (devices with capture only) ----
     * Kernels are called once for a block of `unroll` iterations (0: 1), whose work the device then
     * replays. Iterations that fill no block run from a second graph of one iteration. Blocks run
     * one after another. What was bound is captured with the first submit after it. */
    bool capture;
    uint32_t unroll;

    /* Maximum number of submitted iterations that have not finished; submit waits while there are
     * more. In a capture it is rounded up to whole blocks. 0: 8 on devices with queues, no limit on
     * the host. */
    uint32_t depth;
    /* Submit and destroy give up, as after a deadline, when they have waited this long. 0: they
     * never give up, except a submit that waits for events or a queue of its caller
     * (tarn_session_submit_with), which gives up after 10 s. */
    uint64_t patience_ns;

    /* ---- Flight recorder ---- */
    uint32_t flight; /* commands per stream that it remembers; 0: none */
    bool stamps;     /* also record the device's times of enqueued commands, if the device has
                      * stamps; costs two stamps a command; not in a capture */

    /* ---- An arena that sessions share (arena.h) ----
     * NULL, or an arena that was made for the plan and on the device. It has the memory, and
     * decides whether persistent tensors are bound by the caller: those options must not be given
     * then. A submit waits on the device for the turns of other sessions. It is refused while
     * another session has work that it has not waited for, if this session cannot wait for that
     * work on the device. Copies and checks are refused while any other session on the arena has
     * work that it has not waited for. */
    struct tarn_arena *arena;

    /* ---- Queues of the caller ----
     * By stream of the plan's graph: a queue of the session's device (a cudaStream_t) that the
     * stream uses, or NULL: the session makes one. NULL: the session makes all queues. The caller
     * keeps the queues alive as long as the device, may enqueue other work between submits, and
     * must not give two streams the same queue. Work of a stream runs after earlier work on its
     * queue. Other streams do not wait for that earlier work: see tarn_session_submit_with. */
    void *const *queues;

    /* ---- Memory spaces ----
     * By space of the plan's graph: the same as `memory` and `memory_size`, which are for space 0;
     * if they are given, this entry of space 0 is not. Sizes and alignments as tarn_session_needs
     * says. Spaces beyond the count: the session allocates. */
    const struct tarn_space_memory *space_memory;
    size_t space_memory_count;

    /* ---- Symmetric memory ----
     * With which the window of the plan is registered, as long as the session exists; on an arena:
     * none, the arena has them. The list is copied. All ranks create the session together, and
     * destroy it together, if the registrars' functions are collective. */
    const struct tarn_registrar *registrars;
    size_t registrars_count;
};
#ifndef __cplusplus
#define TARN_SESSION_OPTIONS(...)                                                       \
    (&(struct tarn_session_options){.struct_size = sizeof(struct tarn_session_options), \
                                    __VA_ARGS__})
#endif

/* The memory that a session or an arena needs in one memory space. */
struct tarn_memory_needs {
    uint64_t size;       /* size of the one allocation: arena, then persistent part */
    uint64_t alignment;  /* alignment that the allocation must have; the device may give more */
    uint64_t arena;      /* bytes of planned storages */
    uint64_t persistent; /* bytes of the persistent part; 0 if the caller binds it */
};
/* Fills *needs without a session, for callers that provide the memory. It reads only
 * binds_persistent of the options. TARN_USAGE: the device cannot give such an alignment, or the
 * graph has no such space; TARN_SYSTEM: no single allocation of the device is that large;
 * TARN_DEVICE. */
static inline enum tarn_status tarn_session_needs(const struct tarn_plan *plan,
                                                  struct tarn_device device,
                                                  const struct tarn_session_options *options,
                                                  tarn_space space, struct tarn_memory_needs *needs,
                                                  struct tarn_error *error)
{
    return tarn_session_needs_sized(plan, device, options, space, needs, sizeof *needs, error);
}

/* Compiles the plan, allocates the arena and the persistent part, zero-filled, and creates queues
 * and events. The session keeps the plan alive. Until tarn_session_destroy returns TARN_OK, the
 * caller keeps alive all that the session uses: the device, memory that the caller provides or
 * binds, and the data of kernels. A session is used from one thread at a time, by the process that
 * created it. A forked child has none of its threads, and every call with the session returns
 * TARN_USAGE there. TARN_SYSTEM: no memory for the arena (the text says how much is free);
 * TARN_DEVICE; TARN_USAGE: a table of another ABI, an option that does not fit the plan or the
 * device, memory that another session uses; TARN_REJECTED: lists and waits of a plan that was
 * loaded on trust form a cycle. */
TARN_API enum tarn_status tarn_session_create(struct tarn_plan *plan, struct tarn_device device,
                                              const struct tarn_session_options *options,
                                              struct tarn_session **session,
                                              struct tarn_error *error);
/* Starts no more work, waits for kernels and queues, and frees the session. Enqueued work cannot be
 * withdrawn from a device, and a running kernel cannot be stopped; so the status says whether they
 * are done:
 *
 * TARN_OK: all work has ended. The session runs nothing, calls no kernel or device and touches no
 * memory any more, and it is freed. Also for NULL.
 *
 * Otherwise nothing was freed: the session exists and refuses all calls but this one, which may be
 * repeated any number of times, dump, and the destruction of host memory. In between it starts no
 * kernel, and none of its threads calls a device; kernels that have not returned, and work on
 * queues, continue. TARN_DEADLINE: they did not end in time; the text gives every stream's
 * position. TARN_DEVICE: the device cannot say whether its work has ended; a poisoned device never
 * can. TARN_USAGE: another process has created the session.
 *
 * A caller that gives up need not call again, but must keep alive, to the end of the process, all
 * that the session uses (tarn_session_create).
 *
 * The call waits at most `timeout_ns` (0: it only asks) for kernels and queues. The time of device
 * calls that free the session's objects is not limited. */
TARN_API enum tarn_status tarn_session_destroy_within(struct tarn_session *session,
                                                      uint64_t timeout_ns,
                                                      struct tarn_error *error);
/* Destroys a session as tarn_session_destroy_within does, within the option patience_ns. Without
 * that option it waits for ever, but at most 0.1 s if there was a TARN_DEADLINE before, this call's
 * own included. */
TARN_API enum tarn_status tarn_session_destroy(struct tarn_session *session);

/* Selects the arm that a conditional of the graph takes in iterations submitted afterwards;
 * initially every conditional takes arm 0. An op of an arm that is not taken keeps its waits and
 * events, but its kernel is not called. Its outputs are then not written, and a kernel that reads
 * them must take account of that. If only the device knows which arm is taken, the caller must read
 * that from the device before the submit. Only while no work is under way; a captured block is
 * captured again. TARN_USAGE: no such conditional, or the session has ended or is at work. `error`
 * may be NULL. */
TARN_API enum tarn_status tarn_session_take(struct tarn_session *session, uint32_t conditional,
                                            uint32_t arm, struct tarn_error *error);

/* Binds a kernel to an op of the source graph (`origin`). Only while nothing is submitted. `user`
 * must live as long as the session: see tarn_session_create. TARN_USAGE: no kernel, no such op, a
 * session that has ended or is at work. `error` may be NULL. */
TARN_API enum tarn_status tarn_session_bind(struct tarn_session *session, tarn_op origin,
                                            tarn_kernel kernel, void *user,
                                            struct tarn_error *error);
/* Binds a kernel for every op without its own binding. */
TARN_API enum tarn_status tarn_session_bind_default(struct tarn_session *session,
                                                    tarn_kernel kernel, void *user);

/* Binds a persistent tensor or an output (and its aliases) to memory of the caller, starting with
 * the next submit. Iterations submitted before keep their address, and the call does not wait, so
 * every iteration may have different inputs and outputs. The caller keeps the memory until the last
 * iteration with it has finished. Kernels get `address`: it must have room for the tensor and,
 * unless the device gives regions, be aligned to the alignment that the graph gives the tensor. If
 * the graph gives none, the alignment is the largest power of two that divides the tensor's size,
 * at most 16 bytes and at most the plan's alignment. No other tensor may use that memory in an
 * iteration that is not ordered with this one: an output may become an input of a later submit that
 * waits for the end of the earlier submit (tarn_session_submit_with). Members of a contiguous group
 * stay contiguous only if the caller binds them so. In a capture only while nothing is submitted.
 * The call waits if more than 1000 bindings are under way. TARN_USAGE: neither persistent nor an
 * output, alignment, a captured block is at work; else as tarn_session_wait. */
TARN_API enum tarn_status tarn_session_bind_memory(struct tarn_session *session, tarn_tensor tensor,
                                                   void *address, struct tarn_error *error);
/* The address that kernels get for a tensor; NULL if there is no such tensor, or it is not bound
 * yet. */
TARN_API void *tarn_session_address(const struct tarn_session *session, tarn_tensor tensor);
/* The workspace that the kernel of an op of the plan's graph gets; NULL if it has none. */
TARN_API void *tarn_session_workspace(const struct tarn_session *session, tarn_op op);
/* The first byte of a memory space's allocation: its arena, followed by the persistent part at
 * `needs.size - needs.persistent`. If the device gives regions, the allocation's handle. NULL: no
 * such space, or it is empty. *needs: as from tarn_session_needs (on a shared arena, the arena's
 * needs); may be NULL. */
static inline void *tarn_session_memory(const struct tarn_session *session, tarn_space space,
                                        struct tarn_memory_needs *needs)
{
    return tarn_session_memory_sized(session, space, needs, sizeof *needs);
}
/* Returns a contiguous group of the plan's graph as one buffer, for one call of a communication
 * library: address of its first member, and bytes from there to the end of its last member. Either
 * pointer may be NULL. TARN_USAGE: no such group, or its members are not one buffer, because the
 * caller has bound them elsewhere or not at all, or because the device gives every storage a region
 * of its own. */
TARN_API enum tarn_status tarn_session_group(const struct tarn_session *session, uint32_t group,
                                             void **address, uint64_t *size,
                                             struct tarn_error *error);

/* Copies the whole or a part of a tensor, starting at its first byte. Only while nothing is
 * running; planned tensors other than outputs hold what the last writer of their bytes left. A
 * session that has ended (TARN_DEVICE, TARN_DEADLINE, TARN_INTERRUPTED) refuses both. TARN_USAGE:
 * unknown or unbound tensor, size above the tensor's, or work in progress. */
TARN_API enum tarn_status tarn_session_write(struct tarn_session *session, tarn_tensor tensor,
                                             const void *data, uint64_t size,
                                             struct tarn_error *error);
TARN_API enum tarn_status tarn_session_read(struct tarn_session *session, tarn_tensor tensor,
                                            void *data, uint64_t size, struct tarn_error *error);

/* Allocates host memory from which the device copies fastest (pinned, near the device), else
 * ordinary memory aligned to a page. The caller destroys it, with the same size, before the
 * session. Any thread. TARN_SYSTEM, TARN_DEVICE. */
TARN_API enum tarn_status tarn_session_host_memory_create(struct tarn_session *session,
                                                          uint64_t size, void **memory,
                                                          struct tarn_error *error);
TARN_API void tarn_session_host_memory_destroy(struct tarn_session *session, void *memory,
                                               uint64_t size);

/* Submits `iterations` more iterations. Returns at once on the host; on devices with queues it
 * returns when all are enqueued, which is before the last `depth` of them have finished. Tickets
 * are ordered: a wait for one ticket also waits for all earlier tickets. TARN_USAGE: an op has no
 * kernel, or a persistent tensor no memory, or another session has its turn on shared memory.
 * Errors as tarn_session_wait.
 */
TARN_API enum tarn_status tarn_session_submit(struct tarn_session *session, uint64_t iterations,
                                              tarn_ticket *ticket, struct tarn_error *error);
/* An event outside of the session: an event of the device, as event_create makes it (a
 * cudaEvent_t), or on the host a struct tarn_host_event (device.h) and a value of its counter. */
struct tarn_event {
    void *event;
    uint64_t value; /* on the host alone */
};

/* Events before and after the iterations of a submit: they order the iterations between steps of
 * other software without a wait on the host. (Exception: while 64 submits with options, or turns on
 * an arena, are under way on the host device, the next submit waits for the oldest.) The first op
 * of every stream waits for the events, unless it waits for another such op anyway; the end is the
 * end of all streams. */
struct tarn_submit_options {
    size_t struct_size;
    /* The iterations wait for these events as of this call: for the latest record that was enqueued
     * before, or until the counter reaches the value. */
    const struct tarn_event *waits;
    size_t waits_count;
    /* The end records these events, or raises the counters. On the host no counter is raised if the
     * session stops with an error before. The caller keeps events of devices until they are
     * reached. */
    const struct tarn_event *signals;
    size_t signals_count;
    /* A queue of the session's device (a cudaStream_t), or NULL: the iterations begin after work
     * enqueued on it before this call, and work enqueued on it afterwards begins after them, as if
     * they had been enqueued on it. */
    void *queue;
};
#ifndef __cplusplus
#define TARN_SUBMIT_OPTIONS(...) \
    (&(struct tarn_submit_options){.struct_size = sizeof(struct tarn_submit_options), __VA_ARGS__})
#endif

/* tarn_session_submit with options; NULL: none. In a capture the events are outside of the blocks.
 *
 * A submit may have to wait for `waits` and `queue` before it can return: on devices with queues,
 * if it has more than `depth` iterations under way, or gives a queue more kernels than it holds
 * (device.h, queue_depth; about a thousand on CUDA, where each op or captured block counts as one).
 * So the events must be reached by work that is under way or by another thread, not by actions of
 * the caller after the submit; or use the option `capture`. TARN_DEADLINE: an event was not reached
 * within patience_ns, or 10 s without that option; the session refuses further work.
 *
 * TARN_USAGE also: a queue on the host; options with a graph that launches nothing. */
TARN_API enum tarn_status tarn_session_submit_with(struct tarn_session *session,
                                                   uint64_t iterations,
                                                   const struct tarn_submit_options *options,
                                                   tarn_ticket *ticket, struct tarn_error *error);
/* Waits until the ticket's iterations have finished; then outputs are valid until the next submit.
 * TARN_DEVICE: a kernel or the device failed; the text names stream, op, iteration and code, all
 * streams have stopped, and the session refuses further work. Each stream stops after its current
 * op, and nothing is undone: the failed iteration has updated some persistent tensors and outputs,
 * others not, and others only in part (those that the failed kernel, or a running kernel, writes).
 * A device may still run kernels that are already enqueued. So continue from a complete copy, such
 * as a checkpoint, not from the session's memory. The same holds after TARN_DEADLINE and
 * TARN_INTERRUPTED. TARN_DEADLINE: not finished after timeout_ns; the text gives every stream's
 * position, the session refuses further work. With a timeout of 0 it only asks: TARN_DEADLINE then
 * means "not yet" and ends nothing. TARN_INTERRUPTED: cancelled. */
TARN_API enum tarn_status tarn_session_wait(struct tarn_session *session, tarn_ticket ticket,
                                            uint64_t timeout_ns, struct tarn_error *error);
/* Iterations that have finished, without waiting; an error that has happened is returned, as by
 * wait. */
TARN_API enum tarn_status tarn_session_query(struct tarn_session *session, uint64_t *finished,
                                             struct tarn_error *error);
/* Cancels a session: no more ops are started; enqueued and running ops still end. The submit or
 * wait under way, else the next one, returns TARN_INTERRUPTED, and the session refuses further
 * work. From any thread, as long as the session is not destroyed. */
TARN_API void tarn_session_cancel(struct tarn_session *session);
/* Passes the flight recorder's text to a function, line by line: every stream's position, and its
 * last commands with times. From the session's thread, at any time before it is destroyed. */
TARN_API void tarn_session_dump(struct tarn_session *session, tarn_line line, void *user);
/* Writes the flight recorder's text to a temporary name, then renames; "-" is standard output. why:
 * the first line, for example an error's text; NULL: none. TARN_SYSTEM. */
TARN_API enum tarn_status tarn_session_save_dump(struct tarn_session *session, const char *why,
                                                 const char *path, struct tarn_error *error);

/* Writes the flight recorder's commands as Chrome trace events (JSON, for Perfetto too): a track
 * per stream, and a counter of the bytes of live planned storages. Times are run times on the host
 * and for stamped commands; for other enqueued commands they are times of enqueueing. Only while
 * nothing is running. TARN_USAGE: there is no recorder, or work in progress; TARN_SYSTEM;
 * TARN_DEVICE. */
TARN_API enum tarn_status tarn_session_save_trace(struct tarn_session *session, const char *path,
                                                  struct tarn_error *error);

/* One launch of one iteration in a trace; times from any zero. */
struct tarn_trace_entry {
    tarn_op op;
    uint64_t iteration, begin_ns, end_ns;
};
/* Reads the launches of a trace that tarn_session_save_trace wrote, or that a viewer saved again.
 * It does not check that they belong to a plan: the caller must know that. The caller frees
 * *entries with tarn_free (hooks.h). "-": standard input. TARN_BAD_INPUT: no trace; TARN_SYSTEM. */
TARN_API enum tarn_status tarn_trace_load(const char *path, struct tarn_trace_entry **entries,
                                          size_t *count, struct tarn_error *error);

/* ---- Checked execution ----
 * Replaces the bound kernels by checking ones: every output byte comes from a generator seeded by
 * the op's origin, the iteration and the digests of what the op read, and every byte read is
 * compared with what its version must hold. The expected digests follow from the graph alone. */
struct tarn_check_options {
    size_t struct_size;
    uint32_t iterations; /* 0: 1 */
    uint64_t seed;       /* of random delays and of a random order */
    uint32_t delay_ns;   /* maximum random delay before an op; 0: none */
    bool random_order;   /* one legal linear order drawn with `seed`, on the calling thread */
    const struct tarn_step *order; /* one given legal linear order, on the calling thread: any
                                      prefix of the iterations' work */
    size_t order_count;
    uint64_t timeout_ns; /* 0: for ever */
};
#ifndef __cplusplus
#define TARN_CHECK_OPTIONS(...) \
    (&(struct tarn_check_options){.struct_size = sizeof(struct tarn_check_options), __VA_ARGS__})
#endif

struct tarn_check_report {
    uint64_t ops_run;
    uint64_t bytes_read; /* and compared */
    uint64_t bytes_written;
    uint64_t digest; /* over all bytes that ops have written, except recomputed ones and workspaces,
                      * and the final contents of all persistent and output storages, as checked;
                      * equal for every correct run of the graph */
};

/* Runs checked execution on a fresh session. Its kernel bindings are gone afterwards; persistent
 * tensors must be bound before, and their contents are lost. If the host can follow the device's
 * addresses and the device takes closures, or has no queues, the host does the work. Otherwise the
 * device's own checking kernels do it, and the writer of a wrong byte is not reported.
 * TARN_CHECK_FAILED: a wrong byte; `error` names op, tensor, iteration and byte, and the byte's
 * writer if it is known. TARN_BAD_INPUT: the given order is not legal for the plan; nothing was
 * run. TARN_USAGE: the device supports neither way, or not with these options. TARN_DEADLINE. */
static inline enum tarn_status tarn_session_check(struct tarn_session *session,
                                                  const struct tarn_check_options *options,
                                                  struct tarn_check_report *report,
                                                  struct tarn_error *error)
{
    return tarn_session_check_sized(session, options, report, sizeof *report, error);
}

#ifdef __cplusplus
}
#endif

#endif
