/* Evaluates the tail. An op belongs to the tail if it and all later ops have one form with one
 * choice and read no droppable version: for every policy they run one after another, and their
 * results live equally long. A version that the tail writes over an older version takes its bytes
 * if the older version is read for the last time by then. Cost: linear in the reads and writes of
 * the tail. */
#include "tail.h"

#include <assert.h>
#include <string.h>

struct tailing {
    const struct tarn_recompute_model *model;
    struct tarn_tail *tail;
    uint32_t *last;  /* version -> offset of its last read, or TARN_NONE */
    uint32_t *birth; /* version -> offset of its writer, or TARN_NONE: before the tail */
};

static bool is_fixed(const struct tarn_recompute_model *model, uint32_t place)
{
    struct tarn_range forms = model->op_forms[model->order[place]];
    const struct tarn_form *form = &model->forms[forms.begin];
    if (forms.end - forms.begin != 1 || form->choices.end - form->choices.begin != 1) return false;
    for (uint32_t i = form->reads.begin; i < form->reads.end; i++) {
        if (model->versions[model->reads[i]].droppable) return false;
    }
    return true;
}

static const struct tarn_form *form_at(const struct tailing *tailing, uint32_t offset)
{
    const struct tarn_recompute_model *model = tailing->model;
    return &model->forms[model->op_forms[model->order[tailing->tail->place + offset]].begin];
}

static void note_uses(struct tailing *tailing)
{
    const struct tarn_recompute_model *model = tailing->model;
    struct tarn_tail *tail = tailing->tail;
    for (uint32_t offset = 0; offset < tail->count; offset++) {
        const struct tarn_form *form = form_at(tailing, offset);
        const struct tarn_choice *choice = &model->choices[form->choices.begin];
        tail->workspace[offset] = choice->workspace;
        tail->time_ns += choice->time_ns;
        for (uint32_t i = form->reads.begin; i < form->reads.end; i++)
            tailing->last[model->reads[i]] = offset;
        for (uint32_t i = form->writes.begin; i < form->writes.end; i++)
            tailing->birth[model->writes[i]] = tailing->last[model->writes[i]] = offset;
    }
}

/* The offset at which the version is gone. */
static uint32_t end_of(const struct tailing *tailing, uint32_t version)
{
    uint32_t storage = tailing->model->versions[version].storage;
    return tailing->model->graph->storages[storage].pinned ? tailing->tail->count
                                                           : tailing->last[version] + 1;
}

static void note_lives(struct tailing *tailing)
{
    const struct tarn_recompute_model *model = tailing->model;
    struct tarn_tail *tail = tailing->tail;
    for (uint32_t w = 0; w < model->versions_count; w++) {
        const struct tarn_version *version = &model->versions[w];
        int64_t size = (int64_t)version->size;
        if (tailing->birth[w] == TARN_NONE) {
            if (tailing->last[w] != TARN_NONE)
                tail->reads[tail->reads_count++] = (struct tarn_tail_read){w, tailing->last[w]};
            continue;
        }
        tail->change[tailing->birth[w]] += size;
        tail->change[end_of(tailing, w)] -= size;
        uint32_t over = version->previous;
        if (over == TARN_NONE || (!version->forced && tailing->last[over] != tailing->birth[w]))
            continue;
        tail->change[tailing->birth[w]] -= size;
        tail->change[end_of(tailing, over)] += size;
    }
}

enum tarn_status tarn_tail_init(struct tarn_tail *tail, struct tarn_region *region,
                                const struct tarn_recompute_model *model)
{
    size_t versions = model->versions_count;
    *tail = (struct tarn_tail){.place = model->ops_count};
    while (tail->place > model->first_backward && is_fixed(model, tail->place - 1)) tail->place--;
    tail->count = model->ops_count - tail->place;
    assert(tail->place >= model->first_backward || tail->count == 0);
    tail->reads = tarn_region_take(region, versions, sizeof *tail->reads);
    tail->change = tarn_region_take(region, (size_t)tail->count + 2, sizeof *tail->change);
    tail->workspace = tarn_region_take(region, tail->count, sizeof *tail->workspace);
    struct tarn_region_mark mark = tarn_region_mark(region);
    struct tailing tailing = {.model = model,
                              .tail = tail,
                              .last = tarn_region_take(region, versions, sizeof *tailing.last),
                              .birth = tarn_region_take(region, versions, sizeof *tailing.birth)};
    if (!region->is_exhausted) {
        memset(tailing.last, 0xff, versions * sizeof *tailing.last);
        memset(tailing.birth, 0xff, versions * sizeof *tailing.birth);
        note_uses(&tailing);
        note_lives(&tailing);
    }
    tarn_region_release(region, mark);
    return region->is_exhausted ? TARN_SYSTEM : TARN_OK;
}
