/* The part of the CUDA runtime API that Tarn uses, declared without CUDA's headers and found in the
 * library at run time.
 *
 * Handles point to the same opaque structs as CUDA's own, and an enumeration is what the platform's
 * C makes of one without negative values, an unsigned int: so each type below is compatible with
 * CUDA's. If the real header is found, tests/runtime/cuda_api_check.c lets the compiler check that.
 * The declarations are the same in CUDA 12 and 13. */
#ifndef TARN_RUNTIME_CUDA_API_H
#define TARN_RUNTIME_CUDA_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tarn/error.h"

typedef struct CUstream_st *tarn_cuda_stream;
typedef struct CUevent_st *tarn_cuda_event;
typedef struct CUgraph_st *tarn_cuda_graph;
typedef struct CUgraphExec_st *tarn_cuda_exec;
typedef struct CUmemPoolHandle_st *tarn_cuda_pool;
typedef struct CUlib_st *tarn_cuda_library;
typedef struct CUkern_st *tarn_cuda_kernel;
typedef struct CUctx_st *tarn_cuda_context;
typedef unsigned tarn_cuda_code; /* cudaError_t */

struct cudaPointerAttributes;
struct cudaMemPoolProps;
struct cudaLaunchConfig_st;

/* ---- Values ---- */

enum {
    TARN_CUDA_OUT_OF_MEMORY = 2,
    TARN_CUDA_NOT_INITIALIZED = 3,
    TARN_CUDA_UNLOADING = 4,
    TARN_CUDA_INSUFFICIENT_DRIVER = 35,
    TARN_CUDA_NO_DEVICE = 100,
    TARN_CUDA_ECC_UNCORRECTABLE = 214,
    TARN_CUDA_NVLINK_UNCORRECTABLE = 220,
    TARN_CUDA_CONTAINED = 226,
    TARN_CUDA_NOT_READY = 600,
    TARN_CUDA_ILLEGAL_ADDRESS = 700,
    TARN_CUDA_LAUNCH_TIMEOUT = 702,
    TARN_CUDA_CONTEXT_IS_DESTROYED = 709,
    TARN_CUDA_ASSERT = 710,
    TARN_CUDA_HARDWARE_STACK_ERROR = 714,
    TARN_CUDA_ILLEGAL_INSTRUCTION = 715,
    TARN_CUDA_MISALIGNED_ADDRESS = 716,
    TARN_CUDA_INVALID_ADDRESS_SPACE = 717,
    TARN_CUDA_INVALID_PC = 718,
    TARN_CUDA_LAUNCH_FAILURE = 719,
    TARN_CUDA_TENSOR_MEMORY_LEAK = 721,
    TARN_CUDA_NOT_SUPPORTED = 801,
    TARN_CUDA_MPS_CLIENT_TERMINATED = 810,
    TARN_CUDA_EXTERNAL_DEVICE = 911
};

enum {
    TARN_CUDA_STREAM_NON_BLOCKING = 1,
    TARN_CUDA_EVENT_TIMING = 0,
    TARN_CUDA_EVENT_NO_TIMING = 2,
    TARN_CUDA_RECORD_PLAIN = 0,
    TARN_CUDA_RECORD_EXTERNAL = 1, /* in a capture: a node that records, not a dependency */
    TARN_CUDA_CAPTURE_GLOBAL = 0,
    TARN_CUDA_CAPTURE_THREAD_LOCAL = 1,
    TARN_CUDA_CAPTURE_RELAXED = 2,
    TARN_CUDA_CAPTURE_NONE = 0, /* a stream's capture status */
    TARN_CUDA_COPY_BY_ADDRESSES = 4,
    TARN_CUDA_HOST_PORTABLE = 1,
    TARN_CUDA_MULTIPROCESSORS = 16,   /* device attribute */
    TARN_CUDA_RELEASE_THRESHOLD = 4,  /* attribute of a pool */
    TARN_CUDA_PINNED_ALLOCATION = 1,  /* of a pool */
    TARN_CUDA_LOCATION_IS_DEVICE = 1, /* of a pool */
    TARN_CUDA_NODE_PRIORITIES = 8     /* instantiation: nodes run at their streams' priorities */
};

/* ---- Structs, as CUDA lays them out ---- */

struct tarn_cuda_pointer_attributes {
    unsigned type;
    int device;
    void *device_pointer;
    void *host_pointer; /* NULL: host code cannot follow it */
    long reserved[8];   /* from CUDA 13 on */
};

struct tarn_cuda_pool_props {
    unsigned allocation_type;
    unsigned handle_types;
    unsigned location_type;
    int location_id;
    void *security_attributes;
    size_t max_size;
    unsigned short usage;
    unsigned char reserved[54];
};

struct tarn_cuda_launch {
    unsigned blocks[3];
    unsigned threads[3];
    size_t shared_memory_bytes;
    tarn_cuda_stream stream;
    void *attributes;
    unsigned attributes_count;
};

/* ---- Entry points: ENTRY(name without "cuda", parameters); all return a tarn_cuda_code ---- */

#define TARN_CUDA_ENTRIES(ENTRY)                                                                  \
    ENTRY(DeviceGetAttribute, (int *value, unsigned attribute, int device))                       \
    ENTRY(DeviceGetPCIBusId, (char *text, int size, int device))                                  \
    ENTRY(DeviceGetStreamPriorityRange, (int *least, int *greatest))                              \
    ENTRY(DriverGetVersion, (int *version))                                                       \
    ENTRY(EventCreateWithFlags, (tarn_cuda_event * event, unsigned flags))                        \
    ENTRY(EventDestroy, (tarn_cuda_event event))                                                  \
    ENTRY(EventElapsedTime, (float *ms, tarn_cuda_event from, tarn_cuda_event to))                \
    ENTRY(EventQuery, (tarn_cuda_event event))                                                    \
    ENTRY(EventRecord, (tarn_cuda_event event, tarn_cuda_stream stream))                          \
    ENTRY(EventRecordWithFlags, (tarn_cuda_event event, tarn_cuda_stream stream, unsigned flags)) \
    ENTRY(Free, (void *memory))                                                                   \
    ENTRY(FreeAsync, (void *memory, tarn_cuda_stream stream))                                     \
    ENTRY(FreeHost, (void *memory))                                                               \
    ENTRY(GetDevice, (int *device))                                                               \
    ENTRY(GetDeviceCount, (int *count))                                                           \
    ENTRY(GetLastError, (void))                                                                   \
    ENTRY(GraphDestroy, (tarn_cuda_graph graph))                                                  \
    ENTRY(GraphExecDestroy, (tarn_cuda_exec exec))                                                \
    ENTRY(GraphInstantiate,                                                                       \
          (tarn_cuda_exec * exec, tarn_cuda_graph graph, unsigned long long flags))               \
    ENTRY(GraphLaunch, (tarn_cuda_exec exec, tarn_cuda_stream stream))                            \
    ENTRY(GraphUpload, (tarn_cuda_exec exec, tarn_cuda_stream stream))                            \
    ENTRY(HostAlloc, (void **memory, size_t size, unsigned flags))                                \
    ENTRY(HostRegister, (void *memory, size_t size, unsigned flags))                              \
    ENTRY(HostUnregister, (void *memory))                                                         \
    ENTRY(LaunchHostFunc,                                                                         \
          (tarn_cuda_stream stream, void (*function)(void *argument), void *argument))            \
    ENTRY(LaunchKernelExC,                                                                        \
          (const struct cudaLaunchConfig_st *config, const void *kernel, void **arguments))       \
    ENTRY(Malloc, (void **memory, size_t size))                                                   \
    ENTRY(MallocFromPoolAsync,                                                                    \
          (void **memory, size_t size, tarn_cuda_pool pool, tarn_cuda_stream stream))             \
    ENTRY(MemcpyAsync,                                                                            \
          (void *to, const void *from, size_t size, unsigned kind, tarn_cuda_stream stream))      \
    ENTRY(MemGetInfo, (size_t * available, size_t * total))                                       \
    ENTRY(MemPoolCreate, (tarn_cuda_pool * pool, const struct cudaMemPoolProps *props))           \
    ENTRY(MemPoolDestroy, (tarn_cuda_pool pool))                                                  \
    ENTRY(MemPoolSetAttribute, (tarn_cuda_pool pool, unsigned attribute, void *value))            \
    ENTRY(MemsetAsync, (void *memory, int byte, size_t size, tarn_cuda_stream stream))            \
    ENTRY(PointerGetAttributes, (struct cudaPointerAttributes * attributes, const void *pointer)) \
    ENTRY(RuntimeGetVersion, (int *version))                                                      \
    ENTRY(SetDevice, (int device))                                                                \
    ENTRY(StreamBeginCapture, (tarn_cuda_stream stream, unsigned mode))                           \
    ENTRY(StreamCreateWithPriority, (tarn_cuda_stream * stream, unsigned flags, int priority))    \
    ENTRY(StreamDestroy, (tarn_cuda_stream stream))                                               \
    ENTRY(StreamEndCapture, (tarn_cuda_stream stream, tarn_cuda_graph * graph))                   \
    ENTRY(StreamIsCapturing, (tarn_cuda_stream stream, unsigned *status))                         \
    ENTRY(StreamSynchronize, (tarn_cuda_stream stream))                                           \
    ENTRY(StreamWaitEvent, (tarn_cuda_stream stream, tarn_cuda_event event, unsigned flags))      \
    ENTRY(ThreadExchangeStreamCaptureMode, (unsigned *mode))

/* The runtime's functions that return entry points of the driver: the second since CUDA 12.5, the
 * first until it is removed; NULL if the runtime lacks it. */
#define TARN_CUDA_LOOKUP_ENTRIES(ENTRY)                                                    \
    ENTRY(GetDriverEntryPoint,                                                             \
          (const char *name, void **entry, unsigned long long flags, unsigned *found))     \
    ENTRY(GetDriverEntryPointByVersion, (const char *name, void **entry, unsigned version, \
                                         unsigned long long flags, unsigned *found))

/* Of the driver: ENTRY(name without "cu", parameters). Its codes are the runtime's. */
#define TARN_CUDA_DRIVER_ENTRIES(ENTRY)                 \
    ENTRY(CtxGetCurrent, (tarn_cuda_context * context)) \
    ENTRY(CtxPopCurrent, (tarn_cuda_context * context)) \
    ENTRY(CtxPushCurrent, (tarn_cuda_context context))  \
    ENTRY(DeviceGet, (int *device, int ordinal))        \
    ENTRY(DevicePrimaryCtxRelease, (int device))        \
    ENTRY(DevicePrimaryCtxRetain, (tarn_cuda_context * context, int device))

/* Since CUDA 12.8; NULL in an older runtime. */
#define TARN_CUDA_LIBRARY_ENTRIES(ENTRY)                                                          \
    ENTRY(LibraryGetKernel,                                                                       \
          (tarn_cuda_kernel * kernel, tarn_cuda_library library, const char *name))               \
    ENTRY(LibraryLoadData, (tarn_cuda_library * library, const void *code, unsigned *jit_options, \
                            void **jit_values, unsigned jit_count, unsigned *options,             \
                            void **values, unsigned count))                                       \
    ENTRY(LibraryUnload, (tarn_cuda_library library))

struct tarn_cuda_api {
#define TARN_CUDA_MEMBER(name, parameters) tarn_cuda_code(*name) parameters;
    TARN_CUDA_ENTRIES(TARN_CUDA_MEMBER)
    TARN_CUDA_LOOKUP_ENTRIES(TARN_CUDA_MEMBER)
    TARN_CUDA_LIBRARY_ENTRIES(TARN_CUDA_MEMBER)
    TARN_CUDA_DRIVER_ENTRIES(TARN_CUDA_MEMBER) /* after tarn_cuda_api_find_driver */
#undef TARN_CUDA_MEMBER
    const char *(*GetErrorString)(tarn_cuda_code code);
};

/* A runtime to try if none is named: one that the process uses, or one loaded for it.
 */
struct tarn_cuda_candidate {
    char name[64];
    void *handle;     /* of dlopen; NULL: not found */
    bool is_repeated; /* nothing to report: not in use, or tried under another number */
};

/* The candidates in the order in which to try them, starting at number 0; false: no more
 * candidates. */
bool tarn_cuda_candidate(uint32_t number, struct tarn_cuda_candidate *candidate);

/* A library by path or soname. TARN_DEVICE: it cannot be loaded. */
enum tarn_status tarn_cuda_candidate_load(const char *library,
                                          struct tarn_cuda_candidate *candidate,
                                          struct tarn_error *error);

/* Finds a candidate's entry points, except the driver's. TARN_DEVICE: one is missing. */
enum tarn_status tarn_cuda_api_find(const struct tarn_cuda_candidate *candidate,
                                    struct tarn_cuda_api *api, struct tarn_error *error);

/* Finds the driver's entry points, which are available after the runtime has counted the
 * devices. */
tarn_cuda_code tarn_cuda_api_find_driver(struct tarn_cuda_api *api);

/* Both of these for a named library. */
enum tarn_status tarn_cuda_api_load(const char *library, struct tarn_cuda_api *api,
                                    struct tarn_error *error);

#endif
