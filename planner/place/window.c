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
 * (bundles.h) where they cross many windows, as in one long training step.
 * Source: DESIGN.md, section 3 (Windows). Cost: a decode of every window. */
#include "window.h"

#include <stdlib.h>
#include <string.h>

#include "bundles.h"
#include "cuts.h"
#include "keys.h"

#ifdef _OPENMP
#include <omp.h>
#define IN_PARALLEL(directive) _Pragma(#directive)
#else
#define IN_PARALLEL(directive)
#endif

enum { BATCH = 16, PARTLY_MAX = 4, BUNDLES_IN_ALL = 512, BUNDLED_SPAN = 16, WIDER = 16 };

/* Obstacles of a node of the tree: sorted, disjoint. */
struct spans {
    struct tarn_span *list;
    uint32_t count, capacity;
};

/* A field cut into windows. */
struct windows {
    const struct tarn_windows_settings *settings;
    const struct tarn_field *field;
    struct tarn_whole whole;
    struct tarn_cuts cuts;
    int32_t *top;    /* by window; the last is that of what crosses; INT32_MAX: not placed */
    uint32_t leaves; /* of the tree: leaf w is node leaves + w */
    struct spans *wholly;
    struct tarn_obstacles *partly; /* by window */
};

bool tarn_window_place_storages(const struct tarn_windows_settings *settings,
                                const struct tarn_field *whole_field,
                                const struct tarn_whole *whole, const uint32_t *storages,
                                uint32_t count, struct tarn_obstacles *obstacles, uint32_t begin,
                                uint32_t end, int32_t *top)
{
    struct tarn_part part;
    struct tarn_field field = {0};
    int32_t before = *top;
    if (settings->until && tarn_until_is_over(settings->until)) return true;
    if (tarn_part_init(&part, whole, storages, count) != TARN_OK) return false;
    bool ok = tarn_field_init_part(&field, whole_field, &part);
    if (ok && obstacles) {
        obstacles->origin = part.origin;
        ok = tarn_field_decode(&field, settings, obstacles, begin, end, top);
    } else if (ok) {
        ok = tarn_window_place_field(settings, &field, top);
    }
    if (ok && *top < before) tarn_field_take_offsets(whole_field, &part, &field);
    tarn_field_finish(&field);
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

static bool spread_obstacles(struct windows *windows)
{
    const struct tarn_cuts *cuts = &windows->cuts;
    const uint32_t *storages = cuts->storages + cuts->begin[cuts->count];
    uint32_t count = cuts->begin[cuts->count + 1] - cuts->begin[cuts->count];
    struct placed *placed = malloc(((size_t)count + 1) * sizeof *placed);
    bool ok = placed != NULL;
    for (uint32_t i = 0; ok && i < count; i++)
        placed[i] =
            (struct placed){tarn_field_span(windows->field, windows->settings->unit_shift,
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
         tarn_window_place_storages(windows->settings, windows->field, &windows->whole,
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
    const struct tarn_field *field = windows->field;
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
    struct tarn_windows_settings wider = *windows->settings;
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
              tarn_window_place_storages(&wider, windows->field, &windows->whole, storages, count,
                                         again ? NULL : &none, 0, TARN_KEYS_COUNT, top);
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
bool tarn_window_place_field(const struct tarn_windows_settings *settings,
                             const struct tarn_field *field, int32_t *top)
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
