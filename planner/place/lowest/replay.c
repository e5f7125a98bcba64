/* Replaying. A change to a block cannot matter before the block is placed, with two exceptions: a
 * floor that was lowered matters once it had lifted its block, and a key that was raised matters
 * once its block may be in a tie with one that it now comes before. Limits only rise, so a block
 * whose limit at a snapshot is above every offset up to the next one is in no tie between them.
 * Cost: a copy of the decoder's state for each snapshot, and what is left to decode. */
#include "replay.h"

#include <assert.h>
#include <string.h>

#include "planner/place/effort/effort.h"

/* ---- Snapshots ---- */

static void save(struct tarn_replay *replay, uint32_t index)
{
    const struct tarn_decoder *decoder = &replay->decoder;
    assert(index < TARN_SNAPSHOTS);
    struct tarn_snapshot *snapshot = &replay->trial[index];
    memcpy(snapshot->state, decoder->state, decoder->state_size * sizeof *decoder->state);
    snapshot->groups_count = decoder->groups_count;
    snapshot->current = decoder->current;
    snapshot->top = decoder->top;
    snapshot->miss = decoder->miss;
}

static void restore(struct tarn_replay *replay, uint32_t index)
{
    struct tarn_decoder *decoder = &replay->decoder;
    assert(index < TARN_SNAPSHOTS);
    const struct tarn_snapshot *snapshot = &replay->kept[index];
    size_t count = decoder->lowest->count;
    memcpy(decoder->state, snapshot->state, decoder->state_size * sizeof *decoder->state);
    decoder->groups_count = snapshot->groups_count;
    decoder->current = snapshot->current;
    decoder->top = snapshot->top;
    decoder->miss = snapshot->miss;
    decoder->done = index * replay->interval;
    decoder->work += TARN_WORK_COPY * count;
    memcpy(decoder->offset, replay->offset, count * sizeof *decoder->offset);
    memcpy(decoder->step, replay->step, count * sizeof *decoder->step);
    for (size_t i = 0; i < count; i++)
        decoder->lifted[i] = replay->lifted[i] < decoder->done ? replay->lifted[i] : TARN_NONE;
}

/* The decoder's plan becomes the present one; its snapshots from `first` on are new. */
static void keep(struct tarn_replay *replay, uint32_t first, const int32_t *key)
{
    struct tarn_decoder *decoder = &replay->decoder;
    int32_t *offset = replay->offset;
    uint32_t *step = replay->step, *lifted = replay->lifted, count = decoder->lowest->count;
    replay->offset = decoder->offset;
    replay->step = decoder->step;
    replay->lifted = decoder->lifted;
    replay->miss = decoder->miss;
    replay->top = decoder->top;
    decoder->offset = offset;
    decoder->step = step;
    decoder->lifted = lifted;
    for (uint32_t i = first; i < TARN_SNAPSHOTS; i++) {
        struct tarn_snapshot old = replay->kept[i];
        replay->kept[i] = replay->trial[i];
        replay->trial[i] = old;
    }
    for (uint32_t i = 0; i < TARN_SNAPSHOTS; i++) {
        replay->kept[i].next = 0;
        replay->kept[i].least_key = INT32_MAX;
    }
    for (uint32_t place = 0; place < count; place++) {
        struct tarn_snapshot *before = &replay->kept[replay->step[place] / replay->interval];
        if (replay->offset[place] > before->next) before->next = replay->offset[place];
        if (key[place] < before->least_key) before->least_key = key[place];
    }
}

/* ---- Decoding ---- */

/* From snapshot `index` on, at which the decoder stands. */
static bool decode(struct tarn_replay *replay, uint32_t index, const int32_t *key,
                   const int32_t *floor, struct tarn_objective objective, int64_t miss_max)
{
    struct tarn_decoder *decoder = &replay->decoder;
    uint32_t count = decoder->lowest->count, first = index + 1;
    for (;;) {
        uint32_t until = (index + 1) * replay->interval;
        if (!tarn_decoder_advance(decoder, key, floor, objective, miss_max,
                                  until < count ? until : count))
            return false;
        if (until >= count) break;
        decoder->work += (uint64_t)TARN_WORK_COPY * count;
        if (tarn_decoder_expect(decoder, objective) > miss_max) return false;
        save(replay, ++index);
    }
    keep(replay, first, key);
    return true;
}

bool tarn_replay_start(struct tarn_replay *replay, const int32_t *key, const int32_t *floor,
                       struct tarn_objective objective)
{
    tarn_decoder_start(&replay->decoder, floor);
    save(replay, 0);
    struct tarn_snapshot start = replay->trial[0];
    replay->trial[0] = replay->kept[0];
    replay->kept[0] = start;
    return decode(replay, 0, key, floor, objective, TARN_MISS_MAX);
}

/* The last snapshot, up to `last`, before a block whose key is raised to `key` can win a tie. */
static uint32_t before_tie(const struct tarn_replay *replay, uint32_t place, int32_t key,
                           uint32_t last)
{
    for (uint32_t i = 0; i < last; i++) /* limits are the first part of a state */
        if (replay->kept[i].state[place] <= replay->kept[i].next &&
            replay->kept[i].least_key <= key)
            return i;
    return last;
}

static uint32_t before_changes(const struct tarn_replay *replay, const int32_t *key,
                               const int32_t *floor, const struct tarn_replay_change *changes,
                               uint32_t changes_count)
{
    uint32_t index = TARN_SNAPSHOTS;
    for (uint32_t i = 0; i < changes_count; i++) {
        uint32_t place = changes[i].place;
        uint32_t last = replay->step[place] / replay->interval;
        uint32_t lifted = replay->lifted[place];
        if (floor[place] < changes[i].floor && lifted != TARN_NONE &&
            lifted / replay->interval < last)
            last = lifted / replay->interval;
        if (last < index) index = last;
        if (key[place] > changes[i].key) index = before_tie(replay, place, key[place], index);
    }
    return index;
}

bool tarn_replay_try(struct tarn_replay *replay, const int32_t *key, const int32_t *floor,
                     const struct tarn_replay_change *changes, uint32_t changes_count,
                     struct tarn_objective objective, int64_t miss_max)
{
    if (changes_count == 0) return replay->miss <= miss_max;
    uint32_t index = before_changes(replay, key, floor, changes, changes_count);
    restore(replay, index);
    tarn_decoder_forget(&replay->decoder, floor);
    return decode(replay, index, key, floor, objective, miss_max);
}

/* ---- Making ---- */

enum tarn_status tarn_replay_init(struct tarn_replay *replay, struct tarn_region *region,
                                  const struct tarn_lowest *lowest)
{
    size_t count = lowest->count, state_size;
    *replay = (struct tarn_replay){.interval = lowest->count / TARN_SNAPSHOTS + 1};
    replay->offset = tarn_region_take(region, count, sizeof *replay->offset);
    replay->step = tarn_region_take(region, count, sizeof *replay->step);
    replay->lifted = tarn_region_take(region, count, sizeof *replay->lifted);
    if (!replay->offset || !replay->step || !replay->lifted ||
        tarn_decoder_init(&replay->decoder, region, lowest) != TARN_OK)
        return TARN_SYSTEM;
    state_size = replay->decoder.state_size;
    int32_t *states = tarn_region_take(region, 2 * TARN_SNAPSHOTS * state_size, sizeof *states);
    if (!states) return TARN_SYSTEM;
    for (uint32_t i = 0; i < TARN_SNAPSHOTS; i++) {
        replay->kept[i].state = states + 2 * i * state_size;
        replay->trial[i].state = replay->kept[i].state + state_size;
    }
    return TARN_OK;
}
