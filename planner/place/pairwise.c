/* Lowest-offset placement over a list of pairs. Two conflicting members of different blocks keep
 * the distance of their blocks out of one open interval; the list of a block has the pairs of its
 * members and members of others. A block is placed at the lowest multiple of its alignment that is
 * in none of the intervals of blocks placed already. An order of blocks makes a placement. For lone
 * storages some order makes an optimal placement: the order of their offsets in it.
 *
 * Only storages whose lifetimes in list order meet are compared: they are swept in the order in
 * which they begin. Orders by size, size and life, and conflicting bytes come first. If the
 * conflicts of the problem say all (no arms, no fixed offsets), exact search then places a core,
 * which begins with the blocks above the bound, and the others are placed around it, as core.c
 * does. Then a local search moves a block from the top, or a block below it, towards the start of
 * the order. It keeps placements that are not worse than some steps ago. Up to SMALL blocks all
 * orders are tried. Cost: O(n m) to list the pairs, for m storages whose lifetimes meet that of
 * another one, 8 bytes a pair and side; O(p log p) for each placement of p pairs. */
#include "pairwise.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "planner/place/effort/effort.h"
#include "planner/place/exact/exact.h"
#include "streams/base/checked.h"
#include "streams/base/random.h"

enum { SMALL = 8, HISTORY = 16 };
/* Footprints that are searched for, exact searches of a growing core for each, and visits of blocks
 * in the first of these; each may take twice as many as the one before. */
enum { CORE_LEVELS = 8, CORE_ATTEMPTS = 6 };
#define CORE_VISITS UINT64_C(500000)
/* Pairs that are listed, from both sides, and storages that are compared. */
#define PAIRS_MAX (UINT64_C(1) << 26)
#define COMPARED_MAX (UINT64_C(1) << 30)
/* Work of a placement, for each pair, as work.h counts it. */
enum { WORK_A_PAIR = 60 };

/* Storages of two blocks that must not share bytes. */
struct pair {
    uint32_t own, other;
};

/* A block is not placed in (low, high), because of another one. */
struct span {
    uint32_t other;
    int64_t low, high;
};

struct placer {
    const struct tarn_problem *problem;
    struct tarn_region *region;
    const uint64_t *fixed;
    uint32_t count;     /* blocks */
    uint32_t *block_of; /* storage -> its block */
    uint32_t *begin;    /* block -> its pairs; count + 1 */
    struct pair *pairs;
    uint64_t *start; /* block -> its offset */
    bool *placed;
    struct span *spans; /* scratch: of one block */
    uint32_t *order, *best_order;
    uint64_t *best; /* block -> its place in the best placement */
    uint64_t best_top;
    uint64_t work_left; /* of all searches together; TARN_WORK_UNLIMITED */
};

/* ---- Pairs ---- */

bool tarn_pairwise_is_needed(const struct tarn_graph *graph)
{
    if (graph->conditionals_count > 0) return true;
    for (uint32_t a = 0; a < graph->planned_count; a++)
        if (tarn_storage_is_fixed(graph, a)) return true;
    for (uint32_t g = 0; g < graph->groups_count; g++)
        if (graph->groups[g].within && !graph->groups[g].persistent) return true;
    return false;
}

bool tarn_pairwise_may_share(const struct tarn_problem *problem, uint32_t a, uint32_t b)
{
    return tarn_reuse_is_safe(&problem->conflicts.reuse, a, b) ||
           tarn_storages_exclude(problem->graph, a, b);
}

/* Of another block's begin: where a block must not begin. */
static struct span span_of(const struct placer *placer, struct pair pair)
{
    const struct tarn_blocks *blocks = &placer->problem->blocks;
    int64_t away = (int64_t)blocks->within[pair.other] - (int64_t)blocks->within[pair.own];
    return (struct span){placer->block_of[pair.other], away - (int64_t)blocks->reserved[pair.own],
                         away + (int64_t)blocks->reserved[pair.other]};
}

/* Storages in the order in which they begin, and until when they may be in conflict. */
struct sweep {
    uint32_t *order, *since, *until, *alive; /* alive: scratch */
    uint32_t count;
};

static bool sweep_init(struct sweep *sweep, struct tarn_region *region,
                       const struct tarn_problem *problem)
{
    uint32_t count = problem->blocks.storages_count, ops = problem->ops_count;
    struct tarn_lifetimes lifetimes;
    uint32_t *slots = tarn_region_take(region, count, sizeof *slots); /* slot -> storage */
    uint32_t *next = tarn_region_take(region, (size_t)ops + 2, sizeof *next);
    *sweep = (struct sweep){.count = count};
    sweep->order = tarn_region_take(region, count, sizeof *sweep->order);
    sweep->since = tarn_region_take(region, count, sizeof *sweep->since);
    sweep->until = tarn_region_take(region, count, sizeof *sweep->until);
    sweep->alive = tarn_region_take(region, count, sizeof *sweep->alive);
    if (region->is_exhausted) return false;
    for (uint32_t a = 0; a < count; a++) slots[problem->conflicts.slot_of[a]] = a;
    if (tarn_lifetimes_init(&lifetimes, region, problem, slots, count) != TARN_OK) return false;
    for (uint32_t i = 0; i < count; i++) {
        sweep->since[slots[i]] = lifetimes.since[i];
        sweep->until[slots[i]] = lifetimes.until[i];
        next[lifetimes.since[i] + 1]++;
    }
    for (uint32_t v = 0; v <= ops; v++) next[v + 1] += next[v];
    for (uint32_t a = 0; a < count; a++) sweep->order[next[sweep->since[a]]++] = a;
    return true;
}

/* Counts the pairs of every block, or lists them if there is room; false: too many are compared. */
static bool visit_pairs(struct placer *placer, struct sweep *sweep, uint32_t *next)
{
    const struct tarn_problem *problem = placer->problem;
    uint64_t compared = 0, pairs = 0;
    uint32_t alive = 0;
    for (uint32_t i = 0; i < sweep->count; i++) {
        uint32_t a = sweep->order[i], kept = 0, b = placer->block_of[a];
        if (problem->blocks.reserved[a] == 0) continue;
        compared += alive;
        if (compared > COMPARED_MAX || pairs > PAIRS_MAX / 2) return false;
        for (uint32_t k = 0; k < alive; k++) {
            uint32_t c = sweep->alive[k], o = placer->block_of[c];
            if (sweep->until[c] <= sweep->since[a]) continue;
            sweep->alive[kept++] = c;
            if (o == b || tarn_pairwise_may_share(problem, a, c)) continue;
            if (placer->pairs) {
                placer->pairs[placer->begin[b] + next[b]] = (struct pair){a, c};
                placer->pairs[placer->begin[o] + next[o]] = (struct pair){c, a};
            }
            pairs++;
            next[b]++;
            next[o]++;
        }
        alive = kept;
        sweep->alive[alive++] = a;
    }
    return true;
}

/* False: no memory, or (*too_many) more pairs than are looked at. */
static bool list_pairs(struct placer *placer, bool *too_many)
{
    struct tarn_region scratch = {.chunks = NULL};
    uint32_t *next = tarn_region_take(&scratch, placer->count, sizeof *next);
    struct sweep sweep;
    uint64_t sum = 0;
    bool ok = sweep_init(&sweep, &scratch, placer->problem) && next;
    if (ok) *too_many = !visit_pairs(placer, &sweep, next);
    for (uint32_t b = 0; ok && b < placer->count; b++) sum += next[b];
    if (ok && !*too_many) {
        for (uint32_t b = 0; b < placer->count; b++) {
            placer->begin[b + 1] = placer->begin[b] + next[b];
            next[b] = 0;
        }
        placer->pairs = tarn_region_take(placer->region, (size_t)sum + 1, sizeof *placer->pairs);
        if (placer->pairs) visit_pairs(placer, &sweep, next);
    }
    tarn_region_finish(&scratch);
    return placer->pairs;
}

static bool placer_init(struct placer *placer, struct tarn_region *region,
                        const struct tarn_problem *problem, const uint64_t *fixed, bool *too_many)
{
    size_t count = problem->blocks.count;
    uint32_t longest = 0;
    *placer = (struct placer){.problem = problem,
                              .region = region,
                              .fixed = fixed,
                              .count = problem->blocks.count,
                              .best_top = UINT64_MAX};
    placer->block_of =
        tarn_region_take(region, problem->blocks.storages_count, sizeof *placer->block_of);
    placer->begin = tarn_region_take(region, count + 1, sizeof *placer->begin);
    placer->start = tarn_region_take(region, count, sizeof *placer->start);
    placer->placed = tarn_region_take(region, count, sizeof *placer->placed);
    placer->order = tarn_region_take(region, count, sizeof *placer->order);
    placer->best_order = tarn_region_take(region, count, sizeof *placer->best_order);
    placer->best = tarn_region_take(region, count, sizeof *placer->best);
    if (region->is_exhausted) return false;
    for (uint32_t b = 0; b < count; b++) {
        struct tarn_block block = tarn_block_at(&problem->blocks, b);
        for (uint32_t i = 0; i < block.members_count; i++) placer->block_of[block.members[i]] = b;
    }
    if (!list_pairs(placer, too_many)) return false;
    for (uint32_t b = 0; b < count; b++)
        if (placer->begin[b + 1] - placer->begin[b] > longest)
            longest = placer->begin[b + 1] - placer->begin[b];
    placer->spans = tarn_region_take(region, longest, sizeof *placer->spans);
    return placer->spans;
}

/* ---- Placing ---- */

static int compare_spans(const void *left, const void *right)
{
    const struct span *a = left, *b = right;
    return (a->low > b->low) - (a->low < b->low);
}

/* Finds the sorted intervals in which a block may not begin, because of placed blocks. Returns
 * their number. */
static uint32_t find_spans(const struct placer *placer, uint32_t b)
{
    uint32_t count = 0;
    for (uint32_t i = placer->begin[b]; i < placer->begin[b + 1]; i++) {
        struct span span = span_of(placer, placer->pairs[i]);
        if (!placer->placed[span.other]) continue;
        int64_t at = (int64_t)placer->start[span.other];
        if (at + span.high <= 0) continue;
        placer->spans[count++] = (struct span){span.other, at + span.low, at + span.high};
    }
    qsort(placer->spans, count, sizeof *placer->spans, compare_spans);
    return count;
}

static uint64_t round_up(uint64_t at, uint64_t alignment)
{
    return (at + alignment - 1) & ~(alignment - 1);
}

static uint64_t lowest(const struct placer *placer, uint32_t spans, uint64_t alignment)
{
    uint64_t at = 0;
    for (uint32_t i = 0; i < spans && placer->spans[i].low < (int64_t)at; i++)
        if ((int64_t)at < placer->spans[i].high)
            at = round_up((uint64_t)placer->spans[i].high, alignment);
    return at;
}

/* Places a block at the lowest possible offset, or at its fixed offset; returns its end. */
static uint64_t put(const struct placer *placer, uint32_t b)
{
    struct tarn_block block = tarn_block_at(&placer->problem->blocks, b);
    if (placer->fixed && placer->fixed[b] != TARN_NO_OFFSET)
        placer->start[b] = placer->fixed[b];
    else
        placer->start[b] = lowest(placer, find_spans(placer, b), block.alignment);
    placer->placed[b] = true;
    return placer->start[b] + block.size;
}

static uint64_t put_fixed(const struct placer *placer)
{
    uint64_t top = 0;
    memset(placer->placed, 0, placer->count * sizeof *placer->placed);
    for (uint32_t b = 0; placer->fixed && b < placer->count; b++) {
        if (placer->fixed[b] == TARN_NO_OFFSET) continue;
        uint64_t end = put(placer, b);
        if (end > top) top = end;
    }
    return top;
}

/* Takes the work of placing all blocks from what is left; false: nothing was left. */
static bool may_put(struct placer *placer)
{
    uint64_t pairs = placer->begin[placer->count] + placer->count;
    bool may = placer->work_left > 0;
    placer->work_left = tarn_work_less(placer->work_left, WORK_A_PAIR * pairs + 1);
    return may;
}

/* Places all blocks. Returns the footprint, or any number above `limit` if the footprint exceeds
 * the limit. */
static uint64_t put_all(const struct placer *placer, uint64_t limit)
{
    uint64_t top = put_fixed(placer);
    for (uint32_t i = 0; i < placer->count && top <= limit; i++) {
        if (placer->placed[placer->order[i]]) continue;
        uint64_t end = put(placer, placer->order[i]);
        if (end > top) top = end;
    }
    return top;
}

static void take(struct placer *placer, uint64_t top)
{
    if (top >= placer->best_top) return;
    placer->best_top = top;
    memcpy(placer->best, placer->start, placer->count * sizeof *placer->best);
    memcpy(placer->best_order, placer->order, placer->count * sizeof *placer->best_order);
}

/* ---- All orders ---- */

static void try_all(struct placer *placer, uint32_t done, uint64_t top, uint64_t aim)
{
    if (top >= placer->best_top || placer->best_top <= aim) return;
    if (done == placer->count) {
        take(placer, top);
        return;
    }
    for (uint32_t b = 0; b < placer->count; b++) {
        if (placer->placed[b]) continue;
        uint64_t end = put(placer, b);
        placer->order[done] = b;
        try_all(placer, done + 1, end > top ? end : top, aim);
        placer->placed[b] = false;
    }
}

static void try_every_order(struct placer *placer, uint64_t aim)
{
    uint32_t fixed = 0;
    uint64_t top = put_fixed(placer);
    for (uint32_t b = 0; b < placer->count; b++)
        if (placer->placed[b]) placer->order[fixed++] = b;
    try_all(placer, fixed, top, aim);
}

/* ---- Priority orders ---- */

struct ranked {
    double weight;
    uint32_t block;
};

static int compare_ranked(const void *left, const void *right)
{
    const struct ranked *a = left, *b = right;
    if (a->weight != b->weight) return a->weight > b->weight ? -1 : 1;
    return a->block < b->block ? -1 : a->block > b->block;
}

static double life_of(const struct placer *placer, struct tarn_block block)
{
    uint32_t begin = UINT32_MAX, end = 0;
    for (uint32_t i = 0; i < block.members_count; i++) {
        uint32_t from = tarn_problem_begin(placer->problem, block.members[i]);
        uint32_t to = tarn_problem_end(placer->problem, block.members[i]);
        if (from < begin) begin = from;
        if (to > end) end = to;
    }
    return (double)(end - begin);
}

enum { BY_SIZE = 0, ORDERS = 5 };
static const char *const order_names[ORDERS] = {"size", "size-life", "conflicts", "life", "list"};

static double weight_of(const struct placer *placer, uint32_t b, uint32_t kind)
{
    struct tarn_block block = tarn_block_at(&placer->problem->blocks, b);
    double size = (double)block.size, conflicts = 0;
    switch (kind) {
    case BY_SIZE: return size;
    case 1: return size * life_of(placer, block);
    case 3: return life_of(placer, block);
    case 4: return -(double)b;
    default: break;
    }
    for (uint32_t i = placer->begin[b]; i < placer->begin[b + 1]; i++) {
        struct span span = span_of(placer, placer->pairs[i]);
        conflicts += (double)(span.high - span.low) - size;
    }
    return conflicts;
}

/* The blocks by falling weight. ranked: room for all of them. */
static void order_by(struct placer *placer, uint32_t kind, struct ranked *ranked)
{
    for (uint32_t b = 0; b < placer->count; b++)
        ranked[b] = (struct ranked){weight_of(placer, b, kind), b};
    qsort(ranked, placer->count, sizeof *ranked, compare_ranked);
    for (uint32_t i = 0; i < placer->count; i++) placer->order[i] = ranked[i].block;
}

/* ---- Local search ---- */

/* Moves a block from `from` to `to`, at or before it. */
static void move(uint32_t *order, uint32_t from, uint32_t to)
{
    uint32_t block = order[from];
    memmove(order + to + 1, order + to, (from - to) * sizeof *order);
    order[to] = block;
}

static void step(struct placer *placer, uint64_t *random, uint64_t top)
{
    uint32_t count = placer->count, from = tarn_random_below(random, count);
    if (tarn_random_below(random, 2) == 0) { /* one that ends highest */
        uint32_t first = from;
        do {
            uint32_t b = placer->order[from];
            struct tarn_block block = tarn_block_at(&placer->problem->blocks, b);
            if (placer->placed[b] && placer->start[b] + block.size >= top) break;
            from = (from + 1) % count;
        } while (from != first);
    }
    uint32_t to = tarn_random_below(random, count);
    if (to <= from)
        move(placer->order, from, to);
    else
        move(placer->order, to, from);
}

static void search(struct placer *placer, const struct tarn_improve_options *options, uint64_t aim)
{
    uint64_t history[HISTORY];
    uint64_t random = options->seed;
    uint32_t *now = tarn_region_take(placer->region, placer->count, sizeof *now);
    if (!now || placer->count < 2) return;
    memcpy(placer->order, placer->best_order, placer->count * sizeof *now);
    uint64_t top = put_all(placer, UINT64_MAX);
    for (uint32_t i = 0; i < HISTORY; i++) history[i] = top;
    for (uint64_t n = 0; n < options->steps && placer->best_top > aim; n++) {
        if (!may_put(placer)) break;
        if (n % 16 == 0 && tarn_deadline_is_over(&options->deadline)) break;
        memcpy(now, placer->order, placer->count * sizeof *now);
        step(placer, &random, top);
        uint64_t limit = history[n % HISTORY] > top ? history[n % HISTORY] : top;
        uint64_t next = put_all(placer, limit);
        if (next > limit) {
            memcpy(placer->order, now, placer->count * sizeof *now);
        } else {
            top = next;
            if (next < placer->best_top) {
                take(placer, next);
                if (options->progress) options->progress(options->user, next, n);
            }
        }
        history[n % HISTORY] = top;
    }
}

/* ---- A core by exact search ---- */

/* Do the conflicts of the problem say which blocks may share bytes? */
static bool is_plain(const struct placer *placer)
{
    if (placer->problem->graph->conditionals_count > 0) return false;
    for (uint32_t b = 0; placer->fixed && b < placer->count; b++)
        if (placer->fixed[b] != TARN_NO_OFFSET) return false;
    return true;
}

/* Blocks that end above the aim join the core; how many did. */
static uint32_t grow_core(const struct placer *placer, bool *is_outside, uint64_t aim)
{
    uint32_t joined = 0;
    for (uint32_t b = 0; b < placer->count; b++) {
        uint64_t size = tarn_block_at(&placer->problem->blocks, b).size;
        if (!is_outside[b] || placer->start[b] + size <= aim) continue;
        is_outside[b] = false;
        joined++;
    }
    return joined;
}

/* Places the blocks that are outside around the core, in the best order so far. */
static uint64_t put_around(struct placer *placer, const bool *is_outside, const uint64_t *offset)
{
    uint64_t top = 0;
    memcpy(placer->order, placer->best_order, placer->count * sizeof *placer->order);
    for (uint32_t b = 0; b < placer->count; b++) {
        struct tarn_block block = tarn_block_at(&placer->problem->blocks, b);
        placer->placed[b] = !is_outside[b];
        if (is_outside[b]) continue;
        placer->start[b] = offset[block.members[0]];
        if (placer->start[b] + block.size > top) top = placer->start[b] + block.size;
    }
    for (uint32_t i = 0; i < placer->count; i++) {
        if (placer->placed[placer->order[i]]) continue;
        uint64_t end = put(placer, placer->order[i]);
        if (end > top) top = end;
    }
    return top;
}

/* Starts a core: what must be stacked without a hole, and the blocks above the aim. */
static void begin_core(const struct placer *placer, bool *is_outside, uint64_t aim)
{
    const struct tarn_problem *problem = placer->problem;
    memset(is_outside, true, placer->count);
    memcpy(placer->start, placer->best, placer->count * sizeof *placer->start);
    for (uint32_t b = 0; b < placer->count; b++) {
        struct tarn_block block = tarn_block_at(&problem->blocks, b);
        for (uint32_t i = 0; i < block.members_count; i++)
            if (tarn_problem_in_antichain(problem, block.members[i])) is_outside[b] = false;
    }
    grow_core(placer, is_outside, aim);
}

struct core {
    const struct tarn_problem *problem; /* with rows */
    const struct tarn_improve_options *improve;
    bool *is_outside; /* by block */
    uint64_t *offset; /* by storage */
    uint64_t seed;
};

/* Looks for a placement within `aim` bytes. *result: FOUND, if there is one now; INFEASIBLE, if it
 * is proved that there is none. */
static enum tarn_status reach(struct placer *placer, struct core *core, uint64_t aim,
                              enum tarn_exact_result *result)
{
    begin_core(placer, core->is_outside, aim);
    *result = TARN_EXACT_STOPPED;
    for (uint32_t attempt = 0; attempt < CORE_ATTEMPTS; attempt++) {
        bool is_limited = placer->work_left != TARN_WORK_UNLIMITED;
        struct tarn_exact_options options = {.seed = core->seed++,
                                             .visits_max = CORE_VISITS << attempt,
                                             .work_max = is_limited ? placer->work_left : 0,
                                             .threads = core->improve->threads,
                                             .deadline = core->improve->deadline};
        struct tarn_exact_report report;
        if (tarn_deadline_is_over(&core->improve->deadline) || placer->work_left == 0)
            return TARN_OK;
        enum tarn_status status =
            tarn_exact_place(core->problem, core->is_outside, aim, &options, core->offset, &report);
        if (status != TARN_OK) return status == TARN_USAGE ? TARN_OK : status;
        placer->work_left = tarn_work_less(placer->work_left, report.work);
        if (report.result != TARN_EXACT_FOUND) {
            *result = report.result;
            return TARN_OK;
        }
        may_put(placer);
        uint64_t top = put_around(placer, core->is_outside, core->offset);
        take(placer, top);
        if (top <= aim) *result = TARN_EXACT_FOUND;
        if (top <= aim || grow_core(placer, core->is_outside, aim) == 0) return TARN_OK;
    }
    return TARN_OK;
}

/* Searches at the aim, then between it, or what was not found last, and the best placement. */
static enum tarn_status search_core(struct placer *placer, const struct tarn_place_request *request,
                                    struct tarn_place_result *result, uint64_t aim)
{
    struct tarn_problem problem = *placer->problem;
    struct core core = {
        .problem = &problem, .improve = &request->improve, .seed = request->improve.seed};
    core.is_outside = tarn_region_take(placer->region, placer->count, sizeof *core.is_outside);
    core.offset =
        tarn_region_take(placer->region, problem.blocks.storages_count, sizeof *core.offset);
    if (!core.is_outside || !core.offset) return TARN_SYSTEM;
    if (!problem.conflicts.row &&
        tarn_conflicts_init_rows(&problem.conflicts, placer->region) != TARN_OK)
        return TARN_SYSTEM;
    uint64_t missed = aim, at = aim;
    for (uint32_t level = 0; level < CORE_LEVELS && placer->best_top > at; level++) {
        enum tarn_exact_result found;
        enum tarn_status status = reach(placer, &core, at, &found);
        if (status != TARN_OK) return status;
        if (found == TARN_EXACT_INFEASIBLE && at == aim) result->cannot_fit = true;
        if (found == TARN_EXACT_FOUND && at == aim) return TARN_OK;
        if (found != TARN_EXACT_FOUND) missed = at;
        at = missed + (placer->best_top - missed) / 2;
    }
    return TARN_OK;
}

/* ---- The whole ---- */

static uint64_t aim_of(const struct tarn_place_request *request)
{
    const struct tarn_improve_options *options = &request->improve;
    return options->capacity > options->bound ? options->capacity : options->bound;
}

static bool is_small(const struct placer *placer) { return placer->count <= SMALL; }

static enum tarn_status try_orders(struct placer *placer, const struct tarn_place_request *request,
                                   struct tarn_place_result *result)
{
    struct ranked *ranked = tarn_region_take(placer->region, placer->count, sizeof *ranked);
    if (!ranked) return TARN_SYSTEM;
    for (uint32_t kind = 0; kind < ORDERS && placer->best_top > aim_of(request); kind++) {
        if (!may_put(placer) && kind > 0) break;
        if (kind > 0 && tarn_deadline_is_over(&request->improve.deadline)) break;
        order_by(placer, kind, ranked);
        uint64_t top = put_all(placer, placer->best_top);
        if (top >= placer->best_top) continue;
        take(placer, top);
        snprintf(result->method, sizeof result->method, "pairwise:%s", order_names[kind]);
    }
    return TARN_OK;
}

enum tarn_status tarn_pairwise_place(const struct tarn_problem *problem, const uint64_t *fixed,
                                     const struct tarn_place_request *request,
                                     struct tarn_place_result *result, bool *is_possible)
{
    struct tarn_region region = {.chunks = NULL};
    struct placer placer;
    bool too_many = false;
    *is_possible = true;
    if (!placer_init(&placer, &region, problem, fixed, &too_many)) {
        tarn_region_finish(&region);
        *is_possible = !too_many;
        return too_many ? TARN_OK : TARN_SYSTEM;
    }
    placer.work_left =
        request->improve.work_max > 0 ? request->improve.work_max : TARN_WORK_UNLIMITED;
    enum tarn_status status = try_orders(&placer, request, result);
    uint64_t top = placer.best_top, bound = request->improve.bound;
    bool searches = request->improve.steps > 0 && placer.best_top > aim_of(request);
    if (status == TARN_OK && searches && is_plain(&placer))
        status = search_core(&placer, request, result, aim_of(request));
    if (status == TARN_OK && searches) {
        if (is_small(&placer))
            try_every_order(&placer, bound);
        else
            search(&placer, &request->improve, aim_of(request));
    }
    if (placer.best_top < top) snprintf(result->method, sizeof result->method, "pairwise");
    for (uint32_t b = 0; b < placer.count && status == TARN_OK; b++)
        tarn_block_put(&problem->blocks, tarn_block_at(&problem->blocks, b), placer.best[b],
                       result->offset);
    result->footprint = placer.best_top;
    result->stopped = placer.best_top > aim_of(request)
                          ? tarn_deadline_reason(&request->improve.deadline)
                          : TARN_STOP_NONE;
    result->ended = placer.best_top <= bound             ? TARN_END_BOUND
                    : placer.best_top <= aim_of(request) ? TARN_END_CAPACITY
                    : result->stopped                    ? TARN_END_STOPPED
                                                         : TARN_END_EFFORT;
    tarn_region_finish(&region);
    return status;
}

/* ---- Keeping offsets ---- */

/* A block that found no room below the limit, and the blocks in its way. */
struct keeping {
    struct placer *placer;
    uint64_t *wanted; /* block -> offset that it has now, or TARN_NO_OFFSET */
    uint64_t limit;
};

/* The offset below the limit at which the fewest bytes of kept blocks are in the way, and these are
 * given up. False: others are in the way everywhere. */
static bool give_up_for(const struct keeping *keeping, uint32_t b)
{
    struct placer *placer = keeping->placer;
    const struct tarn_blocks *blocks = &placer->problem->blocks;
    struct tarn_block block = tarn_block_at(blocks, b);
    uint32_t spans = find_spans(placer, b);
    uint64_t best = UINT64_MAX, best_at = 0;
    if (block.size > keeping->limit) return false;
    for (uint32_t i = 0; i <= spans; i++) { /* at 0, or right after a block that is in the way */
        uint64_t at = i < spans ? round_up((uint64_t)placer->spans[i].high, block.alignment) : 0;
        uint64_t bytes = 0;
        if (at + block.size > keeping->limit) continue;
        for (uint32_t k = 0; k < spans && placer->spans[k].low < (int64_t)at; k++) {
            uint32_t other = placer->spans[k].other;
            if ((int64_t)at >= placer->spans[k].high) continue;
            bool is_kept = keeping->wanted[other] != TARN_NO_OFFSET &&
                           !(placer->fixed && placer->fixed[other] != TARN_NO_OFFSET);
            bytes = is_kept ? bytes + tarn_block_at(blocks, other).size : UINT64_MAX;
            if (!is_kept) break;
        }
        if (bytes < best) best = bytes, best_at = at;
    }
    if (best == UINT64_MAX || best == 0) return false;
    for (uint32_t k = 0; k < spans && placer->spans[k].low < (int64_t)best_at; k++)
        if ((int64_t)best_at < placer->spans[k].high)
            keeping->wanted[placer->spans[k].other] = TARN_NO_OFFSET;
    return true;
}

/* Puts fixed and kept blocks, the others in the order of `order`; the first one that does not end
 * below the limit, or TARN_NONE. */
static uint32_t put_kept(const struct keeping *keeping)
{
    struct placer *placer = keeping->placer;
    put_fixed(placer);
    for (uint32_t b = 0; b < placer->count; b++) {
        if (keeping->wanted[b] == TARN_NO_OFFSET || placer->placed[b]) continue;
        placer->start[b] = keeping->wanted[b];
        placer->placed[b] = true;
    }
    for (uint32_t i = 0; i < placer->count; i++) {
        uint32_t b = placer->order[i];
        if (placer->placed[b]) continue;
        if (put(placer, b) <= keeping->limit) continue;
        placer->placed[b] = false;
        return b;
    }
    return TARN_NONE;
}

/* Of the offsets that are wished for, those that are possible together, the largest blocks first.
 */
static void choose_kept(const struct keeping *keeping)
{
    struct placer *placer = keeping->placer;
    put_fixed(placer);
    for (uint32_t i = 0; i < placer->count; i++) {
        uint32_t b = placer->order[i], spans;
        struct tarn_block block = tarn_block_at(&placer->problem->blocks, b);
        uint64_t *wanted = &keeping->wanted[b];
        if (*wanted == TARN_NO_OFFSET) continue;
        bool fits = !placer->placed[b] && *wanted % block.alignment == 0 &&
                    *wanted <= keeping->limit && block.size <= keeping->limit - *wanted;
        spans = fits ? find_spans(placer, b) : 0;
        for (uint32_t k = 0; fits && k < spans && placer->spans[k].low < (int64_t)*wanted; k++)
            fits = (int64_t)*wanted >= placer->spans[k].high;
        if (!fits) {
            *wanted = TARN_NO_OFFSET;
            continue;
        }
        placer->start[b] = *wanted;
        placer->placed[b] = true;
    }
}

enum tarn_status tarn_pairwise_keep(const struct tarn_problem *problem, const uint64_t *fixed,
                                    const uint64_t *wanted, uint64_t limit, uint64_t *offset)
{
    const struct tarn_blocks *blocks = &problem->blocks;
    struct tarn_region region = {.chunks = NULL};
    struct placer placer;
    bool too_many = false;
    if (!placer_init(&placer, &region, problem, fixed, &too_many)) {
        tarn_region_finish(&region);
        return too_many ? TARN_OK : TARN_SYSTEM;
    }
    struct keeping keeping = {.placer = &placer, .limit = limit};
    keeping.wanted = tarn_region_copy(&region, wanted, placer.count, sizeof *wanted);
    struct ranked *ranked = tarn_region_take(&region, placer.count, sizeof *ranked);
    enum tarn_status status = keeping.wanted && ranked ? TARN_OK : TARN_SYSTEM;
    uint32_t failed = TARN_NONE;
    if (status == TARN_OK) {
        order_by(&placer, BY_SIZE, ranked);
        choose_kept(&keeping);
        failed = put_kept(&keeping);
    }
    while (failed != TARN_NONE && give_up_for(&keeping, failed)) {
        uint32_t i = 0; /* from now on it is placed before the other blocks */
        while (placer.order[i] != failed) i++;
        move(placer.order, i, 0);
        failed = put_kept(&keeping);
    }
    for (uint32_t b = 0; b < placer.count && status == TARN_OK && failed == TARN_NONE; b++)
        tarn_block_put(blocks, tarn_block_at(blocks, b), placer.start[b], offset);
    tarn_region_finish(&region);
    return status;
}
