/* How much another order saves on real graphs: peak before and after, the bound, the gap, the time.
 *
 *     reorder_bench [--csv | --stages | --bound] GRAPH ...
 *
 * With --bound: of each graph of several streams, what no order can be below, by one op and by ops
 * that run beside each other, with the time of that search and of the check of its certificate.
 * With --stages: what each stage brings, alone and when only it is left out, means over the graphs,
 * and on how many of them the peak is higher than with all stages.
 * GRAPH is a file; or STORAGESxSTREAMS, for example 50000x1: a generated training step of that many
 * planned storages; or random:SEED: 14 to 60 random ops in two to four streams; or
 * a pipeline or a rough graph, see named_graph.h. Sizes are exact (alignment 1). A table in
 * Markdown, or comma-separated values. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "dnn_graph.h"
#include "named_graph.h"
#include "planner/transform/recipe.h"
#include "planner/transform/reorder/beside.h"
#include "planner/transform/reorder/reorder.h"
#include "streams/order/reserved.h"
#include "support/random_graph.h"
#include "tarn.h"

static double percent(uint64_t part, uint64_t whole)
{
    return whole > 0 ? 100.0 * (double)part / (double)whole : 0;
}

static _Noreturn void fail(const char *path, const struct tarn_error *error)
{
    fprintf(stderr, "%s: %s\n", path, error->text);
    exit(1);
}

/* All ops in one stream, in list order. */
static struct tarn_graph *in_one_stream(struct tarn_graph *graph)
{
    static const char *const names[] = {"all"};
    struct tarn_graph *result;
    struct tarn_error error;
    uint32_t *stream = calloc(tarn_graph_ops_count(graph) + 1, sizeof *stream);
    struct tarn_recipe recipe = {
        .graph = graph, .stream = stream, .stream_names = names, .streams_count = 1};
    if (!stream || tarn_recipe_build(&recipe, &result, &error) != TARN_OK)
        fail("generated", &error);
    free(stream);
    tarn_graph_destroy(graph);
    return result;
}

static struct tarn_graph *random_graph_of(uint32_t seed)
{
    struct random_graph_options options = random_graph_knobs(seed, 60);
    options.ops = 14 + seed % 47;
    options.streams = 2 + seed % 3;
    return random_graph(&options);
}

static struct tarn_graph *take_graph(const char *path)
{
    struct tarn_graph *graph = named_graph(path);
    struct tarn_error error;
    uint32_t storages, streams, seed;
    char end;
    if (graph) return graph;
    if (sscanf(path, "random:%u%c", &seed, &end) == 1) return random_graph_of(seed);
    if (sscanf(path, "%ux%u%c", &storages, &streams, &end) == 2) {
        graph = dnn_graph(&(struct dnn_graph_options){storages, streams < 3 ? 3 : streams});
        return streams == 1 ? in_one_stream(graph) : graph;
    }
    if (tarn_graph_load(path, NULL, &graph, &error) != TARN_OK) fail(path, &error);
    return graph;
}

static void measure(const char *path, const char *format)
{
    struct tarn_graph *graph = take_graph(path), *result;
    struct tarn_error error;
    struct tarn_reorder_report report;
    double begin = clock_ms(CLOCK_MONOTONIC);
    if (tarn_graph_reorder(graph, TARN_REORDER_OPTIONS(.alignment = 1, .report = &report), &result,
                           &error) != TARN_OK)
        fail(path, &error);
    double ms = clock_ms(CLOCK_MONOTONIC) - begin;
    const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
    printf(format, name, tarn_graph_ops_count(graph), (double)report.peak_before * 1e-6,
           (double)report.peak_after * 1e-6,
           percent(report.peak_before - report.peak_after, report.peak_before),
           percent(report.peak_after - report.bound, report.bound), report.rounds, ms);
    fflush(stdout);
    tarn_graph_destroy(result);
    tarn_graph_destroy(graph);
}

/* ---- Stages ---- */

/* Means over graphs. The gap is one to the bound of all stages. */
struct standing {
    double saved, gap, worst, ms;
    int proved;
    int worse; /* graphs whose peak is higher than with all stages */
};

/* With all stages; filled in when left_out is 0. */
struct known {
    uint64_t peak, bound;
};

static struct standing reorder_all(struct tarn_graph **graphs, int count, uint32_t left_out,
                                   struct known *known)
{
    struct standing standing = {0};
    for (int i = 0; i < count; i++) {
        struct tarn_graph *result;
        struct tarn_error error;
        struct tarn_reorder_report report;
        double begin = clock_ms(CLOCK_MONOTONIC);
        if (tarn_reorder_without(graphs[i], TARN_REORDER_OPTIONS(.alignment = 1, .report = &report),
                                 left_out, &result, &error) != TARN_OK)
            fail("stages", &error);
        if (left_out == 0) known[i] = (struct known){report.peak_after, report.bound};
        standing.worse += report.peak_after > known[i].peak;
        standing.ms += (clock_ms(CLOCK_MONOTONIC) - begin) / count;
        standing.saved +=
            percent(report.peak_before - report.peak_after, report.peak_before) / count;
        uint64_t gap = report.peak_after - known[i].bound;
        standing.gap += percent(gap, known[i].bound) / count;
        if (percent(gap, known[i].bound) > standing.worst)
            standing.worst = percent(gap, known[i].bound);
        standing.proved += gap == 0;
        tarn_graph_destroy(result);
    }
    return standing;
}

static void print_standing(const char *name, const char *what, struct standing standing)
{
    printf("| %s%s | %.3f | %.4f | %.3f | %d | %d | %.1f |\n", name, what, standing.saved,
           standing.gap, standing.worst, standing.proved, standing.worse, standing.ms);
    fflush(stdout);
}

static void measure_stages(char **paths, int count)
{
    const uint32_t every = (1u << TARN_REORDER_STAGES) - 1;
    struct tarn_graph **graphs = calloc((size_t)count + 1, sizeof *graphs);
    struct known *known = calloc((size_t)count + 1, sizeof *known);
    for (int i = 0; i < count; i++) graphs[i] = take_graph(paths[i]);
    printf("| stages | saved %% | gap %% | worst %% | proved of %d | worse | ms |\n"
           "|---|---:|---:|---:|---:|---:|---:|\n",
           count);
    print_standing("all", "", reorder_all(graphs, count, 0, known));
    print_standing("none", "", reorder_all(graphs, count, every, known));
    for (uint32_t stage = 0; stage < TARN_REORDER_STAGES; stage++) {
        const char *name = tarn_reorder_stage_text((enum tarn_reorder_stage)stage);
        uint32_t alone = every & ~(1u << stage);
        print_standing(name, " alone", reorder_all(graphs, count, alone, known));
        print_standing(name, " left out", reorder_all(graphs, count, 1u << stage, known));
    }
    free(known);
    for (int i = 0; i < count; i++) tarn_graph_destroy(graphs[i]);
    free(graphs);
}

/* ---- The bound ---- */

static void measure_bound(const char *path)
{
    struct tarn_graph *graph = take_graph(path), *result;
    struct tarn_error error;
    struct tarn_reorder_report report;
    struct tarn_region region = {.chunks = NULL};
    struct tarn_order_certificate certificate;
    const uint64_t *reserved;
    if (graph->streams_count == 1) {
        tarn_graph_destroy(graph);
        return;
    }
    if (tarn_reorder_without(graph, TARN_REORDER_OPTIONS(.alignment = 512, .report = &report),
                             1u << TARN_REORDER_RESTARTS, &result, &error) != TARN_OK ||
        tarn_reserved_sizes(&reserved, &region, graph, 512, &error) != TARN_OK)
        fail(path, &error);
    double begin = clock_ms(CLOCK_MONOTONIC);
    if (tarn_beside_bound(&certificate, &region, graph, reserved, UINT64_MAX,
                          &(struct tarn_steps){.control = NULL}) != TARN_OK)
        fail(path, &error);
    double middle = clock_ms(CLOCK_MONOTONIC);
    bool holds = tarn_order_certificate_holds(&certificate, graph, reserved);
    const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
    printf("| %s | %u | %.3f | %.3f | %.3f | %u | %s | %.1f | %.1f |\n", name,
           tarn_graph_ops_count(graph), (double)report.peak_after * 1e-6,
           (double)report.bound * 1e-6, (double)certificate.bound * 1e-6, certificate.apart_count,
           holds ? "yes" : "NO", middle - begin, clock_ms(CLOCK_MONOTONIC) - middle);
    fflush(stdout);
    tarn_region_finish(&region);
    tarn_graph_destroy(result);
    tarn_graph_destroy(graph);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--bound") == 0) {
        printf("| graph | ops | order MB | by one op | by ops beside each other | ops | checked "
               "| ms | check ms |\n|---|---:|---:|---:|---:|---:|---|---:|---:|\n");
        for (int i = 2; i < argc; i++) measure_bound(argv[i]);
        return 0;
    }
    if (argc > 1 && strcmp(argv[1], "--stages") == 0) {
        measure_stages(argv + 2, argc - 2);
        return 0;
    }
    bool csv = argc > 1 && strcmp(argv[1], "--csv") == 0;
    if (csv)
        printf("graph,ops,before_mb,after_mb,saved_percent,gap_percent,rounds,ms\n");
    else
        printf("| graph | ops | before MB | after MB | saved %% | gap %% | rounds | ms |\n"
               "|---|---:|---:|---:|---:|---:|---:|---:|\n");
    for (int i = csv ? 2 : 1; i < argc; i++)
        measure(argv[i], csv ? "%s,%u,%.3f,%.3f,%.4f,%.4f,%u,%.2f\n"
                             : "| %s | %u | %.3f | %.3f | %.3f | %.4f | %u | %.1f |\n");
    return 0;
}
