/* Places the storages of windows. The global order is cut at points that few storages cross
 * (cuts.h). Storages that cross a cut are placed first, as a problem of their own. Then every
 * window is placed, in parallel, with the storages that cross it as obstacles:
 *
 *     offset ▲      │  window 1   │  window 2   │
 *            │   ▒▒▒│▒▒▒▒▒▒▒▒▒▒▒▒▒│▒▒▒▒         │    ▒ crosses a cut
 *            │  ░ ░░│  ░░░        │   ░░ ░░ ░   │    ░ placed in its window, around the others
 *            └──────┴─────────────┴─────────────┴─► global order
 *
 * That is a plan, which is reported at once. It is as high as its highest window, so only windows
 * above the aim are placed again, with other priority orders, the highest first. If another phase
 * comes on top (windows.c), bytes lost in any window are lost for good, so all windows above their
 * targets (targets.c) are placed again.
 *
 * Many crossing storages are placed by wider windows if they are a small part of all storages, and
 * as clusters (clusters.c) if they cross many windows, as in one long training step. Source:
 * docs/how-it-works.md, "Windows". Cost: a placement of every window. */
#include "window.h"

#include <assert.h>
#include <stdatomic.h>
#include <string.h>

#include "around.h"
#include "cuts.h"
#include "planner/parallel/parallel.h"

/* BATCH: windows that are placed again at once. CLUSTERED_SPAN: mean number of crossed cuts from
 * which clusters are made. WIDER: how much wider the windows of crossing storages are. */
enum { BATCH = 16, CLUSTERED_SPAN = 16, WIDER = 16 };
/* With at least EAGER_STORAGES storages helper threads are started at once. Storages that cross a
 * cut are good enough within 1/ENOUGH_SHARE of the aim. */
enum { EAGER_STORAGES = 1024, ENOUGH_SHARE = 1024 };
/* A group is large from one part in LARGE_SHARE of the aim on. */
enum { LARGE_SHARE = 16 };
/* Priority orders (priorities.h); by_size: if groups are large. */
static const struct tarn_placements first_priority = {0, 1, 0},
                                    other_priorities = {1, TARN_PRIORITIES_COUNT, 0};
static const struct tarn_placements by_size = {5, 6, 0},
                                    all_priorities = {0, TARN_PRIORITIES_COUNT, 0};

/* Storages cut into windows. */
struct windows {
    const struct tarn_windows_settings *settings;
    const struct tarn_field *field;
    struct tarn_region region;
    struct tarn_region *work; /* thread of the team -> scratch memory for placing a window */
    struct tarn_cuts cuts;
    int32_t
        *top; /* window -> how high it reaches; at cuts.count: crossing ones; INT32_MAX: no plan */
    int32_t *target; /* window -> the highest target in it; NULL if there are no targets */
    struct tarn_around around;        /* crossing storages, as obstacles */
    struct tarn_region_mark unplaced; /* the region, before it had these */
    struct tarn_team team;
    bool has_priorities;   /* crossing storages have been placed at once, with the first priority
                              order alone */
    atomic_bool no_memory; /* in one of the windows */
};

static const uint32_t *crossing_storages(const struct windows *windows, uint32_t *count)
{
    uint32_t begin = windows->cuts.begin[windows->cuts.count];
    *count = windows->cuts.begin[windows->cuts.count + 1] - begin;
    return windows->cuts.storages + begin;
}

/* ---- Windows ---- */

static struct tarn_obstacles no_obstacles(const struct windows *windows)
{
    return (struct tarn_obstacles){.unit_shift = windows->settings->unit_shift,
                                   .reuse = &windows->field->problem->conflicts.reuse};
}

/* By thread `thread` of the team. */
static bool place_window(const struct windows *windows, uint32_t thread,
                         const struct tarn_windows_settings *settings, uint32_t w,
                         struct tarn_placements placements)
{
    const struct tarn_cuts *cuts = &windows->cuts;
    struct tarn_obstacles obstacles = no_obstacles(windows);
    uint32_t count = cuts->begin[w + 1] - cuts->begin[w];
    assert(w < cuts->count && thread < windows->team.threads);
    if (count == 0) {
        windows->top[w] = 0;
        return true;
    }
    struct tarn_region *work = &windows->work[thread];
    struct tarn_region_mark mark = tarn_region_mark(work);
    bool ok = tarn_around_collect(&windows->around, work, w, &obstacles) &&
              tarn_field_place(windows->field, work, settings, cuts->storages + cuts->begin[w],
                               count, &obstacles, placements, &windows->top[w]);
    tarn_region_release(work, mark);
    return ok;
}

/* ---- Crossing storages ---- */

/* Do these cross at least CLUSTERED_SPAN cuts each, in the mean? */
static bool are_long(const struct tarn_crossing *crossing, uint32_t count)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < count; i++) sum += crossing[i].end - 1 - crossing[i].first;
    return sum / CLUSTERED_SPAN >= count;
}

/* At once, with some priority orders; must: whatever that takes. */
static bool place_crossing_once(const struct windows *windows, struct tarn_placements placements,
                                bool must)
{
    uint32_t count;
    const uint32_t *storages = crossing_storages(windows, &count);
    struct tarn_windows_settings settings = *windows->settings;
    struct tarn_obstacles none = no_obstacles(windows);
    int32_t *top = &windows->top[windows->cuts.count];
    uint64_t left = tarn_effort_left(settings.effort);
    if (*top <= settings.aim || (left == 0 && !must)) return true;
    settings.work_max = must ? 0 : left;
    return tarn_obstacles_sort(&none, &windows->work[0]) == TARN_OK &&
           tarn_field_place(windows->field, &windows->work[0], &settings, storages, count, &none,
                            placements, top);
}

static bool place_crossing_again(const struct windows *windows)
{
    return place_crossing_once(windows, windows->cuts.has_large ? all_priorities : other_priorities,
                               false);
}

/* If a plan is wanted soon, the other priority orders are tried after it. */
static bool place_at_once(struct windows *windows)
{
    bool must = windows->settings->effort->must;
    windows->has_priorities = windows->settings->placed != NULL;
    return place_crossing_once(windows, windows->cuts.has_large ? by_size : first_priority, must) &&
           (windows->has_priorities || place_crossing_again(windows));
}

/* listed: all storages, those that do not cross included. Wider windows need not come quite to the
 * aim: the windows around them take longer to. */
static bool place_crossing(struct windows *windows, const uint32_t *listed, uint32_t listed_count)
{
    uint32_t count, most = windows->settings->crossing_max;
    const uint32_t *storages = crossing_storages(windows, &count);
    int32_t *top = &windows->top[windows->cuts.count];
    struct tarn_windows_settings wider = *windows->settings;
    if (count == 0) {
        *top = 0;
        return true;
    }
    if (count > most && are_long(windows->cuts.crossing, count))
        return tarn_clusters_place(windows->field, windows->settings, &windows->cuts, listed,
                                   listed_count, top);
    wider.width *= WIDER;
    wider.aim += wider.aim / ENOUGH_SHARE;
    wider.target = NULL;
    wider.placed = NULL;
    if (count > most && count < listed_count / 2)
        return tarn_window_place(&wider, windows->field, storages, count, top);
    return place_at_once(windows);
}

/* ---- All windows ---- */

static void place_once(void *user, uint32_t thread, uint32_t w)
{
    struct windows *windows = user;
    if (!windows->no_memory && !place_window(windows, thread, windows->settings, w, first_priority))
        windows->no_memory = true;
}

/* Places all windows around the crossing storages. */
static bool place_all(struct windows *windows)
{
    for (uint32_t w = 0; w < windows->cuts.count; w++) windows->top[w] = INT32_MAX;
    tarn_region_release(&windows->region, windows->unplaced);
    if (!tarn_around_init(&windows->around, &windows->region, &windows->work[0], windows->field,
                          windows->settings->unit_shift, &windows->cuts))
        return false;
    tarn_team_run(&windows->team, windows->cuts.count, place_once, windows);
    return !windows->no_memory;
}

/* ---- Windows again ---- */

struct batch {
    struct windows *windows;
    struct tarn_windows_settings settings;
    uint32_t count, list[BATCH];
    int32_t least[BATCH]; /* how high it does not matter that the window reaches */
};

/* The highest window above `least` that is not done, or TARN_NONE. */
static uint32_t find_highest(const struct windows *windows, const bool *done, int32_t least)
{
    uint32_t found = TARN_NONE;
    for (uint32_t w = 0; w < windows->cuts.count; w++)
        if (!done[w] && windows->top[w] > least &&
            (found == TARN_NONE || windows->top[w] > windows->top[found]))
            found = w;
    return found;
}

static void list_highest(struct batch *batch, bool *done, int32_t least)
{
    for (batch->count = 0; batch->count < BATCH; batch->count++) {
        uint32_t w = find_highest(batch->windows, done, least);
        if (w == TARN_NONE) break;
        batch->list[batch->count] = w;
        done[w] = true;
    }
}

/* Lists the first windows that are above their targets and above all earlier windows that are done:
 * the phase on top is above these anyway. */
static void list_first(struct batch *batch, bool *done)
{
    const struct windows *windows = batch->windows;
    int32_t least = 0;
    batch->count = 0;
    for (uint32_t w = 0; w < windows->cuts.count && batch->count < BATCH; w++) {
        if (done[w]) {
            if (windows->top[w] > least) least = windows->top[w];
        } else if (windows->top[w] > least && windows->top[w] > windows->target[w]) {
            batch->least[batch->count] = least;
            batch->list[batch->count++] = w;
        }
    }
    for (uint32_t i = 0; i < batch->count; i++) done[batch->list[i]] = true;
}

/* With the other priority orders, and by promotion. */
static void place_again(void *user, uint32_t thread, uint32_t i)
{
    struct batch *batch = user;
    struct windows *windows = batch->windows;
    struct tarn_windows_settings settings = batch->settings;
    const struct tarn_placements others = {1, TARN_PRIORITIES_COUNT, settings.promotions};
    uint32_t w = batch->list[i];
    settings.least = batch->least[i];
    if (windows->target)
        settings.aim = settings.least > windows->target[w] ? settings.least : windows->target[w];
    if (!windows->no_memory && !place_window(windows, thread, &settings, w, others))
        windows->no_memory = true;
}

/* Places the highest windows again, until all remaining windows are below one of them; if there are
 * targets, all windows above their targets. The windows of a batch share half of the remaining
 * effort. */
static bool place_worst_again(struct windows *windows)
{
    int32_t least = windows->settings->aim;
    bool *done = tarn_region_take(&windows->region, windows->cuts.count, sizeof *done);
    struct batch batch = {.windows = windows, .settings = *windows->settings, .count = 1};
    if (windows->top[windows->cuts.count] > least) least = windows->top[windows->cuts.count];
    while (done && !windows->no_memory && batch.count > 0) {
        uint64_t left = tarn_effort_left(batch.settings.effort);
        if (left == 0) break;
        if (windows->target)
            list_first(&batch, done);
        else
            list_highest(&batch, done, least);
        batch.settings.work_max =
            left < UINT64_MAX && batch.count > 0 ? left / 2 / batch.count + 1 : 0;
        tarn_team_run(&windows->team, batch.count, place_again, &batch);
        for (uint32_t i = 0; i < batch.count; i++)
            if (windows->top[batch.list[i]] > least) least = windows->top[batch.list[i]];
    }
    return done && !windows->no_memory;
}

/* ---- The whole ---- */

static bool windows_init(struct windows *windows, const uint32_t *storages, uint32_t count)
{
    const struct tarn_field *field = windows->field;
    struct tarn_region *region = &windows->region;
    const struct tarn_windows_settings *settings = windows->settings;
    uint64_t large = ((uint64_t)settings->aim << settings->unit_shift) / LARGE_SHARE;
    windows->work = tarn_region_take(region, windows->team.threads, sizeof *windows->work);
    if (!windows->work || tarn_cuts_init(&windows->cuts, region, field->problem, field->block_of,
                                         storages, count, settings->width, large) != TARN_OK)
        return false;
    uint32_t windows_count = windows->cuts.count;
    windows->top = tarn_region_take(region, (size_t)windows_count + 1, sizeof *windows->top);
    if (!windows->top) return false;
    windows->top[windows_count] = INT32_MAX;
    if (settings->target)
        windows->target = tarn_targets_by_window(region, field->problem, &windows->cuts,
                                                 windows->settings->target);
    windows->unplaced = tarn_region_mark(region);
    return !region->is_exhausted;
}

static int32_t highest_top(const struct windows *windows)
{
    int32_t top = 0;
    for (uint32_t w = 0; w <= windows->cuts.count; w++)
        if (windows->top[w] > top) top = windows->top[w];
    return top;
}

/* When a plan is there: tries the other priority orders for crossing storages, and places all
 * windows again around them. */
static bool place_better(struct windows *windows)
{
    const struct tarn_windows_settings *settings = windows->settings;
    int32_t *crossing = &windows->top[windows->cuts.count], before = *crossing;
    if (settings->placed && highest_top(windows) < INT32_MAX) settings->placed(settings->user);
    if (!windows->has_priorities) return true;
    return place_crossing_again(windows) && (*crossing == before || place_all(windows));
}

static void windows_finish(struct windows *windows)
{
    for (uint32_t i = 0; windows->work && i < windows->team.threads; i++)
        tarn_region_finish(&windows->work[i]);
    tarn_region_finish(&windows->region);
}

bool tarn_window_place(const struct tarn_windows_settings *settings, const struct tarn_field *field,
                       const uint32_t *storages, uint32_t count, int32_t *top)
{
    struct windows windows = {.settings = settings, .field = field};
    tarn_team_init(&windows.team, settings->threads, count >= EAGER_STORAGES);
    bool ok = windows_init(&windows, storages, count) && place_crossing(&windows, storages, count);
    if (ok && windows.top[windows.cuts.count] < INT32_MAX)
        ok = place_all(&windows) && place_better(&windows) && place_worst_again(&windows);
    if (ok) *top = highest_top(&windows);
    windows_finish(&windows);
    return ok;
}
