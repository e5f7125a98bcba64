/* Threads that leave the host's signals to the host; and detection of forks, whose child has only
 * one thread.
 */
#ifndef TARN_STREAMS_BASE_THREAD_H
#define TARN_STREAMS_BASE_THREAD_H

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>

/* Starts a thread that blocks all signals but those of its own faults, so that the host's handlers
 * run on the host's threads. The caller joins or detaches the thread. False: the system refuses. */
bool tarn_thread_start(pthread_t *thread, void *(*run)(void *user), void *user);

/* Blocks the same signals in the calling thread, whose mask new threads inherit. Returns the mask
 * that it had, which the caller sets again. */
sigset_t tarn_thread_block_signals(void);

/* Is this process a child that was forked after the library was loaded? True as well if forks
 * cannot be watched. */
bool tarn_is_forked(void);

#endif
