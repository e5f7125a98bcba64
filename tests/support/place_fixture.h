/* A graph with all that placing it takes, for tests of placement. */
#ifndef TARN_TESTS_SUPPORT_PLACE_FIXTURE_H
#define TARN_TESTS_SUPPORT_PLACE_FIXTURE_H

#include "planner/place/problem/problem.h"
#include "streams/base/region.h"

struct fixture {
    struct tarn_region region; /* of the problem */
    struct tarn_graph *graph;
    struct tarn_problem problem; /* its conflicts have rows */
};

/* The graph becomes the fixture's. */
void set_up(struct fixture *fixture, struct tarn_graph *graph, uint64_t alignment);
/* One of random_graph_knobs, at alignments 1, 8, 64 and 512 in turn. */
void set_up_random(struct fixture *fixture, uint64_t seed, uint32_t ops_max);
void tear_down(struct fixture *fixture);

/* Plans a graph without a clock, at effort 1000, and destroys it: the footprint is the bound, found
 * by that method; NULL: by any. */
void assert_meets_its_bound(struct tarn_graph *graph, const char *method);

#endif
