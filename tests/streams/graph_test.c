/* Building graphs: what is derived is compared with a naive derivation, what is refused with brute
 * force over the transitive closure; the rest are the rules that no file can break. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "streams/base/region.h"
#include "streams/base/utf8.h"
#include "streams/graph/builder.h"
#include "streams/graph/graph.h"
#include "streams/graph/hash.h"
#include "streams/graph/validate.h"
#include "support/random_graph.h"

static struct tarn_graph *finish(struct tarn_builder *builder)
{
    struct tarn_graph *graph = NULL;
    struct tarn_error error;
    if (tarn_builder_finish(builder, &graph, &error) != TARN_OK) fail_msg("%s", error.text);
    return graph;
}

/* ---- The builder ---- */

struct step {
    struct tarn_builder *b;
    tarn_stream compute, comm;
    tarn_tensor w, g, reduced;
    tarn_op backward, reduce;
};

/* The program of the header's head comment. */
static struct step step_begin(void)
{
    struct step s = {.b = tarn_builder_create("step")};
    s.compute = tarn_builder_stream(s.b, "compute");
    s.comm = tarn_builder_stream(s.b, "comm");
    s.w = tarn_builder_tensor(
        s.b, &(struct tarn_tensor_info){.name = "w", .size = 4096, .kind = TARN_PARAMETER});
    s.g = tarn_builder_tensor(
        s.b, &(struct tarn_tensor_info){
                 .name = "g", .size = 4096, .kind = TARN_GRADIENT, .alignment = 1024});
    s.reduced = tarn_builder_alias(s.b, s.g, "g.reduced");
    s.backward = tarn_builder_op(s.b, &(struct tarn_op_info){.name = "backward",
                                                             .kind = "gemm",
                                                             .stream = s.compute,
                                                             .inputs = TARN_TENSORS(s.w),
                                                             .outputs = TARN_TENSORS(s.g),
                                                             .workspace = 64,
                                                             .cost = 7,
                                                             .flops = 9,
                                                             .recomputable = TARN_RECOMPUTABLE});
    s.reduce = tarn_builder_op(s.b, &(struct tarn_op_info){.name = "reduce",
                                                           .stream = s.comm,
                                                           .inputs = TARN_TENSORS(s.g),
                                                           .outputs = TARN_TENSORS(s.reduced)});
    return s;
}

static void gives_back_what_was_put_in(void **state)
{
    (void)state;
    struct step s = step_begin();
    tarn_builder_control(s.b, s.reduce, s.backward);
    struct tarn_graph *graph = finish(s.b);
    struct tarn_op_info op;
    struct tarn_tensor_info tensor;
    assert_string_equal(tarn_graph_name(graph), "step");
    assert_int_equal(tarn_graph_streams_count(graph), 2);
    assert_int_equal(tarn_graph_ops_count(graph), 2);
    assert_int_equal(tarn_graph_tensors_count(graph), 3);
    assert_string_equal(tarn_graph_stream_name(graph, s.comm), "comm");
    assert_null(tarn_graph_stream_name(graph, 2));
    assert_true(tarn_graph_op(graph, s.backward, &op));
    assert_string_equal(op.name, "backward");
    assert_string_equal(op.kind, "gemm");
    assert_int_equal(op.workspace, 64);
    assert_int_equal(op.cost, 7);
    assert_int_equal(op.flops, 9);
    assert_true(op.recomputable == TARN_RECOMPUTABLE && !op.view);
    assert_int_equal(op.inputs.count, 1);
    assert_int_equal(op.inputs.ids[0], s.w);
    assert_true(tarn_graph_op(graph, s.reduce, &op));
    assert_string_equal(op.kind, "");
    assert_int_equal(op.control.count, 1);
    assert_int_equal(op.control.ids[0], s.backward);
    assert_false(tarn_graph_op(graph, 2, &op));
    assert_true(tarn_graph_tensor(graph, s.g, &tensor));
    assert_int_equal(tensor.alignment, 1024);
    assert_true(tarn_graph_tensor(graph, s.reduced, &tensor));
    assert_int_equal(tensor.size, 4096);
    assert_int_equal(tensor.kind, TARN_GRADIENT);
    assert_int_equal(tensor.alignment, 0);
    assert_false(tarn_graph_tensor(graph, 3, &tensor));
    assert_int_equal(tarn_graph_root(graph, s.reduced), s.g);
    assert_int_equal(tarn_graph_root(graph, 3), TARN_NONE);
    assert_int_equal(tarn_graph_find_op(graph, "reduce"), s.reduce);
    assert_int_equal(tarn_graph_find_op(graph, "w"), TARN_NONE);
    assert_int_equal(tarn_graph_find_tensor(graph, "g.reduced"), s.reduced);
    assert_int_equal(tarn_graph_find_tensor(graph, "reduce"), TARN_NONE);
    tarn_graph_destroy(graph);
}

static void a_graph_is_valid_until_a_number_of_it_changes(void **state)
{
    struct random_graph_options options = random_graph_knobs(5, 60);
    (void)state;
    options.streams = 3;
    struct tarn_graph *graph = random_graph(&options);
    struct tarn_graph view = tarn_graph_view(graph);
    assert_true(tarn_graph_is_valid(graph) && tarn_graph_is_valid(&view));
    assert_true(graph->predecessors.begin[graph->ops_count] > 0);
    const uint32_t *numbers[] = {graph->order,
                                 graph->rank,
                                 &graph->ops[0].position,
                                 &graph->streams[0].ops_count,
                                 graph->streams[0].ops,
                                 &graph->predecessors.begin[graph->ops_count],
                                 &graph->storages[0].producer,
                                 &view.planned_count};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        uint32_t *number = (uint32_t *)(uintptr_t)numbers[i], before = *number;
        *number = before == 0 ? graph->ops_count - 1 : 0;
        if (tarn_graph_is_valid(&view)) fail_msg("number %zu is not looked at", i);
        *number = before;
    }
    assert_true(tarn_graph_is_valid(&view));
    tarn_graph_destroy(graph);
}

static void copies_what_is_passed_in(void **state)
{
    (void)state;
    char name[] = "w";
    uint32_t outputs[] = {0};
    struct tarn_builder *b = tarn_builder_create(name);
    tarn_builder_stream(b, name);
    tarn_builder_tensor(b, &(struct tarn_tensor_info){.name = name, .size = 1});
    tarn_builder_op(b, &(struct tarn_op_info){.name = name, .outputs = {outputs, 1}});
    name[0] = 'x';
    outputs[0] = 77;
    struct tarn_graph *graph = finish(b);
    assert_string_equal(graph->name, "w");
    assert_string_equal(graph->ops[0].name, "w");
    assert_int_equal(tarn_outputs(&graph->ops[0])[0], 0);
    tarn_graph_destroy(graph);
}

static void an_alias_of_an_alias_shares_the_root(void **state)
{
    (void)state;
    struct step s = step_begin();
    tarn_tensor again = tarn_builder_alias(s.b, s.reduced, "again");
    tarn_builder_op(s.b, &(struct tarn_op_info){.stream = s.comm,
                                                .inputs = TARN_TENSORS(s.reduced),
                                                .outputs = TARN_TENSORS(again)});
    struct tarn_graph *graph = finish(s.b);
    assert_int_equal(tarn_graph_root(graph, again), s.g);
    tarn_graph_destroy(graph);
}

static void accepts_a_graph_without_anything(void **state)
{
    (void)state;
    struct tarn_graph *graph = finish(tarn_builder_create(NULL));
    assert_string_equal(tarn_graph_name(graph), "");
    assert_int_equal(graph->storages_count, 0);
    tarn_graph_destroy(graph);
    tarn_graph_destroy(NULL);
    tarn_builder_destroy(NULL);
    tarn_builder_destroy(tarn_builder_create("unfinished"));
}

static void is_destroyed_with_its_last_reference(void **state)
{
    (void)state;
    struct tarn_graph *graph = finish(step_begin().b);
    struct tarn_graph *shared = tarn_graph_retain(graph);
    tarn_graph_destroy(graph);
    assert_string_equal(shared->ops[0].name, "backward"); /* a sanitizer sees it if it is gone */
    tarn_graph_destroy(shared);
}

/* ---- Errors of the builder ---- */

static struct tarn_error refusal(struct tarn_builder *builder)
{
    struct tarn_graph *graph = (struct tarn_graph *)builder;
    struct tarn_error error;
    assert_int_equal(tarn_builder_finish(builder, &graph, &error), TARN_BAD_INPUT);
    assert_int_equal(error.status, TARN_BAD_INPUT);
    assert_null(graph);
    return error;
}

static void assert_refused(struct tarn_builder *builder, const char *message)
{
    struct tarn_error error = refusal(builder);
    if (!strstr(error.text, message)) fail_msg("'%s' is not in '%s'", message, error.text);
    assert_string_equal(error.pointer, ""); /* there is no file to point into */
}

static void keeps_the_first_error_and_ignores_later_calls(void **state)
{
    (void)state;
    struct step s = step_begin();
    assert_int_equal(tarn_builder_alias(s.b, 99, "of nothing"), TARN_NONE);
    assert_int_equal(tarn_builder_stream(s.b, "late"), TARN_NONE);
    assert_int_equal(tarn_builder_tensor(s.b, &(struct tarn_tensor_info){.size = 0}), TARN_NONE);
    assert_int_equal(tarn_builder_op(s.b, &(struct tarn_op_info){.stream = 9}), TARN_NONE);
    tarn_builder_control(s.b, 9, 9);
    tarn_builder_group(s.b, TARN_TENSORS(9));
    assert_refused(s.b, "an alias of tensor 99 was asked for, but there are 3 tensors so far");
}

static void accepts_a_builder_for_which_there_was_no_memory(void **state)
{
    (void)state;
    struct tarn_graph *graph;
    struct tarn_error error;
    assert_int_equal(tarn_builder_stream(NULL, "s"), TARN_NONE);
    assert_int_equal(tarn_builder_tensor(NULL, &(struct tarn_tensor_info){.size = 1}), TARN_NONE);
    assert_int_equal(tarn_builder_alias(NULL, 0, "a"), TARN_NONE);
    assert_int_equal(tarn_builder_op(NULL, &(struct tarn_op_info){.stream = 0}), TARN_NONE);
    tarn_builder_control(NULL, 0, 0);
    tarn_builder_group(NULL, TARN_TENSORS(0));
    assert_int_equal(tarn_builder_finish(NULL, &graph, &error), TARN_SYSTEM);
    assert_string_equal(error.text, "out of memory");
}

static void refuses_what_no_file_can_say(void **state)
{
    (void)state;
    struct step s = step_begin();
    tarn_builder_tensor(s.b, &(struct tarn_tensor_info){
                                 .name = "odd", .size = 1, .kind = (enum tarn_tensor_kind)6});
    assert_refused(s.b, "tensor 3 \"odd\" has an unknown kind");
    s = step_begin();
    tarn_builder_tensor(s.b, &(struct tarn_tensor_info){.size = TARN_NUMBER_MAX + 1});
    assert_refused(s.b, "tensor 3 has a size above 2^53 - 1");
    s = step_begin();
    tarn_builder_op(s.b, &(struct tarn_op_info){.workspace = TARN_NUMBER_MAX + 1});
    assert_refused(s.b, "op 2 has a workspace above");
    s = step_begin();
    tarn_builder_op(s.b, &(struct tarn_op_info){.cost = TARN_NUMBER_MAX + 1});
    assert_refused(s.b, "op 2 has a cost above");
    s = step_begin();
    tarn_builder_op(s.b, &(struct tarn_op_info){.flops = UINT64_MAX});
    assert_refused(s.b, "op 2 has flops above");
    s = step_begin();
    tarn_builder_op(s.b, &(struct tarn_op_info){
                             .implementations = &(struct tarn_implementation){.cost = UINT64_MAX},
                             .implementations_count = 1});
    assert_refused(s.b, "an implementation with a cost above");
    s = step_begin();
    tarn_builder_control(s.b, 2, 0);
    assert_refused(s.b, "a control arc to op 2 was asked for, but there are 2 ops so far");
}

static void refuses_names_that_no_file_could_hold(void **state)
{
    (void)state;
    static const char *const bad[] = {"\xff",         "a\x80",           "\xc0\x80",
                                      "\xe2\x98",     "\xed\xa0\x80",    "\xf4\x90\x80\x80",
                                      "\xe0\x80\x80", "\xf0\x8f\xbf\xbf"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct step s = step_begin();
        assert_int_equal(tarn_builder_op(s.b, &(struct tarn_op_info){.name = bad[i]}), TARN_NONE);
        assert_refused(s.b, "the name of op 2 is not valid UTF-8");
        assert_refused(tarn_builder_create(bad[i]), "the name of the graph is not valid UTF-8");
    }
    char name[TARN_NAME_MAX + 2];
    memset(name, 'x', sizeof name);
    name[TARN_NAME_MAX + 1] = '\0';
    struct step s = step_begin();
    tarn_builder_stream(s.b, name);
    assert_refused(s.b, "the name of stream 2 is longer than 4096 bytes");
    s = step_begin();
    tarn_builder_stream(s.b, name + 1); /* just fits */
    tarn_builder_stream(s.b, "\xc2\x80\xe0\xa0\x80\xed\x9f\xbf\xf0\x90\x80\x80\xf4\x8f\xbf\xbf");
    tarn_graph_destroy(finish(s.b));
}

static void refuses_more_streams_than_the_cap(void **state)
{
    (void)state;
    struct tarn_builder *b = tarn_builder_create("many");
    for (uint32_t s = 0; s < TARN_STREAMS_MAX; s++)
        assert_int_equal(tarn_builder_stream(b, NULL), s);
    assert_int_equal(tarn_builder_stream(b, NULL), TARN_NONE);
    assert_refused(b, "more than 65536 streams");
}

static void refuses_streams_whose_clocks_would_fill_the_memory(void **state)
{
    (void)state;
    struct tarn_builder *b = tarn_builder_create("wide");
    for (uint32_t s = 0; s < TARN_STREAMS_MAX; s++) {
        tarn_builder_stream(b, NULL);
        tarn_builder_op(b, &(struct tarn_op_info){.stream = s});
    }
    assert_refused(b, "65536 streams are too many for this number of ops");
}

static void shows_long_and_odd_names_on_one_line(void **state)
{
    (void)state;
    struct tarn_builder *b = tarn_builder_create("names");
    char name[1000];
    for (size_t i = 0; i + 3 < sizeof name; i += 3) memcpy(name + i, "\xe2\x98\x83", 4);
    memcpy(name, "a\nb", 3);
    tarn_builder_tensor(b, &(struct tarn_tensor_info){.name = name, .alignment = 3});
    struct tarn_error error = refusal(b);
    assert_non_null(strstr(error.text, "tensor 0 \"a?b\xe2\x98\x83"));
    assert_non_null(strstr(error.text, "\xe2\x98\x83...\" has an alignment"));
    assert_true(strlen(error.text) < 150);
    assert_int_equal(error.tensor, 0);
    assert_int_equal(error.op, TARN_NONE);
}

/* ---- What is derived ---- */

/* before[u * n + v]: an arc or stream order puts u before v. From the records alone. */
static bool *direct_matrix(const struct tarn_graph *graph, bool with_control)
{
    uint32_t n = graph->ops_count;
    bool *before = calloc((size_t)n * n + 1, 1);
    for (uint32_t v = 0; v < n; v++) {
        const struct tarn_graph_op *op = &graph->ops[v];
        const struct tarn_op_extra *extra = tarn_extra(op);
        for (uint32_t k = 0; with_control && k < extra->control_count; k++)
            before[extra->control[k] * n + v] = true;
        for (uint32_t u = 0; u < n; u++) {
            if (u < v && graph->ops[u].stream == op->stream) before[u * n + v] = true;
            for (uint32_t o = 0; o < graph->ops[u].outputs_count; o++) {
                for (uint32_t i = 0; i < op->inputs_count; i++) {
                    if (tarn_outputs(&graph->ops[u])[o] == op->inputs[i]) before[u * n + v] = true;
                }
            }
        }
    }
    return before;
}

static void close_transitively(bool *before, uint32_t n)
{
    for (uint32_t k = 0; k < n; k++) {
        for (uint32_t u = 0; u < n; u++) {
            if (!before[u * n + k]) continue;
            for (uint32_t v = 0; v < n; v++) before[u * n + v] |= before[k * n + v];
        }
    }
}

static bool lists_contain(const uint32_t *ids, uint32_t begin, uint32_t end, uint32_t id)
{
    uint32_t times = 0;
    for (uint32_t k = begin; k < end; k++) times += ids[k] == id;
    assert_true(times <= 1);
    return times == 1;
}

static void check_arcs(const struct tarn_graph *graph, const bool *before)
{
    uint32_t n = graph->ops_count;
    for (uint32_t u = 0; u < n; u++) {
        for (uint32_t v = 0; v < n; v++) {
            bool expected = before[u * n + v] && graph->ops[u].stream != graph->ops[v].stream;
            assert_int_equal(expected,
                             lists_contain(graph->predecessors.ops, graph->predecessors.begin[v],
                                           graph->predecessors.begin[v + 1], u));
            assert_int_equal(expected,
                             lists_contain(graph->successors.ops, graph->successors.begin[u],
                                           graph->successors.begin[u + 1], v));
        }
    }
}

static void check_streams(const struct tarn_graph *graph)
{
    uint32_t count = 0;
    for (uint32_t s = 0; s < graph->streams_count; s++) {
        const struct tarn_graph_stream *stream = &graph->streams[s];
        for (uint32_t i = 0; i < stream->ops_count; i++, count++) {
            assert_int_equal(graph->ops[stream->ops[i]].stream, s);
            assert_int_equal(graph->ops[stream->ops[i]].position, i);
            if (i > 0) assert_true(stream->ops[i - 1] < stream->ops[i]);
        }
    }
    assert_int_equal(count, graph->ops_count);
}

/* The smallest id whose predecessors are all placed, again and again; which is the list order
 * itself where that is topological. */
static void check_order(const struct tarn_graph *graph, const bool *before)
{
    uint32_t n = graph->ops_count;
    bool *placed = calloc(n, 1);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t smallest = n;
        for (uint32_t v = n; v-- > 0;) {
            bool ready = !placed[v];
            for (uint32_t u = 0; u < n; u++) ready &= placed[u] || !before[u * n + v];
            if (ready) smallest = v;
        }
        assert_int_equal(graph->order[i], smallest);
        assert_int_equal(graph->rank[smallest], i);
        placed[smallest] = true;
    }
    free(placed);
}

static bool names_storage(const struct tarn_graph *graph, const uint32_t *tensors, uint32_t count,
                          uint32_t root)
{
    for (uint32_t k = 0; k < count; k++) {
        if (graph->tensors[tensors[k]].root == root) return true;
    }
    return false;
}

static bool op_writes(const struct tarn_graph *graph, uint32_t v, uint32_t root)
{
    const struct tarn_graph_op *op = &graph->ops[v];
    return !op->view && names_storage(graph, tarn_outputs(op), op->outputs_count, root);
}

static bool op_touches(const struct tarn_graph *graph, uint32_t v, uint32_t root)
{
    const struct tarn_graph_op *op = &graph->ops[v];
    return !op->view &&
           (names_storage(graph, op->inputs, op->inputs_count, root) || op_writes(graph, v, root));
}

static void check_root_storage(const struct tarn_graph *graph, uint32_t a, uint32_t root)
{
    const struct tarn_storage *storage = &graph->storages[a];
    const struct tarn_graph_tensor *tensor = &graph->tensors[root];
    uint32_t i = 0;
    assert_int_equal(storage->tensor, root);
    assert_int_equal(storage->size, tensor->size);
    assert_int_equal(tarn_own_alignment(graph, storage), tensor->alignment);
    assert_int_equal(storage->pinned, tensor->kind == TARN_OUTPUT);
    assert_int_equal(storage->persistent, tensor->kind >= TARN_PARAMETER);
    for (uint32_t r = 0; r < graph->ops_count; r++) {
        if (op_touches(graph, graph->order[r], root))
            assert_int_equal(tarn_storage_users(graph, storage)[i++], graph->order[r]);
    }
    assert_int_equal(storage->users_count, i);
    if (storage->persistent) {
        assert_int_equal(storage->producer, TARN_NONE);
    } else {
        assert_int_equal(storage->producer, tarn_storage_users(graph, storage)[0]);
        assert_true(op_writes(graph, storage->producer, root));
    }
    for (uint32_t t = 0; t < graph->tensors_count; t++)
        assert_int_equal(graph->tensors[t].storage == a, graph->tensors[t].root == root);
}

/* Numbered planned roots, workspaces, persistent roots. */
static void check_storages(const struct tarn_graph *graph)
{
    uint32_t a = 0;
    for (uint32_t t = 0; t < graph->tensors_count; t++) {
        if (graph->tensors[t].root == t && graph->tensors[t].kind < TARN_PARAMETER)
            check_root_storage(graph, a++, t);
    }
    for (uint32_t v = 0; v < graph->ops_count; v++) {
        assert_int_equal(tarn_extra(&graph->ops[v])->workspace_storage,
                         tarn_extra(&graph->ops[v])->workspace > 0 ? a : TARN_NONE);
        if (tarn_extra(&graph->ops[v])->workspace == 0) continue;
        const struct tarn_storage *storage = &graph->storages[a++];
        assert_int_equal(storage->tensor, TARN_NONE);
        assert_int_equal(storage->producer, v);
        assert_int_equal(storage->size, tarn_extra(&graph->ops[v])->workspace);
        assert_int_equal(storage->users_count, 1);
        assert_int_equal(tarn_storage_users(graph, storage)[0], v);
        assert_int_equal(storage->group, TARN_NONE);
        assert_false(storage->pinned || storage->persistent);
    }
    assert_int_equal(graph->planned_count, a);
    for (uint32_t t = 0; t < graph->tensors_count; t++) {
        if (graph->tensors[t].root == t && graph->tensors[t].kind >= TARN_PARAMETER)
            check_root_storage(graph, a++, t);
    }
    assert_int_equal(graph->storages_count, a);
}

static void check_groups(const struct tarn_graph *graph)
{
    uint32_t members = 0, grouped = 0;
    for (uint32_t g = 0; g < graph->groups_count; g++) {
        for (uint32_t i = 0; i < graph->groups[g].storages_count; i++, members++) {
            const struct tarn_storage *storage = &graph->storages[graph->groups[g].storages[i]];
            assert_int_equal(storage->group, g);
            assert_int_equal(storage->persistent, graph->groups[g].persistent);
        }
    }
    for (uint32_t a = 0; a < graph->storages_count; a++)
        grouped += graph->storages[a].group != TARN_NONE;
    assert_int_equal(members, grouped);
}

static void derives_what_a_naive_derivation_finds(void **state)
{
    (void)state;
    unsigned out_of_order = 0, groups = 0;
    for (uint64_t seed = 0; seed < 1500; seed++) {
        struct random_graph_options options = random_graph_knobs(seed, 24);
        struct tarn_graph *graph = random_graph(&options);
        bool *before = direct_matrix(graph, true);
        check_streams(graph);
        check_arcs(graph, before);
        check_order(graph, before);
        check_storages(graph);
        check_groups(graph);
        for (uint32_t i = 0; i < graph->ops_count; i++) {
            if (graph->order[i] == i) continue;
            out_of_order++;
            break;
        }
        groups += graph->groups_count;
        free(before);
        tarn_graph_destroy(graph);
    }
    assert_true(out_of_order > 50 && groups > 50); /* the rare cases were among them */
}

static void keeps_the_order_of_group_members(void **state)
{
    (void)state;
    struct tarn_builder *b = tarn_builder_create("group");
    tarn_builder_stream(b, "s");
    for (int i = 0; i < 3; i++) tarn_builder_tensor(b, &(struct tarn_tensor_info){.size = 8});
    tarn_builder_op(b, &(struct tarn_op_info){.outputs = TARN_TENSORS(0, 1, 2)});
    tarn_builder_group(b, TARN_TENSORS(2, 0, 1));
    struct tarn_graph *graph = finish(b);
    assert_int_equal(graph->groups_count, 1);
    assert_int_equal(graph->groups[0].storages[0], 2);
    assert_int_equal(graph->groups[0].storages[1], 0);
    assert_int_equal(graph->groups[0].storages[2], 1);
    tarn_graph_destroy(graph);
}

static void accepts_what_a_naive_eye_might_refuse(void **state)
{
    (void)state;
    struct step s = step_begin();
    /* reads one tensor twice, controls said twice, no outputs, an empty op */
    tarn_builder_op(s.b, &(struct tarn_op_info){.stream = s.comm,
                                                .inputs = TARN_TENSORS(s.reduced, s.reduced, s.g),
                                                .control = TARN_OPS(0, 0, 1)});
    tarn_builder_op(s.b, &(struct tarn_op_info){.name = "nothing"});
    struct tarn_graph *graph = finish(s.b);
    assert_int_equal(graph->predecessors.begin[3] - graph->predecessors.begin[2], 1);
    assert_int_equal(graph->storages[graph->tensors[s.g].storage].users_count, 3);
    tarn_graph_destroy(graph);
}

/* ---- Races and cycles against brute force ---- */

/* The graph again, each control arc kept with the given chance, and some new ones at random. */
static struct tarn_builder *damaged_copy(const struct tarn_graph *graph,
                                         struct random_source *source, uint32_t kept_percent,
                                         uint32_t added_percent)
{
    struct tarn_builder *b = tarn_builder_create("damaged");
    for (uint32_t s = 0; s < graph->streams_count; s++) tarn_builder_stream(b, "s");
    for (uint32_t t = 0; t < graph->tensors_count; t++) {
        struct tarn_tensor_info info;
        tarn_graph_tensor(graph, t, &info);
        uint32_t root = tarn_graph_root(graph, t);
        tarn_builder_alias_of(b, &info, root == t ? TARN_NONE : root);
    }
    for (uint32_t v = 0; v < graph->ops_count; v++) {
        struct tarn_op_info info;
        tarn_graph_op(graph, v, &info);
        struct tarn_list control = info.control;
        info.control = (struct tarn_list){0};
        tarn_builder_op(b, &info);
        for (size_t k = 0; k < control.count; k++) {
            if (random_percent(source, kept_percent)) tarn_builder_control(b, v, control.ids[k]);
        }
        uint32_t other = random_below(source, graph->ops_count);
        if (other != v && random_percent(source, added_percent)) tarn_builder_control(b, v, other);
    }
    return b;
}

/* What is directly before what in that copy, when drawn with the same source. */
static bool *matrix_of_copy(const struct tarn_graph *graph, struct random_source source,
                            uint32_t kept_percent, uint32_t added_percent)
{
    uint32_t n = graph->ops_count;
    bool *before = direct_matrix(graph, false);
    for (uint32_t v = 0; v < n; v++) {
        const struct tarn_graph_op *op = &graph->ops[v];
        const struct tarn_op_extra *extra = tarn_extra(op);
        for (uint32_t k = 0; k < extra->control_count; k++) {
            if (random_percent(&source, kept_percent)) before[extra->control[k] * n + v] = true;
        }
        uint32_t other = random_below(&source, n);
        if (other != v && random_percent(&source, added_percent)) before[other * n + v] = true;
    }
    return before;
}

static bool has_cycle(const bool *closed, uint32_t n)
{
    for (uint32_t v = 0; v < n; v++) {
        if (closed[v * n + v]) return true;
    }
    return false;
}

/* Two users of one storage of which one writes, unordered; or a user before the producer. */
static bool is_racy_pair(const struct tarn_graph *graph, const bool *closed, uint32_t root,
                         uint32_t u, uint32_t v)
{
    uint32_t n = graph->ops_count;
    if (u == v || !op_touches(graph, u, root) || !op_touches(graph, v, root)) return false;
    if (graph->tensors[root].producer == v && closed[u * n + v]) return true;
    return (op_writes(graph, u, root) || op_writes(graph, v, root)) && !closed[u * n + v] &&
           !closed[v * n + u];
}

static bool is_racy(const struct tarn_graph *graph, const bool *closed, uint32_t only_op)
{
    for (uint32_t root = 0; root < graph->tensors_count; root++) {
        if (graph->tensors[root].root != root) continue;
        for (uint32_t u = 0; u < graph->ops_count; u++) {
            for (uint32_t v = 0; v < graph->ops_count; v++) {
                if (only_op != TARN_NONE && u != only_op && v != only_op) continue;
                if (is_racy_pair(graph, closed, root, u, v)) return true;
            }
        }
    }
    return false;
}

static void finds_exactly_the_data_races_of_brute_force(void **state)
{
    (void)state;
    unsigned racy = 0, sound = 0;
    for (uint64_t seed = 0; seed < 4000; seed++) {
        struct random_source source = {seed};
        struct random_graph_options options = random_graph_knobs(seed, 20);
        struct tarn_graph *graph = random_graph(&options), *copy = NULL;
        uint32_t n = graph->ops_count, kept = random_below(&source, 101);
        bool *before = matrix_of_copy(graph, source, kept, 0);
        struct tarn_builder *b = damaged_copy(graph, &source, kept, 0);
        struct tarn_error error;
        close_transitively(before, n);
        bool expected = is_racy(graph, before, TARN_NONE);
        enum tarn_status status = tarn_builder_finish(b, &copy, &error);
        assert_int_equal(status, expected ? TARN_BAD_INPUT : TARN_OK);
        if (expected) {
            assert_true(strstr(error.text, "data race") ||
                        strstr(error.text, "before its producer"));
            assert_true(is_racy(graph, before, error.op));
        }
        racy += expected;
        sound += !expected;
        free(before);
        tarn_graph_destroy(copy);
        tarn_graph_destroy(graph);
    }
    assert_true(racy > 300 && sound > 300);
}

/* Reads the ops out of "op 3 "x" -[tensor 5]-> op 7 "y" -[control]-> op 3" and follows them. */
static void check_cycle(const char *text, const bool *before, uint32_t n)
{
    uint32_t ids[64], count = 0;
    const char *p = strstr(text, "cycle: ");
    assert_non_null(p);
    if (strstr(text, "more)")) return;
    for (p += strlen("cycle: "); p; p = strstr(p, "]-> ")) {
        if (*p == ']') p += strlen("]-> ");
        assert_int_equal(sscanf(p, "op %u", &ids[count++]), 1);
    }
    assert_true(count >= 3);
    assert_int_equal(ids[0], ids[count - 1]);
    for (uint32_t i = 0; i + 1 < count; i++) assert_true(before[ids[i] * n + ids[i + 1]]);
}

/* Six ops of a cycle are named, and how many more there are, if there are any. */
static void a_long_cycle_is_shown_in_part(void **state)
{
    (void)state;
    for (uint32_t n = 2; n < 10; n++) {
        struct tarn_builder *b = tarn_builder_create("ring");
        struct tarn_graph *graph;
        struct tarn_error error;
        uint32_t named = 0;
        char more[32];
        snprintf(more, sizeof more, "(%u more) -> ", n - 6);
        for (tarn_stream stream = 0; stream < n; stream++) tarn_builder_stream(b, "s");
        for (tarn_op v = 0; v < n; v++) {
            tarn_op before = (v + n - 1) % n;
            tarn_builder_op(b, &(struct tarn_op_info){.stream = v, .control = {&before, 1}});
        }
        assert_int_equal(tarn_builder_finish(b, &graph, &error), TARN_BAD_INPUT);
        for (const char *at = strstr(error.text, "]-> "); at; at = strstr(at + 1, "]-> ")) named++;
        const char *cycle = strstr(error.text, "cycle: ");
        assert_non_null(cycle);
        assert_true(named >= 2 && named <= 6);
        assert_int_equal(strstr(cycle, "more") != NULL, n > 6);
        if (n > 6) assert_non_null(strstr(cycle, more));
    }
}

static void finds_exactly_the_cycles_of_brute_force_and_shows_one(void **state)
{
    (void)state;
    unsigned cyclic = 0, acyclic = 0;
    for (uint64_t seed = 0; seed < 3000; seed++) {
        struct random_source source = {seed};
        struct random_graph_options options = random_graph_knobs(seed, 14);
        struct tarn_graph *graph = random_graph(&options), *copy = NULL;
        uint32_t n = graph->ops_count, added = random_below(&source, 40);
        bool *before = matrix_of_copy(graph, source, 100, added);
        bool *closed = calloc((size_t)n * n + 1, 1);
        memcpy(closed, before, (size_t)n * n);
        struct tarn_error error;
        enum tarn_status status =
            tarn_builder_finish(damaged_copy(graph, &source, 100, added), &copy, &error);
        close_transitively(closed, n);
        bool expected = has_cycle(closed, n);
        assert_int_equal(status, expected ? TARN_BAD_INPUT : TARN_OK);
        if (expected) check_cycle(error.text, before, n);
        cyclic += expected;
        acyclic += !expected;
        free(before);
        free(closed);
        tarn_graph_destroy(copy);
        tarn_graph_destroy(graph);
    }
    assert_true(cyclic > 300 && acyclic > 300);
}

/* ---- Hash ---- */

enum { VARIANTS = 32 };

/* One graph, with one thing changed for every variant above 0. */
static struct tarn_hash hash_of_variant(int variant)
{
    struct tarn_builder *b = tarn_builder_create(variant == 1 ? "other name" : "name");
    tarn_builder_meta(b, variant == 2 ? "{\"other\":1}" : "{}");
    tarn_builder_stream(b, variant == 3 ? "other" : "compute");
    tarn_builder_stream(b, "comm");
    uint32_t size = variant == 4 ? 16 : 8;
    tarn_builder_tensor(b, &(struct tarn_tensor_info){.name = variant == 5 ? "A" : "a",
                                                      .size = size,
                                                      .alignment = variant == 6 ? 64 : 0});
    tarn_builder_tensor(b, &(struct tarn_tensor_info){
                               .name = "b", .size = 8, .kind = variant == 7 ? TARN_OUTPUT : 0});
    if (variant == 8)
        tarn_builder_tensor(b, &(struct tarn_tensor_info){.name = "c", .size = 8});
    else
        tarn_builder_alias(b, 1, "c");
    tarn_builder_op(b,
                    &(struct tarn_op_info){.name = variant == 9 ? "O" : "o",
                                           .kind = variant == 10 ? "K" : "k",
                                           .outputs = TARN_TENSORS(0, 1),
                                           .workspace = variant == 11,
                                           .cost = variant == 12,
                                           .flops = variant == 13,
                                           .recomputable = variant == 14   ? TARN_RECOMPUTABLE
                                                           : variant == 22 ? TARN_NOT_RECOMPUTABLE
                                                                           : 0,
                                           .op_class = variant == 30   ? TARN_CLASS_PURE
                                                       : variant == 31 ? TARN_CLASS_RANDOM
                                                                       : 0}); /* by its kind */
    struct tarn_implementation fast = {.name = "fast", .cost = 1};
    const uint32_t read[] = {0}, made[] = {2};
    if (variant == 23) fast.inputs = (struct tarn_list){read, 1};
    if (variant == 24) fast.outputs = (struct tarn_list){made, 1};
    uint32_t swapped[] = {variant == 15 ? 1 : 0, variant == 15 ? 0 : 1};
    tarn_builder_op(b,
                    &(struct tarn_op_info){
                        .stream = variant == 16,
                        .inputs = {swapped, 2},
                        .outputs = TARN_TENSORS(2),
                        .inplace = &(const uint32_t[2]){1, 2},
                        .inplace_count = variant == 18,
                        .common = {variant >= 28 ? swapped : NULL, variant == 29},
                        .implementations = &fast,
                        .implementations_count = variant == 19 || variant == 23 || variant == 24});
    if (variant == 17) tarn_builder_control(b, 1, 0);
    if (variant == 20) tarn_builder_origin(b, 5, TARN_NONE);
    if (variant == 25) tarn_builder_origin(b, 1, 0);
    if (variant == 26) tarn_builder_origin(b, 1, 1);
    if (variant == 27) tarn_builder_tensor_origin(b, 1);
    if (variant == 21) tarn_builder_group(b, TARN_TENSORS(0, 1));
    struct tarn_graph *graph = finish(b);
    struct tarn_hash hash = graph->hash;
    tarn_graph_destroy(graph);
    return hash;
}

static void hashes_everything_but_name_and_meta(void **state)
{
    (void)state;
    struct tarn_hash hashes[VARIANTS];
    for (int i = 0; i < VARIANTS; i++) hashes[i] = hash_of_variant(i);
    assert_true(tarn_hash_equal(hashes[0], hash_of_variant(0)));
    assert_true(tarn_hash_equal(hashes[0], hashes[1]));
    assert_true(tarn_hash_equal(hashes[0], hashes[2]));
    for (int i = 0; i < VARIANTS; i++) {
        for (int k = i > 3 ? i + 1 : 3; k < VARIANTS; k++) {
            if (i != k && tarn_hash_equal(hashes[i], hashes[k])) fail_msg("%d and %d", i, k);
        }
    }
}

static void writes_hashes_as_text_and_reads_them_back(void **state)
{
    (void)state;
    struct tarn_hash hash = {{UINT64_C(0x0123456789abcdef), UINT64_C(0xf)}}, again;
    assert_string_equal(tarn_hash_format(hash).text, "0123456789abcdef000000000000000f");
    assert_true(tarn_hash_parse("0123456789abcdef000000000000000f", &again));
    assert_true(tarn_hash_equal(hash, again));
    assert_false(tarn_hash_parse("0123456789abcdef000000000000000", &again));
    assert_false(tarn_hash_parse("0123456789abcdef000000000000000f0", &again));
    assert_false(tarn_hash_parse("0123456789ABCDEF000000000000000f", &again));
    assert_false(tarn_hash_parse("", &again));
}

/* The hash is part of files, so it must never change unnoticed. */
static void hashes_the_same_graph_to_the_same_value_for_ever(void **state)
{
    (void)state;
    struct tarn_graph *graph = finish(step_begin().b);
    assert_string_equal(tarn_hash_format(graph->hash).text, "0f8eef1fac9901faef5e84cfc20f24ec");
    tarn_graph_destroy(graph);
}

/* Forward reads w on two streams, under two names; the update on a third one comes after both, and
 * after nothing that reads other bytes. */
static void writers_come_after_all_readers_so_far(void **state)
{
    (void)state;
    struct tarn_error error;
    struct tarn_graph *graph;
    struct tarn_builder *b = tarn_builder_create("update");
    tarn_stream s[3];
    for (int i = 0; i < 3; i++) s[i] = tarn_builder_stream(b, "s");
    struct tarn_tensor_info parameter = {.size = 64, .kind = TARN_PARAMETER};
    tarn_tensor w = tarn_builder_tensor(b, &parameter), other = tarn_builder_tensor(b, &parameter);
    tarn_tensor view = tarn_builder_alias(b, w, "view"), next = tarn_builder_alias(b, w, "next");
    tarn_op split = tarn_builder_op(b, &(struct tarn_op_info){.stream = s[1],
                                                              .view = true,
                                                              .inputs = TARN_TENSORS(w),
                                                              .outputs = TARN_TENSORS(view)});
    tarn_op first =
        tarn_builder_op(b, &(struct tarn_op_info){.stream = s[0], .inputs = TARN_TENSORS(w)});
    tarn_op second =
        tarn_builder_op(b, &(struct tarn_op_info){.stream = s[1], .inputs = TARN_TENSORS(view)});
    tarn_builder_op(b, &(struct tarn_op_info){.stream = s[0], .inputs = TARN_TENSORS(other)});
    tarn_op update =
        tarn_builder_op(b, &(struct tarn_op_info){.stream = s[2], .outputs = TARN_TENSORS(next)});
    tarn_builder_after_readers(b, update);
    if (tarn_builder_finish(b, &graph, &error) != TARN_OK) fail_msg("%s", error.text);
    const struct tarn_graph_op *op = &graph->ops[update];
    const struct tarn_op_extra *extra = tarn_extra(op);
    const uint32_t expected[] = {split, first, second};
    assert_int_equal(extra->control_count, 3);
    assert_memory_equal(extra->control, expected, sizeof expected);
    tarn_graph_destroy(graph);
    b = tarn_builder_create("none");
    tarn_builder_after_readers(b, 3);
    assert_int_equal(tarn_builder_finish(b, &graph, &error), TARN_BAD_INPUT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writers_come_after_all_readers_so_far),
        cmocka_unit_test(gives_back_what_was_put_in),
        cmocka_unit_test(a_graph_is_valid_until_a_number_of_it_changes),
        cmocka_unit_test(copies_what_is_passed_in),
        cmocka_unit_test(an_alias_of_an_alias_shares_the_root),
        cmocka_unit_test(accepts_a_graph_without_anything),
        cmocka_unit_test(is_destroyed_with_its_last_reference),
        cmocka_unit_test(keeps_the_first_error_and_ignores_later_calls),
        cmocka_unit_test(accepts_a_builder_for_which_there_was_no_memory),
        cmocka_unit_test(refuses_what_no_file_can_say),
        cmocka_unit_test(refuses_names_that_no_file_could_hold),
        cmocka_unit_test(refuses_more_streams_than_the_cap),
        cmocka_unit_test(refuses_streams_whose_clocks_would_fill_the_memory),
        cmocka_unit_test(shows_long_and_odd_names_on_one_line),
        cmocka_unit_test(derives_what_a_naive_derivation_finds),
        cmocka_unit_test(keeps_the_order_of_group_members),
        cmocka_unit_test(accepts_what_a_naive_eye_might_refuse),
        cmocka_unit_test(finds_exactly_the_data_races_of_brute_force),
        cmocka_unit_test(finds_exactly_the_cycles_of_brute_force_and_shows_one),
        cmocka_unit_test(a_long_cycle_is_shown_in_part),
        cmocka_unit_test(hashes_everything_but_name_and_meta),
        cmocka_unit_test(writes_hashes_as_text_and_reads_them_back),
        cmocka_unit_test(hashes_the_same_graph_to_the_same_value_for_ever),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
