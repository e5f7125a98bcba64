/* Plans many graphs into one folder. A graph's hash is the name of its plan's file. An existing
 * file is a plan that another process, or an earlier run, has made. It is verified again, and kept
 * if it was made with the same options (tarn_plan_answers); else the graph is planned again. Plans
 * are written under another name and renamed, so processes may share the folder, and the graphs:
 * each process takes the graphs whose hash falls to its share, and needs to know nothing of the
 * other processes. Cost: every process loads all graphs of the list; it plans its share. */
#include "plan.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "interrupt.h"
#include "list.h"

struct counts {
    uint64_t graphs, planned, there, failed; /* of this share */
};

/* "I/N" with I < N. */
static bool read_share(const char *text, uint64_t *index, uint64_t *count)
{
    char number[32];
    const char *slash = strchr(text, '/');
    if (!slash || (size_t)(slash - text) >= sizeof number) return false;
    snprintf(number, sizeof number, "%.*s", (int)(slash - text), text);
    return tarn_number_parse(number, index) && tarn_number_parse(slash + 1, count) &&
           *index < *count;
}

const char *tarn_batch_check(const struct tarn_batch *batch)
{
    uint64_t index, count;
    if (!batch->folder) return "--batch needs a folder for the plans: -o FOLDER";
    if (batch->share && !read_share(batch->share, &index, &count))
        return "--share takes I/N, for example 0/4: the first of four shares";
    return NULL;
}

static bool is_mine(const struct tarn_batch *batch, struct tarn_hash hash)
{
    uint64_t index, count;
    if (!batch->share || !read_share(batch->share, &index, &count)) return true;
    return hash.word[0] % count == index;
}

/* ---- One graph ---- */

/* A graph of the list, and its result. */
struct item {
    const struct tarn_graph_list *list;
    const char *path; /* of the graph */
    char plan_path[4096];
    struct tarn_graph *graph;
    struct tarn_plan *plan;
    bool was_there;
    struct tarn_error error; /* why there is no plan */
};

char *tarn_batch_plan_path(struct tarn_hash hash, const char *folder, char *path, size_t size)
{
    snprintf(path, size, "%s/%s.plan.json", folder, tarn_hash_format(hash).text);
    return path;
}

void tarn_batch_print_row(struct tarn_printer *printer, const char *graph_path,
                          const char *plan_path, const bool *was_there,
                          const struct tarn_plan *plan)
{
    struct tarn_plan_summary made;
    tarn_plan_summarize(plan, &made);
    tarn_printer_open_row(printer, "graph");
    tarn_printer_text(printer, "graph", graph_path);
    tarn_printer_text(printer, "plan", plan_path);
    if (was_there) tarn_printer_boolean(printer, "was_there", *was_there);
    tarn_printer_bytes(printer, "footprint_bytes", made.footprint);
    tarn_printer_bytes(printer, "bound_bytes", made.bound);
    tarn_printer_real(printer, "gap_percent", tarn_gap_percent(made.footprint, made.bound));
    tarn_printer_boolean(printer, "optimal", made.optimal);
    tarn_printer_text(printer, "method", made.method);
    tarn_printer_bytes(printer, "persistent_bytes", made.persistent);
    tarn_printer_close(printer);
}

/* Every message of a batch names the line of the list, and the graph that it is about. */
static void say_of(const struct item *item, const char *what, const char *why)
{
    struct tarn_list_place place = tarn_list_place(item->list);
    if (strstr(why, item->path))
        tarn_say("%s: %s: %s", place.text, what, why);
    else
        tarn_say("%s: %s: %s: %s", place.text, item->path, what, why);
}

static void print_failure(struct tarn_printer *printer, const struct item *item,
                          enum tarn_status status)
{
    say_of(item, tarn_status_text(status), item->error.text);
    if (!printer->json) return; /* it was said */
    tarn_printer_open_row(printer, "graph");
    tarn_printer_text(printer, "graph", item->path);
    tarn_printer_text(printer, "plan", NULL);
    tarn_printer_open(printer, "error", '{');
    tarn_printer_count(printer, "code", (uint64_t)status);
    tarn_printer_text(printer, "message", item->error.text);
    tarn_printer_close(printer);
    tarn_printer_close(printer);
}

/* A plan that is there, and can be kept. A file that cannot be read at all is no reason to write
 * over it. */
static enum tarn_status look(const struct tarn_batch *batch, struct item *item)
{
    if (access(item->plan_path, F_OK) != 0) return TARN_OK;
    enum tarn_status status = tarn_plan_load(item->plan_path, item->graph, TARN_VERIFY,
                                             batch->allowed, &item->plan, &item->error);
    if (status == TARN_OK) status = tarn_plan_answers(item->plan, batch->planning, &item->error);
    item->was_there = status == TARN_OK;
    if (status == TARN_OK) return TARN_OK;
    tarn_plan_destroy(item->plan);
    item->plan = NULL;
    if (status != TARN_BAD_INPUT && status != TARN_REJECTED) return status;
    say_of(item, "planned again", item->error.text);
    return TARN_OK;
}

static enum tarn_status make(const struct tarn_batch *batch, struct item *item)
{
    enum tarn_status status =
        tarn_plan_create(item->graph, batch->planning, &item->plan, &item->error);
    tarn_couple_report_finish(batch->report);
    if (status != TARN_OK || *batch->planning->stop) return status;
    tarn_interrupt_hold();
    status = tarn_plan_save(item->plan, item->plan_path, &item->error);
    tarn_interrupt_release();
    return status;
}

static enum tarn_status plan_one(const struct tarn_batch *batch, const struct tarn_graph_list *list,
                                 const char *path, struct tarn_printer *printer,
                                 struct counts *counts)
{
    struct item item = {.list = list, .path = path};
    enum tarn_status status = tarn_graph_load(path, batch->load, &item.graph, &item.error);
    struct tarn_hash hash = tarn_graph_hash(item.graph);
    if (status == TARN_OK && !is_mine(batch, hash)) {
        tarn_graph_destroy(item.graph);
        return TARN_OK;
    }
    counts->graphs++;
    tarn_batch_plan_path(hash, batch->folder, item.plan_path, sizeof item.plan_path);
    if (status == TARN_OK) status = look(batch, &item);
    if (status == TARN_OK && !item.plan) status = make(batch, &item);
    if (status == TARN_OK && !*batch->planning->stop) {
        tarn_batch_print_row(printer, item.path, item.plan_path, &item.was_there, item.plan);
        *(item.was_there ? &counts->there : &counts->planned) += 1;
    } else if (status != TARN_OK) {
        print_failure(printer, &item, status);
        counts->failed++;
    }
    tarn_plan_destroy(item.plan);
    tarn_graph_destroy(item.graph);
    return status;
}

/* ---- The list ---- */

static enum tarn_status plan_list(const struct tarn_batch *batch, struct tarn_graph_list *list,
                                  struct tarn_printer *printer, struct counts *counts)
{
    enum tarn_status first = TARN_OK;
    const char *path;
    while (!*batch->planning->stop && (path = tarn_list_next(list))) {
        enum tarn_status status = plan_one(batch, list, path, printer, counts);
        if (first == TARN_OK) first = status;
    }
    return first;
}

enum tarn_status tarn_batch_run(const struct tarn_batch *batch)
{
    struct tarn_printer printer;
    struct tarn_graph_list list;
    struct counts counts = {0};
    if (!tarn_list_open(&list, batch->list)) return TARN_SYSTEM;
    if (mkdir(batch->folder, 0777) != 0 && errno != EEXIST) {
        tarn_say("%s: %s", batch->folder, strerror(errno));
        tarn_list_close(&list);
        return TARN_SYSTEM;
    }
    double begin = tarn_now_ms();
    tarn_printer_begin(&printer, stdout, batch->json);
    tarn_printer_open_list(&printer, "plans");
    enum tarn_status status = plan_list(batch, &list, &printer, &counts), closed;
    tarn_printer_close_list(&printer);
    closed = tarn_list_close(&list);
    double seconds = (tarn_now_ms() - begin) * 1e-3;
    tarn_printer_count(&printer, "graphs", counts.graphs);
    tarn_printer_count(&printer, "planned", counts.planned);
    tarn_printer_count(&printer, "were_there", counts.there);
    tarn_printer_count(&printer, "failed", counts.failed);
    tarn_printer_real(&printer, "seconds", seconds);
    tarn_printer_real(&printer, "plans_per_second",
                      seconds > 0 ? (double)(counts.planned + counts.there) / seconds : 0);
    tarn_printer_end(&printer);
    if (*batch->planning->stop) return TARN_INTERRUPTED;
    return status == TARN_OK ? closed : status;
}
