/* Pipeline schedules planned with defaults: how near to the bound, and how soon. Prints Markdown.
 *
 *   pipeline_bench [--layers N] [--threads T] [--seed N] [--effort STEPS] [--wide] [--method NAME]
 *                  [--save FOLDER]
 *
 * Every schedule with 2 to 4 stages and 3 to 40 microbatches; --wide: more numbers of them. Times
 * are those of tarn_plan_create, verification included, by the clock and of the processor. With
 * --effort 1000, the default, no clock ends a search: for a machine that is busy. --save plans
 * nothing and writes the graphs.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "pipeline_graph.h"
#include "tarn/plan.h"

struct sums {
    int graphs, proved;
    double gap, gap_max, ms, ms_max, cpu_ms, cpu_ms_max;
};

static void save_one(const struct pipeline_graph_options *options, const char *folder)
{
    struct tarn_graph *graph = pipeline_graph(options);
    struct tarn_error error;
    char path[1024];
    snprintf(path, sizeof path, "%s/%s_%ux%u.json", folder,
             pipeline_schedule_name(options->schedule), options->stages, options->microbatches);
    if (tarn_graph_save(graph, path, &error) != TARN_OK) {
        fprintf(stderr, "pipeline_bench: %s\n", error.text);
        exit(1);
    }
    tarn_graph_destroy(graph);
}

static void plan_one(const struct pipeline_graph_options *graph_options,
                     const struct tarn_plan_options *options, struct sums *sums)
{
    struct tarn_graph *graph = pipeline_graph(graph_options);
    struct tarn_graph_summary given;
    struct tarn_plan *plan;
    struct tarn_plan_summary made;
    struct tarn_error error;
    double begin = clock_ms(CLOCK_MONOTONIC), begin_cpu = clock_ms(CLOCK_PROCESS_CPUTIME_ID);
    if (tarn_graph_summarize(graph, &given, &error) != TARN_OK ||
        tarn_plan_create(graph, options, &plan, &error) != TARN_OK) {
        fprintf(stderr, "pipeline_bench: %s\n", error.text);
        exit(1);
    }
    double ms = clock_ms(CLOCK_MONOTONIC) - begin;
    double cpu_ms = clock_ms(CLOCK_PROCESS_CPUTIME_ID) - begin_cpu;
    tarn_plan_summarize(plan, &made);
    double gap = 100.0 * (double)(made.footprint - made.bound) / (double)made.bound;
    printf("| %s | %u | %u | %u | %.3f | %.3f | %s | %.0f | %.0f |\n",
           pipeline_schedule_name(graph_options->schedule), graph_options->stages,
           graph_options->microbatches, given.storages, (double)made.bound * 1e-6, gap, made.method,
           ms, cpu_ms);
    fflush(stdout);
    sums->graphs++;
    sums->proved += made.optimal;
    sums->gap += gap;
    sums->ms += ms;
    if (gap > sums->gap_max) sums->gap_max = gap;
    if (ms > sums->ms_max) sums->ms_max = ms;
    sums->cpu_ms += cpu_ms;
    if (cpu_ms > sums->cpu_ms_max) sums->cpu_ms_max = cpu_ms;
    tarn_plan_destroy(plan);
    tarn_graph_destroy(graph);
}

int main(int argc, char **argv)
{
    static const uint32_t few[] = {3, 8, 12, 40}, many[] = {3, 4, 6, 8, 12, 16, 24, 32, 40};
    struct tarn_plan_options options = {.struct_size = sizeof options};
    struct sums sums = {0};
    const char *folder = NULL;
    uint32_t layers = 1;
    bool wide = false;
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        wide = wide || strcmp(argv[i], "--wide") == 0;
        if (strcmp(argv[i], "--layers") == 0) layers = (uint32_t)atoi(value);
        if (strcmp(argv[i], "--threads") == 0) options.threads = (uint32_t)atoi(value);
        if (strcmp(argv[i], "--method") == 0) options.method = value;
        if (strcmp(argv[i], "--save") == 0) folder = value;
        if (strcmp(argv[i], "--seed") == 0) options.seed = (uint64_t)atoi(value);
        if (strcmp(argv[i], "--effort") == 0) options.effort = strtoull(value, NULL, 10);
    }
    const uint32_t *microbatches = wide ? many : few;
    size_t count = wide ? sizeof many / sizeof *many : sizeof few / sizeof *few;
    printf("| schedule | stages | microbatches | storages | bound MB | gap %% | method | ms | "
           "processor ms |\n|---|---:|---:|---:|---:|---:|---|---:|---:|\n");
    for (int schedule = 0; schedule < PIPELINE_SCHEDULES; schedule++) {
        for (uint32_t stages = 2; stages <= 4; stages++) {
            for (size_t i = 0; i < count; i++) {
                struct pipeline_graph_options graph = {(enum pipeline_schedule)schedule, stages,
                                                       microbatches[i], layers};
                if (folder)
                    save_one(&graph, folder);
                else
                    plan_one(&graph, &options, &sums);
            }
        }
    }
    if (folder) return 0;
    printf("\n%d of %d proved, mean gap %.4f %%, worst %.3f %%, mean %.0f ms, longest %.0f ms, "
           "of the processor %.0f and %.0f ms\n",
           sums.proved, sums.graphs, sums.gap / sums.graphs, sums.gap_max, sums.ms / sums.graphs,
           sums.ms_max, sums.cpu_ms / sums.graphs, sums.cpu_ms_max);
    return 0;
}
