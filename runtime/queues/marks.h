/* Marks: where all queues were when a batch had been enqueued. */
#ifndef TARN_RUNTIME_QUEUES_MARKS_H
#define TARN_RUNTIME_QUEUES_MARKS_H

#include <assert.h>

#include "queues.h"

/* The ends of all queues when iterations up to `target` were enqueued. */
struct tarn_mark {
    uint64_t target;
    uint32_t reached; /* streams before this one have reached it */
    void **events;    /* by stream; NULL for streams without steps, or not in use */
};

struct tarn_marks {
    struct tarn_queues *queues;
    struct tarn_mark *ring;
    uint32_t count;         /* of the ring */
    uint64_t made, reached; /* since the start */
};

/* A ring of `count` marks. origin: the one stream whose end is that of all, as in a capture;
 * TARN_NONE: every stream has its own. The caller finishes it whatever the status; nothing must be
 * under way then. */
enum tarn_status tarn_marks_init(struct tarn_marks *marks, struct tarn_queues *queues,
                                 uint32_t origin, uint32_t count, struct tarn_error *error);
void tarn_marks_finish(struct tarn_marks *marks);

/* Makes one behind all that is enqueued, iterations up to `target`. pre: there is room. */
enum tarn_status tarn_marks_make(struct tarn_marks *marks, uint64_t target,
                                 struct tarn_error *error);
/* Looks which have been reached since; *finished becomes the target of the last that has. */
enum tarn_status tarn_marks_look(struct tarn_marks *marks, uint64_t *finished,
                                 struct tarn_error *error);
/* What is enqueued next comes after the last mark of others, if there is one. */
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

/* Does the stream's end belong to marks? In a capture the origin's alone does. */
static inline bool tarn_marks_has(const struct tarn_marks *marks, uint32_t stream)
{
    return marks->ring[0].events[stream];
}

/* The oldest that is not reached. */
static inline const struct tarn_mark *tarn_marks_oldest(const struct tarn_marks *marks)
{
    assert(!tarn_marks_all_reached(marks));
    return &marks->ring[marks->reached % marks->count];
}

/* The one that was made last. */
static inline const struct tarn_mark *tarn_marks_last(const struct tarn_marks *marks)
{
    assert(marks->made > 0);
    return &marks->ring[(marks->made - 1) % marks->count];
}

#endif
