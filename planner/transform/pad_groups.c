/* Makes contiguous groups exact or padded: the same graph with another padding for each group.
 * Cost: linear.
 */
#include "recipe.h"
#include "streams/base/error.h"
#include "tarn/transform.h"

enum tarn_status tarn_graph_pad_groups(struct tarn_graph *graph, enum tarn_group_padding padding,
                                       struct tarn_graph **result, struct tarn_error *error)
{
    if (result) *result = NULL;
    if (!graph || !result) return tarn_error_null(error, __func__);
    tarn_error_clear(error);
    if (padding > TARN_GROUPS_PADDED)
        return tarn_error_set(error, TARN_USAGE,
                              "groups of a graph are exact or padded; which of the two is smaller "
                              "can only be said of a plan");
    return tarn_recipe_build(&(struct tarn_recipe){.graph = graph, .padding = padding}, result,
                             error);
}
