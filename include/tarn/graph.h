/* A computation graph: ops partitioned into streams, tensors, storages.
 *
 * A graph is built by calls (struct tarn_builder) or loaded from a file (`tarn.graph` version 1,
 * which is JSON, or a packing instance, which is CSV; plain or gzip). Either way every rule of the
 * format is enforced before a graph exists: acyclic, one producer per tensor, no data race between
 * unordered users of one storage.
 *
 * Ids are dense from 0 in the order in which things were added; a stream's ops run in the order
 * in which they were added. Tensors that alias share the storage of their root.
 */
#ifndef TARN_GRAPH_H
#define TARN_GRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bytes.h"
#include "error.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef uint32_t tarn_op;
typedef uint32_t tarn_tensor;
typedef uint32_t tarn_stream;
typedef uint32_t tarn_space;

struct tarn_graph;
struct tarn_builder;

/* Structs may grow from version to version (docs/abi.md). So a function that takes or fills a
 * struct of the caller is inline: it calls the function of the same name with _sized and passes the
 * struct's size at the caller's compile time. Other languages call the _sized functions
 * directly. */
struct tarn_space_info;
struct tarn_tensor_info;
struct tarn_op_info;
struct tarn_graph_summary;
struct tarn_graph_space_summary;
struct tarn_pairs;
TARN_API tarn_space tarn_builder_space_sized(struct tarn_builder *builder,
                                             const struct tarn_space_info *info, size_t size);
TARN_API tarn_tensor tarn_builder_tensor_sized(struct tarn_builder *builder,
                                               const struct tarn_tensor_info *info, size_t size);
TARN_API tarn_op tarn_builder_op_sized(struct tarn_builder *builder,
                                       const struct tarn_op_info *info, size_t size);
TARN_API bool tarn_graph_op_sized(const struct tarn_graph *graph, tarn_op op,
                                  struct tarn_op_info *info, size_t size);
TARN_API bool tarn_graph_tensor_sized(const struct tarn_graph *graph, tarn_tensor tensor,
                                      struct tarn_tensor_info *info, size_t size);
TARN_API bool tarn_graph_space_sized(const struct tarn_graph *graph, tarn_space space,
                                     struct tarn_space_info *info, size_t size);
TARN_API enum tarn_status tarn_graph_summarize_sized(const struct tarn_graph *graph,
                                                     struct tarn_graph_summary *summary,
                                                     size_t size, struct tarn_error *error);
TARN_API enum tarn_status tarn_graph_summarize_space_sized(const struct tarn_graph *graph,
                                                           tarn_space space,
                                                           struct tarn_graph_space_summary *summary,
                                                           size_t size, struct tarn_error *error);
TARN_API enum tarn_status tarn_graph_pairs_sized(const struct tarn_graph *graph, const char *method,
                                                 struct tarn_pairs *pairs, size_t size,
                                                 struct tarn_error *error);

/* The first three live in the arena at planned offsets; an output is pinned until the end of the
 * iteration. The others are persistent: they live for ever, in a separate part of memory. */
enum tarn_tensor_kind {
    TARN_INTERMEDIATE,
    TARN_GRADIENT,
    TARN_OUTPUT,
    TARN_PARAMETER,
    TARN_OPTIMIZER_STATE,
    TARN_INPUT
};

/* A memory space that storages lie in. Each space has its own arena. Copies from one to another are
 * ops. */
enum tarn_space_kind {
    TARN_SPACE_DEVICE, /* the device's own memory */
    TARN_SPACE_PINNED, /* memory of the host that the device reaches */
    TARN_SPACE_SCRATCH /* small and fast memory on the chip */
};
struct tarn_space_info {
    const char *name; /* NULL: "" */
    enum tarn_space_kind kind;
    uint64_t alignment; /* power of two, instead of the plan's; 0: the plan's */
    uint64_t capacity;  /* bytes that arena and persistent part have together; 0: no limit */
};
#define TARN_SPACES_MAX 16

/* A borrowed list of ids. */
struct tarn_list {
    const uint32_t *ids;
    size_t count;
};

#ifndef __cplusplus
/* A list written in place, alive until the end of the enclosing block: TARN_TENSORS(a, b). */
#define TARN_LIST(...)                                   \
    ((struct tarn_list){(const uint32_t[]){__VA_ARGS__}, \
                        sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t)})
#define TARN_TENSORS(...) TARN_LIST(__VA_ARGS__)
#define TARN_OPS(...) TARN_LIST(__VA_ARGS__)
#endif

/* The rule for a planned tensor's offset: anywhere, at a given offset, or there if it costs
 * nothing. */
enum tarn_offset_rule { TARN_OFFSET_FREE, TARN_OFFSET_FIXED, TARN_OFFSET_PREFERRED };

struct tarn_tensor_info {
    const char *name; /* NULL: "" */
    uint64_t size;    /* bytes; 0: the tensor takes no bytes and only orders the ops that name it */
    enum tarn_tensor_kind kind;
    uint64_t alignment; /* power of two that the offset must be a multiple of; 0: the plan's */
    tarn_space space;   /* its memory space; 0: the first one */
    uint64_t offset;    /* of a slice: its first byte in its root's storage; else 0 */
    /* Of a planned root: the byte of its memory space's arena at which it begins. */
    enum tarn_offset_rule offset_rule;
    uint64_t wanted_offset; /* 0 if it is free */
};

/* An alternative way to compute an op, from which transforms may choose.
 *
 * `inputs`, if not empty, are the tensors that it reads instead of the op's inputs, each as its
 * producer left it. Example: a backward op reads its forward op's output, or a mask, instead of the
 * input. `outputs`, if not empty, are the subset of the op's outputs that it makes, each once. Such
 * an implementation is *partial*, and may read the outputs that it leaves out. Examples: batch-norm
 * is repeated from the statistics it saved, and a convolution's backward is split into input and
 * weight gradient. */
struct tarn_implementation {
    const char *name;
    uint64_t cost;      /* nanoseconds */
    uint64_t workspace; /* bytes */
    struct tarn_list inputs;
    struct tarn_list outputs;
    bool workspace_first; /* as that of an op */
};

/* What an op does besides computing its outputs from its inputs. */
enum tarn_op_class {
    TARN_CLASS_UNKNOWN,    /* not given, and not a kind that Tarn knows: treated as pure */
    TARN_CLASS_PURE,       /* nothing */
    TARN_CLASS_RANDOM,     /* draws random numbers, different ones each time it runs */
    TARN_CLASS_COLLECTIVE, /* communicates: other devices have to run it as often */
    TARN_CLASS_COPY,       /* copies from or to the host or another device */
    TARN_CLASS_OPTIMIZER   /* updates parameters */
};
/* A word for a class, as files have it, for example "collective"; static. */
TARN_API const char *tarn_op_class_text(enum tarn_op_class op_class);

/* May an op run twice: same inputs, same outputs, no side effect? The rule says yes unless the op
 * is a view, its class is random, collective, copy or optimizer, or it writes a persistent
 * storage. */
enum tarn_recomputable { TARN_RECOMPUTABLE_BY_RULE, TARN_RECOMPUTABLE, TARN_NOT_RECOMPUTABLE };

struct tarn_op_info {
    const char *name; /* NULL: "" */
    const char *kind; /* NULL: "" */
    tarn_stream stream;
    struct tarn_list inputs;
    struct tarn_list outputs;
    struct tarn_list control; /* ops that must finish first although no tensor implies it */
    uint64_t workspace;       /* bytes needed while the op runs */
    uint64_t cost;            /* estimated nanoseconds */
    uint64_t flops;
    bool view; /* touches no memory and is never launched; its outputs alias inputs */
    /* The op is done with its workspace before it writes any byte of its outputs: new outputs may
     * share bytes with the workspace. Storages that it reads, or writes in place, may not. */
    bool workspace_first;
    enum tarn_recomputable recomputable;
    const uint32_t (*inplace)[2]; /* pairs {input, output}: the output may be written over the
                                     input, from its first byte on; it is not larger */
    size_t inplace_count;
    const struct tarn_implementation *implementations;
    size_t implementations_count;
    /* ids NULL: follows from `implementations`. In a transformed graph: what the source graph's op
     * reads in every implementation, as tensors of the source graph, each the tensor through which
     * it was written. */
    struct tarn_list common;
    tarn_space workspace_space; /* memory space of the workspace; 0: the first space */
    /* TARN_CLASS_UNKNOWN: the class that the words of the kind imply (docs/formats.md, "What a kind
     * says"). */
    enum tarn_op_class op_class;
    /* Pairs {conditional, arm}: the op runs only in an iteration in which each of these
     * conditionals takes that arm (see tarn_session_take). Ops that want different arms of one
     * conditional exclude each other: their outputs may share bytes, although nothing orders the
     * ops.
     */
    const uint32_t (*branch)[2];
    size_t branch_count;
    /* It copies the bytes of its one input to its one output, which has another storage of the same
     * size, mostly in another memory space, and does nothing else: no workspace, pairs or
     * implementations. Sessions run it themselves on devices that copy (copy_enqueue, device.h).
     * Its class, if not given, is copy. */
    bool move;
};

/* ---- Building ----
 * Errors are collected: the first one is kept, later calls do nothing and return TARN_NONE, and
 * tarn_builder_finish reports it. Everything passed in is copied. One thread at a time. */

/* NULL when out of memory; every builder call accepts that NULL, and finish reports it. */
TARN_API struct tarn_builder *tarn_builder_create(const char *graph_name);
TARN_API void tarn_builder_destroy(struct tarn_builder *builder);

TARN_API tarn_stream tarn_builder_stream(struct tarn_builder *builder, const char *name);
/* Adds a memory space. Spaces are numbered from 0 in the order in which they are added. A graph to
 * which no space is added has one on the device, without a name, a capacity, or its own
 * alignment. */
static inline tarn_space tarn_builder_space(struct tarn_builder *builder,
                                            const struct tarn_space_info *info)
{
    return tarn_builder_space_sized(builder, info, sizeof *info);
}
static inline tarn_tensor tarn_builder_tensor(struct tarn_builder *builder,
                                              const struct tarn_tensor_info *info)
{
    return tarn_builder_tensor_sized(builder, info, sizeof *info);
}
/* Another name for the bytes of `of` (a root or an alias of it), of the same size and kind. An op
 * that outputs it writes these bytes in place, unless the op is a view. */
TARN_API tarn_tensor tarn_builder_alias(struct tarn_builder *builder, tarn_tensor of,
                                        const char *name);
/* Another name for a part of the bytes of `of`: `size` bytes, starting at byte `offset`. Ops that
 * touch slices without a byte in common need no order among themselves; the op that makes the root
 * comes before all of them. */
TARN_API tarn_tensor tarn_builder_slice(struct tarn_builder *builder, tarn_tensor of,
                                        uint64_t offset, uint64_t size, const char *name);
static inline tarn_op tarn_builder_op(struct tarn_builder *builder, const struct tarn_op_info *info)
{
    return tarn_builder_op_sized(builder, info, sizeof *info);
}
/* `later` must not start before `earlier` has finished. */
TARN_API void tarn_builder_control(struct tarn_builder *builder, tarn_op later, tarn_op earlier);
/* `writer` must not start before all other ops so far that read a storage it writes, under any
 * name, have finished. Meant for updates of parameters that other streams read. Linear in the ops
 * so far.
 */
TARN_API void tarn_builder_after_readers(struct tarn_builder *builder, tarn_op writer);
/* The storages of these root tensors lie back to back in this order. A tensor may be in several
 * groups if all of them can hold at once (docs/formats.md). Exact: only the whole group is padded,
 * to a multiple of the plan's alignment. Padded: every member is padded to such a multiple, so each
 * begins at one, and the buffer spans the padding. */
TARN_API void tarn_builder_group(struct tarn_builder *builder, struct tarn_list tensors);
TARN_API void tarn_builder_group_padded(struct tarn_builder *builder, struct tarn_list tensors);
/* The storages of these root tensors lie at these offsets from where the group begins, one for each
 * tensor (at most 2^53 - 1); one that has bytes is at 0. Members that overlap must never be in use
 * at once; bytes between members are free for others. As a buffer that is alive, ends, and is
 * written again at its old place: two tensors at offset 0. Only members at 0 may have an alignment.
 * The offsets are copied. TARN_USAGE from tarn_builder_finish: offsets is NULL. */
TARN_API void tarn_builder_group_offsets(struct tarn_builder *builder, struct tarn_list tensors,
                                         const uint64_t *offsets);

/* The group with this number (the groups are numbered from 0, in the order in which they were
 * added) is symmetric: other devices read or write its bytes, by collectives that want it at one
 * offset on all of them (NCCL's and HCCL's symmetric memory). Groups of one name in a family of
 * graphs (tarn_family_plan) begin at one offset, and all symmetric groups of an arena lie in one
 * range of it, which is registered once (tarn_plan_window). Its tensors are planned, and each is
 * read or written by an op of class collective: others touch their bytes while such an op is under
 * way here, and at no other time. So the order of this graph says when the bytes are free. The name
 * is copied; a graph has each name once. TARN_USAGE from tarn_builder_finish: no such group, or no
 * name. */
TARN_API void tarn_builder_group_symmetric(struct tarn_builder *builder, uint32_t group,
                                           const char *name);

/* Validates everything and makes the graph. Consumes the builder, whatever the status.
 * TARN_BAD_INPUT: a rule is broken, `error` names op and tensor. TARN_SYSTEM: no memory. */
TARN_API enum tarn_status tarn_builder_finish(struct tarn_builder *builder,
                                              struct tarn_graph **graph, struct tarn_error *error);

/* ---- Files ---- */

/* Limits on the memory that loading a file may take.
 *
 * `text_max` is the maximum size of the decompressed text in bytes. Loading takes at most 32 times
 * the text's size plus 4 MiB. The happens-before tables come on top: 4 bytes for each pair of a
 * stream and a storage, or an op that other streams wait for. They take at most text_max / 16 bytes
 * or 512 bytes for each op and tensor, whichever is more; a graph with too many streams for that is
 * refused. Plans of a graph are loaded under its limit, other files under TARN_TEXT_MAX. Graphs
 * built by calls have no such limit. */
#define TARN_TEXT_MAX (UINT64_C(1) << 30)
struct tarn_load_options {
    size_t struct_size; /* sizeof(struct tarn_load_options), as the macro below says */
    uint64_t text_max;  /* 0: TARN_TEXT_MAX */
};
#ifndef __cplusplus
#define TARN_LOAD_OPTIONS(...) \
    (&(struct tarn_load_options){.struct_size = sizeof(struct tarn_load_options), __VA_ARGS__})
#endif
/* Reads a graph from a file, or from standard input when path is "-". The caller destroys it.
 * ".csv" is a packing instance, `id,lower,upper,size`: buffers alive in the steps [lower, upper),
 * which becomes a graph of one stream; ".json" is `tarn.graph`; ".gz" may follow either. With any
 * other name, text that begins with a letter is a packing instance. Options NULL: defaults.
 * TARN_USAGE: bad options. TARN_BAD_INPUT: `error` has line and column (syntax) or JSON pointer and
 * names (meaning); or the file has more text or more streams than the options allow. TARN_SYSTEM:
 * the file cannot be opened or read, or memory ran out. */
TARN_API enum tarn_status tarn_graph_load(const char *path, const struct tarn_load_options *options,
                                          struct tarn_graph **graph, struct tarn_error *error);
/* Reads a graph from memory or a function. TARN_USAGE: the reader has neither bytes nor a
 * function. */
TARN_API enum tarn_status tarn_graph_read(const struct tarn_reader *reader,
                                          const struct tarn_load_options *options,
                                          struct tarn_graph **graph, struct tarn_error *error);
/* Writes a graph to a file: to a temporary name in the same folder, then renames, so that the file
 * exists whole or not at all. Symbolic links stay and their target is replaced. Mode and owner are
 * kept as far as the system allows; other hard links keep the old contents. "-" is standard output;
 * it, "/dev/stdout", pipes and devices are written in place. ".gz" compresses. No signal from
 * writing (SIGPIPE, SIGXFSZ) reaches the process, and its handlers stay as they are. All functions
 * that save a file do the same. A name that ends in ".csv" or ".csv.gz" asks for a packing
 * instance, which holds the planned storages of a graph of one stream without workspaces, and
 * without contiguous groups of what is in use at once. TARN_USAGE: the graph is not of that kind.
 */
TARN_API enum tarn_status tarn_graph_save(const struct tarn_graph *graph, const char *path,
                                          struct tarn_error *error);
/* Writes the text of tarn_graph_save to memory or a function. */
TARN_API enum tarn_status tarn_graph_write(const struct tarn_graph *graph,
                                           const struct tarn_writer *writer,
                                           struct tarn_error *error);

/* ---- Reading a graph ----
 * Ids out of range give NULL or TARN_NONE. Strings live as long as the graph. */

/* Releases the caller's reference; plans and sessions keep what they need. */
TARN_API void tarn_graph_destroy(struct tarn_graph *graph);

TARN_API const char *tarn_graph_name(const struct tarn_graph *graph);
TARN_API uint32_t tarn_graph_streams_count(const struct tarn_graph *graph);
TARN_API uint32_t tarn_graph_ops_count(const struct tarn_graph *graph);
TARN_API uint32_t tarn_graph_tensors_count(const struct tarn_graph *graph);
TARN_API const char *tarn_graph_stream_name(const struct tarn_graph *graph, tarn_stream stream);
/* Fill *info with borrowed pointers; false if the id is out of range. */
static inline bool tarn_graph_op(const struct tarn_graph *graph, tarn_op op,
                                 struct tarn_op_info *info)
{
    return tarn_graph_op_sized(graph, op, info, sizeof *info);
}
/* The op's class: what it was given, or else what its kind says. TARN_CLASS_UNKNOWN also if there
 * is no such op. */
TARN_API enum tarn_op_class tarn_graph_op_class(const struct tarn_graph *graph, tarn_op op);
static inline bool tarn_graph_tensor(const struct tarn_graph *graph, tarn_tensor tensor,
                                     struct tarn_tensor_info *info)
{
    return tarn_graph_tensor_sized(graph, tensor, info, sizeof *info);
}
/* At least one; the name lives as long as the graph. False if there is no such space. */
TARN_API uint32_t tarn_graph_spaces_count(const struct tarn_graph *graph);
static inline bool tarn_graph_space(const struct tarn_graph *graph, tarn_space space,
                                    struct tarn_space_info *info)
{
    return tarn_graph_space_sized(graph, space, info, sizeof *info);
}
/* A word for a kind, as files have it, for example "pinned"; static. */
TARN_API const char *tarn_space_kind_text(enum tarn_space_kind kind);
/* The root of a tensor's storage (itself for a root), or TARN_NONE. */
TARN_API tarn_tensor tarn_graph_root(const struct tarn_graph *graph, tarn_tensor tensor);
/* The first op or tensor of that name, or TARN_NONE. Linear time. */
TARN_API tarn_op tarn_graph_find_op(const struct tarn_graph *graph, const char *name);
TARN_API tarn_tensor tarn_graph_find_tensor(const struct tarn_graph *graph, const char *name);

/* Contiguous groups are numbered from 0, in the order in which they were added. A group's members
 * are root tensors, in the order of their addresses (with offsets: as given); empty if there is no
 * such group. */
TARN_API uint32_t tarn_graph_groups_count(const struct tarn_graph *graph);
TARN_API struct tarn_list tarn_graph_group(const struct tarn_graph *graph, uint32_t group);
/* Is every member padded, not only the whole? False if there is no such group. */
TARN_API bool tarn_graph_group_is_padded(const struct tarn_graph *graph, uint32_t group);
/* The offsets of a group that was given with offsets, one for each member, as long as the graph;
 * NULL: its members are back to back, or there is no such group. */
TARN_API const uint64_t *tarn_graph_group_offsets(const struct tarn_graph *graph, uint32_t group);

/* The name of a symmetric group (tarn_builder_group_symmetric), as long as the graph; NULL: it is
 * not symmetric, or there is no such group. */
TARN_API const char *tarn_graph_group_symmetric(const struct tarn_graph *graph, uint32_t group);

/* 128 bits of content: equal graphs have equal hashes on every machine, and in every version of
 * Tarn. Guards against mistakes, not against attackers. */
struct tarn_hash {
    uint64_t word[2];
};
/* The hash of all that defines a graph: everything but its name and what its file says under
 * "meta". All zeros for NULL. */
TARN_API struct tarn_hash tarn_graph_hash(const struct tarn_graph *graph);
/* A hash as 32 lower-case hexadecimal digits. */
struct tarn_hash_text {
    char text[33];
};
TARN_API struct tarn_hash_text tarn_hash_format(struct tarn_hash hash);

/* Counts and sums that describe a graph. */
struct tarn_graph_summary {
    uint32_t streams;
    uint32_t ops;      /* views included */
    uint32_t views;    /* never launched */
    uint32_t tensors;  /* aliases included */
    uint32_t storages; /* planned, workspaces included */
    uint32_t workspaces;
    uint32_t groups;
    uint32_t arcs;        /* pairs of ops in different streams tied by data or control arcs */
    uint32_t arcs_kept;   /* event waits left after the minimal reduction */
    uint64_t sum;         /* every planned storage on its own, exact bytes */
    uint64_t persistent;  /* exact bytes */
    uint64_t serial_peak; /* maximum of bytes alive in one step of list order, exact bytes; with
                           * several memory spaces, in the first one */
    uint64_t cost;        /* sum over ops, nanoseconds */
};
static inline enum tarn_status tarn_graph_summarize(const struct tarn_graph *graph,
                                                    struct tarn_graph_summary *summary,
                                                    struct tarn_error *error)
{
    return tarn_graph_summarize_sized(graph, summary, sizeof *summary, error);
}

/* A lower bound on the footprint of every safe plan of the graph, at any alignment. It counts exact
 * sizes of storages that cannot share bytes, contiguous groups kept. With several memory spaces it
 * is the first one's. TARN_SYSTEM: no memory. */
TARN_API enum tarn_status tarn_graph_bound(const struct tarn_graph *graph, uint64_t *bound,
                                           struct tarn_error *error);

/* Counts and sums of one memory space. */
struct tarn_graph_space_summary {
    uint32_t storages;    /* planned, workspaces included */
    uint64_t sum;         /* every planned storage on its own, exact bytes */
    uint64_t persistent;  /* exact bytes */
    uint64_t serial_peak; /* most bytes alive in one step of list order, exact bytes */
    uint64_t bound;       /* see tarn_graph_bound */
};
/* TARN_USAGE: no such space; TARN_SYSTEM: no memory. */
static inline enum tarn_status tarn_graph_summarize_space(const struct tarn_graph *graph,
                                                          tarn_space space,
                                                          struct tarn_graph_space_summary *summary,
                                                          struct tarn_error *error)
{
    return tarn_graph_summarize_space_sized(graph, space, summary, sizeof *summary, error);
}

/* ---- Unsafe pairs, by four independent methods ----
 * All methods give the same set. `clocks` is what Tarn uses; the others are the algorithms of the
 * SOMAS paper ("Safe optimized static memory allocation for parallel deep
 * learning", section 3), kept for comparison and proof. */
struct tarn_pairs {
    uint64_t pairs;   /* n (n - 1) / 2 for n planned storages */
    uint64_t unsafe;  /* pairs that must not share a byte */
    uint64_t hash;    /* of the set of unsafe pairs, the same for every method */
    double ms;        /* to prepare answers for any pair (for all methods but clocks: the matrix) */
    double matrix_ms; /* to write the full matrix, if `ms` does not include it; else 0 */
};
/* method: "clocks", "ancestors", "ancestors-opt" or "stream-graph". TARN_USAGE: another word, or a
 * build without the methods of papers (-Dpapers=false). */
static inline enum tarn_status tarn_graph_pairs(const struct tarn_graph *graph, const char *method,
                                                struct tarn_pairs *pairs, struct tarn_error *error)
{
    return tarn_graph_pairs_sized(graph, method, pairs, sizeof *pairs, error);
}

#ifdef __cplusplus
}
#endif

#endif
