/* Unsafe pairs as a full matrix: what the algorithms of the SOMAS paper produce, and what vector
 * clocks expand to where the two are compared. */
#ifndef TARN_PLANNER_PAPERS_PAIR_MATRIX_H
#define TARN_PLANNER_PAPERS_PAIR_MATRIX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "streams/base/bitset.h"
#include "tarn/error.h"

/* Symmetric bit matrix over planned storages. A set bit is an unsafe pair; the diagonal is clear,
 * and so are the bits of a row behind the last storage. */
struct tarn_pair_matrix {
    uint32_t count; /* of storages */
    uint32_t words; /* 64-bit words of a row */
    uint64_t *bits; /* row a is words [a * words, (a + 1) * words) */
};

static inline bool tarn_pair_matrix_get(const struct tarn_pair_matrix *matrix, uint32_t a,
                                        uint32_t b)
{
    return tarn_set_has(matrix->bits + (size_t)a * matrix->words, b);
}

static inline void tarn_pair_matrix_clear(struct tarn_pair_matrix *matrix, uint32_t a, uint32_t b)
{
    tarn_set_drop(matrix->bits + (size_t)a * matrix->words, b);
    tarn_set_drop(matrix->bits + (size_t)b * matrix->words, a);
}

/* All pairs unsafe, as the algorithms start. TARN_SYSTEM: no memory. */
enum tarn_status tarn_pair_matrix_init(struct tarn_pair_matrix *matrix, uint32_t count);
void tarn_pair_matrix_finish(struct tarn_pair_matrix *matrix);

/* How many pairs are unsafe. */
uint64_t tarn_pair_matrix_count(const struct tarn_pair_matrix *matrix);
/* Of the set of unsafe pairs: equal for equal sets. */
uint64_t tarn_pair_matrix_hash(const struct tarn_pair_matrix *matrix);

/* Whether it is symmetric, with a clear diagonal and clear padding. For assertions; cost: T^2. */
bool tarn_pair_matrix_is_valid(const struct tarn_pair_matrix *matrix);

#endif
