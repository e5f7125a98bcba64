/* The memory functions of the CUDA device's table (tarn/device.h says what each does); `self` is a
 * struct tarn_cuda. */
#ifndef TARN_RUNTIME_CUDA_MEMORY_H
#define TARN_RUNTIME_CUDA_MEMORY_H

#include "tarn/device.h"

int tarn_cuda_memory_limits(void *self, struct tarn_memory_limits *limits);
int tarn_cuda_memory_create(void *self, uint64_t size, void **memory);
void tarn_cuda_memory_destroy(void *self, void *memory, uint64_t size);
int tarn_cuda_copy_in(void *self, void *device, const void *host, uint64_t size);
int tarn_cuda_copy_out(void *self, void *host, const void *device, uint64_t size);
int tarn_cuda_fill(void *self, void *device, unsigned char byte, uint64_t size);
int tarn_cuda_host_memory_create(void *self, uint64_t size, void **memory);
void tarn_cuda_host_memory_destroy(void *self, void *memory, uint64_t size);
int tarn_cuda_space_limits(void *self, const struct tarn_memory_space *space,
                           struct tarn_memory_limits *limits);
int tarn_cuda_space_create(void *self, const struct tarn_memory_space *space, uint64_t size,
                           void **memory);
void tarn_cuda_space_destroy(void *self, const struct tarn_memory_space *space, void *memory,
                             uint64_t size);

#endif
