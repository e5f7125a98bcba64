/* The containers of streams/base, each against the plainest way to do the same. */
#include <setjmp.h>
#include <stdalign.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "streams/base/bisect.h"
#include "streams/base/bitset.h"
#include "streams/base/deadline.h"
#include "streams/base/error.h"
#include "streams/base/heap.h"
#include "streams/base/random.h"
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

/* ---- Heaps ---- */

enum { NUMBERS = 300 };

/* Pushes and pops by chance, against a search through all numbers that are in. */
static void try_heap(const uint64_t *key, uint64_t seed)
{
    struct random_source source = {seed};
    uint32_t items[NUMBERS];
    struct tarn_heap heap = {.key = key, .items = items};
    bool in[NUMBERS] = {false};
    for (int step = 0; step < 4000; step++) {
        uint32_t number = random_below(&source, NUMBERS), least = NUMBERS, count = 0;
        if (!in[number] && random_percent(&source, step % 1000 < 600 ? 70 : 30)) {
            in[number] = true;
            tarn_heap_push(&heap, number);
        }
        for (uint32_t n = 0; n < NUMBERS; n++) {
            if (!in[n]) continue;
            count++;
            if (least == NUMBERS || (key && key[n] < key[least])) least = n;
        }
        assert_int_equal(heap.count, count);
        assert_true(tarn_heap_is_valid(&heap));
        if (count == 0 || !random_percent(&source, 50)) continue;
        assert_int_equal(tarn_heap_first(&heap), least);
        assert_int_equal(tarn_heap_pop(&heap), least);
        assert_true(tarn_heap_is_valid(&heap));
        in[least] = false;
    }
}

static void a_heap_gives_the_least_key_and_of_equal_ones_the_least_number(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct random_source source = {seed};
        uint64_t key[NUMBERS];
        for (uint32_t n = 0; n < NUMBERS; n++)
            key[n] = seed % 2 ? random_next(&source) : random_below(&source, 10);
        try_heap(key, seed);
    }
}

static void a_heap_without_keys_gives_the_least_number(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) try_heap(NULL, seed);
}

/* ---- Random numbers ---- */

/* The first numbers from the seed 1234567, as published with the generator. */
static void random_numbers_are_those_of_splitmix64(void **state)
{
    static const uint64_t published[] = {
        UINT64_C(6457827717110365317), UINT64_C(3203168211198807973), UINT64_C(9817491932198370423),
        UINT64_C(4593380528125082431), UINT64_C(16408922859458223821)};
    uint64_t random = 1234567;
    (void)state;
    for (int i = 0; i < 5; i++) assert_true(tarn_random_next(&random) == published[i]);
}

static void draws_are_in_range_and_every_value_comes(void **state)
{
    (void)state;
    uint64_t random = 1;
    for (uint32_t limit = 1; limit <= 20; limit++) {
        uint32_t seen = 0;
        for (int i = 0; i < 1000; i++) {
            uint32_t drawn = tarn_random_below(&random, limit);
            assert_true(drawn < limit);
            seen |= UINT32_C(1) << drawn;
        }
        assert_int_equal(seen, (UINT32_C(1) << limit) - 1);
    }
    assert_int_equal(tarn_random_below(&random, 0), 0);
    assert_true(tarn_random_below(&random, UINT32_MAX) < UINT32_MAX);
    double least = 1, greatest = 0;
    for (int i = 0; i < 10000; i++) {
        double unit = tarn_random_unit(&random);
        assert_true(unit >= 0 && unit < 1);
        if (unit < least) least = unit;
        if (unit > greatest) greatest = unit;
    }
    assert_true(least < 0.01 && greatest > 0.99);
}

/* ---- Bit sets ---- */

static void bisection_ends_where_the_answer_turns(void **state)
{
    (void)state;
    for (uint32_t count = 0; count < 20; count++) {
        for (uint32_t turn = 0; turn <= count; turn++) {
            uint32_t low = 0, high = count;
            TARN_BISECT(low, high, middle, middle < turn);
            assert_int_equal(low, turn);
            assert_int_equal(high, turn);
        }
    }
}

static void a_set_holds_what_was_added_and_not_dropped(void **state)
{
    (void)state;
    enum { WORDS = 4, SIZE = WORDS * 64 };
    struct random_source source = {3};
    uint64_t set[WORDS] = {0}, other[WORDS] = {0};
    bool in[SIZE] = {false};
    for (int step = 0; step < 5000; step++) {
        uint32_t i = random_below(&source, SIZE), size = 0, next = 0;
        uint32_t what = random_below(&source, 100);
        if (what < 30) tarn_set_add(set, i);
        if (what >= 30 && what < 70) tarn_set_drop(set, i);
        if (what >= 70) tarn_set_put(set, i, what % 2);
        in[i] = what < 30 || (what >= 70 && what % 2);
        for (uint32_t n = 0; n < SIZE; n++) {
            assert_int_equal(tarn_set_has(set, n), in[n]);
            size += in[n];
        }
        assert_int_equal(tarn_set_size(set, WORDS), size);
        assert_int_equal(tarn_set_is_empty(set, WORDS), size == 0);
        TARN_SET_EACH(member, w, WORDS, set[w]) {
            while (!in[next]) next++;
            assert_int_equal(member, next++);
            size--;
        }
        assert_int_equal(size, 0);
    }
    tarn_set_add(other, 5);
    tarn_set_join(other, set, WORDS);
    for (uint32_t n = 0; n < SIZE; n++) assert_int_equal(tarn_set_has(other, n), in[n] || n == 5);
    tarn_set_clear(other, WORDS);
    assert_true(tarn_set_is_empty(other, WORDS));
}

/* ---- Deadlines ---- */

/* No seconds mean no limit, so that a time that is over must leave some. */
static void what_is_left_of_a_time_that_is_over_is_not_unlimited(void **state)
{
    (void)state;
    const struct tarn_deadline none = tarn_deadline_in(NULL, 0), over = {NULL, 1e-3},
                               later = tarn_deadline_in(NULL, 1e6);
    assert_true(tarn_deadline_left(&none) == 0);
    assert_true(tarn_deadline_is_over(&over));
    assert_true(tarn_deadline_left(&over) > 0 && tarn_deadline_left(&over) < 1e-6);
    assert_true(tarn_deadline_left(&later) > 0 && tarn_deadline_left(&later) <= 1e6);
}

static void one_byte_is_no_plural(void **state)
{
    (void)state;
    assert_string_equal(tarn_bytes_phrase(0).text, "0 bytes");
    assert_string_equal(tarn_bytes_phrase(1).text, "1 byte");
    assert_string_equal(tarn_bytes_phrase(UINT64_MAX).text, "18446744073709551615 bytes");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_region_hands_out_zeros_aligned_and_apart),
        cmocka_unit_test(what_cannot_be_there_is_refused_and_remembered),
        cmocka_unit_test(a_release_gives_back_what_came_after_its_mark),
        cmocka_unit_test(an_array_that_grows_keeps_its_items),
        cmocka_unit_test(a_heap_gives_the_least_key_and_of_equal_ones_the_least_number),
        cmocka_unit_test(a_heap_without_keys_gives_the_least_number),
        cmocka_unit_test(random_numbers_are_those_of_splitmix64),
        cmocka_unit_test(draws_are_in_range_and_every_value_comes),
        cmocka_unit_test(a_set_holds_what_was_added_and_not_dropped),
        cmocka_unit_test(bisection_ends_where_the_answer_turns),
        cmocka_unit_test(what_is_left_of_a_time_that_is_over_is_not_unlimited),
        cmocka_unit_test(one_byte_is_no_plural),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
