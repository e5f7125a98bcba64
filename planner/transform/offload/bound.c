/* A time that no moves can be below, for streams in their given order; `again`: nor moves together
 * with computing again, of a graph whose ops have no other implementations.
 *
 * First: look at one op p. A storage is alive for sure while p runs if it is made before p, and
 * used after p, in every order in which the streams can run. If such storages have more bytes than
 * the budget, the excess E is elsewhere during p. What is in the other memory was copied after it
 * had been made and before p begins, and comes back after p has ended and before some op that uses
 * it:
 *
 *     made ──► out ──► │ p │ ──► into ──► used
 *
 * So p begins no earlier than the copies of E bytes can end, which run one after another, and the
 * time after p is no shorter than they take back. What is made again after p takes the time of its
 * op: of R bytes those that are cheapest per byte. (Only of one stream: it may run in any.) Which
 * part of E is moved is not known, and so each of PARTS parts of E is looked at, with the fewest
 * bytes moved and the fewest made again of it.
 *
 * Second: look at all ops of a stream with an excess up to p. Storages that are elsewhere during
 * some of them are copied before p begins. The fewest bytes that cover all these excesses are found
 * op by op: what is missing is taken from the storages that stay alive longest. Likewise for the
 * copies back, from the end, where a storage counts between two neighbouring uses.
 *
 * Third: what persists and moves comes before its first use, and goes after its last write.
 *
 * Cost: planned storages times streams, and for each op that is looked at, those that are alive;
 * not all ops are looked at if these are many. */
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "planner/transform/coupled.h"
#include "streams/base/heap.h"
#include "streams/graph/recomputable_kinds.h"
#include "streams/order/reserved.h"

enum { PARTS = 16 };
#define VISITS_MAX UINT64_C(20000000)

/* Something to be copied: not before `from`, and so many reserved bytes. */
struct portion {
    int64_t from;
    uint64_t bytes;
};

/* Something that could be made again: its op, and bytes at one op p. */
struct cheap {
    double ns_per_byte;
    uint32_t op;
    uint64_t bytes, of_p;
};

struct bound {
    const struct tarn_offload_model *model;
    const struct tarn_graph *graph;
    struct tarn_region region;
    struct tarn_clocks clocks;
    struct tarn_pace pace;
    const struct tarn_deadline *deadline;
    uint64_t budget;
    bool again;
    uint64_t *cost;      /* by op */
    uint32_t *from, *to; /* by storage: it is alive for sure at these positions of a stream */
    bool *moves;         /* by storage */
    uint32_t *remade;    /* by storage: index in `cheap`, or TARN_NONE */
    struct cheap *cheap; /* by ns_per_byte */
    uint32_t cheap_count;
    uint64_t work; /* of all ops */
    struct portion *outs, *intos;
    uint64_t *out_bytes, *in_bytes; /* by position: copied before it, and after it */
    int64_t first_ns, last_ns;      /* earliest start of a copy out; least time after a copy back */
    double out_ns, into_ns;         /* of a reserved byte at least */
    uint64_t least_ns;
};

/* What has been found until then is a bound, too. Asked before each piece of work. */
static bool is_over(const struct bound *bound) { return tarn_deadline_is_over(bound->deadline); }

/* ---- Which storages are alive for sure ---- */

static bool reaches(const struct bound *bound, uint32_t s, uint32_t i, uint32_t op)
{
    uint32_t v = bound->graph->streams[s].ops[i];
    return v == op || tarn_clocks_before(&bound->clocks, bound->graph, v, op);
}

/* The positions of the stream up to which its ops come before the op, or are it. */
static uint32_t count_before(const struct bound *bound, uint32_t s, uint32_t op)
{
    uint32_t low = 0, high = bound->graph->streams[s].ops_count;
    if (bound->graph->ops[op].stream == s) return bound->graph->ops[op].position + 1;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (reaches(bound, s, middle, op))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void find_range(struct bound *bound, uint32_t s, uint32_t a)
{
    const struct tarn_graph *graph = bound->graph;
    const struct tarn_storage *storage = &graph->storages[a];
    const uint32_t *users = tarn_storage_users(graph, storage);
    uint32_t producer = storage->producer;
    uint32_t from = graph->ops[producer].stream == s
                        ? graph->ops[producer].position
                        : tarn_clocks_reach(&bound->clocks, graph, producer, s);
    uint32_t to = storage->pinned ? graph->streams[s].ops_count : 0;
    for (uint32_t k = storage->users_count; k-- > 0 && to < graph->streams[s].ops_count;) {
        uint32_t count = count_before(bound, s, users[k]);
        if (count > to) to = count;
    }
    bound->from[a] = from;
    bound->to[a] = to;
}

static bool is_used_by(const struct bound *bound, uint32_t a, uint32_t v)
{
    const struct tarn_storage *storage = &bound->graph->storages[a];
    const uint32_t *users = tarn_storage_users(bound->graph, storage);
    for (uint32_t k = 0; k < storage->users_count; k++)
        if (users[k] == v) return true;
    return false;
}

/* From the first op after v that uses it, to the end. */
static int64_t time_after(const struct bound *bound, uint32_t a, uint32_t v)
{
    const struct tarn_storage *storage = &bound->graph->storages[a];
    const uint32_t *users = tarn_storage_users(bound->graph, storage);
    uint64_t longest = 0;
    for (uint32_t k = 0; k < storage->users_count; k++)
        if (bound->pace.tail_ns[users[k]] > longest &&
            tarn_clocks_before(&bound->clocks, bound->graph, v, users[k]))
            longest = bound->pace.tail_ns[users[k]];
    return (int64_t)longest;
}

/* ---- Copies, one after another ---- */

static int compare_portions(const void *left, const void *right)
{
    const struct portion *a = left, *b = right;
    return a->from < b->from ? -1 : a->from > b->from;
}

/* When so many bytes of the portions, which are sorted, are copied at the earliest; INT64_MAX:
 * there are not so many. */
static int64_t copied_at(const struct portion *portions, uint32_t count, uint64_t bytes,
                         double ns_per_byte)
{
    double at = 0;
    for (uint32_t i = 0; i < count && bytes > 0; i++) {
        uint64_t part = portions[i].bytes < bytes ? portions[i].bytes : bytes;
        if (at < (double)portions[i].from) at = (double)portions[i].from;
        at += (double)part * ns_per_byte;
        bytes -= part;
    }
    return bytes > 0 ? INT64_MAX : (int64_t)at;
}

static int64_t copies_end(int64_t from, uint64_t bytes, double ns_per_byte)
{
    return bytes > 0 ? from + (int64_t)((double)bytes * ns_per_byte) : 0;
}

/* ---- One op ---- */

static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

static void raise_least(struct bound *bound, int64_t ns)
{
    if (ns == INT64_MAX)
        bound->least_ns = UINT64_MAX;
    else if ((uint64_t)ns > bound->least_ns)
        bound->least_ns = (uint64_t)ns;
}

/* The least time in which so many bytes of the op's are made again; INT64_MAX: there are not so
 * many. */
static int64_t made_again_in(const struct bound *bound, uint64_t bytes)
{
    double ns = 0;
    for (uint32_t i = 0; i < bound->cheap_count && bytes > 0; i++) {
        uint64_t part = bound->cheap[i].of_p < bytes ? bound->cheap[i].of_p : bytes;
        ns += (double)part * bound->cheap[i].ns_per_byte;
        bytes -= part;
    }
    return bytes > 0 ? INT64_MAX : (int64_t)ns;
}

/* Of one part of the excess: `moved` bytes at least are moved, `remade` at least made again. */
static int64_t time_of_part(const struct bound *bound, uint32_t v, uint32_t count, uint64_t moved,
                            uint64_t remade, int64_t after)
{
    int64_t begin = copied_at(bound->outs, count, moved, bound->out_ns);
    int64_t rest = copied_at(bound->intos, count, moved, bound->into_ns);
    int64_t more = made_again_in(bound, remade);
    if (begin == INT64_MAX || more == INT64_MAX) return INT64_MAX;
    begin = larger(begin, (int64_t)bound->pace.timeline.begin_ns[v]);
    rest = larger(rest, (int64_t)(bound->pace.tail_ns[v] - bound->cost[v]));
    if (!bound->again) {
        uint32_t i = bound->graph->ops[v].position;
        begin = larger(begin, copies_end(bound->first_ns, bound->out_bytes[i], bound->out_ns));
        rest = larger(rest, copies_end(bound->last_ns, bound->in_bytes[i], bound->into_ns));
    }
    if (bound->again) rest = larger(rest, after + more);
    int64_t time = begin + (int64_t)bound->cost[v] + rest;
    return bound->again ? larger(time, (int64_t)bound->work + more) : time;
}

static int64_t time_of(const struct bound *bound, uint32_t v, uint32_t count, uint64_t excess,
                       int64_t after)
{
    int64_t least = INT64_MAX;
    if (!bound->again) return time_of_part(bound, v, count, excess, 0, 0);
    for (uint64_t part = 0; part < PARTS; part++) {
        uint64_t moved = excess / PARTS * part;
        uint64_t remade = part + 1 == PARTS ? 0 : excess - excess / PARTS * (part + 1);
        int64_t time = time_of_part(bound, v, count, moved, remade, after);
        if (time < least) least = time;
    }
    return least;
}

/* v: at this position of its stream. after: what the ops behind it in its stream take. */
static void look_at(struct bound *bound, uint32_t v, uint64_t excess, int64_t after)
{
    const struct tarn_graph *graph = bound->graph;
    uint32_t count = 0, position = graph->ops[v].position;
    for (uint32_t i = 0; i < bound->cheap_count; i++) bound->cheap[i].of_p = 0;
    for (uint32_t a = 0; a < graph->planned_count; a++) {
        uint64_t bytes = bound->model->reserved[a];
        bool can_move = bound->moves[a], can_again = bound->remade[a] != TARN_NONE;
        if (position < bound->from[a] || position >= bound->to[a] || !(can_move || can_again) ||
            is_used_by(bound, a, v))
            continue;
        if (can_again) bound->cheap[bound->remade[a]].of_p += bytes;
        if (!can_move) continue;
        bound->outs[count] = (struct portion){
            (int64_t)bound->pace.timeline.end_ns[graph->storages[a].producer], bytes};
        bound->intos[count++] = (struct portion){time_after(bound, a, v), bytes};
    }
    qsort(bound->outs, count, sizeof *bound->outs, compare_portions);
    qsort(bound->intos, count, sizeof *bound->intos, compare_portions);
    raise_least(bound, time_of(bound, v, count, excess, after));
}

/* ---- The fewest bytes that are elsewhere ---- */

/* Something that may be elsewhere at positions from `from` up to below `to`. */
struct span {
    uint32_t from, to;
    uint64_t bytes;
};

struct cover {
    struct span *spans; /* by from */
    uint32_t count;
    uint64_t *key; /* room, by span; so is the next one */
    uint32_t *items;
    uint64_t *ends;   /* room, by position: bytes that are taken up to there */
    uint64_t *totals; /* by position: taken up to and at it; UINT64_MAX: not enough */
};

static int compare_spans(const void *left, const void *right)
{
    const struct span *a = left, *b = right;
    return a->from < b->from ? -1 : a->from > b->from;
}

/* excess: by position, <= 0: none. */
static void find_cover(struct cover *cover, const int64_t *excess, uint32_t length)
{
    struct tarn_heap heap = {.key = cover->key, .items = cover->items};
    uint64_t taken = 0, total = 0;
    uint32_t next = 0;
    qsort(cover->spans, cover->count, sizeof *cover->spans, compare_spans);
    for (uint32_t k = 0; k < cover->count; k++) cover->key[k] = UINT32_MAX - cover->spans[k].to;
    memset(cover->ends, 0, (length + 1) * sizeof *cover->ends);
    for (uint32_t i = 0; i < length; i++) {
        taken -= cover->ends[i];
        for (; next < cover->count && cover->spans[next].from <= i; next++)
            tarn_heap_push(&heap, next);
        while (total != UINT64_MAX && excess[i] > 0 && taken < (uint64_t)excess[i]) {
            struct span *span = heap.count > 0 ? &cover->spans[tarn_heap_first(&heap)] : NULL;
            uint64_t missing = (uint64_t)excess[i] - taken;
            if (!span || span->to <= i) {
                total = UINT64_MAX;
                break;
            }
            uint64_t part = span->bytes < missing ? span->bytes : missing;
            span->bytes -= part;
            taken += part;
            total += part;
            cover->ends[span->to] += part;
            if (span->bytes == 0) tarn_heap_pop(&heap);
        }
        cover->totals[i] = total;
    }
}

/* By the uses in the stream between `from` and `to`. */
static void add_spans(struct cover *cover, const struct tarn_graph *graph, uint32_t s, uint32_t a,
                      struct span whole, uint64_t bytes)
{
    const struct tarn_storage *storage = &graph->storages[a];
    uint32_t from = whole.from;
    for (uint32_t k = 0; k < storage->users_count; k++) {
        const struct tarn_graph_op *op = &graph->ops[tarn_storage_users(graph, storage)[k]];
        if (op->stream != s || op->position < from || op->position >= whole.to) continue;
        if (op->position > from)
            cover->spans[cover->count++] = (struct span){from, op->position, bytes};
        from = op->position + 1;
    }
    if (from < whole.to) cover->spans[cover->count++] = (struct span){from, whole.to, bytes};
}

static void turn_around(struct cover *cover, int64_t *excess, uint32_t length)
{
    for (uint32_t k = 0; k < cover->count; k++)
        cover->spans[k] = (struct span){length - cover->spans[k].to, length - cover->spans[k].from,
                                        cover->spans[k].bytes};
    for (uint32_t i = 0; i < length / 2; i++) {
        int64_t swap = excess[i];
        excess[i] = excess[length - 1 - i];
        excess[length - 1 - i] = swap;
    }
}

static enum tarn_status cover_init(struct cover *cover, struct bound *bound, uint32_t s)
{
    const struct tarn_graph *graph = bound->graph;
    size_t room = graph->planned_count, length = graph->streams[s].ops_count;
    struct tarn_region *region = &bound->region;
    for (uint32_t a = 0; a < graph->planned_count; a++) room += graph->storages[a].users_count;
    *cover = (struct cover){.count = 0};
    cover->spans = tarn_region_take(region, room, sizeof *cover->spans);
    cover->key = tarn_region_take(region, room, sizeof *cover->key);
    cover->items = tarn_region_take(region, room, sizeof *cover->items);
    cover->ends = tarn_region_take(region, length + 1, sizeof *cover->ends);
    cover->totals = tarn_region_take(region, length + 1, sizeof *cover->totals);
    bound->out_bytes = tarn_region_take(region, length + 1, sizeof *bound->out_bytes);
    bound->in_bytes = tarn_region_take(region, length + 1, sizeof *bound->in_bytes);
    return region->is_exhausted ? TARN_SYSTEM : TARN_OK;
}

/* If too little can be elsewhere, nothing is said here: a single op says it. */
static void find_copies(struct bound *bound, struct cover *cover, uint32_t s, int64_t *excess)
{
    const struct tarn_graph *graph = bound->graph;
    uint32_t length = graph->streams[s].ops_count;
    cover->count = 0;
    for (uint32_t a = 0; a < graph->planned_count; a++)
        if (bound->moves[a] && bound->from[a] < bound->to[a])
            cover->spans[cover->count++] =
                (struct span){bound->from[a], bound->to[a], bound->model->reserved[a]};
    find_cover(cover, excess, length);
    for (uint32_t i = 0; i < length; i++)
        bound->out_bytes[i] = cover->totals[i] == UINT64_MAX ? 0 : cover->totals[i];
    cover->count = 0;
    for (uint32_t a = 0; a < graph->planned_count; a++)
        if (bound->moves[a] && bound->from[a] < bound->to[a])
            add_spans(cover, graph, s, a, (struct span){bound->from[a], bound->to[a], 0},
                      bound->model->reserved[a]);
    turn_around(cover, excess, length);
    find_cover(cover, excess, length);
    turn_around(cover, excess, length);
    for (uint32_t i = 0; i < length; i++) {
        uint64_t total = cover->totals[length - 1 - i];
        bound->in_bytes[i] = total == UINT64_MAX ? 0 : total;
    }
}

/* Some of what covers all excesses is moved, the rest is made again. */
static void find_either(struct bound *bound, struct cover *cover, uint32_t s, const int64_t *excess)
{
    const struct tarn_graph *graph = bound->graph;
    uint32_t length = graph->streams[s].ops_count, first = length, last = 0;
    int64_t least = INT64_MAX;
    cover->count = 0;
    for (uint32_t a = 0; a < graph->planned_count; a++)
        if ((bound->moves[a] || bound->remade[a] != TARN_NONE) && bound->from[a] < bound->to[a])
            cover->spans[cover->count++] =
                (struct span){bound->from[a], bound->to[a], bound->model->reserved[a]};
    find_cover(cover, excess, length);
    for (uint32_t i = 0; i < length; i++) {
        if (excess[i] <= 0) continue;
        if (first == length) first = i;
        last = i;
    }
    if (first == length || cover->totals[length - 1] == UINT64_MAX) return;
    for (uint32_t k = 0; k < bound->cheap_count; k++) bound->cheap[k].of_p = bound->cheap[k].bytes;
    uint32_t p = graph->streams[s].ops[first], q = graph->streams[s].ops[last];
    for (uint64_t part = 0, total = cover->totals[length - 1]; part < PARTS; part++) {
        uint64_t moved = total / PARTS * part;
        if (moved > 0 && bound->first_ns == INT64_MAX) break; /* nothing may move */
        int64_t more =
            made_again_in(bound, part + 1 == PARTS ? 0 : total - total / PARTS * (part + 1));
        if (more == INT64_MAX) continue;
        int64_t time = (int64_t)bound->work + more;
        if (moved > 0) {
            time = larger(time, copies_end(bound->first_ns, moved, bound->out_ns) +
                                    (int64_t)bound->pace.tail_ns[q]);
            time = larger(time, (int64_t)bound->pace.timeline.end_ns[p] +
                                    copies_end(bound->last_ns, moved, bound->into_ns));
        }
        if (time < least) least = time;
    }
    if (least != INT64_MAX) raise_least(bound, least);
}

/* ---- One stream ---- */

/* What persists elsewhere is in the arena while ops of the stream use it. */
static void add_persistent(const struct bound *bound, uint32_t s, int64_t *alive)
{
    const struct tarn_graph *graph = bound->graph;
    for (uint32_t a = graph->planned_count; a < graph->storages_count; a++) {
        const struct tarn_storage *storage = &graph->storages[a];
        for (uint32_t k = 0; k < storage->users_count && bound->moves[a]; k++) {
            const struct tarn_graph_op *op = &graph->ops[tarn_storage_users(graph, storage)[k]];
            if (op->stream == s) alive[op->position] += (int64_t)storage->size;
        }
    }
}

/* A workspace may end before outputs begin. */
static bool counts(const struct bound *bound, uint32_t a)
{
    const struct tarn_storage *storage = &bound->graph->storages[a];
    const struct tarn_graph_op *op = &bound->graph->ops[storage->producer];
    if (storage->space != 0 || storage->size == 0) return false;
    return storage->tensor != TARN_NONE || !op->workspace_first;
}

static enum tarn_status look_at_stream(struct bound *bound, uint32_t s)
{
    const struct tarn_graph_stream *stream = &bound->graph->streams[s];
    const struct tarn_graph *graph = bound->graph;
    struct tarn_region_mark mark = tarn_region_mark(&bound->region);
    int64_t *alive = tarn_region_take(&bound->region, stream->ops_count + 1, sizeof *alive);
    struct cover cover;
    uint64_t above = 0, visited = 0;
    if (!alive) return TARN_SYSTEM;
    for (uint32_t a = 0; a < graph->planned_count; a++) {
        bound->from[a] = bound->to[a] = 0;
        if (!counts(bound, a)) continue;
        if (is_over(bound)) return TARN_OK; /* nothing is said of this stream */
        find_range(bound, s, a);
        if (bound->from[a] >= bound->to[a]) continue;
        alive[bound->from[a]] += (int64_t)bound->model->reserved[a];
        alive[bound->to[a]] -= (int64_t)bound->model->reserved[a];
    }
    for (uint32_t i = 1; i < stream->ops_count; i++) alive[i] += alive[i - 1];
    add_persistent(bound, s, alive);
    for (uint32_t i = 0; i < stream->ops_count; i++) {
        alive[i] = graph->ops[stream->ops[i]].view ? 0 : alive[i] - (int64_t)bound->budget;
        above += alive[i] > 0;
    }
    if (cover_init(&cover, bound, s) != TARN_OK) return TARN_SYSTEM;
    if (!is_over(bound)) find_copies(bound, &cover, s, alive);
    if (bound->again && !is_over(bound)) find_either(bound, &cover, s, alive);
    uint64_t stride = 1 + above * graph->planned_count / (VISITS_MAX / graph->streams_count + 1);
    int64_t after = 0;
    for (uint32_t i = stream->ops_count; i-- > 0;) {
        uint32_t v = stream->ops[i];
        if (graph->ops[v].view) continue;
        if (alive[i] > 0 && visited % stride == 0 && is_over(bound)) break;
        if (alive[i] > 0 && visited++ % stride == 0) look_at(bound, v, (uint64_t)alive[i], after);
        after += (int64_t)bound->cost[v];
    }
    tarn_region_release(&bound->region, mark);
    return TARN_OK;
}

/* ---- What persists ---- */

static void look_at_persistent(struct bound *bound)
{
    const struct tarn_graph *graph = bound->graph;
    uint32_t outs = 0, intos = 0;
    uint64_t bytes_out = 0, bytes_in = 0;
    for (uint32_t a = graph->planned_count; a < graph->storages_count; a++) {
        const struct tarn_storage *storage = &graph->storages[a];
        const uint32_t *users = tarn_storage_users(graph, storage);
        uint64_t first = 0, written = 0;
        if (!bound->moves[a]) continue;
        for (uint32_t k = 0; k < storage->users_count; k++) {
            if (bound->pace.tail_ns[users[k]] > first) first = bound->pace.tail_ns[users[k]];
            if (tarn_offload_writes(graph, users[k], a) &&
                bound->pace.timeline.end_ns[users[k]] > written)
                written = bound->pace.timeline.end_ns[users[k]];
        }
        bound->intos[intos++] = (struct portion){(int64_t)first, storage->size};
        bytes_in += storage->size;
        if (written == 0) continue;
        bound->outs[outs++] = (struct portion){(int64_t)written, storage->size};
        bytes_out += storage->size;
    }
    qsort(bound->outs, outs, sizeof *bound->outs, compare_portions);
    qsort(bound->intos, intos, sizeof *bound->intos, compare_portions);
    raise_least(bound, copied_at(bound->outs, outs, bytes_out, bound->out_ns));
    raise_least(bound, copied_at(bound->intos, intos, bytes_in, bound->into_ns));
}

/* ---- What is made again ---- */

static int compare_cheap(const void *left, const void *right)
{
    const struct cheap *a = left, *b = right;
    if (a->ns_per_byte != b->ns_per_byte) return a->ns_per_byte < b->ns_per_byte ? -1 : 1;
    return a->op < b->op ? -1 : a->op > b->op;
}

/* The op that makes a storage again writes it, alone or with others. */
static void add_cheap(struct bound *bound, uint32_t *index_of)
{
    const struct tarn_graph *graph = bound->graph;
    for (uint32_t a = 0; a < graph->planned_count; a++) {
        uint32_t v = graph->storages[a].producer;
        if (graph->storages[a].tensor == TARN_NONE || graph->storages[a].pinned ||
            !tarn_op_repeats(graph, v, TARN_NONE))
            continue;
        if (index_of[v] == TARN_NONE) {
            index_of[v] = bound->cheap_count;
            bound->cheap[bound->cheap_count++].op = v;
        }
        bound->cheap[index_of[v]].bytes += bound->model->reserved[a];
    }
    for (uint32_t i = 0; i < bound->cheap_count; i++)
        bound->cheap[i].ns_per_byte =
            (double)bound->cost[bound->cheap[i].op] / (double)(bound->cheap[i].bytes + 1);
    qsort(bound->cheap, bound->cheap_count, sizeof *bound->cheap, compare_cheap);
    for (uint32_t i = 0; i < bound->cheap_count; i++) index_of[bound->cheap[i].op] = i;
    for (uint32_t a = 0; a < graph->planned_count; a++)
        if (graph->storages[a].tensor != TARN_NONE && !graph->storages[a].pinned)
            bound->remade[a] = index_of[graph->storages[a].producer];
}

/* ---- All of it ---- */

/* The clock, and the work of all ops. */
static enum tarn_status find_pace(struct bound *bound)
{
    const struct tarn_graph *graph = bound->graph;
    for (uint32_t v = 0; v < graph->ops_count; v++) {
        bound->cost[v] = graph->ops[v].view ? 0 : graph->ops[v].cost;
        bound->work += bound->cost[v];
    }
    enum tarn_status status =
        tarn_pace_init(&bound->pace, graph, (uint32_t)bound->model->terms.wait_ns);
    if (status == TARN_OK) bound->least_ns = bound->pace.timeline.makespan_ns;
    return status;
}

static enum tarn_status take_room(struct bound *bound)
{
    const struct tarn_graph *graph = bound->graph;
    struct tarn_region *region = &bound->region;
    size_t storages = graph->storages_count;
    bound->cost = tarn_region_take(region, graph->ops_count, sizeof *bound->cost);
    bound->from = tarn_region_take(region, storages, sizeof *bound->from);
    bound->to = tarn_region_take(region, storages, sizeof *bound->to);
    bound->moves = tarn_region_take(region, storages, sizeof *bound->moves);
    bound->remade = tarn_region_take(region, storages, sizeof *bound->remade);
    bound->cheap = tarn_region_take(region, graph->ops_count, sizeof *bound->cheap);
    bound->outs = tarn_region_take(region, storages, sizeof *bound->outs);
    bound->intos = tarn_region_take(region, storages, sizeof *bound->intos);
    return region->is_exhausted ? TARN_SYSTEM : TARN_OK;
}

/* Reserved bytes may be more than those that are copied. */
static void find_rates(struct bound *bound)
{
    const struct tarn_offload_terms *terms = &bound->model->terms;
    const struct tarn_graph *graph = bound->graph;
    double part = 1;
    for (uint32_t a = 0; a < graph->storages_count; a++) {
        bound->remade[a] = TARN_NONE;
        bound->moves[a] = tarn_offload_may_move(bound->model, a);
        if (!bound->moves[a] || a >= graph->planned_count || graph->storages[a].size == 0) continue;
        double here = (double)graph->storages[a].size / (double)bound->model->reserved[a];
        if (here < part) part = here;
    }
    bound->out_ns = part * 1e9 / (double)terms->out_bytes_per_second;
    bound->into_ns = part * 1e9 / (double)terms->into_bytes_per_second;
}

static void find_ends(struct bound *bound)
{
    const struct tarn_graph *graph = bound->graph;
    bound->first_ns = bound->last_ns = INT64_MAX;
    for (uint32_t a = 0; a < graph->planned_count; a++) {
        const struct tarn_storage *storage = &graph->storages[a];
        const uint32_t *users = tarn_storage_users(graph, storage);
        if (!bound->moves[a]) continue;
        int64_t made = (int64_t)bound->pace.timeline.end_ns[storage->producer];
        if (made < bound->first_ns) bound->first_ns = made;
        for (uint32_t k = 0; k < storage->users_count; k++)
            if ((int64_t)bound->pace.tail_ns[users[k]] < bound->last_ns)
                bound->last_ns = (int64_t)bound->pace.tail_ns[users[k]];
    }
}

static enum tarn_status run(struct bound *bound)
{
    const struct tarn_graph *graph = bound->graph;
    uint32_t *index_of = tarn_region_take(&bound->region, graph->ops_count, sizeof *index_of);
    enum tarn_status status = take_room(bound);
    if (status == TARN_OK && index_of) status = find_pace(bound);
    if (status == TARN_OK) status = tarn_clocks_init(&bound->clocks, &bound->region, graph);
    if (status != TARN_OK || !index_of) return TARN_SYSTEM;
    find_rates(bound);
    find_ends(bound);
    for (uint32_t v = 0; v < graph->ops_count; v++) index_of[v] = TARN_NONE;
    if (bound->again) add_cheap(bound, index_of);
    if (graph->conditionals_count > 0) return TARN_OK; /* arms are not alive for sure */
    look_at_persistent(bound);
    /* What is made again may run in another stream than it did: nothing is known of any stream. */
    bool is_one = !bound->again || graph->streams_count == 1;
    for (uint32_t s = 0; s < graph->streams_count && is_one && status == TARN_OK; s++)
        status = look_at_stream(bound, s);
    return status;
}

enum tarn_status tarn_offload_no_less(const struct tarn_offload_model *model, uint64_t budget,
                                      bool again, const struct tarn_deadline *deadline,
                                      uint64_t *ns)
{
    struct bound bound = {.model = model,
                          .graph = model->graph,
                          .deadline = deadline,
                          .budget = budget < INT64_MAX ? budget : INT64_MAX,
                          .again = again};
    *ns = 0;
    /* an implementation may do without what another op makes */
    if (again && tarn_graph_has_implementations(model->graph)) return TARN_OK;
    enum tarn_status status = run(&bound);
    if (status == TARN_OK) *ns = bound.least_ns;
    tarn_pace_finish(&bound.pace);
    tarn_region_finish(&bound.region);
    return status;
}
