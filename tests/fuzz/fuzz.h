/* Fuzz targets: each takes any bytes, makes calls of them, and ends the process where a promise of
 * the library is broken. libFuzzer drives them one by one (libfuzzer.c), the ordinary test builds
 * replay seeds and former findings (tests/library/fuzz_test.c). */
#ifndef TARN_TESTS_FUZZ_H
#define TARN_TESTS_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tarn.h"

/* Plans of more ops are not asked of the oracle, which takes their square. */
enum { FUZZ_ORACLE_OPS_MAX = 64 };

/* ---- Targets ---- */

void fuzz_graph(const uint8_t *data, size_t size);    /* a graph file */
void fuzz_interval(const uint8_t *data, size_t size); /* a packing instance */
void fuzz_plan(const uint8_t *data, size_t size);     /* a plan file for a graph that is sound */
void fuzz_pair(const uint8_t *data, size_t size);     /* a graph file, NUL, a plan file for it */
void fuzz_order(const uint8_t *data, size_t size);    /* a linear order for a plan that is sound */
void fuzz_costs(const uint8_t *data, size_t size);    /* a table of costs */
void fuzz_calls(const uint8_t *data, size_t size);    /* calls of the API, valid and invalid */

/* ---- Promises ---- */

/* Ends the process with this message unless the condition holds. */
#define PROMISED(condition, ...)                                                    \
    do {                                                                            \
        if (!(condition)) fuzz_broken(__FILE__, __LINE__, #condition, __VA_ARGS__); \
    } while (0)
__attribute__((format(printf, 4, 5), noreturn)) void
fuzz_broken(const char *file, int line, const char *condition, const char *format, ...);

/* A set of statuses. */
#define ANY_OF(status) (UINT64_C(1) << ((status) == TARN_INTERRUPTED ? 63 : (status)))

/* What a call has answered: one of the statuses, which the error repeats, with a message that
 * names something and that can be printed, or none. */
void fuzz_answered(const char *call, enum tarn_status status, const struct tarn_error *error,
                   uint64_t statuses);
/* The same for a file: what is refused has a place in it. */
void fuzz_loaded(const char *call, enum tarn_status status, const struct tarn_error *error,
                 const char *path);
/* An error to be filled in, with other things in it. */
struct tarn_error fuzz_old_error(void);

/* Equal graphs, in all that a file says. */
void fuzz_same_graph(const struct tarn_graph *a, const struct tarn_graph *b);
/* Saves under this name, loads again, compares. `statuses` of saving; nothing else is asked for
 * where it is refused. */
void fuzz_round_trip(const struct tarn_graph *graph, const char *name, uint64_t statuses);
/* What a file says of a plan and a source graph: loaded on trust and verified, saved, replayed;
 * what the verifier accepts an oracle accepts as well. */
void fuzz_plan_file(const char *path, struct tarn_graph *source);

/* ---- Files and memory ---- */

/* The path of a file in a folder of the process's own; lives until the next call but one. */
const char *fuzz_path(const char *name);
/* The same, with these bytes in it. */
const char *fuzz_file(const char *name, const uint8_t *bytes, size_t size);
/* Most bytes of heap since the last call of begin. 0 where nobody counts (no address sanitizer). */
void fuzz_memory_begin(void);
size_t fuzz_memory_most(void);
/* What a text of that size may take while it is loaded: 32 times its size and 4 MiB are documented;
 * texts here are short, so that less is to spare, but one that is read whole takes 43 times. */
void fuzz_memory_check(const uint8_t *data, size_t size);

/* The limit for text, under which graphs are loaded. */
enum { FUZZ_TEXT_MAX = 1 << 20 };

#endif
