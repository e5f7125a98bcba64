/* A plan: stream lists, waits, and the offset of every storage, proved safe. A plan never changes:
 * threads may share it, verify it and make sessions of it at the same time.
 *
 * No plan leaves this API unverified unless the caller asks for it (TARN_TRUST): tarn_plan_create
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

/* Called by the inline functions of the same names, see graph.h. */
struct tarn_plan_summary;
struct tarn_plan_space_summary;
TARN_API void tarn_plan_summarize_sized(const struct tarn_plan *plan,
                                        struct tarn_plan_summary *summary, size_t size);
TARN_API bool tarn_plan_space_sized(const struct tarn_plan *plan, tarn_space space,
                                    struct tarn_plan_space_summary *summary, size_t size);

/* The progress of a search. */
struct tarn_plan_progress {
    size_t struct_size;
    uint64_t footprint; /* of the best plan so far */
    uint64_t bound;     /* no safe plan is smaller */
    uint64_t steps;     /* of search so far */
};

#define TARN_NO_EFFORT UINT64_MAX

/* Which ops wait for ops of the previous iteration. */
enum tarn_boundary {
    /* An op waits for ops that touch the same bytes, if one of the two writes. A stream may begin
     * its next iteration while other streams are still in the last one. */
    TARN_BOUNDARY_REFINED,
    /* Every stream's first op waits for every other stream's last op: one iteration after
     * another. */
    TARN_BOUNDARY_SIMPLE
};

/* How the members of contiguous groups are padded, if the caller decides instead of the graph.
 */
enum tarn_group_padding {
    TARN_GROUPS_AS_GIVEN, /* as the graph says for each group */
    TARN_GROUPS_EXACT,    /* members end to end */
    TARN_GROUPS_PADDED,   /* every member is padded to the alignment */
    TARN_GROUPS_SMALLER   /* all exact or all padded, whichever plan is smaller; the search runs
                           * twice, each time for half of `seconds` */
};

/* Why the search for a placement stopped before it reached its aim (the bound, or a budget).
 * The result is the best plan found. One pass of lowest-offset-first always runs to its end, so
 * there is a plan; that pass takes at most about 1 s plus 2 us for each storage. */
enum tarn_stop {
    TARN_STOP_NONE,     /* it came to its end */
    TARN_STOP_REQUEST,  /* `stop` was set */
    TARN_STOP_DEADLINE, /* `seconds` ran out, so the plan depends on the machine's speed; without
                         * `seconds`: the clock's limit was reached, see `effort` */
    TARN_STOP_WORK      /* the limit of counted work, see `effort`; the same on every machine */
};

/* Why the search for a placement ended, in every case. With several memory spaces: the last
 * constant of this enum among the spaces. */
enum tarn_end {
    TARN_END_UNKNOWN,  /* the plan was loaded from a file, and its footprint is not the bound */
    TARN_END_BOUND,    /* the footprint equals the bound: no safe plan is smaller */
    TARN_END_METHOD,   /* the method ran to its end; more effort does not change its result */
    TARN_END_CAPACITY, /* the plan fits the budget, or a capacity that ends the search: nothing
                        * smaller was looked for */
    TARN_END_EFFORT,   /* the search used up its steps: more `effort` may find a smaller plan */
    TARN_END_STOPPED   /* see enum tarn_stop: more time, or work, may find a smaller plan */
};

/* An offset in the arena, or in the persistent part. */
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
    /* Bytes that the footprint must not exceed; 0: no limit. The plan is the one without a
     * capacity, or TARN_DOES_NOT_FIT, so a larger capacity never makes it larger, but: couple's
     * waits and `keep` use what a capacity leaves; moves without a budget may make ops wait, or run
     * again, to keep to it (also to that of the graph's first space); the method "exact" looks for
     * a plan within it; and with `seconds` and no effort the search ends at the first plan that
     * fits after the default effort. With several memory spaces it applies to the first one; the
     * graph gives the capacity of the others. */
    uint64_t capacity;
    /* NULL or "all": every method until one reaches the bound. "baseline" or "somas": the methods
     * of the SOMAS paper, best footprint wins. "lowest": lowest-offset-first and local search.
     * "exact": complete search. "roam-tree" or "roam": the tree of the ROAM paper. "llfb": lowest
     * line, longest life first (Sekiyama et al.). Or one method of the SOMAS paper,
     * "ALGORITHM:SORT:FIT[:paper]", for example "many-objects:size:first-fit". */
    const char *method;
    /* Number of OpenMP threads that search, including the calling thread. 0: OMP_NUM_THREADS, else
     * the number of processors that the calling thread may run on or that its control group grants.
     * If the system refuses a thread, fewer threads search. In a forked child, in a parallel region
     * of the caller, and without OpenMP the calling thread works alone. The plan does not depend on
     * the number, unless a deadline ended the search. */
    uint32_t threads;
    uint64_t seed; /* of the search */
    /* Steps of search, if no simpler method reaches the bound; TARN_NO_EFFORT: none. 0: 1000. A
     * limit of counted work also ends the call, commonly within 4 s plus 5 us for each storage on
     * two idle cores of today, and sooner where there are fewer than 200 storages; above 1000 steps
     * the limit grows with them. So the plan is the same on every machine, however slow or busy.
     * `seconds` replaces this limit. If effort is 0, the clock also ends the search if the machine
     * stands still for more than an hour (TARN_STOP_DEADLINE). */
    uint64_t effort;
    /* Above 0: the maximum time of the search; the plan then depends on the machine's speed. With
     * effort 0 the search takes all of this time. 0: no limit. Below 0: TARN_USAGE. */
    double seconds;
    /* NULL, or called on the calling thread whenever a search has found a better plan. */
    void (*progress)(void *user, const struct tarn_plan_progress *progress);
    void *user;
    /* NULL, or a flag that any thread may set to true (with an atomic store, or from a signal
     * handler) to end the search: the best plan so far is the result, see enum tarn_stop. */
    const bool *stop;
    /* Transforms to run before placement, see transform.h; NULL: that transform does not run. */
    const struct tarn_assign_options *assign;
    const struct tarn_reorder_options *reorder;
    const struct tarn_couple_options *couple;
    const struct tarn_in_place_options *in_place;
    enum tarn_boundary boundary;
    const struct tarn_budget_options *budget; /* a transform, too */
    uint32_t node_limit; /* method "roam-tree": maximum number of nodes of a leaf; 0: 60 */
    /* NULL, or called with `user` on the calling thread, at once and then at least twice a second
     * until the call returns, even if nothing improves. It gets the best plan so far (footprint 0:
     * none yet); returning true ends the search, as `stop` does. A separate thread then does the
     * work and calls the progress callbacks of transforms; the plan's progress callback still runs
     * on the calling thread. If the system refuses that thread, there are no heartbeats. */
    bool (*heartbeat)(void *user, const struct tarn_plan_progress *progress);
    enum tarn_group_padding pad_groups; /* also a transform; it runs first */
    /* Offsets of planned root tensors in an earlier plan, from the start of their memory space,
     * which the new plan should keep. It keeps as many as possible within the footprint found
     * without them, or within the capacity if that is larger. Sizes are ignored. Offsets that the
     * graph prefers are handled likewise for tensors that `keep` does not list. */
    struct tarn_places keep;
    /* Moves to another memory: in addition to the budget's transform, or, without a budget, only
     * moves that delay no op. */
    const struct tarn_offload_options *offload;
};
#ifndef __cplusplus
#define TARN_PLAN_OPTIONS(...) \
    (&(struct tarn_plan_options){.struct_size = sizeof(struct tarn_plan_options), __VA_ARGS__})
#endif

/* Plans a graph. options NULL: defaults. The plan keeps the graph alive.
 * TARN_DOES_NOT_FIT: no plan was found within the capacity; error->footprint is the best footprint
 * found, or 0 if the bound already exceeds the capacity.
 * TARN_DEADLINE: `seconds` ran out before anything kept to the budget. TARN_USAGE: bad option.
 * TARN_SYSTEM: no memory. Safe to call from several threads. */
TARN_API enum tarn_status tarn_plan_create(struct tarn_graph *graph,
                                           const struct tarn_plan_options *options,
                                           struct tarn_plan **plan, struct tarn_error *error);
TARN_API void tarn_plan_destroy(struct tarn_plan *plan);

/* Plans of `count` graphs that will share an arena (arena.h), for example of one model for several
 * batch sizes: plans[i] of graphs[i]. The arena is as large as the largest footprint, so each other
 * plan only has to fit into it. The search makes such a plan smaller, towards its bound, only while
 * that takes little time. Its footprint may stay above its bound, which does not enlarge the arena:
 * the summary of the largest plan says what is proved of the arena. The plans share one persistent
 * part: tensors of the same name lie at the same offset. Within one graph, names of persistent
 * tensors must be unique. Tensors of one name must have the same size, and be in the same
 * contiguous group, if any. Only inputs may differ in size: the space fits the largest, and each
 * plan uses its beginning. Symmetric groups of one name lie at one offset. All plans are made or
 * none. Each search, and then the layout of symmetric groups, ends after options.seconds. Errors as
 * tarn_plan_create; TARN_BAD_INPUT: names, sizes or groups of the graphs do not agree. */
TARN_API enum tarn_status tarn_family_plan(struct tarn_graph *const *graphs, size_t count,
                                           const struct tarn_plan_options *options,
                                           struct tarn_plan **plans, struct tarn_error *error);
/* Plans of graphs of different ranks (pipeline stages, expert ranks), each with an arena and
 * persistent tensors of its own: each plan is as small as by itself, but for what its symmetric
 * groups cost, which lie at one offset in all plans, in one window (tarn_builder_group_symmetric).
 * Otherwise as tarn_family_plan, which does that, too. */
TARN_API enum tarn_status tarn_ranks_plan(struct tarn_graph *const *graphs, size_t count,
                                          const struct tarn_plan_options *options,
                                          struct tarn_plan **plans, struct tarn_error *error);

/* The i-th word for options.method, the paper's methods in the fixed order in which ties are
 * broken; NULL after the last. */
TARN_API const char *tarn_plan_method(size_t i);

/* Writes `tarn.plan` version 1 to a temporary name, then renames; "-" is standard output. A name
 * that ends in ".csv" or ".csv.gz" asks for tarn_plan_save_intervals. TARN_BAD_INPUT: numbers above
 * 2^53 - 1, which plan files cannot hold. */
TARN_API enum tarn_status tarn_plan_save(const struct tarn_plan *plan, const char *path,
                                         struct tarn_error *error);
/* Writes the answer to a packing instance, as other packers do: id,lower,upper,size,offset, in the
 * order of the tensors. TARN_USAGE: the plan's graph has no such form (see tarn_graph_save), or the
 * name ends in ".json" or ".json.gz". TARN_BAD_INPUT: numbers above 2^53 - 1. */
TARN_API enum tarn_status tarn_plan_save_intervals(const struct tarn_plan *plan, const char *path,
                                                   struct tarn_error *error);

/* Writes the text of tarn_plan_save to memory or a function; if the name ends in ".csv" or
 * ".csv.gz", the text of tarn_plan_save_intervals. */
TARN_API enum tarn_status tarn_plan_write(const struct tarn_plan *plan,
                                          const struct tarn_writer *writer,
                                          struct tarn_error *error);

/* Permissions of a caller beyond the source graph. A plan file cannot grant them, since it may be
 * untrusted: the caller that loads or verifies a plan gives them again. Plans from
 * tarn_plan_create, and plans loaded with options, keep the permissions of their caller. */
struct tarn_verify_options {
    size_t struct_size;
    /* Ops of these kinds may write an output over an input without an `inplace` pair, as in
     * tarn_in_place_options. */
    const char *const *in_place_kinds;
    size_t in_place_kinds_count;
};
#ifndef __cplusplus
#define TARN_VERIFY_OPTIONS(...) \
    (&(struct tarn_verify_options){.struct_size = sizeof(struct tarn_verify_options), __VA_ARGS__})
#endif

enum tarn_plan_trust {
    TARN_VERIFY, /* TARN_REJECTED when the verifier finds a violation */
    TARN_TRUST   /* well-formed is enough: for replaying a bad plan */
};
/* Reads a plan for `graph` (the source graph). Options are the caller's permissions; NULL: none.
 * "-": standard input. TARN_USAGE: a bad option. TARN_BAD_INPUT: malformed, or it refers to an op,
 * tensor or stream that the graph lacks; `error` has line and column, or the JSON pointer. */
TARN_API enum tarn_status tarn_plan_load(const char *path, struct tarn_graph *graph,
                                         enum tarn_plan_trust trust,
                                         const struct tarn_verify_options *options,
                                         struct tarn_plan **plan, struct tarn_error *error);
/* Reads a plan from memory or a function. */
TARN_API enum tarn_status tarn_plan_read(const struct tarn_reader *reader, struct tarn_graph *graph,
                                         enum tarn_plan_trust trust,
                                         const struct tarn_verify_options *options,
                                         struct tarn_plan **plan, struct tarn_error *error);

/* The options that the plan was made with, as one line of JSON: those that the result depends on,
 * without defaults. The plan's file has the same under "asked"; docs/formats.md describes it. NULL:
 * not known, the plan's file has no "asked". Lives as long as the plan. */
TARN_API const char *tarn_plan_asked(const struct tarn_plan *plan);
/* May the plan stand for the result of tarn_plan_create with these options (NULL: defaults)? It may
 * if it was made with the same options, and its alignment and footprint obey them. Whether it
 * belongs to a graph, and is safe, is not checked here: loading checks that. TARN_OK: yes.
 * TARN_REJECTED: no; `error` says what differs. TARN_USAGE: bad options. TARN_SYSTEM: no memory.
 * Any thread. */
TARN_API enum tarn_status tarn_plan_answers(const struct tarn_plan *plan,
                                            const struct tarn_plan_options *options,
                                            struct tarn_error *error);

struct tarn_plan_summary {
    const char *method; /* lives as long as the plan */
    uint64_t alignment;
    uint64_t footprint;      /* bytes of arena for planned storages */
    uint64_t persistent;     /* bytes of the persistent part, padding included */
    uint64_t bound;          /* no safe plan is smaller; 0 if unknown */
    bool optimal;            /* footprint == bound, which a certificate proves */
    uint32_t waits;          /* event waits inside one iteration */
    uint32_t boundary_waits; /* event waits on the previous iteration */
    double transform_ms, order_ms, place_ms, verify_ms; /* set by tarn_plan_create; else 0 */
    enum tarn_stop stopped;                             /* set by tarn_plan_create; not in files */
    enum tarn_group_padding pad_groups; /* if it differs from the graph: all exact, or all padded */
    enum tarn_end ended;                /* of tarn_plan_create */
};
static inline void tarn_plan_summarize(const struct tarn_plan *plan,
                                       struct tarn_plan_summary *summary)
{
    tarn_plan_summarize_sized(plan, summary, sizeof *summary);
}

/* The graph whose ids the plan uses; alive as long as the plan. */
TARN_API const struct tarn_graph *tarn_plan_graph(const struct tarn_plan *plan);

/* Offset of the storage of a tensor (root or alias) in the arena, or in the persistent part for
 * persistent tensors. UINT64_MAX if the id is out of range. */
TARN_API uint64_t tarn_plan_offset(const struct tarn_plan *plan, tarn_tensor tensor);
/* Offset of the workspace of an op; UINT64_MAX if it has none. */
TARN_API uint64_t tarn_plan_workspace_offset(const struct tarn_plan *plan, tarn_op op);

/* ---- What a plan says ----
 * All that another runtime needs to execute a plan. Lists live as long as the plan. If the plan is
 * NULL or an id is out of range, lists are empty and ids are TARN_NONE. */

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
/* The event waits of one iteration, and those on the previous iteration, to which `on` then belongs
 * (the first iteration has no such waits). Together with the launch order they are all the order
 * that the plan needs. */
TARN_API struct tarn_waits tarn_plan_waits(const struct tarn_plan *plan);
TARN_API struct tarn_waits tarn_plan_boundary_waits(const struct tarn_plan *plan);

/* Transforms make a new graph, whose ids the plan uses. These functions map it to the source graph:
 * the source op that an op comes from, the source tensor whose content a tensor holds, which of the
 * source op's implementations the op is (TARN_NONE: as written), and whether the op recomputes
 * outputs of another op. If no transform ran, an id is its own origin. */
TARN_API tarn_op tarn_plan_op_origin(const struct tarn_plan *plan, tarn_op op);
TARN_API tarn_tensor tarn_plan_tensor_origin(const struct tarn_plan *plan, tarn_tensor tensor);
TARN_API uint32_t tarn_plan_op_implementation(const struct tarn_plan *plan, tarn_op op);
TARN_API bool tarn_plan_op_is_recomputed(const struct tarn_plan *plan, tarn_op op);

/* Offset and size of a contiguous group of the plan's graph. The offset is its first member's, in
 * the arena or in the persistent part. The size reaches from there to the end of the last member:
 * exact, or in a padded group padding included. Either pointer may be NULL. TARN_USAGE: no such
 * plan or group. */
TARN_API enum tarn_status tarn_plan_group(const struct tarn_plan *plan, uint32_t group,
                                          uint64_t *offset, uint64_t *size);

/* Why no plan can be smaller than `bound`: a cut through the streams. `launched[s]` launches of
 * stream s lie before it. Take the storages that are produced before the cut and whose bytes no
 * storage before the cut may reuse: they can all be alive at once. `gaps` are the first members of
 * runs of other group members, whose bytes these storages cannot fill; they give the rest of the
 * bound.
 */
struct tarn_certificate {
    uint64_t bound;
    const uint32_t *launched; /* by stream */
    size_t streams_count;
    struct tarn_list gaps; /* root tensors */
    /* Streams in which the cut goes through the next launch: the workspace of that op lies before
     * it, and the outputs after it (`workspace_first` of an op). Ascending. */
    struct tarn_list inside;
    /* By conditional, the arm that it takes: only what is there then counts. Empty: none. */
    struct tarn_list arms;
};
/* False if the plan has no certificate; *certificate is all zeros then. */
TARN_API bool tarn_plan_certificate(const struct tarn_plan *plan,
                                    struct tarn_certificate *certificate);

/* The range of a memory space's arena in which all symmetric groups of the plan's graph lie
 * (tarn_builder_group_symmetric). All plans of a family have the same one, whether or not their
 * graphs have such groups: every rank registers it once with its communicator. Whatever else the
 * plan puts into it is lent: its bytes are free for that while no collective that uses them is
 * under way. */
struct tarn_window {
    tarn_space space;
    uint64_t offset, size; /* bytes; from the start of the space's arena */
};
/* False if the plan has none, or is NULL; *window is all zeros then. */
TARN_API bool tarn_plan_window(const struct tarn_plan *plan, struct tarn_window *window);

/* Summary of one memory space of a plan. Offsets of storages count from the start of their space's
 * arena, or persistent part. In tarn_plan_summary, footprint, persistent and bound are sums over
 * all spaces, and optimal means that all spaces are optimal; its method and tarn_plan_certificate
 * are the first space's. */
struct tarn_plan_space_summary {
    const char *method;  /* lives as long as the plan */
    uint64_t footprint;  /* bytes of arena */
    uint64_t persistent; /* bytes of the persistent part */
    uint64_t bound;      /* no safe plan has a smaller footprint in this space; 0: unknown */
    bool optimal;        /* footprint == bound */
    struct tarn_certificate certificate; /* all zeros: none */
};
/* False if there is no such plan or space; *summary is all zeros then. */
static inline bool tarn_plan_space(const struct tarn_plan *plan, tarn_space space,
                                   struct tarn_plan_space_summary *summary)
{
    return tarn_plan_space_sized(plan, space, summary, sizeof *summary);
}

/* Hashes of a plan's source graph and of its content: lists, waits and offsets, not how the plan
 * was found. Equal on all machines for equal plans. So the ranks of a distributed program can check
 * that they agree: one rank sends its identity, the other ranks expect it. */
struct tarn_plan_identity {
    struct tarn_hash source; /* of the source graph */
    struct tarn_hash plan;
};
/* All zeros for NULL. Linear in the plan. */
TARN_API struct tarn_plan_identity tarn_plan_identify(const struct tarn_plan *plan);
/* TARN_REJECTED: the identities differ; `error` says whether the graphs differ, or only the
 * plans. */
TARN_API enum tarn_status tarn_plan_expect(const struct tarn_plan *plan,
                                           const struct tarn_plan_identity *expected,
                                           struct tarn_error *error);

/* One memory space in a plan file; the space's name is only in the graph. */
struct tarn_outlined_space {
    uint64_t footprint, persistent;
    uint64_t bound; /* 0: the file has none */
};

/* The content of a plan file, read without the graph that it was made for: to compare files.
 * Nothing in it is proved, and ids and waits are not checked against a graph. */
struct tarn_plan_outline {
    size_t struct_size;
    const char *name, *method;
    struct tarn_hash source_hash, graph_hash;
    struct tarn_graph *graph; /* transformed, which the file holds; NULL: the source graph */
    uint64_t alignment, footprint;
    uint64_t bound; /* 0: the file has none */
    size_t launches, waits, boundary_waits;
    struct tarn_places storages, workspaces, persistent;
    const struct tarn_outlined_space *spaces; /* NULL: the file has none */
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
    TARN_MISSING,      /* an op or storage of the graph is absent, or present twice */
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
    tarn_op op, other_op;             /* TARN_NONE if not concerned */
    tarn_tensor tensor, other_tensor; /* roots; TARN_NONE for a workspace or if not concerned */
    char text[512];
    /* A legal linear order of the launched ops (lists and waits kept) in which an op reads a wrong
     * byte; replay it with tarn_session_check. NULL if there is none. */
    const struct tarn_step *witness;
    size_t witness_count;
};

/* Verifies a plan. options: permissions in addition to those that the plan keeps; NULL: none.
 * Returns TARN_OK, or TARN_REJECTED with the first violation in `error` and all violations (at most
 * 100) in *verdict, which the caller destroys. verdict may be NULL. TARN_USAGE: a bad option. */
TARN_API enum tarn_status tarn_plan_verify(const struct tarn_plan *plan,
                                           const struct tarn_graph *source,
                                           const struct tarn_verify_options *options,
                                           struct tarn_verdict **verdict, struct tarn_error *error);
/* Do plans, each of which has been verified by itself, fit together as a family (tarn_family_plan)?
 * Their windows are equal, and symmetric groups of one name begin at one offset in it. With each
 * plan's own proof that is all that peers need: the bytes that a collective touches on another
 * device are those of the group of that name, from its begin on, and they are that group's from the
 * begin to the end of the collective. If a collective begins with a later member of a group, that
 * member lies alike in all plans that have it, too. TARN_OK, or TARN_REJECTED: `error` names a
 * group and two graphs. TARN_USAGE. TARN_SYSTEM: no memory. */
TARN_API enum tarn_status tarn_family_verify(struct tarn_plan *const *plans, size_t count,
                                             struct tarn_error *error);
/* Reads a plan file as tarn_plan_load does, and verifies it even if it is incomplete, so that every
 * violation is reported and not only the first. */
TARN_API enum tarn_status tarn_plan_verify_file(const char *path, struct tarn_graph *source,
                                                const struct tarn_verify_options *options,
                                                struct tarn_verdict **verdict,
                                                struct tarn_error *error);
TARN_API size_t tarn_verdict_count(const struct tarn_verdict *verdict);
TARN_API const struct tarn_violation *tarn_verdict_get(const struct tarn_verdict *verdict,
                                                       size_t i);
TARN_API void tarn_verdict_destroy(struct tarn_verdict *verdict);

/* Save and load linear orders as files (`tarn.order` version 1: {"format", "version", "order":
 * [[op, iteration], ...]}). Load: the caller frees *steps with tarn_free (hooks.h). "-": standard
 * input or output. */
TARN_API enum tarn_status tarn_order_save(const struct tarn_step *steps, size_t count,
                                          const char *path, struct tarn_error *error);
TARN_API enum tarn_status tarn_order_load(const char *path, struct tarn_step **steps, size_t *count,
                                          struct tarn_error *error);

#ifdef __cplusplus
}
#endif

#endif
