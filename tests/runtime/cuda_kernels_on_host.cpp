/* The checking kernels of runtime/cuda/check.cu as functions of the host, one thread of a grid
 * after another: so their arithmetic can be tested where there is no GPU. */
#include <cstdint>

#define __global__
#define __device__
#define tarn_pattern_fill kernel_fill /* the library has functions of these names */
#define tarn_pattern_compare kernel_compare

struct dimensions {
    unsigned x;
};
static dimensions blockIdx, blockDim, threadIdx, gridDim;

struct ulonglong2 {
    unsigned long long x, y;
};

static ulonglong2 make_ulonglong2(unsigned long long x, unsigned long long y) { return {x, y}; }

static void atomicMin(unsigned long long *least, unsigned long long value)
{
    if (value < *least) *least = value;
}

static int __ffsll(long long word) { return __builtin_ffsll(word); }

#include "runtime/cuda/check.cu"

template <typename Kernel> static void launch(unsigned blocks, unsigned threads, Kernel kernel)
{
    gridDim.x = blocks;
    blockDim.x = threads;
    for (blockIdx.x = 0; blockIdx.x < blocks; blockIdx.x++) {
        for (threadIdx.x = 0; threadIdx.x < threads; threadIdx.x++) kernel();
    }
}

extern "C" void fill_on_host(unsigned blocks, unsigned threads, unsigned char *bytes, uint64_t size,
                             const uint64_t *seed)
{
    launch(blocks, threads, [=] { tarn_pattern_fill(bytes, size, seed); });
}

extern "C" void compare_on_host(unsigned blocks, unsigned threads, const unsigned char *bytes,
                                uint64_t size, const uint64_t *seed, unsigned long long *wrong)
{
    launch(blocks, threads, [=] { tarn_pattern_compare(bytes, size, seed, wrong); });
}
