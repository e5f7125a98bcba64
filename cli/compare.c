/* tarn compare: two plan files, and which of them is worse. Storages are matched by the names of
 * their root tensors (of workspaces: of their ops), or by id if names are unknown but both plans
 * are of one graph. */
#include <stdlib.h>
#include <string.h>

#include "command/command.h"
#include "verbs.h"

#define SHOWN_MAX 10u /* storages that are listed without --changes */

struct side {
    const char *plan_path, *graph_path; /* graph_path: NULL, not given */
    struct tarn_plan_outline *plan;
    struct tarn_graph *source; /* loaded, or NULL */
    const struct tarn_graph *names;
    struct row *rows; /* all storages of the plan, sorted */
    size_t count;
};

struct row {
    const char *name;  /* NULL: id counts */
    const char *space; /* its memory space; NULL: there is only one, or it is unknown */
    uint32_t id;
    bool is_workspace;
    uint64_t offset, size;
};

enum fate { MOVED, GREW, SHRANK, NEW, GONE };
static const char *const fates[] = {"moved", "grew", "shrank", "new", "gone"};

struct change {
    enum fate fate;
    const struct row *before, *after; /* NULL: gone, or new */
};

struct comparison {
    struct side sides[2];
    bool is_matched; /* storages could be */
    struct change *changes;
    size_t count, counts[TARN_COUNT(fates)], common;
};

/* ---- Rows ---- */

static int compare_rows(const void *left, const void *right)
{
    const struct row *a = left, *b = right;
    if (a->is_workspace != b->is_workspace) return a->is_workspace ? 1 : -1;
    int order = a->name && b->name ? strcmp(a->name, b->name) : 0;
    if (order != 0) return order;
    return a->id < b->id ? -1 : a->id > b->id;
}

static const char *name_of(const struct tarn_graph *graph, uint32_t id, bool is_workspace)
{
    struct tarn_tensor_info tensor;
    struct tarn_op_info op;
    if (!graph) return NULL;
    if (is_workspace) return tarn_graph_op(graph, id, &op) ? op.name : NULL;
    return tarn_graph_tensor(graph, id, &tensor) ? tensor.name : NULL;
}

static const char *space_of(const struct tarn_graph *graph, uint32_t id, bool is_workspace)
{
    struct tarn_tensor_info tensor;
    struct tarn_op_info op;
    struct tarn_space_info space;
    if (!graph || tarn_graph_spaces_count(graph) < 2) return NULL;
    bool is_known =
        is_workspace ? tarn_graph_op(graph, id, &op) : tarn_graph_tensor(graph, id, &tensor);
    if (!is_known) return NULL;
    return tarn_graph_space(graph, is_workspace ? op.workspace_space : tensor.space, &space)
               ? space.name
               : NULL;
}

static bool make_rows(struct side *side)
{
    const struct tarn_places *lists[] = {&side->plan->storages, &side->plan->workspaces};
    side->rows = calloc(lists[0]->count + lists[1]->count + 1, sizeof *side->rows);
    if (!side->rows) return false;
    for (size_t list = 0; list < TARN_COUNT(lists); list++) {
        for (size_t i = 0; i < lists[list]->count; i++) {
            const struct tarn_placed *place = &lists[list]->places[i];
            side->rows[side->count++] = (struct row){name_of(side->names, place->id, list == 1),
                                                     space_of(side->names, place->id, list == 1),
                                                     place->id,
                                                     list == 1,
                                                     place->offset,
                                                     place->size};
        }
    }
    qsort(side->rows, side->count, sizeof *side->rows, compare_rows);
    return true;
}

/* The same storage in both? Equal names are matched in the order of their ids. */
static int match(const struct row *a, const struct row *b)
{
    if (a->is_workspace != b->is_workspace) return a->is_workspace ? 1 : -1;
    if (a->name && b->name) return strcmp(a->name, b->name);
    return a->id < b->id ? -1 : a->id > b->id;
}

static void add(struct comparison *comparison, enum fate fate, const struct row *before,
                const struct row *after)
{
    comparison->changes[comparison->count++] = (struct change){fate, before, after};
    comparison->counts[fate]++;
}

static bool match_rows(struct comparison *comparison)
{
    const struct side *a = &comparison->sides[0], *b = &comparison->sides[1];
    comparison->changes = calloc(a->count + b->count + 1, sizeof *comparison->changes);
    if (!comparison->changes) return false;
    for (size_t i = 0, k = 0; i < a->count || k < b->count;) {
        int order = i == a->count ? 1 : k == b->count ? -1 : match(&a->rows[i], &b->rows[k]);
        const struct row *before = order <= 0 ? &a->rows[i++] : NULL;
        const struct row *after = order >= 0 ? &b->rows[k++] : NULL;
        if (!before || !after)
            add(comparison, before ? GONE : NEW, before, after);
        else if (before->size != after->size)
            add(comparison, after->size > before->size ? GREW : SHRANK, before, after);
        else if (before->offset != after->offset)
            add(comparison, MOVED, before, after);
        comparison->common += before && after;
    }
    return true;
}

/* The bytes of the arena that a change concerns; changes that grew come first. */
static uint64_t weight(const struct change *change)
{
    uint64_t before = change->before ? change->before->size : 0;
    uint64_t after = change->after ? change->after->size : 0;
    return after > before ? after - before : before > after ? before - after : 0;
}

static int compare_changes(const void *left, const void *right)
{
    static const int rank[] = {[GREW] = 0, [NEW] = 1, [SHRANK] = 2, [GONE] = 3, [MOVED] = 4};
    const struct change *a = left, *b = right;
    if (a->fate != b->fate) return rank[a->fate] - rank[b->fate];
    if (weight(a) != weight(b)) return weight(a) > weight(b) ? -1 : 1;
    return compare_rows(a->before ? a->before : a->after, b->before ? b->before : b->after);
}

/* ---- Loading ---- */

/* Names come from the graph that the file holds, or from the source graph if it holds none. */
static enum tarn_status load_side(struct side *side, const struct tarn_load_options *options,
                                  struct tarn_error *error)
{
    enum tarn_status status = tarn_plan_outline_load(side->plan_path, &side->plan, error);
    if (status == TARN_OK && side->graph_path)
        status = tarn_graph_load(side->graph_path, options, &side->source, error);
    if (status != TARN_OK) return status;
    side->names = side->plan->graph ? side->plan->graph : side->source;
    if (!side->source) return TARN_OK;
    struct tarn_hash hash = tarn_graph_hash(side->source);
    if (memcmp(&hash, &side->plan->source_hash, sizeof hash) == 0) return TARN_OK;
    snprintf(error->text, sizeof error->text, "%s is not a plan of %s: the graphs' hashes differ",
             side->plan_path, side->graph_path);
    return error->status = TARN_BAD_INPUT;
}

static bool is_same_graph(const struct comparison *comparison)
{
    return memcmp(&comparison->sides[0].plan->graph_hash, &comparison->sides[1].plan->graph_hash,
                  sizeof(struct tarn_hash)) == 0;
}

static enum tarn_status compare(struct comparison *comparison,
                                const struct tarn_load_options *options, struct tarn_error *error)
{
    struct side *a = &comparison->sides[0], *b = &comparison->sides[1];
    enum tarn_status status = load_side(a, options, error);
    if (status == TARN_OK) status = load_side(b, options, error);
    if (status != TARN_OK) return status;
    if (is_same_graph(comparison) && !(a->names && b->names)) {
        a->names = b->names = a->names ? a->names : b->names;
    }
    comparison->is_matched = (a->names && b->names) || is_same_graph(comparison);
    if (!comparison->is_matched) return TARN_OK;
    if (make_rows(a) && make_rows(b) && match_rows(comparison)) {
        qsort(comparison->changes, comparison->count, sizeof *comparison->changes, compare_changes);
        return TARN_OK;
    }
    return tarn_no_memory(error);
}

/* ---- Printing ---- */

static size_t waits_of(const struct side *side)
{
    return side->plan->waits + side->plan->boundary_waits;
}

/* Below 0: the second plan is better. A byte counts more than any wait. */
static int verdict(const struct comparison *comparison)
{
    const struct side *a = &comparison->sides[0], *b = &comparison->sides[1];
    if (a->plan->footprint != b->plan->footprint)
        return a->plan->footprint < b->plan->footprint ? 1 : -1;
    if (waits_of(a) != waits_of(b)) return waits_of(a) < waits_of(b) ? 1 : -1;
    return 0;
}

static void print_side(struct tarn_printer *printer, const char *key, const struct side *side)
{
    tarn_printer_open(printer, key, '{');
    tarn_printer_text(printer, "name", side->plan->name);
    tarn_printer_bytes(printer, "footprint_bytes", side->plan->footprint);
    tarn_printer_bytes_or_null(printer, "bound_bytes", side->plan->bound);
    tarn_printer_count(printer, "alignment", side->plan->alignment);
    tarn_printer_count(printer, "launches", side->plan->launches);
    tarn_printer_count(printer, "storages",
                       side->plan->storages.count + side->plan->workspaces.count);
    tarn_printer_count(printer, "waits", side->plan->waits);
    tarn_printer_count(printer, "boundary_waits", side->plan->boundary_waits);
    tarn_printer_text(printer, "method", side->plan->method);
    tarn_printer_close(printer);
}

static void print_space(struct tarn_printer *printer, const char *key, const struct side *side,
                        size_t s)
{
    if (s >= side->plan->spaces_count) return;
    const struct tarn_outlined_space *space = &side->plan->spaces[s];
    tarn_printer_open(printer, key, '{');
    tarn_printer_bytes(printer, "footprint_bytes", space->footprint);
    tarn_printer_bytes_or_null(printer, "bound_bytes", space->bound);
    tarn_printer_bytes(printer, "persistent_bytes", space->persistent);
    tarn_printer_close(printer);
}

/* Prints each memory space if a plan has several: by number, and by name if a graph is known. */
static void print_spaces(struct tarn_printer *printer, const struct comparison *comparison)
{
    const struct side *a = &comparison->sides[0], *b = &comparison->sides[1];
    size_t count = a->plan->spaces_count > b->plan->spaces_count ? a->plan->spaces_count
                                                                 : b->plan->spaces_count;
    if (count > 0 && printer->json) tarn_printer_open(printer, "spaces", '[');
    for (size_t s = 0; s < count; s++) {
        struct tarn_space_info info;
        bool is_known = (a->names && tarn_graph_space(a->names, (tarn_space)s, &info)) ||
                        (b->names && tarn_graph_space(b->names, (tarn_space)s, &info));
        tarn_printer_open_row(printer, "space");
        tarn_printer_count(printer, "id", s);
        if (is_known) tarn_printer_text(printer, "name", info.name);
        print_space(printer, "first", a, s);
        print_space(printer, "second", b, s);
        tarn_printer_close(printer);
    }
    if (count > 0 && printer->json) tarn_printer_close(printer);
}

static void print_row(struct tarn_printer *printer, const char *key, const struct row *row)
{
    if (!row) return;
    tarn_printer_open(printer, key, '{');
    tarn_printer_bytes(printer, "offset_bytes", row->offset);
    tarn_printer_bytes(printer, "size_bytes", row->size);
    tarn_printer_close(printer);
}

static void print_changes(struct tarn_printer *printer, const struct comparison *comparison,
                          bool everything)
{
    size_t shown = comparison->count;
    if (!everything && shown > SHOWN_MAX) shown = SHOWN_MAX;
    tarn_printer_open_list(printer, "changes");
    for (size_t i = 0; i < shown; i++) {
        const struct change *change = &comparison->changes[i];
        const struct row *row = change->after ? change->after : change->before;
        tarn_printer_open_row(printer, fates[change->fate]);
        if (printer->json) tarn_printer_text(printer, "change", fates[change->fate]);
        if (row->name) tarn_printer_text(printer, row->is_workspace ? "op" : "tensor", row->name);
        tarn_printer_id(printer, row->is_workspace ? "op_id" : "tensor_id", row->id);
        if (row->space) tarn_printer_text(printer, "space", row->space);
        print_row(printer, "before", change->before);
        print_row(printer, "after", change->after);
        tarn_printer_close(printer);
    }
    tarn_printer_close_list(printer);
}

static void print_comparison(const struct comparison *comparison, bool everything, bool json)
{
    static const char *const words[] = {"better", "equal", "worse"};
    const struct tarn_plan_outline *a = comparison->sides[0].plan, *b = comparison->sides[1].plan;
    struct tarn_printer printer;
    tarn_printer_begin(&printer, stdout, json);
    tarn_printer_text(&printer, "verdict", words[verdict(comparison) + 1]);
    tarn_printer_real(&printer, "footprint_percent", tarn_gap_percent(b->footprint, a->footprint));
    tarn_printer_boolean(&printer, "same_graph", is_same_graph(comparison));
    print_side(&printer, "first", &comparison->sides[0]);
    print_side(&printer, "second", &comparison->sides[1]);
    print_spaces(&printer, comparison);
    if (comparison->is_matched) {
        tarn_printer_open(&printer, "storages", '{');
        tarn_printer_count(&printer, "common", comparison->common);
        for (size_t fate = 0; fate < TARN_COUNT(fates); fate++)
            tarn_printer_count(&printer, fates[fate], comparison->counts[fate]);
        tarn_printer_close(&printer);
        print_changes(&printer, comparison, everything);
    } else {
        tarn_printer_text(&printer, "storages", NULL);
    }
    tarn_printer_end(&printer);
}

/* ---- The command line ---- */

static const char about[] =
    "Compares two plan files: footprints, waits, and which storages moved, grew or\n"
    "are new. Exit code 1 when the second plan is worse: a larger footprint, or an\n"
    "equal one and more waits; so a CI can hold a model's memory. Of several memory\n"
    "spaces, each is reported, and the footprint is their sum.\n\n"
    "Plans of one graph need no GRAPH; with it (of both plans, or one for each),\n"
    "storages have names, by which those of different graphs are matched. The files\n"
    "are not verified: 'tarn verify' does that.\n";

static void destroy(struct comparison *comparison)
{
    for (size_t i = 0; i < 2; i++) {
        free(comparison->sides[i].rows);
        tarn_plan_outline_destroy(comparison->sides[i].plan);
        tarn_graph_destroy(comparison->sides[i].source);
    }
    free(comparison->changes);
}

enum tarn_status tarn_verb_compare(char **words)
{
    bool json = false, everything = false;
    struct tarn_load_options load = {.struct_size = sizeof load};
    const char *paths[4];
    const struct tarn_option options[] = {
        {"changes", 0, TARN_OPTION_FLAG, &everything, NULL,
         "list every storage that changed, not ten", TARN_EVERYDAY},
        TARN_LOAD_OPTION(load),
        TARN_JSON_OPTION(json),
    };
    const struct tarn_command command = {
        .verb = "compare",
        .usage = "PLAN PLAN [GRAPH [GRAPH]]",
        .about = about,
        TARN_OPTIONS(options),
        .arguments_min = 2,
        .arguments_max = 4,
        .exits = (const enum tarn_status[]){TARN_DOES_NOT_FIT, TARN_BAD_INPUT, TARN_OK},
        .refusal = "the second plan is worse",
        .example = "  tarn plan examples/graphs/figure7.json -o old.plan\n"
                   "  tarn plan examples/graphs/figure7.json --alignment 1 -o new.plan\n"
                   "  tarn compare old.plan new.plan\n",
    };
    enum tarn_status status;
    if (!tarn_options_parse(&command, words, paths, &status)) return status;
    struct tarn_error error = {.text = ""};
    struct comparison comparison = {
        .sides = {{.plan_path = paths[0], .graph_path = paths[2]},
                  {.plan_path = paths[1], .graph_path = paths[3] ? paths[3] : paths[2]}}};
    status = compare(&comparison, &load, &error);
    if (status == TARN_OK) {
        print_comparison(&comparison, everything, json);
        if (verdict(&comparison) > 0) {
            tarn_say("%s is worse than %s", paths[1], paths[0]);
            status = TARN_DOES_NOT_FIT;
        }
    } else {
        tarn_print_error(&error, status);
    }
    destroy(&comparison);
    return status;
}
