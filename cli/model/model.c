/* Builds the model of a plan. Launches are put in list order, by op ids, as far as lists and waits
 * allow: of all streams' next launches that have nothing to wait for, the one with the smallest id
 * is next. If lists and waits contradict each other (a refused plan), the smallest id goes first
 * nevertheless. holders.c makes the holders. Cost: O(V S + E). */
#include "model.h"

/* ---- Lists ---- */

struct pair {
    uint32_t from, to;
};

/* to's of every from, in the order of the pairs. */
static bool fill_lists(struct tarn_lists *lists, struct tarn_memory *memory, uint32_t count,
                       const struct pair *pairs, size_t pairs_count)
{
    lists->begin = tarn_memory_take(memory, (size_t)count + 2, sizeof *lists->begin);
    lists->ids = tarn_memory_take(memory, pairs_count, sizeof *lists->ids);
    if (!lists->begin || !lists->ids) return false;
    uint32_t *next = lists->begin + 1; /* next[i]: the index of the next entry of i */
    for (size_t i = 0; i < pairs_count; i++) next[pairs[i].from + 1]++;
    for (uint32_t i = 0; i < count; i++) next[i + 1] += next[i];
    for (size_t i = 0; i < pairs_count; i++) lists->ids[next[pairs[i].from]++] = pairs[i].to;
    return true;
}

/* Fills the waits of launches from the waits of ops. turned: waiters instead. */
static bool fill_waits(struct tarn_model *model, struct tarn_lists *lists, struct tarn_waits waits,
                       bool turned)
{
    struct pair *pairs = tarn_memory_take(&model->memory, waits.count, sizeof *pairs);
    if (!pairs) return false;
    for (size_t i = 0; i < waits.count; i++) {
        uint32_t op = model->launch_of[waits.waits[i].op], on = model->launch_of[waits.waits[i].on];
        pairs[i] = turned ? (struct pair){on, op} : (struct pair){op, on};
    }
    return fill_lists(lists, &model->memory, model->launches_count, pairs, waits.count);
}

/* ---- The order ---- */

struct ordering {
    uint32_t *missing;         /* op -> launches that it still has to wait for */
    uint32_t *next;            /* stream -> its next place */
    struct tarn_lists waiters; /* op -> ops */
};

/* The stream whose next launch comes first; TARN_NONE: all streams have ended. */
static tarn_stream pick_stream(struct tarn_model *model, const struct ordering *ordering)
{
    tarn_stream best = TARN_NONE, blocked = TARN_NONE;
    tarn_op best_op = TARN_NONE, blocked_op = TARN_NONE;
    for (tarn_stream s = 0; s < model->streams_count; s++) {
        struct tarn_list list = tarn_plan_launches(model->plan, s);
        if (ordering->next[s] == list.count) continue;
        tarn_op op = list.ids[ordering->next[s]];
        if (ordering->missing[op] == 0 && op < best_op) best = s, best_op = op;
        if (ordering->missing[op] > 0 && op < blocked_op) blocked = s, blocked_op = op;
    }
    if (best == TARN_NONE && blocked != TARN_NONE) model->is_cyclic = true;
    return best != TARN_NONE ? best : blocked;
}

static void put_in_order(struct tarn_model *model, struct ordering *ordering)
{
    for (uint32_t v = 0; v < model->launches_count; v++) {
        tarn_stream s = pick_stream(model, ordering);
        uint32_t place = ordering->next[s]++;
        tarn_op op = tarn_plan_launches(model->plan, s).ids[place];
        struct tarn_op_info info;
        tarn_graph_op(model->graph, op, &info);
        model->launches[v] = (struct tarn_launch){op, s, place, info.cost};
        model->launch_of[op] = v;
        model->streams.ids[model->streams.begin[s] + place] = v;
        const struct tarn_lists *waiters = &ordering->waiters;
        for (uint32_t i = waiters->begin[op]; i < waiters->begin[op + 1]; i++)
            if (ordering->missing[waiters->ids[i]] > 0) ordering->missing[waiters->ids[i]]--;
    }
}

static bool order_launches(struct tarn_model *model)
{
    struct tarn_memory *memory = &model->memory;
    struct tarn_waits waits = tarn_plan_waits(model->plan);
    uint32_t ops_count = tarn_graph_ops_count(model->graph);
    struct ordering ordering = {.missing = NULL};
    struct pair *pairs = tarn_memory_take(memory, waits.count, sizeof *pairs);
    ordering.missing = tarn_memory_take(memory, ops_count, sizeof *ordering.missing);
    ordering.next = tarn_memory_take(memory, model->streams_count, sizeof *ordering.next);
    model->launch_of = tarn_memory_take(memory, ops_count, sizeof *model->launch_of);
    model->streams.begin =
        tarn_memory_take(memory, (size_t)model->streams_count + 1, sizeof *model->streams.begin);
    if (memory->is_exhausted) return false;
    for (tarn_op op = 0; op < ops_count; op++) model->launch_of[op] = TARN_NONE;
    for (size_t i = 0; i < waits.count; i++) {
        pairs[i] = (struct pair){waits.waits[i].on, waits.waits[i].op};
        ordering.missing[waits.waits[i].op]++;
    }
    for (tarn_stream s = 0; s < model->streams_count; s++)
        model->streams.begin[s + 1] =
            model->streams.begin[s] + (uint32_t)tarn_plan_launches(model->plan, s).count;
    model->launches_count = model->streams.begin[model->streams_count];
    model->launches = tarn_memory_take(memory, model->launches_count, sizeof *model->launches);
    model->streams.ids =
        tarn_memory_take(memory, model->launches_count, sizeof *model->streams.ids);
    if (!fill_lists(&ordering.waiters, memory, ops_count, pairs, waits.count)) return false;
    if (memory->is_exhausted) return false;
    put_in_order(model, &ordering);
    return true;
}

/* ---- Memory spaces ---- */

static bool read_spaces(struct tarn_model *model)
{
    uint64_t begin = 0;
    model->spaces_count = tarn_graph_spaces_count(model->graph);
    model->spaces = tarn_memory_take(&model->memory, model->spaces_count, sizeof *model->spaces);
    for (tarn_space s = 0; model->spaces && s < model->spaces_count; s++) {
        struct tarn_space_info info;
        struct tarn_plan_space_summary made;
        tarn_graph_space(model->graph, s, &info);
        tarn_plan_space(model->plan, s, &made);
        model->spaces[s] = (struct tarn_model_space){
            .name = info.name ? info.name : "",
            .begin = begin,
            .footprint = made.footprint,
            .persistent = made.persistent,
            .bound = made.bound,
            .capacity = info.capacity,
            .alignment = info.alignment > 0 ? info.alignment : model->summary.alignment};
        begin += made.footprint;
    }
    return model->spaces != NULL;
}

/* ---- The whole ---- */

struct tarn_error tarn_model_no_memory(void)
{
    return (struct tarn_error){
        .status = TARN_SYSTEM, .op = TARN_NONE, .tensor = TARN_NONE, .text = "out of memory"};
}

enum tarn_status tarn_model_init(struct tarn_model *model, const struct tarn_plan *plan,
                                 struct tarn_error *error)
{
    *model = (struct tarn_model){.plan = plan, .graph = tarn_plan_graph(plan)};
    model->streams_count = tarn_graph_streams_count(model->graph);
    tarn_plan_summarize(plan, &model->summary);
    model->has_certificate = tarn_plan_certificate(plan, &model->certificate);
    struct tarn_waits waits = tarn_plan_waits(plan), previous = tarn_plan_boundary_waits(plan);
    if (order_launches(model) && read_spaces(model) &&
        fill_waits(model, &model->waits, waits, false) &&
        fill_waits(model, &model->waiters, waits, true) &&
        fill_waits(model, &model->previous_waits, previous, false) && tarn_holders_read(model))
        return TARN_OK;
    tarn_model_finish(model);
    if (error) *error = tarn_model_no_memory();
    return TARN_SYSTEM;
}

void tarn_model_finish(struct tarn_model *model)
{
    tarn_memory_finish(&model->memory);
    *model = (struct tarn_model){.plan = NULL};
}
