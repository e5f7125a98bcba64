/* A placement problem: storages that lie in blocks, the pairs that must not share bytes, and a
 * lower bound of every placement. The other headers of this directory are for its own files and are
 * included here. */
#ifndef TARN_PLANNER_PLACE_PROBLEM_PROBLEM_H
#define TARN_PLANNER_PLACE_PROBLEM_PROBLEM_H

#include "block.h"
#include "conflict.h"
#include "streams/order/gap_bound.h"

/* Of all planned storages of a graph, or made from some storages of such a problem (below, and
 * windows/cluster_problem.h). Placement reads nothing else, and changes nothing but the rows of
 * conflicts. All arrays are in the region that the problem was made in. */
struct tarn_problem {
    const struct tarn_graph *graph; /* NULL: the problem was made from another one */
    uint32_t ops_count;             /* of the graph: lifetimes are counted in ops */
    struct tarn_blocks blocks;
    struct tarn_conflicts conflicts; /* with the reuse */
    struct tarn_antichain antichain; /* of the graph; without one it has no thresholds */
    /* Of a part of a graph's problem: that graph, and storage -> the graph's; else NULL. */
    const struct tarn_graph *source;
    const uint32_t *origin;
    /* Storage -> result of the functions of the same names; NULL: it follows from the graph. */
    uint32_t *begin, *end;
    bool *in_antichain;
};

/* The planned storages of a graph; alignment: a power of two, in bytes. Rows of conflicts are not
 * made. TARN_BAD_INPUT: an arena in which no two storages share bytes cannot be addressed with 64
 * bits. TARN_SYSTEM: no memory. */
enum tarn_status tarn_problem_init(struct tarn_problem *problem, struct tarn_region *region,
                                   const struct tarn_graph *graph, uint64_t alignment,
                                   struct tarn_error *error);

/* The rank of a storage's producer in the graph's order. */
static inline uint32_t tarn_problem_begin(const struct tarn_problem *problem, uint32_t a)
{
    const struct tarn_graph *graph = problem->graph;
    return graph ? graph->rank[graph->storages[a].producer] : problem->begin[a];
}

/* One more than the rank of its last user; for an output, after all ops. */
static inline uint32_t tarn_problem_end(const struct tarn_problem *problem, uint32_t a)
{
    if (!problem->graph) return problem->end[a];
    const struct tarn_storage *storage = &problem->graph->storages[a];
    if (storage->pinned) return problem->ops_count;
    return problem->graph
               ->rank[tarn_storage_users(problem->graph, storage)[storage->users_count - 1]] +
           1;
}

/* Does a storage belong to the heaviest antichain? */
static inline bool tarn_problem_in_antichain(const struct tarn_problem *problem, uint32_t a)
{
    if (problem->in_antichain) return problem->in_antichain[a];
    return tarn_antichain_has(problem->antichain.threshold, &problem->conflicts.reuse, a);
}

/* The input of the bound with contiguous groups. alignment: the alignment of the problem, which
 * must have a graph. */
struct tarn_reserve tarn_problem_reserve(const struct tarn_problem *problem, uint64_t alignment);

/* Room for a problem that is made from another one: `count` storages, as blocks of one member or
 * more, in `streams_count` streams; zero-filled but for the counts of storages and streams. False:
 * no memory. */
bool tarn_problem_take(struct tarn_problem *problem, struct tarn_region *region,
                       const struct tarn_problem *whole, uint32_t count, uint32_t streams_count);

/* Are its parts valid, and of the same storages, and does every storage begin before it ends? For
 * tests and assertions; cost: linear in ops and storages * streams. */
bool tarn_problem_is_valid(const struct tarn_problem *problem);

/* ---- Slot sets ---- */

/* A set of storages by their slots, which knows how many of it come before a slot. */
struct tarn_slot_set {
    uint64_t *bits;  /* by slot */
    uint32_t *below; /* by word of 64 slots: members before it */
};

/* storages: distinct. Lives in the region. TARN_SYSTEM: no memory. */
enum tarn_status tarn_slot_set_init(struct tarn_slot_set *set, struct tarn_region *region,
                                    const struct tarn_conflicts *conflicts,
                                    const uint32_t *storages, uint32_t count);

/* How many members have lower slots: the place of a member in a list in the order of slots. */
static inline uint32_t tarn_slot_set_below(const struct tarn_slot_set *set, uint32_t slot)
{
    uint64_t before = set->bits[slot / 64] & ((UINT64_C(1) << slot % 64) - 1);
    return set->below[slot / 64] + (uint32_t)__builtin_popcountll(before);
}

/* ---- Lifetimes ---- */

/* Of some storages, as if there were no others; by place in their list. */
struct tarn_lifetimes {
    const struct tarn_problem *problem;
    const uint32_t *storages; /* the caller's: whole blocks, in the order of slots */
    uint32_t count;
    struct tarn_slot_set listed;
    uint32_t *since; /* its producer's place in the global order */
    uint32_t *until; /* after its producer; every storage in conflict with it was produced before */
    uint32_t *whole; /* everything produced between its producer and this is in conflict with it */
};

/* Lives in the region, and reads the problem and the list as long. TARN_SYSTEM: no memory. */
enum tarn_status tarn_lifetimes_init(struct tarn_lifetimes *lifetimes, struct tarn_region *region,
                                     const struct tarn_problem *problem, const uint32_t *storages,
                                     uint32_t count);

/* tarn_lifetimes_begin fills everything but ends; the second function fills the ends in a line.
 * `until` is one after the last storage that streams of the line produce and that is, or may be, in
 * conflict. line_of: by stream. The region is as before in the end. TARN_SYSTEM, false: no
 * memory. */
enum tarn_status tarn_lifetimes_begin(struct tarn_lifetimes *lifetimes, struct tarn_region *region,
                                      const struct tarn_problem *problem, const uint32_t *storages,
                                      uint32_t count);
bool tarn_lifetimes_end(const struct tarn_lifetimes *lifetimes, struct tarn_region *region,
                        const uint32_t *line_of, uint32_t line);

/* From the first `since` to the last `until` of a block's members, of which one is the i-th of the
 * list. */
void tarn_lifetimes_of_block(const struct tarn_lifetimes *lifetimes, struct tarn_block block,
                             uint32_t i, uint32_t *begin, uint32_t *end);

/* ---- Parts ---- */

/* A part: some storages of a problem as a problem of its own size. So work on one window of a
 * million storages costs as much as on a small graph. */

/* Its storages are numbered in the order of the whole's slots; its streams are those that produce
 * any of them; positions count these storages, one after the other, and `first` says from which
 * position storages of the part may follow. */
struct tarn_part {
    struct tarn_problem problem;
    uint32_t *origin;       /* storage -> storage of the whole problem */
    uint32_t *origin_block; /* block -> block of the whole problem */
};

/* block_of: storage of the whole -> block. storages: whole blocks, in the order of slots. Lives in
 * the region. TARN_SYSTEM: no memory. */
enum tarn_status tarn_part_init(struct tarn_part *part, struct tarn_region *region,
                                const struct tarn_problem *whole, const uint32_t *block_of,
                                const uint32_t *storages, uint32_t count);

#endif
