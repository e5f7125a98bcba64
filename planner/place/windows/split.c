/* Finds streams that are better placed by themselves. If a stream t seldom waits for a stream s, t
 * cannot reuse the bytes of s's storages: they are in conflict with all storages that t makes
 * later. Then nearly every storage crosses all cuts, although each stream by itself could be cut
 * well. far[s][t] counts the storages of s that only stream t keeps from being released near their
 * producer. As long as these are many, the stream without which they are fewest is placed first, by
 * itself. Source: docs/how-it-works.md, "Windows". Cost: O(T S + S^3 phases). */
#include "window.h"

#include <assert.h>

#include "streams/base/region.h"

/* With more than STREAMS_MAX streams, or in a part, no stream goes first. The search stops when at
 * most one storage in ENOUGH is kept far. */
enum { STREAMS_MAX = 64, ENOUGH = 8 };

struct split {
    const struct tarn_problem *problem;
    uint32_t streams_count, distance;
    uint32_t *produced; /* rank in the global order -> storages produced before it */
    uint32_t *before;   /* [conflicts->ops_begin[s] + position]: storages produced before the op
                           that comes before it in its stream */
    uint32_t *far;      /* [s * streams_count + t], see above */
    bool *gone;         /* stream -> whether it has a phase of its own */
};

static void count_produced(const struct split *split)
{
    const struct tarn_graph *graph = split->problem->graph;
    assert(graph); /* streams are split of whole problems only */
    const struct tarn_conflicts *conflicts = &split->problem->conflicts;
    const struct tarn_reuse *reuse = &conflicts->reuse;
    for (uint32_t a = 0; a < reuse->count; a++)
        split->produced[tarn_problem_begin(split->problem, a) + 1]++;
    for (uint32_t i = 0; i < graph->ops_count; i++) split->produced[i + 1] += split->produced[i];
    for (uint32_t s = 0; s < split->streams_count; s++)
        for (uint32_t p = 0; p < graph->streams[s].ops_count; p++)
            split->before[conflicts->ops_begin[s] + p + 1] =
                split->produced[graph->rank[graph->streams[s].ops[p]]];
}

/* Writes the number of produced storages up to which a storage is near its producer; it is never
 * far if its own stream keeps it. */
static void find_near(const struct split *split, uint32_t *near)
{
    const struct tarn_conflicts *conflicts = &split->problem->conflicts;
    const struct tarn_reuse *reuse = &conflicts->reuse;
    for (uint32_t a = 0; a < reuse->count; a++) {
        uint32_t own = reuse->stream[a];
        const uint32_t *before = split->before + conflicts->ops_begin[own];
        near[a] = before[reuse->position[a] + 1] + split->distance;
        if (before[reuse->first[(size_t)own * reuse->count + a]] > near[a]) near[a] = UINT32_MAX;
    }
}

static void count_far(const struct split *split, const uint32_t *near)
{
    const struct tarn_conflicts *conflicts = &split->problem->conflicts;
    const struct tarn_reuse *reuse = &conflicts->reuse;
    for (uint32_t t = 0; t < split->streams_count; t++) {
        const uint32_t *first = reuse->first + (size_t)t * reuse->count;
        const uint32_t *before = split->before + conflicts->ops_begin[t];
        for (uint32_t a = 0; a < reuse->count; a++)
            split->far[reuse->stream[a] * split->streams_count + t] += before[first[a]] > near[a];
    }
}

/* How many storages the streams that are left keep far, when stream `without` goes as well. */
static uint64_t count_kept(const struct split *split, uint32_t without)
{
    uint64_t kept = 0;
    for (uint32_t s = 0; s < split->streams_count; s++) {
        uint32_t most = 0;
        if (split->gone[s] || s == without) continue;
        for (uint32_t t = 0; t < split->streams_count; t++) {
            uint32_t far = split->far[s * split->streams_count + t];
            if (t != s && t != without && !split->gone[t] && far > most) most = far;
        }
        kept += most;
    }
    return kept;
}

/* How many of its storages other streams keep far: the more, the less is lost by a phase of its
 * own. */
static uint64_t count_outward(const struct split *split, uint32_t s)
{
    uint64_t sum = 0;
    for (uint32_t t = 0; t < split->streams_count; t++)
        if (!split->gone[t]) sum += split->far[s * split->streams_count + t];
    return sum;
}

/* The stream without which the fewest storages are kept far; TARN_NONE if that is no fewer than
 * now. */
static uint32_t choose(const struct split *split, uint64_t kept)
{
    uint32_t best = TARN_NONE;
    for (uint32_t s = 0; s < split->streams_count; s++) {
        if (split->gone[s]) continue;
        uint64_t left = count_kept(split, s);
        if (left > kept || (left == kept && best == TARN_NONE)) continue;
        if (left < kept || count_outward(split, s) > count_outward(split, best)) best = s;
        kept = left;
    }
    return best;
}

static void give_phases(struct split *split, uint32_t *phase, uint32_t *phases_count)
{
    uint32_t enough = split->problem->conflicts.reuse.count / ENOUGH;
    for (uint64_t kept; (kept = count_kept(split, TARN_NONE)) > enough;) {
        uint32_t stream = choose(split, kept);
        if (stream == TARN_NONE) break;
        split->gone[stream] = true;
        assert(*phases_count < split->streams_count);
        phase[stream] = (*phases_count)++;
    }
    for (uint32_t s = 0; s < split->streams_count; s++)
        if (!split->gone[s]) phase[s] = *phases_count;
    ++*phases_count;
}

enum tarn_status tarn_split_streams(const struct tarn_problem *problem, uint32_t far,
                                    uint32_t *phase, uint32_t *phases_count)
{
    const struct tarn_reuse *reuse = &problem->conflicts.reuse;
    size_t ops_count = problem->ops_count, streams_count = reuse->streams_count;
    struct split split = {problem, reuse->streams_count, far, .produced = NULL};
    struct tarn_region region = {.chunks = NULL};
    *phases_count = 0;
    for (size_t s = 0; s < streams_count; s++) phase[s] = 0;
    if (streams_count > STREAMS_MAX || !problem->graph) {
        *phases_count = 1;
        return TARN_OK;
    }
    uint32_t *near = tarn_region_take(&region, reuse->count, sizeof *near);
    split.produced = tarn_region_take(&region, ops_count + 2, sizeof *split.produced);
    split.before = tarn_region_take(&region, ops_count + streams_count + 1, sizeof *split.before);
    split.far = tarn_region_take(&region, streams_count * streams_count, sizeof *split.far);
    split.gone = tarn_region_take(&region, streams_count, sizeof *split.gone);
    bool ok = !region.is_exhausted;
    if (ok) {
        count_produced(&split);
        find_near(&split, near);
        count_far(&split, near);
        give_phases(&split, phase, phases_count);
    }
    tarn_region_finish(&region);
    return ok ? TARN_OK : TARN_SYSTEM;
}
