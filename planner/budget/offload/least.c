/* Finds the least arena before a budget is refused. Cost: some brief searches for moves, and their
 * placements. */
#include "offloading.h"
#include "planner/budget/budget.h"

/* Budgets that are tried for the least, each with one part in BRIEF_PART of the effort. */
enum { HALVES = 8, BRIEF_PART = 32 };

/* The least arena, by halves, of moves from the graphs that were added. What it tries does not
 * depend on the budget that was asked for, so that the footprint which a refusal tells can be kept;
 * but if several graphs have the smallest footprint, it starts from the one that this budget met.
 */
static enum tarn_status halve(struct tarn_offloading *offloading,
                              struct tarn_offloading_found *least)
{
    uint64_t before = offloading->before, low = 0,
             high = tarn_offloading_always_moves(offloading) ? 2 * before : before;
    enum tarn_status status = TARN_OK;
    for (int k = 0; k < HALVES && status == TARN_OK && !tarn_offloading_is_over(offloading); k++) {
        bool is_any = least->made.graph != NULL;
        if (high - low <= before / TARN_OFFLOADING_LESS) break;
        offloading->bytes =
            is_any || !tarn_offloading_always_moves(offloading) ? low + (high - low) / 2 : high;
        offloading->known_count = 0;
        for (uint32_t i = 0; i < offloading->starts_count && status == TARN_OK; i++) {
            struct tarn_offloading_start *start = &offloading->starts[i];
            struct tarn_offloading_question *question =
                &start->questions[TARN_OFFLOADING_QUESTIONS - 1];
            tarn_offloading_begin_again(offloading, question);
            status = tarn_offloading_ask(offloading, start, question, 1);
        }
        if (status == TARN_OK) status = tarn_offloading_settle(offloading, UINT64_MAX);
        if (!offloading->best.made.graph) {
            low = offloading->bytes;
            if (low == high) break;
            continue;
        }
        tarn_planned_finish(&least->made);
        *least = offloading->best;
        offloading->best = (struct tarn_offloading_found){.time_ns = 0};
        high = tarn_plan_footprint(least->made.plan);
    }
    return status;
}

enum tarn_status tarn_offloading_find_least(struct tarn_offloading *offloading)
{
    const struct tarn_budget_report none = {0};
    uint64_t effort = offloading->options.effort, asked = offloading->bytes, bytes;
    struct tarn_planned made = {0};
    struct tarn_offloading_found least = {.time_ns = 0};
    struct tarn_offloading_start *start;
    tarn_offloading_finish_starts(offloading);
    enum tarn_status status =
        tarn_offloading_add_start(offloading, offloading->graph, &none, &start);
    bool alone = offloading->budget.method == TARN_BUDGET_OFFLOAD;
    if (status == TARN_OK && !alone && !offloading->smallest) {
        status = tarn_offloading_ask_budget(offloading, tarn_budgeting_look, offloading->graph, 1,
                                            false, &made, &offloading->smallest_report, &bytes);
        offloading->smallest = made.graph;
        tarn_plan_destroy(made.plan);
    }
    if (status == TARN_OK && offloading->smallest &&
        !tarn_offloading_find_start(offloading, offloading->smallest))
        status = tarn_offloading_add_start(offloading, offloading->smallest,
                                           &offloading->smallest_report, &start);
    offloading->options.effort = 1 + effort / BRIEF_PART;
    offloading->is_brief = true;
    if (status == TARN_OK) status = halve(offloading, &least);
    offloading->options.effort = effort;
    offloading->bytes = asked;
    offloading->is_brief = false;
    if (status == TARN_OK && least.made.graph) {
        bytes = tarn_plan_footprint(least.made.plan);
        if (bytes <= offloading->bytes) {
            offloading->best = least;
            return TARN_OK;
        }
        if (bytes < offloading->least) offloading->least = bytes;
    }
    tarn_planned_finish(&least.made);
    return status;
}
