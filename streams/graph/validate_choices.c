/* Checks the fields that allow transforms to change an op: write over one of its inputs, run
 * another implementation; the arms of conditionals; and memory spaces. The checks look up
 * producers, so they run after the records' checks. Cost: linear in inputs, outputs and lists of
 * choices.
 */

#include "validate.h"

/* A set of tensors that is cleared in O(1): t is a member if of[t] == stamp. */
struct marks {
    uint32_t *of;
    uint32_t stamp;
};

/* ---- In place ---- */

static enum tarn_status check_inplace(const struct tarn_graph *graph,
                                      const struct tarn_report *report, uint32_t v,
                                      struct marks *read)
{
    const struct tarn_graph_op *op = &graph->ops[v];
    const struct tarn_op_extra *extra = tarn_extra(op);
    if (extra->inplace_count == 0) return TARN_OK;
    read->stamp++;
    for (uint32_t k = 0; k < op->inputs_count; k++) read->of[op->inputs[k]] = read->stamp;
    for (uint32_t k = 0; k < extra->inplace_count; k++) {
        uint32_t input = extra->inplace[k][0], output = extra->inplace[k][1];
        bool has_input = input < graph->tensors_count && read->of[input] == read->stamp;
        bool has_output = output < graph->tensors_count && graph->tensors[output].producer == v;
        if (!has_input || !has_output)
            return tarn_report_bad(
                report,
                tarn_location_at(v, has_input ? output : input, "/ops/%u/inplace/%u/%d", v, k,
                                 has_input),
                "%s may write in place over tensor %u, which is not one of its %s",
                tarn_op_label(graph, v).text, has_input ? output : input,
                has_input ? "outputs" : "inputs");
        if (graph->tensors[input].size < graph->tensors[output].size)
            return tarn_report_bad(report, tarn_location_at(v, input, "/ops/%u/inplace/%u", v, k),
                                   "%s may write %s in place over %s, but that is smaller: what is "
                                   "written over an input ends inside it",
                                   tarn_op_label(graph, v).text,
                                   tarn_tensor_label(graph, output).text,
                                   tarn_tensor_label(graph, input).text);
    }
    return TARN_OK;
}

/* ---- Implementations ---- */

static enum tarn_status bad_implementation(const struct tarn_graph *graph,
                                           const struct tarn_report *report, uint32_t v, uint32_t i,
                                           const char *field, const char *what)
{
    return tarn_report_bad(
        report, tarn_location_at(v, TARN_NONE, "/ops/%u/implementations/%u/%s", v, i, field),
        "%s has an implementation %s", tarn_op_label(graph, v).text, what);
}

/* Marks the outputs that the implementation makes. */
static enum tarn_status check_part(const struct tarn_graph *graph, const struct tarn_report *report,
                                   uint32_t v, uint32_t i, struct marks *made)
{
    const struct tarn_graph_op *op = &graph->ops[v];
    const struct tarn_list *outputs = &tarn_extra(op)->implementations[i].outputs;
    made->stamp++;
    for (size_t k = 0; k < outputs->count; k++) {
        uint32_t t = outputs->ids[k];
        bool is_output = t < graph->tensors_count && graph->tensors[t].producer == v;
        if (is_output && made->of[t] != made->stamp) {
            made->of[t] = made->stamp;
            continue;
        }
        return tarn_report_bad(
            report, tarn_location_at(v, t, "/ops/%u/implementations/%u/outputs/%zu", v, i, k),
            "%s has an implementation that makes tensor %u%s", tarn_op_label(graph, v).text, t,
            is_output ? " twice" : ", which is not one of its outputs");
    }
    return TARN_OK;
}

/* It may read an output of the op that it does not make itself: another run of the op makes it. */
static enum tarn_status check_reads(const struct tarn_graph *graph,
                                    const struct tarn_report *report, uint32_t v, uint32_t i,
                                    const struct marks *made)
{
    const struct tarn_graph_op *op = &graph->ops[v];
    const struct tarn_op_extra *extra = tarn_extra(op);
    const struct tarn_list *inputs = &extra->implementations[i].inputs;
    bool is_partial = extra->implementations[i].outputs.count > 0;
    for (size_t k = 0; k < inputs->count; k++) {
        uint32_t t = inputs->ids[k];
        bool is_tensor = t < graph->tensors_count;
        bool is_made = is_tensor && graph->tensors[t].producer == v &&
                       (!is_partial || made->of[t] == made->stamp);
        if (is_tensor && !is_made) continue;
        return tarn_report_bad(
            report, tarn_location_at(v, t, "/ops/%u/implementations/%u/inputs/%zu", v, i, k),
            "%s has an implementation that reads tensor %u, %s", tarn_op_label(graph, v).text, t,
            is_made ? "which it makes itself" : "which there is not");
    }
    return TARN_OK;
}

static enum tarn_status check_implementations(const struct tarn_graph *graph,
                                              const struct tarn_report *report, uint32_t v,
                                              struct marks *made)
{
    const struct tarn_graph_op *op = &graph->ops[v];
    const struct tarn_op_extra *extra = tarn_extra(op);
    for (uint32_t i = 0; i < extra->implementations_count; i++) {
        if (extra->implementations[i].cost > TARN_NUMBER_MAX)
            return bad_implementation(graph, report, v, i, "cost", "with a cost above 2^53 - 1");
        if (extra->implementations[i].workspace > TARN_NUMBER_MAX)
            return bad_implementation(graph, report, v, i, "workspace",
                                      "with a workspace above 2^53 - 1");
        enum tarn_status status = check_part(graph, report, v, i, made);
        if (status == TARN_OK) status = check_reads(graph, report, v, i, made);
        if (status != TARN_OK) return status;
    }
    for (uint32_t k = 0; k < extra->common_count; k++) {
        if (extra->common[k] < graph->tensors_count) continue;
        return tarn_report_bad(
            report, tarn_location_at(v, extra->common[k], "/ops/%u/common/%u", v, k),
            "%s reads tensor %u in every implementation, but there are %u tensors",
            tarn_op_label(graph, v).text, extra->common[k], graph->tensors_count);
    }
    /* the list of an op that comes from another is its own: what is chosen counts in the other's */
    bool is_own = op->origin == v && extra->implementations_count > 0;
    if (is_own && extra->implementation != TARN_NONE &&
        extra->implementation >= extra->implementations_count)
        return tarn_report_bad(report, tarn_location_at(v, TARN_NONE, "/ops/%u/implementation", v),
                               "%s uses implementation %u, but has %u",
                               tarn_op_label(graph, v).text, extra->implementation,
                               extra->implementations_count);
    return TARN_OK;
}

enum tarn_status tarn_validate_choices(const struct tarn_graph *graph,
                                       const struct tarn_report *report)
{
    enum tarn_status status = TARN_OK;
    struct tarn_region scratch = {.chunks = NULL};
    struct marks marks = {tarn_region_take(&scratch, graph->tensors_count, sizeof *marks.of), 0};
    if (!marks.of) return TARN_SYSTEM;
    for (uint32_t v = 0; status == TARN_OK && v < graph->ops_count; v++) {
        status = check_inplace(graph, report, v, &marks);
        if (status == TARN_OK) status = check_implementations(graph, report, v, &marks);
    }
    tarn_region_finish(&scratch);
    return status;
}

/* ---- Arms of conditionals ---- */

static enum tarn_status check_branch(struct tarn_graph *graph, const struct tarn_report *report,
                                     uint32_t v)
{
    const struct tarn_op_extra *extra = tarn_extra(&graph->ops[v]);
    for (uint32_t i = 0; i < extra->branch_count; i++) {
        struct tarn_location here = tarn_location_at(v, TARN_NONE, "/ops/%u/branch/%u", v, i);
        uint32_t conditional = extra->branch[i][0], arm = extra->branch[i][1];
        if (conditional >= TARN_ARMS_MAX || arm >= TARN_ARMS_MAX)
            return tarn_report_bad(report, here,
                                   "%s is in arm %u of conditional %u; both are below %u",
                                   tarn_op_label(graph, v).text, arm, conditional, TARN_ARMS_MAX);
        for (uint32_t k = 0; k < i; k++)
            if (extra->branch[k][0] == conditional)
                return tarn_report_bad(report, here, "%s names conditional %u twice",
                                       tarn_op_label(graph, v).text, conditional);
        if (conditional >= graph->conditionals_count) graph->conditionals_count = conditional + 1;
    }
    return TARN_OK;
}

/* what: how the op reads the tensor, in the message. */
static enum tarn_status check_read(const struct tarn_graph *graph, const struct tarn_report *report,
                                   uint32_t v, uint32_t t, const char *what,
                                   struct tarn_location here)
{
    uint32_t u = graph->tensors[t].producer;
    if (u == TARN_NONE || !tarn_ops_exclude(graph, u, v)) return TARN_OK;
    return tarn_report_bad(report, here,
                           "%s %s %s, which %s makes in another arm of a conditional: they never "
                           "run in one iteration",
                           tarn_op_label(graph, v).text, what, tarn_tensor_label(graph, t).text,
                           tarn_op_label(graph, u).text);
}

/* An op's inputs must exist whenever it runs, and a storage that it writes in place must exist at
 * all: otherwise it would overwrite another arm's storage in these bytes. */
static enum tarn_status check_arms_of(const struct tarn_graph *graph,
                                      const struct tarn_report *report, uint32_t v)
{
    const struct tarn_graph_op *op = &graph->ops[v];
    enum tarn_status status = TARN_OK;
    for (uint32_t k = 0; k < op->inputs_count && status == TARN_OK; k++)
        status = check_read(graph, report, v, op->inputs[k], "reads",
                            tarn_location_at(v, op->inputs[k], "/ops/%u/inputs/%u", v, k));
    for (uint32_t i = 0; i < tarn_extra(op)->implementations_count; i++) {
        const struct tarn_list *inputs = &tarn_extra(op)->implementations[i].inputs;
        for (size_t k = 0; k < inputs->count && status == TARN_OK; k++)
            status =
                check_read(graph, report, v, inputs->ids[k], "has an implementation that reads",
                           tarn_location_at(v, inputs->ids[k],
                                            "/ops/%u/implementations/%u/inputs/%zu", v, i, k));
    }
    if (status != TARN_OK) return status;
    for (uint32_t k = 0; k < op->outputs_count && !op->view; k++) {
        uint32_t t = tarn_outputs(op)[k], u = graph->tensors[graph->tensors[t].root].producer;
        if (u == TARN_NONE || tarn_op_is_inside(graph, v, u)) continue;
        return tarn_report_bad(report, tarn_location_at(v, t, "/ops/%u/outputs/%u", v, k),
                               "%s writes %s in place, which is there only if %s runs: put it into "
                               "the same arms of conditionals",
                               tarn_op_label(graph, v).text, tarn_tensor_label(graph, t).text,
                               tarn_op_label(graph, u).text);
    }
    return TARN_OK;
}

enum tarn_status tarn_validate_branches(struct tarn_graph *graph, const struct tarn_report *report)
{
    enum tarn_status status = TARN_OK;
    for (uint32_t v = 0; status == TARN_OK && v < graph->ops_count; v++)
        status = check_branch(graph, report, v);
    for (uint32_t v = 0; status == TARN_OK && graph->conditionals_count > 0 && v < graph->ops_count;
         v++)
        status = check_arms_of(graph, report, v);
    return status;
}

/* ---- Memory spaces ---- */

static enum tarn_status bad_space(const struct tarn_report *report, uint32_t s, const char *field,
                                  const char *what)
{
    return tarn_report_bad(report,
                           tarn_location_at(TARN_NONE, TARN_NONE, "/spaces/%u/%s", s, field),
                           "memory space %u %s", s, what);
}

static enum tarn_status check_space(const struct tarn_graph *graph,
                                    const struct tarn_report *report, uint32_t s)
{
    const struct tarn_space_info *space = &graph->spaces[s];
    if ((unsigned)space->kind > TARN_SPACE_SCRATCH)
        return bad_space(report, s, "kind", "has an unknown kind");
    if (space->alignment != 0 && !tarn_is_power_of_two(space->alignment))
        return bad_space(report, s, "alignment", "has an alignment that is not a power of two");
    if (space->alignment > TARN_ALIGNMENT_MAX)
        return bad_space(report, s, "alignment", "has an alignment above 2^30");
    if (space->capacity > TARN_NUMBER_MAX)
        return bad_space(report, s, "capacity", "has a capacity above 2^53 - 1");
    return TARN_OK;
}

static enum tarn_status bad_number(const struct tarn_graph *graph, const struct tarn_report *report,
                                   struct tarn_location location, struct tarn_label who,
                                   uint32_t space)
{
    return tarn_report_bad(report, location, "%s is in memory space %u, but the graph has %u",
                           who.text, space, tarn_graph_spaces_count(graph));
}

enum tarn_status tarn_validate_spaces(const struct tarn_graph *graph,
                                      const struct tarn_report *report)
{
    uint32_t count = tarn_graph_spaces_count(graph);
    for (uint32_t s = 0; s < graph->spaces_count; s++) {
        enum tarn_status status = check_space(graph, report, s);
        if (status != TARN_OK) return status;
    }
    for (uint32_t t = 0; t < graph->tensors_count; t++) {
        const struct tarn_graph_tensor *tensor = &graph->tensors[t];
        if (tensor->space >= count)
            return bad_number(graph, report, tarn_location_at(TARN_NONE, t, "/tensors/%u/space", t),
                              tarn_tensor_label(graph, t), tensor->space);
        if (tensor->space != graph->tensors[tensor->root].space)
            return tarn_report_bad(report, tarn_location_at(TARN_NONE, t, "/tensors/%u/space", t),
                                   "%s is in another memory space than the tensor whose bytes it "
                                   "names; a copy is an op that makes another tensor",
                                   tarn_tensor_label(graph, t).text);
    }
    for (uint32_t v = 0; v < graph->ops_count; v++)
        if (tarn_extra(&graph->ops[v])->workspace_space >= count)
            return bad_number(graph, report,
                              tarn_location_at(v, TARN_NONE, "/ops/%u/workspace_space", v),
                              tarn_op_label(graph, v), tarn_extra(&graph->ops[v])->workspace_space);
    return TARN_OK;
}
