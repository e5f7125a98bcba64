/* Ops that free bytes as early as they can be: whatever has run of the given order, no more bytes
 * are alive in the new one when the same has run, counted naively; and budgets with another order
 * are kept in it where gradients that wait would be the peak. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "planner/transform/release.h"
#include "support/budget_plan.h"
#include "support/random_training.h"
#include "tarn/transform.h"

/* ---- Bytes alive ---- */

static uint64_t alive_after(const struct tarn_graph *graph, const bool *has_run)
{
    uint64_t alive = 0;
    for (uint32_t a = 0; a < graph->planned_count; a++) {
        const struct tarn_storage *storage = &graph->storages[a];
        bool left = storage->pinned;
        for (uint32_t k = 0; k < storage->users_count; k++)
            left |= !has_run[tarn_storage_users(graph, storage)[k]];
        if (left && has_run[storage->producer])
            alive += (storage->size + BUDGET_ALIGNMENT - 1) / BUDGET_ALIGNMENT * BUDGET_ALIGNMENT;
    }
    return alive;
}

/* Ops of `released` have those of `graph` as their origins. */
static void require_less_alive(const struct tarn_graph *graph, const struct tarn_graph *released)
{
    uint32_t count = graph->ops_count, next = 0;
    bool *one = calloc(count, sizeof *one), *two = calloc(count, sizeof *two);
    assert_non_null(one);
    assert_non_null(two);
    assert_int_equal(released->ops_count, count);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t v = graph->order[i];
        one[v] = true;
        while (!two[v]) {
            assert_true(next < count);
            uint32_t w = released->ops[released->order[next++]].origin;
            assert_true(w < count && !two[w]);
            two[w] = true;
        }
        assert_true(alive_after(graph, two) <= alive_after(graph, one));
    }
    free(one);
    free(two);
}

static void no_more_bytes_are_alive(void **state)
{
    (void)state;
    uint32_t changed = 0;
    for (uint64_t seed = 0; seed < 200; seed++) {
        struct tarn_graph *released, *graph = random_training(&(struct random_training_options){
                                         .seed = seed,
                                         .ops = 4 + (uint32_t)(seed % 24),
                                         .branch_share = 30,
                                         .inplace_share = 20,
                                         .weight_share = 50,
                                         .view_share = 20,
                                         .output_share = 10,
                                         .control_share = 10,
                                         .streams = 1 + (uint32_t)(seed % 3)});
        struct tarn_error error;
        if (tarn_graph_release_early(graph, BUDGET_ALIGNMENT, &released, &error) != TARN_OK)
            fail_msg("%s", error.text);
        if (released) require_less_alive(graph, released);
        changed += released != NULL;
        tarn_graph_destroy(released);
        tarn_graph_destroy(graph);
    }
    assert_in_range(changed, 10, 200);
}

/* ---- Budgets ---- */

enum { LAYERS = 8, UNIT = 1600, WIDE = 6 * UNIT, GRADIENT = 4 * UNIT };

struct step {
    struct tarn_builder *builder;
    tarn_stream stream;
};

static tarn_tensor make(const struct step *step, const char *name, uint64_t size, uint64_t cost,
                        struct tarn_list inputs)
{
    tarn_tensor made =
        tarn_builder_tensor(step->builder, &(struct tarn_tensor_info){.name = name, .size = size});
    tarn_builder_op(step->builder, &(struct tarn_op_info){.name = name,
                                                          .kind = "work",
                                                          .stream = step->stream,
                                                          .inputs = inputs,
                                                          .outputs = TARN_TENSORS(made),
                                                          .cost = cost});
    return made;
}

/* Layers with a wide result in the middle, which is cheap to make again. The gradients of all
 * weights come last, and what they read waits for them. */
static struct tarn_graph *layers(void)
{
    struct tarn_graph *graph;
    struct tarn_error error;
    struct step step = {.builder = tarn_builder_create("layers")};
    step.stream = tarn_builder_stream(step.builder, "compute");
    tarn_tensor x[LAYERS + 1], wide[LAYERS], gradient[LAYERS];
    x[0] = make(&step, "x", UNIT, 100, (struct tarn_list){.count = 0});
    for (int i = 0; i < LAYERS; i++) {
        wide[i] = make(&step, "wide", WIDE, 1000, TARN_TENSORS(x[i]));
        x[i + 1] = make(&step, "narrow", UNIT, 5000, TARN_TENSORS(wide[i]));
    }
    tarn_tensor back = make(&step, "loss", UNIT, 100, TARN_TENSORS(x[LAYERS]));
    for (int i = LAYERS; i-- > 0;) {
        gradient[i] = make(&step, "gradient", GRADIENT, 6000, TARN_TENSORS(back, wide[i]));
        back = make(&step, "back", UNIT, 1000, TARN_TENSORS(gradient[i]));
    }
    for (int i = LAYERS; i-- > 0;)
        make(&step, "weight", UNIT / 10, 1000, TARN_TENSORS(gradient[i], x[i]));
    if (tarn_builder_finish(step.builder, &graph, &error) != TARN_OK) fail_msg("%s", error.text);
    return graph;
}

/* What running all wide results again costs, in nanoseconds, is enough for all budgets that leave
 * room for one layer. */
static void gradients_that_wait_do_not_bind_a_budget(void **state)
{
    (void)state;
    struct tarn_graph *graph = layers();
    uint64_t most = budget_footprint_of(graph);
    for (uint64_t percent = 90; percent >= 35; percent -= 5) {
        struct tarn_budget_report report;
        struct tarn_plan_options *options =
            TARN_PLAN_OPTIONS(.alignment = BUDGET_ALIGNMENT, .threads = 1,
                              .reorder = TARN_REORDER_OPTIONS(),
                              .budget = TARN_BUDGET_OPTIONS(.budget = most / 100 * percent,
                                                            .report = &report));
        struct tarn_plan *plan;
        struct tarn_error error;
        if (tarn_plan_create(graph, options, &plan, &error) != TARN_OK) fail_msg("%s", error.text);
        assert_true(report.footprint <= most / 100 * percent);
        assert_true(report.time_ns <= report.time_before_ns + LAYERS * 1000);
        tarn_plan_destroy(plan);
    }
    tarn_graph_destroy(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_more_bytes_are_alive),
        cmocka_unit_test(gradients_that_wait_do_not_bind_a_budget),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
