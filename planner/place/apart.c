/* Streams apart. Where streams seldom wait for each other, nearly all that one of them produces is
 * in conflict with what others produce meanwhile, and a plan of everything mixes what had better
 * lie together. In a band of its own each stream is a problem of intervals, smaller by far, which
 * search solves well; what is lost is that streams need their most bytes at different times. How
 * high a band is at least, the most bytes that live in its stream at once, is known before: so
 * bands are placed only where they can be lower than the present plan, and as long as they can.
 * Streams with members of one contiguous group share a band.
 * Source: docs/how-it-works.md, "Placement". Cost: O(T), and the searches. */
#include "apart.h"

#include <assert.h>

#include "core.h"
#include "improve.h"
#include "planner/place/effort/effort.h"
#include "streams/base/checked.h"

struct band {
    uint32_t *storages; /* in the order of slots */
    uint32_t count;
    uint64_t least;  /* bytes: it is as high at least */
    uint64_t height; /* bytes, once it is placed */
    uint64_t begin;  /* its lowest byte, a multiple of its alignment */
    uint64_t alignment;
    struct tarn_part part;
    uint64_t *offset; /* by storage of the part */
};

struct apart {
    const struct tarn_problem *problem;
    const struct tarn_apart_options *options;
    struct tarn_region *region;
    uint32_t *band_of; /* stream -> band */
    struct band *bands;
    uint32_t bands_count;
    uint64_t work_left;
};

/* ---- Which streams share a band ---- */

static uint32_t find_root(uint32_t *parent, uint32_t s)
{
    while (parent[s] != s) s = parent[s] = parent[parent[s]];
    return s;
}

static void join_groups(const struct apart *apart, uint32_t *parent)
{
    const struct tarn_blocks *blocks = &apart->problem->blocks;
    const uint32_t *stream = apart->problem->conflicts.reuse.stream;
    for (uint32_t b = 0; b < blocks->count; b++) {
        struct tarn_block block = tarn_block_at(blocks, b);
        for (uint32_t m = 1; m < block.members_count; m++)
            parent[find_root(parent, stream[block.members[m]])] =
                find_root(parent, stream[block.members[0]]);
    }
}

static bool find_bands(struct apart *apart)
{
    uint32_t streams_count = apart->problem->conflicts.reuse.streams_count;
    struct tarn_region *region = apart->region;
    apart->band_of = tarn_region_take(region, streams_count, sizeof *apart->band_of);
    apart->bands = tarn_region_take(region, streams_count, sizeof *apart->bands);
    uint32_t *parent = tarn_region_take(region, streams_count, sizeof *parent);
    if (region->is_exhausted) return false;
    for (uint32_t s = 0; s < streams_count; s++) parent[s] = s;
    join_groups(apart, parent);
    for (uint32_t s = 0; s < streams_count; s++)
        if (find_root(parent, s) == s) apart->band_of[s] = apart->bands_count++;
    for (uint32_t s = 0; s < streams_count; s++)
        apart->band_of[s] = apart->band_of[find_root(parent, s)];
    return true;
}

/* ---- What a band has at least ---- */

/* The most bytes of a stream's storages that live at once. */
static uint64_t find_peak(const struct apart *apart, const uint32_t *storages, uint32_t count,
                          uint32_t s, int64_t *change)
{
    const struct tarn_reuse *reuse = &apart->problem->conflicts.reuse;
    const uint64_t *reserved = apart->problem->blocks.reserved;
    uint64_t alive = 0, peak = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t a = storages[i];
        change[reuse->position[a]] += (int64_t)reserved[a];
        change[reuse->first[(size_t)s * reuse->count + a]] -= (int64_t)reserved[a];
    }
    for (uint32_t p = 0; p <= reuse->length[s]; p++) {
        alive += (uint64_t)change[p];
        if (alive > peak) peak = alive;
        change[p] = 0;
    }
    return peak;
}

/* Gives every band its storages and its least height. */
static bool fill_bands(struct apart *apart)
{
    const struct tarn_conflicts *conflicts = &apart->problem->conflicts;
    const struct tarn_reuse *reuse = &conflicts->reuse;
    struct tarn_region *region = apart->region;
    size_t longest = tarn_reuse_longest(reuse), bands_count = apart->bands_count;
    uint32_t *storage_at = tarn_region_take(region, reuse->count, sizeof *storage_at);
    int64_t *change = tarn_region_take(region, longest + 1, sizeof *change);
    uint32_t *storages = tarn_region_take(region, reuse->count, sizeof *storages);
    if (region->is_exhausted) return false;
    for (uint32_t a = 0; a < reuse->count; a++) storage_at[conflicts->slot_of[a]] = a;
    for (size_t k = 0; k < bands_count; k++) {
        struct band *band = &apart->bands[k];
        band->storages = storages;
        for (uint32_t s = 0; s < reuse->streams_count; s++) {
            uint32_t begin = conflicts->begin[s], count = conflicts->begin[s + 1] - begin;
            if (apart->band_of[s] != k) continue;
            for (uint32_t i = 0; i < count; i++) *storages++ = storage_at[begin + i];
            uint64_t peak = find_peak(apart, storage_at + begin, count, s, change);
            if (peak > band->least) band->least = peak;
        }
        band->count = (uint32_t)(storages - band->storages);
    }
    return true;
}

/* Bytes of all bands: the first `placed` as high as they are, the others as they are at least. */
static uint64_t add_up(const struct apart *apart, uint32_t placed)
{
    uint64_t sum = 0;
    for (uint32_t k = 0; k < apart->bands_count; k++) {
        struct band *band = &apart->bands[k];
        uint64_t alignment = k < placed ? band->alignment : 1;
        if (!tarn_size_round_up(sum, alignment, &band->begin) ||
            !tarn_size_add(band->begin, k < placed ? band->height : band->least, &sum))
            return UINT64_MAX;
    }
    return sum;
}

/* ---- Placing ---- */

/* Makes a band ready: all its blocks in a row. */
static bool band_init(const struct apart *apart, struct band *band, const uint32_t *block_of)
{
    struct tarn_blocks *blocks = &band->part.problem.blocks;
    struct tarn_conflicts *conflicts = &band->part.problem.conflicts;
    band->offset = tarn_region_take(apart->region, band->count, sizeof *band->offset);
    if (!band->offset ||
        tarn_part_init(&band->part, apart->region, apart->problem, block_of, band->storages,
                       band->count) != TARN_OK ||
        tarn_conflicts_init_rows(conflicts, apart->region) != TARN_OK)
        return false;
    band->alignment = 1;
    for (uint32_t b = 0; b < blocks->count; b++)
        if (tarn_block_at(blocks, b).alignment > band->alignment)
            band->alignment = tarn_block_at(blocks, b).alignment;
    band->height = tarn_blocks_place_in_a_row(blocks, band->offset);
    return true;
}

/* By priority orders. */
static enum tarn_status improve(struct apart *apart, struct band *band, uint64_t work_max)
{
    const struct tarn_apart_options *options = apart->options;
    const struct tarn_improve_options improve = {.bound = band->least,
                                                 .work_max = work_max,
                                                 .seed = options->seed,
                                                 .threads = options->threads,
                                                 .deadline = options->deadline};
    struct tarn_improve_report report;
    enum tarn_status status =
        tarn_improve_place(&band->part.problem, &improve, band->offset, &band->height, &report);
    apart->work_left = tarn_work_less(apart->work_left, report.work);
    return status;
}

static enum tarn_status search(struct apart *apart, struct band *band, uint64_t work_max)
{
    const struct tarn_apart_options *options = apart->options;
    const struct tarn_core_options core = {.aim = band->least,
                                           .visits = options->visits,
                                           .work_max = work_max,
                                           .seed = options->seed,
                                           .threads = options->threads,
                                           .deadline = options->deadline};
    struct tarn_core_report report;
    enum tarn_status status =
        tarn_core_place(&band->part.problem, &core, band->offset, &band->height, &report);
    apart->work_left = tarn_work_less(apart->work_left, report.work);
    return status;
}

/* An even share of the work that is left for some searches; 0: no limit. */
static uint64_t share(const struct apart *apart, uint32_t searches)
{
    if (apart->work_left == TARN_WORK_UNLIMITED) return 0;
    return apart->work_left / searches + 1;
}

static enum tarn_status place_band(struct apart *apart, struct band *band, uint32_t others)
{
    uint64_t make = (uint64_t)TARN_WORK_MAKE * band->count;
    apart->work_left = tarn_work_less(apart->work_left, make);
    enum tarn_status status = improve(apart, band, share(apart, 2 * others + 2));
    if (status != TARN_OK || band->height <= band->least || apart->work_left == 0) return status;
    return search(apart, band, share(apart, others + 1));
}

/* As long as bands may be lower than the present plan. *placed: how many there are. */
static enum tarn_status place_bands(struct apart *apart, uint64_t footprint, uint32_t *placed)
{
    struct tarn_region *region = apart->region;
    const struct tarn_blocks *blocks = &apart->problem->blocks;
    uint32_t *block_of = tarn_region_take(region, blocks->storages_count, sizeof *block_of);
    if (!block_of) return TARN_SYSTEM;
    for (uint32_t b = 0; b < blocks->count; b++) {
        struct tarn_block block = tarn_block_at(blocks, b);
        for (uint32_t m = 0; m < block.members_count; m++) block_of[block.members[m]] = b;
    }
    for (*placed = 0; *placed < apart->bands_count && add_up(apart, *placed) < footprint;) {
        struct band *band = &apart->bands[*placed];
        if (tarn_deadline_is_over(&apart->options->deadline)) break;
        if (!band_init(apart, band, block_of)) return TARN_SYSTEM;
        ++*placed;
        enum tarn_status status = place_band(apart, band, apart->bands_count - *placed);
        if (status != TARN_OK) return status;
    }
    return TARN_OK;
}

static void take_plan(const struct apart *apart, uint64_t *offset)
{
    for (uint32_t k = 0; k < apart->bands_count; k++) {
        const struct band *band = &apart->bands[k];
        for (uint32_t i = 0; i < band->count; i++)
            offset[band->part.origin[i]] = band->begin + band->offset[i];
    }
}

/* ---- The whole ---- */

enum tarn_status tarn_apart_place(const struct tarn_problem *problem,
                                  const struct tarn_apart_options *options, uint64_t *offset,
                                  uint64_t *footprint, uint64_t *work)
{
    uint64_t work_max = options->work_max > 0 ? options->work_max : TARN_WORK_UNLIMITED;
    struct tarn_region region = {.chunks = NULL};
    struct apart apart = {
        .problem = problem, .options = options, .region = &region, .work_left = work_max};
    uint32_t placed = 0;
    bool ok = find_bands(&apart) && (apart.bands_count < 2 || fill_bands(&apart));
    enum tarn_status status = ok ? TARN_OK : TARN_SYSTEM;
    if (ok && apart.bands_count > 1) status = place_bands(&apart, *footprint, &placed);
    if (status == TARN_OK && placed > 0 && placed == apart.bands_count) {
        uint64_t found = add_up(&apart, placed);
        if (found < *footprint) {
            *footprint = found;
            take_plan(&apart, offset);
        }
    }
    *work = work_max - apart.work_left;
    tarn_region_finish(&region);
    return status;
}
