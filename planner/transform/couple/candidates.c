/* Finds arcs that would break an antichain. With an extra arc u -> w, every member whose users all
 * lie up to u, or before w already, precedes every member that is made at w or later:
 *
 *     stream a   ──── touches m ──── u                 m: all its users are up to u or before w
 *                                      \
 *     stream c   ──── touches m ────────  w ──── b     b: made by w or after it
 *
 * No other pair of members is sure to get an order, so the antichain loses the lighter of the two
 * sides, which is the reported gain. For a given w the best u is the latest one that time allows,
 * since more members have ended by then. Two values of u are looked at: the latest one that costs
 * no time, and the latest one within the limit. They are looked at for places w at which the bytes
 * made later change. Then w moves forward as far as that u allows, which orders even more members.
 * Time is looked up: end of u + wait + tail of w. Source: docs/how-it-works.md, "Transforms". Cost:
 * see the header. */
#include "candidates.h"
#include "streams/base/bisect.h"
#include "streams/base/checked.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* Each pair of streams sends its best few, for they are often much alike. */
enum { BY_PAIR = 3 };
/* Work of looking for one arc, beside the work of its members. */
enum { STEP = 20 };
struct pair_best {
    struct tarn_couple_candidate list[BY_PAIR];
    uint32_t count;
};

/* A place in a stream, and the bytes of members that are made there or later. */
struct place {
    uint32_t position;
    uint64_t bytes;
};

struct finder {
    const struct tarn_graph *graph;
    const struct tarn_clocks *clocks;
    const struct tarn_pace *pace;
    const uint64_t *reserved;
    const struct tarn_candidate_limits *limits;
    uint32_t *members; /* storages of the antichain */
    uint32_t members_count;
    uint32_t *last;       /* of all members: the last user in each stream */
    uint32_t *last_begin; /* i -> the start of members[i]'s entries in `last`; none if pinned */
    struct place *places; /* in the stream that is looked at, distinct, the last one first */
    uint32_t places_count;
    struct pair_best *best;  /* stream of u -> its best arcs to that stream */
    uint64_t work, work_max; /* done, and allowed so far */
};

/* ---- The sides of an arc ---- */

static bool is_up_to(const struct finder *finder, uint32_t v, uint32_t u)
{
    return v == u || tarn_clocks_before(finder->clocks, finder->graph, v, u);
}

/* Bytes of members that have ended once u has ended and w may begin. */
static uint64_t done_by(const struct finder *finder, uint32_t u, uint32_t w)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < finder->members_count; i++) {
        uint32_t begin = finder->last_begin[i], end = finder->last_begin[i + 1], k = begin;
        while (k < end && (is_up_to(finder, finder->last[k], u) ||
                           tarn_clocks_before(finder->clocks, finder->graph, finder->last[k], w)))
            k++;
        if (k == end && begin < end) bytes += finder->reserved[finder->members[i]];
    }
    return bytes;
}

/* The latest position in stream c of an op that is, or happens before, op v; TARN_NONE: none. */
static uint32_t latest_up_to(const struct finder *finder, uint32_t v, uint32_t c)
{
    const struct tarn_graph_stream *stream = &finder->graph->streams[c];
    if (finder->graph->ops[v].stream == c) return finder->graph->ops[v].position;
    uint32_t low = 0, high = stream->ops_count;
    TARN_BISECT(low, high, middle,
                tarn_clocks_before(finder->clocks, finder->graph, stream->ops[middle], v));
    return low > 0 ? low - 1 : TARN_NONE;
}

static int compare_backwards(const void *left, const void *right)
{
    const struct place *a = left, *b = right;
    return a->position > b->position ? -1 : a->position < b->position;
}

static void fill_places(struct finder *finder, uint32_t c)
{
    uint32_t count = 0, kept = 0;
    for (uint32_t i = 0; i < finder->members_count; i++) {
        uint32_t m = finder->members[i];
        uint32_t latest = latest_up_to(finder, finder->graph->storages[m].producer, c);
        if (latest != TARN_NONE)
            finder->places[count++] = (struct place){latest, finder->reserved[m]};
    }
    qsort(finder->places, count, sizeof *finder->places, compare_backwards);
    for (uint32_t i = 0; i < count; i++) {
        struct place place = finder->places[i];
        if (kept > 0) place.bytes += finder->places[kept - 1].bytes;
        kept -= kept > 0 && finder->places[kept - 1].position == place.position;
        finder->places[kept++] = place;
    }
    finder->places_count = kept;
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
    TARN_BISECT(low, high, middle,
                tarn_pace_with(finder->pace, stream->ops[middle], w) <= makespan_ns);
    return low > 0 ? launched_at(finder->graph, a, low - 1) : TARN_NONE;
}

/* The earliest launched op of the stream of `latest` for which u will do, as it does for that. */
static uint32_t earliest_behind(const struct finder *finder, uint32_t u, uint32_t latest,
                                uint64_t makespan_ns)
{
    const struct tarn_graph *graph = finder->graph;
    const struct tarn_graph_stream *stream = &graph->streams[graph->ops[latest].stream];
    uint32_t low = 0, high = graph->ops[latest].position;
    TARN_BISECT(low, high, middle,
                tarn_pace_with(finder->pace, u, stream->ops[middle]) > makespan_ns ||
                    tarn_clocks_before(finder->clocks, graph, stream->ops[middle], u));
    while (graph->ops[stream->ops[low]].view) low++;
    return stream->ops[low];
}

/* The larger gain, up to the wanted one, is better; then less time; then any larger gain. */
static bool is_better(const struct finder *finder, const struct tarn_couple_candidate *a,
                      const struct tarn_couple_candidate *b)
{
    uint64_t a_gain = tarn_smaller(a->gain, finder->limits->gain);
    uint64_t b_gain = tarn_smaller(b->gain, finder->limits->gain);
    if (a_gain != b_gain) return a_gain > b_gain;
    if (a->makespan_ns != b->makespan_ns) return a->makespan_ns < b->makespan_ns;
    return a->gain > b->gain;
}

/* Keeps a list of the best ones, best first. */
static void keep(const struct finder *finder, struct tarn_couple_candidate *list, uint32_t *count,
                 uint32_t room, const struct tarn_couple_candidate *candidate)
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

/* Looks at arcs from stream a to w. behind: the bytes of members that are made at w or later. */
static void look_at(struct finder *finder, uint32_t a, uint32_t w, uint64_t behind,
                    uint64_t makespan_ns)
{
    const struct tarn_graph *graph = finder->graph;
    uint32_t u = latest_before(finder, a, w, makespan_ns);
    finder->work += STEP;
    if (u == TARN_NONE || tarn_clocks_before(finder->clocks, graph, u, w)) return;
    finder->work += finder->last_begin[finder->members_count];
    uint64_t gain = tarn_smaller(done_by(finder, u, w), behind);
    if (gain == 0) return;
    w = earliest_behind(finder, u, w, makespan_ns);
    struct tarn_couple_candidate candidate = {{w, u}, gain, tarn_pace_with(finder->pace, u, w)};
    keep(finder, finder->best[a].list, &finder->best[a].count, BY_PAIR, &candidate);
}

/* From every other stream to w. */
static void look_around(struct finder *finder, uint32_t w, uint64_t behind)
{
    uint64_t now = finder->pace->timeline.makespan_ns, most = finder->limits->makespan_ns;
    for (uint32_t a = 0; a < finder->graph->streams_count; a++) {
        if (finder->work >= finder->work_max) return;
        if (a == finder->graph->ops[w].stream) continue;
        look_at(finder, a, w, behind, now);
        if (most > now) look_at(finder, a, w, behind, most);
    }
}

/* Places of stream c: all of them, or some that divide the bytes evenly. */
static void look_into(struct finder *finder, uint32_t c, struct tarn_candidates *candidates)
{
    uint32_t streams_count = finder->graph->streams_count;
    assert(c < streams_count);
    uint32_t wanted = streams_count < 8 ? 32 : streams_count < 64 ? 256 / streams_count : 4;
    fill_places(finder, c);
    memset(finder->best, 0, streams_count * sizeof *finder->best);
    uint64_t sum = finder->places_count > 0 ? finder->places[finder->places_count - 1].bytes : 0;
    uint64_t step = finder->places_count > wanted ? sum / wanted : 0, next = 0;
    for (uint32_t i = 0; i < finder->places_count; i++) {
        const struct place *place = &finder->places[i];
        uint32_t w = launched_at(finder->graph, c, place->position);
        if (w == TARN_NONE || place->bytes < next) continue;
        look_around(finder, w, place->bytes);
        next = place->bytes + step;
    }
    for (uint32_t a = 0; a < streams_count; a++)
        for (uint32_t i = 0; i < finder->best[a].count; i++)
            keep(finder, candidates->best, &candidates->count, TARN_CANDIDATES_MAX,
                 &finder->best[a].list[i]);
}

/* ---- The search ---- */

/* Users come in topological order. seen[s]: the member + 1 that was last met in stream s. */
static void collect_last(struct finder *finder, uint32_t *seen)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < finder->members_count; i++) {
        const struct tarn_storage *storage = &finder->graph->storages[finder->members[i]];
        finder->last_begin[i] = count;
        for (uint32_t k = storage->pinned ? 0 : storage->users_count; k-- > 0;) {
            uint32_t s = finder->graph->ops[tarn_storage_users(finder->graph, storage)[k]].stream;
            if (seen[s] == i + 1) continue;
            seen[s] = i + 1;
            finder->last[count++] = tarn_storage_users(finder->graph, storage)[k];
        }
    }
    finder->last_begin[finder->members_count] = count;
}

static enum tarn_status finder_init(struct finder *finder, struct tarn_region *region,
                                    const struct tarn_coupled *coupled)
{
    const struct tarn_reuse *reuse = &coupled->reuse;
    size_t users = 0;
    uint32_t *seen = tarn_region_take(region, reuse->streams_count, sizeof *seen);
    finder->members = tarn_region_take(region, reuse->count, sizeof *finder->members);
    finder->best = tarn_region_take(region, reuse->streams_count, sizeof *finder->best);
    if (region->is_exhausted) return TARN_SYSTEM;
    for (uint32_t a = 0; a < reuse->count; a++) {
        if (!tarn_antichain_has(coupled->bound.threshold, reuse, a)) continue;
        finder->members[finder->members_count++] = a;
        users += finder->graph->storages[a].users_count;
    }
    size_t count = finder->members_count;
    finder->last = tarn_region_take(region, users, sizeof *finder->last);
    finder->last_begin = tarn_region_take(region, count + 1, sizeof *finder->last_begin);
    finder->places = tarn_region_take(region, count, sizeof *finder->places);
    if (region->is_exhausted) return TARN_SYSTEM;
    collect_last(finder, seen);
    return TARN_OK;
}

enum tarn_status tarn_candidates_find(struct tarn_candidates *candidates,
                                      const struct tarn_coupled *coupled,
                                      const struct tarn_pace *pace, const uint64_t *reserved,
                                      const struct tarn_candidate_limits *limits)
{
    struct tarn_region region = {.chunks = NULL};
    struct finder finder = {.graph = &coupled->graph,
                            .clocks = &coupled->clocks,
                            .pace = pace,
                            .reserved = reserved,
                            .limits = limits};
    candidates->count = 0;
    enum tarn_status status = finder_init(&finder, &region, coupled);
    for (uint32_t c = 0; status == TARN_OK && c < coupled->graph.streams_count; c++) {
        uint32_t left = coupled->graph.streams_count - c; /* an equal share for each */
        finder.work_max = finder.work + (limits->work - finder.work) / left;
        look_into(&finder, c, candidates);
        if (finder.work > limits->work) break;
    }
    candidates->work = finder.work;
    tarn_region_finish(&region);
    assert(candidates->count <= TARN_CANDIDATES_MAX);
    return status;
}
