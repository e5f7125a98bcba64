/* CUDA devices. Needs no CUDA to build: the CUDA runtime library (libcudart) is loaded when a
 * device is opened, so one program runs with and without it. */
#ifndef TARN_CUDA_H
#define TARN_CUDA_H

#include "device.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tarn_cuda_options {
    size_t struct_size;
    uint32_t ordinal;    /* which device, among those that CUDA shows to this process */
    bool pool;           /* memory from a separate stream-ordered pool of the device, which keeps
                          * freed memory of a session for the next session; otherwise from
                          * cudaMalloc */
    const char *library; /* path or soname of the CUDA runtime; NULL: the runtime that the process
                          * uses already, if it is of CUDA 12 or 13; otherwise libcudart.so of the
                          * major version that Tarn was configured for, then 13, then 12. A runtime
                          * that is newer than the driver is skipped */
    const struct tarn_memory_source *memory; /* NULL: as `pool` says. Lives as long as the device */
};
#ifndef __cplusplus
#define TARN_CUDA_OPTIONS(...) \
    (&(struct tarn_cuda_options){.struct_size = sizeof(struct tarn_cuda_options), __VA_ARGS__})
#endif

/* Loads the runtime and makes the device ready; options NULL: defaults. The caller closes the
 * device. A queue is a cudaStream_t, an event and a stamp a cudaEvent_t, a graph a cudaGraphExec_t:
 * kernels may pass call->queue to any CUDA library. TARN_DEVICE: no runtime library (the text names
 * the libraries tried), no driver or too old a driver, no such device, or a CUDA error, in
 * device_code. TARN_SYSTEM: no memory.
 *
 * Threads: any thread may open the device, create sessions on it and submit to them. A kernel that
 * enqueues finds the device of its stream current. Every call of Tarn restores the thread's current
 * device, or none, and makes no context on another device. Captures of other threads, and of the
 * calling thread on its own streams, are not disturbed in any mode.
 *
 * Memory is freed by a separate thread, since cudaFree may wait for work outside of the session:
 * destroying a session, or closing the device, waits at most a second for it. */
TARN_API enum tarn_status tarn_device_cuda_open(const struct tarn_cuda_options *options,
                                                struct tarn_device *device,
                                                struct tarn_error *error);
/* Closes the device, after tarn_session_destroy has returned TARN_OK for every session on it. The
 * runtime library stays loaded. */
TARN_API void tarn_device_cuda_close(struct tarn_device device);

/* Enqueues a kernel of one thread that does nothing for the given time; for measurements. Returns
 * the CUDA error code; 801 (not supported) if Tarn was built without nvcc. */
TARN_API int tarn_device_cuda_spin(struct tarn_device device, void *queue, uint64_t duration_ns);

#ifdef __cplusplus
}
#endif

#endif
