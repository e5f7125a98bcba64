/* A region: memory that is freed together. A computation allocates its data from one region, and
 * frees it in one call. Not thread-safe: parallel searches have a region each. */
#ifndef TARN_STREAMS_BASE_REGION_H
#define TARN_STREAMS_BASE_REGION_H

#include <stdbool.h>
#include <stddef.h>

struct tarn_region_chunk;

/* All zero: an empty region, which holds no memory yet. May be moved by copying the struct, as long
 * as only one copy is used from then on. */
struct tarn_region {
    struct tarn_region_chunk *chunks; /* the newest first */
    unsigned char *free;              /* the first free byte of the chunk that is being filled */
    size_t left;                      /* free bytes from there on */
    size_t chunk_size;                /* of the chunk that is being filled, or 0 */
    bool is_exhausted;                /* some call has returned NULL: memory was refused */
};

/* The state of a region at some moment. */
struct tarn_region_mark {
    struct tarn_region_chunk *chunks;
    unsigned char *free;
    size_t left, chunk_size;
};

/* Gives all memory back; the region is empty then, and can be used again. */
void tarn_region_finish(struct tarn_region *region);

/* `count` items of `size` bytes, zero-filled and aligned for any type. Count 0 gives a valid
 * pointer. Returns NULL, and remembers it in is_exhausted, when memory is refused or count * size
 * overflows: so several items can be taken, and the region asked once whether all are there. */
void *tarn_region_take(struct tarn_region *region, size_t count, size_t size);
/* A copy of `count` * `size` bytes, aligned for any type of that size; NULL as above. */
void *tarn_region_copy(struct tarn_region *region, const void *data, size_t count, size_t size);
/* A copy of a string (NULL: ""); NULL as above. */
char *tarn_region_string(struct tarn_region *region, const char *text);
/* An array that grows: `*room` items of `size` bytes are there at `items` (NULL: none), and at
 * least `count` are wanted. Returns `items` where there is room, or else a copy of twice the
 * length, zero-filled after the old items, and its length in *room. The old items stay in the
 * region unchanged, even if NULL is returned. pre: size > 0. */
void *tarn_region_grow(struct tarn_region *region, void *items, size_t *room, size_t count,
                       size_t size);

/* The second call frees memory taken between the two calls; pointers to it are invalid then. Marks
 * are released in the reverse order of their making. */
struct tarn_region_mark tarn_region_mark(const struct tarn_region *region);
void tarn_region_release(struct tarn_region *region, struct tarn_region_mark mark);

/* Whether the chunks are a list that ends, and the free bytes lie in the newest one that is shared.
 * For assertions; cost: linear in chunks. */
bool tarn_region_is_valid(const struct tarn_region *region);

#endif
