/* Every storage on its own, one after another, in the order of ids. Storages start at multiples of
 * the largest alignment that any tensor asks for. Groups are not kept back to back: no kernel of
 * the tests looks beyond its tensors. */
#include "unshared_plan.h"

#include <assert.h>

/* Of one space; its size. */
static uint64_t place_all(struct tarn_plan *plan, uint32_t space, bool persistent, uint64_t step)
{
    const struct tarn_graph *graph = plan->graph;
    uint64_t offset = 0;
    for (uint32_t a = 0; a < graph->storages_count; a++) {
        if (graph->storages[a].space != space || graph->storages[a].persistent != persistent)
            continue;
        struct tarn_place *place = (struct tarn_place *)tarn_plan_place(plan, a);
        place->offset = offset + tarn_plan_space_begin(plan, space, persistent);
        offset += (place->size + step - 1) & ~(step - 1);
    }
    return offset;
}

static uint64_t largest_alignment(const struct tarn_graph *graph, uint64_t alignment)
{
    for (uint32_t t = 0; t < graph->tensors_count; t++)
        if (graph->tensors[t].alignment > alignment) alignment = graph->tensors[t].alignment;
    for (uint32_t s = 0; s < graph->spaces_count; s++)
        if (graph->spaces[s].alignment > alignment) alignment = graph->spaces[s].alignment;
    return alignment;
}

/* Places by the begins of spaces that are known so far; all sizes. */
static void place_spaces(struct tarn_plan *plan, uint64_t step)
{
    for (uint32_t s = 0; s < plan->spaces_count; s++) {
        plan->spaces[s].footprint = place_all(plan, s, false, step);
        plan->spaces[s].persistent = place_all(plan, s, true, step);
    }
    bool fits = tarn_plan_stack_spaces(plan);
    assert(fits);
    (void)fits;
}

struct tarn_plan *unshared_plan(struct tarn_graph *graph, uint64_t alignment)
{
    struct tarn_plan *plan = tarn_plan_of_graph(graph);
    assert(plan);
    plan->alignment = alignment;
    uint64_t step = largest_alignment(graph, alignment);
    if (graph->spaces_count == 0) {
        plan->footprint = place_all(plan, 0, false, step);
        plan->persistent = place_all(plan, 0, true, step);
        return plan;
    }
    plan->spaces_count = graph->spaces_count;
    plan->spaces = tarn_region_take(&plan->region, plan->spaces_count, sizeof *plan->spaces);
    assert(plan->spaces);
    place_spaces(plan, step);
    place_spaces(plan, step); /* now that it is known where each begins */
    return plan;
}
