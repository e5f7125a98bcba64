/* Makes the baselines that budgets are compared with: models in which some kinds of options are
 * missing, and the segments of T. Chen et al., "Training deep nets with sublinear memory cost"
 * (2016), for graphs that are no chain: the forward part is cut about every √n ops of a pass, at
 * points that the fewest bytes cross. Cost: linear, and for segments cuts × ops. */
#include "budget.h"

#include "streams/base/checked.h"

/* ---- Kinds of options ---- */

static bool reads_the_same(const struct tarn_recompute_model *model, const struct tarn_form *a,
                           const struct tarn_form *b)
{
    if (a->reads.end - a->reads.begin != b->reads.end - b->reads.begin) return false;
    for (uint32_t i = 0; i < a->reads.end - a->reads.begin; i++) {
        if (model->reads[a->reads.begin + i] != model->reads[b->reads.begin + i]) return false;
    }
    return true;
}

/* Does it read a tensor that exists for implementations only? */
static bool reads_a_mask(const struct tarn_recompute_model *model, const struct tarn_form *form)
{
    for (uint32_t i = form->reads.begin; i < form->reads.end; i++) {
        const struct tarn_version *version = &model->versions[model->reads[i]];
        if (model->graph->storages[version->storage].users_count == 1) return true;
    }
    return false;
}

/* Forms of ops as written stay, and forms that only recomputation uses. */
static bool is_allowed(const struct tarn_recompute_model *model, const struct tarn_form *form,
                       unsigned classes)
{
    const struct tarn_form *own = &model->forms[model->op_forms[form->op].begin];
    if (form->splits) return classes & TARN_BUDGET_SPLIT;
    if (!form->whole || form == own || reads_the_same(model, form, own)) return true;
    return classes & (reads_a_mask(model, form) ? TARN_BUDGET_MASKS : TARN_BUDGET_INPUTS);
}

static void drop_forms(struct tarn_recompute_model *model, struct tarn_range *range,
                       unsigned classes)
{
    uint32_t kept = range->begin;
    for (uint32_t f = range->begin; f < range->end; f++) {
        if (is_allowed(model, &model->forms[f], classes)) model->forms[kept++] = model->forms[f];
    }
    range->end = kept;
}

/* Leaves the op as it was written, for other forms the implementation that is listed first. */
static void drop_choices(struct tarn_recompute_model *model, struct tarn_form *form, bool own)
{
    const struct tarn_graph_op *op = &model->graph->ops[form->op];
    struct tarn_choice *first = &model->choices[form->choices.begin];
    for (uint32_t i = form->choices.begin; i < form->choices.end; i++) {
        if (model->choices[i].implementation < first->implementation) *first = model->choices[i];
    }
    if (own)
        *first = (struct tarn_choice){
            TARN_NONE, op->cost,
            tarn_form_workspace(model, form, tarn_extra(op)->workspace, op->workspace_first)};
    form->choices.end = form->choices.begin + 1;
}

void tarn_recompute_model_restrict(struct tarn_recompute_model *model, unsigned classes)
{
    for (uint32_t i = 0; i < model->ops_count; i++) {
        struct tarn_range *range = &model->op_forms[model->order[i]];
        drop_forms(model, range, classes);
        for (uint32_t f = range->begin; f < range->end && !(classes & TARN_BUDGET_ALGORITHMS); f++)
            drop_choices(model, &model->forms[f], f == range->begin);
    }
}

/* ---- Chen's segments ---- */

/* Bytes that may be dropped and cross from place i to i + 1. */
static void sum_crossing(const struct tarn_recompute_model *model, uint64_t *crossing)
{
    for (uint32_t i = 0; i < model->ops_count; i++) {
        const struct tarn_form *own = &model->forms[model->op_forms[model->order[i]].begin];
        for (uint32_t k = own->writes.begin; k < own->writes.end; k++) {
            const struct tarn_version *version = &model->versions[model->writes[k]];
            if (!version->droppable || version->last_early <= i) continue;
            crossing[i] += version->size;
            crossing[version->last_early] -= version->size; /* wraps, and back in the sum */
        }
    }
    for (uint32_t i = 1; i < model->ops_count; i++) crossing[i] += crossing[i - 1];
}

static void keep_across(const struct tarn_recompute_model *model, struct tarn_policy *policy,
                        uint32_t cut)
{
    for (uint32_t i = 0; i <= cut; i++) {
        const struct tarn_form *own = &model->forms[model->op_forms[model->order[i]].begin];
        for (uint32_t k = own->writes.begin; k < own->writes.end; k++) {
            uint32_t w = model->writes[k];
            if (model->versions[w].last_early > cut) policy->keep[w] = true;
        }
    }
}

/* The places of forward ops. */
static uint32_t list_forward(const struct tarn_recompute_model *model, uint32_t *places)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < model->ops_count; i++) {
        if (model->is_forward[i]) places[count++] = i;
    }
    return count;
}

enum tarn_status tarn_policy_chen(const struct tarn_recompute_model *model,
                                  struct tarn_policy *policy)
{
    struct tarn_region region = {.chunks = NULL};
    uint64_t *crossing = tarn_region_take(&region, (size_t)model->ops_count + 1, sizeof *crossing);
    uint32_t *places = tarn_region_take(&region, model->ops_count, sizeof *places);
    if (region.is_exhausted) {
        tarn_region_finish(&region);
        return TARN_SYSTEM;
    }
    /* without a reversal, all ops are forward ones: as with one */
    uint64_t passes = tarn_larger(model->reversals_count, 1);
    uint32_t count = list_forward(model, places), length = 1;
    while ((uint64_t)length * length * passes < count) length++;
    sum_crossing(model, crossing);
    for (uint32_t w = 0; w < model->versions_count; w++) {
        policy->keep[w] = !model->versions[w].droppable;
        policy->retain[w] = true;
    }
    for (uint32_t begin = length / 2; begin + length <= count; begin += length) {
        uint32_t cut = places[begin];
        for (uint32_t i = begin; i < begin + length; i++) {
            if (crossing[places[i]] < crossing[cut]) cut = places[i];
        }
        keep_across(model, policy, cut);
    }
    tarn_region_finish(&region);
    return TARN_OK;
}
