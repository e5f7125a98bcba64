/* Random graphs with everything that a graph may have, planned by every method after all sorts of
 * transforms. Of every plan: an oracle that shares no code with planner and verifier judges it as
 * the verifier does, and so after a damage; no bound is above a footprint of the same graph; two
 * threads make the same plan as one; a saved plan is loaded as it was. A share is run: checked
 * execution finds nothing, and the digest of what it computes is that of the graph that was given,
 * run without sharing a byte.
 * Time goes by steps, so that a seed gives the same case everywhere. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "streams/text/text_file.h"
#include "support/campaign.h"
#include "support/damage.h"
#include "support/plan_oracle.h"
#include "support/random_training.h"
#include "support/unshared_plan.h"
#include "tarn.h"

enum { OPS_MAX = 200, RUN_SHARE = 25, ITERATIONS = 3 };

struct tally {
    uint64_t plans, transformed, optimal, runs, damaged, refused, unfit, budgets, capacities,
        spaces_runs;
};

/* ---- Cases ---- */

/* Options that point to each other. */
struct choice {
    struct tarn_plan_options plan;
    struct tarn_assign_options assign;
    struct tarn_reorder_options reorder;
    struct tarn_couple_options couple;
    struct tarn_in_place_options in_place;
    struct tarn_budget_options budget;
    struct tarn_transform_control control;
};

static struct random_graph_options draw_knobs(struct random_source *source)
{
    struct random_graph_options options = random_graph_knobs(random_next(source), OPS_MAX - 4);
    options.ops = 5 + random_below(source, random_below(source, 2) ? 30 : OPS_MAX - 4);
    options.fill_share = random_below(source, 4) ? 0 : random_below(source, 50);
    options.backward_share = random_below(source, 2) ? 50 : 0;
    options.early_share = random_below(source, 2) ? random_below(source, 100) : 0;
    options.padded_share = random_below(source, 3) * 40;
    options.spaces = random_below(source, 4) ? 0 : 1 + random_below(source, 3);
    return options;
}

static struct tarn_graph *draw_training(struct random_source *source)
{
    return random_training(&(struct random_training_options){
        .seed = random_next(source),
        .ops = 3 + random_below(source, 40),
        .branch_share = random_below(source, 50),
        .inplace_share = random_below(source, 30),
        .weight_share = random_below(source, 60),
        .early_share = random_below(source, 2) ? random_below(source, 100) : 0,
        .implementation_share = random_below(source, 2) ? random_below(source, 80) : 0,
        .fixed_share = random_below(source, 20),
        .streams = 1 + random_below(source, 3)});
}

static const char *draw_method(struct random_source *source)
{
    size_t count = 0;
    if (random_percent(source, 40)) return NULL;
    while (tarn_plan_method(count)) count++;
    return tarn_plan_method(random_below(source, (uint32_t)count));
}

static void draw_transforms(struct choice *choice, struct random_source *source)
{
    static const char *const kinds[] = {"work", "relu"};
    uint64_t alignment = choice->plan.alignment;
    choice->control = *TARN_TRANSFORM_CONTROL(.steps = 1 + random_below(source, 12));
    choice->assign =
        *TARN_ASSIGN_OPTIONS(.mode = random_below(source, 2) ? TARN_ASSIGN_SCHEDULE
                                                             : TARN_ASSIGN_CONCURRENCY,
                             .streams = 1 + random_below(source, 4), .alignment = alignment);
    choice->reorder =
        *TARN_REORDER_OPTIONS(.alignment = alignment, .effort = 4,
                              .keep_time = random_below(source, 2), .control = &choice->control,
                              .slowdown_max = random_below(source, 3) * 0.1);
    choice->couple =
        *TARN_COUPLE_OPTIONS(.alignment = alignment, .slowdown_max = random_below(source, 3) * 0.05,
                             .control = &choice->control);
    choice->in_place =
        *TARN_IN_PLACE_OPTIONS(.kinds = kinds, .kinds_count = random_below(source, 3));
    if (random_percent(source, 20)) choice->plan.assign = &choice->assign;
    if (random_percent(source, 30)) choice->plan.reorder = &choice->reorder;
    if (random_percent(source, 30)) choice->plan.couple = &choice->couple;
    if (random_percent(source, 40)) choice->plan.in_place = &choice->in_place;
}

static void draw_choice(struct choice *choice, struct random_source *source)
{
    static const uint64_t alignments[] = {1, 4, 64, 512, 4096};
    static const uint64_t efforts[] = {TARN_NO_EFFORT, 4, 40};
    choice->plan =
        *TARN_PLAN_OPTIONS(.alignment = alignments[random_below(source, 5)],
                           .method = draw_method(source), .threads = 1, .seed = random_next(source),
                           .effort = efforts[random_below(source, 3)],
                           .boundary = random_percent(source, 25) ? TARN_BOUNDARY_SIMPLE
                                                                  : TARN_BOUNDARY_REFINED);
    if (random_percent(source, 60)) draw_transforms(choice, source);
    if (random_percent(source, 30))
        choice->plan.pad_groups = (enum tarn_group_padding)random_below(source, 4);
}

/* Bytes between half and all of what the graph takes without a budget. */
static void draw_budget(struct choice *choice, struct tarn_graph *graph,
                        struct random_source *source)
{
    struct tarn_plan *plan;
    struct tarn_plan_summary summary;
    if (tarn_plan_create(graph, &choice->plan, &plan, NULL)) return;
    tarn_plan_summarize(plan, &summary);
    tarn_plan_destroy(plan);
    uint64_t budget = 1 + summary.footprint * (50 + random_below(source, 50)) / 100;
    choice->budget =
        *TARN_BUDGET_OPTIONS(.budget = budget, .effort = 60, .alignment = choice->plan.alignment);
    choice->plan.budget = &choice->budget;
}

/* ---- Files ---- */

static char *text_of(const struct tarn_plan *plan)
{
    char path[] = "/tmp/tarn-property-test-XXXXXX";
    struct tarn_error error;
    char *text = NULL;
    size_t size;
    int file = mkstemp(path);
    assert_true(file >= 0);
    close(file);
    if (tarn_plan_save(plan, path, &error) ||
        tarn_text_read(path, TARN_TEXT_MAX, &text, &size, &error))
        fail_msg("%s", error.text);
    unlink(path);
    return text;
}

/* Loaded from a file, it says what it said, and is verified once more. */
static void check_file(const struct tarn_plan *plan, struct tarn_graph *source,
                       const struct choice *choice)
{
    const struct tarn_in_place_options *asked = choice->plan.in_place;
    const struct tarn_verify_options *allowed =
        TARN_VERIFY_OPTIONS(.in_place_kinds = asked ? asked->kinds : NULL,
                            .in_place_kinds_count = asked ? asked->kinds_count : 0);
    char path[] = "/tmp/tarn-property-test-XXXXXX";
    struct tarn_error error;
    struct tarn_plan *loaded = NULL;
    int file = mkstemp(path);
    assert_true(file >= 0);
    close(file);
    if (tarn_plan_save(plan, path, &error) ||
        tarn_plan_load(path, source, TARN_VERIFY, allowed, &loaded, &error))
        fail_msg("%s", error.text);
    unlink(path);
    char *before = text_of(plan), *after = text_of(loaded);
    assert_string_equal(before, after);
    free(before);
    free(after);
    tarn_plan_destroy(loaded);
}

/* ---- Runs ---- */

static uint64_t digest_of(struct tarn_plan *plan, uint64_t seed)
{
    struct tarn_session *session;
    struct tarn_error error;
    struct tarn_check_report report;
    struct tarn_host_options *host = TARN_HOST_OPTIONS(.workers = 2, .binding = TARN_BIND_NONE);
    if (tarn_session_create(plan, tarn_device_host(host), NULL, &session, &error))
        fail_msg("%s", error.text);
    if (tarn_session_check(session,
                           TARN_CHECK_OPTIONS(.random_order = seed % 2 == 0, .seed = seed,
                                              .iterations = ITERATIONS),
                           &report, &error))
        fail_msg("seed %llu: %s", (unsigned long long)seed, error.text);
    tarn_session_destroy(session);
    return report.digest;
}

static void check_by_running(struct tarn_plan *plan, struct tarn_graph *source, uint64_t seed)
{
    struct tarn_plan *apart = unshared_plan(source, 8);
    assert_int_equal(digest_of(plan, seed), digest_of(apart, seed));
    tarn_plan_destroy(apart);
}

/* ---- Plans ---- */

static bool check_verdict(const struct tarn_plan *plan, const struct tarn_graph *source,
                          uint64_t seed)
{
    struct tarn_error error = {.status = TARN_OK};
    enum tarn_status status = tarn_plan_verify(plan, source, NULL, NULL, &error);
    if (oracle_judges(plan, source) != (status == TARN_OK))
        fail_msg("seed %llu: the verifier says \"%s\"", (unsigned long long)seed, error.text);
    return status == TARN_OK;
}

static void check_damage(const struct tarn_plan *plan, const struct tarn_graph *source,
                         uint64_t seed, struct tally *tally)
{
    struct random_source random = {~seed};
    for (uint32_t i = 0; i < 3; i++) {
        size_t kind = random_below(&random, (uint32_t)damages_count());
        struct tarn_plan *copy = damaged(plan, kind, 0, &random);
        if (!copy) continue;
        tally->damaged++;
        tally->refused += !check_verdict(copy, source, seed);
        tarn_plan_destroy(copy);
    }
}

static void require_same(const struct tarn_plan *plan, struct tarn_graph *graph,
                         struct choice *choice)
{
    struct tarn_plan *other;
    struct tarn_error error;
    choice->plan.threads = 2;
    if (tarn_plan_create(graph, &choice->plan, &other, &error)) fail_msg("%s", error.text);
    choice->plan.threads = 1;
    char *one = text_of(plan), *two = text_of(other);
    assert_string_equal(one, two);
    free(one);
    free(two);
    tarn_plan_destroy(other);
}

static void compare_bounds(const struct tarn_plan *plan, const struct tarn_plan *other)
{
    struct tarn_plan_space_summary one, two;
    for (tarn_space s = 0; tarn_plan_space(plan, s, &one); s++) {
        assert_true(tarn_plan_space(other, s, &two));
        assert_true(one.bound <= two.footprint && two.bound <= one.footprint);
        if (one.optimal) assert_true(one.footprint <= two.footprint);
    }
}

/* No bound is above the footprint of another plan of the same graph and alignment. */
static void check_against_other_methods(const struct tarn_plan *plan, uint64_t seed)
{
    struct random_source source = {seed};
    for (uint32_t i = 0; i < 2; i++) {
        struct tarn_plan *other;
        struct tarn_error error;
        struct tarn_plan_options *options =
            TARN_PLAN_OPTIONS(.alignment = plan->alignment, .threads = 1, .effort = TARN_NO_EFFORT,
                              .method = draw_method(&source));
        if (tarn_plan_create(plan->graph, options, &other, &error)) fail_msg("%s", error.text);
        compare_bounds(plan, other);
        tarn_plan_destroy(other);
    }
}

static enum tarn_status plan_within(struct random_graph_options *knobs, const uint64_t *capacities,
                                    const struct choice *choice)
{
    struct tarn_plan *plan;
    struct tarn_error error;
    knobs->capacities = capacities;
    struct tarn_graph *graph = random_graph(knobs);
    enum tarn_status status = tarn_plan_create(graph, &choice->plan, &plan, &error);
    if (status == TARN_OK) assert_true(check_verdict(plan, graph, knobs->seed));
    tarn_plan_destroy(plan);
    tarn_graph_destroy(graph);
    return status;
}

/* Capacities of memory spaces: what a plan takes is enough, less than its bounds is too little. A
 * budget makes another graph, and so do waits that aim at the capacity with the order that is best
 * for them; a new order alone does not depend on capacities, and where it does not fit, the order
 * that was given answers. */
static void check_capacities(const struct tarn_plan *plan, struct random_graph_options knobs,
                             const struct choice *choice, struct tally *tally)
{
    uint64_t capacities[TARN_SPACES_MAX] = {0};
    struct tarn_plan_space_summary space;
    struct choice given = *choice;
    const struct tarn_plan_options *options = &choice->plan;
    for (tarn_space s = 0; s < knobs.spaces; s++) {
        assert_true(tarn_plan_space(plan, s, &space));
        capacities[s] = space.footprint + space.persistent;
    }
    assert_int_equal(plan_within(&knobs, capacities, choice), TARN_OK);
    tarn_space s = (tarn_space)(knobs.seed % knobs.spaces);
    assert_true(tarn_plan_space(plan, s, &space));
    capacities[s] = space.bound + space.persistent - 1;
    if (space.bound == 0 || capacities[s] == 0 || options->budget) return;
    enum tarn_status status = plan_within(&knobs, capacities, choice);
    if (options->reorder && options->couple) return;
    given.plan.reorder = NULL;
    if (options->reorder) assert_int_equal(status, plan_within(&knobs, capacities, &given));
    if (!options->reorder) assert_int_equal(status, TARN_DOES_NOT_FIT);
    tally->capacities++;
}

static void check_plan(struct tarn_plan *plan, struct tarn_graph *graph, struct choice *choice,
                       uint64_t seed, struct tally *tally)
{
    struct tarn_plan_summary summary;
    struct tarn_plan_space_summary first;
    tarn_plan_summarize(plan, &summary);
    assert_true(check_verdict(plan, graph, seed));
    assert_true(summary.bound <= summary.footprint);
    assert_true(tarn_plan_space(plan, 0, &first));
    if (choice->plan.budget) assert_true(first.footprint <= choice->budget.budget);
    require_same(plan, graph, choice);
    check_file(plan, graph, choice);
    check_damage(plan, graph, seed, tally);
    if (seed % 3 == 0) check_against_other_methods(plan, seed);
    if (seed % 100 < RUN_SHARE) {
        check_by_running(plan, graph, seed);
        tally->runs++;
        tally->spaces_runs += plan->spaces_count > 1;
    }
    tally->plans++;
    tally->transformed += plan->transformed;
    tally->optimal += summary.optimal;
    tally->budgets += choice->plan.budget != NULL;
}

static void check_case(uint64_t seed, struct tally *tally)
{
    struct random_source source = {seed};
    bool is_training = random_percent(&source, 30);
    struct random_graph_options knobs = {.spaces = 0};
    if (!is_training) knobs = draw_knobs(&source);
    struct tarn_graph *graph = is_training ? draw_training(&source) : random_graph(&knobs);
    struct choice choice = {.plan = {0}};
    struct tarn_plan *plan;
    struct tarn_error error;
    draw_choice(&choice, &source);
    if (random_percent(&source, is_training ? 60 : 10)) draw_budget(&choice, graph, &source);
    enum tarn_status status = tarn_plan_create(graph, &choice.plan, &plan, &error);
    if (status == TARN_OK) {
        check_plan(plan, graph, &choice, seed, tally);
        if (knobs.spaces > 0) check_capacities(plan, knobs, &choice, tally);
        tarn_plan_destroy(plan);
    } else if (status != TARN_DOES_NOT_FIT || !choice.plan.budget) {
        fail_msg("seed %llu: %s", (unsigned long long)seed, error.text);
    }
    tally->unfit += status != TARN_OK;
    tarn_graph_destroy(graph);
}

static void every_plan_is_safe_and_computes_the_graph(void **state)
{
    (void)state;
    struct tally tally = {0};
    struct campaign campaign = campaign_begin("property runs", HAS_FEW_DRAWS ? 40 : 300, 1);
    for (; campaign_goes_on(&campaign); campaign.runs++, campaign.next++)
        check_case(campaign.next, &tally);
    print_message("# %llu plans, %llu of transformed graphs, %llu within a budget, %llu optimal, "
                  "%llu run (%llu of several memory spaces), %llu damaged, %llu of these refused; "
                  "%llu budgets that cannot be met, %llu "
                  "capacities below the bound\n",
                  (unsigned long long)tally.plans, (unsigned long long)tally.transformed,
                  (unsigned long long)tally.budgets, (unsigned long long)tally.optimal,
                  (unsigned long long)tally.runs, (unsigned long long)tally.spaces_runs,
                  (unsigned long long)tally.damaged, (unsigned long long)tally.refused,
                  (unsigned long long)tally.unfit, (unsigned long long)tally.capacities);
    assert_true(tally.transformed > DRAWS(60) && tally.refused > DRAWS(100));
    assert_true(tally.runs > DRAWS(30) && tally.spaces_runs >= DRAWS(5) &&
                tally.capacities >= DRAWS(10));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_plan_is_safe_and_computes_the_graph),
    };
    return cmocka_run_group_tests_name("property", tests, NULL, NULL);
}
