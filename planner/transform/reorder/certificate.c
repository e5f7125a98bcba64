/* Checks the certificate of a bound. What may come before a member is found by the rules of
 * before.c, written down once more: op by op, and with the ops that come after an op found by
 * walking the arcs. The bytes of the certificate's own set are counted from the definition. That no
 * allowed set leaves fewer is shown by a flow of the same value, sent along shortest paths one
 * after another. Cost: a walk for each tail of an arc between streams, and a walk through the
 * network for each path. */
#include "beside.h"

#include <string.h>

#include "before.h"

struct check {
    struct tarn_region region;
    const struct tarn_order_certificate *certificate;
    const struct tarn_graph *graph;
    const uint64_t *reserved;
    struct tarn_constraints constraints;
    uint32_t ops; /* of the graph; the end of stream s is ops + s */
    uint32_t nodes;
    bool *may_run; /* by op: it comes before some member in some choice, or by arcs */
    bool *must_run, *must_not_run;
    /* Working state. */
    bool *reached;
    uint32_t *queue;
    uint32_t *tails; /* op -> tails of its stream that come before it by arcs */
    uint32_t *named; /* stream -> tails */
};

static uint32_t stream_of(const struct check *check, uint32_t v)
{
    return v < check->ops ? check->graph->ops[v].stream : v - check->ops;
}

/* Marks all that comes after the `tail` ops of the queue by arcs, or before them. */
static void walk(struct check *check, const struct tarn_arcs *arcs, uint32_t tail)
{
    uint32_t head = 0;
    memset(check->reached, 0, check->nodes * sizeof *check->reached);
    while (head < tail) {
        uint32_t u = check->queue[head++];
        for (uint32_t i = arcs->begin[u]; i < arcs->begin[u + 1]; i++) {
            uint32_t w = arcs->ops[i];
            if (check->reached[w]) continue;
            check->reached[w] = true;
            check->queue[tail++] = w;
        }
    }
}

static void walk_from(struct check *check, const struct tarn_arcs *arcs, uint32_t v)
{
    check->queue[0] = v;
    walk(check, arcs, 1);
}

static void mark_after(struct check *check, uint32_t v, bool *after)
{
    memset(after, 0, check->nodes * sizeof *after);
    if (v >= check->ops) return;
    walk_from(check, &check->constraints.successors, v);
    memcpy(after, check->reached, check->ops * sizeof *after);
    after[check->ops + check->graph->ops[v].stream] = true;
}

/* Marks what comes before v by arcs: before an end, its stream. */
static void mark_ahead(struct check *check, uint32_t v, bool *ahead)
{
    uint32_t count = 0;
    for (uint32_t u = 0; u < check->ops; u++)
        if (v < check->ops ? u == v : stream_of(check, u) == stream_of(check, v))
            check->queue[count++] = u;
    for (uint32_t k = 0; k < count && v >= check->ops; k++) ahead[check->queue[k]] = true;
    walk(check, &check->constraints.predecessors, count);
    for (uint32_t u = 0; u < check->ops; u++) ahead[u] |= check->reached[u];
}

/* Adds the tail x of an arc: it is found, and so are the ops of its stream that some tail of that
 * stream does not come before. */
static void name_tail(struct check *check, uint32_t x, const bool *after, bool *found,
                      uint32_t *count, uint32_t *list)
{
    uint32_t s = stream_of(check, x);
    walk_from(check, &check->constraints.successors, x);
    check->named[s]++;
    for (uint32_t u = 0; u < check->ops; u++) {
        if (stream_of(check, u) != s) continue;
        check->tails[u] += check->reached[u];
        if (check->tails[u] == check->named[s] || after[u] || found[u]) continue;
        found[u] = true;
        list[(*count)++] = u;
    }
}

/* found: by node, what may come before v. */
static bool find_before(struct check *check, uint32_t v, bool *found)
{
    const struct tarn_arcs *arcs = &check->constraints.predecessors;
    struct tarn_region_mark mark = tarn_region_mark(&check->region);
    bool *after = tarn_region_take(&check->region, check->nodes, sizeof *after),
         *is_tail = tarn_region_take(&check->region, check->nodes, sizeof *is_tail);
    uint32_t *list = tarn_region_take(&check->region, (size_t)check->nodes + 1, sizeof *list);
    if (check->region.is_exhausted) return false;
    uint32_t count = 0;
    mark_after(check, v, after);
    memset(found, 0, check->nodes * sizeof *found);
    memset(check->tails, 0, check->ops * sizeof *check->tails);
    memset(check->named, 0, check->graph->streams_count * sizeof *check->named);
    list[count++] = v;
    for (uint32_t u = 0; u < check->ops; u++) {
        if (u == v || stream_of(check, u) != stream_of(check, v) || after[u]) continue;
        found[u] = true;
        list[count++] = u;
    }
    found[v] = true; /* not to be listed again */
    for (uint32_t k = 0; k < count; k++) {
        uint32_t y = list[k];
        for (uint32_t i = y < check->ops ? arcs->begin[y] : 0;
             y < check->ops && i < arcs->begin[y + 1]; i++) {
            uint32_t x = arcs->ops[i];
            if (stream_of(check, x) == stream_of(check, y) || after[x] || is_tail[x]) continue;
            is_tail[x] = true;
            name_tail(check, x, after, found, &count, list);
        }
    }
    found[v] = false;
    tarn_region_release(&check->region, mark);
    return true;
}

/* Are the members apart? Fills in what may run, and what must and must not have run. */
static bool take_members(struct check *check)
{
    const struct tarn_order_certificate *certificate = check->certificate;
    struct tarn_region_mark mark = tarn_region_mark(&check->region);
    bool *found = tarn_region_take(&check->region, check->nodes, sizeof *found), holds = found;
    bool *after = tarn_region_take(&check->region, check->nodes, sizeof *after);
    for (uint32_t k = 0; k < certificate->apart_count && holds && after; k++) {
        uint32_t v = certificate->apart[k];
        holds = v < check->nodes && find_before(check, v, found);
        if (!holds) break;
        for (uint32_t i = 0; i < certificate->apart_count; i++)
            holds &=
                i == k || (certificate->apart[i] != v && certificate->apart[i] < check->nodes &&
                           !found[certificate->apart[i]]);
        for (uint32_t u = 0; u < check->nodes; u++) check->may_run[u] |= found[u];
        mark_ahead(check, v, check->must_run);
        mark_after(check, v, after);
        for (uint32_t u = 0; u < check->ops; u++) check->must_not_run[u] |= after[u];
    }
    for (uint32_t u = 0; u < check->ops; u++) check->must_not_run[u] |= !check->may_run[u];
    for (uint32_t k = 0; k < certificate->apart_count && holds; k++) {
        uint32_t v = certificate->apart[k];
        if (v < check->ops) check->must_not_run[v] = true; /* none comes before another */
    }
    tarn_region_release(&check->region, mark);
    return holds && after;
}

static bool is_member(const struct check *check, uint32_t v)
{
    for (uint32_t k = 0; k < check->certificate->apart_count; k++)
        if (check->certificate->apart[k] == v) return true;
    return false;
}

/* ---- The cut ---- */

/* Is the certificate's set allowed? */
static bool is_allowed(const struct check *check)
{
    const struct tarn_arcs *arcs = &check->constraints.predecessors;
    const bool *has_run = check->certificate->has_run;
    for (uint32_t v = 0; v < check->ops; v++) {
        if (check->must_run[v] && !has_run[v]) return false;
        if (is_member(check, v) ? !has_run[v] : has_run[v] && check->must_not_run[v]) return false;
        for (uint32_t i = arcs->begin[v]; has_run[v] && i < arcs->begin[v + 1]; i++)
            if (!has_run[arcs->ops[i]]) return false;
    }
    return true;
}

/* Bytes that an op of the set makes and that an op still uses which is a member or not of the set.
 */
static uint64_t count_bytes(const struct check *check)
{
    uint64_t bytes = 0;
    for (uint32_t a = 0; a < check->graph->planned_count; a++) {
        const struct tarn_storage *storage = &check->graph->storages[a];
        const uint32_t *users = tarn_storage_users(check->graph, storage);
        bool counts = storage->pinned;
        for (uint32_t k = 0; k < storage->users_count; k++)
            counts |= !check->certificate->has_run[users[k]] || is_member(check, users[k]);
        if (counts && check->certificate->has_run[storage->producer]) bytes += check->reserved[a];
    }
    return bytes;
}

/* ---- The flow ---- */

struct pipe {
    uint32_t to, next; /* next: of the node; TARN_NONE: the last one */
    uint64_t room;
};

/* Nodes: ops, the source, the sink, two for each storage (they are made, they are kept). */
struct network {
    struct pipe *pipes;
    size_t pipes_room;
    uint32_t pipes_count, nodes;
    uint32_t *first, *by; /* node -> its first pipe; the pipe by which it was reached */
    uint32_t *queue;
};

static void connect(struct check *check, struct network *network, uint32_t from, uint32_t to,
                    uint64_t room)
{
    struct pipe *pipes = tarn_region_grow(&check->region, network->pipes, &network->pipes_room,
                                          (size_t)network->pipes_count + 2, sizeof *pipes);
    if (!pipes) return;
    network->pipes = pipes;
    pipes[network->pipes_count] = (struct pipe){to, network->first[from], room};
    network->first[from] = network->pipes_count++;
    pipes[network->pipes_count] = (struct pipe){from, network->first[to], 0};
    network->first[to] = network->pipes_count++;
}

/* A set that has run is one side of a cut. It costs a storage that its producer has run and that a
 * user has not, or is a member. */
static void build(struct check *check, struct network *network, uint32_t source, uint32_t sink)
{
    const struct tarn_arcs *arcs = &check->constraints.predecessors;
    const uint64_t whole = UINT64_MAX / 4;
    for (uint32_t v = 0; v < check->ops; v++) {
        if (check->must_run[v]) connect(check, network, source, v, whole);
        if (check->must_not_run[v]) connect(check, network, v, sink, whole);
        for (uint32_t i = arcs->begin[v]; i < arcs->begin[v + 1]; i++)
            connect(check, network, v, arcs->ops[i], whole);
    }
    for (uint32_t a = 0; a < check->graph->planned_count; a++) {
        const struct tarn_storage *storage = &check->graph->storages[a];
        const uint32_t *users = tarn_storage_users(check->graph, storage);
        uint32_t made = sink + 1 + a;
        bool by_member = is_member(check, storage->producer);
        if (check->reserved[a] == 0) continue;
        connect(check, network, by_member ? source : storage->producer, made, check->reserved[a]);
        if (storage->pinned) connect(check, network, made, sink, whole);
        for (uint32_t k = 0; k < storage->users_count; k++) {
            bool is_apart = is_member(check, users[k]);
            connect(check, network, made, is_apart ? sink : users[k], whole);
        }
    }
}

static bool find_path(struct network *network, uint32_t source, uint32_t sink)
{
    uint32_t head = 0, tail = 0;
    for (uint32_t n = 0; n < network->nodes; n++) network->by[n] = TARN_NONE;
    network->queue[tail++] = source;
    while (head < tail && network->by[sink] == TARN_NONE) {
        uint32_t n = network->queue[head++];
        for (uint32_t e = network->first[n]; e != TARN_NONE; e = network->pipes[e].next) {
            uint32_t to = network->pipes[e].to;
            if (network->pipes[e].room == 0 || to == source || network->by[to] != TARN_NONE)
                continue;
            network->by[to] = e;
            network->queue[tail++] = to;
        }
    }
    return network->by[sink] != TARN_NONE;
}

static uint64_t send_path(struct network *network, uint32_t source, uint32_t sink)
{
    uint64_t amount = UINT64_MAX;
    for (uint32_t n = sink; n != source; n = network->pipes[network->by[n] ^ 1].to)
        if (network->pipes[network->by[n]].room < amount)
            amount = network->pipes[network->by[n]].room;
    for (uint32_t n = sink; n != source; n = network->pipes[network->by[n] ^ 1].to) {
        network->pipes[network->by[n]].room -= amount;
        network->pipes[network->by[n] ^ 1].room += amount;
    }
    return amount;
}

/* The fewest bytes that an allowed set leaves. */
static bool is_least(struct check *check)
{
    uint32_t source = check->ops, sink = source + 1;
    struct network network = {.nodes = sink + 1 + check->graph->planned_count};
    network.first = tarn_region_take(&check->region, network.nodes, sizeof *network.first);
    network.by = tarn_region_take(&check->region, network.nodes, sizeof *network.by);
    network.queue = tarn_region_take(&check->region, network.nodes, sizeof *network.queue);
    if (check->region.is_exhausted) return false;
    for (uint32_t n = 0; n < network.nodes; n++) network.first[n] = TARN_NONE;
    build(check, &network, source, sink);
    uint64_t sent = 0;
    while (!check->region.is_exhausted && sent < check->certificate->bound &&
           find_path(&network, source, sink))
        sent += send_path(&network, source, sink);
    return !check->region.is_exhausted && sent == check->certificate->bound;
}

static bool holds(struct check *check)
{
    const size_t nodes = check->nodes;
    struct tarn_region *region = &check->region;
    check->may_run = tarn_region_take(region, nodes, sizeof *check->may_run);
    check->must_run = tarn_region_take(region, nodes, sizeof *check->must_run);
    check->must_not_run = tarn_region_take(region, nodes, sizeof *check->must_not_run);
    check->reached = tarn_region_take(region, nodes, sizeof *check->reached);
    check->queue = tarn_region_take(region, 2 * nodes + 1, sizeof *check->queue);
    check->tails = tarn_region_take(region, nodes, sizeof *check->tails);
    check->named = tarn_region_take(region, check->graph->streams_count, sizeof *check->named);
    if (region->is_exhausted) return false;
    if (tarn_constraints_init(&check->constraints, region, check->graph) != TARN_OK) return false;
    return take_members(check) && is_allowed(check) &&
           count_bytes(check) == check->certificate->bound && is_least(check);
}

bool tarn_order_certificate_holds(const struct tarn_order_certificate *certificate,
                                  const struct tarn_graph *graph, const uint64_t *reserved)
{
    struct check check = {.certificate = certificate, .graph = graph, .reserved = reserved};
    if (certificate->bound == 0) return true;
    if (certificate->apart_count == 0 || certificate->apart_count > TARN_APART_MAX) return false;
    check.ops = graph->ops_count;
    check.nodes = check.ops + graph->streams_count;
    bool result = holds(&check);
    tarn_region_finish(&check.region);
    return result;
}
