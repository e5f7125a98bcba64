/* Reads the offsets to keep. A plan file has ids; names come from the graph that it was made for.
 * The file contains this graph if transforms ran, else --keep-graph names it. Cost: O(n log n). */
#include "keep.h"

#include <stdlib.h>
#include <string.h>

struct named {
    const char *name;
    tarn_tensor tensor;
};

static int compare_names(const void *left, const void *right)
{
    const struct named *a = left, *b = right;
    int order = strcmp(a->name, b->name);
    if (order != 0) return order;
    return a->tensor < b->tensor ? -1 : a->tensor > b->tensor;
}

/* All tensors of a graph by their names; NULL: no memory. */
static struct named *list_names(const struct tarn_graph *graph)
{
    uint32_t count = tarn_graph_tensors_count(graph);
    struct named *names = calloc((size_t)count + 1, sizeof *names);
    for (tarn_tensor t = 0; names && t < count; t++) {
        struct tarn_tensor_info info;
        tarn_graph_tensor(graph, t, &info);
        names[t] = (struct named){info.name, t};
    }
    if (names) qsort(names, count, sizeof *names, compare_names);
    return names;
}

/* The only tensor of that name; TARN_NONE: there is none, or there are several. */
static tarn_tensor find_name(const struct named *names, uint32_t count, const char *name)
{
    uint32_t low = 0, high = count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (strcmp(names[middle].name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    bool is_there = low < count && strcmp(names[low].name, name) == 0;
    bool is_one = low + 1 >= count || strcmp(names[low + 1].name, name) != 0;
    return is_there && is_one && name[0] ? names[low].tensor : TARN_NONE;
}

static bool is_planned_root(const struct tarn_graph *graph, tarn_tensor t, uint64_t size)
{
    struct tarn_tensor_info info;
    return tarn_graph_tensor(graph, t, &info) && tarn_graph_root(graph, t) == t &&
           info.kind < TARN_PARAMETER && info.size == size;
}

static enum tarn_status no_memory(struct tarn_error *error)
{
    *error = (struct tarn_error){.status = TARN_SYSTEM, .text = "no memory"};
    return TARN_SYSTEM;
}

/* old: the graph that the plan is of; NULL: not known. */
static enum tarn_status match(struct tarn_keep *keep, const struct tarn_plan_outline *outline,
                              const struct tarn_graph *old, const struct tarn_graph *graph,
                              struct tarn_error *error)
{
    uint32_t count = tarn_graph_tensors_count(graph);
    struct named *names = old ? list_names(graph) : NULL;
    keep->list = calloc(outline->storages.count + 1, sizeof *keep->list);
    if (!keep->list || (old && !names)) {
        free(names);
        return no_memory(error);
    }
    for (size_t i = 0; i < outline->storages.count; i++) {
        struct tarn_placed place = outline->storages.places[i];
        struct tarn_tensor_info info;
        if (old && !tarn_graph_tensor(old, place.id, &info)) continue;
        if (old) place.id = find_name(names, count, info.name);
        if (is_planned_root(graph, place.id, place.size)) keep->list[keep->count++] = place;
    }
    free(names);
    return TARN_OK;
}

enum tarn_status tarn_keep_load(struct tarn_keep *keep, const struct tarn_load_options *load,
                                const struct tarn_graph *graph, struct tarn_error *error)
{
    struct tarn_plan_outline *outline = NULL;
    struct tarn_graph *loaded = NULL;
    enum tarn_status status = tarn_plan_outline_load(keep->plan_path, &outline, error);
    if (status == TARN_OK && keep->graph_path)
        status = tarn_graph_load(keep->graph_path, load, &loaded, error);
    const struct tarn_graph *old = loaded;
    if (status == TARN_OK && outline->graph) old = outline->graph;
    if (status == TARN_OK) status = match(keep, outline, old, graph, error);
    tarn_graph_destroy(loaded);
    tarn_plan_outline_destroy(outline);
    return status;
}

void tarn_keep_print(struct tarn_printer *printer, const struct tarn_keep *keep,
                     const struct tarn_plan *plan)
{
    size_t kept = 0;
    if (!keep->plan_path) return;
    for (size_t i = 0; i < keep->count; i++)
        kept += tarn_plan_offset(plan, keep->list[i].id) == keep->list[i].offset;
    tarn_printer_open(printer, "kept", '{');
    tarn_printer_count(printer, "storages", kept);
    tarn_printer_count(printer, "moved", keep->count - kept);
    tarn_printer_close(printer);
}

void tarn_keep_finish(struct tarn_keep *keep)
{
    free(keep->list);
    keep->list = NULL;
}
