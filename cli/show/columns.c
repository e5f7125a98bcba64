/* Writes the page's data as JSON. The page only draws; everything drawn is computed here. The data
 * are columns instead of records, and differences instead of growing numbers, so they compress
 * well.
 *
 *     launch   a row for each, in the order of the model;
 *              `begin` of an axis is coded by differences
 *     holder   a row for each, by writer; `touch` has 2 * launch + (1 if it writes):
 *              a holder's first as the difference to the last holder's first, then by differences
 *     space    of each holder, if there are several; `offset` counts through all of them
 *     arms     [launch, conditional, arm], one after the other: the launch runs only there
 *     slices   a list for each: holder, name, offset, size
 *     rules    [holder, rule, offset], one after the other, if the graph wants an offset
 *     moves    [launch, holder, holder], one after the other: copied from the first to the second
 *     name     a number at its end is coded by differences, too, see counted_text
 *
 * Lists of pairs are flat. All launches and holders are indices. Cost: linear. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "words.h"
#include "writers.h"

struct writer {
    FILE *file;
    const struct tarn_picture *picture;
    const struct tarn_model *model;
    bool follows; /* an element of the innermost list or object is there */
};

/* ---- JSON ---- */

static void follow(struct writer *writer)
{
    if (writer->follows) fputc(',', writer->file);
    writer->follows = true;
}

static void open_list(struct writer *writer, const char *key, char bracket)
{
    follow(writer);
    if (key) fprintf(writer->file, "\n\"%s\":", key);
    fputc(bracket, writer->file);
    writer->follows = false;
}

static void close_list(struct writer *writer, char bracket)
{
    fputc(bracket, writer->file);
    writer->follows = true;
}

static void number(struct writer *writer, const char *key, uint64_t number)
{
    follow(writer);
    if (key) fprintf(writer->file, "\n\"%s\":", key);
    fprintf(writer->file, "%" PRIu64, number);
}

/* To `number` from `*last`, modulo 2^64. */
static void difference(struct writer *writer, uint64_t *last, uint64_t number)
{
    follow(writer);
    fprintf(writer->file, "%" PRId64, (int64_t)(number - *last));
    *last = number;
}

static void line(struct writer *writer, const char *key, const char *line, size_t limit)
{
    follow(writer);
    if (key) fprintf(writer->file, "\n\"%s\":", key);
    tarn_write_name(writer->file, TARN_JSON, line, limit);
}

static void text(struct writer *writer, const char *key, const char *text)
{
    line(writer, key, text, TARN_NAME_MAX);
}

/* Writes a name. If it ends in a number, this number is written as its difference to the last
 * name's number, after a tab, which no plain name has. So numbered names compress to almost
 * nothing. */
static void counted_text(struct writer *writer, const char *name, uint64_t *last)
{
    char stem[TARN_NAME_MAX + 24];
    size_t length = strlen(name), digits = 0;
    while (digits < length && name[length - digits - 1] >= '0' && name[length - digits - 1] <= '9')
        digits++;
    while (digits > 1 && name[length - digits] == '0') digits--; /* zeros before it stay */
    if (digits == 0 || digits > 9 || length > TARN_NAME_MAX) {
        text(writer, NULL, name);
        return;
    }
    uint64_t count = strtoull(name + length - digits, NULL, 10);
    snprintf(stem, sizeof stem, "%.*s", (int)(length - digits), name);
    follow(writer);
    fputc('"', writer->file);
    tarn_write_inside(writer->file, TARN_JSON, stem, TARN_NAME_MAX);
    fprintf(writer->file, "\\t%" PRId64 "\"", (int64_t)(count - *last));
    *last = count;
}

/* A list of numbers, one for each of `count`. */
#define COLUMN(writer, key, count, index, value)                                        \
    do {                                                                                \
        open_list(writer, key, '[');                                                    \
        for (uint32_t index = 0; index < (count); index++) number(writer, NULL, value); \
        close_list(writer, ']');                                                        \
    } while (0)

/* ---- The whole ---- */

/* Offsets of holders count through all spaces; a space begins at the end of the one before. */
static void write_spaces(struct writer *writer)
{
    const struct tarn_model *model = writer->model;
    open_list(writer, "spaces", '[');
    for (uint32_t s = 0; s < model->spaces_count; s++) {
        const struct tarn_model_space *space = &model->spaces[s];
        open_list(writer, NULL, '{');
        text(writer, "name", space->name);
        number(writer, "begin", space->begin);
        number(writer, "footprint", space->footprint);
        number(writer, "bound", space->bound);
        number(writer, "serialPeak", space->serial_peak);
        number(writer, "capacity", space->capacity);
        number(writer, "persistentBytes", space->persistent);
        close_list(writer, '}');
    }
    close_list(writer, ']');
}

static void write_figures(struct writer *writer)
{
    const struct tarn_model *model = writer->model;
    const struct tarn_plan_summary *summary = &model->summary;
    text(writer, "name", tarn_graph_name(model->graph));
    text(writer, "tarn", tarn_version());
    text(writer, "method", summary->method);
    number(writer, "alignment", summary->alignment);
    number(writer, "footprint", summary->footprint);
    number(writer, "bound", model->has_certificate ? summary->bound : 0);
    number(writer, "serialPeak", model->serial_peak);
    number(writer, "sum", model->sum);
    number(writer, "persistentBytes", summary->persistent);
    number(writer, "gaps", model->certificate.gaps.count);
    text(writer, "axis", tarn_axis_words[writer->picture->axis]);
    write_spaces(writer);
    open_list(writer, "streams", '[');
    for (tarn_stream s = 0; s < model->streams_count; s++)
        text(writer, NULL, tarn_graph_stream_name(model->graph, s));
    close_list(writer, ']');
    if (!model->has_certificate) return;
    COLUMN(writer, "cut", model->certificate.streams_count, s, model->certificate.launched[s]);
}

static void write_axis(struct writer *writer, enum tarn_axis axis)
{
    const struct tarn_model_schedule *schedule = &writer->picture->axes[axis];
    uint32_t count = writer->model->launches_count;
    uint64_t last = 0;
    open_list(writer, NULL, '{');
    text(writer, "key", tarn_axis_words[axis]);
    number(writer, "isTime", schedule->is_time);
    if (schedule->has_mark) {
        open_list(writer, "mark", '[');
        number(writer, NULL, schedule->mark_begin);
        number(writer, NULL, schedule->mark_end);
        close_list(writer, ']');
        number(writer, "flight", schedule->flight_count);
        open_list(writer, "wide", '['); /* pairs: a launch in flight, and its length */
        for (uint32_t v = 0; v < count; v++) {
            if (schedule->end[v] - schedule->begin[v] == 1) continue;
            number(writer, NULL, v);
            number(writer, NULL, schedule->end[v] - schedule->begin[v]);
        }
        close_list(writer, ']');
    }
    if (axis != TARN_AXIS_ORDER) { /* there, launch v begins at v */
        open_list(writer, "begin", '[');
        for (uint32_t v = 0; v < count; v++) difference(writer, &last, schedule->begin[v]);
        close_list(writer, ']');
    }
    if (axis == TARN_AXIS_REAL) /* the others' follow: a step, the cost, or `wide` */
        COLUMN(writer, "length", count, v, schedule->end[v] - schedule->begin[v]);
    close_list(writer, '}');
}

static void write_lists(struct writer *writer, const char *key, const struct tarn_lists *lists)
{
    open_list(writer, key, '[');
    for (uint32_t v = 0; v < writer->model->launches_count; v++) {
        for (uint32_t i = lists->begin[v]; i < lists->begin[v + 1]; i++) {
            number(writer, NULL, v);
            number(writer, NULL, lists->ids[i]);
        }
    }
    close_list(writer, ']');
}

/* ---- Launches ---- */

/* The launch whose work another one does again; TARN_NONE: a first one. */
static uint32_t first_of(const struct tarn_model *model, const uint32_t *launch_of_origin,
                         tarn_op op)
{
    if (!tarn_plan_op_is_recomputed(model->plan, op)) return TARN_NONE;
    return launch_of_origin[tarn_plan_op_origin(model->plan, op)];
}

static void write_recomputed(struct writer *writer, struct tarn_memory *memory)
{
    const struct tarn_model *model = writer->model;
    uint32_t origins_count = 0;
    for (uint32_t v = 0; v < model->launches_count; v++) {
        tarn_op origin = tarn_plan_op_origin(model->plan, model->launches[v].op);
        if (origin != TARN_NONE && origin >= origins_count) origins_count = origin + 1;
    }
    uint32_t *launch_of = tarn_memory_take(memory, origins_count, sizeof *launch_of);
    open_list(writer, "again", '['); /* pairs: a launch, and the one whose work it does again */
    for (uint32_t v = 0; launch_of && v < model->launches_count; v++) {
        tarn_op op = model->launches[v].op;
        bool is_first = !tarn_plan_op_is_recomputed(model->plan, op);
        if (is_first && tarn_plan_op_origin(model->plan, op) != TARN_NONE)
            launch_of[tarn_plan_op_origin(model->plan, op)] = v;
    }
    for (uint32_t v = 0; launch_of && v < model->launches_count; v++) {
        uint32_t first = first_of(model, launch_of, model->launches[v].op);
        if (first == TARN_NONE) continue;
        number(writer, NULL, v);
        number(writer, NULL, first);
    }
    close_list(writer, ']');
}

static void write_launches(struct writer *writer)
{
    const struct tarn_model *model = writer->model;
    uint32_t count = model->launches_count;
    uint64_t last = 0;
    open_list(writer, "launch", '{');
    open_list(writer, "op", '[');
    for (uint32_t v = 0; v < count; v++) difference(writer, &last, model->launches[v].op);
    close_list(writer, ']');
    last = 0;
    COLUMN(writer, "stream", count, v, model->launches[v].stream);
    COLUMN(writer, "cost", count, v, model->launches[v].cost);
    for (int column = 0; column < 2; column++) {
        open_list(writer, column == 0 ? "name" : "kind", '[');
        for (uint32_t v = 0; v < count; v++) {
            struct tarn_op_info info;
            tarn_graph_op(model->graph, model->launches[v].op, &info);
            if (column == 0)
                counted_text(writer, info.name, &last);
            else
                text(writer, NULL, info.kind);
        }
        close_list(writer, ']');
    }
    close_list(writer, '}');
}

/* ---- Holders ---- */

static void write_touches(struct writer *writer)
{
    const struct tarn_model *model = writer->model;
    uint64_t first = 0;
    open_list(writer, "touch", '[');
    for (uint32_t h = 0; h < model->holders_count; h++) {
        const struct tarn_holder *holder = &model->holders[h];
        uint64_t last = first;
        for (uint32_t i = 0; i < holder->touches_count; i++) {
            const struct tarn_model_touch *touch = &holder->touches[i];
            difference(writer, &last, 2 * (uint64_t)touch->launch + touch->writes);
            if (i == 0) first = last;
        }
    }
    close_list(writer, ']');
}

static void write_holders(struct writer *writer)
{
    const struct tarn_holder *holders = writer->model->holders;
    uint32_t count = writer->model->holders_count;
    open_list(writer, "holder", '{');
    uint64_t last = 0;
    open_list(writer, "name", '[');
    for (uint32_t h = 0; h < count; h++) counted_text(writer, holders[h].name, &last);
    close_list(writer, ']');
    COLUMN(writer, "kind", count, h, holders[h].kind);
    if (writer->model->spaces_count > 1) COLUMN(writer, "space", count, h, holders[h].space);
    COLUMN(writer, "offset", count, h, holders[h].offset);
    COLUMN(writer, "size", count, h, holders[h].size);
    COLUMN(writer, "padding", count, h, holders[h].padding);
    COLUMN(writer, "group", count, h, holders[h].group == TARN_NONE ? 0 : holders[h].group + 1);
    COLUMN(writer, "certified", count, h, holders[h].certified);
    COLUMN(writer, "half", count, h, holders[h].half);
    COLUMN(writer, "touches", count, h, holders[h].touches_count);
    write_touches(writer);
    close_list(writer, '}');
}

/* ---- Words of the graph ---- */

static void write_arms(struct writer *writer)
{
    const struct tarn_model *model = writer->model;
    open_list(writer, "arms", '[');
    for (uint32_t v = 0; v < model->launches_count; v++) {
        struct tarn_op_info info;
        tarn_graph_op(model->graph, model->launches[v].op, &info);
        for (size_t i = 0; i < info.branch_count; i++) {
            number(writer, NULL, v);
            number(writer, NULL, info.branch[i][0]);
            number(writer, NULL, info.branch[i][1]);
        }
    }
    close_list(writer, ']');
}

static void write_slices(struct writer *writer, const uint32_t *holder_of)
{
    const struct tarn_model *model = writer->model;
    open_list(writer, "slices", '[');
    for (tarn_tensor t = 0; t < tarn_graph_tensors_count(model->graph); t++) {
        struct tarn_tensor_info info;
        tarn_tensor root = tarn_graph_root(model->graph, t);
        if (root == t || holder_of[root] == TARN_NONE) continue;
        tarn_graph_tensor(model->graph, t, &info);
        if (info.size == model->holders[holder_of[root]].size) continue;
        open_list(writer, NULL, '[');
        number(writer, NULL, holder_of[root]);
        text(writer, NULL, info.name);
        number(writer, NULL, info.offset);
        number(writer, NULL, info.size);
        close_list(writer, ']');
    }
    close_list(writer, ']');
}

static void write_rules(struct writer *writer)
{
    const struct tarn_model *model = writer->model;
    open_list(writer, "rules", '[');
    for (uint32_t h = 0; h < model->holders_count; h++) {
        struct tarn_tensor_info info;
        if (model->holders[h].tensor == TARN_NONE) continue;
        tarn_graph_tensor(model->graph, model->holders[h].tensor, &info);
        if (info.offset_rule == TARN_OFFSET_FREE) continue;
        number(writer, NULL, h);
        number(writer, NULL, info.offset_rule);
        number(writer, NULL, info.wanted_offset);
    }
    close_list(writer, ']');
}

static void write_moves(struct writer *writer, const uint32_t *holder_of)
{
    const struct tarn_model *model = writer->model;
    open_list(writer, "moves", '[');
    for (uint32_t v = 0; v < model->launches_count; v++) {
        struct tarn_op_info info;
        tarn_graph_op(model->graph, model->launches[v].op, &info);
        if (!info.move) continue;
        uint32_t from = holder_of[tarn_graph_root(model->graph, info.inputs.ids[0])];
        uint32_t to = holder_of[tarn_graph_root(model->graph, info.outputs.ids[0])];
        if (from == TARN_NONE || to == TARN_NONE) continue; /* what persists has no rectangle */
        number(writer, NULL, v);
        number(writer, NULL, from);
        number(writer, NULL, to);
    }
    close_list(writer, ']');
}

static void write_words(struct writer *writer, struct tarn_memory *memory)
{
    const struct tarn_model *model = writer->model;
    uint32_t tensors_count = tarn_graph_tensors_count(model->graph);
    uint32_t *holder_of = tarn_memory_take(memory, tensors_count, sizeof *holder_of);
    if (!holder_of) return;
    memset(holder_of, 0xff, (size_t)tensors_count * sizeof *holder_of);
    for (uint32_t h = 0; h < model->holders_count; h++)
        if (model->holders[h].tensor != TARN_NONE) holder_of[model->holders[h].tensor] = h;
    write_arms(writer);
    write_slices(writer, holder_of);
    write_rules(writer);
    write_moves(writer, holder_of);
}

/* ---- Persistent storages ---- */

static void write_persistent(struct writer *writer)
{
    static const char *const kinds[] = {[TARN_PARAMETER] = "parameter",
                                        [TARN_OPTIMIZER_STATE] = "optimizer state",
                                        [TARN_INPUT] = "input"};
    const struct tarn_model *model = writer->model;
    open_list(writer, "persistent", '[');
    for (tarn_tensor t = 0; t < tarn_graph_tensors_count(model->graph); t++) {
        struct tarn_tensor_info info;
        tarn_graph_tensor(model->graph, t, &info);
        if (info.kind < TARN_PARAMETER || tarn_graph_root(model->graph, t) != t) continue;
        open_list(writer, NULL, '[');
        text(writer, NULL, info.name);
        text(writer, NULL, kinds[info.kind]);
        number(writer, NULL, tarn_plan_offset(model->plan, t));
        number(writer, NULL, info.size);
        number(writer, NULL, info.space);
        close_list(writer, ']');
    }
    close_list(writer, ']');
}

/* ---- Violations ---- */

static uint32_t holder_of(const struct tarn_model *model, tarn_tensor tensor, tarn_op op)
{
    for (uint32_t h = 0; h < model->holders_count; h++) {
        const struct tarn_holder *holder = &model->holders[h];
        if (tensor != TARN_NONE ? holder->tensor == tensor : op != TARN_NONE && holder->op == op)
            return h;
    }
    return TARN_NONE;
}

/* Writes an index; -1: none. */
static void index_or_none(struct writer *writer, const char *key, uint32_t index)
{
    if (index != TARN_NONE) number(writer, key, index);
}

static uint32_t launch_of(const struct tarn_model *model, tarn_op op)
{
    return op < tarn_graph_ops_count(model->graph) ? model->launch_of[op] : TARN_NONE;
}

static void write_violation(struct writer *writer, const struct tarn_violation *violation)
{
    const struct tarn_model *model = writer->model;
    open_list(writer, NULL, '{');
    text(writer, "kind", tarn_violation_text(violation->kind));
    line(writer, "text", violation->text, TARN_LINE_MAX);
    index_or_none(writer, "launch", launch_of(model, violation->op));
    index_or_none(writer, "otherLaunch", launch_of(model, violation->other_op));
    index_or_none(writer, "holder", holder_of(model, violation->tensor, violation->op));
    index_or_none(writer, "otherHolder",
                  holder_of(model, violation->other_tensor, violation->other_op));
    open_list(writer, "witness", '['); /* pairs: launch, iteration */
    for (size_t i = 0; i < violation->witness_count; i++) {
        uint32_t v = launch_of(model, violation->witness[i].op);
        if (v == TARN_NONE) continue;
        number(writer, NULL, v);
        number(writer, NULL, violation->witness[i].iteration);
    }
    close_list(writer, ']');
    close_list(writer, '}');
}

bool tarn_write_columns(FILE *file, const struct tarn_picture *picture)
{
    struct writer writer = {file, picture, &picture->model, false};
    struct tarn_memory memory = {NULL, false};
    open_list(&writer, NULL, '{');
    number(&writer, "version", 1);
    write_figures(&writer);
    open_list(&writer, "axes", '[');
    for (int axis = 0; axis < TARN_AXES; axis++)
        if (picture->has_axis[axis] && axis != TARN_AXIS_WRONG) /* the violations have it */
            write_axis(&writer, (enum tarn_axis)axis);
    close_list(&writer, ']');
    write_launches(&writer);
    write_lists(&writer, "waits", &picture->model.waits);
    write_lists(&writer, "previousWaits", &picture->model.previous_waits);
    write_recomputed(&writer, &memory);
    write_holders(&writer);
    write_words(&writer, &memory);
    write_persistent(&writer);
    open_list(&writer, "violations", '[');
    for (size_t i = 0; i < tarn_verdict_count(picture->verdict); i++)
        write_violation(&writer, tarn_verdict_get(picture->verdict, i));
    close_list(&writer, ']');
    close_list(&writer, '}');
    bool is_complete = !memory.is_exhausted;
    tarn_memory_finish(&memory);
    return is_complete;
}
