/* Clocks, events and the serial peak against a naive closure (Warshall over at most 64 ops), and
 * reserved sizes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "streams/base/region.h"
#include "streams/graph/clocks.h"
#include "streams/order/events/boundary.h"
#include "streams/order/events/events.h"
#include "streams/order/peak.h"
#include "streams/order/reserved.h"
#include "support/random_graph.h"

enum { OPS_MAX = 40, GRAPHS = DRAWS(4000) };

/* Bit u of before[v]: u happens strictly before v. */
struct closure {
    uint64_t before[64];
    uint32_t ops_count;
};

static void close_transitively(struct closure *closure)
{
    for (uint32_t middle = 0; middle < closure->ops_count; middle++) {
        for (uint32_t v = 0; v < closure->ops_count; v++) {
            if (closure->before[v] >> middle & 1) closure->before[v] |= closure->before[middle];
        }
    }
}

/* Happens-before from the graph's own words: stream order, data arcs, control arcs. */
static struct closure closure_of_graph(const struct tarn_graph *graph)
{
    struct closure closure = {.ops_count = graph->ops_count};
    uint32_t last[64];
    memset(last, 0xff, sizeof last);
    for (uint32_t v = 0; v < graph->ops_count; v++) {
        const struct tarn_graph_op *op = &graph->ops[v];
        const struct tarn_op_extra *extra = tarn_extra(op);
        if (last[op->stream] != TARN_NONE) closure.before[v] |= UINT64_C(1) << last[op->stream];
        last[op->stream] = v;
        for (uint32_t k = 0; k < op->inputs_count; k++) {
            uint32_t producer = graph->tensors[op->inputs[k]].producer;
            if (producer != TARN_NONE) closure.before[v] |= UINT64_C(1) << producer;
        }
        for (uint32_t k = 0; k < extra->control_count; k++)
            closure.before[v] |= UINT64_C(1) << extra->control[k];
    }
    close_transitively(&closure);
    return closure;
}

/* Happens-before among launched ops from launch lists and waits, one wait left out. */
static struct closure closure_of_waits(const struct tarn_graph *graph,
                                       const struct tarn_wait *waits, uint32_t count, uint32_t omit)
{
    struct closure closure = {.ops_count = graph->ops_count};
    uint32_t last[64];
    memset(last, 0xff, sizeof last);
    for (uint32_t v = 0; v < graph->ops_count; v++) {
        if (graph->ops[v].view) continue;
        uint32_t s = graph->ops[v].stream;
        if (last[s] != TARN_NONE) closure.before[v] |= UINT64_C(1) << last[s];
        last[s] = v;
    }
    for (uint32_t w = 0; w < count; w++) {
        if (w != omit) closure.before[waits[w].op] |= UINT64_C(1) << waits[w].on;
    }
    close_transitively(&closure);
    return closure;
}

static bool same_order_among_launched(const struct tarn_graph *graph, const struct closure *a,
                                      const struct closure *b)
{
    uint64_t launched = 0;
    for (uint32_t v = 0; v < graph->ops_count; v++) {
        if (!graph->ops[v].view) launched |= UINT64_C(1) << v;
    }
    for (uint32_t v = 0; v < graph->ops_count; v++) {
        if (launched >> v & 1 && (a->before[v] & launched) != (b->before[v] & launched))
            return false;
    }
    return true;
}

static struct tarn_graph *graph_of_seed(uint64_t seed)
{
    struct random_graph_options options = random_graph_knobs(seed, OPS_MAX);
    options.early_share = seed % 2 * 60;
    struct tarn_graph *graph = random_graph(&options);
    assert_true(graph->ops_count <= 64 && graph->streams_count <= 64);
    return graph;
}

static void clocks_equal_the_closure(void **state)
{
    (void)state;
    uint64_t ordered = 0;
    for (uint64_t seed = 0; seed < GRAPHS; seed++) {
        struct tarn_graph *graph = graph_of_seed(seed);
        struct closure closure = closure_of_graph(graph);
        struct tarn_region region = {.chunks = NULL};
        struct tarn_clocks clocks;
        assert_int_equal(tarn_clocks_init(&clocks, &region, graph), TARN_OK);
        assert_true(tarn_clocks_is_valid(&clocks, graph));
        for (uint32_t a = 0; a < graph->ops_count; a++) {
            for (uint32_t b = 0; b < graph->ops_count; b++) {
                bool expected = closure.before[b] >> a & 1;
                ordered += expected;
                if (a != b) assert_int_equal(tarn_clocks_before(&clocks, graph, a, b), expected);
            }
        }
        tarn_region_finish(&region);
        tarn_graph_destroy(graph);
    }
    assert_true(ordered > GRAPHS);
}

static void waits_keep_happens_before_and_none_can_go(void **state)
{
    (void)state;
    uint64_t kept = 0;
    for (uint64_t seed = 0; seed < GRAPHS; seed++) {
        struct tarn_graph *graph = graph_of_seed(seed);
        struct closure wanted = closure_of_graph(graph);
        struct tarn_region region = {.chunks = NULL};
        struct tarn_wait *waits;
        uint32_t count;
        assert_int_equal(tarn_events_minimal(graph, &region, &waits, &count), TARN_OK);
        struct closure got = closure_of_waits(graph, waits, count, TARN_NONE);
        assert_true(same_order_among_launched(graph, &wanted, &got));
        for (uint32_t w = 0; w < count; w++) {
            assert_int_not_equal(graph->ops[waits[w].op].stream, graph->ops[waits[w].on].stream);
            struct closure less = closure_of_waits(graph, waits, count, w);
            assert_false(same_order_among_launched(graph, &wanted, &less));
        }
        kept += count;
        tarn_region_finish(&region);
        tarn_graph_destroy(graph);
    }
    assert_true(kept > GRAPHS);
}

static void simple_boundary_puts_iterations_one_after_another(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < GRAPHS; seed++) {
        struct tarn_graph *graph = graph_of_seed(seed);
        uint32_t first[64], last[64], busy = 0;
        memset(first, 0xff, sizeof first);
        memset(last, 0xff, sizeof last);
        for (uint32_t v = 0; v < graph->ops_count; v++) {
            if (graph->ops[v].view) continue;
            uint32_t s = graph->ops[v].stream;
            if (first[s] == TARN_NONE) {
                first[s] = v;
                busy++;
            }
            last[s] = v;
        }
        struct tarn_region region = {.chunks = NULL};
        struct tarn_wait *waits;
        uint32_t count;
        assert_int_equal(tarn_boundary_simple(graph, &region, &waits, &count), TARN_OK);
        assert_int_equal(count, busy == 0 ? 0 : busy * (busy - 1));
        for (uint32_t w = 0; w < count; w++) {
            uint32_t s = graph->ops[waits[w].op].stream, t = graph->ops[waits[w].on].stream;
            assert_int_not_equal(s, t);
            assert_int_equal(waits[w].op, first[s]);
            assert_int_equal(waits[w].on, last[t]);
        }
        tarn_region_finish(&region);
        tarn_graph_destroy(graph);
    }
}

/* Is a storage absent from this half of the op? The first one has a workspace that ends early, the
 * second one the outputs. */
static bool is_of_other_half(const struct tarn_graph *graph, uint32_t a, uint32_t op, uint32_t half)
{
    if (!graph->ops[op].workspace_first || graph->storages[a].producer != op) return false;
    return (graph->storages[a].tensor == TARN_NONE) == (half == 1);
}

/* The peak by asking in both halves of every step which storages are alive. */
static uint64_t naive_peak(const struct tarn_graph *graph)
{
    uint64_t peak = 0;
    for (uint32_t half = 0; half < 2 * graph->ops_count; half++) {
        uint64_t alive = 0;
        uint32_t step = half / 2;
        for (uint32_t a = 0; a < graph->planned_count; a++) {
            const struct tarn_storage *storage = &graph->storages[a];
            bool begun = graph->rank[storage->producer] <= step;
            if (is_of_other_half(graph, a, graph->order[step], half % 2)) continue;
            bool needed = storage->pinned;
            for (uint32_t k = 0; k < storage->users_count; k++)
                needed |= graph->rank[tarn_storage_users(graph, storage)[k]] >= step;
            if (begun && needed) alive += storage->size;
        }
        if (alive > peak) peak = alive;
    }
    return peak;
}

static void serial_peak_equals_the_naive_one(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < GRAPHS; seed++) {
        struct tarn_graph *graph = graph_of_seed(seed);
        uint64_t peak;
        assert_int_equal(tarn_peak_serial(graph, &peak), TARN_OK);
        assert_int_equal(peak, naive_peak(graph));
        tarn_graph_destroy(graph);
    }
}

/* ---- Reserved sizes ---- */

static uint64_t round_up(uint64_t size, uint64_t alignment)
{
    return (size + alignment - 1) / alignment * alignment;
}

/* Of a storage by itself: its group is looked through for it. */
static uint64_t naive_reserved(const struct tarn_graph *graph, uint32_t a, uint64_t alignment)
{
    const struct tarn_storage *storage = &graph->storages[a];
    uint64_t sum = 0;
    if (storage->group == TARN_NONE) return round_up(storage->size, alignment);
    const struct tarn_group *group = &graph->groups[storage->group];
    if (group->storages[group->storages_count - 1] != a) return storage->size;
    for (uint32_t i = 0; i < group->storages_count; i++)
        sum += graph->storages[group->storages[i]].size;
    return storage->size + round_up(sum, alignment) - sum;
}

static void padding_is_behind_lone_storages_and_whole_groups(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < GRAPHS / 4; seed++) {
        struct tarn_region region = {.chunks = NULL};
        const uint64_t *reserved;
        uint64_t alignment = UINT64_C(1) << seed % 12;
        struct tarn_graph *graph =
            random_graph(&(struct random_graph_options){.seed = seed,
                                                        .ops = 1 + (uint32_t)seed % OPS_MAX,
                                                        .streams = 2,
                                                        .parameters = 3,
                                                        .group_share = 30,
                                                        .alignment_share = 20,
                                                        .tiny_share = 10});
        assert_int_equal(tarn_reserved_sizes(&reserved, &region, graph, alignment, NULL), TARN_OK);
        for (uint32_t a = 0; a < graph->planned_count; a++)
            assert_true(reserved[a] == naive_reserved(graph, a, alignment));
        tarn_region_finish(&region);
        tarn_graph_destroy(graph);
    }
}

static void sizes_whose_padding_leaves_64_bits_are_refused(void **state)
{
    (void)state;
    struct tarn_region region = {.chunks = NULL};
    struct tarn_error error = {.status = TARN_OK};
    const uint64_t *reserved;
    struct tarn_graph *graph =
        random_graph(&(struct random_graph_options){.seed = 1, .ops = 8, .streams = 1});
    uint64_t alignment = UINT64_C(1) << 63;
    assert_int_equal(tarn_reserved_sizes(&reserved, &region, graph, alignment, &error),
                     TARN_BAD_INPUT);
    assert_non_null(strstr(error.text, "use a smaller alignment"));
    tarn_region_finish(&region);
    tarn_graph_destroy(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clocks_equal_the_closure),
        cmocka_unit_test(waits_keep_happens_before_and_none_can_go),
        cmocka_unit_test(simple_boundary_puts_iterations_one_after_another),
        cmocka_unit_test(serial_peak_equals_the_naive_one),
        cmocka_unit_test(padding_is_behind_lone_storages_and_whole_groups),
        cmocka_unit_test(sizes_whose_padding_leaves_64_bits_are_refused),
    };
    return cmocka_run_group_tests_name("order", tests, NULL, NULL);
}
