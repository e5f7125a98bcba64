/* The four ways to find unsafe pairs give the same set: on random graphs with every feature,
 * against a naive oracle, on the paper's figures with the paper's own facts, and on real graphs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "planner/papers/pairs.h"
#include "streams/order/reuse.h"
#include "support/graph_files.h"
#include "support/random_graph.h"

static const char *const methods[] = {"clocks", "ancestors", "ancestors-opt", "stream-graph"};
enum { METHODS = sizeof methods / sizeof *methods, RANDOM_GRAPHS = DRAWS(10000), RANDOM_OPS = 40 };

static struct tarn_graph *load(const char *path)
{
    struct tarn_graph *graph = NULL;
    struct tarn_error error;
    if (tarn_graph_load(path, NULL, &graph, &error) != TARN_OK)
        fail_msg("%s: %s", path, error.text);
    return graph;
}

static struct tarn_graph *finish(struct tarn_builder *builder)
{
    struct tarn_graph *graph = NULL;
    struct tarn_error error;
    if (tarn_builder_finish(builder, &graph, &error) != TARN_OK) fail_msg("%s", error.text);
    return graph;
}

static struct tarn_pairs pairs_of(const struct tarn_graph *graph, const char *method)
{
    struct tarn_pairs pairs;
    struct tarn_error error;
    if (tarn_graph_pairs(graph, method, &pairs, &error) != TARN_OK) fail_msg("%s", error.text);
    return pairs;
}

/* All methods give one set; returns what they agree on. */
static struct tarn_pairs assert_methods_agree(const struct tarn_graph *graph)
{
    struct tarn_pairs first = pairs_of(graph, methods[0]);
    for (unsigned m = 1; m < METHODS; m++) {
        struct tarn_pairs other = pairs_of(graph, methods[m]);
        if (other.hash != first.hash || other.unsafe != first.unsafe || other.pairs != first.pairs)
            fail_msg("%s: %s finds %llu unsafe pairs, %s %llu", tarn_graph_name(graph), methods[0],
                     (unsigned long long)first.unsafe, methods[m],
                     (unsigned long long)other.unsafe);
    }
    return first;
}

/* ---- The oracle: closure by Warshall over sets of at most 64 ops, from the public API alone ----
 */

struct oracle {
    uint64_t before[64]; /* bit u: u happens strictly before the op */
    /* per planned storage, in the graph's numbering */
    uint32_t producer[256];
    uint64_t users[256];
    bool pinned[256];
    uint32_t count;
};

static void close_transitively(uint64_t *before, uint32_t ops)
{
    for (uint32_t middle = 0; middle < ops; middle++) {
        for (uint32_t v = 0; v < ops; v++) {
            if (before[v] >> middle & 1) before[v] |= before[middle];
        }
    }
}

static void find_order(struct oracle *oracle, const struct tarn_graph *graph)
{
    uint32_t ops = tarn_graph_ops_count(graph);
    struct tarn_op_info u, v;
    for (uint32_t a = 0; a < ops; a++) {
        tarn_graph_op(graph, a, &u);
        for (size_t i = 0; i < u.control.count; i++)
            oracle->before[a] |= UINT64_C(1) << u.control.ids[i];
        for (uint32_t b = 0; b < ops; b++) {
            tarn_graph_op(graph, b, &v);
            bool earlier = b < a && u.stream == v.stream;
            for (size_t i = 0; i < u.inputs.count; i++) {
                for (size_t k = 0; k < v.outputs.count; k++)
                    earlier |= u.inputs.ids[i] == v.outputs.ids[k];
            }
            if (earlier) oracle->before[a] |= UINT64_C(1) << b;
        }
    }
    close_transitively(oracle->before, ops);
}

static bool names_root(const struct tarn_graph *graph, struct tarn_list list, tarn_tensor root)
{
    for (size_t i = 0; i < list.count; i++) {
        if (tarn_graph_root(graph, list.ids[i]) == root) return true;
    }
    return false;
}

static void add_planned_root(struct oracle *oracle, const struct tarn_graph *graph,
                             tarn_tensor root, bool pinned)
{
    uint32_t a = oracle->count++;
    struct tarn_op_info op;
    oracle->pinned[a] = pinned;
    for (uint32_t v = 0; tarn_graph_op(graph, v, &op); v++) {
        for (size_t i = 0; i < op.outputs.count; i++) {
            if (op.outputs.ids[i] == root) oracle->producer[a] = v;
        }
        if (op.view) continue;
        if (names_root(graph, op.inputs, root) || names_root(graph, op.outputs, root))
            oracle->users[a] |= UINT64_C(1) << v;
    }
}

static void find_storages(struct oracle *oracle, const struct tarn_graph *graph)
{
    struct tarn_tensor_info tensor;
    struct tarn_op_info op;
    for (uint32_t t = 0; tarn_graph_tensor(graph, t, &tensor); t++) {
        if (tarn_graph_root(graph, t) == t && tensor.kind <= TARN_OUTPUT)
            add_planned_root(oracle, graph, t, tensor.kind == TARN_OUTPUT);
    }
    for (uint32_t v = 0; tarn_graph_op(graph, v, &op); v++) {
        if (op.workspace == 0) continue;
        oracle->producer[oracle->count] = v;
        oracle->users[oracle->count++] = UINT64_C(1) << v;
    }
}

static bool oracle_precedes(const struct oracle *oracle, uint32_t a, uint32_t b)
{
    return !oracle->pinned[a] && (oracle->users[a] & ~oracle->before[oracle->producer[b]]) == 0;
}

static uint64_t assert_oracle_agrees(const struct tarn_graph *graph)
{
    struct oracle oracle = {0};
    struct tarn_pair_matrix matrix;
    uint64_t unsafe_count = 0;
    find_order(&oracle, graph);
    find_storages(&oracle, graph);
    assert_int_equal(tarn_pairs_clocks(graph, &matrix), TARN_OK);
    assert_int_equal(matrix.count, oracle.count);
    for (uint32_t a = 0; a < oracle.count; a++) {
        for (uint32_t b = 0; b < oracle.count; b++) {
            bool unsafe =
                a != b && !oracle_precedes(&oracle, a, b) && !oracle_precedes(&oracle, b, a);
            if (tarn_pair_matrix_get(&matrix, a, b) != unsafe)
                fail_msg("%s: storages %u and %u", tarn_graph_name(graph), a, b);
            unsafe_count += unsafe;
        }
    }
    tarn_pair_matrix_finish(&matrix);
    return unsafe_count / 2;
}

/* ---- Random graphs ---- */

/* What the random graphs had, so that the test cannot silently lose a feature. */
struct features {
    uint32_t views, inplace, control, workspaces, dead, outputs, persistent_writes, groups,
        alignments, not_in_list_order, cyclic;
};

static bool has_cyclic_stream_graph(const struct tarn_graph *graph)
{
    struct tarn_region region = {.chunks = NULL};
    struct tarn_stream_graph streams;
    bool cyclic = false;
    assert_int_equal(tarn_stream_graph_init(&streams, &region, graph), TARN_OK);
    uint32_t count = streams.streams_count;
    for (uint32_t a = 0; a < count; a++) {
        for (uint32_t b = 0; b < count; b++)
            cyclic |= streams.anc_streams[a * count + b] && streams.anc_streams[b * count + a];
    }
    tarn_region_finish(&region);
    return cyclic;
}

static void note_op_features(struct features *features, const struct tarn_graph *graph, uint32_t v)
{
    const struct tarn_graph_op *op = &graph->ops[v];
    const struct tarn_op_extra *extra = tarn_extra(op);
    features->views += op->view;
    features->control += extra->control_count > 0;
    features->workspaces += extra->workspace > 0;
    features->not_in_list_order += graph->order[v] != v;
    for (uint32_t i = 0; i < op->outputs_count && !op->view; i++) {
        const struct tarn_graph_tensor *tensor = &graph->tensors[tarn_outputs(op)[i]];
        bool inplace = tensor->root != tarn_outputs(op)[i];
        features->inplace += inplace;
        features->persistent_writes += inplace && tarn_kind_is_persistent(tensor->kind);
    }
}

static void note_features(struct features *features, const struct tarn_graph *graph)
{
    for (uint32_t v = 0; v < graph->ops_count; v++) note_op_features(features, graph, v);
    for (uint32_t a = 0; a < graph->planned_count; a++) {
        const struct tarn_storage *storage = &graph->storages[a];
        features->dead += storage->tensor != TARN_NONE && storage->users_count == 1;
        features->outputs += storage->pinned;
        features->alignments += tarn_own_alignment(graph, storage) > 0;
    }
    features->groups += graph->groups_count;
    features->cyclic += has_cyclic_stream_graph(graph);
}

static void four_methods_and_an_oracle_agree_on_random_graphs(void **state)
{
    (void)state;
    uint64_t pairs = 0, unsafe = 0;
    for (uint64_t seed = 0; seed < RANDOM_GRAPHS; seed++) {
        struct random_graph_options options = random_graph_knobs(seed, RANDOM_OPS);
        struct tarn_graph *graph = random_graph(&options);
        struct tarn_pairs found = assert_methods_agree(graph);
        assert_int_equal(assert_oracle_agrees(graph), found.unsafe);
        pairs += found.pairs;
        unsafe += found.unsafe;
        tarn_graph_destroy(graph);
    }
    print_message("# %d random graphs: %llu pairs, %llu of them unsafe\n", RANDOM_GRAPHS,
                  (unsigned long long)pairs, (unsigned long long)unsafe);
    assert_true(unsafe > pairs / 10 && unsafe < pairs - pairs / 10); /* neither all nor none */
}

static void random_graphs_have_every_feature(void **state)
{
    (void)state;
    struct features features = {0};
    for (uint64_t seed = 0; seed < 1000; seed++) {
        struct random_graph_options options = random_graph_knobs(seed, RANDOM_OPS);
        struct tarn_graph *graph = random_graph(&options);
        note_features(&features, graph);
        tarn_graph_destroy(graph);
    }
    assert_true(features.cyclic > 300);
    assert_true(features.views > 300 && features.inplace > 300 && features.control > 300);
    assert_true(features.workspaces > 300 && features.dead > 300 && features.outputs > 300);
    assert_true(features.persistent_writes > 100 && features.groups > 100);
    assert_true(features.alignments > 300 && features.not_in_list_order > 300);
}

static void equal_knobs_give_equal_random_graphs(void **state)
{
    (void)state;
    struct random_graph_options options = random_graph_knobs(7, RANDOM_OPS);
    struct tarn_graph *one = random_graph(&options), *two = random_graph(&options);
    options.seed++;
    struct tarn_graph *other = random_graph(&options);
    assert_true(tarn_hash_equal(one->hash, two->hash));
    assert_false(tarn_hash_equal(one->hash, other->hash));
    tarn_graph_destroy(one);
    tarn_graph_destroy(two);
    tarn_graph_destroy(other);
}

static void four_methods_agree_on_larger_random_graphs(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < (SANITIZED ? 4 : 40); seed++) {
        struct random_graph_options options = random_graph_knobs(seed, 2000);
        struct tarn_graph *graph = random_graph(&options);
        assert_methods_agree(graph);
        tarn_graph_destroy(graph);
    }
}

/* ---- The paper's figures ---- */

static uint32_t storage_of(const struct tarn_graph *graph, const char *name)
{
    tarn_tensor t = tarn_graph_find_tensor(graph, name);
    assert_int_not_equal(t, TARN_NONE);
    return graph->tensors[t].storage;
}

/* The paper numbers nodes by the global order: the node at a 1-based place in a stream. */
static uint32_t node_at(const struct tarn_graph *graph, uint32_t stream, uint32_t place)
{
    return place == 0 ? 0 : graph->streams[stream].ops[place - 1] + 1;
}

struct figure2 {
    struct tarn_graph *graph;
    struct tarn_region region;
    struct tarn_stream_graph streams;
};

static struct figure2 open_figure2(void)
{
    struct figure2 figure = {.graph = NULL};
    figure.graph = load(TARN_SOURCE_DIR "/examples/graphs/figure2.json");
    assert_int_equal(tarn_stream_graph_init(&figure.streams, &figure.region, figure.graph),
                     TARN_OK);
    return figure;
}

static void close_figure2(struct figure2 *figure)
{
    tarn_region_finish(&figure->region);
    tarn_graph_destroy(figure->graph);
}

static uint32_t end_time(const struct figure2 *figure, const char *tensor, uint32_t stream)
{
    uint32_t t = storage_of(figure->graph, tensor);
    return node_at(figure->graph, stream, figure->streams.end_time[t * 3 + stream]);
}

static uint32_t max_anc_id(const struct figure2 *figure, const char *tensor, uint32_t stream)
{
    uint32_t t = storage_of(figure->graph, tensor);
    return node_at(figure->graph, stream, figure->streams.max_anc_id[t * 3 + stream]);
}

static uint32_t start_time(const struct figure2 *figure, const char *tensor)
{
    uint32_t t = storage_of(figure->graph, tensor);
    uint32_t stream = figure->graph->ops[figure->graph->storages[t].producer].stream;
    return node_at(figure->graph, stream, figure->streams.start_time[t]);
}

/* Bit s: stream s is in DestStreams. */
static unsigned dest_streams(const struct figure2 *figure, const char *tensor)
{
    unsigned set = 0;
    for (uint32_t s = 0; s < 3; s++) set |= (unsigned)(end_time(figure, tensor, s) != 0) << s;
    return set;
}

static unsigned anc_streams(const struct figure2 *figure, uint32_t stream)
{
    unsigned set = 0;
    for (uint32_t s = 0; s < 3; s++)
        set |= (unsigned)figure->streams.anc_streams[stream * 3 + s] << s;
    return set;
}

static void figure_2_has_the_streams_and_lifetimes_of_the_text(void **state)
{
    (void)state;
    struct figure2 figure = open_figure2();
    static const uint32_t stream_of_node[] = {0, 1, 0, 1, 1, 1, 2, 2};
    for (uint32_t node = 1; node <= 8; node++)
        assert_int_equal(figure.graph->ops[node - 1].stream, stream_of_node[node - 1]);
    assert_int_equal(start_time(&figure, "a"), 1);
    assert_int_equal(end_time(&figure, "a", 0), 3);
    assert_int_equal(end_time(&figure, "a", 1), 2);
    assert_int_equal(end_time(&figure, "d", 1), 5);
    assert_int_equal(start_time(&figure, "f"), 4);
    assert_int_equal(end_time(&figure, "f", 1), 6);
    assert_int_equal(start_time(&figure, "i"), 6);
    assert_int_equal(dest_streams(&figure, "a"), 1 << 0 | 1 << 1);
    assert_int_equal(dest_streams(&figure, "b"), 1 << 2);
    assert_int_equal(dest_streams(&figure, "c"), 1 << 1);
    assert_int_equal(dest_streams(&figure, "e"), 1 << 1 | 1 << 2);
    close_figure2(&figure);
}

static void figure_2_has_the_ancestors_of_the_text(void **state)
{
    (void)state;
    struct figure2 figure = open_figure2();
    assert_int_equal(anc_streams(&figure, 0), 0);
    assert_int_equal(anc_streams(&figure, 1), 1 << 0);
    assert_int_equal(anc_streams(&figure, 2), 1 << 0 | 1 << 1);
    assert_int_equal(max_anc_id(&figure, "g", 0), 1);
    assert_int_equal(max_anc_id(&figure, "h", 0), 3);
    assert_int_equal(max_anc_id(&figure, "h", 1), 0);
    assert_int_equal(max_anc_id(&figure, "i", 0), 3);
    close_figure2(&figure);
}

static bool is_unsafe(const struct tarn_graph *graph, const struct tarn_pair_matrix *matrix,
                      const char *pair)
{
    char a[2] = {pair[0], 0}, b[2] = {pair[1], 0};
    return tarn_pair_matrix_get(matrix, storage_of(graph, a), storage_of(graph, b));
}

static void figure_2_has_the_pairs_of_the_text(void **state)
{
    (void)state;
    static const char *const safe[] = {"ai", "ci", "di"};
    /* h may not reuse any tensor generated in stream 1, and none of those comes after h's end */
    static const char *const unsafe[] = {"ah", "af", "be", "fi", "hc", "hd", "hf", "hg", "hi"};
    struct tarn_graph *graph = load(TARN_SOURCE_DIR "/examples/graphs/figure2.json");
    struct tarn_pair_matrix matrix;
    assert_methods_agree(graph);
    assert_int_equal(tarn_pairs_stream_graph(graph, &matrix), TARN_OK);
    for (size_t i = 0; i < sizeof safe / sizeof *safe; i++)
        assert_false(is_unsafe(graph, &matrix, safe[i]));
    for (size_t i = 0; i < sizeof unsafe / sizeof *unsafe; i++)
        assert_true(is_unsafe(graph, &matrix, unsafe[i]));
    tarn_pair_matrix_finish(&matrix);
    tarn_graph_destroy(graph);
}

static void figure_7_has_exactly_the_unsafe_pairs_of_the_text(void **state)
{
    (void)state;
    static const char *const unsafe[] = {"AC", "BD", "BE", "CE", "DE"};
    struct tarn_graph *graph = load(TARN_SOURCE_DIR "/examples/graphs/figure7.json");
    struct tarn_pair_matrix matrix;
    assert_int_equal(assert_methods_agree(graph).unsafe, sizeof unsafe / sizeof *unsafe);
    assert_int_equal(tarn_pairs_clocks(graph, &matrix), TARN_OK);
    for (size_t i = 0; i < sizeof unsafe / sizeof *unsafe; i++)
        assert_true(is_unsafe(graph, &matrix, unsafe[i]));
    tarn_pair_matrix_finish(&matrix);
    tarn_graph_destroy(graph);
}

/* ---- Traps of the printed algorithms ---- */

/* Ops v0..v(n-1), the i-th in stream streams[i]; tensor i is produced by op i. Bit k of readers[i]:
 * op k reads tensor i. */
static struct tarn_graph *chain_graph(unsigned ops, const char *streams, const unsigned *readers,
                                      enum tarn_tensor_kind first_kind)
{
    struct tarn_builder *builder = tarn_builder_create("hand");
    for (unsigned i = 0; i < 3; i++) tarn_builder_stream(builder, NULL);
    for (unsigned i = 0; i < ops; i++)
        tarn_builder_tensor(builder, &(struct tarn_tensor_info){
                                         .size = 8, .kind = i ? TARN_INTERMEDIATE : first_kind});
    for (unsigned i = 0; i < ops; i++) {
        uint32_t inputs[8];
        size_t count = 0;
        for (unsigned t = 0; t < i; t++) {
            if (readers[t] >> i & 1) inputs[count++] = t;
        }
        tarn_builder_op(builder, &(struct tarn_op_info){.stream = (tarn_stream)(streams[i] - '0'),
                                                        .inputs = {inputs, count},
                                                        .outputs = {&i, 1}});
    }
    return finish(builder);
}

static void assert_pair(const struct tarn_graph *graph, uint32_t a, uint32_t b, bool unsafe)
{
    static enum tarn_status (*const functions[])(const struct tarn_graph *,
                                                 struct tarn_pair_matrix *) = {
        tarn_pairs_clocks, tarn_pairs_ancestors, tarn_pairs_ancestors_opt, tarn_pairs_stream_graph};
    for (unsigned m = 0; m < METHODS; m++) {
        struct tarn_pair_matrix matrix;
        assert_int_equal(functions[m](graph, &matrix), TARN_OK);
        assert_true(tarn_pair_matrix_is_valid(&matrix));
        if (tarn_pair_matrix_get(&matrix, a, b) != unsafe ||
            tarn_pair_matrix_get(&matrix, b, a) != unsafe)
            fail_msg("%s: pair %u, %u should be %s", methods[m], a, b, unsafe ? "unsafe" : "safe");
        tarn_pair_matrix_finish(&matrix);
    }
}

static void a_tensor_that_nobody_reads_is_unsafe_with_what_may_run_beside_its_producer(void **state)
{
    (void)state;
    struct tarn_graph *graph = chain_graph(3, "010", (unsigned[]){0, 0, 0}, TARN_INTERMEDIATE);
    assert_pair(graph, 0, 1, true);
    assert_pair(graph, 0, 2, false); /* in its own stream it is free at once */
    tarn_graph_destroy(graph);
}

static void an_output_is_unsafe_with_everything_that_is_not_over_before_it(void **state)
{
    (void)state;
    struct tarn_graph *graph =
        chain_graph(3, "000", (unsigned[]){1u << 1, 1u << 2, 0}, TARN_OUTPUT);
    assert_pair(graph, 0, 2, true);
    tarn_graph_destroy(graph);
    graph = chain_graph(3, "010", (unsigned[]){1u << 1, 1u << 2, 0}, TARN_OUTPUT);
    assert_pair(graph, 0, 2, true);
    tarn_graph_destroy(graph);
}

static void two_tensors_within_a_stream_are_safe_when_their_lifetimes_are_disjoint(void **state)
{
    (void)state;
    struct tarn_graph *graph =
        chain_graph(4, "0000", (unsigned[]){1u << 1, 0, 1u << 3, 0}, TARN_INTERMEDIATE);
    assert_pair(graph, 0, 2, false);
    assert_pair(graph, 0, 1, true);
    tarn_graph_destroy(graph);
}

static void streams_that_are_each_others_ancestors_reuse_in_both_directions(void **state)
{
    (void)state;
    /* stream 0 -> 1 -> 0: v1 reads t0, v2 reads t1, v3 of stream 1 reads t2, v4 of stream 0 t3 */
    static const unsigned readers[] = {1u << 1, 1u << 2, 1u << 3, 1u << 4, 0};
    struct tarn_graph *graph = chain_graph(5, "01010", readers, TARN_INTERMEDIATE);
    assert_true(has_cyclic_stream_graph(graph));
    assert_pair(graph, 0, 2, false);
    assert_pair(graph, 1, 3, false);
    assert_pair(graph, 0, 3, false);
    assert_pair(graph, 1, 2, true);
    tarn_graph_destroy(graph);
}

/* ---- The public question ---- */

static void a_matrix_starts_with_all_pairs_unsafe_and_a_clear_diagonal(void **state)
{
    (void)state;
    static const uint32_t counts[] = {0, 1, 63, 64, 65, 128};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        struct tarn_pair_matrix matrix;
        assert_int_equal(tarn_pair_matrix_init(&matrix, counts[i]), TARN_OK);
        uint64_t bits = 0;
        for (size_t w = 0; w < (size_t)matrix.count * matrix.words; w++)
            bits += (uint64_t)__builtin_popcountll(matrix.bits[w]);
        assert_int_equal(bits, (uint64_t)counts[i] * counts[i] - counts[i]);
        for (uint32_t a = 0; a < counts[i]; a++) assert_false(tarn_pair_matrix_get(&matrix, a, a));
        tarn_pair_matrix_finish(&matrix);
    }
}

static void a_graph_without_planned_storages_has_no_pairs(void **state)
{
    (void)state;
    struct tarn_builder *builder = tarn_builder_create("nothing planned");
    tarn_builder_stream(builder, "s");
    tarn_builder_op(builder, &(struct tarn_op_info){.name = "op"});
    struct tarn_graph *graph = finish(builder);
    struct tarn_pairs pairs = assert_methods_agree(graph);
    assert_int_equal(pairs.pairs, 0);
    assert_int_equal(pairs.unsafe, 0);
    tarn_graph_destroy(graph);
}

static void different_sets_have_different_hashes(void **state)
{
    (void)state;
    struct tarn_graph *one = chain_graph(3, "000", (unsigned[]){1u << 1, 0, 0}, TARN_INTERMEDIATE);
    struct tarn_graph *two = chain_graph(3, "000", (unsigned[]){0, 1u << 2, 0}, TARN_INTERMEDIATE);
    struct tarn_pairs first = pairs_of(one, "clocks"), second = pairs_of(two, "clocks");
    assert_int_equal(first.unsafe, second.unsafe);
    assert_true(first.hash != second.hash);
    assert_int_equal(first.hash, UINT64_C(0x7773a9db23885966)); /* the same in all versions */
    tarn_graph_destroy(one);
    tarn_graph_destroy(two);
}

static void an_unknown_method_is_a_usage_error_that_lists_the_methods(void **state)
{
    (void)state;
    struct tarn_graph *graph = chain_graph(2, "00", (unsigned[]){1u << 1, 0}, TARN_INTERMEDIATE);
    struct tarn_pairs pairs;
    struct tarn_error error;
    assert_int_equal(tarn_graph_pairs(graph, "magic", &pairs, &error), TARN_USAGE);
    assert_non_null(strstr(error.text, "magic"));
    for (unsigned m = 0; m < METHODS; m++) assert_non_null(strstr(error.text, methods[m]));
    assert_int_equal(tarn_graph_pairs(graph, NULL, &pairs, &error), TARN_USAGE);
    tarn_graph_destroy(graph);
}

/* ---- Real graphs ---- */

static uint64_t agree_on_file(const char *path)
{
    struct tarn_graph *graph = load(path);
    assert_methods_agree(graph);
    tarn_graph_destroy(graph);
    return 1;
}

static void four_methods_agree_on_the_examples(void **state)
{
    (void)state;
    assert_true(for_graph_files(TARN_SOURCE_DIR "/examples/graphs", agree_on_file) >= 2);
}

static void four_methods_agree_on_every_graph_of_the_given_folder(void **state)
{
    (void)state;
    for_given_graph_files(agree_on_file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(four_methods_and_an_oracle_agree_on_random_graphs),
        cmocka_unit_test(random_graphs_have_every_feature),
        cmocka_unit_test(equal_knobs_give_equal_random_graphs),
        cmocka_unit_test(four_methods_agree_on_larger_random_graphs),
        cmocka_unit_test(figure_2_has_the_streams_and_lifetimes_of_the_text),
        cmocka_unit_test(figure_2_has_the_ancestors_of_the_text),
        cmocka_unit_test(figure_2_has_the_pairs_of_the_text),
        cmocka_unit_test(figure_7_has_exactly_the_unsafe_pairs_of_the_text),
        cmocka_unit_test(
            a_tensor_that_nobody_reads_is_unsafe_with_what_may_run_beside_its_producer),
        cmocka_unit_test(an_output_is_unsafe_with_everything_that_is_not_over_before_it),
        cmocka_unit_test(two_tensors_within_a_stream_are_safe_when_their_lifetimes_are_disjoint),
        cmocka_unit_test(streams_that_are_each_others_ancestors_reuse_in_both_directions),
        cmocka_unit_test(a_matrix_starts_with_all_pairs_unsafe_and_a_clear_diagonal),
        cmocka_unit_test(a_graph_without_planned_storages_has_no_pairs),
        cmocka_unit_test(different_sets_have_different_hashes),
        cmocka_unit_test(an_unknown_method_is_a_usage_error_that_lists_the_methods),
        cmocka_unit_test(four_methods_agree_on_the_examples),
        cmocka_unit_test(four_methods_agree_on_every_graph_of_the_given_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
