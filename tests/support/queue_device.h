/* A device with queues and events that exists on paper: what is enqueued runs later, one piece at a
 * time, in a random order that the queues and events allow, whenever somebody asks for an event. So
 * every legal interleaving can occur, the same one for the same seed, on one thread. It can do all
 * that a device table has, or only part of it, and any call can be made to fail. */
#ifndef TARN_TESTS_SUPPORT_QUEUE_DEVICE_H
#define TARN_TESTS_SUPPORT_QUEUE_DEVICE_H

#include <pthread.h>

#include "random_graph.h"
#include "tarn/device.h"
#include "tarn/session.h"

struct queue_device {
    /* What it is; set before the device is opened. */
    bool closures; /* kernels go through `launch`; else they call queue_device_enqueue */
    bool regions;  /* no addresses inside an allocation */
    bool off_host; /* addresses that host code must not follow */
    bool lacks_launch, lacks_patterns, lacks_capture, lacks_copies;
    bool has_spaces;         /* several kinds of memory; a scratchpad has 64 KiB */
    uint64_t memory_size;    /* of the whole device; 0: no limit */
    uint64_t allocation_max; /* 0: no limit */
    /* How it behaves. */
    struct random_source source;
    bool stuck;          /* nothing runs any more */
    uint32_t fail_after; /* so many calls - 1 succeed, then all fail; 0: none fails */
    bool fail_once;      /* then only one fails */
    bool failed;         /* a call was made to fail */
    enum tarn_error_class fail_class;
    /* What it has seen. */
    uint64_t calls; /* of those that can fail */
    uint32_t queues_alive, events_alive, memories_alive, regions_alive, graphs_alive;
    uint32_t stamps_alive;
    uint32_t spaces_alive[3]; /* allocations by kind */
    uint32_t urgent_queues;   /* created as such */
    _Atomic uint32_t named;   /* calls of memory_name */
    _Atomic int ranges_open;  /* begun and not ended */
    uint32_t strange;         /* waits for events that were never recorded, or of another capture */
    /* Inside. */
    uint64_t memory_used;
    uint64_t clock;                     /* pieces that ran */
    struct queue_device_queue *queues;  /* all that are alive, a list */
    struct queue_device_graph *capture; /* under way */
    struct tarn_device_table table;
    pthread_mutex_t lock;
};

/* Opens it: zeroed, or with some of the first fields set. */
struct tarn_device queue_device(struct queue_device *device);

/* For kernels: enqueues work(user, copy of *call). */
typedef void (*queue_device_work)(void *user, const struct tarn_call *call);
void queue_device_enqueue(struct queue_device *device, queue_device_work work, void *user,
                          const struct tarn_call *call);

/* The bytes behind what a kernel got as an address. */
unsigned char *queue_device_bytes(const struct queue_device *device, const void *address);

/* Runs all that can run. */
void queue_device_run(struct queue_device *device);

/* Objects that are alive. */
uint32_t queue_device_alive(const struct queue_device *device);

#endif
