/* A plan: stream lists, waits, and the offset of every storage, proved safe. A plan never changes:
 * threads may share it, verify it and make sessions of it at the same time.
 *
 * No plan leaves this API unverified unless the caller asks for that by name: tarn_plan_create
 * and tarn_plan_load end with the independent verifier.
 */
#ifndef TARN_PLAN_H
#define TARN_PLAN_H

#include "graph.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tarn_plan;
struct tarn_verdict;
struct tarn_assign_options;
struct tarn_budget_options;
struct tarn_offload_options;
struct tarn_couple_options;
struct tarn_in_place_options;
struct tarn_reorder_options;

/* What the inline functions of their names call, see graph.h. */
struct tarn_plan_summary;
struct tarn_plan_space_summary;
TARN_API void tarn_plan_summarize_sized(const struct tarn_plan *plan,
                                        struct tarn_plan_summary *summary, size_t size);
TARN_API bool tarn_plan_space_sized(const struct tarn_plan *plan, tarn_space space,
                                    struct tarn_plan_space_summary *summary, size_t size);

/* How far a search has come. */
struct tarn_plan_progress {
    size_t struct_size;
    uint64_t footprint; /* of the best plan so far */
    uint64_t bound;     /* no safe plan is smaller */
    uint64_t steps;     /* of search so far */
};

#define TARN_NO_EFFORT UINT64_MAX

/* Which ops wait for ops of the previous iteration. */
enum tarn_boundary {
    /* Those that touch the same bytes, one of the two writing: a stream begins its next iteration
     * while others are still in the last one, wherever that does no harm. */
    TARN_BOUNDARY_REFINED,
    /* Every stream's first op for every other stream's last: one iteration after another. */
    TARN_BOUNDARY_SIMPLE
};

/* What the members of contiguous groups are padded to, where the caller and not the graph says it.
 */
enum tarn_group_padding {
    TARN_GROUPS_AS_GIVEN, /* as the graph says of each group */
    TARN_GROUPS_EXACT,    /* members end to end */
    TARN_GROUPS_PADDED,   /* every member up to the alignment */
    TARN_GROUPS_SMALLER   /* all exact or all padded, whichever plan is smaller; the search is done
                             twice, each time for half of `seconds` */
};

/* What ended the search for a placement although it had not met its aim (the bound, or the
 * capacity) and would have gone on. Its best plan is the result, at least that of one pass of
 * lowest-offset-first, which runs to its end: about 1 s and 2 us for each storage at most. */
enum tarn_stop {
    TARN_STOP_NONE,     /* it came to its end */
    TARN_STOP_REQUEST,  /* `stop` was set */
    TARN_STOP_DEADLINE, /* `seconds` were over, and the plan depends on the machine's speed; without
                           `seconds`: the machine stood still, see `effort` */
    TARN_STOP_WORK      /* the limit of work, see `effort`; the same on every machine */
};

/* What ended the search for a placement, in every case; of several memory spaces the last of these
 * that ended one of theirs. */
enum tarn_end {
    TARN_END_UNKNOWN,  /* of a plan that was loaded, unless it is at its bound */
    TARN_END_BOUND,    /* the plan is at the bound: no safe plan is smaller */
    TARN_END_METHOD,   /* the method came to its end; more effort finds nothing else by it */
    TARN_END_CAPACITY, /* the plan is within the capacity, or budget: nothing smaller was asked for
                        */
    TARN_END_EFFORT,   /* the steps of search were done: more `effort` may find a smaller plan */
    TARN_END_STOPPED   /* see enum tarn_stop: more time, or work, may find a smaller plan */
};

/* A place in the arena, or in the persistent part. */
struct tarn_placed {
    uint32_t id; /* of a root tensor, or of the op whose workspace it is */
    uint64_t offset, size;
};
struct tarn_places {
    const struct tarn_placed *places; /* by id */
    size_t count;
};

struct tarn_plan_options {
    size_t struct_size; /* sizeof(struct tarn_plan_options), as the macro below says */
    /* Power of two; 0: 512. Every block (a lone storage, or a whole contiguous group) begins at a
     * multiple of it and reserves its bytes up to one. Footprint, bound and overlap mean these
     * reserved bytes. */
    uint64_t alignment;
    /* Bytes the footprint must not exceed: the first plan that fits will do. 0: no limit, the
     * search ends at the bound. Of several memory spaces it is the first one's; the graph says what
     * the others have. */
    uint64_t capacity;
    /* NULL or "all": everything until the bound is met. "baseline" or "somas": the methods of the
     * SOMAS paper, best footprint wins. "lowest": lowest-offset-first and walks. "exact": complete
     * search. "roam-tree" or "roam": the tree of the ROAM paper. "llfb": lowest line, longest life
     * first (Sekiyama et al.). Or one method of the SOMAS paper, "ALGORITHM:SORT:FIT[:paper]", for
     * example "many-objects:size:first-fit". */
    const char *method;
    /* Threads that search, of OpenMP's, the calling one included. 0: OMP_NUM_THREADS, else as many
     * as processors that the calling thread may run on or its control group grants. If the system
     * refuses one, fewer do the work; in a forked child, in a parallel region of the caller's own,
     * and without OpenMP the calling thread works alone. The plan does not depend on the number,
     * unless a deadline ended the search. */
    uint32_t threads;
    uint64_t seed; /* of the search */
    /* Steps of search when nothing simpler meets the bound; TARN_NO_EFFORT: none. However few they
     * are, a limit of counted work ends the call, commonly within 4 s and 5 us for each storage on
     * two idle cores of today; from 1000 steps on it grows with them. So the plan is the same on
     * every machine, however slow or busy. `seconds` take its place. 0: 1000, and, should the
     * machine stand still for more than an hour, an end by the clock (TARN_STOP_DEADLINE). */
    uint64_t effort;
    /* Above 0: search no longer than that; the plan then depends on the machine's speed. With
     * effort 0, for as long as that. 0: no limit. Below 0: TARN_USAGE. */
    double seconds;
    /* NULL, or called on the calling thread whenever a search has found a better plan. */
    void (*progress)(void *user, const struct tarn_plan_progress *progress);
    void *user;
    /* NULL, or set to true by anybody (with an atomic store, or from a signal handler) to end the
     * search: the best plan so far is the result, see enum tarn_stop. */
    const bool *stop;
    /* Transforms to run before placing, see transform.h; NULL: not that one. */
    const struct tarn_assign_options *assign;
    const struct tarn_reorder_options *reorder;
    const struct tarn_couple_options *couple;
    const struct tarn_in_place_options *in_place;
    enum tarn_boundary boundary;
    const struct tarn_budget_options *budget; /* a transform, too */
    uint32_t node_limit; /* method "roam-tree": nodes of a leaf at most; 0: 60 */
    /* NULL, or called with `user` on the calling thread, at once and then at least twice a second
     * as long as the call lasts, also when nothing improves, with the best plan so far (a footprint
     * of 0: there is none yet); true ends the search, as `stop` does. A thread of the call's own
     * then does the work, and also calls the progress of transforms, while that of the plan comes
     * on the calling thread; where the system refuses a thread, there are no heartbeats. */
    bool (*heartbeat)(void *user, const struct tarn_plan_progress *progress);
    enum tarn_group_padding pad_groups; /* a transform, too: the first one */
    /* Offsets that planned root tensors of the graph keep, from the begin of their memory space, as
     * an earlier plan had them: as many as the footprint that is found without them leaves, or the
     * capacity where that is larger. Sizes are not looked at. What the graph prefers is heeded
     * likewise, where `keep` says nothing of it. */
    struct tarn_places keep;
    /* Moves to another memory: beside the budget, or, without one, as long as nobody waits. */
    const struct tarn_offload_options *offload;
};
#ifndef __cplusplus
#define TARN_PLAN_OPTIONS(...) \
    (&(struct tarn_plan_options){.struct_size = sizeof(struct tarn_plan_options), __VA_ARGS__})
#endif

/* Plans a graph. options NULL: defaults. The plan keeps the graph alive.
 * TARN_DOES_NOT_FIT: the best footprint found exceeds the capacity; no plan. TARN_USAGE: bad
 * option. TARN_SYSTEM: no memory. Safe to call from several threads. */
TARN_API enum tarn_status tarn_plan_create(struct tarn_graph *graph,
                                           const struct tarn_plan_options *options,
                                           struct tarn_plan **plan, struct tarn_error *error);
TARN_API void tarn_plan_destroy(struct tarn_plan *plan);

/* Plans of `count` graphs that will share an arena (arena.h), for example of one model for several
 * batch sizes: plans[i] of graphs[i]. Their arena is as large as the largest footprint, so of the
 * others a plan that fits into it will do; such a plan is made smaller, up to its bound, only as
 * far as that takes little. Its footprint may so be above its bound, and the arena is no larger for
 * it: what is proved of the arena is what the summary of the largest plan says. Their persistent
 * parts are one: tensors of the same name lie at the same place. Every persistent tensor must have
 * a name of its own; those of one name must be equally large, and in the same contiguous group, if
 * any. Inputs alone may differ in size: there is room for the largest, of which each plan uses the
 * beginning. All plans or none. Errors as tarn_plan_create; TARN_USAGE: names, sizes or groups do
 * not agree. */
TARN_API enum tarn_status tarn_family_plan(struct tarn_graph *const *graphs, size_t count,
                                           const struct tarn_plan_options *options,
                                           struct tarn_plan **plans, struct tarn_error *error);

/* The i-th word for options.method, the paper's methods in the fixed order in which ties are
 * broken; NULL past the last. */
TARN_API const char *tarn_plan_method(size_t i);

/* Writes `tarn.plan` version 1 to a temporary name, then renames; "-" is standard output. A name
 * that ends in ".csv" or ".csv.gz" asks for tarn_plan_save_intervals. TARN_BAD_INPUT: numbers above
 * 2^53 - 1, which plan files do not have. */
TARN_API enum tarn_status tarn_plan_save(const struct tarn_plan *plan, const char *path,
                                         struct tarn_error *error);
/* Writes the answer to a packing instance, as other packers do: id,lower,upper,size,offset, in the
 * order of the tensors. TARN_USAGE: the plan's graph has no such form (see tarn_graph_save), or the
 * name ends in ".json" or ".json.gz". TARN_BAD_INPUT: numbers above 2^53 - 1. */
TARN_API enum tarn_status tarn_plan_save_intervals(const struct tarn_plan *plan, const char *path,
                                                   struct tarn_error *error);

/* The text of tarn_plan_save, or with a name that ends in ".csv" or ".csv.gz" that of
 * tarn_plan_save_intervals, to memory or a function. */
TARN_API enum tarn_status tarn_plan_write(const struct tarn_plan *plan,
                                          const struct tarn_writer *writer,
                                          struct tarn_error *error);

/* What a caller allows beyond what the source graph says. A plan cannot allow it itself, since it
 * may come from anybody: whoever loads or verifies one says it again. Plans that tarn_plan_create
 * has made, and those that were loaded with options, keep what their caller allowed. */
struct tarn_verify_options {
    size_t struct_size;
    /* Ops of these kinds may write an output over an input, without an `inplace` pair of theirs: as
     * in tarn_in_place_options. */
    const char *const *in_place_kinds;
    size_t in_place_kinds_count;
};
#ifndef __cplusplus
#define TARN_VERIFY_OPTIONS(...) \
    (&(struct tarn_verify_options){.struct_size = sizeof(struct tarn_verify_options), __VA_ARGS__})
#endif

enum tarn_plan_trust {
    TARN_VERIFY, /* TARN_REJECTED when the verifier finds a violation */
    TARN_TRUST   /* well-formed is enough: for replaying what a bad plan does */
};
/* Reads a plan for `graph` (the source graph). Options are what the caller allows; NULL: nothing.
 * "-": standard input. TARN_USAGE: a bad option. TARN_BAD_INPUT: malformed, or it refers to what
 * the graph does not have; `error` has line and column, or the JSON pointer. */
TARN_API enum tarn_status tarn_plan_load(const char *path, struct tarn_graph *graph,
                                         enum tarn_plan_trust trust,
                                         const struct tarn_verify_options *options,
                                         struct tarn_plan **plan, struct tarn_error *error);
/* The same from memory or a function. */
TARN_API enum tarn_status tarn_plan_read(const struct tarn_reader *reader, struct tarn_graph *graph,
                                         enum tarn_plan_trust trust,
                                         const struct tarn_verify_options *options,
                                         struct tarn_plan **plan, struct tarn_error *error);

/* What the plan was asked for, as one line of JSON: the options that its answer depends on, without
 * those left at their defaults; its file has the same under "asked", and docs/formats.md says what
 * is in it. NULL: not known, its file did not say. Lives as long as the plan. */
TARN_API const char *tarn_plan_asked(const struct tarn_plan *plan);
/* May the plan stand for what tarn_plan_create would make with these options (NULL: defaults)? Then
 * it was asked for the same, and its alignment and footprint keep to it. Not whether it is of some
 * graph, or safe: loading has said that. TARN_OK: yes. TARN_REJECTED: no; `error` says what
 * differs. TARN_USAGE: bad options. TARN_SYSTEM: no memory. Any thread. */
TARN_API enum tarn_status tarn_plan_answers(const struct tarn_plan *plan,
                                            const struct tarn_plan_options *options,
                                            struct tarn_error *error);

struct tarn_plan_summary {
    const char *method; /* lives as long as the plan */
    uint64_t alignment;
    uint64_t footprint;      /* bytes of arena for planned storages */
    uint64_t persistent;     /* bytes of the persistent part, padding included */
    uint64_t bound;          /* no safe plan is smaller; 0 when unknown */
    bool optimal;            /* footprint == bound, which a certificate proves */
    uint32_t waits;          /* event waits inside one iteration */
    uint32_t boundary_waits; /* event waits on the previous iteration */
    double transform_ms, order_ms, place_ms, verify_ms; /* of tarn_plan_create; else 0 */
    enum tarn_stop stopped;                             /* of tarn_plan_create; no file has it */
    enum tarn_group_padding pad_groups; /* other than the graph says: all exact, or all padded */
    enum tarn_end ended;                /* of tarn_plan_create */
};
static inline void tarn_plan_summarize(const struct tarn_plan *plan,
                                       struct tarn_plan_summary *summary)
{
    tarn_plan_summarize_sized(plan, summary, sizeof *summary);
}

/* The graph whose ids the plan uses; alive as long as the plan. */
TARN_API const struct tarn_graph *tarn_plan_graph(const struct tarn_plan *plan);

/* Where the storage of a tensor (root or alias) lives: offset in the arena, or in the persistent
 * part for persistent tensors. UINT64_MAX when the id is out of range. */
TARN_API uint64_t tarn_plan_offset(const struct tarn_plan *plan, tarn_tensor tensor);
/* Where the workspace of an op lives; UINT64_MAX when it has none. */
TARN_API uint64_t tarn_plan_workspace_offset(const struct tarn_plan *plan, tarn_op op);

/* ---- What a plan says ----
 * All that a runtime of one's own needs to carry a plan out. Lists live as long as the plan. Where
 * the plan is NULL or an id is out of range, lists are empty and ids are TARN_NONE. */

/* The ops that a stream launches, in launch order; views are not launched. */
TARN_API struct tarn_list tarn_plan_launches(const struct tarn_plan *plan, tarn_stream stream);

/* The launch of `op` waits for the end of `on`, an op of another stream. */
struct tarn_wait {
    tarn_op op;
    tarn_op on;
};
struct tarn_waits {
    const struct tarn_wait *waits;
    size_t count;
};
/* The event waits of one iteration, and those on the previous iteration, to which `on` belongs then
 * (the first iteration has none of these). Together with the launch order they are all the order
 * that the plan needs. */
TARN_API struct tarn_waits tarn_plan_waits(const struct tarn_plan *plan);
TARN_API struct tarn_waits tarn_plan_boundary_waits(const struct tarn_plan *plan);

/* Transforms make a graph of their own, whose ids the plan uses. The source graph's op that an op
 * of it comes from; the source graph's tensor whose content a tensor of it holds; which of the
 * source op's implementations the op is (TARN_NONE: as written); and whether it makes again what
 * another op has made. Where no transform ran, an id is its own origin. */
TARN_API tarn_op tarn_plan_op_origin(const struct tarn_plan *plan, tarn_op op);
TARN_API tarn_tensor tarn_plan_tensor_origin(const struct tarn_plan *plan, tarn_tensor tensor);
TARN_API uint32_t tarn_plan_op_implementation(const struct tarn_plan *plan, tarn_op op);
TARN_API bool tarn_plan_op_is_recomputed(const struct tarn_plan *plan, tarn_op op);

/* Where a contiguous group of the plan's graph lies: offset of its first member, in the arena or in
 * the persistent part, and bytes from there to the end of its last member, exact, or in a padded
 * group padding included. Either pointer may
 * be NULL. TARN_USAGE: no such plan or group. */
TARN_API enum tarn_status tarn_plan_group(const struct tarn_plan *plan, uint32_t group,
                                          uint64_t *offset, uint64_t *size);

/* Why no plan can be smaller than `bound`: a cut through the streams. `launched[s]` launches of
 * stream s lie before it. The storages that are produced before the cut and that nothing before the
 * cut may follow in the same bytes can all be alive at once. `gaps` are the first members of runs
 * of group members outside of them, whose bytes these storages cannot fill: the rest of the bound.
 */
struct tarn_certificate {
    uint64_t bound;
    const uint32_t *launched; /* by stream */
    size_t streams_count;
    struct tarn_list gaps; /* root tensors */
    /* Streams in which the cut goes through the next launch: the workspace of that op lies before
     * it, and the outputs behind it (`workspace_first` of an op). Ascending. */
    struct tarn_list inside;
};
/* False when the plan has none; *certificate is all zeros then. */
TARN_API bool tarn_plan_certificate(const struct tarn_plan *plan,
                                    struct tarn_certificate *certificate);

/* What a plan says of one memory space of its graph. Offsets of storages count from the begin of
 * their space's arena, or persistent part. In tarn_plan_summary, footprint, persistent and bound
 * are sums over all spaces, and optimal means all of them; its method and tarn_plan_certificate are
 * the first one's. */
struct tarn_plan_space_summary {
    const char *method;  /* lives as long as the plan */
    uint64_t footprint;  /* bytes of arena */
    uint64_t persistent; /* bytes of the persistent part */
    uint64_t bound;      /* no safe plan has a smaller footprint in this space; 0: unknown */
    bool optimal;        /* footprint == bound */
    struct tarn_certificate certificate; /* all zeros: none */
};
/* False when there is no such plan or space; *summary is all zeros then. */
static inline bool tarn_plan_space(const struct tarn_plan *plan, tarn_space space,
                                   struct tarn_plan_space_summary *summary)
{
    return tarn_plan_space_sized(plan, space, summary, sizeof *summary);
}

/* What a plan is made for, and what it does: lists, waits and places, not how it was found. Equal
 * on all machines for equal plans, so that the ranks of a distributed program can make sure that
 * they agree: one of them sends its identity, the others expect it. */
struct tarn_plan_identity {
    struct tarn_hash source; /* of the source graph */
    struct tarn_hash plan;
};
/* All zeros for NULL. Linear in the plan. */
TARN_API struct tarn_plan_identity tarn_plan_identify(const struct tarn_plan *plan);
/* TARN_REJECTED: the plan is another one; `error` says whether the graphs differ, or only the
 * plans. */
TARN_API enum tarn_status tarn_plan_expect(const struct tarn_plan *plan,
                                           const struct tarn_plan_identity *expected,
                                           struct tarn_error *error);

/* What a plan file says of one memory space; its name is the graph's to tell. */
struct tarn_outlined_space {
    uint64_t footprint, persistent;
    uint64_t bound; /* 0: the file has none */
};

/* What a plan file says, without the graph that it was made for: to compare files. Nothing of it is
 * proved, and ids and waits are not held against a graph. */
struct tarn_plan_outline {
    size_t struct_size;
    const char *name, *method;
    struct tarn_hash source_hash, graph_hash;
    struct tarn_graph *graph; /* transformed, which the file holds; NULL: the source graph */
    uint64_t alignment, footprint;
    uint64_t bound; /* 0: the file has none */
    size_t launches, waits, boundary_waits;
    struct tarn_places storages, workspaces, persistent;
    const struct tarn_outlined_space *spaces; /* NULL: the file tells of none */
    size_t spaces_count;
};

/* "-" is standard input. The caller destroys the outline, and its graph with it. */
TARN_API enum tarn_status tarn_plan_outline_load(const char *path,
                                                 struct tarn_plan_outline **outline,
                                                 struct tarn_error *error);
TARN_API void tarn_plan_outline_destroy(struct tarn_plan_outline *outline);

/* ---- The verifier ----
 * Shares no algorithm with the planner. Replays the launched program once, two iterations unrolled,
 * with forward vector clocks and a map from byte intervals to storage versions, and compares the
 * plan's graph with the source graph. Near-linear. */

enum tarn_violation_kind {
    TARN_UNORDERED_OVERLAP, /* two storages share reserved bytes and nothing orders them */
    TARN_OVERWRITTEN_INPUT, /* an op reads bytes that another storage has overwritten */
    TARN_HAZARD_LOST,       /* two users of one storage are no longer ordered, a wrong version is
                               read, or an order that control arcs demand is lost */
    TARN_GROUP_BROKEN,      /* members of a contiguous group are not back to back */
    TARN_MISALIGNED,
    TARN_OUT_OF_RANGE, /* the reserved bytes of a storage end above the footprint */
    TARN_MISSING,      /* an op or storage of the graph is absent, or there twice */
    TARN_WRONG_GRAPH,  /* hashes differ, or the final graph does not refine the source */
    TARN_DEADLOCK,     /* lists and waits form a cycle */
    TARN_WRONG_BOUND,  /* above the footprint, or the certificate does not prove it */
    TARN_MISPLACED     /* a storage is not at the offset that the graph fixes */
};
/* A word for a kind, for example "unordered overlap"; static. */
TARN_API const char *tarn_violation_text(enum tarn_violation_kind kind);

/* One op of one iteration of a linear order. */
struct tarn_step {
    tarn_op op;
    uint32_t iteration;
};

struct tarn_violation {
    size_t struct_size;
    enum tarn_violation_kind kind;
    tarn_op op, other_op;             /* TARN_NONE when not concerned */
    tarn_tensor tensor, other_tensor; /* roots; TARN_NONE for a workspace or when not concerned */
    char text[512];
    /* A legal linear order of the launched ops (lists and waits kept) in which an op reads a wrong
     * byte; replay it with tarn_session_check. NULL when there is none. */
    const struct tarn_step *witness;
    size_t witness_count;
};

/* Verifies. options: what the caller allows beside what the plan's own caller did; NULL: nothing.
 * TARN_OK, or TARN_REJECTED with the first violation in `error` and all of them (at most 100) in
 * *verdict, which the caller destroys. verdict may be NULL. TARN_USAGE: a bad option. */
TARN_API enum tarn_status tarn_plan_verify(const struct tarn_plan *plan,
                                           const struct tarn_graph *source,
                                           const struct tarn_verify_options *options,
                                           struct tarn_verdict **verdict, struct tarn_error *error);
/* Reads a plan file as tarn_plan_load does, and verifies what it says however incomplete that is,
 * so that every violation is told and not only the first. */
TARN_API enum tarn_status tarn_plan_verify_file(const char *path, struct tarn_graph *source,
                                                const struct tarn_verify_options *options,
                                                struct tarn_verdict **verdict,
                                                struct tarn_error *error);
TARN_API size_t tarn_verdict_count(const struct tarn_verdict *verdict);
TARN_API const struct tarn_violation *tarn_verdict_get(const struct tarn_verdict *verdict,
                                                       size_t i);
TARN_API void tarn_verdict_destroy(struct tarn_verdict *verdict);

/* Linear orders as files (`tarn.order` version 1: {"format", "version", "order": [[op, iteration],
 * ...]}). Load: the caller frees *steps with tarn_free (hooks.h). "-": standard input or output. */
TARN_API enum tarn_status tarn_order_save(const struct tarn_step *steps, size_t count,
                                          const char *path, struct tarn_error *error);
TARN_API enum tarn_status tarn_order_load(const char *path, struct tarn_step **steps, size_t *count,
                                          struct tarn_error *error);

#ifdef __cplusplus
}
#endif

#endif
