/* Plans one final graph. These functions do not change the graph, so transforms that need a graph's
 * footprint can plan the graph and hand the plan on. */
#ifndef TARN_PLANNER_PLAN_GRAPH_PLAN_GRAPH_H
#define TARN_PLANNER_PLAN_GRAPH_PLAN_GRAPH_H

#include "streams/plan/plan.h"

/* A graph and, if a step has made one, a plan of it. All zero: nothing. */
struct tarn_planned {
    struct tarn_graph *graph;
    struct tarn_plan *plan; /* NULL: none; its graph is `graph` */
    uint64_t needed;        /* if no plan fits, the bytes that the refusal names; else 0 */
};

void tarn_planned_finish(struct tarn_planned *planned);
/* Whether the plan, if there is one, is of the graph, and its footprint not below its bound. For
 * assertions. */
bool tarn_planned_is_valid(const struct tarn_planned *planned);

/* Translates an alias of a placement method to its name, ignoring case: "somas" is "baseline",
 * "roam" is "roam-tree". Any other word is returned as it is; NULL stays NULL. */
const char *tarn_plan_method_name(const char *word);

/* The options that a caller gave (NULL: all defaults), with the default for an alignment of 0.
 * TARN_USAGE: no plan can be made by them. */
enum tarn_status tarn_plan_options_take(struct tarn_plan_options *options,
                                        const struct tarn_plan_options *given,
                                        struct tarn_error *error);

/* No capacity of the graph counts: for comparing graphs, and for finding how many bytes are
 * missing. */
#define TARN_ALL_UNLIMITED UINT32_MAX

/* Makes lists, waits, bound and offsets of the graph, without transforms. The options come from
 * tarn_plan_options_take; their transforms and boundary are ignored. The plan has the simple
 * boundary and has not been verified. The capacities of the graph's first `unlimited` memory spaces
 * do not count; the plan may exceed them. The search ends at the first plan that fits the
 * capacities that count. The caller destroys it. TARN_DOES_NOT_FIT: no plan within the capacity was
 * found. TARN_SYSTEM: no memory. */
enum tarn_status tarn_plan_make(struct tarn_graph *graph, const struct tarn_plan_options *options,
                                uint32_t unlimited, struct tarn_plan **plan,
                                struct tarn_error *error);
/* The same for the graph of `planned`, which receives the plan, or the bytes needed. aims: as
 * above; else no capacity changes the search, so a larger one never makes the plan larger: the plan
 * is the one without it, or a refusal (but for exact search, and where a clock alone ends the
 * search). work_part: the search may do one part in work_part of the usual work. */
enum tarn_status tarn_planned_make(struct tarn_planned *planned,
                                   const struct tarn_plan_options *options, bool aims,
                                   uint32_t work_part, struct tarn_error *error);
/* For graphs with moves: storages that copies still read or write after the last other op has
 * ended change their places within their arenas, away from bytes that the next iteration
 * takes first. Footprints stay. *period_ns: the modelled time from an iteration to the next one is
 * at most that; 0: not computed. TARN_SYSTEM: no memory. */
enum tarn_status tarn_plan_settle_boundary(struct tarn_plan *plan, uint64_t *period_ns);
/* The end of a storage that has a fixed offset and reserves this many bytes, in whole alignments:
 * no arena ends before it. 0: the offset is not fixed, or no such plan is possible, as the end
 * takes more than 64 bits. */
uint64_t tarn_plan_fixed_end(const struct tarn_graph *graph, uint32_t storage, uint64_t reserved,
                             uint64_t alignment);
/* The smaller of the options' capacity and what the persistent part leaves of the first memory
 * space's capacity: the target of transforms. 0: the options have no capacity. */
enum tarn_status tarn_plan_capacity(const struct tarn_graph *graph,
                                    const struct tarn_plan_options *options, uint64_t *capacity,
                                    struct tarn_error *error);
/* Arena and persistent part of each memory space are within its capacity in the graph. */
bool tarn_plan_keeps_capacities(const struct tarn_plan *plan);

#endif
