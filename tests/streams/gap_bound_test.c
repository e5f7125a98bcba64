/* The bound against the smallest arena, found by trying every placement; its certificate against
 * the verifier, which must believe every right one and no wrong one; and plans of tiny graphs that
 * have everything at once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "planner/place/problem/problem.h"
#include "streams/base/region.h"
#include "streams/order/gap_bound.h"
#include "streams/plan/plan.h"
#include "support/plan_oracle.h"
#include "support/random_graph.h"
#include "tarn.h"

enum { GRAPHS = DRAWS(6000), STORAGES_MAX = 8, BLOCKS_MAX = 6, UNITS_MAX = 24, DAMAGES = 8 };

/* ---- A graph with what bounds it ---- */

struct instance {
    struct tarn_region region; /* of problem and bound */
    struct tarn_graph *graph;
    uint64_t alignment;
    struct tarn_problem problem;
    struct tarn_gap_bound bound;
};

static struct instance instance_create(const struct random_graph_options *options,
                                       uint64_t alignment)
{
    struct instance it = {.graph = random_graph(options), .alignment = alignment};
    assert_int_equal(tarn_problem_init(&it.problem, &it.region, it.graph, alignment, NULL),
                     TARN_OK);
    struct tarn_reserve reserve = tarn_problem_reserve(&it.problem, alignment);
    assert_int_equal(tarn_gap_bound_init(&it.bound, &it.region, &it.problem.antichain, &reserve,
                                         TARN_GAP_EFFORT_HIGH),
                     TARN_OK);
    return it;
}

static void instance_destroy(struct instance *it)
{
    tarn_region_finish(&it->region);
    tarn_graph_destroy(it->graph);
}

/* Few storages, many in groups, 1 to 3 streams; sizes 1 to 3 or, for real padding, up to 7. */
static struct random_graph_options tiny_options(uint64_t seed, uint64_t alignment)
{
    return (struct random_graph_options){.seed = seed,
                                         .ops = 7,
                                         .streams = (uint32_t)(1 + seed % 3),
                                         .parameters = 1,
                                         .reach = (uint32_t)(seed % 5),
                                         .control_share = 10,
                                         .dead_share = 10,
                                         .output_share = 5,
                                         .workspace_share = seed % 7 == 0 ? 20 : 0,
                                         .group_share = 70,
                                         .tiny_share = alignment > 1 ? 40 : 100,
                                         .size_max = 7};
}

static bool has_groups(const struct instance *it)
{
    return it->problem.blocks.count < it->problem.blocks.storages_count;
}

static uint64_t round_up(uint64_t bytes, uint64_t alignment)
{
    return (bytes + alignment - 1) / alignment * alignment;
}

/* ---- The smallest arena ---- */

struct arena {
    const struct instance *instance;
    uint64_t offset[STORAGES_MAX];
    uint64_t best;
};

static bool is_free(const struct arena *arena, uint32_t a, uint32_t b)
{
    const uint64_t *reserved = arena->instance->problem.blocks.reserved;
    return tarn_reuse_is_safe(&arena->instance->problem.conflicts.reuse, a, b) ||
           arena->offset[a] + reserved[a] <= arena->offset[b] ||
           arena->offset[b] + reserved[b] <= arena->offset[a];
}

static bool is_block_free(const struct arena *arena, uint32_t block)
{
    const struct tarn_blocks *blocks = &arena->instance->problem.blocks;
    const uint32_t *members = blocks->members;
    for (uint32_t i = blocks->members_begin[block]; i < blocks->members_begin[block + 1]; i++)
        for (uint32_t k = 0; k < blocks->members_begin[block]; k++)
            if (!is_free(arena, members[i], members[k])) return false;
    return true;
}

static void try_offsets(struct arena *arena, uint32_t b, uint64_t highest)
{
    const struct tarn_blocks *blocks = &arena->instance->problem.blocks;
    if (highest >= arena->best) return;
    if (b == blocks->count) {
        arena->best = highest;
        return;
    }
    const struct tarn_block block = tarn_block_at(blocks, b);
    for (uint64_t at = 0; at + block.size < arena->best; at += block.alignment) {
        for (uint32_t i = 0; i < block.members_count; i++)
            arena->offset[block.members[i]] = at + blocks->within[block.members[i]];
        uint64_t end = at + block.size;
        if (is_block_free(arena, b)) try_offsets(arena, b + 1, highest > end ? highest : end);
    }
}

static uint64_t smallest_arena(const struct instance *instance)
{
    struct arena arena = {.instance = instance, .best = 1};
    for (uint32_t b = 0; b < instance->problem.blocks.count; b++)
        arena.best += tarn_block_at(&instance->problem.blocks, b).size +
                      tarn_block_at(&instance->problem.blocks, b).alignment;
    try_offsets(&arena, 0, 0);
    return arena.best;
}

static void bound_is_never_above_the_smallest_arena(void **state)
{
    (void)state;
    uint32_t compared = 0, loose = 0, raised = 0, met = 0;
    for (uint64_t seed = 0; seed < GRAPHS; seed++) {
        uint64_t alignment = UINT64_C(1) << seed % 3;
        struct random_graph_options options = tiny_options(seed, alignment);
        struct instance it = instance_create(&options, alignment);
        if (it.problem.conflicts.reuse.count <= STORAGES_MAX && has_groups(&it)) {
            uint64_t smallest = smallest_arena(&it),
                     plain = round_up(it.problem.antichain.bound, alignment);
            assert_true(it.bound.bound <= smallest);
            assert_true(it.bound.bound >= plain);
            compared++;
            loose += plain < smallest;
            raised += it.bound.bound > plain;
            met += plain < smallest && it.bound.bound == smallest;
        }
        instance_destroy(&it);
    }
    print_message("# %u graphs, antichain below the smallest arena in %u; of these the gap bound "
                  "raises it in %u, and meets the arena in %u\n",
                  compared, loose, raised, met);
    assert_true(compared > GRAPHS / 5);
    assert_true(raised > loose / 3 && met > loose / 4);
    assert_true(HAS_FEW_DRAWS || (raised >= 323 && met >= 270)); /* as when this was written */
}

static void bound_without_groups_is_the_antichain(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 500; seed++) {
        struct random_graph_options options = random_graph_knobs(seed, 30);
        options.group_share = 0;
        struct instance it = instance_create(&options, 64);
        assert_int_equal(it.bound.bound, it.problem.antichain.bound);
        assert_int_equal(it.bound.gaps_count, 0);
        instance_destroy(&it);
    }
}

/* ---- Certificates ---- */

static struct tarn_plan *make_plan(const struct instance *it)
{
    struct tarn_plan *plan;
    struct tarn_error error;
    if (tarn_plan_create(
            it->graph,
            TARN_PLAN_OPTIONS(.alignment = it->alignment, .method = "single-object:size:first-fit"),
            &plan, &error))
        fail_msg("%s", error.text);
    return plan;
}

static bool is_wrong_bound(const struct tarn_plan *plan, const struct tarn_graph *graph)
{
    struct tarn_verdict *verdict;
    enum tarn_status status = tarn_plan_verify(plan, graph, NULL, &verdict, NULL);
    size_t count = tarn_verdict_count(verdict);
    assert_int_equal(status, count > 0 ? TARN_REJECTED : TARN_OK);
    if (count > 0) assert_int_equal(tarn_verdict_get(verdict, 0)->kind, TARN_WRONG_BOUND);
    tarn_verdict_destroy(verdict);
    return count > 0;
}

static void the_verifier_proves_exactly_the_bound(void **state)
{
    (void)state;
    uint32_t with_gaps = 0;
    for (uint64_t seed = 0; seed < 600; seed++) {
        uint64_t alignment = UINT64_C(1) << seed % 7;
        struct random_graph_options options = random_graph_knobs(seed, 60);
        options.group_share = 60;
        struct instance it = instance_create(&options, alignment);
        struct tarn_plan *plan = make_plan(&it);
        assert_true(plan->claim.bound <= it.bound.bound);
        with_gaps += plan->claim.gaps_count > 0;
        plan->claim.bound += alignment;
        assert_true(is_wrong_bound(plan, it.graph));
        tarn_plan_destroy(plan);
        instance_destroy(&it);
    }
    assert_true(with_gaps > 50);
}

/* Any thresholds and any gaps, sound or not. */
static void damage(struct tarn_plan *plan, struct random_source *source)
{
    const struct tarn_graph *graph = plan->graph;
    for (uint32_t s = 0; s < plan->streams_count; s++) {
        uint32_t length = plan->list_begin[s + 1] - plan->list_begin[s];
        if (random_percent(source, 40)) plan->claim.threshold[s] = random_below(source, length + 1);
    }
    plan->claim.gaps =
        tarn_region_take(&plan->region, graph->planned_count, sizeof *plan->claim.gaps);
    plan->claim.gaps_count = 0;
    uint32_t share = 20 * random_below(source, 6);
    for (uint32_t i = 0; i < plan->storages_count; i++)
        if (graph->storages[i].group != TARN_NONE && random_percent(source, share))
            plan->claim.gaps[plan->claim.gaps_count++] = plan->storages[i].id;
}

static void no_certificate_proves_more_than_the_smallest_arena(void **state)
{
    (void)state;
    struct random_source source = {1};
    for (uint64_t seed = 0; seed < GRAPHS / 2; seed++) {
        uint64_t alignment = UINT64_C(1) << seed % 3;
        struct random_graph_options options = tiny_options(seed, alignment);
        struct instance it = instance_create(&options, alignment);
        if (it.problem.conflicts.reuse.count <= STORAGES_MAX && has_groups(&it)) {
            struct tarn_plan *plan = make_plan(&it);
            plan->claim.bound = smallest_arena(&it) + 1;
            for (uint32_t i = 0; i < DAMAGES; i++) {
                damage(plan, &source);
                assert_true(is_wrong_bound(plan, it.graph));
            }
            tarn_plan_destroy(plan);
        }
        instance_destroy(&it);
    }
}

static void a_gap_by_another_name_or_twice_is_refused(void **state)
{
    (void)state;
    uint32_t damaged = 0;
    for (uint64_t seed = 0; seed < 200; seed++) {
        struct random_graph_options options = random_graph_knobs(seed, 60);
        options.group_share = 60;
        struct instance it = instance_create(&options, 1);
        struct tarn_plan *plan = make_plan(&it);
        if (plan->claim.gaps_count > 0) {
            uint32_t gap = plan->claim.gaps[plan->claim.gaps_count - 1];
            uint32_t *gaps =
                tarn_region_take(&plan->region, plan->claim.gaps_count + 1, sizeof *gaps);
            memcpy(gaps, plan->claim.gaps, plan->claim.gaps_count * sizeof *gaps);
            plan->claim.gaps = gaps;
            gaps[plan->claim.gaps_count++] = gap;
            assert_true(is_wrong_bound(plan, it.graph));
            plan->claim.gaps_count -= 2;
            assert_true(is_wrong_bound(plan, it.graph));
            damaged++;
        }
        tarn_plan_destroy(plan);
        instance_destroy(&it);
    }
    assert_true(damaged > 20);
}

/* ---- Everything at once ---- */

/* Groups of one and more, own alignments, aliases, writes in place, workspaces, views, control arcs
 * to ops and to views, outputs; sizes below and above the alignment. */
static struct tarn_graph *world(uint64_t seed, uint64_t alignment)
{
    struct random_graph_options options = random_graph_knobs(seed, 9);
    options.streams = (uint32_t)(1 + seed % 3);
    options.group_share = (uint32_t)(seed % 4 * 25);
    options.size_max = alignment == 512 ? 1300 : 7;
    if (alignment == 1) options.tiny_share = 100;
    return random_graph(&options);
}

static uint32_t blocks_count(const struct tarn_graph *graph)
{
    uint32_t count = 0;
    for (uint32_t a = 0; a < graph->planned_count; a++)
        count += graph->storages[a].group == TARN_NONE;
    for (uint32_t g = 0; g < graph->groups_count; g++) count += !graph->groups[g].persistent;
    return count;
}

/* Some method's plan: safe, no less than the bound; returns whether it is called optimal. */
static bool judge(struct tarn_graph *graph, uint64_t alignment, const char *method)
{
    struct tarn_plan *plan;
    struct tarn_plan_summary summary;
    struct tarn_error error;
    if (tarn_plan_create(
            graph,
            TARN_PLAN_OPTIONS(.alignment = alignment, .method = method, .threads = 1, .effort = 50),
            &plan, &error))
        fail_msg("%s, %s, alignment %u: %s", tarn_graph_name(graph), method, (unsigned)alignment,
                 error.text);
    assert_true(oracle_accepts(plan));
    tarn_plan_summarize(plan, &summary);
    uint64_t smallest =
        summary.footprint / alignment > UNITS_MAX ? UINT64_MAX : oracle_smallest_arena(plan, 0);
    if (summary.bound > smallest || (summary.optimal && summary.footprint > smallest))
        fail_msg("%s, %s, alignment %u: bound %llu, smallest arena %llu, footprint %llu",
                 tarn_graph_name(graph), method, (unsigned)alignment,
                 (unsigned long long)summary.bound, (unsigned long long)smallest,
                 (unsigned long long)summary.footprint);
    tarn_plan_destroy(plan);
    return summary.optimal;
}

static void what_is_called_optimal_is_the_smallest_arena(void **state)
{
    (void)state;
    static const uint64_t alignments[] = {1, 4, 512};
    static const char *const methods[] = {"all",
                                          "all",
                                          "lowest",
                                          "exact",
                                          WITH_PAPERS ? "llfb" : "baseline",
                                          WITH_PAPERS ? "roam-tree" : "lowest",
                                          "single-object:size:first-fit",
                                          "many-objects:breadth:best-fit:paper"};
    uint32_t judged = 0, optimal = 0;
    for (uint64_t seed = 0; seed < DRAWS(4000); seed++) {
        uint64_t alignment = alignments[seed / 4 % 3];
        struct tarn_graph *graph = world(seed, alignment);
        if (blocks_count(graph) <= BLOCKS_MAX) {
            judged++;
            optimal += judge(graph, alignment, methods[seed / 12 % 8]);
        }
        tarn_graph_destroy(graph);
    }
    print_message("# %u tiny graphs, %u plans called optimal\n", judged, optimal);
    assert_true(judged > DRAWS(2000) && optimal > DRAWS(1500));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bound_is_never_above_the_smallest_arena),
        cmocka_unit_test(bound_without_groups_is_the_antichain),
        cmocka_unit_test(the_verifier_proves_exactly_the_bound),
        cmocka_unit_test(no_certificate_proves_more_than_the_smallest_arena),
        cmocka_unit_test(a_gap_by_another_name_or_twice_is_refused),
        cmocka_unit_test(what_is_called_optimal_is_the_smallest_arena),
    };
    return cmocka_run_group_tests_name("gap_bound", tests, NULL, NULL);
}
