/* Reads `tarn.plan` version 1: the planner's result, for any runtime and any checker. The loader
 * trusts nothing: it checks types, ranges, duplicates and the graph's hash; the verifier checks the
 * meaning. Under TARN_TRUST a plan must still be complete and in range, so that a session can
 * replay a bad plan without harm to itself.
 * Cost: linear, plus sorting of waits and places. */
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "graph_read.h"
#include "plan_read.h"
#include "streams/base/array.h"
#include "streams/base/checked.h"
#include "streams/base/error.h"
#include "streams/base/memory.h"
#include "streams/graph/hash.h"
#include "streams/text/text_file.h"
#include "streams/verify/verify.h"

/* The lists of a `tarn.plan`: launches of streams, waits and offsets.
 * Cost: linear, plus sorting of waits and places. */

/* ---- Ops ---- */

static enum tarn_status read_op(const struct tarn_json_at *at, uint32_t count, uint32_t *op)
{
    enum tarn_status status = tarn_json_id(at, op);
    if (status == TARN_OK && *op >= count)
        status = tarn_json_bad(at, "there is no op %" PRIu32 "; the graph has %" PRIu32 " ops", *op,
                               count);
    return status;
}

static enum tarn_status read_stream(const struct tarn_json_at *at, struct tarn_plan *plan)
{
    uint32_t s = (uint32_t)at->index, begin = plan->list_begin[s];
    size_t count = 0;
    enum tarn_status status = tarn_json_array(at, &count);
    if (status == TARN_OK && count > plan->graph->ops_count - begin)
        return tarn_json_bad(at, "the lists have more ops than the graph");
    struct tarn_json_at op = tarn_json_items(at);
    while (tarn_json_next(&op, &status))
        status = read_op(&op, plan->graph->ops_count, &plan->list[begin + op.index]);
    plan->list_begin[s + 1] = begin + (uint32_t)count;
    return status;
}

static enum tarn_status plan_read_streams(const struct tarn_json_at *at, struct tarn_plan *plan)
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

/* A list's length; more records than ids allow are an error. */
static enum tarn_status read_count(const struct tarn_json_at *at, uint64_t max, size_t *count)
{
    enum tarn_status status = tarn_json_array(at, count);
    if (status == TARN_OK && *count > max)
        status = tarn_json_bad(at, "has %zu records, at most %" PRIu64 " make sense", *count, max);
    return status;
}

/* Checks that a record is a list of `count` elements. */
static enum tarn_status check_record(const struct tarn_json_at *at, size_t count, const char *what)
{
    size_t found = 0;
    enum tarn_status status = tarn_json_array(at, &found);
    if (status == TARN_OK && found != count)
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
    if (status == TARN_OK && graph->ops[wait->op].stream == graph->ops[wait->on].stream)
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

/* Waits keep the file's order; a sorted copy shows duplicates. */
static enum tarn_status refuse_twins(const struct tarn_json_at *at, struct tarn_region *region,
                                     const struct tarn_wait *waits, size_t count)
{
    enum tarn_status status = TARN_OK;
    struct tarn_region_mark mark = tarn_region_mark(region);
    struct tarn_wait *sorted = tarn_region_copy(region, waits, count, sizeof *sorted);
    if (!sorted) return tarn_error_no_memory(at->report->error);
    qsort(sorted, count, sizeof *sorted, compare_waits);
    for (size_t i = 1; i < count && status == TARN_OK; i++) {
        if (compare_waits(&sorted[i - 1], &sorted[i]) == 0)
            status = tarn_json_bad(at, "[%" PRIu32 ",%" PRIu32 "] is there twice", sorted[i].op,
                                   sorted[i].on);
    }
    tarn_region_release(region, mark);
    return status;
}

static enum tarn_status plan_read_waits(const struct tarn_json_at *at, struct tarn_plan *plan,
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
    return status != TARN_OK ? status : refuse_twins(at, &plan->region, *waits, count);
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
        if (status == TARN_OK && place->id >= ids_count)
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
    return status != TARN_OK ? status : sort_places(at, *places, count);
}

/* A plan's claims about its bound, and about each memory space: certificates and sizes, in range
 * and in order. The verifier checks what they prove.
 * Cost: linear. */

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

/* A list of ascending ids below `limit` of an `item`, for example "tensor". */
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
        {"thresholds", true}, {"gaps", true}, {"inside", false}, {"arms", false}};
    struct tarn_json_at fields[TARN_COUNT_OF(names)];
    uint32_t streams_count = plan->graph->streams_count;
    size_t count = 0;
    enum tarn_status status = tarn_json_fields(at, names, TARN_COUNT_OF(names), fields);
    if (status == TARN_OK) status = read_numbers(&fields[0], plan, &claim->threshold, &count);
    if (status == TARN_OK && count != streams_count)
        status = tarn_json_bad(&fields[0], "%zu numbers for a graph of %" PRIu32 " streams", count,
                               streams_count);
    if (status == TARN_OK)
        status = read_ids(&fields[1], plan, "tensor", plan->graph->tensors_count, &claim->gaps,
                          &claim->gaps_count);
    size_t arms_count = 0;
    if (status == TARN_OK && fields[3].value)
        status = read_numbers(&fields[3], plan, &claim->arms, &arms_count);
    if (status == TARN_OK && arms_count != plan->graph->conditionals_count)
        status = tarn_json_bad(at, "arms of %zu conditionals for a graph of %" PRIu32, arms_count,
                               plan->graph->conditionals_count);
    claim->arms_count = (uint32_t)arms_count;
    if (status != TARN_OK || !fields[2].value) return status; /* the cut goes through no op */
    return read_ids(&fields[2], plan, "stream", streams_count, &claim->inside,
                    &claim->inside_count);
}

static enum tarn_status plan_read_claim(const struct tarn_json_at *bound,
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
    if (status == TARN_OK) status = tarn_json_string(&fields[0], &method);
    if (status == TARN_OK) status = tarn_json_integer(&fields[1], &space->footprint);
    if (status == TARN_OK) status = tarn_json_integer(&fields[2], &space->persistent);
    if (status == TARN_OK) status = plan_read_claim(&fields[3], &fields[4], plan, &space->claim);
    if (status != TARN_OK) return status;
    space->method = tarn_region_string(&plan->region, method);
    return space->method ? TARN_OK : tarn_error_no_memory(at->report->error);
}

/* Files count offsets from the start of each space. */
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

static enum tarn_status plan_read_spaces(const struct tarn_json_at *at, struct tarn_plan *plan)
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

/* ---- The head ---- */

enum {
    FORMAT,
    VERSION,
    NAME,
    SOURCE_HASH,
    GRAPH_HASH,
    PAD_GROUPS,
    ASKED,
    GRAPH,
    METHOD,
    ALIGNMENT,
    FOOTPRINT,
    BOUND,
    CERTIFICATE,
    SPACES,
    PERSISTENT_BYTES,
    WINDOW,
    STREAMS,
    WAITS,
    BOUNDARY_WAITS,
    STORAGES,
    WORKSPACES,
    PERSISTENT
};
static const struct tarn_json_field plan_fields[] = {
    [FORMAT] = {"format", true},
    [VERSION] = {"version", true},
    [NAME] = {"name", true},
    [SOURCE_HASH] = {"source_hash", true},
    [GRAPH_HASH] = {"graph_hash", true},
    [PAD_GROUPS] = {"pad_groups", false},
    [ASKED] = {"asked", false},
    [GRAPH] = {"graph", false},
    [METHOD] = {"method", true},
    [ALIGNMENT] = {"alignment", true},
    [FOOTPRINT] = {"footprint_bytes", true},
    [BOUND] = {"bound_bytes", true},
    [CERTIFICATE] = {"certificate", true},
    [SPACES] = {"spaces", false},
    [PERSISTENT_BYTES] = {"persistent_bytes", false},
    [WINDOW] = {"window", false},
    [STREAMS] = {"streams", true},
    [WAITS] = {"waits", true},
    [BOUNDARY_WAITS] = {"boundary_waits", true},
    [STORAGES] = {"storages", true},
    [WORKSPACES] = {"workspaces", true},
    [PERSISTENT] = {"persistent", true},
};

struct loader {
    struct tarn_report report;
    struct tarn_graph *source;
    struct tarn_plan *plan;
    struct tarn_json_at fields[TARN_COUNT_OF(plan_fields)];
};

static enum tarn_status read_hash(const struct tarn_json_at *at, struct tarn_hash *hash)
{
    const char *text = NULL;
    enum tarn_status status = tarn_json_string(at, &text);
    if (status == TARN_OK && !tarn_hash_parse(text, hash))
        status = tarn_json_bad(at, "must be 32 lower-case hexadecimal digits, not %s",
                               tarn_quote(text).text);
    return status;
}

static enum tarn_status read_pad_groups(const struct tarn_json_at *at, struct tarn_plan *plan)
{
    const char *word = NULL;
    enum tarn_status status = tarn_json_string(at, &word);
    if (status != TARN_OK || !word) return status;
    bool is_padded = strcmp(word, "padded") == 0;
    plan->pad_groups = is_padded ? TARN_GROUPS_PADDED : TARN_GROUPS_EXACT;
    if (is_padded || strcmp(word, "exact") == 0) return TARN_OK;
    return tarn_json_bad(at, "must be \"exact\" or \"padded\", not %s", tarn_quote(word).text);
}

/* No hash covers name and meta, and no transform changes them, so they are copied from the source
 * graph. */
static enum tarn_status take_names(struct loader *loader)
{
    struct tarn_graph *graph = loader->plan->graph;
    const char *name = tarn_region_string(&graph->region, loader->source->name);
    const char *meta = tarn_region_string(&graph->region, loader->source->meta);
    if (!name || !meta) return tarn_error_no_memory(loader->report.error);
    graph->name = name;
    graph->meta = meta;
    return TARN_OK;
}

/* The final graph: embedded, or the source graph itself. */
static enum tarn_status read_graph(struct loader *loader)
{
    struct tarn_plan *plan = loader->plan;
    const struct tarn_json_at *graph = &loader->fields[GRAPH], *at = &loader->fields[GRAPH_HASH];
    struct tarn_hash hash = {{0}};
    enum tarn_status status = read_hash(&loader->fields[SOURCE_HASH], &plan->source_hash);
    if (status == TARN_OK) status = read_hash(at, &hash);
    if (status == TARN_OK) status = read_pad_groups(&loader->fields[PAD_GROUPS], plan);
    if (status != TARN_OK) return status;
    plan->transformed = graph->value && !tarn_json_is_null(graph);
    if (!plan->transformed) {
        plan->graph = tarn_graph_retain(loader->source);
        if (tarn_hash_equal(hash, plan->source_hash)) return TARN_OK;
        return tarn_json_bad(at, "differs from source_hash, but the plan has no graph of its own");
    }
    status = tarn_graph_decode_inside(graph, &plan->graph);
    if (status == TARN_OK) status = take_names(loader);
    if (status == TARN_OK && !tarn_hash_equal(hash, plan->graph->hash))
        status = tarn_json_bad(at, "is not the hash of the graph in the plan, %s",
                               tarn_hash_format(plan->graph->hash).text);
    return status;
}

static enum tarn_status read_head(struct loader *loader)
{
    struct tarn_plan *plan = loader->plan;
    const struct tarn_json_at *fields = loader->fields;
    const char *name = NULL, *method = NULL;
    enum tarn_status status = tarn_json_string(&fields[NAME], &name);
    if (status == TARN_OK) status = tarn_json_string(&fields[METHOD], &method);
    if (status == TARN_OK && fields[ASKED].value)
        status = tarn_json_keep(&fields[ASKED], &plan->region, &plan->asked);
    if (status == TARN_OK) status = tarn_json_integer(&fields[ALIGNMENT], &plan->alignment);
    if (status == TARN_OK && !tarn_is_power_of_two(plan->alignment))
        status = tarn_json_bad(&fields[ALIGNMENT], "must be a power of two, not %" PRIu64,
                               plan->alignment);
    if (status == TARN_OK) status = tarn_json_integer(&fields[FOOTPRINT], &plan->footprint);
    if (status == TARN_OK)
        status = plan_read_claim(&fields[BOUND], &fields[CERTIFICATE], plan, &plan->claim);
    if (status != TARN_OK) return status;
    plan->method = tarn_region_string(&plan->region, method);
    return plan->method ? TARN_OK : tarn_error_no_memory(loader->report.error);
}

static enum tarn_status read_window(const struct tarn_json_at *at, struct tarn_window *window)
{
    static const struct tarn_json_field names[] = {
        {"space", false}, {"offset", true}, {"size", true}};
    struct tarn_json_at fields[TARN_COUNT_OF(names)];
    uint64_t space = 0;
    if (!at->value) return TARN_OK;
    enum tarn_status status = tarn_json_fields(at, names, TARN_COUNT_OF(names), fields);
    if (status == TARN_OK) status = tarn_json_integer(&fields[0], &space);
    if (status == TARN_OK) status = tarn_json_integer(&fields[1], &window->offset);
    if (status == TARN_OK) status = tarn_json_integer(&fields[2], &window->size);
    if (status == TARN_OK && space >= TARN_SPACES_MAX)
        status = tarn_json_bad(&fields[0], "there is no memory space %" PRIu64, space);
    window->space = (tarn_space)space;
    return status;
}

/* The highest reserved end, for files without the size of the persistent part. */
static uint64_t persistent_end(const struct tarn_plan *plan)
{
    uint64_t end = 0;
    for (uint32_t i = 0; i < plan->places_persistent_count; i++) {
        const struct tarn_place *place = &plan->places_persistent[i];
        if (place->offset + place->size > end) end = place->offset + place->size;
    }
    tarn_size_round_up(end, plan->alignment, &end); /* no number of a file is above 2^53 */
    return end;
}

/* ---- The whole ---- */

static enum tarn_status read_lists(struct loader *loader)
{
    struct tarn_plan *plan = loader->plan;
    const struct tarn_json_at *fields = loader->fields;
    uint32_t ops = plan->graph->ops_count, tensors = plan->graph->tensors_count;
    enum tarn_status status = plan_read_streams(&fields[STREAMS], plan);
    if (status == TARN_OK)
        status = plan_read_waits(&fields[WAITS], plan, &plan->waits, &plan->waits_count);
    if (status == TARN_OK)
        status = plan_read_waits(&fields[BOUNDARY_WAITS], plan, &plan->boundary_waits,
                                 &plan->boundary_waits_count);
    if (status == TARN_OK)
        status = tarn_plan_read_places(&fields[STORAGES], tensors, &plan->region, &plan->storages,
                                       &plan->storages_count);
    if (status == TARN_OK)
        status = tarn_plan_read_places(&fields[WORKSPACES], ops, &plan->region, &plan->workspaces,
                                       &plan->workspaces_count);
    if (status == TARN_OK)
        status = tarn_plan_read_places(&fields[PERSISTENT], tensors, &plan->region,
                                       &plan->places_persistent, &plan->places_persistent_count);
    if (status != TARN_OK) return status;
    plan->persistent = persistent_end(plan);
    status = tarn_json_integer(&fields[PERSISTENT_BYTES], &plan->persistent);
    if (status == TARN_OK) status = read_window(&fields[WINDOW], &plan->window);
    if (status != TARN_OK || !fields[SPACES].value) return status;
    return plan_read_spaces(&fields[SPACES], plan);
}

/* A plan that was made for another graph is reported as such, not by the first id out of range:
 * then its lists are not read. */
static enum tarn_status read_plan(struct loader *loader, const struct tarn_json_at *document,
                                  bool of_any_graph)
{
    enum tarn_status status = tarn_json_check_format(document, "tarn.plan");
    if (status == TARN_OK)
        status =
            tarn_json_fields(document, plan_fields, TARN_COUNT_OF(plan_fields), loader->fields);
    if (status == TARN_OK) status = read_graph(loader);
    bool is_foreign = !tarn_hash_equal(loader->plan->source_hash, loader->source->hash);
    if (status != TARN_OK || (is_foreign && !of_any_graph)) return status;
    status = read_head(loader);
    return status != TARN_OK ? status : read_lists(loader);
}

/* NULL, with the status, if it cannot be read. */
static struct tarn_plan *open_plan(const struct tarn_reader *from, struct tarn_graph *source,
                                   bool of_any_graph, enum tarn_status *status,
                                   struct tarn_error *error)
{
    struct loader loader = {.report = {.error = error, .text_max = TARN_TEXT_MAX},
                            .source = source};
    if (source->text_max > 0) loader.report.text_max = source->text_max;
    struct tarn_json_at document = {.value = NULL};
    char *text = NULL;
    tarn_error_clear(error);
    loader.plan = tarn_take_zeros(1, sizeof *loader.plan);
    *status = loader.plan ? TARN_OK : tarn_error_no_memory(error);
    if (!*status) atomic_init(&loader.plan->references, 1);
    if (!*status) *status = tarn_json_load(&loader.report, from, &text, &document);
    if (!*status) *status = read_plan(&loader, &document, of_any_graph);
    tarn_json_close(&document, text);
    if (*status == TARN_OK) return loader.plan;
    tarn_plan_destroy(loader.plan);
    return NULL;
}

static enum tarn_status prove(struct tarn_plan *plan, const struct tarn_graph *graph,
                              enum tarn_plan_trust trust, const struct tarn_verify_options *allowed,
                              struct tarn_error *error)
{
    if (!tarn_plan_allow(plan, allowed->in_place_kinds, allowed->in_place_kinds_count))
        return tarn_error_no_memory(error);
    return trust == TARN_TRUST ? tarn_plan_check_form(plan, error)
                               : tarn_plan_verify(plan, graph, NULL, NULL, error);
}

static enum tarn_status load_plan(const struct tarn_reader *from, struct tarn_graph *graph,
                                  enum tarn_plan_trust trust,
                                  const struct tarn_verify_options *given, struct tarn_plan **plan,
                                  struct tarn_error *error)
{
    struct tarn_verify_options allowed = {0};
    tarn_error_clear(error);
    enum tarn_status status = tarn_verify_options_take(&allowed, given, error);
    if (status != TARN_OK) return status;
    *plan = open_plan(from, graph, trust == TARN_TRUST, &status, error);
    if (status == TARN_OK) status = prove(*plan, graph, trust, &allowed, error);
    if (status == TARN_OK) return TARN_OK;
    tarn_plan_destroy(*plan);
    *plan = NULL;
    return status;
}

enum tarn_status tarn_plan_load(const char *path, struct tarn_graph *graph,
                                enum tarn_plan_trust trust,
                                const struct tarn_verify_options *options, struct tarn_plan **plan,
                                struct tarn_error *error)
{
    if (plan) *plan = NULL;
    if (!path || !graph || !plan) return tarn_error_null(error, __func__);
    return load_plan(&(struct tarn_reader){.name = path}, graph, trust, options, plan, error);
}

enum tarn_status tarn_plan_read(const struct tarn_reader *given, struct tarn_graph *graph,
                                enum tarn_plan_trust trust,
                                const struct tarn_verify_options *options, struct tarn_plan **plan,
                                struct tarn_error *error)
{
    struct tarn_reader reader;
    if (plan) *plan = NULL;
    if (!graph || !plan) return tarn_error_null(error, __func__);
    tarn_error_clear(error);
    enum tarn_status status = tarn_reader_check(&reader, given, __func__, error);
    return status != TARN_OK ? status : load_plan(&reader, graph, trust, options, plan, error);
}

enum tarn_status tarn_plan_verify_file(const char *path, struct tarn_graph *source,
                                       const struct tarn_verify_options *given,
                                       struct tarn_verdict **verdict, struct tarn_error *error)
{
    struct tarn_verify_options options = {0};
    if (verdict) *verdict = NULL;
    if (!path || !source) return tarn_error_null(error, __func__);
    tarn_error_clear(error);
    enum tarn_status status = tarn_verify_options_take(&options, given, error);
    if (status != TARN_OK) return status;
    struct tarn_plan *plan =
        open_plan(&(struct tarn_reader){.name = path}, source, false, &status, error);
    if (plan) status = tarn_plan_verify(plan, source, &options, verdict, error);
    tarn_plan_destroy(plan);
    return status;
}
