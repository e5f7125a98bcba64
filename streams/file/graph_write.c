/* Writes `tarn.graph` version 1. One record per line, keys in a fixed order, default values left
 * out, so that equal graphs give equal bytes. Cost: linear.
 */
#include <inttypes.h>

#include "graph_read.h"
#include "interval_read.h"
#include "streams/text/json_write.h"
#include "streams/text/text_file.h"

static void put_number(json_t **record, const char *key, uint64_t number, uint64_t usual)
{
    if (number != usual) tarn_json_put(record, key, json_integer((json_int_t)number));
}

static void put_true(json_t **record, const char *key, bool truth)
{
    if (truth) tarn_json_put(record, key, json_true());
}

static void put_list(json_t **record, const char *key, struct tarn_list list)
{
    if (list.count > 0) tarn_json_put(record, key, tarn_json_list(list.ids, list.count));
}

static json_t *named(uint32_t id, const char *name)
{
    json_t *record = json_object();
    tarn_json_put(&record, "id", json_integer(id));
    tarn_json_put(&record, "name", json_string(name));
    return record;
}

static json_t *implementation(const struct tarn_implementation *given)
{
    json_t *record = json_object();
    tarn_json_put(&record, "name", json_string(given->name));
    tarn_json_put(&record, "cost", json_integer((json_int_t)given->cost));
    put_number(&record, "workspace", given->workspace, 0);
    put_true(&record, "workspace_first", given->workspace_first);
    put_list(&record, "inputs", given->inputs);
    put_list(&record, "outputs", given->outputs);
    return record;
}

static void put_choices(json_t **record, const struct tarn_graph_op *op)
{
    const struct tarn_op_extra *extra = tarn_extra(op);
    json_t *inplace = json_array(), *implementations = json_array(), *branch = json_array();
    for (uint32_t i = 0; i < extra->branch_count; i++)
        tarn_json_append(&branch, tarn_json_list(extra->branch[i], 2));
    for (uint32_t i = 0; i < extra->inplace_count; i++)
        tarn_json_append(&inplace, tarn_json_list(extra->inplace[i], 2));
    for (uint32_t i = 0; i < extra->implementations_count; i++)
        tarn_json_append(&implementations, implementation(&extra->implementations[i]));
    if (extra->inplace_count > 0) tarn_json_put(record, "inplace", json_incref(inplace));
    if (extra->branch_count > 0) tarn_json_put(record, "branch", json_incref(branch));
    if (op->op_class != TARN_CLASS_UNKNOWN)
        tarn_json_put(record, "class",
                      json_string(tarn_op_class_text((enum tarn_op_class)op->op_class)));
    if (op->recomputable != TARN_RECOMPUTABLE_BY_RULE)
        tarn_json_put(record, "recomputable", json_boolean(op->recomputable == TARN_RECOMPUTABLE));
    if (extra->implementations_count > 0)
        tarn_json_put(record, "implementations", json_incref(implementations));
    if (extra->common_is_given)
        tarn_json_put(record, "common", tarn_json_list(extra->common, extra->common_count));
    json_decref(inplace);
    json_decref(branch);
    json_decref(implementations);
}

static json_t *op_record(const struct tarn_graph *graph, uint32_t v)
{
    const struct tarn_graph_op *op = &graph->ops[v];
    const struct tarn_op_extra *extra = tarn_extra(op);
    json_t *record = named(v, op->name);
    tarn_json_put(&record, "kind", json_string(op->kind));
    tarn_json_put(&record, "stream", json_integer(op->stream));
    tarn_json_put(&record, "inputs", tarn_json_list(op->inputs, op->inputs_count));
    tarn_json_put(&record, "outputs", tarn_json_list(tarn_outputs(op), op->outputs_count));
    put_list(&record, "control", (struct tarn_list){extra->control, extra->control_count});
    put_number(&record, "workspace", extra->workspace, 0);
    put_true(&record, "workspace_first", op->says_workspace_first);
    put_number(&record, "workspace_space", extra->workspace_space, 0);
    put_number(&record, "cost", op->cost, 0);
    put_number(&record, "flops", extra->flops, 0);
    put_true(&record, "view", op->view);
    put_true(&record, "move", op->move);
    put_choices(&record, op);
    put_number(&record, "origin", op->origin, op->move ? TARN_NONE : v);
    put_number(&record, "implementation", extra->implementation, TARN_NONE);
    return record;
}

static json_t *tensor_record(const struct tarn_graph *graph, uint32_t t)
{
    const struct tarn_graph_tensor *tensor = &graph->tensors[t];
    json_t *record = named(t, tensor->name);
    tarn_json_put(&record, "size", json_integer((json_int_t)tensor->size));
    tarn_json_put(&record, "kind", json_string(tarn_kind_text(tensor->kind)));
    put_number(&record, "alias_of", tensor->root, t);
    put_number(&record, "offset", tarn_tensor_begin(tensor), 0);
    put_number(&record, "alignment", tensor->alignment, 0);
    if (tensor->offset_rule != TARN_OFFSET_FREE)
        tarn_json_put(
            &record, tensor->offset_rule == TARN_OFFSET_FIXED ? "fixed_offset" : "preferred_offset",
            json_integer((json_int_t)tarn_tensor_wanted(tensor)));
    put_number(&record, "space", tensor->space, 0);
    put_number(&record, "origin", tensor->origin, t);
    return record;
}

static json_t *stream_record(const struct tarn_graph *graph, uint32_t s)
{
    return named(s, graph->streams[s].name);
}

static json_t *space_record(const struct tarn_graph *graph, uint32_t s)
{
    const struct tarn_space_info *space = &graph->spaces[s];
    json_t *record = named(s, space->name);
    tarn_json_put(&record, "kind", json_string(tarn_space_kind_text(space->kind)));
    put_number(&record, "alignment", space->alignment, 0);
    put_number(&record, "capacity", space->capacity, 0);
    return record;
}

static json_t *offsets_of(const struct tarn_group *group)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < group->tensors_count; i++)
        tarn_json_append(&list, json_integer((json_int_t)group->offsets[i]));
    return list;
}

static json_t *group_record(const struct tarn_graph *graph, uint32_t g)
{
    const struct tarn_group *group = &graph->given[g];
    json_t *tensors = tarn_json_list(group->tensors, group->tensors_count);
    if (!group->padded && !group->offsets && !group->symmetric) return tensors;
    json_t *record = json_object();
    tarn_json_put(&record, "tensors", tensors);
    if (group->padded) tarn_json_put(&record, "padded", json_true());
    if (group->offsets) tarn_json_put(&record, "offsets", offsets_of(group));
    if (group->symmetric) tarn_json_put(&record, "symmetric", json_string(group->symmetric));
    return record;
}

static void write_records(const struct tarn_graph *graph, FILE *file, const char *key,
                          uint32_t count, json_t *(*record)(const struct tarn_graph *, uint32_t))
{
    fprintf(file, ",\n\"%s\":[", key);
    for (uint32_t i = 0; i < count; i++) {
        fputs(i > 0 ? ",\n" : "\n", file);
        tarn_json_write(file, record(graph, i));
    }
    fputs(count > 0 ? "\n]" : "]", file);
}

void tarn_graph_print(const struct tarn_graph *graph, FILE *file)
{
    fputs("{\"format\":\"tarn.graph\",\"version\":1,\"name\":", file);
    tarn_json_write(file, json_string(graph->name));
    fprintf(file, ",\n\"meta\":%s", graph->meta);
    if (graph->spaces_count > 0)
        write_records(graph, file, "spaces", graph->spaces_count, space_record);
    write_records(graph, file, "streams", graph->streams_count, stream_record);
    write_records(graph, file, "ops", graph->ops_count, op_record);
    write_records(graph, file, "tensors", graph->tensors_count, tensor_record);
    write_records(graph, file, "contiguous", graph->given_count, group_record);
    fputc('}', file);
}

static void print_graph(const void *graph, FILE *file)
{
    tarn_graph_print(graph, file);
    fputc('\n', file);
}

static enum tarn_status give_graph(const struct tarn_graph *graph, const struct tarn_writer *writer,
                                   struct tarn_error *error)
{
    if (tarn_text_is_named(writer->name, "csv"))
        return tarn_interval_give(graph, NULL, writer, error);
    return tarn_text_give(writer, print_graph, graph, error);
}

enum tarn_status tarn_graph_save(const struct tarn_graph *graph, const char *path,
                                 struct tarn_error *error)
{
    if (!graph || !path) return tarn_error_null(error, __func__);
    tarn_error_clear(error);
    return give_graph(graph, &(struct tarn_writer){.name = path}, error);
}

enum tarn_status tarn_graph_write(const struct tarn_graph *graph, const struct tarn_writer *given,
                                  struct tarn_error *error)
{
    struct tarn_writer writer;
    if (!graph) return tarn_error_null(error, __func__);
    tarn_error_clear(error);
    enum tarn_status status = tarn_writer_check(&writer, given, __func__, error);
    return status != TARN_OK ? status : give_graph(graph, &writer, error);
}
