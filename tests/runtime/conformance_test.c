/* The conformance suite finds devices that break the contract: the paper device with one function
 * replaced fails just the tests that are about it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "support/queue_device.h"
#include "tarn/conformance.h"

/* The device under test, and what the suite said about it. */
struct broken {
    struct queue_device device;
    struct tarn_device_table table;
    void (*spoil)(struct tarn_device_table *table);
    bool by_patterns; /* checks are done by patterns alone */
    bool is_absent;
    uint64_t extra; /* objects that are alive for nothing */
    char text[8192];
};

static struct tarn_device whole; /* whose functions the spoilt ones call */

static bool open_broken(void *user, struct tarn_device *device)
{
    struct broken *broken = user;
    if (broken->is_absent) return false;
    broken->device = (struct queue_device){.memory_size = UINT64_C(1) << 30,
                                           .lacks_launch = broken->by_patterns};
    whole = *device = queue_device(&broken->device);
    broken->table = *whole.table;
    if (broken->spoil) broken->spoil(&broken->table);
    device->table = &broken->table;
    return true;
}

static uint64_t alive(void *user)
{
    struct broken *broken = user;
    return queue_device_alive(&broken->device) + broken->extra++;
}

static void note_line(void *user, const char *line)
{
    struct broken *broken = user;
    size_t used = strlen(broken->text);
    snprintf(broken->text + used, sizeof broken->text - used, "%s\n", line);
}

static int run(struct broken *broken, const char *only, bool counts)
{
    broken->text[0] = '\0';
    return tarn_conformance_run(TARN_CONFORMANCE(.user = broken, .open = open_broken,
                                                 .alive = counts ? alive : NULL, .only = only,
                                                 .effort = TARN_CONFORMANCE_QUICK,
                                                 .line = note_line, .line_user = broken));
}

/* ---- Ways to be broken ---- */

static int wait_for_nothing(void *self, void *event, void *queue)
{
    (void)self, (void)event, (void)queue;
    return 0;
}
static void spoil_waits(struct tarn_device_table *table) { table->event_wait = wait_for_nothing; }

static int fill_short(void *self, void *device, unsigned char byte, uint64_t size)
{
    return whole.table->fill(self, device, byte, size > 1 ? size - 1 : size);
}
static void spoil_fill(struct tarn_device_table *table) { table->fill = fill_short; }

static int limit_badly(void *self, struct tarn_memory_limits *limits)
{
    int code = whole.table->memory_limits(self, limits);
    limits->alignment = 3;
    return code;
}
static void spoil_limits(struct tarn_device_table *table) { table->memory_limits = limit_badly; }

static enum tarn_error_class call_it_retryable(void *self, int code)
{
    (void)self, (void)code;
    return TARN_ERROR_RETRYABLE;
}
static void spoil_classes(struct tarn_device_table *table)
{
    table->error_class = call_it_retryable;
}

static int never_find_wrong(void *self, void *queue, const void *bytes, uint64_t size,
                            const void *seeds, uint64_t seed, void *wrongs, uint64_t wrong)
{
    (void)self, (void)queue, (void)bytes, (void)size;
    (void)seeds, (void)seed, (void)wrongs, (void)wrong;
    return 0;
}
static void spoil_patterns(struct tarn_device_table *table)
{
    table->pattern_compare = never_find_wrong;
}

/* The first launch runs beside the caller, and a wait for any event waits for its end. */
static pthread_t beside;
static bool is_beside, was_beside;
static struct closure {
    void (*function)(void *argument);
    void *argument;
} closure;

static void *call_closure(void *argument)
{
    (void)argument;
    closure.function(closure.argument);
    return NULL;
}

static int launch_beside(void *self, void *queue, void (*function)(void *argument), void *argument)
{
    if (was_beside) return whole.table->launch(self, queue, function, argument);
    closure = (struct closure){function, argument};
    assert_int_equal(pthread_create(&beside, NULL, call_closure, NULL), 0);
    is_beside = was_beside = true;
    return 0;
}

static void join_launch(void)
{
    if (is_beside) pthread_join(beside, NULL);
    is_beside = false;
}

static int wait_for_launch(void *self, void *event, void *queue)
{
    join_launch();
    return whole.table->event_wait(self, event, queue);
}

static void spoil_calls(struct tarn_device_table *table)
{
    is_beside = was_beside = false;
    table->launch = launch_beside;
    table->event_wait = wait_for_launch;
}

/* Events know nothing of it: they are reached too early. */
static void spoil_ends(struct tarn_device_table *table)
{
    is_beside = was_beside = false;
    table->launch = launch_beside;
}

static void each_broken_promise_fails_its_test(void **state)
{
    (void)state;
    static const struct {
        void (*spoil)(struct tarn_device_table *table);
        const char *test;
    } cases[] = {
        {spoil_waits, "an_event_orders_two_queues_and_can_be_recorded_again"},
        {spoil_waits, "pending_waits_keep_to_the_record_that_they_were_made_for"},
        {spoil_calls, "no_call_waits_for_another_queue"},
        {spoil_ends, "a_query_tells_when_the_end_is_reached"},
        {spoil_fill, "copies_and_fills_reach_exactly_their_bytes"},
        {spoil_fill, "a_large_allocation_is_usable_to_its_last_byte"},
        {spoil_limits, "limits_say_what_is_there"},
        {spoil_classes, "what_is_too_large_is_out_of_memory_and_has_a_text"},
        {spoil_patterns, "patterns_are_exact_at_every_offset_and_size"},
        {spoil_patterns, "a_plan_that_corrupts_is_caught"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct broken broken = {.spoil = cases[i].spoil};
        char expected[100];
        if (cases[i].spoil == spoil_patterns) broken.by_patterns = true;
        assert_int_equal(run(&broken, cases[i].test, false), 1);
        join_launch();
        snprintf(expected, sizeof expected, "1..1\nnot ok 1 - %s\n# ", cases[i].test);
        assert_ptr_equal(strstr(broken.text, expected), broken.text);
        broken.spoil = NULL;
        assert_int_equal(run(&broken, cases[i].test, false), 0);
    }
}

static void spoil_table(struct tarn_device_table *table) { table->copy_out = NULL; }

/* Everything after it would crash. */
static void is_the_end(void (*spoil)(struct tarn_device_table *table), const char *only,
                       const char *why)
{
    struct broken broken = {.spoil = spoil};
    assert_int_equal(run(&broken, only, false), 1);
    join_launch();
    const char *last = strstr(broken.text, "Bail out! ");
    if (!last || !strstr(broken.text, why)) print_error("%s\n", broken.text);
    assert_true(last && strstr(broken.text, why));
    assert_ptr_equal(strchr(last, '\n') + 1, broken.text + strlen(broken.text));
}

static void a_device_on_which_nothing_more_can_be_tested_ends_the_suite(void **state)
{
    (void)state;
    is_the_end(spoil_ends, "a_query_tells_when_the_end_is_reached",
               "event_query says that an event is reached while a launch");
    is_the_end(spoil_table, NULL, "the table of device 'paper' lacks functions: memory, copies");
}

/* Every closure on a thread of its own, which the call waits for: its order is that of the calls.
 */
static int launch_and_wait(void *self, void *queue, void (*function)(void *argument),
                           void *argument)
{
    (void)self, (void)queue;
    pthread_t thread;
    closure = (struct closure){function, argument};
    assert_int_equal(pthread_create(&thread, NULL, call_closure, NULL), 0);
    pthread_join(thread, NULL);
    return 0;
}

static void spoil_concurrency(struct tarn_device_table *table) { table->launch = launch_and_wait; }

static void a_launch_may_last_as_long_as_its_work(void **state)
{
    (void)state;
    struct broken broken = {.spoil = spoil_concurrency};
    assert_int_equal(run(&broken, "a_query_tells_when_the_end_is_reached", false), 0);
    assert_int_equal(run(&broken, "no_call_waits_for_another_queue", false), 0);
}

static void what_is_left_over_fails_the_test(void **state)
{
    (void)state;
    struct broken broken = {.extra = 0};
    assert_int_equal(run(&broken, "names_can_be_given", true), 1);
    assert_non_null(strstr(broken.text, "objects of the device are left"));
}

static void a_device_that_is_not_here_is_skipped_or_missed(void **state)
{
    (void)state;
    struct broken broken = {.is_absent = true};
    assert_int_equal(run(&broken, NULL, false), 0);
    assert_non_null(strstr(broken.text, "ok 1 - the_table_is_complete # SKIP the device is not "
                                        "here\n"));
    assert_null(strstr(broken.text, "not ok"));
    assert_int_equal(
        tarn_conformance_run(TARN_CONFORMANCE(.user = &broken, .open = open_broken,
                                              .required = true, .only = "names_can_be_given",
                                              .line = note_line, .line_user = &broken)),
        1);
    assert_non_null(strstr(broken.text,
                           "not ok 1 - names_can_be_given\n# what happened: the device is "
                           "not here"));
}

static void bad_arguments_are_refused(void **state)
{
    (void)state;
    struct broken broken = {.is_absent = true};
    assert_int_equal(tarn_conformance_run(NULL), -1);
    assert_int_equal(tarn_conformance_run(&(struct tarn_conformance){.open = open_broken}), -1);
    assert_int_equal(
        tarn_conformance_run(TARN_CONFORMANCE(.line = note_line, .line_user = &broken)), -1);
    assert_non_null(strstr(broken.text, "Bail out! tarn_conformance_run: open is NULL"));
    assert_int_equal(run(&broken, "no_such_test", false), -1);
    assert_non_null(strstr(broken.text, "Bail out!"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_broken_promise_fails_its_test),
        cmocka_unit_test(a_device_on_which_nothing_more_can_be_tested_ends_the_suite),
        cmocka_unit_test(a_launch_may_last_as_long_as_its_work),
        cmocka_unit_test(what_is_left_over_fails_the_test),
        cmocka_unit_test(a_device_that_is_not_here_is_skipped_or_missed),
        cmocka_unit_test(bad_arguments_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
