/* The internal state of a CUDA device, shared by the files that implement its table. */
#ifndef TARN_RUNTIME_CUDA_DEVICE_H
#define TARN_RUNTIME_CUDA_DEVICE_H

#include <pthread.h>
#include <stdbool.h>

#include "api.h"
#include "check.h"
#include "nvtx.h"
#include "release.h"
#include "tarn/cuda.h"
#include "tarn/device.h"

struct tarn_cuda_capture {
    struct tarn_cuda_capture *next;
    void *queue;
    pthread_t thread;
    tarn_cuda_code failure;
};

struct tarn_cuda {
    struct tarn_cuda_api api;
    int ordinal;
    int device;                       /* the driver's number of the device */
    tarn_cuda_context context;        /* its primary context, retained */
    int priorities[2];                /* of streams: plain, urgent */
    char pci_bus_id[32];              /* "" when unknown */
    bool on_host;                     /* may host code follow the addresses of device memory? */
    tarn_cuda_stream copies;          /* for blocking copies and for the pool */
    tarn_cuda_pool pool;              /* NULL: memory comes from cudaMalloc */
    struct tarn_memory_source source; /* without functions: memory comes from CUDA */
    struct tarn_cuda_check check;
    struct tarn_cuda_release release;
    struct tarn_nvtx *nvtx;             /* NULL if no tool is attached */
    pthread_mutex_t lock;               /* of what follows */
    struct tarn_cuda_capture *captures; /* captures that have begun and not ended */
};

extern const struct tarn_device_table tarn_cuda_table;

/* ---- Visits (cuda/visit.c): around everything that calls CUDA ---- */

struct tarn_cuda_visit {
    struct tarn_cuda *cuda;
    const struct tarn_cuda_api *api;
    tarn_cuda_code code; /* of entering, then of the call */
    unsigned mode;       /* the thread's own capture mode */
    bool is_lent, is_relaxed;
};

/* Makes the device current in the thread, and sets a relaxed capture mode: the thread's calls
 * neither break captures of other threads nor fail because of them. */
struct tarn_cuda_visit tarn_cuda_enter(struct tarn_cuda *cuda);
/* Restores the thread's state. The code is returned to the session. It is cleared from CUDA's
 * record of the thread's last error, which kernels may query after their launches, and it spoils a
 * capture of this thread. */
int tarn_cuda_leave(struct tarn_cuda_visit *visit);

/* Prepares the thread for a kernel of the caller, which calls CUDA itself: the device is current
 * until the second call, and the thread's capture mode is unchanged. */
void tarn_cuda_lend(struct tarn_cuda *cuda);
void tarn_cuda_take_back(struct tarn_cuda *cuda);

/* ---- The memory functions of the device's table; `self` is a struct tarn_cuda ---- */

int tarn_cuda_memory_limits(void *self, struct tarn_memory_limits *limits);
int tarn_cuda_memory_create(void *self, uint64_t size, void **memory);
void tarn_cuda_memory_destroy(void *self, void *memory, uint64_t size);
int tarn_cuda_copy_in(void *self, void *device, const void *host, uint64_t size);
int tarn_cuda_copy_out(void *self, void *host, const void *device, uint64_t size);
int tarn_cuda_fill(void *self, void *device, unsigned char byte, uint64_t size);
int tarn_cuda_host_memory_create(void *self, uint64_t size, void **memory);
void tarn_cuda_host_memory_destroy(void *self, void *memory, uint64_t size);
int tarn_cuda_space_limits(void *self, const struct tarn_memory_space *space,
                           struct tarn_memory_limits *limits);
int tarn_cuda_space_create(void *self, const struct tarn_memory_space *space, uint64_t size,
                           void **memory);
void tarn_cuda_space_destroy(void *self, const struct tarn_memory_space *space, void *memory,
                             uint64_t size);

#endif
