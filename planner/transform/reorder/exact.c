/* Finds an optimal order by depth-first search over the sets of nodes that have run, with a limit
 * that no step may exceed. A set from which the remaining nodes cannot be run under the limit is
 * remembered, and stays hopeless when the limit falls. The bytes alive depend on the set alone, not
 * on the order in which its nodes ran. A ready node is taken without looking at other nodes if it
 * leaves no more bytes alive than before and its own step is under the limit. This is safe because
 * the bytes alive are submodular over sets closed under predecessors: an order of the rest that is
 * under the limit stays so with that node first. Every success lowers the limit below its peak; the
 * first failure proves the last success best. Cost: one visit a set, at most visits_max; a visit
 * looks at all nodes. */
#include "exact.h"

#include <assert.h>
#include <string.h>

enum outcome { DONE, FAILED, TIRED };

enum tarn_status tarn_reorder_exact_init(struct tarn_reorder_exact *exact,
                                         struct tarn_region *region,
                                         struct tarn_reorder_state *state, uint32_t visits_max)
{
    uint32_t capacity = 64;
    while (capacity < 2 * visits_max) capacity *= 2;
    *exact = (struct tarn_reorder_exact){
        .state = state, .visits_max = visits_max, .failed_capacity = capacity};
    exact->failed = tarn_region_take(region, capacity, sizeof *exact->failed);
    return exact->failed ? TARN_OK : TARN_SYSTEM;
}

/* ---- Sets that failed ---- */

static uint64_t *slot_of(const struct tarn_reorder_exact *exact, uint64_t set)
{
    uint64_t hash = set * UINT64_C(0x9e3779b97f4a7c15);
    uint32_t i = (uint32_t)(hash >> 32) & (exact->failed_capacity - 1);
    while (exact->failed[i] != 0 && exact->failed[i] != set)
        i = (i + 1) & (exact->failed_capacity - 1);
    return &exact->failed[i];
}

/* ---- The search ---- */

static void run(struct tarn_reorder_exact *exact, uint32_t k)
{
    uint64_t step = tarn_reorder_run(exact->state, exact->nodes[k]);
    if (step > exact->peak) exact->peak = step;
    exact->path[exact->path_count++] = k;
}

static void undo(struct tarn_reorder_exact *exact, uint64_t peak)
{
    tarn_reorder_undo(exact->state, exact->nodes[exact->path[--exact->path_count]]);
    exact->peak = peak;
}

/* Lists the nodes that may run next under the limit, the one that leaves the fewest bytes alive
 * first; only one node if running it is always safe. */
static uint32_t list_next(const struct tarn_reorder_exact *exact, uint64_t set, uint8_t *next)
{
    const struct tarn_reorder_state *state = exact->state;
    int64_t net[TARN_REORDER_EXACT_MAX];
    uint32_t count = 0;
    for (uint32_t k = 0; k < exact->count; k++) {
        uint32_t v = exact->nodes[k];
        uint64_t made = state->model->made[v];
        if (set >> k & 1 || state->pending[v] > 0 || state->alive + made > exact->limit) continue;
        int64_t own = (int64_t)(made - state->freed[v]);
        if (own <= 0) {
            next[0] = (uint8_t)k;
            return 1;
        }
        uint32_t i = count++;
        for (; i > 0 && net[i - 1] > own; i--) {
            net[i] = net[i - 1];
            next[i] = next[i - 1];
        }
        net[i] = own;
        next[i] = (uint8_t)k;
    }
    return count;
}

static enum outcome search(struct tarn_reorder_exact *exact, uint64_t set)
{
    uint8_t next[TARN_REORDER_EXACT_MAX];
    if (exact->path_count == exact->count) return DONE;
    if (set != 0 && *slot_of(exact, set) == set) return FAILED;
    if (exact->visits == exact->visits_max) return TIRED;
    exact->visits++;
    uint32_t count = list_next(exact, set, next);
    uint64_t peak = exact->peak;
    for (uint32_t i = 0; i < count; i++) {
        run(exact, next[i]);
        enum outcome outcome = search(exact, set | UINT64_C(1) << next[i]);
        if (outcome != FAILED) return outcome;
        undo(exact, peak);
    }
    if (set != 0) *slot_of(exact, set) = set;
    return FAILED;
}

enum tarn_reorder_verdict tarn_reorder_exact_run(struct tarn_reorder_exact *exact,
                                                 const uint32_t *nodes, uint32_t count,
                                                 uint64_t below, uint64_t enough, uint32_t *order,
                                                 uint64_t *peak)
{
    enum tarn_reorder_verdict verdict = TARN_REORDER_NONE;
    enum outcome outcome = DONE;
    assert(count <= TARN_REORDER_EXACT_MAX && exact->path_count == 0);
    exact->nodes = nodes;
    exact->count = count;
    exact->visits = 0;
    memset(exact->failed, 0, exact->failed_capacity * sizeof *exact->failed);
    while (below > enough && outcome == DONE) {
        exact->limit = below - 1;
        exact->peak = 0;
        outcome = search(exact, 0);
        if (outcome == DONE) {
            for (uint32_t k = 0; k < count; k++) order[k] = nodes[exact->path[k]];
            *peak = below = exact->peak;
            verdict = TARN_REORDER_BEST;
        }
        while (exact->path_count > 0) undo(exact, 0);
    }
    if (outcome != TIRED) return verdict;
    return verdict == TARN_REORDER_BEST ? TARN_REORDER_SOME : TARN_REORDER_UNKNOWN;
}
