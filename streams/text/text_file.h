/* Reads and writes whole text files: plain or gzip, standard input and output, never half
 * written. */
#ifndef TARN_STREAMS_TEXT_TEXT_FILE_H
#define TARN_STREAMS_TEXT_TEXT_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "streams/base/error.h"
#include "tarn/bytes.h"

/* Functions below take a reader or writer that has neither a function nor bytes (a writer: nor a
 * place for the size) for the file of its name. */
static inline bool tarn_reader_is_file(const struct tarn_reader *reader)
{
    return !reader->bytes && !reader->read;
}
static inline bool tarn_writer_is_file(const struct tarn_writer *writer)
{
    return !writer->write && !writer->bytes && !writer->size;
}

/* Does the path end in ".EXTENSION" or ".EXTENSION.gz"? */
bool tarn_text_is_named(const char *path, const char *extension);

/* Reads a file, or standard input for "-"; decompresses text that begins like gzip. The caller
 * frees *text, which has a NUL after its `size` bytes. TARN_SYSTEM: the file cannot be read, or no
 * memory; TARN_BAD_INPUT: empty, damaged gzip, or more than size_max bytes of text (so that a small
 * compressed file cannot fill the memory). */
enum tarn_status tarn_text_read(const char *path, uint64_t size_max, char **text, size_t *size,
                                struct tarn_error *error);

/* The same from a reader. */
enum tarn_status tarn_text_take(const struct tarn_reader *reader, uint64_t size_max, char **text,
                                size_t *size, struct tarn_error *error);
/* Fills a reader or a writer from a caller's struct. TARN_USAGE: NULL, of unknown size, or without
 * a source or destination. */
enum tarn_status tarn_reader_check(struct tarn_reader *reader, const struct tarn_reader *given,
                                   const char *function, struct tarn_error *error);
enum tarn_status tarn_writer_check(struct tarn_writer *writer, const struct tarn_writer *given,
                                   const char *function, struct tarn_error *error);

/* Writes as tarn_file_replace does; compresses (the same bytes every time) if the name ends in
 * ".gz". TARN_SYSTEM. */
enum tarn_status tarn_text_write(const char *path, const char *text, size_t size,
                                 struct tarn_error *error);

/* Returns the text that a function prints to the stream, NUL-terminated, for the caller to free;
 * NULL: no memory. size: its length, or NULL. */
char *tarn_text_print(void (*print)(const void *subject, FILE *file), const void *subject,
                      size_t *size);

/* Saves the text that a function prints to the stream. */
enum tarn_status tarn_text_save(const char *path, void (*print)(const void *subject, FILE *file),
                                const void *subject, struct tarn_error *error);
/* The same to a writer. */
enum tarn_status tarn_text_give(const struct tarn_writer *writer,
                                void (*print)(const void *subject, FILE *file), const void *subject,
                                struct tarn_error *error);

#endif
