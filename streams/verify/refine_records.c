/* Refinement, the records: what the plan's graph says of every stream, space, group and tensor is
 * what the source graph says, or follows from what transforms may do. `docs/formats.md` has the
 * table of fields, and what holds each. Ops have a file of their own, refine_op.c.
 *
 * Cost: linear in the graphs and their names. */
#include <stdio.h>
#include <string.h>

#include "refine.h"
#include "streams/graph/report.h"

/* ---- Streams ---- */

static bool has_streams_of_source(const struct tarn_comparison *comparison)
{
    const struct tarn_graph *source = comparison->source, *final = comparison->final;
    bool equal = source->streams_count == final->streams_count;
    for (uint32_t s = 0; equal && s < final->streams_count; s++)
        equal = strcmp(final->streams[s].name, source->streams[s].name) == 0;
    return equal;
}

static bool is_named(const struct tarn_graph *graph, uint32_t s, const char *word, bool is_numbered)
{
    char name[32];
    snprintf(name, sizeof name, is_numbered ? "%s%u" : "%s", word, s);
    return s < graph->streams_count && strcmp(graph->streams[s].name, name) == 0;
}

/* Streams that ops are assigned to: chain0, chain1, ..., or compute0, compute1, ..., communication,
 * copy, the last two where there is something for them. */
static bool has_assigned_streams(const struct tarn_comparison *comparison)
{
    const struct tarn_graph *final = comparison->final;
    uint32_t s = 0;
    while (is_named(final, s, "chain", true)) s++;
    if (s > 0) return s == final->streams_count;
    while (is_named(final, s, "compute", true)) s++;
    s += is_named(final, s, "communication", false);
    s += is_named(final, s, "copy", false);
    return s == final->streams_count;
}

static void check_streams(struct tarn_comparison *comparison)
{
    comparison->may_assign = has_assigned_streams(comparison);
    if (comparison->may_assign || has_streams_of_source(comparison)) return;
    tarn_refine_add(
        comparison, tarn_violation_of(TARN_WRONG_GRAPH),
        "the plan's graph has neither the streams of the source graph nor streams "
        "that ops are assigned to (compute0, ..., communication, copy, or chain0, ...)");
}

/* ---- Spaces ---- */

static void check_space(struct tarn_comparison *comparison, uint32_t s)
{
    const struct tarn_space_info *a = &comparison->final->spaces[s];
    const struct tarn_space_info *b = &comparison->source->spaces[s];
    const char *field = strcmp(a->name, b->name) != 0  ? "name"
                        : a->kind != b->kind           ? "kind"
                        : a->alignment != b->alignment ? "alignment"
                        : a->capacity != b->capacity   ? "capacity"
                                                       : NULL;
    if (!field) return;
    tarn_refine_add(comparison, tarn_violation_of(TARN_WRONG_GRAPH),
                    "the plan's graph has not the memory spaces of the source graph: space %u, %s, "
                    "has another %s",
                    s, tarn_quote(b->name).text, field);
}

static void check_spaces(struct tarn_comparison *comparison)
{
    const struct tarn_graph *source = comparison->source, *final = comparison->final;
    for (uint32_t s = 0; s < source->spaces_count && s < final->spaces_count; s++)
        check_space(comparison, s);
    if (source->spaces_count == final->spaces_count) return;
    tarn_refine_add(comparison, tarn_violation_of(TARN_WRONG_GRAPH),
                    "the plan's graph has not the memory spaces of the source graph: it has %u, "
                    "not %u",
                    final->spaces_count, source->spaces_count);
}

/* ---- Groups ---- */

static bool is_same_group(const struct tarn_group *a, const struct tarn_group *b)
{
    return a->storages_count == b->storages_count &&
           memcmp(a->tensors, b->tensors, a->storages_count * sizeof *a->tensors) == 0;
}

static void check_group(struct tarn_comparison *comparison, uint32_t g)
{
    const struct tarn_graph *final = comparison->final;
    const struct tarn_group *group = &comparison->source->groups[g];
    enum tarn_group_padding padding = comparison->plan->pad_groups;
    bool padded = padding == TARN_GROUPS_AS_GIVEN ? group->padded : padding == TARN_GROUPS_PADDED;
    const struct tarn_group *found =
        g < final->groups_count && is_same_group(&final->groups[g], group) ? &final->groups[g]
                                                                           : NULL;
    if (found && found->padded == padded) return;
    struct tarn_violation violation = tarn_violation_of(TARN_GROUP_BROKEN);
    violation.tensor = group->tensors[0];
    tarn_refine_add(comparison, violation,
                    "the contiguous group of the source graph that begins with %s %s",
                    tarn_tensor_label(comparison->source, violation.tensor).text,
                    !found          ? "is not in the plan's graph"
                    : found->padded ? "is padded in the plan's graph, which nobody asked for"
                                    : "is not padded in the plan's graph");
}

static void check_groups(struct tarn_comparison *comparison)
{
    const struct tarn_graph *source = comparison->source, *final = comparison->final;
    for (uint32_t g = 0; g < source->groups_count; g++) check_group(comparison, g);
    if (final->groups_count <= source->groups_count) return;
    struct tarn_violation violation = tarn_violation_of(TARN_GROUP_BROKEN);
    violation.tensor = final->groups[source->groups_count].tensors[0];
    tarn_refine_add(comparison, violation,
                    "the contiguous group of the plan's graph that begins with %s is not in the "
                    "source graph",
                    tarn_tensor_label(final, violation.tensor).text);
}

/* ---- Tensors: what is the same in every graph ---- */

static bool add_tensor(struct tarn_comparison *comparison, uint32_t t, uint32_t other,
                       const char *what)
{
    struct tarn_violation violation = tarn_violation_of(TARN_WRONG_GRAPH);
    violation.tensor = t;
    tarn_refine_add(comparison, violation, "%s %s %s of the source graph",
                    tarn_tensor_label(comparison->final, t).text, what,
                    tarn_tensor_label(comparison->source, other).text);
    return false;
}

/* Transforms keep the tensors of the source graph under their ids; what comes behind them are
 * copies of planned tensors that some op makes. */
static bool has_origin(struct tarn_comparison *comparison, uint32_t t)
{
    const struct tarn_graph *source = comparison->source;
    uint32_t origin = tarn_plan_tensor_origin(comparison->plan, t);
    if (t < source->tensors_count)
        return origin == t || add_tensor(comparison, t, t, "must be its own origin: it is");
    struct tarn_violation violation = tarn_violation_of(TARN_WRONG_GRAPH);
    violation.tensor = t;
    if (origin < source->tensors_count) {
        uint32_t producer = source->tensors[origin].producer;
        bool is_made = producer != TARN_NONE && !source->ops[producer].view;
        if (is_made && !tarn_kind_is_persistent(source->tensors[origin].kind)) return true;
    }
    tarn_refine_add(comparison, violation,
                    "%s is no tensor of the source graph and no copy of one that an op makes",
                    tarn_tensor_label(comparison->final, t).text);
    return false;
}

static bool has_fields(struct tarn_comparison *comparison, uint32_t t)
{
    uint32_t origin = tarn_plan_tensor_origin(comparison->plan, t);
    const struct tarn_graph_tensor *a = &comparison->final->tensors[t];
    const struct tarn_graph_tensor *b = &comparison->source->tensors[origin];
    if (strcmp(a->name, b->name) != 0)
        return add_tensor(comparison, t, origin, "has another name than");
    if (a->size != b->size) return add_tensor(comparison, t, origin, "has another size than");
    if (a->space != b->space)
        return add_tensor(comparison, t, origin, "is in another memory space than");
    bool persistent = tarn_kind_is_persistent(b->kind);
    if (tarn_kind_is_persistent(a->kind) != persistent || (persistent && a->kind != b->kind))
        return add_tensor(comparison, t, origin, "is of another kind than");
    if (persistent && a->root != b->root)
        return add_tensor(comparison, t, origin, "aliases another tensor than");
    return true;
}

/* ---- Tensors: what storages may come by when outputs are written over inputs ----
 * A storage that takes in others is pinned if one of them is, else of its own kind, and as
 * demanding as the most demanding of them; recomputing may part them again where none is pinned,
 * and leaves kind and alignment as they are. So a storage may have what others have with which
 * allowed pairs connect it. */

struct reach {
    uint32_t *alignment_before, *alignment_behind; /* the largest, by source storage */
    uint8_t *kinds;                                /* bits: of it and of those before it */
};

static uint32_t larger(uint32_t a, uint32_t b) { return a > b ? a : b; }

/* The largest alignment and all kinds of some storages together. */
struct gathered {
    uint32_t alignment;
    uint8_t kinds;
};

static void gather_before(const struct reach *reach, uint32_t in, struct gathered *most)
{
    most->alignment = larger(most->alignment, reach->alignment_before[in]);
    most->kinds |= reach->kinds[in];
}

static void give_behind(struct reach *reach, uint32_t out, const struct gathered *most)
{
    reach->alignment_before[out] = larger(reach->alignment_before[out], most->alignment);
    reach->kinds[out] |= most->kinds;
}

static void gather_behind(const struct reach *reach, uint32_t out, struct gathered *most)
{
    most->alignment = larger(most->alignment, reach->alignment_behind[out]);
}

static void give_before(struct reach *reach, uint32_t in, const struct gathered *most)
{
    reach->alignment_behind[in] = larger(reach->alignment_behind[in], most->alignment);
}

/* Either direction: from inputs to outputs that may be written over them, or back. */
struct direction {
    bool backwards;
    void (*gather)(const struct reach *reach, uint32_t storage, struct gathered *most);
    void (*give)(struct reach *reach, uint32_t storage, const struct gathered *most);
};
static const struct direction behind = {false, gather_before, give_behind};
static const struct direction before = {true, gather_behind, give_before};

/* Does an output never come to lie over the storage, or an input under it? */
static bool lies_alone(const struct tarn_graph *source, uint32_t a, bool is_input)
{
    const struct tarn_storage *storage = &source->storages[a];
    return storage->persistent || storage->group != TARN_NONE || (is_input && storage->pinned);
}

static void reach_through(const struct tarn_comparison *comparison, struct reach *reach, uint32_t v,
                          const struct direction *direction)
{
    const struct tarn_graph *source = comparison->source;
    const struct tarn_graph_op *op = &source->ops[v];
    const struct tarn_op_extra *extra = tarn_extra(op);
    for (uint32_t k = 0; k < extra->inplace_count; k++) {
        struct gathered most = {0};
        uint32_t in = source->tensors[extra->inplace[k][0]].storage;
        uint32_t out = source->tensors[extra->inplace[k][1]].storage;
        if (lies_alone(source, in, true) || lies_alone(source, out, false)) continue;
        direction->gather(reach, direction->backwards ? out : in, &most);
        direction->give(reach, direction->backwards ? in : out, &most);
    }
    if (op->view || !tarn_refine_allows_kind(comparison, op->kind)) return;
    struct gathered most = {0};
    for (int giving = 0; giving < 2; giving++) {
        for (uint32_t k = 0; k < tarn_slots_count(op); k++) {
            uint32_t storage = tarn_slot_storage(source, op, k);
            bool is_output = k >= op->inputs_count, gives = is_output != direction->backwards;
            if (gives != giving || lies_alone(source, storage, !is_output)) continue;
            if (gives)
                direction->give(reach, storage, &most);
            else
                direction->gather(reach, storage, &most);
        }
    }
}

static bool find_reach(const struct tarn_comparison *comparison, struct reach *reach)
{
    const struct tarn_graph *source = comparison->source;
    struct tarn_region *region = comparison->region;
    uint32_t count = source->storages_count;
    *reach = (struct reach){
        .alignment_before = tarn_region_take(region, count, sizeof *reach->alignment_before),
        .alignment_behind = tarn_region_take(region, count, sizeof *reach->alignment_behind),
        .kinds = tarn_region_take(region, count, sizeof *reach->kinds),
    };
    if (!reach->alignment_before || !reach->alignment_behind || !reach->kinds) return false;
    for (uint32_t a = 0; a < count; a++) {
        const struct tarn_storage *storage = &source->storages[a];
        if (storage->tensor == TARN_NONE) continue;
        reach->alignment_before[a] = reach->alignment_behind[a] =
            tarn_own_alignment(source, storage);
        reach->kinds[a] = (uint8_t)(1U << source->tensors[storage->tensor].kind);
    }
    for (uint32_t i = 0; i < source->ops_count; i++)
        reach_through(comparison, reach, source->order[i], &behind);
    for (uint32_t i = source->ops_count; i > 0; i--)
        reach_through(comparison, reach, source->order[i - 1], &before);
    return true;
}

/* ---- Tensors: kinds and alignments ---- */

/* By root of the final graph, what its storage needs because of what lies there. */
struct needs {
    uint32_t *alignment;
    bool *pinned;
};

static void note_needs(const struct tarn_comparison *comparison, struct needs *needs)
{
    const struct tarn_graph *source = comparison->source, *final = comparison->final;
    for (uint32_t t = 0; t < final->tensors_count; t++) {
        uint32_t origin = tarn_plan_tensor_origin(comparison->plan, t),
                 root = final->tensors[t].root;
        const struct tarn_graph_tensor *tensor = &source->tensors[origin];
        needs->alignment[root] =
            larger(needs->alignment[root], source->tensors[tensor->root].alignment);
        if (t == origin && tensor->kind == TARN_OUTPUT) needs->pinned[root] = true;
    }
}

/* What the storage would be if nothing else were in it. */
static uint8_t kind_alone(const struct tarn_comparison *comparison, uint32_t root)
{
    return root < comparison->source->tensors_count ? comparison->source->tensors[root].kind
                                                    : TARN_INTERMEDIATE;
}

static bool is_demand(const struct tarn_comparison *comparison, const struct needs *needs,
                      uint32_t root)
{
    const struct tarn_graph_tensor *tensor = &comparison->final->tensors[root];
    uint8_t kind = needs->pinned[root] ? TARN_OUTPUT : kind_alone(comparison, root);
    return tensor->alignment == needs->alignment[root] && tensor->kind == kind;
}

static bool may_be_kind(const struct tarn_comparison *comparison, const struct reach *reach,
                        const struct needs *needs, uint32_t root)
{
    uint8_t kind = comparison->final->tensors[root].kind;
    if (needs->pinned[root]) return kind == TARN_OUTPUT;
    if (root >= comparison->source->tensors_count) return kind == TARN_INTERMEDIATE;
    uint32_t storage = comparison->source->tensors[root].storage;
    return kind == kind_alone(comparison, root) ||
           (kind != TARN_OUTPUT && reach->kinds[storage] >> kind & 1);
}

static void check_root(struct tarn_comparison *comparison, const struct reach *reach,
                       const struct needs *needs, uint32_t root)
{
    uint32_t origin = tarn_plan_tensor_origin(comparison->plan, root);
    uint32_t storage = comparison->source->tensors[origin].storage;
    uint32_t alignment = comparison->final->tensors[root].alignment;
    uint32_t most = larger(needs->alignment[root], larger(reach->alignment_before[storage],
                                                          reach->alignment_behind[storage]));
    if (!may_be_kind(comparison, reach, needs, root)) {
        add_tensor(comparison, root, origin, "is of another kind than");
    } else if (alignment < needs->alignment[root] || alignment > most) {
        struct tarn_violation violation = tarn_violation_of(TARN_WRONG_GRAPH);
        violation.tensor = root;
        tarn_refine_add(comparison, violation,
                        "%s has the alignment %u in the plan's graph; what lies there needs %u in "
                        "the source graph",
                        tarn_tensor_label(comparison->final, root).text, alignment,
                        needs->alignment[root]);
    }
}

/* False: no memory. */
static bool check_roots(struct tarn_comparison *comparison)
{
    const struct tarn_graph *final = comparison->final;
    struct tarn_region_mark mark = tarn_region_mark(comparison->region);
    struct reach reach = {0};
    struct needs needs = {
        tarn_region_take(comparison->region, final->tensors_count, sizeof *needs.alignment),
        tarn_region_take(comparison->region, final->tensors_count, sizeof *needs.pinned)};
    bool has_memory = needs.alignment && needs.pinned;
    if (has_memory) note_needs(comparison, &needs);
    for (uint32_t t = 0; t < final->tensors_count && has_memory; t++) {
        if (final->tensors[t].root != t || is_demand(comparison, &needs, t)) continue;
        if (!reach.kinds) has_memory = find_reach(comparison, &reach);
        if (has_memory) check_root(comparison, &reach, &needs, t);
    }
    tarn_region_release(comparison->region, mark);
    return has_memory;
}

static bool check_tensors(struct tarn_comparison *comparison)
{
    bool is_same = true;
    for (uint32_t t = 0; t < comparison->final->tensors_count; t++)
        is_same = has_origin(comparison, t) && has_fields(comparison, t) && is_same;
    return !is_same || check_roots(comparison);
}

bool tarn_refine_records(struct tarn_comparison *comparison)
{
    if (comparison->final == comparison->source) return true;
    check_streams(comparison);
    check_spaces(comparison);
    check_groups(comparison);
    return check_tensors(comparison);
}
