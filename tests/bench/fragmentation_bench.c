/* The fragmentation table of the ROAM paper (section V-B) on any graphs: how far above the peak of
 * the order a layout ends, in the order that came in and in Tarn's.
 *
 *     fragmentation_bench [--csv] GRAPH ...
 *
 * The peak is the bound of the plan: for one stream the most bytes reserved at once. `allocator` is
 * a framework's caching allocator on paper (caching_allocator.h), two iterations; `longest` is
 * single-object:lifetime:best-fit, the other reading of "longest-lived first, best-fit"; `tarn` is
 * lowest-offset-first without any search. Alignment 512. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "caching_allocator.h"
#include "tarn.h"

enum { COLUMNS = 5 };

static const char *const methods[COLUMNS] = {NULL, "llfb", "single-object:lifetime:best-fit",
                                             "roam-tree", "lowest"};

struct row {
    double percent[COLUMNS];
    uint64_t peak;
};

static void fail(const char *path, const struct tarn_error *error)
{
    fprintf(stderr, "%s: %s\n", path, error->text);
    exit(1);
}

static double above(uint64_t bytes, uint64_t peak)
{
    return peak > 0 ? 100.0 * ((double)bytes / (double)peak - 1) : 0;
}

static struct row measure(struct tarn_graph *graph, const char *path)
{
    struct row row = {{0}, 0};
    for (int m = COLUMNS - 1; m > 0; m--) {
        struct tarn_plan *plan;
        struct tarn_plan_summary summary;
        struct tarn_error error;
        if (tarn_plan_create(graph,
                             TARN_PLAN_OPTIONS(.method = methods[m], .effort = TARN_NO_EFFORT),
                             &plan, &error) != TARN_OK)
            fail(path, &error);
        tarn_plan_summarize(plan, &summary);
        row.peak = summary.bound;
        row.percent[m] = above(summary.footprint, summary.bound);
        tarn_plan_destroy(plan);
    }
    row.percent[0] = above(caching_allocator_replay(graph, 2), row.peak);
    return row;
}

static void print_graph(const char *path, bool csv, struct row *sums)
{
    struct tarn_graph *graph, *better;
    struct tarn_error error;
    const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
    if (tarn_graph_load(path, NULL, &graph, &error) != TARN_OK) fail(path, &error);
    if (tarn_graph_reorder(graph, NULL, &better, &error) != TARN_OK) fail(path, &error);
    const struct row rows[2] = {measure(graph, path), measure(better, path)};
    printf(csv ? "%.*s" : "| %.*s |", (int)strcspn(name, "."), name);
    for (int i = 0; i < 2; i++) {
        printf(csv ? ",%.1f" : " %.1f |", (double)rows[i].peak * 1e-6);
        for (int m = 0; m < COLUMNS; m++) {
            printf(csv ? ",%.3f" : " %.2f |", rows[i].percent[m]);
            sums[i].percent[m] += rows[i].percent[m];
        }
    }
    printf("\n");
    fflush(stdout);
    tarn_graph_destroy(better);
    tarn_graph_destroy(graph);
}

int main(int argc, char **argv)
{
    bool csv = argc > 1 && strcmp(argv[1], "--csv") == 0;
    int first = csv ? 2 : 1, count = argc - first;
    struct row sums[2] = {{{0}, 0}, {{0}, 0}};
    if (csv)
        printf("graph,peak_mb,allocator,llfb,longest,roam_tree,tarn,peak_reordered_mb,allocator,"
               "llfb,longest,roam_tree,tarn\n");
    else
        printf(
            "| graph | peak MB | allocator %% | llfb %% | longest %% | roam-tree %% | tarn %% | "
            "reordered: peak MB | allocator %% | llfb %% | longest %% | roam-tree %% | tarn %% |\n"
            "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n");
    for (int i = first; i < argc; i++) print_graph(argv[i], csv, sums);
    if (csv || count == 0) return 0;
    printf("| mean of %d |", count);
    for (int i = 0; i < 2; i++) {
        printf(" |");
        for (int m = 0; m < COLUMNS; m++) printf(" %.2f |", sums[i].percent[m] / count);
    }
    printf("\n");
    return 0;
}
