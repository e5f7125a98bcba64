/* Computes the serial list-order peak by a sweep over the ops in list order: a storage is alive
 * from its producer to its last user (an output to the end). Cost: O(V + storages). */
#include "peak.h"

#include <assert.h>

#include "reserved.h"
#include "streams/base/region.h"

static void sweep(const struct tarn_graph *graph, const uint64_t *produced,
                  const uint64_t *released, uint64_t *peak)
{
    uint64_t alive = 0;
    *peak = 0;
    for (uint32_t rank = 0; rank < graph->ops_count; rank++) {
        alive += produced[rank];
        if (alive > *peak) *peak = alive;
        assert(released[rank] <= alive);
        alive -= released[rank];
    }
}

static enum tarn_status find_peak(const struct tarn_graph *graph, struct tarn_region *region,
                                  const uint64_t *size, uint64_t *peak)
{
    uint64_t *released = tarn_region_take(region, graph->ops_count, sizeof *released); /* by rank */
    uint64_t *produced = tarn_region_take(region, graph->ops_count, sizeof *produced);
    if (!released || !produced) return TARN_SYSTEM;
    for (uint32_t a = 0; a < graph->planned_count; a++) {
        const struct tarn_storage *storage = &graph->storages[a];
        produced[graph->rank[storage->producer]] += size[a];
        if (storage->pinned) continue;
        released[graph->rank[tarn_storage_users(graph, storage)[storage->users_count - 1]]] +=
            size[a];
    }
    sweep(graph, produced, released, peak);
    return TARN_OK;
}

enum tarn_status tarn_peak_of(const struct tarn_graph *graph, const uint64_t *size, uint64_t *peak)
{
    struct tarn_region region = {.chunks = NULL};
    enum tarn_status status = find_peak(graph, &region, size, peak);
    tarn_region_finish(&region);
    return status;
}

enum tarn_status tarn_peak_serial(const struct tarn_graph *graph, uint64_t *peak)
{
    struct tarn_region region = {.chunks = NULL};
    uint64_t *size = tarn_region_take(&region, graph->planned_count, sizeof *size);
    enum tarn_status status = TARN_SYSTEM;
    if (size) {
        for (uint32_t a = 0; a < graph->planned_count; a++) size[a] = graph->storages[a].size;
        tarn_workspaces_fold(graph, size);
        tarn_sizes_of_first_space(graph, size);
        status = find_peak(graph, &region, size, peak);
    }
    tarn_region_finish(&region);
    return status;
}
