/* Runs scripts. A script is a schedule that is given step by step (struct tarn_script_step in
 * recompute.h) instead of following from a policy. Each step appends an execution, or makes the
 * next read of a version ask for a later copy. The last reads decide which copy is written over
 * which, as for a policy. Cost: linear in the reads and writes of all executions. */

#include <assert.h>
#include <string.h>

#include "measure.h"

/* A script that is run, up to some step. */
struct scripting {
    struct tarn_schedule *schedule;
    uint32_t *latest; /* version -> its copy that can be read, or TARN_NONE */
    uint32_t place;   /* of the next primary op */
};

static bool make_room(struct scripting *scripting, struct tarn_region *region,
                      const struct tarn_recompute_model *model, const struct tarn_script *script)
{
    size_t executions = 0, copies = 0, reads = 0;
    for (uint32_t i = 0; i < script->count; i++) {
        if (script->steps[i].drops) continue;
        const struct tarn_form *form = &model->forms[script->steps[i].what];
        executions++;
        copies += form->writes.end - form->writes.begin;
        reads += form->reads.end - form->reads.begin;
    }
    struct tarn_schedule *schedule = scripting->schedule;
    schedule->executions = tarn_region_take(region, executions, sizeof *schedule->executions);
    schedule->copies = tarn_region_take(region, copies, sizeof *schedule->copies);
    schedule->reads = tarn_region_take(region, reads, sizeof *schedule->reads);
    scripting->latest = tarn_region_take(region, model->versions_count, sizeof *scripting->latest);
    if (region->is_exhausted) return false;
    memset(scripting->latest, 0xff, model->versions_count * sizeof *scripting->latest);
    return true;
}

/* False: it reads a version that has no copy. */
static bool run(struct scripting *scripting, const struct tarn_recompute_model *model, uint32_t f)
{
    uint32_t place = scripting->place;
    bool primary = place < model->ops_count && model->order[place] == model->forms[f].op;
    scripting->place += primary;
    return tarn_schedule_append(scripting->schedule, model, scripting->latest, f, place, !primary);
}

static bool run_all(struct scripting *scripting, const struct tarn_recompute_model *model,
                    const struct tarn_script *script)
{
    for (uint32_t i = 0; i < script->count; i++) {
        if (script->steps[i].drops)
            scripting->latest[script->steps[i].what] = TARN_NONE;
        else if (!run(scripting, model, script->steps[i].what))
            return false;
    }
    return scripting->place == model->ops_count;
}

enum tarn_status tarn_script_run(struct tarn_schedule *schedule, struct tarn_region *region,
                                 const struct tarn_recompute_model *model,
                                 const struct tarn_script *script)
{
    assert(model->graph->streams_count == 1 && script->count > 0);
    struct scripting scripting = {.schedule = schedule};
    struct tarn_lives lives = {.region = region};
    *schedule = (struct tarn_schedule){.count = 0};
    if (!make_room(&scripting, region, model, script)) return TARN_SYSTEM;
    if (!run_all(&scripting, model, script)) {
        schedule->peak = schedule->time_ns = schedule->work_ns = UINT64_MAX;
        return TARN_OK;
    }
    if (!tarn_schedule_measure(schedule, model, NULL, &lives, script->budget)) return TARN_SYSTEM;
    schedule->time_ns = schedule->work_ns;
    return TARN_OK;
}
