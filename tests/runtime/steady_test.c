/* Nothing is allocated once a loop has found its pace: sessions that share an arena, wait for
 * events of others and signal theirs, on queues or threads of the caller's, with other inputs and
 * outputs in every iteration. On the host, and on the stand-in for CUDA, where no object of CUDA is
 * made either. All of it with one memory space and with several. The library is linked into the
 * test, and its allocations are counted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <string.h>

#include "fake_cudart/fake_cudart.h"
#include "runtime/cuda/api.h"
#include "support/buckets.h"
#include "support/failing_calls.h"
#include "support/session_calls.h"

enum { WARM = 6, ROUNDS = 60, BUFFERS = 4, X_MAX = 1024, OUT = 16 };

struct world {
    struct buckets buckets;
    struct tarn_arena *arena;
    struct tarn_session *sessions[BUCKETS];
    tarn_tensor x[BUCKETS], s[BUCKETS];
    uint64_t x_size[BUCKETS];
    unsigned char *inputs[BUFFERS], *outputs[BUFFERS]; /* as kernels see them */
};

static void open_world(struct world *w, struct tarn_device device, bool has_spaces,
                       struct tarn_session_options *options)
{
    struct tarn_error error;
    (has_spaces ? buckets_init_spaces : buckets_init)(&w->buckets, NULL);
    require(tarn_arena_create(w->buckets.plans, BUCKETS, device, NULL, &w->arena, &error), &error);
    options->arena = w->arena;
    for (uint32_t k = 0; k < BUCKETS; k++) {
        struct tarn_tensor_info info;
        require(tarn_session_create(w->buckets.plans[k], device, options, &w->sessions[k], &error),
                &error);
        assert_int_equal(tarn_session_bind_default(w->sessions[k], bucket_kernel, &w->buckets),
                         TARN_OK);
        w->x[k] = tarn_graph_find_tensor(w->buckets.graphs[k], "x");
        w->s[k] = tarn_graph_find_tensor(w->buckets.graphs[k], "s");
        tarn_graph_tensor(w->buckets.graphs[k], w->x[k], &info);
        w->x_size[k] = info.size;
    }
}

static void close_world(struct world *w)
{
    for (uint32_t k = 0; k < BUCKETS; k++)
        assert_int_equal(tarn_session_destroy(w->sessions[k]), TARN_OK);
    assert_int_equal(tarn_arena_destroy(w->arena), TARN_OK);
    buckets_finish(&w->buckets);
}

static void rebind(struct world *w, uint32_t k, uint32_t round)
{
    struct tarn_error error;
    require(tarn_session_bind_memory(w->sessions[k], w->x[k], w->inputs[round % BUFFERS], &error),
            &error);
    require(tarn_session_bind_memory(w->sessions[k], w->s[k], w->outputs[round % BUFFERS], &error),
            &error);
}

/* What the reference computes in the round, and what is there now. */
static void expect_round(struct world *w, uint32_t k, uint32_t round, const unsigned char *found)
{
    memcpy(buckets_bytes(&w->buckets, k, "x"), w->inputs[round % BUFFERS], w->x_size[k]);
    buckets_step(&w->buckets, k);
    assert_memory_equal(found, buckets_bytes(&w->buckets, k, "s"), OUT);
}

static void fill(unsigned char *x, uint32_t seed)
{
    struct random_source source = {seed};
    for (uint32_t i = 0; i < X_MAX; i++) x[i] = (unsigned char)random_next(&source);
}

/* ---- The host ---- */

struct other_thread {
    struct world *world;
    struct tarn_host_event *event; /* 2i + 1: the input of round i is there; 2i + 2: it has run */
};

static void *run_other(void *argument)
{
    struct other_thread *other = argument;
    struct world *w = other->world;
    for (uint32_t i = 0; i < WARM + ROUNDS; i++) {
        fill(w->inputs[i % BUFFERS], i);
        tarn_host_event_raise(other->event, 2 * i + 1);
        tarn_host_event_wait(other->event, 2 * i + 2, TARN_FOREVER, NULL);
        expect_round(w, i % BUCKETS, i, w->outputs[i % BUFFERS]);
    }
    return NULL;
}

static void the_host(bool has_spaces)
{
    static unsigned char inputs[BUFFERS][X_MAX], outputs[BUFFERS][OUT];
    struct world w;
    struct tarn_error error;
    pthread_t thread;
    tarn_ticket tickets[BUCKETS] = {0};
    open_world(&w, tarn_device_host(TARN_HOST_OPTIONS(.workers = 2, .binding = TARN_BIND_NONE)),
               has_spaces, TARN_SESSION_OPTIONS(.depth = 4));
    struct other_thread other = {.world = &w};
    for (uint32_t i = 0; i < BUFFERS; i++) {
        w.inputs[i] = inputs[i];
        w.outputs[i] = outputs[i];
    }
    require(tarn_host_event_create(&other.event, &error), &error);
    pthread_create(&thread, NULL, run_other, &other);
    for (uint32_t i = 0; i < WARM + ROUNDS; i++) {
        const struct tarn_event wait = {other.event, 2 * i + 1}, signal = {other.event, 2 * i + 2};
        if (i == WARM) fail_calls(FAILING_MEMORY, 0, 0); /* counts anew, none fails */
        rebind(&w, i % BUCKETS, i);
        require(
            tarn_session_submit_with(w.sessions[i % BUCKETS], 1,
                                     TARN_SUBMIT_OPTIONS(.waits = &wait, .waits_count = 1,
                                                         .signals = &signal, .signals_count = 1),
                                     &tickets[i % BUCKETS], &error),
            &error);
    }
    pthread_join(thread, NULL);
    for (uint32_t k = 0; k < BUCKETS; k++)
        require(tarn_session_wait(w.sessions[k], tickets[k], TARN_FOREVER, &error), &error);
    assert_int_equal(calls_made(FAILING_MEMORY), 0);
    tarn_host_event_destroy(other.event);
    close_world(&w);
}

static void the_host_allocates_nothing_in_a_steady_loop(void **state)
{
    (void)state;
    the_host(false);
    the_host(true);
}

/* ---- The stand-in for CUDA ---- */

static struct fake_control control;
static struct tarn_cuda_api api;

static int launch_on_stream(void *queue, void (*function)(void *argument), void *argument)
{
    return (int)api.LaunchHostFunc(queue, function, argument);
}

/* Another framework's: it fills inputs and takes outputs on a stream of its own. */
struct framework {
    struct world *world;
    tarn_cuda_stream stream;
    uint32_t filled, taken;
    unsigned char seen[WARM + ROUNDS][OUT];
};

static void fill_input(void *argument)
{
    struct framework *framework = argument;
    fill(framework->world->inputs[framework->filled % BUFFERS], framework->filled);
    framework->filled++;
}

static void take_output(void *argument)
{
    struct framework *framework = argument;
    memcpy(framework->seen[framework->taken], framework->world->outputs[framework->taken % BUFFERS],
           OUT);
    framework->taken++;
}

static uint64_t objects_made(void)
{
    static const char *entries[] = {"cudaMalloc",
                                    "cudaEventCreateWithFlags",
                                    "cudaStreamCreateWithPriority",
                                    "cudaMallocFromPoolAsync",
                                    "cudaHostRegister",
                                    "cudaHostAlloc"};
    uint64_t count = 0;
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++)
        count += control.calls(entries[i]);
    return count;
}

static void run_framework(struct framework *framework, bool by_events, void *const *events)
{
    struct world *w = framework->world;
    struct tarn_error error;
    uint64_t objects = 0;
    const struct tarn_event ready = {.event = events[0]}, done = {.event = events[1]};
    struct tarn_submit_options *options =
        by_events ? TARN_SUBMIT_OPTIONS(.waits = &ready, .waits_count = 1, .signals = &done,
                                        .signals_count = 1)
                  : TARN_SUBMIT_OPTIONS(.queue = framework->stream);
    for (uint32_t i = 0; i < WARM + ROUNDS; i++) {
        if (i == WARM) fail_calls(FAILING_MEMORY, 0, 0);
        if (i == WARM) objects = objects_made();
        api.LaunchHostFunc(framework->stream, fill_input, framework);
        if (by_events) api.EventRecord(events[0], framework->stream);
        rebind(w, i % BUCKETS, i);
        require(tarn_session_submit_with(w->sessions[i % BUCKETS], 1, options, NULL, &error),
                &error);
        if (by_events) api.StreamWaitEvent(framework->stream, events[1], 0);
        api.LaunchHostFunc(framework->stream, take_output, framework);
    }
    assert_int_equal(calls_made(FAILING_MEMORY), 0);
    assert_int_equal(objects_made(), objects);
    api.StreamSynchronize(framework->stream);
    for (uint32_t i = 0; i < WARM + ROUNDS; i++) {
        fill(w->inputs[i % BUFFERS], i);
        expect_round(w, i % BUCKETS, i, framework->seen[i]);
    }
}

static void stand_in_for_cuda(uint64_t seed, bool by_events, bool has_spaces)
{
    char text[256];
    struct world w;
    struct tarn_device device;
    struct tarn_error error;
    tarn_cuda_stream streams[3];
    tarn_cuda_event made[2];
    static struct framework framework;
    control.reset(&(struct fake_options){.seed = seed, .host_access = true});
    require(tarn_device_cuda_open(TARN_CUDA_OPTIONS(.library = FAKE_CUDART), &device, &error),
            &error);
    for (uint32_t i = 0; i < 3; i++)
        api.StreamCreateWithPriority(&streams[i], TARN_CUDA_STREAM_NON_BLOCKING, 0);
    for (uint32_t i = 0; i < 2; i++) api.EventCreateWithFlags(&made[i], TARN_CUDA_EVENT_NO_TIMING);
    void *events[] = {made[0], made[1]}, *adopted[] = {streams[0], NULL, streams[1]};
    open_world(&w, device, has_spaces, TARN_SESSION_OPTIONS(.queues = adopted));
    w.buckets.enqueue = launch_on_stream;
    framework = (struct framework){.world = &w, .stream = streams[2]};
    for (uint32_t i = 0; i < BUFFERS; i++) {
        api.Malloc((void **)&w.inputs[i], X_MAX);
        api.Malloc((void **)&w.outputs[i], OUT);
    }
    run_framework(&framework, by_events, events);
    close_world(&w);
    for (uint32_t i = 0; i < BUFFERS; i++) api.Free(w.inputs[i]), api.Free(w.outputs[i]);
    for (uint32_t i = 0; i < 3; i++) api.StreamDestroy(streams[i]);
    for (uint32_t i = 0; i < 2; i++) api.EventDestroy(made[i]);
    tarn_device_cuda_close(device);
    assert_int_equal(control.alive(), 0);
    assert_int_equal(control.violations(text), 0);
}

static void streams_of_the_callers_and_an_arena_make_nothing_in_a_steady_loop(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < (SANITIZED ? 4 : 16); seed++)
        stand_in_for_cuda(seed, seed % 2 > 0, seed / 2 % 2 > 0);
}

static int load(void **state)
{
    struct tarn_error error = {0};
    (void)state;
    if (!fake_control_load(FAKE_CUDART, &control)) return -1;
    return tarn_cuda_api_load(FAKE_CUDART, &api, &error) == TARN_OK ? 0 : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_host_allocates_nothing_in_a_steady_loop),
        cmocka_unit_test(streams_of_the_callers_and_an_arena_make_nothing_in_a_steady_loop),
    };
    return cmocka_run_group_tests(tests, load, NULL);
}
