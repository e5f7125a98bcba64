/* Idea: what Tarn is compared with. The session calls one kernel for all ops, which calls the op's
 * own one with other memory than the plan's: from malloc, for each storage by itself, when the
 * first op touches it; freed after the last one, or at the end. It takes a graph of one stream, and
 * buckets of one gradient, as malloc makes no neighbours.
 * Cost: two calls of malloc for each storage and step, as a framework without a plan. */
#include <stdlib.h>

#include "train.h"

struct heap {
    const struct program *program;
    const struct tarn_graph *graph; /* the plan's */
    bool frees;
    uint64_t bytes, most; /* of tensors and workspaces, without what lasts */
    struct block {
        char *memory;      /* NULL: not there */
        uint64_t size;     /* 0: it lasts, and is not the heap's */
        tarn_op last;      /* who touches it last */
    } blocks[TENSORS_MAX]; /* by root tensor */
};

static void *take(struct heap *h, uint64_t size)
{
    void *memory = size ? aligned_alloc(64, (size + 63) / 64 * 64) : NULL;
    if (size && !memory) fail(TARN_SYSTEM, "no memory");
    h->bytes += size;
    if (h->bytes > h->most) h->most = h->bytes;
    return memory;
}

static void give(struct heap *h, void *memory, uint64_t size)
{
    free(memory);
    h->bytes -= size;
}

static struct block *block_of(struct heap *h, tarn_tensor t)
{
    return &h->blocks[tarn_graph_root(h->graph, t)];
}

struct heap *heap_create(const struct program *p, bool frees)
{
    struct heap *h = zeros(1, sizeof *h);
    *h = (struct heap){.program = p, .graph = tarn_plan_graph(p->plan), .frees = frees};
    for (tarn_tensor t = 0; t < tarn_graph_tensors_count(h->graph); t++) {
        struct tarn_tensor_info info;
        tarn_graph_tensor(h->graph, t, &info);
        h->blocks[t].memory = p->tape.memory[t];
        if (!h->blocks[t].memory) h->blocks[t].size = info.size;
    }
    for (tarn_op op = 0; op < tarn_graph_ops_count(h->graph); op++) {
        struct tarn_op_info info;
        tarn_graph_op(h->graph, op, &info);
        for (size_t i = 0; i < info.inputs.count; i++) block_of(h, info.inputs.ids[i])->last = op;
        for (size_t i = 0; i < info.outputs.count; i++) block_of(h, info.outputs.ids[i])->last = op;
    }
    return h;
}

int heap_run(void *user, const struct tarn_call *call)
{
    struct heap *h = user;
    struct tarn_call here = *call;
    struct tarn_op_info info;
    void *addresses[2][LAYERS_MAX];
    tarn_graph_op(h->graph, call->op, &info);
    const struct tarn_list lists[2] = {info.inputs, info.outputs};
    for (int k = 0; k < 2; k++)
        for (size_t i = 0; i < lists[k].count; i++) {
            struct block *block = block_of(h, lists[k].ids[i]);
            if (!block->memory) block->memory = take(h, block->size);
            addresses[k][i] = block->memory;
        }
    here.inputs = addresses[0], here.outputs = addresses[1];
    here.workspace = take(h, info.workspace);
    const int code = tape_run((void *)&h->program->tape, &here);
    give(h, here.workspace, info.workspace);
    for (int k = 0; k < 2; k++)
        for (size_t i = 0; i < lists[k].count; i++) {
            struct block *block = block_of(h, lists[k].ids[i]);
            if (!h->frees || block->last != call->op || !block->size || !block->memory) continue;
            give(h, block->memory, block->size);
            block->memory = NULL;
        }
    return code;
}

uint64_t heap_destroy(struct heap *h)
{
    const uint64_t most = h->most;
    for (tarn_tensor t = 0; t < TENSORS_MAX; t++)
        if (h->blocks[t].size) free(h->blocks[t].memory);
    free(h);
    return most;
}
