/* Packing instances as other packers write them:
 * `id,lower,upper,size[,alignment][,gaps][,hint][,offset]`, one buffer a line, alive in the steps
 * [lower, upper) but for its gaps. As a graph: one stream, one op for each step in which a buffer
 * begins or is last alive, and one intermediate tensor for each buffer; with gaps one for each
 * piece between them, and a group with offsets that holds them together. */
#ifndef TARN_STREAMS_FILE_INTERVAL_READ_H
#define TARN_STREAMS_FILE_INTERVAL_READ_H

#include "streams/graph/report.h"
#include "tarn/bytes.h"
#include "tarn/plan.h"

/* Is a text to be read as intervals? The path's extension decides (".csv", ".json", with an
 * optional ".gz"). Without one (standard input, a pipe) the answer is yes if the text begins with a
 * letter, since no JSON object or array does. */
bool tarn_interval_is(const char *path, const char *text);

/* Makes a graph of a text, which is cut into pieces. Columns come in any order, named by their
 * header. Tensors are named by their ids, ops by their steps; the graph by report->path.
 * TARN_BAD_INPUT: `error` has the line. TARN_SYSTEM: no memory. */
enum tarn_status tarn_interval_decode(const struct tarn_report *report, char *text, size_t size,
                                      struct tarn_graph **graph);

/* Writes the lifetimes of the planned storages of a graph of one stream without workspaces, in the
 * order of their tensors; persistent tensors are left out. A group whose members are never in use
 * together is one buffer with gaps; there may be no other groups. offset: by storage, NULL: no such
 * column. Ids are the tensors' names and steps the ops' names, if these are distinct values and
 * increasing numbers (so a loaded file is written unchanged); else tensor ids and positions in the
 * list. TARN_USAGE: another graph, or a name for JSON. TARN_SYSTEM. */
enum tarn_status tarn_interval_give(const struct tarn_graph *graph, const uint64_t *offset,
                                    const struct tarn_writer *writer, struct tarn_error *error);
/* Writes the lifetimes of a plan's graph with the plan's offsets. TARN_BAD_INPUT: numbers above
 * 2^53 - 1. */
enum tarn_status tarn_interval_answer(const struct tarn_plan *plan,
                                      const struct tarn_writer *writer, struct tarn_error *error);

#endif
