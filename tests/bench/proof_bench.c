/* How often plans are proved minimal, and how soon: every graph of a folder is planned with the
 * default options, several times, and compared with its bound and with the best of the paper's
 * methods. Times are those of tarn_plan_create, verification included, loading not.
 *
 *   proof_bench [--runs N] [--effort STEPS] [--cpu] [--csv] FOLDER
 *
 * --cpu: one thread, and processor time instead of the clock's, for a machine that is busy.
 * Prints a row for each graph, and per kind of graph (one stream, several) what the rows come to.
 */
#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "tarn/plan.h"

enum { RUNS_MAX = 21 };

struct options {
    const char *folder;
    uint32_t runs;
    uint64_t effort;
    bool cpu;
    bool csv;
};

struct row {
    char name[256];
    uint32_t streams, storages;
    uint64_t bound, footprint;
    uint64_t baseline; /* the best footprint of the paper's methods */
    double ms;         /* median over the runs */
};

static double now_ms(bool cpu)
{
    return clock_ms(cpu ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC);
}

static void need(enum tarn_status status, const char *name, const struct tarn_error *error)
{
    if (status == TARN_OK) return;
    fprintf(stderr, "proof_bench: %s: %s\n", name, error->text);
    exit(1);
}

/* ---- Measuring ---- */

static struct tarn_plan_summary plan_once(struct tarn_graph *graph, const char *name,
                                          const struct tarn_plan_options *options, double *ms)
{
    struct tarn_plan *plan;
    struct tarn_plan_summary summary;
    struct tarn_error error;
    double began = now_ms(options->threads == 1);
    need(tarn_plan_create(graph, options, &plan, &error), name, &error);
    *ms = now_ms(options->threads == 1) - began;
    tarn_plan_summarize(plan, &summary);
    tarn_plan_destroy(plan);
    return summary;
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static struct row measure(const struct options *options, const char *file)
{
    struct row row = {0};
    char path[1024];
    struct tarn_graph *graph;
    struct tarn_graph_summary graph_summary;
    struct tarn_error error;
    double ms[RUNS_MAX];
    snprintf(path, sizeof path, "%s/%s", options->folder, file);
    snprintf(row.name, sizeof row.name, "%.*s", (int)(strstr(file, ".json") - file), file);
    need(tarn_graph_load(path, NULL, &graph, &error), file, &error);
    need(tarn_graph_summarize(graph, &graph_summary, &error), file, &error);
    row.streams = graph_summary.streams;
    row.storages = graph_summary.storages;
    for (uint32_t r = 0; r < options->runs; r++) {
        struct tarn_plan_summary summary = plan_once(
            graph, file, TARN_PLAN_OPTIONS(.effort = options->effort, .threads = options->cpu),
            &ms[r]);
        row.bound = summary.bound;
        row.footprint = summary.footprint;
    }
    qsort(ms, options->runs, sizeof *ms, compare_doubles);
    row.ms = ms[options->runs / 2];
    double unused;
    row.baseline =
        plan_once(graph, file, TARN_PLAN_OPTIONS(.method = "baseline"), &unused).footprint;
    tarn_graph_destroy(graph);
    return row;
}

/* ---- Printing ---- */

static double gap(const struct row *row)
{
    return row->bound ? 100.0 * (double)(row->footprint - row->bound) / (double)row->bound : 0;
}

static void print_row(const struct row *row, bool csv)
{
    printf(csv ? "%s,%u,%u,%llu,%llu,%.5f,%llu,%.1f\n"
               : "| %s | %u | %u | %llu | %llu | %.5f | %llu | %.1f |\n",
           row->name, row->streams, row->storages, (unsigned long long)row->bound,
           (unsigned long long)row->footprint, gap(row), (unsigned long long)row->baseline,
           row->ms);
    fflush(stdout);
}

static void print_head(bool csv)
{
    puts(csv ? "graph,streams,storages,bound,footprint,gap_percent,baseline,ms"
             : "| graph | streams | storages | bound | footprint | gap % | best of the paper's "
               "methods | ms |\n|---|---:|---:|---:|---:|---:|---:|---:|");
}

/* What the rows of one kind come to. */
struct sums {
    int graphs, proved, within_100_ms, within_1_s, within_4_s, above_baseline;
    double gap, gap_max, ms_max;
};

static void add_row(struct sums *sums, const struct row *row)
{
    bool proved = row->footprint == row->bound;
    sums->graphs++;
    sums->proved += proved;
    sums->within_100_ms += proved && row->ms <= 100;
    sums->within_1_s += proved && row->ms <= 1000;
    sums->within_4_s += proved && row->ms <= 4000;
    sums->above_baseline += row->footprint > row->baseline;
    sums->gap += gap(row);
    if (gap(row) > sums->gap_max) sums->gap_max = gap(row);
    if (row->ms > sums->ms_max) sums->ms_max = row->ms;
}

static void print_sums(const char *kind, const struct sums *sums)
{
    if (sums->graphs == 0) return;
    printf("| %s | %d | %d | %d | %d | %d | %.5f | %.5f | %d | %.1f |\n", kind, sums->graphs,
           sums->proved, sums->within_100_ms, sums->within_1_s, sums->within_4_s,
           sums->gap / sums->graphs, sums->gap_max, sums->above_baseline, sums->ms_max);
}

static void print_summary(const struct row *rows, int count)
{
    struct sums sums[2] = {{0}, {0}};
    for (int i = 0; i < count; i++) add_row(&sums[rows[i].streams > 1], &rows[i]);
    printf("\n| streams | graphs | proved | within 0.1 s | within 1 s | within 4 s | mean gap %% | "
           "worst gap %% | above the paper's best | longest ms |\n"
           "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n");
    print_sums("one", &sums[0]);
    print_sums("several", &sums[1]);
}

/* ---- Main ---- */

static int is_graph(const struct dirent *entry) { return strstr(entry->d_name, ".json") != NULL; }

static bool parse(int argc, char **argv, struct options *options)
{
    *options = (struct options){.runs = 3};
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--csv") == 0)
            options->csv = true;
        else if (strcmp(argv[i], "--cpu") == 0)
            options->cpu = true;
        else if (strcmp(argv[i], "--runs") == 0 && i + 1 < argc)
            options->runs = (uint32_t)strtoul(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--effort") == 0 && i + 1 < argc)
            options->effort = strtoull(argv[++i], NULL, 10);
        else if (argv[i][0] != '-' && !options->folder)
            options->folder = argv[i];
        else
            return false;
    }
    return options->folder && options->runs >= 1 && options->runs <= RUNS_MAX;
}

int main(int argc, char **argv)
{
    struct options options;
    struct dirent **files;
    if (!parse(argc, argv, &options)) {
        fprintf(stderr, "usage: proof_bench [--runs N] [--effort STEPS] [--cpu] [--csv] FOLDER\n");
        return 2;
    }
    int count = scandir(options.folder, &files, is_graph, alphasort);
    if (count <= 0) {
        fprintf(stderr, "proof_bench: %s holds no graphs\n", options.folder);
        return 3;
    }
    struct row *rows = calloc((size_t)count, sizeof *rows);
    if (!rows) return 8;
    print_head(options.csv);
    for (int i = 0; i < count; i++) {
        rows[i] = measure(&options, files[i]->d_name);
        print_row(&rows[i], options.csv);
        free(files[i]);
    }
    if (!options.csv) print_summary(rows, count);
    free(files);
    free(rows);
    return 0;
}
