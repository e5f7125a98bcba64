/* What changed between a graph and a transform's result, by comparing the two: nothing is taken on
 * the transform's word. Ops are matched by `origin`, tensors by id. In each stream the ops that
 * stayed are a longest increasing subsequence of their old places (patience sorting); the others
 * have moved. Cost: O(n log n) for n ops, plus the list entries. */
#include <stdlib.h>

#include "streams/base/error.h"
#include "streams/graph/derive.h"
#include "tarn/transform.h"

struct comparison {
    const struct tarn_graph *before, *after;
    struct tarn_change *changes;
    size_t count, capacity;
    uint32_t *mark; /* old op -> new op + 1 that follows it directly in the old graph */
    bool *stayed;   /* new op */
    uint32_t *pile; /* of patience sorting: new op on top */
    uint32_t *below;
    bool no_memory;
};

static void add(struct comparison *all, struct tarn_change change)
{
    if (all->count == all->capacity) {
        size_t larger = all->capacity ? 2 * all->capacity : 64;
        struct tarn_change *moved = realloc(all->changes, larger * sizeof *moved);
        if (!moved) {
            all->no_memory = true;
            return;
        }
        all->changes = moved;
        all->capacity = larger;
    }
    all->changes[all->count++] = change;
}

/* ---- Ops ---- */

static uint32_t old_position(const struct comparison *all, uint32_t v)
{
    return all->before->ops[all->after->ops[v].origin].position;
}

static bool is_in_its_stream(const struct comparison *all, uint32_t v)
{
    const struct tarn_graph_op *op = &all->after->ops[v];
    return all->before->ops[op->origin].stream == op->stream;
}

/* The first of count piles whose top comes after `position`. */
static uint32_t find_pile(const struct comparison *all, uint32_t count, uint32_t position)
{
    uint32_t low = 0, high = count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (old_position(all, all->pile[middle]) < position)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void find_stayed(struct comparison *all, const struct tarn_graph_stream *stream)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < stream->ops_count; i++) {
        uint32_t v = stream->ops[i];
        if (!is_in_its_stream(all, v)) continue;
        uint32_t pile = find_pile(all, count, old_position(all, v));
        all->below[v] = pile > 0 ? all->pile[pile - 1] : TARN_NONE;
        all->pile[pile] = v;
        if (pile == count) count++;
    }
    uint32_t v = count > 0 ? all->pile[count - 1] : TARN_NONE;
    for (; v != TARN_NONE; v = all->below[v]) all->stayed[v] = true;
}

static void compare_op(struct comparison *all, uint32_t v)
{
    const struct tarn_graph_op *op = &all->after->ops[v];
    const struct tarn_graph_op *old = &all->before->ops[op->origin];
    struct tarn_change change = {TARN_MOVED, v, TARN_NONE, old->position, op->position};
    if (is_in_its_stream(all, v)) {
        if (!all->stayed[v]) add(all, change);
        return;
    }
    change = (struct tarn_change){TARN_ASSIGNED, v, TARN_NONE, old->stream, op->stream};
    add(all, change);
}

static void compare_control(struct comparison *all, uint32_t v)
{
    const struct tarn_graph_op *op = &all->after->ops[v];
    const struct tarn_graph_op *old = &all->before->ops[op->origin];
    for (uint32_t k = 0; k < old->control_count; k++) all->mark[old->control[k]] = v + 1;
    for (uint32_t k = 0; k < op->control_count; k++) {
        uint32_t u = op->control[k];
        if (all->mark[all->after->ops[u].origin] == v + 1) continue;
        add(all, (struct tarn_change){TARN_ORDERED, v, TARN_NONE, TARN_NONE, u});
    }
}

/* ---- The whole ---- */

static void compare(struct comparison *all)
{
    for (uint32_t s = 0; s < all->after->streams_count; s++)
        find_stayed(all, &all->after->streams[s]);
    for (uint32_t v = 0; v < all->after->ops_count; v++) compare_op(all, v);
    for (uint32_t v = 0; v < all->after->ops_count; v++) compare_control(all, v);
    for (uint32_t t = 0; t < all->before->tensors_count; t++) {
        uint32_t old = all->before->tensors[t].root, root = all->after->tensors[t].root;
        if (old != root) add(all, (struct tarn_change){TARN_MERGED, TARN_NONE, t, old, root});
    }
}

/* Could the second graph have come out of the first? */
static bool are_comparable(const struct tarn_graph *before, const struct tarn_graph *after)
{
    if (before->tensors_count > after->tensors_count) return false;
    for (uint32_t v = 0; v < after->ops_count; v++) {
        if (after->ops[v].origin >= before->ops_count) return false;
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
    struct comparison all = {
        .before = before,
        .after = after,
        .mark = calloc((size_t)before->ops_count + 1, sizeof *all.mark),
        .stayed = calloc((size_t)after->ops_count + 1, sizeof *all.stayed),
        .pile = malloc(((size_t)after->ops_count + 1) * sizeof *all.pile),
        .below = malloc(((size_t)after->ops_count + 1) * sizeof *all.below),
    };
    all.no_memory = !all.mark || !all.stayed || !all.pile || !all.below;
    if (!all.no_memory) compare(&all);
    free(all.mark);
    free(all.stayed);
    free(all.pile);
    free(all.below);
    if (all.no_memory) {
        free(all.changes);
        return tarn_error_no_memory(error);
    }
    *changes = all.changes;
    *count = all.count;
    return TARN_OK;
}
