/* A complete Tarn device for OpenCL 1.2 and later, outside the library, from tarn.h alone.
 *
 * What an SDK author does, in this order (tarn/device.h has the contract of each function):
 *
 *  1. State. Whatever the functions need, in one struct: it comes back as `self`. Two sessions may
 *     use it from two threads, so guard what both change (here: arguments of kernels, events).
 *  2. Memory. Say the alignment that an allocation really has and the largest one possible; the
 *     session refuses plans that need more and says so. If kernels can take addresses inside an
 *     allocation (here: shared virtual memory), that is all. If they take handles (cl_mem), give
 *     region_create too. Its offsets are multiples of the plan's alignment, except inside
 *     contiguous groups, where they are any byte: round down and remember the shift.
 *     Host memory for fast copies and memory spaces come easily, too (opencl_memory.c has it all).
 *  3. Copies and fill. They block until their bytes are there for every queue, and these are not in
 *     use by any. Look up what "blocking" means to your API: a write of OpenCL may return as soon
 *     as it has read the host's bytes, and reach the buffer after a kernel that was enqueued
 *     behind it on another queue (Intel's runtime for processors does so).
 *  4. Queues. One in-order queue per stream. Never block in a call.
 *  5. Events. An event is a place that holds the latest record; a wait must keep what it found
 *     there, also when the event is recorded again before the wait is over. OpenCL's events are
 *     made per command, so a record makes a marker and puts it there, and a wait enqueues a barrier
 *     behind the marker that is there now. Flush after a record: others wait for it.
 *  6. Errors. A text and a class for every code. Say "poisoned" only when nothing works any more.
 *  7. The optional parts that come easily: closures (native kernels), stamps (markers with times),
 *     checking kernels (opencl_patterns.c; with them every byte of a run can be proved right).
 *     Leave out what the hardware at hand lacks: the table is made per device. Captures are left
 *     out: OpenCL's command buffers do not take what kernels enqueue on a queue.
 *  8. Proof: run the conformance suite (conformance.c), then checked execution of
 * real graphs, as main.c does.
 *
 * Concurrent use of overlapping sub-buffers is undefined in OpenCL. Storages at work at the same
 * time share no byte, and the sub-buffers of those outside groups do not overlap then; members of
 * one group may, by less than CL_DEVICE_MEM_BASE_ADDR_ALIGN, which is harmless where sub-buffers
 * are addresses inside the buffer, as in all implementations known to us. */
#include "opencl_device.h"

#include <stdlib.h>
#include <string.h>

#include "opencl_memory.h"
#include "opencl_patterns.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

struct event {
    cl_event latest; /* NULL: never recorded */
};

/* ---- Queues ---- */

static int queue_create(void *self, const struct tarn_queue_info *info, void **queue)
{
    struct opencl_device *device = self;
    (void)info; /* priorities are an extension of OpenCL */
    cl_int code;
    *queue = clCreateCommandQueue(device->context, device->id, CL_QUEUE_PROFILING_ENABLE, &code);
    return code;
}

static void queue_destroy(void *self, void *queue)
{
    (void)self;
    clReleaseCommandQueue(queue);
}

struct closure {
    void (*function)(void *argument);
    void *argument;
};

static void CL_CALLBACK call_closure(void *argument)
{
    struct closure *closure = argument;
    closure->function(closure->argument);
}

static int launch(void *self, void *queue, void (*function)(void *argument), void *argument)
{
    struct closure closure = {function, argument}; /* copied by the call */
    (void)self;
    return clEnqueueNativeKernel(queue, call_closure, &closure, sizeof closure, 0, NULL, NULL, 0,
                                 NULL, NULL);
}

/* ---- Events and stamps ---- */

static int event_create(void *self, void **event)
{
    (void)self;
    *event = calloc(1, sizeof(struct event));
    return *event ? 0 : CL_OUT_OF_HOST_MEMORY;
}

static void event_destroy(void *self, void *argument)
{
    struct event *event = argument;
    (void)self;
    if (event->latest) clReleaseEvent(event->latest);
    free(event);
}

static int event_record(void *self, void *argument, void *queue)
{
    struct opencl_device *device = self;
    struct event *event = argument;
    cl_event marker;
    int code = clEnqueueMarkerWithWaitList(queue, 0, NULL, &marker);
    if (code) return code;
    code = clFlush(queue);
    if (!code) {
        pthread_mutex_lock(&device->lock);
        cl_event earlier = event->latest;
        event->latest = marker;
        pthread_mutex_unlock(&device->lock);
        marker = earlier; /* lives on while commands wait for it */
    }
    if (marker) clReleaseEvent(marker);
    return code;
}

static int event_wait(void *self, void *argument, void *queue)
{
    const struct event *event = argument;
    (void)self;
    if (!event->latest) return 0;
    return clEnqueueBarrierWithWaitList(queue, 1, &event->latest, NULL);
}

static int event_query(void *self, void *argument, bool *done)
{
    struct opencl_device *device = self;
    const struct event *event = argument;
    cl_int status = CL_COMPLETE, code = 0; /* a status below 0 is what went wrong */
    pthread_mutex_lock(&device->lock);
    if (event->latest)
        code = clGetEventInfo(event->latest, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status,
                              &status, NULL);
    pthread_mutex_unlock(&device->lock);
    *done = status == CL_COMPLETE;
    if (code) return code;
    return status < 0 ? status : 0;
}

static int stamp_elapsed(void *self, void *from, void *to, double *elapsed_ns)
{
    (void)self;
    cl_ulong begin, end;
    int code = clGetEventProfilingInfo(((struct event *)from)->latest, CL_PROFILING_COMMAND_END,
                                       sizeof begin, &begin, NULL);
    if (!code)
        code = clGetEventProfilingInfo(((struct event *)to)->latest, CL_PROFILING_COMMAND_END,
                                       sizeof end, &end, NULL);
    if (!code) *elapsed_ns = (double)(cl_long)(end - begin);
    return code;
}

/* ---- Errors ---- */

static const char *error_text(void *self, int code)
{
    static const struct {
        int code;
        const char *text;
    } texts[] = {
        {-1001, "no OpenCL platform is installed"},
        {CL_DEVICE_NOT_FOUND, "no such device"},
        {CL_DEVICE_NOT_AVAILABLE, "the device is not available any more"},
        {CL_MEM_OBJECT_ALLOCATION_FAILURE, "the device has no memory for it"},
        {CL_OUT_OF_RESOURCES, "the device is out of resources"},
        {CL_OUT_OF_HOST_MEMORY, "no memory on the host"},
        {CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST, "what it waited for has failed"},
        {CL_INVALID_BUFFER_SIZE, "the allocation is larger than the device's limit"},
        {CL_INVALID_KERNEL_ARGS, "a kernel's argument is not set"},
    };
    (void)self;
    for (size_t i = 0; i < COUNT(texts); i++) {
        if (texts[i].code == code) return texts[i].text;
    }
    return "see the OpenCL specification for this code";
}

static enum tarn_error_class error_class(void *self, int code)
{
    (void)self;
    switch (code) {
    case CL_MEM_OBJECT_ALLOCATION_FAILURE:
    case CL_OUT_OF_RESOURCES:
    case CL_OUT_OF_HOST_MEMORY:
    case CL_INVALID_BUFFER_SIZE: return TARN_ERROR_OUT_OF_MEMORY;
    case CL_DEVICE_NOT_AVAILABLE:
    case CL_INVALID_CONTEXT:
    case CL_INVALID_COMMAND_QUEUE: return TARN_ERROR_POISONED;
    default: return TARN_ERROR_RETRYABLE;
    }
}

/* ---- Opening and closing ---- */

static const struct tarn_device_table whole_table = {
    .struct_size = sizeof(struct tarn_device_table),
    .abi_version = TARN_DEVICE_ABI,
    .name = "opencl",
    .memory_limits = opencl_memory_limits,
    .memory_create = opencl_memory_create,
    .memory_destroy = opencl_memory_destroy,
    .region_create = opencl_region_create,
    .region_destroy = opencl_region_destroy,
    .copy_in = opencl_copy_in,
    .copy_out = opencl_copy_out,
    .fill = opencl_fill,
    .host_memory_create = opencl_host_memory_create,
    .host_memory_destroy = opencl_host_memory_destroy,
    .queue_create = queue_create,
    .queue_destroy = queue_destroy,
    .event_create = event_create,
    .event_destroy = event_destroy,
    .event_record = event_record,
    .event_wait = event_wait,
    .event_query = event_query,
    .launch = launch,
    .stamp_create = event_create,
    .stamp_destroy = event_destroy,
    .stamp_record = event_record,
    .stamp_elapsed = stamp_elapsed,
    .pattern_fill = opencl_pattern_fill,
    .pattern_compare = opencl_pattern_compare,
    .error_text = error_text,
    .error_class = error_class,
    .space_limits = opencl_space_limits,
    .space_create = opencl_space_create,
    .space_destroy = opencl_space_destroy,
    .copy_enqueue = opencl_copy_enqueue,
};

static cl_int find_device(uint32_t index, cl_device_id *id)
{
    cl_platform_id platforms[16];
    cl_device_id devices[64];
    cl_uint platforms_count = 0;
    cl_int code = clGetPlatformIDs(COUNT(platforms), platforms, &platforms_count);
    for (cl_uint p = 0; p < platforms_count && p < COUNT(platforms) && !code; p++) {
        cl_uint count = 0; /* stays so when a platform has no devices */
        clGetDeviceIDs(platforms[p], CL_DEVICE_TYPE_ALL, COUNT(devices), devices, &count);
        if (index < count && index < COUNT(devices)) return *id = devices[index], 0;
        index -= count;
    }
    return code ? code : CL_DEVICE_NOT_FOUND;
}

/* 0 where an older device does not know the question. */
static cl_ulong ask(const struct opencl_device *device, cl_device_info what)
{
    cl_ulong answer = 0; /* as wide as the widest; narrower ones fill the low end */
    return clGetDeviceInfo(device->id, what, sizeof answer, &answer, NULL) ? 0 : answer;
}

static void leave_out_what_lacks(struct opencl_device *device)
{
    struct tarn_device_table *table = &device->table;
    cl_ulong does = ask(device, CL_DEVICE_EXECUTION_CAPABILITIES);
    if (device->is_svm) table->region_create = NULL, table->region_destroy = NULL;
    if (!device->compare) table->pattern_fill = NULL, table->pattern_compare = NULL;
    if (!(does & CL_EXEC_NATIVE_KERNEL)) table->launch = NULL;
}

cl_int opencl_device_open(struct opencl_device *device, uint32_t index, bool with_buffers)
{
    cl_int code;
    memset(device, 0, sizeof *device);
    device->table = whole_table;
    pthread_mutex_init(&device->lock, NULL);
    code = find_device(index, &device->id);
    if (code) return code;
    device->context = clCreateContext(NULL, 1, &device->id, NULL, NULL, &code);
    if (!code) device->copies = clCreateCommandQueue(device->context, device->id, 0, &code);
    if (!code) code = opencl_patterns_create(device);
    cl_ulong svm = with_buffers ? 0 : ask(device, CL_DEVICE_SVM_CAPABILITIES);
    device->is_svm = svm & CL_DEVICE_SVM_COARSE_GRAIN_BUFFER;
    device->is_fine_grained = device->is_svm && (svm & CL_DEVICE_SVM_FINE_GRAIN_BUFFER);
    device->alignment = ask(device, CL_DEVICE_MEM_BASE_ADDR_ALIGN) / 8;
    device->allocation_max = ask(device, CL_DEVICE_MAX_MEM_ALLOC_SIZE);
    leave_out_what_lacks(device);
    return code;
}

void opencl_device_close(struct opencl_device *device)
{
    opencl_patterns_destroy(device);
    if (device->copies) clReleaseCommandQueue(device->copies);
    if (device->context) clReleaseContext(device->context);
    pthread_mutex_destroy(&device->lock);
}

struct tarn_device opencl_device_table(struct opencl_device *device)
{
    return (struct tarn_device){&device->table, device};
}
