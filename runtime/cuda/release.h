/* Frees CUDA memory on a separate thread. cudaFree and cudaHostUnregister may wait for all work on
 * the device, including work of other sessions and libraries, and that work may never end. So a
 * thread calls them, and destroy waits for it at most a second. Remaining memory is freed as soon
 * as the device allows it; if it never does, the memory stays allocated until the process ends. */
#ifndef TARN_RUNTIME_CUDA_RELEASE_H
#define TARN_RUNTIME_CUDA_RELEASE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct tarn_cuda;
struct tarn_cuda_pending;
struct tarn_cuda_closing;

struct tarn_cuda_release {
    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t done;
    struct tarn_cuda_pending *first;   /* what is to be given back */
    bool is_running;                   /* is there a thread? */
    bool is_stuck;                     /* a wait has timed out since the thread last freed memory */
    struct tarn_cuda_closing *closing; /* set: the thread closes the device at the end; NULL: not
                                        * yet */
};

void tarn_cuda_release_init(struct tarn_cuda_release *release);

/* How memory was obtained. */
enum tarn_cuda_origin {
    TARN_CUDA_FROM_MALLOC,     /* cudaMalloc */
    TARN_CUDA_FROM_HOST_ALLOC, /* cudaHostAlloc */
    TARN_CUDA_FROM_MAPPING     /* a mapping of pages, registered */
};

/* Frees `size` bytes, with their mapping if they have one. pre: they are not in use. Any thread. */
void tarn_cuda_release(struct tarn_cuda *cuda, enum tarn_cuda_origin origin, void *memory,
                       uint64_t size);

/* A thread frees the remaining memory, then calls `close`, whose calls may wait for all work on the
 * device, too. Returns when that is done, or after a second. pre: the device is not in use. */
void tarn_cuda_release_finish(struct tarn_cuda *cuda, void (*close)(struct tarn_cuda *cuda));

#endif
