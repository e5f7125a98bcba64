/* NVTX 3, the only file that includes its headers: ranges of a domain "tarn", and the memory
 * extension's heaps and regions as compute-sanitizer reads them. An arena becomes a heap when its
 * first tensor is named, since every byte of a heap outside its regions is forbidden. Regions of
 * one arena overlap, as tensors do; bytes in any of them are allowed. Source: NVTX C API Reference
 * 3; "NVTX API for Compute Sanitizer". Cost: without a tool, one test per mark. */
#include "nvtx.h"

#include <stddef.h>

#ifdef TARN_HAVE_NVTX
#include <pthread.h>

/* NVTX's headers define functions and variables for all files of a library to share, as weak
 * globals. Here one file has them, so they are its own and no symbol of theirs leaves it. */
#define __NVTX_LINKONCE_H__ /* instead of nvtxLinkOnce.h */
#define NVTX_LINKONCE_DEFINE_GLOBAL static
#define NVTX_LINKONCE_FWDDECL_GLOBAL static
#define NVTX_LINKONCE_DEFINE_FUNCTION static
#define NVTX_LINKONCE_FWDDECL_FUNCTION static
#define NVTX_SUPPORT_STATIC_INJECTION_LIBRARY 0 /* tools are found by NVTX_INJECTION64_PATH */

#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtMem.h>

#include "streams/base/memory.h"

struct heap {
    struct heap *next;
    void *memory;
    uint64_t size;
    nvtxMemHeapHandle_t handle; /* NULL until a region is named */
};

struct tarn_nvtx {
    nvtxDomainHandle_t domain;
    pthread_mutex_t lock; /* of the heaps */
    struct heap *heaps;
};

/* ---- Life ---- */

/* A tool that is attached gives a domain a handle. */
struct tarn_nvtx *tarn_nvtx_create(void)
{
    nvtxDomainHandle_t domain = nvtxDomainCreateA("tarn");
    if (!domain) return NULL;
    struct tarn_nvtx *nvtx = tarn_take_zeros(1, sizeof *nvtx);
    if (!nvtx) {
        nvtxDomainDestroy(domain);
        return NULL;
    }
    nvtx->domain = domain;
    pthread_mutex_init(&nvtx->lock, NULL);
    return nvtx;
}

void tarn_nvtx_destroy(struct tarn_nvtx *nvtx)
{
    if (!nvtx) return;
    while (nvtx->heaps) tarn_nvtx_heap_destroy(nvtx, nvtx->heaps->memory);
    nvtxDomainDestroy(nvtx->domain);
    pthread_mutex_destroy(&nvtx->lock);
    tarn_free(nvtx);
}

/* ---- Ranges ---- */

void tarn_nvtx_range_begin(struct tarn_nvtx *nvtx, const char *name)
{
    if (!nvtx) return;
    const nvtxEventAttributes_t attributes = {.version = NVTX_VERSION,
                                              .size = NVTX_EVENT_ATTRIB_STRUCT_SIZE,
                                              .messageType = NVTX_MESSAGE_TYPE_ASCII,
                                              .message.ascii = name};
    nvtxDomainRangePushEx(nvtx->domain, &attributes);
}

void tarn_nvtx_range_end(struct tarn_nvtx *nvtx)
{
    if (nvtx) nvtxDomainRangePop(nvtx->domain);
}

/* ---- Memory ---- */

void tarn_nvtx_heap_create(struct tarn_nvtx *nvtx, void *memory, uint64_t size)
{
    struct heap *heap = nvtx ? tarn_take_zeros(1, sizeof *heap) : NULL;
    if (!heap) return; /* only a mark is lost */
    heap->memory = memory;
    heap->size = size;
    pthread_mutex_lock(&nvtx->lock);
    heap->next = nvtx->heaps;
    nvtx->heaps = heap;
    pthread_mutex_unlock(&nvtx->lock);
}

void tarn_nvtx_heap_destroy(struct tarn_nvtx *nvtx, void *memory)
{
    if (!nvtx) return;
    pthread_mutex_lock(&nvtx->lock);
    struct heap **link = &nvtx->heaps, *found;
    while (*link && (*link)->memory != memory) link = &(*link)->next;
    found = *link;
    if (found) *link = found->next;
    pthread_mutex_unlock(&nvtx->lock);
    if (found && found->handle) nvtxMemHeapUnregister(nvtx->domain, found->handle);
    tarn_free(found);
}

static nvtxMemHeapHandle_t register_heap(const struct tarn_nvtx *nvtx, const struct heap *heap)
{
    const nvtxMemVirtualRangeDesc_t range = {.size = (size_t)heap->size, .ptr = heap->memory};
    const nvtxMemHeapDesc_t description = {.extCompatID = NVTX_EXT_COMPATID_MEM,
                                           .structSize = sizeof description,
                                           .usage = NVTX_MEM_HEAP_USAGE_TYPE_SUB_ALLOCATOR,
                                           .type = NVTX_MEM_TYPE_VIRTUAL_ADDRESS,
                                           .typeSpecificDescSize = sizeof range,
                                           .typeSpecificDesc = &range,
                                           .messageType = NVTX_MESSAGE_TYPE_ASCII,
                                           .message.ascii = "arena"};
    return nvtxMemHeapRegister(nvtx->domain, &description);
}

static nvtxMemHeapHandle_t find_heap(struct tarn_nvtx *nvtx, void *memory)
{
    nvtxMemHeapHandle_t handle = NULL;
    pthread_mutex_lock(&nvtx->lock);
    for (struct heap *heap = nvtx->heaps; heap; heap = heap->next) {
        if (heap->memory != memory) continue;
        if (!heap->handle) heap->handle = register_heap(nvtx, heap);
        handle = heap->handle;
    }
    pthread_mutex_unlock(&nvtx->lock);
    return handle;
}

static void name_region(const struct tarn_nvtx *nvtx, const void *begin, const char *name)
{
    const nvtxMemRegionNameDesc_t named = {.regionRefType = NVTX_MEM_REGION_REF_TYPE_POINTER,
                                           .nameType = NVTX_MESSAGE_TYPE_ASCII,
                                           .region.pointer = begin,
                                           .name.ascii = name};
    const nvtxMemRegionsNameBatch_t names = {.extCompatID = NVTX_EXT_COMPATID_MEM,
                                             .structSize = sizeof names,
                                             .regionCount = 1,
                                             .regionElementSize = sizeof named,
                                             .regionElements = &named};
    nvtxMemRegionsName(nvtx->domain, &names);
}

void tarn_nvtx_region(struct tarn_nvtx *nvtx, void *memory, uint64_t offset, uint64_t size,
                      const char *name)
{
    nvtxMemHeapHandle_t heap = nvtx ? find_heap(nvtx, memory) : NULL;
    if (!heap) return;
    const nvtxMemVirtualRangeDesc_t range = {.size = (size_t)size, .ptr = (char *)memory + offset};
    const nvtxMemRegionsRegisterBatch_t regions = {.extCompatID = NVTX_EXT_COMPATID_MEM,
                                                   .structSize = sizeof regions,
                                                   .regionType = NVTX_MEM_TYPE_VIRTUAL_ADDRESS,
                                                   .heap = heap,
                                                   .regionCount = 1,
                                                   .regionDescElementSize = sizeof range,
                                                   .regionDescElements = &range};
    nvtxMemRegionsRegister(nvtx->domain, &regions);
    name_region(nvtx, range.ptr, name);
}

#else

struct tarn_nvtx *tarn_nvtx_create(void) { return NULL; }
void tarn_nvtx_destroy(struct tarn_nvtx *nvtx) { (void)nvtx; }
void tarn_nvtx_range_begin(struct tarn_nvtx *nvtx, const char *name) { (void)nvtx, (void)name; }
void tarn_nvtx_range_end(struct tarn_nvtx *nvtx) { (void)nvtx; }
void tarn_nvtx_heap_create(struct tarn_nvtx *nvtx, void *memory, uint64_t size)
{
    (void)nvtx, (void)memory, (void)size;
}
void tarn_nvtx_heap_destroy(struct tarn_nvtx *nvtx, void *memory) { (void)nvtx, (void)memory; }
void tarn_nvtx_region(struct tarn_nvtx *nvtx, void *memory, uint64_t offset, uint64_t size,
                      const char *name)
{
    (void)nvtx, (void)memory, (void)offset, (void)size, (void)name;
}

#endif
