/* The data of all kinds of pictures: the model of a plan, the verifier's verdict, the axes of the
 * model, and, on one of them, when each holder is in use. */
#ifndef TARN_CLI_SHOW_PICTURE_H
#define TARN_CLI_SHOW_PICTURE_H

#include "cli/model/schedule.h"

struct tarn_picture {
    struct tarn_memory memory; /* has spans and levels */
    struct tarn_model model;
    const struct tarn_verdict *verdict; /* NULL: nothing is wrong */
    struct tarn_model_schedule axes[TARN_AXES];
    bool has_axis[TARN_AXES];
    enum tarn_axis axis; /* the one that is drawn, or first */
    struct tarn_model_span *spans;
    struct tarn_memory_level *levels;
    size_t levels_count;
    uint32_t width; /* of an SVG, in CSS pixels; 0: 960 */
};

/* The words of axes, in the order of the enum; for command lines and pages. */
extern const char *const tarn_axis_words[TARN_AXES];
/* Describes the x axis of a picture, for people. */
const char *tarn_axis_text(const struct tarn_picture *picture);

/* axis NULL: the first of these that exists: the order in which something goes wrong, a given
 * trace's order, the order through the cut (with several streams and a certificate), list order.
 * TARN_USAGE: the plan has no such axis; TARN_SYSTEM. The picture is empty then. plan and verdict
 * must outlive it. */
enum tarn_status tarn_picture_init(struct tarn_picture *picture, const struct tarn_plan *plan,
                                   const struct tarn_verdict *verdict, const enum tarn_axis *axis,
                                   const struct tarn_trace_entry *runs, size_t runs_count,
                                   struct tarn_error *error);
void tarn_picture_finish(struct tarn_picture *picture);

static inline const struct tarn_model_schedule *
tarn_picture_schedule(const struct tarn_picture *picture)
{
    return &picture->axes[picture->axis];
}

#endif
