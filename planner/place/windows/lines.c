/* Finds lines of streams. If streams wait for each other often, a storage that one of them may
 * reuse is soon free for the others. These streams are treated as one stream, which produces in the
 * global order, and storages that they produce together are stacked together. A storage precedes
 * the line's storages after the last one, of any of its streams, that may be in conflict with the
 * storage. For some of the streams that is later than necessary. The cost is estimated from
 * samples: bytes times the ranks by which reuse is later, over all ranks, are the mean bytes that
 * live longer. Source: docs/how-it-works.md, "Windows". Cost: O(T S), and O(S) for each pair of
 * sample and line.
 */
#include "cluster_problem.h"

#include <assert.h>

/* Lines are useful if there are at most 1/LINES_SHARE as many lines as streams. Each line may cost
 * 1/LOSS_SHARE of the aim. */
enum { SAMPLES = 1024, LINES_SHARE = 2, LOSS_SHARE = 1024 };

/* The ranks at which a stream, or a line, sees a sample released: storages that it produces before
 * rank `last` may be in conflict with the sample, storages at rank `next` or later are not. */
struct sight {
    uint32_t last, next;
};

struct lining {
    const struct tarn_clusters *clusters;
    uint32_t samples_count;
    uint32_t *sample;    /* storages */
    struct sight *sight; /* of one stream, by sample */
    struct sight *joint; /* [line * samples_count + sample] */
    uint32_t *of;        /* stream -> line */
    uint32_t count;      /* of lines */
    double loss_max;     /* bytes times ranks, of all samples */
};

/* ---- Samples ---- */

static void draw_samples(const struct lining *lining)
{
    const struct tarn_clusters *clusters = lining->clusters;
    for (uint32_t k = 0; k < lining->samples_count; k++)
        lining->sample[k] =
            clusters->storages[(uint64_t)k * clusters->count / lining->samples_count];
}

static void look(const struct lining *lining, uint32_t s, struct sight *sight)
{
    const struct tarn_clusters *clusters = lining->clusters;
    const struct tarn_problem *problem = clusters->field->problem;
    const struct tarn_conflicts *conflicts = &problem->conflicts;
    const uint32_t *first = conflicts->reuse.first + (size_t)s * conflicts->reuse.count;
    uint32_t begin = tarn_slot_set_below(&clusters->listed, conflicts->begin[s]);
    uint32_t end = tarn_slot_set_below(&clusters->listed, conflicts->begin[s + 1]);
    for (uint32_t k = 0; k < lining->samples_count; k++) {
        uint32_t at = conflicts->ops_begin[s] + first[lining->sample[k]];
        uint32_t place = tarn_slot_set_below(&clusters->listed, conflicts->slot_at[at]);
        sight[k] = (struct sight){0, problem->ops_count};
        if (place > begin)
            sight[k].last = tarn_problem_begin(problem, clusters->storages[place - 1]) + 1;
        if (place < end) sight[k].next = tarn_problem_begin(problem, clusters->storages[place]);
    }
}

/* ---- Joining ---- */

static struct sight join(struct sight a, struct sight b)
{
    return (struct sight){a.last > b.last ? a.last : b.last, a.next < b.next ? a.next : b.next};
}

static bool may_join(const struct lining *lining, const struct sight *line,
                     const struct sight *stream)
{
    const struct tarn_blocks *blocks = &lining->clusters->field->problem->blocks;
    double loss = 0;
    for (uint32_t k = 0; k < lining->samples_count; k++) {
        struct sight both = join(line[k], stream[k]);
        if (both.last <= both.next) continue;
        loss += (double)blocks->reserved[lining->sample[k]] * (both.last - both.next);
        if (loss > lining->loss_max) return false;
    }
    return true;
}

/* The stream joins the first line that it may join, or is a line of its own. */
static void join_stream(struct lining *lining, uint32_t s)
{
    uint32_t samples_count = lining->samples_count, line = 0;
    const struct sight *stream = lining->sight;
    while (line < lining->count &&
           !may_join(lining, lining->joint + (size_t)line * samples_count, stream))
        line++;
    struct sight *joint = lining->joint + (size_t)line * samples_count;
    for (uint32_t k = 0; k < samples_count; k++)
        joint[k] = line < lining->count ? join(joint[k], stream[k]) : stream[k];
    if (line == lining->count) lining->count++;
    lining->of[s] = line;
}

static bool find_lines(struct lining *lining, struct tarn_region *region)
{
    const struct tarn_clusters *clusters = lining->clusters;
    const struct tarn_problem *problem = clusters->field->problem;
    size_t streams_count = problem->conflicts.reuse.streams_count;
    size_t samples_count = lining->samples_count;
    struct tarn_region_mark mark = tarn_region_mark(region);
    lining->sample = tarn_region_take(region, samples_count, sizeof *lining->sample);
    lining->sight = tarn_region_take(region, samples_count, sizeof *lining->sight);
    lining->joint = tarn_region_take(region, streams_count * samples_count, sizeof *lining->joint);
    if (region->is_exhausted) return false;
    draw_samples(lining);
    for (uint32_t s = 0; s < streams_count; s++) {
        look(lining, s, lining->sight);
        join_stream(lining, s);
    }
    tarn_region_release(region, mark);
    return true;
}

/* ---- Storages by line ---- */

/* Counting sort by line and rank. */
static bool sort_storages(struct tarn_clusters *clusters, struct tarn_region *region,
                          uint32_t lines_count)
{
    const struct tarn_problem *problem = clusters->field->problem;
    const uint32_t *stream = problem->conflicts.reuse.stream;
    uint32_t count = clusters->count, place = 0;
    uint32_t *sorted = tarn_region_take(region, count, sizeof *sorted);
    struct tarn_lines *lines = &clusters->lines;
    lines->place_of = tarn_region_take(region, count, sizeof *lines->place_of);
    struct tarn_region_mark mark = tarn_region_mark(region);
    uint32_t *next = tarn_region_take(region, (size_t)problem->ops_count + 1, sizeof *next);
    uint32_t *by_rank = tarn_region_take(region, count, sizeof *by_rank);
    if (region->is_exhausted) return false;
    for (uint32_t i = 0; i < count; i++)
        next[tarn_problem_begin(problem, clusters->storages[i]) + 1]++;
    for (uint32_t rank = 0; rank < problem->ops_count; rank++) next[rank + 1] += next[rank];
    for (uint32_t i = 0; i < count; i++)
        by_rank[next[tarn_problem_begin(problem, clusters->storages[i])]++] = i;
    for (uint32_t line = 0; line < lines_count; line++)
        for (uint32_t n = 0; n < count; n++) {
            uint32_t i = by_rank[n], a = clusters->storages[i];
            if (lines->of[stream[a]] != line) continue;
            lines->place_of[i] = place;
            sorted[place++] = a;
        }
    assert(place == count);
    tarn_region_release(region, mark);
    clusters->storages = sorted;
    return true;
}

/* Finds, by rank, the first place of a line, starting at *begin, that is produced at this rank or
 * later; *begin becomes the line's end. */
static void find_places(const struct tarn_clusters *clusters, uint32_t line, uint32_t *begin,
                        uint32_t *place_at)
{
    const struct tarn_problem *problem = clusters->field->problem;
    uint32_t rank = 0, i = *begin;
    for (; i < clusters->count && tarn_clusters_stream(clusters, i) == line; i++)
        while (rank <= tarn_problem_begin(problem, clusters->storages[i])) place_at[rank++] = i;
    while (rank <= problem->ops_count) place_at[rank++] = i;
    *begin = i;
}

static bool find_ends(const struct tarn_clusters *clusters, struct tarn_region *region,
                      const struct tarn_lifetimes *lifetimes, uint32_t lines_count)
{
    const struct tarn_lines *lines = &clusters->lines;
    size_t ranks_count = (size_t)lifetimes->problem->ops_count + 1;
    uint32_t *place_at = tarn_region_take(region, ranks_count, sizeof *place_at), begin = 0;
    if (!place_at) return false;
    for (uint32_t line = 0; line < lines_count; line++) {
        uint32_t *end = lines->end + (size_t)line * clusters->count;
        find_places(clusters, line, &begin, place_at);
        if (!tarn_lifetimes_end(lifetimes, region, lines->of, line)) return false;
        for (uint32_t i = 0; i < clusters->count; i++)
            end[lines->place_of[i]] = place_at[lifetimes->until[i]];
    }
    return true;
}

static bool line_up(struct tarn_clusters *clusters, struct tarn_region *region,
                    uint32_t lines_count)
{
    const struct tarn_problem *problem = clusters->field->problem;
    const uint32_t *storages = clusters->storages;
    struct tarn_region work = {.chunks = NULL};
    struct tarn_lifetimes lifetimes;
    clusters->lines.end = tarn_region_take(region, (size_t)lines_count * clusters->count,
                                           sizeof *clusters->lines.end);
    bool ok =
        clusters->lines.end && sort_storages(clusters, region, lines_count) &&
        tarn_lifetimes_begin(&lifetimes, &work, problem, storages, clusters->count) == TARN_OK &&
        find_ends(clusters, &work, &lifetimes, lines_count);
    tarn_region_finish(&work);
    return ok;
}

bool tarn_lines_find(struct tarn_clusters *clusters, struct tarn_region *region)
{
    const struct tarn_problem *problem = clusters->field->problem;
    const struct tarn_windows_settings *settings = clusters->settings;
    uint32_t streams_count = problem->conflicts.reuse.streams_count;
    double aim = (double)settings->aim * (double)(UINT64_C(1) << settings->unit_shift);
    struct lining lining = {.clusters = clusters, .samples_count = SAMPLES};
    if (clusters->count < SAMPLES) lining.samples_count = clusters->count;
    lining.loss_max =
        aim / LOSS_SHARE * problem->ops_count * lining.samples_count / clusters->count;
    lining.of = tarn_region_take(region, streams_count, sizeof *lining.of);
    if (!lining.of || !find_lines(&lining, region)) return false;
    if (lining.count > streams_count / LINES_SHARE) return true;
    clusters->lines.of = lining.of;
    return line_up(clusters, region, lining.count);
}
