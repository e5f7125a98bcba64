/* Tarn on OpenCL: a device that lives outside the library. What a program that brings its own
 * kernels needs of it; the guide for writing such a device is in opencl_device.c. */
#ifndef OPENCL_DEVICE_H
#define OPENCL_DEVICE_H

#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS /* clCreateCommandQueue: the one that every version has \
                                           */
#include <CL/cl.h>
#include <pthread.h>
#include <tarn.h>

struct opencl_device {
    struct tarn_device_table table; /* without the parts that this device lacks */
    cl_device_id id;
    cl_context context;
    bool is_svm;             /* the arena is shared virtual memory; else one buffer, sub-buffers */
    bool is_fine_grained;    /* and the host may use such memory while the device does */
    cl_command_queue copies; /* for blocking copies and fills */
    uint64_t alignment, allocation_max;
    cl_program program; /* the checking kernels; NULL: the device cannot have them */
    cl_kernel fill, compare;
    struct opencl_mapping *mappings; /* host memory for copies (opencl_memory.c) */
    pthread_mutex_t lock; /* of all this, the kernels' arguments, every event's latest record */
};

/* Opens the index-th device of all platforms. with_buffers: sub-buffers even where the device has
 * shared virtual memory. Returns 0, or an OpenCL error code that device->table.error_text explains.
 * Either way the caller closes it. */
cl_int opencl_device_open(struct opencl_device *device, uint32_t index, bool with_buffers);
/* After tarn_session_destroy has answered TARN_OK for every session on it. */
void opencl_device_close(struct opencl_device *device);

/* What tarn_session_create takes. In a kernel's call, `queue` is the stream's cl_command_queue. */
struct tarn_device opencl_device_table(struct opencl_device *device);

/* Passes an address from a tarn_call to an OpenCL kernel, as its arguments `index` and `index + 1`:
 * `global uchar *base, ulong shift`, the bytes being at base + shift. */
cl_int opencl_device_argument(const struct opencl_device *device, cl_kernel kernel, cl_uint index,
                              const void *address);

#endif
