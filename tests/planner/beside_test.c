/* The bound for all orders of several streams against brute force: every choice of local orders of
 * small graphs, each weighed by its heaviest clique. And its certificates: what the checker accepts
 * is a bound, whatever the certificate says. The oracle knows the graph only. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "planner/transform/reorder/before.h"
#include "planner/transform/reorder/beside.h"
#include "planner/transform/reorder/reorder.h"
#include "support/arcs_oracle.h"
#include "support/heaviest.h"
#include "support/random_graph.h"
#include "tarn.h"

enum { OPS_MAX = 7, STORAGES_MAX = 14 };

struct world {
    struct tarn_graph *graph;
    uint64_t sizes[STORAGES_MAX];
    uint32_t arcs[OPS_MAX]; /* op -> ops before it by an arc */
    uint64_t optimum;       /* the lightest order's heaviest clique */
    uint32_t ever[OPS_MAX]; /* op -> ops that come before it in some order */
};

/* NULL: a graph that is not for this test. */
static struct tarn_graph *draw_graph(uint64_t seed)
{
    struct random_graph_options options = random_graph_knobs(seed, OPS_MAX);
    options.streams = 2 + (uint32_t)(seed % 3);
    options.shuffled = false;
    options.spaces = 0;
    if (options.ops < 4) options.ops = 4;
    struct tarn_graph *graph = random_graph(&options);
    if (graph->streams_count > 1 && graph->planned_count <= STORAGES_MAX) return graph;
    tarn_graph_destroy(graph);
    return NULL;
}

/* ---- The oracle ---- */

/* For each op those that come before it, if each stream runs its ops as listed. */
static void fill_before(const struct world *world, const uint32_t *list, uint32_t before[OPS_MAX])
{
    const struct tarn_graph *graph = world->graph;
    for (uint32_t i = 0; i < graph->ops_count; i++) {
        uint32_t v = list[i];
        for (uint32_t k = 0; k < i; k++) {
            uint32_t u = list[k];
            if ((world->arcs[v] >> u & 1) || graph->ops[u].stream == graph->ops[v].stream)
                before[v] |= 1u << u | before[u];
        }
    }
}

static uint64_t weigh(const struct world *world, const uint32_t *list)
{
    const struct tarn_graph *graph = world->graph;
    uint32_t before[OPS_MAX] = {0}, unsafe[STORAGES_MAX] = {0}, all = 0;
    fill_before(world, list, before);
    for (uint32_t a = 0; a < graph->planned_count; a++) {
        const struct tarn_storage *storage = &graph->storages[a];
        all |= 1u << a;
        for (uint32_t b = 0; b < graph->planned_count; b++) {
            bool precedes = !storage->pinned && a != b;
            for (uint32_t k = 0; k < storage->users_count; k++)
                precedes &=
                    before[graph->storages[b].producer] >> tarn_storage_users(graph, storage)[k] &
                    1;
            if (!precedes) continue;
            unsafe[a] |= 1u << b;
            unsafe[b] |= 1u << a;
        }
    }
    for (uint32_t a = 0; a < graph->planned_count; a++) unsafe[a] = all & ~unsafe[a] & ~(1u << a);
    return heaviest_clique(unsafe, world->sizes, all);
}

static void note_before(struct world *world, const uint32_t *list)
{
    const struct tarn_graph *graph = world->graph;
    uint32_t before[OPS_MAX] = {0};
    fill_before(world, list, before);
    for (uint32_t v = 0; v < graph->ops_count; v++) world->ever[v] |= before[v];
}

/* All lists; each gives every stream its order. */
static void visit_lists(struct world *world, uint32_t *list, uint32_t count, uint32_t run)
{
    if (count == world->graph->ops_count) {
        uint64_t weight = weigh(world, list);
        if (weight < world->optimum) world->optimum = weight;
        note_before(world, list);
    }
    for (uint32_t v = 0; v < world->graph->ops_count; v++) {
        if ((run >> v & 1) || (world->arcs[v] & ~run)) continue;
        list[count] = v;
        visit_lists(world, list, count + 1, run | 1u << v);
    }
}

static bool world_init(struct world *world, uint64_t seed)
{
    uint32_t list[OPS_MAX];
    *world = (struct world){.graph = draw_graph(seed), .optimum = UINT64_MAX};
    if (!world->graph) return false;
    for (uint32_t a = 0; a < world->graph->planned_count; a++)
        world->sizes[a] = world->graph->storages[a].size;
    for (uint32_t v = 0; v < world->graph->ops_count; v++)
        for (uint32_t u = 0; u < v; u++)
            if (must_come_before(world->graph, u, v)) world->arcs[v] |= 1u << u;
    visit_lists(world, list, 0, 0);
    return true;
}

/* ---- The bound ---- */

static void bound_is_never_above_the_lightest_order(void **state)
{
    uint32_t graphs = 0, met = 0, above_one_op = 0;
    (void)state;
    for (uint64_t seed = 0; seed < DRAWS(6000); seed++) {
        struct world world;
        struct tarn_order_certificate certificate;
        struct tarn_region region = {.chunks = NULL};
        if (!world_init(&world, seed)) continue;
        assert_int_equal(tarn_beside_bound(&certificate, &region, world.graph, world.sizes,
                                           UINT64_MAX, &(struct tarn_steps){0}),
                         TARN_OK);
        if (certificate.bound > world.optimum)
            fail_msg("seed %llu: bound %llu, optimum %llu", (unsigned long long)seed,
                     (unsigned long long)certificate.bound, (unsigned long long)world.optimum);
        assert_true(tarn_order_certificate_holds(&certificate, world.graph, world.sizes));
        graphs++;
        met += certificate.bound == world.optimum;
        above_one_op += certificate.apart_count > 1;
        tarn_region_finish(&region);
        tarn_graph_destroy(world.graph);
    }
    print_message("# %u graphs, the bound is met in %u, by several ops in %u\n", graphs, met,
                  above_one_op);
    assert_true(met > graphs * 3 / 4);
    assert_true(above_one_op > graphs / 10);
}

static void what_comes_before_in_some_order_is_found(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < DRAWS(2000); seed++) {
        struct world world;
        struct tarn_region region = {.chunks = NULL};
        struct tarn_constraints constraints;
        struct tarn_before before;
        if (!world_init(&world, seed)) continue;
        assert_int_equal(tarn_constraints_init(&constraints, &region, world.graph), TARN_OK);
        assert_int_equal(tarn_before_init(&before, &region, world.graph, &constraints), TARN_OK);
        for (uint32_t v = 0; v < world.graph->ops_count; v++) {
            uint32_t ahead = world.arcs[v];
            for (uint32_t u = v; u-- > 0;)
                if (ahead >> u & 1) ahead |= world.arcs[u];
            const uint64_t *may = tarn_before_may(&before, before.node_of[v]),
                           *by_arcs = tarn_before_ahead(&before, before.node_of[v]);
            assert_false(tarn_set_has(may, before.node_of[v]));
            for (uint32_t u = 0; u < world.graph->ops_count; u++) {
                bool is_ahead = ahead >> u & 1;
                if (world.ever[v] >> u & 1) assert_true(tarn_set_has(may, before.node_of[u]));
                assert_int_equal(tarn_set_has(by_arcs, before.node_of[u]), is_ahead);
            }
        }
        tarn_region_finish(&region);
        tarn_graph_destroy(world.graph);
    }
}

/* ---- Orders ---- */

static uint64_t weight_of(struct tarn_graph *graph, uint32_t left_out, bool keep_time,
                          struct tarn_reorder_report *report)
{
    struct tarn_graph *result;
    assert_int_equal(tarn_reorder_without(graph,
                                          TARN_REORDER_OPTIONS(.alignment = 1, .report = report,
                                                               .keep_time = keep_time),
                                          left_out, &result, NULL),
                     TARN_OK);
    assert_int_equal(heaviest_antichain(result), report->peak_after);
    tarn_graph_destroy(result);
    return report->peak_after;
}

static void other_starts_find_the_lightest_order(void **state)
{
    uint32_t graphs = 0, met = 0, met_without = 0, proved = 0;
    (void)state;
    for (uint64_t seed = 0; seed < DRAWS(3000); seed++) {
        struct world world;
        struct tarn_reorder_report report, timely;
        if (!world_init(&world, seed)) continue;
        if (world.graph->groups_count == 0) {
            uint64_t without = weight_of(world.graph, 1u << TARN_REORDER_RESTARTS, false, &report);
            uint64_t with = weight_of(world.graph, 0, false, &report);
            assert_true(with >= world.optimum && with <= without);
            assert_true(report.bound <= world.optimum);
            assert_true(weight_of(world.graph, 0, true, &timely) <= timely.peak_before);
            assert_true(timely.critical_path_ns <= timely.critical_path_before_ns);
            graphs++;
            met += with == world.optimum;
            met_without += without == world.optimum;
            proved += with == report.bound;
        }
        tarn_graph_destroy(world.graph);
    }
    print_message("# %u graphs: the lightest order in %u, without other starts in %u, proved %u\n",
                  graphs, met, met_without, proved);
    assert_true(graphs - met <= graphs / 200 && met_without < met);
    assert_true(proved > graphs * 3 / 4);
}

/* ---- Certificates ---- */

static void damage(struct tarn_order_certificate *certificate, const struct tarn_graph *graph,
                   struct random_source *source)
{
    uint32_t nodes = graph->ops_count + graph->streams_count;
    uint32_t k = random_below(source, certificate->apart_count);
    switch (random_below(source, 5)) {
    case 0: certificate->bound += 1 + random_below(source, 4000); break;
    case 1: certificate->apart[k] = random_below(source, nodes + 2); break;
    case 2: certificate->apart_count--; break;
    case 3: certificate->apart[certificate->apart_count++] = random_below(source, nodes); break;
    default: certificate->has_run[random_below(source, graph->ops_count)] ^= true;
    }
}

/* The bytes that the certificate's set leaves, so that only the proof is at fault. */
static uint64_t bytes_left(const struct tarn_order_certificate *certificate,
                           const struct tarn_graph *graph, const uint64_t *sizes)
{
    uint64_t bytes = 0;
    for (uint32_t a = 0; a < graph->planned_count; a++) {
        const struct tarn_storage *storage = &graph->storages[a];
        bool counts = storage->pinned;
        for (uint32_t k = 0; k < storage->users_count; k++) {
            uint32_t v = tarn_storage_users(graph, storage)[k];
            counts |= !certificate->has_run[v];
            for (uint32_t i = 0; i < certificate->apart_count; i++)
                counts |= certificate->apart[i] == v;
        }
        if (counts && certificate->has_run[storage->producer]) bytes += sizes[a];
    }
    return bytes;
}

static void checker_accepts_bounds_only(void **state)
{
    uint32_t refused = 0, accepted = 0;
    (void)state;
    for (uint64_t seed = 0; seed < DRAWS(3000); seed++) {
        struct world world;
        struct tarn_region region = {.chunks = NULL};
        struct random_source source = {seed};
        struct tarn_order_certificate found;
        if (!world_init(&world, seed)) continue;
        assert_int_equal(tarn_beside_bound(&found, &region, world.graph, world.sizes, UINT64_MAX,
                                           &(struct tarn_steps){0}),
                         TARN_OK);
        bool *has_run = malloc(world.graph->ops_count * sizeof *has_run);
        assert_non_null(has_run);
        for (uint32_t k = 0; k < 20 && found.bound > 0; k++) {
            struct tarn_order_certificate certificate = found;
            memcpy(has_run, found.has_run, world.graph->ops_count * sizeof *has_run);
            certificate.has_run = has_run;
            damage(&certificate, world.graph, &source);
            if (k % 2) certificate.bound = bytes_left(&certificate, world.graph, world.sizes);
            bool holds = tarn_order_certificate_holds(&certificate, world.graph, world.sizes);
            if (holds) assert_true(certificate.bound <= world.optimum);
            accepted += holds;
            refused += !holds;
        }
        found.bound++;
        if (found.bound > 1)
            assert_false(tarn_order_certificate_holds(&found, world.graph, world.sizes));
        free(has_run);
        tarn_region_finish(&region);
        tarn_graph_destroy(world.graph);
    }
    assert_true(refused > accepted && accepted > 0);
}

/* ---- Fences ---- */

enum { UPDATES = 100, LINKS = 8, STREAMS = 4, HEAVY = 1 << 20 };

static tarn_tensor tensor(struct tarn_builder *b, uint64_t size)
{
    return tarn_builder_tensor(b, &(struct tarn_tensor_info){.size = size});
}

static void run(struct tarn_builder *b, uint32_t stream, const tarn_tensor *inputs, uint32_t count,
                tarn_tensor output)
{
    tarn_builder_op(b, &(struct tarn_op_info){.stream = stream,
                                              .inputs = {inputs, count},
                                              .outputs = TARN_TENSORS(output)});
}

/* A gradient after another in stream 0, and updates by them whose ops are in any streams. Before
 * them a heavy tensor is made, after them another one, and their sum in stream 1. Updates that are
 * done before the sum need not lie beside the three, if each stream runs an op last for which the
 * sum's stream waits. */
static struct tarn_graph *sum_after_updates(uint64_t seed)
{
    struct tarn_graph *graph;
    struct random_source source = {seed};
    struct tarn_builder *b = tarn_builder_create("sum after updates");
    for (uint32_t s = 0; s < STREAMS; s++) tarn_builder_stream(b, NULL);
    tarn_tensor first = tensor(b, HEAVY), gradient[UPDATES + 1], link[UPDATES];
    run(b, 0, NULL, 0, first);
    for (uint32_t i = 0; i <= UPDATES; i++) {
        gradient[i] = tensor(b, i < UPDATES ? HEAVY / 64 : HEAVY);
        run(b, i < UPDATES ? 0 : 1, i > 0 ? &gradient[i - 1] : NULL, i > 0, gradient[i]);
    }
    tarn_tensor sum = tensor(b, HEAVY), end = tensor(b, 1);
    const tarn_tensor parts[] = {first, gradient[UPDATES]};
    for (uint32_t k = 0; k < LINKS; k++)
        for (uint32_t i = 0; i < UPDATES; i++) {
            uint64_t size = i % 8 == 0 ? 64 : HEAVY / 64;
            uint32_t stream = random_below(&source, STREAMS);
            tarn_tensor next = tensor(b, size);
            run(b, stream, k > 0 ? &link[i] : &gradient[i], 1, next);
            link[i] = next;
        }
    run(b, 1, parts, 2, sum);
    run(b, 0, &sum, 1, end);
    assert_int_equal(tarn_builder_finish(b, &graph, NULL), TARN_OK);
    return graph;
}

static void updates_do_not_lie_beside_a_heavy_sum(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 8; seed++) {
        struct tarn_graph *graph = sum_after_updates(seed), *result;
        struct tarn_reorder_report report;
        assert_int_equal(tarn_graph_reorder(graph,
                                            TARN_REORDER_OPTIONS(.alignment = 1, .report = &report),
                                            &result, NULL),
                         TARN_OK);
        assert_true(report.bound >= 3 * HEAVY);
        assert_true(report.peak_after <= report.bound + HEAVY / 1024);
        tarn_graph_destroy(result);
        tarn_graph_destroy(graph);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bound_is_never_above_the_lightest_order),
        cmocka_unit_test(what_comes_before_in_some_order_is_found),
        cmocka_unit_test(other_starts_find_the_lightest_order),
        cmocka_unit_test(checker_accepts_bounds_only),
        cmocka_unit_test(updates_do_not_lie_beside_a_heavy_sum),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
