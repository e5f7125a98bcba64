/* Finds room among obstacles, which are sorted by their starts; the highest end so far says which
 * obstacles may reach above an offset. A storage only moves up to the end of an obstacle, so one
 * pass upward suffices. Cost: a binary search and the obstacles that the storage's bytes
 * overlap. */
#include "obstacles.h"

#include <assert.h>
#include <stdlib.h>

#include "streams/base/bisect.h"

enum tarn_status tarn_obstacles_add(struct tarn_obstacles *obstacles, struct tarn_region *region,
                                    struct tarn_span span, uint32_t storage)
{
    assert(span.begin >= 0 && span.begin < span.end);
    struct tarn_obstacle *list =
        tarn_region_grow(region, obstacles->list, &obstacles->room, (size_t)obstacles->count + 1,
                         sizeof *obstacles->list);
    if (!list) return TARN_SYSTEM;
    obstacles->list = list;
    obstacles->list[obstacles->count++] = (struct tarn_obstacle){span, storage};
    return TARN_OK;
}

static int compare(const void *left, const void *right)
{
    const struct tarn_obstacle *a = left, *b = right;
    if (a->span.begin != b->span.begin) return a->span.begin < b->span.begin ? -1 : 1;
    return a->storage < b->storage ? -1 : a->storage > b->storage;
}

enum tarn_status tarn_obstacles_sort(struct tarn_obstacles *obstacles, struct tarn_region *region)
{
    int32_t reach = 0;
    obstacles->reach = tarn_region_take(region, obstacles->count, sizeof *obstacles->reach);
    if (!obstacles->reach) return TARN_SYSTEM;
    if (obstacles->count > 0)
        qsort(obstacles->list, obstacles->count, sizeof *obstacles->list, compare);
    for (uint32_t i = 0; i < obstacles->count; i++) {
        if (obstacles->list[i].span.end > reach) reach = obstacles->list[i].span.end;
        obstacles->reach[i] = reach;
    }
    return TARN_OK;
}

/* The first obstacle that may reach above the offset. */
static uint32_t first_above(const struct tarn_obstacles *obstacles, int32_t offset)
{
    uint32_t begin = 0, end = obstacles->count;
    TARN_BISECT(begin, end, middle, obstacles->reach[middle] <= offset);
    return begin;
}

static bool is_met(const struct tarn_obstacles *obstacles, uint32_t i, uint32_t storage)
{
    uint32_t other = obstacles->list[i].storage;
    return other == TARN_NONE ||
           !tarn_reuse_is_safe(obstacles->reuse, other, obstacles->origin[storage]);
}

int32_t tarn_obstacles_clear(const struct tarn_obstacles *obstacles, uint32_t storage,
                             int32_t offset, int32_t size, int32_t *ceiling, uint64_t *looked)
{
    uint32_t first = first_above(obstacles, offset), i;
    assert(size > 0 && (obstacles->reach || obstacles->count == 0));
    for (i = first; i < obstacles->count; i++) {
        struct tarn_span span = obstacles->list[i].span;
        if (span.begin >= offset + size) { /* whether it is met is asked when it matters */
            if (span.begin < *ceiling) *ceiling = span.begin;
            break;
        }
        if (span.end > offset && is_met(obstacles, i, storage)) offset = span.end;
    }
    *looked += i - first;
    return offset;
}
