/* Reordering against brute force on small graphs: all legal orders, all sets closed under
 * predecessors, all cuts; and its promises on large ones. The oracle knows the graph only: ops as
 * bits, an arc wherever data, control or a hazard asks for one, found pair by pair. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "planner/transform/reorder/bound.h"
#include "planner/transform/reorder/exact.h"
#include "planner/transform/reorder/flow.h"
#include "planner/transform/reorder/greedy.h"
#include "planner/transform/reorder/reorder.h"
#include "streams/order/peak.h"
#include "streams/plan/plan.h"
#include "support/arcs_oracle.h"
#include "support/heaviest.h"
#include "support/random_graph.h"
#include "tarn.h"

enum { GRAPHS = DRAWS(10000), OPS_MAX = 9, SETS = 1 << OPS_MAX };

static struct tarn_graph *small_graph(uint64_t seed, uint32_t ops_max)
{
    struct random_graph_options options = random_graph_knobs(seed, ops_max);
    options.streams = 1;
    options.shuffled = false;
    return random_graph(&options);
}

/* ---- The oracle ---- */

struct oracle {
    const struct tarn_graph *graph;
    uint32_t before[OPS_MAX]; /* op -> ops that must have run */
    uint64_t made[OPS_MAX];
    uint64_t alive[SETS]; /* bytes alive after exactly these ops */
    uint64_t best[SETS];  /* least peak of an order of these ops; UINT64_MAX: not closed */
};

static uint64_t alive_after(const struct tarn_graph *graph, uint32_t set)
{
    uint64_t alive = 0;
    for (uint32_t a = 0; a < graph->planned_count; a++) {
        const struct tarn_storage *storage = &graph->storages[a];
        bool dead = !storage->pinned;
        for (uint32_t k = 0; k < storage->users_count; k++)
            dead &= set >> tarn_storage_users(graph, storage)[k] & 1;
        if ((set >> storage->producer & 1) && !dead) alive += storage->size;
    }
    return alive;
}

static bool is_closed(const struct oracle *oracle, uint32_t set)
{
    for (uint32_t v = 0; v < oracle->graph->ops_count; v++)
        if ((set >> v & 1) && (oracle->before[v] & ~set)) return false;
    return true;
}

static void fill_best(struct oracle *oracle)
{
    uint32_t count = oracle->graph->ops_count;
    for (uint32_t set = 0; set < 1u << count; set++) {
        oracle->alive[set] = alive_after(oracle->graph, set);
        oracle->best[set] = set == 0 ? 0 : UINT64_MAX;
        if (!is_closed(oracle, set)) continue;
        for (uint32_t v = 0; v < count; v++) {
            uint32_t rest = set & ~(1u << v);
            if (rest == set || oracle->best[rest] == UINT64_MAX) continue;
            uint64_t peak = oracle->alive[rest] + oracle->made[v];
            if (oracle->best[rest] > peak) peak = oracle->best[rest];
            if (peak < oracle->best[set]) oracle->best[set] = peak;
        }
    }
}

static void oracle_init(struct oracle *oracle, const struct tarn_graph *graph)
{
    memset(oracle, 0, sizeof *oracle);
    oracle->graph = graph;
    for (uint32_t v = 0; v < graph->ops_count; v++)
        for (uint32_t u = 0; u < v; u++)
            if (must_come_before(graph, u, v)) oracle->before[v] |= 1u << u | oracle->before[u];
    for (uint32_t a = 0; a < graph->planned_count; a++)
        oracle->made[graph->storages[a].producer] += graph->storages[a].size;
    fill_best(oracle);
}

static uint64_t optimum(const struct oracle *oracle)
{
    return oracle->best[(1u << oracle->graph->ops_count) - 1];
}

/* The second implementation: every legal order, one after another. */
static uint64_t least_of_all_orders(const struct oracle *oracle, uint32_t set, uint64_t peak)
{
    uint32_t count = oracle->graph->ops_count;
    if (set == (1u << count) - 1) return peak;
    uint64_t least = UINT64_MAX;
    for (uint32_t v = 0; v < count; v++) {
        if ((set >> v & 1) || (oracle->before[v] & ~set)) continue;
        uint64_t step = oracle->alive[set] + oracle->made[v];
        uint64_t rest = least_of_all_orders(oracle, set | 1u << v, step > peak ? step : peak);
        if (rest < least) least = rest;
    }
    return least;
}

static void both_oracles_agree(void **state)
{
    static struct oracle oracle;
    (void)state;
    for (uint64_t seed = 0; seed < DRAWS(500); seed++) {
        struct tarn_graph *graph = small_graph(seed, 7);
        oracle_init(&oracle, graph);
        assert_int_equal(optimum(&oracle), least_of_all_orders(&oracle, 0, 0));
        tarn_graph_destroy(graph);
    }
}

/* ---- The whole ---- */

static uint64_t serial_peak(const struct tarn_graph *graph)
{
    uint64_t peak;
    assert_int_equal(tarn_peak_serial(graph, &peak), TARN_OK);
    return peak;
}

static struct tarn_graph *reorder(struct tarn_graph *graph, uint64_t alignment,
                                  struct tarn_reorder_report *report)
{
    struct tarn_graph *result;
    assert_int_equal(
        tarn_graph_reorder(graph, TARN_REORDER_OPTIONS(.alignment = alignment, .report = report),
                           &result, NULL),
        TARN_OK);
    return result;
}

static void equals_brute_force_on_small_graphs(void **state)
{
    static struct oracle oracle;
    uint32_t improved = 0;
    (void)state;
    for (uint64_t seed = 0; seed < GRAPHS; seed++) {
        struct tarn_graph *graph = small_graph(seed, OPS_MAX);
        struct tarn_reorder_report report;
        struct tarn_graph *result = reorder(graph, 1, &report);
        oracle_init(&oracle, graph);
        assert_int_equal(report.peak_before, serial_peak(graph));
        assert_int_equal(report.peak_after, optimum(&oracle));
        assert_int_equal(report.bound, optimum(&oracle));
        assert_int_equal(serial_peak(result), report.peak_after);
        improved += report.peak_after < report.peak_before;
        tarn_graph_destroy(result);
        tarn_graph_destroy(graph);
    }
    assert_true(improved > GRAPHS / 20);
}

/* ---- Its parts ---- */

/* Everything at alignment 1. */
struct parts {
    struct tarn_region region;
    struct tarn_graph *graph;
    struct tarn_reorder_model model;
    struct tarn_reorder_state state;
    uint32_t *order; /* the order that came in */
};

static void parts_init(struct parts *parts, struct tarn_graph *graph)
{
    uint64_t *size = malloc(((size_t)graph->planned_count + 1) * sizeof *size);
    assert_non_null(size);
    for (uint32_t a = 0; a < graph->planned_count; a++) size[a] = graph->storages[a].size;
    parts->region = (struct tarn_region){.chunks = NULL};
    parts->graph = graph;
    assert_int_equal(tarn_reorder_model_init(&parts->model, &parts->region, graph, size), TARN_OK);
    assert_true(tarn_reorder_model_is_valid(&parts->model));
    assert_int_equal(tarn_reorder_state_init(&parts->state, &parts->region, &parts->model),
                     TARN_OK);
    parts->order = malloc(((size_t)parts->model.nodes_count + 1) * sizeof *parts->order);
    assert_non_null(parts->order);
    for (uint32_t v = 0; v < parts->model.nodes_count; v++) parts->order[v] = v;
    free(size);
}

static void parts_finish(struct parts *parts)
{
    tarn_region_finish(&parts->region);
    tarn_graph_destroy(parts->graph);
    free(parts->order);
}

/* The least memory of op v's step in any order, over all sets that may have run. */
static uint64_t least_step(const struct oracle *oracle, uint32_t v)
{
    uint64_t least = UINT64_MAX;
    for (uint32_t set = 0; set < 1u << oracle->graph->ops_count; set++) {
        if (oracle->best[set] == UINT64_MAX || (set >> v & 1) || (oracle->before[v] & ~set))
            continue;
        if (oracle->alive[set] < least) least = oracle->alive[set];
    }
    return least + oracle->made[v];
}

static void cut_is_the_least_over_all_closed_sets(void **state)
{
    static struct oracle oracle;
    (void)state;
    for (uint64_t seed = 0; seed < GRAPHS / 5; seed++) {
        struct parts parts;
        struct tarn_reorder_bound bound;
        parts_init(&parts, small_graph(seed, OPS_MAX));
        oracle_init(&oracle, parts.graph);
        assert_int_equal(tarn_reorder_bound_init(&bound, &parts.region, &parts.model), TARN_OK);
        for (uint32_t v = 0; v < parts.model.nodes_count; v++) {
            uint64_t least;
            assert_int_equal(tarn_reorder_bound_at(&bound, v, &least), TARN_OK);
            assert_int_equal(least, least_step(&oracle, parts.model.op[v]));
            assert_true(least <= optimum(&oracle));
        }
        tarn_reorder_bound_finish(&bound);
        parts_finish(&parts);
    }
}

static void proof_is_never_above_the_optimum(void **state)
{
    static struct oracle oracle;
    uint32_t tight = 0;
    (void)state;
    for (uint64_t seed = 0; seed < GRAPHS / 2; seed++) {
        struct parts parts;
        struct tarn_reorder_bound bound;
        struct tarn_reorder_proof proof;
        uint64_t least = 0;
        parts_init(&parts, small_graph(seed, OPS_MAX));
        oracle_init(&oracle, parts.graph);
        assert_int_equal(tarn_reorder_bound_init(&bound, &parts.region, &parts.model), TARN_OK);
        assert_int_equal(tarn_reorder_proof_init(&proof, &parts.region, &bound, &parts.state),
                         TARN_OK);
        assert_int_equal(
            tarn_reorder_proof_run(&proof, parts.order, 1 + (uint32_t)(seed % 40), &least),
            TARN_OK);
        assert_true(least <= optimum(&oracle));
        assert_true(proof.found_peak >= optimum(&oracle));
        tight += least == optimum(&oracle);
        tarn_reorder_bound_finish(&bound);
        parts_finish(&parts);
    }
    assert_true(tight > GRAPHS / 4);
}

static void exact_search_by_itself_equals_brute_force(void **state)
{
    static struct oracle oracle;
    (void)state;
    for (uint64_t seed = 0; seed < GRAPHS / 3; seed++) {
        struct parts parts;
        struct tarn_reorder_exact exact;
        uint32_t order[OPS_MAX];
        uint64_t peak = UINT64_MAX;
        parts_init(&parts, small_graph(seed + GRAPHS, OPS_MAX));
        oracle_init(&oracle, parts.graph);
        uint32_t count = parts.model.nodes_count;
        assert_int_equal(tarn_reorder_exact_init(&exact, &parts.region, &parts.state, 1000),
                         TARN_OK);
        tarn_reorder_state_reset(&parts.state);
        enum tarn_reorder_verdict verdict =
            tarn_reorder_exact_run(&exact, parts.order, count, UINT64_MAX / 2, 0, order, &peak);
        if (optimum(&oracle) > 0) {
            assert_int_equal(verdict, TARN_REORDER_BEST);
            assert_int_equal(peak, optimum(&oracle));
            assert_int_equal(tarn_reorder_peak(&parts.state, order, NULL), peak);
            tarn_reorder_state_reset(&parts.state);
            assert_int_equal(tarn_reorder_exact_run(&exact, parts.order, count, optimum(&oracle), 0,
                                                    order, &peak),
                             TARN_REORDER_NONE);
        }
        parts_finish(&parts);
    }
}

static void undoing_leaves_no_trace(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < DRAWS(300); seed++) {
        struct parts parts;
        struct tarn_reorder_state fresh;
        parts_init(&parts, small_graph(seed, 60));
        uint32_t count = parts.model.nodes_count, kept = count / 2;
        assert_int_equal(tarn_reorder_state_init(&fresh, &parts.region, &parts.model), TARN_OK);
        for (uint32_t i = 0; i < count; i++) tarn_reorder_run(&parts.state, i);
        for (uint32_t i = count; i-- > kept;) tarn_reorder_undo(&parts.state, i);
        for (uint32_t i = 0; i < kept; i++) tarn_reorder_run(&fresh, i);
        assert_int_equal(parts.state.alive, fresh.alive);
        assert_memory_equal(parts.state.freed, fresh.freed, count * sizeof *fresh.freed);
        assert_memory_equal(parts.state.pending, fresh.pending, count * sizeof *fresh.pending);
        assert_memory_equal(parts.state.left, fresh.left,
                            parts.model.storages_count * sizeof *fresh.left);
        parts_finish(&parts);
    }
}

static void assert_legal(const struct tarn_reorder_model *model, const uint32_t *order)
{
    uint32_t *place = malloc(((size_t)model->nodes_count + 1) * sizeof *place);
    assert_non_null(place);
    for (uint32_t v = 0; v < model->nodes_count; v++) place[v] = TARN_NONE;
    for (uint32_t i = 0; i < model->nodes_count; i++) {
        assert_int_equal(place[order[i]], TARN_NONE);
        place[order[i]] = i;
    }
    for (uint32_t v = 0; v < model->nodes_count; v++) {
        const struct tarn_arcs *arcs = &model->predecessors;
        for (uint32_t i = arcs->begin[v]; i < arcs->begin[v + 1]; i++)
            assert_true(place[arcs->ops[i]] < place[v]);
    }
    free(place);
}

static void greedy_and_put_off_orders_are_legal_and_the_latter_no_worse(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < DRAWS(400); seed++) {
        struct parts parts;
        struct tarn_reorder_greedy greedy;
        struct tarn_reorder_postpone postpone;
        parts_init(&parts, small_graph(seed, 200));
        assert_int_equal(tarn_reorder_greedy_init(&greedy, &parts.region, &parts.model), TARN_OK);
        assert_int_equal(tarn_reorder_postpone_init(&postpone, &parts.region, &parts.model),
                         TARN_OK);
        uint64_t came_in = tarn_reorder_peak(&parts.state, parts.order, NULL);
        for (uint64_t part = 0; part <= 4; part++) {
            uint64_t peak = tarn_reorder_greedy_run(&greedy, parts.order, came_in / 4 * part);
            assert_legal(&parts.model, greedy.run);
            assert_int_equal(peak, tarn_reorder_peak(&parts.state, greedy.run, NULL));
            tarn_reorder_postpone_run(&postpone, greedy.run, parts.order);
            assert_legal(&parts.model, parts.order);
            assert_true(tarn_reorder_peak(&parts.state, parts.order, NULL) <= peak);
        }
        parts_finish(&parts);
    }
}

/* ---- Flows ---- */

enum { FLOW_NODES = 8 };

static void flow_equals_the_least_of_all_cuts(void **state)
{
    struct tarn_reorder_flow flow = {0};
    (void)state;
    for (uint64_t seed = 0; seed < DRAWS(3000); seed++) {
        struct random_source source = {seed};
        uint64_t room[FLOW_NODES][FLOW_NODES] = {{0}}, least = UINT64_MAX, sent;
        uint32_t arcs = random_below(&source, 24), smallest = 0, largest = 0;
        assert_int_equal(tarn_flow_reset(&flow, FLOW_NODES), TARN_OK);
        for (uint32_t k = 0; k < arcs; k++) {
            uint32_t from = random_below(&source, FLOW_NODES);
            uint32_t to = random_below(&source, FLOW_NODES), much = random_below(&source, 10);
            if (from == to) continue;
            room[from][to] += much;
            tarn_flow_add(&flow, from, to, much);
        }
        for (uint32_t set = 1; set < 1u << FLOW_NODES; set += 2) { /* holds the source, node 0 */
            uint64_t cut = 0;
            if (set >> 1 & 1) continue; /* but not the sink, node 1 */
            for (uint32_t u = 0; u < FLOW_NODES; u++)
                for (uint32_t v = 0; v < FLOW_NODES; v++)
                    if ((set >> u & 1) && !(set >> v & 1)) cut += room[u][v];
            if (cut < least) smallest = largest = set;
            if (cut == least) smallest &= set, largest |= set;
            if (cut < least) least = cut;
        }
        sent = tarn_flow_run(&flow, 0, 1);
        assert_int_equal(sent, least);
        for (uint32_t n = 0; n < FLOW_NODES; n++)
            assert_int_equal(flow.level[n] != TARN_NONE, smallest >> n & 1);
        tarn_flow_find_largest(&flow, 1);
        for (uint32_t n = 0; n < FLOW_NODES; n++)
            assert_int_equal(flow.level[n] == TARN_NONE, largest >> n & 1);
    }
    tarn_flow_finish(&flow);
}

/* ---- Promises on large graphs ---- */

static void never_worse_and_every_plan_refines_its_source(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < DRAWS(60); seed++) {
        struct random_graph_options options = random_graph_knobs(seed, 120);
        if (seed % 3 != 0) options.streams = 1;
        struct tarn_graph *graph = random_graph(&options);
        struct tarn_reorder_report report;
        struct tarn_plan *plan;
        struct tarn_error error;
        enum tarn_status status = tarn_plan_create(
            graph,
            TARN_PLAN_OPTIONS(.reorder = TARN_REORDER_OPTIONS(.report = &report),
                              .method = "lowest", .threads = 1, .effort = TARN_NO_EFFORT),
            &plan, &error);
        if (status != TARN_OK) fail_msg("seed %llu: %s", (unsigned long long)seed, error.text);
        assert_true(report.peak_after <= report.peak_before);
        assert_true(report.bound <= report.peak_after);
        assert_int_equal(tarn_plan_verify(plan, graph, NULL, NULL, NULL), TARN_OK);
        if (options.streams == 1) {
            struct tarn_plan_summary made;
            tarn_plan_summarize(plan, &made);
            assert_true(made.bound >= report.peak_after || options.group_share > 0);
        }
        tarn_plan_destroy(plan);
        tarn_graph_destroy(graph);
    }
}

/* ---- Several streams ---- */

/* The effort where what is tested holds of every order: 10 rounds of improvement instead of 200,
 * and 15 starts instead of 300, ten times faster. */
enum { ROUNDS = 10 };

static uint64_t makespan(const struct tarn_graph *graph)
{
    struct tarn_simulation *simulation;
    assert_int_equal(tarn_graph_simulate(graph, 1, TARN_WAIT_NS, &simulation, NULL), TARN_OK);
    uint64_t ns = simulation->makespan_ns;
    tarn_simulation_destroy(simulation);
    return ns;
}

static void several_streams_are_judged_by_their_heaviest_antichain(void **state)
{
    uint32_t improved = 0;
    (void)state;
    for (uint64_t seed = 0; seed < DRAWS(150); seed++) {
        struct random_graph_options options = random_graph_knobs(seed, 80);
        struct tarn_reorder_report report;
        struct tarn_graph *result;
        if (options.streams == 1) options.streams = 2;
        options.group_share =
            0; /* members reserve no padding at alignment 1, but this is plainer */
        struct tarn_graph *graph = random_graph(&options);
        if (graph->streams_count == 1) {
            tarn_graph_destroy(graph);
            continue;
        }
        bool keep_time = seed % 2;
        double slowdown = seed % 4 == 2 ? 0.1 : 0;
        assert_int_equal(
            tarn_graph_reorder(graph,
                               TARN_REORDER_OPTIONS(.alignment = 1, .effort = ROUNDS,
                                                    .keep_time = keep_time,
                                                    .slowdown_max = slowdown, .report = &report),
                               &result, NULL),
            TARN_OK);
        assert_int_equal(report.peak_before, heaviest_antichain(graph));
        assert_int_equal(report.peak_after, heaviest_antichain(result));
        assert_true(report.peak_after <= report.peak_before);
        assert_true(report.bound <= report.peak_after);
        assert_int_equal(report.critical_path_before_ns, makespan(graph));
        assert_int_equal(report.critical_path_ns, makespan(result));
        if (keep_time) assert_true(report.critical_path_ns <= report.critical_path_before_ns);
        if (slowdown > 0)
            assert_true((double)report.critical_path_ns <=
                        1.1 * (double)report.critical_path_before_ns);
        improved += report.peak_after < report.peak_before;
        tarn_graph_destroy(result);
        tarn_graph_destroy(graph);
    }
    assert_true(improved > DRAWS(20));
}

static uint64_t footprint_of(struct tarn_graph *graph, const struct tarn_reorder_options *reorder,
                             const struct tarn_couple_options *couple)
{
    struct tarn_plan *plan;
    struct tarn_plan_summary made;
    struct tarn_error error;
    enum tarn_status status = tarn_plan_create(
        graph,
        TARN_PLAN_OPTIONS(.threads = 1, .method = "lowest", .effort = TARN_NO_EFFORT,
                          .reorder = reorder, .couple = couple),
        &plan, &error);
    if (status != TARN_OK) fail_msg("%s", error.text);
    tarn_plan_summarize(plan, &made);
    tarn_plan_destroy(plan);
    return made.footprint;
}

static void contiguous_groups_and_coupling_count_before_an_order_is_taken(void **state)
{
    uint32_t improved = 0;
    (void)state;
    for (uint64_t seed = 0; seed < (HAS_FEW_DRAWS ? 2 : 15); seed++) {
        struct random_graph_options options = random_graph_knobs(seed, 60);
        options.group_share = 40;
        struct tarn_graph *graph = random_graph(&options);
        uint64_t before = footprint_of(graph, NULL, NULL);
        uint64_t after = footprint_of(graph, TARN_REORDER_OPTIONS(.effort = ROUNDS), NULL);
        assert_true(after <= before);
        improved += after < before;
        before = footprint_of(graph, NULL, TARN_COUPLE_OPTIONS(.slowdown_max = 1));
        after = footprint_of(graph, TARN_REORDER_OPTIONS(.effort = ROUNDS),
                             TARN_COUPLE_OPTIONS(.slowdown_max = 1));
        if (graph->streams_count > 1) assert_true(after <= before);
        tarn_graph_destroy(graph);
    }
    assert_true(HAS_FEW_DRAWS || improved > 2);
}

/* ---- Stages ---- */

static void stages_can_be_left_out(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 15; seed++) {
        struct tarn_graph *graph = small_graph(seed, 100), *result;
        for (uint32_t left_out = 0; left_out < 1u << TARN_REORDER_STAGES;
             left_out += 1 + left_out / 4) {
            struct tarn_reorder_report report;
            uint64_t gained = 0;
            assert_int_equal(
                tarn_reorder_without(graph, TARN_REORDER_OPTIONS(.alignment = 1, .report = &report),
                                     left_out, &result, NULL),
                TARN_OK);
            for (int stage = 0; stage < TARN_REORDER_STAGES; stage++) {
                gained += report.gains[stage].bytes;
                if (left_out >> stage & 1) assert_int_equal(report.gains[stage].tries, 0);
            }
            assert_int_equal(gained, report.peak_before - report.peak_after);
            assert_int_equal(serial_peak(result), report.peak_after);
            assert_true(report.bound <= report.peak_after);
            tarn_graph_destroy(result);
        }
        tarn_graph_destroy(graph);
    }
}

static void the_same_twice(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 8; seed++) {
        struct tarn_graph *graph = small_graph(seed, 200);
        struct tarn_reorder_report report;
        struct tarn_graph *a = reorder(graph, 512, &report), *b = reorder(graph, 512, &report);
        assert_true(tarn_hash_equal(a->hash, b->hash));
        tarn_graph_destroy(a);
        tarn_graph_destroy(b);
        tarn_graph_destroy(graph);
    }
}

static void refuses_an_alignment_that_is_no_power_of_two(void **state)
{
    struct tarn_graph *graph = small_graph(1, 5), *result;
    struct tarn_error error;
    (void)state;
    assert_int_equal(
        tarn_graph_reorder(graph, TARN_REORDER_OPTIONS(.alignment = 3), &result, &error),
        TARN_USAGE);
    assert_null(result);
    assert_non_null(strstr(error.text, "power of two"));
    tarn_graph_destroy(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_oracles_agree),
        cmocka_unit_test(equals_brute_force_on_small_graphs),
        cmocka_unit_test(cut_is_the_least_over_all_closed_sets),
        cmocka_unit_test(proof_is_never_above_the_optimum),
        cmocka_unit_test(exact_search_by_itself_equals_brute_force),
        cmocka_unit_test(undoing_leaves_no_trace),
        cmocka_unit_test(greedy_and_put_off_orders_are_legal_and_the_latter_no_worse),
        cmocka_unit_test(flow_equals_the_least_of_all_cuts),
        cmocka_unit_test(never_worse_and_every_plan_refines_its_source),
        cmocka_unit_test(several_streams_are_judged_by_their_heaviest_antichain),
        cmocka_unit_test(contiguous_groups_and_coupling_count_before_an_order_is_taken),
        cmocka_unit_test(stages_can_be_left_out),
        cmocka_unit_test(the_same_twice),
        cmocka_unit_test(refuses_an_alignment_that_is_no_power_of_two),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
