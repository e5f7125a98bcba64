/* The flow itself: what storages have left, what ops lack, and the transfers between them.
 * Transfers are records in one array; the empty ones are used again. Cost: constant for a
 * transfer. */
#include "flow.h"

#include <assert.h>

#include "streams/base/region.h"

bool tarn_flow_init(struct tarn_flow *flow, struct tarn_region *region,
                    const struct tarn_reuse *reuse, const struct tarn_graph *graph,
                    const uint64_t *reserved)
{
    *flow = (struct tarn_flow){.reuse = reuse, .graph = graph, .region = region};
    flow->left = tarn_region_take(region, reuse->count, sizeof *flow->left);
    flow->lacking = tarn_region_take(region, graph->ops_count, sizeof *flow->lacking);
    flow->transfers_of = tarn_region_take(region, graph->ops_count, sizeof *flow->transfers_of);
    flow->transfers_room = (size_t)reuse->count + graph->ops_count;
    flow->transfers = tarn_region_take(region, flow->transfers_room, sizeof *flow->transfers);
    if (!flow->left || !flow->lacking || !flow->transfers_of || !flow->transfers) return false;
    for (uint32_t a = 0; a < reuse->count; a++) {
        flow->left[a] = reserved[a];
        flow->lacking[graph->storages[a].producer] += reserved[a];
    }
    return true;
}

bool tarn_flow_give(struct tarn_flow *flow, uint32_t storage, uint32_t op, uint64_t bytes)
{
    uint32_t transfer = flow->unused;
    assert(bytes > 0 && storage < flow->reuse->count && op < flow->graph->ops_count);
    if (transfer) {
        flow->unused = flow->transfers[transfer - 1].next;
    } else {
        struct tarn_transfer *transfers =
            tarn_region_grow(flow->region, flow->transfers, &flow->transfers_room,
                             (size_t)flow->transfers_count + 1, sizeof *transfers);
        if (!transfers) return false;
        flow->transfers = transfers;
        transfer = ++flow->transfers_count;
    }
    flow->transfers[transfer - 1] = (struct tarn_transfer){bytes, storage, flow->transfers_of[op]};
    flow->transfers_of[op] = transfer;
    return true;
}

/* Does op v lie where the bytes of the transfer's storage may be used again? */
static bool is_in_reach(const struct tarn_flow *flow, const struct tarn_transfer *transfer,
                        uint32_t v)
{
    const struct tarn_graph_op *op = &flow->graph->ops[v];
    const struct tarn_reuse *reuse = flow->reuse;
    return op->position >= reuse->first[(size_t)op->stream * reuse->count + transfer->storage];
}

bool tarn_flow_is_valid(const struct tarn_flow *flow, const uint64_t *weight)
{
    uint64_t sum = 0, left = 0, lacking = 0, given = 0;
    for (uint32_t a = 0; a < flow->reuse->count; a++) {
        sum += weight[a];
        left += flow->left[a];
    }
    for (uint32_t v = 0; v < flow->graph->ops_count; v++) {
        lacking += flow->lacking[v];
        for (uint32_t g = flow->transfers_of[v]; g; g = flow->transfers[g - 1].next) {
            const struct tarn_transfer *transfer = &flow->transfers[g - 1];
            if (g > flow->transfers_count ||
                (transfer->bytes > 0 && !is_in_reach(flow, transfer, v)))
                return false;
            given += transfer->bytes;
        }
    }
    return left + given == sum && lacking + given == sum;
}
