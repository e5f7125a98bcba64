/* Reading JSON: what is accepted, refused and decoded, asked of short texts and of random ones
 * whose meaning is known because they were written from it; each small, and so large that it is
 * read piece by piece. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "streams/file/json_read.h"
#include "streams/file/json_scan.h"
#include "streams/text/json_write.h"
#include "streams/text/text_file.h"
#include "support/random_graph.h"

/* More than what is read whole. */
enum { LARGE = 70000 };

/* A document that is read from a copy of a text which ends where its memory ends, so that a
 * sanitizer sees one byte too many. */
struct reading {
    struct tarn_error error;
    struct tarn_report report;
    struct tarn_json_at document;
    char *copy;
};

/* Reads all elements of all large arrays in a value, and writes the value without blanks to the
 * file unless that is NULL. */
static enum tarn_status walk(const struct tarn_json_at *at, FILE *file)
{
    enum tarn_status status = TARN_OK;
    const char *key;
    json_t *member;
    bool is_first = true;
    if (tarn_json_is_object(at)) {
        if (file) fputc('{', file);
        json_object_foreach(at->value, key, member)
        {
            struct tarn_json_at in = tarn_json_in(at, key);
            if (file) fprintf(file, "%s\"%s\":", is_first ? "" : ",", key);
            if (!status) status = walk(&in, file);
            is_first = false;
        }
        if (file) fputc('}', file);
    } else if (tarn_json_is_array(at)) {
        struct tarn_json_at item = tarn_json_items(at);
        if (file) fputc('[', file);
        while (tarn_json_next(&item, &status)) {
            if (file && item.index > 0) fputc(',', file);
            status = walk(&item, file);
        }
        if (file) fputc(']', file);
    } else if (file) {
        tarn_json_write(file, json_incref(at->value));
    }
    return status;
}

static enum tarn_status read_text(const char *text, size_t size, struct reading *reading)
{
    *reading = (struct reading){.report = {.path = "text"}};
    tarn_error_clear(&reading->error);
    reading->report.error = &reading->error;
    reading->copy = malloc(size + 1);
    assert_non_null(reading->copy);
    memcpy(reading->copy, text, size);
    reading->copy[size] = '\0';
    enum tarn_status status =
        tarn_json_parse(&reading->report, reading->copy, size, &reading->document);
    return status ? status : walk(&reading->document, NULL);
}

static void reading_finish(struct reading *reading)
{
    tarn_json_close(&reading->document, NULL);
    free(reading->copy);
}

/* The text with so many blanks after the first bracket that what begins there is large: the fault
 * must be found there too, as many columns later. */
static char *inflate_text(const char *text, size_t size, size_t *inflated)
{
    size_t bracket = strcspn(text, "[{");
    char *large = malloc(size + LARGE + 1);
    assert_non_null(large);
    if (bracket == size) bracket = size - 1;
    memcpy(large, text, bracket + 1);
    memset(large + bracket + 1, ' ', LARGE);
    memcpy(large + bracket + 1 + LARGE, text + bracket + 1, size - bracket);
    *inflated = size + LARGE;
    return large;
}

static void accepts_what_rfc_8259_does(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "[]",
        "{}",
        " \t\r\n[ ]\n",
        "[[],{}]",
        "{\"\":0}",
        "[0,-0,1,-1,10,9223372036854775807,-9223372036854775808]",
        "[0.5,-0.5,1e9,1E+9,1e-9,1.25e+02,1e-999]",
        "[true,false,null]",
        "[\"\"]",
        "[\"\\/\"]",
        "[\"\x7f\"]",
        "{\"a\":{\"b\":[{\"c\":null}]}}",
        "{\"a\" : [ 1 , 2 ] , \"b\" : \"]\\\"[\" }",
        "[\"\xf0\x9f\x98\x80\"]",
        "[\"\\ud83d\\ude00\"]",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct reading reading;
        size_t size;
        char *large = inflate_text(texts[i], strlen(texts[i]), &size);
        if (read_text(texts[i], strlen(texts[i]), &reading)) fail_msg("%s", reading.error.text);
        reading_finish(&reading);
        if (read_text(large, size, &reading)) fail_msg("large: %s", reading.error.text);
        reading_finish(&reading);
        free(large);
    }
}

/* Jansson tells the begin or the end of the token that it does not like. */
static void assert_at(const struct tarn_error *error, const char *text, uint32_t line,
                      uint32_t column)
{
    if (error->line != line || error->column + 2 < column || error->column > column + 12)
        fail_msg("%s, expected at line %u, column %u: %s", text, line, column, error->text);
}

static void refuses_everything_else_at_its_place(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t size; /* 0: up to its NUL */
        uint32_t line, column;
    } cases[] = {
        {"", 0, 1, 1},
        {"1", 0, 1, 1},
        {"\"a\"", 0, 1, 1},
        {"null", 0, 1, 1},
        {"[", 0, 1, 2},
        {"[1", 0, 1, 3},
        {"[1,", 0, 1, 4},
        {"[1,]", 0, 1, 4},
        {"[,1]", 0, 1, 2},
        {"[1 2]", 0, 1, 4},
        {"[1}", 0, 1, 3},
        {"{1:2}", 0, 1, 2},
        {"{\"a\"}", 0, 1, 5},
        {"{\"a\":}", 0, 1, 6},
        {"{\"a\":1,}", 0, 1, 8},
        {"{\"a\" 1}", 0, 1, 6},
        {"[1]]", 0, 1, 4},
        {"[1] [2]", 0, 1, 5},
        {"[01]", 0, 1, 3},
        {"[-]", 0, 1, 3},
        {"[+1]", 0, 1, 2},
        {"[.5]", 0, 1, 2},
        {"[1.]", 0, 1, 4},
        {"[1e]", 0, 1, 4},
        {"[0x1]", 0, 1, 3},
        {"[NaN]", 0, 1, 2},
        {"[tru]", 0, 1, 2},
        {"[nullx]", 0, 1, 6},
        {"['a']", 0, 1, 2},
        {"[\"a]", 0, 1, 5},
        {"[\"\\x\"]", 0, 1, 3},
        {"[\"\\", 0, 1, 3},
        {"[\"\\u12\"]", 0, 1, 3},
        {"[\"\\u", 0, 1, 3},
        {"[\"\\u00g0\"]", 0, 1, 3},
        {"[\"\\u00G0\"]", 0, 1, 3},
        {"[\"\\u00@0\"]", 0, 1, 3},
        {"[\"\\u0000\"]", 0, 1, 3},
        {"[\"\\ud800\"]", 0, 1, 3},
        {"[\"\\ude00\"]", 0, 1, 3},
        {"[\"\\ud83d\\u0041\"]", 0, 1, 3},
        {"[\"a\tb\"]", 0, 1, 4},
        {"[\"a\0b\"]", 7, 1, 4},
        {"[1\0]", 4, 1, 3},
        {"[1]\0", 4, 1, 4},
        {"[\"\xc3\"]", 0, 1, 3},
        {"[\"\xc0\xaf\"]", 0, 1, 3},
        {"[\"\xed\xa0\x80\"]", 0, 1, 3},
        {"[\"\xf4\x90\x80\x80\"]", 0, 1, 3},
        {"[\xff]", 0, 1, 2},
        {"[\n\n \"\xc3\xa9\\n\\u00e9\", 01]", 0, 3, 16}, /* columns count characters as written */
        {"[9223372036854775808]", 0, 1, 20},
        {"[1e999]", 0, 1, 6},
        {"{\"a\":1,\"a\":2}", 0, 1, 10},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct reading reading;
        size_t size = cases[i].size ? cases[i].size : strlen(cases[i].text), inflated;
        if (!read_text(cases[i].text, size, &reading)) fail_msg("%s is accepted", cases[i].text);
        assert_at(&reading.error, cases[i].text, cases[i].line, cases[i].column);
        reading_finish(&reading);
        if (!strpbrk(cases[i].text, "[{")) continue;
        char *large = inflate_text(cases[i].text, size, &inflated);
        if (!read_text(large, inflated, &reading)) fail_msg("large %s", cases[i].text);
        bool is_shifted = cases[i].line == 1 && cases[i].column > 1; /* or, outside, is before it */
        assert_at(&reading.error, cases[i].text, cases[i].line,
                  cases[i].column + (is_shifted ? LARGE : 0));
        reading_finish(&reading);
        free(large);
    }
}

static void nesting_has_a_limit(void **state)
{
    (void)state;
    for (size_t depth = TARN_JSON_DEPTH_MAX - 1; depth <= TARN_JSON_DEPTH_MAX + 1; depth++) {
        char text[2 * (TARN_JSON_DEPTH_MAX + 1) + 1] = "";
        struct reading reading;
        size_t size;
        memset(text, '[', depth);
        memset(text + depth, ']', depth);
        enum tarn_status expected = depth <= TARN_JSON_DEPTH_MAX ? TARN_OK : TARN_BAD_INPUT;
        assert_int_equal(read_text(text, 2 * depth, &reading), expected);
        reading_finish(&reading);
        char *large = inflate_text(text, 2 * depth, &size);
        assert_int_equal(read_text(large, size, &reading), expected);
        reading_finish(&reading);
        free(large);
    }
}

/* ---- Random values ---- */

/* A value twice: as somebody might write it, and as compact as Tarn does. */
struct writer {
    struct random_source *source;
    FILE *loose, *compact;
};

static void write_both(const struct writer *writer, const char *text)
{
    fputs(text, writer->loose);
    fputs(text, writer->compact);
}

static void write_blanks(const struct writer *writer)
{
    static const char blanks[] = " \t\r\n";
    while (random_percent(writer->source, 30))
        fputc(blanks[random_below(writer->source, 4)], writer->loose);
}

static void write_string(const struct writer *writer)
{
    static const struct {
        const char *loose, *compact;
    } characters[] = {
        {"a", "a"},
        {"\\u0061", "a"},
        {"\\\"", "\\\""},
        {"\\u0022", "\\\""},
        {"\\\\", "\\\\"},
        {"\\/", "/"},
        {"\\n", "\\n"},
        {"\\u001F", "\\u001F"},
        {"\\b\\f\\r\\t", "\\b\\f\\r\\t"},
        {"\xc3\xa9", "\\u00E9"},
        {"\\u00e9", "\\u00E9"},
        {"\\u20AC", "\\u20AC"},
        {"\\uD83D\\uDE00", "\\uD83D\\uDE00"},
        {"[{,:}]", "[{,:}]"},
        {" ", " "},
    };
    write_both(writer, "\"");
    while (random_percent(writer->source, 70)) {
        size_t i = random_below(writer->source, sizeof characters / sizeof *characters);
        fputs(characters[i].loose, writer->loose);
        fputs(characters[i].compact, writer->compact);
    }
    write_both(writer, "\"");
}

/* Returns how deep it is. */
static size_t write_value(const struct writer *writer, unsigned depth_left)
{
    static const char *const words[] = {"true", "false", "null", "0", "-12", "1.5", "-0.03"};
    size_t deepest = 0;
    uint32_t kind = depth_left > 0 ? random_below(writer->source, 4) : 2;
    if (kind < 2) {
        write_both(writer, kind == 0 ? "[" : "{");
        write_blanks(writer);
        for (uint32_t i = 0, n = random_below(writer->source, 5); i < n; i++) {
            char key[16];
            if (i > 0) write_both(writer, ",");
            write_blanks(writer);
            snprintf(key, sizeof key, "\"%u\"", i);
            if (kind == 1) write_both(writer, key);
            write_blanks(writer);
            if (kind == 1) write_both(writer, ":");
            write_blanks(writer);
            size_t depth = write_value(writer, depth_left - 1);
            if (depth > deepest) deepest = depth;
            write_blanks(writer);
        }
        write_both(writer, kind == 0 ? "]" : "}");
        return deepest + 1;
    }
    if (kind == 2)
        write_both(writer, words[random_below(writer->source, sizeof words / sizeof *words)]);
    else
        write_string(writer);
    return 0;
}

struct texts {
    char *loose, *compact;
    size_t loose_size, compact_size, depth;
};

static struct texts draw_texts(struct random_source *source)
{
    struct texts texts = {0};
    struct writer writer = {source, open_memstream(&texts.loose, &texts.loose_size),
                            open_memstream(&texts.compact, &texts.compact_size)};
    write_blanks(&writer);
    write_both(&writer, "[");
    texts.depth = 1 + write_value(&writer, 6);
    write_both(&writer, "]");
    write_blanks(&writer);
    fclose(writer.loose);
    fclose(writer.compact);
    return texts;
}

static void texts_finish(struct texts *texts)
{
    free(texts->loose);
    free(texts->compact);
}

static void print_walk(const void *document, FILE *file) { walk(document, file); }

/* Small and large, by their items and as an object that is kept. */
static void random_values_read_as_they_were_meant(void **state)
{
    (void)state;
    struct random_source source = {1};
    for (int round = 0; round < DRAWS(20000); round++) {
        struct texts texts = draw_texts(&source);
        struct reading reading;
        struct tarn_region region = {0};
        const char *kept = NULL;
        if (read_text(texts.loose, texts.loose_size, &reading))
            fail_msg("%s: %s", texts.loose, reading.error.text);
        char *walked = tarn_text_print(print_walk, &reading.document, NULL);
        assert_string_equal(walked, texts.compact);
        struct tarn_json_at item = {.report = &reading.report,
                                    .value = json_array_get(reading.document.value, 0)};
        if (tarn_json_is_object(&item)) {
            assert_int_equal(tarn_json_keep(&item, &region, &kept), TARN_OK);
            assert_int_equal(strlen(kept) + 2, texts.compact_size);
            assert_memory_equal(kept, texts.compact + 1, strlen(kept));
        }
        tarn_region_finish(&region);
        reading_finish(&reading);
        free(walked);
        texts_finish(&texts);
    }
}

/* Puts so many blanks in some places where blanks may be that what is around them is large. */
static void put_blanks(struct texts *texts, struct random_source *source)
{
    char *text = NULL;
    size_t size = 0;
    bool in_string = false;
    FILE *file = open_memstream(&text, &size);
    for (const char *at = texts->loose; *at; at++) {
        fputc(*at, file);
        in_string ^= *at == '"';
        if (*at == '\\') fputc(*++at, file);
        if (!in_string && strchr("[{,:", *at) && random_percent(source, 15))
            fprintf(file, "%*s", LARGE, "");
    }
    fclose(file);
    free(texts->loose);
    texts->loose = text;
    texts->loose_size = size;
}

static void what_is_large_reads_as_what_is_small(void **state)
{
    (void)state;
    struct random_source source = {3};
    for (int round = 0; round < DRAWS(500); round++) {
        struct texts texts = draw_texts(&source);
        struct reading reading;
        struct tarn_region region = {0};
        const char *kept = NULL;
        put_blanks(&texts, &source);
        if (read_text(texts.loose, texts.loose_size, &reading)) fail_msg("%s", reading.error.text);
        char *walked = tarn_text_print(print_walk, &reading.document, NULL);
        assert_string_equal(walked, texts.compact);
        reading_finish(&reading);
        texts.loose[strcspn(texts.loose, "[")] = ' '; /* the value alone, if it is an object */
        *strrchr(texts.loose, ']') = ' ';
        if (read_text(texts.loose, texts.loose_size, &reading) == TARN_OK &&
            tarn_json_is_object(&reading.document)) {
            assert_int_equal(tarn_json_keep(&reading.document, &region, &kept), TARN_OK);
            assert_memory_equal(kept, texts.compact + 1, strlen(kept));
            assert_int_equal(strlen(kept) + 2, texts.compact_size);
        }
        tarn_region_finish(&region);
        reading_finish(&reading);
        free(walked);
        texts_finish(&texts);
    }
}

/* What is accepted after damage means something: written and read again it stays the same. Large,
 * it is accepted or refused as it is when it is small. */
static void damage_is_refused_or_means_something(void **state)
{
    (void)state;
    static const char bytes[] = "[]{}\",:\\u0 1e-.tn\xc3\x80\n";
    struct random_source source = {2};
    unsigned accepted = 0, rounds = DRAWS(20000);
    for (unsigned round = 0; round < rounds; round++) {
        struct texts texts = draw_texts(&source);
        struct reading reading, again;
        for (uint32_t n = 1 + random_below(&source, 2); n > 0; n--)
            texts.loose[random_below(&source, (uint32_t)texts.loose_size)] =
                bytes[random_below(&source, sizeof bytes)];
        enum tarn_status status = read_text(texts.loose, texts.loose_size, &reading);
        if (status == TARN_OK) {
            char *first = tarn_text_print(print_walk, &reading.document, NULL);
            if (read_text(first, strlen(first), &again))
                fail_msg("%s: %s", first, again.error.text);
            char *second = tarn_text_print(print_walk, &again.document, NULL);
            assert_string_equal(first, second);
            reading_finish(&again);
            free(first);
            free(second);
            accepted++;
        } else {
            if (reading.error.line == 0 || reading.error.column == 0)
                fail_msg("%s: %s", reading.error.text, texts.loose);
        }
        if (round % 16 == 0 && memchr(texts.loose, '[', texts.loose_size)) {
            size_t size;
            char *large = inflate_text(texts.loose, texts.loose_size, &size);
            if (read_text(large, size, &again) != status)
                fail_msg("%d, large %s: %s", status, again.error.text, texts.loose);
            reading_finish(&again);
            free(large);
        }
        reading_finish(&reading);
        texts_finish(&texts);
    }
    assert_true(accepted > rounds / 50 && accepted < rounds / 2);
}

static void a_key_twice_is_refused_in_its_object(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool is_twice;
    } cases[] = {
        {"{\"a\":1,\"b\":2}", false},
        {"{\"a\":1,\"b\":2,\"a\":3}", true},
        {"{\"a\":{\"a\":1},\"b\":{\"a\":1}}", false},
        {"[{\"a\":1},{\"a\":2}]", false},
        {"[{\"a\":1,\"a\":2}]", true},
        {"{\"a\":\"a\",\"b\":[\"b\",\"b\"]}", false},
        {"{\"x\":[{\"b\":{},\"c\":[],\"b\":0}],\"y\":1}", true},
        {"{\"x\":{\"y\":1},\"\":1,\"\":2}", true},
        {"{\"\\u0061\":1,\"a\":2}", true},
        {"{\"k\" : 1, \"l\": 2, \"k\"\n: 3}", true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct reading reading;
        size_t size;
        char *large = inflate_text(cases[i].text, strlen(cases[i].text), &size);
        bool is_twice = read_text(cases[i].text, strlen(cases[i].text), &reading) != TARN_OK;
        if (is_twice != cases[i].is_twice) fail_msg("%s", cases[i].text);
        reading_finish(&reading);
        if ((read_text(large, size, &reading) != TARN_OK) != is_twice)
            fail_msg("large: %s", cases[i].text);
        reading_finish(&reading);
        free(large);
    }
}

/* ---- Memory ---- */

static long allocations_left = -1; /* -1: none fails */

static void *take_or_fail(size_t size)
{
    if (allocations_left == 0) {
        errno = ENOMEM;
        return NULL;
    }
    if (allocations_left > 0) allocations_left--;
    return malloc(size);
}

/* Strings are short, since jansson's own buffer for a longer one does not survive a failure. */
static void refused_memory_is_told_as_that(void **state)
{
    (void)state;
    static const char text[] =
        "{\"name\":\"x\",\"list\":[1,2.5,true,null,\"\\n\"],\"in\":{\"a\":[],\"b\":{}}}";
    size_t size;
    char *large = inflate_text(text, strlen(text), &size);
    json_set_alloc_funcs(take_or_fail, free);
    for (int is_large = 0; is_large < 2; is_large++) {
        enum tarn_status status = TARN_SYSTEM;
        long n = 0;
        for (; status != TARN_OK; n++) {
            struct reading reading;
            allocations_left = n;
            status = read_text(is_large ? large : text, is_large ? size : strlen(text), &reading);
            allocations_left = -1;
            if (status && status != TARN_SYSTEM) fail_msg("%ld: %s", n, reading.error.text);
            reading_finish(&reading);
        }
        assert_true(n > 20);
    }
    json_set_alloc_funcs(malloc, free);
    free(large);
}

/* A number that cannot be put, and what it was to be in, end in the error of the stream. */
static void print_nothing(const void *subject, FILE *file)
{
    json_t *object = json_object();
    tarn_json_put(&object, "a", json_integer(1));
    if (subject) tarn_json_put(&object, "b", NULL);
    tarn_json_put(&object, "c", json_integer(2));
    tarn_json_write(file, object);
}

static void what_cannot_be_written_is_no_text(void **state)
{
    (void)state;
    char *text = tarn_text_print(print_nothing, NULL, NULL);
    assert_string_equal(text, "{\"a\":1,\"c\":2}");
    free(text);
    assert_null(tarn_text_print(print_nothing, text, NULL));
}

static void print_number(const void *text, FILE *file)
{
    tarn_json_write(file, json_loads(text, JSON_DECODE_ANY, NULL));
}

static void reals_have_the_digits_that_they_need(void **state)
{
    (void)state;
    static const char *const texts[] = {"0.1", "2.5", "0.30000000000000004", "1e100", "3.0"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        char *text = tarn_text_print(print_number, texts[i], NULL);
        assert_string_equal(text, texts[i]);
        free(text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(accepts_what_rfc_8259_does),
        cmocka_unit_test(refuses_everything_else_at_its_place),
        cmocka_unit_test(nesting_has_a_limit),
        cmocka_unit_test(random_values_read_as_they_were_meant),
        cmocka_unit_test(what_is_large_reads_as_what_is_small),
        cmocka_unit_test(damage_is_refused_or_means_something),
        cmocka_unit_test(a_key_twice_is_refused_in_its_object),
        cmocka_unit_test(refused_memory_is_told_as_that),
        cmocka_unit_test(what_cannot_be_written_is_no_text),
        cmocka_unit_test(reals_have_the_digits_that_they_need),
    };
    return cmocka_run_group_tests_name("json", tests, NULL, NULL);
}
