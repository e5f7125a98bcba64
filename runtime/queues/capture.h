/* Captured execution: a block of iterations that the device replays as a whole. */
#ifndef TARN_RUNTIME_QUEUES_CAPTURE_H
#define TARN_RUNTIME_QUEUES_CAPTURE_H

#include "queues.h"

struct tarn_capture {
    struct tarn_queues *queues;
    uint32_t unroll; /* iterations of a block; 0: nothing is captured */
    uint32_t origin; /* the stream that begins and ends every capture */
    void *fork;      /* event: from the origin to all streams */
    void **joins;    /* events, by stream: from the stream to the origin */
    void *graphs[2]; /* of a block, and of one iteration; NULL: not captured yet */
};

/* unroll: above 0. The program has steps. The caller finishes it whatever the status. */
enum tarn_status tarn_capture_init(struct tarn_capture *capture, struct tarn_queues *queues,
                                   uint32_t unroll, struct tarn_error *error);
void tarn_capture_finish(struct tarn_capture *capture);

/* Drops captured graphs, since bindings or addresses have changed. pre: nothing is running. */
void tarn_capture_forget(struct tarn_capture *capture);

/* How many of the `left` iterations the next launch runs. */
static inline uint64_t tarn_capture_next(const struct tarn_capture *capture, uint64_t left)
{
    return left >= capture->unroll ? capture->unroll : 1;
}

/* Launches a block of `iterations` (unroll or 1) on the origin's queue; captures it the first time.
 * `iteration` is the first one's number, for messages. */
enum tarn_status tarn_capture_launch(struct tarn_capture *capture, uint64_t iterations,
                                     uint64_t iteration, struct tarn_error *error);

#endif
