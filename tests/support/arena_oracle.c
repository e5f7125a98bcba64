/* The least arena of a space, by branch and bound over offsets: blocks by falling size, each at
 * every multiple of its alignment, until an arena is as small as the heaviest set of storages of
 * which no two may share a byte. */
#include <stdlib.h>
#include <string.h>

#include "plan_oracle.h"
#include "reach_oracle.h"

enum { STORAGES = 64 };

struct block {
    const uint32_t *members;
    uint32_t count;
    uint64_t size, step;
};

struct packing {
    const struct tarn_plan *plan;
    uint64_t best, least, alignment;
    struct block blocks[STORAGES];
    uint32_t blocks_count;
    /* By planned storage. */
    uint32_t lone[STORAGES];   /* its own index: a block of one */
    uint64_t unsafe[STORAGES]; /* the storages that it may share no byte with, as a set */
    uint64_t reserved[STORAGES];
    uint64_t offset[STORAGES];
};

static void add_block(struct packing *packing, uint32_t a)
{
    const struct tarn_graph *graph = packing->plan->graph;
    struct block block = {&packing->lone[a], 1, 0, packing->alignment};
    if (graph->storages[a].group != TARN_NONE) {
        block.members = graph->groups[graph->storages[a].group].storages;
        block.count = graph->groups[graph->storages[a].group].storages_count;
    }
    for (uint32_t i = 0; i < block.count; i++) {
        uint32_t member = block.members[i];
        block.size += packing->reserved[member];
        if (tarn_own_alignment(graph, &graph->storages[member]) > block.step)
            block.step = tarn_own_alignment(graph, &graph->storages[member]);
    }
    if (block.members[0] != a) return; /* added with its first member */
    uint32_t i = packing->blocks_count++;
    for (; i > 0 && packing->blocks[i - 1].size < block.size; i--)
        packing->blocks[i] = packing->blocks[i - 1];
    packing->blocks[i] = block;
}

/* The heaviest set within `left`; all of it is unsafe with what was chosen before. */
static uint64_t heaviest(const struct packing *packing, uint64_t left)
{
    if (left == 0) return 0;
    uint32_t a = (uint32_t)__builtin_ctzll(left);
    left &= left - 1;
    uint64_t with = packing->reserved[a] + heaviest(packing, left & packing->unsafe[a]);
    if ((left & ~packing->unsafe[a]) == 0) return with;
    uint64_t without = heaviest(packing, left);
    return with > without ? with : without;
}

static void packing_init(struct packing *packing, const struct tarn_plan *plan, uint32_t space)
{
    const struct tarn_graph *graph = plan->graph;
    uint32_t count = graph->planned_count;
    uint64_t within = 0; /* the space's storages, as a set */
    uint64_t own = plan->spaces ? graph->spaces[space].alignment : 0;
    struct reach *reach = reach_create(plan);
    *packing =
        (struct packing){.plan = plan,
                         .best = plan->spaces ? plan->spaces[space].footprint : plan->footprint,
                         .alignment = own > 0 ? own : plan->alignment};
    if (count > STORAGES) abort();
    for (uint32_t a = 0; a < count; a++) {
        if (graph->storages[a].space == space) within |= UINT64_C(1) << a;
        packing->lone[a] = a;
        packing->reserved[a] = oracle_reserved(plan->graph, a, plan->alignment);
        for (uint32_t b = 0; b < a; b++) {
            if (reach_may_share(reach, a, b)) continue;
            packing->unsafe[a] |= UINT64_C(1) << b;
            packing->unsafe[b] |= UINT64_C(1) << a;
        }
    }
    for (uint32_t a = 0; a < count; a++)
        if (within >> a & 1) add_block(packing, a);
    packing->least = heaviest(packing, within);
    reach_destroy(reach);
}

/* Puts a storage there; false: one of those that have been placed is in the way. */
static bool put_storage(struct packing *packing, uint32_t a, uint64_t at, uint64_t placed)
{
    packing->offset[a] = at;
    for (uint64_t left = placed & packing->unsafe[a]; left != 0; left &= left - 1) {
        uint32_t b = (uint32_t)__builtin_ctzll(left);
        if (at < packing->offset[b] + packing->reserved[b] &&
            packing->offset[b] < at + packing->reserved[a])
            return false;
    }
    return true;
}

static bool put_block(struct packing *packing, const struct block *block, uint64_t at,
                      uint64_t placed)
{
    for (uint32_t i = 0; i < block->count; i++) {
        if (!put_storage(packing, block->members[i], at, placed)) return false;
        at += packing->reserved[block->members[i]];
    }
    return true;
}

static void pack(struct packing *packing, uint32_t next, uint64_t placed, uint64_t highest)
{
    if (next == packing->blocks_count) {
        packing->best = highest;
        return;
    }
    const struct block *block = &packing->blocks[next];
    uint64_t with_block = placed;
    for (uint32_t i = 0; i < block->count; i++) with_block |= UINT64_C(1) << block->members[i];
    for (uint64_t at = 0; at + block->size < packing->best; at += block->step) {
        uint64_t end = at + block->size > highest ? at + block->size : highest;
        if (packing->best <= packing->least || highest >= packing->best) return;
        if (put_block(packing, block, at, placed)) pack(packing, next + 1, with_block, end);
    }
}

uint64_t oracle_smallest_arena(const struct tarn_plan *plan, uint32_t space)
{
    struct packing packing;
    packing_init(&packing, plan, space);
    pack(&packing, 0, 0, 0);
    return packing.best;
}
