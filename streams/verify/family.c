/* Proves that plans lie alike where other devices reach into them: equal windows, equal offsets of
 * symmetric groups of one name, and of the members that collectives begin with. A peer touches the
 * bytes of a group only inside a collective that is under way here
 * (streams/graph/validate_symmetric.c), so no order across devices is needed beyond the order that
 * each plan's own proof shows. A collective begins with the lowest member that it reads or writes:
 * if that is not the first member of the group, the members before it must have equal sizes on all
 * devices. Members are the same by their position among the tensors of the group. Cost: O(n log n)
 * for n symmetric groups of all plans together, and for each group the users of its members and,
 * for each collective, its members in the plans that have it. */
#include <stdlib.h>
#include <string.h>

#include "streams/base/error.h"
#include "streams/base/region.h"
#include "streams/graph/report.h"
#include "verify.h"

struct seat {
    const char *name;
    const struct tarn_group *group;
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
    return (struct seat){group->symmetric, group, p, a, at};
}

static enum tarn_status check_windows(struct tarn_plan *const *plans, size_t count,
                                      struct tarn_error *error)
{
    for (size_t p = 1; p < count; p++) {
        const struct tarn_window *a = &plans[0]->window, *b = &plans[p]->window;
        if (a->space == b->space && a->offset == b->offset && a->size == b->size) continue;
        return tarn_error_set(
            error, TARN_REJECTED,
            "the plan of graph %s has a window of %s at offset %llu of memory space %u, "
            "the plan of graph %s one of %s at %llu of %u: plan them together, as a family",
            tarn_quote(plans[0]->graph->name).text, tarn_bytes_phrase(a->size).text,
            (unsigned long long)a->offset, a->space, tarn_quote(plans[p]->graph->name).text,
            tarn_bytes_phrase(b->size).text, (unsigned long long)b->offset, b->space);
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

/* ---- Where collectives begin ---- */

/* Collectives of a group: by op, the member that it begins with. */
struct begins {
    uint32_t *member, *mark; /* by op; valid if the mark is `now` */
    uint32_t now;
};

/* Where a member lies in its group. */
static uint64_t within(const struct tarn_plan *plan, const struct seat *seat, uint32_t member)
{
    uint32_t a = seat->group->storages[member];
    uint64_t at = plan->storages[a].offset;
    if (plan->spaces) at -= plan->spaces[plan->graph->storages[a].space].begin;
    return at - seat->offset;
}

/* The position of a member among the tensors as given, those without bytes included. */
static uint32_t position_of(const struct tarn_graph *graph, const struct tarn_group *group,
                            uint32_t member)
{
    uint32_t t = 0;
    for (; graph->tensors[group->tensors[t]].storage != group->storages[member]; t++) continue;
    return t;
}

/* The member at a position; TARN_NONE: there is none, or it has no bytes, which nobody reaches. */
static uint32_t member_at(const struct tarn_graph *graph, const struct tarn_group *group,
                          uint32_t position)
{
    if (position >= group->tensors_count) return TARN_NONE;
    uint32_t storage = graph->tensors[group->tensors[position]].storage;
    for (uint32_t k = 0; k < group->storages_count; k++)
        if (group->storages[k] == storage) return k;
    return TARN_NONE;
}

static void find_begins(const struct tarn_plan *plan, const struct seat *seat,
                        struct begins *begins)
{
    const struct tarn_graph *graph = plan->graph;
    begins->now++;
    for (uint32_t k = 0; k < seat->group->storages_count; k++) {
        const struct tarn_storage *storage = &graph->storages[seat->group->storages[k]];
        const uint32_t *users = tarn_storage_users(graph, storage);
        for (uint32_t i = 0; i < storage->users_count; i++) {
            uint32_t op = users[i];
            if (tarn_graph_op_class(graph, op) != TARN_CLASS_COLLECTIVE) continue;
            if (begins->mark[op] == begins->now &&
                within(plan, seat, begins->member[op]) <= within(plan, seat, k))
                continue;
            begins->mark[op] = begins->now;
            begins->member[op] = k;
        }
    }
}

/* Compares a member that a collective `op` of one plan begins with. */
static enum tarn_status compare_member(struct tarn_plan *const *plans, const struct seat *one,
                                       const struct seat *other, uint32_t op, uint32_t member,
                                       enum tarn_status refusal, struct tarn_error *error)
{
    const struct tarn_graph *graph = plans[one->plan]->graph;
    uint32_t same =
        member_at(plans[other->plan]->graph, other->group, position_of(graph, one->group, member));
    if (same == TARN_NONE) return TARN_OK;
    uint64_t here = within(plans[one->plan], one, member),
             there = within(plans[other->plan], other, same);
    if (here == there) return TARN_OK;
    tarn_tensor tensor = graph->storages[one->group->storages[member]].tensor;
    if (error && error->status == TARN_OK) error->op = op, error->tensor = tensor;
    return tarn_error_set(
        error, refusal,
        "the collective %.60s of graph %.60s begins with %.60s, %s after the start of the "
        "symmetric group %.60s, but in graph %.60s that member lies %s after it: give the "
        "members before it equal sizes, or give the member a group of its own",
        tarn_op_label(graph, op).text, tarn_quote(graph->name).text,
        tarn_tensor_label(graph, tensor).text, tarn_bytes_phrase(here).text,
        tarn_quote(one->name).text, tarn_quote(plans[other->plan]->graph->name).text,
        tarn_bytes_phrase(there).text);
}

/* seats: all those of one name. */
static enum tarn_status check_name(struct tarn_plan *const *plans, const struct seat *seats,
                                   size_t count, struct begins *begins, enum tarn_status refusal,
                                   struct tarn_error *error)
{
    enum tarn_status status = TARN_OK;
    for (size_t i = 0; i < count && count > 1; i++) {
        const struct tarn_plan *plan = plans[seats[i].plan];
        find_begins(plan, &seats[i], begins);
        for (uint32_t k = 0; k < seats[i].group->storages_count; k++) {
            const struct tarn_storage *storage =
                &plan->graph->storages[seats[i].group->storages[k]];
            const uint32_t *users = tarn_storage_users(plan->graph, storage);
            for (uint32_t u = 0; u < storage->users_count; u++) {
                uint32_t op = users[u];
                if (begins->mark[op] != begins->now || begins->member[op] != k) continue;
                for (size_t o = 0; o < count && status == TARN_OK; o++)
                    status = compare_member(plans, &seats[i], &seats[o], op, k, refusal, error);
                if (status != TARN_OK) return status;
                break; /* others begin there, too */
            }
        }
    }
    return TARN_OK;
}

static enum tarn_status check_begins(struct tarn_plan *const *plans, size_t plans_count,
                                     const struct seat *seats, size_t count,
                                     enum tarn_status refusal, struct tarn_region *region,
                                     struct tarn_error *error)
{
    struct begins begins = {.now = 0};
    size_t ops = 0;
    for (size_t p = 0; p < plans_count; p++)
        if (plans[p]->graph->ops_count > ops) ops = plans[p]->graph->ops_count;
    begins.member = tarn_region_take(region, ops + 1, sizeof *begins.member);
    begins.mark = tarn_region_take(region, ops + 1, sizeof *begins.mark);
    if (region->is_exhausted) return tarn_error_no_memory(error);
    enum tarn_status status = TARN_OK;
    for (size_t first = 0, end; first < count && status == TARN_OK; first = end) {
        for (end = first + 1; end < count && strcmp(seats[first].name, seats[end].name) == 0;)
            end++;
        status = check_name(plans, seats + first, end - first, &begins, refusal, error);
    }
    return status;
}

/* ---- All of it ---- */

/* Sorted by name, then by plan; from the region. */
static struct seat *find_seats(struct tarn_plan *const *plans, size_t count,
                               struct tarn_region *region, size_t *filled)
{
    size_t groups = 0;
    *filled = 0;
    for (size_t p = 0; p < count; p++) groups += plans[p]->graph->given_count;
    struct seat *seats = tarn_region_take(region, groups + 1, sizeof *seats);
    for (size_t p = 0; p < count && seats; p++)
        for (uint32_t g = 0; g < plans[p]->graph->given_count; g++)
            if (plans[p]->graph->given[g].symmetric)
                seats[(*filled)++] = seat_of(plans[p], p, &plans[p]->graph->given[g]);
    if (seats) qsort(seats, *filled, sizeof *seats, compare_seats);
    return seats;
}

enum tarn_status tarn_family_check_begins(struct tarn_plan *const *plans, size_t count,
                                          struct tarn_error *error)
{
    struct tarn_region region = {.chunks = NULL};
    size_t filled;
    const struct seat *seats = find_seats(plans, count, &region, &filled);
    enum tarn_status status =
        seats ? check_begins(plans, count, seats, filled, TARN_BAD_INPUT, &region, error)
              : tarn_error_no_memory(error);
    tarn_region_finish(&region);
    return status;
}

enum tarn_status tarn_family_verify(struct tarn_plan *const *plans, size_t count,
                                    struct tarn_error *error)
{
    if (!plans || count == 0) return tarn_error_null(error, __func__);
    tarn_error_clear(error);
    for (size_t p = 0; p < count; p++)
        if (!plans[p]) return tarn_error_set(error, TARN_USAGE, "plan %zu is NULL", p);
    struct tarn_region region = {.chunks = NULL};
    size_t filled;
    const struct seat *seats = find_seats(plans, count, &region, &filled);
    if (!seats) return tarn_error_no_memory(error);
    enum tarn_status status = check_windows(plans, count, error);
    if (status == TARN_OK) status = check_seats(plans, seats, filled, error);
    if (status == TARN_OK)
        status = check_begins(plans, count, seats, filled, TARN_REJECTED, &region, error);
    tarn_region_finish(&region);
    return status;
}
