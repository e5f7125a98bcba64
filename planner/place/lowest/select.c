/* Selects the next block, by a tournament in the tree of limits (limit_tree.h): every node
 * remembers its winner until a limit below the node changes. Source: docs/how-it-works.md,
 * "Placement". Cost: the nodes with the lowest limit that have changed since the last selection,
 * and the children of each. */
#include "limit_tree.h"

#include "limits.h"
#include <assert.h>

enum { RUN = TARN_LANE_RUN, CHILDREN = TARN_NODE_CHILDREN };

static struct tarn_leader foremost(struct tarn_leader a, struct tarn_leader b)
{
    return a.code == TARN_UNKNOWN || b.code / RUN > a.code / RUN ? b : a;
}

/* The first of all places that are not placed: priority orders alone decide. */
static struct tarn_leader champion_of(struct tarn_greedy *greedy, const int32_t *priority,
                                      uint32_t level, uint32_t node)
{
    struct tarn_leader *champion = &greedy->levels[level].champion[node];
    if (champion->code != TARN_UNKNOWN) return *champion;
    if (level == 0) {
        *champion =
            (struct tarn_leader){greedy->kernels->champion(greedy->limit + (size_t)node * RUN,
                                                           priority + (size_t)node * RUN,
                                                           tarn_run_size(greedy->lowest, node)),
                                 node};
        return *champion;
    }
    uint32_t end = tarn_children_end(greedy, level, node);
    for (uint32_t child = node * CHILDREN; child < end; child++)
        if (greedy->levels[level - 1].least[child] != TARN_PLACED)
            *champion = foremost(*champion, champion_of(greedy, priority, level - 1, child));
    return *champion;
}

/* The first of the places of a run that have its least limit. */
static struct tarn_leader first_of_run(struct tarn_greedy *greedy, const int32_t *priority,
                                       uint32_t run)
{
    struct tarn_limits_level *runs = &greedy->levels[0];
    struct tarn_leader *first = &runs->first[run];
    tarn_flush_run(greedy, run);
    if (first->code == TARN_UNKNOWN || greedy->limit[tarn_place_of(*first)] != runs->least[run])
        *first = (struct tarn_leader){greedy->kernels->foremost(greedy->limit + (size_t)run * RUN,
                                                                priority + (size_t)run * RUN,
                                                                tarn_run_size(greedy->lowest, run),
                                                                runs->least[run]),
                                      run};
    return *first;
}

static struct tarn_leader first_of_range(struct tarn_greedy *greedy, const int32_t *priority,
                                         uint32_t level, uint32_t begin, uint32_t end,
                                         int32_t limit);

/* The first of the places of a node that have its lowest limit. If all of them have it, which is
 * true in most nodes after most placements, no place is looked at. */
static struct tarn_leader first_of(struct tarn_greedy *greedy, const int32_t *priority,
                                   uint32_t level, uint32_t node)
{
    struct tarn_limits_level *nodes = &greedy->levels[level];
    if (nodes->least[node] == nodes->greatest[node])
        return champion_of(greedy, priority, level, node);
    if (level == 0) return first_of_run(greedy, priority, node);
    if (nodes->first[node].code == TARN_UNKNOWN) {
        tarn_flush_node(greedy, level, node);
        nodes->first[node] =
            first_of_range(greedy, priority, level - 1, node * CHILDREN,
                           tarn_children_end(greedy, level, node), nodes->least[node]);
    }
    return nodes->first[node];
}

/* The same for the nodes begin..end of a level that have this limit. */
static struct tarn_leader first_of_range(struct tarn_greedy *greedy, const int32_t *priority,
                                         uint32_t level, uint32_t begin, uint32_t end,
                                         int32_t limit)
{
    const int32_t *least = greedy->levels[level].least;
    struct tarn_leader best = tarn_nobody;
    for (uint32_t node = begin; node < end; node++)
        if (least[node] == limit) best = foremost(best, first_of(greedy, priority, level, node));
    return best;
}

uint32_t tarn_limits_select(struct tarn_greedy *greedy, const int32_t *priority)
{
    uint32_t top = greedy->extremes->levels_count - 1, count = greedy->levels[top].count;
    int32_t limit = greedy->kernels->least(greedy->levels[top].least, count);
    struct tarn_leader first = first_of_range(greedy, priority, top, 0, count, limit);
    uint32_t place = tarn_place_of(first);
    assert(limit < TARN_PLACED && place < greedy->lowest->count);
    for (uint32_t level = top; level > 0; level--)
        tarn_flush_node(greedy, level, place >> tarn_node_shift(level));
    tarn_flush_run(greedy, first.run);
    return place;
}
