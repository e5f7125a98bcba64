/* Gives symmetric groups of one name one offset in all plans of a family, and all plans one window.
 */
#ifndef TARN_PLANNER_SYMMETRIC_H
#define TARN_PLANNER_SYMMETRIC_H

#include "streams/plan/plan.h"

/* plans: complete, each by itself; options: as given to the family, completed. Changes offsets,
 * footprints and windows; does nothing if no graph has symmetric groups. TARN_DOES_NOT_FIT: a
 * capacity or budget that each plan kept alone; TARN_BAD_INPUT: groups that do not agree, or too
 * many of them; TARN_SYSTEM. */
enum tarn_status tarn_symmetric_lay_out(struct tarn_plan **plans, size_t count,
                                        const struct tarn_plan_options *options,
                                        struct tarn_error *error);

#endif
