/* Searches for ops apart, by what is in use for sure: storages that have been made when the ops run
 * and that an op which has not run still uses. Single ops are taken first, those of the streams'
 * ends and of the most bytes; ends of other streams are added while they are apart and add bytes;
 * the best sets get minimum cuts; then one op at a time is exchanged in the sets with the highest
 * cuts.
 *
 * Why the cut is a bound: let V be apart, and P the order of ops in some choice. V is an antichain
 * of P. Let X be V and all that comes before it in P. A storage that an op of X makes counts unless
 * an op of X comes after all its users. Those that count are an antichain of storages: if all users
 * of a came before b's producer, which is in X, a would not count. X holds what comes before V by
 * arcs, is closed against arcs, and holds nothing that comes after V by arcs or cannot come before
 * any member of V. The cut takes the fewest bytes over all such sets, and counts no storage whose
 * users are in X without V. Cost: a test of all storages for each set, a flow for each cut. */
#include "beside.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "before.h"
#include "flow.h"

enum {
    OPS_MAX = 400,     /* with the most bytes */
    OTHERS_MAX = 600,  /* of the other ops, evenly spread */
    SINGLES_MAX = 100, /* to which ends are added: the best of those ops */
    HEAVY_MAX = 200,   /* and the first of those with the most bytes */
    CUTS_MAX = 40,     /* sets that get cuts */
    EXCHANGED_MAX = 8, /* of them, those whose ops are exchanged */
    ROUNDS = 4,        /* of exchanges */
    OFFERS_MAX = 6,    /* ops for one place that get cuts */
};

/* Visits of storages and of words that the search may take; about half a second. */
#define VISITS_MAX UINT64_C(400000000)

struct set {
    uint32_t members[TARN_APART_MAX]; /* nodes */
    uint32_t count;
    uint64_t bytes; /* in use for sure, or of the cut */
};

struct search {
    struct tarn_region *region;
    struct tarn_before before;
    struct tarn_reorder_flow flow;
    /* Storages of at least one byte. */
    uint32_t storages_count;
    uint64_t *size;
    uint32_t *producer; /* node */
    bool *pinned;
    struct tarn_arcs users; /* nodes, the producer among them */
    uint64_t *own;          /* node -> bytes of the storages that it uses */
    uint32_t *list;         /* nodes that sets are made from, the most bytes first */
    uint32_t list_count;
    uint64_t *into, *out; /* nodes that have run for sure, that have not for sure */
    uint32_t *name;       /* node -> its node of the network */
    uint64_t visits;
    uint64_t goal;
    const struct tarn_steps *steps;
    struct set best; /* by its cut */
    struct tarn_order_certificate *certificate;
    enum tarn_status status;
};

static bool is_over(const struct search *search)
{
    return search->status != TARN_OK || search->best.bytes >= search->goal ||
           search->visits > VISITS_MAX || tarn_steps_is_over(search->steps);
}

/* ---- Sets ---- */

static bool is_apart(struct search *search, const struct set *set, uint32_t u)
{
    const uint64_t *may_u = tarn_before_may(&search->before, u);
    if (set->count == TARN_APART_MAX) return false;
    for (uint32_t k = 0; k < set->count; k++) {
        uint32_t v = set->members[k];
        const uint64_t *may_v = tarn_before_may(&search->before, v);
        if (!may_u || !may_v) {
            search->status = TARN_SYSTEM;
            return false;
        }
        if (u == v || tarn_set_has(may_u, v) || tarn_set_has(may_v, u)) return false;
    }
    return true;
}

static struct set with(const struct set *set, uint32_t u)
{
    struct set more = *set;
    more.members[more.count++] = u;
    return more;
}

static bool has_stream(const struct search *search, const struct set *set, uint32_t s)
{
    for (uint32_t k = 0; k < set->count; k++)
        if (search->before.stream[set->members[k]] == s) return true;
    return false;
}

/* What has run when the members run, and what has not. */
static bool find_sides(struct search *search, const struct set *set)
{
    struct tarn_before *before = &search->before;
    uint32_t words = before->words;
    tarn_set_clear(search->into, words);
    tarn_set_clear(search->out, words);
    for (uint32_t k = 0; k < set->count; k++) {
        const uint64_t *may = tarn_before_may(before, set->members[k]),
                       *ahead = tarn_before_ahead(before, set->members[k]);
        if (!may || !ahead) {
            search->status = TARN_SYSTEM;
            return false;
        }
        tarn_set_join(search->into, ahead, words);
        tarn_set_join(search->out, may, words);
    }
    for (uint32_t w = 0; w < words; w++) search->out[w] = before->nodes[w] & ~search->out[w];
    for (uint32_t k = 0; k < set->count; k++) {
        tarn_set_join(search->out, tarn_before_after(before, set->members[k]), words);
        tarn_set_add(search->out, set->members[k]);
    }
    search->visits += (uint64_t)words * (3 * set->count + 2);
    return true;
}

static bool is_member(const struct set *set, uint32_t v)
{
    for (uint32_t k = 0; k < set->count; k++)
        if (set->members[k] == v) return true;
    return false;
}

static bool is_kept(const struct search *search, uint32_t a)
{
    if (search->pinned[a]) return true;
    for (uint32_t i = search->users.begin[a]; i < search->users.begin[a + 1]; i++)
        if (tarn_set_has(search->out, search->users.ops[i])) return true;
    return false;
}

/* Bytes in use for sure while the members run. */
static uint64_t count_sure(struct search *search, const struct set *set)
{
    uint64_t bytes = 0;
    if (!find_sides(search, set)) return 0;
    for (uint32_t k = 0; k < set->count; k++) tarn_set_add(search->into, set->members[k]);
    for (uint32_t a = 0; a < search->storages_count; a++)
        if (tarn_set_has(search->into, search->producer[a]) && is_kept(search, a))
            bytes += search->size[a];
    search->visits += 2 * (uint64_t)search->storages_count;
    return bytes;
}

/* ---- Cuts ---- */

enum { SOURCE, SINK, OTHERS };

static bool is_free(const struct search *search, uint32_t v)
{
    return search->before.op_of[v] != TARN_NONE && !tarn_set_has(search->into, v) &&
           !tarn_set_has(search->out, v);
}

/* Returns the bytes that are in use in any case. */
static uint64_t add_storages(struct search *search, const struct set *set, uint32_t next)
{
    uint64_t always = 0;
    for (uint32_t a = 0; a < search->storages_count; a++) {
        uint32_t p = search->producer[a], name = next;
        bool is_made = tarn_set_has(search->into, p) || is_member(set, p), is_used = false;
        uint64_t size = search->size[a];
        if (!is_made && tarn_set_has(search->out, p)) continue;
        if (is_kept(search, a)) {
            if (is_made)
                always += size;
            else
                tarn_flow_add(&search->flow, search->name[p], SINK, size);
            continue;
        }
        for (uint32_t i = search->users.begin[a]; i < search->users.begin[a + 1]; i++) {
            uint32_t u = search->users.ops[i];
            if (u == p || !is_free(search, u)) continue;
            is_used = true;
            tarn_flow_add(&search->flow, name, search->name[u], TARN_FLOW_UNLIMITED);
        }
        if (!is_used) continue;
        tarn_flow_add(&search->flow, is_made ? SOURCE : search->name[p], name, size);
        next++;
    }
    search->flow.nodes_count = next;
    return always;
}

static void add_arcs(struct search *search, const struct tarn_arcs *predecessors)
{
    const struct tarn_before *before = &search->before;
    for (uint32_t v = 0; v < before->room; v++) {
        if (!is_free(search, v)) continue;
        uint32_t op = before->op_of[v];
        for (uint32_t i = predecessors->begin[op]; i < predecessors->begin[op + 1]; i++) {
            uint32_t u = before->node_of[predecessors->ops[i]];
            if (is_free(search, u))
                tarn_flow_add(&search->flow, search->name[v], search->name[u], TARN_FLOW_UNLIMITED);
            else if (tarn_set_has(search->out, u))
                tarn_flow_add(&search->flow, search->name[v], SINK, TARN_FLOW_UNLIMITED);
        }
    }
}

static void keep(struct search *search, const struct set *set)
{
    const struct tarn_before *before = &search->before;
    struct tarn_order_certificate *certificate = search->certificate;
    uint32_t ops = before->graph->ops_count;
    search->best = *set;
    certificate->bound = set->bytes;
    certificate->apart_count = set->count;
    for (uint32_t k = 0; k < set->count; k++) {
        uint32_t v = set->members[k];
        certificate->apart[k] =
            before->op_of[v] != TARN_NONE ? before->op_of[v] : ops + before->stream[v];
    }
    for (uint32_t op = 0; op < ops; op++) {
        uint32_t v = before->node_of[op];
        certificate->has_run[op] =
            tarn_set_has(search->into, v) || is_member(set, v) ||
            (is_free(search, v) && search->flow.level[search->name[v]] != TARN_NONE);
    }
}

/* The fewest bytes in use while the members run, by a minimum cut; the best set is kept. */
static uint64_t cut(struct search *search, struct set *set, const struct tarn_arcs *predecessors)
{
    const struct tarn_before *before = &search->before;
    uint32_t next = OTHERS;
    if (!find_sides(search, set)) return 0;
    for (uint32_t v = 0; v < before->room; v++)
        if (is_free(search, v)) search->name[v] = next++;
    search->status = tarn_flow_reset(&search->flow, next + search->storages_count);
    if (search->status != TARN_OK) return 0;
    set->bytes = add_storages(search, set, next);
    add_arcs(search, predecessors);
    search->status = search->flow.status;
    if (search->status != TARN_OK) return 0;
    set->bytes += tarn_flow_run(&search->flow, SOURCE, SINK);
    search->visits += 64 * (uint64_t)search->flow.arcs_count;
    if (set->bytes > search->best.bytes) keep(search, set);
    return set->bytes;
}

/* ---- The search ---- */

/* Ends of other streams, the one that adds most first. */
static struct set grow(struct search *search, uint32_t v)
{
    struct set set = {.members = {v}, .count = 1};
    set.bytes = count_sure(search, &set);
    for (bool more = true; more && !is_over(search);) {
        struct set best = set;
        for (uint32_t s = 0; s < search->before.graph->streams_count; s++) {
            uint32_t end = search->before.end[s];
            if (has_stream(search, &set, s) || !is_apart(search, &set, end)) continue;
            struct set other = with(&set, end);
            other.bytes = count_sure(search, &other);
            if (other.bytes > best.bytes) best = other;
        }
        more = best.count > set.count;
        set = best;
    }
    return set;
}

/* Puts a set into a list of the `room` best, the best first. */
static void offer(struct set *list, uint32_t *count, uint32_t room, const struct set *set)
{
    uint32_t i = *count < room ? (*count)++ : room;
    if (i == room && list[--i].bytes >= set->bytes) return;
    for (; i > 0 && list[i - 1].bytes < set->bytes; i--) list[i] = list[i - 1];
    list[i] = *set;
}

/* Exchanges the set's member of stream s, or adds one, where that gives a higher cut. */
static void exchange(struct search *search, struct set *set, uint32_t s,
                     const struct tarn_arcs *predecessors)
{
    const struct tarn_before *before = &search->before;
    struct set rest = {.count = 0}, offers[OFFERS_MAX];
    uint32_t offers_count = 0;
    for (uint32_t k = 0; k < set->count; k++)
        if (before->stream[set->members[k]] != s) rest.members[rest.count++] = set->members[k];
    for (uint32_t k = 0; k <= search->list_count && !is_over(search); k++) {
        uint32_t u = k < search->list_count ? search->list[k] : before->end[s];
        if (before->stream[u] != s || is_member(set, u) || !is_apart(search, &rest, u)) continue;
        struct set other = with(&rest, u);
        other.bytes = count_sure(search, &other);
        offer(offers, &offers_count, OFFERS_MAX, &other);
    }
    for (uint32_t k = 0; k < offers_count && !is_over(search); k++)
        if (cut(search, &offers[k], predecessors) > set->bytes) *set = offers[k];
}

static void improve(struct search *search, struct set set, const struct tarn_arcs *predecessors)
{
    for (uint32_t round = 0; round < ROUNDS; round++) {
        uint64_t before = set.bytes;
        for (uint32_t s = 0; s < search->before.graph->streams_count && !is_over(search); s++)
            exchange(search, &set, s, predecessors);
        if (set.bytes == before) break;
    }
}

static void run(struct search *search, const struct tarn_arcs *predecessors)
{
    struct set singles[SINGLES_MAX], pool[CUTS_MAX], best[EXCHANGED_MAX];
    uint32_t singles_count = 0, pool_count = 0, best_count = 0;
    for (uint32_t s = 0; s < search->before.graph->streams_count && !is_over(search); s++) {
        struct set set = grow(search, search->before.end[s]);
        offer(pool, &pool_count, CUTS_MAX, &set);
    }
    for (uint32_t k = 0; k < search->list_count && !is_over(search); k++) {
        struct set set = {.members = {search->list[k]}, .count = 1};
        set.bytes = count_sure(search, &set);
        offer(singles, &singles_count, SINGLES_MAX, &set);
    }
    for (uint32_t k = 0; k < singles_count && !is_over(search); k++) {
        struct set set = grow(search, singles[k].members[0]);
        offer(pool, &pool_count, CUTS_MAX, &set);
    }
    for (uint32_t k = 0; k < search->list_count && k < HEAVY_MAX && !is_over(search); k++) {
        bool is_single = false;
        for (uint32_t i = 0; i < singles_count; i++)
            is_single |= singles[i].members[0] == search->list[k];
        if (is_single) continue;
        struct set set = grow(search, search->list[k]);
        offer(pool, &pool_count, CUTS_MAX, &set);
    }
    for (uint32_t k = 0; k < pool_count && !is_over(search); k++) {
        cut(search, &pool[k], predecessors);
        offer(best, &best_count, EXCHANGED_MAX, &pool[k]);
    }
    for (uint32_t k = 0; k < best_count && !is_over(search); k++)
        improve(search, best[k], predecessors);
}

/* ---- Memory ---- */

static enum tarn_status take_storages(struct search *search, const uint64_t *reserved)
{
    const struct tarn_graph *graph = search->before.graph;
    struct tarn_region *region = search->region;
    size_t count = graph->planned_count, users = 0;
    for (uint32_t a = 0; a < count; a++) users += graph->storages[a].users_count;
    uint32_t *begin = tarn_region_take(region, count + 1, sizeof *begin);
    uint32_t *list = tarn_region_take(region, users, sizeof *list), next = 0;
    search->size = tarn_region_take(region, count, sizeof *search->size);
    search->producer = tarn_region_take(region, count, sizeof *search->producer);
    search->pinned = tarn_region_take(region, count, sizeof *search->pinned);
    search->own = tarn_region_take(region, search->before.room, sizeof *search->own);
    search->name = tarn_region_take(region, search->before.room, sizeof *search->name);
    search->list = tarn_region_take(region, OPS_MAX + OTHERS_MAX, sizeof *search->list);
    search->into = tarn_region_take(region, search->before.words, sizeof *search->into);
    search->out = tarn_region_take(region, search->before.words, sizeof *search->out);
    if (region->is_exhausted) return TARN_SYSTEM;
    for (uint32_t a = 0; a < count; a++) {
        const struct tarn_storage *storage = &graph->storages[a];
        uint32_t k = search->storages_count;
        if (reserved[a] == 0) continue;
        search->size[k] = reserved[a];
        search->producer[k] = search->before.node_of[storage->producer];
        search->pinned[k] = storage->pinned;
        for (uint32_t i = 0; i < storage->users_count; i++) {
            uint32_t v = search->before.node_of[tarn_storage_users(graph, storage)[i]];
            search->own[v] += reserved[a];
            list[next++] = v;
        }
        begin[++search->storages_count] = next;
    }
    search->users = (struct tarn_arcs){begin, list};
    return TARN_OK;
}

struct heavy {
    uint64_t bytes;
    uint32_t node;
};

static int compare_heavy(const void *a, const void *b)
{
    const struct heavy *x = a, *y = b;
    if (x->bytes != y->bytes) return x->bytes < y->bytes ? 1 : -1;
    return (x->node > y->node) - (x->node < y->node);
}

/* The ops with the most bytes, and some of the others. */
static enum tarn_status list_ops(struct search *search)
{
    const struct tarn_before *before = &search->before;
    uint32_t ops = before->graph->ops_count;
    struct heavy *heavy = tarn_region_take(search->region, ops, sizeof *heavy);
    if (!heavy) return TARN_SYSTEM;
    for (uint32_t op = 0; op < ops; op++)
        heavy[op] = (struct heavy){search->own[before->node_of[op]], before->node_of[op]};
    qsort(heavy, ops, sizeof *heavy, compare_heavy);
    for (uint32_t k = 0; k < ops && k < OPS_MAX; k++)
        search->list[search->list_count++] = heavy[k].node;
    uint32_t left = ops - search->list_count, others = left < OTHERS_MAX ? left : OTHERS_MAX;
    for (uint32_t k = 0; k < others; k++)
        search->list[search->list_count++] =
            heavy[OPS_MAX + (uint32_t)((uint64_t)k * left / others)].node;
    return TARN_OK;
}

enum tarn_status tarn_beside_bound(struct tarn_order_certificate *certificate,
                                   struct tarn_region *region, const struct tarn_graph *graph,
                                   const uint64_t *reserved, uint64_t goal,
                                   const struct tarn_steps *steps)
{
    *certificate = (struct tarn_order_certificate){
        .has_run = tarn_region_take(region, graph->ops_count, sizeof *certificate->has_run)};
    if (!certificate->has_run) return TARN_SYSTEM;
    if (graph->streams_count < 2 || !tarn_before_is_small(graph)) return TARN_OK;
    struct tarn_region scratch = {.chunks = NULL};
    struct tarn_constraints constraints;
    struct search search = {
        .region = &scratch, .goal = goal, .steps = steps, .certificate = certificate};
    search.status = tarn_constraints_init(&constraints, &scratch, graph);
    if (search.status == TARN_OK)
        search.status = tarn_before_init(&search.before, &scratch, graph, &constraints);
    if (search.status == TARN_OK) search.status = take_storages(&search, reserved);
    if (search.status == TARN_OK) search.status = list_ops(&search);
    if (search.status == TARN_OK) run(&search, &constraints.predecessors);
    tarn_flow_finish(&search.flow);
    tarn_region_finish(&scratch);
    return search.status;
}
