/* The model of recomputation: versions of storages, the ops that read and write them, and the cost
 * of a policy of keeping and recomputing.
 *
 *     graph --model--> versions, forms --policy--> schedule --> peak, time --> new graph
 *                                      (keep?)   (ops, some of them again)
 *
 * A **version** is what one op has written to a storage, until the next op overwrites it. An op
 * that writes in place makes a new version of the same storage, and writes elsewhere if the old
 * version is still needed. A **form** is a set of reads and results with which an op can be run. An
 * op has the form that it was written with, and the forms of its implementations that read other
 * inputs or yield a part of its outputs. Implementations of one form differ in time and workspace
 * only, so each execution takes the fastest one that fits beside the bytes alive.
 *
 * A graph has one forward and one backward pass, or several of them in any sequence (shards,
 * gradient accumulation, microbatches of a pipeline). A forward version is either kept until its
 * last reader, or dropped and recomputed. It is dropped when the list goes over to backward ops and
 * its next reader is not in the forward pass. It is recomputed when an op needs it, together with
 * every missing version that this takes. The rest follows: a schedule is a list of executions in
 * which the primary ops keep their order, each read means the latest copy of the version before it,
 * and a copy is alive from its production to its last read. */
#ifndef TARN_PLANNER_TRANSFORM_RECOMPUTE_RECOMPUTE_H
#define TARN_PLANNER_TRANSFORM_RECOMPUTE_RECOMPUTE_H

#include "streams/base/region.h"
#include "streams/graph/graph.h"
#include "tarn/transform.h"

/* Communicating ops before which a repetition may be launched early, see recompute/launches.c. */
enum { TARN_LAUNCHES_MAX = 3 };

/* A version of a planned storage (workspaces have none). */
struct tarn_version {
    uint32_t storage;
    uint32_t producer;   /* op that writes it */
    uint32_t tensor;     /* output of the producer through which it does */
    uint32_t previous;   /* version that it overwrites in place, or TARN_NONE */
    uint64_t size;       /* reserved bytes */
    uint64_t copy_size;  /* of a copy, which is in no contiguous group */
    uint32_t last_early; /* place of the last op before `dropped_at` that reads or overwrites it */
    uint32_t dropped_at; /* place before which it is dropped if it is not kept, or TARN_NONE */
    bool repeatable;     /* written by an op that may run again, and not pinned */
    bool droppable;      /* repeatable, and dropped somewhere: see recompute/passes.c */
    bool forced;         /* its producer cannot write elsewhere than over `previous` */
    uint32_t launches_count;              /* 0: its repetition runs when it is asked for */
    uint32_t launches[TARN_LAUNCHES_MAX]; /* places before which it may run 1, 2, ... communicating
                                             ops of its stream ahead */
};

/* No write of an empty storage overwrites another one: its tensors are versions of their own, and
 * an op reads those that it names. */
static inline bool tarn_storage_is_empty(const struct tarn_graph *graph, uint32_t storage)
{
    return graph->storages[storage].size == 0;
}

/* One implementation of a form. */
struct tarn_choice {
    uint32_t implementation; /* index of the op's, or TARN_NONE: as written */
    uint64_t time_ns;
    uint64_t workspace; /* reserved bytes */
};

/* A persistent storage that some op updates, as it is after this many updates. */
struct tarn_state {
    uint32_t storage;
    uint32_t updates;
};

/* Before the op of the place the version may be written again, so many communicating ops of its
 * stream ahead of its first reader. */
struct tarn_recompute_launch {
    uint32_t place, version, ahead;
};

/* Start and end in one of the model's arrays. */
struct tarn_range {
    uint32_t begin, end;
};

struct tarn_form {
    uint32_t op;
    struct tarn_range reads;   /* distinct versions; those that are overwritten in place included */
    struct tarn_range writes;  /* versions */
    struct tarn_range states;  /* that it reads */
    struct tarn_range choices; /* fastest first, each with less workspace */
    bool whole;                /* yields all outputs of the op */
    bool
        splits; /* yields a part, and the op's forms of this kind together yield each output once */
    bool repeats;      /* may be run again */
    bool communicates; /* the op is a collective */
};

/* The ops that may run again. */
enum tarn_repeat_rule {
    TARN_REPEAT_KNOWN = 1, /* only ops whose class the graph gives, or whose kind is known */
    TARN_REPEAT_ANY = 2    /* every op that can; else only if that is likely to pay, see passes.c */
};

struct tarn_recompute_model {
    struct tarn_graph *graph;
    uint64_t alignment;
    unsigned rules;           /* a sum of enum tarn_repeat_rule */
    const uint32_t *order;    /* place -> op, views left out, topological */
    uint32_t ops_count;       /* places */
    uint32_t first_backward;  /* place of the first backward op that reads a forward result, or of
                                 the first backward op; ops_count: there is none */
    uint8_t *is_forward;      /* by place, see recompute/passes.c */
    uint32_t reversals_count; /* times that the list goes over from forward to backward ops */
    uint32_t *drops;          /* droppable versions by the place at which they are dropped */
    uint32_t drops_count;
    struct tarn_recompute_launch *launches; /* by place */
    uint32_t launches_count;
    struct tarn_version *versions;
    uint32_t versions_count;
    struct tarn_form *forms;
    uint32_t forms_count;
    struct tarn_range *op_forms; /* op -> its forms, as written first; views: none */
    struct tarn_choice *choices;
    uint32_t *reads, *writes;
    struct tarn_state *states;
    uint32_t *tensor_version; /* tensor -> version that it names; TARN_NONE: persistent */
    bool *stays; /* storage: an op writes it in place in some arm only, so what it holds depends on
                    the arm: it stays as it is, see recompute/model.c */
};

/* Wherever the passes are: before the primary op of `place` the version is dropped, or, with
 * `again`, computed again if it is missing. */
struct tarn_cut {
    uint32_t place, version;
    bool again;
};

/* The policy: what to keep. Arrays are by version or by op of the graph. */
struct tarn_policy {
    uint8_t *keep;   /* droppable version: stays until its last reader */
    uint8_t *retain; /* version that has been recomputed: stays until its last reader, instead of
                        only for the op that asked */
    uint8_t *ahead;  /* version: its repetition is launched so many communicating ops of its stream
                        before the reader that asks for it; 0: it runs when it is asked for */
    uint32_t *form; /* op -> its form, an index into `forms`, and for a form that `splits` all split
                       forms, this one first; TARN_NONE: the whole form that takes the least time
                       together with its reads */
    const struct tarn_cut *cuts; /* by place; owned by the caller that made them */
    uint32_t cuts_count;
};

/* A run of an op. */
struct tarn_execution {
    uint32_t form;
    uint32_t implementation; /* TARN_NONE: as written */
    uint32_t place;          /* of the primary op for which it runs; its own for a primary one */
    uint32_t stream;
    uint32_t reads;  /* index into the schedule's `reads` of the copy for its form's first read */
    uint32_t copies; /* index of the copy for its form's first write; the others follow */
    bool recomputed;
};

/* A copy of a version: bytes in the arena. */
struct tarn_copy {
    uint32_t version;
    uint32_t birth, last_read; /* executions */
    uint32_t over; /* copy whose version it overwrites, or TARN_NONE; see tarn_copy_is_over */
    bool recomputed;
};

struct tarn_schedule {
    struct tarn_execution *executions;
    uint32_t count;
    struct tarn_copy *copies;
    uint32_t copies_count;
    uint32_t *reads; /* copies */
    uint32_t reads_count;
    uint64_t peak;          /* reserved bytes of planned storages at once, workspaces included;
                               UINT64_MAX: it cannot be carried out */
    const uint64_t *bytes;  /* execution -> reserved bytes while it runs */
    const uint64_t *end_ns; /* execution -> its end; NULL: one stream */
    double excess;          /* bytes above the budget, summed over executions */
    uint64_t work_ns;       /* of all executions one after another */
    uint64_t recomputed_ns; /* part of it */
    uint64_t time_ns;       /* modelled critical path; of one stream the same as work_ns */
};

/* The alignment is a power of two. rules: a sum of enum tarn_repeat_rule. TARN_SYSTEM: no memory;
 * TARN_BAD_INPUT: sizes at this alignment whose sum exceeds 64 bits. */
enum tarn_status tarn_recompute_model_init(struct tarn_recompute_model *model,
                                           struct tarn_region *region, struct tarn_graph *graph,
                                           uint64_t alignment, unsigned rules);

/* Whether ranges, places and versions are in bounds and in order, and choices get ever leaner. For
 * assertions and tests; linear in the model. */
bool tarn_recompute_model_is_valid(const struct tarn_recompute_model *model);

/* The version that forms of op v read through the tensor: if the op as written reads it, the
 * version that its storage has then, else the one that the tensor names. TARN_NONE: persistent. */
uint32_t tarn_version_read(const struct tarn_recompute_model *model, uint32_t v, uint32_t tensor);

/* Reserved bytes that a workspace takes in the first memory space beside the form's results; a
 * workspace that ends before the outputs begin shares their bytes. UINT64_MAX: too many for 64
 * bits. */
uint64_t tarn_form_workspace(const struct tarn_recompute_model *model, const struct tarn_form *form,
                             uint64_t workspace, bool workspace_first);

/* All of `keep` and `retain` set, nothing launched early, forms free, no cuts. */
enum tarn_status tarn_policy_init(struct tarn_policy *policy, struct tarn_region *region,
                                  const struct tarn_recompute_model *model);
void tarn_policy_reset(struct tarn_policy *policy, const struct tarn_recompute_model *model);

/* ---- recompute/schedule.c ---- */

/* The stream of a recomputation. */
enum tarn_recompute_streams {
    TARN_RECOMPUTE_SOONEST,     /* of the next two the stream in which it can start first */
    TARN_RECOMPUTE_WHERE_ASKED, /* on the stream of the op that it runs for */
    TARN_RECOMPUTE_AT_HOME,     /* on the stream of the op that it repeats */
    TARN_RECOMPUTE_RULES
};

/* Room for one thread's evaluations. */
struct tarn_evaluator;

/* NULL: no memory. The model must outlive it. It takes more from the region with each call that
 * needs more room than those before, so nothing that was taken later may be released before it. */
struct tarn_evaluator *tarn_evaluator_create(struct tarn_region *region,
                                             const struct tarn_recompute_model *model);

/* Returns the schedule of the policy, with each recomputation in the stream in which it starts
 * soonest. Each execution takes the fastest implementation whose workspace fits under `budget`
 * bytes beside the bytes alive, else the one with the smallest workspace. The result counts all
 * ops, but `executions` omits the ops at the end that no policy changes (recompute/tail.h). The
 * schedule is the evaluator's and valid until its next call; NULL: no memory. Linear in the reads
 * and writes of all executions. */
const struct tarn_schedule *tarn_evaluate(struct tarn_evaluator *evaluator,
                                          const struct tarn_policy *policy, uint64_t budget);
/* The same with all executions, and recomputations by a rule. */
const struct tarn_schedule *tarn_evaluate_whole(struct tarn_evaluator *evaluator,
                                                const struct tarn_policy *policy, uint64_t budget,
                                                enum tarn_recompute_streams rule);

/* Does a schedule of all executions, whose peak is known, run each primary op in its order and read
 * only copies that were born before, of the right versions? For assertions and tests; linear in its
 * reads and copies. */
bool tarn_schedule_is_valid(const struct tarn_schedule *schedule,
                            const struct tarn_recompute_model *model);

/* Is the copy written in place of the earlier copy, not beside it? */
bool tarn_copy_is_over(const struct tarn_recompute_model *model,
                       const struct tarn_schedule *schedule, uint32_t copy);

/* The time of the execution by its chosen implementation, in nanoseconds. */
uint64_t tarn_execution_ns(const struct tarn_recompute_model *model,
                           const struct tarn_execution *execution);

/* ---- recompute/script.c ---- */

/* One step of a script, which gives a schedule step by step instead of by a policy: an execution,
 * primary or again, or the drop of a version. */
struct tarn_script_step {
    uint32_t what; /* form that runs, or version that is dropped */
    bool drops;
};

/* The primary ops are run in their order; a form of another op runs again. */
struct tarn_script {
    struct tarn_script_step *steps;
    uint32_t count;
    uint64_t budget; /* bytes that implementations are chosen for */
};

/* Makes the schedule of a script, for a model of one stream. Implementations are chosen as by
 * tarn_evaluate. The peak is UINT64_MAX if the script reads a version that has no copy.
 * TARN_SYSTEM: no memory. Linear in the reads and writes of all executions. */
enum tarn_status tarn_script_run(struct tarn_schedule *schedule, struct tarn_region *region,
                                 const struct tarn_recompute_model *model,
                                 const struct tarn_script *script);

/* ---- recompute/floor.c ---- */

/* What may still change after the policy has been chosen. */
enum tarn_recompute_list {
    TARN_LIST_STAYS,      /* and the policy has no cuts */
    TARN_LIST_STAYS_CUT,  /* it may have cuts */
    TARN_LIST_OF_STREAMS, /* the order of each stream stays: extra waits between streams */
    TARN_LIST_ANY
};

/* Bytes below which no policy can come with such a list, and the place of an op that they are
 * needed at. TARN_SYSTEM: no memory. */
enum tarn_status tarn_recompute_floor(const struct tarn_recompute_model *model,
                                      enum tarn_recompute_list list, uint64_t *floor,
                                      uint32_t *place);

/* ---- recompute/build.c ---- */

/* The new graph: source tensors keep their ids, copies are appended and name their origin. The
 * schedule has all executions. The caller destroys the graph. */
enum tarn_status tarn_recompute_build(const struct tarn_recompute_model *model,
                                      const struct tarn_schedule *schedule,
                                      struct tarn_graph **result, struct tarn_error *error);

#endif
