/* Which arc would break an antichain? With an extra arc u -> w, members that are done with once u
 * has ended precede members that are made from w on:
 *
 *     stream a   ──── last touch of m ──── u            need[m][a]:  earliest u that will do
 *                                           \
 *     stream c                               w ──── b   reach[b][c]: latest w that will do
 *
 * Nothing else among the members gets an order, so the antichain loses the lighter side of the two:
 * gain = min(bytes of m with need <= u, bytes of b with reach >= w). For a given w the best u is
 * the latest that time allows: more members are done with. Two of them are looked at, the latest
 * one that costs no time and the latest one within the limit, for every w at which the bytes behind
 * it change. Time is looked up: end of u + wait + tail of w. Source: DESIGN.md, section 3
 * (coupling). Cost: see the header. */
#include "couple_candidates.h"

#include <stdlib.h>
#include <string.h>

/* Bytes by place in a stream, one list per stream; cumulated. */
struct weight_at {
    uint32_t position;
    uint64_t bytes;
};

struct finder {
    const struct tarn_graph *graph;
    const struct tarn_clocks *clocks;
    const struct tarn_pace *pace;
    const struct tarn_candidate_limits *limits;
    struct tarn_candidates *candidates;
    uint32_t *members;
    uint32_t members_count;
    struct weight_at *need;  /* [stream][member]: ascending; bytes that need no later u */
    struct weight_at *reach; /* [stream][member]: descending; bytes that need no earlier w */
};

/* ---- The sides of an arc ---- */

/* The earliest position in stream a at which an op has every toucher of m behind it. */
static uint32_t need_of(const struct finder *finder, uint32_t m, uint32_t a)
{
    const struct tarn_storage *storage = &finder->graph->storages[m];
    uint32_t need = storage->pinned ? finder->graph->streams[a].ops_count : 0;
    for (uint32_t k = 0; k < storage->touchers_count; k++) {
        const struct tarn_graph_op *op = &finder->graph->ops[storage->touchers[k]];
        uint32_t position = op->stream == a ? op->position
                                            : tarn_clocks_reach(finder->clocks, finder->graph,
                                                                storage->touchers[k], a);
        if (position > need) need = position;
    }
    return need;
}

/* The latest position in stream c of an op that is, or happens before, op v; TARN_NONE: none. */
static uint32_t reach_of(const struct finder *finder, uint32_t v, uint32_t c)
{
    const struct tarn_graph_stream *stream = &finder->graph->streams[c];
    if (finder->graph->ops[v].stream == c) return finder->graph->ops[v].position;
    uint32_t low = 0, high = stream->ops_count; /* ops below `low` do, from `high` on do not */
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (tarn_clocks_before(finder->clocks, finder->graph, stream->ops[middle], v))
            low = middle + 1;
        else
            high = middle;
    }
    return low > 0 ? low - 1 : TARN_NONE;
}

static int compare_up(const void *left, const void *right)
{
    const struct weight_at *a = left, *b = right;
    return a->position < b->position ? -1 : a->position > b->position;
}

static int compare_down(const void *left, const void *right) { return compare_up(right, left); }

static void cumulate(struct weight_at *list, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++) list[i].bytes += list[i - 1].bytes;
}

/* Members made from the stream's very beginning on, whatever it is, go to its first op. */
static void fill_sides(const struct finder *finder, uint32_t s, const uint64_t *reserved)
{
    uint32_t count = finder->members_count;
    struct weight_at *need = finder->need + (size_t)s * count;
    struct weight_at *reach = finder->reach + (size_t)s * count;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t m = finder->members[i];
        uint32_t latest = reach_of(finder, finder->graph->storages[m].producer, s);
        need[i] = (struct weight_at){need_of(finder, m, s), reserved[m]};
        reach[i] = (struct weight_at){latest == TARN_NONE ? 0 : latest,
                                      latest == TARN_NONE ? 0 : reserved[m]};
    }
    qsort(need, count, sizeof *need, compare_up);
    qsort(reach, count, sizeof *reach, compare_down);
    cumulate(need, count);
    cumulate(reach, count);
}

/* Bytes done with once the op at this position of stream a has ended. */
static uint64_t done_by(const struct finder *finder, uint32_t a, uint32_t position)
{
    const struct weight_at *need = finder->need + (size_t)a * finder->members_count;
    uint32_t low = 0, high = finder->members_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (need[middle].position <= position)
            low = middle + 1;
        else
            high = middle;
    }
    return low > 0 ? need[low - 1].bytes : 0;
}

/* ---- Arcs ---- */

/* The launched op of stream s at this position or before it; TARN_NONE: none. */
static uint32_t launched_at(const struct tarn_graph *graph, uint32_t s, uint32_t position)
{
    for (uint32_t p = position + 1; p-- > 0;)
        if (!graph->ops[graph->streams[s].ops[p]].view) return graph->streams[s].ops[p];
    return TARN_NONE;
}

/* The latest launched op u of stream a that may end before w begins: no cycle, and a makespan
 * within the limit. TARN_NONE: none. */
static uint32_t latest_before(const struct finder *finder, uint32_t a, uint32_t w,
                              uint64_t makespan_ns)
{
    const struct tarn_graph_stream *stream = &finder->graph->streams[a];
    uint32_t low = 0, high = tarn_clocks_reach(finder->clocks, finder->graph, w, a);
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (tarn_pace_with(finder->pace, stream->ops[middle], w) <= makespan_ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low > 0 ? launched_at(finder->graph, a, low - 1) : TARN_NONE;
}

static uint64_t smaller(uint64_t a, uint64_t b) { return a < b ? a : b; }

/* More of what is wanted first, then less time, then more than is wanted. */
static bool is_better(const struct finder *finder, const struct tarn_candidate *a,
                      const struct tarn_candidate *b)
{
    uint64_t a_gain = smaller(a->gain, finder->limits->gain);
    uint64_t b_gain = smaller(b->gain, finder->limits->gain);
    if (a_gain != b_gain) return a_gain > b_gain;
    if (a->makespan_ns != b->makespan_ns) return a->makespan_ns < b->makespan_ns;
    return a->gain > b->gain;
}

/* Keeps a list of the best ones, best first. */
static void keep(const struct finder *finder, struct tarn_candidate *list, uint32_t *count,
                 uint32_t room, const struct tarn_candidate *candidate)
{
    uint32_t i = *count;
    if (i == room) {
        if (!is_better(finder, candidate, &list[room - 1])) return;
        i--;
    } else {
        ++*count;
    }
    for (; i > 0 && is_better(finder, candidate, &list[i - 1]); i--) list[i] = list[i - 1];
    list[i] = *candidate;
}

/* Each pair of streams sends its best few, for they are often much alike. */
enum { BY_PAIR = 3 };
struct pair_best {
    struct tarn_candidate list[BY_PAIR];
    uint32_t count;
};

static void look_at(const struct finder *finder, struct pair_best *best, uint32_t u, uint32_t w,
                    uint64_t behind)
{
    const struct tarn_graph *graph = finder->graph;
    if (u == TARN_NONE || tarn_clocks_before(finder->clocks, graph, u, w)) return;
    uint64_t done = done_by(finder, graph->ops[u].stream, graph->ops[u].position);
    struct tarn_candidate candidate = {
        {w, u}, smaller(done, behind), tarn_pace_with(finder->pace, u, w)};
    if (candidate.gain > 0) keep(finder, best->list, &best->count, BY_PAIR, &candidate);
}

/* Arcs from stream a to stream c. */
static void look_at_pair(const struct finder *finder, uint32_t a, uint32_t c)
{
    struct pair_best best = {.count = 0};
    const struct weight_at *reach = finder->reach + (size_t)c * finder->members_count;
    for (uint32_t i = 0; i < finder->members_count; i++) {
        bool is_last = i + 1 == finder->members_count || reach[i + 1].position != reach[i].position;
        uint32_t w = is_last ? launched_at(finder->graph, c, reach[i].position) : TARN_NONE;
        if (w == TARN_NONE) continue;
        uint32_t at_once = latest_before(finder, a, w, finder->pace->timeline.makespan_ns);
        uint32_t within = latest_before(finder, a, w, finder->limits->makespan_ns);
        look_at(finder, &best, at_once, w, reach[i].bytes);
        if (within != at_once) look_at(finder, &best, within, w, reach[i].bytes);
    }
    for (uint32_t i = 0; i < best.count; i++)
        keep(finder, finder->candidates->best, &finder->candidates->count, TARN_CANDIDATES_MAX,
             &best.list[i]);
}

/* ---- All of it ---- */

static bool finder_init(struct finder *finder, const struct tarn_coupled *coupled)
{
    const struct tarn_reuse *reuse = &coupled->reuse;
    finder->members = malloc(((size_t)reuse->count + 1) * sizeof *finder->members);
    if (!finder->members) return false;
    for (uint32_t a = 0; a < reuse->count; a++)
        if (tarn_antichain_has(coupled->antichain.threshold, reuse, a))
            finder->members[finder->members_count++] = a;
    size_t sides = (size_t)reuse->streams_count * finder->members_count + 1;
    finder->need = malloc(sides * sizeof *finder->need);
    finder->reach = malloc(sides * sizeof *finder->reach);
    return finder->need && finder->reach;
}

enum tarn_status tarn_candidates_find(struct tarn_candidates *candidates,
                                      const struct tarn_coupled *coupled,
                                      const struct tarn_pace *pace, const uint64_t *reserved,
                                      const struct tarn_candidate_limits *limits)
{
    struct finder finder = {.graph = &coupled->graph,
                            .clocks = &coupled->clocks,
                            .pace = pace,
                            .limits = limits,
                            .candidates = candidates};
    candidates->count = 0;
    bool ok = finder_init(&finder, coupled);
    uint32_t streams_count = coupled->graph.streams_count;
    for (uint32_t s = 0; ok && s < streams_count; s++) fill_sides(&finder, s, reserved);
    for (uint32_t a = 0; ok && a < streams_count; a++)
        for (uint32_t c = 0; c < streams_count; c++)
            if (a != c) look_at_pair(&finder, a, c);
    free(finder.members);
    free(finder.need);
    free(finder.reach);
    return ok ? TARN_OK : TARN_SYSTEM;
}
