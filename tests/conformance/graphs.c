/* Random graphs that hold what sessions have to get right: several streams, persistent tensors,
 * outputs, views, writes in place, workspaces, contiguous groups and control arcs. Ops are drawn
 * one after another; a write in place comes after all that touched the storage before, by control
 * arcs. Cost: the square of the ops at worst. */
#include <stdio.h>
#include <stdlib.h>

#include "kit.h"

enum { OPS_MAX = 64, TENSORS_MAX = TARN_KIT_PERSISTENT_MAX + 3 * OPS_MAX, STREAMS = 6 };

struct draft {
    struct tarn_builder *builder;
    struct tarn_kit_random random;
    uint32_t streams, ops, tensors;
    uint32_t root[TENSORS_MAX];
    uint64_t touched[TENSORS_MAX]; /* by root: bit v: op v touches it */
    uint32_t writers[TENSORS_MAX]; /* by root: 1 + the last op that wrote it; 0: none */
    uint32_t groupable[TENSORS_MAX];
    uint32_t groupable_count;
};

static uint32_t draw(struct draft *draft, uint32_t limit)
{
    return tarn_kit_below(&draft->random, limit);
}

static bool percent(struct draft *draft, uint32_t share) { return draw(draft, 100) < share; }

static tarn_tensor add_root(struct draft *draft, enum tarn_tensor_kind kind)
{
    char name[32];
    uint32_t size = percent(draft, 20) ? 1 + draw(draft, 3) : 1 + draw(draft, 3000);
    snprintf(name, sizeof name, "t%u", draft->tensors);
    draft->root[draft->tensors] = draft->tensors;
    draft->tensors++;
    return tarn_builder_tensor(
        draft->builder, &(struct tarn_tensor_info){.name = name, .size = size, .kind = kind});
}

static tarn_tensor add_alias(struct draft *draft, tarn_tensor of)
{
    char name[32];
    snprintf(name, sizeof name, "t%u", draft->tensors);
    draft->root[draft->tensors++] = draft->root[of];
    return tarn_builder_alias(draft->builder, of, name);
}

/* Reads come after the last write, whatever tensor they name. */
static void read_storage(struct draft *draft, tarn_op v, uint32_t root)
{
    if (draft->writers[root] > 0) tarn_builder_control(draft->builder, v, draft->writers[root] - 1);
    draft->touched[root] |= UINT64_C(1) << v;
}

static void write_storage(struct draft *draft, tarn_op v, uint32_t root)
{
    for (uint32_t u = 0; u < v; u++) {
        if (draft->touched[root] >> u & 1) tarn_builder_control(draft->builder, v, u);
    }
    draft->touched[root] |= UINT64_C(1) << v;
    draft->writers[root] = v + 1;
}

static void draw_view(struct draft *draft, tarn_op v, struct tarn_op_info *info)
{
    tarn_tensor from = draw(draft, draft->tensors), to = add_alias(draft, from);
    info->view = true;
    info->kind = "view";
    info->inputs = TARN_TENSORS(from);
    info->outputs = TARN_TENSORS(to);
    tarn_builder_op(draft->builder, info);
    if (draft->writers[draft->root[from]] > 0)
        tarn_builder_control(draft->builder, v, draft->writers[draft->root[from]] - 1);
}

static void draw_outputs(struct draft *draft, uint32_t *outputs, uint32_t *count)
{
    for (uint32_t left = 1 + draw(draft, 2); left > 0; left--) {
        bool is_output = percent(draft, 10);
        uint32_t t = add_root(draft, is_output ? TARN_OUTPUT : TARN_INTERMEDIATE);
        outputs[(*count)++] = t;
        if (percent(draft, 20)) draft->groupable[draft->groupable_count++] = t;
    }
}

static void draw_worker(struct draft *draft, tarn_op v, struct tarn_op_info *info)
{
    uint32_t inputs[4], outputs[3], inputs_count = 0, outputs_count = 0, before = draft->tensors;
    for (uint32_t left = draw(draft, 4); left > 0; left--) {
        uint32_t t = before - 1 - draw(draft, before < 12 || percent(draft, 10) ? before : 12);
        bool is_there = false;
        for (uint32_t i = 0; i < inputs_count; i++)
            if (draft->root[inputs[i]] == draft->root[t]) is_there = true;
        if (!is_there) inputs[inputs_count++] = t;
    }
    bool writes = percent(draft, 15) && inputs_count > 0;
    if (writes) outputs[outputs_count++] = add_alias(draft, inputs[0]);
    draw_outputs(draft, outputs, &outputs_count);
    info->kind = "work";
    info->inputs = (struct tarn_list){inputs, inputs_count};
    info->outputs = (struct tarn_list){outputs, outputs_count};
    info->workspace = percent(draft, 25) ? 1 + draw(draft, 2000) : 0;
    tarn_builder_op(draft->builder, info);
    for (uint32_t i = 0; i < inputs_count; i++) read_storage(draft, v, draft->root[inputs[i]]);
    for (uint32_t i = 0; i < outputs_count; i++) write_storage(draft, v, draft->root[outputs[i]]);
}

static void draw_op(struct draft *draft)
{
    char name[32];
    tarn_op v = draft->ops++;
    snprintf(name, sizeof name, "op%u", v);
    struct tarn_op_info info = {
        .name = name, .stream = draw(draft, draft->streams), .cost = 100 + v % 7};
    if (percent(draft, 10))
        draw_view(draft, v, &info);
    else
        draw_worker(draft, v, &info);
}

static void draw_groups(struct draft *draft)
{
    for (uint32_t i = 0; i + 3 <= draft->groupable_count; i += 3)
        tarn_builder_group(draft->builder, (struct tarn_list){draft->groupable + i, 3});
}

static enum tarn_status draw_graph(uint64_t seed, uint32_t ops_max, uint32_t *persistent,
                                   struct tarn_graph **graph, struct tarn_error *error)
{
    struct draft *draft = calloc(1, sizeof *draft);
    if (!draft) return TARN_SYSTEM;
    draft->random.state = seed;
    draft->builder = tarn_builder_create("conformance");
    draft->streams = 1 + draw(draft, STREAMS);
    for (uint32_t s = 0; s < draft->streams; s++) tarn_builder_stream(draft->builder, "stream");
    *persistent = 2 + draw(draft, TARN_KIT_PERSISTENT_MAX - 1);
    for (uint32_t i = 0; i < *persistent; i++)
        add_root(draft, i == 0 ? TARN_INPUT : i % 2 ? TARN_PARAMETER : TARN_OPTIMIZER_STATE);
    uint32_t ops = ops_max / 2 + draw(draft, ops_max / 2 + 1);
    for (uint32_t i = 0; i < ops && i < OPS_MAX; i++) draw_op(draft);
    draw_groups(draft);
    enum tarn_status status = tarn_builder_finish(draft->builder, graph, error);
    free(draft);
    return status;
}

/* ---- Subjects ---- */

void tarn_kit_check(struct tarn_kit *kit, struct tarn_plan *plan, struct tarn_device device,
                    const struct tarn_session_options *options, struct tarn_check_options *check,
                    struct tarn_check_report *report)
{
    struct tarn_session *session;
    struct tarn_error error;
    check->iterations = TARN_KIT_ITERATIONS;
    MUST(tarn_session_create(plan, device, options, &session, &error));
    enum tarn_status status = tarn_session_check(session, check, report, &error);
    tarn_session_destroy(session);
    MUST(status);
}

struct tarn_kit_subject tarn_kit_subject(struct tarn_kit *kit, uint64_t seed, uint32_t ops_max)
{
    struct tarn_kit_subject subject;
    struct tarn_error error;
    MUST(draw_graph(seed, ops_max, &subject.persistent_count, &subject.graph, &error));
    MUST(tarn_plan_create(subject.graph,
                          TARN_PLAN_OPTIONS(.alignment = 64, .effort = TARN_NO_EFFORT),
                          &subject.plan, &error));
    tarn_kit_check(kit, subject.plan, tarn_device_host(NULL), NULL, TARN_CHECK_OPTIONS(.seed = 1),
                   &subject.expected);
    return subject;
}

void tarn_kit_subject_destroy(struct tarn_kit_subject *subject)
{
    tarn_plan_destroy(subject->plan);
    tarn_graph_destroy(subject->graph);
}

uint64_t tarn_kit_tensor_size(const struct tarn_kit_subject *subject, tarn_tensor tensor)
{
    struct tarn_tensor_info info = {0};
    tarn_graph_tensor(subject->graph, tensor, &info);
    return info.size;
}

bool tarn_kit_is_view(const struct tarn_kit_subject *subject, tarn_op op)
{
    struct tarn_op_info info = {0};
    tarn_graph_op(subject->graph, op, &info);
    return info.view;
}

/* ---- Sessions ---- */

void tarn_kit_needs_checks(struct tarn_kit *kit)
{
    struct tarn_memory_limits limits;
    OK(kit->table->memory_limits(kit->self, &limits));
    bool by_host = limits.on_host && (kit->table->launch || !kit->table->queue_create);
    NEEDS(by_host || kit->table->pattern_fill, "way of checked execution");
}

struct tarn_session *tarn_kit_session(struct tarn_kit *kit, struct tarn_plan *plan,
                                      const struct tarn_session_options *options)
{
    struct tarn_error error;
    MUST(tarn_session_create(plan, kit->device, options, &kit->session, &error));
    return kit->session;
}

void tarn_kit_end(struct tarn_kit *kit)
{
    tarn_session_destroy(kit->session);
    for (int i = 0; i < 2; i++) {
        tarn_session_destroy(kit->turns[i]);
        kit->turns[i] = NULL;
    }
    tarn_arena_destroy(kit->arena);
    kit->session = NULL;
    kit->arena = NULL;
}
