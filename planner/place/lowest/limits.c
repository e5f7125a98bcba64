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

#include "planner/place/work.h"

enum { RUN = TARN_LANE_RUN, CHILDREN = TARN_NODE_CHILDREN, PLACED = INT32_MAX, UNKNOWN = -1 };

static const struct tarn_leader nobody = {UNKNOWN, 0};

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

/* Limits only rise: while the least one stays, nobody joins those that have it. None has risen
 * above `raised`. */
static void note_run(struct tarn_decoder *decoder, uint32_t run, int32_t least, int32_t raised)
{
    struct tarn_limits_level *runs = &decoder->levels[0];
    if (least != runs->least[run]) runs->first[run] = nobody;
    runs->least[run] = least;
    if (raised > runs->greatest[run]) runs->greatest[run] = raised;
    if (least == PLACED) runs->greatest[run] = 0;
}

/* Some of its children have changed. */
static void note_node(struct tarn_decoder *decoder, uint32_t level, uint32_t node)
{
    const struct tarn_limits_level *children = &decoder->levels[level - 1];
    struct tarn_limits_level *nodes = &decoder->levels[level];
    uint32_t end = children_end(decoder, level, node);
    int32_t least = PLACED, greatest = 0;
    for (uint32_t child = node * CHILDREN; child < end; child++) {
        least = children->least[child] < least ? children->least[child] : least;
        greatest = children->greatest[child] > greatest ? children->greatest[child] : greatest;
    }
    nodes->least[node] = least;
    nodes->greatest[node] = greatest;
    nodes->first[node] = nobody;
}

static void raise_whole(struct tarn_decoder *decoder, uint32_t level, uint32_t node, int32_t end)
{
    struct tarn_limits_level *nodes = &decoder->levels[level];
    if (nodes->least[node] == PLACED) return;
    if (end <= nodes->least[node]) return;
    nodes->pending[node] = nodes->least[node] = end;
    nodes->first[node] = nobody;
    if (end > nodes->greatest[node]) nodes->greatest[node] = end;
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

static void measure_run(struct tarn_decoder *decoder, uint32_t run, int32_t raised)
{
    note_run(
        decoder, run,
        decoder->kernels->least(decoder->limit + (size_t)run * RUN, run_size(decoder->lowest, run)),
        raised);
}

/* Somebody of the run has risen to `raised`. */
static void measure(struct tarn_decoder *decoder, uint32_t run, int32_t raised)
{
    measure_run(decoder, run, raised);
    for (uint32_t level = 1; level < decoder->extremes->levels_count; level++)
        note_node(decoder, level, run * RUN >> tarn_node_shift(level));
}

void tarn_limits_rise(struct tarn_decoder *decoder, uint32_t place, int32_t limit)
{
    decoder->limit[place] = limit;
    measure(decoder, place / RUN, limit);
}

void tarn_limits_remove(struct tarn_decoder *decoder, uint32_t place)
{
    decoder->limit[place] = PLACED;
    if (decoder->narrows) decoder->placed[place / RUN]++;
    for (uint32_t level = 0; level < decoder->extremes->levels_count; level++)
        decoder->levels[level].champion[place >> tarn_node_shift(level)] = nobody;
    measure(decoder, place / RUN, 0);
}

void tarn_limits_forget(struct tarn_decoder *decoder)
{
    for (uint32_t level = 0; level < decoder->extremes->levels_count; level++)
        for (uint32_t node = 0; node < decoder->levels[level].count; node++)
            decoder->levels[level].first[node] = decoder->levels[level].champion[node] = nobody;
}

void tarn_limits_start(struct tarn_decoder *decoder)
{
    const struct tarn_lowest *lowest = decoder->lowest;
    memset(decoder->limit, 0, lowest->count * sizeof *decoder->limit);
    memset(decoder->member_limit, 0, lowest->members.count * sizeof *decoder->member_limit);
    for (uint32_t n = 0; n < decoder->extremes->levels_count; n++) {
        struct tarn_limits_level *level = &decoder->levels[n];
        memset(level->pending, 0, level->count * sizeof *level->pending);
        memset(level->greatest, 0, level->count * sizeof *level->greatest);
        for (uint32_t node = 0; node < level->count; node++)
            level->least[node] = (uint64_t)node << tarn_node_shift(n) < lowest->count ? 0 : PLACED;
    }
    tarn_limits_forget(decoder);
    if (!decoder->narrows) return;
    uint32_t streams_count = lowest->problem->conflicts->reuse->streams_count;
    tarn_extremes_copy(&decoder->narrowed, &lowest->extremes, streams_count);
    memset(decoder->placed, 0, lowest->extremes.nodes_count[0]);
    memset(decoder->narrowed_at, 0, (size_t)streams_count * lowest->extremes.nodes_count[0]);
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

/* Forgets who is placed in a run, once for each of them and not oftener. */
static bool narrow_run(struct tarn_decoder *decoder, uint32_t stream, uint32_t run)
{
    if (!decoder->narrows) return false;
    uint8_t *at = &decoder->narrowed_at[(size_t)stream * decoder->extremes->nodes_count[0] + run];
    if (*at == decoder->placed[run]) return false;
    *at = decoder->placed[run];
    tarn_extremes_narrow_run(&decoder->narrowed, &decoder->lowest->lone, decoder->kernels, stream,
                             run, decoder->limit);
    return true;
}

/* Raises the limits of places begin..end of a run. Tells whether extremes have changed. */
static bool raise_places(struct tarn_decoder *decoder, const struct obstacle *obstacle,
                         uint32_t begin, uint32_t end)
{
    const struct tarn_kernels *kernels = decoder->kernels;
    const struct tarn_lanes *lone = &decoder->lowest->lone;
    const int32_t *row = lone->row + (size_t)obstacle->stream * lone->count + begin;
    uint32_t count = end - begin, run = begin / RUN;
    int32_t *limit = decoder->limit + begin, least = 0;
    decoder->work += TARN_WORK_RUN;
    flush_run(decoder, run);
    if (obstacle->floats)
        kernels->raise_or_cap(limit, decoder->ceiling + begin, row, decoder->lowest->size + begin,
                              count, obstacle->position, obstacle->span);
    else
        least = kernels->raise(limit, row, count, obstacle->position, obstacle->span.end);
    if (obstacle->floats || count != RUN)
        measure_run(decoder, run, obstacle->span.end);
    else
        note_run(decoder, run, least, obstacle->span.end);
    return narrow_run(decoder, obstacle->stream, run);
}

static bool raise_range(struct tarn_decoder *decoder, const struct obstacle *obstacle,
                        uint32_t level, uint32_t begin, uint32_t end);

/* Raises the limits of places begin..end of a node. */
static bool raise_node(struct tarn_decoder *decoder, const struct obstacle *obstacle,
                       uint32_t level, uint32_t begin, uint32_t end)
{
    uint32_t shift = tarn_node_shift(level), node = begin >> shift;
    int32_t least = decoder->levels[level].least[node];
    struct tarn_extreme extreme =
        tarn_extremes_of(decoder->extremes, obstacle->stream, level, node);
    decoder->work += TARN_WORK_NODE;
    if (least == PLACED || extreme.highest <= obstacle->position) return false;
    if (end - begin == UINT32_C(1) << shift && raises_all(obstacle, extreme, least)) {
        raise_whole(decoder, level, node, obstacle->span.end);
        return false;
    }
    if (level == 0) return raise_places(decoder, obstacle, begin, end);
    flush_node(decoder, level, node);
    bool narrowed = raise_range(decoder, obstacle, level - 1, begin, end);
    note_node(decoder, level, node);
    if (narrowed) tarn_extremes_narrow(&decoder->narrowed, obstacle->stream, level, node);
    return narrowed;
}

/* All nodes of a level that have some of the places. */
static bool raise_range(struct tarn_decoder *decoder, const struct obstacle *obstacle,
                        uint32_t level, uint32_t begin, uint32_t end)
{
    uint32_t shift = tarn_node_shift(level);
    bool narrowed = false;
    for (uint32_t next; begin < end; begin = next) {
        next = ((begin >> shift) + 1) << shift;
        narrowed |= raise_node(decoder, obstacle, level, begin, next < end ? next : end);
    }
    return narrowed;
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
    decoder->work += (uint64_t)TARN_WORK_RUN * (end > begin ? (end - begin) / RUN + 1 : 0);
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
        measure(decoder, place / RUN, obstacle->span.end);
        if (place / RUN != (place + count - 1) / RUN)
            measure(decoder, (place + count - 1) / RUN, obstacle->span.end);
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
    decoder->work += (uint64_t)TARN_WORK_STREAM * reuse->streams_count;
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
    decoder->work += (uint64_t)TARN_WORK_STREAM * reuse->streams_count;
    for (uint32_t s = 0; s < reuse->streams_count; s++) {
        uint32_t first = reuse->first[(size_t)s * reuse->count + storage];
        raise_range(decoder, &obstacle, top, since_of(lowest, &obstacle, s),
                    tarn_lanes_end(&lowest->lone, s, first));
    }
}

/* ---- Selection ---- */

static uint32_t place_of(uint32_t run, int32_t code)
{
    return run * RUN + (RUN - 1 - (uint32_t)code % RUN);
}

static struct tarn_leader foremost(struct tarn_leader a, struct tarn_leader b)
{
    return a.code == UNKNOWN || b.code / RUN > a.code / RUN ? b : a;
}

/* Who comes first of all that are not placed: keys alone decide. */
static struct tarn_leader champion_of(struct tarn_decoder *decoder, const int32_t *key,
                                      uint32_t level, uint32_t node)
{
    struct tarn_leader *champion = &decoder->levels[level].champion[node];
    if (champion->code != UNKNOWN) return *champion;
    if (level == 0) {
        *champion = (struct tarn_leader){
            decoder->kernels->champion(decoder->limit + (size_t)node * RUN,
                                       key + (size_t)node * RUN, run_size(decoder->lowest, node)),
            node};
        return *champion;
    }
    uint32_t end = children_end(decoder, level, node);
    for (uint32_t child = node * CHILDREN; child < end; child++)
        if (decoder->levels[level - 1].least[child] != PLACED)
            *champion = foremost(*champion, champion_of(decoder, key, level - 1, child));
    return *champion;
}

/* Who comes first of those of a run that have its least limit. */
static struct tarn_leader first_of_run(struct tarn_decoder *decoder, const int32_t *key,
                                       uint32_t run)
{
    struct tarn_limits_level *runs = &decoder->levels[0];
    struct tarn_leader *first = &runs->first[run];
    flush_run(decoder, run);
    if (first->code == UNKNOWN || decoder->limit[place_of(run, first->code)] != runs->least[run])
        *first = (struct tarn_leader){
            decoder->kernels->foremost(decoder->limit + (size_t)run * RUN, key + (size_t)run * RUN,
                                       run_size(decoder->lowest, run), runs->least[run]),
            run};
    return *first;
}

static struct tarn_leader first_of_range(struct tarn_decoder *decoder, const int32_t *key,
                                         uint32_t level, uint32_t begin, uint32_t end,
                                         int32_t limit);

/* Who comes first of those of a node that have its least limit. Where they all have it, and after
 * most placements that is so in most nodes, nothing is looked at. */
static struct tarn_leader first_of(struct tarn_decoder *decoder, const int32_t *key, uint32_t level,
                                   uint32_t node)
{
    struct tarn_limits_level *nodes = &decoder->levels[level];
    if (nodes->least[node] == nodes->greatest[node]) return champion_of(decoder, key, level, node);
    if (level == 0) return first_of_run(decoder, key, node);
    if (nodes->first[node].code == UNKNOWN) {
        flush_node(decoder, level, node);
        nodes->first[node] = first_of_range(decoder, key, level - 1, node * CHILDREN,
                                            children_end(decoder, level, node), nodes->least[node]);
    }
    return nodes->first[node];
}

/* The same for the nodes begin..end of a level, of those that have this limit. */
static struct tarn_leader first_of_range(struct tarn_decoder *decoder, const int32_t *key,
                                         uint32_t level, uint32_t begin, uint32_t end,
                                         int32_t limit)
{
    const int32_t *least = decoder->levels[level].least;
    struct tarn_leader best = nobody;
    for (uint32_t node = begin; node < end; node++)
        if (least[node] == limit) best = foremost(best, first_of(decoder, key, level, node));
    return best;
}

uint32_t tarn_limits_select(struct tarn_decoder *decoder, const int32_t *key)
{
    uint32_t top = decoder->extremes->levels_count - 1, count = decoder->levels[top].count;
    int32_t limit = decoder->kernels->least(decoder->levels[top].least, count);
    struct tarn_leader first = first_of_range(decoder, key, top, 0, count, limit);
    uint32_t place = place_of(first.run, first.code);
    for (uint32_t level = top; level > 0; level--)
        flush_node(decoder, level, place >> tarn_node_shift(level));
    flush_run(decoder, first.run);
    return place;
}
