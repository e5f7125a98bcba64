/* What a plan claims of its bound, and of each memory space: certificates and sizes, in range and
 * in order. What they prove is the verifier's to say. Cost: linear. */
#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "plan_read_lists.h"
#include "streams/base/array.h"
#include "streams/base/error.h"

/* A list of numbers that fit 32 bits. */
static enum tarn_status read_numbers(const struct tarn_json_at *at, struct tarn_plan *plan,
                                     uint32_t **numbers, size_t *count)
{
    enum tarn_status status = tarn_json_array(at, count);
    if (status != TARN_OK) return status;
    *numbers = tarn_region_take(&plan->region, *count, sizeof **numbers);
    if (!*numbers) return tarn_error_no_memory(at->report->error);
    struct tarn_json_at item = tarn_json_items(at);
    while (tarn_json_next(&item, &status)) status = tarn_json_id(&item, &(*numbers)[item.index]);
    return status;
}

/* One whose numbers ascend and are ids below `limit` of an `item`, for example "tensor". */
static enum tarn_status read_ids(const struct tarn_json_at *at, struct tarn_plan *plan,
                                 const char *item, uint32_t limit, uint32_t **ids,
                                 uint32_t *ids_count)
{
    size_t count = 0;
    enum tarn_status status = read_numbers(at, plan, ids, &count);
    struct tarn_json_at here = tarn_json_items(at);
    while (tarn_json_next(&here, &status)) {
        uint32_t id = (*ids)[here.index];
        if (id >= limit)
            status = tarn_json_bad(&here, "there is no %s %" PRIu32 "; the graph has %" PRIu32,
                                   item, id, limit);
        else if (here.index > 0 && id <= (*ids)[here.index - 1])
            status = tarn_json_bad(&here, "%s ids must ascend", item);
    }
    *ids_count = (uint32_t)count;
    return status;
}

static enum tarn_status read_certificate(const struct tarn_json_at *at, struct tarn_plan *plan,
                                         struct tarn_claim *claim)
{
    static const struct tarn_json_field names[] = {
        {"thresholds", true}, {"gaps", true}, {"inside", false}};
    struct tarn_json_at fields[TARN_COUNT_OF(names)];
    uint32_t streams_count = plan->graph->streams_count;
    size_t count = 0;
    enum tarn_status status = tarn_json_fields(at, names, TARN_COUNT_OF(names), fields);
    if (!status) status = read_numbers(&fields[0], plan, &claim->threshold, &count);
    if (!status && count != streams_count)
        status = tarn_json_bad(&fields[0], "%zu numbers for a graph of %" PRIu32 " streams", count,
                               streams_count);
    if (!status)
        status = read_ids(&fields[1], plan, "tensor", plan->graph->tensors_count, &claim->gaps,
                          &claim->gaps_count);
    if (status || !fields[2].value) return status; /* the cut goes through no op */
    return read_ids(&fields[2], plan, "stream", streams_count, &claim->inside,
                    &claim->inside_count);
}

enum tarn_status tarn_plan_read_claim(const struct tarn_json_at *bound,
                                      const struct tarn_json_at *certificate,
                                      struct tarn_plan *plan, struct tarn_claim *claim)
{
    bool none = tarn_json_is_null(bound);
    enum tarn_status status = none ? TARN_OK : tarn_json_integer(bound, &claim->bound);
    if (status != TARN_OK) return status;
    if (none != tarn_json_is_null(certificate))
        return tarn_json_bad(certificate,
                             "must be null just where bound_bytes is: a bound needs its proof");
    return none ? TARN_OK : read_certificate(certificate, plan, claim);
}

/* ---- Spaces ---- */

static enum tarn_status read_space(const struct tarn_json_at *at, struct tarn_plan *plan,
                                   struct tarn_plan_space *space)
{
    static const struct tarn_json_field names[] = {{"method", true},
                                                   {"footprint_bytes", true},
                                                   {"persistent_bytes", true},
                                                   {"bound_bytes", true},
                                                   {"certificate", true}};
    struct tarn_json_at fields[TARN_COUNT_OF(names)];
    const char *method = NULL;
    enum tarn_status status = tarn_json_fields(at, names, TARN_COUNT_OF(names), fields);
    if (!status) status = tarn_json_string(&fields[0], &method);
    if (!status) status = tarn_json_integer(&fields[1], &space->footprint);
    if (!status) status = tarn_json_integer(&fields[2], &space->persistent);
    if (!status) status = tarn_plan_read_claim(&fields[3], &fields[4], plan, &space->claim);
    if (status != TARN_OK) return status;
    space->method = tarn_region_string(&plan->region, method);
    return space->method ? TARN_OK : tarn_error_no_memory(at->report->error);
}

/* Files count offsets from the begin of each space. */
static void move_places(struct tarn_plan *plan, struct tarn_place *places, uint32_t count,
                        bool are_ops, bool persistent)
{
    const struct tarn_graph *graph = plan->graph;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t id = places[i].id;
        uint32_t space =
            are_ops ? tarn_extra(&graph->ops[id])->workspace_space : graph->tensors[id].space;
        places[i].offset += tarn_plan_space_begin(plan, space, persistent);
    }
}

enum tarn_status tarn_plan_read_spaces(const struct tarn_json_at *at, struct tarn_plan *plan)
{
    size_t count = 0;
    enum tarn_status status = tarn_json_array(at, &count);
    if (status != TARN_OK) return status;
    if (count != plan->graph->spaces_count)
        return tarn_json_bad(at, "%zu memory spaces for a graph that declares %" PRIu32, count,
                             plan->graph->spaces_count);
    if (count == 0) return tarn_json_bad(at, "must have some");
    plan->spaces = tarn_region_take(&plan->region, count, sizeof *plan->spaces);
    if (!plan->spaces) return tarn_error_no_memory(at->report->error);
    struct tarn_json_at space = tarn_json_items(at);
    while (tarn_json_next(&space, &status))
        status = read_space(&space, plan, &plan->spaces[space.index]);
    if (status != TARN_OK) return status;
    plan->spaces_count = (uint32_t)count;
    uint64_t footprint = plan->footprint, persistent = plan->persistent;
    bool stands = tarn_plan_stack_spaces(plan);
    assert(stands); /* each has less than 2^53 bytes */
    (void)stands;
    if (footprint != plan->footprint || persistent != plan->persistent)
        return tarn_json_bad(at, "must add up to footprint_bytes and persistent_bytes");
    plan->claim = plan->spaces[0].claim;
    move_places(plan, plan->storages, plan->storages_count, false, false);
    move_places(plan, plan->workspaces, plan->workspaces_count, true, false);
    move_places(plan, plan->places_persistent, plan->places_persistent_count, false, true);
    return TARN_OK;
}
