/* Idea: planning takes time and may depend on it, verifying takes little and does not. So one rank
 * plans, its plan travels as the text of a plan file, and every rank proves what it got.
 * Cost: one plan, one broadcast, and a proof on each rank at the same time. */
#include "agree.h"

#include <stdlib.h>
#include <string.h>

#include "fail.h"

void agree_on_graph(const struct tarn_graph *graph)
{
    struct tarn_hash here = tarn_graph_hash(graph), first = here;
    ranks_send(&first, sizeof first);
    bool same = !memcmp(&here, &first, sizeof here);
    if (ranks_agree(same)) return;
    if (!same)
        fail(TARN_REJECTED,
             "its graph (%s) is not the one of rank 0 (%s): same options, data and program?",
             tarn_hash_format(here).text, tarn_hash_format(first).text);
    ranks_agree(true); /* the rank that differs has said so, and ends all */
}

/* ---- Making the plan ---- */

/* A budget of "70%" is of the footprint of the plan without one. */
static uint64_t budget_of(struct tarn_graph *graph, const struct options *o,
                          const struct tarn_plan_options *without)
{
    char *end;
    double amount = strtod(o->budget, &end);
    struct tarn_error error;
    if (end == o->budget || amount <= 0 || strcmp(end, *end == '%' ? "%" : ""))
        fail(TARN_USAGE, "--budget: '%s' is neither bytes nor a percentage", o->budget);
    if (*end != '%') return (uint64_t)amount;
    struct tarn_plan *plan;
    struct tarn_plan_summary summary;
    TARN(tarn_plan_create(graph, without, &plan, &error));
    tarn_plan_summarize(plan, &summary);
    tarn_plan_destroy(plan);
    return (uint64_t)((double)summary.footprint * amount / 100);
}

static struct tarn_plan *make(struct tarn_graph *graph, const struct options *o,
                              struct planned *planned)
{
    struct tarn_error error;
    struct tarn_plan *plan;
    if (o->plan) {
        TARN(tarn_plan_load(o->plan, graph, TARN_VERIFY, &plan, &error));
        return plan;
    }
    /* The macros' options live until the end of this block. */
    struct tarn_plan_options options = *TARN_PLAN_OPTIONS(
            .effort = 1000,
            .reorder = o->reorder ? TARN_REORDER_OPTIONS(.report = &planned->reorder) : NULL,
            .couple = o->couple
                          ? TARN_COUPLE_OPTIONS(.slowdown_max = .1, .report = &planned->couple)
                          : NULL,
            .in_place = o->in_place ? TARN_IN_PLACE_OPTIONS(.report = &planned->in_place) : NULL);
    uint64_t budget = o->budget ? budget_of(graph, o, &options) : 0;
    options.budget =
        budget ? TARN_BUDGET_OPTIONS(.budget = budget, .report = &planned->budget) : NULL;
    TARN(tarn_plan_create(graph, &options, &plan, &error));
    if (o->save_plan) TARN(tarn_plan_save(plan, o->save_plan, &error));
    return plan;
}

/* ---- Sending it ---- */

/* Rank 0's plan as text, on all ranks; the caller frees it. */
static char *send_text(const struct tarn_plan *plan, size_t *size)
{
    struct tarn_error error;
    char *text = NULL;
    if (plan) { /* the first call tells the size */
        tarn_plan_write(plan, TARN_WRITER(.bytes = "", .room = 0, .size = size), NULL);
        if (!(text = malloc(*size))) fail(TARN_SYSTEM, "no memory for the plan");
        TARN(tarn_plan_write(plan, TARN_WRITER(.bytes = text, .room = *size), &error));
    }
    ranks_send(size, sizeof *size);
    if (!plan && !(text = malloc(*size))) fail(TARN_SYSTEM, "no memory for the plan");
    ranks_send(text, *size);
    return text;
}

struct tarn_plan *agree_on_plan(struct tarn_graph *graph, const struct options *o,
                                struct planned *planned)
{
    struct tarn_error error;
    size_t size = 0;
    struct tarn_plan *plan = rank == 0 ? make(graph, o, planned) : NULL;
    char *text = send_text(plan, &size);
    struct tarn_plan_identity first = tarn_plan_identify(plan);
    ranks_send(&first, sizeof first);
    if (rank > 0) {
        const struct tarn_reader *reader =
            TARN_READER(.name = "the plan of rank 0", .bytes = text, .size = size);
        if (options_fault(o, "damage", NULL)) text[size / 2] ^= 1;
        if (options_fault(o, "plan", NULL))
            TARN(tarn_plan_create(graph, TARN_PLAN_OPTIONS(.alignment = 4096), &plan, &error));
        else
            TARN(tarn_plan_read(reader, graph, TARN_VERIFY, &plan, &error));
        TARN(tarn_plan_expect(plan, &first, &error));
    }
    free(text);
    ranks_agree(true); /* nobody goes on before all have proved it */
    return plan;
}
