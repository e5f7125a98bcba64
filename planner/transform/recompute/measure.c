/* Computes the peak and the time of a schedule. A copy lives from its birth to its last read, over
 * the copy that it overwrites if that copy is read for the last time then. Implementations must fit
 * beside the sum of the copies alive at each execution. Cost: linear in copies and executions. */
#include "measure.h"

#include <string.h>

struct measuring {
    const struct tarn_recompute_model *model;
    struct tarn_schedule *schedule;
    const struct tarn_tail *tail;
    uint32_t rest;   /* executions of the tail that have not been run */
    uint64_t *bytes; /* execution -> bytes in the arena while it runs */
    int64_t *change; /* execution -> bytes that appear, less bytes freed, when it begins */
};

bool tarn_copy_is_over(const struct tarn_recompute_model *model,
                       const struct tarn_schedule *schedule, uint32_t c)
{
    const struct tarn_copy *copy = &schedule->copies[c];
    if (copy->over == TARN_NONE) return false;
    return model->versions[copy->version].forced ||
           schedule->copies[copy->over].last_read == copy->birth;
}

/* The execution after the last one in which the copy is alive. */
static uint32_t end_of(const struct measuring *measuring, const struct tarn_copy *copy)
{
    uint32_t storage = measuring->model->versions[copy->version].storage;
    bool pinned = measuring->model->graph->storages[storage].pinned && !copy->recomputed;
    return pinned ? measuring->schedule->count + measuring->rest : copy->last_read + 1;
}

static void note_lives(struct measuring *measuring)
{
    const struct tarn_schedule *schedule = measuring->schedule;
    memset(measuring->change, 0, ((size_t)schedule->count + 2) * sizeof *measuring->change);
    if (measuring->rest > 0)
        memcpy(measuring->change + schedule->count, measuring->tail->change,
               ((size_t)measuring->rest + 1) * sizeof *measuring->change);
    for (uint32_t c = 0; c < schedule->copies_count; c++) {
        const struct tarn_copy *copy = &schedule->copies[c];
        const struct tarn_version *version = &measuring->model->versions[copy->version];
        int64_t size = (int64_t)(copy->recomputed ? version->copy_size : version->size);
        measuring->change[copy->birth] += size;
        measuring->change[end_of(measuring, copy)] -= size;
        if (!tarn_copy_is_over(measuring->model, schedule, c)) continue;
        measuring->change[copy->birth] -= size; /* of one storage: the same */
        measuring->change[end_of(measuring, &schedule->copies[copy->over])] += size;
    }
}

static const struct tarn_choice *choose(const struct tarn_recompute_model *model,
                                        const struct tarn_form *form, uint64_t alive,
                                        uint64_t budget)
{
    uint32_t i = form->choices.begin;
    while (i + 1 < form->choices.end && alive + model->choices[i].workspace > budget) i++;
    return &model->choices[i];
}

uint64_t tarn_execution_ns(const struct tarn_recompute_model *model,
                           const struct tarn_execution *execution)
{
    uint32_t i = model->forms[execution->form].choices.begin;
    while (model->choices[i].implementation != execution->implementation) i++;
    return model->choices[i].time_ns;
}

static void note_step(struct tarn_schedule *schedule, uint64_t bytes, uint64_t budget)
{
    if (bytes > budget) schedule->excess += (double)(bytes - budget);
    if (bytes > schedule->peak) schedule->peak = bytes;
}

static void measure(struct measuring *measuring, uint64_t budget)
{
    struct tarn_schedule *schedule = measuring->schedule;
    int64_t alive = 0;
    for (uint32_t e = 0; e < schedule->count; e++) {
        struct tarn_execution *execution = &schedule->executions[e];
        alive += measuring->change[e];
        const struct tarn_choice *choice = choose(
            measuring->model, &measuring->model->forms[execution->form], (uint64_t)alive, budget);
        execution->implementation = choice->implementation;
        schedule->work_ns += choice->time_ns;
        if (execution->recomputed) schedule->recomputed_ns += choice->time_ns;
        measuring->bytes[e] = (uint64_t)alive + choice->workspace;
        note_step(schedule, measuring->bytes[e], budget);
    }
    for (uint32_t i = 0; i < measuring->rest; i++) {
        alive += measuring->change[schedule->count + i];
        note_step(schedule, (uint64_t)alive + measuring->tail->workspace[i], budget);
    }
    if (measuring->rest > 0) schedule->work_ns += measuring->tail->time_ns;
}

bool tarn_schedule_measure(struct tarn_schedule *schedule, const struct tarn_recompute_model *model,
                           const struct tarn_tail *tail, struct tarn_lives *lives, uint64_t budget)
{
    struct measuring measuring = {
        .model = model, .schedule = schedule, .tail = tail, .rest = tail ? tail->count : 0};
    size_t count = (size_t)schedule->count + measuring.rest + 2;
    int64_t *change =
        tarn_region_grow(lives->region, lives->change, &lives->change_room, count, sizeof *change);
    if (change) lives->change = change;
    uint64_t *bytes =
        tarn_region_grow(lives->region, lives->bytes, &lives->bytes_room, count, sizeof *bytes);
    if (bytes) lives->bytes = bytes;
    if (!change || !bytes) return false;
    measuring.change = lives->change;
    schedule->bytes = measuring.bytes = lives->bytes;
    note_lives(&measuring);
    measure(&measuring, budget);
    return true;
}
