/* Data races: the users of a storage, walked in topological order, must be ordered wherever one
 * writes. It is enough to compare with the last write and, for a write, with the last reader of
 * every stream since it: whatever came earlier lies before those. A planned storage begins with its
 * producer's write. Happens-before is asked of clocks in O(1).
 * Cost: O((V + E) S) for the clocks, linear in users for the walk.
 */

#include "clocks.h"
#include "validate.h"

struct walk {
    const struct tarn_graph *graph;
    const struct tarn_report *report;
    struct tarn_clocks clocks;
    bool *writes;      /* for each entry of all storages' users: does it write? */
    uint32_t *readers; /* stream -> last reader since the last write, or TARN_NONE */
    uint32_t *streams; /* the ones that have such a reader */
    uint32_t streams_count;
    struct tarn_region region; /* of the arrays above */
};

/* ---- Who writes ---- */

struct touch_cursor {
    uint32_t *next;    /* storage -> which of its users comes next */
    uint32_t *written; /* storage -> op + 1 that wrote it last */
};

/* Users stand in topological order, so the next one of a storage is either v or not yet due. */
static void note_touch(const struct walk *walk, const struct touch_cursor *cursor, uint32_t a,
                       uint32_t v)
{
    const struct tarn_storage *storage = &walk->graph->storages[a];
    uint32_t i = cursor->next[a];
    if (i == storage->users_count || tarn_storage_users(walk->graph, storage)[i] != v)
        return; /* noted already */
    cursor->next[a]++;
    walk->writes[storage->users_begin + i] = cursor->written[a] == v + 1;
}

static void note_op(const struct walk *walk, const struct touch_cursor *cursor, uint32_t v)
{
    const struct tarn_graph *graph = walk->graph;
    const struct tarn_graph_op *op = &graph->ops[v];
    for (uint32_t k = 0; k < op->outputs_count; k++)
        cursor->written[graph->tensors[tarn_outputs(op)[k]].storage] = v + 1;
    for (uint32_t k = 0; k < op->outputs_count; k++)
        note_touch(walk, cursor, graph->tensors[tarn_outputs(op)[k]].storage, v);
    for (uint32_t k = 0; k < op->inputs_count; k++)
        note_touch(walk, cursor, graph->tensors[op->inputs[k]].storage, v);
}

static bool note_writes(const struct walk *walk)
{
    const struct tarn_graph *graph = walk->graph;
    struct tarn_region scratch = {.chunks = NULL};
    struct touch_cursor cursor = {
        tarn_region_take(&scratch, graph->storages_count, sizeof *cursor.next),
        tarn_region_take(&scratch, graph->storages_count, sizeof *cursor.written)};
    bool ok = !scratch.is_exhausted;
    for (uint32_t i = 0; ok && i < graph->ops_count; i++) {
        if (!graph->ops[graph->order[i]].view) note_op(walk, &cursor, graph->order[i]);
    }
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

static enum tarn_status check_producer(const struct walk *walk, const struct tarn_storage *storage)
{
    uint32_t first = tarn_storage_users(walk->graph, storage)[0], producer = storage->producer;
    if (storage->persistent || first == producer) return TARN_OK;
    const struct tarn_graph *graph = walk->graph;
    if (!is_before(walk, first, producer)) {
        bool writes = walk->writes[storage->users_begin];
        return report_race(walk, storage, first, writes, producer, true);
    }
    return tarn_report_bad(walk->report, tarn_location_at(first, storage->tensor, "/ops/%u", first),
                           "%s touches the storage of %s before its producer %s has written it",
                           tarn_op_label(graph, first).text,
                           tarn_tensor_label(graph, storage->tensor).text,
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

static enum tarn_status check_storage(struct walk *walk, const struct tarn_storage *storage)
{
    if (storage->users_count < 2) return TARN_OK;
    const bool *writes = walk->writes + storage->users_begin;
    enum tarn_status status = check_producer(walk, storage);
    uint32_t writer = TARN_NONE;
    forget_readers(walk);
    for (uint32_t i = 0; status == TARN_OK && i < storage->users_count; i++) {
        uint32_t op = tarn_storage_users(walk->graph, storage)[i];
        if (writer != TARN_NONE && !is_before(walk, writer, op))
            return report_race(walk, storage, writer, true, op, writes[i]);
        if (writes[i]) {
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
    size_t users = 0;
    for (uint32_t a = 0; a < graph->storages_count; a++) users += graph->storages[a].users_count;
    walk->writes = tarn_region_take(&walk->region, users, sizeof *walk->writes);
    walk->readers = tarn_region_take(&walk->region, graph->streams_count, sizeof *walk->readers);
    walk->streams = tarn_region_take(&walk->region, graph->streams_count, sizeof *walk->streams);
    if (walk->region.is_exhausted) return false;
    for (uint32_t s = 0; s < graph->streams_count; s++) walk->readers[s] = TARN_NONE;
    return tarn_clocks_init(&walk->clocks, &walk->region, graph) == TARN_OK && note_writes(walk);
}

enum tarn_status tarn_validate_races(const struct tarn_graph *graph,
                                     const struct tarn_report *report)
{
    struct walk walk = {.graph = graph, .report = report};
    enum tarn_status status = check_size(graph, report);
    if (!status && !walk_init(&walk)) status = TARN_SYSTEM;
    for (uint32_t a = 0; status == TARN_OK && a < graph->storages_count; a++)
        status = check_storage(&walk, &graph->storages[a]);
    tarn_region_finish(&walk.region);
    return status;
}
