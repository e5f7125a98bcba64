/* Assigns nodes by list scheduling over streams. Whenever a stream is free, the next node is, of
 * the nodes that could begin, the one with the longest path to the end. It is put in the stream in
 * which it can begin first. If its inputs come from another stream, it begins a wait later. Two
 * numbers are not given by the model. The first is the part of a wait that the path to the end
 * should count for each arc, since it is not known yet which arcs will cross. The second is how
 * much later a node may begin to stay in the stream of its input, which saves an event and keeps
 * the other stream free. Some values are tried, with and without a stream that belongs to the
 * longest chain alone, and the shortest schedule is kept. Source: HEFT (Topcuoglu, Hariri, Wu,
 * 2002) for the path to the end; Graham's list scheduling. Cost: see the header. */
#include <assert.h>
#include <string.h>

#include "assign.h"
#include "streams/base/checked.h"
#include "streams/base/heap.h"

/* ---- A schedule in the making ---- */

struct schedule {
    const struct tarn_reorder_model *model;
    const struct tarn_stream_pools *pools;
    uint64_t wait_ns;
    uint64_t stay_ns;  /* how much later a node may begin to stay in its input's stream */
    uint64_t *urgency; /* node -> UINT64_MAX - the path from its start to the end, ns */
    uint64_t *ready;   /* node -> when it could begin in the best stream, if this were free */
    uint64_t *end;     /* node */
    uint64_t *free_at; /* stream */
    uint32_t *pending; /* node -> nodes that it waits for and that are not placed */
    uint32_t *stream;
    uint32_t *order;
    uint32_t placed;
    uint64_t makespan;
    struct tarn_heap coming[TARN_POOLS_MAX], waiting[TARN_POOLS_MAX]; /* by ready, by urgency */
};

static uint64_t cost_of(const struct schedule *schedule, uint32_t node)
{
    const struct tarn_graph_op *op = &schedule->model->graph->ops[schedule->model->op[node]];
    return op->view ? 0 : op->cost;
}

/* The path to the end counts wait_share sixteenths of a wait for each arc. */
static void fill_urgency(struct schedule *schedule, uint32_t wait_share)
{
    const struct tarn_arcs *after = &schedule->model->successors;
    uint64_t wait = schedule->wait_ns * wait_share / 16;
    for (uint32_t v = schedule->model->nodes_count; v-- > 0;) {
        uint64_t path = 0;
        for (uint32_t i = after->begin[v]; i < after->begin[v + 1]; i++) {
            uint64_t behind = wait + (UINT64_MAX - schedule->urgency[after->ops[i]]);
            if (behind > path) path = behind;
        }
        schedule->urgency[v] = UINT64_MAX - (path + cost_of(schedule, v));
    }
}

/* When the node's inputs are there, seen from stream s. */
static uint64_t inputs_at(const struct schedule *schedule, uint32_t v, uint32_t s)
{
    const struct tarn_arcs *before = &schedule->model->predecessors;
    uint64_t at = 0;
    for (uint32_t i = before->begin[v]; i < before->begin[v + 1]; i++) {
        uint32_t u = before->ops[i];
        uint64_t arrival = schedule->end[u] + (schedule->stream[u] == s ? 0 : schedule->wait_ns);
        if (arrival > at) at = arrival;
    }
    return at;
}

/* The stream of the input that comes last; TARN_NONE: no input, or from another pool. */
static uint32_t home_of(const struct schedule *schedule, uint32_t v)
{
    const struct tarn_arcs *before = &schedule->model->predecessors;
    uint8_t pool = schedule->pools->pool[v];
    uint32_t last = TARN_NONE;
    for (uint32_t i = before->begin[v]; i < before->begin[v + 1]; i++) {
        uint32_t u = before->ops[i];
        if (schedule->pools->pool[u] != pool) continue;
        if (last == TARN_NONE || schedule->end[u] > schedule->end[last]) last = u;
    }
    return last == TARN_NONE ? TARN_NONE : schedule->stream[last];
}

static uint32_t choose_stream(const struct schedule *schedule, uint32_t v, uint64_t *begin)
{
    uint8_t pool = schedule->pools->pool[v];
    uint32_t best = schedule->pools->begin[pool], home = home_of(schedule, v);
    *begin = UINT64_MAX;
    for (uint32_t s = best; s < schedule->pools->end[pool]; s++) {
        uint64_t here = tarn_larger(schedule->free_at[s], inputs_at(schedule, v, s));
        if (here >= *begin) continue;
        *begin = here;
        best = s;
    }
    if (home == TARN_NONE || home == best) return best;
    uint64_t at_home = tarn_larger(schedule->free_at[home], inputs_at(schedule, v, home));
    if (at_home > *begin + schedule->stay_ns) return best;
    *begin = at_home;
    return home;
}

/* Announces v as ready: all nodes that it waits for are placed. */
static void announce(struct schedule *schedule, uint32_t v)
{
    uint32_t home = home_of(schedule, v);
    uint64_t ready = inputs_at(schedule, v, TARN_NONE);
    if (home != TARN_NONE) {
        uint64_t at_home = inputs_at(schedule, v, home);
        if (at_home < ready) ready = at_home;
    }
    schedule->ready[v] = ready;
    tarn_heap_push(&schedule->coming[schedule->pools->pool[v]], v);
}

static void place(struct schedule *schedule, uint32_t v)
{
    const struct tarn_arcs *after = &schedule->model->successors;
    uint64_t begin;
    assert(schedule->pending[v] == 0 && schedule->placed < schedule->model->nodes_count);
    uint32_t s = choose_stream(schedule, v, &begin);
    assert(begin >= schedule->free_at[s]);
    schedule->stream[v] = s;
    schedule->end[v] = begin + cost_of(schedule, v);
    schedule->free_at[s] = schedule->end[v];
    schedule->makespan = tarn_larger(schedule->makespan, schedule->end[v]);
    schedule->order[schedule->placed++] = v;
    for (uint32_t i = after->begin[v]; i < after->begin[v + 1]; i++)
        if (--schedule->pending[after->ops[i]] == 0) announce(schedule, after->ops[i]);
}

/* When the next node of this pool could begin; UINT64_MAX: there is none. */
static uint64_t next_begin(struct schedule *schedule, uint32_t p)
{
    struct tarn_heap *coming = &schedule->coming[p], *waiting = &schedule->waiting[p];
    if (coming->count + waiting->count == 0) return UINT64_MAX;
    uint64_t at = UINT64_MAX;
    for (uint32_t s = schedule->pools->begin[p]; s < schedule->pools->end[p]; s++)
        if (schedule->free_at[s] < at) at = schedule->free_at[s];
    if (waiting->count == 0) at = tarn_larger(at, schedule->ready[tarn_heap_first(coming)]);
    while (coming->count > 0 && schedule->ready[tarn_heap_first(coming)] <= at)
        tarn_heap_push(waiting, tarn_heap_pop(coming));
    return at;
}

static void run(struct schedule *schedule, uint32_t wait_share)
{
    const struct tarn_arcs *before = &schedule->model->predecessors;
    uint32_t count = schedule->model->nodes_count;
    schedule->placed = 0;
    schedule->makespan = 0;
    memset(schedule->free_at, 0, schedule->pools->streams_count * sizeof *schedule->free_at);
    fill_urgency(schedule, wait_share);
    for (uint32_t v = 0; v < count; v++) {
        schedule->pending[v] = before->begin[v + 1] - before->begin[v];
        if (schedule->pending[v] == 0) announce(schedule, v);
    }
    while (schedule->placed < count) {
        uint32_t best = 0;
        uint64_t best_begin = UINT64_MAX;
        for (uint32_t p = 0; p < schedule->pools->count; p++) {
            uint64_t begin = next_begin(schedule, p);
            if (begin >= best_begin) continue;
            best_begin = begin;
            best = p;
        }
        place(schedule, tarn_heap_pop(&schedule->waiting[best]));
    }
}

/* ---- The shortest of some ---- */

static enum tarn_status schedule_init(struct schedule *schedule, struct tarn_region *region,
                                      const struct tarn_stream_pools *pools)
{
    size_t count = schedule->model->nodes_count;
    schedule->urgency = tarn_region_take(region, count, sizeof *schedule->urgency);
    schedule->ready = tarn_region_take(region, count, sizeof *schedule->ready);
    schedule->end = tarn_region_take(region, count, sizeof *schedule->end);
    schedule->free_at = tarn_region_take(region, pools->streams_count, sizeof *schedule->free_at);
    schedule->pending = tarn_region_take(region, count, sizeof *schedule->pending);
    schedule->stream = tarn_region_take(region, count, sizeof *schedule->stream);
    schedule->order = tarn_region_take(region, count, sizeof *schedule->order);
    for (uint32_t p = 0; p < TARN_POOLS_MAX; p++) {
        uint32_t *coming = tarn_region_take(region, count, sizeof *coming);
        uint32_t *waiting = tarn_region_take(region, count, sizeof *waiting);
        schedule->coming[p] = (struct tarn_heap){.key = schedule->ready, .items = coming};
        schedule->waiting[p] = (struct tarn_heap){.key = schedule->urgency, .items = waiting};
    }
    return region->is_exhausted ? TARN_SYSTEM : TARN_OK;
}

static void take(struct tarn_assignment *assignment, const struct schedule *schedule)
{
    size_t count = schedule->model->nodes_count;
    memcpy(assignment->stream, schedule->stream, count * sizeof *assignment->stream);
    memcpy(assignment->order, schedule->order, count * sizeof *assignment->order);
}

/* Schedules by several settings, of which the shortest stays. */
struct contest {
    struct schedule *schedule;
    struct tarn_assignment *assignment; /* the shortest */
    struct tarn_region *region;         /* for data that lasts as long as the contest */
    uint64_t shortest;                  /* its makespan, nanoseconds */
};

static void try_settings(struct contest *contest)
{
    static const uint32_t wait_shares[] = {0, 4, 8, 16}, stays[] = {0, 8, 16};
    struct schedule *schedule = contest->schedule;
    for (size_t i = 0; i < sizeof wait_shares / sizeof *wait_shares; i++) {
        for (size_t k = 0; k < sizeof stays / sizeof *stays; k++) {
            schedule->stay_ns = schedule->wait_ns * stays[k] / 16;
            run(schedule, wait_shares[i]);
            if (schedule->makespan >= contest->shortest) continue;
            contest->shortest = schedule->makespan;
            take(contest->assignment, schedule);
        }
    }
}

/* Puts the nodes of pool 0 on the longest path to the end into a pool of their own. */
static void mark_chain(const struct schedule *schedule, uint8_t *pool, uint8_t own)
{
    const struct tarn_arcs *after = &schedule->model->successors;
    uint32_t v = 0;
    for (uint32_t u = 1; u < schedule->model->nodes_count; u++)
        if (schedule->urgency[u] < schedule->urgency[v]) v = u;
    while (v != TARN_NONE) {
        uint32_t next = TARN_NONE;
        if (pool[v] == 0) pool[v] = own;
        for (uint32_t i = after->begin[v]; i < after->begin[v + 1]; i++) {
            uint32_t w = after->ops[i];
            if (next == TARN_NONE || schedule->urgency[w] < schedule->urgency[next]) next = w;
        }
        v = next;
    }
}

/* Again, with the first stream for the longest chain alone, so that nothing shorter delays it. */
static enum tarn_status try_with_chain(struct contest *contest)
{
    struct schedule *schedule = contest->schedule;
    const struct tarn_stream_pools *given = schedule->pools;
    struct tarn_stream_pools pools = *given;
    uint32_t count = schedule->model->nodes_count;
    if (given->end[0] < 2 || count == 0) return TARN_OK;
    assert(given->count < TARN_POOLS_MAX);
    uint8_t *pool = tarn_region_copy(contest->region, given->pool, count, sizeof *pool);
    uint8_t own = (uint8_t)given->count;
    if (!pool) return TARN_SYSTEM;
    fill_urgency(schedule, 0);
    mark_chain(schedule, pool, own);
    pools.pool = pool;
    pools.begin[own] = 0;
    pools.end[own] = pools.begin[0] = 1;
    pools.count++;
    schedule->pools = &pools;
    try_settings(contest);
    schedule->pools = given;
    return TARN_OK;
}

enum tarn_status tarn_assign_schedule(struct tarn_assignment *assignment,
                                      struct tarn_region *region,
                                      const struct tarn_reorder_model *model,
                                      const struct tarn_stream_pools *pools, uint32_t wait_ns)
{
    if (tarn_assignment_init(assignment, region, model) != TARN_OK) return TARN_SYSTEM;
    assignment->streams_count = pools->streams_count;
    struct tarn_region_mark mark = tarn_region_mark(region);
    struct schedule schedule = {.model = model, .pools = pools, .wait_ns = wait_ns};
    struct contest contest = {&schedule, assignment, region, UINT64_MAX};
    enum tarn_status status = schedule_init(&schedule, region, pools);
    if (status == TARN_OK) {
        try_settings(&contest);
        status = try_with_chain(&contest);
    }
    tarn_region_release(region, mark);
    return status;
}
