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

static enum tarn_status read_gaps(struct reading *loader, const struct tarn_json_at *at,
                                  const struct tarn_json *value)
{
    struct tarn_plan *plan = loader->plan;
    size_t count = 0;
    enum tarn_status status = read_numbers(loader, at, value, &plan->gaps, &count);
    for (size_t i = 0; i < count && !status; i++) {
        struct tarn_json_at here = tarn_json_in(at, NULL, i);
        if (plan->gaps[i] >= plan->graph->tensors_count)
            status = tarn_json_bad(loader->report, &here,
                                   "there is no tensor %" PRIu32 "; the graph has %" PRIu32,
                                   plan->gaps[i], plan->graph->tensors_count);
        else if (i > 0 && plan->gaps[i] <= plan->gaps[i - 1])
            status = tarn_json_bad(loader->report, &here, "gaps must ascend");
    }
    plan->gaps_count = (uint32_t)count;
    return status;
}

/* Absent where the cut goes through no op. */
static enum tarn_status read_inside(struct reading *loader, const struct tarn_json_at *at,
                                    const struct tarn_json *value)
{
    struct tarn_plan *plan = loader->plan;
    size_t count = 0;
    if (!value) return TARN_OK;
    enum tarn_status status = read_numbers(loader, at, value, &plan->inside, &count);
    for (size_t i = 0; i < count && !status; i++) {
        struct tarn_json_at here = tarn_json_in(at, NULL, i);
        if (plan->inside[i] >= plan->graph->streams_count)
            status = tarn_json_bad(loader->report, &here,
                                   "there is no stream %" PRIu32 "; the graph has %" PRIu32,
                                   plan->inside[i], plan->graph->streams_count);
        else if (i > 0 && plan->inside[i] <= plan->inside[i - 1])
            status = tarn_json_bad(loader->report, &here, "streams must ascend");
    }
    plan->inside_count = (uint32_t)count;
    return status;
}

enum tarn_status tarn_plan_read_certificate(const struct tarn_report *report,
                                            const struct tarn_json_at *at,
                                            const struct tarn_json *value, struct tarn_plan *plan)
{
    struct reading reading = {report, plan}, *loader = &reading;
    static const struct tarn_json_field fields[] = {
        {"thresholds", true}, {"gaps", true}, {"inside", false}};
    struct tarn_json_at thresholds_at = tarn_json_in(at, "thresholds", 0),
                        gaps_at = tarn_json_in(at, "gaps", 0),
                        inside_at = tarn_json_in(at, "inside", 0);
    const struct tarn_json *values[COUNT_OF(fields)];
    size_t count = 0;
    enum tarn_status status =
        tarn_json_fields(loader->report, at, value, fields, COUNT_OF(fields), values);
    if (!status)
        status = read_numbers(loader, &thresholds_at, values[0], &loader->plan->threshold, &count);
    if (!status && count != loader->plan->graph->streams_count)
        status = tarn_json_bad(loader->report, &thresholds_at,
                               "%zu numbers for a graph of %" PRIu32 " streams", count,
                               loader->plan->graph->streams_count);
    if (!status) status = read_gaps(loader, &gaps_at, values[1]);
    return status ? status : read_inside(loader, &inside_at, values[2]);
}

/* ---- Spaces ---- */

static void take_claim(struct tarn_plan *plan, struct tarn_plan_space *space)
{
    space->threshold = plan->threshold;
    space->gaps = plan->gaps;
    space->gaps_count = plan->gaps_count;
    space->inside = plan->inside;
    space->inside_count = plan->inside_count;
}

static void drop_claim(struct tarn_plan *plan)
{
    plan->threshold = plan->gaps = plan->inside = NULL;
    plan->gaps_count = plan->inside_count = 0;
}

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
                                 [BOUND] = &space->bound};
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
    drop_claim(reading->plan);
    if (!status && !none)
        status = tarn_plan_read_certificate(report, &places[CERTIFICATE], fields[CERTIFICATE],
                                            reading->plan);
    if (status != TARN_OK) return status;
    take_claim(reading->plan, space);
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
        uint32_t space = are_ops ? graph->ops[id].workspace_space : graph->tensors[id].space;
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
    plan->bound = plan->spaces[0].bound;
    plan->threshold = plan->spaces[0].threshold;
    plan->gaps = plan->spaces[0].gaps;
    plan->gaps_count = plan->spaces[0].gaps_count;
    plan->inside = plan->spaces[0].inside;
    plan->inside_count = plan->spaces[0].inside_count;
    move_places(plan, plan->storages, plan->storages_count, false, false);
    move_places(plan, plan->workspaces, plan->workspaces_count, true, false);
    move_places(plan, plan->places_persistent, plan->places_persistent_count, false, true);
    return TARN_OK;
}
