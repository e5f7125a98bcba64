/* Computes when launches run, by one of five axes. By list order: launch v takes step v. By
 * modelled time: a launch begins when the launch before it in its stream has ended, and a wait's
 * time after the launches that it waits for. Through the cut: first all launches that must come
 * before the last launches below the cut, then these last launches (which no launch below the cut
 * follows) at the same time, then the rest. So every storage of the certificate is in use at that
 * moment. By a trace: as it ran. In the order in which something goes wrong: its steps, with the
 * steps of a next iteration left free, then the launches that it does not reach. Cost: see
 * schedule.h. */
#include "schedule.h"

#include <math.h>
#include <stdlib.h>

#define WAIT_NS 3000    /* of an event wait, as `tarn info` has it */
#define FLIGHT_SHARE 40 /* the launches at the cut are drawn as wide as a 40th of all */

static void follow_order(struct tarn_model_schedule *schedule, const struct tarn_model *model)
{
    for (uint32_t v = 0; v < model->launches_count; v++) {
        schedule->begin[v] = v;
        schedule->end[v] = (uint64_t)v + 1;
    }
}

/* ---- Modelled time ---- */

static uint64_t later(uint64_t a, uint64_t b) { return a > b ? a : b; }

/* Without costs, every launch takes one step and a wait nothing. */
static void follow_costs(struct tarn_model_schedule *schedule, const struct tarn_model *model)
{
    for (uint32_t v = 0; v < model->launches_count; v++)
        if (model->launches[v].cost > 0) schedule->is_time = true;
    for (uint32_t v = 0; v < model->launches_count; v++) {
        const struct tarn_launch *launch = &model->launches[v];
        uint64_t begin = 0;
        if (launch->place > 0)
            begin = schedule->end[tarn_model_at(model, launch->stream, launch->place - 1)];
        for (uint32_t i = model->waits.begin[v]; i < model->waits.begin[v + 1]; i++)
            begin = later(begin,
                          schedule->end[model->waits.ids[i]] + (schedule->is_time ? WAIT_NS : 0));
        schedule->begin[v] = begin;
        schedule->end[v] = begin + (schedule->is_time ? launch->cost : 1);
    }
}

/* ---- Through the cut ---- */

/* below[s]: how many launches of stream s come before the cut, or before one that does.
 * preceded[v]: some launch below the cut comes after v. */
struct cut {
    uint32_t *below;
    bool *preceded;
};

static bool find_cut(struct cut *cut, struct tarn_memory *memory, const struct tarn_model *model)
{
    cut->below = tarn_memory_take(memory, model->streams_count, sizeof *cut->below);
    cut->preceded = tarn_memory_take(memory, model->launches_count, sizeof *cut->preceded);
    if (!cut->below || !cut->preceded) return false;
    for (tarn_stream s = 0; s < model->streams_count; s++)
        cut->below[s] = model->certificate.launched[s];
    for (uint32_t v = model->launches_count; v-- > 0;) { /* waiters come later in the order */
        const struct tarn_launch *launch = &model->launches[v];
        uint32_t begun = cut->below[launch->stream] + tarn_model_cuts_inside(model, launch->stream);
        if (launch->place >= begun) continue;
        if (launch->place + 1 < begun) cut->preceded[v] = true;
        for (uint32_t i = model->waits.begin[v]; i < model->waits.begin[v + 1]; i++) {
            uint32_t u = model->waits.ids[i];
            const struct tarn_launch *on = &model->launches[u];
            cut->preceded[u] = true;
            if (on->place >= cut->below[on->stream]) cut->below[on->stream] = on->place + 1;
        }
    }
    return true;
}

static bool is_halved(const struct tarn_model *model, uint32_t v)
{
    struct tarn_op_info info;
    return tarn_graph_op(model->graph, model->launches[v].op, &info) && info.workspace > 0 &&
           info.workspace_first;
}

/* When v runs: 0 before the moment, 1 in flight, 2 after it. */
static int part_of(const struct tarn_model *model, const struct cut *cut, uint32_t v)
{
    const struct tarn_launch *launch = &model->launches[v];
    uint32_t below = cut->below[launch->stream];
    if (launch->place < below) return cut->preceded[v] ? 0 : 1;
    return launch->place == below && tarn_model_cuts_inside(model, launch->stream) ? 1 : 2;
}

/* If ops in flight have halves, the moment is the second half of ops below the cut, and the first
 * half of ops that the cut goes through, which begin later. */
static void go_through_cut(struct tarn_model_schedule *schedule, const struct tarn_model *model,
                           const struct cut *cut)
{
    uint64_t at = 0, half = model->launches_count / FLIGHT_SHARE / 2 + 1, delay = 0;
    for (uint32_t v = 0; v < model->launches_count; v++)
        if (part_of(model, cut, v) == 1 && is_halved(model, v)) delay = half;
    for (int part = 0; part < 3; part++) {
        for (uint32_t v = 0; v < model->launches_count; v++) {
            if (part_of(model, cut, v) != part) continue;
            const struct tarn_launch *launch = &model->launches[v];
            bool is_through = part == 1 && launch->place >= cut->below[launch->stream];
            schedule->begin[v] = at + (is_through ? half : 0);
            schedule->end[v] = schedule->begin[v] + (part == 1 ? 2 * half : 1);
            if (part == 1)
                schedule->flight_count++;
            else
                at++;
        }
        if (part != 1) continue;
        schedule->mark_begin = at + delay;
        schedule->mark_end = at + 2 * half;
        if (schedule->flight_count > 0) at += 2 * half + delay;
    }
    schedule->has_mark = schedule->flight_count > 0;
}

static bool follow_cut(struct tarn_model_schedule *schedule, const struct tarn_model *model)
{
    struct cut cut;
    if (!model->has_certificate || model->certificate.streams_count != model->streams_count ||
        model->is_cyclic)
        return false;
    for (tarn_stream s = 0; s < model->streams_count; s++)
        if (model->certificate.launched[s] > tarn_model_length(model, s)) return false;
    if (!find_cut(&cut, &schedule->memory, model)) return false;
    go_through_cut(schedule, model, &cut);
    return schedule->has_mark;
}

/* ---- A trace ---- */

/* Takes over an iteration's runs; false: a launch is missing. */
static bool take_iteration(struct tarn_model_schedule *schedule, const struct tarn_model *model,
                           const struct tarn_trace_entry *runs, size_t runs_count,
                           uint64_t iteration)
{
    uint32_t seen = 0;
    uint64_t zero = UINT64_MAX;
    for (uint32_t v = 0; v < model->launches_count; v++) schedule->end[v] = UINT64_MAX;
    for (size_t i = 0; i < runs_count; i++) {
        if (runs[i].iteration != iteration || runs[i].op >= tarn_graph_ops_count(model->graph))
            continue;
        uint32_t v = model->launch_of[runs[i].op];
        if (v == TARN_NONE || runs[i].end_ns < runs[i].begin_ns) continue;
        seen += schedule->end[v] == UINT64_MAX;
        schedule->begin[v] = runs[i].begin_ns;
        schedule->end[v] = runs[i].end_ns;
        if (runs[i].begin_ns < zero) zero = runs[i].begin_ns;
    }
    if (seen < model->launches_count || seen == 0) return false;
    for (uint32_t v = 0; v < model->launches_count; v++) {
        schedule->begin[v] -= zero;
        schedule->end[v] -= zero;
    }
    return true;
}

static bool follow_runs(struct tarn_model_schedule *schedule, const struct tarn_model *model,
                        const struct tarn_axis_source *source)
{
    uint64_t last = 0;
    schedule->is_time = true;
    for (size_t i = 0; i < source->runs_count; i++)
        if (source->runs[i].iteration > last) last = source->runs[i].iteration;
    /* The last one may have been cut off, one of the two is whole unless the trace is too short. */
    return take_iteration(schedule, model, source->runs, source->runs_count, last) ||
           (last > 0 &&
            take_iteration(schedule, model, source->runs, source->runs_count, last - 1));
}

/* ---- The order in which something goes wrong ---- */

static bool follow_steps(struct tarn_model_schedule *schedule, const struct tarn_model *model,
                         const struct tarn_axis_source *source)
{
    uint64_t at = 0;
    for (size_t i = 0; i < source->steps_count; i++, at++) {
        const struct tarn_step *step = &source->steps[i];
        bool is_op = step->op < tarn_graph_ops_count(model->graph);
        uint32_t v = is_op ? model->launch_of[step->op] : TARN_NONE;
        if (v == TARN_NONE || step->iteration > 0) continue;
        schedule->begin[v] = at;
        schedule->end[v] = at + 1;
    }
    if (at == 0) return false;
    schedule->mark_begin = at - 1;
    schedule->mark_end = at;
    schedule->has_mark = true;
    schedule->flight_count = 1;
    for (uint32_t v = 0; v < model->launches_count; v++) {
        if (schedule->end[v] > 0) continue;
        schedule->begin[v] = at++;
        schedule->end[v] = at;
    }
    return true;
}

/* ---- Any ---- */

bool tarn_schedule_init(struct tarn_model_schedule *schedule, const struct tarn_model *model,
                        enum tarn_axis axis, const struct tarn_axis_source *source)
{
    static const struct tarn_axis_source nothing = {NULL, 0, NULL, 0};
    bool is_there = true;
    if (!source) source = &nothing;
    *schedule = (struct tarn_model_schedule){.axis = axis};
    schedule->begin =
        tarn_memory_take(&schedule->memory, model->launches_count, sizeof *schedule->begin);
    schedule->end =
        tarn_memory_take(&schedule->memory, model->launches_count, sizeof *schedule->end);
    if (schedule->memory.is_exhausted) return false;
    switch (axis) {
    case TARN_AXIS_ORDER: follow_order(schedule, model); break;
    case TARN_AXIS_TIME: follow_costs(schedule, model); break;
    case TARN_AXIS_CUT: is_there = follow_cut(schedule, model); break;
    case TARN_AXIS_REAL: is_there = follow_runs(schedule, model, source); break;
    case TARN_AXIS_WRONG: is_there = follow_steps(schedule, model, source); break;
    }
    if (!is_there) {
        bool is_exhausted = schedule->memory.is_exhausted;
        tarn_schedule_finish(schedule);
        schedule->memory.is_exhausted = is_exhausted;
        return false;
    }
    schedule->length = 1;
    for (uint32_t v = 0; v < model->launches_count; v++)
        schedule->length = later(schedule->length, schedule->end[v]);
    return true;
}

void tarn_schedule_finish(struct tarn_model_schedule *schedule)
{
    tarn_memory_finish(&schedule->memory);
    *schedule = (struct tarn_model_schedule){0};
}

bool tarn_schedule_spans(const struct tarn_model_schedule *schedule, const struct tarn_model *model,
                         struct tarn_model_span *spans)
{
    struct tarn_memory memory = {NULL, false};
    uint32_t *first = tarn_memory_take(&memory, model->holders_count, sizeof *first);
    for (uint32_t h = 0; h < model->holders_count; h++) {
        const struct tarn_holder *holder = &model->holders[h];
        double begin = (double)schedule->begin[holder->writer];
        double middle = (begin + (double)schedule->end[holder->writer]) / 2;
        spans[h] = (struct tarn_model_span){holder->half == TARN_SECOND_HALF ? middle : begin, 0,
                                            (double)schedule->length};
        for (uint32_t i = 0; i < holder->touches_count; i++) {
            uint32_t v = holder->touches[i].launch;
            spans[h].end = fmax(spans[h].end, (double)schedule->end[v]);
            if (v != holder->writer) /* a use before the write: only of a refused plan */
                spans[h].begin = fmin(spans[h].begin, (double)schedule->begin[v]);
        }
        if (holder->pinned) spans[h].end = (double)schedule->length;
        if (holder->half == TARN_FIRST_HALF) spans[h].end = middle;
    }
    bool is_complete = first != NULL;
    for (tarn_stream s = 0; is_complete && s < model->streams_count; s++) {
        uint32_t length = tarn_model_length(model, s);
        is_complete = tarn_model_first(model, s, first) == TARN_OK;
        for (uint32_t h = 0; is_complete && h < model->holders_count; h++) {
            if (first[h] == length) continue;
            double begin = (double)schedule->begin[tarn_model_at(model, s, first[h])];
            spans[h].free = fmin(spans[h].free, begin);
        }
    }
    for (uint32_t h = 0; h < model->holders_count; h++)
        spans[h].free = model->holders[h].half == TARN_FIRST_HALF /* to the outputs at once */
                            ? spans[h].end
                            : fmax(spans[h].free, spans[h].end);
    tarn_memory_finish(&memory);
    return is_complete;
}

/* ---- Bytes in use ---- */

struct change {
    double at;
    int64_t alive, taken; /* bytes added at that step; modulo 2^64 */
};

static int compare_changes(const void *a, const void *b)
{
    const struct change *x = a, *y = b;
    return (x->at > y->at) - (x->at < y->at);
}

struct tarn_memory_level *tarn_schedule_levels(struct tarn_memory *memory,
                                               const struct tarn_model *model,
                                               const struct tarn_model_span *spans,
                                               tarn_space space, size_t *count)
{
    struct change *changes = tarn_memory_take(memory, model->holders_count, 3 * sizeof *changes);
    struct tarn_memory_level *levels =
        tarn_memory_take(memory, 3 * (size_t)model->holders_count + 1, sizeof *levels);
    size_t changes_count = 0;
    if (!changes || !levels) return NULL;
    for (uint32_t h = 0; h < model->holders_count; h++) {
        if (space != TARN_NONE && model->holders[h].space != space) continue;
        int64_t size = (int64_t)model->holders[h].size;
        int64_t reserved = (int64_t)tarn_holder_reserved(&model->holders[h]);
        changes[changes_count++] = (struct change){spans[h].begin, size, reserved};
        changes[changes_count++] = (struct change){spans[h].end, -size, 0};
        changes[changes_count++] = (struct change){spans[h].free, 0, -reserved};
    }
    qsort(changes, changes_count, sizeof *changes, compare_changes);
    struct tarn_memory_level now = {0, 0, 0};
    *count = 0;
    for (size_t i = 0; i < changes_count; i++) {
        bool is_new = i == 0 || changes[i].at != now.at;
        now.at = changes[i].at;
        now.alive += (uint64_t)changes[i].alive;
        now.taken += (uint64_t)changes[i].taken;
        levels[is_new ? (*count)++ : *count - 1] = now;
    }
    return levels;
}
