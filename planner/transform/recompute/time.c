/* Computes when the executions of a schedule run, by the model of tarn/simulate.h: in their order
 * each begins at the latest of its stream's last end and of the ends that it waits for in other
 * streams. A primary op waits for the same ops as in the source graph, and every execution waits
 * for the executions that wrote the copies that it reads. Waits implied by other waits end earlier
 * anyway, so no wait needs to be left out. Views take no time and have no wait of their own: an op
 * after a view waits for the ops launched before the view, of which the latest end in each stream
 * is enough.
 *
 * The result is an estimate that guides the search; the reported time is simulated on the built
 * graph. The estimate may be longer if a primary op reads a copy instead of the version that it
 * waited for, and shorter if the built graph has arcs against overwriting. Cost: linear in the ops,
 * arcs and reads, and streams for each view with an arc to or from another stream. */
#include "time.h"

#include <assert.h>
#include <string.h>

#include "streams/base/checked.h"
#include "tarn/simulate.h"

struct timing_pass {
    struct tarn_timing *timing;
    struct tarn_schedule *schedule;
    const struct tarn_recompute_model *model;
    enum tarn_recompute_streams rule;
};

static void number_rows(struct tarn_timing *timing, const struct tarn_graph *graph, uint32_t *count)
{
    const uint32_t *begin = graph->successors.begin;
    for (uint32_t v = 0; v < graph->ops_count; v++) {
        bool is_passed = graph->ops[v].view && begin[v + 1] > begin[v];
        timing->row_of[v] = is_passed ? (*count)++ : TARN_NONE;
    }
}

enum tarn_status tarn_timing_init(struct tarn_timing *timing, struct tarn_region *region,
                                  const struct tarn_graph *graph)
{
    size_t ops = graph->ops_count, streams = graph->streams_count;
    uint32_t rows = 0;
    *timing = (struct tarn_timing){
        .region = region,
        .stream_end = tarn_region_take(region, streams, sizeof *timing->stream_end),
        .op_end = tarn_region_take(region, ops, sizeof *timing->op_end),
        .row_of = tarn_region_take(region, ops, sizeof *timing->row_of),
        .passed = tarn_region_take(region, streams * streams, sizeof *timing->passed),
        .passed_ready = tarn_region_take(region, streams, sizeof *timing->passed_ready),
        .lookers = tarn_region_take(region, streams, sizeof *timing->lookers),
        .looks = tarn_region_take(region, streams, sizeof *timing->looks)};
    if (timing->row_of) number_rows(timing, graph, &rows);
    timing->rows = tarn_region_take(region, rows * streams, sizeof *timing->rows);
    return region->is_exhausted ? TARN_SYSTEM : TARN_OK;
}

/* The latest end in each stream before a view that others look through. */
static uint64_t *row_of(const struct timing_pass *pass, uint32_t view)
{
    assert(pass->timing->row_of[view] != TARN_NONE);
    return pass->timing->rows +
           (size_t)pass->timing->row_of[view] * pass->model->graph->streams_count;
}

/* When op v may begin, by its waits for other streams. */
static uint64_t source_ready(const struct timing_pass *pass, uint32_t v)
{
    const struct tarn_graph *graph = pass->model->graph;
    const struct tarn_arcs *arcs = &graph->predecessors;
    uint64_t ready = 0;
    for (uint32_t i = arcs->begin[v]; i < arcs->begin[v + 1]; i++) {
        uint32_t u = arcs->ops[i];
        if (!graph->ops[u].view) {
            ready = tarn_larger(ready, pass->timing->op_end[u] + TARN_WAIT_NS);
            continue;
        }
        const uint64_t *row = row_of(pass, u);
        for (uint32_t s = 0; s < graph->streams_count; s++) {
            if (row[s] > 0 && s != graph->ops[v].stream)
                ready = tarn_larger(ready, row[s] + TARN_WAIT_NS);
        }
    }
    return ready;
}

/* Ops after the view in its stream wait for the ops launched before the view. */
static void pass_view(const struct timing_pass *pass, uint32_t v)
{
    const struct tarn_graph *graph = pass->model->graph;
    const struct tarn_arcs *arcs = &graph->predecessors;
    struct tarn_timing *timing = pass->timing;
    uint32_t own = graph->ops[v].stream, streams = graph->streams_count;
    uint64_t *passed = timing->passed + (size_t)own * streams;
    if (arcs->begin[v] < arcs->begin[v + 1] && !timing->looks[own]) {
        timing->looks[own] = true;
        timing->lookers[timing->lookers_count++] = own;
    }
    for (uint32_t i = arcs->begin[v]; i < arcs->begin[v + 1]; i++) {
        uint32_t u = arcs->ops[i], s = graph->ops[u].stream;
        if (!graph->ops[u].view) passed[s] = tarn_larger(passed[s], timing->op_end[u]);
        for (s = 0; s < streams && graph->ops[u].view; s++)
            passed[s] = tarn_larger(passed[s], row_of(pass, u)[s]);
    }
    for (uint32_t s = 0; s < streams && arcs->begin[v] < arcs->begin[v + 1]; s++) {
        if (s != own && passed[s] > 0)
            timing->passed_ready[own] =
                tarn_larger(timing->passed_ready[own], passed[s] + TARN_WAIT_NS);
    }
    if (timing->row_of[v] == TARN_NONE) return;
    memcpy(row_of(pass, v), passed, streams * sizeof *passed);
    row_of(pass, v)[own] = timing->stream_end[own];
}

/* When an execution could begin on a stream, by its reads. */
static uint64_t reads_ready(const struct timing_pass *pass, const struct tarn_execution *execution,
                            uint32_t stream)
{
    const struct tarn_schedule *schedule = pass->schedule;
    const struct tarn_form *form = &pass->model->forms[execution->form];
    uint64_t ready =
        tarn_larger(pass->timing->stream_end[stream], pass->timing->passed_ready[stream]);
    for (uint32_t k = 0; k < form->reads.end - form->reads.begin; k++) {
        uint32_t birth = schedule->copies[schedule->reads[execution->reads + k]].birth;
        if (schedule->executions[birth].stream != stream)
            ready = tarn_larger(ready, pass->timing->end[birth] + TARN_WAIT_NS);
    }
    return ready;
}

/* The stream of an execution that is asked for by op v. What communicates stays on its own: other
 * devices match it by its place among the ops there. */
static uint32_t choose_stream(const struct timing_pass *pass,
                              const struct tarn_execution *execution, uint32_t v)
{
    const struct tarn_graph *graph = pass->model->graph;
    uint32_t asking = graph->ops[v].stream;
    const struct tarn_form *form = &pass->model->forms[execution->form];
    uint32_t home = graph->ops[form->op].stream;
    if (form->communicates) return home;
    if (pass->rule == TARN_RECOMPUTE_WHERE_ASKED || home == asking) return asking;
    if (pass->rule == TARN_RECOMPUTE_AT_HOME) return home;
    return reads_ready(pass, execution, home) < reads_ready(pass, execution, asking) ? home
                                                                                     : asking;
}

/* Forgets passed ends: a launch in the stream ends later than all ops that it has waited for. */
static void forget_passed(struct tarn_timing *timing, uint32_t stream, uint32_t streams)
{
    if (timing->passed_ready[stream] == 0) return;
    memset(timing->passed + (size_t)stream * streams, 0, streams * sizeof *timing->passed);
    timing->passed_ready[stream] = 0;
}

static void run_execution(const struct timing_pass *pass, uint32_t e, uint32_t v)
{
    struct tarn_timing *timing = pass->timing;
    struct tarn_execution *execution = &pass->schedule->executions[e];
    execution->stream = choose_stream(pass, execution, v);
    uint64_t begin = reads_ready(pass, execution, execution->stream);
    if (!execution->recomputed) begin = tarn_larger(begin, source_ready(pass, v));
    timing->end[e] = begin + tarn_execution_ns(pass->model, execution);
    timing->stream_end[execution->stream] = timing->end[e];
    forget_passed(timing, execution->stream, pass->model->graph->streams_count);
    if (!execution->recomputed) timing->op_end[v] = timing->end[e];
}

static void run_all(const struct timing_pass *pass)
{
    const struct tarn_graph *graph = pass->model->graph;
    struct tarn_timing *timing = pass->timing;
    struct tarn_schedule *schedule = pass->schedule;
    size_t streams = graph->streams_count;
    memset(timing->stream_end, 0, streams * sizeof *timing->stream_end);
    for (; timing->lookers_count > 0; timing->lookers_count--) {
        uint32_t own = timing->lookers[timing->lookers_count - 1];
        timing->looks[own] = false;
        memset(timing->passed + own * streams, 0, streams * sizeof *timing->passed);
    }
    memset(timing->passed_ready, 0, streams * sizeof *timing->passed_ready);
    for (uint32_t i = 0, e = 0, place = 0; i < graph->ops_count; i++) {
        uint32_t v = graph->order[i];
        if (graph->ops[v].view) {
            pass_view(pass, v);
            continue;
        }
        for (; e < schedule->count && schedule->executions[e].place == place; e++)
            run_execution(pass, e, v);
        place++;
    }
    schedule->time_ns = 0;
    for (uint32_t s = 0; s < graph->streams_count; s++)
        schedule->time_ns = tarn_larger(schedule->time_ns, timing->stream_end[s]);
}

bool tarn_schedule_time(struct tarn_schedule *schedule, const struct tarn_recompute_model *model,
                        enum tarn_recompute_streams rule, struct tarn_timing *timing)
{
    const struct timing_pass pass = {timing, schedule, model, rule};
    size_t count = timing->end ? schedule->count : 2 * (size_t)schedule->count;
    uint64_t *end =
        tarn_region_grow(timing->region, timing->end, &timing->room, count, sizeof *end);
    if (!end) return false;
    timing->end = end;
    run_all(&pass);
    schedule->end_ns = timing->end;
    return true;
}
