/* A schedule that is given step by step, instead of by a policy: what runs, primary or again, and
 * where a version is dropped. */
#ifndef TARN_PLANNER_TRANSFORM_RECOMPUTE_SCRIPT_H
#define TARN_PLANNER_TRANSFORM_RECOMPUTE_SCRIPT_H

#include "measure.h"

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

/* The schedule of a script, and its room. */
struct tarn_scripted {
    struct tarn_schedule schedule;
    struct tarn_lives lives;
    uint32_t *latest; /* version -> its copy that can be read, or TARN_NONE */
    uint32_t reads_count;
    uint32_t place; /* of the next primary op */
};

/* For a model of one stream. Implementations are chosen as by tarn_evaluate. The peak is UINT64_MAX
 * when the script reads what is not there. TARN_SYSTEM: no memory. Linear in the reads and writes
 * of what is run. */
enum tarn_status tarn_scripted_init(struct tarn_scripted *scripted, struct tarn_region *region,
                                    const struct tarn_recompute_model *model,
                                    const struct tarn_script *script);

#endif
