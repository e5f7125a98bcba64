/* Conflicts, streamed. Sorting the storages by (stream, position) turns "a does not precede b" into
 * prefixes of slots, so that only "b does not precede a" is left to compare: one contiguous row of
 * `first` against one number, without a branch.
 * Source: DESIGN.md, section 3 (Reuse, Placement).
 * Cost: O(T S + V) to make; a list costs its length, plus T/64, plus what shares a run with it. */
#include "conflict.h"

#include <stdlib.h>
#include <string.h>

enum { RUN = 64 };

/* ---- Making ---- */

/* Counting sort by position, stream by stream: afterwards slot_at[.. position] is where the slots
 * of that position begin. */
static void number_slots(struct tarn_conflicts *conflicts, const struct tarn_graph *graph)
{
    const struct tarn_reuse *reuse = conflicts->reuse;
    uint32_t *slot_at = conflicts->slot_at, slots = 0, at = 0;
    for (uint32_t s = 0; s < reuse->streams_count; s++) {
        conflicts->ops_begin[s] = at;
        at += graph->streams[s].ops_count + 1;
    }
    for (uint32_t a = 0; a < reuse->count; a++)
        slot_at[conflicts->ops_begin[reuse->stream[a]] + reuse->position[a]]++;
    for (uint32_t s = 0; s < reuse->streams_count; s++) {
        conflicts->begin[s] = slots;
        for (uint32_t p = 0; p <= graph->streams[s].ops_count; p++) {
            slots += slot_at[conflicts->ops_begin[s] + p];
            slot_at[conflicts->ops_begin[s] + p] = slots;
        }
    }
    conflicts->begin[reuse->streams_count] = slots;
    for (uint32_t a = reuse->count; a-- > 0;)
        conflicts->slot_of[a] =
            --slot_at[conflicts->ops_begin[reuse->stream[a]] + reuse->position[a]];
}

static void fill_rows(struct tarn_conflicts *conflicts)
{
    const struct tarn_reuse *reuse = conflicts->reuse;
    for (uint32_t s = 0; s < reuse->streams_count; s++) {
        uint32_t *row = conflicts->row + (size_t)s * reuse->count;
        uint32_t *highest = conflicts->highest + (size_t)s * conflicts->runs_count;
        for (uint32_t a = 0; a < reuse->count; a++)
            row[conflicts->slot_of[a]] = reuse->first[(size_t)s * reuse->count + a];
        for (uint32_t i = 0; i < reuse->count; i++)
            if (row[i] > highest[i / RUN]) highest[i / RUN] = row[i];
    }
}

enum tarn_status tarn_conflicts_init(struct tarn_conflicts *conflicts,
                                     const struct tarn_reuse *reuse, const struct tarn_graph *graph)
{
    size_t streams = reuse->streams_count, count = reuse->count;
    memset(conflicts, 0, sizeof *conflicts);
    conflicts->reuse = reuse;
    conflicts->runs_count = reuse->count / RUN + 1;
    conflicts->slot_of = malloc((count + 1) * sizeof(uint32_t));
    conflicts->begin = malloc((streams + 1) * sizeof(uint32_t));
    conflicts->ops_begin = malloc((streams + 1) * sizeof(uint32_t));
    conflicts->slot_at = calloc(graph->ops_count + streams + 1, sizeof(uint32_t));
    conflicts->row = malloc((streams * count + 1) * sizeof(uint32_t));
    conflicts->highest = calloc(streams * conflicts->runs_count + 1, sizeof(uint32_t));
    if (!conflicts->slot_of || !conflicts->begin || !conflicts->ops_begin || !conflicts->slot_at ||
        !conflicts->row || !conflicts->highest) {
        tarn_conflicts_finish(conflicts);
        return TARN_SYSTEM;
    }
    number_slots(conflicts, graph);
    fill_rows(conflicts);
    return TARN_OK;
}

void tarn_conflicts_finish(struct tarn_conflicts *conflicts)
{
    free(conflicts->slot_of);
    free(conflicts->begin);
    free(conflicts->ops_begin);
    free(conflicts->slot_at);
    free(conflicts->row);
    free(conflicts->highest);
    memset(conflicts, 0, sizeof *conflicts);
}

/* ---- Asking ---- */

/* Slots of stream s below this one hold what a storage with that `first` does not precede. */
static uint32_t prefix_end(const struct tarn_conflicts *conflicts, uint32_t s, uint32_t first)
{
    return conflicts->slot_at[conflicts->ops_begin[s] + first];
}

/* Appends the slots of [begin, end) whose first is beyond the position. */
static uint32_t append(const uint32_t *row, uint32_t begin, uint32_t end, uint32_t position,
                       uint32_t *slots, uint32_t count)
{
    for (uint32_t i = begin; i < end; i++) {
        slots[count] = i; /* stays only if the count moves on: no branch to mispredict */
        count += row[i] > position;
    }
    return count;
}

uint32_t tarn_conflicts_list(const struct tarn_conflicts *conflicts, uint32_t storage,
                             uint32_t *slots)
{
    const struct tarn_reuse *reuse = conflicts->reuse;
    uint32_t t = reuse->stream[storage], position = reuse->position[storage], count = 0;
    const uint32_t *row = conflicts->row + (size_t)t * reuse->count;
    const uint32_t *highest = conflicts->highest + (size_t)t * conflicts->runs_count;
    for (uint32_t s = 0; s < reuse->streams_count; s++) {
        uint32_t first = reuse->first[(size_t)s * reuse->count + storage];
        uint32_t end = prefix_end(conflicts, s, first), next;
        for (uint32_t begin = conflicts->begin[s]; begin < end; begin = next) {
            next = (begin / RUN + 1) * RUN;
            if (highest[begin / RUN] > position)
                count = append(row, begin, next < end ? next : end, position, slots, count);
        }
    }
    return count;
}

/* Takes off, for the storages of stream t, those that precede them. */
static void subtract_preceding(const struct tarn_conflicts *conflicts, uint32_t t,
                               uint32_t *released, uint32_t length, uint32_t *degree)
{
    const struct tarn_reuse *reuse = conflicts->reuse;
    memset(released, 0, ((size_t)length + 1) * sizeof *released);
    for (uint32_t a = 0; a < reuse->count; a++)
        released[reuse->first[(size_t)t * reuse->count + a]]++;
    for (uint32_t p = 0; p < length; p++) released[p + 1] += released[p];
    for (uint32_t a = 0; a < reuse->count; a++)
        if (reuse->stream[a] == t) degree[a] -= released[reuse->position[a]];
}

enum tarn_status tarn_conflicts_count(const struct tarn_conflicts *conflicts,
                                      const struct tarn_graph *graph, uint32_t *degree)
{
    const struct tarn_reuse *reuse = conflicts->reuse;
    uint32_t *released = malloc(((size_t)graph->ops_count + 1) * sizeof *released);
    if (!released) return TARN_SYSTEM;
    for (uint32_t a = 0; a < reuse->count; a++) {
        degree[a] = 0;
        for (uint32_t s = 0; s < reuse->streams_count; s++) {
            uint32_t first = reuse->first[(size_t)s * reuse->count + a];
            degree[a] += prefix_end(conflicts, s, first) - conflicts->begin[s];
        }
        degree[a]--; /* itself */
    }
    for (uint32_t t = 0; t < reuse->streams_count; t++)
        subtract_preceding(conflicts, t, released, graph->streams[t].ops_count, degree);
    free(released);
    return TARN_OK;
}
