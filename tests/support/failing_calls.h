/* Calls that fail on purpose: allocations, work on files, new threads. There are three ways to have
 * them.
 *
 *   linker    a test links it and --wrap (see meson.build): allocations and threads of the test and
 *             of the library in it fail, under sanitizers too
 *   program   a test links it as it is: its malloc is that of all libraries, the C library included
 *   preload   LD_PRELOAD brings it into a command that knows nothing of it. FAILING_CALLS is
 *             "KIND WAY N": the call N of the KIND memory, files or threads, counted from 0,
 *
 *                 fail    fails
 *                 all     fails, and so do all calls of the kind after it
 *                 again   is interrupted by a signal (files: what reads or writes)
 *                 part    does half of its bytes (files: what reads or writes)
 *                 kill    kills the process; a write has written half of its bytes by then
 *
 *             Calls of OpenMP's own, which ends the process by them (docs/trust.md), are let
 * through.
 *
 *             FAILING_REPORT is a file that gets the line "KIND CALLS" for each kind at exit, and
 *             "failed NAME PATH" when the call happens. */
#ifndef TARN_TESTS_SUPPORT_FAILING_CALLS_H
#define TARN_TESTS_SUPPORT_FAILING_CALLS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum failing_kind { FAILING_MEMORY, FAILING_FILES, FAILING_THREADS, FAILING_KINDS };

/* From now on `first` more calls of the kind succeed, then `count` fail, then all succeed. Calls
 * are counted anew. Several threads may call. */
void fail_calls(enum failing_kind kind, uint64_t first, uint64_t count);
void allow_calls(enum failing_kind kind);

/* Since the last call of one of these two. */
uint64_t calls_made(enum failing_kind kind);
bool has_call_failed(enum failing_kind kind);

/* Of the calls that would fail, reads and writes are interrupted by a signal instead, and others
 * succeed. (For programs that do not use the linker's way.) */
void interrupt_calls(bool instead);

#ifdef FAILING_BY_LINKER
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *block, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*begin)(void *), void *user);
#endif

#endif
