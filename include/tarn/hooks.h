/* Hooks of the process: the allocator of the library's own memory, and its log. */
#ifndef TARN_HOOKS_H
#define TARN_HOOKS_H

#include <stddef.h>

#include "error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Memory ----
 * Allocates the library's memory on the host: graphs, plans, sessions without their arenas,
 * searches, texts, memory for copies (tarn_session_host_memory_create). Not allocated through it:
 * arenas (tarn_memory_source of device.h); memory of device libraries and OpenMP; memory of hwloc
 * while it reads the machine (tarn_host_cores); memory of jansson while JSON is read or written (a
 * few MiB at most, freed by the same call; the embedder may set json_set_alloc_funcs, the library
 * never calls it); and memory of the C library for threads, files and sorting. */
struct tarn_allocator {
    size_t struct_size;
    void *user;
    /* As malloc, realloc and free of C: alignment for any type, NULL if there is no memory; the
     * call that needs the memory then returns TARN_SYSTEM. From any thread, several at once; they
     * must not call the library. `size` is above 0; `resize` may get NULL, `release` may not. */
    void *(*take)(void *user, size_t size);
    void *(*resize)(void *user, void *memory, size_t size);
    void (*release)(void *user, void *memory);
};
#ifndef __cplusplus
#define TARN_ALLOCATOR(...) \
    (&(struct tarn_allocator){.struct_size = sizeof(struct tarn_allocator), __VA_ARGS__})
#endif

/* Sets the allocator for the rest of the process, once, before any call that takes memory. The
 * struct is copied; the functions must work until the process ends. TARN_USAGE: a function is
 * missing, or memory has been taken already. */
TARN_API enum tarn_status tarn_set_allocator(const struct tarn_allocator *allocator,
                                             struct tarn_error *error);

/* Frees memory that the caller must free according to a call's comment: lists of changes, orders
 * and traces. free() works as well if no allocator is set. NULL: does nothing. */
TARN_API void tarn_free(void *memory);

/* ---- Log ----
 * Events that no call returns: the system granted less than the library requested (threads, huge
 * pages, cores of its own), and choices of the library. Errors are not logged; they are in struct
 * tarn_error. */
enum tarn_log_level {
    TARN_LOG_WARNING, /* it works, but not as well as it could */
    TARN_LOG_INFO
};

struct tarn_log {
    size_t struct_size;
    void *user;
    /* A line, without a newline, safe to print (TARN_PLAIN of text.h); valid during the call. From
     * any thread, several at once; it must not call the library. */
    void (*line)(void *user, enum tarn_log_level level, const char *line);
    enum tarn_log_level level; /* the last level that is logged */
};
#ifndef __cplusplus
#define TARN_LOG(...) (&(struct tarn_log){.struct_size = sizeof(struct tarn_log), __VA_ARGS__})
#endif

/* Sets the log, at any time, from any thread; NULL: no log, which is the default. The caller keeps
 * the struct until another log is set and calls that run meanwhile have returned. TARN_USAGE: the
 * function or struct_size is missing. */
TARN_API enum tarn_status tarn_set_log(const struct tarn_log *log, struct tarn_error *error);

#ifdef __cplusplus
}
#endif

#endif
