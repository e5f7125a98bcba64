/* What no policy can do without. At the place of an op all of this is in the arena at once: what
 * the op reads and writes in its leanest form, its least workspace, and every storage with a
 * version that cannot be computed again, has been written, and is read later in whatever form. A
 * version that is written in place counts as the storage of the one before it, so nothing is
 * counted twice. Cost: linear in the reads of all forms. */
#include <string.h>

#include "recompute.h"

struct flooring {
    const struct tarn_recompute_model *model;
    uint32_t *last;   /* version -> last place at which it must be there, or TARN_NONE */
    int64_t *change;  /* place -> bytes that must be there from it on */
    uint32_t *marked; /* storage -> stamp: in which it was counted last; one stamp a form */
    uint32_t stamp;
};

/* Is the version read by each form of the op? */
static bool is_needed(const struct tarn_recompute_model *model, struct tarn_range forms,
                      uint32_t version)
{
    for (uint32_t f = forms.begin; f < forms.end; f++) {
        const struct tarn_form *form = &model->forms[f];
        uint32_t i = form->reads.begin;
        if (!form->whole && !form->splits) continue;
        while (i < form->reads.end && model->reads[i] != version) i++;
        if (i == form->reads.end) return false;
    }
    return true;
}

static void find_needs(struct flooring *flooring)
{
    const struct tarn_recompute_model *model = flooring->model;
    memset(flooring->last, 0xff, model->versions_count * sizeof *flooring->last);
    for (uint32_t place = 0; place < model->ops_count; place++) {
        struct tarn_range forms = model->op_forms[model->order[place]];
        const struct tarn_form *own = &model->forms[forms.begin];
        for (uint32_t i = own->reads.begin; i < own->reads.end; i++) {
            uint32_t version = model->reads[i];
            if (!model->versions[version].droppable && is_needed(model, forms, version))
                flooring->last[version] = place;
        }
        for (uint32_t i = own->writes.begin; i < own->writes.end; i++) {
            const struct tarn_version *version = &model->versions[model->writes[i]];
            bool pinned = model->graph->storages[version->storage].pinned;
            if (pinned) flooring->last[model->writes[i]] = model->ops_count - 1;
        }
    }
}

/* Bytes that stand from the place behind a version's writer to the one before its last reader. */
static void note_standing(struct flooring *flooring, const uint32_t *place_of)
{
    const struct tarn_recompute_model *model = flooring->model;
    for (uint32_t w = 0; w < model->versions_count; w++) {
        const struct tarn_version *version = &model->versions[w];
        uint32_t birth = place_of[version->producer];
        if (flooring->last[w] == TARN_NONE || flooring->last[w] <= birth + 1) continue;
        flooring->change[birth + 1] += (int64_t)version->size;
        flooring->change[flooring->last[w]] -= (int64_t)version->size;
    }
}

static uint64_t add_once(struct flooring *flooring, uint32_t version, uint32_t place,
                         const uint32_t *place_of)
{
    const struct tarn_version *read = &flooring->model->versions[version];
    bool standing = flooring->last[version] != TARN_NONE && place_of[read->producer] < place &&
                    place < flooring->last[version];
    if (standing || flooring->marked[read->storage] == flooring->stamp) return 0;
    flooring->marked[read->storage] = flooring->stamp;
    return read->size;
}

/* What an op takes beside what stands. */
static uint64_t least_of(struct flooring *flooring, uint32_t place, const uint32_t *place_of)
{
    const struct tarn_recompute_model *model = flooring->model;
    struct tarn_range forms = model->op_forms[model->order[place]];
    uint64_t least = UINT64_MAX;
    for (uint32_t f = forms.begin; f < forms.end; f++) {
        const struct tarn_form *form = &model->forms[f];
        if (!form->whole && !form->splits) continue;
        uint64_t bytes = model->choices[form->choices.end - 1].workspace;
        flooring->stamp++;
        for (uint32_t i = form->reads.begin; i < form->reads.end; i++)
            bytes += add_once(flooring, model->reads[i], place, place_of);
        for (uint32_t i = form->writes.begin; i < form->writes.end; i++)
            bytes += add_once(flooring, model->writes[i], place, place_of);
        if (bytes < least) least = bytes;
    }
    return least;
}

static uint64_t highest(struct flooring *flooring, const uint32_t *place_of, uint32_t *at)
{
    uint64_t floor = 0;
    int64_t standing = 0;
    for (uint32_t place = 0; place < flooring->model->ops_count; place++) {
        standing += flooring->change[place];
        uint64_t bytes = (uint64_t)standing + least_of(flooring, place, place_of);
        if (bytes <= floor) continue;
        floor = bytes;
        *at = place;
    }
    return floor;
}

enum tarn_status tarn_recompute_floor(const struct tarn_recompute_model *model, uint64_t *floor,
                                      uint32_t *place)
{
    struct tarn_region region = {.chunks = NULL};
    uint32_t *place_of = tarn_region_take(&region, model->graph->ops_count, sizeof *place_of);
    struct flooring flooring = {
        .model = model,
        .last = tarn_region_take(&region, model->versions_count, sizeof *flooring.last),
        .change = tarn_region_take(&region, (size_t)model->ops_count + 2, sizeof *flooring.change),
        .marked = tarn_region_take(&region, model->graph->storages_count, sizeof *flooring.marked),
    };
    bool enough = !region.is_exhausted;
    *floor = 0;
    *place = 0;
    if (enough) {
        for (uint32_t i = 0; i < model->ops_count; i++) place_of[model->order[i]] = i;
        find_needs(&flooring);
        note_standing(&flooring, place_of);
        *floor = highest(&flooring, place_of, place);
    }
    tarn_region_finish(&region);
    return enough ? TARN_OK : TARN_SYSTEM;
}
