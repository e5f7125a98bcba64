/* Searches for the fastest way to keep to a budget by moves and recomputation. No fixed order of
 * the two is best, so several are tried:
 *
 *     moves alone
 *     the budget without moves
 *     recomputing down to some multiple of the budget, and moving from there: cheap versions are
 *         recomputed, and copies have the time that this leaves; multiples next to the best one
 *         are tried as well. What counts is what the list has alive, since moves change where
 *         things lie; in small graphs of several streams also what a plan of it takes, since waits
 *         between streams make some of them better starts
 *     moving storages for which no op waits, and recomputing from there
 *
 * Cost: some searches for a budget, each with two searches for moves, and some placements. */
#include "offloading.h"
#include "planner/budget/budget.h"
#include "planner/transform/recipe.h"
#include "streams/base/checked.h"
#include "streams/base/error.h"

/* Near the footprint without a budget recomputing is asked for one part in BELOW_PART less. */
enum { BELOW_PART = 16 };
/* In the end all effort is spent on the FINE_MAX graphs of the fastest answers. */
enum { FINE_MAX = 2 };
/* In graphs of several streams, and of so many ops at most, those of all multiples are made in both
 * ways. */
enum { BOTH_WAYS_OPS = 256 };

enum tarn_status tarn_offloading_ask_budget(struct tarn_offloading *offloading,
                                            tarn_budget_look look, struct tarn_graph *from,
                                            uint64_t bytes, bool is_brief,
                                            struct tarn_planned *made,
                                            struct tarn_budget_report *report, uint64_t *least)
{
    struct tarn_budget_options options = offloading->budget;
    struct tarn_transform_control control = {.struct_size = sizeof control};
    struct tarn_plan_options planning = *offloading->planning;
    struct tarn_error error;
    if (options.control) control = *options.control;
    control.seconds = tarn_deadline_left(&offloading->deadline);
    options.budget = bytes;
    options.report = report;
    options.report_size = sizeof *report;
    options.control = &control;
    *report = (struct tarn_budget_report){0};
    *least = UINT64_MAX;
    enum tarn_status status = look(from, &options, is_brief, &planning, made, &error);
    if (status == TARN_DOES_NOT_FIT && report->footprint > 0) *least = report->footprint;
    if (*least == UINT64_MAX && status != TARN_OK) tarn_planned_finish(made);
    if (status == TARN_DOES_NOT_FIT || status == TARN_DEADLINE) status = TARN_OK;
    if (status != TARN_OK && offloading->error) *offloading->error = error;
    if (status == TARN_OK && made->graph && from != offloading->graph && made->graph != from)
        status = tarn_transform_compose(from, made->graph, offloading->error);
    return status;
}

/* Offers what a budget has found. */
static enum tarn_status offer_found(struct tarn_offloading *offloading, struct tarn_planned *made,
                                    const struct tarn_budget_report *report)
{
    uint64_t missing, time_ns = 0;
    enum tarn_status status = TARN_OK;
    if (!made->plan) status = tarn_offloading_place(offloading, made->graph, &made->plan, &missing);
    if (status != TARN_OK || !made->plan) return status;
    status = tarn_offloading_time(offloading, made->graph, &time_ns);
    return status == TARN_OK ? tarn_offloading_offer(offloading, made, time_ns, report, false)
                             : status;
}

/* The budget without moves; if it is refused, moves from the smallest graph. */
static enum tarn_status try_budget(struct tarn_offloading *offloading)
{
    struct tarn_planned made = {0};
    struct tarn_budget_report report;
    struct tarn_offloading_start *start;
    uint64_t least;
    enum tarn_status status =
        tarn_offloading_ask_budget(offloading, tarn_budgeting_look, offloading->graph,
                                   offloading->bytes, false, &made, &report, &least);
    if (least < offloading->least) offloading->least = least;
    if (status == TARN_OK && made.graph && least == UINT64_MAX)
        status = offer_found(offloading, &made, &report);
    if (status == TARN_OK && made.graph && least != UINT64_MAX) {
        offloading->smallest = tarn_graph_retain(made.graph);
        offloading->smallest_report = report;
        if (least < offloading->before)
            status = tarn_offloading_try_moves(offloading, made.graph, &report, &start);
    }
    tarn_planned_finish(&made);
    return status;
}

/* Recomputing to that many bytes, and moving from there. *fastest_ns: the time of the fastest of
 * the first answers; UINT64_MAX: there is none. */
static enum tarn_status try_above(struct tarn_offloading *offloading, tarn_budget_look look,
                                  uint64_t bytes, bool is_brief, uint64_t *fastest_ns)
{
    struct tarn_planned made = {0};
    struct tarn_budget_report report;
    struct tarn_offloading_start *start;
    uint64_t least;
    uint32_t starts_count = offloading->starts_count;
    *fastest_ns = UINT64_MAX;
    if (bytes >= offloading->before || tarn_offloading_is_over(offloading)) return TARN_OK;
    enum tarn_status status = tarn_offloading_ask_budget(offloading, look, offloading->graph, bytes,
                                                         is_brief, &made, &report, &least);
    if (status == TARN_OK && made.graph && least == UINT64_MAX) {
        status = tarn_offloading_try_moves(offloading, made.graph, &report, &start);
        *fastest_ns = start->first_ns;
        if (is_brief && offloading->starts_count > starts_count) {
            start->budget = bytes;
            start->look = look;
        }
    }
    tarn_planned_finish(&made);
    return status;
}

static enum tarn_status try_multiple(struct tarn_offloading *offloading, tarn_budget_look look,
                                     double multiple, bool is_brief, uint64_t *fastest_ns)
{
    uint64_t bytes = (uint64_t)((double)offloading->bytes * multiple);
    return try_above(offloading, look, bytes, is_brief, fastest_ns);
}

/* best_ns: of the best plan that is known to the search for multiples. */
static enum tarn_status try_multiples(struct tarn_offloading *offloading, tarn_budget_look look,
                                      uint64_t best_ns)
{
    static const double multiples[] = {1.5, 1.4, 1.3, 1.15};
    enum { COUNT = sizeof multiples / sizeof *multiples };
    uint64_t ns;
    double best = 0;
    enum tarn_status status = TARN_OK;
    for (size_t i = 0; i < COUNT && status == TARN_OK && !tarn_offloading_costs_nothing(offloading);
         i++) {
        status = try_multiple(offloading, look, multiples[i], false, &ns);
        if (ns >= best_ns) continue;
        best = multiples[i];
        best_ns = ns;
    }
    uint64_t most = offloading->before - offloading->before / BELOW_PART;
    bool is_near = (double)offloading->bytes * multiples[COUNT - 1] >= (double)offloading->before;
    bool is_new = most > offloading->bytes ||
                  tarn_offloading_always_moves(offloading); /* else try_budget's */
    if (is_near && is_new && status == TARN_OK && !tarn_offloading_costs_nothing(offloading))
        status =
            try_above(offloading, look, most, false, &ns); /* no multiple is below the footprint */
    if (best > 0 && status == TARN_OK && !tarn_offloading_costs_nothing(offloading))
        status = try_multiple(offloading, look, best + 0.1, true, &ns);
    if (best > 0 && status == TARN_OK && !tarn_offloading_costs_nothing(offloading))
        status = try_multiple(offloading, look, best - 0.07, true, &ns);
    return status;
}

/* Answers the questions of that graph with all effort. */
static enum tarn_status refine_start(struct tarn_offloading *offloading,
                                     struct tarn_offloading_start *start)
{
    enum tarn_status status = TARN_OK;
    for (int k = 0; k < TARN_OFFLOADING_QUESTIONS && status == TARN_OK; k++) {
        struct tarn_offloading_question *question = &start->questions[k];
        if (!question->is_first) continue;
        question->is_first = false;
        status = tarn_offloading_ask(offloading, start, question, 1);
    }
    return status;
}

/* Answers the questions of the fastest graphs with all effort, and those of the given graph if its
 * bound allows a faster answer, so that moves alone are as good here as by themselves. If the
 * fastest of all starts from a brief search for a budget, that is repeated with all effort first.
 */
static enum tarn_status refine(struct tarn_offloading *offloading)
{
    enum tarn_status status = TARN_OK;
    struct tarn_offloading_start *start = NULL;
    uint64_t ns;
    const struct tarn_offloading_question *best =
        tarn_offloading_find_fastest(offloading, false, &start);
    if (best && start->budget > 0 && tarn_offloading_may_be_better(offloading, best)) {
        status = try_above(offloading, start->look, start->budget, false, &ns);
        start->budget = 0;
    }
    for (int n = 0; n < FINE_MAX && status == TARN_OK; n++) {
        best = tarn_offloading_find_fastest(offloading, true, &start);
        if (!best || !tarn_offloading_may_be_better(offloading, best)) break;
        status = refine_start(offloading, start);
    }
    best = tarn_offloading_find_fastest(offloading, false, &start);
    uint64_t known_ns = best ? best->time_ns : UINT64_MAX;
    if (offloading->best.made.graph) known_ns = tarn_smaller(known_ns, offloading->best.time_ns);
    if (status == TARN_OK && known_ns > offloading->no_less_ns)
        status = refine_start(offloading, &offloading->starts[0]);
    return status;
}

/* Moves storages for which no op waits, and recomputes from there. */
static enum tarn_status try_free_first(struct tarn_offloading *offloading)
{
    struct tarn_region region = {.chunks = NULL};
    struct tarn_offload_model model;
    struct tarn_offload_choice choice = {0};
    struct tarn_graph *moved = NULL;
    struct tarn_planned made = {0};
    struct tarn_budget_report report;
    uint64_t least;
    if (tarn_offloading_is_over(offloading)) return TARN_OK;
    enum tarn_status status = tarn_offload_model_init(&model, &region, offloading->graph,
                                                      &offloading->terms, offloading->error);
    if (status == TARN_OK &&
        tarn_offload_free(&model, offloading->bytes, &offloading->deadline, &choice) != TARN_OK)
        status = tarn_error_no_memory(offloading->error);
    if (status == TARN_OK && choice.count > 0)
        status = tarn_offload_build(&model, &choice, &moved, offloading->error);
    if (status == TARN_OK && moved)
        status = tarn_offloading_ask_budget(offloading, tarn_budgeting_look, moved,
                                            offloading->bytes, true, &made, &report, &least);
    if (status == TARN_OK && made.graph && least == UINT64_MAX)
        status = offer_found(offloading, &made, &report);
    tarn_planned_finish(&made);
    tarn_graph_destroy(moved);
    tarn_region_finish(&region);
    return status;
}

/* Recomputing to less than the budget, and moving from there, until a plan fits: what persists
 * takes bytes of the arena around its uses. */
static enum tarn_status try_below(struct tarn_offloading *offloading)
{
    static const double multiples[] = {1, 0.9, 0.8, 0.7, 0.6, 0.5};
    uint64_t ns;
    enum tarn_status status = tarn_offloading_settle(offloading, UINT64_MAX);
    for (size_t i = 0; i < sizeof multiples / sizeof *multiples && status == TARN_OK; i++) {
        if (offloading->best.made.graph) break;
        status = try_multiple(offloading, tarn_budgeting_look_at_list, multiples[i], false, &ns);
        if (status == TARN_OK) status = tarn_offloading_settle(offloading, UINT64_MAX);
    }
    return status;
}

/* Places the answers so far, the fastest of them found with all effort. */
static enum tarn_status refine_and_place(struct tarn_offloading *offloading)
{
    enum tarn_status status =
        tarn_offloading_costs_nothing(offloading) ? TARN_OK : refine(offloading);
    if (status == TARN_OK) status = tarn_offloading_settle(offloading, UINT64_MAX);
    return status == TARN_OK ? tarn_offloading_try_refused(offloading) : status;
}

enum tarn_status tarn_offloading_search(struct tarn_offloading *offloading)
{
    const struct tarn_budget_report none = {0};
    bool alone = offloading->budget.method == TARN_BUDGET_OFFLOAD;
    bool both_ways = !alone && offloading->graph->streams_count > 1 &&
                     offloading->graph->ops_count <= BOTH_WAYS_OPS;
    static const tarn_budget_look looks[] = {tarn_budgeting_look_at_list, tarn_budgeting_look};
    struct tarn_offloading_start *start;
    enum tarn_status status =
        tarn_offloading_try_moves(offloading, offloading->graph, &none, &start);
    if (status != TARN_OK || tarn_offloading_costs_nothing(offloading)) return status;
    if (offloading->deadline.at_ms > 0)
        status = tarn_offloading_settle(offloading, UINT64_MAX); /* some answer */
    uint64_t best_ns = offloading->best.made.graph ? offloading->best.time_ns : UINT64_MAX;
    for (int k = 0; k <= both_ways && status == TARN_OK; k++) {
        if (!alone) status = try_multiples(offloading, looks[k], best_ns);
        if (status == TARN_OK) status = refine_and_place(offloading);
    }
    if (status == TARN_OK && !alone && tarn_offloading_always_moves(offloading))
        status = try_below(offloading);
    /* implementations name tensors that persist as they lie in the graph given */
    if (status != TARN_OK || alone || tarn_offloading_always_moves(offloading) ||
        tarn_offloading_costs_nothing(offloading))
        return status;
    status = try_budget(offloading);
    if (status == TARN_OK && !tarn_offloading_costs_nothing(offloading))
        status = try_free_first(offloading);
    return status == TARN_OK ? refine_and_place(offloading) : status;
}
