/* The parts of refinement (see refine.c), and their shared state. */
#ifndef TARN_STREAMS_VERIFY_REFINE_H
#define TARN_STREAMS_VERIFY_REFINE_H

#include "streams/graph/versions.h"
#include "verdict.h"

struct tarn_comparison {
    const struct tarn_plan *plan;
    const struct tarn_graph *source, *final;
    const struct tarn_program *program;
    struct tarn_region *region;
    struct tarn_verdict *verdict;
    const struct tarn_verify_options *allowed; /* what the caller allows */
    bool is_other;   /* a record is wrong, even if the verdict had no room for it */
    bool may_assign; /* the final graph has streams that ops are assigned to */
    /* Runs that make tensors of the source op, not copies: the first run of a source op, and the
     * next run of the same source op, or TARN_NONE. */
    uint32_t *first_primary, *next_primary; /* a view: itself in the final graph */
};

/* Adds a violation, and records that the graphs cannot be compared any further. */
void tarn_refine_add(struct tarn_comparison *comparison, struct tarn_violation violation,
                     const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Do the records of streams, spaces, groups and tensors equal the source graph's, except for
 * changes by transforms? Fills in may_assign. False: no memory; violations are in the verdict. */
bool tarn_refine_records(struct tarn_comparison *comparison);
/* Checks the record of op v, whose origin, implementation and outputs have been checked. */
void tarn_refine_op_record(struct tarn_comparison *comparison, uint32_t v);

/* Shape: does every op of the final graph equal its origin, as written or as the chosen
 * implementation? Is every tensor of the source graph made once, and is no op repeated that must
 * not be? Fills in the primaries. False: no, or no memory, as the verdict says. */
bool tarn_refine_shape(struct tarn_comparison *comparison);
/* Versions: does every op read the same versions as in the source graph, and are the final contents
 * the same? */
enum tarn_status tarn_refine_versions(struct tarn_comparison *comparison);
/* Control: is the order by control arcs kept? */
enum tarn_status tarn_refine_control(struct tarn_comparison *comparison);

/* ---- An op of the final graph and its origin (refine_records.c) ---- */

/* The op of the source graph that an op of the final graph runs. */
const struct tarn_graph_op *tarn_refine_origin(const struct tarn_comparison *comparison,
                                               uint32_t v);

/* Is it a move that comes from no op of the source graph? */
bool tarn_refine_is_move(const struct tarn_comparison *comparison, uint32_t v);
/* Does such a move make the tensor? */
bool tarn_refine_is_moved(const struct tarn_comparison *comparison, uint32_t tensor);

/* Does the caller allow ops of that kind to write their outputs over their inputs? */
bool tarn_refine_allows_kind(const struct tarn_comparison *comparison, const char *kind);

/* Does the op of the final graph make tensors of the source graph, not copies? */
bool tarn_refine_is_primary(const struct tarn_comparison *comparison, uint32_t v);

/* The inputs and outputs of an op of the final graph, as tensors of the source graph. */
struct tarn_list tarn_refine_inputs(const struct tarn_comparison *comparison, uint32_t v);
struct tarn_list tarn_refine_outputs(const struct tarn_comparison *comparison, uint32_t v);

#endif
