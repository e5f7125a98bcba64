/* Cells by a radix sort of storage ends; owners by painting.
 *
 *     bytes   ├──────── A ────────┤
 *                  ├────── B ──────────┤           producers in order A, B, C
 *                       ├── C ──┤
 *     cells   │  0 │  1 │   2   │ 3 │ 4│           first A A A A B, last A B C B B
 *
 * In the order of producers, every storage paints its unpainted cells: that gives the first storage
 * of each cell; in the reverse order, the last. Painted cells are skipped by paths that are halved
 * at every walk.
 * Cost: linear for sorting, nearly linear for painting. */
#include "cells.h"

#include <assert.h>
#include <string.h>

#include "streams/base/radix.h"
#include "streams/base/region.h"

/* ---- Numbers ---- */

/* Sorts the ends of storages: 2 * storage is its start, 2 * storage + 1 the end after its last
 * byte. */
static bool number_cells(struct tarn_cells *cells, const struct tarn_graph *graph,
                         struct tarn_cell_layout layout, struct tarn_region *region)
{
    size_t count = 2 * (size_t)graph->planned_count;
    struct tarn_radix_item *points = tarn_region_take(region, count, sizeof *points);
    struct tarn_radix_item *spare = tarn_region_take(region, count, sizeof *spare);
    if (!points || !spare) return false;
    for (uint32_t a = 0; a < graph->planned_count; a++) {
        uint64_t begin = layout.offset[a];
        uint64_t end = begin + tarn_storage_reserved(graph, a, layout.alignment);
        points[2 * a] = (struct tarn_radix_item){begin, 2 * a};
        points[2 * a + 1] = (struct tarn_radix_item){end, 2 * a + 1};
    }
    const struct tarn_radix_item *sorted = tarn_radix_sort_items(points, spare, count);
    for (size_t i = 0; i < count; i++) {
        if (i > 0 && sorted[i].key != sorted[i - 1].key) cells->count++;
        (sorted[i].number & 1 ? cells->end : cells->begin)[sorted[i].number / 2] = cells->count;
    }
    return true;
}

/* ---- Owners ---- */

struct brush {
    const struct tarn_cells *cells;
    const struct tarn_graph *graph;
    uint32_t *owner; /* by cell */
    uint32_t *skip;  /* cell -> itself while it is unpainted, else a later cell on the path to an
                      * unpainted one; the cell after the last is never painted */
};

static uint32_t find_bare(const struct brush *brush, uint32_t cell)
{
    uint32_t *skip = brush->skip;
    while (skip[cell] != cell) {
        skip[cell] = skip[skip[cell]];
        cell = skip[cell];
    }
    return cell;
}

static void paint(const struct brush *brush, uint32_t storage)
{
    uint32_t end = brush->cells->end[storage];
    for (uint32_t c = find_bare(brush, brush->cells->begin[storage]); c < end;
         c = find_bare(brush, c)) {
        brush->owner[c] = storage;
        brush->skip[c] = c + 1;
    }
}

/* A workspace that ends before the outputs begin comes before them. */
static void paint_products(const struct brush *brush, uint32_t op, bool backwards)
{
    const struct tarn_graph *graph = brush->graph;
    const struct tarn_graph_op *info = &graph->ops[op];
    const struct tarn_op_extra *extra = tarn_extra(info);
    if (info->view) return;
    if (extra->workspace_storage != TARN_NONE && !backwards) paint(brush, extra->workspace_storage);
    for (uint32_t k = 0; k < info->outputs_count; k++) {
        uint32_t storage = graph->tensors[tarn_outputs(info)[k]].storage;
        if (graph->storages[storage].producer == op) paint(brush, storage);
    }
    if (extra->workspace_storage != TARN_NONE && backwards) paint(brush, extra->workspace_storage);
}

static void clean(const struct brush *brush)
{
    for (uint32_t c = 0; c <= brush->cells->count; c++) {
        brush->owner[c] = TARN_NONE;
        brush->skip[c] = c;
    }
}

static bool find_owners(struct tarn_cells *cells, const struct tarn_graph *graph,
                        struct tarn_region *region)
{
    size_t count = (size_t)cells->count + 1;
    cells->first = tarn_region_take(region, count, sizeof *cells->first);
    cells->last = tarn_region_take(region, count, sizeof *cells->last);
    struct brush brush = {cells, graph, cells->first, NULL};
    brush.skip = tarn_region_take(region, count, sizeof *brush.skip);
    if (!cells->first || !cells->last || !brush.skip) return false;
    clean(&brush);
    for (uint32_t i = 0; i < graph->ops_count; i++) paint_products(&brush, graph->order[i], false);
    brush.owner = cells->last;
    clean(&brush);
    for (uint32_t i = graph->ops_count; i-- > 0;) paint_products(&brush, graph->order[i], true);
    return true;
}

static bool list_by_last(struct tarn_cells *cells, const struct tarn_graph *graph,
                         struct tarn_region *region)
{
    cells->head = tarn_region_take(region, graph->planned_count, sizeof *cells->head);
    cells->next = tarn_region_take(region, cells->count, sizeof *cells->next);
    if (!cells->head || !cells->next) return false;
    for (uint32_t a = 0; a < graph->planned_count; a++) cells->head[a] = TARN_NONE;
    for (uint32_t c = cells->count; c-- > 0;) {
        uint32_t last = cells->last[c];
        if (last == TARN_NONE) continue;
        cells->next[c] = cells->head[last];
        cells->head[last] = c;
    }
    return true;
}

bool tarn_cells_init(struct tarn_cells *cells, struct tarn_region *region,
                     const struct tarn_graph *graph, struct tarn_cell_layout layout)
{
    memset(cells, 0, sizeof *cells);
    cells->begin = tarn_region_take(region, graph->planned_count, sizeof *cells->begin);
    cells->end = tarn_region_take(region, graph->planned_count, sizeof *cells->end);
    if (!cells->begin || !cells->end || !number_cells(cells, graph, layout, region) ||
        !find_owners(cells, graph, region) || !list_by_last(cells, graph, region))
        return false;
    assert(tarn_cells_is_valid(cells, graph));
    return true;
}

static bool has_cell(const struct tarn_cells *cells, uint32_t storage, uint32_t cell)
{
    return cells->begin[storage] <= cell && cell < cells->end[storage];
}

bool tarn_cells_is_valid(const struct tarn_cells *cells, const struct tarn_graph *graph)
{
    uint32_t owned = 0;
    for (uint32_t c = 0; c < cells->count; c++) {
        if ((cells->first[c] == TARN_NONE) != (cells->last[c] == TARN_NONE)) return false;
        if (cells->first[c] == TARN_NONE) continue;
        if (!has_cell(cells, cells->first[c], c) || !has_cell(cells, cells->last[c], c))
            return false;
        owned++;
    }
    for (uint32_t a = 0; a < graph->planned_count; a++) {
        if (cells->begin[a] > cells->end[a] || cells->end[a] > cells->count) return false;
        for (uint32_t c = cells->head[a]; c != TARN_NONE; c = cells->next[c], owned--)
            if (owned == 0 || cells->last[c] != a) return false;
    }
    return owned == 0;
}
