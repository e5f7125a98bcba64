/* What the loader and the transforms need of the builder beyond the public calls. The same rules
 * hold: the first error is kept, later calls do nothing. */
#ifndef TARN_STREAMS_GRAPH_BUILDER_H
#define TARN_STREAMS_GRAPH_BUILDER_H

#include <stddef.h>

#include "report.h"

/* From here on errors begin with the file's path and carry JSON pointers, as `report` says. Its
 * path and base must live as long as the builder. */
void tarn_builder_read_from(struct tarn_builder *builder, const struct tarn_report *report);
/* The JSON text of the meta object, copied; "{}" if never called. */
void tarn_builder_meta(struct tarn_builder *builder, const char *meta);
/* A tensor that says itself which root it aliases, as in files; the root may come later. */
tarn_tensor tarn_builder_alias_of(struct tarn_builder *builder, const struct tarn_tensor_info *info,
                                  tarn_tensor root);
/* In a record; one that no graph has where it is too large. */
static inline uint16_t space_of(tarn_space space)
{
    return space < UINT16_MAX ? (uint16_t)space : UINT16_MAX;
}
/* Of the op that was added last: the source graph's op that it comes from, and which of its
 * implementations it is (TARN_NONE: that op as written). */
void tarn_builder_origin(struct tarn_builder *builder, tarn_op origin, uint32_t implementation);
/* Of the tensor that was added last: the source graph's tensor whose content it holds again. */
void tarn_builder_tensor_origin(struct tarn_builder *builder, tarn_tensor origin);

/* The records added so far, which nobody has validated; NULL after an error. */
struct tarn_graph *tarn_builder_graph(const struct tarn_builder *builder);

#endif
