/* Option structs carry their own size as their first field, so that callers and library may be of
 * different versions: a shorter struct is complete with zeros, which mean defaults; a longer one is
 * accepted if all fields that this library does not know are zero. */
#ifndef TARN_STREAMS_BASE_OPTIONS_H
#define TARN_STREAMS_BASE_OPTIONS_H

#include <stddef.h>
#include <stdint.h>

#include "error.h"

/* Fills *options, of `size` bytes, from the caller's struct (NULL: all defaults). `what` begins the
 * message, for example "plan options". TARN_USAGE: no size in it, or newer fields are set. */
enum tarn_status tarn_options_take(void *options, size_t size, const void *given, const char *what,
                                   struct tarn_error *error);

/* Fills *taken, of `known` bytes, from a struct of the caller's of `size` bytes, and fills the rest
 * with zeros. TARN_USAGE: the bytes after the known ones are not all zeros. */
enum tarn_status tarn_struct_take(void *taken, size_t known, const void *given, size_t size,
                                  const char *what, struct tarn_error *error);
/* Fills a struct of the caller's, of `size` bytes, from one of `known` bytes: fields that the
 * caller does not know are left out, and fields that this library does not know are zero. */
void tarn_struct_give(void *to, size_t size, const void *from, size_t known);

/* Fills the report that options ask for; `size` is what they say of it, 0: `known`. */
static inline void tarn_report_give(void *report, size_t size, const void *from, size_t known)
{
    if (report) tarn_struct_give(report, size > 0 ? size : known, from, known);
}

/* The alignment of a plan, in bytes: 0 becomes the default, 512. TARN_USAGE: no power of two. */
enum tarn_status tarn_options_alignment(uint64_t *alignment, struct tarn_error *error);

/* The time of a search: TARN_USAGE, below 0 or no number. */
enum tarn_status tarn_options_seconds(double seconds, struct tarn_error *error);

/* A list of words in options: TARN_USAGE, with a message that begins with `what`, when one is NULL.
 */
enum tarn_status tarn_options_words(const char *const *words, size_t count, const char *what,
                                    struct tarn_error *error);

#endif
