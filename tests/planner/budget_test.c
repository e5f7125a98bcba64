/* Keeping to a budget as a whole: what is refused, what the least is, what an early end leaves, and
 * streams beside each other. Graphs: random training steps, as they are and assigned to streams,
 * and deep ones of two families. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "bench/deep_training.h"
#include "support/budget_plan.h"
#include "support/random_graph.h"
#include "support/random_training.h"

enum { EFFORT = 400 };

static void require(enum tarn_status status, const struct tarn_error *error)
{
    if (status != TARN_OK) fail_msg("%s", error->text);
}

/* ---- Graphs ---- */

static struct tarn_graph *draw_graph(uint64_t seed)
{
    struct random_source source = {seed};
    struct tarn_graph *graph = random_training(&(struct random_training_options){
        .seed = seed,
        .ops = 2 + random_below(&source, 14),
        .branch_share = random_below(&source, 60),
        .inplace_share = random_below(&source, 40),
        .weight_share = random_below(&source, 100),
        .implementation_share = random_below(&source, 60),
        .fixed_share = random_below(&source, 30),
    });
    return budget_assigned(graph, 1 + (uint32_t)(seed % 3));
}

static struct tarn_graph *deep_graph(enum deep_family family, uint32_t blocks, uint32_t streams)
{
    return budget_assigned(deep_training(family, blocks), streams);
}

static enum tarn_status plan_within(struct tarn_graph *graph, uint64_t budget,
                                    struct tarn_budget_report *report, struct tarn_error *error)
{
    struct tarn_plan *plan = NULL;
    enum tarn_status status = budget_plan_within(graph, budget, EFFORT, report, &plan, error);
    if (status == TARN_OK) {
        struct tarn_plan_summary summary;
        tarn_plan_summarize(plan, &summary);
        assert_true(summary.footprint <= budget);
        assert_int_equal(summary.footprint, report->footprint);
    }
    tarn_plan_destroy(plan);
    return status;
}

/* ---- Alignments ---- */

/* At an alignment at which two tensors need more than 2^64 bytes a budget says so; at one that all
 * of them can be counted at, it is kept. */
static void require_told(struct tarn_graph *graph)
{
    struct tarn_graph *result;
    struct tarn_budget_report rows[2];
    struct tarn_error error;
    const struct tarn_budget_options *options =
        TARN_BUDGET_OPTIONS(.budget = 1 << 20, .alignment = UINT64_C(1) << 63, .effort = 2);
    assert_int_equal(tarn_graph_budget(graph, options, &result, &error), TARN_BAD_INPUT);
    assert_null(result);
    assert_non_null(strstr(error.text, "at alignment 9223372036854775808; use a smaller"));
    assert_int_equal(tarn_graph_budget_curve(graph, options, rows, 2, &error), TARN_BAD_INPUT);
    assert_non_null(strstr(error.text, "use a smaller alignment"));
    assert_int_equal(
        tarn_graph_budget(graph, TARN_BUDGET_OPTIONS(.alignment = UINT64_C(1) << 40, .effort = 2),
                          &result, &error),
        TARN_OK);
    tarn_graph_destroy(result);
    tarn_graph_destroy(graph);
}

static void sizes_that_overflow_at_the_alignment_are_told(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed < 9; seed++) require_told(draw_graph(seed));
    require_told(deep_graph((enum deep_family)0, 3, 2));
}

/* ---- The least ---- */

/* What a refusal of one byte says. */
static uint64_t least_of(struct tarn_graph *graph)
{
    struct tarn_budget_report report;
    struct tarn_error error;
    if (plan_within(graph, 1, &report, &error) == TARN_OK) return 0; /* nothing to place */
    assert_non_null(strstr(error.text, "cannot be met"));
    return report.footprint;
}

static void requires_one_least(struct tarn_graph *graph)
{
    uint64_t least = least_of(graph), most = budget_footprint_of(graph);
    struct tarn_budget_report report;
    struct tarn_error error;
    if (least == 0) return;
    for (uint64_t part = 1; part <= 3; part++) {
        uint64_t budget = part < 3 ? least / 3 * part : least - 1;
        if (budget == 0) continue;
        if (plan_within(graph, budget, &report, &error) == TARN_OK)
            fail_msg("%llu bytes are kept to, the least is told to be %llu",
                     (unsigned long long)budget, (unsigned long long)least);
        assert_int_equal(error.status, TARN_DOES_NOT_FIT);
        assert_int_equal(report.footprint, least);
    }
    for (uint64_t part = 0; part <= 4; part++) {
        uint64_t budget = most > least ? least + (most - least) / 4 * part : least;
        require(plan_within(graph, budget, &report, &error), &error);
    }
}

static void the_least_is_one_number_and_every_budget_from_it_on_is_kept(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < DRAWS(12); seed++) {
        struct tarn_graph *graph = draw_graph(seed);
        requires_one_least(graph);
        tarn_graph_destroy(graph);
    }
    for (uint32_t streams = 1; streams <= 2; streams++) {
        struct tarn_graph *graph = deep_graph(DEEP_TRANSFORMER, 2, streams);
        requires_one_least(graph);
        tarn_graph_destroy(graph);
    }
}

/* Contiguous groups, and so few steps in the end that a footprint once found is not always found
 * again: what is told to be the least has to be. */
static void the_least_is_kept_to_with_little_effort(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < DRAWS(60); seed++) {
        struct tarn_graph *graph =
            random_training(&(struct random_training_options){.seed = seed,
                                                              .ops = 6 + (uint32_t)(seed % 9),
                                                              .branch_share = 30,
                                                              .weight_share = 70,
                                                              .streams = 1 + (uint32_t)(seed % 2),
                                                              .bucket = true});
        struct tarn_budget_report report = {.footprint = 0};
        struct tarn_error error;
        for (uint64_t budget = 1, i = 0; i < 2; i++, budget = report.footprint) {
            struct tarn_plan *plan = NULL;
            enum tarn_status status = tarn_plan_create(
                graph,
                TARN_PLAN_OPTIONS(.threads = 1, .alignment = BUDGET_ALIGNMENT,
                                  .effort = 1 + seed % 3,
                                  .budget = TARN_BUDGET_OPTIONS(.budget = budget, .effort = 80,
                                                                .report = &report)),
                &plan, &error);
            assert_int_equal(status == TARN_OK, i == 1);
            tarn_plan_destroy(plan);
        }
        tarn_graph_destroy(graph);
    }
}

static void the_least_by_implementations_alone_computes_nothing_again(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < DRAWS(8); seed++) {
        struct tarn_graph *graph = draw_graph(seed), *result;
        struct tarn_budget_report report;
        struct tarn_error error;
        tarn_graph_budget(graph,
                          TARN_BUDGET_OPTIONS(.budget = 1, .alignment = BUDGET_ALIGNMENT,
                                              .effort = 100, .method = TARN_BUDGET_GIST,
                                              .report = &report),
                          &result, &error);
        assert_int_equal(report.recomputed, 0);
        tarn_graph_destroy(result);
        tarn_graph_destroy(graph);
    }
}

/* ---- Streams ---- */

static double overhead_at(struct tarn_graph *graph, uint64_t percent)
{
    struct tarn_budget_report report;
    struct tarn_error error;
    require(plan_within(graph, budget_footprint_of(graph) / 100 * percent, &report, &error),
            &error);
    return (double)report.time_ns / (double)report.time_before_ns - 1;
}

/* Of both the modelled critical path counts: the same budget must not cost several streams much
 * more than one, although there is less work beside which something could be computed again. */
static void streams_beside_each_other_cost_hardly_more_than_one(void **state)
{
    (void)state;
    for (int family = DEEP_PLAIN; family <= DEEP_TRANSFORMER; family++) {
        struct tarn_graph *one = deep_graph((enum deep_family)family, 8, 1);
        struct tarn_graph *two = deep_graph((enum deep_family)family, 8, 2);
        double cost = overhead_at(one, 75), beside = overhead_at(two, 75);
        print_message("# family %d: %.2f %% of one stream, %.2f %% of two\n", family, 100 * cost,
                      100 * beside);
        assert_true(beside <= 2 * cost + 0.01);
        tarn_graph_destroy(one);
        tarn_graph_destroy(two);
    }
}

/* Two streams that drift apart hold everything; waits bring that down and cost nothing. */
static void waits_come_before_computing_again(void **state)
{
    (void)state;
    struct tarn_graph *graph = deep_graph(DEEP_PLAIN, 40, 2);
    struct tarn_budget_report report;
    struct tarn_error error;
    require(plan_within(graph, budget_footprint_of(graph) / 100 * 75, &report, &error), &error);
    assert_int_equal(report.recomputed, 0);
    assert_int_equal(report.time_ns, report.time_before_ns);
    tarn_graph_destroy(graph);
}

static uint64_t time_of(const struct tarn_graph *graph)
{
    struct tarn_simulation *simulation;
    struct tarn_error error;
    require(tarn_graph_simulate(graph, BUDGET_ALIGNMENT, TARN_WAIT_NS, &simulation, &error),
            &error);
    uint64_t ns = simulation->makespan_ns;
    tarn_simulation_destroy(simulation);
    return ns;
}

/* What waits alone bring down to a budget is one of the ways to keep to it. */
static void takes_no_more_time_than_waits_alone(void **state)
{
    (void)state;
    uint32_t costly = 0;
    for (uint64_t seed = 0; seed < DRAWS(60); seed++) {
        struct tarn_graph *coupled,
            *graph = random_graph(&(struct random_graph_options){
                .seed = seed, .ops = 40, .streams = 2 + (uint32_t)(seed % 3), .reach = 6});
        struct tarn_couple_options waits = {.struct_size = sizeof waits,
                                            .alignment = BUDGET_ALIGNMENT,
                                            .keep = (double)(seed % 4) / 4,
                                            .slowdown_max = 1000};
        struct tarn_budget_report report;
        struct tarn_error error;
        require(tarn_graph_couple(graph, &waits, &coupled, &error), &error);
        uint64_t footprint = budget_footprint_of(coupled), ns = time_of(coupled);
        require(plan_within(graph, footprint, &report, &error), &error);
        costly += ns > report.time_before_ns;
        assert_true(report.time_ns <= ns);
        tarn_graph_destroy(coupled);
        tarn_graph_destroy(graph);
    }
    assert_true(costly > 0);
}

/* Coupling and in-place outputs come before the budget, and may leave it less to choose from. */
static void coupling_and_in_place_take_nothing_from_a_budget(void **state)
{
    (void)state;
    uint32_t kept = 0, refused = 0;
    for (uint64_t seed = 0; seed < DRAWS(60); seed++) {
        struct tarn_graph *graph = random_graph(&(struct random_graph_options){
            .seed = seed, .ops = 30, .streams = 2 + (uint32_t)(seed % 3), .reach = 8});
        struct tarn_budget_report plain, report;
        struct tarn_couple_report waits;
        uint64_t budget = budget_footprint_of(graph) / 100 * (60 + seed % 40);
        struct tarn_plan *plan = NULL, *other = NULL;
        struct tarn_error error;
        enum tarn_status status = budget_plan_within(graph, budget, EFFORT, &plain, &plan, &error);
        enum tarn_status freer = tarn_plan_create(
            graph,
            TARN_PLAN_OPTIONS(.alignment = BUDGET_ALIGNMENT,
                              .couple = TARN_COUPLE_OPTIONS(.report = &waits),
                              .in_place = TARN_IN_PLACE_OPTIONS(.kinds = NULL),
                              .budget = TARN_BUDGET_OPTIONS(.budget = budget, .effort = EFFORT,
                                                            .report = &report)),
            &other, &error);
        if (status == TARN_OK) require(freer, &error);
        if (status == TARN_OK) assert_true(report.time_ns <= plain.time_ns);
        if (freer == TARN_OK)
            assert_true(waits.rows_count > 0 && waits.target < UINT64_MAX);
        else
            assert_true(!waits.rows && waits.rows_count == 0); /* nothing is left to be freed */
        kept += status == TARN_OK;
        refused += freer == TARN_DOES_NOT_FIT;
        tarn_couple_report_finish(&waits);
        tarn_plan_destroy(other);
        tarn_plan_destroy(plan);
        tarn_graph_destroy(graph);
    }
    if (!HAS_FEW_DRAWS) assert_true(kept > 0 && refused > 0);
}

/* ---- Large graphs ---- */

/* What a search takes is counted in evaluations, each of which looks at every op, so that it does
 * not depend on the machine. */
static void effort_is_linear_in_depth(void **state)
{
    (void)state;
    static const enum deep_family families[] = {DEEP_PLAIN, DEEP_RESIDUAL};
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        struct tarn_graph *graph = deep_graph(families[i], 600 / (1 + 2 * (uint32_t)i), 1);
        struct tarn_budget_report report;
        struct tarn_error error;
        uint64_t budget = budget_footprint_of(graph) / 100 * 75;
        const struct tarn_budget_options *options =
            TARN_BUDGET_OPTIONS(.budget = budget, .alignment = BUDGET_ALIGNMENT, .report = &report);
        struct tarn_graph *result;
        require(tarn_graph_budget(graph, options, &result, &error), &error);
        print_message("# %u ops: %llu evaluations\n", tarn_graph_ops_count(graph),
                      (unsigned long long)report.evaluations);
        assert_true(report.evaluations * tarn_graph_ops_count(graph) < UINT64_C(32) << 20);
        assert_true(report.time_ns < report.time_before_ns / 100 * 115);
        tarn_graph_destroy(result);
        tarn_graph_destroy(graph);
    }
}

/* ---- An early end ---- */

struct ending {
    struct tarn_transform_control control;
    uint64_t steps, stop_at;
    bool stop;
};

static void count_step(void *user, const struct tarn_transform_progress *progress)
{
    struct ending *ending = user;
    (void)progress;
    ending->stop = ++ending->steps >= ending->stop_at;
}

static void begin_ending(struct ending *ending, uint64_t stop_at)
{
    *ending = (struct ending){.stop_at = stop_at};
    ending->control = (struct tarn_transform_control){.struct_size = sizeof ending->control,
                                                      .progress = count_step,
                                                      .user = ending,
                                                      .stop = &ending->stop};
}

static void a_search_that_is_stopped_ends_with_what_fits_or_says_so(void **state)
{
    (void)state;
    struct tarn_graph *graph = deep_graph(DEEP_RESIDUAL, 6, 1);
    uint64_t budget = budget_footprint_of(graph) / 100 * 40;
    bool was_kept = false, was_interrupted = false;
    for (uint64_t stop_at = 1; stop_at < 5000; stop_at *= 2) {
        struct ending ending;
        struct tarn_graph *result;
        struct tarn_error error;
        begin_ending(&ending, stop_at);
        enum tarn_status status =
            tarn_graph_budget(graph,
                              TARN_BUDGET_OPTIONS(.budget = budget, .alignment = BUDGET_ALIGNMENT,
                                                  .control = &ending.control),
                              &result, &error);
        if (status == TARN_OK) {
            assert_true(budget_footprint_of(result) <= budget);
            was_kept = true;
        } else {
            assert_int_equal(status, TARN_INTERRUPTED);
            assert_non_null(strstr(error.text, "interrupted"));
            was_interrupted = true;
        }
        assert_true(ending.steps <= stop_at + 2);
        tarn_graph_destroy(result);
    }
    assert_true(was_kept && was_interrupted);
    tarn_graph_destroy(graph);
}

static void time_that_is_over_is_no_refusal(void **state)
{
    (void)state;
    struct tarn_graph *graph = deep_graph(DEEP_TRANSFORMER, 6, 1), *result;
    const struct tarn_transform_control *control = TARN_TRANSFORM_CONTROL(.seconds = 1e-9);
    struct tarn_error error;
    assert_int_equal(
        tarn_graph_budget(graph,
                          TARN_BUDGET_OPTIONS(.budget = budget_footprint_of(graph) / 2,
                                              .alignment = BUDGET_ALIGNMENT, .control = control),
                          &result, &error),
        TARN_DEADLINE);
    assert_null(result);
    tarn_graph_destroy(graph);
}

static void a_curve_that_is_stopped_has_the_rows_done_so_far(void **state)
{
    (void)state;
    enum { POINTS = 6 };
    struct tarn_graph *graph = deep_graph(DEEP_RESIDUAL, 3, 1);
    struct tarn_budget_report rows[POINTS];
    uint32_t partly = 0;
    for (uint64_t stop_at = 1; stop_at < 100000; stop_at = stop_at * 2 + 1) {
        struct ending ending;
        struct tarn_error error;
        begin_ending(&ending, stop_at);
        enum tarn_status status = tarn_graph_budget_curve(
            graph, TARN_BUDGET_OPTIONS(.alignment = BUDGET_ALIGNMENT, .control = &ending.control),
            rows, POINTS, &error);
        uint32_t first = 0;
        while (first < POINTS && rows[first].budget == 0) first++;
        for (uint32_t i = first; i < POINTS; i++)
            assert_true(rows[i].footprint > 0 && rows[i].footprint <= rows[i].budget);
        partly += first > 0 && first < POINTS;
        if (status == TARN_OK) break;
        assert_int_equal(status, TARN_INTERRUPTED);
    }
    assert_true(partly > 0);
    tarn_graph_destroy(graph);
}

/* ---- With an order ---- */

/* The order comes first, and what computes again is built in it. */
static void a_budget_is_kept_in_an_order_that_was_chosen_for_memory(void **state)
{
    uint32_t kept = 0;
    (void)state;
    for (uint64_t seed = 0; seed < DRAWS(20) || (kept == 0 && seed < 20); seed++) {
        struct tarn_graph *graph = draw_graph(seed);
        uint64_t most = budget_footprint_of(graph);
        for (uint64_t percent = 60; percent <= 100; percent += 20) {
            uint64_t budget = most * percent / 100 + 1;
            struct tarn_plan *plan = NULL;
            struct tarn_budget_report report;
            struct tarn_plan_summary summary;
            struct tarn_error error;
            enum tarn_status status = tarn_plan_create(
                graph,
                TARN_PLAN_OPTIONS(.threads = 1, .alignment = BUDGET_ALIGNMENT,
                                  .reorder = TARN_REORDER_OPTIONS(.effort = 2),
                                  .budget = TARN_BUDGET_OPTIONS(.budget = budget, .effort = 80,
                                                                .report = &report)),
                &plan, &error);
            if (status == TARN_DOES_NOT_FIT) continue;
            require(status, &error);
            require(tarn_plan_verify(plan, graph, NULL, NULL, &error), &error);
            tarn_plan_summarize(plan, &summary);
            assert_true(summary.footprint <= budget);
            kept += report.recomputed > 0;
            tarn_plan_destroy(plan);
        }
        tarn_graph_destroy(graph);
    }
    assert_true(kept > 0);
}

/* ---- Nothing ---- */

static void an_op_that_writes_nothing_may_come_first(void **state)
{
    (void)state;
    for (uint32_t ops = 1; ops <= 2; ops++) {
        struct tarn_builder *b = tarn_builder_create("nothing");
        struct tarn_graph *graph;
        struct tarn_error error;
        tarn_stream stream = tarn_builder_stream(b, "s");
        for (uint32_t i = 0; i < ops; i++)
            tarn_builder_op(b, &(struct tarn_op_info){.kind = "relu", .stream = stream});
        require(tarn_builder_finish(b, &graph, &error), &error);
        struct tarn_budget_report report;
        require(plan_within(graph, 100, &report, &error), &error);
        assert_int_equal(report.footprint, 0);
        tarn_graph_destroy(graph);
    }
}

/* ---- Kinds ---- */

/* The same graph, in which no kind says anything, and the class of each op does. */
static struct tarn_graph *without_kinds(const struct tarn_graph *graph)
{
    struct tarn_builder *builder = tarn_builder_create("the same without kinds");
    for (uint32_t s = 0; s < tarn_graph_streams_count(graph); s++)
        tarn_builder_stream(builder, tarn_graph_stream_name(graph, s));
    for (tarn_tensor t = 0; t < tarn_graph_tensors_count(graph); t++) {
        struct tarn_tensor_info info;
        tarn_graph_tensor(graph, t, &info);
        if (tarn_graph_root(graph, t) == t)
            tarn_builder_tensor(builder, &info);
        else
            tarn_builder_alias(builder, tarn_graph_root(graph, t), info.name);
    }
    for (tarn_op v = 0; v < tarn_graph_ops_count(graph); v++) {
        struct tarn_op_info info;
        tarn_graph_op(graph, v, &info);
        info.op_class = tarn_graph_op_class(graph, v);
        info.kind = v % 2 ? "" : "zork";
        info.common = (struct tarn_list){0};
        tarn_builder_op(builder, &info);
    }
    struct tarn_graph *made;
    struct tarn_error error;
    require(tarn_builder_finish(builder, &made, &error), &error);
    return made;
}

static void what_may_run_again_follows_from_structure_and_class_alone(void **state)
{
    uint32_t kept = 0, recomputed = 0;
    (void)state;
    for (uint64_t seed = 0; seed < DRAWS(96); seed++) {
        struct tarn_graph *graph = draw_graph(seed), *other = without_kinds(graph);
        uint64_t footprint = budget_footprint_of(graph);
        for (uint64_t percent = 90; percent >= 50; percent -= 20) {
            struct tarn_budget_report report, same;
            struct tarn_error error;
            enum tarn_status status =
                plan_within(graph, footprint / 100 * percent, &report, &error);
            assert_int_equal(plan_within(other, footprint / 100 * percent, &same, &error), status);
            if (status != TARN_OK) continue;
            assert_int_equal(same.footprint, report.footprint);
            assert_int_equal(same.time_ns, report.time_ns);
            assert_int_equal(same.recomputed, report.recomputed);
            kept++;
            recomputed += report.recomputed > 0;
        }
        tarn_graph_destroy(other);
        tarn_graph_destroy(graph);
    }
    assert_true(kept * 2 > DRAWS(96) && recomputed * 8 > DRAWS(96));
}

/* A pass of `ops` forward ops and one backward, the first of a kind that is not known. */
static void kinds_that_are_not_known_run_once_if_that_is_asked(void **state)
{
    (void)state;
    static const char *const kinds[] = {"zork", "gelu"};
    for (int known = 0; known < 2; known++) {
        struct tarn_builder *b = tarn_builder_create("chain");
        tarn_stream s = tarn_builder_stream(b, "s");
        tarn_tensor x[4], g = tarn_builder_tensor(b, &(struct tarn_tensor_info){.size = 64});
        for (int i = 0; i < 4; i++)
            x[i] = tarn_builder_tensor(
                b, &(struct tarn_tensor_info){.size = 4096, .kind = i == 0 ? TARN_INPUT : 0});
        for (int i = 0; i < 3; i++)
            tarn_builder_op(b, &(struct tarn_op_info){.kind = kinds[known],
                                                      .stream = s,
                                                      .inputs = TARN_TENSORS(x[i]),
                                                      .outputs = TARN_TENSORS(x[i + 1]),
                                                      .cost = 10});
        tarn_builder_op(b, &(struct tarn_op_info){.kind = "loss",
                                                  .stream = s,
                                                  .inputs = TARN_TENSORS(x[3]),
                                                  .outputs = TARN_TENSORS(g),
                                                  .cost = 10});
        for (int i = 3; i-- > 0;) {
            tarn_tensor next = tarn_builder_tensor(b, &(struct tarn_tensor_info){.size = 64});
            tarn_builder_op(b, &(struct tarn_op_info){.kind = "gelu_grad",
                                                      .stream = s,
                                                      .inputs = TARN_TENSORS(g, x[i]),
                                                      .outputs = TARN_TENSORS(next),
                                                      .cost = 10});
            g = next;
        }
        struct tarn_graph *graph, *kept;
        struct tarn_error error;
        require(tarn_builder_finish(b, &graph, &error), &error);
        uint64_t budget = budget_footprint_of(graph) - 2048;
        for (int known_only = 0; known_only < 2; known_only++) {
            enum tarn_status status = tarn_graph_budget(
                graph,
                TARN_BUDGET_OPTIONS(.budget = budget, .alignment = BUDGET_ALIGNMENT,
                                    .known_only = known_only),
                &kept, &error);
            assert_int_equal(status, known_only > known ? TARN_DOES_NOT_FIT : TARN_OK);
            if (status == TARN_OK) tarn_graph_destroy(kept);
        }
        tarn_graph_destroy(graph);
    }
}

/* With implementations: room that running something again makes may be worth more than it costs.
 * The search promises no least time, so few may be slower. */
static void a_larger_budget_is_rarely_slower(void **state)
{
    uint32_t kept = 0, slower = 0;
    (void)state;
    for (uint64_t seed = 0; seed < DRAWS(60); seed++) {
        struct tarn_graph *graph = random_training(&(struct random_training_options){
            .seed = seed, .ops = 2 + (uint32_t)(seed % 6), .implementation_share = 60});
        uint64_t footprint = budget_footprint_of(graph);
        struct tarn_budget_report less, more;
        struct tarn_error error;
        enum tarn_status status = plan_within(graph, footprint / 16 * 15, &less, &error);
        require(plan_within(graph, footprint, &more, &error), &error);
        slower += status == TARN_OK && more.time_ns > less.time_ns;
        kept += status == TARN_OK;
        tarn_graph_destroy(graph);
    }
    print_message("# %u of %u slower\n", slower, kept);
    assert_true(kept * 4 > DRAWS(60) && slower * 10 <= kept);
}

/* Just above the least footprint, where a few bytes more or less decide what fits: a larger budget
 * is rarely slower, and never by a third. */
static void budgets_near_each_other_take_nearly_the_same_time(void **state)
{
    uint32_t asked = 0, slower = 0;
    double worst = 0;
    (void)state;
    for (uint64_t seed = 0; seed < DRAWS(90); seed++) {
        struct tarn_graph *graph = random_training(
            &(struct random_training_options){.seed = seed,
                                              .ops = 8 + (uint32_t)(seed % 17),
                                              .branch_share = seed % 2 ? 30 : 0,
                                              .passes = 1 + (uint32_t)(seed % 3 / 2),
                                              .streams = 1 + (uint32_t)(seed % 5 / 4)});
        uint64_t footprint = budget_footprint_of(graph), fastest = UINT64_MAX;
        struct tarn_budget_report report;
        struct tarn_error error;
        assert_int_equal(plan_within(graph, 1, &report, &error), TARN_DOES_NOT_FIT);
        uint64_t least = report.footprint;
        for (uint64_t k = 0; k < 8; k++) {
            require(plan_within(graph, least + (footprint - least) * k / 64, &report, &error),
                    &error);
            double by = (double)report.time_ns / (double)fastest - 1;
            slower += k > 0 && by > 0;
            asked += k > 0;
            if (by > worst) worst = by;
            if (report.time_ns < fastest) fastest = report.time_ns;
        }
        tarn_graph_destroy(graph);
    }
    print_message("# %u of %u slower, at worst by %.1f %%\n", slower, asked, 100 * worst);
    assert_true(slower * 10 <= asked && worst < 1.0 / 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(budgets_near_each_other_take_nearly_the_same_time),
        cmocka_unit_test(a_larger_budget_is_rarely_slower),
        cmocka_unit_test(what_may_run_again_follows_from_structure_and_class_alone),
        cmocka_unit_test(kinds_that_are_not_known_run_once_if_that_is_asked),
        cmocka_unit_test(the_least_is_one_number_and_every_budget_from_it_on_is_kept),
        cmocka_unit_test(sizes_that_overflow_at_the_alignment_are_told),
        cmocka_unit_test(the_least_is_kept_to_with_little_effort),
        cmocka_unit_test(the_least_by_implementations_alone_computes_nothing_again),
        cmocka_unit_test(streams_beside_each_other_cost_hardly_more_than_one),
        cmocka_unit_test(waits_come_before_computing_again),
        cmocka_unit_test(takes_no_more_time_than_waits_alone),
        cmocka_unit_test(coupling_and_in_place_take_nothing_from_a_budget),
        cmocka_unit_test(effort_is_linear_in_depth),
        cmocka_unit_test(a_search_that_is_stopped_ends_with_what_fits_or_says_so),
        cmocka_unit_test(time_that_is_over_is_no_refusal),
        cmocka_unit_test(a_curve_that_is_stopped_has_the_rows_done_so_far),
        cmocka_unit_test(a_budget_is_kept_in_an_order_that_was_chosen_for_memory),
        cmocka_unit_test(an_op_that_writes_nothing_may_come_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
