/* Events and a queue of the caller that a submit on queues waits for before its iterations, and
 * signals after them. */
#ifndef TARN_RUNTIME_QUEUES_AROUND_H
#define TARN_RUNTIME_QUEUES_AROUND_H

#include "marks.h"

struct tarn_queues_around {
    const struct tarn_marks *marks;
    const struct tarn_submit_options *asked; /* options of the submit under way; NULL: none */
    /* These are made at their first use. */
    void *door;     /* event: earlier work of the caller's queue */
    void *joint;    /* queue: waits for all streams, then records the caller's events */
    void *end;      /* event: after all work of the joint; NULL: the joint has no work */
    void *passed;   /* event: a stream has passed all its waits for the caller's events */
    bool is_closed; /* `passed` was recorded, and has not been found reached */
};

/* Initial state: all zeros but marks. The caller finishes it at the end. */
void tarn_around_finish(struct tarn_queues_around *around);

/* Enter: before the first iteration. Leave: after the last mark. */
enum tarn_status tarn_around_enter(struct tarn_queues_around *around, struct tarn_error *error);
enum tarn_status tarn_around_leave(struct tarn_queues_around *around, struct tarn_error *error);

/* Checks whether the streams have passed their waits, and sets is_closed. Returns the device's
 * code. */
int tarn_around_look_before(struct tarn_queues_around *around);

/* Has the joint finished its work? Returns the device's code. pre: all marks have been reached. */
int tarn_around_look(const struct tarn_queues_around *around, bool *is_over);

#endif
