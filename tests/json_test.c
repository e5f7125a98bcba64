/* The reader of JSON: what it accepts, refuses and decodes, asked of short texts and of random ones
 * whose meaning is known because they were written from it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "streams/file/json_text.h"
#include "streams/text/text_file.h"
#include "support/random_graph.h"

/* Checks a copy of the text that ends where its memory ends, so that a sanitizer sees one byte too
 * many. The caller frees *copy. */
static const struct tarn_json *check(const char *text, size_t size, char **copy,
                                     struct tarn_json_fault *fault)
{
    *copy = malloc(size + 1);
    assert_non_null(*copy);
    memcpy(*copy, text, size);
    (*copy)[size] = '\0';
    return tarn_json_check(*copy, size, fault);
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
        "[0,-0,1,-1,10,123456789012345678901234567890]",
        "[0.5,-0.5,1e9,1E+9,1e-9,1.25e+02,1e999]",
        "[true,false,null]",
        "[\"\"]",
        "[\"\\/\"]",
        "[\"\x7f\"]",
        "{\"a\":{\"b\":[{\"c\":null}]}}",
        "[\"\xf0\x9f\x98\x80\"]",
        "[\"\\ud83d\\ude00\"]",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct tarn_json_fault fault;
        char *copy;
        if (!check(texts[i], strlen(texts[i]), &copy, &fault))
            fail_msg("%s: column %u: %s", texts[i], fault.column, fault.what);
        free(copy);
    }
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
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tarn_json_fault fault;
        char *copy;
        size_t size = cases[i].size ? cases[i].size : strlen(cases[i].text);
        if (check(cases[i].text, size, &copy, &fault)) fail_msg("%s is accepted", cases[i].text);
        if (fault.line != cases[i].line || fault.column != cases[i].column)
            fail_msg("%s: line %u, column %u: %s", cases[i].text, fault.line, fault.column,
                     fault.what);
        free(copy);
    }
}

static void nesting_has_a_limit(void **state)
{
    (void)state;
    for (size_t depth = TARN_JSON_DEPTH_MAX - 1; depth <= TARN_JSON_DEPTH_MAX + 1; depth++) {
        char text[2 * (TARN_JSON_DEPTH_MAX + 1)];
        struct tarn_json_fault fault;
        char *copy;
        memset(text, '[', depth);
        memset(text + depth, ']', depth);
        const struct tarn_json *value = check(text, 2 * depth, &copy, &fault);
        assert_int_equal(value != NULL, depth <= TARN_JSON_DEPTH_MAX);
        if (value) assert_int_equal(tarn_json_depth(value), depth);
        free(copy);
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
        {"\\n", "\\u000a"},
        {"\\u001F", "\\u001f"},
        {"\\b\\f\\r\\t", "\\u0008\\u000c\\u000d\\u0009"},
        {"\xc3\xa9", "\xc3\xa9"},
        {"\\u00e9", "\xc3\xa9"},
        {"\\u20AC", "\xe2\x82\xac"},
        {"\\uD83D\\uDE00", "\xf0\x9f\x98\x80"},
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
    static const char *const words[] = {"true", "false", "null", "0", "-12", "1.5e3", "3E-2"};
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

static void print_value(const void *value, FILE *file) { tarn_json_write_compact(value, file); }

/* Reads the value by its parts and writes it; the same as what write_compact does in one go. */
static void write_by_parts(const struct tarn_json *value, FILE *file)
{
    struct tarn_json_member member = {0};
    bool is_first = true;
    switch (tarn_json_type_of(value)) {
    case TARN_JSON_OBJECT:
        for (fputc('{', file); tarn_json_next_member(value, &member); is_first = false) {
            fprintf(file, "%s\"%s\":", is_first ? "" : ",", member.key);
            write_by_parts(member.value, file);
        }
        fputc('}', file);
        return;
    case TARN_JSON_ARRAY:
        fputc('[', file);
        value = tarn_json_first(value);
        for (; value; value = tarn_json_next(value), is_first = false) {
            if (!is_first) fputc(',', file);
            write_by_parts(value, file);
        }
        fputc(']', file);
        return;
    default: tarn_json_write_compact(value, file);
    }
}

static void print_by_parts(const void *value, FILE *file) { write_by_parts(value, file); }

static void random_values_read_as_they_were_meant(void **state)
{
    (void)state;
    struct random_source source = {1};
    for (int round = 0; round < DRAWS(20000); round++) {
        struct texts texts = draw_texts(&source);
        struct tarn_json_fault fault;
        const char *twin;
        char *copy;
        const struct tarn_json *value = check(texts.loose, texts.loose_size, &copy, &fault);
        if (!value) fail_msg("%s: %s", texts.loose, fault.what);
        char *whole = tarn_text_print(print_value, value, NULL);
        char *parts = tarn_text_print(print_by_parts, value, NULL);
        assert_string_equal(whole, texts.compact);
        assert_string_equal(parts, texts.compact);
        assert_int_equal(tarn_json_depth(value), texts.depth);
        assert_true(tarn_json_find_twin(value, &twin));
        assert_null(twin);
        free(whole);
        free(parts);
        free(copy);
        texts_finish(&texts);
    }
}

/* What is accepted after damage means something: written and read again it stays the same. */
static void damage_is_refused_or_means_something(void **state)
{
    (void)state;
    static const char bytes[] = "[]{}\",:\\u0 1e-.tn\xc3\x80\n";
    struct random_source source = {2};
    unsigned accepted = 0, rounds = DRAWS(20000);
    for (unsigned round = 0; round < rounds; round++) {
        struct texts texts = draw_texts(&source);
        struct tarn_json_fault fault;
        char *copy, *again;
        for (uint32_t n = 1 + random_below(&source, 2); n > 0; n--)
            texts.loose[random_below(&source, (uint32_t)texts.loose_size)] =
                bytes[random_below(&source, sizeof bytes)];
        const struct tarn_json *value = check(texts.loose, texts.loose_size, &copy, &fault);
        if (value) {
            char *first = tarn_text_print(print_value, value, NULL);
            value = check(first, strlen(first), &again, &fault);
            if (!value) fail_msg("%s: %s", first, fault.what);
            char *second = tarn_text_print(print_value, value, NULL);
            assert_string_equal(first, second);
            free(first);
            free(second);
            free(again);
            accepted++;
        } else {
            assert_true(fault.found >= copy && fault.found <= copy + texts.loose_size);
            assert_true(fault.line > 0 && fault.column > 0);
        }
        free(copy);
        texts_finish(&texts);
    }
    assert_true(accepted > rounds / 50 && accepted < rounds / 2);
}

static void a_key_twice_is_found_in_its_object(void **state)
{
    (void)state;
    static const struct {
        const char *text, *twin;
    } cases[] = {
        {"{\"a\":1,\"b\":2}", NULL},
        {"{\"a\":1,\"b\":2,\"a\":3}", "a"},
        {"{\"a\":{\"a\":1},\"b\":{\"a\":1}}", NULL},
        {"[{\"a\":1},{\"a\":2}]", NULL},
        {"{\"a\":\"a\",\"b\":[\"b\",\"b\"]}", NULL},
        {"{\"x\":[{\"b\":{},\"c\":[],\"b\":0}],\"y\":1}", "b"},
        {"{\"x\":{\"y\":1},\"\":1,\"\":2}", ""},
        {"{\"\\u0061\":1,\"a\":2}", "a"},
        {"{\"k\" : 1, \"l\": 2, \"k\"\n: 3}", "k"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tarn_json_fault fault;
        const char *twin;
        char *copy;
        const struct tarn_json *value = check(cases[i].text, strlen(cases[i].text), &copy, &fault);
        assert_non_null(value);
        assert_true(tarn_json_find_twin(value, &twin));
        if (!cases[i].twin != !twin) fail_msg("%s", cases[i].text);
        if (twin) assert_string_equal(twin, cases[i].twin);
        free(copy);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(accepts_what_rfc_8259_does),
        cmocka_unit_test(refuses_everything_else_at_its_place),
        cmocka_unit_test(nesting_has_a_limit),
        cmocka_unit_test(random_values_read_as_they_were_meant),
        cmocka_unit_test(damage_is_refused_or_means_something),
        cmocka_unit_test(a_key_twice_is_found_in_its_object),
    };
    return cmocka_run_group_tests_name("json", tests, NULL, NULL);
}
