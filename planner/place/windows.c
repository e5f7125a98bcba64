/* Placement by windows, the whole: streams whose storages others hardly ever release go first
 * (split.h), each by itself; the rest then stays above what a stream has placed up to where its own
 * storages are released, which is a floor for each. window.c has how such a part is placed.
 * Source: DESIGN.md, section 3 (Windows). Cost: O(T S turns), and what the parts cost. */
#include "windows.h"

#include <stdlib.h>
#include <string.h>

#include "../../streams/graph/size.h"
#include "lowest.h"
#include "split.h"
#include "window.h"

#ifdef _OPENMP
#include <omp.h>
#endif

enum { FAR_WINDOWS = 16, FAR_SHARE = 8, CROSSING_MAX = 32768 }; /* unless options say otherwise */

/* ---- Streams by themselves ---- */

struct turns {
    const struct tarn_windows_settings *settings;
    const struct tarn_field *field;
    struct tarn_whole whole;
    uint32_t *turn;     /* by stream */
    uint32_t *storages; /* of the turn at hand, in the order of slots */
    int32_t *reach;     /* position in the turn's stream -> how high those before it reach */
};

static bool is_in_turn(const struct turns *turns, uint32_t b, uint32_t n)
{
    const struct tarn_block *block = &turns->field->problem->blocks->blocks[b];
    const uint32_t *stream = turns->field->problem->conflicts->reuse->stream;
    uint32_t last = 0;
    for (uint32_t i = 0; i < block->members_count; i++)
        if (turns->turn[stream[block->members[i]]] > last)
            last = turns->turn[stream[block->members[i]]];
    return last == n;
}

/* Everything that does not precede a storage of stream s up to where the block is released is below
 * its floor. */
static void raise_floors(const struct turns *turns, uint32_t s, uint32_t count)
{
    const struct tarn_field *field = turns->field;
    const struct tarn_reuse *reuse = field->problem->conflicts->reuse;
    const struct tarn_blocks *blocks = field->problem->blocks;
    uint32_t length = field->problem->graph->streams[s].ops_count;
    memset(turns->reach, 0, ((size_t)length + 2) * sizeof *turns->reach);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t a = turns->storages[i];
        if (reuse->stream[a] != s) continue;
        int32_t end =
            tarn_field_span(field, turns->settings->unit_shift, turns->whole.block_of[a], a).end;
        int32_t *reach = &turns->reach[reuse->position[a] + 1];
        if (end > *reach) *reach = end;
    }
    for (uint32_t p = 0; p < length; p++)
        if (turns->reach[p] > turns->reach[p + 1]) turns->reach[p + 1] = turns->reach[p];
    for (uint32_t b = 0; b < blocks->count; b++)
        for (uint32_t i = 0; i < blocks->blocks[b].members_count; i++) {
            uint32_t a = blocks->blocks[b].members[i];
            int32_t floor = turns->reach[reuse->first[(size_t)s * reuse->count + a]];
            if (floor > field->floor[b]) field->floor[b] = floor;
        }
}

static uint32_t list_storages(const struct turns *turns, const uint32_t *storage_at, uint32_t n)
{
    uint32_t count = 0;
    for (uint32_t slot = 0; slot < turns->field->problem->conflicts->reuse->count; slot++) {
        uint32_t a = storage_at[slot];
        if (is_in_turn(turns, turns->whole.block_of[a], n)) turns->storages[count++] = a;
    }
    return count;
}

static bool take_turns(const struct turns *turns, uint32_t turns_count, int32_t *top)
{
    const struct tarn_reuse *reuse = turns->field->problem->conflicts->reuse;
    const uint32_t *slot_of = turns->field->problem->conflicts->slot_of;
    uint32_t *storage_at = malloc(((size_t)reuse->count + 1) * sizeof *storage_at);
    bool ok = storage_at != NULL;
    for (uint32_t a = 0; ok && a < reuse->count; a++) storage_at[slot_of[a]] = a;
    *top = 0;
    for (uint32_t n = 0; ok && n < turns_count && *top < INT32_MAX; n++) {
        uint32_t count = list_storages(turns, storage_at, n);
        int32_t own_top = INT32_MAX;
        if (count == 0) continue;
        ok = tarn_window_place_storages(turns->settings, turns->field, &turns->whole,
                                        turns->storages, count, NULL, 0, 0, &own_top);
        if (own_top > *top) *top = own_top;
        for (uint32_t s = 0; ok && n + 1 < turns_count && s < reuse->streams_count; s++)
            if (turns->turn[s] <= n && own_top < INT32_MAX) raise_floors(turns, s, count);
    }
    free(storage_at);
    return ok;
}

static bool place_by_turns(const struct tarn_windows_settings *settings,
                           const struct tarn_field *field, int32_t *top)
{
    struct turns turns = {.settings = settings, .field = field};
    const struct tarn_reuse *reuse = field->problem->conflicts->reuse;
    uint32_t turns_count = 1;
    turns.turn = malloc(((size_t)reuse->streams_count + 1) * sizeof *turns.turn);
    bool ok = turns.turn && tarn_split_streams(field->problem, settings->far, turns.turn,
                                               &turns_count) == TARN_OK;
    if (ok && turns_count == 1) {
        ok = tarn_window_place_field(settings, field, top);
    } else if (ok) {
        turns.storages = malloc(((size_t)reuse->count + 1) * sizeof *turns.storages);
        turns.reach = malloc(((size_t)field->problem->graph->ops_count + 2) * sizeof *turns.reach);
        ok = turns.storages && turns.reach &&
             tarn_whole_init(&turns.whole, field->problem) == TARN_OK &&
             take_turns(&turns, turns_count, top);
        tarn_whole_finish(&turns.whole);
        free(turns.storages);
        free(turns.reach);
    }
    free(turns.turn);
    return ok;
}

/* ---- The whole ---- */

static int threads_for(uint32_t threads)
{
#ifdef _OPENMP
    if (threads == 0) threads = (uint32_t)omp_get_num_procs();
#endif
    return (int)threads;
}

static struct tarn_windows_settings settings_of(const struct tarn_problem *problem,
                                                const struct tarn_windows_options *options)
{
    uint64_t most;
    uint32_t far_windows = options->far_windows ? options->far_windows : FAR_WINDOWS;
    struct tarn_windows_settings settings = {
        .width = options->width,
        .far = far_windows * options->width,
        .crossing_max = options->crossing_max ? options->crossing_max : CROSSING_MAX,
        .threads = threads_for(options->threads),
        .until = options->until};
    if (settings.far > problem->blocks->storages_count / FAR_SHARE && !options->far_windows)
        settings.far = problem->blocks->storages_count / FAR_SHARE;
    if (!tarn_size_multiply(options->aim, 4, &most)) most = UINT64_MAX;
    settings.unit_shift = tarn_lowest_unit_shift(problem->blocks, most);
    uint64_t aim = options->aim >> settings.unit_shift;
    settings.aim = (int32_t)(aim < TARN_UNITS_MAX ? aim : TARN_UNITS_MAX);
    return settings;
}

static void write_offsets(const struct tarn_windows_settings *settings,
                          const struct tarn_field *field, uint64_t *offset)
{
    const struct tarn_blocks *blocks = field->problem->blocks;
    for (uint32_t b = 0; b < blocks->count; b++)
        for (uint32_t i = 0; i < blocks->blocks[b].members_count; i++) {
            uint32_t a = blocks->blocks[b].members[i];
            offset[a] = ((uint64_t)field->offset[b] << settings->unit_shift) + blocks->within[a];
        }
}

enum tarn_status tarn_windows_place(const struct tarn_problem *problem,
                                    const struct tarn_antichain *antichain,
                                    const struct tarn_windows_options *options, uint64_t *offset,
                                    uint64_t *footprint)
{
    const struct tarn_reuse *reuse = problem->conflicts->reuse;
    struct tarn_windows_settings settings = settings_of(problem, options);
    struct tarn_field field = {0};
    int32_t top = INT32_MAX;
    bool ok = tarn_field_init(&field, problem);
    if (ok) {
        for (uint32_t a = 0; a < reuse->count; a++)
            field.in_antichain[a] = tarn_antichain_has(antichain->threshold, reuse, a);
        ok = place_by_turns(&settings, &field, &top);
    }
    if (ok && top < INT32_MAX) {
        write_offsets(&settings, &field, offset);
        *footprint = tarn_blocks_footprint(problem->blocks, offset);
    }
    tarn_field_finish(&field);
    return ok ? TARN_OK : TARN_SYSTEM;
}
