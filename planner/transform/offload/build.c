/* Builds the graph with the moves of a choice, through the builder, so that it obeys every rule
 * that a loaded graph does. Tensors keep their ids; tensors that moves make are appended and name
 * the version that they hold. Starting at `right`, ops use the storage that came back: a version
 * that they read has the name of its last writer there, and a version that they write in place lies
 * there. With several streams, some ops of other streams are tied to the copies, too, so that they
 * do not run ahead: ops that run later than a release, or earlier than a trigger, by the clock.
 * Cost: linear in the graph, and in gaps times streams. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "clock.h"
#include "planner/transform/recipe.h"
#include "streams/base/error.h"
#include "streams/graph/builder.h"

/* A tensor that a move makes: of the version of a source tensor, in a space; over the bytes of a
 * storage that persists, by its root, or TARN_NONE. */
struct appended {
    uint32_t version;
    tarn_space space;
    uint32_t root;
};

struct building {
    const struct tarn_offload_model *model;
    const struct tarn_graph *graph;
    struct tarn_region region;
    struct tarn_builder *builder;
    struct tarn_offload_trial trial; /* has the choice and its clock */
    uint32_t outs_count;
    uint32_t *root;              /* tensor -> its root in the new graph */
    uint32_t *current, *version; /* by storage: the name by which it is read now, and the version of
                                    this name; TARN_NONE: nothing was written yet */
    uint32_t *segment;           /* by storage: root of the bytes in which it lies now */
    bool *is_away;               /* by storage: it persists, in the other space */
    struct appended *appended;
    uint32_t appended_count;
    uint32_t *host_tensor, *host_version; /* by copy */
    uint32_t *again;                      /* by gap: the tensor that came back */
    uint32_t *out_op;                     /* by copy: in the new graph */
    uint32_t *into_op;                    /* by gap */
    uint32_t *new_op;                     /* by op */
    uint32_t *inputs;                     /* of all ops, renamed */
    uint32_t *ids;
    tarn_space host;
    uint32_t out_stream, into_stream;
};

/* ---- Room ---- */

static enum tarn_status take_room(struct building *building)
{
    struct tarn_region *region = &building->region;
    const struct tarn_graph *graph = building->graph;
    const struct tarn_offload_model *model = building->model;
    size_t slots = 0, longest = tarn_transform_longest_list(graph);
    for (uint32_t v = 0; v < graph->ops_count; v++) slots += graph->ops[v].inputs_count;
    uint32_t **by_storage[] = {&building->current, &building->version, &building->segment};
    for (size_t i = 0; i < 3; i++) {
        *by_storage[i] = tarn_region_take(region, graph->storages_count, sizeof **by_storage[i]);
        for (uint32_t a = 0; *by_storage[i] && a < graph->storages_count; a++)
            (*by_storage[i])[a] = TARN_NONE;
    }
    building->is_away = tarn_region_take(region, graph->storages_count, sizeof(bool));
    building->root = tarn_region_take(region, graph->tensors_count, sizeof(uint32_t));
    building->appended =
        tarn_region_take(region, 2 * (size_t)model->gaps_count, sizeof *building->appended);
    building->host_tensor = tarn_region_take(region, model->copies_count, sizeof(uint32_t));
    building->host_version = tarn_region_take(region, model->copies_count, sizeof(uint32_t));
    building->out_op = tarn_region_take(region, model->copies_count, sizeof(uint32_t));
    building->again = tarn_region_take(region, model->gaps_count, sizeof(uint32_t));
    building->into_op = tarn_region_take(region, model->gaps_count, sizeof(uint32_t));
    building->new_op = tarn_region_take(region, graph->ops_count, sizeof(uint32_t));
    building->inputs = tarn_region_take(region, slots, sizeof(uint32_t));
    building->ids = tarn_region_take(region, longest, sizeof(uint32_t));
    building->builder = tarn_builder_create(graph->name);
    return region->is_exhausted || !building->builder ? TARN_SYSTEM : TARN_OK;
}

/* ---- Names: which tensor every op reads and writes ---- */

static uint32_t append(struct building *building, uint32_t version, tarn_space space, uint32_t root)
{
    building->appended[building->appended_count] = (struct appended){version, space, root};
    return building->graph->tensors_count + building->appended_count++;
}

static void rename_inputs(struct building *building, const struct tarn_graph_op *op,
                          uint32_t *inputs)
{
    const struct tarn_graph *graph = building->graph;
    for (uint32_t k = 0; k < op->inputs_count; k++) {
        uint32_t t = op->inputs[k], a = graph->tensors[t].storage;
        bool is_elsewhere = building->segment[a] != TARN_NONE && !op->view &&
                            building->root[t] != building->segment[a];
        inputs[k] = is_elsewhere ? building->current[a] : t;
    }
}

static void note_outputs(struct building *building, uint32_t v)
{
    const struct tarn_graph *graph = building->graph;
    const struct tarn_graph_op *op = &graph->ops[v];
    for (uint32_t k = op->outputs_count; k-- > 0;) { /* the first in a storage names the version */
        uint32_t t = tarn_outputs(op)[k], a = graph->tensors[t].storage;
        if (op->view) { /* it lies in the bytes of its input */
            for (uint32_t i = 0; i < op->inputs_count; i++)
                if (graph->tensors[op->inputs[i]].storage == a)
                    building->root[t] = building->root[op->inputs[i]];
            continue;
        }
        if (building->segment[a] != TARN_NONE) building->root[t] = building->segment[a];
        building->current[a] = building->version[a] = t;
    }
}

/* Adds the copies of gaps that stand after this place in the list, outs first. */
static void visit_place(struct building *building, uint32_t p, uint32_t *next_out,
                        uint32_t *next_into, void (*out)(struct building *building, uint32_t gap),
                        void (*into)(struct building *building, uint32_t gap, uint32_t place))
{
    const struct tarn_offload_model *model = building->model;
    const struct tarn_offload_trial *trial = &building->trial;
    for (; *next_out < building->outs_count && p != TARN_NONE; ++*next_out) {
        uint32_t g = trial->outs[*next_out];
        if (trial->after[g] != p) break;
        out(building, g);
    }
    for (; *next_into < model->gaps_count; ++*next_into) {
        uint32_t g = model->by_right[*next_into];
        if (!trial->in[g] || !model->gaps[g].has_into) continue;
        if (trial->trigger[g] != p) break;
        into(building, g, p);
    }
}

static void name_out(struct building *building, uint32_t g)
{
    const struct tarn_offload_gap *gap = &building->model->gaps[g];
    const struct tarn_storage *storage = &building->graph->storages[gap->storage];
    if (building->host_tensor[gap->copy] != TARN_NONE) return;
    building->host_version[gap->copy] = building->version[gap->storage];
    building->host_tensor[gap->copy] =
        append(building, building->version[gap->storage], building->host,
               storage->persistent ? storage->tensor : TARN_NONE);
}

static void name_into(struct building *building, uint32_t g, uint32_t place)
{
    const struct tarn_offload_gap *gap = &building->model->gaps[g];
    (void)place;
    if (!gap->has_out) /* as it was before the iteration */
        building->host_tensor[gap->copy] = building->host_version[gap->copy] =
            building->graph->storages[gap->storage].tensor;
    building->again[g] = append(building, building->host_version[gap->copy], 0, TARN_NONE);
}

static void name_all(struct building *building)
{
    const struct tarn_graph *graph = building->graph;
    const struct tarn_offload_trial *trial = &building->trial;
    uint32_t next_out = 0, next_into = 0, *inputs = building->inputs;
    for (uint32_t t = 0; t < graph->tensors_count; t++) building->root[t] = graph->tensors[t].root;
    for (uint32_t c = 0; c < building->model->copies_count; c++)
        building->host_tensor[c] = building->out_op[c] = TARN_NONE;
    visit_place(building, TARN_NONE, &next_out, &next_into, name_out, name_into);
    for (uint32_t p = 0; p < building->model->count; p++) {
        uint32_t v = graph->order[p];
        for (uint32_t g = trial->right_head[p]; g != TARN_NONE; g = trial->right_next[g]) {
            uint32_t a = building->model->gaps[g].storage;
            building->segment[a] = building->current[a] = building->again[g];
        }
        rename_inputs(building, &graph->ops[v], inputs);
        inputs += graph->ops[v].inputs_count;
        note_outputs(building, v);
        visit_place(building, p, &next_out, &next_into, name_out, name_into);
    }
}

/* ---- Records ---- */

static void add_spaces_and_streams(struct building *building)
{
    const struct tarn_graph *graph = building->graph;
    const struct tarn_offload_terms *terms = &building->model->terms;
    struct tarn_builder *builder = building->builder;
    tarn_builder_meta(builder, graph->meta);
    tarn_transform_add_streams(builder, graph);
    building->out_stream = tarn_builder_stream(builder, terms->out_stream);
    building->into_stream = tarn_builder_stream(builder, terms->into_stream);
    building->host = terms->space;
    for (uint32_t s = 1; s < graph->spaces_count && building->host == TARN_NONE; s++)
        if (graph->spaces[s].kind == TARN_SPACE_PINNED) building->host = s;
    if (building->host != TARN_NONE) return;
    const struct tarn_space_info device = {.name = "", .kind = TARN_SPACE_DEVICE};
    const struct tarn_space_info host = {
        .name = "host", .kind = TARN_SPACE_PINNED, .capacity = terms->capacity};
    if (graph->spaces_count == 0) tarn_builder_space(builder, &device);
    building->host = tarn_builder_space(builder, &host);
}

static void add_tensors(struct building *building)
{
    const struct tarn_graph *graph = building->graph;
    for (uint32_t t = 0; t < graph->tensors_count; t++) {
        struct tarn_tensor_info info;
        tarn_graph_tensor(graph, t, &info);
        uint32_t root = building->root[t], storage = graph->tensors[t].storage;
        if (building->is_away[storage] && root == graph->tensors[t].root)
            info.space = building->host;
        if (root >= graph->tensors_count) info.kind = TARN_INTERMEDIATE;
        tarn_builder_alias_of(building->builder, &info, root == t ? TARN_NONE : root);
        tarn_builder_tensor_origin(building->builder, t);
    }
    for (uint32_t i = 0; i < building->appended_count; i++) {
        const struct appended *appended = &building->appended[i];
        struct tarn_tensor_info info;
        tarn_graph_tensor(graph, appended->version, &info);
        bool is_own = appended->root == TARN_NONE;
        if (is_own) info.kind = TARN_INTERMEDIATE;
        info.alignment =
            is_own ? graph->tensors[graph->tensors[appended->version].root].alignment : 0;
        info.space = appended->space;
        info.offset_rule = TARN_OFFSET_FREE;
        info.wanted_offset = 0;
        tarn_builder_alias_of(building->builder, &info, appended->root);
        tarn_builder_tensor_origin(building->builder, appended->version);
    }
}

/* ---- Ops ---- */

static uint32_t add_move(struct building *building, uint32_t stream, uint32_t from, uint32_t to,
                         uint32_t version, const char *word, uint64_t cost)
{
    char name[64];
    snprintf(name, sizeof name, "%s %u", word, version);
    const struct tarn_op_info info = {.name = name,
                                      .kind = "move",
                                      .stream = stream,
                                      .inputs = {&from, 1},
                                      .outputs = {&to, 1},
                                      .cost = cost,
                                      .move = true};
    return tarn_builder_op(building->builder, &info);
}

static void add_out(struct building *building, uint32_t g)
{
    const struct tarn_offload_gap *gap = &building->model->gaps[g];
    if (building->out_op[gap->copy] != TARN_NONE) return;
    building->out_op[gap->copy] = add_move(
        building, building->out_stream, building->current[gap->storage],
        building->host_tensor[gap->copy], building->host_version[gap->copy], "out", gap->out_ns);
}

static void wait_for(struct building *building, uint32_t later, uint32_t earlier)
{
    tarn_builder_control(building->builder, later, earlier);
}

static bool is_launched(const struct building *building, uint32_t p)
{
    return !building->graph->ops[building->graph->order[p]].view;
}

/* In every other stream, the last op before the place that has ended when the trigger has. */
static void add_into(struct building *building, uint32_t g, uint32_t place)
{
    const struct tarn_offload_model *model = building->model;
    const struct tarn_offload_gap *gap = &model->gaps[g];
    const int64_t *end = building->trial.end;
    uint32_t op = building->into_op[g] =
        add_move(building, building->into_stream, building->host_tensor[gap->copy],
                 building->again[g], building->host_version[gap->copy], "into", gap->into_ns);
    if (place == TARN_NONE) return;
    wait_for(building, op, building->new_op[building->graph->order[place]]);
    for (uint32_t s = 0; s < building->graph->streams_count; s++) {
        uint32_t p = place + 1;
        if (s == model->main) continue;
        while (p > 0 && !(model->stream[p - 1] == s && end[p - 1] <= end[place] &&
                          is_launched(building, p - 1)))
            p--;
        if (p > 0) wait_for(building, op, building->new_op[building->graph->order[p - 1]]);
    }
}

/* Lets the op at a release wait for the copy, and for users of the storage in other streams. */
static void add_release(struct building *building, uint32_t g, uint32_t op)
{
    const struct tarn_offload_model *model = building->model;
    const struct tarn_graph *graph = building->graph;
    const struct tarn_offload_gap *gap = &model->gaps[g];
    if (gap->has_out) wait_for(building, op, building->out_op[gap->copy]);
    for (uint32_t i = 0; i < gap->others_count; i++)
        wait_for(building, op, building->new_op[graph->order[model->others[gap->others + i]]]);
}

static bool reads(const uint32_t *inputs, uint32_t count, uint32_t tensor)
{
    for (uint32_t k = 0; k < count; k++)
        if (inputs[k] == tensor) return true;
    return false;
}

static void add_op(struct building *building, uint32_t p, const uint32_t *inputs)
{
    const struct tarn_graph *graph = building->graph;
    const struct tarn_offload_trial *trial = &building->trial;
    uint32_t v = graph->order[p];
    struct tarn_op_info info;
    tarn_graph_op(graph, v, &info);
    for (size_t k = 0; k < info.control.count; k++)
        building->ids[k] = building->new_op[info.control.ids[k]];
    info.control.ids = building->ids;
    if (info.inputs.count > 0 &&
        memcmp(inputs, info.inputs.ids, info.inputs.count * sizeof *inputs) != 0)
        info.inplace_count = 0; /* the pairs name tensors that it has not any more */
    info.inputs.ids = inputs;
    uint32_t op = building->new_op[v] = tarn_builder_op(building->builder, &info);
    tarn_builder_origin(building->builder, v, TARN_NONE);
    for (uint32_t g = trial->right_head[p]; g != TARN_NONE; g = trial->right_next[g])
        if (!reads(inputs, graph->ops[v].inputs_count, building->again[g]))
            wait_for(building, op, building->into_op[g]);
    for (uint32_t g = trial->release_head[p]; g != TARN_NONE; g = trial->release_next[g])
        add_release(building, g, op);
}

/* In every other stream, the first op after the place that begins no earlier than the release waits
 * for the copy, too. */
static void hold_others(struct building *building, uint32_t g)
{
    const struct tarn_offload_model *model = building->model;
    const int64_t *start = building->trial.start;
    uint32_t release = building->trial.release[g];
    if (!model->gaps[g].has_out || release == model->count) return;
    for (uint32_t s = 0; s < building->graph->streams_count; s++) {
        uint32_t p = release;
        if (s == model->main) continue;
        while (p < model->count &&
               !(model->stream[p] == s && start[p] >= start[release] && is_launched(building, p)))
            p++;
        if (p < model->count)
            wait_for(building, building->new_op[building->graph->order[p]],
                     building->out_op[model->gaps[g].copy]);
    }
}

static void add_ops(struct building *building)
{
    const struct tarn_graph *graph = building->graph;
    const struct tarn_offload_trial *trial = &building->trial;
    uint32_t next_out = 0, next_into = 0, *inputs = building->inputs;
    for (uint32_t a = 0; a < graph->storages_count; a++) building->current[a] = TARN_NONE;
    visit_place(building, TARN_NONE, &next_out, &next_into, add_out, add_into);
    for (uint32_t p = 0; p < building->model->count; p++) {
        uint32_t v = graph->order[p];
        const struct tarn_graph_op *op = &graph->ops[v];
        for (uint32_t g = trial->right_head[p]; g != TARN_NONE; g = trial->right_next[g])
            building->current[building->model->gaps[g].storage] = building->again[g];
        add_op(building, p, inputs);
        inputs += op->inputs_count;
        for (uint32_t k = op->outputs_count; k-- > 0 && !op->view;)
            building->current[graph->tensors[tarn_outputs(op)[k]].storage] = tarn_outputs(op)[k];
        visit_place(building, p, &next_out, &next_into, add_out, add_into);
    }
    for (uint32_t g = 0; g < building->model->gaps_count; g++)
        if (trial->in[g] && graph->streams_count > 1) hold_others(building, g);
}

/* ---- The graph ---- */

static enum tarn_status take_choice(struct building *building,
                                    const struct tarn_offload_choice *choice)
{
    struct tarn_offload_model model = *building->model;
    struct tarn_offload_trial *trial = &building->trial;
    model.region = &building->region;
    if (tarn_offload_trial_init(trial, &model) != TARN_OK) return TARN_SYSTEM;
    tarn_offload_trial_take(trial, choice);
    tarn_offload_simulate(trial);
    trial->model = NULL; /* which ends here */
    for (uint32_t g = 0; g < model.gaps_count; g++) {
        if (!trial->in[g]) continue;
        building->outs_count += model.gaps[g].has_out;
        if (model.gaps[g].is_forced) building->is_away[model.gaps[g].storage] = true;
    }
    return TARN_OK;
}

enum tarn_status tarn_offload_build(const struct tarn_offload_model *model,
                                    const struct tarn_offload_choice *choice,
                                    struct tarn_graph **result, struct tarn_error *error)
{
    struct building building = {.model = model, .graph = model->graph};
    *result = NULL;
    assert(choice->count > 0);
    enum tarn_status status = take_room(&building);
    if (status == TARN_OK) status = take_choice(&building, choice);
    if (status == TARN_OK) {
        add_spaces_and_streams(&building);
        name_all(&building);
        add_tensors(&building);
        add_ops(&building);
        tarn_transform_add_groups(building.builder, model->graph, TARN_GROUPS_AS_GIVEN);
        status = tarn_builder_finish(building.builder, result, error);
    } else {
        tarn_builder_destroy(building.builder);
        tarn_error_no_memory(error);
    }
    tarn_region_finish(&building.region);
    return status;
}
