/* What one policy comes to for the least. Its graphs, one for each rule about where ops are
 * computed again and for each way to add waits, are placed without any search and compared. Those
 * that may be below the least so far are placed as the caller will place them, the one with the
 * lowest bound first. Of graphs with the same bound and the same quick footprint only the fastest
 * is: where each op waits for those before it in the list, the rules differ in time alone. Cost: a
 * quick plan and a simulation for each graph, and a plan for each kind of them that may be less. */
#include <assert.h>
#include <string.h>

#include "attempt.h"
#include "streams/base/error.h"

static uint64_t bound_of(const struct tarn_least_graph *graph) { return graph->quick->claim.bound; }

static uint64_t quick_of(const struct tarn_least_graph *graph)
{
    return tarn_plan_footprint(graph->quick);
}

static bool is_same(const struct tarn_least_graph *a, const struct tarn_least_graph *b)
{
    return bound_of(a) == bound_of(b) && quick_of(a) == quick_of(b);
}

static bool comes_before(const struct tarn_least_graph *a, const struct tarn_least_graph *b)
{
    if (bound_of(a) != bound_of(b)) return bound_of(a) < bound_of(b);
    if (quick_of(a) != quick_of(b)) return quick_of(a) < quick_of(b);
    return a->attempt.time_ns < b->attempt.time_ns;
}

enum tarn_status tarn_least_add(struct tarn_budgeting *budgeting, struct tarn_least *least,
                                struct tarn_graph *graph, const struct tarn_budget_report *report)
{
    struct tarn_least_graph added = {.attempt = {.made.graph = graph, .report = *report}};
    assert(least->count < TARN_LEAST_GRAPHS);
    enum tarn_status status = tarn_budgeting_time(budgeting, graph, &added.attempt.time_ns);
    if (status == TARN_OK) status = tarn_budgeting_plan_quickly(budgeting, graph, &added.quick);
    if (status != TARN_OK) {
        tarn_graph_destroy(graph);
        return status;
    }
    uint32_t i = least->count++;
    for (; i > 0 && comes_before(&added, &least->graphs[i - 1]); i--)
        least->graphs[i] = least->graphs[i - 1];
    least->graphs[i] = added;
    return TARN_OK;
}

/* May the plan be smaller than the best one, or as small and faster? */
static bool may_be_less(const struct tarn_least_graph *graph, const struct tarn_attempt *best)
{
    if (!best->made.graph || bound_of(graph) < best->footprint) return true;
    return bound_of(graph) == best->footprint && graph->attempt.time_ns < best->time_ns;
}

/* May the quick plan be the final one? */
static bool will_do(const struct tarn_budgeting *budgeting, const struct tarn_least_graph *graph)
{
    const char *method = budgeting->planning ? budgeting->planning->method : NULL;
    bool searches = !method || strcmp(method, "all") == 0 || strcmp(method, "lowest") == 0;
    bool done = budgeting->hurried || quick_of(graph) == bound_of(graph);
    return searches && done && graph->quick->spaces_count <= 1;
}

/* The plan that it comes down to, whatever the budget is. */
static enum tarn_status place(const struct tarn_budgeting *budgeting,
                              struct tarn_least_graph *graph)
{
    struct tarn_attempt *attempt = &graph->attempt;
    attempt->footprint = quick_of(graph);
    if (will_do(budgeting, graph)) {
        attempt->made.plan = graph->quick;
        graph->quick = NULL;
        return TARN_OK;
    }
    attempt->footprint = UINT64_MAX;
    enum tarn_status status =
        tarn_budgeting_plan(budgeting, attempt->made.graph, 0, &attempt->made.plan);
    if (status == TARN_OK) attempt->footprint = tarn_plan_footprint(attempt->made.plan);
    if (status != TARN_DOES_NOT_FIT) return status;
    tarn_error_clear(budgeting->error); /* another memory space is too small */
    return TARN_OK;
}

enum tarn_status tarn_least_place(struct tarn_budgeting *budgeting, struct tarn_least *least,
                                  struct tarn_attempt *best)
{
    bool wanted[TARN_LEAST_GRAPHS];
    enum tarn_status status = TARN_OK;
    for (uint32_t i = 0; i < least->count; i++)
        wanted[i] = i == 0 || !is_same(&least->graphs[i], &least->graphs[i - 1]);
    for (uint32_t i = 0; i < least->count && status == TARN_OK; i++) {
        struct tarn_least_graph *graph = &least->graphs[i];
        if (!wanted[i] || !may_be_less(graph, best)) continue;
        status = place(budgeting, graph);
        if (status == TARN_OK) tarn_attempt_keep_better(best, &graph->attempt, 0);
    }
    return status;
}

void tarn_least_finish(struct tarn_least *least)
{
    for (uint32_t i = 0; i < least->count; i++) {
        tarn_plan_destroy(least->graphs[i].quick);
        tarn_planned_finish(&least->graphs[i].attempt.made);
    }
    least->count = 0;
}
