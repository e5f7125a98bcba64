/* Calls on plans. */
#include <string.h>

#include "calls.h"
#include "support/plan_oracle.h"

/* ---- Making ---- */

/* A plan keeps what was asked of it, and the verifier and the oracle accept it. */
static void check_plan(const struct tarn_plan *plan, struct tarn_graph *source,
                       const struct tarn_plan_options *options)
{
    struct tarn_plan_summary summary;
    struct tarn_error error = fuzz_old_error();
    tarn_plan_summarize(plan, &summary);
    fuzz_answered("verify", tarn_plan_verify(plan, source, NULL, NULL, &error), &error,
                  ANY_OF(TARN_OK));
    PROMISED(summary.footprint >= summary.bound, "%llu", (unsigned long long)summary.footprint);
    PROMISED(!options->capacity || summary.footprint <= options->capacity, "%llu",
             (unsigned long long)summary.footprint);
    PROMISED(summary.optimal == (summary.footprint == summary.bound), "%llu",
             (unsigned long long)summary.bound);
    PROMISED(!options->alignment || summary.alignment == options->alignment, "%llu",
             (unsigned long long)summary.alignment);
    if (plan->graph->ops_count <= FUZZ_ORACLE_OPS_MAX)
        PROMISED(oracle_accepts(plan), "the verifier accepts what the oracle does not");
}

static void draw_transforms(struct world *world, struct tarn_plan_options *options)
{
    static const struct tarn_transform_control control = {.struct_size = sizeof control,
                                                          .steps = 4};
    static const struct tarn_assign_options assign = {.struct_size = sizeof assign, .streams = 2};
    static const struct tarn_reorder_options reorder = {
        .struct_size = sizeof reorder, .effort = 2, .control = &control};
    static const struct tarn_couple_options couple = {.struct_size = sizeof couple,
                                                      .control = &control};
    static const struct tarn_in_place_options in_place = {.struct_size = sizeof in_place};
    static const struct tarn_budget_options budget = {
        .struct_size = sizeof budget, .effort = 10, .control = &control};
    uint8_t which = next_byte(world);
    if (which < 128) return;
    if (which & 1) options->assign = &assign;
    if (which & 2) options->reorder = &reorder;
    if (which & 4) options->couple = &couple;
    if (which & 8) options->in_place = &in_place;
    if (which & 16) options->budget = &budget;
}

void call_make_plan(struct world *world)
{
    static const char *const methods[] = {
        NULL,        "all",  "baseline", "lowest", "many-objects:size:first-fit",
        "roam-tree", "llfb", "exact",    "none",   ""};
    static const double seconds[] = {0, 0, 0, 0.01, -1, 1e300, 0.0 / 0.0};
    struct tarn_graph *graph = any_graph(world);
    struct calls_plan *place = any_plan(world);
    struct tarn_plan_options options = {.struct_size = sizeof options, .effort = 1};
    struct tarn_error error = fuzz_old_error();
    struct tarn_plan *plan = NULL;
    uint32_t method = next_below(world, sizeof methods / sizeof *methods);
    if (!may_cost(world, 1)) return;
    options.method = methods[method];
    options.threads = next_below(world, 3);
    options.alignment = next_byte(world) < 128 ? 0 : next_number(world);
    options.capacity = next_byte(world) < 128 ? 0 : next_number(world);
    if (next_byte(world) < 128) options.effort = TARN_NO_EFFORT;
    options.seconds = seconds[next_below(world, sizeof seconds / sizeof *seconds)];
    if (options.seconds > 1) options.seconds = 0;
    options.boundary = (enum tarn_boundary)next_below(world, 3);
    draw_transforms(world, &options);
    if (options.budget && !may_cost(world, 3)) return;
    enum tarn_status status = tarn_plan_create(graph, &options, &plan, &error);
    check_result("plan", status, &error,
                 ANY_OF(TARN_OK) | ANY_OF(TARN_USAGE) | ANY_OF(TARN_DOES_NOT_FIT) |
                     ANY_OF(TARN_BAD_INPUT) |
                     (options.budget && options.seconds > 0 ? ANY_OF(TARN_DEADLINE) : 0),
                 plan);
    PROMISED(graph || status == TARN_USAGE, "%s", error.text);
    PROMISED(status != TARN_DOES_NOT_FIT || options.capacity || options.budget, "%s", error.text);
    if (!plan) return;
    check_plan(plan, graph, &options);
    tarn_plan_destroy(place->plan);
    *place = (struct calls_plan){plan, graph};
}

/* ---- Asking ---- */

/* What a runtime of somebody's own would ask. */
static void ask_contents(struct world *world, const struct tarn_plan *plan)
{
    const struct tarn_graph *graph = tarn_plan_graph(plan);
    uint32_t ops = tarn_graph_ops_count(graph), streams = tarn_graph_streams_count(graph);
    uint32_t tensors = tarn_graph_tensors_count(graph);
    uint32_t stream = next_id(world, streams), op = next_id(world, ops);
    uint32_t tensor = next_id(world, tensors);
    struct tarn_list launches = tarn_plan_launches(plan, stream);
    struct tarn_waits waits = tarn_plan_waits(plan), boundary = tarn_plan_boundary_waits(plan);
    struct tarn_certificate certificate;
    struct tarn_plan_summary summary;
    uint64_t offset, size;
    tarn_plan_summarize(plan, &summary);
    for (size_t i = 0; i < launches.count; i++) PROMISED(launches.ids[i] < ops, "%zu", i);
    PROMISED(stream < streams || launches.count == 0, "stream %u", stream);
    PROMISED(waits.count == summary.waits && boundary.count == summary.boundary_waits, "%zu, %zu",
             waits.count, boundary.count);
    for (size_t i = 0; i < waits.count; i++)
        PROMISED(waits.waits[i].op < ops && waits.waits[i].on < ops, "%zu", i);
    PROMISED((tarn_plan_op_origin(plan, op) != TARN_NONE) == (op < ops), "op %u", op);
    PROMISED((tarn_plan_tensor_origin(plan, tensor) != TARN_NONE) == (tensor < tensors), "%u",
             tensor);
    if (op >= ops) PROMISED(tarn_plan_op_implementation(plan, op) == TARN_NONE, "op %u", op);
    tarn_plan_op_is_recomputed(plan, op);
    if (tarn_plan_group(plan, next_below(world, 4), &offset, &size) == TARN_OK)
        PROMISED(size > 0 && offset != UINT64_MAX, "%llu", (unsigned long long)size);
    if (tarn_plan_certificate(plan, &certificate))
        PROMISED(certificate.bound == summary.bound && certificate.streams_count == streams, "%zu",
                 certificate.streams_count);
}

void call_ask_plan(struct world *world)
{
    struct calls_plan *of = any_plan(world);
    const struct tarn_graph *graph = tarn_plan_graph(of->plan);
    uint32_t tensor = next_id(world, tarn_graph_tensors_count(graph));
    uint32_t op = next_id(world, tarn_graph_ops_count(graph));
    struct tarn_op_info info;
    ask_contents(world, of->plan);
    uint64_t offset = tarn_plan_offset(of->plan, tensor);
    uint64_t workspace = tarn_plan_workspace_offset(of->plan, op);
    PROMISED((offset != UINT64_MAX) == (tensor < tarn_graph_tensors_count(graph)), "tensor %u",
             tensor);
    bool has_workspace = tarn_graph_op(graph, op, &info) && info.workspace > 0;
    PROMISED((workspace != UINT64_MAX) == has_workspace, "op %u", op);
    struct tarn_error error = fuzz_old_error();
    struct tarn_graph *source = next_byte(world) < 200 ? of->source : any_graph(world);
    enum tarn_status status = tarn_plan_verify(of->plan, source, NULL, NULL, &error);
    fuzz_answered("verify", status, &error,
                  ANY_OF(TARN_OK) | ANY_OF(TARN_USAGE) | ANY_OF(TARN_REJECTED));
    PROMISED((status == TARN_USAGE) == (!of->plan || !source), "%s", error.text);
    PROMISED(source != of->source || status != TARN_REJECTED, "%s", error.text);
}

/* Whole lists and waits as well: what is loaded says what was saved. */
void call_plan_file(struct world *world)
{
    static const char *const names[] = {"p.json", "p.json.gz", "p.csv"};
    struct calls_plan *of = any_plan(world);
    const char *path = fuzz_path(names[next_below(world, 3)]);
    struct tarn_error error = fuzz_old_error();
    struct tarn_plan *again = NULL;
    struct tarn_plan_summary summary;
    tarn_plan_summarize(of->plan, &summary);
    uint64_t largest = summary.footprint | summary.persistent | summary.alignment;
    bool fits = largest < UINT64_C(1) << 53;
    uint64_t statuses = ANY_OF(!of->plan ? TARN_USAGE : fits ? TARN_OK : TARN_BAD_INPUT);
    if (strstr(path, ".csv")) statuses |= ANY_OF(TARN_USAGE);
    enum tarn_status status = tarn_plan_save(of->plan, path, &error);
    fuzz_answered("save", status, &error, statuses);
    if (status != TARN_OK || strstr(path, ".csv") || !of->source) return;
    error = fuzz_old_error();
    status = tarn_plan_load(path, of->source, TARN_VERIFY, NULL, &again, &error);
    check_result("load", status, &error, ANY_OF(TARN_OK), again);
    struct tarn_plan_identity identity = tarn_plan_identify(of->plan);
    fuzz_answered("expect", tarn_plan_expect(again, &identity, &error), &error, ANY_OF(TARN_OK));
    tarn_plan_destroy(of->plan);
    of->plan = again;
}
