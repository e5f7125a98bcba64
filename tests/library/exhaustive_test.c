/* Safety against brute force on every small graph of up to 5 ops (small_graph.h).
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

#include "planner/papers/pairs.h"
#include "streams/base/region.h"
#include "streams/order/reuse.h"
#include "support/small_graph.h"

enum { OPS = 5, STATES = 243 /* 3 to the power of OPS */, TENSORS = SMALL_TENSORS };

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

/* In which states a tensor is needed, as a set. */
struct need {
    uint64_t states[STATES / 64 + 1];
};

static void find_need(const struct state_list *list, const struct small_tensor *tensor,
                      struct need *need)
{
    *need = (struct need){{0}};
    for (unsigned i = 0; i < list->count; i++) {
        struct state at = list->states[i];
        bool written = at.done >> tensor->producer & 1;
        bool awaited = (tensor->consumers & ~at.done) != 0;
        bool needed = (at.running >> tensor->producer & 1) || (written && awaited);
        need->states[i / 64] |= (uint64_t)needed << (i % 64);
    }
}

static bool are_unsafe(const struct need *a, const struct need *b)
{
    uint64_t both = 0;
    for (unsigned w = 0; w < sizeof a->states / sizeof *a->states; w++)
        both |= a->states[w] & b->states[w];
    return both != 0;
}

/* ---- What is tested ---- */

struct tally {
    uint64_t graphs, pairs, unsafe, wrong;
};

static void compare_reuse(const struct tarn_graph *graph, const struct need *needs, unsigned count,
                          struct tally *tally)
{
    struct tarn_region region = {.chunks = NULL};
    struct tarn_clocks clocks;
    struct tarn_reuse reuse;
    assert_int_equal(tarn_clocks_init(&clocks, &region, graph), TARN_OK);
    assert_int_equal(tarn_reuse_init(&reuse, &region, &clocks, graph), TARN_OK);
    assert_int_equal(reuse.count, count);
    for (unsigned a = 0; a < count; a++) {
        for (unsigned b = a + 1; b < count; b++) {
            bool unsafe = are_unsafe(&needs[a], &needs[b]);
            tally->pairs++;
            tally->unsafe += unsafe;
            tally->wrong += tarn_reuse_is_safe(&reuse, a, b) == unsafe;
        }
    }
    tarn_region_finish(&region);
}

typedef enum tarn_status (*matrix_method)(const struct tarn_graph *graph,
                                          struct tarn_pair_matrix *matrix);

static void compare_matrix(const struct tarn_graph *graph, matrix_method method,
                           const struct need *needs, unsigned count, struct tally *tally)
{
    struct tarn_pair_matrix matrix;
    assert_int_equal(method(graph, &matrix), TARN_OK);
    assert_int_equal(matrix.count, count);
    for (unsigned a = 0; a < count; a++) {
        for (unsigned b = 0; b < count; b++) {
            bool unsafe = a != b && are_unsafe(&needs[a], &needs[b]);
            tally->wrong += tarn_pair_matrix_get(&matrix, a, b) != unsafe;
        }
    }
    tarn_pair_matrix_finish(&matrix);
}

static void compare_with_oracle(const struct small_graph *small, const struct state_list *states,
                                struct tally *tally)
{
    struct small_tensor tensors[TENSORS];
    struct need needs[TENSORS];
    unsigned count = small_graph_tensors(small, tensors);
    for (unsigned t = 0; t < count; t++) find_need(states, &tensors[t], &needs[t]);
    struct tarn_graph *graph = small_graph_build(small, 0);
    compare_reuse(graph, needs, count, tally);
    compare_matrix(graph, tarn_pairs_clocks, needs, count, tally);
    compare_matrix(graph, tarn_pairs_ancestors, needs, count, tally);
    compare_matrix(graph, tarn_pairs_ancestors_opt, needs, count, tally);
    compare_matrix(graph, tarn_pairs_stream_graph, needs, count, tally);
    tarn_graph_destroy(graph);
    tally->graphs++;
}

static struct tally compare_all_graphs(unsigned ops)
{
    struct tally tally = {0};
    struct state_list states;
    for (unsigned mask = 0; mask < 1u << (ops * (ops - 1) / 2); mask++) {
        struct small_graph graph = {.ops = ops};
        small_graph_set_arcs(&graph, mask);
        do {
            enumerate_states(&graph, &states);
            do compare_with_oracle(&graph, &states, &tally);
            while (small_graph_next_grouping(&graph));
        } while (small_graph_next_streams(&graph));
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
