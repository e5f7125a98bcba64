// The C++17 twin of embed.c: lists are pointer + count, handles are owned by unique_ptr.
#include <array>
#include <cstdio>
#include <memory>
#include <tarn.h>
#include <vector>

namespace
{

constexpr std::size_t count = 1024; // floats in each tensor

int backward(void *, const tarn_call *call)
{
    const auto *weights = static_cast<const float *>(call->inputs[0]);
    auto *gradient = static_cast<float *>(call->outputs[0]);
    for (std::size_t i = 0; i < count; i++) gradient[i] = 2 * weights[i];
    return 0;
}

int all_reduce(void *ranks, const tarn_call *call)
{
    auto *gradient = static_cast<float *>(call->outputs[0]);
    for (std::size_t i = 0; i < count; i++) gradient[i] *= *static_cast<float *>(ranks);
    return 0;
}

template <auto destroy> struct destroyer {
    template <class T> void operator()(T *object) const { destroy(object); }
};
using graph_owner = std::unique_ptr<tarn_graph, destroyer<tarn_graph_destroy>>;
using plan_owner = std::unique_ptr<tarn_plan, destroyer<tarn_plan_destroy>>;
// Without a deadline or patience, destroying waits until kernels are done with what they use.
using session_owner = std::unique_ptr<tarn_session, destroyer<tarn_session_destroy>>;

tarn_tensor add_tensor(tarn_builder *b, const char *name, tarn_tensor_kind kind)
{
    tarn_tensor_info info{};
    info.name = name;
    info.size = count * sizeof(float);
    info.kind = kind;
    return tarn_builder_tensor(b, &info);
}

tarn_op add_op(tarn_builder *b, const char *name, tarn_stream stream,
               const std::vector<tarn_tensor> &inputs, const std::vector<tarn_tensor> &outputs)
{
    tarn_op_info info{};
    info.name = name;
    info.stream = stream;
    info.inputs = {inputs.data(), inputs.size()};
    info.outputs = {outputs.data(), outputs.size()};
    return tarn_builder_op(b, &info);
}

int fail(const tarn_error &error)
{
    std::fprintf(stderr, "embed: %s: %s\n", tarn_status_text(error.status), error.text);
    return error.status;
}

} // namespace

int main()
{
    tarn_builder *b = tarn_builder_create("embed");
    const tarn_stream compute = tarn_builder_stream(b, "compute");
    const tarn_stream comm = tarn_builder_stream(b, "comm");
    const tarn_tensor w = add_tensor(b, "w", TARN_PARAMETER);
    const tarn_tensor g = add_tensor(b, "g", TARN_OUTPUT);
    const tarn_tensor r = tarn_builder_alias(b, g, "g.reduced");
    const tarn_op bwd = add_op(b, "bwd", compute, {w}, {g});
    const tarn_op red = add_op(b, "reduce", comm, {g}, {r});

    tarn_error error{};
    tarn_graph *graph = nullptr;
    if (tarn_builder_finish(b, &graph, &error)) return fail(error);
    const graph_owner own_graph(graph);
    tarn_plan *plan = nullptr;
    if (tarn_plan_create(graph, nullptr, &plan, &error)) return fail(error);
    const plan_owner own_plan(plan);
    tarn_session *session = nullptr;
    if (tarn_session_create(plan, tarn_device_host(nullptr), nullptr, &session, &error))
        return fail(error);
    const session_owner own_session(session);

    std::array<float, count> weights{1, 2, 3}, gradient{};
    float ranks = 8;
    tarn_ticket ticket = 0;
    tarn_session_bind(session, bwd, backward, nullptr);
    tarn_session_bind(session, red, all_reduce, &ranks);
    if (tarn_session_write(session, w, weights.data(), sizeof weights, &error) ||
        tarn_session_submit(session, 1000, &ticket, &error) ||
        tarn_session_wait(session, ticket, TARN_FOREVER, &error) ||
        tarn_session_read(session, r, gradient.data(), sizeof gradient, &error))
        return fail(error);
    std::printf("gradient: %g %g %g\n", double(gradient[0]), double(gradient[1]),
                double(gradient[2]));
    return gradient[2] == 48 ? 0 : 1;
}
