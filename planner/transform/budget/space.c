/* Lists the decisions of a policy. Versions that may not be dropped are left out, and so are the
 * smallest versions, whose bytes together do not matter (a thousandth of all). If an op runs as two
 * parts, the decision names the form of the first part. Cost: sorting the versions by size. */
#include "space.h"

#include <assert.h>
#include <stdlib.h>

enum { NEGLIGIBLE = 1000 };

static int by_size(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* Versions of less than the result are negligible. */
static uint64_t least_size(const struct tarn_recompute_model *model, uint64_t *sizes)
{
    uint64_t total = 0, below = 0;
    uint32_t count = 0;
    for (uint32_t w = 0; w < model->versions_count; w++) {
        if (!model->versions[w].droppable) continue;
        sizes[count++] = model->versions[w].size;
        total += model->versions[w].size;
    }
    qsort(sizes, count, sizeof *sizes, by_size);
    for (uint32_t i = 0; i < count; i++) {
        below += sizes[i];
        if (below > total / NEGLIGIBLE) return sizes[i];
    }
    return 0;
}

static bool can_stand(const struct tarn_recompute_model *model, uint32_t f)
{
    return model->forms[f].whole || model->forms[f].splits;
}

static uint32_t count_forms(const struct tarn_recompute_model *model, struct tarn_range range)
{
    uint32_t count = 0;
    for (uint32_t f = range.begin; f < range.end; f++) count += can_stand(model, f);
    return count;
}

static void add_versions(struct tarn_budget_space *space, uint64_t least)
{
    const struct tarn_recompute_model *model = space->model;
    for (uint32_t w = 0; w < model->versions_count; w++) {
        if (!model->versions[w].droppable || model->versions[w].size < least) continue;
        space->of_version[w] = space->count;
        space->decisions[space->count++] =
            (struct tarn_decision){w, TARN_DROP_AHEAD + model->versions[w].launches_count};
    }
    space->versions_count = space->count;
}

static void add_ops(struct tarn_budget_space *space)
{
    const struct tarn_recompute_model *model = space->model;
    for (uint32_t i = 0; i < model->ops_count; i++) {
        uint32_t forms = count_forms(model, model->op_forms[model->order[i]]);
        if (forms < 2) continue;
        space->decisions[space->count++] = (struct tarn_decision){model->order[i], forms + 1};
    }
}

enum tarn_status tarn_budget_space_init(struct tarn_budget_space *space, struct tarn_region *region,
                                        const struct tarn_recompute_model *model, bool recompute)
{
    uint32_t versions = model->versions_count;
    *space = (struct tarn_budget_space){.model = model};
    space->decisions =
        tarn_region_take(region, (size_t)versions + model->ops_count, sizeof *space->decisions);
    space->of_version = tarn_region_take(region, versions, sizeof *space->of_version);
    struct tarn_region_mark mark = tarn_region_mark(region);
    uint64_t *sizes = tarn_region_take(region, versions, sizeof *sizes);
    if (!region->is_exhausted) {
        for (uint32_t w = 0; w < versions; w++) space->of_version[w] = TARN_NONE;
        if (recompute) add_versions(space, least_size(model, sizes));
        add_ops(space);
        assert(space->count <= versions + model->ops_count);
    }
    tarn_region_release(region, mark);
    return region->is_exhausted ? TARN_SYSTEM : TARN_OK;
}

static uint32_t form_value(const struct tarn_recompute_model *model, struct tarn_range range,
                           uint32_t form)
{
    uint32_t value = 0;
    for (uint32_t f = range.begin; f < range.end; f++) {
        value += can_stand(model, f);
        if (f == form) return value;
    }
    return 0;
}

static uint32_t value_form(const struct tarn_recompute_model *model, struct tarn_range range,
                           uint32_t value)
{
    uint32_t seen = 0;
    for (uint32_t f = range.begin; f < range.end && value > 0; f++) {
        seen += can_stand(model, f);
        if (seen == value) return f;
    }
    return TARN_NONE;
}

uint32_t tarn_decision_get(const struct tarn_budget_space *space, const struct tarn_policy *policy,
                           uint32_t d)
{
    assert(d < space->count);
    uint32_t index = space->decisions[d].index;
    if (d >= space->versions_count)
        return form_value(space->model, space->model->op_forms[index], policy->form[index]);
    if (policy->keep[index]) return TARN_KEEP;
    if (!policy->retain[index]) return TARN_DROP_EACH_TIME;
    return policy->ahead[index] > 0 ? TARN_DROP_AHEAD - 1u + policy->ahead[index] : TARN_DROP;
}

void tarn_decision_set(const struct tarn_budget_space *space, struct tarn_policy *policy,
                       uint32_t d, uint32_t value)
{
    assert(d < space->count && value < space->decisions[d].values);
    uint32_t index = space->decisions[d].index;
    if (d >= space->versions_count) {
        policy->form[index] = value_form(space->model, space->model->op_forms[index], value);
    } else {
        policy->keep[index] = value == TARN_KEEP;
        policy->retain[index] = value != TARN_DROP_EACH_TIME;
        policy->ahead[index] =
            value >= TARN_DROP_AHEAD ? (uint8_t)(value - TARN_DROP_AHEAD + 1) : 0;
    }
}

uint64_t tarn_budget_space_size(const struct tarn_budget_space *space, uint64_t most)
{
    uint64_t size = 1;
    for (uint32_t d = 0; d < space->count; d++) {
        size *= space->decisions[d].values;
        if (size > most) return most;
    }
    return size;
}
