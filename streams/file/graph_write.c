/* `tarn.graph` version 1 out. One record on a line, keys in a fixed order, absent where they say
 * nothing, so that equal graphs give equal bytes. Cost: linear.
 */
#include <inttypes.h>

#include "graph_read.h"
#include "interval_read.h"
#include "streams/text/json_write.h"
#include "streams/text/text_file.h"

static void write_number(FILE *file, const char *key, uint64_t number, uint64_t usual)
{
    if (number != usual) fprintf(file, ",\"%s\":%" PRIu64, key, number);
}

static void write_list(FILE *file, const char *key, const uint32_t *ids, size_t count)
{
    fprintf(file, ",\"%s\":", key);
    tarn_json_write_ids(file, ids, count);
}

static void write_choices(const struct tarn_graph_op *op, FILE *file)
{
    const struct tarn_op_extra *extra = tarn_extra(op);
    for (uint32_t i = 0; i < extra->inplace_count; i++) {
        fputs(i > 0 ? "," : ",\"inplace\":[", file);
        tarn_json_write_ids(file, extra->inplace[i], 2);
    }
    if (extra->inplace_count > 0) fputc(']', file);
    if (op->op_class != TARN_CLASS_UNKNOWN)
        fprintf(file, ",\"class\":\"%s\"", tarn_op_class_text((enum tarn_op_class)op->op_class));
    if (op->recomputable != TARN_RECOMPUTABLE_BY_RULE)
        fprintf(file, ",\"recomputable\":%s",
                op->recomputable == TARN_RECOMPUTABLE ? "true" : "false");
    for (uint32_t i = 0; i < extra->implementations_count; i++) {
        fputs(i > 0 ? ",{\"name\":" : ",\"implementations\":[{\"name\":", file);
        tarn_json_write_string(file, extra->implementations[i].name);
        fprintf(file, ",\"cost\":%" PRIu64, extra->implementations[i].cost);
        write_number(file, "workspace", extra->implementations[i].workspace, 0);
        if (extra->implementations[i].workspace_first) fputs(",\"workspace_first\":true", file);
        if (extra->implementations[i].inputs.count > 0)
            write_list(file, "inputs", extra->implementations[i].inputs.ids,
                       extra->implementations[i].inputs.count);
        if (extra->implementations[i].outputs.count > 0)
            write_list(file, "outputs", extra->implementations[i].outputs.ids,
                       extra->implementations[i].outputs.count);
        fputc('}', file);
    }
    if (extra->implementations_count > 0) fputc(']', file);
    if (extra->common_is_given) write_list(file, "common", extra->common, extra->common_count);
}

static void write_op(const struct tarn_graph *graph, uint32_t v, FILE *file)
{
    const struct tarn_graph_op *op = &graph->ops[v];
    const struct tarn_op_extra *extra = tarn_extra(op);
    fprintf(file, "{\"id\":%" PRIu32 ",\"name\":", v);
    tarn_json_write_string(file, op->name);
    fputs(",\"kind\":", file);
    tarn_json_write_string(file, op->kind);
    fprintf(file, ",\"stream\":%" PRIu32, op->stream);
    write_list(file, "inputs", op->inputs, op->inputs_count);
    write_list(file, "outputs", tarn_outputs(op), op->outputs_count);
    if (extra->control_count > 0) write_list(file, "control", extra->control, extra->control_count);
    write_number(file, "workspace", extra->workspace, 0);
    if (op->says_workspace_first) fputs(",\"workspace_first\":true", file);
    write_number(file, "workspace_space", extra->workspace_space, 0);
    write_number(file, "cost", op->cost, 0);
    write_number(file, "flops", extra->flops, 0);
    if (op->view) fputs(",\"view\":true", file);
    write_choices(op, file);
    write_number(file, "origin", op->origin, v);
    write_number(file, "implementation", extra->implementation, TARN_NONE);
    fputc('}', file);
}

static void write_tensor(const struct tarn_graph *graph, uint32_t t, FILE *file)
{
    const struct tarn_graph_tensor *tensor = &graph->tensors[t];
    fprintf(file, "{\"id\":%" PRIu32 ",\"name\":", t);
    tarn_json_write_string(file, tensor->name);
    fprintf(file, ",\"size\":%" PRIu64 ",\"kind\":\"%s\"", tensor->size,
            tarn_kind_text(tensor->kind));
    write_number(file, "alias_of", tensor->root, t);
    write_number(file, "alignment", tensor->alignment, 0);
    write_number(file, "space", tensor->space, 0);
    write_number(file, "origin", tensor->origin, t);
    fputc('}', file);
}

static void write_stream(const struct tarn_graph *graph, uint32_t s, FILE *file)
{
    fprintf(file, "{\"id\":%" PRIu32 ",\"name\":", s);
    tarn_json_write_string(file, graph->streams[s].name);
    fputc('}', file);
}

static void write_space(const struct tarn_graph *graph, uint32_t s, FILE *file)
{
    const struct tarn_space_info *space = &graph->spaces[s];
    fprintf(file, "{\"id\":%" PRIu32 ",\"name\":", s);
    tarn_json_write_string(file, space->name);
    fprintf(file, ",\"kind\":\"%s\"", tarn_space_kind_text(space->kind));
    write_number(file, "alignment", space->alignment, 0);
    write_number(file, "capacity", space->capacity, 0);
    fputc('}', file);
}

static void write_group(const struct tarn_graph *graph, uint32_t g, FILE *file)
{
    const struct tarn_group *group = &graph->groups[g];
    if (group->padded) fputs("{\"tensors\":", file);
    for (uint32_t i = 0; i < group->storages_count; i++)
        fprintf(file, "%s%" PRIu32, i > 0 ? "," : "[", group->tensors[i]);
    fputs(group->padded ? "],\"padded\":true}" : "]", file);
}

static void write_records(const struct tarn_graph *graph, FILE *file, const char *key,
                          uint32_t count,
                          void (*write)(const struct tarn_graph *, uint32_t, FILE *))
{
    fprintf(file, ",\n\"%s\":[", key);
    for (uint32_t i = 0; i < count; i++) {
        fputs(i > 0 ? ",\n" : "\n", file);
        write(graph, i, file);
    }
    fputs(count > 0 ? "\n]" : "]", file);
}

void tarn_graph_print(const struct tarn_graph *graph, FILE *file)
{
    fputs("{\"format\":\"tarn.graph\",\"version\":1,\"name\":", file);
    tarn_json_write_string(file, graph->name);
    fprintf(file, ",\n\"meta\":%s", graph->meta);
    if (graph->spaces_count > 0)
        write_records(graph, file, "spaces", graph->spaces_count, write_space);
    write_records(graph, file, "streams", graph->streams_count, write_stream);
    write_records(graph, file, "ops", graph->ops_count, write_op);
    write_records(graph, file, "tensors", graph->tensors_count, write_tensor);
    write_records(graph, file, "contiguous", graph->groups_count, write_group);
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
    return status ? status : give_graph(graph, &writer, error);
}
