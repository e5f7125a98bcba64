/* Finds the forward op of every backward op by the tensors that both use: graphs that are traced
 * from a framework do not say it. */
#ifndef TARN_PLANNER_TRANSFORM_IMPLEMENTATIONS_PAIRING_H
#define TARN_PLANNER_TRANSFORM_IMPLEMENTATIONS_PAIRING_H

#include "streams/base/region.h"
#include "streams/graph/graph.h"

struct tarn_pairing {
    uint32_t *forward; /* op -> its forward op; TARN_NONE: none, or none was found */
    uint32_t *value;   /* tensor -> the tensor whose content it shows or repeats, or itself */
};

/* TARN_SYSTEM: no memory. Linear in the lists of the ops; a value that very many forward ops touch
 * is looked at for the first of them only. */
enum tarn_status tarn_pairing_init(struct tarn_pairing *pairing, struct tarn_region *region,
                                   const struct tarn_graph *graph);
/* Does each backward op have a forward op before it, or none, and does each value show itself? For
 * assertions; cost: linear. */
bool tarn_pairing_is_valid(const struct tarn_pairing *pairing, const struct tarn_graph *graph);

#endif
