/* Collects implementations to be added to a graph: the implementations of each op, and the tensors
 * that forward ops will leave for them. */
#ifndef TARN_PLANNER_TRANSFORM_IMPLEMENTATIONS_ADDITIONS_H
#define TARN_PLANNER_TRANSFORM_IMPLEMENTATIONS_ADDITIONS_H

#include "cost_table.h"
#include "pairing.h"
#include "streams/base/region.h"
#include "streams/graph/graph.h"

/* The additions of one op. */
struct tarn_addition {
    struct tarn_implementation *list; /* the op's own ones, then new ones; NULL: none */
    uint32_t count;
    size_t room;       /* items that `list` has room for */
    uint32_t *outputs; /* all outputs of the op, if tensors were added to them; else NULL */
    uint32_t outputs_count;
    uint64_t cost;      /* nanoseconds */
    uint64_t workspace; /* bytes */
    bool is_measured;   /* cost and workspace were measured */
};

struct tarn_additions {
    const struct tarn_graph *graph;
    const struct tarn_cost_table *costs; /* NULL: none */
    struct tarn_region *region;          /* has all additions */
    struct tarn_pairing pairing;
    struct tarn_addition *ops; /* op -> its additions */
    struct tarn_tensor_info
        *kept; /* new tensors; the first one's id is the graph's tensors_count */
    uint32_t kept_count;
    size_t kept_room;
    uint32_t *ids; /* room for the inputs of one implementation */
    struct tarn_implementations_report report;
};

/* Every op as the graph has it. The region must outlive the additions. TARN_SYSTEM: no memory. */
enum tarn_status tarn_additions_init(struct tarn_additions *additions, struct tarn_region *region,
                                     const struct tarn_graph *graph,
                                     const struct tarn_cost_table *costs);

/* Whether op v has a list that is no shorter than the graph's, within its room, without two
 * implementations of one name. For assertions; cost: quadratic in the list. */
bool tarn_addition_is_valid(const struct tarn_additions *additions, uint32_t v);

/* Gives op v one more implementation, copying its lists but not its name; does nothing if the op
 * has an implementation of that name. TARN_SYSTEM: no memory. */
enum tarn_status tarn_additions_append(struct tarn_additions *additions, uint32_t v,
                                       const struct tarn_implementation *implementation);
bool tarn_additions_has(const struct tarn_addition *addition, const char *name);

/* A new tensor, which becomes the last output of op v; `name` is not copied. *tensor: its id.
 * TARN_SYSTEM: no memory. */
enum tarn_status tarn_additions_keep(struct tarn_additions *additions, uint32_t v, const char *name,
                                     uint64_t size, uint32_t *tensor);

/* ---- rows.c ---- */

/* Gives op v the implementations of the rows of its kind. TARN_SYSTEM: no memory. */
enum tarn_status tarn_additions_add_rows(struct tarn_additions *additions, uint32_t v);

/* ---- split_backward.c ---- */

/* Gives a convolution's backward op, for itself and each whole implementation with its inputs, two
 * that yield a part each. TARN_SYSTEM: no memory. */
enum tarn_status tarn_split_backward(struct tarn_additions *additions, uint32_t v);
/* Is it a name of one of those? */
bool tarn_is_part_name(const char *name);

#endif
