/* Allocations that fail on purpose. The linker sends a test's calls of malloc, calloc and realloc,
 * the library's included, through here (--wrap, see meson.build). */
#ifndef TARN_TESTS_FAILING_MEMORY_H
#define TARN_TESTS_FAILING_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

#include "tarn/error.h"

void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *block, size_t size);

/* Runs `act` with the first allocation and all after it failing, then from the second on, until it
 * needs no more. Whenever one failed the status must be TARN_SYSTEM, else TARN_OK. Several threads
 * may allocate. */
void fail_each_allocation(enum tarn_status (*act)(struct tarn_error *error));

/* The same from the first, then from `stride` further on, and so on. */
void fail_some_allocations(enum tarn_status (*act)(struct tarn_error *error), long long stride);

#endif
