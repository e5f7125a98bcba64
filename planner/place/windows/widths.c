/* Windows of several widths, with streams apart (split.h) and together. Which is best depends on
 * how streams wait for each other, and is not known before: the best plan of all is taken. The
 * first way makes a plan whatever it takes. Those of the same kind may then do little more than
 * windows take by themselves, and beyond that all ways share the effort, of which a
 * plan is worth the more, the further it is above its aim.
 * Cost: at most the effort, beside the first plan and what the others take to end. */
#include "widths.h"

static const struct way {
    uint32_t width;
    bool together;
} ways[] = {{256, false}, {1024, true}, {1024, false}, {3072, false}, {3072, true}};
enum { WAYS_COUNT = sizeof ways / sizeof *ways };

/* Nanoseconds: of the effort, fixed and for each storage; and what windows take beside decodes, for
 * each storage, and for each of its streams. */
enum { EFFORT_STORAGE = 8000, WINDOWS_STORAGE = 500, WINDOWS_STREAM = 50 };
static const uint64_t effort_least = UINT64_C(6000000000);
/* A plan that is one in so many above its aim is worth the whole effort. */
enum { WORTH_ALL = 512 };
/* One in so many parts of the effort is little. */
enum { LEAST_SHARE = 64 };

uint64_t tarn_widths_effort(const struct tarn_problem *problem)
{
    return effort_least + (uint64_t)problem->blocks->storages_count * EFFORT_STORAGE;
}

uint64_t tarn_widths_worth(struct tarn_effort *effort, uint64_t aim, uint64_t footprint)
{
    double left = (double)tarn_effort_left(effort);
    double share = ((double)footprint - (double)aim) / (double)aim * WORTH_ALL;
    if (effort->max == UINT64_MAX || share >= 1) return tarn_effort_left(effort);
    return (uint64_t)(left * share * share * share);
}

static uint64_t windows_work(const struct tarn_problem *problem)
{
    uint64_t streams_count = problem->graph->streams_count;
    return problem->blocks->storages_count * (WINDOWS_STORAGE + WINDOWS_STREAM * streams_count);
}

enum tarn_status tarn_widths_place(const struct tarn_problem *problem,
                                   const struct tarn_antichain *antichain,
                                   const struct tarn_improve_options *options, uint64_t aim,
                                   struct tarn_effort *effort, uint64_t *offset,
                                   uint64_t *footprint)
{
    uint64_t all = effort->max, windows = windows_work(problem);
    uint64_t least = windows + tarn_widths_effort(problem) / LEAST_SHARE;
    enum tarn_status status = TARN_OK;
    for (uint32_t i = 0; status == TARN_OK && i<WAYS_COUNT && * footprint> aim; i++) {
        uint64_t before = *footprint, worth = tarn_widths_worth(effort, aim, before);
        if (tarn_deadline_is_over(&options->deadline)) break;
        if (ways[i].together && worth < 4 * windows) continue;
        if (all < UINT64_MAX && effort->crossing > worth + least) continue;
        if (!effort->must && all < UINT64_MAX)
            effort->max = effort->spent + worth + (ways[i].together ? 0 : windows + least);
        status = tarn_windows_place(problem, antichain,
                                    &(struct tarn_windows_options){.aim = aim,
                                                                   .width = ways[i].width,
                                                                   .together = ways[i].together,
                                                                   .threads = options->threads,
                                                                   .effort = effort,
                                                                   .deadline = &options->deadline},
                                    offset, footprint);
        tarn_effort_spend(effort, windows);
        effort->max = all;
        effort->must = false;
        if (*footprint < before && options->progress)
            options->progress(options->user, *footprint, 0);
    }
    return status;
}
