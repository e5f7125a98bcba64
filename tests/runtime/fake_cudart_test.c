/* The stand-in for the CUDA runtime: that it refuses and counts each kind of illegal use, that it
 * runs what is legal in all orders that CUDA allows and in no other, and that it waits where CUDA
 * may. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fake_cudart/fake_cudart.h"
#include "runtime/cuda/api.h"

static struct fake_control control;
static struct tarn_cuda_api api;

static int load(void **state)
{
    struct tarn_error error = {0};
    (void)state;
    if (!fake_control_load(FAKE_CUDART, &control)) return -1;
    if (tarn_cuda_api_load(FAKE_CUDART, &api, &error)) return -1;
    return tarn_cuda_api_find_driver(&api) ? -1 : 0;
}

static int reset(void **state)
{
    (void)state;
    control.reset(NULL);
    return 0;
}

static void assert_violations(uint64_t expected, const char *part)
{
    char text[256];
    uint64_t found = control.violations(text);
    if (found != expected || (expected && !strstr(text, part)))
        fail_msg("%llu violations: %s", (unsigned long long)found, text);
}

static void nothing(void *argument) { (void)argument; }

/* ---- What it refuses ---- */

static tarn_cuda_stream make_stream(void)
{
    tarn_cuda_stream stream;
    assert_int_equal(api.StreamCreateWithPriority(&stream, 1, 0), 0);
    return stream;
}

static tarn_cuda_event make_event(void)
{
    tarn_cuda_event event;
    assert_int_equal(api.EventCreateWithFlags(&event, TARN_CUDA_EVENT_NO_TIMING), 0);
    return event;
}

static void refuses_to_synchronise_in_a_capture(void **state)
{
    (void)state;
    tarn_cuda_stream stream = make_stream(), other = make_stream();
    tarn_cuda_graph graph;
    void *memory;
    assert_int_equal(api.StreamBeginCapture(stream, 1), 0);
    assert_int_equal(api.StreamSynchronize(other), 900);
    assert_violations(1, "cudaStreamSynchronize");
    assert_int_equal(api.Malloc(&memory, 8), 900);
    assert_int_equal(api.StreamEndCapture(stream, &graph), 901);
    assert_int_equal(api.StreamSynchronize(stream), 0);
}

static void refuses_to_wait_in_a_capture_for_an_event_from_outside(void **state)
{
    (void)state;
    tarn_cuda_stream stream = make_stream(), other = make_stream();
    tarn_cuda_event event = make_event();
    tarn_cuda_graph graph;
    assert_int_equal(api.EventRecord(event, other), 0);
    assert_int_equal(api.StreamBeginCapture(stream, 1), 0);
    assert_int_equal(api.StreamWaitEvent(stream, event, 0), 905);
    assert_violations(1, "from outside");
    assert_int_equal(api.StreamEndCapture(stream, &graph), 901);
}

static void refuses_to_end_a_capture_with_a_fork_left(void **state)
{
    (void)state;
    tarn_cuda_stream stream = make_stream(), other = make_stream();
    tarn_cuda_event event = make_event();
    tarn_cuda_graph graph;
    assert_int_equal(api.StreamBeginCapture(stream, 1), 0);
    assert_int_equal(api.EventRecord(event, stream), 0);
    assert_int_equal(api.StreamWaitEvent(other, event, 0), 0);
    assert_int_equal(api.LaunchHostFunc(other, nothing, NULL), 0);
    assert_int_equal(api.StreamEndCapture(stream, &graph), 904);
    assert_int_equal(api.LaunchHostFunc(other, nothing, NULL), 0); /* released */
    assert_int_equal(api.StreamSynchronize(other), 0);
}

static void refuses_to_merge_captures(void **state)
{
    (void)state;
    tarn_cuda_stream stream = make_stream(), other = make_stream();
    tarn_cuda_event event = make_event();
    tarn_cuda_graph graph;
    assert_int_equal(api.StreamBeginCapture(stream, 1), 0);
    assert_int_equal(api.StreamBeginCapture(other, 1), 0);
    assert_int_equal(api.EventRecord(event, stream), 0);
    assert_int_equal(api.StreamWaitEvent(other, event, 0), 902);
    assert_violations(1, "merges");
    assert_int_equal(api.StreamEndCapture(stream, &graph), 901);
    assert_int_equal(api.StreamEndCapture(other, &graph), 901);
}

static void refuses_to_ask_for_a_captured_event(void **state)
{
    (void)state;
    tarn_cuda_stream stream = make_stream();
    tarn_cuda_event event = make_event();
    tarn_cuda_graph graph;
    assert_int_equal(api.StreamBeginCapture(stream, 1), 0);
    assert_int_equal(api.EventRecord(event, stream), 0);
    assert_int_equal(api.StreamEndCapture(stream, &graph), 0);
    assert_int_equal(api.EventQuery(event), 907);
    assert_violations(1, "captured");
    assert_int_equal(api.EventRecord(event, stream), 0); /* recorded anew, it is free again */
    assert_int_equal(api.StreamSynchronize(stream), 0);
    assert_int_equal(api.EventQuery(event), 0);
}

static void refuses_dead_handles_and_counts_what_is_destroyed_in_use(void **state)
{
    (void)state;
    tarn_cuda_stream stream = make_stream();
    tarn_cuda_event event = make_event();
    void *memory;
    assert_int_equal(api.Malloc(&memory, 100), 0);
    assert_int_equal(api.Free(memory), 0);
    assert_int_equal(api.Free(memory), 1);
    assert_violations(1, "no allocation");
    assert_int_equal(api.EventDestroy(event), 0);
    assert_int_equal(api.EventRecord(event, stream), 400);
    assert_violations(2, "no allocation");
    control.hold(true);
    assert_int_equal(api.LaunchHostFunc(stream, nothing, NULL), 0);
    assert_int_equal(api.StreamDestroy(stream), 0); /* CUDA takes it; a device may not do it */
    assert_violations(3, "no allocation");
    assert_int_equal(api.LaunchHostFunc(stream, nothing, NULL), 400);
}

static void refuses_the_legacy_stream(void **state)
{
    (void)state;
    assert_int_equal(api.LaunchHostFunc(NULL, nothing, NULL), 400);
    assert_violations(1, "no stream");
}

static void call_cuda(void *code)
{
    *(unsigned *)code = api.MemGetInfo(&(size_t){0}, &(size_t){0});
}

static void refuses_host_functions_that_call_it(void **state)
{
    (void)state;
    tarn_cuda_stream stream = make_stream();
    unsigned code = 0;
    assert_int_equal(api.LaunchHostFunc(stream, call_cuda, &code), 0);
    assert_int_equal(api.StreamSynchronize(stream), 0);
    assert_int_equal(code, 800);
    assert_violations(1, "host function");
}

static void a_kernel_outside_of_its_memory_poisons_the_device(void **state)
{
    (void)state;
    tarn_cuda_stream stream = make_stream();
    tarn_cuda_library library;
    tarn_cuda_kernel kernel;
    void *memory, *seed;
    uint64_t size = 101;
    assert_int_equal(api.LibraryLoadData(&library, "", NULL, NULL, 0, NULL, NULL, 0), 0);
    assert_int_equal(api.LibraryGetKernel(&kernel, library, "tarn_pattern_fill"), 0);
    assert_int_equal(api.Malloc(&memory, 100), 0);
    assert_int_equal(api.Malloc(&seed, 8), 0);
    const struct tarn_cuda_launch launch = {
        .blocks = {1, 1, 1}, .threads = {32, 1, 1}, .stream = stream};
    assert_int_equal(api.LaunchKernelExC((const struct cudaLaunchConfig_st *)&launch, kernel,
                                         (void *[]){&memory, &size, &seed}),
                     0);
    assert_int_equal(api.StreamSynchronize(stream), 700);
    assert_int_equal(api.Malloc(&memory, 8), 700);
    assert_violations(1, "outside");
}

/* ---- What it runs ---- */

struct trail {
    pthread_mutex_t lock;
    char text[8];
    uint32_t used;
};

struct step {
    struct trail *trail;
    char letter;
};

static void leave(void *argument)
{
    struct step *step = argument;
    pthread_mutex_lock(&step->trail->lock);
    step->trail->text[step->trail->used++] = step->letter;
    pthread_mutex_unlock(&step->trail->lock);
}

/* a before b and c; d after both: "abcd" and "acbd" occur, nothing else. */
static void captured_graphs_run_in_every_legal_order(void **state)
{
    (void)state;
    tarn_cuda_stream one = make_stream(), two = make_stream();
    tarn_cuda_event fork = make_event(), join = make_event();
    tarn_cuda_graph graph;
    tarn_cuda_exec exec;
    struct trail trail = {.lock = PTHREAD_MUTEX_INITIALIZER};
    struct step steps[4] = {{&trail, 'a'}, {&trail, 'b'}, {&trail, 'c'}, {&trail, 'd'}};
    assert_int_equal(api.StreamBeginCapture(one, 1), 0);
    assert_int_equal(api.LaunchHostFunc(one, leave, &steps[0]), 0);
    assert_int_equal(api.EventRecord(fork, one), 0);
    assert_int_equal(api.StreamWaitEvent(two, fork, 0), 0);
    assert_int_equal(api.LaunchHostFunc(one, leave, &steps[1]), 0);
    assert_int_equal(api.LaunchHostFunc(two, leave, &steps[2]), 0);
    assert_int_equal(api.EventRecord(join, two), 0);
    assert_int_equal(api.StreamWaitEvent(one, join, 0), 0);
    assert_int_equal(api.LaunchHostFunc(one, leave, &steps[3]), 0);
    assert_int_equal(api.StreamEndCapture(one, &graph), 0);
    assert_int_equal(api.GraphInstantiate(&exec, graph, 0), 0);
    uint32_t seen[2] = {0};
    for (int i = 0; i < 400; i++) {
        memset(trail.text, 0, sizeof trail.text);
        trail.used = 0;
        assert_int_equal(api.GraphLaunch(exec, one), 0);
        assert_int_equal(api.StreamSynchronize(one), 0);
        bool first = strcmp(trail.text, "abcd") == 0;
        assert_true(first || strcmp(trail.text, "acbd") == 0);
        seen[first]++;
    }
    assert_true(seen[0] > 0 && seen[1] > 0);
    assert_violations(0, NULL);
}

static void add_one(void *count) { atomic_fetch_add((atomic_int *)count, 1); }

static void waits_for_an_event_that_was_never_recorded_are_none(void **state)
{
    (void)state;
    tarn_cuda_stream stream = make_stream();
    tarn_cuda_event event = make_event();
    atomic_int count = 0;
    assert_int_equal(api.StreamWaitEvent(stream, event, 0), 0);
    assert_int_equal(api.LaunchHostFunc(stream, add_one, &count), 0);
    assert_int_equal(api.StreamSynchronize(stream), 0);
    assert_int_equal(atomic_load(&count), 1);
}

static void fails_the_call_that_was_asked_for(void **state)
{
    (void)state;
    tarn_cuda_stream stream = make_stream();
    tarn_cuda_event event = make_event();
    control.inject("cudaEventRecord", 2, 77, false);
    assert_int_equal(api.EventRecord(event, stream), 0);
    assert_int_equal(api.EventRecord(event, stream), 0);
    assert_false(control.has_failed());
    assert_int_equal(api.EventRecord(event, stream), 77);
    assert_true(control.has_failed());
    assert_int_equal(api.EventRecord(event, stream), 0);
    assert_int_equal(control.calls("cudaEventRecord"), 4);
    control.inject("cudaEventRecord", 0, 700, true);
    assert_int_equal(api.EventRecord(event, stream), 700);
    assert_int_equal(api.EventQuery(event), 700);
}

static void work_that_fails_is_told_later(void **state)
{
    (void)state;
    tarn_cuda_stream stream = make_stream();
    atomic_int count = 0;
    control.inject("work", 1, 719, true);
    assert_int_equal(api.LaunchHostFunc(stream, add_one, &count), 0);
    assert_int_equal(api.StreamSynchronize(stream), 0);
    api.LaunchHostFunc(stream, add_one, &count);
    assert_int_equal(api.StreamSynchronize(stream), 719);
    assert_int_equal(atomic_load(&count), 1);
}

/* ---- Devices ---- */

static void use_devices(int devices)
{
    control.reset(&(struct fake_options){.devices = devices, .workers = 4});
}

static tarn_cuda_kernel find_kernel(const char *name)
{
    tarn_cuda_library library;
    tarn_cuda_kernel kernel;
    assert_int_equal(api.LibraryLoadData(&library, "", NULL, NULL, 0, NULL, NULL, 0), 0);
    assert_int_equal(api.LibraryGetKernel(&kernel, library, name), 0);
    return kernel;
}

static unsigned launch_gate(tarn_cuda_stream stream, atomic_int *open)
{
    const struct tarn_cuda_launch launch = {
        .blocks = {1, 1, 1}, .threads = {1, 1, 1}, .stream = stream};
    return api.LaunchKernelExC((const struct cudaLaunchConfig_st *)&launch,
                               find_kernel("fake_gate"), (void *[]){&open});
}

static void work_is_launched_with_its_streams_device_current(void **state)
{
    (void)state;
    use_devices(2);
    atomic_int open = 1;
    tarn_cuda_stream first = make_stream();
    assert_int_equal(launch_gate(first, &open), 0);
    assert_int_equal(api.SetDevice(1), 0);
    assert_int_equal(launch_gate(first, &open), 400);
    assert_violations(1, "current is 1");
    assert_int_equal(api.LaunchHostFunc(first, nothing, NULL), 400);
    tarn_cuda_stream second = make_stream();
    assert_int_equal(launch_gate(second, &open), 0);
    assert_int_equal(api.StreamSynchronize(second), 0);
    assert_int_equal(api.StreamSynchronize(first), 0);
    assert_violations(2, "");
}

static void events_are_recorded_on_their_own_device_and_awaited_on_all(void **state)
{
    (void)state;
    use_devices(2);
    tarn_cuda_stream first = make_stream();
    tarn_cuda_event event = make_event();
    assert_int_equal(api.SetDevice(1), 0);
    tarn_cuda_stream second = make_stream();
    assert_int_equal(api.EventRecord(event, second), 400);
    assert_violations(1, "an event of device 0");
    assert_int_equal(api.EventRecord(event, first), 0);
    assert_int_equal(api.StreamWaitEvent(second, event, 0), 0);
    assert_int_equal(api.StreamSynchronize(second), 0);
    assert_int_equal(api.EventQuery(event), 0);
    assert_violations(1, "");
}

static void *query(void *event)
{
    api.EventQuery((tarn_cuda_event)event);
    return NULL;
}

static void join_thread(void *(*function)(void *), void *argument)
{
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, function, argument), 0);
    pthread_join(thread, NULL);
}

/* Asking for facts makes none. */
static void a_call_makes_the_context_that_its_thread_lacks(void **state)
{
    (void)state;
    int count;
    use_devices(3);
    assert_int_equal(api.GetDeviceCount(&count), 0);
    assert_int_equal(control.contexts(), 0);
    assert_int_equal(api.SetDevice(2), 0);
    assert_int_equal(control.contexts(), 1 << 2);
    tarn_cuda_event event = make_event();
    assert_int_equal(control.contexts(), 1 << 2);
    join_thread(query, event);
    assert_int_equal(control.contexts(), 1 << 2 | 1 << 0);
}

static void the_driver_keeps_a_stack_of_contexts(void **state)
{
    (void)state;
    int number, device;
    tarn_cuda_context context, current;
    use_devices(2);
    assert_int_equal(api.DeviceGet(&number, 1), 0);
    assert_int_equal(api.DevicePrimaryCtxRetain(&context, number), 0);
    assert_int_equal(api.CtxGetCurrent(&current), 0);
    assert_null(current);
    assert_int_equal(api.CtxPushCurrent(context), 0);
    assert_int_equal(api.GetDevice(&device), 0);
    assert_int_equal(device, 1);
    make_event(); /* needs a context and finds one */
    assert_int_equal(control.contexts(), 1 << 1);
    assert_int_equal(api.CtxPopCurrent(&current), 0);
    assert_ptr_equal(current, context);
    assert_violations(0, NULL);
    assert_int_not_equal(api.CtxPopCurrent(&current), 0);
    assert_violations(1, "nobody pushed");
    assert_int_equal(api.DevicePrimaryCtxRelease(number), 0);
}

static void kernels_do_not_reach_memory_of_another_device(void **state)
{
    (void)state;
    void *memory, *seed;
    uint64_t size = 64;
    for (int current = 0; current < 2; current++) {
        use_devices(2);
        assert_int_equal(api.Malloc(&memory, 64), 0);
        assert_int_equal(api.Malloc(&seed, 8), 0);
        assert_int_equal(api.SetDevice(current), 0);
        tarn_cuda_stream stream = make_stream();
        const struct tarn_cuda_launch launch = {
            .blocks = {1, 1, 1}, .threads = {32, 1, 1}, .stream = stream};
        tarn_cuda_kernel kernel = find_kernel("tarn_pattern_fill");
        assert_int_equal(api.LaunchKernelExC((const struct cudaLaunchConfig_st *)&launch, kernel,
                                             (void *[]){&memory, &size, &seed}),
                         0);
        assert_int_equal(api.StreamSynchronize(stream), current == 0 ? 0 : 700);
    }
    assert_violations(1, "of another device");
}

/* ---- Captures and threads ---- */

struct asking {
    unsigned mode; /* of the thread */
    tarn_cuda_event event;
    unsigned code;
};

static void ask(struct asking *asking)
{
    unsigned mode = asking->mode;
    assert_int_equal(api.ThreadExchangeStreamCaptureMode(&mode), 0);
    asking->code = api.EventQuery(asking->event);
    assert_int_equal(api.ThreadExchangeStreamCaptureMode(&mode), 0);
    assert_int_equal(mode, asking->mode);
}

static void *ask_in_thread(void *asking)
{
    ask(asking);
    return NULL;
}

/* As cudaThreadExchangeStreamCaptureMode's description has it, for all modes of the capture and of
 * the thread. */
static void unsafe_calls_break_the_captures_that_forbid_them(void **state)
{
    (void)state;
    enum { GLOBAL, LOCAL, RELAXED };
    static const bool by_other[3][3] = {[GLOBAL] = {[GLOBAL] = true}};
    static const bool by_own[3][3] = {
        [GLOBAL] = {[GLOBAL] = true, [LOCAL] = true}, [LOCAL] = {[GLOBAL] = true, [LOCAL] = true}};
    for (unsigned i = 0; i < 18; i++) {
        unsigned mode = i / 2 / 3, of_thread = i / 2 % 3;
        bool own = i % 2;
        control.reset(NULL);
        tarn_cuda_graph graph;
        tarn_cuda_stream stream = make_stream();
        struct asking asking = {.mode = of_thread, .event = make_event()};
        assert_int_equal(api.StreamBeginCapture(stream, mode), 0);
        if (own)
            ask(&asking);
        else
            join_thread(ask_in_thread, &asking);
        bool broken = own ? by_own[mode][of_thread] : by_other[mode][of_thread];
        assert_int_equal(asking.code, broken ? 900 : 0);
        assert_int_equal(api.StreamEndCapture(stream, &graph), broken ? 901 : 0);
        assert_violations(broken, own ? "thread that captures" : "another thread");
    }
}

/* ---- What waits ---- */

struct freeing {
    void *memory;
    atomic_int done;
};

static void *free_memory(void *argument)
{
    struct freeing *freeing = argument;
    api.Free(freeing->memory);
    atomic_store(&freeing->done, 1);
    return NULL;
}

static void freeing_waits_for_all_work_of_the_device(void **state)
{
    (void)state;
    atomic_int open = 0;
    struct freeing freeing = {0};
    pthread_t thread;
    use_devices(2);
    assert_int_equal(api.Malloc(&freeing.memory, 8), 0);
    assert_int_equal(launch_gate(make_stream(), &open), 0);
    assert_int_equal(pthread_create(&thread, NULL, free_memory, &freeing), 0);
    usleep(20000);
    assert_int_equal(atomic_load(&freeing.done), 0);
    assert_int_equal(api.SetDevice(1), 0);
    void *other;
    assert_int_equal(api.Malloc(&other, 8), 0);
    assert_int_equal(api.Free(other), 0); /* that device is idle */
    atomic_store(&open, 1);
    pthread_join(thread, NULL);
    assert_violations(0, NULL);
}

/* Two streams of one channel: the second's call waits behind the first's, which waits for a third's
 * gate. On channels of their own it does not. */
static void a_channel_begins_its_work_in_order(void **state)
{
    (void)state;
    for (uint32_t channels = 1; channels <= 8; channels += 7) {
        atomic_int open = 0, count = 0;
        control.reset(&(struct fake_options){.channels = channels, .workers = 4});
        tarn_cuda_stream gated = make_stream(), waiting = make_stream(), free_one = make_stream();
        tarn_cuda_event event = make_event();
        assert_int_equal(launch_gate(gated, &open), 0);
        assert_int_equal(api.EventRecord(event, gated), 0);
        assert_int_equal(api.StreamWaitEvent(waiting, event, 0), 0);
        assert_int_equal(api.LaunchHostFunc(free_one, add_one, &count), 0);
        if (channels == 8) assert_int_equal(api.StreamSynchronize(free_one), 0);
        usleep(20000);
        assert_int_equal(atomic_load(&count), channels == 8);
        atomic_store(&open, 1);
        assert_int_equal(api.StreamSynchronize(free_one), 0);
        assert_int_equal(api.StreamSynchronize(gated), 0);
        assert_int_equal(atomic_load(&count), 1);
    }
}

struct meeting {
    atomic_int inside, most;
};

static void meet(void *argument)
{
    struct meeting *meeting = argument;
    int inside = atomic_fetch_add(&meeting->inside, 1) + 1;
    if (inside > atomic_load(&meeting->most)) atomic_store(&meeting->most, inside);
    usleep(500);
    atomic_fetch_sub(&meeting->inside, 1);
}

static void host_functions_run_one_at_a_time(void **state)
{
    (void)state;
    struct meeting meeting = {0};
    tarn_cuda_stream streams[4];
    use_devices(1);
    for (int i = 0; i < 4; i++) streams[i] = make_stream();
    for (int i = 0; i < 40; i++)
        assert_int_equal(api.LaunchHostFunc(streams[i % 4], meet, &meeting), 0);
    for (int i = 0; i < 4; i++) assert_int_equal(api.StreamSynchronize(streams[i]), 0);
    assert_int_equal(atomic_load(&meeting.most), 1);
}

/* Pageable memory is the caller's again at once; registered memory when the stream has got there.
 */
static void copies_of_pageable_memory_are_over_when_they_return(void **state)
{
    (void)state;
    static unsigned char host[64];
    void *memory;
    tarn_cuda_stream stream = make_stream();
    assert_int_equal(api.Malloc(&memory, sizeof host), 0);
    assert_int_equal(api.MemsetAsync(memory, 7, sizeof host, stream), 0);
    assert_int_equal(api.MemcpyAsync(host, memory, sizeof host, 2, stream), 0);
    assert_int_equal(host[63], 7);
    assert_int_equal(api.HostRegister(host, sizeof host, 1), 0);
    control.hold(true);
    assert_int_equal(api.MemsetAsync(memory, 8, sizeof host, stream), 0);
    assert_int_equal(api.MemcpyAsync(host, memory, sizeof host, 2, stream), 0);
    control.hold(false);
    assert_int_equal(api.StreamSynchronize(stream), 0);
    assert_int_equal(host[63], 8);
    assert_int_equal(api.HostUnregister(host), 0);
    assert_violations(0, NULL);
}

static void pinned_memory_is_the_hosts_for_a_copy_that_names_its_direction(void **state)
{
    (void)state;
    enum { IN = 1, OUT = 2 };
    unsigned char *memory, *pinned;
    tarn_cuda_stream stream = make_stream();
    assert_int_equal(api.Malloc((void **)&memory, 64), 0);
    assert_int_equal(api.HostAlloc((void **)&pinned, 64, TARN_CUDA_HOST_PORTABLE), 0);
    assert_int_equal(api.MemsetAsync(pinned, 7, 64, stream), 0);
    assert_int_equal(api.MemcpyAsync(memory, pinned, 64, IN, stream), 0);
    assert_int_equal(api.MemsetAsync(pinned, 0, 64, stream), 0);
    assert_int_equal(api.MemcpyAsync(pinned, memory, 64, OUT, stream), 0);
    assert_int_equal(api.StreamSynchronize(stream), 0);
    assert_int_equal(pinned[63], 7);
    assert_violations(0, NULL);
    assert_int_not_equal(api.MemcpyAsync(pinned, memory, 64, IN, stream), 0);
    assert_violations(1, "direction");
    assert_int_not_equal(api.Free(pinned), 0);
    assert_int_equal(api.FreeHost(pinned), 0);
}

/* ---- Priorities ---- */

static void launch_spin(tarn_cuda_stream stream, tarn_cuda_kernel spin)
{
    uint64_t ns = 1;
    const struct tarn_cuda_launch launch = {
        .blocks = {1, 1, 1}, .threads = {1, 1, 1}, .stream = stream};
    assert_int_equal(
        api.LaunchKernelExC((const struct cudaLaunchConfig_st *)&launch, spin, (void *[]){&ns}), 0);
}

static tarn_cuda_event record_stamp(tarn_cuda_stream stream, bool in_capture)
{
    tarn_cuda_event stamp;
    unsigned flags = in_capture ? TARN_CUDA_RECORD_EXTERNAL : TARN_CUDA_RECORD_PLAIN;
    assert_int_equal(api.EventCreateWithFlags(&stamp, TARN_CUDA_EVENT_TIMING), 0);
    assert_int_equal(api.EventRecordWithFlags(stamp, stream, flags), 0);
    return stamp;
}

/* A fork in a capture: the plain stream's kernels, then as many urgent ones. Are the urgent ones
 * over first? */
static bool runs_urgent_first(unsigned long long flags)
{
    tarn_cuda_stream plain = make_stream(), urgent;
    tarn_cuda_event fork = make_event(), join = make_event(), stamps[2];
    tarn_cuda_kernel spin = find_kernel("tarn_spin");
    tarn_cuda_graph graph;
    tarn_cuda_exec exec;
    float ms = 0;
    assert_int_equal(api.StreamCreateWithPriority(&urgent, 1, -5), 0);
    assert_int_equal(api.StreamBeginCapture(plain, 1), 0);
    assert_int_equal(api.EventRecord(fork, plain), 0);
    assert_int_equal(api.StreamWaitEvent(urgent, fork, 0), 0);
    for (int i = 0; i < 12; i++) launch_spin(plain, spin);
    stamps[0] = record_stamp(plain, true);
    for (int i = 0; i < 12; i++) launch_spin(urgent, spin);
    stamps[1] = record_stamp(urgent, true);
    assert_int_equal(api.EventRecord(join, urgent), 0);
    assert_int_equal(api.StreamWaitEvent(plain, join, 0), 0);
    assert_int_equal(api.StreamEndCapture(plain, &graph), 0);
    assert_int_equal(api.GraphInstantiate(&exec, graph, flags), 0);
    assert_int_equal(api.GraphLaunch(exec, plain), 0);
    assert_int_equal(api.StreamSynchronize(plain), 0);
    assert_int_equal(api.EventElapsedTime(&ms, stamps[0], stamps[1]), 0);
    return ms < 0;
}

static void no_time_is_between_stamps_of_two_devices(void **state)
{
    (void)state;
    float ms = 0;
    use_devices(2);
    tarn_cuda_stream first = make_stream();
    tarn_cuda_event from = record_stamp(first, false), again = record_stamp(first, false);
    assert_int_equal(api.SetDevice(1), 0);
    tarn_cuda_stream second = make_stream();
    tarn_cuda_event to = record_stamp(second, false);
    assert_int_equal(api.StreamSynchronize(first), 0);
    assert_int_equal(api.StreamSynchronize(second), 0);
    assert_int_equal(api.EventElapsedTime(&ms, from, again), 0);
    assert_int_equal(api.EventElapsedTime(&ms, from, to), 400);
}

static void nodes_have_priorities_where_the_graph_was_told_to_use_them(void **state)
{
    (void)state;
    uint32_t first[2] = {0};
    for (uint64_t i = 0; i < 40; i++) {
        bool uses = i % 2;
        control.reset(&(struct fake_options){.seed = i, .workers = 1, .priorities = true});
        first[uses] += runs_urgent_first(uses ? TARN_CUDA_NODE_PRIORITIES : 0);
        assert_int_equal(control.instantiate_flags(), uses ? TARN_CUDA_NODE_PRIORITIES : 0);
    }
    assert_int_equal(first[true], 20);
    assert_in_range(first[false], 1, 19);
}

/* ---- Priorities of streams ---- */

/* Twelve kernels on each of two streams, of which one is urgent or launches a graph that was
 * captured on an urgent one. Is that one over first? */
static bool urgent_is_over_first(bool as_graph)
{
    tarn_cuda_stream plain = make_stream(), urgent, own = make_stream();
    tarn_cuda_kernel spin = find_kernel("tarn_spin");
    tarn_cuda_event stamps[2];
    tarn_cuda_graph graph;
    tarn_cuda_exec exec;
    float ms = 0;
    assert_int_equal(api.StreamCreateWithPriority(&urgent, 1, -5), 0);
    control.hold(true);
    for (int i = 0; i < 12; i++) launch_spin(plain, spin);
    stamps[0] = record_stamp(plain, false);
    if (as_graph) assert_int_equal(api.StreamBeginCapture(urgent, 1), 0);
    for (int i = 0; i < 12; i++) launch_spin(urgent, spin);
    stamps[1] = record_stamp(urgent, as_graph);
    if (as_graph) {
        assert_int_equal(api.StreamEndCapture(urgent, &graph), 0);
        assert_int_equal(api.GraphInstantiate(&exec, graph, TARN_CUDA_NODE_PRIORITIES), 0);
        assert_int_equal(api.GraphLaunch(exec, own), 0);
    }
    control.hold(false);
    assert_int_equal(api.StreamSynchronize(plain), 0);
    assert_int_equal(api.StreamSynchronize(as_graph ? own : urgent), 0);
    assert_int_equal(api.EventElapsedTime(&ms, stamps[0], stamps[1]), 0);
    return ms < 0;
}

static void the_most_urgent_stream_goes_on_first_where_that_counts(void **state)
{
    (void)state;
    uint32_t first[2][2] = {{0}}; /* by whether a graph is launched, and whether priorities count */
    for (uint64_t i = 0; i < 80; i++) {
        bool as_graph = i / 2 % 2, counts = i % 2;
        control.reset(&(struct fake_options){.seed = i, .workers = 1, .priorities = counts});
        first[as_graph][counts] += urgent_is_over_first(as_graph);
    }
    for (int as_graph = 0; as_graph < 2; as_graph++) {
        assert_int_equal(first[as_graph][true], 20);
        assert_in_range(first[as_graph][false], 1, 19);
    }
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup(test, reset)
    const struct CMUnitTest tests[] = {
        TEST(refuses_to_synchronise_in_a_capture),
        TEST(refuses_to_wait_in_a_capture_for_an_event_from_outside),
        TEST(refuses_to_end_a_capture_with_a_fork_left),
        TEST(refuses_to_merge_captures),
        TEST(refuses_to_ask_for_a_captured_event),
        TEST(refuses_dead_handles_and_counts_what_is_destroyed_in_use),
        TEST(refuses_the_legacy_stream),
        TEST(refuses_host_functions_that_call_it),
        TEST(a_kernel_outside_of_its_memory_poisons_the_device),
        TEST(captured_graphs_run_in_every_legal_order),
        TEST(waits_for_an_event_that_was_never_recorded_are_none),
        TEST(fails_the_call_that_was_asked_for),
        TEST(work_that_fails_is_told_later),
        TEST(work_is_launched_with_its_streams_device_current),
        TEST(events_are_recorded_on_their_own_device_and_awaited_on_all),
        TEST(a_call_makes_the_context_that_its_thread_lacks),
        TEST(the_driver_keeps_a_stack_of_contexts),
        TEST(kernels_do_not_reach_memory_of_another_device),
        TEST(unsafe_calls_break_the_captures_that_forbid_them),
        TEST(freeing_waits_for_all_work_of_the_device),
        TEST(a_channel_begins_its_work_in_order),
        TEST(host_functions_run_one_at_a_time),
        TEST(copies_of_pageable_memory_are_over_when_they_return),
        TEST(pinned_memory_is_the_hosts_for_a_copy_that_names_its_direction),
        TEST(no_time_is_between_stamps_of_two_devices),
        TEST(nodes_have_priorities_where_the_graph_was_told_to_use_them),
        TEST(the_most_urgent_stream_goes_on_first_where_that_counts),
    };
    return cmocka_run_group_tests_name("fake_cudart", tests, load, reset);
}
