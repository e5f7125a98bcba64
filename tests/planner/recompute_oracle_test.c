/* Plans within budgets, against oracles that share no code with the transform: what a plan
 * computes, in values, and what it costs. TARN_CAMPAIGN=M: for M minutes on ever new graphs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bench/deep_training.h"
#include "support/budget_plan.h"
#include "support/campaign.h"
#include "support/random_training.h"
#include "support/recompute_oracle.h"
#include "support/training_graph.h"

enum { ITERATIONS = 3, ORDERS = 6 };

/* ---- Plans within budgets ---- */

static void require(enum tarn_status status, const struct tarn_error *error)
{
    if (status != TARN_OK) fail_msg("%s", error->text);
}

/* What has been looked at. */
struct tally {
    uint32_t plans, again, implemented, refused, gathered_again;
};

static void requires_the_same_values(const struct recompute_meaning *meaning,
                                     const struct tarn_plan *plan, struct random_source *random)
{
    char why[RECOMPUTE_WHY];
    for (int i = 0; i < ORDERS; i++) {
        if (!recompute_meaning_is_kept(meaning, plan, random, why)) fail_msg("%s", why);
    }
}

static void requires_the_costs_told(const struct tarn_plan *plan,
                                    const struct tarn_budget_report *report, uint64_t budget,
                                    struct tally *tally)
{
    struct recompute_costs costs = recompute_costs_of(plan);
    assert_int_equal(report->work_ns, costs.work_ns);
    assert_int_equal(report->recomputed_ns, costs.again_ns);
    assert_int_equal(report->time_ns, costs.path_ns);
    assert_int_equal(report->executions, costs.launches);
    assert_int_equal(report->recomputed, costs.again);
    assert_int_equal(report->implemented, costs.implemented);
    assert_int_equal(report->footprint, plan->footprint);
    assert_true(plan->footprint <= budget);
    if (plan->graph->streams_count == 1) { /* waits between streams may change the list order */
        assert_int_equal(report->peak, costs.peak);
        assert_true(costs.peak <= plan->footprint);
    }
    tally->plans++;
    tally->again += costs.again;
    tally->implemented += costs.implemented;
}

/* What communicates is matched by other devices by its place in its stream. */
static void requires_collectives_at_home(const struct tarn_plan *plan,
                                         const struct tarn_graph *graph, struct tally *tally)
{
    for (uint32_t v = 0; v < plan->graph->ops_count; v++) {
        const struct tarn_graph_op *op = &plan->graph->ops[v];
        if (op->view || tarn_graph_op_class(graph, op->origin) != TARN_CLASS_COLLECTIVE) continue;
        assert_int_equal(op->stream, graph->ops[op->origin].stream);
        tally->gathered_again += tarn_plan_op_is_recomputed(plan, (tarn_op){v});
    }
}

/* The two numbers of a refusal. */
static void read_refusal(const char *text, unsigned long long *least, unsigned long long *floor)
{
    const char *found = strstr(text, "found is "), *below = strstr(text, "below ");
    assert_true(found && sscanf(found, "found is %llu", least) == 1);
    assert_true(below && sscanf(below, "below %llu", floor) == 1);
}

/* Takes the graph. */
static void try_budgets(struct tarn_graph *graph, uint64_t seed, uint64_t effort,
                        struct tally *tally)
{
    struct recompute_meaning *meaning = recompute_meaning_create(graph, ITERATIONS);
    struct random_source random = {seed};
    uint64_t most = budget_footprint_of(graph);
    for (uint32_t percent = 95; percent >= 35; percent -= 20) {
        uint64_t budget = most * percent / 100;
        struct tarn_budget_report report;
        struct tarn_error error;
        struct tarn_plan *plan;
        if (budget == 0) break;
        enum tarn_status status = budget_plan_within(graph, budget, effort, &report, &plan, &error);
        if (status == TARN_DOES_NOT_FIT) {
            unsigned long long least, floor;
            read_refusal(error.text, &least, &floor);
            assert_true(floor <= least && budget < least);
            require(budget_plan_within(graph, least, effort, &report, &plan, &error), &error);
            tally->refused++;
            budget = least;
            percent = 0;
        }
        require(status == TARN_DOES_NOT_FIT ? TARN_OK : status, &error);
        requires_the_same_values(meaning, plan, &random);
        requires_collectives_at_home(plan, graph, tally);
        requires_the_costs_told(plan, &report, budget, tally);
        tarn_plan_destroy(plan);
        if (percent == 0) break;
    }
    recompute_meaning_destroy(meaning);
    tarn_graph_destroy(graph);
}

/* ---- Graphs ---- */

static struct tarn_graph *draw_training(uint64_t seed)
{
    struct random_source source = {seed};
    uint32_t passes = 1 + (uint32_t)(seed % 3), /* the more of them, the shorter */
        ops = 2 + random_below(&source, 13);
    return random_training(&(struct random_training_options){
        .seed = seed,
        .ops = 1 + ops / passes,
        .branch_share = random_below(&source, 60),
        .inplace_share = random_below(&source, 40),
        .weight_share = random_below(&source, 100),
        .implementation_share = random_below(&source, 60),
        .fixed_share = random_below(&source, 20),
        .streams = 1 + random_below(&source, 4),
        .scatter_share = random_below(&source, 60),
        .view_share = random_below(&source, 40),
        .random_share = random_below(&source, 30),
        .gather_share = random_below(&source, 40),
        .output_share = random_below(&source, 15),
        .control_share = random_below(&source, 30),
        .bucket = random_percent(&source, 30),
        .passes = passes,
        .ahead = passes > 1 ? random_below(&source, passes) : 0,
    });
}

static struct tarn_graph *draw_graph(uint64_t seed)
{
    struct random_graph_options options = random_graph_knobs(seed, 24);
    options.backward_share = 50;
    options.view_share += 10;
    return random_graph(&options);
}

static void training_steps_compute_the_same_within_a_budget(void **state)
{
    struct campaign campaign = campaign_begin("budgets of training steps", DRAWS(90), 0.6);
    struct tally tally = {0};
    (void)state;
    for (; campaign_goes_on(&campaign); campaign.next++, campaign.runs = tally.plans)
        try_budgets(draw_training(campaign.next), campaign.next, 400, &tally);
    try_budgets(draw_training(684), 684, 400, &tally); /* an output with several versions */
    print_message("# %u plans, %u ops again, %u implementations, %u refused\n", tally.plans,
                  tally.again, tally.implemented, tally.refused);
    assert_true(tally.again > DRAWS(120) && tally.implemented > DRAWS(80));
    assert_true(tally.gathered_again > DRAWS(10));
}

static void random_graphs_compute_the_same_within_a_budget(void **state)
{
    struct campaign campaign = campaign_begin("budgets of random graphs", DRAWS(90), 0.4);
    struct tally tally = {0};
    (void)state;
    for (; campaign_goes_on(&campaign); campaign.next++, campaign.runs = tally.plans)
        try_budgets(draw_graph(campaign.next), campaign.next, 200, &tally);
    print_message("# %u plans, %u ops again, %u refused\n", tally.plans, tally.again,
                  tally.refused);
    assert_true(tally.again > DRAWS(20));
}

static void steps_like_real_ones_compute_the_same_within_a_budget(void **state)
{
    struct tally tally = {0};
    (void)state;
    for (uint32_t streams = 1; streams <= 3; streams++) {
        for (int family = DEEP_PLAIN; family <= DEEP_TRANSFORMER; family++)
            try_budgets(budget_assigned(deep_training((enum deep_family)family, 2), streams),
                        streams, 400, &tally);
        for (unsigned layers = 1; layers <= 5; layers += 2)
            try_budgets(budget_assigned(training_graph(layers).graph, streams), layers, 400,
                        &tally);
    }
    print_message("# %u plans, %u ops again, %u refused\n", tally.plans, tally.again,
                  tally.refused);
    assert_true(tally.again > 50);
}

/* ---- The oracle itself ---- */

static bool is_kept(const struct recompute_meaning *meaning, const struct tarn_plan *plan)
{
    struct random_source random = {7};
    char why[RECOMPUTE_WHY];
    for (int i = 0; i < 40; i++) {
        if (!recompute_meaning_is_kept(meaning, plan, &random, why)) return false;
    }
    return true;
}

/* How many of the plan's waits, left out one at a time, are missed. */
static uint32_t count_missed(const struct recompute_meaning *meaning, struct tarn_wait *waits,
                             uint32_t *count, const struct tarn_plan *plan)
{
    uint32_t missed = 0, all = (*count)--;
    for (uint32_t i = 0; i < all; i++) {
        struct tarn_wait last = waits[all - 1], left_out = waits[i];
        waits[i] = last;
        missed += !is_kept(meaning, plan);
        waits[i] = left_out;
        waits[all - 1] = last;
    }
    *count = all;
    return missed;
}

static uint32_t count_bad_origins(const struct recompute_meaning *meaning, struct tarn_plan *plan)
{
    uint32_t bad = 0;
    for (uint32_t v = 0; v + 1 < plan->graph->ops_count; v++) {
        struct tarn_graph_op *op = &plan->graph->ops[v], before = *op;
        if (op->view) continue;
        op->origin = plan->graph->ops[v + 1].origin;
        bad +=
            op->origin != before.origin && !plan->graph->ops[v + 1].view && is_kept(meaning, plan);
        *op = before;
    }
    return bad;
}

static uint32_t count_bad_offsets(const struct recompute_meaning *meaning, struct tarn_plan *plan,
                                  uint32_t *moved)
{
    uint32_t harmed = 0;
    for (uint32_t i = 0; i < plan->storages_count; i++) {
        struct tarn_place *place = &plan->storages[i], before = *place;
        place->offset = plan->storages[(i + 1) % plan->storages_count].offset;
        *moved += place->offset != before.offset;
        harmed += !is_kept(meaning, plan);
        *place = before;
    }
    return harmed;
}

static void the_oracle_finds_lost_waits_false_origins_and_shared_bytes(void **state)
{
    uint32_t waits = 0, missed = 0, moved = 0, harmed = 0;
    (void)state;
    for (uint64_t seed = 0; seed < 12; seed++) {
        struct tarn_graph *graph = draw_training(seed);
        struct recompute_meaning *meaning = recompute_meaning_create(graph, ITERATIONS);
        struct tarn_budget_report report;
        struct tarn_error error;
        struct tarn_plan *plan;
        if (budget_plan_within(graph, budget_footprint_of(graph) * 9 / 10, 100, &report, &plan,
                               &error) == TARN_OK &&
            report.recomputed > 0) {
            assert_true(is_kept(meaning, plan));
            waits += plan->waits_count + plan->boundary_waits_count;
            missed += count_missed(meaning, plan->waits, &plan->waits_count, plan);
            missed +=
                count_missed(meaning, plan->boundary_waits, &plan->boundary_waits_count, plan);
            assert_int_equal(count_bad_origins(meaning, plan), 0);
            harmed += count_bad_offsets(meaning, plan, &moved);
        }
        tarn_plan_destroy(plan);
        recompute_meaning_destroy(meaning);
        tarn_graph_destroy(graph);
    }
    print_message("# %u of %u waits missed, %u of %u moves harm\n", missed, waits, harmed, moved);
    assert_true(waits > 20 && missed > waits * 3 / 4);
    assert_true(moved > 20 && harmed > moved / 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_oracle_finds_lost_waits_false_origins_and_shared_bytes),
        cmocka_unit_test(training_steps_compute_the_same_within_a_budget),
        cmocka_unit_test(random_graphs_compute_the_same_within_a_budget),
        cmocka_unit_test(steps_like_real_ones_compute_the_same_within_a_budget),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
