/* The inside of a CUDA device, shared by the files that implement its table. */
#ifndef TARN_RUNTIME_CUDA_DEVICE_H
#define TARN_RUNTIME_CUDA_DEVICE_H

#include <pthread.h>
#include <stdbool.h>

#include "cuda_api.h"
#include "cuda_check.h"
#include "cuda_nvtx.h"
#include "tarn/cuda.h"

struct tarn_cuda_capture;

struct tarn_cuda {
    struct tarn_cuda_api api;
    int ordinal;
    int priorities[2];       /* of streams: plain, urgent */
    char pci_bus_id[32];     /* "" when unknown */
    bool on_host;            /* may host code follow the addresses of device memory? */
    tarn_cuda_stream copies; /* for blocking copies and for the pool */
    tarn_cuda_pool pool;     /* NULL: memory comes from cudaMalloc */
    struct tarn_cuda_check check;
    struct tarn_nvtx *nvtx;             /* NULL where no tool listens */
    pthread_mutex_t lock;               /* of what follows */
    struct tarn_cuda_capture *captures; /* those that have begun and not ended */
};

extern const struct tarn_device_table tarn_cuda_table;

/* Makes the device the thread's current one. */
tarn_cuda_code tarn_cuda_enter(struct tarn_cuda *cuda);

/* For every code that goes back to the session: clears it from CUDA's own memory of the thread's
 * last error, which kernels may ask for after their launches, and spoils a capture of this thread.
 */
int tarn_cuda_leave(struct tarn_cuda *cuda, tarn_cuda_code code);

#endif
