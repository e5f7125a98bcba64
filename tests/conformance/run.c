/* Runs the tests one after another, each on the device opened anew, and tells the results as TAP. A
 * test that fails or is skipped leaves by longjmp. Cost: the tests'. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "kit.h"

static const struct tarn_kit_test *const parts[] = {
    tarn_kit_memory,   tarn_kit_order, tarn_kit_capture, tarn_kit_patterns,
    tarn_kit_sessions, tarn_kit_turns, tarn_kit_endings, tarn_kit_failures,
};
enum { PARTS = sizeof parts / sizeof *parts };

/* ---- Telling ---- */

__attribute__((format(printf, 2, 3))) static void say(const struct tarn_conformance *suite,
                                                      const char *format, ...)
{
    char line[1000];
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
    int used = snprintf(kit->text, sizeof kit->text, "%s:%d: ", name ? name + 1 : file, line);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(kit->text + used, sizeof kit->text - (size_t)used, format, arguments);
    va_end(arguments);
    kit->result = 1;
    longjmp(kit->end, 1);
}

void tarn_kit_skip(struct tarn_kit *kit, const char *why)
{
    snprintf(kit->text, sizeof kit->text, "%s", why);
    kit->result = 2;
    longjmp(kit->end, 1);
}

/* ---- Tests ---- */

static void run_open(struct tarn_kit *kit, const struct tarn_kit_test *test)
{
    if (setjmp(kit->end) == 0) test->run(kit);
}

/* 0: passed; 1: failed; 2: skipped. */
static int run_test(struct tarn_kit *kit, const struct tarn_kit_test *test)
{
    kit->text[0] = '\0';
    if (!tarn_kit_open(kit)) {
        snprintf(kit->text, sizeof kit->text, "the device is not here");
        return kit->suite.required ? 1 : 2;
    }
    run_open(kit, test);
    if (kit->lost) return 1;
    uint64_t left = tarn_kit_close(kit);
    if (kit->result == 1 || left == 0) return kit->result;
    snprintf(kit->text, sizeof kit->text, "%llu objects of the device are left",
             (unsigned long long)left);
    return 1;
}

static bool is_wanted(const struct tarn_conformance *suite, const struct tarn_kit_test *test)
{
    return !suite->only || strcmp(suite->only, test->name) == 0;
}

static void tell(const struct tarn_kit *kit, const struct tarn_kit_test *test, int number,
                 int result)
{
    say(&kit->suite, "%s %d - %s%s%s", result == 1 ? "not ok" : "ok", number, test->name,
        result == 2 ? " # SKIP " : "", result == 2 ? kit->text : "");
    if (result == 1) say(&kit->suite, "# %s", kit->text);
    if (kit->lost) say(&kit->suite, "Bail out! %s", kit->lost);
}

static int run_all(struct tarn_kit *kit)
{
    int count = 0, failures = 0, number = 0;
    for (int i = 0; i < PARTS; i++)
        for (const struct tarn_kit_test *test = parts[i]; test->name; test++)
            count += is_wanted(&kit->suite, test);
    say(&kit->suite, "1..%d", count);
    for (int i = 0; i < PARTS; i++) {
        for (const struct tarn_kit_test *test = parts[i]; test->name; test++) {
            if (!is_wanted(&kit->suite, test)) continue;
            int result = run_test(kit, test);
            failures += result == 1;
            tell(kit, test, ++number, result);
            if (kit->lost) return failures;
        }
    }
    return failures;
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

static bool has_test(const struct tarn_conformance *suite)
{
    for (int i = 0; i < PARTS; i++)
        for (const struct tarn_kit_test *test = parts[i]; test->name; test++)
            if (is_wanted(suite, test)) return true;
    return false;
}

int tarn_conformance_run(const struct tarn_conformance *given)
{
    if (!given) return refuse(NULL, "the suite is NULL");
    if (given->struct_size != sizeof *given)
        return refuse(NULL, "struct_size is not that of this library's header");
    if (!given->open) return refuse(given, "open is NULL");
    if (!has_test(given)) return refuse(given, "there is no test of the name in `only`");
    struct tarn_kit *kit = calloc(1, sizeof *kit);
    if (!kit) return refuse(given, "no memory");
    kit->suite = *given;
    int failures = run_all(kit);
    free(kit);
    return failures;
}
