/* Refinement, the records: checks that every stream, space, group, tensor and op of the plan's
 * graph equals the source graph's, or follows from allowed transforms. `docs/formats.md` has the
 * table of fields, and the check of each.
 *
 * Cost: linear in the graphs and their names. */
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "refine.h"
#include "streams/graph/report.h"

/* ---- Ops ---- */

/* The op that an op of the final graph runs: the inputs and outputs of its origin, or of the chosen
 * implementation if that names its own.
 * Cost: constant, or linear in outputs. */

const struct tarn_graph_op *tarn_refine_origin(const struct tarn_comparison *comparison, uint32_t v)
{
    uint32_t origin = tarn_plan_op_origin(comparison->plan, v);
    assert(origin < comparison->source->ops_count); /* the shape is checked first */
    return &comparison->source->ops[origin];
}

bool tarn_refine_is_move(const struct tarn_comparison *comparison, uint32_t v)
{
    return comparison->final->ops[v].move && tarn_plan_op_origin(comparison->plan, v) == TARN_NONE;
}

bool tarn_refine_is_moved(const struct tarn_comparison *comparison, uint32_t tensor)
{
    uint32_t producer = comparison->final->tensors[tensor].producer;
    return producer != TARN_NONE && tarn_refine_is_move(comparison, producer);
}

static const struct tarn_implementation *implementation_of(const struct tarn_comparison *comparison,
                                                           uint32_t v)
{
    const struct tarn_graph_op *origin = tarn_refine_origin(comparison, v);
    uint32_t chosen = tarn_plan_op_implementation(comparison->plan, v);
    assert(chosen == TARN_NONE || chosen < tarn_extra(origin)->implementations_count);
    return chosen == TARN_NONE ? NULL : &tarn_extra(origin)->implementations[chosen];
}

struct tarn_list tarn_refine_inputs(const struct tarn_comparison *comparison, uint32_t v)
{
    const struct tarn_graph_op *origin = tarn_refine_origin(comparison, v);
    const struct tarn_implementation *chosen = implementation_of(comparison, v);
    if (chosen && chosen->inputs.count > 0) return chosen->inputs;
    return (struct tarn_list){origin->inputs, origin->inputs_count};
}

struct tarn_list tarn_refine_outputs(const struct tarn_comparison *comparison, uint32_t v)
{
    const struct tarn_graph_op *origin = tarn_refine_origin(comparison, v);
    const struct tarn_implementation *chosen = implementation_of(comparison, v);
    if (chosen && chosen->outputs.count > 0) return chosen->outputs;
    return (struct tarn_list){tarn_outputs(origin), origin->outputs_count};
}

bool tarn_refine_is_primary(const struct tarn_comparison *comparison, uint32_t v)
{
    if (tarn_refine_is_move(comparison, v)) return false;
    struct tarn_list outputs = tarn_refine_outputs(comparison, v);
    for (uint32_t k = 0; k < comparison->final->ops[v].outputs_count; k++) {
        if (tarn_outputs(&comparison->final->ops[v])[k] != outputs.ids[k]) return false;
    }
    return true;
}

static bool has_word(const char *const *words, size_t count, const char *word)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(words[i], word) == 0) return true;
    }
    return false;
}

bool tarn_refine_allows_kind(const struct tarn_comparison *comparison, const char *kind)
{
    const struct tarn_plan *plan = comparison->plan;
    const struct tarn_verify_options *allowed = comparison->allowed;
    return has_word(plan->in_place_kinds, plan->in_place_kinds_count, kind) ||
           has_word(allowed->in_place_kinds, allowed->in_place_kinds_count, kind);
}

void tarn_refine_add(struct tarn_comparison *comparison, struct tarn_violation violation,
                     const char *format, ...)
{
    char text[sizeof violation.text];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    comparison->is_other = true;
    tarn_verdict_add(comparison->verdict, violation, TARN_NO_SUSPECTS, "%s", text);
}

/* The record of one op: every field equals the origin's field, or follows from the
 * chosen implementation. A new field of ops needs a row in the table below. refine_versions.c and
 * refine_control.c check the lists of tensors and control arcs.
 * Cost: linear in the record. */

struct run {
    const struct tarn_comparison *comparison;
    uint32_t v;
    const struct tarn_graph_op *op, *origin;
    const struct tarn_op_extra *extra, *of_origin;
    const struct tarn_implementation *chosen; /* NULL: as written */
    bool is_copy;                             /* it recomputes outputs of another op */
};

static bool is_same_list(const uint32_t *a, size_t a_count, const uint32_t *b, size_t b_count)
{
    return a_count == b_count && (a_count == 0 || memcmp(a, b, a_count * sizeof *a) == 0);
}

static bool has_name(const struct run *run)
{
    return strcmp(run->op->name, run->origin->name) == 0;
}

static bool has_kind(const struct run *run)
{
    return run->op->kind == run->origin->kind || strcmp(run->op->kind, run->origin->kind) == 0;
}

static bool has_class(const struct run *run) { return run->op->op_class == run->origin->op_class; }

/* If ops are assigned to streams, every op may change its stream; a copy may run in any stream. */
static bool has_stream(const struct run *run)
{
    return run->comparison->may_assign || run->is_copy || run->op->stream == run->origin->stream;
}

static bool has_cost(const struct run *run)
{
    return run->op->cost == (run->chosen ? run->chosen->cost : run->origin->cost);
}

static bool has_flops(const struct run *run) { return run->extra->flops == run->of_origin->flops; }

static bool has_workspace(const struct run *run)
{
    return run->extra->workspace ==
           (run->chosen ? run->chosen->workspace : run->of_origin->workspace);
}

static bool has_workspace_first(const struct run *run)
{
    return run->op->workspace_first ==
           (run->chosen ? run->chosen->workspace_first : run->origin->workspace_first);
}

/* Files leave it out if there is no workspace. */
static bool has_workspace_space(const struct run *run)
{
    return run->extra->workspace_space == run->of_origin->workspace_space ||
           (run->extra->workspace == 0 && run->extra->workspace_space == 0);
}

/* Recomputing leaves the pairs out, since they name tensors that a copy does not have. */
static bool has_inplace(const struct run *run)
{
    return run->extra->inplace_count == 0 ||
           is_same_list((const uint32_t *)run->extra->inplace,
                        2 * (size_t)run->extra->inplace_count,
                        (const uint32_t *)run->of_origin->inplace,
                        2 * (size_t)run->of_origin->inplace_count);
}

static bool has_branch(const struct run *run)
{
    return is_same_list((const uint32_t *)run->extra->branch, 2 * (size_t)run->extra->branch_count,
                        (const uint32_t *)run->of_origin->branch,
                        2 * (size_t)run->of_origin->branch_count);
}

static bool has_move(const struct run *run) { return run->op->move == run->origin->move; }

static bool has_recomputable(const struct run *run)
{
    return run->op->recomputable == run->origin->recomputable;
}

static bool is_same_implementation(const struct tarn_implementation *a,
                                   const struct tarn_implementation *b)
{
    return strcmp(a->name, b->name) == 0 && a->cost == b->cost && a->workspace == b->workspace &&
           a->workspace_first == b->workspace_first &&
           is_same_list(a->inputs.ids, a->inputs.count, b->inputs.ids, b->inputs.count) &&
           is_same_list(a->outputs.ids, a->outputs.count, b->outputs.ids, b->outputs.count);
}

/* If one was chosen, or the op is a copy, no choices are left. */
static bool has_implementations(const struct run *run)
{
    uint32_t count = run->extra->implementations_count;
    if (run->chosen || run->is_copy) return count == 0;
    if (count != run->of_origin->implementations_count) return false;
    for (uint32_t i = 0; i < count; i++) {
        if (!is_same_implementation(&run->extra->implementations[i],
                                    &run->of_origin->implementations[i]))
            return false;
    }
    return true;
}

/* Otherwise checked execution would not prove that all runs make the same outputs. */
static bool has_common(const struct run *run)
{
    return !run->extra->common == !run->of_origin->common &&
           is_same_list(run->extra->common, run->extra->common_count, run->of_origin->common,
                        run->of_origin->common_count);
}

static const struct {
    const char *what, *field; /* the field, if its name is more precise */
    bool (*holds)(const struct run *run);
} fields[] = {
    {"name", "", has_name},
    {"kind", "", has_kind},
    {"class", "", has_class},
    {"stream", "", has_stream},
    {"cost", "", has_cost},
    {"flops", "", has_flops},
    {"workspace", "", has_workspace},
    {"workspace", " (workspace_first)", has_workspace_first},
    {"workspace", " (workspace_space)", has_workspace_space},
    {"inplace pairs", "", has_inplace},
    {"arms", " (branch)", has_branch},
    {"recomputable", "", has_recomputable},
    {"move", "", has_move},
    {"implementations", "", has_implementations},
    {"common inputs", "", has_common},
};

void tarn_refine_op_record(struct tarn_comparison *comparison, uint32_t v)
{
    if (comparison->final == comparison->source) return;
    struct run run = {.comparison = comparison,
                      .v = v,
                      .op = &comparison->final->ops[v],
                      .origin = tarn_refine_origin(comparison, v),
                      .chosen = implementation_of(comparison, v),
                      .is_copy = !comparison->final->ops[v].view &&
                                 !tarn_refine_is_primary(comparison, v)};
    run.extra = tarn_extra(run.op);
    run.of_origin = tarn_extra(run.origin);
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        if (fields[i].holds(&run)) continue;
        struct tarn_violation violation = tarn_violation_of(TARN_WRONG_GRAPH);
        violation.op = v;
        tarn_refine_add(
            comparison, violation, "%s has not the %s of its origin%s: %s of the source graph%s",
            tarn_op_label(comparison->final, v).text, fields[i].what, fields[i].field,
            tarn_op_label(comparison->source, tarn_plan_op_origin(comparison->plan, v)).text,
            run.chosen ? ", by the implementation that it names" : "");
    }
}

/* ---- Streams ---- */

/* Streams may be added that run only moves. */
static bool is_for_moves(const struct tarn_comparison *comparison, uint32_t s)
{
    const struct tarn_graph_stream *stream = &comparison->final->streams[s];
    for (uint32_t i = 0; i < stream->ops_count; i++)
        if (!tarn_refine_is_move(comparison, stream->ops[i])) return false;
    return stream->ops_count > 0;
}

static bool are_for_moves(const struct tarn_comparison *comparison, uint32_t s)
{
    while (s < comparison->final->streams_count && is_for_moves(comparison, s)) s++;
    return s == comparison->final->streams_count;
}

static bool has_streams_of_source(const struct tarn_comparison *comparison)
{
    const struct tarn_graph *source = comparison->source, *final = comparison->final;
    bool equal = source->streams_count <= final->streams_count &&
                 are_for_moves(comparison, source->streams_count);
    for (uint32_t s = 0; equal && s < source->streams_count; s++)
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
 * copy, the last two if there are such ops. */
static bool has_assigned_streams(const struct tarn_comparison *comparison)
{
    const struct tarn_graph *final = comparison->final;
    uint32_t s = 0;
    while (is_named(final, s, "chain", true)) s++;
    if (s > 0) return are_for_moves(comparison, s);
    while (is_named(final, s, "compute", true)) s++;
    s += is_named(final, s, "communication", false);
    s += is_named(final, s, "copy", false);
    return s > 0 && are_for_moves(comparison, s);
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

static bool is_moved_to(const struct tarn_comparison *comparison, uint32_t s)
{
    const struct tarn_graph *final = comparison->final;
    for (uint32_t t = comparison->source->tensors_count; t < final->tensors_count; t++)
        if (final->tensors[t].space == s && tarn_refine_is_moved(comparison, t)) return true;
    return false;
}

/* Is each of the spaces at or after `s` used by some move? */
static bool are_moved_to(const struct tarn_comparison *comparison, uint32_t s)
{
    while (s < comparison->final->spaces_count && is_moved_to(comparison, s)) s++;
    return s >= comparison->final->spaces_count;
}

/* Moves may add spaces, after the spaces of the source graph. A source graph that declares none has
 * one without a name, a capacity or an alignment. */
static void check_spaces(struct tarn_comparison *comparison)
{
    const struct tarn_graph *source = comparison->source, *final = comparison->final;
    for (uint32_t s = 0; s < source->spaces_count && s < final->spaces_count; s++)
        check_space(comparison, s);
    const struct tarn_space_info *first = &final->spaces[0];
    bool is_first_plain = source->spaces_count > 0 || final->spaces_count == 0 ||
                          (first->name[0] == '\0' && first->kind == TARN_SPACE_DEVICE &&
                           first->alignment == 0 && first->capacity == 0);
    uint32_t from = source->spaces_count == 0 && final->spaces_count > 0 ? 1 : source->spaces_count;
    if (is_first_plain && from <= final->spaces_count && are_moved_to(comparison, from)) return;
    tarn_refine_add(comparison, tarn_violation_of(TARN_WRONG_GRAPH),
                    "the plan's graph has not the memory spaces of the source graph: it has %u, "
                    "not %u",
                    final->spaces_count, source->spaces_count);
}

/* ---- Groups ---- */

static bool is_same_group(const struct tarn_group *a, const struct tarn_group *b)
{
    return a->tensors_count == b->tensors_count &&
           memcmp(a->tensors, b->tensors, a->tensors_count * sizeof *a->tensors) == 0 &&
           !a->offsets == !b->offsets &&
           (!a->offsets ||
            memcmp(a->offsets, b->offsets, a->tensors_count * sizeof *a->offsets) == 0) &&
           !a->symmetric == !b->symmetric &&
           (!a->symmetric || strcmp(a->symmetric, b->symmetric) == 0);
}

static void check_group(struct tarn_comparison *comparison, uint32_t g)
{
    const struct tarn_graph *final = comparison->final;
    const struct tarn_group *group = &comparison->source->given[g];
    bool padded = tarn_group_is_padded(comparison->source, group, comparison->plan->pad_groups);
    const struct tarn_group *found =
        g < final->given_count && is_same_group(&final->given[g], group) ? &final->given[g] : NULL;
    if (found && found->padded == padded) return;
    struct tarn_violation violation = tarn_violation_of(TARN_GROUP_BROKEN);
    violation.tensor = group->tensors[0];
    tarn_refine_add(comparison, violation,
                    "the contiguous group of the source graph that begins with %s %s",
                    tarn_tensor_label(comparison->source, violation.tensor).text,
                    !found          ? "is not in the plan's graph"
                    : found->padded ? "is padded in the plan's graph, but padding was not asked for"
                                    : "is not padded in the plan's graph");
}

static void check_groups(struct tarn_comparison *comparison)
{
    const struct tarn_graph *source = comparison->source, *final = comparison->final;
    for (uint32_t g = 0; g < source->given_count; g++) check_group(comparison, g);
    if (final->given_count <= source->given_count) return;
    struct tarn_violation violation = tarn_violation_of(TARN_GROUP_BROKEN);
    violation.tensor = final->given[source->given_count].tensors[0];
    tarn_refine_add(comparison, violation,
                    "the contiguous group of the plan's graph that begins with %s is not in the "
                    "source graph",
                    tarn_tensor_label(final, violation.tensor).text);
}

/* ---- Tensors: unchanged fields ---- */

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

/* Transforms keep the tensors of the source graph under their ids; later tensors are copies of
 * planned tensors that some op makes. */
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
        if (tarn_refine_is_moved(comparison, t) &&
            (producer == TARN_NONE || !source->ops[producer].view))
            return true;
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
    bool persistent = tarn_kind_is_persistent(b->kind);
    bool is_moved = tarn_refine_is_moved(comparison, a->root); /* the storage begins with a move */
    /* outputs of moves may be in any space, and so may persistent tensors that only moves use, as
     * the versions show (refine_versions.c) */
    bool may_be_elsewhere = tarn_refine_is_moved(comparison, t) || (persistent && !is_moved);
    if (a->space != b->space && !may_be_elsewhere)
        return add_tensor(comparison, t, origin, "is in another memory space than");
    if (is_moved) {
        if (tarn_kind_is_persistent(a->kind))
            return add_tensor(comparison, t, origin, "is of another kind than");
        return true;
    }
    if (tarn_kind_is_persistent(a->kind) != persistent || (persistent && a->kind != b->kind))
        return add_tensor(comparison, t, origin, "is of another kind than");
    if (persistent && a->root != b->root)
        return add_tensor(comparison, t, origin, "aliases another tensor than");
    bool is_free = t >= comparison->source->tensors_count ||
                   (a->root != t && b->offset_rule != TARN_OFFSET_FIXED);
    if (a->offset_rule != (is_free ? TARN_OFFSET_FREE : b->offset_rule) ||
        tarn_tensor_wanted(a) != (is_free ? 0 : tarn_tensor_wanted(b)))
        return add_tensor(comparison, t, origin, "is to lie elsewhere than");
    uint64_t offset = tarn_tensor_begin(b); /* a storage that was merged into another begins where
                                             * the other one does */
    if (b->root == origin && a->root == t) offset = 0;
    if (tarn_tensor_begin(a) != offset)
        return add_tensor(comparison, t, origin, "lies elsewhere in its storage than");
    return true;
}

/* ---- Tensors: storages merged by writing outputs over inputs ----
 * A merged storage is pinned if one of its storages is, else it has its own kind; its alignment is
 * the largest of theirs. Recomputing may separate them again if none is pinned, and leaves kind and
 * alignment unchanged. So a storage may have kind and alignment of other storages that allowed
 * pairs connect with it. */

struct reach {
    uint32_t *alignment_before, *alignment_behind; /* the largest, by source storage */
    uint8_t *kinds;                                /* bits: its kind and the kinds of storages
                                                    * before it */
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

/* A direction: from inputs to outputs that may be written over them, or back. */
struct direction {
    bool backwards;
    void (*gather)(const struct reach *reach, uint32_t storage, struct gathered *most);
    void (*give)(struct reach *reach, uint32_t storage, const struct gathered *most);
};
static const struct direction behind = {false, gather_before, give_behind};
static const struct direction before = {true, gather_behind, give_before};

/* Is no output ever written over the storage, and the storage never over an input? */
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

/* By root of the final graph, the needs of its storage because of the tensors in it. */
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

/* The kind of the storage if it were not merged. */
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
