/* Computes what storages reserve in the arena: a lone storage and a member of a padded group are
 * rounded up to the alignment; the members of an exact group lie back to back, and the last member
 * has the padding.
 */
#ifndef TARN_STREAMS_ORDER_RESERVED_H
#define TARN_STREAMS_ORDER_RESERVED_H

#include "streams/graph/graph.h"

/* For one block, a lone storage or the members of a group: the bytes that each member reserves
 * (storage, counted from `first`, -> bytes), and the alignment of the block's offset. Adds the
 * block's maximum of bytes, including bytes that may lie free before it, to *sum. alignment: the
 * plan's. false: a size or the sum does not fit in 64 bits. Cost: linear in the members. */
bool tarn_reserve(uint64_t *reserved, uint32_t first, const struct tarn_graph *graph,
                  struct tarn_list members, uint64_t alignment, uint64_t *block_alignment,
                  uint64_t *sum);

/* *reserved: planned storage -> bytes, in the region; workspaces are folded, and spaces other than
 * the first are left out (see below). alignment: a power of two, in bytes. TARN_BAD_INPUT: an arena
 * in which no two storages share bytes cannot be addressed with 64 bits; else the sum of the sizes
 * fits in 64 bits. TARN_SYSTEM: no memory. */
enum tarn_status tarn_reserved_sizes(const uint64_t **reserved, struct tarn_region *region,
                                     const struct tarn_graph *graph, uint64_t alignment,
                                     struct tarn_error *error);

/* For sums over storages alive at once: reduces a workspace that ends before its op's outputs begin
 * to the bytes that it has beyond these outputs, so that the op takes the larger of the two. This
 * loses nothing: a storage that may not share bytes with the workspace may not share bytes with
 * these outputs either. sizes: by planned storage. */
void tarn_workspaces_fold(const struct tarn_graph *graph, uint64_t *sizes);

/* Sets the sizes of storages of other spaces than the first to 0. sizes: by planned storage. */
void tarn_sizes_of_first_space(const struct tarn_graph *graph, uint64_t *sizes);

#endif
