/* Forward vector clocks of two iterations along one legal order: which nodes come before each step.
 * They are independent of the graph's clocks (graph/clocks.h), which the planner trusts: the
 * graph's clocks give the ops that come after an op, these give the steps that a step's waits
 * guarantee to be over. */
#ifndef TARN_STREAMS_VERIFY_PAST_H
#define TARN_STREAMS_VERIFY_PAST_H

#include "streams/plan/program.h"

struct tarn_region;

/* Clock entries are nodes + 1 (see tarn_program_linearize): they grow along a stream, so a node
 * comes before a step if the step's entry for the node's stream is above the node. */
struct tarn_past {
    const struct tarn_program *program;
    uint32_t *clocks;           /* [stream][stream]: clock of the next step of a stream */
    uint32_t *snapshots;        /* rows of streams_count */
    uint32_t *snapshot_of;      /* node -> row, while a step still has to wait for the node */
    uint32_t *waiters_left;     /* node -> number of steps that have not waited yet */
    struct tarn_region *region; /* of all arrays */
    size_t snapshots_room;      /* rows */
    uint32_t snapshots_count;
    uint32_t free_snapshot; /* a free row's first entry names the next free row */
    uint32_t node;          /* the step that runs now: */
    uint32_t iteration;
    const struct tarn_program_step *step;
};

/* The region also grows while nodes run. TARN_SYSTEM: no memory, here and below. */
enum tarn_status tarn_past_init(struct tarn_past *past, struct tarn_region *region,
                                const struct tarn_program *program);

/* Runs a node: between the two calls tarn_past_has speaks of it. All nodes of two iterations must
 * come by in one legal order. */
void tarn_past_enter(struct tarn_past *past, uint32_t node);
enum tarn_status tarn_past_leave(struct tarn_past *past);

/* Must that node of that stream have finished before the present node starts, in every legal
 * order? */
static inline bool tarn_past_has(const struct tarn_past *past, uint32_t stream, uint32_t node)
{
    return past->clocks[(size_t)past->step->stream * past->program->streams_count + stream] > node;
}

static inline uint32_t tarn_past_iteration(const struct tarn_past *past, uint32_t node)
{
    return node >= past->program->steps_count;
}

static inline const struct tarn_program_step *tarn_past_step(const struct tarn_past *past,
                                                             uint32_t node)
{
    uint32_t n = past->program->steps_count;
    return &past->program->steps[node < n ? node : node - n];
}

#endif
