/* Computes forward vector clocks. One row per stream is carried along and raised by each wait of a
 * step. A step that other steps wait for keeps a snapshot of its row until the last of them has
 * waited.
 * Cost: O(steps + waits * S) time, O(S * S + snapshots alive at once * S + steps) memory. */
#include "past.h"

#include <assert.h>
#include <string.h>

#include "streams/base/region.h"

static uint32_t *clock_of_now(const struct tarn_past *past)
{
    return past->clocks + (size_t)past->step->stream * past->program->streams_count;
}

static uint32_t *snapshot_row(const struct tarn_past *past, uint32_t row)
{
    return past->snapshots + (size_t)row * past->program->streams_count;
}

/* The node that a wait of an iteration is for; TARN_NONE: void, before the first iteration. */
static uint32_t awaited(const struct tarn_past *past, const struct tarn_program_wait *wait,
                        uint32_t iteration)
{
    if (wait->previous > iteration) return TARN_NONE;
    return (iteration - wait->previous) * past->program->steps_count +
           past->program->begin[wait->stream] + wait->place;
}

/* ---- Making ---- */

static void count_waiters(struct tarn_past *past)
{
    const struct tarn_program *program = past->program;
    for (uint32_t k = 0; k < program->waits_count; k++) {
        for (uint32_t iteration = 0; iteration < 2; iteration++) {
            uint32_t node = awaited(past, &program->waits[k], iteration);
            if (node != TARN_NONE) past->waiters_left[node]++;
        }
    }
}

enum tarn_status tarn_past_init(struct tarn_past *past, struct tarn_region *region,
                                const struct tarn_program *program)
{
    *past = (struct tarn_past){
        .program = program, .region = region, .free_snapshot = TARN_NONE, .node = TARN_NONE};
    size_t streams = program->streams_count, nodes = 2 * (size_t)program->steps_count;
    past->clocks = tarn_region_take(region, streams * streams, sizeof *past->clocks);
    past->snapshot_of = tarn_region_take(region, nodes, sizeof *past->snapshot_of);
    past->waiters_left = tarn_region_take(region, nodes, sizeof *past->waiters_left);
    if (!past->clocks || !past->snapshot_of || !past->waiters_left) return TARN_SYSTEM;
    count_waiters(past);
    return TARN_OK;
}

/* ---- Running ---- */

static void release_snapshot(struct tarn_past *past, uint32_t row)
{
    *snapshot_row(past, row) = past->free_snapshot;
    past->free_snapshot = row;
}

static void join(struct tarn_past *past, uint32_t node)
{
    uint32_t *clock = clock_of_now(past);
    assert(past->waiters_left[node] > 0); /* else its row belongs to another node by now */
    const uint32_t *other = snapshot_row(past, past->snapshot_of[node]);
    for (uint32_t s = 0; s < past->program->streams_count; s++)
        clock[s] = other[s] > clock[s] ? other[s] : clock[s];
    if (--past->waiters_left[node] == 0) release_snapshot(past, past->snapshot_of[node]);
}

void tarn_past_enter(struct tarn_past *past, uint32_t node)
{
    assert(node < 2 * past->program->steps_count);
    past->node = node;
    past->iteration = tarn_past_iteration(past, node);
    past->step = tarn_past_step(past, node);
    for (uint32_t k = past->step->waits_begin; k < past->step->waits_end; k++) {
        uint32_t other = awaited(past, &past->program->waits[k], past->iteration);
        if (other != TARN_NONE) join(past, other);
    }
}

/* TARN_NONE: no memory. */
static uint32_t new_snapshot(struct tarn_past *past)
{
    uint32_t row = past->free_snapshot;
    if (row != TARN_NONE) {
        past->free_snapshot = *snapshot_row(past, row);
        return row;
    }
    size_t row_size = past->program->streams_count * sizeof *past->snapshots;
    uint32_t *rows = tarn_region_grow(past->region, past->snapshots, &past->snapshots_room,
                                      (size_t)past->snapshots_count + 1, row_size);
    if (!rows) return TARN_NONE;
    past->snapshots = rows;
    return past->snapshots_count++;
}

enum tarn_status tarn_past_leave(struct tarn_past *past)
{
    uint32_t *clock = clock_of_now(past);
    clock[past->step->stream] = past->node + 1;
    if (past->waiters_left[past->node] == 0) return TARN_OK;
    uint32_t row = new_snapshot(past);
    if (row == TARN_NONE) return TARN_SYSTEM;
    past->snapshot_of[past->node] = row;
    memcpy(snapshot_row(past, row), clock, past->program->streams_count * sizeof *clock);
    return TARN_OK;
}
