/* Idea: planning takes time and may depend on it, verifying takes little and does not. So one rank
 * plans, its plan travels as the text of a plan file, and every rank proves what it got.
 * Cost: one plan, one broadcast, and a proof on each rank at the same time. */
#include <omp.h>
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

struct measuring {
    struct program *program;
    uint64_t (*costs)[2]; /* by op, in nanoseconds: the fastest so far, as written and otherwise */
};

/* Runs an op as written, and then by its other implementation: that of a norm, there is no other
 * one here, which reads x and the statistics that were written just now. */
static int measure_op(void *user, const struct tarn_call *call)
{
    const struct measuring *m = user;
    struct tarn_op_info info;
    struct tarn_call as = *call;
    void *inputs[3];
    tarn_graph_op(m->program->graph, call->op, &info);
    for (size_t i = 0; i <= info.implementations_count; i++) {
        const double begin = omp_get_wtime();
        const int code = tape_run(&m->program->tape, &as);
        const uint64_t time = (uint64_t)((omp_get_wtime() - begin) * 1e9);
        uint64_t *fastest = &m->costs[call->op][i];
        if (!*fastest || time < *fastest) *fastest = time;
        if (code || i == info.implementations_count) return code;
        inputs[0] = call->inputs[0], inputs[1] = call->outputs[1], inputs[2] = call->outputs[2];
        as.implementation = 0, as.inputs = inputs, as.inputs_count = 3, as.outputs_count = 1;
    }
    return 0;
}

static void measure(struct program *p, uint64_t (*costs)[2])
{
    TARN(tarn_plan_create(p->graph, NULL, &p->plan, &error));
    program_open(p, NULL, measure_op, &(struct measuring){p, costs});
    state_reset(&p->tape);
    program_run(p, 6);
    tarn_session_destroy(p->session);
    tarn_plan_destroy(p->plan);
}

static struct tarn_graph *with_costs(struct tarn_graph *graph, uint64_t (*costs)[2])
{
    const uint32_t count = tarn_graph_ops_count(graph);
    struct tarn_op_costs *items = zeros(count, sizeof *items);
    struct tarn_implementation *others = zeros(count, sizeof *others);
    struct tarn_graph *result;
    for (tarn_op op = 0; op < count; op++) {
        struct tarn_op_info info;
        tarn_graph_op(graph, op, &info);
        const size_t has_other = info.implementations_count;
        if (has_other) others[op] = info.implementations[0], others[op].cost = costs[op][1];
        items[op] = (struct tarn_op_costs){op, costs[op][0], TARN_AS_IT_IS, &others[op], has_other};
    }
    TARN(tarn_graph_with_costs(graph, items, count, &result, &error));
    free(items);
    free(others);
    return result;
}

void set_costs(struct program *p)
{
    const uint32_t count = tarn_graph_ops_count(p->graph);
    uint64_t(*costs)[2] = zeros(count, sizeof *costs);
    struct tarn_graph *saved = NULL, *bare = p->graph;
    struct tarn_op_info info = {0};
    if (options.graph)
        TARN(tarn_graph_load(options.graph, NULL, &saved, &error));
    else
        measure(p, costs);
    for (tarn_op op = 0; op < count && tarn_graph_op(saved, op, &info); op++) {
        costs[op][0] = info.cost;
        if (info.implementations_count) costs[op][1] = info.implementations[0].cost;
    }
    ranks_send(costs, count * sizeof *costs);
    p->graph = with_costs(bare, costs);
    const struct tarn_hash a = tarn_graph_hash(saved), b = tarn_graph_hash(p->graph);
    if (saved && memcmp(&a, &b, sizeof a))
        fail(TARN_BAD_INPUT, "%s: not the graph of this training", options.graph);
    tarn_graph_destroy(saved);
    tarn_graph_destroy(bare);
    free(costs);
}

/* ---- Making the plan, on rank 0 ---- */

/* "70%" is of the bytes without which no plan of the graph can be. */
static uint64_t budget_of(const struct tarn_graph *graph)
{
    char *end;
    const double amount = strtod(options.budget, &end);
    uint64_t bound;
    if (amount <= 0 || strcmp(end, *end ? "%" : ""))
        fail(TARN_USAGE, "--budget: '%s' is neither bytes nor a percentage", options.budget);
    TARN(tarn_graph_bound(graph, &bound, &error));
    return (uint64_t)(*end ? (double)bound * amount / 100 : amount);
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
    struct tarn_offload_report moved = {0};
    struct tarn_offload_options offload =
        *TARN_OFFLOAD_OPTIONS(.out_bytes_per_second = (uint64_t)options.offload * 1000000,
                              .latency_ns = 1000, .bytes_min = 256, .report = &moved,
                              .report_size = sizeof moved);
    if (options.offload) o.offload = &offload;
    if (options.budget) budget.budget = budget_of(graph), o.budget = &budget;
    if (options.plan)
        TARN(tarn_plan_load(options.plan, graph, TARN_VERIFY, NULL, &plan, &error));
    else
        TARN(tarn_plan_create(graph, &o, &plan, &error));
    tarn_plan_summarize(plan, &s);
    printf("plan: arena %llu bytes, bound %llu%s, %u waits and %u on the step before\n",
           (unsigned long long)s.footprint, (unsigned long long)s.bound,
           s.optimal ? " (optimal)" : "", s.waits, s.boundary_waits);
    if (report.budget)
        printf("budget: %llu bytes; %u ops again, %u otherwise; modelled %.3f ms, before %.3f ms\n",
               (unsigned long long)report.budget, report.recomputed, report.implemented,
               (double)report.time_ns / 1e6, (double)report.time_before_ns / 1e6);
    if (options.offload)
        printf("offload: %llu moves out and %llu back, %llu bytes each way; modelled %.3f ms\n",
               (unsigned long long)moved.storages, (unsigned long long)moved.gaps,
               (unsigned long long)moved.bytes_in, (double)moved.time_ns / 1e6);
    return plan;
}

/* ---- Sending it ---- */

void agree_on_plan(struct program *p)
{
    enum { ROOM = 1 << 26 }; /* bytes: far more than a plan of this program has */
    struct tarn_plan *plan = rank == 0 ? make(p->graph) : NULL;
    struct tarn_plan_identity first = tarn_plan_identify(plan);
    size_t size = 0;
    char *text = zeros(ROOM, 1);
    const struct tarn_writer *writer = TARN_WRITER(.bytes = text, .room = ROOM, .size = &size);
    if (plan) TARN(tarn_plan_write(plan, writer, &error));
    ranks_send(&size, sizeof size);
    ranks_send(text, size);
    ranks_send(&first, sizeof first);
    if (fault("damage")) text[size / 2] ^= 1;
    if (fault("plan"))
        TARN(tarn_plan_create(p->graph, TARN_PLAN_OPTIONS(.alignment = 4096), &plan, &error));
    else if (rank > 0)
        TARN(tarn_plan_read(TARN_READER(.name = "rank 0's plan", .bytes = text, .size = size),
                            p->graph, TARN_VERIFY, NULL, &plan, &error));
    TARN(tarn_plan_expect(plan, &first, &error));
    free(text);
    p->plan = plan;
}
