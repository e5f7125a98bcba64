/* Draws the streams, a row each: launches that touch each other or are a grain apart are one
 * rectangle, with their names if there is room. Waits are lines, and left out if they would cover
 * everything. Cost: linear. */
#include "svg.h"
#include "words.h"

enum { WAITS_MAX = 300, NAMED_MAX = 60, NAMED_HEIGHT = 26, LETTER_WIDTH = 13 };

static void draw_row(struct tarn_svg *svg, tarn_stream s)
{
    const struct tarn_model *model = &svg->picture->model;
    const struct tarn_model_schedule *schedule = svg->schedule;
    int y = svg->rows.y + (int)s * svg->row_height, height = svg->row_height - 4, at = 0;
    uint32_t length = tarn_model_length(model, s);
    fprintf(svg->file,
            "<rect class=\"r\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"/>"
            "<path class=\"o\" d=\"M0 %d",
            svg->rows.x, y, svg->rows.width, height, y);
    for (uint32_t place = 0; place < length; place++) {
        uint32_t v = tarn_model_at(model, s, place);
        int begin = tarn_svg_x(svg, (double)schedule->begin[v]),
            end = tarn_svg_x(svg, (double)schedule->end[v]);
        if (end - begin > 4) end--;
        if (end <= begin) end = begin + 1;
        for (; place + 1 < length; place++) {
            uint32_t next = tarn_model_at(model, s, place + 1);
            if (tarn_svg_x(svg, (double)schedule->begin[next]) > end + svg->grain - 1) break;
            int next_end = tarn_svg_x(svg, (double)schedule->end[next]);
            if (next_end > end) end = next_end;
        }
        fprintf(svg->file, "m%d 0h%dv%dh%dz", begin - at, end - begin, height, begin - end);
        at = begin;
    }
    fputs("\"/>\n", svg->file);
}

static void draw_names(struct tarn_svg *svg)
{
    const struct tarn_model *model = &svg->picture->model;
    if (model->launches_count > NAMED_MAX || svg->row_height < NAMED_HEIGHT) return;
    fputs("<g font-size=\"22\">\n", svg->file);
    for (uint32_t v = 0; v < model->launches_count; v++) {
        struct tarn_op_info info;
        int x = tarn_svg_x(svg, (double)svg->schedule->begin[v]);
        int letters = (tarn_svg_x(svg, (double)svg->schedule->end[v]) - x - 12) / LETTER_WIDTH;
        tarn_stream s = model->launches[v].stream;
        if (letters < 1 || s >= svg->rows_count) continue;
        tarn_graph_op(model->graph, model->launches[v].op, &info);
        fprintf(svg->file, "<text class=\"n0\" x=\"%d\" y=\"%d\">", x + 6,
                svg->rows.y + (int)s * svg->row_height + svg->row_height / 2 + 5);
        tarn_write_name(svg->file, TARN_XML, info.name, (size_t)letters);
        fputs("</text>\n", svg->file);
    }
    fputs("</g>\n", svg->file);
}

static void draw_wait(struct tarn_svg *svg, uint32_t from, uint32_t to)
{
    const struct tarn_model *model = &svg->picture->model;
    tarn_stream a = model->launches[from].stream, b = model->launches[to].stream;
    if (a >= svg->rows_count || b >= svg->rows_count) return;
    int top = svg->rows.y, height = svg->row_height - 4;
    fprintf(svg->file, "M%d %dL%d %d", tarn_svg_x(svg, (double)svg->schedule->end[from]),
            top + (int)a * svg->row_height + (b > a ? height : 0),
            tarn_svg_x(svg, (double)svg->schedule->begin[to]),
            top + (int)b * svg->row_height + (b > a ? 0 : height));
}

void tarn_svg_rows(struct tarn_svg *svg)
{
    const struct tarn_model *model = &svg->picture->model;
    const struct tarn_lists *waits = &model->waits;
    for (tarn_stream s = 0; s < svg->rows_count; s++) draw_row(svg, s);
    draw_names(svg);
    if (waits->begin[model->launches_count] > WAITS_MAX) return;
    fputs("<path class=\"w\" d=\"M0 0", svg->file);
    for (uint32_t v = 0; v < model->launches_count; v++)
        for (uint32_t i = waits->begin[v]; i < waits->begin[v + 1]; i++)
            draw_wait(svg, waits->ids[i], v);
    fputs("\"/>\n", svg->file);
}
