/* Finds data races: the users of a part of a storage (a storage without slices is one part), walked
 * in topological order, must be ordered if one of them writes. It is enough to compare with the
 * last write and, for a write, with the last reader of every stream since then: all earlier users
 * come before those. A planned storage begins with its producer's write. Clocks answer
 * happens-before in O(1).
 * Cost: O((V + E) S) for the clocks, linear in users for the walk.
 */

#include "clocks.h"
#include "validate.h"

struct walk {
    const struct tarn_graph *graph;
    const struct tarn_report *report;
    struct tarn_clocks clocks;
    uint32_t *begin; /* part -> its first user in the next two; parts_count + 1 */
    uint32_t *users;
    bool *writes;      /* does it write? */
    uint32_t *readers; /* stream -> last reader since the last write, or TARN_NONE */
    uint32_t *streams; /* the streams that have such a reader */
    uint32_t streams_count;
    struct tarn_region region; /* of the arrays above */
};

/* ---- Users of parts ---- */

/* The distinct ops that use a part, in topological order, and which of them write. Counted first,
 * then stored. */
struct tally {
    uint32_t *mark;    /* part -> op + 1 that used it last */
    uint32_t *written; /* part -> op + 1 that wrote it last */
    uint32_t *next;    /* part -> position of its next user */
};

static void note_touch(const struct walk *walk, const struct tally *tally, uint32_t part,
                       uint32_t v)
{
    if (tally->mark[part] == v + 1) return;
    tally->mark[part] = v + 1;
    if (walk->users) {
        walk->users[tally->next[part]] = v;
        walk->writes[tally->next[part]] = tally->written[part] == v + 1;
    }
    tally->next[part]++;
}

static void note_op(const struct walk *walk, const struct tally *tally, uint32_t v)
{
    const struct tarn_graph *graph = walk->graph;
    const struct tarn_graph_op *op = &graph->ops[v];
    for (uint32_t k = 0; k < op->outputs_count; k++) {
        const struct tarn_graph_tensor *tensor = &graph->tensors[tarn_outputs(op)[k]];
        for (uint32_t i = 0; i < tensor->parts_count; i++) tally->written[tensor->part + i] = v + 1;
    }
    for (uint32_t k = 0; k < op->inputs_count + op->outputs_count; k++) {
        const struct tarn_graph_tensor *tensor = &graph->tensors[op->inputs[k]];
        for (uint32_t i = 0; i < tensor->parts_count; i++)
            note_touch(walk, tally, tensor->part + i, v);
    }
}

static void note_all(const struct walk *walk, const struct tally *tally)
{
    const struct tarn_graph *graph = walk->graph;
    for (uint32_t p = 0; p < graph->parts_count; p++) tally->mark[p] = tally->written[p] = 0;
    for (uint32_t i = 0; i < graph->ops_count; i++)
        if (!graph->ops[graph->order[i]].view) note_op(walk, tally, graph->order[i]);
}

static bool note_users(struct walk *walk)
{
    const struct tarn_graph *graph = walk->graph;
    struct tarn_region scratch = {.chunks = NULL};
    struct tally tally = {tarn_region_take(&scratch, graph->parts_count, sizeof *tally.mark),
                          tarn_region_take(&scratch, graph->parts_count, sizeof *tally.written),
                          tarn_region_take(&scratch, graph->parts_count, sizeof *tally.next)};
    walk->begin =
        tarn_region_take(&walk->region, (size_t)graph->parts_count + 1, sizeof *walk->begin);
    bool ok = !scratch.is_exhausted && walk->begin;
    if (ok) note_all(walk, &tally);
    for (uint32_t p = 0; ok && p < graph->parts_count; p++) {
        walk->begin[p + 1] = walk->begin[p] + tally.next[p];
        tally.next[p] = walk->begin[p];
    }
    uint32_t count = ok ? walk->begin[graph->parts_count] : 0;
    walk->users = tarn_region_take(&walk->region, count, sizeof *walk->users);
    walk->writes = tarn_region_take(&walk->region, count, sizeof *walk->writes);
    ok = ok && walk->users && walk->writes;
    if (ok) note_all(walk, &tally);
    tarn_region_finish(&scratch);
    return ok;
}

/* ---- Walking ---- */

static bool is_before(const struct walk *walk, uint32_t a, uint32_t b)
{
    return tarn_clocks_before(&walk->clocks, walk->graph, a, b);
}

static enum tarn_status report_race(const struct walk *walk, const struct tarn_storage *storage,
                                    uint32_t a, bool a_writes, uint32_t b, bool b_writes)
{
    const struct tarn_graph *graph = walk->graph;
    return tarn_report_bad(
        walk->report, tarn_location_at(b, storage->tensor, "/ops/%u", b),
        "data race: %s %s and %s %s the storage of %s, and nothing orders the two; add a control "
        "arc between them",
        tarn_op_label(graph, a).text, a_writes ? "writes" : "reads", tarn_op_label(graph, b).text,
        b_writes ? "writes" : "reads", tarn_tensor_label(graph, storage->tensor).text);
}

static bool writes(const struct tarn_graph *graph, uint32_t op, uint32_t storage)
{
    for (uint32_t k = 0; k < graph->ops[op].outputs_count; k++)
        if (graph->tensors[tarn_outputs(&graph->ops[op])[k]].storage == storage) return true;
    return false;
}

/* A planned storage begins with its producer's write of all its parts. */
static enum tarn_status check_producer(const struct walk *walk, uint32_t a)
{
    const struct tarn_graph *graph = walk->graph;
    const struct tarn_storage *storage = &graph->storages[a];
    if (storage->persistent || storage->users_count < 2) return TARN_OK;
    const uint32_t *users = tarn_storage_users(graph, storage), producer = storage->producer;
    if (users[0] == producer) {
        for (uint32_t k = 1; k < storage->users_count; k++)
            if (!is_before(walk, producer, users[k]))
                return report_race(walk, storage, producer, true, users[k],
                                   writes(graph, users[k], a));
        return TARN_OK;
    }
    if (!is_before(walk, users[0], producer))
        return report_race(walk, storage, users[0], writes(graph, users[0], a), producer, true);
    return tarn_report_bad(
        walk->report, tarn_location_at(users[0], storage->tensor, "/ops/%u", users[0]),
        "%s touches the storage of %s before its producer %s has written it",
        tarn_op_label(graph, users[0]).text, tarn_tensor_label(graph, storage->tensor).text,
        tarn_op_label(graph, producer).text);
}

static void forget_readers(struct walk *walk)
{
    while (walk->streams_count > 0) walk->readers[walk->streams[--walk->streams_count]] = TARN_NONE;
}

static void remember_reader(struct walk *walk, uint32_t op)
{
    uint32_t s = walk->graph->ops[op].stream;
    if (walk->readers[s] == TARN_NONE) walk->streams[walk->streams_count++] = s;
    walk->readers[s] = op;
}

static enum tarn_status check_write(const struct walk *walk, const struct tarn_storage *storage,
                                    uint32_t op)
{
    for (uint32_t i = 0; i < walk->streams_count; i++) {
        uint32_t reader = walk->readers[walk->streams[i]];
        if (!is_before(walk, reader, op))
            return report_race(walk, storage, reader, false, op, true);
    }
    return TARN_OK;
}

static enum tarn_status check_part(struct walk *walk, uint32_t part)
{
    const struct tarn_storage *storage =
        &walk->graph->storages[tarn_part(walk->graph, part).storage];
    enum tarn_status status = TARN_OK;
    uint32_t writer = TARN_NONE;
    forget_readers(walk);
    for (uint32_t i = walk->begin[part]; status == TARN_OK && i < walk->begin[part + 1]; i++) {
        uint32_t op = walk->users[i];
        if (writer != TARN_NONE && !is_before(walk, writer, op))
            return report_race(walk, storage, writer, true, op, walk->writes[i]);
        if (walk->writes[i]) {
            status = check_write(walk, storage, op);
            forget_readers(walk);
            writer = op;
        } else {
            remember_reader(walk, op);
        }
    }
    return status;
}

static uint64_t entries_max(const struct tarn_graph *graph)
{
    uint64_t records = (uint64_t)graph->ops_count + graph->tensors_count;
    uint64_t max = graph->text_max / 64;
    if (graph->text_max == 0) return TARN_CLOCKS_MAX;
    if (max < TARN_CLOCKS_PER_RECORD * records) max = TARN_CLOCKS_PER_RECORD * records;
    return max < TARN_CLOCKS_MAX ? max : TARN_CLOCKS_MAX;
}

static enum tarn_status check_size(const struct tarn_graph *graph, const struct tarn_report *report)
{
    uint64_t rows = graph->streams_count;
    for (uint32_t v = 0; v < graph->ops_count; v++)
        rows += graph->successors.begin[v] != graph->successors.begin[v + 1];
    if (rows < graph->planned_count) rows = graph->planned_count;
    uint64_t max = entries_max(graph);
    if (rows * graph->streams_count <= max) return TARN_OK;
    return tarn_report_bad(report, tarn_location_at(TARN_NONE, TARN_NONE, "/streams"),
                           "%u streams are too many for this number of ops and tensors: their "
                           "happens-before would take %llu "
                           "entries, and may take %llu; use fewer streams%s",
                           graph->streams_count, (unsigned long long)(rows * graph->streams_count),
                           (unsigned long long)max,
                           max < TARN_CLOCKS_MAX ? ", or raise text_max (--text-max)" : "");
}

static bool walk_init(struct walk *walk)
{
    const struct tarn_graph *graph = walk->graph;
    walk->readers = tarn_region_take(&walk->region, graph->streams_count, sizeof *walk->readers);
    walk->streams = tarn_region_take(&walk->region, graph->streams_count, sizeof *walk->streams);
    if (walk->region.is_exhausted) return false;
    for (uint32_t s = 0; s < graph->streams_count; s++) walk->readers[s] = TARN_NONE;
    return tarn_clocks_init(&walk->clocks, &walk->region, graph) == TARN_OK && note_users(walk);
}

enum tarn_status tarn_validate_races(const struct tarn_graph *graph,
                                     const struct tarn_report *report)
{
    struct walk walk = {.graph = graph, .report = report};
    enum tarn_status status = check_size(graph, report);
    if (status == TARN_OK && !walk_init(&walk)) status = TARN_SYSTEM;
    for (uint32_t a = 0; status == TARN_OK && a < graph->storages_count; a++) {
        const struct tarn_storage *storage = &graph->storages[a];
        status = check_producer(&walk, a);
        for (uint32_t i = 0; status == TARN_OK && i < storage->parts_count; i++)
            status = check_part(&walk, storage->part + i);
    }
    tarn_region_finish(&walk.region);
    return status;
}
