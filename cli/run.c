/* tarn run: a plan at work on a device, checked byte by byte or measured with kernels that do
 * nothing but take time. */
#include <stdlib.h>
#include <string.h>

#include "command/command.h"
#include "device.h"
#include "interrupt.h"
#include "kinds.h"
#include "verbs.h"

#define MEASURED_ITERATIONS 100u           /* unless an option says otherwise */
#define FLIGHT_COMMANDS 64u                /* per stream */
#define TRACE_COMMANDS (UINT32_C(1) << 17) /* per stream, at most */

struct request {
    const char *paths[2]; /* graph, and plan or NULL */
    struct tarn_load_options load;
    struct tarn_plan_options planning;
    struct tarn_host_options host;
    struct tarn_session_options session;
    struct tarn_check_options check;
    const char *device; /* NULL: the host */
    const char *bind;   /* a word of `bindings`, or NULL */
    const char *flight; /* file for the flight recorder's dump, or NULL */
    const char *trace;  /* file for the trace, or NULL */
    bool checked, unverified, json;
    const char *kernel, *order;
    uint64_t deadline_ns; /* 0: no deadline */
    uint64_t spin_ns;     /* of --kernel spin:NS */
    struct tarn_kinds kinds;
};

struct result {
    struct tarn_graph *graph;
    struct tarn_plan *plan;
    struct tarn_cli_device device;
    struct tarn_session *session;
    struct tarn_step *order; /* given, or NULL */
    struct tarn_check_report report;
    double load_ms, plan_ms, create_ms, run_ms;
};

/* ---- Steps ---- */

static enum tarn_status load(const struct request *request, struct result *result,
                             struct tarn_error *error)
{
    double begin = tarn_now_ms();
    enum tarn_status status =
        tarn_graph_load(request->paths[0], &request->load, &result->graph, error);
    if (status != TARN_OK) return status;
    double loaded = tarn_now_ms();
    result->load_ms = loaded - begin;
    if (request->paths[1]) {
        enum tarn_plan_trust trust = request->unverified ? TARN_TRUST : TARN_VERIFY;
        status = tarn_plan_load(request->paths[1], result->graph, trust, &request->kinds.allowed,
                                &result->plan, error);
    } else {
        status = tarn_plan_create(result->graph, &request->planning, &result->plan, error);
    }
    result->plan_ms = tarn_now_ms() - loaded;
    return status;
}

/* The recorder is as large as the last iterations that a picture can show. */
static void record(const struct request *request, const struct result *result,
                   struct tarn_session_options *options)
{
    if (request->flight) options->flight = FLIGHT_COMMANDS;
    if (!request->trace) return;
    uint64_t iterations = (uint64_t)request->check.iterations + 1; /* one to warm up */
    uint64_t commands = tarn_graph_ops_count(result->graph) * iterations;
    options->flight = commands < TRACE_COMMANDS ? (uint32_t)commands : TRACE_COMMANDS;
    options->stamps = true;
}

static enum tarn_status open_session(const struct request *request, struct result *result,
                                     struct tarn_error *error)
{
    double begin = tarn_now_ms();
    struct tarn_session_options options = request->session;
    options.patience_ns = request->deadline_ns;
    record(request, result, &options);
    enum tarn_status status =
        tarn_cli_device_open(&result->device, request->device, &request->host, error);
    if (status == TARN_OK)
        status = tarn_session_create(result->plan, result->device.device, &options,
                                     &result->session, error);
    result->create_ms = tarn_now_ms() - begin;
    return status;
}

static enum tarn_status load_order(const struct request *request, struct result *result,
                                   struct tarn_check_options *check, struct tarn_error *error)
{
    if (!request->order || check->random_order) return TARN_OK;
    enum tarn_status status =
        tarn_order_load(request->order, &result->order, &check->order_count, error);
    check->order = result->order;
    return status;
}

static enum tarn_status run_checked(const struct request *request, struct result *result,
                                    struct tarn_error *error)
{
    struct tarn_check_options check = request->check;
    check.struct_size = sizeof check;
    check.timeout_ns = request->deadline_ns;
    enum tarn_status status = load_order(request, result, &check, error);
    if (status != TARN_OK) return status;
    double begin = tarn_now_ms();
    status = tarn_session_check(result->session, &check, &result->report, error);
    result->run_ms = tarn_now_ms() - begin;
    return status;
}

static enum tarn_status submit_and_wait(const struct request *request, struct result *result,
                                        uint64_t iterations, struct tarn_error *error)
{
    tarn_ticket ticket;
    uint64_t timeout = request->deadline_ns ? request->deadline_ns : TARN_FOREVER;
    enum tarn_status status = tarn_session_submit(result->session, iterations, &ticket, error);
    if (status != TARN_OK) return status;
    return tarn_session_wait(result->session, ticket, timeout, error);
}

/* A few iterations first, so that threads are awake, pages are there and blocks are captured. */
static enum tarn_status run_measured(const struct request *request, struct result *result,
                                     struct tarn_error *error)
{
    result->device.spin_ns = request->spin_ns;
    tarn_session_bind_default(result->session, tarn_cli_device_kernel, &result->device);
    uint64_t first = request->session.unroll > 0 ? request->session.unroll : 1;
    enum tarn_status status = submit_and_wait(request, result, first, error);
    if (status != TARN_OK) return status;
    double begin = tarn_now_ms();
    status = submit_and_wait(request, result, request->check.iterations, error);
    result->run_ms = tarn_now_ms() - begin;
    return status;
}

/* ---- Reporting ---- */

static uint64_t launched_ops(const struct tarn_graph *graph)
{
    uint64_t launched = 0;
    struct tarn_op_info info;
    for (tarn_op v = 0; tarn_graph_op(graph, v, &info); v++) launched += !info.view;
    return launched;
}

static void print_checked(struct tarn_printer *printer, const struct result *result)
{
    const struct tarn_check_report *report = &result->report;
    double bytes = (double)report->bytes_read + (double)report->bytes_written;
    tarn_printer_text(printer, "verdict", "every byte was right");
    tarn_printer_count(printer, "ops_run", report->ops_run);
    tarn_printer_bytes(printer, "read_bytes", report->bytes_read);
    tarn_printer_bytes(printer, "written_bytes", report->bytes_written);
    tarn_printer_hash(printer, "digest", report->digest);
    tarn_printer_real(printer, "gb_per_s", bytes / 1e6 / result->run_ms);
}

static void print_measured(struct tarn_printer *printer, const struct request *request,
                           const struct result *result)
{
    uint64_t launches = launched_ops(result->graph) * request->check.iterations;
    tarn_printer_count(printer, "ops_run", launches);
    tarn_printer_real(printer, "ns_per_op", result->run_ms * 1e6 / (double)launches);
}

static bool writes_to_stdout(const struct request *request)
{
    return tarn_is_dash(request->trace) || tarn_is_dash(request->flight);
}

static void print_result(const struct request *request, const struct result *result)
{
    struct tarn_plan_summary plan;
    struct tarn_printer printer;
    tarn_plan_summarize(result->plan, &plan);
    tarn_printer_begin(&printer, writes_to_stdout(request) ? stderr : stdout, request->json);
    tarn_printer_text(&printer, "name", tarn_graph_name(result->graph));
    tarn_printer_text(&printer, "device", request->device ? request->device : "host");
    if (request->session.capture)
        tarn_printer_count(&printer, "captured_iterations",
                           request->session.unroll > 0 ? request->session.unroll : 1);
    tarn_printer_text(&printer, "kernel", request->kernel ? request->kernel : "check");
    tarn_printer_text(&printer, "order", request->order ? request->order : "streams");
    tarn_printer_count(&printer, "streams", tarn_graph_streams_count(result->graph));
    if (!result->order) tarn_printer_count(&printer, "iterations", request->check.iterations);
    tarn_printer_text(&printer, "method", plan.method);
    tarn_printer_bytes(&printer, "footprint_bytes", plan.footprint);
    tarn_printer_bytes(&printer, "persistent_bytes", plan.persistent);
    if (request->kernel)
        print_measured(&printer, request, result);
    else
        print_checked(&printer, result);
    tarn_printer_open(&printer, "ms", '{');
    tarn_printer_real(&printer, "load", result->load_ms);
    tarn_printer_real(&printer, "plan", result->plan_ms);
    tarn_printer_real(&printer, "create", result->create_ms);
    tarn_printer_real(&printer, "run", result->run_ms);
    tarn_printer_close(&printer);
    tarn_printer_end(&printer);
}

/* Ops that still run after a deadline use the result and the request, so then only the process can
 * end.
 */
static void close_session(struct result *result, enum tarn_status status)
{
    enum tarn_status ended = tarn_session_destroy(result->session);
    if (ended != TARN_OK) {
        fflush(NULL);
        _Exit(status != TARN_OK ? (int)status : (int)ended);
    }
    tarn_cli_device_close(&result->device);
}

/* Saves a picture of a run that has succeeded, and the last commands of any run that has begun. */
static enum tarn_status save(const struct request *request, const struct result *result,
                             enum tarn_status ended, struct tarn_error *error)
{
    const char *why = ended != TARN_OK ? error->text : NULL;
    struct tarn_error unsaved;
    enum tarn_status status = TARN_OK;
    tarn_interrupt_hold();
    if (result->session && request->flight)
        status = tarn_session_save_dump(result->session, why, request->flight, &unsaved);
    if (ended == TARN_OK && status == TARN_OK && request->trace)
        status = tarn_session_save_trace(result->session, request->trace, &unsaved);
    tarn_interrupt_release();
    if (status == TARN_OK) return ended;
    if (ended != TARN_OK) return tarn_print_error(&unsaved, ended);
    *error = unsaved;
    return status;
}

static enum tarn_status carry_out(const struct request *request)
{
    struct tarn_error error;
    struct result result = {0};
    enum tarn_status status = load(request, &result, &error);
    if (status == TARN_OK) status = open_session(request, &result, &error);
    if (status == TARN_OK) {
        status = request->kernel ? run_measured(request, &result, &error)
                                 : run_checked(request, &result, &error);
    }
    status = save(request, &result, status, &error);
    if (status == TARN_OK) print_result(request, &result);
    if (status != TARN_OK) tarn_print_error(&error, status);
    close_session(&result, status);
    tarn_free(result.order);
    tarn_plan_destroy(result.plan);
    tarn_graph_destroy(result.graph);
    return status;
}

/* ---- The command line ---- */

static bool parse_kernel(struct request *request)
{
    if (!request->kernel || strcmp(request->kernel, "empty") == 0) return true;
    return strncmp(request->kernel, "spin:", 5) == 0 &&
           tarn_number_parse(request->kernel + 5, &request->spin_ns);
}

static bool parse_binding(struct request *request)
{
    static const char *const bindings[] = {[TARN_BIND_AUTO] = "auto",
                                           [TARN_BIND_NONE] = "none",
                                           [TARN_BIND_NODE] = "node",
                                           [TARN_BIND_CACHE] = "cache",
                                           [TARN_BIND_CORE] = "core"};
    bool is_known = !request->bind;
    for (size_t i = 0; i < sizeof bindings / sizeof *bindings && !is_known; i++) {
        is_known = strcmp(request->bind, bindings[i]) == 0;
        if (is_known) request->host.binding = (enum tarn_worker_binding)i;
    }
    return is_known;
}

/* "seed:N" draws an order; anything else is a file. */
static bool parse_order(struct request *request)
{
    struct tarn_check_options *check = &request->check;
    check->random_order = request->order && strncmp(request->order, "seed:", 5) == 0;
    return !check->random_order || tarn_number_parse(request->order + 5, &check->seed);
}

/* Checks that the options are consistent with each other. */
static enum tarn_status settle(const struct tarn_command *command, struct request *request)
{
    const struct tarn_plan_options *planning = &request->planning;
    bool plans = planning->alignment || planning->capacity || planning->method ||
                 planning->threads || planning->boundary;
    if (!parse_kernel(request))
        return tarn_options_refuse(command, "--kernel is empty or spin:NS, not '%s'",
                                   request->kernel);
    if (request->kernel && (request->checked || request->order || request->check.delay_ns))
        return tarn_options_refuse(command,
                                   "--kernel measures, --check, --order and --delay check");
    bool is_cuda;
    uint32_t ordinal;
    if (!tarn_cli_device_parse(request->device, &is_cuda, &ordinal))
        return tarn_options_refuse(command, "--device is host, cuda or cuda:N, not '%s'",
                                   request->device);
    if (!parse_binding(request))
        return tarn_options_refuse(command, "--bind is auto, none, node, cache or core, not '%s'",
                                   request->bind);
    if (request->bind && is_cuda)
        return tarn_options_refuse(command, "--bind is for workers: --device host");
    if (request->session.unroll > 0) request->session.capture = true;
    if (request->session.capture && !is_cuda)
        return tarn_options_refuse(command, "--capture and --unroll are for --device cuda");
    if (plans && request->paths[1])
        return tarn_options_refuse(command, "planning options and a plan exclude each other");
    const char *wrong = tarn_kinds_split(&request->kinds);
    if (wrong) return tarn_options_refuse(command, "%s", wrong);
    if (request->kinds.count > 0 && !request->paths[1])
        return tarn_options_refuse(command, "--in-place-kinds needs a plan to allow them to");
    if (request->unverified && !request->paths[1])
        return tarn_options_refuse(command, "--no-verify needs a plan to trust");
    if (!parse_order(request))
        return tarn_options_refuse(command, "--order is a file or seed:N, not '%s'",
                                   request->order);
    if (request->order && !request->check.random_order && request->check.iterations)
        return tarn_options_refuse(command, "an order in a file says itself how many iterations");
    if (request->check.iterations == 0)
        request->check.iterations = request->kernel ? MEASURED_ITERATIONS : 1;
    return TARN_OK;
}

static const char about[] =
    "Runs a graph on this machine's cores or on a CUDA device, over one arena. With a\n"
    "PLAN it is verified first; without one the graph is planned.\n\n"
    "Checked (the default): every kernel compares each byte that it reads with what\n"
    "the graph says must be there, and writes bytes that only its version explains.\n"
    "A wrong byte ends the run with exit code 7; the message names its ops.\n"
    "'digest' is the same for every correct run of a graph.\n\n"
    "Measured (--kernel): kernels do nothing, or spin; prints wall time and ns an op.\n";

static const char example[] =
    "  tarn run examples/graphs/bert_base_b1_adam.ddp.json.gz --check --iterations 3\n"
    "  tarn run examples/graphs/bert_base_b1_adam.ddp.json.gz --kernel spin:10000\n";

static const enum tarn_status exits[] = {
    TARN_DOES_NOT_FIT, TARN_BAD_INPUT,    TARN_DEVICE, TARN_DEADLINE,
    TARN_REJECTED,     TARN_CHECK_FAILED, TARN_OK};

enum tarn_status tarn_verb_run(char **words)
{
    struct request request = {.load.struct_size = sizeof request.load,
                              .planning.struct_size = sizeof request.planning,
                              .session.struct_size = sizeof request.session,
                              .host.struct_size = sizeof request.host};
    const struct tarn_option options[] = {
        {"check", 0, TARN_OPTION_FLAG, &request.checked, NULL, "checked execution (default)",
         TARN_SPECIAL},
        {"iterations", 0, TARN_OPTION_TIMES, &request.check.iterations, "N",
         "how many (default: 1 checked, 100 measured)", TARN_EVERYDAY},
        {"order", 0, TARN_OPTION_INPUT, &request.order, "FILE|seed:N",
         "one op after another,\nin the order of a file (tarn.order, for example a witness), or in "
         "a legal order drawn at random",
         TARN_EVERYDAY},
        {"delay", 0, TARN_OPTION_COUNT, &request.check.delay_ns, "NS",
         "random delays before ops, at most NS nanoseconds", TARN_SPECIAL},
        {"seed", 0, TARN_OPTION_NUMBER, &request.check.seed, "N", "of the delays (default 0)",
         TARN_SPECIAL},
        {"kernel", 0, TARN_OPTION_TEXT, &request.kernel, "empty|spin:NS",
         "measure instead of checking", TARN_EVERYDAY},
        {"workers", 0, TARN_OPTION_COUNT, &request.host.workers, "N",
         "threads that run ops (default: cores, at most streams)", TARN_SPECIAL},
        {"bind", 0, TARN_OPTION_TEXT, &request.bind, "auto|none|node|cache|core",
         "processors that a worker may use: those of its NUMA node, outermost cache or core\n"
         "(default auto: its core if workers fill the machine, else the nodes of all workers)",
         TARN_SPECIAL},
        {"device", 0, TARN_OPTION_TEXT, &request.device, "host|cuda[:N]",
         "where to run (default: host)", TARN_EVERYDAY},
        {"capture", 0, TARN_OPTION_FLAG, &request.session.capture, NULL,
         "capture iterations once and replay them", TARN_EVERYDAY},
        {"unroll", 0, TARN_OPTION_TIMES, &request.session.unroll, "N",
         "iterations captured together (implies --capture)", TARN_SPECIAL},
        {"depth", 0, TARN_OPTION_TIMES, &request.session.depth, "N",
         "most iterations under way at once (default on cuda: 8)", TARN_SPECIAL},
        {"flight", 0, TARN_OPTION_OUTPUT, &request.flight, "FILE",
         "write every stream's last commands to a file, at the end or when an error stops the run",
         TARN_SPECIAL},
        {"trace", 0, TARN_OPTION_OUTPUT, &request.trace, "FILE.json",
         "write the last iterations as a Chrome trace (Perfetto):\na track for each stream, and "
         "the bytes alive",
         TARN_EVERYDAY},
        {"deadline", 0, TARN_OPTION_SECONDS, &request.deadline_ns, "SECONDS",
         "give up when the run takes longer", TARN_EVERYDAY},
        {"no-verify", 0, TARN_OPTION_FLAG, &request.unverified, NULL,
         "trust the plan: to see what a bad one does", TARN_SPECIAL},
        TARN_ALLOW_OPTION(request.kinds),
        TARN_PLANNING_OPTIONS(request.planning),
        TARN_LOAD_OPTION(request.load),
        TARN_JSON_OPTION(request.json),
    };
    const struct tarn_command command = {
        .verb = "run",
        .usage = "GRAPH [PLAN]",
        .about = about,
        TARN_OPTIONS(options),
        .arguments_min = 1,
        .arguments_max = 2,
        .exits = exits,
        .example = example,
    };
    enum tarn_status status;
    if (!tarn_options_parse(&command, words, request.paths, &status)) return status;
    status = settle(&command, &request);
    return status == TARN_OK ? carry_out(&request) : status;
}
