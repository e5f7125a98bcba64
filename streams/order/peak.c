/* The serial list-order peak, by sweeping over the ops in list order: a storage is alive from its
 * producer to its last toucher (an output to the end). Cost: O(V + storages). */
#include "peak.h"

#include <stdlib.h>

enum tarn_status tarn_peak_of(const struct tarn_graph *graph, const uint64_t *size, uint64_t *peak)
{
    uint64_t *released = calloc((size_t)graph->ops_count + 1, sizeof *released); /* after a rank */
    uint64_t *produced = calloc((size_t)graph->ops_count + 1, sizeof *produced);
    if (!released || !produced) {
        free(released);
        free(produced);
        return TARN_SYSTEM;
    }
    for (uint32_t a = 0; a < graph->planned_count; a++) {
        const struct tarn_storage *storage = &graph->storages[a];
        produced[graph->rank[storage->producer]] += size[a];
        if (storage->pinned) continue;
        released[graph->rank[storage->touchers[storage->touchers_count - 1]]] += size[a];
    }
    uint64_t alive = 0;
    *peak = 0;
    for (uint32_t rank = 0; rank < graph->ops_count; rank++) {
        alive += produced[rank];
        if (alive > *peak) *peak = alive;
        alive -= released[rank];
    }
    free(released);
    free(produced);
    return TARN_OK;
}

enum tarn_status tarn_peak_serial(const struct tarn_graph *graph, uint64_t *peak)
{
    uint64_t *size = malloc(((size_t)graph->planned_count + 1) * sizeof *size);
    if (!size) return TARN_SYSTEM;
    for (uint32_t a = 0; a < graph->planned_count; a++) size[a] = graph->storages[a].size;
    enum tarn_status status = tarn_peak_of(graph, size, peak);
    free(size);
    return status;
}
