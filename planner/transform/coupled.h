/* A graph with extra arcs between streams, with its bound and its timing. Only the arcs are copied,
 * so hundreds of arcs can be tried. */
#ifndef TARN_PLANNER_TRANSFORM_COUPLED_H
#define TARN_PLANNER_TRANSFORM_COUPLED_H

#include "recipe.h"
#include "streams/base/region.h"
#include "streams/order/gap_bound.h"
#include "streams/order/simulator.h"

struct tarn_coupled {
    struct tarn_graph graph; /* shares all but order, rank and arcs with the graph that it was made
                                of, and is never destroyed: its region has the unshared arrays, the
                                clocks and the bound; its hash is the hash of that graph */
    struct tarn_clocks clocks;
    struct tarn_reuse reuse;
    struct tarn_gap_bound bound; /* names the antichain that is to be broken */
    uint64_t work;               /* that it took to make: visits of a few nanoseconds */
};

/* The arcs' ends are in different streams and make no cycle. reserved: by planned storage, at this
 * alignment. TARN_SYSTEM: no memory. */
enum tarn_status tarn_coupled_init(struct tarn_coupled *coupled, const struct tarn_graph *graph,
                                   const struct tarn_recipe_arc *arcs, uint32_t arcs_count,
                                   const uint64_t *reserved, uint64_t alignment);
void tarn_coupled_finish(struct tarn_coupled *coupled);

/* When ops run with the fewest event waits, and how much time must pass after every op starts. */
struct tarn_pace {
    struct tarn_region region; /* of all arrays */
    struct tarn_timeline timeline;
    uint64_t *tail_ns; /* op -> from its start to the end of the iteration, if only the ops after it
                          take time */
    uint32_t waits_count;
    uint32_t wait_ns;
};

enum tarn_status tarn_pace_init(struct tarn_pace *pace, const struct tarn_graph *graph,
                                uint32_t wait_ns);
void tarn_pace_finish(struct tarn_pace *pace);

/* The makespan with one more arc. */
static inline uint64_t tarn_pace_with(const struct tarn_pace *pace, uint32_t earlier,
                                      uint32_t later)
{
    uint64_t through = pace->timeline.end_ns[earlier] + pace->wait_ns + pace->tail_ns[later];
    uint64_t before = pace->timeline.makespan_ns;
    return through > before ? through : before;
}

#endif
