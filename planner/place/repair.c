/* Minimises the weight of the pairs in conflict that share bytes, by moves of one item at a time to
 * the place where it pays least. Where no move lowers the sum, each pair that still shares bytes
 * gains weight, until a move pays: hard pairs become heavy, and are kept apart first.
 *
 *     aim  ─────────────────                 ┌bb┐ 1
 *          │cc│  ┌bb┐ 1          moves       │cc│  ↑         gains
 *          │cc├──┼bb┼─┐          ───▶     ┌──┼bb┼──┐ 1+1     ───▶   ...
 *          └──┤aa└──┘a│                   │aaaaaaaa│
 *
 * What each item would pay at each place is kept in a table; a move changes a run of it for each
 * neighbour. Source: the breakout method (P. Morris, AAAI 1993), known for satisfaction of
 * constraints; for packing of strips compare guided local search (Egeblad, Nielsen, Odgaard 2007).
 * Cost of a move: for each neighbour as many places as both are units high. */
#include "repair.h"

#include <assert.h>

#include "planner/place/effort/effort.h"
#include "streams/base/bitset.h"
#include "streams/base/random.h"

/* Entries of the table, which is to stay in a cache, and of the lists of neighbours, at most. */
enum { CELLS_MAX = 1 << 19, PAIRS_MAX = 1 << 22 };
/* Costs add up to COST_MAX at most, so that a move may change them by as much. */
enum { COST_MAX = 1 << 30 };

struct repair {
    const struct tarn_problem *problem;
    uint64_t unit;     /* bytes: all sizes are multiples of it */
    uint32_t height;   /* units below the aim */
    uint32_t count;    /* items: blocks that stand for themselves and perhaps for others */
    uint32_t *item_of; /* block -> item */
    int32_t *size;     /* item -> units */
    int32_t *place;    /* item -> the unit that it begins at */
    /* Items in conflict: for each item, begin[i] to begin[i + 1] of the lists. */
    uint32_t *begin, *neighbour;
    uint32_t *twin;  /* the entry of the same pair with its items the other way round */
    int32_t *weight; /* what the pair pays if it shares bytes */
    int32_t weight_max;
    int32_t *paid;  /* item -> what it pays at present */
    uint32_t *open; /* the items that pay */
    uint32_t open_count;
    uint32_t *at;  /* item -> its place among them, or TARN_NONE */
    int32_t *cost; /* the table: [item][place] */
    uint64_t random, work;
};

/* ---- What it is for ---- */

static uint64_t divisor_of(const struct tarn_blocks *blocks)
{
    uint64_t unit = 0;
    for (uint32_t b = 0; b < blocks->count; b++) {
        uint64_t a = tarn_block_at(blocks, b).size, c = unit;
        while (c > 0) {
            uint64_t rest = a % c;
            a = c;
            c = rest;
        }
        unit = a;
    }
    return unit;
}

static bool is_aligned(const struct tarn_blocks *blocks, uint64_t unit)
{
    for (uint32_t b = 0; b < blocks->count; b++)
        if (unit % tarn_block_at(blocks, b).alignment > 0) return false;
    return true;
}

enum tarn_status tarn_repair_estimate(const struct tarn_problem *problem, uint64_t aim,
                                      uint64_t *work)
{
    const struct tarn_blocks *blocks = &problem->blocks;
    uint64_t unit = divisor_of(blocks), pairs;
    *work = 0;
    if (unit == 0 || blocks->count < 2 || blocks->count != blocks->storages_count) return TARN_OK;
    if (aim / unit >= CELLS_MAX / blocks->count || !is_aligned(blocks, unit)) return TARN_OK;
    for (uint32_t b = 0; b < blocks->count; b++) {
        uint64_t size = tarn_block_at(blocks, b).size;
        if (size == 0 || size > aim) return TARN_OK;
    }
    enum tarn_status status = tarn_conflicts_pairs(&problem->conflicts, &pairs);
    if (status != TARN_OK || pairs > PAIRS_MAX / 2) return status;
    uint64_t mask = (uint64_t)TARN_WORK_EXACT_CONFLICT * problem->conflicts.words_count;
    *work = 2 * (mask + TARN_WORK_MAKE) * blocks->count + 2 * TARN_WORK_REPAIR_PAIR * pairs;
    return TARN_OK;
}

/* ---- Making ---- */

struct making {
    struct repair *repair;
    uint64_t *mask;    /* by slot */
    uint32_t *item_at; /* slot -> item */
    uint32_t *first;   /* item -> a block of it, or TARN_NONE */
    uint32_t *next;    /* block -> another one of its item, or TARN_NONE */
    uint32_t *seen;    /* item -> the last item that it was listed for, plus 1 */
};

static void number_items(struct making *making, const uint32_t *leader)
{
    struct repair *repair = making->repair;
    const struct tarn_blocks *blocks = &repair->problem->blocks;
    for (uint32_t b = 0; b < blocks->count; b++)
        if (!leader || leader[b] == b) repair->item_of[b] = repair->count++;
    for (uint32_t i = 0; i < repair->count; i++) making->first[i] = TARN_NONE;
    for (uint32_t b = 0; b < blocks->count; b++) {
        struct tarn_block block = tarn_block_at(blocks, b);
        uint32_t item = repair->item_of[leader ? leader[b] : b];
        repair->item_of[b] = item;
        repair->size[item] = (int32_t)(block.size / repair->unit);
        making->next[b] = making->first[item];
        making->first[item] = b;
        making->item_at[repair->problem->conflicts.slot_of[block.members[0]]] = item;
    }
}

/* Calls `visit` for each item in conflict with item i that has a higher number, once. */
static void for_each_later(struct making *making, uint32_t i,
                           void (*visit)(struct repair *repair, uint32_t i, uint32_t k))
{
    const struct tarn_problem *problem = making->repair->problem;
    uint32_t words = problem->conflicts.words_count;
    for (uint32_t b = making->first[i]; b != TARN_NONE; b = making->next[b]) {
        tarn_conflicts_mask(&problem->conflicts, tarn_block_at(&problem->blocks, b).members[0],
                            making->mask);
        for (uint32_t w = 0; w < words; w++) {
            for (uint64_t rest = making->mask[w]; rest != 0; rest &= rest - 1) {
                uint32_t k = making->item_at[tarn_set_next(w, rest)];
                if (k <= i || making->seen[k] == i + 1) continue;
                making->seen[k] = i + 1;
                visit(making->repair, i, k);
            }
        }
    }
}

/* begin[i + 2] counts, so that begin[i + 1] is where the next pair of item i goes afterwards. */
static void count_pair(struct repair *repair, uint32_t i, uint32_t k)
{
    repair->begin[i + 2]++;
    repair->begin[k + 2]++;
}

static void add_pair(struct repair *repair, uint32_t i, uint32_t k)
{
    uint32_t there = repair->begin[i + 1]++, back = repair->begin[k + 1]++;
    repair->neighbour[there] = k;
    repair->neighbour[back] = i;
    repair->twin[there] = back;
    repair->twin[back] = there;
    repair->weight[there] = repair->weight[back] = 1;
}

static enum tarn_status list_pairs(struct making *making, struct tarn_region *region)
{
    struct repair *repair = making->repair;
    uint32_t most = 1;
    for (uint32_t i = 0; i < repair->count; i++) for_each_later(making, i, count_pair);
    for (uint32_t i = 0; i < repair->count; i++) {
        if (repair->begin[i + 2] > most) most = repair->begin[i + 2];
        repair->begin[i + 2] += repair->begin[i + 1];
        making->seen[i] = 0;
    }
    uint32_t pairs = repair->begin[repair->count + 1];
    repair->weight_max = (int32_t)(COST_MAX / most);
    repair->neighbour = tarn_region_take(region, pairs, sizeof *repair->neighbour);
    repair->twin = tarn_region_take(region, pairs, sizeof *repair->twin);
    repair->weight = tarn_region_take(region, pairs, sizeof *repair->weight);
    if (region->is_exhausted) return TARN_SYSTEM;
    for (uint32_t i = 0; i < repair->count; i++) for_each_later(making, i, add_pair);
    return TARN_OK;
}

/* ---- The table ---- */

/* The places of an item. */
struct run {
    int32_t place, size;
};

static struct run run_of(const struct repair *repair, uint32_t i)
{
    return (struct run){repair->place[i], repair->size[i]};
}

/* What an item of that size would pay for sharing bytes with another one changes by `weight`.
 * cost: its row of the table, `height` places. */
static inline void charge(int32_t *cost, int32_t height, int32_t size, struct run other,
                          int32_t weight)
{
    int32_t begin = other.place - size + 1, end = other.place + other.size;
    if (begin < 0) begin = 0;
    if (end > height - size + 1) end = height - size + 1;
    for (int32_t o = begin; o < end; o++) cost[o] += weight;
}

static int32_t *row_of(const struct repair *repair, uint32_t i)
{
    return repair->cost + (size_t)i * repair->height;
}

static void charge_item(struct repair *repair, uint32_t i, struct run other, int32_t weight)
{
    charge(row_of(repair, i), (int32_t)repair->height, repair->size[i], other, weight);
}

/* Puts an item on the list of open ones, or takes it off. */
static void note_open(struct repair *repair, uint32_t i)
{
    bool is_open = repair->paid[i] > 0;
    if (is_open && repair->at[i] == TARN_NONE) {
        repair->at[i] = repair->open_count;
        repair->open[repair->open_count++] = i;
    } else if (!is_open && repair->at[i] != TARN_NONE) {
        uint32_t last = repair->open[--repair->open_count];
        repair->open[repair->at[i]] = last;
        repair->at[last] = repair->at[i];
        repair->at[i] = TARN_NONE;
    }
}

/* Do the places share a unit? */
static bool meet(struct run a, struct run b)
{
    return a.place < b.place + b.size && b.place < a.place + a.size;
}

static void fill_table(struct repair *repair)
{
    uint64_t cells = 0;
    for (uint32_t i = 0; i < repair->count; i++) {
        for (uint32_t e = repair->begin[i]; e < repair->begin[i + 1]; e++) {
            struct run other = run_of(repair, repair->neighbour[e]);
            charge_item(repair, i, other, repair->weight[e]);
            cells += (uint32_t)(repair->size[i] + other.size);
            if (meet(run_of(repair, i), other)) repair->paid[i] += repair->weight[e];
        }
        repair->at[i] = TARN_NONE;
        note_open(repair, i);
    }
    repair->work += cells / TARN_WORK_REPAIR_PLACES;
}

/* Items from the given offsets; those that are too high are lowered. */
static void put_items(struct repair *repair, const struct tarn_repair_options *options,
                      const uint64_t *offset)
{
    const struct tarn_blocks *blocks = &repair->problem->blocks;
    for (uint32_t b = 0; b < blocks->count; b++) {
        struct tarn_block block = tarn_block_at(blocks, b);
        uint64_t place = offset[block.members[0]], most = options->aim - block.size;
        if (options->leader && options->leader[b] != b) continue;
        repair->place[repair->item_of[b]] = (int32_t)((place < most ? place : most) / repair->unit);
    }
}

static bool take_arrays(struct repair *repair, struct tarn_region *region)
{
    uint32_t count = repair->problem->blocks.count;
    repair->item_of = tarn_region_take(region, count, sizeof *repair->item_of);
    repair->size = tarn_region_take(region, count, sizeof *repair->size);
    repair->place = tarn_region_take(region, count, sizeof *repair->place);
    repair->begin = tarn_region_take(region, (size_t)count + 2, sizeof *repair->begin);
    repair->paid = tarn_region_take(region, count, sizeof *repair->paid);
    repair->open = tarn_region_take(region, count, sizeof *repair->open);
    repair->at = tarn_region_take(region, count, sizeof *repair->at);
    return !region->is_exhausted;
}

static bool init(struct repair *repair, struct tarn_region *region,
                 const struct tarn_repair_options *options, const uint64_t *offset)
{
    uint32_t count = repair->problem->blocks.count;
    struct tarn_region brief = {.chunks = NULL};
    struct making making = {.repair = repair};
    making.mask =
        tarn_region_take(&brief, repair->problem->conflicts.words_count, sizeof *making.mask);
    making.item_at = tarn_region_take(&brief, count, sizeof *making.item_at);
    making.first = tarn_region_take(&brief, count, sizeof *making.first);
    making.next = tarn_region_take(&brief, count, sizeof *making.next);
    making.seen = tarn_region_take(&brief, count, sizeof *making.seen);
    bool ok = !brief.is_exhausted && take_arrays(repair, region);
    if (ok) number_items(&making, options->leader);
    ok = ok && list_pairs(&making, region) == TARN_OK;
    repair->cost =
        tarn_region_take(region, (size_t)repair->count * repair->height, sizeof *repair->cost);
    ok = ok && repair->cost;
    if (ok) put_items(repair, options, offset);
    if (ok) fill_table(repair);
    tarn_region_finish(&brief);
    return ok;
}

/* ---- Search ---- */

/* The rows of item i's neighbours, which moves. */
static void charge_neighbours(struct repair *repair, uint32_t i, struct run before,
                              struct run after)
{
    const uint32_t *neighbour = repair->neighbour;
    const int32_t *weight = repair->weight, *size = repair->size;
    size_t height = repair->height;
    int32_t *table = repair->cost;
    uint64_t cells = 0;
    for (uint32_t e = repair->begin[i], end = repair->begin[i + 1]; e < end; e++) {
        int32_t *cost = table + neighbour[e] * height, own = size[neighbour[e]];
        charge(cost, (int32_t)height, own, before, -weight[e]);
        charge(cost, (int32_t)height, own, after, weight[e]);
        cells += (uint32_t)(own + after.size);
    }
    repair->work += (uint64_t)TARN_WORK_REPAIR_PAIR * (repair->begin[i + 1] - repair->begin[i]) +
                    cells / TARN_WORK_REPAIR_PLACES;
}

static void move(struct repair *repair, uint32_t i, int32_t place)
{
    uint32_t begin = repair->begin[i], end = repair->begin[i + 1];
    struct run before = run_of(repair, i), after = {place, repair->size[i]};
    charge_neighbours(repair, i, before, after);
    repair->paid[i] = 0;
    for (uint32_t e = begin; e < end; e++) {
        uint32_t k = repair->neighbour[e];
        struct run other = run_of(repair, k);
        int32_t weight = repair->weight[e];
        bool met = meet(before, other), meets = meet(after, other);
        if (!met && !meets) continue;
        if (meets) repair->paid[i] += weight;
        repair->paid[k] += (meets ? weight : 0) - (met ? weight : 0);
        note_open(repair, k);
    }
    repair->place[i] = place;
    note_open(repair, i);
}

/* A place that costs the least, and what. */
struct choice {
    int32_t least, place;
};

static int32_t least_of(const int32_t *cost, uint32_t places)
{
    int32_t least = cost[0];
    for (uint32_t o = 1; o < places; o++) least = cost[o] < least ? cost[o] : least;
    return least;
}

static struct choice look_up(struct repair *repair, uint32_t i)
{
    const int32_t *cost = repair->cost + (size_t)i * repair->height;
    uint32_t places = repair->height - (uint32_t)repair->size[i] + 1;
    struct choice choice = {.least = least_of(cost, places)};
    repair->work += TARN_WORK_REPAIR_LOOK + places / TARN_WORK_REPAIR_PLACES;
    if (choice.least >= repair->paid[i]) return choice;
    uint32_t equal = 0;
    for (uint32_t o = 0; o < places; o++) equal += cost[o] == choice.least;
    uint32_t chosen = tarn_random_below(&repair->random, equal);
    for (;; choice.place++)
        if (cost[choice.place] == choice.least && chosen-- == 0) return choice;
}

/* Moves an item to one of the places where it pays least, if that is less than now. */
static bool improve(struct repair *repair, uint32_t i)
{
    struct choice choice = look_up(repair, i);
    if (choice.least >= repair->paid[i]) return false;
    move(repair, i, choice.place);
    return true;
}

/* Tries open items in a random order. False: no move of one of them lowers the sum. */
static bool improve_any(struct repair *repair)
{
    uint32_t *open = repair->open, count = repair->open_count;
    for (uint32_t n = 0; n < count; n++) {
        uint32_t other = n + tarn_random_below(&repair->random, count - n), i = open[other];
        open[other] = open[n];
        repair->at[open[other]] = other;
        open[n] = i;
        repair->at[i] = n;
        if (improve(repair, i)) return true;
    }
    return false;
}

/* The pairs that share bytes gain weight. */
static void gain(struct repair *repair)
{
    for (uint32_t n = 0; n < repair->open_count; n++) {
        uint32_t i = repair->open[n];
        struct run own = run_of(repair, i);
        for (uint32_t e = repair->begin[i]; e < repair->begin[i + 1]; e++) {
            uint32_t k = repair->neighbour[e];
            struct run other = run_of(repair, k);
            if (k < i || repair->weight[e] >= repair->weight_max || !meet(own, other)) continue;
            repair->weight[e] = ++repair->weight[repair->twin[e]];
            repair->paid[i]++;
            repair->paid[k]++;
            charge_item(repair, i, other, 1);
            charge_item(repair, k, own, 1);
            repair->work += (uint32_t)(own.size + other.size) / TARN_WORK_REPAIR_PLACES;
        }
        repair->work += (uint64_t)TARN_WORK_OBSTACLE * (repair->begin[i + 1] - repair->begin[i]);
    }
}

static bool run(struct repair *repair, const struct tarn_repair_options *options)
{
    uint64_t most = options->work_max > 0 ? options->work_max : TARN_WORK_UNLIMITED;
    while (repair->open_count > 0 && repair->work < most) {
        if (improve_any(repair)) continue;
        if (tarn_deadline_is_over(&options->deadline)) break;
        gain(repair);
    }
    return repair->open_count == 0;
}

enum tarn_status tarn_repair_place(const struct tarn_problem *problem,
                                   const struct tarn_repair_options *options, uint64_t *offset,
                                   bool *found, uint64_t *work)
{
    const struct tarn_blocks *blocks = &problem->blocks;
    struct tarn_region region = {.chunks = NULL};
    struct repair repair = {
        .problem = problem, .unit = divisor_of(blocks), .random = options->seed};
    *found = false;
    *work = 0;
    enum tarn_status status = tarn_repair_estimate(problem, options->aim, &repair.work);
    if (status != TARN_OK) return status;
    if (repair.work == 0 || (options->work_max > 0 && repair.work >= options->work_max))
        return TARN_OK;
    assert(problem->conflicts.row);
    repair.height = (uint32_t)(options->aim / repair.unit);
    bool ok = init(&repair, &region, options, offset);
    if (ok) *found = run(&repair, options);
    for (uint32_t b = 0; ok && b < blocks->count; b++)
        offset[tarn_block_at(blocks, b).members[0]] =
            (uint64_t)repair.place[repair.item_of[b]] * repair.unit;
    *work = repair.work;
    tarn_region_finish(&region);
    return ok ? TARN_OK : TARN_SYSTEM;
}
