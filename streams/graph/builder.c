/* The builder collects records and lists in growing arrays and in the region of the new graph.
 * Finish validates and derives, and the builder's arrays become the graph's. The loader and the
 * transforms use the builder as well, so there is only one way to make a graph. Cost: every string
 * and list is copied once; amortised O(1) a call.
 */
#include "builder_state.h"

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
    tarn_free(builder->arcs);
    tarn_free(builder->ids);
    tarn_free(builder);
}

struct tarn_graph *tarn_builder_graph(const struct tarn_builder *builder)
{
    return builder && builder->error.status == TARN_OK ? builder->graph : NULL;
}

bool tarn_builder_take_info(struct tarn_builder *builder, void *taken, size_t known,
                            const void *info, size_t size, const char *function)
{
    if (!is_usable(builder)) return false;
    if (!info) tarn_error_null(&builder->error, function);
    return info &&
           !tarn_struct_take(taken, known, info, size, "the fields of a record", &builder->error);
}

/* ---- Collecting ---- */

void *tarn_builder_room(struct tarn_builder *builder, void *array, uint32_t count,
                        uint32_t *capacity, size_t size)
{
    size_t room = *capacity;
    void *grown = tarn_array_grow(array, &room, (size_t)count + 1, size);
    if (!grown) tarn_error_no_memory(&builder->error);
    *capacity = (uint32_t)room;
    return grown;
}

bool tarn_builder_has_id_left(struct tarn_builder *builder, const char *what, uint32_t count,
                              uint32_t max)
{
    if (count < max) return true;
    tarn_report_bad(&builder->report, tarn_location_at(TARN_NONE, TARN_NONE, "/%s", what),
                    "more than %u %s are not supported", max, what);
    return false;
}

const char *tarn_builder_copy_name(struct tarn_builder *builder, const char *name, const char *what,
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

tarn_stream tarn_builder_stream(struct tarn_builder *builder, const char *name)
{
    if (!is_usable(builder)) return TARN_NONE;
    struct tarn_graph *graph = builder->graph;
    uint32_t id = graph->streams_count;
    if (!tarn_builder_has_id_left(builder, "streams", id, TARN_STREAMS_MAX)) return TARN_NONE;
    struct tarn_graph_stream *streams =
        tarn_builder_room(builder, graph->streams, id, &builder->streams_capacity, sizeof *streams);
    if (!streams) return TARN_NONE;
    graph->streams = streams;
    streams[id] = (struct tarn_graph_stream){
        .name = tarn_builder_copy_name(builder, name, "stream", id, "name")};
    if (!is_usable(builder)) return TARN_NONE;
    return graph->streams_count++;
}

tarn_space tarn_builder_space_sized(struct tarn_builder *builder,
                                    const struct tarn_space_info *given, size_t size)
{
    struct tarn_space_info info;
    if (!tarn_builder_take_info(builder, &info, sizeof info, given, size, __func__))
        return TARN_NONE;
    struct tarn_graph *graph = builder->graph;
    uint32_t id = graph->spaces_count;
    if (!tarn_builder_has_id_left(builder, "spaces", id, TARN_SPACES_MAX)) return TARN_NONE;
    graph->spaces[id] = info;
    graph->spaces[id].name = tarn_builder_copy_name(builder, info.name, "space", id, "name");
    return is_usable(builder) ? graph->spaces_count++ : TARN_NONE;
}

/* A record has room for one of: where a slice begins, where a root is to lie. */
static bool has_one_place(struct tarn_builder *builder, const struct tarn_tensor_info *info,
                          uint32_t t)
{
    bool is_free = info->offset_rule == TARN_OFFSET_FREE;
    bool is_fixed = info->offset_rule == TARN_OFFSET_FIXED;
    if (is_free ? info->wanted_offset == 0 : info->offset == 0) return true;
    tarn_report_bad(&builder->report,
                    tarn_location_at(TARN_NONE, t, "/tensors/%u/%s", t,
                                     is_fixed ? "fixed_offset" : "preferred_offset"),
                    is_free ? "%s wants an offset, but no rule says whether it must have it"
                            : "%s begins inside a root, which alone has an offset in the arena; "
                              "give it to that",
                    tarn_tensor_label(builder->graph, t).text);
    return false;
}

tarn_tensor tarn_builder_alias_of(struct tarn_builder *builder, const struct tarn_tensor_info *info,
                                  tarn_tensor root)
{
    if (!is_usable(builder)) return TARN_NONE;
    struct tarn_graph *graph = builder->graph;
    uint32_t id = graph->tensors_count;
    if (!tarn_builder_has_id_left(builder, "tensors", id, TARN_TENSORS_MAX)) return TARN_NONE;
    struct tarn_graph_tensor *tensors =
        tarn_builder_room(builder, graph->tensors, id, &builder->tensors_capacity, sizeof *tensors);
    if (!tensors) return TARN_NONE;
    graph->tensors = tensors;
    tensors[id] = (struct tarn_graph_tensor){
        .name = tarn_builder_copy_name(builder, info->name, "tensor", id, "name"),
        .size = info->size,
        .alignment = (uint32_t)(info->alignment <= TARN_ALIGNMENT_MAX ? info->alignment
                                                                      : 2 * TARN_ALIGNMENT_MAX),
        .root = root,
        .producer = TARN_NONE,
        .origin = id,
        .space = space_of(info->space),
        .kind = byte_of(info->kind),
        .offset_rule = byte_of(info->offset_rule),
        .place = info->offset_rule == TARN_OFFSET_FREE ? info->offset : info->wanted_offset};
    if (!is_usable(builder)) return TARN_NONE;
    graph->tensors_count++;
    return has_one_place(builder, info, id) ? id : TARN_NONE;
}

tarn_tensor tarn_builder_tensor_sized(struct tarn_builder *builder,
                                      const struct tarn_tensor_info *given, size_t size)
{
    struct tarn_tensor_info info;
    if (!tarn_builder_take_info(builder, &info, sizeof info, given, size, __func__))
        return TARN_NONE;
    return tarn_builder_alias_of(builder, &info, TARN_NONE);
}

tarn_tensor tarn_builder_alias(struct tarn_builder *builder, tarn_tensor of, const char *name)
{
    if (!is_usable(builder)) return TARN_NONE;
    uint64_t size = of < builder->graph->tensors_count ? builder->graph->tensors[of].size : 0;
    return tarn_builder_slice(builder, of, 0, size, name);
}

tarn_tensor tarn_builder_slice(struct tarn_builder *builder, tarn_tensor of, uint64_t offset,
                               uint64_t size, const char *name)
{
    if (!is_usable(builder)) return TARN_NONE;
    if (of >= builder->graph->tensors_count) {
        tarn_report_bad(&builder->report, tarn_location_at(TARN_NONE, of, "%s", ""),
                        "an alias of tensor %u was asked for, but there are %u tensors so far", of,
                        builder->graph->tensors_count);
        return TARN_NONE;
    }
    struct tarn_graph_tensor source = builder->graph->tensors[of];
    if (offset > source.size || size > source.size - offset) {
        tarn_report_bad(&builder->report, tarn_location_at(TARN_NONE, of, "%s", ""),
                        "a slice of %s from byte %llu on was asked for of tensor %u, which "
                        "has %s",
                        tarn_bytes_phrase(size).text, (unsigned long long)offset, of,
                        tarn_bytes_phrase(source.size).text);
        return TARN_NONE;
    }
    struct tarn_tensor_info info = {.name = name,
                                    .size = size,
                                    .offset = tarn_tensor_begin(&source) + offset,
                                    .kind = (enum tarn_tensor_kind)source.kind,
                                    .space = source.space};
    return tarn_builder_alias_of(builder, &info, source.root == TARN_NONE ? of : source.root);
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
    if (status == TARN_OK) status = tarn_derive_control(graph, builder->arcs, builder->arcs_count);
    if (status == TARN_OK) status = tarn_validate_records(graph, builder->groups, &builder->report);
    if (status == TARN_OK) status = tarn_derive_implementations(graph);
    if (status == TARN_OK) status = tarn_derive_streams(graph);
    if (status == TARN_OK) status = tarn_derive_arcs(graph);
    if (status == TARN_OK) status = tarn_derive_order(graph, &builder->report);
    if (status == TARN_OK) status = tarn_derive_storages(graph, &builder->report);
    if (status == TARN_OK) status = tarn_validate_races(graph, &builder->report);
    if (status == TARN_OK) status = tarn_derive_layout(graph, builder->groups, &builder->report);
    if (status == TARN_OK) status = tarn_validate_symmetric(graph, &builder->report);
    if (status == TARN_OK) status = tarn_derive_common(graph);
    if (status == TARN_OK) graph->hash = tarn_hash_of_graph(graph);
    if (status == TARN_OK && !tarn_graph_trim(graph)) status = TARN_SYSTEM;
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
