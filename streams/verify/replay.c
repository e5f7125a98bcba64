/* Checks safety: two iterations of the program, run once in one legal order, prove all legal
 * orders.
 *
 * A byte map says which storage owns which bytes, reserved bytes included. Every part of a storage
 * (a storage without slices is one part) remembers the last use of its content per stream. Then
 *     a write must come after every use of what it overwrites, by vector clocks, and
 *     a read must find its version whole, and come after the write that made it.
 * Conditional storages are not in the map; arms.c checks their bytes. Order is transitive, so the
 * next overwriting op need only be after the latest content of each byte. A property of the first
 * two iterations holds between any two.
 * Cost: near-linear in steps, waits times streams, and touches. */
#include <assert.h>
#include <stdio.h>

#include "byte_map.h"
#include "control.h"
#include "past.h"
#include "streams/graph/report.h"
#include "verdict.h"

/* ---- State of the replay ---- */

struct touch {
    uint32_t stream, node;
    uint32_t next; /* index into the pool, or TARN_NONE */
};

struct touch_pool {
    struct touch *items;
    size_t room;
    uint32_t count;
    uint32_t free; /* list of those given back */
};

struct content {
    uint32_t touches; /* the last use of this version by every stream that used it */
    uint32_t writer;  /* node that made this version; TARN_NONE: none yet */
    uint32_t made_in; /* iteration of its first write; TARN_NONE: never written */
    uint32_t spoiler; /* node that overwrote some of its bytes, or TARN_NONE */
    uint32_t spoiler_part;
    bool dubious; /* the content beneath is not ordered before this content, so an op after this
                   * content may not be after the one beneath */
};

struct replay {
    struct tarn_region *region; /* of all arrays */
    const struct tarn_plan *plan;
    const struct tarn_graph *graph;
    struct tarn_verdict *verdict;
    struct tarn_past past;
    struct tarn_byte_map map;
    struct touch_pool pool;
    struct content *contents; /* by part */
    struct tarn_control control;
    uint64_t looks_left; /* storages that may still be checked beneath dubious content */
    bool no_memory;
};

/* ---- What is said ---- */

/* Reports of the replay for a broken plan: the violation, the nodes from which the search for a
 * witness starts, and a sentence with both ops, the storages and their bytes. In messages "it" is
 * the step that runs now. */

static uint32_t op_at(const struct replay *replay, uint32_t node)
{
    return tarn_past_step(&replay->past, node)->op;
}

struct node_label {
    char text[128];
};

/* The name of a node in messages about the step that runs now. */
static struct node_label label(const struct replay *replay, uint32_t node)
{
    struct node_label result;
    bool previous = tarn_past_iteration(&replay->past, node) < replay->past.iteration;
    snprintf(result.text, sizeof result.text, "%s%s",
             tarn_op_label(replay->graph, op_at(replay, node)).text,
             previous ? " of the previous iteration" : "");
    return result;
}

struct bytes_label {
    char text[300];
};

static const struct tarn_storage *storage_of(const struct replay *replay, uint32_t part)
{
    return &replay->graph->storages[tarn_part(replay->graph, part).storage];
}

/* The storage of a part with its exact bytes, as offsets of its memory space, and the end of its
 * reserved bytes if that differs. */
static struct bytes_label bytes(const struct replay *replay, uint32_t part)
{
    struct bytes_label result;
    uint32_t storage = tarn_part(replay->graph, part).storage;
    const struct tarn_storage *record = &replay->graph->storages[storage];
    uint64_t offset = tarn_plan_offset_in_space(replay->plan, storage);
    uint64_t size = tarn_plan_place(replay->plan, storage)->size;
    uint64_t reserved = tarn_storage_reserved(replay->graph, storage, replay->plan->alignment);
    char padding[40] = "";
    if (reserved > size)
        snprintf(padding, sizeof padding, ", reserved up to %llu",
                 (unsigned long long)(offset + reserved));
    snprintf(result.text, sizeof result.text, "%s (bytes %llu..%llu%s%s)",
             tarn_storage_label(replay->graph, storage).text, (unsigned long long)offset,
             (unsigned long long)(offset + size),
             tarn_space_phrase(replay->graph, record->space).text, padding);
    return result;
}

/* Between the step that runs now and another node (TARN_NONE: none). */
static struct tarn_violation violation_with(const struct replay *replay,
                                            enum tarn_violation_kind kind, uint32_t other,
                                            uint32_t part, uint32_t other_part)
{
    struct tarn_violation violation = tarn_violation_of(kind);
    violation.op = replay->past.step->op;
    if (other != TARN_NONE) violation.other_op = op_at(replay, other);
    if (part != TARN_NONE) violation.tensor = storage_of(replay, part)->tensor;
    if (other_part != TARN_NONE) violation.other_tensor = storage_of(replay, other_part)->tensor;
    return violation;
}

static struct tarn_suspects suspects(const struct replay *replay, uint32_t other, uint32_t third)
{
    struct tarn_suspects result = {{replay->past.node, other, third}, 1};
    if (other != TARN_NONE) result.count = third != TARN_NONE ? 3 : 2;
    return result;
}

/* The step writes part `part` over bytes of `victim`, which `user` uses, unordered. */
static void replay_report_overlap(const struct replay *replay, uint32_t part, uint32_t victim,
                                  uint32_t user)
{
    bool self = user == replay->past.node;
    tarn_verdict_add(
        replay->verdict, violation_with(replay, TARN_UNORDERED_OVERLAP, user, part, victim),
        suspects(replay, user, replay->contents[victim].writer),
        "%s writes %s, which shares bytes with %s that %s %s%s",
        label(replay, replay->past.node).text, bytes(replay, part).text, bytes(replay, victim).text,
        self ? "it" : label(replay, user).text, self ? "uses itself" : "uses",
        self ? "" : ", and nothing orders the use before the write");
}

static void replay_report_lost_output(const struct replay *replay, uint32_t part, uint32_t victim)
{
    uint32_t writer = replay->contents[victim].writer;
    tarn_verdict_add(replay->verdict,
                     violation_with(replay, TARN_OVERWRITTEN_INPUT, writer, part, victim),
                     suspects(replay, writer, TARN_NONE),
                     "%s writes %s over the output %s, which must stay until the iteration ends",
                     label(replay, replay->past.node).text, bytes(replay, part).text,
                     bytes(replay, victim).text);
}

static void replay_report_spoiled(const struct replay *replay, uint32_t part)
{
    const struct content *content = &replay->contents[part];
    uint32_t spoiler = content->spoiler;
    bool ordered =
        tarn_past_has(&replay->past, tarn_past_step(&replay->past, spoiler)->stream, spoiler);
    tarn_verdict_add(
        replay->verdict,
        violation_with(replay, ordered ? TARN_OVERWRITTEN_INPUT : TARN_UNORDERED_OVERLAP, spoiler,
                       part, content->spoiler_part),
        suspects(replay, spoiler, content->writer), "%s reads %s, but %s %s overwritten it with %s",
        label(replay, replay->past.node).text, bytes(replay, part).text,
        label(replay, spoiler).text, ordered ? "has" : "may have",
        bytes(replay, content->spoiler_part).text);
}

static void replay_report_hazard(const struct replay *replay, uint32_t part, uint32_t other,
                                 const char *does, const char *other_does)
{
    tarn_verdict_add(replay->verdict,
                     violation_with(replay, TARN_HAZARD_LOST, other, part, TARN_NONE),
                     suspects(replay, other, TARN_NONE),
                     "%s %s %s, which %s %s, and nothing orders the two: a wait is missing",
                     label(replay, replay->past.node).text, does,
                     tarn_storage_label(replay->graph, tarn_part(replay->graph, part).storage).text,
                     label(replay, other).text, other_does);
}

static void replay_report_unwritten(const struct replay *replay, uint32_t part)
{
    const struct tarn_graph *graph = replay->graph;
    uint32_t producer = storage_of(replay, part)->producer;
    struct tarn_violation violation =
        violation_with(replay, TARN_HAZARD_LOST, TARN_NONE, part, TARN_NONE);
    violation.other_op = producer;
    struct tarn_suspects who = suspects(replay, TARN_NONE, TARN_NONE);
    tarn_verdict_add(replay->verdict, violation, who,
                     "%s reads %s before its producer %s has run in the same iteration",
                     label(replay, replay->past.node).text,
                     tarn_storage_label(graph, tarn_part(graph, part).storage).text,
                     tarn_op_label(graph, producer).text);
}

static void replay_report_lost_arc(const struct replay *replay, uint32_t node)
{
    tarn_verdict_add(replay->verdict,
                     violation_with(replay, TARN_HAZARD_LOST, node, TARN_NONE, TARN_NONE),
                     suspects(replay, node, TARN_NONE),
                     "a control arc says that %s comes after %s, but nothing in the plan does",
                     label(replay, replay->past.node).text, label(replay, node).text);
}

static void replay_report_persistent(const struct replay *replay, uint32_t part, uint32_t other)
{
    struct tarn_violation violation = tarn_violation_of(TARN_UNORDERED_OVERLAP);
    violation.tensor = storage_of(replay, part)->tensor;
    violation.other_tensor = storage_of(replay, other)->tensor;
    tarn_verdict_add(replay->verdict, violation, (struct tarn_suspects){{0}, 1},
                     "persistent %s shares bytes with %s; both live for ever",
                     bytes(replay, part).text, bytes(replay, other).text);
}

#define LOOKS_MAX 50000000u

/* ---- Touches ---- */

static uint32_t new_touch(struct replay *replay)
{
    struct touch_pool *pool = &replay->pool;
    if (pool->free != TARN_NONE) {
        uint32_t touch = pool->free;
        pool->free = pool->items[touch].next;
        return touch;
    }
    struct touch *items = tarn_region_grow(replay->region, pool->items, &pool->room,
                                           (size_t)pool->count + 1, sizeof *items);
    if (!items) return TARN_NONE;
    pool->items = items;
    return pool->count++;
}

/* Records that the step that runs now uses this version of a storage. */
static void add_touch(struct replay *replay, struct content *content)
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
    replay->pool.items[touch] = (struct touch){stream, node, content->touches};
    content->touches = touch;
}

static void drop_touches(struct replay *replay, struct content *content)
{
    while (content->touches != TARN_NONE) {
        uint32_t touch = content->touches;
        content->touches = replay->pool.items[touch].next;
        replay->pool.items[touch].next = replay->pool.free;
        replay->pool.free = touch;
    }
}

/* A use that does not come before the step that runs now; TARN_NONE: all uses do. Reads are checked
 * first, since an overwrite harms them. */
static uint32_t find_unordered(const struct replay *replay, const struct content *content)
{
    uint32_t found = TARN_NONE;
    for (uint32_t t = content->touches; t != TARN_NONE; t = replay->pool.items[t].next) {
        const struct touch *touch = &replay->pool.items[t];
        if (tarn_past_has(&replay->past, touch->stream, touch->node)) continue;
        if (touch->node != content->writer) return touch->node;
        found = touch->node;
    }
    return found;
}

/* ---- Reading and writing ---- */

static bool take_turns(const struct replay *replay, uint32_t workspace, uint32_t output)
{
    const struct tarn_graph *graph = replay->graph;
    return tarn_storages_take_turns(graph, tarn_part(graph, workspace).storage,
                                    tarn_part(graph, output).storage);
}

static bool is_first_write(const struct replay *replay, uint32_t part)
{
    return storage_of(replay, part)->producer == replay->past.step->op;
}

static void read_part(struct replay *replay, uint32_t part)
{
    struct content *content = &replay->contents[part];
    uint32_t writer = content->writer;
    bool persistent = storage_of(replay, part)->persistent;
    if (!persistent && content->made_in != replay->past.iteration)
        replay_report_unwritten(replay, part);
    else if (content->spoiler != TARN_NONE)
        replay_report_spoiled(replay, part);
    else if (writer != TARN_NONE && writer != replay->past.node &&
             !tarn_past_has(&replay->past, tarn_past_step(&replay->past, writer)->stream, writer))
        replay_report_hazard(replay, part, writer, "reads", "writes");
    add_touch(replay, content);
}

/* Another write to the same storage must come after all its users. */
static void check_hazards(struct replay *replay, uint32_t part)
{
    const struct content *content = &replay->contents[part];
    for (uint32_t t = content->touches; t != TARN_NONE; t = replay->pool.items[t].next) {
        const struct touch *touch = &replay->pool.items[t];
        if (touch->node == replay->past.node ||
            tarn_past_has(&replay->past, touch->stream, touch->node))
            continue;
        bool wrote = touch->node == content->writer;
        replay_report_hazard(replay, part, touch->node, "writes", wrote ? "writes" : "reads");
        return;
    }
}

/* Overwrites a part that lies under the bytes of `part`, which is written for the first time.
 * False: the lower part is not ordered before, or its own content was dubious. */
static bool overwrite(struct replay *replay, uint32_t part, uint32_t victim)
{
    struct content *content = &replay->contents[victim];
    bool is_done = take_turns(replay, victim, part);
    uint32_t user = is_done ? TARN_NONE : find_unordered(replay, content);
    if (user != TARN_NONE)
        replay_report_overlap(replay, part, victim, user);
    else if (storage_of(replay, victim)->pinned && content->made_in == replay->past.iteration)
        replay_report_lost_output(replay, part, victim);
    content->spoiler = replay->past.node;
    content->spoiler_part = part;
    return user == TARN_NONE && !content->dubious;
}

/* After a broken order, content that was overwritten earlier counts again: every storage of those
 * bytes is checked on its own, so that a harmless violation does not hide a harmful one. */
static void look_beneath(struct replay *replay, uint32_t part)
{
    const struct tarn_byte_map *map = &replay->map;
    uint32_t count = replay->graph->parts_count;
    if (replay->looks_left < count) return;
    replay->looks_left -= count;
    for (uint32_t a = 0; a < count; a++) {
        if (a == part || map->begin[a] >= map->end[part] || map->end[a] <= map->begin[part])
            continue;
        if (storage_of(replay, a)->persistent) continue;
        if (take_turns(replay, a, part)) continue;
        uint32_t user = find_unordered(replay, &replay->contents[a]);
        if (user != TARN_NONE) replay_report_overlap(replay, part, a, user);
    }
}

static void take_bytes(struct replay *replay, uint32_t part)
{
    struct tarn_byte_map *map = &replay->map;
    bool dubious = false;
    for (uint32_t c = tarn_byte_map_floor(map, map->begin[part]); c < map->end[part];
         c = tarn_byte_map_next(map, c)) {
        uint32_t victim = map->owner[c];
        if (victim == TARN_NONE || victim == part) continue;
        if (!overwrite(replay, part, victim)) dubious = true;
    }
    if (dubious) look_beneath(replay, part);
    replay->contents[part].dubious = dubious;
    tarn_byte_map_assign(map, part);
}

/* A write in place may be partial: it also reads the remaining bytes. */
static void write_part(struct replay *replay, uint32_t part)
{
    struct content *content = &replay->contents[part];
    bool first = is_first_write(replay, part);
    if (!first) read_part(replay, part);
    check_hazards(replay, part);
    bool is_mapped =
        !tarn_storage_is_conditional(replay->graph, tarn_part(replay->graph, part).storage);
    if (is_mapped && (first || content->spoiler != TARN_NONE))
        take_bytes(replay, part); /* arms.c */
    drop_touches(replay, content);
    content->writer = replay->past.node;
    content->spoiler = TARN_NONE;
    if (first || storage_of(replay, part)->persistent) content->made_in = replay->past.iteration;
    add_touch(replay, content);
}

/* ---- Control arcs ---- */

static void check_demand(void *context, uint32_t earlier)
{
    const struct replay *replay = context;
    uint32_t node = replay->past.iteration * replay->past.program->steps_count +
                    replay->past.program->step_of[earlier];
    if (!tarn_past_has(&replay->past, tarn_past_step(&replay->past, node)->stream, node))
        replay_report_lost_arc(replay, node);
}

/* ---- The two iterations ---- */

static void read_tensor(struct replay *replay, uint32_t t)
{
    const struct tarn_graph_tensor *tensor = &replay->graph->tensors[t];
    for (uint32_t i = 0; i < tensor->parts_count; i++) read_part(replay, tensor->part + i);
    /* a tensor without bytes still orders its reader after its producer */
    uint32_t producer = tensor->producer;
    if (tensor->size == 0 && producer != TARN_NONE && !replay->graph->ops[producer].view)
        check_demand(replay, producer);
}

static void run_node(struct replay *replay, uint32_t node)
{
    tarn_past_enter(&replay->past, node);
    const struct tarn_graph_op *op = &replay->graph->ops[replay->past.step->op];
    const struct tarn_op_extra *extra = tarn_extra(op);
    const struct tarn_graph_tensor *tensors = replay->graph->tensors;
    if (replay->past.iteration == 0)
        tarn_control_visit(&replay->control, replay->past.step->op, replay->past.step->stream,
                           check_demand, replay);
    for (uint32_t k = 0; k < op->inputs_count; k++) read_tensor(replay, op->inputs[k]);
    if (extra->workspace_storage != TARN_NONE)
        write_part(replay, replay->graph->storages[extra->workspace_storage].part);
    for (uint32_t k = 0; k < op->outputs_count; k++) {
        const struct tarn_graph_tensor *tensor = &tensors[tarn_outputs(op)[k]];
        for (uint32_t i = 0; i < tensor->parts_count; i++) write_part(replay, tensor->part + i);
    }
    if (tarn_past_leave(&replay->past) != TARN_OK) replay->no_memory = true;
}

/* The caller writes persistent storages before the first iteration. */
static void place_persistent(struct replay *replay)
{
    struct tarn_byte_map *map = &replay->map;
    for (uint32_t p = 0; p < replay->graph->parts_count; p++) {
        if (!storage_of(replay, p)->persistent) continue;
        for (uint32_t c = tarn_byte_map_floor(map, map->begin[p]); c < map->end[p];
             c = tarn_byte_map_next(map, c)) {
            if (map->owner[c] == TARN_NONE) continue;
            replay_report_persistent(replay, p, map->owner[c]);
        }
        tarn_byte_map_assign(map, p);
    }
}

static enum tarn_status replay_init(struct replay *replay,
                                    const struct tarn_verification *verification)
{
    const struct tarn_program *program = verification->program;
    const struct tarn_graph *graph = verification->plan->graph;
    struct tarn_region *region = verification->region;
    *replay = (struct replay){.region = region,
                              .plan = verification->plan,
                              .graph = graph,
                              .verdict = verification->verdict,
                              .pool.free = TARN_NONE,
                              .looks_left = LOOKS_MAX};
    replay->contents = tarn_region_take(region, graph->parts_count, sizeof *replay->contents);
    if (!replay->contents) return TARN_SYSTEM;
    for (uint32_t p = 0; p < graph->parts_count; p++) {
        replay->contents[p] =
            (struct content){TARN_NONE, TARN_NONE, TARN_NONE, TARN_NONE, TARN_NONE, false};
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
    struct replay replay;
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
