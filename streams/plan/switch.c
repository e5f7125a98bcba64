/* Finds the waits from the last iteration of one plan to the first iteration of another plan over
 * the same arena.
 *
 *     from    stream 0   ── a ── b ── c          c touches last what e writes first
 *     to      stream 0             └► e ── f     e waits for c; f comes after e anyway
 *
 * A sweep over the arena finds all pairs of storages that share a reserved byte. The producer of
 * the storage in `to` must wait, in every stream of `from`, for the last user of the storage in
 * `from`. An op that reads a persistent storage must wait for the last writer of the storage of the
 * same name, an op that writes it for all its users. Only the last position in every stream counts,
 * so a row of positions is enough for every op. Both programs with these needs as arcs between them
 * are one graph, whose transitive reduction (order/events) is the unique minimal set of waits. The
 * order of later iterations follows from the order of the streams, and so does the order with other
 * plans in between: each pair is ordered on its own.
 *
 * Source: docs/how-it-works.md, "Boundary between iterations". Cost: O(n log n) for n storages,
 * O(S) for every pair that shares bytes and for every op. */
#include "switch.h"

#include "program.h"
#include "streams/base/error.h"
#include "streams/order/events/events.h"
#include "sweep.h"

/* ---- Needs ---- */

/* The needs of the first iteration of `to`: rows of one entry for each stream of `from`, a position
 * + 1, or 0: none. */
struct needs {
    const struct tarn_switch *pair;
    const struct tarn_program *from, *to;
    struct tarn_region *region;
    uint32_t *rows;  /* by step of `to` */
    uint32_t *touch; /* by storage of `from`: its last users */
    uint32_t *write; /* by persistent storage of `from`: its last writers */
};

static uint32_t *row_at(const struct needs *needs, uint32_t *rows, uint32_t i)
{
    return rows + (size_t)i * needs->from->streams_count;
}

static bool writes(const struct tarn_graph *graph, uint32_t op, uint32_t storage)
{
    const struct tarn_graph_op *record = &graph->ops[op];
    for (uint32_t k = 0; k < record->outputs_count; k++) {
        if (graph->tensors[tarn_outputs(record)[k]].storage == storage) return true;
    }
    return false;
}

static void raise_to_step(const struct needs *needs, uint32_t *row, uint32_t op)
{
    uint32_t step = needs->from->step_of[op], stream = needs->from->steps[step].stream;
    uint32_t place = step - needs->from->begin[stream] + 1;
    if (row[stream] < place) row[stream] = place;
}

static void find_last(const struct needs *needs)
{
    const struct tarn_graph *graph = needs->pair->from->graph;
    for (uint32_t a = 0; a < graph->storages_count; a++) {
        const struct tarn_storage *storage = &graph->storages[a];
        for (uint32_t i = 0; i < storage->users_count; i++) {
            uint32_t op = tarn_storage_users(graph, storage)[i];
            raise_to_step(needs, row_at(needs, needs->touch, a), op);
            if (storage->persistent && writes(graph, op, a))
                raise_to_step(needs, row_at(needs, needs->write, a - graph->planned_count), op);
        }
    }
}

static void need(const struct needs *needs, uint32_t op, const uint32_t *last)
{
    uint32_t *row = row_at(needs, needs->rows, needs->to->step_of[op]);
    for (uint32_t s = 0; s < needs->from->streams_count; s++) {
        if (row[s] < last[s]) row[s] = last[s];
    }
}

/* False: no memory. */
static bool need_planned(const struct needs *needs)
{
    const struct tarn_switch *pair = needs->pair;
    struct tarn_sweep sweep = {.side = 0};
    if (!tarn_extents_init(&sweep.sides[0], pair->from, 0, pair->from->graph->planned_count,
                           needs->region) ||
        !tarn_extents_init(&sweep.sides[1], pair->to, 0, pair->to->graph->planned_count,
                           needs->region))
        return false;
    while (tarn_sweep_next(&sweep)) {
        const struct tarn_extents *others = &sweep.sides[1 - sweep.side];
        for (uint32_t i = 0; i < others->active_count; i++) {
            uint32_t other = others->active[i].storage, met = sweep.met.storage;
            uint32_t a = sweep.side ? other : met, b = sweep.side ? met : other;
            need(needs, pair->to->graph->storages[b].producer, row_at(needs, needs->touch, a));
        }
    }
    return true;
}

static void need_persistent(const struct needs *needs)
{
    const struct tarn_graph *from = needs->pair->from->graph, *to = needs->pair->to->graph;
    for (uint32_t b = to->planned_count; b < to->storages_count; b++) {
        uint32_t a = needs->pair->same[b - to->planned_count];
        const struct tarn_storage *storage = &to->storages[b];
        for (uint32_t i = 0; a != TARN_NONE && i < storage->users_count; i++) {
            uint32_t op = tarn_storage_users(to, storage)[i];
            need(needs, op,
                 writes(to, op, b) ? row_at(needs, needs->touch, a)
                                   : row_at(needs, needs->write, a - from->planned_count));
        }
    }
}

static bool needs_init(struct needs *needs)
{
    const struct tarn_graph *from = needs->pair->from->graph;
    size_t streams = needs->from->streams_count;
    needs->rows =
        tarn_region_take(needs->region, needs->to->steps_count * streams, sizeof *needs->rows);
    needs->touch =
        tarn_region_take(needs->region, from->storages_count * streams, sizeof *needs->touch);
    needs->write = tarn_region_take(
        needs->region, (from->storages_count - from->planned_count) * streams, sizeof(uint32_t));
    if (!needs->rows || !needs->touch || !needs->write) return false;
    find_last(needs);
    if (!need_planned(needs)) return false;
    need_persistent(needs);
    return true;
}

/* ---- Both programs as one graph ---- */

/* The joined graph: steps and streams of `from` come first. */
struct joined {
    struct tarn_event_graph graph;
    uint32_t *begin, *before; /* its arcs */
};

static uint32_t count_arcs(const struct needs *needs)
{
    size_t entries = (size_t)needs->to->steps_count * needs->from->streams_count;
    uint32_t count = needs->from->waits_count + needs->to->waits_count;
    for (size_t i = 0; i < entries; i++) count += needs->rows[i] > 0;
    return count;
}

static void put_program(struct joined *joined, const struct tarn_program *program, uint32_t node,
                        uint32_t stream)
{
    struct tarn_event_graph *graph = &joined->graph;
    for (uint32_t s = 0; s < program->streams_count; s++) {
        for (uint32_t i = program->begin[s]; i < program->begin[s + 1]; i++) {
            graph->stream[node + i] = stream + s;
            graph->position[node + i] = i - program->begin[s];
            graph->ops[node + i] = node + i;
        }
        graph->begin[stream + s + 1] = node + program->begin[s + 1];
    }
}

/* needs NULL: a step of `from`, which has no needs. */
static void put_arcs(struct joined *joined, const struct tarn_program *program, uint32_t node,
                     const struct needs *needs)
{
    for (uint32_t i = 0; i < program->steps_count; i++) {
        uint32_t next = joined->begin[node + i];
        for (uint32_t k = program->steps[i].waits_begin; k < program->steps[i].waits_end; k++) {
            const struct tarn_program_wait *wait = &program->waits[k];
            if (wait->previous) continue;
            joined->before[next++] = node + program->begin[wait->stream] + wait->place;
        }
        for (uint32_t s = 0; needs && s < needs->from->streams_count; s++) {
            uint32_t place = row_at(needs, needs->rows, i)[s];
            if (place > 0) joined->before[next++] = needs->from->begin[s] + place - 1;
        }
        joined->begin[node + i + 1] = next;
    }
}

static bool join(struct joined *joined, const struct needs *needs)
{
    const struct tarn_program *from = needs->from, *to = needs->to;
    uint32_t nodes = from->steps_count + to->steps_count;
    uint32_t *order = tarn_region_take(needs->region, nodes, sizeof *order);
    joined->begin = tarn_region_take(needs->region, (size_t)nodes + 1, sizeof *joined->begin);
    joined->before = tarn_region_take(needs->region, count_arcs(needs), sizeof *joined->before);
    if (!order || !joined->begin || !joined->before ||
        !tarn_event_graph_take(&joined->graph, needs->region, nodes,
                               from->streams_count + to->streams_count))
        return false;
    put_program(joined, from, 0, 0);
    put_program(joined, to, from->steps_count, from->streams_count);
    put_arcs(joined, from, 0, NULL);
    put_arcs(joined, to, from->steps_count, needs);
    for (uint32_t i = 0; i < from->steps_count; i++) order[i] = from->order[i];
    for (uint32_t i = 0; i < to->steps_count; i++)
        order[from->steps_count + i] = from->steps_count + to->order[i];
    joined->graph.order = order;
    joined->graph.predecessors = (struct tarn_arcs){joined->begin, joined->before};
    return true;
}

/* Keeps only the waits of `to` on `from`, as ops. */
static void keep_crossing(const struct needs *needs, struct tarn_wait *waits, uint32_t *count)
{
    uint32_t kept = 0, first = needs->from->steps_count;
    for (uint32_t i = 0; i < *count; i++) {
        if (waits[i].op < first || waits[i].on >= first) continue;
        waits[kept++] = (struct tarn_wait){needs->to->steps[waits[i].op - first].op,
                                           needs->from->steps[waits[i].on].op};
    }
    *count = kept;
}

enum tarn_status tarn_switch_waits(const struct tarn_switch *pair, struct tarn_region *region,
                                   struct tarn_wait **waits, uint32_t *count,
                                   struct tarn_error *error)
{
    struct tarn_region working = {.chunks = NULL};
    struct needs needs = {.pair = pair, .region = &working};
    struct joined joined;
    struct tarn_wait *reduced = NULL;
    *waits = NULL;
    enum tarn_status status = tarn_plan_program(pair->from, &needs.from, error);
    if (status == TARN_OK) status = tarn_plan_program(pair->to, &needs.to, error);
    if (status == TARN_OK && needs_init(&needs) && join(&joined, &needs) &&
        tarn_events_reduce(&joined.graph, &working, &reduced, count) == TARN_OK) {
        keep_crossing(&needs, reduced, count);
        *waits = tarn_region_copy(region, reduced, *count, sizeof **waits);
    }
    tarn_region_finish(&working);
    if (status != TARN_OK) return status;
    return *waits ? TARN_OK : tarn_error_no_memory(error);
}
