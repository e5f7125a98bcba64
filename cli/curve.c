/* Prints the rows of a curve, and saves them if asked for. Rows of budgets come from the library,
 * rows of orders from plans that are made here. */
#include "plan.h"

#include "command/command.h"
#include "interrupt.h"

/* of_orders: the rows are of other orders, not of budgets. */
static void print_rows(FILE *file, const struct tarn_graph *graph,
                       const struct tarn_budget_report *rows, size_t count, bool of_orders,
                       bool json, double ms)
{
    struct tarn_printer printer;
    tarn_printer_begin(&printer, file, json);
    tarn_printer_text(&printer, "name", tarn_graph_name(graph));
    tarn_printer_open_list(&printer, of_orders ? "orders" : "budgets");
    for (size_t i = 0; i < count; i++) {
        const struct tarn_budget_report *row = &rows[i];
        tarn_printer_open_row(&printer, of_orders ? "order" : "budget");
        if (!of_orders) tarn_printer_bytes(&printer, "bytes", row->budget);
        tarn_printer_bytes(&printer, "footprint_bytes", row->footprint);
        tarn_printer_real(&printer, "footprint_percent",
                          100 + tarn_gap_percent(row->footprint, row->footprint_before));
        tarn_printer_real(&printer, "overhead_percent",
                          tarn_gap_percent(row->time_ns, row->time_before_ns));
        if (of_orders) tarn_printer_count(&printer, "critical_path_ns", row->time_ns);
        if (!of_orders) tarn_printer_count(&printer, "recomputed", row->recomputed);
        if (!of_orders) tarn_printer_count(&printer, "other_implementation", row->implemented);
        tarn_printer_close(&printer);
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

/* ---- Budgets ---- */

static enum tarn_status find_budgets(struct tarn_graph *graph,
                                     const struct tarn_budget_options *options,
                                     struct tarn_budget_report *rows, uint32_t *points,
                                     struct tarn_error *error)
{
    enum tarn_status status = tarn_graph_budget_curve(graph, options, rows, *points, error);
    uint32_t first = 0; /* ended early, it has rows starting here */
    while (first < *points && rows[first].budget == 0) first++;
    uint32_t count = *points;
    *points = 0;
    for (uint32_t i = first; i < count; i++) {
        if (i + 1 < count && rows[i].footprint <= rows[i + 1].budget)
            continue; /* of the same time as the next row: the larger budget brings nothing */
        rows[(*points)++] = rows[i];
    }
    return status;
}

/* ---- Orders ---- */

/* A plan by these options: its footprint, and the critical path of the graph that it is of. */
static enum tarn_status find_order(struct tarn_graph *graph,
                                   const struct tarn_plan_options *options,
                                   struct tarn_budget_report *row, struct tarn_error *error)
{
    struct tarn_plan *plan;
    struct tarn_simulation *simulation;
    struct tarn_plan_summary summary;
    enum tarn_status status = tarn_plan_create(graph, options, &plan, error);
    if (status != TARN_OK) return status;
    tarn_plan_summarize(plan, &summary);
    status = tarn_graph_simulate(tarn_plan_graph(plan), summary.alignment, TARN_WAIT_NS,
                                 &simulation, error);
    if (status == TARN_OK) {
        row->footprint = row->budget = summary.footprint;
        row->time_ns = simulation->makespan_ns;
        tarn_simulation_destroy(simulation);
    }
    tarn_plan_destroy(plan);
    return status;
}

/* Finds orders: as given; in no more time; with more and more of the time that the smallest
 * footprint takes; the smallest footprint. An order that one limit allows every higher limit
 * allows, too. */
static enum tarn_status find_orders(struct tarn_graph *graph,
                                    const struct tarn_plan_options *planning,
                                    struct tarn_budget_report *rows, uint32_t *points,
                                    struct tarn_error *error)
{
    uint32_t wanted = *points, last = wanted - 1;
    struct tarn_reorder_options reorder = {.struct_size = sizeof reorder};
    struct tarn_plan_options options = *planning;
    struct tarn_budget_report best = {0}, least = {0};
    *points = 0;
    enum tarn_status status = find_order(graph, &options, &best, error);
    options.reorder = &reorder;
    if (status == TARN_OK) status = find_order(graph, &options, &least, error);
    if (status != TARN_OK) return status;
    const uint64_t before_ns = best.time_ns, before = best.footprint;
    double growth = before_ns > 0 ? (double)least.time_ns / (double)before_ns - 1 : 0;
    for (uint32_t i = 0; i < wanted && status == TARN_OK; i++) {
        struct tarn_budget_report row = least;
        bool is_between = i > 0 && i < last;
        if (planning->stop && *planning->stop) break;
        if (is_between && growth <= 0) continue; /* the smallest footprint costs no time */
        reorder.keep_time = i == 1;
        reorder.slowdown_max = growth * (i - 1) / (last - 1);
        if (i == 0) row = best;
        if (is_between) status = find_order(graph, &options, &row, error);
        if (status != TARN_OK) break;
        if (row.footprint < best.footprint ||
            (row.footprint == best.footprint && row.time_ns < best.time_ns))
            best = row;
        if (*points > 0 && best.footprint == rows[*points - 1].footprint &&
            best.time_ns == rows[*points - 1].time_ns)
            continue; /* the limit has brought nothing */
        rows[*points] = best;
        rows[*points].footprint_before = before;
        rows[*points].time_before_ns = before_ns;
        ++*points;
    }
    if (status == TARN_OK && planning->stop && *planning->stop)
        status = tarn_fail(TARN_INTERRUPTED, NULL, "interrupted: not all orders were looked at");
    return status;
}

/* ---- The whole ---- */

enum tarn_status tarn_curve(const struct tarn_curve_request *request)
{
    static struct tarn_budget_report rows[TARN_CURVE_POINTS_MAX];
    struct tarn_graph *graph = NULL;
    struct tarn_error error = {.text = ""};
    bool on_stdout = tarn_is_dash(request->output_path), of_orders = request->planning != NULL;
    uint32_t points = request->points;
    enum tarn_status saved = TARN_OK;
    enum tarn_status status = tarn_graph_load(request->graph_path, request->load, &graph, &error);
    double begin = tarn_now_ms();
    if (status != TARN_OK)
        points = 0;
    else if (of_orders)
        status = find_orders(graph, request->planning, rows, &points, &error);
    else
        status = find_budgets(graph, request->budget, rows, &points, &error);
    double ms = tarn_now_ms() - begin;
    bool is_stopped = status == TARN_INTERRUPTED || status == TARN_DEADLINE;
    bool some = status == TARN_OK || (is_stopped && points > 0);
    if (status != TARN_OK && error.text[0]) tarn_print_error(&error, status);
    if (some && (saved = save(graph, rows, points, request->output_path, &error)) != TARN_OK)
        tarn_print_error(&error, status = saved);
    if (some && saved == TARN_OK)
        print_rows(on_stdout ? stderr : stdout, graph, rows, points, of_orders, request->json, ms);
    tarn_graph_destroy(graph);
    return status;
}
