/* An embedder's whole program: build a graph of two streams, plan it, run own kernels on it. */
#include <stdio.h>
#include <tarn.h>

#define COUNT 1024 /* floats in each tensor */

/* Stands in for both ops; the all-reduce's input and output are the same bytes. */
static int scale(void *factor, const struct tarn_call *call)
{
    const float *input = call->inputs[0];
    float *output = call->outputs[0];
    for (int i = 0; i < COUNT; i++) output[i] = input[i] * *(const float *)factor;
    return 0;
}

int main(void)
{
    static float weights[COUNT] = {1, 2, 3}, gradient[COUNT];
    float two = 2, ranks = 8;
    struct tarn_builder *b = tarn_builder_create("embed");
    tarn_stream compute = tarn_builder_stream(b, "compute"), comm = tarn_builder_stream(b, "comm");
    struct tarn_tensor_info weight = {.name = "w", .size = sizeof weights, .kind = TARN_PARAMETER};
    struct tarn_tensor_info output = {.name = "g", .size = sizeof gradient, .kind = TARN_OUTPUT};
    tarn_tensor w = tarn_builder_tensor(b, &weight), g = tarn_builder_tensor(b, &output);
    tarn_tensor r = tarn_builder_alias(b, g, "g.reduced");
    struct tarn_op_info bwd_info = {
        .name = "bwd", .stream = compute, .inputs = TARN_TENSORS(w), .outputs = TARN_TENSORS(g)};
    struct tarn_op_info red_info = {
        .name = "reduce", .stream = comm, .inputs = TARN_TENSORS(g), .outputs = TARN_TENSORS(r)};
    tarn_op bwd = tarn_builder_op(b, &bwd_info), red = tarn_builder_op(b, &red_info);

    struct tarn_error error = {0};
    struct tarn_graph *graph = NULL;
    struct tarn_plan *plan = NULL;
    struct tarn_session *session = NULL;
    tarn_ticket ticket;
    enum tarn_status status = tarn_builder_finish(b, &graph, &error);
    if (!status) status = tarn_plan_create(graph, NULL, &plan, &error);
    if (!status) status = tarn_session_create(plan, tarn_device_host(NULL), NULL, &session, &error);
    if (!status) status = tarn_session_bind(session, bwd, scale, &two, NULL);
    if (!status) status = tarn_session_bind(session, red, scale, &ranks, NULL);
    if (!status) status = tarn_session_write(session, w, weights, sizeof weights, &error);
    if (!status) status = tarn_session_submit(session, 1000, &ticket, &error);
    if (!status) status = tarn_session_wait(session, ticket, TARN_FOREVER, &error);
    if (!status) status = tarn_session_read(session, r, gradient, sizeof gradient, &error);
    if (status)
        fprintf(stderr, "embed: %s: %s\n", tarn_status_text(status), error.text);
    else
        printf("gradient: %g %g %g\n", gradient[0], gradient[1], gradient[2]);
    tarn_session_destroy(session); /* waits, as no time was set: then `two` and `ranks` may go */
    tarn_plan_destroy(plan);
    tarn_graph_destroy(graph);
    return status || gradient[2] != 48;
}
