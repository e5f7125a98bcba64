/* Interval problems in and out. The steps that matter are those in which a buffer begins or is last
 * alive; each becomes an op that produces the one and reads the other, so that two buffers are in
 * conflict exactly when their half-open lifetimes meet. Cost: O(n log n). */
#include "interval_file.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "report.h"
#include "text_file.h"

enum column { COLUMN_ID, COLUMN_LOWER, COLUMN_UPPER, COLUMN_SIZE, COLUMN_OFFSET, COLUMNS };
static const char *const column_names[COLUMNS] = {"id", "lower", "upper", "size", "offset"};

#define NUMBER_MAX ((UINT64_C(1) << 53) - 1) /* as in graph files */

struct buffer {
    char *id; /* in the text */
    uint64_t lower, upper, size;
    uint32_t begin, last; /* ops */
};

struct table {
    struct tarn_error *error;
    const char *path;
    uint32_t line;
    enum column order[COLUMNS]; /* what the columns of the file are */
    uint32_t columns_count;
    struct buffer *buffers;
    uint32_t count;
    uint64_t *steps;
    uint32_t steps_count;
};

/* ---- Lines ---- */

static enum tarn_status bad_line(const struct table *table, const char *what, const char *text)
{
    enum tarn_status status = tarn_error_set(table->error, TARN_BAD_INPUT, "%s: line %u: %s %s",
                                             table->path, table->line, what, tarn_quote(text).text);
    if (table->error && table->error->line == 0) table->error->line = table->line;
    return status;
}

/* Cuts the next line off, without blanks and carriage return at its ends; NULL after the last. */
static char *next_line(char **text)
{
    char *line = *text, *end;
    if (!line || *line == 0) return NULL;
    end = strchr(line, '\n');
    *text = end ? end + 1 : NULL;
    if (!end) end = line + strlen(line);
    while (end > line && (end[-1] == '\r' || end[-1] == ' ' || end[-1] == '\t')) end--;
    *end = 0;
    return line + strspn(line, " \t");
}

static char *next_cell(char **line)
{
    char *cell = *line, *comma, *end;
    if (!cell) return NULL;
    comma = strchr(cell, ',');
    *line = comma ? comma + 1 : NULL;
    end = comma ? comma : cell + strlen(cell);
    while (end > cell && (end[-1] == ' ' || end[-1] == '\t')) end--;
    *end = 0;
    return cell + strspn(cell, " \t");
}

static enum tarn_status read_header(struct table *table, char *line)
{
    bool seen[COLUMNS] = {false};
    for (char *cell; (cell = next_cell(&line)) != NULL;) {
        uint32_t c = 0;
        while (c < COLUMNS && strcmp(cell, column_names[c]) != 0) c++;
        if (c == COLUMNS || seen[c])
            return bad_line(table, "expected the columns id,lower,upper,size[,offset], found",
                            cell);
        seen[c] = true;
        table->order[table->columns_count++] = (enum column)c;
    }
    for (uint32_t c = 0; c < COLUMN_OFFSET; c++) {
        if (!seen[c]) return bad_line(table, "there is no column", column_names[c]);
    }
    return TARN_OK;
}

static enum tarn_status read_number(const struct table *table, const char *cell, uint64_t *number)
{
    uint64_t value = 0;
    const char *at = cell;
    for (; *at >= '0' && *at <= '9' && value <= NUMBER_MAX; at++)
        value = value * 10 + (uint64_t)(*at - '0');
    if (at == cell || *at != 0 || value > NUMBER_MAX)
        return bad_line(table, "expected a number from 0 to 2^53-1, found", cell);
    *number = value;
    return TARN_OK;
}

static enum tarn_status read_cell(const struct table *table, enum column column, char *cell,
                                  struct buffer *buffer)
{
    switch (column) {
    case COLUMN_ID: buffer->id = cell; return TARN_OK;
    case COLUMN_LOWER: return read_number(table, cell, &buffer->lower);
    case COLUMN_UPPER: return read_number(table, cell, &buffer->upper);
    case COLUMN_SIZE: return read_number(table, cell, &buffer->size);
    default: return TARN_OK; /* what somebody else's answer was */
    }
}

static enum tarn_status read_buffer(struct table *table, char *line)
{
    struct buffer *buffer = &table->buffers[table->count];
    enum tarn_status status = TARN_OK;
    for (uint32_t c = 0; c < table->columns_count; c++) {
        char *cell = next_cell(&line);
        if (!cell) return bad_line(table, "there is no value for", column_names[table->order[c]]);
        status = read_cell(table, table->order[c], cell, buffer);
        if (status != TARN_OK) return status;
    }
    if (line) return bad_line(table, "more values than columns:", line);
    if (buffer->size == 0) return bad_line(table, "size must be above 0 for buffer", buffer->id);
    if (buffer->lower >= buffer->upper)
        return bad_line(table, "upper must be above lower for buffer", buffer->id);
    table->count++;
    return TARN_OK;
}

static size_t lines_in(const char *text)
{
    size_t lines = 1;
    while ((text = strchr(text, '\n')) != NULL) {
        lines++;
        text++;
    }
    return lines;
}

static enum tarn_status read_table(struct table *table, char *text)
{
    enum tarn_status status = TARN_OK;
    size_t lines = lines_in(text);
    bool headed = false;
    if (lines > UINT32_MAX / 4)
        return tarn_error_set(table->error, TARN_BAD_INPUT, "%s: more than 2^30 lines",
                              table->path);
    table->buffers = calloc(lines, sizeof *table->buffers);
    if (!table->buffers) return tarn_error_no_memory(table->error);
    for (char *line; status == TARN_OK && (line = next_line(&text)) != NULL;) {
        table->line++;
        if (*line == 0) continue;
        status = headed ? read_buffer(table, line) : read_header(table, line);
        headed = true;
    }
    return status;
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
    if (!table->steps) return tarn_error_no_memory(table->error);
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

static enum tarn_status build(const struct table *table, const struct lists *outputs,
                              const struct lists *inputs, struct tarn_graph **graph)
{
    const char *slash = strrchr(table->path, '/');
    struct tarn_builder *builder = tarn_builder_create(slash ? slash + 1 : table->path);
    tarn_builder_stream(builder, "stream");
    for (uint32_t i = 0; i < table->count; i++)
        tarn_builder_tensor(builder, &(struct tarn_tensor_info){.name = table->buffers[i].id,
                                                                .size = table->buffers[i].size});
    for (uint32_t v = 0; v < table->steps_count; v++) {
        char name[24];
        snprintf(name, sizeof name, "%" PRIu64, table->steps[v]);
        tarn_builder_op(builder, &(struct tarn_op_info){.name = name,
                                                        .kind = "step",
                                                        .inputs = list_of(inputs, v),
                                                        .outputs = list_of(outputs, v)});
    }
    return tarn_builder_finish(builder, graph, table->error);
}

static enum tarn_status build_graph(struct table *table, struct tarn_graph **graph)
{
    struct lists outputs = {0}, inputs = {0};
    enum tarn_status status = number_steps(table);
    if (status != TARN_OK) return status;
    if (lists_init(&outputs, table, true) && lists_init(&inputs, table, false))
        status = build(table, &outputs, &inputs, graph);
    else
        status = tarn_error_no_memory(table->error);
    lists_finish(&outputs);
    lists_finish(&inputs);
    return status;
}

enum tarn_status tarn_interval_load(const char *path, struct tarn_graph **graph,
                                    struct tarn_error *error)
{
    struct table table = {.error = error, .path = path};
    char *text = NULL;
    size_t size = 0;
    tarn_error_clear(error);
    enum tarn_status status = tarn_text_read(path, &text, &size, error);
    if (status == TARN_OK && strlen(text) != size)
        status = tarn_error_set(error, TARN_BAD_INPUT, "%s: holds a NUL byte: not a text", path);
    if (status == TARN_OK) status = read_table(&table, text);
    if (status == TARN_OK && table.columns_count == 0)
        status = bad_line(&table, "expected the columns id,lower,upper,size[,offset], found", "");
    if (status == TARN_OK) status = build_graph(&table, graph);
    free(table.buffers);
    free(table.steps);
    free(text);
    return status;
}

/* ---- Writing ---- */

struct answer {
    const struct tarn_graph *graph;
    const uint64_t *offset;
    bool named; /* steps are the ops' names */
};

static bool parse_step(const char *name, uint64_t *step)
{
    char *end;
    if (*name < '0' || *name > '9' || strlen(name) > 16) return false;
    *step = strtoull(name, &end, 10);
    return *end == 0 && *step < NUMBER_MAX;
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
    if (answer->named) parse_step(answer->graph->ops[op].name, &step);
    return step;
}

static void print_id(const struct tarn_graph *graph, uint32_t tensor, FILE *file)
{
    const char *name = graph->tensors[tensor].name;
    if (*name && !strpbrk(name, ",\"\r\n"))
        fputs(name, file);
    else
        fprintf(file, "%u", tensor);
}

static void print_answer(const void *subject, FILE *file)
{
    const struct answer *answer = subject;
    const struct tarn_graph *graph = answer->graph;
    uint32_t last_op = graph->ops_count ? graph->order[graph->ops_count - 1] : 0;
    fprintf(file, "id,lower,upper,size%s\n", answer->offset ? ",offset" : "");
    for (uint32_t a = 0; a < graph->planned_count; a++) {
        const struct tarn_storage *storage = &graph->storages[a];
        uint32_t last = storage->pinned ? last_op : storage->touchers[storage->touchers_count - 1];
        print_id(graph, storage->tensor, file);
        fprintf(file, ",%" PRIu64 ",%" PRIu64 ",%" PRIu64, step_of(answer, storage->producer),
                step_of(answer, last) + 1, storage->size);
        if (answer->offset) fprintf(file, ",%" PRIu64, answer->offset[a]);
        fputc('\n', file);
    }
}

enum tarn_status tarn_interval_save(const struct tarn_graph *graph, const uint64_t *offset,
                                    const char *path, struct tarn_error *error)
{
    struct answer answer = {graph, offset, has_named_steps(graph)};
    tarn_error_clear(error);
    if (graph->streams_count > 1)
        return tarn_error_set(error, TARN_USAGE,
                              "a graph of %u streams has no lifetimes that a list of intervals "
                              "could hold; save it as JSON",
                              graph->streams_count);
    for (uint32_t a = 0; a < graph->planned_count; a++) {
        if (graph->storages[a].tensor == TARN_NONE)
            return tarn_error_set(error, TARN_USAGE,
                                  "the workspace of op %s has no name in a list of intervals; save "
                                  "the graph as JSON",
                                  tarn_op_label(graph, graph->storages[a].producer).text);
    }
    return tarn_text_save(path, print_answer, &answer, error);
}
