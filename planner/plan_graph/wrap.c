/* Where an iteration runs into the next one. With moves, copies may still read storages when all
 * other ops have ended. The first ops of the next iteration wait for those whose bytes they take.
 * So such storages change their places, in the same arena, to bytes that the next iteration takes
 * late.
 *
 *     compute  ██████████████████│██████████████████│
 *     copies          ═══ ════ ══A══                │      A is read until after the end:
 *                                │B██               │      B waits for it, if it has bytes of A
 *
 * If each iteration begins `period` after the one before, and runs as the first one did, then a
 * storage A that is used until `end` may share bytes with any storage that is produced at `begin`
 * or later, if end - begin <= period. The smallest such period is what is lowered here; it is no
 * less than the longest stream takes. First late storages change places, and those that have taken
 * their bytes; if that does not do, all are placed anew, which mostly needs some bytes to spare.
 * Cost: late storages times all storages, and a limit of work, which is counted. */
#include <stdlib.h>
#include <string.h>

#include "plan_graph.h"
#include "streams/order/reuse.h"
#include "streams/order/simulator.h"
#include "tarn/simulate.h"

/* STEPS: periods that are tried. ROUNDS: of single changes for each period. TRIES: changes of a
 * round at most. VISITS: work that is charged for each storage that a look for a place passes. */
enum { STEPS = 4, ROUNDS = 3, TRIES = 100, VISITS = 8 };
#define WORK_MAX UINT64_C(250000000) /* for one of them: visits of some nanoseconds */

struct extent {
    uint64_t begin, end;
};

/* A storage with what it is sorted by. */
struct turn {
    int64_t key;
    uint32_t storage;
};

struct wrap {
    struct tarn_plan *plan;
    const struct tarn_graph *graph;
    struct tarn_region region;
    struct tarn_reuse reuse;
    uint32_t count;        /* planned storages: the length of every array */
    int64_t *begin, *end;  /* of the producer; of the last user */
    uint64_t *from, *size; /* bytes, offsets counted over all spaces */
    bool *is_fixed;
    struct extent *taken; /* room, as is the next one */
    struct turn *turns;
    bool *is_placed;
    uint64_t *best;        /* `from` of the best period */
    int64_t period;        /* that these places need */
    int64_t least, target; /* no period is below the one; the other is looked for */
    uint64_t work, work_max;
};

/* ---- What is given ---- */

static bool has_moves(const struct tarn_graph *graph)
{
    for (uint32_t v = 0; v < graph->ops_count; v++)
        if (graph->ops[v].move) return true;
    return false;
}

static bool may_change(const struct tarn_graph *graph, uint32_t a)
{
    const struct tarn_storage *storage = &graph->storages[a];
    return storage->group == TARN_NONE && storage->size > 0 &&
           (storage->tensor == TARN_NONE ||
            graph->tensors[storage->tensor].offset_rule == TARN_OFFSET_FREE);
}

static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

/* Of the users of a storage: the first start and the last end. Waits between streams take time. */
struct use {
    int64_t begin, end;
    bool is_of_one_stream;
};

static struct use use_of(const struct wrap *wrap, const struct tarn_timeline *timeline, uint32_t a)
{
    const struct tarn_graph *graph = wrap->graph;
    const struct tarn_storage *storage = &graph->storages[a];
    const uint32_t *users = tarn_storage_users(graph, storage);
    struct use use = {.begin = INT64_MAX, .end = 0, .is_of_one_stream = true};
    for (uint32_t k = 0; k < storage->users_count; k++) {
        int64_t begin = (int64_t)timeline->begin_ns[users[k]];
        if (begin < use.begin) use.begin = begin;
        use.end = larger(use.end, (int64_t)timeline->end_ns[users[k]]);
        use.is_of_one_stream &= graph->ops[users[k]].stream == graph->ops[users[0]].stream;
    }
    return use;
}

/* Of the ops that write each persistent storage: the first start and the last end. NULL: no memory.
 */
static struct extent *find_writes(struct wrap *wrap, const struct tarn_timeline *timeline)
{
    const struct tarn_graph *graph = wrap->graph;
    uint32_t planned = graph->planned_count;
    struct extent *writes =
        tarn_region_take(&wrap->region, graph->storages_count - planned, sizeof *writes);
    for (uint32_t v = 0; writes && v < graph->ops_count; v++) {
        const struct tarn_graph_op *op = &graph->ops[v];
        for (uint32_t i = 0; i < op->outputs_count && !op->view; i++) {
            uint32_t a = graph->tensors[tarn_outputs(op)[i]].storage;
            if (a < planned || a >= graph->storages_count) continue;
            struct extent *write = &writes[a - planned];
            if (write->end == 0 || timeline->begin_ns[v] < write->begin)
                write->begin = timeline->begin_ns[v];
            if (timeline->end_ns[v] >= write->end) write->end = timeline->end_ns[v] + 1;
        }
    }
    return writes;
}

/* The longest that a stream takes, and what one storage makes the next iteration wait for: ops that
 * write it anew, for all that use it; and ops that use it, for those that write it. False: no
 * memory. */
static bool find_least(struct wrap *wrap, const struct tarn_timeline *timeline)
{
    const struct tarn_graph *graph = wrap->graph;
    for (uint32_t s = 0; s < graph->streams_count; s++) {
        const struct tarn_graph_stream *stream = &graph->streams[s];
        int64_t begin = INT64_MAX, end = 0;
        for (uint32_t i = 0; i < stream->ops_count; i++) {
            uint32_t v = stream->ops[i];
            if (graph->ops[v].view) continue;
            if ((int64_t)timeline->begin_ns[v] < begin) begin = (int64_t)timeline->begin_ns[v];
            end = larger(end, (int64_t)timeline->end_ns[v]);
        }
        if (end > 0) wrap->least = larger(wrap->least, end - begin);
    }
    const struct extent *writes = find_writes(wrap, timeline);
    for (uint32_t a = 0; writes && a < graph->storages_count; a++) {
        struct use use = use_of(wrap, timeline, a);
        const struct extent *write = a < wrap->count ? NULL : &writes[a - wrap->count];
        if (use.is_of_one_stream || graph->storages[a].size == 0 || (write && write->end == 0))
            continue; /* no op waits */
        int64_t first = write ? (int64_t)write->begin : wrap->begin[a];
        wrap->least = larger(wrap->least, use.end - first + TARN_WAIT_NS);
        if (write)
            wrap->least = larger(wrap->least, (int64_t)write->end - 1 - use.begin + TARN_WAIT_NS);
    }
    return writes != NULL;
}

static uint64_t footprint_of(const struct wrap *wrap, uint32_t a)
{
    const struct tarn_plan *plan = wrap->plan;
    return plan->spaces ? plan->spaces[wrap->graph->storages[a].space].footprint : plan->footprint;
}

/* Does the arena end with it? */
static bool is_last(const struct wrap *wrap, uint32_t a)
{
    uint32_t space = wrap->graph->storages[a].space;
    uint64_t first = tarn_plan_space_begin(wrap->plan, space, false);
    return wrap->from[a] + wrap->size[a] == first + footprint_of(wrap, a);
}

static enum tarn_status look(struct wrap *wrap)
{
    struct tarn_region *region = &wrap->region;
    const struct tarn_graph *graph = wrap->graph;
    struct tarn_region brief = {.chunks = NULL};
    struct tarn_clocks clocks;
    struct tarn_timeline timeline;
    uint32_t count = wrap->count = graph->planned_count;
    enum tarn_status status = tarn_clocks_init(&clocks, &brief, graph);
    if (status == TARN_OK) status = tarn_reuse_init(&wrap->reuse, region, &clocks, graph);
    tarn_region_finish(&brief);
    wrap->begin = tarn_region_take(region, count, sizeof *wrap->begin);
    wrap->end = tarn_region_take(region, count, sizeof *wrap->end);
    wrap->from = tarn_region_take(region, count, sizeof *wrap->from);
    wrap->size = tarn_region_take(region, count, sizeof *wrap->size);
    wrap->is_fixed = tarn_region_take(region, count, sizeof *wrap->is_fixed);
    wrap->taken = tarn_region_take(region, count, sizeof *wrap->taken);
    wrap->turns = tarn_region_take(region, count, sizeof *wrap->turns);
    wrap->is_placed = tarn_region_take(region, count, sizeof *wrap->is_placed);
    wrap->best = tarn_region_take(region, count, sizeof *wrap->best);
    if (status != TARN_OK || region->is_exhausted) return TARN_SYSTEM;
    if (tarn_timeline_init(&timeline, region, graph, wrap->plan->waits, wrap->plan->waits_count,
                           TARN_WAIT_NS) != TARN_OK)
        return TARN_SYSTEM;
    for (uint32_t a = 0; a < count; a++) {
        struct use use = use_of(wrap, &timeline, a);
        wrap->begin[a] = (int64_t)timeline.begin_ns[graph->storages[a].producer];
        wrap->end[a] = use.end;
        wrap->from[a] = tarn_plan_place(wrap->plan, a)->offset;
        wrap->size[a] = tarn_storage_reserved(graph, a, wrap->plan->alignment);
        wrap->is_placed[a] = true;
        wrap->is_fixed[a] = !may_change(graph, a) || is_last(wrap, a);
    }
    return find_least(wrap, &timeline) ? TARN_OK : TARN_SYSTEM;
}

/* ---- Periods ---- */

/* May b, in the next iteration, have bytes of a only if the period is above the target? */
static bool is_late(const struct wrap *wrap, uint32_t a, uint32_t b)
{
    return wrap->end[a] - wrap->begin[b] + TARN_WAIT_NS > wrap->target;
}

static bool is_ever_late(const struct wrap *wrap, uint32_t a)
{
    return wrap->size[a] > 0 && wrap->end[a] + TARN_WAIT_NS > wrap->target;
}

static bool meets(const struct wrap *wrap, uint32_t a, uint32_t b)
{
    return wrap->size[a] > 0 && wrap->size[b] > 0 &&
           wrap->from[a] < wrap->from[b] + wrap->size[b] &&
           wrap->from[b] < wrap->from[a] + wrap->size[a];
}

/* Does a have bytes that the next iteration takes too early? *period: the largest that is needed so
 * far. */
static bool delays(struct wrap *wrap, uint32_t a, int64_t *period)
{
    bool found = false;
    if (!is_ever_late(wrap, a)) return false;
    wrap->work += wrap->count;
    for (uint32_t b = 0; b < wrap->count; b++) {
        if (b == a || !is_late(wrap, a, b) || !meets(wrap, a, b)) continue;
        found = true;
        if (period) *period = larger(*period, wrap->end[a] - wrap->begin[b] + TARN_WAIT_NS);
    }
    return found;
}

static int64_t period_of(struct wrap *wrap)
{
    int64_t period = wrap->least, target = wrap->target;
    wrap->target = wrap->least;
    for (uint32_t a = 0; a < wrap->count; a++) delays(wrap, a, &period);
    wrap->target = target;
    return period;
}

/* ---- Other places ---- */

static int compare_extents(const void *left, const void *right)
{
    const struct extent *a = left, *b = right;
    return a->begin < b->begin ? -1 : a->begin > b->begin;
}

static uint64_t alignment_of(const struct wrap *wrap, uint32_t a)
{
    const struct tarn_storage *storage = &wrap->graph->storages[a];
    uint64_t alignment = tarn_storage_alignment(wrap->graph, a, wrap->plan->alignment);
    uint64_t own =
        storage->tensor == TARN_NONE ? 0 : wrap->graph->tensors[storage->tensor].alignment;
    return own > alignment ? own : alignment;
}

/* Puts a at the highest free bytes of its space; `low`: at the lowest ones. Bytes are free if no
 * storage has them that is alive together with a, or that would wait for a, or a for it, from one
 * iteration to the next. Without such bytes a stays. */
static bool change_place(struct wrap *wrap, uint32_t a, bool low)
{
    const struct tarn_storage *storage = &wrap->graph->storages[a];
    uint64_t first = tarn_plan_space_begin(wrap->plan, storage->space, false);
    uint64_t ceiling = footprint_of(wrap, a), alignment = alignment_of(wrap, a);
    uint64_t size = wrap->size[a];
    uint32_t count = 0;
    wrap->work += VISITS * (uint64_t)wrap->count;
    for (uint32_t b = 0; b < wrap->count; b++) {
        bool is_free = b == a || !wrap->is_placed[b] ||
                       wrap->graph->storages[b].space != storage->space ||
                       (tarn_reuse_is_safe(&wrap->reuse, a, b) && !is_late(wrap, a, b) &&
                        !is_late(wrap, b, a));
        if (is_free || wrap->size[b] == 0) continue;
        wrap->taken[count++] =
            (struct extent){wrap->from[b] - first, wrap->from[b] - first + wrap->size[b]};
    }
    qsort(wrap->taken, count, sizeof *wrap->taken, compare_extents);
    uint64_t best = UINT64_MAX, end = 0; /* of what is taken from the left */
    for (uint32_t i = 0; i <= count; i++) {
        uint64_t begin = i < count ? wrap->taken[i].begin : ceiling;
        if (begin >= size && begin > end) {
            uint64_t lowest = (end + alignment - 1) / alignment * alignment;
            uint64_t highest = (begin - size) / alignment * alignment;
            if (lowest <= highest && (!low || best == UINT64_MAX)) best = low ? lowest : highest;
        }
        if (i < count && wrap->taken[i].end > end) end = wrap->taken[i].end;
    }
    if (best != UINT64_MAX) wrap->from[a] = first + best;
    return best != UINT64_MAX;
}

static int compare_turns(const void *left, const void *right)
{
    const struct turn *a = left, *b = right;
    if (a->key != b->key) return a->key < b->key ? -1 : 1;
    return a->storage < b->storage ? -1 : a->storage > b->storage;
}

static bool is_over(const struct wrap *wrap) { return wrap->work >= wrap->work_max; }

/* Keeps the places if they need a smaller period; else takes back the best ones. */
static bool keep(struct wrap *wrap)
{
    int64_t now = period_of(wrap);
    bool is_better = now < wrap->period;
    if (is_better) wrap->period = now;
    memcpy(is_better ? wrap->best : wrap->from, is_better ? wrap->from : wrap->best,
           wrap->count * sizeof *wrap->best);
    return is_better;
}

/* The late storages change their places, those that are used until last first; then those that take
 * their bytes. */
static void change_some(struct wrap *wrap)
{
    uint32_t count = 0;
    for (uint32_t a = 0; a < wrap->count; a++)
        if (is_ever_late(wrap, a)) wrap->turns[count++] = (struct turn){-wrap->end[a], a};
    qsort(wrap->turns, count, sizeof *wrap->turns, compare_turns);
    for (uint32_t i = 0; i < count && !is_over(wrap); i++) {
        uint32_t a = wrap->turns[i].storage;
        if (!wrap->is_fixed[a] && delays(wrap, a, NULL)) change_place(wrap, a, false);
    }
    for (uint32_t i = 0; i < count && !is_over(wrap); i++) {
        uint32_t a = wrap->turns[i].storage;
        if (!delays(wrap, a, NULL)) continue;
        for (uint32_t b = 0; b < wrap->count && !is_over(wrap); b++)
            if (b != a && !wrap->is_fixed[b] && is_late(wrap, a, b) && meets(wrap, a, b))
                change_place(wrap, b, true);
    }
}

/* Places the storages one after another, late ones as high as they can be, others as low. Returns
 * how many have found a place. */
static uint32_t place_in_turn(struct wrap *wrap, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) wrap->is_placed[wrap->turns[i].storage] = false;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t a = wrap->turns[i].storage;
        if (is_over(wrap) || !change_place(wrap, a, !is_ever_late(wrap, a))) return i;
        wrap->is_placed[a] = true;
    }
    return count;
}

/* Places all anew, at first in the order of their offsets. What finds no place has an earlier turn
 * the next time. */
static void change_all(struct wrap *wrap)
{
    uint32_t count = 0, placed = 0;
    for (uint32_t a = 0; a < wrap->count; a++)
        if (!wrap->is_fixed[a]) wrap->turns[count++] = (struct turn){(int64_t)wrap->from[a], a};
    qsort(wrap->turns, count, sizeof *wrap->turns, compare_turns);
    while (!is_over(wrap) && (placed = place_in_turn(wrap, count)) < count) {
        struct turn first = wrap->turns[placed];
        uint32_t to = placed / 2;
        memmove(&wrap->turns[to + 1], &wrap->turns[to], (placed - to) * sizeof first);
        wrap->turns[to] = first;
    }
    for (uint32_t a = 0; a < wrap->count; a++) wrap->is_placed[a] = true;
    if (placed < count) memcpy(wrap->from, wrap->best, wrap->count * sizeof *wrap->best);
}

static void settle(struct wrap *wrap)
{
    uint64_t tries = (uint64_t)TRIES * VISITS * wrap->count * wrap->count, late = 0;
    wrap->target = wrap->least;
    for (uint32_t a = 0; a < wrap->count; a++) late += is_ever_late(wrap, a);
    memcpy(wrap->best, wrap->from, wrap->count * sizeof *wrap->best);
    if (late * wrap->count > WORK_MAX / 16) return;
    int64_t first = wrap->period = period_of(wrap);
    for (int step = 0; step < STEPS && wrap->period > wrap->target; step++) {
        wrap->work_max = wrap->work + (tries < WORK_MAX ? tries : WORK_MAX);
        for (int round = 0; round < ROUNDS && wrap->period > wrap->target; round++) {
            change_some(wrap);
            if (!keep(wrap)) break;
        }
        if (wrap->period > wrap->target) {
            change_all(wrap);
            keep(wrap);
        }
        wrap->target = wrap->least + (first - wrap->least) * (step + 1) / STEPS;
    }
}

enum tarn_status tarn_plan_settle_boundary(struct tarn_plan *plan, uint64_t *period_ns)
{
    struct wrap wrap = {.plan = plan, .graph = plan->graph};
    *period_ns = 0;
    if (!has_moves(plan->graph) || plan->graph->conditionals_count > 0) return TARN_OK;
    enum tarn_status status = look(&wrap);
    if (status == TARN_OK) settle(&wrap);
    for (uint32_t a = 0; status == TARN_OK && a < wrap.count; a++)
        ((struct tarn_place *)tarn_plan_place(plan, a))->offset = wrap.best[a];
    *period_ns = (uint64_t)wrap.period;
    tarn_region_finish(&wrap.region);
    return status;
}
