/* Builds the model of moves: places, the clock if nothing moves, the bytes of each slot, and the
 * gaps in which a storage could be away without making an op wait. Some storages never move:
 * members of contiguous groups, outputs, storages with slices or a fixed offset, storages that arms
 * of conditionals use, and storages below bytes_min. Cost: linear in the graph, and a sort of the
 * gaps. */
#include <assert.h>
#include <stdlib.h>

#include "clock.h"
#include "streams/base/error.h"
#include "streams/order/reserved.h"
#include "tarn/transform.h"

static int64_t *take_numbers(struct tarn_region *region, size_t count)
{
    return tarn_region_take(region, count, sizeof(int64_t));
}

static bool take_room(struct tarn_offload_model *model, uint32_t gaps_max, size_t others_max)
{
    struct tarn_region *region = model->region;
    size_t count = model->count;
    model->stream = tarn_region_take(region, count, sizeof *model->stream);
    model->cost = tarn_region_take(region, count, sizeof *model->cost);
    model->base = take_numbers(region, 2 * count + 2);
    model->start0 = take_numbers(region, count);
    model->end0 = take_numbers(region, count);
    model->main_ops = tarn_region_take(region, count, sizeof *model->main_ops);
    model->main_next = tarn_region_take(region, count + 2, sizeof *model->main_next);
    model->main_before = tarn_region_take(region, count, sizeof *model->main_before);
    model->gaps = tarn_region_take(region, gaps_max, sizeof *model->gaps);
    model->by_right = tarn_region_take(region, gaps_max, sizeof *model->by_right);
    model->others = tarn_region_take(region, 2 * others_max, sizeof *model->others);
    model->waits = tarn_region_take(region, others_max, sizeof *model->waits);
    model->waits_begin = tarn_region_take(region, count + 1, sizeof *model->waits_begin);
    return !region->is_exhausted;
}

static uint32_t place_of(const struct tarn_offload_model *model, uint32_t op)
{
    return model->graph->rank[op];
}

/* ---- The main stream ---- */

static enum tarn_status find_main(struct tarn_offload_model *model)
{
    const struct tarn_graph *graph = model->graph;
    struct tarn_region_mark mark = tarn_region_mark(model->region);
    uint64_t *made = tarn_region_take(model->region, graph->streams_count, sizeof *made);
    if (!made) return TARN_SYSTEM;
    for (uint32_t a = 0; a < graph->planned_count; a++)
        made[graph->ops[graph->storages[a].producer].stream] += model->reserved[a];
    for (uint32_t s = 1; s < graph->streams_count; s++)
        if (made[s] > made[model->main]) model->main = s;
    tarn_region_release(model->region, mark);
    uint32_t last = TARN_NONE;
    for (uint32_t p = 0; p < model->count; p++) {
        model->main_next[p] = model->main_count;
        if (model->stream[p] == model->main && !graph->ops[graph->order[p]].view) {
            model->main_ops[model->main_count++] = p;
            last = p;
        }
        model->main_before[p] = last;
    }
    model->main_next[model->count] = model->main_next[model->count + 1] = model->main_count;
    for (uint32_t p = 0; p < model->count && model->main_count > 0; p++)
        if (model->main_before[p] == TARN_NONE) model->main_before[p] = model->main_ops[0];
    return TARN_OK;
}

/* ---- Gaps ---- */

/* Do all its users run in every iteration? */
static bool always_runs(const struct tarn_graph *graph, const struct tarn_storage *storage)
{
    for (uint32_t k = 0; k < storage->users_count; k++)
        if (tarn_extra(&graph->ops[tarn_storage_users(graph, storage)[k]])->branch_count > 0)
            return false;
    return true;
}

bool tarn_offload_may_move(const struct tarn_offload_model *model, uint32_t a)
{
    const struct tarn_storage *storage = &model->graph->storages[a];
    unsigned kind = TARN_OFFLOAD_ACTIVATIONS;
    if (storage->tensor == TARN_NONE) return false;
    if (storage->persistent) {
        uint8_t of = model->graph->tensors[storage->tensor].kind;
        kind = of == TARN_OPTIMIZER_STATE ? TARN_OFFLOAD_STATES
               : of == TARN_PARAMETER     ? TARN_OFFLOAD_PARAMETERS
                                          : 0;
        if (storage->users_count == 0) return false;
    }
    const struct tarn_graph_tensor *root = &model->graph->tensors[storage->tensor];
    return (model->terms.kinds & kind) && root->parts_count == 1 &&
           root->offset_rule == TARN_OFFSET_FREE && always_runs(model->graph, storage) &&
           storage->group == TARN_NONE && !storage->pinned && storage->space == 0 &&
           storage->size >= model->terms.bytes_min;
}

static uint64_t copy_ns(uint64_t size, uint64_t bytes_per_second, uint64_t latency_ns)
{
    return latency_ns + (uint64_t)((double)size * 1e9 / (double)bytes_per_second);
}

bool tarn_offload_writes(const struct tarn_graph *graph, uint32_t op, uint32_t a)
{
    const struct tarn_graph_op *record = &graph->ops[op];
    for (uint32_t k = 0; k < record->outputs_count; k++)
        if (graph->tensors[tarn_outputs(record)[k]].storage == a) return true;
    return false;
}

static int compare_places(const void *left, const void *right)
{
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    return a < b ? -1 : a > b;
}

/* Can copies of it be made while all others go on? */
static bool is_long(const struct tarn_offload_model *model, const struct tarn_offload_gap *gap)
{
    int64_t written = gap->has_out ? model->end0[gap->write] + (int64_t)gap->out_ns : 0;
    int64_t from = model->end0[gap->left] > written ? model->end0[gap->left] : written;
    return gap->right > gap->left + 1 && model->start0[gap->right] - from > (int64_t)gap->into_ns;
}

/* The bytes that it takes in the arena. */
static uint64_t size_of(const struct tarn_offload_model *model, uint32_t a)
{
    const struct tarn_graph *graph = model->graph;
    if (a < graph->planned_count) return model->reserved[a];
    uint64_t alignment = tarn_storage_alignment(graph, a, model->terms.alignment);
    return (graph->storages[a].size + alignment - 1) & ~(alignment - 1);
}

/* last: by stream, the storage's last user so far, or TARN_NONE. */
static struct tarn_offload_gap *add_gap(struct tarn_offload_model *model,
                                        const struct tarn_offload_gap *gap, uint32_t *copy,
                                        const uint32_t *last)
{
    struct tarn_offload_gap *added = &model->gaps[model->gaps_count++];
    if (*copy == TARN_NONE) *copy = model->copies_count++;
    *added = *gap;
    added->copy = *copy;
    added->others = model->others_count;
    for (uint32_t s = 0; s < model->graph->streams_count; s++)
        if (s != model->main && last[s] != TARN_NONE)
            model->others[model->others_count++] = last[s];
    added->others_count = model->others_count - added->others;
    return added;
}

/* places: of the users after the gap's right, ascending. next: room, by stream. */
static void add_later(struct tarn_offload_model *model, struct tarn_offload_gap *gap,
                      const uint32_t *places, uint32_t count, uint32_t *next)
{
    const struct tarn_graph *graph = model->graph;
    gap->later = model->others_count;
    if (!gap->has_into || graph->streams_count == 1) return;
    for (uint32_t s = 0; s < graph->streams_count; s++) next[s] = TARN_NONE;
    for (uint32_t k = count; k-- > 0;)
        if (!graph->ops[graph->order[places[k]]].view) next[model->stream[places[k]]] = places[k];
    for (uint32_t s = 0; s < graph->streams_count; s++)
        if (s != model->stream[gap->right] && next[s] != TARN_NONE)
            model->others[model->others_count++] = next[s];
    gap->later_count = model->others_count - gap->later;
}

/* last, next: room, by stream. */
static void add_gaps(struct tarn_offload_model *model, uint32_t a, uint32_t *places, uint32_t *last,
                     uint32_t *next)
{
    const struct tarn_graph *graph = model->graph;
    const struct tarn_storage *storage = &graph->storages[a];
    const struct tarn_offload_terms *terms = &model->terms;
    const uint32_t *users = tarn_storage_users(graph, storage);
    uint32_t copy = TARN_NONE, count = storage->users_count;
    for (uint32_t k = 0; k < count; k++) places[k] = place_of(model, users[k]);
    qsort(places, count, sizeof *places, compare_places);
    for (uint32_t s = 0; s < graph->streams_count; s++) last[s] = TARN_NONE;
    struct tarn_offload_gap gap = {
        .storage = a,
        .size = size_of(model, a),
        .out_ns = copy_ns(storage->size, terms->out_bytes_per_second, terms->latency_ns),
        .into_ns = copy_ns(storage->size, terms->into_bytes_per_second, terms->latency_ns),
        .has_out = !storage->persistent,
        .has_into = true};
    if (storage->persistent) {
        gap.right = places[0];
        gap.is_first = gap.is_forced = true;
        add_later(model, add_gap(model, &gap, &copy, last), places + 1, count - 1, next);
        gap.is_first = gap.is_forced = false;
    }
    for (uint32_t k = 0; k < count; k++) {
        if (tarn_offload_writes(graph, graph->order[places[k]], a)) {
            gap.write = places[k];
            gap.has_out = true;
            copy = TARN_NONE;
        }
        if (!graph->ops[graph->order[places[k]]].view) last[model->stream[places[k]]] = places[k];
        gap.left = places[k];
        gap.right = k + 1 < count ? places[k + 1] : model->count;
        gap.is_forced = storage->persistent && k + 1 == count;
        gap.has_into = k + 1 < count;
        if (gap.is_forced || (gap.has_into && is_long(model, &gap))) {
            uint32_t after = k + 2 < count ? k + 2 : count;
            add_later(model, add_gap(model, &gap, &copy, last), places + after, count - after,
                      next);
        }
    }
}

static int compare_left(const void *left, const void *right)
{
    const struct tarn_offload_gap *a = left, *b = right;
    if (a->left != b->left) return a->left < b->left ? -1 : 1;
    return a->storage < b->storage ? -1 : a->storage > b->storage;
}

struct right {
    uint32_t right, gap;
};

static int compare_right(const void *left, const void *right)
{
    const struct right *a = left, *b = right;
    if (a->right != b->right) return a->right < b->right ? -1 : 1;
    return a->gap < b->gap ? -1 : a->gap > b->gap; /* which are by left, then storage */
}

static void list_waits(struct tarn_offload_model *model)
{
    uint32_t *begin = model->waits_begin;
    for (uint32_t g = 0; g < model->gaps_count; g++)
        for (uint32_t i = 0; i < model->gaps[g].later_count; i++)
            begin[model->others[model->gaps[g].later + i] + 1]++;
    for (uint32_t p = 0; p < model->count; p++) begin[p + 1] += begin[p];
    for (uint32_t g = model->gaps_count; g-- > 0;)
        for (uint32_t i = 0; i < model->gaps[g].later_count; i++)
            model->waits[--begin[model->others[model->gaps[g].later + i] + 1]] = g;
    for (uint32_t p = 0; p < model->count; p++) begin[p] = begin[p + 1];
    begin[model->count] = 0;
    for (uint32_t g = 0; g < model->gaps_count; g++)
        begin[model->count] += model->gaps[g].later_count;
}

static enum tarn_status find_gaps(struct tarn_offload_model *model, uint32_t users_most)
{
    struct tarn_region *region = model->region;
    struct tarn_region_mark mark = tarn_region_mark(region);
    uint32_t *places = tarn_region_take(region, users_most, sizeof *places);
    uint32_t *last = tarn_region_take(region, model->graph->streams_count, sizeof *last);
    uint32_t *next = tarn_region_take(region, model->graph->streams_count, sizeof *next);
    if (!places || !last || !next) return TARN_SYSTEM;
    for (uint32_t a = 0; a < model->graph->storages_count; a++)
        if (tarn_offload_may_move(model, a)) add_gaps(model, a, places, last, next);
    qsort(model->gaps, model->gaps_count, sizeof *model->gaps, compare_left);
    struct right *rights = tarn_region_take(region, model->gaps_count, sizeof *rights);
    if (!rights) return TARN_SYSTEM;
    for (uint32_t g = 0; g < model->gaps_count; g++)
        rights[g] = (struct right){model->gaps[g].right, g};
    qsort(rights, model->gaps_count, sizeof *rights, compare_right);
    for (uint32_t g = 0; g < model->gaps_count; g++) model->by_right[g] = rights[g].gap;
    list_waits(model);
    tarn_region_release(region, mark);
    return TARN_OK;
}

/* ---- Bytes of each slot ---- */

static void fill_base(struct tarn_offload_model *model)
{
    const struct tarn_graph *graph = model->graph;
    for (uint32_t a = 0; a < graph->planned_count; a++) {
        const struct tarn_storage *storage = &graph->storages[a];
        const uint32_t *users = tarn_storage_users(graph, storage);
        uint32_t first = place_of(model, storage->producer), last = first;
        for (uint32_t k = 0; k < storage->users_count; k++) {
            uint32_t place = place_of(model, users[k]);
            if (place > last) last = place;
        }
        int64_t size = (int64_t)model->reserved[a];
        model->base[2 * (size_t)first] += size;
        model->base[storage->pinned ? 2 * (size_t)model->count : 2 * (size_t)last + 1] -= size;
    }
    for (uint32_t a = graph->planned_count; a < graph->storages_count && model->count > 0; a++)
        if (tarn_offload_may_move(model, a)) model->base[0] += (int64_t)size_of(model, a);
    for (size_t q = 1; q < 2 * (size_t)model->count; q++) model->base[q] += model->base[q - 1];
    for (size_t q = 0; q < 2 * (size_t)model->count; q++)
        if ((uint64_t)model->base[q] > model->peak0) model->peak0 = (uint64_t)model->base[q];
}

/* ---- All of it ---- */

enum tarn_status tarn_offload_model_init(struct tarn_offload_model *model,
                                         struct tarn_region *region, const struct tarn_graph *graph,
                                         const struct tarn_offload_terms *terms,
                                         struct tarn_error *error)
{
    *model = (struct tarn_offload_model){
        .graph = graph, .terms = *terms, .region = region, .count = graph->ops_count};
    assert(terms->out_bytes_per_second > 0 && terms->into_bytes_per_second > 0);
    enum tarn_status status =
        tarn_reserved_sizes(&model->reserved, region, graph, terms->alignment, error);
    if (status != TARN_OK) return status;
    uint32_t gaps_max = 0, users_most = 0, others = graph->streams_count - 1;
    size_t others_max = 0;
    for (uint32_t a = 0; a < graph->storages_count; a++) {
        uint32_t users = graph->storages[a].users_count;
        if (tarn_offload_may_move(model, a)) {
            gaps_max += users + 1;
            others_max += (size_t)(users + 1) * (users < others ? users : others);
        }
        if (users > users_most) users_most = users;
    }
    if (!take_room(model, gaps_max, others_max)) return tarn_error_no_memory(error);
    for (uint32_t p = 0; p < model->count; p++) {
        const struct tarn_graph_op *op = &graph->ops[graph->order[p]];
        model->stream[p] = op->stream;
        model->cost[p] = op->view ? 0 : op->cost;
    }
    fill_base(model);
    if (find_main(model) != TARN_OK ||
        tarn_offload_clock(model, NULL, model->start0, model->end0, &model->time0_ns) != TARN_OK ||
        find_gaps(model, users_most) != TARN_OK)
        return tarn_error_no_memory(error);
    return TARN_OK;
}

void tarn_offload_slow(struct tarn_offload_model *model, uint64_t percent)
{
    const struct tarn_offload_terms *terms = &model->terms;
    for (uint32_t g = 0; g < model->gaps_count; g++) {
        struct tarn_offload_gap *gap = &model->gaps[g];
        uint64_t size = model->graph->storages[gap->storage].size;
        gap->out_ns = copy_ns(size, terms->out_bytes_per_second, terms->latency_ns) * percent / 100;
        gap->into_ns =
            copy_ns(size, terms->into_bytes_per_second, terms->latency_ns) * percent / 100;
    }
}
