/* The plan: the contract between planner and runtime. Plain arrays; immutable once made. */
#ifndef TARN_STREAMS_PLAN_PLAN_H
#define TARN_STREAMS_PLAN_PLAN_H

#include <assert.h>
#include <stdatomic.h>

#include "streams/base/region.h"
#include "streams/graph/graph.h"
#include "tarn/plan.h"

struct tarn_program;

/* The offset of one storage: id is the root tensor (storages, persistent) or the op
 * (workspaces). */
struct tarn_place {
    uint32_t id;
    uint64_t offset;
    uint64_t size; /* exact bytes */
};

/* A lower bound on the arena, with the certificate that proves it. */
struct tarn_claim {
    uint64_t bound; /* bytes; meaningful only with its certificate: */
    /* By stream, the number of its launches before the cut. Storages that are produced before the
     * cut, and whose bytes no op before the cut may reuse, are unsafe with each other. NULL: no
     * certificate. See order/antichain.h; places count launches as in program.h. */
    uint32_t *threshold;
    uint32_t *gaps;   /* root tensors, ascending: first members of gaps, see order/gaps.c */
    uint32_t *inside; /* streams, ascending: the cut lies inside their next launch, after its
                       * workspace and before its outputs */
    /* By conditional, the arm taken in the iteration of the bound; NULL: the graph has no
     * conditionals. */
    uint32_t *arms;
    uint32_t gaps_count, inside_count, arms_count;
};

/* Does a planned storage exist in an iteration in which these arms are taken, by conditional? */
static inline bool tarn_storage_is_there(const struct tarn_graph *graph, uint32_t storage,
                                         const uint32_t *arms)
{
    const struct tarn_op_extra *extra = tarn_extra(&graph->ops[graph->storages[storage].producer]);
    for (uint32_t i = 0; i < extra->branch_count; i++)
        if (arms[extra->branch[i][0]] != extra->branch[i][1]) return false;
    return true;
}

/* A memory space's part of a plan. Planned storages of space s lie in [begin, begin + footprint) of
 * one range of offsets that all spaces share, one after another; persistent storages likewise. */
struct tarn_plan_space {
    uint64_t begin, footprint;
    uint64_t persistent_begin, persistent;
    struct tarn_claim claim;
    char *method;
};

struct tarn_plan {
    struct tarn_region region;          /* of the method, and of all arrays but boundary_waits */
    struct tarn_region boundary_region; /* of boundary_waits, which are replaced as a whole */
    atomic_uint references;
    struct tarn_graph *graph; /* final graph; retained */
    /* The program that sessions run, compiled at the first call of tarn_plan_program; NULL before
     * that. */
    _Atomic(struct tarn_program *) program;
    enum tarn_group_padding pad_groups; /* of all groups, if the source graph does not decide it */
    /* Kinds of ops that the caller allowed to write their outputs over their inputs, when the plan
     * was made or loaded. No file has them: a plan cannot grant itself permissions. */
    const char *const *in_place_kinds;
    size_t in_place_kinds_count;
    bool transformed; /* the final graph is not the source graph: embed it in the file */
    struct tarn_hash source_hash;
    char *method;
    const char *asked; /* see tarn_plan_asked; NULL: not known */
    uint64_t alignment;
    uint64_t footprint;
    uint64_t persistent;       /* bytes of the persistent part */
    struct tarn_window window; /* of symmetric groups; size 0: none */
    struct tarn_claim claim;
    /* NULL: the graph has one space, and the fields above describe it. Else by space; footprint and
     * persistent above are sums, claim and method the first space's. */
    struct tarn_plan_space *spaces;
    uint32_t spaces_count; /* of `spaces` */
    uint32_t streams_count;
    uint32_t *list_begin; /* streams_count + 1; the ops of stream s are list[list_begin[s]..] */
    uint32_t *list;       /* launched ops in launch order */
    struct tarn_wait *waits;
    struct tarn_wait *boundary_waits; /* `on` is an op of the previous iteration */
    uint32_t waits_count, boundary_waits_count;
    struct tarn_place *storages; /* sorted by id, as are the next two */
    struct tarn_place *workspaces;
    struct tarn_place *places_persistent;
    uint32_t storages_count, workspaces_count, places_persistent_count;
    double transform_ms, order_ms, place_ms, verify_ms;
    enum tarn_stop stopped;
    enum tarn_end ended;
};

struct tarn_plan *tarn_plan_retain(struct tarn_plan *plan);

/* A plan with stream lists, waits and boundary waits of the graph filled in and its places filled
 * in (ids and sizes set, offsets zero); the planner sets the offsets. NULL: no memory. */
struct tarn_plan *tarn_plan_of_graph(struct tarn_graph *graph);

/* Stores the kinds that the caller allows to write over inputs, instead of earlier ones; false: no
 * memory. */
bool tarn_plan_allow(struct tarn_plan *plan, const char *const *kinds, size_t count);

/* Replaces the boundary waits, which tarn_plan_of_graph makes by the simple rule, by waits of the
 * refined rule, which depend on the offsets. TARN_SYSTEM: no memory; the plan is unchanged. */
enum tarn_status tarn_plan_refine_boundary(struct tarn_plan *plan);

/* Is a given group padded, if the caller decides it for all groups? Groups with overlapping members
 * or offsets stay exact. */
static inline bool tarn_group_is_padded(const struct tarn_graph *graph,
                                        const struct tarn_group *given,
                                        enum tarn_group_padding padding)
{
    bool is_layered = given->storages_count > 0 &&
                      graph->groups[graph->storages[given->storages[0]].group].within;
    if (padding == TARN_GROUPS_AS_GIVEN || is_layered || given->offsets) return given->padded;
    return padding == TARN_GROUPS_PADDED;
}

/* Makes the smallest range that has all symmetric groups the plan's window. pre: the plan has all
 * places. */
void tarn_plan_set_window(struct tarn_plan *plan);

/* Finds a place by id, or NULL. */
const struct tarn_place *tarn_place_find(const struct tarn_place *places, uint32_t count,
                                         uint32_t id);

/* The start of a storage's space in its range of offsets. */
static inline uint64_t tarn_plan_space_begin(const struct tarn_plan *plan, uint32_t space,
                                             bool persistent)
{
    if (!plan->spaces) return 0;
    return persistent ? plan->spaces[space].persistent_begin : plan->spaces[space].begin;
}

/* The footprint of the first space, to which budgets and capacities apply. */
static inline uint64_t tarn_plan_footprint(const struct tarn_plan *plan)
{
    return plan->spaces ? plan->spaces[0].footprint : plan->footprint;
}

/* Lays the spaces out one after another, and sums them up; offsets are not changed. False: the sum
 * does not fit in 64 bits. */
bool tarn_plan_stack_spaces(struct tarn_plan *plan);

/* The place of a storage of the plan's graph, by storage index. pre: the plan has all places. */
static inline const struct tarn_place *tarn_plan_place(const struct tarn_plan *plan, uint32_t a)
{
    assert(a < plan->graph->storages_count);
    if (a < plan->storages_count) return &plan->storages[a];
    if (a < plan->graph->planned_count) return &plan->workspaces[a - plan->storages_count];
    return &plan->places_persistent[a - plan->graph->planned_count];
}

/* A storage's offset from the start of its space's arena, or persistent part. */
static inline uint64_t tarn_plan_offset_in_space(const struct tarn_plan *plan, uint32_t a)
{
    const struct tarn_storage *storage = &plan->graph->storages[a];
    return tarn_plan_place(plan, a)->offset -
           tarn_plan_space_begin(plan, storage->space, storage->persistent);
}

#endif
