/* Draws the static picture: bytes in use, the map, the streams, and a legend; light or dark like
 * the reader's page. If the file would be too large, it is drawn again with a coarser grain. Cost:
 * a few times the cost of the map. */
#include "svg.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "words.h"
#include "writers.h"

enum { SIZE_MAX_BYTES = 300000, GRAIN_MAX = 64 };
/* The widths beside the parts, and the parts' heights; SCALE: units to a CSS pixel. */
enum { SCALE = 2, WIDTH = 960, LEFT = 208, RIGHT = 190, ROWS_HEIGHT = 320, ROWS_MAX = 30 };
/* Type: about as wide as a letter is on average, and as high as a line. */
enum { TYPE = 26, LETTER = 14, LINE = 32, TITLE_LETTER = 21 };

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
    fputs("<style>text{fill:#444b57}.t{fill:#16181d;font-weight:600;font-size:32px}.l{stroke:#"
          "16181d;stroke-opacity:.14;fill:none}.b{fill:#fff}"
          ".e{fill:#f2f2f0}.i{stroke:#16181d;fill:none}.g{stroke:#a3246f;fill:none}.c,.o{fill:"
          "#8b95a5}.w{stroke:#16181d;fill:none;stroke-opacity:.35;stroke-width:1.3}.r{fill:#f0f1f4}"
          ".x{fill:#b3401d}",
          file);
    for (int k = 0; k < TARN_HOLDER_KINDS; k++)
        fprintf(file, ".k%d{fill:%s}.h%d{fill:url(#h%d)}.n%d{fill:%s}", k, colours[k][0], k, k, k,
                colours[k][2]);
    fputs("@media(prefers-color-scheme:dark){text{fill:#a7aebb}.t{fill:#eceef2}.b{fill:#121418}"
          ".e{fill:#181b20}.l{stroke:#eceef2}.i{stroke:#eceef2}.g{stroke:#f08cc4}.c,.o{fill:#"
          "76808f}.w{stroke:#eceef2}"
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

/* "12 storages, 3 streams, 4 waits; footprint 1 MiB = bound" */
static void write_summary(const struct tarn_svg *svg, char line[200])
{
    const struct tarn_model *model = &svg->picture->model;
    const struct tarn_plan_summary *summary = &model->summary;
    int length = snprintf(line, 200, "%s storages, %u stream%s, %u waits; footprint %s",
                          tarn_grouped(model->holders_count).text, model->streams_count,
                          model->streams_count == 1 ? "" : "s", summary->waits,
                          tarn_amount(summary->footprint).text);
    if (summary->optimal)
        snprintf(line + length, 200 - (size_t)length, " = bound");
    else if (model->has_certificate)
        snprintf(line + length, 200 - (size_t)length, ", bound %s",
                 tarn_amount(summary->bound).text);
}

/* Letters of the title that there is room for. */
static size_t title_room(const struct tarn_svg *svg)
{
    size_t room = (size_t)(svg->width - LEFT) / TITLE_LETTER;
    return room < 40 ? room : 40;
}

/* Is there room for both, title and summary, in one line? */
static bool is_one_line(const struct tarn_svg *svg)
{
    char line[200];
    size_t title = strlen(tarn_graph_name(svg->picture->model.graph));
    write_summary(svg, line);
    if (title > title_room(svg)) title = title_room(svg);
    return (int)(title * TITLE_LETTER + strlen(line) * LETTER) + LINE < svg->width - LEFT;
}

static void draw_head(struct tarn_svg *svg)
{
    char line[200];
    bool one_line = is_one_line(svg);
    int y = 44;
    fprintf(svg->file,
            "<rect class=\"b\" width=\"%d\" height=\"%d\"/><text class=\"t\" x=\"%d\" "
            "y=\"%d\">",
            svg->width, svg->height, LEFT, y);
    tarn_write_name(svg->file, TARN_XML, tarn_graph_name(svg->picture->model.graph),
                    title_room(svg));
    fputs("</text>\n", svg->file);
    write_summary(svg, line);
    char *second = one_line ? NULL : strchr(line, ';');
    if (second) *second = '\0';
    if (!one_line) y += LINE;
    write_text(svg, one_line ? svg->width - 20 : LEFT, y, one_line ? "end" : "start", line);
    if (second) write_text(svg, LEFT, y += LINE, "start", second + 2);
    if (tarn_verdict_count(svg->picture->verdict) == 0) return;
    snprintf(line, sizeof line, "REFUSED: %.180s",
             tarn_verdict_get(svg->picture->verdict, 0)->text);
    fputs("<g class=\"x\">", svg->file);
    fprintf(svg->file, "<text class=\"x\" x=\"%d\" y=\"%d\">", LEFT, y + LINE);
    tarn_write_name(svg->file, TARN_XML, line, (size_t)(svg->width - LEFT) / LETTER);
    fputs("</text></g>\n", svg->file);
}

static int head_height(const struct tarn_svg *svg)
{
    bool is_refused = tarn_verdict_count(svg->picture->verdict) > 0;
    return 44 + (2 * !is_one_line(svg) + is_refused) * LINE + 40;
}

static void draw_levels(struct tarn_svg *svg)
{
    const struct tarn_picture *picture = svg->picture;
    const struct tarn_svg_frame *frame = &svg->curve;
    int floor = frame->y + frame->height, last_x = -1;
    uint64_t most = 0; /* the maximum in the same column */
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

/* Draws a line with its name and bytes beside it, below the names of the lines above it. */
static void draw_mark(struct tarn_svg *svg, uint64_t bytes, const char *dashes, const char *name,
                      int *free_y)
{
    int y = tarn_svg_y(&svg->curve, bytes), x = svg->curve.x + svg->curve.width + 10;
    fprintf(svg->file, "<path class=\"i\" stroke-width=\"1.6\"%s d=\"M%d %dh%d\"/>\n", dashes,
            svg->curve.x, y, svg->curve.width);
    int text_y = y + 9 > *free_y ? y + 9 : *free_y;
    write_text(svg, x, text_y, "start", name);
    write_text(svg, x, text_y + LINE - 4, "start", tarn_amount(bytes).text);
    *free_y = text_y + 2 * LINE;
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
    write_text(svg, LEFT - 18, svg->curve.y + svg->curve.height, "end", "bytes in use");
}

/* ---- Scale and legend ---- */

/* Draws the scale of a memory space, starting at its own zero, and a line at its start. If there
 * are several spaces, the space's name replaces the zero. */
static void draw_space(struct tarn_svg *svg, uint32_t s)
{
    const struct tarn_model *model = &svg->picture->model;
    const struct tarn_model_space *space = &model->spaces[s];
    bool is_one = model->spaces_count == 1, is_last = s + 1 == model->spaces_count;
    int high = tarn_svg_y(&svg->map, space->begin + space->footprint);
    double step = fmax(exp2(ceil(log2(svg->map.top / 6))), 1), top = (double)space->footprint;
    for (double bytes = is_one ? 0 : step; bytes <= top; bytes += step) {
        int y = tarn_svg_y(&svg->map, space->begin + (uint64_t)bytes);
        if (!is_last && y <= high + 24) continue;
        write_text(svg, LEFT - 18, y + 9, "end", tarn_round_amount((uint64_t)bytes).text);
        fprintf(svg->file,
                "<path class=\"l\" stroke-width=\"1.4\" d=\"M%d %dh%d\"/><path class=\"i\" "
                "stroke-width=\"1.6\" d=\"M%d %dh-10\"/>\n",
                LEFT, y, svg->map.width, LEFT, y);
    }
    if (is_one) return;
    int y = tarn_svg_y(&svg->map, space->begin);
    fprintf(svg->file, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">", LEFT - 18, y + 9);
    tarn_write_name(svg->file, TARN_XML, space->name, 13);
    fprintf(svg->file, "</text>\n<path class=\"i\" stroke-width=\"3\" d=\"M%d %dh%d\"/>\n", LEFT, y,
            svg->map.width);
}

/* A step of the x axis as its tick: 12,000 launches, or 1.5 ms. */
static struct tarn_amount tick_text(const struct tarn_svg *svg, double at, double step)
{
    static const struct {
        const char *name;
        double ns;
    } units[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
    struct tarn_amount text;
    size_t unit = 0;
    if (!svg->schedule->is_time) return tarn_grouped((uint64_t)(at + 0.5));
    while (unit < 3 && (double)svg->schedule->length >= 2 * units[unit + 1].ns) unit++;
    int places = step >= units[unit].ns ? 0 : step >= units[unit].ns / 10 ? 1 : 2;
    snprintf(text.text, sizeof text.text, "%.*f %s", places, at / units[unit].ns, units[unit].name);
    return text;
}

/* 1, 2 or 5 times a power of ten, no nearer to each other than the numbers have room. */
static void draw_ticks(struct tarn_svg *svg)
{
    double length = (double)svg->schedule->length, count = (double)svg->map.width / (12 * LETTER);
    double raw = fmax(length / fmax(count, 1), 1), ten = pow(10, floor(log10(raw)));
    double step = ten * (raw <= ten ? 1 : raw <= 2 * ten ? 2 : raw <= 5 * ten ? 5 : 10);
    int y = svg->rows.y + svg->rows.height;
    for (double at = 0; at <= length; at += step) {
        int x = tarn_svg_x(svg, at);
        fprintf(svg->file, "<path class=\"i\" stroke-width=\"1.6\" d=\"M%d %dv10\"/>\n", x, y);
        write_text(svg, x, y + 10 + LINE - 6, "middle", tick_text(svg, at, step).text);
    }
    char text[160];
    snprintf(text, sizeof text, "%s%s", tarn_axis_text(svg->picture),
             svg->schedule->has_mark ? "; dashed: the cut" : "");
    if (svg->picture->axis == TARN_AXIS_WRONG)
        snprintf(text, sizeof text, "%s (dashed: where)", tarn_axis_text(svg->picture));
    bool has_room = (int)strlen(text) * LETTER < svg->map.width + 2 * RIGHT;
    write_text(svg, has_room ? LEFT + svg->map.width / 2 : svg->width / 2, y + 10 + 2 * LINE - 4,
               "middle", text);
}

static void draw_scale(struct tarn_svg *svg)
{
    for (uint32_t s = 0; s < svg->picture->model.spaces_count; s++) draw_space(svg, s);
    uint32_t named =
        (uint32_t)(TYPE - 3 + svg->row_height) / (uint32_t)svg->row_height; /* each such one */
    for (tarn_stream s = 0; s < svg->rows_count; s += named) {
        fprintf(svg->file, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">", LEFT - 18,
                svg->rows.y + (int)s * svg->row_height + svg->row_height / 2 + 7);
        tarn_write_name(svg->file, TARN_XML, tarn_graph_stream_name(svg->picture->model.graph, s),
                        13);
        fputs("</text>\n", svg->file);
    }
    draw_ticks(svg);
}

/* ---- Legend ---- */

/* The position of the next key; a key that has no room goes into the next line. file NULL: only
 * positions are computed. */
struct legend {
    FILE *file;
    int x, y, width;
};

static void draw_key(struct legend *legend, const char *attributes, const char *text)
{
    int width = 30 + (int)strlen(text) * LETTER + 26;
    if (legend->x > LEFT && legend->x + width > legend->width) {
        legend->x = LEFT;
        legend->y += LINE + 4;
    }
    if (legend->file)
        fprintf(legend->file,
                "<rect %s stroke-width=\"2\" x=\"%d\" y=\"%d\" width=\"22\" height=\"22\"/>"
                "<text x=\"%d\" y=\"%d\">%s</text>\n",
                attributes, legend->x, legend->y - 20, legend->x + 30, legend->y, text);
    legend->x += width;
}

static void draw_keys(const struct tarn_svg *svg, struct legend *legend)
{
    const struct tarn_model *model = &svg->picture->model;
    bool is_there[TARN_HOLDER_KINDS] = {false}, is_certified = false, is_grouped = false;
    bool is_held = false, has_pale = false;
    char attributes[48], pale[48] = "";
    for (uint32_t h = 0; h < model->holders_count; h++) {
        const struct tarn_holder *holder = &model->holders[h];
        is_there[holder->kind] = true;
        is_certified = is_certified || holder->certified;
        is_grouped = is_grouped || holder->group != TARN_NONE;
        is_held = is_held || svg->picture->spans[h].free > svg->picture->spans[h].end;
        if (!tarn_svg_is_pale(svg, holder)) continue;
        has_pale = true;
        snprintf(pale, sizeof pale, "class=\"k%d\" opacity=\".45\"", (int)holder->kind);
    }
    for (int k = 0; k < TARN_HOLDER_KINDS; k++) {
        snprintf(attributes, sizeof attributes, "class=\"k%d\"", k);
        if (is_there[k]) draw_key(legend, attributes, kinds[k]);
    }
    if (is_certified) draw_key(legend, "class=\"i\"", "in the certificate of the bound");
    if (has_pale) draw_key(legend, pale, "pale: not in the certificate");
    if (is_held) draw_key(legend, "class=\"h0\"", "held: used no more, not free yet");
    if (is_grouped) draw_key(legend, "class=\"g\"", "contiguous group");
}

/* Writes what the picture does not show. False: it shows everything. */
static bool write_rest(const struct tarn_svg *svg, char text[160])
{
    uint32_t streams = svg->picture->model.streams_count;
    int length = svg->rows_count < streams ? snprintf(text, 160, "%u more streams are not drawn. ",
                                                      streams - svg->rows_count)
                                           : 0;
    if (svg->merged > 0)
        snprintf(text + length, 160 - (size_t)length,
                 "%s storages coincide with others at this size", tarn_grouped(svg->merged).text);
    return length > 0 || svg->merged > 0;
}

static struct legend begin_legend(const struct tarn_svg *svg, FILE *file)
{
    return (struct legend){.file = file,
                           .x = LEFT,
                           .y = svg->rows.y + svg->rows.height + 10 + 3 * LINE + 20,
                           .width = svg->width};
}

static void draw_legend(struct tarn_svg *svg)
{
    char text[160];
    struct legend legend = begin_legend(svg, svg->file);
    draw_keys(svg, &legend);
    if (write_rest(svg, text)) write_text(svg, LEFT, legend.y + LINE + 4, "start", text);
}

/* ---- The whole ---- */

/* The holder of a tensor's storage; TARN_NONE: the picture has none. */
static uint32_t holder_of(const struct tarn_model *model, tarn_tensor tensor)
{
    tarn_tensor root = tarn_graph_root(model->graph, tensor);
    uint32_t h = 0;
    while (h < model->holders_count && model->holders[h].tensor != root) h++;
    return h < model->holders_count ? h : TARN_NONE;
}

static int middle_of(const struct tarn_svg *svg, const struct tarn_holder *holder)
{
    return tarn_svg_y(&svg->map, holder->offset + holder->size / 2);
}

/* Draws a line from the storage that is moved to the storage that it is moved to. */
static void draw_moves(const struct tarn_svg *svg)
{
    const struct tarn_model *model = &svg->picture->model;
    for (uint32_t v = 0; v < model->launches_count; v++) {
        struct tarn_op_info op;
        tarn_graph_op(model->graph, model->launches[v].op, &op);
        if (!op.move) continue;
        uint32_t from = holder_of(model, op.inputs.ids[0]),
                 to = holder_of(model, op.outputs.ids[0]);
        if (from == TARN_NONE || to == TARN_NONE) continue;
        fprintf(svg->file, "<path class=\"w\" stroke-dasharray=\"2 3\" d=\"M%d %dL%d %d\"/>\n",
                tarn_svg_x(svg, (double)svg->picture->spans[from].end),
                middle_of(svg, &model->holders[from]),
                tarn_svg_x(svg, (double)svg->picture->spans[to].begin),
                middle_of(svg, &model->holders[to]));
    }
}

static bool draw(struct tarn_svg *svg)
{
    fprintf(svg->file,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
            "viewBox=\"0 0 %d %d\" font-family=\"system-ui,Helvetica,Arial,sans-serif\" "
            "font-size=\"%d\" role=\"img\" aria-label=\"Memory plan\">\n",
            svg->width / SCALE, svg->height / SCALE, svg->width, svg->height, TYPE);
    write_style(svg->file);
    draw_head(svg);
    draw_curve(svg);
    fprintf(svg->file, "<rect class=\"e\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"/>\n",
            svg->map.x, svg->map.y, svg->map.width, svg->map.height);
    draw_scale(svg);
    bool is_complete = tarn_svg_map(svg);
    draw_moves(svg);
    tarn_svg_rows(svg);
    if (svg->schedule->has_mark) {
        double middle = (double)(svg->schedule->mark_begin + svg->schedule->mark_end) / 2;
        fprintf(svg->file,
                "<path class=\"i\" stroke-width=\"2\" stroke-dasharray=\"8 5\" d=\"M%d %dV%d\"/>\n",
                tarn_svg_x(svg, middle), svg->curve.y, svg->rows.y + svg->rows.height);
    }
    draw_legend(svg);
    fputs("</svg>\n", svg->file);
    return is_complete;
}

static struct tarn_svg lay_out(const struct tarn_picture *picture)
{
    const struct tarn_model *model = &picture->model;
    double footprint = fmax((double)model->summary.footprint, 1);
    double high = fmax(footprint, (double)model->serial_peak);
    struct tarn_svg svg = {.picture = picture, .schedule = tarn_picture_schedule(picture)};
    svg.width = SCALE * (int)(picture->width > 0 ? picture->width : WIDTH);
    int across = svg.width - LEFT - RIGHT, y = head_height(&svg);
    int map = across < 1400 ? (int)fmax(across / 2, 360) : 680;
    svg.rows_count = model->streams_count < ROWS_MAX ? model->streams_count : ROWS_MAX;
    svg.row_height = ROWS_HEIGHT / (int)(svg.rows_count > 0 ? svg.rows_count : 1);
    if (svg.row_height > 36) svg.row_height = 36;
    svg.curve = (struct tarn_svg_frame){LEFT, y, across, 168, high * 1.06};
    svg.map = (struct tarn_svg_frame){LEFT, y + 200, across, map, footprint};
    svg.rows = (struct tarn_svg_frame){LEFT, y + 220 + map, across,
                                       (int)svg.rows_count * svg.row_height, 1};
    struct legend legend = begin_legend(&svg, NULL);
    draw_keys(&svg, &legend);
    svg.height = legend.y + LINE + 24;
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
