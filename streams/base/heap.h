/* A binary heap of numbers below 2^32, with the smallest key on top; among equal keys, the smallest
 * number. Keys of numbers that are in the heap do not change.
 * Cost: O(log count) for push and pop. */
#ifndef TARN_STREAMS_BASE_HEAP_H
#define TARN_STREAMS_BASE_HEAP_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tarn_heap {
    const uint64_t *key; /* number -> its key; NULL: all keys are equal */
    uint32_t *items;     /* the caller's, with room for the maximum number of items */
    uint32_t count;
};

/* Does number a come before number b? */
static inline bool tarn_heap_is_before(const struct tarn_heap *heap, uint32_t a, uint32_t b)
{
    if (!heap->key || heap->key[a] == heap->key[b]) return a < b;
    return heap->key[a] < heap->key[b];
}

static inline void tarn_heap_push(struct tarn_heap *heap, uint32_t number)
{
    assert(heap->items && heap->count < UINT32_MAX);
    uint32_t i = heap->count++;
    for (; i > 0 && tarn_heap_is_before(heap, number, heap->items[(i - 1) / 2]); i = (i - 1) / 2)
        heap->items[i] = heap->items[(i - 1) / 2];
    heap->items[i] = number;
}

/* pre: the heap is not empty. */
static inline uint32_t tarn_heap_first(const struct tarn_heap *heap)
{
    assert(heap->count > 0);
    return heap->items[0];
}

/* Takes the first number out. pre: the heap is not empty. */
static inline uint32_t tarn_heap_pop(struct tarn_heap *heap)
{
    uint32_t first = tarn_heap_first(heap), last = heap->items[--heap->count], i = 0;
    for (uint32_t child; (child = 2 * i + 1) < heap->count; i = child) {
        if (child + 1 < heap->count &&
            tarn_heap_is_before(heap, heap->items[child + 1], heap->items[child]))
            child++;
        if (!tarn_heap_is_before(heap, heap->items[child], last)) break;
        heap->items[i] = heap->items[child];
    }
    heap->items[i] = last;
    return first;
}

/* Does no item come before its parent? For assertions; cost: linear in items. */
static inline bool tarn_heap_is_valid(const struct tarn_heap *heap)
{
    for (uint32_t i = 1; i < heap->count; i++)
        if (tarn_heap_is_before(heap, heap->items[i], heap->items[(i - 1) / 2])) return false;
    return true;
}

#endif
