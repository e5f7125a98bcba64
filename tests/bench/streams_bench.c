/* What streams and waits buy on real graphs: `streams_bench FOLDER [SLOWDOWN_PERCENT]` couples
 * every graph of several streams in a folder, places the result, and assigns streams to every graph
 * of one. Two tables; times are this machine's. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "tarn.h"

static double ratio(uint64_t a, uint64_t b) { return b > 0 ? (double)a / (double)b : 0; }

/* 0: no plan. */
static uint64_t footprint_of(struct tarn_graph *graph)
{
    struct tarn_plan *plan;
    struct tarn_plan_summary summary;
    if (tarn_plan_create(graph, TARN_PLAN_OPTIONS(.effort = 20), &plan, NULL) != TARN_OK) return 0;
    tarn_plan_summarize(plan, &summary);
    tarn_plan_destroy(plan);
    return summary.footprint;
}

static void couple(struct tarn_graph *graph, double slowdown_max)
{
    struct tarn_couple_report report;
    struct tarn_graph *after;
    struct tarn_error error;
    double begin = clock_ms(CLOCK_MONOTONIC);
    if (tarn_graph_couple(graph,
                          TARN_COUPLE_OPTIONS(.slowdown_max = slowdown_max, .report = &report),
                          &after, &error) != TARN_OK) {
        printf("| %s | %s |\n", tarn_graph_name(graph), error.text);
        return;
    }
    double ms = clock_ms(CLOCK_MONOTONIC) - begin;
    const struct tarn_couple_row *first = &report.rows[0];
    const struct tarn_couple_row *last = &report.rows[report.rows_count - 1];
    printf("| %s | %u | %.1f | %.4f | %.4f | %.4f | %u | %u | %u | %.2f %% | %.1f |\n",
           tarn_graph_name(graph), tarn_graph_ops_count(graph), (double)report.serial_peak / 1e6,
           ratio(first->bound, report.serial_peak), ratio(last->bound, report.serial_peak),
           ratio(footprint_of(after), report.serial_peak), report.arcs, first->waits, last->waits,
           100 * (ratio(last->critical_path_ns, first->critical_path_ns) - 1), ms);
    fflush(stdout);
    tarn_couple_report_finish(&report);
    tarn_graph_destroy(after);
}

static void assign(struct tarn_graph *graph, uint32_t streams)
{
    struct tarn_assign_report report;
    struct tarn_graph *after;
    struct tarn_error error;
    double begin = clock_ms(CLOCK_MONOTONIC);
    if (tarn_graph_assign(graph, TARN_ASSIGN_OPTIONS(.streams = streams, .report = &report), &after,
                          &error) != TARN_OK) {
        printf("| %s | %s |\n", tarn_graph_name(graph), error.text);
        return;
    }
    double ms = clock_ms(CLOCK_MONOTONIC) - begin;
    printf("| %s | %u | %.3f | %.3f | %.3f | %.3f | %.3f | %.3f | %u | %u | %.1f | %.1f | %.1f |\n",
           tarn_graph_name(graph), streams, (double)report.serial_ns * 1e-6,
           (double)report.chain_ns * 1e-6, (double)report.work_ns * 1e-6,
           ratio(report.after_ns, report.limit_ns), ratio(report.after_no_wait_ns, report.limit_ns),
           ratio(report.serial_ns, report.after_ns), report.arcs, report.waits,
           (double)report.bound_before / 1e6, (double)report.bound_after / 1e6, ms);
    fflush(stdout);
    tarn_graph_destroy(after);
}

static int is_graph(const struct dirent *entry) { return strstr(entry->d_name, ".json") != NULL; }

/* Those of one stream are assigned, the others coupled. */
static void measure_all(const char *folder, struct dirent **files, int count, bool single,
                        double slowdown_max)
{
    for (int i = 0; i < count; i++) {
        char path[4096];
        struct tarn_graph *graph;
        snprintf(path, sizeof path, "%s/%s", folder, files[i]->d_name);
        if (tarn_graph_load(path, NULL, &graph, NULL) != TARN_OK) continue;
        bool has_one = tarn_graph_streams_count(graph) == 1;
        if (has_one && single) {
            assign(graph, 2);
            assign(graph, 4);
        }
        if (!has_one && !single) couple(graph, slowdown_max);
        tarn_graph_destroy(graph);
    }
}

int main(int argc, char **argv)
{
    struct dirent **files;
    int count = argc >= 2 ? scandir(argv[1], &files, is_graph, alphasort) : -1;
    if (count <= 0) {
        fprintf(stderr, "usage: streams_bench FOLDER [SLOWDOWN_PERCENT]\n");
        return 2;
    }
    printf("In shares of the serial peak:\n\n"
           "| graph | ops | serial peak MB | bound | coupled | placed | arcs | waits | then | path "
           "| ms |\n|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n");
    measure_all(argv[1], files, count, false, argc > 2 ? atof(argv[2]) / 100 : 0);
    printf("\nIn ms; path and path without waits in shares of the limit; speedup over serial:\n\n"
           "| graph | streams | serial | chain | work | path | no waits | speedup | arcs | waits | "
           "bound MB | then | ms |\n"
           "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n");
    measure_all(argv[1], files, count, true, 0);
    for (int i = 0; i < count; i++) free(files[i]);
    free(files);
    return 0;
}
