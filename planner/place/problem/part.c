/* Parts. A storage's `first` in a stream becomes the number of the part's storages that the stream
 * produces before it: a table over the slots between the part's first and last one of the stream
 * tells. Cost: O(storages * streams of the part), and those tables. */
#include "part.h"

#include <stdlib.h>
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

static void free_tables(struct table *tables, uint32_t count)
{
    for (uint32_t k = 0; tables && k < count; k++) free(tables[k].below);
    free(tables);
}

static bool fill_table(struct table *table, const uint32_t *slot_of, const uint32_t *storages,
                       uint32_t end)
{
    uint32_t next = table->begin;
    table->slot_begin = slot_of[storages[table->begin]];
    table->slot_end = slot_of[storages[end - 1]] + 1;
    table->below = malloc((table->slot_end - table->slot_begin + 1) * sizeof *table->below);
    if (!table->below) return false;
    for (uint32_t slot = table->slot_begin; slot <= table->slot_end; slot++) {
        table->below[slot - table->slot_begin] = next - table->begin;
        if (next < end && slot_of[storages[next]] == slot) next++;
    }
    return true;
}

static struct table *make_tables(const struct tarn_conflicts *conflicts, const uint32_t *storages,
                                 uint32_t count, uint32_t tables_count)
{
    const uint32_t *stream = conflicts->reuse->stream;
    struct table *tables = calloc((size_t)tables_count + 1, sizeof *tables);
    uint32_t end = 0;
    for (uint32_t k = 0; tables && k < tables_count; k++) {
        uint32_t begin = end;
        while (end < count && stream[storages[end]] == stream[storages[begin]]) end++;
        tables[k].stream = stream[storages[begin]];
        tables[k].begin = begin;
        if (fill_table(&tables[k], conflicts->slot_of, storages, end)) continue;
        free_tables(tables, tables_count);
        return NULL;
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

static bool allocate(struct tarn_part *part, uint32_t count, uint32_t streams_count)
{
    size_t n = (size_t)count + 1;
    part->origin = malloc(n * sizeof *part->origin);
    part->origin_block = malloc(n * sizeof *part->origin_block);
    part->graph.streams = calloc((size_t)streams_count + 1, sizeof *part->graph.streams);
    part->graph.storages = malloc(n * sizeof *part->graph.storages);
    part->ops = malloc(n * sizeof *part->ops);
    part->reuse.first = malloc(((size_t)count * streams_count + 1) * sizeof *part->reuse.first);
    part->reuse.position = malloc(n * sizeof *part->reuse.position);
    part->reuse.stream = malloc(n * sizeof *part->reuse.stream);
    part->blocks.members_begin = malloc(n * sizeof *part->blocks.members_begin);
    part->blocks.alignment_shift = malloc(n);
    part->blocks.members = malloc(n * sizeof *part->blocks.members);
    part->blocks.reserved = malloc(n * sizeof *part->blocks.reserved);
    part->blocks.within = malloc(n * sizeof *part->blocks.within);
    return part->origin && part->origin_block && part->graph.streams && part->graph.storages &&
           part->ops && part->reuse.first && part->reuse.position && part->reuse.stream &&
           part->blocks.members_begin && part->blocks.alignment_shift && part->blocks.members &&
           part->blocks.reserved && part->blocks.within;
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

enum tarn_status tarn_part_init(struct tarn_part *part, const struct tarn_problem *whole,
                                const uint32_t *block_of, const uint32_t *storages, uint32_t count)
{
    const struct tarn_graph *graph = whole->graph;
    const struct tarn_conflicts *conflicts = whole->conflicts;
    memset(part, 0, sizeof *part);
    uint32_t streams_count = count_streams(conflicts->reuse, storages, count);
    struct table *tables = make_tables(conflicts, storages, count, streams_count);
    bool ok = tables && allocate(part, count, streams_count);
    if (ok) {
        memcpy(part->origin, storages, count * sizeof *storages);
        part->reuse.count = part->graph.planned_count = count;
        part->reuse.streams_count = part->graph.streams_count = streams_count;
        part->graph.ops_count = graph->ops_count;
        part->graph.rank = graph->rank;
        fill_storages(part, whole, tables);
        fill_blocks(part, whole, block_of);
        ok = tarn_conflicts_init_slots(&part->conflicts, &part->reuse, &part->graph) == TARN_OK;
    }
    free_tables(tables, streams_count);
    part->problem = (struct tarn_problem){&part->graph, &part->blocks, &part->conflicts};
    if (ok) return TARN_OK;
    tarn_part_finish(part);
    return TARN_SYSTEM;
}

void tarn_part_finish(struct tarn_part *part)
{
    free(part->origin);
    free(part->origin_block);
    free(part->graph.streams);
    free(part->graph.storages);
    free(part->ops);
    free(part->reuse.first);
    free(part->reuse.position);
    free(part->reuse.stream);
    tarn_blocks_finish(&part->blocks);
    tarn_conflicts_finish(&part->conflicts);
    memset(part, 0, sizeof *part);
}
