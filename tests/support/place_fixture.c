#include "place_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "random_graph.h"

void set_up(struct fixture *fixture, struct tarn_graph *graph, uint64_t alignment)
{
    struct tarn_clocks clocks;
    fixture->graph = graph;
    fixture->region = (struct tarn_region){.chunks = NULL};
    assert_int_equal(tarn_clocks_init(&clocks, &fixture->region, graph), TARN_OK);
    assert_int_equal(tarn_reuse_init(&fixture->reuse, &fixture->region, &clocks, graph), TARN_OK);
    assert_int_equal(
        tarn_blocks_init(&fixture->blocks, &fixture->region, graph, false, alignment, NULL),
        TARN_OK);
    assert_int_equal(
        tarn_conflicts_init(&fixture->conflicts, &fixture->region, &fixture->reuse, graph),
        TARN_OK);
    assert_int_equal(tarn_antichain_init(&fixture->antichain, &fixture->region, &fixture->reuse,
                                         graph, fixture->blocks.reserved),
                     TARN_OK);
    fixture->problem = (struct tarn_problem){graph, &fixture->blocks, &fixture->conflicts};
    assert_true(tarn_problem_is_valid(&fixture->problem));
}

void set_up_random(struct fixture *fixture, uint64_t seed, uint32_t ops_max)
{
    struct random_graph_options options = random_graph_knobs(seed, ops_max);
    set_up(fixture, random_graph(&options), UINT64_C(1) << (seed % 4 * 3));
}

void tear_down(struct fixture *fixture)
{
    tarn_region_finish(&fixture->region);
    tarn_graph_destroy(fixture->graph);
}
