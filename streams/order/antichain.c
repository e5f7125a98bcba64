/* The heaviest antichain, as a maximum flow: a storage's bytes may be handed on to any op at or
 * beyond first[a][s] in some stream s, and an op asks for as many bytes as it produces. By duality
 * (Dilworth, weighted) the bytes that no op can be given are the weight of the heaviest antichain.
 *
 *   1. Greedy in topological order (greedy.c). Nearly always this is already maximal.
 *   2. Augment (augment.c): search from the storages with bytes left. What they may reach is a
 *      suffix of every stream, so one pointer per stream is the whole visited set. When no op in
 *      reach lacks bytes the flow is maximal and the pointers are the certificate.
 *   3. If the work limit ended that early, the pointers still name an antichain. Another one is
 *      what cannot be reused yet after the first ops of list order, at the best of all points; the
 *      heavier of the two is taken. It may weigh less than the heaviest.
 *
 * Source: docs/how-it-works.md, "Lower bound". Cost: O(T S) for the greedy, then up to the work
 * limit; 40 bytes for each storage, and 1.2 for each and every stream, beside what comes in. */
#include "antichain.h"

#include <assert.h>
#include <string.h>

#include "flow.h"
#include "streams/base/region.h"

uint64_t tarn_antichain_weight(const uint32_t *threshold, const struct tarn_reuse *reuse,
                               const uint64_t *reserved)
{
    uint64_t weight = 0;
    for (uint32_t a = 0; a < reuse->count; a++)
        if (tarn_antichain_has(threshold, reuse, a)) weight += reserved[a];
    return weight;
}

uint32_t tarn_antichain_heaviest(const uint32_t *threshold, const struct tarn_reuse *reuse,
                                 const uint64_t *reserved, uint32_t *list, uint32_t room)
{
    uint32_t members = 0;
    for (uint32_t a = 0; a < reuse->count; a++) {
        if (!tarn_antichain_has(threshold, reuse, a)) continue;
        uint32_t i = members++ < room ? members - 1 : room;
        if (i == room && reserved[list[--i]] >= reserved[a]) continue;
        for (; i > 0 && reserved[list[i - 1]] < reserved[a]; i--) list[i] = list[i - 1];
        list[i] = a;
    }
    return members;
}

/* ---- A cut of list order ---- */

/* Storage a is in the antichain of the first n ops of list order from behind its producer up to the
 * first op that may overwrite it, so a sum of differences weighs all of them. */
static bool find_list_cut(uint32_t *threshold, struct tarn_region *region,
                          const struct tarn_reuse *reuse, const struct tarn_graph *graph,
                          const uint64_t *reserved)
{
    uint64_t *change = tarn_region_take(region, (size_t)graph->ops_count + 2, sizeof *change);
    if (!change) return false;
    for (uint32_t a = 0; a < reuse->count; a++) {
        uint32_t end = graph->ops_count;
        for (uint32_t s = 0; s < reuse->streams_count; s++) {
            uint32_t first = reuse->first[(size_t)s * reuse->count + a];
            if (first == graph->streams[s].ops_count) continue;
            uint32_t rank = graph->rank[graph->streams[s].ops[first]];
            if (rank < end) end = rank;
        }
        change[graph->rank[graph->storages[a].producer] + 1] += reserved[a];
        change[end + 1] -= reserved[a];
    }
    uint64_t weight = 0, heaviest = 0;
    uint32_t best = 0;
    for (uint32_t n = 0; n <= graph->ops_count; n++) {
        weight += change[n];
        if (weight <= heaviest) continue;
        heaviest = weight;
        best = n;
    }
    memset(threshold, 0, reuse->streams_count * sizeof *threshold);
    assert(weight == 0 || best <= graph->ops_count);
    for (uint32_t i = 0; i < best; i++) threshold[graph->ops[graph->order[i]].stream]++;
    return true;
}

/* Takes the cut if its antichain is heavier. */
static bool compare_with_list_cut(struct tarn_antichain *antichain, struct tarn_region *region,
                                  const struct tarn_reuse *reuse, const struct tarn_graph *graph,
                                  const uint64_t *reserved)
{
    uint32_t *threshold = tarn_region_take(region, reuse->streams_count, sizeof *threshold);
    bool ok = threshold && find_list_cut(threshold, region, reuse, graph, reserved);
    uint64_t weight = ok ? tarn_antichain_weight(threshold, reuse, reserved) : 0;
    if (weight > antichain->bound) {
        antichain->bound = weight;
        memcpy(antichain->threshold, threshold, reuse->streams_count * sizeof *threshold);
    }
    return ok;
}

/* About a second. Small graphs are never near it. */
static uint64_t default_work(const struct tarn_reuse *reuse)
{
    return (UINT64_C(1) << 26) + 128 * (uint64_t)reuse->count;
}

enum tarn_status tarn_antichain_init(struct tarn_antichain *antichain, struct tarn_region *region,
                                     const struct tarn_reuse *reuse, const struct tarn_graph *graph,
                                     const uint64_t *reserved)
{
    return tarn_antichain_init_within(antichain, region, reuse, graph, reserved,
                                      default_work(reuse));
}

enum tarn_status tarn_antichain_init_within(struct tarn_antichain *antichain,
                                            struct tarn_region *region,
                                            const struct tarn_reuse *reuse,
                                            const struct tarn_graph *graph,
                                            const uint64_t *reserved, uint64_t work)
{
    struct tarn_flow flow;
    bool maximal;
    assert(reuse->count == graph->planned_count && reuse->streams_count == graph->streams_count);
    *antichain = (struct tarn_antichain){.streams_count = reuse->streams_count};
    antichain->threshold =
        tarn_region_take(region, reuse->streams_count, sizeof *antichain->threshold);
    if (!antichain->threshold) return TARN_SYSTEM;
    struct tarn_region_mark mark = tarn_region_mark(region);
    bool ok = tarn_flow_init(&flow, region, reuse, graph, reserved) && tarn_flow_greedy(&flow) &&
              tarn_flow_augment(&flow, work, antichain->threshold, &maximal);
    assert(!ok || tarn_flow_is_valid(&flow, reserved));
    antichain->visits = flow.visits;
    tarn_region_release(region, mark);
    if (ok) antichain->bound = tarn_antichain_weight(antichain->threshold, reuse, reserved);
    if (ok && !maximal) ok = compare_with_list_cut(antichain, region, reuse, graph, reserved);
    tarn_region_release(region, mark);
    return ok ? TARN_OK : TARN_SYSTEM;
}
