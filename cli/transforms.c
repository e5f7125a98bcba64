/* Turns flags into transforms. The library's option and report structs lie beside the flags, so one
 * object carries a request to the library and its reports back. */
#include "transforms.h"

#include <string.h>

static void ask_budget(struct tarn_transforms *transforms, struct tarn_plan_options *options)
{
    struct tarn_budget_options *budget = &transforms->budget_options;
    budget->struct_size = sizeof *budget;
    budget->budget = transforms->budget.bytes;
    budget->share = transforms->budget.share;
    if (budget->budget == 0 && budget->share <= 0 && budget->method == TARN_BUDGET_SEARCH) return;
    budget->report = &transforms->budget_report;
    options->budget = budget;
}

/* False: a word is no kind. */
static bool split_kinds(const char *text, unsigned *kinds)
{
    static const char *const words[] = {"activations", "states", "parameters"};
    for (size_t length; text; text = text[length] ? text + length + 1 : NULL) {
        unsigned i = 0;
        length = strcspn(text, ",");
        while (i < 3 && (strlen(words[i]) != length || strncmp(words[i], text, length) != 0)) i++;
        if (i == 3) return false;
        *kinds |= 1U << i;
    }
    return true;
}

static const char *ask_offload(struct tarn_transforms *transforms,
                               struct tarn_plan_options *options)
{
    struct tarn_offload_options *offload = &transforms->offload_options;
    const char *streams = transforms->offload_streams;
    const char *comma = streams ? strchr(streams, ',') : NULL;
    if (transforms->offload.out == 0) {
        bool is_part = offload->latency_ns > 0 || offload->margin > 0 || offload->bytes_min > 0 ||
                       offload->space > 0 || offload->capacity > 0 || streams ||
                       transforms->offload_kinds;
        if (transforms->budget_options.method == TARN_BUDGET_OFFLOAD)
            return "--budget-method offload needs --offload RATE";
        return is_part ? "what begins with --offload- needs --offload RATE" : NULL;
    }
    if (streams && (!comma || (size_t)(comma - streams) >= sizeof transforms->offload_out_stream))
        return "--offload-streams takes two names with a comma between them";
    if (!split_kinds(transforms->offload_kinds, &offload->kinds))
        return "--offload-kinds takes activations, states and parameters, with commas between them";
    offload->struct_size = sizeof *offload;
    offload->out_bytes_per_second = transforms->offload.out;
    offload->into_bytes_per_second = transforms->offload.into;
    offload->report = &transforms->offload_report;
    offload->report_size = sizeof transforms->offload_report;
    if (streams) {
        memcpy(transforms->offload_out_stream, streams, (size_t)(comma - streams));
        offload->out_stream = transforms->offload_out_stream;
        offload->into_stream = comma + 1;
    }
    options->offload = offload;
    return NULL;
}

const char *tarn_transforms_ask(struct tarn_transforms *transforms,
                                struct tarn_plan_options *options)
{
    struct tarn_reorder_options *reorder = &transforms->reorder_options;
    const char *wrong = tarn_kinds_split(&transforms->kinds);
    if (wrong) return wrong;
    ask_budget(transforms, options);
    wrong = ask_offload(transforms, options);
    if (wrong) return wrong;
    options->pad_groups = transforms->pad_groups;
    const struct tarn_assign_options *assign = &transforms->assign_options;
    if (transforms->assign || assign->streams > 0 || assign->mode != TARN_ASSIGN_SCHEDULE) {
        transforms->assign_options.struct_size = sizeof transforms->assign_options;
        transforms->assign_options.wait_ns = transforms->wait_ns;
        transforms->assign_options.report = &transforms->assign_report;
        options->assign = &transforms->assign_options;
    }
    if (transforms->reorder_slowdown >= 0 && reorder->keep_time && transforms->reorder_slowdown > 0)
        return "--reorder-keep-time allows no longer time, --reorder-slowdown does; give one";
    reorder->keep_time = reorder->keep_time || transforms->reorder_slowdown == 0;
    reorder->slowdown_max = transforms->reorder_slowdown > 0 ? transforms->reorder_slowdown : 0;
    if (transforms->reorder || reorder->keep_time || reorder->slowdown_max > 0) {
        reorder->struct_size = sizeof *reorder;
        reorder->report = &transforms->reorder_report;
        options->reorder = reorder;
    }
    const struct tarn_couple_options *couple = &transforms->couple_options;
    if (transforms->couple || couple->keep > 0 || couple->slowdown_max > 0) {
        transforms->couple_options.struct_size = sizeof transforms->couple_options;
        transforms->couple_options.wait_ns = transforms->wait_ns;
        transforms->couple_options.report = &transforms->couple_report;
        options->couple = &transforms->couple_options;
    }
    if (transforms->in_place || transforms->kinds.count > 0) {
        transforms->in_place_options = (struct tarn_in_place_options){
            .struct_size = sizeof transforms->in_place_options,
            .kinds = transforms->kinds.words,
            .kinds_count = transforms->kinds.count,
            .report = &transforms->in_place_report,
        };
        options->in_place = &transforms->in_place_options;
    }
    return NULL;
}

/* ---- Progress ---- */

static void note_step(void *user, const struct tarn_transform_progress *progress)
{
    struct tarn_watch *watch = user;
    watch->step = progress->step;
    watch->bytes = progress->bytes;
    watch->transform = progress->transform;
}

void tarn_transforms_watch(struct tarn_transforms *transforms, const char *graph_path)
{
    struct tarn_transform_control *control = &transforms->control;
    transforms->watch.graph_path = graph_path;
    *control = (struct tarn_transform_control){
        .struct_size = sizeof *control, .progress = note_step, .user = &transforms->watch};
    transforms->budget_options.control = control;
    transforms->reorder_options.control = control;
    transforms->couple_options.control = control;
}

void tarn_watch_tell(const struct tarn_watch *watch)
{
    char text[128];
    const char *transform = watch->transform;
    if (!tarn_progress_is_late()) return;
    snprintf(text, sizeof text, transform ? "%s, step %llu: %llu byte%s" : "no plan yet", transform,
             (unsigned long long)watch->step, (unsigned long long)watch->bytes,
             watch->bytes == 1 ? "" : "s");
    tarn_progress_tell(watch->graph_path, text, false);
}

/* ---- Reports ---- */

/* The time on the critical path: before the transform, and after. */
static void print_paths(struct tarn_printer *printer, uint64_t before_ns, uint64_t after_ns)
{
    tarn_printer_count(printer, "critical_path_before_ns", before_ns);
    tarn_printer_count(printer, "critical_path_ns", after_ns);
}

static void print_assign(struct tarn_printer *printer, const struct tarn_assign_report *report)
{
    tarn_printer_open(printer, "assign", '{');
    tarn_printer_count(printer, "streams", report->streams);
    print_paths(printer, report->before_ns, report->after_ns);
    tarn_printer_count(printer, "without_waits_ns", report->after_no_wait_ns);
    tarn_printer_close(printer);
    tarn_printer_open(printer, "assign_limits", '{');
    tarn_printer_count(printer, "limit_ns", report->limit_ns);
    tarn_printer_count(printer, "chain_ns", report->chain_ns);
    tarn_printer_count(printer, "work_ns", report->work_ns);
    tarn_printer_count(printer, "serial_ns", report->serial_ns);
    tarn_printer_close(printer);
    tarn_printer_open(printer, "assign_costs", '{');
    tarn_printer_count(printer, "arcs", report->arcs);
    tarn_printer_count(printer, "waits", report->waits);
    tarn_printer_bytes(printer, "bound_before_bytes", report->bound_before);
    tarn_printer_bytes(printer, "bound_bytes", report->bound_after);
    tarn_printer_close(printer);
}

static void print_budget(struct tarn_printer *printer, const struct tarn_budget_report *report)
{
    tarn_printer_open(printer, "budget", '{');
    if (report->budget != UINT64_MAX) tarn_printer_bytes(printer, "bytes", report->budget);
    tarn_printer_bytes(printer, "footprint_before_bytes", report->footprint_before);
    tarn_printer_bytes(printer, "footprint_bytes", report->footprint);
    tarn_printer_real(printer, "overhead_percent",
                      tarn_gap_percent(report->time_ns, report->time_before_ns));
    tarn_printer_close(printer);
    tarn_printer_open(printer, "budget_time", '{');
    print_paths(printer, report->time_before_ns, report->time_ns);
    tarn_printer_count(printer, "recomputed_ns", report->recomputed_ns);
    tarn_printer_close(printer);
    tarn_printer_open(printer, "budget_ops", '{');
    tarn_printer_count(printer, "launched", report->executions);
    tarn_printer_count(printer, "recomputed", report->recomputed);
    tarn_printer_count(printer, "other_implementation", report->implemented);
    tarn_printer_count(printer, "evaluations", report->evaluations);
    tarn_printer_close(printer);
}

/* Absent: not computed, or nothing keeps to the budget in this way. */
static void print_bound(struct tarn_printer *printer, const char *key, uint64_t ns)
{
    if (ns > 0 && ns < UINT64_MAX) tarn_printer_count(printer, key, ns);
}

static void print_offload(struct tarn_printer *printer, const struct tarn_offload_report *report)
{
    tarn_printer_open(printer, "offload", '{');
    tarn_printer_count(printer, "gaps", report->gaps);
    tarn_printer_count(printer, "storages", report->storages);
    tarn_printer_bytes(printer, "out_bytes", report->bytes_out);
    tarn_printer_bytes(printer, "in_bytes", report->bytes_in);
    tarn_printer_bytes(printer, "host_bytes", report->host_bytes);
    tarn_printer_close(printer);
    tarn_printer_open(printer, "offload_time", '{');
    print_paths(printer, report->time_before_ns, report->time_ns);
    tarn_printer_real(printer, "overhead_percent",
                      tarn_gap_percent(report->time_ns, report->time_before_ns));
    tarn_printer_count(printer, "waiting_ns", report->waiting_ns);
    tarn_printer_count(printer, "slower_copies_ns", report->slower_ns);
    if (report->iteration_ns > 0) tarn_printer_count(printer, "iteration_ns", report->iteration_ns);
    tarn_printer_count(printer, "out_ns", report->out_ns);
    tarn_printer_count(printer, "in_ns", report->into_ns);
    print_bound(printer, "moves_no_less_than_ns", report->no_less_than_ns);
    print_bound(printer, "no_less_than_ns", report->no_way_less_than_ns);
    tarn_printer_close(printer);
}

static void print_reorder(struct tarn_printer *printer, const struct tarn_reorder_report *report)
{
    tarn_printer_open(printer, "reorder", '{');
    tarn_printer_bytes(printer, "peak_before_bytes", report->peak_before);
    tarn_printer_bytes(printer, "peak_bytes", report->peak_after);
    tarn_printer_bytes(printer, "bound_bytes", report->bound);
    tarn_printer_real(printer, "gap_percent", tarn_gap_percent(report->peak_after, report->bound));
    tarn_printer_count(printer, "rounds", report->rounds);
    tarn_printer_close(printer);
    tarn_printer_open(printer, "reorder_gains", '{');
    for (int stage = 0; stage < TARN_REORDER_STAGES; stage++) {
        tarn_printer_count(printer, tarn_reorder_stage_text((enum tarn_reorder_stage)stage),
                           report->gains[stage].bytes);
    }
    tarn_printer_close(printer);
    if (report->critical_path_before_ns == 0) return;
    tarn_printer_open(printer, "reorder_time", '{');
    print_paths(printer, report->critical_path_before_ns, report->critical_path_ns);
    tarn_printer_real(printer, "critical_path_percent",
                      tarn_gap_percent(report->critical_path_ns, report->critical_path_before_ns));
    tarn_printer_close(printer);
}

/* Prints the gain of each further wait: for people a line for every row. */
static void print_couple(struct tarn_printer *printer, const struct tarn_couple_report *report)
{
    tarn_printer_open(printer, "couple", '{');
    tarn_printer_bytes(printer, "serial_peak_bytes", report->serial_peak);
    tarn_printer_bytes(printer, "target_bytes", report->target);
    tarn_printer_bytes(printer, "bound_bytes", report->bound);
    tarn_printer_count(printer, "arcs", report->arcs);
    tarn_printer_close(printer);
    tarn_printer_open_list(printer, "couple_rows");
    for (size_t i = 0; i < report->rows_count; i++) {
        const struct tarn_couple_row *row = &report->rows[i];
        tarn_printer_open_row(printer, "  with");
        tarn_printer_count(printer, "arcs", row->arcs);
        tarn_printer_count(printer, "waits", row->waits);
        tarn_printer_bytes(printer, "bound_bytes", row->bound);
        tarn_printer_count(printer, "critical_path_ns", row->critical_path_ns);
        tarn_printer_close(printer);
    }
    tarn_printer_close_list(printer);
}

void tarn_transforms_print(struct tarn_printer *printer, const struct tarn_transforms *transforms)
{
    if (transforms->assign_options.report) print_assign(printer, &transforms->assign_report);
    if (transforms->budget_options.report) print_budget(printer, &transforms->budget_report);
    if (transforms->offload_options.report) print_offload(printer, &transforms->offload_report);
    if (transforms->reorder_options.report) print_reorder(printer, &transforms->reorder_report);
    if (transforms->couple_options.report) print_couple(printer, &transforms->couple_report);
    if (transforms->in_place_options.report) {
        tarn_printer_open(printer, "in_place", '{');
        tarn_printer_count(printer, "merged", transforms->in_place_report.merged);
        tarn_printer_bytes(printer, "bytes", transforms->in_place_report.bytes);
        tarn_printer_close(printer);
    }
}

void tarn_transforms_finish(struct tarn_transforms *transforms)
{
    tarn_couple_report_finish(&transforms->couple_report);
}
