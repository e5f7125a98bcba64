/* Marks: events that record the ends of all queues after a batch of iterations. */
#ifndef TARN_RUNTIME_QUEUES_MARKS_H
#define TARN_RUNTIME_QUEUES_MARKS_H

#include <assert.h>

#include "queues.h"

/* The ends of all queues after iterations up to `target` were enqueued. */
struct tarn_mark {
    uint64_t target;
    uint32_t reached; /* streams before this one have reached it */
    void **events;    /* by stream; NULL for streams without steps, or if not in use */
};

struct tarn_marks {
    struct tarn_queues *queues;
    struct tarn_mark *ring;
    uint32_t count;         /* of the ring */
    uint64_t made, reached; /* since the start */
};

/* A ring of `count` marks. origin: the one stream whose end is the end of all streams, as in a
 * capture; TARN_NONE: every stream has its own end. The caller finishes the ring, whatever the
 * status, when nothing is under way. */
enum tarn_status tarn_marks_init(struct tarn_marks *marks, struct tarn_queues *queues,
                                 uint32_t origin, uint32_t count, struct tarn_error *error);
void tarn_marks_finish(struct tarn_marks *marks);

/* Makes a mark after all enqueued work, iterations up to `target`. pre: there is room. */
enum tarn_status tarn_marks_make(struct tarn_marks *marks, uint64_t target,
                                 struct tarn_error *error);
/* Checks which marks have been reached since; *finished becomes the target of the last reached
 * mark. */
enum tarn_status tarn_marks_look(struct tarn_marks *marks, uint64_t *finished,
                                 struct tarn_error *error);
/* Makes work that is enqueued next wait for the last mark of other queues, if there is one. */
enum tarn_status tarn_marks_follow(const struct tarn_marks *marks, const struct tarn_marks *others,
                                   struct tarn_error *error);

static inline bool tarn_marks_all_reached(const struct tarn_marks *marks)
{
    return marks->reached == marks->made;
}

static inline bool tarn_marks_have_room(const struct tarn_marks *marks)
{
    return marks->made - marks->reached < marks->count;
}

/* Does the stream's end belong to marks? In a capture only the origin's end does. */
static inline bool tarn_marks_has(const struct tarn_marks *marks, uint32_t stream)
{
    return marks->ring[0].events[stream];
}

/* The oldest mark that is not reached. */
static inline const struct tarn_mark *tarn_marks_oldest(const struct tarn_marks *marks)
{
    assert(!tarn_marks_all_reached(marks));
    return &marks->ring[marks->reached % marks->count];
}

/* The mark that was made last. */
static inline const struct tarn_mark *tarn_marks_last(const struct tarn_marks *marks)
{
    assert(marks->made > 0);
    return &marks->ring[(marks->made - 1) % marks->count];
}

#endif
