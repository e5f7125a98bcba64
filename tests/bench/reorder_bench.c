/* How much another order saves on real graphs: peak before and after, the bound, the gap, the time.
 *
 *     reorder_bench [--csv] GRAPH ...
 *
 * GRAPH is a file, or STORAGESxSTREAMS, for example 50000x1: a generated training step of that many
 * planned storages. Sizes are exact (alignment 1). A table in Markdown, or comma-separated values.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "dnn_graph.h"
#include "planner/transform/transform.h"
#include "tarn.h"

static double now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

static double percent(uint64_t part, uint64_t whole)
{
    return whole > 0 ? 100.0 * (double)part / (double)whole : 0;
}

static void fail(const char *path, const struct tarn_error *error)
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

static struct tarn_graph *take_graph(const char *path)
{
    struct tarn_graph *graph;
    struct tarn_error error;
    uint32_t storages, streams;
    char end;
    if (sscanf(path, "%ux%u%c", &storages, &streams, &end) == 2) {
        graph = dnn_graph(&(struct dnn_graph_options){storages, streams < 3 ? 3 : streams});
        return streams == 1 ? in_one_stream(graph) : graph;
    }
    if (tarn_graph_load(path, &graph, &error) != TARN_OK) fail(path, &error);
    return graph;
}

static void measure(const char *path, const char *format)
{
    struct tarn_graph *graph = take_graph(path), *result;
    struct tarn_error error;
    struct tarn_reorder_report report;
    double begin = now_ms();
    if (tarn_graph_reorder(graph, TARN_REORDER_OPTIONS(.alignment = 1, .report = &report), &result,
                           &error) != TARN_OK)
        fail(path, &error);
    double ms = now_ms() - begin;
    const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
    printf(format, name, tarn_graph_ops_count(graph), (double)report.peak_before * 1e-6,
           (double)report.peak_after * 1e-6,
           percent(report.peak_before - report.peak_after, report.peak_before),
           percent(report.peak_after - report.bound, report.bound), report.rounds, ms);
    fflush(stdout);
    tarn_graph_destroy(result);
    tarn_graph_destroy(graph);
}

int main(int argc, char **argv)
{
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
