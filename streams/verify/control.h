/* The order that control arcs require. Views are not launched, but carry order: an op after a view
 * is also after every op before the view.
 *
 *     produce ──data──► view ──control──► update        produce must end before update begins
 */
#ifndef TARN_STREAMS_VERIFY_CONTROL_H
#define TARN_STREAMS_VERIFY_CONTROL_H

#include "streams/graph/graph.h"

struct tarn_region;

/* Walks back from ops of one graph. Once a launched op has visited a view, ops launched later in
 * the same stream need not visit it again. */
struct tarn_control {
    const struct tarn_graph *graph;
    uint32_t streams_count;
    uint32_t *number; /* view -> counted from 0 */
    uint64_t *met;    /* bits: [view's number][by data, by control][stream] */
    uint32_t *stack;  /* 2 * op + (1: a control arc leads here) */
    size_t stack_room;
};

/* streams_count: of the program that launches. All arrays from the region. TARN_SYSTEM: no memory.
 */
enum tarn_status tarn_control_init(struct tarn_control *control, struct tarn_region *region,
                                   const struct tarn_graph *graph, uint32_t streams_count);

typedef void (*tarn_control_demand)(void *context, uint32_t earlier);

/* Calls a function for every launched op that must end before `op` begins because of a chain of
 * arcs whose inner ops are views and of which at least one arc is a control arc. (Order by data
 * arcs alone shows in the storages.) `stream`: where op is launched; ops must come by in launch
 * order. */
void tarn_control_visit(struct tarn_control *control, uint32_t op, uint32_t stream,
                        tarn_control_demand demand, void *context);

#endif
