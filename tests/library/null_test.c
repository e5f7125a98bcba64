/* Every public function, with each of its pointers NULL in turn: who needs it answers TARN_USAGE
 * (asked with and without a place for the error), a getter nothing, a destroy does nothing. The
 * style test sees to it that none is missing here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "support/random_graph.h"
#include "tarn.h"

struct world {
    struct tarn_graph *graph;
    struct tarn_plan *plan;
    struct tarn_session *session;
    struct tarn_device device, none;
};

/* `call` reads the variable `error`. */
#define REFUSES(call)                                              \
    do {                                                           \
        struct tarn_error text = {0}, *error = &text;              \
        assert_int_equal(call, TARN_USAGE);                        \
        assert_int_equal(text.status, TARN_USAGE);                 \
        assert_true(text.text[0] != '\0' && text.op == TARN_NONE); \
        error = NULL;                                              \
        assert_int_equal(call, TARN_USAGE);                        \
    } while (0)

/* What may be NULL may. */
#define ACCEPTS(call)                    \
    do {                                 \
        struct tarn_error *error = NULL; \
        (void)error;                     \
        assert_int_equal(call, TARN_OK); \
    } while (0)

static void create_world(struct world *world)
{
    *world = (struct world){
        .graph = random_graph(&(struct random_graph_options){.seed = 1, .ops = 20, .streams = 2}),
        .device = tarn_device_host(NULL)};
    ACCEPTS(tarn_plan_create(world->graph, NULL, &world->plan, NULL));
    ACCEPTS(tarn_session_create(world->plan, world->device, NULL, &world->session, NULL));
}

static void destroy_world(struct world *world)
{
    assert_int_equal(tarn_session_destroy_within(world->session, TARN_FOREVER, NULL), TARN_OK);
    tarn_plan_destroy(world->plan);
    tarn_graph_destroy(world->graph);
}

static void destroying_nothing_does_nothing(void **state)
{
    (void)state;
    tarn_builder_destroy(NULL);
    tarn_graph_destroy(NULL);
    tarn_plan_destroy(NULL);
    tarn_verdict_destroy(NULL);
    tarn_simulation_destroy(NULL);
    tarn_cost_table_destroy(NULL);
    tarn_couple_report_finish(NULL);
    assert_int_equal(tarn_session_destroy(NULL), TARN_OK);
    assert_int_equal(tarn_session_destroy_within(NULL, 0, NULL), TARN_OK);
    assert_int_equal(tarn_arena_destroy(NULL), TARN_OK);
    tarn_host_event_destroy(NULL);
    tarn_session_cancel(NULL);
    tarn_session_dump(NULL, NULL, NULL);
    tarn_session_host_memory_destroy(NULL, NULL, 0);
    tarn_device_cuda_close((struct tarn_device){0});
}

static void functions_without_pointers_answer(void **state)
{
    (void)state;
    assert_non_null(tarn_version());
    assert_true(tarn_host_cores() > 0);
    assert_int_equal(tarn_version_number(), TARN_VERSION_NUMBER);
    assert_non_null(tarn_status_text(TARN_USAGE));
    assert_non_null(tarn_violation_text(TARN_MISSING));
    assert_non_null(tarn_reorder_stage_text(TARN_REORDER_GREEDY));
    assert_non_null(tarn_plan_method(0));
    assert_null(tarn_plan_asked(NULL));
    assert_int_equal(tarn_plan_answers(NULL, NULL, NULL), TARN_USAGE);
    assert_null(tarn_plan_method(SIZE_MAX));
    assert_int_equal(tarn_text_escape(TARN_PLAIN, "abc", NULL, 0), 3);
    assert_int_equal(tarn_text_escape(TARN_PLAIN, NULL, NULL, 0), 0);
}

static void a_builder_collects_what_is_null(void **state)
{
    (void)state;
    const struct tarn_op_info holes[] = {
        {.inputs = {NULL, 1}},
        {.outputs = {NULL, 1}},
        {.control = {NULL, 1}},
        {.inplace_count = 1},
        {.implementations_count = 1},
        {.implementations = &(struct tarn_implementation){.inputs = {NULL, 1}},
         .implementations_count = 1},
    };
    enum { HOLES = sizeof holes / sizeof *holes };
    for (uint32_t i = 0; i < HOLES + 4; i++) {
        struct tarn_graph *graph = NULL;
        struct tarn_error error;
        struct tarn_builder *builder = tarn_builder_create(NULL);
        assert_int_equal(tarn_builder_stream(builder, NULL), 0);
        if (i < HOLES) assert_int_equal(tarn_builder_op(builder, &holes[i]), TARN_NONE);
        if (i == HOLES) assert_int_equal(tarn_builder_op(builder, NULL), TARN_NONE);
        if (i == HOLES + 1) assert_int_equal(tarn_builder_tensor(builder, NULL), TARN_NONE);
        if (i == HOLES + 2) tarn_builder_group(builder, (struct tarn_list){NULL, 2});
        if (i < HOLES + 3) {
            assert_int_equal(tarn_builder_finish(builder, &graph, &error), TARN_USAGE);
            assert_non_null(strstr(error.text, "NULL"));
        } else {
            assert_int_equal(tarn_builder_finish(builder, NULL, &error), TARN_USAGE);
        }
        assert_null(graph);
    }
}

static void a_builder_that_is_null_is_one_without_memory(void **state)
{
    (void)state;
    struct tarn_graph *graph;
    struct tarn_error error;
    assert_int_equal(tarn_builder_stream(NULL, "s"), TARN_NONE);
    assert_int_equal(tarn_builder_tensor(NULL, &(struct tarn_tensor_info){0}), TARN_NONE);
    assert_int_equal(tarn_builder_alias(NULL, 0, "a"), TARN_NONE);
    assert_int_equal(tarn_session_take(NULL, 0, 0, NULL), TARN_USAGE);
    assert_int_equal(tarn_builder_slice(NULL, 0, 0, 0, "a"), TARN_NONE);
    assert_int_equal(tarn_builder_op(NULL, &(struct tarn_op_info){0}), TARN_NONE);
    tarn_builder_control(NULL, 0, 0);
    tarn_builder_after_readers(NULL, 0);
    tarn_builder_group(NULL, (struct tarn_list){0});
    assert_int_equal(tarn_builder_space(NULL, NULL), TARN_NONE);
    tarn_builder_group_padded(NULL, (struct tarn_list){0});
    tarn_builder_group_offsets(NULL, (struct tarn_list){0}, NULL);
    assert_null(tarn_graph_group_offsets(NULL, 0));
    tarn_builder_group_symmetric(NULL, 0, NULL);
    assert_null(tarn_graph_group_symmetric(NULL, 0));
    assert_int_equal(tarn_builder_finish(NULL, &graph, &error), TARN_SYSTEM);
    assert_null(graph);
    assert_int_equal(tarn_builder_finish(NULL, &graph, NULL), TARN_SYSTEM);
    assert_int_equal(tarn_builder_finish(NULL, NULL, &error), TARN_USAGE);
    struct tarn_builder *builder = tarn_builder_create("g");
    assert_int_equal(tarn_builder_alias(builder, 0, NULL), TARN_NONE); /* of no tensor */
    tarn_builder_destroy(builder);
}

static void getters_of_nothing_say_nothing(void **state)
{
    (void)state;
    struct world world;
    struct tarn_op_info op;
    struct tarn_tensor_info tensor;
    struct tarn_plan_summary summary = {.footprint = 1};
    create_world(&world);
    assert_null(tarn_graph_name(NULL));
    assert_int_equal(tarn_graph_streams_count(NULL), 0);
    assert_int_equal(tarn_graph_ops_count(NULL), 0);
    assert_int_equal(tarn_graph_tensors_count(NULL), 0);
    assert_null(tarn_graph_stream_name(NULL, 0));
    assert_false(tarn_graph_op(NULL, 0, &op));
    assert_false(tarn_graph_op(world.graph, 0, NULL));
    assert_false(tarn_graph_tensor(NULL, 0, &tensor));
    assert_false(tarn_graph_tensor(world.graph, 0, NULL));
    assert_int_equal(tarn_graph_root(NULL, 0), TARN_NONE);
    assert_int_equal(tarn_graph_find_op(NULL, "v"), TARN_NONE);
    assert_int_equal(tarn_graph_find_op(world.graph, NULL), TARN_NONE);
    assert_int_equal(tarn_graph_find_tensor(NULL, "t"), TARN_NONE);
    assert_int_equal(tarn_graph_find_tensor(world.graph, NULL), TARN_NONE);
    assert_null(tarn_plan_graph(NULL));
    assert_true(tarn_plan_offset(NULL, 0) == UINT64_MAX);
    assert_int_equal(tarn_graph_groups_count(NULL), 0);
    assert_int_equal(tarn_graph_group(NULL, 0).count, 0);
    assert_false(tarn_graph_group_is_padded(NULL, 0));
    assert_int_equal(tarn_graph_spaces_count(NULL), 0);
    assert_false(tarn_graph_space(NULL, 0, NULL));
    assert_string_equal(tarn_space_kind_text((enum tarn_space_kind)99), "unknown");
    assert_string_equal(tarn_op_class_text((enum tarn_op_class)99), "unknown");
    assert_int_equal(tarn_graph_op_class(NULL, 0), TARN_CLASS_UNKNOWN);
    assert_false(tarn_plan_space(NULL, 0, NULL));
    assert_null(tarn_session_memory(NULL, 0, NULL));
    assert_null(tarn_arena_memory(NULL, 0, NULL));
    assert_true((tarn_graph_hash(NULL).word[0] | tarn_graph_hash(NULL).word[1]) == 0);
    assert_string_equal(tarn_hash_format(tarn_graph_hash(NULL)).text,
                        "00000000000000000000000000000000");
    assert_int_equal(tarn_plan_launches(NULL, 0).count, 0);
    assert_int_equal(tarn_plan_waits(NULL).count, 0);
    assert_int_equal(tarn_plan_boundary_waits(NULL).count, 0);
    assert_int_equal(tarn_plan_op_origin(NULL, 0), TARN_NONE);
    assert_int_equal(tarn_plan_tensor_origin(NULL, 0), TARN_NONE);
    assert_int_equal(tarn_plan_op_implementation(NULL, 0), TARN_NONE);
    assert_false(tarn_plan_op_is_recomputed(NULL, 0));
    assert_int_equal(tarn_plan_group(NULL, 0, NULL, NULL), TARN_USAGE);
    assert_false(tarn_plan_window(NULL, NULL));
    assert_int_equal(tarn_family_verify(NULL, 1, NULL), TARN_USAGE);
    assert_int_equal(tarn_ranks_plan(NULL, 1, NULL, NULL, NULL), TARN_USAGE);
    assert_int_equal(tarn_family_verify((struct tarn_plan *[]){NULL}, 1, NULL), TARN_USAGE);
    assert_int_equal(tarn_nccl_open(NULL, NULL, NULL), TARN_USAGE);
    tarn_nccl_close(NULL);
    assert_null(tarn_nccl_memory(NULL).create);
    assert_null(tarn_nccl_registrar(NULL).enter);
    assert_false(tarn_plan_certificate(NULL, &(struct tarn_certificate){.bound = 1}));
    assert_int_equal(tarn_plan_identify(NULL).plan.word[0], 0);
    assert_null(tarn_session_workspace(NULL, 0));
    assert_true(tarn_plan_workspace_offset(NULL, 0) == UINT64_MAX);
    tarn_plan_summarize(world.plan, NULL);
    tarn_plan_summarize(NULL, &summary);
    assert_int_equal(summary.footprint, 0);
    assert_int_equal(tarn_verdict_count(NULL), 0);
    assert_null(tarn_verdict_get(NULL, 0));
    assert_null(tarn_session_address(NULL, 0));
    assert_int_not_equal(tarn_device_cuda_spin((struct tarn_device){0}, NULL, 0), 0);
    destroy_world(&world);
}

static void graphs_need_their_arguments(void **state)
{
    (void)state;
    struct world w;
    struct tarn_graph *graph = (void *)1;
    struct tarn_graph_summary summary;
    struct tarn_pairs pairs;
    struct tarn_simulation *simulation;
    uint64_t bound;
    struct tarn_graph_space_summary of_space;
    create_world(&w);
    REFUSES(tarn_graph_load(NULL, NULL, &graph, error));
    assert_null(graph);
    REFUSES(tarn_graph_load("-", NULL, NULL, error));
    REFUSES(tarn_graph_save(NULL, "-", error));
    REFUSES(tarn_graph_save(w.graph, NULL, error));
    REFUSES(tarn_graph_read(NULL, NULL, &graph, error));
    REFUSES(tarn_graph_read(TARN_READER(.size = 1), NULL, &graph, error));
    REFUSES(tarn_graph_read(TARN_READER(.bytes = ""), NULL, NULL, error));
    REFUSES(tarn_graph_write(NULL, TARN_WRITER(.room = 1), error));
    REFUSES(tarn_graph_write(w.graph, TARN_WRITER(.room = 1), error));
    REFUSES(tarn_graph_write(w.graph, NULL, error));
    REFUSES(tarn_graph_summarize(NULL, &summary, error));
    REFUSES(tarn_graph_summarize(w.graph, NULL, error));
    REFUSES(tarn_graph_summarize_space(NULL, 0, &of_space, error));
    REFUSES(tarn_graph_summarize_space(w.graph, 0, NULL, error));
    REFUSES(tarn_graph_summarize_space(w.graph, 99, &of_space, error));
    REFUSES(tarn_graph_bound(NULL, &bound, error));
    REFUSES(tarn_graph_bound(w.graph, NULL, error));
    REFUSES(tarn_graph_pairs(NULL, "clocks", &pairs, error));
    REFUSES(tarn_graph_pairs(w.graph, NULL, &pairs, error));
    REFUSES(tarn_graph_pairs(w.graph, "clocks", NULL, error));
    REFUSES(tarn_graph_simulate(NULL, 0, 0, &simulation, error));
    REFUSES(tarn_graph_simulate(w.graph, 0, 0, NULL, error));
    destroy_world(&w);
}

static void transforms_need_graph_and_result(void **state)
{
    (void)state;
    struct world w;
    struct tarn_graph *r;
    struct tarn_change *changes;
    struct tarn_cost_table *table;
    size_t count;
    create_world(&w);
#define TRANSFORM(name)                                     \
    REFUSES(tarn_graph_##name(NULL, NULL, &r, error));      \
    assert_null(r);                                         \
    REFUSES(tarn_graph_##name(w.graph, NULL, NULL, error)); \
    ACCEPTS(tarn_graph_##name(w.graph, NULL, &r, error));   \
    tarn_graph_destroy(r)
    TRANSFORM(assign);
    TRANSFORM(budget);
    TRANSFORM(reorder);
    TRANSFORM(couple);
    TRANSFORM(in_place);
    TRANSFORM(implementations);
    TRANSFORM(transform);
    /* tarn_graph_assign, tarn_graph_budget, tarn_graph_reorder, tarn_graph_couple,
     * tarn_graph_in_place, tarn_graph_implementations, tarn_graph_transform */
    const char *const words[] = {"a", NULL};
    REFUSES(tarn_graph_in_place(w.graph, TARN_IN_PLACE_OPTIONS(.kinds = words, .kinds_count = 2),
                                &r, error));
    REFUSES(tarn_graph_in_place(w.graph, TARN_IN_PLACE_OPTIONS(.kinds_count = 1), &r, error));
    REFUSES(tarn_graph_pad_groups(NULL, TARN_GROUPS_PADDED, &r, error));
    REFUSES(tarn_graph_pad_groups(w.graph, TARN_GROUPS_PADDED, NULL, error));
    REFUSES(tarn_graph_pad_groups(w.graph, TARN_GROUPS_SMALLER, &r, error));
    ACCEPTS(tarn_graph_pad_groups(w.graph, TARN_GROUPS_PADDED, &r, error));
    tarn_graph_destroy(r);
    REFUSES(tarn_graph_assign(
        w.graph, TARN_ASSIGN_OPTIONS(.communication_words = words, .communication_words_count = 2),
        &r, error));
    REFUSES(tarn_graph_assign(
        w.graph, TARN_ASSIGN_OPTIONS(.copy_words = words, .copy_words_count = 2), &r, error));
    struct tarn_budget_report row;
    REFUSES(tarn_graph_budget_curve(NULL, NULL, &row, 1, error));
    REFUSES(tarn_graph_budget_curve(w.graph, NULL, NULL, 1, error));
    REFUSES(tarn_budget_curve_save(NULL, &row, 0, "-", error));
    REFUSES(tarn_budget_curve_save(w.graph, NULL, 1, "-", error));
    REFUSES(tarn_budget_curve_save(w.graph, &row, 0, NULL, error));
    REFUSES(tarn_cost_table_load(NULL, &table, error));
    REFUSES(tarn_cost_table_load("-", NULL, error));
    REFUSES(tarn_cost_table_read(NULL, &table, error));
    REFUSES(tarn_cost_table_read(TARN_READER(.bytes = ""), NULL, error));
    REFUSES(tarn_graph_changes(NULL, w.graph, &changes, &count, error));
    REFUSES(tarn_graph_changes(w.graph, NULL, &changes, &count, error));
    REFUSES(tarn_graph_changes(w.graph, w.graph, NULL, &count, error));
    REFUSES(tarn_graph_changes(w.graph, w.graph, &changes, NULL, error));
    destroy_world(&w);
}

static void plans_need_their_arguments(void **state)
{
    (void)state;
    struct world w;
    struct tarn_plan *plan;
    struct tarn_verdict *verdict;
    struct tarn_step *steps, step = {0};
    size_t count;
    create_world(&w);
    REFUSES(tarn_plan_create(NULL, NULL, &plan, error));
    REFUSES(tarn_plan_create(w.graph, NULL, NULL, error));
    REFUSES(tarn_plan_save(NULL, "-", error));
    REFUSES(tarn_plan_save(w.plan, NULL, error));
    REFUSES(tarn_plan_save_intervals(NULL, "-", error));
    REFUSES(tarn_plan_save_intervals(w.plan, NULL, error));
    REFUSES(tarn_plan_load(NULL, w.graph, TARN_VERIFY, NULL, &plan, error));
    REFUSES(tarn_plan_load("-", NULL, TARN_VERIFY, NULL, &plan, error));
    REFUSES(tarn_plan_load("-", w.graph, TARN_VERIFY, NULL, NULL, error));
    REFUSES(tarn_plan_read(NULL, w.graph, TARN_VERIFY, NULL, &plan, error));
    REFUSES(tarn_plan_read(TARN_READER(.bytes = ""), NULL, TARN_VERIFY, NULL, &plan, error));
    REFUSES(tarn_plan_read(TARN_READER(.bytes = ""), w.graph, TARN_VERIFY, NULL, NULL, error));
    REFUSES(tarn_plan_write(NULL, TARN_WRITER(.bytes = &count), error));
    REFUSES(tarn_plan_write(w.plan, NULL, error));
    struct tarn_plan_identity identity = tarn_plan_identify(w.plan);
    REFUSES(tarn_plan_expect(NULL, &identity, error));
    REFUSES(tarn_plan_expect(w.plan, NULL, error));
    ACCEPTS(tarn_plan_expect(w.plan, &identity, error));
    REFUSES(tarn_plan_verify(NULL, w.graph, NULL, &verdict, error));
    REFUSES(tarn_plan_verify(w.plan, NULL, NULL, &verdict, error));
    ACCEPTS(tarn_plan_verify(w.plan, w.graph, NULL, NULL, error));
    REFUSES(tarn_plan_verify_file(NULL, w.graph, NULL, &verdict, error));
    struct tarn_verify_options *of_null = TARN_VERIFY_OPTIONS(.in_place_kinds_count = 1);
    REFUSES(tarn_plan_verify(w.plan, w.graph, of_null, &verdict, error));
    struct tarn_plan_outline *outline;
    REFUSES(tarn_plan_outline_load(NULL, &outline, error));
    REFUSES(tarn_plan_outline_load("-", NULL, error));
    tarn_plan_outline_destroy(NULL);
    REFUSES(tarn_plan_verify_file("-", NULL, NULL, &verdict, error));
    REFUSES(tarn_order_save(NULL, 1, "-", error));
    REFUSES(tarn_order_save(&step, 1, NULL, error));
    REFUSES(tarn_order_load(NULL, &steps, &count, error));
    REFUSES(tarn_order_load("-", NULL, &count, error));
    REFUSES(tarn_order_load("-", &steps, NULL, error));
    struct tarn_trace_entry *entries;
    REFUSES(tarn_trace_load(NULL, &entries, &count, error));
    REFUSES(tarn_trace_load("-", NULL, &count, error));
    REFUSES(tarn_trace_load("-", &entries, NULL, error));
    REFUSES(tarn_file_save(NULL, "", 0, error));
    REFUSES(tarn_file_save("-", NULL, 1, error));
    REFUSES(tarn_set_allocator(NULL, error));
    REFUSES(tarn_graph_with_costs(NULL, NULL, 0, &(struct tarn_graph *){NULL}, error));
    REFUSES(tarn_graph_with_costs(w.graph, NULL, 0, NULL, error));
    REFUSES(tarn_graph_with_costs(w.graph, NULL, 1, &(struct tarn_graph *){NULL}, error));
    ACCEPTS(tarn_set_log(NULL, error));
    tarn_free(NULL);
    destroy_world(&w);
}

static int do_nothing(void *user, const struct tarn_call *call)
{
    (void)user, (void)call;
    return 0;
}

static void arenas_and_families_need_their_arguments(void **state)
{
    (void)state;
    struct world w;
    struct tarn_memory_needs size;
    struct tarn_arena *arena;
    struct tarn_plan *plans[1], *none[1] = {NULL};
    struct tarn_graph *nothing[1] = {NULL};
    create_world(&w);
    REFUSES(tarn_family_plan(NULL, 1, NULL, plans, error));
    REFUSES(tarn_family_plan(&w.graph, 1, NULL, NULL, error));
    REFUSES(tarn_family_plan(&w.graph, 0, NULL, plans, error));
    REFUSES(tarn_family_plan(nothing, 1, NULL, plans, error));
    REFUSES(tarn_arena_needs(NULL, 1, w.device, NULL, 0, &size, error));
    REFUSES(tarn_arena_needs(none, 1, w.device, NULL, 0, &size, error));
    REFUSES(tarn_arena_needs(&w.plan, 1, w.none, NULL, 0, &size, error));
    REFUSES(tarn_arena_needs(&w.plan, 1, w.device, NULL, 0, NULL, error));
    REFUSES(tarn_arena_needs(&w.plan, 1, w.device, NULL, 1, &size, error));
    REFUSES(tarn_arena_create(NULL, 1, w.device, NULL, &arena, error));
    REFUSES(tarn_arena_create(none, 1, w.device, NULL, &arena, error));
    REFUSES(tarn_arena_create(&w.plan, 0, w.device, NULL, &arena, error));
    REFUSES(tarn_arena_create(&w.plan, 1, w.none, NULL, &arena, error));
    REFUSES(tarn_arena_create(&w.plan, 1, w.device, NULL, NULL, error));
    ACCEPTS(tarn_arena_create(&w.plan, 1, w.device, NULL, &arena, NULL));
    assert_non_null(tarn_arena_memory(arena, 0, NULL));
    assert_null(tarn_arena_memory(NULL, 0, &size));
    assert_int_equal(size.size, 0);
    assert_int_equal(tarn_arena_waits(NULL, 0, 0).count, 0);
    assert_int_equal(tarn_arena_destroy(arena), TARN_OK);
    destroy_world(&w);
}

static void sessions_need_their_arguments(void **state)
{
    (void)state;
    struct world w;
    struct tarn_session *session;
    struct tarn_memory_needs size;
    tarn_ticket ticket;
    uint64_t finished;
    void *memory;
    char byte = 0;
    create_world(&w);
    REFUSES(tarn_session_needs(NULL, w.device, NULL, 0, &size, error));
    REFUSES(tarn_session_needs(w.plan, w.none, NULL, 0, &size, error));
    REFUSES(tarn_session_needs(w.plan, w.device, NULL, 0, NULL, error));
    REFUSES(tarn_session_needs(w.plan, w.device, NULL, 1, &size, error));
    REFUSES(tarn_session_create(NULL, w.device, NULL, &session, error));
    REFUSES(tarn_session_create(w.plan, w.none, NULL, &session, error));
    REFUSES(tarn_session_create(w.plan, w.device, NULL, NULL, error));
    assert_int_equal(tarn_session_bind(NULL, 0, do_nothing, NULL, NULL), TARN_USAGE);
    assert_int_equal(tarn_session_bind(w.session, 0, NULL, NULL, NULL), TARN_USAGE);
    assert_int_equal(tarn_session_bind_default(NULL, do_nothing, NULL), TARN_USAGE);
    assert_int_equal(tarn_session_bind_default(w.session, NULL, NULL), TARN_USAGE);
    REFUSES(tarn_session_group(NULL, 0, NULL, NULL, error));
    REFUSES(tarn_session_bind(NULL, 0, do_nothing, NULL, error));
    REFUSES(tarn_session_bind(w.session, 0, NULL, NULL, error));
    REFUSES(tarn_session_bind_memory(NULL, 0, &byte, error));
    REFUSES(tarn_session_bind_memory(w.session, 0, NULL, error));
    REFUSES(tarn_session_write(NULL, 0, &byte, 1, error));
    REFUSES(tarn_session_write(w.session, 0, NULL, 1, error));
    REFUSES(tarn_session_read(NULL, 0, &byte, 1, error));
    REFUSES(tarn_session_read(w.session, 0, NULL, 1, error));
    REFUSES(tarn_session_host_memory_create(NULL, 1, &memory, error));
    REFUSES(tarn_session_host_memory_create(w.session, 1, NULL, error));
    tarn_session_host_memory_destroy(w.session, NULL, 1);
    REFUSES(tarn_session_submit(NULL, 1, &ticket, error));
    REFUSES(tarn_session_submit_with(NULL, 1, NULL, &ticket, error));
    REFUSES(tarn_session_submit_with(w.session, 1, TARN_SUBMIT_OPTIONS(.waits_count = 1), &ticket,
                                     error));
    REFUSES(tarn_session_submit_with(w.session, 1, TARN_SUBMIT_OPTIONS(.signals_count = 1), &ticket,
                                     error));
    REFUSES(tarn_host_event_create(NULL, error));
    REFUSES(tarn_host_event_wait(NULL, 1, 0, error));
    tarn_host_event_raise(NULL, 1);
    assert_int_equal(tarn_host_event_value(NULL), 0);
    REFUSES(tarn_session_wait(NULL, 0, 0, error));
    REFUSES(tarn_session_query(NULL, &finished, error));
    REFUSES(tarn_session_query(w.session, NULL, error));
    tarn_session_dump(w.session, NULL, NULL);
    REFUSES(tarn_session_save_dump(NULL, NULL, "-", error));
    REFUSES(tarn_session_save_dump(w.session, NULL, NULL, error));
    REFUSES(tarn_session_save_trace(NULL, "-", error));
    REFUSES(tarn_session_save_trace(w.session, NULL, error));
    REFUSES(tarn_session_check(NULL, NULL, NULL, error));
    REFUSES(tarn_device_cuda_open(NULL, NULL, error));
    assert_int_equal(tarn_session_bind_default(w.session, do_nothing, NULL), TARN_OK);
    ACCEPTS(tarn_session_submit(w.session, 1, NULL, error));
    ACCEPTS(tarn_session_wait(w.session, 1, TARN_FOREVER, error));
    destroy_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(destroying_nothing_does_nothing),
        cmocka_unit_test(functions_without_pointers_answer),
        cmocka_unit_test(a_builder_collects_what_is_null),
        cmocka_unit_test(a_builder_that_is_null_is_one_without_memory),
        cmocka_unit_test(getters_of_nothing_say_nothing),
        cmocka_unit_test(graphs_need_their_arguments),
        cmocka_unit_test(transforms_need_graph_and_result),
        cmocka_unit_test(plans_need_their_arguments),
        cmocka_unit_test(arenas_and_families_need_their_arguments),
        cmocka_unit_test(sessions_need_their_arguments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
