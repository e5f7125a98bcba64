/* How planning grows: for each graph the time to build it, for the problem (clocks, reuse, blocks,
 * antichain, slots), for the gaps of the bound, for the first plan, for the whole search, and for
 * the verifier, and how far the plans are from the bound. `first plan` ends with the first one of a
 * key or width of windows, `all` with the last or, with --seconds, with the search of a default
 * plan. Prints Markdown; times in milliseconds, one run.
 *
 *   scale_bench [--seconds S | --effort N] [--threads N] [KIND:STORAGESxSTREAMS]...
 *
 * KIND: dnn (a data-parallel training step, see dnn_graph.h), buckets (the same with 200 gradients
 * in a contiguous group), chain or uncoupled (see cut_graph.h), layered, loose, weak or random (see
 * coupled_graph.h: in layers, never, every N ops for weak:STORAGESxSTREAMS/N, randomly).
 * `plan MiB` is the most that was taken beside the graph before the verifier.
 * With TARN_CPU in the environment times are those of the processor, all threads together: for busy
 * machines. S: how long the search may take, first plan included; --effort 1000: the work of a
 * default plan, without its clock; neither: keys only. */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "coupled_graph.h"
#include "cut_graph.h"
#include "dnn_graph.h"
#include "planner/place/effort/work.h"
#include "planner/place/place.h"
#include "streams/base/region.h"
#include "streams/order/gap_bound.h"
#include "streams/plan/plan.h"

enum { LARGE = 200 }; /* gradients in a large bucket */
enum { DEFAULT_EFFORT = 1000 };

struct run {
    const char *name;
    double seconds;
    uint32_t threads, effort;
    struct tarn_graph *graph;
    double build_ms, problem_ms, gaps_ms, first_ms, all_ms, verify_ms;
    double begin_ms;
    uint64_t bound, first, last;
    long graph_kib, plan_kib; /* of the graph, and the most that planning took beside it */
    char method[64];
};

static double now_ms(void)
{
    return clock_ms(getenv("TARN_CPU") ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC);
}

static double lap(double *since)
{
    double now = now_ms(), took = now - *since;
    *since = now;
    return took;
}

static void need(enum tarn_status status)
{
    if (status == TARN_OK) return;
    fprintf(stderr, "scale_bench: %s\n", tarn_status_text(status));
    exit(1);
}

/* ---- Memory ---- */

/* A line of /proc/self/status in KiB; 0 where there is none. */
static long memory_kib(const char *name)
{
    char line[128];
    long found = 0;
    FILE *file = fopen("/proc/self/status", "r");
    while (file && !found && fgets(line, sizeof line, file))
        if (strncmp(line, name, strlen(name)) == 0) found = atol(line + strlen(name));
    if (file) fclose(file);
    return found;
}

/* From now on the peak is what is taken now, or more. */
static void reset_peak(void)
{
    FILE *file = fopen("/proc/self/clear_refs", "w");
    if (file) fputs("5", file);
    if (file) fclose(file);
}

/* ---- Measuring ---- */

/* The first plan is there. */
static void note_first(void *user, uint64_t footprint, uint64_t steps)
{
    struct run *run = user;
    (void)steps;
    if (run->first != 0) return;
    run->first = footprint;
    run->first_ms = now_ms() - run->begin_ms;
}

static void verify(struct run *run, const struct tarn_place_result *result)
{
    struct tarn_plan *plan = tarn_plan_of_graph(run->graph);
    if (!plan) need(TARN_SYSTEM);
    plan->alignment = 512;
    plan->footprint = result->footprint;
    for (uint32_t i = 0; i < plan->storages_count; i++)
        plan->storages[i].offset = result->offset[i];
    for (uint32_t i = 0; i < plan->workspaces_count; i++)
        plan->workspaces[i].offset = result->offset[plan->storages_count + i];
    struct tarn_region region = {.chunks = NULL};
    struct tarn_blocks persistent;
    need(tarn_blocks_init(&persistent, &region, run->graph, true, 512, NULL));
    plan->persistent = tarn_blocks_place_in_a_row(&persistent, result->offset);
    for (uint32_t i = 0; i < persistent.storages_count; i++)
        plan->places_persistent[i].offset = result->offset[i];
    tarn_region_finish(&region);
    double since = now_ms();
    struct tarn_error error;
    if (tarn_plan_verify(plan, run->graph, NULL, NULL, &error) != TARN_OK)
        fprintf(stderr, "scale_bench: %s: %s\n", run->name, error.text);
    run->verify_ms = lap(&since);
    tarn_plan_destroy(plan);
}

static void place(struct run *run, const struct tarn_problem *problem)
{
    double since = now_ms();
    bool every_method = run->seconds > 0 || run->effort > 0;
    uint64_t work = tarn_work_default(problem->blocks.storages_count) / DEFAULT_EFFORT;
    struct tarn_place_request request = {.method =
                                             every_method ? TARN_PLACE_ALL : TARN_PLACE_LOWEST};
    run->begin_ms = since;
    request.improve =
        (struct tarn_improve_options){.bound = run->bound,
                                      .threads = run->threads,
                                      .steps = run->seconds > 0 ? UINT64_MAX : run->effort,
                                      .work_max = work * run->effort,
                                      .deadline = tarn_deadline_in(NULL, run->seconds),
                                      .progress = note_first,
                                      .user = run};
    struct tarn_place_result result = {
        .offset = malloc(((size_t)run->graph->planned_count + 1) * sizeof(uint64_t))};
    if (!result.offset) need(TARN_SYSTEM);
    need(tarn_place(problem, &request, &result));
    run->all_ms = lap(&since);
    run->last = result.footprint;
    memcpy(run->method, result.method, sizeof run->method);
    run->plan_kib = memory_kib("VmHWM:") - run->graph_kib;
    verify(run, &result);
    free(result.offset);
}

static void measure(struct run *run)
{
    struct tarn_region region = {.chunks = NULL};
    struct tarn_problem problem;
    struct tarn_gap_bound bound;
    malloc_trim(0);
    reset_peak();
    run->graph_kib = memory_kib("VmRSS:");
    double since = now_ms();
    need(tarn_problem_init(&problem, &region, run->graph, 512, NULL));
    run->problem_ms = lap(&since);
    struct tarn_reserve reserve = tarn_problem_reserve(&problem, 512);
    need(tarn_gap_bound_init(&bound, &region, &problem.antichain, &reserve, TARN_GAP_EFFORT_LOW));
    run->bound = bound.bound;
    run->gaps_ms = lap(&since);
    place(run, &problem);
    tarn_region_finish(&region);
}

/* ---- Printing ---- */

static double gap_percent(uint64_t footprint, uint64_t bound)
{
    return bound ? 100 * ((double)footprint / (double)bound - 1) : 0;
}

static void print_run(const struct run *run)
{
    double entries = (double)run->graph->planned_count * run->graph->streams_count;
    printf("| %s | %u | %u | %.2f | %.1f | %.1f | %.1f | %.3f | %.1f | %.3f | %.1f | "
           "%ld | %ld | %.1f | %s |\n",
           run->name, run->graph->planned_count, run->graph->groups_count, run->build_ms / 1e3,
           run->problem_ms, run->gaps_ms, run->first_ms, gap_percent(run->first, run->bound),
           run->all_ms, gap_percent(run->last, run->bound), run->verify_ms, run->graph_kib / 1024,
           run->plan_kib / 1024, 1024 * (double)run->plan_kib / entries, run->method);
    fflush(stdout);
}

static struct tarn_graph *open_graph(const char *argument)
{
    static const char *const coupled[] = {"layered", "loose", "weak", "random"};
    char kind[16];
    uint32_t storages, streams, every = 1000;
    if (sscanf(argument, "%15[a-z]:%ux%u/%u", kind, &storages, &streams, &every) >= 3) {
        for (uint32_t i = 0; i < sizeof coupled / sizeof *coupled; i++)
            if (strcmp(kind, coupled[i]) == 0)
                return coupled_graph(&(struct coupled_graph_options){(enum coupled_kind)i, storages,
                                                                     streams, every, 1});
        if (strcmp(kind, "dnn") == 0)
            return dnn_graph(&(struct dnn_graph_options){storages, streams});
        if (strcmp(kind, "buckets") == 0)
            return dnn_graph_in_buckets(&(struct dnn_graph_options){storages, streams}, LARGE);
        if (strcmp(kind, "chain") == 0)
            return cut_graph(&(struct cut_graph_options){CUT_CHAIN, storages, streams});
        if (strcmp(kind, "uncoupled") == 0)
            return cut_graph(&(struct cut_graph_options){CUT_UNCOUPLED, storages, streams});
    }
    fprintf(stderr, "scale_bench: '%s' is not KIND:STORAGESxSTREAMS\n", argument);
    exit(2);
}

int main(int argc, char **argv)
{
    static const char *const defaults[] = {
        "dnn:20000x6",         "dnn:100000x4",     "dnn:100000x8",    "chain:1000000x1",
        "dnn:1000000x4",       "dnn:1000000x8",    "chain:1000000x4", "chain:1000000x8",
        "uncoupled:1000000x4", "chain:1000000x55", "chain:50000x512"};
    const char *const *graphs = defaults;
    int count = sizeof defaults / sizeof *defaults, next = 1;
    struct run options = {0};
    for (; next + 1 < argc && argv[next][0] == '-'; next += 2) {
        if (strcmp(argv[next], "--seconds") == 0) options.seconds = atof(argv[next + 1]);
        if (strcmp(argv[next], "--effort") == 0) options.effort = (uint32_t)atoi(argv[next + 1]);
        if (strcmp(argv[next], "--threads") == 0) options.threads = (uint32_t)atoi(argv[next + 1]);
    }
    if (argc > next) {
        graphs = (const char *const *)argv + next;
        count = argc - next;
    }
    printf("| graph | storages | groups | build s | problem | gaps | first plan "
           "| gap %% | all | gap %% | verify | graph MiB | plan MiB | bytes / storage / "
           "stream "
           "| method |\n"
           "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---|\n");
    for (int i = 0; i < count; i++) {
        struct run run = options;
        double since = now_ms();
        run.name = graphs[i];
        run.graph = open_graph(graphs[i]);
        run.build_ms = lap(&since);
        measure(&run);
        print_run(&run);
        tarn_graph_destroy(run.graph);
    }
    return 0;
}
