/* One small training step for several batch sizes, with kernels whose every output byte depends on
 * every input byte, and a reference that runs turns one after another in memory that nothing
 * shares: what sessions on one arena must compute. */
#ifndef TARN_TESTS_SUPPORT_BUCKETS_H
#define TARN_TESTS_SUPPORT_BUCKETS_H

#include "queue_device.h"
#include "tarn.h"

enum { BUCKETS = 3, BUCKET_WEIGHT = 96, BUCKET_TENSORS = 16 };

struct bucket_launch;

struct buckets {
    struct tarn_graph *graphs[BUCKETS];
    struct tarn_plan *plans[BUCKETS];
    struct queue_device *paper; /* on which kernels enqueue; NULL: they do the work */
    /* Of another device, on which kernels enqueue: has function(argument) called in a queue; or
     * NULL. */
    int (*enqueue)(void *queue, void (*function)(void *argument), void *argument);
    struct bucket_launch *launches;
    uint32_t launched;
    /* The reference. */
    unsigned char *bytes[BUCKETS][BUCKET_TENSORS]; /* by root tensor; persistent ones in common */
    bool is_owner[BUCKETS][BUCKET_TENSORS];
};

/* is_short: without compute and network. */
struct tarn_graph *bucket_graph(uint32_t batch, bool is_short);
void buckets_init(struct buckets *buckets, struct queue_device *paper);
/* With a device, a pinned and a scratch memory space, each of which the buckets share. */
void buckets_init_spaces(struct buckets *buckets, struct queue_device *paper);
void buckets_finish(struct buckets *buckets);

/* For tarn_session_bind_default; user: the buckets. */
int bucket_kernel(void *user, const struct tarn_call *call);
/* One iteration of a bucket in the reference. */
void buckets_step(struct buckets *buckets, uint32_t bucket);
/* The bytes of a tensor by name in the reference. */
unsigned char *buckets_bytes(struct buckets *buckets, uint32_t bucket, const char *name);

#endif
