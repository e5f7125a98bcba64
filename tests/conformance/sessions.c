/* Whole sessions in every way in which they can be run: checked execution must leave the digest
 * that it leaves on the host. Cost: some hundred short sessions. */
#include <stdio.h>
#include <stdlib.h>

#include "kit.h"

static void requires_expected(struct tarn_kit *kit, const struct tarn_kit_subject *subject,
                              const struct tarn_session_options *options,
                              struct tarn_check_options *check)
{
    struct tarn_check_report report;
    tarn_kit_check(kit, subject->plan, kit->device, options, check, &report);
    EQUAL(report.ops_run, subject->expected.ops_run);
    EQUAL(report.bytes_read, subject->expected.bytes_read);
    EQUAL(report.bytes_written, subject->expected.bytes_written);
    EQUAL(report.digest, subject->expected.digest);
}

static void for_all_graphs(struct tarn_kit *kit,
                           void (*act)(struct tarn_kit *kit,
                                       const struct tarn_kit_subject *subject))
{
    uint64_t graphs = kit->suite.effort == TARN_CONFORMANCE_QUICK ? 4 : 12;
    for (uint64_t seed = 0; seed < graphs; seed++) {
        struct tarn_kit_subject subject = tarn_kit_subject(kit, seed, 60);
        act(kit, &subject);
        tarn_kit_subject_destroy(&subject);
    }
}

static void run_directly(struct tarn_kit *kit, const struct tarn_kit_subject *subject)
{
    requires_expected(kit, subject, NULL, TARN_CHECK_OPTIONS(.seed = 0));
    requires_expected(kit, subject, TARN_SESSION_OPTIONS(.depth = 1, .flight = 10),
                      TARN_CHECK_OPTIONS(.seed = 0));
    requires_expected(kit, subject, NULL, TARN_CHECK_OPTIONS(.seed = 5, .random_order = true));
}

/* Whole iterations, one op after another, in list order. */
static void run_in_given_order(struct tarn_kit *kit, const struct tarn_kit_subject *subject)
{
    uint32_t ops = tarn_graph_ops_count(subject->graph);
    struct tarn_step *steps = calloc((size_t)ops * TARN_KIT_ITERATIONS + 1, sizeof *steps);
    size_t count = 0;
    HOLDS(steps);
    for (uint32_t k = 0; k < TARN_KIT_ITERATIONS; k++) {
        for (tarn_op op = 0; op < ops; op++) {
            if (!tarn_kit_is_view(subject, op)) steps[count++] = (struct tarn_step){op, k};
        }
    }
    requires_expected(kit, subject, NULL, TARN_CHECK_OPTIONS(.order = steps, .order_count = count));
    free(steps);
}

static void a_given_order_leaves_what_the_graph_says(struct tarn_kit *kit)
{
    tarn_kit_needs_checks(kit);
    for_all_graphs(kit, run_in_given_order);
}

static void direct_execution_leaves_what_the_graph_says(struct tarn_kit *kit)
{
    tarn_kit_needs_checks(kit);
    for_all_graphs(kit, run_directly);
}

/* Blocks of one, blocks with a rest, and more than there are iterations. */
static void run_captured(struct tarn_kit *kit, const struct tarn_kit_subject *subject)
{
    for (uint32_t unroll = 0; unroll <= TARN_KIT_ITERATIONS + 1; unroll += 1 + unroll / 2) {
        requires_expected(kit, subject, TARN_SESSION_OPTIONS(.capture = true, .unroll = unroll),
                          TARN_CHECK_OPTIONS(.seed = 0));
    }
}

static void captured_execution_leaves_what_the_graph_says(struct tarn_kit *kit)
{
    tarn_kit_needs_checks(kit);
    NEEDS(kit->table->capture_begin, "captures");
    for_all_graphs(kit, run_captured);
}

static void run_in_borrowed_memory(struct tarn_kit *kit, const struct tarn_kit_subject *subject)
{
    struct tarn_memory_needs needed;
    struct tarn_error error;
    void *memory;
    MUST(tarn_session_needs(subject->plan, kit->device, NULL, 0, &needed, &error));
    HOLDS(needed.size >= needed.arena + needed.persistent);
    OK(kit->table->memory_create(kit->self, needed.size, &memory));
    struct tarn_session_options *options =
        TARN_SESSION_OPTIONS(.memory = memory, .memory_size = needed.size);
    requires_expected(kit, subject, options, TARN_CHECK_OPTIONS(.seed = 0));
    options->memory_size--;
    struct tarn_session *session;
    EQUAL(tarn_session_create(subject->plan, kit->device, options, &session, &error), TARN_USAGE);
    kit->table->memory_destroy(kit->self, memory, needed.size);
}

static void the_caller_may_bring_the_memory(struct tarn_kit *kit)
{
    tarn_kit_needs_checks(kit);
    for_all_graphs(kit, run_in_borrowed_memory);
}

/* Every persistent tensor is a storage of its own. */
static void bind_all(struct tarn_kit *kit, const struct tarn_kit_subject *subject,
                     struct tarn_session *session, void **memory)
{
    struct tarn_error error;
    for (tarn_tensor t = 0; t < subject->persistent_count; t++) {
        OK(kit->table->memory_create(kit->self, tarn_kit_tensor_size(subject, t) + 1, &memory[t]));
        MUST(tarn_session_bind_memory(session, t, memory[t], &error));
    }
}

static void run_with_bound_tensors(struct tarn_kit *kit, const struct tarn_kit_subject *subject)
{
    struct tarn_check_report report;
    struct tarn_error error;
    void *memory[TARN_KIT_PERSISTENT_MAX];
    struct tarn_session *session =
        tarn_kit_session(kit, subject->plan, TARN_SESSION_OPTIONS(.binds_persistent = true));
    EQUAL(tarn_session_check(session, NULL, NULL, &error), TARN_USAGE); /* unbound */
    bind_all(kit, subject, session, memory);
    MUST(tarn_session_check(session, TARN_CHECK_OPTIONS(.iterations = TARN_KIT_ITERATIONS), &report,
                            &error));
    EQUAL(report.digest, subject->expected.digest);
    tarn_kit_end(kit);
    for (tarn_tensor t = 0; t < subject->persistent_count; t++)
        kit->table->memory_destroy(kit->self, memory[t], tarn_kit_tensor_size(subject, t) + 1);
}

static void persistent_tensors_may_be_the_callers(struct tarn_kit *kit)
{
    tarn_kit_needs_checks(kit);
    for_all_graphs(kit, run_with_bound_tensors);
}

static void what_is_written_is_read_back_through_host_memory(struct tarn_kit *kit)
{
    struct tarn_kit_subject subject = tarn_kit_subject(kit, 2, 60);
    struct tarn_session *session = tarn_kit_session(kit, subject.plan, NULL);
    struct tarn_error error;
    for (tarn_tensor t = 0; t < subject.persistent_count; t++) {
        uint64_t size = tarn_kit_tensor_size(&subject, t);
        void *memory;
        MUST(tarn_session_host_memory_create(session, size, &memory, &error));
        tarn_kit_pattern_fill(memory, size, t);
        MUST(tarn_session_write(session, t, memory, size, &error));
        memset(memory, 0, size);
        MUST(tarn_session_read(session, t, memory, size, &error));
        EQUAL(tarn_kit_pattern_compare(memory, size, t), size);
        tarn_session_host_memory_destroy(session, memory, size);
    }
    tarn_kit_end(kit);
    tarn_kit_subject_destroy(&subject);
}

static tarn_space declare_space(struct tarn_kit *kit, struct tarn_builder *b, const char *name,
                                enum tarn_space_kind kind)
{
    return tarn_builder_space(
        b, &(struct tarn_space_info){.name = name,
                                     .kind = tarn_kit_gives(kit, kind) ? kind : TARN_SPACE_DEVICE});
}

/* A step that goes through the host's memory and back:
 * compute: make x (device, scratch workspace) ────► use y, z ─► z (persistent, pinned)
 * copy:             └─► move x to y (pinned) ──────┘ */
static struct tarn_graph *graph_of_spaces(struct tarn_kit *kit)
{
    struct tarn_graph *graph;
    struct tarn_error error;
    struct tarn_builder *b = tarn_builder_create("spaces");
    tarn_stream compute = tarn_builder_stream(b, "compute"), copy = tarn_builder_stream(b, "copy");
    declare_space(kit, b, "device", TARN_SPACE_DEVICE);
    tarn_space pinned = declare_space(kit, b, "host", TARN_SPACE_PINNED);
    tarn_space chip = declare_space(kit, b, "chip", TARN_SPACE_SCRATCH);
    tarn_tensor z = tarn_builder_tensor(
        b, &(struct tarn_tensor_info){.size = 900, .kind = TARN_PARAMETER, .space = pinned});
    tarn_tensor x = tarn_builder_tensor(b, &(struct tarn_tensor_info){.size = 5000});
    tarn_tensor y =
        tarn_builder_tensor(b, &(struct tarn_tensor_info){.size = 5000, .space = pinned});
    tarn_tensor updated = tarn_builder_alias(b, z, "updated");
    tarn_builder_op(b, &(struct tarn_op_info){.stream = compute,
                                              .outputs = TARN_TENSORS(x),
                                              .workspace = 500,
                                              .workspace_space = chip});
    tarn_builder_op(b, &(struct tarn_op_info){
                           .stream = copy, .inputs = TARN_TENSORS(x), .outputs = TARN_TENSORS(y)});
    tarn_builder_op(b, &(struct tarn_op_info){.stream = compute,
                                              .inputs = TARN_TENSORS(y, z),
                                              .outputs = TARN_TENSORS(updated)});
    MUST(tarn_builder_finish(b, &graph, &error));
    return graph;
}

static void a_graph_with_memory_spaces_leaves_what_it_says(struct tarn_kit *kit)
{
    tarn_kit_needs_checks(kit);
    struct tarn_error error;
    struct tarn_kit_subject subject = {.graph = graph_of_spaces(kit)};
    MUST(
        tarn_plan_create(subject.graph, TARN_PLAN_OPTIONS(.alignment = 64), &subject.plan, &error));
    tarn_kit_check(kit, subject.plan, tarn_device_host(NULL), NULL, TARN_CHECK_OPTIONS(.seed = 0),
                   &subject.expected);
    run_directly(kit, &subject);
    if (kit->table->capture_begin) run_captured(kit, &subject);
    tarn_kit_subject_destroy(&subject);
}

/* make writes t, spoil writes u over it, use reads t. */
static struct tarn_graph *spoilt_graph(struct tarn_kit *kit)
{
    struct tarn_graph *graph;
    struct tarn_error error;
    struct tarn_builder *b = tarn_builder_create("spoilt");
    tarn_stream s = tarn_builder_stream(b, "s");
    tarn_tensor t = tarn_builder_tensor(b, &(struct tarn_tensor_info){.name = "t", .size = 1000});
    tarn_tensor u = tarn_builder_tensor(b, &(struct tarn_tensor_info){.name = "u", .size = 1000});
    tarn_builder_op(
        b, &(struct tarn_op_info){.name = "make", .stream = s, .outputs = TARN_TENSORS(t)});
    tarn_builder_op(
        b, &(struct tarn_op_info){.name = "spoil", .stream = s, .outputs = TARN_TENSORS(u)});
    tarn_builder_op(
        b, &(struct tarn_op_info){.name = "use", .stream = s, .inputs = TARN_TENSORS(t, u)});
    MUST(tarn_builder_finish(b, &graph, &error));
    return graph;
}

/* A plan that no planner makes: u begins at byte 448 of t. */
static struct tarn_plan *spoilt_plan(struct tarn_kit *kit, struct tarn_graph *graph)
{
    char text[1000];
    struct tarn_plan *plan;
    struct tarn_error error;
    const struct tarn_hash_text hash = tarn_hash_format(tarn_graph_hash(graph));
    int size = snprintf(
        text, sizeof text,
        "{\"format\":\"tarn.plan\",\"version\":1,\"name\":\"spoilt\",\"source_hash\":\"%s\","
        "\"graph_hash\":\"%s\",\"method\":\"none\",\"alignment\":64,\"footprint_bytes\":1472,"
        "\"bound_bytes\":null,\"certificate\":null,\"streams\":[[0,1,2]],\"waits\":[],"
        "\"boundary_waits\":[],\"storages\":[[0,0,1000],[1,448,1000]],\"workspaces\":[],"
        "\"persistent\":[]}",
        hash.text, hash.text);
    MUST(tarn_plan_read(TARN_READER(.bytes = text, .size = (size_t)size), graph, TARN_TRUST, NULL,
                        &plan, &error));
    return plan;
}

static void a_plan_that_corrupts_is_caught(struct tarn_kit *kit)
{
    tarn_kit_needs_checks(kit);
    struct tarn_error error;
    struct tarn_graph *graph = spoilt_graph(kit);
    struct tarn_plan *plan = spoilt_plan(kit, graph);
    struct tarn_session *session = tarn_kit_session(kit, plan, NULL);
    EQUAL(tarn_session_check(session, NULL, NULL, &error), TARN_CHECK_FAILED);
    EQUAL(error.op, 2);
    EQUAL(error.tensor, 0);
    HOLDS(strstr(error.text, "op 2 \"use\" of iteration 0: byte 448 of tensor 0 \"t\""));
    tarn_kit_end(kit);
    tarn_plan_destroy(plan);
    tarn_graph_destroy(graph);
}

#define RULE                                                                               \
    "a session on the device computes what the graph says, as on the host "                \
    "(docs/devices.md, \"The contract in five sentences\"); if the tests before this one " \
    "pass, look at the calls in this order"

const struct tarn_kit_test tarn_kit_sessions[] = {
    {"direct_execution_leaves_what_the_graph_says", direct_execution_leaves_what_the_graph_says,
     RULE},
    {"a_given_order_leaves_what_the_graph_says", a_given_order_leaves_what_the_graph_says, RULE},
    {"captured_execution_leaves_what_the_graph_says", captured_execution_leaves_what_the_graph_says,
     RULE},
    {"the_caller_may_bring_the_memory", the_caller_may_bring_the_memory, RULE},
    {"persistent_tensors_may_be_the_callers", persistent_tensors_may_be_the_callers, RULE},
    {"what_is_written_is_read_back_through_host_memory",
     what_is_written_is_read_back_through_host_memory, RULE},
    {"a_graph_with_memory_spaces_leaves_what_it_says",
     a_graph_with_memory_spaces_leaves_what_it_says, RULE},
    {"a_plan_that_corrupts_is_caught", a_plan_that_corrupts_is_caught, RULE},
    {0},
};
