/* Reorders several streams. The weight of an order is its heaviest antichain (weighing.c). First,
 * orders between the given order and the best order for one stream are tried. Then the heaviest
 * antichain names its witness: the storages that cannot share bytes. For the largest of them, the
 * producer is moved after the position at which the antichain cuts its stream, or the users after
 * that position are moved before it; changes that lower the weight are kept. Cost: tries times the
 * clocks and the antichain of the graph. */
#include "streams.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* Orders between two, with a limit of time more of them, since most of the best take too long. */
enum { PARTS = 8, PARTS_WITHIN_TIME = 32 };

/* ---- Changes ---- */

static bool has_marked(const struct tarn_reorder_streams *search, const struct tarn_arcs *arcs,
                       uint32_t v)
{
    for (uint32_t i = arcs->begin[v]; i < arcs->begin[v + 1]; i++) {
        if (search->mark[arcs->ops[i]]) return true;
    }
    return false;
}

static int compare_keys(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Puts `early`, and all ops between that come after it, after `late`. False: late comes after
 * early. */
static bool put_off(struct tarn_reorder_streams *search, const uint32_t *order, uint32_t early,
                    uint32_t late)
{
    uint32_t begin = search->weighing.rank[early], end = search->weighing.rank[late], kept = begin,
             put = 0;
    if (begin >= end) return false;
    memset(search->mark, 0, search->weighing.graph.ops_count * sizeof *search->mark);
    memcpy(search->attempt, order, search->weighing.graph.ops_count * sizeof *order);
    for (uint32_t i = begin; i <= end; i++) {
        uint32_t v = order[i];
        search->mark[v] =
            v == early || has_marked(search, &search->weighing.constraints.predecessors, v);
        if (search->mark[v])
            search->room[put++] = v;
        else
            search->attempt[kept++] = v;
    }
    memcpy(search->attempt + kept, search->room, put * sizeof *order);
    return !search->mark[late];
}

/* Puts `late`, and all between that comes before it, before `early`. False: early comes before it.
 */
static bool pull(struct tarn_reorder_streams *search, const uint32_t *order, uint32_t early,
                 uint32_t late)
{
    uint32_t begin = search->weighing.rank[early], end = search->weighing.rank[late], place = begin;
    if (begin >= end) return false;
    memset(search->mark, 0, search->weighing.graph.ops_count * sizeof *search->mark);
    memcpy(search->attempt, order, search->weighing.graph.ops_count * sizeof *order);
    for (uint32_t i = end + 1; i-- > begin;) {
        uint32_t v = order[i];
        search->mark[v] =
            v == late || has_marked(search, &search->weighing.constraints.successors, v);
    }
    for (uint32_t part = 0; part < 2; part++) {
        for (uint32_t i = begin; i <= end; i++) {
            if (search->mark[order[i]] == (part == 0)) search->attempt[place++] = order[i];
        }
    }
    return !search->mark[early];
}

/* Makes an order between two orders: every op at the weighted mean of its places, with `part` of
 * `parts` of the second. An op that comes first in both orders comes first. */
static void mix(struct tarn_reorder_streams *search, const uint32_t *const order[2], uint32_t part,
                uint32_t parts)
{
    uint32_t count = search->weighing.graph.ops_count;
    for (uint32_t i = 0; i < count; i++) search->room[order[0][i]] = (parts - part) * i;
    for (uint32_t i = 0; i < count; i++) search->room[order[1][i]] += part * i;
    for (uint32_t i = 0; i < count; i++)
        search->key[i] = (uint64_t)search->room[order[0][i]] << 32 | i;
    qsort(search->key, count, sizeof *search->key, compare_keys);
    for (uint32_t i = 0; i < count; i++) search->attempt[i] = order[0][(uint32_t)search->key[i]];
}

/* ---- The search ---- */

static void find_members(struct tarn_reorder_streams *search)
{
    const struct tarn_weighing *weighing = &search->weighing;
    memcpy(search->threshold, weighing->bound.threshold,
           weighing->graph.streams_count * sizeof *search->threshold);
    uint32_t count =
        tarn_antichain_heaviest(search->threshold, &weighing->reuse, weighing->reserved,
                                search->members, TARN_REORDER_MEMBERS_MAX);
    search->members_count = count < TARN_REORDER_MEMBERS_MAX ? count : TARN_REORDER_MEMBERS_MAX;
}

/* Is an order of that weight, the one weighed last, better than the best? */
static enum tarn_status judge(struct tarn_reorder_streams *search, uint64_t weight, bool *better)
{
    uint64_t ns;
    *better = weight < search->weight;
    const struct tarn_reorder_weights *weights = search->weights;
    if (!*better || weights->slowdown_max < 0) return TARN_OK;
    enum tarn_status status = tarn_weighing_time(&search->weighing, &ns);
    double most = (double)weights->before_ns * (1 + weights->slowdown_max);
    *better = status == TARN_OK && (ns <= weights->before_ns || (double)ns <= most);
    return status;
}

/* Weighs the attempt; the best order's ranks are back afterwards. */
static enum tarn_status try_attempt(struct tarn_reorder_streams *search, bool *better)
{
    struct tarn_weighing *weighing = &search->weighing;
    uint64_t weight;
    *better = false;
    if (!tarn_steps_next(search->weights->steps, search->weight)) {
        search->is_over = true;
        search->tries = 0;
        return TARN_OK;
    }
    search->tries--;
    search->weights->tried++;
    enum tarn_status status = tarn_weighing_weigh(weighing, search->attempt, &weight);
    if (status == TARN_OK) status = judge(search, weight, better);
    if (status != TARN_OK) return status;
    if (*better) {
        search->weight = weight;
        memcpy(search->best, search->attempt, weighing->graph.ops_count * sizeof *search->best);
    }
    tarn_weighing_take(weighing, search->best);
    return status;
}

/* The op before which, or after which, the antichain lies in the stream; TARN_NONE: none. */
static uint32_t last_before(const struct tarn_reorder_streams *search, uint32_t stream)
{
    uint32_t x = search->threshold[stream];
    return x > 0 ? search->weighing.graph.streams[stream].ops[x - 1] : TARN_NONE;
}

static enum tarn_status try_member(struct tarn_reorder_streams *search, uint32_t a, bool *better)
{
    struct tarn_weighing *weighing = &search->weighing;
    const struct tarn_storage *storage = &weighing->graph.storages[a];
    uint32_t end = last_before(search, weighing->graph.ops[storage->producer].stream);
    enum tarn_status status = TARN_OK;
    if (end != TARN_NONE && put_off(search, search->best, storage->producer, end))
        status = try_attempt(search, better);
    for (uint32_t k = storage->users_count; k-- > 0 && status == TARN_OK && !*better;) {
        uint32_t v = tarn_storage_users(&weighing->graph, storage)[k],
                 early = last_before(search, weighing->graph.ops[v].stream);
        if (search->tries == 0) break;
        if (early != TARN_NONE && pull(search, search->best, early, v))
            status = try_attempt(search, better);
    }
    return status;
}

static enum tarn_status improve(struct tarn_reorder_streams *search)
{
    bool better = true;
    enum tarn_status status = TARN_OK;
    while (status == TARN_OK && better && search->tries > 0) {
        uint64_t weight;
        better = false;
        status = tarn_weighing_weigh(&search->weighing, search->best, &weight);
        if (status != TARN_OK) return status;
        find_members(search);
        for (uint32_t k = 0; k < search->members_count && !better && search->tries > 0; k++) {
            status = try_member(search, search->members[k], &better);
            if (status != TARN_OK) return status;
        }
    }
    return status;
}

/* Starts with the best of the two orders and of the orders between them, which an ended search
 * skips. */
static enum tarn_status start(struct tarn_reorder_streams *search, const uint32_t *const order[2],
                              uint32_t parts)
{
    struct tarn_weighing *weighing = &search->weighing;
    enum tarn_status status = TARN_OK;
    bool better;
    for (uint32_t k = 0; k <= parts && status == TARN_OK; k++) {
        uint32_t part = k == 0 ? 0 : parts + 1 - k;
        uint64_t weight;
        if (k > 1 && tarn_steps_is_over(search->weights->steps)) break;
        mix(search, order, part, parts);
        status = tarn_weighing_weigh(weighing, search->attempt, &weight);
        if (status == TARN_OK) status = judge(search, weight, &better);
        if (status != TARN_OK || !better) continue;
        search->weight = weight;
        memcpy(search->best, search->attempt, weighing->graph.ops_count * sizeof *search->best);
    }
    return status;
}

enum tarn_status tarn_reorder_streams_init(struct tarn_reorder_streams *search,
                                           struct tarn_region *region,
                                           const struct tarn_graph *graph, const uint64_t *reserved,
                                           uint64_t alignment, const uint32_t *given,
                                           struct tarn_reorder_weights *weights)
{
    size_t count = graph->ops_count;
    *search = (struct tarn_reorder_streams){
        .weights = weights,
        .threshold = tarn_region_take(region, graph->streams_count, sizeof *search->threshold),
        .kept = tarn_region_copy(region, given, count, sizeof *search->kept),
        .best = tarn_region_take(region, count, sizeof *search->best),
        .mark = tarn_region_take(region, count, sizeof *search->mark),
        .attempt = tarn_region_take(region, count, sizeof *search->attempt),
        .room = tarn_region_take(region, count, sizeof *search->room),
        .key = tarn_region_take(region, count, sizeof *search->key),
    };
    enum tarn_status status =
        tarn_weighing_init(&search->weighing, region, graph, reserved, alignment);
    if (region->is_exhausted) status = TARN_SYSTEM;
    if (status == TARN_OK) status = tarn_weighing_weigh(&search->weighing, given, &weights->before);
    if (status == TARN_OK) status = tarn_weighing_time(&search->weighing, &weights->before_ns);
    weights->start = weights->after = weights->before;
    return status;
}

void tarn_reorder_streams_finish(struct tarn_reorder_streams *search)
{
    tarn_weighing_finish(&search->weighing);
}

enum tarn_status tarn_reorder_streams_run(struct tarn_reorder_streams *search,
                                          const uint32_t *const order[2], bool *better)
{
    struct tarn_reorder_weights *weights = search->weights;
    *better = false;
    search->weight = UINT64_MAX;
    search->tries = weights->tries;
    enum tarn_status status =
        start(search, order, weights->slowdown_max > 0 ? PARTS_WITHIN_TIME : PARTS);
    if (search->starts++ == 0) weights->start = search->weight;
    if (status == TARN_OK && search->weight < UINT64_MAX) status = improve(search);
    *better = status == TARN_OK && search->weight < weights->after;
    if (!*better) return status;
    weights->after = search->weight;
    memcpy(search->kept, search->best, search->weighing.graph.ops_count * sizeof *search->kept);
    return status;
}

enum tarn_status tarn_reorder_streams_find_members(struct tarn_reorder_streams *search)
{
    uint64_t weight;
    enum tarn_status status = tarn_weighing_weigh(&search->weighing, search->kept, &weight);
    if (status == TARN_OK) find_members(search);
    return status;
}
