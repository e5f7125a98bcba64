/* Replays placements. A change to a block cannot matter before the block is placed, with two
 * exceptions: a floor that was lowered matters once it had lifted its block, and a priority that
 * was raised matters once its block may be in a tie with one that it now comes before. Limits only
 * rise, so a block whose limit at a snapshot is above every offset up to the next one is in no tie
 * between them. Cost: a copy of the greedy placement's state for each snapshot, and the blocks left
 * to place. */
#include "replay.h"

#include <assert.h>
#include <string.h>

#include "planner/place/effort/effort.h"

/* ---- Snapshots ---- */

static void save(struct tarn_replay *replay, uint32_t index)
{
    const struct tarn_greedy *greedy = &replay->greedy;
    assert(index < TARN_SNAPSHOTS);
    struct tarn_snapshot *snapshot = &replay->trial[index];
    memcpy(snapshot->state, greedy->state, greedy->state_size * sizeof *greedy->state);
    snapshot->groups_count = greedy->groups_count;
    snapshot->current = greedy->current;
    snapshot->top = greedy->top;
    snapshot->miss = greedy->miss;
}

static void restore(struct tarn_replay *replay, uint32_t index)
{
    struct tarn_greedy *greedy = &replay->greedy;
    assert(index < TARN_SNAPSHOTS);
    const struct tarn_snapshot *snapshot = &replay->kept[index];
    size_t count = greedy->lowest->count;
    memcpy(greedy->state, snapshot->state, greedy->state_size * sizeof *greedy->state);
    greedy->groups_count = snapshot->groups_count;
    greedy->current = snapshot->current;
    greedy->top = snapshot->top;
    greedy->miss = snapshot->miss;
    greedy->done = index * replay->interval;
    greedy->work += TARN_WORK_COPY * count;
    memcpy(greedy->offset, replay->offset, count * sizeof *greedy->offset);
    memcpy(greedy->step, replay->step, count * sizeof *greedy->step);
    for (size_t i = 0; i < count; i++)
        greedy->lifted[i] = replay->lifted[i] < greedy->done ? replay->lifted[i] : TARN_NONE;
}

/* The greedy placement's plan becomes the present one; its snapshots from `first` on are new. */
static void keep(struct tarn_replay *replay, uint32_t first, const int32_t *priority)
{
    struct tarn_greedy *greedy = &replay->greedy;
    int32_t *offset = replay->offset;
    uint32_t *step = replay->step, *lifted = replay->lifted, count = greedy->lowest->count;
    replay->offset = greedy->offset;
    replay->step = greedy->step;
    replay->lifted = greedy->lifted;
    replay->miss = greedy->miss;
    replay->top = greedy->top;
    greedy->offset = offset;
    greedy->step = step;
    greedy->lifted = lifted;
    for (uint32_t i = first; i < TARN_SNAPSHOTS; i++) {
        struct tarn_snapshot old = replay->kept[i];
        replay->kept[i] = replay->trial[i];
        replay->trial[i] = old;
    }
    for (uint32_t i = 0; i < TARN_SNAPSHOTS; i++) {
        replay->kept[i].next = 0;
        replay->kept[i].least_priority = INT32_MAX;
    }
    for (uint32_t place = 0; place < count; place++) {
        struct tarn_snapshot *before = &replay->kept[replay->step[place] / replay->interval];
        if (replay->offset[place] > before->next) before->next = replay->offset[place];
        if (priority[place] < before->least_priority) before->least_priority = priority[place];
    }
}

/* ---- Placing ---- */

/* From snapshot `index` on, at which the greedy placement stands. */
static bool place(struct tarn_replay *replay, uint32_t index, const int32_t *priority,
                  const int32_t *floor, struct tarn_objective objective, int64_t miss_max)
{
    struct tarn_greedy *greedy = &replay->greedy;
    uint32_t count = greedy->lowest->count, first = index + 1;
    for (;;) {
        uint32_t until = (index + 1) * replay->interval;
        if (!tarn_greedy_advance(greedy, priority, floor, objective, miss_max,
                                 until < count ? until : count))
            return false;
        if (until >= count) break;
        greedy->work += (uint64_t)TARN_WORK_COPY * count;
        if (tarn_greedy_expect(greedy, objective) > miss_max) return false;
        save(replay, ++index);
    }
    keep(replay, first, priority);
    return true;
}

bool tarn_replay_start(struct tarn_replay *replay, const int32_t *priority, const int32_t *floor,
                       struct tarn_objective objective)
{
    tarn_greedy_start(&replay->greedy, floor);
    save(replay, 0);
    struct tarn_snapshot start = replay->trial[0];
    replay->trial[0] = replay->kept[0];
    replay->kept[0] = start;
    return place(replay, 0, priority, floor, objective, TARN_MISS_MAX);
}

/* The last snapshot, up to `last`, before a block whose priority is raised to `priority` can win a
 * tie. */
static uint32_t before_tie(const struct tarn_replay *replay, uint32_t place, int32_t priority,
                           uint32_t last)
{
    for (uint32_t i = 0; i < last; i++) /* limits are the first part of a state */
        if (replay->kept[i].state[place] <= replay->kept[i].next &&
            replay->kept[i].least_priority <= priority)
            return i;
    return last;
}

static uint32_t before_changes(const struct tarn_replay *replay, const int32_t *priority,
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
        if (priority[place] > changes[i].priority)
            index = before_tie(replay, place, priority[place], index);
    }
    return index;
}

bool tarn_replay_try(struct tarn_replay *replay, const int32_t *priority, const int32_t *floor,
                     const struct tarn_replay_change *changes, uint32_t changes_count,
                     struct tarn_objective objective, int64_t miss_max)
{
    if (changes_count == 0) return replay->miss <= miss_max;
    uint32_t index = before_changes(replay, priority, floor, changes, changes_count);
    restore(replay, index);
    tarn_greedy_forget(&replay->greedy, floor);
    return place(replay, index, priority, floor, objective, miss_max);
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
        tarn_greedy_init(&replay->greedy, region, lowest) != TARN_OK)
        return TARN_SYSTEM;
    state_size = replay->greedy.state_size;
    int32_t *states = tarn_region_take(region, 2 * TARN_SNAPSHOTS * state_size, sizeof *states);
    if (!states) return TARN_SYSTEM;
    for (uint32_t i = 0; i < TARN_SNAPSHOTS; i++) {
        replay->kept[i].state = states + 2 * i * state_size;
        replay->trial[i].state = replay->kept[i].state + state_size;
    }
    return TARN_OK;
}
