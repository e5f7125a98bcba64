/* A device with queues and events that exists on paper: what is enqueued runs later, one piece at a
 * time, in a random order that the queues and events allow, whenever somebody asks for an event. So
 * every legal interleaving can occur, the same one for the same seed, on one thread. */
#ifndef TARN_TESTS_QUEUE_DEVICE_H
#define TARN_TESTS_QUEUE_DEVICE_H

#include "random_graph.h"
#include "tarn/device.h"
#include "tarn/session.h"

struct queue_device {
    struct random_source source;
    struct queue_device_queue *queues; /* all that are alive, a list */
    uint32_t queues_alive, events_alive, memories_alive;
    uint32_t
        strange; /* waits for an event that was never recorded, on a device that ignores them */
    bool stuck;  /* nothing runs any more */
    uint32_t fail_after; /* so many more event calls succeed, then all fail; 0: none fails */
    enum tarn_error_class fail_class;
};

struct tarn_device queue_device(struct queue_device *device);

/* For kernels: enqueues work(user, copy of *call). */
typedef void (*queue_device_work)(void *user, const struct tarn_call *call);
void queue_device_enqueue(struct queue_device *device, queue_device_work work, void *user,
                          const struct tarn_call *call);

/* Runs all that can run. */
void queue_device_run(struct queue_device *device);

#endif
