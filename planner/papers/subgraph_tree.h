/* The subgraph tree of ROAM: divides a graph into parts that can be ordered and placed one by one.
 *
 *     core      ──●──┬─○─┬──●──●─┬─○───○─┬──●──   ● memory-insensitive: comparable with every
 *                    └─○─┘       └───○───┘          other core node, hence a cut
 *     branches              └─○─○ (one parameter's update, or another end of its own)
 *     supplies   ○─○─┘ (feed nodes that also wait for a longer chain)
 *
 * A segment is the nodes between two cuts, the first cut included. Branches may run in their first
 * segment or any later one; supplies may run in any segment up to the first one that they feed. */
#ifndef TARN_PLANNER_PAPERS_SUBGRAPH_TREE_H
#define TARN_PLANNER_PAPERS_SUBGRAPH_TREE_H

#include "planner/transform/list_model.h"
#include "streams/base/region.h"

/* The maximum size of the tree's leaves if the caller gives none. */
#define TARN_NODE_LIMIT 60

enum tarn_subgraph_role { TARN_SUBGRAPH_CORE, TARN_SUBGRAPH_BRANCH, TARN_SUBGRAPH_SUPPLY };

struct tarn_subgraph_tree {
    const struct tarn_reorder_model *model;
    uint8_t *role;    /* node -> enum tarn_subgraph_role */
    uint32_t *branch; /* node -> its branch, one for each parameter; TARN_NONE: in no branch */
    uint32_t branches_count;
    uint32_t *cuts; /* nodes, ascending */
    uint32_t cuts_count;
    uint32_t *segment; /* node -> cuts at or before it in the order that came in */
};

/* Taken from the region; reads the model as long as it lives. TARN_SYSTEM: no memory. */
enum tarn_status tarn_subgraph_tree_init(struct tarn_subgraph_tree *tree,
                                         struct tarn_region *region,
                                         const struct tarn_reorder_model *model);

#endif
