/* Branching over every storage for the clique; for the antichain the library's own search, which
 * antichain_test compares with the clique. */
#include "heaviest.h"

#include <assert.h>
#include <stdlib.h>

#include "streams/base/region.h"
#include "streams/order/antichain.h"

uint64_t heaviest_clique(const uint32_t *unsafe, const uint64_t *weight, uint32_t candidates)
{
    if (candidates == 0) return 0;
    uint32_t a = (uint32_t)__builtin_ctz(candidates);
    uint32_t rest = candidates & (candidates - 1);
    uint64_t with = weight[a] + heaviest_clique(unsafe, weight, rest & unsafe[a]);
    if ((rest & ~unsafe[a]) == 0) return with;
    uint64_t without = heaviest_clique(unsafe, weight, rest);
    return with > without ? with : without;
}

uint64_t heaviest_antichain(const struct tarn_graph *graph)
{
    struct tarn_region region = {.chunks = NULL};
    struct tarn_clocks clocks;
    struct tarn_reuse reuse;
    struct tarn_antichain antichain;
    uint64_t *size = calloc((size_t)graph->planned_count + 1, sizeof *size);
    assert(size);
    for (uint32_t a = 0; a < graph->planned_count; a++) size[a] = graph->storages[a].size;
    enum tarn_status status = tarn_clocks_init(&clocks, &region, graph);
    if (!status) status = tarn_reuse_init(&reuse, &region, &clocks, graph);
    if (!status) status = tarn_antichain_init(&antichain, &region, &reuse, graph, size);
    assert(!status);
    uint64_t weight = antichain.bound;
    tarn_region_finish(&region);
    free(size);
    return weight;
}
