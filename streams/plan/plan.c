/* The plan: made from a graph with everything but the offsets, shared by reference count, with
 * getters for offsets. Cost: linear in the graph plus the events. */
#include "plan.h"

#include <string.h>

#include "program.h"
#include "streams/base/bisect.h"
#include "streams/base/checked.h"
#include "streams/base/memory.h"
#include "streams/base/options.h"
#include "streams/order/events/boundary.h"
#include "streams/order/events/events.h"

/* ---- Making ---- */

static enum tarn_status fill_lists(struct tarn_plan *plan, const struct tarn_graph *graph)
{
    plan->streams_count = graph->streams_count;
    plan->list_begin =
        tarn_region_take(&plan->region, (size_t)graph->streams_count + 1, sizeof *plan->list_begin);
    plan->list = tarn_region_take(&plan->region, graph->ops_count, sizeof *plan->list);
    if (!plan->list_begin || !plan->list) return TARN_SYSTEM;
    uint32_t n = 0;
    for (uint32_t s = 0; s < graph->streams_count; s++) {
        const struct tarn_graph_stream *stream = &graph->streams[s];
        for (uint32_t i = 0; i < stream->ops_count; i++) {
            if (!graph->ops[stream->ops[i]].view) plan->list[n++] = stream->ops[i];
        }
        plan->list_begin[s + 1] = n;
    }
    return TARN_OK;
}

static enum tarn_status fill_waits(struct tarn_plan *plan, const struct tarn_graph *graph)
{
    enum tarn_status status =
        tarn_events_minimal(graph, &plan->region, &plan->waits, &plan->waits_count);
    if (status != TARN_OK) return status;
    return tarn_boundary_simple(graph, &plan->boundary_region, &plan->boundary_waits,
                                &plan->boundary_waits_count);
}

static struct tarn_place *new_places(struct tarn_region *region, uint32_t count)
{
    return tarn_region_take(region, count, sizeof(struct tarn_place));
}

/* Storage indices are by tensor id, then by op id, then by tensor id: each list comes out sorted.
 */
static enum tarn_status fill_places(struct tarn_plan *plan, const struct tarn_graph *graph)
{
    uint32_t roots = 0;
    while (roots < graph->planned_count && graph->storages[roots].tensor != TARN_NONE) roots++;
    plan->storages_count = roots;
    plan->workspaces_count = graph->planned_count - roots;
    plan->places_persistent_count = graph->storages_count - graph->planned_count;
    plan->storages = new_places(&plan->region, plan->storages_count);
    plan->workspaces = new_places(&plan->region, plan->workspaces_count);
    plan->places_persistent = new_places(&plan->region, plan->places_persistent_count);
    if (!plan->storages || !plan->workspaces || !plan->places_persistent) return TARN_SYSTEM;
    for (uint32_t a = 0; a < graph->storages_count; a++) {
        const struct tarn_storage *storage = &graph->storages[a];
        struct tarn_place place = {.id = storage->tensor, .size = storage->size};
        if (a < roots) {
            plan->storages[a] = place;
        } else if (a < graph->planned_count) {
            place.id = storage->producer;
            plan->workspaces[a - roots] = place;
        } else {
            plan->places_persistent[a - graph->planned_count] = place;
        }
    }
    return TARN_OK;
}

struct tarn_plan *tarn_plan_of_graph(struct tarn_graph *graph)
{
    struct tarn_plan *plan = tarn_take_zeros(1, sizeof *plan);
    if (!plan) return NULL;
    atomic_init(&plan->references, 1);
    plan->graph = tarn_graph_retain(graph);
    plan->source_hash = graph->hash;
    if (fill_lists(plan, graph) != TARN_OK || fill_waits(plan, graph) != TARN_OK ||
        fill_places(plan, graph) != TARN_OK) {
        tarn_plan_destroy(plan);
        return NULL;
    }
    return plan;
}

enum tarn_status tarn_plan_refine_boundary(struct tarn_plan *plan)
{
    uint32_t planned_count = plan->graph->planned_count;
    /* the last storage of a byte depends on the arms that are taken */
    if (plan->graph->conditionals_count > 0) return TARN_OK;
    struct tarn_region working = {.chunks = NULL};
    uint64_t *offset = tarn_region_take(&working, planned_count, sizeof *offset);
    if (!offset) return TARN_SYSTEM;
    for (uint32_t a = 0; a < planned_count; a++) offset[a] = tarn_plan_place(plan, a)->offset;
    struct tarn_boundary_inside inside = {
        {offset, plan->alignment}, plan->waits, plan->waits_count};
    struct tarn_region region = {.chunks = NULL};
    struct tarn_wait *waits;
    uint32_t count;
    enum tarn_status status = tarn_boundary_refined(plan->graph, &inside, &region, &waits, &count);
    tarn_region_finish(&working);
    if (status != TARN_OK) {
        tarn_region_finish(&region);
        return status;
    }
    tarn_plan_drop_program(plan);
    tarn_region_finish(&plan->boundary_region);
    plan->boundary_region = region;
    plan->boundary_waits = waits;
    plan->boundary_waits_count = count;
    return TARN_OK;
}

struct tarn_plan *tarn_plan_retain(struct tarn_plan *plan)
{
    atomic_fetch_add_explicit(&plan->references, 1, memory_order_relaxed);
    return plan;
}

void tarn_plan_destroy(struct tarn_plan *plan)
{
    if (!plan) return;
    if (atomic_fetch_sub_explicit(&plan->references, 1, memory_order_acq_rel) != 1) return;
    tarn_plan_drop_program(plan);
    tarn_graph_destroy(plan->graph);
    tarn_region_finish(&plan->boundary_region);
    tarn_region_finish(&plan->region);
    tarn_free(plan);
}

/* ---- Asking ---- */

const struct tarn_place *tarn_place_find(const struct tarn_place *places, uint32_t count,
                                         uint32_t id)
{
    uint32_t low = 0, high = count;
    TARN_BISECT(low, high, middle, places[middle].id < id);
    return low < count && places[low].id == id ? &places[low] : NULL;
}

const struct tarn_graph *tarn_plan_graph(const struct tarn_plan *plan)
{
    return plan ? plan->graph : NULL;
}

uint64_t tarn_plan_offset(const struct tarn_plan *plan, tarn_tensor tensor)
{
    if (!plan || tensor >= plan->graph->tensors_count) return UINT64_MAX;
    uint32_t root = plan->graph->tensors[tensor].root;
    const struct tarn_place *place =
        tarn_kind_is_persistent(plan->graph->tensors[root].kind)
            ? tarn_place_find(plan->places_persistent, plan->places_persistent_count, root)
            : tarn_place_find(plan->storages, plan->storages_count, root);
    if (!place) return UINT64_MAX;
    const struct tarn_storage *storage =
        &plan->graph->storages[plan->graph->tensors[tensor].storage];
    return place->offset - tarn_plan_space_begin(plan, storage->space, storage->persistent) +
           tarn_tensor_begin(&plan->graph->tensors[tensor]);
}

uint64_t tarn_plan_workspace_offset(const struct tarn_plan *plan, tarn_op op)
{
    if (!plan) return UINT64_MAX;
    const struct tarn_place *place = tarn_place_find(plan->workspaces, plan->workspaces_count, op);
    if (!place) return UINT64_MAX;
    return place->offset -
           tarn_plan_space_begin(plan, tarn_extra(&plan->graph->ops[op])->workspace_space, false);
}

bool tarn_plan_allow(struct tarn_plan *plan, const char *const *kinds, size_t count)
{
    const char **copy = tarn_region_take(&plan->region, count, sizeof *copy);
    if (!copy) return false;
    for (size_t i = 0; i < count; i++) {
        copy[i] = tarn_region_string(&plan->region, kinds[i]);
        if (!copy[i]) return false;
    }
    plan->in_place_kinds = copy;
    plan->in_place_kinds_count = count;
    return true;
}

bool tarn_plan_stack_spaces(struct tarn_plan *plan)
{
    uint64_t begin = 0, persistent = 0;
    for (uint32_t s = 0; s < plan->spaces_count; s++) {
        plan->spaces[s].begin = begin;
        plan->spaces[s].persistent_begin = persistent;
        if (!tarn_size_add(begin, plan->spaces[s].footprint, &begin) ||
            !tarn_size_add(persistent, plan->spaces[s].persistent, &persistent))
            return false;
    }
    plan->footprint = begin;
    plan->persistent = persistent;
    return true;
}

static struct tarn_certificate certificate_of(const struct tarn_plan *plan,
                                              const struct tarn_claim *claim)
{
    return (struct tarn_certificate){claim->bound,
                                     claim->threshold,
                                     plan->streams_count,
                                     {claim->gaps, claim->gaps_count},
                                     {claim->inside, claim->inside_count},
                                     {claim->arms, claim->arms_count}};
}

bool tarn_plan_space_sized(const struct tarn_plan *plan, tarn_space space,
                           struct tarn_plan_space_summary *summary, size_t size)
{
    if (summary) memset(summary, 0, size);
    if (!plan || !summary || space >= tarn_graph_spaces_count(plan->graph)) return false;
    const struct tarn_plan_space only = {.footprint = plan->footprint,
                                         .persistent = plan->persistent,
                                         .claim = plan->claim,
                                         .method = plan->method};
    const struct tarn_plan_space *part = plan->spaces ? &plan->spaces[space] : &only;
    struct tarn_plan_space_summary known = {
        .method = part->method, .footprint = part->footprint, .persistent = part->persistent};
    if (part->claim.threshold) {
        known.certificate = certificate_of(plan, &part->claim);
        known.bound = part->claim.bound;
        known.optimal = part->footprint == part->claim.bound;
    }
    tarn_struct_give(summary, size, &known, sizeof known);
    return true;
}

/* If a graph is its own source, its `origin` fields are ignored: they belong to the transform that
 * made it. */
static bool is_source(const struct tarn_plan *plan)
{
    return tarn_hash_equal(plan->graph->hash, plan->source_hash);
}

tarn_op tarn_plan_op_origin(const struct tarn_plan *plan, tarn_op op)
{
    if (!plan || op >= plan->graph->ops_count) return TARN_NONE;
    return is_source(plan) ? op : plan->graph->ops[op].origin;
}

tarn_tensor tarn_plan_tensor_origin(const struct tarn_plan *plan, tarn_tensor tensor)
{
    if (!plan || tensor >= plan->graph->tensors_count) return TARN_NONE;
    return is_source(plan) ? tensor : plan->graph->tensors[tensor].origin;
}

uint32_t tarn_plan_op_implementation(const struct tarn_plan *plan, tarn_op op)
{
    if (!plan || op >= plan->graph->ops_count || is_source(plan)) return TARN_NONE;
    return tarn_extra(&plan->graph->ops[op])->implementation;
}

bool tarn_plan_op_is_recomputed(const struct tarn_plan *plan, tarn_op op)
{
    if (!plan || op >= plan->graph->ops_count) return false;
    const struct tarn_graph_op *record = &plan->graph->ops[op];
    if (tarn_plan_op_origin(plan, op) == TARN_NONE)
        return false; /* a move, which computes nothing */
    for (uint32_t k = 0; k < record->outputs_count; k++) {
        if (tarn_plan_tensor_origin(plan, tarn_outputs(record)[k]) != tarn_outputs(record)[k])
            return true;
    }
    return false;
}

struct tarn_list tarn_plan_launches(const struct tarn_plan *plan, tarn_stream stream)
{
    if (!plan || stream >= plan->streams_count) return (struct tarn_list){NULL, 0};
    uint32_t begin = plan->list_begin[stream];
    return (struct tarn_list){plan->list + begin, plan->list_begin[stream + 1] - begin};
}

struct tarn_waits tarn_plan_waits(const struct tarn_plan *plan)
{
    return plan ? (struct tarn_waits){plan->waits, plan->waits_count}
                : (struct tarn_waits){NULL, 0};
}

struct tarn_waits tarn_plan_boundary_waits(const struct tarn_plan *plan)
{
    return plan ? (struct tarn_waits){plan->boundary_waits, plan->boundary_waits_count}
                : (struct tarn_waits){NULL, 0};
}

enum tarn_status tarn_plan_group(const struct tarn_plan *plan, uint32_t group, uint64_t *offset,
                                 uint64_t *size)
{
    if (!plan || group >= plan->graph->given_count) return TARN_USAGE;
    const struct tarn_group *record = &plan->graph->given[group];
    if (offset) *offset = 0;
    if (size) *size = 0;
    if (record->storages_count == 0) return TARN_OK;
    uint64_t begin = UINT64_MAX, end = 0;
    for (uint32_t i = 0; i < record->storages_count; i++) {
        const struct tarn_storage *member = &plan->graph->storages[record->storages[i]];
        uint64_t at = tarn_plan_offset(plan, member->tensor), bytes = member->size;
        uint64_t alignment =
            tarn_storage_alignment(plan->graph, record->storages[i], plan->alignment);
        if (record->padded) bytes += -bytes & (alignment - 1);
        if (at < begin) begin = at;
        if (at + bytes > end) end = at + bytes;
    }
    if (offset) *offset = begin;
    if (size) *size = end - begin;
    return TARN_OK;
}

/* A group's bytes, with what its blocks reserve around them. */
static void widen(const struct tarn_plan *plan, const struct tarn_group *group, uint64_t *begin,
                  uint64_t *end)
{
    for (uint32_t i = 0; i < group->storages_count; i++) {
        uint32_t a = group->storages[i];
        uint64_t mask = tarn_storage_alignment(plan->graph, a, plan->alignment) - 1;
        uint64_t from = tarn_plan_offset_in_space(plan, a);
        uint64_t to = from + plan->graph->storages[a].size;
        if ((from & ~mask) < *begin) *begin = from & ~mask;
        if (((to + mask) & ~mask) > *end) *end = (to + mask) & ~mask;
    }
}

void tarn_plan_set_window(struct tarn_plan *plan)
{
    const struct tarn_graph *graph = plan->graph;
    uint64_t begin = UINT64_MAX, end = 0;
    uint32_t space = 0;
    for (uint32_t g = 0; g < graph->given_count; g++) {
        if (!graph->given[g].symmetric) continue;
        space = graph->storages[graph->given[g].storages[0]].space;
        widen(plan, &graph->given[g], &begin, &end);
    }
    plan->window = (struct tarn_window){0};
    if (end > 0) plan->window = (struct tarn_window){space, begin, end - begin};
}

bool tarn_plan_window(const struct tarn_plan *plan, struct tarn_window *window)
{
    struct tarn_window found = plan ? plan->window : (struct tarn_window){0};
    if (window) *window = found;
    return found.size > 0;
}

bool tarn_plan_certificate(const struct tarn_plan *plan, struct tarn_certificate *certificate)
{
    if (certificate) *certificate = (struct tarn_certificate){0};
    if (!plan || !certificate || !plan->claim.threshold) return false;
    *certificate = certificate_of(plan, &plan->claim);
    return true;
}

static bool is_optimal(const struct tarn_plan *plan)
{
    bool optimal = plan->claim.threshold && (plan->spaces || plan->footprint == plan->claim.bound);
    for (uint32_t s = 0; s < plan->spaces_count; s++) {
        const struct tarn_plan_space *space = &plan->spaces[s];
        optimal = optimal && space->claim.threshold && space->footprint == space->claim.bound;
    }
    return optimal;
}

/* The bounds of all spaces add up. */
static uint64_t bound_of(const struct tarn_plan *plan)
{
    uint64_t sum = 0;
    if (!plan->spaces) return plan->claim.threshold ? plan->claim.bound : 0;
    for (uint32_t s = 0; s < plan->spaces_count; s++) {
        if (!plan->spaces[s].claim.threshold) return 0;
        sum += plan->spaces[s].claim.bound; /* below the footprints, whose sum fits */
    }
    return sum;
}

const char *tarn_plan_asked(const struct tarn_plan *plan) { return plan ? plan->asked : NULL; }

void tarn_plan_summarize_sized(const struct tarn_plan *plan, struct tarn_plan_summary *summary,
                               size_t size)
{
    if (summary) memset(summary, 0, size);
    if (!plan || !summary) return;
    const struct tarn_plan_summary known = {
        .method = plan->method,
        .alignment = plan->alignment,
        .footprint = plan->footprint,
        .persistent = plan->persistent,
        .bound = bound_of(plan),
        .optimal = is_optimal(plan),
        .waits = plan->waits_count,
        .boundary_waits = plan->boundary_waits_count,
        .transform_ms = plan->transform_ms,
        .order_ms = plan->order_ms,
        .place_ms = plan->place_ms,
        .verify_ms = plan->verify_ms,
        .stopped = plan->stopped,
        .ended = is_optimal(plan) ? TARN_END_BOUND : plan->ended,
        .pad_groups = plan->pad_groups,
    };
    tarn_struct_give(summary, size, &known, sizeof known);
}
