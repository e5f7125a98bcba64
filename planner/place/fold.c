/* Finds roles and classes of storages. A role is a colour of a storage that depends on its size,
 * its stream and its uses within some ops: colours of storages and of ops are refined in turn, by
 * the colours of their neighbours (Weisfeiler, Leman 1968). A storage with many users, such as a
 * sum of gradients, keeps its first colour: refined colours of it would separate storages that are
 * the same in every period. Cost: O(users), sorting, and O(T) for each number of periods. */
#include "fold.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "streams/base/random.h"

enum { ROUNDS = 3, USERS_MAX = 8, TIMES_MAX = 16 };

static uint64_t mix(uint64_t a, uint64_t b)
{
    return tarn_random_mix(a * UINT64_C(0x9e3779b97f4a7c15) + b);
}

/* ---- Roles ---- */

static bool is_widely_used(const struct tarn_storage *storage)
{
    return storage->users_count > USERS_MAX;
}

static void first_colours(const struct tarn_graph *graph, uint64_t *colour)
{
    for (uint32_t s = 0; s < graph->storages_count; s++) {
        const struct tarn_storage *storage = &graph->storages[s];
        uint64_t kind = (uint64_t)storage->persistent * 4 + (uint64_t)storage->pinned * 2 +
                        (storage->tensor == TARN_NONE);
        colour[s] =
            mix(mix(storage->size, tarn_own_alignment(graph, storage)), mix(kind, storage->space));
    }
}

static void colour_ops(const struct tarn_graph *graph, const uint64_t *colour, uint64_t *op)
{
    for (uint32_t v = 0; v < graph->ops_count; v++) op[v] = graph->ops[v].stream;
    for (uint32_t s = 0; s < graph->storages_count; s++) {
        const struct tarn_storage *storage = &graph->storages[s];
        for (uint32_t i = 0; i < storage->users_count; i++) {
            uint32_t v = tarn_storage_users(graph, storage)[i];
            bool makes = v == storage->producer && !is_widely_used(storage);
            op[v] += mix(colour[s], makes);
        }
    }
    for (uint32_t v = 0; v < graph->ops_count; v++) op[v] = mix(op[v], graph->ops[v].stream);
}

static void colour_storages(const struct tarn_graph *graph, const uint64_t *op, uint64_t *colour)
{
    for (uint32_t s = 0; s < graph->storages_count; s++) {
        const struct tarn_storage *storage = &graph->storages[s];
        if (is_widely_used(storage)) continue;
        uint64_t sum = storage->producer == TARN_NONE ? 0 : mix(op[storage->producer], 1);
        for (uint32_t i = 0; i < storage->users_count; i++)
            sum += mix(op[tarn_storage_users(graph, storage)[i]], 0);
        colour[s] = mix(colour[s], sum);
    }
}

static bool find_roles(const struct tarn_graph *graph, struct tarn_region *region, uint64_t *colour)
{
    uint64_t *op = tarn_region_take(region, graph->ops_count, sizeof *op);
    if (!op) return false;
    first_colours(graph, colour);
    for (uint32_t round = 0; round < ROUNDS; round++) {
        colour_ops(graph, colour, op);
        colour_storages(graph, op, colour);
    }
    return true;
}

/* ---- Members ---- */

static int compare_members(const void *left, const void *right)
{
    const struct tarn_fold_member *a = left, *b = right;
    if (a->role != b->role) return a->role < b->role ? -1 : 1;
    if (a->position != b->position) return a->position < b->position ? -1 : 1;
    return a->block < b->block ? -1 : a->block > b->block;
}

enum tarn_status tarn_fold_init(struct tarn_fold *fold, struct tarn_region *region,
                                const struct tarn_problem *problem)
{
    const struct tarn_blocks *blocks = &problem->blocks;
    const struct tarn_reuse *reuse = &problem->conflicts.reuse;
    const struct tarn_graph *graph = problem->graph ? problem->graph : problem->source;
    struct tarn_region brief = {.chunks = NULL};
    *fold = (struct tarn_fold){.problem = problem};
    uint64_t *colour = tarn_region_take(&brief, graph->storages_count, sizeof *colour);
    fold->members = tarn_region_take(region, blocks->count, sizeof *fold->members);
    bool ok = colour && fold->members && find_roles(graph, &brief, colour);
    for (uint32_t b = 0; ok && b < blocks->count; b++) {
        const struct tarn_block block = tarn_block_at(blocks, b);
        uint32_t a = block.members[0];
        if (block.members_count > 1) continue;
        uint32_t origin = problem->origin ? problem->origin[a] : a;
        uint64_t role =
            mix(mix(colour[origin], reuse->stream[a]), mix(block.size, block.alignment));
        fold->members[fold->count++] = (struct tarn_fold_member){role, reuse->position[a], b};
    }
    if (ok) qsort(fold->members, fold->count, sizeof *fold->members, compare_members);
    tarn_region_finish(&brief);
    return ok ? TARN_OK : TARN_SYSTEM;
}

/* ---- Classes ---- */

static uint32_t storage_of(const struct tarn_fold *fold, uint32_t i)
{
    return tarn_block_at(&fold->problem->blocks, fold->members[i].block).members[0];
}

/* Roles are hashes: storages of one role are alike unless hashes collide. */
static bool are_alike(const struct tarn_fold *fold, uint32_t i, uint32_t k)
{
    const struct tarn_blocks *blocks = &fold->problem->blocks;
    const uint32_t *stream = fold->problem->conflicts.reuse.stream;
    struct tarn_block a = tarn_block_at(blocks, fold->members[i].block);
    struct tarn_block b = tarn_block_at(blocks, fold->members[k].block);
    return a.size == b.size && a.alignment == b.alignment &&
           stream[a.members[0]] == stream[b.members[0]];
}

/* May each `period`-th of members begin to end share bytes? All are of one stream, so a storage is
 * safe with earlier ones if they are released when it is produced. */
static bool can_share(const struct tarn_fold *fold, uint32_t begin, uint32_t end, uint32_t period)
{
    const struct tarn_reuse *reuse = &fold->problem->conflicts.reuse;
    for (uint32_t n = 0; n < period && begin + n < end; n++) {
        uint32_t released = 0;
        for (uint32_t i = begin + n; i < end; i += period) {
            uint32_t a = storage_of(fold, i);
            uint32_t first = reuse->first[(size_t)reuse->stream[a] * reuse->count + a];
            if (i > begin + n && reuse->position[a] < released) return false;
            if (!are_alike(fold, begin, i)) return false;
            if (first > released) released = first;
        }
    }
    return true;
}

uint32_t tarn_fold_lead(const struct tarn_fold *fold, uint32_t period, uint32_t *leader)
{
    uint32_t leaders = fold->problem->blocks.count;
    for (uint32_t b = 0; b < leaders; b++) leader[b] = b;
    for (uint32_t begin = 0, end; begin < fold->count; begin = end) {
        for (end = begin + 1;
             end < fold->count && fold->members[end].role == fold->members[begin].role;)
            end++;
        uint32_t times = 1;
        while (times <= TIMES_MAX && times * period < end - begin &&
               !can_share(fold, begin, end, times * period))
            times++;
        if (times > TIMES_MAX) continue;
        for (uint32_t i = begin + times * period; i < end; i++) {
            leader[fold->members[i].block] = leader[fold->members[i - times * period].block];
            leaders--;
        }
    }
    return leaders;
}
