/* The oracle shares nothing with the verifier: no clocks, no interval map, no compiled program. It
 * is quadratic in touches and copies all memory at every branch; the graphs are tiny. */
#include "plan_oracle.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* ---- Touches ---- */

static bool reads(const struct tarn_graph *graph, uint32_t op, uint32_t storage)
{
    const struct tarn_graph_op *info = &graph->ops[op];
    for (uint32_t k = 0; k < info->inputs_count; k++) {
        if (graph->tensors[info->inputs[k]].storage == storage) return true;
    }
    return false;
}

bool oracle_writes(const struct tarn_graph *graph, uint32_t op, uint32_t storage)
{
    const struct tarn_graph_op *info = &graph->ops[op];
    for (uint32_t k = 0; k < info->outputs_count; k++) {
        if (graph->tensors[info->outputs[k]].storage == storage) return true;
    }
    return info->workspace_storage == storage;
}

bool oracle_touches(const struct tarn_graph *graph, uint32_t op, uint32_t storage)
{
    return !graph->ops[op].view && (reads(graph, op, storage) || oracle_writes(graph, op, storage));
}

/* Reads what another op has written: an input, or the rest of what is written in place. */
static bool sees(const struct tarn_graph *graph, uint32_t op, uint32_t storage)
{
    return reads(graph, op, storage) ||
           (oracle_writes(graph, op, storage) && graph->storages[storage].producer != op);
}

/* Who wrote the storage last before the op, in list order; TARN_NONE: nobody. */
static uint32_t writer_before(const struct tarn_graph *graph, uint32_t rank, uint32_t storage)
{
    while (rank-- > 0) {
        uint32_t op = graph->order[rank];
        if (!graph->ops[op].view && oracle_writes(graph, op, storage)) return op;
    }
    return TARN_NONE;
}

static const struct tarn_place *place_of(const struct tarn_plan *plan, uint32_t storage)
{
    const struct tarn_storage *record = &plan->graph->storages[storage];
    if (record->persistent)
        return tarn_place_find(plan->places_persistent, plan->places_persistent_count,
                               record->tensor);
    if (record->tensor == TARN_NONE)
        return tarn_place_find(plan->workspaces, plan->workspaces_count, record->producer);
    return tarn_place_find(plan->storages, plan->storages_count, record->tensor);
}

/* ---- Who reaches whom ---- */

/* Nodes: iteration * listed + index in plan->list. */
struct reach {
    const struct tarn_plan *plan;
    uint32_t listed;
    uint32_t index[ORACLE_NODES_MAX]; /* op -> index in plan->list */
    bool from[ORACLE_NODES_MAX][ORACLE_NODES_MAX];
};

static void add_arcs(struct reach *reach)
{
    const struct tarn_plan *plan = reach->plan;
    uint32_t n = reach->listed;
    for (uint32_t s = 0; s < plan->streams_count; s++) {
        uint32_t begin = plan->list_begin[s], end = plan->list_begin[s + 1];
        for (uint32_t i = begin; i + 1 < end; i++)
            reach->from[i][i + 1] = reach->from[n + i][n + i + 1] = true;
        if (begin < end) reach->from[end - 1][n + begin] = true;
    }
    for (uint32_t i = 0; i < plan->waits_count; i++) {
        uint32_t op = reach->index[plan->waits[i].op], on = reach->index[plan->waits[i].on];
        reach->from[on][op] = reach->from[n + on][n + op] = true;
    }
    for (uint32_t i = 0; i < plan->boundary_waits_count; i++) {
        uint32_t op = reach->index[plan->boundary_waits[i].op];
        reach->from[reach->index[plan->boundary_waits[i].on]][n + op] = true;
    }
}

static struct reach *reach_create(const struct tarn_plan *plan)
{
    struct reach *reach = calloc(1, sizeof *reach);
    assert(reach);
    reach->plan = plan;
    reach->listed = plan->list_begin[plan->streams_count];
    uint32_t nodes = 2 * reach->listed;
    assert(nodes <= ORACLE_NODES_MAX && plan->graph->ops_count <= ORACLE_NODES_MAX);
    for (uint32_t i = 0; i < reach->listed; i++) reach->index[plan->list[i]] = i;
    add_arcs(reach);
    for (uint32_t k = 0; k < nodes; k++) {
        for (uint32_t i = 0; i < nodes; i++) {
            if (!reach->from[i][k]) continue;
            for (uint32_t j = 0; j < nodes; j++) reach->from[i][j] |= reach->from[k][j];
        }
    }
    return reach;
}

static bool is_before(const struct reach *reach, uint32_t a, uint32_t a_iteration, uint32_t b,
                      uint32_t b_iteration)
{
    return reach->from[a_iteration * reach->listed + reach->index[a]]
                      [b_iteration * reach->listed + reach->index[b]];
}

/* ---- Rules ---- */

static bool has_cycle(const struct reach *reach)
{
    for (uint32_t i = 0; i < 2 * reach->listed; i++) {
        if (reach->from[i][i]) return true;
    }
    return false;
}

/* All touches of a in iteration i come before every write of b in iteration j. */
static bool precedes(const struct reach *reach, uint32_t a, uint32_t i, uint32_t b, uint32_t j)
{
    const struct tarn_graph *graph = reach->plan->graph;
    for (uint32_t u = 0; u < graph->ops_count; u++) {
        if (!oracle_touches(graph, u, a)) continue;
        for (uint32_t w = 0; w < graph->ops_count; w++) {
            if (graph->ops[w].view || !oracle_writes(graph, w, b)) continue;
            if (!is_before(reach, u, i, w, j)) return false;
        }
    }
    return true;
}

uint64_t oracle_reserved(const struct tarn_graph *graph, uint32_t storage, uint64_t alignment)
{
    const struct tarn_storage *record = &graph->storages[storage];
    uint64_t block = 0;
    bool is_last = true;
    for (uint32_t b = 0; b < graph->storages_count; b++) {
        bool is_member = b == storage ||
                         (record->group != TARN_NONE && graph->storages[b].group == record->group);
        if (is_member) block += graph->storages[b].size;
    }
    if (record->group != TARN_NONE) {
        const struct tarn_group *group = &graph->groups[record->group];
        is_last = group->storages[group->storages_count - 1] == storage;
    }
    return record->size + (is_last ? (alignment - block % alignment) % alignment : 0);
}

bool oracle_share_bytes(const struct tarn_plan *plan, uint32_t a, uint32_t b)
{
    const struct tarn_storage *storages = plan->graph->storages;
    uint64_t x = place_of(plan, a)->offset, y = place_of(plan, b)->offset;
    return storages[a].persistent == storages[b].persistent &&
           x < y + oracle_reserved(plan->graph, b, plan->alignment) &&
           y < x + oracle_reserved(plan->graph, a, plan->alignment);
}

/* May b take bytes of a in the same iteration? */
static bool may_follow(const struct reach *reach, uint32_t a, uint32_t b)
{
    return !reach->plan->graph->storages[a].pinned && precedes(reach, a, 0, b, 0);
}

static bool is_pair_safe(const struct reach *reach, uint32_t a, uint32_t b)
{
    if (!oracle_share_bytes(reach->plan, a, b)) return true;
    if (reach->plan->graph->storages[a].persistent) return false;
    return (may_follow(reach, a, b) || may_follow(reach, b, a)) && precedes(reach, a, 0, b, 1) &&
           precedes(reach, b, 0, a, 1);
}

/* Two touches of one storage, u earlier in list order, of which one writes. */
static bool are_ordered(const struct reach *reach, uint32_t storage, uint32_t u, uint32_t v)
{
    const struct tarn_graph *graph = reach->plan->graph;
    if (!oracle_writes(graph, u, storage) && !oracle_writes(graph, v, storage)) return true;
    return is_before(reach, u, 0, v, 0);
}

/* The previous iteration's touches and this one's: with a planned storage only the first write
 * matters, all else of this iteration comes after it. */
static bool is_boundary_kept(const struct reach *reach, uint32_t storage, uint32_t u, uint32_t v)
{
    const struct tarn_graph *graph = reach->plan->graph;
    bool matters = graph->storages[storage].persistent
                       ? oracle_writes(graph, u, storage) || oracle_writes(graph, v, storage)
                       : graph->storages[storage].producer == v;
    return !matters || is_before(reach, u, 0, v, 1);
}

static bool is_storage_ordered(const struct reach *reach, uint32_t storage)
{
    const struct tarn_graph *graph = reach->plan->graph;
    for (uint32_t i = 0; i < graph->ops_count; i++) {
        uint32_t u = graph->order[i];
        if (!oracle_touches(graph, u, storage)) continue;
        for (uint32_t j = 0; j < graph->ops_count; j++) {
            uint32_t v = graph->order[j];
            if (!oracle_touches(graph, v, storage)) continue;
            if (i < j && !are_ordered(reach, storage, u, v)) return false;
            if (!is_boundary_kept(reach, storage, u, v)) return false;
        }
    }
    return true;
}

/* Every launched op behind `earlier` through arcs and views must come after it. */
static bool is_control_kept(const struct reach *reach, uint32_t earlier, uint32_t op)
{
    const struct tarn_graph *graph = reach->plan->graph;
    const struct tarn_graph_op *info = &graph->ops[op];
    bool kept = true;
    if (!info->view) return is_before(reach, earlier, 0, op, 0);
    for (uint32_t v = 0; v < graph->ops_count; v++) {
        const struct tarn_graph_op *later = &graph->ops[v];
        for (uint32_t k = 0; k < later->inputs_count; k++) {
            if (graph->tensors[later->inputs[k]].producer == op)
                kept = kept && is_control_kept(reach, earlier, v);
        }
        for (uint32_t k = 0; k < later->control_count; k++) {
            if (later->control[k] == op) kept = kept && is_control_kept(reach, earlier, v);
        }
    }
    return kept;
}

static bool are_control_arcs_kept(const struct reach *reach)
{
    const struct tarn_graph *graph = reach->plan->graph;
    for (uint32_t v = 0; v < graph->ops_count; v++) {
        const struct tarn_graph_op *op = &graph->ops[v];
        for (uint32_t k = 0; k < op->control_count; k++) {
            uint32_t u = op->control[k];
            if (!graph->ops[u].view && !is_control_kept(reach, u, v)) return false;
        }
        for (uint32_t k = 0; k < op->inputs_count && op->view; k++) {
            uint32_t u = graph->tensors[op->inputs[k]].producer;
            if (u != TARN_NONE && !graph->ops[u].view && !is_control_kept(reach, u, v))
                return false;
        }
    }
    return true;
}

bool oracle_accepts(const struct tarn_plan *plan)
{
    const struct tarn_graph *graph = plan->graph;
    struct reach *reach = reach_create(plan);
    bool ok = !has_cycle(reach) && are_control_arcs_kept(reach);
    for (uint32_t a = 0; ok && a < graph->storages_count; a++) {
        ok = is_storage_ordered(reach, a);
        for (uint32_t b = 0; ok && b < a; b++) ok = is_pair_safe(reach, a, b);
    }
    free(reach);
    return ok;
}

/* ---- The smallest arena ---- */

struct packing {
    const struct tarn_plan *plan;
    uint64_t best;
    uint32_t blocks_count;
    /* By planned storage. */
    uint32_t block_of[ORACLE_NODES_MAX]; /* in the order in which blocks are placed */
    uint64_t reserved[ORACLE_NODES_MAX];
    uint64_t offset[ORACLE_NODES_MAX];
    bool may_share[ORACLE_NODES_MAX][ORACLE_NODES_MAX];
};

static void packing_init(struct packing *packing, const struct tarn_plan *plan)
{
    const struct tarn_graph *graph = plan->graph;
    struct reach *reach = reach_create(plan);
    *packing = (struct packing){.plan = plan, .best = plan->footprint};
    assert(graph->planned_count <= ORACLE_NODES_MAX);
    for (uint32_t a = 0; a < graph->planned_count; a++) {
        uint32_t b = 0, group = graph->storages[a].group;
        while (b < a && (group == TARN_NONE || graph->storages[b].group != group)) b++;
        packing->block_of[a] = b < a ? packing->block_of[b] : packing->blocks_count++;
        packing->reserved[a] = oracle_reserved(graph, a, plan->alignment);
        for (b = 0; b < graph->planned_count; b++)
            packing->may_share[a][b] = may_follow(reach, a, b) || may_follow(reach, b, a);
    }
    free(reach);
}

static bool fits_in(const struct packing *packing, uint32_t a, uint32_t b)
{
    uint64_t x = packing->offset[a], y = packing->offset[b];
    return packing->may_share[a][b] || x + packing->reserved[a] <= y ||
           y + packing->reserved[b] <= x;
}

/* Puts a block there; its end, or UINT64_MAX where an earlier block is in the way. */
static uint64_t put_block(struct packing *packing, uint32_t block, uint64_t at)
{
    const struct tarn_graph *graph = packing->plan->graph;
    uint32_t alone = 0, count = 1;
    while (packing->block_of[alone] != block) alone++;
    const uint32_t *members = &alone;
    if (graph->storages[alone].group != TARN_NONE) {
        members = graph->groups[graph->storages[alone].group].storages;
        count = graph->groups[graph->storages[alone].group].storages_count;
    }
    for (uint32_t i = 0; i < count; i++) {
        packing->offset[members[i]] = at;
        at += packing->reserved[members[i]];
        for (uint32_t b = 0; b < graph->planned_count; b++)
            if (packing->block_of[b] < block && !fits_in(packing, members[i], b)) return UINT64_MAX;
    }
    return at;
}

/* The largest alignment that one of its members asks for. */
static uint64_t step_of(const struct packing *packing, uint32_t block)
{
    const struct tarn_graph *graph = packing->plan->graph;
    uint64_t step = packing->plan->alignment;
    for (uint32_t a = 0; a < graph->planned_count; a++)
        if (packing->block_of[a] == block && graph->storages[a].alignment > step)
            step = graph->storages[a].alignment;
    return step;
}

static void pack(struct packing *packing, uint32_t block, uint64_t highest)
{
    if (highest >= packing->best) return;
    if (block == packing->blocks_count) {
        packing->best = highest;
        return;
    }
    uint64_t step = step_of(packing, block);
    for (uint64_t at = 0; at < packing->best; at += step) {
        uint64_t end = put_block(packing, block, at);
        if (end != UINT64_MAX) pack(packing, block + 1, end > highest ? end : highest);
    }
}

uint64_t oracle_smallest_arena(const struct tarn_plan *plan)
{
    struct packing packing;
    packing_init(&packing, plan);
    pack(&packing, 0, 0);
    return packing.best;
}

/* ---- Legal orders ---- */

struct progress {
    const struct tarn_plan *plan;
    uint32_t done[ORACLE_NODES_MAX]; /* launches of every stream */
};

static uint32_t length_of(const struct tarn_plan *plan, uint32_t s)
{
    return plan->list_begin[s + 1] - plan->list_begin[s];
}

static bool is_done(const struct progress *progress, uint32_t op, uint32_t iteration)
{
    const struct tarn_plan *plan = progress->plan;
    uint32_t s = plan->graph->ops[op].stream, place = 0;
    while (plan->list[plan->list_begin[s] + place] != op) place++;
    return progress->done[s] > iteration * length_of(plan, s) + place;
}

static struct tarn_step next_of(const struct progress *progress, uint32_t s)
{
    uint32_t length = length_of(progress->plan, s), done = progress->done[s];
    return (struct tarn_step){progress->plan->list[progress->plan->list_begin[s] + done % length],
                              done / length};
}

/* Can stream s launch its next op, within so many iterations? */
static bool is_ready(const struct progress *progress, uint32_t s, uint32_t iterations)
{
    const struct tarn_plan *plan = progress->plan;
    if (progress->done[s] >= iterations * length_of(plan, s)) return false;
    struct tarn_step step = next_of(progress, s);
    for (uint32_t i = 0; i < plan->waits_count; i++) {
        if (plan->waits[i].op == step.op && !is_done(progress, plan->waits[i].on, step.iteration))
            return false;
    }
    for (uint32_t i = 0; i < plan->boundary_waits_count && step.iteration > 0; i++) {
        if (plan->boundary_waits[i].op == step.op &&
            !is_done(progress, plan->boundary_waits[i].on, step.iteration - 1))
            return false;
    }
    return true;
}

bool oracle_is_legal(const struct tarn_plan *plan, const struct tarn_step *steps, size_t count)
{
    struct progress progress = {.plan = plan};
    for (size_t i = 0; i < count; i++) {
        uint32_t s = plan->graph->ops[steps[i].op].stream;
        struct tarn_step next = next_of(&progress, s);
        if (next.op != steps[i].op || next.iteration != steps[i].iteration) return false;
        if (!is_ready(&progress, s, UINT32_MAX / ORACLE_NODES_MAX)) return false;
        progress.done[s]++;
    }
    return true;
}

/* ---- Bytes ---- */

/* The bytes between two neighbouring ends of storages, of which all are written by the same ops. */
struct cell {
    uint32_t storage, op, iteration; /* TARN_NONE, TARN_NONE: never written */
};

/* Where storages begin and end: arena, then persistent part. */
struct layout {
    const struct tarn_plan *plan;
    uint64_t *ends; /* ascending, not distinct */
    size_t ends_count;
};

struct memory {
    const struct layout *layout;
    struct cell *cells; /* from each end to the next */
};

static uint64_t begin_of(const struct tarn_plan *plan, uint32_t storage)
{
    bool persistent = plan->graph->storages[storage].persistent;
    return place_of(plan, storage)->offset + (persistent ? plan->footprint : 0);
}

static int compare_addresses(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static struct layout layout_create(const struct tarn_plan *plan)
{
    uint32_t storages = plan->graph->storages_count;
    struct layout layout = {.plan = plan, .ends_count = 2 * (size_t)storages};
    layout.ends = malloc((layout.ends_count + 1) * sizeof *layout.ends);
    assert(layout.ends);
    for (uint32_t a = 0; a < storages; a++) {
        layout.ends[2 * a] = begin_of(plan, a);
        layout.ends[2 * a + 1] = begin_of(plan, a) + plan->graph->storages[a].size;
    }
    qsort(layout.ends, layout.ends_count, sizeof *layout.ends, compare_addresses);
    return layout;
}

/* The first cell of a storage; *end: behind its last. */
static size_t cells_of(const struct layout *layout, uint32_t storage, size_t *end)
{
    uint64_t begin_address = begin_of(layout->plan, storage);
    uint64_t end_address = begin_address + layout->plan->graph->storages[storage].size;
    size_t begin = 0;
    while (layout->ends[begin] < begin_address) begin++;
    *end = begin;
    while (layout->ends[*end] < end_address) ++*end;
    return begin;
}

static void fill(struct memory *memory, uint32_t storage, uint32_t op, uint32_t iteration)
{
    size_t end;
    for (size_t i = cells_of(memory->layout, storage, &end); i < end; i++)
        memory->cells[i] = (struct cell){storage, op, iteration};
}

static bool holds(const struct memory *memory, uint32_t storage, uint32_t op, uint32_t iteration)
{
    size_t end;
    for (size_t i = cells_of(memory->layout, storage, &end); i < end; i++) {
        const struct cell *cell = &memory->cells[i];
        if (cell->storage != storage || cell->op != op || cell->iteration != iteration)
            return false;
    }
    return true;
}

static struct memory memory_create(const struct layout *layout)
{
    const struct tarn_graph *graph = layout->plan->graph;
    struct memory memory = {.layout = layout};
    memory.cells = malloc((layout->ends_count + 1) * sizeof *memory.cells);
    assert(memory.cells);
    for (size_t i = 0; i < layout->ends_count; i++)
        memory.cells[i] = (struct cell){TARN_NONE, TARN_NONE, 0};
    for (uint32_t a = graph->planned_count; a < graph->storages_count; a++)
        fill(&memory, a, TARN_NONE, 0);
    return memory;
}

static struct memory memory_copy(const struct memory *memory)
{
    struct memory copy = *memory;
    size_t size = memory->layout->ends_count * sizeof *copy.cells;
    copy.cells = malloc(size + 1);
    assert(copy.cells);
    memcpy(copy.cells, memory->cells, size);
    return copy;
}

static bool finds(const struct memory *memory, uint32_t op, uint32_t iteration, uint32_t storage)
{
    const struct tarn_graph *graph = memory->layout->plan->graph;
    uint32_t writer = writer_before(graph, graph->rank[op], storage);
    if (writer == TARN_NONE && iteration > 0 && graph->storages[storage].persistent) {
        writer = writer_before(graph, graph->ops_count, storage);
        if (writer != TARN_NONE) iteration--;
    }
    return holds(memory, storage, writer, writer == TARN_NONE ? 0 : iteration);
}

/* False: the op reads a wrong byte, or its own storages overwrite each other. */
static bool launch(struct memory *memory, struct tarn_step step)
{
    const struct tarn_graph *graph = memory->layout->plan->graph;
    for (uint32_t a = 0; a < graph->storages_count; a++) {
        if (sees(graph, step.op, a) && !finds(memory, step.op, step.iteration, a)) return false;
    }
    for (uint32_t a = 0; a < graph->storages_count; a++) {
        if (oracle_writes(graph, step.op, a)) fill(memory, a, step.op, step.iteration);
    }
    for (uint32_t a = 0; a < graph->storages_count; a++) {
        if (oracle_writes(graph, step.op, a) && !holds(memory, a, step.op, step.iteration))
            return false;
        if (reads(graph, step.op, a) && !oracle_writes(graph, step.op, a) &&
            !finds(memory, step.op, step.iteration, a))
            return false;
    }
    return true;
}

/* Is an output damaged, all iterations' work being done? */
static bool has_lost_output(const struct memory *memory, uint32_t iterations)
{
    const struct tarn_graph *graph = memory->layout->plan->graph;
    for (uint32_t a = 0; a < graph->planned_count; a++) {
        if (!graph->storages[a].pinned) continue;
        uint32_t writer = writer_before(graph, graph->ops_count, a);
        if (writer != TARN_NONE && !holds(memory, a, writer, iterations - 1)) return true;
    }
    return false;
}

static bool is_complete(const struct progress *progress, uint32_t iterations)
{
    for (uint32_t s = 0; s < progress->plan->streams_count; s++) {
        if (progress->done[s] != iterations * length_of(progress->plan, s)) return false;
    }
    return true;
}

bool oracle_corrupts(const struct tarn_plan *plan, const struct tarn_step *steps, size_t count)
{
    struct layout layout = layout_create(plan);
    struct memory memory = memory_create(&layout);
    struct progress progress = {.plan = plan};
    uint32_t iterations = 1;
    bool corrupt = false;
    for (size_t i = 0; i < count && !corrupt; i++) {
        progress.done[plan->graph->ops[steps[i].op].stream]++;
        if (iterations <= steps[i].iteration) iterations = steps[i].iteration + 1;
        corrupt = !launch(&memory, steps[i]);
    }
    if (!corrupt && is_complete(&progress, iterations))
        corrupt = has_lost_output(&memory, iterations);
    free(memory.cells);
    free(layout.ends);
    return corrupt;
}

/* ---- Searching for harm ---- */

static bool branch(struct progress *progress, const struct memory *memory, uint32_t iterations,
                   uint32_t *tries)
{
    bool harm = false;
    if (is_complete(progress, iterations)) {
        --*tries;
        return has_lost_output(memory, iterations);
    }
    for (uint32_t s = 0; s < progress->plan->streams_count && !harm && *tries > 0; s++) {
        if (!is_ready(progress, s, iterations)) continue;
        struct memory copy = memory_copy(memory);
        struct tarn_step step = next_of(progress, s);
        progress->done[s]++;
        harm = !launch(&copy, step) || branch(progress, &copy, iterations, tries);
        progress->done[s]--;
        free(copy.cells);
    }
    return harm;
}

bool oracle_finds_harm(const struct tarn_plan *plan, uint32_t iterations, uint32_t *tries)
{
    struct progress progress = {.plan = plan};
    struct layout layout = layout_create(plan);
    struct memory memory = memory_create(&layout);
    bool harm = branch(&progress, &memory, iterations, tries);
    free(memory.cells);
    free(layout.ends);
    return harm;
}

bool oracle_draws_harm(const struct tarn_plan *plan, uint32_t iterations,
                       struct random_source *source)
{
    struct progress progress = {.plan = plan};
    struct layout layout = layout_create(plan);
    struct memory memory = memory_create(&layout);
    bool harm = false;
    while (!harm && !is_complete(&progress, iterations)) {
        uint32_t s = random_below(source, plan->streams_count);
        while (!is_ready(&progress, s, iterations)) s = (s + 1) % plan->streams_count;
        harm = !launch(&memory, next_of(&progress, s));
        progress.done[s]++;
    }
    if (!harm) harm = has_lost_output(&memory, iterations);
    free(memory.cells);
    free(layout.ends);
    return harm;
}
