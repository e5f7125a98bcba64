/* Tries windows of several widths, with streams apart (split.c) and together. The best variant
 * depends on how streams wait for each other, and is not known before, so the best plan of all
 * variants is taken. The first variant makes a plan at any cost. Other variants that place streams
 * apart may then do little more than the fixed work of windows. Beyond that all variants share the
 * effort, and a plan that is further above its aim is worth more of it. Cost: at most the effort,
 * beside the first plan and the work of ending the other variants. */
#include "planner/place/effort/effort.h"
#include "windows.h"

/* In the order in which they are tried; see struct tarn_windows_options. */
static const struct variant {
    uint32_t width;
    bool together;
} variants[] = {{256, false}, {1024, true}, {1024, false}, {3072, false}, {3072, true}};
enum { VARIANTS_COUNT = sizeof variants / sizeof *variants };

/* Work of windows beside placements, for each storage, and for each of its streams. */
enum { WINDOWS_STORAGE = 500, WINDOWS_STREAM = 50 };
/* A plan that is one part in WORTH_ALL above its aim is worth the whole effort. */
enum { WORTH_ALL = 512 };
/* A variant that need not make a plan may do one part in LEAST_SHARE of the effort. */
enum { LEAST_SHARE = 64 };

uint64_t tarn_widths_worth(struct tarn_effort *effort, uint64_t aim, uint64_t footprint)
{
    double left = (double)tarn_effort_left(effort);
    double share = ((double)footprint - (double)aim) / (double)aim * WORTH_ALL;
    if (effort->max == UINT64_MAX || share >= 1) return tarn_effort_left(effort);
    return (uint64_t)(left * share * share * share);
}

static uint64_t windows_work(const struct tarn_problem *problem)
{
    uint64_t streams_count = problem->conflicts.reuse.streams_count;
    return problem->blocks.storages_count * (WINDOWS_STORAGE + WINDOWS_STREAM * streams_count);
}

enum tarn_status tarn_widths_place(const struct tarn_problem *problem,
                                   const struct tarn_widths_options *options, uint64_t *offset,
                                   uint64_t *footprint)
{
    struct tarn_effort *effort = options->effort;
    uint64_t max = effort->max, windows = windows_work(problem);
    uint64_t most = tarn_work_default(problem->blocks.storages_count);
    uint64_t least = windows + most / LEAST_SHARE;
    enum tarn_status status = TARN_OK;
    for (uint32_t i = 0; status == TARN_OK && i < VARIANTS_COUNT; i++) {
        uint64_t before = *footprint, worth;
        if (before <= options->aim || tarn_deadline_is_over(&options->deadline)) break;
        worth = tarn_widths_worth(effort, options->aim, before);
        if (variants[i].together && worth < 4 * windows) continue;
        if (max < UINT64_MAX && effort->crossing > worth + least) continue;
        if (!effort->must && max < UINT64_MAX)
            effort->max = effort->spent + worth + (variants[i].together ? 0 : windows + least);
        const struct tarn_windows_options variant = {.aim = options->aim,
                                                     .width = variants[i].width,
                                                     .together = variants[i].together,
                                                     .threads = options->threads,
                                                     .effort = effort,
                                                     .deadline = &options->deadline,
                                                     .progress = options->progress,
                                                     .user = options->user};
        status = tarn_windows_place(problem, &variant, offset, footprint);
        tarn_effort_spend(effort, windows);
        effort->max = max;
        effort->must = false;
    }
    return status;
}
