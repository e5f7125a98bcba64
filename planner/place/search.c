/* Every key is decoded, in parallel; the first of those that meet the aim wins.
 * Source: docs/how-it-works.md, "Placement". Cost: a decode for each key, see decode.c. */
#include "search.h"

#include <assert.h>
#include <string.h>

#include "planner/place/effort/effort.h"
#include "streams/base/checked.h"

/* Places decoded before a decode looks whether it still matters. */
enum { SLICE = 32768 };
/* From that many blocks on helpers are started at once. */
enum { EAGER_BLOCKS = 256 };

bool tarn_search_is_over(const struct tarn_search *search)
{
    return tarn_deadline_is_over(&search->options->deadline);
}

/* ---- Candidates ---- */

bool tarn_candidate_init(struct tarn_candidate *candidate, struct tarn_region *region,
                         uint32_t count)
{
    candidate->top = INT32_MAX;
    candidate->from = UINT64_MAX;
    candidate->offset = tarn_region_take(region, count, sizeof *candidate->offset);
    return candidate->offset != NULL;
}

/* The first to meet the aim wins; when none does, the lowest. A total order, so that it does not
 * matter who comes to be compared first. */
static bool is_better(const struct tarn_search *search, const struct tarn_candidate *a,
                      const struct tarn_candidate *b)
{
    bool a_meets = a->top <= search->aim, b_meets = b->top <= search->aim;
    if (a_meets != b_meets) return a_meets;
    if (!a_meets && a->top != b->top) return a->top < b->top;
    return a->from < b->from;
}

bool tarn_search_offer(const struct tarn_search *search, struct tarn_candidate *candidate,
                       const struct tarn_candidate *other)
{
    if (other->top == INT32_MAX || !is_better(search, other, candidate)) return false;
    memcpy(candidate->offset, other->offset, search->lowest.count * sizeof *other->offset);
    candidate->top = other->top;
    candidate->from = other->from;
    return true;
}

void tarn_search_report(const struct tarn_search *search, int32_t top)
{
    const struct tarn_improve_options *options = search->options;
    if (options->progress)
        options->progress(options->user, (uint64_t)top << search->lowest.unit_shift, search->steps);
}

/* ---- Keys ---- */

/* Where only a few keys are worth their work, these in this order. */
static const uint32_t best_keys[] = {1, 0, 3, 9};
static_assert(sizeof best_keys / sizeof *best_keys == TARN_SEARCH_BEST_KEYS, "all are listed");

enum tarn_status tarn_search_fill_key(const struct tarn_search *search, struct tarn_region *region,
                                      uint32_t i, int32_t *key)
{
    assert(i < TARN_SEARCH_KEYS);
    if (search->best_keys > 0) i = best_keys[i];
    return i < TARN_KEYS_COUNT ? tarn_keys_fill(&search->lowest, region, &search->traits, i, key)
                               : tarn_keys_of_plan(&search->lowest, region, search->given, key);
}

const char *tarn_search_key_name(const struct tarn_search *search)
{
    uint64_t from = search->best.from;
    if (search->best_keys > 0 && from < search->best_keys) return tarn_keys_name(best_keys[from]);
    return from < TARN_KEYS_COUNT ? tarn_keys_name((uint32_t)from) : NULL;
}

/* What a thread decodes keys with; made when it takes its first key. */
struct decoding {
    bool made;
    struct tarn_region region;
    struct tarn_decoder decoder;
    int32_t *key;
    struct tarn_candidate best;
};

struct decodings {
    struct tarn_search *search;
    uint64_t work_max;                      /* of each key; 0: no limit */
    struct decoding list[TARN_SEARCH_KEYS]; /* by thread */
};

/* False when there is no plan, or when it does not matter any more. */
static bool decode_in_slices(struct tarn_search *search, struct tarn_decoder *decoder, uint32_t i,
                             const int32_t *key)
{
    struct tarn_objective objective = {search->aim, 1, 0};
    uint32_t count = search->lowest.count, placed = 0;
    tarn_decoder_start(decoder, NULL);
    while (placed < count) {
        placed = count - placed > SLICE ? placed + SLICE : count;
        if (tarn_winner_is_before(&search->winner, i)) return false;
        if (!tarn_decoder_advance(decoder, key, NULL, objective, TARN_MISS_MAX, placed))
            return false;
    }
    return true;
}

static bool decoding_init(struct decoding *decoding, const struct tarn_search *search)
{
    const struct tarn_lowest *lowest = &search->lowest;
    if (decoding->made) return true;
    bool ok = tarn_decoder_init(&decoding->decoder, &decoding->region, lowest) == TARN_OK &&
              tarn_decoder_narrow(&decoding->decoder, &decoding->region) == TARN_OK;
    decoding->key = tarn_region_take(&decoding->region, lowest->count, sizeof *decoding->key);
    decoding->decoder.deadline = &search->options->deadline;
    decoding->decoder.hurries = true;
    decoding->made = tarn_candidate_init(&decoding->best, &decoding->region, lowest->count) && ok &&
                     decoding->key;
    return decoding->made;
}

static void decode_key(void *user, uint32_t thread, uint32_t i)
{
    struct decodings *decodings = user;
    struct tarn_search *search = decodings->search;
    struct decoding *own = &decodings->list[thread];
    if (search->no_memory || tarn_winner_is_before(&search->winner, i) ||
        tarn_search_is_over(search))
        return;
    if (!decoding_init(own, search) ||
        tarn_search_fill_key(search, &own->region, i, own->key) != TARN_OK) {
        search->no_memory = true;
        return;
    }
    own->decoder.work = 0;
    own->decoder.work_max = decodings->work_max;
    if (decode_in_slices(search, &own->decoder, i, own->key)) search->tops[i] = own->decoder.top;
    search->key_work[i] = own->decoder.work;
    if (tarn_decoder_hurried(&own->decoder)) search->hurried = true;
    if (decodings->work_max > 0 && own->decoder.work > decodings->work_max) search->cut = true;
    if (search->tops[i] <= search->aim) tarn_winner_note(&search->winner, i);
    struct tarn_candidate found = {own->decoder.offset, search->tops[i], i};
    if (tarn_search_offer(search, &own->best, &found) && thread == 0)
        tarn_search_report(search, own->best.top);
}

/* A searcher that met the aim has no need to know what it cost, which depends on how many were
 * begun. */
static void pay_for_keys(struct tarn_search *search)
{
    if (search->best.top <= search->aim) return;
    for (uint32_t i = 0; i < TARN_SEARCH_KEYS; i++)
        search->work_left = tarn_work_less(search->work_left, search->key_work[i]);
}

enum tarn_status tarn_search_keys(struct tarn_search *search)
{
    uint32_t count = search->best_keys > 0 ? search->best_keys : (uint32_t)TARN_SEARCH_KEYS;
    struct decodings decodings = {.search = search};
    tarn_winner_clear(&search->winner);
    if (search->work_left != TARN_WORK_UNLIMITED)
        decodings.work_max = search->work_left / count + 1;
    tarn_team_run(&search->team, count, decode_key, &decodings);
    for (uint32_t t = 0; t < TARN_SEARCH_KEYS; t++) {
        struct decoding *decoding = &decodings.list[t];
        if (decoding->made && !search->no_memory)
            tarn_search_offer(search, &search->best, &decoding->best);
        tarn_region_finish(&decoding->region);
    }
    pay_for_keys(search);
    return search->no_memory ? TARN_SYSTEM : TARN_OK;
}

/* ---- The problem ---- */

enum tarn_status tarn_search_init(struct tarn_search *search, const struct tarn_problem *problem,
                                  uint64_t aim, const uint64_t *offset)
{
    uint64_t most;
    search->given = offset;
    search->begin_ms = tarn_now_ms();
    tarn_team_init(&search->team, search->options->threads, problem->blocks.count >= EAGER_BLOCKS);
    if (!tarn_size_multiply(aim, 4, &most)) most = UINT64_MAX;
    if (tarn_lowest_init(&search->lowest, &search->region, problem, most) != TARN_OK ||
        tarn_traits_init(&search->traits, &search->region, &search->lowest) != TARN_OK)
        return TARN_SYSTEM;
    search->aim = tarn_lowest_units(&search->lowest, aim);
    for (uint32_t i = 0; i < TARN_SEARCH_KEYS; i++) search->tops[i] = INT32_MAX;
    return tarn_candidate_init(&search->best, &search->region, search->lowest.count) ? TARN_OK
                                                                                     : TARN_SYSTEM;
}

void tarn_search_finish(struct tarn_search *search) { tarn_region_finish(&search->region); }
