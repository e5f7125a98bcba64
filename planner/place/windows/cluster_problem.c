/* Makes the placement problem of clusters. A cluster is a storage that is produced with the first
 * of its blocks and whose first[s] is the highest first[s] of its blocks. So one cluster precedes
 * another if all its blocks precede all blocks of the other, and the clusters are a problem like
 * any other, in as many streams. Source: docs/how-it-works.md, "Windows". Cost: O(blocks *
 * streams). */
#include "cluster_problem.h"

#include <assert.h>
#include <string.h>

uint32_t tarn_clusters_release(const struct tarn_clusters *clusters,
                               const struct tarn_source *source, uint32_t i)
{
    const struct tarn_lines *lines = &clusters->lines;
    if (lines->of) return lines->end[(size_t)source->stream * clusters->count + i];
    const struct tarn_conflicts *conflicts = &clusters->field->problem->conflicts;
    const uint32_t *first =
        conflicts->reuse.first + (size_t)source->stream * conflicts->reuse.count;
    uint32_t at = conflicts->ops_begin[source->stream] + first[clusters->storages[i]];
    uint32_t place = tarn_slot_set_below(&clusters->listed, conflicts->slot_at[at]);
    if (place < source->begin) return source->begin;
    return place < source->end ? place : source->end;
}

bool tarn_clusters_are_valid(const struct tarn_clusters *clusters)
{
    uint32_t next = 0;
    for (uint32_t n = 0; n < clusters->list_count; n++) {
        const struct tarn_cluster *cluster = &clusters->list[n];
        if (cluster->begin != next || cluster->end <= next || cluster->size < 0) return false;
        if (cluster->alignment <= 0 || cluster->alignment & (cluster->alignment - 1)) return false;
        next = cluster->end;
    }
    return next == clusters->blocks_count;
}

/* The members of a group are storages begin, begin + 1, ... of the problem. */
static void number_group(struct tarn_cluster_problem *problem, const struct tarn_clusters *clusters,
                         struct tarn_block group, uint32_t begin)
{
    const struct tarn_problem *whole = clusters->field->problem;
    uint32_t shift = clusters->settings->unit_shift;
    uint64_t unit = (UINT64_C(1) << shift) - 1;
    for (uint32_t m = 0; m < group.members_count; m++) {
        uint32_t a = group.members[m];
        uint64_t within = whole->blocks.within[a] >> shift;
        uint64_t end = (whole->blocks.within[a] + whole->blocks.reserved[a] + unit) >> shift;
        problem->mate[tarn_clusters_place_of(clusters, a)] = begin + m;
        problem->problem.blocks.within[begin + m] = within;
        problem->problem.blocks.reserved[begin + m] = end - within;
    }
}

/* The storages of a cluster, or of a group, are numbered one after the other. */
static void number_storages(struct tarn_cluster_problem *problem,
                            const struct tarn_clusters *clusters)
{
    struct tarn_blocks *blocks = &problem->problem.blocks;
    uint32_t next = 0;
    for (uint32_t n = 0; n < clusters->list_count; n++) {
        const struct tarn_cluster *cluster = &clusters->list[n];
        uint32_t begin = next;
        struct tarn_block block = tarn_clusters_block(clusters, clusters->order[cluster->begin]);
        blocks->members_begin[blocks->count] = begin;
        blocks->alignment_shift[blocks->count++] =
            (uint8_t)__builtin_ctz((uint32_t)cluster->alignment);
        for (uint32_t i = cluster->begin; i < cluster->end; i++)
            problem->mate[clusters->order[i]] = begin;
        blocks->reserved[begin] = (uint64_t)cluster->size;
        blocks->within[begin] = 0;
        if (block.members_count > 1) number_group(problem, clusters, block, begin);
        next += block.members_count;
    }
    blocks->members_begin[blocks->count] = blocks->storages_count;
    for (uint32_t c = 0; c < blocks->storages_count; c++) blocks->members[c] = c;
}

/* Positions count the problem's storages, by the first block of each. before: place -> how many
 * storages of the problem come before it in its stream. */
static void fill_positions(struct tarn_cluster_problem *problem,
                           const struct tarn_clusters *clusters, uint32_t *before)
{
    const struct tarn_problem *whole = clusters->field->problem;
    struct tarn_problem *own = &problem->problem;
    struct tarn_reuse *reuse = &own->conflicts.reuse;
    memset(reuse->position, 0xff, reuse->count * sizeof *reuse->position);
    for (uint32_t k = 0; k < clusters->sources_count; k++) {
        const struct tarn_source *source = &clusters->sources[k];
        for (uint32_t i = source->begin; i < source->end; i++) {
            uint32_t mate = problem->mate[i], a = clusters->storages[i];
            before[i] = reuse->length[k];
            assert(mate < reuse->count);
            if (tarn_problem_in_antichain(whole, a)) own->in_antichain[mate] = true;
            if (reuse->position[mate] != UINT32_MAX) continue;
            reuse->position[mate] = reuse->length[k]++;
            reuse->stream[mate] = k;
            own->begin[mate] = tarn_problem_begin(whole, a);
            own->end[mate] = tarn_problem_end(whole, a);
        }
    }
}

static void fill_first(struct tarn_cluster_problem *problem, const struct tarn_clusters *clusters,
                       const uint32_t *before)
{
    struct tarn_reuse *reuse = &problem->problem.conflicts.reuse;
    for (uint32_t k = 0; k < clusters->sources_count; k++) {
        const struct tarn_source *source = &clusters->sources[k];
        uint32_t *first = reuse->first + (size_t)k * reuse->count;
        for (uint32_t i = 0; i < clusters->count; i++) {
            uint32_t at = tarn_clusters_release(clusters, source, i), mate = problem->mate[i];
            uint32_t own = at < source->end ? before[at] : reuse->length[k];
            if (own > first[mate]) first[mate] = own;
        }
    }
}

static bool take_memory(struct tarn_cluster_problem *problem, struct tarn_region *region,
                        const struct tarn_clusters *clusters)
{
    uint32_t count = clusters->list_count;
    for (uint32_t n = 0; n < clusters->list_count; n++)
        count +=
            tarn_clusters_block(clusters, clusters->order[clusters->list[n].begin]).members_count -
            1;
    problem->mate = tarn_region_take(region, clusters->count, sizeof *problem->mate);
    return problem->mate && tarn_problem_take(&problem->problem, region, clusters->field->problem,
                                              count, clusters->sources_count);
}

enum tarn_status tarn_cluster_problem_init(struct tarn_cluster_problem *problem,
                                           struct tarn_region *region,
                                           const struct tarn_clusters *clusters)
{
    assert(tarn_clusters_are_valid(clusters));
    if (!take_memory(problem, region, clusters)) return TARN_SYSTEM;
    struct tarn_region_mark mark = tarn_region_mark(region);
    uint32_t *before = tarn_region_take(region, clusters->count, sizeof *before);
    if (!before) return TARN_SYSTEM;
    number_storages(problem, clusters);
    fill_positions(problem, clusters, before);
    fill_first(problem, clusters, before);
    tarn_region_release(region, mark);
    enum tarn_status status = tarn_conflicts_init(&problem->problem.conflicts, region);
    /* Blocks are not checked: in units, a member may begin before the member before it ends. */
    assert(status != TARN_OK || tarn_conflicts_is_valid(&problem->problem.conflicts));
    return status;
}
