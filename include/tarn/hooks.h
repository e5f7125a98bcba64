/* Hooks of the process: where the library's own memory comes from, and where it tells what no call
 * returns. */
#ifndef TARN_HOOKS_H
#define TARN_HOOKS_H

#include <stddef.h>

#include "error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Memory ----
 * All that the library keeps or works with on the host: graphs, plans, sessions without their
 * arenas, what a search needs, texts, memory for copies (tarn_session_host_memory_create). Not
 * through it go arenas (tarn_memory_source of device.h), what device libraries and OpenMP take,
 * what hwloc takes while it reads the machine (tarn_host_cores), what jansson takes while JSON is
 * read or written (a few MiB at most, given back by the same call; json_set_alloc_funcs is the
 * embedder's, the library never calls it), and what the C library takes for itself: threads, files,
 * sorting. */
struct tarn_allocator {
    size_t struct_size;
    void *user;
    /* As malloc, realloc and free of C: alignment for any type, NULL when there is no memory, which
     * the call that wanted it answers with TARN_SYSTEM. From any thread, several at once; they must
     * not call the library. `size` is above 0; `resize` may get NULL, `release` may not. */
    void *(*take)(void *user, size_t size);
    void *(*resize)(void *user, void *memory, size_t size);
    void (*release)(void *user, void *memory);
};
#ifndef __cplusplus
#define TARN_ALLOCATOR(...) \
    (&(struct tarn_allocator){.struct_size = sizeof(struct tarn_allocator), __VA_ARGS__})
#endif

/* For the rest of the process, once, before any call that takes memory. The struct is copied; the
 * functions must work until the process ends. TARN_USAGE: a function is missing, or memory has been
 * taken already. */
TARN_API enum tarn_status tarn_set_allocator(const struct tarn_allocator *allocator,
                                             struct tarn_error *error);

/* Gives back what a call says the caller frees: lists of changes, orders and traces. free() does it
 * as well where no allocator is set. NULL: nothing. */
TARN_API void tarn_free(void *memory);

/* ---- Log ----
 * What a call does and does not return: that it does with less than it asked the system for
 * (threads, huge pages, cores of its own), and what it chose. Errors are not told here; they are in
 * struct tarn_error. */
enum tarn_log_level {
    TARN_LOG_WARNING, /* it works, but not as well as it might */
    TARN_LOG_INFO
};

struct tarn_log {
    size_t struct_size;
    void *user;
    /* A line, without a newline, safe to print (TARN_PLAIN of text.h); valid during the call. From
     * any thread, several at once; it must not call the library. */
    void (*line)(void *user, enum tarn_log_level level, const char *line);
    enum tarn_log_level level; /* the last one that is told */
};
#ifndef __cplusplus
#define TARN_LOG(...) (&(struct tarn_log){.struct_size = sizeof(struct tarn_log), __VA_ARGS__})
#endif

/* Any time, from any thread; NULL: to nobody, as in the beginning. The struct is the caller's and
 * is used until another one is set and calls that run meanwhile have returned. TARN_USAGE: there is
 * no function, or no struct_size. */
TARN_API enum tarn_status tarn_set_log(const struct tarn_log *log, struct tarn_error *error);

#ifdef __cplusplus
}
#endif

#endif
