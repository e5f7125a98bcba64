/* Computes a lower bound of the time of schedules on a number of streams, without waits. It follows
 * from three facts:
 *
 *     an op that all others come before or after cuts the schedule: parts add up
 *     a chain of ops takes the sum of its costs
 *     ops that each have at least h before them and t after them begin after h and leave t: such a
 *     set takes h + (their cost) / streams + t   (after Fernandez and Bussell, 1973)
 *
 * The sets looked at are all ops with head >= h and tail >= t, for every h and some values of t. An
 * op v is a cut if every op before it has a successor up to v, and every op after it a predecessor
 * at v or later. Cost: O(V log V + E), and V for each t. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "assign.h"
#include "streams/base/checked.h"

enum { TAILS_MAX = 64 };

struct limits {
    const struct tarn_reorder_model *model;
    const struct tarn_stream_pools *pools;
    uint64_t *cost;    /* node */
    uint64_t *head;    /* node -> longest chain in front of it, inside its part */
    uint64_t *tail;    /* node -> time after it */
    uint32_t *by_head; /* the nodes of a part and pool */
    uint64_t *tails;   /* their tails, sorted */
};

/* ---- Chains ---- */

/* Heads and tails in [begin, end); returns the longest chain. */
static uint64_t fill_chains(const struct limits *limits, uint32_t begin, uint32_t end)
{
    const struct tarn_arcs *before = &limits->model->predecessors;
    const struct tarn_arcs *after = &limits->model->successors;
    uint64_t longest = 0;
    for (uint32_t v = begin; v < end; v++) {
        uint64_t head = 0;
        for (uint32_t i = before->begin[v]; i < before->begin[v + 1]; i++) {
            uint32_t u = before->ops[i];
            if (u >= begin) head = tarn_larger(head, limits->head[u] + limits->cost[u]);
        }
        limits->head[v] = head;
        longest = tarn_larger(longest, head + limits->cost[v]);
    }
    for (uint32_t v = end; v-- > begin;) {
        uint64_t tail = 0;
        for (uint32_t i = after->begin[v]; i < after->begin[v + 1]; i++) {
            uint32_t w = after->ops[i];
            if (w < end) tail = tarn_larger(tail, limits->tail[w] + limits->cost[w]);
        }
        limits->tail[v] = tail;
    }
    return longest;
}

/* ---- Sets ---- */

static int compare_numbers(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return a < b ? -1 : a > b;
}

/* The largest head first. */
static int compare_heads(const void *left, const void *right, void *user)
{
    const struct limits *limits = user;
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    if (limits->head[a] != limits->head[b]) return limits->head[a] > limits->head[b] ? -1 : 1;
    return a < b ? -1 : a > b;
}

/* Over all h: the sets of nodes with head >= h and tail >= t. */
static uint64_t heaviest_with_tail(const struct limits *limits, uint32_t count, uint64_t t,
                                   uint32_t streams)
{
    uint64_t work = 0, most = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t v = limits->by_head[i];
        if (limits->tail[v] < t) continue;
        work += limits->cost[v];
        most = tarn_larger(most, limits->head[v] + (work + streams - 1) / streams + t);
    }
    return most;
}

static uint64_t limit_of_pool(struct limits *limits, uint32_t begin, uint32_t end, uint32_t p)
{
    uint32_t streams = limits->pools->end[p] - limits->pools->begin[p], count = 0;
    uint64_t most = 0;
    for (uint32_t v = begin; v < end; v++) {
        if (limits->pools->pool[v] != p) continue;
        limits->tails[count] = limits->tail[v];
        limits->by_head[count++] = v;
    }
    if (streams == 0 || count <= 1) return 0;
    qsort(limits->tails, count, sizeof *limits->tails, compare_numbers);
    qsort_r(limits->by_head, count, sizeof *limits->by_head, compare_heads, limits);
    uint32_t step = count / TAILS_MAX + 1;
    for (uint32_t i = 0; i < count; i += step)
        most = tarn_larger(most, heaviest_with_tail(limits, count, limits->tails[i], streams));
    return most;
}

/* ---- Parts ---- */

static uint64_t limit_of_part(struct limits *limits, uint32_t begin, uint32_t end)
{
    if (begin >= end) return 0;
    uint64_t most = fill_chains(limits, begin, end);
    for (uint32_t p = 0; p < limits->pools->count; p++)
        most = tarn_larger(most, limit_of_pool(limits, begin, end, p));
    return most;
}

/* Finds nodes v such that every node after v has a predecessor at v or later. */
static void find_cuts_behind(const struct tarn_reorder_model *model, bool *is_cut_behind)
{
    const struct tarn_arcs *before = &model->predecessors;
    uint32_t least = UINT32_MAX; /* of the nodes after v: their latest predecessor + 1 */
    for (uint32_t v = model->nodes_count; v-- > 0;) {
        uint32_t latest = 0;
        is_cut_behind[v] = least > v;
        for (uint32_t i = before->begin[v]; i < before->begin[v + 1]; i++)
            if (before->ops[i] >= latest) latest = before->ops[i] + 1;
        if (latest < least) least = latest;
    }
}

/* Nodes come in a topological order. */
static uint64_t add_parts(struct limits *limits, const bool *is_cut_behind)
{
    const struct tarn_arcs *after = &limits->model->successors;
    uint32_t count = limits->model->nodes_count, begin = 0;
    uint32_t most = 0; /* of the nodes in front of v: their earliest successor */
    uint64_t sum = 0;
    for (uint32_t v = 0; v < count; v++) {
        uint32_t earliest = count;
        if (most <= v && is_cut_behind[v]) {
            sum += limit_of_part(limits, begin, v) + limits->cost[v];
            begin = v + 1;
        }
        for (uint32_t i = after->begin[v]; i < after->begin[v + 1]; i++)
            if (after->ops[i] < earliest) earliest = after->ops[i];
        if (earliest > most) most = earliest;
    }
    return sum + limit_of_part(limits, begin, count);
}

/* ---- The limit ---- */

static void find_costs(struct limits *limits)
{
    const struct tarn_reorder_model *model = limits->model;
    for (uint32_t v = 0; v < model->nodes_count; v++) {
        const struct tarn_graph_op *op = &model->graph->ops[model->op[v]];
        limits->cost[v] = op->view ? 0 : op->cost;
    }
}

enum tarn_status tarn_assign_limit(uint64_t *limit_ns, struct tarn_region *region,
                                   const struct tarn_reorder_model *model,
                                   const struct tarn_stream_pools *pools)
{
    struct tarn_region_mark mark = tarn_region_mark(region);
    size_t count = model->nodes_count;
    bool *is_cut_behind = tarn_region_take(region, count, sizeof *is_cut_behind);
    struct limits limits = {
        .model = model,
        .pools = pools,
        .cost = tarn_region_take(region, count, sizeof *limits.cost),
        .head = tarn_region_take(region, count, sizeof *limits.head),
        .tail = tarn_region_take(region, count, sizeof *limits.tail),
        .by_head = tarn_region_take(region, count, sizeof *limits.by_head),
        .tails = tarn_region_take(region, count, sizeof *limits.tails),
    };
    bool is_there = !region->is_exhausted;
    assert(pools->count <= TARN_POOLS_MAX);
    if (is_there) {
        find_costs(&limits);
        find_cuts_behind(model, is_cut_behind);
        *limit_ns = add_parts(&limits, is_cut_behind);
    }
    tarn_region_release(region, mark);
    return is_there ? TARN_OK : TARN_SYSTEM;
}
