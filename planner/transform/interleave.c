/* Finds another list for the ops of several streams. The given list is one of many, and a stream
 * that only frees storages, for example one that updates parameters, may be listed after all other
 * streams. Of the ops that are next in their streams and have nothing to wait for, the next op is
 * the one that adds the fewest bytes alive; of equal ones the one listed first. Cost: ops ×
 * streams. */
#include "interleave.h"

#include "planner/transform/recipe.h"
#include "streams/base/error.h"
#include "streams/base/region.h"
#include "streams/order/peak.h"
#include "streams/order/reserved.h"

/* Ops times streams that are looked at. */
enum { LOOKS_MAX = 1 << 26 };
/* Another list is useful if it saves 1/WORTH of the bytes. */
enum { WORTH = 32 };

struct interleaving {
    const struct tarn_graph *graph;
    struct tarn_region region;
    const uint64_t *reserved;  /* planned storage -> bytes */
    uint32_t *left;            /* planned storage -> users to come */
    uint32_t *begin, *touched; /* op -> planned storages that it touches */
    uint32_t *next;            /* stream -> position of its next op */
    uint32_t *pending;         /* op -> ops of other streams that it still waits for */
    uint32_t *order;
};

static bool list_touched(struct interleaving *in)
{
    const struct tarn_graph *graph = in->graph;
    uint32_t total = 0;
    in->begin = tarn_region_take(&in->region, (size_t)graph->ops_count + 2, sizeof *in->begin);
    in->left = tarn_region_take(&in->region, graph->planned_count, sizeof *in->left);
    if (in->region.is_exhausted) return false;
    for (uint32_t a = 0; a < graph->planned_count; a++) {
        const struct tarn_storage *storage = &graph->storages[a];
        in->left[a] = storage->users_count;
        total += storage->users_count;
        for (uint32_t k = 0; k < storage->users_count; k++)
            in->begin[tarn_storage_users(graph, storage)[k] + 2]++;
    }
    in->touched = tarn_region_take(&in->region, total, sizeof *in->touched);
    if (!in->touched) return false;
    for (uint32_t v = 0; v < graph->ops_count; v++) in->begin[v + 2] += in->begin[v + 1];
    for (uint32_t a = 0; a < graph->planned_count; a++) {
        const struct tarn_storage *storage = &graph->storages[a];
        for (uint32_t k = 0; k < storage->users_count; k++)
            in->touched[in->begin[tarn_storage_users(graph, storage)[k] + 1]++] = a;
    }
    return true;
}

static bool init(struct interleaving *in)
{
    const struct tarn_graph *graph = in->graph;
    in->next = tarn_region_take(&in->region, graph->streams_count, sizeof *in->next);
    in->pending = tarn_region_take(&in->region, graph->ops_count, sizeof *in->pending);
    in->order = tarn_region_take(&in->region, graph->ops_count, sizeof *in->order);
    if (in->region.is_exhausted || !list_touched(in)) return false;
    for (uint32_t v = 0; v < graph->ops_count; v++)
        in->pending[v] = graph->predecessors.begin[v + 1] - graph->predecessors.begin[v];
    return true;
}

/* The bytes that the op adds to the bytes alive. */
static int64_t change_by(const struct interleaving *in, uint32_t v)
{
    int64_t change = 0;
    for (uint32_t i = in->begin[v]; i < in->begin[v + 1]; i++) {
        uint32_t a = in->touched[i];
        const struct tarn_storage *storage = &in->graph->storages[a];
        if (storage->producer == v) change += (int64_t)in->reserved[a];
        if (in->left[a] == 1 && !storage->pinned) change -= (int64_t)in->reserved[a];
    }
    return change;
}

/* Chooses the next op; TARN_NONE: none may come. */
static uint32_t choose(const struct interleaving *in)
{
    const struct tarn_graph *graph = in->graph;
    uint32_t best = TARN_NONE;
    int64_t least = INT64_MAX;
    for (uint32_t s = 0; s < graph->streams_count; s++) {
        if (in->next[s] == graph->streams[s].ops_count) continue;
        uint32_t v = graph->streams[s].ops[in->next[s]];
        if (in->pending[v] > 0) continue;
        int64_t change = graph->ops[v].view ? INT64_MIN : change_by(in, v);
        if (change > least ||
            (change == least && best != TARN_NONE && graph->rank[v] > graph->rank[best]))
            continue;
        least = change;
        best = v;
    }
    return best;
}

/* Whether all ops have come. */
static bool run(struct interleaving *in)
{
    const struct tarn_graph *graph = in->graph;
    for (uint32_t i = 0; i < graph->ops_count; i++) {
        uint32_t v = choose(in);
        if (v == TARN_NONE) return false;
        in->order[i] = v;
        in->next[graph->ops[v].stream]++;
        for (uint32_t k = in->begin[v]; k < in->begin[v + 1]; k++) in->left[in->touched[k]]--;
        for (uint32_t k = graph->successors.begin[v]; k < graph->successors.begin[v + 1]; k++)
            in->pending[graph->successors.ops[k]]--;
    }
    return true;
}

/* Drops the graph if hardly fewer bytes are alive in it. */
static enum tarn_status compare(const struct interleaving *in, struct tarn_graph **result,
                                uint64_t alignment, struct tarn_error *error)
{
    struct tarn_region region = {.chunks = NULL};
    const uint64_t *reserved;
    uint64_t before, after = 0;
    enum tarn_status status = tarn_reserved_sizes(&reserved, &region, *result, alignment, error);
    if (status == TARN_OK && (tarn_peak_of(in->graph, in->reserved, &before) != TARN_OK ||
                              tarn_peak_of(*result, reserved, &after) != TARN_OK))
        status = tarn_error_no_memory(error);
    tarn_region_finish(&region);
    if (status == TARN_OK && after < before - before / WORTH) return TARN_OK;
    tarn_graph_destroy(*result);
    *result = NULL;
    return status;
}

enum tarn_status tarn_graph_interleave(struct tarn_graph *graph, uint64_t alignment,
                                       struct tarn_graph **result, struct tarn_error *error)
{
    struct interleaving in = {.graph = graph};
    *result = NULL;
    if (graph->streams_count < 2 || (uint64_t)graph->ops_count * graph->streams_count > LOOKS_MAX)
        return TARN_OK;
    enum tarn_status status =
        tarn_reserved_sizes(&in.reserved, &in.region, graph, alignment, error);
    if (status == TARN_OK && !init(&in)) status = tarn_error_no_memory(error);
    if (status == TARN_OK && run(&in)) {
        const struct tarn_recipe recipe = {.graph = graph, .order = in.order};
        status = tarn_recipe_build(&recipe, result, error);
        if (status == TARN_OK && *result == graph) {
            tarn_graph_destroy(*result);
            *result = NULL;
        }
        if (status == TARN_OK && *result) status = compare(&in, result, alignment, error);
    }
    tarn_region_finish(&in.region);
    return status;
}
