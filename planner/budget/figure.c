/* Writes the cost of less memory, from the footprint of the unchanged graph down to the smallest
 * one, as a table for programs (CSV) and as a figure (SVG): the increase of modelled time against
 * the bytes of the arena. Rows may come from budgets or from other orders. Cost: linear. */
#include <math.h>
#include <string.h>

#include "streams/base/error.h"
#include "streams/base/escape.h"
#include "streams/base/options.h"
#include "streams/graph/graph.h"
#include "streams/text/text_file.h"
#include "tarn/transform.h"

enum { WIDTH = 640, HEIGHT = 400, LEFT = 76, RIGHT = 28, TOP = 42, BOTTOM = 68 };

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

/* ---- Picture ----
 * Both axes begin and end at the ticks nearest to the data, so that points fill the picture. */

/* From a tick to a tick. */
struct axis {
    double low, high, step;
};

/* 1, 2 or 5 times a power of ten, so that about `count` of them fill the span. */
static double step_of(double span, int count)
{
    double raw = span / count, ten = pow(10, floor(log10(raw)));
    return ten * (raw <= ten ? 1 : raw <= 2 * ten ? 2 : raw <= 5 * ten ? 5 : 10);
}

/* least: the step is at least this. */
static struct axis axis_of(double low, double high, int count, double least)
{
    struct axis axis;
    axis.step = high > low ? fmax(step_of(high - low, count), least) : least;
    axis.low = floor(low / axis.step + 1e-9) * axis.step;
    axis.high = ceil(high / axis.step - 1e-9) * axis.step;
    if (axis.high <= axis.low) {
        axis.low = fmax(0, axis.low - axis.step);
        axis.high += axis.step;
    }
    return axis;
}

struct picture {
    const struct curve *curve;
    struct axis x, y; /* x in units, y in percent */
    const char *unit;
    double unit_bytes;
};

static struct picture lay_out(const struct curve *curve)
{
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double least = HUGE_VAL, most = 0, low = 0, high = 0;
    size_t unit = 0;
    struct picture picture = {.curve = curve, .unit_bytes = 1};
    for (size_t i = 0; i < curve->count; i++) {
        const struct tarn_budget_report row = row_of(curve, i);
        least = fmin(least, (double)row.footprint);
        most = fmax(most, (double)row.footprint);
        low = fmin(low, overhead_of(&row));
        high = fmax(high, overhead_of(&row));
    }
    if (curve->count == 0) least = 0;
    for (; most / picture.unit_bytes >= 2048 && unit < 6; unit++) picture.unit_bytes *= 1024;
    picture.unit = units[unit];
    picture.x =
        axis_of(least / picture.unit_bytes, most / picture.unit_bytes, 7, unit == 0 ? 1 : 0.01);
    picture.y = axis_of(low, high, 6, 0.1);
    return picture;
}

static double x_of(const struct picture *picture, double units)
{
    double share = (units - picture->x.low) / (picture->x.high - picture->x.low);
    return LEFT + share * (WIDTH - LEFT - RIGHT);
}

static double y_of(const struct picture *picture, double percent)
{
    double share = (percent - picture->y.low) / (picture->y.high - picture->y.low);
    return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM);
}

static size_t ticks_of(const struct axis *axis)
{
    return (size_t)lround((axis->high - axis->low) / axis->step) + 1;
}

/* A number as a tick: "0", not "-0" or "1e-15". */
static double tick_at(const struct axis *axis, size_t i)
{
    double at = axis->low + (double)i * axis->step;
    return fabs(at) < axis->step / 2 ? 0 : at;
}

static void print_axes(const struct picture *picture, FILE *file)
{
    const int floor_y = HEIGHT - BOTTOM, end_x = WIDTH - RIGHT;
    for (size_t i = 0; i < ticks_of(&picture->x); i++) {
        double at = tick_at(&picture->x, i), x = x_of(picture, at);
        fprintf(file,
                "<path stroke='#ddd' d='M%.1f %dV%d'/><path stroke='#222' d='M%.1f %dv6'/>\n"
                "<text x='%.1f' y='%d' text-anchor='middle'>%.7g</text>\n",
                x, TOP, floor_y, x, floor_y, x, floor_y + 22, at);
    }
    for (size_t i = 0; i < ticks_of(&picture->y); i++) {
        double at = tick_at(&picture->y, i), y = y_of(picture, at);
        fprintf(file,
                "<path stroke='#ddd' d='M%d %.1fH%d'/><path stroke='#222' d='M%d %.1fh-6'/>\n"
                "<text x='%d' y='%.1f' text-anchor='end'>%.7g</text>\n",
                LEFT, y, end_x, LEFT, y, LEFT - 10, y + 5, at);
    }
    fprintf(file,
            "<path stroke='#222' stroke-width='1.5' fill='none' d='M%d %dV%dH%d'/>\n"
            "<text x='%d' y='%d' text-anchor='middle' font-size='16'>arena, %s</text>\n"
            "<text transform='translate(20 %d) rotate(-90)' text-anchor='middle' "
            "font-size='16'>increase of modelled time, %%</text>\n",
            LEFT, TOP, floor_y, end_x, (LEFT + end_x) / 2, HEIGHT - 12, picture->unit,
            (TOP + floor_y) / 2);
}

static void print_picture(const void *subject, FILE *file)
{
    const struct curve *curve = subject;
    const struct picture picture = lay_out(curve);
    fprintf(file,
            "<svg xmlns='http://www.w3.org/2000/svg' width='%d' height='%d' viewBox='0 0 %d %d' "
            "font-family='Helvetica,Arial,sans-serif' font-size='14' fill='#222'>\n"
            "<rect width='100%%' height='100%%' fill='#fff'/>\n"
            "<text x='%d' y='26' text-anchor='middle' font-size='16'>",
            WIDTH, HEIGHT, WIDTH, HEIGHT, (LEFT + WIDTH - RIGHT) / 2);
    tarn_escape_write(file, TARN_XML, curve->name);
    fprintf(file, "</text>\n");
    print_axes(&picture, file);
    for (int round = 0; round < 2; round++) {
        if (round == 0)
            fprintf(file, "<polyline fill='none' stroke='#06c' stroke-width='2' points='");
        for (size_t i = 0; i < curve->count; i++) {
            const struct tarn_budget_report row = row_of(curve, i);
            fprintf(file,
                    round == 0 ? "%.1f,%.1f " : "<circle cx='%.1f' cy='%.1f' r='4' fill='#06c'/>\n",
                    x_of(&picture, (double)row.footprint / picture.unit_bytes),
                    y_of(&picture, overhead_of(&row)));
        }
        if (round == 0) fprintf(file, "'/>\n");
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
