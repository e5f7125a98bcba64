/* Annealing: random moves, of which worse ones are accepted ever more seldom (S. Kirkpatrick et
 * al., "Optimization by simulated annealing", 1983). Bytes above the aim have a price in time,
 * which rises while a policy is above it and falls while below, so that the walk follows the
 * border. Moves are drawn from the decisions that made a difference in the schedule at hand: of a
 * version that nobody reads behind the turn nothing is to be decided. Cost: an evaluation for each
 * step. */
#include <string.h>

#include "search.h"
#include "streams/base/random.h"

enum {
    NEAR = 10,
    FORM_MOVES = 15,   /* in a hundred */
    SINGLE_MOVES = 50, /* of one version */
};

/* At the start of annealing: what is paid for the whole budget, as a part of the time; how much
 * worse a move may be, in usual times of a forward op. Then how the price changes with each step.
 */
static const double PRICE = 0.3, HEAT = 4, RISE = 1.003;
static const double PRICE_RANGE = 16, COOLER = 8;

/* ---- Moves ---- */

uint32_t tarn_search_draw(struct tarn_search *all, uint32_t count)
{
    return tarn_random_below(&all->random, count);
}

/* What became of a version behind the turn. */
enum { KEPT = 1, RECOMPUTED = 2, AGAIN = 4, SHARED = 8 };

/* Notes which decisions have made a difference in the schedule evaluated last. */
void tarn_search_note_roles(struct tarn_search *all)
{
    const struct tarn_schedule *schedule = all->schedule;
    uint32_t turn = tarn_search_turn(all);
    memset(all->roles, 0, all->space.versions_count);
    for (uint32_t c = 0; c < schedule->copies_count; c++) {
        const struct tarn_copy *copy = &schedule->copies[c];
        uint32_t d = all->space.of_version[copy->version];
        if (d == TARN_NONE || copy->last_read < turn) continue;
        if (!copy->recomputed) {
            all->roles[d] |= KEPT;
            continue;
        }
        bool shared =
            copy->last_read >= schedule->count ||
            schedule->executions[copy->birth].place != schedule->executions[copy->last_read].place;
        all->roles[d] |= (uint8_t)(RECOMPUTED | (all->roles[d] & RECOMPUTED ? AGAIN : 0) |
                                   (shared ? SHARED : 0));
    }
    all->active_count = 0;
    for (uint32_t d = 0; d < all->space.versions_count; d++) {
        if (all->roles[d]) all->active[all->active_count++] = d;
    }
}

/* Another value for a version, if it can make a difference; mostly kept becomes dropped and back.
 */
static void move_version(struct tarn_search *all, uint32_t d)
{
    uint32_t value = tarn_decision_get(&all->space, all->policy, d),
             luck = tarn_search_draw(all, 8);
    if (value == TARN_KEEP)
        value = luck == 0 ? TARN_DROP_EACH_TIME : TARN_DROP;
    else if (value == TARN_DROP && (all->roles[d] & SHARED) && luck < 2)
        value = TARN_DROP_EACH_TIME;
    else if (value == TARN_DROP_EACH_TIME && (all->roles[d] & AGAIN) && luck < 2)
        value = TARN_DROP;
    else
        value = TARN_KEEP;
    tarn_search_set(all, d, value);
}

static void move_form(struct tarn_search *all, uint32_t d)
{
    uint32_t values = all->space.decisions[d].values;
    uint32_t value = tarn_decision_get(&all->space, all->policy, d);
    value = (value + 1 + tarn_search_draw(all, values - 1)) % values;
    tarn_search_set_form(all, d, value, tarn_search_draw(all, 2) > 0);
}

void tarn_search_move(struct tarn_search *all, uint32_t d)
{
    if (d >= all->space.versions_count)
        move_form(all, d);
    else if (all->roles[d])
        move_version(all, d);
}

/* One decision anew, or two about versions near each other. */
static void move(struct tarn_search *all)
{
    uint32_t forms = all->space.count - all->space.versions_count;
    uint32_t kind = tarn_search_draw(all, 100);
    if (kind < FORM_MOVES || all->active_count == 0) {
        if (forms > 0) move_form(all, all->space.versions_count + tarn_search_draw(all, forms));
        return;
    }
    uint32_t i = tarn_search_draw(all, all->active_count);
    move_version(all, all->active[i]);
    uint32_t other = i + tarn_search_draw(all, 2 * NEAR + 1);
    if (kind < FORM_MOVES + SINGLE_MOVES || other == i + NEAR) return;
    if (other >= NEAR && other - NEAR < all->active_count)
        move_version(all, all->active[other - NEAR]);
}

/* ---- Annealing ---- */

/* In nanoseconds. */
static double cost_of(uint64_t time_ns, double above, double price)
{
    return (double)time_ns + price * above;
}

/* Of the policy at hand, and what a byte above the aim costs in nanoseconds. */
struct annealing {
    uint64_t time_ns;
    double above, price;
};

static void step(struct tarn_search *all, struct annealing *state, double heat)
{
    move(all);
    if (all->undo_count == 0) return;
    tarn_search_evaluate(all);
    double now = cost_of(state->time_ns, state->above, state->price);
    double then = cost_of(all->time_ns, all->above, state->price);
    double luck = tarn_random_unit(&all->random);
    if (then <= now + heat * luck * luck) {
        state->above = all->above;
        state->time_ns = all->time_ns;
        all->undo_count = 0;
        tarn_search_note_roles(all);
    } else {
        tarn_search_take_back(all);
    }
}

double tarn_search_usual_time(const struct tarn_search *all)
{
    const struct tarn_recompute_model *model = all->model;
    double sum = 0;
    for (uint32_t i = 0; i < model->turn; i++) {
        struct tarn_range forms = model->op_forms[model->order[i]];
        sum += (double)model->choices[model->forms[forms.begin].choices.begin].time_ns;
    }
    return model->turn > 0 ? sum / model->turn : 0;
}

void tarn_search_anneal(struct tarn_search *all, bool refine, uint64_t steps)
{
    double price = PRICE * (double)all->best_time / (double)all->aim;
    double heat = HEAT * tarn_search_usual_time(all) / (refine ? COOLER : 1);
    struct annealing state = {.time_ns = all->time_ns, .above = all->above, .price = price};
    tarn_search_note_roles(all);
    for (uint64_t i = 0; i < steps && !all->ended; i++) {
        double left = 1 - (double)i / (double)steps;
        step(all, &state, heat * left * left);
        state.price *= state.above > 0 ? RISE : 1 / RISE;
        if (state.price < price / PRICE_RANGE) state.price = price / PRICE_RANGE;
        if (state.price > price * PRICE_RANGE) state.price = price * PRICE_RANGE;
    }
}
