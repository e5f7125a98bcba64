/* Lists where ops that communicate may run again before they are asked for.
 *
 * Ops of a stream run in the order in which they are listed. A second gather that is listed
 * directly before its reader runs after all that its stream communicates before that, and the
 * reader waits for it. A policy may let it run before the last communicating ops of its stream
 * instead, up to TARN_LAUNCHES_MAX of them. For each number of these ops there is one place:
 * directly after the communicating op before them, since nothing holds the repetition back from
 * then on. Source: prefetching in sharded training (Y. Zhao et al., "PyTorch FSDP", 2023). Cost:
 * linear in the reads, and TARN_LAUNCHES_MAX for each version that an op of the list communicates.
 */
#include <string.h>

#include "forms.h"

/* The last communicating ops of one stream, the latest first. */
struct recent {
    uint32_t places[TARN_LAUNCHES_MAX + 1];
    uint32_t count;
};

struct listing {
    struct tarn_recompute_model *model;
    struct recent *recent; /* by stream */
    uint32_t *begin;       /* place -> number of launches there, then their start in the list */
    bool *found;           /* version: its first reader after it is dropped is known */
};

static bool is_launched(const struct tarn_recompute_model *model, uint32_t version)
{
    const struct tarn_version *made = &model->versions[version];
    return made->droppable && model->forms[model->op_forms[made->producer].begin].communicates;
}

static const struct recent *recent_of(const struct listing *listing, uint32_t version)
{
    const struct tarn_recompute_model *model = listing->model;
    return &listing->recent[model->graph->ops[model->versions[version].producer].stream];
}

static void note_place(struct listing *listing, uint32_t place)
{
    uint32_t v = listing->model->order[place];
    struct recent *recent = &listing->recent[listing->model->graph->ops[v].stream];
    if (!listing->model->forms[listing->model->op_forms[v].begin].communicates) return;
    memmove(recent->places + 1, recent->places, TARN_LAUNCHES_MAX * sizeof *recent->places);
    recent->places[0] = place;
    if (recent->count <= TARN_LAUNCHES_MAX) recent->count++;
}

/* Called at the first reader after a version is dropped. */
static void find_launches(const struct listing *listing, uint32_t version)
{
    struct tarn_version *made = &listing->model->versions[version];
    const struct recent *recent = recent_of(listing, version);
    for (uint32_t ahead = 1; ahead < recent->count; ahead++) {
        uint32_t place = recent->places[ahead] + 1;
        if (place <= made->dropped_at) return;
        made->launches[made->launches_count++] = place;
        listing->begin[place]++;
    }
}

static void find_all(struct listing *listing)
{
    const struct tarn_recompute_model *model = listing->model;
    for (uint32_t place = 0; place < model->ops_count; place++) {
        const struct tarn_form *own = &model->forms[model->op_forms[model->order[place]].begin];
        for (uint32_t i = own->reads.begin; i < own->reads.end; i++) {
            uint32_t w = model->reads[i];
            if (listing->found[w] || place < model->versions[w].dropped_at ||
                !is_launched(model, w))
                continue;
            listing->found[w] = true;
            find_launches(listing, w);
        }
        note_place(listing, place);
    }
}

/* By place, and at one place by version. */
static bool write_list(const struct listing *listing, struct tarn_region *region)
{
    struct tarn_recompute_model *model = listing->model;
    uint32_t count = 0;
    for (uint32_t place = 0; place < model->ops_count; place++) {
        uint32_t here = listing->begin[place];
        listing->begin[place] = count;
        count += here;
    }
    model->launches_count = count;
    model->launches = tarn_region_take(region, count, sizeof *model->launches);
    for (uint32_t w = 0; model->launches && w < model->versions_count; w++) {
        const struct tarn_version *version = &model->versions[w];
        for (uint32_t i = 0; i < version->launches_count; i++)
            model->launches[listing->begin[version->launches[i]]++] =
                (struct tarn_recompute_launch){version->launches[i], w, i + 1};
    }
    return model->launches;
}

enum tarn_status tarn_model_list_launches(struct tarn_recompute_model *model,
                                          struct tarn_region *region)
{
    size_t streams = model->graph->streams_count, places = (size_t)model->ops_count + 1;
    if (streams < 2) return TARN_OK;
    struct listing listing = {
        .model = model,
        .recent = tarn_region_take(region, streams, sizeof *listing.recent),
        .begin = tarn_region_take(region, places, sizeof *listing.begin),
        .found = tarn_region_take(region, model->versions_count, sizeof *listing.found)};
    if (region->is_exhausted) return TARN_SYSTEM;
    find_all(&listing);
    return write_list(&listing, region) ? TARN_OK : TARN_SYSTEM;
}
