/* Prints docs/measured/footprints.md: the footprint of every baseline method on every graph of a
 * folder, beside the sum of all storages and the serial list-order peak. It contains no times: the
 * same folder always gives the same text.
 *
 *   footprints FOLDER > docs/measured/footprints.md */
#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tarn/plan.h"

static const char *const algorithms[] = {"single-object", "many-objects"};
static const char *const sorts[] = {"size", "breadth", "source", "unsafe", "lifetime"};
static const char *const fits[] = {"first-fit", "best-fit"};
static const char *const variants[] = {"", ":paper"};
enum { ALGORITHMS = 2, SORTS = 5, FITS = 2, VARIANTS = 2 };

/* One graph's footprints in bytes. */
struct row {
    char name[256];
    struct tarn_graph_summary graph;
    uint64_t footprint[VARIANTS][ALGORITHMS][SORTS][FITS];
    uint64_t best;
};

static uint64_t footprint_of(struct tarn_graph *graph, const char *method)
{
    struct tarn_plan *plan;
    struct tarn_plan_summary summary;
    struct tarn_error error;
    if (tarn_plan_create(graph, TARN_PLAN_OPTIONS(.method = method), &plan, &error) != TARN_OK) {
        fprintf(stderr, "%s: %s\n", method, error.text);
        exit(1);
    }
    tarn_plan_summarize(plan, &summary);
    tarn_plan_destroy(plan);
    return summary.footprint;
}

static void fill_variant(struct row *row, struct tarn_graph *graph, int variant)
{
    char method[64];
    for (int a = 0; a < ALGORITHMS; a++) {
        for (int s = 0; s < SORTS; s++) {
            for (int f = 0; f < FITS; f++) {
                snprintf(method, sizeof method, "%s:%s:%s%s", algorithms[a], sorts[s], fits[f],
                         variants[variant]);
                uint64_t footprint = footprint_of(graph, method);
                row->footprint[variant][a][s][f] = footprint;
                if (row->best == 0 || footprint < row->best) row->best = footprint;
            }
        }
    }
}

static struct row measure(const char *folder, const char *file)
{
    struct row row = {{0}, {0}, {{{{0}}}}, 0};
    char path[1024];
    struct tarn_graph *graph;
    struct tarn_error error;
    snprintf(path, sizeof path, "%s/%s", folder, file);
    snprintf(row.name, sizeof row.name, "%.*s", (int)(strstr(file, ".json") - file), file);
    if (tarn_graph_load(path, NULL, &graph, &error) != TARN_OK ||
        tarn_graph_summarize(graph, &row.graph, &error) != TARN_OK) {
        fprintf(stderr, "%s\n", error.text);
        exit(1);
    }
    for (int v = 0; v < VARIANTS; v++) fill_variant(&row, graph, v);
    tarn_graph_destroy(graph);
    return row;
}

/* ---- Printing ---- */

static double percent(uint64_t footprint, uint64_t of)
{
    return 100.0 * (double)footprint / (double)of;
}

static double megabytes(uint64_t bytes) { return (double)bytes / 1e6; }

/* First-fit and best-fit, once where they look the same. */
static void print_cell(const struct row *row, const uint64_t footprint[FITS])
{
    char text[FITS][32];
    for (int f = 0; f < FITS; f++)
        snprintf(text[f], sizeof text[f], "%.2f", percent(footprint[f], row->graph.serial_peak));
    bool differ = strcmp(text[0], text[1]) != 0;
    printf(" %s%s%s |", text[0], differ ? " / " : "", differ ? text[1] : "");
}

static void print_row(const struct row *row)
{
    printf("| %s | %u | %u | %.1f | %.1f | %.1f |", row->name, row->graph.streams,
           row->graph.storages, megabytes(row->graph.sum), megabytes(row->graph.serial_peak),
           megabytes(row->best));
    for (int a = 0; a < ALGORITHMS; a++)
        for (int s = 0; s < SORTS; s++) print_cell(row, row->footprint[0][a][s]);
    printf("\n");
}

static void print_table(const struct row *rows, int count)
{
    printf("| graph | streams | storages | sum MB | peak MB | best MB |");
    for (int a = 0; a < ALGORITHMS; a++)
        for (int s = 0; s < SORTS; s++) printf(" %c:%s |", a ? 'M' : 'S', sorts[s]);
    printf("\n|---|---:|---:|---:|---:|---:|");
    for (int i = 0; i < ALGORITHMS * SORTS; i++) printf("---:|");
    printf("\n");
    for (int i = 0; i < count; i++) print_row(&rows[i]);
}

struct standing {
    int best;      /* graphs on which no method needs less */
    double excess; /* above the best, percent, summed over the graphs */
    double worst;
};

static struct standing standing_of(const struct row *rows, int count, int v, int a, int s, int f)
{
    struct standing standing = {0, 0, 0};
    for (int i = 0; i < count; i++) {
        double excess = percent(rows[i].footprint[v][a][s][f], rows[i].best) - 100;
        standing.best += rows[i].footprint[v][a][s][f] == rows[i].best;
        standing.excess += excess;
        if (excess > standing.worst) standing.worst = excess;
    }
    return standing;
}

static void print_standings(const struct row *rows, int count)
{
    printf("| method | best on | mean above best | worst | `:paper` best on | mean above best |\n"
           "|---|---:|---:|---:|---:|---:|\n");
    for (int a = 0; a < ALGORITHMS; a++) {
        for (int s = 0; s < SORTS; s++) {
            for (int f = 0; f < FITS; f++) {
                struct standing own = standing_of(rows, count, 0, a, s, f);
                struct standing paper = standing_of(rows, count, 1, a, s, f);
                printf("| %s:%s:%s | %d | %.3f %% | %.2f %% | %d | %.3f %% |\n", algorithms[a],
                       sorts[s], fits[f], own.best, own.excess / count, own.worst, paper.best,
                       paper.excess / count);
            }
        }
    }
}

static void print_document(const struct row *rows, int count)
{
    printf("# Footprints of the baseline\n\n"
           "Made by `footprints FOLDER` (`tests/bench/footprints.c`) over %d graphs, alignment "
           "512.\nDo not edit.\n\n"
           "## Methods\n\n"
           "The number of graphs on which a method reaches the smallest footprint of the twenty "
           "methods and\ntheir `:paper` variants, and how far the method is above the smallest "
           "footprint of a graph.\n\n",
           count);
    print_standings(rows, count);
    printf("\n## Graphs\n\n"
           "*sum*: every planned storage has bytes of its own. *peak*: the maximum bytes alive in "
           "one step of\nlist order, which is no bound if there are several streams. *best*: the "
           "smallest footprint. The\nother columns are footprints in percent of the peak, S: "
           "Single Object, M: Many Objects; first-fit /\nbest-fit if they differ. MB are 10^6 "
           "bytes.\n\n");
    print_table(rows, count);
}

static int is_graph(const struct dirent *entry) { return strstr(entry->d_name, ".json") != NULL; }

int main(int argc, char **argv)
{
    struct dirent **files;
    int count = argc == 2 ? scandir(argv[1], &files, is_graph, alphasort) : -1;
    if (count <= 0) {
        fprintf(stderr, "footprints: needs a folder of graphs\n");
        return 2;
    }
    struct row *rows = calloc((size_t)count, sizeof *rows);
    if (!rows) return 8;
    for (int i = 0; i < count; i++) {
        rows[i] = measure(argv[1], files[i]->d_name);
        free(files[i]);
    }
    print_document(rows, count);
    free(files);
    free(rows);
    return 0;
}
