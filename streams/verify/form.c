/* Checks a plan's form, without running it: lists, waits, one offset for every storage, and a
 * footprint that is not below the bound. Members of a contiguous group lie back to back in exact
 * bytes; only the group's start is aligned and only its end padded, unless the group is a padded
 * one. Cost: linear. */
#include <assert.h>
#include <stdio.h>

#include "streams/base/checked.h"
#include "streams/base/error.h"
#include "streams/graph/report.h"
#include "verdict.h"
#include "verify.h"

/* ---- Lists and waits ---- */

static void add_op(struct tarn_verdict *verdict, const struct tarn_plan *plan, uint32_t op,
                   const char *what)
{
    struct tarn_violation violation = tarn_violation_of(TARN_MISSING);
    violation.op = op;
    tarn_verdict_add(verdict, violation, TARN_NO_SUSPECTS, "%s %s",
                     tarn_op_label(plan->graph, op).text, what);
}

static void check_listed(const struct tarn_plan *plan, uint32_t stream, uint32_t op,
                         unsigned char *listed, struct tarn_verdict *verdict)
{
    if (op >= plan->graph->ops_count)
        add_op(verdict, plan, op, "is in a stream's list, but not in the graph");
    else if (plan->graph->ops[op].view)
        add_op(verdict, plan, op, "is a view, but in a stream's list as if it were launched");
    else if (plan->graph->ops[op].stream != stream)
        add_op(verdict, plan, op, "is in the list of another stream than its own");
    else if (listed[op])
        add_op(verdict, plan, op, "is listed twice");
    else
        listed[op] = 1;
}

static void check_lists(const struct tarn_plan *plan, unsigned char *listed,
                        struct tarn_verdict *verdict)
{
    for (uint32_t s = 0; s < plan->streams_count; s++) {
        for (uint32_t i = plan->list_begin[s]; i < plan->list_begin[s + 1]; i++)
            check_listed(plan, s, plan->list[i], listed, verdict);
    }
    for (uint32_t v = 0; v < plan->graph->ops_count; v++) {
        if (!plan->graph->ops[v].view && !listed[v])
            add_op(verdict, plan, v, "is in no stream's list");
    }
}

static void check_waits(const struct tarn_plan *plan, const struct tarn_wait *waits, uint32_t count,
                        const unsigned char *listed, struct tarn_verdict *verdict)
{
    for (uint32_t i = 0; i < count; i++) {
        uint32_t op = waits[i].op, on = waits[i].on;
        if (op >= plan->graph->ops_count || !listed[op])
            add_op(verdict, plan, op, "has to wait, but is not launched");
        if (on >= plan->graph->ops_count || !listed[on])
            add_op(verdict, plan, on, "is waited for, but is not launched");
    }
}

static bool check_schedule(const struct tarn_plan *plan, struct tarn_verdict *verdict)
{
    if (plan->streams_count != plan->graph->streams_count) {
        tarn_verdict_add(verdict, tarn_violation_of(TARN_MISSING), TARN_NO_SUSPECTS,
                         "%u stream lists for a graph of %u streams", plan->streams_count,
                         plan->graph->streams_count);
        return false;
    }
    size_t before = verdict->count;
    struct tarn_region region = {.chunks = NULL};
    unsigned char *listed = tarn_region_take(&region, plan->graph->ops_count, sizeof *listed);
    if (!listed) {
        verdict->no_memory = true;
        return false;
    }
    check_lists(plan, listed, verdict);
    check_waits(plan, plan->waits, plan->waits_count, listed, verdict);
    check_waits(plan, plan->boundary_waits, plan->boundary_waits_count, listed, verdict);
    tarn_region_finish(&region);
    return verdict->count == before && !verdict->no_memory;
}

/* ---- Places: there ---- */

/* One list of offsets for the storages [first, first + count), in the same order. */
struct place_list {
    const struct tarn_place *places;
    uint32_t places_count;
    uint32_t first, count;
};

static uint32_t id_of(const struct tarn_storage *storage)
{
    return storage->tensor != TARN_NONE ? storage->tensor : storage->producer;
}

static struct tarn_violation violation_of_storage(const struct tarn_graph *graph, uint32_t storage,
                                                  enum tarn_violation_kind kind)
{
    struct tarn_violation violation = tarn_violation_of(kind);
    violation.tensor = graph->storages[storage].tensor;
    if (violation.tensor == TARN_NONE) violation.op = graph->storages[storage].producer;
    return violation;
}

static void check_size(const struct tarn_graph *graph, uint32_t storage,
                       const struct tarn_place *place, struct tarn_verdict *verdict)
{
    if (place->size == graph->storages[storage].size) return;
    struct tarn_violation violation = violation_of_storage(graph, storage, TARN_MISSING);
    tarn_verdict_add(verdict, violation, TARN_NO_SUSPECTS, "%s has %s, its place has %llu",
                     tarn_storage_label(graph, storage).text,
                     tarn_bytes_phrase(graph->storages[storage].size).text,
                     (unsigned long long)place->size);
}

static void add_missing(const struct tarn_graph *graph, uint32_t storage,
                        struct tarn_verdict *verdict)
{
    struct tarn_violation violation = violation_of_storage(graph, storage, TARN_MISSING);
    tarn_verdict_add(verdict, violation, TARN_NO_SUSPECTS, "%s has no place",
                     tarn_storage_label(graph, storage).text);
}

static void add_unknown(uint32_t id, bool twice, struct tarn_verdict *verdict)
{
    tarn_verdict_add(verdict, tarn_violation_of(TARN_MISSING), TARN_NO_SUSPECTS,
                     twice ? "two places for id %u" : "a place for id %u, which needs none there",
                     id);
}

/* Both lists ascend by id. */
static void check_list(const struct tarn_plan *plan, struct place_list list,
                       struct tarn_verdict *verdict)
{
    const struct tarn_graph *graph = plan->graph;
    uint32_t i = 0;
    for (uint32_t a = list.first; a < list.first + list.count; a++) {
        uint32_t id = id_of(&graph->storages[a]);
        for (; i < list.places_count && list.places[i].id < id; i++)
            add_unknown(list.places[i].id, false, verdict);
        if (i < list.places_count && list.places[i].id == id) {
            check_size(graph, a, &list.places[i++], verdict);
            for (; i < list.places_count && list.places[i].id == id; i++)
                add_unknown(id, true, verdict);
        } else {
            add_missing(graph, a, verdict);
        }
    }
    for (; i < list.places_count; i++) add_unknown(list.places[i].id, false, verdict);
}

static bool check_present(const struct tarn_plan *plan, struct tarn_verdict *verdict)
{
    const struct tarn_graph *graph = plan->graph;
    size_t before = verdict->count;
    uint32_t roots = 0;
    while (roots < graph->planned_count && graph->storages[roots].tensor != TARN_NONE) roots++;
    check_list(plan, (struct place_list){plan->storages, plan->storages_count, 0, roots}, verdict);
    check_list(plan,
               (struct place_list){plan->workspaces, plan->workspaces_count, roots,
                                   graph->planned_count - roots},
               verdict);
    check_list(plan,
               (struct place_list){plan->places_persistent, plan->places_persistent_count,
                                   graph->planned_count,
                                   graph->storages_count - graph->planned_count},
               verdict);
    return verdict->count == before && !verdict->no_memory;
}

/* ---- Places: where ---- */

/* An offset before its space's start wraps around, to far above its end. */
static uint64_t offset_in_space(const struct tarn_plan *plan, uint32_t storage)
{
    const struct tarn_storage *record = &plan->graph->storages[storage];
    return tarn_plan_place(plan, storage)->offset -
           tarn_plan_space_begin(plan, record->space, record->persistent);
}

static void check_range(const struct tarn_plan *plan, uint32_t storage,
                        struct tarn_verdict *verdict)
{
    const struct tarn_storage *record = &plan->graph->storages[storage];
    uint64_t offset = offset_in_space(plan, storage), end;
    uint64_t limit = record->persistent ? plan->persistent : plan->footprint;
    uint64_t reserved = tarn_storage_reserved(plan->graph, storage, plan->alignment);
    if (plan->spaces) {
        const struct tarn_plan_space *space = &plan->spaces[record->space];
        limit = record->persistent ? space->persistent : space->footprint;
    }
    if (tarn_size_add(offset, reserved, &end) && end <= limit) return;
    struct tarn_violation violation = violation_of_storage(plan->graph, storage, TARN_OUT_OF_RANGE);
    tarn_verdict_add(
        verdict, violation, TARN_NO_SUSPECTS,
        "%s at offset %llu%s reserves %s and ends above the %s of %s",
        tarn_storage_label(plan->graph, storage).text, (unsigned long long)offset,
        tarn_space_phrase(plan->graph, record->space).text, tarn_bytes_phrase(reserved).text,
        record->persistent ? "persistent part" : "footprint", tarn_bytes_phrase(limit).text);
}

static void check_alignment(const struct tarn_plan *plan, uint32_t storage,
                            struct tarn_verdict *verdict)
{
    uint64_t own = tarn_own_alignment(plan->graph, &plan->graph->storages[storage]);
    uint64_t alignment = tarn_storage_alignment(plan->graph, storage, plan->alignment);
    uint64_t offset = offset_in_space(plan, storage);
    if (own > alignment) alignment = own;
    if (offset % alignment == 0) return;
    struct tarn_violation violation = violation_of_storage(plan->graph, storage, TARN_MISALIGNED);
    tarn_verdict_add(verdict, violation, TARN_NO_SUSPECTS,
                     "%s lies at offset %llu%s, which is no multiple of %llu",
                     tarn_storage_label(plan->graph, storage).text, (unsigned long long)offset,
                     tarn_space_phrase(plan->graph, plan->graph->storages[storage].space).text,
                     (unsigned long long)alignment);
}

static void check_fixed(const struct tarn_plan *plan, uint32_t storage,
                        struct tarn_verdict *verdict)
{
    uint32_t t = plan->graph->storages[storage].tensor;
    if (!tarn_storage_is_fixed(plan->graph, storage)) return;
    uint64_t offset = offset_in_space(plan, storage),
             wanted = tarn_tensor_wanted(&plan->graph->tensors[t]);
    if (offset == wanted) return;
    struct tarn_violation violation = violation_of_storage(plan->graph, storage, TARN_MISPLACED);
    tarn_verdict_add(verdict, violation, TARN_NO_SUSPECTS,
                     "%s lies at offset %llu%s, but the graph fixes it at %llu",
                     tarn_storage_label(plan->graph, storage).text, (unsigned long long)offset,
                     tarn_space_phrase(plan->graph, plan->graph->storages[storage].space).text,
                     (unsigned long long)wanted);
}

/* Is a member of a contiguous group where it is wanted? That is counted from another member, which
 * the message names. */
static void check_member(const struct tarn_plan *plan, uint32_t storage, uint64_t wanted,
                         const char *relation, uint32_t other, struct tarn_verdict *verdict)
{
    uint64_t offset = offset_in_space(plan, storage);
    if (offset == wanted) return;
    struct tarn_violation violation = violation_of_storage(plan->graph, storage, TARN_GROUP_BROKEN);
    violation.other_tensor = plan->graph->storages[other].tensor;
    tarn_verdict_add(verdict, violation, TARN_NO_SUSPECTS,
                     "%s lies at offset %llu%s; its contiguous group needs it at %lld, %s %s",
                     tarn_storage_label(plan->graph, storage).text, (unsigned long long)offset,
                     tarn_space_phrase(plan->graph, plan->graph->storages[storage].space).text,
                     (long long)wanted, relation,
                     tarn_tensor_label(plan->graph, violation.other_tensor).text);
}

/* Members follow each other without a gap, or with offsets lie where the first one's says. */
static void check_group(const struct tarn_plan *plan, const struct tarn_group *group,
                        struct tarn_verdict *verdict)
{
    const struct tarn_graph *graph = plan->graph;
    for (uint32_t i = 1; i < group->storages_count; i++) {
        uint32_t storage = group->storages[i];
        uint32_t other = group->storages[group->within ? 0 : i - 1];
        uint64_t from = offset_in_space(plan, other);
        if (group->within) {
            check_member(plan, storage, from - group->within[0] + group->within[i], "counted from",
                         other, verdict);
        } else {
            uint64_t bytes = graph->groups[graph->storages[storage].group].padded
                                 ? tarn_storage_reserved(graph, other, plan->alignment)
                                 : graph->storages[other].size;
            check_member(plan, storage, from + bytes, "after", other, verdict);
        }
    }
}

/* A group begins at a multiple of the alignment, and of its members' own. */
static void check_begin(const struct tarn_plan *plan, const struct tarn_group *group,
                        struct tarn_verdict *verdict)
{
    for (uint32_t i = 0; i < group->storages_count; i++)
        if (i == 0 || (group->within && group->within[i] == 0))
            check_alignment(plan, group->storages[i], verdict);
}

static void check_positions(const struct tarn_plan *plan, struct tarn_verdict *verdict)
{
    const struct tarn_graph *graph = plan->graph;
    for (uint32_t a = 0; a < graph->storages_count; a++) {
        check_range(plan, a, verdict);
        check_fixed(plan, a, verdict);
        if (graph->storages[a].group == TARN_NONE) check_alignment(plan, a, verdict);
    }
    for (uint32_t g = 0; g < graph->groups_count; g++)
        check_begin(plan, &graph->groups[g], verdict);
    for (uint32_t g = 0; g < graph->given_count; g++) check_group(plan, &graph->given[g], verdict);
}

/* ---- Spaces ---- */

static void add_space(struct tarn_verdict *verdict, const struct tarn_graph *graph,
                      enum tarn_violation_kind kind, uint32_t s, const char *what)
{
    char quoted[100] = "";
    if (s < graph->spaces_count)
        snprintf(quoted, sizeof quoted, " (%s)", tarn_quote(graph->spaces[s].name).text);
    tarn_verdict_add(verdict, tarn_violation_of(kind), TARN_NO_SUSPECTS, "memory space %u %s%s", s,
                     what, quoted);
}

/* Spaces follow one another, add up to the sums, and each is within its capacity. */
static bool check_spaces(const struct tarn_plan *plan, struct tarn_verdict *verdict)
{
    const struct tarn_graph *graph = plan->graph;
    uint64_t begin = 0, persistent = 0, both;
    size_t before = verdict->count;
    if (plan->spaces_count != graph->spaces_count || !plan->spaces != !graph->spaces_count) {
        add_space(verdict, graph, TARN_MISSING, plan->spaces_count,
                  "is not in both plan and graph");
        return false;
    }
    for (uint32_t s = 0; s < plan->spaces_count; s++) {
        const struct tarn_plan_space *space = &plan->spaces[s];
        uint64_t capacity = graph->spaces[s].capacity;
        if (space->begin != begin || space->persistent_begin != persistent)
            add_space(verdict, graph, TARN_OUT_OF_RANGE, s,
                      "does not begin where the one before it ends");
        if (!tarn_size_add(begin, space->footprint, &begin) ||
            !tarn_size_add(persistent, space->persistent, &persistent) ||
            !tarn_size_add(space->footprint, space->persistent, &both)) {
            add_space(verdict, graph, TARN_OUT_OF_RANGE, s, "exceeds 64 bits");
            return false;
        }
        if (capacity > 0 && both > capacity)
            add_space(verdict, graph, TARN_OUT_OF_RANGE, s, "needs more than its capacity");
        if (space->claim.threshold && space->claim.bound > space->footprint)
            add_space(verdict, graph, TARN_WRONG_BOUND, s, "has a bound above its footprint");
    }
    if (plan->spaces && (begin != plan->footprint || persistent != plan->persistent))
        add_space(verdict, graph, TARN_OUT_OF_RANGE, 0,
                  "and the others are not what the plan sums up");
    return verdict->count == before;
}

/* ---- The window ---- */

static uint64_t arena_of(const struct tarn_plan *plan, uint32_t space)
{
    return plan->spaces ? plan->spaces[space].footprint : plan->footprint;
}

static void check_window(const struct tarn_plan *plan, struct tarn_verdict *verdict)
{
    const struct tarn_graph *graph = plan->graph;
    const struct tarn_window *window = &plan->window;
    uint32_t spaces = graph->spaces_count > 0 ? graph->spaces_count : 1;
    if (window->size > 0 &&
        (window->space >= spaces || window->size > arena_of(plan, window->space) ||
         window->offset > arena_of(plan, window->space) - window->size)) {
        tarn_verdict_add(verdict, tarn_violation_of(TARN_OUT_OF_RANGE), TARN_NO_SUSPECTS,
                         "the window of %s at offset %llu of memory space %u does not end "
                         "inside the arena",
                         tarn_bytes_phrase(window->size).text, (unsigned long long)window->offset,
                         window->space);
        return;
    }
    for (uint32_t g = 0; g < graph->given_count; g++) {
        const struct tarn_group *group = &graph->given[g];
        for (uint32_t i = 0; group->symmetric && i < group->storages_count; i++) {
            uint32_t a = group->storages[i];
            uint64_t at = offset_in_space(plan, a), size = graph->storages[a].size;
            if (graph->storages[a].space == window->space && size <= window->size &&
                at >= window->offset && at - window->offset <= window->size - size)
                continue;
            struct tarn_violation violation =
                violation_of_storage(plan->graph, a, TARN_GROUP_BROKEN);
            tarn_verdict_add(
                verdict, violation, TARN_NO_SUSPECTS,
                "%s of the symmetric group %s lies at offset %llu%s, outside of the "
                "plan's window, which has %s at %llu",
                tarn_storage_label(graph, a).text, tarn_quote(group->symmetric).text,
                (unsigned long long)at, tarn_space_phrase(graph, graph->storages[a].space).text,
                tarn_bytes_phrase(window->size).text, (unsigned long long)window->offset);
        }
    }
}

/* If the footprint is below the bound, one of the two is wrong, whatever the certificate proves. */
static void check_bound(const struct tarn_plan *plan, struct tarn_verdict *verdict)
{
    if (!plan->claim.threshold || plan->claim.bound <= plan->footprint) return;
    tarn_verdict_add(verdict, tarn_violation_of(TARN_WRONG_BOUND), TARN_NO_SUSPECTS,
                     "the plan claims that none is below %s, but has a footprint of %llu "
                     "itself: one of the two is wrong",
                     tarn_bytes_phrase(plan->claim.bound).text,
                     (unsigned long long)plan->footprint);
}

static bool check_totals(const struct tarn_plan *plan, struct tarn_verdict *verdict)
{
    uint64_t total;
    if (!tarn_is_power_of_two(plan->alignment)) {
        tarn_verdict_add(verdict, tarn_violation_of(TARN_MISALIGNED), TARN_NO_SUSPECTS,
                         "the alignment %llu is no power of two",
                         (unsigned long long)plan->alignment);
        return false;
    }
    if (!tarn_size_add(plan->footprint, plan->persistent, &total)) {
        tarn_verdict_add(verdict, tarn_violation_of(TARN_OUT_OF_RANGE), TARN_NO_SUSPECTS,
                         "footprint and persistent part together exceed 64 bits");
        return false;
    }
    return true;
}

/* ---- All of it ---- */

/* The first violation that makes a replay impossible, or NULL. */
static const struct tarn_violation *find_fatal(const struct tarn_verdict *verdict)
{
    for (size_t i = 0; i < verdict->count; i++) {
        enum tarn_violation_kind kind = verdict->violations[i].kind;
        if (kind != TARN_MISALIGNED && kind != TARN_GROUP_BROKEN && kind != TARN_MISPLACED)
            return &verdict->violations[i];
    }
    return NULL;
}

bool tarn_verify_form(const struct tarn_plan *plan, struct tarn_verdict *verdict)
{
    bool complete = check_schedule(plan, verdict);
    complete = check_present(plan, verdict) && complete;
    if (!complete || !check_totals(plan, verdict) || !check_spaces(plan, verdict)) return false;
    check_positions(plan, verdict);
    check_window(plan, verdict);
    check_bound(plan, verdict);
    return !find_fatal(verdict) && !verdict->no_memory;
}

enum tarn_status tarn_plan_check_form(const struct tarn_plan *plan, struct tarn_error *error)
{
    struct tarn_verdict verdict = {0};
    enum tarn_status status = TARN_OK;
    if (!tarn_verify_form(plan, &verdict)) {
        const struct tarn_violation *fatal = find_fatal(&verdict);
        if (!fatal) fatal = verdict.violations;
        status = verdict.no_memory ? tarn_error_no_memory(error)
                                   : tarn_error_set(error, TARN_BAD_INPUT, "%s: %s",
                                                    tarn_violation_text(fatal->kind), fatal->text);
    }
    tarn_region_finish(&verdict.region);
    return status;
}
