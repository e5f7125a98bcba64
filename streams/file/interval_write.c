/* Interval problems out: the lifetimes of a graph of one stream, under the names that minimalloc
 * and its validator read; see file/interval_read.h. A plan is written with the offsets as a column,
 * as the answer to the instance. Cost: O(n log n). */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "interval_read.h"
#include "streams/base/checked.h"
#include "streams/base/error.h"
#include "streams/base/escape.h"
#include "streams/base/memory.h"
#include "streams/base/utf8.h"
#include "streams/graph/validate.h"
#include "streams/plan/plan.h"
#include "streams/text/csv.h"
#include "streams/text/text_file.h"

struct answer {
    const struct tarn_graph *graph;
    const uint64_t *offset;
    struct piece *pieces; /* scratch: of one group */
    bool named_steps;     /* steps are the ops' names */
    bool named_ids;       /* ids are the tensors' names */
    bool aligned;         /* some tensor has an alignment of its own */
    bool hinted;          /* some tensor prefers an offset */
    bool has_gaps;        /* some row is a group */
};

/* A member of a group, and when it is alive: from op to op, as ranks, both included. */
struct piece {
    uint64_t at, size; /* in its group */
    uint32_t begin, last, storage;
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

/* Can the name be a value that is read as it was written, in quotes if need be? */
static bool is_value(const char *name)
{
    return *name && !strpbrk(name, "\r\n") && has_nothing_hidden(name);
}

static void print_id(const char *name, FILE *file)
{
    size_t length = strlen(name);
    if (!strpbrk(name, ",\"") && !strchr(" \t", name[0]) && !strchr(" \t", name[length - 1])) {
        fputs(name, file);
        return;
    }
    fputc('"', file);
    for (const char *at = name; *at; at++) fputs(*at == '"' ? "\"\"" : (char[]){*at, 0}, file);
    fputc('"', file);
}

/* Is the storage a later member of its group, whose row the first member has? */
static bool is_inside(const struct tarn_graph *graph, uint32_t a)
{
    uint32_t group = graph->storages[a].group;
    if (group == TARN_NONE) return false;
    for (uint32_t i = 0; i < graph->groups[group].storages_count; i++)
        if (graph->groups[group].storages[i] < a) return true;
    return false;
}

/* Are the names of all rows values, and different? */
static enum tarn_status look_at_ids(struct answer *answer, struct tarn_error *error)
{
    const struct tarn_graph *graph = answer->graph;
    struct tarn_csv_name *names = tarn_take(((size_t)graph->planned_count + 1) * sizeof *names);
    if (!names) return tarn_error_no_memory(error);
    answer->named_ids = true;
    uint32_t count = 0;
    for (uint32_t a = 0; a < graph->planned_count; a++) {
        if (is_inside(graph, a)) continue;
        names[count] = (struct tarn_csv_name){graph->tensors[graph->storages[a].tensor].name, a};
        if (!is_value(names[count++].text)) answer->named_ids = false;
    }
    if (answer->named_ids && tarn_csv_find_twin(names, count)) answer->named_ids = false;
    tarn_free(names);
    return TARN_OK;
}

/* ---- Pieces ---- */

static int compare_pieces(const void *a, const void *b)
{
    const struct piece *x = a, *y = b;
    return (x->begin > y->begin) - (x->begin < y->begin);
}

static struct piece piece_of(const struct tarn_graph *graph, uint32_t a, uint64_t at)
{
    const struct tarn_storage *storage = &graph->storages[a];
    uint32_t last = storage->pinned ? graph->order[graph->ops_count - 1]
                                    : tarn_storage_users(graph, storage)[storage->users_count - 1];
    return (struct piece){at, storage->size, graph->rank[storage->producer], graph->rank[last], a};
}

/* Fills in the pieces of a storage, or of its group, in order of time; returns their number. */
static uint32_t find_pieces(const struct tarn_graph *graph, uint32_t a, struct piece *pieces)
{
    uint32_t number = graph->storages[a].group;
    uint64_t at = 0;
    if (number == TARN_NONE) {
        pieces[0] = piece_of(graph, a, 0);
        return 1;
    }
    const struct tarn_group *group = &graph->groups[number];
    for (uint32_t i = 0; i < group->storages_count; i++) {
        pieces[i] = piece_of(graph, group->storages[i], group->within ? group->within[i] : at);
        at += graph->storages[group->storages[i]].size;
    }
    qsort(pieces, group->storages_count, sizeof *pieces, compare_pieces);
    return group->storages_count;
}

static void print_steps(const struct answer *answer, uint32_t from, uint32_t to, FILE *file)
{
    const uint32_t *order = answer->graph->order;
    fprintf(file, "%" PRIu64 "-%" PRIu64, step_of(answer, order[from]),
            step_of(answer, order[to]) + 1);
}

/* Between two pieces nothing is in use; while a piece is not the whole buffer, only its bytes are.
 */
static void print_gaps(const struct answer *answer, uint32_t count, uint64_t size, FILE *file)
{
    const struct piece *pieces = answer->pieces;
    const char *blank = "";
    fputc(',', file);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t lower = step_of(answer, answer->graph->order[pieces[i].begin]), upper;
        if (i > 0) {
            upper = step_of(answer, answer->graph->order[pieces[i - 1].last]) + 1;
            if (upper < lower) fprintf(file, "%s%" PRIu64 "-%" PRIu64, blank, upper, lower);
            if (upper < lower) blank = " ";
        }
        if (pieces[i].at == 0 && pieces[i].size == size) continue;
        fputs(blank, file);
        print_steps(answer, pieces[i].begin, pieces[i].last, file);
        fprintf(file, "@%" PRIu64 ":%" PRIu64, pieces[i].at, pieces[i].at + pieces[i].size);
        blank = " ";
    }
}

/* The offset that a piece prefers, as one of its buffer. */
static void print_hint(const struct answer *answer, uint32_t count, FILE *file)
{
    fputc(',', file);
    for (uint32_t i = 0; i < count; i++) {
        const struct piece *piece = &answer->pieces[i];
        const struct tarn_graph_tensor *tensor =
            &answer->graph->tensors[answer->graph->storages[piece->storage].tensor];
        if (tensor->offset_rule != TARN_OFFSET_PREFERRED || tarn_tensor_wanted(tensor) < piece->at)
            continue;
        fprintf(file, "%" PRIu64, tarn_tensor_wanted(tensor) - piece->at);
        return;
    }
}

static void print_buffer(const struct answer *answer, uint32_t a, FILE *file)
{
    const struct tarn_graph *graph = answer->graph;
    const struct piece *pieces = answer->pieces;
    uint32_t count = find_pieces(graph, a, answer->pieces), alignment = 1;
    uint64_t size = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t own = tarn_own_alignment(graph, &graph->storages[pieces[i].storage]);
        if (pieces[i].at + pieces[i].size > size) size = pieces[i].at + pieces[i].size;
        if (own > alignment) alignment = own;
    }
    if (answer->named_ids)
        print_id(graph->tensors[graph->storages[a].tensor].name, file);
    else
        fprintf(file, "%" PRIu32, graph->storages[a].tensor);
    fprintf(file, ",%" PRIu64 ",%" PRIu64 ",%" PRIu64,
            step_of(answer, graph->order[pieces[0].begin]),
            step_of(answer, graph->order[pieces[count - 1].last]) + 1, size);
    if (answer->aligned) fprintf(file, ",%" PRIu32, alignment);
    if (answer->has_gaps) print_gaps(answer, count, size, file);
    if (answer->hinted) print_hint(answer, count, file);
    if (answer->offset)
        fprintf(file, ",%" PRIu64, answer->offset[pieces[0].storage] - pieces[0].at);
    fputc('\n', file);
}

static void print_answer(const void *subject, FILE *file)
{
    const struct answer *answer = subject;
    fprintf(file, "id,lower,upper,size%s%s%s%s\n", answer->aligned ? ",alignment" : "",
            answer->has_gaps ? ",gaps" : "", answer->hinted ? ",hint" : "",
            answer->offset ? ",offset" : "");
    for (uint32_t a = 0; a < answer->graph->planned_count; a++)
        if (!is_inside(answer->graph, a)) print_buffer(answer, a, file);
}

/* Members of a group that are in use together, or at distances that depend on the plan, are no one
 * buffer. */
static enum tarn_status refuse_groups(const struct tarn_graph *graph, struct piece *pieces,
                                      const char *path, struct tarn_error *error)
{
    for (uint32_t g = 0; g < graph->groups_count; g++) {
        const struct tarn_group *group = &graph->groups[g];
        if (group->persistent || group->storages_count < 2) continue;
        uint32_t count = find_pieces(graph, group->storages[0], pieces);
        for (uint32_t i = 1; i < count; i++) {
            if (!group->padded && pieces[i - 1].last < pieces[i].begin) continue;
            return tarn_error_set(
                error, TARN_USAGE,
                "%s: intervals cannot express that %s lies in a contiguous group%s; save the graph "
                "as JSON",
                path, tarn_storage_label(graph, pieces[i].storage).text,
                group->padded ? ", which is padded" : " with what is in use at the same time");
        }
    }
    return TARN_OK;
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
        if (graph->tensors[storage->tensor].offset_rule == TARN_OFFSET_FIXED)
            return tarn_error_set(error, TARN_USAGE,
                                  "%s: intervals cannot express that the offset of %s is fixed; "
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
    uint32_t longest = 1;
    for (uint32_t g = 0; g < graph->groups_count; g++) {
        const struct tarn_group *group = &graph->groups[g];
        if (group->storages_count > longest) longest = group->storages_count;
        if (!group->persistent && group->storages_count > 1) answer.has_gaps = true;
    }
    enum tarn_status status = refuse_graph(graph, path, error);
    answer.pieces = tarn_take((size_t)longest * sizeof *answer.pieces);
    if (status == TARN_OK && !answer.pieces) status = tarn_error_no_memory(error);
    if (status == TARN_OK) status = refuse_groups(graph, answer.pieces, path, error);
    if (status == TARN_OK) status = look_at_ids(&answer, error);
    answer.named_steps = has_named_steps(graph);
    for (uint32_t a = 0; a < graph->planned_count && status == TARN_OK; a++) {
        const struct tarn_graph_tensor *tensor = &graph->tensors[graph->storages[a].tensor];
        if (tarn_own_alignment(graph, &graph->storages[a]) > 0) answer.aligned = true;
        if (tensor->offset_rule == TARN_OFFSET_PREFERRED) answer.hinted = true;
    }
    if (status == TARN_OK) status = tarn_text_give(writer, print_answer, &answer, error);
    tarn_free(answer.pieces);
    return status;
}

enum tarn_status tarn_interval_answer(const struct tarn_plan *plan,
                                      const struct tarn_writer *writer, struct tarn_error *error)
{
    if (plan->footprint > TARN_NUMBER_MAX)
        return tarn_error_set(error, TARN_BAD_INPUT,
                              "%s: the plan needs more than 2^53 - 1 bytes, which an answer cannot "
                              "say",
                              writer->name);
    uint32_t count = plan->graph->planned_count;
    uint64_t *offset = tarn_take_zeros((size_t)count + 1, sizeof *offset);
    if (!offset) return tarn_error_no_memory(error);
    for (uint32_t a = 0; a < count; a++) offset[a] = tarn_plan_place(plan, a)->offset;
    enum tarn_status status = tarn_interval_give(plan->graph, offset, writer, error);
    tarn_free(offset);
    return status;
}

enum tarn_status tarn_plan_save_intervals(const struct tarn_plan *plan, const char *path,
                                          struct tarn_error *error)
{
    if (!plan || !path) return tarn_error_null(error, __func__);
    tarn_error_clear(error);
    return tarn_interval_answer(plan, &(struct tarn_writer){.name = path}, error);
}
