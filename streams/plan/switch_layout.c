/* Matches the persistent tensors of plans that share an arena by name; they must have the same
 * offsets. Cost: O(n log n) for n persistent storages, and their names' lengths. */
#include <stdlib.h>
#include <string.h>

#include "streams/graph/report.h"
#include "sweep.h"
#include "switch.h"

/* ---- Memory spaces ---- */

enum tarn_status tarn_switch_check_spaces(const struct tarn_graph *first,
                                          const struct tarn_graph *other, struct tarn_error *error)
{
    bool equal = first->spaces_count == other->spaces_count;
    for (uint32_t s = 0; equal && s < first->spaces_count; s++)
        equal = first->spaces[s].kind == other->spaces[s].kind &&
                strcmp(first->spaces[s].name, other->spaces[s].name) == 0;
    if (equal) return TARN_OK;
    return tarn_error_set(
        error, TARN_USAGE,
        "graph %s has not the memory spaces of graph %s: plans that share an arena "
        "must declare the same ones",
        tarn_quote(other->name).text, tarn_quote(first->name).text);
}

/* ---- Persistent tensors by name ---- */

struct named {
    const char *name;
    uint32_t storage;
};

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const struct named *)a)->name, ((const struct named *)b)->name);
}

static struct named *sort_names(const struct tarn_graph *graph, struct tarn_region *region)
{
    uint32_t count = graph->storages_count - graph->planned_count;
    struct named *names = tarn_region_take(region, count, sizeof *names);
    for (uint32_t i = 0; names && i < count; i++) {
        uint32_t a = graph->planned_count + i;
        names[i] = (struct named){graph->tensors[graph->storages[a].tensor].name, a};
    }
    if (names && count > 0) qsort(names, count, sizeof *names, compare_names);
    return names;
}

static enum tarn_status check_names(const struct tarn_graph *graph, const struct named *names,
                                    struct tarn_error *error)
{
    uint32_t count = graph->storages_count - graph->planned_count;
    for (uint32_t i = 0; i < count; i++) {
        bool is_twice = i > 0 && strcmp(names[i].name, names[i - 1].name) == 0;
        if (names[i].name[0] && !is_twice) continue;
        tarn_tensor tensor = graph->storages[names[i].storage].tensor;
        tarn_error_set(error, TARN_USAGE,
                       "%s of graph %s %s: plans that share an arena know their persistent tensors "
                       "by name",
                       tarn_tensor_label(graph, tensor).text, tarn_quote(graph->name).text,
                       is_twice ? "has a name that another one has, too" : "has no name");
        if (error) error->tensor = tensor;
        return TARN_USAGE;
    }
    return TARN_OK;
}

static enum tarn_status check_sizes(const struct tarn_graph *from, uint32_t a,
                                    const struct tarn_graph *to, uint32_t b,
                                    struct tarn_error *error)
{
    const struct tarn_storage *x = &from->storages[a], *y = &to->storages[b];
    bool are_inputs =
        from->tensors[x->tensor].kind == TARN_INPUT && to->tensors[y->tensor].kind == TARN_INPUT;
    if (x->space == y->space && (x->size == y->size || are_inputs)) return TARN_OK;
    if (error && error->status == TARN_OK) error->tensor = y->tensor;
    if (x->space != y->space)
        return tarn_error_set(error, TARN_USAGE,
                              "%s is in memory space %u in graph %s but in %u in graph %s",
                              tarn_tensor_label(to, y->tensor).text, y->space,
                              tarn_quote(to->name).text, x->space, tarn_quote(from->name).text);
    return tarn_error_set(error, TARN_USAGE,
                          "%s has %s in graph %s but %llu in graph %s: what plans share "
                          "must be equally large",
                          tarn_tensor_label(to, y->tensor).text, tarn_bytes_phrase(y->size).text,
                          tarn_quote(to->name).text, (unsigned long long)x->size,
                          tarn_quote(from->name).text);
}

enum tarn_status tarn_switch_match(const struct tarn_plan *from, const struct tarn_plan *to,
                                   struct tarn_region *region, uint32_t **same,
                                   struct tarn_error *error)
{
    const struct tarn_graph *f = from->graph, *t = to->graph;
    uint32_t f_count = f->storages_count - f->planned_count;
    uint32_t t_count = t->storages_count - t->planned_count;
    struct tarn_region working = {.chunks = NULL};
    struct named *f_names = sort_names(f, &working), *t_names = sort_names(t, &working);
    *same = tarn_region_take(region, t_count, sizeof **same);
    enum tarn_status status = f_names && t_names && *same ? TARN_OK : tarn_error_no_memory(error);
    if (status == TARN_OK) status = tarn_switch_check_spaces(f, t, error);
    if (status == TARN_OK) status = check_names(f, f_names, error);
    if (status == TARN_OK) status = check_names(t, t_names, error);
    for (uint32_t i = 0, k = 0; i < t_count && status == TARN_OK; i++) {
        while (k < f_count && strcmp(f_names[k].name, t_names[i].name) < 0) k++;
        bool is_same = k < f_count && strcmp(f_names[k].name, t_names[i].name) == 0;
        (*same)[t_names[i].storage - t->planned_count] = is_same ? f_names[k].storage : TARN_NONE;
        if (is_same) status = check_sizes(f, f_names[k].storage, t, t_names[i].storage, error);
    }
    tarn_region_finish(&working);
    return status;
}

/* ---- Layout ---- */

static enum tarn_status check_place(const struct tarn_switch *pair, uint32_t a, uint32_t b,
                                    struct tarn_error *error)
{
    const struct tarn_graph *from = pair->from->graph, *to = pair->to->graph;
    uint64_t there = tarn_plan_offset_in_space(pair->from, a);
    uint64_t here = tarn_plan_offset_in_space(pair->to, b);
    if (pair->same[b - to->planned_count] == a && there == here) return TARN_OK;
    tarn_tensor x = from->storages[a].tensor, y = to->storages[b].tensor;
    if (error && error->status == TARN_OK) error->tensor = y;
    return tarn_error_set(error, TARN_USAGE,
                          "%s at byte %llu of the persistent part lies on %s of graph %s at byte "
                          "%llu: plan both together with tarn_family_plan",
                          tarn_tensor_label(to, y).text, (unsigned long long)here,
                          tarn_tensor_label(from, x).text, tarn_quote(from->name).text,
                          (unsigned long long)there);
}

static enum tarn_status check_moved(const struct tarn_switch *pair, struct tarn_error *error)
{
    const struct tarn_graph *to = pair->to->graph;
    for (uint32_t b = to->planned_count; b < to->storages_count; b++) {
        uint32_t a = pair->same[b - to->planned_count];
        if (a == TARN_NONE) continue;
        uint64_t there = tarn_plan_offset_in_space(pair->from, a);
        uint64_t here = tarn_plan_offset_in_space(pair->to, b);
        if (there == here) continue;
        if (error && error->status == TARN_OK) error->tensor = to->storages[b].tensor;
        return tarn_error_set(
            error, TARN_USAGE,
            "%s lies at byte %llu of the persistent part, and at %llu in the plan "
            "of graph %s: plan both together with tarn_family_plan",
            tarn_tensor_label(to, to->storages[b].tensor).text, (unsigned long long)here,
            (unsigned long long)there, tarn_quote(pair->from->graph->name).text);
    }
    return TARN_OK;
}

enum tarn_status tarn_switch_check_layout(const struct tarn_switch *pair, struct tarn_error *error)
{
    const struct tarn_graph *f = pair->from->graph, *t = pair->to->graph;
    struct tarn_region region = {.chunks = NULL};
    struct tarn_sweep sweep = {.side = 0};
    enum tarn_status status = check_moved(pair, error);
    bool has_memory =
        tarn_extents_init(&sweep.sides[0], pair->from, f->planned_count, f->storages_count,
                          &region) &&
        tarn_extents_init(&sweep.sides[1], pair->to, t->planned_count, t->storages_count, &region);
    if (status == TARN_OK && !has_memory) status = tarn_error_no_memory(error);
    while (status == TARN_OK && tarn_sweep_next(&sweep)) {
        const struct tarn_extents *others = &sweep.sides[1 - sweep.side];
        for (uint32_t i = 0; i < others->active_count && status == TARN_OK; i++) {
            uint32_t other = others->active[i].storage, met = sweep.met.storage;
            status = sweep.side ? check_place(pair, other, met, error)
                                : check_place(pair, met, other, error);
        }
    }
    tarn_region_finish(&region);
    return status;
}
