/* Computes when launches run, for a picture: one x axis for everything that is drawn. */
#ifndef TARN_CLI_MODEL_SCHEDULE_H
#define TARN_CLI_MODEL_SCHEDULE_H

#include "model.h"

enum tarn_axis {
    TARN_AXIS_ORDER, /* one launch after the other */
    TARN_AXIS_TIME,  /* as soon as lists and waits allow, by the ops' costs */
    TARN_AXIS_CUT,   /* one after the other, through the certificate's cut */
    TARN_AXIS_REAL,  /* as a trace says */
    TARN_AXIS_WRONG  /* one after the other, in an order in which an op reads a wrong byte */
};
#define TARN_AXES 5

/* The source of the last two axes; without entries or steps the model has no such axis. */
struct tarn_axis_source {
    const struct tarn_trace_entry *runs; /* of the last iteration with all launches */
    size_t runs_count;
    const struct tarn_step *steps; /* a violation's witness: the last step reads the wrong byte */
    size_t steps_count;
};

struct tarn_model_schedule {
    struct tarn_memory memory; /* has the arrays */
    enum tarn_axis axis;
    uint64_t *begin, *end; /* of every launch: steps, or nanoseconds if is_time */
    uint64_t length;       /* of the whole, at least 1 */
    bool is_time;
    bool has_mark; /* the moment to look at: of the cut, or of the wrong read */
    uint64_t mark_begin, mark_end;
    uint32_t flight_count; /* launches that are in flight then */
};

/* Makes an axis for a model. source NULL: no source. False: the model has no such axis (no
 * certificate, no order, no whole iteration, nothing wrong), and *schedule is all zeros; or no
 * memory is left (memory.is_exhausted). Cost: O(launches S + waits + runs). */
bool tarn_schedule_init(struct tarn_model_schedule *schedule, const struct tarn_model *model,
                        enum tarn_axis axis, const struct tarn_axis_source *source);
void tarn_schedule_finish(struct tarn_model_schedule *schedule);

/* The time during which a holder takes its bytes. It is alive from `begin` until its last use ends
 * at `end`. From then it is *held*, until the first launch that may have its bytes begins. */
struct tarn_model_span {
    double begin, end, free; /* half a launch may be half a step */
};
/* spans: room for holders_count. False: no memory. Cost: O(S (launches + waits + touches)). */
bool tarn_schedule_spans(const struct tarn_model_schedule *schedule, const struct tarn_model *model,
                         struct tarn_model_span *spans);

/* How many bytes are in use from `at` on: exact ones alive, reserved ones alive or held. */
struct tarn_memory_level {
    double at;
    uint64_t alive, taken;
};
/* *levels of a space, by time, *count of them, from the memory; space TARN_NONE: of all. NULL: no
 * memory left. Cost: O(n log n). */
struct tarn_memory_level *tarn_schedule_levels(struct tarn_memory *memory,
                                               const struct tarn_model *model,
                                               const struct tarn_model_span *spans,
                                               tarn_space space, size_t *count);

#endif
