/* A placement problem: blocks, and which storages must not share bytes. The other headers of this
 * room are for its own files; what they declare is included here. */
#ifndef TARN_PLANNER_PLACE_PROBLEM_PROBLEM_H
#define TARN_PLANNER_PLACE_PROBLEM_PROBLEM_H

#include "block.h"
#include "conflict.h"

/* What there is to place; all of it is only read. */
struct tarn_problem {
    const struct tarn_graph *graph;
    const struct tarn_blocks *blocks;       /* of the graph's planned storages */
    const struct tarn_conflicts *conflicts; /* of the same storages, with their reuse */
};

/* Are its parts valid, and all of the graph's planned storages? For tests and assertions; cost:
 * linear in ops and storages * streams. */
static inline bool tarn_problem_is_valid(const struct tarn_problem *problem)
{
    return problem->blocks->storages_begin == 0 &&
           problem->blocks->storages_count == problem->graph->planned_count &&
           tarn_blocks_is_valid(problem->blocks) &&
           tarn_reuse_is_valid(problem->conflicts->reuse, problem->graph) &&
           tarn_conflicts_is_valid(problem->conflicts, problem->graph);
}

/* Room for a problem that is made from another one: `count` storages, as blocks of one member or
 * more, in `streams_count` streams; zero-filled. False: no memory. */
bool tarn_problem_take(struct tarn_region *region, size_t count, size_t streams_count,
                       struct tarn_graph *graph, struct tarn_reuse *reuse,
                       struct tarn_blocks *blocks);

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
    uint32_t *until; /* behind its producer; what is in conflict with it was produced before */
    uint32_t *whole; /* everything produced between its producer and this is in conflict with it */
};

/* Lives in the region, and reads the problem and the list as long. TARN_SYSTEM: no memory. */
enum tarn_status tarn_lifetimes_init(struct tarn_lifetimes *lifetimes, struct tarn_region *region,
                                     const struct tarn_problem *problem, const uint32_t *storages,
                                     uint32_t count);

/* From the first `since` to the last `until` of a block's members, of which one is the i-th of the
 * list. */
void tarn_lifetimes_of_block(const struct tarn_lifetimes *lifetimes, struct tarn_block block,
                             uint32_t i, uint32_t *begin, uint32_t *end);

/* ---- Parts ---- */

/* Some storages of a problem as a problem of its own, of its own size: what only takes a window of
 * a million storages costs as much as a small graph does. */

/* Its storages are numbered in the order of the whole's slots; its streams are those that produce
 * any of them; positions count these storages, one after the other, and `first` is where what is
 * in the part may follow. */
struct tarn_part {
    struct tarn_problem problem; /* of the members below */
    uint32_t *origin;            /* storage -> that of the whole problem */
    uint32_t *origin_block;      /* block -> that of the whole problem */
    struct tarn_graph graph;     /* only what placement reads */
    uint32_t *ops;               /* storage -> its producer: the ops of the part's streams */
    struct tarn_reuse reuse;
    struct tarn_blocks blocks;
    struct tarn_conflicts conflicts;
};

/* block_of: storage of the whole -> block. storages: whole blocks, in the order of slots. Lives in
 * the region. TARN_SYSTEM: no memory. */
enum tarn_status tarn_part_init(struct tarn_part *part, struct tarn_region *region,
                                const struct tarn_problem *whole, const uint32_t *block_of,
                                const uint32_t *storages, uint32_t count);

#endif
