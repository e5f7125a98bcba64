/* Device streams of a mixed session, which one thread enqueues beside the host's workers: a lane
 * for each stream, and the enqueuer that drives them all and tells each side how far the other is.
 */
#ifndef TARN_RUNTIME_HOST_LANE_H
#define TARN_RUNTIME_HOST_LANE_H

#include "executor.h"
#include "runtime/queues/queues.h"

struct tarn_lane {
    struct tarn_queues *queues;
    uint32_t stream;
    uint32_t steps_count;
    uint64_t enqueued; /* steps, since the start */
    uint32_t *visible; /* places of visible steps, ascending; the last step is one */
    uint32_t visible_count;
    uint64_t recorded, settled; /* of the visible steps, since the start */
    void *end;                  /* event: everything is over, also after an error */
    bool is_ending;
    uint32_t refusals; /* of calls about `end` */
};

struct tarn_enqueuer {
    struct tarn_executor *executor;
    struct tarn_queues *queues; /* by device; without session where there is nothing to enqueue */
    uint32_t devices_count;
    struct tarn_lane *lanes;
    uint32_t lanes_count;
    struct tarn_lane **lane_of; /* by stream; NULL: the host's */
    pthread_t thread;
    bool started; /* and not joined yet */
};

/* Are the visible places ascending and the counters consistent with each other? For assertions;
 * cost: linear in visible steps. */
bool tarn_lane_is_valid(const struct tarn_lane *lane);

/* Enqueues what it can; true when that was something. */
bool tarn_lane_advance(const struct tarn_enqueuer *enqueuer, struct tarn_lane *lane);

/* Looks at the visible steps on their way; true when one has passed. */
bool tarn_lane_settle(const struct tarn_enqueuer *enqueuer, struct tarn_lane *lane);

/* After a stop: everything that was enqueued is over once an event behind it is reached; then the
 * stream is nobody's. To be called until it is. */
void tarn_lane_end(const struct tarn_enqueuer *enqueuer, struct tarn_lane *lane);

/* ---- The enqueuer (host/enqueuer.c) ---- */

/* Queues for all streams that are on devices with queues, and the thread. *enqueuer is NULL when
 * there is none. The executor's streams and wakes are set up already. TARN_SYSTEM, TARN_DEVICE. */
enum tarn_status tarn_enqueuer_create(struct tarn_executor *executor,
                                      struct tarn_enqueuer **enqueuer, struct tarn_error *error);

/* Once the thread has left, which it does when the executor is told to quit: asks the devices until
 * nothing is under way on them. TARN_DEADLINE, without a text; TARN_DEVICE: a device does not tell.
 */
enum tarn_status tarn_enqueuer_drain(struct tarn_enqueuer *enqueuer, uint64_t deadline_ns,
                                     struct tarn_error *error);

/* The thread, or a worker, has not left in time. TARN_DEVICE: a device is lost, so that more time
 * is of no use; otherwise TARN_DEADLINE, without a text. */
enum tarn_status tarn_enqueuer_late(const struct tarn_enqueuer *enqueuer, struct tarn_error *error);

/* When nothing is under way. */
void tarn_enqueuer_destroy(struct tarn_enqueuer *enqueuer);

#endif
