/* Functions of the builder for the loader and the transforms, beyond the public calls. The same
 * rules hold: the first error is kept, later calls do nothing. */
#ifndef TARN_STREAMS_GRAPH_BUILDER_H
#define TARN_STREAMS_GRAPH_BUILDER_H

#include <stddef.h>

#include "report.h"

/* After this call errors begin with the file's path and carry JSON pointers, as `report` says. Its
 * path and base must live as long as the builder. */
void tarn_builder_read_from(struct tarn_builder *builder, const struct tarn_report *report);
/* The JSON text of the meta object, copied; "{}" if never called. */
void tarn_builder_meta(struct tarn_builder *builder, const char *meta);
/* Adds a tensor that names the root that it aliases, as in files; the root may be added later. */
tarn_tensor tarn_builder_alias_of(struct tarn_builder *builder, const struct tarn_tensor_info *info,
                                  tarn_tensor root);
/* A space as records store it; too large values become a space that no graph has. */
static inline uint16_t space_of(tarn_space space)
{
    return space < UINT16_MAX ? (uint16_t)space : UINT16_MAX;
}
/* Sets the origin of the op added last: the source graph's op that it comes from, and which of its
 * implementations it is (TARN_NONE: as written). */
void tarn_builder_origin(struct tarn_builder *builder, tarn_op origin, uint32_t implementation);
/* Sets the origin of the tensor added last: the source graph's tensor whose content it holds
 * again. */
void tarn_builder_tensor_origin(struct tarn_builder *builder, tarn_tensor origin);

/* The records added so far, not validated; NULL after an error. */
struct tarn_graph *tarn_builder_graph(const struct tarn_builder *builder);

#endif
