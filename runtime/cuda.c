/* The CUDA device: the device table on the CUDA runtime API, plain C. Handles are CUDA's own, so a
 * table call is one runtime call and nothing is allocated or looked up per op.
 *
 * Streams do not synchronise with the legacy stream, and Tarn uses none itself: copies have a
 * stream of their own. A capture is thread-local: a kernel callback that allocates or synchronises
 * in its own capture is an error, while other threads (another session, a watchdog's queries) go on
 * undisturbed; the relaxed mode would not see the first, the global mode would forbid the second.
 * Source: CUDA Runtime API 13.0, "Stream Management", "Graph Management"; DESIGN.md, section 5. */
#include <stdlib.h>
#include <sys/mman.h>

#include "cuda_device.h"
#include "topology.h"

#define ALIGNMENT 512u /* what texture addresses need, which cudaMalloc is made for */

tarn_cuda_code tarn_cuda_enter(struct tarn_cuda *cuda)
{
    return cuda->api.SetDevice(cuda->ordinal);
}

/* ---- Memory ---- */

static int memory_limits(void *self, struct tarn_memory_limits *limits)
{
    struct tarn_cuda *cuda = self;
    size_t available = 0, total = 0;
    tarn_cuda_code code = tarn_cuda_enter(cuda);
    if (!code) code = cuda->api.MemGetInfo(&available, &total);
    *limits = (struct tarn_memory_limits){.alignment = ALIGNMENT,
                                          .allocation_max = UINT64_MAX,
                                          .available = available,
                                          .on_host = cuda->on_host};
    return tarn_cuda_leave(cuda, code);
}

static tarn_cuda_code allocate(struct tarn_cuda *cuda, uint64_t size, void **memory)
{
    if (size > SIZE_MAX) return TARN_CUDA_OUT_OF_MEMORY;
    if (!cuda->pool) return cuda->api.Malloc(memory, (size_t)size);
    tarn_cuda_code code =
        cuda->api.MallocFromPoolAsync(memory, (size_t)size, cuda->pool, cuda->copies);
    if (code) return code;
    code = cuda->api.StreamSynchronize(cuda->copies); /* from here on it is every stream's */
    if (code) cuda->api.FreeAsync(*memory, cuda->copies);
    return code;
}

static void give_back(struct tarn_cuda *cuda, void *memory)
{
    if (cuda->pool)
        cuda->api.FreeAsync(memory, cuda->copies);
    else
        cuda->api.Free(memory);
}

static int memory_create(void *self, uint64_t size, void **memory)
{
    struct tarn_cuda *cuda = self;
    tarn_cuda_code code = tarn_cuda_enter(cuda);
    if (!code) code = allocate(cuda, size, memory);
    if (!code && (uintptr_t)*memory % ALIGNMENT != 0) { /* not seen yet */
        give_back(cuda, *memory);
        code = TARN_CUDA_NOT_SUPPORTED;
    }
    if (!code) tarn_nvtx_heap_create(cuda->nvtx, *memory, size);
    return tarn_cuda_leave(cuda, code);
}

static void memory_destroy(void *self, void *memory, uint64_t size)
{
    struct tarn_cuda *cuda = self;
    (void)size;
    tarn_nvtx_heap_destroy(cuda->nvtx, memory);
    tarn_cuda_enter(cuda);
    give_back(cuda, memory);
    tarn_cuda_leave(cuda, 0);
}

/* Until what the copy stream was given is done. Asks twice where that fails: after this, the host's
 * bytes are the caller's again. */
static int finish_copy(struct tarn_cuda *cuda, tarn_cuda_code code)
{
    if (!code) code = cuda->api.StreamSynchronize(cuda->copies);
    if (code) cuda->api.StreamSynchronize(cuda->copies);
    return tarn_cuda_leave(cuda, code);
}

static int copy_in(void *self, void *device, const void *host, uint64_t size)
{
    struct tarn_cuda *cuda = self;
    return finish_copy(
        cuda, cuda->api.MemcpyAsync(device, host, (size_t)size, TARN_CUDA_COPY_IN, cuda->copies));
}

static int copy_out(void *self, void *host, const void *device, uint64_t size)
{
    struct tarn_cuda *cuda = self;
    return finish_copy(
        cuda, cuda->api.MemcpyAsync(host, device, (size_t)size, TARN_CUDA_COPY_OUT, cuda->copies));
}

static int fill(void *self, void *device, unsigned char byte, uint64_t size)
{
    struct tarn_cuda *cuda = self;
    return finish_copy(cuda, cuda->api.MemsetAsync(device, byte, (size_t)size, cuda->copies));
}

/* Pages from the NUMA node beside the GPU, then pinned. */
static int host_memory_create(void *self, uint64_t size, void **memory)
{
    struct tarn_cuda *cuda = self;
    void *mapping = size > SIZE_MAX ? MAP_FAILED
                                    : mmap(NULL, (size_t)size, PROT_READ | PROT_WRITE,
                                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapping == MAP_FAILED) return TARN_CUDA_OUT_OF_MEMORY;
    tarn_topology_bind_near_pci(cuda->pci_bus_id, mapping, size);
    tarn_cuda_code code = tarn_cuda_enter(cuda);
    if (!code) code = cuda->api.HostRegister(mapping, (size_t)size, TARN_CUDA_HOST_PORTABLE);
    if (code)
        munmap(mapping, (size_t)size);
    else
        *memory = mapping;
    return tarn_cuda_leave(cuda, code);
}

static void host_memory_destroy(void *self, void *memory, uint64_t size)
{
    struct tarn_cuda *cuda = self;
    cuda->api.HostUnregister(memory);
    munmap(memory, (size_t)size);
    tarn_cuda_leave(cuda, 0);
}

/* ---- Queues and events ---- */

static int queue_create(void *self, const struct tarn_queue_info *info, void **queue)
{
    struct tarn_cuda *cuda = self;
    tarn_cuda_stream stream = NULL;
    tarn_cuda_code code = tarn_cuda_enter(cuda);
    if (!code)
        code = cuda->api.StreamCreateWithPriority(&stream, TARN_CUDA_STREAM_NON_BLOCKING,
                                                  cuda->priorities[info->urgent]);
    *queue = stream;
    return tarn_cuda_leave(cuda, code);
}

static void queue_destroy(void *self, void *queue)
{
    struct tarn_cuda *cuda = self;
    cuda->api.StreamDestroy(queue);
    tarn_cuda_leave(cuda, 0);
}

static int create_event(struct tarn_cuda *cuda, unsigned flags, void **event)
{
    tarn_cuda_event made = NULL;
    tarn_cuda_code code = tarn_cuda_enter(cuda);
    if (!code) code = cuda->api.EventCreateWithFlags(&made, flags);
    *event = made;
    return tarn_cuda_leave(cuda, code);
}

static int event_create(void *self, void **event)
{
    return create_event(self, TARN_CUDA_EVENT_NO_TIMING, event);
}

static void event_destroy(void *self, void *event)
{
    struct tarn_cuda *cuda = self;
    cuda->api.EventDestroy(event);
    tarn_cuda_leave(cuda, 0);
}

static int event_record(void *self, void *event, void *queue)
{
    struct tarn_cuda *cuda = self;
    return tarn_cuda_leave(cuda, cuda->api.EventRecord(event, queue));
}

static int event_wait(void *self, void *event, void *queue)
{
    struct tarn_cuda *cuda = self;
    return tarn_cuda_leave(cuda, cuda->api.StreamWaitEvent(queue, event, 0));
}

static int event_query(void *self, void *event, bool *done)
{
    struct tarn_cuda *cuda = self;
    tarn_cuda_code code = cuda->api.EventQuery(event);
    *done = code == 0;
    if (code != TARN_CUDA_NOT_READY) return tarn_cuda_leave(cuda, code);
    cuda->api.GetLastError(); /* CUDA counts "not ready" as an error */
    return 0;
}

static int launch(void *self, void *queue, void (*function)(void *argument), void *argument)
{
    struct tarn_cuda *cuda = self;
    return tarn_cuda_leave(cuda, cuda->api.LaunchHostFunc(queue, function, argument));
}

/* ---- Capture and replay ---- */

/* The contract says that capture_end fails after any failure in between, CUDA does not: so what
 * fails on the capturing thread is noted here. */
struct tarn_cuda_capture {
    struct tarn_cuda_capture *next;
    void *queue;
    pthread_t thread;
    tarn_cuda_code failure;
};

int tarn_cuda_leave(struct tarn_cuda *cuda, tarn_cuda_code code)
{
    if (!code) return 0;
    cuda->api.GetLastError();
    pthread_mutex_lock(&cuda->lock);
    for (struct tarn_cuda_capture *capture = cuda->captures; capture; capture = capture->next) {
        if (pthread_equal(capture->thread, pthread_self()) && !capture->failure)
            capture->failure = code;
    }
    pthread_mutex_unlock(&cuda->lock);
    return (int)code;
}

static int capture_begin(void *self, void *queue)
{
    struct tarn_cuda *cuda = self;
    struct tarn_cuda_capture *capture = calloc(1, sizeof *capture);
    if (!capture) return TARN_CUDA_OUT_OF_MEMORY;
    tarn_cuda_code code = cuda->api.StreamBeginCapture(queue, TARN_CUDA_CAPTURE_THREAD_LOCAL);
    if (code) {
        free(capture);
        return tarn_cuda_leave(cuda, code);
    }
    capture->queue = queue;
    capture->thread = pthread_self();
    pthread_mutex_lock(&cuda->lock);
    capture->next = cuda->captures;
    cuda->captures = capture;
    pthread_mutex_unlock(&cuda->lock);
    return 0;
}

/* Strikes the queue's capture off the list; returns what failed in it. */
static tarn_cuda_code forget_capture(struct tarn_cuda *cuda, void *queue)
{
    pthread_mutex_lock(&cuda->lock);
    struct tarn_cuda_capture **link = &cuda->captures, *found;
    while (*link && (*link)->queue != queue) link = &(*link)->next;
    found = *link;
    if (found) *link = found->next;
    pthread_mutex_unlock(&cuda->lock);
    tarn_cuda_code failure = found ? found->failure : 0;
    free(found);
    return failure;
}

/* Upload: otherwise the first launch would pay for it. */
static tarn_cuda_code instantiate(struct tarn_cuda *cuda, tarn_cuda_graph captured, void *queue,
                                  tarn_cuda_exec *exec)
{
    tarn_cuda_code code = cuda->api.GraphInstantiate(exec, captured, 0);
    if (code) return code;
    code = cuda->api.GraphUpload(*exec, queue);
    if (code) cuda->api.GraphExecDestroy(*exec);
    return code;
}

static int capture_end(void *self, void *queue, void **graph)
{
    struct tarn_cuda *cuda = self;
    tarn_cuda_graph captured = NULL;
    tarn_cuda_exec exec = NULL;
    tarn_cuda_code ended = cuda->api.StreamEndCapture(queue, &captured);
    tarn_cuda_code code = forget_capture(cuda, queue);
    if (!code) code = ended;
    if (!code) code = instantiate(cuda, captured, queue, &exec);
    if (captured) cuda->api.GraphDestroy(captured);
    if (!code) *graph = exec;
    return tarn_cuda_leave(cuda, code);
}

static int graph_launch(void *self, void *graph, void *queue)
{
    struct tarn_cuda *cuda = self;
    return tarn_cuda_leave(cuda, cuda->api.GraphLaunch(graph, queue));
}

static void graph_destroy(void *self, void *graph)
{
    struct tarn_cuda *cuda = self;
    cuda->api.GraphExecDestroy(graph);
    tarn_cuda_leave(cuda, 0);
}

/* ---- Time stamps ---- */

static int stamp_create(void *self, void **stamp)
{
    return create_event(self, TARN_CUDA_EVENT_TIMING, stamp);
}

/* A plain record in a capture is only a dependency; an external one becomes a node that takes the
 * time at every replay. */
static int stamp_record(void *self, void *stamp, void *queue)
{
    struct tarn_cuda *cuda = self;
    unsigned status = TARN_CUDA_CAPTURE_NONE;
    tarn_cuda_code code = cuda->api.StreamIsCapturing(queue, &status);
    if (!code)
        code = cuda->api.EventRecordWithFlags(
            stamp, queue,
            status == TARN_CUDA_CAPTURE_NONE ? TARN_CUDA_RECORD_PLAIN : TARN_CUDA_RECORD_EXTERNAL);
    return tarn_cuda_leave(cuda, code);
}

static int stamp_elapsed(void *self, void *from, void *to, double *elapsed_ns)
{
    struct tarn_cuda *cuda = self;
    float ms = 0;
    tarn_cuda_code code = cuda->api.EventElapsedTime(&ms, from, to);
    *elapsed_ns = (double)ms * 1e6;
    return tarn_cuda_leave(cuda, code);
}

/* ---- Names ---- */

static void range_begin(void *self, const char *name)
{
    tarn_nvtx_range_begin(((struct tarn_cuda *)self)->nvtx, name);
}

static void range_end(void *self) { tarn_nvtx_range_end(((struct tarn_cuda *)self)->nvtx); }

static void memory_name(void *self, void *memory, uint64_t offset, uint64_t size, const char *name)
{
    tarn_nvtx_region(((struct tarn_cuda *)self)->nvtx, memory, offset, size, name);
}

/* ---- Checking kernels ---- */

#ifdef TARN_HAVE_CUDA_KERNELS
static int pattern_fill(void *self, void *queue, void *bytes, uint64_t size, const void *seeds,
                        uint64_t seed)
{
    struct tarn_cuda *cuda = self;
    return tarn_cuda_leave(cuda, tarn_cuda_pattern_fill(&cuda->check, &cuda->api, queue, bytes,
                                                        size, (const uint64_t *)seeds + seed));
}

static int pattern_compare(void *self, void *queue, const void *bytes, uint64_t size,
                           const void *seeds, uint64_t seed, void *wrongs, uint64_t wrong)
{
    struct tarn_cuda *cuda = self;
    return tarn_cuda_leave(cuda, tarn_cuda_pattern_compare(&cuda->check, &cuda->api, queue, bytes,
                                                           size, (const uint64_t *)seeds + seed,
                                                           (uint64_t *)wrongs + wrong));
}
#endif

int tarn_device_cuda_spin(struct tarn_device device, void *queue, uint64_t duration_ns)
{
    struct tarn_cuda *cuda = device.self;
    if (!cuda) return 1; /* cudaErrorInvalidValue */
    return tarn_cuda_leave(cuda, tarn_cuda_spin(&cuda->check, &cuda->api, queue, duration_ns));
}

/* ---- Errors ---- */

static const char *error_text(void *self, int code)
{
    return ((struct tarn_cuda *)self)->api.GetErrorString((tarn_cuda_code)code);
}

/* "Poisoned" are the errors of which CUDA says that the process must be relaunched, and those of a
 * context that is gone. */
static enum tarn_error_class error_class(void *self, int code)
{
    (void)self;
    switch (code) {
    case TARN_CUDA_OUT_OF_MEMORY: return TARN_ERROR_OUT_OF_MEMORY;
    case TARN_CUDA_NOT_INITIALIZED:
    case TARN_CUDA_UNLOADING:
    case TARN_CUDA_ECC_UNCORRECTABLE:
    case TARN_CUDA_NVLINK_UNCORRECTABLE:
    case TARN_CUDA_CONTAINED:
    case TARN_CUDA_ILLEGAL_ADDRESS:
    case TARN_CUDA_LAUNCH_TIMEOUT:
    case TARN_CUDA_CONTEXT_IS_DESTROYED:
    case TARN_CUDA_ASSERT:
    case TARN_CUDA_HARDWARE_STACK_ERROR:
    case TARN_CUDA_ILLEGAL_INSTRUCTION:
    case TARN_CUDA_MISALIGNED_ADDRESS:
    case TARN_CUDA_INVALID_ADDRESS_SPACE:
    case TARN_CUDA_INVALID_PC:
    case TARN_CUDA_LAUNCH_FAILURE:
    case TARN_CUDA_TENSOR_MEMORY_LEAK:
    case TARN_CUDA_MPS_CLIENT_TERMINATED:
    case TARN_CUDA_EXTERNAL_DEVICE: return TARN_ERROR_POISONED;
    default: return TARN_ERROR_RETRYABLE;
    }
}

const struct tarn_device_table tarn_cuda_table = {
    .struct_size = sizeof(struct tarn_device_table),
    .abi_version = TARN_DEVICE_ABI,
    .name = "cuda",
    .kernels_are_closures = false,
    .memory_limits = memory_limits,
    .memory_create = memory_create,
    .memory_destroy = memory_destroy,
    .copy_in = copy_in,
    .copy_out = copy_out,
    .fill = fill,
    .host_memory_create = host_memory_create,
    .host_memory_destroy = host_memory_destroy,
    .queue_create = queue_create,
    .queue_destroy = queue_destroy,
    .event_create = event_create,
    .event_destroy = event_destroy,
    .event_record = event_record,
    .event_wait = event_wait,
    .event_query = event_query,
    .launch = launch,
    .capture_begin = capture_begin,
    .capture_end = capture_end,
    .graph_launch = graph_launch,
    .graph_destroy = graph_destroy,
    .stamp_create = stamp_create,
    .stamp_destroy = event_destroy,
    .stamp_record = stamp_record,
    .stamp_elapsed = stamp_elapsed,
    .range_begin = range_begin,
    .range_end = range_end,
    .memory_name = memory_name,
#ifdef TARN_HAVE_CUDA_KERNELS
    .pattern_fill = pattern_fill,
    .pattern_compare = pattern_compare,
#endif
    .error_text = error_text,
    .error_class = error_class,
};
