/* A segment tree over windows. A node has the union of the spans that were added to all of its
 * windows and not to all of its parent's windows. So a span that many windows share costs a
 * logarithm of their number, and a span that lies within others costs a window nothing. */
#include "around.h"

#include <assert.h>

/* Sorted, disjoint. */
struct tarn_spans {
    struct tarn_span *list;
    size_t room; /* of the list */
    uint32_t count;
};

bool tarn_span_tree_init(struct tarn_span_tree *tree, struct tarn_region *region,
                         uint32_t windows_count)
{
    for (tree->leaves = 1; tree->leaves < windows_count;) tree->leaves *= 2;
    tree->node = tarn_region_take(region, 2 * (size_t)tree->leaves, sizeof *tree->node);
    return tree->node != NULL;
}

static bool add(struct tarn_region *region, struct tarn_spans *spans, struct tarn_span span)
{
    struct tarn_span *last = spans->count > 0 ? &spans->list[spans->count - 1] : NULL;
    assert(!last || span.begin >= last->begin);
    if (last && span.begin <= last->end) {
        if (span.end > last->end) last->end = span.end;
        return true;
    }
    struct tarn_span *list =
        tarn_region_grow(region, spans->list, &spans->room, spans->count + 1u, sizeof *list);
    if (!list) return false;
    spans->list = list;
    list[spans->count++] = span;
    return true;
}

bool tarn_span_tree_add(const struct tarn_span_tree *tree, struct tarn_region *region,
                        uint32_t begin, uint32_t end, struct tarn_span span)
{
    bool ok = true;
    begin += tree->leaves;
    end += tree->leaves;
    for (; ok && begin < end; begin /= 2, end /= 2) {
        if (begin % 2) ok = add(region, &tree->node[begin++], span);
        if (ok && end % 2) ok = add(region, &tree->node[--end], span);
    }
    return ok;
}

enum tarn_status tarn_span_tree_collect(const struct tarn_span_tree *tree,
                                        struct tarn_region *region, uint32_t w,
                                        struct tarn_obstacles *obstacles)
{
    enum tarn_status status = TARN_OK;
    for (uint32_t n = tree->leaves + w; n > 0; n /= 2)
        for (uint32_t i = 0; status == TARN_OK && i < tree->node[n].count; i++)
            status = tarn_obstacles_add(obstacles, region, tree->node[n].list[i], TARN_NONE);
    return status;
}
