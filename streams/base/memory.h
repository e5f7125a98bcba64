/* The library's own memory: every allocation goes through here, to the allocator of the process
 * (tarn/hooks.h). Memory is freed by tarn_free. Any thread. */
#ifndef TARN_STREAMS_BASE_MEMORY_H
#define TARN_STREAMS_BASE_MEMORY_H

#include <stddef.h>

#include "tarn/hooks.h"

/* `size` bytes with any contents, aligned for any type; NULL: no memory. pre: size > 0. */
void *tarn_take(size_t size);
/* `count` items of `size` bytes, all zeros; NULL also where that overflows. pre: both above 0. */
void *tarn_take_zeros(size_t count, size_t size);
/* As realloc. pre: size > 0. */
void *tarn_resize(void *memory, size_t size);
/* A copy of a string; NULL: no memory. */
char *tarn_take_string(const char *text);

/* `size` bytes at a multiple of `alignment`, a power of two of at least sizeof(void *); given back
 * by tarn_free_aligned. */
void *tarn_take_aligned(size_t alignment, size_t size);
void tarn_free_aligned(void *memory);

#endif
