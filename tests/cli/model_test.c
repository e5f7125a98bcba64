/* The model that pictures and answers are made of, against the graph's own figures and against
 * definitions: every step of a way is program order or a wait, every neighbour of a verified plan
 * has its ways, the cut's moment holds what the certificate counts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "cli/model/schedule.h"
#include "cli/model/ways.h"
#include "streams/plan/plan.h"
#include "support/graph_files.h"
#include "support/random_graph.h"
#include "tarn.h"

struct subject {
    struct tarn_graph *graph;
    struct tarn_plan *plan;
    struct tarn_model model;
};

/* Takes the graph over. */
static void plan_padded(struct subject *subject, struct tarn_graph *graph,
                        enum tarn_group_padding padding)
{
    struct tarn_error error;
    struct tarn_plan_options *options =
        TARN_PLAN_OPTIONS(.alignment = 64, .threads = 1, .effort = TARN_NO_EFFORT,
                          .pad_groups = padding);
    subject->graph = graph;
    if (tarn_plan_create(graph, options, &subject->plan, &error)) fail_msg("%s", error.text);
    assert_int_equal(tarn_model_init(&subject->model, subject->plan, &error), TARN_OK);
}

static void plan_it(struct subject *subject, struct tarn_graph *graph)
{
    plan_padded(subject, graph, TARN_GROUPS_AS_GIVEN);
}

static void drop(struct subject *subject)
{
    tarn_model_finish(&subject->model);
    tarn_plan_destroy(subject->plan);
    tarn_graph_destroy(subject->graph);
}

static struct tarn_graph *load(const char *path)
{
    struct tarn_graph *graph;
    struct tarn_error error;
    if (tarn_graph_load(path, NULL, &graph, &error)) fail_msg("%s: %s", path, error.text);
    return graph;
}

/* Calls the check for some example files and random graphs. */
static void for_subjects(void (*check)(const struct subject *subject))
{
    static const char *const files[] = {"figure2.json", "figure7.json", "offload.json",
                                        "alexnet_b1_adam.ddp.json",
                                        "googlenet_b1_adam.ddp_branch4.json.gz"};
    struct subject subject;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char path[512];
        snprintf(path, sizeof path, "%s/examples/graphs/%s", TARN_SOURCE_DIR, files[i]);
        plan_it(&subject, load(path));
        check(&subject);
        drop(&subject);
    }
    for (uint64_t seed = 0; seed < DRAWS(400); seed++) {
        struct random_graph_options options = random_graph_knobs(seed, 40);
        options.early_share = seed % 2 ? 50 : 0;
        plan_padded(&subject, random_graph(&options),
                    seed % 3 ? TARN_GROUPS_EXACT : TARN_GROUPS_PADDED);
        check(&subject);
        drop(&subject);
    }
}

/* ---- Figures ---- */

static void check_figures(const struct subject *subject)
{
    const struct tarn_model *model = &subject->model;
    struct tarn_graph_summary summary;
    assert_int_equal(tarn_graph_summarize(subject->graph, &summary, NULL), TARN_OK);
    assert_int_equal(model->sum, summary.sum);
    assert_int_equal(model->holders_count, summary.storages);
    assert_int_equal(model->launches_count, summary.ops - summary.views);
    if (model->spaces_count == 1) assert_int_equal(model->serial_peak, summary.serial_peak);
}

static void figures_are_those_of_the_graph(void **state)
{
    (void)state;
    for_subjects(check_figures);
}

static void check_reserved(const struct subject *subject)
{
    const struct tarn_model *model = &subject->model;
    uint64_t footprint = 0;
    for (uint32_t h = 0; h < model->holders_count; h++) {
        const struct tarn_holder *holder = &model->holders[h];
        if (holder->offset + tarn_holder_reserved(holder) > footprint)
            footprint = holder->offset + tarn_holder_reserved(holder);
    }
    assert_int_equal(footprint, model->summary.footprint);
}

static void reserved_bytes_end_at_the_footprint(void **state)
{
    (void)state;
    for_subjects(check_reserved);
}

/* ---- Axes ---- */

static void check_order(const struct tarn_model_schedule *schedule, const struct tarn_model *model)
{
    for (uint32_t v = 0; v < model->launches_count; v++) {
        const struct tarn_launch *launch = &model->launches[v];
        assert_true(schedule->begin[v] <= schedule->end[v] && schedule->end[v] <= schedule->length);
        if (launch->place > 0)
            assert_true(schedule->begin[v] >=
                        schedule->end[tarn_model_at(model, launch->stream, launch->place - 1)]);
        for (uint32_t i = model->waits.begin[v]; i < model->waits.begin[v + 1]; i++)
            assert_true(schedule->begin[v] >= schedule->end[model->waits.ids[i]]);
    }
}

/* On every axis no two storages have the same byte at the same moment. */
static void check_bytes(const struct tarn_model *model, const struct tarn_model_span *spans)
{
    for (uint32_t a = 0; a < model->holders_count && model->holders_count < 500; a++)
        for (uint32_t b = 0; b < a; b++) {
            const struct tarn_holder *x = &model->holders[a], *y = &model->holders[b];
            bool same_bytes = x->offset < y->offset + tarn_holder_reserved(y) &&
                              y->offset < x->offset + tarn_holder_reserved(x);
            assert_false(same_bytes && spans[a].begin < spans[b].free &&
                         spans[b].begin < spans[a].free);
        }
}

static void check_axis(const struct subject *subject, enum tarn_axis axis,
                       const struct tarn_axis_source *source)
{
    const struct tarn_model *model = &subject->model;
    struct tarn_model_schedule schedule;
    struct tarn_memory memory = {NULL, false};
    size_t count;
    if (!tarn_schedule_init(&schedule, model, axis, source)) {
        assert_false(schedule.memory.is_exhausted);
        assert_true(axis == TARN_AXIS_CUT && model->certificate.bound == 0);
        return;
    }
    struct tarn_model_span *spans = tarn_memory_take(&memory, model->holders_count, sizeof *spans);
    assert_true(tarn_schedule_spans(&schedule, model, spans));
    struct tarn_memory_level *levels =
        tarn_schedule_levels(&memory, model, spans, TARN_NONE, &count);
    check_order(&schedule, model);
    check_bytes(model, spans);
    uint64_t alive = 0, certified = 0;
    for (size_t i = 0; i < count; i++) {
        if (levels[i].alive > alive) alive = levels[i].alive;
        assert_true(levels[i].taken <= model->summary.footprint);
    }
    if (axis == TARN_AXIS_ORDER) assert_int_equal(alive, model->serial_peak);
    for (uint32_t h = 0; h < model->holders_count && axis == TARN_AXIS_CUT; h++) {
        if (!model->holders[h].certified) continue;
        certified += tarn_holder_reserved(&model->holders[h]);
        assert_true(spans[h].begin <= (double)schedule.mark_begin &&
                    spans[h].free >= (double)schedule.mark_end);
    }
    if (axis == TARN_AXIS_CUT && model->certificate.gaps.count == 0)
        assert_true(model->spaces[0].bound >= certified && /* the end of a group is rounded up */
                    model->spaces[0].bound - certified < 64);
    tarn_memory_finish(&memory);
    tarn_schedule_finish(&schedule);
}

static void check_axes(const struct subject *subject)
{
    const struct tarn_model *model = &subject->model;
    struct tarn_trace_entry *runs = calloc(model->launches_count + 1, sizeof *runs);
    for (uint32_t v = 0; v < model->launches_count; v++)
        runs[v] = (struct tarn_trace_entry){model->launches[v].op, 3, 1000 + 10 * v, 1007 + 10 * v};
    runs[model->launches_count] =
        (struct tarn_trace_entry){0, 4, 5000000, 5000001}; /* was cut off */
    check_axis(subject, TARN_AXIS_ORDER, NULL);
    check_axis(subject, TARN_AXIS_TIME, NULL);
    check_axis(subject, TARN_AXIS_CUT, NULL);
    if (model->launches_count > 1)
        check_axis(
            subject, TARN_AXIS_REAL,
            &(struct tarn_axis_source){.runs = runs, .runs_count = model->launches_count + 1});
    free(runs);
}

static void no_byte_has_two_holders_on_any_axis(void **state)
{
    (void)state;
    for_subjects(check_axes);
}

static void a_trace_without_a_launch_gives_no_axis(void **state)
{
    (void)state;
    struct subject subject;
    struct tarn_model_schedule schedule;
    struct tarn_trace_entry runs[] = {{0, 0, 1, 2}, {1, 0, 2, 3}, {4000000, 0, 1, 2}};
    plan_it(&subject, load(TARN_SOURCE_DIR "/examples/graphs/figure7.json"));
    assert_false(tarn_schedule_init(&schedule, &subject.model, TARN_AXIS_REAL,
                                    &(struct tarn_axis_source){.runs = runs, .runs_count = 3}));
    assert_false(tarn_schedule_init(&schedule, &subject.model, TARN_AXIS_REAL, NULL));
    drop(&subject);
}

/* ---- Ways ---- */

static bool waits_for(const struct tarn_lists *waits, uint32_t launch, uint32_t on)
{
    for (uint32_t i = waits->begin[launch]; i < waits->begin[launch + 1]; i++)
        if (waits->ids[i] == on) return true;
    return false;
}

static void check_way(const struct tarn_model *model, const struct tarn_way *way, bool previous,
                      uint32_t goal)
{
    assert_non_null(way->steps);
    assert_true(way->count > 0);
    assert_int_equal(way->steps[0].how, TARN_STARTS);
    assert_int_equal(way->steps[way->count - 1].launch, goal);
    for (uint32_t i = 1; i < way->count; i++) {
        uint32_t a = way->steps[i - 1].launch, b = way->steps[i].launch;
        const struct tarn_launch *x = &model->launches[a], *y = &model->launches[b];
        switch (way->steps[i].how) {
        case TARN_STARTS: fail(); break;
        case TARN_BY_ORDER: assert_true(x->stream == y->stream && x->place < y->place); break;
        case TARN_BY_WAIT: assert_true(waits_for(&model->waits, b, a)); break;
        case TARN_BY_BOUNDARY:
            assert_true(previous && waits_for(&model->previous_waits, b, a));
            previous = false;
            break;
        case TARN_BY_NEXT:
            assert_true(previous && x->stream == y->stream);
            previous = false;
            break;
        }
    }
    assert_false(previous);
}

static void check_neighbours(const struct tarn_model *model, uint32_t h,
                             enum tarn_direction direction)
{
    struct tarn_memory memory = {NULL, false};
    struct tarn_neighbour *near = tarn_neighbours(&memory, model, h, direction);
    uint64_t bytes = 0;
    for (; near->holder != TARN_NONE; near++) {
        uint32_t earlier = direction == TARN_BEFORE ? near->holder : h;
        uint32_t later = direction == TARN_BEFORE ? h : near->holder;
        size_t count;
        struct tarn_way *ways =
            tarn_ways(&memory, model, earlier, near->is_other_iteration, later, &count);
        assert_non_null(ways);
        assert_true(count > 0);
        for (size_t i = 0; i < count; i++)
            check_way(model, &ways[i], near->is_other_iteration, model->holders[later].writer);
        bytes += near->bytes;
    }
    assert_int_equal(bytes, tarn_holder_reserved(&model->holders[h])); /* all of them: at least
        the same holder had them in the iteration before */
    tarn_memory_finish(&memory);
}

static void check_ways(const struct subject *subject)
{
    uint32_t count = subject->model.holders_count, step = count / 60 + 1;
    for (uint32_t h = 0; h < count; h += step) {
        check_neighbours(&subject->model, h, TARN_BEFORE);
        check_neighbours(&subject->model, h, TARN_AFTER);
    }
}

static void every_neighbour_has_a_way_of_real_steps_from_each_stream(void **state)
{
    (void)state;
    for_subjects(check_ways);
}

/* Without any wait, some neighbours of a plan with several streams are not ordered. */
static void without_waits_ways_are_missing(void **state)
{
    (void)state;
    struct subject subject;
    struct tarn_memory memory = {NULL, false};
    uint32_t missing = 0;
    plan_it(&subject, load(TARN_SOURCE_DIR "/examples/graphs/alexnet_b1_adam.ddp.json"));
    tarn_model_finish(&subject.model);
    subject.plan->waits_count = 0;
    assert_int_equal(tarn_model_init(&subject.model, subject.plan, NULL), TARN_OK);
    for (uint32_t h = 0; h < subject.model.holders_count; h++) {
        size_t count;
        struct tarn_neighbour *near = tarn_neighbours(&memory, &subject.model, h, TARN_BEFORE);
        if (near->holder == TARN_NONE || near->is_other_iteration) continue;
        struct tarn_way *ways = tarn_ways(&memory, &subject.model, near->holder, false, h, &count);
        for (size_t i = 0; i < count; i++) missing += ways[i].count == 0;
    }
    assert_true(missing > 0);
    tarn_memory_finish(&memory);
    drop(&subject);
}

/* ---- Meanwhile ---- */

/* ordered[a][b]: a ends before b begins in every legal order; by its definition. */
static bool *order_of_all(const struct tarn_model *model)
{
    size_t n = model->launches_count;
    bool *ordered = calloc(n * n + 1, 1);
    for (uint32_t b = 0; b < n; b++) {
        const struct tarn_launch *launch = &model->launches[b];
        if (launch->place > 0)
            ordered[tarn_model_at(model, launch->stream, launch->place - 1) * n + b] = true;
        for (uint32_t i = model->waits.begin[b]; i < model->waits.begin[b + 1]; i++)
            ordered[model->waits.ids[i] * n + b] = true;
        for (uint32_t k = b; k-- > 0;)
            for (uint32_t a = 0; a < k && ordered[k * n + b]; a++)
                if (ordered[a * n + k]) ordered[a * n + b] = true;
    }
    return ordered;
}

static void check_meanwhile(const struct subject *subject)
{
    const struct tarn_model *model = &subject->model;
    size_t n = model->launches_count;
    if (n > 100) return;
    bool *ordered = order_of_all(model);
    uint32_t *from = calloc(model->streams_count, sizeof *from);
    uint32_t *to = calloc(model->streams_count, sizeof *to);
    for (uint32_t h = 0; h < model->holders_count; h++) {
        const struct tarn_holder *holder = &model->holders[h];
        assert_true(tarn_meanwhile(model, h, from, to));
        for (uint32_t v = 0; v < n; v++) {
            const struct tarn_launch *launch = &model->launches[v];
            bool before = ordered[v * n + holder->writer], after = !holder->pinned;
            for (uint32_t i = 0; i < holder->touches_count; i++)
                if (!ordered[holder->touches[i].launch * n + v]) after = false;
            assert_int_equal(launch->place < from[launch->stream], before);
            assert_int_equal(launch->place >= to[launch->stream], after);
        }
    }
    free(ordered);
    free(from);
    free(to);
}

static void what_may_run_meanwhile_is_neither_before_nor_after(void **state)
{
    (void)state;
    for_subjects(check_meanwhile);
}

/* ---- What is refused ---- */

static void lists_and_waits_that_form_a_cycle_still_have_some_order(void **state)
{
    (void)state;
    struct subject subject;
    plan_it(&subject, load(TARN_SOURCE_DIR "/examples/graphs/figure2.json"));
    tarn_model_finish(&subject.model);
    assert_true(subject.plan->waits_count > 1);
    struct tarn_wait wait = subject.plan->waits[0];
    subject.plan->waits[1] = (struct tarn_wait){wait.on, wait.op};
    assert_int_equal(tarn_model_init(&subject.model, subject.plan, NULL), TARN_OK);
    struct tarn_model_schedule schedule;
    assert_true(subject.model.is_cyclic);
    assert_true(tarn_schedule_init(&schedule, &subject.model, TARN_AXIS_ORDER, NULL));
    assert_int_equal(schedule.length, subject.model.launches_count);
    tarn_schedule_finish(&schedule);
    drop(&subject);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(figures_are_those_of_the_graph),
        cmocka_unit_test(reserved_bytes_end_at_the_footprint),
        cmocka_unit_test(no_byte_has_two_holders_on_any_axis),
        cmocka_unit_test(a_trace_without_a_launch_gives_no_axis),
        cmocka_unit_test(every_neighbour_has_a_way_of_real_steps_from_each_stream),
        cmocka_unit_test(without_waits_ways_are_missing),
        cmocka_unit_test(what_may_run_meanwhile_is_neither_before_nor_after),
        cmocka_unit_test(lists_and_waits_that_form_a_cycle_still_have_some_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
