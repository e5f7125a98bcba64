/* The arena cut into cells at the ends of all reserved ranges, with the first and last storage in
 * each cell. */
#ifndef TARN_STREAMS_ORDER_EVENTS_CELLS_H
#define TARN_STREAMS_ORDER_EVENTS_CELLS_H

#include "streams/graph/graph.h"

struct tarn_region;

struct tarn_cells {
    uint32_t count;
    uint32_t *begin, *end; /* by planned storage: its cells are [begin, end) */
    uint32_t *first;       /* by cell: the storage there with the first producer in the graph's
                            * order; TARN_NONE: the cell is unused */
    uint32_t *last;        /* by cell: the storage there with the last producer */
    uint32_t *head, *next; /* the cells of which storage a is the last: head[a], next[head[a]], ...
                              ascending; TARN_NONE ends */
};

/* The offsets of planned storages. */
struct tarn_cell_layout {
    const uint64_t *offset; /* by planned storage */
    uint64_t alignment;     /* of the plan, for reserved sizes */
};

/* Cells of reserved bytes; all in the region. False: no memory. */
bool tarn_cells_init(struct tarn_cells *cells, struct tarn_region *region,
                     const struct tarn_graph *graph, struct tarn_cell_layout layout);

/* Has each cell two owners or none, do both cover it, and is it only in the list of its last owner?
 * Linear; for assertions. */
bool tarn_cells_is_valid(const struct tarn_cells *cells, const struct tarn_graph *graph);

#endif
