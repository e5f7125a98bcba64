/* Small graphs with all features: every graph of up to 5 ops (small_graph.h), up to the numbering
 * of its ops, with all that a graph may have (small_full_graph.h), planned. The plan must be safe
 * in every interleaving of two iterations; the least arena of each memory space, found by trying
 * every placement, must not be below its bound, and be its footprint where it is called optimal;
 * and of the plan, and of the plan damaged in some way, the verifier must say what the oracle says.
 *
 * Up to 3 ops everything that an arc, an op and a group can be is crossed with all alignments;
 * sizes, outputs, workspaces, parameters and own alignments are drawn, by a fixed seed for each
 * case. From 4 ops on all of it is drawn: some cases for each graph of 4 ops, one for each of 5. In
 * a long campaign all partitions into streams of all arcs of 6 ops come on top, with groupings
 * drawn. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "support/campaign.h"
#include "support/damage.h"
#include "support/interleaving_oracle.h"
#include "support/plan_oracle.h"
#include "support/small_full_graph.h"
#include "tarn.h"

enum { ALIGNMENTS = 3 };
static const uint64_t alignments[ALIGNMENTS] = {1, 4, 512};

struct tally {
    uint64_t graphs, cases, optimal, above, refused, states, spaces;
    struct campaign campaign;
};

static void say(const char *name, const struct tally *tally)
{
    print_message("# %s: %llu graphs, %llu cases, %llu arenas called optimal, %llu bounds below "
                  "the least arena, %llu damaged plans refused, %llu states\n",
                  name, (unsigned long long)tally->graphs, (unsigned long long)tally->cases,
                  (unsigned long long)tally->optimal, (unsigned long long)tally->above,
                  (unsigned long long)tally->refused, (unsigned long long)tally->states);
}

/* ---- One case ---- */

static struct tarn_plan *plan_of(struct tarn_graph *graph, const struct small_full_graph *full,
                                 struct random_source *source)
{
    struct tarn_plan *plan;
    struct tarn_error error;
    struct tarn_plan_options *options =
        TARN_PLAN_OPTIONS(.alignment = full->alignment, .threads = 1,
                          .boundary = random_percent(source, 25) ? TARN_BOUNDARY_SIMPLE
                                                                 : TARN_BOUNDARY_REFINED);
    if (tarn_plan_create(graph, options, &plan, &error)) fail_msg("%s", error.text);
    return plan;
}

static void check_bound(const struct tarn_plan *plan, struct tally *tally)
{
    struct tarn_plan_space_summary summary;
    uint64_t sum = 0, exact;
    for (tarn_space s = 0; tarn_plan_space(plan, s, &summary); s++) {
        uint64_t least = oracle_smallest_arena(plan, s);
        assert_true(summary.bound <= least);
        if (summary.optimal) assert_int_equal(summary.footprint, least);
        tally->optimal += summary.optimal;
        tally->above += summary.bound < least;
        sum += least;
    }
    tally->spaces += plan->spaces_count > 1;
    if (tally->cases % 8 != 0) return;
    assert_int_equal(tarn_graph_bound(plan->graph, &exact, NULL), TARN_OK);
    assert_true(exact <= sum);
}

/* Does the verifier accept it, as the oracle does? */
static bool check_verdict(const struct tarn_plan *plan)
{
    struct tarn_error error = {.status = TARN_OK};
    enum tarn_status status = tarn_plan_verify(plan, plan->graph, NULL, NULL, &error);
    if (oracle_judges(plan, plan->graph) != (status == TARN_OK))
        fail_msg("the verifier says \"%s\"", error.text);
    return status == TARN_OK;
}

/* A damaged plan, if there is one of the kind that is drawn. */
static void check_damage(const struct tarn_plan *plan, struct random_source *source,
                         struct tally *tally)
{
    struct tarn_plan *copy =
        damaged(plan, random_below(source, (uint32_t)damages_count()), 0, source);
    if (copy) tally->refused += !check_verdict(copy);
    tarn_plan_destroy(copy);
}

static void check_case(const struct small_full_graph *full, struct random_source *source,
                       struct tally *tally)
{
    struct tarn_graph *graph = small_full_graph_build(full);
    struct tarn_plan *plan = plan_of(graph, full, source);
    assert_true(check_verdict(plan));
    assert_false(interleaving_oracle_finds_harm(plan, 2, &tally->states));
    check_bound(plan, tally);
    if (tally->cases++ % 2 == 0) check_damage(plan, source, tally);
    tarn_plan_destroy(plan);
    tarn_graph_destroy(graph);
}

/* ---- All graphs ---- */

typedef void (*visit)(const struct small_graph *graph, struct tally *tally);

/* Arcs and streams, up to the numbering; with all groupings, or with all-zero ones and in an order
 * that begins with arcs of all kinds, for those who have not the time for all. */
static void visit_graphs(unsigned ops, bool with_groupings, visit one, struct tally *tally)
{
    struct small_symmetries *symmetries = malloc(sizeof *symmetries);
    assert_non_null(symmetries);
    unsigned masks = 1u << (ops * (ops - 1) / 2), factor = with_groupings ? 1 : 10007;
    for (unsigned i = 0; i < masks; i++) {
        struct small_graph graph = {.ops = ops};
        small_graph_set_arcs(&graph, i * factor % masks);
        do {
            if (!small_graph_is_first_numbering(&graph, symmetries)) continue;
            do {
                if (small_graph_is_first_grouping(&graph, symmetries)) {
                    one(&graph, tally);
                    tally->graphs++;
                }
            } while (with_groupings && small_graph_next_grouping(&graph));
        } while (small_graph_next_streams(&graph));
    }
    free(symmetries);
}

static void draw_cases(const struct small_graph *graph, unsigned count, struct tally *tally)
{
    struct random_source source = {tally->graphs};
    for (unsigned i = 0; i < count; i++) {
        uint64_t alignment = alignments[random_below(&source, ALIGNMENTS)];
        struct small_full_graph full = small_full_graph_draw(graph, alignment, &source);
        check_case(&full, &source, tally);
    }
}

/* ---- All features ---- */

/* The next of all numbers with so many digits below `base`; false after the last. */
static bool next_digits(uint8_t *digits, unsigned count, uint8_t base)
{
    for (unsigned i = 0; i < count; i++) {
        if (++digits[i] < base) return true;
        digits[i] = 0;
    }
    return false;
}

/* Groups as a partition into numbered sets of which the first is no group; false after the last. */
static bool next_groups(struct small_full_graph *full, const uint8_t *roots, unsigned count)
{
    for (unsigned i = count; i-- > 0;) {
        uint8_t highest = 0;
        for (unsigned k = 0; k < i; k++)
            if (full->group[roots[k]] > highest) highest = full->group[roots[k]];
        if (full->group[roots[i]] <= highest) {
            full->group[roots[i]]++;
            return true;
        }
        full->group[roots[i]] = 0;
    }
    return false;
}

static void cross_groups(struct small_full_graph full, struct tally *tally)
{
    uint8_t roots[SMALL_TENSORS];
    unsigned count = small_full_graph_roots(&full, roots);
    memset(full.group, SMALL_NO_GROUP, sizeof full.group);
    do {
        for (unsigned i = 0; i < ALIGNMENTS; i++) {
            struct random_source source = {tally->cases};
            struct small_full_graph drawn =
                small_full_graph_draw(&full.graph, alignments[i], &source);
            memcpy(drawn.role, full.role, sizeof drawn.role);
            memcpy(drawn.control, full.control, sizeof drawn.control);
            memcpy(drawn.group, full.group, sizeof drawn.group);
            for (unsigned k = 0; k < count; k++)
                if (full.group[roots[k]] != SMALL_NO_GROUP) drawn.aligned = 0;
            check_case(&drawn, &source, tally);
        }
    } while (next_groups(&full, roots, count));
}

static void cross_features(const struct small_graph *graph, struct tally *tally)
{
    struct small_full_graph full = {.graph = *graph};
    uint8_t arcs[SMALL_OPS] = {0};
    do {
        bool is_new = true; /* arcs that are not there are no control arcs */
        for (unsigned v = 0; v < graph->ops; v++) {
            full.control[v] = (uint8_t)(arcs[v] << 1);
            if (full.control[v] & ~graph->successors[v]) is_new = false;
        }
        if (!is_new) continue;
        do {
            if (small_full_graph_has_its_roles(&full)) cross_groups(full, tally);
        } while (next_digits(full.role, graph->ops, SMALL_ROLES));
    } while (next_digits(arcs, graph->ops, (uint8_t)(1u << (graph->ops - 1))));
}

static void every_case_of_up_to_3_ops_is_planned_right(void **state)
{
    (void)state;
    struct tally tally = {0};
    for (unsigned ops = 1; ops <= 3; ops++) visit_graphs(ops, true, cross_features, &tally);
    say("up to 3 ops", &tally);
    assert_int_equal(tally.graphs, 1 + 4 + 39);
}

/* ---- Drawn features ---- */

static void draw_several(const struct small_graph *graph, struct tally *tally)
{
    draw_cases(graph, DRAWS(8), tally);
}

static void draw_one(const struct small_graph *graph, struct tally *tally)
{
    if (!HAS_FEW_DRAWS || tally->graphs % 32 == 0) draw_cases(graph, 1, tally);
}

static void every_graph_of_4_and_5_ops_is_planned_right(void **state)
{
    (void)state;
    struct tally four = {0}, five = {0};
    visit_graphs(4, true, draw_several, &four);
    say("4 ops", &four);
    assert_int_equal(four.graphs, 1420);
    visit_graphs(5, true, draw_one, &five);
    say("5 ops", &five);
    assert_int_equal(five.graphs, 213787);
    assert_true(five.refused > DRAWS(10000) && five.above > DRAWS(100));
    assert_true(five.spaces > DRAWS(10000));
}

static void draw_grouping(const struct small_graph *graph, struct tally *tally)
{
    struct random_source source = {~tally->graphs};
    struct small_graph grouped = *graph;
    if (!campaign_has_time(&tally->campaign)) return;
    for (unsigned v = 0; v < graph->ops; v++) {
        uint8_t labels_count = 0;
        for (unsigned arc = 0; arc < (unsigned)__builtin_popcount(graph->successors[v]); arc++) {
            uint8_t label = (uint8_t)random_below(&source, labels_count + 1u);
            grouped.tensor_of[v][arc] = label;
            labels_count = (uint8_t)(labels_count + (label == labels_count));
        }
    }
    draw_cases(&grouped, 1, tally);
}

static void every_graph_of_6_ops_is_planned_right_in_a_campaign(void **state)
{
    (void)state;
    struct tally tally = {.campaign = campaign_begin("cases of 6 ops", 0, 1)};
    if (!campaign_is_long()) skip();
    visit_graphs(6, false, draw_grouping, &tally);
    say("6 ops", &tally);
    assert_int_equal(tally.graphs, 1985178);
    tally.campaign.runs = tally.cases;
    campaign_report(&tally.campaign);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_case_of_up_to_3_ops_is_planned_right),
        cmocka_unit_test(every_graph_of_4_and_5_ops_is_planned_right),
        cmocka_unit_test(every_graph_of_6_ops_is_planned_right_in_a_campaign),
    };
    return cmocka_run_group_tests_name("exhaustive_plans", tests, NULL, NULL);
}
