/* NVTX marks: op names for profilers, tensors inside the arena for memory checkers. NVTX is headers
 * only and calls the tool that the process was started under. Without a tool, or if Tarn was built
 * without the headers, tarn_nvtx_create returns NULL. All functions accept NULL. Any thread. */
#ifndef TARN_RUNTIME_CUDA_NVTX_H
#define TARN_RUNTIME_CUDA_NVTX_H

#include <stdint.h>

struct tarn_nvtx;

struct tarn_nvtx *tarn_nvtx_create(void);
void tarn_nvtx_destroy(struct tarn_nvtx *nvtx);

/* Ranges nest, on the calling thread. */
void tarn_nvtx_range_begin(struct tarn_nvtx *nvtx, const char *name);
void tarn_nvtx_range_end(struct tarn_nvtx *nvtx);

/* A heap is an allocation of which only its regions may be touched. Destroying it ends them. */
void tarn_nvtx_heap_create(struct tarn_nvtx *nvtx, void *memory, uint64_t size);
void tarn_nvtx_heap_destroy(struct tarn_nvtx *nvtx, void *memory);
void tarn_nvtx_region(struct tarn_nvtx *nvtx, void *memory, uint64_t offset, uint64_t size,
                      const char *name);

#endif
