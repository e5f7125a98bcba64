/* Proves that plans lie alike where other devices reach into them: equal windows, and equal offsets
 * of symmetric groups of one name. A peer touches the bytes of a group only inside a collective
 * that is under way here (streams/graph/validate_symmetric.c), so no order across devices is needed
 * beyond the order that each plan's own proof shows. Only where a group begins is compared: later
 * members lie alike if those before them have equal sizes, which they need not have. Cost: O(n log
 * n) for n symmetric groups of all plans together. */
#include <stdlib.h>
#include <string.h>

#include "streams/base/error.h"
#include "streams/base/region.h"
#include "streams/graph/report.h"
#include "streams/plan/plan.h"

struct seat {
    const char *name;
    size_t plan;
    uint32_t storage; /* the first one of the group */
    uint64_t offset;  /* of the group, in its space */
};

static int compare_seats(const void *left, const void *right)
{
    const struct seat *a = left, *b = right;
    int order = strcmp(a->name, b->name);
    return order ? order : (a->plan > b->plan) - (a->plan < b->plan);
}

/* A plan places a group's first storage; with offsets, the group begins before it. */
static struct seat seat_of(const struct tarn_plan *plan, size_t p, const struct tarn_group *group)
{
    uint32_t a = group->storages[0];
    uint64_t at = plan->storages[a].offset;
    if (plan->spaces) at -= plan->spaces[plan->graph->storages[a].space].begin;
    if (group->within) at -= group->within[0];
    return (struct seat){group->symmetric, p, a, at};
}

static enum tarn_status check_windows(struct tarn_plan *const *plans, size_t count,
                                      struct tarn_error *error)
{
    for (size_t p = 1; p < count; p++) {
        const struct tarn_window *a = &plans[0]->window, *b = &plans[p]->window;
        if (a->space == b->space && a->offset == b->offset && a->size == b->size) continue;
        return tarn_error_set(
            error, TARN_REJECTED,
            "the plan of graph %s has a window of %llu bytes at offset %llu of memory space %u, "
            "the plan of graph %s one of %llu bytes at %llu of %u: plan them together, as a family",
            tarn_quote(plans[0]->graph->name).text, (unsigned long long)a->size,
            (unsigned long long)a->offset, a->space, tarn_quote(plans[p]->graph->name).text,
            (unsigned long long)b->size, (unsigned long long)b->offset, b->space);
    }
    return TARN_OK;
}

static enum tarn_status check_seats(struct tarn_plan *const *plans, const struct seat *seats,
                                    size_t count, struct tarn_error *error)
{
    for (size_t i = 1; i < count; i++) {
        const struct seat *a = &seats[i - 1], *b = &seats[i];
        if (strcmp(a->name, b->name) != 0 || a->offset == b->offset) continue;
        const struct tarn_graph *graph = plans[b->plan]->graph;
        if (error && error->status == TARN_OK) error->tensor = graph->storages[b->storage].tensor;
        return tarn_error_set(error, TARN_REJECTED,
                              "the symmetric group %s lies at offset %llu in the plan of graph %s, "
                              "and at %llu in the "
                              "plan of graph %s: plan them together, as a family",
                              tarn_quote(b->name).text, (unsigned long long)a->offset,
                              tarn_quote(plans[a->plan]->graph->name).text,
                              (unsigned long long)b->offset, tarn_quote(graph->name).text);
    }
    return TARN_OK;
}

enum tarn_status tarn_family_verify(struct tarn_plan *const *plans, size_t count,
                                    struct tarn_error *error)
{
    if (!plans || count == 0) return tarn_error_null(error, __func__);
    tarn_error_clear(error);
    size_t groups = 0, filled = 0;
    for (size_t p = 0; p < count; p++) {
        if (!plans[p]) return tarn_error_set(error, TARN_USAGE, "plan %zu is NULL", p);
        groups += plans[p]->graph->given_count;
    }
    struct tarn_region region = {.chunks = NULL};
    struct seat *seats = tarn_region_take(&region, groups + 1, sizeof *seats);
    if (!seats) return tarn_error_no_memory(error);
    for (size_t p = 0; p < count; p++)
        for (uint32_t g = 0; g < plans[p]->graph->given_count; g++)
            if (plans[p]->graph->given[g].symmetric)
                seats[filled++] = seat_of(plans[p], p, &plans[p]->graph->given[g]);
    qsort(seats, filled, sizeof *seats, compare_seats);
    enum tarn_status status = check_windows(plans, count, error);
    if (status == TARN_OK) status = check_seats(plans, seats, filled, error);
    tarn_region_finish(&region);
    return status;
}
