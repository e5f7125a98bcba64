/* Makes the schedule of a policy, and finds its peak.
 *
 * First pass: the primary ops in their order, and before each of them the dropped versions that its
 * reads miss, found by depth-first search down to versions that are there. Each read is noted at
 * the copy that it means. Second pass: a copy lives from its birth to its last read, over the copy
 * that it overwrites if that copy is read for the last time then. Implementations must fit beside
 * the sum of the copies alive. Cost: linear in the reads and writes of all executions. */
#include "evaluator.h"

#include <assert.h>
#include <string.h>

/* Executions of all ops together, as a multiple of the ops, before a policy is given up. */
enum { EXECUTIONS_MAX = 64 };

/* Room for schedules at the start, as a multiple of the schedule that keeps everything. If lists
 * grow beyond it, the shorter arrays stay in the region. */
enum { ROOM = 2 };

/* ---- Room ---- */

/* Has every op before the first backward op one form to run in? */
static bool begins_alike(const struct tarn_recompute_model *model)
{
    for (uint32_t place = 0; place < model->first_backward; place++) {
        struct tarn_range forms = model->op_forms[model->order[place]];
        uint32_t whole = 0;
        for (uint32_t f = forms.begin; f < forms.end; f++) {
            whole += model->forms[f].whole;
            if (model->forms[f].splits) return false;
        }
        if (whole != 1) return false;
    }
    return true;
}

/* Room for a schedule of this many executions, copies and reads; false: no memory. */
static bool make_room(struct tarn_evaluator *evaluator, size_t executions_count,
                      size_t copies_count, size_t reads_count)
{
    struct tarn_schedule *schedule = &evaluator->schedule;
    struct tarn_region *region = evaluator->region;
    struct tarn_execution *executions =
        tarn_region_grow(region, schedule->executions, &evaluator->executions_room,
                         executions_count, sizeof *executions);
    if (executions) schedule->executions = executions;
    struct tarn_copy *copies = tarn_region_grow(region, schedule->copies, &evaluator->copies_room,
                                                copies_count, sizeof *copies);
    if (copies) schedule->copies = copies;
    uint32_t *reads = tarn_region_grow(region, schedule->reads, &evaluator->reads_room, reads_count,
                                       sizeof *reads);
    if (reads) schedule->reads = reads;
    return executions && copies && reads;
}

/* Makes room for one execution more, of the form. */
static bool has_room(struct tarn_evaluator *evaluator, const struct tarn_form *form)
{
    size_t executions = (size_t)evaluator->schedule.count + 1;
    size_t copies =
        (size_t)evaluator->schedule.copies_count + form->writes.end - form->writes.begin;
    size_t reads = (size_t)evaluator->schedule.reads_count + form->reads.end - form->reads.begin;
    if (executions <= evaluator->executions_room && copies <= evaluator->copies_room &&
        reads <= evaluator->reads_room)
        return true;
    return make_room(evaluator, executions, copies, reads);
}

/* Of all ops as they were written. */
static size_t own_reads(const struct tarn_recompute_model *model)
{
    size_t reads = 0;
    for (uint32_t place = 0; place < model->ops_count; place++) {
        const struct tarn_form *own = &model->forms[model->op_forms[model->order[place]].begin];
        reads += own->reads.end - own->reads.begin;
    }
    return reads;
}

struct tarn_evaluator *tarn_evaluator_create(struct tarn_region *region,
                                             const struct tarn_recompute_model *model)
{
    struct tarn_evaluator *evaluator = tarn_region_take(region, 1, sizeof *evaluator);
    if (!evaluator) return NULL;
    size_t versions = model->versions_count, storages = model->graph->storages_count;
    struct beginning *beginning = &evaluator->beginning;
    evaluator->model = model;
    evaluator->region = evaluator->lives.region = region;
    evaluator->latest = tarn_region_take(region, versions, sizeof *evaluator->latest);
    evaluator->updates = tarn_region_take(region, storages, sizeof *evaluator->updates);
    evaluator->passing = tarn_region_take(region, versions, sizeof *evaluator->passing);
    evaluator->frames =
        tarn_region_take(region, (size_t)model->graph->ops_count + 2, sizeof *evaluator->frames);
    evaluator->guessed = tarn_region_take(region, versions, sizeof *evaluator->guessed);
    beginning->latest = tarn_region_take(region, versions, sizeof *beginning->latest);
    beginning->updates = tarn_region_take(region, storages, sizeof *beginning->updates);
    evaluator->begins_alike = begins_alike(model);
    if (region->is_exhausted || tarn_tail_init(&evaluator->tail, region, model) != TARN_OK ||
        tarn_timing_init(&evaluator->timing, region, model->graph) != TARN_OK)
        return NULL;
    bool enough = make_room(evaluator, (size_t)ROOM * model->ops_count, (size_t)ROOM * versions,
                            (size_t)ROOM * own_reads(model));
    return enough ? evaluator : NULL;
}

/* ---- Executions ---- */

static void execute(struct tarn_evaluator *evaluator, uint32_t f, bool recomputed)
{
    const struct tarn_recompute_model *model = evaluator->model;
    const struct tarn_form *form = &model->forms[f];
    uint32_t copy = evaluator->schedule.copies_count;
    if (!has_room(evaluator, form)) {
        evaluator->no_memory = true;
        return;
    }
    bool is_there = tarn_schedule_append(&evaluator->schedule, model, evaluator->latest, f,
                                         evaluator->place, recomputed);
    assert(is_there);
    (void)is_there;
    for (uint32_t i = form->writes.begin; i < form->writes.end && recomputed; i++, copy++) {
        uint32_t w = model->writes[i];
        if (evaluator->latest[w] == copy && !evaluator->policy->retain[w])
            evaluator->passing[evaluator->passing_count++] = w;
    }
}

/* The first read of a frame that is not there, or TARN_NONE. */
static uint32_t next_missing(const struct tarn_evaluator *evaluator, struct frame *frame)
{
    uint32_t end = evaluator->model->forms[frame->form].reads.end;
    for (; frame->next < end; frame->next++) {
        uint32_t version = evaluator->model->reads[frame->next];
        if (evaluator->latest[version] == TARN_NONE) return version;
    }
    return TARN_NONE;
}

/* Runs a primary op, or a recomputation, after the executions that its reads need. */
static void run(struct tarn_evaluator *evaluator, uint32_t f, bool again)
{
    const struct tarn_recompute_model *model = evaluator->model;
    uint32_t depth = 0;
    evaluator->frames[depth++] = (struct frame){f, model->forms[f].reads.begin};
    while (depth > 0 && !evaluator->no_memory) {
        struct frame *frame = &evaluator->frames[depth - 1];
        uint32_t missing = next_missing(evaluator, frame);
        if (missing == TARN_NONE) {
            execute(evaluator, frame->form, --depth > 0 || again);
            continue;
        }
        uint32_t g = tarn_evaluator_form_for(evaluator, missing);
        if (g == TARN_NONE || depth > model->graph->ops_count ||
            evaluator->schedule.count / EXECUTIONS_MAX > model->ops_count) {
            evaluator->stuck = true;
            return;
        }
        evaluator->frames[depth++] = (struct frame){g, model->forms[g].reads.begin};
    }
}

static bool has_failed(const struct tarn_evaluator *evaluator)
{
    return evaluator->stuck || evaluator->no_memory;
}

/* ---- First pass ---- */

static void count_updates(struct tarn_evaluator *evaluator, uint32_t v)
{
    const struct tarn_graph *graph = evaluator->model->graph;
    const struct tarn_graph_op *op = &graph->ops[v];
    for (uint32_t k = 0; k < op->outputs_count; k++) {
        uint32_t storage = graph->tensors[tarn_outputs(op)[k]].storage;
        if (graph->storages[storage].persistent) evaluator->updates[storage]++;
    }
}

static void run_primary(struct tarn_evaluator *evaluator, uint32_t v)
{
    struct tarn_range range = evaluator->model->op_forms[v];
    uint32_t f = evaluator->policy->form[v];
    if (f == TARN_NONE) f = tarn_evaluator_cheapest_form(evaluator, range);
    run(evaluator, f, false);
    for (uint32_t g = range.begin; g < range.end && evaluator->model->forms[f].splits; g++) {
        if (g != f && evaluator->model->forms[g].splits && !has_failed(evaluator))
            run(evaluator, g, false);
    }
    count_updates(evaluator, v);
    while (evaluator->passing_count > 0)
        evaluator->latest[evaluator->passing[--evaluator->passing_count]] = TARN_NONE;
}

/* Forgets versions that the policy does not keep for later ops. */
static void drop_versions(struct tarn_evaluator *evaluator)
{
    const struct tarn_recompute_model *model = evaluator->model;
    for (; evaluator->next_drop < model->drops_count; evaluator->next_drop++) {
        uint32_t w = model->drops[evaluator->next_drop];
        if (model->versions[w].dropped_at > evaluator->place) return;
        if (!evaluator->policy->keep[w]) evaluator->latest[w] = TARN_NONE;
    }
}

/* Recomputes a version for later ops. */
static void run_early(struct tarn_evaluator *evaluator, uint32_t version)
{
    uint32_t f = tarn_evaluator_form_for(evaluator, version);
    evaluator->stuck = f == TARN_NONE;
    if (!evaluator->stuck) run(evaluator, f, true);
}

/* Launches repetitions that the policy lets run ahead of their readers. */
static void launch(struct tarn_evaluator *evaluator)
{
    const struct tarn_recompute_model *model = evaluator->model;
    const struct tarn_policy *policy = evaluator->policy;
    for (; evaluator->next_launch < model->launches_count && !has_failed(evaluator);
         evaluator->next_launch++) {
        const struct tarn_recompute_launch *launch = &model->launches[evaluator->next_launch];
        uint32_t w = launch->version;
        if (launch->place > evaluator->place) return;
        if (!policy->keep[w] && policy->ahead[w] == launch->ahead &&
            evaluator->latest[w] == TARN_NONE)
            run_early(evaluator, w);
    }
}

/* Applies the cuts of the policy at this place: drops and recomputations. */
static void make_cuts(struct tarn_evaluator *evaluator)
{
    const struct tarn_policy *policy = evaluator->policy;
    for (; evaluator->next_cut < policy->cuts_count && !has_failed(evaluator);
         evaluator->next_cut++) {
        const struct tarn_cut *cut = &policy->cuts[evaluator->next_cut];
        if (cut->place > evaluator->place) return;
        if (!cut->again) {
            evaluator->latest[cut->version] = TARN_NONE;
        } else if (evaluator->latest[cut->version] == TARN_NONE) {
            run_early(evaluator, cut->version);
        }
    }
}

static void run_places(struct tarn_evaluator *evaluator, uint32_t begin, uint32_t end)
{
    for (evaluator->place = begin; evaluator->place < end && !has_failed(evaluator);
         evaluator->place++) {
        drop_versions(evaluator);
        make_cuts(evaluator);
        launch(evaluator);
        if (has_failed(evaluator)) return;
        run_primary(evaluator, evaluator->model->order[evaluator->place]);
    }
}

static void run_beginning(struct tarn_evaluator *evaluator)
{
    const struct tarn_recompute_model *model = evaluator->model;
    evaluator->schedule.count = evaluator->schedule.copies_count = 0;
    evaluator->schedule.reads_count = 0;
    memset(evaluator->updates, 0, model->graph->storages_count * sizeof *evaluator->updates);
    memset(evaluator->latest, 0xff, model->versions_count * sizeof *evaluator->latest);
    run_places(evaluator, 0, model->first_backward);
}

static void remember_beginning(struct tarn_evaluator *evaluator)
{
    struct beginning *beginning = &evaluator->beginning;
    const struct tarn_schedule *schedule = &evaluator->schedule;
    uint32_t *last_read =
        tarn_region_take(evaluator->region, schedule->copies_count, sizeof *last_read);
    if (!last_read) {
        evaluator->no_memory = true;
        return;
    }
    beginning->last_read = last_read;
    for (uint32_t c = 0; c < schedule->copies_count; c++)
        last_read[c] = schedule->copies[c].last_read;
    beginning->count = schedule->count;
    beginning->copies_count = schedule->copies_count;
    beginning->reads_count = schedule->reads_count;
    memcpy(beginning->latest, evaluator->latest,
           evaluator->model->versions_count * sizeof *evaluator->latest);
    memcpy(beginning->updates, evaluator->updates,
           evaluator->model->graph->storages_count * sizeof *evaluator->updates);
    beginning->is_known = true;
}

/* Restores the beginning. Its executions, copies and reads are still there: only later entries have
 * changed. */
static void recall_beginning(struct tarn_evaluator *evaluator)
{
    const struct beginning *beginning = &evaluator->beginning;
    assert(beginning->is_known && evaluator->begins_alike);
    struct tarn_schedule *schedule = &evaluator->schedule;
    schedule->count = beginning->count;
    schedule->copies_count = beginning->copies_count;
    schedule->reads_count = beginning->reads_count;
    for (uint32_t c = 0; c < schedule->copies_count; c++)
        schedule->copies[c].last_read = beginning->last_read[c];
    memcpy(evaluator->latest, beginning->latest,
           evaluator->model->versions_count * sizeof *evaluator->latest);
    memcpy(evaluator->updates, beginning->updates,
           evaluator->model->graph->storages_count * sizeof *evaluator->updates);
}

static void run_all(struct tarn_evaluator *evaluator)
{
    evaluator->stuck = evaluator->no_memory = false;
    evaluator->passing_count = evaluator->next_drop = evaluator->next_cut = evaluator->next_launch =
        0;
    bool is_cut = evaluator->policy->cuts_count > 0, alike = evaluator->begins_alike && !is_cut;
    if (is_cut) evaluator->beginning.is_known = false; /* the stored beginning is another one now */
    if (alike && evaluator->beginning.is_known) {
        recall_beginning(evaluator);
    } else {
        run_beginning(evaluator);
        if (alike && !has_failed(evaluator)) remember_beginning(evaluator);
    }
    run_places(evaluator, evaluator->model->first_backward,
               evaluator->whole ? evaluator->model->ops_count : evaluator->tail.place);
}
/* ---- The whole ---- */

/* Notes the tail's reads of versions that are there when it begins. */
static void read_by_tail(struct tarn_evaluator *evaluator)
{
    struct tarn_schedule *schedule = &evaluator->schedule;
    for (uint32_t i = 0; i < evaluator->tail.reads_count; i++) {
        const struct tarn_tail_read *read = &evaluator->tail.reads[i];
        assert(evaluator->latest[read->version] != TARN_NONE);
        schedule->copies[evaluator->latest[read->version]].last_read =
            schedule->count + read->offset;
    }
}

static const struct tarn_schedule *evaluate(struct tarn_evaluator *evaluator,
                                            const struct tarn_policy *policy, uint64_t budget,
                                            enum tarn_recompute_streams rule)
{
    struct tarn_schedule *schedule = &evaluator->schedule;
    bool parallel = evaluator->model->graph->streams_count > 1;
    evaluator->policy = policy;
    schedule->peak = schedule->work_ns = schedule->recomputed_ns = 0;
    schedule->excess = 0;
    run_all(evaluator);
    if (evaluator->no_memory) return NULL;
    if (evaluator->stuck) {
        schedule->peak = schedule->time_ns = schedule->work_ns = UINT64_MAX;
        return schedule;
    }
    if (!evaluator->whole) read_by_tail(evaluator);
    const struct tarn_tail *tail = evaluator->whole ? NULL : &evaluator->tail;
    if (!tarn_schedule_measure(schedule, evaluator->model, tail, &evaluator->lives, budget))
        return NULL;
    schedule->time_ns = schedule->work_ns;
    if (parallel && !tarn_schedule_time(schedule, evaluator->model, rule, &evaluator->timing))
        return NULL;
    return schedule;
}

const struct tarn_schedule *tarn_evaluate(struct tarn_evaluator *evaluator,
                                          const struct tarn_policy *policy, uint64_t budget)
{
    /* With several streams the tail takes part, and cuts may be anywhere. */
    evaluator->whole = evaluator->model->graph->streams_count > 1 || policy->cuts_count > 0;
    return evaluate(evaluator, policy, budget, TARN_RECOMPUTE_SOONEST);
}

const struct tarn_schedule *tarn_evaluate_whole(struct tarn_evaluator *evaluator,
                                                const struct tarn_policy *policy, uint64_t budget,
                                                enum tarn_recompute_streams rule)
{
    evaluator->whole = true;
    return evaluate(evaluator, policy, budget, rule);
}
