/* The lists of a `tarn.plan`: which op runs where, who waits for whom, what lies where. Cost:
 * linear, plus sorting of waits and places. */
#include "plan_read_lists.h"

#include <inttypes.h>
#include <stdlib.h>

/* ---- Ops ---- */

static enum tarn_status read_op(const struct tarn_json_at *at, uint32_t count, uint32_t *op)
{
    enum tarn_status status = tarn_json_id(at, op);
    if (!status && *op >= count)
        status = tarn_json_bad(at, "there is no op %" PRIu32 "; the graph has %" PRIu32 " ops", *op,
                               count);
    return status;
}

static enum tarn_status read_stream(const struct tarn_json_at *at, struct tarn_plan *plan)
{
    uint32_t s = (uint32_t)at->index, begin = plan->list_begin[s];
    size_t count = 0;
    enum tarn_status status = tarn_json_array(at, &count);
    if (!status && count > plan->graph->ops_count - begin)
        return tarn_json_bad(at, "the lists have more ops than the graph");
    struct tarn_json_at op = tarn_json_items(at);
    while (tarn_json_next(&op, &status))
        status = read_op(&op, plan->graph->ops_count, &plan->list[begin + op.index]);
    plan->list_begin[s + 1] = begin + (uint32_t)count;
    return status;
}

enum tarn_status tarn_plan_read_streams(const struct tarn_json_at *at, struct tarn_plan *plan)
{
    size_t count = 0;
    enum tarn_status status = tarn_json_array(at, &count);
    if (status != TARN_OK) return status;
    if (count != plan->graph->streams_count)
        return tarn_json_bad(at, "%zu lists for a graph of %" PRIu32 " streams", count,
                             plan->graph->streams_count);
    plan->list_begin = tarn_region_take(&plan->region, count + 1, sizeof *plan->list_begin);
    plan->list = tarn_region_take(&plan->region, plan->graph->ops_count, sizeof *plan->list);
    if (!plan->list_begin || !plan->list) return tarn_error_no_memory(at->report->error);
    plan->streams_count = (uint32_t)count;
    struct tarn_json_at list = tarn_json_items(at);
    while (tarn_json_next(&list, &status)) status = read_stream(&list, plan);
    return status;
}

/* A list's length, as far as it makes sense: more records than ids allow are an error. */
static enum tarn_status read_count(const struct tarn_json_at *at, uint64_t max, size_t *count)
{
    enum tarn_status status = tarn_json_array(at, count);
    if (!status && *count > max)
        status = tarn_json_bad(at, "has %zu records, at most %" PRIu64 " make sense", *count, max);
    return status;
}

/* Checks that a record is a list of `count` elements. */
static enum tarn_status check_record(const struct tarn_json_at *at, size_t count, const char *what)
{
    size_t found = 0;
    enum tarn_status status = tarn_json_array(at, &found);
    if (!status && found != count)
        status = tarn_json_bad(at, "must be %s, not a list of %zu", what, found);
    return status;
}

/* ---- Waits ---- */

static enum tarn_status read_wait(const struct tarn_json_at *at, const struct tarn_graph *graph,
                                  struct tarn_wait *wait)
{
    enum tarn_status status = check_record(at, 2, "[op, op that it waits for]");
    struct tarn_json_at op = tarn_json_items(at);
    while (tarn_json_next(&op, &status))
        status = read_op(&op, graph->ops_count, op.index == 0 ? &wait->op : &wait->on);
    if (!status && graph->ops[wait->op].stream == graph->ops[wait->on].stream)
        status =
            tarn_json_bad(at, "%s and %s are in one stream, where order needs no wait",
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
static enum tarn_status refuse_twins(const struct tarn_json_at *at, struct tarn_region *region,
                                     const struct tarn_wait *waits, size_t count)
{
    enum tarn_status status = TARN_OK;
    struct tarn_region_mark mark = tarn_region_mark(region);
    struct tarn_wait *sorted = tarn_region_copy(region, waits, count, sizeof *sorted);
    if (!sorted) return tarn_error_no_memory(at->report->error);
    qsort(sorted, count, sizeof *sorted, compare_waits);
    for (size_t i = 1; i < count && !status; i++) {
        if (compare_waits(&sorted[i - 1], &sorted[i]) == 0)
            status = tarn_json_bad(at, "[%" PRIu32 ",%" PRIu32 "] is there twice", sorted[i].op,
                                   sorted[i].on);
    }
    tarn_region_release(region, mark);
    return status;
}

enum tarn_status tarn_plan_read_waits(const struct tarn_json_at *at, struct tarn_plan *plan,
                                      struct tarn_wait **waits, uint32_t *waits_count)
{
    size_t count = 0;
    enum tarn_status status = read_count(at, TARN_NONE / 2, &count);
    if (status != TARN_OK) return status;
    *waits = tarn_region_take(&plan->region, count, sizeof **waits);
    if (!*waits) return tarn_error_no_memory(at->report->error);
    *waits_count = (uint32_t)count;
    struct tarn_json_at wait = tarn_json_items(at);
    while (tarn_json_next(&wait, &status))
        status = read_wait(&wait, plan->graph, &(*waits)[wait.index]);
    return status ? status : refuse_twins(at, &plan->region, *waits, count);
}

/* ---- Places ---- */

static enum tarn_status read_place(const struct tarn_json_at *at, uint32_t ids_count,
                                   struct tarn_place *place)
{
    enum tarn_status status = check_record(at, 3, "[id, offset, size]");
    struct tarn_json_at item = tarn_json_items(at);
    while (tarn_json_next(&item, &status)) {
        if (item.index > 0)
            status = tarn_json_integer(&item, item.index == 1 ? &place->offset : &place->size);
        else
            status = tarn_json_id(&item, &place->id);
        if (!status && place->id >= ids_count)
            status =
                tarn_json_bad(&item, "there is no such id; the graph's end at %" PRIu32, ids_count);
    }
    return status;
}

static int compare_places(const void *a, const void *b)
{
    uint32_t x = ((const struct tarn_place *)a)->id, y = ((const struct tarn_place *)b)->id;
    return x < y ? -1 : x > y;
}

static enum tarn_status sort_places(const struct tarn_json_at *at, struct tarn_place *places,
                                    size_t count)
{
    qsort(places, count, sizeof *places, compare_places);
    for (size_t i = 1; i < count; i++) {
        if (places[i - 1].id == places[i].id)
            return tarn_json_bad(at, "id %" PRIu32 " has two places", places[i].id);
    }
    return TARN_OK;
}

enum tarn_status tarn_plan_read_places(const struct tarn_json_at *at, uint32_t ids_count,
                                       struct tarn_region *region, struct tarn_place **places,
                                       uint32_t *places_count)
{
    size_t count = 0;
    enum tarn_status status = read_count(at, ids_count, &count);
    if (status != TARN_OK) return status;
    *places = tarn_region_take(region, count, sizeof **places);
    if (!*places) return tarn_error_no_memory(at->report->error);
    *places_count = (uint32_t)count;
    struct tarn_json_at place = tarn_json_items(at);
    while (tarn_json_next(&place, &status))
        status = read_place(&place, ids_count, &(*places)[place.index]);
    return status ? status : sort_places(at, *places, count);
}
