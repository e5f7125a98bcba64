/* Windows. The global order is cut where few storages cross (cuts.h). What crosses a cut is placed
 * first, as a problem of its own; then every window, in parallel, with what crosses it as
 * obstacles:
 *
 *     offset ▲      │  window 1   │  window 2   │
 *            │   ▒▒▒│▒▒▒▒▒▒▒▒▒▒▒▒▒│▒▒▒▒         │    ▒ crosses a cut
 *            │  ░ ░░│  ░░░        │   ░░ ░░ ░   │    ░ placed in its window, around the others
 *            └──────┴─────────────┴─────────────┴─► global order
 *
 * Of what is in conflict with all of a window only the range of bytes is kept there: a tree over
 * the windows holds the unions of these, so that a storage which crosses many windows costs a
 * logarithm of their number. A plan is as high as its highest window: only those above the aim are
 * placed again, with other keys, the highest first. Where another phase comes on top (windows.c),
 * what each window loses is lost: all above their targets (targets.h) are placed again.
 *
 * Many storages that cross are placed by wider windows where they are few of all, and as bundles
 * (bundles.h) where they cross many windows, as in one long training step.
 * Source: docs/how-it-works.md, "Windows". Cost: a decode of every window. */
#include "window.h"

#include <assert.h>
#include <stdatomic.h>
#include <string.h>

#include "bundles.h"
#include "cuts.h"
#include "periods.h"
#include "planner/place/lowest/lowest.h"
#include "span_tree.h"
#include "streams/base/parallel.h"
#include "streams/base/radix.h"
#include "targets.h"

/* BATCH: windows that are placed again at once. PARTLY_MAX: windows for each storage that crosses,
 * before the last one in conflict with it, that look at its conflicts one by one. BUNDLED_SPAN:
 * cuts crossed in the mean from which on bundles are made. WIDER: how much wider the windows of
 * what crosses are. */
enum { BATCH = 16, PARTLY_MAX = 4, BUNDLED_SPAN = 16, WIDER = 16 };
/* From EAGER_STORAGES on helpers are started at once. What crosses need not come nearer to the aim
 * than one part in ENOUGH_SHARE of it. */
enum { EAGER_STORAGES = 1024, ENOUGH_SHARE = 1024 };

/* Storages cut into windows. */
struct windows {
    const struct tarn_windows_settings *settings;
    const struct tarn_field *field;
    struct tarn_region region;
    struct tarn_region *work; /* thread of the team -> what a window needs while it is placed */
    struct tarn_cuts cuts;
    int32_t
        *top; /* window -> how high it reaches; at cuts.count: what crosses; INT32_MAX: no plan */
    int32_t *target; /* window -> the highest target in it; NULL where there are none */
    struct tarn_span_tree wholly; /* what is in conflict with all of a window */
    uint32_t *partly_begin; /* window -> where its entries of `partly` begin; one more at the end */
    uint32_t *partly;       /* storages that cross, by where they begin */
    struct tarn_team team;
    atomic_bool no_memory; /* in one of the windows */
};

static const uint32_t *crossing_storages(const struct windows *windows, uint32_t *count)
{
    uint32_t begin = windows->cuts.begin[windows->cuts.count];
    *count = windows->cuts.begin[windows->cuts.count + 1] - begin;
    return windows->cuts.storages + begin;
}

/* ---- Obstacles ---- */

/* A storage that crosses is partly in conflict with the windows in which it is produced and
 * released; so it may be with more, of which the last few are told apart. Returns the first one
 * behind those that it is wholly in conflict with. */
static uint32_t whole_end(const struct tarn_crossing *crossing)
{
    uint32_t whole = crossing->whole;
    if (crossing->end > whole + PARTLY_MAX) whole = crossing->end - PARTLY_MAX;
    if (whole > crossing->end) whole = crossing->end;
    return whole > crossing->first ? whole : crossing->first + 1;
}

/* Makes room for what is partly in conflict with each window. */
static bool count_partly(struct windows *windows, uint32_t count)
{
    uint32_t *begin =
        tarn_region_take(&windows->region, (size_t)windows->cuts.count + 2, sizeof *begin);
    windows->partly_begin = begin;
    if (!begin) return false;
    for (uint32_t i = 0; i < count; i++) {
        const struct tarn_crossing *crossing = &windows->cuts.crossing[i];
        begin[crossing->first + 1]++;
        for (uint32_t w = whole_end(crossing); w < crossing->end; w++) begin[w + 1]++;
    }
    for (uint32_t w = 0; w < windows->cuts.count; w++) begin[w + 1] += begin[w];
    windows->partly =
        tarn_region_take(&windows->region, begin[windows->cuts.count], sizeof *windows->partly);
    return windows->partly != NULL;
}

/* Numbers of those that cross, by where they begin. */
static bool sort_crossing(const struct windows *windows, struct tarn_region *work,
                          const uint32_t *storages, uint32_t count, uint32_t *sorted)
{
    struct tarn_region_mark mark = tarn_region_mark(work);
    uint64_t *packed = tarn_region_take(work, count, sizeof *packed);
    uint64_t *spare = tarn_region_take(work, count, sizeof *spare);
    if (!packed || !spare) return false;
    for (uint32_t i = 0; i < count; i++) {
        struct tarn_span span =
            tarn_field_span(windows->field, windows->settings->unit_shift, storages[i]);
        packed[i] = tarn_radix_pack((uint32_t)span.begin, i);
    }
    const uint64_t *by_begin = tarn_radix_sort(packed, spare, count, INT32_MAX);
    for (uint32_t n = 0; n < count; n++) sorted[n] = tarn_radix_number(by_begin[n]);
    tarn_region_release(work, mark);
    return true;
}

/* To the windows that a storage crosses; next: by window, its next entry of `partly`. */
static bool add_obstacle(struct windows *windows, uint32_t a, const struct tarn_crossing *crossing,
                         uint32_t *next)
{
    uint32_t whole = whole_end(crossing);
    windows->partly[next[crossing->first]++] = a;
    for (uint32_t w = whole; w < crossing->end; w++) windows->partly[next[w]++] = a;
    return tarn_span_tree_add(&windows->wholly, &windows->region, crossing->first + 1, whole,
                              tarn_field_span(windows->field, windows->settings->unit_shift, a));
}

static bool spread_obstacles(struct windows *windows)
{
    uint32_t count, windows_count = windows->cuts.count;
    const uint32_t *storages = crossing_storages(windows, &count);
    struct tarn_region *work = &windows->work[0];
    struct tarn_region_mark mark = tarn_region_mark(work);
    uint32_t *sorted = tarn_region_take(work, count, sizeof *sorted);
    uint32_t *next = tarn_region_take(work, windows_count, sizeof *next);
    bool ok = sorted && next && sort_crossing(windows, work, storages, count, sorted) &&
              count_partly(windows, count);
    if (ok) memcpy(next, windows->partly_begin, windows_count * sizeof *next);
    for (uint32_t n = 0; ok && n < count; n++)
        ok = add_obstacle(windows, storages[sorted[n]], &windows->cuts.crossing[sorted[n]], next);
    tarn_region_release(work, mark);
    return ok;
}

/* ---- Windows ---- */

static struct tarn_obstacles no_obstacles(const struct windows *windows)
{
    return (struct tarn_obstacles){.unit_shift = windows->settings->unit_shift,
                                   .reuse = &windows->field->problem->conflicts.reuse};
}

/* What crosses the window. */
static bool collect_obstacles(const struct windows *windows, struct tarn_region *work, uint32_t w,
                              struct tarn_obstacles *obstacles)
{
    enum tarn_status status = tarn_span_tree_collect(&windows->wholly, work, w, obstacles);
    for (uint32_t i = windows->partly_begin[w]; i < windows->partly_begin[w + 1]; i++) {
        uint32_t a = windows->partly[i];
        struct tarn_span span = tarn_field_span(windows->field, obstacles->unit_shift, a);
        if (status == TARN_OK) status = tarn_obstacles_add(obstacles, work, span, a);
    }
    return status == TARN_OK && tarn_obstacles_sort(obstacles, work) == TARN_OK;
}

/* By thread `thread` of the team. */
static bool place_window(const struct windows *windows, uint32_t thread,
                         const struct tarn_windows_settings *settings, uint32_t w,
                         struct tarn_decodes decodes)
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
    bool ok = collect_obstacles(windows, work, w, &obstacles) &&
              tarn_field_decode(windows->field, work, settings, cuts->storages + cuts->begin[w],
                                count, &obstacles, decodes, &windows->top[w]);
    tarn_region_release(work, mark);
    return ok;
}

/* ---- What crosses ---- */

/* Do these cross at least BUNDLED_SPAN cuts each, in the mean? */
static bool are_long(const struct tarn_crossing *crossing, uint32_t count)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < count; i++) sum += crossing[i].end - 1 - crossing[i].first;
    return sum / BUNDLED_SPAN >= count;
}

static bool place_bundles(const struct windows *windows, const uint32_t *storages, uint32_t count,
                          int32_t *top)
{
    const struct tarn_field *field = windows->field;
    uint64_t aim = (uint64_t)windows->settings->aim << windows->settings->unit_shift;
    struct tarn_region *work = &windows->work[0];
    struct tarn_region_mark mark = tarn_region_mark(work);
    uint32_t *period_of =
        tarn_periods_find(work, field->problem, field->block_of, storages, count, aim);
    bool ok =
        period_of && tarn_bundles_place(field, windows->settings, &windows->cuts, period_of, top);
    tarn_region_release(work, mark);
    return ok;
}

/* At once: the first key whatever it takes where a plan must come of it. */
static bool place_exactly(const struct windows *windows, const uint32_t *storages, uint32_t count,
                          int32_t *top)
{
    struct tarn_windows_settings settings = *windows->settings;
    struct tarn_obstacles none = no_obstacles(windows);
    static const struct tarn_decodes decodes[] = {{0, 1, 0}, {1, TARN_KEYS_COUNT, 0}};
    bool ok = tarn_obstacles_sort(&none, &windows->work[0]) == TARN_OK;
    for (uint32_t n = 0; ok && n < 2 && *top > settings.aim; n++) {
        uint64_t left = tarn_effort_left(settings.effort);
        bool must = n == 0 && settings.effort->must;
        if (left == 0 && !must) break;
        settings.work_max = must ? 0 : left;
        ok = tarn_field_decode(windows->field, &windows->work[0], &settings, storages, count, &none,
                               decodes[n], top);
    }
    return ok;
}

/* listed: all storages, those that do not cross included. Wider windows need not come quite to the
 * aim: the windows around them take longer to. */
static bool place_crossing(const struct windows *windows, const uint32_t *listed,
                           uint32_t listed_count)
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
        return place_bundles(windows, listed, listed_count, top);
    wider.width *= WIDER;
    wider.aim += wider.aim / ENOUGH_SHARE;
    wider.target = NULL;
    if (count > most && count < listed_count / 2)
        return tarn_window_place(&wider, windows->field, storages, count, top);
    return place_exactly(windows, storages, count, top);
}

/* ---- All windows ---- */

static void place_once(void *user, uint32_t thread, uint32_t w)
{
    struct windows *windows = user;
    const struct tarn_decodes first = {0, 1, 0};
    if (!windows->no_memory && !place_window(windows, thread, windows->settings, w, first))
        windows->no_memory = true;
}

static bool place_all(struct windows *windows)
{
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

/* The first windows that are above their targets and above all windows before them that are done:
 * what comes on top is above these anyway. */
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

/* With the other keys, and by promotion. */
static void place_again(void *user, uint32_t thread, uint32_t i)
{
    struct batch *batch = user;
    struct windows *windows = batch->windows;
    struct tarn_windows_settings settings = batch->settings;
    const struct tarn_decodes others = {1, TARN_KEYS_COUNT, settings.promotions};
    uint32_t w = batch->list[i];
    settings.least = batch->least[i];
    if (windows->target)
        settings.aim = settings.least > windows->target[w] ? settings.least : windows->target[w];
    if (!windows->no_memory && !place_window(windows, thread, &settings, w, others))
        windows->no_memory = true;
}

/* The highest windows again, until what is left is below one of those; where there are targets, all
 * that are above them. The windows of a batch share half of what is left of the effort. */
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
    windows->work = tarn_region_take(region, windows->team.threads, sizeof *windows->work);
    if (!windows->work || tarn_cuts_init(&windows->cuts, region, field->problem, field->block_of,
                                         storages, count, windows->settings->width) != TARN_OK)
        return false;
    uint32_t windows_count = windows->cuts.count;
    windows->top = tarn_region_take(region, (size_t)windows_count + 1, sizeof *windows->top);
    if (!windows->top || !tarn_span_tree_init(&windows->wholly, region, windows_count))
        return false;
    for (uint32_t w = 0; w <= windows_count; w++) windows->top[w] = INT32_MAX;
    if (windows->settings->target)
        windows->target = tarn_targets_by_window(region, field->problem, &windows->cuts,
                                                 windows->settings->target);
    return !region->is_exhausted;
}

static void windows_finish(struct windows *windows)
{
    for (uint32_t i = 0; windows->work && i < windows->team.threads; i++)
        tarn_region_finish(&windows->work[i]);
    tarn_team_finish(&windows->team);
    tarn_region_finish(&windows->region);
}

bool tarn_window_place(const struct tarn_windows_settings *settings, const struct tarn_field *field,
                       const uint32_t *storages, uint32_t count, int32_t *top)
{
    struct windows windows = {.settings = settings, .field = field};
    tarn_team_init(&windows.team, settings->threads, count >= EAGER_STORAGES);
    bool ok = windows_init(&windows, storages, count) && place_crossing(&windows, storages, count);
    *top = 0;
    if (ok && windows.top[windows.cuts.count] < INT32_MAX)
        ok = spread_obstacles(&windows) && place_all(&windows) && place_worst_again(&windows);
    for (uint32_t w = 0; ok && w <= windows.cuts.count; w++)
        if (windows.top[w] > *top) *top = windows.top[w];
    windows_finish(&windows);
    return ok;
}
