/* The thread that frees memory; it lives only while there is memory to free. It also closes the
 * device: any of the calls that end a pool, a library, a stream or a context may wait for all work
 * on it. If the thread cannot be started, or memory for its list runs out, the caller's thread does
 * the work and waits as long as CUDA does. Cost: one thread started per destroyed allocation, or
 * fewer. */
#include "release.h"

#include <errno.h>
#include <sys/mman.h>
#include <time.h>

#include "device.h"
#include "streams/base/memory.h"
#include "streams/base/thread.h"

enum { PATIENCE_S = 1 };

struct tarn_cuda_pending {
    struct tarn_cuda_pending *next;
    enum tarn_cuda_origin origin;
    void *memory;
    uint64_t size;
};

static tarn_cuda_code end(const struct tarn_cuda_api *api, enum tarn_cuda_origin origin,
                          void *memory)
{
    switch (origin) {
    case TARN_CUDA_FROM_HOST_ALLOC: return api->FreeHost(memory);
    case TARN_CUDA_FROM_MAPPING: return api->HostUnregister(memory);
    default: return api->Free(memory);
    }
}

static void give_back(struct tarn_cuda *cuda, enum tarn_cuda_origin origin, void *memory,
                      uint64_t size)
{
    struct tarn_cuda_visit visit = tarn_cuda_enter(cuda);
    tarn_cuda_code code = end(visit.api, origin, memory);
    if (!visit.code) visit.code = code;
    tarn_cuda_leave(&visit);
    if (origin == TARN_CUDA_FROM_MAPPING) munmap(memory, (size_t)size);
}

/* Shared by the thread and the caller that closes the device; separate, since the device is freed
 * at the end. */
struct tarn_cuda_closing {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    void (*close)(struct tarn_cuda *cuda);
    bool is_over, is_left; /* the device was closed; the caller waits no longer */
};

static void init_condition(pthread_cond_t *condition)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(condition, &attributes);
    pthread_condattr_destroy(&attributes);
}

static struct timespec deadline(void)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += PATIENCE_S;
    return until;
}

static void free_closing(struct tarn_cuda_closing *closing)
{
    pthread_cond_destroy(&closing->changed);
    pthread_mutex_destroy(&closing->lock);
    tarn_free(closing);
}

/* Called by the thread: the last of the two frees the shared struct. */
static void close_device(struct tarn_cuda *cuda, struct tarn_cuda_closing *closing)
{
    closing->close(cuda);
    pthread_mutex_lock(&closing->lock);
    bool is_last = closing->is_left;
    closing->is_over = true;
    pthread_cond_broadcast(&closing->changed);
    pthread_mutex_unlock(&closing->lock);
    if (is_last) free_closing(closing);
}

/* Called by the caller: waits for a second, less the time already spent on freeing memory. */
static void leave_closing(struct tarn_cuda_closing *closing, const struct timespec *until)
{
    int code = 0;
    pthread_mutex_lock(&closing->lock);
    while (!closing->is_over && code != ETIMEDOUT)
        code = pthread_cond_timedwait(&closing->changed, &closing->lock, until);
    bool is_last = closing->is_over;
    closing->is_left = true;
    pthread_mutex_unlock(&closing->lock);
    if (is_last) free_closing(closing);
}

static void *run(void *argument)
{
    struct tarn_cuda *cuda = argument;
    struct tarn_cuda_release *release = &cuda->release;
    pthread_mutex_lock(&release->lock);
    while (release->first) {
        struct tarn_cuda_pending *pending = release->first;
        release->first = pending->next;
        pthread_mutex_unlock(&release->lock);
        give_back(cuda, pending->origin, pending->memory, pending->size);
        tarn_free(pending);
        pthread_mutex_lock(&release->lock);
        release->is_stuck = false;
    }
    release->is_running = false;
    struct tarn_cuda_closing *closing = release->closing;
    pthread_cond_broadcast(&release->done);
    pthread_mutex_unlock(&release->lock);
    if (closing) close_device(cuda, closing);
    return NULL;
}

static bool start(struct tarn_cuda *cuda)
{
    pthread_t thread;
    bool is_started = tarn_thread_start(&thread, run, cuda);
    if (is_started) pthread_detach(thread);
    return is_started;
}

/* With the lock. */
static void wait_done(struct tarn_cuda_release *release)
{
    struct timespec until = deadline();
    while (release->is_running && !release->is_stuck)
        release->is_stuck =
            pthread_cond_timedwait(&release->done, &release->lock, &until) == ETIMEDOUT;
}

void tarn_cuda_release_init(struct tarn_cuda_release *release)
{
    *release = (struct tarn_cuda_release){0};
    pthread_mutex_init(&release->lock, NULL);
    init_condition(&release->done);
}

void tarn_cuda_release(struct tarn_cuda *cuda, enum tarn_cuda_origin origin, void *memory,
                       uint64_t size)
{
    struct tarn_cuda_release *release = &cuda->release;
    struct tarn_cuda_pending *pending = tarn_take(sizeof *pending);
    bool is_taken = false;
    if (pending) {
        pthread_mutex_lock(&release->lock);
        *pending = (struct tarn_cuda_pending){release->first, origin, memory, size};
        is_taken = release->is_running || start(cuda);
        if (is_taken) {
            release->first = pending;
            release->is_running = true;
            wait_done(release);
        }
        pthread_mutex_unlock(&release->lock);
    }
    if (is_taken) return;
    tarn_free(pending);
    give_back(cuda, origin, memory, size);
}

void tarn_cuda_release_finish(struct tarn_cuda *cuda, void (*close)(struct tarn_cuda *cuda))
{
    struct tarn_cuda_release *release = &cuda->release;
    struct tarn_cuda_closing *closing = tarn_take_zeros(1, sizeof *closing);
    const struct timespec until = deadline();
    if (closing) {
        pthread_mutex_init(&closing->lock, NULL);
        init_condition(&closing->changed);
        closing->close = close;
    }
    pthread_mutex_lock(&release->lock);
    while (!closing && release->is_running) pthread_cond_wait(&release->done, &release->lock);
    release->closing = closing; /* seen by the running thread, or by a newly started one */
    bool is_taken = closing && (release->is_running || start(cuda));
    pthread_mutex_unlock(&release->lock);
    if (is_taken) {
        leave_closing(closing, &until);
    } else {
        close(cuda);
        if (closing) free_closing(closing);
    }
}
