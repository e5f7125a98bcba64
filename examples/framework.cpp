// How a framework puts Tarn between its own steps. A training step in two batch sizes and an
// evaluation are three plans over one arena. The framework's loader fills an input, Tarn's
// iteration runs on the framework's threads, its checker looks at the output: three stages at work
// on different steps, and nobody waits on the host but the checker, who compares every byte with
// the same computation in plain memory.
#include <array>
#include <cstdio>
#include <cstdlib>
#include <tarn.hpp>
#include <thread>

namespace
{

using word = std::uint32_t;
constexpr std::size_t width = 64, batch_max = 8, plans_count = 3;
constexpr std::size_t evaluation = 2; // leaves the weights alone
constexpr std::array<std::size_t, plans_count> batches{2, 5, 8};
constexpr std::uint64_t steps = 300, slots = 4; // slots: steps whose buffers are in use
using row = std::array<word, width>;
struct slot {
    alignas(16) std::array<word, batch_max * width> x; // what tarn_session_bind_memory asks for
    alignas(16) std::array<word, batch_max> y;
};

// ---- What is computed: x is loaded into h; y is h by w, row by row; w is raised by all of h ----

void load(const word *x, word *h, std::size_t batch)
{
    for (std::size_t i = 0; i < batch * width; i++) h[i] = 3 * x[i] + 1;
}
// The workspace, products of one row, is done with before y begins.
void forward(const word *h, const word *w, word *y, std::size_t batch, word *products)
{
    std::array<word, batch_max> sums{};
    for (std::size_t b = 0; b < batch; b++) {
        for (std::size_t i = 0; i < width; i++) products[i] = h[b * width + i] * w[i];
        for (std::size_t i = 0; i < width; i++) sums[b] += products[i];
    }
    for (std::size_t b = 0; b < batch; b++) y[b] = sums[b];
}
void update(const word *h, word *w, std::size_t batch)
{
    for (std::size_t i = 0; i < batch * width; i++) w[i % width] += h[i];
}
void fill(slot &slot, std::uint64_t step)
{
    for (std::size_t i = 0; i < slot.x.size(); i++) slot.x[i] = word(i * 2654435761u + step);
}

// ---- Tarn's part ----

tarn::graph build(std::size_t batch, bool trains)
{
    tarn::builder b("step");
    const tarn_stream copy = b.stream("copy"), compute = b.stream("compute");
    const tarn_tensor x = b.tensor("x", batch * sizeof(row), TARN_INPUT);
    const tarn_tensor w = b.tensor("w", sizeof(row), TARN_PARAMETER);
    const tarn_tensor h = b.tensor("h", batch * sizeof(row));
    const tarn_tensor y = b.tensor("y", batch * sizeof(word), TARN_OUTPUT);
    b.op("load", copy, tarn::list({x}), tarn::list({h}));
    b.op("forward", compute, tarn::list({h, w}), tarn::list({y}), 0, sizeof(row), true);
    if (trains) b.op("update", compute, tarn::list({h, w}), tarn::list({b.alias(w, "next w")}));
    return b.finish();
}

int kernel(const tarn_call &call)
{
    const auto in = [&](std::size_t i) { return static_cast<const word *>(call.inputs[i]); };
    const auto out = static_cast<word *>(call.outputs[0]);
    const std::size_t batch = call.input_sizes[0] / sizeof(row);
    if (call.op == 0) load(in(0), out, batch);
    if (call.op == 1) forward(in(0), in(1), out, batch, static_cast<word *>(call.workspace));
    if (call.op == 2) update(in(0), out, batch);
    return 0;
}

// The framework's threads, of which it has a pool, and its memory.
int execute(void *, void (*task)(void *), void *argument)
{
    return std::thread(task, argument).detach(), 0;
}
int create_memory(void *, std::uint64_t size, void **memory)
{
    *memory = std::aligned_alloc(4096, (size + 4095) / 4096 * 4096);
    return *memory ? 0 : 12; // ENOMEM
}
void destroy_memory(void *, void *memory, std::uint64_t) { std::free(memory); }

} // namespace

int main()
try {
    const tarn_memory_source memory{sizeof memory, create_memory, destroy_memory, nullptr, 4096};
    auto host = tarn::options<tarn_host_options>();
    host.memory = &memory;
    host.execute = execute;
    const std::array graphs{build(batches[0], true), build(batches[1], true),
                            build(batches[evaluation], false)};
    const std::vector<tarn::plan> plans = tarn::family(graphs);
    const tarn::arena arena(plans, tarn_device_host(&host));
    std::vector<tarn::session> sessions;
    for (const tarn::plan &plan : plans)
        sessions.emplace_back(plan, tarn_device_host(&host), arena).bind_default(kernel);
    row weights{1, 2, 3}, found{}, products{};
    sessions[0].write(graphs[0].find_tensor("w"), weights);

    tarn::host_event loaded, ran, checked; // so many steps have been
    std::array<slot, slots> ring{};
    bool is_right = true;
    std::thread loader([&] {
        for (std::uint64_t step = 0; step < steps; step++) {
            if (step >= slots) checked.wait(step + 1 - slots);
            fill(ring[step % slots], step);
            loaded.raise(step + 1);
        }
    });
    std::thread checker([&] {
        for (std::uint64_t step = 0; step < steps; step++) {
            const std::size_t batch = batches[step % plans_count];
            slot expected{}, h{};
            fill(expected, step);
            load(expected.x.data(), h.x.data(), batch);
            forward(h.x.data(), weights.data(), expected.y.data(), batch, products.data());
            if (step % plans_count != evaluation) update(h.x.data(), weights.data(), batch);
            ran.wait(step + 1);
            is_right = is_right && ring[step % slots].y == expected.y;
            ring[step % slots].y = {};
            checked.raise(step + 1);
        }
    });
    for (std::uint64_t step = 0; step < steps; step++) { // nothing here waits
        const std::size_t k = step % plans_count;
        sessions[k].bind_memory(graphs[k].find_tensor("x"), ring[step % slots].x.data());
        sessions[k].bind_memory(graphs[k].find_tensor("y"), ring[step % slots].y.data());
        sessions[k].submit(1, {loaded.at(step + 1)}, {ran.at(step + 1)});
    }
    loader.join();
    checker.join();
    for (tarn::session &session : sessions) session.wait(steps / plans_count);
    sessions[evaluation].read(graphs[evaluation].find_tensor("w"), found);
    is_right = is_right && found == weights;
    std::printf("%d steps of 3 plans over one arena: %s\n", int(steps),
                is_right ? "every byte is right" : "WRONG");
    return is_right ? 0 : 1;
} catch (const tarn::exception &error) {
    std::fprintf(stderr, "framework: %s: %s\n", tarn_status_text(error.status()), error.what());
    return error.status();
}
