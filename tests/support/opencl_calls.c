/* Every call of OpenCL that the device makes while sessions run and that creates, enqueues or asks.
 * Sessions on two threads may come through here at the same time. A marker must be flushed before
 * another queue or the host waits for it; PoCL forgives that, others hang, so here it ends the
 * program. A blocking write may return as soon as it has read the host's bytes; PoCL writes at
 * once, here it is done as late as OpenCL allows: when its queue is finished or read from. */
#include "opencl_calls.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>

static atomic_llong alive;
static atomic_ullong calls_left = UINT64_MAX;
static atomic_bool has_failed;

uint64_t opencl_calls_alive(void) { return (uint64_t)atomic_load(&alive); }

bool opencl_calls_fail_after(uint64_t calls)
{
    atomic_store(&calls_left, calls);
    return atomic_exchange(&has_failed, false);
}

static bool fails(void)
{
    unsigned long long left = atomic_load(&calls_left);
    while (left != UINT64_MAX && !atomic_compare_exchange_weak(&calls_left, &left, left - 1))
        continue;
    if (left == 0) atomic_store(&has_failed, true);
    return left == 0; /* after which UINT64_MAX are left */
}

/* A call that returns its code. */
#define WRAP(name, parameters, arguments)                               \
    cl_int __real_##name parameters;                                    \
    cl_int __wrap_##name parameters;                                    \
    cl_int __wrap_##name parameters                                     \
    {                                                                   \
        return fails() ? CL_OUT_OF_RESOURCES : __real_##name arguments; \
    }

/* A call that returns what it creates and puts its code in *code. */
#define WRAP_CREATE(type, name, parameters, arguments)           \
    type __real_##name parameters;                               \
    type __wrap_##name parameters;                               \
    type __wrap_##name parameters                                \
    {                                                            \
        *code = CL_OUT_OF_RESOURCES;                             \
        type object_ = fails() ? NULL : __real_##name arguments; \
        if (object_) atomic_fetch_add(&alive, 1);                \
        return object_;                                          \
    }

#define WRAP_RELEASE(type, name)       \
    cl_int __real_##name(type object); \
    cl_int __wrap_##name(type object); \
    cl_int __wrap_##name(type object)  \
    {                                  \
        atomic_fetch_sub(&alive, 1);   \
        return __real_##name(object);  \
    }

/* ---- What creates and releases ---- */

WRAP_CREATE(cl_mem, clCreateBuffer,
            (cl_context context, cl_mem_flags flags, size_t size, void *host, cl_int *code),
            (context, flags, size, host, code))
WRAP_CREATE(cl_mem, clCreateSubBuffer,
            (cl_mem buffer, cl_mem_flags flags, cl_buffer_create_type type, const void *info,
             cl_int *code),
            (buffer, flags, type, info, code))
WRAP_CREATE(cl_command_queue, clCreateCommandQueue,
            (cl_context context, cl_device_id device, cl_command_queue_properties properties,
             cl_int *code),
            (context, device, properties, code))
WRAP_CREATE(void *, clEnqueueMapBuffer,
            (cl_command_queue queue, cl_mem buffer, cl_bool blocking, cl_map_flags flags,
             size_t offset, size_t size, cl_uint count, const cl_event *list, cl_event *event,
             cl_int *code),
            (queue, buffer, blocking, flags, offset, size, count, list, event, code))
WRAP_RELEASE(cl_mem, clReleaseMemObject)
WRAP_RELEASE(cl_command_queue, clReleaseCommandQueue)
WRAP_RELEASE(cl_event, clReleaseEvent)

/* Unmaps in any case. */
cl_int __real_clEnqueueUnmapMemObject(cl_command_queue, cl_mem, void *, cl_uint, const cl_event *,
                                      cl_event *);
cl_int __wrap_clEnqueueUnmapMemObject(cl_command_queue, cl_mem, void *, cl_uint, const cl_event *,
                                      cl_event *);
cl_int __wrap_clEnqueueUnmapMemObject(cl_command_queue queue, cl_mem buffer, void *bytes,
                                      cl_uint count, const cl_event *list, cl_event *event)
{
    atomic_fetch_sub(&alive, 1);
    cl_int code = __real_clEnqueueUnmapMemObject(queue, buffer, bytes, count, list, event);
    return fails() ? CL_OUT_OF_RESOURCES : code;
}

void *__real_clSVMAlloc(cl_context, cl_svm_mem_flags, size_t, cl_uint);
void *__wrap_clSVMAlloc(cl_context, cl_svm_mem_flags, size_t, cl_uint);
void *__wrap_clSVMAlloc(cl_context context, cl_svm_mem_flags flags, size_t size, cl_uint alignment)
{
    void *memory = fails() ? NULL : __real_clSVMAlloc(context, flags, size, alignment);
    if (memory) atomic_fetch_add(&alive, 1);
    return memory;
}

void __real_clSVMFree(cl_context, void *);
void __wrap_clSVMFree(cl_context, void *);
void __wrap_clSVMFree(cl_context context, void *memory)
{
    if (memory) atomic_fetch_sub(&alive, 1);
    __real_clSVMFree(context, memory);
}

/* ---- Markers ---- */

enum { MARKERS = 64 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct marker {
    cl_event event; /* NULL: free */
    cl_command_queue queue;
} unflushed[MARKERS];

static void note_marker(cl_event event, cl_command_queue queue)
{
    pthread_mutex_lock(&lock);
    for (int i = 0; i < MARKERS; i++) {
        if (unflushed[i].event) continue;
        unflushed[i] = (struct marker){event, queue};
        break;
    }
    pthread_mutex_unlock(&lock);
}

static void forget_markers(cl_command_queue queue)
{
    pthread_mutex_lock(&lock);
    for (int i = 0; i < MARKERS; i++) {
        if (unflushed[i].queue == queue) unflushed[i] = (struct marker){NULL, NULL};
    }
    pthread_mutex_unlock(&lock);
}

static void must_be_flushed(cl_event event)
{
    bool is_flushed = true;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < MARKERS; i++) is_flushed &= unflushed[i].event != event;
    pthread_mutex_unlock(&lock);
    if (is_flushed) return;
    fprintf(stderr, "a marker is waited for that was never flushed\n");
    abort();
}

cl_int __real_clEnqueueMarkerWithWaitList(cl_command_queue, cl_uint, const cl_event *, cl_event *);
cl_int __wrap_clEnqueueMarkerWithWaitList(cl_command_queue, cl_uint, const cl_event *, cl_event *);
cl_int __wrap_clEnqueueMarkerWithWaitList(cl_command_queue queue, cl_uint count,
                                          const cl_event *list, cl_event *event)
{
    if (fails()) return CL_OUT_OF_RESOURCES;
    cl_int code = __real_clEnqueueMarkerWithWaitList(queue, count, list, event);
    if (code) return code;
    atomic_fetch_add(&alive, 1);
    note_marker(*event, queue);
    return 0;
}

cl_int __real_clEnqueueBarrierWithWaitList(cl_command_queue, cl_uint, const cl_event *, cl_event *);
cl_int __wrap_clEnqueueBarrierWithWaitList(cl_command_queue, cl_uint, const cl_event *, cl_event *);
cl_int __wrap_clEnqueueBarrierWithWaitList(cl_command_queue queue, cl_uint count,
                                           const cl_event *list, cl_event *event)
{
    for (cl_uint i = 0; i < count; i++) must_be_flushed(list[i]);
    return fails() ? CL_OUT_OF_RESOURCES
                   : __real_clEnqueueBarrierWithWaitList(queue, count, list, event);
}

cl_int __real_clGetEventInfo(cl_event, cl_event_info, size_t, void *, size_t *);
cl_int __wrap_clGetEventInfo(cl_event, cl_event_info, size_t, void *, size_t *);
cl_int __wrap_clGetEventInfo(cl_event event, cl_event_info what, size_t size, void *value,
                             size_t *used)
{
    must_be_flushed(event);
    return fails() ? CL_OUT_OF_RESOURCES : __real_clGetEventInfo(event, what, size, value, used);
}

cl_int __real_clFlush(cl_command_queue);
cl_int __wrap_clFlush(cl_command_queue);
cl_int __wrap_clFlush(cl_command_queue queue)
{
    if (fails()) return CL_OUT_OF_RESOURCES;
    forget_markers(queue);
    return __real_clFlush(queue);
}

/* ---- What else enqueues and asks ---- */

WRAP(clEnqueueNDRangeKernel,
     (cl_command_queue queue, cl_kernel kernel, cl_uint dimensions, const size_t *offset,
      const size_t *items, const size_t *group, cl_uint count, const cl_event *list,
      cl_event *event),
     (queue, kernel, dimensions, offset, items, group, count, list, event))
WRAP(clEnqueueNativeKernel,
     (cl_command_queue queue, void(CL_CALLBACK *function)(void *), void *argument, size_t size,
      cl_uint memories, const cl_mem *memory, const void **places, cl_uint count,
      const cl_event *list, cl_event *event),
     (queue, function, argument, size, memories, memory, places, count, list, event))
WRAP(clEnqueueSVMMemcpy,
     (cl_command_queue queue, cl_bool blocking, void *to, const void *from, size_t size,
      cl_uint count, const cl_event *list, cl_event *event),
     (queue, blocking, to, from, size, count, list, event))
WRAP(clEnqueueSVMMemFill,
     (cl_command_queue queue, void *to, const void *pattern, size_t pattern_size, size_t size,
      cl_uint count, const cl_event *list, cl_event *event),
     (queue, to, pattern, pattern_size, size, count, list, event))
WRAP(clEnqueueFillBuffer,
     (cl_command_queue queue, cl_mem buffer, const void *pattern, size_t pattern_size,
      size_t offset, size_t size, cl_uint count, const cl_event *list, cl_event *event),
     (queue, buffer, pattern, pattern_size, offset, size, count, list, event))

/* ---- Writes ---- */

enum { WRITES = 16 };

static struct write {
    cl_command_queue queue; /* NULL: free */
    cl_event gate;
    void *bytes;
} writes[WRITES];

cl_int __real_clFinish(cl_command_queue);
cl_int __wrap_clFinish(cl_command_queue);
cl_int __real_clEnqueueWriteBuffer(cl_command_queue, cl_mem, cl_bool, size_t, size_t, const void *,
                                   cl_uint, const cl_event *, cl_event *);
cl_int __wrap_clEnqueueWriteBuffer(cl_command_queue, cl_mem, cl_bool, size_t, size_t, const void *,
                                   cl_uint, const cl_event *, cl_event *);
cl_int __real_clEnqueueReadBuffer(cl_command_queue, cl_mem, cl_bool, size_t, size_t, void *,
                                  cl_uint, const cl_event *, cl_event *);
cl_int __wrap_clEnqueueReadBuffer(cl_command_queue, cl_mem, cl_bool, size_t, size_t, void *,
                                  cl_uint, const cl_event *, cl_event *);

/* Lets all writes of the queue happen. Every gate opens before the one wait: two sessions may each
 * have a write held back on this queue, and the queue finishes only when both are done. */
static void land(cl_command_queue queue)
{
    pthread_mutex_lock(&lock);
    for (int i = 0; i < WRITES; i++) {
        if (writes[i].queue == queue) clSetUserEventStatus(writes[i].gate, CL_COMPLETE);
    }
    __real_clFinish(queue);
    for (int i = 0; i < WRITES; i++) {
        if (writes[i].queue != queue) continue;
        __real_clReleaseEvent(writes[i].gate);
        free(writes[i].bytes);
        writes[i].queue = NULL;
    }
    pthread_mutex_unlock(&lock);
}

/* A free place with a closed gate and a copy of the bytes, or NULL. Locked. */
static struct write *hold_back(cl_command_queue queue, const void *host, size_t size)
{
    struct write *write = NULL;
    cl_context context;
    cl_int code = clGetCommandQueueInfo(queue, CL_QUEUE_CONTEXT, sizeof context, &context, NULL);
    for (int i = 0; i < WRITES && !write; i++) {
        if (!writes[i].queue) write = &writes[i];
    }
    if (code || !write) return NULL;
    write->bytes = malloc(size);
    write->gate = clCreateUserEvent(context, &code);
    if (write->bytes && !code) {
        write->queue = queue;
        return memcpy(write->bytes, host, size), write;
    }
    free(write->bytes);
    return NULL;
}

cl_int __wrap_clEnqueueWriteBuffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking,
                                   size_t offset, size_t size, const void *host, cl_uint count,
                                   const cl_event *list, cl_event *event)
{
    if (fails()) return CL_OUT_OF_RESOURCES;
    if (!blocking || count > 0)
        return __real_clEnqueueWriteBuffer(queue, buffer, blocking, offset, size, host, count, list,
                                           event);
    pthread_mutex_lock(&lock);
    struct write *write = hold_back(queue, host, size);
    cl_int code = CL_OUT_OF_HOST_MEMORY;
    if (write)
        code = __real_clEnqueueWriteBuffer(queue, buffer, CL_FALSE, offset, size, write->bytes, 1,
                                           &write->gate, event);
    pthread_mutex_unlock(&lock);
    return code;
}

cl_int __wrap_clEnqueueReadBuffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking,
                                  size_t offset, size_t size, void *host, cl_uint count,
                                  const cl_event *list, cl_event *event)
{
    if (fails()) return CL_OUT_OF_RESOURCES;
    land(queue);
    return __real_clEnqueueReadBuffer(queue, buffer, blocking, offset, size, host, count, list,
                                      event);
}

cl_int __wrap_clFinish(cl_command_queue queue)
{
    bool is_to_fail = fails();
    land(queue);
    return is_to_fail ? CL_OUT_OF_RESOURCES : __real_clFinish(queue);
}
