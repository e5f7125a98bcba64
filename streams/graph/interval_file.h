/* Packing instances as other packers write them: `id,lower,upper,size[,offset]`, one buffer a line,
 * alive in the steps [lower, upper). As a graph: one stream, one op for each step in which a buffer
 * begins or is last alive, one intermediate tensor for each buffer. */
#ifndef TARN_STREAMS_GRAPH_INTERVAL_FILE_H
#define TARN_STREAMS_GRAPH_INTERVAL_FILE_H

#include "graph.h"

/* Columns come in any order and are known by the header; `offset` is ignored. Tensors are named by
 * their ids, ops by their steps. TARN_BAD_INPUT: `error` has the line. The rest as tarn_graph_load.
 */
enum tarn_status tarn_interval_load(const char *path, struct tarn_graph **graph,
                                    struct tarn_error *error);

/* Writes the planned tensors of a graph of one stream without workspaces; offset: by storage, NULL:
 * no such column. Steps are the ops' names where all of those are increasing numbers (so that what
 * was loaded is written as it was), else their places in the list. TARN_USAGE: another graph. */
enum tarn_status tarn_interval_save(const struct tarn_graph *graph, const uint64_t *offset,
                                    const char *path, struct tarn_error *error);

#endif
