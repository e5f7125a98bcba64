/* An interval map over bytes. All interval ends are known beforehand, so bytes are first numbered
 * as cells (radix sort); interval starts are bits over cells, with a bit above every 64 that is set
 * when one of them is. An assignment clears the starts that it covers, each of which one earlier
 * assignment has set. Cost: linear to make, O(log64 cells) amortised for every operation. */
#include "byte_map.h"

#include <assert.h>
#include <string.h>

#include "streams/base/bitset.h"
#include "streams/base/radix.h"
#include "streams/base/region.h"

/* ---- Cells ---- */

/* The ends of parts: 2 * part is a part's first byte, 2 * part + 1 the end after its last byte; the
 * padding follows the last part of a storage. */
static void write_points(struct tarn_radix_item *points, const struct tarn_plan *plan,
                         enum tarn_byte_map_extent extent)
{
    const struct tarn_graph *graph = plan->graph;
    for (uint32_t a = 0; a < graph->storages_count; a++) {
        const struct tarn_storage *storage = &graph->storages[a];
        uint64_t base = a < graph->planned_count ? 0 : plan->footprint;
        uint64_t begin = base + tarn_plan_place(plan, a)->offset;
        uint64_t bytes = extent == TARN_EXACT_BYTES
                             ? storage->size
                             : tarn_storage_reserved(graph, a, plan->alignment);
        for (uint32_t p = storage->part; p < storage->part + storage->parts_count; p++) {
            bool is_last = p + 1 == storage->part + storage->parts_count;
            uint64_t end = is_last ? bytes : tarn_part(graph, p).offset + tarn_part(graph, p).size;
            points[2 * p] = (struct tarn_radix_item){begin + tarn_part(graph, p).offset, 2 * p};
            points[2 * p + 1] = (struct tarn_radix_item){begin + end, 2 * p + 1};
        }
    }
}

/* Cell 0 is byte 0, so every cell is in an interval. */
static void number_cells(struct tarn_byte_map *map, const struct tarn_radix_item *points,
                         uint32_t count)
{
    uint32_t cell = 0;
    uint64_t address = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (points[i].key != address) cell++;
        address = points[i].key;
        (points[i].number & 1 ? map->end : map->begin)[points[i].number / 2] = cell;
    }
    map->cells_count = cell + 1;
}

static bool make_cells(struct tarn_byte_map *map, struct tarn_region *region,
                       const struct tarn_plan *plan, enum tarn_byte_map_extent extent)
{
    uint32_t count = 2 * plan->graph->parts_count;
    struct tarn_region_mark mark = tarn_region_mark(region);
    struct tarn_radix_item *points = tarn_region_take(region, count, sizeof *points);
    struct tarn_radix_item *spare = tarn_region_take(region, count, sizeof *spare);
    if (!points || !spare) return false;
    write_points(points, plan, extent);
    number_cells(map, tarn_radix_sort_items(points, spare, count), count);
    tarn_region_release(region, mark);
    return true;
}

static bool make_bits(struct tarn_byte_map *map, struct tarn_region *region)
{
    size_t words = map->cells_count;
    do {
        assert(map->levels < TARN_BYTE_MAP_LEVELS);
        words = (words + 63) / 64;
        map->bits[map->levels] = tarn_region_take(region, words, sizeof *map->bits[0]);
        if (!map->bits[map->levels++]) return false;
    } while (words > 1);
    return true;
}

enum tarn_status tarn_byte_map_init(struct tarn_byte_map *map, struct tarn_region *region,
                                    const struct tarn_plan *plan, enum tarn_byte_map_extent extent)
{
    size_t count = plan->graph->parts_count;
    *map = (struct tarn_byte_map){.parts_count = plan->graph->parts_count};
    map->begin = tarn_region_take(region, count, sizeof *map->begin);
    map->end = tarn_region_take(region, count, sizeof *map->end);
    if (!map->begin || !map->end || !make_cells(map, region, plan, extent)) return TARN_SYSTEM;
    map->owner = tarn_region_take(region, map->cells_count, sizeof *map->owner);
    if (!map->owner || !make_bits(map, region)) return TARN_SYSTEM;
    tarn_byte_map_clear(map);
    assert(tarn_byte_map_is_valid(map));
    return TARN_OK;
}

/* ---- Interval starts ---- */

static void set_start(struct tarn_byte_map *map, uint32_t cell)
{
    for (uint32_t l = 0; l < map->levels; l++, cell /= 64) tarn_set_add(map->bits[l], cell);
}

static void clear_start(struct tarn_byte_map *map, uint32_t cell)
{
    for (uint32_t l = 0;; l++, cell /= 64) { /* the start of cell 0 is never cleared */
        tarn_set_drop(map->bits[l], cell);
        if (map->bits[l][cell / 64] != 0) return;
    }
}

/* From a set bit of level l + 1 down to the last (or first) cell under it. */
static uint32_t descend(const struct tarn_byte_map *map, uint32_t level, uint32_t index, bool last)
{
    while (level-- > 0) {
        uint64_t word = map->bits[level][index];
        index = index * 64 + (uint32_t)(last ? 63 - __builtin_clzll(word) : __builtin_ctzll(word));
    }
    return index;
}

uint32_t tarn_byte_map_floor(const struct tarn_byte_map *map, uint32_t cell)
{
    uint32_t index = cell;
    for (uint32_t l = 0;; l++) { /* cell 0 is a start */
        /* bits up to `index` on the lowest level, below it on the others */
        uint64_t below = (UINT64_C(1) << (index % 64)) - 1;
        if (l == 0) below = below << 1 | 1;
        uint64_t word = map->bits[l][index / 64] & below;
        if (word != 0)
            return descend(map, l, index / 64 * 64 + 63 - (uint32_t)__builtin_clzll(word), true);
        index /= 64;
    }
}

uint32_t tarn_byte_map_next(const struct tarn_byte_map *map, uint32_t cell)
{
    uint32_t index = cell;
    for (uint32_t l = 0; l < map->levels; l++) {
        uint64_t above = ~((UINT64_C(2) << (index % 64)) - 1); /* 0 when index % 64 is 63 */
        uint64_t word = map->bits[l][index / 64] & above;
        if (word != 0)
            return descend(map, l, index / 64 * 64 + (uint32_t)__builtin_ctzll(word), false);
        index /= 64;
    }
    return map->cells_count;
}

/* ---- Owning ---- */

void tarn_byte_map_clear(struct tarn_byte_map *map)
{
    size_t words = map->cells_count;
    for (uint32_t l = 0; l < map->levels; l++) {
        words = (words + 63) / 64;
        memset(map->bits[l], 0, words * sizeof *map->bits[l]);
    }
    set_start(map, 0);
    map->owner[0] = TARN_NONE;
}

void tarn_byte_map_assign(struct tarn_byte_map *map, uint32_t part)
{
    uint32_t begin = map->begin[part], end = map->end[part];
    if (!tarn_set_has(map->bits[0], end)) {
        map->owner[end] = map->owner[tarn_byte_map_floor(map, end)];
        set_start(map, end);
    }
    for (uint32_t c = tarn_byte_map_next(map, begin); c < end; c = tarn_byte_map_next(map, c))
        clear_start(map, c);
    map->owner[begin] = part;
    if (!tarn_set_has(map->bits[0], begin)) set_start(map, begin);
}

/* Does every bit of level l + 1 say whether its word of level l has bits? */
static bool are_levels_equal(const struct tarn_byte_map *map, uint32_t level, size_t words)
{
    for (uint32_t w = 0; w < words; w++)
        if (tarn_set_has(map->bits[level + 1], w) != (map->bits[level][w] != 0)) return false;
    return true;
}

bool tarn_byte_map_is_valid(const struct tarn_byte_map *map)
{
    size_t words = ((size_t)map->cells_count + 63) / 64;
    if (map->levels == 0 || !tarn_set_has(map->bits[0], 0)) return false;
    for (uint32_t l = 0; l + 1 < map->levels; l++, words = (words + 63) / 64)
        if (!are_levels_equal(map, l, words)) return false;
    for (uint32_t c = 0; c < map->cells_count; c = tarn_byte_map_next(map, c)) {
        uint32_t owner = map->owner[c];
        if (owner == TARN_NONE) continue;
        if (owner >= map->parts_count || c < map->begin[owner] || c >= map->end[owner])
            return false;
    }
    return true;
}
