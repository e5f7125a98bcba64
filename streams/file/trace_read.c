/* Traces of runs as files, as session/trace.c writes them and as viewers save them again: Chrome
 * trace events, of which those count that are complete ("ph":"X") and say in "args" which op of
 * which iteration they are. All else is passed over. Times are decimal microseconds, of which
 * three places count. Cost: linear. */
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
    enum tarn_json_type type = at->value ? tarn_json_type_of(at->value) : TARN_JSON_NULL;
    size_t size = 0, i = 0;
    if (type != TARN_JSON_INTEGER && type != TARN_JSON_REAL)
        return tarn_json_bad(at, "must be a number of microseconds");
    const char *token = tarn_json_token(at->value, &size);
    uint64_t whole = 0, part = 0;
    for (; i < size && token[i] >= '0' && token[i] <= '9' && whole <= MICROSECONDS_MAX; i++)
        whole = whole * 10 + (uint64_t)(token[i] - '0');
    if (i < size && token[i] == '.') i++;
    for (uint64_t place = 100; i < size && token[i] >= '0' && token[i] <= '9'; i++, place /= 10)
        part += place * (uint64_t)(token[i] - '0');
    if (i < size || whole > MICROSECONDS_MAX)
        return tarn_json_bad(at,
                             "must be a plain number of microseconds, not negative and below %llu",
                             (unsigned long long)MICROSECONDS_MAX);
    *ns = whole * 1000 + part;
    return TARN_OK;
}

static bool is_complete_event(const struct tarn_json_at *event)
{
    struct tarn_json_at phase = tarn_json_in(event, "ph");
    return phase.value && tarn_json_type_of(phase.value) == TARN_JSON_STRING &&
           strcmp(tarn_json_characters(phase.value), "X") == 0;
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
    if (!status) status = tarn_json_integer(&iteration, &entry->iteration);
    if (!status) status = read_time(&begin, &entry->begin_ns);
    if (!status) status = read_time(&length, &length_ns);
    entry->end_ns = entry->begin_ns + length_ns;
    return status;
}

static enum tarn_status read_events(const struct tarn_json_at *document, struct entries *entries)
{
    bool bare = tarn_json_type_of(document->value) == TARN_JSON_ARRAY;
    struct tarn_json_at list = bare ? *document : tarn_json_in(document, "traceEvents");
    if (!list.value) return tarn_json_bad(document, "is no trace: it has no traceEvents");
    size_t count = 0;
    enum tarn_status status = tarn_json_array(&list, &count);
    if (status != TARN_OK) return status;
    entries->items = tarn_take_zeros(count + 1, sizeof *entries->items);
    if (!entries->items) return tarn_error_no_memory(document->report->error);
    struct tarn_json_at event = tarn_json_items(&list);
    for (; event.value && !status; tarn_json_step(&event)) status = read_event(&event, entries);
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
    if (!status) status = read_events(&document, &read);
    tarn_free(text);
    if (status != TARN_OK) {
        tarn_free(read.items);
        return status;
    }
    *entries = read.items;
    *count = read.count;
    return TARN_OK;
}
