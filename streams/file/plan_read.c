/* `tarn.plan` version 1: what the planner found, for anybody's runtime and anybody's checker. The
 * loader takes nothing on trust: types, ranges, duplicates and the graph's hash are checked
 * here, everything about meaning by the verifier. Under TARN_TRUST a plan must still be complete
 * and in range, so that a session can replay what a bad plan does without harm to itself.
 * Cost: linear, plus sorting of waits and places. */
#include <inttypes.h>
#include <string.h>

#include "graph_read.h"
#include "plan_read_lists.h"
#include "streams/base/checked.h"
#include "streams/base/memory.h"
#include "streams/graph/hash.h"
#include "streams/text/text_file.h"
#include "streams/verify/verify.h"

#define COUNT_OF(array) (sizeof(array) / sizeof(array)[0])

/* ---- The head ---- */

enum {
    FORMAT,
    VERSION,
    NAME,
    SOURCE_HASH,
    GRAPH_HASH,
    PAD_GROUPS,
    GRAPH,
    METHOD,
    ALIGNMENT,
    FOOTPRINT,
    BOUND,
    CERTIFICATE,
    SPACES,
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
    [PAD_GROUPS] = {"pad_groups", false},
    [GRAPH] = {"graph", false},
    [METHOD] = {"method", true},
    [ALIGNMENT] = {"alignment", true},
    [FOOTPRINT] = {"footprint_bytes", true},
    [BOUND] = {"bound_bytes", true},
    [CERTIFICATE] = {"certificate", true},
    [SPACES] = {"spaces", false},
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
    const struct tarn_json *fields[COUNT_OF(plan_fields)];
};

static bool is_null(const struct tarn_json *value)
{
    return tarn_json_type_of(value) == TARN_JSON_NULL;
}

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

static enum tarn_status read_pad_groups(struct loader *loader)
{
    struct tarn_json_at at = field_at(PAD_GROUPS);
    const char *word = NULL;
    if (!loader->fields[PAD_GROUPS]) return TARN_OK;
    enum tarn_status status =
        tarn_json_string(&loader->report, &at, loader->fields[PAD_GROUPS], &word);
    if (status != TARN_OK) return status;
    bool is_padded = strcmp(word, "padded") == 0;
    loader->plan->pad_groups = is_padded ? TARN_GROUPS_PADDED : TARN_GROUPS_EXACT;
    if (is_padded || strcmp(word, "exact") == 0) return TARN_OK;
    return tarn_json_bad(&loader->report, &at, "must be \"exact\" or \"padded\", not %s",
                         tarn_quote(word).text);
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
    if (!status) status = read_pad_groups(loader);
    if (status != TARN_OK) return status;
    plan->transformed = loader->fields[GRAPH] && !is_null(loader->fields[GRAPH]);
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

static enum tarn_status read_bound(struct loader *loader)
{
    struct tarn_json_at at = field_at(CERTIFICATE);
    bool none = is_null(loader->fields[BOUND]);
    enum tarn_status status = none ? TARN_OK : read_size(loader, BOUND, &loader->plan->claim.bound);
    if (status != TARN_OK) return status;
    if (is_null(loader->fields[CERTIFICATE]) != none)
        return tarn_json_bad(&loader->report, &at,
                             "must be null just where bound_bytes is: a bound needs its proof");
    return none ? TARN_OK
                : tarn_plan_read_certificate(&loader->report, &at, loader->fields[CERTIFICATE],
                                             loader->plan, &loader->plan->claim);
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
    plan->method = tarn_region_string(&plan->region, method);
    return plan->method ? TARN_OK : tarn_error_no_memory(loader->report.error);
}

/* The highest reserved end, for files that do not say how large the persistent part is. */
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

static enum tarn_status read_waits(struct loader *loader, size_t field, struct tarn_wait **waits,
                                   uint32_t *count)
{
    struct tarn_json_at at = field_at(field);
    return tarn_plan_read_waits(&loader->report, &at, loader->fields[field], loader->plan, waits,
                                count);
}

static enum tarn_status read_places(struct loader *loader, size_t field, uint32_t ids_count,
                                    struct tarn_place **places, uint32_t *count)
{
    struct tarn_json_at at = field_at(field);
    return tarn_plan_read_places(&loader->report, &at, loader->fields[field], ids_count,
                                 &loader->plan->region, places, count);
}

static enum tarn_status read_lists(struct loader *loader)
{
    struct tarn_plan *plan = loader->plan;
    struct tarn_json_at streams_at = field_at(STREAMS);
    uint32_t ops = plan->graph->ops_count, tensors = plan->graph->tensors_count;
    enum tarn_status status =
        tarn_plan_read_streams(&loader->report, &streams_at, loader->fields[STREAMS], plan);
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
    status = read_size(loader, PERSISTENT_BYTES, &plan->persistent);
    struct tarn_json_at spaces_at = field_at(SPACES);
    if (!status && loader->fields[SPACES])
        status = tarn_plan_read_spaces(&loader->report, &spaces_at, loader->fields[SPACES], plan);
    return status;
}

/* A plan that was made for another graph is told as that, not as the first id that does not fit:
 * then its lists are left unread. */
static enum tarn_status read_plan(struct loader *loader, const struct tarn_json *document,
                                  bool of_any_graph)
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
static struct tarn_plan *open_plan(const struct tarn_reader *from, struct tarn_graph *source,
                                   bool of_any_graph, enum tarn_status *status,
                                   struct tarn_error *error)
{
    struct loader loader = {.report = {.error = error, .text_max = TARN_TEXT_MAX},
                            .source = source};
    if (source->text_max > 0) loader.report.text_max = source->text_max;
    const struct tarn_json *document = NULL;
    char *text = NULL;
    tarn_error_clear(error);
    loader.plan = tarn_take_zeros(1, sizeof *loader.plan);
    *status = loader.plan ? TARN_OK : tarn_error_no_memory(error);
    if (!*status) atomic_init(&loader.plan->references, 1);
    if (!*status) *status = tarn_json_load(&loader.report, from, &text, &document);
    if (!*status) *status = read_plan(&loader, document, of_any_graph);
    tarn_free(text);
    if (*status == TARN_OK) return loader.plan;
    tarn_plan_destroy(loader.plan);
    return NULL;
}

static enum tarn_status load_plan(const struct tarn_reader *from, struct tarn_graph *graph,
                                  enum tarn_plan_trust trust, struct tarn_plan **plan,
                                  struct tarn_error *error)
{
    enum tarn_status status;
    *plan = open_plan(from, graph, trust == TARN_TRUST, &status, error);
    if (status != TARN_OK) return status;
    status = trust == TARN_TRUST ? tarn_plan_check_form(*plan, error)
                                 : tarn_plan_verify(*plan, graph, NULL, error);
    if (status == TARN_OK) return TARN_OK;
    tarn_plan_destroy(*plan);
    *plan = NULL;
    return status;
}

enum tarn_status tarn_plan_load(const char *path, struct tarn_graph *graph,
                                enum tarn_plan_trust trust, struct tarn_plan **plan,
                                struct tarn_error *error)
{
    if (plan) *plan = NULL;
    if (!path || !graph || !plan) return tarn_error_null(error, __func__);
    return load_plan(&(struct tarn_reader){.name = path}, graph, trust, plan, error);
}

enum tarn_status tarn_plan_read(const struct tarn_reader *given, struct tarn_graph *graph,
                                enum tarn_plan_trust trust, struct tarn_plan **plan,
                                struct tarn_error *error)
{
    struct tarn_reader reader;
    if (plan) *plan = NULL;
    if (!graph || !plan) return tarn_error_null(error, __func__);
    tarn_error_clear(error);
    enum tarn_status status = tarn_reader_check(&reader, given, __func__, error);
    return status ? status : load_plan(&reader, graph, trust, plan, error);
}

enum tarn_status tarn_plan_verify_file(const char *path, struct tarn_graph *source,
                                       struct tarn_verdict **verdict, struct tarn_error *error)
{
    if (verdict) *verdict = NULL;
    if (!path || !source) return tarn_error_null(error, __func__);
    enum tarn_status status;
    struct tarn_plan *plan =
        open_plan(&(struct tarn_reader){.name = path}, source, false, &status, error);
    if (plan) status = tarn_plan_verify(plan, source, verdict, error);
    tarn_plan_destroy(plan);
    return status;
}
