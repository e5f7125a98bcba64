/* Sets of small numbers as bits in words of 64. The words are the caller's; both sets of an
 * operation have `words` of them. */
#ifndef TARN_STREAMS_BASE_BITSET_H
#define TARN_STREAMS_BASE_BITSET_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline bool tarn_set_has(const uint64_t *set, uint32_t i)
{
    return set[i / 64] >> (i % 64) & 1;
}

static inline void tarn_set_add(uint64_t *set, uint32_t i)
{
    set[i / 64] |= (uint64_t)1 << (i % 64);
}

static inline void tarn_set_drop(uint64_t *set, uint32_t i)
{
    set[i / 64] &= ~((uint64_t)1 << (i % 64));
}

static inline void tarn_set_put(uint64_t *set, uint32_t i, bool in)
{
    set[i / 64] = (set[i / 64] & ~((uint64_t)1 << (i % 64))) | (uint64_t)in << (i % 64);
}

static inline void tarn_set_clear(uint64_t *set, uint32_t words)
{
    for (uint32_t w = 0; w < words; w++) set[w] = 0;
}

static inline void tarn_set_join(uint64_t *set, const uint64_t *other, uint32_t words)
{
    for (uint32_t w = 0; w < words; w++) set[w] |= other[w];
}

static inline bool tarn_set_is_empty(const uint64_t *set, uint32_t words)
{
    for (uint32_t w = 0; w < words; w++) {
        if (set[w] != 0) return false;
    }
    return true;
}

static inline uint32_t tarn_set_size(const uint64_t *set, size_t words)
{
    uint32_t size = 0;
    for (size_t w = 0; w < words; w++) size += (uint32_t)__builtin_popcountll(set[w]);
    return size;
}

/* The lowest number of word w of a set, given what is left of that word; not 0. */
static inline uint32_t tarn_set_next(uint32_t w, uint64_t rest)
{
    assert(rest != 0);
    return w * 64 + (uint32_t)__builtin_ctzll(rest);
}

/* A loop over the members of a set, the lowest first. `bits` is the set's word w, an expression
 * that is evaluated once for each of the `words` words; `break` leaves w's members only.
 */
#define TARN_SET_EACH(member, w, words, bits)                                    \
    for (uint32_t w = 0, member = 0; w < (words); w++)                           \
        for (uint64_t left_of_##w = (bits);                                      \
             left_of_##w != 0 && (member = tarn_set_next(w, left_of_##w), true); \
             left_of_##w &= left_of_##w - 1)

#endif
