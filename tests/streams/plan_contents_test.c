/* What a plan says through the public headers is enough to carry it out. The runtime here knows
 * nothing else: it launches ops in random orders that lists and waits allow, in one arena, and
 * compares every input that an op reads with what the same op reads when the source graph runs op
 * by op in memory where every storage has bytes of its own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/random_graph.h"
#include "support/random_training.h"
#include "tarn.h"

enum { ITERATIONS = 3, INPUTS_MAX = 64 };

static void require(enum tarn_status status, const struct tarn_error *error)
{
    if (status != TARN_OK) fail_msg("status %d: %s", status, error->text);
}

static struct tarn_plan *make_plan(struct tarn_graph *graph,
                                   const struct tarn_plan_options *options)
{
    struct tarn_plan *plan;
    struct tarn_error error;
    require(tarn_plan_create(graph, options, &plan, &error), &error);
    return plan;
}

/* ---- Ops ---- */

static uint64_t hash_bytes(uint64_t hash, const unsigned char *bytes, uint64_t size)
{
    for (uint64_t i = 0; i < size; i++) hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
    return hash;
}

static void scribble(unsigned char *bytes, uint64_t size, uint64_t seed)
{
    struct random_source source = {seed};
    for (uint64_t i = 0; i < size; i++) bytes[i] = (unsigned char)random_next(&source);
}

static struct tarn_op_info op_of(const struct tarn_graph *graph, tarn_op op)
{
    struct tarn_op_info info;
    assert_true(tarn_graph_op(graph, op, &info));
    return info;
}

static struct tarn_tensor_info tensor_of(const struct tarn_graph *graph, tarn_tensor tensor)
{
    struct tarn_tensor_info info;
    assert_true(tarn_graph_tensor(graph, tensor, &info));
    return info;
}

static bool is_persistent(const struct tarn_graph *graph, tarn_tensor tensor)
{
    return tensor_of(graph, tensor).kind >= TARN_PARAMETER;
}

typedef unsigned char *(*address_of)(const void *memory, tarn_tensor tensor);

/* Outputs depend on the op and on all inputs, as the source graph has them. */
static void carry_out(const struct tarn_graph *graph, tarn_op op, tarn_op origin,
                      address_of address, const void *memory, uint64_t *reads)
{
    const struct tarn_op_info info = op_of(graph, op);
    uint64_t hash = origin + 1;
    assert_true(info.inputs.count <= INPUTS_MAX);
    for (size_t k = 0; k < info.inputs.count; k++) {
        tarn_tensor t = info.inputs.ids[k];
        reads[k] = hash_bytes(1, address(memory, t), tensor_of(graph, t).size);
        hash = (hash ^ reads[k]) * UINT64_C(0x9e3779b97f4a7c15);
    }
    for (size_t k = 0; k < info.outputs.count; k++) {
        tarn_tensor t = info.outputs.ids[k];
        scribble(address(memory, t), tensor_of(graph, t).size, hash + k);
    }
}

/* ---- The source graph, op by op ---- */

struct source_run {
    const struct tarn_graph *graph;
    unsigned char **bytes;         /* by root */
    uint64_t (*reads)[INPUTS_MAX]; /* [iteration * ops + op] */
};

static unsigned char *own_bytes(const void *memory, tarn_tensor tensor)
{
    const struct source_run *run = memory;
    return run->bytes[tarn_graph_root(run->graph, tensor)];
}

static void source_run_init(struct source_run *run, const struct tarn_graph *graph)
{
    uint32_t ops = tarn_graph_ops_count(graph), tensors = tarn_graph_tensors_count(graph);
    run->graph = graph;
    run->bytes = calloc(tensors + 1, sizeof *run->bytes);
    run->reads = calloc((size_t)ITERATIONS * ops + 1, sizeof *run->reads);
    for (uint32_t t = 0; t < tensors; t++)
        if (tarn_graph_root(graph, t) == t) run->bytes[t] = calloc(1, tensor_of(graph, t).size);
    for (uint32_t i = 0; i < ITERATIONS * ops; i++)
        if (!op_of(graph, i % ops).view)
            carry_out(graph, i % ops, i % ops, own_bytes, run, run->reads[i]);
}

static void source_run_finish(struct source_run *run)
{
    for (uint32_t t = 0; t < tarn_graph_tensors_count(run->graph); t++) free(run->bytes[t]);
    free(run->bytes);
    free(run->reads);
}

/* ---- The plan, by what it says ---- */

struct plan_run {
    const struct tarn_plan *plan;
    const struct tarn_graph *graph;
    unsigned char *arena, *persistent;
    size_t *launched; /* by stream, since the beginning */
    uint32_t *done;   /* by op: iterations finished */
    uint32_t recomputed;
};

static unsigned char *planned_bytes(const void *memory, tarn_tensor tensor)
{
    const struct plan_run *run = memory;
    unsigned char *part = is_persistent(run->graph, tarn_graph_root(run->graph, tensor))
                              ? run->persistent
                              : run->arena;
    return part + tarn_plan_offset(run->plan, tensor);
}

static bool waits_hold(const struct plan_run *run, tarn_op op, uint32_t iteration)
{
    struct tarn_waits now = tarn_plan_waits(run->plan);
    struct tarn_waits before = tarn_plan_boundary_waits(run->plan);
    for (size_t i = 0; i < now.count; i++)
        if (now.waits[i].op == op && run->done[now.waits[i].on] <= iteration) return false;
    for (size_t i = 0; i < before.count; i++)
        if (before.waits[i].op == op && run->done[before.waits[i].on] < iteration) return false;
    return true;
}

static void launch(struct plan_run *run, tarn_op op, const struct source_run *source)
{
    uint32_t ops = tarn_graph_ops_count(source->graph), iteration = run->done[op]++;
    tarn_op origin = tarn_plan_op_origin(run->plan, op);
    const struct tarn_op_info info = op_of(run->graph, op);
    uint64_t reads[INPUTS_MAX], workspace = tarn_plan_workspace_offset(run->plan, op);
    assert_int_equal(workspace == UINT64_MAX, info.workspace == 0);
    if (info.workspace > 0) scribble(run->arena + workspace, info.workspace, op);
    carry_out(run->graph, op, origin, planned_bytes, run, reads);
    const struct tarn_list sources = op_of(source->graph, origin).inputs;
    assert_int_equal(info.inputs.count, sources.count);
    for (size_t k = 0; k < info.inputs.count; k++)
        assert_int_equal(tarn_plan_tensor_origin(run->plan, info.inputs.ids[k]), sources.ids[k]);
    assert_memory_equal(reads, source->reads[(size_t)iteration * ops + origin],
                        info.inputs.count * sizeof *reads);
    run->recomputed += tarn_plan_op_is_recomputed(run->plan, op);
}

/* One launch of a stream that may go on, chosen at random; false when all have ended. */
static bool step(struct plan_run *run, struct random_source *random,
                 const struct source_run *source)
{
    uint32_t streams = tarn_graph_streams_count(run->graph);
    uint32_t first = random_below(random, streams);
    bool ended = true;
    for (uint32_t i = 0; i < streams; i++) {
        uint32_t s = (first + i) % streams;
        struct tarn_list list = tarn_plan_launches(run->plan, s);
        if (run->launched[s] == ITERATIONS * list.count) continue;
        ended = false;
        tarn_op op = list.ids[run->launched[s] % list.count];
        if (!waits_hold(run, op, (uint32_t)(run->launched[s] / list.count))) continue;
        launch(run, op, source);
        run->launched[s]++;
        return true;
    }
    assert_true(ended);
    return false;
}

static void compare_persistent(const struct plan_run *run, const struct source_run *source)
{
    for (uint32_t t = 0; t < tarn_graph_tensors_count(run->graph); t++) {
        if (tarn_graph_root(run->graph, t) != t || !is_persistent(run->graph, t)) continue;
        tarn_tensor origin = tarn_plan_tensor_origin(run->plan, t);
        assert_memory_equal(planned_bytes(run, t), own_bytes(source, origin),
                            tensor_of(run->graph, t).size);
    }
}

/* Returns how many launches recomputed. */
static uint32_t run_as_told(const struct tarn_graph *graph, const struct tarn_plan *plan,
                            uint64_t seed)
{
    struct source_run source;
    struct tarn_plan_summary summary;
    struct random_source random = {seed};
    const struct tarn_graph *own = tarn_plan_graph(plan);
    source_run_init(&source, graph);
    tarn_plan_summarize(plan, &summary);
    struct plan_run run = {plan, own, .arena = malloc(summary.footprint + 1)};
    run.persistent = calloc(1, summary.persistent + 1);
    run.launched = calloc(tarn_graph_streams_count(own) + 1, sizeof *run.launched);
    run.done = calloc(tarn_graph_ops_count(own) + 1, sizeof *run.done);
    while (step(&run, &random, &source)) {
    }
    compare_persistent(&run, &source);
    free(run.arena);
    free(run.persistent);
    free(run.launched);
    free(run.done);
    source_run_finish(&source);
    return run.recomputed;
}

/* ---- Tests ---- */

static struct tarn_graph *training_graph(uint64_t seed)
{
    return random_training(&(struct random_training_options){.seed = seed,
                                                             .ops = 4 + (uint32_t)(seed % 12),
                                                             .branch_share = 30,
                                                             .weight_share = 60,
                                                             .inplace_share = seed % 3 ? 0 : 20,
                                                             .streams = 1 + (uint32_t)(seed % 3)});
}

static void a_runtime_needs_nothing_else_of_a_plan(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < DRAWS(64); seed++) {
        struct tarn_graph *graph = training_graph(seed);
        struct tarn_plan *plan = make_plan(graph, NULL);
        assert_int_equal(run_as_told(graph, plan, seed), 0);
        tarn_plan_destroy(plan);
        tarn_graph_destroy(graph);
    }
}

static void nor_of_one_that_is_reordered_coupled_and_recomputes(void **state)
{
    uint32_t recomputed = 0;
    (void)state;
    for (uint64_t seed = 0; seed < DRAWS(16); seed++) {
        struct tarn_graph *graph = training_graph(seed);
        struct tarn_plan_summary summary;
        struct tarn_plan *plan = make_plan(graph, NULL);
        tarn_plan_summarize(plan, &summary);
        tarn_plan_destroy(plan);
        uint64_t budget = summary.footprint - summary.footprint / 10;
        struct tarn_error error;
        enum tarn_status status = tarn_plan_create(
            graph,
            TARN_PLAN_OPTIONS(.reorder = TARN_REORDER_OPTIONS(.effort = 2),
                              .couple = TARN_COUPLE_OPTIONS(.keep = 0.5),
                              .in_place = TARN_IN_PLACE_OPTIONS(.kinds = NULL),
                              .budget = TARN_BUDGET_OPTIONS(.budget = budget, .effort = 50)),
            &plan, &error);
        assert_true(status == TARN_OK || status == TARN_DOES_NOT_FIT);
        if (status == TARN_OK) {
            recomputed += run_as_told(graph, plan, seed);
            tarn_plan_destroy(plan);
        }
        tarn_graph_destroy(graph);
    }
    assert_true(HAS_FEW_DRAWS || recomputed > 10);
}

static struct tarn_graph *grouped_graph(uint64_t seed)
{
    struct random_graph_options knobs = {.seed = seed,
                                         .ops = 30,
                                         .streams = 3,
                                         .parameters = 6,
                                         .output_share = 10,
                                         .group_share = 40};
    return random_graph(&knobs);
}

static void a_group_is_one_stretch_of_the_plan_and_of_the_sessions_memory(void **state)
{
    uint32_t groups = 0;
    (void)state;
    for (uint64_t seed = 0; seed < DRAWS(20); seed++) {
        struct tarn_graph *graph = grouped_graph(seed);
        struct tarn_plan *plan = make_plan(graph, NULL);
        struct tarn_session *session;
        struct tarn_error error;
        require(tarn_session_create(plan, tarn_device_host(NULL), NULL, &session, &error), &error);
        for (uint32_t g = 0; g < tarn_graph_groups_count(graph); g++, groups++) {
            struct tarn_list members = tarn_graph_group(graph, g);
            uint64_t begin, size, at, buffer_size;
            void *buffer;
            assert_int_equal(tarn_plan_group(plan, g, &begin, &size), TARN_OK);
            require(tarn_session_group(session, g, &buffer, &buffer_size, &error), &error);
            at = begin;
            for (size_t i = 0; i < members.count; i++) {
                assert_int_equal(tarn_plan_offset(plan, members.ids[i]), at);
                assert_ptr_equal(tarn_session_address(session, members.ids[i]),
                                 (char *)buffer + (at - begin));
                at += tensor_of(graph, members.ids[i]).size;
            }
            assert_true(members.count > 0 && at == begin + size && buffer_size == size);
        }
        uint32_t none = tarn_graph_groups_count(graph);
        assert_int_equal(tarn_graph_group(graph, none).count, 0);
        assert_int_equal(tarn_plan_group(plan, none, NULL, NULL), TARN_USAGE);
        assert_int_equal(tarn_session_group(session, none, NULL, NULL, &error), TARN_USAGE);
        assert_int_equal(tarn_session_destroy(session), TARN_OK);
        tarn_plan_destroy(plan);
        tarn_graph_destroy(graph);
    }
    assert_true(groups > 0);
}

/* Two parameters of a group, each written by nobody. */
static void a_group_that_the_caller_tears_apart_is_no_buffer(void **state)
{
    (void)state;
    struct tarn_builder *b = tarn_builder_create("torn");
    tarn_stream stream = tarn_builder_stream(b, "compute");
    const struct tarn_tensor_info parameter = {.size = 64, .kind = TARN_PARAMETER};
    tarn_tensor first = tarn_builder_tensor(b, &parameter);
    tarn_tensor second = tarn_builder_tensor(b, &parameter);
    tarn_tensor result = tarn_builder_tensor(b, &(struct tarn_tensor_info){.size = 64});
    tarn_builder_op(b, &(struct tarn_op_info){.stream = stream,
                                              .inputs = TARN_TENSORS(first, second),
                                              .outputs = TARN_TENSORS(result)});
    tarn_builder_group(b, TARN_TENSORS(first, second));
    struct tarn_graph *graph;
    struct tarn_session *session;
    struct tarn_error error;
    static _Alignas(512) unsigned char own[4][512];
    void *address;
    uint64_t size;
    require(tarn_builder_finish(b, &graph, &error), &error);
    struct tarn_plan *plan = make_plan(graph, NULL);
    require(tarn_session_create(plan, tarn_device_host(NULL),
                                TARN_SESSION_OPTIONS(.binds_persistent = true), &session, &error),
            &error);
    assert_int_equal(tarn_session_group(session, 0, &address, &size, &error), TARN_USAGE);
    assert_non_null(strstr(error.text, "not bound"));
    require(tarn_session_bind_memory(session, first, own[0], &error), &error);
    require(tarn_session_bind_memory(session, second, own[2], &error), &error);
    assert_int_equal(tarn_session_group(session, 0, &address, &size, &error), TARN_USAGE);
    assert_int_equal(error.tensor, second);
    require(tarn_session_bind_memory(session, second, own[0] + 64, &error), &error);
    require(tarn_session_group(session, 0, &address, &size, &error), &error);
    assert_ptr_equal(address, own[0]);
    assert_int_equal(size, 128);
    assert_int_equal(tarn_session_destroy(session), TARN_OK);
    tarn_plan_destroy(plan);
    tarn_graph_destroy(graph);
}

static struct tarn_plan *through_a_file(const struct tarn_plan *plan, struct tarn_graph *graph)
{
    char path[] = "/tmp/tarn_contents_XXXXXX";
    struct tarn_plan *loaded;
    struct tarn_error error;
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    require(tarn_plan_save(plan, path, &error), &error);
    require(tarn_plan_load(path, graph, TARN_VERIFY, NULL, &loaded, &error), &error);
    remove(path);
    return loaded;
}

static void equal_plans_have_one_identity_and_others_are_told_apart(void **state)
{
    (void)state;
    struct tarn_graph *graph = grouped_graph(1), *other = grouped_graph(2);
    struct tarn_plan *plan = make_plan(graph, NULL);
    struct tarn_plan *again = through_a_file(plan, graph);
    struct tarn_plan *wider = make_plan(graph, TARN_PLAN_OPTIONS(.alignment = 4096));
    struct tarn_plan *simple =
        make_plan(graph, TARN_PLAN_OPTIONS(.boundary = TARN_BOUNDARY_SIMPLE));
    struct tarn_plan *another = make_plan(other, NULL);
    struct tarn_plan_identity identity = tarn_plan_identify(plan);
    struct tarn_error error;
    struct tarn_hash source = tarn_graph_hash(graph);
    assert_memory_equal(&identity.source, &source, sizeof source);
    require(tarn_plan_expect(again, &identity, &error), &error);
    assert_int_equal(tarn_plan_expect(wider, &identity, &error), TARN_REJECTED);
    assert_non_null(strstr(error.text, "the graphs are equal"));
    assert_non_null(strstr(error.text, tarn_hash_format(identity.plan).text));
    assert_int_equal(tarn_plan_expect(simple, &identity, &error), TARN_REJECTED);
    assert_int_equal(tarn_plan_expect(another, &identity, &error), TARN_REJECTED);
    assert_non_null(strstr(error.text, tarn_hash_format(identity.source).text));
    tarn_plan_destroy(plan);
    tarn_plan_destroy(again);
    tarn_plan_destroy(wider);
    tarn_plan_destroy(simple);
    tarn_plan_destroy(another);
    tarn_graph_destroy(graph);
    tarn_graph_destroy(other);
}

static size_t print_ids(char *text, size_t used, size_t size, const char *key, const uint32_t *ids,
                        size_t count)
{
    used += (size_t)snprintf(text + used, size - used, "\"%s\":[", key);
    for (size_t i = 0; i < count; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%u", i > 0 ? "," : "", ids[i]);
    return used + (size_t)snprintf(text + used, size - used, "]");
}

/* The file's certificate, which the verifier proves when it is read, is what the getter says. */
static void require_in_file(const struct tarn_plan *plan, struct tarn_graph *graph,
                            const struct tarn_certificate *certificate)
{
    char *bytes = calloc(1, 1 << 20), expected[4096];
    struct tarn_writer *writer = TARN_WRITER(.bytes = bytes, .room = (1 << 20) - 1);
    struct tarn_plan *read;
    struct tarn_error error;
    require(tarn_plan_write(plan, writer, &error), &error);
    require(tarn_plan_read(TARN_READER(.bytes = bytes, .size = strlen(bytes)), graph, TARN_VERIFY,
                           NULL, &read, &error),
            &error);
    size_t used = (size_t)snprintf(expected, sizeof expected, "%llu,\n\"certificate\":{",
                                   (unsigned long long)certificate->bound);
    used = print_ids(expected, used, sizeof expected, "thresholds", certificate->launched,
                     certificate->streams_count);
    expected[used++] = ',';
    used = print_ids(expected, used, sizeof expected, "gaps", certificate->gaps.ids,
                     certificate->gaps.count);
    if (certificate->inside.count > 0) {
        expected[used++] = ',';
        print_ids(expected, used, sizeof expected, "inside", certificate->inside.ids,
                  certificate->inside.count);
    }
    assert_non_null(strstr(bytes, expected));
    tarn_plan_destroy(read);
    free(bytes);
}

static void a_plan_that_claims_a_bound_has_its_certificate(void **state)
{
    size_t gaps = 0;
    (void)state;
    for (uint64_t seed = 0; seed < 12; seed++) {
        struct tarn_graph *graph = grouped_graph(seed);
        struct tarn_plan *plan = make_plan(graph, NULL);
        struct tarn_plan_summary summary;
        struct tarn_certificate certificate;
        tarn_plan_summarize(plan, &summary);
        assert_true(tarn_plan_certificate(plan, &certificate));
        assert_int_equal(certificate.bound, summary.bound);
        assert_int_equal(certificate.streams_count, tarn_graph_streams_count(graph));
        require_in_file(plan, graph, &certificate);
        gaps += certificate.gaps.count;
        tarn_plan_destroy(plan);
        tarn_graph_destroy(graph);
    }
    assert_true(gaps > 0);
}

struct calls_subject {
    const struct tarn_graph *graph;
    const struct tarn_plan *plan;
    const struct tarn_session *session;
};

/* Where the plan and the session say that the workspace is; NULL: there is none. */
static bool is_workspace(const struct calls_subject *subject, tarn_op op, const void *address)
{
    uint64_t offset = tarn_plan_workspace_offset(subject->plan, op);
    const unsigned char *base = tarn_session_memory(subject->session, 0, NULL);
    return address == tarn_session_workspace(subject->session, op) &&
           address == (offset == UINT64_MAX ? NULL : base + offset);
}

static int compare_with_graph(void *user, const struct tarn_call *call)
{
    const struct calls_subject *subject = user;
    const struct tarn_graph *graph = subject->graph;
    struct tarn_op_info info;
    bool same = tarn_graph_op(graph, call->op, &info) && call->inputs_count == info.inputs.count &&
                is_workspace(subject, call->op, call->workspace) &&
                call->outputs_count == info.outputs.count && call->workspace_size == info.workspace;
    for (size_t k = 0; same && k < call->inputs_count; k++)
        same = call->input_sizes[k] == tensor_of(graph, info.inputs.ids[k]).size;
    for (size_t k = 0; same && k < call->outputs_count; k++)
        same = call->output_sizes[k] == tensor_of(graph, info.outputs.ids[k]).size;
    return same ? 0 : 1;
}

static void a_call_has_counts_and_sizes_and_the_session_its_workspaces(void **state)
{
    (void)state;
    struct random_graph_options knobs = {
        .seed = 5, .ops = 40, .streams = 2, .parameters = 4, .workspace_share = 50};
    struct tarn_graph *graph = random_graph(&knobs);
    struct tarn_plan *plan = make_plan(graph, NULL);
    struct tarn_session *session;
    struct tarn_error error;
    tarn_ticket ticket;
    require(tarn_session_create(plan, tarn_device_host(NULL), NULL, &session, &error), &error);
    for (uint32_t v = 0; v < tarn_graph_ops_count(graph); v++)
        assert_int_equal(tarn_session_workspace(session, v) != NULL, op_of(graph, v).workspace > 0);
    struct calls_subject subject = {graph, plan, session};
    assert_int_equal(tarn_session_bind_default(session, compare_with_graph, &subject), TARN_OK);
    require(tarn_session_submit(session, 1, &ticket, &error), &error);
    require(tarn_session_wait(session, ticket, TARN_FOREVER, &error), &error);
    assert_int_equal(tarn_session_destroy(session), TARN_OK);
    tarn_plan_destroy(plan);
    tarn_graph_destroy(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_runtime_needs_nothing_else_of_a_plan),
        cmocka_unit_test(nor_of_one_that_is_reordered_coupled_and_recomputes),
        cmocka_unit_test(a_group_is_one_stretch_of_the_plan_and_of_the_sessions_memory),
        cmocka_unit_test(a_group_that_the_caller_tears_apart_is_no_buffer),
        cmocka_unit_test(equal_plans_have_one_identity_and_others_are_told_apart),
        cmocka_unit_test(a_plan_that_claims_a_bound_has_its_certificate),
        cmocka_unit_test(a_call_has_counts_and_sizes_and_the_session_its_workspaces),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
