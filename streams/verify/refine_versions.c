/* Refinement, second part: checks the content that every run reads. The name of a version is the
 * tensor through which it was written, across graphs that tensor's origin. Tensors that an
 * implementation reads besides its op's inputs must be as their producers left them.
 *
 * A storage that a run overwrites is checked like an input, since it may be overwritten in part
 * only. If the source overwrites and the final graph does not, the old version must be an input of
 * the run. If the final graph overwrites and the source does not, it must be an input as well;
 * later reads of that version are then found as wrong.
 *
 * A move that the source does not have hands on its input: the version that it makes is the version
 * that it reads, also along chains of moves, and its output must name that version. Only moves may
 * use another memory space than the source.
 *
 * If the final graph overwrites and the source does not, the op's inplace pairs or the caller must
 * allow it, and the op must not use that storage by another name.
 *
 * All this is of the iteration in which every arm of the conditionals is taken. In another one an
 * op of an arm has not written: a reader that may run without it finds what it would have
 * overwritten. So below each such version the versions that it was written over must be the same,
 * down to one whose writer runs whenever the reader does, or to bytes that nobody has written.
 *
 * Cost: linear in inputs and outputs; of an op that newly overwrites, also in its pairs; of a part
 * that arms write in place, also in these writes. */
#include <assert.h>

#include "refine.h"
#include "streams/base/bisect.h"
#include "streams/graph/report.h"

/* A part of a storage of one graph, and its content: a version, TARN_NONE before the iteration's
 * first write. */
struct content {
    uint32_t part, version;
    bool is_below; /* it is there only if some arm is not taken */
};

static struct content content_of(uint32_t part, uint32_t version)
{
    return (struct content){part, version, false};
}

struct check {
    struct tarn_comparison *comparison;
    struct tarn_versions expected; /* of the source graph, in list order */
    struct tarn_versions actual;   /* of the final graph, in launch order */
    struct content *handed_on;     /* by tensor that a move of the final graph makes: its content */
    uint32_t *input_of;            /* source tensor -> its index among the inputs of op v, if it is
                                    * one */
    uint32_t *place_of;   /* source storage -> final storage that op v writes instead, if any */
    uint32_t *stands_for; /* final storage -> the source storage that it replaces there */
    uint32_t *seen_in_source, *seen_in_final; /* storage -> 1 + the last op that wrote it */
    uint32_t v, origin;                       /* the present op, and its origin */
};

/* ---- Actual and expected content ---- */

static const struct tarn_storage *storage_of(const struct tarn_graph *graph, uint32_t part)
{
    return &graph->storages[tarn_part(graph, part).storage];
}

/* The position of a storage's byte in the version that was written by `tensor`. */
static uint64_t byte_of_version(const struct tarn_graph *graph, uint32_t part, uint64_t byte,
                                uint32_t tensor)
{
    return tarn_part(graph, part).offset + byte - tarn_tensor_begin(&graph->tensors[tensor]);
}

/* The part that has a byte of a tensor. */
static uint32_t part_of_byte(const struct tarn_graph *graph, uint32_t tensor, uint64_t byte)
{
    const struct tarn_graph_tensor *record = &graph->tensors[tensor];
    uint32_t low = 0, high = record->parts_count - 1;
    TARN_BISECT(low, high, middle,
                tarn_part(graph, record->part + middle).offset +
                        tarn_part(graph, record->part + middle).size <=
                    tarn_tensor_begin(record) + byte);
    return low;
}

/* Content that moves have handed on, as it was before the first move. They move whole storages
 * without cuts, so bytes keep their positions. */
static struct content before_moves(const struct check *check, struct content actual)
{
    if (actual.version == TARN_NONE || !tarn_refine_is_moved(check->comparison, actual.version))
        return actual;
    return check->handed_on[actual.version];
}

/* Does byte `byte` of the actual part equal byte `other` of the expected part in the source
 * graph? */
static bool is_same(const struct check *check, struct content there, uint64_t byte,
                    struct content expected, uint64_t other)
{
    const struct tarn_comparison *comparison = check->comparison;
    const struct tarn_graph *source_graph = comparison->source, *final = comparison->final;
    const struct tarn_storage *source = storage_of(source_graph, expected.part);
    const struct content actual = before_moves(check, there);
    /* transforms keep the ids of persistent tensors */
    if (actual.version == TARN_NONE || expected.version == TARN_NONE)
        return actual.version == expected.version && source->persistent &&
               storage_of(final, actual.part)->tensor == source->tensor &&
               tarn_part(final, actual.part).offset + byte ==
                   tarn_part(source_graph, expected.part).offset + other;
    uint32_t origin = tarn_plan_tensor_origin(comparison->plan, actual.version);
    uint64_t at = byte_of_version(final, actual.part, byte, actual.version);
    if (at >= source_graph->tensors[origin].size) return false; /* of one that lies elsewhere */
    uint32_t part = part_of_byte(source_graph, origin, at);
    return tarn_versions_left(&check->expected, origin)[part] == expected.version &&
           tarn_tensor_begin(&source_graph->tensors[origin]) + at ==
               tarn_part(source_graph, expected.part).offset + other;
}

/* A tensor of either graph, part by part, as some op finds it. */
struct look {
    uint32_t tensor;
    const uint32_t *versions; /* by part of it */
};

static struct look found(const struct check *check, uint32_t slot)
{
    const struct tarn_graph *final = check->comparison->final;
    return (struct look){tarn_slot_tensor(&final->ops[check->v], slot),
                         tarn_versions_found(&check->actual, final, check->v, slot)};
}

static struct look expected_input(const struct check *check, uint32_t tensor)
{
    const struct tarn_graph *source = check->comparison->source;
    const struct tarn_graph_op *origin = &source->ops[check->origin];
    uint32_t k = check->input_of[tensor];
    if (k < origin->inputs_count && origin->inputs[k] == tensor)
        return (struct look){tensor,
                             tarn_versions_found(&check->expected, source, check->origin, k)};
    return (struct look){tensor, tarn_versions_left(&check->expected, tensor)};
}

/* The content that the source overwrites there; TARN_NONE: none, or content from before the
 * iteration. `k`: index in the run's outputs, which are the origin's outputs or a part of them. */
static struct look expected_output(const struct check *check, uint32_t tensor, uint32_t k)
{
    const struct tarn_graph *source = check->comparison->source;
    const struct tarn_graph_op *origin = &source->ops[check->origin];
    if (tarn_outputs(origin)[k] != tensor) k = 0;
    while (tarn_outputs(origin)[k] != tensor) k++;
    assert(k < origin->outputs_count);
    return (struct look){tensor, tarn_versions_found(&check->expected, source, check->origin,
                                                     origin->inputs_count + k)};
}

/* Walks through two tensors of one size, from cut to cut of either: the bytes between two cuts
 * belong to one part of each tensor. */
struct pairing {
    const struct tarn_graph *final, *source;
    struct look here, there;
    uint32_t here_part, there_part; /* counted from the tensors' first ones */
    uint64_t byte;                  /* of both tensors */
};

static uint64_t end_of_part(const struct tarn_graph *graph, uint32_t tensor, uint32_t part)
{
    const struct tarn_graph_part record = tarn_part(graph, graph->tensors[tensor].part + part);
    return record.offset + record.size - tarn_tensor_begin(&graph->tensors[tensor]);
}

static struct pairing pair_of(const struct check *check, struct look here, struct look there)
{
    return (struct pairing){
        check->comparison->final, check->comparison->source, here, there, 0, 0, 0};
}

/* The next bytes: their contents, and their start in the parts. */
static bool next_pair(struct pairing *pairing, struct content *actual, uint64_t *byte,
                      struct content *expected, uint64_t *other)
{
    const struct tarn_graph_tensor *here = &pairing->final->tensors[pairing->here.tensor];
    const struct tarn_graph_tensor *there = &pairing->source->tensors[pairing->there.tensor];
    if (pairing->here_part >= here->parts_count || pairing->there_part >= there->parts_count)
        return false;
    *actual =
        content_of(here->part + pairing->here_part, pairing->here.versions[pairing->here_part]);
    *expected =
        content_of(there->part + pairing->there_part, pairing->there.versions[pairing->there_part]);
    *byte =
        tarn_tensor_begin(here) + pairing->byte - tarn_part(pairing->final, actual->part).offset;
    *other = tarn_tensor_begin(there) + pairing->byte -
             tarn_part(pairing->source, expected->part).offset;
    uint64_t end = end_of_part(pairing->final, pairing->here.tensor, pairing->here_part);
    uint64_t end_there = end_of_part(pairing->source, pairing->there.tensor, pairing->there_part);
    pairing->here_part += end <= end_there;
    pairing->there_part += end_there <= end;
    pairing->byte = end < end_there ? end : end_there;
    return true;
}

/* What the part held before the op that wrote its version. */
static struct content below(const struct tarn_graph *graph, const struct tarn_versions *versions,
                            struct content content)
{
    uint32_t v = tarn_version_writer(graph, content.version);
    const struct tarn_graph_op *op = &graph->ops[v];
    uint32_t k = 0;
    while (tarn_outputs(op)[k] != content.version) k++;
    content.version = tarn_versions_found(
        versions, graph, v,
        op->inputs_count + k)[content.part - graph->tensors[content.version].part];
    content.is_below = true;
    return content;
}

/* Is it the same whatever arms are taken, if it is when all are? reader: op of the source graph, or
 * TARN_NONE: who reads after the iteration. *actual and *expected become what differs. */
static bool is_same_in_arms(const struct check *check, uint32_t reader, struct content *actual,
                            uint64_t byte, struct content *expected, uint64_t other)
{
    const struct tarn_graph *source = check->comparison->source;
    if (source->conditionals_count == 0) return true;
    while (expected->version != TARN_NONE) {
        uint32_t writer = tarn_version_writer(source, expected->version);
        bool runs = reader == TARN_NONE ? tarn_extra(&source->ops[writer])->branch_count == 0
                                        : tarn_op_is_inside(source, reader, writer);
        if (runs) return true;
        *actual = below(check->comparison->final, &check->actual, before_moves(check, *actual));
        *expected = below(source, &check->expected, *expected);
        if (expected->version == TARN_NONE && !storage_of(source, expected->part)->persistent)
            return true; /* nobody has written it */
        if (!is_same(check, *actual, byte, *expected, other)) return false;
    }
    return true;
}

/* Do both hold the same content, whatever arms are taken? Else *actual and *expected are the first
 * contents that differ. reader: as in is_same_in_arms. */
static bool are_same(const struct check *check, uint32_t reader, struct look here,
                     struct look there, struct content *actual, struct content *expected)
{
    struct pairing pairing = pair_of(check, here, there);
    uint64_t byte, other;
    while (next_pair(&pairing, actual, &byte, expected, &other))
        if (!is_same(check, *actual, byte, *expected, other) ||
            !is_same_in_arms(check, reader, actual, byte, expected, other))
            return false;
    return true;
}

/* ---- Messages ---- */

static const char *who_left(const struct tarn_graph *graph, uint32_t version,
                            struct tarn_label *label)
{
    if (version == TARN_NONE) return "the previous iteration";
    *label = tarn_op_label(graph, tarn_version_writer(graph, version));
    return label->text;
}

static void report(const struct check *check, struct content actual, struct content expected,
                   bool in_the_end)
{
    const struct tarn_graph *final = check->comparison->final;
    struct tarn_violation violation = tarn_violation_of(TARN_HAZARD_LOST);
    struct tarn_suspects who = {{0}, 1};
    struct tarn_label wanted, there;
    if (!in_the_end) violation.op = check->v;
    violation.other_op = tarn_version_writer(final, actual.version);
    violation.tensor = storage_of(final, actual.part)->tensor;
    tarn_verdict_add(check->comparison->verdict, violation, who,
                     "%s must see %s as %s left it, but finds it as %s left it%s",
                     in_the_end ? "who reads it after the iteration"
                                : tarn_op_label(final, check->v).text,
                     tarn_storage_label(final, tarn_part(final, actual.part).storage).text,
                     who_left(check->comparison->source, expected.version, &wanted),
                     who_left(final, actual.version, &there),
                     expected.is_below ? ", if an arm of a conditional is not taken"
                                       : ": the launch order breaks a hazard");
}

/* ---- Checking ---- */

static void enter(struct check *check, uint32_t v)
{
    check->v = v;
    check->origin = tarn_plan_op_origin(check->comparison->plan, v);
    const struct tarn_graph_op *origin = &check->comparison->source->ops[check->origin];
    for (uint32_t k = 0; k < origin->inputs_count; k++) check->input_of[origin->inputs[k]] = k;
}

static void add_named(const struct check *check, uint32_t tensor, const char *what)
{
    struct tarn_violation violation = tarn_violation_of(TARN_WRONG_GRAPH);
    violation.op = check->v;
    violation.tensor = tensor;
    tarn_verdict_add(check->comparison->verdict, violation, TARN_NO_SUSPECTS, "%s %s %s",
                     tarn_op_label(check->comparison->final, check->v).text, what,
                     tarn_tensor_label(check->comparison->final, tensor).text);
}

/* Is the tensor's name valid? It must be the source graph's name, or the tensor through which the
 * content was written: another view may lie differently. Names of persistent tensors stay. */
static bool is_name_of(const struct check *check, struct look actual, struct look expected)
{
    const struct tarn_comparison *comparison = check->comparison;
    const struct tarn_graph *source = comparison->source, *final = comparison->final;
    uint32_t origin = tarn_plan_tensor_origin(comparison->plan, actual.tensor);
    if (actual.tensor == expected.tensor) return true;
    if (tarn_refine_is_moved(comparison,
                             final->tensors[actual.tensor].root)) /* its last writer's */
        return actual.tensor == actual.versions[0] ||
               tarn_versions_left(&check->actual, actual.tensor)[0] == actual.versions[0];
    if (source->tensors[expected.tensor].size == 0) return origin == expected.tensor;
    uint32_t version = expected.versions[0];
    if (version == TARN_NONE || origin != version ||
        storage_of(source, source->tensors[expected.tensor].part)->persistent)
        return false;
    return actual.tensor == origin ||
           (final->tensors[actual.tensor].parts_count > 0 &&
            tarn_versions_left(&check->actual, actual.tensor)[0] == actual.versions[0]);
}

static bool is_elsewhere(const struct check *check, uint32_t tensor, uint32_t wanted)
{
    return check->comparison->final->tensors[tensor].space !=
           check->comparison->source->tensors[wanted].space;
}

static void check_inputs(const struct check *check)
{
    struct tarn_list inputs = tarn_refine_inputs(check->comparison, check->v);
    for (uint32_t k = 0; k < inputs.count; k++) {
        struct look here = found(check, k), there = expected_input(check, inputs.ids[k]);
        struct content actual, expected;
        if (!are_same(check, check->origin, here, there, &actual, &expected))
            report(check, actual, expected, false);
        else if (!is_name_of(check, here, there))
            add_named(check, here.tensor, "reads by another name than in the source graph");
        else if (is_elsewhere(check, here.tensor, there.tensor))
            add_named(check, here.tensor, "reads in another memory space than in the source graph");
    }
}

static bool reads_part(const struct check *check, uint32_t part)
{
    const struct tarn_graph *final = check->comparison->final;
    const struct tarn_graph_op *op = &final->ops[check->v];
    for (uint32_t k = 0; k < op->inputs_count; k++) {
        const struct tarn_graph_tensor *tensor = &final->tensors[op->inputs[k]];
        if (part - tensor->part < tensor->parts_count) return true; /* wraps below the first */
    }
    return false;
}

static bool must_read(const struct check *check, struct content content)
{
    const struct tarn_graph *source = check->comparison->source;
    struct tarn_list inputs = tarn_refine_inputs(check->comparison, check->v);
    for (uint32_t k = 0; k < inputs.count; k++) {
        struct look input = expected_input(check, inputs.ids[k]);
        const struct tarn_graph_tensor *tensor = &source->tensors[input.tensor];
        uint32_t at = content.part - tensor->part;
        if (at < tensor->parts_count && input.versions[at] == content.version) return true;
    }
    return false;
}

/* May the run write there if its origin did not write in place there? */
static bool may_write(const struct check *check, struct content actual, struct content expected)
{
    if (storage_of(check->comparison->source, expected.part)->persistent) return false;
    bool clobbers = actual.version != TARN_NONE && !reads_part(check, actual.part);
    return !clobbers && (expected.version == TARN_NONE || must_read(check, expected));
}

/* May output `out` of the source graph be written over input `in`? */
static bool is_pair(const struct check *check, uint32_t in, uint32_t out)
{
    const struct tarn_graph_op *origin = &check->comparison->source->ops[check->origin];
    const struct tarn_op_extra *extra = tarn_extra(origin);
    for (uint32_t k = 0; k < extra->inplace_count; k++)
        if (extra->inplace[k][0] == in && extra->inplace[k][1] == out) return true;
    uint32_t k = check->input_of[in];
    bool is_input = k < origin->inputs_count && origin->inputs[k] == in;
    const struct tarn_graph_tensor *tensors = check->comparison->source->tensors;
    return is_input && tensors[in].size == tensors[out].size &&
           tarn_refine_allows_kind(check->comparison, origin->kind);
}

/* May the run write output `out` of the source graph, as `made`, over a storage that it reads? Both
 * must begin at one byte: a kernel that works in place processes both in step. */
static bool is_allowed(const struct check *check, uint32_t storage, uint32_t made, uint32_t out)
{
    const struct tarn_graph *final = check->comparison->final;
    const struct tarn_graph_op *op = &final->ops[check->v];
    struct tarn_list inputs = tarn_refine_inputs(check->comparison, check->v);
    uint32_t in = TARN_NONE;
    for (uint32_t k = 0; k < inputs.count; k++) {
        if (tarn_slot_storage(final, op, k) != storage) continue;
        if (in != TARN_NONE && inputs.ids[k] != in) return false;
        if (tarn_tensor_begin(&final->tensors[op->inputs[k]]) !=
            tarn_tensor_begin(&final->tensors[made]))
            return false;
        in = inputs.ids[k];
    }
    return in != TARN_NONE && is_pair(check, in, out);
}

static void check_overwriting(const struct check *check, struct content actual, uint32_t made,
                              uint32_t out)
{
    const struct tarn_comparison *comparison = check->comparison;
    uint32_t storage = tarn_part(comparison->final, actual.part).storage;
    if (is_allowed(check, storage, made, out)) return;
    struct tarn_violation violation = tarn_violation_of(TARN_WRONG_GRAPH);
    violation.op = check->v;
    violation.tensor = comparison->final->storages[storage].tensor;
    tarn_verdict_add(comparison->verdict, violation, TARN_NO_SUSPECTS,
                     "%s writes %s over what it reads, %s, which neither the op's inplace pairs "
                     "nor the caller allows (in-place kinds, %s)",
                     tarn_op_label(comparison->final, check->v).text,
                     tarn_tensor_label(comparison->source, out).text,
                     tarn_storage_label(comparison->final, storage).text,
                     tarn_quote(comparison->final->ops[check->v].kind).text);
}

/* Outputs of a run share a storage exactly if the outputs of its origin do: separated outputs would
 * be written in part only, and merged outputs would overwrite each other. */
static void check_sharing(const struct check *check, uint32_t k, uint32_t out)
{
    const struct tarn_comparison *comparison = check->comparison;
    const struct tarn_graph_op *op = &comparison->final->ops[check->v];
    uint32_t made = tarn_outputs(op)[k], stamp = check->v + 1;
    uint32_t here = comparison->final->tensors[made].storage;
    uint32_t there = comparison->source->tensors[out].storage;
    bool is_parted = check->seen_in_source[there] == stamp && check->place_of[there] != here;
    bool is_merged = check->seen_in_final[here] == stamp && check->stands_for[here] != there;
    check->seen_in_source[there] = check->seen_in_final[here] = stamp;
    check->place_of[there] = here;
    check->stands_for[here] = there;
    if (is_parted) add_named(check, made, "writes apart from its other outputs");
    if (is_merged) add_named(check, made, "writes over another output of its own");
}

static void check_output(const struct check *check, struct look here, struct look there)
{
    struct pairing pairing = pair_of(check, here, there);
    struct content actual, expected;
    uint64_t byte, other;
    while (next_pair(&pairing, &actual, &byte, &expected, &other)) {
        if (is_same(check, actual, byte, expected, other)) {
            if (is_same_in_arms(check, check->origin, &actual, byte, &expected, other)) continue;
            report(check, actual, expected, false);
            return;
        }
        if (!may_write(check, actual, expected))
            report(check, actual, expected, false);
        else if (actual.version != TARN_NONE)
            check_overwriting(check, actual, here.tensor, there.tensor);
        else
            continue;
        return; /* once for an output */
    }
}

static void check_outputs(const struct check *check)
{
    uint32_t inputs_count = check->comparison->final->ops[check->v].inputs_count;
    struct tarn_list outputs = tarn_refine_outputs(check->comparison, check->v);
    for (uint32_t k = 0; k < outputs.count; k++) {
        struct look here = found(check, inputs_count + k);
        struct look there = expected_output(check, outputs.ids[k], k);
        check_sharing(check, k, outputs.ids[k]);
        if (is_elsewhere(check, here.tensor, there.tensor))
            add_named(check, here.tensor,
                      "writes in another memory space than in the source graph");
        check_output(check, here, there);
    }
}

/* ---- Moves ---- */

static void check_move(struct check *check, uint32_t v)
{
    const struct tarn_comparison *comparison = check->comparison;
    const struct tarn_graph *final = comparison->final;
    check->v = v;
    struct look read = found(check, 0);
    struct content content =
        before_moves(check, content_of(final->tensors[read.tensor].part, read.versions[0]));
    uint32_t made = tarn_outputs(&final->ops[v])[0];
    uint32_t name = content.version != TARN_NONE
                        ? tarn_plan_tensor_origin(comparison->plan, content.version)
                        : storage_of(final, content.part)->tensor;
    uint32_t wanted = tarn_plan_tensor_origin(comparison->plan, made);
    check->handed_on[made] = content;
    if (wanted == name) return;
    struct tarn_violation violation = tarn_violation_of(TARN_HAZARD_LOST);
    struct tarn_suspects who = {{0}, 1};
    violation.op = v;
    violation.tensor = made;
    violation.other_op = tarn_version_writer(final, content.version);
    tarn_verdict_add(
        comparison->verdict, violation, who,
        "%s must move %s, but finds %s: the launch order breaks a hazard",
        tarn_op_label(final, v).text, tarn_tensor_label(comparison->source, wanted).text,
        name < comparison->source->tensors_count ? tarn_tensor_label(comparison->source, name).text
                                                 : "a workspace");
}

/* Checks the contents that the caller may read after the iteration, or that the next iteration
 * starts with. */
static void check_end(const struct check *check)
{
    const struct tarn_graph *source = check->comparison->source, *final = check->comparison->final;
    for (uint32_t a = 0; a < source->storages_count; a++) {
        const struct tarn_storage *storage = &source->storages[a];
        if (!storage->pinned && !storage->persistent) continue;
        struct content actual, expected;
        struct look here = {storage->tensor,
                            check->actual.last + final->tensors[storage->tensor].part};
        struct look there = {storage->tensor, check->expected.last + storage->part};
        if (!are_same(check, TARN_NONE, here, there, &actual, &expected))
            report(check, actual, expected, true);
    }
}

/* ---- All of it ---- */

static enum tarn_status check_all(struct check *check, const uint32_t *launched, uint32_t count)
{
    const struct tarn_graph *source = check->comparison->source, *final = check->comparison->final;
    struct tarn_region *region = check->comparison->region;
    check->input_of = tarn_region_take(region, source->tensors_count, sizeof *check->input_of);
    check->handed_on = tarn_region_take(region, final->tensors_count, sizeof *check->handed_on);
    check->place_of = tarn_region_take(region, source->storages_count, sizeof *check->place_of);
    check->seen_in_source =
        tarn_region_take(region, source->storages_count, sizeof *check->seen_in_source);
    check->stands_for = tarn_region_take(region, final->storages_count, sizeof *check->stands_for);
    check->seen_in_final =
        tarn_region_take(region, final->storages_count, sizeof *check->seen_in_final);
    if (!check->input_of || !check->handed_on || !check->place_of || !check->seen_in_source ||
        !check->stands_for || !check->seen_in_final ||
        tarn_versions_init(&check->expected, region, source, source->order, source->ops_count) ||
        tarn_versions_init(&check->actual, region, final, launched, count))
        return TARN_SYSTEM;
    for (uint32_t t = 0; t < final->tensors_count; t++)
        check->handed_on[t] = content_of(0, TARN_NONE);
    for (uint32_t i = 0; i < count; i++) {
        if (tarn_refine_is_move(check->comparison, launched[i])) {
            check_move(check, launched[i]);
            continue;
        }
        enter(check, launched[i]);
        check_inputs(check);
        check_outputs(check);
    }
    check_end(check);
    return TARN_OK;
}

enum tarn_status tarn_refine_versions(struct tarn_comparison *comparison)
{
    const struct tarn_program *program = comparison->program;
    struct check check = {.comparison = comparison};
    struct tarn_region_mark mark = tarn_region_mark(comparison->region);
    uint32_t *launched =
        tarn_region_take(comparison->region, program->steps_count, sizeof *launched);
    for (uint32_t i = 0; i < program->steps_count && launched; i++)
        launched[i] = program->steps[program->order[i]].op;
    enum tarn_status status =
        launched ? check_all(&check, launched, program->steps_count) : TARN_SYSTEM;
    tarn_region_release(comparison->region, mark);
    return status;
}
