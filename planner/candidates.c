/* Tries the candidates of a plan: padding of groups, waits, and order, if the settings leave them
 * open.
 *
 *     padding   as asked, or exact and padded
 *     waits     within a budget, coupled and in place, as asked, or, if that takes time, in place
 *               alone, or neither: it may leave less that can be computed again, and waits change
 *               which outputs take inputs over
 *     merging   in place after another order has been found and, without a budget, before: outputs
 *               that take inputs over change which order is best, and an order changes which may
 *     paired    in place within a budget over what all implementations read, so that each can be
 *               chosen, or over all that the pairs allow
 *     slowdown  of coupling, if some is allowed: as asked, and none, since a bound that more waits
 *               have lowered may be harder to meet
 *     order     another one, and, if that may be worse, the given one: with fewer bytes alive at
 *               once there may be less that can be computed again, and an order is chosen for the
 *               first memory space alone
 *
 * They form one list, tried in order: a candidate is skipped if earlier ones leave nothing to gain.
 * A plan that fits is better than one that does not. Within a budget the shortest modelled time is
 * best, then the smallest footprint; without a budget the first order that fits, and the padding
 * with the smallest footprint. If nothing fits, the refusal with the smallest footprint is
 * returned. The caller's seconds are for the whole list. Cost: the transforms and a plan for each
 * candidate. */
#include "pipeline.h"

#include <assert.h>

#include "planner/budget/budget.h"
#include "planner/transform/in_place.h"
#include "streams/base/deadline.h"
#include "streams/base/error.h"
#include "streams/base/memory.h"
#include "streams/base/options.h"

enum { CANDIDATES_MAX = 20 };

struct search {
    struct tarn_graph *source;
    const struct tarn_plan_settings *settings;
    tarn_pipeline_plan *plan;
    struct tarn_deadline deadline; /* of the whole list */
    struct tarn_graph *begun;      /* by the first transforms, with the padding of `begun_with` */
    enum tarn_group_padding begun_with;
    struct tarn_assign_report assigned;
    struct tarn_outcome best;
    bool is_any;                          /* there is a best one */
    bool tries_kept;                      /* the order that came in, after the candidate before */
    struct tarn_reorder_report reordered; /* by that candidate */
};

/* ---- Comparing ---- */

/* The smallest footprint that a refusal names; UINT64_MAX: none. */
static uint64_t refused_footprint(const struct tarn_outcome *outcome)
{
    if (outcome->budgeted.footprint > 0) return outcome->budgeted.footprint;
    return outcome->needed > 0 ? outcome->needed : UINT64_MAX;
}

static uint64_t footprint_of(const struct tarn_outcome *outcome)
{
    return outcome->made.plan ? tarn_plan_footprint(outcome->made.plan)
                              : outcome->budgeted.footprint;
}

/* Before it was known whether it fits. */
static bool was_ended(const struct tarn_outcome *outcome)
{
    return outcome->status != TARN_OK && outcome->status != TARN_DOES_NOT_FIT;
}

/* Storages with fixed offsets cannot be placed. Another candidate may have a plan. */
static bool is_impossible(const struct tarn_outcome *outcome)
{
    return outcome->status == TARN_BAD_INPUT;
}

static bool is_better(const struct tarn_outcome *a, const struct tarn_outcome *b)
{
    if ((a->status == TARN_OK) != (b->status == TARN_OK)) return a->status == TARN_OK;
    if (is_impossible(a) || is_impossible(b)) return !is_impossible(a);
    if (was_ended(a) || was_ended(b)) return was_ended(a);
    if (a->status != TARN_OK) return refused_footprint(a) < refused_footprint(b);
    if (a->budgeted.time_ns != b->budgeted.time_ns)
        return a->budgeted.time_ns < b->budgeted.time_ns;
    return footprint_of(a) < footprint_of(b);
}

/* Nothing in the order that came in can take less time than this: work is added, not taken away. */
static bool takes_no_time(const struct tarn_graph *graph, const struct tarn_outcome *outcome)
{
    if (tarn_graph_has_implementations(graph)) return false;
    uint64_t before = outcome->budgeted.time_before_ns,
             given = outcome->reordered.critical_path_before_ns;
    return outcome->budgeted.time_ns <= (given > 0 && given < before ? given : before);
}

/* ---- The choice of candidates ---- */

/* The given order, after a found order. */
static bool may_kept_order_gain(const struct search *search, const struct tarn_outcome *other)
{
    bool is_over = tarn_deadline_is_over(&search->deadline);
    if (!other->has_other_order) return false; /* it has been tried */
    if (is_impossible(other)) return true;
    if (!search->settings->plan.budget)
        return other->status == TARN_DOES_NOT_FIT && tarn_has_other_capacity(search->source);
    if (other->status == TARN_DOES_NOT_FIT) return true;
    if (other->status == TARN_DEADLINE) return !is_over;
    return !takes_no_time(search->source, other) && !is_over;
}

/* Fewer waits make no bound lower. */
static bool is_at_bound(const struct tarn_outcome *outcome)
{
    const struct tarn_plan *plan = outcome->made.plan;
    return plan && plan->footprint <= plan->claim.bound;
}

/* Waits that cost time are added only as far as the requested capacity takes them. */
static bool needs_no_waits(const struct search *search)
{
    return search->settings->plan.couple && search->settings->plan.capacity > 0 &&
           search->best.status == TARN_OK;
}

static bool may_gain(const struct search *search, const struct tarn_pipeline_candidate *candidate)
{
    const struct tarn_outcome *best = &search->best;
    if (candidate->keeps_order) return search->tries_kept;
    if (!search->is_any) return true;
    bool is_settled = needs_no_waits(search);
    if (candidate->merges_first && is_settled) return false;
    if (candidate->slowdown < search->settings->couple.slowdown_max &&
        (is_settled || is_at_bound(best)))
        return false;
    if (best->status == TARN_DEADLINE) return !tarn_deadline_is_over(&search->deadline);
    if (best->status != TARN_OK && best->status != TARN_DOES_NOT_FIT && !is_impossible(best))
        return false;
    bool gives_up = candidate->without_waits || candidate->without_merges;
    return !gives_up || best->status != TARN_OK || !takes_no_time(search->source, best);
}

static bool has_groups(const struct tarn_graph *graph)
{
    for (uint32_t g = 0; g < graph->groups_count; g++)
        if (graph->groups[g].storages_count > 1) return true;
    return false;
}

static bool may_merge(const struct tarn_graph *graph, const struct tarn_in_place_options *options)
{
    for (uint32_t v = 0; v < graph->ops_count; v++)
        if (tarn_extra(&graph->ops[v])->inplace_count > 0) return true;
    return options->kinds_count > 0;
}

/* With another order and, if one is asked for, with the one that came in. */
static size_t add_orders(struct tarn_pipeline_candidate *list, size_t count,
                         struct tarn_pipeline_candidate candidate,
                         const struct tarn_plan_options *plan)
{
    list[count++] = candidate;
    candidate.keeps_order = true;
    if (plan->reorder) list[count++] = candidate;
    return count;
}

/* In place where all implementations can be chosen and, if that is another choice, over all that
 * the pairs allow. */
static size_t add_merges(struct tarn_pipeline_candidate *list, size_t count,
                         struct tarn_pipeline_candidate candidate,
                         const struct tarn_plan_options *plan, bool pairs)
{
    count = add_orders(list, count, candidate, plan);
    candidate.merges_paired = true;
    return pairs ? add_orders(list, count, candidate, plan) : count;
}

static size_t list_candidates(const struct search *search, struct tarn_pipeline_candidate *list)
{
    const struct tarn_plan_options *plan = &search->settings->plan;
    bool frees = plan->budget && (plan->couple || plan->in_place);
    bool merges_early = plan->reorder && plan->in_place && !plan->budget && search->plan &&
                        may_merge(search->source, &search->settings->in_place);
    bool chooses = plan->budget || plan->offload;
    bool pairs = chooses && plan->in_place && tarn_in_place_is_choice(search->source);
    bool open = plan->pad_groups == TARN_GROUPS_SMALLER && search->plan;
    enum tarn_group_padding paddings[2] = {plan->pad_groups, TARN_GROUPS_PADDED};
    if (open) paddings[0] = has_groups(search->source) ? TARN_GROUPS_EXACT : TARN_GROUPS_AS_GIVEN;
    double slowdown = plan->couple ? search->settings->couple.slowdown_max : 0;
    bool slower = slowdown > 0 && !plan->budget && search->plan;
    size_t count = 0, paddings_count = open && paddings[0] == TARN_GROUPS_EXACT ? 2 : 1;
    for (size_t p = 0; p < paddings_count; p++) {
        struct tarn_pipeline_candidate candidate = {.padding = paddings[p], .slowdown = slowdown};
        count = add_merges(list, count, candidate, plan, pairs);
        candidate.slowdown = 0;
        if (slower) count = add_orders(list, count, candidate, plan);
        candidate.slowdown = slowdown;
        candidate.without_waits = frees;
        if (plan->budget && plan->couple && plan->in_place)
            count = add_merges(list, count, candidate, plan, pairs);
        candidate.without_merges = frees;
        candidate.merges_first = merges_early;
        if (frees || merges_early) count = add_orders(list, count, candidate, plan);
    }
    assert(count <= CANDIDATES_MAX);
    return count;
}

/* ---- Trying ---- */

/* It fits, or not, or was ended before that was known. */
static bool is_answer(enum tarn_status status)
{
    return status == TARN_OK || status == TARN_DOES_NOT_FIT || status == TARN_BAD_INPUT ||
           status == TARN_DEADLINE || status == TARN_INTERRUPTED;
}

/* Takes the outcome over. */
static enum tarn_status offer(struct search *search, struct tarn_outcome *outcome,
                              struct tarn_error *error)
{
    enum tarn_status status = is_answer(outcome->status) ? TARN_OK : outcome->status;
    bool is_taken = status == TARN_OK && (!search->is_any || is_better(outcome, &search->best));
    if (status != TARN_OK && error) *error = outcome->error;
    if (search->is_any) tarn_budget_join_floors(&search->best.refusal, &outcome->refusal);
    if (is_taken && search->is_any) tarn_outcome_finish(&search->best);
    if (is_taken)
        search->best = *outcome;
    else
        tarn_outcome_finish(outcome);
    search->is_any |= is_taken;
    return status;
}

static enum tarn_status begin(struct search *search,
                              const struct tarn_pipeline_candidate *candidate,
                              struct tarn_error *error)
{
    if (search->begun && search->begun_with == candidate->padding) return TARN_OK;
    tarn_graph_destroy(search->begun);
    search->begun = NULL;
    search->begun_with = candidate->padding;
    return tarn_pipeline_begin(search->source, search->settings, candidate, &search->assigned,
                               &search->begun, error);
}

static enum tarn_status try_candidate(struct search *search,
                                      struct tarn_pipeline_candidate *candidate,
                                      struct tarn_error *error)
{
    const struct tarn_deadline deadline = tarn_deadline_in(NULL, candidate->seconds);
    enum tarn_status status = begin(search, candidate, error);
    if (status != TARN_OK) return status;
    struct tarn_outcome outcome = {.assigned = search->assigned};
    if (candidate->keeps_order) outcome.reordered = search->reordered;
    if (candidate->keeps_order) tarn_joint_tell_kept(&outcome.reordered);
    candidate->seconds = tarn_deadline_left(&deadline);
    tarn_pipeline_end(search->source, search->begun, search->settings, candidate, search->plan,
                      &outcome);
    search->tries_kept = !candidate->keeps_order && may_kept_order_gain(search, &outcome);
    search->reordered = outcome.reordered;
    return offer(search, &outcome, error);
}

/* The reports that the caller wants. Without a plan they have no rows, which would have to be
 * freed. */
static void give_reports(const struct tarn_plan_settings *settings, struct tarn_outcome *outcome)
{
#define GIVE(options, report_of)                                                         \
    tarn_report_give(settings->options.report, settings->options.report_size, report_of, \
                     sizeof *(report_of))
    if (outcome->status != TARN_OK) {
        tarn_free(outcome->coupled.rows);
        outcome->coupled.rows = NULL;
        outcome->coupled.rows_count = 0;
    }
    GIVE(assign, &outcome->assigned);
    GIVE(reorder, &outcome->reordered);
    GIVE(in_place, &outcome->merged);
    GIVE(budget, &outcome->budgeted);
    GIVE(offload, &outcome->offloaded);
    GIVE(couple, &outcome->coupled);
#undef GIVE
    if (settings->couple.report)
        outcome->coupled = (struct tarn_couple_report){0}; /* its rows are the caller's */
}

enum tarn_status tarn_candidates_run(struct tarn_graph *source,
                                     const struct tarn_plan_settings *settings,
                                     tarn_pipeline_plan *plan, struct tarn_planned *result,
                                     struct tarn_error *error)
{
    struct tarn_pipeline_candidate list[CANDIDATES_MAX];
    struct search search = {.source = source, .settings = settings, .plan = plan};
    search.deadline =
        tarn_deadline_in((const atomic_bool *)settings->plan.stop, settings->plan.seconds);
    *result = (struct tarn_planned){0};
    enum tarn_status status = TARN_OK;
    size_t count = list_candidates(&search, list), orders = settings->plan.reorder ? 2 : 1;
    for (size_t k = 0; k < count && status == TARN_OK; k++) {
        if (!may_gain(&search, &list[k])) {
            search.tries_kept = false;
            continue;
        }
        double share = list[k].keeps_order ? 1 : (double)((count - k) / orders);
        list[k].seconds = tarn_deadline_left(&search.deadline) / share;
        status = try_candidate(&search, &list[k], error);
    }
    tarn_graph_destroy(search.begun);
    if (status == TARN_OK) {
        status = search.best.status;
        if (error) *error = search.best.error;
        if (status == TARN_DOES_NOT_FIT && search.best.refusal.floor > 0) {
            tarn_error_clear(error);
            tarn_budget_refuse(&search.best.refusal, error); /* with the lowest floor of all */
        }
        give_reports(settings, &search.best);
    }
    if (status == TARN_OK) {
        *result = search.best.made;
        search.best.made = (struct tarn_planned){0};
    }
    tarn_outcome_finish(&search.best);
    return status;
}

/* ---- A budget as a share of the footprint without it ---- */

/* No capacity of the graph's memory spaces counts: the budget is there to keep to it. */
static enum tarn_status plan_unlimited(const struct tarn_plan_settings *settings,
                                       const struct tarn_pipeline_candidate *candidate,
                                       struct tarn_planned *made, struct tarn_error *error)
{
    (void)candidate;
    if (made->plan && made->plan->alignment == settings->plan.alignment) return TARN_OK;
    tarn_plan_destroy(made->plan);
    made->plan = NULL;
    return tarn_plan_make(made->graph, &settings->plan, TARN_ALL_UNLIMITED, &made->plan, error);
}

enum tarn_status tarn_candidates_settle_share(struct tarn_graph *source,
                                              struct tarn_plan_settings *settings,
                                              struct tarn_error *error)
{
    struct tarn_plan_settings alone = *settings;
    struct tarn_planned made;
    if (!settings->plan.budget || !tarn_budget_has_share(&settings->budget)) return TARN_OK;
    enum tarn_status status = tarn_budget_check_share(&settings->budget, error);
    if (status != TARN_OK) return status;
    alone.plan.budget = NULL;
    alone.plan.offload = NULL;
    alone.plan.capacity = 0;
    alone.plan.seconds = 0;
    alone.plan.progress = NULL;
    alone.assign.report = NULL;
    alone.reorder.report = NULL;
    alone.couple.report = NULL;
    alone.in_place.report = NULL;
    status = tarn_candidates_run(source, &alone, plan_unlimited, &made, error);
    if (status == TARN_OK) tarn_budget_settle_share(&settings->budget, made.plan);
    tarn_planned_finish(&made);
    return status;
}
