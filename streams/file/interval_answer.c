/* Writes a plan as the answer to a packing instance: the lifetimes of its graph, each with its
 * offset, in the format of other packers and their validators. Cost: linear. */

#include "interval_read.h"
#include "streams/base/checked.h"
#include "streams/base/error.h"
#include "streams/base/memory.h"
#include "streams/plan/plan.h"

enum tarn_status tarn_interval_answer(const struct tarn_plan *plan,
                                      const struct tarn_writer *writer, struct tarn_error *error)
{
    if (plan->footprint > TARN_NUMBER_MAX)
        return tarn_error_set(error, TARN_BAD_INPUT,
                              "%s: the plan needs more than 2^53 - 1 bytes, which an answer cannot "
                              "say",
                              writer->name);
    uint32_t count = plan->graph->planned_count;
    uint64_t *offset = tarn_take_zeros((size_t)count + 1, sizeof *offset);
    if (!offset) return tarn_error_no_memory(error);
    for (uint32_t a = 0; a < count; a++) offset[a] = tarn_plan_place(plan, a)->offset;
    enum tarn_status status = tarn_interval_give(plan->graph, offset, writer, error);
    tarn_free(offset);
    return status;
}

enum tarn_status tarn_plan_save_intervals(const struct tarn_plan *plan, const char *path,
                                          struct tarn_error *error)
{
    if (!plan || !path) return tarn_error_null(error, __func__);
    tarn_error_clear(error);
    return tarn_interval_answer(plan, &(struct tarn_writer){.name = path}, error);
}
