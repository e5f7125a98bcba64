/* Postpones nodes. A node frees nothing if every storage that it reads has a later user. Such a
 * node can run right before the first node that waits for it, or right before the last other user
 * of one of those storages, whichever comes first. Then its results are alive for a shorter time,
 * and nothing else changes. Nodes are visited from the end of the order to its start, so that whole
 * chains move. This is the fusion of ops that only feed one successor, without fixing it
 * permanently. Cost: linear. */
#include "greedy.h"

#include <assert.h>
#include <string.h>

enum tarn_status tarn_reorder_postpone_init(struct tarn_reorder_postpone *postpone,
                                            struct tarn_region *region,
                                            const struct tarn_reorder_model *model)
{
    size_t nodes = model->nodes_count;
    *postpone = (struct tarn_reorder_postpone){
        .model = model,
        .place = tarn_region_take(region, nodes, sizeof *postpone->place),
        .latest = tarn_region_take(region, model->storages_count, sizeof *postpone->latest),
        .begin = tarn_region_take(region, nodes + 2, sizeof *postpone->begin),
    };
    return region->is_exhausted ? TARN_SYSTEM : TARN_OK;
}

/* The last place before which v, which is at `place`, can run without a higher step. */
static uint32_t find_place(const struct tarn_reorder_postpone *postpone, uint32_t v, uint32_t place)
{
    const struct tarn_reorder_model *model = postpone->model;
    uint32_t latest = TARN_NONE;
    for (uint32_t i = model->touched.begin[v]; i < model->touched.begin[v + 1]; i++) {
        uint32_t a = model->touched.ops[i];
        if (model->pinned[a]) continue;
        if (postpone->latest[a] == TARN_NONE) return place; /* frees it */
        if (model->producer[a] != v && postpone->latest[a] < latest) latest = postpone->latest[a];
    }
    for (uint32_t i = model->successors.begin[v]; i < model->successors.begin[v + 1]; i++) {
        uint32_t w = model->successors.ops[i];
        if (postpone->place[w] < latest) latest = postpone->place[w];
    }
    return latest == TARN_NONE ? place : latest;
}

static void choose_places(struct tarn_reorder_postpone *postpone, const uint32_t *order)
{
    const struct tarn_reorder_model *model = postpone->model;
    for (uint32_t a = 0; a < model->storages_count; a++) postpone->latest[a] = TARN_NONE;
    for (uint32_t i = model->nodes_count; i-- > 0;) {
        uint32_t v = order[i], place = find_place(postpone, v, i);
        postpone->place[v] = place;
        for (uint32_t k = model->touched.begin[v]; k < model->touched.begin[v + 1]; k++) {
            uint32_t *latest = &postpone->latest[model->touched.ops[k]];
            if (*latest == TARN_NONE || *latest < place) *latest = place;
        }
    }
}

void tarn_reorder_postpone_run(struct tarn_reorder_postpone *postpone, const uint32_t *order,
                               uint32_t *result)
{
    uint32_t count = postpone->model->nodes_count, *begin = postpone->begin;
    assert(result != order);
    choose_places(postpone, order);
    memset(begin, 0, ((size_t)count + 2) * sizeof *begin);
    for (uint32_t i = 0; i < count; i++) begin[postpone->place[i] + 1]++;
    for (uint32_t i = 0; i < count; i++) begin[i + 1] += begin[i];
    for (uint32_t i = 0; i < count; i++) result[begin[postpone->place[order[i]]]++] = order[i];
}
