/* Reading a table of costs. It has parts, each with a header that says which kind of rows follow.
 * The cells are cut in place and the rows point into the text; then both kinds are sorted by name,
 * so that asking is a binary search. Factors are decimals with up to nine places, kept exactly:
 * a product does not depend on the rounding of a machine. Cost: O(n log n). */
#include "cost_table.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "streams/base/checked.h"
#include "streams/base/error.h"
#include "streams/base/memory.h"
#include "streams/base/utf8.h"
#include "streams/graph/report.h"
#include "streams/graph/validate.h"
#include "streams/text/csv.h"
#include "streams/text/text_file.h"

enum { CELLS_MAX = 7, WHOLE_MAX = 1000, BILLION = 1000000000 };

static const char *const model_columns[] = {
    "kind",        "implementation", "time_factor",  "workspace_factor",
    "needs_input", "needs_output",   "keeps_factor",
};
static const char *const measured_columns[] = {"op", "implementation", "ns", "workspace"};

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))
#define HEADERS                                                                  \
    "kind,implementation,time_factor,workspace_factor,needs_input,needs_output," \
    "keeps_factor or op,implementation,ns,workspace"

/* The line that is read. */
struct reading {
    struct tarn_cost_table *table;
    struct tarn_error *error;
    uint32_t line;
    const char *begin; /* of the line */
    char *cells[CELLS_MAX];
    size_t cells_count;
    size_t columns_count; /* of the part; 0: no header yet */
    char separator;       /* of the first header */
};

/* ---- Errors ---- */

/* cell: the wrong cell of the current line; NULL: the whole line is wrong. */
__attribute__((format(printf, 3, 4))) static enum tarn_status
bad_cell(const struct reading *reading, const char *cell, const char *format, ...)
{
    char text[sizeof reading->error->text];
    uint32_t column = cell ? (uint32_t)(cell - reading->begin) + 1 : 1;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (reading->error) {
        reading->error->line = reading->line;
        reading->error->column = column;
    }
    return tarn_error_set(reading->error, TARN_BAD_INPUT, "%s: line %u, column %u: %s",
                          reading->table->path, reading->line, column, text);
}

/* ---- Cells ---- */

static enum tarn_status read_factor(const struct reading *reading, const char *cell, uint32_t max,
                                    struct tarn_factor *factor)
{
    uint32_t unit = BILLION;
    const char *at = cell;
    *factor = (struct tarn_factor){0, 0};
    for (; *at >= '0' && *at <= '9' && factor->whole <= max; at++)
        factor->whole = factor->whole * 10 + (uint32_t)(*at - '0');
    bool has_digits = at > cell;
    if (has_digits && *at == '.') {
        for (at++; *at >= '0' && *at <= '9' && unit > 1; at++) {
            unit /= 10;
            factor->billionths += unit * (uint32_t)(*at - '0');
        }
    }
    bool is_above = factor->whole > max || (factor->whole == max && factor->billionths > 0);
    if (has_digits && *at == 0 && !is_above) return TARN_OK;
    return bad_cell(reading, cell,
                    "expected a factor from 0 to %u with up to nine decimals, found %s", max,
                    tarn_quote(cell).text);
}

static enum tarn_status read_need(const struct reading *reading, const char *cell,
                                  enum tarn_need *need)
{
    if (*cell == 0) {
        *need = TARN_AS_TRACED;
    } else if (strcmp(cell, "0") == 0) {
        *need = TARN_NOT_NEEDED;
    } else if (strcmp(cell, "1") == 0) {
        *need = TARN_NEEDED;
    } else {
        return bad_cell(reading, cell, "expected 0, 1 or nothing, found %s", tarn_quote(cell).text);
    }
    return TARN_OK;
}

static enum tarn_status read_name(const struct reading *reading, const char *cell,
                                  const char **name)
{
    if (*cell == 0) return bad_cell(reading, cell, "a name is missing");
    const char *fault = tarn_name_fault(cell);
    if (fault) return bad_cell(reading, cell, "the name %s %s", tarn_quote(cell).text, fault);
    *name = cell;
    return TARN_OK;
}

static enum tarn_status read_number(const struct reading *reading, const char *cell,
                                    uint64_t *number)
{
    if (tarn_csv_number(cell, number)) return TARN_OK;
    return bad_cell(reading, cell, "expected a number from 0 to 2^53-1, found %s",
                    tarn_quote(cell).text);
}

/* ---- Rows ---- */

static enum tarn_status read_model(struct reading *reading)
{
    struct tarn_model_row *row = &reading->table->models[reading->table->models_count];
    char *const *cells = reading->cells;
    *row = (struct tarn_model_row){.line = reading->line, .replaces_kept = *cells[6] != 0};
    enum tarn_status status = read_name(reading, cells[0], &row->kind);
    if (status == TARN_OK) status = read_name(reading, cells[1], &row->implementation);
    if (status == TARN_OK) status = read_factor(reading, cells[2], WHOLE_MAX, &row->time);
    if (status == TARN_OK) status = read_factor(reading, cells[3], WHOLE_MAX, &row->workspace);
    if (status == TARN_OK) status = read_need(reading, cells[4], &row->input);
    if (status == TARN_OK) status = read_need(reading, cells[5], &row->output);
    if (status == TARN_OK && row->replaces_kept)
        status = read_factor(reading, cells[6], 1, &row->keeps);
    if (status == TARN_OK) reading->table->models_count++;
    return status;
}

static enum tarn_status read_measured(struct reading *reading)
{
    struct tarn_measured_row *row = &reading->table->measured[reading->table->measured_count];
    char *const *cells = reading->cells;
    *row = (struct tarn_measured_row){.line = reading->line, .implementation = ""};
    enum tarn_status status = read_name(reading, cells[0], &row->op);
    if (status == TARN_OK && *cells[1]) status = read_name(reading, cells[1], &row->implementation);
    if (status == TARN_OK) status = read_number(reading, cells[2], &row->ns);
    if (status == TARN_OK) status = read_number(reading, cells[3], &row->workspace);
    if (status == TARN_OK) reading->table->measured_count++;
    return status;
}

static bool is_header(const struct reading *reading, const char *const *columns, size_t count)
{
    if (reading->cells_count != count) return false;
    for (size_t i = 0; i < count; i++)
        if (!tarn_csv_is(reading->cells[i], columns[i])) return false;
    return true;
}

static enum tarn_status cut_cells(struct reading *reading, char *line)
{
    reading->begin = line;
    reading->cells_count = 0;
    if (reading->columns_count == 0) reading->separator = tarn_csv_separator(line);
    if (!tarn_csv_quotes_close(line, reading->separator))
        return bad_cell(reading, NULL, "a quoted value does not end with its quote");
    while (line && reading->cells_count < CELLS_MAX)
        reading->cells[reading->cells_count++] = tarn_csv_next_cell(&line, reading->separator);
    if (!line) return TARN_OK;
    return bad_cell(reading, line, "more than %d values", CELLS_MAX);
}

static enum tarn_status read_line(struct reading *reading, char *line)
{
    enum tarn_status status = cut_cells(reading, line);
    if (status != TARN_OK) return status;
    bool is_model = is_header(reading, model_columns, COUNT_OF(model_columns));
    if (is_model || is_header(reading, measured_columns, COUNT_OF(measured_columns))) {
        reading->columns_count = reading->cells_count;
        return TARN_OK;
    }
    if (reading->columns_count == 0)
        return bad_cell(reading, NULL, "expected the columns " HEADERS);
    if (reading->cells_count != reading->columns_count)
        return bad_cell(reading, NULL, "%zu values for %zu columns", reading->cells_count,
                        reading->columns_count);
    return reading->columns_count == COUNT_OF(model_columns) ? read_model(reading)
                                                             : read_measured(reading);
}

static enum tarn_status read_lines(struct reading *reading, char *text)
{
    enum tarn_status status = TARN_OK;
    for (char *line; status == TARN_OK && (line = tarn_csv_next_line(&text)) != NULL;) {
        reading->line++;
        if (*line != 0) status = read_line(reading, line);
    }
    if (reading->line == 0) reading->line = 1; /* nothing but a byte order mark */
    if (status == TARN_OK && reading->columns_count == 0)
        return bad_cell(reading, NULL, "expected the columns " HEADERS ", found nothing");
    return status;
}

/* ---- Order ---- */

static int by_line(uint32_t a, uint32_t b) { return (a > b) - (a < b); }

static int compare_models(const void *a, const void *b)
{
    const struct tarn_model_row *x = a, *y = b;
    int order = strcmp(x->kind, y->kind);
    return order != 0 ? order : by_line(x->line, y->line);
}

static int compare_measured(const void *a, const void *b)
{
    const struct tarn_measured_row *x = a, *y = b;
    int order = strcmp(x->op, y->op);
    return order != 0 ? order : by_line(x->line, y->line);
}

/* Finds the first row whose name is not below `name`. Rows begin with a pointer to the name by
 * which they are sorted. */
static size_t find_row(const void *rows, size_t count, size_t size, const char *name)
{
    size_t low = 0;
    while (low < count) {
        size_t middle = low + (count - low) / 2;
        const char *const *row = (const void *)((const char *)rows + middle * size);
        if (strcmp(*row, name) < 0)
            low = middle + 1;
        else
            count = middle;
    }
    return low;
}

const struct tarn_model_row *tarn_cost_table_models(const struct tarn_cost_table *table,
                                                    const char *kind, size_t *count)
{
    size_t first = find_row(table->models, table->models_count, sizeof *table->models, kind);
    size_t end = first;
    while (end < table->models_count && strcmp(table->models[end].kind, kind) == 0) end++;
    *count = end - first;
    return table->models + first;
}

const struct tarn_measured_row *tarn_cost_table_measured(const struct tarn_cost_table *table,
                                                         const char *op, size_t *count)
{
    size_t first = find_row(table->measured, table->measured_count, sizeof *table->measured, op);
    size_t end = first;
    while (end < table->measured_count && strcmp(table->measured[end].op, op) == 0) end++;
    *count = end - first;
    return table->measured + first;
}

/* ---- Factors ---- */

/* n = q * 10^9 + r: neither product with the billionths leaves 64 bits. */
static uint64_t multiply(struct tarn_factor factor, uint64_t n, uint64_t added)
{
    uint64_t whole, parts = n / BILLION * factor.billionths;
    uint64_t rest = (n % BILLION * factor.billionths + added) / BILLION;
    if (!tarn_size_multiply(n, factor.whole, &whole) || !tarn_size_add(whole, parts, &whole) ||
        !tarn_size_add(whole, rest, &whole))
        return UINT64_MAX;
    return whole;
}

uint64_t tarn_factor_nearest(struct tarn_factor factor, uint64_t n)
{
    return multiply(factor, n, BILLION / 2);
}

uint64_t tarn_factor_up(struct tarn_factor factor, uint64_t n)
{
    return multiply(factor, n, BILLION - 1);
}

/* ---- Tables ---- */

static enum tarn_status read_table(struct tarn_cost_table *table, size_t size,
                                   struct tarn_error *error)
{
    struct reading reading = {.table = table, .error = error, .line = 0};
    size_t lines = tarn_csv_lines_count(table->text);
    char *text = tarn_csv_begin(table->text, size);
    if (!text || lines > TARN_OPS_MAX)
        return tarn_error_set(error, TARN_BAD_INPUT, "%s: %s", table->path,
                              text ? "has too many lines" : "holds a NUL byte: not a text");
    table->models = tarn_region_take(&table->region, lines, sizeof *table->models);
    table->measured = tarn_region_take(&table->region, lines, sizeof *table->measured);
    if (!table->models || !table->measured) return tarn_error_no_memory(error);
    enum tarn_status status = read_lines(&reading, text);
    qsort(table->models, table->models_count, sizeof *table->models, compare_models);
    qsort(table->measured, table->measured_count, sizeof *table->measured, compare_measured);
    return status;
}

static enum tarn_status load(const struct tarn_reader *reader, struct tarn_cost_table **result,
                             struct tarn_error *error)
{
    const char *path = reader->name;
    size_t size;
    struct tarn_cost_table *table = tarn_take_zeros(1, sizeof *table);
    if (!table) return tarn_error_no_memory(error);
    table->path =
        tarn_region_string(&table->region, strcmp(path, "-") == 0 ? "standard input" : path);
    enum tarn_status status =
        table->path ? tarn_text_take(reader, TARN_TEXT_MAX, &table->text, &size, error)
                    : tarn_error_no_memory(error);
    if (status == TARN_OK) status = read_table(table, size, error);
    if (status == TARN_OK)
        *result = table;
    else
        tarn_cost_table_destroy(table);
    return status;
}

enum tarn_status tarn_cost_table_load(const char *path, struct tarn_cost_table **table,
                                      struct tarn_error *error)
{
    if (table) *table = NULL;
    if (!path || !table) return tarn_error_null(error, __func__);
    tarn_error_clear(error);
    return load(&(struct tarn_reader){.name = path}, table, error);
}

enum tarn_status tarn_cost_table_read(const struct tarn_reader *given,
                                      struct tarn_cost_table **table, struct tarn_error *error)
{
    struct tarn_reader reader;
    if (table) *table = NULL;
    if (!table) return tarn_error_null(error, __func__);
    tarn_error_clear(error);
    enum tarn_status status = tarn_reader_check(&reader, given, __func__, error);
    return status != TARN_OK ? status : load(&reader, table, error);
}

void tarn_cost_table_destroy(struct tarn_cost_table *table)
{
    if (!table) return;
    tarn_free(table->text);
    tarn_region_finish(&table->region);
    tarn_free(table);
}
