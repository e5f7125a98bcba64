/* Forged plans: the graph inside a plan with one field damaged to another value that a graph may
 * have. The forger is strong: where he likes he plans the damaged graph anew, so that lists, waits
 * and places all fit it. */
#ifndef TARN_TESTS_SUPPORT_FORGE_H
#define TARN_TESTS_SUPPORT_FORGE_H

#include "random_graph.h"
#include "streams/plan/plan.h"

/* A graph as records that can be changed, in ids of the graph. All memory is the forgery's. */
struct forgery {
    struct tarn_region region;
    const struct tarn_graph *source;
    const char *name;
    uint32_t spaces_count, streams_count, tensors_count, ops_count, groups_count;
    struct tarn_space_info *spaces; /* room for one more, as the next three */
    const char **streams;
    struct tarn_op_info *ops;
    uint32_t *op_origin, *implementation;
    struct tarn_tensor_info *tensors;
    uint32_t *root, *tensor_origin;
    struct tarn_list *groups;
    bool *padded;
    const uint64_t **offsets; /* by group; NULL: back to back */
    const char **symmetric;   /* by group; NULL: not symmetric */
    uint32_t touched;         /* op or tensor that was damaged, for rules of acceptance */
};

enum forgery_outcome {
    FORGERY_REFUSED, /* always */
    FORGERY_EQUAL    /* or accepted, where it says the same: `is_equal` */
};

struct forgery_kind {
    const char *name;
    enum forgery_outcome outcome;
    /* False: there is nothing of the kind, or the value is what it was. */
    bool (*apply)(struct forgery *forgery, struct random_source *source);
    /* Of an accepted one: may it be? NULL: not in any case. `final` is the honest graph. */
    bool (*is_equal)(const struct forgery *forgery, const struct tarn_graph *final);
};

size_t forgery_kinds_count(void);
const struct forgery_kind *forgery_kind(size_t kind);

struct forgery *forgery_of(const struct tarn_graph *final, const struct tarn_graph *source);
void forgery_destroy(struct forgery *forgery);
/* NULL: no graph may be like that. */
struct tarn_graph *forgery_build(const struct forgery *forgery);

/* Plans that say the damaged graph came out of a transform of the source: with what the honest plan
 * had otherwise, and planned anew. The second may be NULL. */
struct tarn_plan *forged_as_it_was(const struct tarn_plan *plan, struct tarn_graph *graph);
struct tarn_plan *forged_anew(const struct tarn_plan *plan, struct tarn_graph *graph);

#endif
