/* A plan of one final graph. Nothing here changes the graph, so that transforms which have to know
 * what a graph comes to can be told by the plan itself, and hand it on. */
#ifndef TARN_PLANNER_PLAN_GRAPH_PLAN_GRAPH_H
#define TARN_PLANNER_PLAN_GRAPH_PLAN_GRAPH_H

#include "streams/plan/plan.h"

/* A graph and, where a step has made one, a plan of it. All zero: nothing. */
struct tarn_planned {
    struct tarn_graph *graph;
    struct tarn_plan *plan; /* NULL: none; its graph is `graph` */
    uint64_t needed;        /* where no plan fits, the bytes that the refusal names; 0: none */
};

void tarn_planned_finish(struct tarn_planned *planned);
/* Whether the plan, if there is one, is of the graph, and its footprint not below its bound. For
 * assertions. */
bool tarn_planned_is_valid(const struct tarn_planned *planned);

/* The name of a method of placement, for other words that it goes by, in any case: "somas" is
 * "baseline", "roam" is "roam-tree". Any other word is returned as it is; NULL stays NULL. */
const char *tarn_plan_method_name(const char *word);

/* The options that a caller gave (NULL: all defaults), with the default for an alignment of 0.
 * TARN_USAGE: no plan can be made by them. */
enum tarn_status tarn_plan_options_take(struct tarn_plan_options *options,
                                        const struct tarn_plan_options *given,
                                        struct tarn_error *error);

/* For comparing graphs, and for knowing how much is missing: no capacity of the graph counts. */
#define TARN_ALL_UNLIMITED UINT32_MAX

/* Lists, waits, bound and places of the graph as it is. Of the options, which have been taken as
 * above, transforms and the boundary do not count: the plan has the simple boundary, and it has not
 * been verified. The capacities of the graph's first `unlimited` memory spaces do not count; the
 * plan may exceed them. The caller destroys it. TARN_DOES_NOT_FIT: no plan within the capacity was
 * found. TARN_SYSTEM: no memory. */
enum tarn_status tarn_plan_make(struct tarn_graph *graph, const struct tarn_plan_options *options,
                                uint32_t unlimited, struct tarn_plan **plan,
                                struct tarn_error *error);
/* The same for the graph of `planned`, which receives the plan, or what is needed. */
enum tarn_status tarn_planned_make(struct tarn_planned *planned,
                                   const struct tarn_plan_options *options,
                                   struct tarn_error *error);
/* The options' capacity, or what the first memory space's own leaves beside its persistent part,
 * whichever is less: for transforms that are to come down to it. 0: the options have none. */
enum tarn_status tarn_plan_capacity(const struct tarn_graph *graph,
                                    const struct tarn_plan_options *options, uint64_t *capacity,
                                    struct tarn_error *error);
/* Arena and persistent part of each memory space are within its capacity in the graph. */
bool tarn_plan_keeps_capacities(const struct tarn_plan *plan);

#endif
