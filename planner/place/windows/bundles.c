/* Bundles. Lone blocks that one stream, or a line of streams (lines.c), produces in the same period
 * (periods.c), and that each of these releases in the same one, are stacked: as far as periods can
 * tell, they have the same conflicts. Contiguous groups are not stacked. The bundles are placed as
 * a problem of their own (bundle_problem.h). Exact conflicts come back when each window is placed,
 * around the blocks of the others. Source: docs/how-it-works.md, "Windows".
 * Cost: O(blocks * streams), and a decode of the bundles for each key. */
#include "window.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "bundle_problem.h"
#include "planner/place/effort/effort.h"

/* A period may always move one part in PERIODS of the aim, with lines of streams one part in
 * LINE_PERIODS. */
enum { PERIODS = 256, LINE_PERIODS = 1024 };
/* A bundle has one part in BUNDLES_MIN of the aim at most, so that many are needed to fill it. */
enum { BUNDLES_MIN = 512 };
/* Decodes may take one part in EFFORT_SHARE of the effort. Where one takes more, 1 << COARSER_SHIFT
 * periods become one, up to 1 << SHIFT_MAX. Further keys follow the first one where that ends more
 * than one part in ENOUGH_SHARE above the aim. */
enum { EFFORT_SHARE = 6, COARSER_SHIFT = 2, SHIFT_MAX = 8, ENOUGH_SHARE = 1024 };
/* Numbers of keys (keys.h), in the order in which they are tried. */
static const uint32_t keys[] = {0, 2, 3, 1};
enum { KEYS_COUNT = sizeof keys / sizeof *keys };

/* ---- Stacking ---- */

static uint32_t period_of(const struct tarn_bundles *bundles, uint32_t i)
{
    return bundles->period[i] >> bundles->shift;
}

static bool find_sources(struct tarn_bundles *bundles, struct tarn_region *region)
{
    size_t streams_count = bundles->field->problem->conflicts.reuse.streams_count;
    struct tarn_source *source = tarn_region_take(region, streams_count, sizeof *source);
    bundles->sources = source;
    for (uint32_t i = 0; source && i < bundles->count; i = source++->end) {
        *source = (struct tarn_source){tarn_bundles_stream(bundles, i), i, i};
        while (source->end < bundles->count &&
               tarn_bundles_stream(bundles, source->end) == source->stream)
            source->end++;
        bundles->sources_count++;
    }
    return source != NULL;
}

/* Where two vectors of periods have the same number, bundles are only larger than they need be. */
static void number_releases(const struct tarn_bundles *bundles)
{
    for (uint32_t k = 0; k < bundles->sources_count; k++) {
        const struct tarn_source *source = &bundles->sources[k];
        for (uint32_t i = 0; i < bundles->count; i++) {
            uint32_t at = tarn_bundles_release(bundles, source, i);
            uint64_t period = at < source->end ? period_of(bundles, at) : UINT32_MAX;
            uint64_t mixed = (bundles->release[i] ^ period) * UINT64_C(0x9e3779b97f4a7c15);
            bundles->release[i] = mixed ^ mixed >> 29;
        }
    }
}

struct sorted {
    uint64_t release;
    uint32_t i;
};

static int compare(const void *left, const void *right)
{
    const struct sorted *a = left, *b = right;
    if (a->release != b->release) return a->release < b->release ? -1 : 1;
    return a->i < b->i ? -1 : a->i > b->i;
}

/* Blocks by stream, then period of production, as they are listed, then releases. */
static bool sort_blocks(struct tarn_bundles *bundles, struct tarn_region *region)
{
    struct tarn_region_mark mark = tarn_region_mark(region);
    struct sorted *run = tarn_region_take(region, bundles->count, sizeof *run);
    for (uint32_t i = 0, next; run && i < bundles->count; i = next) {
        uint32_t count = 0;
        for (next = i; next < bundles->count; next++) {
            if (period_of(bundles, next) != period_of(bundles, i) ||
                tarn_bundles_stream(bundles, next) != tarn_bundles_stream(bundles, i))
                break;
            if (tarn_bundles_block(bundles, next).members[0] == bundles->storages[next])
                run[count++] = (struct sorted){bundles->release[next], next};
        }
        if (count > 0) qsort(run, count, sizeof *run, compare);
        for (uint32_t n = 0; n < count; n++) bundles->order[bundles->blocks_count++] = run[n].i;
    }
    tarn_region_release(region, mark);
    return run != NULL;
}

static bool joins(const struct tarn_bundles *bundles, const struct tarn_bundle *bundle, uint32_t i)
{
    uint32_t other = bundles->order[bundle->begin];
    return tarn_bundles_stream(bundles, i) == tarn_bundles_stream(bundles, other) &&
           period_of(bundles, i) == period_of(bundles, other) &&
           bundles->release[i] == bundles->release[other] &&
           tarn_bundles_block(bundles, i).members_count == 1 &&
           tarn_bundles_block(bundles, other).members_count == 1;
}

/* Puts a block on top of the bundle, whose start is a multiple of every alignment in it; its offset
 * is that in the bundle. */
static void stack(const struct tarn_bundles *bundles, struct tarn_bundle *bundle, uint32_t i,
                  int32_t size, int32_t alignment)
{
    uint32_t b = bundles->field->block_of[bundles->storages[i]];
    assert(size >= 0 && alignment > 0 && bundle->size <= INT32_MAX - size - alignment);
    int32_t offset = (bundle->size + alignment - 1) & ~(alignment - 1);
    bundles->field->offset[b] = offset;
    bundle->size = offset + size;
    bundle->end++;
    if (alignment > bundle->alignment) bundle->alignment = alignment;
    if (bundles->field->floor[b] > bundle->floor) bundle->floor = bundles->field->floor[b];
}

static void stack_blocks(struct tarn_bundles *bundles)
{
    uint32_t shift = bundles->settings->unit_shift;
    uint64_t unit = (UINT64_C(1) << shift) - 1;
    int32_t size_max = bundles->settings->aim / BUNDLES_MIN;
    struct tarn_bundle *bundle = NULL;
    for (uint32_t n = 0; n < bundles->blocks_count; n++) {
        struct tarn_block block = tarn_bundles_block(bundles, bundles->order[n]);
        int32_t size = (int32_t)((block.size + unit) >> shift);
        int32_t alignment = (int32_t)((block.alignment + unit) >> shift);
        if (!bundle || size > size_max - bundle->size - alignment ||
            !joins(bundles, bundle, bundles->order[n])) {
            bundle = &bundles->list[bundles->list_count++];
            *bundle = (struct tarn_bundle){.begin = n, .end = n, .alignment = 1};
        }
        stack(bundles, bundle, bundles->order[n], size, alignment);
    }
}

/* ---- Placing ---- */

/* Adds the offsets of bundles to those that their blocks have in them. */
static void take_offsets(const struct tarn_bundles *bundles, const int32_t *start)
{
    for (uint32_t n = 0; n < bundles->list_count; n++)
        for (uint32_t i = bundles->list[n].begin; i < bundles->list[n].end; i++) {
            uint32_t a = bundles->storages[bundles->order[i]];
            bundles->field->offset[bundles->field->block_of[a]] += start[n];
        }
}

/* Ends the decodes of all keys. */
static uint64_t work_max(const struct tarn_bundles *bundles)
{
    struct tarn_effort *effort = bundles->settings->effort;
    uint64_t left = tarn_effort_left(effort), share = effort->max / EFFORT_SHARE;
    if (effort->max == UINT64_MAX) return UINT64_MAX;
    if (effort->must) return bundles->shift < SHIFT_MAX ? share : UINT64_MAX;
    return left < share ? left : share;
}

static void note_key(struct tarn_effort *effort, uint64_t work, uint32_t bundles_count)
{
    effort->key_work = work;
    effort->key_bundles = bundles_count;
}

/* Writes where bundles start, for the best of the keys. */
static bool decode_keys(const struct tarn_bundles *bundles, struct tarn_region *region,
                        const struct tarn_lowest *lowest, const struct tarn_traits *traits,
                        int32_t *start, int32_t *top)
{
    struct tarn_decoder decoder;
    int32_t *key = tarn_region_take(region, lowest->count, sizeof *key);
    int32_t *floor = tarn_region_take(region, lowest->count, sizeof *floor);
    int32_t aim = bundles->settings->aim;
    bool ok = tarn_decoder_init(&decoder, region, lowest) == TARN_OK &&
              tarn_decoder_narrow(&decoder, region) == TARN_OK && key && floor;
    decoder.deadline = bundles->settings->deadline;
    decoder.hurries = true;
    decoder.work_max = work_max(bundles);
    for (uint32_t place = 0; ok && place < lowest->count; place++)
        floor[place] = bundles->list[lowest->block[place]].floor;
    for (uint32_t n = 0; ok && n < KEYS_COUNT; n++) {
        ok = tarn_keys_fill(lowest, region, traits, keys[n], key) == TARN_OK;
        tarn_decoder_start(&decoder, floor);
        bool lower =
            ok && tarn_decoder_advance(&decoder, key, floor, (struct tarn_objective){0, 1, 0},
                                       *top - 1, lowest->count);
        if (lower) *top = decoder.top;
        if (n == 0 && lower) note_key(bundles->settings->effort, decoder.work, lowest->count);
        for (uint32_t place = 0; lower && place < lowest->count; place++)
            start[lowest->block[place]] = decoder.offset[place];
        if (*top == INT32_MAX || *top <= aim + aim / ENOUGH_SHARE) break;
        if (decoder.work / (n + 1) > tarn_work_less(decoder.work_max, decoder.work)) break;
    }
    tarn_effort_spend(bundles->settings->effort, decoder.work);
    bundles->settings->effort->crossing += decoder.work;
    return ok;
}

/* Places the bundles, and their blocks with them. */
static bool decode(const struct tarn_bundles *bundles, struct tarn_region *region,
                   const struct tarn_bundle_problem *problem, int32_t *top)
{
    struct tarn_obstacles none = {
        .reuse = &problem->problem.conflicts.reuse}; /* sizes are in units already */
    struct tarn_lowest lowest = {0};
    struct tarn_traits traits = {0};
    int32_t *start = tarn_region_take(region, bundles->list_count, sizeof *start);
    bool ok = start && tarn_obstacles_sort(&none, region) == TARN_OK &&
              tarn_lowest_init_around(&lowest, region, &problem->problem, &none) == TARN_OK &&
              tarn_traits_init(&traits, region, &lowest) == TARN_OK &&
              decode_keys(bundles, region, &lowest, &traits, start, top);
    if (ok && *top < INT32_MAX) take_offsets(bundles, start);
    return ok;
}

/* ---- The whole ---- */

static bool find_periods(struct tarn_bundles *bundles, struct tarn_region *region,
                         const uint32_t *storages, uint32_t count)
{
    const struct tarn_field *field = bundles->field;
    const struct tarn_windows_settings *settings = bundles->settings;
    struct tarn_region_mark mark = tarn_region_mark(region);
    uint64_t aim = (uint64_t)settings->aim << settings->unit_shift;
    const uint32_t *period_of =
        tarn_periods_find(region, field->problem, field->block_of, storages, count, aim,
                          bundles->lines.of ? LINE_PERIODS : PERIODS);
    if (!period_of) return false;
    for (uint32_t i = 0; i < bundles->count; i++)
        bundles->period[i] = period_of[tarn_problem_begin(field->problem, bundles->storages[i])];
    tarn_region_release(region, mark);
    return true;
}

static bool bundles_init(struct tarn_bundles *bundles, struct tarn_region *region,
                         const uint32_t *storages, uint32_t storages_count)
{
    const struct tarn_problem *problem = bundles->field->problem;
    size_t count = bundles->count;
    bundles->release = tarn_region_take(region, count, sizeof *bundles->release);
    bundles->order = tarn_region_take(region, count, sizeof *bundles->order);
    bundles->list = tarn_region_take(region, count, sizeof *bundles->list);
    bundles->period = tarn_region_take(region, count, sizeof *bundles->period);
    return !region->is_exhausted &&
           tarn_slot_set_init(&bundles->listed, region, &problem->conflicts, bundles->storages,
                              bundles->count) == TARN_OK &&
           tarn_lines_find(bundles, region) && find_sources(bundles, region) &&
           find_periods(bundles, region, storages, storages_count);
}

/* Stacks and places with the present shift. The region is as before in the end. */
static bool place(struct tarn_bundles *bundles, struct tarn_region *region, int32_t *top)
{
    struct tarn_region_mark mark = tarn_region_mark(region);
    struct tarn_bundle_problem problem;
    memset(bundles->release, 0, bundles->count * sizeof *bundles->release);
    bundles->blocks_count = bundles->list_count = 0;
    number_releases(bundles);
    if (!sort_blocks(bundles, region)) return false;
    stack_blocks(bundles);
    if (tarn_bundle_problem_init(&problem, region, bundles) != TARN_OK) return false;
    bool ok = decode(bundles, region, &problem, top);
    tarn_region_release(region, mark);
    return ok;
}

bool tarn_bundles_place(const struct tarn_field *field,
                        const struct tarn_windows_settings *settings, const struct tarn_cuts *cuts,
                        const uint32_t *storages, uint32_t count, int32_t *top)
{
    uint32_t begin = cuts->begin[cuts->count], end = cuts->begin[cuts->count + 1];
    struct tarn_bundles bundles = {.field = field,
                                   .settings = settings,
                                   .storages = cuts->storages + begin,
                                   .count = end - begin};
    struct tarn_region region = {.chunks = NULL};
    bool ok = bundles_init(&bundles, &region, storages, count);
    *top = INT32_MAX;
    for (; ok && *top == INT32_MAX && bundles.shift <= SHIFT_MAX; bundles.shift += COARSER_SHIFT) {
        if (settings->deadline && tarn_deadline_is_over(settings->deadline)) break;
        if (!settings->effort->must && bundles.shift > 0) break;
        ok = place(&bundles, &region, top);
    }
    tarn_region_finish(&region);
    return ok;
}
