/* Orders that lists and waits allow, run on memory in which every byte knows who wrote it. All of
 * memory is copied at every branch; the graphs are tiny. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "plan_oracle.h"

enum { STREAMS = 128 };

/* ---- Legal orders ---- */

struct progress {
    const struct tarn_plan *plan;
    uint32_t done[STREAMS]; /* launches of every stream */
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
        if (!is_ready(&progress, s, UINT32_MAX / STREAMS)) return false;
        progress.done[s]++;
    }
    return true;
}

/* ---- Bytes ---- */

/* Reads what another op has written: an input, or the rest of what is written in place. */
static bool sees(const struct tarn_graph *graph, uint32_t op, uint32_t storage)
{
    return oracle_reads(graph, op, storage) ||
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
    return oracle_offset(plan, storage) + (persistent ? plan->footprint : 0);
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
    /* the workspace first, where that ends before the outputs begin */
    uint32_t early = graph->ops[step.op].workspace_first
                         ? tarn_extra(&graph->ops[step.op])->workspace_storage
                         : TARN_NONE;
    if (early != TARN_NONE) {
        fill(memory, early, step.op, step.iteration);
        for (uint32_t a = 0; a < graph->storages_count; a++) {
            if (sees(graph, step.op, a) && !finds(memory, step.op, step.iteration, a)) return false;
        }
    }
    for (uint32_t a = 0; a < graph->storages_count; a++) {
        if (a != early && oracle_writes(graph, step.op, a))
            fill(memory, a, step.op, step.iteration);
    }
    for (uint32_t a = 0; a < graph->storages_count; a++) {
        if (a == early) continue;
        if (oracle_writes(graph, step.op, a) && !holds(memory, a, step.op, step.iteration))
            return false;
        if (oracle_reads(graph, step.op, a) && !oracle_writes(graph, step.op, a) &&
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
