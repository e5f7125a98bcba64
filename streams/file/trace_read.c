/* Traces of runs as files, as session/trace.c writes them and as viewers save them again: Chrome
 * trace events, of which those count that are complete ("ph":"X") and say in "args" which op of
 * which iteration they are. All else is passed over. Times are decimal microseconds, of which
 * three places count. Cost: linear. */
#include <string.h>

#include "json_read.h"
#include "streams/base/memory.h"
#include "tarn/session.h"

#define MICROSECONDS_MAX (TARN_JSON_INTEGER_MAX / 1000)

struct entries {
    struct tarn_trace_entry *items;
    size_t count;
};

static const struct tarn_json *find(const struct tarn_json *object, const char *key)
{
    struct tarn_json_member member = {NULL, NULL};
    while (tarn_json_next_member(object, &member))
        if (strcmp(member.key, key) == 0) return member.value;
    return NULL;
}

static bool is_object(const struct tarn_json *value)
{
    return value && tarn_json_type_of(value) == TARN_JSON_OBJECT;
}

static enum tarn_status read_time(const struct tarn_report *report,
                                  const struct tarn_json_at *event, const char *key,
                                  const struct tarn_json *value, uint64_t *ns)
{
    struct tarn_json_at at = tarn_json_in(event, key, 0);
    enum tarn_json_type type = value ? tarn_json_type_of(value) : TARN_JSON_NULL;
    size_t size = 0, i = 0;
    if (type != TARN_JSON_INTEGER && type != TARN_JSON_REAL)
        return tarn_json_bad(report, &at, "must be a number of microseconds");
    const char *token = tarn_json_token(value, &size);
    uint64_t whole = 0, part = 0;
    for (; i < size && token[i] >= '0' && token[i] <= '9' && whole <= MICROSECONDS_MAX; i++)
        whole = whole * 10 + (uint64_t)(token[i] - '0');
    if (i < size && token[i] == '.') i++;
    for (uint64_t place = 100; i < size && token[i] >= '0' && token[i] <= '9'; i++, place /= 10)
        part += place * (uint64_t)(token[i] - '0');
    if (i < size || whole > MICROSECONDS_MAX)
        return tarn_json_bad(report, &at,
                             "must be a plain number of microseconds, not negative and below %llu",
                             (unsigned long long)MICROSECONDS_MAX);
    *ns = whole * 1000 + part;
    return TARN_OK;
}

static enum tarn_status read_event(const struct tarn_report *report, const struct tarn_json_at *at,
                                   const struct tarn_json *event, struct entries *entries)
{
    const struct tarn_json *phase = is_object(event) ? find(event, "ph") : NULL;
    const struct tarn_json *arguments = phase ? find(event, "args") : NULL;
    if (!is_object(arguments) || tarn_json_type_of(phase) != TARN_JSON_STRING ||
        strcmp(tarn_json_characters(phase), "X") != 0)
        return TARN_OK;
    const struct tarn_json *op = find(arguments, "op");
    const struct tarn_json *iteration = find(arguments, "iteration");
    if (!op || !iteration) return TARN_OK;
    struct tarn_trace_entry *entry = &entries->items[entries->count++];
    struct tarn_json_at arguments_at = tarn_json_in(at, "args", 0);
    struct tarn_json_at op_at = tarn_json_in(&arguments_at, "op", 0);
    struct tarn_json_at iteration_at = tarn_json_in(&arguments_at, "iteration", 0);
    uint64_t length_ns = 0;
    enum tarn_status status = tarn_json_id(report, &op_at, op, &entry->op);
    if (!status)
        status = tarn_json_integer(report, &iteration_at, iteration, TARN_JSON_INTEGER_MAX,
                                   &entry->iteration);
    if (!status) status = read_time(report, at, "ts", find(event, "ts"), &entry->begin_ns);
    if (!status) status = read_time(report, at, "dur", find(event, "dur"), &length_ns);
    entry->end_ns = entry->begin_ns + length_ns;
    return status;
}

static enum tarn_status read_events(const struct tarn_report *report,
                                    const struct tarn_json *document, struct entries *entries)
{
    bool bare = tarn_json_type_of(document) == TARN_JSON_ARRAY;
    struct tarn_json_at list_at = tarn_json_in(NULL, "traceEvents", 0);
    const struct tarn_json_at *at = bare ? NULL : &list_at;
    const struct tarn_json *list = bare ? document : find(document, "traceEvents");
    if (!list) return tarn_json_bad(report, NULL, "is no trace: it has no traceEvents");
    size_t count = 0;
    enum tarn_status status = tarn_json_array(report, at, list, &count);
    if (status != TARN_OK) return status;
    entries->items = tarn_take_zeros(count + 1, sizeof *entries->items);
    if (!entries->items) return tarn_error_no_memory(report->error);
    const struct tarn_json *event = tarn_json_first(list);
    for (size_t i = 0; event && !status; i++, event = tarn_json_next(event)) {
        struct tarn_json_at here = tarn_json_in(at, NULL, i);
        status = read_event(report, &here, event, entries);
    }
    return status;
}

enum tarn_status tarn_trace_load(const char *path, struct tarn_trace_entry **entries, size_t *count,
                                 struct tarn_error *error)
{
    if (entries) *entries = NULL;
    if (count) *count = 0;
    if (!path || !entries || !count) return tarn_error_null(error, __func__);
    struct tarn_report report = {.error = error, .text_max = TARN_TEXT_MAX};
    const struct tarn_json *document = NULL;
    struct entries read = {NULL, 0};
    char *text = NULL;
    tarn_error_clear(error);
    enum tarn_status status =
        tarn_json_load(&report, &(struct tarn_reader){.name = path}, &text, &document);
    if (!status) status = read_events(&report, document, &read);
    tarn_free(text);
    if (status != TARN_OK) {
        tarn_free(read.items);
        return status;
    }
    *entries = read.items;
    *count = read.count;
    return TARN_OK;
}
