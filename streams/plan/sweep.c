/* A sweep over the arena, memory space by memory space: storages of both plans in the order of
 * their first bytes, with a list of the storages that have not ended yet. Cost: O(n log n) for n
 * storages, and O(1) for every pair. */
#include "sweep.h"

#include <stdlib.h>

static int compare_extents(const void *a, const void *b)
{
    const struct tarn_extent *x = a, *y = b;
    if (x->space != y->space) return x->space < y->space ? -1 : 1;
    return (x->begin > y->begin) - (x->begin < y->begin);
}

bool tarn_extents_init(struct tarn_extents *extents, const struct tarn_plan *plan, uint32_t first,
                       uint32_t last, struct tarn_region *region)
{
    uint32_t count = last - first;
    *extents = (struct tarn_extents){.count = 0};
    extents->items = tarn_region_take(region, count, sizeof *extents->items);
    extents->active = tarn_region_take(region, count, sizeof *extents->active);
    if (!extents->items || !extents->active) return false;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t begin = tarn_plan_offset_in_space(plan, first + i);
        const struct tarn_storage *storage = &plan->graph->storages[first + i];
        uint64_t size = storage->persistent
                            ? storage->size
                            : tarn_storage_reserved(plan->graph, first + i, plan->alignment);
        if (size == 0) continue;
        extents->items[extents->count++] =
            (struct tarn_extent){storage->space, begin, begin + size, first + i};
    }
    if (extents->count > 0)
        qsort(extents->items, extents->count, sizeof *extents->items, compare_extents);
    return true;
}

static void drop_ended(struct tarn_extents *extents, const struct tarn_extent *met)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < extents->active_count; i++) {
        const struct tarn_extent *active = &extents->active[i];
        if (active->space == met->space && active->end > met->begin)
            extents->active[kept++] = *active;
    }
    extents->active_count = kept;
}

bool tarn_sweep_next(struct tarn_sweep *sweep)
{
    const struct tarn_extents *from = &sweep->sides[0], *to = &sweep->sides[1];
    bool has_from = sweep->next[0] < from->count, has_to = sweep->next[1] < to->count;
    if (!has_from && !has_to) return false;
    sweep->side = !has_from || (has_to && compare_extents(&to->items[sweep->next[1]],
                                                          &from->items[sweep->next[0]]) < 0);
    struct tarn_extents *own = &sweep->sides[sweep->side];
    sweep->met = own->items[sweep->next[sweep->side]++];
    own->active[own->active_count++] = sweep->met;
    drop_ended(own, &sweep->met);
    drop_ended(&sweep->sides[1 - sweep->side], &sweep->met);
    return true;
}
