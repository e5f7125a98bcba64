/* Which stream every node runs in: made and checked. Cost: linear. */

#include "assign.h"

enum tarn_status tarn_assignment_init(struct tarn_assignment *assignment,
                                      struct tarn_region *region,
                                      const struct tarn_reorder_model *model)
{
    *assignment = (struct tarn_assignment){
        .stream = tarn_region_take(region, model->nodes_count, sizeof *assignment->stream),
        .order = tarn_region_take(region, model->nodes_count, sizeof *assignment->order),
    };
    return region->is_exhausted ? TARN_SYSTEM : TARN_OK;
}

/* place: node -> 1 + its place in the order; 0: no place yet. */
static bool is_legal(const struct tarn_assignment *assignment,
                     const struct tarn_reorder_model *model, uint32_t *place)
{
    const struct tarn_arcs *before = &model->predecessors;
    for (uint32_t i = 0; i < model->nodes_count; i++) {
        uint32_t v = assignment->order[i];
        if (v >= model->nodes_count || place[v] != 0) return false;
        if (assignment->stream[v] >= assignment->streams_count) return false;
        for (uint32_t k = before->begin[v]; k < before->begin[v + 1]; k++)
            if (place[before->ops[k]] == 0) return false;
        place[v] = i + 1;
    }
    return true;
}

bool tarn_assignment_is_valid(const struct tarn_assignment *assignment,
                              const struct tarn_reorder_model *model)
{
    struct tarn_region region = {.chunks = NULL};
    uint32_t *place = tarn_region_take(&region, model->nodes_count, sizeof *place);
    bool is_valid = !place || is_legal(assignment, model, place);
    tarn_region_finish(&region);
    return is_valid;
}
