/* The tail: the ops after the last op that a policy can change, mostly the optimizer's. They are
 * evaluated once. */
#ifndef TARN_PLANNER_TRANSFORM_RECOMPUTE_TAIL_H
#define TARN_PLANNER_TRANSFORM_RECOMPUTE_TAIL_H

#include "recompute.h"

/* A version from before the tail is last read by the op at this offset in the tail. */
struct tarn_tail_read {
    uint32_t version, offset;
};

struct tarn_tail {
    uint32_t place; /* its first op's */
    uint32_t count; /* ops */
    struct tarn_tail_read *reads;
    uint32_t reads_count;
    int64_t *change;     /* offset -> bytes of versions written by the tail that appear with the op,
                            less the bytes that are freed; count + 1 */
    uint64_t *workspace; /* offset -> reserved bytes */
    uint64_t time_ns;
};

/* TARN_SYSTEM: no memory. */
enum tarn_status tarn_tail_init(struct tarn_tail *tail, struct tarn_region *region,
                                const struct tarn_recompute_model *model);

#endif
