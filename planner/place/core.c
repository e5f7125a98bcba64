/* Search by cores. If a plan does not reach its aim, few blocks are the reason: the blocks of the
 * heaviest antichain, which must be stacked without a hole, and the blocks that prevent this.
 *
 *     aim ──┬─────┬──────┬─────────    1. Exact search places the core within the aim.
 *           │ core│  ░░░ │  ░░░        2. All others (░) go around it, lowest-offset-first.
 *         ░░│     ├──────┤  ░░░░       3. The largest of those that still end above the aim join
 *         ░░│     │ core │░░░░░           the core, and a few next to them; back to 1.
 *
 * It begins with the antichain and the blocks above the aim in the best plan so far. Most blocks
 * never join, so exact search, which costs too much for thousands of blocks, gets only some
 * hundred. If exact search proves that the core does not fit, the whole does not fit. The method
 * resembles constraint generation; for variables the idea is known as kernel search (Angelelli,
 * Mansini, Speranza 2010). Cost: an exact search and a placement for each time that the core
 * grows. */
#include "core.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "planner/place/effort/effort.h"
#include "planner/place/exact/exact.h"
#include "planner/place/lowest/lowest.h"
#include "planner/place/windows/windows.h"
#include "streams/base/bitset.h"
#include "streams/base/checked.h"

/* Nodes of the first exact search for each storage of the core; each attempt doubles them. */
enum { NODES_A_STORAGE = 12, ATTEMPTS_MAX = 16 };
/* Storages of a core at most. */
enum { STORAGES_MAX = 2048 };
/* Costs in visits: placing a storage with all priority orders, and a node of exact search without
 * its own visits. */
enum { VISITS_A_PLACEMENT = 1600, VISITS_A_NODE = 128 };
/* At most JOIN_MIN blocks join the core at a time, and one more for each JOIN_SHARE storages in it;
 * in every other attempt at least one for each NEAR_SHARE storages. */
enum { JOIN_MIN = 8, JOIN_SHARE = 8, NEAR_SHARE = 32 };
/* From that many blocks on helpers are started at once. */
enum { EAGER_BLOCKS = 1024 };

/* A block that may join the core. */
struct outer {
    uint64_t size;
    uint32_t block;
};

struct core {
    const struct tarn_problem *problem;
    const struct tarn_core_options *options;
    struct tarn_region region;
    struct tarn_windows_settings settings;
    struct tarn_team team; /* for the blocks placed around the core */
    struct tarn_field field;
    uint64_t *offset;        /* storage -> its offset in the present plan, in bytes */
    bool *is_outside;        /* block -> whether it is not in the core */
    uint32_t storages_count; /* in the core */
    uint32_t *storage_at;    /* slot -> storage */
    uint32_t *rest;          /* storages outside of the core, in the order of slots */
    struct outer *outer;     /* candidates: blocks that end above the aim, or that are near these */
    uint32_t above_count;    /* candidates of the first kind; they come first */
    bool *near;              /* block -> whether it is in conflict with a candidate */
    uint64_t *mask;          /* slots in conflict with a storage */
    uint64_t visits_left, work_left;
    uint64_t seed;
    uint32_t attempts; /* attempts that have begun */
};

static struct tarn_block block_at(const struct core *core, uint32_t b)
{
    return tarn_block_at(&core->problem->blocks, b);
}

static bool is_inside(const struct core *core, uint32_t b) { return !core->is_outside[b]; }

static void join(struct core *core, uint32_t b)
{
    assert(core->is_outside[b]);
    core->is_outside[b] = false;
    core->storages_count += block_at(core, b).members_count;
}

/* ---- The core ---- */

/* Starts a core: the antichain, and the blocks above the aim in the given plan. */
static void begin(struct core *core, const uint64_t *offset)
{
    const struct tarn_blocks *blocks = &core->problem->blocks;
    const struct tarn_reuse *reuse = &core->problem->conflicts.reuse;
    core->storages_count = 0;
    memset(core->is_outside, true, blocks->count);
    for (uint32_t a = 0; a < reuse->count; a++)
        core->storage_at[core->problem->conflicts.slot_of[a]] = a;
    for (uint32_t b = 0; b < blocks->count; b++) {
        const struct tarn_block block = block_at(core, b);
        bool inside = offset[block.members[0]] + block.size > core->options->aim;
        for (uint32_t k = 0; k < block.members_count; k++)
            inside = inside || tarn_problem_in_antichain(core->problem, block.members[k]);
        if (inside) join(core, b);
    }
}

static uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }

/* True when the core has its place in core->offset. */
static enum tarn_status place_inside(struct core *core, enum tarn_exact_result *result)
{
    const struct tarn_core_options *options = core->options;
    uint64_t storages = (uint64_t)core->storages_count + VISITS_A_NODE;
    const struct tarn_exact_options exact = {
        .seed = core->seed++,
        .nodes_max = ((uint64_t)NODES_A_STORAGE << core->attempts) * storages,
        .visits_max = core->visits_left,
        .work_max = core->options->work_max > 0 ? core->work_left : 0,
        .threads = options->threads,
        .deadline = options->deadline};
    struct tarn_exact_report report;
    enum tarn_status status = tarn_exact_place(core->problem, core->is_outside, options->aim,
                                               &exact, core->offset, &report);
    *result = status == TARN_OK ? report.result : TARN_EXACT_STOPPED;
    core->visits_left -= least(core->visits_left, report.visits + storages);
    core->work_left = tarn_work_less(
        core->work_left, report.work + core->storages_count * (uint64_t)TARN_WORK_EXACT_CONFLICT *
                                           core->problem->conflicts.words_count);
    return status == TARN_SYSTEM ? status : TARN_OK;
}

/* ---- The others ---- */

/* Rounded outward to units, which need not divide the offsets of exact search. */
static struct tarn_span span_of(const struct core *core, uint32_t a)
{
    uint32_t shift = core->settings.unit_shift;
    uint64_t unit = (UINT64_C(1) << shift) - 1;
    uint64_t end = core->offset[a] + core->problem->blocks.reserved[a] + unit;
    return (struct tarn_span){(int32_t)(core->offset[a] >> shift), (int32_t)(end >> shift)};
}

/* Splits the storages into obstacles and rest. */
static enum tarn_status divide(struct core *core, struct tarn_obstacles *obstacles,
                               uint32_t *rest_count)
{
    enum tarn_status status = TARN_OK;
    *rest_count = 0;
    for (uint32_t slot = 0; slot < core->problem->blocks.storages_count; slot++) {
        uint32_t a = core->storage_at[slot];
        if (!is_inside(core, core->field.block_of[a]))
            core->rest[(*rest_count)++] = a;
        else if (status == TARN_OK)
            status = tarn_obstacles_add(obstacles, &core->region, span_of(core, a), a);
    }
    return status == TARN_OK ? tarn_obstacles_sort(obstacles, &core->region) : status;
}

/* *placed: false if the plan was too high to be counted, or time was over. */
static enum tarn_status place_outside(struct core *core, bool *placed)
{
    struct tarn_obstacles obstacles = {.unit_shift = core->settings.unit_shift,
                                       .reuse = &core->problem->conflicts.reuse};
    int32_t top = INT32_MAX;
    uint32_t rest_count;
    struct tarn_effort effort = {.max = UINT64_MAX}; /* counts, and ends nothing */
    struct tarn_region_mark mark = tarn_region_mark(&core->region);
    bool ok = divide(core, &obstacles, &rest_count) == TARN_OK;
    core->settings.effort = &effort;
    core->settings.work_max = core->options->work_max > 0 ? core->work_left : 0;
    *placed = rest_count == 0;
    if (ok && rest_count > 0) {
        const struct tarn_placements every = {0, TARN_PRIORITIES_COUNT, 0};
        ok = tarn_field_place(&core->field, &core->region, &core->settings, core->rest, rest_count,
                              &obstacles, every, &top);
        *placed = top < INT32_MAX;
    }
    tarn_region_release(&core->region, mark);
    core->visits_left -= least(core->visits_left, (uint64_t)rest_count * VISITS_A_PLACEMENT);
    core->settings.effort = NULL;
    core->work_left =
        tarn_work_less(core->work_left, effort.spent + (uint64_t)TARN_WORK_MAKE * rest_count);
    return ok ? TARN_OK : TARN_SYSTEM;
}

/* Gives the others the offsets of the field, and lists those that end above the aim. */
static void take_outside(struct core *core)
{
    const struct tarn_blocks *blocks = &core->problem->blocks;
    core->above_count = 0;
    for (uint32_t b = 0; b < blocks->count; b++) {
        const struct tarn_block block = block_at(core, b);
        uint64_t at = (uint64_t)core->field.offset[b] << core->settings.unit_shift;
        if (is_inside(core, b)) continue;
        tarn_block_put(blocks, block, at, core->offset);
        if (at + block.size > core->options->aim)
            core->outer[core->above_count++] = (struct outer){block.size, b};
    }
}

static int compare_outer(const void *left, const void *right)
{
    const struct outer *a = left, *b = right;
    if (a->size != b->size) return a->size > b->size ? -1 : 1;
    return a->block < b->block ? -1 : a->block > b->block;
}

/* Makes the largest of those listed join, which are not inside. */
static void join_largest(struct core *core, uint32_t count, uint32_t most)
{
    qsort(core->outer, count, sizeof *core->outer, compare_outer);
    for (uint32_t i = 0; i < count && i < most; i++) join(core, core->outer[i].block);
}

/* Lists the blocks that are outside and in conflict with the listed blocks. */
static uint32_t list_near(struct core *core, uint32_t listed)
{
    const struct tarn_conflicts *conflicts = &core->problem->conflicts;
    uint32_t count = 0;
    memset(core->near, 0, core->problem->blocks.count * sizeof *core->near);
    for (uint32_t i = 0; i < listed; i++) {
        const struct tarn_block block = block_at(core, core->outer[i].block);
        for (uint32_t k = 0; k < block.members_count; k++) {
            tarn_conflicts_mask(conflicts, block.members[k], core->mask);
            TARN_SET_EACH(slot, w, conflicts->words_count, core->mask[w]) {
                core->near[core->field.block_of[core->storage_at[slot]]] = true;
            }
        }
    }
    for (uint32_t b = 0; b < core->problem->blocks.count; b++)
        if (core->near[b] && !is_inside(core, b))
            core->outer[count++] = (struct outer){block_at(core, b).size, b};
    return count;
}

static void grow(struct core *core)
{
    uint32_t most = JOIN_MIN + core->storages_count / JOIN_SHARE;
    uint32_t fewest = core->attempts % 2 == 1 ? core->storages_count / NEAR_SHARE : 0;
    uint32_t above = core->above_count;
    join_largest(core, above, most);
    if (above < fewest) join_largest(core, list_near(core, above), fewest - above);
}

/* ---- The search ---- */

static void keep_better(const struct core *core, uint64_t *offset, uint64_t *footprint)
{
    const struct tarn_blocks *blocks = &core->problem->blocks;
    uint64_t found = tarn_blocks_footprint(blocks, core->offset);
    if (found >= *footprint) return;
    memcpy(offset, core->offset, blocks->storages_count * sizeof *offset);
    *footprint = found;
}

static bool is_over(const struct core *core)
{
    return core->visits_left == 0 || core->work_left == 0 || core->storages_count > STORAGES_MAX ||
           tarn_deadline_is_over(&core->options->deadline);
}

/* Grows one core until the other blocks fit around it, or the core cannot be placed. */
static enum tarn_status attempt(struct core *core, uint64_t *offset, uint64_t *footprint,
                                enum tarn_exact_result *result)
{
    enum tarn_status status = TARN_OK;
    bool placed = true;
    *result = TARN_EXACT_STOPPED;
    while (status == TARN_OK && placed && *footprint > core->options->aim && !is_over(core)) {
        status = place_inside(core, result);
        if (status != TARN_OK || *result != TARN_EXACT_FOUND) break;
        status = place_outside(core, &placed);
        if (status != TARN_OK || !placed) break;
        take_outside(core);
        keep_better(core, offset, footprint);
        grow(core);
    }
    return status;
}

/* Short attempts first: one that begins well is over soon. */
static enum tarn_status search(struct core *core, uint64_t *offset, uint64_t *footprint,
                               bool *impossible)
{
    enum tarn_status status = TARN_OK;
    while (status == TARN_OK && !*impossible && core->attempts < ATTEMPTS_MAX && !is_over(core)) {
        enum tarn_exact_result result;
        begin(core, offset);
        core->attempts++;
        status = attempt(core, offset, footprint, &result);
        *impossible = result == TARN_EXACT_INFEASIBLE;
        if (*footprint <= core->options->aim) break;
    }
    return status;
}

/* ---- The whole ---- */

static bool core_init(struct core *core)
{
    const struct tarn_blocks *blocks = &core->problem->blocks;
    struct tarn_region *region = &core->region;
    size_t storages = blocks->storages_count, words = core->problem->conflicts.words_count;
    uint64_t most;
    if (!tarn_size_multiply(core->options->aim, 4, &most)) most = UINT64_MAX;
    core->settings.unit_shift = tarn_lowest_unit_shift(blocks, most);
    core->settings.aim = (int32_t)(core->options->aim >> core->settings.unit_shift);
    core->settings.deadline = &core->options->deadline;
    core->settings.team = &core->team;
    core->offset = tarn_region_take(region, storages, sizeof *core->offset);
    core->is_outside = tarn_region_take(region, blocks->count, sizeof *core->is_outside);
    core->storage_at = tarn_region_take(region, storages, sizeof *core->storage_at);
    core->rest = tarn_region_take(region, storages, sizeof *core->rest);
    core->outer = tarn_region_take(region, blocks->count, sizeof *core->outer);
    core->near = tarn_region_take(region, blocks->count, sizeof *core->near);
    core->mask = tarn_region_take(region, words, sizeof *core->mask);
    return tarn_field_init(&core->field, region, core->problem) && !region->is_exhausted;
}

enum tarn_status tarn_core_place(const struct tarn_problem *problem,
                                 const struct tarn_core_options *options, uint64_t *offset,
                                 uint64_t *footprint, struct tarn_core_report *report)
{
    uint64_t work_max = options->work_max > 0 ? options->work_max : TARN_WORK_UNLIMITED;
    struct core core = {.problem = problem,
                        .options = options,
                        .visits_left = options->visits,
                        .work_left = work_max,
                        .seed = options->seed};
    assert(problem->conflicts.row);
    tarn_team_init(&core.team, options->threads, problem->blocks.count >= EAGER_BLOCKS);
    enum tarn_status status = core_init(&core) ? TARN_OK : TARN_SYSTEM;
    *report = (struct tarn_core_report){false, 0};
    if (status == TARN_OK) status = search(&core, offset, footprint, &report->impossible);
    report->work = work_max - core.work_left;
    tarn_region_finish(&core.region);
    return status;
}
