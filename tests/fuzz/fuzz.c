/* What fuzz targets share. Files are in a folder in memory, if there is such a thing, that goes
 * when the process ends. The heap is counted through the hooks of the address sanitizer. Cost: that
 * of the library's calls. */
#include "fuzz.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "streams/base/utf8.h"
#include "streams/graph/builder.h"
#include "streams/graph/graph.h"

/* ---- Promises ---- */

void fuzz_broken(const char *file, int line, const char *condition, const char *format, ...)
{
    va_list arguments;
    fprintf(stderr, "%s:%d: broken promise: %s: ", file, line, condition);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    abort();
}

struct tarn_error fuzz_old_error(void)
{
    struct tarn_error error;
    memset(&error, 'x', sizeof error);
    error.text[sizeof error.text - 1] = error.pointer[sizeof error.pointer - 1] = '\0';
    return error;
}

/* Said a second time, without the library: what a terminal or a reader might obey, as bytes. */
static bool has_hidden(const char *text)
{
    static const struct {
        const char *first, *last;
    } hidden[] = {
        {"\x01", "\x1f"},
        {"\x7f", "\x7f"},
        {"\xc2\x80", "\xc2\x9f"},                 /* C1 */
        {"\xd8\x9c", "\xd8\x9c"},                 /* direction */
        {"\xe2\x80\x8e", "\xe2\x80\x8f"},         /* direction */
        {"\xe2\x80\xa8", "\xe2\x80\xae"},         /* lines, direction */
        {"\xe2\x81\xa6", "\xe2\x81\xa9"},         /* direction */
        {"\xef\xbb\xbf", "\xef\xbb\xbf"},         /* byte order */
        {"\xf3\xa0\x80\x80", "\xf3\xa0\x81\xbf"}, /* tags */
    };
    for (; *text; text++) {
        for (size_t i = 0; i < sizeof hidden / sizeof *hidden; i++) {
            size_t size = strlen(hidden[i].first);
            if (strncmp(text, hidden[i].first, size) >= 0 &&
                strncmp(text, hidden[i].last, size) <= 0)
                return true;
        }
    }
    return false;
}

static void check_printable(const char *call, const char *text)
{
    char escaped[sizeof((struct tarn_error *)0)->text];
    tarn_text_escape(TARN_PLAIN, text, escaped, sizeof escaped);
    PROMISED(strcmp(escaped, text) == 0 && !has_hidden(text), "%s", call);
    for (size_t size; *text; text += size) {
        size = tarn_utf8_size(text);
        PROMISED(size > 0, "%s", call);
    }
}

void fuzz_answered(const char *call, enum tarn_status status, const struct tarn_error *error,
                   uint64_t statuses)
{
    PROMISED(statuses & ANY_OF(status), "%s answers \"%s\": %s", call, tarn_status_text(status),
             status ? error->text : "");
    PROMISED(error->status == status, "%s: %d, %d", call, error->status, status);
    check_printable(call, error->text);
    check_printable(call, error->pointer);
    if (status == TARN_OK)
        PROMISED(error->text[0] == '\0', "%s: %s", call, error->text);
    else
        PROMISED(strlen(error->text) >= 7, "%s: \"%s\"", call, error->text);
}

/* What is wrong with a file as a whole, and has no place inside. */
static bool is_of_the_whole(const char *text)
{
    static const char *const words[] = {"the document must be", "the field \"",
                                        "the file is empty",    "the compressed file is",
                                        "the gzip data",        "bytes of text, the limit",
                                        "begins with a byte",   "holds a NUL",
                                        "has too many lines",   "cycle",
                                        "add up to over",       "the text is UTF-16",
                                        "it seems to be "};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strstr(text, words[i])) return true;
    return false;
}

void fuzz_loaded(const char *call, enum tarn_status status, const struct tarn_error *error,
                 const char *path)
{
    fuzz_answered(call, status, error, ANY_OF(TARN_OK) | ANY_OF(TARN_BAD_INPUT));
    if (status == TARN_OK) return;
    PROMISED(strstr(error->text, path), "%s: %s", call, error->text);
    bool has_place = error->line > 0 || error->pointer[0] || is_of_the_whole(error->text);
    PROMISED(has_place, "%s: %s", call, error->text);
    PROMISED(!error->pointer[0] || error->pointer[0] == '/', "%s: %s", call, error->pointer);
    PROMISED(!error->line || !error->pointer[0], "%s: %s", call, error->text);
}

void fuzz_same_graph(const struct tarn_graph *a, const struct tarn_graph *b)
{
    PROMISED(tarn_hash_equal(a->hash, b->hash), "%s", a->name);
    PROMISED(strcmp(a->name, b->name) == 0, "%s, %s", a->name, b->name);
    PROMISED(strcmp(a->meta, b->meta) == 0, "%s, %s", a->meta, b->meta);
}

void fuzz_round_trip(const struct tarn_graph *graph, const char *name, uint64_t statuses)
{
    struct tarn_error error = fuzz_old_error();
    struct tarn_graph *again = NULL;
    const char *path = fuzz_path(name);
    unlink(path);
    enum tarn_status status = tarn_graph_save(graph, path, &error);
    fuzz_answered("save", status, &error, statuses);
    PROMISED((access(path, F_OK) == 0) == (status == TARN_OK), "%s", path);
    if (status != TARN_OK) return;
    error = fuzz_old_error();
    status = tarn_graph_load(path, NULL, &again, &error);
    fuzz_answered("load again", status, &error, ANY_OF(TARN_OK));
    fuzz_same_graph(graph, again);
    tarn_graph_destroy(again);
}

/* ---- Files ---- */

static char folder[256];

static void remove_folder(void)
{
    char command[sizeof folder + 16];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    if (system(command) != 0) fprintf(stderr, "%s is left\n", folder);
}

static void make_folder(void)
{
    const char *given = getenv("TMPDIR");
    if (!given) given = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    snprintf(folder, sizeof folder, "%s/tarn-fuzz-XXXXXX", given);
    PROMISED(mkdtemp(folder), "%s", folder);
    atexit(remove_folder);
}

const char *fuzz_path(const char *name)
{
    static char paths[2][sizeof folder + 64];
    static unsigned turn;
    if (!folder[0]) make_folder();
    turn = !turn;
    snprintf(paths[turn], sizeof paths[turn], "%s/%s", folder, name);
    return paths[turn];
}

const char *fuzz_file(const char *name, const uint8_t *bytes, size_t size)
{
    const char *path = fuzz_path(name);
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    PROMISED(file >= 0 && write(file, bytes, size) == (ssize_t)size, "%s", path);
    close(file);
    return path;
}

/* ---- Memory ---- */

/* The address sanitizer's, in its own words (sanitizer/allocator_interface.h); NULL without it. */
int __sanitizer_install_malloc_and_free_hooks(void (*on_malloc)(const volatile void *, size_t),
                                              void (*on_free)(const volatile void *))
    __attribute__((weak));
size_t __sanitizer_get_allocated_size(const volatile void *block) __attribute__((weak));

static atomic_size_t taken, most;

static void on_malloc(const volatile void *block, size_t size)
{
    (void)block;
    size_t now = atomic_fetch_add(&taken, size) + size;
    if (now > most) most = now;
}

static void on_free(const volatile void *block)
{
    atomic_fetch_sub(&taken, __sanitizer_get_allocated_size(block));
}

static size_t at_begin;

void fuzz_memory_begin(void)
{
    static bool is_installed;
    if (!is_installed && __sanitizer_install_malloc_and_free_hooks)
        __sanitizer_install_malloc_and_free_hooks(on_malloc, on_free);
    is_installed = true;
    at_begin = taken;
    most = at_begin;
}

/* Counting begins late, and what was there before is freed as well. */
size_t fuzz_memory_most(void) { return most - at_begin; }

void fuzz_memory_check(const uint8_t *data, size_t size)
{
    enum { MULTIPLE = 48, SPARE = 512 << 10 };
    bool is_packed = size > 1 && data[0] == 0x1f && data[1] == 0x8b;
    size_t text = is_packed ? FUZZ_TEXT_MAX : size, limit = MULTIPLE * text + SPARE;
    PROMISED(fuzz_memory_most() <= limit, "%zu bytes for a text of %zu", fuzz_memory_most(), size);
}
