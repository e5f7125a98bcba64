/* What stands before and behind the iterations of a submit on queues: events and a queue of the
 * caller's. */
#ifndef TARN_RUNTIME_QUEUES_AROUND_H
#define TARN_RUNTIME_QUEUES_AROUND_H

#include "marks.h"

struct tarn_queues_around {
    const struct tarn_marks *marks;
    const struct tarn_submit_options *asked; /* of the submit under way; NULL: nothing */
    /* These are made when they are needed first. */
    void *door;     /* event: what the caller's queue was given before */
    void *joint;    /* queue: where all streams meet, to record the caller's events */
    void *end;      /* event: behind all that the joint was given; NULL: it was given nothing */
    void *passed;   /* event: a stream is past all that it was to wait for */
    bool is_closed; /* `passed` was recorded, and has not been seen reached */
};

/* All zeros but marks. The caller finishes it when it is over. */
void tarn_around_finish(struct tarn_queues_around *around);

/* Before the first iteration, and behind the last mark. */
enum tarn_status tarn_around_enter(struct tarn_queues_around *around, struct tarn_error *error);
enum tarn_status tarn_around_leave(struct tarn_queues_around *around, struct tarn_error *error);

/* Looks whether the streams are past what they were to wait for, and sets is_closed. Returns the
 * device's code. */
int tarn_around_look_before(struct tarn_queues_around *around);

/* Has the joint done all? Returns the device's code. pre: all marks have been reached. */
int tarn_around_look(const struct tarn_queues_around *around, bool *is_over);

#endif
