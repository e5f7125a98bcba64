/* Memory of the OpenCL device: shared virtual memory, whose addresses kernels take, or buffers with
 * sub-buffers. Memory spaces of kind pinned are memory of the host that the device reads and writes
 * where it lies: buffers made with CL_MEM_ALLOC_HOST_PTR, fine-grained shared virtual memory; where
 * there is only coarse-grained, memory like any other. Host memory for copies is such a buffer that
 * stays mapped. Source: OpenCL 3.0 specification, "Creating Buffer Objects", "Shared Virtual
 * Memory", "Mapping Buffer Objects". */
#include "opencl_memory.h"

#include <stdlib.h>

/* ---- Allocations ---- */

int opencl_memory_limits(void *self, struct tarn_memory_limits *limits)
{
    const struct opencl_device *device = self;
    *limits = (struct tarn_memory_limits){.alignment = device->alignment,
                                          .allocation_max = device->allocation_max,
                                          .available = UINT64_MAX,
                                          .on_host = false};
    return 0;
}

static int region_wrap(cl_mem buffer, uint64_t shift, void **result)
{
    struct opencl_region *region = malloc(sizeof *region);
    if (!region) {
        clReleaseMemObject(buffer);
        return CL_OUT_OF_HOST_MEMORY;
    }
    *region = (struct opencl_region){buffer, shift};
    *result = region;
    return 0;
}

/* pinned: of the host, where the device can read and write it. */
static int allocate(struct opencl_device *device, bool pinned, uint64_t size, void **memory)
{
    if (device->is_svm) {
        cl_svm_mem_flags flags = CL_MEM_READ_WRITE;
        if (pinned && device->is_fine_grained) flags |= CL_MEM_SVM_FINE_GRAIN_BUFFER;
        *memory = clSVMAlloc(device->context, flags, size, (cl_uint)device->alignment);
        return *memory ? 0 : CL_MEM_OBJECT_ALLOCATION_FAILURE;
    }
    cl_int code;
    cl_mem buffer =
        clCreateBuffer(device->context, CL_MEM_READ_WRITE | (pinned ? CL_MEM_ALLOC_HOST_PTR : 0),
                       size, NULL, &code);
    return code ? code : region_wrap(buffer, 0, memory);
}

int opencl_memory_create(void *self, uint64_t size, void **memory)
{
    return allocate(self, false, size, memory);
}

void opencl_region_destroy(void *self, void *argument)
{
    struct opencl_region *region = argument;
    (void)self;
    clReleaseMemObject(region->buffer);
    free(region);
}

void opencl_memory_destroy(void *self, void *memory, uint64_t size)
{
    struct opencl_device *device = self;
    (void)size;
    if (!device->is_svm) {
        opencl_region_destroy(self, memory); /* commands that still use a buffer keep it */
        return;
    }
    clFinish(device->copies); /* a fill may go on whose waiting failed */
    clSVMFree(device->context, memory);
}

int opencl_region_create(void *self, void *memory, uint64_t offset, uint64_t size, void **region)
{
    struct opencl_device *device = self;
    uint64_t shift = offset % device->alignment;
    cl_buffer_region bytes = {.origin = offset - shift, .size = shift + size};
    cl_int code;
    cl_mem buffer = clCreateSubBuffer(((struct opencl_region *)memory)->buffer, 0,
                                      CL_BUFFER_CREATE_TYPE_REGION, &bytes, &code);
    return code ? code : region_wrap(buffer, shift, region);
}

int opencl_copy_in(void *self, void *to, const void *host, uint64_t size)
{
    struct opencl_device *device = self;
    const struct opencl_region *region = to;
    if (device->is_svm)
        return clEnqueueSVMMemcpy(device->copies, CL_TRUE, to, host, size, 0, NULL, NULL);
    int code = clEnqueueWriteBuffer(device->copies, region->buffer, CL_TRUE, region->shift, size,
                                    host, 0, NULL, NULL);
    return code ? code : clFinish(device->copies); /* "blocking" is: until `host` has been read */
}

int opencl_copy_out(void *self, void *host, const void *from, uint64_t size)
{
    struct opencl_device *device = self;
    const struct opencl_region *region = from;
    if (device->is_svm)
        return clEnqueueSVMMemcpy(device->copies, CL_TRUE, host, from, size, 0, NULL, NULL);
    return clEnqueueReadBuffer(device->copies, region->buffer, CL_TRUE, region->shift, size, host,
                               0, NULL, NULL);
}

int opencl_copy_enqueue(void *self, void *queue, void *to, const void *from, uint64_t size)
{
    const struct opencl_device *device = self;
    const struct opencl_region *source = from, *target = to;
    if (device->is_svm) return clEnqueueSVMMemcpy(queue, CL_FALSE, to, from, size, 0, NULL, NULL);
    return clEnqueueCopyBuffer(queue, source->buffer, target->buffer, source->shift, target->shift,
                               size, 0, NULL, NULL);
}

int opencl_fill(void *self, void *to, unsigned char byte, uint64_t size)
{
    struct opencl_device *device = self;
    const struct opencl_region *region = to;
    int code = device->is_svm
                   ? clEnqueueSVMMemFill(device->copies, to, &byte, 1, size, 0, NULL, NULL)
                   : clEnqueueFillBuffer(device->copies, region->buffer, &byte, 1, region->shift,
                                         size, 0, NULL, NULL);
    return code ? code : clFinish(device->copies);
}

/* ---- Memory spaces ---- */

/* Host code may follow addresses of fine-grained shared memory, and of no other. */
int opencl_space_limits(void *self, const struct tarn_memory_space *space,
                        struct tarn_memory_limits *limits)
{
    const struct opencl_device *device = self;
    int code = opencl_memory_limits(self, limits);
    limits->on_host = space->kind == TARN_SPACE_PINNED && device->is_fine_grained;
    return code;
}

int opencl_space_create(void *self, const struct tarn_memory_space *space, uint64_t size,
                        void **memory)
{
    return allocate(self, space->kind == TARN_SPACE_PINNED, size, memory);
}

void opencl_space_destroy(void *self, const struct tarn_memory_space *space, void *memory,
                          uint64_t size)
{
    (void)space;
    opencl_memory_destroy(self, memory, size);
}

/* ---- Host memory ---- */

/* A buffer of the host's that stays mapped: copies from and to these bytes need no other. */
struct opencl_mapping {
    cl_mem buffer;
    void *bytes;
    struct opencl_mapping *next;
};

int opencl_host_memory_create(void *self, uint64_t size, void **memory)
{
    struct opencl_device *device = self;
    cl_int code;
    struct opencl_mapping *mapping = malloc(sizeof *mapping);
    if (!mapping) return CL_OUT_OF_HOST_MEMORY;
    mapping->buffer = clCreateBuffer(device->context, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR,
                                     size, NULL, &code);
    if (!code) {
        mapping->bytes =
            clEnqueueMapBuffer(device->copies, mapping->buffer, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE,
                               0, size, 0, NULL, NULL, &code);
        if (code) clReleaseMemObject(mapping->buffer);
    }
    if (code) {
        free(mapping);
        return code;
    }
    pthread_mutex_lock(&device->lock);
    mapping->next = device->mappings;
    device->mappings = mapping;
    pthread_mutex_unlock(&device->lock);
    *memory = mapping->bytes;
    return 0;
}

void opencl_host_memory_destroy(void *self, void *memory, uint64_t size)
{
    struct opencl_device *device = self;
    (void)size;
    pthread_mutex_lock(&device->lock);
    struct opencl_mapping **place = &device->mappings;
    while ((*place)->bytes != memory) place = &(*place)->next;
    struct opencl_mapping *mapping = *place;
    *place = mapping->next;
    pthread_mutex_unlock(&device->lock);
    clEnqueueUnmapMemObject(device->copies, mapping->buffer, memory, 0, NULL, NULL);
    clFinish(device->copies);
    clReleaseMemObject(mapping->buffer);
    free(mapping);
}

/* ---- What kernels get ---- */

cl_int opencl_device_argument(const struct opencl_device *device, cl_kernel kernel, cl_uint index,
                              const void *address)
{
    const struct opencl_region *region = address;
    cl_ulong shift = device->is_svm ? 0 : region->shift;
    cl_int code = device->is_svm ? clSetKernelArgSVMPointer(kernel, index, address)
                                 : clSetKernelArg(kernel, index, sizeof(cl_mem), &region->buffer);
    return code ? code : clSetKernelArg(kernel, index + 1, sizeof shift, &shift);
}
