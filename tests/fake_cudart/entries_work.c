/* The entry points around work: streams, events, captured graphs, kernels. */
#include <string.h>

#include "fake.h"

/* ---- Streams ---- */

FAKE_DEFINE(StreamCreateWithPriority, (tarn_cuda_stream * stream, unsigned flags, int priority))
{
    unsigned code = fake_enter(ENTRY_StreamCreateWithPriority, true);
    if (!code && flags != TARN_CUDA_STREAM_NON_BLOCKING) {
        fake_violation("a stream that synchronises with the legacy stream");
        code = FAKE_INVALID_VALUE;
    }
    if (!code) {
        struct stream *made = fake_object_create(STREAM, sizeof *made);
        made->end = &made->first;
        made->priority = priority > 0 ? 0 : priority < -5 ? -5 : priority;
        made->channel = (uint32_t)made->object.device * fake.options.channels +
                        fake.streams++ % fake.options.channels;
        *stream = (tarn_cuda_stream)(void *)made;
    }
    return fake_leave(code);
}

FAKE_DEFINE(StreamDestroy, (tarn_cuda_stream stream))
{
    bool real;
    unsigned code = fake_enter_end(ENTRY_StreamDestroy, true, &real);
    if (real && fake_is(stream, STREAM, "cudaStreamDestroy")) {
        struct stream *dead = fake_stream(stream);
        if (dead->first && !fake.sticky) fake_violation("a stream is destroyed with work left");
        if (dead->capture) fake_violation("a stream is destroyed in a capture");
        fake_object_end(&dead->object);
    }
    return fake_leave(code);
}

FAKE_DEFINE(StreamSynchronize, (tarn_cuda_stream stream))
{
    unsigned code = fake_enter(ENTRY_StreamSynchronize, false);
    bool waits = !code || code == fake.sticky; /* when the device has stopped, for its last piece */
    if (waits && !fake_is(stream, STREAM, "cudaStreamSynchronize")) {
        waits = false;
        code = FAKE_INVALID_HANDLE;
    }
    if (waits) {
        fake_wait_stream(fake_stream(stream));
        code = fake.sticky;
    }
    return fake_leave(code);
}

FAKE_DEFINE(StreamWaitEvent, (tarn_cuda_stream stream, tarn_cuda_event event, unsigned flags))
{
    unsigned code = fake_enter(ENTRY_StreamWaitEvent, true);
    (void)flags;
    if (!code && (!fake_is(stream, STREAM, "cudaStreamWaitEvent") ||
                  !fake_is(event, EVENT, "cudaStreamWaitEvent")))
        code = FAKE_INVALID_HANDLE;
    return fake_leave(code ? code : fake_wait(fake_stream(stream), fake_event(event)));
}

FAKE_DEFINE(LaunchHostFunc,
            (tarn_cuda_stream stream, void (*function)(void *argument), void *argument))
{
    unsigned code = fake_enter(ENTRY_LaunchHostFunc, true);
    if (!code && (!fake_is(stream, STREAM, "cudaLaunchHostFunc") ||
                  !fake_is_current(fake_stream(stream), "cudaLaunchHostFunc")))
        code = FAKE_INVALID_HANDLE;
    const struct call call = {.function = function, .argument = argument, .of_host = true};
    return fake_leave(code ? code : fake_call(fake_stream(stream), &call));
}

/* ---- Events ---- */

FAKE_DEFINE(EventCreateWithFlags, (tarn_cuda_event * event, unsigned flags))
{
    unsigned code = fake_enter(ENTRY_EventCreateWithFlags, true);
    if (!code) {
        struct event *made = fake_object_create(EVENT, sizeof *made);
        made->timed = !(flags & TARN_CUDA_EVENT_NO_TIMING);
        *event = (tarn_cuda_event)(void *)made;
    }
    return fake_leave(code);
}

FAKE_DEFINE(EventDestroy, (tarn_cuda_event event))
{
    bool real;
    unsigned code = fake_enter_end(ENTRY_EventDestroy, true, &real);
    if (real && fake_is(event, EVENT, "cudaEventDestroy")) {
        if (fake_event(event)->pending && !fake.sticky)
            fake_violation("an event is destroyed before its record has run");
        fake_object_end(&fake_event(event)->object);
    }
    return fake_leave(code);
}

static unsigned record(enum fake_entry entry, tarn_cuda_event event, tarn_cuda_stream stream,
                       unsigned flags)
{
    unsigned code = fake_enter(entry, true);
    if (!code &&
        (!fake_is(stream, STREAM, "cudaEventRecord") || !fake_is(event, EVENT, "cudaEventRecord")))
        code = FAKE_INVALID_HANDLE;
    return fake_leave(code ? code
                           : fake_record(fake_event(event), fake_stream(stream),
                                         flags == TARN_CUDA_RECORD_EXTERNAL));
}

FAKE_DEFINE(EventRecord, (tarn_cuda_event event, tarn_cuda_stream stream))
{
    return record(ENTRY_EventRecord, event, stream, TARN_CUDA_RECORD_PLAIN);
}

FAKE_DEFINE(EventRecordWithFlags, (tarn_cuda_event event, tarn_cuda_stream stream, unsigned flags))
{
    return record(ENTRY_EventRecordWithFlags, event, stream, flags);
}

static unsigned look(const struct event *event)
{
    if (event->capture) {
        fake_violation("a query of an event whose latest record was captured");
        return FAKE_CAPTURED_EVENT;
    }
    bool is_reached = (!event->latest || event->latest->is_reached) && event->stamping == 0;
    return is_reached ? 0 : TARN_CUDA_NOT_READY;
}

FAKE_DEFINE(EventQuery, (tarn_cuda_event event))
{
    unsigned code = fake_enter(ENTRY_EventQuery, false);
    if (!code)
        code =
            fake_is(event, EVENT, "cudaEventQuery") ? look(fake_event(event)) : FAKE_INVALID_HANDLE;
    return fake_leave(code);
}

static unsigned elapsed(float *ms, const struct event *from, const struct event *to)
{
    if (!from->timed || !to->timed || !from->was_reached || !to->was_reached)
        return FAKE_INVALID_HANDLE;
    if (from->object.device != to->object.device) return FAKE_INVALID_HANDLE;
    if (look(from) || look(to)) return TARN_CUDA_NOT_READY;
    *ms = (float)((double)(int64_t)(to->time_ns - from->time_ns) * 1e-6);
    return 0;
}

FAKE_DEFINE(EventElapsedTime, (float *ms, tarn_cuda_event from, tarn_cuda_event to))
{
    unsigned code = fake_enter(ENTRY_EventElapsedTime, false);
    if (!code)
        code = fake_is(from, EVENT, "cudaEventElapsedTime") &&
                       fake_is(to, EVENT, "cudaEventElapsedTime")
                   ? elapsed(ms, fake_event(from), fake_event(to))
                   : FAKE_INVALID_HANDLE;
    return fake_leave(code);
}

/* ---- Capture and graphs ---- */

FAKE_DEFINE(StreamBeginCapture, (tarn_cuda_stream stream, unsigned mode))
{
    unsigned code = fake_enter(ENTRY_StreamBeginCapture, true);
    if (!code &&
        (!fake_is(stream, STREAM, "cudaStreamBeginCapture") || mode > TARN_CUDA_CAPTURE_RELAXED))
        code = FAKE_INVALID_VALUE;
    return fake_leave(code ? code : fake_capture_begin(fake_stream(stream), mode));
}

/* One that fails for another reason ends the capture all the same. */
FAKE_DEFINE(StreamEndCapture, (tarn_cuda_stream stream, tarn_cuda_graph *graph))
{
    bool real;
    struct graph *made = NULL;
    unsigned code = fake_enter_end(ENTRY_StreamEndCapture, true, &real);
    if (real && fake_is(stream, STREAM, "cudaStreamEndCapture")) {
        unsigned ended = fake_capture_end(fake_stream(stream), &made);
        if (!code) code = ended;
        if (code && made) fake_object_end(&made->object);
    }
    *graph = code ? NULL : (tarn_cuda_graph)(void *)made;
    return fake_leave(code);
}

FAKE_DEFINE(StreamIsCapturing, (tarn_cuda_stream stream, unsigned *status))
{
    unsigned code = fake_enter(ENTRY_StreamIsCapturing, true);
    if (!code && !fake_is(stream, STREAM, "cudaStreamIsCapturing")) code = FAKE_INVALID_HANDLE;
    if (!code) {
        const struct capture *capture = fake_stream(stream)->capture;
        *status = !capture ? 0 : capture->invalid ? 2 : 1;
    }
    return fake_leave(code);
}

FAKE_DEFINE(GraphInstantiate,
            (tarn_cuda_exec * exec, tarn_cuda_graph graph, unsigned long long flags))
{
    unsigned code = fake_enter(ENTRY_GraphInstantiate, true);
    if (!code && !fake_is(graph, GRAPH, "cudaGraphInstantiate")) code = FAKE_INVALID_HANDLE;
    if (!code) {
        struct exec *made = fake_instantiate(fake_graph(graph));
        made->uses_priorities = flags & TARN_CUDA_NODE_PRIORITIES;
        fake.last_flags = flags;
        *exec = (tarn_cuda_exec)(void *)made;
    }
    return fake_leave(code);
}

FAKE_DEFINE(GraphUpload, (tarn_cuda_exec exec, tarn_cuda_stream stream))
{
    unsigned code = fake_enter(ENTRY_GraphUpload, true);
    if (!code &&
        (!fake_is(exec, EXEC, "cudaGraphUpload") || !fake_is(stream, STREAM, "cudaGraphUpload") ||
         !fake_is_current(fake_stream(stream), "cudaGraphUpload")))
        code = FAKE_INVALID_HANDLE;
    return fake_leave(code);
}

static unsigned launch_graph(struct exec *exec, struct stream *stream)
{
    if (stream->capture) {
        fake_violation("a graph is launched in a capture");
        return FAKE_CAPTURE_UNSUPPORTED;
    }
    for (uint32_t v = 0; v < exec->count; v++) {
        if (exec->nodes[v].stamp) exec->nodes[v].stamp->stamping++;
    }
    fake_append(stream, (struct work){.kind = LAUNCH, .exec = exec});
    return 0;
}

FAKE_DEFINE(GraphLaunch, (tarn_cuda_exec exec, tarn_cuda_stream stream))
{
    unsigned code = fake_enter(ENTRY_GraphLaunch, true);
    if (!code &&
        (!fake_is(exec, EXEC, "cudaGraphLaunch") || !fake_is(stream, STREAM, "cudaGraphLaunch") ||
         !fake_is_current(fake_stream(stream), "cudaGraphLaunch")))
        code = FAKE_INVALID_HANDLE;
    return fake_leave(code ? code : launch_graph(fake_exec(exec), fake_stream(stream)));
}

FAKE_DEFINE(GraphDestroy, (tarn_cuda_graph graph))
{
    bool real;
    unsigned code = fake_enter_end(ENTRY_GraphDestroy, true, &real);
    if (real && fake_is(graph, GRAPH, "cudaGraphDestroy"))
        fake_object_end(&fake_graph(graph)->object);
    return fake_leave(code);
}

FAKE_DEFINE(GraphExecDestroy, (tarn_cuda_exec exec))
{
    bool real;
    unsigned code = fake_enter_end(ENTRY_GraphExecDestroy, true, &real);
    if (real && fake_is(exec, EXEC, "cudaGraphExecDestroy")) {
        if (fake_exec(exec)->pending && !fake.sticky)
            fake_violation("a graph is destroyed while it runs");
        fake_object_end(&fake_exec(exec)->object);
    }
    return fake_leave(code);
}

/* ---- Kernels ---- */

FAKE_DEFINE(LibraryLoadData, (tarn_cuda_library * library, const void *code, unsigned *jit_options,
                              void **jit_values, unsigned jit_count, unsigned *options,
                              void **values, unsigned count))
{
    unsigned refused = fake_enter(ENTRY_LibraryLoadData, false);
    (void)code, (void)jit_options, (void)jit_values, (void)jit_count;
    (void)options, (void)values, (void)count;
    if (!refused) *library = (tarn_cuda_library)fake_object_create(LIBRARY, sizeof(struct object));
    return fake_leave(refused);
}

FAKE_DEFINE(LibraryGetKernel,
            (tarn_cuda_kernel * kernel, tarn_cuda_library library, const char *name))
{
    unsigned code = fake_enter(ENTRY_LibraryGetKernel, true);
    if (!code && !fake_is(library, LIBRARY, "cudaLibraryGetKernel")) code = FAKE_INVALID_HANDLE;
    union {
        const struct kernel *found;
        tarn_cuda_kernel handle;
    } either = {code ? NULL : fake_kernel(name)};
    if (!code && !either.found) code = 500; /* not found */
    if (!code) *kernel = either.handle;
    return fake_leave(code);
}

FAKE_DEFINE(LibraryUnload, (tarn_cuda_library library))
{
    bool real;
    unsigned code = fake_enter_end(ENTRY_LibraryUnload, false, &real);
    if (real && fake_is(library, LIBRARY, "cudaLibraryUnload")) {
        fake_wait_device(((struct object *)(void *)library)->device); /* it may, as cudaFree does */
        fake_object_end((struct object *)(void *)library);
    }
    return fake_leave(code);
}

static unsigned launch_kernel(const struct tarn_cuda_launch *launch, const struct kernel *kernel,
                              void **arguments)
{
    struct call call = {.function = kernel->function,
                        .of_kernel = true,
                        .device = fake_stream(launch->stream)->object.device};
    unsigned threads = launch->threads[0] * launch->threads[1] * launch->threads[2];
    if (threads == 0 || threads > 1024 || launch->blocks[0] == 0) {
        fake_violation("a kernel is launched with %u threads per block, %u blocks", threads,
                       launch->blocks[0]);
        return 9; /* invalid configuration */
    }
    size_t used = 0;
    for (uint32_t i = 0; i < 4 && kernel->sizes[i]; i++) {
        memcpy(call.arguments + used, arguments[i], kernel->sizes[i]);
        used += kernel->sizes[i];
    }
    return fake_call(fake_stream(launch->stream), &call);
}

FAKE_DEFINE(LaunchKernelExC,
            (const struct cudaLaunchConfig_st *config, const void *kernel, void **arguments))
{
    unsigned code = fake_enter(ENTRY_LaunchKernelExC, true);
    const struct tarn_cuda_launch *launch = (const struct tarn_cuda_launch *)config;
    if (!code &&
        (!fake_is(launch->stream, STREAM, "cudaLaunchKernelExC") || !fake_is_kernel(kernel) ||
         !fake_is_current(fake_stream(launch->stream), "cudaLaunchKernelExC")))
        code = FAKE_INVALID_HANDLE;
    return fake_leave(code ? code : launch_kernel(launch, kernel, arguments));
}
