/* The forward and backward passes of a model, of which a list may have several: shards, gradient
 * accumulation, the microbatches of a pipeline stage.
 *
 * A forward op depends on no backward op, and some backward op on it; before the first backward op
 * that reads a forward result all ops count as forward. A **reversal** is a place at which the
 * list goes over from forward to backward ops. A version of a forward op is dropped, unless it is
 * kept, at the first reversal behind its writer from which on no forward op is the next to read it.
 * Of two versions of which one is computed from the other, both are dropped when the first of them
 * is asked for again, so nothing is there only because it was dropped too late. Cost: linear in the
 * reads. */
#include <string.h>

#include "forms.h"

/* What is known while the list is read; arrays by place or by version. */
struct reversals {
    struct tarn_recompute_model *model;
    uint8_t *late;     /* version: its writer depends on a backward op */
    uint8_t *wanted;   /* version: some backward op depends on it */
    uint32_t *first;   /* place -> the first reversal from it on, or TARN_NONE */
    uint32_t *last;    /* version -> the last place so far where it is written or read */
    uint32_t *sorting; /* place -> versions that are dropped there or earlier */
};

static bool op_is_backward(const struct tarn_recompute_model *model, uint32_t v)
{
    return strstr(model->graph->ops[v].kind, "backward");
}

static bool is_backward(const struct tarn_recompute_model *model, uint32_t place)
{
    return op_is_backward(model, model->order[place]);
}

static const struct tarn_form *own_form(const struct tarn_recompute_model *model, uint32_t place)
{
    return &model->forms[model->op_forms[model->order[place]].begin];
}

/* ---- Forward ops ---- */

static bool reads_forward(const struct tarn_recompute_model *model, uint32_t place)
{
    const struct tarn_form *form = own_form(model, place);
    for (uint32_t i = form->reads.begin; i < form->reads.end; i++) {
        uint32_t producer = model->versions[model->reads[i]].producer;
        if (!op_is_backward(model, producer)) return true;
    }
    return false;
}

/* A backward op that reads gradients alone may be listed anywhere. */
static uint32_t find_first_backward(const struct tarn_recompute_model *model)
{
    uint32_t first = model->ops_count;
    for (uint32_t i = 0; i < model->ops_count; i++) {
        if (!is_backward(model, i)) continue;
        if (reads_forward(model, i)) return i;
        if (first == model->ops_count) first = i;
    }
    return first;
}

static bool any_read(const struct tarn_recompute_model *model, uint32_t place,
                     const uint8_t *versions)
{
    const struct tarn_form *form = own_form(model, place);
    for (uint32_t i = form->reads.begin; i < form->reads.end; i++) {
        if (versions[model->reads[i]]) return true;
    }
    return false;
}

static void find_late(const struct reversals *reversals)
{
    const struct tarn_recompute_model *model = reversals->model;
    for (uint32_t place = 0; place < model->ops_count; place++) {
        const struct tarn_form *form = own_form(model, place);
        bool late = is_backward(model, place) || any_read(model, place, reversals->late);
        for (uint32_t i = form->writes.begin; i < form->writes.end; i++)
            reversals->late[model->writes[i]] = late;
        model->is_forward[place] = !late || place < model->first_backward;
    }
}

static void find_wanted(const struct reversals *reversals)
{
    const struct tarn_recompute_model *model = reversals->model;
    for (uint32_t place = model->ops_count; place-- > 0;) {
        const struct tarn_form *form = own_form(model, place);
        bool wanted = is_backward(model, place);
        for (uint32_t i = form->writes.begin; i < form->writes.end; i++)
            wanted = wanted || reversals->wanted[model->writes[i]];
        for (uint32_t i = form->reads.begin; i < form->reads.end && wanted; i++)
            reversals->wanted[model->reads[i]] = true;
        if (!wanted && place >= model->first_backward) model->is_forward[place] = false;
    }
}

/* ---- Reversals ---- */

static bool reads_result_of_forward(const struct reversals *reversals, uint32_t place)
{
    const struct tarn_recompute_model *model = reversals->model;
    const struct tarn_form *form = own_form(model, place);
    for (uint32_t i = form->reads.begin; i < form->reads.end; i++) {
        if (!reversals->late[model->reads[i]]) return true;
    }
    return false;
}

/* Marks the reversals at their own places; returns the last one. */
static uint32_t mark_reversals(const struct reversals *reversals)
{
    struct tarn_recompute_model *model = reversals->model;
    uint32_t last = model->first_backward;
    bool forward = false;
    reversals->first[last] = last;
    model->reversals_count = 1;
    for (uint32_t place = last; place < model->ops_count; place++) {
        forward = forward || model->is_forward[place];
        if (!forward || !is_backward(model, place) || !reads_result_of_forward(reversals, place))
            continue;
        reversals->first[place] = last = place;
        model->reversals_count++;
        forward = false;
    }
    return last;
}

static void find_reversals(const struct reversals *reversals)
{
    struct tarn_recompute_model *model = reversals->model;
    uint32_t next = TARN_NONE;
    memset(reversals->first, 0xff, ((size_t)model->ops_count + 2) * sizeof *reversals->first);
    uint32_t last = mark_reversals(reversals);
    for (uint32_t place = last; place < model->ops_count; place++) model->is_forward[place] = false;
    for (uint32_t place = model->ops_count + 1; place-- > 0;) {
        if (reversals->first[place] == place) next = place;
        reversals->first[place] = next;
    }
}

/* ---- Where versions are dropped ---- */

static void note_writes(const struct reversals *reversals, uint32_t place)
{
    const struct tarn_recompute_model *model = reversals->model;
    struct tarn_range forms = model->op_forms[model->order[place]];
    for (uint32_t f = forms.begin; f < forms.end; f++) {
        const struct tarn_form *form = &model->forms[f];
        for (uint32_t i = form->writes.begin; i < form->writes.end; i++) {
            struct tarn_version *version = &model->versions[model->writes[i]];
            const struct tarn_storage *storage = &model->graph->storages[version->storage];
            reversals->last[model->writes[i]] = place;
            if (model->is_forward[place] && form->repeats && !storage->pinned &&
                storage->group == TARN_NONE && !version->forced)
                version->droppable = true;
        }
    }
}

static void note_reads(const struct reversals *reversals, uint32_t place)
{
    const struct tarn_recompute_model *model = reversals->model;
    struct tarn_range forms = model->op_forms[model->order[place]];
    for (uint32_t i = model->forms[forms.begin].reads.begin;
         i < model->forms[forms.end - 1].reads.end; i++) {
        uint32_t w = model->reads[i];
        struct tarn_version *version = &model->versions[w];
        if (version->dropped_at != TARN_NONE) continue;
        uint32_t at = reversals->first[reversals->last[w] + 1];
        if (!model->is_forward[place] && at != TARN_NONE && at <= place)
            version->dropped_at = at;
        else
            reversals->last[w] = place;
    }
}

static void find_drops(const struct reversals *reversals)
{
    struct tarn_recompute_model *model = reversals->model;
    for (uint32_t place = 0; place < model->ops_count; place++) {
        note_reads(reversals, place);
        note_writes(reversals, place);
    }
    for (uint32_t w = 0; w < model->versions_count; w++) {
        struct tarn_version *version = &model->versions[w];
        version->last_early = reversals->last[w];
        if (version->dropped_at == TARN_NONE)
            version->dropped_at = reversals->first[reversals->last[w] + 1];
        version->droppable = version->droppable && version->dropped_at != TARN_NONE;
        if (version->droppable) reversals->sorting[version->dropped_at + 1]++;
    }
    for (uint32_t place = 0; place <= model->ops_count; place++)
        reversals->sorting[place + 1] += reversals->sorting[place];
    for (uint32_t w = 0; w < model->versions_count; w++) {
        if (model->versions[w].droppable)
            model->drops[reversals->sorting[model->versions[w].dropped_at]++] = w;
    }
    model->drops_count = reversals->sorting[model->ops_count];
}

enum tarn_status tarn_model_find_passes(struct tarn_recompute_model *model,
                                        struct tarn_region *region)
{
    size_t versions = model->versions_count, places = (size_t)model->ops_count + 2;
    struct tarn_region_mark mark = tarn_region_mark(region);
    struct reversals reversals = {
        .model = model,
        .late = tarn_region_take(region, versions, sizeof *reversals.late),
        .wanted = tarn_region_take(region, versions, sizeof *reversals.wanted),
        .first = tarn_region_take(region, places, sizeof *reversals.first),
        .last = tarn_region_take(region, versions, sizeof *reversals.last),
        .sorting = tarn_region_take(region, places, sizeof *reversals.sorting)};
    bool enough = !region->is_exhausted;
    if (enough) {
        model->first_backward = find_first_backward(model);
        find_late(&reversals);
        find_wanted(&reversals);
        find_reversals(&reversals);
        find_drops(&reversals);
    }
    tarn_region_release(region, mark);
    return enough ? TARN_OK : TARN_SYSTEM;
}
