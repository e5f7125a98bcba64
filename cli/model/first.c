/* Finds the first place of a stream at which the bytes of a holder may be used again. A launch
 * reaches a stream at the first place that comes after it, by the order of its own stream and by
 * the launches that wait for it. A holder is free after all its touches. Cost: O(launches + waits +
 * touches). */
#include "model.h"

bool tarn_model_cuts_inside(const struct tarn_model *model, tarn_stream stream)
{
    struct tarn_list inside = model->certificate.inside;
    for (size_t i = 0; i < inside.count; i++)
        if (inside.ids[i] == stream) return true;
    return false;
}

bool tarn_model_exclude(const struct tarn_model *model, uint32_t a, uint32_t b,
                        struct tarn_model_arms *arms)
{
    struct tarn_op_info x, y;
    tarn_graph_op(model->graph, model->launches[model->holders[a].writer].op, &x);
    tarn_graph_op(model->graph, model->launches[model->holders[b].writer].op, &y);
    for (size_t i = 0; i < x.branch_count; i++)
        for (size_t k = 0; k < y.branch_count; k++) {
            if (x.branch[i][0] != y.branch[k][0] || x.branch[i][1] == y.branch[k][1]) continue;
            *arms = (struct tarn_model_arms){x.branch[i][0], x.branch[i][1], y.branch[k][1]};
            return true;
        }
    return false;
}

/* reach[v], from the last launch to the first: the first place of the stream that comes after v. */
enum tarn_status tarn_model_first(const struct tarn_model *model, tarn_stream stream,
                                  uint32_t *first)
{
    struct tarn_memory memory = {NULL, false};
    uint32_t length = tarn_model_length(model, stream);
    uint32_t *reach = tarn_memory_take(&memory, model->launches_count, sizeof *reach);
    if (!reach) return TARN_SYSTEM;
    for (uint32_t v = model->launches_count; v-- > 0;) {
        const struct tarn_launch *launch = &model->launches[v];
        uint32_t least = length;
        if (launch->stream == stream)
            least = launch->place + 1;
        else if (launch->place + 1 < tarn_model_length(model, launch->stream))
            least = reach[tarn_model_at(model, launch->stream, launch->place + 1)];
        for (uint32_t i = model->waiters.begin[v]; i < model->waiters.begin[v + 1]; i++) {
            uint32_t u = model->waiters.ids[i];
            const struct tarn_launch *waiter = &model->launches[u];
            uint32_t at = waiter->stream == stream ? waiter->place : reach[u];
            if (at < least) least = at;
        }
        reach[v] = least;
    }
    for (uint32_t h = 0; h < model->holders_count; h++) {
        const struct tarn_holder *holder = &model->holders[h];
        first[h] = holder->pinned ? length : 0;
        for (uint32_t i = 0; i < holder->touches_count; i++)
            if (reach[holder->touches[i].launch] > first[h])
                first[h] = reach[holder->touches[i].launch];
    }
    tarn_memory_finish(&memory);
    return TARN_OK;
}
