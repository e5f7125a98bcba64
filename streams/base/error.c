/* Errors: one struct, the first one wins. */
#include "error.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "escape.h"

void tarn_error_clear(struct tarn_error *error)
{
    if (!error) return;
    memset(error, 0, sizeof *error);
    error->op = TARN_NONE;
    error->tensor = TARN_NONE;
}

enum tarn_status tarn_error_set(struct tarn_error *error, enum tarn_status status,
                                const char *format, ...)
{
    if (!error || error->status != TARN_OK) return status;
    error->status = status;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error->text, sizeof error->text, format, arguments);
    va_end(arguments);
    tarn_escape_message(error->text);
    return status;
}

enum tarn_status tarn_error_found(struct tarn_error *error, enum tarn_status status,
                                  uint64_t footprint)
{
    if (error && error->status == status && footprint != UINT64_MAX) error->footprint = footprint;
    return status;
}

enum tarn_status tarn_error_null(struct tarn_error *error, const char *function)
{
    const char *sized = strstr(function, "_sized"); /* callers know the inline function */
    int size = sized ? (int)(sized - function) : (int)strlen(function);
    tarn_error_clear(error);
    return tarn_error_set(error, TARN_USAGE, "%.*s: an argument that it needs is NULL", size,
                          function);
}

enum tarn_status tarn_error_file(struct tarn_error *error, const char *path, const char *what)
{
    int code = errno;
    if (error && error->status == TARN_OK) error->device_code = code;
    const char *name = path[0] != '\0' ? path : "''";
    return tarn_error_set(error, TARN_SYSTEM, "%s: %s: %s", name, what, strerror(code));
}

struct tarn_bytes_phrase tarn_bytes_phrase(uint64_t bytes)
{
    struct tarn_bytes_phrase phrase;
    snprintf(phrase.text, sizeof phrase.text, "%" PRIu64 " byte%s", bytes, bytes == 1 ? "" : "s");
    return phrase;
}

enum tarn_status tarn_error_no_memory(struct tarn_error *error)
{
    return tarn_error_set(error, TARN_SYSTEM, "out of memory");
}

const char *tarn_status_text(enum tarn_status status)
{
    switch (status) {
    case TARN_OK: return "ok";
    case TARN_DOES_NOT_FIT: return "does not fit";
    case TARN_USAGE: return "wrong use";
    case TARN_BAD_INPUT: return "bad input";
    case TARN_DEVICE: return "device error";
    case TARN_DEADLINE: return "deadline passed";
    case TARN_REJECTED: return "plan rejected";
    case TARN_CHECK_FAILED: return "check failed";
    case TARN_SYSTEM: return "system error";
    case TARN_INTERRUPTED: return "interrupted";
    }
    return "unknown status";
}

const char *tarn_version(void) { return TARN_VERSION_TEXT; }

uint32_t tarn_version_number(void) { return TARN_VERSION_NUMBER; }
