/* The search for what to keep, on its own: for each graph and each ratio of memory the modelled
 * overhead, the effort and the time it takes, without placing anything.
 *
 *   budget_search_bench [--steps N] [--classes N] [--chain] COSTS.csv GRAPH...
 *
 * The ratio is (persistent + peak) / the same of keeping everything, the overhead that over the
 * time of the graph as it was traced; implementations come from the table, backward convolutions
 * may be split. --chain starts each budget from what was found for the one before it. A budget that
 * is not met shows the ratio that was.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "planner/transform/budget/budget.h"

static const double ratios[] = {0.8, 0.7, 0.6, 0.5, 0.45, 0.4, 0.38, 0.36, 0.33, 0.3};
enum { RATIOS_COUNT = sizeof ratios / sizeof *ratios };

struct options {
    struct tarn_budget_limits limits;
    bool chain;
};

static void need(enum tarn_status status, const char *name, const struct tarn_error *error)
{
    if (status == TARN_OK) return;
    fprintf(stderr, "budget_search_bench: %s: %s\n", name, error ? error->text : "no memory");
    exit(1);
}

static struct tarn_graph *load(const char *path, const struct tarn_cost_table *costs)
{
    struct tarn_error error;
    struct tarn_graph *traced, *graph;
    need(tarn_graph_load(path, NULL, &traced, &error), path, &error);
    need(tarn_graph_implementations(
             traced, TARN_IMPLEMENTATIONS_OPTIONS(.costs = costs, .split_backward = true), &graph,
             &error),
         path, &error);
    tarn_graph_destroy(traced);
    return graph;
}

static void print_row(const struct tarn_budget_outcome *found, double ratio, double reached,
                      double overhead, double ms)
{
    if (found->fits) {
        printf("  %.2f  %6.2f %%", ratio, 100 * overhead);
    } else {
        printf("  %.2f  at %.3f", ratio, reached);
    }
    printf("  %8llu evaluations  %7.0f ms%s\n", (unsigned long long)found->evaluations, ms,
           found->complete ? "  all" : "");
}

static void search_all(const struct tarn_recompute_model *model, const struct options *options,
                       double persistent, double peak, double traced_ns)
{
    struct tarn_region region = {.chunks = NULL};
    struct tarn_policy policy;
    need(tarn_policy_init(&policy, &region, model), "policy", NULL);
    for (int i = 0; i < RATIOS_COUNT; i++) {
        struct tarn_budget_outcome found;
        double budget = ratios[i] * (persistent + peak) - persistent;
        if (!options->chain) tarn_policy_reset(&policy, model);
        double began = clock_ms(CLOCK_PROCESS_CPUTIME_ID);
        need(tarn_budget_search(model, budget > 1 ? (uint64_t)budget : 1, &options->limits, &policy,
                                &found),
             "search", NULL);
        print_row(&found, ratios[i], (persistent + (double)found.peak) / (persistent + peak),
                  (double)found.time_ns / traced_ns - 1,
                  clock_ms(CLOCK_PROCESS_CPUTIME_ID) - began);
    }
    tarn_region_finish(&region);
}

static void measure(const char *path, const struct tarn_cost_table *costs,
                    const struct options *options)
{
    struct tarn_graph *graph = load(path, costs);
    struct tarn_region region = {.chunks = NULL};
    struct tarn_recompute_model model;
    struct tarn_policy policy;
    struct tarn_graph_summary summary;
    struct tarn_error error;
    need(tarn_graph_summarize(graph, &summary, &error), path, &error);
    need(tarn_recompute_model_init(&model, &region, graph, 512, 0), path, NULL);
    struct tarn_evaluator *evaluator = tarn_evaluator_create(&region, &model);
    if (!evaluator || tarn_policy_init(&policy, &region, &model)) need(TARN_SYSTEM, path, NULL);
    uint64_t peak = tarn_evaluate(evaluator, &policy, 0)->peak; /* least workspaces */
    tarn_recompute_model_restrict(&model, options->limits.classes);
    uint64_t floor;
    uint32_t at;
    need(tarn_recompute_floor(&model, TARN_LIST_STAYS, &floor, &at), path, NULL);
    double persistent = (double)summary.persistent, all = persistent + (double)peak;
    printf("%s: persistent %.3f GB, peak %.3f GB, %.1f ms, no ratio below %.3f\n", path,
           persistent / 1e9, (double)peak / 1e9, (double)summary.cost / 1e6,
           (persistent + (double)floor) / all);
    search_all(&model, options, persistent, (double)peak, (double)summary.cost);
    tarn_region_finish(&region);
    tarn_graph_destroy(graph);
}

int main(int count, char **arguments)
{
    struct options options = {.limits.classes = TARN_BUDGET_ALL};
    int i = 1;
    for (; i < count && !strncmp(arguments[i], "--", 2); i++) {
        if (!strcmp(arguments[i], "--chain")) options.chain = true;
        if (!strcmp(arguments[i], "--steps"))
            options.limits.steps = strtoull(arguments[++i], NULL, 10);
        if (!strcmp(arguments[i], "--classes"))
            options.limits.classes = (unsigned)strtoul(arguments[++i], NULL, 10);
    }
    struct tarn_cost_table *costs;
    struct tarn_error error;
    if (count - i < 2) {
        fprintf(stderr,
                "usage: budget_search_bench [--steps N] [--classes N] [--chain] COSTS GRAPH...\n");
        return 2;
    }
    need(tarn_cost_table_load(arguments[i], &costs, &error), arguments[i], &error);
    for (i++; i < count; i++) measure(arguments[i], costs, &options);
    tarn_cost_table_destroy(costs);
    return 0;
}
