/* Prints a verb's results on a stream: one JSON object for programs, or aligned lines for people.
 * The verb states each fact once, for both forms. */
#ifndef TARN_CLI_COMMAND_PRINT_H
#define TARN_CLI_COMMAND_PRINT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "tarn.h"

#define TARN_PRINTER_DEPTH 16

struct tarn_printer {
    FILE *file;
    bool json;
    unsigned depth;                          /* of open objects and lists */
    bool first;                              /* for people: nothing was printed at this depth yet */
    struct json_t *open[TARN_PRINTER_DEPTH]; /* JSON: jansson's values, written at the end */
};

void tarn_printer_begin(struct tarn_printer *printer, FILE *file, bool json);
void tarn_printer_end(struct tarn_printer *printer);

/* Facts. For people, a key loses its unit ("_bytes") and its underscores. key NULL: an element of
 * a list. */
void tarn_printer_text(struct tarn_printer *printer, const char *key,
                       const char *text); /* NULL: null */
void tarn_printer_count(struct tarn_printer *printer, const char *key, uint64_t count);
void tarn_printer_id(struct tarn_printer *printer, const char *key,
                     uint32_t id); /* TARN_NONE: null */
void tarn_printer_bytes(struct tarn_printer *printer, const char *key, uint64_t bytes);
void tarn_printer_bytes_or_null(struct tarn_printer *printer, const char *key, uint64_t bytes);
void tarn_printer_hash(struct tarn_printer *printer, const char *key,
                       uint64_t hash); /* 16 hex digits */
/* For people only: NAME (KIND:ID, WHERE), without WHERE if that is NULL. */
void tarn_printer_named(struct tarn_printer *printer, const char *key, const char *name,
                        const char *kind, uint32_t id, const char *where);
/* For people only: the text between two facts of a row, instead of a comma. */
void tarn_printer_link(struct tarn_printer *printer, const char *text);
void tarn_printer_real(struct tarn_printer *printer, const char *key, double number);
void tarn_printer_boolean(struct tarn_printer *printer, const char *key, bool truth);

/* An object, or a list, inside the printer; for people, all of it on one line. */
void tarn_printer_open(struct tarn_printer *printer, const char *key,
                       char bracket); /* '{' or '[' */
void tarn_printer_close(struct tarn_printer *printer);

/* Opens a list of rows. In JSON it is a named list of objects; for people each row begins with the
 * key, and nothing surrounds the rows. A row ends with tarn_printer_close. */
void tarn_printer_open_list(struct tarn_printer *printer, const char *key);
void tarn_printer_open_row(struct tarn_printer *printer, const char *key);
void tarn_printer_close_list(struct tarn_printer *printer);

/* Prints one object for each memory space of the plan; nothing if its graph has only one. */
void tarn_spaces_print(struct tarn_printer *printer, const struct tarn_plan *plan);

/* For --json: every later failure is also printed as one JSON object on standard output, {"error":
 * {"code", "message", "place"}}, unless a result object was printed there already. */
void tarn_fail_in_json(void);

/* Says why the command fails; returns the status. place: where in a file, or NULL. */
enum tarn_status tarn_fail(enum tarn_status status, const char *place, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The same for a failed call of the library. */
enum tarn_status tarn_print_error(const struct tarn_error *error, enum tarn_status status);

/* Fills in *error for memory that was refused; returns TARN_SYSTEM. */
enum tarn_status tarn_no_memory(struct tarn_error *error);

/* By how many percent a footprint or a peak exceeds its bound, or a time exceeds the earlier time;
 * 0 if the bound is 0. */
double tarn_gap_percent(uint64_t bytes, uint64_t bound);

#endif
