/* Streams for a graph: sorts the ops into pools by their kind, lets one of two methods decide (see
 * assign.h), and builds and measures the new graph. Cost: theirs, and a bound of either graph.
 */
#include <assert.h>
#include <stdio.h>

#include "assign.h"
#include "planner/transform/coupled.h"
#include "streams/base/error.h"
#include "streams/base/options.h"
#include "streams/graph/validate.h"
#include "streams/order/reserved.h"
#include "streams/text/op_kinds.h"

enum { STREAMS_DEFAULT = 2 };
enum pool { COMPUTE, COMMUNICATION, COPY, POOLS };

struct assigning {
    struct tarn_assign_options options;
    struct tarn_graph *graph;
    struct tarn_region region; /* of all arrays below */
    const uint64_t *reserved;  /* planned storage of the graph -> bytes */
    struct tarn_reorder_model model;
    uint8_t *pool; /* node -> enum pool */
    struct tarn_stream_pools pools;
    struct tarn_assignment assignment;
    struct tarn_assign_report report;
};

/* ---- Pools ---- */

static enum pool pool_of(const struct tarn_assign_options *options, const struct tarn_graph *graph,
                         uint32_t v)
{
    const char *const *words = options->communication_words, *const *copies = options->copy_words;
    const struct tarn_graph_op *op = &graph->ops[v];
    enum tarn_op_class op_class = tarn_graph_op_class(graph, v);
    bool is_said = op->op_class != TARN_CLASS_UNKNOWN;
    if (words && !is_said ? tarn_kind_has_word(op->kind, words, options->communication_words_count)
                          : op_class == TARN_CLASS_COLLECTIVE)
        return COMMUNICATION;
    if (copies && !is_said ? tarn_kind_has_word(op->kind, copies, options->copy_words_count)
                           : op_class == TARN_CLASS_COPY)
        return COPY;
    return COMPUTE;
}

/* Pools without ops get no streams. */
static void fill_pools(struct assigning *assigning)
{
    uint32_t count[POOLS] = {0};
    for (uint32_t v = 0; v < assigning->model.nodes_count; v++) {
        assigning->pool[v] =
            (uint8_t)pool_of(&assigning->options, assigning->graph, assigning->model.op[v]);
        count[assigning->pool[v]]++;
    }
    uint32_t streams[POOLS] = {assigning->options.streams, count[COMMUNICATION] > 0,
                               count[COPY] > 0};
    assigning->pools = (struct tarn_stream_pools){.count = POOLS, .pool = assigning->pool};
    for (uint32_t p = 0; p < POOLS; p++) {
        assigning->pools.begin[p] = assigning->pools.streams_count;
        assigning->pools.end[p] = assigning->pools.streams_count += streams[p];
    }
}

/* ---- The new graph ---- */

static void name_stream(const struct assigning *assigning, uint32_t s, char *name, size_t size)
{
    const uint32_t *begin = assigning->pools.begin;
    if (assigning->options.mode == TARN_ASSIGN_CONCURRENCY)
        snprintf(name, size, "chain%u", s);
    else if (s < begin[COMMUNICATION])
        snprintf(name, size, "compute%u", s);
    else
        snprintf(name, size, "%s", s < begin[COPY] ? "communication" : "copy");
}

/* Views go into the stream of the op that they wait for. */
static void fill_streams(const struct assigning *assigning, uint32_t *stream)
{
    for (uint32_t v = 0; v < assigning->graph->ops_count; v++) {
        uint32_t node = assigning->model.node_of[v];
        stream[v] = node == TARN_NONE ? 0 : assigning->assignment.stream[node];
    }
}

enum { NAME_SIZE = 24 };

static enum tarn_status build(struct assigning *assigning, struct tarn_graph **result,
                              struct tarn_error *error)
{
    uint32_t count = assigning->assignment.streams_count, ops_count = assigning->graph->ops_count;
    struct tarn_region *region = &assigning->region;
    char(*names)[NAME_SIZE] = tarn_region_take(region, count, sizeof *names);
    const char **list = tarn_region_take(region, count, sizeof *list);
    uint32_t *stream = tarn_region_take(region, ops_count, sizeof *stream);
    uint32_t *order = tarn_region_take(region, ops_count, sizeof *order);
    if (region->is_exhausted ||
        tarn_reorder_list(&assigning->model, assigning->assignment.order, order) != TARN_OK)
        return tarn_error_no_memory(error);
    for (uint32_t s = 0; s < count; s++) {
        name_stream(assigning, s, names[s], NAME_SIZE);
        list[s] = names[s];
    }
    fill_streams(assigning, stream);
    struct tarn_recipe recipe = {.graph = assigning->graph,
                                 .order = order,
                                 .stream = stream,
                                 .stream_names = list,
                                 .streams_count = count};
    return tarn_recipe_build(&recipe, result, error);
}

/* ---- The report ---- */

/* The longest chain, and an even share of the work. */
static enum tarn_status find_limits(struct assigning *assigning)
{
    const struct tarn_reorder_model *model = &assigning->model;
    uint64_t work[POOLS] = {0};
    struct tarn_region_mark mark = tarn_region_mark(&assigning->region);
    uint64_t *end = tarn_region_take(&assigning->region, model->nodes_count, sizeof *end);
    if (!end) return TARN_SYSTEM;
    for (uint32_t v = 0; v < model->nodes_count; v++) {
        const struct tarn_graph_op *op = &assigning->graph->ops[model->op[v]];
        uint64_t cost = op->view ? 0 : op->cost;
        for (uint32_t i = model->predecessors.begin[v]; i < model->predecessors.begin[v + 1]; i++)
            if (end[model->predecessors.ops[i]] > end[v]) end[v] = end[model->predecessors.ops[i]];
        end[v] += cost;
        work[assigning->pool[v]] += cost;
        assigning->report.serial_ns += cost;
        if (end[v] > assigning->report.chain_ns) assigning->report.chain_ns = end[v];
    }
    for (uint32_t p = 0; p < POOLS && assigning->options.mode == TARN_ASSIGN_SCHEDULE; p++) {
        uint32_t streams = assigning->pools.end[p] - assigning->pools.begin[p];
        uint64_t share = streams > 0 ? work[p] / streams : 0;
        if (share > assigning->report.work_ns) assigning->report.work_ns = share;
    }
    tarn_region_release(&assigning->region, mark);
    assigning->report.limit_ns = assigning->report.chain_ns;
    if (assigning->options.mode == TARN_ASSIGN_CONCURRENCY) return TARN_OK;
    return tarn_assign_limit(&assigning->report.limit_ns, &assigning->region, &assigning->model,
                             &assigning->pools);
}

static enum tarn_status measure(const struct tarn_graph *graph, uint32_t wait_ns, uint64_t *ns,
                                uint32_t *waits)
{
    struct tarn_pace pace;
    enum tarn_status status = tarn_pace_init(&pace, graph, wait_ns);
    if (status != TARN_OK) return status;
    *ns = pace.timeline.makespan_ns;
    *waits = pace.waits_count;
    tarn_pace_finish(&pace);
    return TARN_OK;
}

static enum tarn_status find_bound(struct assigning *assigning, const struct tarn_graph *graph,
                                   uint64_t *bound)
{
    struct tarn_coupled coupled;
    const uint64_t *reserved;
    uint64_t alignment = assigning->options.alignment;
    enum tarn_status status =
        tarn_reserved_sizes(&reserved, &assigning->region, graph, alignment, NULL);
    if (status != TARN_OK) return status;
    status = tarn_coupled_init(&coupled, graph, NULL, 0, reserved, alignment);
    if (status == TARN_OK) {
        *bound = coupled.bound.bound;
        tarn_coupled_finish(&coupled);
    }
    return status;
}

static enum tarn_status fill_report(struct assigning *assigning, const struct tarn_graph *after)
{
    struct tarn_assign_report *report = &assigning->report;
    uint32_t wait_ns = assigning->options.wait_ns, waits;
    report->streams = after->streams_count;
    report->arcs = after->predecessors.begin[after->ops_count];
    enum tarn_status status = find_limits(assigning);
    if (status == TARN_OK) status = measure(assigning->graph, wait_ns, &report->before_ns, &waits);
    if (status == TARN_OK) status = measure(after, 0, &report->after_no_wait_ns, &waits);
    if (status == TARN_OK) status = measure(after, wait_ns, &report->after_ns, &report->waits);
    if (status == TARN_OK) status = find_bound(assigning, assigning->graph, &report->bound_before);
    if (status == TARN_OK) status = find_bound(assigning, after, &report->bound_after);
    return status;
}

/* ---- The transform ---- */

static void fill_defaults(struct tarn_assign_options *options)
{
    if (options->streams == 0) options->streams = STREAMS_DEFAULT;
    if (options->wait_ns == 0) options->wait_ns = TARN_WAIT_NS;
}

static enum tarn_status check_options(struct tarn_assign_options *options, struct tarn_error *error)
{
    if (tarn_options_alignment(&options->alignment, error) != TARN_OK) return TARN_USAGE;
    if (options->streams > TARN_STREAMS_MAX - POOLS)
        return tarn_error_set(error, TARN_USAGE, "%u streams were asked for, at most %u may be",
                              options->streams, (unsigned)(TARN_STREAMS_MAX - POOLS));
    if ((unsigned)options->mode > TARN_ASSIGN_CONCURRENCY)
        return tarn_error_set(error, TARN_USAGE, "there is no method %u to assign streams",
                              (unsigned)options->mode);
    const char *const *words = options->communication_words, *const *copies = options->copy_words;
    enum tarn_status status = TARN_OK;
    if (words)
        status = tarn_options_words(words, options->communication_words_count,
                                    "communication words", error);
    if (status == TARN_OK && copies)
        status = tarn_options_words(copies, options->copy_words_count, "copy words", error);
    return status;
}

static enum tarn_status decide(struct assigning *assigning)
{
    enum tarn_status status = tarn_reorder_model_init(&assigning->model, &assigning->region,
                                                      assigning->graph, assigning->reserved);
    if (status != TARN_OK) return status;
    assigning->pool =
        tarn_region_take(&assigning->region, assigning->model.nodes_count, sizeof *assigning->pool);
    if (!assigning->pool) return TARN_SYSTEM;
    fill_pools(assigning);
    if (assigning->options.mode == TARN_ASSIGN_CONCURRENCY)
        return tarn_assign_paths(&assigning->assignment, &assigning->region, &assigning->model);
    return tarn_assign_schedule(&assigning->assignment, &assigning->region, &assigning->model,
                                &assigning->pools, assigning->options.wait_ns);
}

static enum tarn_status assign(struct assigning *assigning, struct tarn_graph **result,
                               struct tarn_error *error)
{
    if (decide(assigning) != TARN_OK) return tarn_error_no_memory(error);
    assert(tarn_assignment_is_valid(&assigning->assignment, &assigning->model));
    enum tarn_status status = build(assigning, result, error);
    if (status != TARN_OK || !assigning->options.report) return status;
    if (fill_report(assigning, *result) != TARN_OK) {
        tarn_graph_destroy(*result);
        *result = NULL;
        return tarn_error_no_memory(error);
    }
    tarn_report_give(assigning->options.report, assigning->options.report_size, &assigning->report,
                     sizeof assigning->report);
    return TARN_OK;
}

enum tarn_status tarn_graph_assign(struct tarn_graph *graph,
                                   const struct tarn_assign_options *given,
                                   struct tarn_graph **result, struct tarn_error *error)
{
    if (result) *result = NULL;
    if (!graph || !result) return tarn_error_null(error, __func__);
    struct assigning assigning = {.graph = graph};
    tarn_error_clear(error);
    enum tarn_status status = tarn_options_take(&assigning.options, sizeof assigning.options, given,
                                                "assign options", error);
    if (status != TARN_OK) return status;
    fill_defaults(&assigning.options);
    status = check_options(&assigning.options, error);
    if (status == TARN_OK)
        status = tarn_reserved_sizes(&assigning.reserved, &assigning.region, graph,
                                     assigning.options.alignment, error);
    if (status == TARN_OK) status = assign(&assigning, result, error);
    tarn_region_finish(&assigning.region);
    return status;
}
