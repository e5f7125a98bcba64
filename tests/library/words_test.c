/* Graphs with slices, tensors without bytes, groups that share members, offsets that are fixed, and
 * conditionals, against an oracle of their own: small graphs
 * drawn at random, executed byte by byte on memory in which every byte knows what it is of. What
 * must be ordered is asked of a matrix of who comes before whom, byte by byte; the least arena of
 * every order of blocks; what a read must find of list order on memory in which nothing shares
 * bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "planner/transform/recipe.h"
#include "streams/graph/builder.h"
#include "streams/plan/program.h"
#include "support/random_graph.h"
#include "tarn.h"

enum { OPS = 7, TENSORS = 32, SIZE = 6, NODES = 2 * OPS };

static struct random_source source;

/* ---- Drawing ---- */

struct draft {
    struct tarn_builder *builder;
    uint32_t ops, tensors;
    uint32_t root[TENSORS];
    uint64_t offset[TENSORS], size[TENSORS];
    bool persistent[TENSORS];
    uint32_t stream[OPS];
    uint32_t reads[OPS][4], writes[OPS][4];
    uint32_t reads_count[OPS], writes_count[OPS];
};

static uint64_t draw_size(void)
{
    return random_percent(&source, 20) ? 0 : 1 + random_below(&source, SIZE);
}

static uint32_t add_root(struct draft *draft, enum tarn_tensor_kind kind)
{
    uint32_t t = draft->tensors++;
    draft->root[t] = t;
    draft->offset[t] = 0;
    draft->size[t] = draw_size();
    draft->persistent[t] = kind >= TARN_PARAMETER;
    tarn_builder_tensor(draft->builder,
                        &(struct tarn_tensor_info){.size = draft->size[t], .kind = kind});
    return t;
}

/* A slice of a tensor, of all of it at times. */
static uint32_t add_slice(struct draft *draft, uint32_t of)
{
    uint32_t t = draft->tensors++;
    uint64_t begin = random_below(&source, (uint32_t)draft->size[of] + 1);
    uint64_t size = random_below(&source, (uint32_t)(draft->size[of] - begin) + 1);
    if (random_percent(&source, 20)) begin = 0, size = draft->size[of];
    draft->root[t] = draft->root[of];
    draft->offset[t] = draft->offset[of] + begin;
    draft->size[t] = size;
    draft->persistent[t] = draft->persistent[of];
    assert_int_equal(tarn_builder_slice(draft->builder, of, begin, size, "slice"), t);
    return t;
}

static bool share(const struct draft *draft, uint32_t a, uint32_t b)
{
    return draft->root[a] == draft->root[b] && draft->size[a] > 0 && draft->size[b] > 0 &&
           draft->offset[a] < draft->offset[b] + draft->size[b] &&
           draft->offset[b] < draft->offset[a] + draft->size[a];
}

/* Do two ops touch a byte, one of them to write it? */
static bool clash(const struct draft *draft, uint32_t u, uint32_t v)
{
    for (uint32_t i = 0; i < draft->writes_count[u]; i++) {
        for (uint32_t k = 0; k < draft->writes_count[v]; k++)
            if (share(draft, draft->writes[u][i], draft->writes[v][k])) return true;
        for (uint32_t k = 0; k < draft->reads_count[v]; k++)
            if (share(draft, draft->writes[u][i], draft->reads[v][k])) return true;
    }
    for (uint32_t i = 0; i < draft->reads_count[u]; i++)
        for (uint32_t k = 0; k < draft->writes_count[v]; k++)
            if (share(draft, draft->reads[u][i], draft->writes[v][k])) return true;
    return false;
}

/* Some ops lack an order that they need, where careless. */
static struct draft draw(bool careless)
{
    struct draft draft = {.builder = tarn_builder_create("words")};
    uint32_t streams = 1 + random_below(&source, 3), ops = 2 + random_below(&source, OPS - 1);
    for (uint32_t s = 0; s < streams; s++) tarn_builder_stream(draft.builder, "s");
    uint32_t parameters = random_below(&source, 3);
    for (uint32_t i = 0; i < parameters; i++) add_root(&draft, TARN_PARAMETER);
    for (uint32_t v = 0; v < ops; v++) {
        uint32_t control[OPS], control_count = 0, before = draft.tensors, maker[TENSORS];
        (void)maker;
        draft.stream[v] = random_below(&source, streams);
        for (uint32_t i = random_below(&source, 3); i > 0 && before > 0; i--)
            draft.reads[v][draft.reads_count[v]++] = random_below(&source, before);
        for (uint32_t i = random_below(&source, 3); i > 0; i--) {
            bool fresh = before == 0 || random_percent(&source, 50);
            enum tarn_tensor_kind kind =
                random_percent(&source, 15) ? TARN_OUTPUT : TARN_INTERMEDIATE;
            uint32_t t =
                fresh ? add_root(&draft, kind) : add_slice(&draft, random_below(&source, before));
            draft.writes[v][draft.writes_count[v]++] = t;
        }
        for (uint32_t u = 0; u < v; u++) {
            bool makes_root = false; /* of what is written: it comes first, whatever the bytes */
            for (uint32_t i = 0; i < draft.writes_count[u]; i++)
                for (uint32_t k = 0; k < draft.writes_count[v]; k++)
                    makes_root |= draft.root[draft.writes[v][k]] == draft.writes[u][i];
            for (uint32_t i = 0; i < draft.writes_count[u]; i++)
                for (uint32_t k = 0; k < draft.reads_count[v]; k++)
                    makes_root |= draft.root[draft.reads[v][k]] == draft.writes[u][i];
            if (!makes_root && !clash(&draft, u, v)) continue;
            if (!careless || random_percent(&source, 80)) control[control_count++] = u;
        }
        struct tarn_op_info info = {.stream = draft.stream[v],
                                    .inputs = {draft.reads[v], draft.reads_count[v]},
                                    .outputs = {draft.writes[v], draft.writes_count[v]},
                                    .control = {control, control_count}};
        if (random_percent(&source, 15)) info.workspace = 1 + random_below(&source, SIZE);
        tarn_builder_op(draft.builder, &info);
        draft.ops++;
    }
    return draft;
}

/* ---- Who comes before whom ---- */

struct order {
    uint32_t ops, nodes;
    bool before[NODES][NODES];
};

static void close_order(struct order *order)
{
    for (uint32_t k = 0; k < order->nodes; k++)
        for (uint32_t i = 0; i < order->nodes; i++)
            for (uint32_t j = 0; order->before[i][k] && j < order->nodes; j++)
                order->before[i][j] |= order->before[k][j];
}

/* Of two iterations of a plan. */
static struct order order_of_plan(const struct tarn_plan *plan)
{
    struct order order = {.ops = plan->graph->ops_count, .nodes = 2 * plan->graph->ops_count};
    for (uint32_t s = 0; s < plan->streams_count; s++) {
        uint32_t begin = plan->list_begin[s], end = plan->list_begin[s + 1];
        for (uint32_t i = begin; i + 1 < end; i++)
            for (uint32_t k = 0; k < 2; k++)
                order.before[plan->list[i] + k * order.ops][plan->list[i + 1] + k * order.ops] =
                    true;
        if (end > begin) order.before[plan->list[end - 1]][plan->list[begin] + order.ops] = true;
    }
    for (uint32_t i = 0; i < plan->waits_count; i++)
        for (uint32_t k = 0; k < 2; k++)
            order.before[plan->waits[i].on + k * order.ops][plan->waits[i].op + k * order.ops] =
                true;
    for (uint32_t i = 0; i < plan->boundary_waits_count; i++)
        order.before[plan->boundary_waits[i].on][plan->boundary_waits[i].op + order.ops] = true;
    close_order(&order);
    return order;
}

/* ---- Bytes ---- */

/* What a byte is: byte `at` of a storage, as node `writer` left it (NODES: as the caller did). */
struct byte {
    uint32_t storage, at, writer;
};

static const struct byte nothing = {TARN_NONE, 0, TARN_NONE};

enum { ARENA = 4096 };

struct memory {
    struct byte bytes[ARENA];
};

/* Where a storage begins: apart, or where the plan has it, the persistent part behind the arena. */
static uint32_t begin_of(const struct tarn_plan *plan, uint32_t storage, bool apart)
{
    if (apart) return storage * 16;
    uint64_t offset = tarn_plan_place(plan, storage)->offset;
    return (uint32_t)(offset + (plan->graph->storages[storage].persistent ? plan->footprint : 0));
}

static void prepare(struct memory *memory, const struct tarn_plan *plan, bool apart)
{
    const struct tarn_graph *graph = plan->graph;
    for (uint32_t i = 0; i < ARENA; i++) memory->bytes[i] = nothing;
    for (uint32_t a = graph->planned_count; a < graph->storages_count; a++)
        for (uint32_t i = 0; i < graph->storages[a].size; i++)
            memory->bytes[begin_of(plan, a, apart) + i] = (struct byte){a, i, NODES};
}

/* By op: it is in an arm that is not taken. */
static bool skipped[OPS];

static bool is_absent(const struct tarn_graph *graph, uint32_t storage)
{
    const struct tarn_storage *record = &graph->storages[storage];
    return !record->persistent && skipped[record->producer];
}

/* Everything that an op touches: its tensors, then its workspace. */
struct extent {
    uint32_t storage, at, size;
    bool reads, writes;
};

static uint32_t touched(const struct tarn_graph *graph, uint32_t v, struct extent extents[16])
{
    const struct tarn_graph_op *op = &graph->ops[v];
    uint32_t count = 0;
    for (uint32_t k = 0; !skipped[v] && k < op->inputs_count + op->outputs_count; k++) {
        const struct tarn_graph_tensor *tensor = &graph->tensors[op->inputs[k]];
        if (is_absent(graph, tensor->storage)) continue;
        const struct tarn_storage *storage = &graph->storages[tensor->storage];
        bool writes = k >= op->inputs_count;
        bool reads = !writes || storage->persistent || storage->producer != v;
        extents[count++] = (struct extent){tensor->storage, (uint32_t)tarn_tensor_begin(tensor),
                                           (uint32_t)tensor->size, reads, writes};
    }
    uint32_t workspace = tarn_extra(op)->workspace_storage;
    if (workspace != TARN_NONE && !skipped[v])
        extents[count++] =
            (struct extent){workspace, 0, (uint32_t)graph->storages[workspace].size, false, true};
    return count;
}

static void write_all(struct memory *memory, const struct tarn_plan *plan, uint32_t node,
                      bool apart)
{
    struct extent extents[16];
    uint32_t count = touched(plan->graph, node % plan->graph->ops_count, extents);
    for (uint32_t k = 0; k < count; k++)
        for (uint32_t i = 0; extents[k].writes && i < extents[k].size; i++)
            memory->bytes[begin_of(plan, extents[k].storage, apart) + extents[k].at + i] =
                (struct byte){extents[k].storage, extents[k].at + i, node};
}

/* Does an op find in the plan's memory what it finds where nothing shares bytes? */
static bool finds_all(const struct memory *memory, const struct memory *apart,
                      const struct tarn_plan *plan, uint32_t node)
{
    struct extent extents[16];
    uint32_t count = touched(plan->graph, node % plan->graph->ops_count, extents);
    for (uint32_t k = 0; k < count; k++)
        for (uint32_t i = 0; extents[k].reads && i < extents[k].size; i++) {
            uint32_t at = extents[k].at + i, a = extents[k].storage;
            if (memcmp(&memory->bytes[begin_of(plan, a, false) + at],
                       &apart->bytes[begin_of(plan, a, true) + at], sizeof(struct byte)) != 0)
                return false;
        }
    return true;
}

static bool outputs_last(const struct memory *memory, const struct memory *apart,
                         const struct tarn_plan *plan)
{
    const struct tarn_graph *graph = plan->graph;
    for (uint32_t a = 0; a < graph->storages_count; a++)
        for (uint32_t i = 0;
             !is_absent(graph, a) && (graph->storages[a].pinned || graph->storages[a].persistent) &&
             i < graph->storages[a].size;
             i++)
            if (memcmp(&memory->bytes[begin_of(plan, a, false) + i],
                       &apart->bytes[begin_of(plan, a, true) + i], sizeof(struct byte)) != 0)
                return false;
    return true;
}

/* Two iterations, one after the other, in the graph's order. */
static bool runs_right(const struct tarn_plan *plan)
{
    static struct memory memory, apart;
    const struct tarn_graph *graph = plan->graph;
    prepare(&memory, plan, false);
    prepare(&apart, plan, true);
    for (uint32_t k = 0; k < 2; k++) {
        for (uint32_t i = 0; i < graph->ops_count; i++) {
            uint32_t node = graph->order[i] + k * graph->ops_count;
            if (!finds_all(&memory, &apart, plan, node)) return false;
            write_all(&memory, plan, node, false);
            write_all(&apart, plan, node, true);
        }
        if (!outputs_last(&memory, &apart, plan)) return false;
    }
    return true;
}

/* Is every two touches of a byte of memory ordered, if one of them writes? Within an op its own
 * storages must not meet. */
static bool is_ordered(const struct tarn_plan *plan)
{
    const struct tarn_graph *graph = plan->graph;
    struct order order = order_of_plan(plan);
    struct extent a[16], b[16];
    for (uint32_t u = 0; u < order.nodes; u++)
        for (uint32_t v = 0; v <= u; v++) {
            if (u != v && (order.before[u][v] || order.before[v][u])) continue;
            uint32_t a_count = touched(graph, u % order.ops, a),
                     b_count = touched(graph, v % order.ops, b);
            for (uint32_t i = 0; i < a_count; i++)
                for (uint32_t k = 0; k < b_count; k++) {
                    if (u == v && a[i].storage == b[k].storage) continue;
                    uint32_t x = begin_of(plan, a[i].storage, false) + a[i].at,
                             y = begin_of(plan, b[k].storage, false) + b[k].at;
                    bool meet =
                        a[i].size > 0 && b[k].size > 0 && x < y + b[k].size && y < x + a[i].size;
                    if (meet && (a[i].writes || b[k].writes)) return false;
                }
        }
    return true;
}

/* Does everything come after what it has a control arc to, and after who makes what it reads? */
static bool keeps_arcs(const struct tarn_plan *plan)
{
    const struct tarn_graph *graph = plan->graph;
    struct order order = order_of_plan(plan);
    for (uint32_t v = 0; v < order.ops; v++) {
        const struct tarn_graph_op *op = &graph->ops[v];
        for (uint32_t k = 0; k < tarn_extra(op)->control_count; k++)
            if (!order.before[tarn_extra(op)->control[k]][v]) return false;
        for (uint32_t k = 0; k < op->inputs_count; k++) {
            uint32_t u = graph->tensors[op->inputs[k]].producer;
            if (u != TARN_NONE && !order.before[u][v]) return false;
        }
    }
    return true;
}

static bool oracle_accepts_words(const struct tarn_plan *plan)
{
    return is_ordered(plan) && keeps_arcs(plan) && runs_right(plan);
}

/* ---- The least arena ---- */

static bool precedes(const struct tarn_graph *graph, const struct order *order, uint32_t a,
                     uint32_t b)
{
    const struct tarn_storage *x = &graph->storages[a], *y = &graph->storages[b];
    if (x->pinned) return false;
    for (uint32_t k = 0; k < x->users_count; k++)
        if (!order->before[tarn_storage_users(graph, x)[k]][y->producer]) return false;
    return true;
}

struct packing {
    const struct tarn_graph *graph;
    struct order order;
    uint64_t offset[TENSORS + OPS];
    bool placed[TENSORS + OPS];
    uint64_t least;
};

/* Places what is not placed yet at the lowest offset, in every order: some order gives the least.
 */
static void pack(struct packing *packing, uint32_t placed, uint64_t top)
{
    const struct tarn_graph *graph = packing->graph;
    if (top >= packing->least) return;
    if (placed == graph->planned_count) {
        packing->least = top;
        return;
    }
    for (uint32_t a = 0; a < graph->planned_count; a++) {
        if (packing->placed[a]) continue;
        uint64_t size = graph->storages[a].size, at = 0;
        for (uint32_t b = 0; size > 0 && b < graph->planned_count; b++) {
            bool meets = packing->placed[b] && at < packing->offset[b] + graph->storages[b].size &&
                         packing->offset[b] < at + size && graph->storages[b].size > 0;
            if (!meets || tarn_storages_exclude(graph, a, b) ||
                precedes(graph, &packing->order, a, b) || precedes(graph, &packing->order, b, a))
                continue;
            at = packing->offset[b] + graph->storages[b].size;
            b = TARN_NONE; /* from the first one on */
        }
        packing->placed[a] = true;
        packing->offset[a] = at;
        pack(packing, placed + 1, at + size > top ? at + size : top);
        packing->placed[a] = false;
    }
}

static uint64_t least_arena(const struct tarn_plan *plan)
{
    struct packing packing = {plan->graph, order_of_plan(plan), {0}, {0}, plan->footprint};
    pack(&packing, 0, 0);
    return packing.least;
}

/* ---- Tests ---- */

/* Is the draft without a race, and does every storage begin with its producer? */
static bool is_sound(const struct draft *draft, const struct order *order)
{
    for (uint32_t v = 0; v < draft->ops; v++)
        for (uint32_t u = 0; u < v; u++) {
            if (order->before[u][v]) continue;
            if (clash(draft, u, v)) return false;
            for (uint32_t i = 0; i < draft->writes_count[u]; i++) {
                uint32_t root = draft->writes[u][i];
                for (uint32_t k = 0; draft->root[root] == root && k < draft->writes_count[v]; k++)
                    if (draft->root[draft->writes[v][k]] == root) return false;
                for (uint32_t k = 0; draft->root[root] == root && k < draft->reads_count[v]; k++)
                    if (draft->root[draft->reads[v][k]] == root) return false;
            }
        }
    return true;
}

/* Data arcs, control arcs and streams of a graph that could be built, or of a draft's. */
static void refuses_exactly_the_races_of_bytes(void **state)
{
    uint32_t refused = 0, accepted = 0;
    (void)state;
    for (uint64_t seed = 0; seed < DRAWS(20000); seed++) {
        source.state = seed;
        struct draft draft = draw(true);
        struct order order = {.ops = draft.ops, .nodes = draft.ops};
        struct tarn_graph *graph = tarn_builder_graph(draft.builder);
        for (uint32_t v = 0; v < draft.ops; v++) {
            const struct tarn_op_extra *extra = tarn_extra(&graph->ops[v]);
            for (uint32_t i = 0; i < extra->control_count; i++)
                order.before[extra->control[i]][v] = true;
            for (uint32_t u = 0; u < v; u++) {
                if (draft.stream[u] == draft.stream[v]) order.before[u][v] = true;
                for (uint32_t i = 0; i < draft.writes_count[u]; i++)
                    for (uint32_t k = 0; k < draft.reads_count[v]; k++)
                        if (draft.writes[u][i] == draft.reads[v][k]) order.before[u][v] = true;
            }
        }
        close_order(&order);
        struct tarn_error error;
        enum tarn_status status = tarn_builder_finish(draft.builder, &graph, &error);
        if ((status == TARN_OK) != is_sound(&draft, &order))
            fail_msg("seed %llu: %s", (unsigned long long)seed, error.text);
        refused += status != TARN_OK;
        accepted += status == TARN_OK;
        tarn_graph_destroy(graph);
    }
    assert_true(refused > DRAWS(1000) && accepted > DRAWS(1000));
}

static struct tarn_graph *draw_graph(uint64_t seed)
{
    struct tarn_graph *graph;
    struct tarn_error error;
    source.state = seed;
    struct draft draft = draw(false);
    if (tarn_builder_finish(draft.builder, &graph, &error)) fail_msg("%s", error.text);
    return graph;
}

static struct tarn_plan *plan_of(struct tarn_graph *graph)
{
    struct tarn_plan *plan;
    struct tarn_error error;
    if (tarn_plan_create(graph, TARN_PLAN_OPTIONS(.alignment = 1, .threads = 1), &plan, &error))
        fail_msg("%s", error.text);
    return plan;
}

static void plans_are_safe_and_as_small_as_said(void **state)
{
    uint32_t optimal = 0, sliced = 0, empty = 0;
    (void)state;
    for (uint64_t seed = 0; seed < DRAWS(6000); seed++) {
        struct tarn_graph *graph = draw_graph(seed);
        struct tarn_plan *plan = plan_of(graph);
        struct tarn_plan_summary summary;
        tarn_plan_summarize(plan, &summary);
        if (!oracle_accepts_words(plan)) fail_msg("seed %llu", (unsigned long long)seed);
        uint64_t least = graph->planned_count <= 8 ? least_arena(plan) : summary.footprint;
        assert_true(summary.bound <= least);
        if (summary.optimal) assert_int_equal(summary.footprint, least);
        optimal += summary.optimal;
        for (uint32_t a = 0; a < graph->storages_count; a++) {
            sliced += graph->storages[a].parts_count > 1;
            empty += graph->storages[a].size == 0;
        }
        tarn_plan_destroy(plan);
        tarn_graph_destroy(graph);
    }
    assert_true(optimal > DRAWS(5000) && sliced > DRAWS(1000) && empty > DRAWS(1000));
}

/* Moves a storage, or forgets a wait. */
static void damage(struct tarn_plan *plan)
{
    struct tarn_wait *waits = plan->waits;
    uint32_t *count = &plan->waits_count;
    if (random_percent(&source, 50))
        waits = plan->boundary_waits, count = &plan->boundary_waits_count;
    if (*count > 0 && random_percent(&source, 50)) {
        waits[random_below(&source, *count)] = waits[*count - 1];
        --*count;
    } else if (plan->storages_count > 0) {
        struct tarn_place *place = &plan->storages[random_below(&source, plan->storages_count)];
        place->offset = random_below(&source, (uint32_t)(plan->footprint - place->size) + 1);
    }
    tarn_plan_drop_program(plan);
}

static void damaged_plans_are_judged_as_byte_by_byte(void **state)
{
    uint32_t refused = 0;
    (void)state;
    for (uint64_t seed = 0; seed < DRAWS(20000); seed++) {
        struct tarn_graph *graph = draw_graph(seed);
        struct tarn_plan *plan = plan_of(graph);
        struct tarn_error error = {.status = TARN_OK};
        damage(plan);
        enum tarn_status status = tarn_plan_verify(plan, graph, NULL, NULL, &error);
        bool harmful = !oracle_accepts_words(plan);
        if ((status != TARN_OK) != harmful)
            fail_msg("seed %llu: %s", (unsigned long long)seed, status ? error.text : "accepted");
        refused += harmful;
        tarn_plan_destroy(plan);
        tarn_graph_destroy(graph);
    }
    assert_true(refused > DRAWS(2000));
}

static void checked_runs_find_every_byte(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < DRAWS(300); seed++) {
        struct tarn_graph *graph = draw_graph(seed);
        struct tarn_plan *plan = plan_of(graph);
        struct tarn_session *session;
        struct tarn_error error;
        struct tarn_check_report report;
        if (tarn_session_create(plan, tarn_device_host(NULL), NULL, &session, &error) ||
            tarn_session_check(session, TARN_CHECK_OPTIONS(.iterations = 3), &report, &error))
            fail_msg("seed %llu: %s", (unsigned long long)seed, error.text);
        for (tarn_tensor t = 0; t < graph->tensors_count; t++) {
            uint64_t begin = tarn_plan_offset(plan, graph->tensors[t].root);
            assert_int_equal(tarn_plan_offset(plan, t),
                             begin + tarn_tensor_begin(&graph->tensors[t]));
            char *root = tarn_session_address(session, graph->tensors[t].root);
            assert_ptr_equal(tarn_session_address(session, t),
                             root ? root + tarn_tensor_begin(&graph->tensors[t]) : NULL);
        }
        tarn_session_destroy(session);
        tarn_plan_destroy(plan);
        tarn_graph_destroy(graph);
    }
}

/* Transforms keep every meaning: the verifier and a checked run look at what they made. */
static void transforms_keep_slices(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < DRAWS(600); seed++) {
        struct tarn_graph *graph = draw_graph(seed);
        struct tarn_plan *plan;
        struct tarn_error error;
        struct tarn_session *session;
        struct tarn_in_place_options in_place = {
            .struct_size = sizeof in_place, .kinds = (const char *const[]){""}, .kinds_count = 1};
        struct tarn_reorder_options reorder = {.struct_size = sizeof reorder};
        struct tarn_plan_options *options = TARN_PLAN_OPTIONS(.alignment = 1, .threads = 1);
        if (seed % 3 != 0) options->reorder = &reorder;
        if (seed % 3 != 1) options->in_place = &in_place;
        if (tarn_plan_create(graph, options, &plan, &error))
            fail_msg("seed %llu: %s", (unsigned long long)seed, error.text);
        if (!oracle_accepts_words(plan)) fail_msg("seed %llu", (unsigned long long)seed);
        if (tarn_session_create(plan, tarn_device_host(NULL), NULL, &session, &error) ||
            tarn_session_check(session, TARN_CHECK_OPTIONS(.iterations = 2), NULL, &error))
            fail_msg("seed %llu: %s", (unsigned long long)seed, error.text);
        tarn_session_destroy(session);
        tarn_plan_destroy(plan);
        tarn_graph_destroy(graph);
    }
}

static void files_keep_slices(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < DRAWS(300); seed++) {
        struct tarn_graph *graph = draw_graph(seed), *again;
        char name[] = "/tmp/words_XXXXXX";
        struct tarn_error error;
        int file = mkstemp(name);
        assert_true(file >= 0);
        assert_int_equal(tarn_graph_save(graph, name, &error), TARN_OK);
        if (tarn_graph_load(name, NULL, &again, &error)) fail_msg("%s", error.text);
        assert_true(tarn_hash_equal(graph->hash, again->hash));
        close(file);
        remove(name);
        tarn_graph_destroy(graph);
        tarn_graph_destroy(again);
    }
}

/* ---- In place, where sizes differ ---- */

enum { PAIRS = 5 };

struct pairs {
    uint32_t op[PAIRS], pair[PAIRS][2], count;
};

static struct tarn_graph *draw_pairs(uint64_t seed, struct pairs *pairs)
{
    source.state = seed;
    struct tarn_builder *builder = tarn_builder_create("pairs");
    uint32_t streams = 1 + random_below(&source, 2), ops = 3 + random_below(&source, 3),
             tensors = 0;
    uint64_t size[TENSORS];
    *pairs = (struct pairs){.count = 0};
    for (uint32_t s = 0; s < streams; s++) tarn_builder_stream(builder, "s");
    for (uint32_t v = 0; v < ops; v++) {
        uint32_t inputs[2], outputs[2], inputs_count = 0, outputs_count = 0, list[4][2], count = 0;
        uint32_t before = tensors;
        for (uint32_t i = random_below(&source, 3); i > 0 && before > 0; i--) {
            uint32_t t = before - 1 - random_below(&source, before < 3 ? before : 3);
            if (inputs_count == 0 || inputs[0] != t) inputs[inputs_count++] = t;
        }
        for (uint32_t i = 1 + random_below(&source, 2); i > 0; i--) {
            size[tensors] = 1 + random_below(&source, SIZE);
            tarn_builder_tensor(builder,
                                &(struct tarn_tensor_info){.size = size[tensors],
                                                           .kind = random_percent(&source, 10)
                                                                       ? TARN_OUTPUT
                                                                       : TARN_INTERMEDIATE});
            outputs[outputs_count++] = tensors++;
        }
        for (uint32_t i = 0; i < inputs_count; i++)
            for (uint32_t k = 0; k < outputs_count; k++) {
                if (size[outputs[k]] > size[inputs[i]] || pairs->count == PAIRS) continue;
                if (random_percent(&source, 30)) continue;
                list[count][0] = pairs->pair[pairs->count][0] = inputs[i];
                list[count++][1] = pairs->pair[pairs->count][1] = outputs[k];
                pairs->op[pairs->count++] = v;
            }
        tarn_builder_op(builder, &(struct tarn_op_info){.stream = random_below(&source, streams),
                                                        .inputs = {inputs, inputs_count},
                                                        .outputs = {outputs, outputs_count},
                                                        .inplace = (const uint32_t(*)[2])list,
                                                        .inplace_count = count});
    }
    struct tarn_graph *graph;
    struct tarn_error error;
    if (tarn_builder_finish(builder, &graph, &error)) fail_msg("%s", error.text);
    return graph;
}

/* May all pairs of the set be taken, in the order of ops? root: what they make of it. */
static bool may_take(const struct tarn_graph *graph, const struct order *order,
                     const struct pairs *pairs, uint32_t set, uint32_t *root)
{
    bool taken[TENSORS] = {false};
    for (uint32_t t = 0; t < graph->tensors_count; t++) root[t] = t;
    for (uint32_t i = 0; i < pairs->count; i++) {
        if (!(set >> i & 1)) continue;
        uint32_t in = pairs->pair[i][0], out = pairs->pair[i][1];
        const struct tarn_storage *from = &graph->storages[graph->tensors[in].storage];
        if (from->pinned || taken[in] || root[out] != out) return false;
        for (uint32_t k = 0; k < from->users_count; k++) {
            uint32_t u = tarn_storage_users(graph, from)[k];
            if (u != pairs->op[i] && !order->before[u][pairs->op[i]]) return false;
        }
        taken[in] = true;
        root[out] = root[in];
    }
    return true;
}

/* Of all sets of pairs that may be taken, which gives the least arena? The transform is never worse
 * than none, and mostly as good as the best. */
static void what_is_smaller_goes_over_what_is_larger_where_that_is_less(void **state)
{
    uint32_t best = 0, better = 0, count = 0;
    (void)state;
    for (uint64_t seed = 0; seed < DRAWS(3000); seed++) {
        struct pairs pairs;
        struct tarn_graph *graph = draw_pairs(seed, &pairs);
        struct tarn_plan *plan = plan_of(graph), *in_place;
        struct order order = order_of_plan(plan);
        uint64_t least = UINT64_MAX, equal = UINT64_MAX;
        struct tarn_error error;
        for (uint32_t set = 0; set < 1u << pairs.count; set++) {
            uint32_t root[TENSORS];
            struct tarn_graph *merged;
            bool is_equal = true;
            if (!may_take(graph, &order, &pairs, set, root)) continue;
            for (uint32_t i = 0; i < pairs.count; i++)
                is_equal =
                    is_equal && (!(set >> i & 1) || graph->tensors[pairs.pair[i][0]].size ==
                                                        graph->tensors[pairs.pair[i][1]].size);
            if (tarn_recipe_build(&(struct tarn_recipe){.graph = graph, .root = root}, &merged,
                                  &error))
                fail_msg("%s", error.text);
            struct tarn_plan *of_set = plan_of(merged);
            if (of_set->footprint < least) least = of_set->footprint;
            if (is_equal && of_set->footprint < equal) equal = of_set->footprint;
            tarn_plan_destroy(of_set);
            tarn_graph_destroy(merged);
        }
        if (tarn_plan_create(graph,
                             TARN_PLAN_OPTIONS(.alignment = 1, .threads = 1,
                                               .in_place = TARN_IN_PLACE_OPTIONS(.report = NULL)),
                             &in_place, &error))
            fail_msg("seed %llu: %s", (unsigned long long)seed, error.text);
        assert_true(oracle_accepts_words(in_place));
        assert_true(in_place->footprint <= plan->footprint && in_place->footprint >= least);
        count += least < equal;
        better += in_place->footprint < equal;
        best += in_place->footprint == least;
        tarn_plan_destroy(in_place);
        tarn_plan_destroy(plan);
        tarn_graph_destroy(graph);
    }
    print_message("# smaller outputs lower the least arena of %u graphs, the transform's of %u; it "
                  "is the least %u times\n",
                  count, better, best);
    assert_true(better > count * 4 / 5 && best > DRAWS(3000) * 9 / 10);
}

/* ---- Contiguous groups that share members ---- */

enum { GROUPS = 4, MEMBERS = 3 };

struct grouping {
    uint32_t members[GROUPS][MEMBERS], members_count[GROUPS], count;
    bool has_offsets[GROUPS];
    uint64_t offsets[GROUPS][MEMBERS];
};

/* Percent of tensors whose offset is fixed, or preferred, and of groups with offsets; and one that
 * is larger than it was. */
static uint32_t fixed_share, preferred_share, offsets_share, larger = TARN_NONE;

static struct tarn_tensor_info draw_tensor(uint32_t t)
{
    struct tarn_tensor_info info = {.size = random_below(&source, 4)};
    if (random_percent(&source, 8)) info.kind = TARN_OUTPUT;
    if (fixed_share > 0 && random_percent(&source, fixed_share) && info.size > 0) {
        info.offset_rule = TARN_OFFSET_FIXED;
        info.wanted_offset = random_below(&source, 10);
    } else if (preferred_share > 0 && random_percent(&source, preferred_share) && info.size > 0) {
        info.offset_rule = TARN_OFFSET_PREFERRED;
        info.wanted_offset = random_below(&source, 10);
    }
    if (t == larger) info.size += 2;
    return info;
}

/* Some groups name the offsets of their members, one of which is at 0. */
static void draw_offsets(struct grouping *grouping, uint32_t g, const uint64_t *sizes)
{
    uint64_t least = UINT64_MAX;
    grouping->has_offsets[g] = random_percent(&source, offsets_share);
    if (!grouping->has_offsets[g]) return;
    for (uint32_t i = 0; i < grouping->members_count[g]; i++) {
        uint64_t *offset = &grouping->offsets[g][i];
        *offset = random_percent(&source, 40) ? 0 : random_below(&source, 6);
        if (sizes[grouping->members[g][i]] > 0 && *offset < least) least = *offset;
    }
    for (uint32_t i = 0; i < grouping->members_count[g]; i++) {
        uint64_t *offset = &grouping->offsets[g][i];
        *offset -= sizes[grouping->members[g][i]] > 0 ? least : 0;
    }
}

/* Lone storages in chains of ops, some in several groups. */
static struct tarn_builder *draw_groups(struct grouping *grouping, uint64_t seed, bool grouped)
{
    source.state = seed;
    struct tarn_builder *builder = tarn_builder_create("groups");
    uint64_t sizes[TENSORS];
    uint32_t streams = 1 + random_below(&source, 2), ops = 3 + random_below(&source, 4),
             tensors = 0;
    for (uint32_t s = 0; s < streams; s++) tarn_builder_stream(builder, "s");
    for (uint32_t v = 0; v < ops; v++) {
        uint32_t inputs[2], outputs[2], inputs_count = 0, outputs_count = 0, before = tensors;
        for (uint32_t i = random_below(&source, 3); i > 0 && before > 0; i--)
            inputs[inputs_count++] = before - 1 - random_below(&source, before < 3 ? before : 3);
        for (uint32_t i = 1 + random_percent(&source, 20); i > 0; i--) {
            struct tarn_tensor_info info = draw_tensor(tensors);
            sizes[tensors] = info.size;
            tarn_builder_tensor(builder, &info);
            outputs[outputs_count++] = tensors++;
        }
        tarn_builder_op(builder, &(struct tarn_op_info){.stream = random_below(&source, streams),
                                                        .inputs = {inputs, inputs_count},
                                                        .outputs = {outputs, outputs_count}});
    }
    *grouping = (struct grouping){.count = 1 + random_below(&source, GROUPS)};
    for (uint32_t g = 0; g < grouping->count; g++) {
        uint32_t wanted = 2 + random_below(&source, 2);
        for (uint32_t i = 0; i < wanted; i++) {
            uint32_t t = random_below(&source, tensors);
            bool is_there = false;
            for (uint32_t k = 0; k < grouping->members_count[g]; k++)
                is_there |= grouping->members[g][k] == t;
            if (!is_there) grouping->members[g][grouping->members_count[g]++] = t;
        }
        draw_offsets(grouping, g, sizes);
        struct tarn_list list = {grouping->members[g], grouping->members_count[g]};
        if (grouped && grouping->has_offsets[g])
            tarn_builder_group_offsets(builder, list, grouping->offsets[g]);
        else if (grouped)
            tarn_builder_group(builder, list);
    }
    return builder;
}

/* Differences of offsets that groups ask for, closed. */
struct differences {
    bool known[TENSORS][TENSORS], contradict;
    int64_t of[TENSORS][TENSORS];
};

static void learn(struct differences *d, uint32_t a, uint32_t b, int64_t difference, bool *more)
{
    if (d->known[a][b]) {
        d->contradict |= d->of[a][b] != difference;
        return;
    }
    d->known[a][b] = d->known[b][a] = true;
    d->of[a][b] = difference;
    d->of[b][a] = -difference;
    *more = true;
}

static void find_differences(struct differences *d, const struct grouping *grouping,
                             const struct tarn_graph *graph)
{
    uint32_t count = graph->tensors_count;
    bool more = true;
    memset(d, 0, sizeof *d);
    for (uint32_t t = 0; t < count; t++) d->known[t][t] = true;
    for (uint32_t g = 0; g < grouping->count; g++) {
        uint32_t before = TARN_NONE;
        int64_t at = 0;
        for (uint32_t i = 0; i < grouping->members_count[g]; i++) {
            uint32_t t = grouping->members[g][i];
            if (graph->tensors[t].size == 0) continue;
            int64_t behind = before != TARN_NONE ? (int64_t)graph->tensors[before].size : 0;
            if (grouping->has_offsets[g]) behind = (int64_t)grouping->offsets[g][i] - at;
            if (before != TARN_NONE) learn(d, before, t, behind, &more);
            before = t;
            at = (int64_t)grouping->offsets[g][i];
        }
    }
    while (more) {
        more = false;
        for (uint32_t a = 0; a < count; a++)
            for (uint32_t b = 0; b < count; b++)
                for (uint32_t c = 0; c < count; c++)
                    if (d->known[a][b] && d->known[b][c])
                        learn(d, a, c, d->of[a][b] + d->of[b][c], &more);
    }
}

static bool are_unsafe(const struct tarn_graph *graph, const struct order *order, uint32_t a,
                       uint32_t b)
{
    return graph->storages[a].size > 0 && graph->storages[b].size > 0 &&
           !precedes(graph, order, a, b) && !precedes(graph, order, b, a);
}

/* Do offsets that the groups allow put two storages over each other that may not be? */
static bool is_possible(const struct differences *d, const struct tarn_graph *graph,
                        const struct order *order)
{
    for (uint32_t a = 0; a < graph->planned_count; a++)
        for (uint32_t b = 0; b < a; b++) {
            uint32_t x = graph->storages[a].tensor, y = graph->storages[b].tensor;
            int64_t x_size = (int64_t)graph->storages[a].size;
            int64_t y_size = (int64_t)graph->storages[b].size;
            if (!d->known[x][y] || !are_unsafe(graph, order, a, b)) continue;
            if (d->of[x][y] < x_size && -d->of[x][y] < y_size) return false;
        }
    return !d->contradict;
}

/* All offsets of all storages below a limit, one after the other. */
struct trying {
    const struct tarn_graph *graph;
    const struct differences *differences;
    const struct order *order;
    uint64_t offset[TENSORS], limit, tries;
};

static bool fits_below(struct trying *trying, uint32_t a)
{
    const struct tarn_graph *graph = trying->graph;
    if (a == graph->planned_count || trying->tries == 0) return true;
    uint64_t size = graph->storages[a].size;
    if (size == 0) return fits_below(trying, a + 1);
    for (uint64_t at = 0; at + size <= trying->limit; at++) {
        uint32_t t = graph->storages[a].tensor;
        bool ok = t == TARN_NONE || graph->tensors[t].offset_rule != TARN_OFFSET_FIXED ||
                  tarn_tensor_wanted(&graph->tensors[t]) == at;
        if (trying->tries > 0) trying->tries--;
        for (uint32_t b = 0; ok && b < a; b++) {
            uint32_t x = graph->storages[b].tensor, y = graph->storages[a].tensor;
            uint64_t other = trying->offset[b], end = other + graph->storages[b].size;
            if (graph->storages[b].size == 0) continue;
            if (trying->differences->known[x][y])
                ok = (int64_t)(at - other) == trying->differences->of[x][y];
            if (at < end && other < at + size) ok = ok && !are_unsafe(graph, trying->order, a, b);
        }
        trying->offset[a] = at;
        if (ok && fits_below(trying, a + 1)) return true;
    }
    return false;
}

/* ---- Offsets that are fixed, or wished for ---- */

static bool fixes(const struct tarn_graph *graph, uint32_t a)
{
    uint32_t t = graph->storages[a].tensor;
    return t != TARN_NONE && graph->tensors[t].offset_rule == TARN_OFFSET_FIXED;
}

/* As groups: the differences of what is fixed. */
static void find_fixed(struct differences *d, const struct tarn_graph *graph)
{
    bool more;
    memset(d, 0, sizeof *d);
    for (uint32_t a = 0; a < graph->planned_count; a++)
        for (uint32_t b = 0; b < graph->planned_count; b++)
            if (fixes(graph, a) && fixes(graph, b)) {
                uint32_t x = graph->storages[a].tensor, y = graph->storages[b].tensor;
                learn(d, x, y,
                      (int64_t)tarn_tensor_wanted(&graph->tensors[y]) -
                          (int64_t)tarn_tensor_wanted(&graph->tensors[x]),
                      &more);
            }
}

/* A plan is no smaller than where its last fixed storage ends; that is known without a search. */
static void require_bound_of_fixed(const struct tarn_plan *plan)
{
    struct tarn_graph *graph = plan->graph;
    uint64_t last = 0;
    for (uint32_t i = 0; i < graph->planned_count; i++) {
        uint64_t end = plan->storages[i].offset + graph->storages[i].size;
        if (i < plan->storages_count && fixes(graph, i) && end > last) last = end;
    }
    assert_true(plan->claim.bound >= last && plan->footprint >= last);
    if (last < 2 || last < plan->claim.bound) return;
    struct tarn_plan *none;
    struct tarn_error error;
    assert_int_equal(
        tarn_plan_create(graph,
                         TARN_PLAN_OPTIONS(.alignment = 1, .threads = 1, .capacity = last - 1),
                         &none, &error),
        TARN_DOES_NOT_FIT);
    assert_non_null(strstr(error.text, "no plan fits"));
}

static void what_is_fixed_stays_and_clashes_are_refused(void **state)
{
    uint32_t refused = 0, planned = 0;
    (void)state;
    fixed_share = 30;
    for (uint64_t seed = 0; seed < DRAWS(6000); seed++) {
        static struct differences differences;
        struct grouping ignored;
        struct tarn_graph *graph;
        struct tarn_plan *plan;
        struct tarn_error error = {.status = TARN_OK};
        assert_int_equal(tarn_builder_finish(draw_groups(&ignored, seed, false), &graph, NULL), 0);
        enum tarn_status status =
            tarn_plan_create(graph, TARN_PLAN_OPTIONS(.alignment = 1, .threads = 1), &plan, &error);
        struct tarn_plan *any = status ? tarn_plan_of_graph(graph) : plan;
        struct order order = order_of_plan(any);
        find_fixed(&differences, graph);
        bool possible = is_possible(&differences, graph, &order);
        if ((status == TARN_OK) != possible)
            fail_msg("seed %llu: %s", (unsigned long long)seed, status ? error.text : "planned");
        if (status) {
            assert_int_equal(status, TARN_BAD_INPUT);
            tarn_plan_destroy(any);
            tarn_graph_destroy(graph);
            refused++;
            continue;
        }
        if (!oracle_accepts_words(plan)) fail_msg("seed %llu", (unsigned long long)seed);
        require_bound_of_fixed(plan);
        for (tarn_tensor t = 0; t < graph->tensors_count; t++)
            if (graph->tensors[t].offset_rule == TARN_OFFSET_FIXED)
                assert_int_equal(tarn_plan_offset(plan, t), tarn_tensor_wanted(&graph->tensors[t]));
        struct trying trying = {graph, &differences, &order, {0}, plan->footprint - 1, 100000};
        if (plan->footprint > 0 && graph->planned_count <= 8 && fits_below(&trying, 0) &&
            trying.tries > 0)
            fail_msg("seed %llu: %llu is not the least", (unsigned long long)seed,
                     (unsigned long long)plan->footprint);
        for (uint32_t i = 0; i < plan->storages_count; i++)
            if (fixes(graph, i)) {
                plan->storages[i].offset++;
                plan->footprint++;
                tarn_plan_drop_program(plan);
                assert_int_equal(tarn_plan_verify(plan, graph, NULL, NULL, &error), TARN_REJECTED);
                break;
            }
        planned++;
        tarn_plan_destroy(plan);
        tarn_graph_destroy(graph);
    }
    fixed_share = 0;
    print_message("# %u refused, %u planned\n", refused, planned);
    assert_true(refused > DRAWS(200) && planned > DRAWS(2000));
}

/* A plan anew, of the same graph and of one in which a tensor has grown, keeps what it can; it is
 * never larger than without. */
static void what_is_to_be_kept_stays_where_that_costs_nothing(void **state)
{
    uint32_t kept = 0, moved = 0, preferred = 0;
    (void)state;
    for (uint64_t seed = 0; seed < DRAWS(3000); seed++) {
        struct grouping ignored;
        struct tarn_graph *graph, *grown;
        struct tarn_error error;
        preferred_share = seed % 4 == 0 ? 30 : 0;
        larger = TARN_NONE;
        assert_int_equal(tarn_builder_finish(draw_groups(&ignored, seed, false), &graph, NULL), 0);
        larger = (uint32_t)seed % graph->tensors_count;
        assert_int_equal(tarn_builder_finish(draw_groups(&ignored, seed, false), &grown, NULL), 0);
        struct tarn_plan *first = plan_of(graph), *without = plan_of(grown), *again, *with;
        struct tarn_placed places[TENSORS];
        for (uint32_t i = 0; i < first->storages_count; i++)
            places[i] = (struct tarn_placed){first->storages[i].id, first->storages[i].offset, 0};
        const struct tarn_places keep = {places, first->storages_count};
        if (tarn_plan_create(
                graph, TARN_PLAN_OPTIONS(.alignment = 1, .threads = 1, .seed = 7, .keep = keep),
                &again, &error) ||
            tarn_plan_create(grown, TARN_PLAN_OPTIONS(.alignment = 1, .threads = 1, .keep = keep),
                             &with, &error))
            fail_msg("seed %llu: %s", (unsigned long long)seed, error.text);
        assert_true(oracle_accepts_words(with) && with->footprint <= without->footprint);
        for (uint32_t i = 0; i < first->storages_count; i++) {
            if (first->storages[i].size > 0)
                assert_int_equal(again->storages[i].offset, first->storages[i].offset);
            kept += with->storages[i].offset == first->storages[i].offset;
            moved += with->storages[i].offset != first->storages[i].offset;
            preferred += graph->tensors[first->storages[i].id].offset_rule &&
                         tarn_tensor_wanted(&graph->tensors[first->storages[i].id]) ==
                             first->storages[i].offset;
        }
        tarn_plan_destroy(first);
        tarn_plan_destroy(without);
        tarn_plan_destroy(again);
        tarn_plan_destroy(with);
        tarn_graph_destroy(graph);
        tarn_graph_destroy(grown);
    }
    preferred_share = 0;
    larger = TARN_NONE;
    print_message("# %u kept, %u moved, %u where the graph prefers them\n", kept, moved, preferred);
    assert_true(kept > 4 * moved && preferred > DRAWS(300));
}

static const char *const methods[] = {"all", "lowest", "exact", "baseline", "roam-tree", "llfb"};

static void files_keep_the_groups(struct tarn_graph *graph)
{
    static char bytes[1 << 16];
    struct tarn_graph *again;
    struct tarn_error error;
    size_t size;
    assert_int_equal(tarn_graph_write(graph,
                                      TARN_WRITER(.name = "g.json", .bytes = bytes,
                                                  .room = sizeof bytes, .size = &size),
                                      &error),
                     TARN_OK);
    if (tarn_graph_read(TARN_READER(.name = "g.json", .bytes = bytes, .size = size), NULL, &again,
                        &error))
        fail_msg("%s", error.text);
    assert_true(tarn_hash_equal(graph->hash, again->hash));
    tarn_graph_destroy(again);
}

/* Do members lie as their group says? */
static bool holds_together(const struct tarn_plan *plan, const struct grouping *grouping)
{
    static struct differences differences;
    const struct tarn_graph *graph = plan->graph;
    find_differences(&differences, grouping, graph);
    for (uint32_t x = 0; x < graph->tensors_count; x++)
        for (uint32_t y = 0; y < graph->tensors_count; y++)
            if (differences.known[x][y] && graph->tensors[x].root == x &&
                graph->tensors[y].root == y &&
                (int64_t)(tarn_plan_offset(plan, y) - tarn_plan_offset(plan, x)) !=
                    differences.of[x][y])
                return false;
    return true;
}

static void hold_groups_together_or_refuse_them(uint32_t draws)
{
    uint32_t refused = 0, shared = 0, layered = 0, optimal = 0, harmful = 0;
    for (uint64_t seed = 0; seed < draws; seed++) {
        static struct differences differences;
        struct grouping grouping;
        struct tarn_graph *plain, *graph;
        struct tarn_error error;
        assert_int_equal(tarn_builder_finish(draw_groups(&grouping, seed, false), &plain, NULL), 0);
        struct tarn_plan *plan = plan_of(plain);
        struct order order = order_of_plan(plan);
        find_differences(&differences, &grouping, plain);
        bool possible = is_possible(&differences, plain, &order);
        enum tarn_status status =
            tarn_builder_finish(draw_groups(&grouping, seed, true), &graph, &error);
        if ((status == TARN_OK) != possible)
            fail_msg("seed %llu: %s", (unsigned long long)seed, status ? error.text : "accepted");
        tarn_plan_destroy(plan);
        tarn_graph_destroy(plain);
        refused += status != TARN_OK;
        if (status != TARN_OK) continue;
        shared += graph->groups_count < graph->given_count;
        bool has_layers = false;
        for (uint32_t g = 0; g < graph->groups_count; g++)
            has_layers |= graph->groups[g].within != NULL;
        layered += has_layers;
        const char *method = methods[seed % (sizeof methods / sizeof *methods)];
        if (!WITH_PAPERS && seed % 6 > 3) method = "all";
        if (tarn_plan_create(graph,
                             TARN_PLAN_OPTIONS(.alignment = 1, .threads = 1, .method = method),
                             &plan, &error))
            fail_msg("seed %llu, %s: %s", (unsigned long long)seed, method, error.text);
        if (!oracle_accepts_words(plan)) fail_msg("seed %llu", (unsigned long long)seed);
        assert_true(holds_together(plan, &grouping));
        struct tarn_plan_summary summary;
        tarn_plan_summarize(plan, &summary);
        struct trying trying = {graph, &differences, &order, {0}, 0, 100000};
        trying.limit = summary.optimal ? summary.footprint - 1 : summary.bound - 1;
        if (summary.bound > 0 && fits_below(&trying, 0) && trying.tries > 0)
            fail_msg("seed %llu: below the bound", (unsigned long long)seed);
        optimal += summary.optimal;
        files_keep_the_groups(graph);
        struct tarn_plan *padded;
        if (tarn_plan_create(graph, TARN_PLAN_OPTIONS(.alignment = 8, .threads = 1), &padded,
                             &error))
            fail_msg("seed %llu: %s", (unsigned long long)seed, error.text);
        assert_true(oracle_accepts_words(padded) && holds_together(padded, &grouping));
        tarn_plan_destroy(padded);
        damage(plan);
        bool right = oracle_accepts_words(plan) && holds_together(plan, &grouping);
        if ((tarn_plan_verify(plan, graph, NULL, NULL, &error) == TARN_OK) != right)
            fail_msg("seed %llu: %s", (unsigned long long)seed, right ? error.text : "accepted");
        harmful += !right;
        tarn_plan_destroy(plan);
        tarn_graph_destroy(graph);
    }
    print_message("# %u refused, %u share members, %u over each other, %u called optimal, %u "
                  "damaged\n",
                  refused, shared, layered, optimal, harmful);
    assert_true(refused > draws / 12 && shared > draws / 12 && layered > draws / 60 &&
                harmful > draws / 12);
}

static void groups_hold_together_or_are_refused(void **state)
{
    (void)state;
    hold_groups_together_or_refuse_them(DRAWS(12000));
}

static void members_lie_at_the_offsets_of_their_group_or_are_refused(void **state)
{
    (void)state;
    offsets_share = 60;
    hold_groups_together_or_refuse_them(DRAWS(12000));
    offsets_share = 0;
}

/* Every transform keeps what groups say, with offsets and without. */
static void transforms_keep_groups(void **state)
{
    (void)state;
    offsets_share = 60;
    uint32_t planned = 0;
    for (uint64_t seed = 0; seed < DRAWS(1500); seed++) {
        struct grouping grouping;
        struct tarn_graph *graph;
        struct tarn_plan *plan;
        struct tarn_error error;
        struct tarn_in_place_options in_place = {
            .struct_size = sizeof in_place, .kinds = (const char *const[]){""}, .kinds_count = 1};
        struct tarn_reorder_options reorder = {.struct_size = sizeof reorder};
        struct tarn_couple_options couple = {.struct_size = sizeof couple};
        struct tarn_plan_options *options = TARN_PLAN_OPTIONS(.alignment = 1, .threads = 1);
        if (seed % 4 == 0) options->pad_groups = TARN_GROUPS_PADDED, options->alignment = 4;
        if (seed % 3 != 0) options->reorder = &reorder;
        if (seed % 3 != 1) options->in_place = &in_place;
        if (seed % 5 == 0) options->couple = &couple;
        if (tarn_builder_finish(draw_groups(&grouping, seed, true), &graph, NULL)) continue;
        if (tarn_plan_create(graph, options, &plan, &error))
            fail_msg("seed %llu: %s", (unsigned long long)seed, error.text);
        if (!oracle_accepts_words(plan)) fail_msg("seed %llu", (unsigned long long)seed);
        bool has_offsets = true; /* padding keeps these groups as they are */
        for (uint32_t g = 0; g < grouping.count; g++)
            has_offsets = has_offsets && grouping.has_offsets[g];
        if (seed % 4 != 0 || has_offsets) assert_true(holds_together(plan, &grouping));
        planned++;
        tarn_plan_destroy(plan);
        tarn_graph_destroy(graph);
    }
    offsets_share = 0;
    assert_true(planned > DRAWS(500));
}

/* ---- Many storages ---- */

/* A chain, or ops whose outputs are all there in the end; one of them has a fixed offset. */
static struct tarn_graph *draw_many(uint32_t count, bool all_alive)
{
    struct tarn_builder *builder = tarn_builder_create("many");
    struct tarn_graph *graph;
    tarn_builder_stream(builder, "s");
    for (tarn_tensor t = 0; t < count; t++) {
        struct tarn_tensor_info info = {.size = 512 * (1 + t % 5),
                                        .kind = all_alive ? TARN_OUTPUT : TARN_INTERMEDIATE};
        if (t == count / 2) info.offset_rule = TARN_OFFSET_FIXED, info.wanted_offset = 4096;
        tarn_builder_tensor(builder, &info);
        tarn_tensor before = t - 1;
        tarn_builder_op(builder, &(struct tarn_op_info){.inputs = {&before, t > 0 && !all_alive},
                                                        .outputs = {&t, 1}});
    }
    assert_int_equal(tarn_builder_finish(builder, &graph, NULL), TARN_OK);
    return graph;
}

static void many_storages_are_placed_by_pairs_unless_most_are_in_use_at_once(void **state)
{
    struct tarn_error error;
    struct tarn_plan *plan;
    (void)state;
    struct tarn_graph *graph = draw_many(50000, false);
    if (tarn_plan_create(graph, TARN_PLAN_OPTIONS(.threads = 1), &plan, &error))
        fail_msg("%s", error.text);
    assert_int_equal(tarn_plan_offset(plan, 25000), 4096);
    assert_int_equal(plan->footprint, 512 * 9);
    tarn_plan_destroy(plan);
    tarn_graph_destroy(graph);
    graph = draw_many(9000, true);
    assert_int_equal(tarn_plan_create(graph, TARN_PLAN_OPTIONS(.threads = 1), &plan, &error),
                     TARN_BAD_INPUT);
    assert_non_null(strstr(error.text, "plan parts of it as graphs of their own"));
    tarn_graph_destroy(graph);
}

/* ---- Arms of conditionals ---- */

enum { CONDITIONALS = 2, ARMS = 3 };

static void choose_arms(const struct tarn_graph *graph, uint32_t selection)
{
    for (uint32_t v = 0; v < graph->ops_count; v++) {
        const struct tarn_op_extra *extra = tarn_extra(&graph->ops[v]);
        skipped[v] = false;
        for (uint32_t i = 0; i < extra->branch_count; i++) {
            uint32_t taken = extra->branch[i][0] == 0 ? selection % ARMS : selection / ARMS;
            if (taken != extra->branch[i][1]) skipped[v] = true;
        }
    }
}

/* Chains of ops, most of them in arms; what the rules refuse is drawn, too. */
static struct tarn_builder *draw_arms(uint64_t seed)
{
    source.state = seed;
    struct tarn_builder *builder = tarn_builder_create("arms");
    uint32_t streams = 1 + random_below(&source, 2), ops = 3 + random_below(&source, 4),
             tensors = 0, branches[OPS][CONDITIONALS][2], branches_count[OPS];
    for (uint32_t s = 0; s < streams; s++) tarn_builder_stream(builder, "s");
    for (uint32_t v = 0; v < ops; v++) {
        uint32_t inputs[2], outputs[2], inputs_count = 0, outputs_count = 0, before = tensors;
        branches_count[v] = 0;
        for (uint32_t c = 0; c < CONDITIONALS; c++) {
            if (!random_percent(&source, c == 0 ? 60 : 20)) continue;
            branches[v][branches_count[v]][0] = c;
            branches[v][branches_count[v]++][1] = random_below(&source, ARMS);
        }
        for (uint32_t i = random_below(&source, 3); i > 0 && before > 0; i--)
            inputs[inputs_count++] = before - 1 - random_below(&source, before < 4 ? before : 4);
        for (uint32_t i = 1 + random_percent(&source, 20); i > 0; i--) {
            struct tarn_tensor_info info = draw_tensor(tensors);
            tarn_builder_tensor(builder, &info);
            outputs[outputs_count++] = tensors++;
        }
        tarn_builder_op(builder,
                        &(struct tarn_op_info){.stream = random_below(&source, streams),
                                               .inputs = {inputs, inputs_count},
                                               .outputs = {outputs, outputs_count},
                                               .workspace = random_percent(&source, 15) ? 3 : 0,
                                               .workspace_first = random_percent(&source, 50),
                                               .branch = (const uint32_t(*)[2])branches[v],
                                               .branch_count = branches_count[v]});
    }
    return builder;
}

static bool all_arms_are_right(const struct tarn_plan *plan)
{
    bool right = true;
    for (uint32_t selection = 0; right && selection < ARMS * ARMS; selection++) {
        choose_arms(plan->graph, selection);
        right = is_ordered(plan) && runs_right(plan);
    }
    memset(skipped, 0, sizeof skipped);
    return right && keeps_arcs(plan);
}

static bool has_early_workspace(const struct tarn_graph *graph)
{
    for (uint32_t v = 0; v < graph->ops_count; v++)
        if (graph->ops[v].workspace_first) return true;
    return false;
}

static void arms_that_exclude_each_other_share_bytes(void **state)
{
    uint32_t planned = 0, refused = 0, less = 0, harmful = 0, optimal = 0;
    (void)state;
    for (uint64_t seed = 0; seed < DRAWS(12000); seed++) {
        struct tarn_graph *graph;
        struct tarn_plan *plan;
        struct tarn_error error;
        struct tarn_session *session;
        if (tarn_builder_finish(draw_arms(seed), &graph, &error)) {
            refused++;
            continue;
        }
        plan = plan_of(graph);
        bool is_early = has_early_workspace(graph); /* the oracle knows of no turns */
        if (!is_early && !all_arms_are_right(plan)) fail_msg("seed %llu", (unsigned long long)seed);
        struct tarn_plan_summary summary;
        tarn_plan_summarize(plan, &summary);
        uint32_t conditionals = graph->conditionals_count;
        if (graph->planned_count <= 8 && !is_early) {
            uint64_t least = least_arena(plan), bound;
            assert_int_equal(summary.footprint, least);
            assert_int_equal(tarn_graph_bound(graph, &bound, NULL), TARN_OK);
            assert_true(bound <= least);
            graph->conditionals_count = 0; /* as if all arms were taken */
            struct tarn_plan *apart = tarn_plan_of_graph(graph);
            apart->footprint = UINT32_MAX;
            less += least < least_arena(apart);
            tarn_plan_destroy(apart);
            graph->conditionals_count = conditionals;
        }
        optimal += summary.optimal;
        if (seed % 16 == 0) {
            if (tarn_session_create(plan, tarn_device_host(NULL), NULL, &session, &error) ||
                tarn_session_check(session, TARN_CHECK_OPTIONS(.iterations = 12), NULL, &error))
                fail_msg("seed %llu: %s", (unsigned long long)seed, error.text);
            tarn_session_destroy(session);
        }
        damage(plan);
        bool accepted = tarn_plan_verify(plan, graph, NULL, NULL, NULL) == TARN_OK;
        bool right = is_early || all_arms_are_right(plan);
        if (accepted && !right)
            fail_msg("seed %llu: harmful, but accepted", (unsigned long long)seed);
        harmful += !right;
        planned++;
        tarn_plan_destroy(plan);
        tarn_graph_destroy(graph);
    }
    print_message("# %u planned, %u refused, %u smaller for their arms, %u called optimal, %u "
                  "damaged\n",
                  planned, refused, less, optimal, harmful);
    assert_true(planned > DRAWS(3000) && less > DRAWS(200) && harmful > DRAWS(500));
}

static int count_call(void *user, const struct tarn_call *call)
{
    uint32_t *calls = user;
    calls[call->op]++;
    return 0;
}

/* Two arms make one tensor each, of which an op behind them reads one. */
static void a_session_calls_the_kernels_of_the_arms_that_are_taken(void **state)
{
    struct tarn_builder *b = tarn_builder_create("conditional");
    struct tarn_error error;
    struct tarn_graph *graph;
    tarn_ticket ticket;
    uint32_t calls[3] = {0};
    tarn_tensor made[2], out;
    (void)state;
    tarn_builder_stream(b, "compute");
    tarn_builder_stream(b, "other");
    for (int i = 0; i < 2; i++)
        made[i] = tarn_builder_tensor(b, &(struct tarn_tensor_info){.size = 8});
    out = tarn_builder_tensor(b, &(struct tarn_tensor_info){.size = 8, .kind = TARN_OUTPUT});
    for (uint32_t i = 0; i < 2; i++)
        tarn_builder_op(b, &(struct tarn_op_info){.stream = i,
                                                  .outputs = {&made[i], 1},
                                                  .branch = (const uint32_t[][2]){{0, i}},
                                                  .branch_count = 1});
    tarn_builder_op(b, &(struct tarn_op_info){.inputs = {made, 2}, .outputs = {&out, 1}});
    assert_int_equal(tarn_builder_finish(b, &graph, &error), TARN_OK);
    struct tarn_plan *plan = plan_of(graph);
    struct tarn_session *session;
    assert_int_equal(plan->footprint, 16);
    assert_int_equal(tarn_plan_offset(plan, made[0]), tarn_plan_offset(plan, made[1]));
    assert_int_equal(tarn_session_create(plan, tarn_device_host(NULL), NULL, &session, NULL), 0);
    assert_int_equal(tarn_session_bind_default(session, count_call, calls), TARN_OK);
    assert_int_equal(tarn_session_take(session, 1, 0, &error), TARN_USAGE);
    for (uint32_t arm = 0; arm < 3; arm++) { /* the last one has no ops */
        assert_int_equal(tarn_session_take(session, 0, arm, NULL), TARN_OK);
        assert_int_equal(tarn_session_submit(session, 5, &ticket, NULL), TARN_OK);
        if (arm == 0) assert_int_equal(tarn_session_take(session, 0, 1, NULL), TARN_USAGE);
        assert_int_equal(tarn_session_wait(session, ticket, TARN_FOREVER, NULL), TARN_OK);
    }
    assert_true(calls[0] == 5 && calls[1] == 5 && calls[2] == 15);
    tarn_session_destroy(session);
    tarn_plan_destroy(plan);
    tarn_graph_destroy(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refuses_exactly_the_races_of_bytes),
        cmocka_unit_test(plans_are_safe_and_as_small_as_said),
        cmocka_unit_test(damaged_plans_are_judged_as_byte_by_byte),
        cmocka_unit_test(checked_runs_find_every_byte),
        cmocka_unit_test(transforms_keep_slices),
        cmocka_unit_test(files_keep_slices),
        cmocka_unit_test(arms_that_exclude_each_other_share_bytes),
        cmocka_unit_test(a_session_calls_the_kernels_of_the_arms_that_are_taken),
        cmocka_unit_test(groups_hold_together_or_are_refused),
        cmocka_unit_test(transforms_keep_groups),
        cmocka_unit_test(members_lie_at_the_offsets_of_their_group_or_are_refused),
        cmocka_unit_test(what_is_fixed_stays_and_clashes_are_refused),
        cmocka_unit_test(many_storages_are_placed_by_pairs_unless_most_are_in_use_at_once),
        cmocka_unit_test(what_is_to_be_kept_stays_where_that_costs_nothing),
        cmocka_unit_test(what_is_smaller_goes_over_what_is_larger_where_that_is_less),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
