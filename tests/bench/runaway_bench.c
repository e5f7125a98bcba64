/* Looks for graphs on which planning with defaults takes too long: families of generated graphs in
 * many sizes, each planned once; the slowest of each family are printed. Prints Markdown.
 *
 *   runaway_bench [--family NAME] [--least N] [--most N] [--seeds N] [--alignment BYTES]
 *                 [--effort STEPS] [--threads T] [--rows]
 *
 * Sizes go from --least (20) to --most (100,000) storages, 1, 2, 5 a decade. --rows prints every
 * graph. Promised, on two cores: a plan within 1 s + 2 us a storage, the end within 4 s + 5 us a
 * storage; a family's row counts what is over either. Time begins with the graph in memory and ends
 * with the verified plan; the first plan is the first that a progress report tells. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "cut_graph.h"
#include "dnn_graph.h"
#include "pipeline_graph.h"
#include "rough_graph.h"
#include "support/random_graph.h"
#include "tarn/plan.h"

struct options {
    const char *family; /* NULL: all */
    uint32_t least, most, seeds;
    struct tarn_plan_options planning;
    bool rows;
};

struct row {
    uint32_t storages, streams;
    double first_ms, first_cpu_ms, ms, cpu_ms, gap;
    const char *stopped;
    char method[64];
};

static struct tarn_graph *make_random(uint32_t storages, uint32_t streams, uint64_t seed)
{
    struct random_graph_options knobs = random_graph_knobs(seed, storages);
    knobs.ops = storages / 2 + 1;
    knobs.streams = streams;
    knobs.reach = 50;
    return random_graph(&knobs);
}

static struct tarn_graph *make_dnn(uint32_t storages, uint32_t streams, uint32_t bucket)
{
    return dnn_graph_in_buckets(
        &(struct dnn_graph_options){storages < 64 ? 64 : storages, streams + 2}, bucket);
}

static struct tarn_graph *make_pipeline(uint32_t storages, uint64_t seed)
{
    struct pipeline_graph_options options = {(enum pipeline_schedule)(seed % PIPELINE_SCHEDULES),
                                             2 + (uint32_t)(seed % 3), 1, 1};
    uint32_t chunks = options.stages * (options.schedule == PIPELINE_INTERLEAVED ? 2 : 1);
    options.layers = 1 + storages / 2000;
    options.microbatches = storages / (13 * chunks * options.layers) + 1;
    return pipeline_graph(&options);
}

static struct tarn_graph *make_cut(enum cut_kind kind, uint32_t storages, uint32_t streams)
{
    return cut_graph(&(struct cut_graph_options){kind, storages, streams});
}

static const char *const names[] = {"dnn", "buckets", "chain", "uncoupled", "random", "pipelines",
                                    /* then the rough kinds */};
enum { NAMES = sizeof names / sizeof *names, FAMILIES = NAMES + ROUGH_KINDS };

static const char *family_name(uint32_t family)
{
    return family < NAMES ? names[family] : rough_kind_name((enum rough_kind)(family - NAMES));
}

static struct tarn_graph *make(uint32_t family, uint32_t storages, uint32_t streams, uint64_t seed)
{
    switch (family) {
    case 0: return make_dnn(storages, streams, 8);
    case 1: return make_dnn(storages, streams, 200);
    case 2: return make_cut(CUT_CHAIN, storages, streams);
    case 3: return make_cut(CUT_UNCOUPLED, storages, streams);
    case 4: return make_random(storages, streams, seed);
    case 5: return make_pipeline(storages, seed);
    default:
        return rough_graph(&(struct rough_graph_options){(enum rough_kind)(family - NAMES),
                                                         storages, streams, seed});
    }
}

struct watch {
    double begin_ms, begin_cpu_ms, first_ms, first_cpu_ms;
};

static const char *stop_name(enum tarn_stop stopped)
{
    static const char *const words[] = {"", "request", "deadline", "work"};
    return words[stopped];
}

static void note_first(void *user, const struct tarn_plan_progress *progress)
{
    struct watch *watch = user;
    (void)progress;
    if (watch->first_ms > 0) return;
    watch->first_ms = clock_ms(CLOCK_MONOTONIC) - watch->begin_ms;
    watch->first_cpu_ms = clock_ms(CLOCK_PROCESS_CPUTIME_ID) - watch->begin_cpu_ms;
}

static struct row plan(const struct options *options, struct tarn_graph *graph)
{
    struct tarn_plan_options planning = options->planning;
    struct watch watch = {clock_ms(CLOCK_MONOTONIC), clock_ms(CLOCK_PROCESS_CPUTIME_ID), 0, 0};
    struct tarn_plan_summary summary;
    struct tarn_graph_summary given;
    struct tarn_error error;
    struct tarn_plan *made;
    struct row row = {0};
    planning.progress = note_first;
    planning.user = &watch;
    if (tarn_plan_create(graph, &planning, &made, &error) != TARN_OK ||
        tarn_graph_summarize(graph, &given, &error) != TARN_OK) {
        fprintf(stderr, "runaway_bench: %s\n", error.text);
        exit(1);
    }
    row.ms = clock_ms(CLOCK_MONOTONIC) - watch.begin_ms;
    row.cpu_ms = clock_ms(CLOCK_PROCESS_CPUTIME_ID) - watch.begin_cpu_ms;
    row.first_ms = watch.first_ms > 0 ? watch.first_ms : row.ms;
    row.first_cpu_ms = watch.first_ms > 0 ? watch.first_cpu_ms : row.cpu_ms;
    tarn_plan_summarize(made, &summary);
    row.storages = given.storages;
    row.streams = given.streams;
    row.gap = summary.bound > 0
                  ? 100.0 * (double)(summary.footprint - summary.bound) / (double)summary.bound
                  : 0;
    row.stopped = stop_name(summary.stopped);
    snprintf(row.method, sizeof row.method, "%s", summary.method);
    tarn_plan_destroy(made);
    return row;
}

static bool is_over(const struct row *row)
{
    return row->first_ms > 1e3 + 2e-3 * row->storages || row->ms > 4e3 + 5e-3 * row->storages;
}

static void print_row(const char *family, const struct row *row)
{
    printf("| %s | %u | %u | %.1f | %.1f | %.1f | %.1f | %.3f | %s | %s |%s\n", family,
           row->storages, row->streams, row->first_ms, row->first_cpu_ms, row->ms, row->cpu_ms,
           row->gap, row->method, row->stopped, is_over(row) ? " over" : "");
    fflush(stdout);
}

static void hunt(const struct options *options, uint32_t family)
{
    static const uint32_t digits[] = {1, 2, 5}, streams[] = {1, 3, 6, 16};
    struct row slowest = {0}, latest = {0};
    uint32_t count = 0, over = 0;
    for (uint32_t i = 0; i < 24; i++) {
        uint32_t storages = digits[i % 3];
        for (uint32_t k = 0; k < i / 3; k++) storages *= 10;
        if (storages < options->least || storages > options->most) continue;
        for (uint32_t s = 0; s < 4 * options->seeds; s++) {
            struct tarn_graph *graph = make(family, storages, streams[s % 4], s + 1);
            struct row row = plan(options, graph);
            tarn_graph_destroy(graph);
            if (options->rows) print_row(family_name(family), &row);
            if (row.ms > slowest.ms) slowest = row;
            if (row.first_ms > latest.first_ms) latest = row;
            count++;
            over += is_over(&row);
        }
    }
    print_row(family_name(family), &slowest);
    if (latest.ms != slowest.ms) print_row(family_name(family), &latest);
    printf("| %s | of %u graphs | over: %u | | | | | | | |\n", family_name(family), count, over);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    struct options options = {.least = 20,
                              .most = 100000,
                              .seeds = 1,
                              .planning = {.struct_size = sizeof options.planning}};
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        if (strcmp(argv[i], "--family") == 0) options.family = value;
        if (strcmp(argv[i], "--least") == 0) options.least = (uint32_t)atoi(value);
        if (strcmp(argv[i], "--most") == 0) options.most = (uint32_t)atoi(value);
        if (strcmp(argv[i], "--seeds") == 0) options.seeds = (uint32_t)atoi(value);
        if (strcmp(argv[i], "--threads") == 0) options.planning.threads = (uint32_t)atoi(value);
        if (strcmp(argv[i], "--effort") == 0) options.planning.effort = strtoull(value, NULL, 10);
        if (strcmp(argv[i], "--alignment") == 0)
            options.planning.alignment = strtoull(value, NULL, 10);
        if (strcmp(argv[i], "--rows") == 0) options.rows = true;
    }
    printf("| family | storages | streams | first plan ms | processor ms | all ms | processor ms | "
           "gap %% | "
           "method | stopped by |\n"
           "|---|---:|---:|---:|---:|---:|---:|---:|---|---|\n");
    bool found = false;
    for (uint32_t family = 0; family < FAMILIES; family++) {
        if (options.family && strcmp(options.family, family_name(family)) != 0) continue;
        hunt(&options, family);
        found = true;
    }
    if (!found) fprintf(stderr, "runaway_bench: there is no family %s\n", options.family);
    return found ? 0 : 2;
}
