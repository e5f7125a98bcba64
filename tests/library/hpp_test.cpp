// tarn.hpp: owners move and destroy, errors are thrown or returned, lists and options. Built with
// exceptions and, as hpp_plain, without. TAP on stdout.
#include <array>
#include <cstdio>
#include <cstring>
#include <tarn.hpp>
#include <vector>

namespace
{

int number = 0;
bool all_hold = true;

void expect(bool holds, const char *rule)
{
    std::printf("%sok %d - %s\n", holds ? "" : "not ", ++number, rule);
    all_hold = all_hold && holds;
}

tarn::builder two_ops()
{
    tarn::builder b("two ops");
    const tarn_stream first = b.stream("a"), second = b.stream("b");
    const tarn_tensor x = b.tensor("x", 64, TARN_INPUT), y = b.tensor("y", 64);
    const std::vector<tarn_tensor> last = {b.tensor("z", 64, TARN_OUTPUT)};
    b.op("f", first, tarn::list({x}), tarn::list({y}), 1000, 32);
    b.op("g", second, tarn::list({y}), tarn::list(last));
    return b;
}

void owners_move_and_say_what_they_own()
{
    tarn_error error{};
    tarn::graph graph = two_ops().finish(error);
    expect(graph && graph.ops() == 2 && graph.find_op("g") == 1, "a_builder_makes_a_graph");
    tarn::graph moved = std::move(graph);
    expect(!graph && moved, "an_owner_that_was_moved_from_is_empty");
    auto options = tarn::options<tarn_plan_options>();
    options.alignment = 64;
    const tarn::plan plan = tarn::plan::create(moved, &options, error);
    moved = tarn::graph();
    expect(plan && plan.summary().alignment == 64 && plan.footprint() == plan.bound(),
           "options_have_their_size_and_a_plan_outlives_its_graph");
    expect(plan.launches(1).size() == 1 && plan.launches(1)[0] == 1 && plan.launches(7).empty(),
           "lists_are_spans");
    std::size_t waits = 0;
    for (const tarn_wait &wait : plan.waits()) waits += wait.op == 1 && wait.on == 0;
    expect(waits == 1, "waits_are_told");
    tarn::session session = tarn::session::create(plan, tarn_device_host(nullptr), nullptr, error);
    int calls = 0;
    const auto count_calls = [&calls](const tarn_call &call) {
        calls += call.inputs_count == 1;
        return 0;
    };
    expect(session.bind_default(count_calls) == TARN_OK &&
               session.bind(0, count_calls, error) == TARN_OK,
           "kernels_are_bound");
    expect(session.bind(7, count_calls, error) == TARN_USAGE &&
               std::strstr(error.text, "op 7 of the source graph") != nullptr,
           "a_kernel_that_cannot_be_bound_is_told");
    tarn::session other = std::move(session);
    tarn_ticket ticket = 0;
    expect(tarn_session_submit(other.get(), 3, &ticket, &error) == TARN_OK &&
               tarn_session_wait(other.get(), ticket, TARN_FOREVER, &error) == TARN_OK &&
               calls == 6,
           "kernels_live_as_long_as_a_session_that_was_moved");
}

void errors_are_returned_where_asked_for()
{
    tarn_error error{};
    const tarn::graph none = tarn::graph::load("/no/such/file", error);
    expect(!none && error.status == TARN_SYSTEM, "a_failed_load_leaves_an_empty_owner");
    tarn::builder b = two_ops();
    b.op("h", 9, {}, {});
    expect(!b.finish(error) && error.op == 2, "a_broken_rule_is_told_by_finish");
}

#if TARN_HPP_THROWS
void errors_are_thrown_otherwise()
{
    bool thrown = false;
    try {
        tarn::graph::load("/no/such/file");
    } catch (const tarn::exception &error) {
        thrown = error.status() == TARN_SYSTEM && std::strstr(error.what(), "/no/such/file");
    }
    expect(thrown, "an_exception_has_status_and_text");
    const tarn::graph graph = two_ops().finish();
    auto options = tarn::options<tarn_plan_options>();
    options.capacity = 1;
    thrown = false;
    try {
        tarn::plan::create(graph, options);
    } catch (const tarn::exception &error) {
        thrown = error.status() == TARN_DOES_NOT_FIT;
    }
    expect(thrown, "what_does_not_fit_is_thrown");
}
#endif

} // namespace

void plans_share_an_arena_and_steps_wait_for_each_other()
{
    tarn_error error{};
    std::vector<tarn::graph> graphs;
    for (int i = 0; i < 2; i++) graphs.push_back(two_ops().finish(error));
    const std::vector<tarn::plan> plans = tarn::family(graphs, nullptr, error);
    expect(plans.size() == 2, "a_family_is_a_list_of_plans");
    expect(tarn::family(std::vector<tarn::graph>(1), nullptr, error).empty() &&
               error.status == TARN_USAGE,
           "a_family_that_cannot_be_is_empty");
    tarn::arena arena = tarn::arena::create(plans, tarn_device_host(nullptr), nullptr, error);
    const tarn::arena shared = std::move(arena);
    expect(!arena && shared && shared.memory(), "an_arena_has_an_owner");
    auto options = tarn::options<tarn_session_options>();
    options.arena = shared.get();
    tarn::host_event ready, done;
    int calls = 0;
    std::vector<tarn::session> sessions;
    alignas(16) std::array<char, 64> output{};
    bool bound = true;
    for (const tarn::plan &plan : plans) {
        sessions.push_back(tarn::session::create(plan, tarn_device_host(nullptr), &options, error));
        bound = bound && sessions.back().bind_default([&calls](const tarn_call &call) {
            if (call.origin == 1) *static_cast<char *>(call.outputs[0]) = char(++calls);
            return 0;
        }) == TARN_OK;
    }
    expect(bound, "every_session_has_kernels");
    expect(sessions[1].bind_memory(2, output.data(), error) == TARN_OK,
           "an_output_is_bound_to_memory_of_the_callers");
    expect(sessions[0].submit(1, {ready.at(1)}, {done.at(1)}, error) == TARN_OK &&
               sessions[1].submit(1, {}, {done.at(2)}, error) == TARN_OK,
           "submits_have_events");
    expect(!done.wait(1, 0) && calls == 0, "a_submit_waits_for_its_events");
    ready.raise(1);
    expect(done.wait(2) && done.value() == 2 && calls == 2 && output[0] == 2,
           "and_raises_those_that_it_signals");
}

struct bucket {
    int batch;
    tarn::graph graph;
};

// Everything that a builder of a graph with memory spaces and groups needs, and what reads it back.
void all_of_a_graph_can_be_said_and_read()
{
    tarn_error error{};
    tarn::builder b("spaces");
    const tarn_stream s = b.stream("s");
    b.space("device", TARN_SPACE_DEVICE);
    const tarn_space pinned = b.space("host", TARN_SPACE_PINNED, 1 << 20);
    tarn_tensor_info info{};
    info.name = "far";
    info.size = 100;
    info.space = pinned;
    const tarn_tensor far = b.tensor(info), x = b.tensor("x", 64), y = b.tensor("y", 64);
    const tarn_tensor p = b.tensor("p", 32), q = b.tensor("q", 32);
    b.op("make", s, {}, tarn::list({far, x, y, p, q}));
    tarn_op_info read{};
    const std::uint32_t all[] = {far, x, y, p, q};
    read.name = "read", read.kind = "all_reduce", read.stream = s;
    read.inputs = {all, 5};
    b.op(read);
    b.group(tarn::list({x, y}));
    b.group_padded(tarn::list({p, q}));
    b.group_symmetric(0, "pair");
    const tarn::graph graph = b.finish(error);
    expect(graph && graph.groups() == 2 && graph.group(1).size() == 2 &&
               tarn_graph_group_is_padded(graph.get(), 1),
           "a_graph_has_spaces_and_groups");
    const tarn::plan plan = tarn::plan::create(graph, nullptr, error);
    expect(plan.verify(graph, error) == TARN_OK, "a_plan_is_verified");
    const char *name = graph.group_symmetric(0);
    expect(name && !std::strcmp(name, "pair") && !graph.group_symmetric(1) &&
               plan.window().size >= 128 && plan.window().space == 0,
           "a_symmetric_group_lies_in_the_window");
    tarn::session session = tarn::session::create(plan, tarn_device_host(nullptr), nullptr, error);
    tarn::span<unsigned char> bytes;
    expect(session.group(0, bytes, error) == TARN_OK && bytes.size() == 128 &&
               bytes.data() == session.address(x),
           "a_group_is_one_buffer");
    expect(session.group(9, bytes, error) == TARN_USAGE && bytes.empty(),
           "a_group_that_is_none_is_told");
    tarn_check_report report{};
    expect(session.check(nullptr, report, error) == TARN_OK && report.ops_run == 2,
           "a_session_is_checked");
    const char text[] = "{\"format\": \"tarn.graph\", \"version\": 1}";
    const tarn::graph none = tarn::graph::read(tarn::reader(text, sizeof text - 1), nullptr, error);
    expect(!none && error.status == TARN_BAD_INPUT, "a_graph_is_read_from_memory");
    std::vector<bucket> buckets;
    for (int i = 0; i < 2; i++) buckets.push_back({i, two_ops().finish(error)});
    expect(tarn::family_of(buckets, &bucket::graph, nullptr, error).size() == 2,
           "a_family_is_planned_of_parts_of_structs");
    std::vector<tarn::graph> stages;
    for (int i = 0; i < 2; i++) stages.push_back(two_ops().finish(error));
    const std::vector<tarn::plan> of_ranks = tarn::ranks(stages, nullptr, error);
    expect(of_ranks.size() == 2 && tarn::family_verify(of_ranks, error) == TARN_OK,
           "ranks_are_planned_together");
}

void a_writer_comes_after_readers()
{
    tarn_error error{};
    tarn::builder b("step");
    const tarn_stream first = b.stream("a"), second = b.stream("b");
    const tarn_tensor w = b.tensor("w", 64, TARN_PARAMETER), y = b.tensor("y", 64);
    const tarn_tensor next = b.alias(w, "next");
    b.op("read", first, tarn::list({w}), tarn::list({y}));
    b.after_readers(b.op("update", second, tarn::list({w}), tarn::list({next})));
    const tarn::graph graph = b.finish(error);
    expect(bool(graph), "a_writer_can_come_after_all_readers");
}

#if TARN_HPP_THROWS
void sessions_on_an_arena_take_other_options()
{
    std::vector<tarn::graph> graphs;
    graphs.push_back(two_ops().finish());
    const std::vector<tarn::plan> plans = tarn::family(graphs);
    plans[0].verify(graphs[0]);
    const tarn::arena arena(plans);
    auto options = tarn::options<tarn_session_options>();
    options.flight = 10;
    tarn::session session(plans[0], tarn_device_host(nullptr), arena, options);
    session.bind_default([](const tarn_call &) { return 0; });
    session.run();
    int lines = 0;
    tarn_session_dump(
        session.get(), [](void *user, const char *) { ++*static_cast<int *>(user); }, &lines);
    expect(lines > 2, "a_session_on_an_arena_has_a_flight_recorder");
    bool thrown = false;
    try {
        session.bind(99, [](const tarn_call &) { return 0; });
    } catch (const tarn::exception &error) {
        thrown = error.status() == TARN_USAGE;
    }
    expect(thrown, "a_binding_that_fails_throws");
}
#endif

int main()
{
    all_of_a_graph_can_be_said_and_read();
    a_writer_comes_after_readers();
    plans_share_an_arena_and_steps_wait_for_each_other();
    owners_move_and_say_what_they_own();
    errors_are_returned_where_asked_for();
#if TARN_HPP_THROWS
    errors_are_thrown_otherwise();
    sessions_on_an_arena_take_other_options();
#endif
    std::printf("1..%d\n", number);
    return all_hold ? 0 : 1;
}
