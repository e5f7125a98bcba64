/* The thread that gives memory back lives only while there is some. Where it cannot be started, or
 * there is no memory for a note, the caller's thread does the work and waits as long as CUDA does.
 * Cost: one thread started per destroyed allocation, or fewer. */
#include "release.h"

#include <errno.h>
#include <sys/mman.h>
#include <time.h>

#include "device.h"
#include "streams/base/memory.h"
#include "streams/base/parallel.h"

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
    void (*close)(struct tarn_cuda *) = release->close;
    pthread_cond_broadcast(&release->done);
    pthread_mutex_unlock(&release->lock);
    if (close) close(cuda);
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
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += PATIENCE_S;
    while (release->is_running && !release->is_stuck)
        release->is_stuck =
            pthread_cond_timedwait(&release->done, &release->lock, &until) == ETIMEDOUT;
}

void tarn_cuda_release_init(struct tarn_cuda_release *release)
{
    pthread_condattr_t attributes;
    *release = (struct tarn_cuda_release){0};
    pthread_mutex_init(&release->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&release->done, &attributes);
    pthread_condattr_destroy(&attributes);
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
    pthread_mutex_lock(&release->lock);
    wait_done(release);
    bool is_done = !release->is_running;
    if (!is_done) release->close = close;
    pthread_mutex_unlock(&release->lock);
    if (is_done) close(cuda);
}
