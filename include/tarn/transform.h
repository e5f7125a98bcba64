/* Transforms: graph in, new graph out.
 *
 * A transform never changes its input graph. It returns a new graph whose ops name the op that they
 * come from (`origin`, an id of the input graph) and whose tensors keep their ids. Ops that data
 * arcs, control arcs or hazards ordered stay ordered. If no change is worth it, the result is the
 * input graph itself, shared; either way the caller destroys it with tarn_graph_destroy.
 *
 * tarn_plan_create runs the transforms that its options name before placement: padding of groups,
 * assign, reorder, couple, in-place, budget. The verifier proves that the result refines the source
 * graph. If a new order may be worse than the input order (within a budget, or for the capacity of
 * a second memory space), the input order is tried, too, and reports describe the order that was
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

/* Called by the inline functions of the same names, see graph.h. */
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

/* ---- Control of searches ----
 * Reorder, couple and budget search in steps: a round of improvement or the evaluation of an order,
 * the choice of an arc, the evaluation of a policy. The other transforms are single passes, and end
 * soon. */

/* The best result before a step. */
struct tarn_transform_progress {
    size_t struct_size;
    const char *transform; /* "reorder", "couple" or "budget"; static */
    uint64_t step;         /* starting at 1; 0, for `heartbeat`: no step yet */
    uint64_t bytes; /* the best so far. Couple: the bound. Reorder: the list's peak, then, with
                     * several streams, the heaviest antichain. Budget: the peak */
};

/* If plan options ask for the transform, the plan's stop and seconds apply if they are not given
 * here. */
struct tarn_transform_control {
    size_t struct_size; /* sizeof(struct tarn_transform_control), as the macro below says */
    uint64_t steps;     /* maximum; 0: until no step helps. The result depends on nothing else */
    /* NULL, or called before every step, on the thread that runs the transform. */
    void (*progress)(void *user, const struct tarn_transform_progress *progress);
    void *user;
    /* NULL, or a flag that any thread, or `progress`, may set to true to end the search: the best
     * graph so far is the result. */
    const bool *stop;
    double seconds; /* maximum time of the search; 0: no limit; below 0: TARN_USAGE. The result then
                     * depends on the machine */
    /* NULL, or called with `user` on the calling thread, at once and then at least twice a second
     * until the call returns, also between steps, with the last step; returning true ends the
     * search, as `stop` does. A separate thread then does the work, and `progress` is called on the
     * calling thread, too. If the system refuses a thread, there are no heartbeats. Not used within
     * tarn_plan_create, whose options have their own heartbeat. */
    bool (*heartbeat)(void *user, const struct tarn_transform_progress *progress);
};
#ifndef __cplusplus
#define TARN_TRANSFORM_CONTROL(...)                                                         \
    (&(struct tarn_transform_control){.struct_size = sizeof(struct tarn_transform_control), \
                                      __VA_ARGS__})
#endif

/* ---- Assign ----
 * Assigns ops to streams, for a graph without streams or instead of the graph's streams. */

enum tarn_assign_mode {
    /* List scheduling by the ops' costs over some compute streams, a communication stream and a
     * copy stream; see simulate.h for the model. */
    TARN_ASSIGN_SCHEDULE,
    /* The smallest number of streams for which each stream is a chain: every op of a stream depends
     * on the op before it anyway, so ops that could run concurrently are never put into one stream.
     * Among such assignments, one with the fewest arcs between streams. Costs do not matter. */
    TARN_ASSIGN_CONCURRENCY
};

struct tarn_assign_report {
    uint32_t streams;
    uint64_t serial_ns; /* all ops in a row */
    uint64_t chain_ns;  /* longest chain of dependent ops, without waits */
    uint64_t work_ns;   /* cost of the busiest kind of ops, divided evenly among its streams */
    uint64_t limit_ns;  /* no assignment to this number of streams is faster; at least the maximum
                         * of both */
    uint64_t before_ns; /* modelled critical path of the input graph */
    uint64_t after_ns;  /* and of the result */
    uint64_t after_no_wait_ns;          /* the same streams and order if waits took no time */
    uint32_t arcs;                      /* pairs of ops in different streams tied by an arc */
    uint32_t waits;                     /* event waits left of them */
    uint64_t bound_before, bound_after; /* bytes reserved at once, at worst */
};

struct tarn_assign_options {
    size_t struct_size;
    enum tarn_assign_mode mode;
    uint32_t streams; /* for computing; 0: 2. Streams for communication and copies are added if
                       * there are such ops */
    uint32_t wait_ns; /* that an event wait takes in the model; 0: TARN_WAIT_NS */
    /* An op without a class communicates, or copies, if its kind has one of these words
     * ("all_reduce" is a word of "ncclAllReduce"); NULL: the words that docs/formats.md lists.
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

/* options NULL: defaults. The result's list is in order of the modelled start. TARN_USAGE also:
 * more streams than the limit. Near-linear; O(V E / 64) for the second mode. */
TARN_API enum tarn_status tarn_graph_assign(struct tarn_graph *graph,
                                            const struct tarn_assign_options *options,
                                            struct tarn_graph **result, struct tarn_error *error);

/* ---- Budget ----
 * Makes a plan fit a budget of bytes: forward results that the backward pass needs are dropped and
 * recomputed, and ops run by other implementations. The search looks for the smallest modelled time
 * at which the plan fits. Ops of the result name the op that they come from; a recomputed op has
 * its own outputs, which name the tensors that they hold again. See
 * planner/transform/recompute/recompute.h.
 *
 * A plan with both a budget and reordering is the better of two: the budget in the order that
 * reordering finds, and in the input order. Of results within the budget, the one with the smallest
 * modelled time is taken; if times are equal, the one with the smaller footprint. A refusal reports
 * the smaller footprint of both. The budget's result is reordered once more if that makes the
 * footprint smaller and takes no more time. */

enum tarn_budget_method {
    TARN_BUDGET_SEARCH, /* for the smallest time within the budget */
    TARN_BUDGET_KEEP,   /* everything is kept */
    /* About sqrt(ops) segments of equal length; only tensors that cross between two segments are
     * kept. T. Chen et al., "Training deep nets with sublinear memory cost", 2016. */
    TARN_BUDGET_CHEN,
    TARN_BUDGET_CHECKMATE, /* the search, by recomputation alone, as P. Jain et al., 2020 */
    TARN_BUDGET_GIST,      /* the search, by other implementations alone, as A. Jain et al., 2018 */
    TARN_BUDGET_OFFLOAD    /* moves alone; needs offload options in the plan's options */
};

struct tarn_budget_report {
    uint64_t budget;                      /* of the footprint, bytes */
    uint64_t footprint_before, footprint; /* of quick plans: of the input graph, and of the
                                           * result */
    uint64_t peak;                        /* reserved bytes at once when ops run one by one */
    uint64_t time_before_ns, time_ns;     /* modelled critical path, see simulate.h */
    uint64_t work_ns;                     /* of all ops together */
    uint64_t recomputed_ns;               /* part of it spent on ops that run again */
    uint32_t executions;                  /* ops launched */
    uint32_t recomputed;                  /* of them: again */
    uint32_t implemented;                 /* of these ops: run by another implementation than as
                                           * written */
    uint64_t evaluations;                 /* steps of the search */
};

struct tarn_budget_options {
    size_t struct_size;
    uint64_t budget; /* bytes that the footprint must not exceed; 0: as fast as possible. With
                      * several memory spaces it applies to the first one. If the graph gives that
                      * space a capacity, the budget is at most the capacity less the persistent
                      * part */
    enum tarn_budget_method method;
    uint64_t effort;    /* maximum number of evaluations; 0: enough for usual graphs */
    uint64_t alignment; /* of the plan, a power of two: what a storage reserves; 0: 512 */
    struct tarn_budget_report *report; /* filled in, even if nothing fits; NULL: not wanted */
    const struct tarn_transform_control *control; /* NULL: to the end, silently */
    size_t report_size; /* sizeof(struct tarn_budget_report); 0: that of version 0.1 */
    /* Recompute only ops whose kind Tarn knows (tarn_graph_op_class), or that the graph marks as
     * pure or recomputable. */
    bool known_only;
    /* Instead of `budget`: this share, above 0 and at most 1, of the footprint that the same call
     * would have without a budget, a capacity and `seconds`. That plan is made first and takes its
     * usual time. 0: not given. If both are given, the smaller one counts. TARN_USAGE: out of
     * range. A curve of budgets ignores it. */
    double share;
};
#ifndef __cplusplus
#define TARN_BUDGET_OPTIONS(...) \
    (&(struct tarn_budget_options){.struct_size = sizeof(struct tarn_budget_options), __VA_ARGS__})
#endif

/* options NULL: defaults. TARN_DOES_NOT_FIT: `error->footprint` is the smallest found, which is
 * a feasible budget and depends only on the graph and the other options. It also reports a lower
 * bound for every choice, with the op that needs so much. TARN_INTERRUPTED, TARN_DEADLINE: the
 * control ended the search before anything fitted. */
TARN_API enum tarn_status tarn_graph_budget(struct tarn_graph *graph,
                                            const struct tarn_budget_options *options,
                                            struct tarn_graph **result, struct tarn_error *error);
/* Computes the costs of `count` evenly spaced budgets in whole alignments, from the footprint of
 * keeping everything down to the smallest footprint found. No row takes more time than the rows
 * after it, and no row whose footprint keeps to the next row's budget takes less. So budgets that
 * are equal have equal rows. The budget of the options is not used. TARN_INTERRUPTED,
 * TARN_DEADLINE: the control ended the call early; rows are filled in from the last row backwards,
 * the remaining rows have budget 0. */
static inline enum tarn_status tarn_graph_budget_curve(struct tarn_graph *graph,
                                                       const struct tarn_budget_options *options,
                                                       struct tarn_budget_report *rows,
                                                       size_t count, struct tarn_error *error)
{
    return tarn_graph_budget_curve_sized(graph, options, rows, sizeof *rows, count, error);
}
/* Writes the rows to a temporary name, then renames; "-" is standard output. A name that ends in
 * ".svg" asks for a picture, any other for CSV. `graph`: the graph of the rows. */
static inline enum tarn_status tarn_budget_curve_save(const struct tarn_graph *graph,
                                                      const struct tarn_budget_report *rows,
                                                      size_t count, const char *path,
                                                      struct tarn_error *error)
{
    return tarn_budget_curve_save_sized(graph, rows, sizeof *rows, count, path, error);
}

/* ---- Offload ----
 * Moves storages that idle between two uses to another memory, mostly the host's: one added stream
 * copies them there, another one copies them back in time (struct tarn_op_info, `move`). Requested
 * in plan options. With a budget in these, each storage is kept, recomputed, made by another
 * implementation, or moved, for the smallest modelled time found; never more than by moves alone,
 * or without moves. Without a budget, storages are moved if that delays no op, as long as the arena
 * gets smaller. The times at which bytes become free and are reused depend on ops, not on clock
 * times. So if copies take longer than the options say, the plan is as safe and as small, but
 * slower. */

/* The kinds of storages that may move. Persistent tensors then lie in the other memory, and are in
 * the first one only around their uses: there they take bytes of the arena, no longer of the
 * persistent part. */
enum tarn_offload_kind {
    TARN_OFFLOAD_ACTIVATIONS = 1, /* what an iteration makes */
    TARN_OFFLOAD_STATES = 2,      /* of optimizers */
    TARN_OFFLOAD_PARAMETERS = 4
};

struct tarn_offload_report {
    uint64_t gaps;                /* number of times that a storage is away */
    uint64_t storages;            /* number that are copied out, counted each time after they were
                                   * written again */
    uint64_t bytes_out, bytes_in; /* copied in an iteration */
    uint64_t host_bytes;          /* of the arena in the other memory space, without what persists
                                   * there; plans only, else 0 */
    uint64_t out_ns, into_ns;     /* busy times of the two copy streams */
    uint64_t time_before_ns, time_ns; /* modelled critical path, see simulate.h */
    uint64_t waiting_ns;              /* part of time_ns that instant copies would save */
    uint64_t slower_ns; /* the critical path if copies took a quarter longer than the options say */
    /* A lower bound on the time of all sets of moves within the budget, for the input graph in the
     * order of ops that each stream has. 0: not computed; UINT64_MAX: no moves alone keep to the
     * budget. */
    uint64_t no_less_than_ns;
    /* Plans only: modelled time from the start of an iteration to that of the next one, if many
     * follow each other, is at most this. Copies may run on while the next iteration begins. 0: not
     * computed. */
    uint64_t iteration_ns;
    /* As no_less_than_ns, but of all plans within the budget by moves and computing again together.
     * 0: not computed, as where ops have other implementations; UINT64_MAX: none keeps to it. */
    uint64_t no_way_less_than_ns;
};

struct tarn_offload_options {
    size_t struct_size;
    uint64_t out_bytes_per_second;  /* to the other memory; required */
    uint64_t into_bytes_per_second; /* and back; 0: as fast */
    uint64_t latency_ns;            /* time of each copy in addition to its bytes; 0: 5000 */
    unsigned kinds;                 /* a sum of enum tarn_offload_kind; 0: activations */
    double margin;                  /* share by which copies are planned slower; 0: none */
    /* The memory space of the graph that storages move to. 0: its first space of kind pinned; if
     * there is none, a space "host" is added, with this capacity (bytes; 0: no limit). */
    tarn_space space;
    uint64_t capacity;
    const char *out_stream;  /* names of the added streams; NULL: "d2h" */
    const char *into_stream; /* NULL: "h2d" */
    uint64_t bytes_min;      /* smaller storages stay; 0: 1 MiB */
    uint64_t effort;         /* steps of search, of about a million candidate moves each; 0: 1000 */
    struct tarn_offload_report *report; /* filled in; NULL: not wanted */
    size_t report_size;                 /* sizeof(struct tarn_offload_report) */
};
#ifndef __cplusplus
#define TARN_OFFLOAD_OPTIONS(...)                                                       \
    (&(struct tarn_offload_options){.struct_size = sizeof(struct tarn_offload_options), \
                                    __VA_ARGS__})
#endif

/* ---- Reorder ----
 * Finds an order of the ops in which fewer bytes are alive at once. The input order is always among
 * the candidates: the peak never rises. The result is compared with a lower bound on the peak of
 * every order, from minimum cuts (see planner/transform/reorder/bound.h, and beside.h there for
 * several streams). */

/* The stages of the search for better orders, which can be switched off. */
enum tarn_reorder_stage {
    TARN_REORDER_GREEDY,   /* ready segments that free as much as they take, under a limit on
                            * memory */
    TARN_REORDER_WINDOWS,  /* complete search around the highest step */
    TARN_REORDER_CUTS,     /* run the ops before the highest step that the minimum cut there puts
                            * before it */
    TARN_REORDER_CASES,    /* the bound by case distinction if minimum cuts leave a gap, and orders
                            * found by it */
    TARN_REORDER_WITNESS,  /* several streams: away from the heaviest antichain */
    TARN_REORDER_RESTARTS, /* several streams: a bound by ops that run beside each other in every
                            * order, and all of it from other orders while that leaves a gap */
    TARN_REORDER_STAGES
};

/* A word for a stage, for example "greedy"; static. */
TARN_API const char *tarn_reorder_stage_text(enum tarn_reorder_stage stage);

/* The gain of a stage. */
struct tarn_reorder_gain {
    uint32_t tries; /* orders */
    uint64_t bytes; /* by which the stage lowered the peak */
};

struct tarn_reorder_report {
    /* One stream: the maximum of bytes reserved at once. Several: the heaviest antichain, with the
     * gaps of contiguous groups that it cannot fill, a lower bound for every plan. With a budget:
     * of the order that the budget starts from; if the input order was kept, both are equal. */
    uint64_t peak_before, peak_after;
    uint64_t bound;  /* no order has a lower peak; 0: not computed */
    uint32_t rounds; /* of improvement */
    /* Several streams: of the input order and of the result, see simulate.h; else 0. */
    uint64_t critical_path_before_ns, critical_path_ns;
    struct tarn_reorder_gain gains[TARN_REORDER_STAGES];
};

struct tarn_reorder_options {
    size_t struct_size;
    uint64_t alignment; /* of the plan, a power of two: what a storage reserves; 0: 512 */
    uint32_t effort;    /* maximum rounds of improvement; 0: 200 */
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
 * Memory-aware synchronisation: adds waits between streams, so that fewer storages are alive at
 * once. A few events often reduce the memory of a graph of several streams to its serial peak (ops
 * run one after another), at no modelled time (see simulate.h for the model). */

/* The result after the first arcs: each row has more arcs and a lower bound than the row before. */
struct tarn_couple_row {
    uint32_t arcs;             /* added; the first row has none */
    uint32_t waits;            /* event waits of an iteration, the minimum */
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
    uint64_t capacity;   /* target of the bound in bytes; 0: by `keep` */
    double keep;         /* share of the excess over the serial peak that may stay: 0 to 1 */
    double slowdown_max; /* share by which the modelled critical path may grow; 0: not at all; more
                            never leads to a higher bound */
    uint32_t wait_ns;    /* that an event wait takes in the model; 0: TARN_WAIT_NS */
    struct tarn_couple_report *report; /* filled in, the caller finishes it; has no rows if the call
                                          fails; NULL: not wanted */
    const struct tarn_transform_control *control; /* NULL: to the end, silently */
    size_t report_size; /* sizeof(struct tarn_couple_report); 0: that of version 0.1 */
};
#ifndef __cplusplus
#define TARN_COUPLE_OPTIONS(...) \
    (&(struct tarn_couple_options){.struct_size = sizeof(struct tarn_couple_options), __VA_ARGS__})
#endif

/* options NULL: defaults. The bound never rises, and reaches the target if possible: the report has
 * the bound reached. A plan may still need more than the bound, for contiguous groups. Computes
 * about a dozen bounds for each arc. */
TARN_API enum tarn_status tarn_graph_couple(struct tarn_graph *graph,
                                            const struct tarn_couple_options *options,
                                            struct tarn_graph **result, struct tarn_error *error);
/* Frees the report's content, not the report itself. */
TARN_API void tarn_couple_report_finish(struct tarn_couple_report *report);

/* ---- In-place ----
 * Lets an op write its output over an input that no op uses afterwards. Never raises the bound: the
 * joint storage is unsafe only with storages that were unsafe with one of the two. */

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
 * Makes all contiguous groups exact, or all padded, whatever the graph says. In padded groups all
 * members begin at aligned offsets, which makes placement easier; exact groups have no bytes
 * between members. TARN_USAGE: not a value of the enum. Linear time. */
TARN_API enum tarn_status tarn_graph_pad_groups(struct tarn_graph *graph,
                                                enum tarn_group_padding padding,
                                                struct tarn_graph **result,
                                                struct tarn_error *error);

/* ---- Implementations ----
 * Adds alternative implementations of ops, from which `budget` chooses. The result is a new source
 * graph that keeps the ops and tensors of the input graph under their ids. It is planned and
 * verified like any source graph; so this is not among the transforms of a plan. */

/* A table of costs, immutable, from a file: rows that model a kind of op, and rows that were
 * measured on an op; see docs/formats.md. */
struct tarn_cost_table;

/* Reads a table, from standard input if path is "-", compressed or not. The caller destroys it.
 * TARN_BAD_INPUT: `error` has line and column. TARN_SYSTEM: the table cannot be read, or no
 * memory. */
TARN_API enum tarn_status tarn_cost_table_load(const char *path, struct tarn_cost_table **table,
                                               struct tarn_error *error);
/* Reads a table from memory or a function: so a program can make its own table. */
TARN_API enum tarn_status tarn_cost_table_read(const struct tarn_reader *reader,
                                               struct tarn_cost_table **table,
                                               struct tarn_error *error);
TARN_API void tarn_cost_table_destroy(struct tarn_cost_table *table);

struct tarn_implementations_report {
    uint32_t ops;             /* that have new implementations */
    uint32_t implementations; /* new ones */
    uint32_t workspaces;      /* ops that got the workspace of the implementation that was traced */
    uint32_t measured;        /* measurements used */
    uint32_t tensors;         /* added as outputs of forward ops, for backward ops to read */
    uint64_t bytes;           /* of those */
    uint32_t split;           /* backward ops that may run as two */
    uint32_t unpaired;        /* ops with rows that were skipped: no forward op was found */
};

struct tarn_implementations_options {
    size_t struct_size;
    const struct tarn_cost_table *costs; /* NULL: none */
    /* A convolution's backward may run as two: the gradient of its input, which reads no forward
     * result, and the gradient of its weights. Each takes half of the time. */
    bool split_backward;
    struct tarn_implementations_report *report; /* filled in; NULL: not wanted */
    size_t report_size; /* sizeof(struct tarn_implementations_report); 0: that of version 0.1 */
};
#ifndef __cplusplus
#define TARN_IMPLEMENTATIONS_OPTIONS(...)    \
    (&(struct tarn_implementations_options){ \
        .struct_size = sizeof(struct tarn_implementations_options), __VA_ARGS__})
#endif

/* Adds implementations that ops do not have yet, by name; options NULL: none. The forward op of a
 * backward op follows from the tensors that both use. TARN_BAD_INPUT: a measured op is not in the
 * graph (`error` has the line), or a cost is above 2^53 - 1. Near-linear. */
TARN_API enum tarn_status
tarn_graph_implementations(struct tarn_graph *graph,
                           const struct tarn_implementations_options *options,
                           struct tarn_graph **result, struct tarn_error *error);

/* Costs of an op that a program learns after the graph was built: from a measurement, or from a
 * library's query.
 */
#define TARN_AS_IT_IS UINT64_MAX
struct tarn_op_costs {
    tarn_op op;
    uint64_t cost;      /* nanoseconds; TARN_AS_IT_IS: unchanged */
    uint64_t workspace; /* bytes; TARN_AS_IT_IS: unchanged */
    /* Added to the op's implementations; one of the same name is replaced. */
    const struct tarn_implementation *implementations;
    size_t implementations_count;
};

/* Makes a source graph with these costs and implementations and the same ids; everything is copied.
 * If several items are for one op, the last item counts. TARN_USAGE: no such op; TARN_BAD_INPUT:
 * the builder would refuse the result. Near-linear. */
TARN_API enum tarn_status tarn_graph_with_costs(struct tarn_graph *graph,
                                                const struct tarn_op_costs *costs, size_t count,
                                                struct tarn_graph **result,
                                                struct tarn_error *error);

/* ---- All transforms ----
 * Runs all transforms that plan options ask for, as tarn_plan_create runs them. Ops of the result
 * name ops of `graph` as their origin. Of the other options only alignment, stop, seconds and
 * heartbeat are used. */
TARN_API enum tarn_status tarn_graph_transform(struct tarn_graph *graph,
                                               const struct tarn_plan_options *options,
                                               struct tarn_graph **result,
                                               struct tarn_error *error);

/* ---- What changed ----
 * Found by comparing the graphs, so the second graph may come from any source. */

enum tarn_change_kind {
    TARN_MOVED,    /* op: runs at another position in its stream */
    TARN_ASSIGNED, /* op: is in another stream, `before` -> `after` */
    TARN_ORDERED,  /* op: waits for op `after` of the new graph by a new control arc */
    TARN_MERGED    /* tensor: its storage is the storage of root `after` instead of `before` */
};

/* op: in the new graph; TARN_NONE for a tensor. tensor: TARN_NONE for an op. */
struct tarn_change {
    enum tarn_change_kind kind;
    tarn_op op;
    tarn_tensor tensor;
    uint32_t before, after; /* TARN_MOVED: positions in the lists of their streams */
};

/* Lists the changes of a transform. The moved ops are a smallest set of ops without which the
 * streams are in their old order. The caller frees *changes with tarn_free (hooks.h). O(n log
 * n). */
TARN_API enum tarn_status tarn_graph_changes(const struct tarn_graph *before,
                                             const struct tarn_graph *after,
                                             struct tarn_change **changes, size_t *count,
                                             struct tarn_error *error);

#ifdef __cplusplus
}
#endif

#endif
