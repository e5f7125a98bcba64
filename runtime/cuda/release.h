/* Giving memory back. cudaFree and cudaHostUnregister may wait for all work on the device, that of
 * other sessions and of other libraries too, and that work may never end: so a thread does it, for
 * which destroying waits a second and no longer. What was not given back by then is given back as
 * soon as the device lets it; where it never does, it stays taken until the process ends. */
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
    struct tarn_cuda_pending *first; /* what is to be given back */
    bool is_running;                 /* is there a thread? */
    bool is_stuck; /* a wait has ended in vain since the thread last gave something back */
    struct tarn_cuda_closing *closing; /* the thread closes the device in the end; NULL: not yet */
};

void tarn_cuda_release_init(struct tarn_cuda_release *release);

/* How memory was obtained. */
enum tarn_cuda_origin {
    TARN_CUDA_FROM_MALLOC,     /* cudaMalloc */
    TARN_CUDA_FROM_HOST_ALLOC, /* cudaHostAlloc */
    TARN_CUDA_FROM_MAPPING     /* a mapping of pages, registered */
};

/* Gives `size` bytes back, with their mapping if they have one. Nobody uses them any more. Any
 * thread. */
void tarn_cuda_release(struct tarn_cuda *cuda, enum tarn_cuda_origin origin, void *memory,
                       uint64_t size);

/* A thread gives back what is left, then calls `close`, whose calls may wait for all work on the
 * device, too. Returns when that is done, or after a second. pre: nobody uses the device. */
void tarn_cuda_release_finish(struct tarn_cuda *cuda, void (*close)(struct tarn_cuda *cuda));

#endif
