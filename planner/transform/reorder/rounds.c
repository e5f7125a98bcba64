/* Reorders as if all ops ran in one stream. Each round takes a lower bound from the step that is
 * highest now, and an order from the greedy rules with that bound as their limit. The next round
 * continues from the better order, until order and bound meet or no stage finds a better order. The
 * stages, in this order:
 *
 *   greedy  the guide is the best order so far, the limit between the bound and its peak
 *   window  the nodes around the highest step in their best order, by complete search
 *   cut     the minimum cut at the highest step says which nodes should have run before it: they
 *           are moved before it, the others after it
 *   cases   minimum cuts at other steps, then the bound by cases (proof.c)
 *
 * Every order is taken with nodes postponed (postpone.c). Cost: rounds times a greedy order and a
 * flow. */
#include "rounds.h"

#include <assert.h>
#include <string.h>

#include "bound.h"

enum { LIMITS = 4, VISITS = 4000 };

/* Nodes that all minimum cuts of a proof together may look at. */
#define PROOF_NODES 100000

/* ---- Orders ---- */

static struct tarn_reorder_score score_of(struct tarn_reordering *reordering, const uint32_t *order,
                                          uint64_t *step)
{
    struct tarn_reorder_score score = {tarn_reorder_peak(&reordering->greedy.state, order, step),
                                       0};
    for (uint32_t i = 0; i < reordering->model->nodes_count; i++)
        score.steps += step[i] == score.peak;
    return score;
}

bool tarn_reordering_has(const struct tarn_reordering *reordering, enum tarn_reorder_stage stage)
{
    return !(reordering->left_out >> stage & 1);
}

/* Takes an order, with nodes put off, when it is better than the best. */
static bool take(struct tarn_reordering *reordering, const uint32_t *order,
                 enum tarn_reorder_stage stage)
{
    struct tarn_reorder_gain *gain = &reordering->report.gains[stage];
    gain->tries++;
    tarn_reorder_postpone_run(&reordering->postpone, order, reordering->late);
    struct tarn_reorder_score score = score_of(reordering, reordering->late, reordering->trial);
    if (score.peak > reordering->score.peak) return false;
    if (score.peak == reordering->score.peak && score.steps >= reordering->score.steps)
        return false;
    gain->bytes += reordering->score.peak - score.peak;
    uint64_t *step = reordering->step;
    memcpy(reordering->best, reordering->late,
           reordering->model->nodes_count * sizeof *reordering->best);
    reordering->score = score;
    reordering->step = reordering->trial;
    reordering->trial = step;
    return true;
}

static uint32_t highest_step(const struct tarn_reordering *reordering)
{
    uint32_t i = 0;
    while (reordering->step[i] != reordering->score.peak) i++;
    assert(i < reordering->model->nodes_count);
    return i;
}

/* ---- Greedy ---- */

static bool try_greedy(struct tarn_reordering *reordering, const uint32_t *guide)
{
    bool better = false;
    uint64_t span = reordering->score.peak - reordering->least;
    for (uint32_t i = 0; i < LIMITS && reordering->score.peak > reordering->least; i++) {
        uint64_t limit = reordering->least + span / LIMITS * i;
        if (limit >= reordering->score.peak) break;
        if (tarn_steps_is_over(&reordering->steps)) break;
        tarn_reorder_greedy_run(&reordering->greedy, guide, limit);
        better |= take(reordering, reordering->greedy.run, TARN_REORDER_GREEDY);
    }
    return better;
}

/* ---- Cuts ---- */

/* Orders the best order's nodes of one side of the cut first, then the others. Before step `middle`
 * only nodes that the first flag allows move, after it only nodes that the second flag allows. */
static void split(struct tarn_reordering *reordering, uint32_t middle, bool postpone, bool advance)
{
    uint32_t count = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (uint32_t i = 0; i < reordering->model->nodes_count; i++) {
            uint32_t v = reordering->best[i];
            bool first = i < middle;
            if (first && postpone && reordering->cut[v] == TARN_REORDER_AFTER) first = false;
            if (i > middle && advance && reordering->cut[v] == TARN_REORDER_BEFORE) first = true;
            if (first == (pass == 0)) reordering->attempt[count++] = v;
        }
    }
}

static bool try_split(struct tarn_reordering *reordering, uint32_t middle, bool postpone,
                      bool advance)
{
    if (tarn_steps_is_over(&reordering->steps)) return false;
    split(reordering, middle, postpone, advance);
    if (take(reordering, reordering->attempt, TARN_REORDER_CUTS)) return true;
    tarn_reorder_greedy_run(&reordering->greedy, reordering->attempt, reordering->score.peak - 1);
    if (take(reordering, reordering->greedy.run, TARN_REORDER_CUTS)) return true;
    tarn_reorder_greedy_run(&reordering->greedy, reordering->attempt, reordering->least);
    return take(reordering, reordering->greedy.run, TARN_REORDER_CUTS);
}

static bool try_cut(struct tarn_reordering *reordering, uint32_t middle)
{
    memcpy(reordering->cut, reordering->bound.side, reordering->model->nodes_count);
    return try_split(reordering, middle, true, false) ||
           try_split(reordering, middle, false, true) || try_split(reordering, middle, true, true);
}

/* The smallest set that the minimum cut at this step has run, then the largest. */
static bool try_cuts(struct tarn_reordering *reordering, uint32_t middle)
{
    if (try_cut(reordering, middle)) return true;
    tarn_reorder_bound_enlarge(&reordering->bound);
    return try_cut(reordering, middle);
}

/* ---- Windows ---- */

/* Runs the best order up to the window, and searches that. */
static enum tarn_reorder_verdict search_window(struct tarn_reordering *reordering, uint32_t begin,
                                               uint32_t count, uint32_t *order)
{
    uint64_t peak;
    tarn_reorder_state_reset(&reordering->greedy.state);
    for (uint32_t i = 0; i < begin; i++)
        tarn_reorder_run(&reordering->greedy.state, reordering->best[i]);
    return tarn_reorder_exact_run(&reordering->exact, reordering->best + begin, count,
                                  reordering->score.peak, reordering->least, order, &peak);
}

static bool try_window(struct tarn_reordering *reordering, uint32_t begin, uint32_t count)
{
    uint32_t order[TARN_REORDER_EXACT_MAX];
    enum tarn_reorder_verdict verdict = search_window(reordering, begin, count, order);
    if (verdict == TARN_REORDER_NONE && count == reordering->model->nodes_count)
        reordering->least = reordering->score.peak;
    if (verdict != TARN_REORDER_BEST && verdict != TARN_REORDER_SOME) return false;
    memcpy(reordering->attempt, reordering->best,
           reordering->model->nodes_count * sizeof *reordering->attempt);
    memcpy(reordering->attempt + begin, order, count * sizeof *order);
    return take(reordering, reordering->attempt, TARN_REORDER_WINDOWS);
}

/* Windows in which the highest step is late, in the middle, and early. */
static bool try_windows(struct tarn_reordering *reordering, uint32_t middle)
{
    uint32_t nodes = reordering->model->nodes_count;
    uint32_t count = nodes < TARN_REORDER_EXACT_MAX ? nodes : TARN_REORDER_EXACT_MAX;
    for (uint32_t part = 1; part <= 3; part++) {
        uint32_t before = count * part / 4;
        uint32_t begin = middle > before ? middle - before : 0;
        if (begin > nodes - count) begin = nodes - count;
        if (try_window(reordering, begin, count)) return true;
    }
    return false;
}

/* ---- Rounds ---- */

/* Raises the bound to the bound of step i of the best order; *here: that step's own bound. */
static enum tarn_status raise_bound(struct tarn_reordering *reordering, uint32_t i, uint64_t *here)
{
    enum tarn_status status = tarn_reorder_bound_at(&reordering->bound, reordering->best[i], here);
    assert(status != TARN_OK || *here <= reordering->score.peak);
    if (status == TARN_OK && *here > reordering->least) reordering->least = *here;
    return status;
}

/* One round of improvement; *better: it helped. */
static enum tarn_status improve(struct tarn_reordering *reordering, bool *better)
{
    uint64_t here;
    uint32_t middle = highest_step(reordering);
    *better = false;
    enum tarn_status status = raise_bound(reordering, middle, &here);
    if (status != TARN_OK || reordering->score.peak == reordering->least) return status;
    *better = (tarn_reordering_has(reordering, TARN_REORDER_GREEDY) &&
               try_greedy(reordering, reordering->best)) ||
              (tarn_reordering_has(reordering, TARN_REORDER_WINDOWS) &&
               try_windows(reordering, middle)) ||
              (tarn_reordering_has(reordering, TARN_REORDER_CUTS) && try_cuts(reordering, middle));
    return status;
}

/* Cuts at other steps: those above the bound, the highest first. */
static enum tarn_status raise_bound_elsewhere(struct tarn_reordering *reordering, uint32_t cuts)
{
    uint64_t here, below = UINT64_MAX;
    while (cuts > 0 && reordering->least < reordering->score.peak) {
        uint64_t height = reordering->least;
        for (uint32_t i = 0; i < reordering->model->nodes_count; i++) {
            if (reordering->step[i] < below && reordering->step[i] > height)
                height = reordering->step[i];
        }
        if (height == reordering->least) return TARN_OK;
        for (uint32_t i = 0; i < reordering->model->nodes_count && cuts > 0; i++) {
            if (reordering->step[i] != height || height <= reordering->least) continue;
            if (tarn_steps_is_over(&reordering->steps)) return TARN_OK;
            if (raise_bound(reordering, i, &here) != TARN_OK) return TARN_SYSTEM;
            cuts--;
        }
        below = height;
    }
    return TARN_OK;
}

/* Raises the bound by cases; *better: a better order has turned up. */
static enum tarn_status prove_by_cases(struct tarn_reordering *reordering, uint32_t cuts,
                                       bool *better)
{
    struct tarn_reorder_proof proof;
    struct tarn_region_mark mark = tarn_region_mark(reordering->region);
    enum tarn_status status = tarn_reorder_proof_init(
        &proof, reordering->region, &reordering->bound, &reordering->greedy.state);
    proof.steps = &reordering->steps;
    if (status == TARN_OK)
        status = tarn_reorder_proof_run(&proof, reordering->best, cuts, &reordering->least);
    if (status == TARN_OK && proof.found_peak < reordering->score.peak)
        *better = take(reordering, proof.found, TARN_REORDER_CASES);
    tarn_region_release(reordering->region, mark);
    return status;
}

/* A closer look at the bound; *better: a better order has turned up. */
static enum tarn_status prove(struct tarn_reordering *reordering, bool *better)
{
    uint32_t cuts = 10 + PROOF_NODES / reordering->model->nodes_count;
    *better = false;
    if (raise_bound_elsewhere(reordering, cuts) != TARN_OK) return TARN_SYSTEM;
    if (reordering->least == reordering->score.peak ||
        !tarn_reordering_has(reordering, TARN_REORDER_CASES) ||
        tarn_steps_is_over(&reordering->steps))
        return TARN_OK;
    return prove_by_cases(reordering, cuts, better);
}

enum tarn_status tarn_reordering_run(struct tarn_reordering *reordering, uint32_t effort)
{
    bool better = true;
    enum tarn_status status = TARN_OK;
    uint32_t rounds_max = reordering->report.rounds + effort;
    while (status == TARN_OK && better && reordering->score.peak > reordering->least &&
           reordering->report.rounds < rounds_max &&
           tarn_steps_next(&reordering->steps, reordering->score.peak)) {
        reordering->report.rounds++;
        status = improve(reordering, &better);
        if (status == TARN_OK && !better && reordering->score.peak > reordering->least &&
            !reordering->is_restarted)
            status = prove(reordering, &better);
    }
    return status;
}

void tarn_reordering_restart(struct tarn_reordering *reordering, const uint32_t *order)
{
    memcpy(reordering->best, order, reordering->model->nodes_count * sizeof *reordering->best);
    reordering->score = score_of(reordering, reordering->best, reordering->step);
    reordering->is_restarted = true;
}

/* ---- Memory ---- */

enum tarn_status tarn_reordering_init(struct tarn_reordering *reordering,
                                      const struct tarn_reorder_model *model)
{
    struct tarn_region *region = reordering->region;
    size_t count = model->nodes_count;
    reordering->model = model;
    reordering->best = tarn_region_take(region, count, sizeof *reordering->best);
    reordering->attempt = tarn_region_take(region, count, sizeof *reordering->attempt);
    reordering->late = tarn_region_take(region, count, sizeof *reordering->late);
    reordering->step = tarn_region_take(region, count, sizeof *reordering->step);
    reordering->trial = tarn_region_take(region, count, sizeof *reordering->trial);
    reordering->cut = tarn_region_take(region, count, sizeof *reordering->cut);
    enum tarn_status status = tarn_reorder_greedy_init(&reordering->greedy, region, model);
    if (status == TARN_OK) status = tarn_reorder_bound_init(&reordering->bound, region, model);
    if (status == TARN_OK)
        status =
            tarn_reorder_exact_init(&reordering->exact, region, &reordering->greedy.state, VISITS);
    if (status == TARN_OK)
        status = tarn_reorder_postpone_init(&reordering->postpone, region, model);
    if (status != TARN_OK) return status;
    for (uint32_t v = 0; v < model->nodes_count; v++) reordering->best[v] = v;
    reordering->score = score_of(reordering, reordering->best, reordering->step);
    reordering->report.peak_before = reordering->score.peak;
    return TARN_OK;
}

void tarn_reordering_finish(struct tarn_reordering *reordering)
{
    tarn_reorder_bound_finish(&reordering->bound);
}
