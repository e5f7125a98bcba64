/* Orders nodes greedily by two rules. (1) A ready segment, a short run of nodes that leaves no more
 * bytes alive than before and never exceeds the limit before its end, is run at once. This is
 * always safe, because the bytes alive are submodular over sets of nodes closed under predecessors:
 * any completion that stays under the limit stays under it with the segment run first. (2) If there
 * is no such segment, the guide's first ready node that fits under the limit is run; if none fits,
 * the node that exceeds the limit least.
 *
 * A segment grows from a ready node: run it, then, of the nodes that have become ready, the one
 * that frees most, until no more bytes are alive than before. A node is looked at again after a
 * change that concerns it: it is now the last that keeps bytes alive, or the last that another node
 * waits for. Cost: O(n log n) node runs, times the length of segments that are tried in vain. */
#include "greedy.h"

#include <assert.h>
#include <string.h>

enum { SEGMENT_MAX = 24, SKIPS_MAX = 64 };

enum tarn_status tarn_reorder_greedy_init(struct tarn_reorder_greedy *greedy,
                                          struct tarn_region *region,
                                          const struct tarn_reorder_model *model)
{
    size_t count = model->nodes_count;
    *greedy = (struct tarn_reorder_greedy){
        .guide = tarn_region_take(region, count, sizeof *greedy->guide),
        .waiting = tarn_region_take(region, count, sizeof *greedy->waiting),
        .hold = tarn_region_take(region, count, sizeof *greedy->hold),
        .need = tarn_region_take(region, count, sizeof *greedy->need),
        .has_run = tarn_region_take(region, count, sizeof *greedy->has_run),
        .is_ready = tarn_region_take(region, count, sizeof *greedy->is_ready),
        .is_waiting = tarn_region_take(region, count, sizeof *greedy->is_waiting),
        .is_held = tarn_region_take(region, count, sizeof *greedy->is_held),
        .run = tarn_region_take(region, count, sizeof *greedy->run),
    };
    greedy->ready = (struct tarn_heap){.key = greedy->guide,
                                       .items = tarn_region_take(region, count, sizeof(uint32_t))};
    return tarn_reorder_state_init(&greedy->state, region, model);
}

/* ---- Ready nodes, by the guide ---- */

static void push(struct tarn_reorder_greedy *greedy, uint32_t v)
{
    greedy->is_ready[v] = true;
    tarn_heap_push(&greedy->ready, v);
}

/* ---- Segments ---- */

static void await(struct tarn_reorder_greedy *greedy, uint32_t v)
{
    if (greedy->is_waiting[v] || greedy->has_run[v]) return;
    greedy->is_waiting[v] = true;
    greedy->waiting[greedy->waiting_count++] = v;
}

static void hold(struct tarn_reorder_greedy *greedy, uint32_t v, uint64_t need)
{
    if (greedy->is_held[v]) return;
    greedy->is_held[v] = true;
    greedy->need[v] = need;
    if (need < greedy->need_least) greedy->need_least = need;
    greedy->hold[greedy->hold_count++] = v;
}

static void run(struct tarn_reorder_greedy *greedy, uint32_t v)
{
    tarn_reorder_run(&greedy->state, v);
    greedy->has_run[v] = true;
    greedy->run[greedy->run_count++] = v;
}

static void undo(struct tarn_reorder_greedy *greedy)
{
    uint32_t v = greedy->run[--greedy->run_count];
    tarn_reorder_undo(&greedy->state, v);
    greedy->has_run[v] = false;
}

/* The bytes that running v now would add to the bytes alive; below 0: it frees bytes. */
static int64_t net(const struct tarn_reorder_greedy *greedy, uint32_t v)
{
    return (int64_t)(greedy->state.model->made[v] - greedy->state.freed[v]);
}

/* Of the nodes made ready by the nodes run since `begin`: the one that leaves the fewest bytes
 * alive. */
static uint32_t find_next(const struct tarn_reorder_greedy *greedy, uint32_t begin)
{
    const struct tarn_arcs *arcs = &greedy->state.model->successors;
    uint32_t best = TARN_NONE;
    for (uint32_t k = begin; k < greedy->run_count; k++) {
        uint32_t u = greedy->run[k];
        for (uint32_t i = arcs->begin[u]; i < arcs->begin[u + 1]; i++) {
            uint32_t w = arcs->ops[i];
            if (greedy->has_run[w] || greedy->state.pending[w] > 0) continue;
            if (best == TARN_NONE || net(greedy, w) < net(greedy, best)) best = w;
        }
    }
    return best;
}

/* Runs the segment that begins with ready node v; if there is none, undoes it and returns false. */
static bool grow(struct tarn_reorder_greedy *greedy, uint32_t v, uint64_t limit)
{
    uint32_t begin = greedy->run_count, next = v;
    uint64_t alive = greedy->state.alive;
    while (next != TARN_NONE && greedy->run_count - begin < SEGMENT_MAX) {
        uint64_t step = greedy->state.alive + greedy->state.model->made[next];
        if (step > limit) {
            hold(greedy, v, step - alive);
            break;
        }
        run(greedy, next);
        if (greedy->state.alive <= alive) return true;
        next = find_next(greedy, begin);
    }
    while (greedy->run_count > begin) undo(greedy);
    return false;
}

/* ---- Changes after a node has run ---- */

/* For each storage of node v that has one user left now: that user will free the storage, so it
 * frees more than it did before. */
static void await_last_users(struct tarn_reorder_greedy *greedy, uint32_t v)
{
    const struct tarn_arcs *touched = &greedy->state.model->touched;
    for (uint32_t i = touched->begin[v]; i < touched->begin[v + 1]; i++) {
        uint32_t a = touched->ops[i];
        if (greedy->state.left[a] != 1) continue;
        uint32_t last = greedy->state.last[a];
        if (greedy->state.pending[last] == 0) await(greedy, last);
    }
}

/* w waits for one more node only: with that one it becomes ready. */
static void await_last_predecessor(struct tarn_reorder_greedy *greedy, uint32_t w)
{
    const struct tarn_arcs *arcs = &greedy->state.model->predecessors;
    for (uint32_t i = arcs->begin[w]; i < arcs->begin[w + 1]; i++) {
        uint32_t u = arcs->ops[i];
        if (greedy->has_run[u]) continue;
        if (greedy->state.pending[u] == 0) await(greedy, u);
        return;
    }
}

static void settle(struct tarn_reorder_greedy *greedy, uint32_t v)
{
    const struct tarn_arcs *arcs = &greedy->state.model->successors;
    await_last_users(greedy, v);
    for (uint32_t i = arcs->begin[v]; i < arcs->begin[v + 1]; i++) {
        uint32_t w = arcs->ops[i];
        if (greedy->state.pending[w] == 1) await_last_predecessor(greedy, w);
        if (greedy->state.pending[w] > 0 || greedy->is_ready[w]) continue;
        push(greedy, w);
        await(greedy, w);
    }
}

static void release_held(struct tarn_reorder_greedy *greedy, uint64_t limit)
{
    uint64_t alive = greedy->state.alive;
    if (greedy->hold_count == 0 || alive > limit || greedy->need_least > limit - alive) return;
    uint32_t kept = 0;
    greedy->need_least = UINT64_MAX;
    for (uint32_t k = 0; k < greedy->hold_count; k++) {
        uint32_t v = greedy->hold[k];
        if (greedy->has_run[v] || greedy->need[v] <= limit - alive) {
            greedy->is_held[v] = false;
            await(greedy, v);
            continue;
        }
        if (greedy->need[v] < greedy->need_least) greedy->need_least = greedy->need[v];
        greedy->hold[kept++] = v;
    }
    greedy->hold_count = kept;
}

/* ---- The order ---- */

static void run_segments(struct tarn_reorder_greedy *greedy, uint64_t limit)
{
    for (;;) {
        release_held(greedy, limit);
        if (greedy->waiting_count == 0) return;
        uint32_t v = greedy->waiting[--greedy->waiting_count], begin = greedy->run_count;
        greedy->is_waiting[v] = false;
        if (greedy->has_run[v] || !grow(greedy, v, limit)) continue;
        for (uint32_t k = begin; k < greedy->run_count; k++) settle(greedy, greedy->run[k]);
    }
}

/* The first that fits; of the first few, the one that exceeds the limit least. */
static uint32_t take_by_guide(struct tarn_reorder_greedy *greedy, uint64_t limit)
{
    uint32_t skipped[SKIPS_MAX], count = 0, best = TARN_NONE;
    while (greedy->ready.count > 0 && count < SKIPS_MAX) {
        uint32_t v = tarn_heap_pop(&greedy->ready);
        if (greedy->has_run[v]) continue;
        skipped[count++] = v;
        if (best == TARN_NONE || greedy->state.model->made[v] < greedy->state.model->made[best])
            best = v;
        if (greedy->state.alive + greedy->state.model->made[v] > limit) continue;
        best = v;
        break;
    }
    while (count > 0) {
        if (skipped[--count] != best) push(greedy, skipped[count]);
    }
    return best;
}

static void begin(struct tarn_reorder_greedy *greedy, const uint32_t *guide)
{
    const struct tarn_reorder_model *model = greedy->state.model;
    tarn_reorder_state_reset(&greedy->state);
    memset(greedy->has_run, 0, model->nodes_count * sizeof *greedy->has_run);
    memset(greedy->is_ready, 0, model->nodes_count * sizeof *greedy->is_ready);
    memset(greedy->is_waiting, 0, model->nodes_count * sizeof *greedy->is_waiting);
    memset(greedy->is_held, 0, model->nodes_count * sizeof *greedy->is_held);
    greedy->ready.count = greedy->waiting_count = greedy->hold_count = greedy->run_count = 0;
    greedy->need_least = UINT64_MAX;
    for (uint32_t i = 0; i < model->nodes_count; i++) greedy->guide[guide[i]] = i;
    for (uint32_t v = 0; v < model->nodes_count; v++) {
        if (greedy->state.pending[v] > 0) continue;
        push(greedy, v);
        await(greedy, v);
    }
}

uint64_t tarn_reorder_greedy_run(struct tarn_reorder_greedy *greedy, const uint32_t *guide,
                                 uint64_t limit)
{
    begin(greedy, guide);
    for (;;) {
        run_segments(greedy, limit);
        uint32_t v = take_by_guide(greedy, limit);
        if (v == TARN_NONE) break;
        run(greedy, v);
        settle(greedy, v);
    }
    assert(greedy->run_count == greedy->state.model->nodes_count);
    return tarn_reorder_peak(&greedy->state, greedy->run, NULL);
}
