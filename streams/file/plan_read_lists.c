/* The lists of a `tarn.plan`: which op runs where, who waits for whom, what lies where. Cost:
 * linear, plus sorting of waits and places. */
#include "plan_read_lists.h"

#include <inttypes.h>
#include <stdlib.h>

/* ---- Ops ---- */

static enum tarn_status read_op(const struct tarn_report *report, const struct tarn_json_at *at,
                                const struct tarn_json *value, uint32_t count, uint32_t *op)
{
    enum tarn_status status = tarn_json_id(report, at, value, op);
    if (!status && *op >= count)
        status = tarn_json_bad(
            report, at, "there is no op %" PRIu32 "; the graph has %" PRIu32 " ops", *op, count);
    return status;
}

static enum tarn_status read_stream(const struct tarn_report *report, const struct tarn_json_at *at,
                                    const struct tarn_json *value, struct tarn_plan *plan)
{
    uint32_t s = (uint32_t)at->index, begin = plan->list_begin[s];
    size_t count = 0;
    enum tarn_status status = tarn_json_array(report, at, value, &count);
    if (!status && count > plan->graph->ops_count - begin)
        return tarn_json_bad(report, at, "the lists have more ops than the graph");
    const struct tarn_json *op = tarn_json_first(value);
    for (size_t i = 0; op && !status; i++, op = tarn_json_next(op)) {
        struct tarn_json_at here = tarn_json_in(at, NULL, i);
        status = read_op(report, &here, op, plan->graph->ops_count, &plan->list[begin + i]);
    }
    plan->list_begin[s + 1] = begin + (uint32_t)count;
    return status;
}

enum tarn_status tarn_plan_read_streams(const struct tarn_report *report,
                                        const struct tarn_json_at *at,
                                        const struct tarn_json *value, struct tarn_plan *plan)
{
    size_t count = 0;
    enum tarn_status status = tarn_json_array(report, at, value, &count);
    if (status != TARN_OK) return status;
    if (count != plan->graph->streams_count)
        return tarn_json_bad(report, at, "%zu lists for a graph of %" PRIu32 " streams", count,
                             plan->graph->streams_count);
    plan->list_begin = tarn_region_take(&plan->region, count + 1, sizeof *plan->list_begin);
    plan->list = tarn_region_take(&plan->region, plan->graph->ops_count, sizeof *plan->list);
    if (!plan->list_begin || !plan->list) return tarn_error_no_memory(report->error);
    plan->streams_count = (uint32_t)count;
    const struct tarn_json *list = tarn_json_first(value);
    for (uint32_t s = 0; list && !status; s++, list = tarn_json_next(list)) {
        struct tarn_json_at here = tarn_json_in(at, NULL, s);
        status = read_stream(report, &here, list, plan);
    }
    return status;
}

/* A list's length, as far as it makes sense: more records than ids allow are an error. */
static enum tarn_status read_count(const struct tarn_report *report, const struct tarn_json_at *at,
                                   const struct tarn_json *value, uint64_t max, size_t *count)
{
    enum tarn_status status = tarn_json_array(report, at, value, count);
    if (!status && *count > max)
        status = tarn_json_bad(report, at, "has %zu records, at most %" PRIu64 " make sense",
                               *count, max);
    return status;
}

/* Checks that a record is a list of `count` elements. */
static enum tarn_status check_record(const struct tarn_report *report,
                                     const struct tarn_json_at *at, const struct tarn_json *value,
                                     size_t count, const char *what)
{
    size_t found = 0;
    enum tarn_status status = tarn_json_array(report, at, value, &found);
    if (!status && found != count)
        status = tarn_json_bad(report, at, "must be %s, not a list of %zu", what, found);
    return status;
}

/* ---- Waits ---- */

static enum tarn_status read_wait(const struct tarn_report *report, const struct tarn_json_at *at,
                                  const struct tarn_json *value, const struct tarn_graph *graph,
                                  struct tarn_wait *wait)
{
    struct tarn_json_at op_at = tarn_json_in(at, NULL, 0), on_at = tarn_json_in(at, NULL, 1);
    enum tarn_status status = check_record(report, at, value, 2, "[op, op that it waits for]");
    if (!status)
        status = read_op(report, &op_at, tarn_json_element(value, 0), graph->ops_count, &wait->op);
    if (!status)
        status = read_op(report, &on_at, tarn_json_element(value, 1), graph->ops_count, &wait->on);
    if (!status && graph->ops[wait->op].stream == graph->ops[wait->on].stream)
        status =
            tarn_json_bad(report, at,
                          "%s and %s are in one stream, where order "
                          "needs no wait",
                          tarn_op_label(graph, wait->op).text, tarn_op_label(graph, wait->on).text);
    return status;
}

static int compare_waits(const void *a, const void *b)
{
    const struct tarn_wait *x = a, *y = b;
    if (x->op != y->op) return x->op < y->op ? -1 : 1;
    return x->on < y->on ? -1 : x->on > y->on;
}

/* Waits keep the file's order; a sorted copy shows which are there twice. */
static enum tarn_status refuse_twins(const struct tarn_report *report,
                                     const struct tarn_json_at *at, struct tarn_region *region,
                                     const struct tarn_wait *waits, size_t count)
{
    enum tarn_status status = TARN_OK;
    struct tarn_region_mark mark = tarn_region_mark(region);
    struct tarn_wait *sorted = tarn_region_copy(region, waits, count, sizeof *sorted);
    if (!sorted) return tarn_error_no_memory(report->error);
    qsort(sorted, count, sizeof *sorted, compare_waits);
    for (size_t i = 1; i < count && !status; i++) {
        if (compare_waits(&sorted[i - 1], &sorted[i]) == 0)
            status = tarn_json_bad(report, at, "[%" PRIu32 ",%" PRIu32 "] is there twice",
                                   sorted[i].op, sorted[i].on);
    }
    tarn_region_release(region, mark);
    return status;
}

enum tarn_status tarn_plan_read_waits(const struct tarn_report *report,
                                      const struct tarn_json_at *at, const struct tarn_json *value,
                                      struct tarn_plan *plan, struct tarn_wait **waits,
                                      uint32_t *waits_count)
{
    size_t count = 0;
    enum tarn_status status = read_count(report, at, value, TARN_NONE / 2, &count);
    if (status != TARN_OK) return status;
    *waits = tarn_region_take(&plan->region, count, sizeof **waits);
    if (!*waits) return tarn_error_no_memory(report->error);
    *waits_count = (uint32_t)count;
    const struct tarn_json *wait = tarn_json_first(value);
    for (size_t i = 0; wait && !status; i++, wait = tarn_json_next(wait)) {
        struct tarn_json_at here = tarn_json_in(at, NULL, i);
        status = read_wait(report, &here, wait, plan->graph, &(*waits)[i]);
    }
    if (!status) status = refuse_twins(report, at, &plan->region, *waits, count);
    return status;
}

/* ---- Places ---- */

static enum tarn_status read_place(const struct tarn_report *report, const struct tarn_json_at *at,
                                   const struct tarn_json *value, uint32_t ids_count,
                                   struct tarn_place *place)
{
    struct tarn_json_at id_at = tarn_json_in(at, NULL, 0), offset_at = tarn_json_in(at, NULL, 1),
                        size_at = tarn_json_in(at, NULL, 2);
    enum tarn_status status = check_record(report, at, value, 3, "[id, offset, size]");
    if (!status) status = tarn_json_id(report, &id_at, tarn_json_element(value, 0), &place->id);
    if (!status && place->id >= ids_count)
        status = tarn_json_bad(report, &id_at, "there is no such id; the graph's end at %" PRIu32,
                               ids_count);
    if (!status)
        status = tarn_json_integer(report, &offset_at, tarn_json_element(value, 1),
                                   TARN_JSON_INTEGER_MAX, &place->offset);
    if (!status)
        status = tarn_json_integer(report, &size_at, tarn_json_element(value, 2),
                                   TARN_JSON_INTEGER_MAX, &place->size);
    return status;
}

static int compare_places(const void *a, const void *b)
{
    uint32_t x = ((const struct tarn_place *)a)->id, y = ((const struct tarn_place *)b)->id;
    return x < y ? -1 : x > y;
}

static enum tarn_status sort_places(const struct tarn_report *report, const struct tarn_json_at *at,
                                    struct tarn_place *places, size_t count)
{
    qsort(places, count, sizeof *places, compare_places);
    for (size_t i = 1; i < count; i++) {
        if (places[i - 1].id == places[i].id)
            return tarn_json_bad(report, at, "id %" PRIu32 " has two places", places[i].id);
    }
    return TARN_OK;
}

enum tarn_status tarn_plan_read_places(const struct tarn_report *report,
                                       const struct tarn_json_at *at, const struct tarn_json *value,
                                       uint32_t ids_count, struct tarn_region *region,
                                       struct tarn_place **places, uint32_t *places_count)
{
    size_t count = 0;
    enum tarn_status status = read_count(report, at, value, ids_count, &count);
    if (status != TARN_OK) return status;
    *places = tarn_region_take(region, count, sizeof **places);
    if (!*places) return tarn_error_no_memory(report->error);
    *places_count = (uint32_t)count;
    const struct tarn_json *place = tarn_json_first(value);
    for (size_t i = 0; place && !status; i++, place = tarn_json_next(place)) {
        struct tarn_json_at here = tarn_json_in(at, NULL, i);
        status = read_place(report, &here, place, ids_count, &(*places)[i]);
    }
    return status ? status : sort_places(report, at, *places, count);
}
