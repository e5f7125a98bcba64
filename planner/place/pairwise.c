/* Lowest-offset placement over a list of pairs. Two conflicting members of different blocks keep
 * the distance of their blocks out of one open interval; the list of a block has these intervals
 * for every other block. A block is placed at the lowest multiple of its alignment that is in none
 * of the intervals of blocks placed already. An order of blocks makes a placement. For lone
 * storages some order makes an optimal placement: the order of their offsets in it.
 *
 * Orders by size, size and life, and conflicting bytes come first. Then a local search moves a
 * block from the top, or a block below it, towards the start of the order. It keeps placements that
 * are not worse than some steps ago. Up to SMALL blocks all orders are tried. Cost: O(n^2) to list
 * the pairs, O(p log p) for each placement of p pairs. */
#include "pairwise.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "streams/base/checked.h"
#include "streams/base/random.h"

enum { SMALL = 8, HISTORY = 16 };
#define PAIRS_MAX (UINT64_C(1) << 23)
#define STORAGES_MAX 16384u
/* Work of a placement, for each pair, as work.h counts it. */
enum { WORK_A_PAIR = 12 };

/* A block is not placed at other's offset + (low, high). */
struct forbidden {
    uint32_t other;
    int64_t low, high;
};

struct placer {
    const struct tarn_problem *problem;
    struct tarn_region *region;
    const uint64_t *fixed;
    uint32_t count;  /* blocks */
    uint32_t *begin; /* block -> its pairs; count + 1 */
    struct forbidden *pairs;
    uint64_t *start; /* block -> its offset */
    bool *placed;
    struct forbidden *spans; /* scratch: intervals of one block, `other` unused */
    uint32_t *order, *best_order;
    uint64_t *best; /* block -> its place in the best placement */
    uint64_t best_top;
};

/* ---- Pairs ---- */

bool tarn_pairwise_is_needed(const struct tarn_graph *graph)
{
    if (graph->conditionals_count > 0) return true;
    for (uint32_t a = 0; a < graph->planned_count; a++) {
        uint32_t t = graph->storages[a].tensor;
        if (t != TARN_NONE && graph->tensors[t].offset_rule == TARN_OFFSET_FIXED) return true;
    }
    for (uint32_t g = 0; g < graph->groups_count; g++)
        if (graph->groups[g].within && !graph->groups[g].persistent) return true;
    return false;
}

bool tarn_pairwise_may_share(const struct tarn_problem *problem, uint32_t a, uint32_t b)
{
    return tarn_reuse_is_safe(&problem->conflicts.reuse, a, b) ||
           tarn_storages_exclude(problem->graph, a, b);
}

static void list_pair(struct placer *placer, uint32_t b, uint32_t o, uint32_t *next)
{
    const struct tarn_blocks *blocks = &placer->problem->blocks;
    struct tarn_block x = tarn_block_at(blocks, b), y = tarn_block_at(blocks, o);
    for (uint32_t i = 0; i < x.members_count; i++)
        for (uint32_t k = 0; k < y.members_count; k++) {
            uint32_t a = x.members[i], c = y.members[k];
            if (tarn_pairwise_may_share(placer->problem, a, c)) continue;
            int64_t away = (int64_t)blocks->within[c] - (int64_t)blocks->within[a];
            int64_t low = away - (int64_t)blocks->reserved[a];
            int64_t high = away + (int64_t)blocks->reserved[c];
            if (placer->pairs) {
                placer->pairs[placer->begin[b] + next[b]] = (struct forbidden){o, low, high};
                placer->pairs[placer->begin[o] + next[o]] = (struct forbidden){b, -high, -low};
            }
            next[b]++;
            next[o]++;
        }
}

/* False: no memory, or (*too_many) more pairs than are looked at. */
static bool list_pairs(struct placer *placer, bool *too_many)
{
    struct tarn_region scratch = {.chunks = NULL};
    uint32_t *next = tarn_region_take(&scratch, placer->count, sizeof *next);
    uint64_t sum = 0;
    for (int pass = 0; next && pass < 2; pass++) {
        for (uint32_t b = 0; b < placer->count; b++)
            for (uint32_t o = 0; o < b; o++) list_pair(placer, b, o, next);
        if (pass > 0) break;
        for (uint32_t b = 0; b < placer->count; b++) sum += next[b];
        *too_many = sum > PAIRS_MAX;
        if (*too_many) break;
        for (uint32_t b = 0; b < placer->count; b++) {
            placer->begin[b + 1] = placer->begin[b] + next[b];
            next[b] = 0;
        }
        placer->pairs = tarn_region_take(placer->region, (size_t)sum, sizeof *placer->pairs);
        if (!placer->pairs) break;
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
    *too_many = problem->blocks.storages_count > STORAGES_MAX;
    if (*too_many) return false;
    placer->begin = tarn_region_take(region, count + 1, sizeof *placer->begin);
    placer->start = tarn_region_take(region, count, sizeof *placer->start);
    placer->placed = tarn_region_take(region, count, sizeof *placer->placed);
    placer->order = tarn_region_take(region, count, sizeof *placer->order);
    placer->best_order = tarn_region_take(region, count, sizeof *placer->best_order);
    placer->best = tarn_region_take(region, count, sizeof *placer->best);
    if (region->is_exhausted || !list_pairs(placer, too_many)) return false;
    for (uint32_t b = 0; b < count; b++)
        if (placer->begin[b + 1] - placer->begin[b] > longest)
            longest = placer->begin[b + 1] - placer->begin[b];
    placer->spans = tarn_region_take(region, longest, sizeof *placer->spans);
    return placer->spans;
}

/* ---- Placing ---- */

static int compare_spans(const void *left, const void *right)
{
    const struct forbidden *a = left, *b = right;
    return (a->low > b->low) - (a->low < b->low);
}

/* Finds the sorted intervals in which a block may not begin, because of placed blocks. Returns
 * their number. */
static uint32_t find_spans(const struct placer *placer, uint32_t b)
{
    uint32_t count = 0;
    for (uint32_t i = placer->begin[b]; i < placer->begin[b + 1]; i++) {
        const struct forbidden *pair = &placer->pairs[i];
        if (!placer->placed[pair->other]) continue;
        int64_t at = (int64_t)placer->start[pair->other];
        if (at + pair->high <= 0) continue;
        placer->spans[count++] = (struct forbidden){pair->other, at + pair->low, at + pair->high};
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
    for (uint32_t i = placer->begin[b]; i < placer->begin[b + 1]; i++)
        conflicts += (double)(placer->pairs[i].high - placer->pairs[i].low) - size;
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
    uint64_t history[HISTORY], work = 0;
    uint64_t cost = (uint64_t)WORK_A_PAIR * (placer->begin[placer->count] + placer->count) + 1;
    uint64_t random = options->seed;
    uint32_t *now = tarn_region_take(placer->region, placer->count, sizeof *now);
    if (!now || placer->count < 2) return;
    memcpy(placer->order, placer->best_order, placer->count * sizeof *now);
    uint64_t top = put_all(placer, UINT64_MAX);
    for (uint32_t i = 0; i < HISTORY; i++) history[i] = top;
    for (uint64_t n = 0; n < options->steps && placer->best_top > aim; n++, work += cost) {
        if (options->work_max > 0 && work >= options->work_max) break;
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
    enum tarn_status status = try_orders(&placer, request, result);
    uint64_t top = placer.best_top, bound = request->improve.bound;
    if (status == TARN_OK && request->improve.steps > 0) {
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
