/* Traces: what the recorder remembers, drawn as it happened, on the host and by a device's stamps.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/queue_device.h"
#include "support/session_calls.h"
#include "tarn.h"

enum { ITERATIONS = 3, OPS = 60 };

/* A trace, read back. */
struct picture {
    double begin[ITERATIONS][OPS], end[ITERATIONS][OPS]; /* microseconds; end < 0: not there */
    uint32_t track[OPS];
    uint32_t commands, tracks;
    double alive_max, alive_last;
};

struct subject {
    struct queue_device device;
    struct tarn_graph *graph;
    struct tarn_plan *plan;
    struct tarn_session *session;
    char path[64];
};

static void work(void *user, const struct tarn_call *call) { (void)user, (void)call; }

static int enqueue_work(void *user, const struct tarn_call *call)
{
    queue_device_enqueue(user, work, NULL, call);
    return 0;
}

/* ---- Reading ---- */

static void read_line(struct picture *picture, const char *line)
{
    double at, took, bytes;
    uint32_t stream, op, iteration;
    if (sscanf(line, "{\"ph\":\"X\",\"pid\":0,\"tid\":%u,\"ts\":%lf,\"dur\":%lf", &stream, &at,
               &took) == 3) {
        const char *arguments = strstr(line, "\"args\":");
        assert_non_null(arguments);
        assert_int_equal(sscanf(arguments, "\"args\":{\"op\":%u,\"iteration\":%u", &op, &iteration),
                         2);
        assert_true(op < OPS && iteration < ITERATIONS);
        picture->begin[iteration][op] = at;
        picture->end[iteration][op] = at + took;
        picture->track[op] = stream;
        picture->commands++;
    }
    picture->tracks += strstr(line, "\"thread_name\"") != NULL;
    if (strncmp(line, "{\"ph\":\"C\"", 9) == 0) {
        assert_int_equal(sscanf(strstr(line, "\"bytes\":"), "\"bytes\":%lf", &bytes), 1);
        assert_true(bytes >= 0);
        if (bytes > picture->alive_max) picture->alive_max = bytes;
        picture->alive_last = bytes;
    }
}

static void read_picture(const char *path, struct picture *picture)
{
    memset(picture, 0, sizeof *picture);
    for (uint32_t k = 0; k < ITERATIONS; k++)
        for (uint32_t op = 0; op < OPS; op++) picture->end[k][op] = -1;
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    char line[1024];
    while (fgets(line, sizeof line, file)) read_line(picture, line);
    fclose(file);
    remove(path);
}

/* ---- A session with a recorder ---- */

static void subject_init(struct subject *subject, uint64_t seed, bool on_host)
{
    struct tarn_error error;
    memset(subject, 0, sizeof *subject);
    snprintf(subject->path, sizeof subject->path, "trace_test.%d.json", (int)getpid());
    subject->device.source.state = seed;
    subject->graph = random_graph(&(struct random_graph_options){
        .seed = seed, .ops = OPS, .streams = 4, .output_share = 10, .inplace_share = 10});
    require(tarn_plan_create(subject->graph, NULL, &subject->plan, &error), &error);
    struct tarn_device device = on_host ? tarn_device_host(NULL) : queue_device(&subject->device);
    require(tarn_session_create(subject->plan, device,
                                TARN_SESSION_OPTIONS(.flight = ITERATIONS * OPS, .stamps = true),
                                &subject->session, &error),
            &error);
    tarn_session_bind_default(subject->session, on_host ? do_nothing : enqueue_work,
                              &subject->device);
}

static void subject_finish(struct subject *subject)
{
    tarn_session_destroy(subject->session);
    tarn_plan_destroy(subject->plan);
    tarn_graph_destroy(subject->graph);
}

static void run(struct subject *subject, struct picture *picture)
{
    struct tarn_error error;
    tarn_ticket ticket;
    require(tarn_session_submit(subject->session, ITERATIONS, &ticket, &error), &error);
    require(tarn_session_wait(subject->session, ticket, TARN_FOREVER, &error), &error);
    require(tarn_session_save_trace(subject->session, subject->path, &error), &error);
    read_picture(subject->path, picture);
}

/* Every producer ends before its readers begin; times are printed in nanoseconds. */
static void assert_order(const struct subject *subject, const struct picture *picture)
{
    const double rounding = 0.0021;
    for (uint32_t k = 0; k < ITERATIONS; k++) {
        tarn_op producer_of[4 * OPS];
        memset(producer_of, 0xff, sizeof producer_of);
        for (uint32_t op = 0; op < OPS; op++) {
            struct tarn_op_info info;
            assert_true(tarn_graph_op(subject->graph, op, &info));
            for (size_t i = 0; i < info.outputs.count; i++) producer_of[info.outputs.ids[i]] = op;
        }
        for (uint32_t op = 0; op < OPS; op++) {
            struct tarn_op_info info;
            assert_true(tarn_graph_op(subject->graph, op, &info));
            assert_int_equal(picture->track[op], info.stream);
            for (size_t i = 0; i < info.inputs.count; i++) {
                tarn_op producer = producer_of[info.inputs.ids[i]];
                if (producer == TARN_NONE) continue;
                assert_true(picture->end[k][producer] <= picture->begin[k][op] + rounding);
            }
        }
    }
}

static void check_picture(uint64_t seed, bool on_host)
{
    struct subject subject;
    struct picture picture;
    struct tarn_plan_summary summary;
    subject_init(&subject, seed, on_host);
    run(&subject, &picture);
    tarn_plan_summarize(subject.plan, &summary);
    assert_int_equal(picture.commands, ITERATIONS * OPS);
    assert_int_equal(picture.tracks, 4);
    assert_order(&subject, &picture);
    assert_true(picture.alive_max > 0);
    subject_finish(&subject);
}

/* ---- Rules ---- */

static void every_command_of_the_host_is_drawn_in_order(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 10; seed++) check_picture(seed, true);
}

static void enqueued_commands_are_drawn_by_their_stamps(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 10; seed++) check_picture(seed, false);
}

/* One iteration on one stream: the counter's height is the serial peak, and outputs stay. */
static void the_counter_is_what_is_alive(void **state)
{
    (void)state;
    struct tarn_error error;
    struct tarn_builder *b = tarn_builder_create("counter");
    tarn_stream s = tarn_builder_stream(b, "compute");
    tarn_tensor t[3];
    static const uint64_t sizes[] = {1000, 200, 30};
    for (int i = 0; i < 3; i++) {
        char name[2] = {(char)('a' + i), 0};
        t[i] = tarn_builder_tensor(
            b, &(struct tarn_tensor_info){.name = name,
                                          .size = sizes[i],
                                          .kind = i == 2 ? TARN_OUTPUT : TARN_INTERMEDIATE});
    }
    tarn_builder_op(
        b, &(struct tarn_op_info){.name = "first", .stream = s, .outputs = TARN_TENSORS(t[0])});
    tarn_builder_op(b, &(struct tarn_op_info){.name = "second",
                                              .stream = s,
                                              .inputs = TARN_TENSORS(t[0]),
                                              .outputs = TARN_TENSORS(t[1])});
    tarn_builder_op(b, &(struct tarn_op_info){.name = "third",
                                              .stream = s,
                                              .inputs = TARN_TENSORS(t[1]),
                                              .outputs = TARN_TENSORS(t[2])});
    struct subject subject = {.path = "trace_test.counter.json"};
    struct picture picture;
    require(tarn_builder_finish(b, &subject.graph, &error), &error);
    require(tarn_plan_create(subject.graph, NULL, &subject.plan, &error), &error);
    require(tarn_session_create(subject.plan, tarn_device_host(NULL),
                                TARN_SESSION_OPTIONS(.flight = 64), &subject.session, &error),
            &error);
    tarn_session_bind_default(subject.session, do_nothing, NULL);
    run(&subject, &picture);
    assert_true(picture.alive_max == 1200);
    assert_true(picture.alive_last == 30);
    subject_finish(&subject);
}

static void refuses_without_a_recorder_or_a_place(void **state)
{
    (void)state;
    struct subject subject;
    struct tarn_error error;
    struct tarn_session *plain;
    subject_init(&subject, 1, true);
    require(tarn_session_create(subject.plan, tarn_device_host(NULL), NULL, &plain, &error),
            &error);
    assert_int_equal(tarn_session_save_trace(plain, subject.path, &error), TARN_USAGE);
    assert_int_equal(tarn_session_save_trace(subject.session, "no/such/folder/t.json", &error),
                     TARN_SYSTEM);
    tarn_session_destroy(plain);
    subject_finish(&subject);
}

/* The reader of the library against the one above, which goes by lines. */
static void a_trace_is_read_back_as_it_was_written(void **state)
{
    (void)state;
    struct subject subject;
    struct picture picture;
    struct tarn_error error;
    struct tarn_trace_entry *entries;
    size_t count;
    tarn_ticket ticket;
    subject_init(&subject, 7, true);
    require(tarn_session_submit(subject.session, ITERATIONS, &ticket, &error), &error);
    require(tarn_session_wait(subject.session, ticket, TARN_FOREVER, &error), &error);
    require(tarn_session_save_trace(subject.session, subject.path, &error), &error);
    require(tarn_trace_load(subject.path, &entries, &count, &error), &error);
    read_picture(subject.path, &picture);
    assert_int_equal(count, ITERATIONS * OPS);
    for (size_t i = 0; i < count; i++) {
        const struct tarn_trace_entry *entry = &entries[i];
        double begin = picture.begin[entry->iteration][entry->op];
        double end = picture.end[entry->iteration][entry->op];
        assert_true(fabs(begin * 1e3 - (double)entry->begin_ns) < 1.5);
        assert_true(fabs(end * 1e3 - (double)entry->end_ns) < 2.5);
    }
    free(entries);
    subject_finish(&subject);
}

static void refuses_what_is_no_trace(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t count; /* of launches; SIZE_MAX: refused */
    } cases[] = {
        {"[]", 0},
        {"{\"traceEvents\":[{\"ph\":\"M\"},3,{\"ph\":\"X\",\"args\":{}}]}", 0},
        {"[{\"ph\":\"X\",\"ts\":0.5,\"dur\":12,\"args\":{\"op\":1,\"iteration\":2}}]", 1},
        {"[{\"args\":{}}]", 0},
        {"[{\"ph\":1,\"args\":{}}]", 0},
        {"[{\"ph\":\"X\",\"args\":3}]", 0},
        {"[{\"ph\":\"X\",\"args\":{\"op\":1}}]", 0},
        {"{}", SIZE_MAX},
        {"{", SIZE_MAX},
        {"{\"traceEvents\":{}}", SIZE_MAX},
        {"[{\"ph\":\"X\",\"ts\":0,\"args\":{\"op\":1,\"iteration\":2}},{}]", SIZE_MAX},
        {"[{\"ph\":\"X\",\"ts\":0,\"dur\":1,\"args\":{\"op\":1,\"iteration\":-1}}]", SIZE_MAX},
        {"[{\"ph\":\"X\",\"ts\":-1,\"dur\":1,\"args\":{\"op\":1,\"iteration\":2}}]", SIZE_MAX},
        {"[{\"ph\":\"X\",\"ts\":\"1\",\"dur\":1,\"args\":{\"op\":1,\"iteration\":2}}]", SIZE_MAX},
        {"[{\"ph\":\"X\",\"ts\":0,\"dur\":1,\"args\":{\"op\":-1,\"iteration\":2}}]", SIZE_MAX},
        {"[{\"ph\":\"X\",\"ts\":99999999999999,\"dur\":1,\"args\":{\"op\":1,\"iteration\":2}}]",
         SIZE_MAX},
    };
    char path[64];
    snprintf(path, sizeof path, "trace_test.%d.refused.json", (int)getpid());
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tarn_trace_entry *entries;
        struct tarn_error error;
        size_t count;
        require(tarn_file_save(path, cases[i].text, strlen(cases[i].text), &error), &error);
        enum tarn_status status = tarn_trace_load(path, &entries, &count, &error);
        assert_int_equal(status, cases[i].count == SIZE_MAX ? TARN_BAD_INPUT : TARN_OK);
        assert_int_equal(count, cases[i].count == SIZE_MAX ? 0 : cases[i].count);
        if (count == 1) {
            assert_int_equal(entries[0].begin_ns, 500);
            assert_int_equal(entries[0].end_ns, 12500);
        }
        free(entries);
    }
    remove(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_command_of_the_host_is_drawn_in_order),
        cmocka_unit_test(enqueued_commands_are_drawn_by_their_stamps),
        cmocka_unit_test(the_counter_is_what_is_alive),
        cmocka_unit_test(refuses_without_a_recorder_or_a_place),
        cmocka_unit_test(a_trace_is_read_back_as_it_was_written),
        cmocka_unit_test(refuses_what_is_no_trace),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
