/* The refined iteration boundary, three ways: every interleaving of two and three iterations of
 * tiny graphs is played, the waits of small graphs are compared with the definition (all pairs of
 * touches, their closure, its reduction), and large plans are asked of the verifier and of checked
 * execution. With TARN_GRAPHS in the environment, also the graphs of that folder. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "streams/order/events/boundary.h"
#include "streams/plan/program.h"
#include "support/graph_files.h"
#include "support/interleaving_oracle.h"
#include "support/order_oracle.h"
#include "support/plan_oracle.h"
#include "support/queue_device.h"
#include "support/small_graph.h"
#include "support/unshared_plan.h"
#include "tarn.h"

/* ---- Plans ---- */

static struct tarn_plan *refined_plan(struct tarn_graph *graph, uint64_t alignment)
{
    struct tarn_plan *plan;
    struct tarn_error error;
    struct tarn_plan_options *options =
        TARN_PLAN_OPTIONS(.alignment = alignment, .threads = 1, .effort = TARN_NO_EFFORT);
    if (tarn_plan_create(graph, options, &plan, &error)) fail_msg("%s", error.text);
    assert_int_equal(tarn_plan_refine_boundary(plan), TARN_OK);
    return plan;
}

static struct tarn_graph *graph_of_seed(uint64_t seed, uint32_t ops_max)
{
    struct random_graph_options options = random_graph_knobs(seed, ops_max);
    options.size_max = 1 + (uint32_t)(seed % 24);
    options.padded_share = (uint32_t)(seed % 4 * 25);
    options.early_share = (uint32_t)(seed % 3 * 40);
    return random_graph(&options);
}

/* Takes boundary wait i out, or puts it back when it is out. */
static void exchange_wait(struct tarn_plan *plan, uint32_t i, bool out)
{
    struct tarn_wait *waits = plan->boundary_waits;
    uint32_t last = out ? plan->boundary_waits_count - 1 : plan->boundary_waits_count;
    struct tarn_wait wait = waits[i];
    waits[i] = waits[last];
    waits[last] = wait;
    plan->boundary_waits_count = out ? last : last + 1;
    tarn_plan_drop_program(plan);
}

/* ---- Every interleaving ---- */

struct tally {
    uint64_t plans, waits, simple_waits, states;
};

static void say(const char *name, const struct tally *tally)
{
    print_message("# %s: %llu plans, %llu waits (%llu by the simple rule), %llu states\n", name,
                  (unsigned long long)tally->plans, (unsigned long long)tally->waits,
                  (unsigned long long)tally->simple_waits, (unsigned long long)tally->states);
}

/* Safe with all waits, harmful without any one of them. */
static void play(struct tarn_plan *plan, uint32_t iterations_max, struct tally *tally)
{
    for (uint32_t k = 2; k <= iterations_max; k++)
        assert_false(interleaving_oracle_finds_harm(plan, k, &tally->states));
    assert_true(oracle_accepts(plan));
    for (uint32_t i = 0; i < plan->boundary_waits_count; i++) {
        exchange_wait(plan, i, true);
        assert_true(interleaving_oracle_finds_harm(plan, 2, &tally->states));
        assert_false(oracle_accepts(plan));
        exchange_wait(plan, i, false);
    }
    tally->plans++;
    tally->waits += plan->boundary_waits_count;
}

static void count_simple(const struct tarn_graph *graph, struct tally *tally)
{
    struct tarn_region region = {.chunks = NULL};
    struct tarn_wait *waits;
    uint32_t count;
    assert_int_equal(tarn_boundary_simple(graph, &region, &waits, &count), TARN_OK);
    tally->simple_waits += count;
    tarn_region_finish(&region);
}

static void play_small_graph(const struct small_graph *small, unsigned large, struct tally *tally)
{
    struct tarn_graph *graph = small_graph_build(small, large);
    struct tarn_plan *plan = refined_plan(graph, 1);
    play(plan, 3, tally);
    count_simple(graph, tally);
    tarn_plan_destroy(plan);
    tarn_graph_destroy(graph);
}

/* Tensors of one byte, and of one and two bytes by turns: then storages overlap in part. Every
 * `step`-th graph of so many ops. */
static void play_small_graphs(unsigned ops, uint32_t step, struct tally *tally)
{
    uint32_t next = 0;
    for (unsigned mask = 0; mask < 1u << (ops * (ops - 1) / 2); mask++) {
        struct small_graph graph = {.ops = ops};
        small_graph_set_arcs(&graph, mask);
        do {
            do {
                if (next++ % step != 0) continue;
                play_small_graph(&graph, 0, tally);
                play_small_graph(&graph, 0x55555555, tally);
            } while (small_graph_next_grouping(&graph));
        } while (small_graph_next_streams(&graph));
    }
}

static void no_interleaving_of_graphs_of_up_to_4_ops_harms_and_every_wait_is_needed(void **state)
{
    (void)state;
    struct tally tally = {0};
    for (unsigned ops = 1; ops <= 4; ops++) play_small_graphs(ops, 1, &tally);
    say("up to 4 ops", &tally);
    assert_int_equal(tally.plans, 2 * (1 + 4 + 50 + 2250));
    assert_true(tally.waits > 1000);
}

static void no_interleaving_of_graphs_of_5_ops_harms_and_every_wait_is_needed(void **state)
{
    (void)state;
    struct tally tally = {0};
    uint32_t step = getenv("TARN_GRAPHS") ? 1 : 101;
    play_small_graphs(5, step, &tally);
    say("5 ops", &tally);
    assert_int_equal(tally.plans, 2 * ((405600 + step - 1) / step));
}

/* Views, writes in place, workspaces, outputs, persistent storages, groups, alignments. */
static void
no_interleaving_of_tiny_graphs_with_all_features_harms_and_every_wait_is_needed(void **state)
{
    (void)state;
    struct tally tally = {0};
    for (uint64_t seed = 0; seed < DRAWS(3000); seed++) {
        struct tarn_graph *graph = graph_of_seed(seed, 6);
        struct tarn_plan *plan = refined_plan(graph, UINT64_C(1) << seed % 4);
        play(plan, seed % 8 == 0 ? 3 : 2, &tally);
        count_simple(graph, &tally);
        tarn_plan_destroy(plan);
        tarn_graph_destroy(graph);
    }
    say("all features", &tally);
    assert_true(tally.waits > DRAWS(1000));
}

/* ---- The definition ---- */

enum { OPS_MAX = 40 };

/* Launches of the first iteration, then of the second, by index in plan->list. */
struct relation {
    uint32_t launches;
    bool before[2 * OPS_MAX][2 * OPS_MAX];
};

static uint32_t index_of(const struct tarn_plan *plan, uint32_t op)
{
    uint32_t i = 0;
    while (plan->list[i] != op) i++;
    return i;
}

/* Do two ops touch shared bytes, one of them writing? */
static bool conflict(const struct tarn_plan *plan, uint32_t u, uint32_t v)
{
    const struct tarn_graph *graph = plan->graph;
    for (uint32_t a = 0; a < graph->storages_count; a++) {
        if (!oracle_touches(graph, u, a)) continue;
        for (uint32_t b = 0; b < graph->storages_count; b++) {
            if (!oracle_touches(graph, v, b) || !oracle_share_bytes(plan, a, b)) continue;
            if (oracle_writes(graph, u, a) || oracle_writes(graph, v, b)) return true;
        }
    }
    return false;
}

static void close_relation(struct relation *relation)
{
    uint32_t nodes = 2 * relation->launches;
    for (uint32_t k = 0; k < nodes; k++) {
        for (uint32_t i = 0; i < nodes; i++) {
            for (uint32_t j = 0; j < nodes && relation->before[i][k]; j++)
                relation->before[i][j] |= relation->before[k][j];
        }
    }
}

static void fill_relation(struct relation *relation, const struct tarn_plan *plan)
{
    const struct tarn_graph *graph = plan->graph;
    uint32_t n = plan->list_begin[plan->streams_count];
    memset(relation, 0, sizeof *relation);
    relation->launches = n;
    for (uint32_t i = 0; i < plan->waits_count; i++) {
        uint32_t op = index_of(plan, plan->waits[i].op), on = index_of(plan, plan->waits[i].on);
        relation->before[on][op] = relation->before[n + on][n + op] = true;
    }
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t j = 0; j < n; j++) {
            bool is_one_stream =
                graph->ops[plan->list[i]].stream == graph->ops[plan->list[j]].stream;
            if (is_one_stream && i < j)
                relation->before[i][j] = relation->before[n + i][n + j] = true;
            if (is_one_stream || conflict(plan, plan->list[i], plan->list[j]))
                relation->before[i][n + j] = true;
        }
    }
    close_relation(relation);
}

/* Nothing lies between the two. */
static bool is_covering(const struct relation *relation, uint32_t i, uint32_t j)
{
    for (uint32_t k = 0; k < 2 * relation->launches; k++) {
        if (relation->before[i][k] && relation->before[k][j]) return false;
    }
    return relation->before[i][j];
}

static bool has_wait(const struct tarn_plan *plan, uint32_t op, uint32_t on)
{
    for (uint32_t i = 0; i < plan->boundary_waits_count; i++) {
        if (plan->boundary_waits[i].op == op && plan->boundary_waits[i].on == on) return true;
    }
    return false;
}

static uint32_t require_the_reduction(const struct tarn_plan *plan, struct relation *relation)
{
    uint32_t wanted = 0, n = plan->list_begin[plan->streams_count];
    fill_relation(relation, plan);
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t j = 0; j < n; j++) {
            uint32_t on = plan->list[i], op = plan->list[j];
            bool is_wait = plan->graph->ops[on].stream != plan->graph->ops[op].stream &&
                           is_covering(relation, i, n + j);
            assert_int_equal(has_wait(plan, op, on), is_wait);
            wanted += is_wait;
        }
    }
    assert_int_equal(plan->boundary_waits_count, wanted);
    return wanted;
}

static void waits_are_the_reduction_of_all_pairs_of_touches(void **state)
{
    (void)state;
    uint64_t waits = 0;
    struct relation *relation = malloc(sizeof *relation);
    for (uint64_t seed = 0; seed < DRAWS(600); seed++) {
        struct tarn_graph *graph = graph_of_seed(seed, OPS_MAX);
        struct tarn_plan *plan = refined_plan(graph, UINT64_C(1) << seed % 4);
        waits += require_the_reduction(plan, relation);
        tarn_plan_destroy(plan);
        tarn_graph_destroy(graph);
    }
    free(relation);
    assert_true(waits > DRAWS(600));
}

static void waits_come_by_rank_and_stream(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < DRAWS(500); seed++) {
        struct tarn_graph *graph = graph_of_seed(seed, OPS_MAX);
        struct tarn_plan *plan = refined_plan(graph, 1);
        for (uint32_t i = 1; i < plan->boundary_waits_count; i++) {
            struct tarn_wait a = plan->boundary_waits[i - 1], b = plan->boundary_waits[i];
            bool is_same = a.op == b.op;
            assert_true(is_same ? graph->ops[a.on].stream < graph->ops[b.on].stream
                                : graph->rank[a.op] < graph->rank[b.op]);
        }
        tarn_plan_destroy(plan);
        tarn_graph_destroy(graph);
    }
}

/* ---- Large plans ---- */

static enum tarn_status run_in_random_order(struct tarn_plan *plan, uint64_t seed,
                                            struct tarn_error *error)
{
    struct tarn_session *session;
    struct tarn_host_options *host = TARN_HOST_OPTIONS(.workers = 1, .binding = TARN_BIND_NONE);
    if (tarn_session_create(plan, tarn_device_host(host), NULL, &session, error))
        fail_msg("%s", error->text);
    enum tarn_status status = tarn_session_check(
        session, TARN_CHECK_OPTIONS(.random_order = true, .seed = seed, .iterations = 4), NULL,
        error);
    tarn_session_destroy(session);
    return status;
}

/* The verifier accepts it, checked execution finds nothing; it rejects it without some waits. */
static void judge(struct tarn_plan *plan, uint64_t seed, bool runs)
{
    struct tarn_error error;
    if (tarn_plan_verify(plan, plan->graph, NULL, NULL, &error))
        fail_msg("seed %llu: %s", (unsigned long long)seed, error.text);
    for (uint64_t k = 0; k < 3 && runs; k++) {
        if (run_in_random_order(plan, seed + k, &error))
            fail_msg("seed %llu: %s", (unsigned long long)seed, error.text);
    }
    uint32_t step = 1 + plan->boundary_waits_count / 8;
    for (uint32_t i = 0; i < plan->boundary_waits_count; i += step) {
        exchange_wait(plan, i, true);
        assert_int_equal(tarn_plan_verify(plan, plan->graph, NULL, NULL, &error), TARN_REJECTED);
        exchange_wait(plan, i, false);
    }
}

static void the_verifier_accepts_large_plans_and_misses_every_wait(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 24; seed++) {
        struct random_graph_options options = random_graph_knobs(seed, 300);
        options.ops = 300;
        struct tarn_graph *graph = random_graph(&options);
        struct tarn_plan *plan = refined_plan(graph, 64);
        judge(plan, seed, seed % 6 == 0);
        tarn_plan_destroy(plan);
        tarn_graph_destroy(graph);
    }
}

/* ---- Graphs of a folder ---- */

static uint64_t judge_file(const char *path)
{
    struct tarn_graph *graph;
    struct tarn_error error;
    if (tarn_graph_load(path, NULL, &graph, &error)) fail_msg("%s: %s", path, error.text);
    struct tarn_plan *plan = refined_plan(graph, 512);
    judge(plan, 0, false);
    tarn_plan_destroy(plan);
    tarn_graph_destroy(graph);
    return 1;
}

static void graphs_of_a_folder(void **state)
{
    (void)state;
    for_given_graph_files(judge_file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_interleaving_of_graphs_of_up_to_4_ops_harms_and_every_wait_is_needed),
        cmocka_unit_test(no_interleaving_of_graphs_of_5_ops_harms_and_every_wait_is_needed),
        cmocka_unit_test(
            no_interleaving_of_tiny_graphs_with_all_features_harms_and_every_wait_is_needed),
        cmocka_unit_test(waits_are_the_reduction_of_all_pairs_of_touches),
        cmocka_unit_test(waits_come_by_rank_and_stream),
        cmocka_unit_test(the_verifier_accepts_large_plans_and_misses_every_wait),
        cmocka_unit_test(graphs_of_a_folder),
    };
    return cmocka_run_group_tests_name("boundary", tests, NULL, NULL);
}
