/* Threads that cannot be created, on purpose. The linker sends a test's calls of pthread_create,
 * the library's included, through here (--wrap, see meson.build). */
#ifndef TARN_TESTS_FAILING_THREADS_H
#define TARN_TESTS_FAILING_THREADS_H

#include <pthread.h>
#include <stdint.h>

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*begin)(void *), void *user);

/* So many more threads are created, then each is refused with EAGAIN. */
void refuse_threads_from(uint32_t allowed);
void allow_threads(void);

/* Since the last call of one of these two. */
uint32_t threads_asked_for(void);

#endif
