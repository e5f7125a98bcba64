/* A stand-in for CUDA's runtime, driver and BLAS under PyTorch: one device that has memory, streams
 * and events and computes nothing, so that the sequence of calls of a program can be seen where no
 * GPU is. Everything is done at once; NO_GPU_LOG names a file that gets a line for each launch,
 * event and wait. What is captured as a graph is done when that is launched; calls that a capture
 * forbids fail, and end it.
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

/* ---- Captures: one at a time ---- */

/* kind: what is done to memory; or a launch of a kernel, which is nothing. */
struct node {
    enum { LAUNCH, SET, COPY } kind;
    void *to;
    const void *from;
    size_t size;
    int value;
};
struct graph {
    struct node *nodes;
    size_t count;
};
enum { GLOBAL, THREAD_LOCAL, RELAXED };
enum { INVALIDATED = 901, UNSUPPORTED = 900, UNJOINED = 904, ISOLATION = 905 };
#define STREAMS 64
static struct graph *capture; /* that is made */
static word capture_thread, origin;
static int capture_broken;
static word streams[STREAMS]; /* that take part */
static _Bool unjoined[STREAMS];
static int streams_count;
static struct {
    word event, stream;
} marked[4096]; /* events of the capture */
static int marked_count;
static _Thread_local int capture_mode = GLOBAL;
static _Thread_local int last_error;

static word this_thread(void)
{
    static _Thread_local char here;
    return (word)&here;
}
static int fails(int code) { return last_error = code; }

static int part_of_capture(word stream)
{
    for (int i = 0; capture && i < streams_count; i++)
        if (streams[i] == stream) return i;
    return -1;
}
/* A call that no capture of this thread permits, or none in a stricter mode. */
static int forbidden_call(_Bool even_relaxed, const char *name)
{
    if (!capture || capture_thread != this_thread()) return 0;
    if (capture_mode == RELAXED && !even_relaxed) return 0;
    return capture_broken = 1, LOG("forbidden %s\n", name), fails(UNSUPPORTED);
}
#define forbidden(even_relaxed) forbidden_call(even_relaxed, __func__)
/* Work on a stream: 1 if it is captured. */
static int captured(word stream, struct node node)
{
    int i = part_of_capture(stream);
    if (i < 0) return 0;
    capture->nodes = realloc(capture->nodes, (capture->count + 1) * sizeof node);
    capture->nodes[capture->count++] = node;
    return unjoined[i] = 1;
}
#define LAUNCHED(stream) \
    (captured(stream, (struct node){.kind = LAUNCH}) ? 0 : LOG("launch %lx\n", (word)(stream)))

int cudaThreadExchangeStreamCaptureMode(int *mode)
{
    int old = capture_mode;
    return capture_mode = *mode, *mode = old, 0;
}
int cudaStreamBeginCapture(word stream, int mode)
{
    if (capture || !stream) return fails(UNSUPPORTED);
    capture = calloc(1, sizeof *capture), capture_thread = this_thread(), capture_mode = mode;
    streams_count = marked_count = capture_broken = 0;
    return origin = streams[streams_count++] = stream, LOG("capture begins\n"), 0;
}
int cudaStreamEndCapture(word stream, struct graph **to)
{
    if (!capture || stream != origin) return fails(UNSUPPORTED);
    int code = capture_broken ? INVALIDATED : 0;
    for (int i = 1; i < streams_count; i++)
        if (unjoined[i] && !code) code = UNJOINED;
    *to = code ? NULL : capture;
    return capture = NULL, capture_mode = GLOBAL, LOG("capture ends %d\n", code),
           code ? fails(code) : 0;
}
int cudaStreamIsCapturing(word stream, int *to)
{
    return *to = part_of_capture(stream) < 0 ? 0 : capture_broken ? 2 : 1, 0;
}
int cudaStreamGetCaptureInfo(word stream, int *status, unsigned long long *id, void **graph,
                             void **after, void **edges, size_t *count)
{
    cudaStreamIsCapturing(stream, status);
    if (id) *id = 1;
    if (graph) *graph = *status ? capture : NULL;
    if (after) *after = NULL;
    if (edges) *edges = NULL;
    if (count) *count = 0;
    return 0;
}
int cudaGraphGetNodes(struct graph *graph, void *nodes, size_t *count)
{
    return (void)nodes, *count = graph->count, 0;
}
int cudaGraphInstantiate(struct graph **to, struct graph *graph, unsigned long long flags)
{
    return (void)flags, *to = graph, 0;
}
int cudaGraphInstantiateWithFlags(struct graph **to, struct graph *graph, unsigned long long flags)
{
    return (void)flags, *to = graph, 0;
}
int cudaGraphLaunch(struct graph *graph, word stream)
{
    if (part_of_capture(stream) >= 0) return forbidden(1);
    for (struct node *n = graph->nodes; n < graph->nodes + graph->count; n++)
        if (n->kind == SET)
            memset(n->to, n->value, n->size);
        else if (n->kind == COPY)
            memmove(n->to, n->from, n->size);
    return LOG("replay %zu\n", graph->count), 0;
}
int cudaGraphDestroy(struct graph *graph) { return (void)graph, 0; } /* launched after that */
int cudaGraphExecDestroy(struct graph *graph)
{
    return free(graph->nodes), free(graph), LOG("graph ends\n"), 0;
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
int cudaDeviceSynchronize(void) { return forbidden(1); }
NOTHING(cudaFuncSetAttribute)
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
int cudaGetLastError(void)
{
    int code = last_error;
    return last_error = 0, code;
}
int cudaPeekAtLastError(void) { return last_error; }
int cudaMalloc(void **to, size_t size)
{
    LOG("malloc %zu\n", size);
    if (forbidden(0)) return *to = NULL, UNSUPPORTED;
    if (size > MEMORY) return *to = NULL, last_error = 2;
    size_t whole = (size + 4095) / 4096 * 4096;
    *to = aligned_alloc(4096, whole);
    return memset(*to, 0, whole), 0;
}
int cudaFree(void *bytes)
{
    if (forbidden(1)) return UNSUPPORTED; /* for it waits */
    return LOG("free 0\n"), free(bytes), 0;
}
int cudaHostAlloc(void **to, size_t size, unsigned flags)
{
    LOG("pinned %zu\n", size);
    return (void)flags, *to = calloc(1, size), forbidden(0);
}
int cudaFreeHost(void *bytes) { return LOG("free pinned\n"), free(bytes), 0; }
int cudaMemcpy(void *to, const void *from, size_t size, int kind)
{
    return (void)kind, memmove(to, from, size), forbidden(1);
}
int cudaMemset(void *to, int value, size_t size) { return memset(to, value, size), forbidden(1); }
int cudaMemsetAsync(void *to, int value, size_t size, word stream)
{
    if (captured(stream, (struct node){.kind = SET, .to = to, .value = value, .size = size}))
        return 0;
    return memset(to, value, size), LOG("launch %lx\n", stream), 0;
}
int cudaMemcpyAsync(void *to, const void *from, size_t size, int kind, word stream)
{
    enum { BY_ADDRESSES = 4 };
    if (captured(stream, (struct node){.kind = COPY, .to = to, .from = from, .size = size}))
        return 0;
    if (kind == BY_ADDRESSES) LOG("copy %lx %lx %lx %zx\n", stream, (word)to, (word)from, size);
    return memmove(to, from, size), LOG("launch %lx\n", stream), 0;
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
int cudaStreamSynchronize(word stream) { return forbidden(part_of_capture(stream) >= 0); }
int cudaStreamQuery(word stream) { return (void)stream, forbidden(0); }
NOTHING(cudaStreamDestroy)
ANSWER_LAST(cudaStreamGetPriority, int, 0)
MAKE(cudaEventCreateWithFlags)
int cudaEventQuery(word event) { return (void)event, forbidden(0); }
int cudaEventSynchronize(word event) { return (void)event, forbidden(1); }
NOTHING(cudaEventDestroy)
ANSWER(cudaEventElapsedTime, float, 0.01f)
int cudaDeviceGetStreamPriorityRange(int *least, int *most) { return *least = 0, *most = -5, 0; }
static int mark_of(word event)
{
    for (int i = marked_count; capture && i--;)
        if (marked[i].event == event) return i;
    return -1;
}
int cudaEventRecordWithFlags(word event, word stream)
{
    int part = part_of_capture(stream), mark = mark_of(event);
    if (part < 0 && mark < 0) return LOG("record %lx %lx\n", stream, event), 0;
    if (part < 0) return marked[mark].event = 0, 0;
    marked[marked_count].event = event, marked[marked_count++].stream = stream;
    return LOG("record %lx %lx\n", stream, event), 0;
}
int cudaEventRecord(word event, word stream) { return cudaEventRecordWithFlags(event, stream); }
/* A stream that waits for an event of the capture takes part; one that takes part may wait for no
 * others. What the origin has waited for is joined. */
int cudaStreamWaitEvent(word stream, word event)
{
    int mark = mark_of(event), part = part_of_capture(stream);
    LOG("wait %lx %lx\n", stream, event);
    if (mark < 0) return part < 0 ? 0 : (capture_broken = 1, fails(ISOLATION));
    if (part < 0) streams[part = streams_count++] = stream;
    if (stream == origin)
        unjoined[part_of_capture(marked[mark].stream)] = 0;
    else
        unjoined[part] = 1;
    return 0;
}
int cudaLaunchKernel(word kernel, dim3 grid, dim3 block, void **arguments, size_t shared,
                     word stream)
{
    return (void)kernel, (void)grid, (void)block, (void)arguments, (void)shared, LAUNCHED(stream),
           0;
}
int cudaLaunchKernelExC(const cudaLaunchConfig_t *how) { return LAUNCHED((word)how->stream), 0; }
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
    int name(void) { return LAUNCHED(blas_stream), 0; }
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
    return LAUNCHED(stream), 0;
}
