/* Places crossing storages as clusters. Lone blocks are stacked in one cluster under two
 * conditions. One stream, or a line of streams (lines.c), produces them in the same period
 * (periods.c), and every stream or line releases them in the same period. Then, as far as periods
 * can say, they have the same conflicts. Contiguous groups are not stacked. The clusters are placed
 * as a problem of their own (cluster_problem.h). Exact conflicts come back when each window is
 * placed, around the blocks of the other windows. Source: docs/how-it-works.md, "Windows". Cost:
 * O(blocks * streams), and a placement of the clusters for each priority order. */
#include "window.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "cluster_problem.h"
#include "planner/place/effort/effort.h"

/* A period may always move one part in PERIODS of the aim, with lines of streams one part in
 * LINE_PERIODS. */
enum { PERIODS = 256, LINE_PERIODS = 1024 };
/* A cluster has one part in CLUSTERS_MIN of the aim at most, so that many are needed to fill it. */
enum { CLUSTERS_MIN = 512 };
/* Placements may take 1/EFFORT_SHARE of the effort. If one takes more, 1 << COARSER_SHIFT periods
 * become one, up to 1 << SHIFT_MAX. Further priority orders follow the first one if that ends more
 * than 1/ENOUGH_SHARE of the aim above it. */
enum { EFFORT_SHARE = 6, COARSER_SHIFT = 2, SHIFT_MAX = 8, ENOUGH_SHARE = 1024 };
/* Numbers of priority orders (priorities.h), in the order in which they are tried. */
static const uint32_t priorities[] = {0, 2, 3, 1};
enum { PRIORITIES_COUNT = sizeof priorities / sizeof *priorities };

/* ---- Stacking ---- */

static uint32_t period_of(const struct tarn_clusters *clusters, uint32_t i)
{
    return clusters->period[i] >> clusters->shift;
}

static bool find_sources(struct tarn_clusters *clusters, struct tarn_region *region)
{
    size_t streams_count = clusters->field->problem->conflicts.reuse.streams_count;
    struct tarn_source *source = tarn_region_take(region, streams_count, sizeof *source);
    clusters->sources = source;
    for (uint32_t i = 0; source && i < clusters->count; i = source++->end) {
        *source = (struct tarn_source){tarn_clusters_stream(clusters, i), i, i};
        while (source->end < clusters->count &&
               tarn_clusters_stream(clusters, source->end) == source->stream)
            source->end++;
        clusters->sources_count++;
    }
    return source != NULL;
}

/* If two vectors of periods have the same number, clusters are only larger than necessary. */
static void number_releases(const struct tarn_clusters *clusters)
{
    for (uint32_t k = 0; k < clusters->sources_count; k++) {
        const struct tarn_source *source = &clusters->sources[k];
        for (uint32_t i = 0; i < clusters->count; i++) {
            uint32_t at = tarn_clusters_release(clusters, source, i);
            uint64_t period = at < source->end ? period_of(clusters, at) : UINT32_MAX;
            uint64_t mixed = (clusters->release[i] ^ period) * UINT64_C(0x9e3779b97f4a7c15);
            clusters->release[i] = mixed ^ mixed >> 29;
        }
    }
}

struct sorted {
    uint64_t release;
    uint32_t i;
};

static int compare(const void *left, const void *right)
{
    const struct sorted *a = left, *b = right;
    if (a->release != b->release) return a->release < b->release ? -1 : 1;
    return a->i < b->i ? -1 : a->i > b->i;
}

/* Blocks by stream, then period of production, as they are listed, then releases. */
static bool sort_blocks(struct tarn_clusters *clusters, struct tarn_region *region)
{
    struct tarn_region_mark mark = tarn_region_mark(region);
    struct sorted *run = tarn_region_take(region, clusters->count, sizeof *run);
    for (uint32_t i = 0, next; run && i < clusters->count; i = next) {
        uint32_t count = 0;
        for (next = i; next < clusters->count; next++) {
            if (period_of(clusters, next) != period_of(clusters, i) ||
                tarn_clusters_stream(clusters, next) != tarn_clusters_stream(clusters, i))
                break;
            if (tarn_clusters_block(clusters, next).members[0] == clusters->storages[next])
                run[count++] = (struct sorted){clusters->release[next], next};
        }
        if (count > 0) qsort(run, count, sizeof *run, compare);
        for (uint32_t n = 0; n < count; n++) clusters->order[clusters->blocks_count++] = run[n].i;
    }
    tarn_region_release(region, mark);
    return run != NULL;
}

static bool joins(const struct tarn_clusters *clusters, const struct tarn_cluster *cluster,
                  uint32_t i)
{
    uint32_t other = clusters->order[cluster->begin];
    return tarn_clusters_stream(clusters, i) == tarn_clusters_stream(clusters, other) &&
           period_of(clusters, i) == period_of(clusters, other) &&
           clusters->release[i] == clusters->release[other] &&
           tarn_clusters_block(clusters, i).members_count == 1 &&
           tarn_clusters_block(clusters, other).members_count == 1;
}

/* Puts a block on top of the cluster, whose start is a multiple of every alignment in it; the
 * block's offset is relative to the cluster. */
static void stack(const struct tarn_clusters *clusters, struct tarn_cluster *cluster, uint32_t i,
                  int32_t size, int32_t alignment)
{
    uint32_t b = clusters->field->block_of[clusters->storages[i]];
    assert(size >= 0 && alignment > 0 && cluster->size <= INT32_MAX - size - alignment);
    int32_t offset = (cluster->size + alignment - 1) & ~(alignment - 1);
    clusters->field->offset[b] = offset;
    cluster->size = offset + size;
    cluster->end++;
    if (alignment > cluster->alignment) cluster->alignment = alignment;
    if (clusters->field->floor[b] > cluster->floor) cluster->floor = clusters->field->floor[b];
}

static void stack_blocks(struct tarn_clusters *clusters)
{
    uint32_t shift = clusters->settings->unit_shift;
    uint64_t unit = (UINT64_C(1) << shift) - 1;
    int32_t size_max = clusters->settings->aim / CLUSTERS_MIN;
    struct tarn_cluster *cluster = NULL;
    for (uint32_t n = 0; n < clusters->blocks_count; n++) {
        struct tarn_block block = tarn_clusters_block(clusters, clusters->order[n]);
        int32_t size = (int32_t)((block.size + unit) >> shift);
        int32_t alignment = (int32_t)((block.alignment + unit) >> shift);
        if (!cluster || size > size_max - cluster->size - alignment ||
            !joins(clusters, cluster, clusters->order[n])) {
            cluster = &clusters->list[clusters->list_count++];
            *cluster = (struct tarn_cluster){.begin = n, .end = n, .alignment = 1};
        }
        stack(clusters, cluster, clusters->order[n], size, alignment);
    }
}

/* ---- Placing ---- */

/* Adds the offsets of clusters to those that their blocks have in them. */
static void take_offsets(const struct tarn_clusters *clusters, const int32_t *start)
{
    for (uint32_t n = 0; n < clusters->list_count; n++)
        for (uint32_t i = clusters->list[n].begin; i < clusters->list[n].end; i++) {
            uint32_t a = clusters->storages[clusters->order[i]];
            clusters->field->offset[clusters->field->block_of[a]] += start[n];
        }
}

/* Ends the placements of all priority orders. */
static uint64_t work_max(const struct tarn_clusters *clusters)
{
    struct tarn_effort *effort = clusters->settings->effort;
    uint64_t left = tarn_effort_left(effort), share = effort->max / EFFORT_SHARE;
    if (effort->max == UINT64_MAX) return UINT64_MAX;
    if (effort->must) return clusters->shift < SHIFT_MAX ? share : UINT64_MAX;
    return left < share ? left : share;
}

static void note_priority(struct tarn_effort *effort, uint64_t work, uint32_t clusters_count)
{
    effort->priority_work = work;
    effort->priority_clusters = clusters_count;
}

/* Writes the offsets of clusters, for the best of the priority orders. */
static bool place_priorities(const struct tarn_clusters *clusters, struct tarn_region *region,
                             const struct tarn_lowest *lowest, const struct tarn_traits *traits,
                             int32_t *start, int32_t *top)
{
    struct tarn_greedy greedy;
    int32_t *priority = tarn_region_take(region, lowest->count, sizeof *priority);
    int32_t *floor = tarn_region_take(region, lowest->count, sizeof *floor);
    int32_t aim = clusters->settings->aim;
    bool ok = tarn_greedy_init(&greedy, region, lowest) == TARN_OK &&
              tarn_greedy_narrow(&greedy, region) == TARN_OK && priority && floor;
    greedy.deadline = clusters->settings->deadline;
    greedy.hurries = true;
    greedy.work_max = work_max(clusters);
    for (uint32_t place = 0; ok && place < lowest->count; place++)
        floor[place] = clusters->list[lowest->block[place]].floor;
    for (uint32_t n = 0; ok && n < PRIORITIES_COUNT; n++) {
        ok = tarn_priorities_fill(lowest, region, traits, priorities[n], priority) == TARN_OK;
        tarn_greedy_start(&greedy, floor);
        bool lower =
            ok && tarn_greedy_advance(&greedy, priority, floor, (struct tarn_objective){0, 1, 0},
                                      *top - 1, lowest->count);
        if (lower) *top = greedy.top;
        if (n == 0 && lower) note_priority(clusters->settings->effort, greedy.work, lowest->count);
        for (uint32_t place = 0; lower && place < lowest->count; place++)
            start[lowest->block[place]] = greedy.offset[place];
        if (*top == INT32_MAX || *top <= aim + aim / ENOUGH_SHARE) break;
        if (greedy.work / (n + 1) > tarn_work_less(greedy.work_max, greedy.work)) break;
    }
    tarn_effort_spend(clusters->settings->effort, greedy.work);
    clusters->settings->effort->crossing += greedy.work;
    return ok;
}

/* Places the clusters, and their blocks with them. */
static bool place(const struct tarn_clusters *clusters, struct tarn_region *region,
                  const struct tarn_cluster_problem *problem, int32_t *top)
{
    struct tarn_obstacles none = {
        .reuse = &problem->problem.conflicts.reuse}; /* sizes are in units already */
    struct tarn_lowest lowest = {0};
    struct tarn_traits traits = {0};
    int32_t *start = tarn_region_take(region, clusters->list_count, sizeof *start);
    bool ok = start && tarn_obstacles_sort(&none, region) == TARN_OK &&
              tarn_lowest_init_around(&lowest, region, &problem->problem, &none) == TARN_OK &&
              tarn_traits_init(&traits, region, &lowest) == TARN_OK &&
              place_priorities(clusters, region, &lowest, &traits, start, top);
    if (ok && *top < INT32_MAX) take_offsets(clusters, start);
    return ok;
}

/* ---- The whole ---- */

static bool find_periods(struct tarn_clusters *clusters, struct tarn_region *region,
                         const uint32_t *storages, uint32_t count)
{
    const struct tarn_field *field = clusters->field;
    const struct tarn_windows_settings *settings = clusters->settings;
    struct tarn_region_mark mark = tarn_region_mark(region);
    uint64_t aim = (uint64_t)settings->aim << settings->unit_shift;
    const uint32_t *period_of =
        tarn_periods_find(region, field->problem, field->block_of, storages, count, aim,
                          clusters->lines.of ? LINE_PERIODS : PERIODS);
    if (!period_of) return false;
    for (uint32_t i = 0; i < clusters->count; i++)
        clusters->period[i] = period_of[tarn_problem_begin(field->problem, clusters->storages[i])];
    tarn_region_release(region, mark);
    return true;
}

static bool clusters_init(struct tarn_clusters *clusters, struct tarn_region *region,
                          const uint32_t *storages, uint32_t storages_count)
{
    const struct tarn_problem *problem = clusters->field->problem;
    size_t count = clusters->count;
    clusters->release = tarn_region_take(region, count, sizeof *clusters->release);
    clusters->order = tarn_region_take(region, count, sizeof *clusters->order);
    clusters->list = tarn_region_take(region, count, sizeof *clusters->list);
    clusters->period = tarn_region_take(region, count, sizeof *clusters->period);
    return !region->is_exhausted &&
           tarn_slot_set_init(&clusters->listed, region, &problem->conflicts, clusters->storages,
                              clusters->count) == TARN_OK &&
           tarn_lines_find(clusters, region) && find_sources(clusters, region) &&
           find_periods(clusters, region, storages, storages_count);
}

/* Stacks and places with the present shift. The region is as before in the end. */
static bool place_with_shift(struct tarn_clusters *clusters, struct tarn_region *region,
                             int32_t *top)
{
    struct tarn_region_mark mark = tarn_region_mark(region);
    struct tarn_cluster_problem problem;
    memset(clusters->release, 0, clusters->count * sizeof *clusters->release);
    clusters->blocks_count = clusters->list_count = 0;
    number_releases(clusters);
    if (!sort_blocks(clusters, region)) return false;
    stack_blocks(clusters);
    if (tarn_cluster_problem_init(&problem, region, clusters) != TARN_OK) return false;
    bool ok = place(clusters, region, &problem, top);
    tarn_region_release(region, mark);
    return ok;
}

bool tarn_clusters_place(const struct tarn_field *field,
                         const struct tarn_windows_settings *settings, const struct tarn_cuts *cuts,
                         const uint32_t *storages, uint32_t count, int32_t *top)
{
    uint32_t begin = cuts->begin[cuts->count], end = cuts->begin[cuts->count + 1];
    struct tarn_clusters clusters = {.field = field,
                                     .settings = settings,
                                     .storages = cuts->storages + begin,
                                     .count = end - begin};
    struct tarn_region region = {.chunks = NULL};
    bool ok = clusters_init(&clusters, &region, storages, count);
    *top = INT32_MAX;
    for (; ok && *top == INT32_MAX && clusters.shift <= SHIFT_MAX;
         clusters.shift += COARSER_SHIFT) {
        if (settings->deadline && tarn_deadline_is_over(settings->deadline)) break;
        if (!settings->effort->must && clusters.shift > 0) break;
        ok = place_with_shift(&clusters, &region, top);
    }
    tarn_region_finish(&region);
    return ok;
}
