/* Sets that are joined to larger ones: each item names one of its set, and following these leads to
 * one that names itself, which stands for the set. Cost: near constant, by halving of paths. */
#ifndef TARN_STREAMS_BASE_UNION_H
#define TARN_STREAMS_BASE_UNION_H

#include <stdint.h>

/* The item that stands for the set of item i. */
static inline uint32_t tarn_union_root(uint32_t *parent, uint32_t i)
{
    while (parent[i] != i) i = parent[i] = parent[parent[i]];
    return i;
}

#endif
