/* Improves a policy by annealing: random moves, of which worse ones are accepted more and more
 * seldom (S. Kirkpatrick et al., "Optimization by simulated annealing", 1983). Bytes above the aim
 * have a price in time. It rises while a policy is above the aim and falls while it is below, so
 * the search stays near the aim. Cost: an evaluation for each step. */
#include "search.h"
#include "streams/base/random.h"

enum {
    NEAR = 10,
    FORM_MOVES = 15,   /* in a hundred */
    SINGLE_MOVES = 50, /* of one version */
};

/* At the start of annealing: the price of the whole budget, as a part of the time; how much worse a
 * move may be, in average times of a forward op. Then the change of the price with each step.
 */
static const double PRICE = 0.3, HEAT = 4, RISE = 1.003;
static const double PRICE_RANGE = 16, COOLER = 8;

/* One decision anew, or two about versions near each other. */
static void move(struct tarn_budget_search *search)
{
    uint32_t forms = search->space.count - search->space.versions_count;
    uint32_t kind = tarn_search_draw(search, 100);
    if (kind < FORM_MOVES || search->active_count == 0) {
        if (forms > 0)
            tarn_search_move_form(search,
                                  search->space.versions_count + tarn_search_draw(search, forms));
        return;
    }
    uint32_t i = tarn_search_draw(search, search->active_count);
    tarn_search_move_version(search, search->active[i]);
    uint32_t other = i + tarn_search_draw(search, 2 * NEAR + 1);
    if (kind < FORM_MOVES + SINGLE_MOVES || other == i + NEAR) return;
    if (other >= NEAR && other - NEAR < search->active_count)
        tarn_search_move_version(search, search->active[other - NEAR]);
}

/* ---- Annealing ---- */

/* In nanoseconds. */
static double cost_of(uint64_t time_ns, double above, double price)
{
    return (double)time_ns + price * above;
}

/* Data of the policy, and the price of a byte above the aim in nanoseconds. */
struct annealing {
    uint64_t time_ns;
    double above, price;
};

static void step(struct tarn_budget_search *search, struct annealing *state, double heat)
{
    move(search);
    if (search->undo_count == 0) return;
    tarn_search_evaluate(search);
    double now = cost_of(state->time_ns, state->above, state->price);
    double then = cost_of(search->time_ns, search->above, state->price);
    double luck = tarn_random_unit(&search->random);
    if (then <= now + heat * luck * luck) {
        state->above = search->above;
        state->time_ns = search->time_ns;
        search->undo_count = 0;
        tarn_search_note_roles(search);
    } else {
        tarn_search_take_back(search);
    }
}

void tarn_search_anneal(struct tarn_budget_search *search, bool refine, uint64_t steps)
{
    double price = PRICE * (double)search->best_time / (double)search->aim;
    double heat = HEAT * tarn_search_usual_time(search) / (refine ? COOLER : 1);
    struct annealing state = {.time_ns = search->time_ns, .above = search->above, .price = price};
    tarn_search_note_roles(search);
    for (uint64_t i = 0; i < steps && !search->ended; i++) {
        double left = 1 - (double)i / (double)steps;
        step(search, &state, heat * left * left);
        state.price *= state.above > 0 ? RISE : 1 / RISE;
        if (state.price < price / PRICE_RANGE) state.price = price / PRICE_RANGE;
        if (state.price > price * PRICE_RANGE) state.price = price * PRICE_RANGE;
    }
}
