/* One allocation per session:
 *
 *     memory:  [ arena: planned storages ][ persistent part ]
 *
 * from the device, or brought by the caller, who asks for its size first. Every storage has one
 * address, found once: an address inside the allocation, a region where the device has no such
 * addresses, or for persistent storages memory that the caller binds. Cost: O(storages). */
#include "arena.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "failure.h"
#include "rebind.h"
#include "settings.h"
#include "shared.h"
#include "streams/base/checked.h"
#include "streams/base/options.h"
#include "streams/graph/report.h"

/* ---- What is needed, and what the device gives ---- */

/* Offsets are multiples of the plan's or the tensor's own alignment; so must their base be.
 * *tensor: whose it is; TARN_NONE: the plan's. */
static uint64_t alignment_needed(const struct tarn_plan *plan, tarn_tensor *tensor)
{
    uint64_t needed = plan->alignment, own = plan->graph->spaces[0].alignment;
    if (own > needed) needed = own;
    *tensor = TARN_NONE;
    for (uint32_t t = 0; t < plan->graph->tensors_count; t++) {
        if (plan->graph->tensors[t].alignment <= needed) continue;
        needed = plan->graph->tensors[t].alignment;
        *tensor = t;
    }
    return needed;
}

/* Where the last of these places ends, at least `size`: a plan that is run without verification
 * may say less than it uses, and must then corrupt its own arena only. */
static bool find_end(const struct tarn_place *places, uint32_t count, uint64_t *size)
{
    for (uint32_t i = 0; i < count; i++) {
        uint64_t end;
        if (!tarn_size_add(places[i].offset, places[i].size, &end)) return false;
        if (end > *size) *size = end;
    }
    return true;
}

enum tarn_status tarn_session_arena_measure(const struct tarn_plan *plan, bool is_bound,
                                            struct tarn_session_memory *memory,
                                            struct tarn_error *error)
{
    tarn_tensor strictest;
    uint64_t begin;
    if (plan->spaces_count > 1)
        return tarn_error_set(error, TARN_USAGE,
                              "the plan has %u memory spaces, and a session only one so far",
                              plan->spaces_count);
    *memory = (struct tarn_session_memory){.arena = plan->footprint};
    memory->alignment = alignment_needed(plan, &strictest);
    bool fits = find_end(plan->storages, plan->storages_count, &memory->arena) &&
                find_end(plan->workspaces, plan->workspaces_count, &memory->arena);
    if (fits && !is_bound) {
        memory->persistent = plan->persistent;
        fits =
            find_end(plan->places_persistent, plan->places_persistent_count, &memory->persistent);
    }
    fits = fits && tarn_size_round_up(memory->arena, memory->alignment, &begin) &&
           tarn_size_add(begin, memory->persistent, &memory->size);
    return fits ? TARN_OK
                : tarn_error_set(error, TARN_SYSTEM, "arena and persistent part exceed 64 bits");
}

static enum tarn_status refuse_alignment(const struct tarn_plan *plan, const char *device,
                                         uint64_t given, struct tarn_error *error)
{
    tarn_tensor tensor;
    uint64_t needed = alignment_needed(plan, &tensor);
    bool is_own = tensor != TARN_NONE;
    if (error && error->status == TARN_OK) error->tensor = tensor;
    return tarn_error_set(error, TARN_USAGE,
                          "%s needs an alignment of %llu bytes but device '%s' gives %llu: %s",
                          is_own ? tarn_tensor_label(plan->graph, tensor).text : "the plan",
                          (unsigned long long)needed, device, (unsigned long long)given,
                          is_own ? "give the tensor a smaller one" : "plan with a smaller one");
}

/* Is what the session needs within the device's limits? */
static enum tarn_status check_limits(const struct tarn_plan *plan, struct tarn_device device,
                                     const struct tarn_session_memory *memory,
                                     const struct tarn_memory_limits *limits,
                                     struct tarn_error *error)
{
    if (memory->alignment > limits->alignment)
        return refuse_alignment(plan, device.table->name, limits->alignment, error);
    if (memory->size <= limits->allocation_max) return TARN_OK;
    return tarn_error_set(
        error, TARN_SYSTEM,
        "device '%s' allocates %llu bytes at once at most; the session needs %llu (arena %llu, "
        "persistent part %llu): bind persistent tensors to memory of their own, or plan with a "
        "capacity or budget below that",
        device.table->name, (unsigned long long)limits->allocation_max,
        (unsigned long long)memory->size, (unsigned long long)memory->arena,
        (unsigned long long)memory->persistent);
}

static enum tarn_status ask_limits(struct tarn_device device, struct tarn_memory_limits *limits,
                                   struct tarn_error *error)
{
    memset(limits, 0, sizeof *limits);
    int code = device.table->memory_limits(device.self, limits);
    return code ? tarn_device_failed(device, "asking for the memory's limits", code, error)
                : TARN_OK;
}

enum tarn_status tarn_session_arena_check(const struct tarn_session_arena *arena,
                                          const struct tarn_session_memory *memory,
                                          struct tarn_error *error)
{
    struct tarn_memory_limits limits;
    enum tarn_status status = ask_limits(arena->device, &limits, error);
    if (status) return status;
    return check_limits(arena->plan, arena->device, memory, &limits, error);
}

enum tarn_status tarn_session_memory_size_sized(const struct tarn_plan *plan,
                                                struct tarn_device device,
                                                const struct tarn_session_options *options,
                                                struct tarn_session_memory *memory, size_t size,
                                                struct tarn_error *error)
{
    struct tarn_session_memory known = {0};
    struct tarn_session_options taken;
    struct tarn_session_arena ground = {.plan = plan, .device = device};
    tarn_error_clear(error);
    if (!plan || !memory) return tarn_error_set(error, TARN_USAGE, "null argument");
    enum tarn_status status =
        tarn_options_take(&taken, sizeof taken, options, "session options", error);
    if (!status) status = tarn_settings_check_device(device, error);
    if (!status) status = tarn_session_arena_measure(plan, taken.binds_persistent, &known, error);
    if (!status) status = tarn_session_arena_check(&ground, &known, error);
    tarn_struct_give(memory, size, &known, sizeof known);
    return status;
}

/* ---- The allocation ---- */

static enum tarn_status memory_refused(struct tarn_device device,
                                       const struct tarn_session_memory *memory, uint64_t available,
                                       int code, struct tarn_error *error)
{
    if (device.table->error_class(device.self, code) != TARN_ERROR_OUT_OF_MEMORY)
        return tarn_device_failed(device, "allocation of the arena", code, error);
    char text[64] = "";
    if (available != UINT64_MAX)
        snprintf(text, sizeof text, "; %llu are available", (unsigned long long)available);
    if (error && error->status == TARN_OK) error->device_code = code;
    return tarn_error_set(error, TARN_SYSTEM,
                          "device '%s' has no memory for this session: it needs %llu bytes (arena "
                          "%llu, persistent part %llu)%s",
                          device.table->name, (unsigned long long)memory->size,
                          (unsigned long long)memory->arena, (unsigned long long)memory->persistent,
                          text);
}

/* What the caller brings may be larger, not smaller. */
static enum tarn_status check_brought(const struct tarn_session_arena *arena,
                                      const struct tarn_session_memory *memory,
                                      const struct tarn_session_options *options,
                                      struct tarn_error *error)
{
    assert(options->memory);
    if (options->memory_size < memory->size)
        return tarn_error_set(error, TARN_USAGE,
                              "the memory brought is of %llu bytes; the session needs %llu (arena "
                              "%llu, persistent part %llu)",
                              (unsigned long long)options->memory_size,
                              (unsigned long long)memory->size, (unsigned long long)memory->arena,
                              (unsigned long long)memory->persistent);
    bool is_address = !arena->device.table->region_create;
    if (is_address && (uintptr_t)options->memory % memory->alignment != 0)
        return tarn_error_set(error, TARN_USAGE, "the memory brought must be aligned to %llu bytes",
                              (unsigned long long)memory->alignment);
    if (options->shares_memory && memory->persistent > 0)
        return tarn_error_set(error, TARN_USAGE,
                              "other sessions overwrite what is in shared memory: bind persistent "
                              "tensors to memory of their own");
    return TARN_OK;
}

static enum tarn_status borrow(struct tarn_session_arena *arena,
                               const struct tarn_session_memory *memory,
                               const struct tarn_session_options *options, struct tarn_error *error)
{
    if (memory->size == 0) return TARN_OK;
    enum tarn_status status = check_brought(arena, memory, options, error);
    if (status) return status;
    struct tarn_memory_use use = {.device = arena->device,
                                  .begin = (uintptr_t)options->memory,
                                  .size = memory->size,
                                  .on_host = arena->on_host,
                                  .is_shared = options->shares_memory};
    arena->use = use;
    status = tarn_memory_use_enter(&arena->use, error);
    if (status) {
        arena->use.size = 0;
        return status;
    }
    arena->memory = options->memory;
    arena->is_borrowed = true;
    return TARN_OK;
}

static enum tarn_status allocate(struct tarn_session_arena *arena,
                                 const struct tarn_session_memory *memory,
                                 const struct tarn_memory_limits *limits, struct tarn_error *error)
{
    const struct tarn_device *device = &arena->device;
    enum tarn_status status = check_limits(arena->plan, *device, memory, limits, error);
    if (status || memory->size == 0) return status;
    int code = device->table->memory_create(device->self, memory->size, &arena->memory);
    if (!code) return TARN_OK;
    arena->memory = NULL;
    return memory_refused(*device, memory, limits->available, code, error);
}

/* The host's system gives zeros; touching them here would be work for nothing. */
static enum tarn_status clear(const struct tarn_session_arena *arena, struct tarn_error *error)
{
    const struct tarn_device *device = &arena->device;
    bool is_clear = tarn_device_is_host(*device) && !arena->is_borrowed;
    if (is_clear || arena->size == 0) return TARN_OK;
    int code = device->table->fill(device->self, arena->memory, 0, arena->size);
    return code ? tarn_device_failed(*device, "filling the arena with zeros", code, error)
                : TARN_OK;
}

/* ---- Addresses ---- */

static const char *storage_name(const struct tarn_graph *graph, const struct tarn_storage *storage)
{
    return storage->tensor != TARN_NONE ? graph->tensors[storage->tensor].name
                                        : graph->ops[storage->producer].name;
}

static enum tarn_status place_storage(struct tarn_session_arena *arena, uint32_t a,
                                      struct tarn_error *error)
{
    const struct tarn_device *device = &arena->device;
    const struct tarn_storage *storage = &arena->plan->graph->storages[a];
    const struct tarn_place *place = tarn_plan_place(arena->plan, a);
    uint64_t begin = place->offset + (storage->persistent ? arena->persistent_begin : 0);
    if (device->table->memory_name)
        device->table->memory_name(device->self, arena->memory, begin, place->size,
                                   storage_name(arena->plan->graph, storage));
    arena->addresses[a] = (unsigned char *)arena->memory + begin;
    if (!device->table->region_create) return TARN_OK;
    int code = device->table->region_create(device->self, arena->memory, begin, place->size,
                                            &arena->addresses[a]);
    if (!code) arena->regions[a] = arena->addresses[a];
    if (!code) return TARN_OK;
    if (error && error->status == TARN_OK) error->tensor = storage->tensor;
    return tarn_device_failed(*device, "making a region of the arena", code, error);
}

static enum tarn_status place_storages(struct tarn_session_arena *arena, struct tarn_error *error)
{
    const struct tarn_graph *graph = arena->plan->graph;
    enum tarn_status status = TARN_OK;
    for (uint32_t a = 0; a < graph->storages_count && !status; a++) {
        if (graph->storages[a].persistent && arena->is_bound) continue;
        status = place_storage(arena, a, error);
    }
    return status;
}

/* The address of what the caller may bind may be its own. */
static bool storage_is_valid(const struct tarn_session_arena *arena, uint32_t a)
{
    const struct tarn_storage *storage = &arena->plan->graph->storages[a];
    const struct tarn_place *place = tarn_plan_place(arena->plan, a);
    uint64_t room =
        storage->persistent ? arena->size - arena->persistent_begin : arena->persistent_begin;
    if (storage->persistent && arena->is_bound) return true;
    if (place->offset > room || place->size > room - place->offset) return false;
    if (tarn_storage_is_bindable(storage)) return true;
    if (arena->regions) return arena->regions[a] && arena->regions[a] == arena->addresses[a];
    return arena->addresses[a] == (unsigned char *)arena->memory + place->offset;
}

bool tarn_session_arena_is_valid(const struct tarn_session_arena *arena)
{
    if (arena->persistent_begin > arena->size || (arena->size > 0) != (arena->memory != NULL))
        return false;
    for (uint32_t a = 0; a < arena->plan->graph->storages_count; a++) {
        if (!storage_is_valid(arena, a)) return false;
    }
    return true;
}

tarn_tensor tarn_session_arena_unbound(const struct tarn_session_arena *arena)
{
    const struct tarn_graph *graph = arena->plan->graph;
    for (uint32_t a = graph->planned_count; a < graph->storages_count; a++) {
        if (!arena->addresses[a]) return graph->storages[a].tensor;
    }
    return TARN_NONE;
}

enum tarn_status tarn_session_arena_check_bind(const struct tarn_session_arena *arena,
                                               tarn_tensor tensor, const void *address,
                                               struct tarn_error *error)
{
    const struct tarn_graph *graph = arena->plan->graph;
    assert(tensor < graph->tensors_count && address);
    uint32_t a = graph->tensors[tensor].storage;
    uint64_t alignment = graph->tensors[graph->tensors[tensor].root].alignment;
    if (!tarn_storage_is_bindable(&graph->storages[a]))
        return tarn_error_set(error, TARN_USAGE,
                              "%s is planned: only persistent tensors and outputs can be bound to "
                              "memory",
                              tarn_tensor_label(graph, tensor).text);
    bool is_address = !arena->device.table->region_create;
    if (is_address && alignment > 1 && (uintptr_t)address % alignment != 0)
        return tarn_error_set(error, TARN_USAGE, "%s must be aligned to %llu bytes",
                              tarn_tensor_label(graph, tensor).text, (unsigned long long)alignment);
    return TARN_OK;
}

/* ---- Life ---- */

enum tarn_status tarn_session_arena_obtain(struct tarn_session_arena *arena,
                                           const struct tarn_session_memory *memory,
                                           const struct tarn_session_options *options,
                                           struct tarn_error *error)
{
    struct tarn_memory_limits limits;
    enum tarn_status status = ask_limits(arena->device, &limits, error);
    if (status) return status;
    arena->size = memory->size;
    arena->persistent_begin = memory->size - memory->persistent;
    arena->on_host = limits.on_host;
    status = options->memory ? borrow(arena, memory, options, error)
                             : allocate(arena, memory, &limits, error);
    return status ? status : clear(arena, error);
}

/* The memory is the shared arena's, which has filled it. */
static void join(struct tarn_session_arena *arena, const struct tarn_session_arena *ground)
{
    arena->memory = ground->memory;
    arena->size = ground->size;
    arena->persistent_begin = ground->persistent_begin;
    arena->on_host = ground->on_host;
    arena->is_bound = ground->is_bound;
    arena->is_borrowed = true;
}

enum tarn_status tarn_session_arena_init(struct tarn_session_arena *arena,
                                         struct tarn_region *region, const struct tarn_plan *plan,
                                         struct tarn_device device,
                                         const struct tarn_session_options *options,
                                         struct tarn_error *error)
{
    struct tarn_session_memory memory;
    uint32_t storages = plan->graph->storages_count;
    *arena = (struct tarn_session_arena){
        .plan = plan, .device = device, .is_bound = options->binds_persistent};
    arena->addresses = tarn_region_take(region, storages, sizeof *arena->addresses);
    if (device.table->region_create)
        arena->regions = tarn_region_take(region, storages, sizeof *arena->regions);
    if (region->is_exhausted) return tarn_error_no_memory(error);
    enum tarn_status status = TARN_OK;
    if (options->arena)
        join(arena, &options->arena->ground);
    else
        status = tarn_session_arena_measure(plan, arena->is_bound, &memory, error);
    if (!status && !options->arena)
        status = tarn_session_arena_obtain(arena, &memory, options, error);
    if (!status) status = place_storages(arena, error);
    if (!status) tarn_memory_use_end(&arena->use);
    assert(status || tarn_session_arena_is_valid(arena));
    return status;
}

void tarn_session_arena_finish(struct tarn_session_arena *arena)
{
    uint32_t storages = arena->plan ? arena->plan->graph->storages_count : 0;
    for (uint32_t a = 0; a < storages && arena->regions; a++)
        if (arena->regions[a])
            arena->device.table->region_destroy(arena->device.self, arena->regions[a]);
    if (arena->memory && !arena->is_borrowed)
        arena->device.table->memory_destroy(arena->device.self, arena->memory, arena->size);
    tarn_memory_use_leave(&arena->use);
    memset(arena, 0, sizeof *arena);
}
