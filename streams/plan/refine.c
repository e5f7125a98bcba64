/* Refinement: the program does what the source graph says. Every source op occurs, every op of the
 * final graph is a copy of its origin, and every input resolves to the same storage version as in
 * the source graph in list order. A version is known across graphs by the origin of the op that
 * wrote it and the output through which it did. Only recomputable ops occur twice.
 * Cost: linear in both graphs. */
#include <stdlib.h>

#include "../graph/report.h"
#include "verdict.h"
#include "versions.h"

struct comparison {
    const struct tarn_plan *plan;
    const struct tarn_graph *source, *final;
    struct tarn_verdict *verdict;
    struct tarn_versions expected; /* of the source graph, in list order */
    struct tarn_versions actual;   /* of the final graph, in launch order */
};

/* ---- Shape ---- */

static void add_shape(struct comparison *all, uint32_t v, const char *what)
{
    struct tarn_violation violation = tarn_violation_of(TARN_WRONG_GRAPH);
    violation.op = v;
    tarn_verdict_add(all->verdict, &violation, NULL, "%s %s", tarn_op_label(all->final, v).text,
                     what);
}

static bool has_same_tensors(const struct comparison *all, const uint32_t *final,
                             const uint32_t *source, uint32_t count)
{
    for (uint32_t k = 0; k < count; k++) {
        const struct tarn_graph_tensor *a = &all->final->tensors[final[k]];
        const struct tarn_graph_tensor *b = &all->source->tensors[source[k]];
        if (a->size != b->size ||
            tarn_kind_is_persistent(a->kind) != tarn_kind_is_persistent(b->kind))
            return false;
        if (a->kind != TARN_OUTPUT && b->kind == TARN_OUTPUT) return false;
    }
    return true;
}

static bool has_workspace(const struct tarn_graph_op *op, const struct tarn_graph_op *origin)
{
    if (op->implementation == TARN_NONE) return op->workspace == origin->workspace;
    return op->implementation < origin->implementations_count &&
           op->workspace == origin->implementations[op->implementation].workspace;
}

/* Is op v of the final graph a copy of its origin? */
static bool check_copy(struct comparison *all, uint32_t v)
{
    const struct tarn_graph_op *op = &all->final->ops[v];
    if (op->origin >= all->source->ops_count || all->source->ops[op->origin].view) {
        add_shape(all, v, "names no launched op of the source graph as its origin");
        return false;
    }
    const struct tarn_graph_op *origin = &all->source->ops[op->origin];
    if (op->inputs_count != origin->inputs_count || op->outputs_count != origin->outputs_count ||
        !has_same_tensors(all, op->inputs, origin->inputs, op->inputs_count) ||
        !has_same_tensors(all, op->outputs, origin->outputs, op->outputs_count)) {
        add_shape(all, v, "has not the inputs and outputs of its origin");
        return false;
    }
    if (!has_workspace(op, origin)) add_shape(all, v, "has not the workspace of its origin");
    return true;
}

static void add_count(struct comparison *all, uint32_t origin, const char *what)
{
    struct tarn_violation violation = tarn_violation_of(TARN_MISSING);
    violation.op = origin;
    tarn_verdict_add(all->verdict, &violation, NULL, "%s of the source graph %s",
                     tarn_op_label(all->source, origin).text, what);
}

static bool check_shape(struct comparison *all)
{
    size_t before = all->verdict->count;
    uint32_t *copies = calloc((size_t)all->source->ops_count + 1, sizeof *copies);
    if (!copies) {
        all->verdict->no_memory = true;
        return false;
    }
    for (uint32_t v = 0; v < all->final->ops_count; v++) {
        if (all->final->ops[v].view || !check_copy(all, v)) continue;
        copies[all->final->ops[v].origin]++;
    }
    for (uint32_t v = 0; v < all->source->ops_count; v++) {
        const struct tarn_graph_op *op = &all->source->ops[v];
        if (op->view) continue;
        if (copies[v] == 0) add_count(all, v, "is absent from the plan's graph");
        if (copies[v] > 1 && op->recomputable == TARN_NOT_RECOMPUTABLE)
            add_count(all, v, "runs more than once, but is not recomputable");
    }
    free(copies);
    return all->verdict->count == before;
}

/* ---- Versions ---- */

/* Through which output does an op write a storage? */
static uint32_t output_of(const struct tarn_graph *graph, uint32_t v, uint32_t storage)
{
    const struct tarn_graph_op *op = &graph->ops[v];
    uint32_t k = op->inputs_count;
    while (tarn_slot_storage(graph, op, k) != storage) k++;
    return k;
}

static bool is_same_version(const struct comparison *all, uint32_t writer, uint32_t storage,
                            uint32_t source_writer, uint32_t source_storage)
{
    if (writer == TARN_NONE || source_writer == TARN_NONE) {
        /* the content from before the iteration; transforms keep the ids of persistent tensors */
        return writer == source_writer &&
               all->final->storages[storage].tensor == all->source->storages[source_storage].tensor;
    }
    return tarn_plan_origin(all->plan, writer) == source_writer &&
           output_of(all->final, writer, storage) ==
               output_of(all->source, source_writer, source_storage);
}

/* The source writes a fresh storage where the final graph writes over what the op itself has read:
 * nobody else reads that version later, or it would show there. */
static bool is_own_input(const struct tarn_graph *graph, const struct tarn_graph_op *op,
                         uint32_t storage)
{
    for (uint32_t k = 0; k < op->inputs_count; k++) {
        if (tarn_slot_storage(graph, op, k) == storage) return true;
    }
    return false;
}

static void report_version(struct comparison *all, uint32_t v, uint32_t slot, uint32_t writer,
                           uint32_t source_writer)
{
    const struct tarn_graph_op *op = &all->final->ops[v];
    uint32_t storage = tarn_slot_storage(all->final, op, slot);
    struct tarn_violation violation = tarn_violation_of(TARN_HAZARD_LOST);
    violation.op = v;
    violation.other_op = writer;
    violation.tensor = all->final->storages[storage].tensor;
    struct tarn_suspects who = {{0}, 1};
    tarn_verdict_add(
        all->verdict, &violation, &who,
        "%s must see %s as %s left it, but finds it as %s left it: the launch order "
        "breaks a hazard",
        tarn_op_label(all->final, v).text, tarn_storage_label(all->final, storage).text,
        source_writer == TARN_NONE ? "the previous iteration"
                                   : tarn_op_label(all->source, source_writer).text,
        writer == TARN_NONE ? "the previous iteration" : tarn_op_label(all->final, writer).text);
}

static void check_op(struct comparison *all, uint32_t v)
{
    uint32_t v_source = tarn_plan_origin(all->plan, v);
    const struct tarn_graph_op *op = &all->final->ops[v], *origin = &all->source->ops[v_source];
    const uint32_t *actual = all->actual.writer + all->actual.begin[v];
    const uint32_t *expected = all->expected.writer + all->expected.begin[v_source];
    for (uint32_t k = 0; k < tarn_slots_count(op); k++) {
        uint32_t storage = tarn_slot_storage(all->final, op, k);
        uint32_t source_storage = tarn_slot_storage(all->source, origin, k);
        bool fresh = k >= op->inputs_count && expected[k] == TARN_NONE &&
                     !all->source->storages[source_storage].persistent;
        if (fresh && (actual[k] == TARN_NONE || is_own_input(all->final, op, storage))) continue;
        if (!is_same_version(all, actual[k], storage, expected[k], source_storage))
            report_version(all, v, k, actual[k], expected[k]);
    }
}

static enum tarn_status check_versions(struct comparison *all, const struct tarn_program *program)
{
    uint32_t *launched = malloc(((size_t)program->steps_count + 1) * sizeof *launched);
    if (!launched) return TARN_SYSTEM;
    for (uint32_t i = 0; i < program->steps_count; i++)
        launched[i] = program->steps[program->order[i]].op;
    enum tarn_status status = TARN_SYSTEM;
    if (tarn_versions_init(&all->expected, all->source, all->source->order,
                           all->source->ops_count) == TARN_OK &&
        tarn_versions_init(&all->actual, all->final, launched, program->steps_count) == TARN_OK) {
        for (uint32_t i = 0; i < program->steps_count; i++) check_op(all, launched[i]);
        status = TARN_OK;
    }
    tarn_versions_finish(&all->expected);
    tarn_versions_finish(&all->actual);
    free(launched);
    return status;
}

enum tarn_status tarn_verify_refinement(const struct tarn_plan *plan,
                                        const struct tarn_graph *source,
                                        const struct tarn_program *program,
                                        struct tarn_verdict *verdict)
{
    struct comparison all = {
        .plan = plan, .source = source, .final = plan->graph, .verdict = verdict};
    bool transformed = !tarn_hash_equal(source->hash, plan->graph->hash);
    if (transformed && !check_shape(&all)) return verdict->no_memory ? TARN_SYSTEM : TARN_OK;
    return check_versions(&all, program);
}
