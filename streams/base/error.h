/* Fills struct tarn_error. The first error wins: an error that is already set stays. */
#ifndef TARN_STREAMS_BASE_ERROR_H
#define TARN_STREAMS_BASE_ERROR_H

#include <stdarg.h>

#include "tarn/error.h"

/* Clears *error (NULL allowed); every public call that takes an error begins with it. */
void tarn_error_clear(struct tarn_error *error);

/* Sets status and text if no error is set yet; returns `status`, so that callers can return it. */
enum tarn_status tarn_error_set(struct tarn_error *error, enum tarn_status status,
                                const char *format, ...) __attribute__((format(printf, 3, 4)));

/* For an error that has just been set, since nothing keeps to a capacity or budget: the smallest
 * arena found. UINT64_MAX: none. Returns the error's status, or `status` if the caller wants no
 * error. */
enum tarn_status tarn_error_found(struct tarn_error *error, enum tarn_status status,
                                  uint64_t footprint);

/* For public calls: clears *error, then sets TARN_USAGE. function: __func__. */
enum tarn_status tarn_error_null(struct tarn_error *error, const char *function);

/* TARN_SYSTEM, with the reason in errno. what: "cannot be opened". */
enum tarn_status tarn_error_file(struct tarn_error *error, const char *path, const char *what);

/* "1 byte", "2 bytes". Meant to be used inside the call that formats. */
struct tarn_bytes_phrase {
    char text[32];
};
struct tarn_bytes_phrase tarn_bytes_phrase(uint64_t bytes);

/* TARN_SYSTEM, "out of memory". */
enum tarn_status tarn_error_no_memory(struct tarn_error *error);

#endif
