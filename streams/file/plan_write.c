/* Writes `tarn.plan` version 1: one record per line, keys and places in a fixed order, so that
 * equal plans give equal bytes. Cost: linear. */
#include <inttypes.h>

#include "graph_read.h"
#include "interval_read.h"
#include "streams/plan/plan.h"
#include "streams/text/json_write.h"
#include "streams/text/text_file.h"

static void print_streams(const struct tarn_plan *plan, FILE *file)
{
    fputs(",\n\"streams\":[", file);
    for (uint32_t s = 0; s < plan->streams_count; s++) {
        fputs(s > 0 ? ",\n" : "\n", file);
        tarn_json_write(file, tarn_json_list(plan->list + plan->list_begin[s],
                                             plan->list_begin[s + 1] - plan->list_begin[s]));
    }
    fputs(plan->streams_count > 0 ? "\n]" : "]", file);
}

static void print_waits(const char *key, const struct tarn_wait *waits, uint32_t count, FILE *file)
{
    fprintf(file, ",\n\"%s\":[", key);
    for (uint32_t i = 0; i < count; i++) {
        fputs(i > 0 ? ",\n" : "\n", file);
        tarn_json_write(file, tarn_json_list((uint32_t[]){waits[i].op, waits[i].on}, 2));
    }
    fputs(count > 0 ? "\n]" : "]", file);
}

/* Offsets count from the start of each space. */
static uint64_t offset_in_space(const struct tarn_plan *plan, const struct tarn_place *place)
{
    const struct tarn_graph *graph = plan->graph;
    uint32_t id = place->id;
    bool is_workspace =
        place >= plan->workspaces && place < plan->workspaces + plan->workspaces_count;
    bool persistent = place >= plan->places_persistent &&
                      place < plan->places_persistent + plan->places_persistent_count;
    if (!plan->spaces) return place->offset;
    uint32_t space =
        is_workspace ? tarn_extra(&graph->ops[id])->workspace_space : graph->tensors[id].space;
    return place->offset - tarn_plan_space_begin(plan, space, persistent);
}

static void print_places(const char *key, const struct tarn_plan *plan,
                         const struct tarn_place *places, uint32_t count, FILE *file)
{
    fprintf(file, ",\n\"%s\":[", key);
    for (uint32_t i = 0; i < count; i++) {
        fputs(i > 0 ? ",\n" : "\n", file);
        json_t *record = tarn_json_list(&places[i].id, 1);
        tarn_json_append(&record, json_integer((json_int_t)offset_in_space(plan, &places[i])));
        tarn_json_append(&record, json_integer((json_int_t)places[i].size));
        tarn_json_write(file, record);
    }
    fputs(count > 0 ? "\n]" : "]", file);
}

static void print_number(const char *key, uint64_t number, FILE *file)
{
    fprintf(file, ",\n\"%s\":%" PRIu64, key, number);
}

static void print_bound(const struct tarn_plan *plan, const struct tarn_claim *claim, FILE *file)
{
    if (!claim->threshold) {
        fputs(",\n\"bound_bytes\":null,\n\"certificate\":null", file);
        return;
    }
    json_t *certificate = json_object();
    tarn_json_put(&certificate, "thresholds",
                  tarn_json_list(claim->threshold, plan->streams_count));
    tarn_json_put(&certificate, "gaps", tarn_json_list(claim->gaps, claim->gaps_count));
    if (claim->inside_count > 0)
        tarn_json_put(&certificate, "inside", tarn_json_list(claim->inside, claim->inside_count));
    if (claim->arms_count > 0)
        tarn_json_put(&certificate, "arms", tarn_json_list(claim->arms, claim->arms_count));
    print_number("bound_bytes", claim->bound, file);
    fputs(",\n\"certificate\":", file);
    tarn_json_write(file, certificate);
}

static void print_spaces(const struct tarn_plan *plan, FILE *file)
{
    fputs(",\n\"spaces\":[", file);
    for (uint32_t s = 0; s < plan->spaces_count; s++) {
        const struct tarn_plan_space *space = &plan->spaces[s];
        fputs(s > 0 ? ",\n{\"method\":" : "\n{\"method\":", file);
        tarn_json_write(file, json_string(space->method));
        print_number("footprint_bytes", space->footprint, file);
        print_number("persistent_bytes", space->persistent, file);
        print_bound(plan, &space->claim, file);
        fputc('}', file);
    }
    fputs("\n]", file);
}

static void print_head(const struct tarn_plan *plan, FILE *file)
{
    fputs("{\"format\":\"tarn.plan\",\"version\":1,\"name\":", file);
    tarn_json_write(file, json_string(plan->graph->name));
    fprintf(file, ",\n\"source_hash\":\"%s\",\n\"graph_hash\":\"%s\"",
            tarn_hash_format(plan->source_hash).text, tarn_hash_format(plan->graph->hash).text);
    if (plan->pad_groups != TARN_GROUPS_AS_GIVEN)
        fprintf(file, ",\n\"pad_groups\":\"%s\"",
                plan->pad_groups == TARN_GROUPS_PADDED ? "padded" : "exact");
    if (plan->asked) fprintf(file, ",\n\"asked\":%s", plan->asked);
    if (plan->transformed) {
        fputs(",\n\"graph\":", file);
        tarn_graph_print(plan->graph, file);
    }
    fputs(",\n\"method\":", file);
    tarn_json_write(file, json_string(plan->method));
    print_number("alignment", plan->alignment, file);
    print_number("footprint_bytes", plan->footprint, file);
    const struct tarn_claim none = {0};
    print_bound(plan, plan->spaces ? &none : &plan->claim, file);
    print_number("persistent_bytes", plan->persistent, file);
    if (plan->spaces) print_spaces(plan, file);
    if (plan->window.size > 0)
        fprintf(file, ",\n\"window\":{\"space\":%u,\"offset\":%" PRIu64 ",\"size\":%" PRIu64 "}",
                plan->window.space, plan->window.offset, plan->window.size);
}

static void print_plan(const void *subject, FILE *file)
{
    const struct tarn_plan *plan = subject;
    print_head(plan, file);
    print_streams(plan, file);
    print_waits("waits", plan->waits, plan->waits_count, file);
    print_waits("boundary_waits", plan->boundary_waits, plan->boundary_waits_count, file);
    print_places("storages", plan, plan->storages, plan->storages_count, file);
    print_places("workspaces", plan, plan->workspaces, plan->workspaces_count, file);
    print_places("persistent", plan, plan->places_persistent, plan->places_persistent_count, file);
    fputs("}\n", file);
}

static enum tarn_status give_plan(const struct tarn_plan *plan, const struct tarn_writer *writer,
                                  struct tarn_error *error)
{
    if (tarn_text_is_named(writer->name, "csv")) return tarn_interval_answer(plan, writer, error);
    if (plan->footprint > TARN_NUMBER_MAX || plan->persistent > TARN_NUMBER_MAX ||
        plan->alignment > TARN_NUMBER_MAX)
        return tarn_error_set(error, TARN_BAD_INPUT,
                              "%s: the plan needs more than 2^53 - 1 bytes, or is aligned to more, "
                              "which a plan file cannot say",
                              writer->name);
    return tarn_text_give(writer, print_plan, plan, error);
}

enum tarn_status tarn_plan_save(const struct tarn_plan *plan, const char *path,
                                struct tarn_error *error)
{
    if (!plan || !path) return tarn_error_null(error, __func__);
    tarn_error_clear(error);
    return give_plan(plan, &(struct tarn_writer){.name = path}, error);
}

enum tarn_status tarn_plan_write(const struct tarn_plan *plan, const struct tarn_writer *given,
                                 struct tarn_error *error)
{
    struct tarn_writer writer;
    if (!plan) return tarn_error_null(error, __func__);
    tarn_error_clear(error);
    enum tarn_status status = tarn_writer_check(&writer, given, __func__, error);
    return status != TARN_OK ? status : give_plan(plan, &writer, error);
}
