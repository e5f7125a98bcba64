/* Builds and measures schedules, for policies and scripts: appends executions one by one, and finds
 * the peak and the time of schedules whose copies know their last reads. */
#ifndef TARN_PLANNER_TRANSFORM_RECOMPUTE_MEASURE_H
#define TARN_PLANNER_TRANSFORM_RECOMPUTE_MEASURE_H

#include "tail.h"

/* ---- Executions ---- */

static inline void tarn_schedule_write(struct tarn_schedule *schedule,
                                       const struct tarn_recompute_model *model, uint32_t *latest,
                                       uint32_t w, bool recomputed)
{
    const struct tarn_version *version = &model->versions[w];
    uint32_t e = schedule->count, over = TARN_NONE, copy = schedule->copies_count++;
    if (version->previous != TARN_NONE) {
        over = latest[version->previous];
        if (version->forced) latest[version->previous] = TARN_NONE;
    }
    schedule->copies[copy] = (struct tarn_copy){w, e, e, over, recomputed};
    if (!recomputed || latest[w] == TARN_NONE) latest[w] = copy; /* else no op has asked for it */
}

/* Appends form f, which runs at `place` of the list, again or for the first time, on the stream of
 * its op. latest: version -> its copy that can be read, or TARN_NONE. The schedule must have room.
 * False: the form reads a version that has no copy. */
static inline bool tarn_schedule_append(struct tarn_schedule *schedule,
                                        const struct tarn_recompute_model *model, uint32_t *latest,
                                        uint32_t f, uint32_t place, bool recomputed)
{
    const struct tarn_form *form = &model->forms[f];
    uint32_t e = schedule->count;
    schedule->executions[e] = (struct tarn_execution){.form = f,
                                                      .implementation = TARN_NONE,
                                                      .place = place,
                                                      .stream = model->graph->ops[form->op].stream,
                                                      .reads = schedule->reads_count,
                                                      .copies = schedule->copies_count,
                                                      .recomputed = recomputed};
    for (uint32_t i = form->reads.begin; i < form->reads.end; i++) {
        uint32_t copy = latest[model->reads[i]];
        if (copy == TARN_NONE) return false;
        schedule->copies[copy].last_read = e;
        schedule->reads[schedule->reads_count++] = copy;
    }
    for (uint32_t i = form->writes.begin; i < form->writes.end; i++)
        tarn_schedule_write(schedule, model, latest, model->writes[i], recomputed);
    schedule->count++;
    return true;
}

/* ---- Peak and time ---- */

/* Room that is used again, by execution. */
struct tarn_lives {
    struct tarn_region *region; /* that it grows in */
    int64_t *change;
    uint64_t *bytes;
    size_t change_room, bytes_room;
};

/* Chooses implementations and fills in the schedule's peak and time. tail: the ops that run after
 * its executions, or NULL. false: no memory. */
bool tarn_schedule_measure(struct tarn_schedule *schedule, const struct tarn_recompute_model *model,
                           const struct tarn_tail *tail, struct tarn_lives *lives, uint64_t budget);

#endif
