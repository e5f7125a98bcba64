/* Recomputing plans, verified and run: one small training step, final graphs of it built by hand
 * that repeat, split and write elsewhere as they may, and many with one thing wrong. Nothing shares
 * a byte in these plans, so that only refinement can object. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "streams/graph/builder.h"
#include "streams/plan/plan.h"
#include "support/queue_device.h"
#include "support/session_calls.h"

/* ---- The step ----
 *
 *     x -conv-> c -bn-> y -relu_-> y' -head-> h -drop-> d -loss-> g -conv_backward-> gx, gw
 *     gx, y' -relu_backward-> r          w, gw -update-> w'          gx -log-> record
 *     h -pair-> a, b;  h -fill-> part of a;  h -report-> p -scale-> q;  h -beep-> nothing
 *     gx -refill-> part of a again */

enum tensor {
    X,
    W,
    C,
    GAIN,
    MEAN,
    Y,
    SAVED,
    MEAN_1, /* of MEAN */
    Y_1,    /* of Y */
    H,
    D,
    G,
    GX,
    GW,
    R,
    W_1, /* of W */
    A,
    B,
    A_1, /* of A */
    P,
    Q,
    RECORD,
    A_2,     /* of A */
    TENSORS, /* copies come behind */
    C_2 = TENSORS,
    Y_2,
    Y_1_2,
    SPARE,
    SPARE_2
};

enum op {
    LOAD,
    CONV,
    BN,
    RELU,
    HEAD,
    DROP,
    LOSS,
    CONV_BACKWARD,
    RELU_BACKWARD,
    PAIR,
    FILL,
    REPORT,
    SCALE,
    BEEP,
    LOG,
    UPDATE,
    REFILL
};

/* What a final graph does otherwise than the first one. */
enum change {
    NONE,
    /* all right */
    NOTHING_TWICE,
    WHOLE_BACKWARD,
    RELU_ELSEWHERE,
    RELU_AGAIN_ELSEWHERE,
    FROM_INPUT,
    SCALE_IN_PLACE_OF_H,
    REPORT_BY_GAIN,
    /* wrong */
    READS_COPY_BEFORE_RELU,
    READS_STALE_VERSION,
    CONV_AGAIN_AFTER_UPDATE,
    COPY_NAMES_OTHER_TENSOR,
    CONV_AGAIN_WITH_ANOTHER_OUTPUT,
    BN_AGAIN_AS_WRITTEN,
    DROP_AGAIN,
    BEEP_AGAIN,
    UPDATE_AGAIN,
    PART_WITHOUT_ITS_INPUT,
    PART_WITH_FEWER_INPUTS,
    PAIR_WITH_ONE_OUTPUT,
    PART_INSTEAD_OF_A_PARAMETER,
    PARAMETER_OF_ANOTHER,
    UPDATE_OF_ANOTHER,
    REFILL_ELSEWHERE,
    HOLE_BEHIND_A_VIEW,
    PART_OF_A_STRANGER,
    UNKNOWN_IMPLEMENTATION,
    NO_WORKSPACE,
    OTHER_COMMON,
    MORE_COMMON,
    FILL_ELSEWHERE,
    FILL_AND_REFILL_ELSEWHERE,
    OUTPUT_OVERWRITTEN,
    OUTPUT_NOT_PINNED,
    UPDATE_ELSEWHERE,
    CONTROL_DROPPED,
    LOG_ABSENT
};

struct making {
    struct tarn_builder *builder;
    bool final;
    enum change change;
};

static bool is(const struct making *making, enum change change)
{
    return making->final && making->change == change;
}

static void add_tensor(const struct making *making, uint32_t root, enum tarn_tensor_kind kind,
                       uint32_t origin)
{
    struct tarn_tensor_info info = {.size = 64, .kind = kind};
    uint32_t t = tarn_builder_alias_of(making->builder, &info, root);
    tarn_builder_tensor_origin(making->builder, origin == TARN_NONE ? t : origin);
}

static void add_tensors(const struct making *making)
{
    static const enum tarn_tensor_kind kinds[TENSORS] = {
        [W] = TARN_PARAMETER,      [GAIN] = TARN_PARAMETER, [MEAN] = TARN_PARAMETER,
        [MEAN_1] = TARN_PARAMETER, [W_1] = TARN_PARAMETER,  [G] = TARN_GRADIENT,
        [GW] = TARN_GRADIENT,      [P] = TARN_OUTPUT,       [RECORD] = TARN_OUTPUT};
    uint32_t roots[TENSORS];
    for (uint32_t t = 0; t < TENSORS; t++) roots[t] = TARN_NONE;
    roots[MEAN_1] = MEAN;
    roots[W_1] = is(making, UPDATE_ELSEWHERE) ? TARN_NONE : W;
    if (is(making, UPDATE_OF_ANOTHER)) roots[W_1] = GAIN;
    roots[Y_1] = is(making, RELU_ELSEWHERE) ? TARN_NONE : Y;
    bool both_elsewhere = is(making, FILL_AND_REFILL_ELSEWHERE);
    roots[A_1] = is(making, FILL_ELSEWHERE) || both_elsewhere ? TARN_NONE : A;
    roots[A_2] = is(making, REFILL_ELSEWHERE) ? TARN_NONE : both_elsewhere ? A_1 : A;
    if (is(making, SCALE_IN_PLACE_OF_H)) roots[Q] = H;
    if (is(making, OUTPUT_OVERWRITTEN)) roots[Q] = P;
    if (is(making, HOLE_BEHIND_A_VIEW)) roots[B] = A;
    for (uint32_t t = 0; t < TENSORS; t++) {
        enum tarn_tensor_kind kind = kinds[roots[t] == TARN_NONE ? t : roots[t]];
        if (t == P && is(making, OUTPUT_NOT_PINNED)) kind = TARN_INTERMEDIATE;
        if (t == W_1 && is(making, UPDATE_ELSEWHERE)) kind = TARN_INTERMEDIATE;
        if (t == B && is(making, PART_INSTEAD_OF_A_PARAMETER)) kind = TARN_PARAMETER;
        add_tensor(making, roots[t], kind, TARN_NONE);
    }
}

/* ---- Ops ---- */

/* Every run of an op says of it what the source graph does. */
static tarn_op add_op(const struct making *making, enum op origin, uint32_t implementation,
                      struct tarn_op_info info)
{
    static const char *const kinds[] = {[LOAD] = "load",     [CONV] = "conv",
                                        [BN] = "batch_norm", [RELU] = "relu_",
                                        [HEAD] = "mm",       [DROP] = "dropout",
                                        [LOSS] = "loss",     [CONV_BACKWARD] = "conv_backward",
                                        [PAIR] = "pair",     [RELU_BACKWARD] = "relu_backward",
                                        [FILL] = "fill_",    [REPORT] = "sum",
                                        [SCALE] = "mul",     [BEEP] = "beep",
                                        [LOG] = "log",       [UPDATE] = "sgd",
                                        [REFILL] = "fill_"};
    static const uint32_t over_h[1][2] = {{H, Q}};
    info.kind = kinds[origin];
    info.stream = origin == LOG;
    if (origin == BEEP) info.recomputable = TARN_NOT_RECOMPUTABLE;
    if (origin == SCALE && !making->final) info.inplace = over_h, info.inplace_count = 1;
    tarn_op op = tarn_builder_op(making->builder, &info);
    if (making->final) tarn_builder_origin(making->builder, origin, implementation);
    return op;
}

#define OP(making, origin, ...) RUN(making, origin, TARN_NONE, __VA_ARGS__)
#define RUN(making, origin, implementation, ...) \
    add_op(making, origin, implementation, (struct tarn_op_info){__VA_ARGS__})

static void add_forward(const struct making *making)
{
    OP(making, LOAD, .outputs = TARN_LIST(X));
    OP(making, CONV, .inputs = TARN_LIST(X, is(making, PARAMETER_OF_ANOTHER) ? GAIN : W),
       .outputs = TARN_LIST(C));
    OP(making, BN, .inputs = TARN_LIST(C, GAIN, MEAN), .outputs = TARN_LIST(Y, SAVED, MEAN_1));
    OP(making, RELU, .inputs = TARN_LIST(Y), .outputs = TARN_LIST(Y_1));
    OP(making, HEAD, .inputs = TARN_LIST(Y_1), .outputs = TARN_LIST(H));
    OP(making, DROP, .inputs = TARN_LIST(H), .outputs = TARN_LIST(D));
    OP(making, LOSS, .inputs = TARN_LIST(D), .outputs = TARN_LIST(G));
}

enum { BACKWARD_INPUT, BACKWARD_WEIGHT };

static void add_conv_backward(const struct making *making)
{
    const struct tarn_implementation parts[] = {
        {.name = "input", .inputs = TARN_LIST(G, W), .outputs = TARN_LIST(GX)},
        {.name = "weight", .workspace = 16, .inputs = TARN_LIST(G, X), .outputs = TARN_LIST(GW)}};
    struct tarn_list common = TARN_LIST(G);
    if (!making->final || is(making, WHOLE_BACKWARD)) {
        OP(making, CONV_BACKWARD, .inputs = TARN_LIST(G, X, W), .outputs = TARN_LIST(GX, GW),
           .implementations = parts, .implementations_count = 2);
        return;
    }
    const uint32_t reads[] = {G, is(making, PART_WITHOUT_ITS_INPUT) ? C : X};
    RUN(making, CONV_BACKWARD, BACKWARD_INPUT, .inputs = TARN_LIST(G, W), .outputs = TARN_LIST(GX),
        .common = common);
    RUN(making, CONV_BACKWARD, is(making, UNKNOWN_IMPLEMENTATION) ? 2 : BACKWARD_WEIGHT,
        .inputs = {reads, is(making, PART_WITH_FEWER_INPUTS) ? 1 : 2}, .outputs = TARN_LIST(GW),
        .workspace = is(making, NO_WORKSPACE) ? 0 : 16, .common = common);
}

static void add_relu_backward(const struct making *making)
{
    const struct tarn_implementation from_input = {.name = "from_input",
                                                   .inputs = TARN_LIST(GX, Y)};
    uint32_t read = Y_1, implementation = TARN_NONE;
    uint32_t common[] = {is(making, OTHER_COMMON) ? G : GX, G};
    if (making->final && making->change != NOTHING_TWICE) read = Y_1_2;
    if (is(making, READS_COPY_BEFORE_RELU)) read = Y_2;
    if (is(making, READS_STALE_VERSION) || is(making, FROM_INPUT)) implementation = 0;
    if (is(making, READS_STALE_VERSION)) read = Y; /* relu_ has overwritten it */
    if (is(making, FROM_INPUT)) read = Y_2;
    RUN(making, RELU_BACKWARD, implementation, .inputs = TARN_LIST(GX, read),
        .outputs = TARN_LIST(R), .implementations = &from_input,
        .implementations_count = implementation == TARN_NONE,
        .common = {making->final ? common : NULL, is(making, MORE_COMMON) ? 2 : 1});
}

static void add_report(const struct making *making)
{
    const struct tarn_implementation by_gain = {.name = "by_gain", .inputs = TARN_LIST(H, GAIN)};
    const uint32_t reads[] = {H, GAIN};
    bool is_by_gain = is(making, REPORT_BY_GAIN);
    RUN(making, REPORT, is_by_gain ? 0 : TARN_NONE, .inputs = {reads, is_by_gain ? 2 : 1},
        .outputs = TARN_LIST(P), .implementations = &by_gain, .implementations_count = !is_by_gain,
        .common = {making->final ? reads : NULL, 1});
}

static void add_side(const struct making *making)
{
    const struct tarn_implementation parts[] = {{.name = "a", .outputs = TARN_LIST(A)},
                                                {.name = "b", .outputs = TARN_LIST(B)}};
    bool whole = is(making, PAIR_WITH_ONE_OUTPUT);
    if (is(making, HOLE_BEHIND_A_VIEW) || is(making, PART_OF_A_STRANGER) || whole ||
        is(making, PART_INSTEAD_OF_A_PARAMETER)) {
        RUN(making, PAIR, whole ? TARN_NONE : 0, .inputs = TARN_LIST(H), .outputs = TARN_LIST(A));
        if (is(making, HOLE_BEHIND_A_VIEW))
            OP(making, PAIR, .inputs = TARN_LIST(A), .outputs = TARN_LIST(B), .view = true);
        else if (!is(making, PART_INSTEAD_OF_A_PARAMETER))
            RUN(making, HEAD, TARN_NONE, .inputs = TARN_LIST(Y_1_2), .outputs = TARN_LIST(B));
    } else {
        OP(making, PAIR, .inputs = TARN_LIST(H), .outputs = TARN_LIST(A, B),
           .implementations = parts, .implementations_count = 2);
    }
    OP(making, FILL, .inputs = TARN_LIST(H), .outputs = TARN_LIST(A_1));
    add_report(making);
    OP(making, SCALE, .inputs = TARN_LIST(P, H), .outputs = TARN_LIST(Q));
    tarn_op beep = OP(making, BEEP, .inputs = TARN_LIST(X));
    if (is(making, BEEP_AGAIN)) OP(making, BEEP, .inputs = TARN_LIST(X));
    if (is(making, LOG_ABSENT)) { /* somebody else makes the record */
        OP(making, LOAD, .outputs = TARN_LIST(RECORD));
        return;
    }
    OP(making, LOG, .inputs = TARN_LIST(GX), .outputs = TARN_LIST(RECORD),
       .control = {&beep, is(making, CONTROL_DROPPED) ? 0 : 1});
}

static void add_update(const struct making *making)
{
    OP(making, UPDATE, .inputs = TARN_LIST(W, GW), .outputs = TARN_LIST(W_1));
    if (is(making, UPDATE_AGAIN))
        OP(making, UPDATE, .inputs = TARN_LIST(W, GW), .outputs = TARN_LIST(SPARE));
}

/* Its implementation reads what fill has overwritten. */
static void add_refill(const struct making *making)
{
    const struct tarn_implementation from_a = {.name = "from_a", .inputs = TARN_LIST(GX, A)};
    const uint32_t reads[] = {GX, A};
    bool elsewhere = is(making, REFILL_ELSEWHERE);
    RUN(making, REFILL, elsewhere ? 0 : TARN_NONE, .inputs = {reads, elsewhere ? 2 : 1},
        .outputs = TARN_LIST(A_2), .implementations = &from_a, .implementations_count = !elsewhere,
        .common = {making->final ? reads : NULL, 1});
}

static void add_recomputation(const struct making *making)
{
    if (is(making, CONV_AGAIN_WITH_ANOTHER_OUTPUT))
        OP(making, CONV, .inputs = TARN_LIST(X, W), .outputs = TARN_LIST(C_2, SPARE));
    else
        OP(making, CONV, .inputs = TARN_LIST(X, W), .outputs = TARN_LIST(C_2));
    if (is(making, BN_AGAIN_AS_WRITTEN))
        OP(making, BN, .inputs = TARN_LIST(C_2, GAIN, MEAN),
           .outputs = TARN_LIST(Y_2, SPARE, SPARE_2));
    else
        RUN(making, BN, 0, .inputs = TARN_LIST(C_2, GAIN, SAVED), .outputs = TARN_LIST(Y_2),
            .common = TARN_LIST(C, GAIN));
    OP(making, RELU, .inputs = TARN_LIST(Y_2), .outputs = TARN_LIST(Y_1_2));
    if (is(making, DROP_AGAIN))
        OP(making, DROP, .inputs = TARN_LIST(H), .outputs = TARN_LIST(SPARE));
}

static void add_copies(const struct making *making)
{
    bool elsewhere = is(making, RELU_AGAIN_ELSEWHERE) || is(making, READS_COPY_BEFORE_RELU) ||
                     is(making, FROM_INPUT);
    uint32_t of_c = is(making, COPY_NAMES_OTHER_TENSOR) ? H : C;
    add_tensor(making, TARN_NONE, TARN_INTERMEDIATE, of_c);
    add_tensor(making, TARN_NONE, TARN_INTERMEDIATE, Y);
    add_tensor(making, elsewhere ? TARN_NONE : Y_2, TARN_INTERMEDIATE, Y_1);
    if (is(making, CONV_AGAIN_WITH_ANOTHER_OUTPUT))
        add_tensor(making, TARN_NONE, TARN_INTERMEDIATE, C);
    if (is(making, DROP_AGAIN)) add_tensor(making, TARN_NONE, TARN_INTERMEDIATE, D);
    if (is(making, UPDATE_AGAIN)) add_tensor(making, W, TARN_PARAMETER, W_1);
    if (is(making, BN_AGAIN_AS_WRITTEN)) {
        add_tensor(making, TARN_NONE, TARN_INTERMEDIATE, SAVED);
        add_tensor(making, MEAN, TARN_PARAMETER, MEAN_1);
    }
}

static struct tarn_graph *make(bool final, enum change change)
{
    struct making making = {tarn_builder_create("step"), final, change};
    bool again = final && change != NOTHING_TWICE, late = is(&making, CONV_AGAIN_AFTER_UPDATE);
    struct tarn_graph *graph;
    struct tarn_error error;
    tarn_builder_stream(making.builder, "compute");
    tarn_builder_stream(making.builder, "log");
    add_tensors(&making);
    if (again) add_copies(&making);
    add_forward(&making);
    if (again && !late) add_recomputation(&making);
    add_conv_backward(&making);
    if (late) add_update(&making);
    if (late) add_recomputation(&making);
    add_relu_backward(&making);
    add_side(&making);
    if (!late) add_update(&making);
    add_refill(&making);
    if (tarn_builder_finish(making.builder, &graph, &error)) fail_msg("%d: %s", change, error.text);
    return graph;
}

/* ---- Verifying ---- */

static struct tarn_plan *plan_of(struct tarn_graph *final, const struct tarn_graph *source)
{
    struct tarn_plan *plan = tarn_plan_of_graph(final);
    assert_non_null(plan);
    plan->transformed = true;
    plan->source_hash = source->hash;
    plan->alignment = 64;
    for (uint32_t i = 0; i < plan->storages_count; i++, plan->footprint += 64)
        plan->storages[i].offset = plan->footprint;
    for (uint32_t i = 0; i < plan->workspaces_count; i++, plan->footprint += 64)
        plan->workspaces[i].offset = plan->footprint;
    for (uint32_t i = 0; i < plan->places_persistent_count; i++, plan->persistent += 64)
        plan->places_persistent[i].offset = plan->persistent;
    return plan;
}

static const enum change sound[] = {
    NONE,       NOTHING_TWICE,       WHOLE_BACKWARD, RELU_ELSEWHERE, RELU_AGAIN_ELSEWHERE,
    FROM_INPUT, SCALE_IN_PLACE_OF_H, REPORT_BY_GAIN};
#define SOUND (sizeof sound / sizeof *sound)

static enum tarn_status verify(enum change change, struct tarn_verdict **verdict,
                               struct tarn_error *error)
{
    struct tarn_graph *source = make(false, NONE), *final = make(true, change);
    struct tarn_plan *plan = plan_of(final, source);
    enum tarn_status status = tarn_plan_verify(plan, source, NULL, verdict, error);
    tarn_plan_destroy(plan);
    tarn_graph_destroy(source);
    tarn_graph_destroy(final);
    return status;
}

static void require_rejected(enum change change, enum tarn_violation_kind kind, const char *part)
{
    struct tarn_verdict *verdict;
    struct tarn_error error;
    bool found = false;
    if (verify(change, &verdict, &error) != TARN_REJECTED) fail_msg("%d: not rejected", change);
    for (size_t i = 0; i < tarn_verdict_count(verdict); i++) {
        const struct tarn_violation *violation = tarn_verdict_get(verdict, i);
        found = found || (violation->kind == kind && strstr(violation->text, part));
    }
    if (!found) fail_msg("%d: %s", change, error.text);
    tarn_verdict_destroy(verdict);
}

static void accepts_what_repeats_and_splits_and_writes_elsewhere_as_it_may(void **state)
{
    (void)state;
    for (size_t i = 0; i < SOUND; i++) {
        struct tarn_error error;
        if (verify(sound[i], NULL, &error)) fail_msg("%d: %s", sound[i], error.text);
    }
}

static void rejects_a_wrong_or_stale_version(void **state)
{
    (void)state;
    require_rejected(READS_COPY_BEFORE_RELU, TARN_HAZARD_LOST, "must see");
    require_rejected(READS_STALE_VERSION, TARN_HAZARD_LOST, "must see");
    require_rejected(CONV_AGAIN_AFTER_UPDATE, TARN_HAZARD_LOST,
                     "as the previous iteration left it");
    require_rejected(PARAMETER_OF_ANOTHER, TARN_HAZARD_LOST, "must see");
}

static void rejects_a_copy_that_names_another_tensor(void **state)
{
    (void)state;
    require_rejected(COPY_NAMES_OTHER_TENSOR, TARN_WRONG_GRAPH, "has not the inputs and outputs");
}

static void rejects_a_second_run_with_another_output(void **state)
{
    (void)state;
    require_rejected(CONV_AGAIN_WITH_ANOTHER_OUTPUT, TARN_WRONG_GRAPH,
                     "has not the inputs and outputs");
}

static void rejects_a_second_run_of_what_may_run_once(void **state)
{
    (void)state;
    require_rejected(BN_AGAIN_AS_WRITTEN, TARN_MISSING, "runs more than once");
    require_rejected(DROP_AGAIN, TARN_MISSING, "runs more than once");
    require_rejected(BEEP_AGAIN, TARN_MISSING, "runs more than once");
    require_rejected(UPDATE_AGAIN, TARN_MISSING, "runs more than once");
}

static void rejects_an_implementation_that_is_not_what_it_says(void **state)
{
    (void)state;
    require_rejected(PART_WITHOUT_ITS_INPUT, TARN_HAZARD_LOST, "must see");
    require_rejected(PART_WITH_FEWER_INPUTS, TARN_WRONG_GRAPH, "has not the inputs and outputs");
    require_rejected(UNKNOWN_IMPLEMENTATION, TARN_WRONG_GRAPH, "names an implementation that");
    require_rejected(NO_WORKSPACE, TARN_WRONG_GRAPH, "has not the workspace");
    require_rejected(OTHER_COMMON, TARN_WRONG_GRAPH, "has not the common inputs");
    require_rejected(MORE_COMMON, TARN_WRONG_GRAPH, "has not the common inputs");
    require_rejected(PAIR_WITH_ONE_OUTPUT, TARN_WRONG_GRAPH, "has not the inputs and outputs");
}

static void rejects_parts_that_leave_a_hole(void **state)
{
    (void)state;
    require_rejected(HOLE_BEHIND_A_VIEW, TARN_MISSING, "runs in parts, of which none makes");
    require_rejected(PART_OF_A_STRANGER, TARN_WRONG_GRAPH, "has not the inputs and outputs");
    require_rejected(PART_OF_A_STRANGER, TARN_MISSING, "runs in parts, of which none makes");
    require_rejected(PART_INSTEAD_OF_A_PARAMETER, TARN_MISSING, "runs in parts, of which none");
    require_rejected(LOG_ABSENT, TARN_MISSING, "op 14 of the source graph is absent");
}

static void rejects_a_write_elsewhere_that_loses_what_it_leaves(void **state)
{
    (void)state;
    require_rejected(FILL_ELSEWHERE, TARN_HAZARD_LOST, "must see");
    require_rejected(REFILL_ELSEWHERE, TARN_HAZARD_LOST, "must see");
    require_rejected(FILL_AND_REFILL_ELSEWHERE, TARN_HAZARD_LOST, "must see");
    require_rejected(UPDATE_OF_ANOTHER, TARN_WRONG_GRAPH, "aliases another tensor than");
    require_rejected(UPDATE_ELSEWHERE, TARN_WRONG_GRAPH, "is of another kind than");
}

static void rejects_outputs_that_do_not_last(void **state)
{
    (void)state;
    require_rejected(OUTPUT_OVERWRITTEN, TARN_HAZARD_LOST, "who reads it after the iteration");
    require_rejected(OUTPUT_NOT_PINNED, TARN_WRONG_GRAPH, "has not the inputs and outputs");
}

static void rejects_a_control_arc_of_the_source_that_nothing_keeps(void **state)
{
    (void)state;
    require_rejected(CONTROL_DROPPED, TARN_HAZARD_LOST,
                     "a control arc of the source graph forbids");
}

/* ---- Arms of conditionals ---- */

/*     a -> kept;  b -> other;  in arm 0: kept, other -change-> kept';  kept' -read-> out
 * If the arm is not taken, the reader is to find what a left. */
enum where { IN_PLACE, ELSEWHERE, OVER_OTHER, OVER_A_COPY };

static void run_op(struct tarn_builder *builder, uint32_t origin, struct tarn_op_info info,
                   bool in_arm)
{
    static const uint32_t arm[1][2] = {{0, 0}};
    info.kind = "matmul";
    info.branch = arm;
    info.branch_count = in_arm;
    tarn_builder_op(builder, &info);
    tarn_builder_origin(builder, origin, TARN_NONE);
}

/* Where `change` writes kept': over a copy of kept, the last tensor, or elsewhere. */
static struct tarn_graph *make_arms(enum where where, bool reader_in_arm)
{
    static const uint32_t pairs[1][2] = {{1, 2}}, roots[] = {0, TARN_NONE, 1, 4};
    struct tarn_builder *b = tarn_builder_create("arms");
    struct tarn_graph *graph;
    struct tarn_error error;
    const bool copies = where == OVER_A_COPY;
    struct tarn_tensor_info info = {.size = 64, .kind = TARN_INTERMEDIATE};
    tarn_builder_stream(b, "compute");
    for (uint32_t t = 0; t < 4; t++) {
        tarn_builder_alias_of(b, &info, t == 2 ? roots[where] : TARN_NONE);
        tarn_builder_tensor_origin(b, t);
    }
    if (copies) tarn_builder_alias_of(b, &info, TARN_NONE);
    if (copies) tarn_builder_tensor_origin(b, 0);
    run_op(b, 0, (struct tarn_op_info){.outputs = TARN_TENSORS(0)}, false);
    run_op(b, 1, (struct tarn_op_info){.outputs = TARN_TENSORS(1)}, false);
    if (copies) run_op(b, 0, (struct tarn_op_info){.outputs = TARN_TENSORS(4)}, false);
    run_op(b, 2,
           (struct tarn_op_info){.inputs = copies ? TARN_TENSORS(4, 1) : TARN_TENSORS(0, 1),
                                 .outputs = TARN_TENSORS(2),
                                 .inplace = copies ? NULL : pairs,
                                 .inplace_count = !copies},
           true);
    run_op(b, 3, (struct tarn_op_info){.inputs = TARN_TENSORS(2), .outputs = TARN_TENSORS(3)},
           reader_in_arm);
    if (tarn_builder_finish(b, &graph, &error)) fail_msg("%d: %s", where, error.text);
    return graph;
}

static bool is_rejected(enum where where, bool reader_in_arm)
{
    struct tarn_graph *source = make_arms(IN_PLACE, reader_in_arm),
                      *final = make_arms(where, reader_in_arm);
    struct tarn_plan *plan = plan_of(final, source);
    struct tarn_error error;
    enum tarn_status status = tarn_plan_verify(plan, source, NULL, NULL, &error);
    bool is_hazard =
        status == TARN_REJECTED && strstr(error.text, "an arm of a conditional is not taken");
    if (!is_hazard && status != TARN_OK) fail_msg("%d: %s", where, error.text);
    tarn_plan_destroy(plan);
    tarn_graph_destroy(source);
    tarn_graph_destroy(final);
    return is_hazard;
}

/* In all of them the reader finds the right version if the arm is taken. */
static void rejects_what_is_there_only_if_an_arm_is_taken(void **state)
{
    (void)state;
    assert_false(is_rejected(IN_PLACE, false));
    assert_false(is_rejected(OVER_A_COPY, false));
    assert_true(is_rejected(ELSEWHERE, false));
    assert_true(is_rejected(OVER_OTHER, false));
    assert_false(is_rejected(ELSEWHERE, true));
    assert_false(is_rejected(OVER_OTHER, true));
}

/* ---- Running ---- */

static uint64_t digest_of(struct tarn_plan *plan, struct tarn_device device, bool random_order)
{
    struct tarn_session *session;
    struct tarn_check_report report;
    struct tarn_error error;
    struct tarn_check_options *options =
        TARN_CHECK_OPTIONS(.iterations = 4, .random_order = random_order);
    require(tarn_session_create(plan, device, NULL, &session, &error), &error);
    require(tarn_session_check(session, options, &report, &error), &error);
    tarn_session_destroy(session);
    return report.digest;
}

static uint64_t digest_of_change(bool final, enum change change, bool random_order, bool queues)
{
    struct tarn_graph *source = make(false, NONE), *graph = make(final, change);
    struct tarn_plan *plan = plan_of(graph, source);
    struct queue_device on_paper = {.closures = true};
    plan->transformed = final;
    uint64_t digest =
        digest_of(plan, queues ? queue_device(&on_paper) : tarn_device_host(NULL), random_order);
    tarn_plan_destroy(plan);
    tarn_graph_destroy(graph);
    tarn_graph_destroy(source);
    return digest;
}

static void recomputing_ends_with_the_digest_of_keeping_everything(void **state)
{
    (void)state;
    uint64_t digest = digest_of_change(false, NONE, false, false);
    for (size_t i = 0; i < SOUND; i++) {
        for (int order = 0; order < 2; order++)
            assert_int_equal(digest_of_change(true, sound[i], order, false), digest);
        assert_int_equal(digest_of_change(true, sound[i], false, true), digest);
    }
}

static void computing_something_else_ends_with_another_digest(void **state)
{
    (void)state;
    static const enum change others[] = {LOG_ABSENT, UPDATE_AGAIN, OUTPUT_OVERWRITTEN};
    uint64_t digest = digest_of_change(false, NONE, false, false);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_int_not_equal(digest_of_change(true, others[i], false, false), digest);
}

/* By op of the plan's graph. */
struct seen {
    tarn_op origin[32];
    uint32_t implementation[32];
    bool recomputed[32];
};

static int note_call(void *user, const struct tarn_call *call)
{
    struct seen *seen = user;
    seen->origin[call->op] = call->origin;
    seen->implementation[call->op] = call->implementation;
    seen->recomputed[call->op] = call->recomputed;
    return 0;
}

static void require_call(const struct seen *seen, tarn_op op, enum op origin,
                         uint32_t implementation, bool recomputed)
{
    assert_int_equal(seen->origin[op], origin);
    assert_int_equal(seen->implementation[op], implementation);
    assert_int_equal(seen->recomputed[op], recomputed);
}

static void see_calls(struct tarn_device device, bool capture)
{
    struct tarn_graph *source = make(false, NONE), *final = make(true, NONE);
    struct tarn_plan *plan = plan_of(final, source);
    struct tarn_session *session;
    struct tarn_error error;
    struct seen seen;
    require(tarn_session_create(plan, device, TARN_SESSION_OPTIONS(.capture = capture), &session,
                                &error),
            &error);
    assert_int_equal(tarn_session_bind_default(session, note_call, &seen), TARN_OK);
    run_iterations(session, 2);
    require_call(&seen, CONV, CONV, TARN_NONE, false);
    require_call(&seen, BN, BN, TARN_NONE, false);
    tarn_op again = LOSS + 1;
    require_call(&seen, again, CONV, TARN_NONE, true);
    require_call(&seen, again + 1, BN, 0, true);
    require_call(&seen, again + 2, RELU, TARN_NONE, true);
    require_call(&seen, again + 3, CONV_BACKWARD, BACKWARD_INPUT, false);
    require_call(&seen, again + 4, CONV_BACKWARD, BACKWARD_WEIGHT, false);
    require_call(&seen, again + 5, RELU_BACKWARD, TARN_NONE, false);
    tarn_session_destroy(session);
    tarn_plan_destroy(plan);
    tarn_graph_destroy(final);
    tarn_graph_destroy(source);
}

static void kernels_see_what_they_run_and_whether_again(void **state)
{
    (void)state;
    struct queue_device plain = {0}, closures = {.closures = true}, captured = {0};
    see_calls(tarn_device_host(NULL), false);
    see_calls(queue_device(&plain), false);
    see_calls(queue_device(&closures), false);
    see_calls(queue_device(&captured), true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(accepts_what_repeats_and_splits_and_writes_elsewhere_as_it_may),
        cmocka_unit_test(rejects_a_wrong_or_stale_version),
        cmocka_unit_test(rejects_a_copy_that_names_another_tensor),
        cmocka_unit_test(rejects_a_second_run_with_another_output),
        cmocka_unit_test(rejects_a_second_run_of_what_may_run_once),
        cmocka_unit_test(rejects_an_implementation_that_is_not_what_it_says),
        cmocka_unit_test(rejects_parts_that_leave_a_hole),
        cmocka_unit_test(rejects_a_write_elsewhere_that_loses_what_it_leaves),
        cmocka_unit_test(rejects_outputs_that_do_not_last),
        cmocka_unit_test(rejects_a_control_arc_of_the_source_that_nothing_keeps),
        cmocka_unit_test(rejects_what_is_there_only_if_an_arm_is_taken),
        cmocka_unit_test(recomputing_ends_with_the_digest_of_keeping_everything),
        cmocka_unit_test(computing_something_else_ends_with_another_digest),
        cmocka_unit_test(kernels_see_what_they_run_and_whether_again),
    };
    return cmocka_run_group_tests_name("refine", tests, NULL, NULL);
}
