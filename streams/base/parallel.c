/* Teams of threads. One lock guards the next item, and a thread without an item sleeps: an item
 * takes tens of microseconds at least, beside which the lock costs nothing. Small problems are
 * solved before a thread would have started, so a team that is not eager waits until the work has
 * taken a while. Cost: some 20 µs of the caller for each helper started, 5 µs to wake them for the
 * next work. */
#include "parallel.h"

#include <assert.h>
#include <sched.h>
#include <signal.h>
#include <string.h>

#include "deadline.h"
#include "log.h"

#define WORTH_MS 0.1

/* Where the set has too few bits for the machine the kernel refuses it, and there are many. */
static uint32_t processors(void)
{
    cpu_set_t allowed;
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return TARN_TEAM_THREADS_MAX;
    return (uint32_t)CPU_COUNT(&allowed);
}

/* ---- Items ---- */

/* The next item is done without the lock, which is held before and after. */
static void do_item(struct tarn_team *team, uint32_t thread)
{
    uint32_t item = team->next++;
    assert(item < team->count && team->left > 0);
    pthread_mutex_unlock(&team->lock);
    team->work(team->user, thread, item);
    pthread_mutex_lock(&team->lock);
    if (--team->left == 0) pthread_cond_signal(&team->done);
}

/* ---- Helpers ---- */

static void *help(void *user)
{
    struct tarn_team *team = user;
    pthread_mutex_lock(&team->lock);
    uint32_t thread = ++team->arrived;
    while (!team->closing) {
        if (team->next < team->count)
            do_item(team, thread);
        else
            pthread_cond_wait(&team->begun, &team->lock);
    }
    pthread_mutex_unlock(&team->lock);
    return NULL;
}

/* A thread inherits the mask. */
static sigset_t block_signals(void)
{
    sigset_t blocked, before;
    sigfillset(&blocked);
    const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT};
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) sigdelset(&blocked, faults[i]);
    pthread_sigmask(SIG_BLOCK, &blocked, &before);
    return before;
}

bool tarn_thread_start(pthread_t *thread, void *(*run)(void *user), void *user)
{
    sigset_t before = block_signals();
    bool started = pthread_create(thread, NULL, run, user) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}

static void start_helpers(struct tarn_team *team, uint32_t count)
{
    while (team->helpers_count < count && !team->alone) {
        team->alone = !tarn_thread_start(&team->helpers[team->helpers_count], help, team);
        if (!team->alone) team->helpers_count++;
    }
    if (team->alone)
        tarn_log(TARN_LOG_WARNING, "the system refuses a thread: %u of %u do the work",
                 team->helpers_count + 1, team->threads);
}

/* As many helpers as there are items for them, when it is time. */
static void call_for_help(struct tarn_team *team)
{
    uint32_t left = team->count - team->next;
    assert(left > 0 && team->threads > 0);
    uint32_t helpers = (left < team->threads ? left : team->threads) - 1;
    if (helpers <= team->helpers_count || team->alone) return;
    if (team->eager || tarn_now_ms() > team->begin_ms + WORTH_MS) start_helpers(team, helpers);
}

/* ---- Teams ---- */

void tarn_team_init(struct tarn_team *team, uint32_t threads, bool eager)
{
    memset(team, 0, sizeof *team);
    if (threads == 0) threads = processors();
    team->threads = threads < TARN_TEAM_THREADS_MAX ? threads : TARN_TEAM_THREADS_MAX;
    team->eager = eager;
    pthread_mutex_init(&team->lock, NULL);
    pthread_cond_init(&team->begun, NULL);
    pthread_cond_init(&team->done, NULL);
}

void tarn_team_finish(struct tarn_team *team)
{
    assert(team->left == 0);
    pthread_mutex_lock(&team->lock);
    team->closing = true;
    pthread_cond_broadcast(&team->begun);
    pthread_mutex_unlock(&team->lock);
    for (uint32_t i = 0; i < team->helpers_count; i++) pthread_join(team->helpers[i], NULL);
    pthread_mutex_destroy(&team->lock);
    pthread_cond_destroy(&team->begun);
    pthread_cond_destroy(&team->done);
}

void tarn_team_run(struct tarn_team *team, uint32_t count, tarn_team_work *work, void *user)
{
    if (team->begin_ms == 0) team->begin_ms = tarn_now_ms();
    pthread_mutex_lock(&team->lock);
    team->work = work;
    assert(team->left == 0);
    team->user = user;
    team->next = 0;
    team->count = team->left = count;
    if (team->helpers_count > 0) pthread_cond_broadcast(&team->begun);
    while (team->next < count) {
        call_for_help(team);
        do_item(team, 0);
    }
    while (team->left > 0) pthread_cond_wait(&team->done, &team->lock);
    pthread_mutex_unlock(&team->lock);
}
