/* The containers of streams/base, each against the plainest way to do the same. */
#include <setjmp.h>
#include <stdalign.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "streams/base/region.h"
#include "support/random_graph.h"

/* ---- Regions ---- */

static bool is_filled(const unsigned char *bytes, size_t size, int with)
{
    for (size_t i = 0; i < size; i++)
        if (bytes[i] != with) return false;
    return true;
}

static void a_region_hands_out_zeros_aligned_and_apart(void **state)
{
    (void)state;
    struct tarn_region region = {.chunks = NULL};
    struct random_source source = {1};
    unsigned char *blocks[500];
    size_t sizes[500];
    for (int i = 0; i < 500; i++) {
        sizes[i] = random_below(&source, i % 50 == 0 ? 3000000 : 300);
        blocks[i] = tarn_region_take(&region, sizes[i], 1);
        assert_non_null(blocks[i]);
        assert_int_equal((uintptr_t)blocks[i] % alignof(max_align_t), 0);
        assert_true(is_filled(blocks[i], sizes[i], 0));
        memset(blocks[i], i % 255 + 1, sizes[i]);
        assert_string_equal(tarn_region_string(&region, i % 2 ? "odd" : NULL), i % 2 ? "odd" : "");
        assert_true(tarn_region_is_valid(&region));
    }
    for (int i = 0; i < 500; i++) assert_true(is_filled(blocks[i], sizes[i], i % 255 + 1));
    assert_false(region.is_exhausted);
    tarn_region_finish(&region);
    assert_null(region.chunks);
    assert_non_null(tarn_region_take(&region, 1, 1)); /* it can be used again */
    tarn_region_finish(&region);
}

static void what_cannot_be_there_is_refused_and_remembered(void **state)
{
    (void)state;
    struct tarn_region region = {.chunks = NULL};
    assert_null(tarn_region_take(&region, SIZE_MAX / 2, 3));
    assert_true(region.is_exhausted);
    tarn_region_finish(&region);
    assert_false(region.is_exhausted);
    assert_null(tarn_region_take(&region, SIZE_MAX, 1));
    assert_true(region.is_exhausted);
    assert_non_null(tarn_region_take(&region, 0, 8));
    assert_true(region.is_exhausted); /* remembered */
    tarn_region_finish(&region);
}

/* Marks in marks, with blocks of all sizes: after each release the older blocks are untouched, and
 * what is taken next is zero. */
static void a_release_gives_back_what_came_after_its_mark(void **state)
{
    (void)state;
    enum { DEPTH = 40, BLOCKS = 12 };
    struct random_source source = {7};
    for (int run = 0; run < 50; run++) {
        struct tarn_region region = {.chunks = NULL};
        struct tarn_region_mark marks[DEPTH];
        unsigned char *blocks[DEPTH][BLOCKS];
        size_t sizes[DEPTH][BLOCKS];
        int depth = 0;
        for (int step = 0; step < 200; step++) {
            if (depth < DEPTH && random_below(&source, 2) == 0) {
                marks[depth] = tarn_region_mark(&region);
                for (int k = 0; k < BLOCKS; k++) {
                    sizes[depth][k] = random_below(&source, k == 0 ? 20000 : 200);
                    blocks[depth][k] = tarn_region_take(&region, sizes[depth][k], 1);
                    assert_true(is_filled(blocks[depth][k], sizes[depth][k], 0));
                    memset(blocks[depth][k], depth + 1, sizes[depth][k]);
                }
                depth++;
            } else if (depth > 0) {
                depth -= 1 + (int)random_below(&source, (uint32_t)depth);
                tarn_region_release(&region, marks[depth]);
            }
            assert_true(tarn_region_is_valid(&region));
            for (int d = 0; d < depth; d++)
                for (int k = 0; k < BLOCKS; k++)
                    assert_true(is_filled(blocks[d][k], sizes[d][k], d + 1));
        }
        tarn_region_finish(&region);
    }
}

static void an_array_that_grows_keeps_its_items(void **state)
{
    (void)state;
    struct tarn_region region = {.chunks = NULL};
    uint64_t *items = NULL;
    size_t room = 0;
    for (uint64_t i = 0; i < 100000; i++) {
        items = tarn_region_grow(&region, items, &room, i + 1, sizeof *items);
        assert_non_null(items);
        assert_true(room > i);
        assert_int_equal(items[i], 0);
        items[i] = i * i;
    }
    for (uint64_t i = 0; i < 100000; i++) assert_int_equal(items[i], i * i);
    assert_null(tarn_region_grow(&region, items, &room, SIZE_MAX, sizeof *items));
    assert_int_equal(items[99999], (uint64_t)99999 * 99999);
    tarn_region_finish(&region);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_region_hands_out_zeros_aligned_and_apart),
        cmocka_unit_test(what_cannot_be_there_is_refused_and_remembered),
        cmocka_unit_test(a_release_gives_back_what_came_after_its_mark),
        cmocka_unit_test(an_array_that_grows_keeps_its_items),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
