/* Bundles. Lone blocks that one stream produces in the same period (periods.h), and that every
 * stream releases in the same one, are stacked: as far as periods can tell, they have the same
 * conflicts. A bundle is a storage that is produced with the first of its blocks and whose first[s]
 * is the highest of theirs: so one bundle precedes another where all blocks of the one precede all
 * of the other, and the bundles are a problem like any other one, in as many streams. Contiguous
 * groups are not stacked. Exact conflicts come back when the windows are placed around the blocks,
 * each by itself.
 * Source: DESIGN.md, section 3 (Reuse, Windows). Cost: O(blocks * streams), and a decode of the
 * bundles for each key. */
#include "bundles.h"

#include <stdlib.h>
#include <string.h>

#include "planner/place/lowest/keys.h"

enum { BUNDLES_IN_ALL = 512 };
/* Decodes may take one in so many parts of the effort; where one takes more, so many periods become
 * one, a few times. Keys follow the first one where that ends one part in so many above the aim. */
enum { EFFORT_SHARE = 6, COARSER_SHIFT = 2, SHIFT_MAX = 8, ENOUGH_SHARE = 1024 };
/* Numbers of keys (keys.h), the first one first. */
static const uint32_t keys[] = {0, 2, 3, 1};
enum { KEYS_COUNT = sizeof keys / sizeof *keys };

/* A stream that produces some of what crosses. */
struct source {
    uint32_t stream;     /* of the whole */
    uint32_t begin, end; /* of its storages, in the order of the list */
};

/* Blocks order[begin..end], stacked. */
struct bundle {
    uint32_t begin, end;
    int32_t size, alignment, floor; /* in units */
};

/* Storages are known by their place in the list of what crosses. */
struct bundles {
    const struct tarn_field *field;
    const struct tarn_windows_settings *settings;
    const uint32_t *storages;
    uint32_t *period; /* by storage: it is produced in */
    uint32_t count;
    uint32_t shift; /* so many periods, as a power of two, are one */
    struct tarn_slot_set listed;
    struct source *sources;
    uint32_t sources_count;
    uint64_t *release; /* by storage: of the periods in which streams release it */
    uint32_t *order;   /* blocks, by their first members: bundle by bundle */
    uint32_t blocks_count;
    struct bundle *list;
    uint32_t list_count;
    uint32_t *mate; /* storage -> storage of the problem below that it belongs to */
    /* The problem: one storage for each bundle, for a group one for each member. */
    struct tarn_graph graph;
    struct tarn_reuse reuse;
    struct tarn_blocks blocks;
    struct tarn_conflicts conflicts;
    bool *in_antichain; /* by storage of the problem */
};

/* ---- Stacking ---- */

static struct tarn_block block_of(const struct bundles *bundles, uint32_t i)
{
    const struct tarn_field *field = bundles->field;
    return tarn_block_at(field->problem->blocks, field->block_of[bundles->storages[i]]);
}

static uint32_t place_of(const struct bundles *bundles, uint32_t a)
{
    return tarn_slot_set_below(&bundles->listed, bundles->field->problem->conflicts->slot_of[a]);
}

/* The first storage of a source that storage i precedes; the source's end where there is none. */
static uint32_t release_of(const struct bundles *bundles, const struct source *source, uint32_t i)
{
    const struct tarn_conflicts *conflicts = bundles->field->problem->conflicts;
    const uint32_t *first =
        conflicts->reuse->first + (size_t)source->stream * conflicts->reuse->count;
    uint32_t at = conflicts->ops_begin[source->stream] + first[bundles->storages[i]];
    uint32_t place = tarn_slot_set_below(&bundles->listed, conflicts->slot_at[at]);
    if (place < source->begin) return source->begin;
    return place < source->end ? place : source->end;
}

static uint32_t period_of(const struct bundles *bundles, uint32_t i)
{
    return bundles->period[i] >> bundles->shift;
}

static bool find_sources(struct bundles *bundles)
{
    const uint32_t *stream = bundles->field->problem->conflicts->reuse->stream;
    size_t streams_count = bundles->field->problem->conflicts->reuse->streams_count;
    struct source *source = bundles->sources = malloc((streams_count + 1) * sizeof *source);
    for (uint32_t i = 0; source && i < bundles->count; i = source++->end) {
        *source = (struct source){stream[bundles->storages[i]], i, i};
        while (source->end < bundles->count &&
               stream[bundles->storages[source->end]] == source->stream)
            source->end++;
        bundles->sources_count++;
    }
    return source != NULL;
}

/* Where two vectors of periods have the same number, bundles are only larger than they need be. */
static void number_releases(const struct bundles *bundles)
{
    for (uint32_t k = 0; k < bundles->sources_count; k++) {
        const struct source *source = &bundles->sources[k];
        for (uint32_t i = 0; i < bundles->count; i++) {
            uint32_t at = release_of(bundles, source, i);
            uint64_t period = at < source->end ? period_of(bundles, at) : UINT32_MAX;
            uint64_t mixed = (bundles->release[i] ^ period) * UINT64_C(0x9e3779b97f4a7c15);
            bundles->release[i] = mixed ^ mixed >> 29;
        }
    }
}

struct sorted {
    uint64_t release;
    uint32_t i;
};

static int compare(const void *left, const void *right)
{
    const struct sorted *a = left, *b = right;
    if (a->release != b->release) return a->release < b->release ? -1 : 1;
    return a->i < b->i ? -1 : a->i > b->i;
}

/* Blocks by stream, then period of production, as they are listed, then releases. */
static bool sort_blocks(struct bundles *bundles)
{
    const uint32_t *stream = bundles->field->problem->conflicts->reuse->stream;
    struct sorted *run = malloc(((size_t)bundles->count + 1) * sizeof *run);
    for (uint32_t i = 0, next; run && i < bundles->count; i = next) {
        uint32_t count = 0;
        for (next = i; next < bundles->count; next++) {
            if (period_of(bundles, next) != period_of(bundles, i) ||
                stream[bundles->storages[next]] != stream[bundles->storages[i]])
                break;
            if (block_of(bundles, next).members[0] == bundles->storages[next])
                run[count++] = (struct sorted){bundles->release[next], next};
        }
        if (count > 0) qsort(run, count, sizeof *run, compare);
        for (uint32_t n = 0; n < count; n++) bundles->order[bundles->blocks_count++] = run[n].i;
    }
    free(run);
    return run != NULL;
}

static bool joins(const struct bundles *bundles, const struct bundle *bundle, uint32_t i)
{
    const uint32_t *stream = bundles->field->problem->conflicts->reuse->stream;
    uint32_t other = bundles->order[bundle->begin];
    return stream[bundles->storages[i]] == stream[bundles->storages[other]] &&
           period_of(bundles, i) == period_of(bundles, other) &&
           bundles->release[i] == bundles->release[other] &&
           block_of(bundles, i).members_count == 1 && block_of(bundles, other).members_count == 1;
}

/* Puts a block on top of the bundle, whose start is a multiple of every alignment in it; its offset
 * is that in the bundle. */
static void stack(const struct bundles *bundles, struct bundle *bundle, uint32_t i, int32_t size,
                  int32_t alignment)
{
    uint32_t b = bundles->field->block_of[bundles->storages[i]];
    int32_t offset = (bundle->size + alignment - 1) & ~(alignment - 1);
    bundles->field->offset[b] = offset;
    bundle->size = offset + size;
    bundle->end++;
    if (alignment > bundle->alignment) bundle->alignment = alignment;
    if (bundles->field->floor[b] > bundle->floor) bundle->floor = bundles->field->floor[b];
}

static void stack_all(struct bundles *bundles)
{
    uint32_t shift = bundles->settings->unit_shift;
    uint64_t unit = (UINT64_C(1) << shift) - 1;
    int32_t size_max = bundles->settings->aim / BUNDLES_IN_ALL;
    struct bundle *bundle = NULL;
    for (uint32_t n = 0; n < bundles->blocks_count; n++) {
        struct tarn_block block = block_of(bundles, bundles->order[n]);
        int32_t size = (int32_t)((block.size + unit) >> shift);
        int32_t alignment = (int32_t)((block.alignment + unit) >> shift);
        if (!bundle || size > size_max - bundle->size - alignment ||
            !joins(bundles, bundle, bundles->order[n])) {
            bundle = &bundles->list[bundles->list_count++];
            *bundle = (struct bundle){.begin = n, .end = n, .alignment = 1};
        }
        stack(bundles, bundle, bundles->order[n], size, alignment);
    }
}

/* ---- The problem ---- */

/* The storages of a bundle, or of a group, are numbered one after the other. */
static void number_storages(struct bundles *bundles)
{
    struct tarn_blocks *blocks = &bundles->blocks;
    uint32_t shift = bundles->settings->unit_shift;
    uint64_t unit = (UINT64_C(1) << shift) - 1;
    const struct tarn_blocks *all = bundles->field->problem->blocks;
    for (uint32_t n = 0; n < bundles->list_count; n++) {
        const struct bundle *bundle = &bundles->list[n];
        struct tarn_block block = block_of(bundles, bundles->order[bundle->begin]);
        blocks->members_begin[blocks->count] = blocks->storages_count;
        blocks->alignment_shift[blocks->count++] =
            (uint8_t)__builtin_ctz((uint32_t)bundle->alignment);
        for (uint32_t i = bundle->begin; i < bundle->end; i++)
            bundles->mate[bundles->order[i]] = blocks->storages_count;
        blocks->reserved[blocks->storages_count] = (uint64_t)bundle->size;
        blocks->within[blocks->storages_count] = 0;
        for (uint32_t m = 0; block.members_count > 1 && m < block.members_count; m++) {
            uint32_t a = block.members[m], own = blocks->storages_count + m;
            bundles->mate[place_of(bundles, a)] = own;
            blocks->within[own] = all->within[a] >> shift;
            blocks->reserved[own] =
                ((all->within[a] + all->reserved[a] + unit) >> shift) - blocks->within[own];
        }
        blocks->storages_count += block.members_count;
    }
    blocks->members_begin[blocks->count] = blocks->storages_count;
    for (uint32_t c = 0; c < blocks->storages_count; c++) blocks->members[c] = c;
}

/* Positions count the problem's storages, by the first of what belongs to them.
 * before: by place in the list, how many of them come before it in its stream; and at the ends. */
static void fill_positions(struct bundles *bundles, uint32_t *before)
{
    const struct tarn_field *field = bundles->field;
    struct tarn_reuse *reuse = &bundles->reuse;
    memset(reuse->position, 0xff, bundles->blocks.storages_count * sizeof *reuse->position);
    for (uint32_t k = 0; k < bundles->sources_count; k++) {
        const struct source *source = &bundles->sources[k];
        uint32_t next = 0;
        for (uint32_t i = source->begin; i < source->end; i++) {
            uint32_t mate = bundles->mate[i], a = bundles->storages[i];
            before[i] = next;
            if (tarn_antichain_has(field->threshold, field->problem->conflicts->reuse, a))
                bundles->in_antichain[mate] = true;
            if (reuse->position[mate] != UINT32_MAX) continue;
            reuse->position[mate] = next++;
            reuse->stream[mate] = k;
            bundles->graph.storages[mate] = field->problem->graph->storages[a];
        }
        bundles->graph.streams[k].ops_count = next;
    }
}

static void fill_first(struct bundles *bundles, const uint32_t *before)
{
    for (uint32_t k = 0; k < bundles->sources_count; k++) {
        const struct source *source = &bundles->sources[k];
        uint32_t *first = bundles->reuse.first + (size_t)k * bundles->blocks.storages_count;
        for (uint32_t i = 0; i < bundles->count; i++) {
            uint32_t at = release_of(bundles, source, i);
            uint32_t own = at < source->end ? before[at] : bundles->graph.streams[k].ops_count;
            if (own > first[bundles->mate[i]]) first[bundles->mate[i]] = own;
        }
    }
}

static bool allocate_problem(struct bundles *bundles)
{
    size_t count = (size_t)bundles->list_count + 1;
    for (uint32_t n = 0; n < bundles->list_count; n++)
        count += block_of(bundles, bundles->order[bundles->list[n].begin]).members_count - 1;
    struct tarn_reuse *reuse = &bundles->reuse;
    struct tarn_blocks *blocks = &bundles->blocks;
    bundles->graph.storages = malloc(count * sizeof *bundles->graph.storages);
    bundles->graph.streams =
        calloc((size_t)bundles->sources_count + 1, sizeof *bundles->graph.streams);
    reuse->first = calloc(count * bundles->sources_count + 1, sizeof *reuse->first);
    reuse->position = malloc(count * sizeof *reuse->position);
    reuse->stream = malloc(count * sizeof *reuse->stream);
    blocks->members_begin = malloc((count + 1) * sizeof *blocks->members_begin);
    blocks->alignment_shift = malloc(count);
    blocks->members = malloc(count * sizeof *blocks->members);
    blocks->reserved = malloc(count * sizeof *blocks->reserved);
    blocks->within = malloc(count * sizeof *blocks->within);
    bundles->in_antichain = calloc(count, sizeof *bundles->in_antichain);
    return bundles->graph.storages && bundles->graph.streams && reuse->first && reuse->position &&
           reuse->stream && blocks->members_begin && blocks->alignment_shift && blocks->members &&
           blocks->reserved && blocks->within && bundles->in_antichain;
}

static bool make_problem(struct bundles *bundles)
{
    const struct tarn_graph *graph = bundles->field->problem->graph;
    uint32_t *before = malloc(((size_t)bundles->count + 1) * sizeof *before);
    bool ok = before && allocate_problem(bundles);
    if (ok) {
        number_storages(bundles);
        fill_positions(bundles, before);
        bundles->graph.rank = graph->rank;
        bundles->graph.ops_count = graph->ops_count;
        bundles->graph.streams_count = bundles->reuse.streams_count = bundles->sources_count;
        bundles->graph.planned_count = bundles->reuse.count = bundles->blocks.storages_count;
        fill_first(bundles, before);
        ok = tarn_conflicts_init_slots(&bundles->conflicts, &bundles->reuse, &bundles->graph) ==
             TARN_OK;
    }
    free(before);
    return ok;
}

/* ---- Placing ---- */

/* Adds the offsets of bundles to those that their blocks have in them. */
static void take_offsets(const struct bundles *bundles, const int32_t *start)
{
    for (uint32_t n = 0; n < bundles->list_count; n++)
        for (uint32_t i = bundles->list[n].begin; i < bundles->list[n].end; i++) {
            uint32_t a = bundles->storages[bundles->order[i]];
            bundles->field->offset[bundles->field->block_of[a]] += start[n];
        }
}

/* Ends the decodes of all keys. */
static uint64_t work_max(const struct bundles *bundles)
{
    struct tarn_effort *effort = bundles->settings->effort;
    uint64_t left = tarn_effort_left(effort), share = effort->max / EFFORT_SHARE;
    if (effort->max == UINT64_MAX) return UINT64_MAX;
    if (effort->must) return bundles->shift < SHIFT_MAX ? share : UINT64_MAX;
    return left < share ? left : share;
}

static void note_key(struct tarn_effort *effort, uint64_t work, uint32_t bundles_count)
{
    effort->key_work = work;
    effort->key_bundles = bundles_count;
}

/* Writes where bundles start, for the best of the keys. */
static bool decode_keys(const struct bundles *bundles, const struct tarn_lowest *lowest,
                        const struct tarn_traits *traits, int32_t *start, int32_t *top)
{
    struct tarn_decoder decoder;
    size_t count = (size_t)lowest->count + 1;
    int32_t *key = malloc(count * sizeof *key), *floor = malloc(count * sizeof *floor);
    int32_t aim = bundles->settings->aim;
    bool ok = tarn_decoder_init(&decoder, lowest) == TARN_OK &&
              tarn_decoder_narrow(&decoder) == TARN_OK && key && floor;
    decoder.deadline = bundles->settings->deadline;
    decoder.work_max = work_max(bundles);
    for (uint32_t place = 0; ok && place < lowest->count; place++)
        floor[place] = bundles->list[lowest->block[place]].floor;
    for (uint32_t n = 0; ok && n < KEYS_COUNT; n++) {
        ok = tarn_keys_fill(lowest, traits, keys[n], key) == TARN_OK;
        tarn_decoder_start(&decoder, floor);
        bool lower =
            ok && tarn_decoder_advance(&decoder, key, floor, (struct tarn_objective){0, 1, 0},
                                       *top - 1, lowest->count);
        if (lower) *top = decoder.top;
        if (n == 0 && lower) note_key(bundles->settings->effort, decoder.work, lowest->count);
        for (uint32_t place = 0; lower && place < lowest->count; place++)
            start[lowest->block[place]] = decoder.offset[place];
        if (*top == INT32_MAX || *top <= aim + aim / ENOUGH_SHARE) break;
        if (decoder.work > decoder.work_max ||
            decoder.work / (n + 1) > decoder.work_max - decoder.work)
            break;
    }
    tarn_effort_spend(bundles->settings->effort, decoder.work);
    bundles->settings->effort->crossing += decoder.work;
    tarn_decoder_finish(&decoder);
    free(key);
    free(floor);
    return ok;
}

static bool decode(const struct bundles *bundles, int32_t *top)
{
    const struct tarn_problem problem = {&bundles->graph, &bundles->blocks, &bundles->conflicts};
    struct tarn_obstacles none = {.reuse = &bundles->reuse}; /* sizes are in units already */
    struct tarn_lowest lowest = {0};
    struct tarn_traits traits = {0};
    int32_t *start = malloc(((size_t)bundles->list_count + 1) * sizeof *start);
    bool ok = start && tarn_obstacles_sort(&none) == TARN_OK &&
              tarn_lowest_init_around(&lowest, &problem, &none) == TARN_OK &&
              tarn_traits_init(&traits, &lowest, bundles->in_antichain) == TARN_OK &&
              decode_keys(bundles, &lowest, &traits, start, top);
    if (ok && *top < INT32_MAX) take_offsets(bundles, start);
    tarn_traits_finish(&traits);
    tarn_lowest_finish(&lowest);
    tarn_obstacles_finish(&none);
    free(start);
    return ok;
}

/* ---- The whole ---- */

static bool bundles_init(struct bundles *bundles, const uint32_t *period_of)
{
    const struct tarn_problem *problem = bundles->field->problem;
    const struct tarn_graph *graph = problem->graph;
    size_t count = (size_t)bundles->count + 1;
    bundles->release = calloc(count, sizeof *bundles->release);
    bundles->order = malloc(count * sizeof *bundles->order);
    bundles->mate = malloc(count * sizeof *bundles->mate);
    bundles->period = malloc(count * sizeof *bundles->period);
    for (uint32_t i = 0; bundles->period && i < bundles->count; i++)
        bundles->period[i] = period_of[graph->rank[graph->storages[bundles->storages[i]].producer]];
    bundles->list = malloc(count * sizeof *bundles->list);
    return bundles->period && bundles->release && bundles->order && bundles->mate &&
           bundles->list &&
           tarn_slot_set_init(&bundles->listed, problem->conflicts, bundles->storages,
                              bundles->count) == TARN_OK &&
           find_sources(bundles);
}

static void problem_finish(struct bundles *bundles)
{
    free(bundles->graph.storages);
    free(bundles->graph.streams);
    free(bundles->reuse.first);
    free(bundles->reuse.position);
    free(bundles->reuse.stream);
    tarn_blocks_finish(&bundles->blocks);
    tarn_conflicts_finish(&bundles->conflicts);
    free(bundles->in_antichain);
    memset(&bundles->graph, 0, sizeof bundles->graph);
    memset(&bundles->reuse, 0, sizeof bundles->reuse);
    bundles->in_antichain = NULL;
}

static void bundles_finish(struct bundles *bundles)
{
    tarn_slot_set_finish(&bundles->listed);
    free(bundles->sources);
    free(bundles->period);
    free(bundles->release);
    free(bundles->order);
    free(bundles->list);
    free(bundles->mate);
}

static bool place(struct bundles *bundles, int32_t *top)
{
    memset(bundles->release, 0, bundles->count * sizeof *bundles->release);
    bundles->blocks_count = bundles->list_count = 0;
    number_releases(bundles);
    bool ok = sort_blocks(bundles);
    stack_all(bundles);
    ok = ok && make_problem(bundles) && decode(bundles, top);
    problem_finish(bundles);
    return ok;
}

bool tarn_bundles_place(const struct tarn_field *field,
                        const struct tarn_windows_settings *settings, const struct tarn_cuts *cuts,
                        const uint32_t *period_of, int32_t *top)
{
    uint32_t begin = cuts->begin[cuts->count], end = cuts->begin[cuts->count + 1];
    struct bundles bundles = {.field = field,
                              .settings = settings,
                              .storages = cuts->storages + begin,
                              .count = end - begin};
    bool ok = bundles_init(&bundles, period_of);
    *top = INT32_MAX;
    for (; ok && *top == INT32_MAX && bundles.shift <= SHIFT_MAX; bundles.shift += COARSER_SHIFT) {
        if (settings->deadline && tarn_deadline_is_over(settings->deadline)) break;
        if (!settings->effort->must && bundles.shift > 0) break;
        ok = place(&bundles, top);
    }
    bundles_finish(&bundles);
    return ok;
}
