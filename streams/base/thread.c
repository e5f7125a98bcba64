/* Threads that leave the host's signals to the host. A new thread inherits the mask of the thread
 * that creates it. */
#include "thread.h"

#include <stddef.h>

sigset_t tarn_thread_block_signals(void)
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
    sigset_t before = tarn_thread_block_signals();
    bool is_started = pthread_create(thread, NULL, run, user) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return is_started;
}

/* ---- Forks ---- */

static bool is_forked; /* written in a child, before any other thread of the child is there */

static void note_fork(void) { is_forked = true; }

/* When the library is loaded: a child that was forked before any other call is a child, too. */
__attribute__((constructor)) static void watch_forks(void)
{
    if (pthread_atfork(NULL, NULL, note_fork) != 0) is_forked = true;
}

bool tarn_is_forked(void) { return is_forked; }
