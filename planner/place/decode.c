/* The decoder. Its three inner loops run over contiguous numbers without a branch:
 *
 *   - raise_lone, when a lone storage is placed: what is not placed yet never ends below the
 * current offset, so every limit in conflict simply becomes at least the end of what was placed.
 *   - raise_or_cap, for a member of a placed group, which may lie above the current offset: what
 *     ends below it stays there and notes a ceiling; who is about to be placed through its ceiling
 *     is looked at exactly (settle).
 *   - measure_run, the least (limit, key) of 64 places.
 *
 * Selection is a lazy tournament. Limits only rise, so an old minimum of a run is still a lower
 * bound; the run with the least one is measured anew, until one stands. Groups are few: their limit
 * is made from their members' when they come up.
 * Source: DESIGN.md, section 3 (Placement).
 * Cost: for each placed storage T/64 run tests for each stream plus the places of runs with
 * conflicts. */
#include <stdlib.h>
#include <string.h>

#include "lowest.h"

enum { RUN = TARN_LANE_RUN, PLACED = INT32_MAX };

/* ---- Inner loops ---- */

static void raise_lone(int32_t *restrict limit, const int32_t *restrict row, uint32_t count,
                       int32_t position, int32_t end)
{
    for (uint32_t i = 0; i < count; i++) {
        int32_t raised = limit[i] > end ? limit[i] : end;
        limit[i] = row[i] > position ? raised : limit[i];
    }
}

static void raise_members(int32_t *restrict limit, const int32_t *restrict row,
                          const int32_t *restrict within, uint32_t count, int32_t position,
                          int32_t end)
{
    for (uint32_t i = 0; i < count; i++) {
        int32_t raised = limit[i] > end - within[i] ? limit[i] : end - within[i];
        limit[i] = row[i] > position ? raised : limit[i];
    }
}

struct span {
    int32_t begin, end;
};

static void raise_or_cap(int32_t *restrict limit, int32_t *restrict ceiling,
                         const int32_t *restrict row, const int32_t *restrict size, uint32_t count,
                         int32_t position, struct span span)
{
    for (uint32_t i = 0; i < count; i++) {
        int32_t raised = limit[i] > span.end ? limit[i] : span.end;
        int32_t capped = ceiling[i] < span.begin ? ceiling[i] : span.begin;
        bool meets = row[i] > position, above = limit[i] > span.begin - size[i];
        limit[i] = meets & above ? raised : limit[i];
        ceiling[i] = meets & !above ? capped : ceiling[i];
    }
}

/* The least (limit, largest key) of some places as one number; UINT64_MAX: all are placed. */
static uint64_t measure_run(const int32_t *restrict limit, const int32_t *restrict key,
                            uint32_t count)
{
    int32_t least = PLACED, largest = INT32_MIN;
    for (uint32_t i = 0; i < count; i++) least = limit[i] < least ? limit[i] : least;
    if (least == PLACED) return UINT64_MAX;
    for (uint32_t i = 0; i < count; i++) {
        int32_t own = limit[i] == least ? key[i] : INT32_MIN;
        largest = own > largest ? own : largest;
    }
    return (uint64_t)least << 32 | (uint32_t)(INT32_MAX - largest);
}

/* ---- Raising limits ---- */

/* One storage that was just placed, as the others see it. */
struct obstacle {
    uint32_t storage;
    uint32_t stream;
    int32_t position;
    struct span span;
};

static struct obstacle obstacle_of(const struct tarn_lowest *lowest, uint32_t storage,
                                   struct span span)
{
    const struct tarn_reuse *reuse = lowest->problem->conflicts->reuse;
    return (struct obstacle){storage, reuse->stream[storage], (int32_t)reuse->position[storage],
                             span};
}

/* The next part of [begin, end) that lies in one run and may have conflicts with the obstacle;
 * false when there is none. Moves begin past it. */
static bool next_part(const struct tarn_lanes *lanes, const struct obstacle *obstacle,
                      uint32_t *begin, uint32_t end, uint32_t part[2])
{
    const int32_t *highest = lanes->highest + (size_t)obstacle->stream * lanes->runs_count;
    while (*begin < end) {
        uint32_t from = *begin, next = (from / RUN + 1) * RUN;
        *begin = next;
        if (highest[from / RUN] <= obstacle->position) continue;
        part[0] = from;
        part[1] = next < end ? next : end;
        return true;
    }
    return false;
}

static void raise_stream(struct tarn_decoder *decoder, const struct obstacle *obstacle,
                         uint32_t begin, uint32_t end, bool floats)
{
    const struct tarn_lowest *lowest = decoder->lowest;
    const int32_t *row = lowest->lone.row + (size_t)obstacle->stream * lowest->lone.count;
    uint32_t part[2];
    while (next_part(&lowest->lone, obstacle, &begin, end, part)) {
        uint32_t i = part[0], count = part[1] - part[0];
        if (decoder->run[i / RUN] == UINT64_MAX) continue;
        if (floats)
            raise_or_cap(decoder->limit + i, decoder->ceiling + i, row + i, lowest->size + i, count,
                         obstacle->position, obstacle->span);
        else if (count == RUN)
            raise_lone(decoder->limit + i, row + i, RUN, obstacle->position, obstacle->span.end);
        else
            raise_lone(decoder->limit + i, row + i, count, obstacle->position, obstacle->span.end);
    }
}

static void raise_group_members(struct tarn_decoder *decoder, const struct obstacle *obstacle,
                                uint32_t begin, uint32_t end)
{
    const struct tarn_lanes *members = &decoder->lowest->members;
    const int32_t *row = members->row + (size_t)obstacle->stream * members->count;
    uint32_t part[2];
    while (next_part(members, obstacle, &begin, end, part))
        raise_members(decoder->member_limit + part[0], row + part[0],
                      decoder->lowest->within + part[0], part[1] - part[0], obstacle->position,
                      obstacle->span.end);
}

static void raise_conflicts(struct tarn_decoder *decoder, const struct obstacle *obstacle,
                            bool floats)
{
    const struct tarn_lowest *lowest = decoder->lowest;
    const struct tarn_reuse *reuse = lowest->problem->conflicts->reuse;
    for (uint32_t s = 0; s < reuse->streams_count; s++) {
        uint32_t first = reuse->first[(size_t)s * reuse->count + obstacle->storage];
        raise_stream(decoder, obstacle, tarn_lanes_begin(&lowest->lone, s),
                     tarn_lanes_end(&lowest->lone, s, first), floats);
        if (!floats && lowest->groups_count > 0)
            raise_group_members(decoder, obstacle, tarn_lanes_begin(&lowest->members, s),
                                tarn_lanes_end(&lowest->members, s, first));
    }
}

/* ---- Exact looks ---- */

static int32_t align(const struct tarn_lowest *lowest, uint32_t place, int32_t offset)
{
    int32_t mask = lowest->alignment[place] - 1;
    return (offset + mask) & ~mask;
}

static bool is_unsafe(const struct tarn_lowest *lowest, uint32_t a, uint32_t b)
{
    return !tarn_reuse_is_safe(lowest->problem->conflicts->reuse, a, b);
}

/* The least member of a list of them, begin..end, that ends above `inside` of its block. */
static uint32_t find_member(const struct tarn_lowest *lowest, uint32_t begin, uint32_t end,
                            int32_t inside)
{
    while (begin < end) {
        uint32_t middle = begin + (end - begin) / 2;
        if (lowest->member_end[lowest->member[middle]] > inside)
            end = middle;
        else
            begin = middle + 1;
    }
    return begin;
}

/* Looks along a placed group for the first member in conflict with a lone storage that would begin
 * at `offset` and that ends above it. Writes where it lies; false when there is none. */
static bool first_conflict(const struct tarn_decoder *decoder, uint32_t place, int32_t offset,
                           uint32_t group, struct span *span)
{
    const struct tarn_lowest *lowest = decoder->lowest;
    int32_t start = decoder->offset[lowest->lone.count + group];
    uint32_t i = find_member(lowest, lowest->group_begin[group], lowest->group_begin[group + 1],
                             offset - start);
    for (; i < lowest->group_begin[group + 1]; i++) {
        uint32_t m = lowest->member[i];
        *span = (struct span){start + lowest->within[m], start + lowest->member_end[m]};
        if (is_unsafe(lowest, lowest->lone.storage[place], lowest->members.storage[m])) return true;
    }
    return false;
}

/* The least offset from `offset` on at which a lone storage meets no placed member, and the ceiling
 * above that. */
static int32_t settle_lone(struct tarn_decoder *decoder, uint32_t place, int32_t offset)
{
    const struct tarn_lowest *lowest = decoder->lowest;
    struct span span;
    bool moved = true;
    while (moved) {
        moved = false;
        offset = align(lowest, place, offset);
        decoder->ceiling[place] = lowest->ceiling[place];
        for (uint32_t i = 0; i < decoder->placed_count && !moved; i++) {
            if (!first_conflict(decoder, place, offset, decoder->placed[i], &span)) continue;
            moved = span.begin < offset + lowest->size[place];
            if (moved)
                offset = span.end;
            else if (span.begin < decoder->ceiling[place])
                decoder->ceiling[place] = span.begin;
        }
    }
    return offset;
}

/* How far a group at `offset` must move up so that none of its members meets one of a placed group
 * that it meets now. Both lists of members are in order: one pass over them. */
static int32_t clear_of(const struct tarn_decoder *decoder, uint32_t group, int32_t offset,
                        uint32_t other)
{
    const struct tarn_lowest *lowest = decoder->lowest;
    int32_t start = decoder->offset[lowest->lone.count + other], cleared = offset;
    uint32_t i_end = lowest->group_begin[group + 1], j_end = lowest->group_begin[other + 1];
    uint32_t i = find_member(lowest, lowest->group_begin[group], i_end, start - offset);
    uint32_t j = find_member(lowest, lowest->group_begin[other], j_end, offset - start);
    while (i < i_end && j < j_end) {
        uint32_t m = lowest->member[i], n = lowest->member[j];
        int32_t begin = offset + lowest->within[m], end = offset + lowest->member_end[m];
        int32_t other_begin = start + lowest->within[n], other_end = start + lowest->member_end[n];
        if (begin < other_end && other_begin < end && other_end - lowest->within[m] > cleared &&
            is_unsafe(lowest, lowest->members.storage[m], lowest->members.storage[n]))
            cleared = other_end - lowest->within[m];
        if (end <= other_end) i++;
        if (other_end <= end) j++;
    }
    return cleared;
}

static int32_t settle_group(struct tarn_decoder *decoder, uint32_t place, int32_t offset)
{
    const struct tarn_lowest *lowest = decoder->lowest;
    uint32_t group = place - lowest->lone.count;
    for (uint32_t i = lowest->group_begin[group]; i < lowest->group_begin[group + 1]; i++)
        if (decoder->member_limit[lowest->member[i]] > offset)
            offset = decoder->member_limit[lowest->member[i]];
    for (bool moved = true; moved;) {
        moved = false;
        offset = align(lowest, place, offset);
        for (uint32_t i = 0; i < decoder->placed_count && !moved; i++) {
            int32_t cleared = clear_of(decoder, group, offset, decoder->placed[i]);
            moved = cleared > offset;
            offset = cleared;
        }
    }
    return offset;
}

/* Groups that end at or below the current offset meet nobody any more. */
static void drop_passed(struct tarn_decoder *decoder, int32_t current)
{
    const struct tarn_lowest *lowest = decoder->lowest;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < decoder->placed_count; i++) {
        uint32_t place = lowest->lone.count + decoder->placed[i];
        if (decoder->offset[place] + lowest->size[place] > current)
            decoder->placed[kept++] = decoder->placed[i];
    }
    decoder->placed_count = kept;
}

/* Where the place can really be put, at its limit or above. */
static int32_t settle(struct tarn_decoder *decoder, uint32_t place)
{
    const struct tarn_lowest *lowest = decoder->lowest;
    int32_t offset = decoder->limit[place];
    if (offset + lowest->size[place] <= decoder->ceiling[place]) return offset;
    drop_passed(decoder, offset);
    if (place < lowest->lone.count) return settle_lone(decoder, place, offset);
    return settle_group(decoder, place, offset);
}

/* ---- Selection ---- */

static uint32_t run_size(const struct tarn_lowest *lowest, uint32_t run)
{
    uint32_t left = lowest->count - run * RUN;
    return left < RUN ? left : RUN;
}

static uint64_t measure(const struct tarn_decoder *decoder, const int32_t *key, uint32_t run)
{
    const int32_t *limit = decoder->limit + (size_t)run * RUN, *own = key + (size_t)run * RUN;
    uint32_t size = run_size(decoder->lowest, run);
    return size == RUN ? measure_run(limit, own, RUN) : measure_run(limit, own, size);
}

static uint32_t least_of(const uint64_t *values, uint32_t begin, uint32_t end)
{
    uint32_t least = begin;
    uint64_t value = values[begin];
    for (uint32_t i = begin + 1; i < end; i++) {
        least = values[i] < value ? i : least;
        value = values[i] < value ? values[i] : value;
    }
    return least;
}

static uint32_t place_of(const struct tarn_decoder *decoder, const int32_t *key, uint32_t run)
{
    int32_t limit = (int32_t)(decoder->run[run] >> 32);
    int32_t largest = INT32_MAX - (int32_t)(uint32_t)decoder->run[run];
    uint32_t place = run * RUN;
    while (decoder->limit[place] != limit || key[place] != largest) place++;
    return place;
}

/* The block that comes next, or TARN_NONE. */
static uint32_t select_place(struct tarn_decoder *decoder, const int32_t *key)
{
    uint32_t runs = (decoder->lowest->count + RUN - 1) / RUN, laps = (runs + RUN - 1) / RUN;
    while (laps > 0) {
        uint32_t lap = least_of(decoder->lap, 0, laps);
        uint32_t run =
            least_of(decoder->run, lap * RUN, (lap + 1) * RUN < runs ? (lap + 1) * RUN : runs);
        uint64_t stale = decoder->run[run];
        if (stale == decoder->lap[lap]) {
            if (stale == UINT64_MAX) return TARN_NONE;
            decoder->run[run] = measure(decoder, key, run);
            if (decoder->run[run] == stale) return place_of(decoder, key, run);
        } else {
            decoder->lap[lap] = stale;
        }
    }
    return TARN_NONE;
}

/* ---- Decoding ---- */

static void start(struct tarn_decoder *decoder, const int32_t *key, const int32_t *floor)
{
    const struct tarn_lowest *lowest = decoder->lowest;
    uint32_t runs = (lowest->count + RUN - 1) / RUN;
    if (floor)
        memcpy(decoder->limit, floor, lowest->count * sizeof *floor);
    else
        memset(decoder->limit, 0, lowest->count * sizeof *decoder->limit);
    memcpy(decoder->ceiling, lowest->ceiling, lowest->count * sizeof *decoder->ceiling);
    memset(decoder->member_limit, 0, lowest->members.count * sizeof *decoder->member_limit);
    decoder->placed_count = 0;
    for (uint32_t run = 0; run < runs; run++) decoder->run[run] = measure(decoder, key, run);
    for (uint32_t run = 0; run < runs; run += RUN)
        decoder->lap[run / RUN] =
            decoder->run[least_of(decoder->run, run, run + RUN < runs ? run + RUN : runs)];
}

static void place_at(struct tarn_decoder *decoder, uint32_t place, int32_t offset)
{
    const struct tarn_lowest *lowest = decoder->lowest;
    decoder->offset[place] = offset;
    decoder->limit[place] = PLACED;
    if (place < lowest->lone.count) {
        struct span span = {offset, offset + lowest->size[place]};
        struct obstacle obstacle = obstacle_of(lowest, lowest->lone.storage[place], span);
        raise_conflicts(decoder, &obstacle, false);
        return;
    }
    uint32_t group = place - lowest->lone.count;
    decoder->placed[decoder->placed_count++] = group;
    for (uint32_t i = lowest->group_begin[group]; i < lowest->group_begin[group + 1]; i++) {
        uint32_t m = lowest->member[i];
        struct span span = {offset + lowest->within[m], offset + lowest->member_end[m]};
        struct obstacle obstacle = obstacle_of(lowest, lowest->members.storage[m], span);
        raise_conflicts(decoder, &obstacle, true);
    }
}

int32_t tarn_decoder_run(struct tarn_decoder *decoder, const int32_t *key, const int32_t *floor,
                         int32_t top_max)
{
    const struct tarn_lowest *lowest = decoder->lowest;
    int32_t top = 0;
    uint32_t place;
    start(decoder, key, floor);
    while ((place = select_place(decoder, key)) != TARN_NONE) {
        int32_t offset = settle(decoder, place);
        if (offset > top_max - lowest->size[place]) return INT32_MAX;
        if (offset > decoder->limit[place]) {
            decoder->limit[place] = offset;
            continue;
        }
        place_at(decoder, place, offset);
        if (offset + lowest->size[place] > top) top = offset + lowest->size[place];
    }
    return top;
}

/* ---- Making ---- */

enum tarn_status tarn_decoder_init(struct tarn_decoder *decoder, const struct tarn_lowest *lowest)
{
    size_t count = (size_t)lowest->count + 1;
    memset(decoder, 0, sizeof *decoder);
    decoder->lowest = lowest;
    decoder->offset = calloc(count, sizeof *decoder->offset);
    decoder->limit = malloc(count * sizeof *decoder->limit);
    decoder->ceiling = malloc(count * sizeof *decoder->ceiling);
    decoder->member_limit =
        malloc(((size_t)lowest->members.count + 1) * sizeof *decoder->member_limit);
    decoder->run = malloc((count / RUN + 1) * sizeof *decoder->run);
    decoder->lap = malloc((count / RUN / RUN + 1) * sizeof *decoder->lap);
    decoder->placed = malloc(((size_t)lowest->groups_count + 1) * sizeof *decoder->placed);
    if (decoder->offset && decoder->limit && decoder->ceiling && decoder->member_limit &&
        decoder->run && decoder->lap && decoder->placed)
        return TARN_OK;
    tarn_decoder_finish(decoder);
    return TARN_SYSTEM;
}

void tarn_decoder_finish(struct tarn_decoder *decoder)
{
    free(decoder->offset);
    free(decoder->limit);
    free(decoder->ceiling);
    free(decoder->member_limit);
    free(decoder->run);
    free(decoder->lap);
    free(decoder->placed);
    memset(decoder, 0, sizeof *decoder);
}
