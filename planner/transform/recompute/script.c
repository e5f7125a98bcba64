/* Each step of a script appends an execution, or makes the next read of a version ask for a later
 * copy. Which copy is written over which follows from the last reads, as for a policy. Cost: linear
 * in the reads and writes of what is run. */
#include "script.h"

#include <string.h>

static bool make_room(struct tarn_scripted *scripted, struct tarn_region *region,
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
    struct tarn_schedule *schedule = &scripted->schedule;
    schedule->executions = tarn_region_take(region, executions, sizeof *schedule->executions);
    schedule->copies = tarn_region_take(region, copies, sizeof *schedule->copies);
    schedule->reads = tarn_region_take(region, reads, sizeof *schedule->reads);
    scripted->latest = tarn_region_take(region, model->versions_count, sizeof *scripted->latest);
    if (region->is_exhausted) return false;
    memset(scripted->latest, 0xff, model->versions_count * sizeof *scripted->latest);
    return true;
}

static void write_version(struct tarn_scripted *scripted, const struct tarn_recompute_model *model,
                          uint32_t w, bool recomputed)
{
    struct tarn_schedule *schedule = &scripted->schedule;
    const struct tarn_version *version = &model->versions[w];
    uint32_t e = schedule->count, over = TARN_NONE;
    if (version->previous != TARN_NONE) {
        over = scripted->latest[version->previous];
        if (version->forced) scripted->latest[version->previous] = TARN_NONE;
    }
    uint32_t copy = schedule->copies_count++;
    schedule->copies[copy] = (struct tarn_copy){w, e, e, over, recomputed};
    if (!recomputed || scripted->latest[w] == TARN_NONE) scripted->latest[w] = copy;
}

/* False: it reads what is not there. */
static bool run(struct tarn_scripted *scripted, const struct tarn_recompute_model *model,
                uint32_t f)
{
    struct tarn_schedule *schedule = &scripted->schedule;
    const struct tarn_form *form = &model->forms[f];
    bool primary = scripted->place < model->ops_count && model->order[scripted->place] == form->op;
    uint32_t e = schedule->count;
    schedule->executions[e] = (struct tarn_execution){.form = f,
                                                      .implementation = TARN_NONE,
                                                      .place = scripted->place,
                                                      .stream = model->graph->ops[form->op].stream,
                                                      .reads = scripted->reads_count,
                                                      .copies = schedule->copies_count,
                                                      .recomputed = !primary};
    for (uint32_t i = form->reads.begin; i < form->reads.end; i++) {
        uint32_t copy = scripted->latest[model->reads[i]];
        if (copy == TARN_NONE) return false;
        schedule->copies[copy].last_read = e;
        schedule->reads[scripted->reads_count++] = copy;
    }
    for (uint32_t i = form->writes.begin; i < form->writes.end; i++)
        write_version(scripted, model, model->writes[i], !primary);
    schedule->count++;
    scripted->place += primary;
    return true;
}

static bool run_all(struct tarn_scripted *scripted, const struct tarn_recompute_model *model,
                    const struct tarn_script *script)
{
    for (uint32_t i = 0; i < script->count; i++) {
        if (script->steps[i].drops)
            scripted->latest[script->steps[i].what] = TARN_NONE;
        else if (!run(scripted, model, script->steps[i].what))
            return false;
    }
    return scripted->place == model->ops_count;
}

enum tarn_status tarn_scripted_init(struct tarn_scripted *scripted, struct tarn_region *region,
                                    const struct tarn_recompute_model *model,
                                    const struct tarn_script *script)
{
    struct tarn_schedule *schedule = &scripted->schedule;
    *scripted = (struct tarn_scripted){.lives.region = region};
    if (!make_room(scripted, region, model, script)) return TARN_SYSTEM;
    if (!run_all(scripted, model, script)) {
        schedule->peak = schedule->time_ns = schedule->work_ns = UINT64_MAX;
        return TARN_OK;
    }
    if (!tarn_schedule_measure(schedule, model, NULL, &scripted->lives, script->budget))
        return TARN_SYSTEM;
    schedule->time_ns = schedule->work_ns;
    return TARN_OK;
}
