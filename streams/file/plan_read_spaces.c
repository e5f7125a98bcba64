/* What a plan claims of its bound, and of each memory space: certificates and sizes, in range and
 * in order. What they prove is the verifier's to say. Cost: linear. */
#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "plan_read_lists.h"
#include "streams/base/error.h"

#define COUNT_OF(array) (sizeof(array) / sizeof(array)[0])

struct reading {
    const struct tarn_report *report;
    struct tarn_plan *plan;
};

/* A list of numbers that fit 32 bits. */
static enum tarn_status read_numbers(struct reading *loader, const struct tarn_json_at *at,
                                     const struct tarn_json *value, uint32_t **numbers,
                                     size_t *count)
{
    enum tarn_status status = tarn_json_array(loader->report, at, value, count);
    if (status != TARN_OK) return status;
    *numbers = tarn_region_take(&loader->plan->region, *count, sizeof **numbers);
    if (!*numbers) return tarn_error_no_memory(loader->report->error);
    const struct tarn_json *element = tarn_json_first(value);
    for (size_t i = 0; element && !status; i++, element = tarn_json_next(element)) {
        struct tarn_json_at here = tarn_json_in(at, NULL, i);
        status = tarn_json_id(loader->report, &here, element, &(*numbers)[i]);
    }
    return status;
}

/* One whose numbers ascend and are ids below `limit`; `name` is what it lists, `item` one of them.
 */
static enum tarn_status read_ids(struct reading *loader, const struct tarn_json_at *at,
                                 const struct tarn_json *value, const char *name, const char *item,
                                 uint32_t limit, uint32_t **ids, uint32_t *ids_count)
{
    size_t count = 0;
    enum tarn_status status = read_numbers(loader, at, value, ids, &count);
    for (size_t i = 0; i < count && !status; i++) {
        struct tarn_json_at here = tarn_json_in(at, NULL, i);
        if ((*ids)[i] >= limit)
            status = tarn_json_bad(loader->report, &here,
                                   "there is no %s %" PRIu32 "; the graph has %" PRIu32, item,
                                   (*ids)[i], limit);
        else if (i > 0 && (*ids)[i] <= (*ids)[i - 1])
            status = tarn_json_bad(loader->report, &here, "%s must ascend", name);
    }
    *ids_count = (uint32_t)count;
    return status;
}

enum tarn_status tarn_plan_read_certificate(const struct tarn_report *report,
                                            const struct tarn_json_at *at,
                                            const struct tarn_json *value, struct tarn_plan *plan,
                                            struct tarn_claim *claim)
{
    struct reading reading = {report, plan}, *loader = &reading;
    static const struct tarn_json_field fields[] = {
        {"thresholds", true}, {"gaps", true}, {"inside", false}};
    struct tarn_json_at thresholds_at = tarn_json_in(at, "thresholds", 0),
                        gaps_at = tarn_json_in(at, "gaps", 0),
                        inside_at = tarn_json_in(at, "inside", 0);
    const struct tarn_json *values[COUNT_OF(fields)];
    uint32_t streams_count = plan->graph->streams_count;
    size_t count = 0;
    enum tarn_status status = tarn_json_fields(report, at, value, fields, COUNT_OF(fields), values);
    if (!status)
        status = read_numbers(loader, &thresholds_at, values[0], &claim->threshold, &count);
    if (!status && count != streams_count)
        status =
            tarn_json_bad(report, &thresholds_at, "%zu numbers for a graph of %" PRIu32 " streams",
                          count, streams_count);
    if (!status)
        status = read_ids(loader, &gaps_at, values[1], "gaps", "tensor", plan->graph->tensors_count,
                          &claim->gaps, &claim->gaps_count);
    if (status || !values[2]) return status; /* the cut goes through no op */
    return read_ids(loader, &inside_at, values[2], "streams", "stream", streams_count,
                    &claim->inside, &claim->inside_count);
}

/* ---- Spaces ---- */

static enum tarn_status read_space(struct reading *reading, const struct tarn_json_at *at,
                                   const struct tarn_json *value, struct tarn_plan_space *space)
{
    enum { METHOD, FOOTPRINT, PERSISTENT, BOUND, CERTIFICATE, FIELDS };
    static const struct tarn_json_field names[FIELDS] = {{"method", true},
                                                         {"footprint_bytes", true},
                                                         {"persistent_bytes", true},
                                                         {"bound_bytes", true},
                                                         {"certificate", true}};
    const struct tarn_json *fields[FIELDS];
    const struct tarn_report *report = reading->report;
    struct tarn_json_at places[FIELDS];
    uint64_t *numbers[FIELDS] = {[FOOTPRINT] = &space->footprint,
                                 [PERSISTENT] = &space->persistent,
                                 [BOUND] = &space->claim.bound};
    const char *method = NULL;
    enum tarn_status status = tarn_json_fields(report, at, value, names, FIELDS, fields);
    if (status != TARN_OK) return status;
    for (size_t i = 0; i < FIELDS; i++) places[i] = tarn_json_in(at, names[i].name, 0);
    bool none = tarn_json_type_of(fields[BOUND]) == TARN_JSON_NULL;
    if (none != (tarn_json_type_of(fields[CERTIFICATE]) == TARN_JSON_NULL))
        return tarn_json_bad(report, &places[CERTIFICATE],
                             "must be null just where bound_bytes is: a bound needs its proof");
    status = tarn_json_string(report, &places[METHOD], fields[METHOD], &method);
    for (size_t i = FOOTPRINT; i <= BOUND && !status; i++)
        if (i != BOUND || !none)
            status =
                tarn_json_integer(report, &places[i], fields[i], TARN_JSON_INTEGER_MAX, numbers[i]);
    if (!status && !none)
        status = tarn_plan_read_certificate(report, &places[CERTIFICATE], fields[CERTIFICATE],
                                            reading->plan, &space->claim);
    if (status != TARN_OK) return status;
    space->method = tarn_region_string(&reading->plan->region, method);
    return space->method ? TARN_OK : tarn_error_no_memory(report->error);
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

enum tarn_status tarn_plan_read_spaces(const struct tarn_report *report,
                                       const struct tarn_json_at *at, const struct tarn_json *value,
                                       struct tarn_plan *plan)
{
    struct reading reading = {report, plan};
    size_t count = 0;
    enum tarn_status status = tarn_json_array(report, at, value, &count);
    if (status != TARN_OK) return status;
    if (count != plan->graph->spaces_count)
        return tarn_json_bad(report, at, "%zu memory spaces for a graph that declares %" PRIu32,
                             count, plan->graph->spaces_count);
    if (count == 0) return tarn_json_bad(report, at, "must have some");
    plan->spaces = tarn_region_take(&plan->region, count, sizeof *plan->spaces);
    if (!plan->spaces) return tarn_error_no_memory(report->error);
    const struct tarn_json *element = tarn_json_first(value);
    for (size_t i = 0; element && !status; i++, element = tarn_json_next(element)) {
        struct tarn_json_at here = tarn_json_in(at, NULL, i);
        status = read_space(&reading, &here, element, &plan->spaces[i]);
    }
    if (status != TARN_OK) return status;
    plan->spaces_count = (uint32_t)count;
    uint64_t footprint = plan->footprint, persistent = plan->persistent;
    bool stands = tarn_plan_stack_spaces(plan);
    assert(stands); /* each has less than 2^53 bytes */
    (void)stands;
    if (footprint != plan->footprint || persistent != plan->persistent)
        return tarn_json_bad(report, at, "must add up to footprint_bytes and persistent_bytes");
    plan->claim = plan->spaces[0].claim;
    move_places(plan, plan->storages, plan->storages_count, false, false);
    move_places(plan, plan->workspaces, plan->workspaces_count, true, false);
    move_places(plan, plan->places_persistent, plan->places_persistent_count, false, true);
    return TARN_OK;
}
