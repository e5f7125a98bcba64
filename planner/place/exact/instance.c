/* Making the instance for exact search. Neighbouring members of a group that are in conflict with
 * the same others become one piece; what is in conflict is found in exact/bans.c, sections in
 * exact/cliques.c.
 *
 * Cost: O(n^2) bits for n storages. */
#include "instance.h"

#include <stdlib.h>
#include <string.h>

#include "making.h"
#include "streams/base/checked.h"

enum { STORAGES_MAX = 8192 };
#define UNITS_MAX ((uint64_t)1 << 60)

/* ---- Blocks and pieces ---- */

static uint64_t gcd(uint64_t a, uint64_t b)
{
    while (b != 0) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Writes which slots of other blocks the storage is in conflict with. */
static void look_around(const struct tarn_exact_making *making, struct tarn_block block, uint32_t a,
                        uint64_t *mask)
{
    const struct tarn_conflicts *conflicts = making->problem->conflicts;
    tarn_conflicts_mask(conflicts, a, mask);
    for (uint32_t k = 0; k < block.members_count; k++)
        tarn_set_drop(mask, conflicts->slot_of[block.members[k]]);
    for (uint32_t w = 0; w < conflicts->words_count; w++) mask[w] &= making->present[w];
}

/* Appends a member to the pieces of block i: to the last one, if the same are in conflict with
 * both. */
static void take_member(struct tarn_exact_making *making, uint32_t i, struct tarn_block block,
                        uint32_t k)
{
    struct tarn_exact_instance *instance = making->instance;
    const struct tarn_blocks *blocks = making->problem->blocks;
    size_t bytes = making->problem->conflicts->words_count * sizeof(uint64_t);
    uint32_t a = block.members[k];
    uint64_t *mask = making->mask[k % 2];
    if (block.members_count > 1) look_around(making, block, a, mask);
    if (k == 0 || memcmp(mask, making->mask[1 - k % 2], bytes) != 0) {
        uint32_t p = making->pieces_count++;
        making->storage[p] = a;
        instance->piece_block[p] = i;
        instance->piece_within[p] = (int64_t)blocks->within[a];
    }
    making->piece_of[a] = making->pieces_count - 1;
    instance->piece_size[making->piece_of[a]] += (int64_t)blocks->reserved[a];
}

static void take_block(struct tarn_exact_making *making, uint32_t b)
{
    struct tarn_exact_instance *instance = making->instance;
    const struct tarn_block block = tarn_block_at(making->problem->blocks, b);
    uint32_t i = instance->count++;
    making->free_index[b] = i;
    instance->block[i] = b;
    instance->size[i] = (int64_t)block.size;
    instance->alignment[i] = (int64_t)block.alignment;
    instance->piece_begin[i] = making->pieces_count;
    for (uint32_t k = 0; k < block.members_count; k++) take_member(making, i, block, k);
    instance->piece_begin[i + 1] = making->pieces_count;
}

static void note_present(struct tarn_exact_making *making)
{
    const struct tarn_blocks *blocks = making->problem->blocks;
    for (uint32_t b = 0; b < blocks->count; b++) {
        const struct tarn_block block = tarn_block_at(blocks, b);
        for (uint32_t k = 0; k < block.members_count; k++) {
            making->block_of[block.members[k]] = b;
            if (!tarn_exact_is_left_out(making, b))
                tarn_set_add(making->present,
                             making->problem->conflicts->slot_of[block.members[k]]);
        }
    }
}

/* In bytes. */
static void take_blocks(struct tarn_exact_making *making)
{
    const struct tarn_blocks *blocks = making->problem->blocks;
    note_present(making);
    for (uint32_t a = 0; a < blocks->storages_count; a++) making->piece_of[a] = TARN_NONE;
    for (uint32_t b = 0; b < blocks->count; b++) {
        making->free_index[b] = TARN_NONE;
        if (!tarn_exact_is_left_out(making, b)) take_block(making, b);
    }
}

/* The unit: of everything that positions are sums of. An alignment of 1 asks for nothing. */
static void find_unit(const struct tarn_exact_making *making)
{
    struct tarn_exact_instance *instance = making->instance;
    uint64_t unit = 0;
    for (uint32_t i = 0; i < instance->count; i++)
        if (instance->alignment[i] > 1) unit = gcd(unit, (uint64_t)instance->alignment[i]);
    for (uint32_t p = 0; p < making->pieces_count; p++)
        unit = gcd(unit, (uint64_t)instance->piece_size[p]);
    instance->unit = unit == 0 ? 1 : unit;
}

static void count_units(struct tarn_exact_instance *instance, uint32_t pieces_count)
{
    int64_t unit = (int64_t)instance->unit;
    for (uint32_t i = 0; i < instance->count; i++) {
        instance->size[i] /= unit;
        if (instance->alignment[i] > 1) instance->alignment[i] /= unit;
    }
    for (uint32_t p = 0; p < pieces_count; p++) {
        instance->piece_within[p] /= unit;
        instance->piece_size[p] /= unit;
    }
}

static int compare_turns(const void *a, const void *b)
{
    const struct tarn_exact_turn *x = a, *y = b;
    if (x->size != y->size) return x->size > y->size ? -1 : 1;
    return (x->piece > y->piece) - (x->piece < y->piece);
}

static void sort_by_size(struct tarn_exact_making *making)
{
    for (uint32_t p = 0; p < making->pieces_count; p++)
        making->turns[p] = (struct tarn_exact_turn){making->instance->piece_size[p], p};
    qsort(making->turns, making->pieces_count, sizeof *making->turns, compare_turns);
    for (uint32_t i = 0; i < making->pieces_count; i++) making->turn_of[making->turns[i].piece] = i;
}

/* ---- Guides ---- */

static void measure_lives(const struct tarn_exact_making *making)
{
    struct tarn_exact_instance *instance = making->instance;
    const struct tarn_graph *graph = making->problem->graph;
    for (uint32_t p = 0; p < making->pieces_count; p++) {
        const struct tarn_storage *storage = &graph->storages[making->storage[p]];
        uint32_t b = instance->piece_block[p];
        uint32_t last = storage->touchers[storage->touchers_count - 1];
        int64_t end = storage->pinned ? graph->ops_count : graph->rank[last] + (int64_t)1;
        int64_t life = end - graph->rank[storage->producer];
        if (life > instance->life[b]) instance->life[b] = life;
    }
}

/* ---- The whole ---- */

static bool allocate_instance(struct tarn_exact_instance *instance, size_t blocks, size_t pieces)
{
    instance->set_words = (uint32_t)(blocks / 64 + 1);
    instance->block = calloc(blocks + 1, sizeof *instance->block);
    instance->size = calloc(blocks + 1, sizeof *instance->size);
    instance->alignment = calloc(blocks + 1, sizeof *instance->alignment);
    instance->plain = calloc(blocks + 1, sizeof *instance->plain);
    instance->adjacent = calloc(blocks * instance->set_words + 1, sizeof *instance->adjacent);
    instance->bans_begin = calloc(blocks + 1, sizeof *instance->bans_begin);
    instance->piece_begin = calloc(blocks + 1, sizeof *instance->piece_begin);
    instance->piece_block = calloc(pieces + 1, sizeof *instance->piece_block);
    instance->piece_within = calloc(pieces + 1, sizeof *instance->piece_within);
    instance->piece_size = calloc(pieces + 1, sizeof *instance->piece_size);
    instance->life = calloc(blocks + 1, sizeof *instance->life);
    instance->load = calloc(blocks + 1, sizeof *instance->load);
    return instance->block && instance->size && instance->alignment && instance->plain &&
           instance->adjacent && instance->bans_begin && instance->piece_begin &&
           instance->piece_block && instance->piece_within && instance->piece_size &&
           instance->life && instance->load;
}

static bool allocate_making(struct tarn_exact_making *making, size_t pieces)
{
    size_t blocks = making->problem->blocks->count,
           storages = making->problem->blocks->storages_count,
           slots = making->problem->conflicts->words_count;
    making->words = (uint32_t)(pieces / 64 + 1);
    making->free_index = calloc(blocks + 1, sizeof *making->free_index);
    making->storage = calloc(pieces + 1, sizeof *making->storage);
    making->piece_of = calloc(storages + 1, sizeof *making->piece_of);
    making->block_of = calloc(storages + 1, sizeof *making->block_of);
    making->present = calloc(slots + 1, sizeof *making->present);
    making->mask[0] = calloc(slots + 1, sizeof *making->mask[0]);
    making->mask[1] = calloc(slots + 1, sizeof *making->mask[1]);
    making->adjacent = calloc(pieces * making->words + 1, sizeof *making->adjacent);
    making->by_time = calloc(pieces + 1, sizeof *making->by_time);
    making->turns = calloc(pieces + 1, sizeof *making->turns);
    making->turn_of = calloc(pieces + 1, sizeof *making->turn_of);
    return making->free_index && making->storage && making->piece_of && making->block_of &&
           making->present && making->mask[0] && making->mask[1] && making->adjacent &&
           making->by_time && making->turns && making->turn_of;
}

static void free_making(struct tarn_exact_making *making)
{
    free(making->free_index);
    free(making->storage);
    free(making->piece_of);
    free(making->block_of);
    free(making->present);
    free(making->mask[0]);
    free(making->mask[1]);
    free(making->adjacent);
    free(making->by_time);
    free(making->turns);
    free(making->turn_of);
}

/* Counts what is free; false when there is too much of it. */
static bool count_free(const struct tarn_exact_making *making, size_t *blocks, size_t *pieces)
{
    const struct tarn_blocks *all = making->problem->blocks;
    uint64_t sum = 0;
    *blocks = *pieces = 0;
    for (uint32_t b = 0; b < all->count; b++) {
        if (tarn_exact_is_left_out(making, b)) continue;
        ++*blocks;
        *pieces += tarn_block_at(all, b).members_count;
        if (!tarn_size_add(sum, tarn_block_at(all, b).size, &sum) ||
            !tarn_size_add(sum, tarn_block_at(all, b).alignment, &sum))
            return false;
    }
    return *pieces <= STORAGES_MAX && sum < UNITS_MAX;
}

enum tarn_status tarn_exact_instance_init(struct tarn_exact_instance *instance,
                                          const struct tarn_problem *problem,
                                          const bool *is_left_out,
                                          const struct tarn_deadline *deadline, uint64_t work_max,
                                          uint64_t *work)
{
    struct tarn_exact_making making = {.instance = instance,
                                       .problem = problem,
                                       .is_left_out = is_left_out,
                                       .deadline = deadline,
                                       .work_max = work_max};
    size_t blocks, pieces;
    memset(instance, 0, sizeof *instance);
    *work = 0;
    if (!count_free(&making, &blocks, &pieces)) return TARN_USAGE;
    bool ok = allocate_instance(instance, blocks, pieces) && allocate_making(&making, pieces);
    if (ok) {
        take_blocks(&making);
        find_unit(&making);
        count_units(instance, making.pieces_count);
        sort_by_size(&making);
        measure_lives(&making);
    }
    ok = ok && tarn_exact_take_conflicts(&making) && tarn_exact_make_sections(&making);
    free_making(&making);
    *work = making.work;
    if (ok) return TARN_OK;
    tarn_exact_instance_finish(instance);
    return making.over ? TARN_USAGE : TARN_SYSTEM;
}

void tarn_exact_instance_finish(struct tarn_exact_instance *instance)
{
    free(instance->block);
    free(instance->size);
    free(instance->alignment);
    free(instance->plain);
    free(instance->adjacent);
    free(instance->bans_begin);
    free(instance->bans);
    free(instance->piece_begin);
    free(instance->piece_block);
    free(instance->piece_within);
    free(instance->piece_size);
    free(instance->section_begin);
    free(instance->section_pieces);
    free(instance->section_sets);
    free(instance->life);
    free(instance->load);
    memset(instance, 0, sizeof *instance);
}
