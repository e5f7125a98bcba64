/* When the executions of a schedule run, by the model of tarn/simulate.h: in their order each
 * begins at the latest of its stream's last end and of the ends that it waits for in other streams.
 * A primary op waits for whom it waited in the source graph, and every execution for whoever wrote
 * the copies that it reads. What follows from other waits ends earlier anyway, so no wait needs to
 * be left out.
 *
 * The result is an estimate that guides the search; the time that is told is simulated on the graph
 * that is built. It may be longer than that one: where a primary op reads a copy instead of what it
 * waited for, and where a view in another stream carries a wait, which costs two waits here and one
 * there. It may be shorter where the graph that is built has arcs against overwriting. Cost: linear
 * in the ops, arcs and reads. */
#include "recompute_time.h"

#include <stdlib.h>
#include <string.h>

#include "recompute_measure.h"
#include "tarn/simulate.h"

struct timing_pass {
    struct tarn_timing *timing;
    struct tarn_schedule *schedule;
    const struct tarn_recompute_model *model;
    enum tarn_recompute_streams rule;
};

enum tarn_status tarn_timing_init(struct tarn_timing *timing, const struct tarn_graph *graph)
{
    *timing = (struct tarn_timing){
        .stream_end = malloc(((size_t)graph->streams_count + 1) * sizeof *timing->stream_end),
        .op_end = malloc(((size_t)graph->ops_count + 1) * sizeof *timing->op_end)};
    if (timing->stream_end && timing->op_end) return TARN_OK;
    tarn_timing_finish(timing);
    return TARN_SYSTEM;
}

void tarn_timing_finish(struct tarn_timing *timing)
{
    free(timing->stream_end);
    free(timing->op_end);
    free(timing->end);
    *timing = (struct tarn_timing){0};
}

static uint64_t later_of(uint64_t a, uint64_t b) { return a > b ? a : b; }

/* The latest end among those that op v waits for in other streams. */
static uint64_t source_ready(const struct timing_pass *pass, uint32_t v)
{
    const struct tarn_arcs *arcs = &pass->model->graph->predecessors;
    uint64_t ready = 0;
    for (uint32_t i = arcs->begin[v]; i < arcs->begin[v + 1]; i++)
        ready = later_of(ready, pass->timing->op_end[arcs->ops[i]] + TARN_WAIT_NS);
    return ready;
}

/* When an execution could begin on a stream, by what it reads. */
static uint64_t reads_ready(const struct timing_pass *pass, const struct tarn_execution *execution,
                            uint32_t stream)
{
    const struct tarn_schedule *schedule = pass->schedule;
    const struct tarn_form *form = &pass->model->forms[execution->form];
    uint64_t ready = pass->timing->stream_end[stream];
    for (uint32_t k = 0; k < form->reads.end - form->reads.begin; k++) {
        uint32_t birth = schedule->copies[schedule->reads[execution->reads + k]].birth;
        if (schedule->executions[birth].stream != stream)
            ready = later_of(ready, pass->timing->end[birth] + TARN_WAIT_NS);
    }
    return ready;
}

/* The stream of an execution that is asked for by op v. */
static uint32_t choose_stream(const struct timing_pass *pass,
                              const struct tarn_execution *execution, uint32_t v)
{
    const struct tarn_graph *graph = pass->model->graph;
    uint32_t asking = graph->ops[v].stream;
    uint32_t home = graph->ops[pass->model->forms[execution->form].op].stream;
    if (pass->rule == TARN_RECOMPUTE_WHERE_ASKED || home == asking) return asking;
    if (pass->rule == TARN_RECOMPUTE_AT_HOME) return home;
    return reads_ready(pass, execution, home) < reads_ready(pass, execution, asking) ? home
                                                                                     : asking;
}

static void run_execution(const struct timing_pass *pass, uint32_t e, uint32_t v)
{
    struct tarn_timing *timing = pass->timing;
    struct tarn_execution *execution = &pass->schedule->executions[e];
    execution->stream = choose_stream(pass, execution, v);
    uint64_t begin = reads_ready(pass, execution, execution->stream);
    if (!execution->recomputed) begin = later_of(begin, source_ready(pass, v));
    timing->end[e] = begin + tarn_execution_ns(pass->model, execution);
    timing->stream_end[execution->stream] = timing->end[e];
    if (!execution->recomputed) timing->op_end[v] = timing->end[e];
}

static void run_all(const struct timing_pass *pass)
{
    const struct tarn_graph *graph = pass->model->graph;
    struct tarn_timing *timing = pass->timing;
    struct tarn_schedule *schedule = pass->schedule;
    memset(timing->stream_end, 0, graph->streams_count * sizeof *timing->stream_end);
    for (uint32_t i = 0, e = 0, place = 0; i < graph->ops_count; i++) {
        uint32_t v = graph->order[i], s = graph->ops[v].stream;
        if (graph->ops[v].view) {
            timing->stream_end[s] = later_of(timing->stream_end[s], source_ready(pass, v));
            timing->op_end[v] = timing->stream_end[s];
            continue;
        }
        for (; e < schedule->count && schedule->executions[e].place == place; e++)
            run_execution(pass, e, v);
        place++;
    }
    schedule->time_ns = 0;
    for (uint32_t s = 0; s < graph->streams_count; s++)
        schedule->time_ns = later_of(schedule->time_ns, timing->stream_end[s]);
}

bool tarn_schedule_time(struct tarn_schedule *schedule, const struct tarn_recompute_model *model,
                        enum tarn_recompute_streams rule, struct tarn_timing *timing)
{
    const struct timing_pass pass = {timing, schedule, model, rule};
    if (!timing->end || schedule->count > timing->capacity) {
        uint32_t capacity = 2 * schedule->count + 64;
        uint64_t *end = realloc(timing->end, capacity * sizeof *end);
        if (!end) return false;
        timing->end = end;
        timing->capacity = capacity;
    }
    run_all(&pass);
    schedule->end_ns = timing->end;
    return true;
}
