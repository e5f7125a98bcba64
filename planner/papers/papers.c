/* The interface papers.h in a build with the methods of papers: layouts by name, and the public
 * function for unsafe pairs. */
#include "papers.h"

#include <string.h>

#include "pairs.h"
#include "streams/base/deadline.h"
#include "streams/base/error.h"
#include "streams/base/options.h"
#include "streams/base/region.h"
#include "streams/order/view.h"

/* ---- Layouts ---- */

const struct tarn_layout *tarn_papers_layout(size_t i)
{
    static const struct tarn_layout layouts[] = {{"roam-tree", tarn_roam_place},
                                                 {"llfb", tarn_llfb_place}};
    return i < sizeof layouts / sizeof *layouts ? &layouts[i] : NULL;
}

bool tarn_papers_lack(const char *name)
{
    (void)name;
    return false;
}

/* ---- Pairs ---- */

typedef enum tarn_status (*pairs_method)(const struct tarn_graph *graph,
                                         struct tarn_pair_matrix *matrix);

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

/* Writes the times too. */
static enum tarn_status run(const struct tarn_graph *graph, pairs_method method,
                            struct tarn_pairs *pairs, struct tarn_pair_matrix *matrix)
{
    double begin = tarn_now_ms(), ready;
    bool by_clocks = method == tarn_pairs_clocks;
    enum tarn_status status =
        by_clocks ? tarn_pairs_clocks_timed(graph, matrix, &ready) : method(graph, matrix);
    double end = tarn_now_ms();
    if (status != TARN_OK) return status;
    if (!by_clocks) ready = end;
    pairs->ms = ready - begin;
    pairs->matrix_ms = end - ready;
    return TARN_OK;
}

enum tarn_status tarn_graph_pairs_sized(const struct tarn_graph *graph, const char *name,
                                        struct tarn_pairs *pairs, size_t size,
                                        struct tarn_error *error)
{
    struct tarn_pairs known = {0};
    if (pairs) memset(pairs, 0, size);
    if (!graph || !name || !pairs) return tarn_error_null(error, __func__);
    tarn_error_clear(error);
    pairs_method method = find_method(name);
    if (!method)
        return tarn_error_set(error, TARN_USAGE,
                              "unknown method \"%s\" for pairs; use clocks, ancestors, "
                              "ancestors-opt or stream-graph",
                              name);
    struct tarn_pair_matrix matrix;
    struct tarn_view view;
    struct tarn_region region = {.chunks = NULL};
    enum tarn_status status = tarn_view_init(&view, &region, graph);
    if (status == TARN_OK) status = run(view.graph, method, &known, &matrix);
    tarn_region_finish(&region);
    if (status != TARN_OK) return tarn_error_no_memory(error);
    uint64_t count = matrix.count;
    known.pairs = count > 0 ? count * (count - 1) / 2 : 0;
    known.unsafe = tarn_pair_matrix_count(&matrix);
    known.hash = tarn_pair_matrix_hash(&matrix);
    tarn_struct_give(pairs, size, &known, sizeof known);
    tarn_pair_matrix_finish(&matrix);
    return TARN_OK;
}
