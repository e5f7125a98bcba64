/* Runs the tests one after another, each on the device opened anew, and reports the results as TAP.
 * A test that fails or is skipped leaves by longjmp.
 *
 *     caller's thread   waits ─────── looks at the watch now and then ────► returns
 *     test's thread     test, test, test that hangs ...
 *
 * Before each call the test's thread notes the call in the watch. If a call takes too long, the
 * caller's thread reports the test and the call, and returns. The test's thread is left behind; if
 * its call returns after all, it stops at the next one. Cost: the tests'. */
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "kit.h"

static const struct tarn_kit_test *const parts[] = {
    tarn_kit_memory,  tarn_kit_order,   tarn_kit_programs, tarn_kit_refusals,
    tarn_kit_capture, tarn_kit_stamps,  tarn_kit_patterns, tarn_kit_sessions,
    tarn_kit_turns,   tarn_kit_endings, tarn_kit_failures,
};
enum { PARTS = sizeof parts / sizeof *parts };

#define PATIENCE_NS UINT64_C(30000000000)
#define HANGS_AFTER 4u /* times the patience, without a new call */

struct tarn_kit_watch {
    pthread_mutex_t lock; /* of what follows, and of lines */
    pthread_cond_t changed;
    struct tarn_kit *kit; /* the test's thread's, while there is one */
    struct tarn_conformance suite;
    uint64_t patience_ns;
    const struct tarn_kit_test *test; /* under way; NULL: none */
    int number;                       /* of it */
    const char *call;                 /* the last that it has begun */
    uint64_t since_ns;                /* when it began */
    bool is_reported;                 /* how it ended */
    int failures;
    bool is_over, is_left_behind;
};

/* ---- The watch ---- */

/* Takes the lock for the test's thread, which ends here if it was left behind. */
static void lock_watch(struct tarn_kit_watch *watch)
{
    pthread_mutex_lock(&watch->lock);
    while (watch->is_left_behind) pthread_cond_wait(&watch->changed, &watch->lock);
}

void tarn_kit_step(const struct tarn_kit *kit, const char *call)
{
    struct tarn_kit_watch *watch = kit->watch;
    lock_watch(watch);
    watch->call = call;
    watch->since_ns = tarn_kit_now_ns();
    pthread_mutex_unlock(&watch->lock);
}

const char *tarn_kit_text(const struct tarn_kit *kit, int code)
{
    const char *text = kit->table->error_text(kit->self, code);
    return text ? text : "error_text is NULL";
}

/* ---- Lines ---- */

/* With the watch's lock, or while there is no test's thread. */
__attribute__((format(printf, 2, 3))) static void say(const struct tarn_conformance *suite,
                                                      const char *format, ...)
{
    char line[2200];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    if (suite->line) {
        suite->line(suite->line_user, line);
        return;
    }
    puts(line);
    fflush(stdout);
}

void tarn_kit_fail(struct tarn_kit *kit, const char *file, int line, const char *format, ...)
{
    const char *name = strrchr(file, '/');
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(kit->text, sizeof kit->text, format, arguments);
    va_end(arguments);
    kit->file = name ? name + 1 : file;
    kit->line = line;
    kit->result = 1;
    longjmp(kit->end, 1);
}

void tarn_kit_skip(struct tarn_kit *kit, const char *why)
{
    snprintf(kit->text, sizeof kit->text, "%s", why);
    kit->result = 2;
    longjmp(kit->end, 1);
}

static void report(const struct tarn_kit *kit, const struct tarn_kit_test *test, int number,
                   int result)
{
    const struct tarn_conformance *suite = &kit->suite;
    say(suite, "%s %d - %s%s%s", result == 1 ? "not ok" : "ok", number, test->name,
        result == 2 ? " # SKIP " : "", result == 2 ? kit->text : "");
    if (result == 1) {
        say(suite, "# what happened: %s", kit->text);
        say(suite, "# the rule: %s", test->rule);
        if (kit->file) say(suite, "# the place: %s:%d", kit->file, kit->line);
    }
    if (kit->lost) say(suite, "Bail out! %s", kit->lost);
}

/* By the caller's thread, with the lock. */
static void report_hang(const struct tarn_kit_watch *watch)
{
    const struct tarn_conformance *suite = &watch->suite;
    if (!watch->is_reported) say(suite, "not ok %d - %s", watch->number, watch->test->name);
    say(suite, "# what happened%s: the test hangs: %s has not returned after %llu ms",
        watch->is_reported ? ", then" : "", watch->call,
        (unsigned long long)(watch->patience_ns * HANGS_AFTER / 1000000));
    say(suite,
        "# the rule: %s; and device.h, \"Queues and events\": a call waits for no work that "
        "is not ready",
        watch->test->rule);
    say(suite, "Bail out! the test %s hangs, and its thread cannot be ended", watch->test->name);
}

/* ---- Tests ---- */

static void run_open(struct tarn_kit *kit, const struct tarn_kit_test *test)
{
    if (setjmp(kit->end) == 0) test->run(kit);
}

/* Says how the test has ended, once. 0: passed; 1: failed; 2: skipped. */
static void end_test(struct tarn_kit_watch *watch, int result)
{
    lock_watch(watch);
    if (!watch->is_reported) report(watch->kit, watch->test, watch->number, result);
    if (!watch->is_reported) watch->failures += result == 1;
    watch->is_reported = true;
    pthread_mutex_unlock(&watch->lock);
}

/* A failure is reported before anything is destroyed: a device that has failed may end the process
 * then. */
static int run_test(struct tarn_kit *kit, const struct tarn_kit_test *test)
{
    kit->text[0] = '\0';
    kit->file = NULL;
    tarn_kit_step(kit, "open");
    if (!tarn_kit_open(kit)) {
        snprintf(kit->text, sizeof kit->text, "the device is not here");
        return kit->suite.required ? 1 : 2;
    }
    run_open(kit, test);
    if (kit->result == 1) end_test(kit->watch, 1);
    if (kit->lost) return 1;
    tarn_kit_step(kit, "destroying what the test has created, or close");
    uint64_t left = tarn_kit_close(kit);
    if (kit->result == 1 || left == 0) return kit->result;
    snprintf(kit->text, sizeof kit->text, "%llu objects of the device are left, says `alive`",
             (unsigned long long)left);
    return 1;
}

static bool is_wanted(const struct tarn_conformance *suite, const struct tarn_kit_test *test)
{
    return !suite->only || strcmp(suite->only, test->name) == 0;
}

static int count_tests(const struct tarn_conformance *suite)
{
    int count = 0;
    for (int i = 0; i < PARTS; i++)
        for (const struct tarn_kit_test *test = parts[i]; test->name; test++)
            count += is_wanted(suite, test);
    return count;
}

static void begin_test(struct tarn_kit_watch *watch, const struct tarn_kit_test *test)
{
    lock_watch(watch);
    watch->test = test;
    watch->number++;
    watch->is_reported = false;
    watch->kit->result = 0;
    pthread_mutex_unlock(&watch->lock);
}

static void watch_nothing(struct tarn_kit_watch *watch)
{
    lock_watch(watch);
    watch->test = NULL;
    pthread_mutex_unlock(&watch->lock);
}

static void *run_all(void *argument)
{
    struct tarn_kit_watch *watch = argument;
    struct tarn_kit *kit = watch->kit;
    for (int i = 0; i < PARTS && !kit->lost; i++) {
        for (const struct tarn_kit_test *test = parts[i]; test->name && !kit->lost; test++) {
            if (!is_wanted(&kit->suite, test)) continue;
            begin_test(watch, test);
            end_test(watch, run_test(kit, test));
            watch_nothing(watch);
        }
    }
    lock_watch(watch);
    watch->is_over = true;
    pthread_cond_broadcast(&watch->changed);
    pthread_mutex_unlock(&watch->lock);
    return NULL;
}

/* ---- The call ---- */

/* suite: NULL where it says nothing about lines. */
static int refuse(const struct tarn_conformance *suite, const char *what)
{
    if (suite)
        say(suite, "Bail out! tarn_conformance_run: %s", what);
    else
        fprintf(stderr, "tarn_conformance_run: %s\n", what);
    return -1;
}

/* Until all tests are over: true; or until one hangs. */
static bool watch_over(struct tarn_kit_watch *watch)
{
    pthread_mutex_lock(&watch->lock);
    while (!watch->is_over && !watch->is_left_behind) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec++;
        pthread_cond_timedwait(&watch->changed, &watch->lock, &until);
        bool hangs = watch->test && !watch->is_over &&
                     tarn_kit_now_ns() - watch->since_ns > watch->patience_ns * HANGS_AFTER;
        if (!hangs) continue;
        watch->is_left_behind = true;
        watch->failures += !watch->is_reported;
        report_hang(watch);
    }
    bool is_over = watch->is_over;
    pthread_mutex_unlock(&watch->lock);
    return is_over;
}

/* What a thread that was left behind may still use is never freed. */
static int run_watched(struct tarn_kit_watch *watch)
{
    struct tarn_kit *kit = watch->kit;
    pthread_t thread;
    say(&watch->suite, "1..%d", count_tests(&watch->suite));
    if (pthread_create(&thread, NULL, run_all, watch)) {
        free(kit);
        free(watch);
        return -1;
    }
    if (!watch_over(watch)) {
        pthread_detach(thread);
        return watch->failures;
    }
    pthread_join(thread, NULL);
    int failures = watch->failures;
    pthread_cond_destroy(&watch->changed);
    pthread_mutex_destroy(&watch->lock);
    free(kit);
    free(watch);
    return failures;
}

int tarn_conformance_run(const struct tarn_conformance *given)
{
    if (!given) return refuse(NULL, "the suite is NULL");
    if (given->struct_size != sizeof *given)
        return refuse(NULL, "struct_size is not that of this library's header");
    if (!given->open) return refuse(given, "open is NULL");
    if (count_tests(given) == 0) return refuse(given, "there is no test of the name in `only`");
    struct tarn_kit *kit = calloc(1, sizeof *kit);
    struct tarn_kit_watch *watch = calloc(1, sizeof *watch);
    if (!kit || !watch) {
        free(kit);
        free(watch);
        return refuse(given, "no memory");
    }
    const struct tarn_conformance suite = *given;
    kit->suite = suite;
    kit->watch = watch;
    kit->patience_ns = given->patience_ns > 0 ? given->patience_ns : PATIENCE_NS;
    watch->kit = kit;
    watch->suite = suite;
    watch->patience_ns = kit->patience_ns;
    watch->since_ns = tarn_kit_now_ns();
    pthread_mutex_init(&watch->lock, NULL);
    pthread_cond_init(&watch->changed, NULL);
    int failures = run_watched(watch);
    return failures < 0 ? refuse(&suite, "no thread") : failures;
}
