/* Device streams of a mixed session: one thread that enqueues them beside the host's workers, and
 * tells each side how far the other is. */
#ifndef TARN_RUNTIME_HOST_ENQUEUER_H
#define TARN_RUNTIME_HOST_ENQUEUER_H

#include "runtime/session/session.h"

struct tarn_enqueuer;

/* Queues for all streams that are on devices with queues, and the thread. *enqueuer is NULL when
 * there is none. The executor's streams and wakes are set up already. TARN_SYSTEM, TARN_DEVICE. */
enum tarn_status tarn_enqueuer_create(struct tarn_executor *executor,
                                      struct tarn_enqueuer **enqueuer, struct tarn_error *error);

/* Once the thread has left, which it does when the executor is told to quit: asks the devices until
 * nothing is under way on them. TARN_DEADLINE, without a text; TARN_DEVICE: a device does not tell.
 */
enum tarn_status tarn_enqueuer_drain(struct tarn_enqueuer *enqueuer, uint64_t deadline_ns,
                                     struct tarn_error *error);

/* When nothing is under way. */
void tarn_enqueuer_destroy(struct tarn_enqueuer *enqueuer);

#endif
