/* Printing: one code path for both forms, so that both say the same.
 *
 *     json      {"name": "x",              people    name             x
 *                "footprint_bytes": 1024,            footprint        1024 bytes (1.00 KiB)
 *                "events": {"arcs": 9}}              events           arcs 9                     */
#include "print.h"

#include <assert.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "messages.h"

#define LABEL_WIDTH 16

static struct {
    bool fails_in_json;
    bool is_given; /* an object of JSON, on standard output */
} answer;

void tarn_printer_begin(struct tarn_printer *printer, FILE *file, bool json)
{
    *printer = (struct tarn_printer){.file = file, .json = json, .depth = 1, .first = true};
    if (json) printer->open[0] = json_object();
}

/* DEL, which is ASCII and which jansson leaves as it is, is only in strings. */
static int write_escaped(const char *text, size_t size, void *file)
{
    for (size_t i = 0; i < size; i++) {
        if (text[i] == 0x7f)
            fputs("\\u007F", file);
        else
            fputc(text[i], file);
    }
    return 0;
}

/* Memory that is refused sets the error of the stream, which is only written to. */
static void dump(const json_t *value, FILE *file)
{
    static const size_t flags = JSON_ENCODE_ANY | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(15);
    if (json_dump_callback(value, write_escaped, file, flags) != 0) fgetc(file);
}

/* A member of the answer on each line. */
static void print_object(json_t *object, FILE *file)
{
    const char *key, *before = "{";
    json_t *value;
    json_object_foreach(object, key, value)
    {
        json_t *name = json_string(key);
        fputs(before, file);
        before = ",\n ";
        dump(name, file);
        fputs(": ", file);
        dump(value, file);
        json_decref(name);
    }
    fputs(*before == '{' ? "{}\n" : "}\n", file);
}

void tarn_printer_end(struct tarn_printer *printer)
{
    if (!printer->json) {
        fputc('\n', printer->file);
        return;
    }
    print_object(printer->open[0], printer->file);
    json_decref(printer->open[0]);
    answer.is_given = answer.is_given || printer->file == stdout;
}

/* ---- Strings and labels ---- */

/* Names come from files: control characters in them are escaped before they reach a terminal. */
static void print_escaped(FILE *file, const char *text)
{
    char shown[512];
    size_t size = tarn_text_escape(TARN_PLAIN, text, shown, sizeof shown);
    char *longer = size < sizeof shown ? NULL : malloc(size + 1);
    if (longer) tarn_text_escape(TARN_PLAIN, text, longer, size + 1);
    fputs(longer ? longer : shown, file);
    free(longer);
}

/* Bytes that are not UTF-8 become U+FFFD. */
static json_t *json_of(const char *text)
{
    json_t *value = json_string(text);
    size_t size = value ? 0 : tarn_text_escape(TARN_JSON, text, NULL, 0);
    char *escaped = value ? NULL : malloc(size + 3);
    if (!escaped) return value;
    escaped[0] = '"';
    tarn_text_escape(TARN_JSON, text, escaped + 1, size + 1);
    memcpy(escaped + 1 + size, "\"", 2);
    value = json_loads(escaped, JSON_DECODE_ANY, NULL);
    free(escaped);
    return value;
}

/* Adds a fact to the open object or list. If memory is refused, a hole stays, which is no JSON
 * value. */
static bool put(struct tarn_printer *printer, const char *key, json_t *value)
{
    json_t *open = printer->open[printer->depth - 1];
    int code = key ? json_object_set_new(open, key, value) : json_array_append_new(open, value);
    if (code != 0) fgetc(printer->file); /* sets its error */
    return code == 0;
}

/* "serial_peak_bytes" -> "serial peak", padded at the outer level. */
static void print_label(const struct tarn_printer *printer, const char *key)
{
    size_t length = strlen(key);
    if (length > 6 && strcmp(key + length - 6, "_bytes") == 0) length -= 6;
    for (size_t i = 0; i < length; i++) fputc(key[i] == '_' ? ' ' : key[i], printer->file);
    size_t width = printer->depth == 1 ? LABEL_WIDTH : 0;
    do {
        fputc(' ', printer->file);
    } while (++length <= width);
}

static void print_key(struct tarn_printer *printer, const char *key)
{
    if (!printer->first) fputs(printer->depth > 1 ? ", " : "\n", printer->file);
    printer->first = false;
    if (key) print_label(printer, key);
}

/* ---- Facts ---- */

void tarn_printer_text(struct tarn_printer *printer, const char *key, const char *text)
{
    if (printer->json) {
        put(printer, key, text ? json_of(text) : json_null());
        return;
    }
    print_key(printer, key);
    if (text)
        print_escaped(printer->file, text);
    else
        fputc('-', printer->file);
}

void tarn_printer_count(struct tarn_printer *printer, const char *key, uint64_t count)
{
    if (printer->json) {
        put(printer, key,
            count > INT64_MAX ? json_real((double)count) : json_integer((json_int_t)count));
        return;
    }
    print_key(printer, key);
    fprintf(printer->file, "%" PRIu64, count);
}

void tarn_printer_id(struct tarn_printer *printer, const char *key, uint32_t id)
{
    if (id == TARN_NONE)
        tarn_printer_text(printer, key, NULL);
    else
        tarn_printer_count(printer, key, id);
}

void tarn_printer_bytes(struct tarn_printer *printer, const char *key, uint64_t bytes)
{
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    tarn_printer_count(printer, key, bytes);
    if (printer->json) return;
    fputs(bytes == 1 ? " byte" : " bytes", printer->file);
    if (bytes < 1024) return;
    double amount = (double)bytes / 1024;
    size_t unit = 0;
    for (; amount >= 1024; unit++) amount /= 1024;
    fprintf(printer->file, " (%.2f %s)", amount, units[unit]);
}

void tarn_printer_bytes_or_null(struct tarn_printer *printer, const char *key, uint64_t bytes)
{
    if (bytes == 0)
        tarn_printer_text(printer, key, NULL);
    else
        tarn_printer_bytes(printer, key, bytes);
}

void tarn_printer_hash(struct tarn_printer *printer, const char *key, uint64_t hash)
{
    char digits[17];
    snprintf(digits, sizeof digits, "%016" PRIx64, hash);
    tarn_printer_text(printer, key, digits);
}

void tarn_printer_named(struct tarn_printer *printer, const char *key, const char *name,
                        const char *kind, uint32_t id, const char *where)
{
    print_key(printer, key);
    print_escaped(printer->file, name);
    fprintf(printer->file, "%s(%s:%" PRIu32, name[0] ? " " : "", kind, id);
    if (where) {
        fputs(", ", printer->file);
        print_escaped(printer->file, where);
    }
    fputc(')', printer->file);
}

void tarn_printer_link(struct tarn_printer *printer, const char *text)
{
    fputs(text, printer->file);
    printer->first = true;
}

void tarn_printer_real(struct tarn_printer *printer, const char *key, double number)
{
    if (printer->json) {
        put(printer, key, isfinite(number) ? json_real(round(number * 1000) / 1000) : json_null());
        return;
    }
    print_key(printer, key);
    if (isfinite(number))
        fprintf(printer->file, "%.3f", number);
    else
        fputs("null", printer->file);
}

void tarn_printer_boolean(struct tarn_printer *printer, const char *key, bool truth)
{
    if (printer->json) {
        put(printer, key, json_boolean(truth));
        return;
    }
    print_key(printer, key);
    fputs(truth ? "yes" : "no", printer->file);
}

/* ---- Nesting ---- */

void tarn_printer_open(struct tarn_printer *printer, const char *key, char bracket)
{
    if (printer->json) {
        json_t *value = bracket == '{' ? json_object() : json_array();
        assert(printer->depth < TARN_PRINTER_DEPTH);
        printer->open[printer->depth] = put(printer, key, value) ? value : NULL;
        printer->depth++;
        return;
    }
    print_key(printer, key);
    printer->depth++;
    printer->first = true;
}

void tarn_printer_close(struct tarn_printer *printer)
{
    printer->depth--;
    printer->first = false;
}

void tarn_printer_open_list(struct tarn_printer *printer, const char *key)
{
    if (printer->json) tarn_printer_open(printer, key, '[');
}

void tarn_printer_open_row(struct tarn_printer *printer, const char *key)
{
    tarn_printer_open(printer, printer->json ? NULL : key, '{');
}

void tarn_printer_close_list(struct tarn_printer *printer)
{
    if (printer->json) tarn_printer_close(printer);
}

/* ---- Failures, and gaps ---- */

void tarn_fail_in_json(void) { answer.fails_in_json = true; }

enum tarn_status tarn_fail(enum tarn_status status, const char *place, const char *format, ...)
{
    char text[2048];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    tarn_say("%s", text);
    if (!answer.fails_in_json || answer.is_given) return status;
    struct tarn_printer printer;
    tarn_printer_begin(&printer, stdout, true);
    tarn_printer_open(&printer, "error", '{');
    tarn_printer_count(&printer, "code", status);
    tarn_printer_text(&printer, "message", text);
    tarn_printer_text(&printer, "place", place);
    tarn_printer_close(&printer);
    tarn_printer_end(&printer);
    return status;
}

enum tarn_status tarn_no_memory(struct tarn_error *error)
{
    snprintf(error->text, sizeof error->text, "out of memory");
    return error->status = TARN_SYSTEM;
}

enum tarn_status tarn_print_error(const struct tarn_error *error, enum tarn_status status)
{
    char line[64];
    const char *place = error->pointer[0] ? error->pointer : NULL;
    if (!place && error->line > 0) {
        snprintf(line, sizeof line, "line %" PRIu32 ", column %" PRIu32, error->line,
                 error->column);
        place = line;
    }
    return tarn_fail(status, place, "%s", error->text[0] ? error->text : tarn_status_text(status));
}

double tarn_gap_percent(uint64_t bytes, uint64_t bound)
{
    return bound > 0 ? 100.0 * ((double)bytes - (double)bound) / (double)bound : 0;
}

void tarn_spaces_print(struct tarn_printer *printer, const struct tarn_plan *plan)
{
    const struct tarn_graph *graph = tarn_plan_graph(plan);
    uint32_t count = tarn_graph_spaces_count(graph);
    if (count > 1 && printer->json) tarn_printer_open(printer, "spaces", '[');
    for (tarn_space s = 0; count > 1 && s < count; s++) {
        struct tarn_space_info info;
        struct tarn_plan_space_summary made;
        tarn_graph_space(graph, s, &info);
        tarn_plan_space(plan, s, &made);
        tarn_printer_open_row(printer, "space");
        tarn_printer_text(printer, "name", info.name);
        tarn_printer_bytes(printer, "footprint_bytes", made.footprint);
        tarn_printer_bytes_or_null(printer, "bound_bytes", made.bound);
        tarn_printer_bytes(printer, "persistent_bytes", made.persistent);
        tarn_printer_close(printer);
    }
    if (count > 1 && printer->json) tarn_printer_close(printer);
}
