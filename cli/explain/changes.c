/* Finds the gain of single changes, each tried by planning the source graph again. The price is the
 * growth of the modelled critical path, and the event waits. Cost: a plan for each change. */
#include <stdlib.h>

#include "explain.h"

#define SMALL_ALIGNMENT 64u
#define TRIES_MAX 8u
#define WAITS_SHOWN_MAX 8u
#define DEFAULT_EFFORT 1000u /* by name: no clock ends the search, and answers are reproducible */

struct attempt {
    char words[64]; /* the arguments for `tarn plan` */
    struct tarn_plan_options options;
    enum tarn_status status;
    uint64_t footprint, critical_path_ns;
    uint32_t waits;
    tarn_op (*added)[2]; /* of --couple: the ops that wait, and for which */
    size_t added_count;
};

struct attempts {
    struct attempt attempts[TRIES_MAX];
    size_t count;
    struct tarn_reorder_options reorder;
    struct tarn_in_place_options in_place;
    struct tarn_couple_options couple;
    struct tarn_budget_options budget;
};

static struct tarn_plan_options *add(struct attempts *attempts, const char *words)
{
    struct attempt *attempt = &attempts->attempts[attempts->count++];
    snprintf(attempt->words, sizeof attempt->words, "%s", words);
    attempt->options.struct_size = sizeof attempt->options;
    return &attempt->options;
}

static void propose(struct attempts *attempts, const struct tarn_model *model)
{
    char words[64];
    uint64_t budget = model->summary.footprint - model->summary.footprint / 10;
    attempts->reorder.struct_size = sizeof attempts->reorder;
    attempts->in_place.struct_size = sizeof attempts->in_place;
    attempts->couple.struct_size = sizeof attempts->couple;
    attempts->budget =
        (struct tarn_budget_options){.struct_size = sizeof attempts->budget, .budget = budget};
    add(attempts, "nothing else");
    add(attempts, "--reorder")->reorder = &attempts->reorder;
    add(attempts, "--in-place")->in_place = &attempts->in_place;
    if (model->streams_count > 1) add(attempts, "--couple")->couple = &attempts->couple;
    if (tarn_graph_groups_count(model->graph) > 0)
        add(attempts, "--pad-groups auto")->pad_groups = TARN_GROUPS_SMALLER;
    if (model->summary.alignment > SMALL_ALIGNMENT)
        add(attempts, "--alignment 64")->alignment = SMALL_ALIGNMENT;
    snprintf(words, sizeof words, "--budget %llu", (unsigned long long)budget);
    add(attempts, words)->budget = &attempts->budget;
}

static uint64_t critical_path(const struct tarn_graph *graph, uint64_t alignment)
{
    struct tarn_simulation *simulation;
    if (tarn_graph_simulate(graph, alignment, TARN_WAIT_NS, &simulation, NULL) != TARN_OK) return 0;
    uint64_t ns = simulation->makespan_ns;
    tarn_simulation_destroy(simulation);
    return ns;
}

/* The waits that the plan's graph has and the source has not, by the source's ops. */
static enum tarn_status find_added(struct attempt *attempt, const struct tarn_graph *source,
                                   const struct tarn_plan *plan)
{
    struct tarn_change *changes;
    size_t count;
    enum tarn_status status =
        tarn_graph_changes(source, tarn_plan_graph(plan), &changes, &count, NULL);
    if (status != TARN_OK) return status;
    attempt->added = calloc(count + 1, sizeof *attempt->added);
    for (size_t i = 0; attempt->added && i < count; i++) {
        if (changes[i].kind != TARN_ORDERED) continue;
        tarn_op *pair = attempt->added[attempt->added_count++];
        pair[0] = tarn_plan_op_origin(plan, changes[i].op);
        pair[1] = tarn_plan_op_origin(plan, changes[i].after);
    }
    tarn_free(changes);
    return attempt->added ? TARN_OK : TARN_SYSTEM;
}

static void carry_out(struct attempt *attempt, const struct tarn_model *model,
                      struct tarn_graph *source, const bool *stop)
{
    struct tarn_plan *plan;
    struct tarn_plan_summary made;
    if (attempt->options.alignment == 0) attempt->options.alignment = model->summary.alignment;
    attempt->options.stop = stop;
    attempt->options.effort = DEFAULT_EFFORT;
    attempt->status = tarn_plan_create(source, &attempt->options, &plan, NULL);
    if (attempt->status != TARN_OK) return;
    tarn_plan_summarize(plan, &made);
    attempt->footprint = made.footprint;
    attempt->waits = made.waits + made.boundary_waits;
    attempt->critical_path_ns = critical_path(tarn_plan_graph(plan), made.alignment);
    if (attempt->options.couple) attempt->status = find_added(attempt, source, plan);
    tarn_plan_destroy(plan);
}

/* The smallest footprint first, changes that could not be planned last. */
static int compare_attempts(const void *left, const void *right)
{
    const struct attempt *a = left, *b = right;
    if ((a->status == TARN_OK) != (b->status == TARN_OK)) return a->status == TARN_OK ? -1 : 1;
    if (a->footprint != b->footprint) return a->footprint < b->footprint ? -1 : 1;
    if (a->critical_path_ns != b->critical_path_ns)
        return a->critical_path_ns < b->critical_path_ns ? -1 : 1;
    return 0;
}

/* In JSON a member of the row, for people one row for each after it. */
static void print_added(struct tarn_printer *printer, const struct attempt *attempt,
                        const struct tarn_graph *source)
{
    tarn_printer_open_list(printer, "added_waits");
    for (size_t i = 0; i < attempt->added_count; i++) {
        if (!printer->json && i == WAITS_SHOWN_MAX) {
            tarn_printer_count(printer, "more_waits", attempt->added_count - i);
            break;
        }
        tarn_printer_open_row(printer, "with_wait");
        tarn_explain_print_op(printer, source, attempt->added[i][0]);
        if (!printer->json) tarn_printer_link(printer, " waits for ");
        if (printer->json) tarn_printer_open(printer, "waits_for", '{');
        tarn_explain_print_op(printer, source, attempt->added[i][1]);
        if (printer->json) tarn_printer_close(printer);
        tarn_printer_close(printer);
    }
    tarn_printer_close_list(printer);
}

static void print_attempt(struct tarn_printer *printer, const struct attempt *attempt,
                          const struct tarn_model *model, const struct tarn_graph *source,
                          uint64_t time)
{
    tarn_printer_open_row(printer, "planned_with");
    tarn_printer_text(printer, "options", attempt->words);
    if (attempt->status == TARN_OK) {
        tarn_printer_bytes(printer, "footprint_bytes", attempt->footprint);
        tarn_printer_real(printer, "footprint_percent",
                          tarn_gap_percent(attempt->footprint, model->summary.footprint));
        tarn_printer_real(printer, "critical_path_percent",
                          tarn_gap_percent(attempt->critical_path_ns, time));
        tarn_printer_count(printer, "waits", attempt->waits);
    } else {
        tarn_printer_text(printer, "failed", tarn_status_text(attempt->status));
    }
    if (printer->json && attempt->added) print_added(printer, attempt, source);
    tarn_printer_close(printer);
    if (!printer->json) print_added(printer, attempt, source);
}

static void release(struct attempts *attempts)
{
    for (size_t i = 0; i < attempts->count; i++) free(attempts->attempts[i].added);
    free(attempts);
}

enum tarn_status tarn_explain_changes(struct tarn_printer *printer, const struct tarn_model *model,
                                      struct tarn_graph *source, const bool *stop)
{
    struct attempts *attempts = calloc(1, sizeof *attempts);
    enum tarn_status status = attempts ? TARN_OK : TARN_SYSTEM;
    if (!attempts) return status;
    uint64_t time = critical_path(model->graph, model->summary.alignment);
    propose(attempts, model);
    for (size_t i = 0; i < attempts->count && !*stop; i++) {
        carry_out(&attempts->attempts[i], model, source, stop);
        if (attempts->attempts[i].status == TARN_SYSTEM) status = TARN_SYSTEM;
    }
    if (*stop) {
        release(attempts);
        return TARN_INTERRUPTED;
    }
    qsort(attempts->attempts, attempts->count, sizeof *attempts->attempts, compare_attempts);
    tarn_printer_open_list(printer, "planned_with");
    for (size_t i = 0; i < attempts->count; i++)
        print_attempt(printer, &attempts->attempts[i], model, source, time);
    tarn_printer_close_list(printer);
    release(attempts);
    return status;
}
