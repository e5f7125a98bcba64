/* Windows. The global order is cut where few storages cross (cuts.h). What crosses a cut is placed
 * first, as a problem of its own; then every window, in parallel, with what crosses it as
 * obstacles:
 *
 *     offset ▲      │  window 1   │  window 2   │
 *            │   ▒▒▒│▒▒▒▒▒▒▒▒▒▒▒▒▒│▒▒▒▒         │    ▒ crosses a cut
 *            │  ░ ░░│  ░░░        │   ░░ ░░ ░   │    ░ placed in its window, around the others
 *            └──────┴─────────────┴─────────────┴─► global order
 *
 * What is in conflict with all of a window is a bare interval there: a tree over the windows holds
 * the unions of these, so that a storage which crosses many windows costs a logarithm of their
 * number. A plan is as high as its highest window: only those above the aim are placed again, with
 * other keys, the highest first.
 *
 * Many storages that cross are placed by wider windows where they are few of all, and as bundles
 * (bundles.h) where they cross many windows, as in one long training step. Streams whose
 * storages others hardly ever release go first (split.h), each by itself; the rest then stays above
 * what a stream has placed up to where its own storages are released, which is a floor for each.
 * Source: DESIGN.md, section 3 (Windows). Cost: a decode of every window. */
#include "windows.h"

#include <stdlib.h>
#include <string.h>

#include "../../streams/graph/size.h"
#include "bundles.h"
#include "cuts.h"
#include "keys.h"
#include "part.h"
#include "split.h"

#ifdef _OPENMP
#include <omp.h>
#define IN_PARALLEL(directive) _Pragma(#directive)
#else
#define IN_PARALLEL(directive)
#endif

enum { BATCH = 16, PARTLY_MAX = 4, BUNDLES_IN_ALL = 512, BUNDLED_SPAN = 16, WIDER = 16 };
enum { FAR_WINDOWS = 16, FAR_SHARE = 8, CROSSING_MAX = 32768 }; /* unless options say otherwise */

/* Obstacles of a node of the tree: sorted, disjoint. */
struct spans {
    struct tarn_span *list;
    uint32_t count, capacity;
};

/* What is to be placed, the whole or a part of it. */
struct field {
    const struct tarn_problem *problem;
    bool *in_antichain; /* by storage */
    int32_t *floor;     /* by block */
    int32_t *offset;    /* by block, in units: the result */
};

struct settings {
    uint32_t unit_shift, width, far, crossing_max;
    int32_t aim;
    int threads;
};

/* A field cut into windows. */
struct windows {
    const struct settings *settings;
    const struct field *field;
    struct tarn_whole whole;
    struct tarn_cuts cuts;
    int32_t *top;    /* by window; the last is that of what crosses; INT32_MAX: not placed */
    uint32_t leaves; /* of the tree: leaf w is node leaves + w */
    struct spans *wholly;
    struct tarn_obstacles *partly; /* by window */
};

static bool place_field(const struct settings *settings, const struct field *field, int32_t *top);

/* ---- Fields ---- */

static bool field_init(struct field *field, const struct tarn_problem *problem)
{
    size_t storages = (size_t)problem->blocks->storages_count + 1;
    size_t blocks = (size_t)problem->blocks->count + 1;
    field->problem = problem;
    field->in_antichain = malloc(storages);
    field->floor = calloc(blocks, sizeof *field->floor);
    field->offset = calloc(blocks, sizeof *field->offset);
    return field->in_antichain && field->floor && field->offset;
}

static void field_finish(struct field *field)
{
    free(field->in_antichain);
    free(field->floor);
    free(field->offset);
}

/* Makes a part's field out of that of the whole. */
static bool field_init_part(struct field *field, const struct field *whole,
                            const struct tarn_part *part)
{
    if (!field_init(field, &part->problem)) return false;
    for (uint32_t i = 0; i < part->blocks.storages_count; i++)
        field->in_antichain[i] = whole->in_antichain[part->origin[i]];
    for (uint32_t b = 0; b < part->blocks.count; b++)
        field->floor[b] = whole->floor[part->origin_block[b]];
    return true;
}

static void take_offsets(const struct field *whole, const struct tarn_part *part,
                         const struct field *field)
{
    for (uint32_t b = 0; b < part->blocks.count; b++)
        whole->offset[part->origin_block[b]] = field->offset[b];
}

/* ---- Placing a part ---- */

/* Decodes with keys begin..end until the aim is met; the best plan becomes the field's where it is
 * lower than *top. */
static bool decode_keys(const struct settings *settings, const struct field *field,
                        const struct tarn_lowest *lowest, const struct tarn_traits *traits,
                        uint32_t begin, uint32_t end, int32_t *top)
{
    struct tarn_decoder decoder;
    size_t count = (size_t)lowest->count + 1;
    int32_t *key = malloc(count * sizeof *key), *floor = malloc(count * sizeof *floor);
    bool ok = tarn_decoder_init(&decoder, lowest) == TARN_OK && key && floor;
    for (uint32_t place = 0; ok && place < lowest->count; place++)
        floor[place] = field->floor[lowest->block[place]];
    for (uint32_t i = begin; ok && i<end && * top> settings->aim; i++) {
        ok = tarn_keys_fill(lowest, traits, i, key) == TARN_OK;
        if (!ok) break;
        tarn_decoder_start(&decoder, floor);
        if (!tarn_decoder_advance(&decoder, key, floor, (struct tarn_objective){0, 1, 0}, *top - 1,
                                  lowest->count))
            continue;
        *top = decoder.top;
        for (uint32_t place = 0; place < lowest->count; place++)
            field->offset[lowest->block[place]] = decoder.offset[place];
    }
    tarn_decoder_finish(&decoder);
    free(key);
    free(floor);
    return ok;
}

static bool decode_around(const struct settings *settings, const struct field *field,
                          const struct tarn_obstacles *obstacles, uint32_t begin, uint32_t end,
                          int32_t *top)
{
    struct tarn_lowest lowest = {0};
    struct tarn_traits traits = {0};
    bool ok = tarn_lowest_init_around(&lowest, field->problem, obstacles) == TARN_OK &&
              tarn_traits_init(&traits, &lowest, field->in_antichain) == TARN_OK &&
              decode_keys(settings, field, &lowest, &traits, begin, end, top);
    tarn_traits_finish(&traits);
    tarn_lowest_finish(&lowest);
    return ok;
}

/* Places some storages of a field with keys begin..end around obstacles, or by windows where there
 * are none. */
static bool place_storages(const struct settings *settings, const struct field *whole_field,
                           const struct tarn_whole *whole, const uint32_t *storages, uint32_t count,
                           struct tarn_obstacles *obstacles, uint32_t begin, uint32_t end,
                           int32_t *top)
{
    struct tarn_part part;
    struct field field = {0};
    int32_t before = *top;
    if (tarn_part_init(&part, whole, storages, count) != TARN_OK) return false;
    bool ok = field_init_part(&field, whole_field, &part);
    if (ok && obstacles) {
        obstacles->origin = part.origin;
        ok = decode_around(settings, &field, obstacles, begin, end, top);
    } else if (ok) {
        ok = place_field(settings, &field, top);
    }
    if (ok && *top < before) take_offsets(whole_field, &part, &field);
    field_finish(&field);
    tarn_part_finish(&part);
    return ok;
}

/* ---- Obstacles ---- */

/* Adds a span that begins at or above all before it. */
static bool spans_add(struct spans *spans, struct tarn_span span)
{
    struct tarn_span *last = spans->count > 0 ? &spans->list[spans->count - 1] : NULL;
    if (last && span.begin <= last->end) {
        if (span.end > last->end) last->end = span.end;
        return true;
    }
    if (spans->count == spans->capacity) {
        uint32_t capacity = spans->capacity ? 2 * spans->capacity : 8;
        struct tarn_span *list = realloc(spans->list, capacity * sizeof *list);
        if (!list) return false;
        spans->list = list;
        spans->capacity = capacity;
    }
    spans->list[spans->count++] = span;
    return true;
}

/* In conflict with all of windows begin..end. */
static bool add_wholly(struct windows *windows, uint32_t begin, uint32_t end, struct tarn_span span)
{
    bool ok = true;
    begin += windows->leaves;
    end += windows->leaves;
    for (; ok && begin < end; begin /= 2, end /= 2) {
        if (begin % 2) ok = spans_add(&windows->wholly[begin++], span);
        if (ok && end % 2) ok = spans_add(&windows->wholly[--end], span);
    }
    return ok;
}

static bool add_partly(struct windows *windows, uint32_t begin, uint32_t end, struct tarn_span span,
                       uint32_t storage)
{
    for (uint32_t w = begin; w < end; w++)
        if (tarn_obstacles_add(&windows->partly[w], span, storage) != TARN_OK) return false;
    return true;
}

/* A storage that crosses, to the windows that it crosses: those in which it is produced and
 * released are in conflict with it partly; so may be more, of which the last few are told apart. */
static bool add_obstacle(struct windows *windows, uint32_t a, struct tarn_span span)
{
    const struct tarn_cuts *cuts = &windows->cuts;
    uint32_t first = cuts->window_of[cuts->since[a]], end = cuts->window_of[cuts->until[a] - 1] + 1;
    uint32_t whole = cuts->window_of[cuts->whole[a]];
    if (end > whole + PARTLY_MAX) whole = end - PARTLY_MAX;
    if (whole > end) whole = end;
    if (whole < first + 1) whole = first + 1;
    return add_partly(windows, first, first + 1, span, a) &&
           add_wholly(windows, first + 1, whole, span) && add_partly(windows, whole, end, span, a);
}

struct placed {
    struct tarn_span span;
    uint32_t storage;
};

static int compare_placed(const void *left, const void *right)
{
    const struct placed *a = left, *b = right;
    if (a->span.begin != b->span.begin) return a->span.begin < b->span.begin ? -1 : 1;
    return a->storage < b->storage ? -1 : a->storage > b->storage;
}

/* In units, rounded outward. */
static struct tarn_span span_of(const struct settings *settings, const struct field *field,
                                uint32_t block, uint32_t a)
{
    const struct tarn_blocks *blocks = field->problem->blocks;
    uint32_t shift = settings->unit_shift;
    uint64_t unit = (UINT64_C(1) << shift) - 1;
    uint64_t begin = blocks->within[a] >> shift;
    uint64_t end = (blocks->within[a] + blocks->reserved[a] + unit) >> shift;
    return (struct tarn_span){field->offset[block] + (int32_t)begin,
                              field->offset[block] + (int32_t)end};
}

static bool spread_obstacles(struct windows *windows)
{
    const struct tarn_cuts *cuts = &windows->cuts;
    const uint32_t *storages = cuts->storages + cuts->begin[cuts->count];
    uint32_t count = cuts->begin[cuts->count + 1] - cuts->begin[cuts->count];
    struct placed *placed = malloc(((size_t)count + 1) * sizeof *placed);
    bool ok = placed != NULL;
    for (uint32_t i = 0; ok && i < count; i++)
        placed[i] = (struct placed){span_of(windows->settings, windows->field,
                                            windows->whole.block_of[storages[i]], storages[i]),
                                    storages[i]};
    if (ok && count > 0) qsort(placed, count, sizeof *placed, compare_placed);
    for (uint32_t i = 0; ok && i < count; i++)
        ok = add_obstacle(windows, placed[i].storage, placed[i].span);
    free(placed);
    return ok;
}

/* ---- Windows ---- */

static const struct tarn_reuse *reuse_of(const struct windows *windows)
{
    return windows->field->problem->conflicts->reuse;
}

/* Places a window with keys begin..end. */
static bool place_window(const struct windows *windows, uint32_t w, uint32_t begin, uint32_t end)
{
    const struct tarn_cuts *cuts = &windows->cuts;
    const struct tarn_obstacles *partly = &windows->partly[w];
    struct tarn_obstacles obstacles = {.unit_shift = windows->settings->unit_shift,
                                       .reuse = reuse_of(windows)};
    uint32_t count = cuts->begin[w + 1] - cuts->begin[w];
    bool ok = true;
    if (count == 0) {
        windows->top[w] = 0;
        return true;
    }
    for (uint32_t node = windows->leaves + w; ok && node > 0; node /= 2)
        for (uint32_t i = 0; ok && i < windows->wholly[node].count; i++)
            ok =
                tarn_obstacles_add(&obstacles, windows->wholly[node].list[i], TARN_NONE) == TARN_OK;
    for (uint32_t i = 0; ok && i < partly->count; i++)
        ok = tarn_obstacles_add(&obstacles, partly->list[i].span, partly->list[i].storage) ==
             TARN_OK;
    ok = ok && tarn_obstacles_sort(&obstacles) == TARN_OK &&
         place_storages(windows->settings, windows->field, &windows->whole,
                        cuts->storages + cuts->begin[w], count, &obstacles, begin, end,
                        &windows->top[w]);
    tarn_obstacles_finish(&obstacles);
    return ok;
}

/* ---- What crosses ---- */

/* Of the block's members, the first window of the first one and the last window of the last. */
static struct tarn_bundled bundled_of(const struct windows *windows, uint32_t b)
{
    const struct tarn_cuts *cuts = &windows->cuts;
    const struct field *field = windows->field;
    const struct tarn_block *block = &field->problem->blocks->blocks[b];
    uint32_t shift = windows->settings->unit_shift;
    uint64_t unit = (UINT64_C(1) << shift) - 1;
    struct tarn_bundled bundled = {.first = UINT32_MAX,
                                   .size = (int32_t)((block->size + unit) >> shift),
                                   .alignment = (int32_t)((block->alignment + unit) >> shift),
                                   .floor = field->floor[b]};
    for (uint32_t i = 0; i < block->members_count; i++) {
        uint32_t a = block->members[i];
        uint32_t first = cuts->window_of[cuts->since[a]],
                 last = cuts->window_of[cuts->until[a] - 1];
        if (first < bundled.first) bundled.first = first;
        if (last > bundled.last) bundled.last = last;
        bundled.in_antichain = bundled.in_antichain || field->in_antichain[a];
    }
    return bundled;
}

static bool place_bundles(const struct windows *windows, const uint32_t *storages, uint32_t count,
                          int32_t *top)
{
    const struct tarn_blocks *blocks = windows->field->problem->blocks;
    struct tarn_bundled *list = malloc(((size_t)count + 1) * sizeof *list);
    uint32_t *block = malloc(((size_t)count + 1) * sizeof *block), n = 0;
    bool ok = list && block, placed = false;
    for (uint32_t i = 0; ok && i < count; i++) {
        uint32_t b = windows->whole.block_of[storages[i]];
        if (blocks->blocks[b].members[0] != storages[i]) continue;
        block[n] = b;
        list[n++] = bundled_of(windows, b);
    }
    ok = ok && tarn_bundles_place(list, n, windows->cuts.count,
                                  windows->settings->aim / BUNDLES_IN_ALL, top, &placed) == TARN_OK;
    for (uint32_t i = 0; placed && i < n; i++) windows->field->offset[block[i]] = list[i].offset;
    if (!placed) *top = INT32_MAX;
    free(list);
    free(block);
    return ok;
}

/* Do these mostly cross so many windows that the first and the last one hardly count? */
static bool are_long(const struct windows *windows, const uint32_t *storages, uint32_t count)
{
    const struct tarn_cuts *cuts = &windows->cuts;
    uint64_t sum = 0;
    for (uint32_t i = 0; i < count; i++)
        sum += cuts->window_of[cuts->until[storages[i]] - 1] -
               cuts->window_of[cuts->since[storages[i]]];
    return sum / BUNDLED_SPAN >= count;
}

static bool place_crossing(const struct windows *windows)
{
    const struct tarn_cuts *cuts = &windows->cuts;
    const uint32_t *storages = cuts->storages + cuts->begin[cuts->count];
    uint32_t all = cuts->begin[cuts->count + 1], count = all - cuts->begin[cuts->count];
    uint32_t most = windows->settings->crossing_max;
    int32_t *top = &windows->top[cuts->count];
    struct settings wider = *windows->settings;
    struct tarn_obstacles none = {.unit_shift = wider.unit_shift, .reuse = reuse_of(windows)};
    if (count == 0) {
        *top = 0;
        return true;
    }
    if (count > most && are_long(windows, storages, count))
        return place_bundles(windows, storages, count, top);
    wider.width *= WIDER;
    bool again = count > most && count < all / 2;
    bool ok = tarn_obstacles_sort(&none) == TARN_OK &&
              place_storages(&wider, windows->field, &windows->whole, storages, count,
                             again ? NULL : &none, 0, 1, top);
    tarn_obstacles_finish(&none);
    return ok;
}

/* ---- All windows ---- */

static bool place_all(const struct windows *windows)
{
    bool ok = true;
    IN_PARALLEL(omp parallel for num_threads(windows->settings->threads) schedule(dynamic, 1) reduction(&& : ok))
    for (uint32_t w = 0; w < windows->cuts.count; w++) ok = ok && place_window(windows, w, 0, 1);
    return ok;
}

/* The highest window above `least` that is not done, or TARN_NONE. */
static uint32_t highest(const struct windows *windows, const bool *done, int32_t least)
{
    uint32_t found = TARN_NONE;
    for (uint32_t w = 0; w < windows->cuts.count; w++)
        if (!done[w] && windows->top[w] > least &&
            (found == TARN_NONE || windows->top[w] > windows->top[found]))
            found = w;
    return found;
}

/* The highest windows again, with the other keys, until what is left is below one of those. */
static bool place_highest_again(const struct windows *windows)
{
    int32_t least = windows->settings->aim;
    bool ok = true, *done = calloc((size_t)windows->cuts.count + 1, sizeof *done);
    if (windows->top[windows->cuts.count] > least) least = windows->top[windows->cuts.count];
    for (uint32_t count = 1; done && ok && count > 0;) {
        uint32_t batch[BATCH];
        for (count = 0; count < BATCH; count++) {
            batch[count] = highest(windows, done, least);
            if (batch[count] == TARN_NONE) break;
            done[batch[count]] = true;
        }
        IN_PARALLEL(omp parallel for num_threads(windows->settings->threads) schedule(dynamic, 1) reduction(&& : ok))
        for (uint32_t i = 0; i < count; i++)
            ok = ok && place_window(windows, batch[i], 1, TARN_KEYS_COUNT);
        for (uint32_t i = 0; i < count; i++)
            if (windows->top[batch[i]] > least) least = windows->top[batch[i]];
    }
    ok = ok && done;
    free(done);
    return ok;
}

/* ---- A field ---- */

static bool windows_init(struct windows *windows)
{
    const struct tarn_problem *problem = windows->field->problem;
    if (tarn_whole_init(&windows->whole, problem) != TARN_OK ||
        tarn_cuts_init(&windows->cuts, problem, windows->settings->width) != TARN_OK)
        return false;
    uint32_t count = windows->cuts.count;
    windows->top = malloc(((size_t)count + 1) * sizeof *windows->top);
    for (windows->leaves = 1; windows->leaves < count;) windows->leaves *= 2;
    windows->wholly = calloc(2 * (size_t)windows->leaves, sizeof *windows->wholly);
    windows->partly = calloc((size_t)count + 1, sizeof *windows->partly);
    if (!windows->top || !windows->wholly || !windows->partly) return false;
    for (uint32_t w = 0; w <= count; w++) windows->top[w] = INT32_MAX;
    return true;
}

static void windows_finish(struct windows *windows)
{
    for (uint32_t i = 0; windows->wholly && i < 2 * windows->leaves; i++)
        free(windows->wholly[i].list);
    for (uint32_t w = 0; windows->partly && w < windows->cuts.count; w++)
        tarn_obstacles_finish(&windows->partly[w]);
    free(windows->wholly);
    free(windows->partly);
    free(windows->top);
    tarn_cuts_finish(&windows->cuts);
    tarn_whole_finish(&windows->whole);
}

/* Writes the field's offsets, and how high they reach; INT32_MAX where that cannot be counted. */
static bool place_field(const struct settings *settings, const struct field *field, int32_t *top)
{
    struct windows windows = {.settings = settings, .field = field};
    bool ok = windows_init(&windows) && place_crossing(&windows);
    *top = 0;
    if (ok && windows.top[windows.cuts.count] < INT32_MAX)
        ok = spread_obstacles(&windows) && place_all(&windows) && place_highest_again(&windows);
    for (uint32_t w = 0; ok && w <= windows.cuts.count; w++)
        if (windows.top[w] > *top) *top = windows.top[w];
    windows_finish(&windows);
    return ok;
}

/* ---- Streams by themselves ---- */

struct turns {
    const struct settings *settings;
    const struct field *field;
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
    const struct field *field = turns->field;
    const struct tarn_reuse *reuse = field->problem->conflicts->reuse;
    const struct tarn_blocks *blocks = field->problem->blocks;
    uint32_t length = field->problem->graph->streams[s].ops_count;
    memset(turns->reach, 0, ((size_t)length + 2) * sizeof *turns->reach);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t a = turns->storages[i];
        if (reuse->stream[a] != s) continue;
        int32_t end = span_of(turns->settings, field, turns->whole.block_of[a], a).end;
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
        ok = place_storages(turns->settings, turns->field, &turns->whole, turns->storages, count,
                            NULL, 0, 0, &own_top);
        if (own_top > *top) *top = own_top;
        for (uint32_t s = 0; ok && n + 1 < turns_count && s < reuse->streams_count; s++)
            if (turns->turn[s] <= n && own_top < INT32_MAX) raise_floors(turns, s, count);
    }
    free(storage_at);
    return ok;
}

static bool place_by_turns(const struct settings *settings, const struct field *field, int32_t *top)
{
    struct turns turns = {.settings = settings, .field = field};
    const struct tarn_reuse *reuse = field->problem->conflicts->reuse;
    uint32_t turns_count = 1;
    turns.turn = malloc(((size_t)reuse->streams_count + 1) * sizeof *turns.turn);
    bool ok = turns.turn && tarn_split_streams(field->problem, settings->far, turns.turn,
                                               &turns_count) == TARN_OK;
    if (ok && turns_count == 1) {
        ok = place_field(settings, field, top);
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

static struct settings settings_of(const struct tarn_problem *problem,
                                   const struct tarn_windows_options *options)
{
    uint64_t most;
    uint32_t far_windows = options->far_windows ? options->far_windows : FAR_WINDOWS;
    struct settings settings = {.width = options->width,
                                .far = far_windows * options->width,
                                .crossing_max =
                                    options->crossing_max ? options->crossing_max : CROSSING_MAX,
                                .threads = threads_for(options->threads)};
    if (settings.far > problem->blocks->storages_count / FAR_SHARE && !options->far_windows)
        settings.far = problem->blocks->storages_count / FAR_SHARE;
    if (!tarn_size_multiply(options->aim, 4, &most)) most = UINT64_MAX;
    settings.unit_shift = tarn_lowest_unit_shift(problem->blocks, most);
    uint64_t aim = options->aim >> settings.unit_shift;
    settings.aim = (int32_t)(aim < TARN_UNITS_MAX ? aim : TARN_UNITS_MAX);
    return settings;
}

static void write_offsets(const struct settings *settings, const struct field *field,
                          uint64_t *offset)
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
    struct settings settings = settings_of(problem, options);
    struct field field = {0};
    int32_t top = INT32_MAX;
    bool ok = field_init(&field, problem);
    if (ok) {
        for (uint32_t a = 0; a < reuse->count; a++)
            field.in_antichain[a] = tarn_antichain_has(antichain->threshold, reuse, a);
        ok = place_by_turns(&settings, &field, &top);
    }
    if (ok && top < INT32_MAX) {
        write_offsets(&settings, &field, offset);
        *footprint = tarn_blocks_footprint(problem->blocks, offset);
    }
    field_finish(&field);
    return ok ? TARN_OK : TARN_SYSTEM;
}
