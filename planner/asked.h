/* What a plan was asked for, as the text that it keeps: see tarn_plan_asked. */
#ifndef TARN_PLANNER_ASKED_H
#define TARN_PLANNER_ASKED_H

#include "streams/plan/plan.h"

/* From now on the plan says that it was asked for by these options (NULL: defaults). family: how
 * many graphs were planned together, 0: one alone. TARN_USAGE: bad options. TARN_SYSTEM. */
enum tarn_status tarn_asked_note(struct tarn_plan *plan, const struct tarn_plan_options *options,
                                 size_t family, struct tarn_error *error);

#endif
