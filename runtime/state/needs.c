/* Computes the memory that plans need in each memory space: the arena, then the persistent part, in
 * one allocation.
 * Cost: linear in storages and tensors. */
#include <stdio.h>

#include "failure.h"
#include "plan_memory.h"
#include "streams/base/checked.h"
#include "streams/graph/report.h"
#include "streams/plan/switch.h"

struct tarn_space_label tarn_space_label(const struct tarn_graph *graph, uint32_t space)
{
    struct tarn_space_label label = {""};
    if (graph->spaces_count > 1)
        snprintf(label.text, sizeof label.text, " in memory space %u %s", space,
                 tarn_quote(graph->spaces[space].name).text);
    return label;
}

/* Offsets are multiples of the plan's, the space's or the tensor's own alignment; so must their
 * base be. *tensor: the tensor with that alignment; TARN_NONE: it is the plan's or the space's. */
static uint64_t alignment_needed(const struct tarn_plan *plan, uint32_t space, tarn_tensor *tensor)
{
    const struct tarn_graph *graph = plan->graph;
    uint64_t needed = tarn_space_alignment(graph, space, plan->alignment);
    *tensor = TARN_NONE;
    for (uint32_t t = 0; t < graph->tensors_count; t++) {
        if (graph->tensors[t].space != space || graph->tensors[t].alignment <= needed) continue;
        needed = graph->tensors[t].alignment;
        *tensor = t;
    }
    return needed;
}

/* The maximum of the end of the space's last storage and the plan's footprint: an unverified plan
 * may state a smaller footprint than it uses, and must then corrupt only its own arena. */
static bool find_ends(const struct tarn_plan *plan, uint32_t space, bool is_bound,
                      struct tarn_memory_needs *needs)
{
    const struct tarn_graph *graph = plan->graph;
    for (uint32_t a = 0; a < graph->storages_count; a++) {
        const struct tarn_storage *storage = &graph->storages[a];
        const struct tarn_place *place = tarn_plan_place(plan, a);
        uint64_t end, begin = tarn_plan_space_begin(plan, space, storage->persistent);
        if (storage->space != space || (storage->persistent && is_bound)) continue;
        if (!tarn_size_add(place->offset - begin, place->size, &end)) return false;
        uint64_t *least = storage->persistent ? &needs->persistent : &needs->arena;
        if (end > *least) *least = end;
    }
    return true;
}

static enum tarn_status add_up(struct tarn_memory_needs *needs, struct tarn_error *error)
{
    uint64_t begin;
    if (tarn_size_round_up(needs->arena, needs->alignment, &begin) &&
        tarn_size_add(begin, needs->persistent, &needs->size))
        return TARN_OK;
    return tarn_error_set(error, TARN_SYSTEM, "arena and persistent part exceed 64 bits");
}

enum tarn_status tarn_needs_measure(struct tarn_needs_by_space *by_space,
                                    const struct tarn_plan *plan, bool is_bound,
                                    struct tarn_error *error)
{
    enum tarn_status status = TARN_OK;
    by_space->count = tarn_graph_spaces_count(plan->graph);
    for (uint32_t s = 0; s < by_space->count && status == TARN_OK; s++) {
        struct tarn_memory_needs *needs = &by_space->of[s];
        tarn_tensor tensor;
        struct tarn_plan_space_summary made;
        tarn_plan_space(plan, s, &made);
        *needs = (struct tarn_memory_needs){
            .alignment = alignment_needed(plan, s, &tensor),
            .arena = made.footprint,
            .persistent = is_bound ? 0 : made.persistent,
        };
        by_space->strictest[s] = plan;
        if (!find_ends(plan, s, is_bound, needs)) needs->arena = UINT64_MAX;
        status = add_up(needs, error);
    }
    return status;
}

enum tarn_status tarn_needs_join(struct tarn_needs_by_space *by_space,
                                 const struct tarn_needs_by_space *more, struct tarn_error *error)
{
    enum tarn_status status =
        tarn_switch_check_spaces(by_space->strictest[0]->graph, more->strictest[0]->graph, error);
    for (uint32_t s = 0; s < by_space->count && status == TARN_OK; s++) {
        struct tarn_memory_needs *needs = &by_space->of[s];
        const struct tarn_memory_needs *other = &more->of[s];
        if (other->alignment > needs->alignment) {
            needs->alignment = other->alignment;
            by_space->strictest[s] = more->strictest[s];
        }
        if (other->arena > needs->arena) needs->arena = other->arena;
        if (other->persistent > needs->persistent) needs->persistent = other->persistent;
        status = add_up(needs, error);
    }
    return status;
}

static enum tarn_status refuse_alignment(const struct tarn_plan *plan, uint32_t space,
                                         const char *device, uint64_t given,
                                         struct tarn_error *error)
{
    tarn_tensor tensor;
    uint64_t needed = alignment_needed(plan, space, &tensor);
    bool is_own = tensor != TARN_NONE;
    if (error && error->status == TARN_OK) error->tensor = tensor;
    return tarn_error_set(error, TARN_USAGE,
                          "%s needs an alignment of %s but device '%s' gives %llu%s: %s",
                          is_own ? tarn_tensor_label(plan->graph, tensor).text : "the plan",
                          tarn_bytes_phrase(needed).text, device, (unsigned long long)given,
                          tarn_space_label(plan->graph, space).text,
                          is_own ? "give the tensor a smaller one" : "plan with a smaller one");
}

enum tarn_status tarn_needs_check(const struct tarn_needs_by_space *by_space, uint32_t space,
                                  struct tarn_device device,
                                  const struct tarn_memory_limits *limits, struct tarn_error *error)
{
    const struct tarn_memory_needs *needs = &by_space->of[space];
    const struct tarn_plan *plan = by_space->strictest[space];
    if (needs->alignment > limits->alignment)
        return refuse_alignment(plan, space, tarn_device_name(device.table), limits->alignment,
                                error);
    if (needs->size <= limits->allocation_max) return TARN_OK;
    return tarn_error_set(
        error, TARN_SYSTEM,
        "device '%s' allocates %s at once at most%s; the session needs %llu (arena %llu, "
        "persistent part %llu): bind persistent tensors to memory of their own, or plan with a "
        "capacity or budget below that",
        tarn_device_name(device.table), tarn_bytes_phrase(limits->allocation_max).text,
        tarn_space_label(plan->graph, space).text, (unsigned long long)needs->size,
        (unsigned long long)needs->arena, (unsigned long long)needs->persistent);
}
