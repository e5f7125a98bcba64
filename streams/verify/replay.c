/* Safety: two iterations of the program, run once in one legal order, prove all legal orders.
 *
 * A byte map says who has which bytes, those that a storage reserves counted as its own, and every
 * storage remembers the last touch per stream of its content. Then
 *     a write must come after every touch of what it overwrites, by vector clocks, and
 *     a read must find its version whole, and come after the write that made it.
 * Order is transitive, so whoever overwrites next need only be after the latest content of each
 * byte; and what holds between the first two iterations holds between any two.
 * Cost: near-linear in steps, waits times streams, and touches. */
#include "replay.h"

#include <assert.h>

#define LOOKS_MAX 50000000u

/* ---- Touches ---- */

static uint32_t new_touch(struct tarn_proof_replay *replay)
{
    struct tarn_touch_pool *pool = &replay->pool;
    if (pool->free != TARN_NONE) {
        uint32_t touch = pool->free;
        pool->free = pool->items[touch].next;
        return touch;
    }
    struct tarn_touch *items = tarn_region_grow(replay->region, pool->items, &pool->room,
                                                (size_t)pool->count + 1, sizeof *items);
    if (!items) return TARN_NONE;
    pool->items = items;
    return pool->count++;
}

/* The step that runs now touches this version of a storage. */
static void add_touch(struct tarn_proof_replay *replay, struct tarn_content *content)
{
    uint32_t stream = replay->past.step->stream, node = replay->past.node;
    for (uint32_t t = content->touches; t != TARN_NONE; t = replay->pool.items[t].next) {
        if (replay->pool.items[t].stream == stream) {
            replay->pool.items[t].node = node;
            return;
        }
    }
    uint32_t touch = new_touch(replay);
    if (touch == TARN_NONE) {
        replay->no_memory = true;
        return;
    }
    replay->pool.items[touch] = (struct tarn_touch){stream, node, content->touches};
    content->touches = touch;
}

static void drop_touches(struct tarn_proof_replay *replay, struct tarn_content *content)
{
    while (content->touches != TARN_NONE) {
        uint32_t touch = content->touches;
        content->touches = replay->pool.items[touch].next;
        replay->pool.items[touch].next = replay->pool.free;
        replay->pool.free = touch;
    }
}

/* A touch that does not lie before the step that runs now; TARN_NONE: all do. Reads first, since
 * it is them that an overwrite harms. */
static uint32_t find_unordered(const struct tarn_proof_replay *replay,
                               const struct tarn_content *content)
{
    uint32_t found = TARN_NONE;
    for (uint32_t t = content->touches; t != TARN_NONE; t = replay->pool.items[t].next) {
        const struct tarn_touch *touch = &replay->pool.items[t];
        if (tarn_past_has(&replay->past, touch->stream, touch->node)) continue;
        if (touch->node != content->writer) return touch->node;
        found = touch->node;
    }
    return found;
}

/* ---- Reading and writing ---- */

static bool is_first_write(const struct tarn_proof_replay *replay, uint32_t storage)
{
    return replay->graph->storages[storage].producer == replay->past.step->op;
}

static void read_storage(struct tarn_proof_replay *replay, uint32_t storage)
{
    struct tarn_content *content = &replay->contents[storage];
    uint32_t writer = content->writer;
    bool persistent = replay->graph->storages[storage].persistent;
    if (!persistent && content->made_in != replay->past.iteration)
        tarn_replay_report_unwritten(replay, storage);
    else if (content->spoiler != TARN_NONE)
        tarn_replay_report_spoiled(replay, storage);
    else if (writer != TARN_NONE && writer != replay->past.node &&
             !tarn_past_has(&replay->past, tarn_past_step(&replay->past, writer)->stream, writer))
        tarn_replay_report_hazard(replay, storage, writer, "reads", "writes");
    add_touch(replay, content);
}

/* Another write to the same storage: after all that touched it. */
static void check_hazards(struct tarn_proof_replay *replay, uint32_t storage)
{
    const struct tarn_content *content = &replay->contents[storage];
    for (uint32_t t = content->touches; t != TARN_NONE; t = replay->pool.items[t].next) {
        const struct tarn_touch *touch = &replay->pool.items[t];
        if (touch->node == replay->past.node ||
            tarn_past_has(&replay->past, touch->stream, touch->node))
            continue;
        bool wrote = touch->node == content->writer;
        tarn_replay_report_hazard(replay, storage, touch->node, "writes",
                                  wrote ? "writes" : "reads");
        return;
    }
}

/* A storage that lies under the bytes of `storage`, which is being written for the first time.
 * False: it was not bound to come first, or that was not known of what lay beneath it. */
static bool overwrite(struct tarn_proof_replay *replay, uint32_t storage, uint32_t victim)
{
    struct tarn_content *content = &replay->contents[victim];
    bool is_done = tarn_storages_take_turns(replay->graph, victim, storage);
    uint32_t user = is_done ? TARN_NONE : find_unordered(replay, content);
    if (user != TARN_NONE)
        tarn_replay_report_overlap(replay, storage, victim, user);
    else if (replay->graph->storages[victim].pinned && content->made_in == replay->past.iteration)
        tarn_replay_report_lost_output(replay, storage, victim);
    content->spoiler = replay->past.node;
    content->spoiler_storage = storage;
    return user == TARN_NONE && !content->dubious;
}

/* Once an order is broken, what was overwritten before counts again: every storage of those bytes
 * is asked for itself, so that a harmless violation does not hide a harmful one. */
static void look_beneath(struct tarn_proof_replay *replay, uint32_t storage)
{
    const struct tarn_byte_map *map = &replay->map;
    uint32_t count = replay->graph->planned_count;
    if (replay->looks_left < count) return;
    replay->looks_left -= count;
    for (uint32_t a = 0; a < count; a++) {
        if (a == storage || map->begin[a] >= map->end[storage] ||
            map->end[a] <= map->begin[storage])
            continue;
        if (tarn_storages_take_turns(replay->graph, a, storage)) continue;
        uint32_t user = find_unordered(replay, &replay->contents[a]);
        if (user != TARN_NONE) tarn_replay_report_overlap(replay, storage, a, user);
    }
}

static void take_bytes(struct tarn_proof_replay *replay, uint32_t storage)
{
    struct tarn_byte_map *map = &replay->map;
    bool dubious = false;
    for (uint32_t c = tarn_byte_map_floor(map, map->begin[storage]); c < map->end[storage];
         c = tarn_byte_map_next(map, c)) {
        uint32_t victim = map->owner[c];
        if (victim == TARN_NONE || victim == storage) continue;
        if (!overwrite(replay, storage, victim)) dubious = true;
    }
    if (dubious) look_beneath(replay, storage);
    replay->contents[storage].dubious = dubious;
    tarn_byte_map_assign(map, storage);
}

/* A write in place may be partial: it reads what it leaves. */
static void write_storage(struct tarn_proof_replay *replay, uint32_t storage)
{
    struct tarn_content *content = &replay->contents[storage];
    bool first = is_first_write(replay, storage);
    if (!first) read_storage(replay, storage);
    check_hazards(replay, storage);
    if (first || content->spoiler != TARN_NONE) take_bytes(replay, storage);
    drop_touches(replay, content);
    content->writer = replay->past.node;
    content->spoiler = TARN_NONE;
    if (first || replay->graph->storages[storage].persistent)
        content->made_in = replay->past.iteration;
    add_touch(replay, content);
}

/* ---- Control arcs ---- */

static void check_demand(void *context, uint32_t earlier)
{
    const struct tarn_proof_replay *replay = context;
    uint32_t node = replay->past.iteration * replay->past.program->steps_count +
                    replay->past.program->step_of[earlier];
    if (!tarn_past_has(&replay->past, tarn_past_step(&replay->past, node)->stream, node))
        tarn_replay_report_lost_arc(replay, node);
}

/* ---- The two iterations ---- */

static void run_node(struct tarn_proof_replay *replay, uint32_t node)
{
    tarn_past_enter(&replay->past, node);
    const struct tarn_graph_op *op = &replay->graph->ops[replay->past.step->op];
    const struct tarn_op_extra *extra = tarn_extra(op);
    const struct tarn_graph_tensor *tensors = replay->graph->tensors;
    if (replay->past.iteration == 0)
        tarn_control_visit(&replay->control, replay->past.step->op, replay->past.step->stream,
                           check_demand, replay);
    for (uint32_t k = 0; k < op->inputs_count; k++)
        read_storage(replay, tensors[op->inputs[k]].storage);
    if (extra->workspace_storage != TARN_NONE) write_storage(replay, extra->workspace_storage);
    for (uint32_t k = 0; k < op->outputs_count; k++)
        write_storage(replay, tensors[tarn_outputs(op)[k]].storage);
    if (tarn_past_leave(&replay->past) != TARN_OK) replay->no_memory = true;
}

/* The caller writes persistent storages before the first iteration. */
static void place_persistent(struct tarn_proof_replay *replay)
{
    struct tarn_byte_map *map = &replay->map;
    for (uint32_t a = replay->graph->planned_count; a < replay->graph->storages_count; a++) {
        for (uint32_t c = tarn_byte_map_floor(map, map->begin[a]); c < map->end[a];
             c = tarn_byte_map_next(map, c)) {
            if (map->owner[c] == TARN_NONE) continue;
            tarn_replay_report_persistent(replay, a, map->owner[c]);
        }
        tarn_byte_map_assign(map, a);
    }
}

static enum tarn_status replay_init(struct tarn_proof_replay *replay,
                                    const struct tarn_verification *verification)
{
    const struct tarn_program *program = verification->program;
    const struct tarn_graph *graph = verification->plan->graph;
    struct tarn_region *region = verification->region;
    *replay = (struct tarn_proof_replay){.region = region,
                                         .plan = verification->plan,
                                         .graph = graph,
                                         .verdict = verification->verdict,
                                         .pool.free = TARN_NONE,
                                         .looks_left = LOOKS_MAX};
    replay->contents = tarn_region_take(region, graph->storages_count, sizeof *replay->contents);
    if (!replay->contents) return TARN_SYSTEM;
    for (uint32_t a = 0; a < graph->storages_count; a++) {
        replay->contents[a] =
            (struct tarn_content){TARN_NONE, TARN_NONE, TARN_NONE, TARN_NONE, TARN_NONE, false};
    }
    enum tarn_status status =
        tarn_byte_map_init(&replay->map, region, verification->plan, TARN_RESERVED_BYTES);
    if (status == TARN_OK)
        status = tarn_control_init(&replay->control, region, graph, program->streams_count);
    return status == TARN_OK ? tarn_past_init(&replay->past, region, program) : status;
}

enum tarn_status tarn_verify_replay(const struct tarn_verification *verification)
{
    const struct tarn_program *program = verification->program;
    struct tarn_proof_replay replay;
    struct tarn_region_mark mark = tarn_region_mark(verification->region);
    enum tarn_status status = replay_init(&replay, verification);
    if (status == TARN_OK) place_persistent(&replay);
    for (uint32_t k = 0; status == TARN_OK && k < 2; k++) {
        for (uint32_t i = 0; i < program->steps_count; i++) {
            if (replay.no_memory || tarn_verdict_is_full(replay.verdict)) break;
            run_node(&replay, k * program->steps_count + program->order[i]);
        }
        if (replay.no_memory) status = TARN_SYSTEM;
        assert(tarn_byte_map_is_valid(&replay.map));
    }
    tarn_region_release(verification->region, mark);
    return status;
}
