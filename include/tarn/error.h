/* Status codes and the error struct that serves the whole API. */
#ifndef TARN_ERROR_H
#define TARN_ERROR_H

#include <stdint.h>

#if defined(_WIN32)
#define TARN_API
#else
#define TARN_API __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* "Not an id" for every kind of id. */
#define TARN_NONE UINT32_MAX

/* The result of a call. The numbers are also the exit codes of the `tarn` command. */
enum tarn_status {
    TARN_OK = 0,
    TARN_DOES_NOT_FIT = 1, /* the plan needs more than the given capacity */
    TARN_USAGE = 2,        /* an argument of the call itself is wrong */
    TARN_BAD_INPUT = 3,    /* a graph, plan or order is malformed or breaks a rule */
    TARN_DEVICE = 4,       /* the device or an op's kernel reported an error */
    TARN_DEADLINE = 5,     /* work did not finish in time */
    TARN_REJECTED = 6,     /* the verifier refused the plan */
    TARN_CHECK_FAILED = 7, /* checked execution read a byte that it must not hold */
    TARN_SYSTEM = 8,       /* no memory, or a file could not be read or written */
    TARN_INTERRUPTED = 130 /* stopped by the user */
};

/* Details of the first error of a call; the caller owns it and passes NULL if the status is enough.
 * Every call that takes one clears it first. `text` is one line without a final newline, UTF-8, and
 * safe to print (TARN_PLAIN of text.h), as is `pointer`.
 */
struct tarn_error {
    enum tarn_status status;
    int device_code; /* code of the device or kernel; for files errno; else 0 */
    uint32_t line;   /* 1-based, in the file, for syntax errors; else 0 */
    uint32_t column; /* 1-based; else 0 */
    uint32_t op;     /* TARN_NONE if no op is concerned */
    uint32_t tensor; /* TARN_NONE if no tensor is concerned */
    /* Bytes of the smallest arena that was found where it is above a capacity or a budget, in the
     * memory space of the text: what to ask for instead. 0: none was found. */
    uint64_t footprint;
    char pointer[128]; /* JSON pointer (RFC 6901) into the file, or "" */
    char text[512];
};

/* A word for a status, for example "bad input"; static. */
TARN_API const char *tarn_status_text(enum tarn_status status);

/* The version of these headers, in parts and as one number, which grows from version to version. */
#define TARN_VERSION_MAJOR 0
#define TARN_VERSION_MINOR 1
#define TARN_VERSION_PATCH 0
#define TARN_VERSION_TEXT "0.1.0"
#define TARN_VERSION_NUMBER \
    (TARN_VERSION_MAJOR * 1000000u + TARN_VERSION_MINOR * 1000u + TARN_VERSION_PATCH)

/* The version of the library that is linked, for example "0.1.0", static; and as one number. A
 * program needs a library whose number is not below that of its headers; docs/abi.md says more. */
TARN_API const char *tarn_version(void);
TARN_API uint32_t tarn_version_number(void);

#ifdef __cplusplus
}
#endif

#endif
