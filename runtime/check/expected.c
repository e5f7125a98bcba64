/* The symbolic half of checked execution: docs/how-it-works.md, "Checked execution". One walk over
 * the list order per iteration, O(inputs + outputs) each, 8 bytes per access and iteration of the
 * window. It never reads a plan, so its expectations cannot have the same errors as a plan. */
#include "expected.h"

#include <assert.h>

#include "streams/base/checked.h"
#include "streams/graph/versions.h"

#define WINDOW_BYTES (UINT64_C(64) << 20)

/* ---- Accesses ---- */

/* Appends accesses, one per part and op. */
struct collector {
    struct tarn_expected *expected;
    uint32_t *seen; /* by part: 1 + its access, valid if that belongs to the current op */
    uint32_t count;
    uint32_t op_begin;
};

/* Is it a move of a tensor without cuts, to one of the kind? */
static bool hands_on(const struct tarn_graph *graph, uint32_t op)
{
    const struct tarn_graph_op *record = &graph->ops[op];
    return record->move && graph->tensors[record->inputs[0]].parts_count == 1 &&
           graph->tensors[tarn_outputs(record)[0]].parts_count == 1;
}

static struct tarn_access *collect(struct collector *collector, uint32_t part)
{
    uint32_t i = collector->seen[part];
    if (i > collector->op_begin) return &collector->expected->accesses[i - 1];
    struct tarn_access *access = &collector->expected->accesses[collector->count++];
    *access = (struct tarn_access){.part = part};
    collector->seen[part] = collector->count;
    return access;
}

static void collect_write(struct collector *collector, uint32_t op, uint32_t part, uint32_t made)
{
    const struct tarn_graph *graph = collector->expected->graph;
    const struct tarn_storage *written = &graph->storages[tarn_part(graph, part).storage];
    struct tarn_access *access = collect(collector, part);
    if (access->writes) return;
    access->writes = true;
    access->made = made;
    if (written->persistent || written->producer != op) access->reads = true;
}

static void collect_op(struct collector *collector, uint32_t op)
{
    const struct tarn_graph *graph = collector->expected->graph;
    const struct tarn_graph_op *info = &graph->ops[op];
    const struct tarn_op_extra *extra = tarn_extra(info);
    collector->op_begin = collector->count;
    collector->expected->begin[op] = collector->count;
    if (info->view) return;
    for (uint32_t i = 0; i < info->inputs_count; i++) {
        const struct tarn_graph_tensor *input = &graph->tensors[info->inputs[i]];
        for (uint32_t p = 0; p < input->parts_count; p++)
            collect(collector, input->part + p)->reads = true;
    }
    for (uint32_t i = 0; i < info->outputs_count; i++) {
        const struct tarn_graph_tensor *output = &graph->tensors[tarn_outputs(info)[i]];
        for (uint32_t p = 0; p < output->parts_count; p++)
            collect_write(collector, op, output->part + p, output->origin);
    }
    if (hands_on(graph, op))
        collect(collector, graph->tensors[tarn_outputs(info)[0]].part)->moved = true;
    if (extra->workspace_storage != TARN_NONE) {
        collect_write(collector, op, graph->storages[extra->workspace_storage].part, TARN_NONE);
    }
}

static size_t accesses_most(const struct tarn_graph *graph)
{
    size_t most = 0;
    for (uint32_t v = 0; v < graph->ops_count; v++) {
        for (uint32_t k = 0; k < tarn_slots_count(&graph->ops[v]); k++)
            most += graph->tensors[tarn_slot_tensor(&graph->ops[v], k)].parts_count;
        most++;
    }
    return most;
}

static enum tarn_status collect_accesses(struct tarn_expected *expected, struct tarn_region *region)
{
    const struct tarn_graph *graph = expected->graph;
    struct collector collector = {.expected = expected};
    expected->begin = tarn_region_take(region, (size_t)graph->ops_count + 1, sizeof(uint32_t));
    expected->accesses = tarn_region_take(region, accesses_most(graph), sizeof *expected->accesses);
    struct tarn_region_mark mark = tarn_region_mark(region);
    collector.seen = tarn_region_take(region, graph->parts_count, sizeof *collector.seen);
    bool is_complete = expected->begin && expected->accesses && collector.seen;
    if (is_complete) {
        for (uint32_t v = 0; v < graph->ops_count; v++) collect_op(&collector, v);
        expected->begin[graph->ops_count] = collector.count;
    }
    tarn_region_release(region, mark);
    return is_complete ? TARN_OK : TARN_SYSTEM;
}

/* ---- Inputs of the digest ---- */

static void mix_all(struct tarn_expected *expected, uint32_t op)
{
    const struct tarn_access *accesses = expected->accesses + expected->begin[op];
    for (uint32_t i = 0; i < expected->begin[op + 1] - expected->begin[op]; i++) {
        if (accesses[i].reads) expected->mixed[expected->mixed_begin[op + 1]++] = i;
    }
}

static bool is_called(const struct tarn_expected *expected, const struct tarn_versions *versions,
                      uint32_t op, uint32_t input, uint32_t name)
{
    const struct tarn_graph *graph = expected->graph;
    uint32_t tensor = graph->ops[op].inputs[input];
    const uint32_t *found = tarn_versions_found(versions, graph, op, input);
    return graph->tensors[tensor].parts_count > 0 &&
           tarn_version_name(graph, tensor, found[0]) == name;
}

static void mix_common(struct tarn_expected *expected, const struct tarn_versions *versions,
                       uint32_t op)
{
    const struct tarn_graph *graph = expected->graph;
    const struct tarn_graph_op *info = &graph->ops[op];
    const struct tarn_op_extra *extra = tarn_extra(info);
    const struct tarn_access *accesses = expected->accesses + expected->begin[op];
    for (uint32_t k = 0; k < extra->common_count; k++) {
        uint32_t input = 0, i = 0;
        while (input < info->inputs_count &&
               !is_called(expected, versions, op, input, extra->common[k]))
            input++;
        if (input == info->inputs_count) continue; /* no verified plan has this */
        const struct tarn_graph_tensor *tensor = &graph->tensors[info->inputs[input]];
        for (uint32_t p = 0; p < tensor->parts_count; p++) {
            for (i = 0; accesses[i].part != tensor->part + p;) i++;
            expected->mixed[expected->mixed_begin[op + 1]++] = i;
        }
    }
}

static enum tarn_status find_mixed(struct tarn_expected *expected, struct tarn_region *region)
{
    const struct tarn_graph *graph = expected->graph;
    struct tarn_versions versions;
    expected->mixed_begin =
        tarn_region_take(region, (size_t)graph->ops_count + 1, sizeof(uint32_t));
    expected->mixed = tarn_region_take(region, accesses_most(graph), sizeof(uint32_t));
    struct tarn_region_mark mark = tarn_region_mark(region);
    if (!expected->mixed_begin || !expected->mixed ||
        tarn_versions_init(&versions, region, graph, graph->order, graph->ops_count) != TARN_OK)
        return TARN_SYSTEM;
    for (uint32_t v = 0; v < graph->ops_count; v++) {
        expected->mixed_begin[v + 1] = expected->mixed_begin[v];
        if (graph->ops[v].view) continue;
        if (tarn_extra(&graph->ops[v])->common)
            mix_common(expected, &versions, v);
        else
            mix_all(expected, v);
    }
    tarn_region_release(region, mark);
    return TARN_OK;
}

/* ---- Life ---- */

uint64_t tarn_expected_initial(uint32_t tensor) { return tarn_seed_mix(UINT64_MAX, tensor); }

enum tarn_status tarn_expected_init(struct tarn_expected *expected, struct tarn_region *region,
                                    const struct tarn_graph *graph)
{
    *expected = (struct tarn_expected){.graph = graph};
    if (collect_accesses(expected, region) || find_mixed(expected, region)) return TARN_SYSTEM;
    expected->versions = tarn_region_take(region, graph->parts_count, sizeof(uint64_t));
    if (!expected->versions) return TARN_SYSTEM;
    for (uint32_t a = graph->planned_count; a < graph->storages_count; a++) {
        const struct tarn_storage *storage = &graph->storages[a];
        for (uint32_t p = 0; p < storage->parts_count; p++)
            expected->versions[storage->part + p] = tarn_expected_initial(storage->tensor);
    }
    return TARN_OK;
}

void tarn_expected_finish(struct tarn_expected *expected)
{
    tarn_region_finish(&expected->window_memory);
}

/* ---- Walking ---- */

uint64_t *tarn_expected_seeds(const struct tarn_expected *expected, uint32_t op, uint64_t iteration)
{
    size_t row = expected->begin[expected->graph->ops_count];
    assert(expected->window_begin <= iteration && iteration < expected->window_end);
    return expected->seeds + (iteration - expected->window_begin) * row + expected->begin[op];
}

uint64_t tarn_expected_digest(const struct tarn_expected *expected, uint32_t op, uint64_t iteration)
{
    const uint64_t *seeds = tarn_expected_seeds(expected, op, iteration);
    const struct tarn_graph *graph = expected->graph;
    const struct tarn_access *accesses = expected->accesses + expected->begin[op];
    if (hands_on(graph, op)) return seeds[0]; /* that of its input */
    uint64_t digest = tarn_seed_mix(graph->ops[op].origin, iteration);
    for (uint32_t k = expected->mixed_begin[op]; k < expected->mixed_begin[op + 1]; k++) {
        if (tarn_expected_is_void(expected, accesses[expected->mixed[k]].part)) continue;
        uint32_t i = expected->mixed[k],
                 last = k > expected->mixed_begin[op] ? expected->mixed[k - 1] : i;
        /* parts of one version count once */
        bool is_more = last != i && seeds[last] == seeds[i] &&
                       tarn_part(graph, accesses[last].part).storage ==
                           tarn_part(graph, accesses[i].part).storage;
        if (!is_more) digest = tarn_seed_mix(digest, seeds[i]);
    }
    return digest;
}

static void walk_op(struct tarn_expected *expected, uint32_t op, uint64_t iteration)
{
    const struct tarn_access *accesses = expected->accesses + expected->begin[op];
    uint32_t count = expected->begin[op + 1] - expected->begin[op];
    uint64_t *seeds = tarn_expected_seeds(expected, op, iteration);
    for (uint32_t i = 0; i < count; i++) {
        bool is_there = !tarn_expected_is_void(expected, accesses[i].part);
        seeds[i] = accesses[i].reads && is_there ? expected->versions[accesses[i].part] : 0;
    }
    if (expected->skipped && expected->skipped[op]) return;
    uint64_t digest = tarn_expected_digest(expected, op, iteration);
    for (uint32_t i = 0; i < count; i++) {
        if (!accesses[i].writes) continue;
        expected->versions[accesses[i].part] = tarn_expected_written(digest, &accesses[i]);
    }
}

uint64_t tarn_expected_window(const struct tarn_expected *expected)
{
    uint64_t row = ((uint64_t)expected->begin[expected->graph->ops_count] + 1) * sizeof(uint64_t);
    return row < WINDOW_BYTES ? WINDOW_BYTES / row : 1;
}

enum tarn_status tarn_expected_advance(struct tarn_expected *expected, uint64_t iterations)
{
    const struct tarn_graph *graph = expected->graph;
    uint64_t row = (uint64_t)expected->begin[graph->ops_count] + 1, words;
    if (!tarn_size_multiply(row, iterations, &words) || !tarn_size_is_addressable(words))
        return TARN_SYSTEM;
    tarn_region_finish(&expected->window_memory);
    expected->seeds =
        tarn_region_take(&expected->window_memory, (size_t)words, sizeof *expected->seeds);
    if (!expected->seeds) return TARN_SYSTEM;
    expected->window_begin = expected->window_end;
    expected->window_end += iterations;
    for (uint64_t k = expected->window_begin; k < expected->window_end; k++) {
        for (uint32_t rank = 0; rank < graph->ops_count; rank++) {
            walk_op(expected, graph->order[rank], k);
        }
    }
    return TARN_OK;
}
