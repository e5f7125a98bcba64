/* Tables of costs: what is read, what is refused and where, and factors against wide arithmetic. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "planner/transform/implementations/cost_table.h"
#include "streams/graph/validate.h"
#include "streams/text/text_file.h"
#include "support/random_graph.h"
#include "tarn.h"

#define MODEL \
    "kind,implementation,time_factor,workspace_factor,needs_input,needs_output,keeps_factor\n"
#define MEASURED "op,implementation,ns,workspace\n"

__extension__ typedef unsigned __int128 wide;

static enum tarn_status load(const char *text, size_t size, struct tarn_cost_table **table,
                             struct tarn_error *error)
{
    char path[] = "/tmp/tarn_costs_XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, size), size);
    close(fd);
    enum tarn_status status = tarn_cost_table_load(path, table, error);
    unlink(path);
    return status;
}

static struct tarn_cost_table *loaded(const char *text)
{
    struct tarn_cost_table *table;
    struct tarn_error error;
    if (load(text, strlen(text), &table, &error) != TARN_OK) fail_msg("%s", error.text);
    return table;
}

static void rows_are_found_by_name_in_the_order_of_the_file(void **state)
{
    (void)state;
    struct tarn_cost_table *table =
        loaded("\xef\xbb\xbf" MODEL "b, y ,1.5,0.25,1,0,0.03125\r\n\n"
               "a,z,2,0,,,\n"
               "b,x,0.000000001,1000,0,1,\n" MEASURED
               "conv_1,,7,8\nconv_0,fast,9007199254740991,0\n" MODEL "b,w,1,1,,,1");
    size_t count;
    const struct tarn_model_row *rows = tarn_cost_table_models(table, "b", &count);
    assert_int_equal(count, 3);
    assert_string_equal(rows[0].implementation, "y");
    assert_string_equal(rows[1].implementation, "x");
    assert_string_equal(rows[2].implementation, "w");
    assert_true(rows[0].time.whole == 1 && rows[0].time.billionths == 500000000);
    assert_int_equal(rows[0].keeps.billionths, 31250000);
    assert_true(rows[0].input == TARN_NEEDED && rows[0].output == TARN_NOT_NEEDED);
    assert_true(rows[0].replaces_kept && !rows[1].replaces_kept && rows[2].replaces_kept);
    assert_int_equal(rows[1].time.billionths, 1);
    assert_true(tarn_factor_is(rows[1].workspace, 1000) && tarn_factor_is(rows[2].keeps, 1));
    assert_true(rows[2].input == TARN_AS_TRACED && rows[2].output == TARN_AS_TRACED);
    tarn_cost_table_models(table, "a", &count);
    assert_int_equal(count, 1);
    tarn_cost_table_models(table, "", &count);
    assert_int_equal(count, 0);
    tarn_cost_table_models(table, "c", &count);
    assert_int_equal(count, 0);
    const struct tarn_measured_row *measured = tarn_cost_table_measured(table, "conv_0", &count);
    assert_int_equal(count, 1);
    assert_true(measured->ns == 9007199254740991 && measured->workspace == 0);
    measured = tarn_cost_table_measured(table, "conv_1", &count);
    assert_true(count == 1 && measured->ns == 7 && measured->workspace == 8);
    assert_string_equal(measured->implementation, "");
    tarn_cost_table_destroy(table);
    tarn_cost_table_destroy(NULL);
}

static void what_is_wrong_is_refused_with_line_and_column(void **state)
{
    static const struct {
        const char *text;
        uint32_t line, column;
        const char *says;
    } cases[] = {
        {"kind,implementation\n", 1, 1, "expected the columns"},
        {"\n\n", 2, 1, "found nothing"},
        {"\xef\xbb\xbf", 1, 1, "found nothing"},
        {"a,b,c,d\n", 1, 1, "expected the columns"},
        {MODEL "a,b,1,0,,\n", 2, 1, "6 values for 7 columns"},
        {MODEL "a,b,1,0,,,,\n", 2, 12, "more than 7 values"},
        {MODEL "\na,,1,0,,,\n", 3, 3, "a name is missing"},
        {MODEL ",b,1,0,,,\n", 2, 1, "a name is missing"},
        {MODEL "a,\"b,1,0,,,\n", 2, 1, "does not end with its quote"},
        {MODEL "a,b,,0,,,\n", 2, 5, "a factor from 0 to 1000"},
        {MODEL "a,b,.5,0,,,\n", 2, 5, "a factor"},
        {MODEL "a,b,1e3,0,,,\n", 2, 5, "found \"1e3\""},
        {MODEL "a,b,-1,0,,,\n", 2, 5, "a factor"},
        {MODEL "a,b,1,1000.000000001,,,\n", 2, 7, "a factor"},
        {MODEL "a,b,1,1001,,,\n", 2, 7, "a factor"},
        {MODEL "a,b,1,0.0000000001,,,\n", 2, 7, "nine decimals"},
        {MODEL "a,b,1,99999999999999999999,,,\n", 2, 7, "a factor"},
        {MODEL "a,b,1,0,2,,\n", 2, 9, "0, 1 or nothing"},
        {MODEL "a,b,1,0,,yes,\n", 2, 10, "0, 1 or nothing"},
        {MODEL "a,b,1,0,,,1.5\n", 2, 11, "a factor from 0 to 1 "},
        {MEASURED "a,b,1\n", 2, 1, "3 values for 4 columns"},
        {MEASURED ",b,1,0\n", 2, 1, "a name is missing"},
        {MEASURED "a,\"b\"c,1,0\n", 2, 1, "does not end with its quote"},
        {MEASURED "a,b,,0\n", 2, 5, "a number"},
        {MEASURED "a,b,1.5,0\n", 2, 5, "a number from 0 to 2^53-1"},
        {MEASURED "a,b,1,9007199254740992\n", 2, 7, "a number"},
        {MEASURED MODEL "a,b,7,8\n", 3, 1, "4 values for 7 columns"},
        {MODEL "a,b\xff,1,0,,,\n", 2, 3, "the name \"b?\" is not valid UTF-8"},
        {MEASURED "a\xc3,,1,0\n", 2, 1, "the name \"a?\" is not valid UTF-8"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tarn_cost_table *table;
        struct tarn_error error;
        assert_int_equal(load(cases[i].text, strlen(cases[i].text), &table, &error),
                         TARN_BAD_INPUT);
        assert_null(table);
        if (!strstr(error.text, cases[i].says) || error.line != cases[i].line ||
            error.column != cases[i].column)
            fail_msg("case %zu: %u:%u %s", i, error.line, error.column, error.text);
    }
}

/* What no graph may have as a name would be refused later, without the line. */
static void a_name_that_is_too_long_is_refused_with_its_line(void **state)
{
    enum { LONGEST = 4096 };
    char name[LONGEST + 2], text[LONGEST + 100];
    (void)state;
    memset(name, 'n', sizeof name);
    for (size_t length = LONGEST; length <= LONGEST + 1; length++) {
        struct tarn_cost_table *table;
        struct tarn_error error;
        int size = snprintf(text, sizeof text, MEASURED "a,%.*s,1,0\n", (int)length, name);
        enum tarn_status status = load(text, (size_t)size, &table, &error);
        assert_int_equal(status, length > LONGEST ? TARN_BAD_INPUT : TARN_OK);
        tarn_cost_table_destroy(table);
    }
}

static void what_is_no_table_is_refused(void **state)
{
    struct tarn_cost_table *table;
    struct tarn_error error;
    (void)state;
    assert_int_equal(load(MODEL "a\0b", sizeof MODEL + 2, &table, &error), TARN_BAD_INPUT);
    assert_non_null(strstr(error.text, "NUL"));
    assert_int_equal(load("", 0, &table, &error), TARN_BAD_INPUT);
    assert_int_equal(tarn_cost_table_load("/no/such/file.csv", &table, &error), TARN_SYSTEM);
}

static void a_table_of_too_many_lines_is_refused(void **state)
{
    (void)state;
    char path[] = "/tmp/tarn_costs_XXXXXX.gz";
    int fd = mkstemps(path, 3);
    size_t size = (size_t)TARN_OPS_MAX + 1;
    char *lines = malloc(size);
    struct tarn_cost_table *table;
    struct tarn_error error;
    assert_true(lines && fd >= 0);
    close(fd);
    memset(lines, '\n', size);
    assert_int_equal(tarn_text_write(path, lines, size, NULL), TARN_OK);
    free(lines);
    enum tarn_status status = tarn_cost_table_load(path, &table, &error);
    unlink(path);
    assert_int_equal(status, TARN_BAD_INPUT);
    assert_non_null(strstr(error.text, "has too many lines"));
}

static void a_table_may_come_through_standard_input(void **state)
{
    (void)state;
    static const char text[] = MEASURED "a,b,1\n";
    struct tarn_cost_table *table;
    struct tarn_error error;
    int kept = dup(STDIN_FILENO), ends[2];
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], text, strlen(text)), strlen(text));
    close(ends[1]);
    dup2(ends[0], STDIN_FILENO);
    enum tarn_status status = tarn_cost_table_load("-", &table, &error);
    dup2(kept, STDIN_FILENO);
    close(ends[0]);
    close(kept);
    assert_int_equal(status, TARN_BAD_INPUT);
    assert_string_equal(error.text, "standard input: line 2, column 1: 3 values for 4 columns");
}

/* Every prefix and every change of a byte: refused or read, never worse (sanitizers look on). */
static void damaged_tables_do_no_harm(void **state)
{
    static const char whole[] = MODEL "a,b,1.25,0.5,1,0,0.125\n" MEASURED "op,fast,12,34\n";
    struct random_source source = {1};
    (void)state;
    for (unsigned i = 0; i < 3000; i++) {
        char text[sizeof whole];
        struct tarn_cost_table *table;
        size_t size = i < sizeof whole ? i : sizeof whole - 1;
        memcpy(text, whole, sizeof whole);
        if (i >= sizeof whole)
            text[random_below(&source, (uint32_t)size)] = (char)random_below(&source, 256);
        enum tarn_status status = load(text, size, &table, NULL);
        assert_true(status == TARN_OK || status == TARN_BAD_INPUT);
        assert_true((status == TARN_OK) == (table != NULL));
        tarn_cost_table_destroy(table);
    }
}

static struct tarn_factor random_factor(struct random_source *source)
{
    return (struct tarn_factor){random_below(source, 1001), random_below(source, 1000000000)};
}

static wide billionths(struct tarn_factor factor)
{
    return (wide)factor.whole * 1000000000 + factor.billionths;
}

static void require_exact(struct tarn_factor factor, uint64_t n)
{
    wide product = (wide)n * billionths(factor);
    wide up = (product + 999999999) / 1000000000, near = (product + 500000000) / 1000000000;
    assert_true(tarn_factor_up(factor, n) == (up > UINT64_MAX ? UINT64_MAX : (uint64_t)up));
    assert_true(tarn_factor_nearest(factor, n) ==
                (near > UINT64_MAX ? UINT64_MAX : (uint64_t)near));
}

static void factors_are_exact(void **state)
{
    struct random_source source = {2};
    (void)state;
    for (unsigned i = 0; i < 200000; i++)
        require_exact(random_factor(&source), random_next(&source) >> random_below(&source, 64));
}

/* Around the first number whose product does not fit any more. */
static void factors_stop_at_64_bits(void **state)
{
    struct random_source source = {3};
    (void)state;
    for (unsigned i = 0; i < 20000; i++) {
        struct tarn_factor factor = random_factor(&source);
        if (billionths(factor) <= 1000000000) continue;
        uint64_t limit = (uint64_t)(((wide)UINT64_MAX + 1) * 1000000000 / billionths(factor));
        for (uint64_t n = limit - 3; n <= limit + 3; n++) require_exact(factor, n);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_found_by_name_in_the_order_of_the_file),
        cmocka_unit_test(what_is_wrong_is_refused_with_line_and_column),
        cmocka_unit_test(a_name_that_is_too_long_is_refused_with_its_line),
        cmocka_unit_test(what_is_no_table_is_refused),
        cmocka_unit_test(a_table_of_too_many_lines_is_refused),
        cmocka_unit_test(a_table_may_come_through_standard_input),
        cmocka_unit_test(damaged_tables_do_no_harm),
        cmocka_unit_test(factors_are_exact),
        cmocka_unit_test(factors_stop_at_64_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
