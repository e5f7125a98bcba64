/* Idea: an interpreter of the graph. A block is what one malloc gives: a storage, or all members of
 * a contiguous group. It is taken by the first op that touches it, and freed after the last one, or
 * at the end.
 * Cost: two calls of malloc for each storage and step, as a framework without a plan. */
#include "serial.h"

#include <stdlib.h>
#include <time.h>

#include "fail.h"

struct block {
    char *memory;     /* NULL: not there */
    uint64_t size;    /* of the block; of a tensor that heads none: 0 */
    tarn_tensor head; /* of the tensor: whose block it is part of */
    uint64_t offset;  /* in that block */
    tarn_op last;     /* who touches the block last */
    bool persistent;  /* the memory is the state's */
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

/* Calls `each` for all blocks that an op touches, inputs first. */
static void for_blocks(struct serial *s, const struct tarn_op_info *info,
                       void (*each)(struct serial *, struct block *, tarn_op), tarn_op op)
{
    const struct tarn_list lists[] = {info->inputs, info->outputs};
    for (int k = 0; k < 2; k++)
        for (size_t i = 0; i < lists[k].count; i++) {
            tarn_tensor root = tarn_graph_root(s->graph, lists[k].ids[i]);
            each(s, &s->blocks[s->blocks[root].head], op);
        }
}

static void set_last(struct serial *s, struct block *block, tarn_op op)
{
    (void)s;
    block->last = op;
}

void serial_begin(struct serial *s)
{
    uint32_t tensors = tarn_graph_tensors_count(s->graph), ops = tarn_graph_ops_count(s->graph);
    s->blocks = calloc(tensors, sizeof *s->blocks);
    if (!s->blocks) fail(TARN_SYSTEM, "no memory");
    for (tarn_tensor t = 0; t < tensors; t++) {
        struct tarn_tensor_info info;
        tarn_graph_tensor(s->graph, t, &info);
        s->blocks[t] = (struct block){.size = info.size, .head = t};
        /* A tensor that a transform has added is none of the state's. */
        if (t < s->state->count && s->state->at[t])
            s->blocks[t].memory = s->state->at[t], s->blocks[t].persistent = true;
    }
    for (uint32_t g = 0; g < tarn_graph_groups_count(s->graph); g++) {
        struct tarn_list group = tarn_graph_group(s->graph, g);
        struct block *head = &s->blocks[group.ids[0]];
        for (size_t i = 1; i < group.count; i++) {
            struct block *member = &s->blocks[group.ids[i]];
            member->head = group.ids[0], member->offset = head->size;
            head->size += member->size;
        }
    }
    for (tarn_op op = 0; op < ops; op++) {
        struct tarn_op_info info;
        tarn_graph_op(s->graph, op, &info);
        for_blocks(s, &info, set_last, op);
    }
}

static void begin_use(struct serial *s, struct block *block, tarn_op op)
{
    (void)op;
    if (!block->memory) block->memory = take(s, block->size);
}

static void end_use(struct serial *s, struct block *block, tarn_op op)
{
    if (block->last != op || block->persistent || !block->memory || !s->frees) return;
    give(s, block->memory, block->size);
    block->memory = NULL;
}

static void *address(const struct serial *s, tarn_tensor tensor)
{
    const struct block *root = &s->blocks[tarn_graph_root(s->graph, tensor)];
    return s->blocks[root->head].memory + root->offset;
}

enum { TENSORS_MAX = 128 };
struct addresses {
    void *at[TENSORS_MAX];
    uint64_t sizes[TENSORS_MAX];
};

static void find(const struct serial *s, struct tarn_list list, struct addresses *addresses)
{
    if (list.count > TENSORS_MAX) fail(TARN_USAGE, "an op has more than %d tensors", TENSORS_MAX);
    for (size_t i = 0; i < list.count; i++) {
        struct tarn_tensor_info info;
        tarn_graph_tensor(s->graph, list.ids[i], &info);
        addresses->at[i] = address(s, list.ids[i]);
        addresses->sizes[i] = info.size;
    }
}

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* Calls the kernel of an op, as written or another implementation; returns nanoseconds. */
static uint64_t call(struct serial *s, tarn_op op, uint32_t implementation, struct tarn_list in,
                     struct tarn_list out, uint64_t workspace)
{
    struct addresses inputs, outputs;
    struct tarn_op_info info;
    tarn_graph_op(s->graph, op, &info);
    find(s, in, &inputs), find(s, out, &outputs);
    struct tarn_call c = {.op = op,
                          .origin = s->plan ? tarn_plan_op_origin(s->plan, op) : op,
                          .implementation = implementation,
                          .recomputed = s->plan && tarn_plan_op_is_recomputed(s->plan, op),
                          .stream = info.stream,
                          .iteration = s->iteration,
                          .inputs = inputs.at,
                          .outputs = outputs.at,
                          .workspace = workspace ? take(s, workspace) : NULL,
                          .inputs_count = in.count,
                          .outputs_count = out.count,
                          .input_sizes = inputs.sizes,
                          .output_sizes = outputs.sizes,
                          .workspace_size = workspace};
    const struct kernel *kernel = &s->tape->kernels[c.origin];
    uint64_t begin = now_ns();
    int code = kernel->run(kernel->user, &c);
    uint64_t time = now_ns() - begin;
    if (code) fail(TARN_DEVICE, "%s: the kernel reports %d", info.name, code);
    if (workspace) give(s, c.workspace, workspace);
    return time;
}

static void keep_fastest(uint64_t *fastest, uint64_t time)
{
    if (!*fastest || time < *fastest) *fastest = time;
}

static void run_op(struct serial *s, tarn_op op)
{
    struct tarn_op_info info;
    tarn_graph_op(s->graph, op, &info);
    if (info.view) return;
    for_blocks(s, &info, begin_use, op);
    uint32_t implementation = s->plan ? tarn_plan_op_implementation(s->plan, op) : TARN_NONE;
    uint64_t time = call(s, op, implementation, info.inputs, info.outputs, info.workspace);
    if (s->costs) keep_fastest(&s->costs[op].written, time);
    for (size_t i = 0; s->costs && i < info.implementations_count; i++) { /* at most one, here */
        const struct tarn_implementation *other = &info.implementations[i];
        time = call(s, op, (uint32_t)i, other->inputs, other->outputs, other->workspace);
        keep_fastest(&s->costs[op].other, time);
    }
    for_blocks(s, &info, end_use, op);
}

void serial_run(struct serial *s, uint64_t iterations)
{
    uint32_t ops = tarn_graph_ops_count(s->graph);
    for (; iterations--; s->iteration++)
        for (tarn_op op = 0; op < ops; op++) run_op(s, op);
}

void serial_end(struct serial *s)
{
    uint32_t tensors = tarn_graph_tensors_count(s->graph);
    for (tarn_tensor t = 0; t < tensors; t++)
        if (!s->blocks[t].persistent) free(s->blocks[t].memory);
    free(s->blocks);
}
