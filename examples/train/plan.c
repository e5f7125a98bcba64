/* Idea: planning takes time and may depend on it, verifying takes little and does not. So one rank
 * plans, its plan travels as the text of a plan file, and every rank proves what it got.
 * Cost: one plan, one broadcast, and a proof on each rank at the same time. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "train.h"

void agree_on_graph(const struct tarn_graph *graph)
{
    struct tarn_hash here = tarn_graph_hash(graph), first = here;
    ranks_send(&first, sizeof first);
    if (memcmp(&here, &first, sizeof here))
        fail(TARN_REJECTED,
             "its graph (%s) is not the one of rank 0 (%s): same options, data and program?",
             tarn_hash_format(here).text, tarn_hash_format(first).text);
}

/* ---- Costs, which budgets and coupling weigh ---- */

static struct tarn_graph *with_costs(struct tarn_graph *graph, const struct cost *costs)
{
    const uint32_t count = tarn_graph_ops_count(graph);
    struct tarn_op_costs *items = zeros(count, sizeof *items);
    struct tarn_implementation *others = zeros(count, sizeof *others);
    struct tarn_graph *result;
    struct tarn_error error;
    for (tarn_op op = 0; op < count; op++) {
        struct tarn_op_info info;
        tarn_graph_op(graph, op, &info);
        items[op] = (struct tarn_op_costs){op, costs[op].written, TARN_AS_IT_IS, &others[op], 0};
        if (!info.implementations_count) continue; /* there is one at most, here */
        others[op] = info.implementations[0];
        others[op].cost = costs[op].other;
        items[op].implementations_count = 1;
    }
    TARN(tarn_graph_with_costs(graph, items, count, &result, &error));
    free(items);
    free(others);
    return result;
}

/* Fastest of a few steps with malloc, or those of a graph that was saved. */
static void find_costs(const struct training *t, struct cost *costs)
{
    struct tarn_graph *saved;
    struct tarn_error error;
    if (!options.graph) {
        struct serial *serial = serial_begin(t, false);
        serial_run(serial, 6, costs);
        serial_end(serial);
        return;
    }
    TARN(tarn_graph_load(options.graph, &saved, &error));
    for (tarn_op op = 0; op < tarn_graph_ops_count(t->graph); op++) {
        struct tarn_op_info info = {0};
        tarn_graph_op(saved, op, &info);
        costs[op].written = info.cost;
        if (info.implementations_count) costs[op].other = info.implementations[0].cost;
    }
    struct tarn_graph *same = with_costs(t->graph, costs);
    struct tarn_hash a = tarn_graph_hash(saved), b = tarn_graph_hash(same);
    if (memcmp(&a, &b, sizeof a))
        fail(TARN_BAD_INPUT, "%s: not the graph of this training", options.graph);
    tarn_graph_destroy(same);
    tarn_graph_destroy(saved);
}

void set_costs(struct training *t)
{
    const uint32_t count = tarn_graph_ops_count(t->graph);
    struct cost *costs = zeros(count, sizeof *costs);
    struct tarn_graph *bare = t->graph;
    find_costs(t, costs);
    ranks_send(costs, count * sizeof *costs);
    t->graph = with_costs(bare, costs);
    tarn_graph_destroy(bare);
    free(costs);
}

/* ---- Making the plan, on rank 0 ---- */

/* A budget of "70%" is of the footprint of the plan without one. */
static uint64_t budget_of(struct tarn_graph *graph, const struct tarn_plan_options *without)
{
    char *end;
    double amount = strtod(options.budget, &end);
    struct tarn_plan_summary summary;
    struct tarn_plan *plan;
    struct tarn_error error;
    if (amount <= 0 || strcmp(end, *end ? "%" : ""))
        fail(TARN_USAGE, "--budget: '%s' is neither bytes nor a percentage", options.budget);
    if (!*end) return (uint64_t)amount;
    TARN(tarn_plan_create(graph, without, &plan, &error));
    tarn_plan_summarize(plan, &summary);
    tarn_plan_destroy(plan);
    return (uint64_t)((double)summary.footprint * amount / 100);
}

static struct tarn_plan *make(struct tarn_graph *graph)
{
    struct tarn_budget_report report = {0};
    struct tarn_budget_options budget = *TARN_BUDGET_OPTIONS(.report = &report);
    struct tarn_plan_options o =
        *TARN_PLAN_OPTIONS(.effort = 1000,
                           .reorder = options.reorder ? TARN_REORDER_OPTIONS(.report = NULL) : NULL,
                           .couple =
                               options.couple ? TARN_COUPLE_OPTIONS(.slowdown_max = .1) : NULL,
                           .in_place =
                               options.in_place ? TARN_IN_PLACE_OPTIONS(.report = NULL) : NULL);
    struct tarn_plan_summary s;
    struct tarn_plan *plan;
    struct tarn_error error;
    if (options.budget) budget.budget = budget_of(graph, &o), o.budget = &budget;
    if (options.plan)
        TARN(tarn_plan_load(options.plan, graph, TARN_VERIFY, &plan, &error));
    else
        TARN(tarn_plan_create(graph, &o, &plan, &error));
    if (options.save_plan) TARN(tarn_plan_save(plan, options.save_plan, &error));
    tarn_plan_summarize(plan, &s);
    printf("plan: arena %llu bytes, bound %llu%s, %u waits and %u on the step before\n",
           (unsigned long long)s.footprint, (unsigned long long)s.bound,
           s.optimal ? " (optimal)" : "", s.waits, s.boundary_waits);
    if (report.budget)
        printf("budget: %llu bytes; %u ops again, %u otherwise; modelled %.3f ms, before %.3f ms\n",
               (unsigned long long)report.budget, report.recomputed, report.implemented,
               (double)report.time_ns / 1e6, (double)report.time_before_ns / 1e6);
    return plan;
}

/* ---- Sending it ---- */

struct tarn_plan *agree_on_plan(struct tarn_graph *graph)
{
    enum { ROOM = 1 << 26 }; /* bytes: far more than a plan of this program has */
    struct tarn_error error;
    struct tarn_plan *plan = rank == 0 ? make(graph) : NULL;
    struct tarn_plan_identity first = tarn_plan_identify(plan);
    size_t size = 0;
    char *text = zeros(ROOM, 1);
    const struct tarn_writer *writer = TARN_WRITER(.bytes = text, .room = ROOM, .size = &size);
    if (plan) TARN(tarn_plan_write(plan, writer, &error));
    ranks_send(&size, sizeof size);
    ranks_send(text, size);
    ranks_send(&first, sizeof first);
    if (fault("damage", NULL)) text[size / 2] ^= 1;
    if (fault("plan", NULL))
        TARN(tarn_plan_create(graph, TARN_PLAN_OPTIONS(.alignment = 4096), &plan, &error));
    else if (rank > 0)
        TARN(tarn_plan_read(TARN_READER(.name = "rank 0's plan", .bytes = text, .size = size),
                            graph, TARN_VERIFY, &plan, &error));
    TARN(tarn_plan_expect(plan, &first, &error));
    free(text);
    return plan;
}
