/* Bounds the worst case of memory over legal timings, from below and from above.
 *
 * The set of started ops determines a state: only the predecessors of started ops need have ended,
 * and any other ended op could only release more. A storage that several streams may release last
 * makes the search hard: choosing states for it holds the independent sets of a graph (an op
 * without cost for every vertex, a storage that both ends touch for every edge). With one keeper
 * for each storage, a user that must not have ended, the worst case is the heaviest antichain of
 * another order, in which first[a] follows from the keeper alone. So, from a given state:
 *
 *     repeat: keepers = of each storage alive, a user that has not ended
 *             state = what the heaviest antichain of these keepers needs started
 *     until no more bytes are alive
 *
 * The previous state is an antichain of its own keepers, hence no step loses bytes. The search
 * starts from the bound's antichain, from a state that the caller gives, and from every stream as
 * the keeper of all storages that it uses. Cost: a few antichains for every stream; one if the
 * first state is as heavy as the bound, which is usual. */
#include "worst.h"

#include <assert.h>
#include <string.h>

#include "antichain.h"
#include "streams/base/region.h"

enum { ROUNDS_MAX = 16 };

struct search {
    struct tarn_region *region; /* of what one step needs */
    const struct tarn_clocks *clocks;
    const struct tarn_graph *graph;
    const uint64_t *reserved; /* by planned storage */
    struct tarn_reuse reuse;  /* of the keepers */
    uint32_t *begun;          /* the present state: stream -> started ops */
};

/* ---- A state ---- */

/* Has v ended, because a started op depends on it? */
static bool has_ended(const struct search *search, uint32_t v)
{
    for (uint32_t s = 0; s < search->graph->streams_count; s++)
        if (tarn_clocks_reach(search->clocks, search->graph, v, s) < search->begun[s]) return true;
    return false;
}

static bool has_begun(const struct search *search, uint32_t v)
{
    return search->graph->ops[v].position < search->begun[search->graph->ops[v].stream];
}

/* A user that keeps storage a alive, or TARN_NONE. */
static uint32_t keeper_of(const struct search *search, uint32_t a)
{
    const struct tarn_storage *storage = &search->graph->storages[a];
    if (!has_begun(search, storage->producer)) return TARN_NONE;
    for (uint32_t k = storage->users_count; k-- > 0;)
        if (!has_ended(search, tarn_storage_users(search->graph, storage)[k]))
            return tarn_storage_users(search->graph, storage)[k];
    return storage->pinned ? storage->producer : TARN_NONE;
}

static uint64_t alive(const struct search *search)
{
    uint64_t bytes = 0;
    for (uint32_t a = 0; a < search->reuse.count; a++)
        if (keeper_of(search, a) != TARN_NONE) bytes += search->reserved[a];
    return bytes;
}

/* Starts the producers of these thresholds' antichain, and all ops before them. */
static void start_antichain(struct search *search, const uint32_t *threshold,
                            const struct tarn_reuse *reuse)
{
    const struct tarn_graph *graph = search->graph;
    uint32_t *begun = search->begun;
    memset(begun, 0, graph->streams_count * sizeof *begun);
    for (uint32_t a = 0; a < reuse->count; a++) {
        if (!tarn_antichain_has(threshold, reuse, a)) continue;
        if (begun[reuse->stream[a]] <= reuse->position[a])
            begun[reuse->stream[a]] = reuse->position[a] + 1;
    }
    for (uint32_t i = graph->ops_count; i-- > 0;) {
        uint32_t v = graph->order[i];
        if (!has_begun(search, v)) continue;
        for (uint32_t k = graph->predecessors.begin[v]; k < graph->predecessors.begin[v + 1]; k++) {
            const struct tarn_graph_op *op = &graph->ops[graph->predecessors.ops[k]];
            if (begun[op->stream] <= op->position) begun[op->stream] = op->position + 1;
        }
    }
}

/* ---- One step ---- */

static void keep_by(struct search *search, uint32_t a, uint32_t keeper)
{
    const struct tarn_graph *graph = search->graph;
    for (uint32_t s = 0; s < graph->streams_count; s++) {
        uint32_t never = graph->streams[s].ops_count;
        search->reuse.first[(size_t)s * search->reuse.count + a] =
            graph->storages[a].pinned ? never : tarn_clocks_reach(search->clocks, graph, keeper, s);
    }
}

/* The last user in stream s, or else the last of all users. */
static uint32_t last_user(const struct search *search, uint32_t a, uint32_t s)
{
    const struct tarn_storage *storage = &search->graph->storages[a];
    for (uint32_t k = storage->users_count; k-- > 0;)
        if (search->graph->ops[tarn_storage_users(search->graph, storage)[k]].stream == s)
            return tarn_storage_users(search->graph, storage)[k];
    return tarn_storage_users(search->graph, storage)[storage->users_count - 1];
}

/* The keeper of a storage that is not alive is its last user. */
static void choose_keepers(struct search *search)
{
    for (uint32_t a = 0; a < search->reuse.count; a++) {
        uint32_t keeper = keeper_of(search, a);
        keep_by(search, a, keeper == TARN_NONE ? last_user(search, a, TARN_NONE) : keeper);
    }
}

/* Stream s is the keeper of every storage that it uses. */
static void choose_keepers_in(struct search *search, uint32_t s)
{
    for (uint32_t a = 0; a < search->reuse.count; a++) keep_by(search, a, last_user(search, a, s));
}

/* Moves to the heaviest state of these keepers. */
static enum tarn_status start_heaviest(struct search *search)
{
    struct tarn_antichain antichain;
    struct tarn_region_mark mark = tarn_region_mark(search->region);
    enum tarn_status status = tarn_antichain_init(&antichain, search->region, &search->reuse,
                                                  search->graph, search->reserved);
    if (status == TARN_OK) start_antichain(search, antichain.threshold, &search->reuse);
    tarn_region_release(search->region, mark);
    return status;
}

static void take_state(struct tarn_worst *worst, const struct search *search, uint64_t bytes)
{
    worst->reached = bytes;
    memcpy(worst->begun, search->begun, search->graph->streams_count * sizeof *worst->begun);
}

/* Improves the state in `begun`. */
static enum tarn_status improve(struct search *search, struct tarn_worst *worst)
{
    uint64_t bytes = alive(search), before = 0;
    for (uint32_t round = 0; bytes > before; round++) {
        if (bytes > worst->reached) take_state(worst, search, bytes);
        if (worst->reached == worst->bound || round == ROUNDS_MAX) break;
        choose_keepers(search);
        enum tarn_status status = start_heaviest(search);
        if (status != TARN_OK) return status;
        before = bytes;
        bytes = alive(search);
    }
    return TARN_OK;
}

/* ---- The search ---- */

static enum tarn_status search_init(struct search *search, struct tarn_region *region,
                                    const struct tarn_clocks *clocks,
                                    const struct tarn_graph *graph, const uint64_t *reserved)
{
    *search =
        (struct search){.region = region, .clocks = clocks, .graph = graph, .reserved = reserved};
    search->begun = tarn_region_take(region, graph->streams_count, sizeof *search->begun);
    if (!search->begun) return TARN_SYSTEM;
    return tarn_reuse_init(&search->reuse, region, clocks, graph);
}

static enum tarn_status improve_from_bound(struct search *search, struct tarn_worst *worst,
                                           const struct tarn_reuse *reuse)
{
    struct tarn_antichain antichain;
    enum tarn_status status =
        tarn_antichain_init(&antichain, search->region, reuse, search->graph, search->reserved);
    if (status != TARN_OK) return status;
    worst->bound = antichain.bound;
    start_antichain(search, antichain.threshold, reuse);
    return improve(search, worst);
}

static enum tarn_status improve_from_all(struct search *search, struct tarn_worst *worst,
                                         const struct tarn_reuse *reuse, const uint32_t *begun)
{
    enum tarn_status status = improve_from_bound(search, worst, reuse);
    if (status != TARN_OK || worst->reached == worst->bound) return status;
    memcpy(search->begun, begun, search->graph->streams_count * sizeof *begun);
    status = improve(search, worst);
    for (uint32_t s = 0; s < search->graph->streams_count; s++) {
        if (status != TARN_OK || worst->reached == worst->bound) break;
        choose_keepers_in(search, s);
        status = start_heaviest(search);
        if (status == TARN_OK) status = improve(search, worst);
    }
    return status;
}

enum tarn_status tarn_worst_init(struct tarn_worst *worst, struct tarn_region *region,
                                 const struct tarn_clocks *clocks, const struct tarn_reuse *reuse,
                                 const struct tarn_graph *graph, const uint64_t *reserved,
                                 const uint32_t *begun)
{
    struct search search;
    *worst = (struct tarn_worst){.reached = 0};
    worst->begun = tarn_region_take(region, graph->streams_count, sizeof *worst->begun);
    if (!worst->begun) return TARN_SYSTEM;
    struct tarn_region_mark mark = tarn_region_mark(region);
    enum tarn_status status = search_init(&search, region, clocks, graph, reserved);
    if (status == TARN_OK) status = improve_from_all(&search, worst, reuse, begun);
    tarn_region_release(region, mark);
    assert(status != TARN_OK || worst->reached <= worst->bound);
    return status;
}
