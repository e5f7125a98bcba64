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

enum { RUN = TARN_LANE_RUN, PLACED = INT32_MAX, UNKNOWN = -1 };

/* ---- Raising limits ---- */

static uint32_t run_size(const struct tarn_lowest *lowest, uint32_t run)
{
    uint32_t left = lowest->count - run * RUN;
    return left < RUN ? left : RUN;
}

/* One storage that was just placed, as the others see it. */
struct obstacle {
    uint32_t storage;
    uint32_t stream;
    int32_t position;
    struct tarn_span span;
};

static struct obstacle obstacle_of(const struct tarn_lowest *lowest, uint32_t storage,
                                   struct tarn_span span)
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

/* Limits only rise: while the least one stays, nobody joins those that have it. */
static void note_least(struct tarn_decoder *decoder, uint32_t run, int32_t least)
{
    if (least != decoder->run_limit[run]) decoder->run_first[run] = UNKNOWN;
    decoder->run_limit[run] = least;
}

/* After some places of it have changed. */
static void measure_run(struct tarn_decoder *decoder, uint32_t run)
{
    note_least(decoder, run,
               decoder->kernels->least(decoder->limit + (size_t)run * RUN,
                                       run_size(decoder->lowest, run)));
}

/* Raises the limits of places begin..end of a run. */
static void raise_part(struct tarn_decoder *decoder, const struct obstacle *obstacle,
                       const int32_t *row, const uint32_t part[2], bool floats)
{
    const struct tarn_kernels *kernels = decoder->kernels;
    uint32_t begin = part[0], count = part[1] - part[0], run = begin / RUN;
    int32_t *limit = decoder->limit + begin, least;
    if (floats)
        kernels->raise_or_cap(limit, decoder->ceiling + begin, row + begin,
                              decoder->lowest->size + begin, count, obstacle->position,
                              obstacle->span);
    else
        least = kernels->raise(limit, row + begin, count, obstacle->position, obstacle->span.end);
    if (floats || count != RUN)
        measure_run(decoder, run);
    else
        note_least(decoder, run, least);
}

static void raise_stream(struct tarn_decoder *decoder, const struct obstacle *obstacle,
                         uint32_t begin, uint32_t end, bool floats)
{
    const struct tarn_lanes *lone = &decoder->lowest->lone;
    const int32_t *row = lone->row + (size_t)obstacle->stream * lone->count;
    uint32_t part[2];
    while (next_part(lone, obstacle, &begin, end, part))
        if (decoder->run_limit[part[0] / RUN] != PLACED)
            raise_part(decoder, obstacle, row, part, floats);
}

static void raise_group_members(struct tarn_decoder *decoder, const struct obstacle *obstacle,
                                uint32_t begin, uint32_t end)
{
    const struct tarn_lanes *members = &decoder->lowest->members;
    const int32_t *row = members->row + (size_t)obstacle->stream * members->count;
    uint32_t part[2];
    while (next_part(members, obstacle, &begin, end, part))
        decoder->kernels->raise_members(decoder->member_limit + part[0], row + part[0],
                                        decoder->lowest->within + part[0], part[1] - part[0],
                                        obstacle->position, obstacle->span.end);
}

/* A group begins with its first member: where that is in conflict, the limit is known at once. The
 * runs of groups are measured afterwards. */
static void raise_groups(struct tarn_decoder *decoder, const struct obstacle *obstacle,
                         uint32_t begin, uint32_t end)
{
    const struct tarn_lanes *heads = &decoder->lowest->heads;
    const int32_t *row = heads->row + (size_t)obstacle->stream * heads->count;
    int32_t *limit = decoder->limit + decoder->lowest->lone.count;
    uint32_t part[2];
    while (next_part(heads, obstacle, &begin, end, part))
        decoder->kernels->raise(limit + part[0], row + part[0], part[1] - part[0],
                                obstacle->position, obstacle->span.end);
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
        if (floats || lowest->groups_count == 0) continue;
        raise_group_members(decoder, obstacle, tarn_lanes_begin(&lowest->members, s),
                            tarn_lanes_end(&lowest->members, s, first));
        raise_groups(decoder, obstacle, tarn_lanes_begin(&lowest->heads, s),
                     tarn_lanes_end(&lowest->heads, s, first));
    }
    if (floats || lowest->groups_count == 0) return;
    for (uint32_t run = lowest->lone.count / RUN; run < decoder->runs_count; run++)
        measure_run(decoder, run);
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
                           uint32_t group, struct tarn_span *span)
{
    const struct tarn_lowest *lowest = decoder->lowest;
    int32_t start = decoder->offset[lowest->lone.count + group];
    uint32_t i = find_member(lowest, lowest->group_begin[group], lowest->group_begin[group + 1],
                             offset - start);
    for (; i < lowest->group_begin[group + 1]; i++) {
        uint32_t m = lowest->member[i];
        *span = (struct tarn_span){start + lowest->within[m], start + lowest->member_end[m]};
        if (is_unsafe(lowest, lowest->lone.storage[place], lowest->members.storage[m])) return true;
    }
    return false;
}

/* The least offset from `offset` on at which a lone storage meets no placed member, and the ceiling
 * above that. */
static int32_t settle_lone(struct tarn_decoder *decoder, uint32_t place, int32_t offset)
{
    const struct tarn_lowest *lowest = decoder->lowest;
    struct tarn_span span;
    bool moved = true;
    while (moved) {
        moved = false;
        offset = align(lowest, place, offset);
        decoder->ceiling[place] = lowest->ceiling[place];
        for (uint32_t i = 0; i < decoder->groups_count && !moved; i++) {
            if (!first_conflict(decoder, place, offset, (uint32_t)decoder->groups[i], &span))
                continue;
            moved = span.begin < offset + lowest->size[place];
            if (moved)
                offset = span.end;
            else if (span.begin < decoder->ceiling[place])
                decoder->ceiling[place] = span.begin;
        }
    }
    return offset;
}

/* The least offset of a group, from `offset` on, at which none of its members meets one of a placed
 * group that it meets now. Members are in order, so that those one may meet follow each other. */
static int32_t clear_of(const struct tarn_decoder *decoder, uint32_t group, int32_t offset,
                        uint32_t other)
{
    const struct tarn_lowest *lowest = decoder->lowest;
    int32_t away = decoder->offset[lowest->lone.count + other] - offset, least = 0;
    uint32_t i_end = lowest->group_begin[group + 1], k_end = lowest->group_begin[other + 1];
    uint32_t i = find_member(lowest, lowest->group_begin[group], i_end, away);
    uint32_t first = lowest->group_begin[other];
    for (; i < i_end; i++) {
        uint32_t m = lowest->member[i];
        first = find_member(lowest, first, k_end, lowest->within[m] - away);
        for (uint32_t k = first; k < k_end; k++) {
            uint32_t n = lowest->member[k];
            int32_t clear = away + lowest->member_end[n] - lowest->within[m];
            if (away + lowest->within[n] >= lowest->member_end[m]) break;
            if (clear > least &&
                is_unsafe(lowest, lowest->members.storage[m], lowest->members.storage[n]))
                least = clear;
        }
        if (first == k_end) break;
    }
    return offset + least;
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
        for (uint32_t i = 0; i < decoder->groups_count && !moved; i++) {
            int32_t cleared = clear_of(decoder, group, offset, (uint32_t)decoder->groups[i]);
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
    for (uint32_t i = 0; i < decoder->groups_count; i++) {
        uint32_t place = lowest->lone.count + (uint32_t)decoder->groups[i];
        if (decoder->offset[place] + lowest->size[place] > current)
            decoder->groups[kept++] = decoder->groups[i];
    }
    decoder->groups_count = kept;
}

/* Where the place can really be put, at its limit or above. */
static int32_t settle(struct tarn_decoder *decoder, uint32_t place, const int32_t *floor)
{
    const struct tarn_lowest *lowest = decoder->lowest;
    int32_t offset = decoder->limit[place];
    if (offset + lowest->size[place] <= decoder->ceiling[place]) return offset;
    if (floor && floor[place] > offset) {
        offset = floor[place];
        if (decoder->lifted[place] == TARN_NONE) decoder->lifted[place] = decoder->done;
    }
    drop_passed(decoder, decoder->limit[place]);
    if (place < lowest->lone.count) return settle_lone(decoder, place, offset);
    return settle_group(decoder, place, offset);
}

/* ---- Selection ---- */

static uint32_t place_of(uint32_t run, int32_t first)
{
    return run * RUN + (RUN - 1 - (uint32_t)first % RUN);
}

/* Who of those with the least limit of the run comes first. */
static int32_t first_of(struct tarn_decoder *decoder, const int32_t *key, uint32_t run)
{
    int32_t limit = decoder->run_limit[run], first = decoder->run_first[run];
    if (first == UNKNOWN || decoder->limit[place_of(run, first)] != limit)
        first =
            decoder->kernels->foremost(decoder->limit + (size_t)run * RUN, key + (size_t)run * RUN,
                                       run_size(decoder->lowest, run), limit);
    return decoder->run_first[run] = first;
}

struct first {
    int32_t key_and_place; /* as kernels.foremost has it; negative: none yet */
    uint32_t run;
};

/* Looks in 64 runs, from `lap` on, for who of those with this limit comes first. */
static void look_for_first(struct tarn_decoder *decoder, const int32_t *key, uint32_t lap,
                           int32_t limit, struct first *first)
{
    uint32_t left = decoder->runs_count - lap, end = left < RUN ? decoder->runs_count : lap + RUN;
    if (decoder->kernels->least(decoder->run_limit + lap, end - lap) != limit) return;
    for (uint32_t run = lap; run < end; run++) {
        if (decoder->run_limit[run] != limit) continue;
        int32_t own = first_of(decoder, key, run);
        if (first->key_and_place < 0 || own / RUN > first->key_and_place / RUN)
            *first = (struct first){own, run};
    }
}

/* The block that comes next; there is one. */
static uint32_t select_place(struct tarn_decoder *decoder, const int32_t *key)
{
    int32_t limit = decoder->kernels->least(decoder->run_limit, decoder->runs_count);
    struct first first = {-1, 0};
    for (uint32_t lap = 0; lap < decoder->runs_count; lap += RUN)
        look_for_first(decoder, key, lap, limit, &first);
    return place_of(first.run, first.key_and_place);
}

/* ---- Decoding ---- */

void tarn_decoder_start(struct tarn_decoder *decoder, const int32_t *floor)
{
    const struct tarn_lowest *lowest = decoder->lowest;
    memset(decoder->limit, 0, lowest->count * sizeof *decoder->limit);
    memset(decoder->member_limit, 0, lowest->members.count * sizeof *decoder->member_limit);
    memset(decoder->lifted, 0xff, lowest->count * sizeof *decoder->lifted);
    memcpy(decoder->ceiling, lowest->ceiling, lowest->count * sizeof *decoder->ceiling);
    decoder->groups_count = decoder->done = 0;
    decoder->current = decoder->top = 0;
    decoder->miss = 0;
    for (uint32_t run = 0; run < decoder->runs_count; run++) {
        decoder->run_limit[run] = PLACED;
        measure_run(decoder, run);
    }
    if (floor) tarn_decoder_forget(decoder, floor);
}

void tarn_decoder_forget(struct tarn_decoder *decoder, const int32_t *floor)
{
    for (uint32_t place = 0; place < decoder->lowest->count; place++)
        decoder->ceiling[place] =
            floor[place] > decoder->limit[place] ? 0 : decoder->ceiling[place];
    for (uint32_t run = 0; run < decoder->runs_count; run++) decoder->run_first[run] = UNKNOWN;
}

static void place_at(struct tarn_decoder *decoder, uint32_t place, int32_t offset)
{
    const struct tarn_lowest *lowest = decoder->lowest;
    decoder->offset[place] = decoder->current = offset;
    decoder->step[place] = decoder->done++;
    decoder->limit[place] = PLACED;
    measure_run(decoder, place / RUN);
    if (place < lowest->lone.count) {
        struct tarn_span span = {offset, offset + lowest->size[place]};
        struct obstacle obstacle = obstacle_of(lowest, lowest->lone.storage[place], span);
        raise_conflicts(decoder, &obstacle, false);
        return;
    }
    uint32_t group = place - lowest->lone.count;
    decoder->groups[decoder->groups_count++] = (int32_t)group;
    for (uint32_t i = lowest->group_begin[group]; i < lowest->group_begin[group + 1]; i++) {
        uint32_t m = lowest->member[i];
        struct tarn_span span = {offset + lowest->within[m], offset + lowest->member_end[m]};
        struct obstacle obstacle = obstacle_of(lowest, lowest->members.storage[m], span);
        raise_conflicts(decoder, &obstacle, true);
    }
}

/* What a block with this end adds to the miss, when the blocks before it reach up to `top`. */
static int64_t miss_of(struct tarn_objective objective, int32_t size, int32_t end, int32_t top)
{
    int32_t above = end - objective.aim, rise = end - (top > objective.aim ? top : objective.aim);
    if (above <= 0) return 0;
    return (int64_t)(above < size ? above : size) * objective.bytes_weight +
           (int64_t)(rise > 0 ? rise : 0) * objective.top_weight;
}

bool tarn_decoder_advance(struct tarn_decoder *decoder, const int32_t *key, const int32_t *floor,
                          struct tarn_objective objective, int64_t miss_max, uint32_t until)
{
    const struct tarn_lowest *lowest = decoder->lowest;
    while (decoder->done < until) {
        uint32_t place = select_place(decoder, key);
        int32_t offset = settle(decoder, place, floor), size = lowest->size[place];
        if (offset > TARN_UNITS_MAX - size) return false;
        if (offset > decoder->limit[place]) {
            decoder->limit[place] = offset;
            measure_run(decoder, place / RUN);
            continue;
        }
        decoder->miss += miss_of(objective, size, offset + size, decoder->top);
        if (decoder->miss > miss_max) return false;
        place_at(decoder, place, offset);
        if (offset + size > decoder->top) decoder->top = offset + size;
    }
    return true;
}

int64_t tarn_decoder_expect(const struct tarn_decoder *decoder, struct tarn_objective objective)
{
    const int32_t *size = decoder->lowest->size;
    int64_t bytes = 0;
    int32_t top = decoder->top;
    for (uint32_t i = 0; i < decoder->lowest->count; i++) {
        int32_t end = decoder->limit[i] == PLACED ? 0 : decoder->limit[i] + size[i];
        int32_t above = end > objective.aim ? end - objective.aim : 0;
        bytes += above < size[i] ? above : size[i];
        top = end > top ? end : top;
    }
    return decoder->miss + bytes * objective.bytes_weight +
           miss_of((struct tarn_objective){objective.aim, objective.top_weight, 0}, 0, top,
                   decoder->top);
}

/* ---- Making ---- */

static int32_t *take(int32_t **next, size_t count)
{
    int32_t *taken = *next;
    *next += count;
    return taken;
}

enum tarn_status tarn_decoder_init(struct tarn_decoder *decoder, const struct tarn_lowest *lowest)
{
    size_t count = lowest->count, runs = count / RUN + 1;
    memset(decoder, 0, sizeof *decoder);
    decoder->lowest = lowest;
    decoder->kernels = tarn_kernels_choose();
    decoder->state_size = 2 * count + lowest->members.count + 2 * runs + lowest->groups_count;
    decoder->state = calloc(decoder->state_size + 1, sizeof *decoder->state);
    decoder->offset = calloc(count + 1, sizeof *decoder->offset);
    decoder->step = calloc(count + 1, sizeof *decoder->step);
    decoder->lifted = malloc((count + 1) * sizeof *decoder->lifted);
    if (!decoder->state || !decoder->offset || !decoder->step || !decoder->lifted) {
        tarn_decoder_finish(decoder);
        return TARN_SYSTEM;
    }
    int32_t *next = decoder->state;
    decoder->limit = take(&next, count);
    decoder->ceiling = take(&next, count);
    decoder->member_limit = take(&next, lowest->members.count);
    decoder->run_limit = take(&next, runs);
    decoder->run_first = take(&next, runs);
    decoder->groups = take(&next, lowest->groups_count);
    decoder->runs_count = (lowest->count + RUN - 1) / RUN;
    return TARN_OK;
}

void tarn_decoder_finish(struct tarn_decoder *decoder)
{
    free(decoder->state);
    free(decoder->offset);
    free(decoder->step);
    free(decoder->lifted);
    memset(decoder, 0, sizeof *decoder);
}
