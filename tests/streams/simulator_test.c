/* The simulator against brute force: begins from all ancestors at once instead of the fewest waits,
 * memory storage by storage in reserved bytes, the worst case by walking through every state of
 * tiny graphs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "support/order_oracle.h"
#include "support/plan_oracle.h"
#include "support/random_graph.h"
#include "tarn/simulate.h"

enum {
    GRAPHS = DRAWS(3000),
    OPS_MAX = 24,
    LARGE_OPS_MAX = 60,
    TINY_GRAPHS = DRAWS(20000),
    TINY_OPS_MAX = 9,
    STORAGES_MAX = 64
};

static struct tarn_simulation *simulate(const struct tarn_graph *graph, uint64_t alignment,
                                        uint32_t wait_ns)
{
    struct tarn_simulation *simulation;
    struct tarn_error error;
    if (tarn_graph_simulate(graph, alignment, wait_ns, &simulation, &error) != TARN_OK)
        fail_msg("%s", error.text);
    return simulation;
}

/* The launched ops that happen before each op, as bits. */
static void find_ancestors(struct tarn_graph *graph, struct order_oracle *oracle)
{
    struct tarn_plan *plan = tarn_plan_of_graph(graph);
    assert_non_null(plan);
    order_oracle_init(oracle, plan);
    tarn_plan_destroy(plan);
    oracle->plan = NULL;
}

/* Costs that random graphs do not have: nothing, little, much. Nobody else has seen the graph. */
static void draw_costs(struct tarn_graph *graph, uint64_t seed, bool with_zero)
{
    struct random_source source = {seed};
    for (uint32_t v = 0; v < graph->ops_count; v++) {
        uint64_t cost = random_below(&source, random_percent(&source, 50) ? 4 : 1000);
        graph->ops[v].cost = with_zero || cost > 0 ? cost : 1;
    }
}

/* The plan's alignment, which memory is counted at. */
static uint64_t alignment_of(uint64_t seed)
{
    static const uint64_t alignments[] = {1, 4, 512};
    return alignments[seed % 3];
}

static uint64_t max(uint64_t a, uint64_t b) { return a > b ? a : b; }

/* ---- When ops run ---- */

static void check_begins(const struct tarn_graph *graph, const struct order_oracle *oracle,
                         const struct tarn_simulation *simulation, uint32_t wait_ns)
{
    uint64_t makespan = 0, serial = 0, busy[8] = {0};
    for (uint32_t v = 0; v < graph->ops_count; v++) {
        const struct tarn_graph_op *op = &graph->ops[v];
        uint64_t begin = 0;
        for (uint32_t u = 0; u < graph->ops_count; u++) {
            if (!(oracle->ancestors[v] >> u & 1)) continue;
            bool crosses = graph->ops[u].stream != op->stream;
            begin = max(begin, simulation->end_ns[u] + (crosses ? wait_ns : 0));
        }
        if (op->view) continue;
        assert_int_equal(simulation->begin_ns[v], begin);
        assert_int_equal(simulation->end_ns[v], begin + op->cost);
        makespan = max(makespan, begin + op->cost);
        serial += op->cost;
        busy[op->stream] += op->cost;
    }
    assert_int_equal(simulation->makespan_ns, makespan);
    assert_int_equal(simulation->serial_ns, serial);
    for (uint32_t s = 0; s < graph->streams_count; s++)
        assert_int_equal(simulation->busy_ns[s], busy[s]);
}

static void ops_begin_when_all_that_happens_before_has_ended(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < GRAPHS; seed++) {
        struct random_graph_options options = random_graph_knobs(seed, OPS_MAX);
        options.early_share = seed % 2 * 60;
        struct tarn_graph *graph = random_graph(&options);
        struct order_oracle oracle;
        uint32_t wait_ns = seed % 3 == 0 ? 0 : (uint32_t)(seed % 97);
        draw_costs(graph, seed, true);
        find_ancestors(graph, &oracle);
        struct tarn_simulation *simulation = simulate(graph, 1, wait_ns);
        check_begins(graph, &oracle, simulation, wait_ns);
        tarn_simulation_destroy(simulation);
        tarn_graph_destroy(graph);
    }
}

/* What an op that ends its workspace before its outputs begin has at once less than both together:
 * the smaller of the two. */
static uint64_t in_turn(const struct tarn_graph *graph, uint64_t alignment, uint32_t v)
{
    uint64_t workspace = 0, outputs = 0;
    for (uint32_t a = 0; a < graph->planned_count; a++) {
        if (graph->storages[a].producer != v || !graph->ops[v].workspace_first) continue;
        *(graph->storages[a].tensor == TARN_NONE ? &workspace : &outputs) +=
            oracle_reserved(graph, a, alignment);
    }
    return workspace < outputs ? workspace : outputs;
}

/* ---- Memory over time ---- */

/* Bytes alive in [begin, end), or in [begin, end] with `closed`, around moment ns. */
static uint64_t alive_at(const struct tarn_graph *graph, uint64_t alignment,
                         const struct tarn_simulation *simulation, uint64_t ns, bool closed)
{
    uint64_t bytes = 0;
    for (uint32_t a = 0; a < graph->planned_count; a++) {
        const struct tarn_storage *storage = &graph->storages[a];
        uint64_t end = storage->pinned ? UINT64_MAX : 0;
        for (uint32_t k = 0; k < storage->users_count; k++)
            end = max(end, simulation->end_ns[tarn_storage_users(graph, storage)[k]]);
        if (simulation->begin_ns[storage->producer] > ns) continue;
        if (ns < end || (closed && ns == end)) bytes += oracle_reserved(graph, a, alignment);
    }
    for (uint32_t v = 0; v < graph->ops_count; v++) {
        uint64_t end = simulation->end_ns[v];
        if (simulation->begin_ns[v] <= ns && (ns < end || (closed && ns == end)))
            bytes -= in_turn(graph, alignment, v);
    }
    return bytes;
}

static void check_memory(const struct tarn_graph *graph, uint64_t alignment,
                         const struct tarn_simulation *simulation, bool with_zero)
{
    uint64_t highest = 0, closed = 0;
    assert_true(simulation->steps_count > 0 && simulation->steps[0].ns == 0);
    for (size_t i = 0; i < simulation->steps_count; i++) {
        uint64_t ns = simulation->steps[i].ns;
        if (i > 0) assert_true(simulation->steps[i - 1].ns < ns);
        assert_int_equal(simulation->steps[i].bytes,
                         alive_at(graph, alignment, simulation, ns, false));
        highest = max(highest, simulation->steps[i].bytes);
        closed = max(closed, alive_at(graph, alignment, simulation, ns, true));
    }
    for (uint32_t v = 0; v < graph->ops_count; v++) /* no step is left out */
        highest =
            max(highest, alive_at(graph, alignment, simulation, simulation->begin_ns[v], false));
    assert_true(with_zero ? simulation->peak >= highest : simulation->peak == highest);
    assert_true(simulation->peak <= closed);
    assert_true(alive_at(graph, alignment, simulation, simulation->peak_ns, true) >=
                simulation->peak);
}

static void memory_is_what_is_alive_at_every_moment(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < GRAPHS; seed++) {
        struct random_graph_options options = random_graph_knobs(seed, OPS_MAX);
        options.early_share = seed % 2 * 60;
        struct tarn_graph *graph = random_graph(&options);
        bool with_zero = seed % 2 == 0;
        draw_costs(graph, seed, with_zero);
        struct tarn_simulation *simulation =
            simulate(graph, alignment_of(seed), (uint32_t)(seed % 5));
        check_memory(graph, alignment_of(seed), simulation, with_zero);
        tarn_simulation_destroy(simulation);
        tarn_graph_destroy(graph);
    }
}

/* ---- The worst case ---- */

static uint64_t alive_in(const struct tarn_graph *graph, const uint64_t *reserved, uint64_t begun,
                         uint64_t ended)
{
    uint64_t bytes = 0;
    for (uint32_t v = 0; v < graph->ops_count; v++) /* what is added twice below */
        if (begun >> v & 1 && !(ended >> v & 1)) bytes -= reserved[graph->planned_count + v];
    for (uint32_t a = 0; a < graph->planned_count; a++) {
        const struct tarn_storage *storage = &graph->storages[a];
        bool is_kept = storage->pinned;
        for (uint32_t k = 0; k < storage->users_count; k++)
            is_kept |= !(ended >> tarn_storage_users(graph, storage)[k] & 1);
        if (begun >> storage->producer & 1 && is_kept) bytes += reserved[a];
    }
    return bytes;
}

/* All sets of ended ops with the started ones `begun`. */
static uint64_t heaviest_with(const struct tarn_graph *graph, const uint64_t *reserved,
                              uint64_t begun, uint64_t must_end)
{
    uint64_t heaviest = 0, may_end = begun & ~must_end;
    for (uint64_t more = may_end;; more = (more - 1) & may_end) {
        heaviest = max(heaviest, alive_in(graph, reserved, begun, must_end | more));
        if (more == 0) return heaviest;
    }
}

static uint64_t heaviest_state(const struct tarn_graph *graph, uint64_t alignment,
                               const struct order_oracle *oracle)
{
    uint64_t heaviest = 0, reserved[STORAGES_MAX + TINY_OPS_MAX]; /* of storages, then ops */
    assert_true(graph->planned_count <= STORAGES_MAX);
    for (uint32_t v = 0; v < graph->ops_count; v++)
        reserved[graph->planned_count + v] = in_turn(graph, alignment, v);
    for (uint32_t a = 0; a < graph->planned_count; a++)
        reserved[a] = oracle_reserved(graph, a, alignment);
    for (uint64_t begun = 0; begun < UINT64_C(1) << graph->ops_count; begun++) {
        uint64_t must_end = 0;
        bool has_view = false;
        for (uint32_t v = 0; v < graph->ops_count; v++) {
            if (!(begun >> v & 1)) continue;
            has_view |= graph->ops[v].view;
            must_end |= oracle->ancestors[v];
        }
        if (!has_view && (must_end & ~begun) == 0)
            heaviest = max(heaviest, heaviest_with(graph, reserved, begun, must_end));
    }
    return heaviest;
}

/* What the search reaches is a state, and in graphs as small as these the heaviest one. */
static void worst_case_is_between_a_state_and_the_bound(void **state)
{
    (void)state;
    uint32_t missed = 0, below_bound = 0;
    for (uint64_t seed = 0; seed < TINY_GRAPHS; seed++) {
        struct random_graph_options options = random_graph_knobs(seed, TINY_OPS_MAX);
        options.early_share = seed % 2 * 60;
        struct tarn_graph *graph = random_graph(&options);
        struct order_oracle oracle;
        find_ancestors(graph, &oracle);
        uint64_t alignment = alignment_of(seed);
        struct tarn_simulation *simulation = simulate(graph, alignment, 0);
        uint64_t heaviest = heaviest_state(graph, alignment, &oracle);
        assert_true(simulation->worst <= heaviest);
        assert_true(heaviest <= simulation->worst_bound);
        assert_true(simulation->peak <= simulation->worst);
        missed += simulation->worst < heaviest;
        below_bound += heaviest < simulation->worst_bound;
        tarn_simulation_destroy(simulation);
        tarn_graph_destroy(graph);
    }
    assert_true(below_bound > 0);
    assert_int_equal(missed, 0);
}

/* Graphs too large to walk through: the search begins with what had begun at the peak. */
static void worst_case_is_no_less_than_the_peak(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < GRAPHS; seed++) {
        struct random_graph_options options =
            random_graph_knobs(seed, (uint32_t)LARGE_OPS_MAX << seed % 2);
        struct tarn_graph *graph = random_graph(&options);
        draw_costs(graph, seed, true);
        struct tarn_simulation *simulation = simulate(graph, alignment_of(seed), 0);
        assert_true(simulation->peak <= simulation->worst);
        assert_true(simulation->worst <= simulation->worst_bound);
        tarn_simulation_destroy(simulation);
        tarn_graph_destroy(graph);
    }
}

static void refuses_an_alignment_that_is_none_or_too_much(void **state)
{
    (void)state;
    struct random_graph_options options = random_graph_knobs(3, OPS_MAX);
    struct tarn_graph *graph = random_graph(&options);
    struct tarn_simulation *simulation;
    struct tarn_error error;
    assert_true(graph->planned_count > 2);
    assert_int_equal(tarn_graph_simulate(graph, 24, 0, &simulation, &error), TARN_USAGE);
    assert_non_null(strstr(error.text, "24 is not a power of two"));
    assert_int_equal(tarn_graph_simulate(graph, UINT64_C(1) << 63, 0, &simulation, &error),
                     TARN_BAD_INPUT);
    assert_non_null(strstr(error.text, "use a smaller alignment"));
    assert_null(simulation);
    tarn_graph_destroy(graph);
}

/* x needs one reader of a to have ended, y the other: no moment has all three. */
static void bound_may_exceed_every_state(void **state)
{
    (void)state;
    struct tarn_builder *b = tarn_builder_create("two readers");
    struct tarn_tensor_info output = {.size = 10, .kind = TARN_OUTPUT};
    tarn_tensor a = tarn_builder_tensor(b, &(struct tarn_tensor_info){.size = 100});
    for (tarn_stream s = 0; s < 3; s++) tarn_builder_stream(b, "s");
    tarn_builder_op(b, &(struct tarn_op_info){.stream = 0, .outputs = TARN_TENSORS(a), .cost = 5});
    for (tarn_stream s = 1; s < 3; s++) {
        tarn_tensor x = tarn_builder_tensor(b, &output);
        tarn_builder_op(b,
                        &(struct tarn_op_info){.stream = s, .inputs = TARN_TENSORS(a), .cost = 7});
        tarn_builder_op(b,
                        &(struct tarn_op_info){.stream = s, .outputs = TARN_TENSORS(x), .cost = 3});
    }
    struct tarn_graph *graph;
    assert_int_equal(tarn_builder_finish(b, &graph, NULL), TARN_OK);
    struct tarn_simulation *simulation = simulate(graph, 1, 2);
    assert_int_equal(simulation->worst, 110);
    assert_int_equal(simulation->worst_bound, 120);
    assert_int_equal(simulation->peak, 100);
    assert_int_equal(simulation->makespan_ns, 5 + 2 + 7 + 3);
    assert_int_equal(simulation->serial_ns, 25);
    tarn_simulation_destroy(simulation);
    tarn_graph_destroy(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ops_begin_when_all_that_happens_before_has_ended),
        cmocka_unit_test(memory_is_what_is_alive_at_every_moment),
        cmocka_unit_test(worst_case_is_between_a_state_and_the_bound),
        cmocka_unit_test(worst_case_is_no_less_than_the_peak),
        cmocka_unit_test(bound_may_exceed_every_state),
        cmocka_unit_test(refuses_an_alignment_that_is_none_or_too_much),
    };
    return cmocka_run_group_tests_name("simulator", tests, NULL, NULL);
}
