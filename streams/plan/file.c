/* `tarn.plan` version 1: what the planner found, for anybody's runtime and anybody's checker. One
 * record per line, keys and places in a fixed order, so that equal plans give equal bytes.
 *
 * The loader takes nothing on trust: types, ranges, duplicates and the graph's hash are checked
 * here, everything about meaning by the verifier. Under TARN_TRUST a plan must still be complete
 * and in range, so that a session can replay what a bad plan does without harm to itself.
 * Cost: linear, plus sorting of waits and places. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "../graph/file.h"
#include "../graph/hash.h"
#include "../graph/json_write.h"
#include "../graph/size.h"
#include "../graph/text_file.h"
#include "verdict.h"

#define COUNT_OF(array) (sizeof(array) / sizeof(array)[0])

/* ---- Writing ---- */

static void print_streams(const struct tarn_plan *plan, FILE *file)
{
    fputs(",\n\"streams\":[", file);
    for (uint32_t s = 0; s < plan->streams_count; s++) {
        fputs(s > 0 ? ",\n" : "\n", file);
        tarn_json_write_ids(file, plan->list + plan->list_begin[s],
                            plan->list_begin[s + 1] - plan->list_begin[s]);
    }
    fputs(plan->streams_count > 0 ? "\n]" : "]", file);
}

static void print_waits(const char *key, const struct tarn_wait *waits, uint32_t count, FILE *file)
{
    fprintf(file, ",\n\"%s\":[", key);
    for (uint32_t i = 0; i < count; i++)
        fprintf(file, "%s\n[%" PRIu32 ",%" PRIu32 "]", i > 0 ? "," : "", waits[i].op, waits[i].on);
    fputs(count > 0 ? "\n]" : "]", file);
}

static void print_places(const char *key, const struct tarn_place *places, uint32_t count,
                         FILE *file)
{
    fprintf(file, ",\n\"%s\":[", key);
    for (uint32_t i = 0; i < count; i++)
        fprintf(file, "%s\n[%" PRIu32 ",%" PRIu64 ",%" PRIu64 "]", i > 0 ? "," : "", places[i].id,
                places[i].offset, places[i].size);
    fputs(count > 0 ? "\n]" : "]", file);
}

static void print_bound(const struct tarn_plan *plan, FILE *file)
{
    if (!plan->threshold) {
        fputs("null,\n\"certificate\":null", file);
        return;
    }
    fprintf(file, "%" PRIu64 ",\n\"certificate\":{\"thresholds\":", plan->bound);
    tarn_json_write_ids(file, plan->threshold, plan->streams_count);
    fputs(",\"gaps\":", file);
    tarn_json_write_ids(file, plan->gaps, plan->gaps_count);
    fputc('}', file);
}

static void print_head(const struct tarn_plan *plan, FILE *file)
{
    fputs("{\"format\":\"tarn.plan\",\"version\":1,\"name\":", file);
    tarn_json_write_string(file, plan->graph->name);
    fprintf(file, ",\n\"source_hash\":\"%s\",\n\"graph_hash\":\"%s\"",
            tarn_hash_format(plan->source_hash).text, tarn_hash_format(plan->graph->hash).text);
    if (plan->transformed) {
        fputs(",\n\"graph\":", file);
        tarn_graph_write(plan->graph, file);
    }
    fputs(",\n\"method\":", file);
    tarn_json_write_string(file, plan->method ? plan->method : "");
    fprintf(file,
            ",\n\"alignment\":%" PRIu64 ",\n\"footprint_bytes\":%" PRIu64 ",\n\"bound_bytes\":",
            plan->alignment, plan->footprint);
    print_bound(plan, file);
    fprintf(file, ",\n\"persistent_bytes\":%" PRIu64, plan->persistent);
}

static void print_plan(const void *subject, FILE *file)
{
    const struct tarn_plan *plan = subject;
    print_head(plan, file);
    print_streams(plan, file);
    print_waits("waits", plan->waits, plan->waits_count, file);
    print_waits("boundary_waits", plan->boundary_waits, plan->boundary_waits_count, file);
    print_places("storages", plan->storages, plan->storages_count, file);
    print_places("workspaces", plan->workspaces, plan->workspaces_count, file);
    print_places("persistent", plan->places_persistent, plan->places_persistent_count, file);
    fputs("}\n", file);
}

enum tarn_status tarn_plan_save(const struct tarn_plan *plan, const char *path,
                                struct tarn_error *error)
{
    tarn_error_clear(error);
    if (tarn_text_is_named(path, "csv")) return tarn_plan_save_intervals(plan, path, error);
    if (plan->footprint > TARN_JSON_INTEGER_MAX || plan->persistent > TARN_JSON_INTEGER_MAX ||
        plan->alignment > TARN_JSON_INTEGER_MAX)
        return tarn_error_set(error, TARN_BAD_INPUT,
                              "%s: the plan needs more than 2^53 - 1 bytes, or is aligned to more, "
                              "which a plan file cannot say",
                              path);
    return tarn_text_save(path, print_plan, plan, error);
}

/* ---- Reading: the head ---- */

enum {
    FORMAT,
    VERSION,
    NAME,
    SOURCE_HASH,
    GRAPH_HASH,
    GRAPH,
    METHOD,
    ALIGNMENT,
    FOOTPRINT,
    BOUND,
    CERTIFICATE,
    PERSISTENT_BYTES,
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
    [GRAPH] = {"graph", false},
    [METHOD] = {"method", true},
    [ALIGNMENT] = {"alignment", true},
    [FOOTPRINT] = {"footprint_bytes", true},
    [BOUND] = {"bound_bytes", true},
    [CERTIFICATE] = {"certificate", true},
    [PERSISTENT_BYTES] = {"persistent_bytes", false},
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
    json_t *fields[COUNT_OF(plan_fields)];
};

static struct tarn_json_at field_at(size_t field)
{
    return tarn_json_in(NULL, plan_fields[field].name, 0);
}

static enum tarn_status read_hash(struct loader *loader, size_t field, struct tarn_hash *hash)
{
    struct tarn_json_at at = field_at(field);
    const char *text = NULL;
    enum tarn_status status = tarn_json_string(&loader->report, &at, loader->fields[field], &text);
    if (!status && !tarn_hash_parse(text, hash))
        status =
            tarn_json_bad(&loader->report, &at, "must be 32 lower-case hexadecimal digits, not %s",
                          tarn_quote(text).text);
    return status;
}

static enum tarn_status read_size(struct loader *loader, size_t field, uint64_t *size)
{
    struct tarn_json_at at = field_at(field);
    return tarn_json_integer(&loader->report, &at, loader->fields[field], TARN_JSON_INTEGER_MAX,
                             size);
}

/* The final graph: embedded, or the source graph itself. */
static enum tarn_status read_graph(struct loader *loader)
{
    struct tarn_plan *plan = loader->plan;
    struct tarn_report inside = loader->report;
    struct tarn_json_at at = field_at(GRAPH_HASH);
    struct tarn_hash hash = {{0}};
    enum tarn_status status = read_hash(loader, SOURCE_HASH, &plan->source_hash);
    if (!status) status = read_hash(loader, GRAPH_HASH, &hash);
    if (status != TARN_OK) return status;
    plan->transformed = loader->fields[GRAPH] && !json_is_null(loader->fields[GRAPH]);
    if (!plan->transformed) {
        plan->graph = tarn_graph_retain(loader->source);
        if (tarn_hash_equal(hash, plan->source_hash)) return TARN_OK;
        return tarn_json_bad(&loader->report, &at,
                             "differs from source_hash, but the plan has no graph of its own");
    }
    inside.base = "/graph";
    status = tarn_graph_decode(&inside, loader->fields[GRAPH], &plan->graph);
    if (!status && !tarn_hash_equal(hash, plan->graph->hash))
        status = tarn_json_bad(&loader->report, &at, "is not the hash of the graph in the plan, %s",
                               tarn_hash_format(plan->graph->hash).text);
    return status;
}

/* A list of numbers that fit 32 bits. */
static enum tarn_status read_numbers(struct loader *loader, const struct tarn_json_at *at,
                                     json_t *value, uint32_t **numbers, size_t *count)
{
    enum tarn_status status = tarn_json_array(&loader->report, at, value, count);
    if (status != TARN_OK) return status;
    *numbers = calloc(*count + 1, sizeof **numbers);
    if (!*numbers) return tarn_error_no_memory(loader->report.error);
    for (size_t i = 0; i < *count && !status; i++) {
        struct tarn_json_at here = tarn_json_in(at, NULL, i);
        status = tarn_json_id(&loader->report, &here, json_array_get(value, i), &(*numbers)[i]);
    }
    return status;
}

static enum tarn_status read_gaps(struct loader *loader, const struct tarn_json_at *at,
                                  json_t *value)
{
    struct tarn_plan *plan = loader->plan;
    size_t count = 0;
    enum tarn_status status = read_numbers(loader, at, value, &plan->gaps, &count);
    for (size_t i = 0; i < count && !status; i++) {
        struct tarn_json_at here = tarn_json_in(at, NULL, i);
        if (plan->gaps[i] >= plan->graph->tensors_count)
            status = tarn_json_bad(&loader->report, &here,
                                   "there is no tensor %" PRIu32 "; the graph has %" PRIu32,
                                   plan->gaps[i], plan->graph->tensors_count);
        else if (i > 0 && plan->gaps[i] <= plan->gaps[i - 1])
            status = tarn_json_bad(&loader->report, &here, "gaps must ascend");
    }
    plan->gaps_count = (uint32_t)count;
    return status;
}

static enum tarn_status read_certificate(struct loader *loader)
{
    static const struct tarn_json_field fields[] = {{"thresholds", true}, {"gaps", true}};
    struct tarn_json_at at = field_at(CERTIFICATE);
    struct tarn_json_at thresholds_at = tarn_json_in(&at, "thresholds", 0),
                        gaps_at = tarn_json_in(&at, "gaps", 0);
    json_t *values[COUNT_OF(fields)];
    size_t count = 0;
    enum tarn_status status = tarn_json_fields(&loader->report, &at, loader->fields[CERTIFICATE],
                                               fields, COUNT_OF(fields), values);
    if (!status)
        status = read_numbers(loader, &thresholds_at, values[0], &loader->plan->threshold, &count);
    if (!status && count != loader->plan->graph->streams_count)
        status = tarn_json_bad(&loader->report, &thresholds_at,
                               "%zu numbers for a graph of %" PRIu32 " streams", count,
                               loader->plan->graph->streams_count);
    return status ? status : read_gaps(loader, &gaps_at, values[1]);
}

static enum tarn_status read_bound(struct loader *loader)
{
    struct tarn_json_at at = field_at(CERTIFICATE);
    bool none = json_is_null(loader->fields[BOUND]);
    enum tarn_status status = none ? TARN_OK : read_size(loader, BOUND, &loader->plan->bound);
    if (status != TARN_OK) return status;
    if (json_is_null(loader->fields[CERTIFICATE]) != none)
        return tarn_json_bad(&loader->report, &at,
                             "must be null just where bound_bytes is: a bound needs its proof");
    return none ? TARN_OK : read_certificate(loader);
}

static enum tarn_status read_head(struct loader *loader)
{
    struct tarn_plan *plan = loader->plan;
    struct tarn_json_at name_at = field_at(NAME), method_at = field_at(METHOD),
                        alignment_at = field_at(ALIGNMENT);
    const char *name = NULL, *method = NULL;
    enum tarn_status status =
        tarn_json_string(&loader->report, &name_at, loader->fields[NAME], &name);
    if (!status)
        status = tarn_json_string(&loader->report, &method_at, loader->fields[METHOD], &method);
    if (!status) status = read_size(loader, ALIGNMENT, &plan->alignment);
    if (!status && !tarn_is_power_of_two(plan->alignment))
        status = tarn_json_bad(&loader->report, &alignment_at,
                               "must be a power of two, not %" PRIu64, plan->alignment);
    if (!status) status = read_size(loader, FOOTPRINT, &plan->footprint);
    if (!status) status = read_bound(loader);
    if (status != TARN_OK) return status;
    plan->method = strdup(method);
    return plan->method ? TARN_OK : tarn_error_no_memory(loader->report.error);
}

/* ---- Reading: lists ---- */

static enum tarn_status read_op(struct loader *loader, const struct tarn_json_at *at, json_t *value,
                                uint32_t *op)
{
    uint32_t count = loader->plan->graph->ops_count;
    enum tarn_status status = tarn_json_id(&loader->report, at, value, op);
    if (!status && *op >= count)
        status =
            tarn_json_bad(&loader->report, at,
                          "there is no op %" PRIu32 "; the graph has %" PRIu32 " ops", *op, count);
    return status;
}

static enum tarn_status read_stream(struct loader *loader, uint32_t s, json_t *value)
{
    struct tarn_json_at streams_at = field_at(STREAMS), at = tarn_json_in(&streams_at, NULL, s);
    struct tarn_plan *plan = loader->plan;
    uint32_t begin = plan->list_begin[s];
    size_t count = 0;
    enum tarn_status status = tarn_json_array(&loader->report, &at, value, &count);
    if (!status && count > plan->graph->ops_count - begin)
        return tarn_json_bad(&loader->report, &at, "the lists have more ops than the graph");
    for (size_t i = 0; i < count && !status; i++) {
        struct tarn_json_at here = tarn_json_in(&at, NULL, i);
        status = read_op(loader, &here, json_array_get(value, i), &plan->list[begin + i]);
    }
    plan->list_begin[s + 1] = begin + (uint32_t)count;
    return status;
}

static enum tarn_status read_streams(struct loader *loader)
{
    struct tarn_json_at at = field_at(STREAMS);
    struct tarn_plan *plan = loader->plan;
    json_t *value = loader->fields[STREAMS];
    size_t count = 0;
    enum tarn_status status = tarn_json_array(&loader->report, &at, value, &count);
    if (status != TARN_OK) return status;
    if (count != plan->graph->streams_count)
        return tarn_json_bad(&loader->report, &at, "%zu lists for a graph of %" PRIu32 " streams",
                             count, plan->graph->streams_count);
    plan->list_begin = calloc(count + 1, sizeof *plan->list_begin);
    plan->list = calloc((size_t)plan->graph->ops_count + 1, sizeof *plan->list);
    if (!plan->list_begin || !plan->list) return tarn_error_no_memory(loader->report.error);
    plan->streams_count = (uint32_t)count;
    for (uint32_t s = 0; s < plan->streams_count && !status; s++)
        status = read_stream(loader, s, json_array_get(value, s));
    return status;
}

/* A list's length, as far as it makes sense: more records than ids allow are an error. */
static enum tarn_status read_count(struct loader *loader, size_t field, uint64_t max, size_t *count)
{
    struct tarn_json_at at = field_at(field);
    enum tarn_status status = tarn_json_array(&loader->report, &at, loader->fields[field], count);
    if (!status && *count > max)
        status = tarn_json_bad(&loader->report, &at,
                               "has %zu records, at most %" PRIu64 " make sense", *count, max);
    return status;
}

/* Checks that a record is a list of `count` elements. */
static enum tarn_status check_record(struct loader *loader, const struct tarn_json_at *at,
                                     json_t *value, size_t count, const char *what)
{
    size_t found = 0;
    enum tarn_status status = tarn_json_array(&loader->report, at, value, &found);
    if (!status && found != count)
        status = tarn_json_bad(&loader->report, at, "must be %s, not a list of %zu", what, found);
    return status;
}

/* ---- Reading: waits ---- */

static enum tarn_status read_wait(struct loader *loader, const struct tarn_json_at *at,
                                  json_t *value, struct tarn_wait *wait)
{
    const struct tarn_graph *graph = loader->plan->graph;
    struct tarn_json_at op_at = tarn_json_in(at, NULL, 0), on_at = tarn_json_in(at, NULL, 1);
    enum tarn_status status = check_record(loader, at, value, 2, "[op, op that it waits for]");
    if (!status) status = read_op(loader, &op_at, json_array_get(value, 0), &wait->op);
    if (!status) status = read_op(loader, &on_at, json_array_get(value, 1), &wait->on);
    if (!status && graph->ops[wait->op].stream == graph->ops[wait->on].stream)
        status =
            tarn_json_bad(&loader->report, at,
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
static enum tarn_status refuse_twins(struct loader *loader, size_t field,
                                     const struct tarn_wait *waits, size_t count)
{
    struct tarn_json_at at = field_at(field);
    enum tarn_status status = TARN_OK;
    struct tarn_wait *sorted = malloc((count + 1) * sizeof *sorted);
    if (!sorted) return tarn_error_no_memory(loader->report.error);
    if (count > 0) memcpy(sorted, waits, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, compare_waits);
    for (size_t i = 1; i < count && !status; i++) {
        if (compare_waits(&sorted[i - 1], &sorted[i]) == 0)
            status = tarn_json_bad(&loader->report, &at, "[%" PRIu32 ",%" PRIu32 "] is there twice",
                                   sorted[i].op, sorted[i].on);
    }
    free(sorted);
    return status;
}

static enum tarn_status read_waits(struct loader *loader, size_t field, struct tarn_wait **waits,
                                   uint32_t *waits_count)
{
    struct tarn_json_at at = field_at(field);
    size_t count = 0;
    enum tarn_status status = read_count(loader, field, TARN_NONE / 2, &count);
    if (status != TARN_OK) return status;
    *waits = calloc(count + 1, sizeof **waits);
    if (!*waits) return tarn_error_no_memory(loader->report.error);
    *waits_count = (uint32_t)count;
    for (size_t i = 0; i < count && !status; i++) {
        struct tarn_json_at here = tarn_json_in(&at, NULL, i);
        status = read_wait(loader, &here, json_array_get(loader->fields[field], i), &(*waits)[i]);
    }
    if (!status) status = refuse_twins(loader, field, *waits, count);
    return status;
}

/* ---- Reading: places ---- */

static enum tarn_status read_place(struct loader *loader, const struct tarn_json_at *at,
                                   json_t *value, uint32_t ids_count, struct tarn_place *place)
{
    struct tarn_json_at id_at = tarn_json_in(at, NULL, 0), offset_at = tarn_json_in(at, NULL, 1),
                        size_at = tarn_json_in(at, NULL, 2);
    enum tarn_status status = check_record(loader, at, value, 3, "[id, offset, size]");
    if (!status)
        status = tarn_json_id(&loader->report, &id_at, json_array_get(value, 0), &place->id);
    if (!status && place->id >= ids_count)
        status = tarn_json_bad(&loader->report, &id_at,
                               "there is no such id; the graph's end at %" PRIu32, ids_count);
    if (!status)
        status = tarn_json_integer(&loader->report, &offset_at, json_array_get(value, 1),
                                   TARN_JSON_INTEGER_MAX, &place->offset);
    if (!status)
        status = tarn_json_integer(&loader->report, &size_at, json_array_get(value, 2),
                                   TARN_JSON_INTEGER_MAX, &place->size);
    return status;
}

static int compare_places(const void *a, const void *b)
{
    uint32_t x = ((const struct tarn_place *)a)->id, y = ((const struct tarn_place *)b)->id;
    return x < y ? -1 : x > y;
}

static enum tarn_status sort_places(struct loader *loader, size_t field, struct tarn_place *places,
                                    size_t count)
{
    struct tarn_json_at at = field_at(field);
    qsort(places, count, sizeof *places, compare_places);
    for (size_t i = 1; i < count; i++) {
        if (places[i - 1].id == places[i].id)
            return tarn_json_bad(&loader->report, &at, "id %" PRIu32 " has two places",
                                 places[i].id);
    }
    return TARN_OK;
}

static enum tarn_status read_places(struct loader *loader, size_t field, uint32_t ids_count,
                                    struct tarn_place **places, uint32_t *places_count)
{
    struct tarn_json_at at = field_at(field);
    size_t count = 0;
    enum tarn_status status = read_count(loader, field, ids_count, &count);
    if (status != TARN_OK) return status;
    *places = calloc(count + 1, sizeof **places);
    if (!*places) return tarn_error_no_memory(loader->report.error);
    *places_count = (uint32_t)count;
    for (size_t i = 0; i < count && !status; i++) {
        struct tarn_json_at here = tarn_json_in(&at, NULL, i);
        status = read_place(loader, &here, json_array_get(loader->fields[field], i), ids_count,
                            &(*places)[i]);
    }
    return status ? status : sort_places(loader, field, *places, count);
}

/* The highest reserved end, for files that do not say how large the persistent part is. */
static uint64_t persistent_end(const struct tarn_plan *plan)
{
    uint64_t end = 0;
    for (uint32_t i = 0; i < plan->places_persistent_count; i++) {
        const struct tarn_place *place = &plan->places_persistent[i];
        if (place->offset + place->size > end) end = place->offset + place->size;
    }
    return tarn_size_round_up(end, plan->alignment, &end) ? end : UINT64_MAX;
}

/* ---- Reading: the whole ---- */

static enum tarn_status read_lists(struct loader *loader)
{
    struct tarn_plan *plan = loader->plan;
    uint32_t ops = plan->graph->ops_count, tensors = plan->graph->tensors_count;
    enum tarn_status status = read_streams(loader);
    if (!status) status = read_waits(loader, WAITS, &plan->waits, &plan->waits_count);
    if (!status)
        status =
            read_waits(loader, BOUNDARY_WAITS, &plan->boundary_waits, &plan->boundary_waits_count);
    if (!status)
        status = read_places(loader, STORAGES, tensors, &plan->storages, &plan->storages_count);
    if (!status)
        status = read_places(loader, WORKSPACES, ops, &plan->workspaces, &plan->workspaces_count);
    if (!status)
        status = read_places(loader, PERSISTENT, tensors, &plan->places_persistent,
                             &plan->places_persistent_count);
    if (status != TARN_OK) return status;
    plan->persistent = persistent_end(plan);
    return read_size(loader, PERSISTENT_BYTES, &plan->persistent);
}

/* A plan that was made for another graph is told as that, not as the first id that does not fit:
 * then its lists are left unread. */
static enum tarn_status read_plan(struct loader *loader, json_t *document, bool of_any_graph)
{
    enum tarn_status status = tarn_json_check_format(&loader->report, document, "tarn.plan");
    if (!status)
        status = tarn_json_fields(&loader->report, NULL, document, plan_fields,
                                  COUNT_OF(plan_fields), loader->fields);
    if (!status) status = read_graph(loader);
    bool is_foreign = !tarn_hash_equal(loader->plan->source_hash, loader->source->hash);
    if (status != TARN_OK || (is_foreign && !of_any_graph)) return status;
    status = read_head(loader);
    return status ? status : read_lists(loader);
}

/* NULL, with the status, when it cannot be read. */
static struct tarn_plan *open_plan(const char *path, struct tarn_graph *source, bool of_any_graph,
                                   enum tarn_status *status, struct tarn_error *error)
{
    struct loader loader = {.report = {.error = error}, .source = source};
    json_t *document = NULL;
    tarn_error_clear(error);
    loader.plan = calloc(1, sizeof *loader.plan);
    *status = loader.plan ? TARN_OK : tarn_error_no_memory(error);
    if (!*status) atomic_init(&loader.plan->references, 1);
    if (!*status) *status = tarn_json_load(&loader.report, path, &document);
    if (!*status) *status = read_plan(&loader, document, of_any_graph);
    json_decref(document);
    if (*status == TARN_OK) return loader.plan;
    tarn_plan_destroy(loader.plan);
    return NULL;
}

enum tarn_status tarn_plan_load(const char *path, struct tarn_graph *graph,
                                enum tarn_plan_trust trust, struct tarn_plan **plan,
                                struct tarn_error *error)
{
    enum tarn_status status;
    *plan = open_plan(path, graph, trust == TARN_TRUST, &status, error);
    if (status != TARN_OK) return status;
    status = trust == TARN_TRUST ? tarn_plan_check_form(*plan, error)
                                 : tarn_plan_verify(*plan, graph, NULL, error);
    if (status == TARN_OK) return TARN_OK;
    tarn_plan_destroy(*plan);
    *plan = NULL;
    return status;
}

enum tarn_status tarn_plan_verify_file(const char *path, struct tarn_graph *source,
                                       struct tarn_verdict **verdict, struct tarn_error *error)
{
    enum tarn_status status;
    if (verdict) *verdict = NULL;
    struct tarn_plan *plan = open_plan(path, source, false, &status, error);
    if (plan) status = tarn_plan_verify(plan, source, verdict, error);
    tarn_plan_destroy(plan);
    return status;
}
