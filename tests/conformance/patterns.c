/* Checking kernels: exact at every offset and size, and the smallest wrong byte wins. Cost: the
 * bytes filled and compared. */
#include <stdlib.h>

#include "kit.h"

static void *open_region(struct tarn_kit *kit, void *memory, uint64_t offset, uint64_t size)
{
    void *region = (unsigned char *)memory + offset;
    if (kit->table->region_create)
        OK(kit->table->region_create(kit->self, memory, offset, size, &region));
    return region;
}

static void close_region(struct tarn_kit *kit, void *region)
{
    if (kit->table->region_destroy) kit->table->region_destroy(kit->self, region);
}

/* Changes one byte of the memory. */
static void spoil(struct tarn_kit *kit, void *memory, uint64_t at, unsigned char before)
{
    unsigned char after = (unsigned char)(before ^ (1 << at % 8));
    void *one = open_region(kit, memory, at, 1);
    OK(kit->table->copy_in(kit->self, one, &after, 1));
    close_region(kit, one);
}

/* Fills [offset, offset + size), compares, then again with one byte changed, then with one more
 * changed behind it. */
static void try_pattern(struct tarn_kit *kit, void *memory, uint64_t offset, uint64_t size,
                        uint64_t wrong)
{
    const struct tarn_device_table *table = kit->table;
    unsigned char *bytes = malloc(size);
    const unsigned long long told = size;
    uint64_t wrongs[4] = {UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX};
    uint32_t value = (uint32_t)(size % TARN_KIT_VALUES);
    void *queue = kit->queues[0], *region = open_region(kit, memory, offset, size);
    HOLDS(bytes);
    OK(table->copy_in(kit->self, kit->wrongs, wrongs, sizeof wrongs));
    OK(table->pattern_fill(kit->self, queue, region, size, kit->seeds, value));
    OK(table->pattern_compare(kit->self, queue, region, size, kit->seeds, value, kit->wrongs, 0));
    tarn_kit_finish(kit);
    OK(table->copy_out(kit->self, bytes, region, size));
    uint64_t first = tarn_kit_pattern_compare(bytes, size, tarn_kit_seed(value));
    REQUIRE(first == size, "pattern_fill of %llu bytes wrote byte %llu wrong", told,
            (unsigned long long)first);
    spoil(kit, memory, offset + wrong, bytes[wrong]);
    OK(table->pattern_compare(kit->self, queue, region, size, kit->seeds, value, kit->wrongs, 1));
    tarn_kit_finish(kit);
    if (wrong + 1 < size) spoil(kit, memory, offset + size - 1, bytes[size - 1]);
    OK(table->pattern_compare(kit->self, queue, region, size, kit->seeds, value, kit->wrongs, 2));
    tarn_kit_finish(kit);
    OK(table->copy_out(kit->self, wrongs, kit->wrongs, sizeof wrongs));
    REQUIRE(wrongs[0] == UINT64_MAX,
            "pattern_compare of %llu bytes that are the pattern's says that byte %llu is wrong",
            told, (unsigned long long)wrongs[0]);
    for (uint32_t i = 1; i < 3; i++)
        REQUIRE(wrongs[i] == wrong,
                "pattern_compare of %llu bytes, of which the first wrong one is %llu, says %llu",
                told, (unsigned long long)wrong, (unsigned long long)wrongs[i]);
    REQUIRE(wrongs[3] == UINT64_MAX, "pattern_compare wrote a word beside wrongs[wrong]");
    close_region(kit, region);
    free(bytes);
}

static void patterns_are_exact_at_every_offset_and_size(struct tarn_kit *kit)
{
    tarn_kit_create_queues(kit, 1);
    NEEDS(tarn_kit_choose(kit, TARN_KIT_BY_PATTERNS), "checking kernels");
    struct tarn_kit_random source = {11};
    for (uint64_t size = 1; size < 40; size++)
        try_pattern(kit, kit->slots, size % 9, size, tarn_kit_below(&source, (uint32_t)size));
    for (uint32_t i = 0; i < 10; i++) {
        uint32_t size = 1 + tarn_kit_below(&source, TARN_KIT_SLOTS * TARN_KIT_SLOT_BYTES - 100);
        try_pattern(kit, kit->slots, tarn_kit_below(&source, 100), size,
                    tarn_kit_below(&source, size));
    }
}

/* Larger than what kernels do in one piece; the wrong byte is the first, the last, or any. */
static void large_patterns_are_exact(struct tarn_kit *kit)
{
    uint32_t most = kit->suite.effort == TARN_CONFORMANCE_QUICK ? 20 : 25;
    uint64_t room = (UINT64_C(1) << most) + 16;
    struct tarn_kit_random source = {12};
    void *memory;
    tarn_kit_create_queues(kit, 1);
    NEEDS(tarn_kit_choose(kit, TARN_KIT_BY_PATTERNS), "checking kernels");
    OK(kit->table->memory_create(kit->self, room, &memory));
    for (uint32_t k = 16; k <= most; k++) {
        uint64_t size = (UINT64_C(1) << k) + k % 3 - 1;
        uint64_t wrong = k % 3 == 0   ? size - 1
                         : k % 3 == 1 ? 0
                                      : tarn_kit_below(&source, (uint32_t)size);
        try_pattern(kit, memory, k % 8, size, wrong);
    }
    kit->table->memory_destroy(kit->self, memory, room);
}

/* Neither a neighbour's byte is touched nor a wrong that is smaller already. */
static void patterns_keep_to_their_bytes_and_the_smallest_wrong(struct tarn_kit *kit)
{
    enum { FIRST = 13, SIZE = 30, BYTES = 64, WRONG = 11 };
    tarn_kit_create_queues(kit, 1);
    NEEDS(tarn_kit_choose(kit, TARN_KIT_BY_PATTERNS), "checking kernels");
    const struct tarn_device_table *table = kit->table;
    unsigned char bytes[BYTES];
    void *queue = kit->queues[0], *region = open_region(kit, kit->slots, FIRST, SIZE);
    /* what the word is before, and what compare makes of it */
    static const uint64_t words[][2] = {{UINT64_MAX, WRONG}, {0, 0},       {WRONG - 1, WRONG - 1},
                                        {WRONG, WRONG},      {5, 5},       {WRONG + 1, WRONG},
                                        {1 << 20, WRONG},    {0xff, WRONG}};
    enum { WORDS = sizeof words / sizeof *words };
    uint64_t wrongs[WORDS + 1]; /* the last is for bytes that are right */
    for (uint32_t i = 0; i < WORDS; i++) wrongs[i] = words[i][0];
    wrongs[WORDS] = 20;
    OK(table->fill(kit->self, kit->slots, 0xee, BYTES));
    OK(table->copy_in(kit->self, kit->wrongs, wrongs, sizeof wrongs));
    OK(table->pattern_fill(kit->self, queue, region, SIZE, kit->seeds, 3));
    tarn_kit_finish(kit);
    spoil(kit, kit->slots, FIRST + WRONG, tarn_kit_pattern_byte(tarn_kit_seed(3), WRONG));
    for (uint32_t i = 0; i < WORDS; i++)
        OK(table->pattern_compare(kit->self, queue, region, SIZE, kit->seeds, 3, kit->wrongs, i));
    OK(table->pattern_compare(kit->self, queue, region, WRONG, kit->seeds, 3, kit->wrongs, WORDS));
    tarn_kit_finish(kit);
    OK(table->copy_out(kit->self, wrongs, kit->wrongs, sizeof wrongs));
    REQUIRE(wrongs[WORDS] == 20,
            "pattern_compare found all bytes right, and made of the word 20 "
            "the word %llu",
            (unsigned long long)wrongs[WORDS]);
    for (uint32_t i = 0; i < WORDS; i++)
        REQUIRE(wrongs[i] == words[i][1],
                "pattern_compare found byte %u wrong, and made of the word %llu the word %llu",
                WRONG, (unsigned long long)words[i][0], (unsigned long long)wrongs[i]);
    OK(table->copy_out(kit->self, bytes, kit->slots, sizeof bytes));
    for (uint32_t i = 0; i < BYTES; i++) {
        bool is_inside = i >= FIRST && i < FIRST + SIZE;
        unsigned char inside = tarn_kit_pattern_byte(tarn_kit_seed(3), i - FIRST);
        if (i != FIRST + WRONG)
            REQUIRE(bytes[i] == (is_inside ? inside : 0xee),
                    "pattern_fill or pattern_compare wrote beside its bytes, or changed them");
    }
    close_region(kit, region);
}

#define PATTERNS "device.h, \"Checking kernels\": "

const struct tarn_kit_test tarn_kit_patterns[] = {
    {"patterns_are_exact_at_every_offset_and_size", patterns_are_exact_at_every_offset_and_size,
     PATTERNS "the pattern is the little-endian words seeds[seed] + i * TARN_PATTERN_STEP, cut at "
              "`size` bytes"},
    {"large_patterns_are_exact", large_patterns_are_exact,
     PATTERNS "the pattern is the little-endian words seeds[seed] + i * TARN_PATTERN_STEP, cut at "
              "`size` bytes"},
    {"patterns_keep_to_their_bytes_and_the_smallest_wrong",
     patterns_keep_to_their_bytes_and_the_smallest_wrong,
     PATTERNS "compare makes wrongs[wrong] the smaller of what it is and the index of the first "
              "byte that is not the pattern's"},
    {0},
};
