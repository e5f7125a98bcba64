/* Fields: the parts of a placement by windows, each decoded at once by lowest-offset-first. Cost: a
 * decode for every key (decode.c). */
#include "field.h"

#include <stdlib.h>
#include <string.h>

#include "keys.h"

bool tarn_field_init(struct tarn_field *field, const struct tarn_problem *problem)
{
    size_t storages = (size_t)problem->blocks->storages_count + 1;
    size_t blocks = (size_t)problem->blocks->count + 1;
    field->problem = problem;
    field->in_antichain = malloc(storages);
    field->floor = calloc(blocks, sizeof *field->floor);
    field->offset = calloc(blocks, sizeof *field->offset);
    return field->in_antichain && field->floor && field->offset;
}

void tarn_field_finish(struct tarn_field *field)
{
    free(field->in_antichain);
    free(field->floor);
    free(field->offset);
}

bool tarn_field_init_part(struct tarn_field *field, const struct tarn_field *whole,
                          const struct tarn_part *part)
{
    if (!tarn_field_init(field, &part->problem)) return false;
    for (uint32_t i = 0; i < part->blocks.storages_count; i++)
        field->in_antichain[i] = whole->in_antichain[part->origin[i]];
    for (uint32_t b = 0; b < part->blocks.count; b++)
        field->floor[b] = whole->floor[part->origin_block[b]];
    return true;
}

void tarn_field_take_offsets(const struct tarn_field *whole, const struct tarn_part *part,
                             const struct tarn_field *field)
{
    for (uint32_t b = 0; b < part->blocks.count; b++)
        whole->offset[part->origin_block[b]] = field->offset[b];
}

struct tarn_span tarn_field_span(const struct tarn_field *field, uint32_t unit_shift,
                                 uint32_t block, uint32_t a)
{
    const struct tarn_blocks *blocks = field->problem->blocks;
    uint64_t unit = (UINT64_C(1) << unit_shift) - 1;
    uint64_t begin = blocks->within[a] >> unit_shift;
    uint64_t end = (blocks->within[a] + blocks->reserved[a] + unit) >> unit_shift;
    return (struct tarn_span){field->offset[block] + (int32_t)begin,
                              field->offset[block] + (int32_t)end};
}

/* ---- Decoding ---- */

/* Decodes with keys begin..end until the aim is met; the best plan becomes the field's where it is
 * lower than *top. */
static bool decode_keys(const struct tarn_windows_settings *settings,
                        const struct tarn_field *field, const struct tarn_lowest *lowest,
                        const struct tarn_traits *traits, uint32_t begin, uint32_t end,
                        int32_t *top)
{
    struct tarn_decoder decoder;
    size_t count = (size_t)lowest->count + 1;
    int32_t *key = malloc(count * sizeof *key), *floor = malloc(count * sizeof *floor);
    bool ok = tarn_decoder_init(&decoder, lowest) == TARN_OK && key && floor;
    decoder.until = settings->until;
    for (uint32_t place = 0; ok && place < lowest->count; place++)
        floor[place] = field->floor[lowest->block[place]];
    for (uint32_t i = begin; ok && i<end && * top> settings->aim; i++) {
        ok = tarn_keys_fill(lowest, traits, i, key) == TARN_OK;
        if (!ok) break;
        tarn_decoder_start(&decoder, floor);
        if (!tarn_decoder_advance(&decoder, key, floor, (struct tarn_objective){0, 1, 0}, *top - 1,
                                  lowest->count))
            continue;
        *top = decoder.top;
        for (uint32_t place = 0; place < lowest->count; place++)
            field->offset[lowest->block[place]] = decoder.offset[place];
    }
    tarn_decoder_finish(&decoder);
    free(key);
    free(floor);
    return ok;
}

bool tarn_field_decode(const struct tarn_field *field, const struct tarn_windows_settings *settings,
                       const struct tarn_obstacles *obstacles, uint32_t begin, uint32_t end,
                       int32_t *top)
{
    struct tarn_lowest lowest = {0};
    struct tarn_traits traits = {0};
    bool ok = tarn_lowest_init_around(&lowest, field->problem, obstacles) == TARN_OK &&
              tarn_traits_init(&traits, &lowest, field->in_antichain) == TARN_OK &&
              decode_keys(settings, field, &lowest, &traits, begin, end, top);
    tarn_traits_finish(&traits);
    tarn_lowest_finish(&lowest);
    return ok;
}
