/* The source graph runs in list order; each of its iterations says what every op, as written and by
 * each implementation, must read, and what it makes. An op that writes where something already is,
 * without reading it, counts as reading it. Cost: iterations x reads and writes of all forms. */
#include "recompute_meaning.h"

#include <stdlib.h>
#include <string.h>

static void *take(size_t count, size_t size)
{
    void *memory = calloc(count + 1, size);
    if (!memory) abort();
    return memory;
}

uint64_t recompute_mixed(uint64_t a, uint64_t b)
{
    struct random_source source = {a * 31 + b};
    return random_next(&source);
}

/* What the caller has put into a persistent storage before the first iteration. */
uint64_t recompute_first_content(uint32_t root) { return recompute_mixed(12345, root); }

/* ---- Lists ---- */

struct tarn_list recompute_inputs(const struct tarn_graph *graph, uint32_t v, uint32_t form)
{
    const struct tarn_graph_op *op = &graph->ops[v];
    const struct tarn_op_extra *extra = tarn_extra(op);
    if (form > 0 && extra->implementations[form - 1].inputs.count > 0)
        return extra->implementations[form - 1].inputs;
    return (struct tarn_list){op->inputs, op->inputs_count};
}

struct tarn_list recompute_outputs(const struct tarn_graph *graph, uint32_t v, uint32_t form)
{
    const struct tarn_graph_op *op = &graph->ops[v];
    const struct tarn_op_extra *extra = tarn_extra(op);
    if (form > 0 && extra->implementations[form - 1].outputs.count > 0)
        return extra->implementations[form - 1].outputs;
    return (struct tarn_list){tarn_outputs(op), op->outputs_count};
}

uint32_t recompute_index_in(struct tarn_list list, uint32_t tensor)
{
    uint32_t i = 0;
    while (i < list.count && list.ids[i] != tensor) i++;
    return i;
}

/* Does the op write over something that none of these inputs reads? */
bool recompute_overwrites_unread(const struct tarn_graph *graph, uint32_t v,
                                 struct tarn_list inputs, uint32_t output)
{
    uint32_t storage = graph->tensors[output].storage;
    for (size_t k = 0; k < inputs.count; k++) {
        if (graph->tensors[inputs.ids[k]].storage == storage) return false;
    }
    return graph->storages[storage].producer != v;
}

uint64_t recompute_hash(const uint64_t *inputs, size_t count, const uint64_t *overwritten,
                        size_t overwritten_count)
{
    uint64_t hash = recompute_mixed(count, overwritten_count);
    for (size_t k = 0; k < count; k++) hash = recompute_mixed(hash, inputs[k]);
    for (size_t k = 0; k < overwritten_count; k++) hash = recompute_mixed(hash, overwritten[k]);
    return hash;
}

/* ---- The source ---- */

/* One iteration of the source. */
struct pass {
    struct recompute_meaning *meaning;
    uint64_t *made, *reads; /* of the iteration */
    uint64_t *left;         /* tensor -> what its producer left in it, for a view what was there */
    uint64_t (*inputs)[RECOMPUTE_LIST_MAX]; /* form -> values of its inputs */
    uint64_t (*overwritten)[RECOMPUTE_LIST_MAX];
    uint32_t *overwritten_count;
};

/* What a form reads: at the time of the op what the op reads as written and what is persistent, the
 * rest as its producers leave it. */
static void read_form(struct pass *pass, uint32_t v, uint32_t form, bool at_the_end)
{
    const struct tarn_graph *graph = pass->meaning->source;
    uint32_t f = pass->meaning->first_form[v] + form;
    struct tarn_list inputs = recompute_inputs(graph, v, form), own = recompute_inputs(graph, v, 0),
                     outputs = recompute_outputs(graph, v, form);
    if (inputs.count > RECOMPUTE_LIST_MAX || outputs.count > RECOMPUTE_LIST_MAX) abort();
    for (size_t k = 0; k < inputs.count; k++) {
        uint32_t t = inputs.ids[k], storage = graph->tensors[t].storage;
        bool later =
            recompute_index_in(own, t) == own.count && !graph->storages[storage].persistent;
        if (later == at_the_end)
            pass->inputs[f][k] = later ? pass->left[t] : pass->meaning->content[storage];
    }
    for (size_t k = 0; k < outputs.count && !at_the_end; k++) {
        if (recompute_overwrites_unread(graph, v, inputs, outputs.ids[k]))
            pass->overwritten[f][pass->overwritten_count[f]++] =
                pass->meaning->content[graph->tensors[outputs.ids[k]].storage];
    }
}

static uint64_t hash_form(const struct pass *pass, uint32_t v, uint32_t form)
{
    uint32_t f = pass->meaning->first_form[v] + form;
    return recompute_hash(pass->inputs[f], recompute_inputs(pass->meaning->source, v, form).count,
                          pass->overwritten[f], pass->overwritten_count[f]);
}

static void run_source_op(struct pass *pass, uint32_t v)
{
    struct recompute_meaning *meaning = pass->meaning;
    const struct tarn_graph *graph = meaning->source;
    const struct tarn_graph_op *op = &graph->ops[v];
    for (uint32_t form = 0; form <= tarn_extra(op)->implementations_count && !op->view; form++)
        read_form(pass, v, form, false);
    uint64_t value = op->view ? 0 : recompute_mixed(hash_form(pass, v, 0), v);
    for (uint32_t k = 0; k < op->outputs_count && !op->view; k++) {
        uint32_t first = 0; /* two names of one storage have one value */
        while (graph->tensors[tarn_outputs(op)[first]].root !=
               graph->tensors[tarn_outputs(op)[k]].root)
            first++;
        pass->made[meaning->first_output[v] + k] = recompute_mixed(value, first);
    }
    for (uint32_t k = 0; k < op->outputs_count; k++) {
        uint32_t t = tarn_outputs(op)[k], storage = graph->tensors[t].storage;
        if (!op->view) meaning->content[storage] = pass->made[meaning->first_output[v] + k];
        pass->left[t] = meaning->content[storage];
    }
}

static void run_source(struct pass *pass)
{
    struct recompute_meaning *meaning = pass->meaning;
    const struct tarn_graph *graph = meaning->source;
    memset(pass->overwritten_count, 0, meaning->forms_count * sizeof *pass->overwritten_count);
    memset(meaning->content, 0, graph->planned_count * sizeof *meaning->content);
    for (uint32_t i = 0; i < graph->ops_count; i++) run_source_op(pass, graph->order[i]);
    for (uint32_t v = 0; v < graph->ops_count; v++) {
        for (uint32_t form = 0; form <= tarn_extra(&graph->ops[v])->implementations_count; form++) {
            if (graph->ops[v].view) continue;
            read_form(pass, v, form, true);
            pass->reads[meaning->first_form[v] + form] = hash_form(pass, v, form);
        }
    }
}

static void count_forms(struct recompute_meaning *meaning)
{
    const struct tarn_graph *graph = meaning->source;
    meaning->first_output = take(graph->ops_count, sizeof *meaning->first_output);
    meaning->first_form = take(graph->ops_count, sizeof *meaning->first_form);
    for (uint32_t v = 0; v < graph->ops_count; v++) {
        meaning->first_output[v] = meaning->outputs_count;
        meaning->first_form[v] = meaning->forms_count;
        meaning->outputs_count += graph->ops[v].outputs_count;
        meaning->forms_count += tarn_extra(&graph->ops[v])->implementations_count + 1;
    }
}

struct recompute_meaning *recompute_meaning_create(const struct tarn_graph *source,
                                                   uint32_t iterations)
{
    struct recompute_meaning *meaning = take(1, sizeof *meaning);
    *meaning = (struct recompute_meaning){.source = source, .iterations = iterations};
    count_forms(meaning);
    meaning->made = take((size_t)iterations * meaning->outputs_count, sizeof *meaning->made);
    meaning->reads = take((size_t)iterations * meaning->forms_count, sizeof *meaning->reads);
    meaning->content = take(source->storages_count, sizeof *meaning->content);
    struct pass pass = {.meaning = meaning,
                        .left = take(source->tensors_count, sizeof *pass.left),
                        .inputs = take(meaning->forms_count, sizeof *pass.inputs),
                        .overwritten = take(meaning->forms_count, sizeof *pass.overwritten),
                        .overwritten_count =
                            take(meaning->forms_count, sizeof *pass.overwritten_count)};
    for (uint32_t a = source->planned_count; a < source->storages_count; a++)
        meaning->content[a] = recompute_first_content(source->storages[a].tensor);
    for (uint32_t i = 0; i < iterations; i++) {
        pass.made = meaning->made + (size_t)i * meaning->outputs_count;
        pass.reads = meaning->reads + (size_t)i * meaning->forms_count;
        run_source(&pass);
    }
    free(pass.left);
    free(pass.inputs);
    free(pass.overwritten);
    free(pass.overwritten_count);
    return meaning;
}

void recompute_meaning_destroy(struct recompute_meaning *meaning)
{
    free(meaning->first_output);
    free(meaning->first_form);
    free(meaning->made);
    free(meaning->reads);
    free(meaning->content);
    free(meaning);
}
