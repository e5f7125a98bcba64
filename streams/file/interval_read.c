/* Reads interval problems. A buffer is one piece, or with gaps several: one for each run of steps
 * in which it has the same bytes in use. Only steps in which a piece begins or is last alive
 * matter. Each becomes an op that produces the former and reads the latter, so two pieces conflict
 * exactly if their half-open lifetimes overlap. The pieces of a buffer are a group with offsets.
 * Column names and gaps are minimalloc's, whose instances and validator other packers use, too; its
 * `end` is the last step, not the step after it. The builder checks the other columns of a row; its
 * errors get the line. Cost: O(n log n). */
#include "interval_read.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "streams/base/region.h"
#include "streams/base/utf8.h"
#include "streams/graph/validate.h"
#include "streams/text/csv.h"
#include "streams/text/text_file.h"

enum column {
    COLUMN_ID,
    COLUMN_LOWER,
    COLUMN_UPPER,
    COLUMN_SIZE,
    COLUMN_ALIGNMENT,
    COLUMN_GAPS,
    COLUMN_OFFSET,
    COLUMN_HINT,
    COLUMNS,
    COLUMN_END /* upper - 1 */
};
#define COLUMNS_REQUIRED COLUMN_ALIGNMENT
#define COLUMNS_TEXT "id,lower,upper,size[,alignment][,gaps][,hint][,offset]"

/* The first name of a column is the one that is written. */
static const struct {
    const char *name;
    enum column column;
} column_names[] = {
    {"id", COLUMN_ID},         {"lower", COLUMN_LOWER},         {"upper", COLUMN_UPPER},
    {"size", COLUMN_SIZE},     {"alignment", COLUMN_ALIGNMENT}, {"gaps", COLUMN_GAPS},
    {"offset", COLUMN_OFFSET}, {"hint", COLUMN_HINT},           {"buffer", COLUMN_ID},
    {"buffer_id", COLUMN_ID},  {"start", COLUMN_LOWER},         {"begin", COLUMN_LOWER},
    {"end", COLUMN_END},
};

/* A piece may be short in the text, but takes some 320 bytes in the graph: so many pieces there may
 * be, and one for each PIECE_TEXT bytes of the text, which is what a row without gaps takes. */
enum { PIECES_FREE = 8192, PIECE_TEXT = 10 };

struct buffer {
    char *id, *gaps; /* in the text; gaps NULL: none */
    uint64_t lower, upper, size, alignment;
    uint64_t offset; /* from another answer, or from a hint */
    bool has_offset;
    uint32_t pieces_begin, pieces_count;
    uint32_t line;
};

/* Steps in which a buffer has the same bytes in use: [at, at + size) of its own. */
struct piece {
    uint64_t lower, upper, at, size;
    uint32_t begin, last; /* ops */
};

/* Steps of a buffer in which only [at, at + size) of it is in use; nothing, if size is 0. */
struct gap {
    uint64_t lower, upper, at, size;
};

struct table {
    const struct tarn_report *report;
    uint32_t line;
    enum column order[COLUMNS]; /* the columns of the file */
    uint32_t columns_count;
    char separator;
    bool has_end; /* `end` instead of `upper`: so do gaps */
    struct buffer *buffers;
    uint32_t count;
    struct piece *pieces; /* buffer by buffer */
    size_t pieces_count, pieces_room, pieces_max;
    struct gap *gaps; /* scratch: of one buffer */
    size_t gaps_room;
    uint64_t *steps; /* at which a piece begins or is alive for the last time, ascending */
    uint32_t steps_count;
    struct tarn_region region; /* of the arrays above, and of derived data */
};

/* ---- Lines ---- */

static struct tarn_location nowhere(void)
{
    return (struct tarn_location){.op = TARN_NONE, .tensor = TARN_NONE};
}

__attribute__((format(printf, 2, 3))) static enum tarn_status bad_line(const struct table *table,
                                                                       const char *format, ...)
{
    char text[sizeof((struct tarn_error *)0)->text];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    tarn_report_bad(table->report, nowhere(), "line %u: %s", table->line, text);
    if (table->report->error) table->report->error->line = table->line;
    return TARN_BAD_INPUT;
}

/* COLUMNS if there is no such column. */
static enum column find_column(const char *name)
{
    for (size_t i = 0; i < sizeof column_names / sizeof *column_names; i++) {
        if (tarn_csv_is(name, column_names[i].name)) return column_names[i].column;
    }
    return COLUMNS;
}

static enum tarn_status bad_quotes(const struct table *table, const char *line)
{
    return bad_line(table, "a quoted value does not end with its quote: %s", tarn_quote(line).text);
}

static enum tarn_status read_header(struct table *table, char *line)
{
    bool seen[COLUMNS] = {false};
    table->separator = tarn_csv_separator(line);
    if (!tarn_csv_quotes_close(line, table->separator)) return bad_quotes(table, line);
    for (char *cell; (cell = tarn_csv_next_cell(&line, table->separator)) != NULL;) {
        enum column column = find_column(cell);
        uint32_t fills = column == COLUMN_END ? COLUMN_UPPER : column;
        if (column == COLUMNS)
            return bad_line(table, "expected the columns " COLUMNS_TEXT ", found %s",
                            tarn_quote(cell).text);
        if (seen[fills])
            return bad_line(table, "column %s says again what another one says",
                            tarn_quote(cell).text);
        seen[fills] = true;
        if (column == COLUMN_END) table->has_end = true;
        table->order[table->columns_count++] = column;
    }
    for (uint32_t c = 0; c < COLUMNS_REQUIRED; c++) {
        if (!seen[c]) return bad_line(table, "there is no column \"%s\"", column_names[c].name);
    }
    return TARN_OK;
}

static enum tarn_status read_number(const struct table *table, const char *cell, uint64_t *number)
{
    if (tarn_csv_number(cell, number)) return TARN_OK;
    return bad_line(table, "expected a number from 0 to 2^53-1, found %s", tarn_quote(cell).text);
}

static enum tarn_status read_id(const struct table *table, char *cell, struct buffer *buffer)
{
    if (*cell == 0) return bad_line(table, "the id is empty");
    buffer->id = cell;
    return TARN_OK;
}

static enum tarn_status read_cell(const struct table *table, enum column column, char *cell,
                                  struct buffer *buffer)
{
    enum tarn_status status;
    uint64_t hint = 0;
    switch (column) {
    case COLUMN_ID: return read_id(table, cell, buffer);
    case COLUMN_LOWER: return read_number(table, cell, &buffer->lower);
    case COLUMN_UPPER: return read_number(table, cell, &buffer->upper);
    case COLUMN_END:
        status = read_number(table, cell, &buffer->upper);
        if (status == TARN_OK && buffer->upper++ == TARN_NUMBER_MAX)
            return bad_line(table, "the last step must be below 2^53-1");
        return status;
    case COLUMN_SIZE: return read_number(table, cell, &buffer->size);
    case COLUMN_ALIGNMENT: return read_number(table, cell, &buffer->alignment);
    case COLUMN_GAPS: buffer->gaps = cell; return TARN_OK;
    case COLUMN_HINT: /* -1: none */
        if (*cell == 0 || strcmp(cell, "-1") == 0) return TARN_OK;
        status = read_number(table, cell, &hint);
        if (!buffer->has_offset) buffer->offset = hint; /* else another column has the answer */
        buffer->has_offset = true;
        return status;
    default: /* the offset of another answer, which takes precedence over a hint */
        buffer->has_offset = true;
        return read_number(table, cell, &buffer->offset);
    }
}

/* ---- Gaps ---- */

/* Reads the number at the start of a text that goes on with `behind`. */
static bool take_number(char **text, char behind, uint64_t *number)
{
    char *end = *text + strspn(*text, "0123456789"), found = *end;
    if (found != behind) return false;
    *end = 0;
    bool is_number = tarn_csv_number(*text, number);
    *end = found;
    *text = *end ? end + 1 : end;
    return is_number;
}

/* "lower-upper", or "lower-upper@from:to" with the bytes that stay in use. */
static enum tarn_status read_gap(const struct table *table, const struct buffer *buffer, char *text,
                                 struct gap *gap)
{
    char *at = text;
    bool has_bytes = strchr(text, '@') != NULL;
    uint64_t to = 0;
    *gap = (struct gap){.lower = 0};
    bool is_read =
        take_number(&at, '-', &gap->lower) && take_number(&at, has_bytes ? '@' : 0, &gap->upper);
    if (is_read && has_bytes) is_read = take_number(&at, ':', &gap->at) && take_number(&at, 0, &to);
    if (!is_read)
        return bad_line(table,
                        "expected a gap as \"lower-upper\" or \"lower-upper@from:to\", several "
                        "separated by blanks, found %s",
                        tarn_quote(text).text);
    if (table->has_end) gap->upper++;
    if (gap->lower >= gap->upper)
        return bad_line(table, "the gap %s holds no step", tarn_quote(text).text);
    if (gap->lower < buffer->lower || gap->upper > buffer->upper)
        return bad_line(
            table, "the gap %s is not inside the lifetime [%" PRIu64 ", %" PRIu64 ") of buffer %s",
            tarn_quote(text).text, buffer->lower, buffer->upper, tarn_quote(buffer->id).text);
    if (has_bytes && (gap->at > to || to > buffer->size))
        return bad_line(table,
                        "the gap %s leaves bytes in use that buffer %s of %" PRIu64
                        " bytes does not have",
                        tarn_quote(text).text, tarn_quote(buffer->id).text, buffer->size);
    gap->size = to - gap->at;
    return TARN_OK;
}

static int compare_gaps(const void *a, const void *b)
{
    const struct gap *x = a, *y = b;
    return (x->lower > y->lower) - (x->lower < y->lower);
}

/* Adds a piece, unless it has no step or no byte; what goes on with the same bytes is one piece. */
static enum tarn_status add_piece(struct table *table, struct buffer *buffer, struct piece piece)
{
    if (piece.lower == piece.upper || (piece.size == 0 && buffer->size > 0)) return TARN_OK;
    struct piece *before =
        buffer->pieces_count > 0 ? &table->pieces[table->pieces_count - 1] : NULL;
    if (before && before->upper == piece.lower && before->at == piece.at &&
        before->size == piece.size) {
        before->upper = piece.upper;
        return TARN_OK;
    }
    if (table->pieces_count >= table->pieces_max)
        return bad_line(
            table,
            "gaps cut the buffers so far into %zu pieces, more than a text of this size "
            "may have: there may be %u more than rows, and one for each %u bytes of the text",
            table->pieces_count + 1, PIECES_FREE, PIECE_TEXT);
    struct piece *pieces = tarn_region_grow(&table->region, table->pieces, &table->pieces_room,
                                            table->pieces_count + 1, sizeof *pieces);
    if (!pieces) return tarn_error_no_memory(table->report->error);
    table->pieces = pieces;
    pieces[table->pieces_count++] = piece;
    buffer->pieces_count++;
    return TARN_OK;
}

/* gaps: of the buffer, in order of time. */
static enum tarn_status cut_at_gaps(struct table *table, struct buffer *buffer,
                                    const struct gap *gaps, size_t count)
{
    enum tarn_status status = TARN_OK;
    uint64_t lower = buffer->lower;
    for (size_t i = 0; i < count && status == TARN_OK; i++) {
        if (gaps[i].lower < lower)
            return bad_line(table, "gaps of buffer %s overlap at step %" PRIu64,
                            tarn_quote(buffer->id).text, gaps[i].lower);
        status =
            add_piece(table, buffer, (struct piece){lower, gaps[i].lower, 0, buffer->size, 0, 0});
        if (status == TARN_OK)
            status = add_piece(
                table, buffer,
                (struct piece){gaps[i].lower, gaps[i].upper, gaps[i].at, gaps[i].size, 0, 0});
        lower = gaps[i].upper;
    }
    if (status == TARN_OK)
        status =
            add_piece(table, buffer, (struct piece){lower, buffer->upper, 0, buffer->size, 0, 0});
    return status;
}

static enum tarn_status check_pieces(const struct table *table, const struct buffer *buffer)
{
    if (buffer->pieces_count == 0)
        return bad_line(table, "the gaps of buffer %s leave no step in which it is alive",
                        tarn_quote(buffer->id).text);
    if (buffer->pieces_count > TARN_LAYERS_MAX)
        return bad_line(table, "gaps cut buffer %s into %u pieces; %u are supported",
                        tarn_quote(buffer->id).text, buffer->pieces_count, TARN_LAYERS_MAX);
    for (uint32_t i = 0; i < buffer->pieces_count; i++)
        if (table->pieces[buffer->pieces_begin + i].at == 0) return TARN_OK;
    return bad_line(
        table,
        "the gaps of buffer %s leave its first byte unused in every step; give the buffer "
        "the size that is used",
        tarn_quote(buffer->id).text);
}

static enum tarn_status read_gaps(struct table *table, struct buffer *buffer)
{
    size_t count = 0;
    enum tarn_status status = TARN_OK;
    buffer->pieces_begin = (uint32_t)table->pieces_count;
    for (char *next = buffer->gaps, *text; next && status == TARN_OK;) {
        text = next + strspn(next, " \t");
        next = text + strcspn(text, " \t");
        if (*text == 0) break;
        if (*next) *next++ = 0;
        struct gap *gaps = tarn_region_grow(&table->region, table->gaps, &table->gaps_room,
                                            count + 1, sizeof *gaps);
        if (!gaps) return tarn_error_no_memory(table->report->error);
        table->gaps = gaps;
        status = read_gap(table, buffer, text, &gaps[count++]);
    }
    if (status != TARN_OK) return status;
    if (count > 0) qsort(table->gaps, count, sizeof *table->gaps, compare_gaps);
    status = cut_at_gaps(table, buffer, table->gaps, buffer->size > 0 ? count : 0);
    return status == TARN_OK ? check_pieces(table, buffer) : status;
}

/* ---- Rows ---- */

static enum tarn_status read_buffer(struct table *table, char *line)
{
    struct buffer *buffer = &table->buffers[table->count];
    enum tarn_status status = TARN_OK;
    buffer->line = table->line;
    if (!tarn_csv_quotes_close(line, table->separator)) return bad_quotes(table, line);
    for (uint32_t c = 0; c < table->columns_count; c++) {
        char *cell = tarn_csv_next_cell(&line, table->separator);
        if (!cell) return bad_line(table, "%u values for %u columns", c, table->columns_count);
        status = read_cell(table, table->order[c], cell, buffer);
        if (status != TARN_OK) return status;
    }
    if (line)
        return bad_line(table, "more values than the %u columns: %s", table->columns_count,
                        tarn_quote(line).text);
    if (buffer->lower >= buffer->upper)
        return bad_line(table,
                        "buffer %s has the lifetime [%" PRIu64 ", %" PRIu64
                        "), which holds no step; upper must be above lower",
                        tarn_quote(buffer->id).text, buffer->lower, buffer->upper);
    table->count++;
    return read_gaps(table, buffer);
}

static enum tarn_status read_lines(struct table *table, char *text)
{
    enum tarn_status status = TARN_OK;
    size_t lines = tarn_csv_lines_count(text), size = strlen(text);
    table->pieces_max = lines + PIECES_FREE + size / PIECE_TEXT;
    if (table->pieces_max > TARN_TENSORS_MAX) table->pieces_max = TARN_TENSORS_MAX;
    if (lines > TARN_TENSORS_MAX) return bad_line(table, "the text has %zu lines", lines);
    table->buffers = tarn_region_take(&table->region, lines, sizeof *table->buffers);
    if (!table->buffers) return tarn_error_no_memory(table->report->error);
    for (char *line; status == TARN_OK && (line = tarn_csv_next_line(&text)) != NULL;) {
        table->line++;
        if (*line == 0) continue;
        status = table->columns_count > 0 ? read_buffer(table, line) : read_header(table, line);
    }
    if (table->line == 0) table->line = 1; /* nothing but a byte order mark */
    if (status == TARN_OK && table->columns_count == 0)
        return bad_line(table, "expected the columns " COLUMNS_TEXT ", found nothing");
    return status;
}

static enum tarn_status refuse_twins(struct table *table)
{
    struct tarn_region_mark mark = tarn_region_mark(&table->region);
    struct tarn_csv_name *names = tarn_region_take(&table->region, table->count, sizeof *names);
    const struct tarn_csv_name *twin;
    if (!names) return tarn_error_no_memory(table->report->error);
    for (uint32_t i = 0; i < table->count; i++)
        names[i] = (struct tarn_csv_name){table->buffers[i].id, i};
    twin = tarn_csv_find_twin(names, table->count);
    if (twin) {
        table->line = table->buffers[twin->index].line;
        bad_line(table, "the id %s is that of line %u too", tarn_quote(twin->text).text,
                 table->buffers[twin[-1].index].line);
    }
    tarn_region_release(&table->region, mark);
    return twin ? TARN_BAD_INPUT : TARN_OK;
}

static enum tarn_status read_table(struct table *table, char *text, size_t size)
{
    char *lines = tarn_csv_begin(text, size);
    if (!lines) {
        table->line = (uint32_t)tarn_csv_lines_count(text);
        return bad_line(table, "holds a NUL byte: not a text");
    }
    enum tarn_status status = read_lines(table, lines);
    return status == TARN_OK ? refuse_twins(table) : status;
}

/* ---- Steps ---- */

static int compare_steps(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static uint32_t step_index(const struct table *table, uint64_t step)
{
    const uint64_t *found =
        bsearch(&step, table->steps, table->steps_count, sizeof *table->steps, compare_steps);
    return (uint32_t)(found - table->steps);
}

static enum tarn_status number_steps(struct table *table)
{
    size_t count = 0;
    table->steps = tarn_region_take(&table->region, table->pieces_count * 2, sizeof *table->steps);
    if (!table->steps) return tarn_error_no_memory(table->report->error);
    for (size_t i = 0; i < table->pieces_count; i++) {
        table->steps[count++] = table->pieces[i].lower;
        table->steps[count++] = table->pieces[i].upper - 1;
    }
    if (count > 0) qsort(table->steps, count, sizeof *table->steps, compare_steps);
    for (size_t i = 0; i < count; i++) {
        if (table->steps_count == 0 || table->steps[table->steps_count - 1] != table->steps[i])
            table->steps[table->steps_count++] = table->steps[i];
    }
    for (size_t i = 0; i < table->pieces_count; i++) {
        table->pieces[i].begin = step_index(table, table->pieces[i].lower);
        table->pieces[i].last = step_index(table, table->pieces[i].upper - 1);
    }
    return TARN_OK;
}

/* ---- The graph ---- */

/* The tensors of the ops, as consecutive lists: the list of op v is ids[begin[v] .. begin[v +
 * 1]). */
struct lists {
    uint32_t *begin, *ids;
};

static bool lists_init(struct lists *lists, struct table *table, bool outputs)
{
    lists->begin =
        tarn_region_take(&table->region, (size_t)table->steps_count + 2, sizeof *lists->begin);
    lists->ids = tarn_region_take(&table->region, table->pieces_count, sizeof *lists->ids);
    if (table->region.is_exhausted) return false;
    for (int pass = 0; pass < 2; pass++) { /* count, then fill */
        for (uint32_t i = 0; i < table->pieces_count; i++) {
            const struct piece *piece = &table->pieces[i];
            uint32_t op = outputs ? piece->begin : piece->last;
            if (!outputs && piece->last == piece->begin) continue;
            if (pass == 0)
                lists->begin[op + 2]++;
            else
                lists->ids[lists->begin[op + 1]++] = i;
        }
        for (uint32_t v = 0; pass == 0 && v <= table->steps_count; v++)
            lists->begin[v + 1] += lists->begin[v];
    }
    return true;
}

static struct tarn_list list_of(const struct lists *lists, uint32_t op)
{
    return (struct tarn_list){lists->ids + lists->begin[op],
                              lists->begin[op + 1] - lists->begin[op]};
}

/* The file's name without folder and extension; file names need not be UTF-8, but names of graphs.
 */
static void name_graph(const char *path, char *name, size_t size)
{
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    size_t stem = strlen(base);
    if (tarn_text_is_named(path, "csv"))
        stem -= strcasecmp(base + stem - strlen(".csv"), ".csv") == 0 ? strlen(".csv")
                                                                      : strlen(".csv.gz");
    snprintf(name, size, "%.*s", (int)(stem < size ? stem : size - 1), base);
    for (size_t length; *name; name += length) {
        length = tarn_utf8_size(name);
        if (length > 0) continue;
        *name = '?';
        length = 1;
    }
}

/* The buffer of a piece. */
static uint32_t row_of(const struct table *table, uint32_t piece)
{
    uint32_t low = 0, high = table->count;
    while (low + 1 < high) {
        uint32_t middle = low + (high - low) / 2;
        if (table->buffers[middle].pieces_begin <= piece)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* Turns the builder's error for a tensor into an error for its line. row: which one, if known. */
static enum tarn_status refuse(struct table *table, const struct tarn_error *found, uint32_t row)
{
    if (found->status != TARN_BAD_INPUT)
        return tarn_error_set(table->report->error, found->status, "%s", found->text);
    if (row >= table->count && found->tensor < table->pieces_count)
        row = row_of(table, found->tensor);
    if (row >= table->count) return tarn_report_bad(table->report, nowhere(), "%s", found->text);
    table->line = table->buffers[row].line;
    return bad_line(table, "%s", found->text);
}

/* The pieces of a buffer as tensors: the first one has its id for a name, a later one the step in
 * which it begins as well. What a buffer has of its own, the first piece at its begin has. */
static bool add_tensors(const struct table *table, const struct buffer *buffer,
                        struct tarn_builder *builder)
{
    bool is_begun = false;
    for (uint32_t i = 0; i < buffer->pieces_count; i++) {
        const struct piece *piece = &table->pieces[buffer->pieces_begin + i];
        char name[TARN_NAME_MAX + 32];
        struct tarn_tensor_info info = {.name = buffer->id, .size = piece->size};
        snprintf(name, sizeof name, "%s@%" PRIu64, buffer->id, piece->lower);
        if (i > 0 && strlen(name) <= TARN_NAME_MAX) info.name = name;
        if (!is_begun && piece->at == 0) {
            is_begun = true;
            info.alignment = buffer->alignment;
            if (buffer->has_offset && buffer->size > 0) {
                info.offset_rule = TARN_OFFSET_PREFERRED;
                info.wanted_offset = buffer->offset;
            }
        }
        if (tarn_builder_tensor(builder, &info) == TARN_NONE) return false;
    }
    return true;
}

/* The pieces of a buffer lie at one place. */
static bool add_group(struct table *table, const struct buffer *buffer,
                      struct tarn_builder *builder)
{
    uint32_t count = buffer->pieces_count;
    if (count < 2) return true;
    struct tarn_region_mark mark = tarn_region_mark(&table->region);
    uint32_t *ids = tarn_region_take(&table->region, count, sizeof *ids);
    uint64_t *offsets = tarn_region_take(&table->region, count, sizeof *offsets);
    if (!ids || !offsets) return false;
    for (uint32_t i = 0; i < count; i++) {
        ids[i] = buffer->pieces_begin + i;
        offsets[i] = table->pieces[ids[i]].at;
    }
    tarn_builder_group_offsets(builder, (struct tarn_list){ids, count}, offsets);
    tarn_region_release(&table->region, mark);
    return true;
}

static enum tarn_status build(struct table *table, const struct lists *outputs,
                              const struct lists *inputs, struct tarn_graph **graph)
{
    struct tarn_error error;
    char name[256];
    uint32_t row = 0;
    name_graph(table->report->path, name, sizeof name);
    struct tarn_builder *builder = tarn_builder_create(name);
    tarn_builder_stream(builder, "stream");
    while (row < table->count && add_tensors(table, &table->buffers[row], builder)) row++;
    for (uint32_t v = 0; v < table->steps_count; v++) {
        snprintf(name, sizeof name, "%" PRIu64, table->steps[v]);
        tarn_builder_op(builder, &(struct tarn_op_info){.name = name,
                                                        .kind = "step",
                                                        .inputs = list_of(inputs, v),
                                                        .outputs = list_of(outputs, v)});
    }
    for (uint32_t i = 0; i < table->count; i++) {
        if (add_group(table, &table->buffers[i], builder)) continue;
        tarn_builder_destroy(builder);
        return tarn_error_no_memory(table->report->error);
    }
    enum tarn_status status = tarn_builder_finish(builder, graph, &error);
    return status == TARN_OK ? status : refuse(table, &error, row);
}

static enum tarn_status build_graph(struct table *table, struct tarn_graph **graph)
{
    struct lists outputs = {0}, inputs = {0};
    enum tarn_status status = number_steps(table);
    if (status != TARN_OK) return status;
    if (lists_init(&outputs, table, true) && lists_init(&inputs, table, false))
        status = build(table, &outputs, &inputs, graph);
    else
        status = tarn_error_no_memory(table->report->error);
    return status;
}

enum tarn_status tarn_interval_decode(const struct tarn_report *report, char *text, size_t size,
                                      struct tarn_graph **graph)
{
    struct table table = {.report = report};
    enum tarn_status status = read_table(&table, text, size);
    if (status == TARN_OK) status = build_graph(&table, graph);
    tarn_region_finish(&table.region);
    return status;
}

bool tarn_interval_is(const char *path, const char *text)
{
    if (tarn_text_is_named(path, "csv")) return true;
    if (tarn_text_is_named(path, "json")) return false;
    char first = text[strspn(text, " \t\r\n\xef\xbb\xbf")];
    return first == '"' || isalpha((unsigned char)first);
}
