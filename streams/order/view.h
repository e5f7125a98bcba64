/* The graph as placement sees it: only what decides which storages may share bytes. */
#ifndef TARN_STREAMS_ORDER_VIEW_H
#define TARN_STREAMS_ORDER_VIEW_H

#include "streams/graph/graph.h"

struct tarn_region;

/* An op whose workspace ends before its outputs begin is two consecutive ops of its stream here:
 * the first has the op's id and the workspace, the second has its own id and makes the outputs;
 * both read the op's inputs. Storages, groups and tensors keep their ids. */
struct tarn_view {
    const struct tarn_graph *graph; /* the given graph itself if no op has two halves */
    uint32_t *second_of;            /* op -> its second half, or TARN_NONE; NULL: none has one */
    uint32_t halved_count;
    struct tarn_graph own;
};

/* All of it in the region; the given graph must live as long. TARN_SYSTEM: no memory. */
enum tarn_status tarn_view_init(struct tarn_view *view, struct tarn_region *region,
                                const struct tarn_graph *graph);

/* Makes a view with only the storages to place in one memory space (planned ones only if they have
 * bytes) and their groups. Storages, groups and tensors of that space get new numbers; everything
 * else stays. *origin: storage of the view -> storage of the given graph. Arrays in the region.
 * TARN_SYSTEM: no memory. */
enum tarn_status tarn_view_of_space(struct tarn_graph *view, struct tarn_region *region,
                                    const struct tarn_graph *graph, tarn_space space,
                                    uint32_t **origin);

/* Is op v of the view the first half of an op? */
static inline bool tarn_view_is_first_half(const struct tarn_view *view, uint32_t v)
{
    return view->second_of && v < view->graph->ops_count - view->halved_count &&
           view->second_of[v] != TARN_NONE;
}

#endif
