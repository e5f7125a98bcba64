/* `tarn.plan` version 1: what the planner found, for anybody's runtime and anybody's checker. The
 * loader takes nothing on trust: types, ranges, duplicates and the graph's hash are checked
 * here, everything about meaning by the verifier. Under TARN_TRUST a plan must still be complete
 * and in range, so that a session can replay what a bad plan does without harm to itself.
 * Cost: linear, plus sorting of waits and places. */
#include <inttypes.h>
#include <string.h>

#include "graph_read.h"
#include "plan_read_lists.h"
#include "streams/base/array.h"
#include "streams/base/checked.h"
#include "streams/base/memory.h"
#include "streams/graph/hash.h"
#include "streams/text/text_file.h"
#include "streams/verify/verify.h"

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
    if (!status && !tarn_hash_parse(text, hash))
        status = tarn_json_bad(at, "must be 32 lower-case hexadecimal digits, not %s",
                               tarn_quote(text).text);
    return status;
}

static enum tarn_status read_pad_groups(const struct tarn_json_at *at, struct tarn_plan *plan)
{
    const char *word = NULL;
    enum tarn_status status = tarn_json_string(at, &word);
    if (status || !word) return status;
    bool is_padded = strcmp(word, "padded") == 0;
    plan->pad_groups = is_padded ? TARN_GROUPS_PADDED : TARN_GROUPS_EXACT;
    if (is_padded || strcmp(word, "exact") == 0) return TARN_OK;
    return tarn_json_bad(at, "must be \"exact\" or \"padded\", not %s", tarn_quote(word).text);
}

/* No hash covers name and meta, and no transform changes them: they are the source graph's. */
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
    if (!status) status = read_hash(at, &hash);
    if (!status) status = read_pad_groups(&loader->fields[PAD_GROUPS], plan);
    if (status != TARN_OK) return status;
    plan->transformed = graph->value && !tarn_json_is_null(graph);
    if (!plan->transformed) {
        plan->graph = tarn_graph_retain(loader->source);
        if (tarn_hash_equal(hash, plan->source_hash)) return TARN_OK;
        return tarn_json_bad(at, "differs from source_hash, but the plan has no graph of its own");
    }
    status = tarn_graph_decode_inside(graph, &plan->graph);
    if (!status) status = take_names(loader);
    if (!status && !tarn_hash_equal(hash, plan->graph->hash))
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
    if (!status) status = tarn_json_string(&fields[METHOD], &method);
    if (!status && fields[ASKED].value)
        status = tarn_json_keep(&fields[ASKED], &plan->region, &plan->asked);
    if (!status) status = tarn_json_integer(&fields[ALIGNMENT], &plan->alignment);
    if (!status && !tarn_is_power_of_two(plan->alignment))
        status = tarn_json_bad(&fields[ALIGNMENT], "must be a power of two, not %" PRIu64,
                               plan->alignment);
    if (!status) status = tarn_json_integer(&fields[FOOTPRINT], &plan->footprint);
    if (!status)
        status = tarn_plan_read_claim(&fields[BOUND], &fields[CERTIFICATE], plan, &plan->claim);
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

static enum tarn_status read_lists(struct loader *loader)
{
    struct tarn_plan *plan = loader->plan;
    const struct tarn_json_at *fields = loader->fields;
    uint32_t ops = plan->graph->ops_count, tensors = plan->graph->tensors_count;
    enum tarn_status status = tarn_plan_read_streams(&fields[STREAMS], plan);
    if (!status)
        status = tarn_plan_read_waits(&fields[WAITS], plan, &plan->waits, &plan->waits_count);
    if (!status)
        status = tarn_plan_read_waits(&fields[BOUNDARY_WAITS], plan, &plan->boundary_waits,
                                      &plan->boundary_waits_count);
    if (!status)
        status = tarn_plan_read_places(&fields[STORAGES], tensors, &plan->region, &plan->storages,
                                       &plan->storages_count);
    if (!status)
        status = tarn_plan_read_places(&fields[WORKSPACES], ops, &plan->region, &plan->workspaces,
                                       &plan->workspaces_count);
    if (!status)
        status = tarn_plan_read_places(&fields[PERSISTENT], tensors, &plan->region,
                                       &plan->places_persistent, &plan->places_persistent_count);
    if (status != TARN_OK) return status;
    plan->persistent = persistent_end(plan);
    status = tarn_json_integer(&fields[PERSISTENT_BYTES], &plan->persistent);
    if (status || !fields[SPACES].value) return status;
    return tarn_plan_read_spaces(&fields[SPACES], plan);
}

/* A plan that was made for another graph is told as that, not as the first id that does not fit:
 * then its lists are left unread. */
static enum tarn_status read_plan(struct loader *loader, const struct tarn_json_at *document,
                                  bool of_any_graph)
{
    enum tarn_status status = tarn_json_check_format(document, "tarn.plan");
    if (!status)
        status =
            tarn_json_fields(document, plan_fields, TARN_COUNT_OF(plan_fields), loader->fields);
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
                               : tarn_plan_verify(plan, graph, NULL, error);
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

enum tarn_status tarn_plan_load_with(const char *path, struct tarn_graph *graph,
                                     enum tarn_plan_trust trust,
                                     const struct tarn_verify_options *options,
                                     struct tarn_plan **plan, struct tarn_error *error)
{
    if (plan) *plan = NULL;
    if (!path || !graph || !plan) return tarn_error_null(error, __func__);
    return load_plan(&(struct tarn_reader){.name = path}, graph, trust, options, plan, error);
}

enum tarn_status tarn_plan_load(const char *path, struct tarn_graph *graph,
                                enum tarn_plan_trust trust, struct tarn_plan **plan,
                                struct tarn_error *error)
{
    return tarn_plan_load_with(path, graph, trust, NULL, plan, error);
}

enum tarn_status tarn_plan_read_with(const struct tarn_reader *given, struct tarn_graph *graph,
                                     enum tarn_plan_trust trust,
                                     const struct tarn_verify_options *options,
                                     struct tarn_plan **plan, struct tarn_error *error)
{
    struct tarn_reader reader;
    if (plan) *plan = NULL;
    if (!graph || !plan) return tarn_error_null(error, __func__);
    tarn_error_clear(error);
    enum tarn_status status = tarn_reader_check(&reader, given, __func__, error);
    return status ? status : load_plan(&reader, graph, trust, options, plan, error);
}

enum tarn_status tarn_plan_read(const struct tarn_reader *given, struct tarn_graph *graph,
                                enum tarn_plan_trust trust, struct tarn_plan **plan,
                                struct tarn_error *error)
{
    return tarn_plan_read_with(given, graph, trust, NULL, plan, error);
}

enum tarn_status tarn_plan_verify_file_with(const char *path, struct tarn_graph *source,
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
    if (plan) status = tarn_plan_verify_with(plan, source, &options, verdict, error);
    tarn_plan_destroy(plan);
    return status;
}

enum tarn_status tarn_plan_verify_file(const char *path, struct tarn_graph *source,
                                       struct tarn_verdict **verdict, struct tarn_error *error)
{
    return tarn_plan_verify_file_with(path, source, NULL, verdict, error);
}
