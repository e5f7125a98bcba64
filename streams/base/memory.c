/* The process's allocator, malloc if none was set. It may be set until the first allocation, so
 * that every block is freed by its allocator; after that, threads only read this state. Cost: that
 * of the allocator. */
#include "memory.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "options.h"

/* The allocator goes from OPEN by SETTING to SET, or from OPEN to SET when memory is taken. */
enum { OPEN, SETTING, SET };
static atomic_int state;
static struct tarn_allocator allocator; /* all zeros: the C library's; written while SETTING */

static void *resize_by(size_t size, void *memory)
{
    int open = OPEN;
    if (atomic_load_explicit(&state, memory_order_acquire) != SET &&
        !atomic_compare_exchange_strong(&state, &open, SET)) {
        while (atomic_load(&state) != SET) { /* another thread sets it at this moment */
        }
    }
    if (!allocator.take) return memory ? realloc(memory, size) : malloc(size);
    return memory ? allocator.resize(allocator.user, memory, size)
                  : allocator.take(allocator.user, size);
}

void *tarn_take(size_t size)
{
    assert(size > 0);
    return resize_by(size, NULL);
}

void *tarn_resize(void *memory, size_t size)
{
    assert(size > 0);
    return resize_by(size, memory);
}

/* Fresh pages of the C library's are zeros already. */
void *tarn_take_zeros(size_t count, size_t size)
{
    assert(count > 0 && size > 0);
    if (count > SIZE_MAX / size) return NULL;
    if (atomic_load_explicit(&state, memory_order_acquire) == SET && !allocator.take)
        return calloc(count, size);
    void *memory = resize_by(count * size, NULL);
    return memory ? memset(memory, 0, count * size) : NULL;
}

char *tarn_take_string(const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = tarn_take(size);
    return copy ? memcpy(copy, text, size) : NULL;
}

void tarn_free(void *memory)
{
    if (!memory) return;
    if (allocator.release)
        allocator.release(allocator.user, memory);
    else
        free(memory);
}

/* The block's own address stands before the memory. */
void *tarn_take_aligned(size_t alignment, size_t size)
{
    assert(alignment >= sizeof(void *) && (alignment & (alignment - 1)) == 0);
    if (size > SIZE_MAX - alignment - sizeof(void *)) return NULL;
    char *block = tarn_take(size + alignment + sizeof(void *));
    if (!block) return NULL;
    char *memory = block + sizeof(void *);
    memory += -(uintptr_t)memory & (alignment - 1);
    memcpy(memory - sizeof(void *), &block, sizeof block);
    return memory;
}

void tarn_free_aligned(void *memory)
{
    char *block = NULL;
    if (memory) memcpy(&block, (char *)memory - sizeof(void *), sizeof block);
    tarn_free(block);
}

enum tarn_status tarn_set_allocator(const struct tarn_allocator *given, struct tarn_error *error)
{
    struct tarn_allocator taken;
    int open = OPEN;
    if (!given) return tarn_error_null(error, __func__);
    tarn_error_clear(error);
    enum tarn_status status = tarn_options_take(&taken, sizeof taken, given, "allocator", error);
    if (status != TARN_OK) return status;
    if (!taken.take || !taken.resize || !taken.release)
        return tarn_error_set(error, TARN_USAGE,
                              "an allocator needs all of its functions: take, resize and release");
    if (!atomic_compare_exchange_strong(&state, &open, SETTING))
        return tarn_error_set(error, TARN_USAGE,
                              "memory has been taken already: an allocator is set once, before all "
                              "calls that need memory");
    allocator = taken;
    atomic_store(&state, SET);
    return TARN_OK;
}
