/* CUDA's checking kernels, run on the host, against the library's own patterns: at every offset
 * from an aligned address, at every small size, in grids that divide the work in different ways. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "runtime/check/pattern.h"
#include "support/random_graph.h"

void fill_on_host(unsigned blocks, unsigned threads, unsigned char *bytes, uint64_t size,
                  const uint64_t *seed);
void compare_on_host(unsigned blocks, unsigned threads, const unsigned char *bytes, uint64_t size,
                     const uint64_t *seed, unsigned long long *wrong);

enum { OFFSETS = 33, SIZES = 150, ROOM = 40000, BORDER = 0x5c };

static _Alignas(64) unsigned char bytes[ROOM + 64], expected[ROOM + 64];

static void check_fill(uint64_t offset, uint64_t size, uint64_t seed)
{
    memset(bytes, BORDER, offset + size + 40);
    memset(expected, BORDER, offset + size + 40);
    tarn_pattern_fill(expected + offset, size, seed);
    fill_on_host(1 + (unsigned)(seed % 3), 1 + (unsigned)(seed % 37), bytes + offset, size, &seed);
    assert_memory_equal(bytes, expected, offset + size + 40);
}

static uint64_t compare(uint64_t offset, uint64_t size, uint64_t seed)
{
    unsigned long long wrong = UINT64_MAX;
    compare_on_host(1 + (unsigned)(seed % 3), 1 + (unsigned)(seed % 37), bytes + offset, size,
                    &seed, &wrong);
    return wrong;
}

/* The first of one or two wrong bytes. */
static void check_compare(uint64_t offset, uint64_t size, uint64_t seed,
                          struct random_source *source)
{
    assert_true(compare(offset, size, seed) == UINT64_MAX);
    bytes[offset - 1] ^= 1; /* outside does not count */
    bytes[offset + size] ^= 1;
    assert_true(compare(offset, size, seed) == UINT64_MAX);
    uint64_t first = random_below(source, (uint32_t)size);
    uint64_t second = random_below(source, (uint32_t)size);
    bytes[offset + first] ^= 0x10;
    assert_true(compare(offset, size, seed) == first);
    bytes[offset + second] ^= 0x80;
    assert_true(compare(offset, size, seed) == (first < second ? first : second));
}

static void kernels_agree_with_the_library_at_every_offset_and_size(void **state)
{
    (void)state;
    struct random_source source = {5};
    for (uint64_t offset = 1; offset < OFFSETS; offset++) {
        for (uint64_t size = 1; size < SIZES; size++) {
            uint64_t seed = random_next(&source);
            check_fill(offset, size, seed);
            check_compare(offset, size, seed, &source);
        }
    }
}

static void large_patterns_need_several_steps_of_each_thread(void **state)
{
    (void)state;
    struct random_source source = {6};
    for (int i = 0; i < 200; i++) {
        uint64_t offset = 1 + random_below(&source, 32), seed = random_next(&source);
        uint64_t size = 1 + random_below(&source, ROOM - 64);
        check_fill(offset, size, seed);
        check_compare(offset, size, seed, &source);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernels_agree_with_the_library_at_every_offset_and_size),
        cmocka_unit_test(large_patterns_need_several_steps_of_each_thread),
    };
    return cmocka_run_group_tests_name("cuda_kernels", tests, NULL, NULL);
}
