/* Anneals in many regions at once, for graphs so large that an evaluation for each move would make
 * the search quadratic. The forward part is cut into regions; the cost of an op or a version is
 * counted in its region, even if the op runs again elsewhere. Each step draws a move in every
 * region and evaluates all moves together. Then each region keeps its move or undoes it, by its own
 * costs. Regions affect each other at their borders only, and after every ROUND steps the costs are
 * computed anew.
 *
 * Bytes have a price per place, the higher the nearer the place is to the peak, and all prices
 * together rise while the peak is above the aim and fall while it is below: a subgradient method on
 * the Lagrangian of the budget (H. Everett, "Generalized Lagrange multiplier method", 1963). Cost:
 * a number of evaluations that does not depend on the size of the graph (ROUNDS), or as many as
 * look at PLACES places, if that is more. */
#include <math.h>
#include <string.h>

#include "search.h"

enum {
    REGION_DECISIONS = 192, /* about */
    MOVES_MAX = 4,          /* decisions that a move of a region changes */
    DRAWS_MAX = 8,          /* of decisions, for one that makes a difference */
    ROUND = 12,             /* steps by the same prices */
    ROUNDS = 96,            /* at least */
    REFINING_ROUNDS = 32,
    PLACES = 14 << 20, /* looked at in total, if that is more */
};

/* Values at the start: the price of the aim, as a part of the time; how much worse a move may be,
 * in average times of a forward op. How far below the peak bytes count, as a part of the aim. How
 * fast prices change, in the first and in the last round. */
static const double PRICE = 0.3, HEAT = 1, REFINING_HEAT = 0.2, NEAR_PEAK = 0.01;
static const double FAST = 0.5, SLOW = 0.01;

struct region {
    uint32_t begin, end; /* of `decisions` */
    struct tarn_setting undo[MOVES_MAX];
    uint32_t undo_count;
    double now, then; /* costs in nanoseconds: of the policy before the moves, and with them */
};

struct regions {
    struct tarn_budget_search *search;
    struct region *regions;
    uint32_t count;
    uint32_t *decisions; /* by region */
    uint32_t *of_op;     /* op -> region */
    double *below;       /* place -> sum of the prices of the places before it */
    double price;        /* of a byte that is alive everywhere, in nanoseconds */
};

/* ---- Regions ---- */

/* A backward op belongs to the region of the latest forward result that it reads. */
static uint32_t region_of_backward(const struct regions *regions, uint32_t v, uint32_t otherwise)
{
    const struct tarn_recompute_model *model = regions->search->model;
    const struct tarn_form *form = &model->forms[model->op_forms[v].begin];
    uint32_t region = TARN_NONE;
    for (uint32_t i = form->reads.begin; i < form->reads.end; i++) {
        const struct tarn_version *version = &model->versions[model->reads[i]];
        if (!version->droppable) continue;
        uint32_t r = regions->of_op[version->producer];
        if (region == TARN_NONE || r > region) region = r;
    }
    return region == TARN_NONE ? otherwise : region;
}

static void find_regions_of_ops(struct regions *regions)
{
    const struct tarn_recompute_model *model = regions->search->model;
    uint32_t span = 0, forward = 0, last = regions->count - 1;
    for (uint32_t place = 0; place < model->ops_count; place++) span += model->is_forward[place];
    bool is_mixed = span > 0;
    if (!is_mixed) span = model->ops_count;
    for (uint32_t place = 0; place < model->ops_count; place++) {
        uint32_t v = model->order[place];
        if (model->is_forward[place] || !is_mixed)
            regions->of_op[v] = (uint32_t)((uint64_t)forward++ * regions->count / span);
        else
            last = regions->of_op[v] = region_of_backward(regions, v, last);
    }
}

static uint32_t region_of_decision(const struct regions *regions, uint32_t d)
{
    const struct tarn_budget_space *space = &regions->search->space;
    uint32_t index = space->decisions[d].index;
    return regions
        ->of_op[d < space->versions_count ? regions->search->model->versions[index].producer
                                          : index];
}

static void sort_decisions(struct regions *regions)
{
    uint32_t count = regions->search->space.count, begin = 0;
    for (uint32_t d = 0; d < count; d++) regions->regions[region_of_decision(regions, d)].end++;
    for (uint32_t r = 0; r < regions->count; r++) {
        uint32_t size = regions->regions[r].end;
        regions->regions[r].begin = regions->regions[r].end = begin;
        begin += size;
    }
    for (uint32_t d = 0; d < count; d++)
        regions->decisions[regions->regions[region_of_decision(regions, d)].end++] = d;
}

static bool init(struct regions *regions, struct tarn_budget_search *search)
{
    const struct tarn_recompute_model *model = search->model;
    *regions = (struct regions){.search = search,
                                .count = search->space.count / REGION_DECISIONS + 1,
                                .price = PRICE * (double)search->best_time / (double)search->aim};
    struct tarn_region *region = &search->region;
    regions->regions = tarn_region_take(region, regions->count, sizeof *regions->regions);
    regions->decisions = tarn_region_take(region, search->space.count, sizeof *regions->decisions);
    regions->of_op = tarn_region_take(region, model->graph->ops_count, sizeof *regions->of_op);
    regions->below = tarn_region_take(region, (size_t)model->ops_count + 2, sizeof *regions->below);
    if (region->is_exhausted) return false;
    find_regions_of_ops(regions);
    sort_decisions(regions);
    return true;
}

/* ---- Costs ---- */

static uint32_t place_of(const struct regions *regions, uint32_t execution)
{
    const struct tarn_schedule *schedule = regions->search->schedule;
    return execution < schedule->count ? schedule->executions[execution].place
                                       : regions->search->model->ops_count - 1;
}

/* Prices of places, by the schedule evaluated last. */
static void set_prices(struct regions *regions)
{
    const struct tarn_schedule *schedule = regions->search->schedule;
    uint32_t places = regions->search->model->ops_count;
    double near = NEAR_PEAK * (double)regions->search->aim, sum = 0;
    for (uint32_t place = 0; place <= places; place++) regions->below[place] = 0;
    for (uint32_t e = 0; e < schedule->count; e++) {
        double weight = exp(-(double)(schedule->peak - schedule->bytes[e]) / near);
        double *highest = &regions->below[schedule->executions[e].place];
        if (weight > *highest) *highest = weight;
    }
    for (uint32_t place = 0; place < places; place++) sum += regions->below[place];
    double before = 0;
    for (uint32_t place = 0; place <= places; place++) {
        double own = sum > 0 ? regions->below[place] / sum : 0;
        regions->below[place] = before;
        before += own;
    }
}

/* By how much an execution lengthens the critical path so far. */
static double lengthens(const struct regions *regions, uint32_t e, uint64_t *path_ns)
{
    const struct tarn_budget_search *search = regions->search;
    const struct tarn_schedule *schedule = search->schedule;
    double work = (double)tarn_execution_ns(search->model, &schedule->executions[e]);
    if (!schedule->end_ns) return work;
    uint64_t before = *path_ns;
    if (schedule->end_ns[e] > before) *path_ns = schedule->end_ns[e];
    return (double)(*path_ns - before) + work / TARN_SEARCH_WORK_WEIGHT;
}

/* Of the schedule evaluated last, into `then`. */
static void sum_costs(struct regions *regions)
{
    const struct tarn_recompute_model *model = regions->search->model;
    const struct tarn_schedule *schedule = regions->search->schedule;
    uint64_t path_ns = 0;
    for (uint32_t r = 0; r < regions->count; r++) regions->regions[r].then = 0;
    for (uint32_t e = 0; e < schedule->count; e++) {
        uint32_t v = model->forms[schedule->executions[e].form].op;
        regions->regions[regions->of_op[v]].then += lengthens(regions, e, &path_ns);
    }
    for (uint32_t c = 0; c < schedule->copies_count; c++) {
        const struct tarn_copy *copy = &schedule->copies[c];
        const struct tarn_version *version = &model->versions[copy->version];
        double alive = regions->below[place_of(regions, copy->last_read) + 1] -
                       regions->below[place_of(regions, copy->birth)];
        regions->regions[regions->of_op[version->producer]].then +=
            regions->price * (double)version->size * alive;
    }
}

/* ---- Steps ---- */

static void take_back(struct regions *regions, struct region *region)
{
    while (region->undo_count > 0) {
        const struct tarn_setting *change = &region->undo[--region->undo_count];
        tarn_decision_set(&regions->search->space, regions->search->policy, change->decision,
                          change->value);
    }
}

static void move(struct regions *regions, struct region *region)
{
    struct tarn_budget_search *search = regions->search;
    uint32_t count = region->end - region->begin;
    region->undo_count = 0;
    if (count == 0) return;
    search->undo_count = 0;
    for (int i = 0; i < DRAWS_MAX && search->undo_count == 0; i++)
        tarn_search_move(search,
                         regions->decisions[region->begin + tarn_search_draw(search, count)]);
    if (search->undo_count > MOVES_MAX) tarn_search_take_back(search);
    region->undo_count = search->undo_count;
    memcpy(region->undo, search->undo, search->undo_count * sizeof *search->undo);
    search->undo_count = 0;
}

static void step(struct regions *regions, double heat)
{
    for (uint32_t r = 0; r < regions->count; r++) move(regions, &regions->regions[r]);
    tarn_search_evaluate(regions->search);
    bool failed = regions->search->ended || regions->search->peak == UINT64_MAX;
    if (!failed) sum_costs(regions);
    for (uint32_t r = 0; r < regions->count; r++) {
        struct region *region = &regions->regions[r];
        if (region->undo_count == 0) continue;
        double luck = (double)tarn_search_draw(regions->search, 1 << 20) / (1 << 20);
        if (failed || region->then > region->now + heat * luck * luck)
            take_back(regions, region);
        else
            region->now = region->then;
    }
}

/* Takes costs and prices anew; false: the search has ended, or the policy cannot be carried out. */
static bool begin_round(struct regions *regions, double change)
{
    struct tarn_budget_search *search = regions->search;
    tarn_search_evaluate(search);
    if (search->ended || search->peak == UINT64_MAX) return false;
    regions->price *= search->above > 0 ? 1 + change : 1 / (1 + change);
    tarn_search_note_roles(search);
    set_prices(regions);
    sum_costs(regions);
    for (uint32_t r = 0; r < regions->count; r++)
        regions->regions[r].now = regions->regions[r].then;
    return true;
}

static void run(struct regions *regions, bool refine, double heat, uint64_t rounds)
{
    heat *= tarn_search_usual_time(regions->search);
    for (uint64_t i = 0; i < rounds; i++) {
        double left = 1 - (double)i / (double)rounds;
        double change = (refine ? FAST / 4 : FAST) * left * left + SLOW;
        if (!begin_round(regions, change)) return;
        for (int k = 0; k < ROUND && !regions->search->ended; k++)
            step(regions, heat * left * left);
    }
}

static uint64_t least_of(uint64_t a, uint64_t b) { return a < b ? a : b; }

/* If evaluations are cheap, runs once more from the best policy: a slow annealing alone may end in
 * another local minimum than the fast one, and in no better one. */
static void run_twice(struct regions *regions, bool refine, uint64_t steps)
{
    uint64_t most = steps / (ROUND + 1) + 1;
    uint64_t places = (ROUND + 1) * ((uint64_t)regions->search->model->ops_count + 1);
    uint64_t rounds = least_of(refine ? REFINING_ROUNDS : ROUNDS, most);
    uint64_t more = least_of((refine ? PLACES / 3 : PLACES) / places, most);
    run(regions, refine, refine ? REFINING_HEAT : HEAT, rounds);
    if (more <= rounds || regions->search->ended) return;
    tarn_search_take_best(regions->search);
    run(regions, true, HEAT, more - rounds);
}

void tarn_search_anneal_regions(struct tarn_budget_search *search, bool refine, uint64_t steps)
{
    struct regions regions;
    if (init(&regions, search))
        run_twice(&regions, refine, steps);
    else
        search->no_memory = search->ended = true;
}
