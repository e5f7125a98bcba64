/* The session's inside, shared by the executors and by checked execution. */
#ifndef TARN_RUNTIME_SESSION_H
#define TARN_RUNTIME_SESSION_H

#include "../streams/plan/program.h"
#include "tarn/session.h"

struct tarn_executor;
struct tarn_checker;

struct tarn_binding {
    tarn_kernel kernel; /* NULL: unbound */
    void *user;
    bool own; /* bound by name, not by default */
};

struct tarn_session {
    struct tarn_plan *plan;
    const struct tarn_graph *graph; /* the plan's */
    struct tarn_device device;
    struct tarn_program program;
    void *memory; /* one allocation of memory_size bytes: the arena, then the persistent part */
    uint64_t memory_size;
    unsigned char *arena;          /* planned storages; NULL when the footprint is 0 */
    unsigned char *persistent;     /* persistent part; NULL when empty */
    struct tarn_binding *bindings; /* by op */
    struct tarn_call *calls;       /* by op; prebuilt, only `iteration` and `queue` change */
    void **addresses;              /* what calls[].inputs and .outputs point into */
    const struct tarn_executor_table *executor_table;
    struct tarn_executor *executor;
    struct tarn_checker *checker; /* of tarn_session_check; NULL before it */
    uint64_t submitted;           /* iterations */
    uint64_t finished;            /* iterations that the caller has waited for */
    bool ready;                   /* every launched op is known to have a kernel */
    bool refused;                 /* after an error: nothing but destroy */
};

/* How a kind of device carries out a program. All calls come from the session's thread. */
struct tarn_executor_table {
    enum tarn_status (*create)(struct tarn_session *session,
                               const struct tarn_session_options *options,
                               struct tarn_executor **executor, struct tarn_error *error);
    /* Lets iterations up to `target` (a count from the session's start) run; returns at once. */
    enum tarn_status (*submit)(struct tarn_executor *executor, uint64_t target,
                               struct tarn_error *error);
    /* Until `target` iterations are finished. */
    enum tarn_status (*wait)(struct tarn_executor *executor, uint64_t target, uint64_t timeout_ns,
                             struct tarn_error *error);
    /* False when a kernel never returned: then the session's memory must be given up. */
    bool (*destroy)(struct tarn_executor *executor);
};

extern const struct tarn_executor_table tarn_executor_host;   /* worker threads claim streams */
extern const struct tarn_executor_table tarn_executor_queues; /* enqueue on device queues */

/* Is the session on the host device? */
bool tarn_session_is_host(const struct tarn_session *session);

/* Address of a tensor's storage (root or alias). */
unsigned char *tarn_session_address(const struct tarn_session *session, tarn_tensor tensor);

/* Reports that an op's kernel returned `code`: TARN_DEVICE. */
enum tarn_status tarn_session_kernel_failed(const struct tarn_session *session, tarn_op op,
                                            uint64_t iteration, int code, struct tarn_error *error);

/* Runs one op's kernel on the calling thread; the session must be idle. Returns the kernel's code.
 */
int tarn_session_launch(struct tarn_session *session, tarn_op op, uint64_t iteration);

#endif
