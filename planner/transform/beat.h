/* Calls whose caller wants to be asked, again and again, whether they shall go on: planning, and
 * transforms that search. */
#ifndef TARN_PLANNER_TRANSFORM_BEAT_H
#define TARN_PLANNER_TRANSFORM_BEAT_H

#include "tarn/transform.h"

/* What is done; `options` are for it, and `subject` is its own. */
typedef enum tarn_status tarn_beat_work(const struct tarn_plan_options *options, void *subject);

/* Does the work. Where the options have a `beat`, a thread does it, and the calling one calls beat
 * and progress meanwhile; the options that the work gets have a stop of their own. Where the system
 * refuses a thread, the calling one does the work, without beats. */
enum tarn_status tarn_beat_run(const struct tarn_plan_options *options, tarn_beat_work *work,
                               void *subject);

/* The same for a transform and the control of its options, NULL where there is none. */
typedef enum tarn_status tarn_transform_work(const struct tarn_transform_control *control,
                                             void *subject);
enum tarn_status tarn_transform_beat(const struct tarn_transform_control *control,
                                     const char *transform, tarn_transform_work *work,
                                     void *subject);

/* Fills *taken from the control that the caller has given in some options, and makes *control point
 * to it; where that is NULL, nothing. TARN_USAGE as tarn_options_take. */
enum tarn_status tarn_control_take(struct tarn_transform_control *taken,
                                   const struct tarn_transform_control **control,
                                   struct tarn_error *error);

#endif
