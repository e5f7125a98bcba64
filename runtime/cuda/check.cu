/* Checking kernels, in the only file that nvcc compiles. A pattern is 8-byte words seed + i * STEP,
 * i = 0, 1, ..., cut at `size` (device.h), and begins at any address: so threads take the aligned
 * groups of 16 bytes inside, whose words lie `shift` bytes askew from the pattern's by the same
 * shift everywhere, and the first threads the up to 15 single bytes before and after. Cost: memory
 * bandwidth, one access of 16 bytes per thread and step. */
#include <cstdint>

#define STEP UINT64_C(0x9e3779b97f4a7c15)
#define GROUP 16u

struct split {
    uint64_t head; /* single bytes before the first group */
    uint64_t groups;
    uint64_t tail; /* single bytes after the last group */
};

static __device__ struct split split_bytes(const unsigned char *bytes, uint64_t size)
{
    struct split split;
    uint64_t head = -(uint64_t)(uintptr_t)bytes & (GROUP - 1);
    split.head = head < size ? head : size;
    split.groups = (size - split.head) / GROUP;
    split.tail = size - split.head - split.groups * GROUP;
    return split;
}

static __device__ unsigned char pattern_byte(uint64_t seed, uint64_t i)
{
    return (unsigned char)((seed + i / 8 * STEP) >> (i % 8 * 8));
}

/* The pattern's bytes i to i + 15. */
static __device__ ulonglong2 pattern_group(uint64_t seed, uint64_t i)
{
    uint64_t word = seed + i / 8 * STEP;
    unsigned shift = (unsigned)(i % 8) * 8;
    if (shift == 0) return make_ulonglong2(word, word + STEP);
    uint64_t next = word + STEP, last = next + STEP;
    return make_ulonglong2(word >> shift | next << (64 - shift),
                           next >> shift | last << (64 - shift));
}

static __device__ uint64_t thread_index(void)
{
    return (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
}

static __device__ uint64_t threads_count(void) { return (uint64_t)gridDim.x * blockDim.x; }

/* The k-th single byte's index. */
static __device__ uint64_t single(const struct split *split, uint64_t k)
{
    return k < split->head ? k : k + split->groups * GROUP;
}

extern "C" __global__ void tarn_pattern_fill(unsigned char *bytes, uint64_t size,
                                             const uint64_t *seed_at)
{
    uint64_t seed = *seed_at;
    struct split split = split_bytes(bytes, size);
    ulonglong2 *groups = (ulonglong2 *)(bytes + split.head);
    for (uint64_t g = thread_index(); g < split.groups; g += threads_count())
        groups[g] = pattern_group(seed, split.head + g * GROUP);
    for (uint64_t k = thread_index(); k < split.head + split.tail; k += threads_count()) {
        uint64_t i = single(&split, k);
        bytes[i] = pattern_byte(seed, i);
    }
}

static __device__ void note_wrong(unsigned long long *wrong, uint64_t i)
{
    atomicMin(wrong, (unsigned long long)i);
}

extern "C" __global__ void tarn_pattern_compare(const unsigned char *bytes, uint64_t size,
                                                const uint64_t *seed_at, unsigned long long *wrong)
{
    uint64_t seed = *seed_at;
    struct split split = split_bytes(bytes, size);
    const ulonglong2 *groups = (const ulonglong2 *)(bytes + split.head);
    for (uint64_t g = thread_index(); g < split.groups; g += threads_count()) {
        uint64_t i = split.head + g * GROUP;
        ulonglong2 found = groups[g], right = pattern_group(seed, i);
        uint64_t low = found.x ^ right.x, high = found.y ^ right.y;
        if ((low | high) == 0) continue;
        note_wrong(wrong, low ? i + (uint64_t)(__ffsll((long long)low) - 1) / 8
                              : i + 8 + (uint64_t)(__ffsll((long long)high) - 1) / 8);
        break; /* later groups of this thread come after it */
    }
    for (uint64_t k = thread_index(); k < split.head + split.tail; k += threads_count()) {
        uint64_t i = single(&split, k);
        if (bytes[i] != pattern_byte(seed, i)) note_wrong(wrong, i);
    }
}

#ifdef __CUDACC__ /* the other kernels are also tested on the host, which has no such clock */
static __device__ uint64_t now_ns(void)
{
    uint64_t now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}

extern "C" __global__ void tarn_spin(uint64_t duration_ns)
{
    for (uint64_t begin = now_ns(); now_ns() - begin < duration_ns;) continue;
}
#endif
