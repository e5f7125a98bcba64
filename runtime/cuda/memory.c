/* Memory of the CUDA device, and copies to and from it. Memory comes from the device's pool, or
 * from cudaMalloc if there is no pool. Copies are blocking, on their own stream, so that they wait
 * for no other work. Host memory is a mapping of pages near the GPU, registered with CUDA. Memory
 * spaces of kind pinned come from cudaHostAlloc, which takes pages by the thread's memory policy:
 * for the call that prefers the GPU's node. All other spaces are memory of the device: addresses
 * are unified wherever CUDA 12 runs, so kernels, fills and copies, which find their direction by
 * the addresses, take both alike.
 * Source: CUDA Runtime API 13.0, "Memory Management", "Stream Ordered Memory Allocator", "Unified
 * Addressing", "API synchronization behavior".
 * Cost: one or two runtime calls each, within a visit (cuda/device.h). */
#include "device.h"

#include <sys/mman.h>

#include "runtime/state/topology.h"

#define ALIGNMENT 512u /* alignment of texture addresses, which cudaMalloc guarantees */

static uint64_t alignment_of(const struct tarn_cuda *cuda)
{
    return cuda->source.alignment > 0 ? cuda->source.alignment : ALIGNMENT;
}

int tarn_cuda_memory_limits(void *self, struct tarn_memory_limits *limits)
{
    struct tarn_cuda_visit visit = tarn_cuda_enter(self);
    size_t available = 0, total = 0;
    if (!visit.code) visit.code = visit.api->MemGetInfo(&available, &total);
    *limits = (struct tarn_memory_limits){.alignment = alignment_of(visit.cuda),
                                          .allocation_max = UINT64_MAX,
                                          .available = available,
                                          .on_host = visit.cuda->on_host};
    return tarn_cuda_leave(&visit);
}

static tarn_cuda_code allocate(const struct tarn_cuda *cuda, uint64_t size, void **memory)
{
    if (size > SIZE_MAX) return TARN_CUDA_OUT_OF_MEMORY;
    if (!cuda->pool) return cuda->api.Malloc(memory, (size_t)size);
    tarn_cuda_code code =
        cuda->api.MallocFromPoolAsync(memory, (size_t)size, cuda->pool, cuda->copies);
    if (code) return code;
    code = cuda->api.StreamSynchronize(cuda->copies); /* afterwards every stream may use it */
    if (code) cuda->api.FreeAsync(*memory, cuda->copies);
    return code;
}

/* Frees memory of the pool without waiting; memory of cudaMalloc as in cuda/release.h. */
static void give_back(struct tarn_cuda *cuda, void *memory, uint64_t size)
{
    if (!cuda->pool) {
        tarn_cuda_release(cuda, TARN_CUDA_FROM_MALLOC, memory, size);
        return;
    }
    struct tarn_cuda_visit visit = tarn_cuda_enter(cuda);
    visit.api->FreeAsync(memory, cuda->copies);
    tarn_cuda_leave(&visit);
}

/* Allocates from the caller's source, which calls CUDA itself. */
static tarn_cuda_code ask_source(struct tarn_cuda *cuda, uint64_t size, void **memory)
{
    tarn_cuda_lend(cuda);
    int code = cuda->source.create(cuda->source.user, size, memory);
    tarn_cuda_take_back(cuda);
    return (tarn_cuda_code)code;
}

static void give_to_source(struct tarn_cuda *cuda, void *memory, uint64_t size)
{
    tarn_cuda_lend(cuda);
    cuda->source.destroy(cuda->source.user, memory, size);
    tarn_cuda_take_back(cuda);
}

static int check_and_name(struct tarn_cuda *cuda, void *memory, uint64_t size)
{
    if ((uintptr_t)memory % alignment_of(cuda) != 0) return TARN_CUDA_NOT_SUPPORTED;
    tarn_nvtx_heap_create(cuda->nvtx, memory, size);
    return 0;
}

int tarn_cuda_memory_create(void *self, uint64_t size, void **memory)
{
    struct tarn_cuda *cuda = self;
    if (cuda->source.create) {
        int code = (int)ask_source(cuda, size, memory);
        if (code) return code;
        code = check_and_name(cuda, *memory, size);
        if (code) give_to_source(cuda, *memory, size);
        return code;
    }
    struct tarn_cuda_visit visit = tarn_cuda_enter(self);
    if (!visit.code) visit.code = allocate(cuda, size, memory);
    if (!visit.code && check_and_name(cuda, *memory, size)) { /* not seen yet */
        give_back(cuda, *memory, size);
        visit.code = TARN_CUDA_NOT_SUPPORTED;
    }
    return tarn_cuda_leave(&visit);
}

void tarn_cuda_memory_destroy(void *self, void *memory, uint64_t size)
{
    struct tarn_cuda *cuda = self;
    tarn_nvtx_heap_destroy(cuda->nvtx, memory);
    if (cuda->source.create)
        give_to_source(cuda, memory, size);
    else
        give_back(cuda, memory, size);
}

/* ---- Memory spaces ---- */

int tarn_cuda_space_limits(void *self, const struct tarn_memory_space *space,
                           struct tarn_memory_limits *limits)
{
    if (space->kind != TARN_SPACE_PINNED) return tarn_cuda_memory_limits(self, limits);
    *limits = (struct tarn_memory_limits){.alignment = ALIGNMENT,
                                          .allocation_max = UINT64_MAX,
                                          .available = UINT64_MAX,
                                          .on_host = true};
    return 0;
}

int tarn_cuda_space_create(void *self, const struct tarn_memory_space *space, uint64_t size,
                           void **memory)
{
    if (space->kind != TARN_SPACE_PINNED) return tarn_cuda_memory_create(self, size, memory);
    struct tarn_cuda_visit visit = tarn_cuda_enter(self);
    if (!visit.code && size > SIZE_MAX) visit.code = TARN_CUDA_OUT_OF_MEMORY;
    if (!visit.code) {
        struct tarn_memory_policy before;
        tarn_memory_policy_near_pci(&before, visit.cuda->pci_bus_id);
        visit.code = visit.api->HostAlloc(memory, (size_t)size, TARN_CUDA_HOST_PORTABLE);
        tarn_memory_policy_restore(&before);
    }
    if (!visit.code && (uintptr_t)*memory % ALIGNMENT != 0) { /* pages; not seen yet */
        visit.api->FreeHost(*memory);
        visit.code = TARN_CUDA_NOT_SUPPORTED;
    }
    if (!visit.code) tarn_nvtx_heap_create(visit.cuda->nvtx, *memory, size);
    return tarn_cuda_leave(&visit);
}

void tarn_cuda_space_destroy(void *self, const struct tarn_memory_space *space, void *memory,
                             uint64_t size)
{
    struct tarn_cuda *cuda = self;
    if (space->kind != TARN_SPACE_PINNED) {
        tarn_cuda_memory_destroy(self, memory, size);
        return;
    }
    tarn_nvtx_heap_destroy(cuda->nvtx, memory);
    tarn_cuda_release(cuda, TARN_CUDA_FROM_HOST_ALLOC, memory, size);
}

/* ---- Copies ---- */

/* Waits until the copy stream's work has ended. Tries twice if that fails, since the caller may
 * reuse the host's bytes afterwards. */
static int finish_copy(struct tarn_cuda_visit *visit)
{
    tarn_cuda_stream copies = visit->cuda->copies;
    if (!visit->code) visit->code = visit->api->StreamSynchronize(copies);
    if (visit->code) visit->api->StreamSynchronize(copies);
    return tarn_cuda_leave(visit);
}

static int copy(void *self, void *to, const void *from, uint64_t size)
{
    struct tarn_cuda_visit visit = tarn_cuda_enter(self);
    if (!visit.code)
        visit.code = visit.api->MemcpyAsync(to, from, (size_t)size, TARN_CUDA_COPY_BY_ADDRESSES,
                                            visit.cuda->copies);
    return finish_copy(&visit);
}

int tarn_cuda_copy_in(void *self, void *device, const void *host, uint64_t size)
{
    return copy(self, device, host, size);
}

int tarn_cuda_copy_out(void *self, void *host, const void *device, uint64_t size)
{
    return copy(self, host, device, size);
}

int tarn_cuda_fill(void *self, void *device, unsigned char byte, uint64_t size)
{
    struct tarn_cuda_visit visit = tarn_cuda_enter(self);
    if (!visit.code)
        visit.code = visit.api->MemsetAsync(device, byte, (size_t)size, visit.cuda->copies);
    return finish_copy(&visit);
}

/* Allocates pages from the NUMA node near the GPU, then pins them. */
int tarn_cuda_host_memory_create(void *self, uint64_t size, void **memory)
{
    struct tarn_cuda_visit visit = tarn_cuda_enter(self);
    void *mapping = size > SIZE_MAX ? MAP_FAILED
                                    : mmap(NULL, (size_t)size, PROT_READ | PROT_WRITE,
                                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (!visit.code && mapping == MAP_FAILED) visit.code = TARN_CUDA_OUT_OF_MEMORY;
    if (!visit.code) {
        tarn_topology_bind_near_pci(visit.cuda->pci_bus_id, mapping, size);
        if (size >= TARN_HUGE_PAGE) madvise(mapping, (size_t)size, MADV_HUGEPAGE);
        visit.code = visit.api->HostRegister(mapping, (size_t)size, TARN_CUDA_HOST_PORTABLE);
    }
    if (!visit.code)
        *memory = mapping;
    else if (mapping != MAP_FAILED)
        munmap(mapping, (size_t)size);
    return tarn_cuda_leave(&visit);
}

void tarn_cuda_host_memory_destroy(void *self, void *memory, uint64_t size)
{
    tarn_cuda_release(self, TARN_CUDA_FROM_MAPPING, memory, size);
}
