/* Writes the options that a plan was made with as the text that the plan keeps: see
 * tarn_plan_asked. */
#ifndef TARN_PLANNER_ASKED_H
#define TARN_PLANNER_ASKED_H

#include "streams/plan/plan.h"

/* Sets the plan's text to these options (NULL: defaults). family: how many graphs were planned
 * together; 0: this graph alone. TARN_USAGE: bad options. TARN_SYSTEM. */
enum tarn_status tarn_asked_note(struct tarn_plan *plan, const struct tarn_plan_options *options,
                                 size_t family, struct tarn_error *error);

#endif
