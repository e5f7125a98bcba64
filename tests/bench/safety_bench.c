/* How long it takes to decide which storages may share memory: the paper's three algorithms, each
 * with its matrix of pairs, beside clocks with `first`, which need none. Prints a Markdown table.
 *
 *   safety_bench [REPEATS]      default 5
 *
 * All in one process on the same graphs, medians; the sets found must be the same. */
#include <stdio.h>
#include <stdlib.h>

#include "dnn_graph.h"

enum { REPEATS_MAX = 1000 };

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static struct tarn_pairs ask(const struct tarn_graph *graph, const char *method)
{
    struct tarn_pairs pairs;
    struct tarn_error error;
    if (tarn_graph_pairs(graph, method, &pairs, &error) != TARN_OK) {
        fprintf(stderr, "%s: %s\n", method, error.text);
        exit(1);
    }
    return pairs;
}

/* Median milliseconds; exits when the set differs from `expected`'s. */
static double median_ms(const struct tarn_graph *graph, const char *method, int repeats,
                        const struct tarn_pairs *expected)
{
    static double ms[REPEATS_MAX];
    for (int i = 0; i < repeats; i++) {
        struct tarn_pairs pairs = ask(graph, method);
        if (pairs.hash != expected->hash) {
            fprintf(stderr, "%s finds another set\n", method);
            exit(1);
        }
        ms[i] = pairs.ms;
    }
    qsort(ms, (size_t)repeats, sizeof *ms, compare_doubles);
    return ms[repeats / 2];
}

static void print_row(uint32_t storages, uint32_t streams, int repeats)
{
    struct tarn_graph *graph =
        dnn_graph(&(struct dnn_graph_options){.storages = storages, .streams = streams});
    struct tarn_graph_summary summary;
    if (tarn_graph_summarize(graph, &summary, NULL) != TARN_OK) exit(1);
    struct tarn_pairs expected = ask(graph, "clocks");
    double ancestors = median_ms(graph, "ancestors", repeats, &expected);
    double opt = median_ms(graph, "ancestors-opt", repeats, &expected);
    double stream_graph = median_ms(graph, "stream-graph", repeats, &expected);
    double clocks = median_ms(graph, "clocks", repeats, &expected);
    printf("| %u | %u | %u | %u | %.1f %% | %.1f | %.1f | %.1f | %.3f | %.0f |\n", summary.storages,
           summary.streams, summary.ops, summary.arcs,
           100.0 * (double)expected.unsafe / (double)expected.pairs, ancestors, opt, stream_graph,
           clocks, stream_graph / clocks);
    fflush(stdout);
    tarn_graph_destroy(graph);
}

int main(int argc, char **argv)
{
    static const uint32_t sizes[] = {1500, 4400, 8500, 20000};
    int repeats = argc > 1 ? atoi(argv[1]) : 5;
    if (repeats < 1 || repeats > REPEATS_MAX) {
        fprintf(stderr, "usage: safety_bench [REPEATS]\n");
        return 2;
    }
    printf(
        "| storages | streams | ops | arcs | unsafe | Algorithm 1 ms | 1-opt ms | Algorithm 2 ms "
        "| clocks ms | Algorithm 2 / clocks |\n"
        "|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n");
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        print_row(sizes[i], 3, repeats);
        print_row(sizes[i], 6, repeats);
    }
    return 0;
}
