/* Collects the storages that cross a window, as obstacles. For a storage in conflict with a whole
 * window only the range of bytes is kept: a tree over the windows holds the unions of these ranges,
 * so a storage that crosses many windows costs a logarithm of their number. A storage in conflict
 * with a part of a window is listed in that window. Source: docs/how-it-works.md, "Windows". Cost:
 * O(crossing * log windows).
 */
#include "around.h"

#include <string.h>

#include "streams/base/radix.h"

/* Windows for each storage that crosses, before the last one in conflict with it, that look at its
 * conflicts one by one. */
enum { PARTLY_MAX = 4 };

/* A crossing storage is partly in conflict with the windows in which it is produced and released.
 * It may be partly in conflict with more windows, of which the last few are treated separately.
 * Returns the first window after the windows with which it is wholly in conflict. */
static uint32_t whole_end(const struct tarn_crossing *crossing)
{
    uint32_t whole = crossing->whole;
    if (crossing->end > whole + PARTLY_MAX) whole = crossing->end - PARTLY_MAX;
    if (whole > crossing->end) whole = crossing->end;
    return whole > crossing->first ? whole : crossing->first + 1;
}

/* Makes room for the storages that are partly in conflict with each window. */
static bool count_partly(struct tarn_around *around, struct tarn_region *region, uint32_t count)
{
    uint32_t *begin = tarn_region_take(region, (size_t)around->cuts->count + 2, sizeof *begin);
    around->partly_begin = begin;
    if (!begin) return false;
    for (uint32_t i = 0; i < count; i++) {
        const struct tarn_crossing *crossing = &around->cuts->crossing[i];
        begin[crossing->first + 1]++;
        for (uint32_t w = whole_end(crossing); w < crossing->end; w++) begin[w + 1]++;
    }
    for (uint32_t w = 0; w < around->cuts->count; w++) begin[w + 1] += begin[w];
    around->partly = tarn_region_take(region, begin[around->cuts->count], sizeof *around->partly);
    return around->partly != NULL;
}

/* Sorts the indices of crossing storages by their offsets. */
static bool sort_crossing(const struct tarn_around *around, struct tarn_region *work,
                          const uint32_t *storages, uint32_t count, uint32_t *sorted)
{
    struct tarn_region_mark mark = tarn_region_mark(work);
    uint64_t *packed = tarn_region_take(work, count, sizeof *packed);
    uint64_t *spare = tarn_region_take(work, count, sizeof *spare);
    if (!packed || !spare) return false;
    for (uint32_t i = 0; i < count; i++) {
        struct tarn_span span = tarn_field_span(around->field, around->unit_shift, storages[i]);
        packed[i] = tarn_radix_pack((uint32_t)span.begin, i);
    }
    const uint64_t *by_begin = tarn_radix_sort(packed, spare, count, INT32_MAX);
    for (uint32_t n = 0; n < count; n++) sorted[n] = tarn_radix_number(by_begin[n]);
    tarn_region_release(work, mark);
    return true;
}

/* To the windows that a storage crosses; next: by window, its next entry of `partly`. */
static bool add_obstacle(const struct tarn_around *around, struct tarn_region *region, uint32_t a,
                         const struct tarn_crossing *crossing, uint32_t *next)
{
    uint32_t whole = whole_end(crossing);
    around->partly[next[crossing->first]++] = a;
    for (uint32_t w = whole; w < crossing->end; w++) around->partly[next[w]++] = a;
    return tarn_span_tree_add(&around->wholly, region, crossing->first + 1, whole,
                              tarn_field_span(around->field, around->unit_shift, a));
}

bool tarn_around_init(struct tarn_around *around, struct tarn_region *region,
                      struct tarn_region *work, const struct tarn_field *field, uint32_t unit_shift,
                      const struct tarn_cuts *cuts)
{
    uint32_t windows_count = cuts->count, begin = cuts->begin[windows_count];
    uint32_t count = cuts->begin[windows_count + 1] - begin;
    const uint32_t *storages = cuts->storages + begin;
    *around = (struct tarn_around){.field = field, .unit_shift = unit_shift, .cuts = cuts};
    struct tarn_region_mark mark = tarn_region_mark(work);
    uint32_t *sorted = tarn_region_take(work, count, sizeof *sorted);
    uint32_t *next = tarn_region_take(work, windows_count, sizeof *next);
    bool ok = sorted && next && tarn_span_tree_init(&around->wholly, region, windows_count) &&
              sort_crossing(around, work, storages, count, sorted) &&
              count_partly(around, region, count);
    if (ok) memcpy(next, around->partly_begin, windows_count * sizeof *next);
    for (uint32_t n = 0; ok && n < count; n++)
        ok = add_obstacle(around, region, storages[sorted[n]], &cuts->crossing[sorted[n]], next);
    tarn_region_release(work, mark);
    return ok;
}

bool tarn_around_collect(const struct tarn_around *around, struct tarn_region *region, uint32_t w,
                         struct tarn_obstacles *obstacles)
{
    enum tarn_status status = tarn_span_tree_collect(&around->wholly, region, w, obstacles);
    for (uint32_t i = around->partly_begin[w]; i < around->partly_begin[w + 1]; i++) {
        uint32_t a = around->partly[i];
        struct tarn_span span = tarn_field_span(around->field, obstacles->unit_shift, a);
        if (status == TARN_OK) status = tarn_obstacles_add(obstacles, region, span, a);
    }
    return status == TARN_OK && tarn_obstacles_sort(obstacles, region) == TARN_OK;
}
