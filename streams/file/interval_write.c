/* Writes interval problems: the lifetimes of a graph of one stream, under the names that minimalloc
 * and its validator read; see file/interval_read.h. Cost: O(n log n). */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "interval_read.h"
#include "streams/base/escape.h"
#include "streams/base/memory.h"
#include "streams/base/utf8.h"
#include "streams/graph/validate.h"
#include "streams/text/csv.h"
#include "streams/text/text_file.h"

struct answer {
    const struct tarn_graph *graph;
    const uint64_t *offset;
    bool named_steps; /* steps are the ops' names */
    bool named_ids;   /* ids are the tensors' names */
    bool aligned;     /* some tensor has its own alignment */
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

static bool has_nothing_hidden(const char *name)
{
    char shown[TARN_NAME_MAX + 1];
    tarn_text_escape(TARN_PLAIN, name, shown, sizeof shown);
    return strcmp(name, shown) == 0;
}

/* Can the name be a value that is read as it was written? */
static bool is_plain(const char *name)
{
    size_t length = strlen(name);
    return length > 0 && !strpbrk(name, ",\"\r\n") && !strchr(" \t", name[0]) &&
           !strchr(" \t", name[length - 1]) && has_nothing_hidden(name);
}

/* Are the names of all planned tensors plain and different? */
static enum tarn_status look_at_ids(struct answer *answer, struct tarn_error *error)
{
    const struct tarn_graph *graph = answer->graph;
    struct tarn_csv_name *names = tarn_take(((size_t)graph->planned_count + 1) * sizeof *names);
    if (!names) return tarn_error_no_memory(error);
    answer->named_ids = true;
    for (uint32_t a = 0; a < graph->planned_count; a++) {
        names[a] = (struct tarn_csv_name){graph->tensors[graph->storages[a].tensor].name, a};
        if (!is_plain(names[a].text)) answer->named_ids = false;
    }
    if (answer->named_ids && tarn_csv_find_twin(names, graph->planned_count))
        answer->named_ids = false;
    tarn_free(names);
    return TARN_OK;
}

static void print_buffer(const struct answer *answer, uint32_t a, FILE *file)
{
    const struct tarn_graph *graph = answer->graph;
    const struct tarn_storage *storage = &graph->storages[a];
    uint32_t last = storage->pinned ? graph->order[graph->ops_count - 1]
                                    : tarn_storage_users(graph, storage)[storage->users_count - 1];
    if (answer->named_ids)
        fputs(graph->tensors[storage->tensor].name, file);
    else
        fprintf(file, "%" PRIu32, storage->tensor);
    fprintf(file, ",%" PRIu64 ",%" PRIu64 ",%" PRIu64, step_of(answer, storage->producer),
            step_of(answer, last) + 1, storage->size);
    if (answer->aligned)
        fprintf(file, ",%" PRIu32,
                tarn_own_alignment(graph, storage) > 0 ? tarn_own_alignment(graph, storage) : 1);
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

/* Refuses graphs that a list of intervals cannot express. */
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
        if (storage->space > 0)
            return tarn_error_set(error, TARN_USAGE,
                                  "%s: intervals are of one memory space; save the graph as JSON",
                                  path);
        if (storage->tensor == TARN_NONE)
            return tarn_error_set(
                error, TARN_USAGE,
                "%s: intervals cannot express the workspace of %s; save the graph as "
                "JSON",
                path, tarn_op_label(graph, storage->producer).text);
        if (storage->group != TARN_NONE && graph->groups[storage->group].storages_count > 1)
            return tarn_error_set(
                error, TARN_USAGE,
                "%s: intervals cannot express that %s lies in a contiguous group; "
                "save the graph as JSON",
                path, tarn_storage_label(graph, a).text);
    }
    return TARN_OK;
}

enum tarn_status tarn_interval_give(const struct tarn_graph *graph, const uint64_t *offset,
                                    const struct tarn_writer *writer, struct tarn_error *error)
{
    const char *path = writer->name;
    struct answer answer = {.graph = graph, .offset = offset};
    if (tarn_text_is_named(path, "json"))
        return tarn_error_set(error, TARN_USAGE,
                              "%s: intervals are not JSON; choose a name that ends in .csv", path);
    enum tarn_status status = refuse_graph(graph, path, error);
    if (status == TARN_OK) status = look_at_ids(&answer, error);
    if (status != TARN_OK) return status;
    answer.named_steps = has_named_steps(graph);
    for (uint32_t a = 0; a < graph->planned_count; a++) {
        if (tarn_own_alignment(graph, &graph->storages[a]) > 0) answer.aligned = true;
    }
    return tarn_text_give(writer, print_answer, &answer, error);
}
