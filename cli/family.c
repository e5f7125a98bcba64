/* Plans and verifies the graphs of a list as one family: pipeline stages, expert ranks, shape
 * buckets. As in a batch, a plan is FOLDER/HASH.plan.json, and equal graphs have one. */
#include "family.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "interrupt.h"
#include "plan.h"

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
    FILE *list = tarn_is_dash(path) ? stdin : fopen(path, "r");
    char *line = NULL;
    size_t room = 0;
    ssize_t length;
    enum tarn_status status = list ? TARN_OK : TARN_SYSTEM;
    while (status == TARN_OK && (length = getline(&line, &room, list)) >= 0) {
        if (length > 0 && line[length - 1] == '\n') line[length - 1] = '\0';
        if (*line) status = add(family, line, load);
    }
    if (!list || (status == TARN_OK && ferror(list))) {
        tarn_say("%s: cannot be read: %s", path, strerror(errno));
        status = TARN_SYSTEM;
    } else if (status == TARN_SYSTEM && !*family->error.text) {
        tarn_say("%s: no memory", path);
    } else if (status != TARN_OK) {
        tarn_print_error(&family->error, status);
    } else if (family->count == 0) {
        tarn_say("%s: has no graphs", path);
        status = TARN_BAD_INPUT;
    }
    free(line);
    if (list && list != stdin) fclose(list);
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

enum tarn_status tarn_family_judge(const struct tarn_family_request *request)
{
    struct family family = {.count = 0};
    struct tarn_printer printer;
    char path[4096];
    enum tarn_status status = load_list(&family, request->list, request->load);
    if (status != TARN_OK) {
        finish(&family);
        return status;
    }
    for (size_t i = 0; i < family.count && status == TARN_OK; i++)
        status = tarn_plan_load(plan_path(family.graphs[i], request->folder, path, sizeof path),
                                family.graphs[i], TARN_VERIFY, request->allowed, &family.plans[i],
                                &family.error);
    if (status == TARN_REJECTED) tarn_say("%s: this plan is refused:", path);
    if (status == TARN_OK) status = tarn_family_verify(family.plans, family.count, &family.error);
    if (status == TARN_OK || status == TARN_REJECTED) {
        tarn_printer_begin(&printer, stdout, request->json);
        tarn_printer_count(&printer, "graphs", family.count);
        tarn_printer_boolean(&printer, "safe", status == TARN_OK);
        if (status == TARN_OK) print_window(&printer, family.plans[0]);
        tarn_printer_end(&printer);
    }
    if (status != TARN_OK) tarn_print_error(&family.error, status);
    finish(&family);
    return status;
}
