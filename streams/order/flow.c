/* The flow itself: what storages have left, what ops lack, and the gifts between them. Gifts are
 * records in one array; the empty ones are used again. Cost: constant for a gift. */
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
    flow->gifts_of = tarn_region_take(region, graph->ops_count, sizeof *flow->gifts_of);
    flow->gifts_room = (size_t)reuse->count + graph->ops_count;
    flow->gifts = tarn_region_take(region, flow->gifts_room, sizeof *flow->gifts);
    if (!flow->left || !flow->lacking || !flow->gifts_of || !flow->gifts) return false;
    for (uint32_t a = 0; a < reuse->count; a++) {
        flow->left[a] = reserved[a];
        flow->lacking[graph->storages[a].producer] += reserved[a];
    }
    return true;
}

bool tarn_flow_give(struct tarn_flow *flow, uint32_t storage, uint32_t op, uint64_t bytes)
{
    uint32_t gift = flow->unused;
    assert(bytes > 0 && storage < flow->reuse->count && op < flow->graph->ops_count);
    if (gift) {
        flow->unused = flow->gifts[gift - 1].next;
    } else {
        struct tarn_gift *gifts = tarn_region_grow(flow->region, flow->gifts, &flow->gifts_room,
                                                   (size_t)flow->gifts_count + 1, sizeof *gifts);
        if (!gifts) return false;
        flow->gifts = gifts;
        gift = ++flow->gifts_count;
    }
    flow->gifts[gift - 1] = (struct tarn_gift){bytes, storage, flow->gifts_of[op]};
    flow->gifts_of[op] = gift;
    return true;
}

/* Does op v lie where the bytes of the gift's storage may be used again? */
static bool is_in_reach(const struct tarn_flow *flow, const struct tarn_gift *gift, uint32_t v)
{
    const struct tarn_graph_op *op = &flow->graph->ops[v];
    const struct tarn_reuse *reuse = flow->reuse;
    return op->position >= reuse->first[(size_t)op->stream * reuse->count + gift->storage];
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
        for (uint32_t g = flow->gifts_of[v]; g; g = flow->gifts[g - 1].next) {
            const struct tarn_gift *gift = &flow->gifts[g - 1];
            if (g > flow->gifts_count || (gift->bytes > 0 && !is_in_reach(flow, gift, v)))
                return false;
            given += gift->bytes;
        }
    }
    return left + given == sum && lacking + given == sum;
}
