/* The checking kernels of a device table, in OpenCL C. */
#ifndef OPENCL_PATTERNS_H
#define OPENCL_PATTERNS_H

#include "opencl_device.h"

/* Makes the device's kernels; leaves them NULL where the device cannot have them. */
cl_int opencl_patterns_create(struct opencl_device *device);
void opencl_patterns_destroy(struct opencl_device *device);

/* As in struct tarn_device_table. */
int opencl_pattern_fill(void *self, void *queue, void *bytes, uint64_t size, const void *seeds,
                        uint64_t seed);
int opencl_pattern_compare(void *self, void *queue, const void *bytes, uint64_t size,
                           const void *seeds, uint64_t seed, void *wrongs, uint64_t wrong);

#endif
