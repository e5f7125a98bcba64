/* Memory spaces: each has its own arena, bound, certificate and capacity. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "planner/plan_graph/plan_graph.h"
#include "streams/plan/plan.h"
#include "support/random_graph.h"
#include "tarn.h"

/* x (device) ─► copy ─► y (pinned) ─► work with scratch ─► z (device); w is a parameter, pinned. */
static struct tarn_graph *make_graph(uint64_t scratch_capacity, uint64_t pinned_capacity)
{
    struct tarn_builder *b = tarn_builder_create("spaces");
    tarn_stream s = tarn_builder_stream(b, "s");
    struct tarn_graph *graph;
    struct tarn_error error;
    tarn_space device = tarn_builder_space(b, &(struct tarn_space_info){.name = "device"});
    tarn_space pinned =
        tarn_builder_space(b, &(struct tarn_space_info){.name = "host",
                                                        .kind = TARN_SPACE_PINNED,
                                                        .alignment = 4096,
                                                        .capacity = pinned_capacity});
    tarn_space scratch =
        tarn_builder_space(b, &(struct tarn_space_info){.name = "chip",
                                                        .kind = TARN_SPACE_SCRATCH,
                                                        .alignment = 16,
                                                        .capacity = scratch_capacity});
    tarn_tensor x =
        tarn_builder_tensor(b, &(struct tarn_tensor_info){.size = 1000, .space = device});
    tarn_tensor y =
        tarn_builder_tensor(b, &(struct tarn_tensor_info){.size = 1000, .space = pinned});
    tarn_tensor z = tarn_builder_tensor(b, &(struct tarn_tensor_info){.size = 1000});
    tarn_tensor w = tarn_builder_tensor(
        b, &(struct tarn_tensor_info){.size = 10, .kind = TARN_PARAMETER, .space = pinned});
    tarn_builder_op(b, &(struct tarn_op_info){.stream = s, .outputs = TARN_TENSORS(x)});
    tarn_builder_op(b, &(struct tarn_op_info){
                           .stream = s, .inputs = TARN_TENSORS(x), .outputs = TARN_TENSORS(y)});
    tarn_builder_op(b, &(struct tarn_op_info){.stream = s,
                                              .inputs = TARN_TENSORS(y, w),
                                              .outputs = TARN_TENSORS(z),
                                              .workspace = 40,
                                              .workspace_space = scratch});
    tarn_builder_group(b, TARN_TENSORS(y));
    if (tarn_builder_finish(b, &graph, &error)) fail_msg("%s", error.text);
    return graph;
}

static void assert_spaces(const struct tarn_plan *plan)
{
    static const uint64_t footprints[] = {1024, 4096, 48}, persistent[] = {0, 4096, 0};
    struct tarn_plan_space_summary space;
    for (tarn_space s = 0; s < 3; s++) {
        assert_true(tarn_plan_space(plan, s, &space));
        assert_int_equal(space.footprint, footprints[s]);
        assert_int_equal(space.persistent, persistent[s]);
        assert_int_equal(space.bound, footprints[s]);
        assert_true(space.optimal && space.certificate.launched && space.method);
    }
    for (tarn_tensor t = 0; t < 4; t++) assert_int_equal(tarn_plan_offset(plan, t), 0);
    assert_int_equal(tarn_plan_workspace_offset(plan, 2), 0);
}

static void every_space_has_its_own_arena_bound_and_certificate(void **state)
{
    (void)state;
    char path[] = "/tmp/tarn-spaces-test-XXXXXX", graph_path[] = "/tmp/tarn-spaces-graph-XXXXXX";
    struct tarn_graph *graph = make_graph(48, 8192), *loaded;
    struct tarn_plan *plan, *again;
    struct tarn_plan_summary summary;
    struct tarn_space_info info;
    struct tarn_error error;
    close(mkstemp(path));
    close(mkstemp(graph_path));
    if (tarn_plan_create(graph, NULL, &plan, &error)) fail_msg("%s", error.text);
    assert_spaces(plan);
    tarn_plan_summarize(plan, &summary);
    assert_int_equal(summary.footprint, 1024 + 4096 + 48);
    assert_true(summary.optimal);
    assert_int_equal(tarn_graph_save(graph, graph_path, NULL), TARN_OK);
    if (tarn_graph_load(graph_path, NULL, &loaded, &error)) fail_msg("%s", error.text);
    assert_memory_equal(&loaded->hash, &graph->hash, sizeof graph->hash);
    assert_true(tarn_graph_space(loaded, 1, &info));
    assert_string_equal(info.name, "host");
    assert_int_equal(info.kind, TARN_SPACE_PINNED);
    assert_int_equal(info.capacity, 8192);
    assert_int_equal(tarn_plan_save(plan, path, NULL), TARN_OK);
    if (tarn_plan_load(path, loaded, TARN_VERIFY, NULL, &again, &error)) fail_msg("%s", error.text);
    assert_spaces(again);
    unlink(path);
    unlink(graph_path);
    tarn_plan_destroy(plan);
    tarn_plan_destroy(again);
    tarn_graph_destroy(loaded);
    tarn_graph_destroy(graph);
}

static void a_capacity_that_is_too_small_is_refused_by_the_name_of_its_space(void **state)
{
    (void)state;
    struct tarn_graph *graph = make_graph(32, 0);
    struct tarn_plan *plan;
    struct tarn_error error;
    assert_int_equal(tarn_plan_create(graph, NULL, &plan, &error), TARN_DOES_NOT_FIT);
    assert_non_null(strstr(error.text, "memory space 2 \"chip\""));
    tarn_graph_destroy(graph);
    graph = make_graph(0, 4096 + 2048); /* arena and persistent part together */
    assert_int_equal(tarn_plan_create(graph, NULL, &plan, &error), TARN_DOES_NOT_FIT);
    assert_non_null(strstr(error.text, "memory space 1 \"host\""));
    tarn_graph_destroy(graph);
}

/* A parameter of 10 bytes alone in a space. */
static enum tarn_status plan_with_capacity(uint64_t capacity)
{
    struct tarn_builder *b = tarn_builder_create("parameter");
    struct tarn_graph *graph;
    struct tarn_plan *plan;
    tarn_builder_stream(b, "s");
    tarn_builder_space(b, &(struct tarn_space_info){.name = "device"});
    tarn_space host = tarn_builder_space(
        b, &(struct tarn_space_info){.name = "host", .alignment = 64, .capacity = capacity});
    tarn_tensor w = tarn_builder_tensor(
        b, &(struct tarn_tensor_info){.size = 10, .kind = TARN_PARAMETER, .space = host});
    tarn_builder_op(b, &(struct tarn_op_info){.inputs = TARN_TENSORS(w)});
    assert_int_equal(tarn_builder_finish(b, &graph, NULL), TARN_OK);
    enum tarn_status status = tarn_plan_create(graph, NULL, &plan, NULL);
    tarn_plan_destroy(plan);
    tarn_graph_destroy(graph);
    return status;
}

static void a_persistent_part_may_take_all_of_a_capacity(void **state)
{
    (void)state;
    assert_int_equal(plan_with_capacity(64), TARN_OK);
    assert_int_equal(plan_with_capacity(63), TARN_DOES_NOT_FIT);
}

static void refuses_a_space_with_a_false_bound_or_beyond_its_capacity(void **state)
{
    (void)state;
    struct tarn_graph *graph = make_graph(64, 0);
    struct tarn_plan *plan;
    struct tarn_error error;
    assert_int_equal(tarn_plan_create(graph, NULL, &plan, NULL), TARN_OK);
    plan->spaces[2].footprint += 16;
    plan->footprint += 16;
    assert_int_equal(tarn_plan_verify(plan, graph, NULL, NULL, &error), TARN_OK);
    plan->spaces[2].claim.bound += 16;
    assert_int_equal(tarn_plan_verify(plan, graph, NULL, NULL, &error), TARN_REJECTED);
    assert_non_null(strstr(error.text, "its certificate proves 48"));
    plan->spaces[2].claim.bound -= 16;
    plan->spaces[2].footprint += 16;
    plan->footprint += 16;
    assert_int_equal(tarn_plan_verify(plan, graph, NULL, NULL, &error), TARN_REJECTED);
    assert_non_null(strstr(error.text, "memory space 2 needs more than its capacity"));
    tarn_plan_destroy(plan);
    tarn_graph_destroy(graph);
}

/* Plans to compare by are measured without the capacities: whether they keep them is asked apart.
 */
static void measured_plans_tell_whether_they_keep_the_capacities(void **state)
{
    static const struct {
        uint64_t scratch, pinned; /* capacities; 48 and 4096 + 4096 bytes are needed */
        bool kept;
    } cases[] = {{0, 0, true},      {48, 8192, true}, {47, 8192, false},
                 {48, 8191, false}, {0, 4096, false}, {0, 4095, false}};
    const struct tarn_plan_options *options = TARN_PLAN_OPTIONS(.alignment = 16, .threads = 1);
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tarn_graph *graph = make_graph(cases[i].scratch, cases[i].pinned);
        struct tarn_plan *plan;
        assert_int_equal(tarn_plan_make(graph, options, TARN_ALL_UNLIMITED, &plan, NULL), TARN_OK);
        assert_int_equal(tarn_plan_keeps_capacities(plan), cases[i].kept);
        tarn_plan_destroy(plan);
        tarn_graph_destroy(graph);
    }
}

/* A graph of so many memory spaces, with a tensor and a workspace in these. */
static enum tarn_status build_in(uint32_t spaces, tarn_space tensor, tarn_space workspace,
                                 struct tarn_graph **graph, struct tarn_error *error)
{
    struct tarn_builder *b = tarn_builder_create("spaces");
    tarn_builder_stream(b, "s");
    for (uint32_t s = 0; s < spaces; s++)
        tarn_builder_space(b, &(struct tarn_space_info){.name = "s", .capacity = 4096 + s});
    tarn_tensor t = tarn_builder_tensor(b, &(struct tarn_tensor_info){.size = 8, .space = tensor});
    tarn_builder_op(b, &(struct tarn_op_info){.outputs = TARN_TENSORS(t),
                                              .workspace = 8,
                                              .workspace_space = workspace});
    return tarn_builder_finish(b, graph, error);
}

/* Does the text say that a place of the space lies where its plan file has it? */
static void assert_says_where(const struct tarn_error *error, const char *format, uint64_t offset,
                              const struct tarn_graph *graph, uint32_t space)
{
    char expected[200], name[40];
    snprintf(expected, sizeof expected, format, (unsigned long long)offset);
    snprintf(name, sizeof name, " of memory space %u \"%s\"", space, graph->spaces[space].name);
    const char *at = strstr(error->text, expected);
    if (!at || !strstr(at, name))
        fail_msg("'%s' and '%s' are not in '%s'", expected, name, error->text);
}

/* Offsets of messages count from the begin of the space, as in the file, and name it. */
static void messages_have_the_offsets_of_the_file_and_name_the_space(void **state)
{
    uint32_t moved = 0, overlaps = 0;
    (void)state;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        struct random_graph_options knobs = random_graph_knobs(seed, 30);
        knobs.spaces = 3;
        struct tarn_graph *graph = random_graph(&knobs);
        struct tarn_plan *plan;
        struct tarn_error error;
        if (tarn_plan_create(graph, NULL, &plan, &error)) fail_msg("%s", error.text);
        for (uint32_t a = 0; a < plan->graph->planned_count; a++) {
            const struct tarn_storage *storage = &plan->graph->storages[a];
            struct tarn_place *place = (struct tarn_place *)tarn_plan_place(plan, a);
            uint64_t before = place->offset, begin = plan->spaces[storage->space].begin;
            if (begin == 0 || storage->group != TARN_NONE) continue; /* another one would move */
            place->offset++; /* out of range, or of its alignment */
            if (tarn_plan_verify(plan, graph, NULL, NULL, &error) == TARN_REJECTED) {
                bool is_form = strstr(error.text, " offset ");
                assert_says_where(&error, is_form ? "offset %llu" : "(bytes %llu..",
                                  place->offset - begin, plan->graph, storage->space);
                moved++;
            }
            for (uint32_t b = 0; b < plan->storages_count; b++) {
                uint64_t other = plan->storages[b].offset;
                if (plan->graph->storages[b].space != storage->space || other == before) continue;
                place->offset = other;
                if (tarn_plan_verify(plan, graph, NULL, NULL, &error) != TARN_REJECTED) continue;
                if (!strstr(error.text, "shares bytes")) continue;
                assert_says_where(&error, "(bytes %llu..", other - begin, plan->graph,
                                  storage->space);
                overlaps++;
            }
            place->offset = before;
        }
        tarn_plan_destroy(plan);
        tarn_graph_destroy(graph);
    }
    assert_true(moved > 20 && overlaps > 20);
}

static void what_lies_in_a_space_that_is_not_there_is_refused(void **state)
{
    struct tarn_graph *graph;
    struct tarn_error error;
    struct tarn_space_info info;
    (void)state;
    for (uint32_t count = 1; count < 3; count++) {
        assert_int_equal(build_in(count, count, 0, &graph, &error), TARN_BAD_INPUT);
        assert_non_null(strstr(error.text, "tensor 0 is in memory space"));
        assert_int_equal(build_in(count, 0, count, &graph, &error), TARN_BAD_INPUT);
        assert_non_null(strstr(error.text, "op 0 is in memory space"));
        assert_int_equal(build_in(count, count - 1, count - 1, &graph, &error), TARN_OK);
        assert_int_equal(tarn_graph_spaces_count(graph), count);
        for (tarn_space s = 0; s < count; s++) {
            assert_true(tarn_graph_space(graph, s, &info));
            assert_int_equal(info.capacity, 4096 + s);
        }
        assert_false(tarn_graph_space(graph, count, &info));
        tarn_graph_destroy(graph);
    }
}

/* ---- Files that say otherwise ---- */

static struct tarn_plan *make_plan(struct tarn_graph *graph)
{
    struct tarn_plan *plan;
    struct tarn_error error;
    if (tarn_plan_create(graph, NULL, &plan, &error)) fail_msg("%s", error.text);
    return plan;
}

static char *text_of(const char *path)
{
    FILE *file = fopen(path, "r");
    char *text = calloc(1, 1 << 14);
    assert_non_null(file);
    assert_in_range(fread(text, 1, (1 << 14) - 1, file), 1, (1 << 14) - 2);
    fclose(file);
    return text;
}

/* With what is there from one text to the end of another, or that text alone, replaced. */
static void save_replaced(const char *path, const char *text, const char *from, const char *until,
                          const char *by)
{
    char changed[1 << 14];
    const char *begin = strstr(text, from), *end = begin ? begin + strlen(from) : NULL;
    if (end && until) end = strstr(end, until);
    if (!end) fail_msg("%s is not in the file", from);
    if (until) end += strlen(until);
    int size = snprintf(changed, sizeof changed, "%.*s%s%s", (int)(begin - text), text, by, end);
    assert_int_equal(tarn_file_save(path, changed, (size_t)size, NULL), TARN_OK);
}

static void refuses_a_plan_file_with_false_spaces_at_their_place(void **state)
{
    static const struct {
        const char *from, *until, *by, *pointer, *part;
    } cases[] = {
        {"\"spaces\":[", "}}\n]", "\"spaces\":7", "/spaces", "must be an array"},
        {"\"spaces\":[", "}},", "\"spaces\":[", "/spaces", "2 memory spaces"},
        {"{\"method\"", NULL, "{\"way\"", "/spaces/0/way", "unknown field"},
        {"\"method\":\"row\"", NULL, "\"method\":1", "/spaces/1/method", "must be a string"},
        {":1024", NULL, ":-1", "/spaces/0/footprint_bytes", "not -1"},
        {"\"persistent_bytes\":0", NULL, "\"persistent_bytes\":-1", "/spaces/0/persistent_bytes",
         "not -1"},
        {":1024", NULL, ":2048", "/spaces", "must add up"},
        {"\"persistent_bytes\":0", NULL, "\"persistent_bytes\":64", "/spaces", "must add up"},
        {"\"bound_bytes\":1024", NULL, "\"bound_bytes\":null", "/spaces/0/certificate",
         "must be null just where"},
        {"[3]", NULL, "[4]", "", "threshold"},
        {"[3]", NULL, "[3,3]", "/spaces/0/certificate/thresholds", "2 numbers for a graph of 1"},
        {"[3]", NULL, "[-3,3]", "/spaces/0/certificate/thresholds/0", "not -3"},
        {"\"gaps\":[]", NULL, "\"gaps\":[0]", "", "gap"},
        {"\"gaps\":[]", NULL, "\"gaps\":[9]", "/spaces/0/certificate/gaps/0", "no tensor 9"},
        {"\"gaps\":[]", NULL, "\"gaps\":[],\"inside\":{}", "/spaces/0/certificate/inside",
         "must be an array"},
        {"\"gaps\":[]", NULL, "\"gaps\":[],\"inside\":[true]", "/spaces/0/certificate/inside/0",
         "must be an integer"},
        {"\"gaps\":[]", NULL, "\"gaps\":[],\"inside\":[1]", "/spaces/0/certificate/inside/0",
         "no stream 1"},
        {"\"gaps\":[]", NULL, "\"gaps\":[],\"inside\":[0,0]", "/spaces/0/certificate/inside/1",
         "must ascend"},
    };
    static const char path[] = "spaces_test.false.json";
    (void)state;
    struct tarn_graph *graph = make_graph(64, 0);
    struct tarn_plan *plan = make_plan(graph), *none;
    struct tarn_error error;
    assert_int_equal(tarn_plan_save(plan, path, NULL), TARN_OK);
    char *text = text_of(path);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        save_replaced(path, text, cases[i].from, cases[i].until, cases[i].by);
        enum tarn_status status = tarn_plan_load(path, graph, TARN_VERIFY, NULL, &none, &error);
        if (status != (*cases[i].pointer ? TARN_BAD_INPUT : TARN_REJECTED) ||
            strcmp(error.pointer, cases[i].pointer) != 0 || !strstr(error.text, cases[i].part))
            fail_msg("%s: %s", cases[i].by, error.text);
    }
    free(text);
    unlink(path);
    tarn_plan_destroy(plan);
    tarn_graph_destroy(graph);
}

static void a_space_may_come_without_a_bound(void **state)
{
    static const char path[] = "spaces_test.unbound.json";
    (void)state;
    struct tarn_graph *graph = make_graph(64, 0);
    struct tarn_plan *plan = make_plan(graph), *loaded;
    struct tarn_plan_space_summary space;
    struct tarn_plan_summary summary;
    assert_int_equal(tarn_plan_save(plan, path, NULL), TARN_OK);
    char *text = text_of(path);
    save_replaced(path, text, "\"bound_bytes\":4096", "}}",
                  "\"bound_bytes\":null,\"certificate\":null}");
    assert_int_equal(tarn_plan_load(path, graph, TARN_VERIFY, NULL, &loaded, NULL), TARN_OK);
    assert_true(tarn_plan_space(loaded, 1, &space));
    assert_null(space.certificate.launched);
    assert_false(space.optimal);
    plan->spaces[1].claim.threshold = NULL; /* its number alone proves nothing */
    tarn_plan_summarize(plan, &summary);
    assert_int_equal(summary.bound, 0);
    assert_false(summary.optimal);
    free(text);
    unlink(path);
    tarn_plan_destroy(loaded);
    tarn_plan_destroy(plan);
    tarn_graph_destroy(graph);
}

/* ---- What the verifier says of plans in memory ---- */

static void lose(struct tarn_plan *plan) { plan->spaces = NULL; }
static void drop(struct tarn_plan *plan) { plan->spaces_count = 2; }
static void shift(struct tarn_plan *plan) { plan->spaces[1].begin += 16; }
static void shift_persistent(struct tarn_plan *plan) { plan->spaces[2].persistent_begin += 16; }
static void grow(struct tarn_plan *plan) { plan->footprint += 16; }
static void grow_persistent(struct tarn_plan *plan) { plan->persistent += 16; }
static void raise_bound(struct tarn_plan *plan) { plan->spaces[0].claim.bound += 16; }
static void overflow(struct tarn_plan *plan) { plan->spaces[1].footprint = UINT64_MAX; }
static void overflow_persistent(struct tarn_plan *plan) { plan->spaces[2].persistent = UINT64_MAX; }
static void overflow_together(struct tarn_plan *plan)
{
    plan->spaces[0].footprint = plan->spaces[0].persistent = UINT64_MAX / 2 + 1;
}

static void rejects_spaces_that_do_not_make_up_the_plan(void **state)
{
    static const struct {
        void (*damage)(struct tarn_plan *plan);
        const char *part;
    } cases[] = {
        {lose, "is not in both plan and graph"},
        {drop, "memory space 2 is not in both plan and graph"},
        {shift, "memory space 1 does not begin where the one before it ends"},
        {shift_persistent, "memory space 2 does not begin where the one before it ends"},
        {grow, "are not what the plan sums up"},
        {grow_persistent, "are not what the plan sums up"},
        {raise_bound, "memory space 0 has a bound above its footprint"},
        {overflow, "memory space 1 exceeds 64 bits"},
        {overflow_persistent, "memory space 2 exceeds 64 bits"},
        {overflow_together, "memory space 0 exceeds 64 bits"},
    };
    (void)state;
    struct tarn_graph *graph = make_graph(0, 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tarn_error error;
        struct tarn_plan *plan = make_plan(graph);
        cases[i].damage(plan);
        assert_int_equal(tarn_plan_verify(plan, graph, NULL, NULL, &error), TARN_REJECTED);
        if (!strstr(error.text, cases[i].part)) fail_msg("%s", error.text);
        tarn_plan_destroy(plan);
    }
    tarn_graph_destroy(graph);
}

static void keep_all(struct tarn_graph *source) { (void)source; }
static void drop_last(struct tarn_graph *source) { source->spaces_count--; }
static void make_device(struct tarn_graph *source) { source->spaces[1].kind = TARN_SPACE_DEVICE; }
static void align(struct tarn_graph *source) { source->spaces[1].alignment = 64; }
static void limit(struct tarn_graph *source) { source->spaces[1].capacity = 1 << 20; }
static void move_tensor(struct tarn_graph *source) { source->tensors[1].space = 0; }
static void move_workspace(struct tarn_graph *source) { source->ops[2].extra->workspace_space = 0; }

/* The plan says that its graph comes from the source. */
static void rejects_a_final_graph_with_other_spaces_than_its_source(void **state)
{
    static const struct {
        void (*change)(struct tarn_graph *source);
        const char *part;
    } cases[] = {
        {keep_all, NULL},
        {drop_last, "has not the memory spaces of the source graph"},
        {make_device, "has not the memory spaces of the source graph"},
        {align, "has not the memory spaces of the source graph"},
        {limit, "has not the memory spaces of the source graph"},
        {move_tensor, "tensor 1 is in another memory space than tensor 1 of the source graph"},
        {move_workspace, "op 2"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tarn_error error = {.text = ""};
        struct tarn_graph *source = make_graph(0, 0), *final = make_graph(0, 0);
        struct tarn_plan *plan = make_plan(final);
        plan->transformed = true;
        plan->source_hash = source->hash;
        cases[i].change(source);
        enum tarn_status status = tarn_plan_verify(plan, source, NULL, NULL, &error);
        assert_int_equal(status, cases[i].part ? TARN_REJECTED : TARN_OK);
        if (cases[i].part && !strstr(error.text, cases[i].part)) fail_msg("%s", error.text);
        tarn_plan_destroy(plan);
        tarn_graph_destroy(source);
        tarn_graph_destroy(final);
    }
}

/* ---- Sessions ---- */

static void intervals_are_refused_for_a_second_space(void **state)
{
    (void)state;
    struct tarn_graph *graph = make_graph(0, 0);
    struct tarn_error error;
    assert_int_equal(tarn_graph_save(graph, "spaces_test.csv", &error), TARN_USAGE);
    assert_non_null(strstr(error.text, "intervals are of one memory space"));
    tarn_graph_destroy(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_space_has_its_own_arena_bound_and_certificate),
        cmocka_unit_test(a_capacity_that_is_too_small_is_refused_by_the_name_of_its_space),
        cmocka_unit_test(a_persistent_part_may_take_all_of_a_capacity),
        cmocka_unit_test(refuses_a_space_with_a_false_bound_or_beyond_its_capacity),
        cmocka_unit_test(measured_plans_tell_whether_they_keep_the_capacities),
        cmocka_unit_test(messages_have_the_offsets_of_the_file_and_name_the_space),
        cmocka_unit_test(what_lies_in_a_space_that_is_not_there_is_refused),
        cmocka_unit_test(refuses_a_plan_file_with_false_spaces_at_their_place),
        cmocka_unit_test(a_space_may_come_without_a_bound),
        cmocka_unit_test(rejects_spaces_that_do_not_make_up_the_plan),
        cmocka_unit_test(rejects_a_final_graph_with_other_spaces_than_its_source),
        cmocka_unit_test(intervals_are_refused_for_a_second_space),
    };
    return cmocka_run_group_tests_name("spaces", tests, NULL, NULL);
}
