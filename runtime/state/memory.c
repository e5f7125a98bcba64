/* Obtains memory, space by space: from the device, or from the caller, who asks for its size first.
 * Cost: O(spaces) calls of the device. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "failure.h"
#include "plan_memory.h"
#include "settings.h"
#include "streams/graph/report.h"

/* ---- Memory of the device ---- */

/* The functions for spaces are called only for graphs that declare spaces. */
static bool has_kinds(struct tarn_device device, const struct tarn_graph *graph)
{
    return graph->spaces_count > 0 && tarn_device_has_spaces(device.table);
}

static struct tarn_memory_space describe(const struct tarn_graph *graph, uint32_t space)
{
    const struct tarn_space_info *info = &graph->spaces[space];
    return (struct tarn_memory_space){space, info->name, info->kind};
}

enum tarn_status tarn_space_limits(struct tarn_device device, const struct tarn_graph *graph,
                                   uint32_t space, struct tarn_memory_limits *limits,
                                   struct tarn_error *error)
{
    int code;
    memset(limits, 0, sizeof *limits);
    if (has_kinds(device, graph)) {
        struct tarn_memory_space asked = describe(graph, space);
        code = device.table->space_limits(device.self, &asked, limits);
    } else {
        code = device.table->memory_limits(device.self, limits);
    }
    return tarn_device_status(device, "asking for the memory's limits", code, error);
}

static int create(struct tarn_device device, const struct tarn_graph *graph, uint32_t space,
                  uint64_t size, void **memory)
{
    if (!has_kinds(device, graph)) return device.table->memory_create(device.self, size, memory);
    struct tarn_memory_space asked = describe(graph, space);
    return device.table->space_create(device.self, &asked, size, memory);
}

static void destroy(struct tarn_device device, const struct tarn_graph *graph, uint32_t space,
                    const struct tarn_memory_part *part)
{
    struct tarn_memory_space asked = describe(graph, space);
    if (has_kinds(device, graph))
        device.table->space_destroy(device.self, &asked, part->memory, part->needs.size);
    else
        device.table->memory_destroy(device.self, part->memory, part->needs.size);
}

static enum tarn_status memory_refused(const struct tarn_plan_memory *memory, uint32_t space,
                                       const struct tarn_memory_needs *needs, uint64_t available,
                                       int code, struct tarn_error *error)
{
    const struct tarn_device *device = &memory->device;
    if (device->table->error_class(device->self, code) != TARN_ERROR_OUT_OF_MEMORY)
        return tarn_device_status(*device, "allocation of the arena", code, error);
    char text[64] = "";
    if (available != UINT64_MAX)
        snprintf(text, sizeof text, "; %llu are available", (unsigned long long)available);
    if (error && error->status == TARN_OK) error->device_code = code;
    return tarn_error_set(error, TARN_SYSTEM,
                          "device '%s' has no memory for this session: it needs %s%s (arena %llu, "
                          "persistent part %llu)%s",
                          tarn_device_name(device->table), tarn_bytes_phrase(needs->size).text,
                          tarn_space_label(memory->plan->graph, space).text,
                          (unsigned long long)needs->arena, (unsigned long long)needs->persistent,
                          text);
}

static enum tarn_status allocate(struct tarn_plan_memory *memory, uint32_t space,
                                 const struct tarn_needs_by_space *by_space,
                                 const struct tarn_memory_limits *limits, struct tarn_error *error)
{
    struct tarn_memory_part *part = &memory->parts[space];
    enum tarn_status status = tarn_needs_check(by_space, space, memory->device, limits, error);
    if (status != TARN_OK || part->needs.size == 0) return status;
    int code = create(memory->device, memory->plan->graph, space, part->needs.size, &part->memory);
    if (!code) return TARN_OK;
    part->memory = NULL;
    return memory_refused(memory, space, &by_space->of[space], limits->available, code, error);
}

/* ---- Memory of the caller ---- */

static struct tarn_space_memory brought(const struct tarn_session_options *options, uint32_t space)
{
    struct tarn_space_memory none = {NULL, 0};
    if (space == 0 && options->memory)
        return (struct tarn_space_memory){options->memory, options->memory_size};
    return space < options->space_memory_count ? options->space_memory[space] : none;
}

/* It may be larger, not smaller. */
static enum tarn_status check_brought(const struct tarn_plan_memory *memory,
                                      const struct tarn_memory_needs *needs,
                                      struct tarn_space_memory given, struct tarn_error *error)
{
    if (given.size < needs->size)
        return tarn_error_set(error, TARN_USAGE,
                              "the memory brought is of %s; the session needs %llu (arena "
                              "%llu, persistent part %llu)",
                              tarn_bytes_phrase(given.size).text, (unsigned long long)needs->size,
                              (unsigned long long)needs->arena,
                              (unsigned long long)needs->persistent);
    bool is_address = !memory->device.table->region_create;
    if (is_address && (uintptr_t)given.memory % needs->alignment != 0)
        return tarn_error_set(error, TARN_USAGE, "the memory brought must be aligned to %s",
                              tarn_bytes_phrase(needs->alignment).text);
    return TARN_OK;
}

static enum tarn_status borrow(struct tarn_plan_memory *memory, uint32_t space,
                               const struct tarn_memory_needs *needs,
                               const struct tarn_session_options *options, bool on_host,
                               struct tarn_error *error)
{
    struct tarn_memory_part *part = &memory->parts[space];
    struct tarn_space_memory given = brought(options, space);
    if (needs->size == 0) return TARN_OK;
    enum tarn_status status = check_brought(memory, needs, given, error);
    if (status != TARN_OK) return status;
    struct tarn_memory_use use = {.device = memory->device,
                                  .begin = (uintptr_t)given.memory,
                                  .size = needs->size,
                                  .on_host = on_host};
    part->use = use;
    status = tarn_memory_use_enter(&part->use, error);
    if (status != TARN_OK) {
        part->use.size = 0;
        return status;
    }
    part->memory = given.memory;
    part->is_borrowed = true;
    return TARN_OK;
}

static enum tarn_status check_list(const struct tarn_session_options *options, uint32_t spaces,
                                   struct tarn_error *error)
{
    if (options->space_memory_count > 0 && !options->space_memory)
        return tarn_error_set(error, TARN_USAGE, "memory of %zu spaces at NULL",
                              options->space_memory_count);
    if (options->space_memory_count > spaces)
        return tarn_error_set(error, TARN_USAGE,
                              "memory for %zu memory spaces is brought; the graph has %u",
                              options->space_memory_count, spaces);
    if (options->memory && options->space_memory_count > 0 && options->space_memory[0].memory)
        return tarn_error_set(error, TARN_USAGE,
                              "memory of space 0 is brought twice: by 'memory' and by "
                              "'space_memory'");
    return TARN_OK;
}

/* ---- Both ---- */

/* The host's system gives zeros, so this need not touch them. */
static enum tarn_status clear(const struct tarn_plan_memory *memory, uint32_t space,
                              struct tarn_error *error)
{
    const struct tarn_device *device = &memory->device;
    const struct tarn_memory_part *part = &memory->parts[space];
    bool is_clear = tarn_device_is_host(*device) && !part->is_borrowed &&
                    !has_kinds(*device, memory->plan->graph);
    if (is_clear || part->needs.size == 0) return TARN_OK;
    int code = device->table->fill(device->self, part->memory, 0, part->needs.size);
    return tarn_device_status(*device, "filling the arena with zeros", code, error);
}

static enum tarn_status obtain_part(struct tarn_plan_memory *memory, uint32_t space,
                                    const struct tarn_needs_by_space *by_space,
                                    const struct tarn_session_options *options,
                                    struct tarn_error *error)
{
    struct tarn_memory_limits limits;
    const struct tarn_memory_needs *needs = &by_space->of[space];
    struct tarn_memory_part *part = &memory->parts[space];
    enum tarn_status status =
        tarn_space_limits(memory->device, memory->plan->graph, space, &limits, error);
    if (status != TARN_OK) return status;
    part->needs = *needs;
    part->persistent_begin = needs->size - needs->persistent;
    memory->on_host &= limits.on_host;
    status = brought(options, space).memory
                 ? borrow(memory, space, needs, options, limits.on_host, error)
                 : allocate(memory, space, by_space, &limits, error);
    return status != TARN_OK ? status : clear(memory, space, error);
}

enum tarn_status tarn_plan_memory_obtain(struct tarn_plan_memory *memory,
                                         struct tarn_region *region,
                                         const struct tarn_needs_by_space *by_space,
                                         const struct tarn_session_options *options,
                                         struct tarn_error *error)
{
    enum tarn_status status = check_list(options, by_space->count, error);
    if (status != TARN_OK) return status;
    memory->parts = tarn_region_take(region, by_space->count, sizeof *memory->parts);
    if (!memory->parts) return tarn_error_no_memory(error);
    memory->parts_count = by_space->count;
    memory->on_host = true;
    for (uint32_t s = 0; s < by_space->count && status == TARN_OK; s++)
        status = obtain_part(memory, s, by_space, options, error);
    return status;
}

void tarn_plan_memory_give_back(struct tarn_plan_memory *memory)
{
    for (uint32_t s = 0; s < memory->parts_count; s++) {
        struct tarn_memory_part *part = &memory->parts[s];
        if (part->memory && !part->is_borrowed)
            destroy(memory->device, memory->plan->graph, s, part);
        tarn_memory_use_leave(&part->use);
    }
}
