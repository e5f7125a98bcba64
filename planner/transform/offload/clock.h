/* The modelled clock of a graph with moves, and where their arcs are by it. */
#ifndef TARN_PLANNER_TRANSFORM_OFFLOAD_CLOCK_H
#define TARN_PLANNER_TRANSFORM_OFFLOAD_CLOCK_H

#include "offload.h"

/* Of one set of gaps: who is in it, where its arcs are, and the times by which they are there. Room
 * for all gaps; nothing is taken later. */
struct tarn_offload_trial {
    struct tarn_offload_model *model;
    bool *in;               /* by gap */
    uint32_t *release;      /* by gap, as all up to `after`: a place, or count: none */
    uint32_t *trigger;      /* a place, or TARN_NONE: before all */
    int64_t *out_end;       /* when its copy to the other memory ends */
    int64_t *into_start;    /* when its copy back has to begin */
    uint32_t *rank, *after; /* of its copy in the stream of outs, see struct tarn_offload_arcs */
    int64_t *profile;       /* by slot */
    int64_t *start, *end;   /* the clock with moves, by place */
    int64_t *delay;         /* by place: what the clock is stretched by */
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

/* When ops run if nothing moves, each `delay` (NULL: nothing) behind the time at which it could.
 * TARN_SYSTEM: no memory. */
enum tarn_status tarn_offload_clock(const struct tarn_offload_model *model, const int64_t *delay,
                                    int64_t *start, int64_t *end, uint64_t *time_ns);

/* Just in time by this clock: each copy as soon as its stream is free, and back as late as the next
 * use allows. Nobody waits. */
void tarn_offload_place(struct tarn_offload_trial *trial, const int64_t *start, const int64_t *end);

/* Is the gap in the trial, with its bytes away at some time? */
static inline bool tarn_offload_frees(const struct tarn_offload_trial *trial, uint32_t g)
{
    return trial->in[g] && trial->trigger[g] != TARN_NONE && trial->release[g] <= trial->trigger[g];
}

/* Fills the profile, and returns its highest value. */
int64_t tarn_offload_profile(struct tarn_offload_trial *trial);

/* Earlier releases and later triggers where more than the budget is there: ops or copies then have
 * to wait. Returns the slot that stays above it; SIZE_MAX: none. The profile is that of the result.
 */
size_t tarn_offload_force(struct tarn_offload_trial *trial, int64_t budget, const int64_t *start,
                          const int64_t *end);

/* What the order of the two copy streams implies anyway; gaps in which nothing is freed go. */
void tarn_offload_tidy(struct tarn_offload_trial *trial);

/* Fills the trial's clock with all copies and waits; pre: it is tidy. Returns the makespan. */
int64_t tarn_offload_simulate(struct tarn_offload_trial *trial);

/* The first of the main stream's ops, counted, whose place is at or behind p (`behind`: behind p).
 */
static inline uint32_t tarn_offload_main_from(const struct tarn_offload_model *model, uint32_t p,
                                              bool behind)
{
    uint32_t low = 0, high = model->main_count;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (model->main_ops[middle] < p || (behind && model->main_ops[middle] == p))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

#endif
