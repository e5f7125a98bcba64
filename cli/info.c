/* tarn info: loads a graph, which checks every rule, and prints what there is to know before
 * planning. */
#include "print.h"
#include "verbs.h"

static void print_summary(struct tarn_sheet *sheet, const struct tarn_graph *graph,
                          const struct tarn_graph_summary *summary, uint64_t bound)
{
    tarn_sheet_text(sheet, "name", tarn_graph_name(graph));
    tarn_sheet_count(sheet, "streams", summary->streams);
    tarn_sheet_count(sheet, "ops", summary->ops);
    tarn_sheet_count(sheet, "views", summary->views);
    tarn_sheet_count(sheet, "tensors", summary->tensors);
    tarn_sheet_count(sheet, "storages", summary->storages);
    tarn_sheet_count(sheet, "workspaces", summary->workspaces);
    tarn_sheet_count(sheet, "groups", summary->groups);
    tarn_sheet_bytes(sheet, "persistent_bytes", summary->persistent);
    tarn_sheet_bytes(sheet, "sum_bytes", summary->sum);
    tarn_sheet_bytes(sheet, "serial_peak_bytes", summary->serial_peak);
    tarn_sheet_bytes(sheet, "bound_bytes", bound);
    tarn_sheet_count(sheet, "cost_ns", summary->cost);
    tarn_sheet_open(sheet, "events", '{');
    tarn_sheet_count(sheet, "arcs", summary->arcs);
    tarn_sheet_count(sheet, "kept", summary->arcs_kept);
    tarn_sheet_close(sheet, '}');
}

static enum tarn_status inform(const char *path, bool json)
{
    struct tarn_error error;
    struct tarn_graph *graph;
    struct tarn_graph_summary summary;
    double begin = tarn_now_ms();
    enum tarn_status status = tarn_graph_load(path, &graph, &error);
    if (status != TARN_OK) return tarn_print_error(&error, status);
    double loaded = tarn_now_ms();
    uint64_t bound = 0;
    status = tarn_graph_summarize(graph, &summary, &error);
    if (status == TARN_OK) status = tarn_graph_bound(graph, &bound, &error);
    if (status == TARN_OK) {
        struct tarn_sheet sheet;
        tarn_sheet_begin(&sheet, stdout, json);
        print_summary(&sheet, graph, &summary, bound);
        tarn_sheet_open(&sheet, "ms", '{');
        tarn_sheet_real(&sheet, "load", loaded - begin);
        tarn_sheet_real(&sheet, "total", tarn_now_ms() - begin);
        tarn_sheet_close(&sheet, '}');
        tarn_sheet_end(&sheet);
    } else {
        tarn_print_error(&error, status);
    }
    tarn_graph_destroy(graph);
    return status;
}

enum tarn_status tarn_verb_info(char **words)
{
    bool json = false;
    const char *path;
    const struct tarn_option options[] = {TARN_JSON_OPTION(json)};
    const struct tarn_command command = {
        .verb = "info",
        .usage = "GRAPH [--json]",
        .about = "Loads a graph (tarn.graph version 1, or a packing instance as CSV; plain or\n"
                 "gzip), checks every rule of the format, and prints its counts and sums.\n\n"
                 "  storages     planned ones, workspaces included\n"
                 "  sum          bytes of all planned storages, each on its own\n"
                 "  serial peak  most bytes alive in one step of list order\n"
                 "  bound        bytes that every safe plan needs, at any alignment\n"
                 "  events       arcs between streams, and the event waits kept of them\n",
        .options = options,
        .options_count = TARN_COUNT(options),
        .arguments_min = 1,
        .arguments_max = 1,
        .exits = (const enum tarn_status[]){TARN_BAD_INPUT, TARN_OK},
        .example = "  tarn info examples/graphs/figure7.json\n",
    };
    enum tarn_status status;
    if (!tarn_options_parse(&command, words, &path, &status)) return status;
    return inform(path, json);
}
