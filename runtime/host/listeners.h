/* The process's list of executors to notify of progress outside of their sessions, and the wake-up
 * of an executor's workers. */
#ifndef TARN_RUNTIME_HOST_LISTENERS_H
#define TARN_RUNTIME_HOST_LISTENERS_H

#include "executor.h"

/* Adds and removes an executor with streams that may stop at gates. Any thread. */
void tarn_listeners_enter(struct tarn_executor *executor);
void tarn_listeners_leave(struct tarn_executor *executor);

/* A stream stops at a gate, or has been claimed again. After the first call the caller must check
 * the stream's counter once more. */
void tarn_listeners_stop(void);
void tarn_listeners_go_on(void);

/* Some counter was raised: all stopped streams are checked again. Any thread. */
void tarn_listeners_call(void);

/* Wakes up to `sleepers` threads of these kinds (enum tarn_sleeper); if workers are tasks,
 * schedules as many tasks. Any thread. */
void tarn_workers_wake(struct tarn_executor *executor, uint32_t kinds, uint32_t sleepers);

#endif
