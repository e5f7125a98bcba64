/* Placement by windows, the whole: streams whose storages others hardly ever release go first
 * (split.h), each by itself; the rest then stays above what a stream has placed up to where its own
 * storages are released, which is a floor for each. window.c has how such a part is placed.
 * Source: DESIGN.md, section 3 (Windows). Cost: O(T S turns), and what the parts cost. */
#include "windows.h"

#include <stdlib.h>
#include <string.h>

#include "planner/place/lowest/lowest.h"
#include "split.h"
#include "streams/base/checked.h"
#include "window.h"

enum { FAR_WINDOWS = 16, FAR_SHARE = 8, CROSSING_MAX = 32768 }; /* unless options say otherwise */

/* ---- Streams by themselves ---- */

struct turns {
    const struct tarn_windows_settings *settings;
    const struct tarn_field *field;
    uint32_t *turn; /* by stream */
    uint32_t count;
    uint32_t *storages; /* turn by turn, each in the order of slots */
    uint32_t *begin;    /* turn -> where its storages begin; count + 1 */
};

/* A block has the last turn of its members' streams. */
static void find_turns(const struct turns *turns, uint32_t *turn_of)
{
    const struct tarn_blocks *blocks = turns->field->problem->blocks;
    const uint32_t *stream = turns->field->problem->conflicts->reuse->stream;
    for (uint32_t b = 0; b < blocks->count; b++) {
        struct tarn_block block = tarn_block_at(blocks, b);
        turn_of[b] = 0;
        for (uint32_t i = 0; i < block.members_count; i++)
            if (turns->turn[stream[block.members[i]]] > turn_of[b])
                turn_of[b] = turns->turn[stream[block.members[i]]];
    }
}

/* Counting sort; begin[n] is moved along, and back at the end. */
static void fill_storages(struct turns *turns, const uint32_t *turn_of, uint32_t *storage_at)
{
    const struct tarn_conflicts *conflicts = turns->field->problem->conflicts;
    const uint32_t *block_of = turns->field->block_of;
    uint32_t count = conflicts->reuse->count;
    for (uint32_t a = 0; a < count; a++) {
        storage_at[conflicts->slot_of[a]] = a;
        turns->begin[turn_of[block_of[a]] + 1]++;
    }
    for (uint32_t n = 0; n < turns->count; n++) turns->begin[n + 1] += turns->begin[n];
    for (uint32_t slot = 0; slot < count; slot++) {
        uint32_t a = storage_at[slot];
        turns->storages[turns->begin[turn_of[block_of[a]]]++] = a;
    }
    for (uint32_t n = turns->count; n > 0; n--) turns->begin[n] = turns->begin[n - 1];
    turns->begin[0] = 0;
}

static bool sort_storages(struct turns *turns)
{
    const struct tarn_blocks *blocks = turns->field->problem->blocks;
    size_t count = (size_t)blocks->storages_count + 1;
    uint32_t *turn_of = malloc(((size_t)blocks->count + 1) * sizeof *turn_of);
    uint32_t *storage_at = malloc(count * sizeof *storage_at);
    turns->begin = calloc((size_t)turns->count + 1, sizeof *turns->begin);
    turns->storages = malloc(count * sizeof *turns->storages);
    bool ok = turn_of && storage_at && turns->begin && turns->storages;
    if (ok) {
        find_turns(turns, turn_of);
        fill_storages(turns, turn_of, storage_at);
    }
    free(turn_of);
    free(storage_at);
    return ok;
}

/* Writes how high what turn n has placed of stream s reaches, by position: what was produced
 * before. */
static void measure_reach(const struct turns *turns, uint32_t n, uint32_t s, int32_t *reach)
{
    const struct tarn_field *field = turns->field;
    const struct tarn_reuse *reuse = field->problem->conflicts->reuse;
    uint32_t length = field->problem->graph->streams[s].ops_count;
    memset(reach, 0, ((size_t)length + 1) * sizeof *reach);
    for (uint32_t i = turns->begin[n]; i < turns->begin[n + 1]; i++) {
        uint32_t a = turns->storages[i];
        if (reuse->stream[a] != s) continue;
        int32_t end = tarn_field_span(field, turns->settings->unit_shift, a).end;
        if (end > reach[reuse->position[a] + 1]) reach[reuse->position[a] + 1] = end;
    }
    for (uint32_t p = 0; p < length; p++)
        if (reach[p] > reach[p + 1]) reach[p + 1] = reach[p];
}

/* Everything that does not precede a storage of these streams up to where the block is released is
 * below its floor. */
static bool raise_floors(const struct turns *turns, uint32_t n)
{
    const struct tarn_field *field = turns->field;
    const struct tarn_reuse *reuse = field->problem->conflicts->reuse;
    int32_t *reach = malloc(((size_t)field->problem->graph->ops_count + 1) * sizeof *reach);
    for (uint32_t s = 0; reach && s < reuse->streams_count; s++) {
        if (turns->turn[s] > n) continue;
        measure_reach(turns, n, s, reach);
        for (uint32_t a = 0; a < reuse->count; a++) {
            int32_t *floor = &field->floor[field->block_of[a]];
            int32_t end = reach[reuse->first[(size_t)s * reuse->count + a]];
            if (end > *floor) *floor = end;
        }
    }
    free(reach);
    return reach != NULL;
}

static bool take_turns(const struct turns *turns, int32_t *top)
{
    bool ok = true;
    *top = 0;
    for (uint32_t n = 0; ok && n < turns->count && *top < INT32_MAX; n++) {
        uint32_t begin = turns->begin[n], count = turns->begin[n + 1] - begin;
        int32_t own_top = INT32_MAX;
        if (count == 0) continue;
        ok = tarn_window_place(turns->settings, turns->field, turns->storages + begin, count,
                               &own_top);
        if (own_top > *top) *top = own_top;
        if (ok && n + 1 < turns->count && own_top < INT32_MAX) ok = raise_floors(turns, n);
    }
    return ok;
}

static void put_together(struct turns *turns)
{
    uint32_t streams_count = turns->field->problem->graph->streams_count;
    for (uint32_t s = 0; turns->turn && s < streams_count; s++) turns->turn[s] = 0;
    turns->count = 1;
}

static bool place_by_turns(const struct tarn_windows_settings *settings,
                           const struct tarn_field *field, bool together, int32_t *top)
{
    const struct tarn_problem *problem = field->problem;
    struct turns turns = {.settings = settings, .field = field};
    turns.turn = malloc(((size_t)problem->graph->streams_count + 1) * sizeof *turns.turn);
    bool ok = turns.turn &&
              tarn_split_streams(problem, settings->far, turns.turn, &turns.count) == TARN_OK;
    bool differs = turns.count > 1 || !together;
    if (together) put_together(&turns);
    ok = ok && (!differs || (sort_storages(&turns) && take_turns(&turns, top)));
    free(turns.turn);
    free(turns.begin);
    free(turns.storages);
    return ok;
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
    if (settings.far > problem->blocks->storages_count / FAR_SHARE && !options->far_windows)
        settings.far = problem->blocks->storages_count / FAR_SHARE;
    if (!tarn_size_multiply(options->aim, 4, &most)) most = UINT64_MAX;
    settings.unit_shift = tarn_lowest_unit_shift(problem->blocks, most);
    uint64_t aim = options->aim >> settings.unit_shift;
    settings.aim = (int32_t)(aim < TARN_UNITS_MAX ? aim : TARN_UNITS_MAX);
    return settings;
}

static uint64_t footprint_of(const struct tarn_windows_settings *settings,
                             const struct tarn_field *field)
{
    const struct tarn_blocks *blocks = field->problem->blocks;
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
    const struct tarn_blocks *blocks = field->problem->blocks;
    for (uint32_t a = 0; a < blocks->storages_count; a++) {
        uint64_t start = (uint64_t)field->offset[field->block_of[a]] << settings->unit_shift;
        offset[a] = start + blocks->within[a];
    }
}

enum tarn_status tarn_windows_place(const struct tarn_problem *problem,
                                    const struct tarn_antichain *antichain,
                                    const struct tarn_windows_options *options, uint64_t *offset,
                                    uint64_t *footprint)
{
    struct tarn_windows_settings settings = settings_of(problem, options);
    struct tarn_effort no_limit = {.max = UINT64_MAX};
    struct tarn_field field = {0};
    if (!settings.effort) settings.effort = &no_limit;
    int32_t top = INT32_MAX;
    bool ok = tarn_field_init(&field, problem, antichain) &&
              place_by_turns(&settings, &field, options->together, &top);
    if (ok && top < INT32_MAX) {
        uint64_t found = footprint_of(&settings, &field);
        if (found < *footprint) write_offsets(&settings, &field, offset);
        if (found < *footprint) *footprint = found;
    }
    tarn_field_finish(&field);
    return ok ? TARN_OK : TARN_SYSTEM;
}
