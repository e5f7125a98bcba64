/* Foreign text in Tarn's output: nothing hidden gets out, nothing visible is lost, and what was cut
 * is cut between characters. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "streams/base/escape.h"
#include "streams/base/utf8.h"
#include "streams/text/text_file.h"
#include "support/random_graph.h"

static void each_language_has_its_escapes(void **state)
{
    (void)state;
    static const struct {
        const char *text, *plain, *json, *xml;
    } cases[] = {
        {"", "", "", ""},
        {"relu_1", "relu_1", "relu_1", "relu_1"},
        {"a<b>&\"'\\", "a<b>&\"'\\", "a<b>&\\\"'\\\\", "a&lt;b&gt;&amp;&quot;&#39;\\"},
        {"\x1b[2J", "?[2J", "\\u001b[2J", "?[2J"},
        {"\t\r\n\x7f", "????", "\\u0009\\u000d\\u000a\\u007f", "????"},
        {"\xc2\x9b"
         "31m",
         "?31m", "\\u009b31m", "?31m"},
        {"\xc2\xa0", "\xc2\xa0", "\xc2\xa0", "\xc2\xa0"},
        {"\xe2\x80\xae\xe2\x81\xa6\xd8\x9c", "???", "\\u202e\\u2066\\u061c", "???"},
        {"\xe2\x80\xa8\xef\xbb\xbf", "??", "\\u2028\\ufeff", "??"},
        {"\xf3\xa0\x81\x81", "?", "\\udb40\\udc41", "?"},
        {"\xef\xbf\xbf", "\xef\xbf\xbf", "\xef\xbf\xbf", "?"},
        {"\xc3\xa9\xe2\x98\x83\xf0\x9f\x98\x80", "\xc3\xa9\xe2\x98\x83\xf0\x9f\x98\x80",
         "\xc3\xa9\xe2\x98\x83\xf0\x9f\x98\x80", "\xc3\xa9\xe2\x98\x83\xf0\x9f\x98\x80"},
        {"\xff\xc3(\x80", "?\?(?", "\\ufffd\\ufffd(\\ufffd", "?\?(?"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[64];
        tarn_text_escape(TARN_PLAIN, cases[i].text, text, sizeof text);
        assert_string_equal(text, cases[i].plain);
        tarn_text_escape(TARN_JSON, cases[i].text, text, sizeof text);
        assert_string_equal(text, cases[i].json);
        assert_int_equal(tarn_text_escape(TARN_XML, cases[i].text, text, sizeof text),
                         strlen(cases[i].xml));
        assert_string_equal(text, cases[i].xml);
    }
}

/* Is it UTF-8 without a character that a terminal would obey? The ranges in other words. */
static bool is_safe(const char *text)
{
    for (size_t size; *text; text += size) {
        const unsigned char *c = (const unsigned char *)text;
        size = tarn_utf8_size(text);
        if (size == 0 || c[0] < 0x20 || c[0] == 0x7f) return false;
        if (c[0] == 0xc2 && c[1] < 0xa0) return false;
        if (c[0] == 0xe2 && c[1] == 0x80 && c[2] >= 0xa8 && c[2] <= 0xae) return false;
    }
    return true;
}

static void draw_text(struct random_source *source, char *text)
{
    static const char *const pieces[] = {
        "a",
        "\"",
        "<",
        "\\",
        "\x1b",
        "\xc2\x9b",
        "\xe2\x80\xae",
        "\xc3",
        "\xff",
        "\xc3\xa9",
        "\xf0\x9f\x98\x80",
        "\xe2\x80",
        "~",
        "\x7f",
        "\n",
        "\xf3\xa0\x81\x81",
    };
    text[0] = '\0';
    for (uint32_t n = random_below(source, 20); n > 0; n--)
        strcat(text, pieces[random_below(source, sizeof pieces / sizeof *pieces)]);
}

struct text {
    enum tarn_language language;
    const char *text;
};

static void print_text(const void *subject, FILE *file)
{
    const struct text *text = subject;
    tarn_escape_write(file, text->language, text->text);
}

static void what_comes_out_is_safe_and_cut_between_characters(void **state)
{
    (void)state;
    struct random_source source = {7};
    for (int round = 0; round < DRAWS(20000); round++) {
        char text[128], whole[512], cut[512];
        draw_text(&source, text);
        enum tarn_language language = (enum tarn_language)random_below(&source, 3);
        size_t size = tarn_text_escape(language, text, whole, sizeof whole);
        assert_int_equal(size, strlen(whole));
        assert_true(is_safe(whole));
        assert_int_equal(tarn_text_escape(language, text, NULL, 0), size);
        size_t room = 1 + random_below(&source, (uint32_t)size + 2);
        assert_int_equal(tarn_text_escape(language, text, cut, room), size);
        assert_true(strlen(cut) < room && is_safe(cut));
        assert_int_equal(strncmp(whole, cut, strlen(cut)), 0);
        char *written = tarn_text_print(print_text, &(struct text){language, text}, NULL);
        assert_string_equal(written, whole);
        free(written);
        tarn_text_escape(TARN_PLAIN, text, whole, sizeof whole);
        tarn_escape_message(text);
        assert_true(is_safe(text) && strncmp(whole, text, strlen(text)) == 0);
        assert_true(strlen(whole) - strlen(text) <= 3);
    }
}

static void a_message_loses_only_a_character_that_was_cut_off(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"a\xe2\x98", "a"}, {"a\xf0\x9f\x98", "a"}, {"a\xff", "a?"},
        {"a\x80", "a?"},    {"a\xe2\x98x", "a??x"}, {"\xe2\x98\x83", "\xe2\x98\x83"},
        {"a\xe2x", "a?x"},  {"a\xf0\x9fx", "a??x"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[16];
        strcpy(text, cases[i][0]);
        tarn_escape_message(text);
        assert_string_equal(text, cases[i][1]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_language_has_its_escapes),
        cmocka_unit_test(what_comes_out_is_safe_and_cut_between_characters),
        cmocka_unit_test(a_message_loses_only_a_character_that_was_cut_off),
    };
    return cmocka_run_group_tests_name("escape", tests, NULL, NULL);
}
