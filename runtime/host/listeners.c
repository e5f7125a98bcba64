/* The list of executors of the process, protected by a lock that is taken only while some stream
 * has stopped. A thread that raises a counter checks whether any stream has stopped. A stream that
 * stops is counted first, and checks the counter once more afterwards. So no wake-up is lost.
 *
 * If workers are tasks on threads of the caller (option `execute`), each of them is either
 * scheduled or not. A task that finds no ready stream first marks itself as not scheduled, and then
 * checks once more. Cost: O(1) while no stream has stopped; else O(executors). */
#include "listeners.h"

#include "streams/base/deadline.h"
#include "streams/base/log.h"

#define PAUSES_MAX 7u /* doublings of the pause before a task is offered again */

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct tarn_executor *listeners;
static _Atomic uint32_t stopped; /* streams of all of them */

static void lock_list(void) { pthread_mutex_lock(&lock); }
static void unlock_list(void) { pthread_mutex_unlock(&lock); }

/* A child has no sessions yet, and must not inherit the lock from a thread that it does not have.
 */
static void forget_all(void)
{
    listeners = NULL;
    atomic_store(&stopped, 0);
    unlock_list();
}

static void prepare_for_forks(void) { pthread_atfork(lock_list, unlock_list, forget_all); }

void tarn_listeners_enter(struct tarn_executor *executor)
{
    pthread_once(&once, prepare_for_forks);
    lock_list();
    executor->gates.next_listener = listeners;
    listeners = executor;
    unlock_list();
}

void tarn_listeners_leave(struct tarn_executor *executor)
{
    lock_list();
    struct tarn_executor **link = &listeners;
    while (*link && *link != executor) link = &(*link)->gates.next_listener;
    if (*link) *link = executor->gates.next_listener;
    unlock_list();
}

void tarn_listeners_stop(void) { atomic_fetch_add(&stopped, 1); }
void tarn_listeners_go_on(void) { atomic_fetch_sub(&stopped, 1); }

void tarn_listeners_call(void)
{
    if (atomic_load(&stopped) == 0) return;
    lock_list();
    for (struct tarn_executor *e = listeners; e; e = e->gates.next_listener)
        tarn_workers_wake(e, TARN_WORKER | TARN_BLOCKING, UINT32_MAX);
    unlock_list();
}

/* ---- Workers ---- */

/* Schedules another try after a pause, which grows. */
static void note_refusal(struct tarn_executor *executor, int code)
{
    uint32_t before = atomic_fetch_add(&executor->refusals, 1);
    uint64_t now_ns = tarn_now_ns();
    if (before == 0) atomic_store(&executor->refused_since_ns, now_ns);
    if (before == 0)
        tarn_log(TARN_LOG_WARNING,
                 "`execute` of the host device's options refuses a task with code %d: it is asked "
                 "again",
                 code);
    atomic_store(&executor->refusal, code);
    atomic_store(&executor->try_again_ns,
                 now_ns + (TARN_LOOK_NS << (before < PAUSES_MAX ? before : PAUSES_MAX)));
    atomic_store(&executor->has_missed, true);
}

static void schedule(struct tarn_executor *executor, uint32_t count)
{
    for (uint32_t i = 0; i < executor->workers_count && count > 0; i++) {
        struct tarn_worker *worker = &executor->workers[i];
        if (atomic_exchange(&worker->is_scheduled, true)) continue;
        count--;
        atomic_fetch_add(&executor->threads, 1);
        int code = executor->execute(executor->execute_user, executor->task, worker);
        if (code == 0) {
            atomic_store(&executor->refusals, 0);
            continue;
        }
        note_refusal(executor, code);
        atomic_store(&worker->is_scheduled, false);
        atomic_fetch_sub(&executor->threads, 1);
        return;
    }
}

void tarn_workers_wake(struct tarn_executor *executor, uint32_t kinds, uint32_t sleepers)
{
    if (executor->execute && kinds & TARN_WORKER) {
        schedule(executor, sleepers);
        kinds &= ~(uint32_t)TARN_WORKER;
        sleepers = UINT32_MAX;
    }
    if (kinds) tarn_event_count_wake(&executor->events, kinds, sleepers);
}
