/* Reordering, as if everything ran in one stream: a lower bound from the step that is highest now,
 * an order from the greedy rules under that bound as their limit, and so on from the better order,
 * until order and bound meet or nothing helps any more. What helps, in turn:
 *
 *   greedy  the guide is the best order so far, the limit between the bound and its peak
 *   window  the nodes around the highest step in their best order, by complete search
 *   cut     the minimum cut at the highest step says which nodes should have run before it: they
 *           are moved before it, the others behind it
 *
 * Several streams take their orders from that list, as reorder/streams.h goes on to say; the bound
 * holds for them as well, since what is alive in one step of a list is an antichain.
 * Cost: rounds times a greedy order and a flow. */
#include "reorder.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "bound.h"
#include "exact.h"
#include "greedy.h"
#include "planner/transform/recipe.h"
#include "planner/transform/steps.h"
#include "postpone.h"
#include "proof.h"
#include "streams.h"
#include "streams/base/checked.h"
#include "streams/base/options.h"
#include "streams/order/reserved.h"

enum { ALIGNMENT_DEFAULT = 512, EFFORT_DEFAULT = 200, LIMITS = 4, VISITS = 4000 };

/* Nodes that all minimum cuts of a proof together may look at. */
#define PROOF_NODES 100000

/* How good an order is: its peak, then how many steps are that high. */
struct score {
    uint64_t peak;
    uint32_t steps;
};

struct reordering {
    const struct tarn_reorder_model *model;
    struct tarn_reorder_greedy greedy;
    struct tarn_reorder_bound bound;
    struct tarn_reorder_exact exact;
    struct tarn_reorder_postpone postpone;
    struct tarn_steps steps;
    uint64_t least;    /* no order has a lower peak */
    uint32_t *best;    /* the best order so far */
    uint32_t *attempt; /* another one */
    uint32_t *late;    /* that one with nodes put off */
    uint32_t left_out; /* stages, as bits */
    uint64_t *step;    /* memory of the steps of the best order */
    uint64_t *trial;   /* of the attempt */
    uint8_t *cut;      /* node: the minimum cut at the highest step has it run */
    struct score score;
    struct tarn_reorder_report report;
};

const char *tarn_reorder_stage_text(enum tarn_reorder_stage stage)
{
    static const char *const words[] = {
        [TARN_REORDER_GREEDY] = "greedy",   [TARN_REORDER_WINDOWS] = "windows",
        [TARN_REORDER_CUTS] = "cuts",       [TARN_REORDER_CASES] = "cases",
        [TARN_REORDER_WITNESS] = "witness",
    };
    return (unsigned)stage < TARN_REORDER_STAGES ? words[stage] : "";
}

/* ---- Orders ---- */

static struct score score_of(struct reordering *all, const uint32_t *order, uint64_t *step)
{
    struct score score = {tarn_reorder_peak(&all->greedy.state, order, step), 0};
    for (uint32_t i = 0; i < all->model->nodes_count; i++) score.steps += step[i] == score.peak;
    return score;
}

static bool is_on(const struct reordering *all, enum tarn_reorder_stage stage)
{
    return !(all->left_out >> stage & 1);
}

/* Takes an order, with nodes put off, when it is better than the best. */
static bool take(struct reordering *all, const uint32_t *order, enum tarn_reorder_stage stage)
{
    struct tarn_reorder_gain *gain = &all->report.gains[stage];
    gain->tries++;
    tarn_reorder_postpone_run(&all->postpone, order, all->late);
    struct score score = score_of(all, all->late, all->trial);
    if (score.peak > all->score.peak) return false;
    if (score.peak == all->score.peak && score.steps >= all->score.steps) return false;
    gain->bytes += all->score.peak - score.peak;
    uint64_t *step = all->step;
    memcpy(all->best, all->late, all->model->nodes_count * sizeof *all->best);
    all->score = score;
    all->step = all->trial;
    all->trial = step;
    return true;
}

static uint32_t highest_step(const struct reordering *all)
{
    uint32_t i = 0;
    while (all->step[i] != all->score.peak) i++;
    return i;
}

/* ---- Greedy ---- */

static bool try_greedy(struct reordering *all, const uint32_t *guide)
{
    bool better = false;
    uint64_t span = all->score.peak - all->least;
    for (uint32_t i = 0; i < LIMITS && all->score.peak > all->least; i++) {
        uint64_t limit = all->least + span / LIMITS * i;
        if (limit >= all->score.peak) break;
        tarn_reorder_greedy_run(&all->greedy, guide, limit);
        better |= take(all, all->greedy.run, TARN_REORDER_GREEDY);
    }
    return better;
}

/* ---- Cuts ---- */

/* The best order's nodes on one side of the cut, then the others. Before step `middle` only those
 * move that the first flag allows, behind it those of the second. */
static void split(struct reordering *all, uint32_t middle, bool postpone, bool advance)
{
    uint32_t count = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (uint32_t i = 0; i < all->model->nodes_count; i++) {
            uint32_t v = all->best[i];
            bool first = i < middle;
            if (first && postpone && all->cut[v] == TARN_REORDER_AFTER) first = false;
            if (i > middle && advance && all->cut[v] == TARN_REORDER_BEFORE) first = true;
            if (first == (pass == 0)) all->attempt[count++] = v;
        }
    }
}

static bool try_split(struct reordering *all, uint32_t middle, bool postpone, bool advance)
{
    split(all, middle, postpone, advance);
    if (take(all, all->attempt, TARN_REORDER_CUTS)) return true;
    tarn_reorder_greedy_run(&all->greedy, all->attempt, all->score.peak - 1);
    if (take(all, all->greedy.run, TARN_REORDER_CUTS)) return true;
    tarn_reorder_greedy_run(&all->greedy, all->attempt, all->least);
    return take(all, all->greedy.run, TARN_REORDER_CUTS);
}

static bool try_cut(struct reordering *all, uint32_t middle)
{
    memcpy(all->cut, all->bound.side, all->model->nodes_count);
    return try_split(all, middle, true, false) || try_split(all, middle, false, true) ||
           try_split(all, middle, true, true);
}

/* The smallest set that the minimum cut at this step has run, then the largest. */
static bool try_cuts(struct reordering *all, uint32_t middle)
{
    if (try_cut(all, middle)) return true;
    tarn_reorder_bound_enlarge(&all->bound);
    return try_cut(all, middle);
}

/* ---- Windows ---- */

/* Runs the best order up to the window, and searches that. */
static enum tarn_reorder_verdict search_window(struct reordering *all, uint32_t begin,
                                               uint32_t count, uint32_t *order)
{
    uint64_t peak;
    tarn_reorder_state_reset(&all->greedy.state);
    for (uint32_t i = 0; i < begin; i++) tarn_reorder_run(&all->greedy.state, all->best[i]);
    return tarn_reorder_exact_run(&all->exact, all->best + begin, count, all->score.peak,
                                  all->least, order, &peak);
}

static bool try_window(struct reordering *all, uint32_t begin, uint32_t count)
{
    uint32_t order[TARN_REORDER_EXACT_MAX];
    enum tarn_reorder_verdict verdict = search_window(all, begin, count, order);
    if (verdict == TARN_REORDER_NONE && count == all->model->nodes_count)
        all->least = all->score.peak;
    if (verdict != TARN_REORDER_BEST && verdict != TARN_REORDER_SOME) return false;
    memcpy(all->attempt, all->best, all->model->nodes_count * sizeof *all->attempt);
    memcpy(all->attempt + begin, order, count * sizeof *order);
    return take(all, all->attempt, TARN_REORDER_WINDOWS);
}

/* Windows in which the highest step is late, in the middle, and early. */
static bool try_windows(struct reordering *all, uint32_t middle)
{
    uint32_t nodes = all->model->nodes_count;
    uint32_t count = nodes < TARN_REORDER_EXACT_MAX ? nodes : TARN_REORDER_EXACT_MAX;
    for (uint32_t part = 1; part <= 3; part++) {
        uint32_t before = count * part / 4;
        uint32_t begin = middle > before ? middle - before : 0;
        if (begin > nodes - count) begin = nodes - count;
        if (try_window(all, begin, count)) return true;
    }
    return false;
}

/* ---- Rounds ---- */

/* Raises the bound by what step i of the best order says; *here: that step's own. */
static enum tarn_status raise_bound(struct reordering *all, uint32_t i, uint64_t *here)
{
    enum tarn_status status = tarn_reorder_bound_at(&all->bound, all->best[i], here);
    if (status == TARN_OK && *here > all->least) all->least = *here;
    return status;
}

/* One round of improvement; *better: it helped. */
static enum tarn_status improve(struct reordering *all, bool *better)
{
    uint64_t here;
    uint32_t middle = highest_step(all);
    *better = false;
    enum tarn_status status = raise_bound(all, middle, &here);
    if (status != TARN_OK || all->score.peak == all->least) return status;
    *better = (is_on(all, TARN_REORDER_GREEDY) && try_greedy(all, all->best)) ||
              (is_on(all, TARN_REORDER_WINDOWS) && try_windows(all, middle)) ||
              (is_on(all, TARN_REORDER_CUTS) && try_cuts(all, middle));
    return status;
}

/* Cuts at other steps: those above the bound, the highest first. */
static enum tarn_status raise_bound_elsewhere(struct reordering *all, uint32_t cuts)
{
    uint64_t here, below = UINT64_MAX;
    while (cuts > 0 && all->least < all->score.peak) {
        uint64_t height = all->least;
        for (uint32_t i = 0; i < all->model->nodes_count; i++) {
            if (all->step[i] < below && all->step[i] > height) height = all->step[i];
        }
        if (height == all->least) return TARN_OK;
        for (uint32_t i = 0; i < all->model->nodes_count && cuts > 0; i++) {
            if (all->step[i] != height || height <= all->least) continue;
            if (raise_bound(all, i, &here) != TARN_OK) return TARN_SYSTEM;
            cuts--;
        }
        below = height;
    }
    return TARN_OK;
}

/* A closer look at the bound; *better: a better order has turned up. */
static enum tarn_status prove(struct reordering *all, bool *better)
{
    struct tarn_reorder_proof proof;
    uint32_t cuts = 10 + PROOF_NODES / all->model->nodes_count;
    *better = false;
    if (raise_bound_elsewhere(all, cuts) != TARN_OK) return TARN_SYSTEM;
    if (all->least == all->score.peak || !is_on(all, TARN_REORDER_CASES)) return TARN_OK;
    if (tarn_reorder_proof_init(&proof, &all->bound, &all->greedy.state) != TARN_OK)
        return TARN_SYSTEM;
    enum tarn_status status = tarn_reorder_proof_run(&proof, all->best, cuts, &all->least);
    if (status == TARN_OK && proof.found_peak < all->score.peak)
        *better = take(all, proof.found, TARN_REORDER_CASES);
    tarn_reorder_proof_finish(&proof);
    return status;
}

static enum tarn_status search(struct reordering *all, uint32_t effort)
{
    bool better = true;
    enum tarn_status status = TARN_OK;
    while (status == TARN_OK && better && all->score.peak > all->least &&
           all->report.rounds < effort && tarn_steps_next(&all->steps, all->score.peak)) {
        all->report.rounds++;
        status = improve(all, &better);
        if (status == TARN_OK && !better && all->score.peak > all->least)
            status = prove(all, &better);
    }
    return status;
}

/* ---- The transform ---- */

static enum tarn_status init(struct reordering *all, const struct tarn_reorder_model *model)
{
    size_t count = (size_t)model->nodes_count + 1;
    all->model = model;
    all->best = malloc(count * sizeof *all->best);
    all->attempt = malloc(count * sizeof *all->attempt);
    all->late = malloc(count * sizeof *all->late);
    all->step = malloc(count * sizeof *all->step);
    all->trial = malloc(count * sizeof *all->trial);
    all->cut = malloc(count * sizeof *all->cut);
    if (!all->best || !all->attempt || !all->late || !all->step || !all->trial || !all->cut)
        return TARN_SYSTEM;
    if (tarn_reorder_greedy_init(&all->greedy, model) != TARN_OK) return TARN_SYSTEM;
    if (tarn_reorder_bound_init(&all->bound, model) != TARN_OK) return TARN_SYSTEM;
    if (tarn_reorder_exact_init(&all->exact, &all->greedy.state, VISITS) != TARN_OK)
        return TARN_SYSTEM;
    if (tarn_reorder_postpone_init(&all->postpone, model) != TARN_OK) return TARN_SYSTEM;
    for (uint32_t v = 0; v < model->nodes_count; v++) all->best[v] = v;
    all->score = score_of(all, all->best, all->step);
    all->report.peak_before = all->score.peak;
    return TARN_OK;
}

static void finish(struct reordering *all)
{
    tarn_reorder_greedy_finish(&all->greedy);
    tarn_reorder_bound_finish(&all->bound);
    tarn_reorder_exact_finish(&all->exact);
    tarn_reorder_postpone_finish(&all->postpone);
    free(all->best);
    free(all->attempt);
    free(all->late);
    free(all->step);
    free(all->trial);
    free(all->cut);
}

/* For several streams: from the best list on, by the heaviest antichain. */
static enum tarn_status weigh(struct reordering *all, const struct tarn_graph *graph,
                              const uint64_t *reserved, const struct tarn_reorder_options *options,
                              uint32_t *list)
{
    uint32_t *came_in = malloc(((size_t)graph->ops_count + 1) * sizeof *came_in);
    if (!came_in) return TARN_SYSTEM;
    memcpy(came_in, graph->order, graph->ops_count * sizeof *came_in);
    struct tarn_reorder_weights weights = {
        .tries = is_on(all, TARN_REORDER_WITNESS) ? options->effort : 0,
        .keep_time = options->keep_time,
        .steps = &all->steps,
    };
    enum tarn_status status =
        tarn_reorder_streams(graph, reserved, (uint32_t *const[]){came_in, list}, &weights);
    struct tarn_reorder_report *report = &all->report;
    report->gains[TARN_REORDER_WITNESS].tries = weights.tried;
    report->gains[TARN_REORDER_WITNESS].bytes = weights.start - weights.after;
    report->peak_before = weights.before;
    report->peak_after = weights.after;
    report->critical_path_before_ns = weights.before_ns;
    report->critical_path_ns = weights.after_ns;
    free(came_in);
    return status;
}

/* The list of all ops that has come out best. */
static enum tarn_status choose(struct reordering *all, const struct tarn_graph *graph,
                               const uint64_t *reserved, const struct tarn_reorder_options *options,
                               uint32_t *list)
{
    enum tarn_status status = search(all, options->effort);
    all->report.peak_after = all->score.peak;
    all->report.bound = all->least;
    if (status == TARN_OK) status = tarn_reorder_list(all->model, all->best, list);
    if (status == TARN_OK && graph->streams_count > 1)
        status = weigh(all, graph, reserved, options, list);
    return status;
}

static enum tarn_status reorder(struct tarn_graph *graph, const uint64_t *reserved,
                                const struct tarn_reorder_options *options, uint32_t left_out,
                                struct tarn_graph **result, struct tarn_error *error)
{
    struct tarn_reorder_model model;
    struct reordering all = {.left_out = left_out,
                             .steps = {.control = options->control, .transform = "reorder"}};
    if (tarn_reorder_model_init(&model, graph, reserved) != TARN_OK)
        return tarn_error_no_memory(error);
    uint32_t *list = malloc(((size_t)graph->ops_count + 1) * sizeof *list);
    enum tarn_status status = list ? init(&all, &model) : TARN_SYSTEM;
    if (status == TARN_OK) status = choose(&all, graph, reserved, options, list);
    if (status == TARN_OK) {
        struct tarn_recipe recipe = {.graph = graph, .order = list};
        if (options->report) *options->report = all.report;
        if (all.report.peak_after == all.report.peak_before) recipe.order = NULL;
        status = tarn_recipe_build(&recipe, result, error);
    } else {
        tarn_error_no_memory(error);
    }
    free(list);
    finish(&all);
    tarn_reorder_model_finish(&model);
    return status;
}

enum tarn_status tarn_graph_reorder(struct tarn_graph *graph,
                                    const struct tarn_reorder_options *options,
                                    struct tarn_graph **result, struct tarn_error *error)
{
    if (result) *result = NULL;
    if (!graph || !result) return tarn_error_null(error, __func__);
    return tarn_reorder_without(graph, options, 0, result, error);
}

enum tarn_status tarn_reorder_without(struct tarn_graph *graph,
                                      const struct tarn_reorder_options *given, uint32_t left_out,
                                      struct tarn_graph **result, struct tarn_error *error)
{
    assert(graph && result);
    *result = NULL;
    struct tarn_reorder_options options = {0};
    struct tarn_region region = {.chunks = NULL};
    const uint64_t *reserved;
    tarn_error_clear(error);
    enum tarn_status status =
        tarn_options_take(&options, sizeof options, given, "reorder options", error);
    if (status != TARN_OK) return status;
    if (options.alignment == 0) options.alignment = ALIGNMENT_DEFAULT;
    if (options.effort == 0) options.effort = EFFORT_DEFAULT;
    if (!tarn_is_power_of_two(options.alignment))
        return tarn_error_set(error, TARN_USAGE, "the alignment %llu is not a power of two",
                              (unsigned long long)options.alignment);
    status = tarn_reserved_sizes(&reserved, &region, graph, options.alignment, error);
    if (status == TARN_OK) status = reorder(graph, reserved, &options, left_out, result, error);
    tarn_region_finish(&region);
    return status;
}
