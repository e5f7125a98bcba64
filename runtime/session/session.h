/* The session's inside, shared by the executors and by checked execution. */
#ifndef TARN_RUNTIME_SESSION_SESSION_H
#define TARN_RUNTIME_SESSION_SESSION_H

#include <stdatomic.h>
#include <sys/types.h>

#include "runtime/state/arena.h"
#include "runtime/state/settings.h"
#include "streams/plan/program.h"

struct tarn_executor;
struct tarn_checker;
struct tarn_flight;

/* Checked execution may need another way than the device's own. */
enum tarn_kernels { TARN_KERNELS_AS_TABLE, TARN_KERNELS_CLOSURES, TARN_KERNELS_INLINE };

struct tarn_binding {
    tarn_kernel kernel; /* NULL: unbound */
    void *user;
    bool own; /* bound by name, not by default */
};

struct tarn_session {
    struct tarn_plan *plan;
    const struct tarn_graph *graph; /* the plan's */
    pid_t process;                  /* that made it, and has its threads */
    struct tarn_device device;
    struct tarn_settings settings;
    struct tarn_program program;
    struct tarn_arena arena;
    struct tarn_binding *bindings; /* by op */
    struct tarn_call *calls;       /* by op; prebuilt, only `iteration` and `queue` change */
    void **addresses;              /* what calls[].inputs and .outputs point into */
    uint64_t *sizes;               /* the same for calls[].input_sizes and .output_sizes */
    const struct tarn_executor_table *executor_table;
    struct tarn_executor *executor;
    struct tarn_flight *flight;   /* NULL: nothing is recorded */
    struct tarn_checker *checker; /* of tarn_session_check; NULL before it */
    uint64_t submitted;           /* iterations */
    uint64_t finished;            /* iterations that the caller knows to be finished */
    bool ready;                   /* bindings and addresses are complete and with the executor */
    bool refused;                 /* after an error: nothing but destroy */
    bool overdue;                 /* a time was up: what is under way may never end */
    bool has_enqueued;            /* something, on a queue of a device */
    enum tarn_kernels kernels;    /* how they run on devices with queues */
    atomic_bool poisoned;         /* a device answers nothing any more */
    atomic_bool cancelled;
};

enum tarn_turn { TARN_TURN_STUCK, TARN_TURN_WAITS, TARN_TURN_FINISHED, TARN_TURN_NONE };

/* How a kind of device carries out a program. All calls but cancel come from the session's thread.
 */
struct tarn_executor_table {
    enum tarn_status (*create)(struct tarn_session *session, struct tarn_executor **executor,
                               struct tarn_error *error);
    /* Bindings or addresses have changed since the last submit. */
    void (*rebind)(struct tarn_executor *executor);
    /* Lets iterations up to `target` (a count from the session's start) run. */
    enum tarn_status (*submit)(struct tarn_executor *executor, uint64_t target,
                               struct tarn_error *error);
    /* Until `target` iterations are finished. */
    enum tarn_status (*wait)(struct tarn_executor *executor, uint64_t target, uint64_t timeout_ns,
                             struct tarn_error *error);
    /* *finished: iterations that are. */
    enum tarn_status (*query)(struct tarn_executor *executor, uint64_t *finished,
                              struct tarn_error *error);
    /* session->cancelled was set: whoever waits looks again. From any thread. */
    void (*cancel)(struct tarn_executor *executor);
    /* Writes where the stream is, for example 'runs op 7 "relu" of iteration 3'. Returns in which
     * turn it is to be told: streams that are stuck before those that wait for them. */
    enum tarn_turn (*describe)(struct tarn_executor *executor, uint32_t stream, char *text,
                               size_t size);
    /* Stops, waits for what is under way, and frees the executor. TARN_DEADLINE, TARN_DEVICE: it
     * cannot yet be said that all of it has ended, and the executor is still there; until the next
     * call it calls no device, and no kernel that has not begun. */
    enum tarn_status (*destroy)(struct tarn_executor *executor, uint64_t timeout_ns,
                                struct tarn_error *error);
};

extern const struct tarn_executor_table tarn_executor_host;   /* worker threads claim streams */
extern const struct tarn_executor_table tarn_executor_queues; /* enqueue on device queues */

/* Makes `calls` with all that does not change, addresses included. TARN_SYSTEM: no memory; what was
 * made is released with the session. */
enum tarn_status tarn_session_make_calls(struct tarn_session *session, struct tarn_error *error);
/* Looks every address up again: memory was bound. */
void tarn_session_find_addresses(struct tarn_session *session);

/* Do kernels on that device run as closures? */
static inline bool tarn_session_calls(const struct tarn_session *session,
                                      const struct tarn_device_table *table)
{
    if (session->kernels == TARN_KERNELS_AS_TABLE) return table->kernels_are_closures;
    return session->kernels == TARN_KERNELS_CLOSURES && table->launch;
}

/* Reports that an op's kernel returned `code`: TARN_DEVICE. */
enum tarn_status tarn_session_kernel_failed(const struct tarn_session *session, tarn_op op,
                                            uint64_t iteration, int code, struct tarn_error *error);

/* Reports that a device's call failed while an op was at hand: TARN_DEVICE. Any thread. */
enum tarn_status tarn_session_device_failed(struct tarn_session *session, struct tarn_device device,
                                            const char *what, tarn_op op, uint64_t iteration,
                                            int code, struct tarn_error *error);

/* TARN_DEVICE: whether that device still uses the session's memory cannot be found out. */
enum tarn_status tarn_session_lost(struct tarn_device device, struct tarn_error *error);

/* Something may be on a queue from here on. Written once: workers read what is beside it. */
static inline void tarn_session_enqueues(struct tarn_session *session)
{
    if (!session->has_enqueued) session->has_enqueued = true;
}

static inline bool tarn_session_is_idle(const struct tarn_session *session)
{
    return !session->refused && session->submitted == session->finished;
}

/* TARN_USAGE: an error has ended the session. */
enum tarn_status tarn_session_refuse(struct tarn_error *error);

/* TARN_INTERRUPTED. */
enum tarn_status tarn_session_was_cancelled(struct tarn_error *error);

/* Runs one op's kernel on the calling thread. Returns the kernel's code. */
static inline int tarn_session_launch(struct tarn_session *session, tarn_op op, uint64_t iteration)
{
    const struct tarn_binding *binding = &session->bindings[op];
    session->calls[op].iteration = iteration;
    return binding->kernel(binding->user, &session->calls[op]);
}

#endif
