/* May two storages share bytes? They may when every use of one ends before the other begins, by
 * program order and event waits. Where neither does, some use u of A does not come before the
 * writer of B, and some use v of B not before the writer of A. Then all that must come before the
 * two writers can run without u and v: after the two writers, both storages are in use. That is the
 * order which is given. Cost: O(S (launches + waits)). */
#include "../model/ways.h"
#include "explain.h"

/* Adds the launches that must come before `launch` and itself. The model's order is topological:
 * one pass from the last to the first. */
static void mark_before(const struct tarn_model *model, bool *marked)
{
    for (uint32_t v = model->launches_count; v-- > 0;) {
        if (!marked[v]) continue;
        const struct tarn_launch *launch = &model->launches[v];
        if (launch->place > 0)
            marked[tarn_model_at(model, launch->stream, launch->place - 1)] = true;
        for (uint32_t i = model->waits.begin[v]; i < model->waits.begin[v + 1]; i++)
            marked[model->waits.ids[i]] = true;
    }
}

/* First what comes before the two writers, then these, then the rest, each in the model's order. */
static bool make_order(struct tarn_memory *memory, const struct tarn_model *model, uint32_t a,
                       uint32_t b, struct tarn_step **order, size_t *moment)
{
    uint32_t writers[] = {model->holders[a].writer, model->holders[b].writer};
    bool *marked = tarn_memory_take(memory, model->launches_count, sizeof *marked);
    *order = tarn_memory_take(memory, model->launches_count, sizeof **order);
    if (!marked || !*order) return false;
    marked[writers[0]] = marked[writers[1]] = true;
    mark_before(model, marked);
    size_t count = 0;
    for (int part = 0; part < 2; part++) {
        for (uint32_t v = 0; v < model->launches_count; v++)
            if (marked[v] == (part == 0))
                (*order)[count++] = (struct tarn_step){.op = model->launches[v].op};
        if (part == 0) *moment = count;
    }
    return true;
}

/* The last use of a holder that is not before the moment, or its writer. */
static uint32_t open_use(const struct tarn_model *model, uint32_t holder,
                         const struct tarn_step *order, size_t moment)
{
    const struct tarn_holder *h = &model->holders[holder];
    for (uint32_t i = h->touches_count; i-- > 0;) {
        tarn_op op = model->launches[h->touches[i].launch].op;
        bool has_run = false;
        for (size_t k = 0; k < moment && !has_run; k++) has_run = order[k].op == op;
        if (!has_run) return h->touches[i].launch;
    }
    return h->writer;
}

static void print_open_use(struct tarn_printer *printer, const struct tarn_model *model,
                           uint32_t holder, const struct tarn_step *order, size_t moment)
{
    tarn_printer_open_row(printer, "still_needs");
    tarn_explain_print_holder(printer, model, holder);
    tarn_printer_open(printer, "for", '{');
    tarn_explain_print_launch(printer, model, open_use(model, holder, order, moment));
    tarn_printer_close(printer, '}');
    tarn_printer_close(printer, '}');
}

/* Ways from the last uses of `earlier` to the writer of `later`; NULL: some use has none, or there
 * is no memory, which *memory remembers. */
static const struct tarn_way *find_ways(struct tarn_memory *memory, const struct tarn_model *model,
                                        uint32_t earlier, uint32_t later, size_t *count)
{
    const struct tarn_way *ways = tarn_ways(memory, model, earlier, false, later, count);
    for (size_t i = 0; ways && i < *count; i++)
        if (ways[i].count == 0) return NULL;
    return model->holders[earlier].pinned ? NULL : ways;
}

bool tarn_explain_pair(struct tarn_printer *printer, struct tarn_memory *memory,
                       const struct tarn_model *model, uint32_t a, uint32_t b,
                       struct tarn_step **order, size_t *moment)
{
    size_t count = 0;
    uint32_t earlier = a, later = b;
    *order = NULL;
    const struct tarn_way *ways = find_ways(memory, model, a, b, &count);
    if (!ways && !memory->is_exhausted) {
        earlier = b, later = a;
        ways = find_ways(memory, model, b, a, &count);
    }
    if (memory->is_exhausted) return false;
    tarn_printer_boolean(printer, "may_share_bytes", ways != NULL);
    tarn_printer_open(printer, ways ? "ends_before" : "one", '{');
    tarn_explain_print_holder(printer, model, earlier);
    tarn_printer_close(printer, '}');
    tarn_printer_open(printer, ways ? "begins_after" : "other", '{');
    tarn_explain_print_holder(printer, model, later);
    tarn_printer_close(printer, '}');
    tarn_printer_open_list(printer, ways ? "because" : "still_needs");
    for (size_t i = 0; ways && i < count; i++) {
        tarn_printer_open_row(printer, "because");
        tarn_explain_print_way(printer, model, &ways[i]);
        tarn_printer_close(printer, '}');
    }
    if (!ways) {
        if (!make_order(memory, model, a, b, order, moment)) return false;
        print_open_use(printer, model, a, *order, *moment);
        print_open_use(printer, model, b, *order, *moment);
    }
    tarn_printer_close_list(printer);
    if (!ways) tarn_printer_count(printer, "launches_until_then", *moment);
    return true;
}
