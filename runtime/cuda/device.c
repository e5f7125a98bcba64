/* The CUDA device: the device table on the CUDA runtime API, plain C. Handles are CUDA's own, so a
 * table call is one runtime call within a visit (cuda/device.h), and nothing is allocated or looked
 * up per op.
 *
 * Streams do not synchronise with the legacy stream, and Tarn uses none itself: copies have their
 * own stream. A capture is thread-local: a kernel callback that allocates or synchronises in its
 * own capture is an error, while other threads (another session, a watchdog's queries) are not
 * disturbed. The relaxed mode would not detect the first, the global mode would forbid the second.
 * The nodes of a captured graph keep the priorities of the streams that they were captured on.
 * Source: CUDA Runtime API 13.0, "Stream Management", "Graph Management"; docs/how-it-works.md,
 * "Executors". */

#include "device.h"
#include "streams/base/memory.h"

/* Measured on an H200 with CUDA 13: launch 1022 of a stream whose first command waits blocks.
 * Records, waits and host functions never do. Streams share 8 such queues. */
enum { QUEUE_DEPTH = 1000 };

/* ---- Queues and events ---- */

static int queue_create(void *self, const struct tarn_queue_info *info, void **queue)
{
    struct tarn_cuda_visit visit = tarn_cuda_enter(self);
    tarn_cuda_stream stream = NULL;
    if (!visit.code)
        visit.code = visit.api->StreamCreateWithPriority(&stream, TARN_CUDA_STREAM_NON_BLOCKING,
                                                         visit.cuda->priorities[info->urgent]);
    *queue = stream;
    return tarn_cuda_leave(&visit);
}

/* Destroy functions of CUDA are called even after earlier errors. */
static void end(struct tarn_cuda_visit *visit, tarn_cuda_code code)
{
    if (!visit->code) visit->code = code;
    tarn_cuda_leave(visit);
}

static void queue_destroy(void *self, void *queue)
{
    struct tarn_cuda_visit visit = tarn_cuda_enter(self);
    end(&visit, visit.api->StreamDestroy(queue));
}

static int create_event(struct tarn_cuda *cuda, unsigned flags, void **event)
{
    struct tarn_cuda_visit visit = tarn_cuda_enter(cuda);
    tarn_cuda_event made = NULL;
    if (!visit.code) visit.code = visit.api->EventCreateWithFlags(&made, flags);
    *event = made;
    return tarn_cuda_leave(&visit);
}

static int event_create(void *self, void **event)
{
    return create_event(self, TARN_CUDA_EVENT_NO_TIMING, event);
}

static void event_destroy(void *self, void *event)
{
    struct tarn_cuda_visit visit = tarn_cuda_enter(self);
    end(&visit, visit.api->EventDestroy(event));
}

static int event_record(void *self, void *event, void *queue)
{
    struct tarn_cuda_visit visit = tarn_cuda_enter(self);
    if (!visit.code) visit.code = visit.api->EventRecord(event, queue);
    return tarn_cuda_leave(&visit);
}

static int event_wait(void *self, void *event, void *queue)
{
    struct tarn_cuda_visit visit = tarn_cuda_enter(self);
    if (!visit.code) visit.code = visit.api->StreamWaitEvent(queue, event, 0);
    return tarn_cuda_leave(&visit);
}

static int event_query(void *self, void *event, bool *done)
{
    struct tarn_cuda_visit visit = tarn_cuda_enter(self);
    if (!visit.code) visit.code = visit.api->EventQuery(event);
    *done = visit.code == 0;
    if (visit.code == TARN_CUDA_NOT_READY) {
        visit.api->GetLastError(); /* CUDA counts "not ready" as an error */
        visit.code = 0;
    }
    return tarn_cuda_leave(&visit);
}

static int launch(void *self, void *queue, void (*function)(void *argument), void *argument)
{
    struct tarn_cuda_visit visit = tarn_cuda_enter(self);
    if (!visit.code) visit.code = visit.api->LaunchHostFunc(queue, function, argument);
    return tarn_cuda_leave(&visit);
}

static int copy_enqueue(void *self, void *queue, void *to, const void *from, uint64_t size)
{
    struct tarn_cuda_visit visit = tarn_cuda_enter(self);
    if (!visit.code)
        visit.code =
            visit.api->MemcpyAsync(to, from, (size_t)size, TARN_CUDA_COPY_BY_ADDRESSES, queue);
    return tarn_cuda_leave(&visit);
}

/* ---- Capture and replay ---- */

static void note_capture(struct tarn_cuda *cuda, struct tarn_cuda_capture *capture, void *queue)
{
    capture->queue = queue;
    capture->thread = pthread_self();
    pthread_mutex_lock(&cuda->lock);
    capture->next = cuda->captures;
    cuda->captures = capture;
    pthread_mutex_unlock(&cuda->lock);
}

static int capture_begin(void *self, void *queue)
{
    struct tarn_cuda_capture *capture = tarn_take_zeros(1, sizeof *capture);
    if (!capture) return TARN_CUDA_OUT_OF_MEMORY;
    struct tarn_cuda_visit visit = tarn_cuda_enter(self);
    if (!visit.code)
        visit.code = visit.api->StreamBeginCapture(queue, TARN_CUDA_CAPTURE_THREAD_LOCAL);
    if (visit.code)
        tarn_free(capture);
    else
        note_capture(visit.cuda, capture, queue);
    return tarn_cuda_leave(&visit);
}

/* Removes the queue's capture from the list; returns the failure in it. */
static tarn_cuda_code forget_capture(struct tarn_cuda *cuda, void *queue)
{
    pthread_mutex_lock(&cuda->lock);
    struct tarn_cuda_capture **link = &cuda->captures, *found;
    while (*link && (*link)->queue != queue) link = &(*link)->next;
    found = *link;
    if (found) *link = found->next;
    pthread_mutex_unlock(&cuda->lock);
    tarn_cuda_code failure = found ? found->failure : 0;
    tarn_free(found);
    return failure;
}

/* Uploads the graph: otherwise the first launch would take longer. */
static tarn_cuda_code instantiate(const struct tarn_cuda_api *api, tarn_cuda_graph captured,
                                  void *queue, tarn_cuda_exec *exec)
{
    tarn_cuda_code code = api->GraphInstantiate(exec, captured, TARN_CUDA_NODE_PRIORITIES);
    if (code) return code;
    code = api->GraphUpload(*exec, queue);
    if (code) api->GraphExecDestroy(*exec);
    return code;
}

static int capture_end(void *self, void *queue, void **graph)
{
    struct tarn_cuda_visit visit = tarn_cuda_enter(self);
    tarn_cuda_graph captured = NULL;
    tarn_cuda_exec exec = NULL;
    tarn_cuda_code ended = visit.api->StreamEndCapture(queue, &captured);
    tarn_cuda_code failure = forget_capture(visit.cuda, queue);
    if (!visit.code) visit.code = failure ? failure : ended;
    if (!visit.code) visit.code = instantiate(visit.api, captured, queue, &exec);
    if (captured) visit.api->GraphDestroy(captured);
    if (!visit.code) *graph = exec;
    return tarn_cuda_leave(&visit);
}

static int graph_launch(void *self, void *graph, void *queue)
{
    struct tarn_cuda_visit visit = tarn_cuda_enter(self);
    if (!visit.code) visit.code = visit.api->GraphLaunch(graph, queue);
    return tarn_cuda_leave(&visit);
}

static void graph_destroy(void *self, void *graph)
{
    struct tarn_cuda_visit visit = tarn_cuda_enter(self);
    end(&visit, visit.api->GraphExecDestroy(graph));
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
    struct tarn_cuda_visit visit = tarn_cuda_enter(self);
    unsigned status = TARN_CUDA_CAPTURE_NONE;
    if (!visit.code) visit.code = visit.api->StreamIsCapturing(queue, &status);
    if (!visit.code)
        visit.code = visit.api->EventRecordWithFlags(
            stamp, queue,
            status == TARN_CUDA_CAPTURE_NONE ? TARN_CUDA_RECORD_PLAIN : TARN_CUDA_RECORD_EXTERNAL);
    return tarn_cuda_leave(&visit);
}

static int stamp_elapsed(void *self, void *from, void *to, double *elapsed_ns)
{
    struct tarn_cuda_visit visit = tarn_cuda_enter(self);
    float ms = 0;
    if (!visit.code) visit.code = visit.api->EventElapsedTime(&ms, from, to);
    *elapsed_ns = (double)ms * 1e6;
    return tarn_cuda_leave(&visit);
}

/* ---- Kernels of the caller, and names ---- */

static void range_begin(void *self, const char *name)
{
    tarn_cuda_lend(self);
    tarn_nvtx_range_begin(((struct tarn_cuda *)self)->nvtx, name);
}

static void range_end(void *self)
{
    tarn_nvtx_range_end(((struct tarn_cuda *)self)->nvtx);
    tarn_cuda_take_back(self);
}

static void memory_name(void *self, void *memory, uint64_t offset, uint64_t size, const char *name)
{
    tarn_nvtx_region(((struct tarn_cuda *)self)->nvtx, memory, offset, size, name);
}

/* ---- Checking kernels ---- */

#ifdef TARN_HAVE_CUDA_KERNELS
static int pattern_fill(void *self, void *queue, void *bytes, uint64_t size, const void *seeds,
                        uint64_t seed)
{
    struct tarn_cuda_visit visit = tarn_cuda_enter(self);
    if (!visit.code)
        visit.code = tarn_cuda_pattern_fill(&visit.cuda->check, visit.api, queue, bytes, size,
                                            (const uint64_t *)seeds + seed);
    return tarn_cuda_leave(&visit);
}

static int pattern_compare(void *self, void *queue, const void *bytes, uint64_t size,
                           const void *seeds, uint64_t seed, void *wrongs, uint64_t wrong)
{
    struct tarn_cuda_visit visit = tarn_cuda_enter(self);
    if (!visit.code)
        visit.code =
            tarn_cuda_pattern_compare(&visit.cuda->check, visit.api, queue, bytes, size,
                                      (const uint64_t *)seeds + seed, (uint64_t *)wrongs + wrong);
    return tarn_cuda_leave(&visit);
}
#endif

int tarn_device_cuda_spin(struct tarn_device device, void *queue, uint64_t duration_ns)
{
    if (!device.self) return 1; /* cudaErrorInvalidValue */
    struct tarn_cuda_visit visit = tarn_cuda_enter(device.self);
    if (!visit.code) visit.code = tarn_cuda_spin(&visit.cuda->check, visit.api, queue, duration_ns);
    return tarn_cuda_leave(&visit);
}

/* ---- Errors ---- */

static const char *error_text(void *self, int code)
{
    return ((struct tarn_cuda *)self)->api.GetErrorString((tarn_cuda_code)code);
}

/* Errors are "poisoned" if CUDA says that the process must be relaunched, or if the context is
 * destroyed. */
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
    .memory_limits = tarn_cuda_memory_limits,
    .memory_create = tarn_cuda_memory_create,
    .memory_destroy = tarn_cuda_memory_destroy,
    .copy_in = tarn_cuda_copy_in,
    .copy_out = tarn_cuda_copy_out,
    .fill = tarn_cuda_fill,
    .host_memory_create = tarn_cuda_host_memory_create,
    .host_memory_destroy = tarn_cuda_host_memory_destroy,
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
    .space_limits = tarn_cuda_space_limits,
    .space_create = tarn_cuda_space_create,
    .space_destroy = tarn_cuda_space_destroy,
    .queue_depth = QUEUE_DEPTH,
    .copy_enqueue = copy_enqueue,
};
