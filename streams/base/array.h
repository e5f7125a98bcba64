/* A growing array outside of regions. Arrays that grow during a search use it, since an array in a
 * region leaves its shorter copies allocated. The owner frees the items. */
#ifndef TARN_STREAMS_BASE_ARRAY_H
#define TARN_STREAMS_BASE_ARRAY_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "memory.h"

/* The number of items of an array whose declaration says it. */
#define TARN_COUNT_OF(array) (sizeof(array) / sizeof *(array))

/* Makes room for `count` items of `size` bytes: `*room` of them are there at `items` (NULL: none).
 * Returns the items, which may have moved, and writes their room, at least twice the old one where
 * it changed; what is new is not set. NULL: no memory, and the items are as they were.
 * pre: size > 0 and count > 0. */
static inline void *tarn_array_grow(void *items, size_t *room, size_t count, size_t size)
{
    assert(size > 0 && count > 0 && (items || *room == 0));
    if (count <= *room) return items;
    size_t longer = *room <= SIZE_MAX / 2 && *room * 2 > count ? *room * 2 : count;
    void *grown = longer <= SIZE_MAX / size ? tarn_resize(items, longer * size) : NULL;
    if (grown) *room = longer;
    return grown;
}

#endif
