/* All ranks have the same graph and the same plan, or none of them trains. */
#ifndef AGREE_H
#define AGREE_H

#include "network.h"

/* Ends the program, on all ranks, unless all of them have the same graph as rank 0. */
void agree_on_graph(const struct tarn_graph *graph);

/* What transforms did on rank 0. */
struct planned {
    struct tarn_reorder_report reorder;
    struct tarn_couple_report couple;
    struct tarn_in_place_report in_place;
    struct tarn_budget_report budget;
};
/* Rank 0 plans, or reads the plan from a file, and sends it; the others prove it against their own
 * graph and compare its identity. */
struct tarn_plan *agree_on_plan(struct tarn_graph *graph, const struct options *options,
                                struct planned *planned);

#endif
