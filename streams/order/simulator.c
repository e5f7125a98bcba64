/* A discrete-event model of the streams: when the ops run, and how much memory is alive when.
 * Streams never compete, so that the events need no queue: in topological order every op begins at
 * the maximum of its stream's last end and the ends that it waits for. Memory over time is a sweep
 * over the sorted starts and ends. tarn/simulate.h describes the model. Cost: O(V + waits) for the
 * timeline, O(V log V + touches) for the memory. */
#include "simulator.h"

#include <assert.h>
#include <stdlib.h>

#include "reserved.h"
#include "streams/base/checked.h"
#include "streams/base/error.h"
#include "streams/base/memory.h"
#include "streams/base/options.h"
#include "streams/base/region.h"
#include "view.h"
#include "worst.h"

/* ---- When ops run ---- */

static void fill_timeline(struct tarn_timeline *timeline, const struct tarn_graph *graph,
                          const struct tarn_wait *waits, uint32_t waits_count, uint32_t wait_ns)
{
    uint32_t next = 0;
    for (uint32_t i = 0; i < graph->ops_count; i++) {
        uint32_t v = graph->order[i];
        const struct tarn_graph_op *op = &graph->ops[v];
        uint64_t begin = 0;
        if (op->position > 0)
            begin = timeline->end_ns[graph->streams[op->stream].ops[op->position - 1]];
        for (; next < waits_count && waits[next].op == v; next++)
            begin = tarn_larger(begin, timeline->end_ns[waits[next].on] + wait_ns);
        timeline->begin_ns[v] = begin;
        timeline->end_ns[v] = begin + (op->view ? 0 : op->cost);
        timeline->makespan_ns = tarn_larger(timeline->makespan_ns, timeline->end_ns[v]);
    }
    assert(next == waits_count); /* else they are not sorted by rank */
}

enum tarn_status tarn_timeline_init(struct tarn_timeline *timeline, struct tarn_region *region,
                                    const struct tarn_graph *graph, const struct tarn_wait *waits,
                                    uint32_t waits_count, uint32_t wait_ns)
{
    *timeline = (struct tarn_timeline){.makespan_ns = 0};
    timeline->begin_ns = tarn_region_take(region, graph->ops_count, sizeof *timeline->begin_ns);
    timeline->end_ns = tarn_region_take(region, graph->ops_count, sizeof *timeline->end_ns);
    if (!timeline->begin_ns || !timeline->end_ns) return TARN_SYSTEM;
    fill_timeline(timeline, graph, waits, waits_count, wait_ns);
    return TARN_OK;
}

enum tarn_status tarn_timeline_of(struct tarn_timeline *timeline, struct tarn_region *region,
                                  const struct tarn_graph *graph, uint32_t wait_ns)
{
    struct tarn_wait *waits;
    uint32_t waits_count = 0;
    enum tarn_status status = tarn_events_minimal(graph, region, &waits, &waits_count);
    return status == TARN_OK
               ? tarn_timeline_init(timeline, region, graph, waits, waits_count, wait_ns)
               : status;
}

/* ---- Memory over time ---- */

/* Memory over time, and its highest moment. */
struct curve {
    struct tarn_memory_step *steps;
    size_t steps_count;
    uint64_t peak, peak_ns;
    uint32_t peak_op; /* op that begins then; TARN_NONE: nothing is ever alive */
};

/* An op begins or ends. */
struct moment {
    uint64_t ns;
    uint64_t rank; /* order of changes at one moment, the lowest first */
    uint32_t op;
    bool is_end;
};

static struct moment begin_of(const struct tarn_timeline *timeline, const struct tarn_graph *graph,
                              uint32_t v)
{
    uint64_t rank = (UINT64_C(1) << 32) + 2 * (uint64_t)graph->rank[v];
    return (struct moment){timeline->begin_ns[v], rank, v, false};
}

static struct moment end_of(const struct tarn_timeline *timeline, const struct tarn_graph *graph,
                            uint32_t v)
{
    bool has_length = timeline->end_ns[v] > timeline->begin_ns[v];
    uint64_t rank = has_length ? graph->rank[v] : begin_of(timeline, graph, v).rank + 1;
    return (struct moment){timeline->end_ns[v], rank, v, true};
}

static int compare(const void *left, const void *right)
{
    const struct moment *a = left, *b = right;
    if (a->ns != b->ns) return a->ns < b->ns ? -1 : 1;
    return a->rank < b->rank ? -1 : a->rank > b->rank;
}

/* Bytes that ops make alive when they begin, and release when they end. */
struct changes {
    uint64_t *produced, *released; /* by op */
};

static void fill_changes(const struct changes *changes, const struct tarn_timeline *timeline,
                         const struct tarn_graph *graph, const uint64_t *reserved)
{
    for (uint32_t a = 0; a < graph->planned_count; a++) {
        const struct tarn_storage *storage = &graph->storages[a];
        changes->produced[storage->producer] += reserved[a];
        if (storage->pinned) continue;
        struct moment last = end_of(timeline, graph, tarn_storage_users(graph, storage)[0]);
        for (uint32_t k = 1; k < storage->users_count; k++) {
            struct moment end = end_of(timeline, graph, tarn_storage_users(graph, storage)[k]);
            if (compare(&end, &last) > 0) last = end;
        }
        changes->released[last.op] += reserved[a];
    }
}

static uint32_t collect_moments(struct moment *moments, const struct changes *changes,
                                const struct tarn_timeline *timeline,
                                const struct tarn_graph *graph)
{
    uint32_t count = 0;
    for (uint32_t v = 0; v < graph->ops_count; v++) {
        if (changes->produced[v] > 0) moments[count++] = begin_of(timeline, graph, v);
        if (changes->released[v] > 0) moments[count++] = end_of(timeline, graph, v);
    }
    qsort(moments, count, sizeof *moments, compare);
    return count;
}

static void add_step(struct curve *curve, uint64_t ns, uint64_t bytes)
{
    size_t count = curve->steps_count;
    if (curve->steps[count - 1].ns == ns)
        curve->steps[count - 1].bytes = bytes;
    else
        curve->steps[curve->steps_count++] = (struct tarn_memory_step){ns, bytes};
}

static void sweep(struct curve *curve, const struct moment *moments, uint32_t count,
                  const struct changes *changes)
{
    uint64_t alive = 0;
    curve->steps[curve->steps_count++] = (struct tarn_memory_step){0, 0};
    for (uint32_t i = 0; i < count; i++) {
        const struct moment *moment = &moments[i];
        assert(!moment->is_end || changes->released[moment->op] <= alive);
        if (moment->is_end)
            alive -= changes->released[moment->op];
        else
            alive += changes->produced[moment->op];
        if (alive > curve->peak) {
            curve->peak = alive;
            curve->peak_ns = moment->ns;
            curve->peak_op = moment->op;
        }
        add_step(curve, moment->ns, alive);
    }
}

/* Order at one moment: ops of non-zero length end first; then ops begin, in topological order, and
 * ops of length 0 end at once. reserved: bytes by planned storage. */
static enum tarn_status curve_init(struct curve *curve, struct tarn_region *region,
                                   const struct tarn_timeline *timeline,
                                   const struct tarn_graph *graph, const uint64_t *reserved)
{
    size_t count = graph->ops_count;
    *curve = (struct curve){.peak_op = TARN_NONE};
    curve->steps = tarn_region_take(region, 2 * count + 1, sizeof *curve->steps);
    struct tarn_region_mark mark = tarn_region_mark(region);
    struct changes changes = {tarn_region_take(region, count, sizeof(uint64_t)),
                              tarn_region_take(region, count, sizeof(uint64_t))};
    struct moment *moments = tarn_region_take(region, 2 * count, sizeof *moments);
    if (!changes.produced || !changes.released || !moments || !curve->steps) return TARN_SYSTEM;
    fill_changes(&changes, timeline, graph, reserved);
    uint32_t moments_count = collect_moments(moments, &changes, timeline, graph);
    sweep(curve, moments, moments_count, &changes);
    tarn_region_release(region, mark);
    assert(curve->steps_count <= 2 * count + 1);
    return TARN_OK;
}

/* ---- All of it ---- */

struct simulating {
    struct tarn_simulation shown; /* first: its address is the whole's */
    struct tarn_region region;    /* of all arrays */
    struct tarn_timeline timeline;
    struct curve curve;
    uint64_t *reserved; /* by planned storage */
    uint64_t *folded;   /* reserved bytes with folded workspaces */
    uint64_t *busy_ns;
};

static enum tarn_status reserve(struct simulating *simulating, const struct tarn_graph *graph,
                                uint64_t alignment, struct tarn_error *error)
{
    uint64_t sum = 0;
    simulating->reserved =
        tarn_region_take(&simulating->region, graph->planned_count, sizeof *simulating->reserved);
    if (!simulating->reserved) return tarn_error_no_memory(error);
    for (uint32_t a = 0; a < graph->planned_count; a++) {
        simulating->reserved[a] = tarn_storage_reserved(graph, a, alignment);
        if (!tarn_size_add(sum, simulating->reserved[a], &sum))
            return tarn_error_set(error, TARN_BAD_INPUT,
                                  "the planned tensors need more than 2^64 bytes at alignment "
                                  "%llu; use a smaller alignment",
                                  (unsigned long long)alignment);
    }
    simulating->folded = tarn_region_copy(&simulating->region, simulating->reserved,
                                          graph->planned_count, sizeof *simulating->folded);
    if (!simulating->folded) return tarn_error_no_memory(error);
    tarn_workspaces_fold(graph, simulating->folded);
    tarn_sizes_of_first_space(graph, simulating->folded);
    tarn_sizes_of_first_space(graph, simulating->reserved);
    return TARN_OK;
}

static enum tarn_status run(struct simulating *simulating, const struct tarn_graph *graph,
                            uint32_t wait_ns)
{
    enum tarn_status status =
        tarn_timeline_of(&simulating->timeline, &simulating->region, graph, wait_ns);
    if (status == TARN_OK)
        status = curve_init(&simulating->curve, &simulating->region, &simulating->timeline, graph,
                            simulating->folded);
    return status;
}

/* How many ops of each stream of the view have begun when memory is at its peak; of ops in two
 * halves, the first half counts. */
static void count_begun(uint32_t *begun, const struct simulating *simulating,
                        const struct tarn_graph *graph, const struct tarn_graph *view)
{
    if (simulating->curve.peak_op == TARN_NONE) return;
    struct moment peak = begin_of(&simulating->timeline, graph, simulating->curve.peak_op);
    for (uint32_t v = 0; v < graph->ops_count; v++) {
        struct moment begin = begin_of(&simulating->timeline, graph, v);
        const struct tarn_graph_op *op = &view->ops[v];
        if (!op->view && compare(&begin, &peak) <= 0 && op->position >= begun[op->stream])
            begun[op->stream] = op->position + 1;
    }
}

static enum tarn_status find_worst(struct simulating *simulating, const struct tarn_graph *graph)
{
    struct tarn_clocks clocks;
    struct tarn_reuse reuse;
    struct tarn_worst worst;
    struct tarn_view view;
    struct tarn_region *region = &simulating->region;
    struct tarn_region_mark mark = tarn_region_mark(region);
    uint32_t *begun = tarn_region_take(region, graph->streams_count, sizeof *begun);
    enum tarn_status status = begun ? tarn_view_init(&view, region, graph) : TARN_SYSTEM;
    if (status == TARN_OK) status = tarn_clocks_init(&clocks, region, view.graph);
    if (status == TARN_OK) status = tarn_reuse_init(&reuse, region, &clocks, view.graph);
    if (status != TARN_OK) return status;
    count_begun(begun, simulating, graph, view.graph);
    status =
        tarn_worst_init(&worst, region, &clocks, &reuse, view.graph, simulating->reserved, begun);
    if (status != TARN_OK) return status;
    simulating->shown.worst = worst.reached;
    simulating->shown.worst_bound = worst.bound;
    tarn_region_release(region, mark);
    return TARN_OK;
}

static void show(struct simulating *simulating, const struct tarn_graph *graph)
{
    struct tarn_simulation *shown = &simulating->shown;
    shown->struct_size = sizeof *shown;
    for (uint32_t v = 0; v < graph->ops_count; v++) {
        uint64_t ns = simulating->timeline.end_ns[v] - simulating->timeline.begin_ns[v];
        simulating->busy_ns[graph->ops[v].stream] += ns;
        shown->serial_ns += ns;
    }
    shown->makespan_ns = simulating->timeline.makespan_ns;
    shown->peak = simulating->curve.peak;
    shown->peak_ns = simulating->curve.peak_ns;
    shown->streams_count = graph->streams_count;
    shown->ops_count = graph->ops_count;
    shown->busy_ns = simulating->busy_ns;
    shown->begin_ns = simulating->timeline.begin_ns;
    shown->end_ns = simulating->timeline.end_ns;
    shown->steps = simulating->curve.steps;
    shown->steps_count = simulating->curve.steps_count;
}

/* After the reserved bytes are known, only memory can run out. */
static enum tarn_status simulate(struct simulating *simulating, const struct tarn_graph *graph,
                                 uint64_t alignment, uint32_t wait_ns, struct tarn_error *error)
{
    enum tarn_status status = reserve(simulating, graph, alignment, error);
    if (status != TARN_OK) return status;
    simulating->busy_ns =
        tarn_region_take(&simulating->region, graph->streams_count, sizeof *simulating->busy_ns);
    status = simulating->busy_ns ? run(simulating, graph, wait_ns) : TARN_SYSTEM;
    if (status == TARN_OK) status = find_worst(simulating, graph);
    return status == TARN_OK ? TARN_OK : tarn_error_no_memory(error);
}

enum tarn_status tarn_graph_simulate(const struct tarn_graph *graph, uint64_t alignment,
                                     uint32_t wait_ns, struct tarn_simulation **simulation,
                                     struct tarn_error *error)
{
    if (simulation) *simulation = NULL;
    if (!graph || !simulation) return tarn_error_null(error, __func__);
    tarn_error_clear(error);
    if (tarn_options_alignment(&alignment, error) != TARN_OK) return TARN_USAGE;
    struct simulating *simulating = tarn_take_zeros(1, sizeof *simulating);
    if (!simulating) return tarn_error_no_memory(error);
    enum tarn_status status = simulate(simulating, graph, alignment, wait_ns, error);
    if (status == TARN_OK) {
        show(simulating, graph);
        *simulation = &simulating->shown;
    } else {
        tarn_simulation_destroy(&simulating->shown);
    }
    return status;
}

void tarn_simulation_destroy(struct tarn_simulation *simulation)
{
    if (!simulation) return;
    struct simulating *simulating = (struct simulating *)simulation;
    tarn_region_finish(&simulating->region);
    tarn_free(simulating);
}
