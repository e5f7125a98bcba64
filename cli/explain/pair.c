/* Explains whether two storages may share bytes. They may if every use of one ends before the other
 * begins, by program order and event waits, or if they are of arms that exclude each other. If not,
 * a legal order is given that shows the fault if both had the same bytes. It first runs the
 * launches that must come before the writer of one storage, the victim, and that writer. Then it
 * runs the same launches of the other storage, whose writer overwrites the victim. Then it runs the
 * rest, including a use of the victim, which reads wrong bytes. A storage is a victim under two
 * conditions. The other storage's writer need not come before its own writer, and some use of it
 * (for an output, the end of the iteration) need not come before the other writer. There are three
 * cases. One of the two is a victim; or an op uses both, and every order shows the fault; or
 * neither is used after its writer. In the last case no op reads bytes that could be wrong, and no
 * order shows the fault, although the two ops may run at the same time. Cost: O(S (launches +
 * waits)). */

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

static bool *find_before(struct tarn_memory *memory, const struct tarn_model *model,
                         uint32_t launch)
{
    bool *marked = tarn_memory_take(memory, model->launches_count, sizeof *marked);
    if (!marked) return NULL;
    marked[launch] = true;
    mark_before(model, marked);
    return marked;
}

/* Is there a launch that uses both? */
static bool use_in_common(const struct tarn_model *model, uint32_t a, uint32_t b)
{
    const struct tarn_holder *x = &model->holders[a], *y = &model->holders[b];
    for (uint32_t i = 0; i < x->touches_count; i++)
        for (uint32_t k = 0; k < y->touches_count; k++)
            if (x->touches[i].launch == y->touches[k].launch) return true;
    return false;
}

/* Is there a use of the holder after its writer which need not come before the launch that
 * `marked` is of? */
static bool is_used_later(const struct tarn_holder *holder, const bool *marked)
{
    if (holder->pinned) return true;
    for (uint32_t i = 0; i < holder->touches_count; i++) {
        uint32_t launch = holder->touches[i].launch;
        if (launch != holder->writer && !marked[launch]) return true;
    }
    return false;
}

/* The launches that run first, and the launches that run next; the rest follows, each part in the
 * model's order. */
struct parts {
    const bool *first, *then;
};

/* False: no memory. parts->first NULL: no order shows it. */
static bool find_parts(struct tarn_memory *memory, const struct tarn_model *model, uint32_t a,
                       uint32_t b, struct parts *parts)
{
    const struct tarn_holder *holders[] = {&model->holders[a], &model->holders[b]};
    const bool *marked[] = {find_before(memory, model, holders[0]->writer),
                            find_before(memory, model, holders[1]->writer)};
    bool is_common = use_in_common(model, a, b);
    *parts = (struct parts){NULL, NULL};
    if (!marked[0] || !marked[1]) return false;
    for (int victim = 0; victim < 2 && !parts->first; victim++) {
        bool must_follow = marked[victim][holders[1 - victim]->writer];
        if (is_common || (!must_follow && is_used_later(holders[victim], marked[1 - victim])))
            *parts = (struct parts){marked[victim], marked[1 - victim]};
    }
    return true;
}

/* *order stays NULL if there is none. */
static bool make_order(struct tarn_memory *memory, const struct tarn_model *model, uint32_t a,
                       uint32_t b, struct tarn_step **order, size_t *moment)
{
    struct parts parts;
    size_t count = 0;
    if (!find_parts(memory, model, a, b, &parts)) return false;
    if (!parts.first) return true;
    *order = tarn_memory_take(memory, model->launches_count, sizeof **order);
    if (!*order) return false;
    for (int part = 0; part < 3; part++) {
        for (uint32_t v = 0; v < model->launches_count; v++)
            if (part == (parts.first[v] ? 0 : parts.then[v] ? 1 : 2))
                (*order)[count++] = (struct tarn_step){.op = model->launches[v].op};
        if (part < 2) *moment = count;
    }
    return true;
}

/* Why a holder is still needed: as printed in JSON, and before the launch for people. */
static const struct use {
    const char *in_json, *for_people;
} reads = {"reads", "to_be_read_by"}, writes = {"writes", "to_be_written_by"},
  output = {"output", "an_output_of"};

/* The last use of a holder that is not before the moment. If there is none, the holder is an output
 * of the graph, and the launch is its writer; or the launch that uses both holders has begun, which
 * is the last use. order NULL: there is no moment; the last use is the writer. */
static uint32_t open_use(const struct tarn_model *model, uint32_t holder,
                         const struct tarn_step *order, size_t moment, const struct use **use)
{
    const struct tarn_holder *h = &model->holders[holder];
    for (uint32_t i = h->touches_count; i-- > 0 && order;) {
        tarn_op op = model->launches[h->touches[i].launch].op;
        bool has_run = false;
        for (size_t k = 0; k < moment && !has_run; k++) has_run = order[k].op == op;
        *use = h->touches[i].writes ? &writes : &reads;
        if (!has_run) return h->touches[i].launch;
    }
    const struct tarn_model_touch *last = &h->touches[h->touches_count - 1];
    bool is_output = order && h->pinned;
    *use = is_output ? &output : last->writes ? &writes : &reads;
    return is_output ? h->writer : last->launch;
}

static void print_open_use(struct tarn_printer *printer, const struct tarn_model *model,
                           uint32_t holder, const struct tarn_step *order, size_t moment)
{
    const struct use *use;
    uint32_t launch = open_use(model, holder, order, moment, &use);
    tarn_printer_open_row(printer, "still_needs");
    tarn_explain_print_holder(printer, model, holder);
    if (printer->json) tarn_printer_text(printer, "use", use->in_json);
    tarn_printer_open(printer, printer->json ? "for" : use->for_people, '{');
    tarn_explain_print_launch(printer, model, launch);
    tarn_printer_close(printer);
    tarn_printer_close(printer);
}

/* Ways from the last uses of `earlier` to the writer of `later`; NULL: some use has no way, or
 * there is no memory, which *memory records. */
static const struct tarn_way *find_ways(struct tarn_memory *memory, const struct tarn_model *model,
                                        uint32_t earlier, uint32_t later, size_t *count)
{
    const struct tarn_way *ways = tarn_ways(memory, model, earlier, false, later, count);
    for (size_t i = 0; ways && i < *count; i++)
        if (ways[i].count == 0) return NULL;
    return model->holders[earlier].pinned ? NULL : ways;
}

static void print_pair(struct tarn_printer *printer, const struct tarn_model *model, bool may_share,
                       const char *const *keys, uint32_t one, uint32_t other)
{
    tarn_printer_boolean(printer, "may_share_bytes", may_share);
    for (int i = 0; i < 2; i++) {
        tarn_printer_open(printer, keys[i], '{');
        tarn_explain_print_holder(printer, model, i == 0 ? one : other);
        tarn_printer_close(printer);
    }
}

static const char *const apart[] = {"one", "other"};

static bool print_order(struct tarn_printer *printer, struct tarn_memory *memory,
                        const struct tarn_model *model, uint32_t a, uint32_t b,
                        struct tarn_step **order)
{
    size_t moment = 0;
    if (!make_order(memory, model, a, b, order, &moment)) return false;
    tarn_printer_open_list(printer, "still_needs");
    print_open_use(printer, model, a, *order, moment);
    print_open_use(printer, model, b, *order, moment);
    tarn_printer_close_list(printer);
    if (*order)
        tarn_printer_count(printer,
                           printer->json ? "launches_until_then" : "launches_until_both_are_in_use",
                           moment);
    if (printer->json || !*order)
        tarn_printer_boolean(printer, "an_order_shows_it", *order != NULL);
    return true;
}

bool tarn_explain_pair(struct tarn_printer *printer, struct tarn_memory *memory,
                       const struct tarn_model *model, uint32_t a, uint32_t b,
                       struct tarn_step **order, const char **why_none)
{
    static const char *const in_turn[] = {"ends_before", "begins_after"};
    size_t count = 0;
    uint32_t earlier = a, later = b; /* of two that are apart: as they were asked for */
    struct tarn_model_arms arms;
    *order = NULL;
    *why_none = "no order shows it, as they lie in different memory spaces";
    if (model->holders[a].space != model->holders[b].space) {
        print_pair(printer, model, false, apart, a, b);
        tarn_printer_boolean(printer, "an_order_shows_it", false);
        return true;
    }
    if (tarn_model_exclude(model, a, b, &arms)) {
        *why_none = "they may share bytes, as they are never both there";
        print_pair(printer, model, true, apart, a, b);
        tarn_printer_open(printer, "exclude_each_other", '{');
        tarn_printer_count(printer, "conditional", arms.conditional);
        tarn_printer_count(printer, "one_takes_arm", arms.arm);
        tarn_printer_count(printer, "other_takes_arm", arms.other_arm);
        tarn_printer_close(printer);
        return true;
    }
    const struct tarn_way *ways = find_ways(memory, model, a, b, &count);
    if (!ways && !memory->is_exhausted) {
        ways = find_ways(memory, model, b, a, &count);
        if (ways) earlier = b, later = a;
    }
    if (memory->is_exhausted) return false;
    *why_none = ways ? "they may share bytes"
                     : "no order shows it, as neither is read after it was written";
    print_pair(printer, model, ways != NULL, ways ? in_turn : apart, earlier, later);
    if (!ways) return print_order(printer, memory, model, a, b, order);
    tarn_printer_open_list(printer, "because");
    for (size_t i = 0; i < count; i++) {
        tarn_printer_open_row(printer, "because");
        tarn_explain_print_way(printer, model, &ways[i]);
        tarn_printer_close(printer);
    }
    tarn_printer_close_list(printer);
    return true;
}
