/* When launches run, for a picture: one x axis for all that is drawn. */
#ifndef TARN_CLI_MODEL_SCHEDULE_H
#define TARN_CLI_MODEL_SCHEDULE_H

#include "model.h"

enum tarn_axis {
    TARN_AXIS_ORDER, /* one launch after the other */
    TARN_AXIS_TIME,  /* as soon as lists and waits allow, by the ops' costs */
    TARN_AXIS_CUT,   /* one after the other, through the certificate's cut */
    TARN_AXIS_REAL   /* as a trace says */
};
#define TARN_AXES 4

struct tarn_schedule {
    struct tarn_memory memory; /* has the arrays */
    enum tarn_axis axis;
    uint64_t *begin, *end; /* of every launch: steps, or nanoseconds where is_time */
    uint64_t length;       /* of the whole, at least 1 */
    bool is_time;
    bool has_mark; /* the cut's launches are in flight from mark_begin to mark_end */
    uint64_t mark_begin, mark_end;
    uint32_t flight_count; /* how many they are */
};

/* An axis for a model. runs: for TARN_AXIS_REAL, the trace's, of which the last iteration with all
 * launches counts; else NULL. False where the model has no such axis (no certificate, an order that
 * is none, no whole iteration): *schedule is all zeros then, or memory.is_exhausted. Cost:
 * O(launches S + waits + runs). */
bool tarn_schedule_init(struct tarn_schedule *schedule, const struct tarn_model *model,
                        enum tarn_axis axis, const struct tarn_trace_entry *runs,
                        size_t runs_count);
void tarn_schedule_finish(struct tarn_schedule *schedule);

/* When the bytes of a holder are taken: it is alive from `begin` to `end`, when its last use has
 * ended, and *held* from then until the first launch that may have its bytes begins. */
struct tarn_span {
    double begin, end, free; /* half a launch may be half a step */
};
/* spans: room for holders_count. False: no memory. Cost: O(S (launches + waits + touches)). */
bool tarn_schedule_spans(const struct tarn_schedule *schedule, const struct tarn_model *model,
                         struct tarn_span *spans);

/* How many bytes are in use from `at` on: exact ones alive, reserved ones alive or held. */
struct tarn_level {
    double at;
    uint64_t alive, taken;
};
/* *levels, by time, *count of them, from the memory; NULL: none left. Cost: O(n log n). */
struct tarn_level *tarn_schedule_levels(struct tarn_memory *memory, const struct tarn_model *model,
                                        const struct tarn_span *spans, size_t *count);

#endif
