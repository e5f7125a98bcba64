/* Runs one parallel region of OpenMP: threads take items by a counter. Small problems are solved
 * before a thread would have started, so a team that is not eager lets the calling thread begin
 * alone.
 *
 * A team's region always has the same number of threads, however few the items: libgomp ends the
 * threads that a smaller region leaves over, and would start them again for the next one.
 *
 * Cost: the first region of a calling thread some 40 us for each thread of the pool, each later one
 * some microseconds. */
#include "parallel.h"

#ifdef _OPENMP
#include <omp.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include "streams/base/cpu_quota.h"
#include "streams/base/log.h"
#include "streams/base/thread.h"
#endif

#include "streams/base/deadline.h"

#define WORTH_MS 0.1

/* The items of one call. */
struct round {
    tarn_team_work *work;
    void *user;
    uint32_t count;
    atomic_uint next;    /* the first item that no thread has taken */
    atomic_uint arrived; /* threads that have a number: the calling one has 0 */
};

/* Does `item`, and then other items until none is left. */
static void do_items(struct round *round, uint32_t thread, uint32_t item)
{
    for (; item < round->count; item = atomic_fetch_add(&round->next, 1))
        round->work(round->user, thread, item);
}

#ifdef _OPENMP

/* ---- How many threads ---- */

static pthread_once_t quota_read = PTHREAD_ONCE_INIT;
static uint32_t quota;

static void read_quota(void) { quota = tarn_cpu_quota(); }

static uint32_t smaller(uint32_t a, uint32_t b) { return a < b ? a : b; }

/* Of the calling thread now; OpenMP's own number may be the one of the time it was loaded. The set
 * is too small only on machines of more processors than a team has threads. */
static uint32_t processors(void)
{
    cpu_set_t allowed;
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return TARN_TEAM_THREADS_MAX;
    return (uint32_t)CPU_COUNT(&allowed);
}

static uint32_t default_threads(void)
{
    uint32_t threads = (uint32_t)omp_get_max_threads();
    if (getenv("OMP_NUM_THREADS")) return threads;
    pthread_once(&quota_read, read_quota);
    return smaller(threads, smaller(processors(), quota));
}

static uint32_t threads_for(uint32_t threads)
{
    if (tarn_is_forked() || omp_in_parallel()) return 1;
    if (threads == 0) threads = default_threads();
    threads = smaller(threads, (uint32_t)omp_get_thread_limit());
    return smaller(threads, TARN_TEAM_THREADS_MAX);
}

/* ---- The pool of the calling thread ---- */

static _Thread_local uint32_t pool_threads = 1; /* the calling one included */

static void *wait_at_gate(void *gate)
{
    pthread_mutex_lock(gate);
    pthread_mutex_unlock(gate);
    return NULL;
}

/* The threads, up to `count`, that the system lets the process have at once. */
static uint32_t try_threads(uint32_t count)
{
    pthread_t threads[TARN_TEAM_THREADS_MAX];
    pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
    uint32_t created = 0;
    pthread_mutex_lock(&gate);
    while (created < count && pthread_create(&threads[created], NULL, wait_at_gate, &gate) == 0)
        created++;
    pthread_mutex_unlock(&gate);
    for (uint32_t i = 0; i < created; i++) pthread_join(threads[i], NULL);
    pthread_mutex_destroy(&gate);
    return created;
}

/* Gives the calling thread a pool of `threads`, or of as many as there can be, and returns how many
 * it has. Threads inherit the signal mask of the thread that creates them. */
static uint32_t make_pool(uint32_t threads)
{
    if (threads <= pool_threads) return pool_threads = threads; /* a smaller region ends the rest */
    sigset_t mask = tarn_thread_block_signals();
    uint32_t possible = pool_threads + try_threads(threads - pool_threads);
    atomic_uint arrived = 0;
    if (possible < threads)
        tarn_log(TARN_LOG_WARNING, "the system refuses a thread: %u of %u do the work", possible,
                 threads);
    if (possible > pool_threads) {
#pragma omp parallel num_threads(possible)
        atomic_fetch_add(&arrived, 1);
        pool_threads = arrived;
    }
    pthread_sigmask(SIG_SETMASK, &mask, NULL);
    return smaller(threads, pool_threads);
}

/* The calling thread has an item from the start, and the others have numbers by the first that they
 * take: so numbers stay below the number of items. */
static void do_items_together(struct round *round, uint32_t threads)
{
    uint32_t own = round->next++;
#pragma omp parallel num_threads(threads)
    {
        uint32_t item = omp_get_thread_num() == 0 ? own : atomic_fetch_add(&round->next, 1);
        if (item == own)
            do_items(round, 0, item);
        else if (item < round->count)
            do_items(round, atomic_fetch_add(&round->arrived, 1), item);
    }
}

#else

static uint32_t threads_for(uint32_t threads)
{
    (void)threads;
    return 1;
}

static uint32_t make_pool(uint32_t threads) { return threads; }

static void do_items_together(struct round *round, uint32_t threads)
{
    (void)threads;
    do_items(round, 0, round->next++);
}

#endif

/* ---- Teams ---- */

void tarn_team_init(struct tarn_team *team, uint32_t threads, bool eager)
{
    *team = (struct tarn_team){.threads = threads_for(threads), .eager = eager};
}

/* The calling thread's own items, until the others are worth their start. */
static void begin_alone(const struct tarn_team *team, struct round *round)
{
    while (round->next < round->count &&
           (team->threads == 1 || round->next + 1 == round->count ||
            (!team->eager && tarn_now_ms() <= team->begin_ms + WORTH_MS)))
        round->work(round->user, 0, round->next++);
}

void tarn_team_run(struct tarn_team *team, uint32_t count, tarn_team_work *work, void *user)
{
    struct round round = {.work = work, .user = user, .count = count, .arrived = 1};
    if (team->begin_ms == 0) team->begin_ms = tarn_now_ms();
    begin_alone(team, &round);
    if (round.next == count) return;
    if (team->granted == 0) team->granted = make_pool(team->threads);
    do_items_together(&round, team->granted);
}
