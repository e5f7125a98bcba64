/* Lists all unsafe pairs by vector clocks, the method that Tarn itself uses for single pairs. Cost:
 * T^2 questions of a few instructions each. */
#include "pairs.h"

#include "streams/base/deadline.h"
#include "streams/base/region.h"
#include "streams/order/reuse.h"

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

static enum tarn_status reuse_of_graph(struct tarn_reuse *reuse, struct tarn_region *region,
                                       const struct tarn_graph *graph)
{
    struct tarn_clocks clocks;
    enum tarn_status status = tarn_clocks_init(&clocks, region, graph);
    return status == TARN_OK ? tarn_reuse_init(reuse, region, &clocks, graph) : status;
}

enum tarn_status tarn_pairs_clocks_timed(const struct tarn_graph *graph,
                                         struct tarn_pair_matrix *matrix, double *ready_ms)
{
    struct tarn_reuse reuse;
    struct tarn_region region = {.chunks = NULL};
    enum tarn_status status = reuse_of_graph(&reuse, &region, graph);
    *ready_ms = tarn_now_ms();
    if (status == TARN_OK) status = expand(&reuse, matrix);
    tarn_region_finish(&region);
    return status;
}

enum tarn_status tarn_pairs_clocks(const struct tarn_graph *graph, struct tarn_pair_matrix *matrix)
{
    double ready_ms;
    return tarn_pairs_clocks_timed(graph, matrix, &ready_ms);
}
