/* Minimises the weight of the pairs in conflict that share bytes, by moves of one item at a time to
 * the place where it pays least. Where no move lowers the sum, each pair that still shares bytes
 * gains weight, until a move pays: hard pairs become heavy, and are kept apart first.
 *
 *     aim  ─────────────────                 ┌bb┐ 1
 *          │cc│  ┌bb┐ 1          moves       │cc│  ↑         gains
 *          │cc├──┼bb┼─┐          ───▶     ┌──┼bb┼──┐ 1+1     ───▶   ...
 *          └──┤aa└──┘a│                   │aaaaaaaa│
 *
 * Only items that pay can lower the sum. For each of them a row says what it would pay at each
 * place. A row is made when the item is looked at first, and changes with each move of a neighbour
 * until the item pays nothing; if it pays again soon, the few moves since then are made good. A
 * lower bound of the row's costs says whether a look at the item may be worth while: it falls with
 * the costs that fall, and a look makes it exact. Sets of the items that cover a unit tell who
 * shares bytes with whom. Source: the breakout method (P. Morris, AAAI 1993), known for
 * satisfaction of constraints; for packing of strips compare guided local search (Egeblad, Nielsen,
 * Odgaard 2007).
 * Cost of a move: a word for each 64 items and unit of the item, a look at each item that may pay
 * less, and rows of the items that begin to pay: O(neighbours + height) each. */
#include "repair.h"

#include <assert.h>
#include <string.h>

#include "planner/place/effort/effort.h"
#include "streams/base/bitset.h"
#include "streams/base/random.h"

/* Entries of all rows and of the lists of neighbours, at most. */
enum { CELLS_MAX = 1 << 22, PAIRS_MAX = 1 << 22 };
/* Costs add up to COST_MAX at most, so that a move may change them by as much, beside NO_SLOT. */
enum { COST_MAX = (1 << 29) - 1 };
/* What a place that is no slot costs an item that may only lie in slots, besides. */
enum { NO_SLOT = 1 << 30 };

/* A pair that shares bytes gains 1 + 1/GAIN_SHARE of its weight: near the end, when few pairs are
 * left and all are heavy, gains of 1 alone would be many for each move. */
enum { GAIN_SHARE = 16 };
/* The last moves, which are made good in a row that was dropped for a while. */
enum { MOVES_KEPT = 256 };
/* A look at a neighbour takes as long as about so many words of the sets of units. */
enum { NEIGHBOUR_WORDS = 4 };

/* Costs of places that change at once. */
enum { LANES = 4 };
typedef int32_t lanes __attribute__((vector_size(LANES * sizeof(int32_t))));

/* A set of items from which one is drawn at random. */
struct bag {
    uint32_t *items, count;
    uint32_t *at; /* item -> its index, or TARN_NONE */
};

/* The units of an item: the first, and how many. */
struct run {
    int32_t place, size;
};

struct moved {
    uint32_t item;
    int32_t before, after; /* places */
};

struct tarn_repair {
    struct tarn_region region; /* holds this and all that is below */
    const struct tarn_problem *problem;
    uint64_t unit;     /* bytes: all sizes are multiples of it */
    uint32_t height;   /* units below the aim */
    uint32_t count;    /* items: blocks that stand for themselves and perhaps for others */
    uint32_t words;    /* of a set of items */
    uint32_t *item_of; /* block -> item */
    struct run *run;   /* by item */
    bool *is_slotted;  /* by item: it may only lie in slots, which begin at the bottom */
    int32_t slot_size; /* units */
    int32_t slots_count;
    /* Items in conflict: for each item its set, and begin[i] to begin[i + 1] of the lists. */
    uint64_t *conflict; /* [item][word] */
    uint32_t *edge;     /* [item][word]: the index in the lists of the word's first neighbour */
    uint32_t *begin, *neighbour;
    int32_t *weight; /* what the pair pays if it shares bytes; the same in both items' lists */
    int32_t weight_max;
    uint64_t *cover;   /* [unit][word]: the items that lie there */
    uint64_t *met;     /* a set of items, for one function at a time */
    int32_t *paid;     /* item -> what it pays at present */
    struct bag open;   /* the items that pay */
    struct bag hope;   /* those of them that may pay less at another place */
    uint64_t *has_row; /* a set of items; only those that pay have one */
    uint64_t *until;   /* by item without a row: moves that its last row includes; 0: none */
    uint64_t moves;    /* so far, and MOVES_KEPT + 1 */
    struct moved moved[MOVES_KEPT]; /* the last ones, by their number % MOVES_KEPT */
    int32_t *cost;                  /* [item][place]: the rows */
    int32_t *least;                 /* item -> no cost of its row is less; 0 if it has none */
    int32_t *change; /* a row while it is made: by how much the cost of a place is larger */
    uint64_t random, work;
    bool is_stuck; /* nothing would change any more */
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
    struct tarn_repair *repair;
    uint64_t *mask;    /* by slot */
    uint32_t *item_at; /* slot -> item */
    uint32_t *first;   /* item -> a block of it, or TARN_NONE */
    uint32_t *next;    /* block -> another one of its item, or TARN_NONE */
};

static void number_items(struct making *making, const uint32_t *leader)
{
    struct tarn_repair *repair = making->repair;
    const struct tarn_blocks *blocks = &repair->problem->blocks;
    for (uint32_t b = 0; b < blocks->count; b++)
        if (!leader || leader[b] == b) repair->item_of[b] = repair->count++;
    for (uint32_t i = 0; i < repair->count; i++) making->first[i] = TARN_NONE;
    for (uint32_t b = 0; b < blocks->count; b++) {
        struct tarn_block block = tarn_block_at(blocks, b);
        uint32_t item = repair->item_of[leader ? leader[b] : b];
        repair->item_of[b] = item;
        repair->run[item].size = (int32_t)(block.size / repair->unit);
        making->next[b] = making->first[item];
        making->first[item] = b;
        making->item_at[repair->problem->conflicts.slot_of[block.members[0]]] = item;
    }
}

/* The set of the items in conflict with item i. */
static void find_conflicts(struct making *making, uint32_t i)
{
    const struct tarn_problem *problem = making->repair->problem;
    uint64_t *set = making->repair->conflict + (size_t)i * making->repair->words;
    for (uint32_t b = making->first[i]; b != TARN_NONE; b = making->next[b]) {
        tarn_conflicts_mask(&problem->conflicts, tarn_block_at(&problem->blocks, b).members[0],
                            making->mask);
        for (uint32_t w = 0; w < problem->conflicts.words_count; w++)
            for (uint64_t rest = making->mask[w]; rest != 0; rest &= rest - 1)
                tarn_set_add(set, making->item_at[tarn_set_next(w, rest)]);
    }
    tarn_set_drop(set, i);
}

static enum tarn_status list_pairs(struct making *making, struct tarn_region *region)
{
    struct tarn_repair *repair = making->repair;
    uint32_t words = repair->words, most = 1, pairs = 0;
    for (uint32_t i = 0; i < repair->count; i++) {
        find_conflicts(making, i);
        repair->begin[i] = pairs;
        for (size_t w = (size_t)i * words; w < (size_t)(i + 1) * words; w++) {
            repair->edge[w] = pairs;
            pairs += (uint32_t)__builtin_popcountll(repair->conflict[w]);
        }
        if (pairs - repair->begin[i] > most) most = pairs - repair->begin[i];
    }
    repair->begin[repair->count] = pairs;
    repair->weight_max = (int32_t)(COST_MAX / most);
    repair->neighbour = tarn_region_take(region, pairs, sizeof *repair->neighbour);
    repair->weight = tarn_region_take(region, pairs, sizeof *repair->weight);
    if (region->is_exhausted) return TARN_SYSTEM;
    for (uint32_t i = 0, e = 0; i < repair->count; i++) {
        const uint64_t *set = repair->conflict + (size_t)i * words;
        for (uint32_t w = 0; w < words; w++)
            for (uint64_t rest = set[w]; rest != 0; rest &= rest - 1)
                repair->neighbour[e++] = tarn_set_next(w, rest);
    }
    for (uint32_t e = 0; e < pairs; e++) repair->weight[e] = 1;
    return TARN_OK;
}

/* The weight of item i's pair with item k, which is in conflict with it, in the list of item i. */
static int32_t *weight_of(const struct tarn_repair *repair, uint32_t i, uint32_t k)
{
    size_t w = (size_t)i * repair->words + k / 64;
    uint64_t before = repair->conflict[w] & ((UINT64_C(1) << k % 64) - 1);
    return &repair->weight[repair->edge[w] + (uint32_t)__builtin_popcountll(before)];
}

/* ---- Rows ---- */

static int32_t *row_of(const struct tarn_repair *repair, uint32_t i)
{
    return repair->cost + (size_t)i * repair->height;
}

/* How many places item i may have. */
static int32_t places_of(const struct tarn_repair *repair, uint32_t i)
{
    return (int32_t)repair->height - repair->run[i].size + 1;
}

/* The places at which item i would share bytes with `other`. */
static struct run reach(const struct tarn_repair *repair, uint32_t i, struct run other)
{
    int32_t begin = other.place - repair->run[i].size + 1, end = other.place + other.size;
    if (begin < 0) begin = 0;
    if (end > places_of(repair, i)) end = places_of(repair, i);
    return (struct run){begin, end - begin};
}

/* What item i would pay for sharing bytes with another one grows by `weight`. The result: the least
 * cost there, or INT32_MAX. Few places are reached: lanes beyond them add nothing. */
static int32_t charge(struct tarn_repair *repair, uint32_t i, struct run other, int32_t weight)
{
    struct run run = reach(repair, i, other);
    int32_t *cost = row_of(repair, i) + run.place, least = INT32_MAX;
    lanes all = (lanes){0} + INT32_MAX;
    for (int32_t o = 0; o < run.size; o += LANES) {
        lanes own, is_reached = (lanes){0, 1, 2, 3} < run.size - o;
        memcpy(&own, cost + o, sizeof own);
        own += is_reached & weight;
        memcpy(cost + o, &own, sizeof own);
        own |= ~is_reached & INT32_MAX; /* no cost is below 0 */
        lanes is_less = own < all;
        all = (own & is_less) | (all & ~is_less);
    }
    for (int32_t l = 0; l < LANES; l++) least = all[l] < least ? all[l] : least;
    return least;
}

/* Those that are no slots. */
static void close_places(struct tarn_repair *repair, uint32_t i)
{
    int32_t *cost = row_of(repair, i), places = places_of(repair, i);
    for (int32_t o = 0; o < places; o++)
        if (o % repair->slot_size != 0 || o / repair->slot_size >= repair->slots_count)
            cost[o] += NO_SLOT;
}

/* Charges a row that was dropped for the moves since then. What its pairs weigh has not changed:
 * only pairs that share bytes gain weight, and an item without a row pays nothing. */
static void renew_row(struct tarn_repair *repair, uint32_t i)
{
    const uint64_t *conflict = repair->conflict + (size_t)i * repair->words;
    uint64_t cells = 0, since = repair->moves - repair->until[i];
    for (uint64_t m = repair->until[i]; m < repair->moves; m++) {
        struct moved moved = repair->moved[m % MOVES_KEPT];
        if (!tarn_set_has(conflict, moved.item)) continue;
        int32_t weight = *weight_of(repair, i, moved.item), size = repair->run[moved.item].size;
        charge(repair, i, (struct run){moved.after, size}, weight);
        charge(repair, i, (struct run){moved.before, size}, -weight);
        cells += (uint32_t)(repair->run[i].size + size);
    }
    tarn_set_add(repair->has_row, i);
    repair->work += TARN_WORK_REPAIR_RENEW * since + cells / TARN_WORK_REPAIR_PLACES;
}

/* Of making a row. */
static uint64_t work_of_row(const struct tarn_repair *repair, uint32_t i)
{
    uint32_t neighbours = repair->begin[i + 1] - repair->begin[i];
    return (uint64_t)TARN_WORK_REPAIR_PAIR * neighbours + repair->height / TARN_WORK_REPAIR_PLACES;
}

/* By sums of differences: each neighbour begins to cost at a place, and ends at one. */
static void make_row(struct tarn_repair *repair, uint32_t i)
{
    uint32_t begin = repair->begin[i], end = repair->begin[i + 1];
    int32_t *cost = row_of(repair, i), *change = repair->change, sum = 0;
    int32_t before = repair->run[i].size - 1, height = (int32_t)repair->height;
    memset(change, 0, (size_t)(height + before + 1) * sizeof *change);
    for (uint32_t e = begin; e < end; e++) {
        struct run other = repair->run[repair->neighbour[e]];
        change[other.place] += repair->weight[e]; /* from place - before on */
        change[other.place + other.size + before] -= repair->weight[e];
    }
    for (int32_t o = 0; o < before; o++) sum += change[o];
    for (int32_t o = before; o < height; o++) cost[o - before] = sum += change[o];
    if (repair->is_slotted[i]) close_places(repair, i);
    tarn_set_add(repair->has_row, i);
    repair->work += work_of_row(repair, i);
}

/* ---- Who shares bytes ---- */

static bool has(const struct bag *bag, uint32_t i) { return bag->at[i] != TARN_NONE; }

static void put_in(struct bag *bag, uint32_t i)
{
    if (has(bag, i)) return;
    bag->at[i] = bag->count;
    bag->items[bag->count++] = i;
}

static void take_out(struct bag *bag, uint32_t i)
{
    if (!has(bag, i)) return;
    uint32_t last = bag->items[--bag->count];
    bag->items[bag->at[i]] = last;
    bag->at[last] = bag->at[i];
    bag->at[i] = TARN_NONE;
}

/* After a change of what item i pays, or of its row. */
static void note(struct tarn_repair *repair, uint32_t i)
{
    if (repair->paid[i] > 0) {
        put_in(&repair->open, i);
    } else {
        take_out(&repair->open, i);
        if (tarn_set_has(repair->has_row, i)) repair->until[i] = repair->moves;
        tarn_set_drop(repair->has_row, i);
        repair->least[i] = 0;
    }
    if (repair->least[i] < repair->paid[i])
        put_in(&repair->hope, i);
    else
        take_out(&repair->hope, i);
}

/* Puts an item on the units that it lies at, or takes it off. */
static void flip(struct tarn_repair *repair, uint32_t i)
{
    uint64_t *cover = repair->cover + (size_t)repair->run[i].place * repair->words + i / 64;
    for (int32_t u = 0; u < repair->run[i].size; u++, cover += repair->words)
        *cover ^= UINT64_C(1) << i % 64;
}

/* repair->met: the items in conflict with item i that lie in `run`. From the sets of its units, or,
 * if those are many, from a look at each neighbour. */
static void find_met(struct tarn_repair *repair, uint32_t i, struct run run)
{
    const uint64_t *conflict = repair->conflict + (size_t)i * repair->words;
    const uint64_t *cover = repair->cover + (size_t)run.place * repair->words;
    uint64_t *met = repair->met, looks = (uint64_t)repair->words * (uint32_t)run.size;
    uint32_t words = repair->words, begin = repair->begin[i], end = repair->begin[i + 1];
    repair->work += TARN_WORK_REPAIR_MEET + looks / TARN_WORK_REPAIR_PLACES;
    if (looks > (uint64_t)NEIGHBOUR_WORDS * (end - begin)) {
        memset(met, 0, words * sizeof *met);
        for (uint32_t e = begin; e < end; e++) {
            struct run other = repair->run[repair->neighbour[e]];
            if (other.place < run.place + run.size && run.place < other.place + other.size)
                tarn_set_add(met, repair->neighbour[e]);
        }
        return;
    }
    memcpy(met, cover, words * sizeof *met);
    for (int32_t u = 1; u < run.size; u++) {
        cover += words;
        for (uint32_t w = 0; w < words; w++) met[w] |= cover[w];
    }
    for (uint32_t w = 0; w < words; w++) met[w] &= conflict[w];
}

/* Item i begins to pay for what it shares in `run` (sign 1), or stops (-1). */
static void pay(struct tarn_repair *repair, uint32_t i, struct run run, int32_t sign)
{
    find_met(repair, i, run);
    for (uint32_t w = 0; w < repair->words; w++) {
        for (uint64_t rest = repair->met[w]; rest != 0; rest &= rest - 1) {
            uint32_t k = tarn_set_next(w, rest);
            int32_t weight = sign * *weight_of(repair, i, k);
            repair->paid[i] += weight;
            repair->paid[k] += weight;
            note(repair, k);
        }
    }
}

/* Slots are as large as the largest item in them. */
static void make_slots(struct tarn_repair *repair, const struct tarn_repair_options *options)
{
    const struct tarn_blocks *blocks = &repair->problem->blocks;
    for (uint32_t b = 0; options->in_slots && b < blocks->count; b++) {
        uint32_t item = repair->item_of[b];
        repair->is_slotted[item] = options->in_slots[tarn_block_at(blocks, b).members[0]];
        if (repair->is_slotted[item] && repair->run[item].size > repair->slot_size)
            repair->slot_size = repair->run[item].size;
    }
    if (repair->slot_size == 0) return;
    uint32_t most = repair->height / (uint32_t)repair->slot_size;
    repair->slots_count = (int32_t)(options->slots_count < most ? options->slots_count : most);
    assert(repair->slots_count > 0);
}

/* The last slot that begins at or below a place. */
static int32_t slot_below(const struct tarn_repair *repair, int32_t place)
{
    int32_t slot = place / repair->slot_size, last = repair->slots_count - 1;
    return (slot < last ? slot : last) * repair->slot_size;
}

/* Items from the given offsets; those that are too high are lowered. */
static void put_items(struct tarn_repair *repair, const struct tarn_repair_options *options,
                      const uint64_t *offset)
{
    const struct tarn_blocks *blocks = &repair->problem->blocks;
    for (uint32_t i = 0; i < repair->count; i++) {
        repair->open.at[i] = repair->hope.at[i] = TARN_NONE;
        repair->run[i].place = (int32_t)repair->height; /* not yet put: it shares bytes with none */
    }
    for (uint32_t b = 0; b < blocks->count; b++) {
        struct tarn_block block = tarn_block_at(blocks, b);
        uint64_t place = offset[block.members[0]], most = options->aim - block.size;
        uint32_t i = repair->item_of[b];
        if (options->leader && options->leader[b] != b) continue;
        repair->run[i].place = (int32_t)((place < most ? place : most) / repair->unit);
        if (repair->is_slotted[i]) repair->run[i].place = slot_below(repair, repair->run[i].place);
        pay(repair, i, repair->run[i], 1);
        note(repair, i);
        flip(repair, i);
    }
}

static bool take_arrays(struct tarn_repair *repair, struct tarn_region *region)
{
    uint32_t count = repair->problem->blocks.count;
    repair->item_of = tarn_region_take(region, count, sizeof *repair->item_of);
    repair->run = tarn_region_take(region, count, sizeof *repair->run);
    repair->is_slotted = tarn_region_take(region, count, sizeof *repair->is_slotted);
    repair->begin = tarn_region_take(region, (size_t)count + 1, sizeof *repair->begin);
    repair->paid = tarn_region_take(region, count, sizeof *repair->paid);
    repair->open.items = tarn_region_take(region, count, sizeof *repair->open.items);
    repair->open.at = tarn_region_take(region, count, sizeof *repair->open.at);
    repair->hope.items = tarn_region_take(region, count, sizeof *repair->hope.items);
    repair->hope.at = tarn_region_take(region, count, sizeof *repair->hope.at);
    repair->least = tarn_region_take(region, count, sizeof *repair->least);
    repair->until = tarn_region_take(region, count, sizeof *repair->until);
    return !region->is_exhausted;
}

/* Sets and rows of the items. */
static bool take_sets(struct tarn_repair *repair, struct tarn_region *region)
{
    size_t count = repair->count, words = repair->words = (repair->count + 63) / 64;
    repair->conflict = tarn_region_take(region, count * words, sizeof *repair->conflict);
    repair->edge = tarn_region_take(region, count * words, sizeof *repair->edge);
    repair->cover = tarn_region_take(region, repair->height * words, sizeof *repair->cover);
    repair->met = tarn_region_take(region, words, sizeof *repair->met);
    repair->has_row = tarn_region_take(region, words, sizeof *repair->has_row);
    repair->cost = tarn_region_take(region, count * repair->height + LANES, sizeof *repair->cost);
    repair->change = tarn_region_take(region, 2 * (size_t)repair->height, sizeof *repair->change);
    return !region->is_exhausted;
}

static bool init(struct tarn_repair *repair, const struct tarn_repair_options *options,
                 const uint64_t *offset)
{
    uint32_t count = repair->problem->blocks.count;
    struct tarn_region brief = {.chunks = NULL};
    struct making making = {.repair = repair};
    making.mask =
        tarn_region_take(&brief, repair->problem->conflicts.words_count, sizeof *making.mask);
    making.item_at = tarn_region_take(&brief, count, sizeof *making.item_at);
    making.first = tarn_region_take(&brief, count, sizeof *making.first);
    making.next = tarn_region_take(&brief, count, sizeof *making.next);
    bool ok = !brief.is_exhausted && take_arrays(repair, &repair->region);
    if (ok) number_items(&making, options->leader);
    ok =
        ok && take_sets(repair, &repair->region) && list_pairs(&making, &repair->region) == TARN_OK;
    if (ok) make_slots(repair, options);
    if (ok) put_items(repair, options, offset);
    tarn_region_finish(&brief);
    return ok;
}

/* ---- Search ---- */

/* The rows of item i's neighbours. */
static void charge_neighbours(struct tarn_repair *repair, uint32_t i, struct run before,
                              struct run after)
{
    const uint64_t *conflict = repair->conflict + (size_t)i * repair->words;
    uint64_t cells = 0, neighbours = 0;
    for (uint32_t w = 0; w < repair->words; w++) {
        for (uint64_t rest = conflict[w] & repair->has_row[w]; rest != 0; rest &= rest - 1) {
            uint32_t k = tarn_set_next(w, rest);
            int32_t weight = *weight_of(repair, i, k);
            charge(repair, k, after, weight); /* first, so that no cost on the way is too low */
            int32_t least = charge(repair, k, before, -weight);
            if (least < repair->least[k]) repair->least[k] = least;
            if (least < repair->paid[k]) put_in(&repair->hope, k);
            neighbours++;
            cells += (uint32_t)(repair->run[k].size + after.size);
        }
    }
    repair->work += TARN_WORK_REPAIR_MOVE + TARN_WORK_REPAIR_CHARGE * neighbours +
                    (repair->words + cells) / TARN_WORK_REPAIR_PLACES;
}

/* To where it pays least. */
static void move(struct tarn_repair *repair, uint32_t i, int32_t place)
{
    struct run before = repair->run[i], after = {place, repair->run[i].size};
    repair->moved[repair->moves++ % MOVES_KEPT] = (struct moved){i, before.place, place};
    charge_neighbours(repair, i, before, after);
    flip(repair, i);
    pay(repair, i, after, 1); /* first, so that items that share bytes with both keep their rows */
    pay(repair, i, before, -1);
    repair->run[i].place = place;
    flip(repair, i);
    note(repair, i);
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

static struct choice look_up(struct tarn_repair *repair, uint32_t i)
{
    uint64_t since = repair->moves - repair->until[i];
    if (!tarn_set_has(repair->has_row, i)) {
        if (since <= MOVES_KEPT && TARN_WORK_REPAIR_RENEW * since < work_of_row(repair, i))
            renew_row(repair, i);
        else
            make_row(repair, i);
    }
    const int32_t *cost = row_of(repair, i);
    uint32_t places = (uint32_t)places_of(repair, i);
    struct choice choice = {.least = least_of(cost, places)};
    assert(cost[repair->run[i].place] == repair->paid[i] && choice.least >= repair->least[i]);
    repair->least[i] = choice.least;
    repair->work += TARN_WORK_REPAIR_LOOK + places / TARN_WORK_REPAIR_PLACES;
    if (choice.least >= repair->paid[i]) return choice;
    uint32_t equal = 0;
    for (uint32_t o = 0; o < places; o++) equal += cost[o] == choice.least;
    uint32_t chosen = tarn_random_below(&repair->random, equal);
    for (;; choice.place++)
        if (cost[choice.place] == choice.least && chosen-- == 0) return choice;
}

/* Tries items that pay in a random order. False: no move of one of them lowers the sum. */
static bool improve(struct tarn_repair *repair)
{
    while (repair->hope.count > 0) {
        uint32_t i = repair->hope.items[tarn_random_below(&repair->random, repair->hope.count)];
        struct choice choice = look_up(repair, i);
        if (choice.least < repair->paid[i]) {
            move(repair, i, choice.place);
            return true;
        }
        take_out(&repair->hope, i);
    }
    return false;
}

/* A pair that shares bytes gains weight, if it may. */
static bool gain_pair(struct tarn_repair *repair, uint32_t i, uint32_t k)
{
    int32_t *weight = weight_of(repair, i, k);
    int32_t more = 1 + *weight / GAIN_SHARE;
    if (*weight + more > repair->weight_max) return false;
    *weight_of(repair, k, i) = *weight += more;
    repair->paid[i] += more;
    repair->paid[k] += more;
    charge(repair, i, repair->run[k], more);
    charge(repair, k, repair->run[i], more);
    note(repair, i);
    note(repair, k);
    repair->work += TARN_WORK_REPAIR_GAIN +
                    (uint32_t)(repair->run[i].size + repair->run[k].size) / TARN_WORK_REPAIR_PLACES;
    return true;
}

/* All pairs that share bytes gain weight. All items that pay were looked at, and have rows. False:
 * all these pairs weigh as much as they may, so nothing would ever change. */
static bool gain(struct tarn_repair *repair)
{
    bool any = false;
    for (uint32_t n = 0; n < repair->open.count; n++) {
        uint32_t i = repair->open.items[n];
        find_met(repair, i, repair->run[i]);
        for (uint32_t w = i / 64; w < repair->words; w++)
            for (uint64_t rest = repair->met[w]; rest != 0; rest &= rest - 1)
                if (tarn_set_next(w, rest) > i) any |= gain_pair(repair, i, tarn_set_next(w, rest));
    }
    return any;
}

static bool run(struct tarn_repair *repair, const struct tarn_repair_options *options)
{
    uint64_t most = options->work_max > 0 ? options->work_max : TARN_WORK_UNLIMITED;
    while (repair->open.count > 0 && repair->work < most) {
        if (improve(repair)) continue;
        if (tarn_deadline_is_over(&options->deadline)) break;
        repair->is_stuck = !gain(repair);
        if (repair->is_stuck) break;
    }
    return repair->open.count == 0;
}

#ifdef __x86_64__
__attribute__((target("avx2"), flatten)) static bool
run_avx2(struct tarn_repair *repair, const struct tarn_repair_options *options)
{
    return run(repair, options);
}
#endif

/* Search is compiled for the baseline of the platform and, on x86-64, for AVX2, which has a minimum
 * of 32-bit numbers and twice the width. The choice between the two never changes a result. */
static bool run_fast(struct tarn_repair *repair, const struct tarn_repair_options *options)
{
#ifdef __x86_64__
    if (!options->is_baseline && __builtin_cpu_supports("avx2")) return run_avx2(repair, options);
#endif
    return run(repair, options);
}

/* NULL: no memory. work: see tarn_repair_estimate. */
static struct tarn_repair *create(const struct tarn_problem *problem,
                                  const struct tarn_repair_options *options, const uint64_t *offset,
                                  uint64_t work)
{
    struct tarn_region region = {.chunks = NULL};
    struct tarn_repair *repair = tarn_region_take(&region, 1, sizeof *repair);
    uint64_t unit = divisor_of(&problem->blocks);
    if (!repair) return NULL;
    *repair = (struct tarn_repair){.region = region,
                                   .problem = problem,
                                   .unit = unit,
                                   .height = (uint32_t)(options->aim / unit),
                                   .random = options->seed,
                                   .moves = MOVES_KEPT + 1,
                                   .work = work};
    if (init(repair, options, offset)) return repair;
    tarn_repair_finish(repair);
    return NULL;
}

void tarn_repair_finish(struct tarn_repair *repair)
{
    if (!repair) return;
    struct tarn_region region = repair->region;
    tarn_region_finish(&region);
}

enum tarn_status tarn_repair_place(const struct tarn_problem *problem,
                                   const struct tarn_repair_options *options,
                                   struct tarn_repair **kept, uint64_t *offset, bool *found,
                                   uint64_t *work)
{
    const struct tarn_blocks *blocks = &problem->blocks;
    struct tarn_repair *repair = *kept;
    *found = false;
    *work = 0;
    if (repair) {
        repair->work = 0;
    } else {
        uint64_t make;
        enum tarn_status status = tarn_repair_estimate(problem, options->aim, &make);
        if (status != TARN_OK || make == 0 || (options->work_max > 0 && make >= options->work_max))
            return status;
        assert(problem->conflicts.row);
        repair = create(problem, options, offset, make);
        if (!repair) return TARN_SYSTEM;
    }
    *found = run_fast(repair, options);
    for (uint32_t b = 0; b < blocks->count; b++)
        offset[tarn_block_at(blocks, b).members[0]] =
            (uint64_t)repair->run[repair->item_of[b]].place * repair->unit;
    *work = repair->work;
    bool is_over = *found || repair->is_stuck;
    if (is_over) tarn_repair_finish(repair);
    *kept = is_over ? NULL : repair;
    return TARN_OK;
}
