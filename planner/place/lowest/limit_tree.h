/* The tree of limits, for limits.c, limit_tree.c and select.c: its nodes, and the functions that
 * pass a change up and down. Places are its leaves, TARN_LANE_RUN to a run, TARN_NODE_CHILDREN runs
 * or nodes to a node (extremes.h). A limit is pending at a node if all limits below the node still
 * have to rise to it. */
#ifndef TARN_PLANNER_PLACE_LOWEST_LIMIT_TREE_H
#define TARN_PLANNER_PLACE_LOWEST_LIMIT_TREE_H

#include "greedy.h"

/* The limit of a place that is placed; the code of a leader that is not known. */
enum { TARN_PLACED = INT32_MAX, TARN_UNKNOWN = -1 };

static const struct tarn_leader tarn_nobody = {TARN_UNKNOWN, 0};

/* The place of a leader that is known. */
static inline uint32_t tarn_place_of(struct tarn_leader leader)
{
    return leader.run * TARN_LANE_RUN + (TARN_LANE_RUN - 1 - (uint32_t)leader.code % TARN_LANE_RUN);
}

static inline uint32_t tarn_run_size(const struct tarn_lowest *lowest, uint32_t run)
{
    uint32_t begin = run * TARN_LANE_RUN, left = begin < lowest->count ? lowest->count - begin : 0;
    return left < TARN_LANE_RUN ? left : TARN_LANE_RUN;
}

static inline uint32_t tarn_children_end(const struct tarn_greedy *greedy, uint32_t level,
                                         uint32_t node)
{
    uint32_t end = (node + 1) * TARN_NODE_CHILDREN, count = greedy->levels[level - 1].count;
    return end < count ? end : count;
}

/* Limits only rise: while the lowest limit stays, no further place gets it. No limit has risen
 * above `raised`. */
static inline void tarn_note_run(struct tarn_greedy *greedy, uint32_t run, int32_t least,
                                 int32_t raised)
{
    struct tarn_limits_level *runs = &greedy->levels[0];
    if (least != runs->least[run]) runs->first[run] = tarn_nobody;
    runs->least[run] = least;
    if (raised > runs->greatest[run]) runs->greatest[run] = raised;
    if (least == TARN_PLACED) runs->greatest[run] = 0;
}

/* Some children of the node have changed. */
static inline void tarn_note_node(struct tarn_greedy *greedy, uint32_t level, uint32_t node)
{
    const struct tarn_limits_level *children = &greedy->levels[level - 1];
    struct tarn_limits_level *nodes = &greedy->levels[level];
    uint32_t end = tarn_children_end(greedy, level, node);
    int32_t least = TARN_PLACED, greatest = 0;
    for (uint32_t child = node * TARN_NODE_CHILDREN; child < end; child++) {
        least = children->least[child] < least ? children->least[child] : least;
        greatest = children->greatest[child] > greatest ? children->greatest[child] : greatest;
    }
    nodes->least[node] = least;
    nodes->greatest[node] = greatest;
    nodes->first[node] = tarn_nobody;
}

/* Raises all limits below the node to at least `end`. */
static inline void tarn_raise_whole(struct tarn_greedy *greedy, uint32_t level, uint32_t node,
                                    int32_t end)
{
    struct tarn_limits_level *nodes = &greedy->levels[level];
    if (nodes->least[node] == TARN_PLACED) return;
    if (end <= nodes->least[node]) return;
    nodes->pending[node] = nodes->least[node] = end;
    nodes->first[node] = tarn_nobody;
    if (end > nodes->greatest[node]) nodes->greatest[node] = end;
}

/* Applies the run's pending limit to its places. */
static inline void tarn_flush_run(struct tarn_greedy *greedy, uint32_t run)
{
    int32_t pending = greedy->levels[0].pending[run];
    int32_t *limit = greedy->limit + (size_t)run * TARN_LANE_RUN;
    if (pending == 0) return;
    greedy->levels[0].pending[run] = 0;
    for (uint32_t i = 0; i < TARN_LANE_RUN; i++) limit[i] = limit[i] > pending ? limit[i] : pending;
}

/* Passes the node's pending limit to its children. */
static inline void tarn_flush_node(struct tarn_greedy *greedy, uint32_t level, uint32_t node)
{
    int32_t pending = greedy->levels[level].pending[node];
    if (pending == 0) return;
    greedy->levels[level].pending[node] = 0;
    uint32_t end = tarn_children_end(greedy, level, node);
    for (uint32_t child = node * TARN_NODE_CHILDREN; child < end; child++)
        tarn_raise_whole(greedy, level - 1, child, pending);
}

static inline void tarn_measure_run(struct tarn_greedy *greedy, uint32_t run, int32_t raised)
{
    tarn_note_run(greedy, run,
                  greedy->kernels->least(greedy->limit + (size_t)run * TARN_LANE_RUN,
                                         tarn_run_size(greedy->lowest, run)),
                  raised);
}

/* A place of the run has risen to `raised`. */
static inline void tarn_measure(struct tarn_greedy *greedy, uint32_t run, int32_t raised)
{
    tarn_measure_run(greedy, run, raised);
    for (uint32_t level = 1; level < greedy->extremes->levels_count; level++)
        tarn_note_node(greedy, level, run * TARN_LANE_RUN >> tarn_node_shift(level));
}

#endif
