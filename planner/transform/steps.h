/* The steps of a search: counted, told to the caller, and ended by the caller or at their number.
 */
#ifndef TARN_PLANNER_TRANSFORM_STEPS_H
#define TARN_PLANNER_TRANSFORM_STEPS_H

#include <stdatomic.h>

#include "tarn/transform.h"

struct tarn_steps {
    const struct tarn_transform_control *control; /* NULL: nobody wants to know */
    const char *transform;
    uint64_t done;
};

/* Before each step: may it be taken? bytes: the best so far. */
static inline bool tarn_steps_next(struct tarn_steps *steps, uint64_t bytes)
{
    const struct tarn_transform_control *control = steps->control;
    if (!control) return true;
    const atomic_bool *stop = (const atomic_bool *)control->stop;
    if (stop && atomic_load_explicit(stop, memory_order_relaxed)) return false;
    if (control->steps > 0 && steps->done == control->steps) return false;
    steps->done++;
    if (control->progress) {
        const struct tarn_transform_progress progress = {steps->transform, steps->done, bytes};
        control->progress(control->user, &progress);
    }
    return true;
}

#endif
