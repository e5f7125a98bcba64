/* Escapes names and other foreign text for terminals and files.
 *
 * Names come from files, and paths from anywhere: they may hold control characters of terminals,
 * characters that change the direction of writing or end a string early, or bytes that are not
 * UTF-8. Tarn's own messages (struct tarn_error, struct tarn_violation) are escaped already; names
 * that the API returns are unchanged. */
#ifndef TARN_TEXT_H
#define TARN_TEXT_H

#include <stddef.h>

#include "error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The destination of a text. "Hidden" are control characters (C0, DEL, C1), line and paragraph
 * separators, and the invisible characters that change the direction of writing or tag what
 * follows. */
enum tarn_language {
    TARN_PLAIN, /* a line for people: hidden characters and bytes that are not UTF-8 become '?' */
    TARN_JSON,  /* inside the quotes of a string: hidden ones as \uXXXX, other bytes as \ufffd */
    TARN_XML    /* text or attribute value of XML 1.0: entities, and '?' as in TARN_PLAIN */
};

/* Writes the text, escaped, to `to`, which has room for `size` bytes with the NUL (none: to may be
 * NULL), cut between two characters if it does not fit. Returns the size of the whole text, without
 * the NUL. text: NULL is an empty one. */
TARN_API size_t tarn_text_escape(enum tarn_language language, const char *text, char *to,
                                 size_t size);

/* Writes bytes as Tarn writes all its files, see tarn_graph_save: the file exists whole or not at
 * all, "-" is standard output, ".gz" compresses. TARN_SYSTEM. */
TARN_API enum tarn_status tarn_file_save(const char *path, const void *bytes, size_t size,
                                         struct tarn_error *error);

#ifdef __cplusplus
}
#endif

#endif
