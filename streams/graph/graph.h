/* The graph as the rest of Tarn sees it: immutable arrays, validated, with everything derived that
 * more than one directory needs (positions, topological order, cross-stream arcs, storages).
 *
 *     ops ──stream, position──► streams          storages: [0, planned_count)  planned
 *      │ inputs, outputs                                     planned roots by tensor id,
 *      ▼                                                     then workspaces by op id
 *     tensors ──root──► tensors ──storage──►             [planned_count, storages_count)
 *                                                            persistent roots by tensor id
 */
#ifndef TARN_STREAMS_GRAPH_GRAPH_H
#define TARN_STREAMS_GRAPH_GRAPH_H

#include <stdatomic.h>

#include "streams/base/region.h"
#include "tarn/graph.h"

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "Tarn is written for little-endian machines: patterns and digests are made of whole words"
#endif

/* What few ops have. */
struct tarn_op_extra {
    const uint32_t *control; /* op ids, as given */
    const uint32_t (*inplace)[2];
    const uint32_t (*branch)[2]; /* {conditional, arm}, as given */
    const struct tarn_implementation *implementations;
    const uint32_t *common; /* NULL: all inputs; what the source op reads in every implementation,
                             * by names of versions (versions.h) */
    uint32_t control_count, inplace_count, implementations_count, common_count, branch_count;
    uint64_t workspace; /* bytes */
    uint64_t flops;
    uint32_t workspace_storage; /* storage index, or TARN_NONE */
    uint32_t implementation;    /* the source op's implementation that was chosen, or TARN_NONE: as
                                 * written */
    uint16_t workspace_space;
    bool common_is_given; /* given by the caller, not derived from the implementations */
};

struct tarn_graph_op {
    const char *name;
    const char *kind;
    const uint32_t *inputs;      /* tensor ids, as given; the outputs follow directly */
    struct tarn_op_extra *extra; /* NULL: none; read by tarn_extra */
    uint64_t cost;               /* ns */
    uint32_t inputs_count, outputs_count;
    uint32_t stream;
    uint32_t position; /* in its stream, views included */
    uint32_t origin;   /* op of the source graph that it comes from; its own id in a source graph;
                        * TARN_NONE: a move that a transform added */
    bool view;
    bool move;                 /* its output gets the bytes of its input */
    bool workspace_first;      /* has a workspace, which ends before its outputs begin */
    bool says_workspace_first; /* as given, also without a workspace, which costs may add later */
    uint8_t recomputable;      /* enum tarn_recomputable */
    uint8_t op_class;          /* enum tarn_op_class, as given: see tarn_graph_op_class */
};

struct tarn_graph_tensor {
    const char *name;
    uint64_t size;
    uint64_t place;             /* see tarn_tensor_begin and tarn_tensor_wanted */
    uint32_t part, parts_count; /* the parts of the tensor, see tarn_graph_part */
    uint32_t alignment;         /* 0: the plan's */
    uint32_t root;              /* its own id for a root */
    uint32_t producer;          /* op, or TARN_NONE (persistent only) */
    uint32_t storage;           /* index into storages, the root's */
    uint32_t origin; /* tensor of the source graph whose content it holds again; else itself */
    uint16_t space;
    uint8_t kind;        /* enum tarn_tensor_kind */
    uint8_t offset_rule; /* enum tarn_offset_rule; of a planned root */
};

struct tarn_graph_stream {
    const char *name;
    const uint32_t *ops; /* in order, views included */
    uint32_t ops_count;
};

struct tarn_storage {
    uint64_t size;                     /* exact bytes; 0: there is nothing to place */
    uint32_t tensor;                   /* root tensor, or TARN_NONE for a workspace */
    uint32_t producer;                 /* first writer; for persistent storages TARN_NONE */
    uint32_t users_begin, users_count; /* see tarn_storage_users */
    uint32_t part, parts_count;
    uint32_t group; /* contiguous group, or TARN_NONE */
    uint16_t space;
    bool pinned; /* an output: never released inside the iteration */
    bool persistent;
};

/* A part of a storage. A storage is cut at the ends of all its slices: every tensor consists of
 * whole, consecutive parts. A storage without slices is one part, a storage without bytes has no
 * part. Races, versions and checks are by part; offsets, lifetimes and conflicts by storage. */
struct tarn_graph_part {
    uint64_t offset, size; /* in the storage */
    uint32_t storage;
};

/* A contiguous group: members that lie back to back, or at given offsets. Given groups that share
 * members are joined into one (layout.c), in which members may overlap if they are never in use at
 * once. */
struct tarn_group {
    const uint32_t *tensors;  /* of a given group: the roots, as given */
    const uint64_t *offsets;  /* of a given group: by root, its offset in the group; NULL: back to
                               * back */
    const uint32_t *storages; /* storage indices, in order, of the roots that have bytes */
    const uint64_t *within;   /* by member, its offset in the group; NULL: back to back. Of a joined
                               * group the first is at 0, and the first or the last ends last */
    const char *symmetric;    /* of a given group: its name in a family of graphs; NULL: none */
    uint32_t tensors_count, storages_count;
    bool persistent;
    bool padded; /* every member is padded to the plan's alignment, not only the whole group */
};

/* Distinct cross-stream arcs (data and control, views as ordinary nodes), as neighbour lists: the
 * list of op v is [begin[v], begin[v + 1]). */
struct tarn_arcs {
    const uint32_t *begin;
    const uint32_t *ops;
};

struct tarn_graph {
    atomic_uint *references; /* allocated separately, so that a graph can be copied while it is
                              * shared; NULL in a view of a graph, which is not shared */
    const char *name;
    const char *meta; /* JSON text of the file's meta object, "{}" if none */
    struct tarn_graph_op *ops;
    struct tarn_graph_tensor *tensors;
    struct tarn_graph_stream *streams;
    struct tarn_storage *storages;
    /* Storage by storage, see tarn_part; NULL: every storage is one part, and part p is storage p
     * of part_storages. Views of a graph keep its parts and their numbers. */
    const struct tarn_graph_part *parts;
    const struct tarn_storage *part_storages;
    uint32_t parts_count;
    const uint32_t *users;          /* of all storages */
    const struct tarn_group *given; /* contiguous groups as given */
    struct tarn_group *groups;      /* the given groups, joined if they share members */
    uint32_t ops_count, tensors_count, streams_count, groups_count, given_count;
    uint32_t storages_count;
    uint32_t spaces_count; /* 0: none is declared, and there is one space */
    struct tarn_space_info spaces[TARN_SPACES_MAX];
    uint32_t planned_count; /* of storages */
    const uint32_t *order;  /* topological order: the list order if that is one, else the smallest
                             * ready id first */
    const uint32_t *rank; /* op -> position in `order`; the same array if that is the list order */
    struct tarn_arcs predecessors, successors; /* cross-stream only */
    uint32_t conditionals_count;               /* 0: every op runs in every iteration */
    uint64_t text_max;         /* the limit of the file that it was read from; 0: not read from a
                                * file */
    struct tarn_hash hash;     /* hash of the content: everything but meta and name */
    struct tarn_region region; /* the graph itself and all its memory but ops, tensors, streams */
};

/* The extra record of an op without its own. */
extern const struct tarn_op_extra tarn_no_extra;

static inline const struct tarn_op_extra *tarn_extra(const struct tarn_graph_op *op)
{
    return op->extra ? op->extra : &tarn_no_extra;
}

/* Has any op other implementations? */
static inline bool tarn_graph_has_implementations(const struct tarn_graph *graph)
{
    for (uint32_t v = 0; v < graph->ops_count; v++)
        if (tarn_extra(&graph->ops[v])->implementations_count > 0) return true;
    return false;
}

static inline const uint32_t *tarn_outputs(const struct tarn_graph_op *op)
{
    return op->inputs + op->inputs_count;
}

/* The first byte of a tensor in its root's storage. */
static inline uint64_t tarn_tensor_begin(const struct tarn_graph_tensor *tensor)
{
    return tensor->offset_rule == TARN_OFFSET_FREE ? tensor->place : 0;
}

/* The offset that is wanted for a tensor's storage in its space's arena; 0: none, or that. Only a
 * root has one, and only others have a begin. */
static inline uint64_t tarn_tensor_wanted(const struct tarn_graph_tensor *tensor)
{
    return tensor->offset_rule == TARN_OFFSET_FREE ? 0 : tensor->place;
}

static inline struct tarn_graph_part tarn_part(const struct tarn_graph *graph, uint32_t part)
{
    if (graph->parts) return graph->parts[part];
    return (struct tarn_graph_part){0, graph->part_storages[part].size, part};
}

/* The distinct ops, without views, that read or write one of the graph's storages, in topological
 * order; users_count of them. */
static inline const uint32_t *tarn_storage_users(const struct tarn_graph *graph,
                                                 const struct tarn_storage *storage)
{
    return graph->users + storage->users_begin;
}

/* The storage's own alignment; 0: the plan's. */
static inline uint32_t tarn_own_alignment(const struct tarn_graph *graph,
                                          const struct tarn_storage *storage)
{
    return storage->tensor == TARN_NONE ? 0 : graph->tensors[storage->tensor].alignment;
}

/* Do two ops never run in one iteration, since they want different arms of a conditional? */
static inline bool tarn_ops_exclude(const struct tarn_graph *graph, uint32_t u, uint32_t v)
{
    const struct tarn_op_extra *a = tarn_extra(&graph->ops[u]), *b = tarn_extra(&graph->ops[v]);
    for (uint32_t i = 0; i < a->branch_count; i++)
        for (uint32_t k = 0; k < b->branch_count; k++)
            if (a->branch[i][0] == b->branch[k][0] && a->branch[i][1] != b->branch[k][1])
                return true;
    return false;
}

/* Is op v in every arm that op u is in? */
static inline bool tarn_op_is_inside(const struct tarn_graph *graph, uint32_t v, uint32_t u)
{
    const struct tarn_op_extra *outer = tarn_extra(&graph->ops[u]);
    const struct tarn_op_extra *inner = tarn_extra(&graph->ops[v]);
    for (uint32_t i = 0; i < outer->branch_count; i++) {
        bool is_there = false;
        for (uint32_t k = 0; k < inner->branch_count; k++)
            is_there = is_there || (inner->branch[k][0] == outer->branch[i][0] &&
                                    inner->branch[k][1] == outer->branch[i][1]);
        if (!is_there) return false;
    }
    return true;
}

static inline bool tarn_list_has(struct tarn_list list, uint32_t id)
{
    for (size_t k = 0; k < list.count; k++)
        if (list.ids[k] == id) return true;
    return false;
}

/* Does the graph say at which offset the storage lies? */
static inline bool tarn_storage_is_fixed(const struct tarn_graph *graph, uint32_t storage)
{
    uint32_t t = graph->storages[storage].tensor;
    return t != TARN_NONE && graph->tensors[t].offset_rule == TARN_OFFSET_FIXED;
}

/* Does a storage hold something only in some iterations? */
static inline bool tarn_storage_is_conditional(const struct tarn_graph *graph, uint32_t storage)
{
    const struct tarn_storage *record = &graph->storages[storage];
    return !record->persistent && tarn_extra(&graph->ops[record->producer])->branch_count > 0;
}

/* Do two storages never both hold something? */
static inline bool tarn_storages_exclude(const struct tarn_graph *graph, uint32_t a, uint32_t b)
{
    const struct tarn_storage *x = &graph->storages[a], *y = &graph->storages[b];
    return graph->conditionals_count > 0 && !x->persistent && !y->persistent &&
           tarn_ops_exclude(graph, x->producer, y->producer);
}

/* While a graph is built: the op's own extra, made if it has none; NULL: no memory. */
struct tarn_op_extra *tarn_graph_own_extra(struct tarn_graph *graph, tarn_op op);
/* While a graph is built: the op is this one of its source's implementations, or TARN_NONE: as
 * written. false: no memory. */
bool tarn_graph_choose(struct tarn_graph *graph, tarn_op op, uint32_t implementation);

/* Frees the unused room of ops and tensors; false: no memory. */
bool tarn_graph_trim(struct tarn_graph *graph);

/* Shares the graph; undone by tarn_graph_destroy. */
struct tarn_graph *tarn_graph_retain(struct tarn_graph *graph);

/* A graph that shares everything with another graph, which outlives it: some of its arrays can be
 * replaced, and it is still a complete graph. It is never retained or destroyed; it has its own
 * region, initially empty, which ends with it. Its hash stays the other graph's hash. */
static inline struct tarn_graph tarn_graph_view(const struct tarn_graph *graph)
{
    struct tarn_graph view = *graph;
    view.references = NULL;
    view.region = (struct tarn_region){.chunks = NULL};
    return view;
}

/* Do streams, positions, order, ranks, arcs between streams, storages and users agree? For tests
 * and assertions; cost: linear. */
bool tarn_graph_is_valid(const struct tarn_graph *graph);

static inline bool tarn_kind_is_persistent(enum tarn_tensor_kind kind)
{
    return kind >= TARN_PARAMETER;
}

/* The alignment of a memory space's blocks in a plan with this alignment. */
static inline uint64_t tarn_space_alignment(const struct tarn_graph *graph, uint32_t space,
                                            uint64_t alignment)
{
    uint64_t own = graph->spaces[space].alignment; /* 0 if undeclared */
    return own > 0 ? own : alignment;
}

/* tarn_space_alignment of the storage's space. */
static inline uint64_t tarn_storage_alignment(const struct tarn_graph *graph, uint32_t storage,
                                              uint64_t alignment)
{
    return tarn_space_alignment(graph, graph->storages[storage].space, alignment);
}

/* Exact bytes from the start of a group with `within` to its end. */
static inline uint64_t tarn_group_end(const struct tarn_graph *graph,
                                      const struct tarn_group *group)
{
    uint32_t last = group->storages_count - 1;
    uint64_t end = group->within[last] + graph->storages[group->storages[last]].size;
    uint64_t first = graph->storages[group->storages[0]].size;
    return first > end ? first : end;
}

/* Bytes that a storage reserves in an arena, or in the persistent part, of a plan with this
 * alignment (a power of two). Alone, or in a padded group, this is its size rounded up to the
 * alignment. In an exact group it is its size; the last member also has the padding to the group's
 * end. A storage's own alignment restricts only its offset. UINT64_MAX: more than 64 bits. Linear
 * in an exact group for its last member, else constant. */
uint64_t tarn_storage_reserved(const struct tarn_graph *graph, uint32_t storage,
                               uint64_t alignment);

/* May the two storages share bytes because one is a workspace that ends before its op writes
 * outputs, and the other is one of these outputs, which begins with that op? */
static inline bool tarn_storages_take_turns(const struct tarn_graph *graph, uint32_t workspace,
                                            uint32_t output)
{
    const struct tarn_storage *first = &graph->storages[workspace],
                              *then = &graph->storages[output];
    return first->tensor == TARN_NONE && then->tensor != TARN_NONE && !then->persistent &&
           first->producer == then->producer && graph->ops[first->producer].workspace_first;
}

/* The word of a kind in files, for example "optimizer_state". */
const char *tarn_kind_text(enum tarn_tensor_kind kind);

static inline bool tarn_hash_equal(struct tarn_hash a, struct tarn_hash b)
{
    return a.word[0] == b.word[0] && a.word[1] == b.word[1];
}

#endif
