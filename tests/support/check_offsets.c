/* Every storage is compared with every other one. Cost: quadratic in the storages. */
#include "check_offsets.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

void check_pairs(const struct tarn_problem *problem, const uint64_t *offset)
{
    const struct tarn_reuse *reuse = &problem->conflicts.reuse;
    const uint64_t *reserved = problem->blocks.reserved;
    for (uint32_t a = 0; a < reuse->count; a++)
        for (uint32_t b = 0; b < a; b++)
            if (offset[a] < offset[b] + reserved[b] && offset[b] < offset[a] + reserved[a])
                assert_true(tarn_reuse_is_safe(reuse, a, b));
}

uint64_t check_offsets(const struct tarn_problem *problem, const uint64_t *offset)
{
    const struct tarn_blocks *blocks = &problem->blocks;
    uint64_t footprint = 0;
    for (uint32_t b = 0; b < blocks->count; b++) {
        const struct tarn_block block = tarn_block_at(blocks, b);
        uint64_t end = offset[block.members[0]];
        assert_int_equal(end % block.alignment, 0);
        if (end + block.size > footprint) footprint = end + block.size;
        for (uint32_t i = 0; i < block.members_count; i++) {
            assert_int_equal(offset[block.members[i]], end);
            end += problem->graph->storages[block.members[i]].size;
        }
    }
    check_pairs(problem, offset);
    return footprint;
}
