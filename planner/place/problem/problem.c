/* Makes placement problems. Data that follows from the graph is computed once, in the order of
 * dependence: clocks, reuse, blocks, the heaviest antichain, slots. The clocks are freed then. A
 * problem that is made from another one is filled in by the function that makes it. Cost: O((V + E)
 * S + T S), and the antichain's. */
#include "problem.h"

#include <assert.h>

#include "streams/base/error.h"

/* ---- Of a graph ---- */

static enum tarn_status find_reuse(struct tarn_reuse *reuse, struct tarn_region *region,
                                   const struct tarn_graph *graph)
{
    struct tarn_clocks clocks;
    struct tarn_region brief = {.chunks = NULL};
    enum tarn_status status = tarn_clocks_init(&clocks, &brief, graph);
    if (status == TARN_OK) status = tarn_reuse_init(reuse, region, &clocks, graph);
    tarn_region_finish(&brief);
    return status;
}

enum tarn_status tarn_problem_init(struct tarn_problem *problem, struct tarn_region *region,
                                   const struct tarn_graph *graph, uint64_t alignment,
                                   struct tarn_error *error)
{
    struct tarn_conflicts *conflicts = &problem->conflicts;
    *problem = (struct tarn_problem){.graph = graph, .ops_count = graph->ops_count};
    if (find_reuse(&conflicts->reuse, region, graph) != TARN_OK) return tarn_error_no_memory(error);
    enum tarn_status status =
        tarn_blocks_init(&problem->blocks, region, graph, false, alignment, error);
    if (status != TARN_OK) return status;
    status = tarn_antichain_init(&problem->antichain, region, &conflicts->reuse, graph,
                                 problem->blocks.reserved);
    if (status == TARN_OK) status = tarn_conflicts_init(conflicts, region);
    if (status != TARN_OK) return tarn_error_no_memory(error);
    assert(tarn_problem_is_valid(problem));
    return TARN_OK;
}

struct tarn_reserve tarn_problem_reserve(const struct tarn_problem *problem, uint64_t alignment)
{
    assert(problem->graph);
    return (struct tarn_reserve){&problem->conflicts.reuse, problem->graph,
                                 problem->blocks.reserved, alignment};
}

/* ---- Of another problem ---- */

bool tarn_problem_take(struct tarn_problem *problem, struct tarn_region *region,
                       const struct tarn_problem *whole, uint32_t count, uint32_t streams_count)
{
    struct tarn_blocks *blocks = &problem->blocks;
    struct tarn_reuse *reuse = &problem->conflicts.reuse;
    *problem = (struct tarn_problem){.ops_count = whole->ops_count};
    blocks->storages_count = reuse->count = count;
    reuse->streams_count = streams_count;
    reuse->length = tarn_region_take(region, streams_count, sizeof *reuse->length);
    reuse->first = tarn_region_take(region, (size_t)count * streams_count, sizeof *reuse->first);
    reuse->position = tarn_region_take(region, count, sizeof *reuse->position);
    reuse->stream = tarn_region_take(region, count, sizeof *reuse->stream);
    blocks->members_begin =
        tarn_region_take(region, (size_t)count + 1, sizeof *blocks->members_begin);
    blocks->alignment_shift = tarn_region_take(region, count, sizeof *blocks->alignment_shift);
    blocks->members = tarn_region_take(region, count, sizeof *blocks->members);
    blocks->reserved = tarn_region_take(region, count, sizeof *blocks->reserved);
    blocks->within = tarn_region_take(region, count, sizeof *blocks->within);
    problem->begin = tarn_region_take(region, count, sizeof *problem->begin);
    problem->end = tarn_region_take(region, count, sizeof *problem->end);
    problem->in_antichain = tarn_region_take(region, count, sizeof *problem->in_antichain);
    return !region->is_exhausted;
}

/* ---- Validity ---- */

bool tarn_problem_is_valid(const struct tarn_problem *problem)
{
    const struct tarn_blocks *blocks = &problem->blocks;
    const struct tarn_reuse *reuse = &problem->conflicts.reuse;
    if (blocks->storages_begin != 0 || blocks->storages_count != reuse->count) return false;
    if (problem->graph && problem->graph->planned_count != reuse->count) return false;
    for (uint32_t a = 0; a < reuse->count; a++)
        if (tarn_problem_begin(problem, a) >= tarn_problem_end(problem, a) ||
            tarn_problem_end(problem, a) > problem->ops_count)
            return false;
    return tarn_blocks_is_valid(blocks) && tarn_reuse_is_valid(reuse) &&
           tarn_conflicts_is_valid(&problem->conflicts);
}
