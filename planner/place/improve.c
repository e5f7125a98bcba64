/* The search for a plan at the bound.
 *
 *   0. Many blocks are placed window by window (windows.h), with a few widths of windows; for very
 *      many that is all, unless it leaves much to gain.
 *   1. Every key of the portfolio is decoded, in parallel; the first of those that meet the aim
 *      wins.
 *   2. Eight walks start from the best keys' plans, with four settings side by side, and go on in
 *      rounds of some steps; after each, of the first four the walk with the highest plan goes on
 *      from the lowest plan of all eight, the others keep to themselves.
 *
 * Nothing depends on the number of threads: what a walk does in a round depends on no other walk,
 * and of those that meet the aim in a round the one with the smallest step, then walk, wins; the
 * others stop once they are past it.
 * Source: DESIGN.md, section 3 (Placement).
 * Cost: a decode for each key and for the steps of every walk, see decode.c and replay.c. */
#include "improve.h"

#include <stdlib.h>
#include <string.h>

#include "planner/place/lowest/moves.h"
#include "planner/place/windows/widths.h"
#include "streams/base/checked.h"
#include "streams/base/parallel.h"
#include "work.h"

enum { SLICE = 32768, WALK_PLACES_MAX = 65536 };

/* From so many blocks on windows are tried as well, and from so many on they come first. Up to so
 * many blocks times streams every key follows; above that, those that a plan is worth. */
enum { WINDOWS_BLOCKS_MIN = 1024, WINDOWS_FIRST_MIN = 16384, KEYS_ENTRIES_MAX = 1 << 19 };
/* A decode of everything takes so many picoseconds for each unsafe pair, and for each of its
 * streams. */
enum { PAIR_WORK = 150, PAIR_STREAM_WORK = 10 };
/* What is counted as a nanosecond takes up to so many where blocks are too many for the caches. */
enum { LARGE_WORK = 2 };
enum { WALKS = 8, COPYING_WALKS = 4, ROUND_STEPS = 40, STARTS = TARN_KEYS_COUNT + 1 };
enum { EAGER_BLOCKS = 256 };

/* A plan in units; `from` says which key or step made it, smaller ones win. */
struct candidate {
    int32_t *offset; /* by place */
    int32_t top;     /* INT32_MAX: none yet */
    uint64_t from;
};

/* What a thread decodes keys with; made when it takes its first key. */
struct decoding {
    bool made;
    struct tarn_decoder decoder;
    int32_t *key;
    struct candidate best;
};

struct search {
    const struct tarn_improve_options *options;
    struct tarn_lowest lowest;
    struct tarn_traits traits;
    int32_t aim;           /* a plan up to there ends the search */
    int32_t given_top;     /* how high the plan that came in is */
    const uint64_t *given; /* the offsets that came in, by storage */
    uint32_t keys_count;   /* 0: all of the portfolio, and that of the plan that came in */
    int32_t tops[STARTS];  /* by key, of its plan; INT32_MAX: not decoded, or too high */
    struct tarn_walk walks[WALKS];
    struct candidate bests[WALKS]; /* of each walk */
    uint64_t work_before[WALKS];   /* the round */
    struct candidate best;         /* of all */
    struct tarn_winner winner;     /* by `from` */
    uint64_t steps;                /* that every walk has made */
    double begin_ms;
    struct tarn_team team;
    struct decoding decodings[STARTS]; /* by thread */
    uint64_t round_steps;              /* of each walk */
    uint64_t work_left, round_work;    /* of all, and of each key or walk; see work.h */
    uint64_t key_work[STARTS];
    atomic_bool cut; /* for want of it */
    atomic_bool no_memory;
};

static bool is_over(const struct search *search)
{
    return tarn_deadline_is_over(&search->options->deadline);
}

/* ---- Candidates ---- */

static bool candidate_init(struct candidate *candidate, const struct search *search)
{
    candidate->top = INT32_MAX;
    candidate->from = UINT64_MAX;
    candidate->offset = malloc(((size_t)search->lowest.count + 1) * sizeof *candidate->offset);
    return candidate->offset != NULL;
}

/* The first to meet the aim wins; when none does, the lowest. A total order, so that it does not
 * matter who comes to be compared first. */
static bool is_better(const struct search *search, const struct candidate *a,
                      const struct candidate *b)
{
    bool a_meets = a->top <= search->aim, b_meets = b->top <= search->aim;
    if (a_meets != b_meets) return a_meets;
    if (!a_meets && a->top != b->top) return a->top < b->top;
    return a->from < b->from;
}

/* True when the candidate has become better. */
static bool offer(struct search *search, struct candidate *candidate, const struct candidate *other)
{
    if (other->top == INT32_MAX || !is_better(search, other, candidate)) return false;
    memcpy(candidate->offset, other->offset, search->lowest.count * sizeof *other->offset);
    candidate->top = other->top;
    candidate->from = other->from;
    return true;
}

static void report_progress(const struct search *search, int32_t top)
{
    const struct tarn_improve_options *options = search->options;
    if (options->progress)
        options->progress(options->user, (uint64_t)top << search->lowest.unit_shift, search->steps);
}

/* ---- Keys ---- */

/* Where only a few keys are worth their work, these in this order. */
static const uint32_t best_keys[] = {1, 0, 3, 9};
enum { BEST_KEYS_COUNT = sizeof best_keys / sizeof *best_keys };

/* The last key is the order of the plan given. */
static enum tarn_status fill_key(const struct search *search, uint32_t i, int32_t *key)
{
    if (search->keys_count > 0) i = best_keys[i];
    return i < TARN_KEYS_COUNT ? tarn_keys_fill(&search->lowest, &search->traits, i, key)
                               : tarn_keys_of_plan(&search->lowest, search->given, key);
}

/* False when there is no plan, or when it does not matter any more. */
static bool decode_in_slices(struct search *search, struct tarn_decoder *decoder, uint32_t i,
                             const int32_t *key)
{
    struct tarn_objective objective = {search->aim, 1, 0};
    uint32_t count = search->lowest.count, deadline = 0;
    tarn_decoder_start(decoder, NULL);
    while (deadline < count) {
        deadline = count - deadline > SLICE ? deadline + SLICE : count;
        if (tarn_winner_is_before(&search->winner, i)) return false;
        if (!tarn_decoder_advance(decoder, key, NULL, objective, TARN_MISS_MAX, deadline))
            return false;
    }
    return true;
}

static bool decoding_init(struct decoding *decoding, const struct search *search)
{
    if (decoding->made) return true;
    bool ok = tarn_decoder_init(&decoding->decoder, &search->lowest) == TARN_OK &&
              tarn_decoder_narrow(&decoding->decoder) == TARN_OK;
    decoding->key = malloc(((size_t)search->lowest.count + 1) * sizeof *decoding->key);
    decoding->decoder.deadline = &search->options->deadline;
    decoding->made = candidate_init(&decoding->best, search) && ok && decoding->key;
    return decoding->made;
}

static void decode_key(void *user, uint32_t thread, uint32_t i)
{
    struct search *search = user;
    struct decoding *own = &search->decodings[thread];
    if (search->no_memory || tarn_winner_is_before(&search->winner, i) || is_over(search)) return;
    if (!decoding_init(own, search) || fill_key(search, i, own->key) != TARN_OK) {
        search->no_memory = true;
        return;
    }
    own->decoder.work = 0;
    own->decoder.work_max = search->round_work;
    if (decode_in_slices(search, &own->decoder, i, own->key)) search->tops[i] = own->decoder.top;
    search->key_work[i] = own->decoder.work;
    if (search->round_work > 0 && own->decoder.work > search->round_work) search->cut = true;
    if (search->tops[i] <= search->aim) tarn_winner_note(&search->winner, i);
    struct candidate found = {own->decoder.offset, search->tops[i], i};
    if (offer(search, &own->best, &found) && thread == 0) report_progress(search, own->best.top);
}

/* Who met the aim has no need to know what it cost, which depends on how many were begun. */
static void pay_for_keys(struct search *search)
{
    if (search->best.top <= search->aim) return;
    for (uint32_t i = 0; i < STARTS; i++)
        search->work_left = tarn_work_less(search->work_left, search->key_work[i]);
}

static bool decode_keys(struct search *search)
{
    uint32_t count = search->keys_count > 0 ? search->keys_count : (uint32_t)STARTS;
    tarn_winner_clear(&search->winner);
    search->round_work =
        search->work_left == TARN_WORK_UNLIMITED ? 0 : search->work_left / count + 1;
    tarn_team_run(&search->team, count, decode_key, search);
    for (uint32_t t = 0; t < STARTS; t++) {
        struct decoding *decoding = &search->decodings[t];
        if (decoding->made && !search->no_memory) offer(search, &search->best, &decoding->best);
        tarn_decoder_finish(&decoding->decoder);
        free(decoding->key);
        free(decoding->best.offset);
    }
    pay_for_keys(search);
    return !search->no_memory;
}

/* ---- Walks ---- */

static void settings_fill(const struct search *search, struct tarn_walk_setting settings[4])
{
    settings[0] = (struct tarn_walk_setting){0, 1, {search->aim, 1, 0}};
    settings[1] = (struct tarn_walk_setting){10, 20, {search->aim, 1, 0}};
    settings[2] = (struct tarn_walk_setting){0, 50, {search->aim, 0, 1}};
    settings[3] = (struct tarn_walk_setting){25, 1, {search->aim, 4, 1}};
}

/* A walk's n-th step, in the order in which steps win; keys are before all of them. */
static uint64_t step_number(uint32_t w, uint64_t n) { return STARTS + n * WALKS + w; }

/* The key with the n-th lowest plan. */
static uint32_t key_by_rank(const struct search *search, uint32_t n)
{
    for (uint32_t i = 0; i < STARTS; i++) {
        uint32_t before = 0;
        for (uint32_t k = 0; k < STARTS; k++)
            before +=
                search->tops[k] < search->tops[i] || (search->tops[k] == search->tops[i] && k < i);
        if (before == n) return i;
    }
    return 0;
}

/* The key that walk w starts with: two walks of different settings for each. */
static uint32_t start_of(const struct search *search, uint32_t w)
{
    uint32_t key = key_by_rank(search, w / 2);
    return search->tops[key] < INT32_MAX ? key : key_by_rank(search, 0);
}

static void note_plan(struct search *search, uint32_t w)
{
    const struct tarn_walk *walk = &search->walks[w];
    struct candidate own = {walk->replay.offset, walk->replay.top, step_number(w, walk->steps)};
    if (own.top < search->bests[w].top) offer(search, &search->bests[w], &own);
    if (own.top <= search->aim) tarn_winner_note(&search->winner, own.from);
}

static bool init_walks(struct search *search)
{
    struct tarn_walk_setting settings[4];
    size_t count = (size_t)search->lowest.count + 1;
    int32_t *floor = calloc(count, sizeof *floor), *key = malloc(count * sizeof *key);
    bool ok = floor && key;
    settings_fill(search, settings);
    for (uint32_t w = 0; ok && w < WALKS; w++) {
        ok = tarn_walk_init(&search->walks[w], &search->lowest, &search->traits, &settings[w % 4],
                            search->options->seed * WALKS + w) == TARN_OK &&
             candidate_init(&search->bests[w], search) &&
             fill_key(search, start_of(search, w), key) == TARN_OK;
        if (ok) tarn_walk_start(&search->walks[w], key, floor);
    }
    free(floor);
    free(key);
    return ok;
}

static void run_round(void *user, uint32_t thread, uint32_t w)
{
    struct search *search = user;
    (void)thread;
    for (uint64_t i = 0; i < search->round_steps; i++) {
        struct tarn_walk *walk = &search->walks[w];
        if (walk->replay.decoder.work - search->work_before[w] > search->round_work) return;
        if (tarn_winner_is_before(&search->winner, step_number(w, walk->steps + 1)) ||
            is_over(search))
            return;
        tarn_walk_step(walk);
        note_plan(search, w);
    }
}

static void copy_best_to_worst(struct search *search)
{
    uint32_t best = 0, worst = 0;
    int32_t tops[WALKS];
    for (uint32_t w = 0; w < WALKS; w++) {
        tops[w] = search->walks[w].replay.top;
        if (tops[w] < tops[best]) best = w;
        if (w < COPYING_WALKS && tops[w] >= tops[worst]) worst = w;
    }
    if (tops[best] < tops[worst])
        tarn_walk_start(&search->walks[worst], search->walks[best].key, search->walks[best].floor);
}

/* What a decode may come to. */
static uint64_t most_work(const struct search *search)
{
    uint64_t most = 0;
    for (uint32_t i = 0; i < STARTS; i++)
        if (search->key_work[i] > most) most = search->key_work[i];
    return most;
}

static void begin_round(struct search *search)
{
    uint64_t left = search->options->steps - search->steps;
    search->round_steps = left < ROUND_STEPS ? left : ROUND_STEPS;
    search->round_work = search->work_left / WALKS;
    for (uint32_t w = 0; w < WALKS; w++)
        search->work_before[w] = search->walks[w].replay.decoder.work;
}

static void end_round(struct search *search)
{
    search->steps += search->round_steps;
    for (uint32_t w = 0; w < WALKS; w++) {
        offer(search, &search->best, &search->bests[w]);
        search->work_left = tarn_work_less(search->work_left, search->walks[w].replay.decoder.work -
                                                                  search->work_before[w]);
    }
}

static void walk(struct search *search)
{
    uint64_t patience = search->options->patience, better_at = 0;
    for (uint32_t w = 0; w < WALKS; w++)
        search->work_left = tarn_work_less(search->work_left, search->walks[w].replay.decoder.work);
    tarn_winner_clear(&search->winner);
    while (search->steps < search->options->steps && !is_over(search)) {
        int32_t before =
            search->best.top < search->given_top ? search->best.top : search->given_top;
        begin_round(search);
        tarn_team_run(&search->team, WALKS, run_round, search);
        end_round(search);
        if (search->best.top < before) {
            report_progress(search, search->best.top);
            better_at = search->steps;
        }
        if (search->best.top <= search->aim) return;
        if (search->work_left == 0) {
            search->cut = true;
            return;
        }
        if (patience > 0 && search->steps - better_at >= patience) return;
        copy_best_to_worst(search);
    }
}

/* ---- Windows ---- */

static enum tarn_status place_windows(const struct tarn_problem *problem,
                                      const struct tarn_antichain *antichain,
                                      const struct tarn_improve_options *options, uint64_t aim,
                                      struct tarn_effort *effort, uint64_t *offset,
                                      uint64_t *footprint, struct tarn_improve_report *report)
{
    uint64_t before = *footprint;
    enum tarn_status status =
        tarn_widths_place(problem, antichain, options, aim, effort, offset, footprint);
    if (*footprint < before) report->key = "windows";
    return status;
}

/* ---- The search ---- */

uint64_t tarn_improve_round_bound(const struct tarn_blocks *blocks, uint64_t bytes)
{
    uint64_t bits = UINT64_C(1) << 62, rounded;
    for (uint32_t b = 0; b < blocks->count; b++)
        bits |= tarn_block_at(blocks, b).size | tarn_block_at(blocks, b).alignment;
    return tarn_size_round_up(bytes, bits & -bits, &rounded) ? rounded : bytes;
}

static bool *find_antichain(const struct tarn_problem *problem,
                            const struct tarn_antichain *antichain)
{
    const struct tarn_reuse *reuse = problem->conflicts->reuse;
    bool *inside = malloc((size_t)reuse->count + 1);
    for (uint32_t a = 0; inside && a < reuse->count; a++) {
        inside[a] = reuse->position[a] < antichain->threshold[reuse->stream[a]];
        for (uint32_t s = 0; inside[a] && s < reuse->streams_count; s++)
            inside[a] = reuse->first[(size_t)s * reuse->count + a] >= antichain->threshold[s];
    }
    return inside;
}

static uint64_t aim_bytes(const struct tarn_problem *problem,
                          const struct tarn_improve_options *options)
{
    uint64_t bound = tarn_improve_round_bound(problem->blocks, options->bound);
    return options->capacity > bound ? options->capacity : bound;
}

static bool search_init(struct search *search, const struct tarn_problem *problem,
                        const struct tarn_antichain *antichain, const uint64_t *offset)
{
    const struct tarn_improve_options *options = search->options;
    uint64_t aim = aim_bytes(problem, options), most;
    search->given = offset;
    search->begin_ms = tarn_now_ms();
    tarn_team_init(&search->team, options->threads, problem->blocks->count >= EAGER_BLOCKS);
    if (!tarn_size_multiply(aim, 4, &most)) most = UINT64_MAX;
    bool *inside = find_antichain(problem, antichain);
    bool ok = inside && tarn_lowest_init(&search->lowest, problem, most) == TARN_OK &&
              tarn_traits_init(&search->traits, &search->lowest, inside) == TARN_OK &&
              candidate_init(&search->best, search);
    free(inside);
    search->aim = tarn_lowest_units(&search->lowest, aim);
    for (uint32_t i = 0; i < STARTS; i++) search->tops[i] = INT32_MAX;
    return ok;
}

static void search_finish(struct search *search)
{
    tarn_team_finish(&search->team);
    for (uint32_t w = 0; w < WALKS; w++) {
        tarn_walk_finish(&search->walks[w]);
        free(search->bests[w].offset);
    }
    free(search->best.offset);
    tarn_traits_finish(&search->traits);
    tarn_lowest_finish(&search->lowest);
}

/* Writes the plan found where it is better than the one given. */
static void take_best(const struct search *search, struct tarn_improve_report *report,
                      uint64_t *offset, uint64_t *footprint)
{
    if (search->best.top == INT32_MAX) return;
    uint64_t found = tarn_lowest_footprint(&search->lowest, search->best.offset);
    if (found >= *footprint) return;
    *footprint = found;
    tarn_lowest_offsets(&search->lowest, search->best.offset, offset);
    report->by_walk = search->best.from >= STARTS;
    report->key = NULL;
    if (search->keys_count > 0)
        report->key = tarn_keys_name(best_keys[search->best.from]);
    else if (search->best.from < TARN_KEYS_COUNT)
        report->key = tarn_keys_name((uint32_t)search->best.from);
}

/* Keys of the whole problem, then walks, within work_left. */
static bool search_all(struct search *search, const struct tarn_problem *problem,
                       const struct tarn_antichain *antichain, uint64_t *offset,
                       uint64_t *footprint, struct tarn_improve_report *report)
{
    const struct tarn_improve_options *options = search->options;
    bool ok = search_init(search, problem, antichain, offset) && decode_keys(search);
    search->given_top = ok ? tarn_lowest_units(&search->lowest, *footprint) : 0;
    report->keys_ms = tarn_now_ms() - search->begin_ms;
    if (ok && search->best.top < INT32_MAX) report_progress(search, search->best.top);
    if (ok && search->best.top < INT32_MAX && search->best.top > search->aim &&
        options->steps > 0 && search->lowest.count <= WALK_PLACES_MAX && !is_over(search)) {
        bool too_dear = search->work_left / WALKS < most_work(search);
        search->cut = search->cut || too_dear;
        ok = too_dear || init_walks(search);
        if (ok && !too_dear) walk(search);
    }
    if (ok) take_best(search, report, offset, footprint);
    report->steps = search->steps;
    report->cut = report->cut || search->cut;
    report->walks_ms = tarn_now_ms() - search->begin_ms - report->keys_ms;
    search_finish(search);
    return ok;
}

/* ---- Many blocks ---- */

/* What a decode of everything is estimated to take: by its pairs, or by what one of bundles took
 * where that is more. False: no memory. */
static bool estimate_key(const struct tarn_problem *problem, const struct tarn_effort *effort,
                         uint64_t *work)
{
    uint64_t pairs = 0, streams_count = problem->graph->streams_count;
    uint32_t count = problem->conflicts->reuse->count;
    bool ok = tarn_conflicts_pairs(problem->conflicts, problem->graph, &pairs) == TARN_OK;
    *work = pairs * (PAIR_WORK + PAIR_STREAM_WORK * streams_count) / 1000 + 1;
    double times = effort->key_work > 0 ? (double)count / effort->key_bundles : 0;
    double likely = (double)effort->key_work * times * times;
    if (likely > (double)*work) *work = likely < 1e18 ? (uint64_t)likely : UINT64_MAX;
    return ok;
}

/* The best keys, as many as the plan is worth. */
static bool place_by_best_keys(const struct tarn_problem *problem,
                               const struct tarn_antichain *antichain,
                               const struct tarn_improve_options *options,
                               struct tarn_effort *effort, uint64_t aim, uint64_t *offset,
                               uint64_t *footprint, struct tarn_improve_report *report)
{
    uint64_t work, worth = tarn_widths_worth(effort, aim, *footprint);
    if (tarn_deadline_is_over(&options->deadline)) return true;
    if (!estimate_key(problem, effort, &work)) return false;
    if (worth / work == 0) return true;
    struct search search = {.options = options, .keys_count = BEST_KEYS_COUNT, .work_left = worth};
    if (worth / work < BEST_KEYS_COUNT) search.keys_count = (uint32_t)(worth / work);
    return search_all(&search, problem, antichain, offset, footprint, report);
}

/* Too many blocks for walks and for every key: windows, then the best keys; with a time given,
 * both without a limit. */
static bool place_many(const struct tarn_problem *problem, const struct tarn_antichain *antichain,
                       const struct tarn_improve_options *options, uint64_t aim,
                       struct tarn_effort *effort, uint64_t *offset, uint64_t *footprint,
                       struct tarn_improve_report *report)
{
    bool ok = *footprint <= aim || place_by_best_keys(problem, antichain, options, effort, aim,
                                                      offset, footprint, report);
    if (!ok || *footprint <= aim) return ok;
    report->cut = true;
    if (options->deadline.at_ms == 0) return true;
    effort->max = UINT64_MAX;
    return place_windows(problem, antichain, options, aim, effort, offset, footprint, report) ==
               TARN_OK &&
           (*footprint <= aim || place_by_best_keys(problem, antichain, options, effort, aim,
                                                    offset, footprint, report));
}

/* ---- The whole ---- */

enum tarn_status tarn_improve_place(const struct tarn_problem *problem,
                                    const struct tarn_antichain *antichain,
                                    const struct tarn_improve_options *options, uint64_t *offset,
                                    uint64_t *footprint, struct tarn_improve_report *report)
{
    struct search search = {.options = options, .work_left = TARN_WORK_UNLIMITED};
    struct tarn_effort effort = {.max = tarn_widths_effort(problem), .must = true};
    uint64_t aim = aim_bytes(problem, options);
    uint32_t count = problem->blocks->count;
    bool by_windows = count >= WINDOWS_BLOCKS_MIN && options->steps == 0;
    bool is_large = count >= WINDOWS_BLOCKS_MIN &&
                    (uint64_t)count * problem->graph->streams_count > KEYS_ENTRIES_MAX;
    memset(report, 0, sizeof *report);
    if (options->work_max > 0) effort.max = options->work_max;
    if (options->work_max > 0 && is_large) effort.max /= LARGE_WORK;
    if (*footprint <= aim) return TARN_OK;
    bool ok = !by_windows || count < WINDOWS_FIRST_MIN ||
              place_windows(problem, antichain, options, aim, &effort, offset, footprint, report) ==
                  TARN_OK;
    if (ok && is_large && by_windows)
        ok = place_many(problem, antichain, options, aim, &effort, offset, footprint, report);
    if (!ok) return TARN_SYSTEM;
    uint64_t left = tarn_effort_left(&effort);
    if (options->work_max > 0) search.work_left = left;
    if (*footprint > aim && !is_large)
        ok = search_all(&search, problem, antichain, offset, footprint, report);
    if (options->work_max > 0) tarn_effort_spend(&effort, left - search.work_left);
    if (ok && by_windows && count<WINDOWS_FIRST_MIN && * footprint> aim)
        ok = place_windows(problem, antichain, options, aim, &effort, offset, footprint, report) ==
             TARN_OK;
    report->work = effort.spent;
    return ok ? TARN_OK : TARN_SYSTEM;
}
