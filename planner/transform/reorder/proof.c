/* Raises the bound by branch and bound over cases "u runs before w". Each case has an order that is
 * legal in it. Take the highest step w of that order. If w's minimum cut reaches the goal, the case
 * is done. Else split the order at that cut, which lowers w's step; now another node u is highest.
 * If the case orders the two, continue with u. If not, either u runs before w or w before u, and a
 * bound that holds in both cases holds. The orders that are found meanwhile are compared with the
 * goal, too. Cost: cuts_max minimum cuts and twice as many runs through an order. */
#include "bound.h"

#include <assert.h>
#include <string.h>

enum { STEPS_MAX = 6 };

enum tarn_status tarn_reorder_proof_init(struct tarn_reorder_proof *proof,
                                         struct tarn_region *region,
                                         struct tarn_reorder_bound *bound,
                                         struct tarn_reorder_state *state)
{
    size_t count = bound->model->nodes_count;
    assert(bound->cases_count == 0);
    *proof = (struct tarn_reorder_proof){
        .bound = bound,
        .state = state,
        .orders =
            tarn_region_take(region, count * (TARN_REORDER_CASES_MAX + 2), sizeof *proof->orders),
        .step = tarn_region_take(region, count, sizeof *proof->step),
        .side = tarn_region_take(region, count, sizeof *proof->side),
        .found = tarn_region_take(region, count, sizeof *proof->found),
    };
    return region->is_exhausted ? TARN_SYSTEM : TARN_OK;
}

static uint32_t nodes_count(const struct tarn_reorder_proof *proof)
{
    return proof->bound->model->nodes_count;
}

static uint32_t *order_at(const struct tarn_reorder_proof *proof, uint32_t depth)
{
    return proof->orders + (size_t)depth * nodes_count(proof);
}

/* ---- Orders ---- */

/* The place of the order's highest step; an order below the goal is kept. */
static uint32_t find_highest(struct tarn_reorder_proof *proof, const uint32_t *order,
                             uint64_t *peak)
{
    uint32_t i = 0;
    *peak = tarn_reorder_peak(proof->state, order, proof->step);
    while (proof->step[i] != *peak) i++;
    if (*peak < proof->goal && *peak < proof->found_peak) {
        proof->found_peak = *peak;
        memcpy(proof->found, order, nodes_count(proof) * sizeof *order);
    }
    return i;
}

/* Moves the nodes that have run in the last cut to the front. */
static void split(struct tarn_reorder_proof *proof, uint32_t *order, uint32_t *room)
{
    uint32_t count = nodes_count(proof), front = 0, back = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (proof->bound->side[order[i]] == TARN_REORDER_BEFORE)
            order[front++] = order[i];
        else
            room[back++] = order[i];
    }
    memcpy(order + front, room, back * sizeof *order);
}

static bool waits_for_marked(const struct tarn_reorder_proof *proof, uint32_t v)
{
    const struct tarn_arcs *arcs = &proof->bound->model->predecessors;
    for (uint32_t i = arcs->begin[v]; i < arcs->begin[v + 1]; i++) {
        if (proof->side[arcs->ops[i]]) return true;
    }
    for (uint32_t i = 0; i < proof->bound->cases_count; i++) {
        const struct tarn_reorder_case *one = &proof->bound->cases[i];
        if (one->after == v && proof->side[one->before]) return true;
    }
    return false;
}

/* Copies the order and puts node `after`, with all nodes between that come after it, after node
 * `before`. */
static void copy_in_case(struct tarn_reorder_proof *proof, const uint32_t *from, uint32_t *to,
                         struct tarn_reorder_case one)
{
    uint32_t count = nodes_count(proof), kept = 0, put_off = 0, i = 0;
    uint32_t *late = order_at(proof, TARN_REORDER_CASES_MAX + 1);
    memset(proof->side, 0, count * sizeof *proof->side);
    for (; i < count; i++) {
        uint32_t v = from[i];
        if (v == one.after || (put_off > 0 && waits_for_marked(proof, v))) {
            proof->side[v] = 1;
            late[put_off++] = v;
        } else {
            to[kept++] = v;
        }
        if (v == one.before) break;
    }
    memcpy(to + kept, late, put_off * sizeof *to);
    memcpy(to + kept + put_off, from + i + 1, (count - i - 1) * sizeof *to);
}

/* ---- Cases ---- */

struct pair {
    uint32_t u, w;
};

/* Bounds the case whose order is order_at(depth) by cuts at its highest steps, until the goal is
 * reached or two nodes are found that the case leaves unordered. */
static enum tarn_status look(struct tarn_reorder_proof *proof, uint32_t depth, uint64_t *least,
                             struct pair *open)
{
    uint32_t *order = order_at(proof, depth);
    uint64_t peak, here;
    *open = (struct pair){TARN_NONE, TARN_NONE};
    uint32_t i = find_highest(proof, order, &peak);
    for (uint32_t k = 0; k < STEPS_MAX && peak >= proof->goal; k++) {
        uint32_t w = order[i];
        if (proof->cuts++ >= proof->cuts_max) return TARN_OK;
        if (proof->steps && tarn_steps_is_over(proof->steps)) return TARN_OK;
        if (tarn_reorder_bound_at(proof->bound, w, &here) != TARN_OK) return TARN_SYSTEM;
        if (here > *least) *least = here;
        if (*least >= proof->goal) return TARN_OK;
        split(proof, order, order_at(proof, TARN_REORDER_CASES_MAX + 1));
        i = find_highest(proof, order, &peak);
        if (peak < proof->goal || !tarn_reorder_bound_was_free(proof->bound, order[i])) continue;
        *open = (struct pair){order[i], w};
        return TARN_OK;
    }
    return TARN_OK;
}

static enum tarn_status bound_case(struct tarn_reorder_proof *proof, uint32_t depth,
                                   uint64_t *least);

/* Takes the lower of the bound of case `one` and the bound of the earlier cases. */
static enum tarn_status add_case(struct tarn_reorder_proof *proof, uint32_t depth,
                                 struct tarn_reorder_case one, uint64_t known, uint64_t *least)
{
    uint64_t here = known;
    assert(proof->bound->cases_count == depth && depth < TARN_REORDER_CASES_MAX);
    copy_in_case(proof, order_at(proof, depth), order_at(proof, depth + 1), one);
    proof->bound->cases[proof->bound->cases_count++] = one;
    enum tarn_status status = bound_case(proof, depth + 1, &here);
    proof->bound->cases_count--;
    if (here < *least) *least = here;
    return status;
}

/* Raises *least, which holds in the case already. */
static enum tarn_status bound_case(struct tarn_reorder_proof *proof, uint32_t depth,
                                   uint64_t *least)
{
    struct pair open;
    enum tarn_status status = look(proof, depth, least, &open);
    if (status != TARN_OK || open.u == TARN_NONE || depth == TARN_REORDER_CASES_MAX) return status;
    uint64_t known = *least, both = proof->goal;
    status = add_case(proof, depth, (struct tarn_reorder_case){open.u, open.w}, known, &both);
    if (status == TARN_OK && both > known)
        status = add_case(proof, depth, (struct tarn_reorder_case){open.w, open.u}, known, &both);
    *least = both;
    return status;
}

enum tarn_status tarn_reorder_proof_run(struct tarn_reorder_proof *proof, const uint32_t *order,
                                        uint32_t cuts_max, uint64_t *least)
{
    proof->goal = tarn_reorder_peak(proof->state, order, NULL);
    proof->cuts = 0;
    proof->cuts_max = cuts_max;
    proof->found_peak = UINT64_MAX;
    if (*least >= proof->goal) return TARN_OK;
    memcpy(order_at(proof, 0), order, nodes_count(proof) * sizeof *order);
    enum tarn_status status = bound_case(proof, 0, least);
    assert(proof->found_peak >= *least);
    return status;
}
