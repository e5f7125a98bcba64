/* A session's state, shared by its public functions, the executors, the flight recorder and checked
 * execution. */
#ifndef TARN_RUNTIME_STATE_STATE_H
#define TARN_RUNTIME_STATE_STATE_H

#include <stdatomic.h>
#include <sys/types.h>

#include "arena.h"
#include "plan_memory.h"
#include "rebind.h"
#include "settings.h"
#include "streams/base/region.h"
#include "streams/plan/program.h"

struct tarn_executor;
struct tarn_flight;

/* How kernels run on devices with queues. */
enum tarn_kernels {
    TARN_KERNELS_AS_TABLE, /* as the device's table says */
    TARN_KERNELS_CLOSURES, /* as closures, if the device takes any */
    TARN_KERNELS_INLINE    /* at once, on the thread that enqueues */
};

struct tarn_binding {
    tarn_kernel kernel; /* NULL: unbound */
    void *user;
    bool own; /* bound by name, not by default */
};

/* An object in the session's region, and its destructor, called before the region ends. */
struct tarn_kept {
    void *object; /* NULL: there is none */
    void (*finish)(void *object);
};

struct tarn_session {
    struct tarn_region region;      /* memory of objects that live as long as the session */
    struct tarn_plan *plan;         /* retained */
    const struct tarn_graph *graph; /* the plan's */
    pid_t process;                  /* process that made the session, and has its threads */
    struct tarn_device device;      /* device that runs the streams and has the memory */
    struct tarn_settings settings;
    const struct tarn_program *program; /* the plan's */
    struct tarn_plan_memory memory;
    struct tarn_arena_member *member; /* the session's member of its arena; NULL: no arena */
    const bool *exits;                /* by step: another plan on the arena waits for it; or NULL */
    uint64_t turn;                    /* its last submit, in turns of the arena */
    struct tarn_binding *bindings;    /* by op */
    struct tarn_call *calls;     /* by op; only `iteration` and `queue` change after creation */
    void **addresses;            /* target of calls[].inputs and .outputs */
    size_t addresses_count;      /* of inputs and outputs of all ops */
    struct tarn_rebinds rebinds; /* of addresses, while iterations are under way */
    uint64_t *sizes;             /* target of calls[].input_sizes and .output_sizes */
    const struct tarn_executor_table *executor_table;
    struct tarn_executor *executor; /* NULL while the session is being made */
    struct tarn_flight *flight;     /* NULL: nothing is recorded */
    struct tarn_kept check;         /* of checked execution, whose kernels may outlive the call */
    uint64_t submitted;             /* iterations since the start */
    uint64_t finished;              /* iterations that were reported to the caller as finished */
    uint32_t *arms;    /* by conditional: the arm that it takes; NULL: the graph has none */
    bool *skipped;     /* by op: in an arm that is not taken */
    bool ready;        /* bindings and addresses are complete and passed to the executor */
    bool refused;      /* after an error: every call but destroy is refused */
    bool overdue;      /* a deadline has passed: work under way may never end */
    bool has_enqueued; /* work was enqueued on a queue of a device */
    enum tarn_kernels kernels;
    atomic_bool poisoned; /* a device does not work any more */
    atomic_bool cancelled;
};

/* The state of a stream, in a report. */
enum tarn_stream_state {
    TARN_STREAM_STUCK,    /* a kernel of it, or its device, has not returned */
    TARN_STREAM_WAITS,    /* for another stream, or for a worker */
    TARN_STREAM_FINISHED, /* all that was submitted */
    TARN_STREAM_EMPTY     /* it launches nothing */
};

/* The functions of an executor, which runs a program on a kind of device. All calls but cancel come
 * from the session's thread.
 */
struct tarn_executor_table {
    enum tarn_status (*create)(struct tarn_session *session, struct tarn_executor **executor,
                               struct tarn_error *error);
    /* Bindings or addresses have changed since the last submit. pre: nothing runs. */
    void (*rebind)(struct tarn_executor *executor);
    /* The next iteration waits for the last iteration of the session of that plan of the arena.
     * pre: that session has the same kind of executor and has submitted; submit comes next. */
    void (*follow)(struct tarn_executor *executor, uint32_t plan);
    /* Sets the events before and after the next submit, valid until then; NULL: none, and no
     * session is followed either. TARN_SYSTEM: no memory; TARN_USAGE. */
    enum tarn_status (*surround)(struct tarn_executor *executor,
                                 const struct tarn_submit_options *around,
                                 struct tarn_error *error);
    /* Lets iterations up to `target` (a count from the session's start) run. pre: target is above
     * that of the last call. */
    enum tarn_status (*submit)(struct tarn_executor *executor, uint64_t target,
                               struct tarn_error *error);
    /* Waits until `target` iterations have finished. pre: they were submitted; timeout_ns is above
     * 0. */
    enum tarn_status (*wait)(struct tarn_executor *executor, uint64_t target, uint64_t timeout_ns,
                             struct tarn_error *error);
    /* *finished: the number of finished iterations. */
    enum tarn_status (*query)(struct tarn_executor *executor, uint64_t *finished,
                              struct tarn_error *error);
    /* session->cancelled was set: waiting threads check again. From any thread. */
    void (*cancel)(struct tarn_executor *executor);
    /* Writes the position of the stream, for example 'runs op 7 "relu" of iteration 3'. pre: the
     * stream has steps. */
    enum tarn_stream_state (*describe)(struct tarn_executor *executor, uint32_t stream, char *text,
                                       size_t size);
    /* Stops, waits for work under way, and frees the executor. TARN_DEADLINE, TARN_DEVICE: some
     * work may not have ended, and the executor still exists; until the next call it calls no
     * device, and starts no kernel. */
    enum tarn_status (*destroy)(struct tarn_executor *executor, uint64_t timeout_ns,
                                struct tarn_error *error);
};

/* Do kernels on that device run as closures? */
static inline bool tarn_session_calls(const struct tarn_session *session,
                                      const struct tarn_device_table *table)
{
    if (session->kernels == TARN_KERNELS_AS_TABLE) return table->kernels_are_closures;
    return session->kernels == TARN_KERNELS_CLOSURES && table->launch;
}

/* The default kernel of moves on a device that copies; user: the session. It enqueues the copy,
 * even if kernels are closures. */
int tarn_session_move(void *user, const struct tarn_call *call);
/* Enqueues a move at once on a device with queues, for the submit under way. Returns the device's
 * code.
 */
int tarn_session_enqueue_move(const struct tarn_session *session, tarn_op op);

/* Binds the default kernel to every move of the plan without its own kernel, if the device
 * copies. */
void tarn_session_bind_moves(struct tarn_session *session);

/* Is the op a move that the session runs itself? */
static inline bool tarn_session_moves(const struct tarn_session *session, tarn_op op)
{
    return session->bindings[op].kernel == tarn_session_move;
}

/* Records that work may be on a queue. Written only once, since workers read neighbouring
 * fields. */
static inline void tarn_session_enqueues(struct tarn_session *session)
{
    if (!session->has_enqueued) session->has_enqueued = true;
}

static inline bool tarn_session_is_idle(const struct tarn_session *session)
{
    return !session->refused && session->submitted == session->finished;
}

/* Runs one op's kernel on the calling thread. Returns the kernel's code. */
static inline int tarn_session_launch(struct tarn_session *session, tarn_op op, uint64_t iteration)
{
    const struct tarn_binding *binding = &session->bindings[op];
    if (atomic_load_explicit(&session->rebinds.made, memory_order_acquire) > 0)
        tarn_rebinds_apply(session, session->calls[op].stream, iteration);
    if (session->skipped && session->skipped[op]) return 0;
    session->calls[op].iteration = iteration;
    return binding->kernel(binding->user, &session->calls[op]);
}

/* Marks the ops that do not run with the present arms of the session's conditionals. */
static inline void tarn_session_skip(struct tarn_session *session)
{
    const struct tarn_graph *graph = session->graph;
    for (uint32_t v = 0; session->arms && v < graph->ops_count; v++) {
        const struct tarn_op_extra *extra = tarn_extra(&graph->ops[v]);
        session->skipped[v] = false;
        for (uint32_t i = 0; i < extra->branch_count; i++)
            if (session->arms[extra->branch[i][0]] != extra->branch[i][1])
                session->skipped[v] = true;
    }
}

#endif
