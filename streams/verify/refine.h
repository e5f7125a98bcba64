/* The parts of refinement (see refine.c), and what they share. */
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
    bool is_other;   /* a record is wrong, whether the verdict had room to say so or not */
    bool may_assign; /* the final graph has streams that ops are assigned to */
    /* Runs that make what the source op makes, not a copy of it: the first of a source op, and the
     * next one of the same source op, or TARN_NONE. */
    uint32_t *first_primary, *next_primary; /* a view: itself in the final graph */
};

/* Adds to the verdict, and notes that the graphs cannot be compared any further. */
void tarn_refine_add(struct tarn_comparison *comparison, struct tarn_violation violation,
                     const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Are the records of streams, spaces, groups and tensors those of the source graph, but for what
 * transforms may change? Fills in may_assign. False: no memory; what is wrong stands in the
 * verdict. */
bool tarn_refine_records(struct tarn_comparison *comparison);
/* Is the record of op v, whose origin, implementation and outputs have been checked? */
void tarn_refine_op_record(struct tarn_comparison *comparison, uint32_t v);

/* Shape: is every op of the final graph what its origin is, as written or as the implementation
 * chosen, is there everything that the source graph makes, once, and is nothing repeated that must
 * not be? Fills in the primaries. False: no, or out of memory, as the verdict says. */
bool tarn_refine_shape(struct tarn_comparison *comparison);
/* Versions: does every op find what it finds in the source graph, and is there in the end what is
 * there in the end? */
enum tarn_status tarn_refine_versions(struct tarn_comparison *comparison);
/* Control: are the arcs kept that no tensor stands for? */
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

/* What an op of the final graph reads and makes: tensors of the source graph. */
struct tarn_list tarn_refine_inputs(const struct tarn_comparison *comparison, uint32_t v);
struct tarn_list tarn_refine_outputs(const struct tarn_comparison *comparison, uint32_t v);

#endif
