/* A pool: chunks of memory, handed out from front to back and given up together. A graph is made of
 * millions of short strings and lists: one call of the allocator each would cost more than all the
 * rest. A chunk doubles the last one's size up to a limit; what is larger than half a chunk gets
 * one of its own. Chunks come from calloc, so fresh pages are not zeroed twice.
 *
 *     newest chunk ─► older ─► ... ─► NULL        [header | used ......... | free ...]
 */
#include "region.h"

#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK_MIN ((size_t)4096)
#define CHUNK_MAX ((size_t)1 << 20)

struct chunk {
    struct chunk *next;
    alignas(max_align_t) unsigned char bytes[];
};

struct tarn_pool {
    struct chunk *chunks;
    unsigned char *free; /* in the chunk that is being filled */
    size_t left;
    size_t chunk_size; /* of the next one */
};

struct tarn_pool *tarn_pool_create(void)
{
    struct tarn_pool *pool = calloc(1, sizeof *pool);
    if (pool) pool->chunk_size = CHUNK_MIN;
    return pool;
}

void tarn_pool_destroy(struct tarn_pool *pool)
{
    if (!pool) return;
    for (struct chunk *chunk = pool->chunks, *next; chunk; chunk = next) {
        next = chunk->next;
        free(chunk);
    }
    free(pool);
}

static struct chunk *add_chunk(struct tarn_pool *pool, size_t size)
{
    if (size > SIZE_MAX - sizeof(struct chunk)) return NULL;
    struct chunk *chunk = calloc(1, sizeof *chunk + size);
    if (!chunk) return NULL;
    chunk->next = pool->chunks;
    pool->chunks = chunk;
    return chunk;
}

static void *take_bytes(struct tarn_pool *pool, size_t size, size_t alignment)
{
    size_t padding = (size_t)(-(uintptr_t)pool->free & (alignment - 1));
    if (padding > pool->left || size > pool->left - padding) {
        if (size > pool->chunk_size / 2) {
            struct chunk *own = add_chunk(pool, size);
            return own ? own->bytes : NULL;
        }
        struct chunk *chunk = add_chunk(pool, pool->chunk_size);
        if (!chunk) return NULL;
        pool->free = chunk->bytes;
        pool->left = pool->chunk_size;
        if (pool->chunk_size < CHUNK_MAX) pool->chunk_size *= 2;
        padding = 0;
    }
    void *bytes = pool->free + padding;
    pool->free += padding + size;
    pool->left -= padding + size;
    return bytes;
}

void *tarn_pool_take(struct tarn_pool *pool, size_t count, size_t size)
{
    if (size != 0 && count > SIZE_MAX / size) return NULL;
    return take_bytes(pool, count * size + (count * size == 0), alignof(max_align_t));
}

void *tarn_pool_copy(struct tarn_pool *pool, const void *data, size_t count, size_t size)
{
    void *copy = tarn_pool_take(pool, count, size);
    if (copy && count * size != 0) memcpy(copy, data, count * size);
    return copy;
}

char *tarn_pool_string(struct tarn_pool *pool, const char *text)
{
    if (!text) text = "";
    size_t size = strlen(text) + 1;
    char *copy = take_bytes(pool, size, 1);
    if (copy) memcpy(copy, text, size);
    return copy;
}
