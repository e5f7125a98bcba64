/* The step, for batch b; lines are streams:
 *
 *     copy     load: x ─► h ─────────────────────► stats: h ─► s (an output)
 *     compute        forward: h, w ─► a ─► loss ─► backward: a, w ─► g        update: g, w ─► w
 *     network                                                  reduce: g ─► g
 *
 * The short one has the copy stream alone, with the loss in it: what it lets run on must still be
 * waited for by whoever comes after it. With several memory spaces, w, h and the outputs are in
 * pinned memory, and workspaces in a scratchpad.
 */
#include "buckets.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "session_calls.h"

static tarn_tensor tensor(struct tarn_builder *b, const char *name, uint64_t size,
                          enum tarn_tensor_kind kind, tarn_space space)
{
    return tarn_builder_tensor(
        b, &(struct tarn_tensor_info){.name = name, .size = size, .kind = kind, .space = space});
}

struct spaces {
    tarn_space device, pinned, chip;
};

/* All are space 0 where the graph declares none. */
static struct spaces declare_spaces(struct tarn_builder *b, bool has_spaces)
{
    struct spaces spaces = {0, 0, 0};
    if (!has_spaces) return spaces;
    spaces.device = tarn_builder_space(b, &(struct tarn_space_info){.name = "device"});
    spaces.pinned = tarn_builder_space(
        b, &(struct tarn_space_info){.name = "pinned", .kind = TARN_SPACE_PINNED});
    spaces.chip = tarn_builder_space(
        b, &(struct tarn_space_info){.name = "chip", .kind = TARN_SPACE_SCRATCH});
    return spaces;
}

static tarn_op op(struct tarn_builder *b, const char *name, tarn_stream stream,
                  struct tarn_list inputs, struct tarn_list outputs, uint64_t workspace,
                  tarn_space workspace_space)
{
    return tarn_builder_op(b, &(struct tarn_op_info){.name = name,
                                                     .stream = stream,
                                                     .inputs = inputs,
                                                     .outputs = outputs,
                                                     .workspace = workspace,
                                                     .workspace_space = workspace_space});
}

static struct tarn_graph *build(uint32_t batch, bool is_short, bool has_spaces)
{
    char name[32];
    struct tarn_graph *graph;
    struct tarn_error error;
    uint64_t size = 40 * (uint64_t)batch;
    snprintf(name, sizeof name, "batch %u", batch);
    struct tarn_builder *b = tarn_builder_create(name);
    tarn_stream copy = tarn_builder_stream(b, "copy"), compute = tarn_builder_stream(b, "compute");
    tarn_stream network = tarn_builder_stream(b, "network");
    const struct spaces in = declare_spaces(b, has_spaces);
    tarn_tensor x = tensor(b, "x", size, TARN_INPUT, in.device);
    tarn_tensor w = tensor(b, "w", BUCKET_WEIGHT, TARN_PARAMETER, in.pinned);
    tarn_tensor h = tensor(b, "h", size, TARN_INTERMEDIATE, in.pinned);
    tarn_tensor l = tensor(b, "l", 8, TARN_OUTPUT, in.pinned);
    tarn_tensor s = tensor(b, "s", 16, TARN_OUTPUT, in.pinned);
    op(b, "load", copy, TARN_TENSORS(x), TARN_TENSORS(h), 0, 0);
    if (is_short) {
        op(b, "loss", copy, TARN_TENSORS(h), TARN_TENSORS(l), 0, 0);
        op(b, "stats", copy, TARN_TENSORS(h), TARN_TENSORS(s), 0, 0);
        require(tarn_builder_finish(b, &graph, &error), &error);
        return graph;
    }
    tarn_tensor a = tensor(b, "a", 2 * size, TARN_INTERMEDIATE, in.device);
    tarn_tensor g = tensor(b, "g", BUCKET_WEIGHT, TARN_GRADIENT, in.device);
    tarn_tensor reduced = tarn_builder_alias(b, g, "reduced");
    tarn_tensor updated = tarn_builder_alias(b, w, "updated");
    op(b, "forward", compute, TARN_TENSORS(h, w), TARN_TENSORS(a), size, in.chip);
    op(b, "loss", compute, TARN_TENSORS(a), TARN_TENSORS(l), 0, 0);
    op(b, "backward", compute, TARN_TENSORS(a, w), TARN_TENSORS(g), 3 * size, in.chip);
    op(b, "stats", copy, TARN_TENSORS(h), TARN_TENSORS(s), 0, 0);
    op(b, "reduce", network, TARN_TENSORS(g), TARN_TENSORS(reduced), 0, 0);
    op(b, "update", compute, TARN_TENSORS(reduced, w), TARN_TENSORS(updated), 0, 0);
    require(tarn_builder_finish(b, &graph, &error), &error);
    return graph;
}

struct tarn_graph *bucket_graph(uint32_t batch, bool is_short)
{
    return build(batch, is_short, false);
}

/* ---- Kernels ---- */

static uint64_t mix(uint64_t seed, const unsigned char *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++) seed = (seed ^ bytes[i]) * UINT64_C(0x100000001b3) + 1;
    return seed;
}

static void spread(uint64_t seed, unsigned char *bytes, size_t count)
{
    struct random_source source = {seed};
    for (size_t i = 0; i < count; i++) bytes[i] = (unsigned char)random_next(&source);
}

static unsigned char *at(const struct buckets *buckets, void *address)
{
    return buckets->paper && buckets->paper->regions ? queue_device_bytes(buckets->paper, address)
                                                     : address;
}

static void work(void *user, const struct tarn_call *call)
{
    struct buckets *buckets = user;
    uint64_t seed = call->op;
    for (size_t i = 0; i < call->inputs_count; i++)
        seed = mix(seed, at(buckets, call->inputs[i]), (size_t)call->input_sizes[i]);
    if (call->workspace) memset(at(buckets, call->workspace), 0xa5, (size_t)call->workspace_size);
    for (size_t i = 0; i < call->outputs_count; i++)
        spread(seed + i, at(buckets, call->outputs[i]), (size_t)call->output_sizes[i]);
}

enum { LAUNCHES = 1 << 14 }; /* that may be under way, or in captured blocks */

/* What is enqueued takes addresses with it, as launches on accelerators do. */
struct bucket_launch {
    struct buckets *buckets;
    struct tarn_call call;
    void *inputs[4], *outputs[4];
};

static void run_launch(void *argument)
{
    struct bucket_launch *launch = argument;
    work(launch->buckets, &launch->call);
}

static struct bucket_launch *keep(struct buckets *buckets, const struct tarn_call *call)
{
    struct bucket_launch *launch = &buckets->launches[buckets->launched++ % LAUNCHES];
    assert_true(call->inputs_count <= 4 && call->outputs_count <= 4);
    *launch = (struct bucket_launch){.buckets = buckets, .call = *call};
    memcpy(launch->inputs, call->inputs, call->inputs_count * sizeof(void *));
    memcpy(launch->outputs, call->outputs, call->outputs_count * sizeof(void *));
    launch->call.inputs = launch->inputs;
    launch->call.outputs = launch->outputs;
    return launch;
}

int bucket_kernel(void *user, const struct tarn_call *call)
{
    struct buckets *buckets = user;
    if (buckets->enqueue) return buckets->enqueue(call->queue, run_launch, keep(buckets, call));
    if (buckets->paper && !buckets->paper->closures)
        queue_device_enqueue(buckets->paper, work, buckets, &keep(buckets, call)->call);
    else
        work(buckets, call);
    return 0;
}

/* ---- The reference ---- */

static unsigned char *root_bytes(struct buckets *buckets, uint32_t k, tarn_tensor tensor)
{
    return buckets->bytes[k][tarn_graph_root(buckets->graphs[k], tensor)];
}

unsigned char *buckets_bytes(struct buckets *buckets, uint32_t bucket, const char *name)
{
    return root_bytes(buckets, bucket, tarn_graph_find_tensor(buckets->graphs[bucket], name));
}

void buckets_step(struct buckets *buckets, uint32_t bucket)
{
    const struct tarn_graph *graph = buckets->graphs[bucket];
    for (tarn_op v = 0; v < tarn_graph_ops_count(graph); v++) {
        struct tarn_op_info info;
        struct tarn_tensor_info bytes;
        uint64_t seed = v;
        tarn_graph_op(graph, v, &info);
        for (size_t i = 0; i < info.inputs.count; i++) {
            tarn_graph_tensor(graph, info.inputs.ids[i], &bytes);
            seed = mix(seed, root_bytes(buckets, bucket, info.inputs.ids[i]), (size_t)bytes.size);
        }
        for (size_t i = 0; i < info.outputs.count; i++) {
            tarn_graph_tensor(graph, info.outputs.ids[i], &bytes);
            spread(seed + i, root_bytes(buckets, bucket, info.outputs.ids[i]), (size_t)bytes.size);
        }
    }
}

/* What is persistent is common to all buckets, as large as in the last one. */
static void own_bytes(struct buckets *buckets)
{
    for (uint32_t k = BUCKETS; k-- > 0;) {
        for (tarn_tensor t = 0; t < tarn_graph_tensors_count(buckets->graphs[k]); t++) {
            struct tarn_tensor_info info;
            tarn_graph_tensor(buckets->graphs[k], t, &info);
            bool is_common = info.kind == TARN_INPUT || info.kind == TARN_PARAMETER;
            if (is_common && k + 1 < BUCKETS) {
                buckets->bytes[k][t] = buckets->bytes[BUCKETS - 1][t];
                continue;
            }
            buckets->bytes[k][t] = calloc(1, (size_t)info.size);
            buckets->is_owner[k][t] = true;
        }
    }
}

static void init(struct buckets *buckets, struct queue_device *paper, bool has_spaces)
{
    struct tarn_error error;
    *buckets = (struct buckets){.paper = paper};
    buckets->launches = calloc(LAUNCHES, sizeof *buckets->launches);
    for (uint32_t k = 0; k < BUCKETS; k++)
        buckets->graphs[k] = build(1 + 3 * k, k == 1, has_spaces);
    require(tarn_family_plan(buckets->graphs, BUCKETS,
                             TARN_PLAN_OPTIONS(.alignment = 8, .threads = 1), buckets->plans,
                             &error),
            &error);
    own_bytes(buckets);
}

void buckets_init(struct buckets *buckets, struct queue_device *paper)
{
    init(buckets, paper, false);
}

void buckets_init_spaces(struct buckets *buckets, struct queue_device *paper)
{
    init(buckets, paper, true);
}

void buckets_finish(struct buckets *buckets)
{
    for (uint32_t k = 0; k < BUCKETS; k++) {
        tarn_plan_destroy(buckets->plans[k]);
        tarn_graph_destroy(buckets->graphs[k]);
        for (uint32_t t = 0; t < BUCKET_TENSORS; t++)
            if (buckets->is_owner[k][t]) free(buckets->bytes[k][t]);
    }
    free(buckets->launches);
}
