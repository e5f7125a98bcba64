// The C++17 twin of embed.c, with tarn.hpp: owners, lambdas as kernels, exceptions.
#include <array>
#include <cstdio>
#include <tarn.hpp>

namespace
{

constexpr std::size_t count = 1024; // floats in each tensor
constexpr std::size_t bytes = count * sizeof(float);

int embed()
{
    tarn::builder b("embed");
    const tarn_stream compute = b.stream("compute"), comm = b.stream("comm");
    const tarn_tensor w = b.tensor("w", bytes, TARN_PARAMETER);
    const tarn_tensor g = b.tensor("g", bytes, TARN_OUTPUT);
    const tarn_tensor r = b.alias(g, "g.reduced");
    const tarn_op backward = b.op("bwd", compute, tarn::list({w}), tarn::list({g}));
    const tarn_op all_reduce = b.op("reduce", comm, tarn::list({g}), tarn::list({r}));
    const tarn::graph graph = b.finish();
    const tarn::plan plan = tarn::plan::create(graph);
    tarn::session session(plan);

    const float ranks = 8;
    session.bind(backward, [](const tarn_call &call) {
        const auto *weights = static_cast<const float *>(call.inputs[0]);
        auto *gradient = static_cast<float *>(call.outputs[0]);
        for (std::size_t i = 0; i < count; i++) gradient[i] = 2 * weights[i];
        return 0;
    });
    session.bind(all_reduce, [ranks](const tarn_call &call) {
        auto *gradient = static_cast<float *>(call.outputs[0]);
        for (std::size_t i = 0; i < count; i++) gradient[i] *= ranks;
        return 0;
    });

    std::array<float, count> gradient{};
    session.write(w, std::array<float, count>{1, 2, 3});
    session.run(1000);
    session.read(r, gradient);
    std::printf("gradient: %g %g %g\n", double(gradient[0]), double(gradient[1]),
                double(gradient[2]));
    return gradient[2] == 48 ? 0 : 1;
}

} // namespace

int main()
try {
    return embed();
} catch (const tarn::exception &error) {
    std::fprintf(stderr, "embed: %s: %s\n", tarn_status_text(error.status()), error.what());
    return error.status();
}
