/* Parts. A storage's `first` in a stream becomes the number of the part's storages that the stream
 * produces before it: a table over the slots between the part's first and last one of the stream
 * tells. Cost: O(storages * streams of the part), and those tables. */
#include "problem.h"

#include <assert.h>
#include <string.h>

/* ---- Streams ---- */

/* How storages of the whole map to positions of a stream of the part. */
struct table {
    uint32_t stream;               /* of the whole */
    uint32_t begin;                /* its first storage in the part */
    uint32_t slot_begin, slot_end; /* of its storages */
    uint32_t *below;               /* slot - slot_begin -> storages of the part below it */
};

static uint32_t count_streams(const struct tarn_reuse *reuse, const uint32_t *storages,
                              uint32_t count)
{
    uint32_t streams_count = 0;
    for (uint32_t i = 0; i < count; i++)
        streams_count += i == 0 || reuse->stream[storages[i]] != reuse->stream[storages[i - 1]];
    return streams_count;
}

static bool fill_table(struct table *table, struct tarn_region *region, const uint32_t *slot_of,
                       const uint32_t *storages, uint32_t end)
{
    uint32_t next = table->begin;
    table->slot_begin = slot_of[storages[table->begin]];
    table->slot_end = slot_of[storages[end - 1]] + 1;
    table->below =
        tarn_region_take(region, table->slot_end - table->slot_begin + 1, sizeof *table->below);
    if (!table->below) return false;
    for (uint32_t slot = table->slot_begin; slot <= table->slot_end; slot++) {
        table->below[slot - table->slot_begin] = next - table->begin;
        if (next < end && slot_of[storages[next]] == slot) next++;
    }
    return true;
}

static struct table *make_tables(struct tarn_region *region, const struct tarn_conflicts *conflicts,
                                 const uint32_t *storages, uint32_t count, uint32_t tables_count)
{
    const uint32_t *stream = conflicts->reuse->stream;
    struct table *tables = tarn_region_take(region, tables_count, sizeof *tables);
    uint32_t end = 0;
    for (uint32_t k = 0; tables && k < tables_count; k++) {
        uint32_t begin = end;
        while (end < count && stream[storages[end]] == stream[storages[begin]]) end++;
        tables[k].stream = stream[storages[begin]];
        tables[k].begin = begin;
        if (!fill_table(&tables[k], region, conflicts->slot_of, storages, end)) return NULL;
    }
    return tables;
}

/* How many of the stream's storages in the part come before position `first` of the whole. */
static uint32_t below(const struct table *table, const struct tarn_conflicts *conflicts,
                      uint32_t first)
{
    uint32_t slot = conflicts->slot_at[conflicts->ops_begin[table->stream] + first];
    if (slot <= table->slot_begin) return 0;
    if (slot > table->slot_end) slot = table->slot_end;
    return table->below[slot - table->slot_begin];
}

/* ---- Making ---- */

bool tarn_problem_take(struct tarn_region *region, size_t count, size_t streams_count,
                       struct tarn_graph *graph, struct tarn_reuse *reuse,
                       struct tarn_blocks *blocks)
{
    graph->streams = tarn_region_take(region, streams_count, sizeof *graph->streams);
    graph->storages = tarn_region_take(region, count, sizeof *graph->storages);
    reuse->first = tarn_region_take(region, count * streams_count, sizeof *reuse->first);
    reuse->position = tarn_region_take(region, count, sizeof *reuse->position);
    reuse->stream = tarn_region_take(region, count, sizeof *reuse->stream);
    blocks->members_begin = tarn_region_take(region, count + 1, sizeof *blocks->members_begin);
    blocks->alignment_shift = tarn_region_take(region, count, sizeof *blocks->alignment_shift);
    blocks->members = tarn_region_take(region, count, sizeof *blocks->members);
    blocks->reserved = tarn_region_take(region, count, sizeof *blocks->reserved);
    blocks->within = tarn_region_take(region, count, sizeof *blocks->within);
    return !region->is_exhausted;
}

static bool take_memory(struct tarn_part *part, struct tarn_region *region, size_t count,
                        size_t streams_count)
{
    part->origin = tarn_region_take(region, count, sizeof *part->origin);
    part->origin_block = tarn_region_take(region, count, sizeof *part->origin_block);
    part->ops = tarn_region_take(region, count, sizeof *part->ops);
    return tarn_problem_take(region, count, streams_count, &part->graph, &part->reuse,
                             &part->blocks);
}

static void fill_storages(struct tarn_part *part, const struct tarn_problem *whole,
                          const struct table *tables)
{
    const struct tarn_conflicts *conflicts = whole->conflicts;
    const struct tarn_reuse *reuse = conflicts->reuse;
    uint32_t count = part->reuse.count;
    for (uint32_t k = 0; k < part->reuse.streams_count; k++) {
        const uint32_t *first = reuse->first + (size_t)tables[k].stream * reuse->count;
        uint32_t end = k + 1 < part->reuse.streams_count ? tables[k + 1].begin : count;
        part->graph.streams[k].ops_count = end - tables[k].begin;
        part->graph.streams[k].ops = part->ops + tables[k].begin;
        for (uint32_t i = tables[k].begin; i < end; i++) {
            part->reuse.stream[i] = k;
            part->reuse.position[i] = i - tables[k].begin;
        }
        for (uint32_t i = 0; i < count; i++)
            part->reuse.first[(size_t)k * count + i] =
                below(&tables[k], conflicts, first[part->origin[i]]);
    }
    for (uint32_t i = 0; i < count; i++) {
        part->graph.storages[i] = whole->graph->storages[part->origin[i]];
        part->ops[i] = part->graph.storages[i].producer;
    }
}

/* The number that a storage of the whole has in the part. */
static uint32_t number_of(const struct tarn_part *part, const uint32_t *slot_of, uint32_t a)
{
    uint32_t begin = 0, end = part->reuse.count;
    while (begin + 1 < end) {
        uint32_t middle = begin + (end - begin) / 2;
        if (slot_of[part->origin[middle]] <= slot_of[a])
            begin = middle;
        else
            end = middle;
    }
    return begin;
}

/* A block comes with its first member. */
static void fill_blocks(struct tarn_part *part, const struct tarn_problem *whole,
                        const uint32_t *block_of)
{
    const struct tarn_blocks *blocks = whole->blocks;
    uint32_t *members = part->blocks.members, count = part->reuse.count;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t a = part->origin[i], b = block_of[a];
        struct tarn_block block = tarn_block_at(blocks, b);
        part->blocks.reserved[i] = blocks->reserved[a];
        part->blocks.within[i] = blocks->within[a];
        if (block.members[0] != a) continue;
        part->origin_block[part->blocks.count] = b;
        part->blocks.alignment_shift[part->blocks.count] = blocks->alignment_shift[b];
        part->blocks.members_begin[part->blocks.count++] =
            (uint32_t)(members - part->blocks.members);
        *members++ = i;
        for (uint32_t m = 1; m < block.members_count; m++)
            *members++ = number_of(part, whole->conflicts->slot_of, block.members[m]);
    }
    part->blocks.members_begin[part->blocks.count] = count;
    part->blocks.storages_count = count;
}

static void fill(struct tarn_part *part, const struct tarn_problem *whole, const uint32_t *block_of,
                 const uint32_t *storages, uint32_t count, const struct table *tables)
{
    memcpy(part->origin, storages, count * sizeof *storages);
    part->reuse.count = part->graph.planned_count = count;
    part->graph.streams_count = part->reuse.streams_count;
    part->graph.ops_count = whole->graph->ops_count;
    part->graph.rank = whole->graph->rank;
    fill_storages(part, whole, tables);
    fill_blocks(part, whole, block_of);
}

enum tarn_status tarn_part_init(struct tarn_part *part, struct tarn_region *region,
                                const struct tarn_problem *whole, const uint32_t *block_of,
                                const uint32_t *storages, uint32_t count)
{
    const struct tarn_conflicts *conflicts = whole->conflicts;
    uint32_t streams_count = count_streams(conflicts->reuse, storages, count);
    *part = (struct tarn_part){.reuse.streams_count = streams_count};
    part->problem = (struct tarn_problem){&part->graph, &part->blocks, &part->conflicts};
    if (!take_memory(part, region, count, streams_count)) return TARN_SYSTEM;
    struct tarn_region_mark mark = tarn_region_mark(region);
    struct table *tables = make_tables(region, conflicts, storages, count, streams_count);
    if (tables) fill(part, whole, block_of, storages, count, tables);
    tarn_region_release(region, mark);
    if (!tables) return TARN_SYSTEM;
    enum tarn_status status =
        tarn_conflicts_init_slots(&part->conflicts, region, &part->reuse, &part->graph);
    assert(status != TARN_OK || tarn_problem_is_valid(&part->problem));
    return status;
}
