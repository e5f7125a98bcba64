/* tarn show: a picture of a plan, as a page, an SVG, text or trace events. A plan that the verifier
 * refuses is drawn with the fault found. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "cli/show/writers.h"
#include "interrupt.h"
#include "kinds.h"
#include "verbs.h"

enum { WIDTH_MIN = 480, WIDTH_MAX = 10000 };

enum kind { KIND_HTML, KIND_SVG, KIND_TXT, KIND_JSON, KIND_CSV, KINDS };

struct request {
    const char *paths[2];    /* graph, plan or NULL */
    const char *output_path; /* NULL: standard output */
    const char *trace_path;
    uint32_t kind; /* KINDS: by the output's name */
    uint32_t axis; /* TARN_AXES: the plan's */
    uint32_t threads;
    uint32_t width; /* of an SVG; 0: not given */
    struct tarn_load_options load;
    struct tarn_kinds kinds;
};

static bool (*const writers[KINDS])(FILE *file, const struct tarn_picture *picture) = {
    tarn_write_page, tarn_write_svg, tarn_write_text, tarn_write_trace, tarn_write_table};

/* KINDS: the name says nothing. */
static enum kind kind_of(const char *path)
{
    static const char *const endings[KINDS] = {".html", ".svg", ".txt", ".json", ".csv"};
    size_t length = strlen(path);
    for (int i = 0; i < KINDS; i++) {
        size_t size = strlen(endings[i]);
        if (length > size && strcasecmp(path + length - size, endings[i]) == 0) return (enum kind)i;
        if (length > size + 3 && strcasecmp(path + length - 3, ".gz") == 0 &&
            strncasecmp(path + length - 3 - size, endings[i], size) == 0)
            return (enum kind)i;
    }
    return KINDS;
}

/* ---- Writing ---- */

static enum tarn_status save(const struct request *request, const struct tarn_picture *picture,
                             struct tarn_error *error)
{
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    bool is_written = file && writers[request->kind](file, picture);
    if (file && fclose(file) != 0) is_written = false;
    enum tarn_status status = TARN_SYSTEM;
    if (is_written) {
        tarn_interrupt_hold();
        status = tarn_file_save(request->output_path, text, size, error);
        tarn_interrupt_release();
    } else {
        *error = tarn_model_no_memory();
    }
    free(text);
    return status;
}

static enum tarn_status draw(const struct request *request, const struct tarn_plan *plan,
                             const struct tarn_verdict *verdict, struct tarn_error *error)
{
    struct tarn_picture picture;
    struct tarn_trace_entry *runs = NULL;
    size_t runs_count = 0;
    enum tarn_axis axis = (enum tarn_axis)request->axis;
    enum tarn_status status = TARN_OK;
    if (request->kind == KIND_JSON && request->axis == TARN_AXES && !request->trace_path)
        axis = TARN_AXIS_TIME; /* a viewer of traces shows time */
    if (request->kind == KIND_CSV && request->axis == TARN_AXES && !request->trace_path)
        axis = TARN_AXIS_ORDER;
    if (request->trace_path)
        status = tarn_trace_load(request->trace_path, &runs, &runs_count, error);
    if (status != TARN_OK) return tarn_print_error(error, status);
    status = tarn_picture_init(&picture, plan, verdict, axis == TARN_AXES ? NULL : &axis, runs,
                               runs_count, error);
    tarn_free(runs);
    if (status == TARN_OK) {
        picture.width = request->width;
        status = save(request, &picture, error);
        tarn_picture_finish(&picture);
    }
    return status == TARN_OK ? TARN_OK : tarn_print_error(error, status);
}

/* ---- The plan ---- */

static enum tarn_status make_plan(const struct request *request, struct tarn_graph *graph,
                                  struct tarn_plan **plan, struct tarn_error *error)
{
    struct tarn_plan_options *options =
        TARN_PLAN_OPTIONS(.threads = request->threads, .stop = tarn_interrupt_note());
    return tarn_plan_create(graph, options, plan, error);
}

/* A plan that is refused is there all the same, if it can be read at all. */
static enum tarn_status get_plan(const struct request *request, struct tarn_graph *graph,
                                 struct tarn_plan **plan, struct tarn_verdict **verdict,
                                 struct tarn_error *error)
{
    if (!request->paths[1]) return make_plan(request, graph, plan, error);
    enum tarn_status status =
        tarn_plan_load(request->paths[1], graph, TARN_TRUST, &request->kinds.allowed, plan, error);
    return status == TARN_OK ? tarn_plan_verify(*plan, graph, NULL, verdict, error) : status;
}

static enum tarn_status show(const struct request *request)
{
    struct tarn_error error;
    struct tarn_graph *graph = NULL;
    struct tarn_plan *plan = NULL;
    struct tarn_verdict *verdict = NULL;
    enum tarn_status status = tarn_graph_load(request->paths[0], &request->load, &graph, &error);
    if (status == TARN_OK) status = get_plan(request, graph, &plan, &verdict, &error);
    if (status != TARN_OK) tarn_print_error(&error, status);
    if (status == TARN_OK || (status == TARN_REJECTED && plan)) {
        enum tarn_status drawn = draw(request, plan, verdict, &error);
        if (drawn != TARN_OK) status = drawn;
    }
    tarn_verdict_destroy(verdict);
    tarn_plan_destroy(plan);
    tarn_graph_destroy(graph);
    return tarn_interrupt_tell(status, "plan");
}

/* Returns NULL, or what is wrong with the request. */
static const char *settle(struct request *request)
{
    if (!request->output_path) {
        request->output_path = "-";
        if (request->kind == KINDS) request->kind = KIND_TXT;
    }
    if (request->kind == KINDS) request->kind = kind_of(request->output_path);
    if (request->kind == KINDS)
        return "by its name it is none of .html, .svg, .txt, .json and .csv; say which with --of";
    if (request->width > 0 && request->kind != KIND_SVG)
        return "--width is of an .svg: the others have no width of their own";
    if (request->width > 0 && (request->width < WIDTH_MIN || request->width > WIDTH_MAX))
        return "--width is 480 to 10000 pixels";
    return tarn_kinds_split(&request->kinds);
}

enum tarn_status tarn_verb_show(char **words)
{
    struct request request = {
        .kind = KINDS, .axis = TARN_AXES, .load.struct_size = sizeof request.load};
    const struct tarn_option options[] = {
        {"output", 'o', TARN_OPTION_OUTPUT, &request.output_path, "FILE",
         ".html: a page to explore; .svg; .txt; .json: for Perfetto; .csv: a table\n(default: text "
         "in 80 columns on standard output)",
         TARN_EVERYDAY},
        {"of", 0, TARN_OPTION_CHOICE, &request.kind, "html|svg|txt|json|csv",
         "which of them, whatever the file's name", TARN_EVERYDAY},
        {"axis", 0, TARN_OPTION_CHOICE, &request.axis, "order|time|cut|real|wrong",
         "what lies along x; the last that the plan has is the default:\n"
         "list order, modelled time, through the certificate's cut, times of --trace,\n"
         "or the order in which a refused plan corrupts",
         TARN_EVERYDAY},
        {"trace", 0, TARN_OPTION_INPUT, &request.trace_path, "TRACE",
         "what 'tarn run --trace' wrote: when launches really ran", TARN_EVERYDAY},
        {"width", 0, TARN_OPTION_TIMES, &request.width, "PIXELS",
         "of an .svg, whose type stays as large as it is: 480 for a column of a paper\n(default: "
         "960)",
         TARN_SPECIAL},
        {"threads", 0, TARN_OPTION_COUNT, &request.threads, "N",
         "threads to plan with, where no PLAN is given (default: OMP_NUM_THREADS, or all cores)",
         TARN_SPECIAL},
        TARN_ALLOW_OPTION(request.kinds),
        TARN_LOAD_OPTION(request.load),
    };
    const struct tarn_command command = {
        .verb = "show",
        .usage = "GRAPH [PLAN] -o FILE",
        .about = "Draws a plan (without PLAN: the one that 'tarn plan' makes by default): which\n"
                 "storage has which bytes of the arena and when, bytes in use, and the streams\n"
                 "with their waits. The page also says what wrote, read, had and will have any\n"
                 "byte, and why that is safe. A plan that the verifier refuses is drawn with\n"
                 "what is wrong.\n",
        TARN_OPTIONS(options),
        .arguments_min = 1,
        .arguments_max = 2,
        .exits =
            (const enum tarn_status[]){TARN_DOES_NOT_FIT, TARN_BAD_INPUT, TARN_REJECTED, TARN_OK},
        .example = "  tarn show examples/graphs/figure7.json -o figure7.html\n",
    };
    enum tarn_status status;
    if (!tarn_options_parse(&command, words, request.paths, &status)) return status;
    const char *wrong = settle(&request);
    if (wrong) return tarn_options_refuse(&command, "%s", wrong);
    return show(&request);
}
