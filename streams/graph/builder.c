/* The builder: records and lists are collected as they come, into growing arrays and the region of
 * the graph to be; finish validates and derives, and the builder's arrays become the graph's. The
 * loader and the transforms use it as well, so that there is one way into a graph. Cost: every
 * string and list is copied once; amortised O(1) a call.
 */
#include "builder.h"

#include <assert.h>
#include <string.h>

#include "derive.h"
#include "hash.h"
#include "streams/base/array.h"
#include "streams/base/error.h"
#include "streams/base/memory.h"
#include "streams/base/options.h"
#include "streams/base/utf8.h"
#include "validate.h"

struct tarn_builder {
    struct tarn_error error;   /* the first one */
    struct tarn_report report; /* of that error */
    struct tarn_graph *graph;
    struct tarn_list *groups;      /* root tensors; the lists live in the region */
    bool *padded;                  /* by group */
    struct tarn_control_arc *arcs; /* from tarn_builder_control */
    uint32_t ops_capacity, tensors_capacity, streams_capacity, groups_capacity, padded_capacity;
    uint32_t arcs_count, arcs_capacity;
    uint32_t references;   /* entries of all lists so far */
    const char *kinds[64]; /* copies by their hash: many ops are of few kinds */
};

/* ---- Life ---- */

struct tarn_builder *tarn_builder_create(const char *graph_name)
{
    struct tarn_builder *builder = tarn_take_zeros(1, sizeof *builder);
    struct tarn_region region = {.chunks = NULL};
    struct tarn_graph *graph = tarn_region_take(&region, 1, sizeof *graph);
    atomic_uint *references = tarn_region_take(&region, 1, sizeof *references);
    if (!builder || region.is_exhausted) {
        tarn_free(builder);
        tarn_region_finish(&region);
        return NULL;
    }
    atomic_init(references, 1);
    graph->references = references;
    graph->region = region; /* the graph lies in the region that it holds */
    graph->meta = "{}";
    builder->graph = graph;
    tarn_error_clear(&builder->error);
    builder->report.error = &builder->error;
    graph->name = tarn_region_string(&graph->region, graph_name);
    if (!graph->name) tarn_error_no_memory(&builder->error);
    if (graph_name && !tarn_utf8_is_valid(graph_name))
        tarn_error_set(&builder->error, TARN_BAD_INPUT, "the name of the graph %s", TARN_NOT_UTF8);
    return builder;
}

void tarn_builder_destroy(struct tarn_builder *builder)
{
    if (!builder) return;
    tarn_graph_destroy(builder->graph);
    tarn_free(builder->groups);
    tarn_free(builder->padded);
    tarn_free(builder->arcs);
    tarn_free(builder);
}

struct tarn_graph *tarn_builder_graph(const struct tarn_builder *builder)
{
    return builder && builder->error.status == TARN_OK ? builder->graph : NULL;
}

static bool is_usable(const struct tarn_builder *builder) { return tarn_builder_graph(builder); }

/* Takes the info of a record, of `size` bytes, which is `known` bytes here; false: an error. */
static bool take_info(struct tarn_builder *builder, void *taken, size_t known, const void *info,
                      size_t size, const char *function)
{
    if (!is_usable(builder)) return false;
    if (!info) tarn_error_null(&builder->error, function);
    return info &&
           !tarn_struct_take(taken, known, info, size, "the fields of a record", &builder->error);
}

/* ---- Collecting ---- */

/* Room for one more record: the array, moved if need be, or NULL when out of memory. */
static void *with_room(struct tarn_builder *builder, void *array, uint32_t count,
                       uint32_t *capacity, size_t size)
{
    size_t room = *capacity;
    void *grown = tarn_array_grow(array, &room, (size_t)count + 1, size);
    if (!grown) tarn_error_no_memory(&builder->error);
    *capacity = (uint32_t)room;
    return grown;
}

static bool has_id_left(struct tarn_builder *builder, const char *what, uint32_t count,
                        uint32_t max)
{
    if (count < max) return true;
    tarn_report_bad(&builder->report, tarn_location_at(TARN_NONE, TARN_NONE, "/%s", what),
                    "more than %u %s are not supported", max, what);
    return false;
}

/* Copies the name or kind of a record ("op", "tensor" or "stream"); NULL on error. */
static const char *copy_name(struct tarn_builder *builder, const char *name, const char *what,
                             uint32_t id, const char *field)
{
    const char *wrong = name ? tarn_name_fault(name) : NULL;
    if (wrong) {
        tarn_report_bad(&builder->report,
                        tarn_location_at(TARN_NONE, TARN_NONE, "/%ss/%u/%s", what, id, field),
                        "the %s of %s %u %s", field, what, id, wrong);
        return NULL;
    }
    const char *copy = tarn_region_string(&builder->graph->region, name);
    if (!copy) tarn_error_no_memory(&builder->error);
    return copy;
}

static const char *copy_kind(struct tarn_builder *builder, const char *kind, uint32_t id)
{
    uint32_t hash = 0;
    for (const char *c = kind; c && *c; c++) hash = hash * 31 + (unsigned char)*c;
    const char **known = &builder->kinds[(hash ^ hash >> 6) % 64];
    if (!kind || !*known || strcmp(*known, kind) != 0)
        *known = copy_name(builder, kind, "op", id, "kind");
    return *known;
}

static bool has_references_left(struct tarn_builder *builder, size_t count)
{
    if (count <= TARN_REFERENCES_MAX - builder->references) return true;
    tarn_report_bad(&builder->report, tarn_location_at(TARN_NONE, TARN_NONE, "%s", ""),
                    "all lists together have more than 2^30 entries");
    return false;
}

/* Copies a list of `count` entries of `size` bytes; an empty one is NULL. */
static void *copy_list(struct tarn_builder *builder, const void *list, size_t count, size_t size)
{
    if (count == 0 || !has_references_left(builder, count)) return NULL;
    if (!list) {
        tarn_error_set(&builder->error, TARN_USAGE, "a list of %zu entries is NULL", count);
        return NULL;
    }
    builder->references += (uint32_t)count;
    void *copy = tarn_region_copy(&builder->graph->region, list, count, size);
    if (!copy) tarn_error_no_memory(&builder->error);
    return copy;
}

tarn_stream tarn_builder_stream(struct tarn_builder *builder, const char *name)
{
    if (!is_usable(builder)) return TARN_NONE;
    struct tarn_graph *graph = builder->graph;
    uint32_t id = graph->streams_count;
    if (!has_id_left(builder, "streams", id, TARN_STREAMS_MAX)) return TARN_NONE;
    struct tarn_graph_stream *streams =
        with_room(builder, graph->streams, id, &builder->streams_capacity, sizeof *streams);
    if (!streams) return TARN_NONE;
    graph->streams = streams;
    streams[id] =
        (struct tarn_graph_stream){.name = copy_name(builder, name, "stream", id, "name")};
    if (!is_usable(builder)) return TARN_NONE;
    return graph->streams_count++;
}

tarn_space tarn_builder_space_sized(struct tarn_builder *builder,
                                    const struct tarn_space_info *given, size_t size)
{
    struct tarn_space_info info;
    if (!take_info(builder, &info, sizeof info, given, size, __func__)) return TARN_NONE;
    struct tarn_graph *graph = builder->graph;
    uint32_t id = graph->spaces_count;
    if (!has_id_left(builder, "spaces", id, TARN_SPACES_MAX)) return TARN_NONE;
    graph->spaces[id] = info;
    graph->spaces[id].name = copy_name(builder, info.name, "space", id, "name");
    return is_usable(builder) ? graph->spaces_count++ : TARN_NONE;
}

tarn_tensor tarn_builder_alias_of(struct tarn_builder *builder, const struct tarn_tensor_info *info,
                                  tarn_tensor root)
{
    if (!is_usable(builder)) return TARN_NONE;
    struct tarn_graph *graph = builder->graph;
    uint32_t id = graph->tensors_count;
    if (!has_id_left(builder, "tensors", id, TARN_TENSORS_MAX)) return TARN_NONE;
    struct tarn_graph_tensor *tensors =
        with_room(builder, graph->tensors, id, &builder->tensors_capacity, sizeof *tensors);
    if (!tensors) return TARN_NONE;
    graph->tensors = tensors;
    tensors[id] = (struct tarn_graph_tensor){
        .name = copy_name(builder, info->name, "tensor", id, "name"),
        .size = info->size,
        .alignment = (uint32_t)(info->alignment <= TARN_ALIGNMENT_MAX ? info->alignment
                                                                      : 2 * TARN_ALIGNMENT_MAX),
        .root = root,
        .producer = TARN_NONE,
        .origin = id,
        .space = space_of(info->space),
        .kind = info->kind};
    if (!is_usable(builder)) return TARN_NONE;
    return graph->tensors_count++;
}

tarn_tensor tarn_builder_tensor_sized(struct tarn_builder *builder,
                                      const struct tarn_tensor_info *given, size_t size)
{
    struct tarn_tensor_info info;
    if (!take_info(builder, &info, sizeof info, given, size, __func__)) return TARN_NONE;
    return tarn_builder_alias_of(builder, &info, TARN_NONE);
}

tarn_tensor tarn_builder_alias(struct tarn_builder *builder, tarn_tensor of, const char *name)
{
    if (!is_usable(builder)) return TARN_NONE;
    if (of >= builder->graph->tensors_count) {
        tarn_report_bad(&builder->report, tarn_location_at(TARN_NONE, of, "%s", ""),
                        "an alias of tensor %u was asked for, but there are %u tensors so far", of,
                        builder->graph->tensors_count);
        return TARN_NONE;
    }
    struct tarn_graph_tensor source = builder->graph->tensors[of];
    struct tarn_tensor_info info = {
        .name = name, .size = source.size, .kind = source.kind, .space = source.space};
    return tarn_builder_alias_of(builder, &info, source.root == TARN_NONE ? of : source.root);
}

static const struct tarn_implementation *
copy_implementations(struct tarn_builder *builder, const struct tarn_op_info *info, uint32_t id)
{
    size_t count = info->implementations_count;
    struct tarn_implementation *copy =
        copy_list(builder, info->implementations, count, sizeof *copy);
    for (size_t i = 0; copy && i < count; i++) {
        struct tarn_list *inputs = &copy[i].inputs, *outputs = &copy[i].outputs;
        copy[i].name = copy_name(builder, copy[i].name, "op", id, "implementations");
        copy[i].workspace_first = copy[i].workspace_first && copy[i].workspace > 0;
        inputs->ids = copy_list(builder, inputs->ids, inputs->count, sizeof *inputs->ids);
        outputs->ids = copy_list(builder, outputs->ids, outputs->count, sizeof *outputs->ids);
    }
    return copy;
}

/* An empty list is one as well. */
static const uint32_t *copy_common(struct tarn_builder *builder, struct tarn_list common)
{
    static const uint32_t nothing;
    if (!common.ids || common.count > 0)
        return copy_list(builder, common.ids, common.ids ? common.count : 0, sizeof *common.ids);
    return &nothing;
}

static struct tarn_graph_op copy_op(struct tarn_builder *builder, const struct tarn_op_info *info,
                                    uint32_t id)
{
    return (struct tarn_graph_op){
        .name = copy_name(builder, info->name, "op", id, "name"),
        .kind = copy_kind(builder, info->kind, id),
        .inputs = copy_list(builder, info->inputs.ids, info->inputs.count, sizeof(uint32_t)),
        .outputs = copy_list(builder, info->outputs.ids, info->outputs.count, sizeof(uint32_t)),
        .control = copy_list(builder, info->control.ids, info->control.count, sizeof(uint32_t)),
        .inputs_count = (uint32_t)info->inputs.count,
        .outputs_count = (uint32_t)info->outputs.count,
        .control_count = (uint32_t)info->control.count,
        .stream = info->stream,
        .origin = id,
        .implementation = TARN_NONE,
        .workspace_storage = TARN_NONE,
        .inplace = copy_list(builder, info->inplace, info->inplace_count, sizeof *info->inplace),
        .inplace_count = (uint32_t)info->inplace_count,
        .implementations = copy_implementations(builder, info, id),
        .implementations_count = (uint32_t)info->implementations_count,
        .common = copy_common(builder, info->common),
        .common_count = info->common.ids ? (uint32_t)info->common.count : 0,
        .common_is_given = info->common.ids != NULL,
        .workspace = info->workspace,
        .cost = info->cost,
        .flops = info->flops,
        .view = info->view,
        .workspace_space = space_of(info->workspace_space),
        .workspace_first = info->workspace_first && info->workspace > 0,
        .recomputable = info->recomputable,
    };
}

tarn_op tarn_builder_op_sized(struct tarn_builder *builder, const struct tarn_op_info *given,
                              size_t size)
{
    struct tarn_op_info info;
    if (!take_info(builder, &info, sizeof info, given, size, __func__)) return TARN_NONE;
    struct tarn_graph *graph = builder->graph;
    uint32_t id = graph->ops_count;
    if (!has_id_left(builder, "ops", id, TARN_OPS_MAX)) return TARN_NONE;
    struct tarn_graph_op *ops =
        with_room(builder, graph->ops, id, &builder->ops_capacity, sizeof *ops);
    if (!ops) return TARN_NONE;
    graph->ops = ops;
    ops[id] = copy_op(builder, &info, id);
    if (!is_usable(builder)) return TARN_NONE;
    return graph->ops_count++;
}

void tarn_builder_control(struct tarn_builder *builder, tarn_op later, tarn_op earlier)
{
    if (!is_usable(builder)) return;
    if (!has_references_left(builder, 1)) return;
    if (later >= builder->graph->ops_count) {
        tarn_report_bad(&builder->report, tarn_location_at(later, TARN_NONE, "%s", ""),
                        "a control arc to op %u was asked for, but there are %u ops so far", later,
                        builder->graph->ops_count);
        return;
    }
    struct tarn_control_arc *arcs = with_room(builder, builder->arcs, builder->arcs_count,
                                              &builder->arcs_capacity, sizeof *arcs);
    if (!arcs) return;
    builder->arcs = arcs;
    builder->references++;
    arcs[builder->arcs_count++] = (struct tarn_control_arc){later, earlier};
}

void tarn_builder_add_group(struct tarn_builder *builder, struct tarn_list tensors, bool is_padded)
{
    if (!is_usable(builder)) return;
    uint32_t g = builder->graph->groups_count;
    if (!has_id_left(builder, "contiguous", g, TARN_TENSORS_MAX)) return;
    struct tarn_list *groups =
        with_room(builder, builder->groups, g, &builder->groups_capacity, sizeof *groups);
    if (groups) builder->groups = groups;
    bool *padded = with_room(builder, builder->padded, g, &builder->padded_capacity, 1);
    if (padded) builder->padded = padded;
    if (!groups || !padded) return;
    padded[g] = is_padded;
    groups[g].ids = copy_list(builder, tensors.ids, tensors.count, sizeof *tensors.ids);
    groups[g].count = tensors.count;
    if (is_usable(builder)) builder->graph->groups_count++;
}

void tarn_builder_read_from(struct tarn_builder *builder, const struct tarn_report *report)
{
    if (!builder) return;
    builder->report.path = report->path;
    builder->report.base = report->base;
    builder->graph->text_max = report->text_max;
}

void tarn_builder_meta(struct tarn_builder *builder, const char *meta)
{
    if (!is_usable(builder)) return;
    builder->graph->meta = tarn_region_string(&builder->graph->region, meta);
    if (!builder->graph->meta) tarn_error_no_memory(&builder->error);
}

/* ---- Finishing ---- */

static enum tarn_status complete(struct tarn_builder *builder)
{
    struct tarn_graph *graph = builder->graph;
    enum tarn_status status = builder->error.status;
    if (!status) status = tarn_derive_control(graph, builder->arcs, builder->arcs_count);
    if (!status) status = tarn_validate_records(graph, builder->groups, &builder->report);
    if (!status) status = tarn_derive_implementations(graph);
    if (!status) status = tarn_derive_streams(graph);
    if (!status) status = tarn_derive_arcs(graph);
    if (!status) status = tarn_derive_order(graph, &builder->report);
    if (!status) status = tarn_derive_storages(graph, builder->groups, builder->padded);
    if (!status) status = tarn_validate_races(graph, &builder->report);
    if (!status) status = tarn_derive_common(graph);
    if (!status) graph->hash = tarn_hash_of_graph(graph);
    if (!status && !tarn_graph_trim(graph)) status = TARN_SYSTEM;
    if (status == TARN_SYSTEM) tarn_error_no_memory(&builder->error);
    return status;
}

enum tarn_status tarn_builder_finish(struct tarn_builder *builder, struct tarn_graph **graph,
                                     struct tarn_error *error)
{
    if (graph) *graph = NULL;
    if (!graph) {
        tarn_builder_destroy(builder);
        return tarn_error_null(error, __func__);
    }
    tarn_error_clear(error);
    if (!builder) return tarn_error_no_memory(error);
    enum tarn_status status = complete(builder);
    if (status == TARN_OK) {
        assert(tarn_graph_is_valid(builder->graph));
        *graph = builder->graph;
        builder->graph = NULL;
    } else if (error) {
        *error = builder->error;
    }
    tarn_builder_destroy(builder);
    return status;
}
