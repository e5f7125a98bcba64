/* Unsafe pairs as a bit matrix: making one, expanding `first` into one, and the public question
 * that lets anybody compare the four methods. The hash is over the rows, so methods that find the
 * same set have the same hash. Cost: the matrix has T^2 bits; expanding and hashing it are linear
 * in that. */
#include "pairs.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "streams/base/error.h"
#include "streams/graph/clocks.h"

/* ---- The matrix ---- */

enum tarn_status tarn_pair_matrix_init(struct tarn_pair_matrix *matrix, uint32_t count)
{
    uint32_t words = count / 64 + (count % 64 != 0);
    matrix->count = count;
    matrix->words = words;
    matrix->bits = malloc(((size_t)count * words + 1) * sizeof *matrix->bits);
    if (!matrix->bits) return TARN_SYSTEM;
    memset(matrix->bits, 0xff, (size_t)count * words * sizeof *matrix->bits);
    for (uint32_t a = 0; a < count; a++) {
        uint64_t *row = matrix->bits + (size_t)a * words;
        if (count % 64 != 0) row[words - 1] = (UINT64_C(1) << (count % 64)) - 1;
        tarn_pair_matrix_clear(matrix, a, a);
    }
    return TARN_OK;
}

void tarn_pair_matrix_finish(struct tarn_pair_matrix *matrix)
{
    free(matrix->bits);
    memset(matrix, 0, sizeof *matrix);
}

static uint64_t count_unsafe(const struct tarn_pair_matrix *matrix)
{
    uint64_t bits = 0;
    for (size_t w = 0; w < (size_t)matrix->count * matrix->words; w++)
        bits += (uint64_t)__builtin_popcountll(matrix->bits[w]);
    assert(bits % 2 == 0);
    return bits / 2;
}

/* Steps of the splitmix64 finaliser; the count keeps an empty set of three apart from one of four.
 */
static uint64_t hash_set(const struct tarn_pair_matrix *matrix)
{
    uint64_t hash = matrix->count;
    for (size_t w = 0; w < (size_t)matrix->count * matrix->words; w++) {
        hash = (hash ^ matrix->bits[w]) * UINT64_C(0xbf58476d1ce4e5b9);
        hash ^= hash >> 29;
    }
    return hash;
}

/* ---- Clocks ---- */

static uint64_t unsafe_word(const struct tarn_reuse *reuse, uint32_t a, uint32_t begin,
                            uint32_t end)
{
    uint64_t word = 0;
    for (uint32_t b = begin; b < end; b++)
        word |= (uint64_t)!tarn_reuse_is_safe(reuse, a, b) << (b - begin);
    return word;
}

static enum tarn_status expand(const struct tarn_reuse *reuse, struct tarn_pair_matrix *matrix)
{
    enum tarn_status status = tarn_pair_matrix_init(matrix, reuse->count);
    if (status != TARN_OK) return status;
    for (uint32_t a = 0; a < reuse->count; a++) {
        uint64_t *row = matrix->bits + (size_t)a * matrix->words;
        for (uint32_t w = 0; w < matrix->words; w++) {
            uint32_t end = w + 1 < matrix->words ? (w + 1) * 64 : reuse->count;
            row[w] = unsafe_word(reuse, a, w * 64, end);
        }
        tarn_pair_matrix_clear(matrix, a, a);
    }
    return TARN_OK;
}

static enum tarn_status reuse_of_graph(const struct tarn_graph *graph, struct tarn_reuse *reuse)
{
    struct tarn_clocks clocks;
    enum tarn_status status = tarn_clocks_init(&clocks, graph);
    if (status != TARN_OK) return status;
    status = tarn_reuse_init(reuse, &clocks, graph);
    tarn_clocks_finish(&clocks);
    return status;
}

enum tarn_status tarn_pairs_clocks(const struct tarn_graph *graph, struct tarn_pair_matrix *matrix)
{
    struct tarn_reuse reuse;
    enum tarn_status status = reuse_of_graph(graph, &reuse);
    if (status != TARN_OK) return status;
    status = expand(&reuse, matrix);
    tarn_reuse_finish(&reuse);
    return status;
}

/* ---- The public question ---- */

static double now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

static enum tarn_status time_clocks(const struct tarn_graph *graph, struct tarn_pairs *pairs,
                                    struct tarn_pair_matrix *matrix)
{
    struct tarn_reuse reuse;
    double begin = now_ms();
    enum tarn_status status = reuse_of_graph(graph, &reuse);
    if (status != TARN_OK) return status;
    double ready = now_ms();
    status = expand(&reuse, matrix);
    pairs->ms = ready - begin;
    pairs->matrix_ms = now_ms() - ready;
    tarn_reuse_finish(&reuse);
    return status;
}

typedef enum tarn_status (*pairs_method)(const struct tarn_graph *graph,
                                         struct tarn_pair_matrix *matrix);

static enum tarn_status time_method(const struct tarn_graph *graph, pairs_method method,
                                    struct tarn_pairs *pairs, struct tarn_pair_matrix *matrix)
{
    double begin = now_ms();
    enum tarn_status status = method(graph, matrix);
    pairs->ms = now_ms() - begin;
    return status;
}

static pairs_method find_method(const char *name)
{
    static const struct {
        const char *name;
        pairs_method method;
    } methods[] = {{"clocks", tarn_pairs_clocks},
                   {"ancestors", tarn_pairs_ancestors},
                   {"ancestors-opt", tarn_pairs_ancestors_opt},
                   {"stream-graph", tarn_pairs_stream_graph}};
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        if (strcmp(methods[i].name, name) == 0) return methods[i].method;
    }
    return NULL;
}

enum tarn_status tarn_graph_pairs(const struct tarn_graph *graph, const char *name,
                                  struct tarn_pairs *pairs, struct tarn_error *error)
{
    if (pairs) memset(pairs, 0, sizeof *pairs);
    if (!graph || !name || !pairs) return tarn_error_null(error, __func__);
    tarn_error_clear(error);
    pairs_method method = name ? find_method(name) : NULL;
    if (!method)
        return tarn_error_set(error, TARN_USAGE,
                              "unknown method \"%s\" for pairs; use clocks, ancestors, "
                              "ancestors-opt or stream-graph",
                              name ? name : "");
    struct tarn_pair_matrix matrix;
    enum tarn_status status = method == tarn_pairs_clocks
                                  ? time_clocks(graph, pairs, &matrix)
                                  : time_method(graph, method, pairs, &matrix);
    if (status != TARN_OK) return tarn_error_no_memory(error);
    uint64_t count = matrix.count;
    pairs->pairs = count > 0 ? count * (count - 1) / 2 : 0;
    pairs->unsafe = count_unsafe(&matrix);
    pairs->hash = hash_set(&matrix);
    tarn_pair_matrix_finish(&matrix);
    return TARN_OK;
}
