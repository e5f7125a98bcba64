/* Computes the floor: bytes that no policy can do without. At the place of an op the following
 * bytes are in the arena at once: its reads and writes in its leanest form, its smallest workspace,
 * and every storage with a version that cannot be recomputed, has been written, and is read later
 * in any form. A version that is written in place counts as the storage of the version before it,
 * so no byte is counted twice. Extra waits may change the list, but not the order within a stream.
 * So for every list a version is in use if ops of the stream use it both before and after the op.
 * If any other order may follow, only the bytes of the op itself are certain. Storages whose first
 * writers want different arms of a conditional may share bytes: what some arm alone makes counts
 * only at ops of that arm, and elsewhere the largest of these that an op reads. Cost: linear in the
 * reads of all forms, and versions × streams. */
#include <assert.h>
#include <string.h>

#include "recompute.h"
#include "streams/base/checked.h"

struct flooring {
    const struct tarn_recompute_model *model;
    bool cuts;       /* whatever may be computed again may be dropped */
    uint32_t stream; /* the stream whose ops are looked at; TARN_NONE: all ops, in list order */
    bool *replaced; /* version -> a later one takes its storage, so that it is not the pinned one */
    uint32_t *first;  /* version -> first place at which it is there, or TARN_NONE: not known */
    uint32_t *last;   /* version -> last place at which it must be there, or TARN_NONE */
    int64_t *change;  /* place -> change of the bytes that must be there */
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

static bool is_looked_at(const struct flooring *flooring, uint32_t place)
{
    const struct tarn_recompute_model *model = flooring->model;
    return flooring->stream == TARN_NONE ||
           model->graph->ops[model->order[place]].stream == flooring->stream;
}

static bool may_go(const struct flooring *flooring, uint32_t version)
{
    const struct tarn_version *read = &flooring->model->versions[version];
    return flooring->cuts ? read->repeatable : read->droppable;
}

static void note_first(struct flooring *flooring, uint32_t version, uint32_t place)
{
    if (flooring->first[version] == TARN_NONE) flooring->first[version] = place;
}

static void find_needs(struct flooring *flooring)
{
    const struct tarn_recompute_model *model = flooring->model;
    memset(flooring->first, 0xff, model->versions_count * sizeof *flooring->first);
    memset(flooring->last, 0xff, model->versions_count * sizeof *flooring->last);
    for (uint32_t place = 0; place < model->ops_count; place++) {
        struct tarn_range forms = model->op_forms[model->order[place]];
        const struct tarn_form *own = &model->forms[forms.begin];
        if (!is_looked_at(flooring, place)) continue;
        for (uint32_t i = own->reads.begin; i < own->reads.end; i++) {
            uint32_t version = model->reads[i];
            if (may_go(flooring, version) || !is_needed(model, forms, version) ||
                tarn_storage_is_conditional(model->graph, model->versions[version].storage))
                continue;
            note_first(flooring, version, place);
            flooring->last[version] = place;
        }
        for (uint32_t i = own->writes.begin; i < own->writes.end; i++) {
            const struct tarn_version *version = &model->versions[model->writes[i]];
            bool pinned = model->graph->storages[version->storage].pinned;
            if (tarn_storage_is_conditional(model->graph, version->storage)) continue;
            note_first(flooring, model->writes[i], place);
            if (pinned && !flooring->replaced[model->writes[i]])
                flooring->last[model->writes[i]] = model->ops_count - 1;
        }
    }
}

static void forget_needs(struct flooring *flooring)
{
    memset(flooring->last, 0xff, flooring->model->versions_count * sizeof *flooring->last);
}

/* Notes bytes that stand from the place after a version's first place to the place before its
 * last. */
static void note_standing(struct flooring *flooring)
{
    const struct tarn_recompute_model *model = flooring->model;
    memset(flooring->change, 0, ((size_t)model->ops_count + 2) * sizeof *flooring->change);
    for (uint32_t w = 0; w < model->versions_count; w++) {
        uint32_t first = flooring->first[w], last = flooring->last[w];
        if (first == TARN_NONE || last == TARN_NONE || last <= first + 1) continue;
        assert(!tarn_storage_is_conditional(model->graph, model->versions[w].storage));
        flooring->change[first + 1] += (int64_t)model->versions[w].size;
        flooring->change[last] -= (int64_t)model->versions[w].size;
    }
}

/* What one form of an op takes beside the standing bytes. */
struct use {
    uint32_t place;
    uint64_t bytes; /* certainly */
    uint64_t other; /* the largest of what only some arm makes in which the op is not */
};

static void add_once(struct flooring *flooring, uint32_t version, struct use *use)
{
    const struct tarn_recompute_model *model = flooring->model;
    const struct tarn_version *used = &model->versions[version];
    uint32_t op = model->order[use->place], first = flooring->first[version],
             last = flooring->last[version];
    uint32_t producer = model->graph->storages[used->storage].producer;
    bool standing =
        first != TARN_NONE && last != TARN_NONE && first < use->place && use->place < last;
    if (standing || flooring->marked[used->storage] == flooring->stamp) return;
    flooring->marked[used->storage] = flooring->stamp;
    if (tarn_op_is_inside(model->graph, op, producer))
        use->bytes += used->size;
    else if (!tarn_ops_exclude(model->graph, op, producer))
        use->other = tarn_larger(use->other, used->size);
}

/* The bytes that an op takes beside the standing bytes. */
static uint64_t least_of(struct flooring *flooring, uint32_t place)
{
    const struct tarn_recompute_model *model = flooring->model;
    struct tarn_range forms = model->op_forms[model->order[place]];
    uint64_t least = UINT64_MAX;
    for (uint32_t f = forms.begin; f < forms.end; f++) {
        const struct tarn_form *form = &model->forms[f];
        if (!form->whole && !form->splits) continue;
        struct use use = {place, model->choices[form->choices.end - 1].workspace, 0};
        flooring->stamp++;
        for (uint32_t i = form->reads.begin; i < form->reads.end; i++)
            add_once(flooring, model->reads[i], &use);
        for (uint32_t i = form->writes.begin; i < form->writes.end; i++)
            add_once(flooring, model->writes[i], &use);
        if (use.bytes + use.other < least) least = use.bytes + use.other;
    }
    return least;
}

/* Raises the floor to the bytes that the ops need at once. alone: each op for itself. */
static void raise_floor(struct flooring *flooring, bool alone, uint64_t *floor, uint32_t *at)
{
    int64_t standing = 0;
    find_needs(flooring);
    if (alone) forget_needs(flooring);
    note_standing(flooring);
    for (uint32_t place = 0; place < flooring->model->ops_count; place++) {
        standing += flooring->change[place];
        if (!is_looked_at(flooring, place)) continue;
        uint64_t bytes = (uint64_t)standing + least_of(flooring, place);
        if (bytes <= *floor) continue;
        *floor = bytes;
        *at = place;
    }
}

enum tarn_status tarn_recompute_floor(const struct tarn_recompute_model *model,
                                      enum tarn_recompute_list list, uint64_t *floor,
                                      uint32_t *place)
{
    struct tarn_region region = {.chunks = NULL};
    uint32_t streams = list == TARN_LIST_OF_STREAMS ? model->graph->streams_count : 1;
    struct flooring flooring = {
        .model = model,
        .cuts = list != TARN_LIST_STAYS,
        .replaced = tarn_region_take(&region, model->versions_count, sizeof *flooring.replaced),
        .first = tarn_region_take(&region, model->versions_count, sizeof *flooring.first),
        .last = tarn_region_take(&region, model->versions_count, sizeof *flooring.last),
        .change = tarn_region_take(&region, (size_t)model->ops_count + 2, sizeof *flooring.change),
        .marked = tarn_region_take(&region, model->graph->storages_count, sizeof *flooring.marked),
    };
    bool enough = !region.is_exhausted;
    *floor = 0;
    *place = 0;
    for (uint32_t w = 0; w < model->versions_count && enough; w++) {
        if (model->versions[w].previous != TARN_NONE)
            flooring.replaced[model->versions[w].previous] = true;
    }
    for (uint32_t stream = 0; stream < streams && enough; stream++) {
        flooring.stream = list == TARN_LIST_OF_STREAMS ? stream : TARN_NONE;
        raise_floor(&flooring, list == TARN_LIST_ANY, floor, place);
    }
    tarn_region_finish(&region);
    return enough ? TARN_OK : TARN_SYSTEM;
}
