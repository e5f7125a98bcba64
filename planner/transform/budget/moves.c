/* Evaluates the policy, changes its decisions and undoes changes, for the parts of the search.
 * Moves are drawn from the decisions that made a difference in the schedule evaluated last: nothing
 * is to be decided about a version that no op reads after the place at which it is dropped. Cost:
 * the cost of tarn_evaluate for an evaluation, the copies of a schedule for noting roles, a few
 * decisions for a move. */
#include <assert.h>
#include <string.h>

#include "search.h"
#include "streams/base/random.h"

enum { EXCESS_WEIGHT = 10 };

/* ---- Policies ---- */

void tarn_policy_copy(const struct tarn_recompute_model *model, struct tarn_policy *to,
                      const struct tarn_policy *from)
{
    memcpy(to->keep, from->keep, model->versions_count * sizeof *to->keep);
    memcpy(to->retain, from->retain, model->versions_count * sizeof *to->retain);
    memcpy(to->ahead, from->ahead, model->versions_count * sizeof *to->ahead);
    memcpy(to->form, from->form, model->graph->ops_count * sizeof *to->form);
    to->cuts = from->cuts;
    to->cuts_count = from->cuts_count;
}

bool tarn_policy_is_equal(const struct tarn_recompute_model *model, const struct tarn_policy *a,
                          const struct tarn_policy *b)
{
    return memcmp(a->keep, b->keep, model->versions_count * sizeof *a->keep) == 0 &&
           memcmp(a->retain, b->retain, model->versions_count * sizeof *a->retain) == 0 &&
           memcmp(a->ahead, b->ahead, model->versions_count * sizeof *a->ahead) == 0 &&
           memcmp(a->form, b->form, model->graph->ops_count * sizeof *a->form) == 0 &&
           a->cuts == b->cuts && a->cuts_count == b->cuts_count;
}

static bool is_better(const struct tarn_budget_search *search)
{
    bool fits = search->peak <= search->budget, best_fits = search->best_peak <= search->budget;
    if (fits != best_fits) return fits;
    if (fits && search->time_ns != search->best_time) return search->time_ns < search->best_time;
    if (search->peak != search->best_peak) return search->peak < search->best_peak;
    return search->time_ns < search->best_time;
}

/* How far a schedule is above the budget: the peak counts, and also the other high places, since
 * with many executions at the peak no single one lowers it. */
static double bytes_above(const struct tarn_schedule *schedule, uint64_t aim)
{
    if (schedule->peak <= aim) return 0;
    return (double)(schedule->peak - aim) +
           EXCESS_WEIGHT * schedule->excess / ((double)schedule->count + 1);
}

/* The value to minimise: the critical path, plus a small part of the work, since a move that does
 * not change the path now may lengthen it later. */
static uint64_t cost_of(const struct tarn_schedule *schedule)
{
    return schedule->time_ns + (schedule->work_ns - schedule->time_ns) / TARN_SEARCH_WORK_WEIGHT;
}

void tarn_search_evaluate(struct tarn_budget_search *search)
{
    const struct tarn_schedule *schedule =
        tarn_evaluate(search->evaluator, search->policy, search->aim);
    search->evaluations++;
    if (!tarn_steps_next(&search->steps, search->best_peak)) search->ended = true;
    if (!schedule) {
        search->no_memory = search->ended = true;
        return;
    }
    search->schedule = schedule;
    search->peak = schedule->peak;
    search->time_ns = cost_of(schedule);
    search->above = bytes_above(schedule, search->aim);
    if (!is_better(search)) return;
    search->best_peak = search->peak;
    search->best_time = search->time_ns;
    tarn_policy_copy(search->model, &search->best, search->policy);
}

void tarn_search_take_best(struct tarn_budget_search *search)
{
    tarn_policy_copy(search->model, search->policy, &search->best);
}

/* ---- Moves ---- */

void tarn_search_set(struct tarn_budget_search *search, uint32_t d, uint32_t value)
{
    assert(d < search->space.count && value < search->space.decisions[d].values);
    uint32_t before = tarn_decision_get(&search->space, search->policy, d);
    if (before == value || search->undo_count == TARN_MOVE_MAX) return;
    search->undo[search->undo_count++] = (struct tarn_setting){d, before};
    tarn_decision_set(&search->space, search->policy, d, value);
}

void tarn_search_take_back(struct tarn_budget_search *search)
{
    while (search->undo_count > 0) {
        struct tarn_setting *change = &search->undo[--search->undo_count];
        tarn_decision_set(&search->space, search->policy, change->decision, change->value);
    }
}

void tarn_search_set_form(struct tarn_budget_search *search, uint32_t d, uint32_t value, bool keep)
{
    const struct tarn_recompute_model *model = search->model;
    tarn_search_set(search, d, value);
    uint32_t f = search->policy->form[search->space.decisions[d].index];
    if (f == TARN_NONE || !keep) return;
    for (uint32_t i = model->forms[f].reads.begin; i < model->forms[f].reads.end; i++) {
        uint32_t read = search->space.of_version[model->reads[i]];
        if (read != TARN_NONE) tarn_search_set(search, read, TARN_KEEP);
    }
}

bool tarn_search_is_used_late(const struct tarn_budget_search *search, const struct tarn_copy *copy)
{
    const struct tarn_schedule *schedule = search->schedule;
    return copy->last_read >= schedule->count || /* the tail's */
           schedule->executions[copy->last_read].place >=
               search->model->versions[copy->version].dropped_at;
}

/* ---- Random moves ---- */

uint32_t tarn_search_draw(struct tarn_budget_search *search, uint32_t count)
{
    return tarn_random_below(&search->random, count);
}

/* The role of a version after the place at which it is dropped. */
enum { KEPT = 1, RECOMPUTED = 2, AGAIN = 4, SHARED = 8 };

void tarn_search_note_roles(struct tarn_budget_search *search)
{
    const struct tarn_schedule *schedule = search->schedule;
    assert(schedule);
    memset(search->roles, 0, search->space.versions_count);
    for (uint32_t c = 0; c < schedule->copies_count; c++) {
        const struct tarn_copy *copy = &schedule->copies[c];
        uint32_t d = search->space.of_version[copy->version];
        if (d == TARN_NONE || !tarn_search_is_used_late(search, copy)) continue;
        if (!copy->recomputed) {
            search->roles[d] |= KEPT;
            continue;
        }
        bool shared =
            copy->last_read >= schedule->count ||
            schedule->executions[copy->birth].place != schedule->executions[copy->last_read].place;
        search->roles[d] |= (uint8_t)(RECOMPUTED | (search->roles[d] & RECOMPUTED ? AGAIN : 0) |
                                      (shared ? SHARED : 0));
    }
    search->active_count = 0;
    for (uint32_t d = 0; d < search->space.versions_count; d++) {
        if (search->roles[d]) search->active[search->active_count++] = d;
    }
}

void tarn_search_move_version(struct tarn_budget_search *search, uint32_t d)
{
    uint32_t value = tarn_decision_get(&search->space, search->policy, d),
             luck = tarn_search_draw(search, 8);
    uint32_t launches = search->space.decisions[d].values - TARN_DROP_AHEAD;
    if (launches > 0 && luck >= 4)
        value = TARN_DROP_AHEAD + tarn_search_draw(search, launches);
    else if (value == TARN_KEEP)
        value = luck == 0 ? TARN_DROP_EACH_TIME : TARN_DROP;
    else if (value == TARN_DROP && (search->roles[d] & SHARED) && luck < 2)
        value = TARN_DROP_EACH_TIME;
    else if (value == TARN_DROP_EACH_TIME && (search->roles[d] & AGAIN) && luck < 2)
        value = TARN_DROP;
    else
        value = TARN_KEEP;
    tarn_search_set(search, d, value);
}

void tarn_search_move_form(struct tarn_budget_search *search, uint32_t d)
{
    uint32_t values = search->space.decisions[d].values;
    uint32_t value = tarn_decision_get(&search->space, search->policy, d);
    value = (value + 1 + tarn_search_draw(search, values - 1)) % values;
    tarn_search_set_form(search, d, value, tarn_search_draw(search, 2) > 0);
}

void tarn_search_move(struct tarn_budget_search *search, uint32_t d)
{
    if (d >= search->space.versions_count)
        tarn_search_move_form(search, d);
    else if (search->roles[d])
        tarn_search_move_version(search, d);
}

double tarn_search_usual_time(const struct tarn_budget_search *search)
{
    const struct tarn_recompute_model *model = search->model;
    double sum = 0;
    uint32_t count = 0;
    for (uint32_t i = 0; i < model->ops_count; i++) {
        if (!model->is_forward[i]) continue;
        struct tarn_range forms = model->op_forms[model->order[i]];
        sum += (double)model->choices[model->forms[forms.begin].choices.begin].time_ns;
        count++;
    }
    return count > 0 ? sum / count : 0;
}
