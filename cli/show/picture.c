/* Computes every axis that the plan has, since a page shows all of them. Cost: the model and its
 * schedules. */
#include "picture.h"

#include <stdio.h>

const char *const tarn_axis_words[TARN_AXES] = {"order", "time", "cut", "real", "wrong"};

const char *tarn_axis_text(const struct tarn_picture *picture)
{
    switch (picture->axis) {
    case TARN_AXIS_ORDER: break;
    case TARN_AXIS_TIME:
        return tarn_picture_schedule(picture)->is_time
                   ? "modelled time"
                   : "steps, as soon as order and waits allow (no costs)";
    case TARN_AXIS_CUT: return "launches, in an order through the certificate's cut";
    case TARN_AXIS_REAL: return "time, as the trace has it";
    case TARN_AXIS_WRONG: return "launches, in an order that corrupts";
    }
    return "launches, in list order";
}

static bool choose_axis(struct tarn_picture *picture, const enum tarn_axis *axis)
{
    picture->axis = TARN_AXIS_ORDER;
    if (picture->has_axis[TARN_AXIS_CUT] && picture->model.streams_count > 1)
        picture->axis = TARN_AXIS_CUT;
    if (picture->has_axis[TARN_AXIS_REAL]) picture->axis = TARN_AXIS_REAL;
    if (picture->has_axis[TARN_AXIS_WRONG]) picture->axis = TARN_AXIS_WRONG;
    if (axis) picture->axis = *axis;
    return picture->has_axis[picture->axis];
}

/* False: no memory. */
static bool work_out_axes(struct tarn_picture *picture, const struct tarn_trace_entry *runs,
                          size_t runs_count)
{
    struct tarn_axis_source source = {.runs = runs, .runs_count = runs_count};
    for (size_t i = tarn_verdict_count(picture->verdict); i-- > 0;) {
        const struct tarn_violation *violation = tarn_verdict_get(picture->verdict, i);
        if (!violation->witness) continue;
        source.steps = violation->witness;
        source.steps_count = violation->witness_count;
    }
    for (int axis = 0; axis < TARN_AXES; axis++) {
        picture->has_axis[axis] = tarn_schedule_init(&picture->axes[axis], &picture->model,
                                                     (enum tarn_axis)axis, &source);
        if (picture->axes[axis].memory.is_exhausted) return false;
    }
    return true;
}

static bool work_out_spans(struct tarn_picture *picture)
{
    struct tarn_model *model = &picture->model;
    picture->spans =
        tarn_memory_take(&picture->memory, model->holders_count, sizeof *picture->spans);
    if (!picture->spans ||
        !tarn_schedule_spans(tarn_picture_schedule(picture), model, picture->spans))
        return false;
    picture->levels = tarn_schedule_levels(&picture->memory, model, picture->spans, TARN_NONE,
                                           &picture->levels_count);
    return picture->levels != NULL;
}

static enum tarn_status refuse(struct tarn_error *error, const char *text)
{
    *error = (struct tarn_error){.status = TARN_USAGE, .op = TARN_NONE, .tensor = TARN_NONE};
    snprintf(error->text, sizeof error->text, "%s", text);
    return TARN_USAGE;
}

enum tarn_status tarn_picture_init(struct tarn_picture *picture, const struct tarn_plan *plan,
                                   const struct tarn_verdict *verdict, const enum tarn_axis *axis,
                                   const struct tarn_trace_entry *runs, size_t runs_count,
                                   struct tarn_error *error)
{
    *picture = (struct tarn_picture){.verdict = verdict};
    enum tarn_status status = tarn_model_init(&picture->model, plan, error);
    if (status != TARN_OK) return status;
    bool is_complete = work_out_axes(picture, runs, runs_count);
    if (is_complete && runs && !picture->has_axis[TARN_AXIS_REAL]) {
        status = refuse(error, "the trace has no iteration with all launches of this plan");
    } else if (is_complete && !choose_axis(picture, axis)) {
        status =
            refuse(error, picture->axis == TARN_AXIS_REAL
                              ? "there is no trace; give that of a run with --trace"
                          : picture->axis == TARN_AXIS_WRONG
                              ? "no order is known in which this plan corrupts"
                              : "this plan has no certificate, and so no axis through its cut");
    } else if (!is_complete || !work_out_spans(picture)) {
        *error = tarn_model_no_memory();
        status = TARN_SYSTEM;
    }
    if (status != TARN_OK) tarn_picture_finish(picture);
    return status;
}

void tarn_picture_finish(struct tarn_picture *picture)
{
    for (int axis = 0; axis < TARN_AXES; axis++) tarn_schedule_finish(&picture->axes[axis]);
    tarn_model_finish(&picture->model);
    tarn_memory_finish(&picture->memory);
    *picture = (struct tarn_picture){.verdict = NULL};
}
