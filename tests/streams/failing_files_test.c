/* What loading and saving does where a call fails, in the process itself: each piece of work on a
 * file and each allocation, those of the C library and zlib included. A file is the old one or the
 * new one, whole, and what was in the way is told. Under sanitizers, which have a malloc of their
 * own, the library's allocations alone fail, and no work on files. Cost: below a second. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "planner/transform/implementations/cost_table.h"
#include "streams/base/error.h"
#include "streams/text/file_replace.h"
#include "streams/text/text_file.h"
#include "support/failing_calls.h"
#include "support/failing_memory.h"

static const char old_text[] = "what was there before", new_text[] = "what is to be there";
static char folder[] = "/tmp/tarn-failing-files-XXXXXX";
static char file_path[64], link_path[64], gz_path[64];

static int set_up(void **state)
{
    (void)state;
    if (!mkdtemp(folder)) return -1;
    snprintf(file_path, sizeof file_path, "%s/file", folder);
    snprintf(link_path, sizeof link_path, "%s/link", folder);
    snprintf(gz_path, sizeof gz_path, "%s/text.gz", folder);
    return symlink("file", link_path);
}

static int tear_down(void **state)
{
    (void)state;
    unlink(file_path);
    unlink(link_path);
    unlink(gz_path);
    return rmdir(folder);
}

/* "": there is none. */
static void read_file(char *text, size_t size)
{
    int file = open(file_path, O_RDONLY | O_CLOEXEC);
    ssize_t got = file < 0 ? 0 : read(file, text, size - 1);
    text[got > 0 ? got : 0] = '\0';
    if (file >= 0) close(file);
}

static void write_file(const char *text)
{
    int file = open(file_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    assert_true(file >= 0 && write(file, text, strlen(text)) == (ssize_t)strlen(text));
    close(file);
}

/* The file, the link, and what was made on the way and is still there. */
static unsigned count_entries(void)
{
    unsigned count = 0;
    DIR *entries = opendir(folder);
    for (const struct dirent *entry; (entry = readdir(entries));) count += entry->d_name[0] != '.';
    closedir(entries);
    return count;
}

/* ---- Files ---- */

/* `count` calls from number `first` on fail; false when none was left to fail. */
static bool replace(const char *path, bool exists, uint64_t first, uint64_t count)
{
    struct tarn_error error = {0};
    char text[64];
    unlink(file_path);
    if (exists) write_file(old_text);
    fail_calls(FAILING_FILES, first, count);
    enum tarn_status status = tarn_file_replace(path, new_text, strlen(new_text), &error);
    bool failed = has_call_failed(FAILING_FILES);
    allow_calls(FAILING_FILES);
    assert_int_equal(status, failed ? TARN_SYSTEM : TARN_OK);
    assert_int_equal(strncmp(error.text, path, strlen(path)) == 0, failed);
    if (strcmp(path, "/dev/null") == 0) return failed;
    read_file(text, sizeof text);
    assert_string_equal(text, !failed ? new_text : exists ? old_text : "");
    assert_int_equal(count_entries(), 1 + (exists || !failed));
    return failed;
}

static void a_file_is_replaced_whole_or_what_was_in_the_way_is_told(void **state)
{
    const char *paths[] = {file_path, link_path, "/dev/null"};
    (void)state;
#ifdef FAILING_BY_LINKER
    skip(); /* work on files does not fail there */
#endif
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        for (int exists = 0; exists < 2; exists++) {
            uint64_t single = 0, lasting = 0;
            while (replace(paths[i], exists, single, 1)) single++;
            while (replace(paths[i], exists, lasting, UINT64_MAX)) lasting++;
            assert_true(single == lasting && single >= 3);
        }
    }
}

static void signals_only_interrupt(void **state)
{
    (void)state;
#ifdef FAILING_BY_LINKER
    skip();
#else
    char *text;
    size_t size;
    uint64_t n = 0;
    interrupt_calls(true);
    for (bool failed = true; failed; n++) {
        fail_calls(FAILING_FILES, n, 1);
        assert_int_equal(tarn_file_replace(file_path, new_text, strlen(new_text), NULL), TARN_OK);
        assert_int_equal(tarn_text_read(file_path, 1 << 20, &text, &size, NULL), TARN_OK);
        failed = has_call_failed(FAILING_FILES);
        allow_calls(FAILING_FILES);
        assert_string_equal(text, new_text);
        free(text);
    }
    interrupt_calls(false);
    assert_true(n >= 8);
#endif
}

static void a_text_is_read_whole_or_what_was_in_the_way_is_told(void **state)
{
    char *text;
    size_t size;
    uint64_t n = 0;
    (void)state;
#ifdef FAILING_BY_LINKER
    skip();
#endif
    write_file(old_text);
    for (bool failed = true; failed; n++) {
        struct tarn_error error = {0};
        fail_calls(FAILING_FILES, n, 1);
        enum tarn_status status = tarn_text_read(file_path, 1 << 20, &text, &size, &error);
        failed = has_call_failed(FAILING_FILES);
        allow_calls(FAILING_FILES);
        if (status == TARN_OK) { /* also where only the closing failed */
            assert_string_equal(text, old_text);
            free(text);
        } else {
            assert_int_equal(status, TARN_SYSTEM);
            assert_int_equal(strncmp(error.text, file_path, strlen(file_path)), 0);
        }
    }
    assert_true(n >= 4);
}

/* ---- Memory ---- */

static enum tarn_status follow_link(struct tarn_error *error)
{
    return tarn_file_replace(link_path, new_text, strlen(new_text), error);
}

static enum tarn_status load_costs(struct tarn_error *error)
{
    struct tarn_cost_table *table = NULL;
    enum tarn_status status =
        tarn_cost_table_load(TARN_SOURCE_DIR "/examples/costs.csv", &table, error);
    if (!status) tarn_cost_table_destroy(table);
    return status;
}

/* Longer than what zlib keeps of it. */
enum { WORDS = 60000 };
static char *words;
static size_t words_size;

static void print_words(const void *subject, FILE *file)
{
    (void)subject;
    for (unsigned i = 0; i < WORDS; i++) fprintf(file, "%u,", i * i);
}

/* As long as the first room for a text: more is needed when all is written. */
static void print_block(const void *subject, FILE *file)
{
    (void)subject;
    for (unsigned i = 0; i < 65536; i++) putc('b', file);
}

static enum tarn_status print(struct tarn_error *error)
{
    size_t size = 0;
    char *text = tarn_text_print(print_block, NULL, &size);
    if (!text) return tarn_error_no_memory(error);
    assert_int_equal(size, 65536);
    free(text);
    return TARN_OK;
}

static enum tarn_status save_words(struct tarn_error *error)
{
    return tarn_text_save(gz_path, print_words, NULL, error);
}

static enum tarn_status load_words(struct tarn_error *error)
{
    char *text;
    size_t size;
    enum tarn_status status = tarn_text_read(gz_path, 1 << 24, &text, &size, error);
    if (status) return status;
    assert_int_equal(size, words_size);
    assert_memory_equal(text, words, size);
    free(text);
    return status;
}

static void texts_are_whole_or_refused_for_memory(void **state)
{
    (void)state;
    fail_single_allocations(follow_link, 1);
    fail_single_allocations(load_costs, 2);
    fail_single_allocations(print, 2);
    fail_single_allocations(save_words, 4);
    assert_int_equal(save_words(NULL), TARN_OK);
    words = tarn_text_print(print_words, NULL, &words_size);
    fail_single_allocations(load_words, 4);
    free(words);
}

static bool moved;

static void print_and_move(const void *subject, FILE *file)
{
    (void)subject;
    fputs("words", file);
    moved = fseek(file, 1, SEEK_CUR) == 0 || ftell(file) != 5 || fseek(file, 0, SEEK_SET) == 0;
}

static void what_is_printed_stays(void **state)
{
    size_t size;
    (void)state;
    char *text = tarn_text_print(print_and_move, NULL, &size);
    assert_false(moved);
    assert_string_equal(text, "words");
    assert_int_equal(size, 5);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_is_replaced_whole_or_what_was_in_the_way_is_told),
        cmocka_unit_test(signals_only_interrupt),
        cmocka_unit_test(a_text_is_read_whole_or_what_was_in_the_way_is_told),
        cmocka_unit_test(texts_are_whole_or_refused_for_memory),
        cmocka_unit_test(what_is_printed_stays),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
