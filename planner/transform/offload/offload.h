/* Plans moves: storages that idle between two uses wait in another memory, so that the first memory
 * keeps to a budget.
 *
 * A *gap* lies between two neighbouring uses `left` and `right` of a storage in list order. On a
 * stream of its own, `out` copies the storage to the other memory once its last write before the
 * gap has ended; on another one, `into` copies it back, to a storage of its own, before `right`.
 * What frees the bytes, in every interleaving, are two arcs that hang on ops, not on times:
 *
 *     out -> release     the first op of the main stream that may use the bytes
 *     trigger -> into    the last op of the main stream before the bytes are taken again
 *
 * The main stream is the one whose ops make most bytes. A wrong bandwidth costs time only. A
 * version that is unchanged since it was copied needs no second copy for a later gap.
 *
 *     list    write   left     release        trigger     right
 *     device  ████████████████████│                │██████████████
 *     out          ═════════════▶ │                │
 *     into                        │                │═══▶
 *
 * Persistent storages may move, too. Such a storage lies in the other memory, and is in the arena
 * of the first memory only around its uses. Before its first use it has a gap without `out`, after
 * its last use a gap without `into`; for a budget these two gaps are always used. A storage that
 * the iteration has not written yet needs no `out`, since the other memory has its bytes.
 *
 * The graph is looked at op by op in list order; places are ranks. Op p is slot 2 p, the time
 * between p and p + 1 is slot 2 p + 1: on the device a moved storage takes the slots up to 2
 * release - 1 and all slots starting at 2 trigger + 1. */
#ifndef TARN_PLANNER_TRANSFORM_OFFLOAD_OFFLOAD_H
#define TARN_PLANNER_TRANSFORM_OFFLOAD_OFFLOAD_H

#include "streams/base/deadline.h"
#include "streams/base/region.h"
#include "streams/graph/graph.h"

/* The cost of copies, and the storages that may move. */
struct tarn_offload_terms {
    uint64_t out_bytes_per_second, into_bytes_per_second;
    uint64_t latency_ns; /* of each copy, beside its bytes */
    uint64_t wait_ns;    /* that an event wait takes */
    uint64_t alignment;  /* of the plan */
    uint64_t bytes_min;  /* smaller storages stay */
    unsigned kinds;      /* enum tarn_offload_kind */
    tarn_space space;  /* the memory space in which they wait; TARN_NONE: the first pinned space, or
                          else a new one */
    uint64_t capacity; /* of a new space; 0: no limit */
    const char *out_stream, *into_stream;
};

struct tarn_offload_gap {
    uint32_t storage;
    uint32_t copy; /* gaps of one version share the copy to the other memory */
    uint32_t write, left, right;
    uint64_t size; /* reserved bytes */
    uint64_t out_ns, into_ns;
    uint32_t others, others_count; /* in `others` of the model: the last user of each other stream
                                      up to `left`, for which a release waits, too */
    uint32_t later, later_count;   /* in `others`, too: of each stream other than that of `right`,
                                      the first user after it, which waits for the copy back, too */
    bool has_out,
        has_into;   /* else nothing is to be copied out of it, or it ends with the iteration */
    bool is_first;  /* it begins with the iteration */
    bool is_forced; /* for a budget it is always used; else with all such gaps of its storage */
};

/* The arcs of a gap that is used. */
struct tarn_offload_arcs {
    uint32_t gap;
    uint32_t release, trigger; /* trigger TARN_NONE: before all ops */
    uint32_t rank;             /* of its copy in the stream of outs */
    uint32_t after;            /* the op after which this copy stands in the list */
};

/* Some gaps with their arcs, and the resulting peak and time in the model. */
struct tarn_offload_choice {
    struct tarn_offload_arcs *arcs; /* of the model's region */
    uint32_t count;
    uint64_t peak;    /* of the list, in reserved bytes */
    uint64_t time_ns; /* copies included */
};

struct tarn_offload_model {
    const struct tarn_graph *graph;
    struct tarn_offload_terms terms;
    struct tarn_region *region;
    const uint64_t *reserved; /* by planned storage */
    uint32_t count;           /* of ops, views included */
    uint32_t *stream;         /* by place, like all arrays below */
    uint64_t *cost;
    int64_t *base;          /* by slot: reserved bytes if nothing moves */
    int64_t *start0, *end0; /* the clock if nothing moves, ns */
    uint32_t main;          /* stream */
    uint32_t *main_ops;     /* its launched ops, ascending places */
    uint32_t main_count;
    uint32_t *main_next;   /* by place, and two more: how many of them come before */
    uint32_t *main_before; /* by place: the last launched op of the main stream up to there */
    struct tarn_offload_gap *gaps; /* by left, then storage */
    uint32_t gaps_count, copies_count;
    uint32_t *by_right; /* gaps by right, then left, then storage */
    uint32_t *others;   /* places; see struct tarn_offload_gap */
    uint32_t others_count;
    uint32_t *waits_begin, *waits; /* by place, and one more: gaps for whose copy back the place
                                      waits although it is not their `right` */
    uint64_t peak0, time0_ns;
};

/* The graph outlives the model; arrays are of the region. TARN_SYSTEM: no memory; TARN_BAD_INPUT:
 * as tarn_reserved_sizes. */
enum tarn_status tarn_offload_model_init(struct tarn_offload_model *model,
                                         struct tarn_region *region, const struct tarn_graph *graph,
                                         const struct tarn_offload_terms *terms,
                                         struct tarn_error *error);

/* Sets the time of all later copies to this percentage of what the terms say. */
void tarn_offload_slow(struct tarn_offload_model *model, uint64_t percent);

/* Chooses gaps whose copies make no op wait, until the list's peak is at most `budget` or no
 * further gap lowers the peak. Of what persists that moves for which this holds, too, copies behind
 * the last op counted. TARN_SYSTEM: no memory. */
enum tarn_status tarn_offload_free(struct tarn_offload_model *model, uint64_t budget,
                                   const struct tarn_deadline *deadline,
                                   struct tarn_offload_choice *choice);

/* Finds the choice of the smallest modelled time with the list's peak at most `budget`. A choice
 * without arcs and with a peak above the budget means that none was found. work: limit of the
 * search, in about nanoseconds. */
enum tarn_status tarn_offload_within(struct tarn_offload_model *model, uint64_t budget,
                                     uint64_t work, const struct tarn_deadline *deadline,
                                     struct tarn_offload_choice *choice);

/* Spends the bytes that the budget leaves on earlier triggers and later releases, so that copies
 * slower than modelled make no op wait. The peak stays at most the larger of the budget and the
 * present peak. */
enum tarn_status tarn_offload_relax(struct tarn_offload_model *model, uint64_t budget,
                                    struct tarn_offload_choice *choice);

/* A lower bound of the time of all moves within the budget, for the given order of the ops of each
 * stream; `again`: of moves together with computing again and with other implementations. What
 * persists and moves is in the other memory. UINT64_MAX: there are none. Once the deadline is over,
 * the bound is what has been proved until then. Costs: bound.c. TARN_SYSTEM: no memory. */
enum tarn_status tarn_offload_no_less(const struct tarn_offload_model *model, uint64_t budget,
                                      bool again, const struct tarn_deadline *deadline,
                                      uint64_t *ns);

/* May the storage move at all? */
bool tarn_offload_may_move(const struct tarn_offload_model *model, uint32_t storage);
bool tarn_offload_writes(const struct tarn_graph *graph, uint32_t op, uint32_t storage);

/* Builds the graph with the moves of the choice, which must not be empty. Tensors keep their ids.
 * The caller destroys it. */
enum tarn_status tarn_offload_build(const struct tarn_offload_model *model,
                                    const struct tarn_offload_choice *choice,
                                    struct tarn_graph **result, struct tarn_error *error);

/* For tests: the modelled time and peak of gaps with arcs. */
enum tarn_status tarn_offload_evaluate(struct tarn_offload_model *model,
                                       struct tarn_offload_choice *choice);

#endif
