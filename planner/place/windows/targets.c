/* Finds targets. Storages that live at once in one stream are in conflict with each other, so they
 * reach at least the lowest of their floors plus their bytes. No floor of the storages alive at an
 * op is below the lowest floor of all storages that live on after it, which is found in one pass.
 * Cost: O(T S). */
#include "window.h"

#include <assert.h>

/* By rank of an op. */
struct loads {
    int64_t *bytes;       /* units that live at it */
    int32_t *least_floor; /* of storages that live on after it */
};

static int32_t least(int32_t a, int32_t b) { return a < b ? a : b; }

static void count_loads(const struct tarn_field *field, uint32_t unit_shift,
                        const struct tarn_lifetimes *lifetimes, const struct loads *loads)
{
    uint32_t ops_count = field->problem->ops_count;
    for (uint32_t i = 0; i <= ops_count; i++) loads->least_floor[i] = INT32_MAX;
    for (uint32_t i = 0; i < lifetimes->count; i++) {
        uint32_t a = lifetimes->storages[i], last = lifetimes->until[i] - 1;
        struct tarn_span span = tarn_field_span(field, unit_shift, a);
        int32_t floor = field->floor[field->block_of[a]];
        loads->bytes[lifetimes->since[i]] += span.end - span.begin;
        loads->bytes[last + 1] -= span.end - span.begin;
        loads->least_floor[last] = least(loads->least_floor[last], floor);
    }
    for (uint32_t i = 0; i < ops_count; i++) loads->bytes[i + 1] += loads->bytes[i];
    for (uint32_t i = ops_count; i-- > 0;)
        loads->least_floor[i] = least(loads->least_floor[i], loads->least_floor[i + 1]);
    assert(loads->bytes[ops_count] == 0);
}

int32_t *tarn_targets_find(struct tarn_region *region, const struct tarn_field *field,
                           uint32_t unit_shift, const uint32_t *storages, uint32_t count)
{
    uint32_t ops_count = field->problem->ops_count;
    struct tarn_region work = {.chunks = NULL};
    struct tarn_lifetimes lifetimes;
    struct loads loads = {
        tarn_region_take(&work, (size_t)ops_count + 1, sizeof *loads.bytes),
        tarn_region_take(&work, (size_t)ops_count + 1, sizeof *loads.least_floor)};
    int32_t *target = tarn_region_take(region, ops_count, sizeof *target), highest = 0;
    bool ok = target && !work.is_exhausted &&
              tarn_lifetimes_init(&lifetimes, &work, field->problem, storages, count) == TARN_OK;
    if (ok) count_loads(field, unit_shift, &lifetimes, &loads);
    for (uint32_t i = 0; ok && i < ops_count; i++) {
        int64_t reached = loads.bytes[i] > 0 ? loads.bytes[i] + loads.least_floor[i] : 0;
        if (reached > TARN_UNITS_MAX) reached = TARN_UNITS_MAX;
        if (reached > highest) highest = (int32_t)reached;
        target[i] = highest;
    }
    tarn_region_finish(&work);
    return ok ? target : NULL;
}

int32_t *tarn_targets_by_window(struct tarn_region *region, const struct tarn_problem *problem,
                                const struct tarn_cuts *cuts, const int32_t *target)
{
    int32_t *highest = tarn_region_take(region, cuts->count, sizeof *highest);
    for (uint32_t w = 0; highest && w < cuts->count; w++)
        for (uint32_t i = cuts->begin[w]; i < cuts->begin[w + 1]; i++) {
            int32_t own = target[tarn_problem_begin(problem, cuts->storages[i])];
            if (own > highest[w]) highest[w] = own;
        }
    return highest;
}
