/* How good better placement is and how long it takes. For each graph: storages, streams, the bound,
 * the best of the paper's methods and its time, then lowest-offset-first: the gap after the
 * priority orders and after the local searches, in percent of the bound. Prints Markdown.
 *
 *   lowest_bench [--steps N] [--threads N] [--no-baseline] [GRAPH | STORAGESxSTREAMS]...
 *
 * STORAGESxSTREAMS makes a graph like a data-parallel training step; default 1344x3 20000x6. Times
 * are of one run, in milliseconds. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "dnn_graph.h"
#include "planner/place/improve.h"
#include "planner/place/somas/somas.h"
#include "streams/base/region.h"

struct bench {
    uint64_t steps;
    uint32_t threads;
    bool baseline;
    uint32_t graphs, proved, proved_by_priorities;
    double worst, sum; /* gaps */
};

static void check(enum tarn_status status)
{
    if (status == TARN_OK) return;
    fprintf(stderr, "lowest_bench: %s\n", tarn_status_text(status));
    exit(1);
}

static double gap(uint64_t footprint, uint64_t bound)
{
    return bound ? 100.0 * ((double)footprint - (double)bound) / (double)bound : 0;
}

/* The paper's best, in percent above the bound. */
static void print_baseline(const struct bench *bench, const struct tarn_problem *problem,
                           uint64_t bound)
{
    uint64_t *offset = calloc((size_t)problem->blocks.storages_count + 1, sizeof *offset);
    uint64_t footprint;
    uint32_t winner;
    double begin = clock_ms(CLOCK_MONOTONIC);
    if (!offset) check(TARN_SYSTEM);
    check(tarn_portfolio_place(problem, TARN_NONE, TARN_NONE, bench->threads, 0, NULL, offset,
                               &footprint, &winner));
    printf(" %.4f | %.1f |", gap(footprint, bound), clock_ms(CLOCK_MONOTONIC) - begin);
    free(offset);
}

static void print_improved(struct bench *bench, const struct tarn_problem *problem, uint64_t bound)
{
    uint64_t *offset = calloc((size_t)problem->blocks.storages_count + 1, sizeof *offset);
    struct tarn_improve_options options = {.bound = problem->antichain.bound,
                                           .threads = bench->threads};
    struct tarn_improve_report report;
    if (!offset) check(TARN_SYSTEM);
    uint64_t footprint = tarn_blocks_place_in_a_row(&problem->blocks, offset),
             priorities = footprint;
    check(tarn_improve_place(problem, &options, offset, &priorities, &report));
    footprint = tarn_blocks_place_in_a_row(&problem->blocks, offset);
    options.steps = bench->steps;
    check(tarn_improve_place(problem, &options, offset, &footprint, &report));
    printf(" %.4f | %.2f | %.5f | %llu | %.1f |\n", gap(priorities, bound), report.priorities_ms,
           gap(footprint, bound), (unsigned long long)report.steps,
           report.priorities_ms + report.locals_ms);
    bench->proved_by_priorities += priorities == bound;
    bench->proved += footprint == bound;
    bench->sum += gap(footprint, bound);
    if (gap(footprint, bound) > bench->worst) bench->worst = gap(footprint, bound);
    free(offset);
}

static void print_graph(struct bench *bench, const struct tarn_graph *graph)
{
    struct tarn_region region = {.chunks = NULL};
    struct tarn_problem problem;
    struct tarn_error error;
    double begin = clock_ms(CLOCK_MONOTONIC);
    check(tarn_problem_init(&problem, &region, graph, 512, &error));
    double ready_ms = clock_ms(CLOCK_MONOTONIC) - begin;
    check(tarn_conflicts_init_rows(&problem.conflicts, &region));
    uint64_t bound = tarn_improve_round_bound(&problem.blocks, problem.antichain.bound);
    printf("| %s | %u | %u | %.1f | %.2f |", tarn_graph_name(graph), graph->planned_count,
           graph->streams_count, (double)bound / 1048576.0, ready_ms);
    if (bench->baseline) print_baseline(bench, &problem, bound);
    print_improved(bench, &problem, bound);
    bench->graphs++;
    tarn_region_finish(&region);
}

static struct tarn_graph *open_graph(const char *argument)
{
    struct dnn_graph_options options;
    struct tarn_graph *graph;
    struct tarn_error error;
    char more;
    memset(&options, 0, sizeof options);
    if (sscanf(argument, "%ux%u%c", &options.storages, &options.streams, &more) == 2)
        return dnn_graph(&options);
    if (tarn_graph_load(argument, NULL, &graph, &error) != TARN_OK) {
        fprintf(stderr, "%s\n", error.text);
        exit(1);
    }
    return graph;
}

static int read_options(struct bench *bench, int argc, char **argv)
{
    int next = 1;
    for (; next < argc && strncmp(argv[next], "--", 2) == 0; next++) {
        if (strcmp(argv[next], "--no-baseline") == 0)
            bench->baseline = false;
        else if (next + 1 < argc && strcmp(argv[next], "--steps") == 0)
            bench->steps = strtoull(argv[++next], NULL, 10);
        else if (next + 1 < argc && strcmp(argv[next], "--threads") == 0)
            bench->threads = (uint32_t)strtoul(argv[++next], NULL, 10);
        else
            exit(2);
    }
    return next;
}

int main(int argc, char **argv)
{
    static const char *const defaults[] = {"1344x3", "20000x6"};
    struct bench bench = {.steps = 300, .baseline = true};
    int next = read_options(&bench, argc, argv), count = argc - next;
    const char *const *graphs = (const char *const *)argv + next;
    if (count == 0) {
        graphs = defaults;
        count = 2;
    }
    printf("| graph | storages | streams | bound MiB | order and bound ms |%s keys: gap %% | ms | "
           "walks: gap %% | steps | ms |\n|---|---:|---:|---:|---:|%s---:|---:|---:|---:|---:|\n",
           bench.baseline ? " paper's best: gap % | ms |" : "", bench.baseline ? "---:|---:|" : "");
    for (int i = 0; i < count; i++) {
        struct tarn_graph *graph = open_graph(graphs[i]);
        print_graph(&bench, graph);
        fflush(stdout);
        tarn_graph_destroy(graph);
    }
    printf("\n%u graphs; at the bound: %u after the keys, %u after the walks; gap %.5f %% in the "
           "mean, %.4f %% at most\n",
           bench.graphs, bench.proved_by_priorities, bench.proved, bench.sum / bench.graphs,
           bench.worst);
    return 0;
}
