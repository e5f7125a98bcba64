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
using row = std::array<word, 64>;
using rows = std::array<row, 8>;
constexpr std::size_t plans_count = 3, evaluation = 2; // evaluation leaves the weights alone
constexpr std::array<std::size_t, plans_count> batches{2, 5, 8};
constexpr std::uint64_t steps = 300, slots = 4; // slots: steps whose buffers are in use

// ---- What is computed, for each row of a batch ----

void load(const row *x, row *h, std::size_t batch)
{
    for (std::size_t b = 0; b < batch; b++)
        for (std::size_t i = 0; i < h[b].size(); i++) h[b][i] = 3 * x[b][i] + 1;
}
void forward(const row *h, const row &w, word *y, std::size_t batch)
{
    for (std::size_t b = 0; b < batch; b++) y[b] = 0;
    for (std::size_t b = 0; b < batch; b++)
        for (std::size_t i = 0; i < w.size(); i++) y[b] += h[b][i] * w[i];
}
void update(const row *h, row &w, std::size_t batch)
{
    for (std::size_t b = 0; b < batch; b++)
        for (std::size_t i = 0; i < w.size(); i++) w[i] += h[b][i];
}
void fill(rows &x, std::uint64_t step)
{
    for (row &r : x)
        for (word &value : r) value = word(&value - x[0].data()) * 2654435761u + word(step);
}

// ---- The framework's own: events, threads, memory ----

struct event { // so many steps have been
    event() { tarn_host_event_create(&handle, nullptr); }
    ~event() { tarn_host_event_destroy(handle); }
    void wait(std::uint64_t n) const { tarn_host_event_wait(handle, n, TARN_FOREVER, nullptr); }
    void raise(std::uint64_t n) const { tarn_host_event_raise(handle, n); }
    tarn_host_event *handle = nullptr;
};

// A thread for every task; a framework gives it to its pool.
int execute(void *, void (*task)(void *), void *argument)
{
    std::thread(task, argument).detach();
    return 0;
}
int create_memory(void *, std::uint64_t size, void **memory)
{
    *memory = std::aligned_alloc(4096, (size + 4095) / 4096 * 4096);
    return *memory ? 0 : 12; // ENOMEM
}
void destroy_memory(void *, void *memory, std::uint64_t) { std::free(memory); }

// ---- Tarn's part ----

tarn::graph build(std::size_t batch, bool trains)
{
    tarn::builder b("step");
    const tarn_stream copy = b.stream("copy"), compute = b.stream("compute");
    const tarn_tensor x = b.tensor("x", batch * sizeof(row), TARN_INPUT);
    const tarn_tensor w = b.tensor("w", sizeof(row), TARN_PARAMETER);
    const tarn_tensor h = b.tensor("h", batch * sizeof(row), TARN_INTERMEDIATE);
    const tarn_tensor y = b.tensor("y", batch * sizeof(word), TARN_OUTPUT);
    b.op("load", copy, tarn::list({x}), tarn::list({h}));
    b.op("forward", compute, tarn::list({h, w}), tarn::list({y}));
    if (trains) b.op("update", compute, tarn::list({h, w}), tarn::list({b.alias(w, "next w")}));
    return b.finish();
}

int kernel(void *, const tarn_call *call)
{
    const auto *in = static_cast<const row *>(call->inputs[0]);
    void *out = call->outputs[0];
    const std::size_t batch = call->input_sizes[0] / sizeof(row);
    if (call->op == 0) load(in, static_cast<row *>(out), batch);
    if (call->op == 1)
        forward(in, *static_cast<row *>(call->inputs[1]), static_cast<word *>(out), batch);
    if (call->op == 2) update(in, *static_cast<row *>(out), batch);
    return 0;
}

struct model {
    std::array<tarn::graph, plans_count> graphs;
    std::array<tarn::plan, plans_count> plans;
    tarn_memory_source memory{create_memory, destroy_memory, nullptr, 4096};
    tarn_host_options host = tarn::options<tarn_host_options>();
    std::unique_ptr<tarn_arena, tarn_status (*)(tarn_arena *)> arena{nullptr, tarn_arena_destroy};
    std::array<tarn::session, plans_count> sessions; // go before their arena

    model()
    {
        tarn_error error{};
        std::array<tarn_graph *, plans_count> sources{};
        std::array<tarn_plan *, plans_count> made{};
        for (std::size_t k = 0; k < plans_count; k++)
            sources[k] = (graphs[k] = build(batches[k], k != evaluation)).get();
        tarn::check(tarn_family_plan(sources.data(), plans_count, nullptr, made.data(), &error),
                    error);
        for (std::size_t k = 0; k < plans_count; k++) plans[k] = tarn::plan(made[k]);
        host.execute = execute;
        host.memory = &memory;
        tarn_arena *created = nullptr;
        tarn::check(tarn_arena_create(made.data(), plans_count, tarn_device_host(&host), nullptr,
                                      &created, &error),
                    error);
        arena.reset(created);
        auto options = tarn::options<tarn_session_options>();
        options.arena = created;
        for (std::size_t k = 0; k < plans_count; k++) {
            sessions[k] = tarn::session(plans[k], tarn_device_host(&host), &options);
            tarn_session_bind_default(sessions[k].get(), kernel, nullptr);
        }
    }
};

struct slot {
    rows x;
    std::array<word, 8> y;
};

// One step, between two events; its buffers are its own. Returns at once.
void submit(model &m, std::uint64_t step, slot &s, const event &loaded, const event &ran)
{
    tarn_error error{};
    const std::size_t k = step % plans_count;
    tarn_session *session = m.sessions[k].get();
    const tarn_event wait{loaded.handle, step + 1}, signal{ran.handle, step + 1};
    auto around = tarn::options<tarn_submit_options>();
    around.waits = &wait;
    around.signals = &signal;
    around.waits_count = around.signals_count = 1;
    const tarn_tensor x = m.graphs[k].find_tensor("x"), y = m.graphs[k].find_tensor("y");
    tarn::check(tarn_session_bind_memory(session, x, s.x.data(), &error), error);
    tarn::check(tarn_session_bind_memory(session, y, s.y.data(), &error), error);
    tarn::check(tarn_session_submit_with(session, 1, &around, nullptr, &error), error);
}

int run()
{
    model m;
    row weights{1, 2, 3};
    m.sessions[0].write(m.graphs[0].find_tensor("w"), weights);

    event loaded, ran, checked;
    std::array<slot, slots> ring{};
    bool is_right = true;
    std::thread loader([&] {
        for (std::uint64_t step = 0; step < steps; step++) {
            if (step >= slots) checked.wait(step + 1 - slots);
            fill(ring[step % slots].x, step);
            loaded.raise(step + 1);
        }
    });
    std::thread checker([&] {
        for (std::uint64_t step = 0; step < steps; step++) {
            const std::size_t batch = batches[step % plans_count];
            slot expected{};
            rows h{};
            fill(expected.x, step);
            load(expected.x.data(), h.data(), batch);
            forward(h.data(), weights, expected.y.data(), batch);
            if (step % plans_count != evaluation) update(h.data(), weights, batch);
            ran.wait(step + 1);
            is_right = is_right && ring[step % slots].y == expected.y;
            ring[step % slots].y = {};
            checked.raise(step + 1);
        }
    });
    for (std::uint64_t step = 0; step < steps; step++)
        submit(m, step, ring[step % slots], loaded, ran);
    loader.join();
    checker.join();

    tarn_error error{};
    for (tarn::session &session : m.sessions)
        tarn::check(tarn_session_wait(session.get(), steps / plans_count, TARN_FOREVER, &error),
                    error);
    row found{};
    m.sessions[evaluation].read(m.graphs[evaluation].find_tensor("w"), found);
    is_right = is_right && found == weights;
    std::printf("%d steps of 3 plans over one arena: %s\n", int(steps),
                is_right ? "every byte is right" : "WRONG");
    return is_right ? 0 : 1;
}

} // namespace

int main()
try {
    return run();
} catch (const tarn::exception &error) {
    std::fprintf(stderr, "framework: %s: %s\n", tarn_status_text(error.status()), error.what());
    return error.status();
}
