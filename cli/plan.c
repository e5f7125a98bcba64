/* tarn plan: a graph in, a verified plan out, and the figures of both. */
#include "plan.h"
#include "command/command.h"
#include "family.h"
#include "interrupt.h"
#include "keep.h"
#include "transforms.h"
#include "verbs.h"

#define EFFORT_UNSAID UINT64_MAX

struct request {
    const char *graph_path;
    const char *plan_path; /* NULL: only report */
    struct tarn_load_options load;
    struct tarn_plan_options planning;
    struct tarn_transforms transforms;
    uint64_t effort, nanoseconds; /* of search */
    uint32_t curve_points;        /* of budgets; 0: no curve */
    uint32_t orders_points;       /* of orders; 0: no curve */
    uint64_t shown_footprint;     /* by the last line of progress; 0: none */
    struct tarn_batch batch;      /* list NULL: one graph */
    struct tarn_keep keep;
    bool family, ranks; /* what the batch is */
    bool json;
};

struct result {
    struct tarn_graph *graph;
    struct tarn_plan *plan;
    double load_ms, total_ms;
};

static void print_times(struct tarn_printer *printer, const struct result *result,
                        const struct tarn_plan_summary *made)
{
    tarn_printer_open(printer, "ms", '{');
    tarn_printer_real(printer, "load", result->load_ms);
    tarn_printer_real(printer, "transform", made->transform_ms);
    tarn_printer_real(printer, "order", made->order_ms);
    tarn_printer_real(printer, "place", made->place_ms);
    tarn_printer_real(printer, "verify", made->verify_ms);
    tarn_printer_real(printer, "total", result->total_ms);
    tarn_printer_close(printer);
}

/* NULL: nothing did, the plan is at its bound. */
static const char *stop_text(const struct tarn_plan_summary *made)
{
    switch (made->stopped) {
    case TARN_STOP_NONE: break;
    case TARN_STOP_REQUEST: return "request";
    case TARN_STOP_DEADLINE: return "deadline";
    case TARN_STOP_WORK: return "work";
    }
    switch (made->ended) {
    case TARN_END_UNKNOWN:
    case TARN_END_BOUND:
    case TARN_END_STOPPED: break;
    case TARN_END_METHOD: return "method";
    case TARN_END_CAPACITY: return "capacity";
    case TARN_END_EFFORT: return "effort";
    }
    return NULL;
}

static void print_result(FILE *file, const struct request *request, const struct result *result,
                         const struct tarn_graph_summary *given,
                         const struct tarn_graph_summary *planned)
{
    struct tarn_plan_summary made;
    struct tarn_printer printer;
    tarn_plan_summarize(result->plan, &made);
    tarn_printer_begin(&printer, file, request->json);
    tarn_printer_text(&printer, "name", tarn_graph_name(result->graph));
    tarn_printer_count(&printer, "streams", given->streams);
    tarn_printer_count(&printer, "ops", given->ops);
    tarn_printer_count(&printer, "tensors", given->tensors);
    tarn_printer_count(&printer, "storages", given->storages);
    tarn_printer_count(&printer, "groups", given->groups);
    tarn_printer_bytes(&printer, "persistent_bytes", given->persistent);
    tarn_printer_bytes(&printer, "sum_bytes", given->sum);
    tarn_printer_bytes(&printer, "serial_peak_bytes", given->serial_peak);
    tarn_transforms_print(&printer, &request->transforms);
    tarn_printer_bytes(&printer, "footprint_bytes", made.footprint);
    tarn_printer_bytes(&printer, "bound_bytes", made.bound);
    tarn_printer_real(&printer, "gap_percent", tarn_gap_percent(made.footprint, made.bound));
    tarn_printer_boolean(&printer, "optimal", made.optimal);
    tarn_spaces_print(&printer, result->plan);
    tarn_keep_print(&printer, &request->keep, result->plan);
    tarn_printer_text(&printer, "method", made.method);
    tarn_printer_text(&printer, "stopped_by", stop_text(&made));
    tarn_printer_count(&printer, "alignment", made.alignment);
    if (made.pad_groups != TARN_GROUPS_AS_GIVEN)
        tarn_printer_text(&printer, "pad_groups",
                          made.pad_groups == TARN_GROUPS_PADDED ? "padded" : "exact");
    tarn_printer_open(&printer, "events", '{');
    tarn_printer_count(&printer, "arcs", planned->arcs);
    tarn_printer_count(&printer, "kept", made.waits);
    tarn_printer_count(&printer, "boundary", made.boundary_waits);
    tarn_printer_close(&printer);
    print_times(&printer, result, &made);
    tarn_printer_end(&printer);
}

/* ---- Making ---- */

static void print_progress(void *user, const struct tarn_plan_progress *progress)
{
    struct request *request = user;
    if (progress->footprint <= progress->bound && progress->steps == 0) return; /* no search */
    char text[128];
    bool is_news = progress->footprint != request->shown_footprint;
    request->shown_footprint = progress->footprint;
    snprintf(text, sizeof text, "step %llu: footprint %llu, bound %llu, gap %.4f %%",
             (unsigned long long)progress->steps, (unsigned long long)progress->footprint,
             (unsigned long long)progress->bound,
             tarn_gap_percent(progress->footprint, progress->bound));
    tarn_progress_tell(request->graph_path, text, is_news);
}

/* The terminal's line goes on while nothing improves. */
static bool print_heartbeat(void *user, const struct tarn_plan_progress *progress)
{
    const struct request *request = user;
    if (progress->footprint == 0)
        tarn_watch_tell(&request->transforms.watch);
    else if (tarn_progress_is_late())
        print_progress(user, progress);
    return false;
}

static void fill_search(struct request *request)
{
    struct tarn_plan_options *planning = &request->planning;
    planning->effort = request->effort > 0 ? request->effort : TARN_NO_EFFORT;
    planning->seconds = (double)request->nanoseconds * 1e-9;
    if (request->effort == EFFORT_UNSAID) planning->effort = 0;
    planning->progress = print_progress;
    planning->heartbeat = print_heartbeat;
    tarn_progress_begin();
    tarn_transforms_watch(&request->transforms, request->graph_path);
    planning->user = request;
    planning->stop = tarn_interrupt_note();
}

static enum tarn_status make(struct request *request, struct result *result,
                             struct tarn_error *error)
{
    double begin = tarn_now_ms();
    enum tarn_status status =
        tarn_graph_load(request->graph_path, &request->load, &result->graph, error);
    if (status != TARN_OK) return status;
    if (request->keep.plan_path)
        status = tarn_keep_load(&request->keep, &request->load, result->graph, error);
    if (status != TARN_OK) return status;
    request->planning.keep = (struct tarn_places){request->keep.list, request->keep.count};
    result->load_ms = tarn_now_ms() - begin;
    status = tarn_plan_create(result->graph, &request->planning, &result->plan, error);
    result->total_ms = tarn_now_ms() - begin;
    return status;
}

static enum tarn_status save(const struct request *request, const struct result *result,
                             struct tarn_error *error)
{
    if (!request->plan_path) return TARN_OK;
    tarn_interrupt_hold();
    enum tarn_status status = tarn_plan_save(result->plan, request->plan_path, error);
    tarn_interrupt_release();
    return status;
}

static enum tarn_status carry_out(struct request *request)
{
    struct tarn_error error;
    struct tarn_graph_summary given, planned;
    struct result result = {0};
    bool plan_on_stdout = tarn_is_dash(request->plan_path);
    enum tarn_status status = make(request, &result, &error);
    if (status == TARN_OK) status = tarn_graph_summarize(result.graph, &given, &error);
    if (status == TARN_OK)
        status = tarn_graph_summarize(tarn_plan_graph(result.plan), &planned, &error);
    if (status == TARN_OK) status = save(request, &result, &error);
    if (status == TARN_OK)
        print_result(plan_on_stdout ? stderr : stdout, request, &result, &given, &planned);
    else
        tarn_print_error(&error, status);
    tarn_transforms_finish(&request->transforms);
    tarn_keep_finish(&request->keep);
    tarn_plan_destroy(result.plan);
    tarn_graph_destroy(result.graph);
    return tarn_interrupt_tell(status, "plan");
}

static bool heartbeat_of_curve(void *user, const struct tarn_transform_progress *last)
{
    (void)last; /* it is noted */
    tarn_watch_tell(user);
    return false;
}

static enum tarn_status draw_curve(struct request *request)
{
    struct tarn_transform_control control = request->transforms.control;
    struct tarn_budget_options budget = request->transforms.budget_options;
    control.stop = request->planning.stop;
    control.seconds = request->planning.seconds;
    control.heartbeat = request->planning.heartbeat ? heartbeat_of_curve : NULL;
    budget.alignment = request->planning.alignment;
    budget.control = &control;
    request->planning.progress = NULL; /* of many plans */
    request->planning.heartbeat = NULL;
    return tarn_curve(&(struct tarn_curve_request){
        .graph_path = request->graph_path,
        .load = &request->load,
        .budget = &budget,
        .planning = request->orders_points > 0 ? &request->planning : NULL,
        .points = request->curve_points + request->orders_points,
        .output_path = request->plan_path,
        .json = request->json});
}

/* A curve is made of the unchanged graph; options that it would ignore are refused. */
static const char *check_curve(const struct request *request)
{
    const struct tarn_plan_options *planning = &request->planning;
    if (request->curve_points > 0 && request->orders_points > 0)
        return "--budget-curve and --reorder-curve are two curves: ask for one at a time";
    if (request->orders_points == 1)
        return "--reorder-curve takes 2 points at least, the graph as given and the least";
    if (planning->offload || planning->assign || planning->reorder || planning->couple ||
        planning->in_place || request->transforms.pad_groups != TARN_GROUPS_AS_GIVEN)
        return "a curve is of the graph as it is: make another one of it by 'tarn transform' first";
    if (request->transforms.budget.bytes > 0 || request->transforms.budget.share > 0 ||
        planning->capacity > 0)
        return "a curve is over all budgets or orders: it takes no budget and no capacity";
    if (request->curve_points > 0 &&
        (planning->method || request->effort != EFFORT_UNSAID || planning->seed > 0))
        return "--budget-curve plans nothing: it takes no method, effort or seed";
    return NULL;
}

/* A list of graphs instead of one. */
static enum tarn_status plan_batch(struct request *request, const struct tarn_command *command)
{
    struct tarn_batch *batch = &request->batch;
    batch->folder = request->plan_path;
    batch->load = &request->load;
    batch->planning = &request->planning;
    batch->allowed = &request->transforms.kinds.allowed;
    batch->report = &request->transforms.couple_report;
    batch->json = request->json;
    request->planning.progress = NULL; /* a line for each graph is enough */
    request->planning.heartbeat = NULL;
    if (!batch->list)
        return tarn_options_refuse(command,
                                   batch->share ? "--share needs --batch" : "a graph is missing");
    const char *wrong = tarn_batch_check(batch);
    if (request->graph_path || request->curve_points > 0 || request->orders_points > 0)
        wrong = "--batch takes its graphs from the list, and draws no curves";
    bool together = request->family || request->ranks;
    if (together && batch->share)
        wrong = "--family and --ranks plan all graphs of the list together: they take no --share";
    if (request->family && request->ranks) wrong = "--family and --ranks are two ways: ask for one";
    if (wrong) return tarn_options_refuse(command, "%s", wrong);
    if (!together) return tarn_batch_run(batch);
    return tarn_family_run(&(struct tarn_family_request){.list = batch->list,
                                                         .folder = batch->folder,
                                                         .load = batch->load,
                                                         .planning = batch->planning,
                                                         .of_ranks = request->ranks,
                                                         .json = batch->json});
}

/* What the words of the command line ask for. */
static enum tarn_status plan_as_asked(struct request *request, const struct tarn_command *command)
{
    const bool is_curve = request->curve_points + request->orders_points > 0;
    const char *wrong = tarn_transforms_ask(&request->transforms, &request->planning);
    if (!wrong && is_curve) wrong = check_curve(request);
    if (wrong) return tarn_options_refuse(command, "%s", wrong);
    if (request->curve_points > TARN_CURVE_POINTS_MAX ||
        request->orders_points > TARN_CURVE_POINTS_MAX)
        return tarn_options_refuse(command, "a curve takes up to %d points", TARN_CURVE_POINTS_MAX);
    if ((request->family || request->ranks) && !request->batch.list)
        return tarn_options_refuse(command, "--family and --ranks need --batch");
    if (request->keep.graph_path && !request->keep.plan_path)
        return tarn_options_refuse(command, "--keep-graph needs --keep");
    if (request->keep.plan_path && (request->batch.list || is_curve))
        return tarn_options_refuse(command, "--keep is for the plan of one graph");
    if (request->batch.list || request->batch.share || !request->graph_path)
        return plan_batch(request, command);
    return is_curve ? draw_curve(request) : carry_out(request);
}

static const char about[] =
    "Decides where every storage of a graph lives in one arena, so that no legal\n"
    "interleaving of the streams can corrupt anything. An independent verifier\n"
    "proves that before anything is written (tarn.plan version 1).\n\n"
    "  footprint    bytes of arena that the plan needs\n"
    "  sum          bytes of all planned storages, each on its own\n"
    "  serial peak  most bytes alive in one step of list order\n"
    "  bound        bytes that no safe plan of the graph can be below, with a proof\n"
    "               in the plan file; gap: how far the footprint is above it, optimal\n"
    "               when that is nothing\n"
    "  stopped by   what ended the search although the plan is not at the bound:\n"
    "               effort (its steps were done: a higher --effort may find less),\n"
    "               work (the limit without --seconds, raised by --effort),\n"
    "               deadline, request (Ctrl-C), capacity (the plan is within\n"
    "               --budget: nothing smaller was looked for; or within\n"
    "               --capacity, by exact search or --seconds), or\n"
    "               method (it came to its end: only another one can find less).\n"
    "               Only with --seconds does a plan depend on the clock; without\n"
    "               it, deadline means that the machine stood still for an hour\n"
    "  events       of the graph that is planned, which transforms have made: arcs\n"
    "               between streams, the waits kept of them inside an iteration,\n"
    "               and the waits on the iteration before. What stands before the\n"
    "               transforms' figures is of the graph that was given\n"
    "A search prints a line for every better plan. Ctrl-C or SIGTERM ends it: the\n"
    "best plan so far is written, exit code 130; of --budget-curve the budgets done\n"
    "so far.\n"
    "With '-o -' the plan goes to standard output and these figures to standard\n"
    "error.\n"
    "--batch plans all graphs of a list, one plan for each distinct graph, as\n"
    "FOLDER/HASH.plan.json; what is there already is proved, and kept if it was\n"
    "asked for the same, else planned again. Several processes share the work by\n"
    "--share, and the folder. With --family or --ranks they are planned together,\n"
    "always anew.\n";

enum tarn_status tarn_verb_plan(char **words)
{
    struct request request = {.load.struct_size = sizeof request.load,
                              .planning.struct_size = sizeof request.planning,
                              .transforms.reorder_slowdown = -1,
                              .effort = EFFORT_UNSAID};
    const struct tarn_option options[] = {
        {"output", 'o', TARN_OPTION_OUTPUT, &request.plan_path, "PLAN",
         "where to write the plan;\nwithout it nothing is written; a name that ends in .csv asks "
         "for the answer to a packing instance (see 'tarn convert')",
         TARN_EVERYDAY},
        TARN_PLANNING_OPTIONS(request.planning),
        {"keep", 0, TARN_OPTION_INPUT, &request.keep.plan_path, "PLAN",
         "keep the offsets of this earlier plan, as far as the footprint that is found without it "
         "allows, or --capacity; tells how many storages moved",
         TARN_SPECIAL},
        {"keep-graph", 0, TARN_OPTION_INPUT, &request.keep.graph_path, "GRAPH",
         "the graph that the plan to keep was made for: storages are the same if their names are "
         "(default: if their ids are)",
         TARN_SPECIAL},
        TARN_TRANSFORM_OPTIONS(request.transforms),
        {"node-limit", 0, TARN_OPTION_TIMES, &request.planning.node_limit, "N",
         "nodes of a part at most (default 60), for the method roam-tree", TARN_SPECIAL},
        {"budget-curve", 0, TARN_OPTION_TIMES, &request.curve_points, "POINTS",
         "plan nothing, tell what this number of budgets costs, down to the least; -o writes CSV, "
         "or a picture to a name that ends in .svg",
         TARN_SPECIAL},
        {"reorder-curve", 0, TARN_OPTION_TIMES, &request.orders_points, "POINTS",
         "write no plan, tell what this number of orders costs, from the one given to the least; "
         "-o writes CSV, or a picture to a name that ends in .svg",
         TARN_SPECIAL},
        {"batch", 0, TARN_OPTION_INPUT, &request.batch.list, "LIST",
         "plan the graphs whose paths are the lines of this file; -o is the folder for the plans",
         TARN_SPECIAL},
        {"family", 0, TARN_OPTION_FLAG, &request.family, NULL,
         "of a batch: plan its graphs together, for one arena: one layout of what is persistent, "
         "symmetric groups of one name at one offset",
         TARN_SPECIAL},
        {"ranks", 0, TARN_OPTION_FLAG, &request.ranks, NULL,
         "of a batch: plan its graphs together, each for a rank with an arena of its own: "
         "symmetric "
         "groups of one name at one offset in all of them",
         TARN_SPECIAL},
        {"share", 0, TARN_OPTION_TEXT, &request.batch.share, "I/N",
         "of a batch: only those graphs that fall to the I-th (from 0) of N processes",
         TARN_SPECIAL},
        {"effort", 0, TARN_OPTION_NUMBER, &request.effort, "STEPS",
         "steps of search when nothing simpler meets the bound (default 1000; 0: none)",
         TARN_SPECIAL},
        {"seconds", 0, TARN_OPTION_SECONDS, &request.nanoseconds, "SECONDS",
         "search as long as that;\nit replaces --effort, and the plan is not reproducible",
         TARN_EVERYDAY},
        {"seed", 0, TARN_OPTION_NUMBER, &request.planning.seed, "N", "of the search (default 0)",
         TARN_SPECIAL},
        TARN_LOAD_OPTION(request.load),
        TARN_JSON_OPTION(request.json),
    };
    const struct tarn_command command = {
        .verb = "plan",
        .usage = "GRAPH [-o PLAN]",
        .about = about,
        TARN_OPTIONS(options),
        .arguments_min = 0,
        .arguments_max = 1,
        .exits = (const enum tarn_status[]){TARN_DOES_NOT_FIT, TARN_BAD_INPUT, TARN_DEADLINE,
                                            TARN_REJECTED, TARN_OK},
        .example = "  tarn plan examples/graphs/figure7.json --alignment 1 -o figure7.plan\n",
    };
    enum tarn_status status;
    if (!tarn_options_parse(&command, words, &request.graph_path, &status)) return status;
    fill_search(&request);
    return plan_as_asked(&request, &command);
}
