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
#include "support/forge.h"
#include "support/plan_oracle.h"
#include "support/random_training.h"
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
    enum tarn_status status = tarn_plan_verify(plan, plan->graph, NULL, &verdict, &error);
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
    struct tarn_host_options *host = TARN_HOST_OPTIONS(.workers = 1, .binding = TARN_BIND_NONE);
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
            if (copy) tarn_plan_verify(copy, graph, NULL, &verdict, NULL);
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
    tarn_plan_verify(plan, plan->graph, NULL, &verdict, NULL);
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
                        NULL, &graph, &error))
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

/* ---- The graph in the plan, forged ---- */

static uint32_t draw_of(struct tarn_list list, struct random_source *source)
{
    return list.ids[random_below(source, (uint32_t)list.count)];
}

/* What random graphs have not: pairs that may share a storage, other ways to carry an op out, flops
 * and what ops say of being repeated. */
static void enrich_op(struct forgery *f, uint32_t v, uint32_t (*pair)[2],
                      struct tarn_implementation *ways, struct random_source *source)
{
    struct tarn_op_info *op = &f->ops[v];
    op->flops = random_below(source, 3);
    if (op->view || op->inputs.count == 0 || op->outputs.count == 0) return;
    pair[0][0] = draw_of(op->inputs, source);
    pair[0][1] = draw_of(op->outputs, source);
    if (random_percent(source, 40) && f->root[pair[0][1]] == pair[0][1] &&
        f->tensors[pair[0][0]].size == f->tensors[pair[0][1]].size) {
        op->inplace = (const uint32_t(*)[2])pair;
        op->inplace_count = 1;
    }
    if (op->implementations_count > 0 || !random_percent(source, 30)) return;
    ways[0] = (struct tarn_implementation){.name = "slow", .cost = op->cost * 2};
    if (op->inputs.count > 1 && random_below(source, 2)) { /* it leaves the others alone */
        ways[0] = (struct tarn_implementation){
            .name = "lean", .cost = op->cost / 3, .inputs = {op->inputs.ids, 1}};
    }
    ways[1] = (struct tarn_implementation){
        .name = "wide", .cost = op->cost / 2, .workspace = 48, .workspace_first = true};
    op->implementations = ways;
    op->implementations_count = 2;
}

static struct tarn_graph *enriched(struct tarn_graph *graph, struct random_source *source)
{
    struct forgery *f = forgery_of(graph, graph);
    uint32_t(*pairs)[2] = calloc(f->ops_count, sizeof *pairs);
    struct tarn_implementation *ways = calloc(f->ops_count, 2 * sizeof *ways);
    bool may_be_equal = random_below(source, 2);
    for (uint32_t t = 0; t < f->tensors_count && may_be_equal; t++) f->tensors[t].size = 24;
    for (uint32_t v = 0; v < f->ops_count; v++)
        enrich_op(f, v, &pairs[v], &ways[2 * (size_t)v], source);
    struct tarn_graph *result = forgery_build(f);
    if (!result) fail_msg("an enriched graph is none");
    free(pairs);
    free(ways);
    forgery_destroy(f);
    tarn_graph_destroy(graph);
    return result;
}

static struct tarn_graph *source_of_seed(uint64_t seed, struct random_source *source)
{
    if (seed % 2 == 0) return enriched(graph_of_seed(seed / 2, 24), source);
    return enriched(random_training(&(struct random_training_options){
                        .seed = seed,
                        .ops = 3 + random_below(source, 12),
                        .branch_share = 30,
                        .inplace_share = 20,
                        .weight_share = 50,
                        .early_share = 50,
                        .implementation_share = random_below(source, 2) * 60,
                        .view_share = 30,
                        .output_share = 20,
                        .control_share = 30,
                        .bucket = random_below(source, 2),
                        .streams = 1 + random_below(source, 3)}),
                    source);
}

static const char *const kinds_in_place[] = {"work", "relu"};

static struct tarn_plan *transformed_plan(struct tarn_graph *graph, struct random_source *source)
{
    static const uint64_t alignments[] = {1, 4, 64};
    struct tarn_plan *plan, *plain = NULL;
    struct tarn_plan_options options =
        *TARN_PLAN_OPTIONS(.alignment = alignments[random_below(source, 3)], .threads = 1,
                           .effort = TARN_NO_EFFORT, .method = "baseline",
                           .pad_groups = random_below(source, 4));
    struct tarn_transform_control *control = TARN_TRANSFORM_CONTROL(.steps = 6);
    struct tarn_reorder_options *reorder = TARN_REORDER_OPTIONS(.effort = 2, .control = control);
    struct tarn_couple_options *couple =
        TARN_COUPLE_OPTIONS(.slowdown_max = 0.2, .control = control);
    struct tarn_assign_options *assign =
        TARN_ASSIGN_OPTIONS(.mode = random_below(source, 2) ? TARN_ASSIGN_SCHEDULE
                                                            : TARN_ASSIGN_CONCURRENCY);
    struct tarn_in_place_options *in_place =
        TARN_IN_PLACE_OPTIONS(.kinds = kinds_in_place,
                              .kinds_count = random_percent(source, 20) ? 2 : 0);
    struct tarn_budget_options *budget = TARN_BUDGET_OPTIONS(.effort = 20);
    if (random_percent(source, 30)) options.reorder = reorder;
    if (random_percent(source, 30)) options.couple = couple;
    if (random_percent(source, 15)) options.assign = assign;
    if (random_percent(source, 40)) options.in_place = in_place;
    struct tarn_error error;
    if (tarn_plan_create(graph, &options, &plain, &error)) fail_msg("%s", error.text);
    budget->budget = 1 + plain->footprint * (50 + random_below(source, 50)) / 100;
    options.budget = budget;
    if (random_below(source, 2)) return plain;
    enum tarn_status status = tarn_plan_create(graph, &options, &plan, &error);
    if (status == TARN_DOES_NOT_FIT) return plain;
    if (status != TARN_OK) fail_msg("%s", error.text); /* what the planner makes is safe */
    tarn_plan_destroy(plain);
    return plan;
}

static uint64_t digest_of(struct tarn_plan *plan)
{
    struct tarn_session *session;
    struct tarn_error error;
    struct tarn_check_report report;
    struct tarn_host_options *host = TARN_HOST_OPTIONS(.workers = 1, .binding = TARN_BIND_NONE);
    if (tarn_session_create(plan, tarn_device_host(host), NULL, &session, &error))
        fail_msg("%s", error.text);
    if (tarn_session_check(session, TARN_CHECK_OPTIONS(.iterations = 2), &report, &error))
        fail_msg("%s", error.text);
    tarn_session_destroy(session);
    return report.digest;
}

struct forging {
    struct tarn_graph *source;
    struct tarn_plan *plan; /* honest */
    uint64_t seed, digest;
    struct tally *tally;
};

/* Refused, by an op's, a tensor's or another name; or it says what the honest plan says. */
static void judge_forged(const struct forging *forging, const struct forgery *f,
                         const struct forgery_kind *kind, struct tarn_plan *forged)
{
    struct tarn_error error = {.text = ""};
    enum tarn_status status = tarn_plan_verify(forged, forging->source, NULL, NULL, &error);
    count(forging->tally, status == TARN_OK, false, 0);
    if (status != TARN_OK) {
        assert_int_equal(status, TARN_REJECTED);
        assert_true(strlen(error.text) > 0);
        return;
    }
    if (kind->outcome == FORGERY_REFUSED)
        fail_msg("seed %llu: accepted a plan with another %s (%u)",
                 (unsigned long long)forging->seed, kind->name, f->touched);
    if (forged->in_place_kinds_count == 0 && !kind->is_equal(f, forging->plan->graph))
        fail_msg("seed %llu: accepted a plan that does not say the same: %s (%u)",
                 (unsigned long long)forging->seed, kind->name, f->touched);
    if (digest_of(forged) != forging->digest)
        fail_msg("seed %llu: accepted a plan that computes something else: %s (%u)",
                 (unsigned long long)forging->seed, kind->name, f->touched);
}

static void forge(const struct forging *forging, const struct forgery_kind *kind,
                  struct random_source *source)
{
    const struct tarn_graph *final = forging->plan->graph;
    struct forgery *f = forgery_of(final, forging->source);
    struct tarn_graph *graph = kind->apply(f, source) ? forgery_build(f) : NULL;
    if (graph && !tarn_hash_equal(graph->hash, final->hash)) {
        struct tarn_plan *anew = forged_anew(forging->plan, graph);
        struct tarn_plan *as_it_was = forged_as_it_was(forging->plan, graph);
        if (anew) judge_forged(forging, f, kind, anew);
        judge_forged(forging, f, kind, as_it_was);
        tarn_plan_destroy(anew);
        tarn_plan_destroy(as_it_was);
    }
    tarn_graph_destroy(graph);
    forgery_destroy(f);
}

static void refuses_every_forged_field_of_the_plans_graph(void **state)
{
    (void)state;
    struct tally *tallies = calloc(forgery_kinds_count(), sizeof *tallies);
    struct campaign campaign = campaign_begin("forged plans", DRAWS(100), 0.5);
    for (; campaign_goes_on(&campaign); campaign.next++) {
        struct random_source source = {campaign.next * 91 + 3};
        struct forging forging = {.source = source_of_seed(campaign.next, &source),
                                  .seed = campaign.next};
        forging.plan = transformed_plan(forging.source, &source);
        forging.digest = digest_of(forging.plan);
        for (size_t kind = 0; kind < forgery_kinds_count(); kind++) {
            forging.tally = &tallies[kind];
            forge(&forging, forgery_kind(kind), &source);
            campaign.runs++;
        }
        tarn_plan_destroy(forging.plan);
        tarn_graph_destroy(forging.source);
    }
    for (size_t kind = 0; kind < forgery_kinds_count(); kind++) {
        if (campaign_is_long()) say(forgery_kind(kind)->name, &tallies[kind]);
        if (!HAS_FEW_DRAWS) assert_true(tallies[kind].plans > 0);
    }
    free(tallies);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(accepts_every_plan_that_the_planner_makes),
        cmocka_unit_test(says_of_damaged_plans_what_the_rules_say),
        cmocka_unit_test(finds_a_witness_whenever_some_legal_order_corrupts),
        cmocka_unit_test(every_witness_fails_checked_execution),
        cmocka_unit_test(damage_to_a_real_plan_shows_in_checked_execution),
        cmocka_unit_test(refuses_every_forged_field_of_the_plans_graph),
    };
    return cmocka_run_group_tests_name("damage", tests, NULL, NULL);
}
