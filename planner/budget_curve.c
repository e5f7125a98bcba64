/* What budgets cost, from the footprint of keeping everything down to the least: as a table for
 * programs (CSV) and as a picture (SVG): overhead in time against memory, persistent part included,
 * both relative to keeping everything. */
#include <string.h>

#include "streams/base/error.h"
#include "streams/base/escape.h"
#include "streams/base/options.h"
#include "streams/graph/graph.h"
#include "streams/text/text_file.h"
#include "tarn/transform.h"

enum { WIDTH = 640, HEIGHT = 400, MARGIN = 56 };

struct curve {
    const char *name;
    uint64_t persistent;
    const unsigned char *rows; /* of the caller's size */
    size_t size, count;
};

static struct tarn_budget_report row_of(const struct curve *curve, size_t i)
{
    struct tarn_budget_report row;
    tarn_struct_give(&row, sizeof row, curve->rows + i * curve->size, curve->size);
    return row;
}

static double memory_of(const struct curve *curve, const struct tarn_budget_report *row)
{
    double kept = (double)(curve->persistent + row->footprint_before);
    return kept > 0 ? (double)(curve->persistent + row->footprint) / kept : 1;
}

static double overhead_of(const struct tarn_budget_report *row)
{
    return row->time_before_ns > 0 ? 100 * ((double)row->time_ns / (double)row->time_before_ns - 1)
                                   : 0;
}

static void print_table(const void *subject, FILE *file)
{
    const struct curve *curve = subject;
    fprintf(file, "budget_bytes,footprint_bytes,persistent_bytes,memory_ratio,time_ns,"
                  "overhead_percent,recomputed_ns,recomputed_ops,other_implementations\n");
    for (size_t i = 0; i < curve->count; i++) {
        const struct tarn_budget_report known = row_of(curve, i), *row = &known;
        fprintf(file, "%llu,%llu,%llu,%.4f,%llu,%.3f,%llu,%u,%u\n", (unsigned long long)row->budget,
                (unsigned long long)row->footprint, (unsigned long long)curve->persistent,
                memory_of(curve, row), (unsigned long long)row->time_ns, overhead_of(row),
                (unsigned long long)row->recomputed_ns, row->recomputed, row->implemented);
    }
}

/* ---- Picture ---- */

/* Round steps of the vertical axis, about five of them. */
static double step_of(double span)
{
    static const double steps[] = {0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500};
    size_t i = 0;
    while (i + 1 < sizeof steps / sizeof *steps && span / steps[i] > 6) i++;
    return steps[i];
}

struct axes {
    double low, high, step; /* percent */
};

static struct axes axes_of(const struct curve *curve)
{
    struct axes axes = {0, 1, 1};
    for (size_t i = 0; i < curve->count; i++) {
        const struct tarn_budget_report row = row_of(curve, i);
        double overhead = overhead_of(&row);
        if (overhead < axes.low) axes.low = overhead;
        if (overhead > axes.high) axes.high = overhead;
    }
    axes.step = step_of(axes.high - axes.low);
    return axes;
}

static double x_of(double memory) { return MARGIN + memory * (WIDTH - 2 * MARGIN); }

static double y_of(const struct axes *axes, double overhead)
{
    double share = (overhead - axes->low) / (axes->high - axes->low);
    return HEIGHT - MARGIN - share * (HEIGHT - 2 * MARGIN);
}

static void print_axes(const struct axes *axes, FILE *file)
{
    for (int i = 0; i <= 10; i += 2)
        fprintf(file,
                "<line x1='%.1f' y1='%d' x2='%.1f' y2='%d' stroke='#ddd'/>\n"
                "<text x='%.1f' y='%d' text-anchor='middle'>%.1f</text>\n",
                x_of(i / 10.0), MARGIN, x_of(i / 10.0), HEIGHT - MARGIN, x_of(i / 10.0),
                HEIGHT - MARGIN + 18, i / 10.0);
    int first = (int)(axes->low / axes->step);
    for (int i = first; i * axes->step <= axes->high; i++)
        fprintf(file,
                "<line x1='%d' y1='%.1f' x2='%d' y2='%.1f' stroke='#ddd'/>\n"
                "<text x='%d' y='%.1f' text-anchor='end'>%g %%</text>\n",
                MARGIN, y_of(axes, i * axes->step), WIDTH - MARGIN, y_of(axes, i * axes->step),
                MARGIN - 6, y_of(axes, i * axes->step) + 4, i * axes->step);
    fprintf(file, "<text x='%d' y='%d' text-anchor='middle'>memory, of keeping everything</text>\n",
            WIDTH / 2, HEIGHT - 12);
}

struct point {
    double x, y;
};

static struct point point_of(const struct curve *curve, const struct axes *axes, size_t i)
{
    const struct tarn_budget_report row = row_of(curve, i);
    return (struct point){x_of(memory_of(curve, &row)), y_of(axes, overhead_of(&row))};
}

static void print_picture(const void *subject, FILE *file)
{
    const struct curve *curve = subject;
    struct axes axes = axes_of(curve);
    fprintf(file,
            "<svg xmlns='http://www.w3.org/2000/svg' width='%d' height='%d' "
            "font-family='sans-serif' font-size='12'>\n"
            "<rect width='100%%' height='100%%' fill='white'/>\n"
            "<text x='%d' y='28' text-anchor='middle' font-size='14'>",
            WIDTH, HEIGHT, WIDTH / 2);
    tarn_escape_write(file, TARN_XML, curve->name);
    fprintf(file, ": modelled overhead of a budget</text>\n");
    print_axes(&axes, file);
    fprintf(file, "<polyline fill='none' stroke='#06c' stroke-width='2' points='");
    for (size_t i = 0; i < curve->count; i++) {
        struct point point = point_of(curve, &axes, i);
        fprintf(file, "%.1f,%.1f ", point.x, point.y);
    }
    fprintf(file, "'/>\n");
    for (size_t i = 0; i < curve->count; i++) {
        struct point point = point_of(curve, &axes, i);
        fprintf(file, "<circle cx='%.1f' cy='%.1f' r='3' fill='#06c'/>\n", point.x, point.y);
    }
    fprintf(file, "</svg>\n");
}

enum tarn_status tarn_budget_curve_save_sized(const struct tarn_graph *graph,
                                              const struct tarn_budget_report *rows, size_t size,
                                              size_t count, const char *path,
                                              struct tarn_error *error)
{
    if (!graph || !path || (!rows && count > 0)) return tarn_error_null(error, __func__);
    struct tarn_graph_summary summary;
    tarn_error_clear(error);
    enum tarn_status status = tarn_graph_summarize(graph, &summary, error);
    if (status != TARN_OK) return status;
    const struct curve curve = {graph->name, summary.persistent, (const unsigned char *)rows, size,
                                count};
    bool picture = tarn_text_is_named(path, "svg");
    return tarn_text_save(path, picture ? print_picture : print_table, &curve, error);
}
