/* Arcs become data or control arcs, in the order of ids. Whatever touches a storage that somebody
 * overwrites is ordered with all that touch it, so that no graph has a data race. */
#include "small_full_graph.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- What the arcs become ---- */

/* A graph in the making: what each tensor is, what each op reads. */
struct draft {
    const struct small_full_graph *full;
    struct small_tensor tensors[SMALL_TENSORS];
    unsigned count;
    uint8_t source[SMALL_TENSORS]; /* an alias: of which tensor; else itself */
    uint8_t root[SMALL_TENSORS];
    uint8_t role[SMALL_OPS];
    uint8_t before[SMALL_OPS]; /* by op: those that control arcs put before it */
};

static unsigned first_input(const struct draft *draft, unsigned op)
{
    unsigned t = 0;
    while (t < draft->count && !(draft->tensors[t].consumers >> op & 1)) t++;
    return t;
}

/* The other inputs of a view become control arcs. */
static void keep_one_input(struct draft *draft, unsigned op, unsigned input)
{
    for (unsigned t = 0; t < draft->count; t++) {
        struct small_tensor *tensor = &draft->tensors[t];
        if (t == input || !(tensor->consumers >> op & 1)) continue;
        tensor->consumers &= (uint8_t) ~(1u << op);
        draft->before[op] |= (uint8_t)(1u << tensor->producer);
    }
}

static void decide_role(struct draft *draft, unsigned op)
{
    unsigned input = first_input(draft, op);
    draft->role[op] = input < draft->count ? draft->full->role[op] : SMALL_WORKS;
    if (draft->role[op] == SMALL_VIEWS) keep_one_input(draft, op, input);
    bool is_first = true;
    for (unsigned t = 0; t < draft->count; t++) {
        if (draft->tensors[t].producer != op) continue;
        bool is_alias =
            draft->role[op] == SMALL_VIEWS || (draft->role[op] == SMALL_OVERWRITES && is_first);
        draft->source[t] = (uint8_t)(is_alias ? input : t);
        draft->root[t] = is_alias ? draft->root[input] : (uint8_t)t;
        is_first = false;
    }
}

static void draft_init(struct draft *draft, const struct small_full_graph *full)
{
    *draft = (struct draft){.full = full};
    draft->count = small_graph_tensors(&full->graph, draft->tensors);
    for (unsigned t = 0; t < draft->count; t++) {
        struct small_tensor *tensor = &draft->tensors[t];
        uint8_t control = tensor->consumers & full->control[tensor->producer];
        tensor->consumers &= (uint8_t)~control;
        for (unsigned v = 0; v < full->graph.ops; v++)
            draft->before[v] |= (uint8_t)((control >> v & 1) << tensor->producer);
    }
    for (unsigned v = 0; v < full->graph.ops; v++) decide_role(draft, v);
}

unsigned small_full_graph_roots(const struct small_full_graph *full, uint8_t roots[SMALL_TENSORS])
{
    struct draft draft;
    unsigned count = 0;
    draft_init(&draft, full);
    for (unsigned t = 0; t < draft.count; t++)
        if (draft.root[t] == t) roots[count++] = (uint8_t)t;
    return count;
}

bool small_full_graph_has_its_roles(const struct small_full_graph *full)
{
    struct draft draft;
    draft_init(&draft, full);
    return memcmp(draft.role, full->role, full->graph.ops) == 0;
}

/* ---- Hazards ---- */

/* Ops that read or write a root, and ops that write it. */
static void find_users(const struct draft *draft, unsigned root, unsigned *users, unsigned *writers)
{
    *users = *writers = 0;
    for (unsigned t = 0; t < draft->count; t++) {
        if (draft->root[t] != root) continue;
        *users |= draft->tensors[t].consumers;
        if (draft->role[draft->tensors[t].producer] != SMALL_VIEWS)
            *writers |= 1u << draft->tensors[t].producer;
    }
    for (unsigned v = 0; v < draft->full->graph.ops; v++)
        if (draft->role[v] == SMALL_VIEWS) *users &= ~(1u << v);
    *users |= *writers;
}

static void order_users(struct draft *draft, unsigned users, unsigned writers)
{
    for (unsigned v = 0; v < draft->full->graph.ops; v++) {
        for (unsigned u = 0; u < v; u++) {
            bool both_touch = users >> u & 1 && users >> v & 1;
            if (both_touch && (writers >> u & 1 || writers >> v & 1))
                draft->before[v] |= (uint8_t)(1u << u);
        }
    }
}

static bool is_updated(const struct draft *draft)
{
    unsigned writer = draft->full->parameter_writer;
    return draft->full->has_parameter && writer < draft->full->graph.ops &&
           draft->role[writer] != SMALL_VIEWS;
}

static bool reads_parameter(const struct draft *draft, unsigned op)
{
    return draft->full->has_parameter && draft->full->parameter_readers >> op & 1 &&
           draft->role[op] != SMALL_VIEWS;
}

/* Where nothing is written in place, data arcs order every write and its reads. */
static void order_hazards(struct draft *draft)
{
    unsigned users, writers;
    for (unsigned root = 0; root < draft->count; root++) {
        if (draft->root[root] != root) continue;
        find_users(draft, root, &users, &writers);
        if ((writers & (writers - 1)) != 0) order_users(draft, users, writers);
    }
    if (!is_updated(draft)) return;
    writers = users = 1u << draft->full->parameter_writer;
    for (unsigned v = 0; v < draft->full->graph.ops; v++)
        if (reads_parameter(draft, v)) users |= 1u << v;
    order_users(draft, users, writers);
}

/* ---- Building ---- */

static uint32_t space_of(const struct small_full_graph *full, unsigned t)
{
    if (full->spaces < 2 || full->group[t] != SMALL_NO_GROUP) return 0;
    return full->space[t] % full->spaces;
}

static void add_tensors(const struct draft *draft, struct tarn_builder *builder)
{
    const struct small_full_graph *full = draft->full;
    for (unsigned t = 0; t < draft->count; t++) {
        if (draft->root[t] != t) {
            tarn_builder_alias(builder, draft->source[t], NULL);
            continue;
        }
        tarn_builder_tensor(builder,
                            &(struct tarn_tensor_info){
                                .size = full->size[t],
                                .space = space_of(full, t),
                                .kind = full->outputs >> t & 1 ? TARN_OUTPUT : TARN_INTERMEDIATE,
                                .alignment = full->aligned >> t & 1 ? 2 * full->alignment : 0});
    }
    if (!full->has_parameter) return;
    tarn_builder_tensor(builder, &(struct tarn_tensor_info){.size = 5, .kind = TARN_PARAMETER});
    if (is_updated(draft)) tarn_builder_alias(builder, draft->count, NULL);
}

static void add_op(const struct draft *draft, struct tarn_builder *builder, unsigned op)
{
    const struct small_full_graph *full = draft->full;
    uint32_t inputs[SMALL_TENSORS + 1], outputs[SMALL_TENSORS + 1], control[SMALL_OPS];
    size_t inputs_count = 0, outputs_count = 0, control_count = 0;
    for (unsigned t = 0; t < draft->count; t++) {
        if (draft->tensors[t].producer == op) outputs[outputs_count++] = t;
        if (draft->tensors[t].consumers >> op & 1) inputs[inputs_count++] = t;
    }
    if (reads_parameter(draft, op)) inputs[inputs_count++] = draft->count;
    if (is_updated(draft) && full->parameter_writer == op)
        outputs[outputs_count++] = draft->count + 1;
    for (unsigned u = 0; u < op; u++)
        if (draft->before[op] >> u & 1) control[control_count++] = u;
    bool views = draft->role[op] == SMALL_VIEWS;
    tarn_builder_op(builder, &(struct tarn_op_info){.stream = full->graph.stream[op],
                                                    .inputs = {inputs, inputs_count},
                                                    .outputs = {outputs, outputs_count},
                                                    .control = {control, control_count},
                                                    .workspace = views ? 0 : full->workspace[op],
                                                    .workspace_first = full->early >> op & 1,
                                                    .workspace_space = space_of(full, op),
                                                    .view = views});
}

static void add_groups(const struct draft *draft, struct tarn_builder *builder)
{
    const struct small_full_graph *full = draft->full;
    for (unsigned g = 1; g <= SMALL_TENSORS; g++) {
        uint32_t members[SMALL_TENSORS];
        size_t count = 0;
        for (unsigned i = 0; i < draft->count; i++) {
            unsigned t = full->backwards ? draft->count - 1 - i : i;
            if (draft->root[t] == t && full->group[t] == g) members[count++] = t;
        }
        struct tarn_list list = {members, count};
        if (count > 0 && full->padded >> g & 1)
            tarn_builder_group_padded(builder, list);
        else if (count > 0)
            tarn_builder_group(builder, list);
    }
}

struct tarn_graph *small_full_graph_build(const struct small_full_graph *full)
{
    struct draft draft;
    draft_init(&draft, full);
    order_hazards(&draft);
    struct tarn_builder *builder = tarn_builder_create("small");
    for (unsigned v = 0, streams = 0; v < full->graph.ops; v++) {
        if (full->graph.stream[v] < streams) continue;
        tarn_builder_stream(builder, NULL);
        streams++;
    }
    for (unsigned s = 0; s < full->spaces; s++)
        tarn_builder_space(
            builder, &(struct tarn_space_info){.alignment = s == 1 ? full->space_alignment : 0});
    add_tensors(&draft, builder);
    for (unsigned v = 0; v < full->graph.ops; v++) add_op(&draft, builder, v);
    add_groups(&draft, builder);
    struct tarn_graph *graph = NULL;
    struct tarn_error error;
    if (tarn_builder_finish(builder, &graph, &error) != TARN_OK) {
        fprintf(stderr, "small full: %s\n", error.text);
        abort();
    }
    return graph;
}

/* ---- Drawing ---- */

/* Sizes that fill their alignment, leave some of it, or need more than one. */
static uint16_t draw_size(uint64_t alignment, struct random_source *source)
{
    static const uint16_t sizes[3][4] = {{1, 1, 2, 3}, {1, 3, 4, 6}, {100, 300, 512, 700}};
    unsigned row = alignment == 1 ? 0 : alignment == 4 ? 1 : 2;
    return sizes[row][random_below(source, 4)];
}

static uint32_t draw_set(uint32_t percent, struct random_source *source)
{
    uint32_t set = (uint32_t)random_next(source);
    return random_percent(source, percent) ? set & (uint32_t)random_next(source) : 0;
}

/* Two groups at most; an alignment of its own is for lone tensors and first members. */
static void draw_groups(struct small_full_graph *full, struct random_source *source)
{
    bool has_groups = random_percent(source, 60);
    unsigned first[3] = {SMALL_TENSORS, SMALL_TENSORS, SMALL_TENSORS};
    full->aligned = draw_set(25, source);
    full->backwards = random_percent(source, 25);
    for (unsigned t = 0; t < SMALL_TENSORS; t++) {
        unsigned g = random_below(source, 4);
        if (!has_groups || g == 3) g = SMALL_NO_GROUP;
        full->group[t] = (uint8_t)g;
        if (g != SMALL_NO_GROUP && (first[g] < t || full->backwards)) full->aligned &= ~(1u << t);
        if (first[g] == SMALL_TENSORS) first[g] = t;
    }
}

struct small_full_graph small_full_graph_draw(const struct small_graph *graph, uint64_t alignment,
                                              struct random_source *source)
{
    struct small_full_graph full = {.graph = *graph, .alignment = alignment};
    bool has_roles = random_percent(source, 60), has_workspaces = random_percent(source, 40);
    for (unsigned v = 0; v < SMALL_OPS; v++) {
        uint32_t role = random_below(source, 2 * SMALL_ROLES);
        full.role[v] = (uint8_t)(has_roles && role < SMALL_ROLES ? role : SMALL_WORKS);
        full.control[v] = (uint8_t)draw_set(40, source);
        if (has_workspaces && random_below(source, 3) == 0)
            full.workspace[v] = draw_size(alignment, source);
    }
    for (unsigned t = 0; t < SMALL_TENSORS; t++) full.size[t] = draw_size(alignment, source);
    draw_groups(&full, source);
    full.outputs = draw_set(40, source);
    full.has_parameter = random_percent(source, 30);
    full.parameter_readers = (uint8_t)random_next(source);
    full.parameter_writer = (uint8_t)random_below(source, SMALL_OPS + 1);
    full.early = (uint8_t)random_next(source);
    full.padded = draw_set(40, source);
    full.spaces = (uint8_t)(random_percent(source, 25) ? random_below(source, 4) : 0);
    for (unsigned t = 0; t < SMALL_TENSORS; t++) full.space[t] = (uint8_t)random_below(source, 6);
    full.space_alignment = random_below(source, 2) ? 2 * alignment : 0;
    return full;
}
