/* Random graphs, drawn in an execution order first and handed to the builder afterwards.
 *
 * Ops come one after another, each in a random stream, so cyclic stream graphs arise by themselves.
 * Every storage remembers its last writer and who has read it since; an op that reads or writes it
 * gets a control arc from whatever it must follow and neither its stream nor a data arc orders. The
 * draft so made is then listed in that order, or in another interleaving of the streams.
 * Cost: O(ops^2) at worst, for hazards. */
#include "random_graph.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { INPUTS_MAX = 4, OUTPUTS_MAX = 3, GROUP_MAX = 5 };

uint64_t random_next(struct random_source *source)
{
    uint64_t z = source->state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

uint32_t random_below(struct random_source *source, uint32_t limit)
{
    return (uint32_t)(((random_next(source) >> 32) * limit) >> 32);
}

bool random_percent(struct random_source *source, uint32_t percent)
{
    return random_below(source, 100) < percent;
}

/* ---- The draft ---- */

struct draft_op {
    uint32_t stream;
    uint32_t inputs[INPUTS_MAX], outputs[OUTPUTS_MAX];
    uint32_t inputs_count, outputs_count;
    uint64_t workspace;
    bool view;
};

struct draft_tensor {
    uint32_t root;   /* its own index for a root */
    uint32_t source; /* alias: the tensor it was made of */
    uint32_t writer; /* op whose write it shows; TARN_NONE: what the caller wrote */
    uint64_t size, alignment;
    enum tarn_tensor_kind kind;
    bool dead; /* nobody may read it */
    bool grouped;
    uint32_t space;
    uint32_t last_writer; /* root: of its storage */
    uint32_t reads_begin; /* root: reads before this index precede the last write */
};

struct draft_read {
    uint32_t root, op;
};

struct draft_arc {
    uint32_t later, earlier;
};

struct draft {
    const struct random_graph_options *options;
    struct random_source source;
    struct draft_op *ops;
    struct draft_tensor *tensors;
    struct draft_read *reads; /* of storages, in time */
    struct draft_arc *arcs;   /* control arcs, grouped by their later op */
    uint32_t ops_count, tensors_count, reads_count, arcs_count;
    size_t arcs_room;
};

static void *take(size_t count, size_t size)
{
    void *memory = calloc(count + 1, size);
    if (!memory) abort();
    return memory;
}

static struct draft draft_create(const struct random_graph_options *options)
{
    assert(options->ops > 0 && options->streams > 0);
    struct draft draft = {.options = options, .source = {options->seed}};
    size_t tensors = options->parameters + (size_t)options->ops * OUTPUTS_MAX;
    draft.ops = take(options->ops, sizeof *draft.ops);
    draft.tensors = take(tensors, sizeof *draft.tensors);
    draft.reads = take((size_t)options->ops * INPUTS_MAX, sizeof *draft.reads);
    return draft;
}

static void draft_destroy(struct draft *draft)
{
    free(draft->ops);
    free(draft->tensors);
    free(draft->reads);
    free(draft->arcs);
}

static uint64_t draw_size(struct draft *draft)
{
    const struct random_graph_options *options = draft->options;
    if (random_percent(&draft->source, options->tiny_share))
        return 1 + random_below(&draft->source, 3);
    return 1 + random_below(&draft->source, options->size_max ? options->size_max : 4096);
}

static uint64_t draw_alignment(struct draft *draft)
{
    if (!random_percent(&draft->source, draft->options->alignment_share)) return 0;
    return UINT64_C(1) << random_below(&draft->source, 13);
}

/* Drawn apart, so that a graph is otherwise the same however many there are. */
static uint32_t draw_space(const struct draft *draft, uint64_t of)
{
    if (draft->options->spaces == 0) return 0;
    struct random_source source = {draft->options->seed * 31 + of};
    return random_below(&source, draft->options->spaces);
}

static uint32_t add_root(struct draft *draft, enum tarn_tensor_kind kind, uint32_t writer)
{
    uint32_t t = draft->tensors_count++;
    struct draft_tensor *tensor = &draft->tensors[t];
    tensor->root = tensor->source = t;
    tensor->writer = tensor->last_writer = writer;
    tensor->kind = kind;
    tensor->size = draw_size(draft);
    tensor->alignment = draw_alignment(draft);
    tensor->space = draw_space(draft, t);
    tensor->dead = random_percent(&draft->source, draft->options->dead_share);
    tensor->reads_begin = draft->reads_count;
    return t;
}

static uint32_t add_alias(struct draft *draft, uint32_t source, uint32_t writer)
{
    uint32_t t = draft->tensors_count++;
    draft->tensors[t] = (struct draft_tensor){
        .root = draft->tensors[source].root, .source = source, .writer = writer};
    return t;
}

/* ---- Hazards ---- */

static void order_after(struct draft *draft, uint32_t later, uint32_t earlier)
{
    if (earlier == TARN_NONE || earlier == later) return;
    for (uint32_t k = draft->arcs_count; k-- > 0 && draft->arcs[k].later == later;) {
        if (draft->arcs[k].earlier == earlier) return;
    }
    if (draft->arcs_count == draft->arcs_room) {
        draft->arcs_room = draft->arcs_room * 2 + 64;
        draft->arcs = realloc(draft->arcs, draft->arcs_room * sizeof *draft->arcs);
        if (!draft->arcs) abort();
    }
    draft->arcs[draft->arcs_count++] = (struct draft_arc){later, earlier};
}

static void order_unless_in_stream(struct draft *draft, uint32_t later, uint32_t earlier)
{
    if (earlier == TARN_NONE || draft->ops[earlier].stream == draft->ops[later].stream) return;
    order_after(draft, later, earlier);
}

/* A tensor that shows the storage's last write is ordered after it by its own data arcs, however
 * many views lie between. */
static void note_read(struct draft *draft, uint32_t op, uint32_t tensor)
{
    uint32_t root = draft->tensors[tensor].root;
    uint32_t last_writer = draft->tensors[root].last_writer;
    if (draft->tensors[tensor].writer != last_writer)
        order_unless_in_stream(draft, op, last_writer);
    draft->reads[draft->reads_count++] = (struct draft_read){root, op};
}

static void note_write(struct draft *draft, uint32_t op, uint32_t root)
{
    struct draft_tensor *storage = &draft->tensors[root];
    order_unless_in_stream(draft, op, storage->last_writer);
    for (uint32_t k = storage->reads_begin; k < draft->reads_count; k++) {
        if (draft->reads[k].root == root) order_unless_in_stream(draft, op, draft->reads[k].op);
    }
    storage->last_writer = op;
    storage->reads_begin = draft->reads_count;
}

/* ---- Drawing ops ---- */

static bool contains(const uint32_t *ids, uint32_t count, uint32_t id)
{
    for (uint32_t i = 0; i < count; i++) {
        if (ids[i] == id) return true;
    }
    return false;
}

/* A tensor that may be read, or TARN_NONE when the draw hits none. */
static uint32_t draw_tensor(struct draft *draft)
{
    uint32_t count = draft->tensors_count;
    uint32_t reach = draft->options->reach;
    if (count == 0) return TARN_NONE;
    bool from_all = reach == 0 || reach > count || random_percent(&draft->source, 5);
    uint32_t t = count - 1 - random_below(&draft->source, from_all ? count : reach);
    return draft->tensors[draft->tensors[t].root].dead ? TARN_NONE : t;
}

static void draw_inputs(struct draft *draft, struct draft_op *op)
{
    uint32_t wanted = random_below(&draft->source, INPUTS_MAX + 1);
    for (uint32_t i = 0; i < wanted; i++) {
        uint32_t t = draw_tensor(draft);
        if (t != TARN_NONE && !contains(op->inputs, op->inputs_count, t))
            op->inputs[op->inputs_count++] = t;
    }
}

/* A view reads one tensor and names it once or twice more. */
static void draw_view(struct draft *draft, uint32_t index, uint32_t input)
{
    struct draft_op *op = &draft->ops[index];
    op->view = true;
    op->inputs[op->inputs_count++] = input;
    op->outputs_count = 1 + random_below(&draft->source, 2);
    for (uint32_t i = 0; i < op->outputs_count; i++)
        op->outputs[i] = add_alias(draft, input, draft->tensors[input].writer);
}

static enum tarn_tensor_kind draw_kind(struct draft *draft)
{
    if (random_percent(&draft->source, draft->options->output_share)) return TARN_OUTPUT;
    return random_percent(&draft->source, 30) ? TARN_GRADIENT : TARN_INTERMEDIATE;
}

static void draw_inplace_write(struct draft *draft, uint32_t index)
{
    struct draft_op *op = &draft->ops[index];
    if (!random_percent(&draft->source, draft->options->inplace_share)) return;
    uint32_t t = draw_tensor(draft);
    if (t == TARN_NONE) return;
    bool reads = random_percent(&draft->source, 75);
    if (reads && op->inputs_count < INPUTS_MAX && !contains(op->inputs, op->inputs_count, t)) {
        op->inputs[op->inputs_count++] = t;
        note_read(draft, index, t);
    }
    note_write(draft, index, draft->tensors[t].root);
    op->outputs[op->outputs_count++] = add_alias(draft, t, index);
}

static void draw_worker(struct draft *draft, uint32_t index)
{
    struct draft_op *op = &draft->ops[index];
    draw_inputs(draft, op);
    for (uint32_t i = 0; i < op->inputs_count; i++) note_read(draft, index, op->inputs[i]);
    draw_inplace_write(draft, index);
    uint32_t roots = random_below(&draft->source, OUTPUTS_MAX - op->outputs_count + 1);
    for (uint32_t i = 0; i < roots; i++)
        op->outputs[op->outputs_count++] = add_root(draft, draw_kind(draft), index);
    if (random_percent(&draft->source, draft->options->workspace_share))
        op->workspace = draw_size(draft);
}

/* Control arcs that nothing asks for; what a view stands for is demanded through it. */
static void draw_control(struct draft *draft, uint32_t index)
{
    for (uint32_t arcs = 1 + random_below(&draft->source, 4); arcs > 0; arcs--) {
        uint32_t earlier = random_below(&draft->source, index);
        bool wants_view = random_percent(&draft->source, 50);
        for (uint32_t i = 0; wants_view && i < index && !draft->ops[earlier].view; i++)
            earlier = (earlier + 1) % index;
        order_after(draft, index, earlier);
    }
}

static void draw_op(struct draft *draft)
{
    uint32_t index = draft->ops_count++;
    draft->ops[index].stream = random_below(&draft->source, draft->options->streams);
    if (index > 0 && random_percent(&draft->source, draft->options->control_share))
        order_after(draft, index, random_below(&draft->source, index));
    if (index > 0 && draft->options->fill_share > 0 &&
        random_percent(&draft->source, draft->options->fill_share))
        draw_control(draft, index);
    bool wants_view = random_percent(&draft->source, draft->options->view_share);
    uint32_t input = wants_view ? draw_tensor(draft) : TARN_NONE;
    if (input != TARN_NONE)
        draw_view(draft, index, input);
    else
        draw_worker(draft, index);
}

static void draw_draft(struct draft *draft)
{
    for (uint32_t i = 0; i < draft->options->parameters; i++) {
        uint32_t kind = TARN_PARAMETER + random_below(&draft->source, 3);
        add_root(draft, (enum tarn_tensor_kind)kind, TARN_NONE);
    }
    for (uint32_t i = 0; i < draft->options->ops; i++) draw_op(draft);
}

/* ---- Handing over to the builder ---- */

/* Random groups of one or more planned or persistent roots; only the first member may be aligned,
 * and a group is drawn before the builder sees its tensors. */
static uint32_t draw_group(struct draft *draft, uint32_t first, uint32_t *members)
{
    uint32_t count = 0;
    uint32_t wanted = 1 + random_below(&draft->source, GROUP_MAX);
    bool persistent = draft->tensors[first].kind >= TARN_PARAMETER;
    for (uint32_t t = first; t < draft->tensors_count && count < wanted; t++) {
        struct draft_tensor *tensor = &draft->tensors[t];
        bool fits =
            tensor->root == t && !tensor->grouped && (tensor->kind >= TARN_PARAMETER) == persistent;
        if (!fits || (count > 0 && random_percent(&draft->source, 40))) continue;
        if (count > 0) tensor->alignment = 0;
        members[count++] = t;
    }
    for (uint32_t i = 0; i < count; i++) {
        draft->tensors[members[i]].grouped = true;
        draft->tensors[members[i]].space = draft->tensors[first].space;
    }
    if (count > 1 && random_percent(&draft->source, 30)) { /* in any order */
        uint32_t last = members[count - 1];
        members[count - 1] = members[0];
        members[0] = last;
        draft->tensors[members[count - 1]].alignment = 0;
    }
    return count;
}

struct group_list {
    uint32_t (*members)[GROUP_MAX];
    uint32_t *counts;
    uint32_t count;
};

static struct group_list draw_groups(struct draft *draft)
{
    struct group_list groups = {0};
    groups.members = take(draft->tensors_count, sizeof *groups.members);
    groups.counts = take(draft->tensors_count, sizeof *groups.counts);
    for (uint32_t t = 0; t < draft->tensors_count; t++) {
        struct draft_tensor *tensor = &draft->tensors[t];
        if (tensor->root != t || tensor->grouped) continue;
        if (!random_percent(&draft->source, draft->options->group_share)) continue;
        groups.counts[groups.count] = draw_group(draft, t, groups.members[groups.count]);
        groups.count++;
    }
    return groups;
}

static void build_spaces(const struct draft *draft, struct tarn_builder *builder)
{
    static const uint64_t alignments[] = {0, 1, 16, 256};
    struct random_source source = {draft->options->seed * 31 + TARN_NONE};
    char name[32];
    for (uint32_t s = 0; s < draft->options->spaces; s++) {
        snprintf(name, sizeof name, "space%u", s);
        tarn_builder_space(
            builder,
            &(struct tarn_space_info){
                .name = name,
                .kind = (enum tarn_space_kind)random_below(&source, TARN_SPACE_SCRATCH + 1),
                .alignment = alignments[random_below(&source, 4)],
                .capacity = draft->options->capacities ? draft->options->capacities[s] : 0});
    }
}

static void build_tensors(const struct draft *draft, struct tarn_builder *builder)
{
    char name[32];
    for (uint32_t t = 0; t < draft->tensors_count; t++) {
        const struct draft_tensor *tensor = &draft->tensors[t];
        snprintf(name, sizeof name, "t%u", t);
        if (tensor->root != t) {
            tarn_builder_alias(builder, tensor->source, name);
            continue;
        }
        tarn_builder_tensor(builder, &(struct tarn_tensor_info){.name = name,
                                                                .size = tensor->size,
                                                                .space = tensor->space,
                                                                .kind = tensor->kind,
                                                                .alignment = tensor->alignment});
    }
}

/* The next draft op to list: of the streams that have any left, one in turn of execution or, in a
 * shuffled list, any one. `next` holds each stream's next op. */
static uint32_t pick_listed(struct draft *draft, const uint32_t *next)
{
    uint32_t streams = draft->options->streams;
    uint32_t best = TARN_NONE;
    if (!draft->options->shuffled) {
        for (uint32_t s = 0; s < streams; s++) {
            if (next[s] < best) best = next[s];
        }
        return best;
    }
    uint32_t s = random_below(&draft->source, streams);
    while (next[s] == TARN_NONE) s = (s + 1) % streams;
    return next[s];
}

static uint32_t next_in_stream(const struct draft *draft, uint32_t stream, uint32_t from)
{
    for (uint32_t op = from; op < draft->ops_count; op++) {
        if (draft->ops[op].stream == stream) return op;
    }
    return TARN_NONE;
}

/* Drawn apart, so that a graph is otherwise the same whatever the share is. */
static bool is_early(const struct draft *draft, uint32_t index)
{
    struct random_source source = {draft->options->seed ^ ~(uint64_t)index << 20};
    return random_percent(&source, draft->options->early_share);
}

static void build_op(const struct draft *draft, struct tarn_builder *builder, uint32_t index)
{
    const struct draft_op *op = &draft->ops[index];
    bool is_backward =
        100 * (draft->ops_count - index) <= draft->options->backward_share * draft->ops_count;
    char name[32];
    snprintf(name, sizeof name, "op%u", index);
    tarn_builder_op(builder,
                    &(struct tarn_op_info){.name = name,
                                           .kind = op->view      ? "view"
                                                   : is_backward ? "backward"
                                                                 : "work",
                                           .stream = op->stream,
                                           .inputs = {op->inputs, op->inputs_count},
                                           .outputs = {op->outputs, op->outputs_count},
                                           .workspace = op->workspace,
                                           .workspace_first = is_early(draft, index),
                                           .workspace_space = draw_space(draft, ~(uint64_t)index),
                                           .cost = 100 + index % 7,
                                           .view = op->view});
}

static void build_ops(struct draft *draft, struct tarn_builder *builder)
{
    uint32_t *next = take(draft->options->streams, sizeof *next);
    uint32_t *listed_as = take(draft->ops_count, sizeof *listed_as);
    for (uint32_t s = 0; s < draft->options->streams; s++) next[s] = next_in_stream(draft, s, 0);
    for (uint32_t i = 0; i < draft->ops_count; i++) {
        uint32_t op = pick_listed(draft, next);
        next[draft->ops[op].stream] = next_in_stream(draft, draft->ops[op].stream, op + 1);
        listed_as[op] = i;
        build_op(draft, builder, op);
    }
    for (uint32_t k = 0; k < draft->arcs_count; k++)
        tarn_builder_control(builder, listed_as[draft->arcs[k].later],
                             listed_as[draft->arcs[k].earlier]);
    free(next);
    free(listed_as);
}

static struct tarn_builder *build(struct draft *draft)
{
    char name[48];
    snprintf(name, sizeof name, "random_%llu", (unsigned long long)draft->options->seed);
    struct tarn_builder *builder = tarn_builder_create(name);
    for (uint32_t s = 0; s < draft->options->streams; s++) {
        snprintf(name, sizeof name, "stream%u", s);
        tarn_builder_stream(builder, name);
    }
    build_spaces(draft, builder);
    struct group_list groups = draw_groups(draft);
    build_tensors(draft, builder);
    build_ops(draft, builder);
    for (uint32_t g = 0; g < groups.count; g++) {
        struct tarn_list members = {groups.members[g], groups.counts[g]};
        if (random_percent(&draft->source, draft->options->padded_share))
            tarn_builder_group_padded(builder, members);
        else
            tarn_builder_group(builder, members);
    }
    free(groups.members);
    free(groups.counts);
    return builder;
}

struct tarn_graph *random_graph(const struct random_graph_options *options)
{
    struct draft draft = draft_create(options);
    draw_draft(&draft);
    struct tarn_builder *builder = build(&draft);
    draft_destroy(&draft);
    struct tarn_graph *graph = NULL;
    struct tarn_error error;
    if (tarn_builder_finish(builder, &graph, &error) != TARN_OK) {
        fprintf(stderr, "random graph %llu: %s\n", (unsigned long long)options->seed, error.text);
        abort();
    }
    return graph;
}

struct random_graph_options random_graph_knobs(uint64_t seed, uint32_t ops_max)
{
    struct random_source source = {~seed};
    struct random_graph_options options = {.seed = seed};
    options.ops = 1 + random_below(&source, ops_max);
    options.streams = 1 + random_below(&source, 6);
    options.parameters = random_below(&source, 4);
    options.reach = random_below(&source, 3) * 6;
    uint32_t *shares[] = {
        &options.view_share,      &options.inplace_share,   &options.control_share,
        &options.workspace_share, &options.dead_share,      &options.output_share,
        &options.group_share,     &options.alignment_share, &options.tiny_share};
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++)
        *shares[i] = random_percent(&source, 60) ? random_below(&source, 35) : 0;
    options.size_max = 1u << random_below(&source, 16);
    options.shuffled = random_percent(&source, 25);
    return options;
}
