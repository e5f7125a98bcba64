/* How long placement takes: for each graph the time for what follows from the order alone (clocks,
 * reuse, event waits), for every method by itself, and for all of them in parallel. Prints
 * Markdown.
 *
 *   place_bench [--repeats N] [GRAPH | STORAGESxSTREAMS]...
 *
 * STORAGESxSTREAMS makes a graph like a data-parallel training step; default 1344x3 20000x6. Times
 * are medians of N runs, default 5, in milliseconds, from graph in memory to offsets; the verifier
 * that every plan ends with is listed apart. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dnn_graph.h"
#include "tarn/plan.h"

enum { REPEATS_MAX = 1000, TIMES = 3 };

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, compare_doubles);
    return values[count / 2];
}

/* The summary of a plan by one method, its times being medians. */
static struct tarn_plan_summary measure(struct tarn_graph *graph, const char *method, int repeats)
{
    static double ms[TIMES][REPEATS_MAX];
    struct tarn_plan_summary summary = {0};
    for (int i = 0; i < repeats; i++) {
        struct tarn_plan *plan;
        struct tarn_error error;
        if (tarn_plan_create(graph, TARN_PLAN_OPTIONS(.method = method), &plan, &error) !=
            TARN_OK) {
            fprintf(stderr, "%s: %s\n", method, error.text);
            exit(1);
        }
        tarn_plan_summarize(plan, &summary);
        ms[0][i] = summary.order_ms;
        ms[1][i] = summary.place_ms;
        ms[2][i] = summary.verify_ms;
        tarn_plan_destroy(plan);
    }
    summary.method = method;
    summary.order_ms = median(ms[0], repeats);
    summary.place_ms = median(ms[1], repeats);
    summary.verify_ms = median(ms[2], repeats);
    return summary;
}

static void print_row(const struct tarn_plan_summary *plan, uint64_t serial_peak)
{
    printf("| %s | %.2f | %.4f |\n", plan->method, plan->place_ms,
           (double)plan->footprint / (double)serial_peak);
}

static void print_graph(struct tarn_graph *graph, int repeats)
{
    struct tarn_graph_summary summary;
    if (tarn_graph_summarize(graph, &summary, NULL) != TARN_OK) exit(1);
    struct tarn_plan_summary best = measure(graph, "all", repeats);
    printf("\n%s: %u storages, %u streams; order %.2f ms, verify %.2f ms\n\n",
           tarn_graph_name(graph), summary.storages, summary.streams, best.order_ms,
           best.verify_ms);
    printf("| method | place ms | footprint / serial peak |\n|---|---:|---:|\n");
    for (size_t i = 0; tarn_plan_method(i); i++) {
        struct tarn_plan_summary one = measure(graph, tarn_plan_method(i), repeats);
        print_row(&one, summary.serial_peak);
    }
    print_row(&best, summary.serial_peak);
}

static struct tarn_graph *open_graph(const char *argument)
{
    struct dnn_graph_options options;
    struct tarn_graph *graph;
    struct tarn_error error;
    char more;
    if (sscanf(argument, "%ux%u%c", &options.storages, &options.streams, &more) == 2)
        return dnn_graph(&options);
    if (tarn_graph_load(argument, NULL, &graph, &error) != TARN_OK) {
        fprintf(stderr, "%s\n", error.text);
        exit(1);
    }
    return graph;
}

int main(int argc, char **argv)
{
    static const char *const defaults[] = {"1344x3", "20000x6"};
    const char *const *graphs = defaults;
    int count = 2, repeats = 5, next = 1;
    if (argc > 2 && strcmp(argv[1], "--repeats") == 0) {
        repeats = atoi(argv[2]);
        next = 3;
    }
    if (repeats < 1 || repeats > REPEATS_MAX) {
        fprintf(stderr, "place_bench: 1 to %d repeats\n", REPEATS_MAX);
        return 2;
    }
    if (argc > next) {
        graphs = (const char *const *)argv + next;
        count = argc - next;
    }
    for (int i = 0; i < count; i++) {
        struct tarn_graph *graph = open_graph(graphs[i]);
        print_graph(graph, repeats);
        tarn_graph_destroy(graph);
    }
    return 0;
}
