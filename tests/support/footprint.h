/* The figure of a plan that tests compare most. */
#ifndef TARN_TESTS_SUPPORT_FOOTPRINT_H
#define TARN_TESTS_SUPPORT_FOOTPRINT_H

#include "tarn/plan.h"

static inline uint64_t footprint_of(const struct tarn_plan *plan)
{
    struct tarn_plan_summary summary;
    tarn_plan_summarize(plan, &summary);
    return summary.footprint;
}

#endif
