/* Reads and writes whole text files, and readers and writers in memory. Reading takes everything
 * into memory, then decompresses if it looks like gzip (RFC 1952, several members too). Compression
 * stores no time and host, so equal texts give equal files.
 */
#include "text_file.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>
#include <zlib.h>

#include "file_replace.h"
#include "streams/base/error.h"
#include "streams/base/memory.h"
#include "streams/base/options.h"
#include "tarn/text.h"

struct buffer {
    char *bytes;
    size_t size, capacity;
};

/* Maximum bytes for one call of zlib, which counts in 32 bits. */
#define STEP_MAX ((size_t)1 << 20)

static size_t step(size_t left) { return left < STEP_MAX ? left : STEP_MAX; }

static const char *shown(const char *path, const char *standard)
{
    return strcmp(path, "-") == 0 ? standard : path;
}

/* In any capitals: some systems write names so. */
static bool ends_in(const char *text, size_t length, const char *end)
{
    size_t end_length = strlen(end);
    return length > end_length && strncasecmp(text + length - end_length, end, end_length) == 0;
}

bool tarn_text_is_named(const char *path, const char *extension)
{
    size_t length = strlen(path), extension_length = strlen(extension);
    if (ends_in(path, length, ".gz")) length -= strlen(".gz");
    return ends_in(path, length, extension) && path[length - extension_length - 1] == '.';
}

/* Makes room for at least one more byte and a NUL. */
static bool grow(struct buffer *buffer)
{
    if (buffer->capacity - buffer->size > 1) return true;
    size_t capacity = buffer->capacity < 4096 ? 65536 : 2 * buffer->capacity;
    char *bytes = tarn_resize(buffer->bytes, capacity);
    if (!bytes) return false;
    buffer->bytes = bytes;
    buffer->capacity = capacity;
    return true;
}

/* With the settings below deflate takes 256 KiB and inflate 32 KiB, and both a few more for small
 * objects: no size is near 32 bits. Source: zlib 1.2.13, zconf.h, "memory requirements". */
static void *take_for_zlib(void *user, unsigned count, unsigned size)
{
    (void)user;
    return tarn_take((size_t)count * size);
}

static void free_for_zlib(void *user, void *memory)
{
    (void)user;
    tarn_free(memory);
}

/* ---- Reading ---- */

static enum tarn_status too_large(struct tarn_error *error, const char *path, uint64_t size_max)
{
    return tarn_error_set(error, TARN_BAD_INPUT,
                          "%s: has more than %" PRIu64 " bytes of text, the limit for input; "
                          "text_max, or --text-max, raises it",
                          path, size_max);
}

static enum tarn_status read_bytes(int fd, const char *path, uint64_t size_max,
                                   struct buffer *buffer, struct tarn_error *error)
{
    for (;;) {
        if (!grow(buffer)) return tarn_error_no_memory(error);
        size_t room = step(buffer->capacity - buffer->size - 1);
        ssize_t got = read(fd, buffer->bytes + buffer->size, room);
        if (got == 0) return TARN_OK;
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return tarn_error_file(error, path, "cannot be read");
        buffer->size += (size_t)got;
        if (buffer->size > size_max) return too_large(error, path, size_max);
    }
}

static enum tarn_status read_file(const char *path, uint64_t size_max, struct buffer *buffer,
                                  struct tarn_error *error)
{
    bool is_standard = strcmp(path, "-") == 0;
    path = shown(path, "standard input");
    int fd = is_standard ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return tarn_error_file(error, path, "cannot be opened");
    enum tarn_status status = read_bytes(fd, path, size_max, buffer, error);
    if (!is_standard) close(fd);
    if (status == TARN_OK && buffer->size == 0)
        return tarn_error_set(error, TARN_BAD_INPUT, "%s: the file is empty", path);
    return status;
}

static enum tarn_status read_memory(const struct tarn_reader *reader, uint64_t size_max,
                                    struct buffer *buffer, struct tarn_error *error)
{
    if (reader->size > size_max) return too_large(error, reader->name, size_max);
    buffer->bytes = tarn_take(reader->size + 1);
    if (!buffer->bytes) return tarn_error_no_memory(error);
    if (reader->size > 0) memcpy(buffer->bytes, reader->bytes, reader->size);
    buffer->size = reader->size;
    buffer->capacity = reader->size + 1;
    return TARN_OK;
}

static enum tarn_status read_function(const struct tarn_reader *reader, uint64_t size_max,
                                      struct buffer *buffer, struct tarn_error *error)
{
    for (;;) {
        if (!grow(buffer)) return tarn_error_no_memory(error);
        size_t room = step(buffer->capacity - buffer->size - 1);
        ptrdiff_t got = reader->read(reader->user, buffer->bytes + buffer->size, room);
        if (got == 0) return TARN_OK;
        if (got < 0 || (size_t)got > room)
            return tarn_error_set(error, TARN_SYSTEM, "%s: the function that reads returned %td",
                                  reader->name, got);
        buffer->size += (size_t)got;
        if (buffer->size > size_max) return too_large(error, reader->name, size_max);
    }
}

static enum tarn_status read_any(const struct tarn_reader *reader, uint64_t size_max,
                                 struct buffer *buffer, struct tarn_error *error)
{
    if (tarn_reader_is_file(reader)) return read_file(reader->name, size_max, buffer, error);
    enum tarn_status status = reader->bytes ? read_memory(reader, size_max, buffer, error)
                                            : read_function(reader, size_max, buffer, error);
    if (status == TARN_OK && buffer->size == 0)
        return tarn_error_set(error, TARN_BAD_INPUT, "%s: the text is empty", reader->name);
    return status;
}

static bool is_gzip(const struct buffer *buffer, size_t begin)
{
    const unsigned char *bytes = (const unsigned char *)buffer->bytes + begin;
    return buffer->size - begin >= 2 && bytes[0] == 0x1f && bytes[1] == 0x8b;
}

/* One call of inflate, from the stream's position into the buffer's room. */
static int inflate_some(z_stream *stream, const struct buffer *packed, size_t *taken,
                        struct buffer *text)
{
    stream->next_in = (unsigned char *)packed->bytes + *taken;
    stream->avail_in = (uInt)step(packed->size - *taken);
    stream->next_out = (unsigned char *)text->bytes + text->size;
    stream->avail_out = (uInt)step(text->capacity - text->size - 1);
    int code = inflate(stream, Z_NO_FLUSH);
    *taken = (size_t)((char *)stream->next_in - packed->bytes);
    text->size = (size_t)((char *)stream->next_out - text->bytes);
    return code;
}

static enum tarn_status inflate_all(z_stream *stream, const struct buffer *packed, const char *path,
                                    uint64_t size_max, struct buffer *text,
                                    struct tarn_error *error)
{
    size_t taken = 0;
    for (;;) {
        if (!grow(text)) return tarn_error_no_memory(error);
        int code = inflate_some(stream, packed, &taken, text);
        if (text->size > size_max) return too_large(error, path, size_max);
        if (code == Z_STREAM_END) {
            if (taken == packed->size) return TARN_OK;
            if (!is_gzip(packed, taken))
                return tarn_error_set(error, TARN_BAD_INPUT,
                                      "%s: something else follows the gzip data", path);
            inflateReset(stream);
        } else if (code == Z_MEM_ERROR) {
            return tarn_error_no_memory(error);
        } else if (code == Z_BUF_ERROR ||
                   (code == Z_OK && taken == packed->size && stream->avail_out > 0)) {
            return tarn_error_set(error, TARN_BAD_INPUT,
                                  "%s: the gzip data ends early; is the file truncated?", path);
        } else if (code != Z_OK) {
            return tarn_error_set(error, TARN_BAD_INPUT, "%s: the gzip data is damaged (%s)", path,
                                  stream->msg); /* set for damaged data */
        }
    }
}

/* Replaces the buffer's bytes by their decompressed form. */
static enum tarn_status decompress(struct buffer *buffer, const char *path, uint64_t size_max,
                                   struct tarn_error *error)
{
    z_stream stream = {.zalloc = take_for_zlib, .zfree = free_for_zlib};
    struct buffer text = {0};
    if (inflateInit2(&stream, 15 + 16) != Z_OK) return tarn_error_no_memory(error);
    enum tarn_status status = inflate_all(&stream, buffer, path, size_max, &text, error);
    inflateEnd(&stream);
    tarn_free(buffer->bytes);
    *buffer = text;
    if (status == TARN_OK && text.size == 0)
        return tarn_error_set(error, TARN_BAD_INPUT, "%s: the compressed file is empty", path);
    return status;
}

enum tarn_status tarn_text_take(const struct tarn_reader *reader, uint64_t size_max, char **text,
                                size_t *size, struct tarn_error *error)
{
    struct buffer buffer = {0};
    const char *name =
        tarn_reader_is_file(reader) ? shown(reader->name, "standard input") : reader->name;
    enum tarn_status status = read_any(reader, size_max, &buffer, error);
    if (status == TARN_OK && is_gzip(&buffer, 0))
        status = decompress(&buffer, name, size_max, error);
    if (status != TARN_OK) {
        tarn_free(buffer.bytes);
        return status;
    }
    buffer.bytes[buffer.size] = '\0';
    *text = buffer.bytes;
    *size = buffer.size;
    return TARN_OK;
}

enum tarn_status tarn_text_read(const char *path, uint64_t size_max, char **text, size_t *size,
                                struct tarn_error *error)
{
    return tarn_text_take(&(struct tarn_reader){.name = path}, size_max, text, size, error);
}

/* ---- Writing ---- */

static bool deflate_all(z_stream *stream, const char *text, size_t size, struct buffer *packed)
{
    int code = Z_OK;
    size_t taken = 0;
    while (code == Z_OK) {
        if (!grow(packed)) return false;
        stream->next_in = (unsigned char *)(uintptr_t)(text + taken);
        stream->avail_in = (uInt)step(size - taken);
        stream->next_out = (unsigned char *)packed->bytes + packed->size;
        stream->avail_out = (uInt)step(packed->capacity - packed->size);
        bool is_last = step(size - taken) == size - taken;
        code = deflate(stream, is_last ? Z_FINISH : Z_NO_FLUSH);
        taken = (size_t)((const char *)stream->next_in - text);
        packed->size = (size_t)((char *)stream->next_out - packed->bytes);
    }
    assert(code == Z_STREAM_END);
    return true;
}

static enum tarn_status compress_text(const char *text, size_t size, struct buffer *packed,
                                      struct tarn_error *error)
{
    z_stream stream = {.zalloc = take_for_zlib, .zfree = free_for_zlib};
    gz_header header = {.os = 255}; /* no time, no name, system "unknown" */
    if (deflateInit2(&stream, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
        return tarn_error_no_memory(error);
    deflateSetHeader(&stream, &header);
    bool ok = deflate_all(&stream, text, size, packed);
    deflateEnd(&stream);
    return ok ? TARN_OK : tarn_error_no_memory(error);
}

static enum tarn_status deliver(const struct tarn_writer *writer, const char *text, size_t size,
                                struct tarn_error *error)
{
    if (tarn_writer_is_file(writer)) return tarn_file_replace(writer->name, text, size, error);
    if (writer->size) *writer->size = size;
    if (writer->write) {
        int code = writer->write(writer->user, text, size);
        return code == 0
                   ? TARN_OK
                   : tarn_error_set(error, TARN_SYSTEM, "%s: the function that writes returned %d",
                                    writer->name, code);
    }
    if (!writer->bytes) return TARN_OK;
    if (size > writer->room)
        return tarn_error_set(error, TARN_USAGE, "%s: the text has %s, and room is for %zu",
                              writer->name, tarn_bytes_phrase(size).text, writer->room);
    memcpy(writer->bytes, text, size);
    return TARN_OK;
}

static enum tarn_status compress_and_deliver(const struct tarn_writer *writer, const char *text,
                                             size_t size, struct tarn_error *error)
{
    struct buffer packed = {0};
    if (ends_in(writer->name, strlen(writer->name), ".gz")) {
        enum tarn_status status = compress_text(text, size, &packed, error);
        if (status != TARN_OK) {
            tarn_free(packed.bytes);
            return status;
        }
        text = packed.bytes;
        size = packed.size;
    }
    enum tarn_status status = deliver(writer, text, size, error);
    tarn_free(packed.bytes);
    return status;
}

enum tarn_status tarn_text_write(const char *path, const char *text, size_t size,
                                 struct tarn_error *error)
{
    return compress_and_deliver(&(struct tarn_writer){.name = path}, text, size, error);
}

enum tarn_status tarn_file_save(const char *path, const void *bytes, size_t size,
                                struct tarn_error *error)
{
    if (!path || (!bytes && size > 0)) return tarn_error_null(error, __func__);
    tarn_error_clear(error);
    return tarn_text_write(path, size > 0 ? bytes : "", size, error);
}

/* For fopencookie, whose streams report afterwards that fewer bytes were taken than given. */
static ssize_t append(void *cookie, const char *bytes, size_t size)
{
    struct buffer *buffer = cookie;
    for (size_t done = 0, room; done < size; done += room) {
        if (!grow(buffer)) return (ssize_t)done;
        room = buffer->capacity - buffer->size - 1;
        if (room > size - done) room = size - done;
        memcpy(buffer->bytes + buffer->size, bytes + done, room);
        buffer->size += room;
    }
    return (ssize_t)size;
}

/* Only says how far it is. */
static int tell(void *cookie, off64_t *offset, int whence)
{
    const struct buffer *buffer = cookie;
    if (whence != SEEK_CUR || *offset != 0) return -1;
    *offset = (off64_t)buffer->size;
    return 0;
}

/* Not by open_memstream: glibc's silently drops text if memory runs out. */
char *tarn_text_print(void (*print)(const void *subject, FILE *file), const void *subject,
                      size_t *size)
{
    struct buffer buffer = {0};
    if (!grow(&buffer)) return NULL;
    FILE *file = fopencookie(&buffer, "w", (cookie_io_functions_t){.write = append, .seek = tell});
    bool is_broken = !file;
    if (file) print(subject, file);
    if (file && ferror(file)) is_broken = true;
    if (file && fclose(file) != 0) is_broken = true;
    if (is_broken) {
        tarn_free(buffer.bytes);
        return NULL;
    }
    buffer.bytes[buffer.size] = '\0';
    if (size) *size = buffer.size;
    return buffer.bytes;
}

enum tarn_status tarn_text_give(const struct tarn_writer *writer,
                                void (*print)(const void *subject, FILE *file), const void *subject,
                                struct tarn_error *error)
{
    size_t size = 0;
    char *text = tarn_text_print(print, subject, &size);
    enum tarn_status status =
        text ? compress_and_deliver(writer, text, size, error) : tarn_error_no_memory(error);
    tarn_free(text);
    return status;
}

enum tarn_status tarn_text_save(const char *path, void (*print)(const void *subject, FILE *file),
                                const void *subject, struct tarn_error *error)
{
    return tarn_text_give(&(struct tarn_writer){.name = path}, print, subject, error);
}

enum tarn_status tarn_reader_check(struct tarn_reader *reader, const struct tarn_reader *given,
                                   const char *function, struct tarn_error *error)
{
    if (!given) return tarn_error_null(error, function);
    enum tarn_status status = tarn_options_take(reader, sizeof *reader, given, "a reader", error);
    if (status != TARN_OK) return status;
    if (!reader->name) reader->name = "memory";
    if (!tarn_reader_is_file(reader)) return TARN_OK;
    return tarn_error_set(error, TARN_USAGE, "%s: the reader has neither bytes nor a function",
                          reader->name);
}

enum tarn_status tarn_writer_check(struct tarn_writer *writer, const struct tarn_writer *given,
                                   const char *function, struct tarn_error *error)
{
    if (!given) return tarn_error_null(error, function);
    enum tarn_status status = tarn_options_take(writer, sizeof *writer, given, "a writer", error);
    if (status != TARN_OK) return status;
    if (!writer->name) writer->name = "memory";
    if (!tarn_writer_is_file(writer)) return TARN_OK;
    return tarn_error_set(error, TARN_USAGE, "%s: the writer has neither a function nor room",
                          writer->name);
}
