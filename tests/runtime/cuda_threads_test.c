/* The CUDA device beside others who use CUDA in the process: frameworks that capture, threads with
 * other current devices or none, sessions on other GPUs, work that never ends. The stand-in says
 * what CUDA would refuse. */
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
#include "support/random_graph.h"
#include "support/unshared_plan.h"
#include "tarn.h"

enum way { DIRECT, CAPTURED, POOL, WAYS };

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

static void use_devices(int devices)
{
    control.reset(
        &(struct fake_options){.devices = devices, .workers = 4, .host_access = FAKE_HOST_ACCESS});
}

static void require(enum tarn_status status, const struct tarn_error *error)
{
    if (status) fail_msg("status %d: %s", (int)status, error->text);
}

static void assert_clean(void)
{
    char text[256];
    if (control.violations(text)) fail_msg("%s", text);
    assert_int_equal(control.alive(), 0);
}

static struct tarn_device open_gpu(uint32_t ordinal, enum way way)
{
    struct tarn_device device;
    struct tarn_error error;
    require(tarn_device_cuda_open(
                TARN_CUDA_OPTIONS(.ordinal = ordinal, .library = FAKE_CUDART, .pool = way == POOL),
                &device, &error),
            &error);
    return device;
}

static struct tarn_plan *make_plan(void)
{
    struct tarn_graph *graph = random_graph(&(struct random_graph_options){
        .seed = 7, .ops = 9, .streams = 3, .parameters = 2, .reach = 5, .workspace_share = 30});
    struct tarn_plan *plan = unshared_plan(graph, 64);
    tarn_graph_destroy(graph);
    return plan;
}

/* ---- A session's life in some thread ---- */

struct life {
    uint32_t ordinal;
    enum way way;
    struct tarn_device device;
    struct tarn_session *session;
    atomic_int wrong_devices; /* kernels that found another device current */
};

static void nothing(void *argument) { (void)argument; }

/* Enqueues as a kernel of a framework's would: by CUDA itself. */
static int kernel(void *user, const struct tarn_call *call)
{
    struct life *life = user;
    int current = -1;
    api.GetDevice(&current);
    if (current != (int)life->ordinal) atomic_fetch_add(&life->wrong_devices, 1);
    return (int)api.LaunchHostFunc(call->queue, nothing, NULL);
}

static void begin(struct life *life)
{
    struct tarn_error error;
    struct tarn_plan *plan = make_plan();
    bool captures = life->way == CAPTURED;
    life->device = open_gpu(life->ordinal, life->way);
    require(tarn_session_create(plan, life->device,
                                TARN_SESSION_OPTIONS(.capture = captures, .unroll = captures),
                                &life->session, &error),
            &error);
    tarn_session_bind_default(life->session, kernel, life);
    tarn_plan_destroy(plan);
}

static void work(struct life *life)
{
    struct tarn_error error;
    tarn_ticket ticket;
    unsigned char bytes[8] = {1};
    require(tarn_session_write(life->session, 0, bytes, 1, &error), &error);
    require(tarn_session_submit(life->session, 5, &ticket, &error), &error);
    require(tarn_session_wait(life->session, ticket, TARN_FOREVER, &error), &error);
    require(tarn_session_read(life->session, 0, bytes, 1, &error), &error);
}

static void *work_in_thread(void *life)
{
    work(life);
    return NULL;
}

static void end(struct life *life)
{
    tarn_session_destroy(life->session);
    tarn_device_cuda_close(life->device);
    assert_int_equal(atomic_load(&life->wrong_devices), 0);
}

static void join_thread(void *(*function)(void *), void *argument)
{
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, function, argument), 0);
    pthread_join(thread, NULL);
}

/* ---- Captures of others ---- */

struct framework {
    tarn_cuda_stream stream;
    atomic_int stage;
    unsigned ended;
};

static void begin_capture(struct framework *framework)
{
    assert_int_equal(api.StreamCreateWithPriority(&framework->stream, 1, 0), 0);
    assert_int_equal(api.StreamBeginCapture(framework->stream, TARN_CUDA_CAPTURE_GLOBAL), 0);
}

static void end_capture(struct framework *framework)
{
    tarn_cuda_graph graph;
    framework->ended = api.StreamEndCapture(framework->stream, &graph);
    if (!framework->ended) api.GraphDestroy(graph);
    api.StreamDestroy(framework->stream);
}

/* As torch.cuda.graph does by default. */
static void *capture(void *argument)
{
    struct framework *framework = argument;
    begin_capture(framework);
    atomic_store(&framework->stage, 1);
    while (atomic_load(&framework->stage) < 2) usleep(500);
    end_capture(framework);
    return NULL;
}

static void a_life_beside_a_global_capture_of_another_thread(void **state)
{
    (void)state;
    for (enum way way = 0; way < WAYS; way++) {
        struct framework framework = {0};
        struct life life = {.way = way};
        pthread_t thread;
        use_devices(1);
        assert_int_equal(pthread_create(&thread, NULL, capture, &framework), 0);
        while (atomic_load(&framework.stage) < 1) usleep(500);
        begin(&life);
        work(&life);
        end(&life);
        atomic_store(&framework.stage, 2);
        pthread_join(thread, NULL);
        assert_int_equal(framework.ended, 0);
        assert_clean();
    }
}

static void a_life_within_a_global_capture_of_its_own_thread(void **state)
{
    (void)state;
    for (enum way way = 0; way < WAYS; way++) {
        struct framework framework = {0};
        struct life life = {.way = way};
        use_devices(1);
        begin_capture(&framework);
        begin(&life);
        work(&life);
        end(&life);
        end_capture(&framework);
        assert_int_equal(framework.ended, 0);
        assert_clean();
    }
}

static void *ask_for_memory(void *failures)
{
    void *memory;
    unsigned code = api.Malloc(&memory, 64);
    if (code)
        atomic_fetch_add((atomic_int *)failures, 1);
    else
        api.Free(memory);
    return NULL;
}

static int kernel_beside_another_thread(void *user, const struct tarn_call *call)
{
    static atomic_int failures;
    atomic_store(&failures, 0);
    join_thread(ask_for_memory, &failures);
    return atomic_load(&failures) ? 1 : kernel(user, call);
}

/* Its own captures forbid nothing to threads that know nothing of them. */
static void a_capture_leaves_calls_of_other_threads_alone(void **state)
{
    (void)state;
    struct life life = {.way = CAPTURED};
    use_devices(1);
    begin(&life);
    tarn_session_bind_default(life.session, kernel_beside_another_thread, &life);
    work(&life);
    end(&life);
    assert_clean();
}

/* ---- Current devices ---- */

static void *look_at(void *argument)
{
    struct life *life = argument;
    uint64_t finished;
    struct tarn_error error;
    require(tarn_session_query(life->session, &finished, &error), &error);
    return NULL;
}

static void a_session_on_the_second_gpu_works_from_any_thread(void **state)
{
    (void)state;
    for (enum way way = 0; way < WAYS; way++) {
        struct life life = {.way = way, .ordinal = 1};
        use_devices(2);
        begin(&life);
        join_thread(work_in_thread, &life);
        join_thread(look_at, &life);
        work(&life);
        end(&life);
        assert_clean();
        assert_int_equal(control.contexts(), 1 << 1); /* nothing was asked of the first */
    }
}

static void a_thread_gets_back_the_device_and_the_mode_that_it_had(void **state)
{
    (void)state;
    for (int before = -1; before < 2; before++) { /* -1: no context */
        struct life life = {.ordinal = 1};
        tarn_cuda_context had = NULL, has = NULL;
        unsigned mode = TARN_CUDA_CAPTURE_THREAD_LOCAL;
        use_devices(2);
        if (before >= 0) {
            assert_int_equal(api.SetDevice(before), 0);
            assert_int_equal(api.ThreadExchangeStreamCaptureMode(&mode), 0);
        }
        api.CtxGetCurrent(&had);
        begin(&life);
        api.CtxGetCurrent(&has);
        assert_ptr_equal(has, had);
        work(&life);
        end(&life);
        api.CtxGetCurrent(&has);
        assert_ptr_equal(has, had);
        assert_int_equal(control.contexts(), before == 0 ? 3 : 2);
        if (before < 0) continue;
        assert_int_equal(api.ThreadExchangeStreamCaptureMode(&mode), 0);
        assert_int_equal(mode, TARN_CUDA_CAPTURE_THREAD_LOCAL);
    }
}

/* ---- Work of others that does not end ---- */

struct gate {
    atomic_int open;
    tarn_cuda_library library;
    tarn_cuda_kernel kernel; /* ends when `open` is set */
};

static void load_gate(struct gate *gate)
{
    atomic_store(&gate->open, 0);
    assert_int_equal(api.LibraryLoadData(&gate->library, "", NULL, NULL, 0, NULL, NULL, 0), 0);
    assert_int_equal(api.LibraryGetKernel(&gate->kernel, gate->library, "fake_gate"), 0);
}

static unsigned launch_gate(struct gate *gate, tarn_cuda_stream stream)
{
    atomic_int *open = &gate->open;
    const struct tarn_cuda_launch launch = {
        .blocks = {1, 1, 1}, .threads = {1, 1, 1}, .stream = stream};
    return api.LaunchKernelExC((const struct cudaLaunchConfig_st *)&launch, gate->kernel,
                               (void *[]){&open});
}

/* What waited for it is over soon. */
static void open_gate(struct gate *gate)
{
    atomic_store(&gate->open, 1);
    api.LibraryUnload(gate->library);
}

/* cudaFree, and what ends pools and libraries, waits for the gate. A destroy or a close that did so
 * too would never return. */
static void nothing_waits_for_work_of_others_that_does_not_end(void **state)
{
    (void)state;
    static struct gate gate;
    for (enum way way = 0; way < WAYS; way++) {
        struct life life = {.way = way};
        struct tarn_error error;
        tarn_cuda_stream stream;
        void *host;
        use_devices(1);
        load_gate(&gate);
        begin(&life);
        assert_int_equal(api.StreamCreateWithPriority(&stream, 1, 0), 0);
        assert_int_equal(launch_gate(&gate, stream), 0);
        work(&life);
        require(tarn_session_host_memory_create(life.session, 4096, &host, &error), &error);
        tarn_session_host_memory_destroy(life.session, host, 4096);
        tarn_session_destroy(life.session);
        struct tarn_device second = open_gpu(0, way); /* nor opening one */
        tarn_device_cuda_close(second);
        tarn_device_cuda_close(life.device);
        assert_true(control.alive() > 1);
        open_gate(&gate); /* and then all of it is given back */
        assert_int_equal(api.StreamSynchronize(stream), 0);
        assert_int_equal(api.StreamDestroy(stream), 0);
        for (int i = 0; i < 20000 && control.alive() > 0; i++) usleep(500);
        assert_clean();
    }
}

/* A kernel that does not end, on the first stream; the others' do nothing. */
static int launch_gate_on_first(void *user, const struct tarn_call *call)
{
    return (int)(call->op == 0 ? launch_gate(user, call->queue)
                               : api.LaunchHostFunc(call->queue, nothing, NULL));
}

/* Of two sessions one is given up, its kernel hangs; the other is used and destroyed meanwhile. */
static void a_session_ends_beside_one_whose_kernel_hangs(void **state)
{
    (void)state;
    static struct gate gate;
    for (enum way way = 0; way < WAYS; way++) {
        struct life hung = {.way = way}, sound = {.way = way};
        struct tarn_error error;
        tarn_ticket ticket;
        use_devices(1);
        load_gate(&gate);
        begin(&hung);
        begin(&sound);
        tarn_session_bind_default(hung.session, launch_gate_on_first, &gate);
        require(tarn_session_submit(hung.session, 1, &ticket, &error), &error);
        assert_int_equal(tarn_session_wait(hung.session, ticket, 20000000, &error), TARN_DEADLINE);
        work(&sound);
        assert_int_equal(tarn_session_destroy(hung.session), TARN_DEADLINE);
        end(&sound);
        assert_int_equal(tarn_session_destroy_within(hung.session, 0, &error), TARN_DEADLINE);
        open_gate(&gate);
        end(&hung);
        for (int i = 0; i < 20000 && control.alive() > 0; i++) usleep(500);
        assert_clean();
    }
}

/* ---- Submits behind what only the caller can let go on ---- */

enum { CHAIN_OPS = 1500, PATIENCE_NS = 100000000 };

struct behind {
    struct tarn_device device;
    struct tarn_session *session;
    struct gate gate;
    tarn_cuda_stream stream; /* the caller's; the gate is on it */
    tarn_cuda_event event;   /* behind the gate */
    tarn_cuda_library library;
    tarn_cuda_kernel spin;
};

static int launch_spin(void *user, const struct tarn_call *call)
{
    struct behind *behind = user;
    uint64_t duration_ns = 1;
    const struct tarn_cuda_launch launch = {
        .blocks = {1, 1, 1}, .threads = {1, 1, 1}, .stream = call->queue};
    return (int)api.LaunchKernelExC((const struct cudaLaunchConfig_st *)&launch, behind->spin,
                                    (void *[]){&duration_ns});
}

/* More kernels on one stream than a queue takes. */
static struct tarn_plan *make_chain(void)
{
    struct tarn_graph *graph;
    struct tarn_plan *plan;
    struct tarn_error error;
    struct tarn_builder *b = tarn_builder_create("chain");
    tarn_stream s = tarn_builder_stream(b, "s");
    tarn_tensor last = TARN_NONE;
    for (uint32_t i = 0; i < CHAIN_OPS; i++) {
        tarn_tensor next = tarn_builder_tensor(b, &(struct tarn_tensor_info){.size = 64});
        tarn_builder_op(b, &(struct tarn_op_info){
                               .stream = s, .inputs = {&last, i > 0}, .outputs = {&next, 1}});
        last = next;
    }
    require(tarn_builder_finish(b, &graph, &error), &error);
    require(tarn_plan_create(graph, NULL, &plan, &error), &error);
    tarn_graph_destroy(graph);
    return plan;
}

static void begin_behind(struct behind *behind, struct tarn_plan *plan,
                         const struct tarn_session_options *options)
{
    struct tarn_error error;
    use_devices(1);
    *behind = (struct behind){.device = open_gpu(0, DIRECT)};
    load_gate(&behind->gate);
    assert_int_equal(api.LibraryLoadData(&behind->library, "", NULL, NULL, 0, NULL, NULL, 0), 0);
    assert_int_equal(api.LibraryGetKernel(&behind->spin, behind->library, "tarn_spin"), 0);
    assert_int_equal(api.StreamCreateWithPriority(&behind->stream, 1, 0), 0);
    assert_int_equal(api.EventCreateWithFlags(&behind->event, TARN_CUDA_EVENT_NO_TIMING), 0);
    assert_int_equal(launch_gate(&behind->gate, behind->stream), 0);
    assert_int_equal(api.EventRecord(behind->event, behind->stream), 0);
    require(tarn_session_create(plan, behind->device, options, &behind->session, &error), &error);
    tarn_session_bind_default(behind->session, launch_spin, behind);
}

/* by_queue: the caller's queue is what is waited for, instead of its event. */
static enum tarn_status submit_behind(struct behind *behind, uint64_t iterations, bool by_queue,
                                      struct tarn_error *error)
{
    const struct tarn_event wait = {.event = behind->event};
    tarn_ticket ticket;
    enum tarn_status status = tarn_session_submit_with(
        behind->session, iterations,
        TARN_SUBMIT_OPTIONS(.waits = by_queue ? NULL : &wait, .waits_count = !by_queue,
                            .queue = by_queue ? behind->stream : NULL),
        &ticket, error);
    return status ? status : tarn_session_wait(behind->session, ticket, TARN_FOREVER, error);
}

static void end_behind(struct behind *behind)
{
    open_gate(&behind->gate);
    assert_int_equal(tarn_session_destroy_within(behind->session, TARN_FOREVER, NULL), TARN_OK);
    assert_int_equal(api.StreamSynchronize(behind->stream), 0);
    assert_int_equal(api.EventDestroy(behind->event), 0);
    assert_int_equal(api.StreamDestroy(behind->stream), 0);
    assert_int_equal(api.LibraryUnload(behind->library), 0);
    tarn_device_cuda_close(behind->device);
    assert_clean();
}

/* It fills a queue, or has more iterations than may be under way. */
static void a_submit_behind_a_closed_event_gives_up(void **state)
{
    (void)state;
    struct tarn_plan *plans[2] = {make_chain(), make_plan()};
    for (uint32_t i = 0; i < 4; i++) {
        struct behind behind;
        struct tarn_error error;
        tarn_ticket ticket;
        begin_behind(&behind, plans[i / 2], TARN_SESSION_OPTIONS(.patience_ns = PATIENCE_NS));
        assert_int_equal(submit_behind(&behind, i < 2 ? 1 : 20, i % 2, &error), TARN_DEADLINE);
        assert_non_null(strstr(error.text, "the events or the queue that its options name"));
        assert_int_equal(tarn_session_submit(behind.session, 1, &ticket, &error), TARN_USAGE);
        end_behind(&behind);
    }
    for (uint32_t i = 0; i < 2; i++) tarn_plan_destroy(plans[i]);
}

static void *open_soon(void *argument)
{
    struct behind *behind = argument;
    usleep(20000);
    atomic_store(&behind->gate.open, 1);
    return NULL;
}

static void *cancel_soon(void *argument)
{
    usleep(20000);
    tarn_session_cancel(((struct behind *)argument)->session);
    return NULL;
}

static void a_submit_behind_an_event_that_another_thread_lets_go_on_ends(void **state)
{
    (void)state;
    struct tarn_plan *plan = make_chain();
    for (uint32_t i = 0; i < 4; i++) {
        struct behind behind;
        struct tarn_error error;
        pthread_t thread;
        begin_behind(&behind, plan, NULL);
        pthread_create(&thread, NULL, i / 2 ? cancel_soon : open_soon, &behind);
        assert_int_equal(submit_behind(&behind, 1, i % 2, &error),
                         i / 2 ? TARN_INTERRUPTED : TARN_OK);
        pthread_join(thread, NULL);
        end_behind(&behind);
    }
    tarn_plan_destroy(plan);
}

/* Kernels of a captured block are one for the queue. */
static void a_captured_submit_returns_before_its_event_is_reached(void **state)
{
    (void)state;
    struct tarn_plan *plan = make_chain();
    struct behind behind;
    struct tarn_error error;
    tarn_ticket ticket;
    begin_behind(&behind, plan, TARN_SESSION_OPTIONS(.capture = true));
    const struct tarn_event wait = {.event = behind.event};
    require(tarn_session_submit_with(behind.session, 2,
                                     TARN_SUBMIT_OPTIONS(.waits = &wait, .waits_count = 1), &ticket,
                                     &error),
            &error);
    atomic_store(&behind.gate.open, 1);
    require(tarn_session_wait(behind.session, ticket, TARN_FOREVER, &error), &error);
    end_behind(&behind);
    tarn_plan_destroy(plan);
}

/* ---- Priorities ---- */

static void captured_sessions_keep_the_priorities_of_their_streams(void **state)
{
    (void)state;
    const uint32_t stream = 1;
    const struct tarn_list urgent = {&stream, 1};
    struct tarn_error error;
    tarn_ticket ticket;
    struct life life = {0};
    struct tarn_plan *plan = make_plan();
    use_devices(1);
    life.device = open_gpu(0, DIRECT);
    require(tarn_session_create(plan, life.device,
                                TARN_SESSION_OPTIONS(.capture = true, .urgent = &urgent),
                                &life.session, &error),
            &error);
    tarn_session_bind_default(life.session, kernel, &life);
    require(tarn_session_submit(life.session, 1, &ticket, &error), &error);
    require(tarn_session_wait(life.session, ticket, TARN_FOREVER, &error), &error);
    assert_int_equal(control.instantiate_flags(), TARN_CUDA_NODE_PRIORITIES);
    tarn_plan_destroy(plan);
    end(&life);
    assert_clean();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_life_beside_a_global_capture_of_another_thread),
        cmocka_unit_test(a_life_within_a_global_capture_of_its_own_thread),
        cmocka_unit_test(a_capture_leaves_calls_of_other_threads_alone),
        cmocka_unit_test(a_session_on_the_second_gpu_works_from_any_thread),
        cmocka_unit_test(a_thread_gets_back_the_device_and_the_mode_that_it_had),
        cmocka_unit_test(nothing_waits_for_work_of_others_that_does_not_end),
        cmocka_unit_test(a_session_ends_beside_one_whose_kernel_hangs),
        cmocka_unit_test(a_submit_behind_a_closed_event_gives_up),
        cmocka_unit_test(a_submit_behind_an_event_that_another_thread_lets_go_on_ends),
        cmocka_unit_test(a_captured_submit_returns_before_its_event_is_reached),
        cmocka_unit_test(captured_sessions_keep_the_priorities_of_their_streams),
    };
    return cmocka_run_group_tests_name("cuda_threads", tests, load, NULL);
}
