/* Checks the rules of a graph, for files and for graphs built by calls.
 *
 * A graph passes through in this order; each step relies on the ones before it:
 *
 *     records      every id in range, every number in bounds, aliases, producers, groups
 *     derive.h     streams, arcs, order (a cycle is found here), storages
 *     races        any two users of a storage of which one writes are ordered
 *     layout       contiguous and symmetric groups (derive.h)
 */
#ifndef TARN_STREAMS_GRAPH_VALIDATE_H
#define TARN_STREAMS_GRAPH_VALIDATE_H

#include "report.h"
#include "streams/base/checked.h"

/* Caps: far above any real graph, low enough that no count, sum or index in Tarn overflows. */
#define TARN_OPS_MAX (UINT32_C(1) << 26)
#define TARN_TENSORS_MAX (UINT32_C(1) << 26)
#define TARN_STREAMS_MAX (UINT32_C(1) << 16)
#define TARN_REFERENCES_MAX (UINT32_C(1) << 30) /* entries of all lists of all ops and groups */
#define TARN_ALIGNMENT_MAX (UINT64_C(1) << 30)
#define TARN_SUM_MAX                                                            \
    (UINT64_C(1) << 62) /* of all storages, and of all costs: half the range is \
                           left for what alignment adds */

/* Entries of 4 bytes of the clocks (ops with arcs to other streams, and streams, times streams) and
 * of `first` (planned storages times streams). A graph from a file may have text_max / 64 entries,
 * or a fixed number for each op and tensor, whichever is more: a small file must not need much
 * memory. */
#define TARN_CLOCKS_MAX (UINT64_C(1) << 31)
#define TARN_CLOCKS_PER_RECORD 128

/* Maximum for the members of a group that are not back to back, whose pairs are looked at. */
#define TARN_LAYERS_MAX 4096u

/* Checks ops, tensors and groups (as given) one by one and fills in the tensors' `root` (on entry:
 * the aliased tensor, or TARN_NONE) and `producer`. */
enum tarn_status tarn_validate_records(struct tarn_graph *graph, const struct tarn_group *groups,
                                       const struct tarn_report *report);

/* Checks the fields that allow transforms to change ops; part of the records. */
enum tarn_status tarn_validate_choices(const struct tarn_graph *graph,
                                       const struct tarn_report *report);

/* Conditionals and arms are below this. */
#define TARN_ARMS_MAX (UINT32_C(1) << 16)

/* Checks the arms that ops are in, and counts the conditionals; part of the records, after the
 * tensors' producers. */
enum tarn_status tarn_validate_branches(struct tarn_graph *graph, const struct tarn_report *report);

/* Checks memory spaces, and references to them; part of the records, after the tensors' roots. */
enum tarn_status tarn_validate_spaces(const struct tarn_graph *graph,
                                      const struct tarn_report *report);

/* Checks the symmetric groups: names, members, and that collectives use them; the layout must be
 * derived. Linear, and O(n log n) for n symmetric groups. TARN_SYSTEM: no memory. */
enum tarn_status tarn_validate_symmetric(const struct tarn_graph *graph,
                                         const struct tarn_report *report);

/* Checks that the users of every storage are ordered and that a planned storage's producer is
 * the first; the graph must be derived. Near-linear. TARN_BAD_INPUT; TARN_SYSTEM: no memory. */
enum tarn_status tarn_validate_races(const struct tarn_graph *graph,
                                     const struct tarn_report *report);

#endif
