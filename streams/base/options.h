/* Option structs carry their own size as their first field, so that callers and library may be of
 * different ages: a shorter struct is complete with zeros, which mean defaults; a longer one is
 * accepted while nothing is asked for in what this library does not know. */
#ifndef TARN_STREAMS_BASE_OPTIONS_H
#define TARN_STREAMS_BASE_OPTIONS_H

#include <stddef.h>
#include <stdint.h>

#include "error.h"

/* Fills *options, of `size` bytes, from what the caller gave (NULL: all defaults). `what` begins
 * the message, for example "plan options". TARN_USAGE: no size in it, or newer fields are set. */
enum tarn_status tarn_options_take(void *options, size_t size, const void *given, const char *what,
                                   struct tarn_error *error);

/* The alignment of a plan, in bytes: 0 becomes the default, 512. TARN_USAGE: no power of two. */
enum tarn_status tarn_options_alignment(uint64_t *alignment, struct tarn_error *error);

/* A list of words in options: TARN_USAGE, with a message that begins with `what`, when one is NULL.
 */
enum tarn_status tarn_options_words(const char *const *words, size_t count, const char *what,
                                    struct tarn_error *error);

#endif
