/* A window of iterations: its length, the ops that have run, and the contents expected after them.
 * Cost: settling is O(ops + accesses) for each iteration. */
#include <assert.h>

#include "check.h"
#include "device.h"
#include "runtime/state/event_count.h"
#include "streams/base/error.h"

uint64_t tarn_check_time_left(const struct tarn_check *check)
{
    if (check->deadline_ns == UINT64_MAX) return TARN_FOREVER;
    uint64_t now = tarn_now_ns();
    return now < check->deadline_ns ? check->deadline_ns - now : 0;
}

uint64_t tarn_check_window(const struct tarn_check *check)
{
    return check->device ? check->device->rows : tarn_expected_window(&check->checker->expected);
}

enum tarn_status tarn_check_failed(const struct tarn_check *check, struct tarn_error *error)
{
    tarn_error_clear(error);
    if (error) *error = check->checker->failure;
    return TARN_CHECK_FAILED;
}

/* ---- What ran ---- */

static bool has_run(const struct tarn_check *check, uint32_t op, uint64_t iteration)
{
    const struct tarn_program *program = check->session->program;
    uint32_t step = program->step_of[op], stream = program->steps[step].stream;
    uint64_t launch = iteration * tarn_linear_length(&check->linear, stream);
    return launch + (step - program->begin[stream]) < check->linear.done[stream];
}

/* Is the part written through a tensor of the source graph, not through a copy of one? Then
 * every plan of the graph has this write, and has it once in an iteration. */
static bool is_of_source(const struct tarn_graph *graph, uint32_t op, uint32_t part)
{
    const struct tarn_graph_op *record = &graph->ops[op];
    for (uint32_t k = 0; k < record->outputs_count; k++) {
        uint32_t t = tarn_outputs(record)[k];
        bool has_part = part - graph->tensors[t].part < graph->tensors[t].parts_count; /* wraps */
        if (has_part) return graph->tensors[t].origin == t;
    }
    return false; /* a workspace */
}

/* Do an access and the one before it write parts of one version of a storage? */
static bool is_same_version(const struct tarn_graph *graph, const struct tarn_access *access,
                            const struct tarn_access *before)
{
    return before->writes && before->made == access->made &&
           tarn_part(graph, before->part).storage == tarn_part(graph, access->part).storage;
}

static void settle_op(struct tarn_check *check, uint32_t op, uint64_t iteration)
{
    const struct tarn_expected *expected = &check->checker->expected;
    const struct tarn_graph *graph = check->session->graph;
    assert(!graph->ops[op].view);
    uint64_t digest = tarn_expected_digest(expected, op, iteration);
    check->report.ops_run++;
    for (uint32_t i = expected->begin[op]; i < expected->begin[op + 1]; i++) {
        const struct tarn_access *access = &expected->accesses[i];
        uint64_t size = tarn_part(graph, access->part).size;
        uint32_t storage = tarn_part(graph, access->part).storage;
        bool workspace = storage == tarn_extra(&graph->ops[op])->workspace_storage;
        if (access->reads || workspace) check->report.bytes_read += size;
        if (!access->writes) continue;
        check->report.bytes_written += size;
        check->finals[access->part] = tarn_expected_written(digest, access);
        bool is_more = i > expected->begin[op] && is_same_version(graph, access, access - 1);
        /* Transforms add tensors and versions, which do not count: the digest is the source's. */
        if (!is_more && is_of_source(graph, op, access->part))
            check->report.digest += tarn_seed_mix(check->finals[access->part], 1);
    }
}

/* Outputs last until an op of the next iteration runs. */
static void forget_outputs(struct tarn_check *check)
{
    const struct tarn_graph *graph = check->session->graph;
    for (uint32_t p = 0; p < graph->parts_count; p++)
        if (!graph->storages[tarn_part(graph, p).storage].persistent) check->finals[p] = 0;
}

void tarn_check_settle(struct tarn_check *check)
{
    const struct tarn_graph *graph = check->session->graph;
    const struct tarn_expected *expected = &check->checker->expected;
    for (uint64_t k = expected->window_begin; k < expected->window_end; k++) {
        bool begun = false;
        for (uint32_t rank = 0; rank < graph->ops_count; rank++) {
            uint32_t op = graph->order[rank];
            if (graph->ops[op].view || !has_run(check, op, k)) continue;
            if (expected->skipped && expected->skipped[op]) continue;
            if (!begun) forget_outputs(check);
            begun = true;
            settle_op(check, op, k);
        }
    }
}
