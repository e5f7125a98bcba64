/* One order of all nodes under a limit on memory, quickly. */
#ifndef TARN_PLANNER_TRANSFORM_REORDER_GREEDY_H
#define TARN_PLANNER_TRANSFORM_REORDER_GREEDY_H

#include "planner/transform/list_model.h"
#include "streams/base/heap.h"

struct tarn_reorder_greedy {
    struct tarn_reorder_state state;
    uint64_t *guide;        /* node -> its place in the order that guides */
    struct tarn_heap ready; /* ready nodes, the guide's first on top */
    uint32_t *waiting;      /* nodes to look at: they have become ready, or free more than before */
    uint32_t waiting_count;
    uint32_t *hold; /* ready nodes whose segment does not fit under the limit at present */
    uint32_t hold_count;
    uint64_t *need;      /* node on hold -> bytes that its segment takes beyond the bytes alive */
    uint64_t need_least; /* minimum over the nodes on hold; UINT64_MAX: there is none */
    bool *has_run;       /* node: is it in the order? */
    bool *is_ready;      /* node: has it been in the heap? */
    bool *is_waiting, *is_held; /* node: is it in `waiting`, in `hold`? */
    uint32_t *run;              /* the order so far */
    uint32_t run_count;
};

/* Arrays from the region. TARN_SYSTEM: no memory. */
enum tarn_status tarn_reorder_greedy_init(struct tarn_reorder_greedy *greedy,
                                          struct tarn_region *region,
                                          const struct tarn_reorder_model *model);

/* Makes an order (in greedy->run) and returns its peak, which may exceed the limit. guide: an order
 * of all nodes that is legal. */
uint64_t tarn_reorder_greedy_run(struct tarn_reorder_greedy *greedy, const uint32_t *guide,
                                 uint64_t limit);

/* ---- The same order with nodes postponed if that can only lower the peak ---- */

struct tarn_reorder_postpone {
    const struct tarn_reorder_model *model;
    uint32_t *place;  /* node -> where it runs: its own place in the order, or the place of the node
                         right before which it is put */
    uint32_t *latest; /* storage -> greatest `place` among the users met so far */
    uint32_t *begin;  /* place -> the start of its nodes */
};

/* Arrays from the region. TARN_SYSTEM: no memory. */
enum tarn_status tarn_reorder_postpone_init(struct tarn_reorder_postpone *postpone,
                                            struct tarn_region *region,
                                            const struct tarn_reorder_model *model);

/* Writes the better order to `result`, which is not `order`. No step's memory is higher than the
 * memory of the same node in `order`, or of the node that it was put before. */
void tarn_reorder_postpone_run(struct tarn_reorder_postpone *postpone, const uint32_t *order,
                               uint32_t *result);

#endif
