/* Computes the modelled clock: streams run their lists, each op as early as it may, an event wait
 * takes wait_ns, and the two copy streams run their copies one after another, outs in the order of
 * `rank`, intos by their next uses. Releases and triggers are found by it: the first op of the main
 * stream that begins when `out` has ended anyway, the last that has ended when `into` has to begin.
 * Cost: linear in places, arcs and gaps, but for sorting the copies. */
#include "clock.h"

#include <assert.h>
#include <stdlib.h>

#include "streams/base/heap.h"

#define FAR (INT64_MAX / 4)

static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

enum tarn_status tarn_offload_trial_init(struct tarn_offload_trial *trial,
                                         struct tarn_offload_model *model)
{
    struct tarn_region *region = model->region;
    size_t places = (size_t)model->count + 1, gaps = model->gaps_count;
    *trial = (struct tarn_offload_trial){.model = model};
    trial->in = tarn_region_take(region, gaps, sizeof *trial->in);
    uint32_t **ids[] = {&trial->release,      &trial->trigger,   &trial->rank, &trial->after,
                        &trial->todo,         &trial->heap,      &trial->outs, &trial->first_of,
                        &trial->release_next, &trial->right_next};
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++)
        *ids[i] = tarn_region_take(region, gaps, sizeof **ids[i]);
    int64_t **numbers[] = {&trial->out_end, &trial->free_at,  &trial->into_start,
                           &trial->written, &trial->copy_end, &trial->into_end};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        *numbers[i] = tarn_region_take(region, gaps, sizeof **numbers[i]);
    int64_t **times[] = {&trial->start, &trial->end, &trial->delay, &trial->starts, &trial->ends};
    for (size_t i = 0; i < sizeof times / sizeof *times; i++)
        *times[i] = tarn_region_take(region, places, sizeof **times[i]);
    trial->profile = tarn_region_take(region, 2 * places, sizeof *trial->profile);
    trial->key = tarn_region_take(region, gaps, sizeof *trial->key);
    trial->release_head = tarn_region_take(region, places, sizeof *trial->release_head);
    trial->right_head = tarn_region_take(region, places, sizeof *trial->right_head);
    trial->stream_end =
        tarn_region_take(region, model->graph->streams_count, sizeof *trial->stream_end);
    return region->is_exhausted ? TARN_SYSTEM : TARN_OK;
}

/* ---- Without moves ---- */

void tarn_offload_trial_take(struct tarn_offload_trial *trial,
                             const struct tarn_offload_choice *choice)
{
    memset(trial->in, 0, trial->model->gaps_count * sizeof *trial->in);
    for (uint32_t i = 0; i < choice->count; i++) {
        const struct tarn_offload_arcs *arcs = &choice->arcs[i];
        trial->in[arcs->gap] = true;
        trial->release[arcs->gap] = arcs->release;
        trial->trigger[arcs->gap] = arcs->trigger;
        trial->rank[arcs->gap] = arcs->rank;
        trial->after[arcs->gap] = arcs->after;
    }
}

/* When the op may begin, by its stream and its waits for other streams. */
static int64_t ready(const struct tarn_offload_model *model, uint32_t p, const int64_t *stream_end,
                     const int64_t *end)
{
    const struct tarn_graph *graph = model->graph;
    const struct tarn_arcs *arcs = &graph->predecessors;
    uint32_t v = graph->order[p];
    int64_t at = stream_end[model->stream[p]];
    for (uint32_t i = arcs->begin[v]; i < arcs->begin[v + 1]; i++)
        at = larger(at, end[graph->rank[arcs->ops[i]]] + (int64_t)model->terms.wait_ns);
    return at;
}

enum tarn_status tarn_offload_clock(const struct tarn_offload_model *model, const int64_t *delay,
                                    int64_t *start, int64_t *end, uint64_t *time_ns)
{
    struct tarn_region_mark mark = tarn_region_mark(model->region);
    int64_t last = 0,
            *stream_end = tarn_region_take(model->region, model->graph->streams_count, sizeof *end);
    if (!stream_end) return TARN_SYSTEM;
    for (uint32_t p = 0; p < model->count; p++) {
        start[p] = ready(model, p, stream_end, end) + (delay ? delay[p] : 0);
        end[p] = stream_end[model->stream[p]] = start[p] + (int64_t)model->cost[p];
        last = larger(last, end[p]);
    }
    *time_ns = (uint64_t)last;
    tarn_region_release(model->region, mark);
    return TARN_OK;
}

int64_t tarn_offload_freed_at(const struct tarn_offload_model *model, uint32_t g, int64_t copy_end,
                              const int64_t *end)
{
    const struct tarn_offload_gap *gap = &model->gaps[g];
    int64_t at = copy_end;
    for (uint32_t i = 0; i < gap->others_count; i++)
        at = larger(at, end[model->others[gap->others + i]]);
    return at + (int64_t)model->terms.wait_ns;
}

int64_t tarn_offload_needed_at(const struct tarn_offload_model *model, uint32_t g,
                               const int64_t *start)
{
    const struct tarn_offload_gap *gap = &model->gaps[g];
    int64_t at = start[gap->right];
    for (uint32_t i = 0; i < gap->later_count; i++) {
        int64_t later = start[model->others[gap->later + i]];
        if (later < at) at = later;
    }
    return at;
}

/* ---- Just in time ---- */

/* Of ascending numbers the first from `low` to `high` that is at least x, or `high`. */
static uint32_t halve(const int64_t *numbers, uint32_t low, uint32_t high, int64_t x)
{
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (numbers[middle] < x)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Of `count` ascending numbers the first from number `low` on that is at least x; it is mostly
 * near. */
static uint32_t search_up(const int64_t *numbers, uint32_t low, uint32_t count, int64_t x)
{
    uint32_t step = 1;
    for (; step <= count - low && numbers[low + step - 1] < x; step *= 2) low += step;
    return halve(numbers, low, step <= count - low ? low + step - 1 : count, x);
}

/* Of the first `high` of ascending numbers, how many are below x; the last are mostly near it. */
static uint32_t search_down(const int64_t *numbers, uint32_t high, int64_t x)
{
    uint32_t step = 1;
    for (; step <= high && numbers[high - step] >= x; step *= 2) high -= step;
    return halve(numbers, step <= high ? high - step + 1 : 0, high, x);
}

static bool is_written_before(const void *context, uint32_t a, uint32_t b)
{
    const struct tarn_offload_trial *trial = context;
    const struct tarn_offload_gap *gaps = trial->model->gaps;
    return trial->written[gaps[a].copy] < trial->written[gaps[b].copy];
}

/* Lists the first gap of each copy, ascending by left. */
static uint32_t list_copies(struct tarn_offload_trial *trial, const int64_t *start,
                            const int64_t *end)
{
    const struct tarn_offload_model *model = trial->model;
    uint32_t count = 0;
    for (uint32_t g = 0; g < model->gaps_count; g++)
        if (trial->in[g]) trial->first_of[model->gaps[g].copy] = TARN_NONE;
    for (uint32_t g = 0; g < model->gaps_count; g++) {
        const struct tarn_offload_gap *gap = &model->gaps[g];
        if (!trial->in[g] || !gap->has_out || trial->first_of[gap->copy] != TARN_NONE) continue;
        trial->first_of[gap->copy] = g;
        /* other streams may run ahead of the list; the copy streams follow the list */
        trial->written[gap->copy] = larger(end[gap->write], start[model->main_before[gap->write]]);
        trial->todo[count++] = g;
    }
    return count;
}

/* Places outs: of the written copies, the one that can be freed first is next. */
static void place_outs(struct tarn_offload_trial *trial, uint32_t count)
{
    const struct tarn_offload_gap *gaps = trial->model->gaps;
    struct tarn_heap heap = {.key = trial->key, .items = trial->heap};
    int64_t free = 0, wait = (int64_t)trial->model->terms.wait_ns;
    uint32_t after = 0;
    for (uint32_t i = 0; i < count; i++) trial->key[i] = gaps[trial->todo[i]].left;
    for (uint32_t rank = 0, k = 0; rank < count; rank++) {
        if (heap.count == 0) free = larger(free, trial->written[gaps[trial->todo[k]].copy] + wait);
        while (k < count && trial->written[gaps[trial->todo[k]].copy] + wait <= free)
            tarn_heap_push(&heap, k++);
        uint32_t g = trial->todo[tarn_heap_pop(&heap)];
        free += (int64_t)gaps[g].out_ns;
        if (gaps[g].write > after) after = gaps[g].write;
        trial->copy_end[gaps[g].copy] = free;
        trial->rank[g] = rank;
        trial->after[g] = after;
    }
}

/* A release comes after this place, which is the later of the last use and of the copy in the
 * list. */
static uint32_t last_before_release(const struct tarn_offload_trial *trial, uint32_t g)
{
    uint32_t left = trial->model->gaps[g].left;
    return left > trial->after[g] ? left : trial->after[g];
}

void tarn_offload_place(struct tarn_offload_trial *trial, const int64_t *start, const int64_t *end)
{
    const struct tarn_offload_model *model = trial->model;
    int64_t wait = (int64_t)model->terms.wait_ns, later = FAR;
    uint32_t count = model->main_count;
    trial->work += 4 * (uint64_t)model->count + 20 * (uint64_t)model->gaps_count;
    for (uint32_t k = 0; k < count; k++) {
        trial->starts[k] = start[model->main_ops[k]];
        trial->ends[k] = end[model->main_ops[k]];
    }
    uint32_t copies = list_copies(trial, start, end);
    tarn_offload_sort(trial->todo, trial->heap, copies, is_written_before, trial);
    place_outs(trial, copies);
    for (uint32_t g = 0; g < model->gaps_count; g++) {
        if (!trial->in[g]) continue;
        const struct tarn_offload_gap *gap = &model->gaps[g];
        if (gap->has_out) {
            uint32_t first = trial->first_of[gap->copy];
            trial->rank[g] = trial->rank[first];
            trial->after[g] = trial->after[first];
            trial->out_end[g] = trial->copy_end[gap->copy];
        } else {
            trial->rank[g] = trial->after[g] = 0;
            trial->out_end[g] = -wait;
        }
        trial->free_at[g] = tarn_offload_freed_at(model, g, trial->out_end[g], end);
        uint32_t k = tarn_offload_main_from(model, last_before_release(trial, g), true);
        k = search_up(trial->starts, k, count, trial->free_at[g]);
        trial->release[g] = gap->is_first ? 0 : k < count ? model->main_ops[k] : model->count;
    }
    for (uint32_t i = model->gaps_count; i-- > 0;) {
        uint32_t g = model->by_right[i];
        if (!trial->in[g]) continue;
        const struct tarn_offload_gap *gap = &model->gaps[g];
        if (!gap->has_into) {
            trial->into_start[g] = FAR;
            trial->trigger[g] = model->count - 1;
            continue;
        }
        int64_t by = tarn_offload_needed_at(model, g, start) - wait;
        later = trial->into_start[g] = (later < by ? later : by) - (int64_t)gap->into_ns;
        uint32_t k = tarn_offload_main_from(model, gap->right, false);
        k = search_down(trial->ends, k, later - wait + 1);
        trial->trigger[g] = k > 0 ? model->main_ops[k - 1] : TARN_NONE;
    }
}

/* ---- Bytes ---- */

int64_t tarn_offload_profile(struct tarn_offload_trial *trial)
{
    const struct tarn_offload_model *model = trial->model;
    size_t slots = 2 * (size_t)model->count;
    int64_t *profile = trial->profile, change = 0, highest = 0;
    trial->work += 2 * slots;
    for (size_t q = 0; q < slots + 2; q++) profile[q] = 0;
    for (uint32_t g = 0; g < model->gaps_count; g++) {
        if (!tarn_offload_frees(trial, g)) continue;
        profile[2 * (size_t)trial->release[g]] -= (int64_t)model->gaps[g].size;
        if (model->gaps[g].has_into)
            profile[2 * (size_t)trial->trigger[g] + 1] += (int64_t)model->gaps[g].size;
    }
    for (size_t q = 0; q < slots; q++) {
        change += profile[q];
        profile[q] = model->base[q] + change;
        if (profile[q] > highest) highest = profile[q];
    }
    return highest;
}

static void add_range(struct tarn_offload_trial *trial, uint32_t release, uint32_t trigger,
                      int64_t size)
{
    for (size_t q = 2 * (size_t)release; q <= 2 * (size_t)trigger; q++) trial->profile[q] += size;
    trial->work += trigger - release;
}

struct forced {
    double stall; /* per byte */
    uint32_t gap, release, trigger;
};

/* Finds the gap that can be away in the slot with the shortest wait. */
static bool find_forced(struct tarn_offload_trial *trial, size_t q, const int64_t *start,
                        const int64_t *end, struct forced *best)
{
    const struct tarn_offload_model *model = trial->model;
    int64_t wait = (int64_t)model->terms.wait_ns;
    uint32_t p = (uint32_t)(q / 2), needed = q % 2 ? p + 1 : p;
    uint32_t k = tarn_offload_main_from(model, p, true),
             m = tarn_offload_main_from(model, needed, false);
    bool found = false;
    trial->work += 2 * (uint64_t)model->gaps_count;
    if (k == 0) return false;
    uint32_t here = model->main_ops[k - 1];
    uint32_t there = m < model->main_count ? model->main_ops[m] : model->count;
    for (uint32_t g = 0; g < model->gaps_count && model->gaps[g].left <= p; g++) {
        const struct tarn_offload_gap *gap = &model->gaps[g];
        bool is_used = gap->left == p && q % 2 == 0 && !gap->is_first;
        if (!trial->in[g] || gap->right <= p || is_used) continue;
        bool is_out = trial->release[g] <= p,
             is_in = trial->trigger[g] != TARN_NONE && trial->trigger[g] >= needed;
        if (is_out && is_in) continue; /* away already */
        uint32_t release = is_out ? trial->release[g] : here;
        uint32_t trigger = is_in ? trial->trigger[g] : there;
        if (gap->is_first ? release > 0 : release <= last_before_release(trial, g)) continue;
        if (trigger >= gap->right || release > trigger) continue;
        int64_t stall = larger(0, larger(trial->free_at[g] - start[release],
                                         end[trigger] + wait - trial->into_start[g]));
        double part = (double)stall / (double)gap->size;
        if (found && part >= best->stall) continue;
        *best = (struct forced){part, g, release, trigger};
        found = true;
    }
    return found;
}

size_t tarn_offload_force(struct tarn_offload_trial *trial, int64_t budget, const int64_t *start,
                          const int64_t *end)
{
    size_t slots = 2 * (size_t)trial->model->count;
    tarn_offload_profile(trial);
    for (size_t q = 0; q < slots;) {
        struct forced best = {0};
        if (trial->profile[q] <= budget) {
            q++;
            continue;
        }
        if (!find_forced(trial, q, start, end, &best)) return q;
        uint32_t g = best.gap;
        int64_t size = (int64_t)trial->model->gaps[g].size;
        if (tarn_offload_frees(trial, g))
            add_range(trial, trial->release[g], trial->trigger[g], size);
        trial->release[g] = best.release;
        trial->trigger[g] = best.trigger;
        add_range(trial, best.release, best.trigger, -size);
    }
    return SIZE_MAX;
}

/* ---- Order ---- */

/* By rank; gaps of one copy by left. */
static uint32_t list_outs(struct tarn_offload_trial *trial)
{
    const struct tarn_offload_model *model = trial->model;
    uint32_t count = 0, *first = trial->todo, *next = trial->heap;
    for (uint32_t rank = 0; rank < model->gaps_count; rank++) first[rank] = TARN_NONE;
    for (uint32_t g = model->gaps_count; g-- > 0;) {
        if (!trial->in[g] || !model->gaps[g].has_out) continue;
        next[g] = first[trial->rank[g]];
        first[trial->rank[g]] = g;
    }
    for (uint32_t rank = 0; rank < model->gaps_count; rank++)
        for (uint32_t g = first[rank]; g != TARN_NONE; g = next[g]) trial->outs[count++] = g;
    return count;
}

void tarn_offload_tidy(struct tarn_offload_trial *trial)
{
    const struct tarn_offload_model *model = trial->model;
    for (uint32_t g = 0; g < model->gaps_count; g++)
        if (trial->in[g] && !model->gaps[g].is_forced && !tarn_offload_frees(trial, g))
            trial->in[g] = false;
    uint32_t count = list_outs(trial), next = UINT32_MAX;
    for (uint32_t i = count; i-- > 0;) {
        uint32_t g = trial->outs[i];
        uint32_t k = tarn_offload_main_from(model, last_before_release(trial, g), true);
        uint32_t first = k < model->main_count ? model->main_ops[k] : model->count;
        bool is_implied = model->gaps[g].others_count == 0; /* it waits for the copy alone */
        if (trial->release[g] > next && is_implied) trial->release[g] = next > first ? next : first;
        if (trial->release[g] < next) next = trial->release[g];
    }
    uint32_t latest = TARN_NONE;
    for (uint32_t i = 0; i < model->gaps_count; i++) {
        uint32_t g = model->by_right[i], trigger = trial->trigger[g];
        if (!trial->in[g] || !model->gaps[g].has_into) continue;
        if (latest != TARN_NONE && (trigger == TARN_NONE || trigger < latest))
            trial->trigger[g] = latest;
        latest = trial->trigger[g];
    }
    for (uint32_t g = 0; g < model->gaps_count; g++) {
        bool is_late = trial->trigger[g] != TARN_NONE && trial->trigger[g] >= model->gaps[g].right;
        if (trial->in[g] && !model->gaps[g].is_forced && (!tarn_offload_frees(trial, g) || is_late))
            trial->in[g] = false;
    }
}

/* ---- With moves ---- */

static uint32_t prepare_lists(struct tarn_offload_trial *trial)
{
    const struct tarn_offload_model *model = trial->model;
    int64_t wait = (int64_t)model->terms.wait_ns;
    for (uint32_t p = 0; p <= model->count; p++)
        trial->release_head[p] = trial->right_head[p] = TARN_NONE;
    for (uint32_t g = 0; g < model->gaps_count; g++) {
        if (!trial->in[g]) continue;
        trial->copy_end[model->gaps[g].copy] = model->gaps[g].has_out ? -1 : -wait;
        if (!model->gaps[g].is_first) {
            trial->release_next[g] = trial->release_head[trial->release[g]];
            trial->release_head[trial->release[g]] = g;
        }
        if (model->gaps[g].has_into) {
            trial->right_next[g] = trial->right_head[model->gaps[g].right];
            trial->right_head[model->gaps[g].right] = g;
        }
    }
    return list_outs(trial);
}

/* The copies back that the place triggers, which may begin at that time. Returns when their stream
 * is free again. */
static int64_t copy_into(struct tarn_offload_trial *trial, uint32_t place, int64_t at,
                         uint32_t *next, int64_t free)
{
    const struct tarn_offload_model *model = trial->model;
    int64_t wait = (int64_t)model->terms.wait_ns;
    for (; *next < model->gaps_count; ++*next) {
        uint32_t g = model->by_right[*next];
        const struct tarn_offload_gap *gap = &model->gaps[g];
        if (!trial->in[g] || !gap->has_into) continue;
        if (trial->trigger[g] != place) break;
        free = larger(larger(free, at), trial->copy_end[gap->copy] + wait) + (int64_t)gap->into_ns;
        trial->into_end[g] = free;
    }
    return free;
}

int64_t tarn_offload_simulate(struct tarn_offload_trial *trial)
{
    const struct tarn_offload_model *model = trial->model;
    const struct tarn_offload_gap *gaps = model->gaps;
    int64_t wait = (int64_t)model->terms.wait_ns, out_free = 0, into_free = 0, last = 0;
    uint32_t outs_count = prepare_lists(trial), next_out = 0, next_into = 0;
    trial->work += 8 * (uint64_t)model->count + 8 * (uint64_t)model->gaps_count;
    for (uint32_t s = 0; s < model->graph->streams_count; s++) trial->stream_end[s] = 0;
    into_free = copy_into(trial, TARN_NONE, 0, &next_into, 0);
    for (uint32_t p = 0; p < model->count; p++) {
        int64_t at = ready(model, p, trial->stream_end, trial->end);
        for (uint32_t g = trial->release_head[p]; g != TARN_NONE; g = trial->release_next[g]) {
            assert(trial->copy_end[gaps[g].copy] >= 0 || !gaps[g].has_out);
            at = larger(at,
                        tarn_offload_freed_at(model, g, trial->copy_end[gaps[g].copy], trial->end));
        }
        for (uint32_t g = trial->right_head[p]; g != TARN_NONE; g = trial->right_next[g])
            at = larger(at, trial->into_end[g] + wait);
        for (uint32_t i = model->waits_begin[p]; i < model->waits_begin[p + 1]; i++)
            if (trial->in[model->waits[i]])
                at = larger(at, trial->into_end[model->waits[i]] + wait);
        trial->start[p] = at;
        trial->end[p] = trial->stream_end[model->stream[p]] = at + (int64_t)model->cost[p];
        last = larger(last, trial->end[p]);
        for (; next_out < outs_count && trial->after[trial->outs[next_out]] == p; next_out++) {
            uint32_t g = trial->outs[next_out];
            int64_t *end = &trial->copy_end[gaps[g].copy];
            if (*end >= 0) continue; /* a later gap of the same version */
            int64_t written =
                trial->end[gaps[g].write]; /* `after` is its place in the list alone */
            *end = out_free = larger(out_free, written + wait) + (int64_t)gaps[g].out_ns;
        }
        into_free = copy_into(trial, p, trial->end[p] + wait, &next_into, into_free);
    }
    return larger(last, larger(out_free, into_free));
}
