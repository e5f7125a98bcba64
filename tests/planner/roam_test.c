/* ROAM's subgraph tree and layout, and the skyline that it is compared with. Cuts from the
 * definition, by the transitive closure, on random graphs; leaves and layouts by what they promise;
 * every plan goes through the verifier. TARN_DRAWS=N: N random graphs instead of 2,000. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bench/dnn_graph.h"
#include "planner/papers/papers.h"
#include "planner/papers/reorder_tree.h"
#include "planner/papers/roam_leaves.h"
#include "streams/base/region.h"
#include "streams/order/reserved.h"
#include "support/place_fixture.h"
#include "support/random_graph.h"
#include "tarn/transform.h"

enum { SEEDS = DRAWS(2000), OPS_MAX = 50 };

static uint32_t seeds(void)
{
    const char *text = getenv("TARN_DRAWS");
    return text ? (uint32_t)strtoul(text, NULL, 10) : SEEDS;
}

static struct tarn_graph *graph_of(uint64_t seed)
{
    struct random_graph_options options = random_graph_knobs(seed, OPS_MAX);
    return random_graph(&options);
}

/* ---- The tree ---- */

struct tree_fixture {
    struct tarn_graph *graph;
    struct tarn_region region;
    struct tarn_reorder_model model;
    struct tarn_subgraph_tree tree;
};

/* The graph becomes the fixture's. */
static void set_up_tree(struct tree_fixture *fixture, struct tarn_graph *graph)
{
    fixture->graph = graph;
    fixture->region = (struct tarn_region){.chunks = NULL};
    const uint64_t *reserved;
    assert_int_equal(tarn_reserved_sizes(&reserved, &fixture->region, graph, 1, NULL), TARN_OK);
    assert_int_equal(tarn_reorder_model_init(&fixture->model, &fixture->region, graph, reserved),
                     TARN_OK);
    assert_int_equal(tarn_subgraph_tree_init(&fixture->tree, &fixture->region, &fixture->model),
                     TARN_OK);
}

static void tear_down_tree(struct tree_fixture *fixture)
{
    tarn_region_finish(&fixture->region);
    tarn_graph_destroy(fixture->graph);
}

/* reaches[v]: bit w: v comes before w. Up to 64 nodes. */
static void close_transitively(const struct tarn_reorder_model *model, uint64_t *reaches)
{
    assert_true(model->nodes_count <= 64);
    for (uint32_t v = model->nodes_count; v-- > 0;) {
        reaches[v] = 0;
        for (uint32_t i = model->successors.begin[v]; i < model->successors.begin[v + 1]; i++) {
            uint32_t w = model->successors.ops[i];
            reaches[v] |= UINT64_C(1) << w | reaches[w];
        }
    }
}

static void cuts_are_the_core_nodes_comparable_with_all_of_the_core(void **state)
{
    (void)state;
    uint64_t cuts = 0;
    for (uint32_t seed = 0; seed < seeds(); seed++) {
        struct tree_fixture fixture;
        uint64_t reaches[64];
        set_up_tree(&fixture, graph_of(seed));
        const struct tarn_subgraph_tree *tree = &fixture.tree;
        close_transitively(&fixture.model, reaches);
        for (uint32_t v = 0, c = 0; v < fixture.model.nodes_count; v++) {
            bool is_cut = tree->role[v] == TARN_SUBGRAPH_CORE;
            for (uint32_t w = 0; w < fixture.model.nodes_count && is_cut; w++) {
                bool comparable = v == w || (reaches[v] >> w & 1) || (reaches[w] >> v & 1);
                is_cut = comparable || tree->role[w] != TARN_SUBGRAPH_CORE;
            }
            assert_int_equal(is_cut, c < tree->cuts_count && tree->cuts[c] == v);
            c += is_cut;
            assert_int_equal(tree->segment[v], c);
            cuts += is_cut;
        }
        tear_down_tree(&fixture);
    }
    assert_true(cuts > seeds()); /* so that something was compared */
}

static void branches_lead_nowhere_else_and_supplies_need_nothing_else(void **state)
{
    (void)state;
    uint32_t roles[3] = {0};
    for (uint32_t seed = 0; seed < seeds(); seed++) {
        struct tree_fixture fixture;
        set_up_tree(&fixture, graph_of(seed));
        const struct tarn_subgraph_tree *tree = &fixture.tree;
        for (uint32_t v = 0; v < fixture.model.nodes_count; v++) {
            roles[tree->role[v]]++;
            assert_int_equal(tree->branch[v] != TARN_NONE, tree->role[v] == TARN_SUBGRAPH_BRANCH);
            const struct tarn_arcs *successors = &fixture.model.successors;
            for (uint32_t i = successors->begin[v]; i < successors->begin[v + 1]; i++) {
                uint32_t w = successors->ops[i];
                if (tree->role[v] == TARN_SUBGRAPH_BRANCH)
                    assert_int_equal(tree->branch[w], tree->branch[v]);
                if (tree->role[w] == TARN_SUBGRAPH_SUPPLY)
                    assert_int_equal(tree->role[v], TARN_SUBGRAPH_SUPPLY);
            }
        }
        tear_down_tree(&fixture);
    }
    assert_true(roles[0] > seeds() / 2 && roles[1] > seeds() / 2 && roles[2] > seeds() / 200);
}

/* x -> a -> b -> loss, gradients back, an out-of-place optimizer: a new parameter and a new moment
 * for each of two parameters, from the gradient and the old ones. */
static struct tarn_graph *training_step(void)
{
    struct tarn_builder *builder = tarn_builder_create("test");
    struct tarn_graph *graph;
    tarn_stream stream = tarn_builder_stream(builder, "all");
    tarn_tensor x = tarn_builder_tensor(
        builder, &(struct tarn_tensor_info){.name = "x", .size = 64, .kind = TARN_INPUT});
    tarn_tensor weight[2], moment[2], forward[3], back[2], gradient[2];
    for (int i = 0; i < 2; i++) {
        weight[i] = tarn_builder_tensor(
            builder, &(struct tarn_tensor_info){.name = "w", .size = 1024, .kind = TARN_PARAMETER});
        moment[i] = tarn_builder_tensor(
            builder,
            &(struct tarn_tensor_info){.name = "m", .size = 1024, .kind = TARN_OPTIMIZER_STATE});
    }
#define TENSOR(bytes, what)      \
    tarn_builder_tensor(builder, \
                        &(struct tarn_tensor_info){.name = "t", .size = bytes, .kind = what})
#define OP(...) \
    tarn_builder_op(builder, &(struct tarn_op_info){.name = "op", .stream = stream, __VA_ARGS__})
    for (int i = 0; i < 3; i++) forward[i] = TENSOR(100, TARN_INTERMEDIATE);
    for (int i = 0; i < 2; i++) back[i] = TENSOR(100, TARN_INTERMEDIATE);
    for (int i = 0; i < 2; i++) gradient[i] = TENSOR(1024, TARN_GRADIENT);
    OP(.inputs = TARN_TENSORS(x, weight[0]), .outputs = TARN_TENSORS(forward[0]));
    OP(.inputs = TARN_TENSORS(forward[0], weight[1]), .outputs = TARN_TENSORS(forward[1]));
    OP(.inputs = TARN_TENSORS(forward[1]), .outputs = TARN_TENSORS(forward[2]));
    OP(.inputs = TARN_TENSORS(forward[2]), .outputs = TARN_TENSORS(back[1]));
    OP(.inputs = TARN_TENSORS(back[1], forward[0]), .outputs = TARN_TENSORS(gradient[1]));
    OP(.inputs = TARN_TENSORS(back[1], weight[1]), .outputs = TARN_TENSORS(back[0]));
    OP(.inputs = TARN_TENSORS(back[0], x), .outputs = TARN_TENSORS(gradient[0]));
    for (int i = 0; i < 2; i++) {
        OP(.inputs = TARN_TENSORS(gradient[i], weight[i], moment[i]),
           .outputs = TARN_TENSORS(TENSOR(1024, TARN_OUTPUT)));
        OP(.inputs = TARN_TENSORS(gradient[i], moment[i]),
           .outputs = TARN_TENSORS(TENSOR(1024, TARN_OUTPUT)));
    }
#undef OP
#undef TENSOR
    assert_int_equal(tarn_builder_finish(builder, &graph, NULL), TARN_OK);
    return graph;
}

static void two_sinks_of_one_parameter_are_one_branch(void **state)
{
    (void)state;
    struct tree_fixture fixture;
    set_up_tree(&fixture, training_step());
    const struct tarn_subgraph_tree *tree = &fixture.tree;
    static const uint8_t core[] = {1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0};
    assert_int_equal(fixture.model.nodes_count, 11);
    for (uint32_t v = 0; v < 11; v++)
        assert_int_equal(tree->role[v] == TARN_SUBGRAPH_CORE, core[v]);
    assert_int_equal(tree->branches_count, 2);
    assert_int_equal(tree->branch[4],
                     tree->branch[9]); /* the gradient of weight 1 and its update */
    assert_int_equal(tree->branch[4], tree->branch[10]);
    assert_int_equal(tree->branch[6], tree->branch[7]);
    assert_int_equal(tree->branch[6], tree->branch[8]);
    assert_int_not_equal(tree->branch[4], tree->branch[6]);
    tear_down_tree(&fixture);
}

/* ---- Orders ---- */

/* Every node once, behind what it waits for; the peak that the state saw is that of the order. */
static void assert_legal(const struct tarn_reorder_model *model, const uint32_t *order)
{
    uint32_t *place = calloc((size_t)model->nodes_count + 1, sizeof *place);
    for (uint32_t i = 0; i < model->nodes_count; i++) {
        assert_true(order[i] < model->nodes_count);
        assert_int_equal(place[order[i]], 0);
        place[order[i]] = i + 1;
    }
    for (uint32_t v = 0; v < model->nodes_count; v++)
        for (uint32_t i = model->predecessors.begin[v]; i < model->predecessors.begin[v + 1]; i++)
            assert_true(place[model->predecessors.ops[i]] < place[v]);
    free(place);
}

static void orders_of_the_tree_are_legal_and_often_better(void **state)
{
    (void)state;
    uint32_t better = 0;
    for (uint32_t seed = 0; seed < seeds(); seed++) {
        struct tree_fixture fixture;
        struct tarn_reorder_state running;
        struct tarn_reorder_exact exact;
        struct tarn_reorder_tree tree;
        uint32_t guide[64], order[64], node_limit = 1 + seed % 64;
        set_up_tree(&fixture, graph_of(seed));
        assert_int_equal(tarn_reorder_state_init(&running, &fixture.region, &fixture.model),
                         TARN_OK);
        assert_int_equal(tarn_reorder_exact_init(&exact, &fixture.region, &running, 200), TARN_OK);
        assert_int_equal(tarn_reorder_tree_init(&tree, &fixture.region, &fixture.model), TARN_OK);
        for (uint32_t v = 0; v < fixture.model.nodes_count; v++) guide[v] = v;
        uint64_t peak = tarn_reorder_peak(&running, guide, NULL);
        for (enum tarn_reorder_delay delay = 0; delay < TARN_REORDER_DELAYS; delay++) {
            tarn_reorder_tree_run(&tree, guide, delay, node_limit, 0, &exact, order);
            uint64_t alive = running.alive;
            assert_legal(&fixture.model, order);
            better += tarn_reorder_peak(&running, order, NULL) < peak;
            assert_int_equal(running.alive, alive); /* that all have run was true */
        }
        tear_down_tree(&fixture);
    }
    assert_true(better > seeds() / 20);
}

/* Forward and backward of a chain with one large weight, updates last; bytes of gradients. */
static void updates_wait_for_activations_or_run_at_once(void **state)
{
    (void)state;
    struct tree_fixture fixture;
    struct tarn_reorder_tree tree;
    set_up_tree(&fixture, training_step());
    assert_int_equal(tarn_reorder_tree_init(&tree, &fixture.region, &fixture.model), TARN_OK);
    for (uint32_t v = 0; v < 11; v++) assert_int_equal(tree.updates[v], v > 6);
    for (uint32_t b = 0; b < 2; b++) {
        assert_int_equal(tree.gradient[b], 1024);
        assert_int_equal(tree.need[b], 3 * 1024); /* both new tensors beside the gradient */
    }
    assert_int_equal(tree.estimate, 3 * 100); /* what one segment hands to another */
    tear_down_tree(&fixture);
}

/* ---- Layouts ---- */

static int compare_starts(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Activations of one leaf lie side by side above those of the leaves around it. */
static void activations_fill_the_lowest_bytes(void **state)
{
    (void)state;
    for (uint32_t storages = 64; storages <= 2000; storages *= 2) {
        struct fixture fixture;
        struct tarn_region region = {.chunks = NULL};
        struct tarn_roam_leaves leaves;
        uint64_t footprint;
        set_up(&fixture, dnn_graph(&(struct dnn_graph_options){storages, 3}), 512);
        uint32_t count = fixture.problem.blocks.count, activations = 0;
        uint64_t *offset = calloc(fixture.problem.blocks.storages_count + 1, sizeof *offset);
        uint64_t(*taken)[2] = calloc(count + 1, sizeof *taken);
        assert_int_equal(tarn_roam_leaves_init(&leaves, &region, &fixture.problem, 40), TARN_OK);
        assert_int_equal(tarn_roam_place(&fixture.problem, 40, offset, &footprint), TARN_OK);
        for (uint32_t b = 0; b < count; b++) {
            if (!leaves.blocks[b].activation) continue;
            taken[activations][0] = offset[tarn_block_at(&fixture.problem.blocks, b).members[0]];
            taken[activations][1] =
                taken[activations][0] + tarn_block_at(&fixture.problem.blocks, b).size;
            activations++;
        }
        qsort(taken, activations, sizeof *taken, compare_starts);
        assert_true(activations > storages / 20);
        assert_int_equal(taken[0][0], 0);
        for (uint32_t i = 1; i < activations; i++) assert_int_equal(taken[i][0], taken[i - 1][1]);
        free(taken);
        free(offset);
        tarn_region_finish(&region);
        tear_down(&fixture);
    }
}

/* An activation belongs to the leaf in which it dies, so that of two which are born one after the
 * other and die in the other order the first one is farther out. */
static void leaves_nest(void **state)
{
    (void)state;
    struct fixture fixture;
    uint32_t before = UINT32_MAX;
    set_up(&fixture, dnn_graph(&(struct dnn_graph_options){2000, 3}), 512);
    for (uint32_t limit = 10; limit <= 100000; limit *= 10) {
        struct tarn_region region = {.chunks = NULL};
        struct tarn_roam_leaves leaves;
        assert_int_equal(tarn_roam_leaves_init(&leaves, &region, &fixture.problem, limit), TARN_OK);
        assert_true(leaves.count > 0 && leaves.count <= before);
        for (uint32_t a = 0; a < fixture.problem.blocks.count; a++) {
            const struct tarn_roam_block *outer = &leaves.blocks[a];
            assert_true(outer->leaf < leaves.count);
            for (uint32_t b = 0; b < fixture.problem.blocks.count && outer->activation; b++) {
                const struct tarn_roam_block *inner = &leaves.blocks[b];
                if (inner->activation && inner->death < outer->death)
                    assert_true(inner->leaf <= outer->leaf);
            }
        }
        before = leaves.count;
        tarn_region_finish(&region);
    }
    assert_int_equal(before, 1);
    tear_down(&fixture);
}

/* tarn_plan_create ends with the verifier. */
static void every_layout_passes_the_verifier(void **state)
{
    (void)state;
    static const char *const methods[] = {"roam-tree", "llfb"};
    for (uint32_t seed = 0; seed < seeds(); seed++) {
        struct tarn_graph *graph = graph_of(seed);
        struct tarn_error error;
        struct tarn_plan *plan;
        struct tarn_plan_summary summary;
        const struct tarn_plan_options options = {.struct_size = sizeof options,
                                                  .alignment = UINT64_C(1) << seed % 10,
                                                  .method = methods[seed % 2]};
        if (tarn_plan_create(graph, &options, &plan, &error) != TARN_OK)
            fail_msg("seed %u: %s", seed, error.text);
        tarn_plan_summarize(plan, &summary);
        assert_string_equal(summary.method, methods[seed % 2]);
        assert_true(summary.footprint >= summary.bound);
        tarn_plan_destroy(plan);
        tarn_graph_destroy(graph);
    }
}

/* ---- The skyline ---- */

/* The rules of the paper in the slowest way: heights by time, one unit at a time. */
static uint64_t llfb_by_hand(uint32_t (*life)[2], const uint64_t *size, uint32_t count,
                             uint32_t times)
{
    uint64_t height[32] = {0}, top = 0;
    uint32_t left = count;
    bool placed[32] = {false};
    while (left > 0) {
        uint32_t begin = 0, end, best = TARN_NONE;
        for (uint32_t t = 0; t < times; t++)
            if (height[t] < height[begin]) begin = t;
        for (end = begin; end < times && height[end] == height[begin]; end++) {
        }
        for (uint32_t a = 0; a < count; a++) {
            if (placed[a] || life[a][0] < begin || life[a][1] > end) continue;
            if (best == TARN_NONE || life[a][1] - life[a][0] > life[best][1] - life[best][0])
                best = a;
        }
        if (best == TARN_NONE) {
            uint64_t beside = begin > 0 ? height[begin - 1] : UINT64_MAX;
            if (end < times && height[end] < beside) beside = height[end];
            for (uint32_t t = begin; t < end; t++) height[t] = beside;
            continue;
        }
        for (uint32_t t = life[best][0]; t < life[best][1]; t++) height[t] += size[best];
        if (height[life[best][0]] > top) top = height[life[best][0]];
        placed[best] = true;
        left--;
    }
    return top;
}

static void the_skyline_follows_the_papers_rules(void **state)
{
    (void)state;
    for (uint32_t seed = 0; seed < seeds(); seed++) {
        struct random_source source = {seed};
        struct tarn_builder *builder = tarn_builder_create("test");
        struct tarn_graph *graph;
        struct fixture fixture;
        uint32_t count = 1 + random_below(&source, 20), life[32][2];
        uint64_t size[32], offset[32], footprint;
        tarn_stream stream = tarn_builder_stream(builder, "all");
        for (uint32_t a = 0; a < count; a++) {
            life[a][0] = a;
            life[a][1] = a + 2 + random_below(&source, count - a);
            size[a] = 512 * (1 + random_below(&source, 6));
            tarn_builder_tensor(builder, &(struct tarn_tensor_info){.name = "t", .size = size[a]});
        }
        for (uint32_t v = 0; v <= count; v++) {
            tarn_tensor inputs[32];
            size_t inputs_count = 0;
            for (uint32_t a = 0; a < count; a++)
                if (life[a][1] == v + 1) inputs[inputs_count++] = a;
            tarn_builder_op(builder, &(struct tarn_op_info){.name = "op",
                                                            .stream = stream,
                                                            .inputs = {inputs, inputs_count},
                                                            .outputs = {&v, v < count}});
        }
        assert_int_equal(tarn_builder_finish(builder, &graph, NULL), TARN_OK);
        set_up(&fixture, graph, 512);
        assert_int_equal(tarn_llfb_place(&fixture.problem, 0, offset, &footprint), TARN_OK);
        assert_int_equal(footprint, llfb_by_hand(life, size, count, count + 1));
        tear_down(&fixture);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cuts_are_the_core_nodes_comparable_with_all_of_the_core),
        cmocka_unit_test(branches_lead_nowhere_else_and_supplies_need_nothing_else),
        cmocka_unit_test(two_sinks_of_one_parameter_are_one_branch),
        cmocka_unit_test(orders_of_the_tree_are_legal_and_often_better),
        cmocka_unit_test(updates_wait_for_activations_or_run_at_once),
        cmocka_unit_test(activations_fill_the_lowest_bytes),
        cmocka_unit_test(leaves_nest),
        cmocka_unit_test(every_layout_passes_the_verifier),
        cmocka_unit_test(the_skyline_follows_the_papers_rules),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
