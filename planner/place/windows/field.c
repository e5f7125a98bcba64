/* Fields: the state of a placement by windows, of which a part at a time is decoded by
 * lowest-offset-first. Cost: for a part, a decode for every key (decode.c). */
#include "field.h"

#include <assert.h>

#include "planner/place/lowest/lowest.h"

bool tarn_field_init(struct tarn_field *field, struct tarn_region *region,
                     const struct tarn_problem *problem)
{
    const struct tarn_blocks *blocks = &problem->blocks;
    assert(blocks->storages_begin == 0);
    field->problem = problem;
    field->block_of = tarn_region_take(region, blocks->storages_count, sizeof *field->block_of);
    field->floor = tarn_region_take(region, blocks->count, sizeof *field->floor);
    field->offset = tarn_region_take(region, blocks->count, sizeof *field->offset);
    if (region->is_exhausted) return false;
    for (uint32_t b = 0; b < blocks->count; b++) {
        const struct tarn_block block = tarn_block_at(blocks, b);
        for (uint32_t i = 0; i < block.members_count; i++) field->block_of[block.members[i]] = b;
    }
    return true;
}

struct tarn_span tarn_field_span(const struct tarn_field *field, uint32_t unit_shift, uint32_t a)
{
    const struct tarn_blocks *blocks = &field->problem->blocks;
    uint64_t unit = (UINT64_C(1) << unit_shift) - 1;
    uint64_t begin = blocks->within[a] >> unit_shift;
    uint64_t end = (blocks->within[a] + blocks->reserved[a] + unit) >> unit_shift;
    int32_t offset = field->offset[field->block_of[a]];
    return (struct tarn_span){offset + (int32_t)begin, offset + (int32_t)end};
}

/* ---- Decoding ---- */

/* A subproblem that is decoded. */
struct decoding {
    const struct tarn_field *field;
    struct tarn_region *region;
    const struct tarn_windows_settings *settings;
    const struct tarn_part *part;
    struct tarn_lowest lowest;
    struct tarn_traits traits;
};

static uint32_t block_at(const struct decoding *decoding, uint32_t place)
{
    return decoding->part->origin_block[decoding->lowest.block[place]];
}

static bool decode_keys(const struct decoding *decoding, struct tarn_key_range keys, int32_t *top)
{
    const struct tarn_field *field = decoding->field;
    const struct tarn_lowest *lowest = &decoding->lowest;
    struct tarn_decoder decoder;
    int32_t *key = tarn_region_take(decoding->region, lowest->count, sizeof *key);
    int32_t *floor = tarn_region_take(decoding->region, lowest->count, sizeof *floor);
    bool ok = tarn_decoder_init(&decoder, decoding->region, lowest) == TARN_OK && key && floor;
    decoder.deadline = decoding->settings->deadline;
    decoder.hurries = true;
    decoder.work_max = decoding->settings->work_max;
    for (uint32_t place = 0; ok && place < lowest->count; place++)
        floor[place] = field->floor[block_at(decoding, place)];
    for (uint32_t i = keys.begin; ok && i < keys.end; i++) {
        if (*top <= decoding->settings->aim) break;
        ok = tarn_keys_fill(lowest, decoding->region, &decoding->traits, i, key) == TARN_OK;
        if (!ok) break;
        tarn_decoder_start(&decoder, floor);
        if (!tarn_decoder_advance(&decoder, key, floor, (struct tarn_objective){0, 1, 0}, *top - 1,
                                  lowest->count))
            continue;
        *top = decoder.top;
        for (uint32_t place = 0; place < lowest->count; place++)
            field->offset[block_at(decoding, place)] = decoder.offset[place];
    }
    if (decoding->settings->effort) tarn_effort_spend(decoding->settings->effort, decoder.work);
    return ok;
}

static bool decode_part(struct decoding *decoding, const struct tarn_obstacles *obstacles,
                        struct tarn_key_range keys, int32_t *top)
{
    return tarn_lowest_init_around(&decoding->lowest, decoding->region, &decoding->part->problem,
                                   obstacles) == TARN_OK &&
           tarn_traits_init(&decoding->traits, decoding->region, &decoding->lowest) == TARN_OK &&
           decode_keys(decoding, keys, top);
}

bool tarn_field_decode(const struct tarn_field *field, struct tarn_region *region,
                       const struct tarn_windows_settings *settings, const uint32_t *storages,
                       uint32_t count, struct tarn_obstacles *obstacles, struct tarn_key_range keys,
                       int32_t *top)
{
    struct tarn_part part;
    struct decoding decoding = {
        .field = field, .region = region, .settings = settings, .part = &part};
    struct tarn_region_mark mark = tarn_region_mark(region);
    assert(keys.begin < keys.end && keys.end <= TARN_KEYS_COUNT);
    if (settings->deadline && tarn_deadline_is_over(settings->deadline)) return true;
    if (tarn_part_init(&part, region, field->problem, field->block_of, storages, count) != TARN_OK)
        return false;
    obstacles->origin = part.origin;
    bool ok = decode_part(&decoding, obstacles, keys, top);
    tarn_region_release(region, mark);
    return ok;
}
