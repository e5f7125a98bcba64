#include "failing_threads.h"

#include <errno.h>
#include <stdatomic.h>

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*begin)(void *), void *user);

static atomic_uint limit = UINT32_MAX, asked;

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*begin)(void *), void *user)
{
    return asked++ < limit ? __real_pthread_create(thread, attributes, begin, user) : EAGAIN;
}

void refuse_threads_from(uint32_t allowed)
{
    limit = allowed;
    asked = 0;
}

void allow_threads(void) { refuse_threads_from(UINT32_MAX); }

uint32_t threads_asked_for(void) { return asked; }
