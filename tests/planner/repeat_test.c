/* Which ops may run twice, and how a batch-norm may: by its kind, by what it says of itself, by
 * what it overwrites. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "streams/graph/builder.h"
#include "streams/graph/recomputable_kinds.h"
#include "streams/text/op_kinds.h"

static tarn_tensor add_tensor(struct tarn_builder *builder, const char *name,
                              enum tarn_tensor_kind kind)
{
    return tarn_builder_tensor(builder,
                               &(struct tarn_tensor_info){.name = name, .size = 64, .kind = kind});
}

static struct tarn_graph *finish(struct tarn_builder *builder)
{
    struct tarn_graph *graph;
    struct tarn_error error;
    if (tarn_builder_finish(builder, &graph, &error) != TARN_OK) fail_msg("%s", error.text);
    return graph;
}

/* ---- The rule ---- */

static bool op_repeats(const char *kind, enum tarn_op_class op_class,
                       enum tarn_recomputable recomputable)
{
    struct tarn_builder *builder = tarn_builder_create("kind");
    tarn_stream stream = tarn_builder_stream(builder, "compute");
    tarn_tensor x = add_tensor(builder, "x", TARN_INPUT);
    tarn_tensor y = add_tensor(builder, "y", TARN_INTERMEDIATE);
    tarn_builder_op(builder, &(struct tarn_op_info){.kind = kind,
                                                    .stream = stream,
                                                    .inputs = TARN_TENSORS(x),
                                                    .outputs = TARN_TENSORS(y),
                                                    .recomputable = recomputable,
                                                    .op_class = op_class});
    struct tarn_graph *graph = finish(builder);
    bool repeats = tarn_op_repeats(graph, 0, TARN_NONE);
    tarn_graph_destroy(graph);
    return repeats;
}

static bool kind_repeats(const char *kind, enum tarn_recomputable recomputable)
{
    return op_repeats(kind, TARN_CLASS_UNKNOWN, recomputable);
}

/* ---- What a kind says ---- */

struct said {
    enum tarn_op_class op_class;
    const char *kinds; /* between spaces */
};

/* By framework: those that say it, and those that only look like it. */
static const struct said said[] = {
    {TARN_CLASS_RANDOM,
     "aten.exponential aten.exponential_ aten.normal.Tensor_float aten.normal_ prims.normal "
     "aten.geometric aten.cauchy_ aten.log_normal aten.rrelu_with_noise aten.binomial "
     "aten._standard_gamma aten._sample_dirichlet aten.native_dropout aten.rand_like aten.randn "
     "aten.randint.low aten.randperm aten.bernoulli_.float aten.multinomial aten.poisson "
     "aten.uniform_ aten._fused_dropout aten.alpha_dropout aten._cudnn_rnn aten.lstm "
     "aten._scaled_dot_product_flash_attention aten._scaled_dot_product_flash_attention_for_cpu "
     "aten._scaled_dot_product_efficient_attention aten._flash_attention_forward "
     "attention_dropout flash_attn_func fused_softmax_dropout drop_path DropPath stochastic_depth "
     "gumbel_softmax rngprims.philox_rand"},
    {TARN_CLASS_RANDOM,
     "rng rng-uniform rng-get-and-update-state stablehlo.rng_bit_generator Dropout2d "
     "RandomNormalLike RandomUniform Bernoulli Multinomial RandomStandardNormal TruncatedNormal "
     "RandomShuffle RandomGamma ParameterizedTruncatedNormal _sample_multinomial sample_normal "
     "_random_uniform _npi_uniform shuffle StandardNormal DropoutGenMask DropoutV3 Gamma "
     "UniformInt Poisson FlashAttentionVarLen random_uniform"},
    {TARN_CLASS_COLLECTIVE,
     "all-reduce all-reduce-start all-gather reduce-scatter all-to-all collective-permute "
     "collective-broadcast ragged-all-to-all send recv-done stablehlo.all_reduce lax.psum psum "
     "psum_scatter pmean pmax ppermute all_gather all_to_all _c10d_functional.broadcast "
     "_c10d_functional.all_reduce _c10d_functional.wait_tensor "
     "_c10d_functional_autograd.all_to_all_single "
     "c10d.reduce_ c10d.broadcast_ c10d.allgather_ c10d.alltoall_base_ c10d.barrier broadcast_ "
     "dist.broadcast torch.distributed.broadcast comm.all_reduce tarn.all_reduce"},
    {TARN_CLASS_COLLECTIVE,
     "MPI_Bcast MPI_Allreduce MPI_Iallgatherv MPI_Reduce MPI_Alltoall MPI_Sendrecv ncclAllReduce "
     "ncclBroadcast ncclReduce ncclSend ncclDevKernel_AllReduce_Sum_f32_RING_LL NcclAllReduce "
     "HorovodAllreduce HorovodBroadcast CollectiveReduceV2 CollectiveBcastSendV2 XlaAllReduce "
     "CrossReplicaSum AllReduce AllGather ReduceScatter AlltoAll NeighborExchange Broadcast Reduce "
     "Receive HcomAllReduce SyncBatchNorm _Send _HostRecv"},
    {TARN_CLASS_RANDOM,
     "_npi_choice _npi_gamma _npi_pareto AnonymousRandomSeedGenerator FractionalMaxPool "
     "AllCandidateSampler NonDeterministicInts CudnnRNNV3 prims.inductor_seeds "
     "quantize_stochastic"},
    {TARN_CLASS_COLLECTIVE,
     "_AllSwap All2All c_broadcast global_scatter CrossReplicaMean wait_tensor async-start "
     "async-done Iallreduce"},
    {TARN_CLASS_OPTIMIZER,
     "ApplyAddSign ApplyPowerSign Momentum MomentumV2 signsgd_update signum_update nag_mom_update "
     "ftml_update ResourceApplyKerasMomentum"},
    {TARN_CLASS_COPY, "prims.device_put device_get DeviceCopy aten.cuda d2d GetNext"},
    {TARN_CLASS_PURE, "exponential.2 broadcast.7 reduce.11"},
    {TARN_CLASS_UNKNOWN, "io_callback PrintV2 Assert"},
    {TARN_CLASS_COPY,
     "tarn.h2d tarn.d2h Memcpy MemcpyHtoD MemcpyToHost MemcpyFromHost cudaMemcpyAsync copy-start "
     "copy-done infeed outfeed _CrossDeviceCopy device_to_host DtoH ao.offload ao.reload "
     "aten.pin_memory"},
    {TARN_CLASS_OPTIMIZER,
     "sgd adam optim.AdamW aten._fused_adam_ ResourceApplyAdam ApplyGradientDescent "
     "ResourceApplyMomentum FusedLamb apex.multi_tensor_apply multi_sgd_mom_update update"},
    {TARN_CLASS_PURE,
     "aten.mm aten.convolution aten.convolution_backward aten.native_dropout_backward aten.copy_ "
     "aten._to_copy aten.rrelu_with_noise_backward aten.grid_sampler_2d aten.pixel_shuffle "
     "aten.upsample_nearest2d aten.poisson_nll_loss aten.broadcast_to aten.scatter_reduce "
     "aten.gather aten.sampled_addmm aten._scaled_dot_product_flash_attention_backward "
     "prims.broadcast_in_dim broadcast_in_dim broadcast_add broadcast exponential "
     "exponential-minus-one "
     "stablehlo.exponential stablehlo.uniform_quantize gather scatter reduce reduce-window "
     "select-and-scatter opt-barrier optimization_barrier dot_general conv_general_dilated"},
    {TARN_CLASS_PURE,
     "random_bits threefry2x32 aten.lstm_cell Conv2D Conv2DBackpropInput FusedBatchNormV3 "
     "BiasAddGrad BroadcastTo "
     "StatelessRandomUniformV2 MatMul BatchMatMulV2 LayerNormGrad DropoutDoMask DropoutGrad Relu6 "
     "LayerNormalization GatherND ScatterElements ReduceSum Softmax Gemm BatchNormalization "
     "FullyConnected elemwise_add linear_backward_input gelu loss copy"},
    {TARN_CLASS_UNKNOWN, "operand brand_norm grandparent_add resender custom-call fusion "
                         "sandbox_mul mybarriers custom-call triton_poi_7 "
                         "abnormal_gelu xsum allreducer"},
};

static void words_of_kinds_say_their_class(void **state)
{
    (void)state;
    assert_true(tarn_kind_table_is_valid());
    for (size_t i = 0; i < sizeof said / sizeof *said; i++) {
        char kinds[2048], *rest = kinds;
        assert_true(strlen(said[i].kinds) < sizeof kinds);
        strcpy(kinds, said[i].kinds);
        for (char *kind; (kind = strsep(&rest, " ")) != NULL;) {
            enum tarn_op_class found = tarn_kind_class(kind);
            if (found != said[i].op_class)
                fail_msg("%s: %s, not %s", kind, tarn_op_class_text(found),
                         tarn_op_class_text(said[i].op_class));
        }
    }
}

/* The same kind however it is written. */
static void neither_case_nor_punctuation_counts(void **state)
{
    (void)state;
    static const char *const forms[] = {"all_reduce", "AllReduce",    "all-reduce", "allreduce",
                                        "ALL_REDUCE", "x.allReduce3", "All Reduce", "allReduce_"};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        assert_int_equal(tarn_kind_class(forms[i]), TARN_CLASS_COLLECTIVE);
    char longest[4096];
    memset(longest, 'x', sizeof longest);
    longest[sizeof longest - 1] = '\0';
    assert_int_equal(tarn_kind_class(longest), TARN_CLASS_UNKNOWN);
    for (size_t i = 1; i < sizeof longest - 1; i += 2) longest[i] = '_';
    assert_int_equal(tarn_kind_class(longest), TARN_CLASS_UNKNOWN);
    assert_int_equal(tarn_kind_class(""), TARN_CLASS_UNKNOWN);
}

static void the_class_that_a_graph_says_counts_more_than_the_kind(void **state)
{
    (void)state;
    static const bool repeats[] = {[TARN_CLASS_PURE] = true, [TARN_CLASS_OPTIMIZER] = false};
    for (int c = TARN_CLASS_PURE; c <= TARN_CLASS_OPTIMIZER; c++) {
        enum tarn_op_class op_class = (enum tarn_op_class)c;
        assert_int_equal(op_repeats("aten.mm", op_class, TARN_RECOMPUTABLE_BY_RULE), repeats[c]);
        assert_int_equal(op_repeats("aten.rand", op_class, TARN_RECOMPUTABLE_BY_RULE), repeats[c]);
        assert_true(op_repeats("aten.rand", op_class, TARN_RECOMPUTABLE));
        assert_false(op_repeats("aten.mm", op_class, TARN_NOT_RECOMPUTABLE));
    }
}

static void randomness_and_communication_are_not_repeated(void **state)
{
    (void)state;
    static const char *const once[] = {"aten.native_dropout",
                                       "aten.bernoulli",
                                       "aten.rand_like",
                                       "aten.randn",
                                       "aten.normal_",
                                       "aten.uniform_",
                                       "Dropout",
                                       "tarn.all_reduce",
                                       "tarn.h2d",
                                       "c10d.broadcast_"};
    static const char *const often[] = {
        "",          "aten.convolution", "aten.expand", "aten.arange", "aten.native_layer_norm",
        "aten.relu", "aten.mm",          "aten.sum"};
    for (size_t i = 0; i < sizeof once / sizeof *once; i++) {
        if (kind_repeats(once[i], TARN_RECOMPUTABLE_BY_RULE)) fail_msg("%s", once[i]);
    }
    for (size_t i = 0; i < sizeof often / sizeof *often; i++) {
        if (!kind_repeats(often[i], TARN_RECOMPUTABLE_BY_RULE)) fail_msg("%s", often[i]);
    }
}

static void what_an_op_says_counts_more_than_its_kind(void **state)
{
    (void)state;
    assert_true(kind_repeats("aten.native_dropout", TARN_RECOMPUTABLE));
    assert_false(kind_repeats("aten.mm", TARN_NOT_RECOMPUTABLE));
}

/* x; v = view(x) if `views`; x' = op(reads) written over x. */
static bool overwriter_repeats(bool reads_x, bool reads_view, enum tarn_tensor_kind kind)
{
    struct tarn_builder *builder = tarn_builder_create("in place");
    tarn_stream stream = tarn_builder_stream(builder, "compute");
    tarn_tensor x = add_tensor(builder, "x", kind);
    tarn_tensor seen = tarn_builder_alias(builder, x, "view"),
                after = tarn_builder_alias(builder, x, "x'");
    if (kind == TARN_INTERMEDIATE)
        tarn_builder_op(builder,
                        &(struct tarn_op_info){.stream = stream, .outputs = TARN_TENSORS(x)});
    tarn_op view = tarn_builder_op(builder, &(struct tarn_op_info){.stream = stream,
                                                                   .inputs = TARN_TENSORS(x),
                                                                   .outputs = TARN_TENSORS(seen),
                                                                   .view = true});
    const uint32_t inputs[] = {reads_view ? seen : x};
    tarn_op op =
        tarn_builder_op(builder, &(struct tarn_op_info){.stream = stream,
                                                        .inputs = {inputs, reads_x || reads_view},
                                                        .outputs = TARN_TENSORS(after),
                                                        .recomputable = TARN_RECOMPUTABLE});
    struct tarn_graph *graph = finish(builder);
    assert_false(tarn_op_repeats(graph, view, TARN_NONE));
    bool repeats = tarn_op_repeats(graph, op, TARN_NONE);
    tarn_graph_destroy(graph);
    return repeats;
}

static void what_overwrites_must_read_what_it_overwrites(void **state)
{
    (void)state;
    assert_true(overwriter_repeats(true, false, TARN_INTERMEDIATE));
    assert_true(overwriter_repeats(false, true, TARN_INTERMEDIATE));
    assert_false(overwriter_repeats(false, false, TARN_INTERMEDIATE));
}

static void what_persists_is_written_once(void **state)
{
    (void)state;
    assert_false(overwriter_repeats(true, false, TARN_PARAMETER));
    assert_false(overwriter_repeats(true, false, TARN_OPTIMIZER_STATE));
}

/* ---- Batch-norm ---- */

enum { X, WEIGHT, BIAS, MEAN, VARIANCE, Y, SAVED_MEAN, SAVED_INVSTD, NEW_MEAN, NEW_VARIANCE };

struct batch_norm {
    const char *kind;
    bool eval; /* leaves the running statistics alone */
    const struct tarn_implementation *implementations;
    size_t implementations_count;
    uint32_t chosen; /* implementation + 1, or 0 */
};

static struct tarn_graph *batch_norm(struct batch_norm of)
{
    static const char *const names[] = {"x", "weight", "bias", "mean", "variance"};
    struct tarn_builder *builder = tarn_builder_create("batch-norm");
    tarn_stream stream = tarn_builder_stream(builder, "compute");
    for (uint32_t t = X; t <= VARIANCE; t++)
        add_tensor(builder, names[t], t == X ? TARN_INPUT : TARN_PARAMETER);
    add_tensor(builder, "y", TARN_INTERMEDIATE);
    add_tensor(builder, "saved_mean", TARN_INTERMEDIATE);
    add_tensor(builder, "saved_invstd", TARN_INTERMEDIATE);
    const uint32_t outputs[] = {NEW_MEAN, Y, SAVED_MEAN, SAVED_INVSTD, NEW_VARIANCE};
    if (!of.eval) {
        tarn_builder_alias(builder, MEAN, "mean'");
        tarn_builder_alias(builder, VARIANCE, "variance'");
    }
    tarn_builder_op(builder, &(struct tarn_op_info){
                                 .kind = of.kind ? of.kind : "aten.native_batch_norm",
                                 .stream = stream,
                                 .inputs = TARN_TENSORS(X, WEIGHT, BIAS, MEAN, VARIANCE),
                                 .outputs = {outputs + (of.eval ? 1 : 0), of.eval ? 3 : 5},
                                 .cost = 70,
                                 .workspace = 16,
                                 .implementations = of.implementations,
                                 .implementations_count = of.implementations_count,
                             });
    if (of.chosen > 0) tarn_builder_origin(builder, 3, of.chosen - 1);
    return finish(builder);
}

static void assert_list(struct tarn_list list, const uint32_t *expected, size_t count)
{
    assert_int_equal(list.count, count);
    assert_memory_equal(list.ids, expected, count * sizeof *expected);
}

static void a_trained_batch_norm_can_run_from_what_it_saved(void **state)
{
    (void)state;
    struct tarn_graph *graph = batch_norm((struct batch_norm){0});
    struct tarn_op_info op;
    assert_true(tarn_graph_op(graph, 0, &op));
    assert_int_equal(op.implementations_count, 1);
    assert_string_equal(op.implementations[0].name, "from_saved");
    assert_int_equal(op.implementations[0].cost, 70);
    assert_int_equal(op.implementations[0].workspace, 0);
    assert_list(op.implementations[0].inputs,
                (const uint32_t[]){X, WEIGHT, BIAS, SAVED_MEAN, SAVED_INVSTD}, 5);
    assert_list(op.implementations[0].outputs, (const uint32_t[]){Y}, 1);
    assert_false(tarn_op_repeats(graph, 0, TARN_NONE));
    assert_true(tarn_op_repeats(graph, 0, 0));
    tarn_graph_destroy(graph);
}

static uint32_t implementations_of(struct batch_norm of)
{
    struct tarn_graph *graph = batch_norm(of);
    uint32_t count = tarn_extra(&graph->ops[0])->implementations_count;
    tarn_graph_destroy(graph);
    return count;
}

static void no_other_op_gets_that_implementation(void **state)
{
    (void)state;
    struct tarn_implementation fast = {.name = "fast", .cost = 1};
    struct tarn_implementation own = {.name = "from_saved", .cost = 1};
    assert_int_equal(implementations_of((struct batch_norm){.eval = true}), 0);
    assert_int_equal(implementations_of((struct batch_norm){.kind = "aten.native_layer_norm"}), 0);
    assert_int_equal(
        implementations_of((struct batch_norm){.kind = "aten.native_batch_norm_backward"}), 0);
    struct batch_norm of = {.implementations = &fast, .implementations_count = 1};
    assert_int_equal(implementations_of(of), 2); /* behind it */
    of.chosen = 1; /* in a transformed graph: what there was to choose is chosen */
    assert_int_equal(implementations_of(of), 1);
    of = (struct batch_norm){.implementations = &own, .implementations_count = 1};
    assert_int_equal(implementations_of(of), 1);
}

static void a_graph_is_the_same_with_and_without_it_in_the_file(void **state)
{
    (void)state;
    char path[] = "/tmp/tarn-repeat-test-XXXXXX";
    struct tarn_error error;
    struct tarn_graph *graph = batch_norm((struct batch_norm){0}), *again;
    int file = mkstemp(path);
    assert_true(file >= 0);
    close(file);
    if (tarn_graph_save(graph, path, &error)) fail_msg("%s", error.text);
    if (tarn_graph_load(path, NULL, &again, &error)) fail_msg("%s", error.text);
    unlink(path);
    assert_int_equal(tarn_extra(&again->ops[0])->implementations_count, 1);
    assert_true(tarn_hash_equal(graph->hash, again->hash));
    tarn_graph_destroy(graph);
    tarn_graph_destroy(again);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_of_kinds_say_their_class),
        cmocka_unit_test(neither_case_nor_punctuation_counts),
        cmocka_unit_test(the_class_that_a_graph_says_counts_more_than_the_kind),
        cmocka_unit_test(randomness_and_communication_are_not_repeated),
        cmocka_unit_test(what_an_op_says_counts_more_than_its_kind),
        cmocka_unit_test(what_overwrites_must_read_what_it_overwrites),
        cmocka_unit_test(what_persists_is_written_once),
        cmocka_unit_test(a_trained_batch_norm_can_run_from_what_it_saved),
        cmocka_unit_test(no_other_op_gets_that_implementation),
        cmocka_unit_test(a_graph_is_the_same_with_and_without_it_in_the_file),
    };
    return cmocka_run_group_tests_name("repeat", tests, NULL, NULL);
}
