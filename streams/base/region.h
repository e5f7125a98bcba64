/* A pool: many small allocations that live and die together. Not thread-safe. */
#ifndef TARN_STREAMS_BASE_REGION_H
#define TARN_STREAMS_BASE_REGION_H

#include <stddef.h>

struct tarn_pool;

/* NULL when out of memory. */
struct tarn_pool *tarn_pool_create(void);
void tarn_pool_destroy(struct tarn_pool *pool);

/* Zero-filled, aligned for any type; count 0 gives a valid pointer. NULL when out of memory or when
 * count * size overflows. */
void *tarn_pool_take(struct tarn_pool *pool, size_t count, size_t size);
/* A copy of `count` * `size` bytes; NULL when out of memory. */
void *tarn_pool_copy(struct tarn_pool *pool, const void *data, size_t count, size_t size);
/* A copy of a string (NULL: ""); NULL when out of memory. */
char *tarn_pool_string(struct tarn_pool *pool, const char *text);

#endif
