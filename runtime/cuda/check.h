/* Checking kernels of the CUDA device (cuda/check.cu): finding them in the image that the build
 * embeds, and launching them. If Tarn was built without nvcc there is no image, and a launch
 * returns "not supported"; if the image does not suit the GPU, a launch returns the reason. */
#ifndef TARN_RUNTIME_CUDA_CHECK_H
#define TARN_RUNTIME_CUDA_CHECK_H

#include <stdint.h>

#include "api.h"

struct tarn_cuda_check {
    tarn_cuda_code failure; /* why there are no kernels; 0: they are loaded */
    tarn_cuda_library library;
    tarn_cuda_kernel fill, compare, spin;
    uint32_t blocks_max; /* enough to keep the whole GPU busy */
};

/* The device is current. A failure is kept for the launches. */
void tarn_cuda_check_init(struct tarn_cuda_check *check, const struct tarn_cuda_api *api,
                          int ordinal);
void tarn_cuda_check_finish(struct tarn_cuda_check *check, const struct tarn_cuda_api *api);

/* As the device table's pattern_fill and pattern_compare; they only enqueue. seed and wrong are
 * device addresses. */
tarn_cuda_code tarn_cuda_pattern_fill(const struct tarn_cuda_check *check,
                                      const struct tarn_cuda_api *api, void *queue, void *bytes,
                                      uint64_t size, const uint64_t *seed);
tarn_cuda_code tarn_cuda_pattern_compare(const struct tarn_cuda_check *check,
                                         const struct tarn_cuda_api *api, void *queue,
                                         const void *bytes, uint64_t size, const uint64_t *seed,
                                         uint64_t *wrong);
tarn_cuda_code tarn_cuda_spin(const struct tarn_cuda_check *check, const struct tarn_cuda_api *api,
                              void *queue, uint64_t duration_ns);

#endif
