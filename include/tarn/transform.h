/* Transforms: graph in, new graph out.
 *
 * A transform never changes the graph that it is given. It returns a new one whose ops name the op
 * that they come from (`origin`, in ids of the graph that was given), whose tensors keep their ids,
 * and in which everything that data arcs, control arcs and hazards ordered still is in order. Where
 * nothing is worth changing, the result is the given graph itself, shared; either way the caller
 * destroys it with tarn_graph_destroy.
 *
 * tarn_plan_create runs the transforms that its options name before it places: padding of groups,
 * assign, reorder, couple, in-place, budget. The verifier proves that the result refines the source
 * graph. Where another order may be worse than the one that came in (within a budget, or for the
 * capacity of a second memory space), that one is tried, too, and reports tell of the one that was
 * taken.
 *
 * Every transform is deterministic and safe to call from several threads. Status: TARN_USAGE, a bad
 * option; TARN_SYSTEM, no memory.
 */
#ifndef TARN_TRANSFORM_H
#define TARN_TRANSFORM_H

#include "graph.h"
#include "plan.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What the inline functions of their names call, see graph.h. */
struct tarn_budget_report;
struct tarn_budget_options;
TARN_API enum tarn_status tarn_graph_budget_curve_sized(struct tarn_graph *graph,
                                                        const struct tarn_budget_options *options,
                                                        struct tarn_budget_report *rows,
                                                        size_t size, size_t count,
                                                        struct tarn_error *error);
TARN_API enum tarn_status tarn_budget_curve_save_sized(const struct tarn_graph *graph,
                                                       const struct tarn_budget_report *rows,
                                                       size_t size, size_t count, const char *path,
                                                       struct tarn_error *error);

/* ---- How far a search goes ----
 * Reordering, coupling and keeping to a budget search, in steps: a round of improvement or an order
 * that is weighed, an arc that is chosen, a policy that is evaluated. The others are single passes,
 * and over soon. */

/* What a step is about to improve. */
struct tarn_transform_progress {
    size_t struct_size;
    const char *transform; /* "reorder", "couple" or "budget"; static */
    uint64_t step;         /* from 1; 0, to `heartbeat`: there was none yet */
    uint64_t bytes; /* the best so far: the bound for coupling; for reordering the list's peak,
                       then, of several streams, the heaviest antichain; for a budget the peak */
};

/* Of a transform that plan options ask for, the plan's own stop and seconds stand in for those that
 * are not given here. */
struct tarn_transform_control {
    size_t struct_size; /* sizeof(struct tarn_transform_control), as the macro below says */
    uint64_t
        steps; /* at most; 0: until nothing helps any more. The result depends on nothing else */
    /* NULL, or called before every step, from the thread that transforms. */
    void (*progress)(void *user, const struct tarn_transform_progress *progress);
    void *user;
    /* NULL, or set to true by anybody, also by `progress`, to end the search: the best graph so far
     * is the result. */
    const bool *stop;
    double seconds; /* of search at most; 0: no limit; below 0: TARN_USAGE. What comes of it depends
                       on the machine */
    /* NULL, or called with `user` on the calling thread, at once and then at least twice a second
     * as long as the call lasts, also between steps, with the last step; true ends the search, as
     * `stop` does. A thread of the call's own then does the work, and `progress` comes on the
     * calling thread, too; where the system refuses a thread, there are no heartbeats. Not within
     * tarn_plan_create, whose options have a heartbeat of their own. */
    bool (*heartbeat)(void *user, const struct tarn_transform_progress *progress);
};
#ifndef __cplusplus
#define TARN_TRANSFORM_CONTROL(...)                                                         \
    (&(struct tarn_transform_control){.struct_size = sizeof(struct tarn_transform_control), \
                                      __VA_ARGS__})
#endif

/* ---- Assign ----
 * Streams for a graph that comes without, or other ones than it came with. */

enum tarn_assign_mode {
    /* List scheduling by the ops' costs over some compute streams, one for communication and one
     * for copies; see simulate.h for the model. */
    TARN_ASSIGN_SCHEDULE,
    /* As many streams as it takes for each to be a chain: every op of a stream has to wait for the
     * one before it anyway, so that nothing that could run side by side is put behind each other.
     * Of those the one with the fewest arcs between streams. Costs do not matter. */
    TARN_ASSIGN_CONCURRENCY
};

struct tarn_assign_report {
    uint32_t streams;
    uint64_t serial_ns; /* all ops in a row */
    uint64_t chain_ns;  /* longest chain of ops that must follow each other, without waits */
    uint64_t work_ns;   /* an even share of the ops for each stream of the busiest kind */
    uint64_t limit_ns;  /* no assignment to as many streams is faster: at least both of them */
    uint64_t before_ns; /* modelled critical path of the graph that came in */
    uint64_t after_ns;  /* and of the result */
    uint64_t after_no_wait_ns;          /* the same streams and order if waits took no time */
    uint32_t arcs;                      /* pairs of ops in different streams tied by an arc */
    uint32_t waits;                     /* event waits left of them */
    uint64_t bound_before, bound_after; /* bytes reserved at once, at worst */
};

struct tarn_assign_options {
    size_t struct_size;
    enum tarn_assign_mode mode;
    uint32_t streams; /* for computing; 0: 2. Streams for communication and copies come on top,
                         where there are such ops */
    uint32_t wait_ns; /* that an event wait takes in the model; 0: TARN_WAIT_NS */
    /* Ops whose class the graph does not say communicate, or copy, if their kind has one of these
     * words ("all_reduce" is a word of "ncclAllReduce"); NULL: what docs/formats.md says of kinds.
     */
    const char *const *communication_words;
    size_t communication_words_count;
    const char *const *copy_words;
    size_t copy_words_count;
    uint64_t alignment; /* of the plan, a power of two: what a storage reserves; 0: 512 */
    struct tarn_assign_report *report; /* filled in; NULL: not wanted */
    size_t report_size; /* sizeof(struct tarn_assign_report); 0: that of version 0.1 */
};
#ifndef __cplusplus
#define TARN_ASSIGN_OPTIONS(...) \
    (&(struct tarn_assign_options){.struct_size = sizeof(struct tarn_assign_options), __VA_ARGS__})
#endif

/* options NULL: defaults. The list of the result is in order of the modelled begin. TARN_USAGE
 * also: more streams than there may be. Near-linear; O(V E / 64) for the second mode. */
TARN_API enum tarn_status tarn_graph_assign(struct tarn_graph *graph,
                                            const struct tarn_assign_options *options,
                                            struct tarn_graph **result, struct tarn_error *error);

/* ---- Budget ----
 * When the arena does not fit: forward results that the backward pass needs are dropped and
 * computed again, and ops are carried out by other implementations, for the least modelled time at
 * which the plan fits. Ops of the result name the op that they come from; one that runs again has
 * outputs of its own, which name the tensors that they hold again. See
 * planner/transform/recompute/recompute.h.
 *
 * A plan with both a budget and another order is the best of two: the budget in the order that
 * reordering finds, and in the order that came in. Of those that keep to the budget, the one with
 * the least modelled time is taken, of equals the smaller footprint; a refusal tells the least of
 * both. What comes of the budget is put in order once more, where that makes the footprint smaller
 * and takes no more time. */

enum tarn_budget_method {
    TARN_BUDGET_SEARCH, /* for the least time within the budget */
    TARN_BUDGET_KEEP,   /* everything is kept */
    /* About as many segments as a segment has ops, and only what crosses between two is kept. T.
     * Chen et al., "Training deep nets with sublinear memory cost", 2016. */
    TARN_BUDGET_CHEN,
    TARN_BUDGET_CHECKMATE, /* the search, by recomputation alone, as P. Jain et al., 2020 */
    TARN_BUDGET_GIST,      /* the search, by other implementations alone, as A. Jain et al., 2018 */
    TARN_BUDGET_OFFLOAD    /* moves alone; goes with offload options in those of the plan */
};

struct tarn_budget_report {
    uint64_t budget;                      /* of the footprint, bytes */
    uint64_t footprint_before, footprint; /* of quick plans: of the graph that came in, and now */
    uint64_t peak;                        /* reserved bytes at once when ops run one by one */
    uint64_t time_before_ns, time_ns;     /* modelled critical path, see simulate.h */
    uint64_t work_ns;                     /* of all ops together */
    uint64_t recomputed_ns;               /* part of it spent on ops that run again */
    uint32_t executions;                  /* ops launched */
    uint32_t recomputed;                  /* of them: again */
    uint32_t implemented;                 /* of them: by another implementation than as written */
    uint64_t evaluations;                 /* steps of the search */
};

struct tarn_budget_options {
    size_t struct_size;
    uint64_t budget; /* bytes the footprint must not exceed; 0: as fast as can be. Of several memory
                        spaces it is the first one's, whose capacity, if the graph gives it one,
                        lowers it to what the persistent part leaves */
    enum tarn_budget_method method;
    uint64_t effort;    /* evaluations at most; 0: enough for what is usual */
    uint64_t alignment; /* of the plan, a power of two: what a storage reserves; 0: 512 */
    struct tarn_budget_report *report; /* filled in, also when nothing fits; NULL: not wanted */
    const struct tarn_transform_control *control; /* NULL: to the end, silently */
    size_t report_size; /* sizeof(struct tarn_budget_report); 0: that of version 0.1 */
    /* Run again only ops whose kind Tarn knows (tarn_graph_op_class), or of which the graph says
     * that they are pure or recomputable. */
    bool known_only;
    /* Instead of `budget`: this share, above 0 and at most 1, of the footprint that the same call
     * would have without a budget, a capacity and `seconds`. That is planned first, which takes as
     * long as it would alone. 0: not given; of both the smaller one counts. TARN_USAGE: no share. A
     * curve of budgets takes no notice of it. */
    double share;
};
#ifndef __cplusplus
#define TARN_BUDGET_OPTIONS(...) \
    (&(struct tarn_budget_options){.struct_size = sizeof(struct tarn_budget_options), __VA_ARGS__})
#endif

/* options NULL: defaults. TARN_DOES_NOT_FIT: `error` tells the least footprint found, which is a
 * budget that can be kept and depends on the graph and the other options alone, and how far down
 * no choice could come, with the op that needs so much. TARN_INTERRUPTED, TARN_DEADLINE: the
 * control ended the search before anything fitted. */
TARN_API enum tarn_status tarn_graph_budget(struct tarn_graph *graph,
                                            const struct tarn_budget_options *options,
                                            struct tarn_graph **result, struct tarn_error *error);
/* What `count` budgets cost, from the footprint of keeping everything down to the least that was
 * found, evenly spaced. The budget of the options is not used. TARN_INTERRUPTED, TARN_DEADLINE: the
 * control ended it early; rows are filled in from the last one on, the others have budget 0. */
static inline enum tarn_status tarn_graph_budget_curve(struct tarn_graph *graph,
                                                       const struct tarn_budget_options *options,
                                                       struct tarn_budget_report *rows,
                                                       size_t count, struct tarn_error *error)
{
    return tarn_graph_budget_curve_sized(graph, options, rows, sizeof *rows, count, error);
}
/* Writes the rows to a temporary name, then renames; "-" is standard output. A name that ends in
 * ".svg" asks for a picture, any other for CSV. `graph`: what they were made of. */
static inline enum tarn_status tarn_budget_curve_save(const struct tarn_graph *graph,
                                                      const struct tarn_budget_report *rows,
                                                      size_t count, const char *path,
                                                      struct tarn_error *error)
{
    return tarn_budget_curve_save_sized(graph, rows, sizeof *rows, count, path, error);
}

/* ---- Offload ----
 * A storage that idles between two uses waits in another memory, mostly the host's: it is copied
 * there on a stream of its own, and back in time on another one (struct tarn_op_info, `move`).
 * Asked for in plan options. With a budget there, each storage is kept, made again, made by another
 * implementation, or moved, for the least modelled time that is found; never more than by moves
 * alone, or without them. Without a budget, what makes nobody wait is moved, as long as it makes
 * the arena smaller. Where bytes are free, and when they are taken again, hangs on ops, not on
 * times: where copies take longer than told, the plan is as safe and as small, but slower. */

/* What may move. What persists lies in the other memory then, and is in the first one around its
 * uses: its bytes are those of the arena, no longer of the persistent part. */
enum tarn_offload_kind {
    TARN_OFFLOAD_ACTIVATIONS = 1, /* what an iteration makes */
    TARN_OFFLOAD_STATES = 2,      /* of optimizers */
    TARN_OFFLOAD_PARAMETERS = 4
};

struct tarn_offload_report {
    uint64_t gaps;                /* times that a storage is away */
    uint64_t storages;            /* that are copied out, each time that they were written anew */
    uint64_t bytes_out, bytes_in; /* copied in an iteration */
    uint64_t host_bytes;          /* of the arena in the other memory space */
    uint64_t out_ns, into_ns;     /* that the two copy streams are at work */
    uint64_t time_before_ns, time_ns; /* modelled critical path, see simulate.h */
    uint64_t waiting_ns;              /* part of it that it would not take if copies took no time */
    uint64_t slower_ns; /* the critical path if copies took a quarter longer than told */
    /* No moves of the graph as it came in, in its order of ops, are faster within the budget; by
     * one compute stream. 0: not looked for. */
    uint64_t no_less_than_ns;
};

struct tarn_offload_options {
    size_t struct_size;
    uint64_t out_bytes_per_second;  /* to the other memory; required */
    uint64_t into_bytes_per_second; /* and back; 0: as fast */
    uint64_t latency_ns;            /* of each copy, beside its bytes; 0: 5000 */
    unsigned kinds;                 /* a sum of enum tarn_offload_kind; 0: activations */
    double margin; /* share by which copies are planned slower than that; 0: none */
    /* Where storages wait: a memory space of the graph; 0: its first one of kind pinned, or, where
     * there is none, one named "host" that is added, with this capacity (bytes; 0: no limit). */
    tarn_space space;
    uint64_t capacity;
    const char *out_stream;  /* names of the added streams; NULL: "d2h" */
    const char *into_stream; /* NULL: "h2d" */
    uint64_t bytes_min;      /* smaller storages stay; 0: 1 MiB */
    uint64_t effort;         /* steps of search, of about a million places each; 0: 1000 */
    struct tarn_offload_report *report; /* filled in; NULL: not wanted */
    size_t report_size;                 /* sizeof(struct tarn_offload_report) */
};
#ifndef __cplusplus
#define TARN_OFFLOAD_OPTIONS(...)                                                       \
    (&(struct tarn_offload_options){.struct_size = sizeof(struct tarn_offload_options), \
                                    __VA_ARGS__})
#endif

/* ---- Reorder ----
 * Another order of the ops, in which less is alive at once. The order that came in is always among
 * those compared: the peak never rises. What was found is compared with a lower bound on the peak
 * of every order, by minimum cuts (see planner/transform/reorder/bound.h). */

/* The ways of looking for better orders, which can be switched off. */
enum tarn_reorder_stage {
    TARN_REORDER_GREEDY,  /* ready segments that free what they take, under a limit on memory */
    TARN_REORDER_WINDOWS, /* complete search around the highest step */
    TARN_REORDER_CUTS,    /* what the minimum cut at the highest step would have run before it */
    TARN_REORDER_CASES,   /* the bound by cases where minimum cuts leave a gap, and what turns up */
    TARN_REORDER_WITNESS, /* several streams: away from the heaviest antichain */
    TARN_REORDER_STAGES
};

/* A word for a stage, for example "greedy"; static. */
TARN_API const char *tarn_reorder_stage_text(enum tarn_reorder_stage stage);

/* What a stage has brought. */
struct tarn_reorder_gain {
    uint32_t tries; /* orders */
    uint64_t bytes; /* that the peak has fallen by them */
};

struct tarn_reorder_report {
    /* One stream: the most bytes reserved at once. Several: the heaviest antichain, which is what
     * no plan can be below. With a budget: of the order that the budget starts from; where the
     * order that came in was kept, both are equal. */
    uint64_t peak_before, peak_after;
    uint64_t bound;  /* no order has a lower peak; 0: not looked for */
    uint32_t rounds; /* of improvement */
    /* Several streams: of the order that came in and of the result, see simulate.h; else 0. */
    uint64_t critical_path_before_ns, critical_path_ns;
    struct tarn_reorder_gain gains[TARN_REORDER_STAGES];
};

struct tarn_reorder_options {
    size_t struct_size;
    uint64_t alignment; /* of the plan, a power of two: what a storage reserves; 0: 512 */
    uint32_t effort;    /* rounds of improvement at most; 0: 200 */
    bool keep_time;     /* several streams: no order with a longer modelled critical path */
    struct tarn_reorder_report *report;           /* filled in; NULL: not wanted */
    const struct tarn_transform_control *control; /* NULL: to the end, silently */
    size_t report_size; /* sizeof(struct tarn_reorder_report); 0: that of version 0.1 */
    /* Several streams: share by which the modelled critical path may grow; 0: without limit, unless
     * `keep_time` allows no growth at all. Below 0, or not finite: TARN_USAGE. */
    double slowdown_max;
};
#ifndef __cplusplus
#define TARN_REORDER_OPTIONS(...)                                                       \
    (&(struct tarn_reorder_options){.struct_size = sizeof(struct tarn_reorder_options), \
                                    __VA_ARGS__})
#endif

/* options NULL: defaults. TARN_USAGE also: the alignment is not a power of two. */
TARN_API enum tarn_status tarn_graph_reorder(struct tarn_graph *graph,
                                             const struct tarn_reorder_options *options,
                                             struct tarn_graph **result, struct tarn_error *error);

/* ---- Couple ----
 * Memory-aware synchronisation: extra waits between streams, so that fewer storages are alive
 * beside each other. A few events often bring a graph of several streams down to what it needs
 * when its ops run one after another, at no modelled time (see simulate.h for the model). */

/* What one gets for the first arcs: rows have ever more of them, and ever lower bounds. */
struct tarn_couple_row {
    uint32_t arcs;             /* added; the first row has none */
    uint32_t waits;            /* event waits of an iteration, fewest possible */
    uint64_t bound;            /* heaviest antichain: bytes reserved at once, at worst */
    uint64_t critical_path_ns; /* modelled */
};

struct tarn_couple_report {
    uint64_t serial_peak; /* bytes reserved at once when ops run one by one in list order */
    uint64_t target;      /* for the bound */
    uint64_t bound;       /* reached */
    uint32_t arcs;        /* added */
    struct tarn_couple_row *rows;
    size_t rows_count;
};

struct tarn_couple_options {
    size_t struct_size;
    uint64_t alignment;  /* of the plan, a power of two: what a storage reserves; 0: 512 */
    uint64_t capacity;   /* bytes the bound is to come down to; 0: by `keep` */
    double keep;         /* share of the excess over the serial peak that may stay: 0 to 1 */
    double slowdown_max; /* share by which the modelled critical path may grow; 0: not at all; more
                            never leads to a higher bound */
    uint32_t wait_ns;    /* that an event wait takes in the model; 0: TARN_WAIT_NS */
    struct tarn_couple_report *report; /* filled in, the caller finishes it; NULL: not wanted */
    const struct tarn_transform_control *control; /* NULL: to the end, silently */
    size_t report_size; /* sizeof(struct tarn_couple_report); 0: that of version 0.1 */
};
#ifndef __cplusplus
#define TARN_COUPLE_OPTIONS(...) \
    (&(struct tarn_couple_options){.struct_size = sizeof(struct tarn_couple_options), __VA_ARGS__})
#endif

/* options NULL: defaults. The bound never rises, and comes down to the target where that can be
 * had: the report says how far. A plan may still need more than the bound, for contiguous groups.
 * About a dozen bounds for each arc. */
TARN_API enum tarn_status tarn_graph_couple(struct tarn_graph *graph,
                                            const struct tarn_couple_options *options,
                                            struct tarn_graph **result, struct tarn_error *error);
/* Frees what the report has, not itself. */
TARN_API void tarn_couple_report_finish(struct tarn_couple_report *report);

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
    size_t report_size; /* sizeof(struct tarn_in_place_report); 0: that of version 0.1 */
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

/* ---- Padding of groups ----
 * All contiguous groups exact, or all padded, whatever the graph says. Padded ones need no fitting
 * of members that begin anywhere; exact ones have no bytes between members. TARN_USAGE: neither of
 * the two, nor as given. Linear time. */
TARN_API enum tarn_status tarn_graph_pad_groups(struct tarn_graph *graph,
                                                enum tarn_group_padding padding,
                                                struct tarn_graph **result,
                                                struct tarn_error *error);

/* ---- Implementations ----
 * Other ways to carry out ops, for `budget` to choose from. The result is a source graph of its
 * own, with the ops and tensors of the one that was given under their ids, to be planned and
 * verified as itself; so this is not among the transforms of a plan. */

/* A table of costs, immutable, from a file: rows that model a kind of op, and rows that were
 * measured on an op; see docs/formats.md. */
struct tarn_cost_table;

/* Reads a table, from standard input when path is "-", ".gz" or not. The caller destroys it.
 * TARN_BAD_INPUT: `error` has line and column. TARN_SYSTEM: it cannot be read, or no memory. */
TARN_API enum tarn_status tarn_cost_table_load(const char *path, struct tarn_cost_table **table,
                                               struct tarn_error *error);
/* The same from memory or a function: so a program makes its own table. */
TARN_API enum tarn_status tarn_cost_table_read(const struct tarn_reader *reader,
                                               struct tarn_cost_table **table,
                                               struct tarn_error *error);
TARN_API void tarn_cost_table_destroy(struct tarn_cost_table *table);

struct tarn_implementations_report {
    uint32_t ops;             /* that have new implementations */
    uint32_t implementations; /* new ones */
    uint32_t workspaces;      /* ops that got the workspace of what they were traced as */
    uint32_t measured;        /* measurements used */
    uint32_t tensors;         /* added as outputs of forward ops, for backward ops to read */
    uint64_t bytes;           /* of those */
    uint32_t split;           /* backward ops that may run as two */
    uint32_t unpaired;        /* ops with rows that were passed over: no forward op was found */
};

struct tarn_implementations_options {
    size_t struct_size;
    const struct tarn_cost_table *costs; /* NULL: none */
    /* A convolution's backward may run as two: the gradient of its input, which reads no forward
     * result, and that of its weights. Each takes half of the time. */
    bool split_backward;
    struct tarn_implementations_report *report; /* filled in; NULL: not wanted */
    size_t report_size; /* sizeof(struct tarn_implementations_report); 0: that of version 0.1 */
};
#ifndef __cplusplus
#define TARN_IMPLEMENTATIONS_OPTIONS(...)    \
    (&(struct tarn_implementations_options){ \
        .struct_size = sizeof(struct tarn_implementations_options), __VA_ARGS__})
#endif

/* Adds implementations that ops do not have yet, by name; options NULL: none. Which forward op a
 * backward op belongs to follows from the tensors that both touch. TARN_BAD_INPUT: an op that was
 * measured is not there (`error` has the line), or a cost is above 2^53 - 1. Near-linear. */
TARN_API enum tarn_status
tarn_graph_implementations(struct tarn_graph *graph,
                           const struct tarn_implementations_options *options,
                           struct tarn_graph **result, struct tarn_error *error);

/* What a program knows of an op after the graph was built: from measuring, from a library's query.
 */
#define TARN_AS_IT_IS UINT64_MAX
struct tarn_op_costs {
    tarn_op op;
    uint64_t cost;      /* nanoseconds; TARN_AS_IT_IS: what the graph says */
    uint64_t workspace; /* bytes; TARN_AS_IT_IS: what the graph says */
    /* Further ones, and ones in the place of those that have the same name. */
    const struct tarn_implementation *implementations;
    size_t implementations_count;
};

/* A source graph with these costs and implementations, its ids as before; everything is copied. Of
 * several items for one op the last one counts. TARN_USAGE: no such op; TARN_BAD_INPUT: what the
 * builder would refuse. Near-linear. */
TARN_API enum tarn_status tarn_graph_with_costs(struct tarn_graph *graph,
                                                const struct tarn_op_costs *costs, size_t count,
                                                struct tarn_graph **result,
                                                struct tarn_error *error);

/* ---- One after another ----
 * All transforms that plan options ask for, as tarn_plan_create runs them. Ops of the result name
 * ops of `graph` as their origin. Of the other options only the alignment, the stop, the seconds
 * and the heartbeat count. */
TARN_API enum tarn_status tarn_graph_transform(struct tarn_graph *graph,
                                               const struct tarn_plan_options *options,
                                               struct tarn_graph **result,
                                               struct tarn_error *error);

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
 * order are the moved ones. The caller frees *changes with tarn_free (hooks.h). O(n log n). */
TARN_API enum tarn_status tarn_graph_changes(const struct tarn_graph *before,
                                             const struct tarn_graph *after,
                                             struct tarn_change **changes, size_t *count,
                                             struct tarn_error *error);

#ifdef __cplusplus
}
#endif

#endif
