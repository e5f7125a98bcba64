/* Runs the whole placement by windows. Streams whose storages other streams hardly ever release go
 * first (split.c), each by itself. For every other storage, the height that such a stream has
 * placed up to the storage's release is a floor. window.c places such a part. Source:
 * docs/how-it-works.md, "Windows". Cost: O(T S phases), and the parts' cost. */
#include "windows.h"

#include <assert.h>
#include <string.h>

#include "streams/base/checked.h"
#include "window.h"

enum { FAR_WINDOWS = 16, FAR_SHARE = 8, CROSSING_MAX = 32768 }; /* unless options say otherwise */
/* Places of a window by promotion, at most. */
enum { PROMOTIONS = 32 };

/* ---- Phases ---- */

/* The storages by phase, see split.c. */
struct phases {
    const struct tarn_windows_settings *settings;
    const struct tarn_field *field;
    struct tarn_region *region;
    uint32_t *phase; /* stream -> phase */
    uint32_t count;
    uint32_t *storages; /* phase by phase, each in the order of slots */
    uint32_t *begin;    /* phase -> start of its storages; count + 1 */
    uint32_t last;      /* phase that has storages */
};

/* A block has the last phase of its members' streams. */
static void find_phases(const struct phases *phases, uint32_t *phase_of)
{
    const struct tarn_blocks *blocks = &phases->field->problem->blocks;
    const uint32_t *stream = phases->field->problem->conflicts.reuse.stream;
    for (uint32_t b = 0; b < blocks->count; b++) {
        struct tarn_block block = tarn_block_at(blocks, b);
        phase_of[b] = 0;
        for (uint32_t i = 0; i < block.members_count; i++)
            if (phases->phase[stream[block.members[i]]] > phase_of[b])
                phase_of[b] = phases->phase[stream[block.members[i]]];
    }
}

/* Counting sort; begin[n] is moved along, and back at the end. */
static void fill_storages(struct phases *phases, const uint32_t *phase_of, uint32_t *storage_at)
{
    const struct tarn_conflicts *conflicts = &phases->field->problem->conflicts;
    const uint32_t *block_of = phases->field->block_of;
    uint32_t count = conflicts->reuse.count;
    for (uint32_t a = 0; a < count; a++) {
        storage_at[conflicts->slot_of[a]] = a;
        phases->begin[phase_of[block_of[a]] + 1]++;
    }
    for (uint32_t n = 0; n < phases->count; n++) phases->begin[n + 1] += phases->begin[n];
    for (uint32_t slot = 0; slot < count; slot++) {
        uint32_t a = storage_at[slot];
        phases->storages[phases->begin[phase_of[block_of[a]]]++] = a;
    }
    for (uint32_t n = phases->count; n > 0; n--) phases->begin[n] = phases->begin[n - 1];
    phases->begin[0] = 0;
    for (uint32_t n = 0; n < phases->count; n++)
        if (phases->begin[n] < phases->begin[n + 1]) phases->last = n;
    assert(phases->begin[phases->count] == count);
}

static bool sort_storages(struct phases *phases)
{
    const struct tarn_blocks *blocks = &phases->field->problem->blocks;
    struct tarn_region *region = phases->region;
    size_t count = blocks->storages_count;
    phases->begin = tarn_region_take(region, (size_t)phases->count + 1, sizeof *phases->begin);
    phases->storages = tarn_region_take(region, count, sizeof *phases->storages);
    struct tarn_region_mark mark = tarn_region_mark(region);
    uint32_t *phase_of = tarn_region_take(region, blocks->count, sizeof *phase_of);
    uint32_t *storage_at = tarn_region_take(region, count, sizeof *storage_at);
    if (region->is_exhausted) return false;
    find_phases(phases, phase_of);
    fill_storages(phases, phase_of, storage_at);
    tarn_region_release(region, mark);
    return true;
}

/* Writes, by position, how high the storages of stream s that phase n has placed reach, counting
 * storages produced before the position. */
static void measure_reach(const struct phases *phases, uint32_t n, uint32_t s, int32_t *reach)
{
    const struct tarn_field *field = phases->field;
    const struct tarn_reuse *reuse = &field->problem->conflicts.reuse;
    uint32_t length = reuse->length[s];
    memset(reach, 0, ((size_t)length + 1) * sizeof *reach);
    for (uint32_t i = phases->begin[n]; i < phases->begin[n + 1]; i++) {
        uint32_t a = phases->storages[i];
        if (reuse->stream[a] != s) continue;
        int32_t end = tarn_field_span(field, phases->settings->unit_shift, a).end;
        if (end > reach[reuse->position[a] + 1]) reach[reuse->position[a] + 1] = end;
    }
    for (uint32_t p = 0; p < length; p++)
        if (reach[p] > reach[p + 1]) reach[p + 1] = reach[p];
}

/* Raises the floor of every block above all storages that these streams produce before they see the
 * block released. */
static bool raise_floors(const struct phases *phases, uint32_t n)
{
    assert(n + 1 < phases->count); /* nothing comes after the last phase */
    const struct tarn_field *field = phases->field;
    const struct tarn_reuse *reuse = &field->problem->conflicts.reuse;
    struct tarn_region_mark mark = tarn_region_mark(phases->region);
    int32_t *reach =
        tarn_region_take(phases->region, (size_t)tarn_reuse_longest(reuse) + 1, sizeof *reach);
    for (uint32_t s = 0; reach && s < reuse->streams_count; s++) {
        if (phases->phase[s] > n) continue;
        measure_reach(phases, n, s, reach);
        for (uint32_t a = 0; a < reuse->count; a++) {
            int32_t *floor = &field->floor[field->block_of[a]];
            int32_t end = reach[reuse->first[(size_t)s * reuse->count + a]];
            if (end > *floor) *floor = end;
        }
    }
    tarn_region_release(phases->region, mark);
    return reach != NULL;
}

/* If phases lie on top of each other, bytes lost in one phase are lost in the plan: windows are
 * worth more work, except for the very first plan. A single stream has targets if another phase
 * comes on top of it. If it comes last it is as high as its highest target at least: a lower aim
 * would be in vain. */
static bool find_targets(const struct phases *phases, uint32_t n,
                         struct tarn_windows_settings *settings)
{
    uint32_t begin = phases->begin[n], count = phases->begin[n + 1] - begin;
    uint32_t ops_count = phases->field->problem->ops_count;
    const uint32_t *storages = phases->storages + begin;
    const uint32_t *stream = phases->field->problem->conflicts.reuse.stream;
    if (phases->count == 1 || settings->effort->must) return true;
    settings->promotions = PROMOTIONS;
    if (stream[storages[0]] != stream[storages[count - 1]]) return true;
    settings->target =
        tarn_targets_find(phases->region, phases->field, settings->unit_shift, storages, count);
    if (!settings->target) return false;
    if (n + 1 == phases->count) {
        if (settings->target[ops_count - 1] > settings->aim)
            settings->aim = settings->target[ops_count - 1];
        settings->target = NULL;
    }
    return true;
}

static bool place_phase(const struct phases *phases, uint32_t n, int32_t *top)
{
    struct tarn_windows_settings settings = *phases->settings;
    struct tarn_region_mark mark = tarn_region_mark(phases->region);
    uint32_t begin = phases->begin[n], count = phases->begin[n + 1] - begin;
    if (n < phases->last || !settings.effort->must) settings.placed = NULL;
    bool ok = find_targets(phases, n, &settings) &&
              tarn_window_place(&settings, phases->field, phases->storages + begin, count, top);
    tarn_region_release(phases->region, mark);
    return ok;
}

static bool place_phases(const struct phases *phases, int32_t *top)
{
    bool ok = true;
    *top = 0;
    for (uint32_t n = 0; ok && n < phases->count && *top < INT32_MAX; n++) {
        int32_t own_top = INT32_MAX;
        if (phases->begin[n] == phases->begin[n + 1]) continue;
        ok = place_phase(phases, n, &own_top);
        if (own_top > *top) *top = own_top;
        if (ok && n + 1 < phases->count && own_top < INT32_MAX) ok = raise_floors(phases, n);
    }
    return ok;
}

/* Does nothing if streams are to be together and would not be apart anyway. */
static bool place_streams(const struct tarn_windows_settings *settings,
                          const struct tarn_field *field, struct tarn_region *region, bool together,
                          int32_t *top)
{
    const struct tarn_problem *problem = field->problem;
    size_t streams_count = problem->conflicts.reuse.streams_count;
    struct phases phases = {.settings = settings, .field = field, .region = region};
    phases.phase = tarn_region_take(region, streams_count, sizeof *phases.phase);
    if (!phases.phase || tarn_split_streams(problem, settings->far, phases.phase, &phases.count))
        return false;
    if (together && phases.count <= 1) return true;
    if (together) {
        memset(phases.phase, 0, streams_count * sizeof *phases.phase);
        phases.count = 1;
    }
    return sort_storages(&phases) && place_phases(&phases, top);
}

/* ---- The whole ---- */

static struct tarn_windows_settings settings_of(const struct tarn_problem *problem,
                                                const struct tarn_windows_options *options)
{
    uint64_t most;
    uint32_t far_windows = options->far_windows ? options->far_windows : FAR_WINDOWS;
    struct tarn_windows_settings settings = {
        .width = options->width,
        .far = far_windows * options->width,
        .crossing_max = options->crossing_max ? options->crossing_max : CROSSING_MAX,
        .threads = options->threads,
        .effort = options->effort,
        .deadline = options->deadline};
    if (settings.far > problem->blocks.storages_count / FAR_SHARE && !options->far_windows)
        settings.far = problem->blocks.storages_count / FAR_SHARE;
    if (!tarn_size_multiply(options->aim, 4, &most)) most = UINT64_MAX;
    settings.unit_shift = tarn_lowest_unit_shift(&problem->blocks, most);
    uint64_t aim = options->aim >> settings.unit_shift;
    settings.aim = (int32_t)(aim < TARN_UNITS_MAX ? aim : TARN_UNITS_MAX);
    return settings;
}

static uint64_t footprint_of(const struct tarn_windows_settings *settings,
                             const struct tarn_field *field)
{
    const struct tarn_blocks *blocks = &field->problem->blocks;
    uint64_t footprint = 0;
    for (uint32_t b = 0; b < blocks->count; b++) {
        uint64_t start = (uint64_t)field->offset[b] << settings->unit_shift;
        if (start + tarn_block_at(blocks, b).size > footprint)
            footprint = start + tarn_block_at(blocks, b).size;
    }
    return footprint;
}

static void write_offsets(const struct tarn_windows_settings *settings,
                          const struct tarn_field *field, uint64_t *offset)
{
    const struct tarn_blocks *blocks = &field->problem->blocks;
    for (uint32_t a = 0; a < blocks->storages_count; a++) {
        uint64_t start = (uint64_t)field->offset[field->block_of[a]] << settings->unit_shift;
        offset[a] = start + blocks->within[a];
    }
}

/* A placement by windows, and the caller's plan. */
struct placement {
    const struct tarn_windows_options *options;
    struct tarn_windows_settings settings;
    struct tarn_field field;
    uint64_t *offset, *footprint;
};

/* All storages have an offset: they become the caller's plan if it is better. */
static void take_plan(void *user)
{
    struct placement *placement = user;
    const struct tarn_windows_options *options = placement->options;
    uint64_t found = footprint_of(&placement->settings, &placement->field);
    placement->settings.effort->must = false;
    if (found < *placement->footprint) {
        *placement->footprint = found;
        write_offsets(&placement->settings, &placement->field, placement->offset);
    }
    if (options->progress) options->progress(options->user, *placement->footprint, 0);
}

enum tarn_status tarn_windows_place(const struct tarn_problem *problem,
                                    const struct tarn_windows_options *options, uint64_t *offset,
                                    uint64_t *footprint)
{
    assert(options->width > 0);
    struct placement placement = {.options = options,
                                  .settings = settings_of(problem, options),
                                  .offset = offset,
                                  .footprint = footprint};
    struct tarn_effort no_limit = {.max = UINT64_MAX};
    struct tarn_region region = {.chunks = NULL};
    if (!placement.settings.effort) placement.settings.effort = &no_limit;
    placement.settings.placed = take_plan;
    placement.settings.user = &placement;
    int32_t top = INT32_MAX;
    bool ok =
        tarn_field_init(&placement.field, &region, problem) &&
        place_streams(&placement.settings, &placement.field, &region, options->together, &top);
    if (ok && top < INT32_MAX) take_plan(&placement);
    tarn_region_finish(&region);
    return ok ? TARN_OK : TARN_SYSTEM;
}
