/* Transforms: graph in, new graph out.
 *
 * A transform never changes the graph that it is given. It returns a new one whose ops name the op
 * that they come from (`origin`, in ids of the graph that was given), whose tensors keep their ids,
 * and in which everything that data arcs, control arcs and hazards ordered still is in order. Where
 * nothing is worth changing, the result is the given graph itself, shared; either way the caller
 * destroys it with tarn_graph_destroy.
 *
 * tarn_plan_create runs the transforms that its options name before it places, in the order in
 * which they are declared here, and the verifier proves that the result refines the source graph.
 *
 * Every transform is deterministic and safe to call from several threads. Status: TARN_USAGE, a bad
 * option; TARN_SYSTEM, no memory.
 */
#ifndef TARN_TRANSFORM_H
#define TARN_TRANSFORM_H

#include "graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- In-place ----
 * An op writes its output over an input that nobody touches afterwards, instead of beside it. Never
 * raises the bound: the joint storage is unsafe only with what one of the two was unsafe with. */

struct tarn_in_place_report {
    uint32_t merged; /* outputs that became aliases */
    uint64_t bytes;  /* their sum */
};

struct tarn_in_place_options {
    size_t struct_size;
    /* Kinds of op that may write any output over any input of its size, besides what the ops' own
     * `inplace` fields allow. */
    const char *const *kinds;
    size_t kinds_count;
    struct tarn_in_place_report *report; /* filled in; NULL: not wanted */
};
#ifndef __cplusplus
#define TARN_IN_PLACE_OPTIONS(...)                                                        \
    (&(struct tarn_in_place_options){.struct_size = sizeof(struct tarn_in_place_options), \
                                     __VA_ARGS__})
#endif

/* options NULL: defaults. Linear time. */
TARN_API enum tarn_status tarn_graph_in_place(struct tarn_graph *graph,
                                              const struct tarn_in_place_options *options,
                                              struct tarn_graph **result, struct tarn_error *error);

/* ---- What changed ----
 * Found by comparing the graphs, whoever made the second one. */

enum tarn_change_kind {
    TARN_MOVED,    /* op: runs at another place among the ops of its stream */
    TARN_ASSIGNED, /* op: is in another stream, `before` -> `after` */
    TARN_ORDERED,  /* op: waits for op `after` of the new graph by a control arc that is new */
    TARN_MERGED    /* tensor: its storage is that of root `after` instead of `before` */
};

/* op: in the new graph; TARN_NONE for a tensor. tensor: TARN_NONE for an op. */
struct tarn_change {
    enum tarn_change_kind kind;
    tarn_op op;
    tarn_tensor tensor;
    uint32_t before, after; /* TARN_MOVED: places in the lists of their streams */
};

/* Lists what a transform changed. The fewest ops that, taken out, leave the streams in their old
 * order are the moved ones. The caller frees *changes with free(). O(n log n). */
TARN_API enum tarn_status tarn_graph_changes(const struct tarn_graph *before,
                                             const struct tarn_graph *after,
                                             struct tarn_change **changes, size_t *count,
                                             struct tarn_error *error);

#ifdef __cplusplus
}
#endif

#endif
