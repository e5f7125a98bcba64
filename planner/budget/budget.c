/* Keeps the arena within a budget: chooses what to keep, what to compute again, and by which
 * implementation. The search (transform/budget) knows the bytes alive at once when ops run one by
 * one. A plan may need more bytes, for contiguous groups and for streams side by side. So each
 * answer is built and placed without any search (attempt.h), and the search is repeated for another
 * peak (target.c). The result is the fastest graph whose plan fits, with that plan. If none fits,
 * the refusal reports the smallest footprint found and a lower bound. Sources: A. Shah et al.,
 * "Memory optimization for deep networks" (MONeT); docs/how-it-works.md, "Transforms". Cost: some
 * searches and plans. */
#include "budget.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "attempt.h"
#include "planner/transform/budget/budget.h"
#include "planner/transform/heartbeat.h"
#include "planner/transform/interleave.h"
#include "planner/transform/recipe.h"
#include "planner/transform/release.h"
#include "streams/base/deadline.h"
#include "streams/base/error.h"
#include "streams/base/options.h"
#include "streams/graph/report.h"

/* ---- Saying that it is impossible ---- */

static bool is_stopped(const struct tarn_budgeting *budgeting)
{
    return budgeting->deadline.stop &&
           atomic_load_explicit(budgeting->deadline.stop, memory_order_relaxed);
}

/* The caller's stop, or the deadline, has ended it before anything fitted. */
static enum tarn_status give_up(const struct tarn_budgeting *budgeting,
                                const struct tarn_attempt *best)
{
    bool late = !is_stopped(budgeting);
    enum tarn_status status = tarn_error_set(
        budgeting->error, late ? TARN_DEADLINE : TARN_INTERRUPTED,
        "%s before a way to keep to the budget of %s was found; the "
        "least footprint so far is %s",
        late ? "the time was over" : "interrupted", tarn_bytes_phrase(budgeting->asked).text,
        tarn_bytes_phrase(best->footprint).text);
    return tarn_error_found(budgeting->error, status, best->footprint);
}

/* Whatever the budget is: says which other memory space is too small. */
static enum tarn_status refuse_other_space(const struct tarn_budgeting *budgeting,
                                           const struct tarn_attempt *best)
{
    struct tarn_plan *plan;
    enum tarn_status status = tarn_budgeting_plan(budgeting, best->made.graph, 0, &plan);
    assert(status != TARN_OK);
    return status;
}

/* Raises the floor to the end of the last storage with a fixed offset: every choice runs its
 * producer, and the first run keeps the tensor at its offset. Returns the storage; TARN_NONE: none
 * ends above the floor. */
static uint32_t raise_floor(const struct tarn_budgeting *budgeting, uint64_t *floor)
{
    const struct tarn_graph *graph = budgeting->graph;
    uint32_t last = TARN_NONE;
    for (uint32_t a = 0; a < graph->planned_count; a++) {
        uint64_t alignment = budgeting->model.alignment;
        uint64_t end =
            tarn_plan_fixed_end(graph, a, tarn_storage_reserved(graph, a, alignment), alignment);
        if (graph->storages[a].space != 0 || end <= *floor) continue;
        *floor = end;
        last = a;
    }
    return last;
}

enum tarn_status tarn_budget_refuse(const struct tarn_budget_refusal *refusal,
                                    struct tarn_error *error)
{
    tarn_error_set(error, TARN_DOES_NOT_FIT,
                   "the budget of %s%s cannot be met: the least footprint found is %s; no choice "
                   "can come below %s, %s",
                   tarn_bytes_phrase(refusal->asked).text,
                   refusal->is_lowered ? ", all that the memory space's capacity leaves," : "",
                   tarn_bytes_phrase(refusal->least).text, tarn_bytes_phrase(refusal->floor).text,
                   refusal->of);
    if (error && refusal->op != TARN_NONE) error->op = refusal->op;
    if (error && refusal->tensor != TARN_NONE) error->tensor = refusal->tensor;
    return tarn_error_found(error, TARN_DOES_NOT_FIT, refusal->least);
}

static void take_floor(struct tarn_budget_refusal *to, const struct tarn_budget_refusal *from)
{
    to->floor = from->floor;
    memcpy(to->of, from->of, sizeof to->of);
    to->op = from->op;
    to->tensor = from->tensor;
}

void tarn_budget_join_floors(struct tarn_budget_refusal *a, struct tarn_budget_refusal *b)
{
    if (a->floor == 0 || b->floor == 0) return;
    if (a->floor < b->floor)
        take_floor(b, a);
    else
        take_floor(a, b);
}

/* fixed: the storage whose fixed offset the floor is of or, if it is TARN_NONE, op v's needs. */
static void describe_floor(const struct tarn_budgeting *budgeting, uint32_t fixed, uint32_t v,
                           struct tarn_budget_refusal *refusal)
{
    const struct tarn_graph *graph = budgeting->graph;
    refusal->op = fixed == TARN_NONE ? v : TARN_NONE;
    refusal->tensor = fixed == TARN_NONE ? TARN_NONE : graph->storages[fixed].tensor;
    if (fixed != TARN_NONE)
        snprintf(refusal->of, sizeof refusal->of, "at which %s ends, whose offset is fixed",
                 tarn_storage_label(graph, fixed).text);
    else
        snprintf(refusal->of, sizeof refusal->of, "which %s needs at once%s",
                 tarn_op_label(graph, v).text,
                 budgeting->reorder ? "" : ", with what must be kept beside it");
}

static enum tarn_status refuse(struct tarn_budgeting *budgeting, const struct tarn_attempt *best,
                               struct tarn_budget_refusal *refusal)
{
    uint64_t floor;
    uint32_t at;
    enum tarn_recompute_list list = budgeting->reorder ? TARN_LIST_ANY : TARN_LIST_OF_STREAMS;
    budgeting->ignores_capacity = true;
    if (best->footprint == UINT64_MAX) return refuse_other_space(budgeting, best);
    if (tarn_recompute_floor(&budgeting->model, list, &floor, &at) != TARN_OK) {
        tarn_error_no_memory(budgeting->error);
        return TARN_SYSTEM;
    }
    uint32_t fixed = raise_floor(budgeting, &floor);
    *refusal = (struct tarn_budget_refusal){.asked = budgeting->asked,
                                            .is_lowered = budgeting->is_lowered,
                                            .least = best->footprint,
                                            .floor = floor};
    describe_floor(budgeting, fixed, budgeting->model.order[at], refusal);
    return tarn_budget_refuse(refusal, budgeting->error);
}

/* The caller, who goes on without such a list, wants no lower bound. */
static enum tarn_status refuse_list(const struct tarn_budgeting *budgeting)
{
    return tarn_error_set(budgeting->error, TARN_DOES_NOT_FIT, "no list that keeps to %s was found",
                          tarn_bytes_phrase(budgeting->asked).text);
}

/* ---- The transform ---- */

/* Returns the classes that a method may use; a method that only names classes becomes the
 * search. */
static unsigned take_classes(enum tarn_budget_method *method)
{
    switch (*method) {
    case TARN_BUDGET_CHEN: return TARN_BUDGET_RECOMPUTE;
    case TARN_BUDGET_CHECKMATE: *method = TARN_BUDGET_SEARCH; return TARN_BUDGET_RECOMPUTE;
    case TARN_BUDGET_GIST:
        *method = TARN_BUDGET_SEARCH;
        return TARN_BUDGET_ALL & ~TARN_BUDGET_RECOMPUTE;
    case TARN_BUDGET_OFFLOAD: *method = TARN_BUDGET_KEEP; return TARN_BUDGET_ALL;
    default: return TARN_BUDGET_ALL;
    }
}

static enum tarn_status take_options(struct tarn_budgeting *budgeting,
                                     const struct tarn_budget_options *options, unsigned left_out)
{
    budgeting->options = *options;
    budgeting->classes = take_classes(&budgeting->options.method) & ~left_out;
    if (budgeting->options.known_only) budgeting->rules |= TARN_REPEAT_KNOWN;
    if (budgeting->options.budget == 0) budgeting->options.budget = TARN_BUDGET_UNLIMITED;
    return tarn_options_alignment(&budgeting->options.alignment, budgeting->error);
}

static enum tarn_status init(struct tarn_budgeting *budgeting)
{
    struct tarn_region *region = &budgeting->region;
    enum tarn_status status =
        tarn_recompute_model_init(&budgeting->model, region, budgeting->graph,
                                  budgeting->options.alignment, budgeting->rules);
    if (status != TARN_OK) return status;
    tarn_recompute_model_restrict(&budgeting->model, budgeting->classes);
    budgeting->evaluator = tarn_evaluator_create(region, &budgeting->model);
    if (!budgeting->evaluator) return TARN_SYSTEM;
    bool searches = budgeting->options.method == TARN_BUDGET_SEARCH;
    if (!searches || !(budgeting->classes & TARN_BUDGET_RECOMPUTE))
        budgeting->descent.stage = TARN_DESCENT_ROUNDS;
    if (tarn_policy_init(&budgeting->plain, region, &budgeting->model) != TARN_OK)
        return TARN_SYSTEM;
    if (tarn_policy_init(&budgeting->descent.policy, region, &budgeting->model) != TARN_OK)
        return TARN_SYSTEM;
    return tarn_policy_init(&budgeting->policy, region, &budgeting->model);
}

static void finish(struct tarn_budgeting *budgeting)
{
    tarn_planned_finish(&budgeting->descent.smallest.made);
    tarn_region_finish(&budgeting->fixed_region);
    tarn_region_finish(&budgeting->region);
}

/* Footprints are multiples of the alignment, so that budgets which differ by less are one. */
static void set_budget(struct tarn_budgeting *budgeting, uint64_t budget)
{
    budgeting->asked = budget;
    if (budget != TARN_BUDGET_UNLIMITED) budget -= budget % budgeting->model.alignment;
    budgeting->options.budget = budget;
}

/* A budget limits the arena of the first memory space, whose capacity, if it has one, includes the
 * persistent part. */
static void keep_to_capacity(struct tarn_budgeting *budgeting, const struct tarn_plan *plan)
{
    uint64_t left = tarn_budgeting_room(plan, 0);
    if (budgeting->ignores_capacity) return;
    budgeting->is_lowered = left < budgeting->asked;
    if (budgeting->is_lowered) set_budget(budgeting, left);
}

static enum tarn_status place_first(struct tarn_budgeting *budgeting)
{
    struct tarn_plan *plan;
    set_budget(budgeting, budgeting->options.budget);
    enum tarn_status status = tarn_budgeting_plan_quickly(budgeting, budgeting->graph, &plan);
    if (status != TARN_OK) return status;
    budgeting->footprint_before = tarn_plan_footprint(plan);
    keep_to_capacity(budgeting, plan);
    tarn_plan_destroy(plan);
    return TARN_OK;
}

static enum tarn_status begin(struct tarn_budgeting *budgeting,
                              const struct tarn_budget_options *options, unsigned left_out)
{
    tarn_error_clear(budgeting->error);
    enum tarn_status status = take_options(budgeting, options, left_out);
    if (status != TARN_OK) return status;
    status = init(budgeting);
    if (status == TARN_BAD_INPUT)
        return tarn_error_set(budgeting->error, status,
                              "the planned tensors, each time that an op writes them, need more "
                              "than 2^64 bytes at alignment %llu; use a smaller alignment",
                              (unsigned long long)budgeting->options.alignment);
    if (status != TARN_OK) return tarn_error_no_memory(budgeting->error);
    const struct tarn_transform_control *control = budgeting->options.control;
    if (control)
        budgeting->deadline =
            tarn_deadline_in((const atomic_bool *)control->stop, control->seconds);
    status = place_first(budgeting);
    if (status == TARN_OK)
        status = tarn_budgeting_time(budgeting, budgeting->graph, &budgeting->before_ns);
    return status;
}

static void give_report(const struct tarn_budgeting *budgeting, const struct tarn_attempt *attempt,
                        void *to, size_t size)
{
    struct tarn_budget_report report = attempt->report;
    report.evaluations = budgeting->evaluations;
    report.budget = budgeting->asked;
    report.footprint_before = budgeting->footprint_before;
    report.footprint = attempt->footprint;
    report.time_before_ns = budgeting->before_ns;
    report.time_ns = attempt->time_ns;
    tarn_report_give(to, size, &report, sizeof report);
}

/* ---- One method, and all of them ---- */

/* The result of a method. */
struct answer {
    enum tarn_status status;
    struct tarn_planned made; /* of a refusal: the graph of the smallest footprint */
    struct tarn_budget_report report;
    bool near_least;                    /* the smallest footprint had to be searched for */
    bool launches;                      /* what communicates may run again, ahead of its readers */
    struct tarn_budget_refusal refusal; /* if the budget is refused */
    struct tarn_error error;
};

/* The question that every method gets. */
struct question {
    struct tarn_graph *graph;
    struct tarn_budget_options options;
    unsigned left_out;
    bool is_brief;    /* little search: the caller asks several such questions */
    bool is_list;     /* only what the list has alive counts: nothing is placed */
    bool is_thorough; /* a placement takes as long as without a budget */
    const struct tarn_plan_options *planning;
    struct tarn_deadline deadline;
};

/* graph: of the question, or the same with another list; rules: a sum of enum tarn_repeat_rule. */
static void ask(const struct question *question, struct tarn_graph *graph,
                enum tarn_budget_method method, unsigned rules, struct answer *answer)
{
    *answer = (struct answer){.status = TARN_OK};
    struct tarn_budgeting budgeting = {.graph = graph,
                                       .rules = rules,
                                       .planning = question->planning,
                                       .is_brief = question->is_brief,
                                       .is_thorough = question->is_thorough,
                                       .ignores_capacity = question->is_list,
                                       .error = &answer->error};
    struct tarn_attempt best = {0};
    struct tarn_budget_options options = question->options;
    struct tarn_transform_control control = {.struct_size = sizeof control};
    if (options.control) control = *options.control;
    if (options.control) options.control = &control;
    control.seconds = tarn_deadline_left(&question->deadline);
    options.method = method;
    budgeting.reorder = question->planning ? question->planning->reorder : NULL;
    enum tarn_status status = begin(&budgeting, &options, question->left_out);
    if (status == TARN_OK && question->is_list)
        status = tarn_budgeting_search_list(&budgeting, &best);
    else if (status == TARN_OK)
        status = tarn_budgeting_search(&budgeting, &best);
    if (status == TARN_OK) give_report(&budgeting, &best, &answer->report, sizeof answer->report);
    if (status == TARN_OK && !tarn_attempt_fits(&best, budgeting.options.budget)) {
        if (tarn_deadline_is_over(&budgeting.deadline))
            status = give_up(&budgeting, &best);
        else if (question->is_list)
            status = refuse_list(&budgeting);
        else
            status = refuse(&budgeting, &best, &answer->refusal);
    }
    assert(status != TARN_OK || question->is_list || tarn_planned_is_valid(&best.made));
    answer->status = status;
    answer->near_least = budgeting.smallest > 0;
    answer->launches = budgeting.model.launches_count > 0;
    if (status == TARN_OK || status == TARN_DOES_NOT_FIT)
        answer->made = best.made;
    else
        tarn_planned_finish(&best.made);
    finish(&budgeting);
}

static bool is_refusal(const struct answer *answer) { return answer->status == TARN_DOES_NOT_FIT; }

/* An answer that fits is better than a refusal; of two that fit the faster one, then the smaller
 * one; of refusals the one that reports the smaller footprint. Any other status ended before its
 * answer was known. */
static bool is_better(const struct answer *a, const struct answer *b)
{
    if (a->status != TARN_OK && !is_refusal(a)) return false;
    if (a->status != b->status) return a->status == TARN_OK || b->status != TARN_OK;
    if (is_refusal(a)) return a->report.footprint < b->report.footprint;
    if (a->report.time_ns != b->report.time_ns) return a->report.time_ns < b->report.time_ns;
    return a->report.footprint < b->report.footprint;
}

/* Replaces the best answer by the other one if that is better. */
static void take_better(struct answer *best, struct answer *other)
{
    if (is_refusal(best) && is_refusal(other))
        tarn_budget_join_floors(&best->refusal, &other->refusal);
    if (is_better(other, best)) {
        struct answer worse = *best;
        uint64_t evaluations = best->report.evaluations + other->report.evaluations;
        *best = *other;
        best->report.evaluations = evaluations;
        *other = worse;
    } else {
        best->report.evaluations += other->report.evaluations;
    }
    tarn_planned_finish(&other->made);
}

/* The same ops in another order. Takes the graph, whose origins are ops of the question's. */
static void ask_in_order(const struct question *question, struct tarn_graph *graph,
                         struct answer *answer)
{
    ask(question, graph, TARN_BUDGET_SEARCH, 0, answer);
    if (answer->made.graph && answer->made.graph != graph &&
        tarn_transform_compose(graph, answer->made.graph, &answer->error) != TARN_OK) {
        tarn_planned_finish(&answer->made);
        answer->status = TARN_SYSTEM;
    }
    if (is_refusal(answer) && answer->error.op < graph->ops_count)
        answer->refusal.op = answer->error.op = graph->ops[answer->error.op].origin;
    tarn_graph_destroy(graph);
}

/* Finds another sequence in which far fewer bytes are alive, unless the graph fits unchanged. NULL:
 * there is none. */
static enum tarn_status find_interleaved(const struct question *question,
                                         struct tarn_graph **result, struct tarn_error *error)
{
    struct tarn_budgeting budgeting = {
        .options = question->options, .planning = question->planning, .error = error};
    struct tarn_plan *plan;
    *result = NULL;
    if (question->graph->streams_count < 2) return TARN_OK;
    enum tarn_status status = tarn_options_alignment(&budgeting.options.alignment, error);
    if (status == TARN_OK) status = tarn_budgeting_plan_quickly(&budgeting, question->graph, &plan);
    if (status != TARN_OK) return status;
    bool fits = tarn_plan_footprint(plan) <= budgeting.options.budget;
    tarn_plan_destroy(plan);
    if (fits || budgeting.options.budget == 0) return TARN_OK;
    return tarn_graph_interleave(question->graph, budgeting.options.alignment, result, error);
}

/* Another list may hide when its streams communicate. Where what communicates may run again and the
 * answer takes time, the graph's own list is searched, too. Returns whether it was. */
static bool ask_own_list(const struct question *question, struct answer *best)
{
    struct answer other;
    bool takes_time = is_refusal(best) || best->report.time_ns > best->report.time_before_ns;
    if (!best->launches || !takes_time || tarn_deadline_is_over(&question->deadline)) return false;
    ask(question, question->graph, TARN_BUDGET_SEARCH, 0, &other);
    take_better(best, &other);
    return true;
}

/* An order that is good without a budget may be bad for what a small one has alive: where much runs
 * again, fewer results of the forward pass are kept, and what waits in the backward pass counts. So
 * the search is repeated where ops that free bytes run as early as they can. A refusal is repeated,
 * too, so that no answer is below the least that it reports. */
static void ask_released(const struct question *question, struct answer *best)
{
    struct answer other;
    struct tarn_graph *released = NULL;
    uint64_t alignment = question->options.alignment, time_before = best->report.time_before_ns,
             footprint_before = best->report.footprint_before;
    bool reorders = question->planning && question->planning->reorder;
    bool takes_time = is_refusal(best) || best->report.time_ns > time_before;
    if (!reorders || !takes_time || tarn_deadline_is_over(&question->deadline)) return;
    struct tarn_error error;
    enum tarn_status status = tarn_options_alignment(&alignment, &error);
    if (status == TARN_OK)
        status = tarn_graph_release_early(question->graph, alignment, &released, &error);
    if (status != TARN_OK) {
        tarn_planned_finish(&best->made);
        best->status = status;
        best->error = error;
    }
    if (!released) return;
    ask_in_order(question, released, &other);
    take_better(best, &other);
    best->report.time_before_ns = time_before;
    best->report.footprint_before = footprint_before;
}

/* In a larger graph chains that take most of both passes are of no use, and there are too many. */
enum { REPEAT_ANY_OPS = 256 };

/* Asks with every op that can run again, even if that is not likely to pay. */
static void ask_any(const struct question *question, struct answer *best)
{
    struct answer other;
    if (question->graph->ops_count > REPEAT_ANY_OPS || tarn_deadline_is_over(&question->deadline))
        return;
    ask(question, question->graph, TARN_BUDGET_SEARCH, TARN_REPEAT_ANY, &other);
    take_better(best, &other);
}

/* What the graph itself takes without a budget keeps to that as a budget. */
static void ask_thoroughly(const struct question *question, struct answer *best)
{
    struct question thorough = *question;
    struct answer other;
    if (!is_refusal(best) || tarn_deadline_is_over(&question->deadline)) return;
    thorough.is_thorough = true;
    ask(&thorough, question->graph, TARN_BUDGET_KEEP, 0, &other);
    take_better(best, &other);
}

/* The search is no proof that nothing keeps to a budget: before it is refused, or an answer as
 * small as it comes is given, every other method is asked. interleaved: the search has looked only
 * at another list than the graph's. */
static void ask_others(const struct question *question, bool interleaved, struct answer *best)
{
    static const enum tarn_budget_method others[] = {TARN_BUDGET_SEARCH, TARN_BUDGET_KEEP,
                                                     TARN_BUDGET_CHEN, TARN_BUDGET_CHECKMATE,
                                                     TARN_BUDGET_GIST};
    bool choices = tarn_graph_has_implementations(question->graph);
    for (size_t i = !interleaved; i < sizeof others / sizeof *others; i++) {
        bool searches = others[i] == TARN_BUDGET_CHECKMATE || others[i] == TARN_BUDGET_GIST;
        struct answer other;
        if (tarn_deadline_is_over(&question->deadline)) return;
        if (searches && !choices) continue; /* all the same, or nothing */
        ask(question, question->graph, others[i], 0, &other);
        take_better(best, &other);
    }
    ask_any(question, best);
    ask_thoroughly(question, best);
}

/* If ops have faster implementations that need room, a plan for a smaller budget may be the faster
 * one: its recomputations make the room. */
static void ask_for_less(const struct question *question, struct answer *best)
{
    uint64_t asked = best->report.budget, most = best->report.footprint;
    if (best->status != TARN_OK || question->graph->ops_count > REPEAT_ANY_OPS) return;
    if (best->report.footprint_before < most) most = best->report.footprint_before;
    for (uint64_t part = 15; part >= 12 && !tarn_deadline_is_over(&question->deadline); part--) {
        struct question less = *question;
        struct answer other;
        less.options.budget = most / 16 * part;
        if (less.options.budget == 0) break; /* 0 would ask for no budget */
        ask(&less, question->graph, TARN_BUDGET_SEARCH, 0, &other);
        take_better(best, &other);
    }
    best->report.budget = asked;
}

/* Asks the method, the search in an order in which far fewer bytes are alive, if there is one. An
 * error: that could not be looked for. *interleaved: only that order was searched. */
static enum tarn_status ask_first(const struct question *question, bool searches,
                                  struct answer *first, bool *interleaved, struct tarn_error *error)
{
    struct tarn_graph *other = NULL;
    enum tarn_status status = TARN_OK;
    if (searches) status = find_interleaved(question, &other, error);
    if (status != TARN_OK) return status;
    *interleaved = other != NULL;
    if (other) ask_in_order(question, other, first);
    if (other && first->status == TARN_BAD_INPUT) *interleaved = false; /* it is no choice */
    if (!*interleaved) ask(question, question->graph, question->options.method, 0, first);
    return TARN_OK;
}

static bool is_known(const struct answer *answer)
{
    return answer->status == TARN_OK || is_refusal(answer);
}

/* Asks whatever may have a better answer than the search. */
static void ask_more(const struct question *question, bool interleaved, struct answer *best)
{
    bool near_least = best->near_least;
    if (question->is_brief || !is_known(best)) return;
    if (interleaved && ask_own_list(question, best)) interleaved = false;
    if (question->is_list) return;
    ask_released(question, best);
    if (is_known(best) && near_least)
        ask_others(question, interleaved, best);
    else if (is_known(best) && tarn_graph_has_implementations(question->graph))
        ask_for_less(question, best);
}

/* *result: as in tarn_budgeting_look. */
static enum tarn_status run(struct question *question, struct tarn_planned *result,
                            struct tarn_budget_refusal *refusal, struct tarn_error *error)
{
    struct answer best;
    bool interleaved,
        searches = question->options.method == TARN_BUDGET_SEARCH && question->left_out == 0;
    *result = (struct tarn_planned){0};
    tarn_error_clear(error);
    const struct tarn_transform_control *control = question->options.control;
    if (control)
        question->deadline = tarn_deadline_in((const atomic_bool *)control->stop, control->seconds);
    enum tarn_status status = ask_first(question, searches, &best, &interleaved, error);
    if (status != TARN_OK) return status;
    if (searches) ask_more(question, interleaved, &best);
    if (is_known(&best) || best.report.footprint_before > 0)
        tarn_report_give(question->options.report, question->options.report_size, &best.report,
                         sizeof best.report);
    *result = best.made;
    if (best.status != TARN_OK && error) *error = best.error;
    if (!is_refusal(&best) || best.refusal.floor == 0) return best.status;
    if (refusal) *refusal = best.refusal;
    tarn_error_clear(error);
    return tarn_budget_refuse(&best.refusal, error); /* with the lowest floor of all */
}

enum tarn_status tarn_budgeting_run(struct tarn_graph *graph,
                                    const struct tarn_budget_options *options, unsigned left_out,
                                    const struct tarn_plan_options *planning,
                                    struct tarn_planned *result,
                                    struct tarn_budget_refusal *refusal, struct tarn_error *error)
{
    struct question question = {
        .graph = graph, .options = *options, .left_out = left_out, .planning = planning};
    enum tarn_status status = run(&question, result, refusal, error);
    if (status != TARN_OK) tarn_planned_finish(result);
    return status;
}

enum tarn_status tarn_budgeting_look(struct tarn_graph *graph,
                                     const struct tarn_budget_options *options, bool is_brief,
                                     const struct tarn_plan_options *planning,
                                     struct tarn_planned *result, struct tarn_error *error)
{
    struct question question = {
        .graph = graph, .options = *options, .is_brief = is_brief, .planning = planning};
    return run(&question, result, NULL, error);
}

enum tarn_status tarn_budgeting_look_at_list(struct tarn_graph *graph,
                                             const struct tarn_budget_options *options,
                                             bool is_brief,
                                             const struct tarn_plan_options *planning,
                                             struct tarn_planned *result, struct tarn_error *error)
{
    struct question question = {.graph = graph,
                                .options = *options,
                                .is_brief = is_brief,
                                .is_list = true,
                                .planning = planning};
    return run(&question, result, NULL, error);
}

/* A caller's request: a graph, or the rows of a curve. */
struct call {
    struct tarn_graph *graph;
    struct tarn_budget_options options;
    struct tarn_transform_control control;
    struct tarn_planned planned;
    unsigned char *rows; /* as large as the caller knows them */
    size_t row_size, rows_count;
    struct tarn_error *error;
};

static enum tarn_status take_call(struct call *call, const struct tarn_budget_options *options)
{
    tarn_error_clear(call->error);
    enum tarn_status status = tarn_options_take(&call->options, sizeof call->options, options,
                                                "budget options", call->error);
    return status != TARN_OK
               ? status
               : tarn_control_take(&call->control, &call->options.control, call->error);
}

bool tarn_budget_has_share(const struct tarn_budget_options *options)
{
    return !(options->share >= 0 && options->share <= 0);
}

enum tarn_status tarn_budget_check_share(const struct tarn_budget_options *options,
                                         struct tarn_error *error)
{
    if (options->share > 0 && options->share <= 1) return TARN_OK;
    return tarn_error_set(error, TARN_USAGE,
                          "a share of %g is no budget: give one above 0 and up to 1, which is the "
                          "footprint without a budget",
                          options->share);
}

void tarn_budget_settle_share(struct tarn_budget_options *options, const struct tarn_plan *plan)
{
    uint64_t footprint = tarn_plan_footprint(plan);
    uint64_t bytes = (uint64_t)((double)footprint * options->share);
    if (bytes == 0) bytes = 1; /* 0 would be no budget */
    if (options->budget == 0 || bytes < options->budget) options->budget = bytes;
    options->share = 0;
}

/* The graph is planned as it is. */
static enum tarn_status settle_share(struct call *call)
{
    const struct tarn_transform_control *control = call->options.control;
    const struct tarn_plan_options given = {.struct_size = sizeof given,
                                            .alignment = call->options.alignment,
                                            .stop = control ? control->stop : NULL};
    struct tarn_plan_options options;
    struct tarn_plan *plan;
    enum tarn_status status = tarn_budget_check_share(&call->options, call->error);
    if (status == TARN_OK) status = tarn_plan_options_take(&options, &given, call->error);
    if (status == TARN_OK)
        status = tarn_plan_make(call->graph, &options, TARN_ALL_UNLIMITED, &plan, call->error);
    if (status != TARN_OK) return status;
    tarn_budget_settle_share(&call->options, plan);
    tarn_plan_destroy(plan);
    return TARN_OK;
}

static enum tarn_status run_budget(const struct tarn_transform_control *control, void *subject)
{
    struct call *call = subject;
    enum tarn_status status = TARN_OK;
    call->options.control = control;
    if (tarn_budget_has_share(&call->options)) status = settle_share(call);
    if (status != TARN_OK) return status;
    return tarn_budgeting_run(call->graph, &call->options, 0, NULL, &call->planned, NULL,
                              call->error);
}

enum tarn_status tarn_graph_budget(struct tarn_graph *graph,
                                   const struct tarn_budget_options *options,
                                   struct tarn_graph **result, struct tarn_error *error)
{
    struct call call = {.graph = graph, .error = error};
    if (result) *result = NULL;
    if (!graph || !result) return tarn_error_null(error, __func__);
    enum tarn_status status = take_call(&call, options);
    if (status == TARN_OK)
        status = tarn_transform_with_heartbeat(call.options.control, "budget", run_budget, &call);
    *result = call.planned.graph;
    tarn_plan_destroy(call.planned.plan);
    return status;
}

/* ---- The curve ---- */

static enum tarn_status give_up_curve(const struct tarn_budgeting *budgeting)
{
    bool late = !is_stopped(budgeting);
    return tarn_error_set(budgeting->error, late ? TARN_DEADLINE : TARN_INTERRUPTED,
                          "%s: not all budgets were looked at",
                          late ? "the time was over" : "interrupted");
}

/* The points of a curve, the smallest budget last. */
struct points {
    struct tarn_attempt best;  /* for the budget looked at */
    struct tarn_attempt given; /* the graph as it is; no graph: it keeps to no budget */
    uint64_t least;            /* the smallest footprint */
    unsigned char *rows;       /* as in struct call */
    size_t size, count;
};

static uint64_t budget_at(const struct tarn_budgeting *budgeting, const struct points *points,
                          size_t i)
{
    if (i == points->count - 1) return points->least;
    uint64_t most = budgeting->footprint_before, least = points->least;
    uint64_t span = most > least ? most - least : 0;
    double share = (double)i / (double)(points->count - 1);
    uint64_t budget = least + span - (uint64_t)((double)span * share);
    return budget - budget % budgeting->model.alignment;
}

static enum tarn_status find_given(struct tarn_budgeting *budgeting, struct tarn_attempt *given)
{
    set_budget(budgeting, budgeting->footprint_before);
    enum tarn_status status = tarn_budgeting_try_unchanged(budgeting, given);
    if (!tarn_attempt_fits(given, budgeting->options.budget)) tarn_planned_finish(&given->made);
    set_budget(budgeting, TARN_BUDGET_UNLIMITED);
    return status;
}

static void offer_given(struct points *points, uint64_t budget)
{
    struct tarn_attempt given = points->given;
    if (!given.made.graph) return;
    given.made = (struct tarn_planned){.graph = tarn_graph_retain(given.made.graph)};
    tarn_attempt_keep_better(&points->best, &given, budget);
}

/* Fills in this row, and the rows of smaller budgets that the same result keeps to. */
static void give_rows(struct tarn_budgeting *budgeting, const struct points *points, size_t i)
{
    uint64_t budget = budgeting->asked;
    for (; i < points->count; i++) {
        budgeting->asked = budget_at(budgeting, points, i);
        if (points->best.footprint > budgeting->asked) break;
        give_report(budgeting, &points->best, points->rows + i * points->size, points->size);
    }
    budgeting->asked = budget;
}

/* Finds the point for one budget; the next search starts at the policy found. A budget that has
 * been searched for needs no search. */
static enum tarn_status find_point(struct tarn_budgeting *budgeting, struct points *points,
                                   size_t i)
{
    enum tarn_status status = TARN_OK;
    uint64_t budget = budget_at(budgeting, points, i);
    bool is_known = budget == budgeting->asked && i + 2 < points->count;
    if (tarn_deadline_is_over(&budgeting->deadline)) return give_up_curve(budgeting);
    set_budget(budgeting, budget);
    if (tarn_attempt_fits(&points->given, budget)) offer_given(points, budget);
    if (!is_known) status = tarn_budgeting_try_targets(budgeting, true, &points->best);
    if (status == TARN_OK) give_rows(budgeting, points, i);
    return status;
}

static enum tarn_status find_points(struct tarn_budgeting *budgeting, struct points *points)
{
    enum tarn_status status = find_given(budgeting, &points->given);
    if (status == TARN_OK) status = tarn_budgeting_descend(budgeting, 0);
    if (status != TARN_OK || points->count == 0) return status;
    if (budgeting->smallest == 0 && !budgeting->descent.smallest.made.graph)
        return give_up_curve(budgeting);
    points->best = budgeting->descent.smallest;
    budgeting->descent.smallest.made = (struct tarn_planned){0};
    offer_given(points, 0);
    if (points->best.footprint == UINT64_MAX) return refuse_other_space(budgeting, &points->best);
    points->least = points->best.footprint;
    if (budgeting->smallest > 0) budgeting->smallest = points->least;
    set_budget(budgeting, points->least);
    give_rows(budgeting, points, points->count - 1);
    for (size_t i = points->count - 1; i-- > 0 && status == TARN_OK;)
        status = find_point(budgeting, points, i);
    return status;
}

/* Runs from the smallest budget upwards: a policy that fits a budget also fits a larger one, so no
 * point is slower than the point below it. */
static enum tarn_status run_curve(const struct tarn_transform_control *control, void *subject)
{
    struct call *call = subject;
    struct tarn_budgeting budgeting = {
        .graph = call->graph, .ignores_capacity = true, .error = call->error};
    struct points points = {.rows = call->rows, .size = call->row_size, .count = call->rows_count};
    call->options.control = control;
    enum tarn_status status = begin(&budgeting, &call->options, 0);
    if (status == TARN_OK) status = find_points(&budgeting, &points);
    tarn_planned_finish(&points.best.made);
    tarn_planned_finish(&points.given.made);
    finish(&budgeting);
    return status;
}

enum tarn_status tarn_graph_budget_curve_sized(struct tarn_graph *graph,
                                               const struct tarn_budget_options *options,
                                               struct tarn_budget_report *rows, size_t size,
                                               size_t count, struct tarn_error *error)
{
    struct call call = {.graph = graph,
                        .rows = (unsigned char *)rows,
                        .row_size = size,
                        .rows_count = count,
                        .error = error};
    if (!graph || (!rows && count > 0)) return tarn_error_null(error, __func__);
    if (count > 0) memset(rows, 0, count * size);
    enum tarn_status status = take_call(&call, options);
    return status != TARN_OK
               ? status
               : tarn_transform_with_heartbeat(call.options.control, "budget", run_curve, &call);
}
