/* Assigned streams against brute force: what must be in order is, the schedule is no better than
 * the best of all schedules and the limit no worse, chains order nothing that need not be and are
 * as few as can be. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "support/order_oracle.h"
#include "support/random_graph.h"
#include "tarn/simulate.h"
#include "tarn/transform.h"

enum {
    GRAPHS = DRAWS(3000),
    OPS_MAX = 30,
    TINY_GRAPHS = DRAWS(1500),
    TINY_OPS_MAX = 7,
    WAIT_NS = 40
};

/* ---- What must be in order ---- */

/* needs[v]: ops that must be before v by data, control and hazards, streams left out; all ops, in
 * bits. Hazards by all pairs: two ops touch a storage, one writes. */
struct needs {
    uint64_t of[ORDER_ORACLE_OPS];
    uint64_t launched;
};

static bool touches(const struct tarn_graph *graph, uint32_t v, uint32_t root, bool *writes)
{
    const struct tarn_graph_op *op = &graph->ops[v];
    bool found = *writes = false;
    for (uint32_t k = 0; k < op->inputs_count; k++)
        found |= graph->tensors[op->inputs[k]].root == root;
    for (uint32_t k = 0; k < op->outputs_count; k++)
        *writes |= graph->tensors[tarn_outputs(op)[k]].root == root;
    return found || *writes;
}

static bool is_hazard(const struct tarn_graph *graph, uint32_t u, uint32_t v)
{
    if (graph->ops[u].view || graph->ops[v].view || graph->rank[u] >= graph->rank[v]) return false;
    for (uint32_t t = 0; t < graph->tensors_count; t++) {
        bool u_writes, v_writes;
        if (graph->tensors[t].root != t) continue;
        if (touches(graph, u, t, &u_writes) && touches(graph, v, t, &v_writes) &&
            (u_writes || v_writes))
            return true;
    }
    return false;
}

static void find_needs(const struct tarn_graph *graph, struct needs *needs)
{
    memset(needs, 0, sizeof *needs);
    for (uint32_t v = 0; v < graph->ops_count; v++) {
        const struct tarn_graph_op *op = &graph->ops[v];
        const struct tarn_op_extra *extra = tarn_extra(op);
        if (!op->view) needs->launched |= UINT64_C(1) << v;
        for (uint32_t k = 0; k < extra->control_count; k++)
            needs->of[v] |= UINT64_C(1) << extra->control[k];
        for (uint32_t k = 0; k < op->inputs_count; k++) {
            uint32_t producer = graph->tensors[op->inputs[k]].producer;
            if (producer != TARN_NONE) needs->of[v] |= UINT64_C(1) << producer;
        }
        for (uint32_t u = 0; u < graph->ops_count; u++)
            if (is_hazard(graph, u, v)) needs->of[v] |= UINT64_C(1) << u;
    }
    for (uint32_t pass = 0; pass < graph->ops_count; pass++)
        for (uint32_t v = 0; v < graph->ops_count; v++)
            for (uint32_t u = 0; u < graph->ops_count; u++)
                if (needs->of[v] >> u & 1) needs->of[v] |= needs->of[u];
}

/* Happens-before of launched ops in `after`, in ids of the graph that it came from. */
static void find_order(struct tarn_graph *after, bool is_same, uint64_t *ancestors)
{
    struct order_oracle oracle;
    struct tarn_plan *plan = tarn_plan_of_graph(after);
    assert_non_null(plan);
    order_oracle_init(&oracle, plan);
    tarn_plan_destroy(plan);
    for (uint32_t v = 0; v < after->ops_count; v++) {
        uint32_t origin = is_same ? v : after->ops[v].origin;
        ancestors[origin] = 0;
        for (uint32_t u = 0; u < after->ops_count; u++)
            if (oracle.ancestors[v] >> u & 1)
                ancestors[origin] |= UINT64_C(1) << (is_same ? u : after->ops[u].origin);
    }
}

static struct tarn_graph *assign(struct tarn_graph *graph, enum tarn_assign_mode mode,
                                 uint32_t streams, struct tarn_assign_report *report)
{
    struct tarn_graph *after;
    struct tarn_error error;
    if (tarn_graph_assign(graph,
                          TARN_ASSIGN_OPTIONS(.mode = mode, .streams = streams, .wait_ns = WAIT_NS,
                                              .report = report),
                          &after, &error) != TARN_OK)
        fail_msg("%s", error.text);
    return after;
}

static void keeps_what_must_be_in_order(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < GRAPHS; seed++) {
        struct random_graph_options options = random_graph_knobs(seed, OPS_MAX);
        struct tarn_graph *graph = random_graph(&options);
        struct tarn_assign_report report;
        struct needs needs;
        uint64_t order[ORDER_ORACLE_OPS];
        enum tarn_assign_mode mode = seed % 3 == 0 ? TARN_ASSIGN_CONCURRENCY : TARN_ASSIGN_SCHEDULE;
        struct tarn_graph *after = assign(graph, mode, 1 + (uint32_t)(seed % 5), &report);
        find_needs(graph, &needs);
        find_order(after, after == graph, order);
        for (uint32_t v = 0; v < graph->ops_count; v++) {
            uint64_t launched = needs.of[v] & needs.launched;
            if (graph->ops[v].view) continue;
            if (mode == TARN_ASSIGN_CONCURRENCY)
                assert_int_equal(order[v], launched);
            else
                assert_int_equal(order[v] & launched, launched);
        }
        tarn_graph_destroy(after);
        tarn_graph_destroy(graph);
    }
}

/* ---- Reports, and plans of what was assigned ---- */

static uint64_t makespan_of(const struct tarn_graph *graph, uint32_t wait_ns)
{
    struct tarn_simulation *simulation;
    assert_int_equal(tarn_graph_simulate(graph, 1, wait_ns, &simulation, NULL), TARN_OK);
    uint64_t makespan = simulation->makespan_ns;
    tarn_simulation_destroy(simulation);
    return makespan;
}

static void check_report(const struct tarn_graph *graph, const struct tarn_graph *after,
                         const struct tarn_assign_report *report)
{
    struct tarn_graph_summary summary;
    assert_int_equal(tarn_graph_summarize(after, &summary, NULL), TARN_OK);
    assert_int_equal(report->streams, summary.streams);
    assert_int_equal(report->arcs, summary.arcs);
    assert_int_equal(report->waits, summary.arcs_kept);
    assert_int_equal(report->before_ns, makespan_of(graph, WAIT_NS));
    assert_int_equal(report->after_ns, makespan_of(after, WAIT_NS));
    assert_int_equal(report->after_no_wait_ns, makespan_of(after, 0));
    assert_true(report->chain_ns <= report->limit_ns && report->work_ns <= report->limit_ns);
    assert_true(report->limit_ns <= report->after_no_wait_ns);
    assert_true(report->after_no_wait_ns <= report->after_ns);
}

/* tarn_plan_create ends with the verifier, which proves that the plan refines the source. */
static void plans_refine_the_source_and_reports_are_true(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < GRAPHS / 4; seed++) {
        struct random_graph_options options = random_graph_knobs(seed, OPS_MAX);
        struct tarn_graph *graph = random_graph(&options);
        struct tarn_assign_report report;
        struct tarn_plan *plan;
        struct tarn_error error;
        const struct tarn_assign_options *assigned =
            TARN_ASSIGN_OPTIONS(.mode =
                                    seed % 4 == 0 ? TARN_ASSIGN_CONCURRENCY : TARN_ASSIGN_SCHEDULE,
                                .streams = 1 + (uint32_t)(seed % 5), .wait_ns = WAIT_NS,
                                .report = &report);
        const struct tarn_couple_options *coupled =
            seed % 2 == 0 ? TARN_COUPLE_OPTIONS(.slowdown_max = 0.1) : NULL;
        if (tarn_plan_create(graph,
                             TARN_PLAN_OPTIONS(.assign = assigned, .couple = coupled,
                                               .effort = TARN_NO_EFFORT, .threads = 1),
                             &plan, &error) != TARN_OK)
            fail_msg("seed %llu: %s", (unsigned long long)seed, error.text);
        if (!coupled) check_report(graph, tarn_plan_graph(plan), &report);
        tarn_plan_destroy(plan);
        tarn_graph_destroy(graph);
    }
}

/* ---- The best of all schedules ---- */

struct hunt {
    const struct tarn_graph *graph;
    const struct needs *needs;
    uint32_t streams;
    uint64_t wait_ns;
    uint64_t end[TINY_OPS_MAX], free_at[3];
    uint32_t stream[TINY_OPS_MAX];
    uint64_t best;
};

static void place(struct hunt *hunt, uint64_t done, uint32_t v, uint32_t s, uint64_t makespan);

static void hunt_on(struct hunt *hunt, uint64_t done, uint64_t makespan)
{
    if (makespan >= hunt->best) return;
    if (done == hunt->needs->launched) {
        hunt->best = makespan;
        return;
    }
    for (uint32_t v = 0; v < hunt->graph->ops_count; v++) {
        uint64_t needs = hunt->needs->of[v] & hunt->needs->launched;
        if (!(hunt->needs->launched >> v & 1) || done >> v & 1 || (needs & ~done)) continue;
        for (uint32_t s = 0; s < hunt->streams; s++) place(hunt, done, v, s, makespan);
    }
}

static void place(struct hunt *hunt, uint64_t done, uint32_t v, uint32_t s, uint64_t makespan)
{
    uint64_t before = hunt->free_at[s], begin = before;
    for (uint32_t u = 0; u < hunt->graph->ops_count; u++) {
        if (!(hunt->needs->of[v] & hunt->needs->launched & UINT64_C(1) << u)) continue;
        uint64_t at = hunt->end[u] + (hunt->stream[u] == s ? 0 : hunt->wait_ns);
        if (at > begin) begin = at;
    }
    hunt->stream[v] = s;
    hunt->end[v] = hunt->free_at[s] = begin + hunt->graph->ops[v].cost;
    hunt_on(hunt, done | UINT64_C(1) << v, hunt->end[v] > makespan ? hunt->end[v] : makespan);
    hunt->free_at[s] = before;
}

static uint64_t best_of_all(const struct tarn_graph *graph, const struct needs *needs,
                            uint32_t streams, uint64_t wait_ns)
{
    struct hunt hunt = {
        .graph = graph, .needs = needs, .streams = streams, .wait_ns = wait_ns, .best = UINT64_MAX};
    hunt_on(&hunt, 0, 0);
    return hunt.best;
}

/* Of so small graphs nine in ten are scheduled as well as can be, and the others nearly. */
static void schedule_is_between_limit_and_best(void **state)
{
    (void)state;
    uint32_t best = 0, tight = 0;
    double excess = 0;
    for (uint64_t seed = 0; seed < TINY_GRAPHS; seed++) {
        struct random_graph_options options = random_graph_knobs(seed, TINY_OPS_MAX);
        struct tarn_graph *graph = random_graph(&options);
        struct random_source source = {seed};
        struct tarn_assign_report report;
        struct needs needs;
        uint32_t streams = 2 + (uint32_t)(seed % 2);
        for (uint32_t v = 0; v < graph->ops_count; v++)
            graph->ops[v].cost = random_below(&source, 200);
        struct tarn_graph *after = assign(graph, TARN_ASSIGN_SCHEDULE, streams, &report);
        find_needs(graph, &needs);
        uint64_t with = best_of_all(graph, &needs, streams, WAIT_NS);
        uint64_t without = best_of_all(graph, &needs, streams, 0);
        assert_true(report.limit_ns <= without);
        assert_true(report.after_ns >= with);
        tight += report.limit_ns == without;
        best += report.after_ns == with;
        excess += with > 0 ? (double)(report.after_ns - with) / (double)with : 0;
        tarn_graph_destroy(after);
        tarn_graph_destroy(graph);
    }
    assert_true(best > TINY_GRAPHS * 9 / 10);
    assert_true(tight > TINY_GRAPHS * 8 / 10);
    assert_true(excess < TINY_GRAPHS * 0.01);
}

/* ---- The fewest chains ---- */

/* Most pairs (u, v) of the reduction in which no op is first twice or second twice. */
static uint32_t most_pairs(const uint64_t *before, uint32_t count, uint32_t v, uint64_t used)
{
    if (v == count) return 0;
    uint32_t most = most_pairs(before, count, v + 1, used);
    for (uint32_t u = 0; u < count; u++) {
        if (!(before[v] >> u & 1) || used >> u & 1) continue;
        uint32_t pairs = 1 + most_pairs(before, count, v + 1, used | UINT64_C(1) << u);
        if (pairs > most) most = pairs;
    }
    return most;
}

static void chains_are_the_fewest_paths(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < TINY_GRAPHS; seed++) {
        struct random_graph_options options = random_graph_knobs(seed, TINY_OPS_MAX + 4);
        options.view_share = 0;
        struct tarn_graph *graph = random_graph(&options);
        struct tarn_assign_report report;
        struct needs needs;
        uint64_t reduced[ORDER_ORACLE_OPS];
        struct tarn_graph *after = assign(graph, TARN_ASSIGN_CONCURRENCY, 0, &report);
        find_needs(graph, &needs);
        for (uint32_t v = 0; v < graph->ops_count; v++) {
            reduced[v] = needs.of[v];
            for (uint32_t u = 0; u < graph->ops_count; u++)
                if (needs.of[v] >> u & 1) reduced[v] &= ~needs.of[u];
        }
        uint32_t pairs = most_pairs(reduced, graph->ops_count, 0, 0);
        assert_int_equal(report.streams, graph->ops_count - pairs);
        tarn_graph_destroy(after);
        tarn_graph_destroy(graph);
    }
}

/* ---- Kinds ---- */

static void communication_and_copies_get_streams_of_their_own(void **state)
{
    (void)state;
    static const char *const kinds[] = {"x.h2d", "matmul", "x.all_reduce", "relu"};
    struct tarn_builder *b = tarn_builder_create("kinds");
    tarn_builder_stream(b, "all");
    for (uint32_t i = 0; i < 8; i++)
        tarn_builder_op(b, &(struct tarn_op_info){.kind = kinds[i % 4], .cost = 10});
    struct tarn_graph *graph;
    assert_int_equal(tarn_builder_finish(b, &graph, NULL), TARN_OK);
    struct tarn_assign_report report;
    struct tarn_graph *after = assign(graph, TARN_ASSIGN_SCHEDULE, 2, &report);
    assert_int_equal(report.streams, 4);
    assert_int_equal(report.after_ns, 20);
    for (uint32_t v = 0; v < after->ops_count; v++) {
        const char *kind = after->ops[v].kind;
        const char *name = after->streams[after->ops[v].stream].name;
        const char *wanted = strcmp(kind, kinds[0]) == 0   ? "copy"
                             : strcmp(kind, kinds[2]) == 0 ? "communication"
                                                           : "compute";
        assert_int_equal(strncmp(name, wanted, strlen(wanted)), 0);
    }
    tarn_graph_destroy(after);
    tarn_graph_destroy(graph);
}

static void refuses_options_that_make_no_sense(void **state)
{
    (void)state;
    struct random_graph_options options = random_graph_knobs(1, OPS_MAX);
    struct tarn_graph *graph = random_graph(&options), *after;
    const struct tarn_assign_options bad[] = {
        {.struct_size = sizeof *bad, .alignment = 3},
        {.struct_size = sizeof *bad, .streams = 1u << 16},
        {.struct_size = sizeof *bad, .mode = (enum tarn_assign_mode)7},
        {.struct_size = 0},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct tarn_error error;
        assert_int_equal(tarn_graph_assign(graph, &bad[i], &after, &error), TARN_USAGE);
        assert_true(error.text[0] != '\0');
    }
    tarn_graph_destroy(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_what_must_be_in_order),
        cmocka_unit_test(plans_refine_the_source_and_reports_are_true),
        cmocka_unit_test(schedule_is_between_limit_and_best),
        cmocka_unit_test(chains_are_the_fewest_paths),
        cmocka_unit_test(communication_and_copies_get_streams_of_their_own),
        cmocka_unit_test(refuses_options_that_make_no_sense),
    };
    return cmocka_run_group_tests_name("assign", tests, NULL, NULL);
}
