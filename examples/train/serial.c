/* Idea: an interpreter of the graph. A block is what one malloc gives: a storage, or all members of
 * a contiguous group. It is taken by the first op that touches it, and freed after the last one, or
 * at the end.
 * Cost: two calls of malloc for each storage and step, as a framework without a plan. */
#include <stdlib.h>
#include <time.h>

#include "train.h"

enum { ARGUMENTS_MAX = 2 * PARAMETERS_MAX };

struct serial {
    const struct training *training;
    const struct tarn_graph *graph; /* the plan's, or the source graph */
    bool frees;
    uint64_t iteration, now, most; /* bytes of tensors and workspaces, without the state */
    struct block {
        char *memory;    /* NULL: not there */
        uint64_t size;   /* of all members */
        tarn_op last;    /* who touches it last */
        bool persistent; /* the memory is the state's */
    } * blocks;          /* by root tensor; of a group: by its first member */
    struct place {
        tarn_tensor block;
        uint64_t offset, size; /* bytes */
    } * places;                /* by tensor */
};

static void *take(struct serial *s, uint64_t size)
{
    void *memory = aligned_alloc(64, (size + 63) / 64 * 64);
    if (!memory) fail(TARN_SYSTEM, "no memory");
    s->now += size;
    if (s->now > s->most) s->most = s->now;
    return memory;
}

static void give(struct serial *s, void *memory, uint64_t size)
{
    free(memory);
    s->now -= size;
}

static void find_places(struct serial *s, uint32_t tensors)
{
    const struct state *state = &s->training->state;
    for (tarn_tensor t = 0; t < tensors; t++) {
        struct tarn_tensor_info info;
        tarn_graph_tensor(s->graph, t, &info);
        s->places[t] = (struct place){t, 0, info.size};
        s->blocks[t].size = info.size;
        if (t < state->count && state->at[t]) /* others were added by a transform */
            s->blocks[t].memory = state->at[t], s->blocks[t].persistent = true;
    }
    for (uint32_t g = 0; g < tarn_graph_groups_count(s->graph); g++) {
        struct tarn_list group = tarn_graph_group(s->graph, g);
        struct block *block = &s->blocks[group.ids[0]];
        for (size_t i = 1; i < group.count; i++) {
            struct place *member = &s->places[group.ids[i]];
            member->block = group.ids[0], member->offset = block->size;
            block->size += member->size;
        }
    }
    for (tarn_tensor t = 0; t < tensors; t++) { /* aliases are where their root is */
        const struct place *root = &s->places[tarn_graph_root(s->graph, t)];
        s->places[t].block = root->block, s->places[t].offset = root->offset;
    }
}

static void find_last_uses(struct serial *s)
{
    for (tarn_op op = 0; op < tarn_graph_ops_count(s->graph); op++) {
        struct tarn_op_info info;
        tarn_graph_op(s->graph, op, &info);
        for (size_t i = 0; i < info.inputs.count; i++)
            s->blocks[s->places[info.inputs.ids[i]].block].last = op;
        for (size_t i = 0; i < info.outputs.count; i++)
            s->blocks[s->places[info.outputs.ids[i]].block].last = op;
    }
}

struct serial *serial_begin(const struct training *t, bool frees)
{
    struct serial *s = zeros(1, sizeof *s);
    const struct tarn_graph *graph = t->plan ? tarn_plan_graph(t->plan) : t->graph;
    const uint32_t tensors = tarn_graph_tensors_count(graph);
    *s = (struct serial){.training = t, .graph = graph, .frees = frees};
    s->blocks = zeros(tensors, sizeof *s->blocks);
    s->places = zeros(tensors, sizeof *s->places);
    find_places(s, tensors);
    find_last_uses(s);
    return s;
}

static void find(struct serial *s, struct tarn_list list, void **addresses, uint64_t *sizes)
{
    for (size_t i = 0; i < list.count; i++) {
        const struct place *place = &s->places[list.ids[i]];
        struct block *block = &s->blocks[place->block];
        if (!block->memory) block->memory = take(s, block->size);
        addresses[i] = block->memory + place->offset, sizes[i] = place->size;
    }
}

static void end_use(struct serial *s, struct tarn_list list, tarn_op op)
{
    for (size_t i = 0; s->frees && i < list.count; i++) {
        struct block *block = &s->blocks[s->places[list.ids[i]].block];
        if (block->last != op || block->persistent || !block->memory) continue;
        give(s, block->memory, block->size);
        block->memory = NULL;
    }
}

/* Calls the kernel of an op, as written or another implementation, and keeps its fastest time. */
static void call(struct serial *s, tarn_op op, uint32_t implementation,
                 const struct tarn_implementation *as, uint64_t *fastest)
{
    const struct tarn_plan *plan = s->training->plan;
    void *inputs[ARGUMENTS_MAX], *outputs[ARGUMENTS_MAX];
    uint64_t input_sizes[ARGUMENTS_MAX], output_sizes[ARGUMENTS_MAX];
    find(s, as->inputs, inputs, input_sizes);
    find(s, as->outputs, outputs, output_sizes);
    struct tarn_call c = {.op = op,
                          .origin = plan ? tarn_plan_op_origin(plan, op) : op,
                          .implementation = implementation,
                          .iteration = s->iteration,
                          .inputs = inputs,
                          .outputs = outputs,
                          .workspace = as->workspace ? take(s, as->workspace) : NULL,
                          .inputs_count = as->inputs.count,
                          .outputs_count = as->outputs.count,
                          .input_sizes = input_sizes,
                          .output_sizes = output_sizes,
                          .workspace_size = as->workspace};
    const struct kernel *kernel = &s->training->tape.kernels[c.origin];
    const double begin = now();
    int code = kernel->run(kernel->user, &c);
    const uint64_t time = (uint64_t)((now() - begin) * 1e9);
    if (code) fail(TARN_DEVICE, "op %u: the kernel reports %d", op, code);
    if (as->workspace) give(s, c.workspace, as->workspace);
    if (fastest && (!*fastest || time < *fastest)) *fastest = time;
}

void serial_run(struct serial *s, uint64_t steps, struct cost *costs)
{
    const struct tarn_plan *plan = s->training->plan;
    const uint32_t ops = tarn_graph_ops_count(s->graph);
    for (; steps--; s->iteration++)
        for (tarn_op op = 0; op < ops; op++) {
            struct tarn_op_info info;
            tarn_graph_op(s->graph, op, &info);
            const struct tarn_implementation written = {
                .workspace = info.workspace, .inputs = info.inputs, .outputs = info.outputs};
            call(s, op, plan ? tarn_plan_op_implementation(plan, op) : TARN_NONE, &written,
                 costs ? &costs[op].written : NULL);
            if (costs && info.implementations_count) /* there is one at most, here */
                call(s, op, 0, info.implementations, &costs[op].other);
            end_use(s, info.inputs, op);
            end_use(s, info.outputs, op);
        }
}

uint64_t serial_end(struct serial *s)
{
    const uint64_t most = s->most;
    for (tarn_tensor t = 0; t < tarn_graph_tensors_count(s->graph); t++)
        if (!s->blocks[t].persistent) free(s->blocks[t].memory);
    free(s->blocks);
    free(s->places);
    free(s);
    return most;
}
