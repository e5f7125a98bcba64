/* The kernels of Tarn's image, by name, as functions of the host: written anew from the device
 * table's contract. The image itself is not looked at. */
#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "fake.h"
#include "tarn/device.h"

struct fill_arguments {
    unsigned char *bytes;
    uint64_t size;
    const uint64_t *seed;
};

struct compare_arguments {
    const unsigned char *bytes;
    uint64_t size;
    const uint64_t *seed;
    uint64_t *wrong;
};

/* A GPU stops the process at bytes that are neither its own nor the host's. */
static bool may_touch(const void *bytes, uint64_t size)
{
    pthread_mutex_lock(&fake.lock);
    const struct block *block = fake_find_block(bytes, size);
    bool may = block && fake_reaches(fake_kernel_device, block);
    if (!may) {
        fake_violation("a kernel touches %llu bytes %s", (unsigned long long)size,
                       block ? "of another device" : "outside of what is allocated");
        fake_poison(TARN_CUDA_ILLEGAL_ADDRESS);
    }
    pthread_mutex_unlock(&fake.lock);
    return may;
}

static unsigned char pattern_byte(uint64_t seed, uint64_t i)
{
    return (unsigned char)((seed + i / 8 * TARN_PATTERN_STEP) >> 8 * (i % 8));
}

static void pattern_fill(void *argument)
{
    const struct fill_arguments *given = argument;
    if (!may_touch(given->bytes, given->size) || !may_touch(given->seed, 8)) return;
    uint64_t word = *given->seed, i = 0;
    for (; i + 8 <= given->size; i += 8, word += TARN_PATTERN_STEP)
        memcpy(given->bytes + i, &word, 8);
    for (; i < given->size; i++) given->bytes[i] = pattern_byte(*given->seed, i);
}

static void pattern_compare(void *argument)
{
    const struct compare_arguments *given = argument;
    if (!may_touch(given->bytes, given->size) || !may_touch(given->seed, 8) ||
        !may_touch(given->wrong, 8))
        return;
    uint64_t seed = *given->seed, word = seed, i = 0;
    for (; i + 8 <= given->size; i += 8, word += TARN_PATTERN_STEP) {
        if (memcmp(given->bytes + i, &word, 8) != 0) break;
    }
    while (i < given->size && given->bytes[i] == pattern_byte(seed, i)) i++;
    if (i < given->size && i < *given->wrong) *given->wrong = i;
}

static void spin(void *argument)
{
    uint64_t ns = *(const uint64_t *)argument;
    struct timespec begin, now;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    do {
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while ((uint64_t)(now.tv_sec - begin.tv_sec) * 1000000000u + (uint64_t)now.tv_nsec -
                 (uint64_t)begin.tv_nsec <
             ns);
}

/* For tests: runs until *open. */
static void gate(void *argument)
{
    const atomic_int *open = *(atomic_int *const *)argument;
    while (!atomic_load(open)) usleep(1000);
}

static const struct kernel kernels[] = {
    {"tarn_pattern_fill", pattern_fill, {8, 8, 8}},
    {"tarn_pattern_compare", pattern_compare, {8, 8, 8, 8}},
    {"tarn_spin", spin, {8}},
    {"fake_gate", gate, {8}},
};

const struct kernel *fake_kernel(const char *name)
{
    for (size_t i = 0; i < sizeof kernels / sizeof kernels[0]; i++) {
        if (strcmp(kernels[i].name, name) == 0) return &kernels[i];
    }
    return NULL;
}

bool fake_is_kernel(const void *kernel)
{
    for (size_t i = 0; i < sizeof kernels / sizeof kernels[0]; i++) {
        if (kernel == &kernels[i]) return true;
    }
    return false;
}
