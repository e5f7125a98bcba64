/* A region is a list of chunks, which are handed out from front to back. A graph is made of
 * millions of short strings and lists: one call of the allocator each would cost more than all the
 * rest. A shared chunk has twice the size of the last one up to a limit; what is larger than half a
 * chunk gets a chunk of its own, of exactly its size. Chunks come from calloc, so fresh pages are
 * not zeroed twice.
 *
 *     newest chunk ─► older ─► ... ─► NULL        [header | used ......... | free ...]
 *
 * A mark remembers the newest chunk and the first free byte. Releasing it frees the chunks that
 * came later, and zeroes what was used of the shared chunk since.
 * Source: D. R. Hanson, "Fast allocation and deallocation of memory based on object lifetimes",
 * 1990. Cost: constant per call, and zeroing. */
#include "region.h"

#include <assert.h>
#include <stdalign.h>
#include <stdint.h>
#include <string.h>

#include "memory.h"

/* Under the address sanitizer every item is a chunk, so that a step beyond an item is found, and
 * every item is an allocation that a test can let fail; so too where coverage is measured. */
#ifdef __SANITIZE_ADDRESS__
#define ITEMS_APART true
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ITEMS_APART true
#endif
#endif
#ifndef ITEMS_APART
#define ITEMS_APART false
#endif

#define CHUNK_MIN ((size_t)4096)
#define CHUNK_MAX ((size_t)1 << 20)

struct tarn_region_chunk {
    struct tarn_region_chunk *next;
    alignas(max_align_t) unsigned char bytes[];
};

static void free_chunks(struct tarn_region_chunk *chunk, const struct tarn_region_chunk *end)
{
    for (struct tarn_region_chunk *next; chunk != end; chunk = next) {
        next = chunk->next;
        tarn_free(chunk);
    }
}

void tarn_region_finish(struct tarn_region *region)
{
    assert(tarn_region_is_valid(region));
    free_chunks(region->chunks, NULL);
    *region = (struct tarn_region){.chunks = NULL};
}

static struct tarn_region_chunk *add_chunk(struct tarn_region *region, size_t size)
{
    struct tarn_region_chunk *chunk = NULL;
    if (size <= SIZE_MAX - sizeof *chunk) chunk = tarn_take_zeros(1, sizeof *chunk + size);
    if (!chunk) {
        region->is_exhausted = true;
        return NULL;
    }
    chunk->next = region->chunks;
    region->chunks = chunk;
    return chunk;
}

static size_t next_chunk_size(const struct tarn_region *region)
{
    if (region->chunk_size == 0) return CHUNK_MIN;
    return region->chunk_size < CHUNK_MAX ? region->chunk_size * 2 : CHUNK_MAX;
}

static void *take_bytes(struct tarn_region *region, size_t size, size_t alignment)
{
    assert((alignment & (alignment - 1)) == 0 && region->left <= region->chunk_size);
    size_t padding = (size_t)(-(uintptr_t)region->free & (alignment - 1));
    if (padding > region->left || size > region->left - padding) {
        size_t chunk_size = next_chunk_size(region);
        bool is_own = ITEMS_APART || size > chunk_size / 2;
        struct tarn_region_chunk *chunk = add_chunk(region, is_own ? size : chunk_size);
        if (!chunk || is_own) return chunk ? chunk->bytes : NULL;
        region->free = chunk->bytes;
        region->left = region->chunk_size = chunk_size;
        padding = 0;
    }
    void *bytes = region->free + padding;
    assert(padding + size <= region->left);
    region->free += padding + size;
    region->left -= padding + size;
    return bytes;
}

void *tarn_region_take(struct tarn_region *region, size_t count, size_t size)
{
    if (size != 0 && count > SIZE_MAX / size) {
        region->is_exhausted = true;
        return NULL;
    }
    return take_bytes(region, count * size + (count * size == 0), alignof(max_align_t));
}

/* The alignment of a type divides its size: short lists of ids lie close together. */
void *tarn_region_copy(struct tarn_region *region, const void *data, size_t count, size_t size)
{
    assert(data || count == 0);
    size_t alignment = size & -size;
    if (size == 0 || alignment > alignof(max_align_t)) alignment = alignof(max_align_t);
    if (size != 0 && count > SIZE_MAX / size) {
        region->is_exhausted = true;
        return NULL;
    }
    void *copy = take_bytes(region, count * size + (count * size == 0), alignment);
    if (copy && count * size != 0) memcpy(copy, data, count * size);
    return copy;
}

char *tarn_region_string(struct tarn_region *region, const char *text)
{
    if (!text) text = "";
    size_t size = strlen(text) + 1;
    char *copy = take_bytes(region, size, 1);
    if (copy) memcpy(copy, text, size);
    return copy;
}

void *tarn_region_grow(struct tarn_region *region, void *items, size_t *room, size_t count,
                       size_t size)
{
    assert(size > 0 && (items || *room == 0));
    if (items && count <= *room) return items;
    size_t longer = *room < 8 ? 16 : *room <= SIZE_MAX / 2 ? *room * 2 : SIZE_MAX;
    if (longer < count) longer = count;
    void *copy = tarn_region_take(region, longer, size);
    if (!copy) return NULL;
    if (items) memcpy(copy, items, *room * size);
    *room = longer;
    return copy;
}

struct tarn_region_mark tarn_region_mark(const struct tarn_region *region)
{
    return (struct tarn_region_mark){region->chunks, region->free, region->left,
                                     region->chunk_size};
}

void tarn_region_release(struct tarn_region *region, struct tarn_region_mark mark)
{
    assert(mark.left <= mark.chunk_size && mark.chunk_size <= region->chunk_size);
    free_chunks(region->chunks, mark.chunks);
    region->chunks = mark.chunks;
    /* The shared chunk of the mark is still there: what was used of it since is zeroed. If another
     * one was begun since, it is not known how far this one was used. */
    if (mark.left > 0) {
        bool is_same = region->chunk_size == mark.chunk_size && region->free >= mark.free &&
                       region->free <= mark.free + mark.left;
        memset(mark.free, 0, is_same ? (size_t)(region->free - mark.free) : mark.left);
    }
    region->free = mark.free;
    region->left = mark.left;
    region->chunk_size = mark.chunk_size;
}

bool tarn_region_is_valid(const struct tarn_region *region)
{
    if (region->left > region->chunk_size || (!region->free && region->left > 0)) return false;
    if (!region->chunks) return !region->free && region->chunk_size == 0;
    for (const struct tarn_region_chunk *chunk = region->chunks; chunk; chunk = chunk->next) {
        size_t used = region->chunk_size - region->left;
        if (region->free && region->free - used == chunk->bytes) return true;
    }
    return !region->free;
}
