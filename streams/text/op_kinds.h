/* Classifies an op by the words of its kind. */
#ifndef TARN_STREAMS_TEXT_OP_KINDS_H
#define TARN_STREAMS_TEXT_OP_KINDS_H

#include <stdbool.h>
#include <stddef.h>

#include "tarn/graph.h"

/* The class that the table gives the kind; TARN_CLASS_UNKNOWN: the table does not know it. Constant
 * time: only the first KIND_MAX bytes are looked at. */
enum tarn_op_class tarn_kind_class(const char *kind);

/* Is one of the words among the kind's? A word may be several of the kind's in a row, in any case
 * and with any punctuation: "all_reduce", "AllReduce" and "allreduce" are the same. */
bool tarn_kind_has_word(const char *kind, const char *const *words, size_t count);

/* Does the kind call the op the gradient of another one: backward, bwd, grad, backprop, vjp? */
bool tarn_kind_is_gradient(const char *kind);

/* Are all lists of words in order, each word once? For tests. */
bool tarn_kind_table_is_valid(void);

#endif
