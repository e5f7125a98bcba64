/* Printing: one code path for both forms, so that both say the same.
 *
 *     json      {"name": "x",              people    name             x
 *                "footprint_bytes": 1024,            footprint        1024 bytes (1.00 KiB)
 *                "events": {"arcs": 9}}              events           arcs 9                     */
#include "print.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "messages.h"

#define LABEL_WIDTH 16

static struct {
    bool fails_in_json;
    bool is_begun; /* an object of JSON, on standard output */
} answer;

void tarn_printer_begin(struct tarn_printer *printer, FILE *file, bool json)
{
    *printer = (struct tarn_printer){.file = file, .json = json, .depth = 1, .first = true};
    if (!json) return;
    fputc('{', file);
    answer.is_begun = answer.is_begun || file == stdout;
}

void tarn_printer_end(struct tarn_printer *printer)
{
    fputs(printer->json ? "}\n" : "\n", printer->file);
}

/* ---- Strings and labels ---- */

/* Names come from files: what a terminal would obey is not sent to it. */
static void print_escaped(FILE *file, enum tarn_language language, const char *text)
{
    char shown[512];
    size_t size = tarn_text_escape(language, text, shown, sizeof shown);
    char *longer = size < sizeof shown ? NULL : malloc(size + 1);
    if (longer) tarn_text_escape(language, text, longer, size + 1);
    fputs(longer ? longer : shown, file);
    free(longer);
}

static void print_json_string(FILE *file, const char *text)
{
    fputc('"', file);
    print_escaped(file, TARN_JSON, text);
    fputc('"', file);
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
    if (!printer->first) fputs(printer->json || printer->depth > 1 ? "," : "\n", printer->file);
    if (!printer->first && printer->depth > 1) fputc(' ', printer->file);
    if (!printer->first && printer->depth == 1 && printer->json) fputs("\n ", printer->file);
    printer->first = false;
    if (!key) return;
    if (!printer->json) {
        print_label(printer, key);
        return;
    }
    print_json_string(printer->file, key);
    fputs(": ", printer->file);
}

/* ---- Facts ---- */

void tarn_printer_text(struct tarn_printer *printer, const char *key, const char *text)
{
    print_key(printer, key);
    if (!text)
        fputs(printer->json ? "null" : "-", printer->file);
    else if (printer->json)
        print_json_string(printer->file, text);
    else
        print_escaped(printer->file, TARN_PLAIN, text);
}

void tarn_printer_count(struct tarn_printer *printer, const char *key, uint64_t count)
{
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
    print_escaped(printer->file, TARN_PLAIN, name);
    fprintf(printer->file, "%s(%s:%" PRIu32, name[0] ? " " : "", kind, id);
    if (where) {
        fputs(", ", printer->file);
        print_escaped(printer->file, TARN_PLAIN, where);
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
    print_key(printer, key);
    if (isfinite(number))
        fprintf(printer->file, "%.3f", number);
    else
        fputs("null", printer->file);
}

void tarn_printer_boolean(struct tarn_printer *printer, const char *key, bool truth)
{
    print_key(printer, key);
    fputs(printer->json ? (truth ? "true" : "false") : (truth ? "yes" : "no"), printer->file);
}

/* ---- Nesting ---- */

void tarn_printer_open(struct tarn_printer *printer, const char *key, char bracket)
{
    print_key(printer, key);
    if (printer->json) fputc(bracket, printer->file);
    printer->depth++;
    printer->first = true;
}

void tarn_printer_close(struct tarn_printer *printer, char bracket)
{
    if (printer->json) fputc(bracket, printer->file);
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
    if (printer->json) tarn_printer_close(printer, ']');
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
    if (!answer.fails_in_json || answer.is_begun) return status;
    struct tarn_printer printer;
    tarn_printer_begin(&printer, stdout, true);
    tarn_printer_open(&printer, "error", '{');
    tarn_printer_count(&printer, "code", status);
    tarn_printer_text(&printer, "message", text);
    tarn_printer_text(&printer, "place", place);
    tarn_printer_close(&printer, '}');
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
