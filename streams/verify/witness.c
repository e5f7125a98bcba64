/* Finds witnesses: for a violation, a legal linear order in which an op reads a wrong byte.
 *
 * A violation has a write x, a use y that x should come after, and the write p of the bytes that y
 * uses. If nothing orders x and y, one of a few orders shows the harm. Each begins with some of x,
 * y and p, one after another, each after all ops that it needs; the rest follows in launch order:
 *
 *     (y), x          all that y needs, but not y, then x: y finds its bytes overwritten
 *     p, x            the same for those that read after y
 *     x, p            p itself overwrites what x wrote, and x's readers find that
 *     x; y; y, x; x, y   two touches of one storage, one of them too early or too late
 *
 * Each order is run on a map of which storage owns which bytes, in which version. It uses no
 * clocks, only the given order and what the graph says every op must read. Two scratch storages
 * that no op reads do no harm in any linear order, and have no witness.
 * Cost: linear in both iterations for every order tried; a budget of steps for all violations. */
#include <assert.h>

#include "byte_map.h"
#include "streams/graph/versions.h"
#include "verdict.h"

#define STEPS_MAX 8000000u

/* ---- Running an order ---- */

struct version {
    uint32_t writer;    /* op; TARN_NONE: the caller, or none */
    uint32_t iteration; /* of the write */
    bool spoiled;       /* another storage has overwritten some of its bytes */
};

struct memory {
    const struct tarn_graph *graph;
    struct tarn_versions expected; /* by the graph's list order */
    struct tarn_byte_map map;
    struct version *versions; /* by part */
};

static void take_bytes(struct memory *memory, uint32_t part)
{
    struct tarn_byte_map *map = &memory->map;
    for (uint32_t c = tarn_byte_map_floor(map, map->begin[part]); c < map->end[part];
         c = tarn_byte_map_next(map, c)) {
        if (map->owner[c] != TARN_NONE) memory->versions[map->owner[c]].spoiled = true;
    }
    tarn_byte_map_assign(map, part);
    memory->versions[part].spoiled = false;
}

static void write_part(struct memory *memory, uint32_t part, uint32_t op, uint32_t iteration)
{
    take_bytes(memory, part);
    memory->versions[part].writer = op;
    memory->versions[part].iteration = iteration;
}

/* Does a part hold what the graph says it must? `expected`: the version of the same iteration;
 * TARN_NONE stands for the last one of the previous iteration. */
static bool reads_right(const struct memory *memory, uint32_t part, uint32_t expected,
                        uint32_t iteration)
{
    const struct version *version = &memory->versions[part];
    if (version->spoiled) return false;
    if (expected == TARN_NONE && iteration > 0 && memory->expected.last[part] != TARN_NONE) {
        expected = memory->expected.last[part];
        iteration--;
    }
    if (expected == TARN_NONE) return version->writer == TARN_NONE;
    return version->writer == tarn_version_writer(memory->graph, expected) &&
           version->iteration == iteration;
}

/* A write in place may be partial, so it counts as a read of the remaining bytes. */
static bool is_read(const struct memory *memory, const struct tarn_graph_op *op, uint32_t v,
                    uint32_t slot)
{
    uint32_t storage = tarn_slot_storage(memory->graph, op, slot);
    return slot < op->inputs_count || memory->graph->storages[storage].producer != v;
}

static uint32_t workspace_part(const struct memory *memory, const struct tarn_graph_op *op)
{
    uint32_t storage = tarn_extra(op)->workspace_storage;
    return storage == TARN_NONE ? TARN_NONE : memory->graph->storages[storage].part;
}

/* An op's own storages must not share bytes: while it runs, reads and writes mix. Only a workspace
 * that ends before the outputs begin may have been overwritten by them. */
static bool holds_all(const struct memory *memory, const struct tarn_graph_op *op)
{
    uint32_t workspace = workspace_part(memory, op);
    for (uint32_t k = 0; k < tarn_slots_count(op); k++) {
        const struct tarn_graph_tensor *tensor = &memory->graph->tensors[tarn_slot_tensor(op, k)];
        for (uint32_t i = 0; i < tensor->parts_count; i++)
            if (memory->versions[tensor->part + i].spoiled) return false;
    }
    return workspace == TARN_NONE || op->workspace_first || !memory->versions[workspace].spoiled;
}

static bool reads_all_right(const struct memory *memory, uint32_t v, uint32_t iteration)
{
    const struct tarn_graph_op *op = &memory->graph->ops[v];
    const uint32_t *expected = memory->expected.found + memory->expected.begin[v];
    for (uint32_t k = 0; k < tarn_slots_count(op); k++) {
        const struct tarn_graph_tensor *tensor = &memory->graph->tensors[tarn_slot_tensor(op, k)];
        for (uint32_t i = 0; i < tensor->parts_count; i++, expected++)
            if (is_read(memory, op, v, k) &&
                !reads_right(memory, tensor->part + i, *expected, iteration))
                return false;
    }
    return true;
}

/* False: the op reads a wrong byte. */
static bool run_op(struct memory *memory, uint32_t v, uint32_t iteration)
{
    const struct tarn_graph_op *op = &memory->graph->ops[v];
    uint32_t workspace = workspace_part(memory, op);
    if (!reads_all_right(memory, v, iteration)) return false;
    if (workspace != TARN_NONE) write_part(memory, workspace, v, iteration);
    if (op->workspace_first && !reads_all_right(memory, v, iteration)) return false;
    for (uint32_t k = 0; k < op->outputs_count; k++) {
        const struct tarn_graph_tensor *tensor = &memory->graph->tensors[tarn_outputs(op)[k]];
        for (uint32_t i = 0; i < tensor->parts_count; i++)
            write_part(memory, tensor->part + i, v, iteration);
    }
    return holds_all(memory, op);
}

static void reset(struct memory *memory)
{
    tarn_byte_map_clear(&memory->map);
    for (uint32_t p = 0; p < memory->graph->parts_count; p++)
        memory->versions[p] = (struct version){TARN_NONE, 0, false};
    for (uint32_t p = 0; p < memory->graph->parts_count; p++)
        if (memory->graph->storages[tarn_part(memory->graph, p).storage].persistent)
            take_bytes(memory, p);
}

static bool has_lost_output(const struct memory *memory)
{
    const struct tarn_graph *graph = memory->graph;
    for (uint32_t p = 0; p < graph->parts_count; p++)
        if (graph->storages[tarn_part(graph, p).storage].pinned && memory->versions[p].spoiled)
            return true;
    return false;
}

/* The number of nodes of the order until a wrong byte is read; all nodes if an output is lost in
 * the end; 0 if nothing goes wrong. */
static uint32_t run_order(struct memory *memory, const struct tarn_program *program,
                          const uint32_t *nodes, uint32_t count)
{
    reset(memory);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t iteration = nodes[i] / program->steps_count;
        uint32_t step = nodes[i] - iteration * program->steps_count;
        if (!run_op(memory, program->steps[step].op, iteration)) return i + 1;
    }
    return has_lost_output(memory) ? count : 0;
}

static bool memory_init(struct memory *memory, const struct tarn_verification *verification)
{
    const struct tarn_graph *graph = verification->plan->graph;
    struct tarn_region *region = verification->region;
    *memory = (struct memory){.graph = graph};
    memory->versions = tarn_region_take(region, graph->parts_count, sizeof *memory->versions);
    return memory->versions &&
           tarn_versions_init(&memory->expected, region, graph, graph->order, graph->ops_count) ==
               TARN_OK &&
           tarn_byte_map_init(&memory->map, region, verification->plan, TARN_EXACT_BYTES) ==
               TARN_OK;
}

/* ---- Trying orders ---- */

struct search {
    struct tarn_region *witnesses; /* the verdict's */
    const struct tarn_program *program;
    struct memory memory;
    uint32_t *nodes; /* the order being tried */
    uint32_t *goals; /* what it begins with */
    uint64_t steps;  /* spent */
};

static enum tarn_status write_witness(const struct search *search, uint32_t count,
                                      struct tarn_violation *violation)
{
    struct tarn_step *steps = tarn_region_take(search->witnesses, count, sizeof *steps);
    if (!steps) return TARN_SYSTEM;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t iteration = search->nodes[i] / search->program->steps_count;
        uint32_t step = search->nodes[i] - iteration * search->program->steps_count;
        steps[i] = (struct tarn_step){search->program->steps[step].op, iteration};
    }
    violation->witness = steps;
    violation->witness_count = count;
    return TARN_OK;
}

/* The orders to try, as picks from a violation's suspects {x, y, p}. */
struct candidate {
    bool prepared; /* the ops that y needs come before all picks */
    uint32_t count;
    uint32_t picks[2];
};
static const struct candidate candidates[] = {
    {false, 0, {0, 0}}, {true, 1, {0, 0}},  {false, 1, {0, 0}}, {false, 2, {2, 0}},
    {false, 2, {0, 2}}, {false, 2, {1, 0}}, {false, 2, {0, 1}}, {false, 1, {1, 0}},
};

static uint32_t prepare(const struct tarn_program *program, uint32_t node, uint32_t *goals)
{
    uint32_t count = 0;
    for (uint32_t k = 0; k < tarn_program_predecessors_count(program, node); k++) {
        uint32_t before = tarn_program_predecessor(program, node, k);
        if (before != TARN_NONE) goals[count++] = before;
    }
    return count;
}

/* TARN_NONE: the violation has no such suspects. */
static uint32_t pick_goals(const struct search *search, const struct tarn_suspects *suspects,
                           const struct candidate *candidate)
{
    uint32_t count = 0;
    if (candidate->prepared) {
        if (suspects->count < 2) return TARN_NONE;
        count = prepare(search->program, suspects->nodes[1], search->goals);
    }
    for (uint32_t i = 0; i < candidate->count; i++) {
        if (candidate->picks[i] >= suspects->count) return TARN_NONE;
        search->goals[count++] = suspects->nodes[candidate->picks[i]];
    }
    assert(count <= search->program->waits_count + 3);
    return count;
}

static uint32_t iterations_of(const struct search *search, const struct tarn_suspects *suspects)
{
    uint32_t iterations = 1;
    for (uint32_t i = 0; i < suspects->count; i++) {
        if (suspects->nodes[i] >= search->program->steps_count) iterations = 2;
    }
    return iterations;
}

static enum tarn_status find_witness(struct search *search, const struct tarn_suspects *suspects,
                                     struct tarn_violation *violation)
{
    uint32_t iterations = iterations_of(search, suspects);
    uint32_t count = iterations * search->program->steps_count;
    for (size_t c = 0; c < sizeof candidates / sizeof candidates[0]; c++) {
        uint32_t goals_count = pick_goals(search, suspects, &candidates[c]);
        if (goals_count == TARN_NONE) continue;
        if (tarn_program_linearize(search->program, iterations, search->goals, goals_count,
                                   search->nodes) != TARN_OK)
            return TARN_SYSTEM;
        search->steps += count;
        uint32_t corrupt = run_order(&search->memory, search->program, search->nodes, count);
        if (corrupt > 0) return write_witness(search, corrupt, violation);
    }
    return TARN_OK;
}

static bool search_init(struct search *search, const struct tarn_verification *verification)
{
    const struct tarn_program *program = verification->program;
    struct tarn_region *region = verification->region;
    *search = (struct search){.witnesses = &verification->verdict->region, .program = program};
    search->nodes =
        tarn_region_take(region, 2 * (size_t)program->steps_count, sizeof *search->nodes);
    search->goals =
        tarn_region_take(region, (size_t)program->waits_count + 3, sizeof *search->goals);
    return memory_init(&search->memory, verification) && search->nodes && search->goals;
}

enum tarn_status tarn_verify_witnesses(const struct tarn_verification *verification)
{
    struct tarn_verdict *verdict = verification->verdict;
    if (verdict->count == 0 || verification->program->steps_count == 0) return TARN_OK;
    struct search search;
    struct tarn_region_mark mark = tarn_region_mark(verification->region);
    enum tarn_status status = search_init(&search, verification) ? TARN_OK : TARN_SYSTEM;
    for (size_t i = 0; status == TARN_OK && i < verdict->count && search.steps < STEPS_MAX; i++) {
        if (verdict->suspects[i].count > 0)
            status = find_witness(&search, &verdict->suspects[i], &verdict->violations[i]);
    }
    tarn_region_release(verification->region, mark);
    return status;
}
