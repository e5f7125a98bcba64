/* Applies the rows of a table of costs to an op. A row says what a backward op reads of its forward
 * op (see pairing.h) instead of the traced inputs: the forward op's input, its output, or a small
 * further output that the forward op makes for it and that no other op reads. All other inputs
 * stay.
 *
 *     traced   y ──► relu_ ──► z        threshold_backward(dz, z)
 *     mask     y ──► relu_ ──► z, m     threshold_backward(dz, m)
 *
 * The row with the traced inputs and the traced time is the op as it was traced: it adds nothing
 * but its workspace, which traces do not know. Rows follow MONeT's operator optimizations (Shah et
 * al., "Memory optimization for deep networks", appendix D). Cost: linear in the rows of the op's
 * kind times its inputs. */
#include "additions.h"

#include <string.h>

/* The tensors of its forward op that a backward op may read. */
struct partner {
    uint32_t input, output;
    uint32_t kept; /* a further output, made for the backward op and read by it, or TARN_NONE */
};

/* A tensor of at least 1/KEPT_SHARE of the forward op's output was kept for each of its elements
 * (an index, a flag); smaller ones are statistics. */
#define KEPT_SHARE 8

/* ---- Forward ops ---- */

static bool is_weight(enum tarn_tensor_kind kind)
{
    return kind == TARN_PARAMETER || kind == TARN_OPTIMIZER_STATE;
}

/* The first input that is no parameter. */
static uint32_t main_input(const struct tarn_graph *graph, uint32_t forward)
{
    const struct tarn_graph_op *op = &graph->ops[forward];
    for (uint32_t k = 0; k < op->inputs_count; k++)
        if (!is_weight(graph->tensors[op->inputs[k]].kind)) return op->inputs[k];
    return TARN_NONE;
}

/* The first planned output. */
static uint32_t main_output(const struct tarn_graph *graph, uint32_t forward)
{
    const struct tarn_graph_op *op = &graph->ops[forward];
    for (uint32_t k = 0; k < op->outputs_count; k++)
        if (!tarn_kind_is_persistent(graph->tensors[tarn_outputs(op)[k]].kind))
            return tarn_outputs(op)[k];
    return TARN_NONE;
}

static bool shows(const struct tarn_additions *additions, uint32_t t, uint32_t other)
{
    const uint32_t *value = additions->pairing.value;
    return other != TARN_NONE && value[t] == value[other];
}

static bool reads(const struct tarn_additions *additions, uint32_t v, uint32_t t)
{
    const struct tarn_graph_op *op = &additions->graph->ops[v];
    for (uint32_t k = 0; k < op->inputs_count; k++)
        if (shows(additions, op->inputs[k], t)) return true;
    return false;
}

static struct partner partner_of(const struct tarn_additions *additions, uint32_t v)
{
    const struct tarn_graph *graph = additions->graph;
    uint32_t forward = additions->pairing.forward[v];
    struct partner partner = {TARN_NONE, TARN_NONE, TARN_NONE};
    if (forward == TARN_NONE) return partner;
    partner.input = main_input(graph, forward);
    partner.output = main_output(graph, forward);
    if (partner.output == TARN_NONE) return partner;
    const struct tarn_graph_op *op = &graph->ops[forward];
    uint64_t size = graph->tensors[partner.output].size;
    for (uint32_t k = 0; k < op->outputs_count && partner.kept == TARN_NONE; k++) {
        uint32_t t = tarn_outputs(op)[k];
        bool is_large = graph->tensors[t].size >= size / KEPT_SHARE;
        if (t != partner.output && is_large && reads(additions, v, t)) partner.kept = t;
    }
    return partner;
}

/* ---- Tensors that a forward op leaves ---- */

static const struct tarn_tensor_info *tensor_kept(const struct tarn_additions *additions,
                                                  uint32_t t)
{
    return &additions->kept[t - additions->graph->tensors_count];
}

/* The further output of the forward op for such an implementation: one for all implementations that
 * need it. */
static enum tarn_status keep(struct tarn_additions *additions, uint32_t forward,
                             const char *implementation, uint64_t size, uint32_t *tensor)
{
    const struct tarn_addition *addition = &additions->ops[forward];
    const char *op_name = additions->graph->ops[forward].name;
    char *name =
        tarn_region_take(additions->region, strlen(op_name) + strlen(implementation) + 2, 1);
    if (!name) return TARN_SYSTEM;
    strcat(strcat(strcpy(name, op_name), "."), implementation);
    for (uint32_t k = additions->graph->ops[forward].outputs_count;
         addition->outputs && k < addition->outputs_count; k++) {
        *tensor = addition->outputs[k];
        if (strcmp(tensor_kept(additions, *tensor)->name, name) == 0) return TARN_OK;
    }
    return tarn_additions_keep(additions, forward, name, size > 0 ? size : 1, tensor);
}

/* ---- Rows ---- */

static bool is_as_traced(const struct tarn_model_row *row)
{
    return row->input == TARN_AS_TRACED && row->output == TARN_AS_TRACED && !row->replaces_kept;
}

/* The tensors that the row puts in place of the omitted ones. */
struct instead {
    uint32_t ids[3];
    uint32_t count;
};

static enum tarn_status find_instead(struct tarn_additions *additions, uint32_t v,
                                     const struct tarn_model_row *row, struct partner *partner,
                                     struct instead *instead)
{
    const struct tarn_graph *graph = additions->graph;
    if (row->input == TARN_NEEDED && !reads(additions, v, partner->input))
        instead->ids[instead->count++] = partner->input;
    if (row->output == TARN_NEEDED && !reads(additions, v, partner->output))
        instead->ids[instead->count++] = partner->output;
    if (!row->replaces_kept || (partner->kept != TARN_NONE && tarn_factor_is(row->keeps, 1))) {
        partner->kept = TARN_NONE; /* it stays */
        return TARN_OK;
    }
    if (tarn_factor_is(row->keeps, 0)) return TARN_OK;
    uint32_t like = partner->kept != TARN_NONE ? partner->kept : partner->output;
    return keep(additions, additions->pairing.forward[v], row->implementation,
                tarn_factor_up(row->keeps, graph->tensors[like].size),
                &instead->ids[instead->count++]);
}

static bool is_left_out(const struct tarn_additions *additions, const struct tarn_model_row *row,
                        const struct partner *partner, uint32_t t)
{
    return (row->input == TARN_NOT_NEEDED && shows(additions, t, partner->input)) ||
           (row->output == TARN_NOT_NEEDED && shows(additions, t, partner->output)) ||
           shows(additions, t, partner->kept);
}

/* Lists the implementation's inputs; the list is empty if they equal the op's inputs. */
static enum tarn_status find_inputs(struct tarn_additions *additions, uint32_t v,
                                    const struct tarn_model_row *row, struct partner partner,
                                    struct tarn_list *inputs)
{
    const struct tarn_graph_op *op = &additions->graph->ops[v];
    struct instead instead = {.count = 0};
    uint32_t count = 0, next = 0;
    enum tarn_status status = find_instead(additions, v, row, &partner, &instead);
    bool is_changed = instead.count > 0;
    for (uint32_t k = 0; k < op->inputs_count; k++) {
        if (!is_left_out(additions, row, &partner, op->inputs[k])) {
            additions->ids[count++] = op->inputs[k];
            continue;
        }
        is_changed = true;
        while (next < instead.count) additions->ids[count++] = instead.ids[next++];
    }
    while (next < instead.count) additions->ids[count++] = instead.ids[next++];
    *inputs = (struct tarn_list){additions->ids, is_changed ? count : 0};
    return status;
}

static uint64_t size_of(const struct tarn_additions *additions, uint32_t t)
{
    const struct tarn_graph *graph = additions->graph;
    return t < graph->tensors_count ? graph->tensors[t].size : tensor_kept(additions, t)->size;
}

static uint64_t largest(const struct tarn_additions *additions, const uint32_t *ids, size_t count)
{
    uint64_t size = 0;
    for (size_t i = 0; i < count; i++)
        if (size_of(additions, ids[i]) > size) size = size_of(additions, ids[i]);
    return size;
}

static uint64_t workspace_of(const struct tarn_additions *additions, uint32_t v,
                             const struct tarn_model_row *row, struct tarn_list inputs)
{
    const struct tarn_graph_op *op = &additions->graph->ops[v];
    if (inputs.count == 0) inputs = (struct tarn_list){op->inputs, op->inputs_count};
    return tarn_factor_up(row->workspace,
                          largest(additions, inputs.ids, inputs.count) +
                              largest(additions, tarn_outputs(op), op->outputs_count));
}

static void take_workspace(struct tarn_additions *additions, uint32_t v, uint64_t workspace)
{
    struct tarn_addition *addition = &additions->ops[v];
    if (workspace == 0 || addition->workspace > 0 || addition->is_measured) return;
    addition->workspace = workspace;
    additions->report.workspaces++;
}

static enum tarn_status add_row(struct tarn_additions *additions, uint32_t v,
                                const struct tarn_model_row *row, struct partner partner,
                                bool *has_traced)
{
    struct tarn_addition *addition = &additions->ops[v];
    struct tarn_implementation implementation = {.name = row->implementation};
    if (tarn_additions_has(addition, row->implementation)) return TARN_OK;
    enum tarn_status status = find_inputs(additions, v, row, partner, &implementation.inputs);
    if (status != TARN_OK) return status;
    implementation.cost = tarn_factor_nearest(row->time, addition->cost);
    implementation.workspace = workspace_of(additions, v, row, implementation.inputs);
    if (implementation.inputs.count > 0 || !tarn_factor_is(row->time, 1) || *has_traced)
        return tarn_additions_append(additions, v, &implementation);
    *has_traced = true;
    take_workspace(additions, v, implementation.workspace);
    return TARN_OK;
}

enum tarn_status tarn_additions_add_rows(struct tarn_additions *additions, uint32_t v)
{
    size_t count;
    const struct tarn_model_row *rows =
        tarn_cost_table_models(additions->costs, additions->graph->ops[v].kind, &count);
    struct partner partner = partner_of(additions, v);
    bool has_partner = partner.input != TARN_NONE && partner.output != TARN_NONE;
    bool is_unpaired = false, has_traced = false;
    enum tarn_status status = TARN_OK;
    for (size_t i = 0; status == TARN_OK && i < count; i++) {
        if (has_partner || is_as_traced(&rows[i]))
            status = add_row(additions, v, &rows[i], partner, &has_traced);
        else
            is_unpaired = true;
    }
    if (is_unpaired) additions->report.unpaired++;
    return status;
}
