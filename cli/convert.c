/* tarn convert: a graph from one kind of file to another, or a plan to the answer that other
 * packers write. */
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "command/command.h"
#include "interrupt.h"
#include "kinds.h"
#include "verbs.h"

struct request {
    const char *paths[2]; /* in, out */
    const char *plan_path;
    struct tarn_load_options load;
    struct tarn_kinds kinds;
    bool json;
};

/* NULL, or why a file of that name is not written. */
static const char *refuse_ending(const char *path, bool is_answer)
{
    size_t length = strlen(path);
    struct stat file;
    bool is_pipe_or_device = stat(path, &file) == 0 && !S_ISREG(file.st_mode);
    if (tarn_is_dash(path) || is_pipe_or_device) return NULL;
    if (length > 3 && strcasecmp(path + length - 3, ".gz") == 0) length -= 3;
    if (length > 4 && strncasecmp(path + length - 4, ".csv", 4) == 0) return NULL;
    if (is_answer) return "the answer in a plan goes to a name that ends in .csv or .csv.gz";
    if (length > 5 && strncasecmp(path + length - 5, ".json", 5) == 0) return NULL;
    return "OUT ends in .csv (a packing instance) or .json (a graph), or either and .gz";
}

static enum tarn_status save(const struct request *request, const struct tarn_graph *graph,
                             const struct tarn_plan *plan, struct tarn_error *error)
{
    tarn_interrupt_hold();
    enum tarn_status status = plan ? tarn_plan_save_intervals(plan, request->paths[1], error)
                                   : tarn_graph_save(graph, request->paths[1], error);
    tarn_interrupt_release();
    return status;
}

static void print_result(FILE *file, bool json, const struct tarn_graph *graph,
                         const struct tarn_graph_summary *given, const struct tarn_plan *plan)
{
    struct tarn_printer printer;
    struct tarn_plan_summary made;
    tarn_printer_begin(&printer, file, json);
    tarn_printer_text(&printer, "name", tarn_graph_name(graph));
    tarn_printer_count(&printer, "ops", given->ops);
    tarn_printer_count(&printer, "tensors", given->tensors);
    tarn_printer_count(&printer, "storages", given->storages);
    tarn_printer_bytes(&printer, "persistent_bytes", given->persistent);
    tarn_printer_bytes(&printer, "sum_bytes", given->sum);
    tarn_printer_bytes(&printer, "serial_peak_bytes", given->serial_peak);
    if (plan) {
        tarn_plan_summarize(plan, &made);
        tarn_printer_bytes(&printer, "footprint_bytes", made.footprint);
    }
    tarn_printer_end(&printer);
}

static enum tarn_status convert(const struct request *request)
{
    struct tarn_error error;
    struct tarn_graph_summary given;
    struct tarn_graph *graph = NULL;
    struct tarn_plan *plan = NULL;
    bool on_stdout = tarn_is_dash(request->paths[1]);
    enum tarn_status status = tarn_graph_load(request->paths[0], &request->load, &graph, &error);
    if (status == TARN_OK) status = tarn_graph_summarize(graph, &given, &error);
    if (status == TARN_OK && request->plan_path)
        status = tarn_plan_load(request->plan_path, graph, TARN_VERIFY, &request->kinds.allowed,
                                &plan, &error);
    if (status == TARN_OK) status = save(request, graph, plan, &error);
    if (status == TARN_OK)
        print_result(on_stdout ? stderr : stdout, request->json, graph, &given, plan);
    else
        tarn_print_error(&error, status);
    tarn_plan_destroy(plan);
    tarn_graph_destroy(graph);
    return status;
}

enum tarn_status tarn_verb_convert(char **words)
{
    struct request request = {.load.struct_size = sizeof request.load};
    const struct tarn_option options[] = {
        {"plan", 0, TARN_OPTION_INPUT, &request.plan_path, "PLAN",
         "a plan of IN;\nOUT becomes a packing instance with the offsets that it found",
         TARN_EVERYDAY},
        TARN_ALLOW_OPTION(request.kinds),
        TARN_LOAD_OPTION(request.load),
        TARN_JSON_OPTION(request.json),
    };
    const struct tarn_command command = {
        .verb = "convert",
        .usage = "IN OUT",
        .about = "Writes a graph as another kind of file. Names that end in .csv are packing\n"
                 "instances (id,lower,upper,size: one buffer a line, alive in the steps\n"
                 "[lower, upper)), those in .json graphs (tarn.graph version 1); .gz behind\n"
                 "either compresses.\n\n"
                 "An instance holds the planned storages of a graph of one stream without\n"
                 "workspaces and groups; persistent tensors are left out.\n",
        TARN_OPTIONS(options),
        .arguments_min = 2,
        .arguments_max = 2,
        .arguments_written = 1,
        .exits = (const enum tarn_status[]){TARN_BAD_INPUT, TARN_REJECTED, TARN_OK},
        .example = "  tarn plan examples/graphs/twelve.csv --alignment 1 -o twelve.plan\n"
                   "  tarn convert examples/graphs/twelve.csv answer.csv --plan twelve.plan\n",
    };
    enum tarn_status status;
    if (!tarn_options_parse(&command, words, request.paths, &status)) return status;
    const char *wrong = refuse_ending(request.paths[1], request.plan_path);
    if (wrong) return tarn_options_refuse(&command, "'%s': %s", request.paths[1], wrong);
    wrong = tarn_kinds_split(&request.kinds);
    if (wrong) return tarn_options_refuse(&command, "%s", wrong);
    return convert(&request);
}
