/* Explains a storage or an op: its users, the holders that have its bytes before and after it, and
 * the ways of order and waits that make this safe. Cost: see model/ways.h, for each neighbour. */
#include "explain.h"

static const char *const kinds[TARN_HOLDER_KINDS] = {
    [TARN_HOLDS_INTERMEDIATE] = "intermediate",
    [TARN_HOLDS_GRADIENT] = "gradient",
    [TARN_HOLDS_OUTPUT] = "output",
    [TARN_HOLDS_WORKSPACE] = "workspace",
};

static void print_touches(struct tarn_printer *printer, const struct tarn_model *model,
                          const struct tarn_holder *holder)
{
    tarn_printer_open_list(printer, "uses");
    for (uint32_t i = 0; i < holder->touches_count; i++) {
        bool writes = holder->touches[i].writes;
        tarn_printer_open_row(printer, writes ? "written_by" : "read_by");
        if (printer->json) tarn_printer_boolean(printer, "writes", writes);
        tarn_explain_print_launch(printer, model, holder->touches[i].launch);
        tarn_printer_close(printer);
    }
    tarn_printer_close_list(printer);
}

/* In JSON a member of the row, for people one row for each way after it. */
static void print_ways(struct tarn_printer *printer, const struct tarn_model *model,
                       const struct tarn_way *ways, size_t count)
{
    tarn_printer_open_list(printer, "ways");
    for (size_t i = 0; i < count; i++) {
        tarn_printer_open_row(printer, "safe_by");
        tarn_explain_print_way(printer, model, &ways[i]);
        tarn_printer_close(printer);
    }
    tarn_printer_close_list(printer);
}

/* Prints the holders that have its bytes before or after it, and the ways between. */
static bool print_neighbours(struct tarn_printer *printer, const struct tarn_model *model,
                             uint32_t holder, enum tarn_direction direction)
{
    const char *key = direction == TARN_BEFORE ? "bytes_before" : "bytes_after";
    struct tarn_memory memory = {0};
    const struct tarn_neighbour *neighbour = tarn_neighbours(&memory, model, holder, direction);
    bool done = neighbour != NULL;
    if (done) tarn_printer_open_list(printer, key);
    for (; done && neighbour->holder != TARN_NONE; neighbour++) {
        uint32_t earlier = direction == TARN_BEFORE ? neighbour->holder : holder;
        uint32_t later = direction == TARN_BEFORE ? holder : neighbour->holder;
        size_t count = 0;
        struct tarn_way *ways =
            tarn_ways(&memory, model, earlier, neighbour->is_other_iteration, later, &count);
        done = ways != NULL;
        if (!done) break;
        tarn_printer_open_row(printer, key);
        tarn_explain_print_holder(printer, model, neighbour->holder);
        tarn_printer_bytes(printer, "shared_bytes", neighbour->bytes);
        if (printer->json || neighbour->is_other_iteration)
            tarn_printer_boolean(printer, "other_iteration", neighbour->is_other_iteration);
        if (printer->json) print_ways(printer, model, ways, count);
        tarn_printer_close(printer);
        if (!printer->json) print_ways(printer, model, ways, count);
    }
    if (done) tarn_printer_close_list(printer);
    tarn_memory_finish(&memory);
    return done;
}

static bool print_meanwhile(struct tarn_printer *printer, const struct tarn_model *model,
                            uint32_t holder)
{
    struct tarn_memory memory = {0};
    uint32_t *from = tarn_memory_take(&memory, model->streams_count, sizeof *from);
    uint32_t *to = tarn_memory_take(&memory, model->streams_count, sizeof *to);
    bool done = from && to && tarn_meanwhile(model, holder, from, to);
    if (done) tarn_printer_open_list(printer, "meanwhile");
    for (tarn_stream s = 0; done && s < model->streams_count; s++) {
        if (from[s] >= to[s]) continue;
        tarn_printer_open_row(printer, "meanwhile");
        tarn_printer_count(printer, "launches", to[s] - from[s]);
        tarn_printer_open(printer, "first", '{');
        tarn_explain_print_launch(printer, model, tarn_model_at(model, s, from[s]));
        tarn_printer_close(printer);
        tarn_printer_open(printer, "last", '{');
        tarn_explain_print_launch(printer, model, tarn_model_at(model, s, to[s] - 1));
        tarn_printer_close(printer);
        tarn_printer_close(printer);
    }
    if (done) tarn_printer_close_list(printer);
    tarn_memory_finish(&memory);
    return done;
}

/* The arms that an op is in; for people nothing, if there are none. */
static void print_arms(struct tarn_printer *printer, const struct tarn_model *model,
                       uint32_t launch)
{
    struct tarn_op_info info;
    tarn_graph_op(model->graph, model->launches[launch].op, &info);
    tarn_printer_open_list(printer, "only_where");
    for (size_t i = 0; i < info.branch_count; i++) {
        tarn_printer_open_row(printer, "only_where");
        tarn_printer_count(printer, "conditional", info.branch[i][0]);
        tarn_printer_count(printer, "takes_arm", info.branch[i][1]);
        tarn_printer_close(printer);
    }
    tarn_printer_close_list(printer);
}

/* Names of parts of a storage. */
static void print_slices(struct tarn_printer *printer, const struct tarn_model *model,
                         const struct tarn_holder *holder)
{
    tarn_printer_open_list(printer, "slices");
    for (tarn_tensor t = 0; t < tarn_graph_tensors_count(model->graph); t++) {
        struct tarn_tensor_info info;
        if (holder->tensor == TARN_NONE || tarn_graph_root(model->graph, t) != holder->tensor)
            continue;
        tarn_graph_tensor(model->graph, t, &info);
        if (t == holder->tensor || info.size == holder->size) continue;
        tarn_printer_open_row(printer, "slice");
        if (printer->json) {
            tarn_printer_text(printer, "tensor", info.name);
            tarn_printer_id(printer, "tensor_id", t);
        } else {
            tarn_printer_named(printer, NULL, info.name, "tensor", t, NULL);
        }
        tarn_printer_bytes(printer, "offset_bytes", info.offset);
        tarn_printer_bytes(printer, "size_bytes", info.size);
        tarn_printer_close(printer);
    }
    tarn_printer_close_list(printer);
}

/* The offset that the graph fixes or prefers. */
static void print_rule(struct tarn_printer *printer, const struct tarn_model *model,
                       const struct tarn_holder *holder)
{
    struct tarn_tensor_info info = {.offset_rule = TARN_OFFSET_FREE};
    if (holder->tensor != TARN_NONE) tarn_graph_tensor(model->graph, holder->tensor, &info);
    if (info.offset_rule == TARN_OFFSET_FIXED)
        tarn_printer_bytes(printer, "fixed_offset_bytes", info.wanted_offset);
    if (info.offset_rule == TARN_OFFSET_PREFERRED)
        tarn_printer_bytes(printer, "preferred_offset_bytes", info.wanted_offset);
}

/* Who has some of its bytes in other arms, where it is not there. */
static void print_instead(struct tarn_printer *printer, const struct tarn_model *model,
                          uint32_t holder)
{
    const struct tarn_holder *h = &model->holders[holder];
    uint64_t end = h->offset + tarn_holder_reserved(h);
    tarn_printer_open_list(printer, "bytes_instead");
    for (uint32_t k = 0; k < model->holders_count; k++) {
        const struct tarn_holder *other = &model->holders[k];
        uint64_t other_end = other->offset + tarn_holder_reserved(other);
        uint64_t from = other->offset > h->offset ? other->offset : h->offset;
        uint64_t to = other_end < end ? other_end : end;
        struct tarn_model_arms arms;
        if (from >= to || !tarn_model_exclude(model, holder, k, &arms)) continue;
        tarn_printer_open_row(printer, "bytes_instead");
        tarn_explain_print_holder(printer, model, k);
        tarn_printer_bytes(printer, "shared_bytes", to - from);
        tarn_printer_count(printer, "where_conditional", arms.conditional);
        tarn_printer_count(printer, "takes_arm", arms.other_arm);
        tarn_printer_close(printer);
    }
    tarn_printer_close_list(printer);
}

bool tarn_explain_holder(struct tarn_printer *printer, const struct tarn_model *model,
                         uint32_t holder)
{
    const struct tarn_holder *h = &model->holders[holder];
    tarn_explain_print_holder(printer, model, holder);
    tarn_printer_text(printer, "kind", kinds[h->kind]);
    tarn_printer_bytes(printer, "offset_bytes", tarn_holder_offset(model, h));
    tarn_printer_bytes(printer, "size_bytes", h->size);
    tarn_printer_bytes(printer, "padding_bytes", h->padding);
    tarn_printer_id(printer, "group", h->group);
    tarn_printer_boolean(printer, "in_certificate", h->certified);
    print_rule(printer, model, h);
    print_arms(printer, model, h->writer);
    print_slices(printer, model, h);
    print_touches(printer, model, h);
    print_instead(printer, model, holder);
    return print_neighbours(printer, model, holder, TARN_BEFORE) &&
           print_neighbours(printer, model, holder, TARN_AFTER) &&
           print_meanwhile(printer, model, holder);
}

static void print_launches(struct tarn_printer *printer, const struct tarn_model *model,
                           const char *key, const struct tarn_lists *lists, uint32_t launch)
{
    tarn_printer_open_list(printer, key);
    for (uint32_t i = lists->begin[launch]; i < lists->begin[launch + 1]; i++) {
        tarn_printer_open_row(printer, key);
        tarn_explain_print_launch(printer, model, lists->ids[i]);
        tarn_printer_close(printer);
    }
    tarn_printer_close_list(printer);
}

bool tarn_explain_launch(struct tarn_printer *printer, const struct tarn_model *model,
                         uint32_t launch)
{
    struct tarn_op_info info;
    const struct tarn_launch *l = &model->launches[launch];
    tarn_graph_op(model->graph, l->op, &info);
    tarn_explain_print_launch(printer, model, launch);
    tarn_printer_text(printer, "kind", info.kind);
    tarn_printer_count(printer, "place_in_stream", l->place);
    tarn_printer_count(printer, "cost_ns", l->cost);
    print_arms(printer, model, launch);
    print_launches(printer, model, "waits_for", &model->waits, launch);
    print_launches(printer, model, "waits_for_previous", &model->previous_waits, launch);
    print_launches(printer, model, "waited_for_by", &model->waiters, launch);
    tarn_printer_open_list(printer, "uses");
    for (uint32_t h = 0; h < model->holders_count; h++) {
        const struct tarn_holder *holder = &model->holders[h];
        for (uint32_t i = 0; i < holder->touches_count; i++) {
            if (holder->touches[i].launch != launch) continue;
            tarn_printer_open_row(printer, holder->touches[i].writes ? "writes" : "reads");
            if (printer->json) tarn_printer_boolean(printer, "writes", holder->touches[i].writes);
            tarn_explain_print_holder(printer, model, h);
            tarn_printer_bytes(printer, "offset_bytes", tarn_holder_offset(model, holder));
            tarn_printer_bytes(printer, "size_bytes", holder->size);
            tarn_printer_close(printer);
        }
    }
    tarn_printer_close_list(printer);
    return true;
}
