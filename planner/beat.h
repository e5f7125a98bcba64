/* A planning call whose caller wants to be asked, again and again, whether it shall go on. */
#ifndef TARN_PLANNER_BEAT_H
#define TARN_PLANNER_BEAT_H

#include "streams/plan/plan.h"

/* What is done; `options` are for it, and `subject` is its own. */
typedef enum tarn_status tarn_beat_work(const struct tarn_plan_options *options, void *subject);

/* Does the work. Where the options have a `beat`, a thread does it, and the calling one calls beat
 * and progress meanwhile; the options that the work gets have a stop of their own. Where the system
 * refuses a thread, the calling one does the work, without beats. */
enum tarn_status tarn_beat_run(const struct tarn_plan_options *options, tarn_beat_work *work,
                               void *subject);

#endif
