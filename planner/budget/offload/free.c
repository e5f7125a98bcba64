/* Moves without a budget: those for which no op waits. Cost: a few searches for such moves, and a
 * placement if there is a capacity. */
#include "offloading.h"
#include "streams/base/checked.h"
#include "streams/base/error.h"

/* Builds the graph with the moves. *result stays NULL if it takes longer than without them. */
static enum tarn_status build_if_free(const struct tarn_offloading *offloading,
                                      const struct tarn_offload_model *model,
                                      const struct tarn_offload_choice *choice,
                                      struct tarn_graph **result)
{
    struct tarn_graph *moved;
    uint64_t time_ns = 0;
    if (choice->count == 0) return TARN_OK;
    enum tarn_status status = tarn_offload_build(model, choice, &moved, offloading->error);
    if (status != TARN_OK) return status;
    status = tarn_offloading_time(offloading, moved, &time_ns);
    if (status == TARN_OK && time_ns <= offloading->before_ns)
        *result = moved;
    else
        tarn_graph_destroy(moved);
    return status == TARN_OK ? TARN_OK : tarn_error_no_memory(offloading->error);
}

/* Of these kinds of storages, with earlier copies back and later releases and, else, without. */
static enum tarn_status move_free_of(const struct tarn_offloading *offloading, unsigned kinds,
                                     struct tarn_graph **result)
{
    struct tarn_region region = {.chunks = NULL};
    struct tarn_offload_terms terms = offloading->terms;
    struct tarn_offload_model model;
    struct tarn_offload_choice choice = {0};
    terms.kinds = kinds;
    enum tarn_status status =
        tarn_offload_model_init(&model, &region, offloading->graph, &terms, offloading->error);
    if (status == TARN_OK &&
        tarn_offload_free(&model, 0, &offloading->deadline, &choice) != TARN_OK)
        status = tarn_error_no_memory(offloading->error);
    for (int relaxes = 1; relaxes >= 0 && status == TARN_OK && !*result; relaxes--) {
        struct tarn_offload_choice tried = choice;
        tried.arcs = tarn_region_copy(&region, choice.arcs, choice.count, sizeof *choice.arcs);
        if (!tried.arcs || (relaxes && tarn_offload_relax(&model, choice.peak, &tried) != TARN_OK))
            status = tarn_error_no_memory(offloading->error);
        if (status == TARN_OK) status = build_if_free(offloading, &model, &tried, result);
    }
    tarn_region_finish(&region);
    return status;
}

enum tarn_status tarn_offloading_move_free(struct tarn_offloading *offloading,
                                           struct tarn_graph **result)
{
    unsigned all = offloading->terms.kinds, activations = all & TARN_OFFLOAD_ACTIVATIONS;
    enum tarn_status status = move_free_of(offloading, all, result);
    if (status == TARN_OK && !*result && activations > 0 && activations != all)
        status = move_free_of(offloading, activations, result);
    if (status == TARN_OK && !*result) *result = tarn_graph_retain(offloading->graph);
    return status;
}

enum tarn_status tarn_offloading_fits(const struct tarn_offloading *offloading,
                                      struct tarn_graph *graph, bool *fits)
{
    struct tarn_offloading within = *offloading;
    uint64_t capacity = offloading->planning->capacity, missing;
    struct tarn_plan *plan;
    *fits = true;
    if (capacity == 0 && !(graph->spaces_count > 0 && graph->spaces[0].capacity > 0))
        return TARN_OK;
    enum tarn_status status = tarn_offloading_plan_quickly(offloading, graph, &plan);
    if (status != TARN_OK) return status;
    within.bytes = tarn_smaller(capacity > 0 ? capacity : UINT64_MAX, tarn_budgeting_room(plan, 0));
    *fits = tarn_plan_footprint(plan) <= within.bytes;
    tarn_plan_destroy(plan);
    if (*fits) return TARN_OK;
    status = tarn_offloading_place(&within, graph, &plan, &missing);
    *fits = plan != NULL;
    tarn_plan_destroy(plan);
    return status;
}
