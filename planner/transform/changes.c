/* Finds what changed between a graph and a transform's result, by comparing the two; the
 * transform's own report is not trusted. Ops are matched by `origin`, tensors by id. In each stream
 * the ops that stayed are a longest increasing subsequence of their old places (patience sorting);
 * the others have moved. Cost: O(n log n) for n ops, plus the list entries. */
#include <assert.h>
#include <stdlib.h>

#include "streams/base/array.h"
#include "streams/base/bisect.h"
#include "streams/base/error.h"
#include "streams/base/memory.h"
#include "streams/base/region.h"
#include "streams/graph/derive.h"
#include "tarn/transform.h"

struct comparison {
    const struct tarn_graph *before, *after;
    struct tarn_change *changes; /* the caller's in the end, to be freed with tarn_free */
    size_t count, room;
    uint32_t *mark;  /* old op -> 1 + the last visited new op whose old op waited for it; or 0 */
    bool *stayed;    /* new op -> does it keep its place among those that stay? */
    uint32_t *pile;  /* of patience sorting: pile -> the new op on top */
    uint32_t *below; /* new op -> the top of the pile before its own, when it was put down */
    bool no_memory;  /* for a change */
};

static void add(struct comparison *comparison, struct tarn_change change)
{
    struct tarn_change *changes = tarn_array_grow(comparison->changes, &comparison->room,
                                                  comparison->count + 1, sizeof *changes);
    comparison->no_memory = comparison->no_memory || !changes;
    if (!changes) return;
    comparison->changes = changes;
    changes[comparison->count++] = change;
}

/* ---- Ops ---- */

static uint32_t old_position(const struct comparison *comparison, uint32_t v)
{
    return comparison->before->ops[comparison->after->ops[v].origin].position;
}

/* A move that comes from no op of the first graph. */
static bool is_inserted(const struct tarn_graph *after, uint32_t v)
{
    return after->ops[v].origin == TARN_NONE;
}

static bool is_in_its_stream(const struct comparison *comparison, uint32_t v)
{
    const struct tarn_graph_op *op = &comparison->after->ops[v];
    return !is_inserted(comparison->after, v) &&
           comparison->before->ops[op->origin].stream == op->stream;
}

/* The first of count piles whose top comes after `position`. */
static uint32_t find_pile(const struct comparison *comparison, uint32_t count, uint32_t position)
{
    uint32_t low = 0, high = count;
    TARN_BISECT(low, high, middle, old_position(comparison, comparison->pile[middle]) < position);
    return low;
}

static void find_stayed(struct comparison *comparison, const struct tarn_graph_stream *stream)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < stream->ops_count; i++) {
        uint32_t v = stream->ops[i];
        assert(comparison->after->ops[v].position == i);
        if (!is_in_its_stream(comparison, v)) continue;
        uint32_t pile = find_pile(comparison, count, old_position(comparison, v));
        comparison->below[v] = pile > 0 ? comparison->pile[pile - 1] : TARN_NONE;
        comparison->pile[pile] = v;
        if (pile == count) count++;
    }
    uint32_t v = count > 0 ? comparison->pile[count - 1] : TARN_NONE;
    for (; v != TARN_NONE; v = comparison->below[v]) comparison->stayed[v] = true;
}

static void compare_op(struct comparison *comparison, uint32_t v)
{
    const struct tarn_graph_op *op = &comparison->after->ops[v];
    const struct tarn_graph_op *old = &comparison->before->ops[op->origin];
    struct tarn_change change = {TARN_MOVED, v, TARN_NONE, old->position, op->position};
    if (is_in_its_stream(comparison, v)) {
        if (!comparison->stayed[v]) add(comparison, change);
        return;
    }
    change = (struct tarn_change){TARN_ASSIGNED, v, TARN_NONE, old->stream, op->stream};
    add(comparison, change);
}

static void compare_control(struct comparison *comparison, uint32_t v)
{
    const struct tarn_graph_op *op = &comparison->after->ops[v];
    const struct tarn_op_extra *extra = tarn_extra(op);
    const struct tarn_graph_op *old = &comparison->before->ops[op->origin];
    const struct tarn_op_extra *old_extra = tarn_extra(old);
    for (uint32_t k = 0; k < old_extra->control_count; k++)
        comparison->mark[old_extra->control[k]] = v + 1;
    for (uint32_t k = 0; k < extra->control_count; k++) {
        uint32_t u = extra->control[k];
        if (is_inserted(comparison->after, u)) continue;
        if (comparison->mark[comparison->after->ops[u].origin] == v + 1) continue;
        add(comparison, (struct tarn_change){TARN_ORDERED, v, TARN_NONE, TARN_NONE, u});
    }
}

/* ---- The comparison ---- */

static void compare(struct comparison *comparison)
{
    for (uint32_t s = 0; s < comparison->after->streams_count; s++)
        find_stayed(comparison, &comparison->after->streams[s]);
    for (uint32_t v = 0; v < comparison->after->ops_count; v++)
        if (!is_inserted(comparison->after, v)) compare_op(comparison, v);
    for (uint32_t v = 0; v < comparison->after->ops_count; v++)
        if (!is_inserted(comparison->after, v)) compare_control(comparison, v);
    for (uint32_t t = 0; t < comparison->before->tensors_count; t++) {
        uint32_t old = comparison->before->tensors[t].root,
                 root = comparison->after->tensors[t].root;
        if (old != root)
            add(comparison, (struct tarn_change){TARN_MERGED, TARN_NONE, t, old, root});
    }
}

/* Could the second graph have come out of the first? */
static bool are_comparable(const struct tarn_graph *before, const struct tarn_graph *after)
{
    if (before->tensors_count > after->tensors_count) return false;
    for (uint32_t v = 0; v < after->ops_count; v++) {
        if (after->ops[v].origin >= before->ops_count && !is_inserted(after, v)) return false;
    }
    return true;
}

enum tarn_status tarn_graph_changes(const struct tarn_graph *before, const struct tarn_graph *after,
                                    struct tarn_change **changes, size_t *count,
                                    struct tarn_error *error)
{
    if (changes) *changes = NULL;
    if (count) *count = 0;
    if (!before || !after || !changes || !count) return tarn_error_null(error, __func__);
    tarn_error_clear(error);
    if (before == after) return TARN_OK;
    if (!are_comparable(before, after))
        return tarn_error_set(error, TARN_USAGE,
                              "the second graph names origins that the first one does not have");
    struct tarn_region region = {.chunks = NULL};
    struct comparison comparison = {
        .before = before,
        .after = after,
        .mark = tarn_region_take(&region, before->ops_count, sizeof *comparison.mark),
        .stayed = tarn_region_take(&region, after->ops_count, sizeof *comparison.stayed),
        .pile = tarn_region_take(&region, after->ops_count, sizeof *comparison.pile),
        .below = tarn_region_take(&region, after->ops_count, sizeof *comparison.below),
    };
    comparison.no_memory = region.is_exhausted;
    if (!comparison.no_memory) compare(&comparison);
    tarn_region_finish(&region);
    if (comparison.no_memory) {
        tarn_free(comparison.changes);
        return tarn_error_no_memory(error);
    }
    *changes = comparison.changes;
    *count = comparison.count;
    return TARN_OK;
}
