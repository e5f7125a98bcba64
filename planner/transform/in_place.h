/* In-place as a step before another one. */
#ifndef TARN_PLANNER_TRANSFORM_IN_PLACE_H
#define TARN_PLANNER_TRANSFORM_IN_PLACE_H

#include "tarn/transform.h"

/* Does what tarn_graph_in_place does. chooses: later transforms may run ops by other
 * implementations. Then no op writes over an input that one of its implementations does not read,
 * since other ops may still need it there, or it may have been dropped. */
enum tarn_status tarn_in_place_run(struct tarn_graph *graph,
                                   const struct tarn_in_place_options *given, bool chooses,
                                   struct tarn_graph **result, struct tarn_error *error);

#endif
