/* A stand-in for CUDA's runtime, driver and BLAS under PyTorch: one device that has memory, streams
 * and events and computes nothing, so that the sequence of calls of a program can be seen where no
 * GPU is. Everything is done at once; NO_GPU_LOG names a file that gets a line for each launch,
 * event and wait.
 *
 *   cc -shared -fPIC -I .../nvidia/cu13/include no_gpu.c -o libno_gpu.so; the same as libcuda.so.1
 *   LD_PRELOAD=libno_gpu.so LD_LIBRARY_PATH=(where libcuda.so.1 is) python3 ... */
#include <driver_types.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vector_types.h>

typedef uint64_t word;

static FILE *log_file(void)
{
    static FILE *file;
    if (!file) file = getenv("NO_GPU_LOG") ? fopen(getenv("NO_GPU_LOG"), "a") : stderr;
    setvbuf(file, NULL, _IOLBF, 0);
    return file;
}

#define LOG(...) (getenv("NO_GPU_LOG") ? fprintf(log_file(), __VA_ARGS__) : 0)

/* Functions that succeed and have nothing to say; those that answer with a number; those that make
 * something. */
#define NOTHING(name) \
    int name(void) { return 0; }
#define ANSWER(name, kind, value) \
    int name(kind *to) { return *to = (value), 0; }
#define ANSWER_LAST(name, kind, value) \
    int name(word a, kind *to) { return (void)a, *to = (value), 0; }
#define MAKE(name) \
    int name(void **made) { return *made = unique(), 0; }

static void *unique(void)
{
    static _Atomic word count;
    return (void *)(0x100000 + 16 * count++);
}

/* ---- Devices and memory ---- */

ANSWER(cudaGetDeviceCount, int, 1)
ANSWER(cudaGetDevice, int, 0)
ANSWER(cudaRuntimeGetVersion, int, 13020)
ANSWER(cudaDriverGetVersion, int, 13020)
ANSWER(cudaGetDeviceFlags, unsigned, 0)
ANSWER(cudaDeviceGetAttribute, int, 1)
NOTHING(cudaSetDevice)
NOTHING(cudaInitDevice)
NOTHING(cudaDeviceSynchronize)
NOTHING(cudaFuncSetAttribute)
NOTHING(cudaThreadExchangeStreamCaptureMode)
const char *cudaGetErrorString(int code) { return (void)code, "the stand-in has failed"; }
const char *cudaGetErrorName(int code) { return (void)code, "cudaErrorNoGpu"; }

int cudaGetDeviceProperties(struct cudaDeviceProp *to, int device)
{
    (void)device;
    memset(to, 0, sizeof *to);
    strcpy(to->name, "no GPU");
    to->major = 9, to->multiProcessorCount = 132, to->warpSize = 32;
    to->maxThreadsPerBlock = 1024, to->maxThreadsPerMultiProcessor = 2048;
    to->totalGlobalMem = (size_t)1 << 34;
    to->sharedMemPerBlock = to->sharedMemPerBlockOptin = 49152;
    to->regsPerBlock = 65536, to->maxGridSize[0] = INT32_MAX,
    to->maxGridSize[1] = to->maxGridSize[2] = 65535;
    to->maxThreadsDim[0] = to->maxThreadsDim[1] = 1024, to->maxThreadsDim[2] = 64;
    return 0;
}

/* Memory begins on a page of 4096 bytes, as a GPU's does. A request for more than the GPU has
 * fails, and the error stays until it is asked for. */
#define MEMORY ((size_t)1 << 34)
static _Thread_local int last_error;
int cudaGetLastError(void)
{
    int code = last_error;
    return last_error = 0, code;
}
int cudaPeekAtLastError(void) { return last_error; }
int cudaMalloc(void **to, size_t size)
{
    LOG("malloc %zu\n", size);
    if (size > MEMORY) return *to = NULL, last_error = 2;
    size_t whole = (size + 4095) / 4096 * 4096;
    *to = aligned_alloc(4096, whole);
    return memset(*to, 0, whole), 0;
}
int cudaFree(void *bytes) { return LOG("free 0\n"), free(bytes), 0; }
int cudaHostAlloc(void **to, size_t size, unsigned flags)
{
    return (void)flags, *to = calloc(1, size), 0;
}
int cudaFreeHost(void *bytes) { return free(bytes), 0; }
int cudaMemcpy(void *to, const void *from, size_t size, int kind)
{
    return (void)kind, memmove(to, from, size), 0;
}
int cudaMemset(void *to, int value, size_t size) { return memset(to, value, size), 0; }
int cudaMemsetAsync(void *to, int value, size_t size, word stream)
{
    return memset(to, value, size), LOG("launch %lx\n", stream), 0;
}
int cudaMemcpyAsync(void *to, const void *from, size_t size, int kind, word stream)
{
    return (void)kind, memmove(to, from, size), LOG("launch %lx\n", stream), 0;
}
int cudaMemGetInfo(size_t *left, size_t *total) { return *left = *total = MEMORY, 0; }
int cudaPointerGetAttributes(struct cudaPointerAttributes *to, const void *address)
{
    memset(to, 0, sizeof *to);
    to->type = cudaMemoryTypeDevice, to->devicePointer = (void *)address;
    return 0;
}

/* ---- Work ---- */

MAKE(cudaStreamCreateWithPriority)
NOTHING(cudaStreamSynchronize)
NOTHING(cudaStreamQuery)
NOTHING(cudaStreamDestroy)
ANSWER_LAST(cudaStreamIsCapturing, int, 0)
ANSWER_LAST(cudaStreamGetCaptureInfo, int, 0)
ANSWER_LAST(cudaStreamGetPriority, int, 0)
MAKE(cudaEventCreateWithFlags)
NOTHING(cudaEventQuery)
NOTHING(cudaEventSynchronize)
NOTHING(cudaEventDestroy)
ANSWER(cudaEventElapsedTime, float, 0.01f)
int cudaDeviceGetStreamPriorityRange(int *least, int *most) { return *least = 0, *most = -5, 0; }
int cudaEventRecordWithFlags(word event, word stream)
{
    return LOG("record %lx %lx\n", stream, event), 0;
}
int cudaEventRecord(word event, word stream) { return cudaEventRecordWithFlags(event, stream); }
int cudaStreamWaitEvent(word stream, word event) { return LOG("wait %lx %lx\n", stream, event), 0; }
int cudaLaunchKernel(word kernel, dim3 grid, dim3 block, void **arguments, size_t shared,
                     word stream)
{
    return (void)kernel, (void)grid, (void)block, (void)arguments, (void)shared,
           LOG("launch %lx\n", stream), 0;
}
int cudaLaunchKernelExC(const cudaLaunchConfig_t *how)
{
    return LOG("launch %p\n", (void *)how->stream), 0;
}
int cudaFuncGetAttributes(struct cudaFuncAttributes *to)
{
    memset(to, 0, sizeof *to);
    to->maxThreadsPerBlock = 1024, to->numRegs = 32, to->binaryVersion = to->ptxVersion = 90;
    return 0;
}
ANSWER(cudaOccupancyMaxActiveBlocksPerMultiprocessor, int, 2)
ANSWER(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, int, 2)

/* ---- The driver ---- */

NOTHING(cuInit)
ANSWER(cuDriverGetVersion, int, 13020)
ANSWER(cuDeviceGetCount, int, 1)
ANSWER(cuDeviceGet, int, 0)
MAKE(cuCtxGetCurrent)
int cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active)
{
    return (void)device, *flags = 0, *active = 1, 0;
}
int cudaGetDriverEntryPointByVersion(const char *name, void **to)
{
    return (void)name, *to = NULL, 0;
}

/* ---- BLAS ---- */

static word blas_stream;
MAKE(cublasCreate_v2)
NOTHING(cublasDestroy_v2)
int cublasSetStream_v2(word handle, word stream) { return (void)handle, blas_stream = stream, 0; }
NOTHING(cublasSetWorkspace_v2)
NOTHING(cublasSetMathMode)
NOTHING(cublasSetPointerMode_v2)
ANSWER_LAST(cublasGetMathMode, int, 0)
ANSWER_LAST(cublasGetPointerMode_v2, int, 0)
#define GEMM(name) \
    int name(void) { return LOG("launch %lx\n", blas_stream), 0; }
GEMM(cublasSgemm_v2)
GEMM(cublasSgemmEx)
GEMM(cublasGemmEx)
GEMM(cublasSgemmStridedBatched)
GEMM(cublasGemmStridedBatchedEx)
GEMM(cublasSgemv_v2)
size_t cublasLtGetVersion(void) { return 130200; }
MAKE(cublasLtMatmulDescCreate)
MAKE(cublasLtMatmulPreferenceCreate)
MAKE(cublasLtMatrixLayoutCreate)
NOTHING(cublasLtMatmulDescDestroy)
NOTHING(cublasLtMatmulPreferenceDestroy)
NOTHING(cublasLtMatrixLayoutDestroy)
NOTHING(cublasLtMatmulDescSetAttribute)
NOTHING(cublasLtMatmulPreferenceSetAttribute)
NOTHING(cublasLtMatrixLayoutSetAttribute)
int cublasLtMatmulAlgoGetHeuristic(word handle, word op, word a, word b, word c, word d, word wish,
                                   int count, void *found, int *found_count)
{
    (void)handle, (void)op, (void)a, (void)b, (void)c, (void)d, (void)wish, (void)count,
        (void)found;
    return *found_count = 1, 0;
}
int cublasLtMatmul(word handle, word op, void *alpha, void *a, word as, void *b, word bs,
                   void *beta, void *c, word cs, void *d, word ds, void *algorithm, void *workspace,
                   size_t size, word stream)
{
    (void)handle, (void)op, (void)alpha, (void)a, (void)as, (void)b, (void)bs, (void)beta, (void)c,
        (void)cs;
    (void)d, (void)ds, (void)algorithm, (void)workspace, (void)size;
    return LOG("launch %lx\n", stream), 0;
}
