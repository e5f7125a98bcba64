/* The outline of a plan file: what stands in it, read without its graph. Fields that it does not
 * know are left alone, so that files of other versions of Tarn can be compared. Cost: linear, plus
 * sorting of places. */
#include <string.h>

#include "graph_read.h"
#include "plan_read_lists.h"
#include "streams/base/memory.h"
#include "streams/graph/hash.h"

struct outline {
    struct tarn_plan_outline shown; /* first: what callers have a pointer to */
    struct tarn_region region;      /* of names and places */
};

struct reading {
    struct tarn_report report;
    const struct tarn_json *document;
    struct outline *outline;
};

/* The first member of that name, or NULL. */
static const struct tarn_json *member_of(const struct tarn_json *object, const char *name)
{
    struct tarn_json_member member = {0};
    while (tarn_json_next_member(object, &member)) {
        if (strcmp(member.key, name) == 0) return member.value;
    }
    return NULL;
}

/* The same, where there has to be one. */
static const struct tarn_json *find(const struct reading *reading, const char *name,
                                    enum tarn_status *status)
{
    const struct tarn_json *value = member_of(reading->document, name);
    if (!value)
        *status = tarn_json_bad(&reading->report, NULL, "the field \"%s\" is missing", name);
    return value;
}

static enum tarn_status read_size(const struct reading *reading, const char *name, uint64_t *size)
{
    enum tarn_status status = TARN_OK;
    struct tarn_json_at at = tarn_json_in(NULL, name, 0);
    const struct tarn_json *value = find(reading, name, &status);
    return status ? status
                  : tarn_json_integer(&reading->report, &at, value, TARN_JSON_INTEGER_MAX, size);
}

static enum tarn_status read_text(const struct reading *reading, const char *name,
                                  const char **text)
{
    enum tarn_status status = TARN_OK;
    struct tarn_json_at at = tarn_json_in(NULL, name, 0);
    const struct tarn_json *value = find(reading, name, &status);
    if (!status) status = tarn_json_string(&reading->report, &at, value, text);
    if (status != TARN_OK) return status;
    *text = tarn_region_string(&reading->outline->region, *text);
    return *text ? TARN_OK : tarn_error_no_memory(reading->report.error);
}

static enum tarn_status read_hash(const struct reading *reading, const char *name,
                                  struct tarn_hash *hash)
{
    const char *text;
    struct tarn_json_at at = tarn_json_in(NULL, name, 0);
    enum tarn_status status = read_text(reading, name, &text);
    if (!status && !tarn_hash_parse(text, hash))
        status = tarn_json_bad(&reading->report, &at, "must be 32 lower-case hexadecimal digits");
    return status;
}

static enum tarn_status read_bound(const struct reading *reading, uint64_t *bound)
{
    enum tarn_status status = TARN_OK;
    const struct tarn_json *value = find(reading, "bound_bytes", &status);
    if (status || tarn_json_type_of(value) == TARN_JSON_NULL) return status;
    return read_size(reading, "bound_bytes", bound);
}

static enum tarn_status count_list(const struct reading *reading, const char *name, size_t *count)
{
    enum tarn_status status = TARN_OK;
    struct tarn_json_at at = tarn_json_in(NULL, name, 0);
    const struct tarn_json *value = find(reading, name, &status);
    return status ? status : tarn_json_array(&reading->report, &at, value, count);
}

static enum tarn_status count_launches(const struct reading *reading, size_t *launches)
{
    enum tarn_status status = TARN_OK;
    struct tarn_json_at at = tarn_json_in(NULL, "streams", 0);
    const struct tarn_json *lists = find(reading, "streams", &status);
    size_t count = 0;
    if (!status) status = tarn_json_array(&reading->report, &at, lists, &count);
    if (status != TARN_OK) return status;
    size_t s = 0;
    for (const struct tarn_json *list = tarn_json_first(lists); list && !status;
         list = tarn_json_next(list)) {
        struct tarn_json_at here = tarn_json_in(&at, NULL, s++);
        status = tarn_json_array(&reading->report, &here, list, &count);
        *launches += count;
    }
    return status;
}

static enum tarn_status read_places(const struct reading *reading, const char *name,
                                    struct tarn_places *places)
{
    struct tarn_region *region = &reading->outline->region;
    struct tarn_place *read = NULL;
    uint32_t count = 0;
    enum tarn_status status = TARN_OK;
    struct tarn_json_at at = tarn_json_in(NULL, name, 0);
    const struct tarn_json *value = find(reading, name, &status);
    if (!status)
        status =
            tarn_plan_read_places(&reading->report, &at, value, TARN_NONE, region, &read, &count);
    if (status != TARN_OK) return status;
    struct tarn_placed *shown = tarn_region_take(region, count, sizeof *shown);
    if (!shown) return tarn_error_no_memory(reading->report.error);
    for (uint32_t i = 0; i < count; i++)
        shown[i] = (struct tarn_placed){read[i].id, read[i].offset, read[i].size};
    *places = (struct tarn_places){shown, count};
    return TARN_OK;
}

static enum tarn_status read_space_size(const struct reading *reading,
                                        const struct tarn_json_at *space,
                                        const struct tarn_json *object, const char *name,
                                        uint64_t *size)
{
    struct tarn_json_at at = tarn_json_in(space, name, 0);
    const struct tarn_json *value = member_of(object, name);
    if (!value) return tarn_json_bad(&reading->report, space, "the field \"%s\" is missing", name);
    return tarn_json_integer(&reading->report, &at, value, TARN_JSON_INTEGER_MAX, size);
}

static enum tarn_status read_space(const struct reading *reading, const struct tarn_json_at *at,
                                   const struct tarn_json *value, struct tarn_outlined_space *space)
{
    if (tarn_json_type_of(value) != TARN_JSON_OBJECT)
        return tarn_json_bad(&reading->report, at, "must be an object");
    const struct tarn_json *bound = member_of(value, "bound_bytes");
    enum tarn_status status =
        read_space_size(reading, at, value, "footprint_bytes", &space->footprint);
    if (!status)
        status = read_space_size(reading, at, value, "persistent_bytes", &space->persistent);
    if (status || (bound && tarn_json_type_of(bound) == TARN_JSON_NULL)) return status;
    return read_space_size(reading, at, value, "bound_bytes", &space->bound);
}

/* Of a plan whose graph has several. */
static enum tarn_status read_spaces(const struct reading *reading, struct tarn_plan_outline *shown)
{
    struct tarn_json_at at = tarn_json_in(NULL, "spaces", 0);
    const struct tarn_json *value = member_of(reading->document, "spaces");
    size_t count = 0;
    if (!value) return TARN_OK;
    enum tarn_status status = tarn_json_array(&reading->report, &at, value, &count);
    if (status != TARN_OK) return status;
    struct tarn_outlined_space *spaces =
        tarn_region_take(&reading->outline->region, count, sizeof *spaces);
    if (!spaces) return tarn_error_no_memory(reading->report.error);
    const struct tarn_json *space = tarn_json_first(value);
    for (size_t s = 0; space && !status; s++, space = tarn_json_next(space)) {
        struct tarn_json_at here = tarn_json_in(&at, NULL, s);
        status = read_space(reading, &here, space, &spaces[s]);
    }
    shown->spaces = spaces;
    shown->spaces_count = count;
    return status;
}

/* The graph that a transformed plan has with it. */
static enum tarn_status read_graph(const struct reading *reading, struct tarn_graph **graph)
{
    const struct tarn_json *value = member_of(reading->document, "graph");
    if (!value || tarn_json_type_of(value) == TARN_JSON_NULL) return TARN_OK;
    struct tarn_report inside = reading->report;
    inside.base = "/graph";
    return tarn_graph_decode(&inside, value, graph);
}

static enum tarn_status read_outline(const struct reading *reading)
{
    struct tarn_plan_outline *shown = &reading->outline->shown;
    shown->struct_size = sizeof *shown;
    enum tarn_status status =
        tarn_json_check_format(&reading->report, reading->document, "tarn.plan");
    if (!status) status = read_text(reading, "name", &shown->name);
    if (!status) status = read_text(reading, "method", &shown->method);
    if (!status) status = read_hash(reading, "source_hash", &shown->source_hash);
    if (!status) status = read_hash(reading, "graph_hash", &shown->graph_hash);
    if (!status) status = read_size(reading, "alignment", &shown->alignment);
    if (!status) status = read_size(reading, "footprint_bytes", &shown->footprint);
    if (!status) status = read_bound(reading, &shown->bound);
    if (!status) status = count_launches(reading, &shown->launches);
    if (!status) status = count_list(reading, "waits", &shown->waits);
    if (!status) status = count_list(reading, "boundary_waits", &shown->boundary_waits);
    if (!status) status = read_places(reading, "storages", &shown->storages);
    if (!status) status = read_places(reading, "workspaces", &shown->workspaces);
    if (!status) status = read_places(reading, "persistent", &shown->persistent);
    if (!status) status = read_spaces(reading, shown);
    return status ? status : read_graph(reading, &shown->graph);
}

enum tarn_status tarn_plan_outline_load(const char *path, struct tarn_plan_outline **outline,
                                        struct tarn_error *error)
{
    if (outline) *outline = NULL;
    if (!path || !outline) return tarn_error_null(error, __func__);
    struct reading reading = {.report = {.error = error, .text_max = TARN_TEXT_MAX}};
    char *text = NULL;
    tarn_error_clear(error);
    reading.outline = tarn_take_zeros(1, sizeof *reading.outline);
    if (!reading.outline) return tarn_error_no_memory(error);
    enum tarn_status status = tarn_json_load(&reading.report, &(struct tarn_reader){.name = path},
                                             &text, &reading.document);
    if (!status) status = read_outline(&reading);
    tarn_free(text);
    if (status == TARN_OK)
        *outline = &reading.outline->shown;
    else
        tarn_plan_outline_destroy(&reading.outline->shown);
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
