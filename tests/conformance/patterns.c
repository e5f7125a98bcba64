/* Checking kernels: exact at every offset and size. Cost: the bytes filled and compared. */
#include <stdlib.h>

#include "kit.h"

/* Fills [offset, offset + size) of slot memory, compares, then once more with one byte changed. */
static void try_pattern(struct tarn_kit *kit, uint64_t offset, uint64_t size, uint64_t wrong)
{
    const struct tarn_device_table *table = kit->table;
    unsigned char before, after, *bytes = malloc(size);
    uint64_t none[2] = {UINT64_MAX, UINT64_MAX}, seed;
    void *queue = kit->queues[0], *region = (unsigned char *)kit->slots + offset, *one;
    if (table->region_create)
        OK(table->region_create(kit->self, kit->slots, offset, size, &region));
    OK(table->copy_in(kit->self, kit->wrongs, none, sizeof none));
    OK(table->pattern_fill(kit->self, queue, region, size, kit->seeds, 5));
    OK(table->pattern_compare(kit->self, queue, region, size, kit->seeds, 5, kit->wrongs, 0));
    tarn_kit_finish(kit);
    OK(table->copy_out(kit->self, bytes, region, size));
    seed = tarn_kit_seed(5);
    EQUAL(tarn_kit_pattern_compare(bytes, size, seed), size);
    one = (unsigned char *)kit->slots + offset + wrong;
    if (table->region_create)
        OK(table->region_create(kit->self, kit->slots, offset + wrong, 1, &one));
    before = bytes[wrong];
    after = (unsigned char)(before ^ 0x10);
    OK(table->copy_in(kit->self, one, &after, 1));
    OK(table->pattern_compare(kit->self, queue, region, size, kit->seeds, 5, kit->wrongs, 1));
    tarn_kit_finish(kit);
    OK(table->copy_out(kit->self, none, kit->wrongs, sizeof none));
    EQUAL(none[0], UINT64_MAX);
    EQUAL(none[1], wrong);
    if (table->region_destroy) table->region_destroy(kit->self, one);
    if (table->region_destroy) table->region_destroy(kit->self, region);
    free(bytes);
}

static void patterns_are_exact_at_every_offset_and_size(struct tarn_kit *kit)
{
    tarn_kit_create_queues(kit, 1);
    HOLDS(!kit->table->pattern_fill == !kit->table->pattern_compare);
    NEEDS(tarn_kit_choose(kit, TARN_KIT_BY_PATTERNS), "checking kernels");
    struct tarn_kit_random source = {11};
    for (uint64_t size = 1; size < 40; size++)
        try_pattern(kit, size % 9, size, tarn_kit_below(&source, (uint32_t)size));
    for (uint32_t i = 0; i < 10; i++) {
        uint32_t size = 1 + tarn_kit_below(&source, TARN_KIT_SLOTS * TARN_KIT_SLOT_BYTES - 100);
        try_pattern(kit, tarn_kit_below(&source, 100), size, tarn_kit_below(&source, size));
    }
}

/* Neither a neighbour's byte is touched nor a wrong that is smaller already. */
static void patterns_keep_to_their_bytes_and_the_smallest_wrong(struct tarn_kit *kit)
{
    tarn_kit_create_queues(kit, 1);
    NEEDS(tarn_kit_choose(kit, TARN_KIT_BY_PATTERNS), "checking kernels");
    const struct tarn_device_table *table = kit->table;
    unsigned char bytes[64];
    uint64_t wrong = 1;
    void *queue = kit->queues[0], *region = (unsigned char *)kit->slots + 13;
    if (table->region_create) OK(table->region_create(kit->self, kit->slots, 13, 30, &region));
    OK(table->fill(kit->self, kit->slots, 0xee, 64));
    OK(table->copy_in(kit->self, kit->wrongs, &wrong, 8));
    OK(table->pattern_compare(kit->self, queue, region, 30, kit->seeds, 3, kit->wrongs, 0));
    OK(table->pattern_fill(kit->self, queue, region, 30, kit->seeds, 3));
    tarn_kit_finish(kit);
    OK(table->copy_out(kit->self, &wrong, kit->wrongs, 8));
    HOLDS(wrong <= 1);
    OK(table->copy_out(kit->self, bytes, kit->slots, sizeof bytes));
    for (uint32_t i = 0; i < 64; i++) {
        bool inside = i >= 13 && i < 43;
        EQUAL(bytes[i], inside ? tarn_kit_pattern_byte(tarn_kit_seed(3), i - 13) : 0xee);
    }
    if (table->region_destroy) table->region_destroy(kit->self, region);
}

const struct tarn_kit_test tarn_kit_patterns[] = {
    {"patterns_are_exact_at_every_offset_and_size", patterns_are_exact_at_every_offset_and_size},
    {"patterns_keep_to_their_bytes_and_the_smallest_wrong",
     patterns_keep_to_their_bytes_and_the_smallest_wrong},
    {0},
};
