/* How long keeping to a budget takes as graphs get deeper, and what it costs:
 * `budget_depth_bench [OPS...]` (about so many ops each) plans training steps of three families, of
 * one stream and assigned to two, at 75 and 50 % of what keeping everything takes. Prints Markdown.
 */
#include <stdio.h>
#include <stdlib.h>

#include "clock.h"
#include "deep_training.h"
#include "tarn.h"

static const struct {
    const char *name;
    uint32_t ops; /* of a block, about */
} families[] = {
    [DEEP_PLAIN] = {"plain", 6},
    [DEEP_RESIDUAL] = {"residual", 26},
    [DEEP_TRANSFORMER] = {"transformer", 44},
};

static void need(enum tarn_status status, const struct tarn_error *error)
{
    if (status == TARN_OK) return;
    fprintf(stderr, "budget_depth_bench: %s\n", error->text);
    exit(1);
}

static void try_budget(struct tarn_graph *graph, uint64_t footprint, uint32_t percent)
{
    struct tarn_budget_report report = {0};
    struct tarn_graph *result;
    struct tarn_error error;
    double begin = clock_ms(CLOCK_MONOTONIC);
    enum tarn_status status = tarn_graph_budget(
        graph, TARN_BUDGET_OPTIONS(.budget = footprint / 100 * percent, .report = &report), &result,
        &error);
    double ms = clock_ms(CLOCK_MONOTONIC) - begin;
    if (status == TARN_OK)
        printf(" %.2f | %.0f |", 100 * ((double)report.time_ns / (double)report.time_before_ns - 1),
               ms);
    else
        printf(" refused | %.0f |", ms);
    tarn_graph_destroy(result);
    fflush(stdout);
}

static void try_graph(struct tarn_graph *graph, const char *family, unsigned streams)
{
    struct tarn_plan_summary summary;
    struct tarn_plan *plan;
    struct tarn_error error;
    need(tarn_plan_create(graph, TARN_PLAN_OPTIONS(.effort = TARN_NO_EFFORT), &plan, &error),
         &error);
    tarn_plan_summarize(plan, &summary);
    tarn_plan_destroy(plan);
    printf("| %s | %u | %u |", family, streams, tarn_graph_ops_count(graph));
    try_budget(graph, summary.footprint, 75);
    try_budget(graph, summary.footprint, 50);
    printf("\n");
}

int main(int argc, char **argv)
{
    static const uint32_t usual[] = {539, 2249, 5399, 11249};
    size_t count = argc > 1 ? (size_t)argc - 1 : sizeof usual / sizeof *usual;
    printf("| family | streams | ops | 75 %%: overhead %% | ms | 50 %%: overhead %% | ms |\n"
           "|---|---:|---:|---:|---:|---:|---:|\n");
    for (size_t f = 0; f < sizeof families / sizeof *families; f++) {
        for (size_t i = 0; i < count; i++) {
            uint32_t ops = argc > 1 ? (uint32_t)strtoul(argv[i + 1], NULL, 10) : usual[i];
            struct tarn_graph *one = deep_training((enum deep_family)f, ops / families[f].ops);
            struct tarn_graph *two;
            struct tarn_error error;
            try_graph(one, families[f].name, 1);
            need(tarn_graph_assign(one, TARN_ASSIGN_OPTIONS(.streams = 2), &two, &error), &error);
            try_graph(two, families[f].name, 2);
            tarn_graph_destroy(two);
            tarn_graph_destroy(one);
        }
    }
    return 0;
}
