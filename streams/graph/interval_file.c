/* Interval problems in and out. The steps that matter are those in which a buffer begins or is last
 * alive; each becomes an op that produces the one and reads the other, so that two buffers are in
 * conflict exactly when their half-open lifetimes meet. Column names are those of minimalloc, whose
 * instances and validator the others use too; its `end` is the last step, not the one behind it.
 * What a row may hold beyond its lifetime is the builder's to judge; its errors get the line.
 * Cost: O(n log n). */
#include "interval_file.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "builder.h"
#include "csv.h"
#include "text_file.h"
#include "validate.h"

enum column {
    COLUMN_ID,
    COLUMN_LOWER,
    COLUMN_UPPER,
    COLUMN_SIZE,
    COLUMN_ALIGNMENT,
    COLUMN_GAPS,
    COLUMN_OFFSET,
    COLUMNS,
    COLUMN_END /* upper - 1 */
};
#define COLUMNS_REQUIRED COLUMN_ALIGNMENT
#define COLUMNS_TEXT "id,lower,upper,size[,alignment][,offset]"

/* The first name of a column is the one that is written. */
static const struct {
    const char *name;
    enum column column;
} column_names[] = {
    {"id", COLUMN_ID},         {"lower", COLUMN_LOWER},         {"upper", COLUMN_UPPER},
    {"size", COLUMN_SIZE},     {"alignment", COLUMN_ALIGNMENT}, {"gaps", COLUMN_GAPS},
    {"offset", COLUMN_OFFSET}, {"buffer", COLUMN_ID},           {"buffer_id", COLUMN_ID},
    {"start", COLUMN_LOWER},   {"begin", COLUMN_LOWER},         {"end", COLUMN_END},
};

struct buffer {
    char *id; /* in the text */
    uint64_t lower, upper, size, alignment;
    uint32_t begin, last; /* ops */
    uint32_t line;
};

struct table {
    const struct tarn_report *report;
    uint32_t line;
    enum column order[COLUMNS]; /* what the columns of the file are */
    uint32_t columns_count;
    struct buffer *buffers;
    uint32_t count;
    uint64_t *steps;
    uint32_t steps_count;
};

/* ---- Ids ---- */

struct name {
    const char *text;
    uint32_t index;
};

static int compare_names(const void *a, const void *b)
{
    const struct name *x = a, *y = b;
    int order = strcmp(x->text, y->text);
    return order != 0 ? order : (x->index > y->index) - (x->index < y->index);
}

/* Sorts; the second of two equal names, or NULL. */
static const struct name *find_twin(struct name *names, uint32_t count)
{
    qsort(names, count, sizeof *names, compare_names);
    for (uint32_t i = 1; i < count; i++) {
        if (strcmp(names[i - 1].text, names[i].text) == 0) return &names[i];
    }
    return NULL;
}

/* ---- Lines ---- */

static struct tarn_spot nowhere(void)
{
    return (struct tarn_spot){.op = TARN_NONE, .tensor = TARN_NONE};
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

/* COLUMNS when there is no such column. */
static enum column find_column(const char *name)
{
    for (size_t i = 0; i < sizeof column_names / sizeof *column_names; i++) {
        if (strcmp(name, column_names[i].name) == 0) return column_names[i].column;
    }
    return COLUMNS;
}

static enum tarn_status read_header(struct table *table, char *line)
{
    bool seen[COLUMNS] = {false};
    for (char *cell; (cell = tarn_csv_next_cell(&line)) != NULL;) {
        enum column column = find_column(cell);
        uint32_t fills = column == COLUMN_END ? COLUMN_UPPER : column;
        if (column == COLUMNS)
            return bad_line(table, "expected the columns " COLUMNS_TEXT ", found %s",
                            tarn_quote(cell).text);
        if (seen[fills])
            return bad_line(table, "column %s says again what another one says",
                            tarn_quote(cell).text);
        seen[fills] = true;
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
    if (*cell == '"')
        return bad_line(table, "quoted values are not read: %s", tarn_quote(cell).text);
    if (*cell == 0) return bad_line(table, "the id is empty");
    buffer->id = cell;
    return TARN_OK;
}

static enum tarn_status read_cell(const struct table *table, enum column column, char *cell,
                                  struct buffer *buffer)
{
    enum tarn_status status;
    uint64_t ignored;
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
    case COLUMN_GAPS:
        if (*cell == 0) return TARN_OK;
        return bad_line(table, "gaps in a lifetime cannot be planned: %s", tarn_quote(cell).text);
    default: return read_number(table, cell, &ignored); /* what somebody else's answer was */
    }
}

static enum tarn_status read_buffer(struct table *table, char *line)
{
    struct buffer *buffer = &table->buffers[table->count];
    enum tarn_status status = TARN_OK;
    buffer->line = table->line;
    for (uint32_t c = 0; c < table->columns_count; c++) {
        char *cell = tarn_csv_next_cell(&line);
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
    return TARN_OK;
}

static enum tarn_status read_lines(struct table *table, char *text)
{
    enum tarn_status status = TARN_OK;
    size_t lines = tarn_csv_lines_count(text);
    if (lines > TARN_TENSORS_MAX) return bad_line(table, "the text has %zu lines", lines);
    table->buffers = calloc(lines, sizeof *table->buffers);
    if (!table->buffers) return tarn_error_no_memory(table->report->error);
    for (char *line; status == TARN_OK && (line = tarn_csv_next_line(&text)) != NULL;) {
        table->line++;
        if (*line == 0) continue;
        status = table->columns_count > 0 ? read_buffer(table, line) : read_header(table, line);
    }
    if (status == TARN_OK && table->columns_count == 0)
        return bad_line(table, "expected the columns " COLUMNS_TEXT ", found nothing");
    return status;
}

static enum tarn_status refuse_twins(struct table *table)
{
    struct name *names = malloc(((size_t)table->count + 1) * sizeof *names);
    const struct name *twin;
    if (!names) return tarn_error_no_memory(table->report->error);
    for (uint32_t i = 0; i < table->count; i++) names[i] = (struct name){table->buffers[i].id, i};
    twin = find_twin(names, table->count);
    if (twin) {
        table->line = table->buffers[twin->index].line;
        bad_line(table, "the id %s is that of line %u too", tarn_quote(twin->text).text,
                 table->buffers[twin[-1].index].line);
    }
    free(names);
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
    uint32_t count = 0;
    table->steps = malloc(((size_t)table->count * 2 + 1) * sizeof *table->steps);
    if (!table->steps) return tarn_error_no_memory(table->report->error);
    for (uint32_t i = 0; i < table->count; i++) {
        table->steps[count++] = table->buffers[i].lower;
        table->steps[count++] = table->buffers[i].upper - 1;
    }
    qsort(table->steps, count, sizeof *table->steps, compare_steps);
    for (uint32_t i = 0; i < count; i++) {
        if (table->steps_count == 0 || table->steps[table->steps_count - 1] != table->steps[i])
            table->steps[table->steps_count++] = table->steps[i];
    }
    for (uint32_t i = 0; i < table->count; i++) {
        table->buffers[i].begin = step_index(table, table->buffers[i].lower);
        table->buffers[i].last = step_index(table, table->buffers[i].upper - 1);
    }
    return TARN_OK;
}

/* ---- The graph ---- */

/* What the ops touch, as lists one behind the other: those of op v are ids[begin[v] .. begin[v +
 * 1]). */
struct lists {
    uint32_t *begin, *ids;
};

static bool lists_init(struct lists *lists, const struct table *table, bool outputs)
{
    lists->begin = calloc((size_t)table->steps_count + 2, sizeof *lists->begin);
    lists->ids = malloc(((size_t)table->count + 1) * sizeof *lists->ids);
    if (!lists->begin || !lists->ids) return false;
    for (int pass = 0; pass < 2; pass++) { /* count, then fill */
        for (uint32_t i = 0; i < table->count; i++) {
            const struct buffer *buffer = &table->buffers[i];
            uint32_t op = outputs ? buffer->begin : buffer->last;
            if (!outputs && buffer->last == buffer->begin) continue;
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

static void lists_finish(struct lists *lists)
{
    free(lists->begin);
    free(lists->ids);
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
    const char *slash = strrchr(path, '/');
    snprintf(name, size, "%s", slash ? slash + 1 : path);
    char *extension = strstr(name, ".csv");
    if (extension && tarn_text_is_named(path, "csv")) *extension = '\0';
    for (size_t length; *name; name += length) {
        length = tarn_utf8_size(name);
        if (length > 0) continue;
        *name = '?';
        length = 1;
    }
}

/* What the builder says of a tensor is said of its line. row: which one, if known. */
static enum tarn_status refuse(struct table *table, const struct tarn_error *found, uint32_t row)
{
    if (found->status != TARN_BAD_INPUT)
        return tarn_error_set(table->report->error, found->status, "%s", found->text);
    if (row >= table->count) row = found->tensor;
    if (row >= table->count) return tarn_report_bad(table->report, nowhere(), "%s", found->text);
    table->line = table->buffers[row].line;
    return bad_line(table, "%s", found->text);
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
    for (; row < table->count; row++) {
        const struct buffer *buffer = &table->buffers[row];
        const struct tarn_tensor_info info = {
            .name = buffer->id, .size = buffer->size, .alignment = buffer->alignment};
        if (tarn_builder_tensor(builder, &info) == TARN_NONE) break;
    }
    for (uint32_t v = 0; v < table->steps_count; v++) {
        snprintf(name, sizeof name, "%" PRIu64, table->steps[v]);
        tarn_builder_op(builder, &(struct tarn_op_info){.name = name,
                                                        .kind = "step",
                                                        .inputs = list_of(inputs, v),
                                                        .outputs = list_of(outputs, v)});
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
    lists_finish(&outputs);
    lists_finish(&inputs);
    return status;
}

enum tarn_status tarn_interval_decode(const struct tarn_report *report, char *text, size_t size,
                                      struct tarn_graph **graph)
{
    struct table table = {.report = report};
    enum tarn_status status = read_table(&table, text, size);
    if (status == TARN_OK) status = build_graph(&table, graph);
    free(table.buffers);
    free(table.steps);
    return status;
}

bool tarn_interval_is(const char *path, const char *text)
{
    if (tarn_text_is_named(path, "csv")) return true;
    if (tarn_text_is_named(path, "json")) return false;
    return isalpha((unsigned char)text[strspn(text, " \t\r\n\xef\xbb\xbf")]);
}

/* ---- Writing ---- */

struct answer {
    const struct tarn_graph *graph;
    const uint64_t *offset;
    bool named_steps; /* steps are the ops' names */
    bool named_ids;   /* ids are the tensors' names */
    bool aligned;     /* some tensor has an alignment of its own */
};

static bool parse_step(const char *name, uint64_t *step)
{
    char *end;
    if (*name < '0' || *name > '9' || strlen(name) > 16) return false;
    *step = strtoull(name, &end, 10);
    return *end == 0 && *step < TARN_NUMBER_MAX;
}

/* Are all ops named by increasing numbers? */
static bool has_named_steps(const struct tarn_graph *graph)
{
    uint64_t last = 0, step;
    for (uint32_t i = 0; i < graph->ops_count; i++) {
        if (!parse_step(graph->ops[graph->order[i]].name, &step) || (i > 0 && step <= last))
            return false;
        last = step;
    }
    return true;
}

static uint64_t step_of(const struct answer *answer, uint32_t op)
{
    uint64_t step = answer->graph->rank[op];
    if (answer->named_steps) parse_step(answer->graph->ops[op].name, &step);
    return step;
}

/* Can the name be a value that is read as it was written? */
static bool is_plain(const char *name)
{
    size_t length = strlen(name);
    return length > 0 && !strpbrk(name, ",\"\r\n") && !strchr(" \t", name[0]) &&
           !strchr(" \t", name[length - 1]);
}

/* Are the names of all planned tensors plain and different? */
static enum tarn_status look_at_ids(struct answer *answer, struct tarn_error *error)
{
    const struct tarn_graph *graph = answer->graph;
    struct name *names = malloc(((size_t)graph->planned_count + 1) * sizeof *names);
    if (!names) return tarn_error_no_memory(error);
    answer->named_ids = true;
    for (uint32_t a = 0; a < graph->planned_count; a++) {
        names[a] = (struct name){graph->tensors[graph->storages[a].tensor].name, a};
        if (!is_plain(names[a].text)) answer->named_ids = false;
    }
    if (answer->named_ids && find_twin(names, graph->planned_count)) answer->named_ids = false;
    free(names);
    return TARN_OK;
}

static void print_buffer(const struct answer *answer, uint32_t a, FILE *file)
{
    const struct tarn_graph *graph = answer->graph;
    const struct tarn_storage *storage = &graph->storages[a];
    uint32_t last = storage->pinned ? graph->order[graph->ops_count - 1]
                                    : storage->touchers[storage->touchers_count - 1];
    if (answer->named_ids)
        fputs(graph->tensors[storage->tensor].name, file);
    else
        fprintf(file, "%" PRIu32, storage->tensor);
    fprintf(file, ",%" PRIu64 ",%" PRIu64 ",%" PRIu64, step_of(answer, storage->producer),
            step_of(answer, last) + 1, storage->size);
    if (answer->aligned)
        fprintf(file, ",%" PRIu64, storage->alignment > 0 ? storage->alignment : 1);
    if (answer->offset) fprintf(file, ",%" PRIu64, answer->offset[a]);
    fputc('\n', file);
}

static void print_answer(const void *subject, FILE *file)
{
    const struct answer *answer = subject;
    fprintf(file, "id,lower,upper,size%s%s\n", answer->aligned ? ",alignment" : "",
            answer->offset ? ",offset" : "");
    for (uint32_t a = 0; a < answer->graph->planned_count; a++) print_buffer(answer, a, file);
}

/* What has no place in a list of intervals. */
static enum tarn_status refuse_graph(const struct tarn_graph *graph, const char *path,
                                     struct tarn_error *error)
{
    if (graph->streams_count > 1)
        return tarn_error_set(error, TARN_USAGE,
                              "%s: a graph of %" PRIu32 " streams has no lifetimes that intervals "
                              "could express; save it as JSON",
                              path, graph->streams_count);
    for (uint32_t a = 0; a < graph->planned_count; a++) {
        const struct tarn_storage *storage = &graph->storages[a];
        if (storage->tensor == TARN_NONE)
            return tarn_error_set(
                error, TARN_USAGE,
                "%s: intervals cannot express the workspace of %s; save the graph as "
                "JSON",
                path, tarn_op_label(graph, storage->producer).text);
        if (storage->group != TARN_NONE)
            return tarn_error_set(
                error, TARN_USAGE,
                "%s: intervals cannot express that %s lies in a contiguous group; "
                "save the graph as JSON",
                path, tarn_storage_label(graph, a).text);
    }
    return TARN_OK;
}

enum tarn_status tarn_interval_save(const struct tarn_graph *graph, const uint64_t *offset,
                                    const char *path, struct tarn_error *error)
{
    struct answer answer = {.graph = graph, .offset = offset};
    if (tarn_text_is_named(path, "json"))
        return tarn_error_set(error, TARN_USAGE,
                              "%s: intervals are not JSON; choose a name that ends in .csv", path);
    enum tarn_status status = refuse_graph(graph, path, error);
    if (status == TARN_OK) status = look_at_ids(&answer, error);
    if (status != TARN_OK) return status;
    answer.named_steps = has_named_steps(graph);
    for (uint32_t a = 0; a < graph->planned_count; a++) {
        if (graph->storages[a].alignment > 0) answer.aligned = true;
    }
    return tarn_text_save(path, print_answer, &answer, error);
}
