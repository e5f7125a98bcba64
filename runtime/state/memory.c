/* The memory of an arena, space by space: from the device, or brought by the caller, who asks for
 * its size first. Cost: O(spaces) calls of the device. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "arena.h"
#include "failure.h"
#include "settings.h"
#include "streams/graph/report.h"

/* ---- What the device gives ---- */

/* The functions for spaces are called for graphs that declare any. */
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
                    const struct tarn_arena_part *part)
{
    struct tarn_memory_space asked = describe(graph, space);
    if (has_kinds(device, graph))
        device.table->space_destroy(device.self, &asked, part->memory, part->needs.size);
    else
        device.table->memory_destroy(device.self, part->memory, part->needs.size);
}

static enum tarn_status memory_refused(const struct tarn_session_arena *arena, uint32_t space,
                                       const struct tarn_session_memory *memory, uint64_t available,
                                       int code, struct tarn_error *error)
{
    const struct tarn_device *device = &arena->device;
    if (device->table->error_class(device->self, code) != TARN_ERROR_OUT_OF_MEMORY)
        return tarn_device_status(*device, "allocation of the arena", code, error);
    char text[64] = "";
    if (available != UINT64_MAX)
        snprintf(text, sizeof text, "; %llu are available", (unsigned long long)available);
    if (error && error->status == TARN_OK) error->device_code = code;
    return tarn_error_set(
        error, TARN_SYSTEM,
        "device '%s' has no memory for this session: it needs %llu bytes%s (arena %llu, "
        "persistent part %llu)%s",
        tarn_device_name(device->table), (unsigned long long)memory->size,
        tarn_space_label(arena->plan->graph, space).text, (unsigned long long)memory->arena,
        (unsigned long long)memory->persistent, text);
}

static enum tarn_status allocate(struct tarn_session_arena *arena, uint32_t space,
                                 const struct tarn_arena_needs *needs,
                                 const struct tarn_memory_limits *limits, struct tarn_error *error)
{
    struct tarn_arena_part *part = &arena->parts[space];
    enum tarn_status status = tarn_arena_needs_check(needs, space, arena->device, limits, error);
    if (status || part->needs.size == 0) return status;
    int code = create(arena->device, arena->plan->graph, space, part->needs.size, &part->memory);
    if (!code) return TARN_OK;
    part->memory = NULL;
    return memory_refused(arena, space, &needs->of[space], limits->available, code, error);
}

/* ---- What the caller brings ---- */

static struct tarn_space_memory brought(const struct tarn_session_options *options, uint32_t space)
{
    struct tarn_space_memory none = {NULL, 0};
    if (space == 0 && options->memory)
        return (struct tarn_space_memory){options->memory, options->memory_size};
    return space < options->space_memory_count ? options->space_memory[space] : none;
}

/* It may be larger, not smaller. */
static enum tarn_status check_brought(const struct tarn_session_arena *arena,
                                      const struct tarn_session_memory *memory,
                                      struct tarn_space_memory given, struct tarn_error *error)
{
    if (given.size < memory->size)
        return tarn_error_set(error, TARN_USAGE,
                              "the memory brought is of %llu bytes; the session needs %llu (arena "
                              "%llu, persistent part %llu)",
                              (unsigned long long)given.size, (unsigned long long)memory->size,
                              (unsigned long long)memory->arena,
                              (unsigned long long)memory->persistent);
    bool is_address = !arena->device.table->region_create;
    if (is_address && (uintptr_t)given.memory % memory->alignment != 0)
        return tarn_error_set(error, TARN_USAGE, "the memory brought must be aligned to %llu bytes",
                              (unsigned long long)memory->alignment);
    return TARN_OK;
}

static enum tarn_status borrow(struct tarn_session_arena *arena, uint32_t space,
                               const struct tarn_session_memory *memory,
                               const struct tarn_session_options *options, bool on_host,
                               struct tarn_error *error)
{
    struct tarn_arena_part *part = &arena->parts[space];
    struct tarn_space_memory given = brought(options, space);
    if (memory->size == 0) return TARN_OK;
    enum tarn_status status = check_brought(arena, memory, given, error);
    if (status) return status;
    struct tarn_memory_use use = {.device = arena->device,
                                  .begin = (uintptr_t)given.memory,
                                  .size = memory->size,
                                  .on_host = on_host};
    part->use = use;
    status = tarn_memory_use_enter(&part->use, error);
    if (status) {
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

/* The host's system gives zeros; touching them here would be work for nothing. */
static enum tarn_status clear(const struct tarn_session_arena *arena, uint32_t space,
                              struct tarn_error *error)
{
    const struct tarn_device *device = &arena->device;
    const struct tarn_arena_part *part = &arena->parts[space];
    bool is_clear = tarn_device_is_host(*device) && !part->is_borrowed &&
                    !has_kinds(*device, arena->plan->graph);
    if (is_clear || part->needs.size == 0) return TARN_OK;
    int code = device->table->fill(device->self, part->memory, 0, part->needs.size);
    return tarn_device_status(*device, "filling the arena with zeros", code, error);
}

static enum tarn_status obtain_part(struct tarn_session_arena *arena, uint32_t space,
                                    const struct tarn_arena_needs *needs,
                                    const struct tarn_session_options *options,
                                    struct tarn_error *error)
{
    struct tarn_memory_limits limits;
    const struct tarn_session_memory *memory = &needs->of[space];
    struct tarn_arena_part *part = &arena->parts[space];
    enum tarn_status status =
        tarn_space_limits(arena->device, arena->plan->graph, space, &limits, error);
    if (status) return status;
    part->needs = *memory;
    part->persistent_begin = memory->size - memory->persistent;
    arena->on_host &= limits.on_host;
    status = brought(options, space).memory
                 ? borrow(arena, space, memory, options, limits.on_host, error)
                 : allocate(arena, space, needs, &limits, error);
    return status ? status : clear(arena, space, error);
}

enum tarn_status tarn_session_arena_obtain(struct tarn_session_arena *arena,
                                           struct tarn_region *region,
                                           const struct tarn_arena_needs *needs,
                                           const struct tarn_session_options *options,
                                           struct tarn_error *error)
{
    enum tarn_status status = check_list(options, needs->count, error);
    if (status) return status;
    arena->parts = tarn_region_take(region, needs->count, sizeof *arena->parts);
    if (!arena->parts) return tarn_error_no_memory(error);
    arena->parts_count = needs->count;
    arena->on_host = true;
    for (uint32_t s = 0; s < needs->count && !status; s++)
        status = obtain_part(arena, s, needs, options, error);
    return status;
}

void tarn_session_arena_give_back(struct tarn_session_arena *arena)
{
    for (uint32_t s = 0; s < arena->parts_count; s++) {
        struct tarn_arena_part *part = &arena->parts[s];
        if (part->memory && !part->is_borrowed) destroy(arena->device, arena->plan->graph, s, part);
        tarn_memory_use_leave(&part->use);
    }
}
