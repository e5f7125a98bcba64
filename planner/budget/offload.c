/* Combines moves with recomputation to keep to a budget. transform/offload finds which storages
 * move, and when their bytes are freed and taken again, for the given order of the ops and by their
 * clock. Recomputing changes both. No fixed order of the two is best, so several are tried, and the
 * fastest plan that fits is the answer:
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
 * Each graph that moves start from is asked two questions: which moves are best, and which are best
 * if copies take a quarter longer. All answers are built, and placed in the order of their modelled
 * time until one fits, so that nothing is placed that is slower than the answer. A plan may need
 * more bytes than the list has alive: for streams side by side, which are coupled then, and for
 * bytes lost in placement. Then the question is asked again for a smaller budget. Bytes that the
 * budget leaves are spent on earlier triggers and later releases, if this costs no time.
 *
 * A placement that is refused takes all the work that it may do, one that fits mostly little. So
 * candidates may do little, and the fastest of those refused are placed again with more work in the
 * end. Cost: some searches for a budget, each with two searches for moves, and some placements. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "attempt.h"
#include "budget.h"
#include "planner/transform/coupled.h"
#include "planner/transform/heartbeat.h"
#include "planner/transform/offload/offload.h"
#include "planner/transform/recipe.h"
#include "streams/base/checked.h"
#include "streams/base/deadline.h"
#include "streams/base/error.h"
#include "streams/base/options.h"
#include "streams/graph/validate.h"
#include "tarn/simulate.h"

/* Default effort, and places that a step of it looks at. */
enum { EFFORT = 1000, STEP_WORK = 1000000 };
/* Gains below 1/NOTHING of the time are not looked for. */
enum { NOTHING = 2000 };
/* Times that the search is asked for less, each time by at least one part in LESS. */
enum { ASKED_MAX = 10, ASKED_BRIEFLY = 3, LESS = 200 };
/* For an answer that fits with waits, by one part in WAITS_PART of what it misses without. */
enum { WAITS_PART = 4 };
/* Budgets that are tried for the least, each with one part in BRIEF_PART of the effort. */
enum { HALVES = 8, BRIEF_PART = 32 };
/* Steps of placing, unless the caller says how many. Candidates are placed with one part in
 * PLACE_PART of the usual work. Of those refused the AGAIN_MAX fastest are placed with one part in
 * AGAIN_PART. */
enum { PLACE_STEPS = 300, PLACE_PART = 16, AGAIN_MAX = 4, AGAIN_PART = 3 };
/* Near the footprint without a budget recomputing is asked for one part in BELOW_PART less. */
enum { BELOW_PART = 16 };
/* Once a plan fits, so many candidates are placed in a row at most. */
enum { PLACED_MAX = 24 };
/* First answers are found with one part in FIRST_PART of the effort. All of it is spent on those of
 * the given graph that take at most one part in NEAR longer than without moves, and in the end on
 * the FINE_MAX graphs of the fastest. */
enum { FIRST_PART = 8, FINE_MAX = 2, NEAR = 8 };
/* Graphs that moves start from: the given one, those of all multiples, and the least. */
enum { STARTS_MAX = 32 };
/* In graphs of several streams, and of so many ops at most, those of all multiples are made in both
 * ways. */
enum { BOTH_WAYS_OPS = 256 };
/* Percent of their modelled time that copies may take without making an op wait, if that is
 * free. */
enum { SLOWER = 125 };
/* How often slack is shared out, each time one part in RELAXED_PART less of the budget. */
enum { RELAXED_MAX = 4, RELAXED_PART = 32 };
#define UNLIMITED (UINT64_MAX / 4) /* bytes to which anything keeps */
#define LATENCY_NS 5000
#define BYTES_MIN (UINT64_C(1) << 20)

/* tarn_budgeting_look or tarn_budgeting_look_at_list */
typedef enum tarn_status (*budget_look)(struct tarn_graph *, const struct tarn_budget_options *,
                                        bool, const struct tarn_plan_options *,
                                        struct tarn_planned *, struct tarn_error *);

/* A graph that keeps to the budget, with its plan. */
struct found {
    struct tarn_planned made; /* no graph: no plan was made */
    uint64_t time_ns;
    uint64_t each_ns; /* of many iterations, if something that persists moves; else 0 */
    struct tarn_budget_report report;
    bool minds_less; /* than others, if copies take longer than modelled */
};

/* What is asked of a graph that moves start from, and the answer for the present budget. */
struct question {
    uint64_t percent; /* of their modelled time that copies take */
    uint64_t aim;     /* bytes to keep to: the budget, less what plans so far have missed */
    int asked;        /* how often */
    bool is_first;    /* answered with little effort so far, and may be refined */
    struct tarn_offload_choice choice; /* arcs: of the start's region, as many as it has gaps */
    struct tarn_graph *graph;          /* with the moves; NULL: there is no answer */
    uint64_t time_ns;                  /* of this graph */
};

enum { QUESTIONS = 2 };

/* A graph that moves start from: the given one, or one made of it that keeps to some budget. */
struct start {
    struct tarn_graph *graph; /* retained */
    struct tarn_hash hash;    /* of the graph */
    struct tarn_budget_report report;
    uint64_t budget;           /* that it was made for by a brief search; 0: by none */
    budget_look look;          /* by which it was made for it */
    uint64_t first_ns;         /* of its first answers the fastest; UINT64_MAX: there was none */
    struct tarn_region region; /* of the model and the choices */
    struct tarn_offload_model model;
    struct question questions[QUESTIONS]; /* copies a quarter slower, and as told */
};

/* A graph that was placed for the present budget and does not fit without waits that cost time. */
struct known {
    struct tarn_hash hash;
    uint64_t missing; /* as place_and_offer has told, above 0 */
};

/* As many as all questions can have. */
enum { KNOWN_MAX = STARTS_MAX * QUESTIONS * ASKED_MAX };

/* An answer that was not placed within the budget. */
struct refused {
    struct start *start;
    struct question question; /* graph: retained */
};

struct offloading {
    struct tarn_graph *graph;
    struct tarn_budget_options budget;
    struct tarn_offload_options options;
    struct tarn_offload_terms terms;
    const struct tarn_plan_options *planning;
    struct tarn_deadline deadline;
    uint64_t bytes; /* the budget, the capacity of the first space counted */
    uint64_t before, before_ns;
    uint64_t no_less_ns, no_way_less_ns;
    struct found best;
    uint64_t least; /* the smallest footprint that a refusal has reported; UINT64_MAX: none */
    struct tarn_graph *smallest; /* the graph of that footprint; NULL: not known */
    struct tarn_budget_report smallest_report;
    bool is_brief;       /* that it fits is all that counts */
    bool has_budget;     /* else the capacity is one, if moves for which no op waits do not do */
    uint32_t place_part; /* placing may do one part in that many of the usual work */
    struct start starts[STARTS_MAX];
    uint32_t starts_count;
    uint32_t placed;                   /* candidates */
    struct refused refused[AGAIN_MAX]; /* the fastest, in this order */
    uint32_t refused_count;
    struct known known[KNOWN_MAX];
    uint32_t known_count;
    struct tarn_error *error;
};

static bool is_over(const struct offloading *offloading)
{
    return tarn_deadline_is_over(&offloading->deadline);
}

/* ---- Time ---- */

static enum tarn_status find_time(const struct tarn_graph *graph, uint64_t *ns)
{
    struct tarn_pace pace;
    enum tarn_status status = tarn_pace_init(&pace, graph, TARN_WAIT_NS);
    if (status == TARN_OK) *ns = pace.timeline.makespan_ns;
    if (status == TARN_OK) tarn_pace_finish(&pace);
    return status;
}

/* The same, with the error of a caller that reports no other. */
static enum tarn_status find_time_or_tell(const struct offloading *offloading,
                                          const struct tarn_graph *graph, uint64_t *ns)
{
    return find_time(graph, ns) == TARN_OK ? TARN_OK : tarn_error_no_memory(offloading->error);
}

/* The same if moves took `percent` of their modelled time. */
static enum tarn_status find_time_with(const struct tarn_graph *graph, uint64_t percent,
                                       uint64_t *ns)
{
    struct tarn_region region = {.chunks = NULL};
    struct tarn_graph view = tarn_graph_view(graph);
    struct tarn_graph_op *ops =
        tarn_region_copy(&region, graph->ops, graph->ops_count, sizeof *ops);
    enum tarn_status status = ops ? TARN_OK : TARN_SYSTEM;
    for (uint32_t v = 0; ops && v < graph->ops_count; v++)
        if (ops[v].move && ops[v].origin == TARN_NONE) ops[v].cost = ops[v].cost * percent / 100;
    view.ops = ops;
    if (status == TARN_OK) status = find_time(&view, ns);
    tarn_region_finish(&region);
    return status;
}

/* ---- Plans ---- */

static enum tarn_status plan_quickly(const struct offloading *offloading, struct tarn_graph *graph,
                                     struct tarn_plan **plan)
{
    const struct tarn_plan_options quick =
        tarn_budgeting_quick(offloading->planning, offloading->terms.alignment);
    return tarn_plan_make(graph, &quick, TARN_ALL_UNLIMITED, plan, offloading->error);
}

/* The plan for the budget; NULL: none was found. *missing: bytes by which to lower the next budget,
 * at least 1/LESS of it. */
static enum tarn_status place(const struct offloading *offloading, struct tarn_graph *graph,
                              struct tarn_plan **plan, uint64_t *missing)
{
    const struct tarn_plan_options options =
        tarn_budgeting_placing(offloading->planning, offloading->terms.alignment, offloading->bytes,
                               PLACE_STEPS, &offloading->deadline);
    struct tarn_error ignored;
    struct tarn_plan *quick;
    *plan = NULL;
    *missing = offloading->bytes / LESS + 1;
    enum tarn_status status = plan_quickly(offloading, graph, &quick);
    if (tarn_budgeting_is_no_choice(offloading->graph, graph, status, offloading->error))
        return TARN_OK;
    if (status != TARN_OK) return status;
    uint64_t bound = quick->claim.bound;
    if (quick->spaces) bound = quick->spaces[0].claim.bound;
    tarn_plan_destroy(quick);
    if (bound > offloading->bytes) {
        if (bound - offloading->bytes > *missing) *missing = bound - offloading->bytes;
        return TARN_OK;
    }
    struct tarn_planned made = {.graph = graph};
    status = tarn_planned_make(&made, &options, true, offloading->place_part, &ignored);
    *plan = made.plan;
    if (status == TARN_DOES_NOT_FIT) {
        if (made.needed > offloading->bytes && (made.needed - offloading->bytes) / 2 > *missing)
            *missing = (made.needed - offloading->bytes) / 2;
        return TARN_OK;
    }
    if (status != TARN_OK && offloading->error) *offloading->error = ignored;
    return status;
}

static bool has_faster(const struct tarn_graph *graph)
{
    for (uint32_t v = 0; v < graph->ops_count; v++) {
        const struct tarn_op_extra *extra = tarn_extra(&graph->ops[v]);
        for (uint32_t i = 0; i < extra->implementations_count; i++)
            if (extra->implementations[i].cost < graph->ops[v].cost) return true;
    }
    return false;
}

/* Up to that, moves cost nothing. */
static uint64_t free_ns(const struct offloading *offloading)
{
    return offloading->before_ns + offloading->before_ns / NOTHING;
}

/* Nothing can be faster by more than one part in NOTHING. */
static bool costs_nothing(const struct offloading *offloading)
{
    return offloading->best.made.graph && !has_faster(offloading->graph) &&
           offloading->best.time_ns <= free_ns(offloading);
}

/* ---- Candidates ---- */

/* Does a storage move for every budget? Then a plan without moves is not valid. */
static bool always_moves(const struct offloading *offloading)
{
    return offloading->options.kinds & (TARN_OFFLOAD_STATES | TARN_OFFLOAD_PARAMETERS);
}

/* Takes over graph and plan if they are the best so far. Of those that take as long alone, the one
 * that takes less in a row of iterations, as far as copies run on behind the last op; relaxed: of
 * those that take as long then the one that minds slower copies less. */
static enum tarn_status offer(struct offloading *offloading, struct tarn_planned *made,
                              uint64_t time_ns, const struct tarn_budget_report *report,
                              bool relaxed)
{
    struct found *best = &offloading->best;
    bool is_better = !best->made.graph || time_ns < best->time_ns;
    uint64_t each_ns = 0;
    if (always_moves(offloading) && !offloading->is_brief && !is_over(offloading) &&
        (is_better || time_ns == best->time_ns) &&
        tarn_plan_settle_boundary(made->plan, &each_ns) != TARN_OK) {
        tarn_planned_finish(made);
        return tarn_error_no_memory(offloading->error);
    }
    if (best->made.graph && time_ns == best->time_ns && each_ns != best->each_ns)
        is_better = each_ns < best->each_ns && each_ns > 0;
    else if (best->made.graph && time_ns == best->time_ns)
        is_better = relaxed || (!best->minds_less && tarn_plan_footprint(made->plan) <=
                                                         tarn_plan_footprint(best->made.plan));
    if (is_better) {
        tarn_planned_finish(&best->made);
        *best = (struct found){*made, time_ns, each_ns, *report, relaxed};
    } else {
        tarn_planned_finish(made);
    }
    *made = (struct tarn_planned){0};
    return TARN_OK;
}

/* Adds waits that break the heaviest antichain, if it is above the budget. *graph is replaced. */
static enum tarn_status couple(const struct offloading *offloading, struct tarn_graph **graph)
{
    struct tarn_graph *coupled;
    const struct tarn_transform_control control = {
        .struct_size = sizeof control,
        .steps = 1 + (1U << 14) / ((*graph)->ops_count + 1),
        .stop = (const bool *)offloading->deadline.stop,
        .seconds = tarn_deadline_left(&offloading->deadline)};
    const struct tarn_couple_options options = {.struct_size = sizeof options,
                                                .alignment = offloading->terms.alignment,
                                                .capacity = offloading->bytes,
                                                .slowdown_max = 1000,
                                                .control = &control};
    enum tarn_status status = tarn_graph_couple(*graph, &options, &coupled, offloading->error);
    if (status != TARN_OK) return status;
    if (coupled != *graph && *graph != offloading->graph)
        status = tarn_transform_compose(*graph, coupled, offloading->error);
    tarn_graph_destroy(*graph);
    *graph = coupled;
    return status;
}

/* Places the graph, with waits between its streams if it does not fit without, and offers it if it
 * fits. *graph is replaced by the last that was tried if it does not fit, else by NULL. *missing:
 * 0: it fits without waits; else bytes by which to lower the next budget. */
static enum tarn_status place_and_offer(struct offloading *offloading, const struct start *start,
                                        struct tarn_graph **graph, bool relaxed, bool *fits,
                                        uint64_t *missing)
{
    struct tarn_planned made = {.graph = *graph};
    uint64_t time_ns = 0;
    *graph = NULL;
    offloading->placed++;
    enum tarn_status status = place(offloading, made.graph, &made.plan, missing);
    bool fits_apart = made.plan != NULL;
    uint64_t apart = *missing / WAITS_PART;
    if (status == TARN_OK && !made.plan && start->graph->streams_count > 1) {
        const struct tarn_graph *without = made.graph;
        status = couple(offloading, &made.graph);
        if (status == TARN_OK && made.graph != without)
            status = place(offloading, made.graph, &made.plan, missing);
    }
    *fits = status == TARN_OK && made.plan;
    if (*fits) {
        *missing = fits_apart ? 0 : tarn_larger(apart, offloading->bytes / LESS + 1);
        status = find_time_or_tell(offloading, made.graph, &time_ns);
        if (status == TARN_OK) status = offer(offloading, &made, time_ns, &start->report, relaxed);
    } else if (status == TARN_OK) {
        *graph = tarn_graph_retain(made.graph);
    }
    tarn_planned_finish(&made);
    return status;
}

/* ---- Questions ---- */

/* Builds the graph with the moves of a choice; of an empty one the graph itself. */
static enum tarn_status build(const struct offloading *offloading, const struct start *start,
                              const struct tarn_offload_choice *choice, struct tarn_graph **graph)
{
    *graph = NULL;
    if (choice->count == 0) {
        *graph = tarn_graph_retain(start->graph);
        return TARN_OK;
    }
    enum tarn_status status = tarn_offload_build(&start->model, choice, graph, offloading->error);
    if (status == TARN_OK && start->graph != offloading->graph)
        status = tarn_transform_compose(start->graph, *graph, offloading->error);
    return status;
}

/* Answers the question for its aim, with one part in `part` of the effort. An answer that is there
 * stays if no faster one is found. */
static enum tarn_status ask(struct offloading *offloading, struct start *start,
                            struct question *question, uint64_t part)
{
    uint64_t work = offloading->options.effort * STEP_WORK / part, time_ns = 0;
    if (is_over(offloading) || question->aim == 0) return TARN_OK;
    question->asked++;
    struct tarn_region_mark mark = tarn_region_mark(&start->region);
    struct tarn_offload_choice choice;
    tarn_offload_slow(&start->model, question->percent);
    enum tarn_status status =
        tarn_offload_within(&start->model, question->aim, work, &offloading->deadline, &choice);
    tarn_offload_slow(&start->model, 100);
    if (status != TARN_OK) return tarn_error_no_memory(offloading->error);
    struct tarn_graph *graph = NULL;
    if (choice.peak <= question->aim) status = build(offloading, start, &choice, &graph);
    if (status == TARN_OK && graph) status = find_time_or_tell(offloading, graph, &time_ns);
    if (status == TARN_OK && graph && (!question->graph || time_ns < question->time_ns)) {
        struct tarn_offload_arcs *arcs = question->choice.arcs;
        if (choice.count > 0) memcpy(arcs, choice.arcs, choice.count * sizeof *arcs);
        question->choice = choice;
        question->choice.arcs = arcs;
        question->time_ns = time_ns;
        tarn_graph_destroy(question->graph);
        question->graph = tarn_graph_retain(graph);
    }
    tarn_graph_destroy(graph);
    tarn_region_release(&start->region, mark);
    return status;
}

/* Forgets the answer; the next one is for the budget. */
static void begin_again(const struct offloading *offloading, struct question *question)
{
    tarn_graph_destroy(question->graph);
    question->graph = NULL;
    question->time_ns = UINT64_MAX;
    question->aim = offloading->bytes;
    question->asked = 0;
}

/* The start from an equal graph; NULL: there is none. */
static struct start *find_start(struct offloading *offloading, const struct tarn_graph *graph)
{
    const struct tarn_hash hash = tarn_graph_hash(graph);
    for (uint32_t i = 0; i < offloading->starts_count; i++)
        if (tarn_hash_equal(offloading->starts[i].hash, hash)) return &offloading->starts[i];
    return NULL;
}

/* Adds a graph that moves start from, without any answers. */
static enum tarn_status add_start(struct offloading *offloading, struct tarn_graph *graph,
                                  const struct tarn_budget_report *report, struct start **added)
{
    assert(offloading->starts_count < STARTS_MAX);
    struct start *start = *added = &offloading->starts[offloading->starts_count++];
    *start = (struct start){.graph = tarn_graph_retain(graph),
                            .hash = tarn_graph_hash(graph),
                            .report = *report,
                            .first_ns = UINT64_MAX};
    enum tarn_status status = tarn_offload_model_init(&start->model, &start->region, graph,
                                                      &offloading->terms, offloading->error);
    for (int k = 0; k < QUESTIONS && status == TARN_OK; k++) {
        struct question *question = &start->questions[k];
        question->percent = k == 0 ? SLOWER : 100;
        question->choice.arcs = tarn_region_take(&start->region, start->model.gaps_count,
                                                 sizeof *question->choice.arcs);
        if (!question->choice.arcs) status = tarn_error_no_memory(offloading->error);
        begin_again(offloading, question);
    }
    return status;
}

static void forget_refused(struct offloading *offloading)
{
    for (uint32_t i = 0; i < offloading->refused_count; i++)
        tarn_graph_destroy(offloading->refused[i].question.graph);
    offloading->refused_count = 0;
}

static void finish_starts(struct offloading *offloading)
{
    forget_refused(offloading);
    for (uint32_t i = 0; i < offloading->starts_count; i++) {
        struct start *start = &offloading->starts[i];
        for (int k = 0; k < QUESTIONS; k++) tarn_graph_destroy(start->questions[k].graph);
        tarn_graph_destroy(start->graph);
        tarn_region_finish(&start->region);
    }
    offloading->starts_count = 0;
}

/* The fastest answer: of equal ones of the slower copies, then of the first graph. is_first: of
 * those with little effort. NULL: there is none. */
static struct question *find_fastest(struct offloading *offloading, bool is_first,
                                     struct start **of)
{
    struct question *best = NULL;
    for (int k = 0; k < QUESTIONS; k++) {
        for (uint32_t i = 0; i < offloading->starts_count; i++) {
            struct question *question = &offloading->starts[i].questions[k];
            if (!question->graph || (is_first && !question->is_first)) continue;
            if (best && question->time_ns >= best->time_ns) continue;
            best = question;
            *of = &offloading->starts[i];
        }
    }
    return best;
}

/* ---- Plans of answers ---- */

/* Spends the bytes that the budget leaves on earlier triggers and later releases of the same gaps,
 * as many bytes as can be placed. */
static enum tarn_status relax(struct offloading *offloading, struct start *start,
                              const struct question *question)
{
    const struct tarn_offload_choice *choice = &question->choice;
    struct tarn_offload_model *model = &start->model;
    enum tarn_status status = TARN_OK;
    for (uint64_t part = 0; part < RELAXED_MAX && status == TARN_OK && choice->count > 0; part++) {
        struct tarn_offload_choice relaxed = *choice;
        bool fits = false;
        uint64_t missing, time_ns = 0, budget = question->aim - question->aim / RELAXED_PART * part;
        struct tarn_graph *graph;
        if (budget < choice->peak || is_over(offloading)) break;
        struct tarn_region_mark mark = tarn_region_mark(model->region);
        relaxed.arcs =
            tarn_region_copy(model->region, choice->arcs, choice->count, sizeof *choice->arcs);
        if (!relaxed.arcs || tarn_offload_relax(model, budget, &relaxed) != TARN_OK)
            return tarn_error_no_memory(offloading->error);
        status = build(offloading, start, &relaxed, &graph);
        if (status == TARN_OK) status = find_time_or_tell(offloading, graph, &time_ns);
        if (status == TARN_OK && time_ns <= offloading->best.time_ns)
            status = place_and_offer(offloading, start, &graph, true, &fits, &missing);
        tarn_graph_destroy(graph);
        tarn_region_release(model->region, mark);
        if (fits) break;
    }
    return status;
}

/* Could the answer be better than the best? Of those that take as long, the one that minds slower
 * copies less, or takes less in a row of iterations. */
static bool may_be_better(const struct offloading *offloading, const struct question *question)
{
    const struct found *best = &offloading->best;
    if (!best->made.graph || question->time_ns < best->time_ns) return true;
    return question->time_ns == best->time_ns &&
           ((question->percent > 100 && !best->minds_less) || always_moves(offloading));
}

/* Keeps a refused answer, if it is one of the fastest. Takes its graph. */
static enum tarn_status note_refused(struct offloading *offloading, struct start *start,
                                     struct question *question)
{
    struct refused *refused = offloading->refused;
    struct tarn_offload_choice *choice = &question->choice;
    uint32_t i = offloading->refused_count;
    bool is_full = i == AGAIN_MAX;
    if (is_full && question->time_ns >= refused[i - 1].question.time_ns) {
        tarn_graph_destroy(question->graph);
        return TARN_OK;
    }
    choice->arcs =
        tarn_region_copy(&start->region, choice->arcs, choice->count, sizeof *choice->arcs);
    if (!choice->arcs) {
        tarn_graph_destroy(question->graph);
        return tarn_error_no_memory(offloading->error);
    }
    if (is_full)
        tarn_graph_destroy(refused[--i].question.graph);
    else
        offloading->refused_count++;
    for (; i > 0 && question->time_ns < refused[i - 1].question.time_ns; i--)
        refused[i] = refused[i - 1];
    refused[i] = (struct refused){start, *question};
    return TARN_OK;
}

/* Bytes that the graph missed when it was placed; 0: it was not, or it fits. */
static uint64_t known_missing(const struct offloading *offloading, struct tarn_hash hash)
{
    for (uint32_t i = 0; i < offloading->known_count; i++)
        if (tarn_hash_equal(hash, offloading->known[i].hash)) return offloading->known[i].missing;
    return 0;
}

/* Places an answer, and takes its graph. *missing: 0: nothing is left to be asked; else bytes by
 * which to lower the next budget. */
static enum tarn_status place_answer(struct offloading *offloading, struct start *start,
                                     struct question *tried, uint64_t *missing)
{
    const bool relaxed = tried->percent > 100;
    const struct tarn_hash hash = tarn_graph_hash(tried->graph);
    bool fits;
    *missing = known_missing(offloading, hash);
    if (*missing > 0) {
        tarn_graph_destroy(tried->graph);
        return TARN_OK;
    }
    enum tarn_status status =
        place_and_offer(offloading, start, &tried->graph, relaxed, &fits, missing);
    if (status == TARN_OK && fits && !offloading->is_brief)
        status = relax(offloading, start, tried);
    if (fits && offloading->best.time_ns <= tried->time_ns) *missing = 0;
    if (*missing > 0 && offloading->known_count < KNOWN_MAX)
        offloading->known[offloading->known_count++] = (struct known){hash, *missing};
    if (fits) return status;
    /* with waits between its streams it may take longer */
    if (status == TARN_OK) status = find_time_or_tell(offloading, tried->graph, &tried->time_ns);
    if (status == TARN_OK && !offloading->is_brief) return note_refused(offloading, start, tried);
    tarn_graph_destroy(tried->graph);
    return status;
}

/* Places one answer. If it is refused, or fits only with waits that cost time, the question is
 * asked again for fewer bytes. */
static enum tarn_status try_answer(struct offloading *offloading, struct start *start,
                                   struct question *question)
{
    uint64_t missing;
    struct question tried = *question;
    question->graph = NULL;
    question->time_ns = UINT64_MAX;
    enum tarn_status status = place_answer(offloading, start, &tried, &missing);
    if (status != TARN_OK || missing == 0) return status;
    uint64_t aim = question->aim > missing ? question->aim - missing : 0;
    if (aim >= tried.choice.peak) /* the answer would be the same */
        aim = tried.choice.peak > missing ? tried.choice.peak - missing : 0;
    question->aim = aim;
    int asked_max = offloading->is_brief ? ASKED_BRIEFLY : ASKED_MAX;
    return question->asked < asked_max ? ask(offloading, start, question, 4) : TARN_OK;
}

/* Places answers that take at most limit_ns, the fastest first, until none of the others can be
 * better. */
static enum tarn_status settle(struct offloading *offloading, uint64_t limit_ns)
{
    const uint32_t placed_max = offloading->placed + PLACED_MAX;
    enum tarn_status status = TARN_OK;
    while (status == TARN_OK && !is_over(offloading)) {
        struct start *start = NULL;
        struct question *question = find_fastest(offloading, false, &start);
        if (!question || question->time_ns > limit_ns) break;
        if (!may_be_better(offloading, question)) break;
        bool is_enough = offloading->is_brief || offloading->placed >= placed_max;
        if (offloading->best.made.graph && is_enough) break;
        status = try_answer(offloading, start, question);
    }
    return status;
}

/* Places the fastest of the refused answers once more, and forgets them. */
static enum tarn_status try_refused(struct offloading *offloading)
{
    enum tarn_status status = TARN_OK;
    offloading->place_part = AGAIN_PART;
    for (uint32_t i = 0; i < offloading->refused_count && status == TARN_OK; i++) {
        struct refused *refused = &offloading->refused[i];
        struct question *question = &refused->question;
        bool fits;
        uint64_t missing;
        if (!may_be_better(offloading, question) || is_over(offloading)) break;
        status = place_and_offer(offloading, refused->start, &question->graph,
                                 question->percent > 100, &fits, &missing);
        if (status != TARN_OK || !fits || offloading->best.time_ns > question->time_ns) continue;
        offloading->place_part = PLACE_PART;
        status = relax(offloading, refused->start, question);
        break;
    }
    offloading->place_part = PLACE_PART;
    forget_refused(offloading);
    return status;
}

static enum tarn_status find_bounds(struct offloading *offloading,
                                    const struct tarn_offload_model *model)
{
    uint64_t bytes = offloading->bytes;
    enum tarn_status status = TARN_OK;
    if (!is_over(offloading))
        status = tarn_offload_no_less(model, bytes, false, &offloading->deadline,
                                      &offloading->no_less_ns);
    if (status == TARN_OK && !is_over(offloading))
        status = tarn_offload_no_less(model, bytes, true, &offloading->deadline,
                                      &offloading->no_way_less_ns);
    return status == TARN_OK ? TARN_OK : tarn_error_no_memory(offloading->error);
}

/* Asks which moves from that graph are best, unless an equal graph was asked. Those that cost
 * nothing are placed at once. *asked: the start, whose first_ns is then set. */
static enum tarn_status try_moves(struct offloading *offloading, struct tarn_graph *from,
                                  const struct tarn_budget_report *report, struct start **asked)
{
    bool is_given = from == offloading->graph;
    *asked = find_start(offloading, from);
    if (*asked) return TARN_OK;
    enum tarn_status status = add_start(offloading, from, report, asked);
    struct start *start = *asked;
    if (status == TARN_OK && is_given) status = find_bounds(offloading, &start->model);
    for (int k = 0; k < QUESTIONS && status == TARN_OK && !costs_nothing(offloading); k++) {
        struct question *question = &start->questions[k];
        question->is_first = true;
        status = ask(offloading, start, question, FIRST_PART);
        bool is_near = is_given && question->time_ns > free_ns(offloading) &&
                       question->time_ns <= offloading->before_ns + offloading->before_ns / NEAR;
        if (status == TARN_OK && is_near) {
            question->is_first = false;
            status = ask(offloading, start, question, 1);
        }
        if (status == TARN_OK) status = settle(offloading, free_ns(offloading));
        start->first_ns = tarn_smaller(start->first_ns, question->time_ns);
    }
    return status;
}

/* ---- Together with the budget's own ways ---- */

/* Finds what keeps to `bytes` without moves, for a graph that was made from the given graph.
 * Returns TARN_OK also if there is nothing: then *made is empty or, if *least is below UINT64_MAX,
 * the graph of that footprint, which is the smallest found. */
static enum tarn_status ask_budget(struct offloading *offloading, budget_look look,
                                   struct tarn_graph *from, uint64_t bytes, bool is_brief,
                                   struct tarn_planned *made, struct tarn_budget_report *report,
                                   uint64_t *least)
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
static enum tarn_status offer_found(struct offloading *offloading, struct tarn_planned *made,
                                    const struct tarn_budget_report *report)
{
    uint64_t missing, time_ns = 0;
    enum tarn_status status = TARN_OK;
    if (!made->plan) status = place(offloading, made->graph, &made->plan, &missing);
    if (status != TARN_OK || !made->plan) return status;
    status = find_time_or_tell(offloading, made->graph, &time_ns);
    return status == TARN_OK ? offer(offloading, made, time_ns, report, false) : status;
}

/* The budget without moves; if it is refused, moves from the smallest graph. */
static enum tarn_status try_budget(struct offloading *offloading)
{
    struct tarn_planned made = {0};
    struct tarn_budget_report report;
    struct start *start;
    uint64_t least;
    enum tarn_status status = ask_budget(offloading, tarn_budgeting_look, offloading->graph,
                                         offloading->bytes, false, &made, &report, &least);
    if (least < offloading->least) offloading->least = least;
    if (status == TARN_OK && made.graph && least == UINT64_MAX)
        status = offer_found(offloading, &made, &report);
    if (status == TARN_OK && made.graph && least != UINT64_MAX) {
        offloading->smallest = tarn_graph_retain(made.graph);
        offloading->smallest_report = report;
        if (least < offloading->before) status = try_moves(offloading, made.graph, &report, &start);
    }
    tarn_planned_finish(&made);
    return status;
}

/* Recomputing to that many bytes, and moving from there. *fastest_ns: the time of the fastest of
 * the first answers; UINT64_MAX: there is none. */
static enum tarn_status try_above(struct offloading *offloading, budget_look look, uint64_t bytes,
                                  bool is_brief, uint64_t *fastest_ns)
{
    struct tarn_planned made = {0};
    struct tarn_budget_report report;
    struct start *start;
    uint64_t least;
    uint32_t starts_count = offloading->starts_count;
    *fastest_ns = UINT64_MAX;
    if (bytes >= offloading->before || is_over(offloading)) return TARN_OK;
    enum tarn_status status =
        ask_budget(offloading, look, offloading->graph, bytes, is_brief, &made, &report, &least);
    if (status == TARN_OK && made.graph && least == UINT64_MAX) {
        status = try_moves(offloading, made.graph, &report, &start);
        *fastest_ns = start->first_ns;
        if (is_brief && offloading->starts_count > starts_count) {
            start->budget = bytes;
            start->look = look;
        }
    }
    tarn_planned_finish(&made);
    return status;
}

static enum tarn_status try_multiple(struct offloading *offloading, budget_look look,
                                     double multiple, bool is_brief, uint64_t *fastest_ns)
{
    uint64_t bytes = (uint64_t)((double)offloading->bytes * multiple);
    return try_above(offloading, look, bytes, is_brief, fastest_ns);
}

/* best_ns: of the best plan that is known to the search for multiples. */
static enum tarn_status try_multiples(struct offloading *offloading, budget_look look,
                                      uint64_t best_ns)
{
    static const double multiples[] = {1.5, 1.4, 1.3, 1.15};
    enum { COUNT = sizeof multiples / sizeof *multiples };
    uint64_t ns;
    double best = 0;
    enum tarn_status status = TARN_OK;
    for (size_t i = 0; i < COUNT && status == TARN_OK && !costs_nothing(offloading); i++) {
        status = try_multiple(offloading, look, multiples[i], false, &ns);
        if (ns >= best_ns) continue;
        best = multiples[i];
        best_ns = ns;
    }
    uint64_t most = offloading->before - offloading->before / BELOW_PART;
    bool is_near = (double)offloading->bytes * multiples[COUNT - 1] >= (double)offloading->before;
    bool is_new = most > offloading->bytes || always_moves(offloading); /* else try_budget's */
    if (is_near && is_new && status == TARN_OK && !costs_nothing(offloading))
        status =
            try_above(offloading, look, most, false, &ns); /* no multiple is below the footprint */
    if (best > 0 && status == TARN_OK && !costs_nothing(offloading))
        status = try_multiple(offloading, look, best + 0.1, true, &ns);
    if (best > 0 && status == TARN_OK && !costs_nothing(offloading))
        status = try_multiple(offloading, look, best - 0.07, true, &ns);
    return status;
}

/* Answers the questions of that graph with all effort. */
static enum tarn_status refine_start(struct offloading *offloading, struct start *start)
{
    enum tarn_status status = TARN_OK;
    for (int k = 0; k < QUESTIONS && status == TARN_OK; k++) {
        struct question *question = &start->questions[k];
        if (!question->is_first) continue;
        question->is_first = false;
        status = ask(offloading, start, question, 1);
    }
    return status;
}

/* Answers the questions of the fastest graphs with all effort, and those of the given graph if its
 * bound allows a faster answer, so that moves alone are as good here as by themselves. If the
 * fastest of all starts from a brief search for a budget, that is repeated with all effort first.
 */
static enum tarn_status refine(struct offloading *offloading)
{
    enum tarn_status status = TARN_OK;
    struct start *start = NULL;
    uint64_t ns;
    const struct question *best = find_fastest(offloading, false, &start);
    if (best && start->budget > 0 && may_be_better(offloading, best)) {
        status = try_above(offloading, start->look, start->budget, false, &ns);
        start->budget = 0;
    }
    for (int n = 0; n < FINE_MAX && status == TARN_OK; n++) {
        best = find_fastest(offloading, true, &start);
        if (!best || !may_be_better(offloading, best)) break;
        status = refine_start(offloading, start);
    }
    best = find_fastest(offloading, false, &start);
    uint64_t known_ns = best ? best->time_ns : UINT64_MAX;
    if (offloading->best.made.graph) known_ns = tarn_smaller(known_ns, offloading->best.time_ns);
    if (status == TARN_OK && known_ns > offloading->no_less_ns)
        status = refine_start(offloading, &offloading->starts[0]);
    return status;
}

/* Moves storages for which no op waits, and recomputes from there. */
static enum tarn_status try_free_first(struct offloading *offloading)
{
    struct tarn_region region = {.chunks = NULL};
    struct tarn_offload_model model;
    struct tarn_offload_choice choice = {0};
    struct tarn_graph *moved = NULL;
    struct tarn_planned made = {0};
    struct tarn_budget_report report;
    uint64_t least;
    if (is_over(offloading)) return TARN_OK;
    enum tarn_status status = tarn_offload_model_init(&model, &region, offloading->graph,
                                                      &offloading->terms, offloading->error);
    if (status == TARN_OK &&
        tarn_offload_free(&model, offloading->bytes, &offloading->deadline, &choice) != TARN_OK)
        status = tarn_error_no_memory(offloading->error);
    if (status == TARN_OK && choice.count > 0)
        status = tarn_offload_build(&model, &choice, &moved, offloading->error);
    if (status == TARN_OK && moved)
        status = ask_budget(offloading, tarn_budgeting_look, moved, offloading->bytes, true, &made,
                            &report, &least);
    if (status == TARN_OK && made.graph && least == UINT64_MAX)
        status = offer_found(offloading, &made, &report);
    tarn_planned_finish(&made);
    tarn_graph_destroy(moved);
    tarn_region_finish(&region);
    return status;
}

/* Recomputing to less than the budget, and moving from there, until a plan fits: what persists
 * takes bytes of the arena around its uses. */
static enum tarn_status try_below(struct offloading *offloading)
{
    static const double multiples[] = {1, 0.9, 0.8, 0.7, 0.6, 0.5};
    uint64_t ns;
    enum tarn_status status = settle(offloading, UINT64_MAX);
    for (size_t i = 0; i < sizeof multiples / sizeof *multiples && status == TARN_OK; i++) {
        if (offloading->best.made.graph) break;
        status = try_multiple(offloading, tarn_budgeting_look_at_list, multiples[i], false, &ns);
        if (status == TARN_OK) status = settle(offloading, UINT64_MAX);
    }
    return status;
}

/* Places the answers so far, the fastest of them found with all effort. */
static enum tarn_status refine_and_place(struct offloading *offloading)
{
    enum tarn_status status = costs_nothing(offloading) ? TARN_OK : refine(offloading);
    if (status == TARN_OK) status = settle(offloading, UINT64_MAX);
    return status == TARN_OK ? try_refused(offloading) : status;
}

static enum tarn_status search(struct offloading *offloading)
{
    const struct tarn_budget_report none = {0};
    bool alone = offloading->budget.method == TARN_BUDGET_OFFLOAD;
    bool both_ways = !alone && offloading->graph->streams_count > 1 &&
                     offloading->graph->ops_count <= BOTH_WAYS_OPS;
    static const budget_look looks[] = {tarn_budgeting_look_at_list, tarn_budgeting_look};
    struct start *start;
    enum tarn_status status = try_moves(offloading, offloading->graph, &none, &start);
    if (status != TARN_OK || costs_nothing(offloading)) return status;
    if (offloading->deadline.at_ms > 0) status = settle(offloading, UINT64_MAX); /* some answer */
    uint64_t best_ns = offloading->best.made.graph ? offloading->best.time_ns : UINT64_MAX;
    for (int k = 0; k <= both_ways && status == TARN_OK; k++) {
        if (!alone) status = try_multiples(offloading, looks[k], best_ns);
        if (status == TARN_OK) status = refine_and_place(offloading);
    }
    if (status == TARN_OK && !alone && always_moves(offloading)) status = try_below(offloading);
    /* implementations name tensors that persist as they lie in the graph given */
    if (status != TARN_OK || alone || always_moves(offloading) || costs_nothing(offloading))
        return status;
    status = try_budget(offloading);
    if (status == TARN_OK && !costs_nothing(offloading)) status = try_free_first(offloading);
    return status == TARN_OK ? refine_and_place(offloading) : status;
}

/* ---- The least ---- */

/* The least arena, by halves, of moves from the graphs that were added. What it tries does not
 * depend on the budget that was asked for, so that the footprint which a refusal tells can be kept;
 * but if several graphs have the smallest footprint, it starts from the one that this budget met.
 */
static enum tarn_status halve(struct offloading *offloading, struct found *least)
{
    uint64_t before = offloading->before, low = 0,
             high = always_moves(offloading) ? 2 * before : before;
    enum tarn_status status = TARN_OK;
    for (int k = 0; k < HALVES && status == TARN_OK && !is_over(offloading); k++) {
        bool is_any = least->made.graph != NULL;
        if (high - low <= before / LESS) break;
        offloading->bytes = is_any || !always_moves(offloading) ? low + (high - low) / 2 : high;
        offloading->known_count = 0;
        for (uint32_t i = 0; i < offloading->starts_count && status == TARN_OK; i++) {
            struct start *start = &offloading->starts[i];
            struct question *question = &start->questions[QUESTIONS - 1];
            begin_again(offloading, question);
            status = ask(offloading, start, question, 1);
        }
        if (status == TARN_OK) status = settle(offloading, UINT64_MAX);
        if (!offloading->best.made.graph) {
            low = offloading->bytes;
            if (low == high) break;
            continue;
        }
        tarn_planned_finish(&least->made);
        *least = offloading->best;
        offloading->best = (struct found){.time_ns = 0};
        high = tarn_plan_footprint(least->made.plan);
    }
    return status;
}

static enum tarn_status find_least(struct offloading *offloading)
{
    const struct tarn_budget_report none = {0};
    uint64_t effort = offloading->options.effort, asked = offloading->bytes, bytes;
    struct tarn_planned made = {0};
    struct found least = {.time_ns = 0};
    struct start *start;
    finish_starts(offloading);
    enum tarn_status status = add_start(offloading, offloading->graph, &none, &start);
    bool alone = offloading->budget.method == TARN_BUDGET_OFFLOAD;
    if (status == TARN_OK && !alone && !offloading->smallest) {
        status = ask_budget(offloading, tarn_budgeting_look, offloading->graph, 1, false, &made,
                            &offloading->smallest_report, &bytes);
        offloading->smallest = made.graph;
        tarn_plan_destroy(made.plan);
    }
    if (status == TARN_OK && offloading->smallest && !find_start(offloading, offloading->smallest))
        status = add_start(offloading, offloading->smallest, &offloading->smallest_report, &start);
    offloading->options.effort = 1 + effort / BRIEF_PART;
    offloading->is_brief = true;
    if (status == TARN_OK) status = halve(offloading, &least);
    offloading->options.effort = effort;
    offloading->bytes = asked;
    offloading->is_brief = false;
    if (status == TARN_OK && least.made.graph) {
        bytes = tarn_plan_footprint(least.made.plan);
        if (bytes <= offloading->bytes) {
            offloading->best = least;
            return TARN_OK;
        }
        if (bytes < offloading->least) offloading->least = bytes;
    }
    tarn_planned_finish(&least.made);
    return status;
}

/* ---- Without a budget ---- */

/* Builds the graph with the moves. *result stays NULL if it takes longer than without them. */
static enum tarn_status build_if_free(const struct offloading *offloading,
                                      const struct tarn_offload_model *model,
                                      const struct tarn_offload_choice *choice,
                                      struct tarn_graph **result)
{
    struct tarn_graph *moved;
    uint64_t time_ns = 0;
    if (choice->count == 0) return TARN_OK;
    enum tarn_status status = tarn_offload_build(model, choice, &moved, offloading->error);
    if (status != TARN_OK) return status;
    status = find_time_or_tell(offloading, moved, &time_ns);
    if (status == TARN_OK && time_ns <= offloading->before_ns)
        *result = moved;
    else
        tarn_graph_destroy(moved);
    return status == TARN_OK ? TARN_OK : tarn_error_no_memory(offloading->error);
}

/* Of these kinds of storages, with earlier copies back and later releases and, else, without. */
static enum tarn_status move_free_of(const struct offloading *offloading, unsigned kinds,
                                     struct tarn_graph **result)
{
    struct tarn_region region = {.chunks = NULL};
    struct tarn_offload_terms terms = offloading->terms;
    struct tarn_offload_model model;
    struct tarn_offload_choice choice = {0};
    terms.kinds = kinds;
    enum tarn_status status =
        tarn_offload_model_init(&model, &region, offloading->graph, &terms, offloading->error);
    if (status == TARN_OK &&
        tarn_offload_free(&model, 0, &offloading->deadline, &choice) != TARN_OK)
        status = tarn_error_no_memory(offloading->error);
    for (int relaxes = 1; relaxes >= 0 && status == TARN_OK && !*result; relaxes--) {
        struct tarn_offload_choice tried = choice;
        tried.arcs = tarn_region_copy(&region, choice.arcs, choice.count, sizeof *choice.arcs);
        if (!tried.arcs || (relaxes && tarn_offload_relax(&model, choice.peak, &tried) != TARN_OK))
            status = tarn_error_no_memory(offloading->error);
        if (status == TARN_OK) status = build_if_free(offloading, &model, &tried, result);
    }
    tarn_region_finish(&region);
    return status;
}

static enum tarn_status move_free(struct offloading *offloading, struct tarn_graph **result)
{
    unsigned all = offloading->terms.kinds, activations = all & TARN_OFFLOAD_ACTIVATIONS;
    enum tarn_status status = move_free_of(offloading, all, result);
    if (status == TARN_OK && !*result && activations > 0 && activations != all)
        status = move_free_of(offloading, activations, result);
    if (status == TARN_OK && !*result) *result = tarn_graph_retain(offloading->graph);
    return status;
}

/* Can the arena be placed within the capacity that the caller, and that the graph gives its first
 * memory space? */
static enum tarn_status find_whether_it_fits(const struct offloading *offloading,
                                             struct tarn_graph *graph, bool *fits)
{
    struct offloading within = *offloading;
    uint64_t capacity = offloading->planning->capacity, missing;
    struct tarn_plan *plan;
    *fits = true;
    if (capacity == 0 && !(graph->spaces_count > 0 && graph->spaces[0].capacity > 0))
        return TARN_OK;
    enum tarn_status status = plan_quickly(offloading, graph, &plan);
    if (status != TARN_OK) return status;
    within.bytes = tarn_smaller(capacity > 0 ? capacity : UINT64_MAX, tarn_budgeting_room(plan, 0));
    *fits = tarn_plan_footprint(plan) <= within.bytes;
    tarn_plan_destroy(plan);
    if (*fits) return TARN_OK;
    status = place(&within, graph, &plan, &missing);
    *fits = plan != NULL;
    tarn_plan_destroy(plan);
    return status;
}

/* ---- Reports ---- */

static void count_moves(const struct tarn_graph *graph, struct tarn_offload_report *report)
{
    for (uint32_t v = 0; v < graph->ops_count; v++) {
        const struct tarn_graph_op *op = &graph->ops[v];
        if (!op->move || op->origin != TARN_NONE) continue;
        const struct tarn_graph_tensor *made = &graph->tensors[tarn_outputs(op)[0]];
        bool is_out = made->space != 0;
        report->storages += is_out;
        report->gaps += !is_out;
        *(is_out ? &report->bytes_out : &report->bytes_in) += made->size;
        *(is_out ? &report->out_ns : &report->into_ns) += op->cost;
    }
}

static enum tarn_status give_report(const struct offloading *offloading,
                                    const struct tarn_planned *made)
{
    const struct tarn_graph *graph = made->graph;
    struct tarn_offload_report report = {.time_before_ns = offloading->before_ns,
                                         .no_less_than_ns = offloading->no_less_ns,
                                         .no_way_less_than_ns = offloading->no_way_less_ns};
    uint64_t without_ns = 0;
    count_moves(graph, &report);
    enum tarn_status status = find_time(graph, &report.time_ns);
    if (status == TARN_OK) status = find_time_with(graph, 125, &report.slower_ns);
    if (status == TARN_OK) status = find_time_with(graph, 0, &without_ns);
    if (status != TARN_OK) return tarn_error_no_memory(offloading->error);
    report.waiting_ns = report.time_ns > without_ns ? report.time_ns - without_ns : 0;
    tarn_report_give(offloading->options.report, offloading->options.report_size, &report,
                     sizeof report);
    return TARN_OK;
}

static void give_budget_report(const struct offloading *offloading, uint64_t footprint)
{
    struct tarn_budget_report report = offloading->best.report;
    report.budget = offloading->budget.budget;
    report.footprint_before = offloading->before;
    report.footprint = footprint;
    report.time_before_ns = offloading->before_ns;
    report.time_ns = offloading->best.time_ns;
    if (report.executions == 0)
        for (uint32_t v = 0; v < offloading->graph->ops_count; v++)
            report.executions += !offloading->graph->ops[v].view;
    tarn_report_give(offloading->budget.report, offloading->budget.report_size, &report,
                     sizeof report);
}

/* ---- Options ---- */

static enum tarn_status bad(struct offloading *offloading, const char *what)
{
    return tarn_error_set(offloading->error, TARN_USAGE, "offload options: %s", what);
}

static uint64_t slowed(uint64_t bytes_per_second, double margin)
{
    double rate = (double)bytes_per_second / (1 + margin);
    return rate < 1 ? 1 : (uint64_t)rate;
}

static enum tarn_status take_terms(struct offloading *offloading, uint64_t alignment)
{
    struct tarn_offload_options *options = &offloading->options;
    const struct tarn_graph *graph = offloading->graph;
    if (options->out_bytes_per_second == 0) return bad(offloading, "a bandwidth is needed");
    if (!(options->margin >= 0 && options->margin <= 1000))
        return bad(offloading, "a margin is a share from 0 on");
    if (options->space > 0 && options->space >= tarn_graph_spaces_count(graph))
        return bad(offloading, "the graph has no such memory space");
    if (options->space == 0 && graph->spaces_count >= TARN_SPACES_MAX)
        return bad(offloading, "the graph has as many memory spaces as there may be, none of them "
                               "to move to");
    if (graph->streams_count + 2 > TARN_STREAMS_MAX)
        return bad(offloading, "the graph has too many streams for two more");
    if (options->into_bytes_per_second == 0)
        options->into_bytes_per_second = options->out_bytes_per_second;
    if (options->effort == 0) options->effort = EFFORT;
    if (options->kinds == 0) options->kinds = TARN_OFFLOAD_ACTIVATIONS;
    if (options->kinds > (TARN_OFFLOAD_ACTIVATIONS | TARN_OFFLOAD_STATES | TARN_OFFLOAD_PARAMETERS))
        return bad(offloading, "there are no such kinds");
    offloading->terms = (struct tarn_offload_terms){
        .out_bytes_per_second = slowed(options->out_bytes_per_second, options->margin),
        .into_bytes_per_second = slowed(options->into_bytes_per_second, options->margin),
        .latency_ns = options->latency_ns > 0 ? options->latency_ns : LATENCY_NS,
        .wait_ns = TARN_WAIT_NS,
        .alignment = alignment,
        .kinds = options->kinds,
        .bytes_min = options->bytes_min > 0 ? options->bytes_min : BYTES_MIN,
        .space = options->space > 0 ? options->space : TARN_NONE,
        .capacity = options->capacity,
        .out_stream = options->out_stream ? options->out_stream : "d2h",
        .into_stream = options->into_stream ? options->into_stream : "h2d"};
    return TARN_OK;
}

/* Reserved bytes of what persists in the first space, and leaves it for every budget. */
static uint64_t leaving_bytes(const struct offloading *offloading)
{
    const struct tarn_graph *graph = offloading->graph;
    const struct tarn_offload_model model = {.graph = graph, .terms = offloading->terms};
    uint64_t bytes = 0;
    for (uint32_t a = graph->planned_count; a < graph->storages_count; a++)
        if (tarn_offload_may_move(&model, a))
            bytes += tarn_storage_reserved(graph, a, offloading->terms.alignment);
    return bytes;
}

/* The capacity of the first space, if the graph gives it one, lowers the budget to what the
 * persistent part leaves. */
static void keep_to_capacity(struct offloading *offloading, const struct tarn_plan *quick)
{
    uint64_t room = tarn_budgeting_room(quick, leaving_bytes(offloading));
    offloading->bytes = tarn_smaller(offloading->bytes, room);
}

static enum tarn_status look_at_given(struct offloading *offloading)
{
    struct tarn_plan *quick;
    enum tarn_status status =
        find_time_or_tell(offloading, offloading->graph, &offloading->before_ns);
    if (status != TARN_OK) return status;
    status = plan_quickly(offloading, offloading->graph, &quick);
    if (status != TARN_OK) return status;
    offloading->before = tarn_plan_footprint(quick);
    offloading->bytes = offloading->budget.budget > 0 ? offloading->budget.budget : UNLIMITED;
    if (!offloading->has_budget && offloading->planning->capacity > 0)
        offloading->bytes = offloading->planning->capacity;
    keep_to_capacity(offloading, quick);
    tarn_plan_destroy(quick);
    return TARN_OK;
}

static enum tarn_status refuse(struct offloading *offloading)
{
    char limit[96];
    snprintf(limit, sizeof limit,
             offloading->has_budget ? "the budget of %llu bytes"
                                    : "the limit of %llu bytes, all that the capacity leaves,",
             (unsigned long long)offloading->bytes);
    if (is_over(offloading))
        return tarn_error_set(offloading->error, TARN_DEADLINE,
                              "the time was over before a way to keep to %s was found", limit);
    if (offloading->least == UINT64_MAX)
        return tarn_error_set(
            offloading->error, TARN_DOES_NOT_FIT,
            "%s cannot be met by moves: too little of what is alive at once idles "
            "long enough, or is %llu bytes or more",
            limit, (unsigned long long)offloading->terms.bytes_min);
    tarn_error_set(offloading->error, TARN_DOES_NOT_FIT,
                   "%s cannot be met: the least footprint found is %llu bytes%s", limit,
                   (unsigned long long)offloading->least,
                   always_moves(offloading)
                       ? "; what persists and moves takes bytes of the arena around its uses"
                       : "");
    return tarn_error_found(offloading->error, TARN_DOES_NOT_FIT, offloading->least);
}

/* As fast as can be: nothing moves. */
static enum tarn_status run_unlimited(struct offloading *offloading, struct tarn_planned *result)
{
    struct tarn_budget_options options = offloading->budget;
    if (options.method == TARN_BUDGET_OFFLOAD) options.method = TARN_BUDGET_KEEP;
    return tarn_budgeting_run(offloading->graph, &options, 0, offloading->planning, result,
                              offloading->error);
}

static enum tarn_status run_within(struct offloading *offloading, struct tarn_planned *result)
{
    enum tarn_status status = look_at_given(offloading);
    if (status == TARN_OK && offloading->bytes == UNLIMITED)
        return run_unlimited(offloading, result);
    offloading->place_part = PLACE_PART;
    if (status == TARN_OK) status = search(offloading);
    if (status == TARN_OK && !offloading->best.made.graph && !is_over(offloading))
        status = find_least(offloading);
    finish_starts(offloading);
    tarn_graph_destroy(offloading->smallest);
    if (status == TARN_OK && !offloading->best.made.graph) {
        give_budget_report(offloading, offloading->least == UINT64_MAX ? 0 : offloading->least);
        status = refuse(offloading);
    }
    if (status != TARN_OK) {
        tarn_planned_finish(&offloading->best.made);
        return status;
    }
    give_budget_report(offloading, tarn_plan_footprint(offloading->best.made.plan));
    *result = offloading->best.made;
    return TARN_OK;
}

/* Moves for which no op waits; if they do not keep to the capacity, as with a budget of what it
 * leaves. */
static enum tarn_status run_without(struct offloading *offloading, struct tarn_planned *result)
{
    bool fits = false;
    enum tarn_status status =
        find_time_or_tell(offloading, offloading->graph, &offloading->before_ns);
    if (status != TARN_OK) return status;
    status = move_free(offloading, &result->graph);
    if (status == TARN_OK) status = find_whether_it_fits(offloading, result->graph, &fits);
    if (status != TARN_OK || fits) return status;
    tarn_planned_finish(result);
    return run_within(offloading, result);
}

enum tarn_status tarn_offloading_run(struct tarn_graph *graph,
                                     const struct tarn_budget_options *budget,
                                     const struct tarn_offload_options *offload,
                                     const struct tarn_plan_options *planning,
                                     struct tarn_planned *result, struct tarn_error *error)
{
    struct offloading offloading = {.graph = graph,
                                    .budget = *budget,
                                    .options = *offload,
                                    .planning = planning,
                                    .least = UINT64_MAX,
                                    .has_budget = planning->budget != NULL,
                                    .place_part = 1,
                                    .error = error};
    *result = (struct tarn_planned){0};
    tarn_error_clear(error);
    enum tarn_status status = take_terms(&offloading, planning->alignment);
    if (status != TARN_OK) return status;
    offloading.deadline = tarn_deadline_in((const atomic_bool *)planning->stop, planning->seconds);
    status =
        offloading.has_budget ? run_within(&offloading, result) : run_without(&offloading, result);
    if (status == TARN_OK) status = give_report(&offloading, result);
    if (status != TARN_OK) tarn_planned_finish(result);
    return status;
}
