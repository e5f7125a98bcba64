/* The innermost loops of greedy placement. Each loop is written once, without branches, for the
 * compiler to vectorise; it is compiled for the baseline of the platform and, on x86-64, for AVX2,
 * which has a minimum and a maximum of 32-bit numbers and twice the width. The choice between the
 * two never changes a result. */
#include "kernels.h"

#include <stdbool.h>

#include "lanes.h"

#define BODY static inline __attribute__((always_inline))

/* ---- The loops ---- */

BODY int32_t raise_body(int32_t *restrict limit, const int32_t *restrict row, uint32_t count,
                        int32_t position, int32_t end)
{
    int32_t least = INT32_MAX;
    for (uint32_t i = 0; i < count; i++) {
        int32_t raised = limit[i] > end ? limit[i] : end;
        raised = row[i] > position ? raised : limit[i];
        least = raised < least ? raised : least;
        limit[i] = raised;
    }
    return least;
}

BODY void raise_members_body(int32_t *restrict limit, const int32_t *restrict row,
                             const int32_t *restrict within, uint32_t count, int32_t position,
                             int32_t end)
{
    for (uint32_t i = 0; i < count; i++) {
        int32_t raised = limit[i] > end - within[i] ? limit[i] : end - within[i];
        limit[i] = row[i] > position ? raised : limit[i];
    }
}

BODY void raise_or_cap_body(int32_t *restrict limit, int32_t *restrict ceiling,
                            const int32_t *restrict row, const int32_t *restrict size,
                            uint32_t count, int32_t position, struct tarn_span span)
{
    for (uint32_t i = 0; i < count; i++) {
        int32_t raised = limit[i] > span.end ? limit[i] : span.end;
        int32_t capped = ceiling[i] < span.begin ? ceiling[i] : span.begin;
        bool meets = row[i] > position, above = limit[i] > span.begin - size[i];
        limit[i] = (meets & above) ? raised : limit[i];
        ceiling[i] = (meets & !above) ? capped : ceiling[i];
    }
}

BODY int32_t least_body(const int32_t *values, uint32_t count)
{
    int32_t least = INT32_MAX;
    for (uint32_t i = 0; i < count; i++) least = values[i] < least ? values[i] : least;
    return least;
}

BODY void extremes_body(const int32_t *restrict row, const int32_t *restrict limit, uint32_t count,
                        int32_t *highest, int32_t *lowest)
{
    int32_t high = 0, low = INT32_MAX;
    for (uint32_t i = 0; i < count; i++) {
        int32_t own_high = limit[i] == INT32_MAX ? 0 : row[i];
        int32_t own_low = limit[i] == INT32_MAX ? INT32_MAX : row[i];
        high = own_high > high ? own_high : high;
        low = own_low < low ? own_low : low;
    }
    *highest = high;
    *lowest = low;
}

BODY int32_t foremost_body(const int32_t *restrict limit, const int32_t *restrict priority,
                           uint32_t count, int32_t at)
{
    int32_t foremost = -1;
    for (uint32_t i = 0; i < count; i++) {
        int32_t own = priority[i] * TARN_LANE_RUN + (int32_t)(TARN_LANE_RUN - 1 - i);
        own = limit[i] == at ? own : -1;
        foremost = own > foremost ? own : foremost;
    }
    return foremost;
}

BODY int32_t champion_body(const int32_t *restrict limit, const int32_t *restrict priority,
                           uint32_t count)
{
    int32_t champion = -1;
    for (uint32_t i = 0; i < count; i++) {
        int32_t own = priority[i] * TARN_LANE_RUN + (int32_t)(TARN_LANE_RUN - 1 - i);
        own = limit[i] == INT32_MAX ? -1 : own;
        champion = own > champion ? own : champion;
    }
    return champion;
}

/* ---- Each of them for one target; full runs have a constant length ---- */

#define KERNELS(target, name)                                                                      \
    target static int32_t raise_##name(int32_t *restrict limit, const int32_t *restrict row,       \
                                       uint32_t count, int32_t position, int32_t end)              \
    {                                                                                              \
        if (count == TARN_LANE_RUN) return raise_body(limit, row, TARN_LANE_RUN, position, end);   \
        return raise_body(limit, row, count, position, end);                                       \
    }                                                                                              \
    target static void raise_members_##name(int32_t *restrict limit, const int32_t *restrict row,  \
                                            const int32_t *restrict within, uint32_t count,        \
                                            int32_t position, int32_t end)                         \
    {                                                                                              \
        raise_members_body(limit, row, within, count, position, end);                              \
    }                                                                                              \
    target static void raise_or_cap_##name(                                                        \
        int32_t *restrict limit, int32_t *restrict ceiling, const int32_t *restrict row,           \
        const int32_t *restrict size, uint32_t count, int32_t position, struct tarn_span span)     \
    {                                                                                              \
        raise_or_cap_body(limit, ceiling, row, size, count, position, span);                       \
    }                                                                                              \
    target static int32_t least_##name(const int32_t *values, uint32_t count)                      \
    {                                                                                              \
        if (count == TARN_LANE_RUN) return least_body(values, TARN_LANE_RUN);                      \
        return least_body(values, count);                                                          \
    }                                                                                              \
    target static void extremes_##name(const int32_t *restrict row, const int32_t *restrict limit, \
                                       uint32_t count, int32_t *highest, int32_t *lowest)          \
    {                                                                                              \
        if (count == TARN_LANE_RUN)                                                                \
            extremes_body(row, limit, TARN_LANE_RUN, highest, lowest);                             \
        else                                                                                       \
            extremes_body(row, limit, count, highest, lowest);                                     \
    }                                                                                              \
    target static int32_t foremost_##name(const int32_t *restrict limit,                           \
                                          const int32_t *restrict priority, uint32_t count,        \
                                          int32_t at)                                              \
    {                                                                                              \
        if (count == TARN_LANE_RUN) return foremost_body(limit, priority, TARN_LANE_RUN, at);      \
        return foremost_body(limit, priority, count, at);                                          \
    }                                                                                              \
    target static int32_t champion_##name(const int32_t *restrict limit,                           \
                                          const int32_t *restrict priority, uint32_t count)        \
    {                                                                                              \
        if (count == TARN_LANE_RUN) return champion_body(limit, priority, TARN_LANE_RUN);          \
        return champion_body(limit, priority, count);                                              \
    }                                                                                              \
    static const struct tarn_lane_kernels kernels_##name = {                                       \
        raise_##name,    raise_members_##name, raise_or_cap_##name, least_##name,                  \
        extremes_##name, foremost_##name,      champion_##name};

KERNELS(, baseline)

#ifdef __x86_64__
KERNELS(__attribute__((target("avx2"))), avx2)

const struct tarn_lane_kernels *tarn_kernels_choose(void)
{
    return __builtin_cpu_supports("avx2") ? &kernels_avx2 : &kernels_baseline;
}
#else
const struct tarn_lane_kernels *tarn_kernels_choose(void) { return &kernels_baseline; }
#endif
