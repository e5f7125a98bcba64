/* Raising limits and selecting, for a few places or a million. Places are the leaves of a tree, 64
 * to a run, 16 runs or nodes to a node. A placed storage's conflicts are, in every stream, a prefix
 * of places, of which those count whose row is beyond its position; so with the extremes of a row
 * known
 *
 *     highest <= position   nobody in the node is in conflict: passed over
 *     lowest  >  position   everybody is: one number, pending for the whole node
 *     else                  down to the children; for a run, a loop over its places
 *
 * Lifetimes that enclose each other, as in training, mostly meet the first two.
 *
 *   - raise, for a lone storage: what is not placed yet never ends below the current offset, so
 *     every limit in conflict simply becomes at least the end of what was placed.
 *   - raise_or_cap, for a member of a placed group, which may lie above the current offset: what
 *     ends below it stays there and notes a ceiling; who is about to be placed through its ceiling
 *     is looked at exactly (decode.c).
 *
 * A group has the limits that its first member has (heads), which rise with everybody's; what its
 * other members allow is put together when it comes up.
 * Selection is a tournament whose winners stand until somebody of their node changes.
 * Source: DESIGN.md, section 3 (Placement). Cost: for each placed storage and stream the
 * nodes that are only partly in conflict; O(log T) where lifetimes enclose or follow each other. */
#include "limits.h"

#include <string.h>

enum { RUN = TARN_LANE_RUN, CHILDREN = TARN_NODE_CHILDREN, PLACED = INT32_MAX, UNKNOWN = -1 };

/* ---- Nodes ---- */

static uint32_t run_size(const struct tarn_lowest *lowest, uint32_t run)
{
    uint32_t begin = run * RUN, left = begin < lowest->count ? lowest->count - begin : 0;
    return left < RUN ? left : RUN;
}

static uint32_t children_end(const struct tarn_decoder *decoder, uint32_t level, uint32_t node)
{
    uint32_t end = (node + 1) * CHILDREN, count = decoder->levels[level - 1].count;
    return end < count ? end : count;
}

/* Limits only rise: while the least one stays, nobody joins those that have it. */
static void note_run(struct tarn_decoder *decoder, uint32_t run, int32_t least)
{
    struct tarn_limits_level *runs = &decoder->levels[0];
    if (least != runs->least[run]) runs->winner[run] = UNKNOWN;
    runs->least[run] = least;
}

/* Some of its children have changed. */
static void note_node(struct tarn_decoder *decoder, uint32_t level, uint32_t node)
{
    const int32_t *least = decoder->levels[level - 1].least;
    uint32_t end = children_end(decoder, level, node);
    int32_t all = PLACED;
    for (uint32_t child = node * CHILDREN; child < end; child++)
        all = least[child] < all ? least[child] : all;
    decoder->levels[level].least[node] = all;
    decoder->levels[level].winner[node] = UNKNOWN;
}

static void raise_whole(struct tarn_decoder *decoder, uint32_t level, uint32_t node, int32_t end)
{
    struct tarn_limits_level *nodes = &decoder->levels[level];
    if (nodes->least[node] == PLACED) return;
    if (end > nodes->pending[node]) nodes->pending[node] = end;
    if (end <= nodes->least[node]) return;
    nodes->least[node] = end;
    nodes->winner[node] = UNKNOWN;
}

static void flush_run(struct tarn_decoder *decoder, uint32_t run)
{
    int32_t pending = decoder->levels[0].pending[run];
    int32_t *limit = decoder->limit + (size_t)run * RUN;
    if (pending == 0) return;
    decoder->levels[0].pending[run] = 0;
    for (uint32_t i = 0; i < RUN; i++) limit[i] = limit[i] > pending ? limit[i] : pending;
}

/* Hands what is pending on to the children. */
static void flush_node(struct tarn_decoder *decoder, uint32_t level, uint32_t node)
{
    int32_t pending = decoder->levels[level].pending[node];
    if (pending == 0) return;
    decoder->levels[level].pending[node] = 0;
    uint32_t end = children_end(decoder, level, node);
    for (uint32_t child = node * CHILDREN; child < end; child++)
        raise_whole(decoder, level - 1, child, pending);
}

void tarn_limits_flush(struct tarn_decoder *decoder)
{
    for (uint32_t level = decoder->extremes->levels_count; --level > 0;)
        for (uint32_t node = 0; node < decoder->levels[level].count; node++)
            flush_node(decoder, level, node);
    for (uint32_t run = 0; run < decoder->levels[0].count; run++) flush_run(decoder, run);
}

static void measure_run(struct tarn_decoder *decoder, uint32_t run)
{
    note_run(decoder, run,
             decoder->kernels->least(decoder->limit + (size_t)run * RUN,
                                     run_size(decoder->lowest, run)));
}

void tarn_limits_measure(struct tarn_decoder *decoder, uint32_t place)
{
    measure_run(decoder, place / RUN);
    for (uint32_t level = 1; level < decoder->extremes->levels_count; level++)
        note_node(decoder, level, place >> tarn_node_shift(level));
}

void tarn_limits_forget(struct tarn_decoder *decoder)
{
    for (uint32_t level = 0; level < decoder->extremes->levels_count; level++)
        memset(decoder->levels[level].winner, 0xff,
               decoder->levels[level].count * sizeof *decoder->levels[level].winner);
}

void tarn_limits_start(struct tarn_decoder *decoder)
{
    const struct tarn_lowest *lowest = decoder->lowest;
    memset(decoder->limit, 0, lowest->count * sizeof *decoder->limit);
    memset(decoder->member_limit, 0, lowest->members.count * sizeof *decoder->member_limit);
    for (uint32_t n = 0; n < decoder->extremes->levels_count; n++) {
        struct tarn_limits_level *level = &decoder->levels[n];
        memset(level->pending, 0, level->count * sizeof *level->pending);
        for (uint32_t node = 0; node < level->count; node++)
            level->least[node] = (uint64_t)node << tarn_node_shift(n) < lowest->count ? 0 : PLACED;
    }
    tarn_limits_forget(decoder);
    if (decoder->narrows)
        tarn_extremes_copy(&decoder->narrowed, &lowest->extremes,
                           lowest->problem->conflicts->reuse->streams_count);
}

/* ---- Raising ---- */

/* One storage that was just placed, as the others see it. */
struct obstacle {
    uint32_t stream;
    int32_t position;
    struct tarn_span span;
    bool floats;
};

/* Is everybody in conflict who has these extremes and at least this limit, and must he rise? */
static bool raises_all(const struct obstacle *obstacle, struct tarn_extreme extreme, int32_t limit)
{
    return extreme.lowest > obstacle->position &&
           (!obstacle->floats || limit >= obstacle->span.begin);
}

/* Raises the limits of places begin..end of a run. */
static void raise_places(struct tarn_decoder *decoder, const struct obstacle *obstacle,
                         uint32_t begin, uint32_t end)
{
    const struct tarn_kernels *kernels = decoder->kernels;
    const struct tarn_lanes *lone = &decoder->lowest->lone;
    const int32_t *row = lone->row + (size_t)obstacle->stream * lone->count + begin;
    uint32_t count = end - begin, run = begin / RUN;
    int32_t *limit = decoder->limit + begin, least = 0;
    flush_run(decoder, run);
    if (obstacle->floats)
        kernels->raise_or_cap(limit, decoder->ceiling + begin, row, decoder->lowest->size + begin,
                              count, obstacle->position, obstacle->span);
    else
        least = kernels->raise(limit, row, count, obstacle->position, obstacle->span.end);
    if (obstacle->floats || count != RUN)
        measure_run(decoder, run);
    else
        note_run(decoder, run, least);
    if (decoder->narrows)
        tarn_extremes_narrow_run(&decoder->narrowed, lone, kernels, obstacle->stream, run,
                                 decoder->limit);
}

static void raise_range(struct tarn_decoder *decoder, const struct obstacle *obstacle,
                        uint32_t level, uint32_t begin, uint32_t end);

/* Raises the limits of places begin..end of a node. */
static void raise_node(struct tarn_decoder *decoder, const struct obstacle *obstacle,
                       uint32_t level, uint32_t begin, uint32_t end)
{
    uint32_t shift = tarn_node_shift(level), node = begin >> shift;
    int32_t least = decoder->levels[level].least[node];
    struct tarn_extreme extreme =
        tarn_extremes_of(decoder->extremes, obstacle->stream, level, node);
    if (least == PLACED || extreme.highest <= obstacle->position) return;
    if (end - begin == UINT32_C(1) << shift && raises_all(obstacle, extreme, least)) {
        raise_whole(decoder, level, node, obstacle->span.end);
    } else if (level == 0) {
        raise_places(decoder, obstacle, begin, end);
    } else {
        flush_node(decoder, level, node);
        raise_range(decoder, obstacle, level - 1, begin, end);
        note_node(decoder, level, node);
        if (decoder->narrows)
            tarn_extremes_narrow(&decoder->narrowed, obstacle->stream, level, node);
    }
}

/* All nodes of a level that have some of the places. */
static void raise_range(struct tarn_decoder *decoder, const struct obstacle *obstacle,
                        uint32_t level, uint32_t begin, uint32_t end)
{
    uint32_t shift = tarn_node_shift(level);
    for (uint32_t next; begin < end; begin = next) {
        next = ((begin >> shift) + 1) << shift;
        raise_node(decoder, obstacle, level, begin, next < end ? next : end);
    }
}

/* The next part of [begin, end) that lies in one run and may have conflicts with the obstacle;
 * false when there is none. Moves begin past it. */
static bool next_part(const struct tarn_lanes *lanes, const struct obstacle *obstacle,
                      uint32_t *begin, uint32_t end, uint32_t part[2])
{
    const int32_t *highest = lanes->highest + (size_t)obstacle->stream * lanes->runs_count;
    while (*begin < end) {
        uint32_t from = *begin, next = (from / RUN + 1) * RUN;
        *begin = next;
        if (highest[from / RUN] <= obstacle->position) continue;
        part[0] = from;
        part[1] = next < end ? next : end;
        return true;
    }
    return false;
}

static void raise_members(struct tarn_decoder *decoder, const struct obstacle *obstacle,
                          uint32_t begin, uint32_t end)
{
    const struct tarn_lanes *members = &decoder->lowest->members;
    const int32_t *row = members->row + (size_t)obstacle->stream * members->count;
    uint32_t part[2];
    while (next_part(members, obstacle, &begin, end, part))
        decoder->kernels->raise_members(decoder->member_limit + part[0], row + part[0],
                                        decoder->lowest->within + part[0], part[1] - part[0],
                                        obstacle->position, obstacle->span.end);
}

/* A group begins with its first member: where that is in conflict, the limit is known at once. */
static void raise_heads(struct tarn_decoder *decoder, const struct obstacle *obstacle,
                        uint32_t begin, uint32_t end)
{
    const struct tarn_lowest *lowest = decoder->lowest;
    const struct tarn_lanes *heads = &lowest->heads;
    const int32_t *row = heads->row + (size_t)obstacle->stream * heads->count;
    uint32_t part[2];
    while (next_part(heads, obstacle, &begin, end, part)) {
        uint32_t place = lowest->lone.count + part[0], count = part[1] - part[0];
        decoder->kernels->raise(decoder->limit + place, row + part[0], count, obstacle->position,
                                obstacle->span.end);
        tarn_limits_measure(decoder, place);
        if (place / RUN != (place + count - 1) / RUN)
            tarn_limits_measure(decoder, place + count - 1);
    }
}

static struct obstacle obstacle_of(const struct tarn_reuse *reuse, uint32_t storage,
                                   struct tarn_span span, bool floats)
{
    return (struct obstacle){reuse->stream[storage], (int32_t)reuse->position[storage], span,
                             floats};
}

/* The first lone place of stream s that may be in conflict. */
static uint32_t since_of(const struct tarn_lowest *lowest, const struct obstacle *obstacle,
                         uint32_t s)
{
    uint32_t streams_count = lowest->problem->conflicts->reuse->streams_count;
    size_t k = lowest->since_begin[obstacle->stream] + (uint32_t)obstacle->position / RUN;
    return lowest->since[k * streams_count + s];
}

static void raise_groups(struct tarn_decoder *decoder, const struct obstacle *obstacle,
                         uint32_t storage)
{
    const struct tarn_lowest *lowest = decoder->lowest;
    const struct tarn_reuse *reuse = lowest->problem->conflicts->reuse;
    for (uint32_t s = 0; s < reuse->streams_count; s++) {
        uint32_t first = reuse->first[(size_t)s * reuse->count + storage];
        raise_members(decoder, obstacle, tarn_lanes_begin(&lowest->members, s),
                      tarn_lanes_end(&lowest->members, s, first));
        raise_heads(decoder, obstacle, tarn_lanes_begin(&lowest->heads, s),
                    tarn_lanes_end(&lowest->heads, s, first));
    }
}

void tarn_limits_raise(struct tarn_decoder *decoder, uint32_t place, struct tarn_span span)
{
    const struct tarn_lowest *lowest = decoder->lowest;
    const struct tarn_reuse *reuse = lowest->problem->conflicts->reuse;
    const uint32_t *reach = lowest->reach + (size_t)place * reuse->streams_count;
    uint32_t storage = lowest->lone.storage[place], top = decoder->extremes->levels_count - 1;
    const struct obstacle obstacle = obstacle_of(reuse, storage, span, false);
    for (uint32_t s = 0; s < reuse->streams_count; s++)
        raise_range(decoder, &obstacle, top, since_of(lowest, &obstacle, s), reach[s]);
    if (lowest->groups_count > 0) raise_groups(decoder, &obstacle, storage);
}

void tarn_limits_raise_or_cap(struct tarn_decoder *decoder, uint32_t member, struct tarn_span span)
{
    const struct tarn_lowest *lowest = decoder->lowest;
    const struct tarn_reuse *reuse = lowest->problem->conflicts->reuse;
    uint32_t storage = lowest->members.storage[member], top = decoder->extremes->levels_count - 1;
    const struct obstacle obstacle = obstacle_of(reuse, storage, span, true);
    for (uint32_t s = 0; s < reuse->streams_count; s++) {
        uint32_t first = reuse->first[(size_t)s * reuse->count + storage];
        raise_range(decoder, &obstacle, top, since_of(lowest, &obstacle, s),
                    tarn_lanes_end(&lowest->lone, s, first));
    }
}

/* ---- Selection ---- */

static uint32_t place_of(uint32_t run, int32_t first)
{
    return run * RUN + (RUN - 1 - (uint32_t)first % RUN);
}

/* Who of those with the least limit of the run comes first. */
static void find_first(struct tarn_decoder *decoder, const int32_t *key, uint32_t run)
{
    struct tarn_limits_level *runs = &decoder->levels[0];
    int32_t first = runs->winner[run];
    flush_run(decoder, run);
    if (first != UNKNOWN && decoder->limit[place_of(run, first)] == runs->least[run]) return;
    runs->winner[run] =
        decoder->kernels->foremost(decoder->limit + (size_t)run * RUN, key + (size_t)run * RUN,
                                   run_size(decoder->lowest, run), runs->least[run]);
}

static int32_t find_winner(struct tarn_decoder *decoder, const int32_t *key, uint32_t level,
                           uint32_t begin, uint32_t end, int32_t limit);

/* The run of a node that has who comes first. */
static int32_t winner_of(struct tarn_decoder *decoder, const int32_t *key, uint32_t level,
                         uint32_t node)
{
    struct tarn_limits_level *nodes = &decoder->levels[level];
    if (level == 0) {
        find_first(decoder, key, node);
        return (int32_t)node;
    }
    if (nodes->winner[node] == UNKNOWN) {
        flush_node(decoder, level, node);
        nodes->winner[node] = find_winner(decoder, key, level - 1, node * CHILDREN,
                                          children_end(decoder, level, node), nodes->least[node]);
    }
    return nodes->winner[node];
}

/* The best run of the nodes begin..end that have this limit. */
static int32_t find_winner(struct tarn_decoder *decoder, const int32_t *key, uint32_t level,
                           uint32_t begin, uint32_t end, int32_t limit)
{
    const int32_t *least = decoder->levels[level].least, *first = decoder->levels[0].winner;
    int32_t best = UNKNOWN;
    for (uint32_t node = begin; node < end; node++) {
        if (least[node] != limit) continue;
        int32_t run = winner_of(decoder, key, level, node);
        if (best == UNKNOWN || first[run] / RUN > first[best] / RUN) best = run;
    }
    return best;
}

uint32_t tarn_limits_select(struct tarn_decoder *decoder, const int32_t *key)
{
    uint32_t top = decoder->extremes->levels_count - 1, count = decoder->levels[top].count;
    int32_t limit = decoder->kernels->least(decoder->levels[top].least, count);
    uint32_t run = (uint32_t)find_winner(decoder, key, top, 0, count, limit);
    return place_of(run, decoder->levels[0].winner[run]);
}
