/* tarn plan --budget-curve: what budgets cost, as lines, CSV or a picture. */
#ifndef TARN_CLI_CURVE_H
#define TARN_CLI_CURVE_H

#include "command/command.h"

#define TARN_CURVE_POINTS_MAX 1000

/* Prints the curve of a graph file, and writes it to `output_path` unless that is NULL. */
enum tarn_status tarn_curve(const char *graph_path, const struct tarn_load_options *load,
                            const struct tarn_budget_options *options, uint32_t points,
                            const char *output_path, bool json);

#endif
