/* Threads and memory that are bound, on this machine, which an XML file of hwloc's describes as two
 * nodes of one processor each, with a GPU on each node. What the system is asked for is recorded:
 * it need not have two nodes. The order of the tests matters, as a process reads its machine once.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fake_cudart/fake_cudart.h"
#include "runtime/state/machine.h"
#include "support/session_calls.h"
#include "tarn.h"
#include "tarn/cuda.h"

enum { STREAMS = 2, MPOL_PREFERRED = 1, MPOL_PREFERRED_MANY = 5, CALLS_MAX = 64 };

static struct tarn_plan *plan;
static struct fake_control control;

/* ---- What is called ---- */

static atomic_uint readings;

/* Of a machine of two nodes: without its PCI devices, and with them. */
enum { READINGS = 2 };

struct hwloc_topology;
int __real_hwloc_topology_init(struct hwloc_topology **topology);
int __wrap_hwloc_topology_init(struct hwloc_topology **topology)
{
    atomic_fetch_add(&readings, 1);
    return __real_hwloc_topology_init(topology);
}

/* A call of mbind, or of set_mempolicy, whose `memory` is 0. */
struct policy_call {
    uintptr_t memory, size;
    int mode;
    uint64_t nodes;
    uint64_t pinned; /* calls of cudaHostAlloc before it */
};

static struct policy_call policy_calls[CALLS_MAX];
static uint32_t policy_calls_count;

static void record(struct policy_call call)
{
    if (control.calls) call.pinned = control.calls("cudaHostAlloc");
    assert_true(policy_calls_count < CALLS_MAX);
    policy_calls[policy_calls_count++] = call;
}

long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...)
{
    long a[6];
    va_list list;
    va_start(list, number);
    for (int i = 0; i < 6; i++) a[i] = va_arg(list, long);
    va_end(list);
    if (number == SYS_mbind)
        record((struct policy_call){.memory = (uintptr_t)a[0],
                                    .size = (uintptr_t)a[1],
                                    .mode = (int)a[2],
                                    .nodes = *(const uint64_t *)a[3]});
    if (number == SYS_set_mempolicy)
        record((struct policy_call){.mode = (int)a[0], .nodes = *(const uint64_t *)a[1]});
    if (number == SYS_get_mempolicy) {
        *(int *)a[0] = 0; /* the default */
        *(uint64_t *)a[1] = 0;
    }
    if (number == SYS_mbind || number == SYS_set_mempolicy || number == SYS_get_mempolicy) return 0;
    return __real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

/* ---- The subject: a graph of two streams, and kernels that tell where they may run ---- */

static int set_up(void **state)
{
    (void)state;
    struct tarn_builder *b = tarn_builder_create("bound");
    struct tarn_graph *graph;
    for (uint32_t s = 0; s < STREAMS; s++) {
        tarn_stream stream = tarn_builder_stream(b, s ? "second" : "first");
        tarn_tensor x =
            tarn_builder_tensor(b, &(struct tarn_tensor_info){.name = s ? "y" : "x", .size = 4096});
        tarn_builder_op(b, &(struct tarn_op_info){.stream = stream, .outputs = TARN_TENSORS(x)});
    }
    if (tarn_builder_finish(b, &graph, NULL) || tarn_plan_create(graph, NULL, &plan, NULL))
        return -1;
    tarn_graph_destroy(graph);
    return fake_control_load(FAKE_CUDART, &control) ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    tarn_plan_destroy(plan);
    return 0;
}

static int forget_calls(void **state)
{
    (void)state;
    policy_calls_count = 0;
    return 0;
}

struct seen {
    cpu_set_t mask[STREAMS];
    void *output[STREAMS];
    atomic_uint arrived;
};

/* Waits for the other stream, if there are workers for both, so that each worker runs one. */
static int look(void *user, const struct tarn_call *call)
{
    struct seen *seen = user;
    seen->output[call->stream] = call->outputs[0];
    if (sched_getaffinity(0, sizeof(cpu_set_t), &seen->mask[call->stream])) return 1;
    atomic_fetch_add(&seen->arrived, 1);
    return 0;
}

static int look_together(void *user, const struct tarn_call *call)
{
    struct seen *seen = user;
    int code = look(user, call);
    while (atomic_load(&seen->arrived) < STREAMS) sched_yield();
    return code;
}

static struct seen run(struct tarn_host_options *options, struct tarn_arena *arena)
{
    struct seen seen = {.arrived = 0};
    struct tarn_error error;
    struct tarn_session *session;
    require(tarn_session_create(plan, tarn_device_host(options),
                                TARN_SESSION_OPTIONS(.arena = arena), &session, &error),
            &error);
    tarn_session_bind_default(session, options->workers == 1 ? look : look_together, &seen);
    run_iterations(session, 1);
    require(tarn_session_destroy(session), &error);
    return seen;
}

static bool is_only(const cpu_set_t *mask, size_t cpu)
{
    return CPU_COUNT(mask) == 1 && CPU_ISSET(cpu, mask);
}

static bool are_apart(const struct seen *seen)
{
    return (is_only(&seen->mask[0], 0) && is_only(&seen->mask[1], 1)) ||
           (is_only(&seen->mask[0], 1) && is_only(&seen->mask[1], 0));
}

static bool are_free(const struct seen *seen)
{
    cpu_set_t own;
    sched_getaffinity(0, sizeof own, &own);
    return CPU_EQUAL(&seen->mask[0], &own) && CPU_EQUAL(&seen->mask[1], &own);
}

/* Runs in a forked child; the test fails if it returns false or does not end. */
static void assert_in_child(bool (*work)(void))
{
    int status = 0;
    pid_t child = fork();
    if (child == 0) _exit(work() ? 0 : 1);
    assert_true(child > 0 && waitpid(child, &status, 0) == child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* ---- Reading ---- */

static bool runs_unbound(void)
{
    struct seen seen = run(TARN_HOST_OPTIONS(.workers = 2, .binding = TARN_BIND_CORE), NULL);
    return are_free(&seen) && atomic_load(&readings) == 0 && policy_calls_count == 0 &&
           tarn_host_cores() >= 2;
}

static void a_child_of_a_process_that_has_not_read_never_calls_hwloc(void **state)
{
    (void)state;
    assert_int_equal(atomic_load(&readings), 0); /* planning needs no machine */
    assert_in_child(runs_unbound);
}

static void *read_cores(void *cores)
{
    *(uint32_t *)cores = tarn_host_cores();
    return NULL;
}

static void threads_that_come_together_read_once(void **state)
{
    (void)state;
    pthread_t threads[8];
    uint32_t cores[8];
    for (int i = 0; i < 8; i++) pthread_create(&threads[i], NULL, read_cores, &cores[i]);
    for (int i = 0; i < 8; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < 8; i++) assert_int_equal(cores[i], 2);
    assert_int_equal(atomic_load(&readings), READINGS);
}

static bool runs_bound(void)
{
    struct seen seen = run(TARN_HOST_OPTIONS(.workers = 2), NULL);
    return are_apart(&seen) && atomic_load(&readings) == READINGS && tarn_host_cores() == 2;
}

static void a_child_goes_on_with_what_was_read(void **state)
{
    (void)state;
    assert_true(runs_bound());
    assert_in_child(runs_bound);
    assert_int_equal(atomic_load(&readings), READINGS);
}

/* ---- Workers ---- */

static void workers_are_bound_as_the_option_says(void **state)
{
    (void)state;
    static const enum tarn_worker_binding apart[] = {TARN_BIND_AUTO, TARN_BIND_NODE,
                                                     TARN_BIND_CACHE, TARN_BIND_CORE};
    for (int i = 0; i < 4; i++) {
        struct seen seen = run(TARN_HOST_OPTIONS(.workers = 2, .binding = apart[i]), NULL);
        assert_true(are_apart(&seen));
    }
    struct seen seen = run(TARN_HOST_OPTIONS(.workers = 2, .binding = TARN_BIND_NONE), NULL);
    assert_true(are_free(&seen));
    seen = run(TARN_HOST_OPTIONS(.workers = 2, .binding = TARN_BIND_NONE), NULL);
    assert_true(are_free(&seen));
    seen = run(TARN_HOST_OPTIONS(.workers = 1), NULL); /* on the node of the first core */
    assert_true(is_only(&seen.mask[0], 0) && is_only(&seen.mask[1], 0));
}

/* The caller may use processor 1 alone: both workers are there. */
static bool runs_on_the_second(void)
{
    cpu_set_t second;
    CPU_ZERO(&second);
    CPU_SET(1, &second);
    if (sched_setaffinity(0, sizeof second, &second)) return false;
    struct seen seen = run(TARN_HOST_OPTIONS(.workers = 2, .binding = TARN_BIND_CORE), NULL);
    return is_only(&seen.mask[0], 1) && is_only(&seen.mask[1], 1) && tarn_host_cores() == 1;
}

static void the_callers_affinity_is_obeyed(void **state)
{
    (void)state;
    assert_in_child(runs_on_the_second);
}

static int refuse(void *user, void (*task)(void *), void *argument)
{
    (void)user, (void)task, (void)argument;
    return 1;
}

static void bindings_that_cannot_be_are_refused(void **state)
{
    (void)state;
    struct tarn_host_options *wrong[] = {
        TARN_HOST_OPTIONS(.binding = TARN_BIND_NODE, .execute = refuse),
        TARN_HOST_OPTIONS(.binding = (enum tarn_worker_binding)(TARN_BIND_CORE + 1)),
        TARN_HOST_OPTIONS(.binding = (enum tarn_worker_binding) - 1)};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct tarn_session *session;
        struct tarn_error error;
        assert_int_equal(
            tarn_session_create(plan, tarn_device_host(wrong[i]), NULL, &session, &error),
            TARN_USAGE);
        assert_says(&error, "binding");
    }
}

/* ---- Memory ---- */

/* Pages of `memory` were asked for, last, on these nodes. */
static void assert_asked(const void *memory, uint64_t nodes)
{
    assert_true(policy_calls_count > 0);
    const struct policy_call *call = &policy_calls[policy_calls_count - 1];
    assert_true((uintptr_t)memory - call->memory < call->size);
    assert_true(call->mode == MPOL_PREFERRED_MANY || call->mode == MPOL_PREFERRED);
    assert_int_equal(call->nodes, nodes);
}

static void the_arena_lies_on_the_node_of_its_workers(void **state)
{
    (void)state;
    struct seen seen = run(TARN_HOST_OPTIONS(.workers = 1), NULL);
    assert_asked(seen.output[0], 1);
    assert_asked(seen.output[1], 1);
    policy_calls_count = 0;
    run(TARN_HOST_OPTIONS(.workers = 1, .binding = TARN_BIND_NONE), NULL);
    run(TARN_HOST_OPTIONS(.workers = 2), NULL); /* on all nodes: nothing to ask for */
    assert_int_equal(policy_calls_count, 0);
}

static void an_arena_that_sessions_share_lies_there_too(void **state)
{
    (void)state;
    struct tarn_error error;
    struct tarn_arena *arena;
    struct tarn_host_options *options = TARN_HOST_OPTIONS(.workers = 1);
    require(tarn_arena_create(&plan, 1, tarn_device_host(options), NULL, &arena, &error), &error);
    struct seen seen = run(options, arena);
    assert_asked(seen.output[0], 1);
    assert_int_equal(tarn_arena_destroy(arena), TARN_OK);
}

static void memory_of_the_callers_is_left_alone(void **state)
{
    (void)state;
    struct tarn_error error;
    struct tarn_memory_needs needs;
    struct tarn_session *session;
    struct tarn_device host = tarn_device_host(TARN_HOST_OPTIONS(.workers = 1));
    require(tarn_session_needs(plan, host, NULL, 0, &needs, &error), &error);
    void *memory = aligned_alloc(needs.alignment, (needs.size + needs.alignment - 1) /
                                                      needs.alignment * needs.alignment);
    require(tarn_session_create(plan, host,
                                TARN_SESSION_OPTIONS(.memory = memory, .memory_size = needs.size),
                                &session, &error),
            &error);
    require(tarn_session_destroy(session), &error);
    free(memory);
    assert_int_equal(policy_calls_count, 0);
}

static void pinned_memory_lies_beside_the_gpu(void **state)
{
    (void)state;
    static const struct tarn_memory_space pinned = {.name = "host", .kind = TARN_SPACE_PINNED};
    for (uint32_t ordinal = 0; ordinal < 2; ordinal++) {
        struct tarn_device device;
        struct tarn_error error;
        void *memory;
        policy_calls_count = 0;
        control.reset(&(struct fake_options){.devices = 2});
        require(tarn_device_cuda_open(TARN_CUDA_OPTIONS(.ordinal = ordinal, .library = FAKE_CUDART),
                                      &device, &error),
                &error);
        const struct tarn_device_table *table = device.table;
        assert_int_equal(table->host_memory_create(device.self, 4 << 20, &memory), 0);
        assert_int_equal(policy_calls_count, 1);
        assert_asked(memory, UINT64_C(1) << ordinal);
        table->host_memory_destroy(device.self, memory, 4 << 20);
        assert_int_equal(table->space_create(device.self, &pinned, 4096, &memory), 0);
        assert_int_equal(policy_calls_count, 3); /* preferred for one call, then as before */
        assert_int_equal(policy_calls[1].nodes, UINT64_C(1) << ordinal);
        assert_int_equal(policy_calls[1].pinned, 0);
        assert_int_equal(policy_calls[2].pinned, 1);
        assert_int_equal(policy_calls[2].mode, 0);
        assert_int_equal(policy_calls[2].nodes, 0);
        table->space_destroy(device.self, &pinned, memory, 4096);
        tarn_device_cuda_close(device);
    }
    assert_int_equal(atomic_load(&readings), READINGS);
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup(test, forget_calls)
    const struct CMUnitTest tests[] = {
        TEST(a_child_of_a_process_that_has_not_read_never_calls_hwloc),
        TEST(threads_that_come_together_read_once),
        TEST(a_child_goes_on_with_what_was_read),
        TEST(workers_are_bound_as_the_option_says),
        TEST(the_callers_affinity_is_obeyed),
        TEST(bindings_that_cannot_be_are_refused),
        TEST(the_arena_lies_on_the_node_of_its_workers),
        TEST(an_arena_that_sessions_share_lies_there_too),
        TEST(memory_of_the_callers_is_left_alone),
        TEST(pinned_memory_lies_beside_the_gpu),
    };
    cpu_set_t mask;
    bool has_both =
        sched_getaffinity(0, sizeof mask, &mask) == 0 && CPU_ISSET(0, &mask) && CPU_ISSET(1, &mask);
    if (!has_both) {
        print_message("1..0 # SKIP needs processors 0 and 1\n");
        return 0;
    }
    setenv("HWLOC_XMLFILE", TARN_SOURCE_DIR "/tests/data/machines/two_processors_two_nodes.xml", 1);
    setenv("HWLOC_THISSYSTEM", "1", 1);
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
