/* Puts ops that free at least as many bytes as they make as early as they can be. Between ops no
 * more bytes are alive for that; while such an op runs there may be. What it reads is held for a
 * shorter time. An order that keeps everything need not care: its peak is elsewhere. Where results
 * of the forward pass are computed again, gradients that wait for the ops that read them last would
 * be the peak. */
#include "release.h"

#include "list_model.h"
#include "recipe.h"
#include "streams/base/error.h"
#include "streams/order/reserved.h"

struct releasing {
    struct tarn_region region;
    struct tarn_reorder_model model;
    struct tarn_reorder_state state;
    bool *has_run;
    uint32_t *order, *list;
    uint32_t count; /* nodes in `order`: those that have run */
};

static enum tarn_status init(struct releasing *in, const struct tarn_graph *graph,
                             uint64_t alignment, struct tarn_error *error)
{
    const uint64_t *reserved;
    enum tarn_status status = tarn_reserved_sizes(&reserved, &in->region, graph, alignment, error);
    if (status != TARN_OK) return status;
    status = tarn_reorder_model_init(&in->model, &in->region, graph, reserved);
    if (status == TARN_OK) status = tarn_reorder_state_init(&in->state, &in->region, &in->model);
    in->has_run = tarn_region_take(&in->region, in->model.nodes_count, sizeof *in->has_run);
    in->order = tarn_region_take(&in->region, in->model.nodes_count, sizeof *in->order);
    in->list = tarn_region_take(&in->region, graph->ops_count, sizeof *in->list);
    if (status != TARN_OK || in->region.is_exhausted) return tarn_error_no_memory(error);
    tarn_reorder_state_reset(&in->state);
    return TARN_OK;
}

static void run(struct releasing *in, uint32_t v)
{
    tarn_reorder_run(&in->state, v);
    in->has_run[v] = true;
    in->order[in->count++] = v;
}

static void run_if_it_frees(struct releasing *in, uint32_t v)
{
    if (!in->has_run[v] && in->state.pending[v] == 0 && in->state.freed[v] >= in->model.made[v] &&
        in->state.freed[v] > 0)
        run(in, v);
}

/* Runs what a node has made ready, or has made the last user of something. */
static void run_after(struct releasing *in, uint32_t v)
{
    const struct tarn_reorder_model *model = &in->model;
    for (uint32_t i = model->successors.begin[v]; i < model->successors.begin[v + 1]; i++)
        run_if_it_frees(in, model->successors.ops[i]);
    for (uint32_t i = model->touched.begin[v]; i < model->touched.begin[v + 1]; i++) {
        uint32_t a = model->touched.ops[i];
        if (in->state.left[a] == 1) run_if_it_frees(in, in->state.last[a]);
    }
}

enum tarn_status tarn_graph_release_early(struct tarn_graph *graph, uint64_t alignment,
                                          struct tarn_graph **result, struct tarn_error *error)
{
    struct releasing in = {.count = 0};
    *result = NULL;
    enum tarn_status status = init(&in, graph, alignment, error);
    for (uint32_t v = 0, looked = 0; status == TARN_OK && v < in.model.nodes_count; v++) {
        if (!in.has_run[v]) run(&in, v);
        while (looked < in.count) run_after(&in, in.order[looked++]);
    }
    if (status == TARN_OK) status = tarn_reorder_list(&in.model, in.order, in.list);
    if (status == TARN_SYSTEM) tarn_error_no_memory(error);
    if (status == TARN_OK) {
        const struct tarn_recipe recipe = {.graph = graph, .order = in.list};
        status = tarn_recipe_build(&recipe, result, error);
    }
    tarn_region_finish(&in.region);
    if (status == TARN_OK && *result == graph) {
        tarn_graph_destroy(*result);
        *result = NULL;
    }
    return status;
}
