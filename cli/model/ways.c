/* Ways are looked for backward from the launch that must come after, breadth first by waits, over
 * two iterations: every stream is gone back along from the latest place that was reached, and a
 * wait met there reaches a place of another stream. Cost: see ways.h. */
#include "ways.h"

#include <stdlib.h>

/* ---- Neighbours ---- */

struct candidate {
    uint64_t order; /* how far away: the nearest first */
    uint32_t holder;
    bool is_other;
};

static int compare_candidates(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;
    if (x->order != y->order) return x->order < y->order ? -1 : 1;
    return (x->holder > y->holder) - (x->holder < y->holder);
}

/* When it begins: a half launch counts one. */
static uint64_t moment_of(const struct tarn_holder *holder)
{
    return 2 * (uint64_t)holder->writer + (holder->half == TARN_SECOND_HALF);
}

static size_t find_candidates(const struct tarn_model *model, uint32_t h,
                              enum tarn_direction direction, struct candidate *candidates)
{
    const struct tarn_holder *holder = &model->holders[h];
    uint64_t begin = holder->offset, end = begin + tarn_holder_reserved(holder);
    size_t count = 0;
    for (uint32_t k = 0; k < model->holders_count; k++) {
        const struct tarn_holder *other = &model->holders[k];
        if (other->offset >= end || other->offset + tarn_holder_reserved(other) <= begin) continue;
        uint64_t here = moment_of(holder), there = moment_of(other);
        uint64_t last = 2 * (uint64_t)model->launches_count + 1;
        struct tarn_model_arms ignored;
        bool is_other = (direction == TARN_BEFORE ? there >= here : there <= here) ||
                        tarn_model_exclude(model, h, k, &ignored);
        uint64_t rank = direction == TARN_BEFORE ? last - there : there;
        if (is_other) rank += last;
        candidates[count++] = (struct candidate){rank, k, is_other};
    }
    qsort(candidates, count, sizeof *candidates, compare_candidates);
    return count;
}

struct range {
    uint64_t begin, end;
};

/* Removes [begin, end) from the ranges; returns the number of removed bytes. */
static uint64_t take_range(struct range *ranges, size_t *count, uint64_t begin, uint64_t end)
{
    uint64_t taken = 0;
    size_t old = *count;
    for (size_t i = 0; i < old; i++) {
        struct range *range = &ranges[i];
        uint64_t from = begin > range->begin ? begin : range->begin;
        uint64_t to = end < range->end ? end : range->end;
        if (from >= to) continue;
        taken += to - from;
        if (to < range->end) ranges[(*count)++] = (struct range){to, range->end};
        range->end = from;
    }
    size_t kept = 0;
    for (size_t i = 0; i < *count; i++)
        if (ranges[i].begin < ranges[i].end) ranges[kept++] = ranges[i];
    *count = kept;
    return taken;
}

struct tarn_neighbour *tarn_neighbours(struct tarn_memory *memory, const struct tarn_model *model,
                                       uint32_t h, enum tarn_direction direction)
{
    struct tarn_memory scratch = {NULL, false};
    const struct tarn_holder *holder = &model->holders[h];
    struct candidate *candidates =
        tarn_memory_take(&scratch, model->holders_count, sizeof *candidates);
    size_t count = candidates ? find_candidates(model, h, direction, candidates) : 0;
    struct range *ranges = tarn_memory_take(&scratch, count + 2, sizeof *ranges);
    struct tarn_neighbour *neighbours = tarn_memory_take(memory, count + 1, sizeof *neighbours);
    if (!candidates || !ranges || !neighbours) {
        tarn_memory_finish(&scratch);
        return NULL;
    }
    size_t ranges_count = 1, found = 0;
    ranges[0] = (struct range){holder->offset, holder->offset + tarn_holder_reserved(holder)};
    for (size_t i = 0; i < count && ranges_count > 0; i++) {
        const struct tarn_holder *other = &model->holders[candidates[i].holder];
        uint64_t bytes = take_range(ranges, &ranges_count, other->offset,
                                    other->offset + tarn_holder_reserved(other));
        if (bytes > 0)
            neighbours[found++] =
                (struct tarn_neighbour){candidates[i].holder, bytes, candidates[i].is_other};
    }
    neighbours[found].holder = TARN_NONE;
    tarn_memory_finish(&scratch);
    return neighbours;
}

/* ---- Ways ---- */

/* A launch that was reached, going backward. */
struct reached {
    uint32_t launch;
    bool previous;     /* of the previous iteration */
    enum tarn_how how; /* it comes before `by` */
    uint32_t by;       /* a launch of the stream of `next`, not after it */
    size_t next;       /* in the queue; SIZE_MAX: this is the goal */
};

struct search {
    const struct tarn_model *model;
    struct reached *queue;
    size_t count;
    uint32_t *seen[2]; /* of this and the previous iteration: stream -> places gone along */
    uint32_t from;
    bool from_previous;
};

/* Does it come after the launch that is looked for, or is it that? */
static bool is_there(const struct search *search, const struct reached *reached)
{
    const struct tarn_launch *from = &search->model->launches[search->from];
    const struct tarn_launch *launch = &search->model->launches[reached->launch];
    if (launch->stream != from->stream || reached->previous != search->from_previous) return false;
    return launch->place > from->place ||
           (launch->place == from->place && reached->next != SIZE_MAX);
}

static bool push(struct search *search, struct reached reached)
{
    search->queue[search->count++] = reached;
    return is_there(search, &reached);
}

/* Goes back along a stream from the launch reached; true: the start is reached. */
static bool go_back(struct search *search, size_t q)
{
    const struct tarn_model *model = search->model;
    struct reached at = search->queue[q];
    const struct tarn_launch *launch = &model->launches[at.launch];
    tarn_stream s = launch->stream;
    uint32_t *seen = &search->seen[at.previous][s], stop = *seen;
    if (launch->place + 1 <= stop) return false;
    *seen = launch->place + 1;
    for (uint32_t place = launch->place + 1; place-- > stop;) {
        uint32_t v = tarn_model_at(model, s, place);
        for (uint32_t i = model->waits.begin[v]; i < model->waits.begin[v + 1]; i++)
            if (push(search,
                     (struct reached){model->waits.ids[i], at.previous, TARN_BY_WAIT, v, q}))
                return true;
        if (at.previous) continue;
        const struct tarn_lists *previous = &model->previous_waits;
        for (uint32_t i = previous->begin[v]; i < previous->begin[v + 1]; i++)
            if (push(search, (struct reached){previous->ids[i], true, TARN_BY_BOUNDARY, v, q}))
                return true;
    }
    if (at.previous || stop > 0) return false;
    uint32_t last = tarn_model_at(model, s, tarn_model_length(model, s) - 1);
    return push(search, (struct reached){last, true, TARN_BY_NEXT, tarn_model_at(model, s, 0), q});
}

static uint32_t write_step(struct tarn_way_step *steps, uint32_t count, uint32_t launch,
                           enum tarn_how how)
{
    if (count > 0 && how == TARN_BY_ORDER && steps[count - 1].launch == launch) return count;
    steps[count] = (struct tarn_way_step){launch, how};
    return count + 1;
}

static void write_way(struct tarn_way *way, struct tarn_memory *memory, const struct search *search)
{
    size_t length = 3;
    for (size_t q = search->count - 1; q != SIZE_MAX; q = search->queue[q].next) length += 2;
    struct tarn_way_step *steps = tarn_memory_take(memory, length, sizeof *steps);
    if (!steps) return;
    uint32_t count = write_step(steps, 0, search->from, TARN_STARTS);
    for (size_t q = search->count - 1; q != SIZE_MAX; q = search->queue[q].next) {
        const struct reached *reached = &search->queue[q];
        count = write_step(steps, count, reached->launch, TARN_BY_ORDER);
        if (reached->next != SIZE_MAX) count = write_step(steps, count, reached->by, reached->how);
    }
    *way = (struct tarn_way){steps, count};
}

/* Finds a way with the fewest waits from the end of launch `from` (of the previous iteration if
 * asked for) to the start of `to`. Cost: O(launches + waits). */
static struct tarn_way find_way(struct tarn_memory *memory, const struct tarn_model *model,
                                uint32_t from, bool from_previous, uint32_t to)
{
    static const struct tarn_way_step none = {TARN_NONE, TARN_STARTS};
    struct tarn_memory scratch = {NULL, false};
    struct tarn_way way = {NULL, 0};
    struct search search = {.model = model, .from = from, .from_previous = from_previous};
    size_t room = 2 * (size_t)model->waits.begin[model->launches_count] +
                  model->previous_waits.begin[model->launches_count] + model->streams_count + 1;
    search.queue = tarn_memory_take(&scratch, room, sizeof *search.queue);
    for (int i = 0; i < 2; i++)
        search.seen[i] = tarn_memory_take(&scratch, model->streams_count, sizeof *search.seen[i]);
    if (!scratch.is_exhausted) {
        bool found = push(&search, (struct reached){to, false, TARN_STARTS, TARN_NONE, SIZE_MAX});
        for (size_t q = 0; !found && q < search.count; q++) found = go_back(&search, q);
        way.steps = &none;
        if (found) {
            way.steps = NULL;
            write_way(&way, memory, &search);
        }
    }
    tarn_memory_finish(&scratch);
    return way;
}

/* Are these a workspace, and an output of the same launch that begins when the workspace has
 * ended? */
static bool is_halved(const struct tarn_holder *earlier, const struct tarn_holder *later)
{
    return earlier->half == TARN_FIRST_HALF && later->half == TARN_SECOND_HALF &&
           earlier->writer == later->writer;
}

static struct tarn_way way_inside(struct tarn_memory *memory, uint32_t launch)
{
    struct tarn_way_step *steps = tarn_memory_take(memory, 1, sizeof *steps);
    if (steps) *steps = (struct tarn_way_step){launch, TARN_STARTS};
    return (struct tarn_way){steps, 1};
}

struct tarn_way *tarn_ways(struct tarn_memory *memory, const struct tarn_model *model,
                           uint32_t earlier, bool of_previous, uint32_t later, size_t *count)
{
    const struct tarn_holder *holder = &model->holders[earlier];
    struct tarn_way *ways = tarn_memory_take(memory, holder->touches_count, sizeof *ways);
    *count = 0;
    for (uint32_t i = 0; ways && i < holder->touches_count; i++) {
        uint32_t v = holder->touches[i].launch;
        bool is_last = true;
        for (uint32_t k = i + 1; k < holder->touches_count && is_last; k++)
            is_last =
                model->launches[holder->touches[k].launch].stream != model->launches[v].stream;
        if (!is_last) continue;
        struct tarn_way way =
            !of_previous && is_halved(&model->holders[earlier], &model->holders[later])
                ? way_inside(memory, v)
                : find_way(memory, model, v, of_previous, model->holders[later].writer);
        if (!way.steps) return NULL;
        ways[(*count)++] = way;
    }
    return ways;
}

/* ---- Meanwhile ---- */

/* from[s]: how many launches of stream s come before `launch` in every legal order. */
static bool find_past(const struct tarn_model *model, uint32_t launch, uint32_t *from)
{
    struct tarn_memory memory = {NULL, false};
    bool *is_past = tarn_memory_take(&memory, model->launches_count, sizeof *is_past);
    for (tarn_stream s = 0; s < model->streams_count; s++) from[s] = 0;
    if (!is_past) return false;
    is_past[launch] = true;
    for (uint32_t v = launch + 1; v-- > 0;) {
        const struct tarn_launch *at = &model->launches[v];
        if (v != launch && at->place < from[at->stream]) is_past[v] = true;
        if (!is_past[v]) continue;
        uint32_t before = v == launch ? at->place : at->place + 1;
        if (before > from[at->stream]) from[at->stream] = before;
        for (uint32_t i = model->waits.begin[v]; i < model->waits.begin[v + 1]; i++)
            is_past[model->waits.ids[i]] = true;
    }
    tarn_memory_finish(&memory);
    return true;
}

bool tarn_meanwhile(const struct tarn_model *model, uint32_t holder, uint32_t *from, uint32_t *to)
{
    struct tarn_memory memory = {NULL, false};
    uint32_t *first = tarn_memory_take(&memory, model->holders_count, sizeof *first);
    bool is_complete = first && find_past(model, model->holders[holder].writer, from);
    for (tarn_stream s = 0; is_complete && s < model->streams_count; s++) {
        is_complete = tarn_model_first(model, s, first) == TARN_OK;
        to[s] = first[holder];
    }
    tarn_memory_finish(&memory);
    return is_complete;
}
