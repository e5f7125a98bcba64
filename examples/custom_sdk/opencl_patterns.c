/* The optional part of a device with which checked execution proves every byte of a run: kernels
 * that write the pattern of a seed and look at it again. Seeds and findings are words in the
 * device's memory, so nothing is copied or waited for between two ops. They need 64-bit atomics and
 * a little-endian device; without them the table goes without these kernels. Cost: memory speed. */
#include "opencl_patterns.h"

#define GROUP 64u   /* work-items that run together */
#define ITEMS 2048u /* work-items; always as many, see enqueue */

/* A work-item takes CHUNK words at a time, so that a CPU's vectors get long runs; the last chunk
 * has also the bytes behind the words, and may have nothing else. Differing bytes are looked for
 * only in a chunk where words differ. */
static const char source[] =
    "#pragma OPENCL EXTENSION cl_khr_int64_extended_atomics : enable\n"
    "#define STEP (ulong)0x9e3779b97f4a7c15\n"
    "#define CHUNK 64\n"
    "kernel void fill(global uchar *bytes, ulong shift, global const uchar *seeds,\n"
    "                 ulong seeds_shift, ulong size, ulong seed)\n"
    "{\n"
    "    ulong words = size / 8, first = as_ulong(vload8(seed, seeds + seeds_shift));\n"
    "    bytes += shift;\n"
    "    for (ulong begin = get_global_id(0) * CHUNK; begin <= words;\n"
    "         begin += get_global_size(0) * CHUNK) {\n"
    "        ulong end = min(begin + CHUNK, words), value = first + begin * STEP;\n"
    "        for (ulong i = begin; i < end; i++, value += STEP)\n"
    "            vstore8(as_uchar8(value), i, bytes);\n"
    "        if (end < words) continue;\n"
    "        for (ulong j = 8 * words; j < size; j++, value >>= 8) bytes[j] = (uchar)value;\n"
    "    }\n"
    "}\n"
    "kernel void compare(global const uchar *bytes, ulong shift, global const uchar *seeds,\n"
    "                    ulong seeds_shift, ulong size, ulong seed, global uchar *wrongs,\n"
    "                    ulong wrongs_shift, ulong wrong)\n"
    "{\n"
    "    ulong words = size / 8, first = as_ulong(vload8(seed, seeds + seeds_shift));\n"
    "    bytes += shift;\n"
    "    for (ulong begin = get_global_id(0) * CHUNK; begin <= words;\n"
    "         begin += get_global_size(0) * CHUNK) {\n"
    "        ulong end = min(begin + CHUNK, words), differing = 0;\n"
    "        for (ulong i = begin; i < end; i++)\n"
    "            differing |= as_ulong(vload8(i, bytes)) ^ (first + i * STEP);\n"
    "        if (!differing && end < words) continue;\n"
    "        for (ulong j = 8 * begin; j < min(8 * (begin + CHUNK), size); j++) {\n"
    "            if (bytes[j] == (uchar)((first + j / 8 * STEP) >> 8 * (j % 8))) continue;\n"
    "            atom_min((volatile global ulong *)(wrongs + wrongs_shift + 8 * wrong), j);\n"
    "            return;\n"
    "        }\n"
    "    }\n"
    "}\n";

cl_int opencl_patterns_create(struct opencl_device *device)
{
    const char *text = source;
    cl_bool is_little_endian = CL_FALSE;
    cl_int code = clGetDeviceInfo(device->id, CL_DEVICE_ENDIAN_LITTLE, sizeof is_little_endian,
                                  &is_little_endian, NULL);
    if (code || !is_little_endian) return code;
    cl_program program = clCreateProgramWithSource(device->context, 1, &text, NULL, &code);
    if (code) return code;
    /* Where there are no 64-bit atomics, it does not compile. */
    if (clBuildProgram(program, 1, &device->id, "", NULL, NULL)) return clReleaseProgram(program);
    device->program = program;
    device->fill = clCreateKernel(program, "fill", &code);
    if (!code) device->compare = clCreateKernel(program, "compare", &code);
    return code;
}

void opencl_patterns_destroy(struct opencl_device *device)
{
    if (device->fill) clReleaseKernel(device->fill);
    if (device->compare) clReleaseKernel(device->compare);
    if (device->program) clReleaseProgram(device->program);
}

/* Both kernels begin with bytes, seeds, size, seed. The device is locked. */
static cl_int set_pattern(struct opencl_device *device, cl_kernel kernel, const void *bytes,
                          uint64_t size, const void *seeds, uint64_t seed)
{
    cl_int code = opencl_device_argument(device, kernel, 0, bytes);
    if (!code) code = opencl_device_argument(device, kernel, 2, seeds);
    if (!code) code = clSetKernelArg(kernel, 4, sizeof size, &size);
    if (!code) code = clSetKernelArg(kernel, 5, sizeof seed, &seed);
    return code;
}

/* One grid for every size: PoCL compiles a kernel anew for others, and counts wrongly which of the
 * results are in use (seen with 3.1: an assertion in pocl_release_dlhandle_cache). */
static cl_int enqueue(cl_command_queue queue, cl_kernel kernel)
{
    const size_t items = ITEMS, group = GROUP;
    return clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, &group, 0, NULL, NULL);
}

int opencl_pattern_fill(void *self, void *queue, void *bytes, uint64_t size, const void *seeds,
                        uint64_t seed)
{
    struct opencl_device *device = self;
    pthread_mutex_lock(&device->lock);
    cl_int code = set_pattern(device, device->fill, bytes, size, seeds, seed);
    if (!code) code = enqueue(queue, device->fill);
    pthread_mutex_unlock(&device->lock);
    return code;
}

int opencl_pattern_compare(void *self, void *queue, const void *bytes, uint64_t size,
                           const void *seeds, uint64_t seed, void *wrongs, uint64_t wrong)
{
    struct opencl_device *device = self;
    cl_kernel kernel = device->compare;
    pthread_mutex_lock(&device->lock);
    cl_int code = set_pattern(device, kernel, bytes, size, seeds, seed);
    if (!code) code = opencl_device_argument(device, kernel, 6, wrongs);
    if (!code) code = clSetKernelArg(kernel, 8, sizeof wrong, &wrong);
    if (!code) code = enqueue(queue, kernel);
    pthread_mutex_unlock(&device->lock);
    return code;
}
