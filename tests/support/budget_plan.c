/* One call of the library each. */
#include "budget_plan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void require(enum tarn_status status, const struct tarn_error *error)
{
    if (status != TARN_OK) fail_msg("%s", error->text);
}

uint64_t budget_footprint_of(struct tarn_graph *graph)
{
    struct tarn_plan_summary summary;
    struct tarn_plan *plan;
    struct tarn_error error;
    require(tarn_plan_create(
                graph, TARN_PLAN_OPTIONS(.alignment = BUDGET_ALIGNMENT, .effort = TARN_NO_EFFORT),
                &plan, &error),
            &error);
    tarn_plan_summarize(plan, &summary);
    tarn_plan_destroy(plan);
    return summary.footprint;
}

enum tarn_status budget_plan_within(struct tarn_graph *graph, uint64_t budget, uint64_t effort,
                                    struct tarn_budget_report *report, struct tarn_plan **plan,
                                    struct tarn_error *error)
{
    return tarn_plan_create(
        graph,
        TARN_PLAN_OPTIONS(.alignment = BUDGET_ALIGNMENT,
                          .budget = TARN_BUDGET_OPTIONS(.budget = budget, .effort = effort,
                                                        .report = report)),
        plan, error);
}

struct tarn_graph *budget_assigned(struct tarn_graph *graph, uint32_t streams)
{
    struct tarn_graph *result;
    struct tarn_error error;
    if (streams < 2) return graph;
    require(tarn_graph_assign(
                graph, TARN_ASSIGN_OPTIONS(.streams = streams, .alignment = BUDGET_ALIGNMENT),
                &result, &error),
            &error);
    tarn_graph_destroy(graph);
    return result;
}
