/* Calls on builders and graphs. */
#include <stdlib.h>
#include <string.h>

#include "calls.h"
#include "support/plan_oracle.h"
#include "support/training_graph.h"

#define OK_OR_BAD (ANY_OF(TARN_OK) | ANY_OF(TARN_BAD_INPUT))

/* ---- Building ---- */

enum { TENSORS_EXPECTED = 12, OPS_EXPECTED = 8, STREAMS_EXPECTED = 3 };

static void build_tensor(struct world *world)
{
    struct tarn_tensor_info info = {.name = next_name(world), .size = next_number(world)};
    info.kind = (enum tarn_tensor_kind)next_below(world, 7); /* the last one is none */
    if (next_byte(world) > 200) info.alignment = next_number(world);
    tarn_builder_tensor(world->builder, next_byte(world) == 255 ? NULL : &info);
}

static void build_op(struct world *world)
{
    static const uint32_t pairs[][2] = {{0, 1}, {1, 0}, {2, 3}, {0, 0}, {9, 1}};
    struct tarn_implementation choices[2] = {{0}};
    struct tarn_op_info info = {.name = next_name(world), .kind = next_name(world)};
    info.stream = next_id(world, STREAMS_EXPECTED);
    info.inputs = next_ids(world, TENSORS_EXPECTED);
    info.outputs = next_ids(world, TENSORS_EXPECTED);
    uint8_t more = next_byte(world);
    if (more & 1) info.control = next_ids(world, OPS_EXPECTED);
    if (more & 2) info.workspace = next_number(world);
    if (more & 2) info.workspace_first = next_byte(world) & 1;
    if (more & 4) info.cost = next_number(world);
    if (more & 8) info.view = true;
    if (more & 16) {
        info.inplace = pairs;
        info.inplace_count = next_below(world, 6);
    }
    if (more & 32) {
        for (int i = 0; i < 2; i++)
            choices[i] = (struct tarn_implementation){next_name(world),
                                                      next_number(world),
                                                      next_number(world),
                                                      next_ids(world, TENSORS_EXPECTED),
                                                      next_ids(world, TENSORS_EXPECTED),
                                                      next_byte(world) & 1};
        info.implementations = choices;
        info.implementations_count = next_below(world, 3);
    }
    if (more & 128) info.op_class = (enum tarn_op_class)next_below(world, 7);
    if (more & 64) info.recomputable = (enum tarn_recomputable)next_below(world, 4);
    if (more & 128) info.common = next_ids(world, TENSORS_EXPECTED);
    tarn_builder_op(world->builder, next_byte(world) == 255 ? NULL : &info);
}

static void finish(struct world *world)
{
    struct tarn_error error = fuzz_old_error();
    struct tarn_graph *graph = NULL;
    uint64_t statuses = OK_OR_BAD | ANY_OF(TARN_USAGE);
    if (!world->builder) statuses = ANY_OF(TARN_SYSTEM);
    enum tarn_status status = tarn_builder_finish(world->builder, &graph, &error);
    world->builder = NULL;
    check_result("finish", status, &error, statuses, graph);
    keep_graph(world, graph);
}

void call_builder(struct world *world)
{
    switch (next_below(world, 10)) {
    case 0:
        tarn_builder_destroy(world->builder);
        world->builder = tarn_builder_create(next_name(world));
        break;
    case 1: tarn_builder_stream(world->builder, next_name(world)); break;
    case 2:
    case 3: build_tensor(world); break;
    case 4: {
        tarn_tensor of = next_id(world, TENSORS_EXPECTED);
        uint8_t size = next_byte(world);
        if (size % 2 == 0)
            tarn_builder_alias(world->builder, of, next_name(world));
        else
            tarn_builder_slice(world->builder, of, next_byte(world), size, next_name(world));
        break;
    }
    case 5:
    case 6: build_op(world); break;
    case 7: {
        tarn_op later = next_id(world, OPS_EXPECTED);
        tarn_builder_control(world->builder, later, next_id(world, OPS_EXPECTED));
        break;
    }
    case 8: {
        struct tarn_list members = next_ids(world, TENSORS_EXPECTED);
        uint64_t offsets[UINT8_MAX + 1];
        bool has_offsets = next_byte(world) % 2 == 0;
        for (size_t i = 0; i < members.count; i++)
            offsets[i] = has_offsets && i > 0 ? next_byte(world) % 16 : 0;
        if (has_offsets)
            tarn_builder_group_offsets(world->builder, members, offsets);
        else
            tarn_builder_group(world->builder, members);
        break;
    }
    default: finish(world);
    }
}

/* Bytes alone seldom make a graph that is sound. */
void call_make_graph(struct world *world)
{
    uint8_t seed = next_byte(world);
    if (seed % 16 == 0) {
        keep_graph(world, training_graph(1 + seed % 3).graph);
    } else {
        struct random_graph_options options =
            random_graph_knobs(seed + 256u * next_byte(world), 1 + next_byte(world) % 24);
        options.size_max = 1 + seed * 16u;
        keep_graph(world, random_graph(&options));
    }
}

/* ---- Asking ---- */

static void ask_getters(struct world *world, const struct tarn_graph *graph)
{
    uint32_t op = next_id(world, tarn_graph_ops_count(graph));
    uint32_t tensor = next_id(world, tarn_graph_tensors_count(graph));
    struct tarn_op_info op_info;
    struct tarn_tensor_info tensor_info;
    const char *name = next_name(world);
    bool is_op = op < tarn_graph_ops_count(graph),
         is_tensor = tensor < tarn_graph_tensors_count(graph);
    PROMISED(tarn_graph_op(graph, op, &op_info) == is_op, "op %u", op);
    PROMISED(tarn_graph_tensor(graph, tensor, &tensor_info) == is_tensor, "tensor %u", tensor);
    PROMISED((tarn_graph_root(graph, tensor) != TARN_NONE) == is_tensor, "tensor %u", tensor);
    PROMISED(!!tarn_graph_stream_name(graph, op) == (op < tarn_graph_streams_count(graph)),
             "stream %u", op);
    if (is_op) PROMISED(tarn_graph_find_op(graph, op_info.name) <= op, "op %u", op);
    if (is_tensor)
        PROMISED(tarn_graph_find_tensor(graph, tensor_info.name) <= tensor, "tensor %u", tensor);
    tarn_graph_find_op(graph, name);
    tarn_graph_find_tensor(graph, name);
    PROMISED(!graph || tarn_graph_name(graph), "a graph has a name");
}

static void ask_changes(struct world *world, const struct tarn_graph *graph)
{
    struct tarn_error error = fuzz_old_error();
    struct tarn_change *changes = NULL;
    const struct tarn_graph *other = any_graph(world);
    size_t count = 1;
    enum tarn_status status = tarn_graph_changes(graph, other, &changes, &count, &error);
    fuzz_answered("changes", status, &error,
                  OK_OR_BAD | ANY_OF(TARN_USAGE)); /* graphs of different works */
    PROMISED(status != TARN_OK || graph != other || count == 0, "%zu changes", count);
    free(changes);
}

static void ask_pairs(struct world *world, const struct tarn_graph *graph)
{
    static const char *const methods[] = {"clocks", "ancestors", "ancestors-opt", "stream-graph",
                                          "none"};
    struct tarn_error error = fuzz_old_error();
    struct tarn_pairs pairs, clocks;
    uint32_t which = next_below(world, sizeof methods / sizeof *methods);
    bool is_wrong = !graph || which == 4 || !WITH_PAPERS;
    enum tarn_status status = tarn_graph_pairs(graph, methods[which], &pairs, &error);
    fuzz_answered("pairs", status, &error, ANY_OF(is_wrong ? TARN_USAGE : TARN_OK));
    if (is_wrong) return;
    tarn_graph_pairs(graph, "clocks", &clocks, NULL);
    PROMISED(pairs.hash == clocks.hash && pairs.pairs == clocks.pairs, "%s", methods[which]);
}

static void ask_simulation(struct world *world, const struct tarn_graph *graph)
{
    struct tarn_error error = fuzz_old_error();
    struct tarn_simulation *simulation = NULL;
    uint64_t alignment = next_number(world);
    uint32_t wait_ns = (uint32_t)next_number(world);
    enum tarn_status status = tarn_graph_simulate(graph, alignment, wait_ns, &simulation, &error);
    check_result("simulate", status, &error, OK_OR_BAD | ANY_OF(TARN_USAGE), simulation);
    if (simulation)
        PROMISED(simulation->peak <= simulation->worst &&
                     simulation->worst <= simulation->worst_bound,
                 "%llu", (unsigned long long)simulation->peak);
    tarn_simulation_destroy(simulation);
}

void call_ask_graph(struct world *world)
{
    const struct tarn_graph *graph = any_graph(world);
    struct tarn_error error = fuzz_old_error();
    struct tarn_graph_summary summary;
    uint64_t bound = 0, expected = ANY_OF(graph ? TARN_OK : TARN_USAGE);
    switch (next_below(world, 6)) {
    case 0: ask_getters(world, graph); break;
    case 1:
        fuzz_answered("summarize", tarn_graph_summarize(graph, &summary, &error), &error, expected);
        break;
    case 2:
        fuzz_answered("bound", tarn_graph_bound(graph, &bound, &error), &error, expected);
        break;
    case 3: ask_pairs(world, graph); break;
    case 4: ask_simulation(world, graph); break;
    default: ask_changes(world, graph);
    }
}

/* ---- Transforms ---- */

static enum tarn_status in_place(struct world *world, struct tarn_graph *graph,
                                 struct tarn_graph **result, struct tarn_error *error)
{
    const char *kinds[] = {next_name(world), "work"};
    return tarn_graph_in_place(
        graph, TARN_IN_PLACE_OPTIONS(.kinds = kinds, .kinds_count = next_below(world, 3)), result,
        error);
}

static enum tarn_status transform(struct world *world, struct tarn_graph *graph,
                                  struct tarn_graph **result, struct tarn_error *error)
{
    const struct tarn_transform_control control = {.struct_size = sizeof control,
                                                   .steps = 1 + next_below(world, 8)};
    uint32_t which = next_below(world, 8);
    if (which == 1 && !may_cost(world, 3)) which = 4;
    uint64_t alignment = next_byte(world) < 200 ? 0 : next_number(world);
    const char *words[] = {next_name(world), next_name(world)};
    static const double shares[] = {0, 0.5, 1, -1, 2, 1e300, 0.0 / 0.0};
    switch (which) {
    case 0:
        return tarn_graph_assign(
            graph,
            TARN_ASSIGN_OPTIONS(.communication_words = words,
                                .communication_words_count = next_below(world, 3),
                                .mode = (enum tarn_assign_mode)next_below(world, 3),
                                .streams = next_below(world, 5), .alignment = alignment,
                                .wait_ns = (uint32_t)next_number(world)),
            result, error);
    case 1:
        return tarn_graph_budget(
            graph,
            TARN_BUDGET_OPTIONS(.budget = next_number(world), .effort = 1 + next_below(world, 20),
                                .method = (enum tarn_budget_method)next_below(world, 6),
                                .alignment = alignment, .control = &control,
                                .share = shares[next_below(world, 7)]),
            result, error);
    case 2:
        return tarn_graph_reorder(
            graph,
            TARN_REORDER_OPTIONS(.alignment = alignment, .effort = 1 + next_below(world, 4),
                                 .control = &control, .keep_time = next_below(world, 2),
                                 .slowdown_max = shares[next_below(world, 7)]),
            result, error);
    case 3:
        return tarn_graph_couple(
            graph,
            TARN_COUPLE_OPTIONS(.alignment = alignment, .capacity = next_number(world),
                                .keep = shares[next_below(world, 7)],
                                .slowdown_max = shares[next_below(world, 7)], .control = &control),
            result, error);
    case 4: return in_place(world, graph, result, error);
    case 5:
        return tarn_graph_implementations(
            graph, TARN_IMPLEMENTATIONS_OPTIONS(.split_backward = next_below(world, 2)), result,
            error);
    case 6: return tarn_graph_transform(graph, NULL, result, error);
    default: /* options that say that they are of another size */
        return tarn_graph_assign(
            graph, &(struct tarn_assign_options){.struct_size = next_below(world, 12)}, result,
            error);
    }
}

void call_transform(struct world *world)
{
    struct tarn_graph *graph = any_graph(world), *result = NULL;
    struct tarn_error error = fuzz_old_error();
    if (!may_cost(world, 1)) return;
    enum tarn_status status = transform(world, graph, &result, &error);
    check_result("transform", status, &error,
                 OK_OR_BAD | ANY_OF(TARN_USAGE) | ANY_OF(TARN_DOES_NOT_FIT), result);
    PROMISED(graph || status == TARN_USAGE, "%s", error.text);
    if (result && result != graph) fuzz_round_trip(result, "t.json", ANY_OF(TARN_OK));
    keep_graph(world, result);
}

void call_graph_file(struct world *world)
{
    static const char *const names[] = {"g.json", "g.json.gz", "g.csv", "g.csv.gz", "g"};
    const struct tarn_graph *graph = any_graph(world);
    const char *name = names[next_below(world, 5)];
    struct tarn_error error = fuzz_old_error();
    if (!graph || strstr(name, ".csv"))
        fuzz_answered("save", tarn_graph_save(graph, fuzz_path(name), &error), &error,
                      ANY_OF(TARN_USAGE) | (graph ? ANY_OF(TARN_OK) : 0));
    else
        fuzz_round_trip(graph, name, ANY_OF(TARN_OK));
}

void call_curve(struct world *world)
{
    enum { ROWS = 3 };
    static const char *const names[] = {"curve.svg", "curve.csv", "-/-"};
    struct tarn_budget_report rows[ROWS];
    struct tarn_graph *graph = any_graph(world);
    struct tarn_error error = fuzz_old_error();
    size_t count = next_below(world, ROWS + 1), which = next_below(world, 3);
    const struct tarn_transform_control control = {.struct_size = sizeof control, .steps = 4};
    if (!may_cost(world, 5)) return;
    enum tarn_status status = tarn_graph_budget_curve(
        graph, TARN_BUDGET_OPTIONS(.effort = 4, .control = &control), rows, count, &error);
    fuzz_answered("curve", status, &error,
                  OK_OR_BAD | ANY_OF(TARN_USAGE) | ANY_OF(TARN_DOES_NOT_FIT));
    if (status != TARN_OK) return;
    error = fuzz_old_error();
    fuzz_answered("save",
                  tarn_budget_curve_save(graph, rows, count, fuzz_path(names[which]), &error),
                  &error, ANY_OF(which == 2 ? TARN_SYSTEM : TARN_OK));
}
