/* Implementations to be added to a graph: op by op what they will have, and the tensors that their
 * forward ops will leave for them. */
#ifndef TARN_PLANNER_TRANSFORM_IMPLEMENTATIONS_IMPLEMENTATIONS_H
#define TARN_PLANNER_TRANSFORM_IMPLEMENTATIONS_IMPLEMENTATIONS_H

#include "cost_table.h"
#include "pairing.h"
#include "streams/base/region.h"
#include "streams/graph/graph.h"

/* What an op will be like. */
struct tarn_addition {
    struct tarn_implementation *list; /* those that it has, then new ones */
    uint32_t count, capacity;
    uint32_t *outputs; /* all of them, where tensors were added; else NULL */
    uint32_t outputs_count;
    uint64_t cost, workspace;
    bool is_measured; /* cost and workspace are */
};

struct tarn_additions {
    const struct tarn_graph *graph;
    const struct tarn_cost_table *costs; /* NULL: none */
    struct tarn_pairing pairing;
    struct tarn_region region; /* lists and names */
    struct tarn_addition *ops;
    struct tarn_tensor_info *kept; /* tensors behind the graph's */
    uint32_t kept_count, kept_capacity;
    uint32_t *ids; /* room for one list */
    struct tarn_implementations_report report;
};

/* Gives op v one more, copying its lists but not its name; nothing where it has one of that name.
 * TARN_SYSTEM: no memory. */
enum tarn_status tarn_additions_append(struct tarn_additions *additions, uint32_t v,
                                       const struct tarn_implementation *implementation);
bool tarn_additions_has(const struct tarn_addition *addition, const char *name);

/* ---- implementations/rows.c ---- */

/* Gives op v what the rows of its kind say. TARN_SYSTEM: no memory. */
enum tarn_status tarn_additions_add_rows(struct tarn_additions *additions, uint32_t v);

/* ---- split_backward.c ---- */

/* Gives a convolution's backward op, for itself and each whole implementation with its inputs, two
 * that yield a part each. TARN_SYSTEM: no memory. */
enum tarn_status tarn_split_backward(struct tarn_additions *additions, uint32_t v);
/* Is it a name of one of those? */
bool tarn_is_part_name(const char *name);

#endif
