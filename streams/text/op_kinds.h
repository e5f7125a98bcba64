/* What the kinds of ops say by the words in them. */
#ifndef TARN_STREAMS_TEXT_OP_KINDS_H
#define TARN_STREAMS_TEXT_OP_KINDS_H

#include <stdbool.h>
#include <stddef.h>

/* Does the kind hold one of the words, in capitals or not? */
bool tarn_kind_has_word(const char *kind, const char *const *words, size_t count);

/* Ops in which other devices take part, and copies from and to the host. */
bool tarn_kind_communicates(const char *kind);
bool tarn_kind_copies(const char *kind);

#endif
