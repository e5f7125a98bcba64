/* Printing: one code path for both forms, so that they cannot tell different stories.
 *
 *     json      {"name": "x",              people    name             x
 *                "footprint_bytes": 1024,            footprint        1024 bytes (1.00 KiB)
 *                "events": {"arcs": 9}}              events           arcs 9                     */
#include "print.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LABEL_WIDTH 16

void tarn_sheet_begin(struct tarn_sheet *sheet, FILE *file, bool json)
{
    *sheet = (struct tarn_sheet){.file = file, .json = json, .depth = 1, .first = true};
    if (json) fputc('{', file);
}

void tarn_sheet_end(struct tarn_sheet *sheet) { fputs(sheet->json ? "}\n" : "\n", sheet->file); }

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
static void print_label(const struct tarn_sheet *sheet, const char *key)
{
    size_t length = strlen(key);
    if (length > 6 && strcmp(key + length - 6, "_bytes") == 0) length -= 6;
    for (size_t i = 0; i < length; i++) fputc(key[i] == '_' ? ' ' : key[i], sheet->file);
    size_t width = sheet->depth == 1 ? LABEL_WIDTH : 0;
    do {
        fputc(' ', sheet->file);
    } while (++length <= width);
}

static void print_key(struct tarn_sheet *sheet, const char *key)
{
    if (!sheet->first) fputs(sheet->json || sheet->depth > 1 ? "," : "\n", sheet->file);
    if (!sheet->first && sheet->depth > 1) fputc(' ', sheet->file);
    if (!sheet->first && sheet->depth == 1 && sheet->json) fputs("\n ", sheet->file);
    sheet->first = false;
    if (!key) return;
    if (!sheet->json) {
        print_label(sheet, key);
        return;
    }
    print_json_string(sheet->file, key);
    fputs(": ", sheet->file);
}

/* ---- Facts ---- */

void tarn_sheet_text(struct tarn_sheet *sheet, const char *key, const char *text)
{
    print_key(sheet, key);
    if (!text)
        fputs(sheet->json ? "null" : "-", sheet->file);
    else if (sheet->json)
        print_json_string(sheet->file, text);
    else
        print_escaped(sheet->file, TARN_PLAIN, text);
}

void tarn_sheet_count(struct tarn_sheet *sheet, const char *key, uint64_t count)
{
    print_key(sheet, key);
    fprintf(sheet->file, "%" PRIu64, count);
}

void tarn_sheet_id(struct tarn_sheet *sheet, const char *key, uint32_t id)
{
    if (id == TARN_NONE)
        tarn_sheet_text(sheet, key, NULL);
    else
        tarn_sheet_count(sheet, key, id);
}

void tarn_sheet_bytes(struct tarn_sheet *sheet, const char *key, uint64_t bytes)
{
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    tarn_sheet_count(sheet, key, bytes);
    if (sheet->json) return;
    fputs(bytes == 1 ? " byte" : " bytes", sheet->file);
    if (bytes < 1024) return;
    double amount = (double)bytes / 1024;
    size_t unit = 0;
    for (; amount >= 1024; unit++) amount /= 1024;
    fprintf(sheet->file, " (%.2f %s)", amount, units[unit]);
}

void tarn_sheet_bytes_or_null(struct tarn_sheet *sheet, const char *key, uint64_t bytes)
{
    if (bytes == 0)
        tarn_sheet_text(sheet, key, NULL);
    else
        tarn_sheet_bytes(sheet, key, bytes);
}

void tarn_sheet_hash(struct tarn_sheet *sheet, const char *key, uint64_t hash)
{
    char digits[17];
    snprintf(digits, sizeof digits, "%016" PRIx64, hash);
    tarn_sheet_text(sheet, key, digits);
}

void tarn_sheet_real(struct tarn_sheet *sheet, const char *key, double number)
{
    print_key(sheet, key);
    if (isfinite(number))
        fprintf(sheet->file, "%.3f", number);
    else
        fputs("null", sheet->file);
}

void tarn_sheet_boolean(struct tarn_sheet *sheet, const char *key, bool truth)
{
    print_key(sheet, key);
    fputs(sheet->json ? (truth ? "true" : "false") : (truth ? "yes" : "no"), sheet->file);
}

/* ---- Nesting ---- */

void tarn_sheet_open(struct tarn_sheet *sheet, const char *key, char bracket)
{
    print_key(sheet, key);
    if (sheet->json) fputc(bracket, sheet->file);
    sheet->depth++;
    sheet->first = true;
}

void tarn_sheet_close(struct tarn_sheet *sheet, char bracket)
{
    if (sheet->json) fputc(bracket, sheet->file);
    sheet->depth--;
    sheet->first = false;
}

/* ---- Errors, gaps and time ---- */

void tarn_say(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    tarn_say_list(format, arguments);
    va_end(arguments);
}

void tarn_say_list(const char *format, va_list arguments)
{
    char text[2048], shown[2048];
    vsnprintf(text, sizeof text, format, arguments);
    tarn_text_escape(TARN_PLAIN, text, shown, sizeof shown);
    fprintf(stderr, "tarn: %s\n", shown);
}

enum tarn_status tarn_print_error(const struct tarn_error *error, enum tarn_status status)
{
    tarn_say("%s", error->text[0] ? error->text : tarn_status_text(status));
    return status;
}

double tarn_gap_percent(uint64_t bytes, uint64_t bound)
{
    return bound > 0 ? 100.0 * ((double)bytes - (double)bound) / (double)bound : 0;
}

double tarn_now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}
