// cuda_memory.h of tarn.torch on the stand-in for the CUDA runtime: a recorded iteration of two
// streams is served from its arena, without one more cudaMalloc. TAP on stdout.
#include "python/tarn/torch/cuda_memory.h"

#include <cstdio>

namespace
{

int test_number = 0;
bool all_hold = true;

void expect(bool holds, const char *rule)
{
    std::printf("%sok %d - %s\n", holds ? "" : "not ", ++test_number, rule);
    all_hold = all_hold && holds;
}

struct Iteration {
    void *blocks[3];
};

// Block 0 of stream a is also used by stream b; block 2 of b comes after an event of a, or without.
Iteration iterate(void *a, void *b, bool wait)
{
    Iteration i;
    i.blocks[0] = tarn_cuda_allocate(4096, 0, a);
    i.blocks[1] = tarn_cuda_allocate(1024, 0, a);
    tarn_cuda_use(i.blocks[0], b);
    tarn_cuda_release(i.blocks[0], 4096, 0, a);
    if (wait) {
        tarn_tape_told(int64_t(tarn::Action::Record), 0, tarn_cuda_stream(a));
        tarn_tape_told(int64_t(tarn::Action::Wait), 0, tarn_cuda_stream(b));
    }
    i.blocks[2] = tarn_cuda_allocate(4096, 0, b);
    tarn_cuda_release(i.blocks[1], 1024, 0, a);
    tarn_cuda_release(i.blocks[2], 4096, 0, b);
    return i;
}

} // namespace

int main()
{
    char first, second;
    void *a = &first, *b = &second;
    tarn_tape_begin(0);
    Iteration recorded = iterate(a, b, true);
    tarn_tape_end();
    expect(recorded.blocks[0] && recorded.blocks[1] && recorded.blocks[2],
           "a_recorded_iteration_has_memory_of_the_device");
    int64_t events[64];
    int64_t count = tarn_tape_events(nullptr);
    expect(count == 9, "requests_uses_events_and_releases_are_recorded");
    tarn_tape_events(events);
    const int64_t actions[] = {0, 0, 2, 1, 3, 4, 0, 1, 1};
    bool same = true;
    for (int i = 0; i < 9; i++) same = same && events[4 * i] == actions[i];
    expect(same && events[4 * 2 + 3] != events[3], "events_have_their_order_and_their_streams");

    const int64_t offsets[] = {0, 4096, 0};
    int number = tarn_tape_make(offsets, 8192);
    expect(number > 0 && tarn_tape_arenas() == 1, "a_plan_has_an_arena");
    char *base = places[number].bytes;
    for (int i = 0; i < 2; i++) {
        tarn_tape_begin(number);
        Iteration served = iterate(a, b, true);
        tarn_tape_end();
        expect(served.blocks[0] == base && served.blocks[1] == base + 4096 &&
                   served.blocks[2] == base,
               "an_iteration_that_repeats_is_served_from_the_arena");
    }
    tarn_tape_begin(number);
    Iteration unordered = iterate(a, b, false);
    tarn_tape_end();
    expect(unordered.blocks[0] == base && unordered.blocks[2] &&
               (unordered.blocks[2] < base || unordered.blocks[2] >= base + 8192),
           "without_the_event_the_other_stream_has_memory_of_its_own");
    tarn_tape_begin(number);
    void *kept = tarn_cuda_allocate(4096, 0, a);
    tarn_tape_end();
    tarn_tape_leave(number);
    expect(kept == base && tarn_tape_arenas() == 1,
           "an_arena_stays_as_long_as_there_is_a_block_in_it");
    int other = tarn_tape_make(offsets, 8192);
    expect(other != number && tarn_tape_arenas() == 2,
           "plans_of_several_streams_do_not_share_an_arena_with_blocks_from_before");
    tarn_tape_leave(other);
    tarn_cuda_release(kept, 4096, 0, a);
    expect(tarn_tape_arenas() == 0, "an_arena_goes_with_its_last_block");
    void *arena = tarn_cuda_allocate(8192, 0, a);
    tarn_cuda_release(arena, 8192, 0, a);
    expect(tarn_cuda_allocate(8100, 0, b) != arena && tarn_cuda_allocate(8100, 0, a) == arena,
           "a_free_block_is_given_again_on_its_stream_alone");
    void *stand_in = dlopen(CUDART, RTLD_LAZY);
    auto calls = reinterpret_cast<uint64_t (*)(const char *)>(dlsym(stand_in, "fake_cudart_calls"));
    auto inject = reinterpret_cast<void (*)(const char *, uint64_t, unsigned, bool)>(
        dlsym(stand_in, "fake_cudart_inject"));
    uint64_t freed = calls("cudaFree");
    tarn_cuda_use(arena, b);
    tarn_cuda_release(arena, 8100, 0, a);
    expect(calls("cudaFree") == freed + 1, "what_another_stream_has_used_is_freed");
    void *unused = tarn_cuda_allocate(512, 0, a);
    tarn_cuda_release(unused, 512, 0, a);
    inject("cudaMalloc", 0, 2, false);
    expect(tarn_cuda_allocate(1024, 0, b) && calls("cudaFree") > freed + 1,
           "where_memory_ends_free_blocks_are_given_back");
    auto last = reinterpret_cast<int (*)()>(dlsym(stand_in, "cudaGetLastError"));
    expect(last && !last(), "what_was_answered_is_no_error_of_the_next_launch");
    void *fresh = tarn_cuda_allocate(1 << 20, 0, a);
    expect(fresh, "other_sizes_are_asked_for");
    tarn_cuda_release(fresh, 1 << 20, 0, a);
    freed = calls("cudaFree");
    tarn_cuda_trim();
    expect(calls("cudaFree") > freed, "free_blocks_can_be_given_back");

    // A capture of a graph.
    void *heap = tarn_cuda_allocate(4096, 0, a), *large = tarn_cuda_allocate(128 << 20, 0, a);
    tarn_cuda_release(heap, 4096, 0, a);
    freed = calls("cudaFree");
    int64_t pool = tarn_cuda_pool_open();
    void *one = tarn_cuda_allocate(4096, 0, a), *two = tarn_cuda_allocate(4096, 0, a);
    tarn_cuda_release(two, 4096, 0, a);
    expect(one != heap && two != heap && tarn_cuda_allocate(4000, 0, a) == two,
           "a_capture_has_blocks_of_its_own_and_uses_them_again");
    tarn_cuda_release(two, 4000, 0, a);
    expect(tarn_cuda_allocate(4096, 0, b) != two, "but_on_their_stream_alone");
    tarn_cuda_release(large, 128 << 20, 0, a);
    tarn_cuda_trim();
    expect(calls("cudaFree") == freed, "nothing_is_freed_in_a_capture");
    expect(tarn_cuda_pool_close() == 3 * 4096 && calls("cudaFree") == freed + 1,
           "what_had_to_wait_is_freed_after_it");
    tarn_cuda_release(one, 4096, 0, a);
    void *others[4];
    bool apart = true;
    for (void *&other_block : others) {
        other_block = tarn_cuda_allocate(4096, 0, a);
        apart = apart && other_block != one && other_block != two;
    }
    expect(apart, "nothing_else_gets_the_blocks_of_a_graph");
    freed = calls("cudaFree");
    tarn_cuda_pool_drop(pool);
    expect(calls("cudaFree") == freed + 2, "they_end_with_the_graph_but_those_in_use");
    tarn_cuda_pool_drop(pool);
    expect(calls("cudaFree") == freed + 2, "once");

    inject("cudaMalloc", 0, 2, true);
    expect(!tarn_cuda_allocate(2048, 0, b), "and_then_there_is_none");
    std::printf("1..%d\n", test_number);
    return all_hold ? 0 : 1;
}
