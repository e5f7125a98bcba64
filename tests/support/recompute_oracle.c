/* The plan runs over atoms: the pieces of the arena and of the persistent part between any two ends
 * of places, each of which holds one value. Bytes that two storages share without an order between
 * their users hold a wrong value in some order. Cost: iterations x launches x (waits + reads and
 * writes x atoms of a place). */
#include "recompute_oracle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "recompute_meaning.h"

static void *take(size_t count, size_t size)
{
    void *memory = calloc(count + 1, size);
    if (!memory) abort();
    return memory;
}

/* ---- The plan at work ---- */

struct stage {
    const struct recompute_meaning *meaning;
    const struct tarn_plan *plan;
    uint32_t *begin, *end; /* storage of the plan's graph -> its atoms */
    uint64_t *atoms;
    uint64_t *ends;     /* of places, sorted: where atoms begin and end */
    uint8_t *yielded;   /* iteration x output of the source: has been made */
    uint8_t *run;       /* iteration x op of the source: has run */
    uint32_t *ended;    /* op -> iterations of it that have ended */
    uint32_t *launched; /* stream -> launches so far */
    char *why;
};

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* The persistent part lies behind the arena. */
static uint64_t address_of(const struct tarn_plan *plan, uint32_t storage)
{
    return tarn_plan_place(plan, storage)->offset +
           (storage < plan->graph->planned_count ? 0 : plan->footprint);
}

static uint32_t atom_at(const struct stage *stage, uint64_t address, uint32_t count)
{
    return (uint32_t)((const uint64_t *)bsearch(&address, stage->ends, count, sizeof address,
                                                by_value) -
                      stage->ends);
}

static void cut_into_atoms(struct stage *stage)
{
    const struct tarn_plan *plan = stage->plan;
    uint32_t storages = plan->graph->storages_count, count = 0, kept = 0;
    stage->begin = take(storages, sizeof *stage->begin);
    stage->end = take(storages, sizeof *stage->end);
    stage->ends = take(2 * (size_t)storages, sizeof *stage->ends);
    for (uint32_t a = 0; a < storages; a++) {
        stage->ends[count++] = address_of(plan, a);
        stage->ends[count++] = address_of(plan, a) + plan->graph->storages[a].size;
    }
    qsort(stage->ends, count, sizeof *stage->ends, by_value);
    for (uint32_t i = 0; i < count; i++) {
        if (kept == 0 || stage->ends[i] != stage->ends[kept - 1])
            stage->ends[kept++] = stage->ends[i];
    }
    stage->atoms = take(kept, sizeof *stage->atoms);
    for (uint32_t a = 0; a < storages; a++) {
        uint64_t address = address_of(plan, a);
        stage->begin[a] = atom_at(stage, address, kept);
        stage->end[a] = atom_at(stage, address + plan->graph->storages[a].size, kept);
    }
}

static uint64_t read_storage(const struct stage *stage, uint32_t storage)
{
    uint64_t value = stage->atoms[stage->begin[storage]];
    for (uint32_t i = stage->begin[storage]; i < stage->end[storage]; i++) {
        if (stage->atoms[i] != value) return recompute_mixed(value, stage->atoms[i]); /* damaged */
    }
    return value;
}

static void write_storage(struct stage *stage, uint32_t storage, uint64_t value)
{
    for (uint32_t i = stage->begin[storage]; i < stage->end[storage]; i++) stage->atoms[i] = value;
}

static uint64_t hash_launch(const struct stage *stage, uint32_t v)
{
    const struct tarn_graph *graph = stage->plan->graph;
    const struct tarn_graph_op *op = &graph->ops[v];
    uint64_t inputs[RECOMPUTE_LIST_MAX], overwritten[RECOMPUTE_LIST_MAX];
    size_t count = 0;
    struct tarn_list list = {op->inputs, op->inputs_count};
    if (op->inputs_count > RECOMPUTE_LIST_MAX || op->outputs_count > RECOMPUTE_LIST_MAX) abort();
    for (uint32_t k = 0; k < op->inputs_count; k++)
        inputs[k] = read_storage(stage, graph->tensors[op->inputs[k]].storage);
    for (uint32_t k = 0; k < op->outputs_count; k++) {
        if (recompute_overwrites_unread(graph, v, list, tarn_outputs(op)[k]))
            overwritten[count++] = read_storage(stage, graph->tensors[tarn_outputs(op)[k]].storage);
    }
    return recompute_hash(inputs, op->inputs_count, overwritten, count);
}

static bool has_word(const char *kind, const char *word) { return strstr(kind, word) != NULL; }

/* Does the op give the same again, and leave alone what outlives the iteration? The kinds are those
 * of the tests' graphs. */
static bool may_repeat(const struct tarn_graph *graph, uint32_t v, uint32_t form)
{
    const struct tarn_graph_op *op = &graph->ops[v];
    struct tarn_list inputs = recompute_inputs(graph, v, form),
                     outputs = recompute_outputs(graph, v, form);
    if (op->recomputable == TARN_NOT_RECOMPUTABLE) return false;
    bool by_kind = !has_word(op->kind, "dropout") && !has_word(op->kind, "reduce");
    if (op->recomputable == TARN_RECOMPUTABLE_BY_RULE && !by_kind) return false;
    for (size_t k = 0; k < outputs.count; k++) {
        if (graph->storages[graph->tensors[outputs.ids[k]].storage].persistent) return false;
        if (recompute_overwrites_unread(graph, v, inputs, outputs.ids[k])) return false;
    }
    return true;
}

static bool says(struct stage *stage, uint32_t v, uint32_t iteration, const char *what)
{
    snprintf(stage->why, RECOMPUTE_WHY, "op %u (source op %u) of iteration %u %s", v,
             tarn_plan_op_origin(stage->plan, v), iteration, what);
    return false;
}

/* Writes the outputs: each once, and copies of them only where the op may run again. */
static bool yield(struct stage *stage, uint32_t v, uint32_t iteration, uint32_t form)
{
    const struct recompute_meaning *meaning = stage->meaning;
    const struct tarn_graph_op *op = &stage->plan->graph->ops[v];
    uint32_t origin = tarn_plan_op_origin(stage->plan, v);
    struct tarn_list outputs = recompute_outputs(meaning->source, origin, form),
                     all = recompute_outputs(meaning->source, origin, 0);
    size_t row = (size_t)iteration * meaning->outputs_count + meaning->first_output[origin];
    if (op->outputs_count != outputs.count) return says(stage, v, iteration, "has other outputs");
    for (uint32_t k = 0; k < op->outputs_count; k++) {
        uint32_t t = tarn_outputs(op)[k], copied = tarn_plan_tensor_origin(stage->plan, t);
        size_t i = row + recompute_index_in(all, outputs.ids[k]);
        if (copied != outputs.ids[k]) return says(stage, v, iteration, "names another output");
        if (copied == t && stage->yielded[i]) return says(stage, v, iteration, "yields twice");
        if (copied != t && !may_repeat(meaning->source, origin, form))
            return says(stage, v, iteration, "runs again, and must not");
        if (copied == t) stage->yielded[i] = true;
        write_storage(stage, stage->plan->graph->tensors[t].storage, meaning->made[i]);
    }
    return true;
}

static bool writes(const struct tarn_graph *graph, uint32_t v, uint32_t storage)
{
    const struct tarn_graph_op *op = &graph->ops[v];
    for (uint32_t k = 0; k < op->outputs_count; k++) {
        if (graph->tensors[tarn_outputs(op)[k]].storage == storage) return true;
    }
    return false;
}

/* While an op runs it uses all of its bytes at once: what it reads and does not write, and its
 * workspace, are the same when it has written. */
static uint64_t hash_used(const struct stage *stage, uint32_t v)
{
    const struct tarn_graph *graph = stage->plan->graph;
    const struct tarn_graph_op *op = &graph->ops[v];
    const struct tarn_op_extra *extra = tarn_extra(op);
    uint64_t hash = 0;
    for (uint32_t k = 0; k < op->inputs_count; k++) {
        uint32_t storage = graph->tensors[op->inputs[k]].storage;
        if (!writes(graph, v, storage)) hash = recompute_mixed(hash, read_storage(stage, storage));
    }
    return extra->workspace_storage == TARN_NONE
               ? hash
               : recompute_mixed(hash, read_storage(stage, extra->workspace_storage));
}

static bool launch(struct stage *stage, uint32_t v, uint32_t iteration)
{
    const struct recompute_meaning *meaning = stage->meaning;
    uint32_t origin = tarn_plan_op_origin(stage->plan, v);
    uint32_t implementation = tarn_plan_op_implementation(stage->plan, v);
    uint32_t form = implementation == TARN_NONE ? 0 : implementation + 1;
    uint32_t workspace = tarn_extra(&stage->plan->graph->ops[v])->workspace_storage;
    size_t op = (size_t)iteration * meaning->source->ops_count + origin;
    if (stage->run[op] && meaning->source->ops[origin].outputs_count == 0)
        return says(stage, v, iteration, "has an effect twice");
    stage->run[op] = true;
    if (workspace != TARN_NONE) write_storage(stage, workspace, recompute_mixed(v, iteration));
    uint64_t must =
        meaning
            ->reads[(size_t)iteration * meaning->forms_count + meaning->first_form[origin] + form];
    if (hash_launch(stage, v) != must) return says(stage, v, iteration, "reads other values");
    uint64_t used = hash_used(stage, v);
    if (!yield(stage, v, iteration, form)) return false;
    return hash_used(stage, v) == used || says(stage, v, iteration, "writes over what it uses");
}

/* ---- Orders ---- */

static bool has_waited(const struct stage *stage, uint32_t v, uint32_t iteration)
{
    const struct tarn_plan *plan = stage->plan;
    for (uint32_t i = 0; i < plan->waits_count; i++) {
        if (plan->waits[i].op == v && stage->ended[plan->waits[i].on] <= iteration) return false;
    }
    for (uint32_t i = 0; i < plan->boundary_waits_count; i++) {
        const struct tarn_wait *wait = &plan->boundary_waits[i];
        if (wait->op == v && stage->ended[wait->on] < iteration) return false;
    }
    return true;
}

/* The next launch of a stream, if it may begin now; false: there is none. */
static bool next_of(const struct stage *stage, uint32_t stream, uint32_t *v, uint32_t *iteration)
{
    const struct tarn_plan *plan = stage->plan;
    uint32_t length = plan->list_begin[stream + 1] - plan->list_begin[stream];
    if (length == 0 || stage->launched[stream] / length == stage->meaning->iterations) return false;
    *v = plan->list[plan->list_begin[stream] + stage->launched[stream] % length];
    *iteration = stage->launched[stream] / length;
    return has_waited(stage, *v, *iteration);
}

/* Runs until nothing can begin. By a drawn share of loyalty to one stream it may get far ahead. */
static bool run_plan(struct stage *stage, struct random_source *random)
{
    uint32_t streams = stage->plan->streams_count, idle = 0, v, iteration;
    uint32_t s = random_below(random, streams), loyalty = random_below(random, 100);
    while (idle < streams) {
        if (!next_of(stage, s, &v, &iteration)) {
            s = (s + 1) % streams;
            idle++;
            continue;
        }
        if (!launch(stage, v, iteration)) return false;
        stage->launched[s]++;
        stage->ended[v]++;
        idle = 0;
        if (!random_percent(random, loyalty)) s = random_below(random, streams);
    }
    return true;
}

/* ---- The end ---- */

static bool everything_has_run(struct stage *stage)
{
    const struct recompute_meaning *meaning = stage->meaning;
    const struct tarn_graph *source = meaning->source;
    for (uint32_t i = 0; i < meaning->iterations; i++) {
        for (uint32_t v = 0; v < source->ops_count; v++) {
            bool run = stage->run[(size_t)i * source->ops_count + v];
            const uint8_t *yielded =
                stage->yielded + (size_t)i * meaning->outputs_count + meaning->first_output[v];
            for (uint32_t k = 0; k < source->ops[v].outputs_count; k++) run = run && yielded[k] > 0;
            if (run || source->ops[v].view) continue;
            snprintf(stage->why, RECOMPUTE_WHY, "source op %u of iteration %u has not run", v, i);
            return false;
        }
    }
    return true;
}

static bool ends_alike(struct stage *stage)
{
    const struct tarn_graph *source = stage->meaning->source;
    for (uint32_t a = 0; a < source->storages_count; a++) {
        const struct tarn_storage *storage = &source->storages[a];
        if (storage->tensor == TARN_NONE || !(storage->pinned || storage->persistent)) continue;
        uint32_t own = stage->plan->graph->tensors[storage->tensor].storage;
        if (read_storage(stage, own) == stage->meaning->content[a]) continue;
        snprintf(stage->why, RECOMPUTE_WHY, "tensor %u ends with another value", storage->tensor);
        return false;
    }
    return true;
}

bool recompute_meaning_is_kept(const struct recompute_meaning *meaning,
                               const struct tarn_plan *plan, struct random_source *random,
                               char why[RECOMPUTE_WHY])
{
    const struct tarn_graph *graph = plan->graph;
    struct stage stage = {.meaning = meaning, .plan = plan, .why = why};
    cut_into_atoms(&stage);
    stage.yielded = take((size_t)meaning->iterations * meaning->outputs_count, 1);
    stage.run = take((size_t)meaning->iterations * meaning->source->ops_count, 1);
    stage.ended = take(graph->ops_count, sizeof *stage.ended);
    stage.launched = take(plan->streams_count, sizeof *stage.launched);
    for (uint32_t a = graph->planned_count; a < graph->storages_count; a++)
        write_storage(&stage, a, recompute_first_content(graph->storages[a].tensor));
    bool kept = run_plan(&stage, random) && everything_has_run(&stage) && ends_alike(&stage);
    free(stage.begin);
    free(stage.end);
    free(stage.atoms);
    free(stage.ends);
    free(stage.yielded);
    free(stage.run);
    free(stage.ended);
    free(stage.launched);
    return kept;
}
