/* Checks the caller's arguments when a session is made: the device's table, lists of streams, the
 * needs of a capture. Streams of communication are recognised by the kinds of their ops. Their
 * queues are urgent unless the caller says otherwise, because other streams wait for received data.
 * Cost: O(streams + ops). */
#include "settings.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

#include "failure.h"
#include "streams/base/checked.h"
#include "streams/base/options.h"
#include "streams/graph/report.h"

/* ---- The device ---- */

static bool all_or_none(const bool *there, size_t count)
{
    size_t found = 0;
    for (size_t i = 0; i < count; i++) found += there[i];
    return found == 0 || found == count;
}
#define ALL_OR_NONE(...) \
    all_or_none((const bool[]){__VA_ARGS__}, sizeof((const bool[]){__VA_ARGS__}) / sizeof(bool))

/* The name of a missing function in a table, or NULL. */
static const char *find_gap(const struct tarn_device_table *t)
{
    if (!t->memory_limits || !t->memory_create || !t->memory_destroy || !t->copy_in ||
        !t->copy_out || !t->fill || !t->error_text || !t->error_class)
        return "memory, copies and errors are required";
    if (!ALL_OR_NONE(t->queue_create, t->queue_destroy, t->event_create, t->event_destroy,
                     t->event_record, t->event_wait, t->event_query))
        return "queues and events all or none";
    if (!ALL_OR_NONE(t->region_create, t->region_destroy) ||
        !ALL_OR_NONE(t->host_memory_create, t->host_memory_destroy) ||
        !ALL_OR_NONE(t->pattern_fill, t->pattern_compare) ||
        !ALL_OR_NONE(t->range_begin, t->range_end))
        return "regions, host memory, ranges and checking kernels each both or none";
    if (!ALL_OR_NONE(t->capture_begin, t->capture_end, t->graph_launch, t->graph_destroy) ||
        !ALL_OR_NONE(t->stamp_create, t->stamp_destroy, t->stamp_record, t->stamp_elapsed))
        return "capture and stamps each all or none";
    if (t->struct_size >= offsetof(struct tarn_device_table, queue_depth) &&
        !ALL_OR_NONE(t->space_limits, t->space_create, t->space_destroy))
        return "functions for memory spaces all or none";
    bool needs_queues = t->kernels_are_closures || t->launch || t->capture_begin || t->stamp_create;
    if (needs_queues && !t->queue_create) return "launch, capture and stamps need queues";
    if (t->kernels_are_closures && !t->launch) return "kernels that are closures need launch";
    return NULL;
}

enum tarn_status tarn_settings_take_source(struct tarn_memory_source *source,
                                           const struct tarn_memory_source *given,
                                           const char *device, struct tarn_error *error)
{
    enum tarn_status status =
        tarn_options_take(source, sizeof *source, given, "memory source", error);
    if (status != TARN_OK || !given) return status;
    if (!source->create || !source->destroy)
        return tarn_error_set(error, TARN_USAGE,
                              "the %s device's source of memory needs both functions, create and "
                              "destroy",
                              device);
    if (source->alignment > 0 && !tarn_is_power_of_two(source->alignment))
        return tarn_error_set(error, TARN_USAGE,
                              "the alignment of the %s device's source of memory is %llu, no power "
                              "of two",
                              device, (unsigned long long)source->alignment);
    return TARN_OK;
}

/* For another device without queues, `self` is not a struct tarn_host_options. */
static enum tarn_status check_host_options(struct tarn_device device, struct tarn_error *error)
{
    struct tarn_host_options options;
    struct tarn_memory_source source;
    if (device.table != tarn_device_host(NULL).table) return TARN_OK;
    enum tarn_status status =
        tarn_options_take(&options, sizeof options, device.self, "host options", error);
    return status != TARN_OK ? status
                             : tarn_settings_take_source(&source, options.memory, "host", error);
}

enum tarn_status tarn_settings_check_device(struct tarn_device device, struct tarn_error *error)
{
    const struct tarn_device_table *table = device.table;
    if (!table) return tarn_error_set(error, TARN_USAGE, "the device has no table");
    const size_t least = offsetof(struct tarn_device_table, space_limits);
    if (table->abi_version != TARN_DEVICE_ABI || table->struct_size < least)
        return tarn_error_set(error, TARN_USAGE,
                              "the device table is of ABI %u with %u bytes; this library needs ABI "
                              "%u with at least %zu bytes: build the device against its headers",
                              table->abi_version, table->struct_size, TARN_DEVICE_ABI, least);
    const char *gap = find_gap(table);
    if (!gap) return check_host_options(device, error);
    return tarn_error_set(error, TARN_USAGE, "the table of device '%s' lacks functions: %s",
                          tarn_device_name(table), gap);
}

/* ---- Streams ---- */

static bool is_communication(const struct tarn_graph *graph, uint32_t op)
{
    enum tarn_op_class op_class = tarn_graph_op_class(graph, op);
    return op_class == TARN_CLASS_COLLECTIVE || op_class == TARN_CLASS_COPY;
}

/* Finds the streams that launch ops and only communicate. */
static void find_communication(struct tarn_settings *settings, const struct tarn_plan *plan)
{
    for (uint32_t s = 0; s < plan->streams_count; s++) {
        uint32_t begin = plan->list_begin[s], end = plan->list_begin[s + 1];
        uint32_t i = begin;
        while (i < end && is_communication(plan->graph, plan->list[i])) i++;
        settings->streams[s].urgent = begin < end && i == end;
    }
}

static enum tarn_status check_list(const struct tarn_list *list, const char *what,
                                   const struct tarn_plan *plan, struct tarn_error *error)
{
    if (list->count > 0 && !list->ids)
        return tarn_error_set(error, TARN_USAGE, "%zu %s streams at NULL", list->count, what);
    for (size_t i = 0; i < list->count; i++) {
        if (list->ids[i] >= plan->streams_count)
            return tarn_error_set(error, TARN_USAGE,
                                  "%s stream %u does not exist; the graph has %u streams", what,
                                  list->ids[i], plan->streams_count);
    }
    return TARN_OK;
}

static enum tarn_status check_queues(const struct tarn_settings *settings,
                                     const struct tarn_plan *plan, struct tarn_device device,
                                     struct tarn_error *error)
{
    void *const *queues = settings->options.queues;
    for (uint32_t s = 0; s < plan->streams_count && queues && tarn_device_is_host(device); s++) {
        if (queues[s])
            return tarn_error_set(error, TARN_USAGE, "%s has a queue, but device '%s' has none",
                                  tarn_stream_label(plan->graph, s).text,
                                  tarn_device_name(device.table));
    }
    return TARN_OK;
}

static enum tarn_status take_streams(struct tarn_settings *settings, struct tarn_region *region,
                                     const struct tarn_plan *plan, struct tarn_device device,
                                     struct tarn_error *error)
{
    const struct tarn_session_options *options = &settings->options;
    settings->streams = tarn_region_take(region, plan->streams_count, sizeof *settings->streams);
    if (!settings->streams) return tarn_error_no_memory(error);
    enum tarn_status status = check_list(&options->blocking, "blocking", plan, error);
    if (status == TARN_OK && options->urgent)
        status = check_list(options->urgent, "urgent", plan, error);
    if (status == TARN_OK) status = check_queues(settings, plan, device, error);
    if (status != TARN_OK) return status;
    for (size_t i = 0; i < options->blocking.count; i++)
        settings->streams[options->blocking.ids[i]].blocking = true;
    if (!options->urgent) find_communication(settings, plan);
    for (size_t i = 0; options->urgent && i < options->urgent->count; i++)
        settings->streams[options->urgent->ids[i]].urgent = true;
    return TARN_OK;
}

/* ---- Capture ---- */

static enum tarn_status check_capture(const struct tarn_settings *settings,
                                      struct tarn_device device, struct tarn_error *error)
{
    const struct tarn_session_options *options = &settings->options;
    if (!options->capture && options->unroll > 1)
        return tarn_error_set(error, TARN_USAGE, "unrolled iterations are for captured execution");
    if (!options->capture) return TARN_OK;
    if (!device.table->capture_begin)
        return tarn_error_set(error, TARN_USAGE,
                              "device '%s' cannot capture and replay: run without capture",
                              tarn_device_name(device.table));
    return TARN_OK;
}

/* ---- All of it ---- */

enum tarn_status tarn_settings_init(struct tarn_settings *settings, struct tarn_region *region,
                                    const struct tarn_plan *plan, struct tarn_device device,
                                    const struct tarn_session_options *options,
                                    struct tarn_error *error)
{
    memset(settings, 0, sizeof *settings);
    enum tarn_status status = tarn_options_take(&settings->options, sizeof settings->options,
                                                options, "session options", error);
    if (status == TARN_OK) status = tarn_settings_check_device(device, error);
    if (status == TARN_OK) status = take_streams(settings, region, plan, device, error);
    if (status == TARN_OK) status = check_capture(settings, device, error);
    return status;
}
