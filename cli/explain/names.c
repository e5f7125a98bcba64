/* Prints names in answers, and finds names of the command line. A name that several tensors or ops
 * have stands for the first of them; "tensor:ID" and "op:ID" name any. Cost: linear in the
 * graph. */
#include "explain.h"

#include <string.h>

/* ---- Printing: for people as on the command line, NAME (tensor:ID) and NAME (op:ID, stream) ----
 */

void tarn_explain_print_holder(struct tarn_printer *printer, const struct tarn_model *model,
                               uint32_t holder)
{
    const struct tarn_holder *h = &model->holders[holder];
    bool is_workspace = h->tensor == TARN_NONE;
    if (!printer->json) {
        const char *space = model->spaces_count > 1 ? model->spaces[h->space].name : NULL;
        tarn_printer_named(printer, printer->depth == 1 ? "tensor" : NULL, h->name,
                           is_workspace ? "workspace of op" : "tensor",
                           is_workspace ? h->op : h->tensor, space);
        return;
    }
    tarn_printer_text(printer, is_workspace ? "workspace_of" : "tensor", h->name);
    tarn_printer_id(printer, is_workspace ? "op_id" : "tensor_id",
                    is_workspace ? h->op : h->tensor);
    if (model->spaces_count > 1) tarn_printer_text(printer, "space", model->spaces[h->space].name);
}

void tarn_explain_print_op(struct tarn_printer *printer, const struct tarn_graph *graph, tarn_op op)
{
    struct tarn_op_info info;
    tarn_graph_op(graph, op, &info);
    const char *stream = tarn_graph_stream_name(graph, info.stream);
    if (!printer->json) {
        tarn_printer_named(printer, printer->depth == 1 ? "op" : NULL, info.name, "op", op, stream);
        return;
    }
    tarn_printer_text(printer, "op", info.name);
    tarn_printer_id(printer, "op_id", op);
    tarn_printer_text(printer, "stream", stream);
}

void tarn_explain_print_launch(struct tarn_printer *printer, const struct tarn_model *model,
                               uint32_t launch)
{
    tarn_explain_print_op(printer, model->graph, model->launches[launch].op);
}

static const struct {
    const char *in_json, *for_people;
} links[] = {
    [TARN_STARTS] = {"", ""},
    [TARN_BY_ORDER] = {"then in its stream", " -> "},
    [TARN_BY_WAIT] = {"waited for by", " -> wait -> "},
    [TARN_BY_BOUNDARY] = {"waited for in the next iteration by", " -> wait, next iteration -> "},
    [TARN_BY_NEXT] = {"in the next iteration of its stream", " -> next iteration -> "},
};

void tarn_explain_print_way(struct tarn_printer *printer, const struct tarn_model *model,
                            const struct tarn_way *way)
{
    tarn_printer_open_list(printer, "way");
    for (uint32_t i = 0; i < way->count; i++) {
        const struct tarn_way_step *step = &way->steps[i];
        if (!printer->json) {
            tarn_printer_link(printer, links[step->how].for_people);
            tarn_explain_print_launch(printer, model, step->launch);
            continue;
        }
        tarn_printer_open(printer, NULL, '{');
        tarn_printer_text(printer, "by", links[step->how].in_json);
        tarn_explain_print_launch(printer, model, step->launch);
        tarn_printer_close(printer);
    }
    tarn_printer_close_list(printer);
}

/* ---- Finding ---- */

static uint32_t holder_of_tensor(const struct tarn_model *model, tarn_tensor tensor)
{
    tarn_tensor root = tarn_graph_root(model->graph, tensor);
    for (uint32_t h = 0; h < model->holders_count; h++)
        if (model->holders[h].tensor == root) return h;
    return TARN_NONE;
}

static enum tarn_status name_tensor(const struct tarn_command *command,
                                    const struct tarn_model *model, const char *word,
                                    tarn_tensor tensor, struct tarn_named *named)
{
    named->holder = holder_of_tensor(model, tensor);
    if (named->holder != TARN_NONE) return TARN_OK;
    return tarn_options_refuse(command, "'%s' has no place in the arena: it is persistent", word);
}

static enum tarn_status name_op(const struct tarn_command *command, const struct tarn_model *model,
                                const char *word, tarn_op op, struct tarn_named *named)
{
    named->launch = model->launch_of[op];
    if (named->launch != TARN_NONE) return TARN_OK;
    return tarn_options_refuse(command, "'%s' is a view, which is never launched", word);
}

static enum tarn_status suggest(const struct tarn_command *command, const struct tarn_graph *graph,
                                const char *word)
{
    struct tarn_nearest nearest = {.text = word, .length = strlen(word)};
    struct tarn_tensor_info tensor;
    struct tarn_op_info op;
    for (tarn_tensor t = 0; tarn_graph_tensor(graph, t, &tensor); t++)
        tarn_nearest_offer(&nearest, tensor.name);
    for (tarn_op v = 0; tarn_graph_op(graph, v, &op); v++) tarn_nearest_offer(&nearest, op.name);
    return tarn_options_refuse(command, "no tensor and no op is called '%s'%s", word,
                               tarn_nearest_text(&nearest));
}

/* Reads "tensor:ID" and "op:ID" with a number below `count`. */
static bool read_id(const char *word, const char *kind, uint32_t count, uint32_t *id)
{
    size_t length = strlen(kind);
    uint64_t number;
    if (strncmp(word, kind, length) != 0 || !tarn_number_parse(word + length, &number))
        return false;
    if (number >= count) return false;
    *id = (uint32_t)number;
    return true;
}

/* At most one of the two is set; false: neither. */
static bool find(const struct tarn_graph *graph, const char *word, tarn_tensor *tensor, tarn_op *op)
{
    *tensor = *op = TARN_NONE;
    if (read_id(word, "tensor:", tarn_graph_tensors_count(graph), tensor)) return true;
    if (read_id(word, "op:", tarn_graph_ops_count(graph), op)) return true;
    *tensor = tarn_graph_find_tensor(graph, word);
    *op = *tensor == TARN_NONE ? tarn_graph_find_op(graph, word) : TARN_NONE;
    return *tensor != TARN_NONE || *op != TARN_NONE;
}

bool tarn_explain_is_name(const struct tarn_graph *graph, const char *word)
{
    tarn_tensor tensor;
    tarn_op op;
    return find(graph, word, &tensor, &op);
}

enum tarn_status tarn_explain_find(const struct tarn_command *command,
                                   const struct tarn_model *model, const char *word,
                                   struct tarn_named *named)
{
    tarn_tensor tensor;
    tarn_op op;
    *named = (struct tarn_named){TARN_NONE, TARN_NONE};
    if (!find(model->graph, word, &tensor, &op)) return suggest(command, model->graph, word);
    return tensor != TARN_NONE ? name_tensor(command, model, word, tensor, named)
                               : name_op(command, model, word, op, named);
}
