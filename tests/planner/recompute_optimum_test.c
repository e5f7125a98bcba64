/* Budgets of small nets against the least time and the least bytes that there are, by trying
 * everything. TARN_CAMPAIGN=M: for M minutes on ever new nets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/budget_plan.h"
#include "support/campaign.h"
#include "support/random_graph.h"
#include "support/random_training.h"
#include "support/recompute_optimum.h"

/* One stream, nothing in place before the backward ops, one way to run each op. */
static struct tarn_graph *draw_net(uint64_t seed)
{
    struct random_source source = {seed};
    uint32_t ops = 3 + random_below(&source, 10), passes = 1 + (uint32_t)(seed % 4);
    return random_training(&(struct random_training_options){
        .seed = seed,
        .ops = ops < passes ? 1 : ops / passes,
        .branch_share = random_below(&source, 60),
        .weight_share = random_below(&source, 100),
        .fixed_share = random_below(&source, 20),
        .passes = passes,
        .ahead = random_below(&source, passes),
    });
}

struct gaps {
    uint32_t budgets, refused, above, below, proved;
    double sum, worst; /* of time over the optimum's, less 1 */
};

/* No plan takes less time than the optimum over all ops does. */
static void require_possible(struct recompute_optimum *any, uint64_t budget, uint64_t time_ns)
{
    if (any) assert_true(time_ns >= recompute_optimum_within(any, budget));
}

static void try_net(uint64_t seed, struct gaps *gaps)
{
    struct tarn_graph *graph = draw_net(seed);
    struct recompute_optimum *optimum = recompute_optimum_create(graph, BUDGET_ALIGNMENT, false);
    struct recompute_optimum *any = recompute_optimum_create(graph, BUDGET_ALIGNMENT, true);
    uint64_t least = recompute_optimum_least(optimum), most = budget_footprint_of(graph);
    for (uint64_t part = 0; part <= 4 && most > least; part++) {
        uint64_t budget = least + (most - least) / 5 * part;
        uint64_t best_ns = recompute_optimum_within(optimum, budget);
        struct tarn_budget_report report;
        struct tarn_error error;
        struct tarn_plan *plan;
        enum tarn_status status = budget_plan_within(graph, budget, 0, &report, &plan, &error);
        assert_true(best_ns < UINT64_MAX);
        gaps->budgets++;
        if (status == TARN_DOES_NOT_FIT) {
            gaps->refused++;
            print_message("# seed %llu: %s\n", (unsigned long long)seed, error.text);
            continue;
        }
        if (status != TARN_OK) fail_msg("%s", error.text);
        double gap = (double)report.time_ns / (double)best_ns - 1;
        require_possible(any, budget, report.time_ns);
        gaps->proved += any != NULL;
        gaps->above += report.time_ns > best_ns;
        gaps->below += report.time_ns < best_ns; /* backward ops ran again, too */
        gaps->sum += gap;
        if (gap > gaps->worst) gaps->worst = gap;
        tarn_plan_destroy(plan);
    }
    if (any) recompute_optimum_destroy(any);
    recompute_optimum_destroy(optimum);
    tarn_graph_destroy(graph);
}

static void small_nets_are_planned_at_the_optimum(void **state)
{
    struct campaign campaign = campaign_begin("budgets against the optimum", DRAWS(40), 1);
    struct gaps gaps = {0};
    (void)state;
    for (; campaign_goes_on(&campaign); campaign.next++, campaign.runs = gaps.budgets)
        try_net(campaign.next, &gaps);
    print_message("# %u budgets, %u refused, %u above the optimum of forward ops, %u below, mean "
                  "gap %.3f %%, worst %.2f %%, %u against all ops\n",
                  gaps.budgets, gaps.refused, gaps.above, gaps.below, 100 * gaps.sum / gaps.budgets,
                  100 * gaps.worst, gaps.proved);
    assert_true(gaps.proved * 10 > gaps.budgets);
    assert_true(gaps.refused * 1000 <= gaps.budgets); /* what is there at once may not be placed */
    assert_true(gaps.worst <= 0.1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_nets_are_planned_at_the_optimum),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
