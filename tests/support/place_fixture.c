/* A problem with its rows of conflicts, which tests look at one by one. */
#include "place_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "random_graph.h"
#include "tarn/plan.h"

void set_up(struct fixture *fixture, struct tarn_graph *graph, uint64_t alignment)
{
    *fixture = (struct fixture){.graph = graph};
    assert_int_equal(tarn_problem_init(&fixture->problem, &fixture->region, graph, alignment, NULL),
                     TARN_OK);
    assert_int_equal(tarn_conflicts_init_rows(&fixture->problem.conflicts, &fixture->region),
                     TARN_OK);
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

void assert_meets_its_bound(struct tarn_graph *graph, const char *method)
{
    struct tarn_plan_summary summary;
    struct tarn_plan *plan;
    assert_int_equal(tarn_plan_create(graph, TARN_PLAN_OPTIONS(.effort = 1000), &plan, NULL),
                     TARN_OK);
    tarn_plan_summarize(plan, &summary);
    assert_int_equal(summary.footprint, summary.bound);
    if (method) assert_string_equal(summary.method, method);
    tarn_plan_destroy(plan);
    tarn_graph_destroy(graph);
}
