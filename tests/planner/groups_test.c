/* Padded contiguous groups: where members lie, what a group spans, who decides it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "streams/plan/plan.h"
#include "support/random_graph.h"
#include "tarn.h"

enum { MEMBERS = 3 };
static const uint64_t sizes[MEMBERS] = {100, 600, 10};

/* A group of three that one op makes and another reads, and one of parameters. */
static struct tarn_graph *make_graph_with(bool padded, struct tarn_list planned)
{
    struct tarn_builder *b = tarn_builder_create("groups");
    tarn_stream s = tarn_builder_stream(b, "s");
    struct tarn_graph *graph;
    struct tarn_error error;
    for (uint32_t i = 0; i < 2 * MEMBERS; i++)
        tarn_builder_tensor(
            b, &(struct tarn_tensor_info){.size = sizes[i % MEMBERS],
                                          .kind = i < MEMBERS ? TARN_GRADIENT : TARN_PARAMETER});
    tarn_builder_op(b, &(struct tarn_op_info){.stream = s, .outputs = TARN_TENSORS(0, 1, 2)});
    tarn_builder_op(b, &(struct tarn_op_info){.stream = s, .inputs = TARN_TENSORS(0, 1, 2, 3)});
    for (uint32_t i = 0; i < 2; i++) {
        struct tarn_list list = i == 0 ? planned : TARN_TENSORS(MEMBERS, MEMBERS + 1, MEMBERS + 2);
        (padded ? tarn_builder_group_padded : tarn_builder_group)(b, list);
    }
    if (tarn_builder_finish(b, &graph, &error)) fail_msg("%s", error.text);
    return graph;
}

static struct tarn_graph *make_graph(bool padded)
{
    return make_graph_with(padded, TARN_TENSORS(0, 1, 2));
}

static struct tarn_plan *plan_of(struct tarn_graph *graph, enum tarn_group_padding padding)
{
    struct tarn_plan *plan;
    struct tarn_error error;
    if (tarn_plan_create(graph, TARN_PLAN_OPTIONS(.pad_groups = padding), &plan, &error))
        fail_msg("%s", error.text);
    return plan;
}

static void assert_group(const struct tarn_plan *plan, uint32_t group, bool padded)
{
    uint64_t offset, size, expected = padded ? 512 + 1024 + 512 : 710;
    assert_int_equal(tarn_plan_group(plan, group, &offset, &size), TARN_OK);
    assert_int_equal(size, expected);
    assert_int_equal(tarn_graph_group_is_padded(tarn_plan_graph(plan), group), padded);
    for (uint32_t i = 0; i < MEMBERS; i++) {
        assert_int_equal(tarn_plan_offset(plan, group * MEMBERS + i), offset);
        offset += padded ? (sizes[i] + 511) / 512 * 512 : sizes[i];
    }
}

static void members_of_a_padded_group_begin_at_multiples_of_the_alignment(void **state)
{
    (void)state;
    for (int padded = 0; padded < 2; padded++) {
        struct tarn_graph *graph = make_graph(padded);
        struct tarn_plan *plan = plan_of(graph, TARN_GROUPS_AS_GIVEN);
        struct tarn_plan_summary summary;
        tarn_plan_summarize(plan, &summary);
        assert_int_equal(summary.footprint, padded ? 2048 : 1024);
        assert_int_equal(summary.persistent, padded ? 2048 : 1024);
        assert_true(summary.optimal);
        for (uint32_t g = 0; g < 2; g++) assert_group(plan, g, padded);
        tarn_plan_destroy(plan);
        tarn_graph_destroy(graph);
    }
}

static void a_session_hands_out_the_buffer_with_its_padding(void **state)
{
    (void)state;
    for (int padded = 0; padded < 2; padded++) {
        struct tarn_graph *graph = make_graph(padded);
        struct tarn_plan *plan = plan_of(graph, TARN_GROUPS_AS_GIVEN);
        struct tarn_session *session;
        void *address;
        uint64_t size;
        assert_int_equal(tarn_session_create(plan, tarn_device_host(NULL), NULL, &session, NULL),
                         TARN_OK);
        for (uint32_t g = 0; g < 2; g++) {
            assert_int_equal(tarn_session_group(session, g, &address, &size, NULL), TARN_OK);
            assert_ptr_equal(address, tarn_session_address(session, g * MEMBERS));
            assert_int_equal(size, padded ? 2048 : 710);
        }
        tarn_session_destroy(session);
        tarn_plan_destroy(plan);
        tarn_graph_destroy(graph);
    }
}

static void the_caller_overrules_the_graph_and_the_plan_says_so(void **state)
{
    (void)state;
    char path[] = "/tmp/tarn-groups-test-XXXXXX";
    close(mkstemp(path));
    for (int padded = 0; padded < 2; padded++) {
        struct tarn_graph *graph = make_graph(!padded);
        struct tarn_plan *plan = plan_of(graph, padded ? TARN_GROUPS_PADDED : TARN_GROUPS_EXACT),
                         *loaded;
        struct tarn_plan_summary summary;
        assert_group(plan, 0, padded);
        assert_int_equal(tarn_plan_save(plan, path, NULL), TARN_OK);
        assert_int_equal(tarn_plan_load(path, graph, TARN_VERIFY, NULL, &loaded, NULL), TARN_OK);
        tarn_plan_summarize(loaded, &summary);
        assert_int_equal(summary.pad_groups, padded ? TARN_GROUPS_PADDED : TARN_GROUPS_EXACT);
        assert_group(loaded, 1, padded);
        tarn_plan_destroy(loaded);
        tarn_plan_destroy(plan);
        tarn_graph_destroy(graph);
    }
    unlink(path);
}

static void the_smaller_plan_is_taken_and_exact_groups_where_both_are_equal(void **state)
{
    (void)state;
    struct tarn_graph *graph = make_graph(true);
    struct tarn_plan *plan = plan_of(graph, TARN_GROUPS_SMALLER);
    assert_group(plan, 0, false);
    tarn_plan_destroy(plan);
    struct tarn_plan_summary summary;
    assert_int_equal(
        tarn_plan_create(graph,
                         TARN_PLAN_OPTIONS(.pad_groups = TARN_GROUPS_SMALLER, .alignment = 1),
                         &plan, NULL),
        TARN_OK);
    tarn_plan_summarize(plan, &summary);
    assert_int_equal(summary.pad_groups, TARN_GROUPS_EXACT);
    tarn_plan_destroy(plan);
    assert_int_equal(
        tarn_plan_create(graph,
                         TARN_PLAN_OPTIONS(.pad_groups = TARN_GROUPS_SMALLER, .capacity = 1024),
                         &plan, NULL),
        TARN_OK);
    tarn_plan_destroy(plan);
    assert_int_equal(
        tarn_plan_create(graph,
                         TARN_PLAN_OPTIONS(.pad_groups = TARN_GROUPS_SMALLER, .capacity = 512),
                         &plan, NULL),
        TARN_DOES_NOT_FIT);
    tarn_graph_destroy(graph);
}

/* The least of a budget that is refused, with this padding. */
static uint64_t least_by(struct tarn_graph *graph, enum tarn_group_padding padding)
{
    struct tarn_budget_report report = {0};
    struct tarn_plan *plan;
    struct tarn_plan_options *options =
        TARN_PLAN_OPTIONS(.pad_groups = padding, .threads = 1, .effort = 40,
                          .budget =
                              TARN_BUDGET_OPTIONS(.budget = 1, .effort = 60, .report = &report));
    enum tarn_status status = tarn_plan_create(graph, options, &plan, NULL);
    tarn_plan_destroy(plan);
    assert_int_equal(status, TARN_DOES_NOT_FIT);
    return report.footprint;
}

static void the_least_of_both_paddings_is_told(void **state)
{
    (void)state;
    uint32_t exact_less = 0, padded_less = 0;
    for (uint64_t seed = 0; seed < 40; seed++) {
        struct random_graph_options options = random_graph_knobs(seed, 30);
        options.group_share = 60;
        struct tarn_graph *graph = random_graph(&options);
        uint64_t exact = graph->planned_count ? least_by(graph, TARN_GROUPS_EXACT) : 0;
        uint64_t padded = graph->planned_count ? least_by(graph, TARN_GROUPS_PADDED) : 0;
        if (exact > 0)
            assert_int_equal(least_by(graph, TARN_GROUPS_SMALLER), exact < padded ? exact : padded);
        exact_less += exact < padded;
        padded_less += padded < exact;
        tarn_graph_destroy(graph);
    }
    print_message("# exact %u times, padded %u\n", exact_less, padded_less);
    assert_true(exact_less > 0);
}

/* The bytes that a plan within one byte is told to need, with this padding. */
static uint64_t needed_by(struct tarn_graph *graph, enum tarn_group_padding padding,
                          uint64_t capacity)
{
    struct tarn_plan *plan;
    struct tarn_error error;
    struct tarn_plan_options *options =
        TARN_PLAN_OPTIONS(.pad_groups = padding, .threads = 1, .effort = 40, .capacity = capacity);
    assert_int_equal(tarn_plan_create(graph, options, &plan, &error), TARN_DOES_NOT_FIT);
    const char *word = strstr(error.text, "need ");
    if (!word) word = strstr(error.text, "needs ");
    if (!word) fail_msg("no number in: %s", error.text);
    return strtoull(word + strcspn(word, "0123456789"), NULL, 10);
}

/* Of a capacity that is refused; in the order of the paddings the first may be the worse one. */
static void the_padding_that_needs_least_is_told(void **state)
{
    (void)state;
    uint32_t padded_less = 0;
    for (uint64_t seed = 0; seed < 40; seed++) {
        struct random_graph_options options = random_graph_knobs(seed, 30);
        options.group_share = 60;
        struct tarn_graph *graph = random_graph(&options);
        if (graph->planned_count > 0) {
            uint64_t exact = needed_by(graph, TARN_GROUPS_EXACT, 1);
            uint64_t padded = needed_by(graph, TARN_GROUPS_PADDED, 1);
            assert_int_equal(needed_by(graph, TARN_GROUPS_SMALLER, 1),
                             exact < padded ? exact : padded);
            padded_less += padded < exact;
        }
        tarn_graph_destroy(graph);
    }
    print_message("# padded less %u times\n", padded_less);
    assert_true(padded_less > 0);
}

/* The plan of another graph, as if that had come out of the source by a transform. */
static void assert_refused(struct tarn_graph *source, struct tarn_graph *other, const char *why)
{
    struct tarn_plan *plan = plan_of(other, TARN_GROUPS_AS_GIVEN);
    struct tarn_error error;
    plan->source_hash = source->hash;
    plan->transformed = true;
    assert_int_equal(tarn_plan_verify(plan, source, NULL, NULL, &error), TARN_REJECTED);
    assert_non_null(strstr(error.text, why));
    tarn_plan_destroy(plan);
}

static void refuses_groups_that_are_gone_or_padded_without_being_asked_to(void **state)
{
    (void)state;
    struct tarn_graph *exact = make_graph(false), *padded = make_graph(true), *none;
    struct tarn_builder *b = tarn_builder_create("none");
    tarn_stream s = tarn_builder_stream(b, "s");
    for (uint32_t i = 0; i < 2 * MEMBERS; i++)
        tarn_builder_tensor(
            b, &(struct tarn_tensor_info){.size = sizes[i % MEMBERS],
                                          .kind = i < MEMBERS ? TARN_GRADIENT : TARN_PARAMETER});
    tarn_builder_op(b, &(struct tarn_op_info){.stream = s, .outputs = TARN_TENSORS(0, 1, 2)});
    tarn_builder_op(b, &(struct tarn_op_info){.stream = s, .inputs = TARN_TENSORS(0, 1, 2, 3)});
    assert_int_equal(tarn_builder_finish(b, &none, NULL), TARN_OK);
    struct tarn_graph *shorter = make_graph_with(false, TARN_TENSORS(0, 1));
    struct tarn_graph *other = make_graph_with(false, TARN_TENSORS(0, 2, 1));
    assert_refused(exact, none, "is not in the plan's graph");
    assert_refused(exact, shorter, "is not in the plan's graph");
    assert_refused(exact, other, "is not in the plan's graph");
    assert_refused(exact, padded, "is padded in the plan's graph, but padding was not asked for");
    assert_refused(padded, exact, "is not padded in the plan's graph");
    tarn_graph_destroy(exact);
    tarn_graph_destroy(padded);
    tarn_graph_destroy(none);
    tarn_graph_destroy(shorter);
    tarn_graph_destroy(other);
}

static void refuses_a_padded_group_whose_members_lie_end_to_end(void **state)
{
    (void)state;
    struct tarn_graph *graph = make_graph(true);
    struct tarn_plan *plan = plan_of(graph, TARN_GROUPS_AS_GIVEN);
    struct tarn_error error;
    plan->storages[1].offset = plan->storages[0].offset + 100;
    assert_int_equal(tarn_plan_verify(plan, graph, NULL, NULL, &error), TARN_REJECTED);
    assert_non_null(strstr(error.text, "group broken"));
    tarn_plan_destroy(plan);
    tarn_graph_destroy(graph);
}

/* Whatever the method: the group is its one member, and the verifier accepts the plan. */
static void a_group_of_one_is_planned_as_its_tensor_alone(void **state)
{
    static const char *const methods[] = {"all", "baseline", "lowest", "exact"};
    struct tarn_graph *graph = make_graph_with(false, TARN_TENSORS(1));
    (void)state;
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        struct tarn_plan *plan = NULL;
        struct tarn_error error;
        uint64_t offset, size;
        if (tarn_plan_create(graph, TARN_PLAN_OPTIONS(.method = methods[i]), &plan, &error))
            fail_msg("%s: %s", methods[i], error.text);
        assert_int_equal(tarn_plan_verify(plan, graph, NULL, NULL, &error), TARN_OK);
        assert_int_equal(tarn_plan_group(plan, 0, &offset, &size), TARN_OK);
        assert_int_equal(size, sizes[1]);
        assert_int_equal(offset, tarn_plan_offset(plan, 1));
        tarn_plan_destroy(plan);
    }
    tarn_graph_destroy(graph);
}

static void files_say_of_a_group_that_it_is_padded(void **state)
{
    (void)state;
    char path[] = "/tmp/tarn-groups-test-XXXXXX";
    close(mkstemp(path));
    struct tarn_graph *graph = make_graph(true), *exact = make_graph(false), *loaded;
    assert_int_equal(tarn_graph_save(graph, path, NULL), TARN_OK);
    assert_int_equal(tarn_graph_load(path, NULL, &loaded, NULL), TARN_OK);
    assert_true(tarn_graph_group_is_padded(loaded, 1));
    assert_memory_equal(&loaded->hash, &graph->hash, sizeof graph->hash);
    assert_memory_not_equal(&exact->hash, &graph->hash, sizeof graph->hash);
    tarn_graph_destroy(loaded);
    assert_int_equal(tarn_graph_pad_groups(graph, TARN_GROUPS_EXACT, &loaded, NULL), TARN_OK);
    assert_memory_equal(&loaded->hash, &exact->hash, sizeof graph->hash);
    unlink(path);
    tarn_graph_destroy(loaded);
    tarn_graph_destroy(exact);
    tarn_graph_destroy(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_of_a_padded_group_begin_at_multiples_of_the_alignment),
        cmocka_unit_test(a_session_hands_out_the_buffer_with_its_padding),
        cmocka_unit_test(the_caller_overrules_the_graph_and_the_plan_says_so),
        cmocka_unit_test(the_smaller_plan_is_taken_and_exact_groups_where_both_are_equal),
        cmocka_unit_test(the_least_of_both_paddings_is_told),
        cmocka_unit_test(the_padding_that_needs_least_is_told),
        cmocka_unit_test(refuses_groups_that_are_gone_or_padded_without_being_asked_to),
        cmocka_unit_test(refuses_a_padded_group_whose_members_lie_end_to_end),
        cmocka_unit_test(a_group_of_one_is_planned_as_its_tensor_alone),
        cmocka_unit_test(files_say_of_a_group_that_it_is_padded),
    };
    return cmocka_run_group_tests_name("groups", tests, NULL, NULL);
}
