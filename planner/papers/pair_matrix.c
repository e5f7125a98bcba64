/* A bit matrix of pairs. The hash covers the rows, so methods that find the same set have the same
 * hash. Cost: T^2 bits; every function of the whole matrix is linear in that. */
#include "pairs.h"

#include <assert.h>
#include <string.h>

#include "streams/base/memory.h"

enum tarn_status tarn_pair_matrix_init(struct tarn_pair_matrix *matrix, uint32_t count)
{
    uint32_t words = count / 64 + (count % 64 != 0);
    matrix->count = count;
    matrix->words = words;
    size_t size = (size_t)count * words * sizeof *matrix->bits;
    matrix->bits = tarn_take(size > 0 ? size : 1);
    if (!matrix->bits) return TARN_SYSTEM;
    memset(matrix->bits, 0xff, size);
    for (uint32_t a = 0; a < count; a++) {
        uint64_t *row = matrix->bits + (size_t)a * words;
        if (count % 64 != 0) row[words - 1] = (UINT64_C(1) << (count % 64)) - 1;
        tarn_pair_matrix_clear(matrix, a, a);
    }
    return TARN_OK;
}

void tarn_pair_matrix_finish(struct tarn_pair_matrix *matrix)
{
    tarn_free(matrix->bits);
    memset(matrix, 0, sizeof *matrix);
}

uint64_t tarn_pair_matrix_count(const struct tarn_pair_matrix *matrix)
{
    uint64_t bits = 0;
    assert(tarn_pair_matrix_is_valid(matrix));
    for (size_t w = 0; w < (size_t)matrix->count * matrix->words; w++)
        bits += (uint64_t)__builtin_popcountll(matrix->bits[w]);
    assert(bits % 2 == 0); /* each pair has two bits */
    return bits / 2;
}

/* Steps of the splitmix64 finaliser; the count keeps an empty set of three apart from one of four.
 */
uint64_t tarn_pair_matrix_hash(const struct tarn_pair_matrix *matrix)
{
    uint64_t hash = matrix->count;
    for (size_t w = 0; w < (size_t)matrix->count * matrix->words; w++) {
        hash = (hash ^ matrix->bits[w]) * UINT64_C(0xbf58476d1ce4e5b9);
        hash ^= hash >> 29;
    }
    return hash;
}

bool tarn_pair_matrix_is_valid(const struct tarn_pair_matrix *matrix)
{
    uint32_t count = matrix->count, last = count % 64;
    for (uint32_t a = 0; a < count; a++) {
        uint64_t end = matrix->bits[(size_t)(a + 1) * matrix->words - 1];
        if ((last != 0 && end >> last != 0) || tarn_pair_matrix_get(matrix, a, a)) return false;
        for (uint32_t b = 0; b < a; b++)
            if (tarn_pair_matrix_get(matrix, a, b) != tarn_pair_matrix_get(matrix, b, a))
                return false;
    }
    return true;
}
