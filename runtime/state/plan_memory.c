/* Finds the address of every storage. There is one allocation per memory space, and most graphs
 * have one space:
 *
 *     memory:  [ arena: planned storages ][ persistent part ]
 *
 * Every storage has one address, found once: an address inside its space's allocation, a region if
 * the device has no such addresses, or for persistent storages memory that the caller binds.
 * Cost: O(storages). */
#include "plan_memory.h"

#include <assert.h>
#include <string.h>

#include "arena.h"
#include "failure.h"
#include "rebind.h"
#include "settings.h"
#include "streams/base/options.h"
#include "streams/graph/report.h"

#define BOUND_ALIGNMENT 16u /* alignment of malloc */

/* ---- Addresses ---- */

static const char *storage_name(const struct tarn_graph *graph, const struct tarn_storage *storage)
{
    return storage->tensor != TARN_NONE ? graph->tensors[storage->tensor].name
                                        : graph->ops[storage->producer].name;
}

static enum tarn_status place_storage(struct tarn_plan_memory *memory, uint32_t a,
                                      struct tarn_error *error)
{
    const struct tarn_device *device = &memory->device;
    const struct tarn_storage *storage = &memory->plan->graph->storages[a];
    const struct tarn_memory_part *part = &memory->parts[storage->space];
    uint64_t size = tarn_plan_place(memory->plan, a)->size;
    uint64_t begin = tarn_plan_offset_in_space(memory->plan, a) +
                     (storage->persistent ? part->persistent_begin : 0);
    if (device->table->memory_name)
        device->table->memory_name(device->self, part->memory, begin, size,
                                   storage_name(memory->plan->graph, storage));
    memory->addresses[a] = (unsigned char *)part->memory + begin;
    if (!device->table->region_create) return TARN_OK;
    int code = device->table->region_create(device->self, part->memory, begin, size,
                                            &memory->addresses[a]);
    if (!code) memory->regions[a] = memory->addresses[a];
    if (!code) return TARN_OK;
    if (error && error->status == TARN_OK) error->tensor = storage->tensor;
    return tarn_device_status(*device, "making a region of the arena", code, error);
}

static enum tarn_status place_storages(struct tarn_plan_memory *memory, struct tarn_error *error)
{
    const struct tarn_graph *graph = memory->plan->graph;
    enum tarn_status status = TARN_OK;
    for (uint32_t a = 0; a < graph->storages_count && memory->device.table->region_create; a++) {
        if (graph->storages[a].parts_count < 2) continue;
        return tarn_error_set(
            error, TARN_USAGE,
            "device '%s' has no addresses inside its memory, and slices of %s are "
            "used by themselves: give each slice a storage of its own",
            tarn_device_name(memory->device.table), tarn_storage_label(graph, a).text);
    }
    for (uint32_t a = 0; a < graph->storages_count && status == TARN_OK; a++) {
        if (graph->storages[a].persistent && memory->is_bound) continue;
        status = place_storage(memory, a, error);
    }
    return status;
}

/* A storage that the caller may bind may have any address. */
static bool storage_is_valid(const struct tarn_plan_memory *memory, uint32_t a)
{
    const struct tarn_storage *storage = &memory->plan->graph->storages[a];
    const struct tarn_memory_part *part = &memory->parts[storage->space];
    uint64_t offset = tarn_plan_offset_in_space(memory->plan, a),
             size = tarn_plan_place(memory->plan, a)->size;
    uint64_t room =
        storage->persistent ? part->needs.size - part->persistent_begin : part->persistent_begin;
    if (storage->persistent && memory->is_bound) return true;
    if (offset > room || size > room - offset) return false;
    if (tarn_storage_is_bindable(storage)) return true;
    if (memory->regions) return memory->regions[a] && memory->regions[a] == memory->addresses[a];
    return memory->addresses[a] == (unsigned char *)part->memory + offset;
}

bool tarn_plan_memory_is_valid(const struct tarn_plan_memory *memory)
{
    for (uint32_t s = 0; s < memory->parts_count; s++) {
        const struct tarn_memory_part *part = &memory->parts[s];
        if (part->persistent_begin > part->needs.size ||
            (part->needs.size > 0) != (part->memory != NULL))
            return false;
    }
    for (uint32_t a = 0; a < memory->plan->graph->storages_count; a++) {
        if (!storage_is_valid(memory, a)) return false;
    }
    return true;
}

tarn_tensor tarn_plan_memory_unbound(const struct tarn_plan_memory *memory)
{
    const struct tarn_graph *graph = memory->plan->graph;
    for (uint32_t a = graph->planned_count; a < graph->storages_count; a++) {
        if (!memory->addresses[a] && graph->storages[a].size > 0) return graph->storages[a].tensor;
    }
    return TARN_NONE;
}

/* The required alignment of the caller's address: the tensor's own alignment. Without one, the
 * minimum of the plan's alignment, the tensor's element size and the alignment of common
 * allocators. An element has at most as many bytes as the largest power of two that divides the
 * tensor's size. */
static uint64_t bound_alignment(const struct tarn_plan *plan, tarn_tensor tensor)
{
    const struct tarn_graph *graph = plan->graph;
    const struct tarn_graph_tensor *root = &graph->tensors[graph->tensors[tensor].root];
    uint32_t space = graph->storages[root->storage].space;
    uint64_t alignment = tarn_space_alignment(graph, space, plan->alignment);
    uint64_t element = root->size & -root->size;
    if (root->alignment > 0) return root->alignment;
    if (alignment > BOUND_ALIGNMENT) alignment = BOUND_ALIGNMENT;
    return element > 0 && element < alignment ? element : alignment;
}

enum tarn_status tarn_plan_memory_check_bind(const struct tarn_plan_memory *memory,
                                             tarn_tensor tensor, const void *address,
                                             struct tarn_error *error)
{
    const struct tarn_graph *graph = memory->plan->graph;
    assert(tensor < graph->tensors_count && address);
    uint32_t a = graph->tensors[tensor].storage;
    uint64_t alignment = bound_alignment(memory->plan, tensor);
    if (!tarn_storage_is_bindable(&graph->storages[a]))
        return tarn_error_set(error, TARN_USAGE,
                              "%s is planned: only persistent tensors and outputs can be bound to "
                              "memory",
                              tarn_tensor_label(graph, tensor).text);
    bool is_address = !memory->device.table->region_create;
    if (is_address && alignment > 1 && (uintptr_t)address % alignment != 0)
        return tarn_error_set(error, TARN_USAGE,
                              "%s must be aligned to %s, and %p is not: bind it elsewhere, "
                              "or build the graph with an alignment of the tensor's own",
                              tarn_tensor_label(graph, tensor).text,
                              tarn_bytes_phrase(alignment).text, address);
    return TARN_OK;
}

/* ---- What it needs ---- */

enum tarn_status tarn_needs_report(const struct tarn_needs_by_space *by_space, uint32_t space,
                                   struct tarn_device device, struct tarn_memory_needs *needs,
                                   struct tarn_error *error)
{
    struct tarn_memory_limits limits;
    if (space >= by_space->count)
        return tarn_error_set(error, TARN_USAGE, "memory space %u does not exist; the graph has %u",
                              space, by_space->count);
    *needs = by_space->of[space];
    enum tarn_status status =
        tarn_space_limits(device, by_space->strictest[space]->graph, space, &limits, error);
    return status != TARN_OK ? status : tarn_needs_check(by_space, space, device, &limits, error);
}

enum tarn_status tarn_session_needs_sized(const struct tarn_plan *plan, struct tarn_device device,
                                          const struct tarn_session_options *options,
                                          tarn_space space, struct tarn_memory_needs *needs,
                                          size_t size, struct tarn_error *error)
{
    struct tarn_session_options taken;
    struct tarn_memory_needs known = {0};
    struct tarn_needs_by_space by_space;
    tarn_error_clear(error);
    if (!plan || !needs) return tarn_error_set(error, TARN_USAGE, "null argument");
    enum tarn_status status =
        tarn_options_take(&taken, sizeof taken, options, "session options", error);
    if (status == TARN_OK) status = tarn_settings_check_device(device, error);
    if (status == TARN_OK)
        status = tarn_needs_measure(&by_space, plan, taken.binds_persistent, error);
    if (status == TARN_OK) status = tarn_needs_report(&by_space, space, device, &known, error);
    tarn_struct_give(needs, size, &known, sizeof known);
    return status;
}

/* ---- Life ---- */

/* The shared arena owns the memory and has filled it. */
static enum tarn_status join(struct tarn_plan_memory *memory, struct tarn_region *region,
                             const struct tarn_plan_memory *shared, struct tarn_error *error)
{
    memory->parts = tarn_region_take(region, shared->parts_count, sizeof *memory->parts);
    if (!memory->parts) return tarn_error_no_memory(error);
    memory->parts_count = shared->parts_count;
    for (uint32_t s = 0; s < shared->parts_count; s++)
        memory->parts[s] =
            (struct tarn_memory_part){.memory = shared->parts[s].memory,
                                      .needs = shared->parts[s].needs,
                                      .persistent_begin = shared->parts[s].persistent_begin,
                                      .is_borrowed = true};
    memory->on_host = shared->on_host;
    memory->is_bound = shared->is_bound;
    return TARN_OK;
}

static enum tarn_status take_memory(struct tarn_plan_memory *memory, struct tarn_region *region,
                                    const struct tarn_session_options *options,
                                    struct tarn_error *error)
{
    struct tarn_needs_by_space by_space;
    if (options->arena) return join(memory, region, &options->arena->memory, error);
    enum tarn_status status = tarn_needs_measure(&by_space, memory->plan, memory->is_bound, error);
    return status != TARN_OK ? status
                             : tarn_plan_memory_obtain(memory, region, &by_space, options, error);
}

enum tarn_status tarn_plan_memory_init(struct tarn_plan_memory *memory, struct tarn_region *region,
                                       const struct tarn_plan *plan, struct tarn_device device,
                                       const struct tarn_session_options *options,
                                       struct tarn_error *error)
{
    uint32_t storages = plan->graph->storages_count;
    *memory = (struct tarn_plan_memory){
        .plan = plan, .device = device, .is_bound = options->binds_persistent};
    memory->addresses = tarn_region_take(region, storages, sizeof *memory->addresses);
    if (device.table->region_create)
        memory->regions = tarn_region_take(region, storages, sizeof *memory->regions);
    if (region->is_exhausted) return tarn_error_no_memory(error);
    enum tarn_status status = take_memory(memory, region, options, error);
    if (status == TARN_OK) status = place_storages(memory, error);
    if (status == TARN_OK)
        status = tarn_windows_enter(memory, region, options->registrars, options->registrars_count,
                                    &plan->window, error);
    assert(status || tarn_plan_memory_is_valid(memory));
    return status;
}

void tarn_plan_memory_finish(struct tarn_plan_memory *memory)
{
    uint32_t storages = memory->plan ? memory->plan->graph->storages_count : 0;
    for (uint32_t a = 0; a < storages && memory->regions; a++)
        if (memory->regions[a])
            memory->device.table->region_destroy(memory->device.self, memory->regions[a]);
    tarn_windows_leave(memory);
    tarn_plan_memory_give_back(memory);
    memset(memory, 0, sizeof *memory);
}
