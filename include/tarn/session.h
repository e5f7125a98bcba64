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

/* What the inline functions of their names call, see graph.h. */
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

/* What a kernel gets; valid during the call only. Addresses are in the order of the op's inputs and
 * outputs, and stay the same from call to call. */
struct tarn_call {
    size_t struct_size;
    tarn_op op;     /* in the plan's graph */
    tarn_op origin; /* the source graph's op that it comes from; `op` unless a transform ran */
    /* Which of the origin's `implementations` to run: its inputs and outputs, which may be fewer,
     * are what the call has. TARN_NONE: the op as written. */
    uint32_t implementation;
    /* This run makes again what another run made and nobody kept: the same bytes, in memory of its
     * own, and nothing else may change. */
    bool recomputed;
    uint32_t stream;
    /* Counts from 0 over the life of the session. In a capture: from 0 inside the captured block,
     * as a kernel that enqueues is called once and its work runs at every replay. */
    uint64_t iteration;
    void *queue; /* native queue handle; NULL on the host device */
    void *const *inputs;
    void *const *outputs;
    void *workspace; /* NULL when the op has none */
    /* Bytes of each input and output, and of the workspace (0: none). */
    size_t inputs_count, outputs_count;
    const uint64_t *input_sizes;
    const uint64_t *output_sizes;
    uint64_t workspace_size;
};

/* On the host device, and where kernels are closures: do the op's work. On other devices: enqueue
 * it on call->queue and return without blocking. Non-zero stops the session with TARN_DEVICE; the
 * first one is kept. */
typedef int (*tarn_kernel)(void *user, const struct tarn_call *call);

/* A line of text, without a newline. */
typedef void (*tarn_line)(void *user, const char *line);

/* Memory of the caller's for one memory space. */
struct tarn_space_memory {
    void *memory; /* NULL: the session, or the arena, allocates */
    uint64_t size;
};

struct tarn_session_options {
    size_t struct_size;
    /* Ids of streams whose kernels may block (MPI, files): the host device gives each its own
     * thread. */
    struct tarn_list blocking;
    /* Ids of streams whose queues are urgent. NULL: those that hold communication only, by the
     * kinds of their ops (collectives, sends and receives, copies between host and device):
     * docs/formats.md, "What a kind says", has the list; an op's own class comes first. */
    const struct tarn_list *urgent;

    /* ---- Memory ---- */
    /* An allocation of the device that the caller keeps, as large and as aligned as
     * tarn_session_needs says; NULL: the session allocates. The session fills it with zeros,
     * and may use it until tarn_session_destroy answers TARN_OK; until then no other session or
     * arena of the process may have any of it. Sessions that take turns on one memory are made on a
     * tarn_arena, which has the memory. */
    void *memory;
    uint64_t memory_size;
    /* No persistent part: the caller binds every persistent tensor to memory of its own. */
    bool binds_persistent;

    /* ---- Captured execution (devices with capture only) ----
     * Kernels are called once for a block of `unroll` iterations (0: 1), whose work the device then
     * replays. Iterations that fill no block run from a second graph of one iteration. Blocks run
     * one after another. What was bound is captured with the first submit after it. */
    bool capture;
    uint32_t unroll;

    /* Most iterations that are submitted and not finished; submit waits while there are more. In a
     * capture rounded up to whole blocks. 0: 8 on devices with queues, no limit on the host. */
    uint32_t depth;
    /* Submit and destroy give up, as after a deadline, when they have waited so long; 0: never, but
     * for a submit that can only go on once events or a queue of its caller's let it
     * (tarn_session_submit_with): that gives up after 10 s. */
    uint64_t patience_ns;

    /* ---- Flight recorder ---- */
    uint32_t flight; /* commands per stream that it remembers; 0: none */
    bool stamps;     /* of enqueued commands also the device's times, where it can tell them; costs
                        two stamps a command, and not in a capture */

    /* ---- An arena that sessions share (arena.h) ----
     * NULL, or one that was made for the plan and on the device. It has the memory, and says
     * whether persistent tensors are bound by the caller: those options are not given then. A
     * submit waits on the device for the turns of others; it is refused while one of them has work
     * that it has not waited for and this session cannot wait for on the device. Copies and checks
     * are refused while any other session on the arena has work that it has not waited for. */
    struct tarn_arena *arena;

    /* ---- Queues of the caller's ----
     * By stream of the plan's graph: a queue of the session's device (a cudaStream_t) that the
     * stream is to use, or NULL: one that the session makes. NULL: the session makes all. The
     * caller keeps them as it keeps devices, may enqueue work of its own between submits, and gives
     * no two streams the same one. What a stream enqueues comes behind what its queue was given
     * before; other streams know nothing of that: see tarn_session_submit_with. */
    void *const *queues;

    /* ---- Memory spaces ----
     * By space of the plan's graph: what `memory` and `memory_size` say of one; they are those of
     * space 0, which is then not given here. Each is as tarn_session_needs says. Spaces beyond
     * the count: the session allocates. */
    const struct tarn_space_memory *space_memory;
    size_t space_memory_count;
};
#ifndef __cplusplus
#define TARN_SESSION_OPTIONS(...)                                                       \
    (&(struct tarn_session_options){.struct_size = sizeof(struct tarn_session_options), \
                                    __VA_ARGS__})
#endif

/* What a session or an arena needs in one memory space. */
struct tarn_memory_needs {
    uint64_t size;       /* of the one allocation: arena, then persistent part */
    uint64_t alignment;  /* that it must have; the device may give more */
    uint64_t arena;      /* bytes of planned storages */
    uint64_t persistent; /* bytes of the persistent part; 0 when the caller binds it */
};
/* Fills *needs without a session, for callers that bring the memory. Of the options it reads
 * binds_persistent. TARN_USAGE: the device cannot give such an alignment, or the graph has no such
 * space; TARN_SYSTEM: no single allocation of the device is that large; TARN_DEVICE. */
static inline enum tarn_status tarn_session_needs(const struct tarn_plan *plan,
                                                  struct tarn_device device,
                                                  const struct tarn_session_options *options,
                                                  tarn_space space, struct tarn_memory_needs *needs,
                                                  struct tarn_error *error)
{
    return tarn_session_needs_sized(plan, device, options, space, needs, sizeof *needs, error);
}

/* Compiles the plan, allocates the arena and the persistent part, zero-filled, and creates queues
 * and events. The session keeps the plan alive. The caller keeps alive what the session works with
 * until tarn_session_destroy answers TARN_OK: the device, memory that it brings or binds, and what
 * kernels use. It is used from one thread at a time, by the process that created it: a forked child
 * has none of its threads, and every call that works with it is TARN_USAGE there. TARN_SYSTEM: no
 * memory for the arena (the text says how much is there); TARN_DEVICE; TARN_USAGE: a table of
 * another ABI, an option that does not fit the plan or the device, memory that another session has;
 * TARN_REJECTED: lists and waits of a plan that was loaded on trust form a cycle. */
TARN_API enum tarn_status tarn_session_create(struct tarn_plan *plan, struct tarn_device device,
                                              const struct tarn_session_options *options,
                                              struct tarn_session **session,
                                              struct tarn_error *error);
/* Begins nothing more, waits for what is under way, and frees the session. Nothing can be taken
 * back from a device, and no kernel can be ended from outside; so this tells whether they are done:
 *
 * TARN_OK: all is over. Nothing of the session runs, calls a kernel or a device, or touches memory
 * any more, and the session is gone. So it is for NULL.
 *
 * Otherwise nothing was freed: the session is there and refuses all but this call, which may be
 * repeated as often as one likes, dump, and the destruction of host memory. In between it begins no
 * kernel, and no thread of its own calls a device; what has not returned, and work on queues, go
 * on. TARN_DEADLINE: they were not over in time; the text tells every stream's position.
 * TARN_DEVICE: a device does not tell; one that is poisoned never will. TARN_USAGE: another process
 * has created the session.
 *
 * Who gives up for good keeps alive, to the end of the process, all that the session works with
 * (tarn_session_create), and need not call again.
 *
 * It waits `timeout_ns` at most (0: it only asks) for kernels and queues, not for calls of the
 * device that free what it made. */
TARN_API enum tarn_status tarn_session_destroy_within(struct tarn_session *session,
                                                      uint64_t timeout_ns,
                                                      struct tarn_error *error);
/* The same within the option patience_ns; for ever without one, like a wait; but not longer than
 * 0.1 s when there was a TARN_DEADLINE before, this call's own included. */
TARN_API enum tarn_status tarn_session_destroy(struct tarn_session *session);

/* Which arm a conditional of the graph takes in iterations that are submitted from now on; at first
 * every one takes arm 0. An op of an arm that is not taken keeps its place among waits and events,
 * and its kernel is not called; what it makes is not there, and whoever reads that must know. Where
 * only the device knows which arm is taken, the caller looks before he submits. Only while nothing
 * is under way; a captured block is captured anew. TARN_USAGE: there is no such conditional, or the
 * session has ended or is at work. `error` may be NULL. */
TARN_API enum tarn_status tarn_session_take(struct tarn_session *session, uint32_t conditional,
                                            uint32_t arm, struct tarn_error *error);

/* Bindings go by the source graph's op (`origin`). Only while nothing is submitted. `user` is used
 * as long as the session is: see tarn_session_create. TARN_USAGE: no kernel, no such op, a session
 * that has ended or is at work. `error` may be NULL. */
TARN_API enum tarn_status tarn_session_bind(struct tarn_session *session, tarn_op origin,
                                            tarn_kernel kernel, void *user,
                                            struct tarn_error *error);
/* For every op without a binding of its own. */
TARN_API enum tarn_status tarn_session_bind_default(struct tarn_session *session,
                                                    tarn_kernel kernel, void *user);

/* Binds a persistent tensor or an output (and what aliases it) to memory of the caller, from the
 * next submit on: iterations that were submitted before keep the address that they have, and nobody
 * waits, so that every iteration may have inputs and outputs of its own. The caller keeps the
 * memory until the last iteration with it has finished. `address` is what kernels get: as large as
 * the tensor, and, unless the device gives regions, aligned: to the alignment that the graph gives
 * the tensor, or else to its elements, for which the largest power of two that divides the tensor's
 * size stands, 16 bytes at most, and no more than the plan's alignment. No other tensor may be
 * there, in any iteration that is not ordered with this one: what was an output may be an input of
 * a later submit that waits for the end of the earlier one (tarn_session_submit_with). Members of a
 * contiguous group stay so only if the caller binds them so. In a capture only while nothing is
 * submitted. Waits itself when more than 1000 bindings are under way. TARN_USAGE: neither
 * persistent nor an output, alignment, a captured block is at work; else as tarn_session_wait. */
TARN_API enum tarn_status tarn_session_bind_memory(struct tarn_session *session, tarn_tensor tensor,
                                                   void *address, struct tarn_error *error);
/* What kernels get for a tensor; NULL when there is no such tensor, or it is not bound yet. */
TARN_API void *tarn_session_address(const struct tarn_session *session, tarn_tensor tensor);
/* What the kernel of an op of the plan's graph gets as workspace; NULL when it has none. */
TARN_API void *tarn_session_workspace(const struct tarn_session *session, tarn_op op);
/* The first byte of a memory space's allocation: its arena, behind which the persistent part begins
 * at `needs.size - needs.persistent`. Where devices give regions, the allocation's handle. NULL: no
 * such space, or it holds nothing. *needs: what tarn_session_needs says (of a shared arena,
 * what that one needs); may be NULL. */
static inline void *tarn_session_memory(const struct tarn_session *session, tarn_space space,
                                        struct tarn_memory_needs *needs)
{
    return tarn_session_memory_sized(session, space, needs, sizeof *needs);
}
/* A contiguous group of the plan's graph as one buffer, for one call of a communication library:
 * address of its first member, and bytes from there to the end of its last member. Either pointer
 * may be NULL. TARN_USAGE: no such group, or its members are not one buffer, because the caller has
 * bound them elsewhere or not at all, or because the device gives every storage a region. */
TARN_API enum tarn_status tarn_session_group(const struct tarn_session *session, uint32_t group,
                                             void **address, uint64_t *size,
                                             struct tarn_error *error);

/* Copies whole or part of a tensor, from its first byte. Only while nothing is running; planned
 * tensors other than outputs hold what the last writer of those bytes left. A session that has
 * ended (TARN_DEVICE, TARN_DEADLINE, TARN_INTERRUPTED) refuses both.
 * TARN_USAGE: unknown or unbound tensor, size above the tensor's, or work in progress. */
TARN_API enum tarn_status tarn_session_write(struct tarn_session *session, tarn_tensor tensor,
                                             const void *data, uint64_t size,
                                             struct tarn_error *error);
TARN_API enum tarn_status tarn_session_read(struct tarn_session *session, tarn_tensor tensor,
                                            void *data, uint64_t size, struct tarn_error *error);

/* Host memory from which the device copies fastest (pinned, near it), else ordinary memory aligned
 * to a page. The caller destroys it, with the same size, before the session. Any thread.
 * TARN_SYSTEM, TARN_DEVICE. */
TARN_API enum tarn_status tarn_session_host_memory_create(struct tarn_session *session,
                                                          uint64_t size, void **memory,
                                                          struct tarn_error *error);
TARN_API void tarn_session_host_memory_destroy(struct tarn_session *session, void *memory,
                                               uint64_t size);

/* Lets `iterations` more iterations run. Returns at once on the host; on devices with queues when
 * all are enqueued, which is before the last `depth` of them have finished. Tickets are ordered:
 * waiting for one waits for all before it. TARN_USAGE: an op has no kernel, or a persistent tensor
 * no memory, or it is another session's turn on memory that is shared. Errors as tarn_session_wait.
 */
TARN_API enum tarn_status tarn_session_submit(struct tarn_session *session, uint64_t iterations,
                                              tarn_ticket *ticket, struct tarn_error *error);
/* An event outside of the session: one of the device's, as its event_create makes them (a
 * cudaEvent_t), or on the host a struct tarn_host_event (device.h) and a value of it. */
struct tarn_event {
    void *event;
    uint64_t value; /* on the host alone */
};

/* What stands before and behind the iterations of a submit, so that they run between two steps of
 * others and nobody waits on the host (but while 64 submits with options, or turns on an arena, are
 * under way on the host device: then the next submit waits for the oldest). The first op of every
 * stream waits, as far as these ops do not wait for each other anyway; the end is that of all
 * streams. */
struct tarn_submit_options {
    size_t struct_size;
    /* Waits for what the events stand for at this call: the latest record that was enqueued before,
     * or the value, whenever the counter reaches it. */
    const struct tarn_event *waits;
    size_t waits_count;
    /* Records these at the end, or raises the counters. On the host nothing is raised when the
     * session stops with an error before. The caller keeps events of devices until they are
     * reached. */
    const struct tarn_event *signals;
    size_t signals_count;
    /* A queue of the session's device (a cudaStream_t), or NULL: the iterations begin after what it
     * was given before this call, and what it is given afterwards begins after them, as if they had
     * been enqueued on it. */
    void *queue;
};
#ifndef __cplusplus
#define TARN_SUBMIT_OPTIONS(...) \
    (&(struct tarn_submit_options){.struct_size = sizeof(struct tarn_submit_options), __VA_ARGS__})
#endif

/* tarn_session_submit with options; NULL: none. In a capture they stand around the blocks.
 *
 * A submit may have to wait for `waits` and `queue` before it can return: on devices with queues,
 * if it has more than `depth` iterations under way, or gives a queue more kernels than it holds
 * (device.h, queue_depth; about a thousand on CUDA, where each op counts as one, and captured
 * blocks as one). So let what is waited for be reached by work that is under way or by another
 * thread, not by what the caller does after the submit; or use the option `capture`. TARN_DEADLINE:
 * it was not reached within patience_ns, or 10 s without that option; the session refuses further
 * work.
 *
 * TARN_USAGE, besides: a queue on the host; a graph that launches nothing, with options. */
TARN_API enum tarn_status tarn_session_submit_with(struct tarn_session *session,
                                                   uint64_t iterations,
                                                   const struct tarn_submit_options *options,
                                                   tarn_ticket *ticket, struct tarn_error *error);
/* Waits until the ticket's iterations have finished; then outputs are valid until the next submit.
 * TARN_DEVICE: a kernel or the device failed; the text names stream, op, iteration and code, all
 * streams have stopped, and the session refuses further work. Streams stop between ops, each where
 * it is, and nothing is undone: of persistent tensors and outputs some are updated by the iteration
 * that failed, some are not, some only in part (those that the failed kernel, or a kernel that was
 * running, writes); a device may run kernels that are enqueued already. So go on from a copy of
 * their own that is known to be whole, such as a checkpoint, not from what is there. The same holds
 * after TARN_DEADLINE and TARN_INTERRUPTED. TARN_DEADLINE: not finished after
 * timeout_ns; the text gives every stream's position, the session refuses further work. With a
 * timeout of 0 it only asks: TARN_DEADLINE then means "not yet" and ends nothing.
 * TARN_INTERRUPTED: cancelled. */
TARN_API enum tarn_status tarn_session_wait(struct tarn_session *session, tarn_ticket ticket,
                                            uint64_t timeout_ns, struct tarn_error *error);
/* Iterations that have finished, without waiting; an error that happened is told, as by wait. */
TARN_API enum tarn_status tarn_session_query(struct tarn_session *session, uint64_t *finished,
                                             struct tarn_error *error);
/* From any thread, as long as the session is not destroyed: nothing more is begun; what is enqueued
 * or running ends. The submit or wait under way, else the next one, returns TARN_INTERRUPTED, and
 * the session refuses further work. */
TARN_API void tarn_session_cancel(struct tarn_session *session);
/* The flight recorder's text, line by line: where every stream is, and its last commands with
 * times. From the session's thread, at any time before it is destroyed. */
TARN_API void tarn_session_dump(struct tarn_session *session, tarn_line line, void *user);
/* The same as a file, written to a temporary name, then renamed; "-" is standard output. why: its
 * first line, for example an error's text; NULL: none. TARN_SYSTEM. */
TARN_API enum tarn_status tarn_session_save_dump(struct tarn_session *session, const char *why,
                                                 const char *path, struct tarn_error *error);

/* Writes what the flight recorder remembers as Chrome trace events (JSON, for Perfetto too): a
 * track per stream, and the bytes of planned storages that are alive as a counter. Times are those
 * of running on the host and of stamped commands; of other enqueued ones, those of enqueueing. Only
 * while nothing is running. TARN_USAGE: there is no recorder, or work in progress; TARN_SYSTEM;
 * TARN_DEVICE. */
TARN_API enum tarn_status tarn_session_save_trace(struct tarn_session *session, const char *path,
                                                  struct tarn_error *error);

/* One launch of one iteration, as a trace has it; times from any zero. */
struct tarn_trace_entry {
    tarn_op op;
    uint64_t iteration, begin_ns, end_ns;
};
/* Reads the launches of a trace that tarn_session_save_trace wrote, or that a viewer saved again.
 * Whether they are those of a plan is for the caller to say. The caller frees *entries with
 * tarn_free (hooks.h).
 * "-": standard input. TARN_BAD_INPUT: no trace; TARN_SYSTEM. */
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
    uint32_t delay_ns;   /* random delay before an op, at most; 0: none */
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
    uint64_t digest; /* over all bytes that ops have written, what ran again and workspaces left
                        out, and the final contents of all persistent and output storages, as
                        checked; equal for every correct run of the graph */
};

/* A fresh session, whose bindings are gone afterwards; persistent tensors are bound already, and
 * their contents are lost. Where the host can follow the device's addresses and the device takes
 * closures, or has no queues, the host does the work; elsewhere the device's own checking kernels
 * do (then who wrote a wrong byte is not told). TARN_CHECK_FAILED: a wrong byte; `error` names op,
 * tensor, iteration and byte, and who wrote it where that can be told. TARN_BAD_INPUT: the given
 * order is not legal for the plan; nothing was run. TARN_USAGE: the device has neither way, or one
 * that the options ask too much of. TARN_DEADLINE. */
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
