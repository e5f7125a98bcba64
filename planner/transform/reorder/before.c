/* Closes the arcs, and finds what may come before a node v. In a completion, a chain of stream
 * orders and of arcs between streams leads from every op before v to v. Going back along it from
 * v, each of its ops is one of these:
 *
 *     a node of v's stream that does not come after v by arcs
 *     the tail x of an arc from another stream to a node that has been found, or to v
 *     a node of x's stream that does not come after x by arcs
 *
 * and none of them comes after v by arcs, since a completion contradicts no arc. The least set
 * closed under these rules holds all ops that come before v in any completion. The rows of a stream
 * are whole words, so the last rule intersects the rows of all tails in a stream. Cost: arcs times
 * words for the matrix; arcs between streams times the words of a stream for each node. */
#include "before.h"

#include <assert.h>
#include <string.h>

static uint32_t round_up(uint32_t count) { return (count + 63) / 64 * 64; }

static uint64_t room_of(const struct tarn_graph *graph)
{
    uint64_t room = 0;
    for (uint32_t s = 0; s < graph->streams_count; s++)
        room += round_up(graph->streams[s].ops_count + 1);
    return room;
}

bool tarn_before_is_small(const struct tarn_graph *graph)
{
    return graph->ops_count <= TARN_BEFORE_NODES_MAX && room_of(graph) <= TARN_BEFORE_NODES_MAX;
}

/* ---- The matrix ---- */

static void number_nodes(struct tarn_before *before)
{
    const struct tarn_graph *graph = before->graph;
    uint32_t next = 0;
    for (uint32_t v = 0; v < before->room; v++) before->op_of[v] = TARN_NONE;
    for (uint32_t s = 0; s < graph->streams_count; s++) {
        const struct tarn_graph_stream *stream = &graph->streams[s];
        before->begin[s] = next;
        for (uint32_t i = 0; i < stream->ops_count; i++) {
            before->node_of[stream->ops[i]] = next + i;
            before->op_of[next + i] = stream->ops[i];
        }
        before->end[s] = next + stream->ops_count;
        next += round_up(stream->ops_count + 1);
        for (uint32_t v = before->begin[s]; v < next; v++) before->stream[v] = s;
        for (uint32_t v = before->begin[s]; v <= before->end[s]; v++)
            tarn_set_add(before->nodes, v);
    }
    before->begin[graph->streams_count] = next;
    assert(next == before->room);
}

static void close_arcs(struct tarn_before *before, const struct tarn_constraints *constraints)
{
    const struct tarn_graph *graph = before->graph;
    const struct tarn_arcs *arcs = &constraints->successors;
    for (uint32_t i = graph->ops_count; i-- > 0;) {
        uint32_t op = graph->order[i], v = before->node_of[op];
        uint64_t *row = before->after + (size_t)v * before->words;
        tarn_set_add(row, before->end[before->stream[v]]);
        for (uint32_t k = arcs->begin[op]; k < arcs->begin[op + 1]; k++) {
            uint32_t w = before->node_of[arcs->ops[k]];
            if (tarn_set_has(row, w)) continue;
            tarn_set_add(row, w);
            tarn_set_join(row, tarn_before_after(before, w), before->words);
        }
    }
}

static enum tarn_status take_across(struct tarn_before *before,
                                    const struct tarn_constraints *constraints)
{
    const struct tarn_arcs *arcs = &constraints->predecessors;
    uint32_t *begin = tarn_region_take(before->region, (size_t)before->room + 1, sizeof *begin);
    uint32_t *list = tarn_region_take(before->region, constraints->arcs_count, sizeof *list);
    uint32_t count = 0;
    if (!begin || !list) return TARN_SYSTEM;
    for (uint32_t v = 0; v < before->room; v++) {
        uint32_t op = before->op_of[v];
        for (uint32_t k = op == TARN_NONE ? 0 : arcs->begin[op];
             op != TARN_NONE && k < arcs->begin[op + 1]; k++) {
            uint32_t x = before->node_of[arcs->ops[k]];
            if (before->stream[x] != before->stream[v]) list[count++] = x;
        }
        begin[v + 1] = count;
        if (begin[v + 1] > begin[v]) tarn_set_add(before->waiting, v);
    }
    before->across = (struct tarn_arcs){begin, list};
    return TARN_OK;
}

enum tarn_status tarn_before_init(struct tarn_before *before, struct tarn_region *region,
                                  const struct tarn_graph *graph,
                                  const struct tarn_constraints *constraints)
{
    assert(tarn_before_is_small(graph));
    uint32_t room = (uint32_t)room_of(graph), words = room / 64, streams = graph->streams_count;
    *before = (struct tarn_before){
        .graph = graph,
        .region = region,
        .room = room,
        .words = words,
        .node_of = tarn_region_take(region, graph->ops_count, sizeof *before->node_of),
        .op_of = tarn_region_take(region, room, sizeof *before->op_of),
        .stream = tarn_region_take(region, room, sizeof *before->stream),
        .begin = tarn_region_take(region, (size_t)streams + 1, sizeof *before->begin),
        .end = tarn_region_take(region, streams, sizeof *before->end),
        .nodes = tarn_region_take(region, words, sizeof *before->nodes),
        .waiting = tarn_region_take(region, words, sizeof *before->waiting),
        .after = tarn_region_take(region, (size_t)room * words, sizeof *before->after),
        .ahead = tarn_region_take(region, room, sizeof *before->ahead),
        .may = tarn_region_take(region, room, sizeof *before->may),
        .common = tarn_region_take(region, words, sizeof *before->common),
        .todo = tarn_region_take(region, words, sizeof *before->todo),
        .done = tarn_region_take(region, words, sizeof *before->done),
    };
    if (region->is_exhausted) return TARN_SYSTEM;
    number_nodes(before);
    close_arcs(before, constraints);
    return take_across(before, constraints);
}

/* ---- Rows ---- */

const uint64_t *tarn_before_ahead(struct tarn_before *before, uint32_t v)
{
    if (before->ahead[v]) return before->ahead[v];
    uint64_t *row = tarn_region_take(before->region, before->words, sizeof *row);
    if (!row) return NULL;
    for (uint32_t u = 0; u < before->room; u++)
        if (tarn_set_has(tarn_before_after(before, u), v)) tarn_set_add(row, u);
    return before->ahead[v] = row;
}

/* Of the stream s, the nodes that some tail does not come before by arcs. */
static void join_stream(const struct tarn_before *before, uint64_t *row, uint32_t s)
{
    for (uint32_t w = before->begin[s] / 64; w < before->begin[s + 1] / 64; w++)
        row[w] |= before->nodes[w] & ~before->common[w];
}

/* Follows the arcs into y from other streams. */
static void follow(struct tarn_before *before, uint64_t *row, uint32_t y, const uint64_t *after_v)
{
    const struct tarn_arcs *across = &before->across;
    for (uint32_t k = across->begin[y]; k < across->begin[y + 1]; k++) {
        uint32_t x = across->ops[k], s = before->stream[x];
        const uint64_t *after = tarn_before_after(before, x);
        if (tarn_set_has(after_v, x)) continue;
        for (uint32_t w = before->begin[s] / 64; w < before->begin[s + 1] / 64; w++)
            before->common[w] &= after[w];
        join_stream(before, row, s);
    }
}

const uint64_t *tarn_before_may(struct tarn_before *before, uint32_t v)
{
    if (before->may[v]) return before->may[v];
    uint32_t words = before->words, own = before->stream[v];
    const uint64_t *after = tarn_before_after(before, v);
    uint64_t *row = tarn_region_take(before->region, words, sizeof *row);
    if (!row) return NULL;
    memset(before->common, 0xff, words * sizeof *before->common);
    tarn_set_clear(before->done, words);
    for (uint32_t w = before->begin[own] / 64; w < before->begin[own + 1] / 64; w++)
        row[w] = before->nodes[w];
    for (bool more = true; more;) {
        more = false;
        for (uint32_t w = 0; w < words; w++) {
            row[w] &= ~after[w];
            before->todo[w] = row[w] & before->waiting[w] & ~before->done[w];
            before->done[w] |= before->todo[w];
            more |= before->todo[w] != 0;
        }
        TARN_SET_EACH(y, w, words, before->todo[w]) follow(before, row, y, after);
    }
    tarn_set_drop(row, v);
    return before->may[v] = row;
}
