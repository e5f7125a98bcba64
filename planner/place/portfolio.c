/* The portfolio: every method on its own, in parallel; the least footprint wins, of equal ones the
 * first in the fixed order below. Each thread keeps only its best result; since "better" is a total
 * order, the outcome is the same however the methods are spread over threads. Once a method has met
 * the bound only those before it in the order can still win; the others are left out.
 * Cost: that of the methods; one array of offsets for each thread and two to work in. */
#include "portfolio.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#ifdef _OPENMP
#include <omp.h>
#define IN_PARALLEL(directive) _Pragma(#directive)
#else
#define IN_PARALLEL(directive)
#endif

/* ---- The methods ---- */

#define METHODS(algorithm, many_objects, word, sort)                              \
    {algorithm ":" word ":first-fit", many_objects, sort, false, false},          \
        {algorithm ":" word ":first-fit:paper", many_objects, sort, false, true}, \
        {algorithm ":" word ":best-fit", many_objects, sort, true, false},        \
    {                                                                             \
        algorithm ":" word ":best-fit:paper", many_objects, sort, true, true      \
    }

const struct tarn_method tarn_methods[] = {
    METHODS("single-object", false, "size", TARN_SORT_SIZE),
    METHODS("single-object", false, "breadth", TARN_SORT_BREADTH),
    METHODS("single-object", false, "source", TARN_SORT_SOURCE),
    METHODS("single-object", false, "unsafe", TARN_SORT_UNSAFE),
    METHODS("single-object", false, "lifetime", TARN_SORT_LIFETIME),
    METHODS("many-objects", true, "size", TARN_SORT_SIZE),
    METHODS("many-objects", true, "breadth", TARN_SORT_BREADTH),
    METHODS("many-objects", true, "source", TARN_SORT_SOURCE),
    METHODS("many-objects", true, "unsafe", TARN_SORT_UNSAFE),
    METHODS("many-objects", true, "lifetime", TARN_SORT_LIFETIME),
};
const uint32_t tarn_methods_count = sizeof tarn_methods / sizeof *tarn_methods;

uint32_t tarn_method_find(const char *name)
{
    for (uint32_t m = 0; m < tarn_methods_count; m++)
        if (strcmp(tarn_methods[m].name, name) == 0) return m;
    return TARN_NONE;
}

/* Without groups the paper's head-size test changes nothing. */
static bool is_worth_running(const struct tarn_problem *problem, uint32_t method)
{
    return !tarn_methods[method].paper || problem->blocks->count < problem->blocks->storages_count;
}

/* ---- Running them ---- */

struct outcome {
    uint64_t *offset;
    uint64_t footprint;
    uint32_t method; /* TARN_NONE: nothing yet */
};

static bool is_better(const struct outcome *a, const struct outcome *b)
{
    if (a->method == TARN_NONE || b->method == TARN_NONE) return b->method == TARN_NONE;
    return a->footprint != b->footprint ? a->footprint < b->footprint : a->method < b->method;
}

static void keep_better(struct outcome *best, struct outcome *other)
{
    if (!is_better(other, best)) return;
    struct outcome worse = *best;
    *best = *other;
    *other = worse;
}

/* The first method in the order that has met the bound so far. */
struct finish {
    uint64_t bound;
    atomic_uint method;
};

static void note_finish(struct finish *finish, const struct outcome *outcome)
{
    uint32_t first = atomic_load(&finish->method);
    while (outcome->footprint <= finish->bound && outcome->method < first &&
           !atomic_compare_exchange_weak(&finish->method, &first, outcome->method)) {
    }
}

/* One thread's share of the methods: its best into *best, which takes an array of offsets that the
 * caller frees. False when memory ran out. */
static bool run_share(const struct tarn_problem *problem, const struct tarn_until *until,
                      struct finish *finish, struct outcome *best)
{
    size_t bytes = ((size_t)problem->blocks->storages_count + 1) * sizeof(uint64_t);
    struct outcome trial = {malloc(bytes), 0, TARN_NONE};
    *best = (struct outcome){malloc(bytes), 0, TARN_NONE};
    bool ok = trial.offset && best->offset;
    IN_PARALLEL(omp for schedule(dynamic, 1) nowait)
    for (uint32_t m = 0; m < tarn_methods_count; m++) {
        if (!ok || m > atomic_load(&finish->method) || !is_worth_running(problem, m)) continue;
        trial.method = m;
        ok = tarn_baseline_place(problem, &tarn_methods[m], until, trial.offset,
                                 &trial.footprint) == TARN_OK;
        if (ok) note_finish(finish, &trial);
        if (ok) keep_better(best, &trial);
    }
    free(trial.offset);
    return ok;
}

static int threads_for(uint32_t threads)
{
#ifdef _OPENMP
    if (threads == 0) threads = (uint32_t)omp_get_num_procs();
#endif
    return (int)(threads < tarn_methods_count ? threads : tarn_methods_count);
}

static enum tarn_status run_all(const struct tarn_problem *problem, int threads, uint64_t bound,
                                const struct tarn_until *until, struct outcome *best)
{
    struct finish finish = {.bound = bound};
    bool ok = true;
    atomic_init(&finish.method, TARN_NONE);
    (void)threads;
    IN_PARALLEL(omp parallel num_threads(threads))
    {
        struct outcome own;
        bool own_ok = run_share(problem, until, &finish, &own);
        IN_PARALLEL(omp critical)
        {
            ok = ok && own_ok;
            keep_better(best, &own);
        }
        free(own.offset);
    }
    return ok ? TARN_OK : TARN_SYSTEM;
}

enum tarn_status tarn_portfolio_place(const struct tarn_problem *problem, uint32_t method,
                                      uint32_t threads, uint64_t bound,
                                      const struct tarn_until *until, uint64_t *offset,
                                      uint64_t *footprint, uint32_t *winner)
{
    struct outcome best = {NULL, 0, TARN_NONE};
    if (method != TARN_NONE) {
        *winner = method;
        return tarn_baseline_place(problem, &tarn_methods[method], until, offset, footprint);
    }
    enum tarn_status status = run_all(problem, threads_for(threads), bound, until, &best);
    if (status == TARN_OK) {
        memcpy(offset, best.offset, problem->blocks->storages_count * sizeof *offset);
        *footprint = best.footprint;
        *winner = best.method;
    }
    free(best.offset);
    return status;
}
