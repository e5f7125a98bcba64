/* Safety against brute force on every small graph: all DAGs on up to 5 ops (arcs from lower to
 * higher ids), all partitions of the ops into streams, all groupings of an op's outgoing arcs into
 * tensors (an op without any has one dead tensor).
 *
 * The oracle knows no reachability: it plays every execution by starting and finishing ops, any
 * number of them at a time, and calls a pair unsafe when some state needs both tensors. A tensor is
 * needed while its producer runs, and after that until its consumers have finished. The states
 * depend on arcs and streams only, so groupings share them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "streams/order/clocks.h"
#include "streams/order/pairs.h"

enum { OPS = 5, STATES = 243 /* 3 to the power of OPS */, TENSORS = OPS * (OPS - 1) / 2 + 1 };

/* ---- Enumeration ---- */

/* A partition of `count` things as a restricted growth string: label[i] is at most one above all
 * before it. All-zero is the first; false after the last. */
static bool next_partition(uint8_t *label, unsigned count)
{
    for (unsigned i = count; i-- > 1;) {
        uint8_t highest = 0;
        for (unsigned k = 0; k < i; k++) {
            if (label[k] > highest) highest = label[k];
        }
        if (label[i] <= highest) {
            label[i]++;
            memset(label + i + 1, 0, count - i - 1);
            return true;
        }
    }
    return false;
}

struct small_graph {
    unsigned ops;
    uint8_t successors[OPS];     /* bit j of successors[i]: arc from i to j */
    uint8_t stream[OPS];         /* a restricted growth string */
    uint8_t tensor_of[OPS][OPS]; /* [i][k]: label of the tensor on i's k-th outgoing arc */
};

static unsigned arcs_count(const struct small_graph *graph, unsigned op)
{
    return (unsigned)__builtin_popcount(graph->successors[op]);
}

/* The bits of `mask` are the arcs in the order 01, 02, 12, 03, ... */
static void set_arcs(struct small_graph *graph, unsigned mask)
{
    memset(graph->successors, 0, sizeof graph->successors);
    for (unsigned j = 1; j < graph->ops; j++) {
        for (unsigned i = 0; i < j; i++, mask >>= 1)
            graph->successors[i] = (uint8_t)(graph->successors[i] | (mask & 1) << j);
    }
}

static bool next_grouping(struct small_graph *graph)
{
    for (unsigned i = 0; i < graph->ops; i++) {
        if (next_partition(graph->tensor_of[i], arcs_count(graph, i))) return true;
        memset(graph->tensor_of[i], 0, sizeof graph->tensor_of[i]);
    }
    return false;
}

/* ---- The oracle ---- */

struct state {
    uint8_t done, running; /* sets of ops */
};

struct state_list {
    struct state states[STATES];
    unsigned count;
};

static void add_state(struct state_list *list, bool *seen, struct state state)
{
    unsigned code = (unsigned)state.done << OPS | state.running;
    if (seen[code]) return;
    seen[code] = true;
    assert_true(list->count < STATES);
    list->states[list->count++] = state;
}

static bool can_start(const struct small_graph *graph, unsigned op, uint8_t done)
{
    for (unsigned before = 0; before < op; before++) {
        bool in_order = graph->successors[before] >> op & 1;
        if ((in_order || graph->stream[before] == graph->stream[op]) && !(done >> before & 1))
            return false;
    }
    return true;
}

static void enumerate_states(const struct small_graph *graph, struct state_list *list)
{
    bool seen[1u << (2 * OPS)] = {false};
    list->count = 0;
    add_state(list, seen, (struct state){0, 0});
    for (unsigned next = 0; next < list->count; next++) {
        struct state at = list->states[next];
        for (unsigned op = 0; op < graph->ops; op++) {
            uint8_t bit = (uint8_t)(1u << op);
            if (at.running & bit)
                add_state(list, seen, (struct state){at.done | bit, (uint8_t)(at.running & ~bit)});
            else if (!(at.done & bit) && can_start(graph, op, at.done))
                add_state(list, seen, (struct state){at.done, at.running | bit});
        }
    }
}

struct small_tensor {
    uint8_t producer;
    uint8_t consumers;                /* set of ops; empty: dead */
    uint64_t needed[STATES / 64 + 1]; /* set of states */
};

static unsigned list_tensors(const struct small_graph *graph, struct small_tensor *tensors)
{
    unsigned count = 0;
    for (unsigned i = 0; i < graph->ops; i++) {
        unsigned first = count;
        tensors[count++] = (struct small_tensor){.producer = (uint8_t)i};
        for (unsigned j = i + 1, k = 0; j < graph->ops; j++) {
            if (!(graph->successors[i] >> j & 1)) continue;
            unsigned t = first + graph->tensor_of[i][k++];
            if (t == count) tensors[count++] = (struct small_tensor){.producer = (uint8_t)i};
            tensors[t].consumers |= (uint8_t)(1u << j);
        }
    }
    return count;
}

static void find_needed(const struct state_list *list, struct small_tensor *tensor)
{
    for (unsigned i = 0; i < list->count; i++) {
        struct state at = list->states[i];
        bool written = at.done >> tensor->producer & 1;
        bool awaited = (tensor->consumers & ~at.done) != 0;
        bool needed = (at.running >> tensor->producer & 1) || (written && awaited);
        tensor->needed[i / 64] |= (uint64_t)needed << (i % 64);
    }
}

static bool are_unsafe(const struct small_tensor *a, const struct small_tensor *b)
{
    uint64_t both = 0;
    for (unsigned w = 0; w < sizeof a->needed / sizeof *a->needed; w++)
        both |= a->needed[w] & b->needed[w];
    return both != 0;
}

/* ---- What is tested ---- */

static struct tarn_graph *build_graph(const struct small_graph *small,
                                      const struct small_tensor *tensors, unsigned count)
{
    struct tarn_builder *builder = tarn_builder_create("small");
    unsigned streams = 0;
    for (unsigned i = 0; i < small->ops; i++) {
        if (small->stream[i] < streams) continue;
        tarn_builder_stream(builder, NULL);
        streams++;
    }
    for (unsigned t = 0; t < count; t++)
        tarn_builder_tensor(builder, &(struct tarn_tensor_info){.size = 1});
    for (unsigned i = 0; i < small->ops; i++) {
        uint32_t inputs[TENSORS], outputs[TENSORS];
        size_t inputs_count = 0, outputs_count = 0;
        for (unsigned t = 0; t < count; t++) {
            if (tensors[t].producer == i) outputs[outputs_count++] = t;
            if (tensors[t].consumers >> i & 1) inputs[inputs_count++] = t;
        }
        tarn_builder_op(builder, &(struct tarn_op_info){.stream = small->stream[i],
                                                        .inputs = {inputs, inputs_count},
                                                        .outputs = {outputs, outputs_count}});
    }
    struct tarn_graph *graph = NULL;
    struct tarn_error error;
    if (tarn_builder_finish(builder, &graph, &error) != TARN_OK) fail_msg("%s", error.text);
    return graph;
}

struct tally {
    uint64_t graphs, pairs, unsafe, wrong;
};

static void compare_reuse(const struct tarn_graph *graph, const struct small_tensor *tensors,
                          unsigned count, struct tally *tally)
{
    struct tarn_clocks clocks;
    struct tarn_reuse reuse;
    assert_int_equal(tarn_clocks_init(&clocks, graph), TARN_OK);
    assert_int_equal(tarn_reuse_init(&reuse, &clocks, graph), TARN_OK);
    assert_int_equal(reuse.count, count);
    for (unsigned a = 0; a < count; a++) {
        for (unsigned b = a + 1; b < count; b++) {
            bool unsafe = are_unsafe(&tensors[a], &tensors[b]);
            tally->pairs++;
            tally->unsafe += unsafe;
            tally->wrong += tarn_reuse_is_safe(&reuse, a, b) == unsafe;
        }
    }
    tarn_reuse_finish(&reuse);
    tarn_clocks_finish(&clocks);
}

typedef enum tarn_status (*matrix_method)(const struct tarn_graph *graph,
                                          struct tarn_pair_matrix *matrix);

static void compare_matrix(const struct tarn_graph *graph, matrix_method method,
                           const struct small_tensor *tensors, unsigned count, struct tally *tally)
{
    struct tarn_pair_matrix matrix;
    assert_int_equal(method(graph, &matrix), TARN_OK);
    assert_int_equal(matrix.count, count);
    for (unsigned a = 0; a < count; a++) {
        for (unsigned b = 0; b < count; b++) {
            bool unsafe = a != b && are_unsafe(&tensors[a], &tensors[b]);
            tally->wrong += tarn_pair_matrix_get(&matrix, a, b) != unsafe;
        }
    }
    tarn_pair_matrix_finish(&matrix);
}

static void compare_with_oracle(const struct small_graph *small, const struct state_list *states,
                                struct tally *tally)
{
    struct small_tensor tensors[TENSORS];
    unsigned count = list_tensors(small, tensors);
    for (unsigned t = 0; t < count; t++) find_needed(states, &tensors[t]);
    struct tarn_graph *graph = build_graph(small, tensors, count);
    compare_reuse(graph, tensors, count, tally);
    compare_matrix(graph, tarn_pairs_clocks, tensors, count, tally);
    compare_matrix(graph, tarn_pairs_ancestors, tensors, count, tally);
    compare_matrix(graph, tarn_pairs_ancestors_opt, tensors, count, tally);
    compare_matrix(graph, tarn_pairs_stream_graph, tensors, count, tally);
    tarn_graph_destroy(graph);
    tally->graphs++;
}

static struct tally compare_all_graphs(unsigned ops)
{
    struct tally tally = {0};
    struct state_list states;
    for (unsigned mask = 0; mask < 1u << (ops * (ops - 1) / 2); mask++) {
        struct small_graph graph = {.ops = ops};
        set_arcs(&graph, mask);
        do {
            enumerate_states(&graph, &states);
            do compare_with_oracle(&graph, &states, &tally);
            while (next_grouping(&graph));
        } while (next_partition(graph.stream, ops));
    }
    print_message("# %u ops: %llu graphs, %llu pairs, %llu of them unsafe, %llu answers wrong\n",
                  ops, (unsigned long long)tally.graphs, (unsigned long long)tally.pairs,
                  (unsigned long long)tally.unsafe, (unsigned long long)tally.wrong);
    return tally;
}

static void five_methods_agree_with_all_states_of_graphs_of_up_to_4_ops(void **state)
{
    (void)state;
    /* DAGs with groupings: products of Bell numbers; times Bell(ops) stream partitions. */
    static const uint64_t graphs[] = {0, 1, 2 * 2, 5 * 2 * 5, 15 * 5 * 2 * 15};
    for (unsigned ops = 1; ops < OPS; ops++) {
        struct tally tally = compare_all_graphs(ops);
        assert_int_equal(tally.graphs, graphs[ops]);
        assert_int_equal(tally.wrong, 0);
    }
}

static void five_methods_agree_with_all_states_of_graphs_of_5_ops(void **state)
{
    (void)state;
    struct tally tally = compare_all_graphs(OPS);
    assert_int_equal(tally.graphs, 405600);
    assert_int_equal(tally.pairs, 7861464);
    assert_int_equal(tally.wrong, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(five_methods_agree_with_all_states_of_graphs_of_up_to_4_ops),
        cmocka_unit_test(five_methods_agree_with_all_states_of_graphs_of_5_ops),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
