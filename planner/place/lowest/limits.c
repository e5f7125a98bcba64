/* Raises limits, for a few places or a million. Places are the leaves of a tree (limit_tree.h). A
 * placed storage's conflicts are, in every stream, the places of a prefix whose row is beyond its
 * position. So with the extremes of a row known
 *
 *     highest <= position   no place of the node is in conflict: passed over
 *     lowest  >  position   every one is: one number, pending for the whole node
 *     else                  down to the children; for a run, a loop over its places
 *
 * Lifetimes that enclose each other, as in training, mostly lead to the first two cases.
 *
 *   - raise, for a lone storage: an unplaced storage never ends below the current offset, so
 *     every limit in conflict simply becomes at least the end of what was placed.
 *   - raise_or_cap, for a member of a placed group, which may lie above the current offset: what
 *     ends below it stays there and notes a ceiling; a block about to be placed through its ceiling
 *     is looked at exactly (greedy.c).
 *
 * The tree keeps one limit for a group, the limit of its first member (heads), which rises like the
 * limits of all places; the limits of the other members are combined when the group is selected.
 * Source: docs/how-it-works.md, "Placement". Cost: for each placed storage and stream the nodes
 * that are only partly in conflict; O(log T) if lifetimes enclose or follow each other. */
#include "limits.h"

#include <assert.h>

#include "limit_tree.h"
#include "planner/place/effort/effort.h"

enum { RUN = TARN_LANE_RUN };

/* One storage that was just placed, as the others see it. */
struct obstacle {
    uint32_t stream;
    int32_t position;
    struct tarn_span span;
    bool floats;
};

/* Is every place that has these extremes and at least this limit in conflict, and must it rise? */
static bool raises_all(const struct obstacle *obstacle, struct tarn_extreme extreme, int32_t limit)
{
    return extreme.lowest > obstacle->position &&
           (!obstacle->floats || limit >= obstacle->span.begin);
}

/* Forgets the places of a run that are placed, once for each of them. */
static bool narrow_run(struct tarn_greedy *greedy, uint32_t stream, uint32_t run)
{
    if (!greedy->narrows) return false;
    uint8_t *at = &greedy->narrowed_at[(size_t)stream * greedy->extremes->nodes_count[0] + run];
    if (*at == greedy->placed[run]) return false;
    *at = greedy->placed[run];
    tarn_extremes_narrow_run(&greedy->narrowed, &greedy->lowest->lone, greedy->kernels, stream, run,
                             greedy->limit);
    return true;
}

/* Raises the limits of places begin..end of a run. Returns whether extremes have changed. */
static bool raise_places(struct tarn_greedy *greedy, const struct obstacle *obstacle,
                         uint32_t begin, uint32_t end)
{
    const struct tarn_lane_kernels *kernels = greedy->kernels;
    assert(begin < end && begin / RUN == (end - 1) / RUN);
    const struct tarn_lanes *lone = &greedy->lowest->lone;
    const int32_t *row = lone->row + (size_t)obstacle->stream * lone->count + begin;
    uint32_t count = end - begin, run = begin / RUN;
    int32_t *limit = greedy->limit + begin, least = 0;
    greedy->work += TARN_WORK_RUN;
    tarn_flush_run(greedy, run);
    if (obstacle->floats)
        kernels->raise_or_cap(limit, greedy->ceiling + begin, row, greedy->lowest->size + begin,
                              count, obstacle->position, obstacle->span);
    else
        least = kernels->raise(limit, row, count, obstacle->position, obstacle->span.end);
    if (obstacle->floats || count != RUN)
        tarn_measure_run(greedy, run, obstacle->span.end);
    else
        tarn_note_run(greedy, run, least, obstacle->span.end);
    return narrow_run(greedy, obstacle->stream, run);
}

static bool raise_range(struct tarn_greedy *greedy, const struct obstacle *obstacle, uint32_t level,
                        uint32_t begin, uint32_t end);

/* Raises the limits of places begin..end of a node. */
static bool raise_node(struct tarn_greedy *greedy, const struct obstacle *obstacle, uint32_t level,
                       uint32_t begin, uint32_t end)
{
    uint32_t shift = tarn_node_shift(level), node = begin >> shift;
    int32_t least = greedy->levels[level].least[node];
    struct tarn_extreme extreme = tarn_extremes_of(greedy->extremes, obstacle->stream, level, node);
    greedy->work += TARN_WORK_NODE;
    assert(begin < end && (end - 1) >> shift == node);
    if (least == TARN_PLACED || extreme.highest <= obstacle->position) return false;
    if (end - begin == UINT32_C(1) << shift && raises_all(obstacle, extreme, least)) {
        tarn_raise_whole(greedy, level, node, obstacle->span.end);
        return false;
    }
    if (level == 0) return raise_places(greedy, obstacle, begin, end);
    tarn_flush_node(greedy, level, node);
    bool narrowed = raise_range(greedy, obstacle, level - 1, begin, end);
    tarn_note_node(greedy, level, node);
    if (narrowed) tarn_extremes_narrow(&greedy->narrowed, obstacle->stream, level, node);
    return narrowed;
}

/* All nodes of a level that have some of the places. */
static bool raise_range(struct tarn_greedy *greedy, const struct obstacle *obstacle, uint32_t level,
                        uint32_t begin, uint32_t end)
{
    uint32_t shift = tarn_node_shift(level);
    bool narrowed = false;
    for (uint32_t next; begin < end; begin = next) {
        next = ((begin >> shift) + 1) << shift;
        narrowed |= raise_node(greedy, obstacle, level, begin, next < end ? next : end);
    }
    return narrowed;
}

/* The next part of [begin, end) that lies in one run and may have conflicts with the obstacle;
 * false if there is none. Moves begin past it. */
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

static void raise_members(struct tarn_greedy *greedy, const struct obstacle *obstacle,
                          uint32_t begin, uint32_t end)
{
    const struct tarn_lanes *members = &greedy->lowest->members;
    const int32_t *row = members->row + (size_t)obstacle->stream * members->count;
    uint32_t part[2];
    greedy->work += (uint64_t)TARN_WORK_RUN * (end > begin ? (end - begin) / RUN + 1 : 0);
    while (next_part(members, obstacle, &begin, end, part))
        greedy->kernels->raise_members(greedy->member_limit + part[0], row + part[0],
                                       greedy->lowest->within + part[0], part[1] - part[0],
                                       obstacle->position, obstacle->span.end);
}

/* A group begins with its first member: if that is in conflict, the limit is known at once. */
static void raise_heads(struct tarn_greedy *greedy, const struct obstacle *obstacle, uint32_t begin,
                        uint32_t end)
{
    const struct tarn_lowest *lowest = greedy->lowest;
    const struct tarn_lanes *heads = &lowest->heads;
    const int32_t *row = heads->row + (size_t)obstacle->stream * heads->count;
    uint32_t part[2];
    while (next_part(heads, obstacle, &begin, end, part)) {
        uint32_t place = lowest->lone.count + part[0], count = part[1] - part[0];
        greedy->kernels->raise(greedy->limit + place, row + part[0], count, obstacle->position,
                               obstacle->span.end);
        tarn_measure(greedy, place / RUN, obstacle->span.end);
        if (place / RUN != (place + count - 1) / RUN)
            tarn_measure(greedy, (place + count - 1) / RUN, obstacle->span.end);
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
    uint32_t streams_count = lowest->problem->conflicts.reuse.streams_count;
    size_t k = lowest->since_begin[obstacle->stream] + (uint32_t)obstacle->position / RUN;
    assert(k < lowest->since_begin[obstacle->stream + 1]);
    return lowest->since[k * streams_count + s];
}

static void raise_groups(struct tarn_greedy *greedy, const struct obstacle *obstacle,
                         uint32_t storage)
{
    const struct tarn_lowest *lowest = greedy->lowest;
    const struct tarn_reuse *reuse = &lowest->problem->conflicts.reuse;
    for (uint32_t s = 0; s < reuse->streams_count; s++) {
        uint32_t first = reuse->first[(size_t)s * reuse->count + storage];
        raise_members(greedy, obstacle, tarn_lanes_begin(&lowest->members, s),
                      tarn_lanes_end(&lowest->members, s, first));
        raise_heads(greedy, obstacle, tarn_lanes_begin(&lowest->heads, s),
                    tarn_lanes_end(&lowest->heads, s, first));
    }
}

void tarn_limits_raise(struct tarn_greedy *greedy, uint32_t place, struct tarn_span span)
{
    const struct tarn_lowest *lowest = greedy->lowest;
    const struct tarn_reuse *reuse = &lowest->problem->conflicts.reuse;
    const uint32_t *reach = lowest->reach + (size_t)place * reuse->streams_count;
    uint32_t storage = lowest->lone.storage[place], top = greedy->extremes->levels_count - 1;
    const struct obstacle obstacle = obstacle_of(reuse, storage, span, false);
    greedy->work += (uint64_t)TARN_WORK_STREAM * reuse->streams_count;
    for (uint32_t s = 0; s < reuse->streams_count; s++)
        raise_range(greedy, &obstacle, top, since_of(lowest, &obstacle, s), reach[s]);
    if (lowest->groups_count > 0) raise_groups(greedy, &obstacle, storage);
}

void tarn_limits_raise_or_cap(struct tarn_greedy *greedy, uint32_t member, struct tarn_span span)
{
    const struct tarn_lowest *lowest = greedy->lowest;
    const struct tarn_reuse *reuse = &lowest->problem->conflicts.reuse;
    uint32_t storage = lowest->members.storage[member], top = greedy->extremes->levels_count - 1;
    const struct obstacle obstacle = obstacle_of(reuse, storage, span, true);
    greedy->work += (uint64_t)TARN_WORK_STREAM * reuse->streams_count;
    for (uint32_t s = 0; s < reuse->streams_count; s++) {
        uint32_t first = reuse->first[(size_t)s * reuse->count + storage];
        raise_range(greedy, &obstacle, top, since_of(lowest, &obstacle, s),
                    tarn_lanes_end(&lowest->lone, s, first));
    }
}
