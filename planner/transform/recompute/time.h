/* Computes the modelled critical path of a schedule of several streams, and the streams of
 * recomputations.
 */
#ifndef TARN_PLANNER_TRANSFORM_RECOMPUTE_TIME_H
#define TARN_PLANNER_TRANSFORM_RECOMPUTE_TIME_H

#include "recompute.h"

/* Scratch memory that is reused. An end of 0 means that no op has run. */
struct tarn_timing {
    uint64_t *stream_end;       /* stream -> end of its last op so far, ns */
    uint64_t *op_end;           /* op of the graph, no view -> end of its last primary execution */
    uint64_t *end;              /* execution -> its end */
    size_t room;                /* of `end` */
    struct tarn_region *region; /* that `end` grows in */
    uint32_t *row_of;       /* view that ops of other streams look through -> its row; TARN_NONE */
    uint64_t *rows;         /* row and stream -> latest end before the view in that stream */
    uint64_t *passed;       /* stream and other stream -> latest end there that views have passed on
                               to the first one since its last op */
    uint64_t *passed_ready; /* stream -> when its next op may begin, as far as `passed` says */
    uint32_t *lookers;      /* streams whose row in `passed` is not all 0 */
    uint32_t lookers_count;
    bool *looks; /* by stream: it is one of the lookers */
};

/* TARN_SYSTEM: no memory. */
enum tarn_status tarn_timing_init(struct tarn_timing *timing, struct tarn_region *region,
                                  const struct tarn_graph *graph);

/* Gives every execution its stream, and the schedule, which must hold all executions and know
 * their implementations, its time. false: no memory. Linear in the graph and the schedule. */
bool tarn_schedule_time(struct tarn_schedule *schedule, const struct tarn_recompute_model *model,
                        enum tarn_recompute_streams rule, struct tarn_timing *timing);

#endif
