/* Reads traces of runs, as session/trace.c writes them and as viewers save them again: Chrome trace
 * events. Only complete events ("ph":"X") count whose "args" name an op and an iteration; all other
 * events are skipped. Times are decimal microseconds, read to three decimal places. Cost:
 * linear. */
#include <string.h>

#include "json_read.h"
#include "streams/base/memory.h"
#include "tarn/session.h"

#define MICROSECONDS_MAX (TARN_NUMBER_MAX / 1000)

struct entries {
    struct tarn_trace_entry *items;
    size_t count;
};

static enum tarn_status read_time(const struct tarn_json_at *at, uint64_t *ns)
{
    double microseconds = -1;
    enum tarn_status status = tarn_json_real(at, &microseconds);
    if (status == TARN_OK && !(microseconds >= 0 && microseconds <= MICROSECONDS_MAX))
        return tarn_json_bad(at, "must be a number of microseconds, not negative and below %llu",
                             (unsigned long long)MICROSECONDS_MAX);
    if (status == TARN_OK) *ns = (uint64_t)(microseconds * 1000 + 0.5);
    return status;
}

static bool is_complete_event(const struct tarn_json_at *event)
{
    struct tarn_json_at phase = tarn_json_in(event, "ph");
    const char *text = tarn_json_text(&phase);
    return text && strcmp(text, "X") == 0;
}

static enum tarn_status read_event(const struct tarn_json_at *event, struct entries *entries)
{
    struct tarn_json_at arguments = tarn_json_in(event, "args");
    struct tarn_json_at op = tarn_json_in(&arguments, "op");
    struct tarn_json_at iteration = tarn_json_in(&arguments, "iteration");
    if (!is_complete_event(event) || !op.value || !iteration.value) return TARN_OK;
    struct tarn_json_at begin = tarn_json_in(event, "ts"), length = tarn_json_in(event, "dur");
    struct tarn_trace_entry *entry = &entries->items[entries->count++];
    uint64_t length_ns = 0;
    enum tarn_status status = tarn_json_id(&op, &entry->op);
    if (status == TARN_OK) status = tarn_json_integer(&iteration, &entry->iteration);
    if (status == TARN_OK) status = read_time(&begin, &entry->begin_ns);
    if (status == TARN_OK) status = read_time(&length, &length_ns);
    entry->end_ns = entry->begin_ns + length_ns;
    return status;
}

static enum tarn_status read_events(const struct tarn_json_at *document, struct entries *entries)
{
    bool bare = tarn_json_is_array(document);
    struct tarn_json_at list = bare ? *document : tarn_json_in(document, "traceEvents");
    if (!list.value) return tarn_json_bad(document, "is no trace: it has no traceEvents");
    size_t count = 0;
    enum tarn_status status = tarn_json_array(&list, &count);
    if (status != TARN_OK) return status;
    entries->items = tarn_take_zeros(count + 1, sizeof *entries->items);
    if (!entries->items) return tarn_error_no_memory(document->report->error);
    struct tarn_json_at event = tarn_json_items(&list);
    while (tarn_json_next(&event, &status)) status = read_event(&event, entries);
    return status;
}

enum tarn_status tarn_trace_load(const char *path, struct tarn_trace_entry **entries, size_t *count,
                                 struct tarn_error *error)
{
    if (entries) *entries = NULL;
    if (count) *count = 0;
    if (!path || !entries || !count) return tarn_error_null(error, __func__);
    struct tarn_report report = {.error = error, .text_max = TARN_TEXT_MAX};
    struct tarn_json_at document;
    struct entries read = {NULL, 0};
    char *text = NULL;
    tarn_error_clear(error);
    enum tarn_status status =
        tarn_json_load(&report, &(struct tarn_reader){.name = path}, &text, &document);
    if (status == TARN_OK) status = read_events(&document, &read);
    tarn_json_close(&document, text);
    if (status != TARN_OK) {
        tarn_free(read.items);
        return status;
    }
    *entries = read.items;
    *count = read.count;
    return TARN_OK;
}
