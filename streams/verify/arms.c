/* Checks the safety of conditional storages: storages whose producers are in arms of conditionals.
 * The replay runs every op, as if all arms were taken, and leaves their bytes out of its map. Here
 * every two storages that share a reserved byte, one of them conditional, are checked. Either their
 * producers exclude each other in the graph, or one storage precedes the other, within an iteration
 * and from one iteration to the next.
 * Cost: O(steps + waits S) for the clocks, a row of them for each producer, O(users) for a pair. */
#include <stdlib.h>
#include <string.h>

#include "past.h"
#include "streams/graph/report.h"
#include "verdict.h"

struct arms {
    const struct tarn_plan *plan;
    const struct tarn_graph *graph;
    const struct tarn_program *program;
    uint32_t *rows; /* [storage][stream]: clock of its producer in the second iteration */
};

/* ---- Clocks ---- */

static enum tarn_status fill_rows(struct arms *arms, struct tarn_region *region)
{
    const struct tarn_program *program = arms->program;
    struct tarn_past past;
    uint32_t streams = program->streams_count;
    uint32_t *first = tarn_region_take(region, program->steps_count, sizeof *first);
    uint32_t *next = tarn_region_take(region, arms->graph->planned_count, sizeof *next);
    arms->rows =
        tarn_region_take(region, (size_t)arms->graph->planned_count * streams, sizeof(uint32_t));
    if (!first || !next || !arms->rows || tarn_past_init(&past, region, program))
        return TARN_SYSTEM;
    for (uint32_t i = 0; i < program->steps_count; i++) first[i] = TARN_NONE;
    for (uint32_t a = 0; a < arms->graph->planned_count; a++) {
        uint32_t step = program->step_of[arms->graph->storages[a].producer];
        next[a] = first[step];
        first[step] = a;
    }
    for (uint32_t k = 0; k < 2; k++) {
        for (uint32_t i = 0; i < program->steps_count; i++) {
            uint32_t step = program->order[i];
            tarn_past_enter(&past, k * program->steps_count + step);
            for (uint32_t a = first[step]; k > 0 && a != TARN_NONE; a = next[a])
                memcpy(arms->rows + (size_t)a * streams,
                       past.clocks + (size_t)program->steps[step].stream * streams,
                       streams * sizeof *arms->rows);
            if (tarn_past_leave(&past) != TARN_OK) return TARN_SYSTEM;
        }
    }
    return TARN_OK;
}

/* A user of storage a in iteration k that does not come before the producer of b in the second
 * iteration; TARN_NONE: all do. */
static uint32_t find_unordered(const struct arms *arms, uint32_t a, uint32_t b, uint32_t k)
{
    const struct tarn_storage *record = &arms->graph->storages[a];
    const uint32_t *row = arms->rows + (size_t)b * arms->program->streams_count;
    for (uint32_t i = 0; i < record->users_count; i++) {
        uint32_t op = tarn_storage_users(arms->graph, record)[i];
        uint32_t step = arms->program->step_of[op];
        uint32_t node = k * arms->program->steps_count + step;
        if (row[arms->program->steps[step].stream] <= node) return op;
    }
    return TARN_NONE;
}

/* ---- Pairs ---- */

static void report(const struct arms *arms, struct tarn_verdict *verdict, uint32_t a, uint32_t b,
                   uint32_t user, const char *when)
{
    const struct tarn_graph *graph = arms->graph;
    struct tarn_violation violation = tarn_violation_of(TARN_UNORDERED_OVERLAP);
    violation.op = graph->storages[b].producer;
    violation.other_op = user;
    violation.tensor = graph->storages[b].tensor;
    violation.other_tensor = graph->storages[a].tensor;
    tarn_verdict_add(verdict, violation, TARN_NO_SUSPECTS,
                     "%s writes %s, which shares bytes with %s that %s uses%s; nothing orders the "
                     "use before the write, and no conditional excludes that both run",
                     tarn_op_label(graph, violation.op).text, tarn_storage_label(graph, b).text,
                     tarn_storage_label(graph, a).text, tarn_op_label(graph, user).text, when);
}

static void check_pair(const struct arms *arms, struct tarn_verdict *verdict, uint32_t a,
                       uint32_t b)
{
    const struct tarn_graph *graph = arms->graph;
    if (!tarn_storage_is_conditional(graph, a) && !tarn_storage_is_conditional(graph, b)) return;
    uint32_t before = find_unordered(arms, a, b, 0), after = find_unordered(arms, b, a, 0);
    if (before != TARN_NONE) report(arms, verdict, a, b, before, " in the previous iteration");
    if (after != TARN_NONE) report(arms, verdict, b, a, after, " in the previous iteration");
    if (a == b || tarn_storages_exclude(graph, a, b) || tarn_storages_take_turns(graph, a, b) ||
        tarn_storages_take_turns(graph, b, a))
        return;
    uint32_t user =
        graph->storages[a].pinned ? graph->storages[a].producer : find_unordered(arms, a, b, 1);
    uint32_t other =
        graph->storages[b].pinned ? graph->storages[b].producer : find_unordered(arms, b, a, 1);
    if (user != TARN_NONE && other != TARN_NONE) report(arms, verdict, a, b, user, "");
}

static uint64_t begin_of(const struct arms *arms, uint32_t a)
{
    return tarn_plan_place(arms->plan, a)->offset;
}

static uint64_t end_of(const struct arms *arms, uint32_t a)
{
    return begin_of(arms, a) + tarn_storage_reserved(arms->graph, a, arms->plan->alignment);
}

struct extent {
    uint64_t begin, end;
    uint32_t storage;
};

static int compare_extents(const void *left, const void *right)
{
    const struct extent *a = left, *b = right;
    return (a->begin > b->begin) - (a->begin < b->begin);
}

/* In the order of offsets, checks each storage with those that begin before it and end after its
 * start. */
static bool check_pairs(const struct arms *arms, struct tarn_region *region,
                        struct tarn_verdict *verdict)
{
    uint32_t count = 0, active_count = 0;
    size_t storages = arms->graph->planned_count;
    struct extent *extents = tarn_region_take(region, storages, sizeof *extents);
    struct extent *active = tarn_region_take(region, storages, sizeof *active);
    if (!extents || !active) return false;
    for (uint32_t a = 0; a < storages; a++)
        if (begin_of(arms, a) < end_of(arms, a))
            extents[count++] = (struct extent){begin_of(arms, a), end_of(arms, a), a};
    if (count > 0) qsort(extents, count, sizeof *extents, compare_extents);
    for (uint32_t i = 0; i < count && !tarn_verdict_is_full(verdict); i++) {
        uint32_t kept = 0;
        for (uint32_t k = 0; k < active_count; k++)
            if (active[k].end > extents[i].begin) active[kept++] = active[k];
        active_count = kept;
        active[active_count++] = extents[i];
        for (uint32_t k = 0; k < active_count; k++)
            check_pair(arms, verdict, active[k].storage, extents[i].storage);
    }
    return true;
}

enum tarn_status tarn_verify_arms(const struct tarn_verification *verification)
{
    struct arms arms = {.plan = verification->plan,
                        .graph = verification->plan->graph,
                        .program = verification->program};
    if (arms.graph->conditionals_count == 0) return TARN_OK;
    struct tarn_region_mark mark = tarn_region_mark(verification->region);
    enum tarn_status status = fill_rows(&arms, verification->region);
    if (status == TARN_OK && !check_pairs(&arms, verification->region, verification->verdict))
        status = TARN_SYSTEM;
    tarn_region_release(verification->region, mark);
    return status;
}
