/* Chooses the form in which an op runs if the policy leaves it open: for a recomputation, or as a
 * primary op. The time of missing reads is guessed by depth-first search, each version counted
 * once, down to GUESS_DEPTH_MAX. Cost: the forms of an op and their reads; for a guess the forms
 * and reads of all visited versions. */
#include "evaluator.h"

enum { GUESS_DEPTH_MAX = 48 };

/* ---- Getting a version again ---- */

static bool states_hold(const struct tarn_evaluator *evaluator, const struct tarn_form *form)
{
    for (uint32_t i = form->states.begin; i < form->states.end; i++) {
        const struct tarn_state *state = &evaluator->model->states[i];
        if (evaluator->updates[state->storage] != state->updates) return false;
    }
    return true;
}

static bool yields(const struct tarn_recompute_model *model, const struct tarn_form *form,
                   uint32_t version)
{
    for (uint32_t i = form->writes.begin; i < form->writes.end; i++) {
        if (model->writes[i] == version) return true;
    }
    return false;
}

static uint32_t missing_reads(const struct tarn_evaluator *evaluator, const struct tarn_form *form)
{
    uint32_t missing = 0;
    for (uint32_t i = form->reads.begin; i < form->reads.end; i++)
        missing += evaluator->latest[evaluator->model->reads[i]] == TARN_NONE;
    return missing;
}

uint32_t tarn_evaluator_form_for(const struct tarn_evaluator *evaluator, uint32_t version)
{
    const struct tarn_recompute_model *model = evaluator->model;
    struct tarn_range range = model->op_forms[model->versions[version].producer];
    uint32_t best = TARN_NONE, least = UINT32_MAX;
    for (uint32_t f = range.begin; f < range.end; f++) {
        const struct tarn_form *form = &model->forms[f];
        if (!form->repeats || !yields(model, form, version) || !states_hold(evaluator, form))
            continue;
        uint32_t missing = missing_reads(evaluator, form);
        uint64_t time_ns = model->choices[form->choices.begin].time_ns;
        if (missing > least ||
            (missing == least && best != TARN_NONE &&
             time_ns >= model->choices[model->forms[best].choices.begin].time_ns))
            continue;
        best = f;
        least = missing;
    }
    return best;
}

/* ---- Running a primary op ---- */

/* The time to recompute a version, without the versions that this guess has counted already. */
static uint64_t guess_version(struct tarn_evaluator *evaluator, uint32_t version, uint32_t depth)
{
    const struct tarn_recompute_model *model = evaluator->model;
    if (evaluator->latest[version] != TARN_NONE || evaluator->guessed[version] == evaluator->guess)
        return 0;
    evaluator->guessed[version] = evaluator->guess;
    uint32_t f = tarn_evaluator_form_for(evaluator, version);
    if (f == TARN_NONE) return UINT64_MAX / 2;
    const struct tarn_form *form = &model->forms[f];
    uint64_t time_ns = model->choices[form->choices.begin].time_ns;
    for (uint32_t i = form->reads.begin; i < form->reads.end && depth < GUESS_DEPTH_MAX; i++) {
        time_ns += guess_version(evaluator, model->reads[i], depth + 1);
        if (time_ns > UINT64_MAX / 2) return UINT64_MAX / 2;
    }
    return time_ns;
}

static uint64_t guess_form(struct tarn_evaluator *evaluator, const struct tarn_form *form)
{
    uint64_t time_ns = evaluator->model->choices[form->choices.begin].time_ns;
    evaluator->guess++;
    for (uint32_t i = form->reads.begin; i < form->reads.end; i++) {
        time_ns += guess_version(evaluator, evaluator->model->reads[i], 0);
        if (time_ns > UINT64_MAX / 2) return UINT64_MAX / 2;
    }
    return time_ns;
}

uint32_t tarn_evaluator_cheapest_form(struct tarn_evaluator *evaluator, struct tarn_range range)
{
    uint32_t best = range.begin, whole = 0;
    uint64_t least = UINT64_MAX;
    for (uint32_t f = range.begin; f < range.end; f++) whole += evaluator->model->forms[f].whole;
    for (uint32_t f = range.begin; f < range.end && whole > 1; f++) {
        if (!evaluator->model->forms[f].whole) continue;
        uint64_t time_ns = guess_form(evaluator, &evaluator->model->forms[f]);
        if (time_ns >= least) continue;
        least = time_ns;
        best = f;
    }
    return best;
}
