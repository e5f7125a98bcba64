/* tarn transform: a graph in, the graph that the transforms make of it out, and what changed. */
#include "interrupt.h"
#include "transforms.h"
#include "verbs.h"

struct request {
    const char *paths[1];
    const char *output_path; /* NULL: only report */
    const char *costs_path;  /* NULL: no table of costs */
    struct tarn_implementations_options implementations;
    struct tarn_implementations_report implementations_report;
    struct tarn_load_options load;
    struct tarn_plan_options planning;
    struct tarn_transforms transforms;
    bool list, json;
};

struct result {
    struct tarn_graph *loaded;
    struct tarn_graph *before; /* the same, with the implementations that it gets */
    struct tarn_graph *after;
    struct tarn_change *changes;
    size_t changes_count;
    double ms;
};

/* ---- Printing ---- */

static const char *const words[] = {
    [TARN_MOVED] = "moved",
    [TARN_ASSIGNED] = "assigned",
    [TARN_ORDERED] = "ordered",
    [TARN_MERGED] = "merged",
};

static void print_change(struct tarn_printer *printer, const struct tarn_graph *graph,
                         const struct tarn_change *change)
{
    bool is_op = change->op != TARN_NONE;
    struct tarn_op_info op;
    struct tarn_tensor_info tensor;
    if (is_op)
        tarn_graph_op(graph, change->op, &op);
    else
        tarn_graph_tensor(graph, change->tensor, &tensor);
    tarn_printer_open_row(printer, words[change->kind]);
    if (printer->json) tarn_printer_text(printer, "kind", words[change->kind]);
    tarn_printer_id(printer, is_op ? "op" : "tensor", is_op ? change->op : change->tensor);
    tarn_printer_text(printer, "name", is_op ? op.name : tensor.name);
    tarn_printer_id(printer, "before", change->before);
    tarn_printer_id(printer, "after", change->after);
    tarn_printer_close(printer);
}

static void print_changes(struct tarn_printer *printer, const struct request *request,
                          const struct result *result)
{
    size_t count[sizeof words / sizeof *words] = {0};
    for (size_t i = 0; i < result->changes_count; i++) count[result->changes[i].kind]++;
    tarn_printer_open(printer, "changed", '{');
    for (size_t kind = 0; kind < TARN_COUNT(words); kind++)
        tarn_printer_count(printer, words[kind], count[kind]);
    tarn_printer_close(printer);
    if (!request->list) return;
    tarn_printer_open_list(printer, "changes");
    for (size_t i = 0; i < result->changes_count; i++)
        print_change(printer, result->after, &result->changes[i]);
    tarn_printer_close_list(printer);
}

static bool wants_implementations(const struct request *request)
{
    return request->costs_path || request->implementations.split_backward;
}

static void print_implementations(struct tarn_printer *printer,
                                  const struct tarn_implementations_report *report)
{
    tarn_printer_open(printer, "implementations", '{');
    tarn_printer_count(printer, "ops", report->ops);
    tarn_printer_count(printer, "added", report->implementations);
    tarn_printer_count(printer, "workspaces", report->workspaces);
    tarn_printer_count(printer, "measured", report->measured);
    tarn_printer_count(printer, "split", report->split);
    tarn_printer_count(printer, "unpaired", report->unpaired);
    tarn_printer_count(printer, "kept_tensors", report->tensors);
    tarn_printer_bytes(printer, "kept_bytes", report->bytes);
    tarn_printer_close(printer);
}

static void print_result(const struct request *request, const struct result *result)
{
    struct tarn_printer printer;
    tarn_printer_begin(&printer, tarn_is_dash(request->output_path) ? stderr : stdout,
                       request->json);
    tarn_printer_text(&printer, "name", tarn_graph_name(result->before));
    tarn_printer_count(&printer, "ops", tarn_graph_ops_count(result->after));
    if (wants_implementations(request))
        print_implementations(&printer, &request->implementations_report);
    tarn_transforms_print(&printer, &request->transforms);
    print_changes(&printer, request, result);
    tarn_printer_real(&printer, "ms", result->ms);
    tarn_printer_end(&printer);
}

/* ---- Making ---- */

static enum tarn_status implement(struct request *request, struct result *result,
                                  struct tarn_error *error)
{
    struct tarn_cost_table *costs = NULL;
    enum tarn_status status = TARN_OK;
    if (request->costs_path) status = tarn_cost_table_load(request->costs_path, &costs, error);
    request->implementations.struct_size = sizeof request->implementations;
    request->implementations.costs = costs;
    request->implementations.report = &request->implementations_report;
    if (status == TARN_OK)
        status = tarn_graph_implementations(result->loaded, &request->implementations,
                                            &result->before, error);
    tarn_cost_table_destroy(costs);
    return status;
}

static bool heartbeat(void *user, const struct tarn_plan_progress *progress)
{
    (void)progress; /* no plan is made */
    tarn_watch_tell(user);
    return false;
}

static void watch(struct request *request)
{
    tarn_transforms_watch(&request->transforms, request->paths[0]);
    request->planning.heartbeat = heartbeat;
    tarn_progress_begin();
    request->planning.user = &request->transforms.watch;
    request->planning.stop = tarn_interrupt_note();
}

static enum tarn_status make(struct request *request, struct result *result,
                             struct tarn_error *error)
{
    enum tarn_status status =
        tarn_graph_load(request->paths[0], &request->load, &result->loaded, error);
    if (status != TARN_OK) return status;
    double begin = tarn_now_ms();
    watch(request);
    status = implement(request, result, error);
    if (status != TARN_OK) return status;
    status = tarn_graph_transform(result->before, &request->planning, &result->after, error);
    if (status != TARN_OK) return status;
    result->ms = tarn_now_ms() - begin;
    return tarn_graph_changes(result->before, result->after, &result->changes,
                              &result->changes_count, error);
}

static enum tarn_status save(const struct request *request, const struct result *result,
                             struct tarn_error *error)
{
    if (!request->output_path) return TARN_OK;
    tarn_interrupt_hold();
    enum tarn_status status = tarn_graph_save(result->after, request->output_path, error);
    tarn_interrupt_release();
    return status;
}

static enum tarn_status carry_out(struct request *request)
{
    struct tarn_error error;
    struct result result = {0};
    enum tarn_status status = make(request, &result, &error);
    if (status == TARN_OK) status = save(request, &result, &error);
    if (status == TARN_OK)
        print_result(request, &result);
    else
        tarn_print_error(&error, status);
    tarn_free(result.changes);
    tarn_transforms_finish(&request->transforms);
    tarn_graph_destroy(result.loaded);
    tarn_graph_destroy(result.before);
    tarn_graph_destroy(result.after);
    return tarn_interrupt_tell(status, "graph");
}

/* The figures that both verbs print. */
#define FIGURES                                                                         \
    "Its ops name the ops that they come from; what data, control arcs and hazards\n"   \
    "ordered stays in order. 'tarn plan' has the same flags and keeps the new graph\n"  \
    "in the plan.\n\n"                                                                  \
    "  implementations\n"                                                               \
    "            other ways to carry out ops that were added to the graph itself, so\n" \
    "            that plans of the new one are not plans of the old one; workspaces:\n" \
    "            ops that got the one they were traced without; kept: outputs of\n"     \
    "            forward ops that backward ops may read instead of other tensors;\n"    \
    "            unpaired: backward ops whose forward op was not found\n"               \
    "  assign    modelled critical path before and after, and what it would be if\n"    \
    "            waits took no time; its limits: no assignment to as many streams\n"    \
    "            is faster than `limit`, for the longest chain, an even share of the\n" \
    "            work and where they meet; its costs: arcs between streams, event\n"    \
    "            waits, bytes alive at once in the worst case\n"                        \
    "  budget    bytes of arena before and after, and how much longer the modelled\n"   \
    "            critical path is; ops launched, of them again, and of them by\n"       \
    "            another implementation than as written\n"                              \
    "  reorder   the most bytes that are alive at once, before and after (of several\n" \
    "            streams: that no timing can do without); bound: no order has a\n"      \
    "            lower peak; gains: bytes, by the stages of the search; time: the\n"    \
    "            modelled critical path, which another order may make longer\n"         \
    "  couple    the most bytes alive at once in the worst case, and what the first\n"  \
    "            of the waits between streams that were added do to it\n"               \
    "  in place  outputs that are written over an input now\n"                          \
    "  changed   ops at another place in their stream, in another stream, with a new\n" \
    "            control arc; tensors that share another storage\n"

static const char about_transform[] =
    "Makes a new graph that computes the same: in less memory (--reorder, --couple,\n"
    "--in-place, --budget), in other streams (--assign, which may need more memory),\n"
    "with other ways to carry out ops (--implementations).\n" FIGURES;
static const char about_assign[] =
    "Makes a new graph that computes the same in other streams, for a shorter\n"
    "modelled time. More runs at once then, so it may need more memory: the costs\n"
    "say how much.\n" FIGURES;

static enum tarn_status transform(char **words_given, bool assign)
{
    struct request request = {.load.struct_size = sizeof request.load,
                              .planning.struct_size = sizeof request.planning,
                              .transforms = {.assign = assign, .reorder_slowdown = -1}};
    const struct tarn_option options[] = {
        {"output", 'o', TARN_OPTION_OUTPUT, &request.output_path, "GRAPH",
         "where to write the new graph;\nwithout it nothing is written", TARN_EVERYDAY},
        {"alignment", 0, TARN_OPTION_SIZE, &request.planning.alignment, "BYTES",
         "of the plan to come: sizes count as what they reserve in it (default 512)", TARN_SPECIAL},
        {"capacity", 0, TARN_OPTION_SIZE, &request.planning.capacity, "BYTES",
         "of the arena that the plan to come has to fit in", TARN_EVERYDAY},
        {"implementations", 0, TARN_OPTION_INPUT, &request.costs_path, "COSTS.csv",
         "give ops the implementations that the table has for their kinds, first of all",
         TARN_SPECIAL},
        {"split-backward", 0, TARN_OPTION_FLAG, &request.implementations.split_backward, NULL,
         "let a convolution's backward run as two: input gradient and weight gradient",
         TARN_SPECIAL},
        TARN_TRANSFORM_OPTIONS(request.transforms),
        {"changes", 0, TARN_OPTION_FLAG, &request.list, NULL, "list every change", TARN_EVERYDAY},
        TARN_LOAD_OPTION(request.load),
        TARN_JSON_OPTION(request.json),
    };
    const struct tarn_command command = {
        .verb = assign ? "assign" : "transform",
        .usage = "GRAPH [-o GRAPH]",
        .about = assign ? about_assign : about_transform,
        TARN_OPTIONS(options),
        .arguments_min = 1,
        .arguments_max = 1,
        .exits = (const enum tarn_status[]){TARN_DOES_NOT_FIT, TARN_BAD_INPUT, TARN_OK},
        .example =
            assign
                ? "  tarn assign examples/graphs/alexnet_b1_adam.ddp.json --streams 4 -o a.json\n"
                : "  tarn transform examples/graphs/alexnet_b1_adam.ddp.json --reorder -o a.json\n",
    };
    enum tarn_status status;
    if (!tarn_options_parse(&command, words_given, request.paths, &status)) return status;
    const char *wrong = tarn_transforms_ask(&request.transforms, &request.planning);
    if (wrong) return tarn_options_refuse(&command, "%s", wrong);
    return carry_out(&request);
}

enum tarn_status tarn_verb_transform(char **words_given) { return transform(words_given, false); }

enum tarn_status tarn_verb_assign(char **words_given) { return transform(words_given, true); }
