/* Which forward op a backward op is the gradient of, found by what the two touch: graphs that are
 * traced from a framework do not say it. */
#ifndef TARN_PLANNER_TRANSFORM_IMPLEMENTATIONS_PAIRING_H
#define TARN_PLANNER_TRANSFORM_IMPLEMENTATIONS_PAIRING_H

#include "streams/graph/graph.h"

struct tarn_pairing {
    uint32_t *forward; /* op -> its forward op; TARN_NONE: no backward op, or none was found */
    uint32_t *value;   /* tensor -> the tensor whose content it shows or repeats; itself */
};

/* TARN_SYSTEM: no memory. Linear in the lists of the ops; a value that very many forward ops touch
 * is looked at for the first of them only. */
enum tarn_status tarn_pairing_init(struct tarn_pairing *pairing, const struct tarn_graph *graph);
void tarn_pairing_finish(struct tarn_pairing *pairing);

/* Is it the gradient of another op, going by its kind? */
bool tarn_is_backward(const struct tarn_graph_op *op);

#endif
