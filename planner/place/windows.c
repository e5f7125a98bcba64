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
 * Source: DESIGN.md, section 3 (Windows). Cost: a decode of every window. */
#include "windows.h"

#include <stdlib.h>
#include <string.h>

#include "../../streams/graph/size.h"
#include "cuts.h"
#include "keys.h"
#include "part.h"

#ifdef _OPENMP
#include <omp.h>
#define IN_PARALLEL(directive) _Pragma(#directive)
#else
#define IN_PARALLEL(directive)
#endif

enum { BATCH = 16, PARTLY_MAX = 4 };

/* Obstacles of a node of the tree: sorted, disjoint. */
struct spans {
    struct tarn_span *list;
    uint32_t count, capacity;
};

struct windows {
    const struct tarn_problem *problem;
    const bool *in_antichain; /* by storage */
    struct tarn_whole whole;
    struct tarn_cuts cuts;
    uint32_t unit_shift;
    int32_t aim;
    int threads;
    int32_t *offset; /* by block, in units */
    int32_t *top;    /* by window; the last is that of what crosses */
    uint32_t leaves; /* of the tree: leaf w is node leaves + w */
    struct spans *wholly;
    struct tarn_obstacles *partly; /* by window */
};

/* ---- Placing a part ---- */

/* Decodes with keys begin..end until the aim is met; the best plan becomes the part's where it is
 * lower than *top. */
static bool decode_keys(const struct windows *windows, const struct tarn_part *part,
                        const struct tarn_lowest *lowest, const struct tarn_traits *traits,
                        uint32_t begin, uint32_t end, int32_t *top)
{
    struct tarn_decoder decoder;
    struct tarn_objective objective = {0, 1, 0};
    int32_t *key = malloc(((size_t)lowest->count + 1) * sizeof *key);
    bool ok = tarn_decoder_init(&decoder, lowest) == TARN_OK && key;
    for (uint32_t i = begin; ok && i<end && * top> windows->aim; i++) {
        ok = tarn_keys_fill(lowest, traits, i, key) == TARN_OK;
        if (!ok) break;
        tarn_decoder_start(&decoder, NULL);
        if (!tarn_decoder_advance(&decoder, key, NULL, objective, *top - 1, lowest->count))
            continue;
        *top = decoder.top;
        for (uint32_t place = 0; place < lowest->count; place++)
            windows->offset[part->origin_block[lowest->block[place]]] = decoder.offset[place];
    }
    tarn_decoder_finish(&decoder);
    free(key);
    return ok;
}

/* Places storages of one window, or those that cross. */
static bool place_part(const struct windows *windows, uint32_t w, struct tarn_obstacles *obstacles,
                       uint32_t begin, uint32_t end)
{
    const struct tarn_cuts *cuts = &windows->cuts;
    struct tarn_part part;
    struct tarn_lowest lowest = {0};
    struct tarn_traits traits = {0};
    uint32_t count = cuts->begin[w + 1] - cuts->begin[w];
    if (tarn_part_init(&part, &windows->whole, cuts->storages + cuts->begin[w], count) != TARN_OK)
        return false;
    bool *inside = malloc((size_t)count + 1);
    for (uint32_t i = 0; inside && i < count; i++)
        inside[i] = windows->in_antichain[part.origin[i]];
    obstacles->origin = part.origin;
    bool ok = inside && tarn_lowest_init_around(&lowest, &part.problem, obstacles) == TARN_OK &&
              tarn_traits_init(&traits, &lowest, inside) == TARN_OK &&
              decode_keys(windows, &part, &lowest, &traits, begin, end, &windows->top[w]);
    free(inside);
    tarn_traits_finish(&traits);
    tarn_lowest_finish(&lowest);
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
    uint32_t whole = first + 1;
    while (whole < end && cuts->at[whole + 1] <= cuts->whole[a]) whole++;
    if (end > whole + PARTLY_MAX) whole = end - PARTLY_MAX;
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

static struct tarn_span span_of(const struct windows *windows, uint32_t a)
{
    const struct tarn_blocks *blocks = windows->problem->blocks;
    uint32_t b = windows->whole.block_of[a];
    uint64_t unit = (UINT64_C(1) << windows->unit_shift) - 1;
    uint64_t begin = blocks->within[a] >> windows->unit_shift;
    uint64_t end = (blocks->within[a] + blocks->reserved[a] + unit) >> windows->unit_shift;
    return (struct tarn_span){windows->offset[b] + (int32_t)begin,
                              windows->offset[b] + (int32_t)end};
}

static bool spread_obstacles(struct windows *windows)
{
    const struct tarn_cuts *cuts = &windows->cuts;
    const uint32_t *storages = cuts->storages + cuts->begin[cuts->count];
    uint32_t count = cuts->begin[cuts->count + 1] - cuts->begin[cuts->count];
    struct placed *placed = malloc(((size_t)count + 1) * sizeof *placed);
    bool ok = placed != NULL;
    for (uint32_t i = 0; ok && i < count; i++)
        placed[i] = (struct placed){span_of(windows, storages[i]), storages[i]};
    if (ok && count > 0) qsort(placed, count, sizeof *placed, compare_placed);
    for (uint32_t i = 0; ok && i < count; i++)
        ok = add_obstacle(windows, placed[i].storage, placed[i].span);
    free(placed);
    return ok;
}

/* ---- Windows ---- */

/* Places a window with keys begin..end. */
static bool place_window(const struct windows *windows, uint32_t w, uint32_t begin, uint32_t end)
{
    const struct tarn_obstacles *partly = &windows->partly[w];
    struct tarn_obstacles obstacles = {.unit_shift = windows->unit_shift,
                                       .reuse = windows->problem->conflicts->reuse};
    bool ok = true;
    for (uint32_t node = windows->leaves + w; ok && node > 0; node /= 2)
        for (uint32_t i = 0; ok && i < windows->wholly[node].count; i++)
            ok =
                tarn_obstacles_add(&obstacles, windows->wholly[node].list[i], TARN_NONE) == TARN_OK;
    for (uint32_t i = 0; ok && i < partly->count; i++)
        ok = tarn_obstacles_add(&obstacles, partly->list[i].span, partly->list[i].storage) ==
             TARN_OK;
    ok = ok && tarn_obstacles_sort(&obstacles) == TARN_OK &&
         place_part(windows, w, &obstacles, begin, end);
    tarn_obstacles_finish(&obstacles);
    return ok;
}

static bool place_crossing(const struct windows *windows)
{
    struct tarn_obstacles none = {.unit_shift = windows->unit_shift,
                                  .reuse = windows->problem->conflicts->reuse};
    bool ok = tarn_obstacles_sort(&none) == TARN_OK &&
              place_part(windows, windows->cuts.count, &none, 0, 1);
    tarn_obstacles_finish(&none);
    return ok;
}

static bool place_all(const struct windows *windows)
{
    bool ok = true;
    IN_PARALLEL(omp parallel for num_threads(windows->threads) schedule(dynamic, 1) reduction(&& : ok))
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
    int32_t least = windows->aim;
    bool ok = true, *done = calloc((size_t)windows->cuts.count + 1, sizeof *done);
    if (windows->top[windows->cuts.count] > least) least = windows->top[windows->cuts.count];
    for (uint32_t count = 1; done && ok && count > 0;) {
        uint32_t batch[BATCH];
        for (count = 0; count < BATCH; count++) {
            batch[count] = highest(windows, done, least);
            if (batch[count] == TARN_NONE) break;
            done[batch[count]] = true;
        }
        IN_PARALLEL(omp parallel for num_threads(windows->threads) schedule(dynamic, 1) reduction(&& : ok))
        for (uint32_t i = 0; i < count; i++)
            ok = ok && place_window(windows, batch[i], 1, TARN_KEYS_COUNT);
        for (uint32_t i = 0; i < count; i++)
            if (windows->top[batch[i]] > least) least = windows->top[batch[i]];
    }
    ok = ok && done;
    free(done);
    return ok;
}

/* ---- The whole ---- */

static bool *find_antichain(const struct tarn_problem *problem,
                            const struct tarn_antichain *antichain)
{
    const struct tarn_reuse *reuse = problem->conflicts->reuse;
    bool *inside = malloc((size_t)reuse->count + 1);
    for (uint32_t a = 0; inside && a < reuse->count; a++)
        inside[a] = tarn_antichain_has(antichain->threshold, reuse, a);
    return inside;
}

static int threads_for(uint32_t threads)
{
#ifdef _OPENMP
    if (threads == 0) threads = (uint32_t)omp_get_num_procs();
#endif
    return (int)threads;
}

static bool init(struct windows *windows, const struct tarn_windows_options *options)
{
    const struct tarn_blocks *blocks = windows->problem->blocks;
    uint64_t aim = options->aim, most;
    if (!tarn_size_multiply(aim, 4, &most)) most = UINT64_MAX;
    windows->unit_shift = tarn_lowest_unit_shift(blocks, most);
    aim >>= windows->unit_shift;
    windows->aim = (int32_t)(aim < TARN_UNITS_MAX ? aim : TARN_UNITS_MAX);
    windows->threads = threads_for(options->threads);
    if (tarn_whole_init(&windows->whole, windows->problem) != TARN_OK ||
        tarn_cuts_init(&windows->cuts, windows->problem, options->width) != TARN_OK)
        return false;
    uint32_t count = windows->cuts.count;
    windows->offset = calloc((size_t)blocks->count + 1, sizeof *windows->offset);
    windows->top = malloc(((size_t)count + 1) * sizeof *windows->top);
    for (windows->leaves = 1; windows->leaves < count;) windows->leaves *= 2;
    windows->wholly = calloc(2 * (size_t)windows->leaves, sizeof *windows->wholly);
    windows->partly = calloc((size_t)count + 1, sizeof *windows->partly);
    if (!windows->offset || !windows->top || !windows->wholly || !windows->partly) return false;
    for (uint32_t w = 0; w <= count; w++) windows->top[w] = INT32_MAX;
    return true;
}

static void finish(struct windows *windows)
{
    for (uint32_t i = 0; windows->wholly && i < 2 * windows->leaves; i++)
        free(windows->wholly[i].list);
    for (uint32_t w = 0; windows->partly && w < windows->cuts.count; w++)
        tarn_obstacles_finish(&windows->partly[w]);
    free(windows->wholly);
    free(windows->partly);
    free(windows->offset);
    free(windows->top);
    tarn_cuts_finish(&windows->cuts);
    tarn_whole_finish(&windows->whole);
}

static bool is_placed(const struct windows *windows)
{
    for (uint32_t w = 0; w <= windows->cuts.count; w++)
        if (windows->top[w] == INT32_MAX && windows->cuts.begin[w] < windows->cuts.begin[w + 1])
            return false;
    return true;
}

static void write_offsets(const struct windows *windows, uint64_t *offset)
{
    const struct tarn_blocks *blocks = windows->problem->blocks;
    for (uint32_t b = 0; b < blocks->count; b++)
        for (uint32_t i = 0; i < blocks->blocks[b].members_count; i++) {
            uint32_t a = blocks->blocks[b].members[i];
            offset[a] = ((uint64_t)windows->offset[b] << windows->unit_shift) + blocks->within[a];
        }
}

enum tarn_status tarn_windows_place(const struct tarn_problem *problem,
                                    const struct tarn_antichain *antichain,
                                    const struct tarn_windows_options *options, uint64_t *offset,
                                    uint64_t *footprint, struct tarn_windows_report *report)
{
    bool *inside = find_antichain(problem, antichain);
    struct windows windows = {.problem = problem, .in_antichain = inside};
    memset(report, 0, sizeof *report);
    bool ok = inside && init(&windows, options);
    if (ok) {
        const uint32_t *begin = windows.cuts.begin;
        report->count = windows.cuts.count;
        report->crossing = begin[report->count + 1] - begin[report->count];
        ok = place_crossing(&windows) && spread_obstacles(&windows) && place_all(&windows) &&
             place_highest_again(&windows);
    }
    if (ok && is_placed(&windows)) {
        write_offsets(&windows, offset);
        *footprint = tarn_blocks_footprint(problem->blocks, offset);
    }
    finish(&windows);
    free(inside);
    return ok ? TARN_OK : TARN_SYSTEM;
}
