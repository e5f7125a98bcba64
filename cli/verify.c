/* tarn verify: checks a plan file by the independent verifier, and prints every violation. */
#include "command/command.h"
#include "family.h"
#include "interrupt.h"
#include "kinds.h"
#include "verbs.h"
#include "violation.h"

struct request {
    const char *paths[2]; /* graph, plan; of a family, list and folder */
    const char *witness_path;
    struct tarn_load_options load;
    struct tarn_kinds kinds;
    bool family;
    bool json;
};

static void print_verdict(const struct request *request, const struct tarn_graph *graph,
                          const struct tarn_verdict *verdict, double ms)
{
    struct tarn_printer printer;
    bool json = request->json;
    size_t count = tarn_verdict_count(verdict);
    tarn_printer_begin(&printer, tarn_is_dash(request->witness_path) ? stderr : stdout, json);
    tarn_printer_text(&printer, "name", tarn_graph_name(graph));
    tarn_printer_boolean(&printer, "safe", count == 0);
    tarn_printer_open_list(&printer, "violations");
    for (size_t i = 0; i < count; i++)
        tarn_print_violation(&printer, tarn_verdict_get(verdict, i), NULL, NULL);
    tarn_printer_close_list(&printer);
    tarn_printer_open(&printer, "ms", '{');
    tarn_printer_real(&printer, "verify", ms);
    tarn_printer_close(&printer);
    tarn_printer_end(&printer);
}

/* Writes the first witness that there is. */
static enum tarn_status save_witness(const struct tarn_verdict *verdict, const char *path,
                                     struct tarn_error *error)
{
    for (size_t i = 0; i < tarn_verdict_count(verdict); i++) {
        const struct tarn_violation *violation = tarn_verdict_get(verdict, i);
        if (!violation->witness) continue;
        tarn_interrupt_hold();
        enum tarn_status status =
            tarn_order_save(violation->witness, violation->witness_count, path, error);
        tarn_interrupt_release();
        return status;
    }
    tarn_say("no violation has a witness; %s is not written", path);
    return TARN_OK;
}

static enum tarn_status judge(const struct request *request)
{
    struct tarn_error error;
    struct tarn_graph *graph = NULL;
    struct tarn_verdict *verdict = NULL;
    enum tarn_status status = tarn_graph_load(request->paths[0], &request->load, &graph, &error);
    double begin = tarn_now_ms();
    if (status == TARN_OK)
        status = tarn_plan_verify_file(request->paths[1], graph, &request->kinds.allowed, &verdict,
                                       &error);
    if (status == TARN_OK || status == TARN_REJECTED)
        print_verdict(request, graph, verdict, tarn_now_ms() - begin);
    if (status != TARN_OK) tarn_print_error(&error, status);
    if (status == TARN_REJECTED && request->witness_path) {
        enum tarn_status saved = save_witness(verdict, request->witness_path, &error);
        if (saved != TARN_OK) status = tarn_print_error(&error, saved);
    }
    tarn_verdict_destroy(verdict);
    tarn_graph_destroy(graph);
    return status;
}

enum tarn_status tarn_verb_verify(char **words)
{
    struct request request = {.load.struct_size = sizeof request.load};
    const struct tarn_option options[] = {
        {"witness", 0, TARN_OPTION_OUTPUT, &request.witness_path, "FILE",
         "write a legal order of the ops that corrupts,\nfor 'tarn run --no-verify --order FILE'",
         TARN_EVERYDAY},
        {"family", 0, TARN_OPTION_FLAG, &request.family, NULL,
         "instead of GRAPH and PLAN the list and the folder of 'tarn plan --batch LIST' with "
         "--family or --ranks: "
         "each plan is proved, and that symmetric groups of one name lie at one offset in one "
         "window",
         TARN_SPECIAL},
        TARN_ALLOW_OPTION(request.kinds),
        TARN_LOAD_OPTION(request.load),
        TARN_JSON_OPTION(request.json),
    };
    const struct tarn_command command = {
        .verb = "verify",
        .usage = "GRAPH PLAN",
        .about = "Replays the plan's program once with vector clocks and a map of the arena's\n"
                 "bytes, and compares it with the graph. Shares no algorithm with the planner.\n"
                 "Prints every violation (at most 100).\n\n"
                 "A plan may do what its graph says. That ops write over their inputs beyond\n"
                 "that is for --in-place-kinds to allow, here as when it was planned: a plan\n"
                 "may come from anybody.\n",
        TARN_OPTIONS(options),
        .arguments_min = 2,
        .arguments_max = 2,
        .exits = (const enum tarn_status[]){TARN_BAD_INPUT, TARN_REJECTED, TARN_OK},
        .example = "  tarn plan examples/graphs/figure7.json -o figure7.plan\n"
                   "  tarn verify examples/graphs/figure7.json figure7.plan\n",
    };
    enum tarn_status status;
    if (!tarn_options_parse(&command, words, request.paths, &status)) return status;
    const char *wrong = tarn_kinds_split(&request.kinds);
    if (request.family && request.witness_path)
        wrong = "--family looks for no witness: verify the plan by itself";
    if (wrong) return tarn_options_refuse(&command, "%s", wrong);
    if (!request.family) return judge(&request);
    return tarn_family_judge(&(struct tarn_family_request){.list = request.paths[0],
                                                           .folder = request.paths[1],
                                                           .load = &request.load,
                                                           .allowed = &request.kinds.allowed,
                                                           .json = request.json});
}
