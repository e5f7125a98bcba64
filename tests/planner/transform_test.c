/* Transforms: what recipes keep, what in-place may do, what is told to have changed, and that the
 * verifier refuses what a transform with a bug would make. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "planner/transform/constraints.h"
#include "planner/transform/recipe.h"
#include "streams/graph/builder.h"
#include "streams/plan/plan.h"
#include "support/arcs_oracle.h"
#include "support/heaviest.h"
#include "support/plan_oracle.h"
#include "support/random_graph.h"
#include "tarn.h"

#define QUICK "many-objects:size:first-fit"

enum { OPS_MAX = 24, STREAMS_MAX = 4 };

static struct tarn_plan *plan_of(struct tarn_graph *graph, const struct tarn_plan_options *options)
{
    struct tarn_plan *plan;
    struct tarn_error error;
    if (tarn_plan_create(graph, options, &plan, &error) != TARN_OK) fail_msg("%s", error.text);
    return plan;
}

/* Does a plan of `final` say that it does what `source` says, and does the verifier believe it? */
static enum tarn_status verify_as(struct tarn_graph *final, const struct tarn_graph *source,
                                  struct tarn_error *error)
{
    static const char *const kinds[] = {"work"}; /* as in_place() is asked for */
    struct tarn_plan *plan = plan_of(final, TARN_PLAN_OPTIONS(.threads = 1, .method = QUICK));
    plan->source_hash = source->hash;
    plan->transformed = !tarn_hash_equal(source->hash, final->hash);
    enum tarn_status status = tarn_plan_verify(
        plan, source, TARN_VERIFY_OPTIONS(.in_place_kinds = kinds, .in_place_kinds_count = 1), NULL,
        error);
    tarn_plan_destroy(plan);
    return status;
}

/* ---- Constraints ---- */

static bool must_follow(const struct tarn_graph *graph, uint32_t v, uint32_t u)
{
    return graph->rank[u] <= graph->rank[v] && must_come_before(graph, u, v);
}

static void close(const struct tarn_graph *graph, uint32_t *before)
{
    for (uint32_t i = 0; i < graph->ops_count; i++) {
        uint32_t v = graph->order[i], direct = before[v];
        for (uint32_t u = 0; u < graph->ops_count; u++)
            if (direct >> u & 1) before[v] |= before[u];
    }
}

static void constraints_are_data_control_and_hazards(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < DRAWS(3000); seed++) {
        struct random_graph_options options = random_graph_knobs(seed, OPS_MAX);
        struct tarn_graph *graph = random_graph(&options);
        struct tarn_region region = {.chunks = NULL};
        struct tarn_constraints constraints;
        uint32_t expected[OPS_MAX] = {0}, found[OPS_MAX] = {0};
        assert_int_equal(tarn_constraints_init(&constraints, &region, graph), TARN_OK);
        assert_true(tarn_constraints_is_valid(&constraints, graph));
        for (uint32_t v = 0; v < graph->ops_count; v++) {
            const struct tarn_arcs *arcs = &constraints.predecessors;
            for (uint32_t u = 0; u < graph->ops_count; u++)
                if (u != v && must_follow(graph, v, u)) expected[v] |= 1u << u;
            for (uint32_t i = arcs->begin[v]; i < arcs->begin[v + 1]; i++) {
                assert_false(found[v] >> arcs->ops[i] & 1);
                found[v] |= 1u << arcs->ops[i];
            }
            assert_int_equal(found[v] & ~expected[v], 0);
        }
        close(graph, expected);
        close(graph, found);
        assert_memory_equal(expected, found, sizeof expected);
        tarn_region_finish(&region);
        tarn_graph_destroy(graph);
    }
}

/* ---- Recipes ---- */

static void draw_order(const struct tarn_graph *graph, struct random_source *source,
                       uint32_t *order)
{
    struct tarn_region region = {.chunks = NULL};
    struct tarn_constraints constraints;
    uint32_t has_run = 0;
    assert_int_equal(tarn_constraints_init(&constraints, &region, graph), TARN_OK);
    for (uint32_t i = 0; i < graph->ops_count;) {
        uint32_t v = random_below(source, graph->ops_count);
        bool ready = !(has_run >> v & 1);
        const struct tarn_arcs *arcs = &constraints.predecessors;
        for (uint32_t k = arcs->begin[v]; k < arcs->begin[v + 1]; k++)
            ready = ready && (has_run >> arcs->ops[k] & 1);
        if (!ready) continue;
        has_run |= 1u << v;
        order[i++] = v;
    }
    tarn_region_finish(&region);
}

static void any_legal_order_in_any_streams_is_a_refinement(void **state)
{
    static const char *const names[STREAMS_MAX] = {"chain0", "chain1", "chain2", "chain3"};
    (void)state;
    for (uint64_t seed = 0; seed < DRAWS(200); seed++) {
        struct random_graph_options options = random_graph_knobs(seed, OPS_MAX);
        struct tarn_graph *graph = random_graph(&options), *final;
        struct random_source source = {seed};
        uint32_t order[OPS_MAX], stream[OPS_MAX], tries = 100;
        struct tarn_error error;
        draw_order(graph, &source, order);
        for (uint32_t v = 0; v < graph->ops_count; v++)
            stream[v] = random_below(&source, STREAMS_MAX);
        struct tarn_recipe recipe = {.graph = graph,
                                     .order = order,
                                     .stream = stream,
                                     .stream_names = names,
                                     .streams_count = STREAMS_MAX};
        if (tarn_recipe_build(&recipe, &final, &error) != TARN_OK) fail_msg("%s", error.text);
        if (verify_as(final, graph, &error) != TARN_OK)
            fail_msg("seed %llu: %s", (unsigned long long)seed, error.text);
        struct tarn_plan *plan = plan_of(final, TARN_PLAN_OPTIONS(.threads = 1, .method = QUICK));
        assert_false(oracle_finds_harm(plan, 1, &tries));
        tarn_plan_destroy(plan);
        tarn_graph_destroy(final);
        tarn_graph_destroy(graph);
    }
}

static void a_recipe_that_changes_nothing_shares_the_graph(void **state)
{
    struct random_graph_options options = random_graph_knobs(5, OPS_MAX);
    struct tarn_graph *graph = random_graph(&options), *final;
    (void)state;
    assert_int_equal(tarn_recipe_build(&(struct tarn_recipe){.graph = graph}, &final, NULL),
                     TARN_OK);
    assert_ptr_equal(final, graph);
    tarn_graph_destroy(final);
    tarn_graph_destroy(graph);
}

/* ---- In-place ---- */

static struct tarn_graph *in_place_graph(uint64_t seed)
{
    struct random_graph_options options = random_graph_knobs(seed, 16);
    options.size_max = 1 + (uint32_t)(seed % 3); /* so that sizes are often equal */
    options.tiny_share = 0;
    return random_graph(&options);
}

static struct tarn_graph *in_place(struct tarn_graph *graph, struct tarn_in_place_report *report)
{
    static const char *const kinds[] = {"work"};
    struct tarn_graph *result;
    struct tarn_error error;
    if (tarn_graph_in_place(
            graph, TARN_IN_PLACE_OPTIONS(.kinds = kinds, .kinds_count = 1, .report = report),
            &result, &error) != TARN_OK)
        fail_msg("%s", error.text);
    return result;
}

static void in_place_refines_and_never_raises_the_bound(void **state)
{
    uint32_t merged = 0;
    (void)state;
    for (uint64_t seed = 0; seed < DRAWS(500); seed++) {
        struct tarn_graph *graph = in_place_graph(seed);
        struct tarn_in_place_report report;
        struct tarn_error error;
        struct tarn_graph *final = in_place(graph, &report);
        uint32_t tries = 100;
        assert_true(heaviest_antichain(final) <= heaviest_antichain(graph));
        assert_int_equal(final->planned_count + report.merged, graph->planned_count);
        if (verify_as(final, graph, &error) != TARN_OK)
            fail_msg("seed %llu: %s", (unsigned long long)seed, error.text);
        if (report.merged > 0 && seed % 8 == 0) {
            struct tarn_plan *plan =
                plan_of(final, TARN_PLAN_OPTIONS(.threads = 1, .method = QUICK));
            assert_false(oracle_finds_harm(plan, 1, &tries));
            tarn_plan_destroy(plan);
        }
        merged += report.merged;
        tarn_graph_destroy(final);
        tarn_graph_destroy(graph);
    }
    assert_true(merged > DRAWS(200));
}

/* reach: happens-before by brute force over data, control and stream order. */
static void fill_reach(const struct tarn_graph *graph, uint32_t *before)
{
    memset(before, 0, OPS_MAX * sizeof *before);
    for (uint32_t v = 0; v < graph->ops_count; v++) {
        const struct tarn_graph_op *op = &graph->ops[v];
        const struct tarn_op_extra *extra = tarn_extra(op);
        for (uint32_t k = 0; k < extra->control_count; k++) before[v] |= 1u << extra->control[k];
        for (uint32_t k = 0; k < op->inputs_count; k++) {
            uint32_t u = graph->tensors[op->inputs[k]].producer;
            if (u != TARN_NONE) before[v] |= 1u << u;
        }
        if (op->position > 0) before[v] |= 1u << graph->streams[op->stream].ops[op->position - 1];
    }
    close(graph, before);
}

static uint64_t footprint_with(struct tarn_graph *graph, bool reorders, bool merges)
{
    static const char *const kinds[] = {"work"};
    struct tarn_plan_options options =
        *TARN_PLAN_OPTIONS(.alignment = 1, .threads = 1, .effort = TARN_NO_EFFORT);
    const struct tarn_reorder_options reorder = *TARN_REORDER_OPTIONS(0);
    const struct tarn_in_place_options merge =
        *TARN_IN_PLACE_OPTIONS(.kinds = kinds, .kinds_count = 1);
    options.reorder = reorders ? &reorder : NULL;
    options.in_place = merges ? &merge : NULL;
    struct tarn_plan *plan = plan_of(graph, &options);
    uint64_t footprint = tarn_plan_footprint(plan);
    tarn_plan_destroy(plan);
    return footprint;
}

/* More time allowed for waits never takes more bytes than none. */
static void a_slowdown_never_costs_bytes(void **state)
{
    uint32_t less = 0;
    (void)state;
    for (uint64_t seed = 0; seed < DRAWS(96); seed++) {
        struct random_graph_options knobs = random_graph_knobs(seed, 24);
        knobs.streams = 2 + (uint32_t)(seed % 3);
        knobs.spaces = 0;
        struct tarn_graph *graph = random_graph(&knobs);
        uint64_t footprint[2];
        for (int slow = 0; slow < 2; slow++) {
            struct tarn_plan *plan = plan_of(
                graph,
                TARN_PLAN_OPTIONS(.alignment = 1, .threads = 1, .effort = TARN_NO_EFFORT,
                                  .couple = TARN_COUPLE_OPTIONS(.slowdown_max = slow ? 0.5 : 0)));
            footprint[slow] = tarn_plan_footprint(plan);
            tarn_plan_destroy(plan);
        }
        assert_true(footprint[1] <= footprint[0]);
        less += footprint[1] < footprint[0];
        tarn_graph_destroy(graph);
    }
    assert_true(less > 0);
}

/* Which of the two comes first decides what there is to gain. */
static void order_and_in_place_are_tried_either_way_round(void **state)
{
    uint32_t first_is_better = 0, last_is_better = 0;
    (void)state;
    for (uint64_t seed = 0; seed < DRAWS(200); seed++) {
        struct random_graph_options knobs = random_graph_knobs(seed, 24);
        knobs.size_max = 1 + (uint32_t)(seed % 3);
        knobs.tiny_share = knobs.group_share = knobs.spaces = 0;
        struct tarn_graph *graph = random_graph(&knobs), *merged = in_place(graph, NULL), *ordered;
        assert_int_equal(
            tarn_graph_reorder(graph, TARN_REORDER_OPTIONS(.alignment = 1), &ordered, NULL),
            TARN_OK);
        uint64_t first = footprint_with(merged, true, false);
        uint64_t last = footprint_with(ordered, false, true);
        assert_int_equal(footprint_with(graph, true, true), first < last ? first : last);
        first_is_better += first < last;
        last_is_better += last < first;
        tarn_graph_destroy(ordered);
        tarn_graph_destroy(merged);
        tarn_graph_destroy(graph);
    }
    print_message("# in place first is better in %u graphs, last in %u\n", first_is_better,
                  last_is_better);
    assert_true(first_is_better > 0);
}

/* Whatever is left of a merge that the rules allow was left because of another merge. */
static void in_place_misses_nothing_that_it_may_do(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < DRAWS(2000); seed++) {
        struct tarn_graph *graph = in_place_graph(seed);
        struct tarn_in_place_report report;
        struct tarn_graph *final = in_place(graph, &report);
        uint32_t before[OPS_MAX];
        fill_reach(final, before);
        for (uint32_t v = 0; v < final->ops_count; v++) {
            const struct tarn_graph_op *op = &final->ops[v];
            for (uint32_t i = 0; !op->view && i < op->inputs_count; i++) {
                const struct tarn_storage *from =
                    &final->storages[final->tensors[op->inputs[i]].storage];
                bool free = !from->persistent && !from->pinned && from->group == TARN_NONE;
                for (uint32_t k = 0; k < from->users_count; k++)
                    free = free && (tarn_storage_users(final, from)[k] == v ||
                                    (before[v] >> tarn_storage_users(final, from)[k] & 1));
                for (uint32_t k = 0; k < op->inputs_count; k++)
                    free = free && (op->inputs[k] == op->inputs[i] ||
                                    final->tensors[op->inputs[k]].root != from->tensor);
                for (uint32_t k = 0; k < op->outputs_count; k++)
                    free = free && final->tensors[tarn_outputs(op)[k]].root != from->tensor;
                for (uint32_t o = 0; free && o < op->outputs_count; o++) {
                    const struct tarn_graph_tensor *to = &final->tensors[tarn_outputs(op)[o]];
                    assert_false(to->root == tarn_outputs(op)[o] && to->size == from->size &&
                                 final->storages[to->storage].group == TARN_NONE);
                }
            }
        }
        tarn_graph_destroy(final);
        tarn_graph_destroy(graph);
    }
}

/* ---- One after another ---- */

static uint64_t digest_of(struct tarn_plan *plan)
{
    struct tarn_session *session;
    struct tarn_check_report report;
    struct tarn_error error;
    if (tarn_session_create(plan, tarn_device_host(NULL), NULL, &session, &error) != TARN_OK ||
        tarn_session_check(session, TARN_CHECK_OPTIONS(.iterations = 2, .delay_ns = 1000), &report,
                           &error) != TARN_OK)
        fail_msg("%s", error.text);
    tarn_session_destroy(session);
    return report.digest;
}

/* An output that lies in another storage than before counts otherwise in the digest: alike are runs
 * of what was only reordered. */
static void a_chain_of_transforms_refines_its_source_and_runs_alike(void **state)
{
    static const char *const kinds[] = {"work"};
    uint32_t transformed = 0;
    (void)state;
    for (uint64_t seed = 0; seed < DRAWS(100); seed++) {
        struct random_graph_options options = random_graph_knobs(seed, 60);
        options.size_max = 2;
        struct tarn_graph *graph = random_graph(&options);
        struct tarn_plan_options planning = *TARN_PLAN_OPTIONS(.threads = 1, .method = QUICK);
        struct tarn_plan *plain = plan_of(graph, &planning);
        planning.alignment = 1;
        planning.reorder = TARN_REORDER_OPTIONS(.effort = 10); /* rounds: as legal as 200, sooner */
        struct tarn_plan *reordered = plan_of(graph, &planning);
        planning.in_place = TARN_IN_PLACE_OPTIONS(.kinds = kinds, .kinds_count = 1);
        struct tarn_plan *both = plan_of(graph, &planning);
        transformed += both->transformed;
        assert_int_equal(tarn_plan_verify(both, graph, NULL, NULL, NULL), TARN_OK);
        if (seed % 4 == 0) {
            assert_int_equal(digest_of(reordered), digest_of(plain));
            digest_of(both);
        }
        tarn_plan_destroy(plain);
        tarn_plan_destroy(reordered);
        tarn_plan_destroy(both);
        tarn_graph_destroy(graph);
    }
    assert_true(transformed > DRAWS(40));
}

/* ---- What changed ---- */

static uint32_t count_changes(const struct tarn_graph *before, const struct tarn_graph *after,
                              enum tarn_change_kind kind)
{
    struct tarn_change *changes;
    size_t count;
    uint32_t found = 0;
    assert_int_equal(tarn_graph_changes(before, after, &changes, &count, NULL), TARN_OK);
    for (size_t i = 0; i < count; i++) found += changes[i].kind == kind;
    free(changes);
    return found;
}

/* Is what is left of the order, without the ops of a set, increasing? */
static bool is_increasing(const uint32_t *order, uint32_t count, uint32_t without)
{
    uint32_t last = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (without >> order[i] & 1) continue;
        if (order[i] < last) return false;
        last = order[i];
    }
    return true;
}

static void names_the_fewest_moved_ops(void **state)
{
    enum { COUNT = 8 };
    (void)state;
    for (uint64_t seed = 0; seed < DRAWS(500); seed++) {
        struct tarn_builder *builder = tarn_builder_create("free");
        tarn_stream stream = tarn_builder_stream(builder, "s");
        struct random_source source = {seed};
        struct tarn_graph *graph, *final;
        uint32_t order[COUNT], fewest = COUNT;
        for (uint32_t v = 0; v < COUNT; v++)
            tarn_builder_op(builder, &(struct tarn_op_info){.stream = stream});
        assert_int_equal(tarn_builder_finish(builder, &graph, NULL), TARN_OK);
        draw_order(graph, &source, order);
        struct tarn_recipe recipe = {.graph = graph, .order = order};
        assert_int_equal(tarn_recipe_build(&recipe, &final, NULL), TARN_OK);
        for (uint32_t set = 0; set < 1u << COUNT; set++) {
            uint32_t size = (uint32_t)__builtin_popcount(set);
            if (size < fewest && is_increasing(order, COUNT, set)) fewest = size;
        }
        assert_int_equal(count_changes(graph, final, TARN_MOVED), fewest);
        tarn_graph_destroy(final);
        tarn_graph_destroy(graph);
    }
}

static void names_every_merge_and_every_new_arc(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < DRAWS(200); seed++) {
        struct tarn_graph *graph = in_place_graph(seed);
        struct tarn_in_place_report report;
        struct tarn_graph *final = in_place(graph, &report);
        uint32_t roots = 0;
        for (uint32_t t = 0; t < graph->tensors_count; t++)
            roots += graph->tensors[t].root != final->tensors[t].root;
        assert_int_equal(count_changes(graph, final, TARN_MERGED), roots);
        assert_int_equal(count_changes(graph, final, TARN_MOVED), 0);
        assert_int_equal(count_changes(graph, final, TARN_ASSIGNED), 0);
        assert_int_equal(count_changes(graph, final, TARN_ORDERED), 0);
        assert_int_equal(count_changes(graph, graph, TARN_MERGED), 0);
        tarn_graph_destroy(final);
        tarn_graph_destroy(graph);
    }
}

/* ---- Transforms with a bug ----
 * Source, ops in list order, `'` a further write of the same storage:
 *
 *     0 compute  x = load()           3 compute  y' = scale(y)  after 2
 *     1 compute  y = f(x, p)          4 compute  w = h(y', z)   an output
 *     2 side     z = g(y), workspace  5 compute  p' = step(p)   after 1 */

enum bug {
    FAITHFUL,
    HAZARD_DROPPED,
    HAZARD_TURNED_ROUND,
    WRITTEN_TOO_EARLY,
    OP_LOST,
    OP_TWICE,
    ORIGINS_EXCHANGED,
    OTHER_INPUT,
    INPUTS_EXCHANGED,
    OTHER_PARAMETER,
    UNPINNED,
    OTHER_SIZE,
    WORKSPACE_LOST,
    MERGED_WHILE_READ,
    WRITE_MOVED_ELSEWHERE,
    VIEWED_INSTEAD,
    NOT_EMBEDDED,
    BUGS
};

struct toy {
    struct tarn_builder *builder;
    enum bug bug;
    uint32_t op_of[6]; /* source op -> its copy */
};

static void add_op(struct toy *toy, uint32_t v, uint32_t stream, struct tarn_list inputs,
                   struct tarn_list outputs, uint32_t after)
{
    uint32_t origin = v;
    if (toy->bug == ORIGINS_EXCHANGED && (v == 0 || v == 2)) origin = 2 - v;
    struct tarn_op_info info = {.stream = stream, .inputs = inputs, .outputs = outputs};
    info.workspace = v == 2 && toy->bug != WORKSPACE_LOST ? 128 : 0;
    info.view = v == 3 && toy->bug == VIEWED_INSTEAD;
    info.control = (struct tarn_list){&after, after != TARN_NONE};
    toy->op_of[v] = tarn_builder_op(toy->builder, &info);
    tarn_builder_origin(toy->builder, origin, 0);
}

static tarn_tensor add_tensor(struct toy *toy, uint64_t size, enum tarn_tensor_kind kind)
{
    return tarn_builder_tensor(toy->builder,
                               &(struct tarn_tensor_info){.size = size, .kind = kind});
}

static enum tarn_status build_toy(enum bug bug, struct tarn_graph **graph, struct tarn_error *error)
{
    struct toy toy = {.builder = tarn_builder_create("toy"), .bug = bug};
    tarn_stream compute = tarn_builder_stream(toy.builder, "compute");
    tarn_stream side = tarn_builder_stream(toy.builder, "side");
    tarn_tensor p = add_tensor(&toy, 64, TARN_PARAMETER), q = add_tensor(&toy, 64, TARN_PARAMETER);
    tarn_tensor x = add_tensor(&toy, 64, TARN_INTERMEDIATE);
    tarn_tensor y = add_tensor(&toy, 64, TARN_INTERMEDIATE);
    tarn_tensor z = bug == MERGED_WHILE_READ
                        ? tarn_builder_alias(toy.builder, y, "")
                        : add_tensor(&toy, bug == OTHER_SIZE ? 32 : 64, TARN_INTERMEDIATE);
    tarn_tensor y2 = bug == WRITE_MOVED_ELSEWHERE ? add_tensor(&toy, 64, TARN_INTERMEDIATE)
                                                  : tarn_builder_alias(toy.builder, y, "");
    tarn_tensor w = add_tensor(&toy, 64, bug == UNPINNED ? TARN_INTERMEDIATE : TARN_OUTPUT);
    tarn_tensor p2 = tarn_builder_alias(toy.builder, p, "");
    bool turned = bug == HAZARD_TURNED_ROUND;
    add_op(&toy, 0, compute, (struct tarn_list){0}, TARN_LIST(x), TARN_NONE);
    if (bug == WRITTEN_TOO_EARLY) add_op(&toy, 5, compute, TARN_LIST(p), TARN_LIST(p2), TARN_NONE);
    add_op(&toy, 1, compute, TARN_LIST(x, bug == OTHER_PARAMETER ? q : p), TARN_LIST(y), TARN_NONE);
    if (turned) add_op(&toy, 3, compute, TARN_LIST(y), TARN_LIST(y2), TARN_NONE);
    add_op(&toy, 2, side, TARN_LIST(y), TARN_LIST(z), turned ? toy.op_of[3] : TARN_NONE);
    if (bug == OP_TWICE)
        add_op(&toy, 0, side, (struct tarn_list){0},
               TARN_LIST(add_tensor(&toy, 64, TARN_INTERMEDIATE)), TARN_NONE);
    if (!turned)
        add_op(&toy, 3, compute, TARN_LIST(y), TARN_LIST(y2),
               bug == HAZARD_DROPPED ? TARN_NONE : toy.op_of[2]);
    struct tarn_list read = bug == OTHER_INPUT        ? TARN_LIST(x, z)
                            : bug == INPUTS_EXCHANGED ? TARN_LIST(z, y2)
                                                      : TARN_LIST(y2, z);
    add_op(&toy, 4, compute, read, TARN_LIST(w), TARN_NONE);
    if (bug != WRITTEN_TOO_EARLY && bug != OP_LOST)
        add_op(&toy, 5, compute, TARN_LIST(p), TARN_LIST(p2), toy.op_of[1]);
    return tarn_builder_finish(toy.builder, graph, error);
}

/* Something refuses the bug: the rules of graphs or the verifier. */
static bool is_refused(enum bug bug, const struct tarn_graph *source)
{
    struct tarn_graph *final;
    struct tarn_error error;
    if (build_toy(bug, &final, &error) != TARN_OK) {
        assert_int_equal(error.status, TARN_BAD_INPUT);
        return true;
    }
    struct tarn_plan *plan = plan_of(final, NULL);
    plan->source_hash = source->hash;
    plan->transformed = bug != NOT_EMBEDDED;
    if (bug == NOT_EMBEDDED) final->hash.word[0] ^= 1;
    enum tarn_status status = tarn_plan_verify(plan, source, NULL, NULL, &error);
    assert_true(status == TARN_OK || status == TARN_REJECTED);
    tarn_plan_destroy(plan);
    tarn_graph_destroy(final);
    return status == TARN_REJECTED;
}

static void every_kind_of_bug_is_refused(void **state)
{
    struct tarn_graph *source;
    (void)state;
    assert_int_equal(build_toy(FAITHFUL, &source, NULL), TARN_OK);
    assert_false(is_refused(FAITHFUL, source));
    for (int bug = FAITHFUL + 1; bug < BUGS; bug++)
        if (!is_refused((enum bug)bug, source)) fail_msg("bug %d went through", bug);
    tarn_graph_destroy(source);
}

/* ---- Steps ---- */

struct watched {
    struct tarn_transform_control control;
    uint64_t steps;
    uint64_t stop_at; /* 0: never */
    bool stop;
};

static void watch(void *user, const struct tarn_transform_progress *progress)
{
    struct watched *watched = user;
    assert_int_equal(progress->step, ++watched->steps);
    assert_true(progress->bytes > 0);
    watched->stop = watched->steps == watched->stop_at;
}

/* Reordered and coupled by what `watched` says; peak or bound is returned. */
static uint64_t search_with(struct tarn_graph *graph, bool couple, struct watched *watched,
                            struct tarn_graph **result)
{
    struct tarn_reorder_report reordered;
    struct tarn_couple_report coupled = {0};
    watched->control.struct_size = sizeof watched->control;
    watched->control.progress = watch;
    watched->control.user = watched;
    watched->control.stop = &watched->stop;
    watched->steps = 0;
    watched->stop = false;
    if (couple)
        assert_int_equal(
            tarn_graph_couple(graph,
                              TARN_COUPLE_OPTIONS(.control = &watched->control, .report = &coupled),
                              result, NULL),
            TARN_OK);
    else
        assert_int_equal(tarn_graph_reorder(graph,
                                            TARN_REORDER_OPTIONS(.control = &watched->control,
                                                                 .effort = 6, .report = &reordered),
                                            result, NULL),
                         TARN_OK);
    tarn_couple_report_finish(&coupled);
    return couple ? coupled.bound : reordered.peak_after;
}

/* Every number of steps at first, then larger strides, and always the last one. */
static uint64_t later(uint64_t steps, uint64_t last)
{
    uint64_t next = steps + 1 + steps / 4;
    return steps < last && next > last ? last : next;
}

/* A budget is kept to, and gives the same every time; all steps give what no budget does; who stops
 * in the first step gets no second one. */
static void steps_are_counted_told_and_limited(void **state)
{
    (void)state;
    struct tarn_graph *graph, *result[2];
    assert_int_equal(tarn_graph_load(TARN_SOURCE_DIR
                                     "/examples/graphs/googlenet_b1_adam.ddp_branch4.json.gz",
                                     NULL, &graph, NULL),
                     TARN_OK);
    for (int couple = 0; couple < 2; couple++) {
        struct watched free_run = {.stop_at = 0}, limited;
        uint64_t free_bytes = search_with(graph, couple, &free_run, &result[0]);
        tarn_graph_destroy(result[0]);
        assert_true(free_run.steps > 1);
        for (uint64_t last = free_run.steps, steps = 1; steps <= last; steps = later(steps, last)) {
            uint64_t bytes[2];
            for (int i = 0; i < 2; i++) {
                limited = (struct watched){.control.steps = steps};
                bytes[i] = search_with(graph, couple, &limited, &result[i]);
                assert_int_equal(limited.steps, steps);
            }
            assert_int_equal(bytes[0], bytes[1]);
            assert_true(tarn_hash_equal(result[0]->hash, result[1]->hash));
            if (steps == free_run.steps) assert_int_equal(bytes[0], free_bytes);
            tarn_graph_destroy(result[0]);
            tarn_graph_destroy(result[1]);
        }
        limited = (struct watched){.stop_at = 1};
        search_with(graph, couple, &limited, &result[0]);
        assert_int_equal(limited.steps, 1);
        tarn_graph_destroy(result[0]);
    }
    tarn_graph_destroy(graph);
}

/* A control without a stop of its own, given for its progress, leaves the plan's in force. */
static void a_stop_of_the_plan_ends_transforms_that_are_watched(void **state)
{
    (void)state;
    struct tarn_graph *graph, *result;
    struct watched watched = {.stop_at = 1};
    watched.control = (struct tarn_transform_control){
        .struct_size = sizeof watched.control, .progress = watch, .user = &watched};
    assert_int_equal(tarn_graph_load(TARN_SOURCE_DIR
                                     "/examples/graphs/googlenet_b1_adam.ddp_branch4.json.gz",
                                     NULL, &graph, NULL),
                     TARN_OK);
    assert_int_equal(
        tarn_graph_transform(
            graph,
            TARN_PLAN_OPTIONS(.stop = &watched.stop,
                              .couple = TARN_COUPLE_OPTIONS(.control = &watched.control)),
            &result, NULL),
        TARN_OK);
    assert_int_equal(watched.steps, 1);
    tarn_graph_destroy(result);
    tarn_graph_destroy(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(constraints_are_data_control_and_hazards),
        cmocka_unit_test(any_legal_order_in_any_streams_is_a_refinement),
        cmocka_unit_test(a_recipe_that_changes_nothing_shares_the_graph),
        cmocka_unit_test(in_place_refines_and_never_raises_the_bound),
        cmocka_unit_test(a_slowdown_never_costs_bytes),
        cmocka_unit_test(order_and_in_place_are_tried_either_way_round),
        cmocka_unit_test(in_place_misses_nothing_that_it_may_do),
        cmocka_unit_test(a_chain_of_transforms_refines_its_source_and_runs_alike),
        cmocka_unit_test(names_the_fewest_moved_ops),
        cmocka_unit_test(names_every_merge_and_every_new_arc),
        cmocka_unit_test(every_kind_of_bug_is_refused),
        cmocka_unit_test(steps_are_counted_told_and_limited),
        cmocka_unit_test(a_stop_of_the_plan_ends_transforms_that_are_watched),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
