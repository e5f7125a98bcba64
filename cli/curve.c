/* The rows come from the library; here they are printed, and saved where that is asked for. */
#include "plan.h"

#include "command/command.h"
#include "interrupt.h"

static void print_rows(FILE *file, const struct tarn_graph *graph,
                       const struct tarn_budget_report *rows, size_t count, bool json, double ms)
{
    struct tarn_printer printer;
    tarn_printer_begin(&printer, file, json);
    tarn_printer_text(&printer, "name", tarn_graph_name(graph));
    tarn_printer_open_list(&printer, "budgets");
    for (size_t i = 0; i < count; i++) {
        const struct tarn_budget_report *row = &rows[i];
        tarn_printer_open_row(&printer, "budget");
        tarn_printer_bytes(&printer, "bytes", row->budget);
        tarn_printer_bytes(&printer, "footprint_bytes", row->footprint);
        tarn_printer_real(&printer, "overhead_percent",
                          tarn_gap_percent(row->time_ns, row->time_before_ns));
        tarn_printer_count(&printer, "recomputed", row->recomputed);
        tarn_printer_count(&printer, "other_implementation", row->implemented);
        tarn_printer_close(&printer, '}');
    }
    tarn_printer_close_list(&printer);
    tarn_printer_real(&printer, "ms", ms);
    tarn_printer_end(&printer);
}

static enum tarn_status save(const struct tarn_graph *graph, const struct tarn_budget_report *rows,
                             size_t count, const char *path, struct tarn_error *error)
{
    if (!path) return TARN_OK;
    tarn_interrupt_hold();
    enum tarn_status status = tarn_budget_curve_save(graph, rows, count, path, error);
    tarn_interrupt_release();
    return status;
}

enum tarn_status tarn_curve(const char *graph_path, const struct tarn_load_options *load,
                            const struct tarn_budget_options *options, uint32_t points,
                            const char *output_path, bool json)
{
    static struct tarn_budget_report rows[TARN_CURVE_POINTS_MAX];
    struct tarn_graph *graph = NULL;
    struct tarn_error error;
    bool on_stdout = tarn_is_dash(output_path);
    enum tarn_status saved = TARN_OK;
    enum tarn_status status = tarn_graph_load_with(graph_path, load, &graph, &error);
    double begin = tarn_now_ms();
    if (status == TARN_OK) status = tarn_graph_budget_curve(graph, options, rows, points, &error);
    double ms = tarn_now_ms() - begin;
    uint32_t first = 0; /* ended early, it has rows from here on */
    while (first < points && rows[first].budget == 0) first++;
    bool is_stopped = status == TARN_INTERRUPTED || status == TARN_DEADLINE;
    bool some = status == TARN_OK || (is_stopped && first < points);
    if (status != TARN_OK) tarn_print_error(&error, status);
    if (some && (saved = save(graph, rows + first, points - first, output_path, &error)) != TARN_OK)
        tarn_print_error(&error, status = saved);
    if (some && saved == TARN_OK)
        print_rows(on_stdout ? stderr : stdout, graph, rows + first, points - first, json, ms);
    tarn_graph_destroy(graph);
    return status;
}
