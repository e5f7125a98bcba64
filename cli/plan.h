/* The verbs that `tarn plan` has inside: lists of graphs, and curves of budgets. */
#ifndef TARN_CLI_PLAN_H
#define TARN_CLI_PLAN_H

#include "command/command.h"

struct tarn_batch {
    const char *list;   /* a file with the path of a graph in each line; "-": standard input */
    const char *folder; /* a plan is HASH.plan.json in it */
    const char *share;  /* "2/4": the third of four shares of the distinct graphs; NULL: all */
    const struct tarn_load_options *load;
    const struct tarn_plan_options *planning;
    const struct tarn_verify_options *allowed; /* to plans that are there */
    struct tarn_couple_report *report;         /* of the planning, emptied after every graph */
    bool json;
};

/* Writes where a batch has the plan of a graph; returns `path`. */
char *tarn_batch_plan_path(struct tarn_hash hash, const char *folder, char *path, size_t size);
/* The row of a graph and its plan. was_there: NULL: the plan is new in any case. */
void tarn_batch_print_row(struct tarn_printer *printer, const char *graph_path,
                          const char *plan_path, const bool *was_there,
                          const struct tarn_plan *plan);
/* Returns NULL, or what is wrong with the share. */
const char *tarn_batch_check(const struct tarn_batch *batch);
/* Plans the graphs that have no plan in the folder yet, and prints a line for each graph of the
 * share. Returns the first failure; the other graphs are planned nevertheless. */
enum tarn_status tarn_batch_run(const struct tarn_batch *batch);

/* ---- tarn plan --budget-curve and --reorder-curve: the cost of less memory, as lines, CSV or a
 * picture ---- */

#define TARN_CURVE_POINTS_MAX 1000

struct tarn_curve_request {
    const char *graph_path;
    const struct tarn_load_options *load;
    const struct tarn_budget_options *budget;
    const struct tarn_plan_options *planning; /* of a curve of orders, which has 2 points at least;
                                                 NULL: of budgets */
    uint32_t points;
    const char *output_path; /* NULL: only print */
    bool json;
};

/* Prints the curve of a graph file, and writes it. */
enum tarn_status tarn_curve(const struct tarn_curve_request *request);

#endif
