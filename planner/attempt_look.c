/* What a graph that was made for a budget comes to: its footprint by a quick plan or by the plan
 * that the result will have, its time by the model; and which of two is better. Cost: the plan's,
 * or the simulation's. */
#include "attempt.h"
#include "tarn/simulate.h"

/* Steps of search for a placement within the budget, unless the caller says how many. */
enum { PLACE_STEPS = 40 };

enum tarn_status tarn_budgeting_plan_quickly(const struct tarn_budgeting *budgeting,
                                             struct tarn_graph *graph, struct tarn_plan **plan)
{
    const struct tarn_plan_options quick = {.struct_size = sizeof quick,
                                            .alignment = budgeting->options.alignment,
                                            .method = "lowest",
                                            .effort = TARN_NO_EFFORT};
    return tarn_plan_make(graph, &quick, TARN_ALL_UNLIMITED, plan, budgeting->error);
}

enum tarn_status tarn_budgeting_plan(const struct tarn_budgeting *budgeting,
                                     struct tarn_graph *graph, uint64_t capacity,
                                     struct tarn_plan **plan)
{
    const struct tarn_plan_options *planning = budgeting->planning;
    struct tarn_plan_options options = {.struct_size = sizeof options,
                                        .alignment = budgeting->options.alignment,
                                        .capacity = capacity,
                                        .effort = PLACE_STEPS,
                                        .seconds = tarn_deadline_left(&budgeting->deadline)};
    if (planning) {
        options.method = planning->method;
        options.node_limit = planning->node_limit;
        options.seed = planning->seed;
        options.threads = planning->threads;
        if (planning->effort > 0) options.effort = planning->effort;
    }
    return tarn_plan_make(graph, &options, budgeting->measures, plan, budgeting->error);
}

enum tarn_status tarn_budgeting_time(const struct tarn_budgeting *budgeting,
                                     const struct tarn_graph *graph, uint64_t *ns)
{
    struct tarn_simulation *simulation;
    enum tarn_status status = tarn_graph_simulate(graph, budgeting->options.alignment, TARN_WAIT_NS,
                                                  &simulation, budgeting->error);
    if (status != TARN_OK) return status;
    *ns = simulation->makespan_ns;
    tarn_simulation_destroy(simulation);
    return TARN_OK;
}

bool tarn_attempt_fits(const struct tarn_attempt *attempt, uint64_t budget)
{
    return attempt->made.graph && attempt->footprint <= budget;
}

static bool is_better(const struct tarn_attempt *a, const struct tarn_attempt *b, uint64_t budget)
{
    if (!b->made.graph || tarn_attempt_fits(a, budget) != tarn_attempt_fits(b, budget))
        return !b->made.graph || tarn_attempt_fits(a, budget);
    if (!tarn_attempt_fits(a, budget) && a->footprint != b->footprint)
        return a->footprint < b->footprint;
    return a->time_ns < b->time_ns;
}

void tarn_attempt_keep_better(struct tarn_attempt *best, struct tarn_attempt *other,
                              uint64_t budget)
{
    if (is_better(other, best, budget)) {
        struct tarn_attempt swap = *best;
        *best = *other;
        *other = swap;
    }
    tarn_planned_finish(&other->made);
}
