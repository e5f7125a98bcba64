/* tarn explain: why a plan is as large as it is, and why storages may share bytes or may not. */
#include "explain/explain.h"
#include "interrupt.h"
#include "kinds.h"
#include "verbs.h"

#include <unistd.h>

struct request {
    const char *words[4];  /* as given: the graph, a plan or none, names */
    const char *plan_path; /* or NULL */
    const char **names;    /* those of the words that are names; at most two */
    const char *order_path;
    struct tarn_load_options load;
    struct tarn_kinds kinds;
    uint32_t threads;
    bool quick, json;
};

static enum tarn_status save_order(const struct request *request, const struct tarn_model *model,
                                   const struct tarn_step *order, const char *why_none,
                                   struct tarn_error *error)
{
    if (!request->order_path) return TARN_OK;
    if (!order) {
        tarn_say("%s; %s is not written", why_none, request->order_path);
        return TARN_OK;
    }
    tarn_interrupt_hold();
    enum tarn_status status =
        tarn_order_save(order, model->launches_count, request->order_path, error);
    tarn_interrupt_release();
    return status;
}

/* The holders that a name stands for: a tensor's, or of an op the one that it writes. */
static uint32_t holder_of(const struct tarn_model *model, const struct tarn_named *named)
{
    if (named->holder != TARN_NONE) return named->holder;
    for (uint32_t h = 0; h < model->holders_count; h++)
        if (model->holders[h].writer == named->launch) return h;
    return TARN_NONE;
}

static enum tarn_status answer(const struct tarn_command *command, const struct request *request,
                               const struct tarn_model *model, struct tarn_graph *source,
                               struct tarn_error *error)
{
    struct tarn_printer printer;
    struct tarn_named named[2];
    struct tarn_memory memory = {0};
    struct tarn_step *order = NULL;
    const char *why_none = NULL;
    size_t names = 0;
    enum tarn_status status = TARN_OK;
    for (; names < 2 && request->names[names] && status == TARN_OK; names++)
        status = tarn_explain_find(command, model, request->names[names], &named[names]);
    if (status != TARN_OK) return status;
    uint32_t a = names == 2 ? holder_of(model, &named[0]) : 0;
    uint32_t b = names == 2 ? holder_of(model, &named[1]) : 1;
    if (a == TARN_NONE || b == TARN_NONE || a == b)
        return tarn_options_refuse(command, "'%s' and '%s' are not two storages of the arena",
                                   request->names[0], request->names[1]);
    if (request->order_path && names < 2)
        return tarn_options_refuse(command, "--order needs two names");
    const bool *stop = tarn_interrupt_note();
    tarn_printer_begin(&printer, tarn_is_dash(request->order_path) ? stderr : stdout,
                       request->json);
    bool done;
    if (names == 2)
        done = tarn_explain_pair(&printer, &memory, model, a, b, &order, &why_none);
    else if (names == 1 && named[0].holder != TARN_NONE)
        done = tarn_explain_holder(&printer, model, named[0].holder);
    else if (names == 1)
        done = tarn_explain_launch(&printer, model, named[0].launch);
    else
        done = tarn_explain_arena(&printer, model);
    if (done && names == 0 && !request->quick)
        status = tarn_explain_changes(&printer, model, source, stop);
    tarn_printer_end(&printer);
    if (!done || status == TARN_SYSTEM) status = tarn_no_memory(error);
    if (status == TARN_OK && names == 2)
        status = save_order(request, model, order, why_none, error);
    tarn_memory_finish(&memory);
    return status == TARN_SYSTEM ? tarn_print_error(error, status) : status;
}

/* The second word is a plan, unless there is no such file and it names a tensor or an op. */
static enum tarn_status tell_words_apart(const struct tarn_command *command,
                                         struct request *request, const struct tarn_graph *graph)
{
    const char *second = request->words[1];
    bool is_name = second && access(second, F_OK) != 0 && tarn_explain_is_name(graph, second);
    request->plan_path = is_name ? NULL : second;
    request->names = request->words + (is_name || !second ? 1 : 2);
    if (!is_name || !request->words[3]) return TARN_OK;
    return tarn_options_refuse(command, "'%s' is a third name; two can be asked about",
                               request->words[3]);
}

/* Gets the plan: verifies a given plan; without one, makes the plan of `tarn plan GRAPH`. */
static enum tarn_status get_plan(const struct request *request, struct tarn_graph *graph,
                                 struct tarn_plan **plan, struct tarn_error *error)
{
    if (request->plan_path)
        return tarn_plan_load(request->plan_path, graph, TARN_VERIFY, &request->kinds.allowed, plan,
                              error);
    struct tarn_plan_options *options =
        TARN_PLAN_OPTIONS(.threads = request->threads, .stop = tarn_interrupt_note());
    return tarn_plan_create(graph, options, plan, error);
}

static enum tarn_status carry_out(const struct tarn_command *command, struct request *request)
{
    struct tarn_error error = {.text = ""};
    struct tarn_graph *graph = NULL;
    struct tarn_plan *plan = NULL;
    struct tarn_model model;
    enum tarn_status status = tarn_graph_load(request->words[0], &request->load, &graph, &error);
    if (status != TARN_OK) return tarn_print_error(&error, status);
    status = tell_words_apart(command, request, graph);
    if (status != TARN_OK) {
        tarn_graph_destroy(graph);
        return status;
    }
    status = get_plan(request, graph, &plan, &error);
    if (status == TARN_OK) status = tarn_model_init(&model, plan, &error);
    if (status != TARN_OK) {
        tarn_print_error(&error, status);
    } else {
        status = answer(command, request, &model, graph, &error);
        tarn_model_finish(&model);
    }
    tarn_plan_destroy(plan);
    tarn_graph_destroy(graph);
    return request->plan_path ? status : tarn_interrupt_tell(status, "plan");
}

static const char about[] =
    "Without a NAME: why the arena is as large as it is, what is held long after its\n"
    "last use, and what each single change would bring, tried. With the NAME of a\n"
    "tensor or an op: its bytes, and why others may have them before and after it.\n"
    "With two: why they may share bytes, or an order in which both are in use.\n"
    "Without a PLAN it is about the one that 'tarn plan' makes by default. A second\n"
    "word is a NAME where no file is called so.\n\n"
    "  certificate  storages that can all be in use at once: no plan is below their\n"
    "               sum, which is the bound; by the kind of the op that writes them,\n"
    "               by its stream, and the largest\n"
    "  holes        of the arena at that moment, below the footprint\n"
    "  held         storages that are not in use any more, but no launch is known to\n"
    "               come after all uses: by bytes and time until one is. A wait from\n"
    "               one of the last uses to another's stream would free them\n"
    "  an order shows it: of two names. No, if the two are used only by the ops that\n"
    "               write them: these may run at the same time, but no op reads a\n"
    "               byte that could be wrong; and of different memory spaces\n"
    "  planned with the graph planned again with one option of 'tarn plan' more:\n"
    "               footprint, and the price in modelled critical path and waits; of\n"
    "               --couple the waits that it adds\n"
    "  safe by      the way from the last use in each stream to the next writer: by\n"
    "               the order of a stream (->) or by an event wait (-> wait ->); of\n"
    "               two names: because\n"
    "A NAME that several have stands for the first of them; 'tensor:ID' and 'op:ID',\n"
    "as they are printed, stand for one.\n";

enum tarn_status tarn_verb_explain(char **words)
{
    struct request request = {.load.struct_size = sizeof request.load};
    const struct tarn_option options[] = {
        {"quick", 0, TARN_OPTION_FLAG, &request.quick, NULL, "try no changes", TARN_EVERYDAY},
        {"order", 'o', TARN_OPTION_OUTPUT, &request.order_path, "FILE",
         "two names: write the order in which both are in use,\nfor 'tarn run --order FILE'",
         TARN_EVERYDAY},
        {"threads", 0, TARN_OPTION_COUNT, &request.threads, "N",
         "threads to plan with, where no PLAN is given (default: OMP_NUM_THREADS, or all cores)",
         TARN_SPECIAL},
        TARN_ALLOW_OPTION(request.kinds),
        TARN_LOAD_OPTION(request.load),
        TARN_JSON_OPTION(request.json),
    };
    const struct tarn_command command = {
        .verb = "explain",
        .usage = "GRAPH [PLAN] [NAME [NAME]]",
        .about = about,
        TARN_OPTIONS(options),
        .arguments_min = 1,
        .arguments_max = 4,
        .exits =
            (const enum tarn_status[]){TARN_DOES_NOT_FIT, TARN_BAD_INPUT, TARN_REJECTED, TARN_OK},
        .example = "  tarn explain examples/graphs/figure2.json\n",
    };
    enum tarn_status status;
    if (!tarn_options_parse(&command, words, request.words, &status)) return status;
    const char *wrong = tarn_kinds_split(&request.kinds);
    return wrong ? tarn_options_refuse(&command, "%s", wrong) : carry_out(&command, &request);
}
