/* Places each stream in a band of its own. If streams seldom wait for each other, nearly all
 * storages of one stream are in conflict with storages that other streams produce meanwhile. A plan
 * of all streams then mixes storages that should lie together. In a band of its own each stream is
 * a much smaller problem of intervals, which search solves well. The loss is that streams reach
 * their peaks at different times. Several streams in one band lose less and are harder to place, so
 * the partitions with the smallest sum of heights are placed. A lower bound of a band's height, the
 * heaviest antichain of its storages, is known before. So bands are placed only while they can be
 * lower than the present plan. Streams with members of one contiguous group always share a band.
 *
 *     units     streams joined by groups
 *     few       all partitions of the units
 *     more      pairs of bands are merged, the one that takes most from the sum first
 *     joined    bands are arranged and turned in several ways, and compacted (compact.h)
 *
 * Source: docs/how-it-works.md, "Placement". Cost: an antichain for each set of streams that is
 * looked at, O(T S), and the searches. */
#include "apart.h"

#include <assert.h>
#include <string.h>

#include "compact.h"
#include "core.h"
#include "improve.h"
#include "planner/place/effort/effort.h"
#include "streams/base/checked.h"
#include "streams/base/union.h"

struct band {
    uint32_t *storages; /* in the order of slots */
    uint32_t count;
    uint64_t least;  /* bytes: it is as high at least */
    uint64_t height; /* bytes, once it is placed */
    uint64_t alignment;
    struct tarn_part part;
    uint64_t *offset; /* by storage of the part */
};

/* ALL_UNITS units have 15 partitions. Of up to MERGED_UNITS units, pairs are merged. With more than
 * SHARED_STORAGES storages no two units share a band, since search is too short for that. TRIES:
 * partitions that are placed, beside the partition with one unit for each band. */
enum { ALL_UNITS = 4, MERGED_UNITS = 8, SHARED_STORAGES = 4096, TRIES = 3 };
enum { PARTITIONS_MAX = 16, SETS_MAX = 1 << MERGED_UNITS };
/* Joining bands may take one more part in JOIN_SHARE of the work for placing them, and about
 * JOIN_PUSHES pushes; of the first ARRANGED_BANDS of them all ways round are tried. */
enum { JOIN_SHARE = 8, JOIN_PUSHES = 64, ARRANGED_BANDS = 3 };
/* Joining may lower bands in coarse sizes by 1/LOWERED_SHARE, seldom others. */
enum { LOWERED_SHARE = 64 };

/* Unit -> band, numbered by their first units. Of many units, or without a graph, each its own. */
struct partition {
    uint8_t band_of[MERGED_UNITS];
    uint32_t bands_count;
    uint64_t least; /* bytes of all bands, at least */
};

struct apart {
    const struct tarn_problem *problem;
    const struct tarn_apart_options *options;
    struct tarn_region *region;
    uint32_t *unit_of; /* stream -> unit */
    uint32_t units_count;
    uint32_t *band_of; /* stream -> band */
    struct band *bands;
    uint32_t bands_count;
    uint64_t work_left;
    uint64_t joined;    /* work for joining, beside */
    uint64_t *least_of; /* set of units, as bits -> bytes at least; 0: not known; NULL: not asked */
    uint64_t *weight;   /* by storage of the whole: room for find_least */
    bool is_exhausted;  /* no memory */
};

/* ---- Units ---- */

static void join_groups(const struct apart *apart, uint32_t *parent)
{
    const struct tarn_blocks *blocks = &apart->problem->blocks;
    const uint32_t *stream = apart->problem->conflicts.reuse.stream;
    for (uint32_t b = 0; b < blocks->count; b++) {
        struct tarn_block block = tarn_block_at(blocks, b);
        for (uint32_t m = 1; m < block.members_count; m++)
            parent[tarn_union_root(parent, stream[block.members[m]])] =
                tarn_union_root(parent, stream[block.members[0]]);
    }
}

static bool find_units(struct apart *apart)
{
    uint32_t streams_count = apart->problem->conflicts.reuse.streams_count;
    struct tarn_region *region = apart->region;
    apart->unit_of = tarn_region_take(region, streams_count, sizeof *apart->unit_of);
    apart->band_of = tarn_region_take(region, streams_count, sizeof *apart->band_of);
    apart->bands = tarn_region_take(region, streams_count, sizeof *apart->bands);
    uint32_t *parent = tarn_region_take(region, streams_count, sizeof *parent);
    bool *makes = tarn_region_take(region, streams_count, sizeof *makes);
    if (region->is_exhausted) return false;
    for (uint32_t s = 0; s < streams_count; s++) parent[s] = s;
    join_groups(apart, parent);
    for (uint32_t a = 0; a < apart->problem->conflicts.reuse.count; a++)
        makes[tarn_union_root(parent, apart->problem->conflicts.reuse.stream[a])] = true;
    for (uint32_t s = 0; s < streams_count; s++) /* one that makes nothing belongs to the first */
        if (tarn_union_root(parent, s) == s && makes[s]) apart->unit_of[s] = apart->units_count++;
    for (uint32_t s = 0; s < streams_count; s++)
        apart->unit_of[s] = apart->unit_of[tarn_union_root(parent, s)];
    return true;
}

/* ---- The lower bound of a band ---- */

/* The maximum of bytes of a stream's storages that live at once. */
static uint64_t find_peak(const struct apart *apart, const uint32_t *storages, uint32_t count,
                          uint32_t s, uint64_t *change)
{
    const struct tarn_reuse *reuse = &apart->problem->conflicts.reuse;
    const uint64_t *reserved = apart->problem->blocks.reserved;
    uint64_t alive = 0, peak = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t a = storages[i];
        change[reuse->position[a]] += reserved[a]; /* may wrap, as the sum does back */
        change[reuse->first[(size_t)s * reuse->count + a]] -= reserved[a];
    }
    for (uint32_t p = 0; p <= reuse->length[s]; p++) {
        alive += change[p];
        if (alive > peak) peak = alive;
        change[p] = 0;
    }
    return peak;
}

/* The heaviest antichain of a set of units: the antichain of a graph in which all other storages
 * weigh nothing. */
static uint64_t find_least(struct apart *apart, uint32_t set)
{
    const struct tarn_problem *whole = apart->options->whole;
    const uint32_t *origin = apart->problem == whole ? NULL : apart->problem->origin;
    const struct tarn_reuse *reuse = &apart->problem->conflicts.reuse;
    struct tarn_region region = {.chunks = NULL};
    struct tarn_antichain antichain;
    if (apart->least_of[set] > 0) return apart->least_of[set];
    for (uint32_t a = 0; a < reuse->count; a++)
        apart->weight[origin ? origin[a] : a] =
            set >> apart->unit_of[reuse->stream[a]] & 1 ? apart->problem->blocks.reserved[a] : 0;
    if (tarn_antichain_init(&antichain, &region, &whole->conflicts.reuse, whole->graph,
                            apart->weight) != TARN_OK)
        apart->is_exhausted = true;
    else
        apart->least_of[set] = antichain.bound;
    tarn_region_finish(&region);
    uint64_t entries = (uint64_t)whole->conflicts.reuse.count * reuse->streams_count;
    apart->work_left = tarn_work_less(apart->work_left, TARN_WORK_ANTICHAIN * entries);
    return apart->least_of[set];
}

/* Gives every band its storages and its least height. */
static bool fill_bands(struct apart *apart)
{
    const struct tarn_conflicts *conflicts = &apart->problem->conflicts;
    const struct tarn_reuse *reuse = &conflicts->reuse;
    struct tarn_region *region = apart->region;
    size_t longest = tarn_reuse_longest(reuse), bands_count = apart->bands_count;
    uint32_t *storage_at = tarn_region_take(region, reuse->count, sizeof *storage_at);
    uint64_t *change = tarn_region_take(region, longest + 1, sizeof *change);
    uint32_t *storages = tarn_region_take(region, reuse->count, sizeof *storages);
    if (region->is_exhausted) return false;
    for (uint32_t a = 0; a < reuse->count; a++) storage_at[conflicts->slot_of[a]] = a;
    for (size_t k = 0; k < bands_count; k++) {
        struct band *band = &apart->bands[k];
        uint32_t set = 0;
        *band = (struct band){.storages = storages};
        for (uint32_t s = 0; s < reuse->streams_count; s++) {
            uint32_t begin = conflicts->begin[s], count = conflicts->begin[s + 1] - begin;
            if (apart->band_of[s] != k) continue;
            for (uint32_t i = 0; i < count; i++) *storages++ = storage_at[begin + i];
            if (apart->least_of) set |= 1u << apart->unit_of[s];
            uint64_t peak = find_peak(apart, storage_at + begin, count, s, change);
            if (peak > band->least) band->least = peak;
        }
        band->count = (uint32_t)(storages - band->storages);
        if (apart->least_of && find_least(apart, set) > band->least)
            band->least = apart->least_of[set];
    }
    return !apart->is_exhausted;
}

/* Bytes of all bands: the first `placed` as high as they are, the others as they are at least. */
static uint64_t add_up(const struct apart *apart, uint32_t placed)
{
    uint64_t sum = 0;
    for (uint32_t k = 0; k < apart->bands_count; k++) {
        const struct band *band = &apart->bands[k];
        uint64_t alignment = k < placed ? band->alignment : 1;
        if (!tarn_size_round_up(sum, alignment, &sum) ||
            !tarn_size_add(sum, k < placed ? band->height : band->least, &sum))
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
    uint64_t work;
    if (options->search) {
        enum tarn_status status = options->search(options, &band->part.problem, band->least,
                                                  work_max, band->offset, &band->height, &work);
        apart->work_left = tarn_work_less(apart->work_left, work);
        return status;
    }
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

/* As long as bands may be lower than the present plan, once they are joined. *placed: how many
 * there are. */
static enum tarn_status place_bands(struct apart *apart, uint64_t footprint, uint32_t *placed)
{
    struct tarn_region *region = apart->region;
    const struct tarn_blocks *blocks = &apart->problem->blocks;
    uint32_t *block_of = tarn_region_take(region, blocks->storages_count, sizeof *block_of);
    bool is_coarse = apart->problem != apart->options->whole;
    uint64_t most = footprint + (is_coarse ? footprint / LOWERED_SHARE : 0);
    if (!block_of) return TARN_SYSTEM;
    for (uint32_t b = 0; b < blocks->count; b++) {
        struct tarn_block block = tarn_block_at(blocks, b);
        for (uint32_t m = 0; m < block.members_count; m++) block_of[block.members[m]] = b;
    }
    for (*placed = 0; *placed < apart->bands_count && add_up(apart, *placed) < most;) {
        struct band *band = &apart->bands[*placed];
        if (tarn_deadline_is_over(&apart->options->deadline)) break;
        if (!band_init(apart, band, block_of)) return TARN_SYSTEM;
        ++*placed;
        enum tarn_status status = place_band(apart, band, apart->bands_count - *placed);
        if (status != TARN_OK) return status;
    }
    return TARN_OK;
}

/* Puts one band above the other: the n-th arrangement. Bit 0 of n turns their order around, the bit
 * k + 1 turns band k upside down. False: it has groups, or a storage with an alignment of its own
 * that would not be kept. */
static bool arrange(const struct apart *apart, uint32_t n, uint64_t *offset)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < apart->bands_count; i++) {
        uint32_t k = n & 1 ? apart->bands_count - 1 - i : i;
        const struct band *band = &apart->bands[k];
        const struct tarn_blocks *blocks = &band->part.problem.blocks;
        bool turned = k < ARRANGED_BANDS && n >> (k + 1) & 1;
        if (turned && blocks->count < blocks->storages_count) return false;
        if (!tarn_size_round_up(sum, band->alignment, &sum)) return false;
        for (uint32_t a = 0; a < band->count; a++) {
            uint64_t own = band->offset[a];
            if (turned) own = band->height - own - blocks->reserved[a];
            if (turned && own % tarn_block_at(blocks, a).alignment > 0) return false;
            offset[band->part.origin[a]] = sum + own;
        }
        if (!tarn_size_add(sum, band->height, &sum)) return false;
    }
    return true;
}

/* Tries several arrangements of the bands, each compacted: what a band leaves free at its border
 * joins what its neighbour leaves. */
static enum tarn_status join_bands(struct apart *apart, uint64_t work_max, uint64_t *offset,
                                   uint64_t *footprint)
{
    const struct tarn_blocks *blocks = &apart->problem->blocks;
    struct tarn_compact_options options = {.aim = apart->options->aim,
                                           .deadline = apart->options->deadline};
    uint32_t bands = apart->bands_count < ARRANGED_BANDS ? apart->bands_count : ARRANGED_BANDS;
    uint64_t *own = tarn_region_take(apart->region, blocks->storages_count, sizeof *own), work = 0;
    bool limited = apart->work_left != TARN_WORK_UNLIMITED;
    if (!own) return TARN_SYSTEM;
    for (uint32_t n = 0; n < 2u << bands && *footprint > options.aim; n++) {
        if (n > 0 && ((limited && work_max == 0) || tarn_deadline_is_over(&options.deadline)))
            break;
        if (!arrange(apart, n, own)) continue;
        uint64_t found = tarn_blocks_footprint(blocks, own);
        options.work_max = limited && work_max == 0 ? 1 : work_max;
        enum tarn_status status = tarn_compact_place(apart->problem, &options, own, &found, &work);
        if (status != TARN_OK) return status;
        work_max = tarn_work_less(work_max, work);
        apart->joined += work;
        if (found >= *footprint) continue;
        *footprint = found;
        memcpy(offset, own, blocks->storages_count * sizeof *offset);
    }
    return TARN_OK;
}

/* ---- Partitions ---- */

/* Adds a partition to those that may be lower than `footprint`; the lowest come first, of equal
 * ones that with more bands, which are smaller. */
static void offer(struct partition *list, uint32_t *count, struct partition partition,
                  uint64_t footprint)
{
    uint32_t at = *count;
    if (partition.bands_count < 2 || partition.least >= footprint) return;
    while (at > 0 && (partition.least < list[at - 1].least ||
                      (partition.least == list[at - 1].least &&
                       partition.bands_count > list[at - 1].bands_count)))
        at--;
    if (at == PARTITIONS_MAX) return;
    *count += *count < PARTITIONS_MAX;
    for (uint32_t i = *count - 1; i > at; i--) list[i] = list[i - 1];
    list[at] = partition;
}

static uint64_t sum_of(struct apart *apart, const struct partition *partition)
{
    uint64_t sum = 0;
    for (uint32_t k = 0; k < partition->bands_count; k++) {
        uint32_t set = 0;
        for (uint32_t u = 0; u < apart->units_count; u++)
            if (partition->band_of[u] == k) set |= 1u << u;
        sum += find_least(apart, set);
    }
    return sum;
}

/* Lists all partitions of unit u and the units after it; the units before u are in bands
 * already. */
static void list_all(struct apart *apart, struct partition partition, uint32_t u,
                     struct partition *list, uint32_t *count, uint64_t footprint)
{
    if (u == apart->units_count) {
        partition.least = partition.bands_count > 1 ? sum_of(apart, &partition) : 0;
        offer(list, count, partition, footprint);
        return;
    }
    for (uint8_t k = 0; k <= partition.bands_count; k++) {
        struct partition next = partition;
        next.band_of[u] = k;
        next.bands_count += k == partition.bands_count;
        list_all(apart, next, u + 1, list, count, footprint);
    }
}

static struct partition merge(struct partition partition, uint32_t units, uint8_t a, uint8_t b)
{
    for (uint32_t u = 0; u < units; u++) {
        if (partition.band_of[u] == b) partition.band_of[u] = a;
        if (partition.band_of[u] > b) partition.band_of[u]--;
    }
    partition.bands_count--;
    return partition;
}

/* Each unit its own band; then the two are merged that take most from the sum, and so on. */
static void list_merged(struct apart *apart, struct partition partition, struct partition *list,
                        uint32_t *count, uint64_t footprint)
{
    while (partition.bands_count > 2) {
        struct partition best = {.least = UINT64_MAX};
        for (uint8_t a = 0; a < partition.bands_count; a++) {
            for (uint8_t b = (uint8_t)(a + 1); b < partition.bands_count; b++) {
                struct partition merged = merge(partition, apart->units_count, a, b);
                merged.least = sum_of(apart, &merged);
                if (merged.least < best.least) best = merged;
            }
        }
        partition = best;
        offer(list, count, partition, footprint);
    }
}

/* The partitions to be placed: those that are lower than one band for each unit can be, and that
 * one last. Of too many units, or of too many storages, it is the only one; whether it may be lower
 * is then known after its bands have been filled. */
static uint32_t list_partitions(struct apart *apart, struct partition *list, uint64_t footprint)
{
    uint32_t found = 0, listed = 0, units = apart->units_count;
    uint32_t storages = apart->problem->blocks.storages_count;
    struct partition each = {.bands_count = units}, all[PARTITIONS_MAX];
    list[0] = each;
    if (!apart->options->whole->graph || units > MERGED_UNITS || storages > SHARED_STORAGES)
        return 1;
    apart->least_of = tarn_region_take(apart->region, SETS_MAX, sizeof *apart->least_of);
    apart->weight = tarn_region_take(apart->region, apart->options->whole->blocks.storages_count,
                                     sizeof *apart->weight);
    if (apart->region->is_exhausted) return 0;
    for (uint32_t u = 0; u < units; u++) each.band_of[u] = (uint8_t)u;
    each.least = sum_of(apart, &each);
    if (units <= ALL_UNITS)
        list_all(apart, (struct partition){.bands_count = 0}, 0, all, &found, footprint);
    else
        list_merged(apart, each, all, &found, footprint);
    for (uint32_t i = 0; i < found && listed < TRIES; i++)
        if (all[i].least < each.least) list[listed++] = all[i];
    list[listed] = each;
    return listed + 1;
}

static bool take_partition(struct apart *apart, const struct partition *partition)
{
    apart->bands_count = partition->bands_count;
    for (uint32_t s = 0; s < apart->problem->conflicts.reuse.streams_count; s++)
        apart->band_of[s] =
            apart->least_of ? partition->band_of[apart->unit_of[s]] : apart->unit_of[s];
    return fill_bands(apart);
}

/* ---- The whole ---- */

/* The work for joining the bands of a partition, beside that of placing them: enough for
 * JOIN_PUSHES, or none. */
static uint64_t may_join(const struct apart *apart, uint64_t work)
{
    uint64_t push = tarn_compact_estimate(apart->problem);
    if (work / JOIN_SHARE < push) return 0;
    return work / JOIN_SHARE / push < JOIN_PUSHES ? work / JOIN_SHARE : push * JOIN_PUSHES;
}

/* It may take one part in `parts` of the work that is left. */
static enum tarn_status try_partition(struct apart *apart, const struct partition *partition,
                                      uint32_t parts, uint64_t *offset, uint64_t *footprint)
{
    struct tarn_region_mark mark = tarn_region_mark(apart->region);
    uint64_t left = apart->work_left, kept = 0, joining = 0;
    uint32_t placed = 0;
    if (left != TARN_WORK_UNLIMITED) {
        kept = left - left / parts;
        joining = may_join(apart, left - kept);
        apart->work_left = left - kept;
    }
    enum tarn_status status =
        take_partition(apart, partition) ? place_bands(apart, *footprint, &placed) : TARN_SYSTEM;
    if (status == TARN_OK && placed > 0 && placed == apart->bands_count)
        status = join_bands(apart, joining, offset, footprint);
    if (left != TARN_WORK_UNLIMITED) apart->work_left += kept;
    tarn_region_release(apart->region, mark);
    return status;
}

enum tarn_status tarn_apart_place(const struct tarn_problem *problem,
                                  const struct tarn_apart_options *options, uint64_t *offset,
                                  uint64_t *footprint, uint64_t *work)
{
    uint64_t work_max = options->work_max > 0 ? options->work_max : TARN_WORK_UNLIMITED;
    struct tarn_region region = {.chunks = NULL};
    struct apart apart = {
        .problem = problem, .options = options, .region = &region, .work_left = work_max};
    struct partition list[TRIES + 1];
    uint32_t count = 0;
    bool ok = find_units(&apart);
    if (ok && apart.units_count > 1) count = list_partitions(&apart, list, *footprint);
    enum tarn_status status =
        ok && !region.is_exhausted && !apart.is_exhausted ? TARN_OK : TARN_SYSTEM;
    for (uint32_t i = 0; status == TARN_OK && i < count; i++) {
        if (*footprint <= options->aim) break;
        status = try_partition(&apart, &list[i], count - i, offset, footprint);
    }
    *work = work_max - apart.work_left + apart.joined;
    tarn_region_finish(&region);
    return status;
}
