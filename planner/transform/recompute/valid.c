/* Checks conditions that hold for every model and for every schedule that can run. Cost: linear in
 * the checked data. */
#include "recompute.h"

/* ---- Models ---- */

static bool is_inside(struct tarn_range range, struct tarn_range room)
{
    return range.begin <= range.end && room.begin <= range.begin && range.end <= room.end;
}

static bool versions_are_valid(const struct tarn_recompute_model *model)
{
    const struct tarn_graph *graph = model->graph;
    for (uint32_t w = 0; w < model->versions_count; w++) {
        const struct tarn_version *version = &model->versions[w];
        if (version->producer >= graph->ops_count || graph->ops[version->producer].view)
            return false;
        if (graph->tensors[version->tensor].storage != version->storage) return false;
        if (version->droppable && version->forced) return false;
        if (version->droppable && version->dropped_at < model->first_backward) return false;
        if (version->droppable && version->last_early >= version->dropped_at) return false;
        if (version->launches_count > 0 && !version->droppable) return false;
        for (uint32_t i = 0; i < version->launches_count; i++)
            if (version->launches[i] <= version->dropped_at) return false;
        if (version->previous == TARN_NONE) continue;
        if (version->previous >= w) return false;
        if (model->versions[version->previous].storage != version->storage) return false;
    }
    return true;
}

static bool choices_are_valid(const struct tarn_recompute_model *model, struct tarn_range choices)
{
    if (choices.begin >= choices.end) return false;
    for (uint32_t i = choices.begin + 1; i < choices.end; i++) {
        if (model->choices[i].time_ns < model->choices[i - 1].time_ns) return false;
        if (model->choices[i].workspace >= model->choices[i - 1].workspace) return false;
    }
    return true;
}

static bool form_is_valid(const struct tarn_recompute_model *model, uint32_t v, uint32_t f)
{
    const struct tarn_form *form = &model->forms[f];
    if (form->op != v || (form->whole && form->splits)) return false;
    for (uint32_t i = form->reads.begin; i < form->reads.end; i++) {
        if (model->reads[i] >= model->versions_count) return false;
    }
    for (uint32_t i = form->writes.begin; i < form->writes.end; i++) {
        if (model->writes[i] >= model->versions_count) return false;
        if (model->versions[model->writes[i]].producer != v) return false;
    }
    return form->reads.begin <= form->reads.end && form->writes.begin <= form->writes.end &&
           form->states.begin <= form->states.end && choices_are_valid(model, form->choices);
}

bool tarn_recompute_model_is_valid(const struct tarn_recompute_model *model)
{
    const struct tarn_graph *graph = model->graph;
    const struct tarn_range forms = {0, model->forms_count};
    if (model->ops_count > graph->ops_count || model->first_backward > model->ops_count)
        return false;
    for (uint32_t place = 0; place < model->ops_count; place++) {
        uint32_t v = model->order[place];
        if (v >= graph->ops_count || graph->ops[v].view) return false;
        if (place > 0 && graph->rank[model->order[place - 1]] >= graph->rank[v]) return false;
        struct tarn_range range = model->op_forms[v];
        if (range.begin == range.end || !is_inside(range, forms)) return false;
        if (!model->forms[range.begin].whole) return false;
        for (uint32_t f = range.begin; f < range.end; f++) {
            if (!form_is_valid(model, v, f)) return false;
        }
    }
    return versions_are_valid(model);
}

/* ---- Schedules ---- */

static bool copies_are_valid(const struct tarn_schedule *schedule,
                             const struct tarn_recompute_model *model)
{
    for (uint32_t c = 0; c < schedule->copies_count; c++) {
        const struct tarn_copy *copy = &schedule->copies[c];
        if (copy->version >= model->versions_count || copy->birth >= schedule->count) return false;
        if (copy->last_read < copy->birth || copy->last_read >= schedule->count) return false;
        if (copy->over == TARN_NONE) continue;
        if (copy->over >= c) return false;
        if (schedule->copies[copy->over].version != model->versions[copy->version].previous)
            return false;
    }
    return true;
}

static bool execution_is_valid(const struct tarn_schedule *schedule,
                               const struct tarn_recompute_model *model, uint32_t e)
{
    const struct tarn_execution *execution = &schedule->executions[e];
    if (execution->form >= model->forms_count) return false;
    const struct tarn_form *form = &model->forms[execution->form];
    for (uint32_t k = 0; k < form->reads.end - form->reads.begin; k++) {
        uint32_t copy = schedule->reads[execution->reads + k];
        if (copy >= schedule->copies_count || schedule->copies[copy].birth >= e) return false;
        if (schedule->copies[copy].version != model->reads[form->reads.begin + k]) return false;
        if (schedule->copies[copy].last_read < e) return false;
    }
    for (uint32_t k = 0; k < form->writes.end - form->writes.begin; k++) {
        uint32_t copy = execution->copies + k;
        if (copy >= schedule->copies_count || schedule->copies[copy].birth != e) return false;
        if (schedule->copies[copy].version != model->writes[form->writes.begin + k]) return false;
    }
    return execution->recomputed || model->order[execution->place] == form->op;
}

bool tarn_schedule_is_valid(const struct tarn_schedule *schedule,
                            const struct tarn_recompute_model *model)
{
    uint32_t place = 0; /* of the next primary op; one that runs split has several executions */
    for (uint32_t e = 0; e < schedule->count; e++) {
        const struct tarn_execution *execution = &schedule->executions[e];
        if (execution->place >= model->ops_count || !execution_is_valid(schedule, model, e))
            return false;
        if (e > 0 && execution->place < schedule->executions[e - 1].place) return false;
        if (execution->recomputed) continue;
        if (execution->place != place && execution->place + 1 != place) return false;
        place = execution->place + 1;
    }
    return place == model->ops_count && copies_are_valid(schedule, model);
}
