/* The process's list of memory that callers provide, protected by a lock. Memory is compared only
 * if addresses are comparable: on one device, or in the host's memory. A forked child has its own
 * copy of all memory, so the uses of its parent's sessions do not matter there.
 * Cost: O(sessions and arenas with memory of the caller), when one is created or destroyed. */
#include "memory_use.h"

#include <assert.h>
#include <pthread.h>
#include <unistd.h>

#include "streams/base/error.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct tarn_memory_use *uses;

static void lock_uses(void) { pthread_mutex_lock(&lock); }
static void unlock_uses(void) { pthread_mutex_unlock(&lock); }

/* A child must not inherit the lock from a thread that it does not have. */
static void prepare_for_forks(void) { pthread_atfork(lock_uses, unlock_uses, unlock_uses); }

static void enter_list(void)
{
    pthread_once(&once, prepare_for_forks);
    lock_uses();
}

/* Handles (of devices with regions) are equal or apart; addresses may overlap. */
static bool overlap(const struct tarn_memory_use *a, const struct tarn_memory_use *b)
{
    bool is_one_device = a->device.table == b->device.table && a->device.self == b->device.self;
    if (!is_one_device && !(a->on_host && b->on_host)) return false;
    if (a->device.table->region_create) return a->begin == b->begin;
    return a->begin < b->begin ? b->begin - a->begin < a->size : a->begin - b->begin < b->size;
}

/* Does another session use some of this memory? */
static bool meets(const struct tarn_memory_use *use, const struct tarn_memory_use *other)
{
    return other != use && other->process == use->process && overlap(use, other);
}

enum tarn_status tarn_memory_use_enter(struct tarn_memory_use *use, struct tarn_error *error)
{
    assert(use->size > 0);
    use->process = getpid();
    enter_list();
    const struct tarn_memory_use *other = uses;
    while (other && !meets(use, other)) other = other->next;
    if (!other) {
        use->next = uses;
        uses = use;
    }
    unlock_uses();
    if (!other) return TARN_OK;
    return tarn_error_set(error, TARN_USAGE,
                          "the memory brought is in use by another session or arena: destroy that "
                          "one first, or, for sessions that take turns, give the memory to one "
                          "tarn_arena and create them on it");
}

void tarn_memory_use_leave(struct tarn_memory_use *use)
{
    if (use->size == 0) return;
    enter_list();
    struct tarn_memory_use **link = &uses;
    while (*link && *link != use) link = &(*link)->next;
    if (*link) *link = use->next;
    unlock_uses();
}
