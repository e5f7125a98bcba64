/* Executors that are told when something outside of their sessions has come further, and how the
 * workers of one are called. */
#ifndef TARN_RUNTIME_HOST_LISTENERS_H
#define TARN_RUNTIME_HOST_LISTENERS_H

#include "executor.h"

/* An executor some of whose streams may stop at gates comes and goes. Any thread. */
void tarn_listeners_enter(struct tarn_executor *executor);
void tarn_listeners_leave(struct tarn_executor *executor);

/* A stream stops at a gate, or has been claimed again. Whoever stops looks once more at what it
 * waits for afterwards. */
void tarn_listeners_stop(void);
void tarn_listeners_go_on(void);

/* Something has come further: all who have stopped look again. Any thread. */
void tarn_listeners_call(void);

/* Wakes up to `sleepers` of the kinds of threads (enum tarn_sleeper), where workers have threads;
 * else has as many tasks run. Any thread. */
void tarn_workers_wake(struct tarn_executor *executor, uint32_t kinds, uint32_t sleepers);

#endif
