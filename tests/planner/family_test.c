/* Plans of several graphs for one arena: one layout of what is persistent, a footprint no larger
 * than the largest plan's, and words for what does not agree. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "support/session_calls.h"
#include "tarn.h"

struct persistent {
    const char *name;
    uint64_t size;
    enum tarn_tensor_kind kind;
};

/* One op that reads the persistent tensors and makes `work` bytes. group: how many of the first
 * ones are contiguous. */
static struct tarn_graph *build(const struct persistent *tensors, uint32_t count, uint32_t group,
                                uint64_t work)
{
    uint32_t ids[8];
    struct tarn_graph *graph;
    struct tarn_error error;
    struct tarn_builder *b = tarn_builder_create("member");
    tarn_stream s = tarn_builder_stream(b, "s");
    for (uint32_t i = 0; i < count; i++)
        ids[i] = tarn_builder_tensor(b, &(struct tarn_tensor_info){.name = tensors[i].name,
                                                                   .size = tensors[i].size,
                                                                   .kind = tensors[i].kind});
    if (group > 0) tarn_builder_group(b, (struct tarn_list){ids, group});
    tarn_tensor y = tarn_builder_tensor(b, &(struct tarn_tensor_info){.name = "y", .size = work});
    tarn_builder_op(b, &(struct tarn_op_info){.stream = s,
                                              .inputs = (struct tarn_list){ids, count},
                                              .outputs = TARN_TENSORS(y)});
    require(tarn_builder_finish(b, &graph, &error), &error);
    return graph;
}

static enum tarn_status plan(struct tarn_graph **graphs, struct tarn_plan **plans,
                             struct tarn_error *error)
{
    return tarn_family_plan(graphs, 2, TARN_PLAN_OPTIONS(.alignment = 16), plans, error);
}

static void finish(struct tarn_graph **graphs, struct tarn_plan **plans)
{
    for (uint32_t i = 0; i < 2; i++) {
        tarn_plan_destroy(plans[i]);
        tarn_graph_destroy(graphs[i]);
    }
}

static uint64_t offset(struct tarn_plan *plan, const char *name)
{
    return tarn_plan_offset(plan, tarn_graph_find_tensor(tarn_plan_graph(plan), name));
}

static void tensors_of_one_name_lie_at_one_place_and_the_largest_input_has_room(void **state)
{
    (void)state;
    const struct persistent first[] = {
        {"w", 20, TARN_PARAMETER}, {"x", 8, TARN_INPUT}, {"v", 24, TARN_OPTIMIZER_STATE}};
    const struct persistent second[] = {
        {"u", 4, TARN_PARAMETER}, {"x", 100, TARN_INPUT}, {"w", 20, TARN_PARAMETER}};
    struct tarn_graph *graphs[2] = {build(first, 3, 0, 64), build(second, 3, 0, 640)};
    struct tarn_plan *plans[2];
    struct tarn_plan_summary summaries[2];
    struct tarn_error error;
    require(plan(graphs, plans, &error), &error);
    assert_int_equal(offset(plans[0], "w"), 0);
    assert_int_equal(offset(plans[0], "x"), 32);
    assert_int_equal(offset(plans[0], "v"), 32 + 112);
    assert_int_equal(offset(plans[1], "w"), 0);
    assert_int_equal(offset(plans[1], "x"), 32);
    assert_int_equal(offset(plans[1], "u"), 32 + 112 + 32);
    for (uint32_t i = 0; i < 2; i++) {
        tarn_plan_summarize(plans[i], &summaries[i]);
        assert_true(summaries[i].footprint <= 640);
        assert_int_equal(summaries[i].persistent, 32 + 112 + 32 + 16);
        require(tarn_plan_verify(plans[i], graphs[i], NULL, NULL, &error), &error);
    }
    finish(graphs, plans);
}

static void groups_stay_whole_and_are_the_same_in_all(void **state)
{
    (void)state;
    const struct persistent first[] = {{"a", 5, TARN_PARAMETER}, {"b", 6, TARN_PARAMETER}};
    const struct persistent second[] = {
        {"a", 5, TARN_PARAMETER}, {"b", 6, TARN_PARAMETER}, {"c", 7, TARN_PARAMETER}};
    struct tarn_graph *graphs[2] = {build(first, 2, 2, 16), build(second, 3, 3, 16)};
    struct tarn_plan *plans[2];
    struct tarn_error error;
    require(plan(graphs, plans, &error), &error);
    assert_int_equal(offset(plans[0], "b"), 5);
    assert_int_equal(offset(plans[1], "b"), 5);
    assert_int_equal(offset(plans[1], "c"), 11);
    finish(graphs, plans);
}

static void refuse(const struct persistent *first, uint32_t first_group,
                   const struct persistent *second, uint32_t second_group, tarn_tensor tensor,
                   const char *words)
{
    struct tarn_graph *graphs[2] = {build(first, 2, first_group, 16),
                                    build(second, 2, second_group, 16)};
    struct tarn_plan *plans[2];
    struct tarn_error error;
    assert_int_equal(plan(graphs, plans, &error), TARN_BAD_INPUT);
    assert_says(&error, words);
    assert_int_equal(error.tensor, tensor);
    assert_null(plans[0]);
    assert_null(plans[1]);
    finish(graphs, plans);
}

static void what_does_not_agree_is_named(void **state)
{
    (void)state;
    const struct persistent good[] = {{"a", 5, TARN_PARAMETER}, {"b", 6, TARN_PARAMETER}};
    const struct persistent longer[] = {{"a", 5, TARN_PARAMETER}, {"b", 7, TARN_PARAMETER}};
    const struct persistent twice[] = {{"b", 6, TARN_PARAMETER}, {"b", 6, TARN_PARAMETER}};
    const struct persistent without[] = {{"a", 5, TARN_PARAMETER}, {"", 6, TARN_PARAMETER}};
    const struct persistent turned[] = {{"b", 6, TARN_PARAMETER}, {"a", 5, TARN_PARAMETER}};
    const struct persistent input[] = {{"a", 9, TARN_INPUT}, {"b", 6, TARN_PARAMETER}};
    refuse(good, 0, longer, 0, 1, "has 7 bytes in graph \"member\" but 6");
    refuse(good, 0, input, 0, 0, "has 9 bytes");
    refuse(good, 0, twice, 0, 1, "has a name that another one has, too");
    refuse(good, 0, without, 0, 1, "has no name");
    refuse(good, 2, turned, 2, 1, "lies otherwise in its contiguous group");
    refuse(good, 2, turned, 0, 0, "lies otherwise in its contiguous group");
}

static void a_capacity_holds_for_every_plan(void **state)
{
    (void)state;
    const struct persistent tensors[] = {{"a", 5, TARN_PARAMETER}};
    struct tarn_graph *graphs[2] = {build(tensors, 1, 0, 16), build(tensors, 1, 0, 640)};
    struct tarn_plan *plans[2];
    struct tarn_error error;
    assert_int_equal(tarn_family_plan(graphs, 2, TARN_PLAN_OPTIONS(.capacity = 100), plans, &error),
                     TARN_DOES_NOT_FIT);
    finish(graphs, plans);
}

/* 48 bytes persistent by that name and 32 in the arena, both in the second space. */
static struct tarn_graph *build_on_chip(const char *name, uint64_t capacity)
{
    struct tarn_graph *graph;
    struct tarn_error error;
    struct tarn_builder *b = tarn_builder_create(name);
    tarn_stream s = tarn_builder_stream(b, "s");
    tarn_builder_space(b, &(struct tarn_space_info){.name = "device"});
    tarn_space chip = tarn_builder_space(b, &(struct tarn_space_info){.name = "chip",
                                                                      .kind = TARN_SPACE_SCRATCH,
                                                                      .capacity = capacity});
    tarn_tensor kept = tarn_builder_tensor(
        b, &(struct tarn_tensor_info){
               .name = name, .size = 48, .kind = TARN_PARAMETER, .space = chip});
    tarn_tensor y =
        tarn_builder_tensor(b, &(struct tarn_tensor_info){.name = "y", .size = 32, .space = chip});
    tarn_builder_op(b, &(struct tarn_op_info){
                           .stream = s, .inputs = TARN_TENSORS(kept), .outputs = TARN_TENSORS(y)});
    require(tarn_builder_finish(b, &graph, &error), &error);
    return graph;
}

static void the_common_persistent_part_keeps_to_the_capacity_of_its_space(void **state)
{
    (void)state;
    for (uint64_t capacity = 80; capacity <= 128; capacity += 16) {
        struct tarn_graph *graphs[2] = {build_on_chip("one", capacity),
                                        build_on_chip("two", capacity)};
        struct tarn_plan *plans[2], *alone;
        struct tarn_error error;
        require(tarn_plan_create(graphs[0], TARN_PLAN_OPTIONS(.alignment = 16), &alone, &error),
                &error);
        tarn_plan_destroy(alone);
        bool fits = capacity == 128;
        assert_int_equal(plan(graphs, plans, &error), fits ? TARN_OK : TARN_DOES_NOT_FIT);
        if (!fits)
            assert_says(&error,
                        "memory space 1 \"chip\": the persistent part that all plans of the "
                        "family share has 96 bytes, and the arena of graph \"one\" 32");
        finish(graphs, plans);
    }
}

/* Chains in which each op reads three tensors before it, one as large as the other many times over:
 * easy to plan at the bound, and the small ones fit into the large one's arena anyhow. */
static struct tarn_graph *build_chain(uint64_t scale)
{
    enum { OPS = 30 };
    struct tarn_graph *graph;
    struct tarn_error error;
    struct tarn_builder *b = tarn_builder_create("chain");
    tarn_stream s = tarn_builder_stream(b, "s");
    tarn_tensor tensors[OPS];
    for (uint32_t i = 0; i < OPS; i++) {
        tarn_tensor inputs[3];
        size_t count = 0;
        tensors[i] = tarn_builder_tensor(
            b, &(struct tarn_tensor_info){.size = (1000 + i * 7919 % 1000) * scale});
        for (uint32_t back = 1; back <= 8; back = back == 1 ? 3 : back + 5)
            if (i >= back) inputs[count++] = tensors[i - back];
        tarn_builder_op(b, &(struct tarn_op_info){.stream = s,
                                                  .inputs = {inputs, count},
                                                  .outputs = {&tensors[i], 1}});
    }
    require(tarn_builder_finish(b, &graph, &error), &error);
    return graph;
}

static void smaller_plans_of_a_family_are_proved_where_that_is_easy(void **state)
{
    (void)state;
    enum { COUNT = 4 };
    struct tarn_graph *graphs[COUNT];
    struct tarn_plan *plans[COUNT];
    struct tarn_error error;
    for (uint64_t i = 0; i < COUNT; i++) graphs[i] = build_chain(i + 1);
    require(tarn_family_plan(graphs, COUNT, NULL, plans, &error), &error);
    for (size_t i = 0; i < COUNT; i++) {
        struct tarn_plan_summary summary;
        tarn_plan_summarize(plans[i], &summary);
        assert_true(summary.optimal);
        tarn_plan_destroy(plans[i]);
        tarn_graph_destroy(graphs[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tensors_of_one_name_lie_at_one_place_and_the_largest_input_has_room),
        cmocka_unit_test(groups_stay_whole_and_are_the_same_in_all),
        cmocka_unit_test(what_does_not_agree_is_named),
        cmocka_unit_test(a_capacity_holds_for_every_plan),
        cmocka_unit_test(smaller_plans_of_a_family_are_proved_where_that_is_easy),
        cmocka_unit_test(the_common_persistent_part_keeps_to_the_capacity_of_its_space),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
