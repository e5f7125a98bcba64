/* Adds implementations to a graph. An op gets, in this order: measurements of the op as written,
 * the rows of its kind, measurements of these, the two parts of a convolution's backward op, and
 * measurements of these. Everything is collected first and then built as a recipe, so that ids
 * stay. Cost: linear in ops, rows of their kinds and measurements, and the pairing. */
#include "additions.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "planner/transform/recipe.h"
#include "streams/base/error.h"
#include "streams/base/options.h"
#include "streams/graph/report.h"

enum measured_part { MEASURED_AS_WRITTEN, MEASURED_WHOLE, MEASURED_PART };

/* ---- Measurements ---- */

static enum measured_part part_measured(const struct tarn_measured_row *row)
{
    if (*row->implementation == 0) return MEASURED_AS_WRITTEN;
    return tarn_is_part_name(row->implementation) ? MEASURED_PART : MEASURED_WHOLE;
}

static enum tarn_status take_row(struct tarn_additions *additions, uint32_t v,
                                 const struct tarn_measured_row *row)
{
    struct tarn_addition *addition = &additions->ops[v];
    struct tarn_implementation implementation = {
        .name = row->implementation, .cost = row->ns, .workspace = row->workspace};
    if (*row->implementation == 0) {
        addition->cost = row->ns;
        addition->workspace = row->workspace;
        addition->is_measured = true;
    }
    for (uint32_t i = 0; i < addition->count; i++) {
        if (strcmp(addition->list[i].name, row->implementation) != 0) continue;
        addition->list[i].cost = row->ns;
        addition->list[i].workspace = row->workspace;
    }
    if (part_measured(row) != MEASURED_WHOLE) return TARN_OK;
    return tarn_additions_append(additions, v, &implementation);
}

static enum tarn_status take_measured(struct tarn_additions *additions, uint32_t v,
                                      enum measured_part part)
{
    size_t count;
    const struct tarn_measured_row *rows =
        tarn_cost_table_measured(additions->costs, additions->graph->ops[v].name, &count);
    enum tarn_status status = TARN_OK;
    for (size_t i = 0; status == TARN_OK && i < count; i++) {
        if (part_measured(&rows[i]) != part) continue;
        status = take_row(additions, v, &rows[i]);
        additions->report.measured++;
    }
    return status;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Every op that was measured must be there: a name with a slip would go unnoticed. */
static enum tarn_status check_measured(const struct tarn_additions *additions,
                                       struct tarn_error *error)
{
    const struct tarn_graph *graph = additions->graph;
    const struct tarn_cost_table *costs = additions->costs;
    if (costs->measured_count == 0) return TARN_OK;
    struct tarn_region_mark mark = tarn_region_mark(additions->region);
    const char **names = tarn_region_take(additions->region, graph->ops_count, sizeof *names);
    if (!names) return TARN_SYSTEM;
    for (uint32_t v = 0; v < graph->ops_count; v++) names[v] = graph->ops[v].name;
    qsort(names, graph->ops_count, sizeof *names, compare_names);
    const struct tarn_measured_row *lost = NULL;
    for (size_t i = 0; i < costs->measured_count && !lost; i++) {
        const char *const *name = &costs->measured[i].op;
        if (!bsearch(name, names, graph->ops_count, sizeof *names, compare_names))
            lost = &costs->measured[i];
    }
    tarn_region_release(additions->region, mark);
    if (!lost) return TARN_OK;
    if (error && error->status == TARN_OK) error->line = lost->line;
    return tarn_error_set(error, TARN_BAD_INPUT, "%s: line %u: the graph has no op %s", costs->path,
                          lost->line, tarn_quote(lost->op).text);
}

/* ---- Ops ---- */

static enum tarn_status add_to_op(struct tarn_additions *additions, uint32_t v, bool split)
{
    bool has_costs = additions->costs && !additions->graph->ops[v].view;
    enum tarn_status status = TARN_OK;
    if (has_costs) status = take_measured(additions, v, MEASURED_AS_WRITTEN);
    if (status == TARN_OK && has_costs) status = tarn_additions_add_rows(additions, v);
    if (status == TARN_OK && has_costs) status = take_measured(additions, v, MEASURED_WHOLE);
    if (status == TARN_OK && split) status = tarn_split_backward(additions, v);
    if (status == TARN_OK && has_costs) status = take_measured(additions, v, MEASURED_PART);
    if (additions->ops[v].count > tarn_extra(&additions->graph->ops[v])->implementations_count)
        additions->report.ops++;
    assert(tarn_addition_is_valid(additions, v));
    return status;
}

/* ---- The graph ---- */

static void amend(const void *context, uint32_t v, struct tarn_op_info *info)
{
    const struct tarn_additions *additions = context;
    const struct tarn_addition *addition = &additions->ops[v];
    info->cost = addition->cost;
    info->workspace = addition->workspace;
    info->implementations = addition->list;
    info->implementations_count = addition->count;
    if (!tarn_extra(&additions->graph->ops[v])->common_is_given)
        info->common = (struct tarn_list){0};
    if (addition->outputs)
        info->outputs = (struct tarn_list){addition->outputs, addition->outputs_count};
}

static enum tarn_status build(const struct tarn_additions *additions, struct tarn_graph *graph,
                              struct tarn_graph **result, struct tarn_error *error)
{
    const struct tarn_implementations_report *report = &additions->report;
    bool is_changed = report->implementations > 0 || report->workspaces > 0 || report->measured > 0;
    struct tarn_recipe recipe = {
        .graph = graph,
        .tensors = additions->kept,
        .tensors_count = additions->kept_count,
        .amend = is_changed ? amend : NULL,
        .context = additions,
    };
    return tarn_recipe_build(&recipe, result, error);
}

enum tarn_status tarn_graph_implementations(struct tarn_graph *graph,
                                            const struct tarn_implementations_options *given,
                                            struct tarn_graph **result, struct tarn_error *error)
{
    if (result) *result = NULL;
    if (!graph || !result) return tarn_error_null(error, __func__);
    struct tarn_implementations_options options;
    tarn_error_clear(error);
    enum tarn_status status =
        tarn_options_take(&options, sizeof options, given, "implementations options", error);
    if (status != TARN_OK) return status;
    if (!options.costs && !options.split_backward) {
        *result = tarn_graph_retain(graph);
        return TARN_OK;
    }
    struct tarn_region region = {.chunks = NULL};
    struct tarn_additions additions;
    status = tarn_additions_init(&additions, &region, graph, options.costs);
    if (status == TARN_OK && options.costs) status = check_measured(&additions, error);
    for (uint32_t v = 0; status == TARN_OK && v < graph->ops_count; v++)
        status = add_to_op(&additions, v, options.split_backward);
    if (status == TARN_OK) status = build(&additions, graph, result, error);
    if (status == TARN_SYSTEM) tarn_error_no_memory(error);
    if (status == TARN_OK)
        tarn_report_give(options.report, options.report_size, &additions.report,
                         sizeof additions.report);
    tarn_region_finish(&region);
    return status;
}

/* ---- From a program ---- */

/* Names and lists stay the caller's: the builder copies them. */
static enum tarn_status put(struct tarn_additions *additions, uint32_t v,
                            struct tarn_implementation implementation)
{
    struct tarn_addition *addition = &additions->ops[v];
    if (!implementation.name) implementation.name = "";
    for (uint32_t i = 0; i < addition->count; i++) {
        if (strcmp(addition->list[i].name, implementation.name) != 0) continue;
        addition->list[i] = implementation;
        return TARN_OK;
    }
    return tarn_additions_append(additions, v, &implementation);
}

static enum tarn_status take_costs(struct tarn_additions *additions,
                                   const struct tarn_op_costs *given, struct tarn_error *error)
{
    enum tarn_status status = TARN_OK;
    if (given->op >= additions->graph->ops_count) {
        tarn_error_set(error, TARN_USAGE, "costs of op %u are given, but the graph has %u ops",
                       given->op, additions->graph->ops_count);
        if (error) error->op = given->op;
        return TARN_USAGE;
    }
    if (!given->implementations && given->implementations_count > 0)
        return tarn_error_set(error, TARN_USAGE, "a list of %zu implementations is NULL",
                              given->implementations_count);
    struct tarn_addition *addition = &additions->ops[given->op];
    if (given->cost != TARN_AS_IT_IS) addition->cost = given->cost;
    if (given->workspace != TARN_AS_IT_IS) addition->workspace = given->workspace;
    for (size_t i = 0; status == TARN_OK && i < given->implementations_count; i++) {
        const struct tarn_implementation *added = &given->implementations[i];
        if ((added->inputs.count > 0 && !added->inputs.ids) ||
            (added->outputs.count > 0 && !added->outputs.ids))
            return tarn_error_set(error, TARN_USAGE,
                                  "a list of an implementation's tensors is NULL");
        status = put(additions, given->op, *added);
    }
    return status;
}

enum tarn_status tarn_graph_with_costs(struct tarn_graph *graph, const struct tarn_op_costs *costs,
                                       size_t count, struct tarn_graph **result,
                                       struct tarn_error *error)
{
    if (result) *result = NULL;
    if (!graph || !result || (!costs && count > 0)) return tarn_error_null(error, __func__);
    struct tarn_region region = {.chunks = NULL};
    struct tarn_additions additions;
    tarn_error_clear(error);
    enum tarn_status status = tarn_additions_init(&additions, &region, graph, NULL);
    for (size_t i = 0; status == TARN_OK && i < count; i++)
        status = take_costs(&additions, &costs[i], error);
    additions.report.measured = count > 0; /* something may have changed */
    if (status == TARN_OK) status = build(&additions, graph, result, error);
    if (status == TARN_SYSTEM) tarn_error_no_memory(error);
    tarn_region_finish(&region);
    return status;
}
