/* Finds the control arcs of all launched ops, followed through views: a depth-first walk back from
 * each op, which ends at launched ops, and at views that an earlier op of its stream has visited. A
 * visit through a control arc also covers a later visit through data arcs.
 * Cost: O(arcs of launched ops + arcs of views * streams); 2 * views * streams bits. */
#include "control.h"

#include <assert.h>

#include "streams/base/region.h"

enum tarn_status tarn_control_init(struct tarn_control *control, struct tarn_region *region,
                                   const struct tarn_graph *graph, uint32_t streams_count)
{
    size_t views = 0;
    *control = (struct tarn_control){.graph = graph, .streams_count = streams_count};
    control->number = tarn_region_take(region, graph->ops_count, sizeof *control->number);
    for (uint32_t v = 0; v < graph->ops_count && control->number; v++) {
        control->number[v] = (uint32_t)views;
        views += graph->ops[v].view;
    }
    control->stack_room = 2 * views + 1;
    control->met =
        tarn_region_take(region, 2 * views * streams_count / 64 + 1, sizeof *control->met);
    control->stack = tarn_region_take(region, control->stack_room, sizeof *control->stack);
    return control->number && control->met && control->stack ? TARN_OK : TARN_SYSTEM;
}

/* False: it was visited before. */
static bool meet(struct tarn_control *control, uint32_t view, bool by_control, uint32_t stream)
{
    size_t row = 2 * (size_t)control->number[view] + by_control;
    size_t bit = row * control->streams_count + stream;
    uint64_t mask = UINT64_C(1) << bit % 64;
    bool is_new = !(control->met[bit / 64] & mask);
    control->met[bit / 64] |= mask;
    return is_new;
}

/* One walk: its purpose, and the depth of its stack. */
struct walk {
    struct tarn_control *control;
    uint32_t stream, depth;
    tarn_control_demand demand;
    void *context;
};

static void follow(struct walk *walk, uint32_t earlier, bool by_control)
{
    struct tarn_control *control = walk->control;
    if (earlier == TARN_NONE) return;
    if (!control->graph->ops[earlier].view) {
        if (by_control) walk->demand(walk->context, earlier);
    } else if (meet(control, earlier, by_control, walk->stream)) {
        assert(walk->depth < control->stack_room); /* a view is visited at most twice */
        control->stack[walk->depth++] = 2 * earlier + by_control;
    }
}

void tarn_control_visit(struct tarn_control *control, uint32_t op, uint32_t stream,
                        tarn_control_demand demand, void *context)
{
    const struct tarn_graph *graph = control->graph;
    struct walk walk = {control, stream, 0, demand, context};
    control->stack[walk.depth++] = 2 * op;
    while (walk.depth > 0) {
        uint32_t top = control->stack[--walk.depth];
        const struct tarn_graph_op *at = &graph->ops[top / 2];
        const struct tarn_op_extra *extra = tarn_extra(at);
        for (uint32_t k = 0; k < extra->control_count; k++) follow(&walk, extra->control[k], true);
        for (uint32_t k = 0; k < at->inputs_count; k++)
            follow(&walk, graph->tensors[at->inputs[k]].producer, top % 2);
    }
}
