/* One count of the allocations that are still allowed; what is freed does not count. */
#include "failing_memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *block, size_t size);

static atomic_llong allowed = INT64_MAX; /* allocations before they fail */
static atomic_bool failed;

static bool is_denied(void)
{
    if (atomic_fetch_sub(&allowed, 1) <= 0) failed = true;
    return failed;
}

void *__wrap_malloc(size_t size) { return is_denied() ? NULL : __real_malloc(size); }

void *__wrap_calloc(size_t count, size_t size)
{
    return is_denied() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *block, size_t size)
{
    return is_denied() ? NULL : __real_realloc(block, size);
}

static void allow(long long allocations)
{
    failed = false;
    allowed = allocations;
}

static void sweep(enum tarn_status (*act)(struct tarn_error *error), long long stride)
{
    long long runs = 0;
    enum tarn_status status = TARN_SYSTEM;
    for (; status != TARN_OK; runs++) {
        struct tarn_error error = {0};
        allow(runs * stride);
        status = act(&error);
        bool was_denied = failed;
        allow(INT64_MAX);
        if (status != (was_denied ? TARN_SYSTEM : TARN_OK))
            fail_msg("allocation %lld: %s", runs * stride, error.text);
        if (was_denied) assert_string_equal(error.text, "out of memory");
    }
    assert_true(runs > 20);
}

void fail_each_allocation(enum tarn_status (*act)(struct tarn_error *error)) { sweep(act, 1); }

void fail_some_allocations(enum tarn_status (*act)(struct tarn_error *error), long long stride)
{
    sweep(act, stride);
}
