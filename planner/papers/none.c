/* The interface papers.h in a build without the methods of papers (-Dpapers=false). */
#include <string.h>

#include "papers.h"
#include "streams/base/error.h"

const struct tarn_layout *tarn_papers_layout(size_t i)
{
    (void)i;
    return NULL;
}

bool tarn_papers_lack(const char *name)
{
    return strcmp(name, "roam-tree") == 0 || strcmp(name, "llfb") == 0;
}

enum tarn_status tarn_graph_pairs_sized(const struct tarn_graph *graph, const char *name,
                                        struct tarn_pairs *pairs, size_t size,
                                        struct tarn_error *error)
{
    if (pairs) memset(pairs, 0, size);
    if (!graph || !name || !pairs) return tarn_error_null(error, __func__);
    return tarn_error_set(error, TARN_USAGE, "this build has no methods of papers");
}
