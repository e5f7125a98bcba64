/* Memory of the OpenCL device, as in struct tarn_device_table. */
#ifndef OPENCL_MEMORY_H
#define OPENCL_MEMORY_H

#include "opencl_device.h"

/* Without shared virtual memory: what an allocation and a region are. */
struct opencl_region {
    cl_mem buffer;
    uint64_t shift; /* of the first byte in it */
};

int opencl_memory_limits(void *self, struct tarn_memory_limits *limits);
int opencl_memory_create(void *self, uint64_t size, void **memory);
void opencl_region_destroy(void *self, void *argument);
void opencl_memory_destroy(void *self, void *memory, uint64_t size);
int opencl_region_create(void *self, void *memory, uint64_t offset, uint64_t size, void **region);
int opencl_copy_in(void *self, void *to, const void *host, uint64_t size);
int opencl_copy_out(void *self, void *host, const void *from, uint64_t size);
int opencl_copy_enqueue(void *self, void *queue, void *to, const void *from, uint64_t size);
int opencl_fill(void *self, void *to, unsigned char byte, uint64_t size);
int opencl_space_limits(void *self, const struct tarn_memory_space *space,
                        struct tarn_memory_limits *limits);
int opencl_space_create(void *self, const struct tarn_memory_space *space, uint64_t size,
                        void **memory);
void opencl_space_destroy(void *self, const struct tarn_memory_space *space, void *memory,
                          uint64_t size);
int opencl_host_memory_create(void *self, uint64_t size, void **memory);
void opencl_host_memory_destroy(void *self, void *memory, uint64_t size);

#endif
