/* The modelled clock of a graph with moves, and the arcs of the moves by this clock. */
#ifndef TARN_PLANNER_TRANSFORM_OFFLOAD_CLOCK_H
#define TARN_PLANNER_TRANSFORM_OFFLOAD_CLOCK_H

#include <assert.h>
#include <string.h>

#include "offload.h"

/* One set of gaps: its members, their arcs, and the times that give the arcs. It has room for all
 * gaps; nothing is allocated later. */
struct tarn_offload_trial {
    struct tarn_offload_model *model;
    bool *in;               /* by gap */
    uint32_t *release;      /* by gap, like all arrays up to `after`: a place, or count: none */
    uint32_t *trigger;      /* a place, or TARN_NONE: before all */
    int64_t *out_end;       /* when its copy to the other memory ends */
    int64_t *free_at;       /* when a release may begin: the copy, and users of other streams, have
                               ended */
    int64_t *into_start;    /* when its copy back has to begin */
    uint32_t *rank, *after; /* of its copy in the stream of outs, see struct tarn_offload_arcs */
    int64_t *profile;       /* by slot */
    int64_t *start, *end;   /* the clock with moves, by place */
    int64_t *delay;         /* by place: the delay that stretches the clock */
    uint64_t work;          /* so far, in about nanoseconds */
    /* room */
    int64_t *starts, *ends; /* of the main stream's ops */
    uint32_t *first_of;     /* by copy: the first gap of the trial */
    int64_t *written;       /* by copy */
    uint32_t *todo, *heap;
    uint64_t *key;                                                   /* by place in todo */
    uint32_t *release_next, *release_head, *right_next, *right_head; /* lists of gaps by place */
    uint32_t *outs;                                                  /* gaps by rank */
    int64_t *copy_end, *into_end;                                    /* by copy; by gap */
    int64_t *stream_end;
};

enum tarn_status tarn_offload_trial_init(struct tarn_offload_trial *trial,
                                         struct tarn_offload_model *model);
/* The gaps and arcs of a choice become those of the trial, instead of all others. */
void tarn_offload_trial_take(struct tarn_offload_trial *trial,
                             const struct tarn_offload_choice *choice);

/* Sorts items; equal ones keep their order. `room`: for as many items. comes_before: strictly.
 * Cost: O(n log n) comparisons. */
static inline void tarn_offload_sort(uint32_t *items, uint32_t *room, uint32_t count,
                                     bool (*comes_before)(const void *context, uint32_t a,
                                                          uint32_t b),
                                     const void *context)
{
    uint32_t *from = items, *to = room;
    for (uint32_t width = 1; width < count; width *= 2) {
        for (uint32_t begin = 0; begin < count; begin += 2 * width) {
            uint32_t middle = begin + width < count ? begin + width : count;
            uint32_t end = middle + width < count ? middle + width : count;
            for (uint32_t a = begin, b = middle, i = begin; i < end; i++) {
                bool is_first =
                    b >= end || (a < middle && !comes_before(context, from[b], from[a]));
                to[i] = from[is_first ? a++ : b++];
            }
        }
        uint32_t *swap = from;
        from = to;
        to = swap;
    }
    if (from != items) memcpy(items, from, count * sizeof *items);
}

/* Computes when ops run if nothing moves, each `delay` (NULL: 0) later than it could. TARN_SYSTEM:
 * no memory. */
enum tarn_status tarn_offload_clock(const struct tarn_offload_model *model, const int64_t *delay,
                                    int64_t *start, int64_t *end, uint64_t *time_ns);

/* Places copies just in time by this clock: each copy out as soon as its stream is free, each copy
 * back as late as the next use allows. No op waits. */
void tarn_offload_place(struct tarn_offload_trial *trial, const int64_t *start, const int64_t *end);

/* When a release of the gap may begin whose copy to the other memory ends then, by the ends of the
 * ops: users of other streams have to end, too. */
int64_t tarn_offload_freed_at(const struct tarn_offload_model *model, uint32_t g, int64_t copy_end,
                              const int64_t *end);

/* When the first op that waits for the copy back begins, by the starts of the ops. */
int64_t tarn_offload_needed_at(const struct tarn_offload_model *model, uint32_t g,
                               const int64_t *start);

/* Is the gap in the trial, with its bytes away at some time? */
static inline bool tarn_offload_frees(const struct tarn_offload_trial *trial, uint32_t g)
{
    return trial->in[g] && trial->trigger[g] != TARN_NONE && trial->release[g] <= trial->trigger[g];
}

/* Fills the profile, and returns its highest value. */
int64_t tarn_offload_profile(struct tarn_offload_trial *trial);

/* Makes releases earlier and triggers later in slots above the budget: ops or copies then have to
 * wait. Returns a slot that stays above the budget; SIZE_MAX: none. The profile describes the
 * result.
 */
size_t tarn_offload_force(struct tarn_offload_trial *trial, int64_t budget, const int64_t *start,
                          const int64_t *end);

/* Tightens arcs to what the order of the two copy streams implies anyway, and removes gaps in which
 * nothing is freed. */
void tarn_offload_tidy(struct tarn_offload_trial *trial);

/* Fills the trial's clock with all copies and waits; pre: it is tidy. Returns the makespan. */
int64_t tarn_offload_simulate(struct tarn_offload_trial *trial);

/* The index, among the main stream's ops, of the first op whose place is at or after p (`behind`:
 * after p).
 */
static inline uint32_t tarn_offload_main_from(const struct tarn_offload_model *model, uint32_t p,
                                              bool behind)
{
    assert(p <= model->count);
    return model->main_next[p + behind];
}

#endif
