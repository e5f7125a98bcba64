/* tarn info: loads a graph, which checks every rule, and prints the facts that are known before
 * planning. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command/command.h"
#include "verbs.h"

static void print_summary(struct tarn_printer *printer, const struct tarn_graph *graph,
                          const struct tarn_graph_summary *summary, uint64_t bound)
{
    tarn_printer_text(printer, "name", tarn_graph_name(graph));
    tarn_printer_text(printer, "hash", tarn_hash_format(tarn_graph_hash(graph)).text);
    tarn_printer_count(printer, "streams", summary->streams);
    tarn_printer_count(printer, "ops", summary->ops);
    tarn_printer_count(printer, "views", summary->views);
    tarn_printer_count(printer, "tensors", summary->tensors);
    tarn_printer_count(printer, "storages", summary->storages);
    tarn_printer_count(printer, "workspaces", summary->workspaces);
    tarn_printer_count(printer, "groups", summary->groups);
    tarn_printer_bytes(printer, "persistent_bytes", summary->persistent);
    tarn_printer_bytes(printer, "sum_bytes", summary->sum);
    tarn_printer_bytes(printer, "serial_peak_bytes", summary->serial_peak);
    tarn_printer_bytes(printer, "bound_bytes", bound);
    tarn_printer_count(printer, "cost_ns", summary->cost);
    tarn_printer_open(printer, "events", '{');
    tarn_printer_count(printer, "arcs", summary->arcs);
    tarn_printer_count(printer, "kept", summary->arcs_kept);
    tarn_printer_close(printer);
}

/* Prints each memory space if there are several. */
static enum tarn_status print_spaces(struct tarn_printer *printer, const struct tarn_graph *graph,
                                     struct tarn_error *error)
{
    uint32_t count = tarn_graph_spaces_count(graph);
    enum tarn_status status = TARN_OK;
    if (count < 2) return TARN_OK;
    tarn_printer_open_list(printer, "spaces");
    for (tarn_space s = 0; s < count && status == TARN_OK; s++) {
        struct tarn_space_info info;
        struct tarn_graph_space_summary summary;
        status = tarn_graph_summarize_space(graph, s, &summary, error);
        tarn_graph_space(graph, s, &info);
        tarn_printer_open_row(printer, "space");
        tarn_printer_text(printer, "name", info.name);
        tarn_printer_text(printer, "kind", tarn_space_kind_text(info.kind));
        tarn_printer_bytes_or_null(printer, "capacity_bytes", info.capacity);
        tarn_printer_count(printer, "storages", summary.storages);
        tarn_printer_bytes(printer, "persistent_bytes", summary.persistent);
        tarn_printer_bytes(printer, "sum_bytes", summary.sum);
        tarn_printer_bytes(printer, "serial_peak_bytes", summary.serial_peak);
        tarn_printer_bytes(printer, "bound_bytes", summary.bound);
        tarn_printer_close(printer);
    }
    tarn_printer_close_list(printer);
    return status;
}

/* ---- Kinds that are not known ---- */

static int compare_kinds(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static size_t collect_unknown(const struct tarn_graph *graph, const char **kinds)
{
    size_t count = 0;
    for (tarn_op v = 0; v < tarn_graph_ops_count(graph); v++) {
        struct tarn_op_info info;
        tarn_graph_op(graph, v, &info);
        bool is_said = info.view || info.recomputable != TARN_RECOMPUTABLE_BY_RULE;
        if (!is_said && *info.kind && tarn_graph_op_class(graph, v) == TARN_CLASS_UNKNOWN)
            kinds[count++] = info.kind;
    }
    qsort(kinds, count, sizeof *kinds, compare_kinds);
    return count;
}

/* Each with its number of ops. */
static enum tarn_status print_unknown_kinds(struct tarn_printer *printer,
                                            const struct tarn_graph *graph,
                                            struct tarn_error *error)
{
    const char **kinds = calloc((size_t)tarn_graph_ops_count(graph) + 1, sizeof *kinds);
    if (!kinds) return tarn_no_memory(error);
    size_t count = collect_unknown(graph, kinds);
    if (count > 0) tarn_printer_open_list(printer, "unknown_kinds");
    for (size_t i = 0, end; i < count; i = end) {
        for (end = i; end < count && strcmp(kinds[i], kinds[end]) == 0;) end++;
        tarn_printer_open_row(printer, "unknown");
        tarn_printer_text(printer, "kind", kinds[i]);
        tarn_printer_count(printer, "ops", end - i);
        tarn_printer_close(printer);
    }
    if (count > 0) tarn_printer_close_list(printer);
    free(kinds);
    return TARN_OK;
}

static void print_model(struct tarn_printer *printer, const struct tarn_graph *graph,
                        const struct tarn_simulation *simulation)
{
    tarn_printer_open(printer, "model", '{');
    tarn_printer_count(printer, "critical_path_ns", simulation->makespan_ns);
    tarn_printer_count(printer, "serial_ns", simulation->serial_ns);
    tarn_printer_count(printer, "peak_bytes", simulation->peak);
    tarn_printer_count(printer, "worst_bytes", simulation->worst);
    tarn_printer_count(printer, "worst_bound_bytes", simulation->worst_bound);
    tarn_printer_close(printer);
    tarn_printer_open(printer, "busy", '[');
    for (uint32_t s = 0; s < simulation->streams_count; s++) {
        tarn_printer_open(printer, NULL, '{');
        tarn_printer_text(printer, "stream", tarn_graph_stream_name(graph, s));
        tarn_printer_count(printer, "ns", simulation->busy_ns[s]);
        tarn_printer_close(printer);
    }
    tarn_printer_close(printer);
}

static enum tarn_status inform(const char *path, const struct tarn_load_options *load,
                               uint64_t alignment, uint32_t wait_ns, bool json)
{
    struct tarn_error error;
    struct tarn_graph *graph;
    struct tarn_graph_summary summary;
    struct tarn_simulation *simulation = NULL;
    double begin = tarn_now_ms();
    enum tarn_status status = tarn_graph_load(path, load, &graph, &error);
    if (status != TARN_OK) return tarn_print_error(&error, status);
    double loaded = tarn_now_ms();
    uint64_t bound = 0;
    status = tarn_graph_summarize(graph, &summary, &error);
    if (status == TARN_OK) status = tarn_graph_bound(graph, &bound, &error);
    if (status == TARN_OK)
        status = tarn_graph_simulate(graph, alignment, wait_ns, &simulation, &error);
    if (status == TARN_OK) {
        struct tarn_printer printer;
        tarn_printer_begin(&printer, stdout, json);
        print_summary(&printer, graph, &summary, bound);
        status = print_spaces(&printer, graph, &error);
        if (status == TARN_OK) status = print_unknown_kinds(&printer, graph, &error);
        print_model(&printer, graph, simulation);
        tarn_printer_open(&printer, "ms", '{');
        tarn_printer_real(&printer, "load", loaded - begin);
        tarn_printer_real(&printer, "total", tarn_now_ms() - begin);
        tarn_printer_close(&printer);
        tarn_printer_end(&printer);
    }
    if (status != TARN_OK) tarn_print_error(&error, status);
    tarn_simulation_destroy(simulation);
    tarn_graph_destroy(graph);
    return status;
}

enum tarn_status tarn_verb_info(char **words)
{
    bool json = false;
    uint64_t alignment = 1;
    struct tarn_load_options load = {.struct_size = sizeof load};
    uint32_t wait_ns = TARN_WAIT_NS;
    const char *path;
    const struct tarn_option options[] = {
        {"alignment", 0, TARN_OPTION_SIZE, &alignment, "BYTES",
         "of the plan whose reserved bytes the model counts,\na power of two (default 1: exact "
         "sizes)",
         TARN_EVERYDAY},
        {"wait-ns", 0, TARN_OPTION_COUNT, &wait_ns, "NS",
         "what an event wait between two streams takes\nin the model (default 3000)",
         TARN_EVERYDAY},
        TARN_LOAD_OPTION(load),
        TARN_JSON_OPTION(json),
    };
    const struct tarn_command command = {
        .verb = "info",
        .usage = "GRAPH",
        .about =
            "Loads a graph (tarn.graph version 1, or a packing instance as CSV; plain or\n"
            "gzip), checks every rule of the format, and prints its counts and sums.\n\n"
            "  storages     planned ones, workspaces included\n"
            "  sum          bytes of all planned storages, each on its own\n"
            "  serial peak  most bytes alive in one step of list order\n"
            "  bound        bytes that every safe plan needs, at any alignment\n"
            "  space        of several memories, each; serial peak, bound and model above\n"
            "               and below are the first one's\n"
            "  unknown      kinds of ops that Tarn does not know and takes for pure: a budget\n"
            "               may run them again, unless --known-only is given; the op's field\n"
            "               class says what it is\n"
            "  events       arcs between streams, and the event waits kept of them\n"
            "  model        of the streams at work, by the ops' costs and with those waits:\n"
            "               critical path, sum of all costs, most bytes reserved in this\n"
            "               timing and in any legal one (the truth is from worst to worst\n"
            "               bound)\n"
            "  busy         what each stream spends inside ops, of that critical path\n",
        TARN_OPTIONS(options),
        .arguments_min = 1,
        .arguments_max = 1,
        .exits = (const enum tarn_status[]){TARN_BAD_INPUT, TARN_OK},
        .example = "  tarn info examples/graphs/figure7.json\n",
    };
    enum tarn_status status;
    if (!tarn_options_parse(&command, words, &path, &status)) return status;
    return inform(path, &load, alignment, wait_ns, json);
}
