/* Computes maximum flows by Dinic's algorithm: breadth-first levels from the source, then paths
 * that go down one level an arc until none is left, again and again until the sink is out of reach
 * (E. A. Dinic, "Algorithm for solution of a problem of maximum flow in networks with power
 * estimation", 1970). Cost: O(nodes^2 arcs) at worst, a few passes over the arcs for orders of
 * ops. */
#include "flow.h"

#include <assert.h>
#include <string.h>

/* ---- The network ---- */

static enum tarn_status grow_nodes(struct tarn_reorder_flow *flow, uint32_t nodes)
{
    uint32_t **lists[] = {&flow->first, &flow->level, &flow->now, &flow->queue, &flow->path};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        *lists[i] = tarn_region_take(&flow->region, nodes, sizeof **lists[i]);
        if (!*lists[i]) return TARN_SYSTEM;
    }
    flow->nodes_room = nodes;
    return TARN_OK;
}

enum tarn_status tarn_flow_reset(struct tarn_reorder_flow *flow, uint32_t nodes)
{
    if (nodes > flow->nodes_room && grow_nodes(flow, 2 * nodes) != TARN_OK) return TARN_SYSTEM;
    flow->nodes_count = nodes;
    flow->arcs_count = 0;
    flow->status = TARN_OK;
    for (uint32_t n = 0; n < nodes; n++) flow->first[n] = TARN_NONE;
    return TARN_OK;
}

void tarn_flow_finish(struct tarn_reorder_flow *flow) { tarn_region_finish(&flow->region); }

static void add_half(struct tarn_reorder_flow *flow, uint32_t from, uint32_t to, uint64_t room)
{
    flow->arcs[flow->arcs_count] = (struct tarn_flow_arc){to, flow->first[from], room};
    flow->first[from] = flow->arcs_count++;
}

void tarn_flow_add(struct tarn_reorder_flow *flow, uint32_t from, uint32_t to, uint64_t capacity)
{
    assert(from < flow->nodes_room && to < flow->nodes_room && capacity <= TARN_FLOW_UNLIMITED);
    struct tarn_flow_arc *arcs = tarn_region_grow(&flow->region, flow->arcs, &flow->arcs_room,
                                                  (size_t)flow->arcs_count + 2, sizeof *arcs);
    if (!arcs) {
        flow->status = TARN_SYSTEM;
        return;
    }
    flow->arcs = arcs;
    add_half(flow, from, to, capacity);
    add_half(flow, to, from, 0);
}

/* ---- Levels ---- */

/* Distances from `root` along arcs with room, or against them; true when `goal` was reached. */
static bool find_levels(struct tarn_reorder_flow *flow, uint32_t root, uint32_t goal, bool against)
{
    uint32_t head = 0, tail = 0;
    for (uint32_t n = 0; n < flow->nodes_count; n++) flow->level[n] = TARN_NONE;
    flow->level[root] = 0;
    flow->queue[tail++] = root;
    while (head < tail) {
        uint32_t n = flow->queue[head++];
        for (uint32_t e = flow->first[n]; e != TARN_NONE; e = flow->arcs[e].next) {
            uint32_t to = flow->arcs[e].to;
            if (flow->level[to] != TARN_NONE || flow->arcs[against ? e ^ 1 : e].room == 0) continue;
            flow->level[to] = flow->level[n] + 1;
            flow->queue[tail++] = to;
        }
    }
    return goal != TARN_NONE && flow->level[goal] != TARN_NONE;
}

void tarn_flow_find_largest(struct tarn_reorder_flow *flow, uint32_t sink)
{
    find_levels(flow, sink, TARN_NONE, true);
}

/* ---- Paths ---- */

/* Sends as much as the path can take, and returns the place in the path that has no room left. */
static uint32_t send(struct tarn_reorder_flow *flow, uint32_t length, uint64_t *sent)
{
    uint64_t amount = UINT64_MAX;
    uint32_t narrowest = 0;
    for (uint32_t i = 0; i < length; i++) {
        if (flow->arcs[flow->path[i]].room >= amount) continue;
        amount = flow->arcs[flow->path[i]].room;
        narrowest = i;
    }
    for (uint32_t i = 0; i < length; i++) {
        flow->arcs[flow->path[i]].room -= amount;
        flow->arcs[flow->path[i] ^ 1].room += amount;
    }
    *sent += amount;
    return narrowest;
}

/* All paths that go down one level an arc. */
static uint64_t send_level_by_level(struct tarn_reorder_flow *flow, uint32_t source, uint32_t sink)
{
    uint64_t sent = 0;
    uint32_t length = 0, n = source;
    memcpy(flow->now, flow->first, flow->nodes_count * sizeof *flow->now);
    for (;;) {
        uint32_t e = flow->now[n];
        if (n == sink) {
            length = send(flow, length, &sent);
            n = flow->arcs[flow->path[length] ^ 1].to;
        } else if (e == TARN_NONE) {
            if (length == 0) return sent;
            n = flow->arcs[flow->path[--length] ^ 1].to;
            flow->now[n] = flow->arcs[flow->now[n]].next;
        } else if (flow->arcs[e].room > 0 && flow->level[flow->arcs[e].to] == flow->level[n] + 1) {
            flow->path[length++] = e;
            n = flow->arcs[e].to;
        } else {
            flow->now[n] = flow->arcs[e].next;
        }
    }
}

uint64_t tarn_flow_run(struct tarn_reorder_flow *flow, uint32_t source, uint32_t sink)
{
    uint64_t sent = 0;
    assert(source < flow->nodes_count && sink < flow->nodes_count && source != sink);
    while (find_levels(flow, source, sink, false)) sent += send_level_by_level(flow, source, sink);
    return sent;
}
