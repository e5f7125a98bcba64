/* The costs of a plan, read off its lists, waits and ops. The critical path goes round the streams
 * until nothing can begin any more; the peak is counted anew at each launch. Cost: launches x
 * (waits + storages): for small graphs. */
#include "recompute_oracle.h"

#include <stdlib.h>

#include "plan_oracle.h"
#include "tarn/simulate.h"

static uint64_t later_of(uint64_t a, uint64_t b) { return a > b ? a : b; }

/* ---- Time ---- */

/* False: an op that it waits for has not run. */
static bool may_begin(const struct tarn_plan *plan, const uint64_t *end_ns, uint32_t v,
                      uint64_t *begin_ns)
{
    for (uint32_t i = 0; i < plan->waits_count; i++) {
        if (plan->waits[i].op != v) continue;
        if (end_ns[plan->waits[i].on] == UINT64_MAX) return false;
        *begin_ns = later_of(*begin_ns, end_ns[plan->waits[i].on] + TARN_WAIT_NS);
    }
    return true;
}

static uint64_t path_of(const struct tarn_plan *plan)
{
    uint32_t ops = plan->graph->ops_count, streams = plan->streams_count;
    uint64_t *end_ns = malloc(((size_t)ops + 1) * sizeof *end_ns), path_ns = 0;
    uint64_t *free_ns = calloc((size_t)streams + 1, sizeof *free_ns);
    uint32_t *next = calloc((size_t)streams + 1, sizeof *next);
    if (!end_ns || !free_ns || !next) abort();
    for (uint32_t v = 0; v < ops; v++) end_ns[v] = UINT64_MAX;
    for (bool moved = true; moved;) {
        moved = false;
        for (uint32_t s = 0; s < streams; s++) {
            if (plan->list_begin[s] + next[s] == plan->list_begin[s + 1]) continue;
            uint32_t v = plan->list[plan->list_begin[s] + next[s]];
            uint64_t begin_ns = free_ns[s];
            if (!may_begin(plan, end_ns, v, &begin_ns)) continue;
            free_ns[s] = end_ns[v] = begin_ns + plan->graph->ops[v].cost;
            path_ns = later_of(path_ns, end_ns[v]);
            next[s]++;
            moved = true;
        }
    }
    free(end_ns);
    free(free_ns);
    free(next);
    return path_ns;
}

/* ---- Bytes ---- */

/* Is the storage in the arena while the op at a place of the list order runs? */
static bool is_alive(const struct tarn_graph *graph, uint32_t storage, uint32_t place)
{
    const struct tarn_storage *record = &graph->storages[storage];
    uint32_t first = UINT32_MAX, last = 0;
    if (record->tensor == TARN_NONE) return graph->rank[record->producer] == place;
    for (uint32_t i = 0; i < record->users_count; i++) {
        uint32_t at = graph->rank[tarn_storage_users(graph, record)[i]];
        if (at < first) first = at;
        if (at > last) last = at;
    }
    return first <= place && (record->pinned || place <= last);
}

static uint64_t peak_of(const struct tarn_plan *plan)
{
    const struct tarn_graph *graph = plan->graph;
    uint64_t peak = 0;
    for (uint32_t place = 0; place < graph->ops_count; place++) {
        uint64_t bytes = 0;
        if (graph->ops[graph->order[place]].view) continue;
        for (uint32_t a = 0; a < graph->planned_count; a++) {
            if (is_alive(graph, a, place)) bytes += oracle_reserved(graph, a, plan->alignment);
        }
        peak = later_of(peak, bytes);
    }
    return peak;
}

/* ---- The whole ---- */

static bool makes_a_copy(const struct tarn_plan *plan, uint32_t v)
{
    const struct tarn_graph_op *op = &plan->graph->ops[v];
    for (uint32_t k = 0; k < op->outputs_count; k++) {
        if (tarn_plan_tensor_origin(plan, tarn_outputs(op)[k]) != tarn_outputs(op)[k]) return true;
    }
    return false;
}

struct recompute_costs recompute_costs_of(const struct tarn_plan *plan)
{
    struct recompute_costs costs = {.path_ns = path_of(plan), .peak = peak_of(plan)};
    for (uint32_t i = 0; i < plan->list_begin[plan->streams_count]; i++) {
        uint32_t v = plan->list[i];
        uint64_t cost = plan->graph->ops[v].cost;
        bool again = makes_a_copy(plan, v);
        costs.launches++;
        costs.work_ns += cost;
        costs.again += again;
        costs.again_ns += again ? cost : 0;
        costs.implemented += tarn_plan_op_implementation(plan, v) != TARN_NONE;
    }
    return costs;
}
