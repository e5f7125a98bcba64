/* Builds the instance for exact search. Neighbouring members of a group that are in conflict with
 * the same storages become one piece; conflicts are found in exact/conflicts.c, sections in
 * exact/cliques.c.
 *
 * Cost: O(n^2) bits for n storages. */
#include "instance.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "builder.h"
#include "streams/base/checked.h"

enum { STORAGES_MAX = 8192 };
#define UNITS_MAX ((uint64_t)1 << 60)

/* ---- Blocks and pieces ---- */

/* Writes which slots of other blocks the storage is in conflict with. */
static void look_around(const struct tarn_exact_builder *builder, struct tarn_block block,
                        uint32_t a, uint64_t *mask)
{
    const struct tarn_conflicts *conflicts = &builder->problem->conflicts;
    tarn_conflicts_mask(conflicts, a, mask);
    for (uint32_t k = 0; k < block.members_count; k++)
        tarn_set_drop(mask, conflicts->slot_of[block.members[k]]);
    for (uint32_t w = 0; w < conflicts->words_count; w++) mask[w] &= builder->present[w];
}

/* Appends a member to the pieces of block i: to the last one, if the same are in conflict with
 * both. */
static void take_member(struct tarn_exact_builder *builder, uint32_t i, struct tarn_block block,
                        uint32_t k)
{
    struct tarn_exact_instance *instance = builder->instance;
    const struct tarn_blocks *blocks = &builder->problem->blocks;
    size_t bytes = builder->problem->conflicts.words_count * sizeof(uint64_t);
    uint32_t a = block.members[k];
    uint64_t *mask = builder->mask[k % 2];
    if (block.members_count > 1) look_around(builder, block, a, mask);
    uint32_t before = k > 0 ? block.members[k - 1] : a;
    bool is_behind =
        k > 0 && blocks->within[a] == blocks->within[before] + blocks->reserved[before];
    if (!is_behind || memcmp(mask, builder->mask[1 - k % 2], bytes) != 0) {
        uint32_t p = builder->pieces_count++;
        assert(k == 0 || instance->piece_block[p - 1] == i);
        builder->storage[p] = a;
        instance->piece_block[p] = i;
        instance->piece_within[p] = (int64_t)blocks->within[a];
    }
    builder->piece_of[a] = builder->pieces_count - 1;
    instance->piece_size[builder->piece_of[a]] += (int64_t)blocks->reserved[a];
}

static void take_block(struct tarn_exact_builder *builder, uint32_t b)
{
    struct tarn_exact_instance *instance = builder->instance;
    const struct tarn_block block = tarn_block_at(&builder->problem->blocks, b);
    uint32_t i = instance->count++;
    builder->free_index[b] = i;
    instance->block[i] = b;
    instance->size[i] = (int64_t)block.size;
    instance->alignment[i] = (int64_t)block.alignment;
    instance->piece_begin[i] = builder->pieces_count;
    for (uint32_t k = 0; k < block.members_count; k++) take_member(builder, i, block, k);
    instance->piece_begin[i + 1] = builder->pieces_count;
    assert(instance->piece_begin[i] < instance->piece_begin[i + 1]);
}

static void note_present(struct tarn_exact_builder *builder)
{
    const struct tarn_blocks *blocks = &builder->problem->blocks;
    for (uint32_t b = 0; b < blocks->count; b++) {
        const struct tarn_block block = tarn_block_at(blocks, b);
        uint32_t leader = tarn_exact_leader(builder, b);
        for (uint32_t k = 0; k < block.members_count; k++) {
            builder->block_of[block.members[k]] = leader;
            if (!tarn_exact_is_left_out(builder, leader))
                tarn_set_add(builder->present,
                             builder->problem->conflicts.slot_of[block.members[k]]);
        }
    }
}

/* Followers are lone blocks: each has the piece of its leader, which comes before it in the list.
 */
static void take_followers(struct tarn_exact_builder *builder)
{
    const struct tarn_blocks *blocks = &builder->problem->blocks;
    for (uint32_t b = 0; b < blocks->count; b++) builder->follower[b] = TARN_NONE;
    for (uint32_t b = 0; builder->leader && b < blocks->count; b++) {
        uint32_t leader = builder->leader[b];
        if (leader == b || tarn_exact_is_left_out(builder, leader)) continue;
        builder->follower[b] = builder->follower[leader];
        builder->follower[leader] = b;
        builder->piece_of[tarn_block_at(blocks, b).members[0]] =
            builder->piece_of[tarn_block_at(blocks, leader).members[0]];
    }
}

/* In bytes. */
static void take_blocks(struct tarn_exact_builder *builder)
{
    const struct tarn_blocks *blocks = &builder->problem->blocks;
    note_present(builder);
    for (uint32_t a = 0; a < blocks->storages_count; a++) builder->piece_of[a] = TARN_NONE;
    for (uint32_t b = 0; b < blocks->count; b++) {
        builder->free_index[b] = TARN_NONE;
        if (!tarn_exact_is_left_out(builder, b)) take_block(builder, b);
    }
    take_followers(builder);
}

/* The unit: of everything that positions are sums of. An alignment of 1 asks for nothing. */
static void find_unit(const struct tarn_exact_builder *builder)
{
    struct tarn_exact_instance *instance = builder->instance;
    uint64_t unit = 0;
    for (uint32_t i = 0; i < instance->count; i++)
        if (instance->alignment[i] > 1)
            unit = tarn_common_divisor(unit, (uint64_t)instance->alignment[i]);
    for (uint32_t p = 0; p < builder->pieces_count; p++)
        unit = tarn_common_divisor(tarn_common_divisor(unit, (uint64_t)instance->piece_size[p]),
                                   (uint64_t)instance->piece_within[p]);
    instance->unit = unit == 0 ? 1 : unit;
}

static void count_units(struct tarn_exact_instance *instance, uint32_t pieces_count)
{
    int64_t unit = (int64_t)instance->unit;
    for (uint32_t i = 0; i < instance->count; i++) {
        assert(instance->size[i] % unit == 0);
        instance->size[i] /= unit;
        if (instance->alignment[i] > 1) instance->alignment[i] /= unit;
    }
    for (uint32_t p = 0; p < pieces_count; p++) {
        instance->piece_within[p] /= unit;
        instance->piece_size[p] /= unit;
    }
}

static int compare_ranked(const void *a, const void *b)
{
    const struct tarn_exact_ranked *x = a, *y = b;
    if (x->size != y->size) return x->size > y->size ? -1 : 1;
    return (x->piece > y->piece) - (x->piece < y->piece);
}

static void sort_by_size(struct tarn_exact_builder *builder)
{
    for (uint32_t p = 0; p < builder->pieces_count; p++)
        builder->ranked[p] = (struct tarn_exact_ranked){builder->instance->piece_size[p], p};
    qsort(builder->ranked, builder->pieces_count, sizeof *builder->ranked, compare_ranked);
    for (uint32_t i = 0; i < builder->pieces_count; i++)
        builder->rank_of[builder->ranked[i].piece] = i;
}

/* ---- Guides ---- */

static void measure_lives(const struct tarn_exact_builder *builder)
{
    struct tarn_exact_instance *instance = builder->instance;
    const struct tarn_problem *problem = builder->problem;
    for (uint32_t p = 0; p < builder->pieces_count; p++) {
        uint32_t b = instance->piece_block[p], a = builder->storage[p];
        int64_t life = (int64_t)tarn_problem_end(problem, a) - tarn_problem_begin(problem, a);
        if (life > instance->life[b]) instance->life[b] = life;
    }
}

/* ---- The whole ---- */

static bool allocate_instance(struct tarn_exact_instance *instance, struct tarn_region *region,
                              size_t blocks, size_t pieces)
{
    instance->set_words = (uint32_t)(blocks / 64 + 1);
    instance->block = tarn_region_take(region, blocks, sizeof *instance->block);
    instance->size = tarn_region_take(region, blocks, sizeof *instance->size);
    instance->alignment = tarn_region_take(region, blocks, sizeof *instance->alignment);
    instance->plain = tarn_region_take(region, blocks, sizeof *instance->plain);
    instance->adjacent =
        tarn_region_take(region, blocks * instance->set_words, sizeof *instance->adjacent);
    instance->forbidden_begin =
        tarn_region_take(region, blocks + 1, sizeof *instance->forbidden_begin);
    instance->piece_begin = tarn_region_take(region, blocks + 1, sizeof *instance->piece_begin);
    instance->piece_block = tarn_region_take(region, pieces, sizeof *instance->piece_block);
    instance->piece_within = tarn_region_take(region, pieces, sizeof *instance->piece_within);
    instance->piece_size = tarn_region_take(region, pieces, sizeof *instance->piece_size);
    instance->life = tarn_region_take(region, blocks, sizeof *instance->life);
    instance->load = tarn_region_take(region, blocks, sizeof *instance->load);
    return !region->is_exhausted;
}

static bool allocate_builder(struct tarn_exact_builder *builder, size_t pieces)
{
    struct tarn_region *region = &builder->region;
    size_t blocks = builder->problem->blocks.count,
           storages = builder->problem->blocks.storages_count,
           slots = builder->problem->conflicts.words_count;
    builder->words = (uint32_t)(pieces / 64 + 1);
    builder->free_index = tarn_region_take(region, blocks, sizeof *builder->free_index);
    builder->follower = tarn_region_take(region, blocks, sizeof *builder->follower);
    builder->storage = tarn_region_take(region, pieces, sizeof *builder->storage);
    builder->piece_of = tarn_region_take(region, storages, sizeof *builder->piece_of);
    builder->block_of = tarn_region_take(region, storages, sizeof *builder->block_of);
    builder->present = tarn_region_take(region, slots, sizeof *builder->present);
    builder->mask[0] = tarn_region_take(region, slots, sizeof *builder->mask[0]);
    builder->mask[1] = tarn_region_take(region, slots, sizeof *builder->mask[1]);
    builder->adjacent =
        tarn_region_take(region, pieces * builder->words, sizeof *builder->adjacent);
    builder->by_time = tarn_region_take(region, pieces, sizeof *builder->by_time);
    builder->ranked = tarn_region_take(region, pieces, sizeof *builder->ranked);
    builder->rank_of = tarn_region_take(region, pieces, sizeof *builder->rank_of);
    return !region->is_exhausted;
}

/* The arrays that have grown, at their lengths, into the region of the instance. */
static bool keep_grown(struct tarn_exact_instance *instance, struct tarn_region *region)
{
    const uint32_t *begin = instance->section_begin;
    uint32_t sections = instance->sections_count;
    instance->forbidden =
        tarn_region_copy(region, instance->forbidden, instance->forbidden_begin[instance->count],
                         sizeof *instance->forbidden);
    instance->section_pieces = tarn_region_copy(region, instance->section_pieces, begin[sections],
                                                sizeof *instance->section_pieces);
    instance->section_begin =
        tarn_region_copy(region, begin, (size_t)sections + 1, sizeof *instance->section_begin);
    return !region->is_exhausted;
}

/* Counts free blocks and pieces; false if there are too many of them. */
static bool count_free(const struct tarn_exact_builder *builder, size_t *blocks, size_t *pieces)
{
    const struct tarn_blocks *from = &builder->problem->blocks;
    uint64_t sum = 0;
    *blocks = *pieces = 0;
    for (uint32_t b = 0; b < from->count; b++) {
        if (tarn_exact_is_left_out(builder, b)) continue;
        ++*blocks;
        *pieces += tarn_block_at(from, b).members_count;
        if (!tarn_size_add(sum, tarn_block_at(from, b).size, &sum) ||
            !tarn_size_add(sum, tarn_block_at(from, b).alignment, &sum))
            return false;
    }
    return *pieces <= STORAGES_MAX && sum < UNITS_MAX;
}

enum tarn_status tarn_exact_instance_init(struct tarn_exact_instance *instance,
                                          struct tarn_region *region,
                                          const struct tarn_problem *problem,
                                          const bool *is_left_out, const uint32_t *leader,
                                          const struct tarn_deadline *deadline, uint64_t work_max,
                                          uint64_t *work)
{
    struct tarn_exact_builder builder = {.instance = instance,
                                         .problem = problem,
                                         .is_left_out = is_left_out,
                                         .leader = leader,
                                         .deadline = deadline,
                                         .work_max = work_max};
    size_t blocks, pieces;
    memset(instance, 0, sizeof *instance);
    *work = 0;
    if (!count_free(&builder, &blocks, &pieces)) return TARN_USAGE;
    bool ok =
        allocate_instance(instance, region, blocks, pieces) && allocate_builder(&builder, pieces);
    if (ok) {
        take_blocks(&builder);
        find_unit(&builder);
        count_units(instance, builder.pieces_count);
        sort_by_size(&builder);
        measure_lives(&builder);
    }
    ok = ok && tarn_exact_take_conflicts(&builder) && tarn_exact_make_sections(&builder) &&
         keep_grown(instance, region) && tarn_exact_note_sections(instance, region);
    tarn_region_finish(&builder.region);
    *work = builder.work;
    if (ok) return TARN_OK;
    return builder.over ? TARN_USAGE : TARN_SYSTEM;
}
