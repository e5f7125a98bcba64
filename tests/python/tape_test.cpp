// tape.h of tarn.torch: where requests are served from, and when they are refused. TAP on stdout.
#include "python/tarn/torch/tape.h"

#include <cstdio>
#include <initializer_list>

namespace {

using tarn::Action;

int number = 0;
bool all_hold = true;

void expect(bool holds, const char *rule)
{
    std::printf("%sok %d - %s\n", holds ? "" : "not ", ++number, rule);
    all_hold = all_hold && holds;
}

void temporaries_of_an_op_fit_first()
{
    char bytes[256];
    tarn::Slot slots[] = {{1, 100, bytes + 192}};
    tarn::Frame frame;
    frame.begin(slots, 1, bytes, 192);
    char *first = frame.request(64), *output = frame.request(100), *second = frame.request(65);
    expect(first == bytes && second == bytes + 64, "a_temporary_lies_in_the_lowest_gap");
    expect(output == bytes + 192, "an_output_lies_where_it_was_planned");
    expect(!frame.request(1), "a_full_workspace_refuses");
    frame.release(first);
    expect(frame.request(60) == bytes, "a_gap_is_used_again");
    frame.begin(slots, 1, nullptr, 0);
    expect(!frame.request(7) && !frame.request(99), "another_size_is_no_output");
}

void a_trace_says_what_an_op_needs()
{
    char a, b, c;
    tarn::Frame frame;
    frame.trace();
    frame.request(64), frame.requested(&a, 64);
    frame.request(100), frame.requested(&b, 100);
    frame.released(&a);
    frame.request(64), frame.requested(&c, 64);
    frame.end();
    const void *outputs[] = {&b, &number};
    int64_t ordinals[2];
    size_t kept;
    size_t workspace = frame.summarize(outputs, 2, ordinals, &kept);
    expect(ordinals[0] == 1 && ordinals[1] == -1, "outputs_are_numbered_by_request");
    expect(workspace == 64 && kept == 1, "what_is_no_output_needs_workspace");
}

struct Fixture {
    char bytes[256];
    tarn::Tape tape;

    // Blocks of 64 bytes: 0 and 2 lie at 0, 1 at 64.
    explicit Fixture(std::initializer_list<int64_t> streams, bool event = false)
    {
        const int64_t *s = streams.begin();
        tape.begin_recording();
        int64_t zero = tape.recorded(64, s[0]), one = tape.recorded(64, s[1]);
        tape.released(zero, s[0]);
        if (event) tape.told(Action::Record, 9, s[0]), tape.told(Action::Wait, 9, s[2]);
        int64_t two = tape.recorded(64, s[2]);
        tape.released(one, s[1]), tape.released(two, s[2]);
        tape.end();
        const int64_t offsets[] = {0, 64, 0};
        const uint64_t sizes[] = {64, 64, 64};
        tape.plan(offsets, sizes, s, 3, bytes, sizeof bytes);
    }
};

void one_stream_is_served_safely()
{
    Fixture f{0, 0, 0};
    expect(!f.tape.serve(64, 0), "nothing_is_served_outside_of_an_iteration");
    f.tape.begin_serving();
    char *a = f.tape.serve(64, 0), *b = f.tape.serve(64, 0);
    expect(a == f.bytes && b == f.bytes + 64 && f.tape.owns(b), "requests_are_served_as_planned");
    expect(!f.tape.serve(64, 0) && f.tape.counts().occupied == 1, "bytes_in_use_are_not_given");
    expect(!f.tape.serve(65, 0) && f.tape.counts().unknown == 1, "another_size_is_not_served");
    f.tape.end();
    f.tape.begin_serving();
    expect(!f.tape.serve(64, 0), "bytes_in_use_since_an_iteration_before_are_not_given");
    f.tape.returned(a, 0), f.tape.returned(b, 0);
    expect(f.tape.serve(64, 0) == b && f.tape.alive() == 1, "returned_bytes_are_given_again");
    f.tape.returned(b, 0);
    f.tape.begin_serving();
    a = f.tape.serve(64, 0);
    expect(!f.tape.is_lost(), "an_iteration_as_recorded_is_not_lost");
    f.tape.told(Action::Use, f.tape.block_at(a), 7), f.tape.returned(a, 0);
    expect(!f.tape.serve(64, 0) && f.tape.is_lost(), "what_another_stream_uses_is_not_given_again");
}

void several_streams_are_served_as_long_as_they_follow_the_tape()
{
    Fixture f({1, 1, 2}, true);
    f.tape.begin_serving();
    char *a = f.tape.serve(64, 1), *b = f.tape.serve(64, 1);
    f.tape.returned(a, 1);
    f.tape.told(Action::Record, 9, 1), f.tape.told(Action::Wait, 9, 2);
    char *c = f.tape.serve(64, 2);
    expect(a && b && c == a, "streams_that_repeat_their_events_share_bytes");
    f.tape.returned(b, 1), f.tape.returned(c, 2);
    f.tape.begin_serving();
    a = f.tape.serve(64, 1), b = f.tape.serve(64, 1);
    f.tape.returned(a, 1);
    expect(a && b && !f.tape.serve(64, 2), "a_stream_that_did_not_wait_gets_nothing");
    expect(f.tape.counts().lost == 1, "a_lost_tape_is_counted");
    f.tape.returned(b, 1);
    f.tape.begin_serving();
    a = f.tape.serve(64, 1), b = f.tape.serve(64, 1);
    f.tape.told(Action::Record, 9, 1), f.tape.told(Action::Wait, 9, 2), f.tape.returned(a, 1);
    expect(!f.tape.serve(64, 2), "bytes_returned_after_the_event_are_not_given");
}

} // namespace

int main()
{
    temporaries_of_an_op_fit_first();
    a_trace_says_what_an_op_needs();
    one_stream_is_served_safely();
    several_streams_are_served_as_long_as_they_follow_the_tape();
    std::printf("1..%d\n", number);
    return all_hold ? 0 : 1;
}
