/* Computes the bound by a minimum cut. On the source's side are the nodes that have run. All nodes
 * before v form the source; v and all nodes after it form the sink. A storage costs its size if its
 * producer has run and a user has not:
 *
 *     producer --size--> storage --unlimited--> each user      node --unlimited--> predecessors
 *
 * Only nodes that are neither before nor after v are in the network, so it is small in the deep
 * graphs of training. Cost: a flow through the nodes with which v is not ordered, and their
 * storages.
 */
#include "bound.h"

#include <assert.h>
#include <string.h>

#include "streams/base/bisect.h"

enum { SOURCE, SINK, OTHERS };

enum tarn_status tarn_reorder_bound_init(struct tarn_reorder_bound *bound,
                                         struct tarn_region *region,
                                         const struct tarn_reorder_model *model)
{
    size_t count = model->nodes_count;
    *bound = (struct tarn_reorder_bound){
        .model = model,
        .side = tarn_region_take(region, count, sizeof *bound->side),
        .name = tarn_region_take(region, count, sizeof *bound->name),
        .queue = tarn_region_take(region, count, sizeof *bound->queue),
    };
    return region->is_exhausted ? TARN_SYSTEM : TARN_OK;
}

void tarn_reorder_bound_finish(struct tarn_reorder_bound *bound) { tarn_flow_finish(&bound->flow); }

/* ---- Before and after ---- */

static void reach(struct tarn_reorder_bound *bound, uint32_t w, enum tarn_reorder_side side,
                  uint32_t *tail)
{
    if (bound->side[w] != TARN_REORDER_FREE) return;
    bound->side[w] = (uint8_t)side;
    bound->queue[(*tail)++] = w;
}

/* Marks all nodes that can be reached from v along the arcs, or against the cases if side is
 * BEFORE. */
static void mark(struct tarn_reorder_bound *bound, const struct tarn_arcs *arcs, uint32_t v,
                 enum tarn_reorder_side side)
{
    uint32_t head = 0, tail = 0;
    bound->queue[tail++] = v;
    while (head < tail) {
        uint32_t u = bound->queue[head++];
        for (uint32_t i = arcs->begin[u]; i < arcs->begin[u + 1]; i++)
            reach(bound, arcs->ops[i], side, &tail);
        for (uint32_t i = 0; i < bound->cases_count; i++) {
            const struct tarn_reorder_case *one = &bound->cases[i];
            if (side == TARN_REORDER_BEFORE && one->after == u)
                reach(bound, one->before, side, &tail);
            if (side == TARN_REORDER_AFTER && one->before == u)
                reach(bound, one->after, side, &tail);
        }
    }
}

/* Leaves the free nodes in the queue, ascending. */
static void find_sides(struct tarn_reorder_bound *bound, uint32_t v)
{
    const struct tarn_reorder_model *model = bound->model;
    memset(bound->side, TARN_REORDER_FREE, model->nodes_count);
    bound->side[v] = TARN_REORDER_AFTER;
    mark(bound, &model->predecessors, v, TARN_REORDER_BEFORE);
    mark(bound, &model->successors, v, TARN_REORDER_AFTER);
    bound->free_count = 0;
    for (uint32_t u = 0; u < model->nodes_count; u++) {
        if (bound->side[u] != TARN_REORDER_FREE) continue;
        bound->name[u] = OTHERS + bound->free_count;
        bound->queue[bound->free_count++] = u;
    }
}

/* ---- The network ---- */

static bool has_user_after(const struct tarn_reorder_bound *bound, uint32_t a)
{
    const struct tarn_arcs *users = &bound->model->users;
    for (uint32_t i = users->begin[a]; i < users->begin[a + 1]; i++) {
        if (bound->side[users->ops[i]] == TARN_REORDER_AFTER) return true;
    }
    return false;
}

/* The storage's node, with arcs to its free users; SOURCE: there are none but the producer. */
static uint32_t add_users(struct tarn_reorder_bound *bound, uint32_t a, uint32_t next)
{
    const struct tarn_arcs *users = &bound->model->users;
    uint32_t name = SOURCE;
    for (uint32_t i = users->begin[a]; i < users->begin[a + 1]; i++) {
        uint32_t u = users->ops[i];
        if (bound->side[u] != TARN_REORDER_FREE || u == bound->model->producer[a]) continue;
        name = next;
        tarn_flow_add(&bound->flow, name, bound->name[u], TARN_FLOW_UNLIMITED);
    }
    return name;
}

/* Adds the costs that storages can have; returns the cost that they have in any case. */
static uint64_t add_storages(struct tarn_reorder_bound *bound)
{
    const struct tarn_reorder_model *model = bound->model;
    uint32_t next = OTHERS + bound->free_count;
    uint64_t always = 0;
    for (uint32_t a = 0; a < model->storages_count; a++) {
        uint32_t p = model->producer[a];
        if (bound->side[p] == TARN_REORDER_AFTER) continue;
        bool has_run = bound->side[p] == TARN_REORDER_BEFORE;
        uint32_t from = has_run ? SOURCE : bound->name[p];
        if (model->pinned[a] || has_user_after(bound, a)) {
            if (has_run)
                always += model->size[a];
            else
                tarn_flow_add(&bound->flow, from, SINK, model->size[a]);
            continue;
        }
        uint32_t name = add_users(bound, a, next);
        if (name == SOURCE) continue;
        tarn_flow_add(&bound->flow, from, name, model->size[a]);
        next++;
    }
    bound->flow.nodes_count = next;
    return always;
}

static void add_arc(struct tarn_reorder_bound *bound, uint32_t before, uint32_t after)
{
    if (bound->side[before] == TARN_REORDER_FREE && bound->side[after] == TARN_REORDER_FREE)
        tarn_flow_add(&bound->flow, bound->name[after], bound->name[before], TARN_FLOW_UNLIMITED);
}

static void add_order(struct tarn_reorder_bound *bound)
{
    const struct tarn_arcs *arcs = &bound->model->predecessors;
    for (uint32_t k = 0; k < bound->free_count; k++) {
        uint32_t u = bound->queue[k];
        for (uint32_t i = arcs->begin[u]; i < arcs->begin[u + 1]; i++)
            add_arc(bound, arcs->ops[i], u);
    }
    for (uint32_t i = 0; i < bound->cases_count; i++)
        add_arc(bound, bound->cases[i].before, bound->cases[i].after);
}

static void take_sides(struct tarn_reorder_bound *bound, bool reached_has_run)
{
    for (uint32_t k = 0; k < bound->free_count; k++) {
        uint32_t u = bound->queue[k];
        bool reached = bound->flow.level[bound->name[u]] != TARN_NONE;
        bound->side[u] = reached == reached_has_run ? TARN_REORDER_BEFORE : TARN_REORDER_AFTER;
    }
}

enum tarn_status tarn_reorder_bound_at(struct tarn_reorder_bound *bound, uint32_t v,
                                       uint64_t *least)
{
    const struct tarn_reorder_model *model = bound->model;
    assert(v < model->nodes_count);
    find_sides(bound, v);
    uint32_t nodes = OTHERS + bound->free_count + model->storages_count;
    if (tarn_flow_reset(&bound->flow, nodes) != TARN_OK) return TARN_SYSTEM;
    *least = model->made[v] + add_storages(bound);
    add_order(bound);
    if (bound->flow.status != TARN_OK) return TARN_SYSTEM;
    *least += tarn_flow_run(&bound->flow, SOURCE, SINK);
    take_sides(bound, true);
    return TARN_OK;
}

void tarn_reorder_bound_enlarge(struct tarn_reorder_bound *bound)
{
    tarn_flow_find_largest(&bound->flow, SINK);
    take_sides(bound, false);
}

bool tarn_reorder_bound_was_free(const struct tarn_reorder_bound *bound, uint32_t u)
{
    uint32_t low = 0, high = bound->free_count;
    TARN_BISECT(low, high, middle, bound->queue[middle] < u);
    return low < bound->free_count && bound->queue[low] == u;
}
