/* Runs the portfolio: every method by itself, in parallel. The smallest footprint wins; of equal
 * footprints the first method in the fixed order below. Each thread keeps only its best result;
 * since "better" is a total order, the outcome is the same however the methods are spread over
 * threads. Once a method has met the bound only methods before it in the order can still win; the
 * others are left out. Cost: the methods' cost; for each thread a region with two arrays of
 * offsets, and a method's scratch memory. */
#include "somas.h"

#include <assert.h>
#include <stdatomic.h>
#include <string.h>

#include "planner/parallel/parallel.h"

enum { EAGER_BLOCKS = 256 };

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
enum { METHODS_COUNT = sizeof tarn_methods / sizeof *tarn_methods };
const uint32_t tarn_methods_count = METHODS_COUNT;

uint32_t tarn_method_find(const char *name)
{
    for (uint32_t m = 0; m < tarn_methods_count; m++)
        if (strcmp(tarn_methods[m].name, name) == 0) return m;
    return TARN_NONE;
}

/* Without groups the paper's head-size test changes nothing. */
static bool is_worth_running(const struct tarn_problem *problem, uint32_t method)
{
    return !tarn_methods[method].paper || problem->blocks.count < problem->blocks.storages_count;
}

static uint32_t count_before(const struct tarn_problem *problem, uint32_t method)
{
    uint32_t count = 0;
    for (uint32_t m = 0; m < method; m++) count += is_worth_running(problem, m);
    return count;
}

uint32_t tarn_portfolio_count(const struct tarn_problem *problem)
{
    return count_before(problem, METHODS_COUNT);
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

/* The memory of a thread; all zero until it takes its first method. */
struct worker {
    struct tarn_region region;
    struct outcome trial, best; /* their offsets live in the region */
};

struct run {
    const struct tarn_problem *problem;
    const struct tarn_deadline *deadline;
    uint32_t methods_max;
    uint64_t bound;
    struct tarn_winner winner;            /* the first method in the order that has met the bound */
    struct worker workers[METHODS_COUNT]; /* by thread */
    atomic_bool no_memory;
};

static bool worker_init(struct worker *worker, uint32_t storages_count)
{
    if (worker->trial.offset) return true;
    worker->best = worker->trial = (struct outcome){.method = TARN_NONE};
    worker->best.offset =
        tarn_region_take(&worker->region, storages_count, sizeof *worker->best.offset);
    worker->trial.offset =
        tarn_region_take(&worker->region, storages_count, sizeof *worker->trial.offset);
    return !worker->region.is_exhausted;
}

static void run_method(void *user, uint32_t thread, uint32_t m)
{
    struct run *run = user;
    struct worker *worker = &run->workers[thread];
    struct outcome *trial = &worker->trial;
    if (run->no_memory || tarn_winner_is_before(&run->winner, m) ||
        !is_worth_running(run->problem, m) || count_before(run->problem, m) >= run->methods_max)
        return;
    if (!worker_init(worker, run->problem->blocks.storages_count) ||
        tarn_baseline_place(run->problem, &worker->region, &tarn_methods[m], run->deadline,
                            trial->offset, &trial->footprint) != TARN_OK) {
        run->no_memory = true;
        return;
    }
    trial->method = m;
    if (trial->footprint <= run->bound) tarn_winner_note(&run->winner, m);
    keep_better(&worker->best, trial);
}

static enum tarn_status run_methods(struct run *run, uint32_t threads, uint64_t *offset,
                                    uint64_t *footprint, uint32_t *winner)
{
    struct outcome best = {.method = TARN_NONE};
    struct tarn_team team;
    tarn_team_init(&team, threads, run->problem->blocks.count >= EAGER_BLOCKS);
    tarn_team_run(&team, METHODS_COUNT, run_method, run);
    for (uint32_t t = 0; t < METHODS_COUNT; t++)
        if (run->workers[t].trial.offset) keep_better(&best, &run->workers[t].best);
    if (!run->no_memory) {
        assert(best.method != TARN_NONE); /* the first method is never left out */
        memcpy(offset, best.offset, run->problem->blocks.storages_count * sizeof *offset);
        *footprint = best.footprint;
        *winner = best.method;
    }
    for (uint32_t t = 0; t < METHODS_COUNT; t++) tarn_region_finish(&run->workers[t].region);
    return run->no_memory ? TARN_SYSTEM : TARN_OK;
}

static enum tarn_status run_one(struct run *run, uint32_t method, uint64_t *offset,
                                uint64_t *footprint)
{
    struct tarn_region region = {.chunks = NULL};
    enum tarn_status status = tarn_baseline_place(run->problem, &region, &tarn_methods[method],
                                                  run->deadline, offset, footprint);
    tarn_region_finish(&region);
    return status;
}

enum tarn_status tarn_portfolio_place(const struct tarn_problem *problem, uint32_t method,
                                      uint32_t methods_max, uint32_t threads, uint64_t bound,
                                      const struct tarn_deadline *deadline, uint64_t *offset,
                                      uint64_t *footprint, uint32_t *winner)
{
    struct run run = {
        .problem = problem, .deadline = deadline, .methods_max = methods_max, .bound = bound};
    tarn_winner_clear(&run.winner);
    if (method == TARN_NONE) return run_methods(&run, threads, offset, footprint, winner);
    *winner = method;
    return run_one(&run, method, offset, footprint);
}
