/* The closure of stream order, waits and boundary waits by Warshall's method, a row of bits at a
 * time; nothing is known of clocks. Cost: O(nodes^2 * nodes / 64), O(ops * storages) for touches.
 */
#include "reach_oracle.h"

#include <assert.h>
#include <stdlib.h>

#include "plan_oracle.h"

static uint64_t *row(uint64_t *sets, const struct reach *reach, uint32_t i)
{
    return sets + (size_t)i * reach->words;
}

static void put(uint64_t *set, uint32_t node) { set[node / 64] |= UINT64_C(1) << node % 64; }

static bool has(const uint64_t *set, uint32_t node) { return set[node / 64] >> node % 64 & 1; }

static void *take(size_t count, size_t size)
{
    void *memory = calloc(count + 1, size);
    if (!memory) abort();
    return memory;
}

static void add_arc(struct reach *reach, uint32_t earlier, uint32_t later)
{
    put(row(reach->after, reach, earlier), later);
}

static void add_arcs(struct reach *reach)
{
    const struct tarn_plan *plan = reach->plan;
    uint32_t n = reach->listed;
    for (uint32_t s = 0; s < plan->streams_count; s++) {
        uint32_t begin = plan->list_begin[s], end = plan->list_begin[s + 1];
        for (uint32_t i = begin; i + 1 < end; i++) {
            add_arc(reach, i, i + 1);
            add_arc(reach, n + i, n + i + 1);
        }
        if (begin < end) add_arc(reach, end - 1, n + begin);
    }
    for (uint32_t i = 0; i < plan->waits_count; i++) {
        uint32_t op = reach->index[plan->waits[i].op], on = reach->index[plan->waits[i].on];
        add_arc(reach, on, op);
        add_arc(reach, n + on, n + op);
    }
    for (uint32_t i = 0; i < plan->boundary_waits_count; i++)
        add_arc(reach, reach->index[plan->boundary_waits[i].on],
                n + reach->index[plan->boundary_waits[i].op]);
}

static void close_arcs(struct reach *reach)
{
    for (uint32_t k = 0; k < 2 * reach->listed; k++) {
        const uint64_t *through = row(reach->after, reach, k);
        for (uint32_t i = 0; i < 2 * reach->listed; i++) {
            uint64_t *from = row(reach->after, reach, i);
            if (!has(from, k)) continue;
            for (uint32_t w = 0; w < reach->words; w++) from[w] |= through[w];
        }
    }
}

static void find_touches(struct reach *reach)
{
    const struct tarn_graph *graph = reach->plan->graph;
    for (uint32_t a = 0; a < graph->storages_count; a++) {
        for (uint32_t i = 0; i < reach->listed; i++) {
            if (!oracle_touches(graph, reach->plan->list[i], a)) continue;
            bool writes = oracle_writes(graph, reach->plan->list[i], a);
            for (uint32_t k = 0; k < 2; k++) {
                put(row(reach->touches[k], reach, a), k * reach->listed + i);
                if (writes) put(row(reach->writes[k], reach, a), k * reach->listed + i);
            }
        }
    }
}

struct reach *reach_create(const struct tarn_plan *plan)
{
    const struct tarn_graph *graph = plan->graph;
    struct reach *reach = take(1, sizeof *reach);
    reach->plan = plan;
    reach->listed = plan->list_begin[plan->streams_count];
    reach->words = (2 * reach->listed + 63) / 64;
    reach->index = take(graph->ops_count, sizeof *reach->index);
    reach->after = take((size_t)2 * reach->listed * reach->words, sizeof *reach->after);
    for (uint32_t k = 0; k < 2; k++) {
        size_t words = (size_t)graph->storages_count * reach->words;
        reach->touches[k] = take(words, sizeof **reach->touches);
        reach->writes[k] = take(words, sizeof **reach->writes);
    }
    for (uint32_t v = 0; v < graph->ops_count; v++) reach->index[v] = TARN_NONE;
    for (uint32_t i = 0; i < reach->listed; i++) reach->index[plan->list[i]] = i;
    add_arcs(reach);
    close_arcs(reach);
    find_touches(reach);
    return reach;
}

void reach_destroy(struct reach *reach)
{
    for (uint32_t k = 0; k < 2; k++) {
        free(reach->touches[k]);
        free(reach->writes[k]);
    }
    free(reach->index);
    free(reach->after);
    free(reach);
}

bool reach_has_cycle(const struct reach *reach)
{
    for (uint32_t i = 0; i < 2 * reach->listed; i++) {
        if (has(row(reach->after, reach, i), i)) return true;
    }
    return false;
}

bool reach_is_before(const struct reach *reach, uint32_t a, uint32_t i, uint32_t b, uint32_t j)
{
    return has(row(reach->after, reach, i * reach->listed + reach->index[a]),
               j * reach->listed + reach->index[b]);
}

bool reach_precedes(const struct reach *reach, uint32_t a, uint32_t i, uint32_t b, uint32_t j)
{
    const uint64_t *touches = row(reach->touches[i], reach, a);
    const uint64_t *writes = row(reach->writes[j], reach, b);
    for (uint32_t u = i * reach->listed; u < (i + 1) * reach->listed; u++) {
        if (!has(touches, u)) continue;
        const uint64_t *after = row(reach->after, reach, u);
        for (uint32_t w = 0; w < reach->words; w++) {
            if (writes[w] & ~after[w]) return false;
        }
    }
    return true;
}

bool reach_may_follow(const struct reach *reach, uint32_t a, uint32_t b)
{
    if (oracle_is_workspace_before(reach->plan->graph, a, b)) return true;
    return !reach->plan->graph->storages[a].pinned && reach_precedes(reach, a, 0, b, 0);
}

bool reach_may_share(const struct reach *reach, uint32_t a, uint32_t b)
{
    return reach_may_follow(reach, a, b) || reach_may_follow(reach, b, a);
}
