/* The steps of a search: counted, reported to the caller, and ended by the caller, at their number
 * or when the time is over. */
#ifndef TARN_PLANNER_TRANSFORM_STEPS_H
#define TARN_PLANNER_TRANSFORM_STEPS_H

#include "streams/base/deadline.h"
#include "tarn/transform.h"

struct tarn_steps {
    const struct tarn_transform_control
        *control; /* NULL: the search runs to its end, and tells nobody */
    const char *transform;
    uint64_t done;
    double deadline_ms; /* 0: the control's seconds count from the first step on */
};

/* Within a step, and after the last one: has the caller ended the search, or is its time over? The
 * work skipped then depends on the clock, like every result of an ended search. */
static inline bool tarn_steps_is_over(const struct tarn_steps *steps)
{
    if (!steps->control) return false;
    struct tarn_deadline deadline = {(const atomic_bool *)steps->control->stop, steps->deadline_ms};
    return tarn_deadline_is_over(&deadline);
}

/* Before each step: may it be taken? bytes: the best so far. */
static inline bool tarn_steps_next(struct tarn_steps *steps, uint64_t bytes)
{
    const struct tarn_transform_control *control = steps->control;
    if (!control) return true;
    struct tarn_deadline deadline = {(const atomic_bool *)control->stop, steps->deadline_ms};
    if (steps->done == 0 && deadline.at_ms <= 0 && control->seconds > 0)
        deadline = tarn_deadline_in(deadline.stop, control->seconds);
    steps->deadline_ms = deadline.at_ms;
    if (tarn_deadline_is_over(&deadline)) return false;
    if (control->steps > 0 && steps->done == control->steps) return false;
    steps->done++;
    if (control->progress) {
        const struct tarn_transform_progress progress = {sizeof progress, steps->transform,
                                                         steps->done, bytes};
        control->progress(control->user, &progress);
    }
    return true;
}

#endif
