/* Makes parts of problems. A storage's `first` in a stream becomes the number of the part's
 * storages that the stream produces before it. It is looked up in a table over the slots between
 * the part's first and last slot of the stream. Cost: O(storages * streams of the part), and those
 * tables. */
#include "problem.h"

#include <assert.h>

/* ---- Streams ---- */

/* How storages of the whole map to positions of a stream of the part. */
struct table {
    uint32_t stream;               /* of the whole */
    uint32_t begin, end;           /* its storages in the part */
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
    const uint32_t *stream = conflicts->reuse.stream;
    struct table *tables = tarn_region_take(region, tables_count, sizeof *tables);
    uint32_t end = 0;
    for (uint32_t k = 0; tables && k < tables_count; k++) {
        uint32_t begin = end;
        while (end < count && stream[storages[end]] == stream[storages[begin]]) end++;
        tables[k].stream = stream[storages[begin]];
        tables[k].begin = begin;
        tables[k].end = end;
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

static void fill_storages(struct tarn_part *part, const struct tarn_problem *whole,
                          const struct table *tables)
{
    const struct tarn_reuse *reuse = &whole->conflicts.reuse;
    struct tarn_problem *problem = &part->problem;
    struct tarn_reuse *own = &problem->conflicts.reuse;
    for (uint32_t k = 0; k < own->streams_count; k++) {
        const uint32_t *first = reuse->first + (size_t)tables[k].stream * reuse->count;
        own->length[k] = tables[k].end - tables[k].begin;
        for (uint32_t i = tables[k].begin; i < tables[k].end; i++) {
            own->stream[i] = k;
            own->position[i] = i - tables[k].begin;
        }
        for (uint32_t i = 0; i < own->count; i++)
            own->first[(size_t)k * own->count + i] =
                below(&tables[k], &whole->conflicts, first[part->origin[i]]);
    }
    for (uint32_t i = 0; i < own->count; i++) {
        problem->begin[i] = tarn_problem_begin(whole, part->origin[i]);
        problem->end[i] = tarn_problem_end(whole, part->origin[i]);
        problem->in_antichain[i] = tarn_problem_in_antichain(whole, part->origin[i]);
    }
}

/* The number that a storage of the whole has in the part. */
static uint32_t number_of(const struct tarn_part *part, const uint32_t *slot_of, uint32_t a)
{
    uint32_t begin = 0, end = part->problem.blocks.storages_count;
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
    const struct tarn_blocks *blocks = &whole->blocks;
    struct tarn_blocks *own = &part->problem.blocks;
    uint32_t *members = own->members;
    for (uint32_t i = 0; i < own->storages_count; i++) {
        uint32_t a = part->origin[i], b = block_of[a];
        struct tarn_block block = tarn_block_at(blocks, b);
        own->reserved[i] = blocks->reserved[a];
        own->within[i] = blocks->within[a];
        if (block.members[0] != a) continue;
        part->origin_block[own->count] = b;
        own->alignment_shift[own->count] = blocks->alignment_shift[b];
        own->members_begin[own->count++] = (uint32_t)(members - own->members);
        *members++ = i;
        for (uint32_t m = 1; m < block.members_count; m++)
            *members++ = number_of(part, whole->conflicts.slot_of, block.members[m]);
    }
    own->members_begin[own->count] = own->storages_count;
}

/* The graph that the whole, or what it is a part of, was made from. False: no memory. */
static bool note_source(struct tarn_part *part, struct tarn_region *region,
                        const struct tarn_problem *whole)
{
    struct tarn_problem *problem = &part->problem;
    uint32_t count = problem->blocks.storages_count;
    problem->source = whole->graph ? whole->graph : whole->source;
    if (whole->graph) problem->origin = part->origin;
    if (whole->graph || !whole->source) return true;
    uint32_t *origin = tarn_region_take(region, count, sizeof *origin);
    if (!origin) return false;
    for (uint32_t i = 0; i < count; i++) origin[i] = whole->origin[part->origin[i]];
    problem->origin = origin;
    return true;
}

enum tarn_status tarn_part_init(struct tarn_part *part, struct tarn_region *region,
                                const struct tarn_problem *whole, const uint32_t *block_of,
                                const uint32_t *storages, uint32_t count)
{
    uint32_t streams_count = count_streams(&whole->conflicts.reuse, storages, count);
    part->origin = tarn_region_copy(region, storages, count, sizeof *part->origin);
    part->origin_block = tarn_region_take(region, count, sizeof *part->origin_block);
    if (!tarn_problem_take(&part->problem, region, whole, count, streams_count)) return TARN_SYSTEM;
    struct tarn_region_mark mark = tarn_region_mark(region);
    struct table *tables = make_tables(region, &whole->conflicts, storages, count, streams_count);
    if (tables) {
        fill_storages(part, whole, tables);
        fill_blocks(part, whole, block_of);
    }
    tarn_region_release(region, mark);
    if (!tables || !note_source(part, region, whole)) return TARN_SYSTEM;
    enum tarn_status status = tarn_conflicts_init(&part->problem.conflicts, region);
    assert(status != TARN_OK || tarn_problem_is_valid(&part->problem));
    return status;
}
