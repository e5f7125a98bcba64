/* Chooses the gaps to use. Two methods each make a choice, and the better choice is improved:
 *
 *     settle    the gaps that make no op wait are taken first; if these do not suffice, releases
 *               come earlier and triggers later, those that cost least waiting per byte first, and
 *               then all copies are placed by the resulting clock, and again
 *     stretch   the clock itself is stretched for the cheapest byte, at the first and the last
 *               slot above the budget in turn, and gaps are taken by that clock
 *
 * The first is better if little waiting is needed, the second if much is. Then gaps are added and
 * removed at random, settled by the clock of the best choice so far. The value of a gap is its
 * bytes times its idle time, divided by the time of its copies. Random numbers and the limit of
 * work are fixed. A small graph has few choices: the random search ends when it draws only choices
 * that it has settled, and stretching ends when it no longer lowers the slots above the budget.
 * Cost: a few passes over places and gaps for each trial. */
#include <math.h>
#include <string.h>

#include "clock.h"
#include "streams/base/random.h"

enum { TRIES = 6, TRIES_STRETCHED = 4, ROUNDS = 6, ROUNDS_RANDOM = 3 };
/* Stretching ends after that many steps, and one for each gap, that lower nothing. */
enum { STRETCHED_IDLE = 256 };
/* Choices that the random search remembers: a power of two. It ends after KNOWN_ONLY draws, and
 * KNOWN_ONLY_PAIR for each pair of gaps, of choices that it remembers. */
enum { REMEMBERED = 4096, KNOWN_ONLY = 256, KNOWN_ONLY_PAIR = 64 };

/* A choice of gaps that was settled from some clock. Both give the key, which stands for them: if
 * two keys are equal by chance, a choice is not tried. */
struct settled {
    uint64_t key;
    int64_t time;  /* the shortest; INT64_MAX: it does not keep to the budget; 0: no such choice */
    uint64_t work; /* that settling took: counted again if it is drawn again, so that the limit of
                      work ends the search where it would without a memory */
};

struct search {
    struct tarn_offload_model *model;
    struct tarn_offload_trial trial;
    const struct tarn_deadline *deadline;
    uint64_t work; /* at which it ends */
    int64_t budget;
    double *score;                 /* by gap */
    uint32_t *ranked;              /* gaps by score, the best first */
    bool *useless, *kept, *barred; /* by gap; barred: not to be taken alone */
    uint32_t *pool;
    int64_t *start, *end;         /* a clock */
    int64_t *now_start, *now_end; /* the clock of the best so far */
    struct tarn_offload_choice best;
    size_t stuck;            /* slot that stayed above the budget */
    struct settled *settled; /* by key, the latest of those that share a place */
};

static bool is_over(const struct search *search)
{
    return search->trial.work > search->work ||
           (search->deadline && tarn_deadline_is_over(search->deadline));
}

static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

/* ---- Scores ---- */

static bool has_higher_score(const void *context, uint32_t a, uint32_t b)
{
    const double *score = context;
    return score[a] > score[b];
}

static void sort_by_score(const double *score, uint32_t *items, uint32_t count, uint32_t *room)
{
    tarn_offload_sort(items, room, count, has_higher_score, score);
}

static enum tarn_status search_init(struct search *search, struct tarn_offload_model *model,
                                    uint64_t budget, uint64_t work,
                                    const struct tarn_deadline *deadline)
{
    struct tarn_region *region = model->region;
    size_t gaps = model->gaps_count, places = (size_t)model->count + 1;
    *search = (struct search){.model = model,
                              .deadline = deadline,
                              .work = work,
                              .budget = (int64_t)budget,
                              .best = {.peak = UINT64_MAX}};
    search->score = tarn_region_take(region, gaps, sizeof *search->score);
    search->ranked = tarn_region_take(region, gaps, sizeof *search->ranked);
    search->pool = tarn_region_take(region, 2 * gaps, sizeof *search->pool);
    search->useless = tarn_region_take(region, gaps, sizeof *search->useless);
    search->kept = tarn_region_take(region, gaps, sizeof *search->kept);
    search->barred = tarn_region_take(region, gaps, sizeof *search->barred);
    int64_t **times[] = {&search->start, &search->end, &search->now_start, &search->now_end};
    for (size_t i = 0; i < sizeof times / sizeof *times; i++)
        *times[i] = tarn_region_take(region, places, sizeof **times[i]);
    search->best.arcs = tarn_region_take(region, gaps, sizeof *search->best.arcs);
    search->settled = tarn_region_take(region, REMEMBERED, sizeof *search->settled);
    if (tarn_offload_trial_init(&search->trial, model) != TARN_OK) return TARN_SYSTEM;
    for (uint32_t g = 0; g < gaps; g++) {
        const struct tarn_offload_gap *gap = &model->gaps[g];
        int64_t until = gap->has_into ? model->start0[gap->right] : (int64_t)model->time0_ns;
        double idle = (double)(until - model->end0[gap->left]);
        search->score[g] = (double)gap->size * idle / (double)(gap->out_ns + gap->into_ns + 1);
        search->ranked[g] = g;
    }
    sort_by_score(search->score, search->ranked, (uint32_t)gaps, search->pool);
    return TARN_OK;
}

/* Takes only the gaps that are always used. */
static void take_forced(struct search *search)
{
    for (uint32_t g = 0; g < search->model->gaps_count; g++)
        search->trial.in[g] = search->model->gaps[g].is_forced;
}

/* ---- Gaps that make no op wait ---- */

struct excess {
    double weight;
    int64_t highest;
    size_t at; /* the first slot of that height */
};

static struct excess measure(struct search *search)
{
    struct tarn_offload_trial *trial = &search->trial;
    struct excess excess = {0, tarn_offload_profile(trial), 0};
    size_t slots = 2 * (size_t)search->model->count;
    bool found = false;
    for (size_t q = 0; q < slots; q++) {
        if (trial->profile[q] > search->budget)
            excess.weight += (double)(trial->profile[q] - search->budget);
        if (!found && trial->profile[q] == excess.highest) {
            excess.at = q;
            found = true;
        }
    }
    excess.weight += 8 * (double)(excess.highest - search->budget);
    return excess;
}

/* The gaps that are not taken and could be away in the slot, the best first. */
static uint32_t list_covering(struct search *search, size_t q)
{
    const struct tarn_offload_model *model = search->model;
    uint32_t count = 0, p = (uint32_t)(q / 2);
    for (uint32_t i = 0; i < model->gaps_count; i++) {
        uint32_t g = search->ranked[i];
        const struct tarn_offload_gap *gap = &model->gaps[g];
        bool may_be = !search->trial.in[g] && !search->useless[g] && !search->barred[g];
        if (may_be && gap->left < p && p < gap->right) search->pool[count++] = g;
    }
    return count;
}

/* Adds gaps as long as one of them brings less above the budget; returns the highest slot's value.
 */
static int64_t take_free(struct search *search, const int64_t *start, const int64_t *end,
                         uint32_t tries)
{
    struct tarn_offload_trial *trial = &search->trial;
    memset(search->useless, 0, search->model->gaps_count * sizeof *search->useless);
    tarn_offload_place(trial, start, end);
    struct excess now = measure(search);
    while (now.highest > search->budget && !is_over(search)) {
        uint32_t count = list_covering(search, now.at), most = 8 * tries, found = TARN_NONE;
        struct excess best = {0};
        if (count < most) most = count;
        for (uint32_t k = 0; k < most && found == TARN_NONE; k += tries) {
            for (uint32_t i = k; i < k + tries && i < most; i++) {
                uint32_t g = search->pool[i];
                trial->in[g] = true;
                tarn_offload_place(trial, start, end);
                struct excess with = measure(search);
                trial->in[g] = false;
                if (found != TARN_NONE && with.weight >= best.weight) continue;
                best = with;
                found = g;
            }
            if (best.weight < now.weight - 1) break;
            for (uint32_t i = k; i < k + tries && i < most; i++)
                search->useless[search->pool[i]] = true;
            found = TARN_NONE;
        }
        if (found == TARN_NONE) break;
        trial->in[found] = true;
        now = best;
    }
    tarn_offload_place(trial, start, end);
    return tarn_offload_profile(trial);
}

/* ---- Choices ---- */

static void note_choice(const struct tarn_offload_trial *trial, struct tarn_offload_choice *choice,
                        int64_t peak, int64_t time_ns)
{
    choice->count = 0;
    choice->peak = (uint64_t)peak;
    choice->time_ns = (uint64_t)time_ns;
    for (uint32_t g = 0; g < trial->model->gaps_count; g++) {
        if (!trial->in[g]) continue;
        choice->arcs[choice->count++] = (struct tarn_offload_arcs){
            g, trial->release[g], trial->trigger[g], trial->rank[g], trial->after[g]};
    }
}

/* Tidies the trial's arcs. If they keep to the budget, records them if they are better, and returns
 * the time; else returns -1. Fills the trial's clock. */
static int64_t offer(struct search *search)
{
    struct tarn_offload_trial *trial = &search->trial;
    tarn_offload_tidy(trial);
    int64_t peak = tarn_offload_profile(trial);
    if (peak > search->budget) {
        search->stuck = measure(search).at;
        return -1;
    }
    int64_t time = tarn_offload_simulate(trial);
    bool is_any = search->best.peak != UINT64_MAX;
    if (!is_any || (uint64_t)time <= search->best.time_ns) {
        note_choice(trial, &search->best, peak, time);
        size_t bytes = search->model->count * sizeof *trial->start;
        memcpy(search->now_start, trial->start, bytes);
        memcpy(search->now_end, trial->end, bytes);
    }
    return time;
}

/* Releases and triggers of the trial's gaps for the budget: by the clock, forced, and again by the
 * clock that this leads to. Returns the shortest time; INT64_MAX: they do not keep to it. */
static int64_t settle(struct search *search, uint32_t rounds, const int64_t *start,
                      const int64_t *end)
{
    struct tarn_offload_trial *trial = &search->trial;
    size_t gaps = search->model->gaps_count, bytes = search->model->count * sizeof *start;
    int64_t least = INT64_MAX;
    memmove(search->start, start, bytes);
    memmove(search->end, end, bytes);
    memcpy(search->kept, trial->in, gaps);
    for (uint32_t round = 0; round < rounds; round++) {
        memcpy(trial->in, search->kept, gaps);
        tarn_offload_place(trial, search->start, search->end);
        size_t q = tarn_offload_force(trial, search->budget, search->start, search->end);
        if (q != SIZE_MAX) {
            search->stuck = q;
            break;
        }
        int64_t time = offer(search);
        if (time < 0) break;
        memcpy(search->start, trial->start, bytes);
        memcpy(search->end, trial->end, bytes);
        if (time >= least) break;
        least = time;
    }
    memcpy(trial->in, search->kept, gaps);
    return least;
}

/* ---- Stretching ---- */

struct option {
    double cost; /* ns per byte */
    int64_t ahead, behind;
    uint32_t gap, here, next;
};

/* Finds the cost of moving a gap's bytes away during the slot. */
static void look_for_option(struct search *search, size_t q, bool is_first, struct option *best,
                            bool *found)
{
    struct tarn_offload_model *model = search->model;
    struct tarn_offload_trial *trial = &search->trial;
    const int64_t *start = search->start, *end = search->end;
    int64_t wait = (int64_t)model->terms.wait_ns;
    uint32_t p = (uint32_t)(q / 2), needed = q % 2 ? p + 1 : p;
    uint32_t k = tarn_offload_main_from(model, p, true);
    uint32_t m = tarn_offload_main_from(model, needed, false);
    if (k == 0 || m + 1 >= model->main_count) return;
    uint32_t here = model->main_ops[k - 1], there = model->main_ops[m];
    int64_t last_out = 0, first_in = end[model->count - 1];
    trial->work += 4 * (uint64_t)model->gaps_count;
    for (uint32_t g = 0; g < model->gaps_count; g++) {
        if (!trial->in[g]) continue;
        const struct tarn_offload_gap *gap = &model->gaps[g];
        if (gap->write < p && trial->out_end[g] <= start[here])
            last_out = larger(last_out, trial->out_end[g]);
        if (gap->right > p && trial->into_start[g] >= end[there] && trial->into_start[g] < first_in)
            first_in = trial->into_start[g];
    }
    for (uint32_t g = 0; g < model->gaps_count; g++) {
        const struct tarn_offload_gap *gap = &model->gaps[g];
        if (gap->left >= p || gap->right <= p || here <= gap->left || there >= gap->right) continue;
        int64_t out, into;
        if (gap->is_first || !gap->has_into) continue; /* no op waits for one end of these */
        if (trial->in[g]) {
            bool is_in = trial->trigger[g] != TARN_NONE && trial->trigger[g] >= needed;
            if (trial->release[g] <= p && is_in) continue;
            out = trial->free_at[g];
            into = trial->into_start[g];
        } else {
            int64_t by = tarn_offload_needed_at(model, g, start) - wait;
            out = larger(last_out, end[gap->write] + wait) + (int64_t)gap->out_ns;
            out = tarn_offload_freed_at(model, g, gap->has_out ? out : -wait, end);
            into = (first_in < by ? first_in : by) - (int64_t)gap->into_ns;
        }
        struct option option = {.ahead = larger(0, out - start[here]),
                                .behind = larger(0, end[there] + wait - into),
                                .gap = g,
                                .here = here,
                                .next = model->main_ops[m + 1]};
        option.cost = (double)(option.ahead + option.behind) / (double)gap->size;
        if ((option.ahead > option.behind) != is_first) option.cost *= 1.3;
        if (*found && option.cost >= best->cost) continue;
        *best = option;
        *found = true;
    }
}

static enum tarn_status stretch(struct search *search, bool *done)
{
    struct tarn_offload_model *model = search->model;
    struct tarn_offload_trial *trial = &search->trial;
    size_t places = model->count, slots = 2 * places;
    int64_t wait = (int64_t)model->terms.wait_ns;
    uint64_t time, idle = 0;
    double lowest = INFINITY; /* excess so far */
    *done = false;
    take_forced(search);
    memset(trial->delay, 0, places * sizeof *trial->delay);
    memcpy(search->start, model->start0, places * sizeof *search->start);
    memcpy(search->end, model->end0, places * sizeof *search->end);
    int64_t highest = take_free(search, search->start, search->end, TRIES);
    while (highest > search->budget) {
        size_t first = 0, last = slots - 1;
        struct option best;
        bool found = false;
        double weight = measure(search).weight;
        idle = weight < lowest ? 0 : idle + 1;
        lowest = fmin(lowest, weight);
        if (is_over(search) || idle > STRETCHED_IDLE + model->gaps_count) return TARN_OK;
        while (trial->profile[first] <= search->budget) first++;
        while (trial->profile[last] <= search->budget) last--;
        look_for_option(search, first, true, &best, &found);
        look_for_option(search, last, false, &best, &found);
        if (!found) return TARN_OK;
        trial->delay[best.here] += best.ahead;
        trial->delay[best.next] += best.behind;
        if (!trial->in[best.gap]) {
            trial->in[best.gap] = true;
        } else if (best.ahead + best.behind == 0) {
            trial->delay[best.here] += wait;
            trial->delay[best.next] += wait;
        }
        trial->work += 8 * places;
        if (tarn_offload_clock(model, trial->delay, search->start, search->end, &time) != TARN_OK)
            return TARN_SYSTEM;
        highest = take_free(search, search->start, search->end, TRIES_STRETCHED);
    }
    memcpy(search->kept, trial->in, model->gaps_count);
    *done = offer(search) >= 0;
    return TARN_OK;
}

/* ---- The search ---- */

static void take_all_free(struct search *search)
{
    const struct tarn_offload_model *model = search->model;
    take_forced(search);
    take_free(search, model->start0, model->end0, TRIES);
}

/* ---- What persists, if no op waits for it ---- */

struct persistent {
    struct search *search;
    int64_t highest, limit_ns;
    uint32_t *head, *next; /* the gaps of each storage that persists; by storage, by gap */
    bool *before;          /* by gap: taken without the present storage */
};

static bool is_persistent(const struct search *search, uint32_t g)
{
    const struct tarn_offload_model *model = search->model;
    return model->graph->storages[model->gaps[g].storage].persistent;
}

/* Is that faster than allowed, with fewer bytes alive at once? The gaps taken are placed. */
static bool is_free_and_lower(struct persistent *persistent, bool *in, int64_t *highest)
{
    struct search *search = persistent->search;
    struct tarn_offload_trial *trial = &search->trial;
    tarn_offload_place(trial, search->model->start0, search->model->end0);
    tarn_offload_tidy(trial);
    memcpy(in, trial->in, search->model->gaps_count);
    *highest = tarn_offload_profile(trial);
    return *highest < persistent->highest && tarn_offload_simulate(trial) <= persistent->limit_ns;
}

/* The storage lives elsewhere, away between all of its uses or, else, before the first and behind
 * the last only. */
static void try_storage(struct persistent *persistent, uint32_t a)
{
    struct search *search = persistent->search;
    bool *in = search->trial.in;
    int64_t highest;
    size_t bytes = search->model->gaps_count;
    memcpy(persistent->before, in, bytes);
    for (int round = 0; round < 2; round++) {
        for (uint32_t g = persistent->head[a]; g != TARN_NONE; g = persistent->next[g])
            in[g] = round == 0 || search->model->gaps[g].is_forced;
        if (is_free_and_lower(persistent, search->kept, &highest)) {
            memcpy(in, search->kept, bytes);
            persistent->highest = highest;
            return;
        }
        memcpy(in, persistent->before, bytes);
    }
}

static enum tarn_status take_persistent(struct search *search)
{
    struct tarn_offload_model *model = search->model;
    struct persistent persistent = {.search = search};
    uint32_t gaps = model->gaps_count, storages = model->graph->storages_count;
    persistent.head = tarn_region_take(model->region, storages, sizeof *persistent.head);
    persistent.next = tarn_region_take(model->region, gaps, sizeof *persistent.next);
    persistent.before = tarn_region_take(model->region, gaps, sizeof *persistent.before);
    if (!persistent.head || !persistent.next || !persistent.before) return TARN_SYSTEM;
    for (uint32_t a = 0; a < storages; a++) persistent.head[a] = TARN_NONE;
    for (uint32_t g = gaps; g-- > 0;) {
        uint32_t *head = &persistent.head[model->gaps[g].storage];
        persistent.next[g] = *head;
        if (is_persistent(search, g)) *head = g;
    }
    tarn_offload_tidy(&search->trial);
    persistent.highest = tarn_offload_profile(&search->trial);
    persistent.limit_ns = larger(tarn_offload_simulate(&search->trial), (int64_t)model->time0_ns);
    for (uint32_t i = 0; i < gaps && !is_over(search); i++) {
        const struct tarn_offload_gap *gap = &model->gaps[search->ranked[i]];
        if (gap->is_first && is_persistent(search, search->ranked[i]))
            try_storage(&persistent, gap->storage);
    }
    tarn_offload_place(&search->trial, model->start0, model->end0);
    return TARN_OK;
}

enum tarn_status tarn_offload_free(struct tarn_offload_model *model, uint64_t budget,
                                   const struct tarn_deadline *deadline,
                                   struct tarn_offload_choice *choice)
{
    struct search search;
    bool is_any = false;
    if (search_init(&search, model, budget, UINT64_MAX, deadline) != TARN_OK) return TARN_SYSTEM;
    for (uint32_t g = 0; g < model->gaps_count; g++)
        is_any |= search.barred[g] = is_persistent(&search, g);
    take_free(&search, model->start0, model->end0, TRIES);
    if (is_any && take_persistent(&search) != TARN_OK) return TARN_SYSTEM;
    tarn_offload_tidy(&search.trial);
    int64_t peak = tarn_offload_profile(&search.trial);
    note_choice(&search.trial, &search.best, peak, tarn_offload_simulate(&search.trial));
    *choice = search.best;
    return TARN_OK;
}

/* If the first choice stays above the budget, adds gaps that could be away in the slots above
 * it. */
static void add_until_within(struct search *search)
{
    const struct tarn_offload_model *model = search->model;
    struct tarn_offload_trial *trial = &search->trial;
    while (search->best.peak == UINT64_MAX && !is_over(search)) {
        memset(search->useless, 0, model->gaps_count * sizeof *search->useless);
        uint32_t taken = 0, pool = list_covering(search, search->stuck);
        if (pool == 0) return;
        for (uint32_t g = 0; g < model->gaps_count; g++) taken += trial->in[g];
        uint32_t more = taken / 30 > 0 ? taken / 30 : 1;
        for (uint32_t i = 0; i < more && i < pool; i++) trial->in[search->pool[i]] = true;
        settle(search, ROUNDS, model->start0, model->end0);
    }
}

static bool is_free(const struct search *search, uint32_t g)
{
    return search->trial.in[g] && !search->model->gaps[g].is_forced;
}

/* Draws one of the trial's removable gaps, all equally likely; TARN_NONE: there is none. */
static uint32_t draw_taken(const struct search *search, uint64_t *random)
{
    uint32_t count = 0, drawn;
    for (uint32_t g = 0; g < search->model->gaps_count; g++) count += is_free(search, g);
    if (count == 0) return TARN_NONE;
    drawn = tarn_random_below(random, count);
    for (uint32_t g = 0;; g++)
        if (is_free(search, g) && drawn-- == 0) return g;
}

static uint32_t draw_ranked(const struct search *search, uint64_t *random)
{
    uint32_t count = search->model->gaps_count;
    double x = -log(1 - tarn_random_unit(random)) * count / 3;
    return search->ranked[x < count - 1 ? (uint32_t)x : count - 1];
}

static uint64_t mix(uint64_t key, uint64_t value) { return tarn_random_mix(key + value + 1); }

/* Of the gaps that are taken, and of the clock. */
static uint64_t key_of(const struct search *search, uint64_t clock)
{
    uint64_t key = clock;
    for (uint32_t g = 0; g < search->model->gaps_count; g++)
        if (search->trial.in[g]) key = mix(key, g);
    return key;
}

static uint64_t key_of_clock(const struct search *search, const int64_t *start, const int64_t *end)
{
    uint64_t key = 0;
    for (uint32_t p = 0; p < search->model->count; p++)
        key = mix(mix(key, (uint64_t)start[p]), (uint64_t)end[p]);
    return key;
}

/* Fewer, more, others. What a draw leads to depends on its gaps and its clock alone: a draw that
 * led to no better choice, or to the present one, is not settled again. */
static void improve(struct search *search)
{
    const struct tarn_offload_model *model = search->model;
    struct tarn_offload_trial *trial = &search->trial;
    uint64_t floor = model->time0_ns + 2 * model->terms.wait_ns, random = 1;
    uint64_t gaps = model->gaps_count, known = 0, best_key = 0;
    uint64_t known_max = KNOWN_ONLY + KNOWN_ONLY_PAIR * gaps * gaps;
    uint64_t clock0 = key_of_clock(search, model->start0, model->end0), now = 0;
    bool is_new = true; /* the best choice, and with it its clock */
    floor += floor / 2000;
    while (search->best.peak != UINT64_MAX && search->best.time_ns > floor &&
           search->best.count > 0 && known < known_max && !is_over(search)) {
        if (is_new) now = key_of_clock(search, search->now_start, search->now_end);
        is_new = false;
        tarn_offload_trial_take(trial, &search->best);
        for (uint32_t changes = 1 + tarn_random_below(&random, 3); changes > 0; changes--) {
            bool takes = tarn_random_below(&random, 2) == 0;
            uint32_t g = takes ? draw_ranked(search, &random) : draw_taken(search, &random);
            if (g != TARN_NONE) trial->in[g] = takes;
        }
        bool by_now = tarn_random_below(&random, 10) < 7;
        uint64_t key = key_of(search, by_now ? now : clock0);
        struct settled *settled = &search->settled[key % REMEMBERED];
        bool is_known = settled->time > 0 && settled->key == key;
        known = is_known ? known + 1 : 0;
        if (is_known && (key == best_key || settled->time > (int64_t)search->best.time_ns)) {
            trial->work += settled->work;
            continue;
        }
        uint64_t work = trial->work;
        int64_t time = settle(search, ROUNDS_RANDOM, by_now ? search->now_start : model->start0,
                              by_now ? search->now_end : model->end0);
        *settled = (struct settled){key, time, trial->work - work};
        is_new = time <= (int64_t)search->best.time_ns;
        if (is_new) best_key = key;
    }
}

enum tarn_status tarn_offload_within(struct tarn_offload_model *model, uint64_t budget,
                                     uint64_t work, const struct tarn_deadline *deadline,
                                     struct tarn_offload_choice *choice)
{
    struct search search;
    if (search_init(&search, model, budget, work, deadline) != TARN_OK) return TARN_SYSTEM;
    uint64_t floor = model->time0_ns + 2 * model->terms.wait_ns;
    take_forced(&search);
    bool is_any = memchr(search.trial.in, true, model->gaps_count);
    if (model->peak0 <= budget && !is_any) {
        search.best =
            (struct tarn_offload_choice){search.best.arcs, 0, model->peak0, model->time0_ns};
    } else if (model->gaps_count > 0) {
        bool stretched = false;
        take_all_free(&search);
        settle(&search, ROUNDS, model->start0, model->end0);
        if (search.best.peak == UINT64_MAX || search.best.time_ns > floor) {
            if (stretch(&search, &stretched) != TARN_OK) return TARN_SYSTEM;
            if (stretched) {
                memcpy(search.trial.in, search.kept, model->gaps_count);
                settle(&search, ROUNDS, search.trial.start, search.trial.end);
            } else if (search.best.peak == UINT64_MAX) {
                take_all_free(&search);
                settle(&search, ROUNDS, model->start0, model->end0);
            }
        }
        search.work += search.trial.work; /* later steps have as much for themselves */
        add_until_within(&search);
        improve(&search);
    }
    *choice = search.best;
    return TARN_OK;
}

enum tarn_status tarn_offload_evaluate(struct tarn_offload_model *model,
                                       struct tarn_offload_choice *choice)
{
    struct tarn_offload_trial trial;
    if (tarn_offload_trial_init(&trial, model) != TARN_OK) return TARN_SYSTEM;
    tarn_offload_trial_take(&trial, choice);
    choice->peak = (uint64_t)tarn_offload_profile(&trial);
    choice->time_ns = (uint64_t)tarn_offload_simulate(&trial);
    return TARN_OK;
}

/* ---- Slack ---- */

struct slack {
    struct tarn_offload_trial trial;
    const struct tarn_offload_model *model;
    int64_t budget;
};

static int64_t highest_in(const struct slack *slack, size_t from, size_t to)
{
    int64_t highest = 0;
    for (size_t q = from; q < to; q++) highest = larger(highest, slack->trial.profile[q]);
    return highest;
}

static void add(struct slack *slack, size_t from, size_t to, int64_t size)
{
    for (size_t q = from; q < to; q++) slack->trial.profile[q] += size;
}

/* The earliest trigger that fits, not before `stop`. */
static uint32_t trigger_earlier(const struct slack *slack, uint32_t trigger, uint32_t stop,
                                int64_t size)
{
    const struct tarn_offload_model *model = slack->model;
    for (;;) {
        uint32_t k = tarn_offload_main_from(model, trigger, false);
        if (k == 0 || model->main_ops[k - 1] < stop) return trigger;
        uint32_t earlier = model->main_ops[k - 1];
        size_t from = 2 * (size_t)earlier + 1, to = 2 * (size_t)trigger + 1;
        if (highest_in(slack, from, to) + size > slack->budget) return trigger;
        trigger = earlier;
    }
}

static uint32_t release_later(const struct slack *slack, uint32_t release, uint32_t stop,
                              int64_t size)
{
    const struct tarn_offload_model *model = slack->model;
    for (;;) {
        uint32_t k = tarn_offload_main_from(model, release, true);
        if (k >= model->main_count || model->main_ops[k] > stop) return release;
        uint32_t later = model->main_ops[k];
        if (highest_in(slack, 2 * (size_t)release, 2 * (size_t)later) + size > slack->budget)
            return release;
        release = later;
    }
}

static uint32_t largest(uint32_t a, uint32_t b) { return a > b ? a : b; }

static uint32_t smallest(uint32_t a, uint32_t b) { return a < b ? a : b; }

/* By halves, so that no one takes all. */
static void share_out(struct slack *slack, uint32_t part)
{
    struct tarn_offload_trial *trial = &slack->trial;
    const struct tarn_offload_model *model = slack->model;
    uint32_t latest = 0, soonest = model->count;
    for (uint32_t i = 0; i < model->gaps_count; i++) {
        uint32_t g = model->by_right[i];
        if (!trial->in[g] || !model->gaps[g].has_into || trial->trigger[g] == TARN_NONE) continue;
        uint32_t release = trial->release[g], trigger = trial->trigger[g];
        uint32_t stop = largest(largest(latest, release), trigger - (trigger - release) * part / 2);
        int64_t size = (int64_t)model->gaps[g].size;
        uint32_t earlier = trigger_earlier(slack, trigger, stop, size);
        add(slack, 2 * (size_t)earlier + 1, 2 * (size_t)trigger + 1, size);
        trial->trigger[g] = latest = largest(earlier, latest);
    }
    uint32_t count = 0;
    for (uint32_t g = 0; g < model->gaps_count; g++)
        count += trial->in[g] && model->gaps[g].has_out;
    for (uint32_t i = count; i-- > 0;) {
        uint32_t g = trial->outs[i];
        uint32_t release = trial->release[g], trigger = trial->trigger[g];
        if (!tarn_offload_frees(trial, g)) continue;
        uint32_t stop =
            smallest(smallest(soonest, trigger), release + (trigger - release) * part / 2);
        int64_t size = (int64_t)model->gaps[g].size;
        uint32_t later = release_later(slack, release, stop, size);
        add(slack, 2 * (size_t)release, 2 * (size_t)later, size);
        trial->release[g] = soonest = smallest(later, soonest);
    }
}

enum tarn_status tarn_offload_relax(struct tarn_offload_model *model, uint64_t budget,
                                    struct tarn_offload_choice *choice)
{
    struct slack slack = {.model = model, .budget = (int64_t)budget};
    struct tarn_offload_trial *trial = &slack.trial;
    if (tarn_offload_trial_init(trial, model) != TARN_OK) return TARN_SYSTEM;
    tarn_offload_trial_take(trial, choice);
    slack.budget = larger(slack.budget, tarn_offload_profile(trial));
    tarn_offload_simulate(trial); /* lists the outs */
    share_out(&slack, 1);
    share_out(&slack, 2);
    int64_t peak = tarn_offload_profile(trial);
    note_choice(trial, choice, peak, tarn_offload_simulate(trial));
    return TARN_OK;
}
