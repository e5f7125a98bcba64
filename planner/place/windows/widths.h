/* The ways to place many blocks by windows, one after the other, as far as they are worth it. */
#ifndef TARN_PLANNER_PLACE_WINDOWS_WIDTHS_H
#define TARN_PLANNER_PLACE_WINDOWS_WIDTHS_H

#include "planner/place/improve.h"
#include "windows.h"

/* The effort that is meant for a problem whose call sets no time. */
uint64_t tarn_widths_effort(const struct tarn_problem *problem);

/* How much more work a plan is worth: all that is left where it is far above the aim, ever less the
 * closer it is. */
uint64_t tarn_widths_worth(struct tarn_effort *effort, uint64_t aim, uint64_t footprint);

/* offset and footprint as in windows.h; options: threads, progress and until count.
 * TARN_SYSTEM: no memory. */
enum tarn_status tarn_widths_place(const struct tarn_problem *problem,
                                   const struct tarn_antichain *antichain,
                                   const struct tarn_improve_options *options, uint64_t aim,
                                   struct tarn_effort *effort, uint64_t *offset,
                                   uint64_t *footprint);

#endif
