/* Graph files, as JSON and as packing instances. What is accepted says the same after a round trip,
 * and can be asked all there is to ask. */
#include "streams/graph/graph.h"
#include "fuzz.h"
#include "streams/base/checked.h"
#include "streams/plan/plan.h"

/* Graphs up to here are asked what takes more than linear time. */
enum { OPS_ASKED = 200 };

static struct tarn_graph *load(const char *path, const uint8_t *data, size_t size)
{
    struct tarn_error error = fuzz_old_error();
    struct tarn_graph *graph = (struct tarn_graph *)&error;
    fuzz_memory_begin();
    enum tarn_status status =
        tarn_graph_load(path, TARN_LOAD_OPTIONS(.text_max = FUZZ_TEXT_MAX), &graph, &error);
    fuzz_memory_check(data, size);
    fuzz_loaded("load", status, &error, path);
    PROMISED((graph != NULL) == (status == TARN_OK), "%s", error.text);
    return graph;
}

static void ask_pairs(const struct tarn_graph *graph)
{
    static const char *const methods[] = {"clocks", "ancestors", "ancestors-opt", "stream-graph"};
    struct tarn_pairs first = {0};
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        struct tarn_pairs pairs;
        struct tarn_error error = fuzz_old_error();
        enum tarn_status status = tarn_graph_pairs(graph, methods[i], &pairs, &error);
        fuzz_answered("pairs", status, &error, ANY_OF(WITH_PAPERS ? TARN_OK : TARN_USAGE));
        if (i == 0) first = pairs;
        PROMISED(pairs.hash == first.hash && pairs.unsafe == first.unsafe, "%s", methods[i]);
    }
}

static void ask(const struct tarn_graph *graph)
{
    struct tarn_graph_summary summary;
    struct tarn_simulation *simulation = NULL;
    struct tarn_error error = fuzz_old_error();
    uint64_t bound = 0;
    fuzz_answered("summarize", tarn_graph_summarize(graph, &summary, &error), &error,
                  ANY_OF(TARN_OK));
    PROMISED(summary.ops == tarn_graph_ops_count(graph), "%u", summary.ops);
    if (summary.ops > OPS_ASKED) return;
    error = fuzz_old_error();
    fuzz_answered("bound", tarn_graph_bound(graph, &bound, &error), &error, ANY_OF(TARN_OK));
    PROMISED(bound <= summary.sum, "%llu", (unsigned long long)bound);
    ask_pairs(graph);
    error = fuzz_old_error();
    fuzz_answered("simulate", tarn_graph_simulate(graph, 0, 0, &simulation, &error), &error,
                  ANY_OF(TARN_OK) | ANY_OF(TARN_BAD_INPUT));
    tarn_simulation_destroy(simulation);
}

void fuzz_graph(const uint8_t *data, size_t size)
{
    const char *path = fuzz_file("input", data, size);
    struct tarn_graph *graph = load(path, data, size);
    if (!graph) return;
    ask(graph);
    fuzz_round_trip(graph, "saved.json", ANY_OF(TARN_OK));
    tarn_graph_destroy(graph);
}

/* ---- Instances ---- */

static struct tarn_graph *load_again(const char *path)
{
    struct tarn_error error = fuzz_old_error();
    struct tarn_graph *graph = NULL;
    enum tarn_status status = tarn_graph_load(path, NULL, &graph, &error);
    fuzz_answered("load again", status, &error, ANY_OF(TARN_OK));
    return graph;
}

/* An answer is an instance that prefers the offsets of the answer. */
static void check_answer(const struct tarn_plan *plan, const struct tarn_graph *answer)
{
    PROMISED(answer->tensors_count == plan->graph->tensors_count, "%u", answer->tensors_count);
    for (uint32_t i = 0; i < answer->tensors_count; i++) {
        const struct tarn_graph_tensor *tensor = &answer->tensors[i];
        PROMISED(tensor->size == plan->graph->tensors[i].size, "tensor %u", i);
        bool is_piece =
            answer->storages[tensor->storage].group != TARN_NONE; /* one of them has it */
        if (tensor->size == 0 || (is_piece && !tensor->offset_rule)) continue;
        PROMISED(tensor->offset_rule == TARN_OFFSET_PREFERRED, "tensor %u", i);
        PROMISED(tarn_tensor_wanted(tensor) == tarn_plan_offset(plan, i), "tensor %u", i);
    }
}

/* Names that a table cannot hold become numbers, and every alignment is written where one is; the
 * second time nothing changes any more. Answers are instances as well. */
static void save_twice(struct tarn_graph *graph, const struct tarn_plan *plan)
{
    struct tarn_error error = fuzz_old_error();
    const char *path = fuzz_path("input.csv"); /* graphs are named by their files */
    fuzz_answered("save", tarn_graph_save(graph, path, &error), &error, ANY_OF(TARN_OK));
    struct tarn_graph *once = load_again(path);
    PROMISED(once->ops_count == graph->ops_count, "%u, %u", once->ops_count, graph->ops_count);
    PROMISED(once->tensors_count == graph->tensors_count, "%u", once->tensors_count);
    for (uint32_t i = 0; i < once->tensors_count; i++)
        PROMISED(once->tensors[i].size == graph->tensors[i].size, "tensor %u", i);
    fuzz_round_trip(once, "input.csv", ANY_OF(TARN_OK));
    if (plan) {
        bool is_sayable = plan->footprint <= TARN_NUMBER_MAX; /* else the file stays as it was */
        error = fuzz_old_error();
        fuzz_answered("save the answer", tarn_plan_save_intervals(plan, path, &error), &error,
                      ANY_OF(is_sayable ? TARN_OK : TARN_BAD_INPUT));
        struct tarn_graph *answer = load_again(path);
        if (is_sayable)
            check_answer(plan, answer);
        else
            fuzz_same_graph(once, answer);
        tarn_graph_destroy(answer);
    }
    tarn_graph_destroy(once);
}

static struct tarn_plan *plan_of(struct tarn_graph *graph)
{
    struct tarn_error error = fuzz_old_error();
    struct tarn_plan *plan = NULL;
    const struct tarn_plan_options *options =
        TARN_PLAN_OPTIONS(.alignment = 1, .effort = TARN_NO_EFFORT, .method = "lowest",
                          .threads = 1);
    if (tarn_graph_ops_count(graph) > OPS_ASKED) return NULL;
    enum tarn_status status = tarn_plan_create(graph, options, &plan, &error);
    fuzz_answered("plan", status, &error, ANY_OF(TARN_OK));
    return plan;
}

void fuzz_interval(const uint8_t *data, size_t size)
{
    const char *path = fuzz_file("input.csv", data, size);
    struct tarn_graph *graph = load(path, data, size);
    if (!graph) return;
    ask(graph);
    fuzz_round_trip(graph, "input.json", ANY_OF(TARN_OK));
    struct tarn_plan *plan = plan_of(graph);
    save_twice(graph, plan);
    tarn_plan_destroy(plan);
    tarn_graph_destroy(graph);
}
