/* Symmetric groups of one name lie at one offset in all plans of a family, and all of them in one
 * range of each arena, the window. Other storages may lie in that range, too: a group's bytes are
 * its own only from its producer to its last user, in each graph by that graph's order.
 *
 *     plan 0   | a | c   |  free ...        a, b, c: symmetric
 *     plan 1   | b       |  free ...        b is in use with a in no graph, with c in plan 1:
 *              | a | c   |                  so it may lie over a, and not over c
 *              └ window  ┘
 *
 * Blocks of all plans that hold groups of one name become one seat, as large as the largest of
 * them. Two seats conflict if they do in any plan. Seats are placed first, in a few ways: where the
 * largest plan has them, or lowest first in several orders, which a local search improves; then
 * each plan's other storages around them (plan_graph/again.h), or, as a last way, above them. The
 * way with the smallest largest footprint is taken; once the deadline is over, the best way so far.
 * Cost: for n seats O(n^2 log n) for each order,
 * and for each way the placement of all plans. */
#include "symmetric.h"

#include <stdlib.h>
#include <string.h>

#include "plan_graph/again.h"
#include "plan_graph/plan_graph.h"
#include "planner/place/pairwise.h"
#include "streams/base/checked.h"
#include "streams/base/deadline.h"
#include "streams/base/error.h"
#include "streams/base/random.h"
#include "streams/base/union.h"
#include "streams/graph/report.h"
#include "tarn/transform.h"

/* FEW_SEATS: of which all orders are tried. BASES: plans whose own offsets are tried for all. */
enum { FEW_SEATS = 4, BASES = 6, SEARCHED_SEATS_MAX = 512, SEARCH_STEPS = 400 };
#define SEATS_MAX UINT32_C(16384)

/* A symmetric group of some plan. */
struct holder {
    const char *name;
    uint32_t plan, node; /* blocks with symmetric groups are numbered through, over all plans */
    uint32_t group;
    uint64_t within; /* where the group begins in its block */
};

struct seat {
    uint64_t size, alignment;
    uint64_t start; /* UINT64_MAX: not placed */
};

struct way {
    uint64_t *start;     /* by seat */
    uint64_t **offset;   /* by plan, and storage of its view */
    uint64_t *footprint; /* by plan */
    uint64_t highest, sum;
    bool is_apart; /* nothing else lies in the window */
};

struct symmetry {
    struct tarn_region region;
    struct tarn_plan **plans;
    size_t count;
    const struct tarn_plan_options *options;
    struct tarn_deadline deadline; /* of the lay-out; one way is found whenever that is */
    tarn_space space;
    struct tarn_again *again; /* by plan */
    size_t again_count;       /* of those that are there */
    struct holder *holders;   /* by plan; then by name */
    uint32_t holders_count;
    uint32_t *node_plan, *node_block; /* by node */
    uint32_t *leader;  /* node -> a node of the same seat; the first of them for itself */
    uint32_t *seat_of; /* node -> seat */
    uint32_t nodes_count;
    struct seat *seats;
    uint32_t seats_count;
    uint64_t *conflicts; /* bits, seat by seat */
    size_t words;        /* of a seat's bits */
    uint32_t *order, *best_order;
    struct tarn_error *error;
};

static bool is_symmetric(const struct tarn_plan *plan)
{
    for (uint32_t g = 0; g < plan->graph->given_count; g++)
        if (plan->graph->given[g].symmetric) return true;
    return false;
}

/* ---- Holders ---- */

static enum tarn_status find_space(struct symmetry *symmetry)
{
    const struct tarn_graph *first = NULL;
    for (size_t p = 0; p < symmetry->count; p++) {
        const struct tarn_graph *graph = symmetry->plans[p]->graph;
        for (uint32_t g = 0; g < graph->given_count; g++) {
            if (!graph->given[g].symmetric) continue;
            uint32_t space = graph->storages[graph->given[g].storages[0]].space;
            if (!first) symmetry->space = (tarn_space)space;
            if (!first) first = graph;
            if (space == symmetry->space) continue;
            return tarn_error_set(
                symmetry->error, TARN_BAD_INPUT,
                "the symmetric group %s of graph %s is in memory space %u, those of "
                "graph %s are in %u: all of a family lie in one range of one space",
                tarn_quote(graph->given[g].symmetric).text, tarn_quote(graph->name).text, space,
                tarn_quote(first->name).text, symmetry->space);
        }
    }
    for (size_t p = 0; p < symmetry->count; p++) {
        const struct tarn_graph *graph = symmetry->plans[p]->graph;
        if (symmetry->space >= tarn_graph_spaces_count(graph))
            return tarn_error_set(symmetry->error, TARN_BAD_INPUT,
                                  "graph %s has no memory space %u, where the symmetric groups of "
                                  "its family are",
                                  tarn_quote(graph->name).text, symmetry->space);
        for (uint32_t t = 0; t < graph->tensors_count; t++)
            if (graph->tensors[t].offset_rule == TARN_OFFSET_FIXED)
                return tarn_error_set(
                    symmetry->error, TARN_BAD_INPUT,
                    "%s of graph %s is fixed at an offset: a family with symmetric "
                    "groups chooses offsets that suit all of its graphs. Prefer "
                    "the offset, or make the tensor symmetric",
                    tarn_tensor_label(graph, t).text, tarn_quote(graph->name).text);
    }
    return TARN_OK;
}

static enum tarn_status look_at_plans(struct symmetry *symmetry)
{
    struct tarn_region *region = &symmetry->region;
    size_t groups = 0;
    symmetry->again = tarn_region_take(region, symmetry->count, sizeof *symmetry->again);
    for (size_t p = 0; p < symmetry->count; p++) groups += symmetry->plans[p]->graph->given_count;
    symmetry->holders = tarn_region_take(region, groups, sizeof *symmetry->holders);
    symmetry->node_plan = tarn_region_take(region, groups, sizeof *symmetry->node_plan);
    symmetry->node_block = tarn_region_take(region, groups, sizeof *symmetry->node_block);
    symmetry->leader = tarn_region_take(region, groups, sizeof *symmetry->leader);
    symmetry->seat_of = tarn_region_take(region, groups, sizeof *symmetry->seat_of);
    symmetry->seats = tarn_region_take(region, groups, sizeof *symmetry->seats);
    symmetry->order = tarn_region_take(region, groups, sizeof *symmetry->order);
    symmetry->best_order = tarn_region_take(region, groups, sizeof *symmetry->best_order);
    if (region->is_exhausted) return tarn_error_no_memory(symmetry->error);
    for (size_t p = 0; p < symmetry->count; p++) {
        struct tarn_again *again = &symmetry->again[p];
        symmetry->again_count = p + 1;
        enum tarn_status status = tarn_again_init(again, symmetry->plans[p], symmetry->space,
                                                  symmetry->options, symmetry->error);
        if (status != TARN_OK) return status;
    }
    return TARN_OK;
}

static enum tarn_status find_holders(struct symmetry *symmetry)
{
    for (size_t p = 0; p < symmetry->count; p++) {
        const struct tarn_graph *graph = symmetry->plans[p]->graph;
        const struct tarn_again *again = &symmetry->again[p];
        struct tarn_region scratch = {.chunks = NULL};
        uint32_t *node_of = tarn_region_take(&scratch, again->problem->blocks.count + (size_t)1,
                                             sizeof *node_of); /* block -> node + 1 */
        if (!node_of) return tarn_error_no_memory(symmetry->error);
        for (uint32_t g = 0; g < graph->given_count; g++) {
            const struct tarn_group *group = &graph->given[g];
            if (!group->symmetric) continue;
            uint32_t block = again->block_of[group->storages[0]];
            uint64_t start = tarn_again_start(again, block);
            uint64_t at = tarn_plan_offset_in_space(symmetry->plans[p], group->storages[0]);
            if (group->within) at -= group->within[0];
            if (node_of[block] == 0) {
                symmetry->node_plan[symmetry->nodes_count] = (uint32_t)p;
                symmetry->node_block[symmetry->nodes_count] = block;
                node_of[block] = ++symmetry->nodes_count;
            }
            symmetry->holders[symmetry->holders_count++] =
                (struct holder){group->symmetric, (uint32_t)p, node_of[block] - 1, g, at - start};
        }
        tarn_region_finish(&scratch);
    }
    return TARN_OK;
}

/* ---- Seats ---- */

static int compare_holders(const void *left, const void *right)
{
    const struct holder *a = left, *b = right;
    int order = strcmp(a->name, b->name);
    return order ? order : (a->plan > b->plan) - (a->plan < b->plan);
}

static enum tarn_status refuse(const struct symmetry *symmetry, const struct holder *a,
                               const struct holder *b)
{
    const struct tarn_graph *graph = symmetry->plans[b->plan]->graph;
    struct tarn_error *error = symmetry->error;
    if (error && error->status == TARN_OK) error->tensor = graph->given[b->group].tensors[0];
    return tarn_error_set(
        error, TARN_BAD_INPUT,
        "the symmetric group %s lies otherwise among the contiguous groups of graph "
        "%s than %s among those of graph %s: groups that share members must be "
        "alike in all graphs of a family",
        tarn_quote(b->name).text, tarn_quote(graph->name).text, tarn_quote(a->name).text,
        tarn_quote(symmetry->plans[a->plan]->graph->name).text);
}

static enum tarn_status unite(struct symmetry *symmetry)
{
    if (symmetry->holders_count > 0)
        qsort(symmetry->holders, symmetry->holders_count, sizeof *symmetry->holders,
              compare_holders);
    for (uint32_t n = 0; n < symmetry->nodes_count; n++) symmetry->leader[n] = n;
    for (uint32_t i = 1; i < symmetry->holders_count; i++) {
        const struct holder *a = &symmetry->holders[i - 1], *b = &symmetry->holders[i];
        if (strcmp(a->name, b->name) != 0) continue;
        if (a->within != b->within) return refuse(symmetry, a, b);
        uint32_t x = tarn_union_root(symmetry->leader, a->node),
                 y = tarn_union_root(symmetry->leader, b->node);
        symmetry->leader[x > y ? x : y] = x > y ? y : x;
    }
    /* no two blocks of a plan may have become one seat */
    for (uint32_t i = 0; i < symmetry->holders_count; i++)
        for (uint32_t k = 0; k < i && symmetry->nodes_count < symmetry->holders_count; k++) {
            const struct holder *a = &symmetry->holders[k], *b = &symmetry->holders[i];
            if (a->plan == b->plan && a->node != b->node &&
                tarn_union_root(symmetry->leader, a->node) ==
                    tarn_union_root(symmetry->leader, b->node))
                return refuse(symmetry, a, b);
        }
    return TARN_OK;
}

static enum tarn_status make_seats(struct symmetry *symmetry)
{
    for (uint32_t n = 0; n < symmetry->nodes_count; n++) {
        uint32_t leader = tarn_union_root(symmetry->leader, n);
        symmetry->seat_of[n] = leader == n ? symmetry->seats_count++ : symmetry->seat_of[leader];
        const struct tarn_again *again = &symmetry->again[symmetry->node_plan[n]];
        struct tarn_block block = tarn_block_at(&again->problem->blocks, symmetry->node_block[n]);
        struct seat *seat = &symmetry->seats[symmetry->seat_of[n]];
        if (block.size > seat->size) seat->size = block.size;
        if (block.alignment > seat->alignment) seat->alignment = block.alignment;
    }
    if (symmetry->seats_count > SEATS_MAX)
        return tarn_error_set(symmetry->error, TARN_BAD_INPUT,
                              "the graphs have %u different symmetric groups; %u are supported",
                              symmetry->seats_count, SEATS_MAX);
    return TARN_OK;
}

static bool has_conflict(const struct symmetry *symmetry, uint32_t a, uint32_t b)
{
    return symmetry->conflicts[a * symmetry->words + b / 64] >> b % 64 & 1;
}

static bool may_share(const struct tarn_problem *problem, uint32_t a, uint32_t b)
{
    struct tarn_block x = tarn_block_at(&problem->blocks, a),
                      y = tarn_block_at(&problem->blocks, b);
    for (uint32_t i = 0; i < x.members_count; i++)
        for (uint32_t k = 0; k < y.members_count; k++)
            if (!tarn_pairwise_may_share(problem, x.members[i], y.members[k])) return false;
    return true;
}

static enum tarn_status find_conflicts(struct symmetry *symmetry)
{
    size_t count = symmetry->seats_count;
    symmetry->words = (count + 63) / 64;
    symmetry->conflicts =
        tarn_region_take(&symmetry->region, count * symmetry->words, sizeof(uint64_t));
    if (!symmetry->conflicts) return tarn_error_no_memory(symmetry->error);
    for (uint32_t n = 0; n < symmetry->nodes_count; n++)
        for (uint32_t m = n; m-- > 0 && symmetry->node_plan[m] == symmetry->node_plan[n];) {
            const struct tarn_again *again = &symmetry->again[symmetry->node_plan[n]];
            if (may_share(again->problem, symmetry->node_block[n], symmetry->node_block[m]))
                continue;
            uint32_t a = symmetry->seat_of[n], b = symmetry->seat_of[m];
            symmetry->conflicts[a * symmetry->words + b / 64] |= UINT64_C(1) << b % 64;
            symmetry->conflicts[b * symmetry->words + a / 64] |= UINT64_C(1) << a % 64;
        }
    return TARN_OK;
}

/* ---- Placing the seats ---- */

static bool is_over(const struct symmetry *symmetry)
{
    return tarn_deadline_is_over(&symmetry->deadline);
}

static bool is_free(const struct symmetry *symmetry, uint32_t s, uint64_t at)
{
    for (uint32_t o = 0; o < symmetry->seats_count; o++) {
        const struct seat *other = &symmetry->seats[o];
        if (o == s || other->start == UINT64_MAX || !has_conflict(symmetry, s, o)) continue;
        if (at < other->start + other->size && other->start < at + symmetry->seats[s].size)
            return false;
    }
    return true;
}

/* The lowest start that is free: 0, or behind a placed seat. */
static uint64_t lowest(const struct symmetry *symmetry, uint32_t s)
{
    const struct seat *seat = &symmetry->seats[s];
    uint64_t at = 0;
    for (bool is_moved = true; is_moved;) {
        is_moved = false;
        for (uint32_t o = 0; o < symmetry->seats_count; o++) {
            const struct seat *other = &symmetry->seats[o];
            if (o == s || other->start == UINT64_MAX || !has_conflict(symmetry, s, o)) continue;
            uint64_t end = other->start + other->size;
            if (at >= end || other->start >= at + seat->size) continue;
            at = (end + seat->alignment - 1) & ~(seat->alignment - 1);
            is_moved = true;
        }
    }
    return at;
}

/* wish: by seat, or NULL. Returns the end. */
static uint64_t place_seats(struct symmetry *symmetry, const uint64_t *wish)
{
    uint64_t end = 0;
    for (uint32_t s = 0; s < symmetry->seats_count; s++) symmetry->seats[s].start = UINT64_MAX;
    for (uint32_t i = 0; i < symmetry->seats_count; i++) {
        uint32_t s = symmetry->order[i];
        struct seat *seat = &symmetry->seats[s];
        bool is_granted = wish && wish[s] != UINT64_MAX && wish[s] % seat->alignment == 0 &&
                          is_free(symmetry, s, wish[s]);
        seat->start = is_granted ? wish[s] : lowest(symmetry, s);
        if (seat->start + seat->size > end) end = seat->start + seat->size;
    }
    return end;
}

enum order { BY_SIZE, BY_CONFLICTS, AS_LISTED, ORDERS };

static uint64_t weight_of(const struct symmetry *symmetry, uint32_t s, enum order order)
{
    uint64_t weight = 0;
    if (order == BY_SIZE) return symmetry->seats[s].size;
    for (uint32_t o = 0; order == BY_CONFLICTS && o < symmetry->seats_count; o++)
        if (has_conflict(symmetry, s, o)) weight += symmetry->seats[o].size / 64;
    return weight;
}

/* Stable, so that seats stay as listed where weights are equal. */
static enum tarn_status order_by(struct symmetry *symmetry, enum order order)
{
    struct tarn_region scratch = {.chunks = NULL};
    uint64_t *weight = tarn_region_take(&scratch, symmetry->seats_count, sizeof *weight);
    if (!weight) return tarn_error_no_memory(symmetry->error);
    for (uint32_t s = 0; s < symmetry->seats_count; s++) {
        uint32_t i = s;
        weight[s] = weight_of(symmetry, s, order);
        for (; i > 0 && weight[symmetry->order[i - 1]] < weight[s]; i--)
            symmetry->order[i] = symmetry->order[i - 1];
        symmetry->order[i] = s;
    }
    tarn_region_finish(&scratch);
    return TARN_OK;
}

/* Moves seats in the order as long as the end does not rise. */
static void search_order(struct symmetry *symmetry, uint64_t end)
{
    uint64_t random = symmetry->options->seed;
    uint32_t count = symmetry->seats_count;
    if (count < 3 || count > SEARCHED_SEATS_MAX || symmetry->options->effort == TARN_NO_EFFORT)
        return;
    for (uint32_t step = 0; step < SEARCH_STEPS && !is_over(symmetry); step++) {
        uint32_t from = tarn_random_below(&random, count), to = tarn_random_below(&random, count);
        uint32_t moved = symmetry->order[from];
        memcpy(symmetry->best_order, symmetry->order, count * sizeof *symmetry->order);
        memmove(symmetry->order + from, symmetry->order + from + 1,
                (count - from - 1) * sizeof *symmetry->order);
        memmove(symmetry->order + to + 1, symmetry->order + to,
                (count - to - 1) * sizeof *symmetry->order);
        symmetry->order[to] = moved;
        uint64_t now = place_seats(symmetry, NULL);
        if (now <= end)
            end = now;
        else
            memcpy(symmetry->order, symmetry->best_order, count * sizeof *symmetry->order);
    }
    place_seats(symmetry, NULL);
}

/* ---- Ways ---- */

static uint64_t own_footprint(const struct symmetry *symmetry, size_t p)
{
    const struct tarn_plan *plan = symmetry->plans[p];
    return plan->spaces ? plan->spaces[symmetry->space].footprint : plan->footprint;
}

/* Where a plan has the seats' blocks; seats that it has not, where the largest plan that has them
 * has them. */
static void find_wishes(const struct symmetry *symmetry, size_t base, uint64_t *wish)
{
    for (uint32_t s = 0; s < symmetry->seats_count; s++) {
        uint64_t most = 0;
        wish[s] = UINT64_MAX;
        for (uint32_t n = 0; n < symmetry->nodes_count; n++) {
            uint32_t p = symmetry->node_plan[n];
            uint64_t rank = p == base ? UINT64_MAX : own_footprint(symmetry, p);
            if (symmetry->seat_of[n] != s || rank < most) continue;
            most = rank;
            wish[s] = tarn_again_start(&symmetry->again[p], symmetry->node_block[n]);
        }
    }
}

static uint64_t end_of_seats(const struct symmetry *symmetry, const uint64_t *start)
{
    uint64_t end = 0;
    for (uint32_t s = 0; s < symmetry->seats_count; s++)
        if (start[s] + symmetry->seats[s].size > end) end = start[s] + symmetry->seats[s].size;
    return end;
}

/* An earlier plan of the same final graph, whose offsets serve for this one; else the plan. */
static size_t find_twin(const struct symmetry *symmetry, size_t p)
{
    const struct tarn_graph *graph = symmetry->plans[p]->graph;
    for (size_t q = 0; q < p; q++)
        if (tarn_hash_equal(symmetry->plans[q]->graph->hash, graph->hash)) return q;
    return p;
}

static enum tarn_status place_plan(struct symmetry *symmetry, struct way *way, size_t p)
{
    struct tarn_again *again = &symmetry->again[p];
    const struct tarn_blocks *blocks = &again->problem->blocks;
    uint64_t end = end_of_seats(symmetry, way->start), own = own_footprint(symmetry, p);
    uint64_t *fixed = tarn_region_take(&symmetry->region, blocks->count, sizeof *fixed);
    size_t twin = find_twin(symmetry, p);
    way->offset[p] = tarn_region_take(&symmetry->region, blocks->storages_count, sizeof(uint64_t));
    if (!fixed || !way->offset[p]) return tarn_error_no_memory(symmetry->error);
    enum tarn_status status = TARN_OK;
    again->planning.options.seconds = tarn_deadline_left(&symmetry->deadline);
    if (twin < p) {
        memcpy(way->offset[p], way->offset[twin], blocks->storages_count * sizeof(uint64_t));
        way->footprint[p] = way->footprint[twin];
    } else {
        for (uint32_t b = 0; b < blocks->count; b++) fixed[b] = TARN_NO_OFFSET;
        for (uint32_t n = 0; n < symmetry->nodes_count; n++)
            if (symmetry->node_plan[n] == p)
                fixed[symmetry->node_block[n]] = way->start[symmetry->seat_of[n]];
        status = way->is_apart
                     ? tarn_again_place_above(again, fixed, end, way->offset[p], &way->footprint[p],
                                              symmetry->error)
                     : tarn_again_place(again, fixed, own > end ? own : end, way->offset[p],
                                        &way->footprint[p], symmetry->error);
    }
    if (end > way->footprint[p]) way->footprint[p] = end;
    if (way->footprint[p] > way->highest) way->highest = way->footprint[p];
    way->sum += way->footprint[p];
    return status;
}

static enum tarn_status try_way(struct symmetry *symmetry, bool is_apart, struct way *best)
{
    struct tarn_region *region = &symmetry->region;
    struct way way = {.start = tarn_region_take(region, symmetry->seats_count, sizeof *way.start),
                      .offset = tarn_region_take(region, symmetry->count, sizeof *way.offset),
                      .footprint = tarn_region_take(region, symmetry->count, sizeof *way.footprint),
                      .is_apart = is_apart};
    if (region->is_exhausted) return tarn_error_no_memory(symmetry->error);
    for (uint32_t s = 0; s < symmetry->seats_count; s++) way.start[s] = symmetry->seats[s].start;
    for (size_t p = 0; p < symmetry->count; p++) {
        enum tarn_status status = place_plan(symmetry, &way, p);
        if (status != TARN_OK) return status;
    }
    bool is_better = !best->start || way.highest < best->highest ||
                     (way.highest == best->highest && way.sum < best->sum);
    if (is_better) *best = way;
    return TARN_OK;
}

/* No way makes a plan smaller than it is by itself; and no way is tried after the deadline. */
static bool is_enough(const struct symmetry *symmetry, const struct way *way)
{
    if (is_over(symmetry)) return true;
    uint64_t sum = 0;
    for (size_t p = 0; p < symmetry->count; p++) sum += own_footprint(symmetry, p);
    return way->sum <= sum;
}

/* The largest plan that has not been a base, and is no twin of one; count: there is none. */
static size_t next_base(const struct symmetry *symmetry, const bool *was_base)
{
    size_t best = symmetry->count;
    for (size_t p = 0; p < symmetry->count; p++)
        if (!was_base[p] && find_twin(symmetry, p) == p &&
            (best == symmetry->count || own_footprint(symmetry, p) > own_footprint(symmetry, best)))
            best = p;
    return best;
}

static enum tarn_status try_bases(struct symmetry *symmetry, struct way *best)
{
    uint64_t *wish = tarn_region_take(&symmetry->region, symmetry->seats_count, sizeof *wish);
    bool *was_base = tarn_region_take(&symmetry->region, symmetry->count, sizeof *was_base);
    if (!wish || !was_base) return tarn_error_no_memory(symmetry->error);
    enum tarn_status status = order_by(symmetry, BY_SIZE);
    for (size_t i = 0; i < BASES && status == TARN_OK; i++) {
        size_t base = next_base(symmetry, was_base);
        if (base == symmetry->count || (best->start && is_enough(symmetry, best))) break;
        was_base[base] = true;
        find_wishes(symmetry, base, wish);
        place_seats(symmetry, wish);
        status = try_way(symmetry, false, best);
    }
    return status;
}

/* The orders from `from` on, of all permutations: for few seats. */
static enum tarn_status try_permutations(struct symmetry *symmetry, uint32_t from, struct way *best)
{
    uint32_t *order = symmetry->order;
    if (is_enough(symmetry, best)) return TARN_OK;
    if (from + 1 >= symmetry->seats_count) {
        place_seats(symmetry, NULL);
        return try_way(symmetry, false, best);
    }
    enum tarn_status status = TARN_OK;
    for (uint32_t i = from; i < symmetry->seats_count && status == TARN_OK; i++) {
        uint32_t first = order[i];
        order[i] = order[from], order[from] = first;
        status = try_permutations(symmetry, from + 1, best);
        order[from] = order[i], order[i] = first;
    }
    return status;
}

static enum tarn_status try_orders(struct symmetry *symmetry, struct way *best)
{
    uint64_t end = UINT64_MAX;
    enum order best_order = BY_SIZE;
    enum tarn_status status = TARN_OK;
    for (enum order order = 0; order < ORDERS && status == TARN_OK; order++) {
        status = order_by(symmetry, order);
        uint64_t now = status == TARN_OK ? place_seats(symmetry, NULL) : end;
        if (now < end) best_order = order, end = now;
        if (status == TARN_OK && order == AS_LISTED) status = try_way(symmetry, false, best);
    }
    if (status == TARN_OK && is_enough(symmetry, best)) return TARN_OK;
    if (status == TARN_OK) status = order_by(symmetry, best_order);
    if (status != TARN_OK) return status;
    search_order(symmetry, place_seats(symmetry, NULL));
    return try_way(symmetry, false, best);
}

static enum tarn_status find_way(struct symmetry *symmetry, struct way *best)
{
    enum tarn_status status = try_bases(symmetry, best);
    if (status != TARN_OK || is_enough(symmetry, best)) return status;
    bool is_small = symmetry->seats_count <= FEW_SEATS;
    status = is_small ? try_permutations(symmetry, 0, best) : try_orders(symmetry, best);
    if (status != TARN_OK || is_enough(symmetry, best)) return status;
    if (is_small) status = order_by(symmetry, BY_SIZE);
    if (is_small && status == TARN_OK) place_seats(symmetry, NULL);
    return status == TARN_OK ? try_way(symmetry, true, best) : status;
}

/* ---- Taking it ---- */

static enum tarn_status check_size(const struct symmetry *symmetry, size_t p, uint64_t footprint)
{
    const struct tarn_plan_options *options = symmetry->options;
    const struct tarn_graph *graph = symmetry->plans[p]->graph;
    uint64_t limit = symmetry->space == 0 ? options->capacity : 0;
    const char *what = "the capacity";
    if (symmetry->space == 0 && options->budget) {
        uint64_t budget = options->budget->budget;
        if (options->budget->share > 0) budget = own_footprint(symmetry, p);
        if (budget > 0 && (limit == 0 || budget < limit)) limit = budget, what = "the budget";
    }
    if (limit == 0 || footprint <= limit) return TARN_OK;
    tarn_error_set(
        symmetry->error, TARN_DOES_NOT_FIT,
        "the plan of graph %s has %s by itself, but %llu with the symmetric groups of its "
        "family at the offsets that suit all; %s is %llu",
        tarn_quote(graph->name).text, tarn_bytes_phrase(own_footprint(symmetry, p)).text,
        (unsigned long long)footprint, what, (unsigned long long)limit);
    return tarn_error_found(symmetry->error, TARN_DOES_NOT_FIT, footprint);
}

/* Planned offsets from the begin of their spaces, or of the arena. */
static void shift(struct tarn_plan *plan, bool to_space)
{
    for (uint32_t a = 0; plan->spaces && a < plan->graph->planned_count; a++) {
        struct tarn_place *place = (struct tarn_place *)tarn_plan_place(plan, a);
        uint64_t begin = tarn_plan_space_begin(plan, plan->graph->storages[a].space, false);
        place->offset = to_space ? place->offset - begin : place->offset + begin;
    }
}

static enum tarn_status take(struct symmetry *symmetry, const struct way *way, size_t p,
                             struct tarn_window window)
{
    struct tarn_plan *plan = symmetry->plans[p];
    const struct tarn_again *again = &symmetry->again[p];
    bool is_moved = way->footprint[p] != own_footprint(symmetry, p);
    enum tarn_status status = check_size(symmetry, p, way->footprint[p]);
    if (status != TARN_OK) return status;
    shift(plan, true);
    for (uint32_t a = 0; a < again->view.planned_count; a++) {
        struct tarn_place *place = (struct tarn_place *)tarn_plan_place(plan, again->origin[a]);
        is_moved = is_moved || place->offset != way->offset[p][a];
        place->offset = way->offset[p][a];
    }
    *(plan->spaces ? &plan->spaces[symmetry->space].footprint : &plan->footprint) =
        way->footprint[p];
    if (plan->spaces && !tarn_plan_stack_spaces(plan))
        return tarn_error_set(symmetry->error, TARN_BAD_INPUT,
                              "all memory spaces together exceed 64 bits");
    shift(plan, false);
    plan->window = window;
    if (!is_moved) return TARN_OK;
    char **method = plan->spaces ? &plan->spaces[symmetry->space].method : &plan->method;
    *method = tarn_region_string(&plan->region, "symmetric");
    if (!*method) return tarn_error_no_memory(symmetry->error);
    if (plan->spaces) plan->method = plan->spaces[0].method;
    if (symmetry->options->boundary == TARN_BOUNDARY_SIMPLE) return TARN_OK;
    status = tarn_plan_refine_boundary(plan);
    return status == TARN_OK ? TARN_OK : tarn_error_no_memory(symmetry->error);
}

static enum tarn_status take_all(struct symmetry *symmetry, const struct way *way)
{
    uint64_t begin = UINT64_MAX, end = end_of_seats(symmetry, way->start);
    enum tarn_status status = TARN_OK;
    for (uint32_t s = 0; s < symmetry->seats_count; s++)
        if (way->start[s] < begin) begin = way->start[s];
    struct tarn_window window = {symmetry->space, begin, end - begin};
    for (size_t p = 0; p < symmetry->count && status == TARN_OK; p++)
        status = take(symmetry, way, p, window);
    return status;
}

enum tarn_status tarn_symmetric_lay_out(struct tarn_plan **plans, size_t count,
                                        const struct tarn_plan_options *given,
                                        struct tarn_error *error)
{
    struct tarn_plan_options options;
    struct symmetry symmetry = {
        .plans = plans, .count = count, .options = &options, .error = error};
    struct way best = {.start = NULL};
    bool is_needed = false;
    for (size_t p = 0; p < count; p++) is_needed = is_needed || is_symmetric(plans[p]);
    if (!is_needed) return TARN_OK;
    enum tarn_status status = tarn_plan_options_take(&options, given, error);
    symmetry.deadline = tarn_deadline_in((const atomic_bool *)options.stop, options.seconds);
    if (status == TARN_OK) status = find_space(&symmetry);
    if (status == TARN_OK) status = look_at_plans(&symmetry);
    if (status == TARN_OK) status = find_holders(&symmetry);
    if (status == TARN_OK) status = unite(&symmetry);
    if (status == TARN_OK) status = make_seats(&symmetry);
    if (status == TARN_OK) status = find_conflicts(&symmetry);
    if (status == TARN_OK) status = find_way(&symmetry, &best);
    if (status == TARN_OK) status = take_all(&symmetry, &best);
    for (size_t p = 0; p < symmetry.again_count; p++) tarn_again_finish(&symmetry.again[p]);
    tarn_region_finish(&symmetry.region);
    return status;
}
