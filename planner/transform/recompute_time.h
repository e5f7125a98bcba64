/* The modelled critical path of a schedule of several streams, and the streams of what runs again.
 */
#ifndef TARN_PLANNER_TRANSFORM_RECOMPUTE_TIME_H
#define TARN_PLANNER_TRANSFORM_RECOMPUTE_TIME_H

#include "recompute_model.h"

/* Room that is used again. */
struct tarn_timing {
    uint64_t *stream_end; /* stream -> end of its last op so far, ns */
    uint64_t *op_end;     /* op of the graph, views included -> end of its primary executions */
    uint64_t *end;        /* execution -> its end */
    uint32_t capacity;    /* of `end` */
};

/* TARN_SYSTEM: no memory. */
enum tarn_status tarn_timing_init(struct tarn_timing *timing, const struct tarn_graph *graph);
void tarn_timing_finish(struct tarn_timing *timing);

/* Gives every execution its stream, and the schedule, which must hold all executions and know
 * their implementations, its time. false: no memory. Linear in the graph and the schedule. */
bool tarn_schedule_time(struct tarn_schedule *schedule, const struct tarn_recompute_model *model,
                        enum tarn_recompute_streams rule, struct tarn_timing *timing);

#endif
