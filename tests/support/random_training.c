/* Forward op i reads the result before it, sometimes an older one and a parameter, and makes one
 * result, beside its input or over it. Its backward op reads the gradient of that result and those
 * forward results that are still there, and makes gradients of what op i has read; a gradient that
 * comes from two sides is added up in place. Implementations: other times and workspaces, other
 * forward results to read, gradients one by one. No two ops race in whatever streams they are: who
 * overwrites a result is its only reader, and parameters are updated after their readers. */
#include "random_training.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "random_graph.h"

enum { OPS_MAX = 64, IMPLEMENTATIONS_MAX = 8, PASSES_MAX = 4, READERS_MAX = 2 * PASSES_MAX };

struct forward {
    tarn_op op;
    tarn_tensor inputs[2], output, weight;
    tarn_tensor seen; /* the output, or a view of it */
    uint32_t inputs_count;
    uint32_t from[2]; /* ops that made the inputs; TARN_NONE: the graph's input */
    bool overwrites;  /* its first input */
    bool overwritten; /* its output */
};

struct pass {
    struct forward forward[OPS_MAX];
    tarn_tensor gradient[OPS_MAX]; /* of a forward op's output, as it is now; TARN_NONE: none yet */
};

/* A parameter: of the forward op of the same number in all passes. */
struct weight {
    tarn_tensor tensor;         /* TARN_NONE: the op has none */
    tarn_tensor gradient, root; /* the sum so far, and the tensor that it was at first */
    tarn_op readers[READERS_MAX];
    uint32_t readers_count;
};

struct growth {
    const struct random_training_options *options;
    struct tarn_builder *b;
    struct random_source source;
    struct pass passes[PASSES_MAX], *pass; /* pass: the one that is being added */
    tarn_stream updating;
    struct weight weights[OPS_MAX];
};

static uint64_t draw_size(struct growth *g)
{
    uint32_t most = g->options->size_max ? g->options->size_max : 4096;
    return 1 + random_below(&g->source, most);
}

static tarn_tensor add_tensor(struct growth *g, uint64_t size, enum tarn_tensor_kind kind)
{
    return tarn_builder_tensor(g->b, &(struct tarn_tensor_info){.size = size, .kind = kind});
}

static tarn_stream draw_stream(struct growth *g)
{
    if (g->options->scatter_share == 0 || !random_percent(&g->source, g->options->scatter_share))
        return 0;
    return random_below(&g->source, g->updating + 1);
}

/* Drawn only where it is asked for, so that other graphs stay as they are. */
static bool has_share(struct growth *g, uint32_t share)
{
    return share > 0 && random_percent(&g->source, share);
}

/* ---- Forward ---- */

static void choose_inputs(struct growth *g, uint32_t i, tarn_tensor input)
{
    struct forward *op = &g->pass->forward[i];
    op->inputs[0] = i > 0 ? g->pass->forward[i - 1].seen : input;
    op->from[0] = i > 0 ? i - 1 : TARN_NONE;
    op->inputs_count = 1;
    if (i < 2 || !random_percent(&g->source, g->options->branch_share)) return;
    uint32_t other = random_below(&g->source, i - 1);
    if (g->pass->forward[other].overwritten) return;
    op->inputs[1] = g->pass->forward[other].seen;
    op->from[1] = other;
    op->inputs_count = 2;
}

/* Nobody else has read what an op overwrites: only then is the order of the list enough. */
static bool may_overwrite(const struct growth *g, uint32_t i)
{
    if (i == 0) return false;
    for (uint32_t j = 0; j < i; j++) {
        for (uint32_t k = 0; k < g->pass->forward[j].inputs_count; k++) {
            if (g->pass->forward[j].inputs[k] == g->pass->forward[i].inputs[0]) return false;
        }
    }
    return true;
}

static uint32_t draw_algorithms(struct growth *g, struct tarn_implementation *list, uint64_t cost)
{
    uint32_t count = 0;
    if (!random_percent(&g->source, g->options->implementation_share)) return 0;
    list[count++] = (struct tarn_implementation){
        .name = "fast", .cost = cost * 9 / 10, .workspace = draw_size(g)};
    list[count - 1].workspace_first = has_share(g, g->options->early_share);
    list[count++] = (struct tarn_implementation){.name = "slow", .cost = cost * 12 / 10};
    return count;
}

static void add_view(struct growth *g, struct forward *op)
{
    op->seen = op->output;
    if (!has_share(g, g->options->view_share)) return;
    op->seen = tarn_builder_alias(g->b, op->output, NULL);
    tarn_builder_op(g->b, &(struct tarn_op_info){.name = "view",
                                                 .kind = "view",
                                                 .stream = draw_stream(g),
                                                 .inputs = TARN_TENSORS(op->output),
                                                 .outputs = TARN_TENSORS(op->seen),
                                                 .view = true});
}

static struct tarn_list draw_control(struct growth *g, uint32_t i, tarn_op *earlier)
{
    if (i == 0 || !has_share(g, g->options->control_share)) return (struct tarn_list){NULL, 0};
    *earlier = g->pass->forward[random_below(&g->source, i)].op;
    return (struct tarn_list){earlier, 1};
}

static void add_forward(struct growth *g, uint32_t i, tarn_tensor input)
{
    struct forward *op = &g->pass->forward[i];
    struct tarn_implementation list[IMPLEMENTATIONS_MAX];
    uint64_t cost = 10 + random_below(&g->source, 1000);
    char name[16];
    choose_inputs(g, i, input);
    bool is_first = g->pass == g->passes;
    if (is_first) g->weights[i].tensor = g->weights[i].gradient = TARN_NONE;
    if (is_first && random_percent(&g->source, g->options->weight_share))
        g->weights[i].tensor = add_tensor(g, draw_size(g), TARN_PARAMETER);
    op->weight = g->weights[i].tensor;
    op->overwrites = may_overwrite(g, i) && random_percent(&g->source, g->options->inplace_share);
    if (op->overwrites) g->pass->forward[op->from[0]].overwritten = true;
    bool kept = has_share(g, g->options->output_share);
    op->output = op->overwrites
                     ? tarn_builder_alias(g->b, op->inputs[0], NULL)
                     : add_tensor(g, draw_size(g), kept ? TARN_OUTPUT : TARN_INTERMEDIATE);
    uint32_t reads[3] = {op->inputs[0], op->inputs[1], op->weight};
    uint32_t count = op->inputs_count;
    if (op->weight != TARN_NONE) reads[count++] = op->weight;
    snprintf(name, sizeof name, "f%u", i);
    tarn_op earlier;
    bool early = has_share(g, g->options->early_share);
    bool fixed = random_percent(&g->source, g->options->fixed_share);
    bool gathers = has_share(g, g->options->gather_share);
    op->op = tarn_builder_op(
        g->b, &(struct tarn_op_info){
                  .name = name,
                  .kind = has_share(g, g->options->random_share) ? "dropout" : "forward",
                  .stream = draw_stream(g),
                  .control = draw_control(g, i, &earlier),
                  .inputs = {reads, count},
                  .outputs = TARN_TENSORS(op->output),
                  .cost = cost,
                  .workspace = random_percent(&g->source, 20) ? draw_size(g) : 0,
                  .workspace_first = early,
                  .op_class = gathers ? TARN_CLASS_COLLECTIVE : TARN_CLASS_UNKNOWN,
                  .recomputable = fixed     ? TARN_NOT_RECOMPUTABLE
                                  : gathers ? TARN_RECOMPUTABLE
                                            : TARN_RECOMPUTABLE_BY_RULE,
                  .implementations = list,
                  .implementations_count = draw_algorithms(g, list, cost)});
    add_view(g, op);
    g->weights[i].readers[g->weights[i].readers_count++] = op->op;
}

/* ---- Backward ---- */

struct backward {
    uint32_t reads[6], writes[3];
    uint32_t reads_count, writes_count;
    uint32_t to[3]; /* op whose output's gradient a write is; TARN_NONE: the parameter's */
    tarn_tensor weight_gradient;
    bool reads_input, reads_output;
};

static void choose_reads(struct growth *g, uint32_t i, struct backward *back)
{
    const struct forward *op = &g->pass->forward[i];
    back->reads[back->reads_count++] = g->pass->gradient[i];
    if (op->weight != TARN_NONE) back->reads[back->reads_count++] = op->weight;
    bool can_input =
        !op->overwrites && (op->from[0] == TARN_NONE || !g->pass->forward[op->from[0]].overwritten);
    back->reads_input = can_input && random_percent(&g->source, 70);
    back->reads_output = !op->overwritten && random_percent(&g->source, 50);
    if (back->reads_input) back->reads[back->reads_count++] = op->inputs[0];
    if (back->reads_output) back->reads[back->reads_count++] = op->output;
}

static void choose_writes(struct growth *g, uint32_t i, struct backward *back)
{
    const struct forward *op = &g->pass->forward[i];
    back->weight_gradient = TARN_NONE;
    for (uint32_t k = 0; k < op->inputs_count; k++) {
        if (op->from[k] == TARN_NONE) continue;
        back->to[back->writes_count] = op->from[k];
        back->writes[back->writes_count++] = add_tensor(g, draw_size(g), TARN_GRADIENT);
    }
    if (op->weight == TARN_NONE && back->writes_count > 0) return;
    back->weight_gradient = add_tensor(g, draw_size(g), TARN_GRADIENT);
    back->to[back->writes_count] = TARN_NONE;
    back->writes[back->writes_count++] = back->weight_gradient;
}

/* Reads the output instead of the input, or the other way round, or neither: also what has been
 * overwritten since. */
static uint32_t draw_forms(struct growth *g, uint32_t i, const struct backward *back,
                           uint32_t lists[3][6], struct tarn_implementation *list, uint64_t cost)
{
    const struct forward *op = &g->pass->forward[i];
    uint32_t count = draw_algorithms(g, list, cost);
    if (random_percent(&g->source, g->options->implementation_share)) {
        uint32_t n = 0;
        for (uint32_t k = 0; k < back->reads_count; k++) {
            if (back->reads[k] != op->inputs[0] && back->reads[k] != op->output)
                lists[0][n++] = back->reads[k];
        }
        lists[0][n++] = back->reads_input ? op->output : op->inputs[0];
        list[count++] = (struct tarn_implementation){
            .name = "other", .cost = cost * 11 / 10, .inputs = {lists[0], n}};
    }
    if (back->writes_count < 2 || !random_percent(&g->source, g->options->implementation_share))
        return count;
    list[count++] = (struct tarn_implementation){.name = "first",
                                                 .cost = cost / 2,
                                                 .inputs = {back->reads, 1},
                                                 .outputs = {back->writes, 1}};
    list[count++] =
        (struct tarn_implementation){.name = "rest",
                                     .cost = cost / 2,
                                     .inputs = {back->reads, back->reads_count},
                                     .outputs = {back->writes + 1, back->writes_count - 1}};
    return count;
}

/* Adds what has come in to a gradient. */
static void accumulate(struct growth *g, tarn_tensor *gradient, tarn_tensor more)
{
    if (*gradient == TARN_NONE) {
        *gradient = more;
        return;
    }
    tarn_tensor sum = tarn_builder_alias(g->b, *gradient, NULL);
    tarn_builder_op(g->b, &(struct tarn_op_info){.name = "add",
                                                 .kind = "backward",
                                                 .stream = draw_stream(g),
                                                 .inputs = TARN_TENSORS(*gradient, more),
                                                 .outputs = TARN_TENSORS(sum),
                                                 .cost = 5});
    *gradient = sum;
}

static void add_backward(struct growth *g, uint32_t i)
{
    struct weight *weight = &g->weights[i];
    struct backward back = {0};
    struct tarn_implementation list[IMPLEMENTATIONS_MAX];
    uint32_t lists[3][6];
    uint64_t cost = 10 + random_below(&g->source, 1500);
    char name[16];
    choose_reads(g, i, &back);
    choose_writes(g, i, &back);
    snprintf(name, sizeof name, "b%u", i);
    weight->readers[weight->readers_count++] =
        tarn_builder_op(g->b, &(struct tarn_op_info){.name = name,
                                                     .kind = "backward",
                                                     .stream = draw_stream(g),
                                                     .inputs = {back.reads, back.reads_count},
                                                     .outputs = {back.writes, back.writes_count},
                                                     .cost = cost,
                                                     .implementations = list,
                                                     .implementations_count = draw_forms(
                                                         g, i, &back, lists, list, cost)});
    for (uint32_t k = 0; k < back.writes_count; k++) {
        if (back.to[k] != TARN_NONE) accumulate(g, &g->pass->gradient[back.to[k]], back.writes[k]);
    }
    if (back.weight_gradient == TARN_NONE) return;
    if (weight->gradient == TARN_NONE) weight->root = back.weight_gradient;
    accumulate(g, &weight->gradient, back.weight_gradient);
}

static void add_update(struct growth *g, const struct weight *weight)
{
    if (weight->tensor == TARN_NONE || weight->gradient == TARN_NONE) return;
    tarn_tensor updated = tarn_builder_alias(g->b, weight->tensor, NULL);
    tarn_builder_op(g->b,
                    &(struct tarn_op_info){.name = "update",
                                           .kind = "update",
                                           .stream = g->updating,
                                           .inputs = TARN_TENSORS(weight->tensor, weight->gradient),
                                           .outputs = TARN_TENSORS(updated),
                                           .control = {weight->readers, weight->readers_count},
                                           .cost = 20});
}

/* All gradients of parameters in one buffer, which is reduced in place. */
static void add_bucket(struct growth *g)
{
    uint32_t roots[OPS_MAX], before[OPS_MAX], after[OPS_MAX], count = 0;
    for (uint32_t i = 0; i < g->options->ops; i++) {
        struct weight *weight = &g->weights[i];
        if (weight->gradient == TARN_NONE) continue;
        roots[count] = weight->root;
        before[count] = weight->gradient;
        after[count] = weight->gradient = tarn_builder_alias(g->b, before[count], NULL);
        count++;
    }
    if (count == 0) return;
    tarn_builder_group(g->b, (struct tarn_list){roots, count});
    tarn_builder_op(g->b, &(struct tarn_op_info){.name = "reduce",
                                                 .kind = "all_reduce",
                                                 .stream = g->updating,
                                                 .inputs = {before, count},
                                                 .outputs = {after, count},
                                                 .cost = 300});
}

/* Where there is one pass, each parameter is updated as soon as it can be. */
static void add_backward_pass(struct growth *g, bool updates)
{
    for (uint32_t i = g->options->ops; i-- > 0;) {
        if (g->pass->gradient[i] == TARN_NONE) continue; /* nobody has read it */
        add_backward(g, i);
        if (updates) add_update(g, &g->weights[i]);
    }
}

static void add_updates(struct growth *g)
{
    if (g->options->bucket) add_bucket(g);
    for (uint32_t i = 0; i < g->options->ops; i++) add_update(g, &g->weights[i]);
}

/* ---- The graph ---- */

static void add_loss(struct growth *g)
{
    for (uint32_t i = 0; i < g->options->ops; i++) g->pass->gradient[i] = TARN_NONE;
    uint32_t last = g->options->ops - 1;
    tarn_tensor loss = add_tensor(g, 8, TARN_OUTPUT);
    g->pass->gradient[last] = add_tensor(g, draw_size(g), TARN_GRADIENT);
    tarn_builder_op(g->b,
                    &(struct tarn_op_info){.name = "loss",
                                           .kind = "loss",
                                           .inputs = TARN_TENSORS(g->pass->forward[last].output),
                                           .outputs = TARN_TENSORS(loss, g->pass->gradient[last]),
                                           .recomputable = TARN_NOT_RECOMPUTABLE,
                                           .cost = 10});
}

static void add_passes(struct growth *g, tarn_tensor input)
{
    uint32_t passes = g->options->passes ? g->options->passes : 1, ahead = g->options->ahead;
    bool each = passes == 1 && !g->options->bucket;
    assert_true(passes <= PASSES_MAX && ahead < passes);
    for (uint32_t k = 0; k < passes + ahead; k++) {
        if (k < passes) {
            g->pass = &g->passes[k];
            for (uint32_t i = 0; i < g->options->ops; i++) add_forward(g, i, input);
            add_loss(g);
        }
        if (k < ahead) continue;
        g->pass = &g->passes[k - ahead];
        add_backward_pass(g, each);
    }
    if (!each) add_updates(g);
}

struct tarn_graph *random_training(const struct random_training_options *options)
{
    static struct growth g;
    g = (struct growth){
        .options = options, .b = tarn_builder_create("training"), .source = {options->seed}};
    struct tarn_graph *graph;
    struct tarn_error error;
    assert_true(options->ops > 0 && options->ops <= OPS_MAX);
    for (uint32_t s = 0; s < (options->streams ? options->streams : 1); s++)
        g.updating = tarn_builder_stream(g.b, NULL);
    if (options->capacity > 0)
        tarn_builder_space(g.b, &(struct tarn_space_info){.capacity = options->capacity});
    add_passes(&g, add_tensor(&g, draw_size(&g), TARN_INPUT));
    if (tarn_builder_finish(g.b, &graph, &error) != TARN_OK) fail_msg("%s", error.text);
    return graph;
}
