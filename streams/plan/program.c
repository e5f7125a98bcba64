/* Compiles a plan into per-stream steps, and walks these steps in legal orders.
 *
 * A legal order is a depth-first walk that emits a step after all steps it depends on: the step
 * before it in its stream, and the steps that it waits for. Started from the ops in list order it
 * gives list order if that is legal. A step found again while it is still on the stack closes a
 * cycle.
 * Cost: linear in steps and waits. */
#include "program.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "streams/base/memory.h"
#include "streams/base/random.h"
#include "streams/graph/report.h"

/* ---- Nodes ---- */

uint32_t tarn_program_predecessors_count(const struct tarn_program *program, uint32_t node)
{
    const struct tarn_program_step *step = &program->steps[node % program->steps_count];
    return 1 + step->waits_end - step->waits_begin;
}

static uint32_t before_in_stream(const struct tarn_program *program, uint32_t node)
{
    uint32_t n = program->steps_count, iteration = node / n;
    const struct tarn_program_step *step = &program->steps[node % n];
    if (node % n != program->begin[step->stream]) return node - 1;
    return iteration > 0 ? (iteration - 1) * n + program->begin[step->stream + 1] - 1 : TARN_NONE;
}

uint32_t tarn_program_predecessor(const struct tarn_program *program, uint32_t node, uint32_t k)
{
    assert(k < tarn_program_predecessors_count(program, node));
    if (k == 0) return before_in_stream(program, node);
    uint32_t n = program->steps_count, iteration = node / n;
    const struct tarn_program_step *step = &program->steps[node % n];
    const struct tarn_program_wait *wait = &program->waits[step->waits_begin + k - 1];
    if (wait->previous > iteration) return TARN_NONE;
    return (iteration - wait->previous) * n + program->begin[wait->stream] + wait->place;
}

/* ---- Walking ---- */

enum mark { MARK_NEW, MARK_OPEN, MARK_DONE };

struct walk {
    const struct tarn_program *program;
    unsigned char *marks; /* by node */
    uint32_t *stack;      /* open nodes */
    uint32_t *cursors;    /* how many predecessors of stack[i] were visited */
    uint32_t depth;
    uint32_t *nodes; /* emitted */
    uint32_t nodes_count;
};

static enum tarn_status walk_init(struct walk *walk, struct tarn_region *region,
                                  const struct tarn_program *program, uint32_t iterations,
                                  uint32_t *nodes)
{
    size_t count = (size_t)program->steps_count * iterations + 1;
    *walk = (struct walk){.program = program, .nodes = nodes};
    walk->marks = tarn_region_take(region, count, sizeof *walk->marks);
    walk->stack = tarn_region_take(region, count, sizeof *walk->stack);
    walk->cursors = tarn_region_take(region, count, sizeof *walk->cursors);
    return region->is_exhausted ? TARN_SYSTEM : TARN_OK;
}

static void open_node(struct walk *walk, uint32_t node)
{
    assert(walk->marks[node] == MARK_NEW);
    walk->marks[node] = MARK_OPEN;
    walk->stack[walk->depth] = node;
    walk->cursors[walk->depth++] = 0;
}

/* Emits `node` after all nodes that it depends on. False: a cycle, left on the stack from the
 * returned node's own entry to the top. */
static bool visit(struct walk *walk, uint32_t node)
{
    if (walk->marks[node] != MARK_NEW) return true;
    open_node(walk, node);
    while (walk->depth > 0) {
        uint32_t top = walk->stack[walk->depth - 1];
        uint32_t k = walk->cursors[walk->depth - 1]++;
        if (k == tarn_program_predecessors_count(walk->program, top)) {
            walk->marks[top] = MARK_DONE;
            walk->nodes[walk->nodes_count++] = top;
            walk->depth--;
            continue;
        }
        uint32_t before = tarn_program_predecessor(walk->program, top, k);
        if (before == TARN_NONE || walk->marks[before] == MARK_DONE) continue;
        if (walk->marks[before] == MARK_OPEN) return false;
        open_node(walk, before);
    }
    return true;
}

enum tarn_status tarn_program_linearize(const struct tarn_program *program, uint32_t iterations,
                                        const uint32_t *goals, uint32_t goals_count,
                                        uint32_t *nodes)
{
    struct walk walk;
    struct tarn_region region = {.chunks = NULL};
    enum tarn_status status = walk_init(&walk, &region, program, iterations, nodes);
    for (uint32_t i = 0; status == TARN_OK && i < goals_count; i++) visit(&walk, goals[i]);
    for (uint32_t k = 0; status == TARN_OK && k < iterations; k++) {
        for (uint32_t i = 0; i < program->steps_count; i++)
            visit(&walk, k * program->steps_count + program->order[i]);
    }
    tarn_region_finish(&region);
    return status;
}

/* ---- The one order every program has ---- */

static enum tarn_status report_cycle(const struct walk *walk, const struct tarn_graph *graph,
                                     struct tarn_error *error)
{
    uint32_t top = walk->depth - 1;
    assert(walk->depth > 0 && walk->cursors[top] > 0);
    uint32_t closing =
        tarn_program_predecessor(walk->program, walk->stack[top], walk->cursors[top] - 1);
    char text[256] = "";
    size_t length = 0;
    uint32_t i = top + 1;
    do {
        i--;
        uint32_t op = walk->program->steps[walk->stack[i]].op;
        int n = snprintf(text + length, sizeof text - length, "%s%s", length ? " -> " : "",
                         tarn_op_label(graph, op).text);
        length += (size_t)n;
    } while (walk->stack[i] != closing && length < sizeof text);
    tarn_error_set(error, TARN_REJECTED,
                   "stream lists and waits form a cycle, in which every op must run before the "
                   "next and the last before the first: %s",
                   text);
    if (error) error->op = walk->program->steps[closing].op;
    return TARN_REJECTED;
}

static enum tarn_status fill_order(struct tarn_program *program, const struct tarn_graph *graph,
                                   struct tarn_error *error)
{
    struct walk walk;
    struct tarn_region region = {.chunks = NULL};
    enum tarn_status status = walk_init(&walk, &region, program, 1, program->order);
    if (status != TARN_OK) tarn_error_no_memory(error);
    for (uint32_t i = 0; status == TARN_OK && i < graph->ops_count; i++) {
        uint32_t step = program->step_of[graph->order[i]];
        if (step != TARN_NONE && !visit(&walk, step)) status = report_cycle(&walk, graph, error);
    }
    tarn_region_finish(&region);
    return status;
}

/* ---- Compiling ---- */

static enum tarn_status allocate(struct tarn_program *program, const struct tarn_plan *plan)
{
    size_t streams = plan->streams_count, steps = plan->list_begin[plan->streams_count];
    program->streams_count = plan->streams_count;
    program->steps_count = plan->list_begin[plan->streams_count];
    program->waits_count = plan->waits_count + plan->boundary_waits_count;
    struct tarn_region *region = &program->region;
    program->begin = tarn_region_take(region, streams + 1, sizeof *program->begin);
    program->steps = tarn_region_take(region, steps + 1, sizeof *program->steps);
    program->waits =
        tarn_region_take(region, (size_t)program->waits_count + 1, sizeof *program->waits);
    program->step_of =
        tarn_region_take(region, (size_t)plan->graph->ops_count + 1, sizeof *program->step_of);
    program->order = tarn_region_take(region, steps + 1, sizeof *program->order);
    return region->is_exhausted ? TARN_SYSTEM : TARN_OK;
}

static void fill_steps(struct tarn_program *program, const struct tarn_plan *plan)
{
    memcpy(program->begin, plan->list_begin,
           ((size_t)plan->streams_count + 1) * sizeof *program->begin);
    for (uint32_t i = 0; i < plan->graph->ops_count; i++) program->step_of[i] = TARN_NONE;
    for (uint32_t s = 0; s < program->streams_count; s++) {
        for (uint32_t i = program->begin[s]; i < program->begin[s + 1]; i++) {
            program->steps[i].op = plan->list[i];
            program->steps[i].stream = s;
            program->step_of[plan->list[i]] = i;
        }
    }
}

/* While waits are filled in, a step's waits_end is the position of its next wait. */
static void add_waits(struct tarn_program *program, const struct tarn_wait *waits, uint32_t count,
                      uint32_t previous)
{
    for (uint32_t i = 0; i < count; i++) {
        uint32_t on = program->step_of[waits[i].on];
        assert(on != TARN_NONE && program->step_of[waits[i].op] != TARN_NONE);
        struct tarn_program_step *step = &program->steps[program->step_of[waits[i].op]];
        struct tarn_program_step *other = &program->steps[on];
        other->record = true;
        program->waits[step->waits_end++] =
            (struct tarn_program_wait){other->stream, on - program->begin[other->stream], previous};
    }
}

/* Fills in waits by step; waits inside the iteration first, each kind in the plan's order. */
static void fill_waits(struct tarn_program *program, const struct tarn_plan *plan)
{
    for (uint32_t i = 0; i < plan->waits_count; i++)
        program->steps[program->step_of[plan->waits[i].op]].waits_end++;
    for (uint32_t i = 0; i < plan->boundary_waits_count; i++)
        program->steps[program->step_of[plan->boundary_waits[i].op]].waits_end++;
    uint32_t next = 0;
    for (uint32_t i = 0; i < program->steps_count; i++) {
        struct tarn_program_step *step = &program->steps[i];
        uint32_t count = step->waits_end;
        step->waits_begin = step->waits_end = next;
        next += count;
    }
    add_waits(program, plan->waits, plan->waits_count, 0);
    add_waits(program, plan->boundary_waits, plan->boundary_waits_count, 1);
}

enum tarn_status tarn_program_init(struct tarn_program *program, const struct tarn_plan *plan,
                                   struct tarn_error *error)
{
    memset(program, 0, sizeof *program);
    enum tarn_status status = allocate(program, plan);
    if (status != TARN_OK) {
        tarn_error_no_memory(error);
        goto fail;
    }
    fill_steps(program, plan);
    fill_waits(program, plan);
    status = fill_order(program, plan->graph, error);
    if (status != TARN_OK) goto fail;
    return TARN_OK;
fail:
    tarn_program_finish(program);
    return status;
}

void tarn_program_finish(struct tarn_program *program)
{
    tarn_region_finish(&program->region);
    memset(program, 0, sizeof *program);
}

/* ---- The plan's own ---- */

/* A number for each wait: equal sums on both sides show that the waits are the same. */
static uint64_t weigh_wait(uint64_t op, uint64_t on, uint64_t previous)
{
    return tarn_random_mix(op << 32 ^ on << 1 ^ previous);
}

static uint64_t weigh_plan(const struct tarn_plan *plan)
{
    uint64_t weight = 0;
    for (uint32_t i = 0; i < plan->waits_count; i++)
        weight += weigh_wait(plan->waits[i].op, plan->waits[i].on, 0);
    for (uint32_t i = 0; i < plan->boundary_waits_count; i++)
        weight += weigh_wait(plan->boundary_waits[i].op, plan->boundary_waits[i].on, 1);
    return weight;
}

/* Do the waits of this step begin at *next, and do the awaited steps record? Adds up the waits. */
static bool step_is_valid(const struct tarn_program *program, uint32_t index, uint32_t *next,
                          uint64_t *weight)
{
    const struct tarn_program_step *step = &program->steps[index];
    if (step->waits_begin != *next || step->waits_end < *next ||
        step->waits_end > program->waits_count)
        return false;
    for (uint32_t i = step->waits_begin; i < step->waits_end; i++) {
        const struct tarn_program_wait *wait = &program->waits[i];
        const struct tarn_program_step *on =
            &program->steps[program->begin[wait->stream] + wait->place];
        if (on->stream != wait->stream || !on->record) return false;
        *weight += weigh_wait(step->op, on->op, wait->previous);
    }
    *next = step->waits_end;
    return true;
}

bool tarn_program_is_valid(const struct tarn_program *program, const struct tarn_plan *plan)
{
    uint32_t steps_count = plan->list_begin[plan->streams_count], next = 0;
    uint64_t weight = 0;
    if (program->streams_count != plan->streams_count || program->steps_count != steps_count ||
        program->waits_count != plan->waits_count + plan->boundary_waits_count)
        return false;
    for (uint32_t s = 0; s <= plan->streams_count; s++) {
        if (program->begin[s] != plan->list_begin[s]) return false;
    }
    for (uint32_t i = 0; i < steps_count; i++) {
        if (program->steps[i].op != plan->list[i] || program->step_of[plan->list[i]] != i ||
            program->order[i] >= steps_count || !step_is_valid(program, i, &next, &weight))
            return false;
    }
    return next == program->waits_count && weight == weigh_plan(plan);
}

static void destroy_program(struct tarn_program *program)
{
    if (program) tarn_program_finish(program);
    tarn_free(program);
}

enum tarn_status tarn_plan_program(const struct tarn_plan *plan,
                                   const struct tarn_program **program, struct tarn_error *error)
{
    /* The plan is const for its users, but its cached program is not. */
    _Atomic(struct tarn_program *) *kept = &((struct tarn_plan *)(uintptr_t)plan)->program;
    struct tarn_program *found = atomic_load_explicit(kept, memory_order_acquire);
    assert(!found || tarn_program_is_valid(found, plan));
    *program = found;
    if (found) return TARN_OK;
    struct tarn_program *made = tarn_take(sizeof *made);
    if (!made) return tarn_error_no_memory(error);
    enum tarn_status status = tarn_program_init(made, plan, error);
    if (status != TARN_OK) {
        tarn_free(made);
        return status;
    }
    if (atomic_compare_exchange_strong(kept, &found, made)) {
        *program = made;
    } else {
        *program = found;
        destroy_program(made);
    }
    return TARN_OK;
}

void tarn_plan_drop_program(struct tarn_plan *plan)
{
    destroy_program(atomic_exchange(&plan->program, NULL));
}
