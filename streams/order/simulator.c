/* A discrete-event model of the streams: when the ops run, and how much memory is alive when.
 * Streams never compete, so that the events need no queue: in topological order every op begins
 * at the latest of its stream's last end and the ends it waits for. Memory over time is a sweep
 * over the begins and ends, sorted. The model is that of tarn/simulate.h. Cost: O(V + waits) for
 * the timeline, O(V log V + touches) for the memory. */
#include "simulator.h"

#include <stdlib.h>
#include <string.h>

#include "streams/base/checked.h"
#include "streams/base/error.h"
#include "worst.h"

enum { ALIGNMENT_DEFAULT = 512 };

/* ---- When ops run ---- */

static uint64_t later_of(uint64_t a, uint64_t b) { return a > b ? a : b; }

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
            begin = later_of(begin, timeline->end_ns[waits[next].on] + wait_ns);
        timeline->begin_ns[v] = begin;
        timeline->end_ns[v] = begin + (op->view ? 0 : op->cost);
        timeline->makespan_ns = later_of(timeline->makespan_ns, timeline->end_ns[v]);
    }
}

enum tarn_status tarn_timeline_init(struct tarn_timeline *timeline, const struct tarn_graph *graph,
                                    const struct tarn_wait *waits, uint32_t waits_count,
                                    uint32_t wait_ns)
{
    memset(timeline, 0, sizeof *timeline);
    timeline->begin_ns = malloc(((size_t)graph->ops_count + 1) * sizeof *timeline->begin_ns);
    timeline->end_ns = malloc(((size_t)graph->ops_count + 1) * sizeof *timeline->end_ns);
    if (!timeline->begin_ns || !timeline->end_ns) {
        tarn_timeline_finish(timeline);
        return TARN_SYSTEM;
    }
    fill_timeline(timeline, graph, waits, waits_count, wait_ns);
    return TARN_OK;
}

void tarn_timeline_finish(struct tarn_timeline *timeline)
{
    free(timeline->begin_ns);
    free(timeline->end_ns);
    memset(timeline, 0, sizeof *timeline);
}

/* ---- Memory over time ---- */

/* An op begins or ends. `turn` decides among what happens at one moment. */
struct moment {
    uint64_t ns;
    uint64_t turn;
    uint32_t op;
    bool is_end;
};

static struct moment begin_of(const struct tarn_timeline *timeline, const struct tarn_graph *graph,
                              uint32_t v)
{
    uint64_t turn = (UINT64_C(1) << 32) + 2 * (uint64_t)graph->rank[v];
    return (struct moment){timeline->begin_ns[v], turn, v, false};
}

static struct moment end_of(const struct tarn_timeline *timeline, const struct tarn_graph *graph,
                            uint32_t v)
{
    bool has_length = timeline->end_ns[v] > timeline->begin_ns[v];
    uint64_t turn = has_length ? graph->rank[v] : begin_of(timeline, graph, v).turn + 1;
    return (struct moment){timeline->end_ns[v], turn, v, true};
}

static int compare(const void *left, const void *right)
{
    const struct moment *a = left, *b = right;
    if (a->ns != b->ns) return a->ns < b->ns ? -1 : 1;
    return a->turn < b->turn ? -1 : a->turn > b->turn;
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
        struct moment last = end_of(timeline, graph, storage->touchers[0]);
        for (uint32_t k = 1; k < storage->touchers_count; k++) {
            struct moment end = end_of(timeline, graph, storage->touchers[k]);
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

static void add_step(struct tarn_memory_curve *curve, uint64_t ns, uint64_t bytes)
{
    size_t count = curve->steps_count;
    if (curve->steps[count - 1].ns == ns)
        curve->steps[count - 1].bytes = bytes;
    else
        curve->steps[curve->steps_count++] = (struct tarn_memory_step){ns, bytes};
}

static void sweep(struct tarn_memory_curve *curve, const struct moment *moments, uint32_t count,
                  const struct changes *changes)
{
    uint64_t alive = 0;
    curve->steps[curve->steps_count++] = (struct tarn_memory_step){0, 0};
    for (uint32_t i = 0; i < count; i++) {
        const struct moment *moment = &moments[i];
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

enum tarn_status tarn_memory_curve_init(struct tarn_memory_curve *curve,
                                        const struct tarn_timeline *timeline,
                                        const struct tarn_graph *graph, const uint64_t *reserved)
{
    size_t room = (size_t)graph->ops_count + 1;
    struct changes changes = {calloc(room, sizeof(uint64_t)), calloc(room, sizeof(uint64_t))};
    struct moment *moments = malloc(2 * room * sizeof *moments);
    *curve = (struct tarn_memory_curve){.peak_op = TARN_NONE};
    curve->steps = malloc(2 * room * sizeof *curve->steps);
    enum tarn_status status = TARN_SYSTEM;
    if (changes.produced && changes.released && moments && curve->steps) {
        fill_changes(&changes, timeline, graph, reserved);
        uint32_t count = collect_moments(moments, &changes, timeline, graph);
        sweep(curve, moments, count, &changes);
        status = TARN_OK;
    }
    free(changes.produced);
    free(changes.released);
    free(moments);
    if (status != TARN_OK) tarn_memory_curve_finish(curve);
    return status;
}

void tarn_memory_curve_finish(struct tarn_memory_curve *curve)
{
    free(curve->steps);
    memset(curve, 0, sizeof *curve);
}

/* ---- All of it ---- */

/* What a simulation that is being made owns. */
struct simulating {
    struct tarn_simulation shown; /* first: its address is the whole's */
    struct tarn_timeline timeline;
    struct tarn_memory_curve curve;
    uint64_t *reserved; /* by planned storage */
    uint64_t *busy_ns;
};

static enum tarn_status reserve(struct simulating *all, const struct tarn_graph *graph,
                                uint64_t alignment, struct tarn_error *error)
{
    uint64_t sum = 0;
    all->reserved = malloc(((size_t)graph->planned_count + 1) * sizeof *all->reserved);
    if (!all->reserved) return tarn_error_no_memory(error);
    for (uint32_t a = 0; a < graph->planned_count; a++) {
        all->reserved[a] = tarn_storage_reserved(graph, a, alignment);
        if (!tarn_size_add(sum, all->reserved[a], &sum))
            return tarn_error_set(error, TARN_BAD_INPUT,
                                  "the planned tensors need more than 2^64 bytes at alignment "
                                  "%llu; use a smaller alignment",
                                  (unsigned long long)alignment);
    }
    return TARN_OK;
}

static enum tarn_status run(struct simulating *all, const struct tarn_graph *graph,
                            uint32_t wait_ns)
{
    struct tarn_wait *waits = NULL;
    uint32_t waits_count = 0;
    enum tarn_status status = tarn_events_minimal(graph, &waits, &waits_count);
    if (status == TARN_OK)
        status = tarn_timeline_init(&all->timeline, graph, waits, waits_count, wait_ns);
    if (status == TARN_OK)
        status = tarn_memory_curve_init(&all->curve, &all->timeline, graph, all->reserved);
    free(waits);
    return status;
}

/* How many ops of each stream have begun when memory is at its peak. */
static void count_begun(uint32_t *begun, const struct simulating *all,
                        const struct tarn_graph *graph)
{
    if (all->curve.peak_op == TARN_NONE) return;
    struct moment peak = begin_of(&all->timeline, graph, all->curve.peak_op);
    for (uint32_t v = 0; v < graph->ops_count; v++) {
        struct moment begin = begin_of(&all->timeline, graph, v);
        const struct tarn_graph_op *op = &graph->ops[v];
        if (!op->view && compare(&begin, &peak) <= 0 && op->position >= begun[op->stream])
            begun[op->stream] = op->position + 1;
    }
}

static enum tarn_status find_worst(struct simulating *all, const struct tarn_graph *graph)
{
    struct tarn_clocks clocks = {0};
    struct tarn_reuse reuse = {0};
    struct tarn_worst worst = {0};
    uint32_t *begun = calloc((size_t)graph->streams_count + 1, sizeof *begun);
    enum tarn_status status = begun ? tarn_clocks_init(&clocks, graph) : TARN_SYSTEM;
    if (status == TARN_OK) status = tarn_reuse_init(&reuse, &clocks, graph);
    if (status == TARN_OK) {
        count_begun(begun, all, graph);
        status = tarn_worst_init(&worst, &clocks, &reuse, graph, all->reserved, begun);
    }
    all->shown.worst = worst.reached;
    all->shown.worst_bound = worst.bound;
    tarn_worst_finish(&worst);
    tarn_reuse_finish(&reuse);
    tarn_clocks_finish(&clocks);
    free(begun);
    return status;
}

static void show(struct simulating *all, const struct tarn_graph *graph)
{
    struct tarn_simulation *shown = &all->shown;
    for (uint32_t v = 0; v < graph->ops_count; v++) {
        uint64_t ns = all->timeline.end_ns[v] - all->timeline.begin_ns[v];
        all->busy_ns[graph->ops[v].stream] += ns;
        shown->serial_ns += ns;
    }
    shown->makespan_ns = all->timeline.makespan_ns;
    shown->peak = all->curve.peak;
    shown->peak_ns = all->curve.peak_ns;
    shown->streams_count = graph->streams_count;
    shown->ops_count = graph->ops_count;
    shown->busy_ns = all->busy_ns;
    shown->begin_ns = all->timeline.begin_ns;
    shown->end_ns = all->timeline.end_ns;
    shown->steps = all->curve.steps;
    shown->steps_count = all->curve.steps_count;
}

/* All that can fail after the reserved bytes are known is memory. */
static enum tarn_status simulate(struct simulating *all, const struct tarn_graph *graph,
                                 uint64_t alignment, uint32_t wait_ns, struct tarn_error *error)
{
    enum tarn_status status = reserve(all, graph, alignment, error);
    if (status != TARN_OK) return status;
    all->busy_ns = calloc((size_t)graph->streams_count + 1, sizeof *all->busy_ns);
    status = all->busy_ns ? run(all, graph, wait_ns) : TARN_SYSTEM;
    if (status == TARN_OK) status = find_worst(all, graph);
    return status == TARN_OK ? TARN_OK : tarn_error_no_memory(error);
}

enum tarn_status tarn_graph_simulate(const struct tarn_graph *graph, uint64_t alignment,
                                     uint32_t wait_ns, struct tarn_simulation **simulation,
                                     struct tarn_error *error)
{
    if (simulation) *simulation = NULL;
    if (!graph || !simulation) return tarn_error_null(error, __func__);
    tarn_error_clear(error);
    if (alignment == 0) alignment = ALIGNMENT_DEFAULT;
    if (!tarn_is_power_of_two(alignment))
        return tarn_error_set(error, TARN_USAGE, "the alignment %llu is not a power of two",
                              (unsigned long long)alignment);
    struct simulating *all = calloc(1, sizeof *all);
    if (!all) return tarn_error_no_memory(error);
    enum tarn_status status = simulate(all, graph, alignment, wait_ns, error);
    if (status == TARN_OK) {
        show(all, graph);
        *simulation = &all->shown;
    } else {
        tarn_simulation_destroy(&all->shown);
    }
    return status;
}

void tarn_simulation_destroy(struct tarn_simulation *simulation)
{
    if (!simulation) return;
    struct simulating *all = (struct simulating *)simulation;
    tarn_timeline_finish(&all->timeline);
    tarn_memory_curve_finish(&all->curve);
    free(all->reserved);
    free(all->busy_ns);
    free(all);
}
