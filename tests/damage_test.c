/* Plans of random graphs, damaged in every way of damage.h: the verifier says what the oracle says,
 * and every witness does what it claims, on the oracle's bytes and in checked execution. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/campaign.h"
#include "support/damage.h"
#include "support/plan_oracle.h"
#include "tarn.h"

/* ---- Plans to damage ---- */

static struct tarn_graph *graph_of_seed(uint64_t seed, uint32_t ops_max)
{
    static const uint64_t capacities[] = {1 << 30, 0, 1 << 28, 0}; /* more than any needs */
    struct random_graph_options options = random_graph_knobs(seed, ops_max);
    options.size_max = 1 + (uint32_t)(seed % 24);
    options.fill_share = seed % 5 == 0 ? 40 : 0;
    options.padded_share = (uint32_t)(seed % 4 * 25);
    options.early_share = (uint32_t)(seed % 3 * 40);
    options.spaces = seed % 4 == 3 ? 1 + (uint32_t)(seed / 4 % 4) : 0;
    options.capacities = capacities;
    return random_graph(&options);
}

/* For checked execution, which knows bytes by their values: a few may be equal by chance. So plans
 * of these graphs have a large alignment, by which blocks are moved (seed 2). */
static struct tarn_graph *large_graph_of_seed(uint64_t seed)
{
    struct random_graph_options options = random_graph_knobs(seed, 20);
    options.size_max = 4096;
    options.tiny_share = 0;
    options.early_share = (uint32_t)(seed % 3 * 40);
    return random_graph(&options);
}

static struct tarn_plan *plan_of(struct tarn_graph *graph, uint64_t seed)
{
    static const uint64_t alignments[] = {1, 4, 512, 8};
    struct tarn_plan *plan;
    struct tarn_error error;
    struct tarn_plan_options *options =
        TARN_PLAN_OPTIONS(.alignment = alignments[seed % 4], .threads = 1, .effort = TARN_NO_EFFORT,
                          .boundary = seed / 4 % 2);
    if (tarn_plan_create(graph, options, &plan, &error))
        fail_msg("seed %llu: %s", (unsigned long long)seed, error.text);
    return plan;
}

/* ---- What is asked of a verdict ---- */

static size_t count_witnesses(const struct tarn_verdict *verdict)
{
    size_t count = 0;
    for (size_t i = 0; i < tarn_verdict_count(verdict); i++)
        count += tarn_verdict_get(verdict, i)->witness != NULL;
    return count;
}

static void check_witnesses(const struct tarn_plan *plan, const struct tarn_verdict *verdict)
{
    for (size_t i = 0; i < tarn_verdict_count(verdict); i++) {
        const struct tarn_violation *violation = tarn_verdict_get(verdict, i);
        if (!violation->witness) continue;
        assert_true(oracle_is_legal(plan, violation->witness, violation->witness_count));
        if (!oracle_corrupts(plan, violation->witness, violation->witness_count))
            fail_msg("witness that harms nobody: %s", violation->text);
    }
}

/* Verifies, compares with the oracle, checks all witnesses; the number of witnesses. */
static size_t compare_with_rules(const struct tarn_plan *plan, uint64_t seed, bool *accepted)
{
    struct tarn_verdict *verdict;
    struct tarn_error error;
    enum tarn_status status = tarn_plan_verify(plan, plan->graph, &verdict, &error);
    *accepted = status == TARN_OK;
    if (*accepted != oracle_judges(plan, plan->graph))
        fail_msg("seed %llu: the verifier says \"%s\"", (unsigned long long)seed, error.text);
    assert_int_equal(status == TARN_OK, tarn_verdict_count(verdict) == 0);
    if (status != TARN_OK) assert_int_equal(status, TARN_REJECTED);
    check_witnesses(plan, verdict);
    size_t witnesses = count_witnesses(verdict);
    tarn_verdict_destroy(verdict);
    return witnesses;
}

struct tally {
    uint64_t plans, accepted, rejected, harmful, witnessed;
};

static void say(const char *name, const struct tally *tally)
{
    print_message(
        "# %s: %llu damaged plans, %llu accepted, %llu rejected, %llu harmful, %llu with witness\n",
        name, (unsigned long long)tally->plans, (unsigned long long)tally->accepted,
        (unsigned long long)tally->rejected, (unsigned long long)tally->harmful,
        (unsigned long long)tally->witnessed);
}

static void count(struct tally *tally, bool accepted, bool harmful, size_t witnesses)
{
    tally->plans++;
    tally->accepted += accepted;
    tally->rejected += !accepted;
    tally->harmful += harmful;
    tally->witnessed += witnesses > 0;
}

/* ---- Campaigns ---- */

static void accepts_every_plan_that_the_planner_makes(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < DRAWS(1500); seed++) {
        struct tarn_graph *graph = graph_of_seed(seed, 40);
        struct tarn_plan *plan = plan_of(graph, seed);
        bool accepted;
        compare_with_rules(plan, seed, &accepted);
        assert_true(accepted);
        tarn_plan_destroy(plan);
        tarn_graph_destroy(graph);
    }
}

/* Can it be run as it is? */
static bool is_playable(const struct tarn_plan *plan)
{
    return oracle_is_for(plan, plan->graph) && oracle_is_well_formed(plan) &&
           !oracle_deadlocks(plan);
}

/* Random orders show some of the harm; what they show must be rejected, with a witness. */
static void judge_by_draws(const struct tarn_plan *plan, uint64_t seed, struct tally *tally,
                           struct random_source *source)
{
    bool accepted, harmful = false;
    size_t witnesses = compare_with_rules(plan, seed, &accepted);
    uint32_t tries = !is_playable(plan) ? 0 : accepted ? 1 : 4;
    for (uint32_t i = 0; i < tries && !harmful; i++) harmful = oracle_draws_harm(plan, 3, source);
    if (harmful) assert_true(witnesses > 0);
    count(tally, accepted, harmful, witnesses);
}

/* Every kind alone, then with up to three others. */
static void damage_in_all_ways(struct tarn_plan *plan, uint64_t seed, struct tally *alone,
                               struct tally *mixed)
{
    struct random_source source = {seed * 77 + 5};
    for (size_t i = 0; i < 2 * damages_count(); i++) {
        size_t kind = i % damages_count();
        bool is_mixed = i >= damages_count();
        uint32_t more = is_mixed ? 1 + random_below(&source, DAMAGES_MAX - 1) : 0;
        struct tarn_plan *copy = damaged(plan, kind, more, &source);
        if (copy) judge_by_draws(copy, seed, is_mixed ? mixed : &alone[kind], &source);
        tarn_plan_destroy(copy);
    }
}

static void require_outcome(const struct damage *kind, const struct tally *tally)
{
    if (campaign_is_long()) say(kind->name, tally);
    if (kind->outcome == DAMAGE_REFUSED) assert_int_equal(tally->accepted, 0);
    if (kind->outcome == DAMAGE_SOUND) assert_int_equal(tally->rejected, 0);
    if (HAS_FEW_DRAWS) return;
    if (kind->outcome != DAMAGE_REFUSED) assert_true(tally->accepted > 0);
    if (kind->outcome != DAMAGE_SOUND) assert_true(tally->rejected > 0);
}

static void says_of_damaged_plans_what_the_rules_say(void **state)
{
    (void)state;
    struct tally *alone = calloc(damages_count(), sizeof *alone), mixed = {0};
    struct campaign campaign = campaign_begin("damaged plans", DRAWS(400), 0.9);
    for (; campaign_goes_on(&campaign); campaign.next++) {
        struct tarn_graph *graph = graph_of_seed(campaign.next, 30);
        struct tarn_plan *plan = plan_of(graph, campaign.next);
        damage_in_all_ways(plan, campaign.next, alone, &mixed);
        campaign.runs = mixed.plans;
        for (size_t kind = 0; kind < damages_count(); kind++) campaign.runs += alone[kind].plans;
        tarn_plan_destroy(plan);
        tarn_graph_destroy(graph);
    }
    for (size_t kind = 0; kind < damages_count(); kind++)
        require_outcome(damage_kind(kind), &alone[kind]);
    say("several at once", &mixed);
    free(alone);
}

/* Every legal order of two iterations is run: harm and witness come together. */
static void judge_by_all_orders(const struct tarn_plan *plan, uint64_t seed, struct tally *tally)
{
    bool accepted;
    uint32_t tries = 3000;
    size_t witnesses = compare_with_rules(plan, seed, &accepted);
    if (!is_playable(plan)) return;
    bool harmful = oracle_finds_harm(plan, 2, &tries);
    if (!harmful && tries > 0) {
        uint32_t once = 3000;
        harmful = oracle_finds_harm(plan, 1, &once);
    }
    if (harmful && witnesses == 0) fail_msg("seed %llu: no witness", (unsigned long long)seed);
    if (tries > 0 && !harmful) assert_int_equal(witnesses, 0);
    count(tally, accepted, harmful, witnesses);
}

static void finds_a_witness_whenever_some_legal_order_corrupts(void **state)
{
    (void)state;
    struct tally tally = {0};
    struct campaign campaign = campaign_begin("damaged plans, all orders", DRAWS(500), 0.1);
    for (; campaign_goes_on(&campaign); campaign.next++) {
        struct random_source source = {campaign.next * 31 + 1};
        struct tarn_graph *graph = graph_of_seed(campaign.next, 6);
        struct tarn_plan *plan = plan_of(graph, campaign.next);
        for (size_t kind = 0; kind < damages_count(); kind++) {
            struct tarn_plan *copy = damaged(plan, kind, random_below(&source, 2), &source);
            if (copy) judge_by_all_orders(copy, campaign.next, &tally);
            tarn_plan_destroy(copy);
        }
        campaign.runs = tally.plans;
        tarn_plan_destroy(plan);
        tarn_graph_destroy(graph);
    }
    say("all orders", &tally);
    assert_true(tally.harmful > DRAWS(100) && tally.accepted > DRAWS(100));
}

/* ---- Checked execution agrees ---- */

static enum tarn_status run_checked(struct tarn_plan *plan,
                                    const struct tarn_check_options *options,
                                    struct tarn_error *error)
{
    struct tarn_session *session;
    struct tarn_host_options *host = TARN_HOST_OPTIONS(.workers = 1, .unpinned = true);
    if (tarn_session_create(plan, tarn_device_host(host), NULL, &session, error))
        fail_msg("%s", error->text);
    enum tarn_status status = tarn_session_check(session, options, NULL, error);
    tarn_session_destroy(session);
    return status;
}

static void check_by_running(struct tarn_plan *plan, const struct tarn_violation *violation)
{
    struct tarn_error error;
    enum tarn_status status = run_checked(
        plan,
        TARN_CHECK_OPTIONS(.order = violation->witness, .order_count = violation->witness_count),
        &error);
    if (status != TARN_CHECK_FAILED)
        fail_msg("checked execution does not see: %s (%s)", violation->text, error.text);
}

static void every_witness_fails_checked_execution(void **state)
{
    (void)state;
    uint32_t runs = 0;
    for (uint64_t seed = 0; seed < DRAWS(150); seed++) {
        struct random_source source = {seed * 13 + 7};
        struct tarn_graph *graph = large_graph_of_seed(seed);
        struct tarn_plan *plan = plan_of(graph, 2);
        for (size_t kind = 0; kind < damages_count(); kind++) {
            struct tarn_plan *copy = damaged(plan, kind, 0, &source);
            struct tarn_verdict *verdict = NULL;
            if (copy) tarn_plan_verify(copy, graph, &verdict, NULL);
            for (size_t i = 0; verdict && i < tarn_verdict_count(verdict); i++) {
                if (!tarn_verdict_get(verdict, i)->witness) continue;
                check_by_running(copy, tarn_verdict_get(verdict, i));
                runs++;
            }
            tarn_verdict_destroy(verdict);
            tarn_plan_destroy(copy);
        }
        tarn_plan_destroy(plan);
        tarn_graph_destroy(graph);
    }
    assert_true(runs > DRAWS(100));
}

/* The first witness must fail; what is accepted must pass in an adverse order. */
static bool judge_real_plan(struct tarn_plan *plan, uint64_t seed)
{
    struct tarn_verdict *verdict;
    struct tarn_error error;
    tarn_plan_verify(plan, plan->graph, &verdict, NULL);
    size_t i = 0, count = tarn_verdict_count(verdict);
    while (i < count && !tarn_verdict_get(verdict, i)->witness) i++;
    if (i < count) check_by_running(plan, tarn_verdict_get(verdict, i));
    if (count == 0 &&
        run_checked(plan, TARN_CHECK_OPTIONS(.random_order = true, .seed = seed, .iterations = 2),
                    &error))
        fail_msg("accepted, but %s", error.text);
    tarn_verdict_destroy(verdict);
    return i < count;
}

static void damage_to_a_real_plan_shows_in_checked_execution(void **state)
{
    (void)state;
    struct random_source source = {1};
    struct tarn_graph *graph;
    struct tarn_error error;
    uint32_t witnessed = 0;
    if (tarn_graph_load(TARN_SOURCE_DIR "/examples/graphs/googlenet_b1_adam.ddp_branch4.json.gz",
                        &graph, &error))
        fail_msg("%s", error.text);
    struct tarn_plan *plan = plan_of(graph, 3);
    for (size_t kind = 0; kind < damages_count(); kind++) {
        struct tarn_plan *copy = damaged(plan, kind, 0, &source);
        if (copy) witnessed += judge_real_plan(copy, kind);
        tarn_plan_destroy(copy);
    }
    assert_true(witnessed >= 4);
    tarn_plan_destroy(plan);
    tarn_graph_destroy(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(accepts_every_plan_that_the_planner_makes),
        cmocka_unit_test(says_of_damaged_plans_what_the_rules_say),
        cmocka_unit_test(finds_a_witness_whenever_some_legal_order_corrupts),
        cmocka_unit_test(every_witness_fails_checked_execution),
        cmocka_unit_test(damage_to_a_real_plan_shows_in_checked_execution),
    };
    return cmocka_run_group_tests_name("damage", tests, NULL, NULL);
}
