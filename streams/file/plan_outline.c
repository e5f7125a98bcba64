/* Reads the outline of a plan file: its content, without its graph. Unknown fields are ignored, so
 * that files of other versions of Tarn can be compared. Cost: linear, plus sorting of places. */
#include "graph_read.h"
#include "plan_read.h"
#include "streams/base/memory.h"
#include "streams/graph/hash.h"

struct outline {
    struct tarn_plan_outline shown; /* first: callers have a pointer to it */
    struct tarn_region region;      /* of names and places */
};

/* Finds a required member. */
static enum tarn_status find(const struct tarn_json_at *object, const char *name,
                             struct tarn_json_at *member)
{
    *member = tarn_json_in(object, name);
    return member->value ? TARN_OK : tarn_json_bad(object, "the field \"%s\" is missing", name);
}

static enum tarn_status read_size(const struct tarn_json_at *object, const char *name,
                                  uint64_t *size)
{
    struct tarn_json_at at;
    enum tarn_status status = find(object, name, &at);
    return status != TARN_OK ? status : tarn_json_integer(&at, size);
}

static enum tarn_status read_text(const struct tarn_json_at *document, const char *name,
                                  struct tarn_region *region, const char **text)
{
    struct tarn_json_at at;
    enum tarn_status status = find(document, name, &at);
    if (status == TARN_OK) status = tarn_json_string(&at, text);
    if (status != TARN_OK) return status;
    *text = tarn_region_string(region, *text);
    return *text ? TARN_OK : tarn_error_no_memory(document->report->error);
}

static enum tarn_status read_hash(const struct tarn_json_at *document, const char *name,
                                  struct tarn_hash *hash)
{
    struct tarn_json_at at;
    const char *text;
    enum tarn_status status = find(document, name, &at);
    if (status == TARN_OK) status = tarn_json_string(&at, &text);
    if (status == TARN_OK && !tarn_hash_parse(text, hash))
        status = tarn_json_bad(&at, "must be 32 lower-case hexadecimal digits");
    return status;
}

/* null: unknown. */
static enum tarn_status read_bound(const struct tarn_json_at *object, uint64_t *bound)
{
    struct tarn_json_at at;
    enum tarn_status status = find(object, "bound_bytes", &at);
    return status || tarn_json_is_null(&at) ? status : tarn_json_integer(&at, bound);
}

static enum tarn_status count_list(const struct tarn_json_at *document, const char *name,
                                   size_t *count)
{
    struct tarn_json_at at;
    enum tarn_status status = find(document, name, &at);
    if (status == TARN_OK) status = tarn_json_array(&at, count);
    struct tarn_json_at item = tarn_json_items(&at);
    while (tarn_json_next(&item, &status)) continue; /* the syntax of each item is checked */
    return status;
}

static enum tarn_status count_launches(const struct tarn_json_at *document, size_t *launches)
{
    struct tarn_json_at lists;
    size_t count = 0;
    enum tarn_status status = find(document, "streams", &lists);
    if (status == TARN_OK) status = tarn_json_array(&lists, &count);
    struct tarn_json_at list = tarn_json_items(&lists);
    while (tarn_json_next(&list, &status)) {
        status = tarn_json_array(&list, &count);
        *launches += count;
    }
    return status;
}

static enum tarn_status read_places(const struct tarn_json_at *document, const char *name,
                                    struct tarn_region *region, struct tarn_places *places)
{
    struct tarn_json_at at;
    struct tarn_place *read = NULL;
    uint32_t count = 0;
    enum tarn_status status = find(document, name, &at);
    if (status == TARN_OK) status = tarn_plan_read_places(&at, TARN_NONE, region, &read, &count);
    if (status != TARN_OK) return status;
    struct tarn_placed *shown = tarn_region_take(region, count, sizeof *shown);
    if (!shown) return tarn_error_no_memory(document->report->error);
    for (uint32_t i = 0; i < count; i++)
        shown[i] = (struct tarn_placed){read[i].id, read[i].offset, read[i].size};
    *places = (struct tarn_places){shown, count};
    return TARN_OK;
}

static enum tarn_status read_space(const struct tarn_json_at *at, struct tarn_outlined_space *space)
{
    if (!tarn_json_is_object(at)) return tarn_json_bad(at, "must be an object");
    enum tarn_status status = read_size(at, "footprint_bytes", &space->footprint);
    if (status == TARN_OK) status = read_size(at, "persistent_bytes", &space->persistent);
    return status != TARN_OK ? status : read_bound(at, &space->bound);
}

/* The spaces of a plan whose graph declares them. */
static enum tarn_status read_spaces(const struct tarn_json_at *document, struct tarn_region *region,
                                    struct tarn_plan_outline *shown)
{
    struct tarn_json_at at = tarn_json_in(document, "spaces");
    size_t count = 0;
    if (!at.value) return TARN_OK;
    enum tarn_status status = tarn_json_array(&at, &count);
    if (status != TARN_OK) return status;
    struct tarn_outlined_space *spaces = tarn_region_take(region, count, sizeof *spaces);
    if (!spaces) return tarn_error_no_memory(document->report->error);
    struct tarn_json_at space = tarn_json_items(&at);
    while (tarn_json_next(&space, &status)) status = read_space(&space, &spaces[space.index]);
    shown->spaces = spaces;
    shown->spaces_count = count;
    return status;
}

/* The graph that the file of a transformed plan embeds. */
static enum tarn_status read_graph(const struct tarn_json_at *document, struct tarn_graph **graph)
{
    struct tarn_json_at at = tarn_json_in(document, "graph");
    if (!at.value || tarn_json_is_null(&at)) return TARN_OK;
    return tarn_graph_decode_inside(&at, graph);
}

static enum tarn_status read_outline(const struct tarn_json_at *document, struct outline *outline)
{
    struct tarn_plan_outline *shown = &outline->shown;
    struct tarn_region *region = &outline->region;
    shown->struct_size = sizeof *shown;
    enum tarn_status status = tarn_json_check_format(document, "tarn.plan");
    if (status == TARN_OK) status = read_text(document, "name", region, &shown->name);
    if (status == TARN_OK) status = read_text(document, "method", region, &shown->method);
    if (status == TARN_OK) status = read_hash(document, "source_hash", &shown->source_hash);
    if (status == TARN_OK) status = read_hash(document, "graph_hash", &shown->graph_hash);
    if (status == TARN_OK) status = read_size(document, "alignment", &shown->alignment);
    if (status == TARN_OK) status = read_size(document, "footprint_bytes", &shown->footprint);
    if (status == TARN_OK) status = read_bound(document, &shown->bound);
    if (status == TARN_OK) status = count_launches(document, &shown->launches);
    if (status == TARN_OK) status = count_list(document, "waits", &shown->waits);
    if (status == TARN_OK) status = count_list(document, "boundary_waits", &shown->boundary_waits);
    if (status == TARN_OK) status = read_places(document, "storages", region, &shown->storages);
    if (status == TARN_OK) status = read_places(document, "workspaces", region, &shown->workspaces);
    if (status == TARN_OK) status = read_places(document, "persistent", region, &shown->persistent);
    if (status == TARN_OK) status = read_spaces(document, region, shown);
    return status != TARN_OK ? status : read_graph(document, &shown->graph);
}

enum tarn_status tarn_plan_outline_load(const char *path, struct tarn_plan_outline **outline,
                                        struct tarn_error *error)
{
    if (outline) *outline = NULL;
    if (!path || !outline) return tarn_error_null(error, __func__);
    struct tarn_report report = {.error = error, .text_max = TARN_TEXT_MAX};
    struct tarn_json_at document;
    char *text = NULL;
    tarn_error_clear(error);
    struct outline *made = tarn_take_zeros(1, sizeof *made);
    if (!made) return tarn_error_no_memory(error);
    enum tarn_status status =
        tarn_json_load(&report, &(struct tarn_reader){.name = path}, &text, &document);
    if (status == TARN_OK) status = read_outline(&document, made);
    tarn_json_close(&document, text);
    if (status == TARN_OK)
        *outline = &made->shown;
    else
        tarn_plan_outline_destroy(&made->shown);
    return status;
}

void tarn_plan_outline_destroy(struct tarn_plan_outline *shown)
{
    if (!shown) return;
    struct outline *outline = (struct outline *)shown;
    tarn_graph_destroy(shown->graph);
    tarn_region_finish(&outline->region);
    tarn_free(outline);
}
