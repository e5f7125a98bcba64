/* Exact search on packing instances: for each the share of seeds with which a placement at the
 * capacity is found, the median time and nodes. Prints Markdown.
 *
 *   exact_bench [--seeds N] [--seconds S] [--threads T] {INSTANCE[:CAPACITY]}...
 *
 * Default: 11 seeds, at most 60 seconds each, all cores, the capacity that the file's name holds
 * (A.1048576.csv), else the heaviest antichain. Times are whole solves, from graph in memory to
 * offsets. What is too large for exact search is never found. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "planner/place/exact/exact.h"
#include "streams/base/region.h"
#include "streams/order/antichain.h"

enum { SEEDS_MAX = 1000 };

struct run {
    double ms, nodes;
    enum tarn_exact_result result;
};

static void stop_unless(bool ok, const char *what)
{
    if (ok) return;
    fprintf(stderr, "exact_bench: %s\n", what);
    exit(1);
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, compare_doubles);
    return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

static void check_offsets(const struct tarn_problem *problem, uint64_t capacity,
                          const uint64_t *offset)
{
    const struct tarn_reuse *reuse = &problem->conflicts.reuse;
    const uint64_t *size = problem->blocks.reserved;
    for (uint32_t a = 0; a < reuse->count; a++) {
        stop_unless(offset[a] + size[a] <= capacity, "a placement above the capacity");
        for (uint32_t b = 0; b < a; b++)
            stop_unless(offset[a] + size[a] <= offset[b] || offset[b] + size[b] <= offset[a] ||
                            tarn_reuse_is_safe(reuse, a, b),
                        "a placement with an overlap");
    }
}

/* capacity 0: the heaviest antichain. Returns the capacity. */
static uint64_t solve(const struct tarn_graph *graph, uint64_t capacity,
                      const struct tarn_exact_options *options, struct run *run)
{
    struct tarn_region region = {.chunks = NULL};
    struct tarn_problem problem;
    struct tarn_exact_report report;
    uint64_t *offset = calloc((size_t)graph->planned_count + 1, sizeof *offset);
    double begin = tarn_now_ms();
    stop_unless(offset && !tarn_problem_init(&problem, &region, graph, 1, NULL) &&
                    !tarn_conflicts_init_rows(&problem.conflicts, &region),
                "out of memory");
    if (capacity == 0) capacity = problem.antichain.bound;
    enum tarn_status status = tarn_exact_place(&problem, NULL, capacity, options, offset, &report);
    stop_unless(status == TARN_OK || status == TARN_USAGE, "out of memory");
    *run = (struct run){tarn_now_ms() - begin, (double)report.nodes, report.result};
    if (report.result == TARN_EXACT_FOUND) check_offsets(&problem, capacity, offset);
    tarn_region_finish(&region);
    free(offset);
    return capacity;
}

/* "FOLDER/A.1048576.csv", "FILE:CAPACITY"; cuts the capacity off. 0: none is told. */
static uint64_t capacity_of(char *argument)
{
    char *colon = strrchr(argument, ':'), *slash = strrchr(argument, '/');
    uint64_t capacity;
    int end = 0;
    if (colon && sscanf(colon + 1, "%" SCNu64, &capacity) == 1) {
        *colon = 0;
        return capacity;
    }
    const char *dot = strchr(slash ? slash : argument, '.');
    if (!dot || sscanf(dot + 1, "%" SCNu64 ".csv%n", &capacity, &end) != 1) return 0;
    return end > 0 ? capacity : 0;
}

/* Prints the row of an instance and returns its median time. */
static double print_instance(char *argument, int seeds, double seconds,
                             struct tarn_exact_options options)
{
    static double ms[SEEDS_MAX], nodes[SEEDS_MAX];
    uint64_t capacity = capacity_of(argument);
    struct tarn_graph *graph;
    struct tarn_error error;
    int found = 0, impossible = 0;
    stop_unless(!tarn_graph_load(argument, NULL, &graph, &error), error.text);
    for (int i = 0; i < seeds; i++) {
        struct run run;
        options.seed = (uint64_t)i + 1;
        options.deadline = tarn_deadline_in(NULL, seconds);
        capacity = solve(graph, capacity, &options, &run);
        ms[i] = run.ms;
        nodes[i] = run.nodes;
        found += run.result == TARN_EXACT_FOUND;
        impossible += run.result == TARN_EXACT_INFEASIBLE;
    }
    double middle = median(ms, seeds);
    printf("| %s | %u | %" PRIu64 " | %d/%d | %d | %.1f | %.1f | %.0f |\n", tarn_graph_name(graph),
           graph->planned_count, capacity, found, seeds, impossible, middle, ms[seeds - 1],
           median(nodes, seeds));
    fflush(stdout);
    tarn_graph_destroy(graph);
    return middle;
}

int main(int argc, char **argv)
{
    struct tarn_exact_options options = {0};
    double seconds = 60;
    int seeds = 11, next = 1, count = 0;
    double logs = 0;
    for (; next + 1 < argc && strncmp(argv[next], "--", 2) == 0; next += 2) {
        if (strcmp(argv[next], "--seeds") == 0) seeds = atoi(argv[next + 1]);
        if (strcmp(argv[next], "--seconds") == 0) seconds = atof(argv[next + 1]);
        if (strcmp(argv[next], "--threads") == 0) options.threads = (uint32_t)atoi(argv[next + 1]);
    }
    stop_unless(seeds >= 1 && seeds <= SEEDS_MAX && next < argc,
                "[--seeds N] [--seconds S] [--threads T] {INSTANCE[:CAPACITY]}...");
    printf("| instance | storages | capacity | found | impossible | median ms | worst ms | median "
           "nodes |\n|---|---:|---:|---:|---:|---:|---:|---:|\n");
    for (; next < argc; next++, count++)
        logs += log(print_instance(argv[next], seeds, seconds, options));
    printf("\ngeometric mean of the medians: %.1f ms\n", exp(logs / count));
    return 0;
}
