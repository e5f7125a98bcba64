/* A plan in which nothing shares memory: what runs over it is right if the order alone is kept. */
#ifndef TARN_TESTS_SUPPORT_UNSHARED_PLAN_H
#define TARN_TESTS_SUPPORT_UNSHARED_PLAN_H

#include "streams/plan/plan.h"

/* Never NULL; the caller destroys it. */
struct tarn_plan *unshared_plan(struct tarn_graph *graph, uint64_t alignment);

#endif
