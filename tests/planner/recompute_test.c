/* What a policy of keeping and recomputing comes to, against the graph that is built from it: its
 * peak by the counter of serial peaks, its time by the sum of its ops, its meaning by the verifier
 * and by checked execution. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "planner/transform/recompute/recompute.h"
#include "streams/order/peak.h"
#include "streams/plan/plan.h"
#include "support/plan_oracle.h"
#include "support/random_graph.h"
#include "support/random_training.h"
#include "tarn.h"

enum { ALIGNMENT = 16 };

static void require(enum tarn_status status, const struct tarn_error *error)
{
    if (status != TARN_OK) fail_msg("%s", error->text);
}

static struct tarn_graph *draw_graph(uint64_t seed, uint32_t streams)
{
    struct random_source source = {seed};
    uint32_t passes = 1 + (uint32_t)(seed % 3);
    return random_training(&(struct random_training_options){
        .seed = seed,
        .ops = 1 + random_below(&source, 16 / passes),
        .branch_share = random_below(&source, 60),
        .inplace_share = random_below(&source, 60),
        .weight_share = random_below(&source, 100),
        .implementation_share = random_below(&source, 80),
        .fixed_share = random_below(&source, 30),
        .streams = streams,
        .passes = passes,
        .ahead = passes - 1 - (uint32_t)(seed / 3 % passes),
    });
}

static void draw_policy(const struct tarn_recompute_model *model, struct tarn_region *region,
                        struct tarn_policy *policy, uint64_t seed)
{
    struct random_source source = {seed};
    uint32_t kept = random_below(&source, 100), retained = random_below(&source, 100);
    assert_int_equal(tarn_policy_init(policy, region, model), TARN_OK);
    for (uint32_t w = 0; w < model->versions_count; w++) {
        policy->keep[w] = random_percent(&source, kept);
        policy->retain[w] = random_percent(&source, retained);
    }
    for (uint32_t v = 0; v < model->graph->ops_count; v++) {
        struct tarn_range forms = model->op_forms[v];
        if (forms.end == forms.begin || !random_percent(&source, 30)) continue;
        uint32_t f = forms.begin + random_below(&source, forms.end - forms.begin);
        if (model->forms[f].whole || model->forms[f].splits) policy->form[v] = f;
    }
}

/* ---- Peak and time ---- */

static uint64_t reserved_peak(const struct tarn_graph *graph)
{
    uint64_t peak, *size = malloc(((size_t)graph->planned_count + 1) * sizeof *size);
    assert_non_null(size);
    for (uint32_t a = 0; a < graph->planned_count; a++)
        size[a] = oracle_reserved(graph, a, ALIGNMENT);
    assert_int_equal(tarn_peak_of(graph, size, &peak), TARN_OK);
    free(size);
    return peak;
}

static uint64_t cost_of(const struct tarn_graph *graph)
{
    uint64_t cost = 0;
    for (uint32_t v = 0; v < graph->ops_count; v++)
        if (!graph->ops[v].view) cost += graph->ops[v].cost;
    return cost;
}

/* ---- One policy ---- */

static uint64_t digest_of(struct tarn_plan *plan)
{
    struct tarn_session *session;
    struct tarn_check_report report;
    struct tarn_error error;
    struct tarn_host_options *host = TARN_HOST_OPTIONS(.workers = 2, .binding = TARN_BIND_NONE);
    require(tarn_session_create(plan, tarn_device_host(host), NULL, &session, &error), &error);
    require(tarn_session_check(session, TARN_CHECK_OPTIONS(.iterations = 3), &report, &error),
            &error);
    tarn_session_destroy(session);
    return report.digest;
}

static uint64_t digest_of_graph(struct tarn_graph *graph)
{
    struct tarn_plan *plan;
    struct tarn_error error;
    require(tarn_plan_create(graph, TARN_PLAN_OPTIONS(.effort = TARN_NO_EFFORT), &plan, &error),
            &error);
    uint64_t digest = digest_of(plan);
    tarn_plan_destroy(plan);
    return digest;
}

struct counts {
    uint32_t stuck, repeated, split, implemented;
    /* Graphs; of them those with the very critical path told, and with a shorter one. */
    uint32_t built, as_timed, early;
};

static void requires_the_graph_to_be_as_told(const struct tarn_recompute_model *model,
                                             const struct tarn_schedule *schedule,
                                             struct counts *counts, struct tarn_graph **final)
{
    struct tarn_error error;
    struct tarn_simulation *simulation;
    require(tarn_recompute_build(model, schedule, final, &error), &error);
    assert_int_equal(cost_of(*final), schedule->work_ns);
    require(tarn_graph_simulate(*final, 1, TARN_WAIT_NS, &simulation, &error), &error);
    counts->early += simulation->makespan_ns < schedule->time_ns;
    counts->as_timed += simulation->makespan_ns == schedule->time_ns;
    counts->built++;
    tarn_simulation_destroy(simulation);
    if (model->graph->streams_count == 1) assert_int_equal(reserved_peak(*final), schedule->peak);
}

static void count(const struct tarn_recompute_model *model, const struct tarn_schedule *schedule,
                  struct counts *counts)
{
    for (uint32_t e = 0; e < schedule->count; e++) {
        counts->repeated += schedule->executions[e].recomputed;
        counts->split += model->forms[schedule->executions[e].form].splits;
        counts->implemented += schedule->executions[e].implementation != TARN_NONE;
    }
}

/* `run`: what is done with a graph that was built. */
static void try_policies(struct tarn_graph *graph, uint64_t seed, struct counts *counts,
                         void (*run)(struct tarn_graph *source, struct tarn_graph *final))
{
    struct tarn_recompute_model model;
    struct tarn_region region = {.chunks = NULL}, policies = {.chunks = NULL};
    assert_int_equal(tarn_recompute_model_init(&model, &region, graph, ALIGNMENT, 0), TARN_OK);
    assert_true(tarn_recompute_model_is_valid(&model));
    struct tarn_evaluator *evaluator = tarn_evaluator_create(&region, &model);
    assert_non_null(evaluator);
    for (uint64_t draw = 0; draw < 4; draw++) {
        struct tarn_policy policy;
        struct tarn_graph *final;
        draw_policy(&model, &policies, &policy, seed * 4 + draw);
        uint64_t budget = 20000 * (seed % 3);
        struct tarn_schedule quick = *tarn_evaluate(evaluator, &policy, budget);
        enum tarn_recompute_streams rule = (enum tarn_recompute_streams)(draw % 3);
        const struct tarn_schedule *schedule =
            tarn_evaluate_whole(evaluator, &policy, budget, rule);
        assert_non_null(schedule);
        assert_int_equal(quick.peak, schedule->peak);
        assert_int_equal(quick.work_ns, schedule->work_ns);
        if (rule == TARN_RECOMPUTE_SOONEST) assert_int_equal(quick.time_ns, schedule->time_ns);
        assert_int_equal(quick.recomputed_ns, schedule->recomputed_ns);
        if (schedule->peak == UINT64_MAX) {
            counts->stuck++;
        } else {
            assert_true(tarn_schedule_is_valid(schedule, &model));
            count(&model, schedule, counts);
            requires_the_graph_to_be_as_told(&model, schedule, counts, &final);
            run(graph, final);
            tarn_graph_destroy(final);
        }
        tarn_region_finish(&policies);
    }
    tarn_region_finish(&region);
}

static void do_nothing(struct tarn_graph *source, struct tarn_graph *final)
{
    (void)source;
    (void) final;
}

/* A plan of `final` that says that it does what `source` says. */
static struct tarn_plan *plan_as(struct tarn_graph *source, struct tarn_graph *final)
{
    struct tarn_plan *plan;
    struct tarn_error error;
    require(tarn_plan_create(final, TARN_PLAN_OPTIONS(.effort = TARN_NO_EFFORT), &plan, &error),
            &error);
    plan->source_hash = source->hash;
    plan->transformed = !tarn_hash_equal(source->hash, final->hash);
    require(tarn_plan_verify(plan, source, NULL, NULL, &error), &error);
    return plan;
}

static void requires_the_same_meaning(struct tarn_graph *source, struct tarn_graph *final)
{
    tarn_plan_destroy(plan_as(source, final));
}

static void requires_the_same_digest(struct tarn_graph *source, struct tarn_graph *final)
{
    struct tarn_plan *plan = plan_as(source, final);
    assert_int_equal(digest_of(plan), digest_of_graph(source));
    tarn_plan_destroy(plan);
}

static void peak_and_time_are_those_of_the_graph_that_is_built(void **state)
{
    (void)state;
    struct counts counts = {0};
    for (uint64_t seed = 0; seed < DRAWS(2000); seed++) {
        struct tarn_graph *graph = draw_graph(seed, 1);
        try_policies(graph, seed, &counts, do_nothing);
        tarn_graph_destroy(graph);
    }
    assert_int_equal(counts.early, 0);
    print_message("# %u stuck, %u ops again, %u parts, %u implementations\n", counts.stuck,
                  counts.repeated, counts.split, counts.implemented);
    assert_true(counts.repeated > DRAWS(1000) && counts.split > DRAWS(100) &&
                counts.implemented > DRAWS(1000));
}

static void every_graph_that_is_built_refines_its_source(void **state)
{
    (void)state;
    struct counts counts = {0};
    for (uint64_t seed = 0; seed < DRAWS(600); seed++) {
        struct tarn_graph *graph = draw_graph(seed, 1 + (uint32_t)(seed % 3));
        try_policies(graph, seed, &counts, requires_the_same_meaning);
        tarn_graph_destroy(graph);
    }
    assert_int_equal(counts.early, 0);
    assert_true(counts.repeated > DRAWS(1000) && counts.split > DRAWS(100) &&
                counts.implemented > DRAWS(1000));
}

/* Graphs of several streams with views, control arcs to them and from them, groups, outputs. */
static void orders_that_views_carry_survive(void **state)
{
    (void)state;
    struct counts counts = {0};
    for (uint64_t seed = 0; seed < DRAWS(800); seed++) {
        struct random_graph_options options = random_graph_knobs(seed, 24);
        options.streams = 2 + (uint32_t)(seed % 3);
        options.backward_share = 50;
        options.view_share += 10;
        options.control_share += 10;
        struct tarn_graph *graph = random_graph(&options);
        try_policies(graph, seed, &counts, requires_the_same_meaning);
        tarn_graph_destroy(graph);
    }
    print_message("# %u stuck, %u ops again, %u of %u graphs faster than modelled\n", counts.stuck,
                  counts.repeated, counts.early, counts.built);
    assert_true(counts.repeated > DRAWS(500));
}

static void checked_execution_ends_with_the_digest_of_keeping_everything(void **state)
{
    (void)state;
    struct counts counts = {0};
    for (uint64_t seed = 0; seed < DRAWS(60); seed++) {
        struct tarn_graph *graph = draw_graph(seed, 1 + (uint32_t)(seed % 3));
        try_policies(graph, seed, &counts, requires_the_same_digest);
        tarn_graph_destroy(graph);
    }
    assert_true(counts.repeated > DRAWS(100));
}

/* ---- The floor ---- */

static void no_policy_comes_below_the_floor(void **state)
{
    (void)state;
    uint32_t met = 0;
    for (uint64_t seed = 0; seed < DRAWS(400); seed++) {
        struct tarn_graph *graph = draw_graph(seed, 1);
        struct tarn_recompute_model model;
        uint64_t floor, least = UINT64_MAX;
        uint32_t place;
        struct tarn_region region = {.chunks = NULL}, policies = {.chunks = NULL};
        assert_int_equal(tarn_recompute_model_init(&model, &region, graph, ALIGNMENT, 0), TARN_OK);
        assert_int_equal(tarn_recompute_floor(&model, TARN_LIST_STAYS, &floor, &place), TARN_OK);
        struct tarn_evaluator *evaluator = tarn_evaluator_create(&region, &model);
        for (uint64_t draw = 0; draw < 200; draw++) {
            struct tarn_policy policy;
            draw_policy(&model, &policies, &policy, seed * 200 + draw);
            uint64_t peak = tarn_evaluate(evaluator, &policy, 0)->peak;
            assert_true(peak >= floor);
            if (peak < least) least = peak;
            tarn_region_finish(&policies);
        }
        met += least == floor;
        tarn_region_finish(&region);
        tarn_graph_destroy(graph);
    }
    print_message("# the floor was met %u times\n", met);
    assert_true(met > DRAWS(50));
}

/* ---- The transform ---- */

static void a_budget_is_kept_or_refused_with_its_floor(void **state)
{
    (void)state;
    uint32_t kept = 0, refused = 0;
    for (uint64_t seed = 0; seed < 40; seed++) {
        struct tarn_graph *graph = draw_graph(seed, 1 + (uint32_t)(seed % 3));
        struct tarn_plan *unbounded, *plan;
        struct tarn_plan_summary before, after;
        struct tarn_error error;
        require(
            tarn_plan_create(graph, TARN_PLAN_OPTIONS(.alignment = ALIGNMENT), &unbounded, &error),
            &error);
        tarn_plan_summarize(unbounded, &before);
        uint64_t budget = before.footprint * (4 + seed % 6) / 10;
        struct tarn_budget_report report;
        struct tarn_budget_options *options =
            TARN_BUDGET_OPTIONS(.budget = budget, .effort = 500, .report = &report);
        struct tarn_plan_options *planning =
            TARN_PLAN_OPTIONS(.alignment = ALIGNMENT, .budget = options);
        enum tarn_status status = tarn_plan_create(graph, planning, &plan, &error);
        if (status == TARN_OK) {
            tarn_plan_summarize(plan, &after);
            assert_true(after.footprint <= budget);
            assert_true(report.footprint <= budget);
            assert_int_equal(digest_of(plan), digest_of(unbounded));
            tarn_plan_destroy(plan);
            kept++;
        } else {
            assert_int_equal(status, TARN_DOES_NOT_FIT);
            assert_true(report.footprint > budget);
            assert_non_null(strstr(error.text, "the least footprint found is"));
            assert_true(error.footprint > budget);
            assert_true(error.op < graph->ops_count);
            refused++;
        }
        tarn_plan_destroy(unbounded);
        tarn_graph_destroy(graph);
    }
    print_message("# %u kept, %u refused\n", kept, refused);
    assert_true(kept > 5 && refused > 5);
}

static void a_curve_never_gets_slower_with_more_memory(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 12; seed++) {
        struct tarn_graph *graph = draw_graph(seed, 1);
        struct tarn_budget_report rows[5];
        struct tarn_error error;
        struct tarn_budget_options *options =
            TARN_BUDGET_OPTIONS(.alignment = ALIGNMENT, .effort = 300);
        require(tarn_graph_budget_curve(graph, options, rows, 5, &error), &error);
        for (size_t i = 0; i < 5; i++) {
            assert_true(rows[i].footprint <= rows[i].budget);
            assert_int_equal(rows[i].budget % ALIGNMENT, 0);
            if (rows[i].budget >= rows[i].footprint_before) /* then nothing need change */
                assert_true(rows[i].time_ns <= rows[i].time_before_ns);
            if (i == 0) continue;
            assert_true(rows[i - 1].budget >= rows[i].budget);
            assert_true(rows[i - 1].time_ns <= rows[i].time_ns);
            if (rows[i - 1].footprint <= rows[i].budget)
                assert_int_equal(rows[i - 1].time_ns, rows[i].time_ns);
        }
        tarn_graph_destroy(graph);
    }
}

/* ---- Storages that several ops write ---- */

static const struct tarn_list NOTHING = {NULL, 0};

static tarn_tensor tensor_of(struct tarn_builder *b, uint64_t size)
{
    return tarn_builder_tensor(b, &(struct tarn_tensor_info){.size = size});
}

static tarn_op op_of(struct tarn_builder *b, uint64_t cost, struct tarn_list inputs,
                     struct tarn_list outputs)
{
    return tarn_builder_op(
        b, &(struct tarn_op_info){
               .kind = "matmul", .cost = cost, .inputs = inputs, .outputs = outputs});
}

/* Plans the graph with each budget; the plans are proved as they are made. `same`: tensors that
 * share a storage in each of them. */
static void requires_plans(struct tarn_builder *b, uint64_t least, uint64_t most,
                           struct tarn_list same)
{
    struct tarn_graph *graph;
    struct tarn_plan *plan;
    struct tarn_plan_summary summary;
    struct tarn_error error;
    require(tarn_builder_finish(b, &graph, &error), &error);
    for (uint64_t budget = least; budget <= most; budget++) {
        struct tarn_budget_options *options = TARN_BUDGET_OPTIONS(.budget = budget);
        require(tarn_plan_create(graph, TARN_PLAN_OPTIONS(.alignment = 1, .budget = options), &plan,
                                 &error),
                &error);
        tarn_plan_summarize(plan, &summary);
        assert_true(summary.footprint <= budget);
        for (size_t i = 1; i < same.count; i++)
            assert_int_equal(tarn_graph_root(plan->graph, same.ids[i]),
                             tarn_graph_root(plan->graph, same.ids[0]));
        tarn_plan_destroy(plan);
    }
    tarn_graph_destroy(graph);
}

/* A slow op that has a faster implementation. */
static void slow_op_of(struct tarn_builder *b, struct tarn_list inputs, struct tarn_list outputs,
                       const struct tarn_implementation *faster)
{
    tarn_builder_op(b, &(struct tarn_op_info){.kind = "matmul",
                                              .cost = 90000,
                                              .inputs = inputs,
                                              .outputs = outputs,
                                              .implementations = faster,
                                              .implementations_count = 1});
}

/* Its inputs, in either order, are what the op as written reads and an older version of it. */
static void an_implementation_reads_two_versions_of_a_storage(void **state)
{
    (void)state;
    for (uint32_t first = 0; first < 2; first++) {
        struct tarn_builder *b = tarn_builder_create("two versions");
        tarn_builder_stream(b, NULL);
        tarn_tensor t[4] = {tensor_of(b, 4), TARN_NONE, tensor_of(b, 1), tensor_of(b, 1)};
        t[1] = tarn_builder_alias(b, t[0], NULL);
        op_of(b, 1000, NOTHING, TARN_TENSORS(t[0]));
        op_of(b, 1000, TARN_TENSORS(t[0]), TARN_TENSORS(t[1]));
        struct tarn_implementation other = {.cost = 1000,
                                            .inputs = TARN_TENSORS(t[first], t[1 - first])};
        slow_op_of(b, TARN_TENSORS(t[1]), TARN_TENSORS(t[2]), &other);
        op_of(b, 1000, TARN_TENSORS(t[1], t[2]), TARN_TENSORS(t[3]));
        requires_plans(b, 6, 12, NOTHING);
    }
}

/* A later implementation reads what the op overwrites. By its own implementation the op does not
 * read it, so it cannot write elsewhere. */
static void an_implementation_that_does_not_read_what_it_overwrites(void **state)
{
    (void)state;
    struct tarn_builder *b = tarn_builder_create("does not read");
    tarn_builder_stream(b, NULL);
    tarn_tensor t0 = tensor_of(b, 4), t1 = tarn_builder_alias(b, t0, NULL), t2 = tensor_of(b, 1);
    tarn_tensor t3 = tensor_of(b, 1), t4 = tensor_of(b, 1);
    struct tarn_implementation writes = {.cost = 1000, .inputs = TARN_TENSORS(t2)};
    struct tarn_implementation reads = {.cost = 1000, .inputs = TARN_TENSORS(t1, t0)};
    op_of(b, 1000, NOTHING, TARN_TENSORS(t0));
    op_of(b, 1000, NOTHING, TARN_TENSORS(t2));
    slow_op_of(b, TARN_TENSORS(t0), TARN_TENSORS(t1), &writes);
    slow_op_of(b, TARN_TENSORS(t1), TARN_TENSORS(t3), &reads);
    op_of(b, 1000, TARN_TENSORS(t1, t3), TARN_TENSORS(t4));
    requires_plans(b, 6, 12, TARN_TENSORS(t0, t1));
}

/* On one stream or two, one arm writes a storage in place and another one reads it. */
static void an_arm_reads_what_another_arm_overwrites(void **state)
{
    (void)state;
    static const uint32_t arms[2][2] = {{0, 0}, {0, 1}};
    for (uint32_t streams = 1; streams <= 2; streams++) {
        struct tarn_builder *b = tarn_builder_create("arms");
        for (uint32_t s = 0; s < streams; s++) tarn_builder_stream(b, NULL);
        tarn_tensor t0 = tensor_of(b, 7), t1 = tarn_builder_alias(b, t0, NULL);
        tarn_tensor t2 = tarn_builder_alias(b, t0, NULL), t3 = tensor_of(b, 7);
        tarn_tensor idle = tensor_of(b, 5), used = tensor_of(b, 1), end = tensor_of(b, 1);
        op_of(b, 1000, NOTHING, TARN_TENSORS(idle)); /* runs again before `end` */
        op_of(b, 1000, TARN_TENSORS(idle), TARN_TENSORS(used));
        op_of(b, 1000, TARN_TENSORS(used), TARN_TENSORS(t0));
        tarn_op writer = tarn_builder_op(b, &(struct tarn_op_info){.kind = "matmul",
                                                                   .inputs = TARN_TENSORS(t0),
                                                                   .outputs = TARN_TENSORS(t1),
                                                                   .branch = &arms[1],
                                                                   .branch_count = 1});
        tarn_builder_op(b, &(struct tarn_op_info){.kind = "view",
                                                  .stream = streams - 1,
                                                  .inputs = TARN_TENSORS(t0),
                                                  .outputs = TARN_TENSORS(t2),
                                                  .control = TARN_OPS(writer),
                                                  .view = true,
                                                  .branch = &arms[0],
                                                  .branch_count = 1});
        tarn_builder_op(b, &(struct tarn_op_info){.kind = "matmul",
                                                  .stream = streams - 1,
                                                  .inputs = TARN_TENSORS(t0, t2),
                                                  .outputs = TARN_TENSORS(t3),
                                                  .control = TARN_OPS(writer),
                                                  .branch = &arms[0],
                                                  .branch_count = 1});
        tarn_builder_op(b, &(struct tarn_op_info){.kind = "matmul",
                                                  .stream = streams - 1,
                                                  .inputs = TARN_TENSORS(idle),
                                                  .outputs = TARN_TENSORS(end)});
        requires_plans(b, 14, 21, TARN_TENSORS(t0, t1, t2));
    }
}

/* An op outside of the arm reads a storage that the arm writes in place: one storage has what it
 * reads whether the arm is taken or not, although an implementation would read the old version. */
static void what_an_arm_writes_in_place_stays_where_it_is(void **state)
{
    (void)state;
    static const uint32_t arm[1][2] = {{0, 1}};
    struct tarn_builder *b = tarn_builder_create("outside");
    tarn_builder_stream(b, NULL);
    tarn_tensor t0 = tensor_of(b, 4), t1 = tarn_builder_alias(b, t0, NULL);
    tarn_tensor t2 = tensor_of(b, 1), t3 = tensor_of(b, 1);
    struct tarn_implementation other = {.cost = 1000, .inputs = TARN_TENSORS(t1, t0)};
    op_of(b, 1000, NOTHING, TARN_TENSORS(t0));
    tarn_builder_op(b, &(struct tarn_op_info){.kind = "matmul",
                                              .inputs = TARN_TENSORS(t0),
                                              .outputs = TARN_TENSORS(t1),
                                              .branch = arm,
                                              .branch_count = 1});
    slow_op_of(b, TARN_TENSORS(t1), TARN_TENSORS(t2), &other);
    op_of(b, 1000, TARN_TENSORS(t1, t2), TARN_TENSORS(t3));
    requires_plans(b, 6, 12, TARN_TENSORS(t0, t1));
}

/* `idle` and the empty tensor are made again before the op that also reads a view of the latter. */
static void a_view_of_an_empty_tensor_keeps_its_name(void **state)
{
    (void)state;
    struct tarn_builder *b = tarn_builder_create("empty view");
    tarn_builder_stream(b, NULL);
    tarn_tensor empty = tensor_of(b, 0), view = tarn_builder_alias(b, empty, NULL);
    tarn_tensor again = tarn_builder_alias(b, empty, NULL);
    tarn_tensor idle = tensor_of(b, 1), hollow = tensor_of(b, 0), large = tensor_of(b, 3);
    op_of(b, 0, NOTHING, TARN_TENSORS(empty));
    op_of(b, 0, TARN_TENSORS(empty), TARN_TENSORS(idle, hollow, large));
    tarn_builder_op(b, &(struct tarn_op_info){.kind = "matmul",
                                              .inputs = TARN_TENSORS(large),
                                              .outputs = TARN_TENSORS(tensor_of(b, 0)),
                                              .workspace = 3});
    op_of(b, 0, TARN_TENSORS(empty), TARN_TENSORS(again));
    tarn_builder_op(b, &(struct tarn_op_info){.kind = "view",
                                              .inputs = TARN_TENSORS(empty),
                                              .outputs = TARN_TENSORS(view),
                                              .view = true});
    op_of(b, 0, TARN_TENSORS(empty, idle, hollow, view), TARN_TENSORS(tensor_of(b, 3)));
    requires_plans(b, 6, 9, NOTHING);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(peak_and_time_are_those_of_the_graph_that_is_built),
        cmocka_unit_test(every_graph_that_is_built_refines_its_source),
        cmocka_unit_test(orders_that_views_carry_survive),
        cmocka_unit_test(checked_execution_ends_with_the_digest_of_keeping_everything),
        cmocka_unit_test(no_policy_comes_below_the_floor),
        cmocka_unit_test(a_budget_is_kept_or_refused_with_its_floor),
        cmocka_unit_test(a_curve_never_gets_slower_with_more_memory),
        cmocka_unit_test(an_implementation_reads_two_versions_of_a_storage),
        cmocka_unit_test(an_implementation_that_does_not_read_what_it_overwrites),
        cmocka_unit_test(an_arm_reads_what_another_arm_overwrites),
        cmocka_unit_test(what_an_arm_writes_in_place_stays_where_it_is),
        cmocka_unit_test(a_view_of_an_empty_tensor_keeps_its_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
