/* Plans and verifies the graphs of a list as one family: pipeline stages, expert ranks, shape
 * buckets. As in a batch, a plan is FOLDER/HASH.plan.json, and equal graphs have one. */
#include "family.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "interrupt.h"
#include "list.h"
#include "plan.h"
#include "violation.h"

struct family {
    char **paths; /* of the graphs */
    struct tarn_graph **graphs;
    struct tarn_plan **plans;
    size_t count, room;
    struct tarn_error error;
};

static char *plan_path(const struct tarn_graph *graph, const char *folder, char *path, size_t size)
{
    return tarn_batch_plan_path(tarn_graph_hash(graph), folder, path, size);
}

static bool grow(struct family *family)
{
    if (family->count < family->room) return true;
    size_t room = 2 * family->room + 8;
    char **paths = realloc(family->paths, room * sizeof *paths);
    if (paths) family->paths = paths;
    struct tarn_graph **graphs = realloc(family->graphs, room * sizeof(void *));
    if (graphs) family->graphs = graphs;
    struct tarn_plan **plans = realloc(family->plans, room * sizeof(void *));
    if (plans) family->plans = plans;
    if (!paths || !graphs || !plans) return false;
    family->room = room;
    return true;
}

static bool is_known(const struct family *family, const struct tarn_graph *graph)
{
    struct tarn_hash hash = tarn_graph_hash(graph), other;
    for (size_t i = 0; i < family->count; i++) {
        other = tarn_graph_hash(family->graphs[i]);
        if (memcmp(&hash, &other, sizeof hash) == 0) return true;
    }
    return false;
}

static enum tarn_status add(struct family *family, const char *path,
                            const struct tarn_load_options *load)
{
    struct tarn_graph *graph;
    enum tarn_status status = tarn_graph_load(path, load, &graph, &family->error);
    if (status != TARN_OK) return status;
    if (is_known(family, graph)) {
        tarn_graph_destroy(graph);
        return TARN_OK;
    }
    char *copy = grow(family) ? strdup(path) : NULL;
    if (!copy) {
        tarn_graph_destroy(graph);
        return TARN_SYSTEM;
    }
    family->paths[family->count] = copy;
    family->graphs[family->count] = graph;
    family->plans[family->count++] = NULL;
    return TARN_OK;
}

static enum tarn_status load_list(struct family *family, const char *path,
                                  const struct tarn_load_options *load)
{
    struct tarn_graph_list list;
    const char *line;
    enum tarn_status status = TARN_OK;
    if (!tarn_list_open(&list, path)) return TARN_SYSTEM;
    while (status == TARN_OK && (line = tarn_list_next(&list))) status = add(family, line, load);
    if (status != TARN_OK) {
        char text[sizeof family->error.text];
        memcpy(text, family->error.text, sizeof text);
        snprintf(family->error.text, sizeof family->error.text, "%s: %.250s",
                 tarn_list_place(&list).text, *text ? text : tarn_status_text(status));
        tarn_print_error(&family->error, status);
    }
    enum tarn_status closed = tarn_list_close(&list);
    if (status == TARN_OK) status = closed;
    if (status == TARN_OK && family->count == 0)
        status = tarn_fail(TARN_BAD_INPUT, NULL, "%s: has no graphs", path);
    return status;
}

static void finish(struct family *family)
{
    for (size_t i = 0; i < family->count; i++) {
        tarn_plan_destroy(family->plans[i]);
        tarn_graph_destroy(family->graphs[i]);
        free(family->paths[i]);
    }
    free(family->paths);
    free(family->graphs);
    free(family->plans);
}

/* ---- Answers ---- */

static void print_window(struct tarn_printer *printer, const struct tarn_plan *plan)
{
    struct tarn_window window;
    if (!tarn_plan_window(plan, &window)) return;
    tarn_printer_open(printer, "window", '{');
    tarn_printer_count(printer, "space", window.space);
    tarn_printer_bytes(printer, "offset_bytes", window.offset);
    tarn_printer_bytes(printer, "size_bytes", window.size);
    tarn_printer_close(printer);
}

/* A symmetric group of a graph. */
struct named {
    const char *name;
    size_t graph;
};

static int compare_named(const void *left, const void *right)
{
    const struct named *a = left, *b = right;
    int order = strcmp(a->name, b->name);
    return order ? order : (a->graph > b->graph) - (a->graph < b->graph);
}

/* Names that one graph alone has: nothing lies where it does because of them, so they may be
 * misspelt. */
static void print_unshared(struct tarn_printer *printer, const struct family *family)
{
    size_t count = 0, filled = 0, alone = 0;
    const struct named *first = NULL;
    for (size_t i = 0; i < family->count; i++) count += tarn_graph_groups_count(family->graphs[i]);
    struct named *names = family->count > 1 ? calloc(count + 1, sizeof *names) : NULL; /* or none */
    for (size_t i = 0; i < family->count && names; i++)
        for (uint32_t g = 0; g < tarn_graph_groups_count(family->graphs[i]); g++) {
            const char *name = tarn_graph_group_symmetric(family->graphs[i], g);
            if (name) names[filled++] = (struct named){name, i};
        }
    if (names) qsort(names, filled, sizeof *names, compare_named);
    if (printer->json) tarn_printer_open(printer, "unshared", '[');
    for (size_t i = 0; i < filled; i++) {
        if (i > 0 && strcmp(names[i - 1].name, names[i].name) == 0) continue;
        if (i + 1 < filled && strcmp(names[i + 1].name, names[i].name) == 0) continue;
        if (alone++ == 0) first = &names[i];
        if (printer->json) tarn_printer_text(printer, NULL, names[i].name);
    }
    if (printer->json) tarn_printer_close(printer);
    if (first)
        tarn_say("%zu of %zu symmetric groups are in one graph only, the first is '%s' of %s: if "
                 "another graph should have it, compare the names",
                 alone, filled, first->name, family->paths[first->graph]);
    free(names);
}

static void print_plans(const struct family *family, const char *folder, bool json)
{
    struct tarn_printer printer;
    char path[4096];
    tarn_printer_begin(&printer, stdout, json);
    print_window(&printer, family->plans[0]);
    tarn_printer_open_list(&printer, "plans");
    for (size_t i = 0; i < family->count; i++) {
        plan_path(family->graphs[i], folder, path, sizeof path);
        tarn_batch_print_row(&printer, family->paths[i], path, NULL, family->plans[i]);
    }
    tarn_printer_close_list(&printer);
    print_unshared(&printer, family);
    tarn_printer_end(&printer);
}

/* ---- The two verbs ---- */

static enum tarn_status save_all(struct family *family, const char *folder)
{
    char path[4096];
    if (mkdir(folder, 0777) != 0 && errno != EEXIST) {
        tarn_say("%s: %s", folder, strerror(errno));
        return TARN_SYSTEM;
    }
    enum tarn_status status = TARN_OK;
    tarn_interrupt_hold();
    for (size_t i = 0; i < family->count && status == TARN_OK; i++)
        status =
            tarn_plan_save(family->plans[i],
                           plan_path(family->graphs[i], folder, path, sizeof path), &family->error);
    tarn_interrupt_release();
    return status == TARN_OK ? status : tarn_print_error(&family->error, status);
}

enum tarn_status tarn_family_run(const struct tarn_family_request *request)
{
    struct family family = {.count = 0};
    enum tarn_status status = load_list(&family, request->list, request->load);
    if (status == TARN_OK) {
        status = (request->of_ranks ? tarn_ranks_plan : tarn_family_plan)(
            family.graphs, family.count, request->planning, family.plans, &family.error);
        if (status != TARN_OK) tarn_print_error(&family.error, status);
    }
    if (status == TARN_OK && request->folder) status = save_all(&family, request->folder);
    if (status == TARN_OK) print_plans(&family, request->folder, request->json);
    finish(&family);
    return tarn_interrupt_tell(status, "plan");
}

/* What is said of one plan. */
struct judged {
    struct tarn_verdict *verdict; /* all that is wrong with it, if it is refused */
    enum tarn_status status;
    struct tarn_error error;
};

static bool is_unread(const struct judged *judged)
{
    return judged->status != TARN_OK && judged->status != TARN_REJECTED;
}

static void judge_one(struct family *family, size_t i, const struct tarn_family_request *request,
                      struct judged *judged)
{
    char path[4096];
    struct tarn_error *error = &judged->error;
    struct tarn_verdict **verdict = &judged->verdict;
    plan_path(family->graphs[i], request->folder, path, sizeof path);
    *verdict = NULL;
    enum tarn_status status = tarn_plan_load(path, family->graphs[i], TARN_VERIFY, request->allowed,
                                             &family->plans[i], error);
    if (status == TARN_BAD_INPUT || status == TARN_REJECTED) {
        struct tarn_error whole;
        if (tarn_plan_verify_file(path, family->graphs[i], request->allowed, verdict, &whole) ==
            TARN_REJECTED)
            status = TARN_REJECTED;
    }
    judged->status = status;
    if (status == TARN_REJECTED) tarn_say("%s: this plan is refused", path);
    if (is_unread(judged))
        tarn_say("%s: this plan cannot be read: %s", path,
                 error->text[0] ? error->text : tarn_status_text(status));
}

static void print_unread(struct tarn_printer *printer, const struct judged *judged,
                         const char *graph, const char *plan)
{
    const char *why = judged->error.text[0] ? judged->error.text : tarn_status_text(judged->status);
    if (!printer->json) {
        char text[4096];
        snprintf(text, sizeof text, "%s: %s", graph, why);
        tarn_printer_text(printer, "unread", text);
        return;
    }
    tarn_printer_open(printer, NULL, '{');
    tarn_printer_text(printer, "graph", graph);
    tarn_printer_text(printer, "plan", plan);
    tarn_printer_text(printer, "kind", "unread");
    tarn_printer_text(printer, "text", why);
    tarn_printer_close(printer);
}

/* Violations of single plans, and plans that cannot be read, or what is wrong between them, which
 * `error` has. */
static void print_verdicts(const struct family *family, const struct tarn_family_request *request,
                           const struct judged *judged, enum tarn_status status)
{
    struct tarn_printer printer;
    char path[4096];
    bool are_proved = true;
    tarn_printer_begin(&printer, stdout, request->json);
    tarn_printer_count(&printer, "graphs", family->count);
    tarn_printer_boolean(&printer, "safe", status == TARN_OK);
    if (status == TARN_OK) print_window(&printer, family->plans[0]);
    tarn_printer_open_list(&printer, "violations");
    for (size_t i = 0; i < family->count; i++) {
        plan_path(family->graphs[i], request->folder, path, sizeof path);
        const struct tarn_verdict *verdict = judged[i].verdict;
        for (size_t k = 0; k < tarn_verdict_count(verdict); k++)
            tarn_print_violation(&printer, tarn_verdict_get(verdict, k), family->paths[i], path);
        if (is_unread(&judged[i])) print_unread(&printer, &judged[i], family->paths[i], path);
        are_proved = are_proved && family->plans[i];
    }
    if (status == TARN_REJECTED && are_proved) {
        const struct tarn_error *error = &family->error;
        if (request->json) tarn_printer_open(&printer, NULL, '{');
        if (request->json) tarn_printer_text(&printer, "kind", "family");
        tarn_printer_text(&printer, request->json ? "text" : "family", error->text);
        if (request->json) tarn_printer_close(&printer);
    }
    tarn_printer_close_list(&printer);
    print_unshared(&printer, family);
    tarn_printer_end(&printer);
}

enum tarn_status tarn_family_judge(const struct tarn_family_request *request)
{
    struct family family = {.count = 0};
    enum tarn_status status = load_list(&family, request->list, request->load);
    struct judged *judged = status == TARN_OK ? calloc(family.count, sizeof *judged) : NULL;
    if (status == TARN_OK && !judged)
        status = tarn_print_error(&family.error, tarn_no_memory(&family.error));
    if (!judged) {
        finish(&family);
        return status;
    }
    const struct judged *worst = NULL; /* the first that cannot be read, else the first refused */
    for (size_t i = 0; i < family.count; i++) {
        judge_one(&family, i, request, &judged[i]);
        if (judged[i].status == TARN_OK) continue;
        if (!worst || (!is_unread(worst) && is_unread(&judged[i]))) worst = &judged[i];
    }
    if (worst) {
        status = worst->status;
        family.error = worst->error;
    } else {
        status = tarn_family_verify(family.plans, family.count, &family.error);
    }
    if (worst || status == TARN_OK || status == TARN_REJECTED)
        print_verdicts(&family, request, judged, status);
    if (status != TARN_OK) tarn_print_error(&family.error, status);
    for (size_t i = 0; i < family.count; i++) tarn_verdict_destroy(judged[i].verdict);
    free(judged);
    finish(&family);
    return status;
}
