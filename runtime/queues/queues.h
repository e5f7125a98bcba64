/* Streams as queues of one device: the queues, the events that steps record, and the enqueueing of
 * a step. Used by the executor of devices with queues and by captures. */
#ifndef TARN_RUNTIME_QUEUES_QUEUES_H
#define TARN_RUNTIME_QUEUES_QUEUES_H

#include "runtime/state/state.h"

/* A step's kernel as the device calls it. Its calls come one after another, iteration by iteration,
 * as they are in one queue. So the closure counts iterations itself, and one closure serves all
 * iterations. */
struct tarn_closure {
    struct tarn_queues *queues;
    uint32_t op;
    uint64_t iteration; /* of its next call */
};

struct tarn_queues {
    struct tarn_session *session;
    struct tarn_device device;
    void **queues;    /* by stream; NULL: without steps */
    bool *is_adopted; /* by stream: the queue is the caller's */
    void **events[2]; /* by step, for even and odd iterations; NULL if no step waits */
    /* The next iteration waits for the last ones of these sessions of other plans on the arena.
     */
    const struct tarn_queues **follows;
    uint32_t follows_count;
    struct tarn_closure *closures; /* by step; NULL if the device takes none */
    /* The first closure that failed: 0: none, 1: being written, 2: written. Afterwards no closure
     * calls its kernel. */
    _Atomic int failed;
    atomic_bool halted; /* nor when this is set */
    uint32_t failed_op;
    uint64_t failed_iteration;
    int failed_code;
};

/* Makes queues for the session's streams. The caller finishes them, whatever the status, when
 * nothing is under way. */
enum tarn_status tarn_queues_init(struct tarn_queues *queues, struct tarn_session *session,
                                  struct tarn_error *error);
void tarn_queues_finish(struct tarn_queues *queues);

/* Enqueues a step: its waits, its kernel, its records. `iteration` selects the events and is passed
 * to kernels. */
enum tarn_status tarn_queues_enqueue_step(struct tarn_queues *queues, uint32_t index,
                                          uint64_t iteration, struct tarn_error *error);
/* All steps of an iteration, in the program's order. */
enum tarn_status tarn_queues_enqueue(struct tarn_queues *queues, uint64_t iteration,
                                     struct tarn_error *error);

/* Returns the failure of a closure; TARN_OK: none failed. */
enum tarn_status tarn_queues_failure(struct tarn_queues *queues, struct tarn_error *error);

/* Makes enqueued closures pass without calling kernels. */
void tarn_queues_halt(struct tarn_queues *queues);

/* The op to name in messages about a whole stream: its last op. */
uint32_t tarn_queues_last_op(const struct tarn_queues *queues, uint32_t stream);

/* Status of a device call for an op: see tarn_session_op_status. */
enum tarn_status tarn_queues_status(struct tarn_queues *queues, const char *what, tarn_op op,
                                    uint64_t iteration, int code, struct tarn_error *error);

/* The executor of sessions on a device with queues (queues/executor.c). */
extern const struct tarn_executor_table tarn_executor_queues;

#endif
