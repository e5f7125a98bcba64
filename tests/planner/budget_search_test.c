/* The search for what to keep, against all policies there are: keep, drop, drop each time for every
 * version, every form for every op, counted through here in another way than there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "planner/transform/budget/budget.h"
#include "support/random_graph.h"
#include "support/random_training.h"

enum { ALIGNMENT = 16, CHAINS = 2000, POLICIES_MAX = 8192 };

/* ---- Graphs ---- */

struct subject {
    struct tarn_graph *graph;
    struct tarn_region region; /* of all that follows */
    struct tarn_recompute_model model;
    struct tarn_evaluator *evaluator;
    struct tarn_policy policy;
    uint64_t budget;
};

static const struct tarn_schedule *evaluate(struct subject *s)
{
    const struct tarn_schedule *schedule = tarn_evaluate(s->evaluator, &s->policy, s->budget);
    assert_non_null(schedule);
    return schedule;
}

/* The budget is drawn between a third of what keeping everything takes and a little more than it.
 */
static struct subject *set_up(const struct random_training_options *options, unsigned classes)
{
    struct random_source source = {options->seed};
    struct subject *s = calloc(1, sizeof *s);
    assert_non_null(s);
    s->graph = random_training(options);
    s->budget = UINT64_MAX / 2;
    assert_int_equal(tarn_recompute_model_init(&s->model, &s->region, s->graph, ALIGNMENT, 0),
                     TARN_OK);
    tarn_recompute_model_restrict(&s->model, classes);
    s->evaluator = tarn_evaluator_create(&s->region, &s->model);
    assert_non_null(s->evaluator);
    assert_int_equal(tarn_policy_init(&s->policy, &s->region, &s->model), TARN_OK);
    s->budget = evaluate(s)->peak * (33 + random_below(&source, 72)) / 100;
    return s;
}

static void tear_down(struct subject *s)
{
    tarn_region_finish(&s->region);
    tarn_graph_destroy(s->graph);
    free(s);
}

static struct random_training_options draw_chain(uint64_t seed, uint32_t implementation_share)
{
    struct random_source source = {seed};
    return (struct random_training_options){
        .seed = seed,
        .ops = 1 + random_below(&source, 8),
        .inplace_share = random_below(&source, 30),
        .weight_share = random_below(&source, 100),
        .implementation_share = implementation_share,
        .fixed_share = random_below(&source, 20),
    };
}

static struct random_training_options draw_branches(uint64_t seed)
{
    struct random_source source = {seed};
    return (struct random_training_options){
        .seed = seed,
        .ops = 1 + random_below(&source, 20),
        .branch_share = random_below(&source, 70),
        .inplace_share = random_below(&source, 40),
        .weight_share = random_below(&source, 100),
        .implementation_share = random_below(&source, 60),
        .fixed_share = random_below(&source, 20),
    };
}

/* ---- All policies ---- */

struct best {
    uint64_t peak, time_ns;
};

static bool is_better(struct best a, struct best b, uint64_t budget)
{
    if (a.peak <= budget && b.peak <= budget) return a.time_ns < b.time_ns;
    return a.peak < b.peak;
}

static bool can_run(const struct tarn_form *form) { return form->whole || form->splits; }

static uint64_t count_policies(const struct subject *s)
{
    uint64_t count = 1;
    for (uint32_t w = 0; w < s->model.versions_count && count <= POLICIES_MAX; w++)
        count *= s->model.versions[w].droppable ? 3 : 1;
    for (uint32_t v = 0; v < s->graph->ops_count && count <= POLICIES_MAX; v++) {
        struct tarn_range range = s->model.op_forms[v];
        uint32_t forms = 0;
        for (uint32_t f = range.begin; f < range.end; f++) forms += can_run(&s->model.forms[f]);
        count *= forms > 1 ? forms + 1 : 1;
    }
    return count;
}

/* Ops from v on. */
static void try_forms(struct subject *s, uint32_t v, struct best *best)
{
    if (v == s->graph->ops_count) {
        const struct tarn_schedule *schedule = evaluate(s);
        struct best found = {schedule->peak, schedule->time_ns};
        if (is_better(found, *best, s->budget)) *best = found;
        return;
    }
    struct tarn_range range = s->model.op_forms[v];
    s->policy.form[v] = TARN_NONE;
    try_forms(s, v + 1, best);
    for (uint32_t f = range.begin; f < range.end && range.end > range.begin + 1; f++) {
        if (!can_run(&s->model.forms[f])) continue;
        s->policy.form[v] = f;
        try_forms(s, v + 1, best);
    }
}

/* Versions below w. */
static void try_versions(struct subject *s, uint32_t w, struct best *best)
{
    if (w == 0) {
        try_forms(s, 0, best);
        return;
    }
    for (int choice = s->model.versions[w - 1].droppable ? 2 : 0; choice >= 0; choice--) {
        s->policy.keep[w - 1] = choice == 0;
        s->policy.retain[w - 1] = choice < 2;
        try_versions(s, w - 1, best);
    }
}

static struct best try_all(struct subject *s)
{
    struct best best = {UINT64_MAX, UINT64_MAX};
    try_versions(s, s->model.versions_count, &best);
    tarn_policy_reset(&s->policy, &s->model);
    return best;
}

/* ---- The search ---- */

static struct tarn_budget_outcome search(struct subject *s, struct tarn_budget_limits limits)
{
    struct tarn_budget_outcome found;
    assert_int_equal(tarn_budget_search(&s->model, s->budget, &limits, &s->policy, &found),
                     TARN_OK);
    const struct tarn_schedule *schedule = evaluate(s);
    assert_int_equal(found.peak, schedule->peak);
    assert_int_equal(found.time_ns, schedule->time_ns);
    assert_int_equal(found.fits, schedule->peak <= s->budget);
    return found;
}

/* A chain few enough policies of which there are; fewer implementations and then ops until that is
 * so. */
static struct subject *small_chain(uint64_t seed)
{
    uint32_t less = 0;
    for (uint32_t share = (uint32_t)(seed % 60);; share /= 2) {
        struct random_training_options options = draw_chain(seed, share);
        less += share == 0;
        options.ops -= less < options.ops ? less : options.ops - 1;
        struct subject *s = set_up(&options, TARN_BUDGET_ALL);
        if (count_policies(s) <= POLICIES_MAX) return s;
        tear_down(s);
    }
}

static void is_as_good_as_all_policies_on_chains(void **state)
{
    uint32_t fitting = 0, recomputing = 0;
    (void)state;
    for (uint64_t seed = 0; seed < CHAINS; seed++) {
        struct subject *s = small_chain(seed);
        struct best best = try_all(s);
        struct tarn_budget_outcome found = search(s, (struct tarn_budget_limits){0});
        assert_int_equal(found.fits, best.peak <= s->budget);
        assert_int_equal(found.fits ? found.time_ns : found.peak,
                         found.fits ? best.time_ns : best.peak);
        fitting += found.fits;
        recomputing += found.fits && evaluate(s)->recomputed_ns > 0;
        tear_down(s);
    }
    assert_in_range(fitting, CHAINS / 3, CHAINS * 9 / 10); /* or it would prove little */
    assert_in_range(recomputing, CHAINS / 20, CHAINS);
}

/* The same chains without trying all: annealing finds most of what there is, and nothing better. */
static void anneals_to_the_best_policy_nearly_always(void **state)
{
    uint32_t chains = 0, best_found = 0;
    (void)state;
    for (uint64_t seed = 0; seed < CHAINS; seed += 10) {
        struct subject *s = small_chain(seed);
        uint64_t policies = count_policies(s);
        if (policies > 1000) {
            struct best best = try_all(s);
            struct tarn_budget_outcome found =
                search(s, (struct tarn_budget_limits){.steps = policies / 2});
            struct best got = {found.peak, found.time_ns};
            assert_false(is_better(got, best, s->budget));
            best_found += !is_better(best, got, s->budget);
            chains++;
        }
        tear_down(s);
    }
    assert_in_range(chains, 20, CHAINS);
    assert_in_range(best_found, chains * 9 / 10, chains);
}

static void is_never_worse_than_its_start(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 200; seed++) {
        struct random_training_options options = draw_branches(seed);
        struct subject *s = set_up(&options, TARN_BUDGET_ALL);
        struct random_source source = {seed};
        for (uint32_t w = 0; w < s->model.versions_count; w++)
            s->policy.keep[w] = random_percent(&source, 50);
        const struct tarn_schedule *schedule = evaluate(s);
        struct best start = {schedule->peak, schedule->time_ns};
        struct tarn_budget_outcome found =
            search(s, (struct tarn_budget_limits){.steps = 1 + seed * 7, .refine = seed % 2 > 0});
        assert_false(is_better(start, (struct best){found.peak, found.time_ns}, s->budget));
        tear_down(s);
    }
}

static void finds_the_same_again(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 20; seed++) {
        struct random_training_options options = draw_branches(1000 + seed);
        struct subject *a = set_up(&options, TARN_BUDGET_ALL);
        struct subject *b = set_up(&options, TARN_BUDGET_ALL);
        search(a, (struct tarn_budget_limits){.steps = 500});
        search(b, (struct tarn_budget_limits){.steps = 500});
        assert_memory_equal(a->policy.keep, b->policy.keep, a->model.versions_count);
        assert_memory_equal(a->policy.form, b->policy.form,
                            a->graph->ops_count * sizeof *a->policy.form);
        tear_down(a);
        tear_down(b);
    }
}

/* ---- Baselines ---- */

/* As written, or another form that reads the same. */
static bool is_own(const struct subject *s, uint32_t f)
{
    const struct tarn_form *form = &s->model.forms[f];
    const struct tarn_form *own = &s->model.forms[s->model.op_forms[form->op].begin];
    uint32_t count = own->reads.end - own->reads.begin;
    return form == own ||
           (form->whole && form->reads.end - form->reads.begin == count &&
            memcmp(s->model.reads + form->reads.begin, s->model.reads + own->reads.begin,
                   count * sizeof *s->model.reads) == 0);
}

static void uses_only_what_its_classes_allow(void **state)
{
    uint32_t other_forms = 0, other_choices = 0, recomputed = 0;
    (void)state;
    for (uint64_t seed = 0; seed < 320; seed++) {
        unsigned classes = 1 + (unsigned)(seed % 15);
        struct random_training_options options = draw_branches(seed);
        struct subject *s = set_up(&options, classes);
        search(s, (struct tarn_budget_limits){.classes = classes, .steps = 400});
        const struct tarn_schedule *schedule = evaluate(s);
        for (uint32_t e = 0; e < schedule->count; e++) {
            const struct tarn_execution *execution = &schedule->executions[e];
            const struct tarn_form *form = &s->model.forms[execution->form];
            bool own = is_own(s, execution->form), chosen = execution->implementation != TARN_NONE;
            if (!(classes & TARN_BUDGET_RECOMPUTE)) assert_false(execution->recomputed);
            if (!(classes & TARN_BUDGET_SPLIT)) assert_false(form->splits);
            bool is_for_again = execution->recomputed && !form->whole;
            if (!(classes & TARN_BUDGET_INPUTS)) assert_true(own || form->splits || is_for_again);
            if (!(classes & TARN_BUDGET_ALGORITHMS)) assert_true(!own || !chosen);
            recomputed += execution->recomputed;
            other_forms += !own;
            other_choices += own && chosen;
        }
        tear_down(s);
    }
    assert_true(recomputed > 100 && other_forms > 100 && other_choices > 100);
}

/* A chain of n equal tensors: about the square root of n stay, and as many are there again. */
static void chens_segments_take_the_square_root(void **state)
{
    (void)state;
    for (uint32_t ops = 16; ops <= 64; ops *= 2) {
        struct random_training_options options = {.seed = ops, .ops = ops, .size_max = 1};
        struct subject *s = set_up(&options, TARN_BUDGET_ALL);
        uint64_t kept = evaluate(s)->peak, time_ns = evaluate(s)->time_ns;
        assert_int_equal(tarn_policy_chen(&s->model, &s->policy), TARN_OK);
        const struct tarn_schedule *schedule = evaluate(s);
        uint32_t root = 4;
        while (root * root < ops) root++;
        assert_in_range(kept, ops * 3 / 4 * ALIGNMENT, (ops + 6) * ALIGNMENT);
        assert_in_range(schedule->peak, root * ALIGNMENT, (2 * root + 4) * ALIGNMENT);
        assert_in_range(schedule->time_ns, time_ns * 11 / 10, time_ns * 2);
        tear_down(s);
    }
}

/* ---- Without other implementations ---- */

static void requires_the_same_choices(struct tarn_graph *graph)
{
    struct tarn_region region = {.chunks = NULL};
    struct tarn_recompute_model whole, some;
    assert_int_equal(tarn_recompute_model_init(&whole, &region, graph, ALIGNMENT, 0), TARN_OK);
    assert_int_equal(tarn_recompute_model_init(&some, &region, graph, ALIGNMENT, 0), TARN_OK);
    tarn_recompute_model_restrict(&some, TARN_BUDGET_RECOMPUTE);
    for (uint32_t f = 0; f < whole.forms_count; f++) {
        assert_int_equal(whole.choices[whole.forms[f].choices.begin].workspace,
                         some.choices[some.forms[f].choices.begin].workspace);
    }
    tarn_region_finish(&region);
    tarn_graph_destroy(graph);
}

/* Where ops have no other implementations, there is nothing to take away, wherever their workspaces
 * lie and whenever those end. */
static void an_op_as_written_keeps_its_workspace(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < DRAWS(100); seed++) {
        struct random_graph_options options = random_graph_knobs(seed, 24);
        options.spaces = 1 + (uint32_t)(seed % 3);
        options.early_share = 50;
        requires_the_same_choices(random_graph(&options));
        requires_the_same_choices(random_training(&(struct random_training_options){
            .seed = seed, .ops = 2 + (uint32_t)(seed % 9), .early_share = 50}));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(is_as_good_as_all_policies_on_chains),
        cmocka_unit_test(anneals_to_the_best_policy_nearly_always),
        cmocka_unit_test(is_never_worse_than_its_start),
        cmocka_unit_test(finds_the_same_again),
        cmocka_unit_test(uses_only_what_its_classes_allow),
        cmocka_unit_test(chens_segments_take_the_square_root),
        cmocka_unit_test(an_op_as_written_keeps_its_workspace),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
