/* Runs planning or a transform while the caller's function `heartbeat` is called at regular times,
 * which shows that the call is alive and may end it. */
#ifndef TARN_PLANNER_TRANSFORM_HEARTBEAT_H
#define TARN_PLANNER_TRANSFORM_HEARTBEAT_H

#include "tarn/transform.h"

/* The work to run; it gets `options`, and `subject` is its own data. */
typedef enum tarn_status tarn_heartbeat_work(const struct tarn_plan_options *options,
                                             void *subject);

/* Does the work and returns its status. If the options have a `heartbeat`, a thread does it, and
 * the calling thread calls heartbeat and progress meanwhile; the options that the work gets have a
 * stop of their own, which is set if heartbeat returns true. If the system refuses a thread, the
 * calling thread does the work, without heartbeats. */
enum tarn_status tarn_run_with_heartbeat(const struct tarn_plan_options *options,
                                         tarn_heartbeat_work *work, void *subject);

/* The same for a transform and the control of its options, NULL if it has none. transform: its
 * name, which its progress has. */
typedef enum tarn_status tarn_transform_work(const struct tarn_transform_control *control,
                                             void *subject);
enum tarn_status tarn_transform_with_heartbeat(const struct tarn_transform_control *control,
                                               const char *transform, tarn_transform_work *work,
                                               void *subject);

/* Fills *taken from the control that the caller has given in some options, and makes *control point
 * to *taken; does nothing if *control is NULL. TARN_USAGE as tarn_options_take. */
enum tarn_status tarn_control_take(struct tarn_transform_control *taken,
                                   const struct tarn_transform_control **control,
                                   struct tarn_error *error);

#endif
