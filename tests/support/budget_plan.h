/* What tests of budgets ask of a graph, at one alignment. */
#ifndef TARN_TESTS_SUPPORT_BUDGET_PLAN_H
#define TARN_TESTS_SUPPORT_BUDGET_PLAN_H

#include "tarn.h"

enum { BUDGET_ALIGNMENT = 16 };

/* Bytes of keeping everything, placed without any search. A failure ends the test. */
uint64_t budget_footprint_of(struct tarn_graph *graph);

/* effort: 0, the default. */
enum tarn_status budget_plan_within(struct tarn_graph *graph, uint64_t budget, uint64_t effort,
                                    struct tarn_budget_report *report, struct tarn_plan **plan,
                                    struct tarn_error *error);

/* The graph in so many streams. Takes the graph over. A failure ends the test. */
struct tarn_graph *budget_assigned(struct tarn_graph *graph, uint32_t streams);

#endif
