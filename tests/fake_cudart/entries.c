/* The entry points around a device and its memory: each checks its handles and does one thing.
 * Enumerations and handles are those of runtime/cuda/api.h, which are compatible with CUDA's. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake.h"

enum { ALIGNMENT = 512, POISON = 0xa5, POISONED_MAX = 64 << 20 };

/* ---- Driver and device ---- */

FAKE_DEFINE(RuntimeGetVersion, (int *version))
{
    unsigned code = fake_enter(ENTRY_RuntimeGetVersion, true);
    if (!code) *version = FAKE_CUDART_VERSION;
    return fake_leave(code);
}

FAKE_DEFINE(DriverGetVersion, (int *version))
{
    unsigned code = fake_enter(ENTRY_DriverGetVersion, true);
    if (!code) *version = fake.options.driver;
    return fake_leave(code);
}

/* A driver that is too old leaves the count unwritten. */
FAKE_DEFINE(GetDeviceCount, (int *count))
{
    unsigned code = fake_enter(ENTRY_GetDeviceCount, true);
    if (!code && fake.options.driver < FAKE_CUDART_VERSION) code = TARN_CUDA_INSUFFICIENT_DRIVER;
    if (!code) *count = fake.options.devices;
    if (!code && *count == 0) code = TARN_CUDA_NO_DEVICE;
    return fake_leave(code);
}

FAKE_DEFINE(DeviceGetAttribute, (int *value, unsigned attribute, int device))
{
    unsigned code = fake_enter(ENTRY_DeviceGetAttribute, true);
    (void)device;
    if (!code && attribute != TARN_CUDA_MULTIPROCESSORS) code = FAKE_INVALID_VALUE;
    if (!code) *value = 2;
    return fake_leave(code);
}

FAKE_DEFINE(DeviceGetPCIBusId, (char *text, int size, int device))
{
    unsigned code = fake_enter(ENTRY_DeviceGetPCIBusId, true);
    if (!code) snprintf(text, (size_t)size, "0000:%02x:00.0", device + 1);
    return fake_leave(code);
}

FAKE_DEFINE(DeviceGetStreamPriorityRange, (int *least, int *greatest))
{
    unsigned code = fake_enter(ENTRY_DeviceGetStreamPriorityRange, true);
    if (!code) *least = 0;
    if (!code) *greatest = -5;
    return fake_leave(code);
}

/* ---- Memory ---- */

FAKE_DEFINE(MemGetInfo, (size_t * available, size_t *total))
{
    unsigned code = fake_enter(ENTRY_MemGetInfo, true);
    if (!code) *total = fake.options.capacity;
    if (!code) *available = fake.options.capacity - fake.used;
    return fake_leave(code);
}

static uint64_t rounded(uint64_t size)
{
    return (size + ALIGNMENT - 1) & ~(uint64_t)(ALIGNMENT - 1);
}

static unsigned allocate(void **memory, size_t size, struct pool *pool, bool is_pinned)
{
    if (size == 0) return FAKE_INVALID_VALUE;
    if (!is_pinned && rounded(size) > fake.options.capacity - fake.used)
        return TARN_CUDA_OUT_OF_MEMORY;
    unsigned char *bytes = aligned_alloc(ALIGNMENT, rounded(size));
    if (!bytes) return TARN_CUDA_OUT_OF_MEMORY;
    memset(bytes, POISON, size < POISONED_MAX ? size : POISONED_MAX);
    struct block *block = fake_object_create(BLOCK, sizeof *block);
    block->bytes = bytes;
    block->size = size;
    block->pool = pool;
    block->is_pinned = is_pinned;
    if (!is_pinned) fake.used += rounded(size);
    *memory = bytes;
    return 0;
}

static struct block *find_begin(void *memory, bool is_pinned, const char *where)
{
    struct block *block = fake_find_block(memory, 1);
    if (block && block->bytes == memory && block->is_pinned == is_pinned) return block;
    fake_violation("%s: no allocation begins there", where);
    return NULL;
}

static void give_back(struct block *block)
{
    if (!block->is_pinned) fake.used -= rounded(block->size);
    free(block->bytes);
    fake_object_end(&block->object);
}

FAKE_DEFINE(Malloc, (void **memory, size_t size))
{
    unsigned code = fake_enter(ENTRY_Malloc, false);
    return fake_leave(code ? code : allocate(memory, size, NULL, false));
}

FAKE_DEFINE(Free, (void *memory))
{
    bool real;
    unsigned code = fake_enter_end(ENTRY_Free, false, &real);
    struct block *block = real && memory ? find_begin(memory, false, "cudaFree") : NULL;
    if (block && !block->pool) fake_wait_device(block->object.device);
    if (block) give_back(block);
    if (real && memory && !block) code = FAKE_INVALID_VALUE; /* NULL: nothing to do */
    return fake_leave(code);
}

FAKE_DEFINE(HostAlloc, (void **memory, size_t size, unsigned flags))
{
    unsigned code = fake_enter(ENTRY_HostAlloc, false);
    if (!code && flags != TARN_CUDA_HOST_PORTABLE) code = FAKE_INVALID_VALUE;
    return fake_leave(code ? code : allocate(memory, size, NULL, true));
}

/* It may wait for the device, as cudaFree does. */
FAKE_DEFINE(FreeHost, (void *memory))
{
    bool real;
    unsigned code = fake_enter_end(ENTRY_FreeHost, false, &real);
    struct block *block = real && memory ? find_begin(memory, true, "cudaFreeHost") : NULL;
    if (block) fake_wait_device(block->object.device);
    if (block) give_back(block);
    if (real && memory && !block) code = FAKE_INVALID_VALUE; /* NULL: nothing to do */
    return fake_leave(code);
}

FAKE_DEFINE(PointerGetAttributes, (struct cudaPointerAttributes * attributes, const void *pointer))
{
    unsigned code = fake_enter(ENTRY_PointerGetAttributes, true);
    const struct block *block = code ? NULL : fake_find_block(pointer, 1);
    bool on_host = !block || block->is_pinned || fake.options.host_access;
    union {
        const void *given;
        void *plain;
    } address = {pointer};
    if (!code)
        *(struct tarn_cuda_pointer_attributes *)attributes =
            (struct tarn_cuda_pointer_attributes){.type = !block             ? 0
                                                          : block->is_pinned ? 1
                                                                             : 2,
                                                  .device = fake_current_device(),
                                                  .device_pointer = block ? address.plain : NULL,
                                                  .host_pointer = on_host ? address.plain : NULL};
    return fake_leave(code);
}

FAKE_DEFINE(MemPoolCreate, (tarn_cuda_pool * pool, const struct cudaMemPoolProps *props))
{
    unsigned code = fake_enter(ENTRY_MemPoolCreate, false);
    const struct tarn_cuda_pool_props *given = (const struct tarn_cuda_pool_props *)props;
    if (!code && (given->allocation_type != TARN_CUDA_PINNED_ALLOCATION ||
                  given->location_type != TARN_CUDA_LOCATION_IS_DEVICE))
        code = FAKE_INVALID_VALUE;
    if (!code) *pool = fake_object_create(POOL, sizeof(struct pool));
    return fake_leave(code);
}

FAKE_DEFINE(MemPoolSetAttribute, (tarn_cuda_pool pool, unsigned attribute, void *value))
{
    unsigned code = fake_enter(ENTRY_MemPoolSetAttribute, true);
    (void)value;
    if (!code && (!fake_is(pool, POOL, "cudaMemPoolSetAttribute") ||
                  attribute != TARN_CUDA_RELEASE_THRESHOLD))
        code = FAKE_INVALID_VALUE;
    return fake_leave(code);
}

FAKE_DEFINE(MemPoolDestroy, (tarn_cuda_pool pool))
{
    bool real;
    unsigned code = fake_enter_end(ENTRY_MemPoolDestroy, false, &real);
    if (real && fake_is(pool, POOL, "cudaMemPoolDestroy")) {
        for (struct object *object = fake.objects[BLOCK]; object; object = object->next) {
            if (object->alive && (void *)((struct block *)object)->pool == (void *)pool)
                fake_violation("a pool is destroyed with memory in use");
        }
        fake_wait_device(((struct object *)(void *)pool)->device); /* it may, as cudaFree does */
        fake_object_end((struct object *)(void *)pool);
    }
    return fake_leave(code);
}

FAKE_DEFINE(MallocFromPoolAsync,
            (void **memory, size_t size, tarn_cuda_pool pool, tarn_cuda_stream stream))
{
    unsigned code = fake_enter(ENTRY_MallocFromPoolAsync, false);
    if (!code && (!fake_is(pool, POOL, "cudaMallocFromPoolAsync") ||
                  !fake_is(stream, STREAM, "cudaMallocFromPoolAsync")))
        code = FAKE_INVALID_HANDLE;
    return fake_leave(code ? code : allocate(memory, size, (struct pool *)(void *)pool, false));
}

static void give_back_later(void *argument)
{
    pthread_mutex_lock(&fake.lock);
    give_back(argument);
    fake.freeing--;
    pthread_mutex_unlock(&fake.lock);
}

FAKE_DEFINE(FreeAsync, (void *memory, tarn_cuda_stream stream))
{
    bool real;
    unsigned code = fake_enter_end(ENTRY_FreeAsync, false, &real);
    if (real && fake_is(stream, STREAM, "cudaFreeAsync")) {
        struct block *block = find_begin(memory, false, "cudaFreeAsync");
        if (block && fake.sticky) give_back(block);
        if (block && !fake.sticky) {
            fake.freeing++;
            fake_append(fake_stream(stream),
                        (struct work){.kind = CALL,
                                      .call = {.function = give_back_later, .argument = block}});
        }
    }
    return fake_leave(code);
}

FAKE_DEFINE(HostRegister, (void *memory, size_t size, unsigned flags))
{
    unsigned code = fake_enter(ENTRY_HostRegister, false);
    (void)flags;
    if (!code) {
        struct block *block = fake_object_create(BLOCK, sizeof *block);
        block->bytes = memory;
        block->size = size;
        block->is_registered = true;
    }
    return fake_leave(code);
}

FAKE_DEFINE(HostUnregister, (void *memory))
{
    bool real, found = false;
    unsigned code = fake_enter_end(ENTRY_HostUnregister, false, &real);
    for (struct object *object = fake.objects[BLOCK]; real && object; object = object->next) {
        struct block *block = (struct block *)object;
        if (!object->alive || !block->is_registered || block->bytes != memory) continue;
        fake_object_end(object);
        found = true;
    }
    if (real && !found) fake_violation("cudaHostUnregister: the memory is not registered");
    return fake_leave(code);
}

/* ---- Copies ---- */

struct copy {
    void *to;
    const void *from;
    size_t size;
    int byte;
};

static void run_copy(void *argument)
{
    const struct copy *copy = argument;
    memcpy(copy->to, copy->from, copy->size);
}

static void run_fill(void *argument)
{
    const struct copy *copy = argument;
    memset(copy->to, copy->byte, copy->size);
}

/* Host memory that the device copies from and to by itself. */
static bool is_locked(const void *bytes, uint64_t size)
{
    for (struct object *object = fake.objects[BLOCK]; object; object = object->next) {
        const struct block *block = (const struct block *)object;
        if (!object->alive || !(block->is_registered || block->is_pinned)) continue;
        uint64_t offset = (uint64_t)((const unsigned char *)bytes - block->bytes);
        if (offset < block->size && size <= block->size - offset) return true;
    }
    return false;
}

/* Neither memory of a device nor locked: a copy of it waits for the stream. */
static bool is_pageable(const void *bytes, uint64_t size)
{
    return !fake_find_block(bytes, size) && !is_locked(bytes, size);
}

/* Any device may be current: a copy goes by its addresses. */
static unsigned enqueue_copy(tarn_cuda_stream stream, const struct copy *copy,
                             void (*function)(void *), const void *of_device)
{
    struct call call = {.function = function};
    if (!fake_is(stream, STREAM, "a copy")) return FAKE_INVALID_HANDLE;
    if (!fake_find_block(of_device, copy->size)) {
        fake_violation("a copy outside of what is allocated");
        return FAKE_INVALID_VALUE;
    }
    memcpy(call.arguments, copy, sizeof *copy);
    return fake_call(fake_stream(stream), &call);
}

/* A direction that is named must be that of the addresses; pinned memory is the host's. */
static bool has_direction(const struct copy *copy, unsigned kind)
{
    if (kind == TARN_CUDA_COPY_BY_ADDRESSES) return true;
    const struct block *to = fake_find_block(copy->to, copy->size);
    const struct block *from = fake_find_block(copy->from, copy->size);
    bool is_in = to && !to->is_pinned, is_out = from && !from->is_pinned;
    if ((kind == FAKE_COPY_IN && is_in && !is_out) || (kind == FAKE_COPY_OUT && is_out && !is_in))
        return true;
    fake_violation("a copy is not in the direction that it names");
    return false;
}

FAKE_DEFINE(MemcpyAsync,
            (void *to, const void *from, size_t size, unsigned kind, tarn_cuda_stream stream))
{
    unsigned code = fake_enter(ENTRY_MemcpyAsync, true);
    const struct copy copy = {.to = to, .from = from, .size = size};
    bool is_in = fake_find_block(to, size);
    if (!code && !has_direction(&copy, kind)) code = FAKE_INVALID_VALUE;
    if (!code) code = enqueue_copy(stream, &copy, run_copy, is_in ? to : from);
    if (!code && !fake_stream(stream)->capture &&
        (is_pageable(to, size) || is_pageable(from, size))) {
        fake_wait_stream(fake_stream(stream));
        code = fake.sticky;
    }
    return fake_leave(code);
}

FAKE_DEFINE(MemsetAsync, (void *memory, int byte, size_t size, tarn_cuda_stream stream))
{
    unsigned code = fake_enter(ENTRY_MemsetAsync, true);
    const struct copy copy = {.to = memory, .size = size, .byte = byte};
    if (!code) code = enqueue_copy(stream, &copy, run_fill, memory);
    return fake_leave(code);
}

/* ---- Errors ---- */

const char *cudaGetErrorString(tarn_cuda_code code);
const char *cudaGetErrorString(tarn_cuda_code code)
{
    switch (code) {
    case 0: return "no error";
    case FAKE_INVALID_VALUE: return "invalid argument";
    case TARN_CUDA_OUT_OF_MEMORY: return "out of memory";
    case TARN_CUDA_INSUFFICIENT_DRIVER:
        return "CUDA driver version is insufficient for CUDA runtime version";
    case TARN_CUDA_NO_DEVICE: return "no CUDA-capable device is detected";
    case FAKE_INVALID_HANDLE: return "invalid resource handle";
    case TARN_CUDA_NOT_READY: return "device not ready";
    case TARN_CUDA_ILLEGAL_ADDRESS: return "an illegal memory access was encountered";
    case TARN_CUDA_LAUNCH_FAILURE: return "unspecified launch failure";
    case TARN_CUDA_NOT_SUPPORTED: return "operation not supported";
    case FAKE_CAPTURE_UNSUPPORTED: return "operation not permitted when stream is capturing";
    case FAKE_CAPTURE_INVALIDATED: return "operation failed due to a previous error during capture";
    case FAKE_CAPTURE_UNJOINED: return "capturing stream has unjoined work";
    case FAKE_CAPTURE_ISOLATION: return "dependency created on uncaptured work in another stream";
    default: return "unrecognized error code";
    }
}
