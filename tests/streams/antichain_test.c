/* The bound is the heaviest clique of unsafe storages, found here by branching over all of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "streams/base/region.h"
#include "streams/order/antichain.h"
#include "streams/order/flow.h"
#include "streams/order/peak.h"
#include "support/heaviest.h"
#include "support/random_graph.h"

enum { OPS_MAX = 12, GRAPHS = DRAWS(100000), STORAGES_MAX = 24 };

static uint64_t oracle(const struct tarn_reuse *reuse, const uint64_t *weight)
{
    uint32_t unsafe[STORAGES_MAX] = {0};
    for (uint32_t a = 0; a < reuse->count; a++) {
        for (uint32_t b = 0; b < reuse->count; b++) {
            if (a != b && !tarn_reuse_is_safe(reuse, a, b)) unsafe[a] |= UINT32_C(1) << b;
        }
    }
    return heaviest_clique(unsafe, weight, (uint32_t)((UINT64_C(1) << reuse->count) - 1));
}

/* Whatever the work limit, the thresholds name an antichain of the weight that is told. */
static void check_limits(const struct tarn_graph *graph, const struct tarn_reuse *reuse,
                         const uint64_t *weight, uint64_t most, uint32_t *below)
{
    uint64_t peak;
    assert_int_equal(tarn_peak_of(graph, weight, &peak), TARN_OK);
    for (uint64_t work = 0; work <= 64; work += 32) {
        struct tarn_region region = {.chunks = NULL};
        struct tarn_antichain antichain;
        assert_int_equal(
            tarn_antichain_init_within(&antichain, &region, reuse, graph, weight, work), TARN_OK);
        assert_int_equal(antichain.bound,
                         tarn_antichain_weight(antichain.threshold, reuse, weight));
        assert_true(antichain.bound <= most);
        assert_true(antichain.bound == most || antichain.bound >= peak);
        *below += antichain.bound < most;
        tarn_region_finish(&region);
    }
}

/* No step of the flow loses or makes a byte, and no limit of work but the last ends it early: then
 * what no op can be given is the heaviest antichain. */
static void check_flow(const struct tarn_graph *graph, const struct tarn_reuse *reuse,
                       const uint64_t *weight, uint64_t most)
{
    struct tarn_region region = {.chunks = NULL};
    struct tarn_flow flow;
    uint32_t threshold[64];
    uint64_t left = 0;
    bool maximal = false;
    assert_true(tarn_flow_init(&flow, &region, reuse, graph, weight));
    assert_true(tarn_flow_is_valid(&flow, weight));
    assert_true(tarn_flow_greedy(&flow));
    assert_true(tarn_flow_is_valid(&flow, weight));
    while (!maximal) {
        assert_true(tarn_flow_augment(&flow, 64, threshold, &maximal));
        assert_true(tarn_flow_is_valid(&flow, weight));
    }
    for (uint32_t a = 0; a < reuse->count; a++) left += flow.left[a];
    assert_int_equal(left, most);
    tarn_region_finish(&region);
}

/* Of storages of one size: those of a chain follow each other safely, whatever the limit of work,
 * and without one there are as many chains as the heaviest antichain has members. */
static void check_chains(const struct tarn_graph *graph, const struct tarn_reuse *reuse)
{
    uint64_t weight[STORAGES_MAX];
    for (uint32_t a = 0; a < reuse->count; a++) weight[a] = 7;
    for (uint64_t work = 0; work <= 64; work += 64) {
        struct tarn_region region = {.chunks = NULL};
        struct tarn_antichain antichain;
        assert_int_equal(tarn_antichain_init_within(&antichain, &region, reuse, graph, weight,
                                                    work == 0 ? 0 : UINT64_MAX),
                         TARN_OK);
        assert_true(antichain.chain || reuse->count == 0);
        for (uint32_t a = 0; a < reuse->count; a++) {
            assert_true(antichain.chain[a] < antichain.chains_count);
            for (uint32_t b = 0; b < a; b++)
                if (antichain.chain[a] == antichain.chain[b])
                    assert_true(tarn_reuse_is_safe(reuse, a, b));
        }
        if (work > 0) assert_int_equal(antichain.chains_count * 7, antichain.bound);
        tarn_region_finish(&region);
    }
}

static void bound_is_the_heaviest_clique(void **state)
{
    (void)state;
    uint32_t compared = 0, below = 0;
    for (uint64_t seed = 0; seed < GRAPHS; seed++) {
        struct random_graph_options options = random_graph_knobs(seed, OPS_MAX);
        struct tarn_graph *graph = random_graph(&options);
        struct tarn_region region = {.chunks = NULL};
        struct tarn_clocks clocks;
        struct tarn_reuse reuse;
        struct tarn_antichain antichain;
        assert_int_equal(tarn_clocks_init(&clocks, &region, graph), TARN_OK);
        assert_int_equal(tarn_reuse_init(&reuse, &region, &clocks, graph), TARN_OK);
        assert_true(tarn_reuse_is_valid(&reuse));
        if (reuse.count <= STORAGES_MAX) {
            uint64_t weight[STORAGES_MAX];
            for (uint32_t a = 0; a < reuse.count; a++) weight[a] = graph->storages[a].size;
            assert_int_equal(tarn_antichain_init(&antichain, &region, &reuse, graph, weight),
                             TARN_OK);
            assert_int_equal(antichain.bound, oracle(&reuse, weight));
            check_limits(graph, &reuse, weight, antichain.bound, &below);
            if (seed % 4 == 0) check_flow(graph, &reuse, weight, antichain.bound);
            if (seed % 4 == 1) check_chains(graph, &reuse);
            compared++;
        }
        tarn_region_finish(&region);
        tarn_graph_destroy(graph);
    }
    assert_true(compared > GRAPHS / 2);
    assert_true(below > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bound_is_the_heaviest_clique),
    };
    return cmocka_run_group_tests_name("antichain", tests, NULL, NULL);
}
