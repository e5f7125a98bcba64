/* Prints the picture in 80 columns: bytes in use in eighths of a cell, the map by the holder with
 * the largest share of each cell, the streams by how busy they are. Cost: O(holders + cells that
 * they cover).
 */
#include <math.h>
#include <string.h>

#include "words.h"
#include "writers.h"

enum { COLUMNS = 64, ROWS = 16, CURVE_ROWS = 4, STREAMS_MAX = 12, FEW = 26 };
enum { LETTERS = 2 * FEW + 1, HELD = 2 * FEW }; /* small, capital (certified), held */

struct sheet {
    FILE *file;
    const struct tarn_picture *picture;
    const struct tarn_model_schedule *schedule;
    double length, footprint;
    bool is_few; /* each holder has a letter of its own */
};

/* [begin, end) of an axis as cells, with fractions. */
struct stretch {
    double begin, end;
};

static struct stretch stretch_of(double begin, double end, double whole, int cells)
{
    return (struct stretch){begin / whole * cells, end / whole * cells};
}

/* How much of cell i it covers. */
static double share(struct stretch stretch, int i)
{
    double begin = fmax(stretch.begin, i), end = fmin(stretch.end, i + 1);
    return end > begin ? end - begin : 0;
}

/* ---- Bytes in use ---- */

static void print_curve(const struct sheet *sheet)
{
    static const char *const blocks[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    const struct tarn_picture *picture = sheet->picture;
    double most[COLUMNS] = {0};
    for (size_t i = 0; i < picture->levels_count; i++) {
        bool is_last = i + 1 == picture->levels_count;
        double end = is_last ? sheet->length : picture->levels[i + 1].at;
        struct stretch columns = stretch_of(picture->levels[i].at, end, sheet->length, COLUMNS);
        for (int c = (int)columns.begin; c < COLUMNS && c < columns.end; c++)
            most[c] = fmax(most[c], (double)picture->levels[i].alive);
    }
    for (int row = CURVE_ROWS; row-- > 0;) {
        const char *label = row == CURVE_ROWS - 1
                                ? tarn_amount(picture->model.summary.footprint).text
                            : row == 0 ? "in use"
                                       : "";
        fprintf(sheet->file, "%13s │", label);
        for (int c = 0; c < COLUMNS; c++) {
            int eighths = (int)lround(most[c] / sheet->footprint * CURVE_ROWS * 8) - 8 * row;
            fputs(blocks[eighths < 0 ? 0 : eighths > 8 ? 8 : eighths], sheet->file);
        }
        fputc('\n', sheet->file);
    }
}

/* ---- The map ---- */

static int letter_of(const struct sheet *sheet, uint32_t h)
{
    static const int letters[] = {'i' - 'a', 'g' - 'a', 'o' - 'a', 'w' - 'a'};
    const struct tarn_holder *holder = &sheet->picture->model.holders[h];
    return (sheet->is_few ? (int)h : letters[holder->kind]) + (holder->certified ? FEW : 0);
}

static char character_of(int letter)
{
    if (letter == HELD) return ':';
    return (char)(letter < FEW ? 'a' + letter : 'A' + letter - FEW);
}

static void cover(double area[ROWS][COLUMNS][LETTERS], struct stretch rows, struct stretch columns,
                  int letter)
{
    for (int r = (int)rows.begin; r < ROWS && r < rows.end; r++)
        for (int c = (int)columns.begin; c < COLUMNS && c < columns.end; c++)
            area[r][c][letter] += share(rows, r) * share(columns, c);
}

/* Adds the holders of one memory space to `area`; row 0 is at its lowest addresses. */
static void cover_all(const struct sheet *sheet, double area[ROWS][COLUMNS][LETTERS],
                      const struct tarn_model_space *space, int rows_count)
{
    const struct tarn_picture *picture = sheet->picture;
    for (uint32_t h = 0; h < picture->model.holders_count; h++) {
        const struct tarn_holder *holder = &picture->model.holders[h];
        const struct tarn_model_span *span = &picture->spans[h];
        if (&picture->model.spaces[holder->space] != space) continue;
        double low = (double)tarn_holder_offset(&picture->model, holder);
        struct stretch rows = stretch_of(low, low + (double)tarn_holder_reserved(holder),
                                         fmax((double)space->footprint, 1), rows_count);
        struct stretch alive = stretch_of(span->begin, span->end, sheet->length, COLUMNS);
        struct stretch held = stretch_of(span->end, span->free, sheet->length, COLUMNS);
        cover(area, rows, alive, letter_of(sheet, h));
        cover(area, rows, held, HELD);
    }
}

static char cell_of(const double area[LETTERS])
{
    double sum = 0;
    int best = 0;
    for (int i = 0; i < LETTERS; i++) {
        sum += area[i];
        if (area[i] > area[best]) best = i;
    }
    return sum < 0.5 ? '.' : character_of(best);
}

static void print_cells(const struct sheet *sheet, const struct tarn_model_space *space, int rows)
{
    static double area[ROWS][COLUMNS][LETTERS]; /* the command draws one picture */
    memset(area, 0, sizeof area);
    cover_all(sheet, area, space, rows);
    for (int row = rows; row-- > 0;) {
        bool has_label = (rows - 1 - row) % 4 == 0;
        uint64_t bytes = (uint64_t)((double)space->footprint / rows * (row + 1));
        fprintf(sheet->file, "%13s │", has_label ? tarn_amount(bytes).text : "");
        for (int c = 0; c < COLUMNS; c++) fputc(cell_of(area[row][c]), sheet->file);
        fputc('\n', sheet->file);
    }
}

/* The last space on top, each with rows by its share of the footprints and three at least. */
static void print_map(const struct sheet *sheet)
{
    const struct tarn_model *model = &sheet->picture->model;
    for (uint32_t s = model->spaces_count; s-- > 0;) {
        const struct tarn_model_space *space = &model->spaces[s];
        int rows = (int)lround((double)space->footprint / sheet->footprint * ROWS);
        print_cells(sheet, space, rows < 3 ? 3 : rows > ROWS ? ROWS : rows);
        if (s == 0) continue;
        char name[80];
        tarn_text_escape(TARN_PLAIN, space->name, name, 14);
        fprintf(sheet->file, "%13s ├", name);
        for (int c = 0; c < COLUMNS; c++) fputs("─", sheet->file);
        fputc('\n', sheet->file);
    }
    int mark = !sheet->schedule->has_mark
                   ? -1
                   : (int)((double)(sheet->schedule->mark_begin + sheet->schedule->mark_end) / 2 /
                           sheet->length * COLUMNS);
    char first[80];
    tarn_text_escape(TARN_PLAIN, model->spaces_count > 1 ? model->spaces[0].name : "0 B", first,
                     14);
    fprintf(sheet->file, "%13s └", first);
    for (int c = 0; c < COLUMNS; c++) fputs(c == mark ? "┴" : "─", sheet->file);
    fputc('\n', sheet->file);
}

/* ---- Streams ---- */

static void print_stream(const struct sheet *sheet, tarn_stream s)
{
    static const char *const shades[] = {" ", "░", "▒", "▓", "█"};
    const struct tarn_model *model = &sheet->picture->model;
    double busy[COLUMNS] = {0};
    for (uint32_t place = 0; place < tarn_model_length(model, s); place++) {
        uint32_t v = tarn_model_at(model, s, place);
        struct stretch columns =
            stretch_of((double)sheet->schedule->begin[v], (double)sheet->schedule->end[v],
                       sheet->length, COLUMNS);
        for (int c = (int)columns.begin; c < COLUMNS && c < columns.end; c++)
            busy[c] += share(columns, c);
    }
    char name[80];
    tarn_text_escape(TARN_PLAIN, tarn_graph_stream_name(model->graph, s), name, 14);
    fprintf(sheet->file, "%13s  ", name);
    for (int c = 0; c < COLUMNS; c++) {
        int shade = (int)ceil(busy[c] * 4);
        fputs(shades[shade > 4 ? 4 : shade], sheet->file);
    }
    fputc('\n', sheet->file);
}

static void print_streams(const struct sheet *sheet)
{
    uint32_t count = sheet->picture->model.streams_count;
    for (tarn_stream s = 0; s < count && s < STREAMS_MAX; s++) print_stream(sheet, s);
    if (count > STREAMS_MAX)
        fprintf(sheet->file, "%13s  and %u more streams\n", "", count - STREAMS_MAX);
}

/* ---- Words ---- */

static void print_head(const struct sheet *sheet)
{
    const struct tarn_model *model = &sheet->picture->model;
    const struct tarn_plan_summary *summary = &model->summary;
    tarn_write_name(sheet->file, TARN_PLAIN, tarn_graph_name(model->graph), 80);
    fprintf(sheet->file, "\nfootprint %s", tarn_amount(summary->footprint).text);
    if (summary->optimal)
        fputs(", the bound: optimal", sheet->file);
    else if (model->has_certificate)
        fprintf(sheet->file, ", bound %s", tarn_amount(summary->bound).text);
    fprintf(sheet->file, "; serial peak %s\n", tarn_amount(model->serial_peak).text);
    fprintf(sheet->file, "%s storages, ", tarn_grouped(model->holders_count).text);
    fprintf(sheet->file, "%s launches, ", tarn_grouped(model->launches_count).text);
    fprintf(sheet->file, "%u stream%s, ", model->streams_count,
            model->streams_count == 1 ? "" : "s");
    fprintf(sheet->file, "%s waits\n", tarn_grouped(summary->waits).text);
    for (uint32_t s = 0; s < model->spaces_count && model->spaces_count > 1; s++) {
        const struct tarn_model_space *space = &model->spaces[s];
        tarn_write_name(sheet->file, TARN_PLAIN, space->name, 30);
        fprintf(sheet->file, ": footprint %s", tarn_amount(space->footprint).text);
        if (space->bound > 0) fprintf(sheet->file, ", bound %s", tarn_amount(space->bound).text);
        fputc('\n', sheet->file);
    }
    for (size_t i = 0; i < tarn_verdict_count(sheet->picture->verdict) && i < 5; i++) {
        fputs("REFUSED: ", sheet->file);
        tarn_write_name(sheet->file, TARN_PLAIN, tarn_verdict_get(sheet->picture->verdict, i)->text,
                        71);
        fputc('\n', sheet->file);
    }
    fputc('\n', sheet->file);
}

static void print_letters(const struct sheet *sheet)
{
    const struct tarn_model *model = &sheet->picture->model;
    for (uint32_t h = 0; h < model->holders_count; h++) {
        const struct tarn_holder *holder = &model->holders[h];
        char name[80];
        tarn_text_escape(TARN_PLAIN, holder->name, name, 12);
        fprintf(sheet->file, "%c %-11s %10s%s", character_of(letter_of(sheet, h)), name,
                tarn_amount(holder->size).text,
                h % 3 == 2 || h + 1 == model->holders_count ? "\n" : "   ");
    }
}

/* "WORD: name name ..": one line, as far as names go. */
static void print_word(const struct sheet *sheet, const char *word, const uint32_t *holders,
                       uint32_t count)
{
    if (count == 0) return;
    fprintf(sheet->file, "%s:", word);
    size_t used = strlen(word) + 1;
    for (uint32_t i = 0; i < count; i++) {
        char name[80];
        tarn_text_escape(TARN_PLAIN, sheet->picture->model.holders[holders[i]].name, name, 24);
        used += strlen(name) + 1;
        if (used > 70) {
            fprintf(sheet->file, " and %u more", count - i);
            break;
        }
        fprintf(sheet->file, " %s", name);
    }
    fputc('\n', sheet->file);
}

/* Words of the graph that the map does not show: who is there only in an arm, has slices, or an
 * offset that the graph wants. False: no memory. */
static bool print_words(const struct sheet *sheet)
{
    const struct tarn_model *model = &sheet->picture->model;
    const struct tarn_graph *graph = model->graph;
    struct tarn_memory memory = {NULL, false};
    uint32_t tensors_count = tarn_graph_tensors_count(graph), counts[4] = {0};
    uint32_t *lists[4];
    bool *is_sliced = tarn_memory_take(&memory, tensors_count, sizeof *is_sliced);
    for (int i = 0; i < 4; i++)
        lists[i] = tarn_memory_take(&memory, model->holders_count, sizeof *lists[i]);
    for (tarn_tensor t = 0; !memory.is_exhausted && t < tensors_count; t++) {
        struct tarn_tensor_info info, root;
        tarn_graph_tensor(graph, t, &info);
        tarn_graph_tensor(graph, tarn_graph_root(graph, t), &root);
        if (info.size < root.size) is_sliced[tarn_graph_root(graph, t)] = true;
    }
    for (uint32_t h = 0; !memory.is_exhausted && h < model->holders_count; h++) {
        struct tarn_op_info writer;
        struct tarn_tensor_info info = {.offset_rule = TARN_OFFSET_FREE};
        tarn_tensor t = model->holders[h].tensor;
        tarn_graph_op(graph, model->launches[model->holders[h].writer].op, &writer);
        if (t != TARN_NONE) tarn_graph_tensor(graph, t, &info);
        if (writer.branch_count > 0) lists[0][counts[0]++] = h;
        if (t != TARN_NONE && is_sliced[t]) lists[1][counts[1]++] = h;
        if (info.offset_rule == TARN_OFFSET_FIXED) lists[2][counts[2]++] = h;
        if (info.offset_rule == TARN_OFFSET_PREFERRED) lists[3][counts[3]++] = h;
    }
    print_word(sheet, "only in an arm, drawn as if all were taken", lists[0], counts[0]);
    print_word(sheet, "with slices", lists[1], counts[1]);
    print_word(sheet, "at a fixed offset", lists[2], counts[2]);
    print_word(sheet, "with a preferred offset", lists[3], counts[3]);
    bool is_complete = !memory.is_exhausted;
    tarn_memory_finish(&memory);
    return is_complete;
}

static bool print_legend(const struct sheet *sheet)
{
    static const char *const kinds[] = {"i intermediate  ", "g gradient  ", "o output  ",
                                        "w workspace"};
    const struct tarn_model *model = &sheet->picture->model;
    bool is_there[TARN_HOLDER_KINDS] = {false};
    for (uint32_t h = 0; h < model->holders_count; h++) is_there[model->holders[h].kind] = true;
    fputc('\n', sheet->file);
    if (sheet->is_few) print_letters(sheet);
    for (int kind = 0; kind < TARN_HOLDER_KINDS && !sheet->is_few; kind++)
        if (is_there[kind]) fputs(kinds[kind], sheet->file);
    fprintf(sheet->file, "%s%s:: held  .: free\n", sheet->is_few ? "" : "\n",
            model->has_certificate ? "capital: in the certificate  " : "");
    fprintf(sheet->file, "x: %s%s\n", tarn_axis_text(sheet->picture),
            sheet->schedule->has_mark ? " (┴)" : "");
    return print_words(sheet);
}

bool tarn_write_text(FILE *file, const struct tarn_picture *picture)
{
    const struct tarn_model_schedule *schedule = tarn_picture_schedule(picture);
    uint64_t footprint = picture->model.summary.footprint;
    struct sheet sheet = {.file = file,
                          .picture = picture,
                          .schedule = schedule,
                          .length = (double)schedule->length,
                          .footprint = footprint > 0 ? (double)footprint : 1,
                          .is_few = picture->model.holders_count <= FEW};
    print_head(&sheet);
    print_curve(&sheet);
    fprintf(file, "%13s └", "");
    for (int c = 0; c < COLUMNS; c++) fputs("─", file);
    fputc('\n', file);
    print_map(&sheet);
    print_streams(&sheet);
    return print_legend(&sheet);
}
