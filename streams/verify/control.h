/* What control arcs demand. Views are not launched, but carry order: whoever comes after a view
 * comes after what the view comes after.
 *
 *     produce ──data──► view ──control──► update        produce must end before update begins
 */
#ifndef TARN_STREAMS_VERIFY_CONTROL_H
#define TARN_STREAMS_VERIFY_CONTROL_H

#include "streams/graph/graph.h"

struct tarn_region;

/* Walks back from ops of one graph. Some launched op of some stream has met a view: then those
 * that are launched behind it in that stream need not meet the view again. */
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

/* Calls for every launched op that must end before `op` begins because a chain of arcs says so,
 * whose inner ops are views and of which one arc at least is a control arc. (What data arcs alone
 * say shows in the storages.) `stream`: where op is launched; ops must come by in launch order. */
void tarn_control_visit(struct tarn_control *control, uint32_t op, uint32_t stream,
                        tarn_control_demand demand, void *context);

#endif
