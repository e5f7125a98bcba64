/* The static picture: bytes in use, the map, the streams, and a legend; light or dark as the
 * reader's page is. Where the file would be too large it is drawn again with a coarser grain. Cost:
 * that of the map, a few times. */
#include "svg.h"

#include <math.h>
#include <stdlib.h>

#include "words.h"
#include "writers.h"

enum { SIZE_MAX_BYTES = 300000, GRAIN_MAX = 64 };
enum { WIDTH = 1920, LEFT = 180, ACROSS = 1560, ROWS_HEIGHT = 300, ROWS_MAX = 30 };

/* Kinds: fill in light, in dark, text on it in light and dark. Apart by lightness in every colour
 * vision; see page/colours.js. */
static const char *const colours[TARN_HOLDER_KINDS][4] = {
    {"#6f9fd0", "#4d7fb5", "#10141b", "#fff"},
    {"#f0b04a", "#d0922f", "#10141b", "#10141b"},
    {"#1d8a66", "#1f7d5a", "#fff", "#fff"},
    {"#7d3f92", "#d3aee0", "#fff", "#10141b"},
};
static const char *const kinds[TARN_HOLDER_KINDS] = {"intermediate", "gradient", "output",
                                                     "workspace"};

static void write_style(FILE *file)
{
    fputs("<style>text{fill:#444b57}.t{fill:#16181d;font-weight:600;font-size:28px}.b{fill:#fff}"
          ".e{fill:#f2f2f0}.i{stroke:#16181d;fill:none}.g{stroke:#a3246f;fill:none}.c,.o{fill:"
          "#8b95a5}.w{stroke:#16181d;fill:none;stroke-opacity:.35;stroke-width:1.3}.r{fill:#f0f1f4}"
          ".x{fill:#b3401d}",
          file);
    for (int k = 0; k < TARN_HOLDER_KINDS; k++)
        fprintf(file, ".k%d{fill:%s}.h%d{fill:url(#h%d)}.n%d{fill:%s}", k, colours[k][0], k, k, k,
                colours[k][2]);
    fputs(
        "@media(prefers-color-scheme:dark){text{fill:#a7aebb}.t{fill:#eceef2}.b{fill:#121418}"
        ".e{fill:#181b20}.i{stroke:#eceef2}.g{stroke:#f08cc4}.c,.o{fill:#76808f}.w{stroke:#eceef2}"
        ".r{fill:#1c2026}.x{fill:#ff9a70}",
        file);
    for (int k = 0; k < TARN_HOLDER_KINDS; k++)
        fprintf(file, ".k%d{fill:%s}.n%d{fill:%s}", k, colours[k][1], k, colours[k][3]);
    fputs("}</style>\n", file);
    for (int k = 0; k < TARN_HOLDER_KINDS; k++) /* held: hatched */
        fprintf(
            file,
            "<pattern id=\"h%d\" width=\"10\" height=\"10\" patternUnits=\"userSpaceOnUse\"><path "
            "class=\"k%d\" d=\"M0 10L10 0H6L0 6zM10 10V6L6 10z\"/></pattern>\n",
            k, k);
}

/* anchor: "start", "middle" or "end". */
static void write_text(struct tarn_svg *svg, int x, int y, const char *anchor, const char *text)
{
    fprintf(svg->file, "<text x=\"%d\" y=\"%d\" text-anchor=\"%s\">", x, y, anchor);
    tarn_write_name(svg->file, TARN_XML, text, TARN_NAME_MAX);
    fputs("</text>\n", svg->file);
}

/* ---- Head and curve ---- */

static void draw_head(struct tarn_svg *svg, int height)
{
    const struct tarn_model *model = &svg->picture->model;
    const struct tarn_plan_summary *summary = &model->summary;
    char line[200];
    fprintf(svg->file,
            "<rect class=\"b\" width=\"%d\" height=\"%d\"/><text class=\"t\" x=\"%d\" "
            "y=\"40\">",
            WIDTH, height, LEFT);
    tarn_write_name(svg->file, TARN_XML, tarn_graph_name(model->graph), 40);
    fputs("</text>\n", svg->file);
    int length = snprintf(line, sizeof line, "%s storages, %u stream%s, %u waits; footprint %s",
                          tarn_grouped(model->holders_count).text, model->streams_count,
                          model->streams_count == 1 ? "" : "s", summary->waits,
                          tarn_amount(summary->footprint).text);
    if (summary->optimal)
        snprintf(line + length, sizeof line - (size_t)length, " = bound");
    else if (model->has_certificate)
        snprintf(line + length, sizeof line - (size_t)length, ", bound %s",
                 tarn_amount(summary->bound).text);
    write_text(svg, LEFT + ACROSS, 40, "end", line);
    if (tarn_verdict_count(svg->picture->verdict) == 0) return;
    snprintf(line, sizeof line, "REFUSED: %.180s",
             tarn_verdict_get(svg->picture->verdict, 0)->text);
    fputs("<g class=\"x\">", svg->file);
    fprintf(svg->file, "<text class=\"x\" x=\"%d\" y=\"70\">", LEFT);
    tarn_write_name(svg->file, TARN_XML, line, 150);
    fputs("</text></g>\n", svg->file);
}

static void draw_levels(struct tarn_svg *svg)
{
    const struct tarn_picture *picture = svg->picture;
    const struct tarn_svg_frame *frame = &svg->curve;
    int floor = frame->y + frame->height, last_x = -1;
    uint64_t most = 0; /* of what falls on the same column */
    fprintf(svg->file, "<path class=\"c\" d=\"M%d %d", frame->x, floor);
    for (size_t i = 0; i < picture->levels_count; i++) {
        int x = tarn_svg_x(svg, picture->levels[i].at);
        bool is_new = x > last_x + svg->grain - 1;
        if (is_new && last_x >= 0) fprintf(svg->file, "V%d", tarn_svg_y(frame, most));
        if (is_new) fprintf(svg->file, "H%d", last_x = x);
        if (is_new || picture->levels[i].alive > most) most = picture->levels[i].alive;
    }
    fprintf(svg->file, "V%dH%dV%dz\"/>\n", tarn_svg_y(frame, most), frame->x + frame->width, floor);
}

static void draw_mark(struct tarn_svg *svg, uint64_t bytes, const char *dashes, const char *name,
                      int *free_y)
{
    int y = tarn_svg_y(&svg->curve, bytes);
    fprintf(svg->file, "<path class=\"i\" stroke-width=\"1.6\"%s d=\"M%d %dh%d\"/>\n", dashes,
            svg->curve.x, y, svg->curve.width);
    int text_y = y + 8 > *free_y ? y + 8 : *free_y;
    write_text(svg, svg->curve.x + svg->curve.width + 10, text_y, "start", name);
    *free_y = text_y + 24;
}

static void draw_curve(struct tarn_svg *svg)
{
    const struct tarn_model *model = &svg->picture->model;
    int free_y = 0;
    draw_levels(svg);
    draw_mark(svg, model->summary.footprint, "", "footprint", &free_y);
    if (model->has_certificate && !model->summary.optimal)
        draw_mark(svg, model->summary.bound, " stroke-dasharray=\"12 6\"", "bound", &free_y);
    draw_mark(svg, model->serial_peak, " stroke-dasharray=\"4 5\"", "serial peak", &free_y);
    write_text(svg, LEFT - 12, svg->curve.y + svg->curve.height, "end", "bytes in use");
}

/* ---- Scale and legend ---- */

/* The scale of a memory space, from its own zero on, in whose place its name stands where there are
 * several; and a line where it begins. */
static void draw_space(struct tarn_svg *svg, uint32_t s)
{
    const struct tarn_model *model = &svg->picture->model;
    const struct tarn_model_space *space = &model->spaces[s];
    bool is_one = model->spaces_count == 1, is_last = s + 1 == model->spaces_count;
    int high = tarn_svg_y(&svg->map, space->begin + space->footprint);
    double step = fmax(exp2(ceil(log2(svg->map.top / 6))), 1), top = (double)space->footprint;
    for (double bytes = is_one ? 0 : step; bytes <= top; bytes += step) {
        int y = tarn_svg_y(&svg->map, space->begin + (uint64_t)bytes);
        if (is_last || y > high + 24)
            write_text(svg, LEFT - 12, y + 8, "end", tarn_round_amount((uint64_t)bytes).text);
    }
    if (is_one) return;
    int y = tarn_svg_y(&svg->map, space->begin);
    fprintf(svg->file, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">", LEFT - 12, y + 8);
    tarn_write_name(svg->file, TARN_XML, space->name, 14);
    fprintf(svg->file, "</text>\n<path class=\"i\" stroke-width=\"3\" d=\"M%d %dh%d\"/>\n", LEFT, y,
            ACROSS);
}

static void draw_scale(struct tarn_svg *svg)
{
    for (uint32_t s = 0; s < svg->picture->model.spaces_count; s++) draw_space(svg, s);
    uint32_t named =
        (uint32_t)(19 + svg->row_height) / (uint32_t)svg->row_height; /* each such one */
    for (tarn_stream s = 0; s < svg->rows_count; s += named) {
        fprintf(svg->file, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">", LEFT - 12,
                svg->rows.y + (int)s * svg->row_height + svg->row_height / 2 + 6);
        tarn_write_name(svg->file, TARN_XML, tarn_graph_stream_name(svg->picture->model.graph, s),
                        14);
        fputs("</text>\n", svg->file);
    }
}

static int draw_key(struct tarn_svg *svg, int x, int y, const char *class, const char *text)
{
    fprintf(svg->file,
            "<rect class=\"%s\" stroke-width=\"2\" x=\"%d\" y=\"%d\" width=\"20\" height=\"20\"/>",
            class, x, y - 18);
    fprintf(svg->file, "<text x=\"%d\" y=\"%d\">%s</text>\n", x + 28, y, text);
    return x;
}

static void draw_legend(struct tarn_svg *svg, int y)
{
    const struct tarn_model *model = &svg->picture->model;
    bool is_there[TARN_HOLDER_KINDS] = {false}, is_certified = false, is_grouped = false;
    bool is_held = false;
    char text[160];
    int x = LEFT;
    for (uint32_t h = 0; h < model->holders_count; h++) {
        is_there[model->holders[h].kind] = true;
        is_certified = is_certified || model->holders[h].certified;
        is_grouped = is_grouped || model->holders[h].group != TARN_NONE;
        is_held = is_held || svg->picture->spans[h].free > svg->picture->spans[h].end;
    }
    for (int k = 0; k < TARN_HOLDER_KINDS; k++) {
        char class[16];
        snprintf(class, sizeof class, "k%d", k);
        if (is_there[k]) x = draw_key(svg, x, y, class, kinds[k]) + 190;
    }
    if (is_held) x = draw_key(svg, x, y, "h0", "held") + 190;
    if (is_certified) x = draw_key(svg, x, y, "i", "certificate") + 190;
    if (is_grouped) draw_key(svg, x, y, "g", "contiguous group");
    snprintf(text, sizeof text, "x: %s%s", tarn_axis_text(svg->picture),
             svg->schedule->has_mark ? " (dashed)" : "");
    write_text(svg, LEFT + ACROSS, y + 32, "end", text);
    int length = svg->rows_count < model->streams_count
                     ? snprintf(text, sizeof text, "%u more streams are not drawn. ",
                                model->streams_count - svg->rows_count)
                     : 0;
    if (svg->merged > 0)
        snprintf(text + length, sizeof text - (size_t)length,
                 "%s storages coincide with others at this size", tarn_grouped(svg->merged).text);
    if (length > 0 || svg->merged > 0) write_text(svg, LEFT, y + 32, "start", text);
}

/* ---- The whole ---- */

static bool draw(struct tarn_svg *svg)
{
    int legend_y = svg->rows.y + svg->rows.height + 36, height = legend_y + 52;
    fprintf(svg->file,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" font-family=\""
            "system-ui,Helvetica,Arial,sans-serif\" font-size=\"22\" role=\"img\" aria-label=\""
            "Memory plan\">\n",
            WIDTH, height);
    write_style(svg->file);
    draw_head(svg, height);
    draw_curve(svg);
    fprintf(svg->file, "<rect class=\"e\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"/>\n",
            svg->map.x, svg->map.y, svg->map.width, svg->map.height);
    bool is_complete = tarn_svg_map(svg);
    tarn_svg_rows(svg);
    if (svg->schedule->has_mark) {
        double middle = (double)(svg->schedule->mark_begin + svg->schedule->mark_end) / 2;
        fprintf(svg->file,
                "<path class=\"i\" stroke-width=\"2\" stroke-dasharray=\"8 5\" d=\"M%d %dV%d\"/>\n",
                tarn_svg_x(svg, middle), svg->curve.y, svg->rows.y + svg->rows.height);
    }
    draw_scale(svg);
    draw_legend(svg, legend_y);
    fputs("</svg>\n", svg->file);
    return is_complete;
}

static struct tarn_svg lay_out(const struct tarn_picture *picture)
{
    const struct tarn_model *model = &picture->model;
    double footprint = fmax((double)model->summary.footprint, 1);
    double high = fmax(footprint, (double)model->serial_peak);
    struct tarn_svg svg = {.picture = picture, .schedule = tarn_picture_schedule(picture)};
    svg.rows_count = model->streams_count < ROWS_MAX ? model->streams_count : ROWS_MAX;
    svg.row_height = ROWS_HEIGHT / (int)(svg.rows_count > 0 ? svg.rows_count : 1);
    if (svg.row_height > 32) svg.row_height = 32;
    svg.curve = (struct tarn_svg_frame){LEFT, 84, ACROSS, 168, high * 1.06};
    svg.map = (struct tarn_svg_frame){LEFT, 284, ACROSS, 680, footprint};
    svg.rows = (struct tarn_svg_frame){LEFT, 984, ACROSS, (int)svg.rows_count * svg.row_height, 1};
    return svg;
}

bool tarn_write_svg(FILE *file, const struct tarn_picture *picture)
{
    bool is_complete = false;
    for (int grain = 1;; grain *= 2) {
        char *text = NULL;
        size_t size = 0;
        struct tarn_svg svg = lay_out(picture);
        svg.grain = grain;
        svg.file = open_memstream(&text, &size);
        if (!svg.file) return false;
        is_complete = draw(&svg);
        if (fclose(svg.file) != 0) is_complete = false;
        bool is_last = !is_complete || size <= SIZE_MAX_BYTES || grain >= GRAIN_MAX;
        if (is_last && is_complete) fwrite(text, 1, size, file);
        free(text);
        if (is_last) return is_complete;
    }
}
