/* Every call of the CUDA runtime fails once: a small session's whole life is repeated, and each
 * time the next call of an entry point fails, until none is left that did not. Whatever failed, the
 * status is a documented one, the session can be destroyed, nothing is left over and nothing dead
 * is used (the stand-in sees handles, the address sanitizer memory). Then the same with a sticky
 * error, after which every call fails.
 *
 * What a session must give up, because the device no longer tells whether it still works on it, is
 * kept reachable here, so that leaks are those that nobody meant. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake_cudart/fake_cudart.h"
#include "runtime/cuda/api.h"
#include "support/random_graph.h"
#include "support/unshared_plan.h"
#include "tarn.h"

enum { LIVES_MAX = 20000, UNROLL = 2, ITERATIONS = 3 };

/* TRACED: with stamps and through host memory that the device knows. */
enum way { DIRECT, CAPTURED, POOL, CHECKED, CHECKED_CAPTURED, TRACED, WAYS };

#define PATIENCE_NS UINT64_C(60000000000) /* what takes longer hangs */

static struct fake_control control;

static const char *const entries[] = {
#define NAME(name, parameters) "cuda" #name,
#define DRIVER_NAME(name, parameters) "cu" #name,
    TARN_CUDA_ENTRIES(NAME) TARN_CUDA_LOOKUP_ENTRIES(NAME) TARN_CUDA_LIBRARY_ENTRIES(NAME)
        TARN_CUDA_DRIVER_ENTRIES(DRIVER_NAME)
#undef NAME
#undef DRIVER_NAME
            "work"};
#define ENTRIES (sizeof entries / sizeof *entries)

/* Around every other call: of these a few are enough. */
static const char *const surrounding[] = {"cudaThreadExchangeStreamCaptureMode", "cuCtxGetCurrent",
                                          "cuCtxPopCurrent", "cuCtxPushCurrent"};

/* Calls without which everything goes on: ends of things, and what is good to have. */
static const char *const dispensable[] = {"cuCtxGetCurrent",
                                          "cuCtxPopCurrent",
                                          "cuCtxPushCurrent",
                                          "cuDevicePrimaryCtxRelease",
                                          "cudaThreadExchangeStreamCaptureMode",
                                          "cudaDeviceGetPCIBusId",
                                          "cudaDeviceGetAttribute",
                                          "cudaDriverGetVersion",
                                          "cudaEventDestroy",
                                          "cudaFree",
                                          "cudaFreeAsync",
                                          "cudaGraphDestroy",
                                          "cudaGraphExecDestroy",
                                          "cudaHostUnregister",
                                          "cudaLibraryGetKernel",
                                          "cudaLibraryLoadData",
                                          "cudaLibraryUnload",
                                          "cudaMemPoolDestroy",
                                          "cudaRuntimeGetVersion",
                                          "cudaStreamDestroy"};

/* One life. */
struct life {
    enum way way;
    struct tarn_device device;
    struct tarn_plan *plan;
    struct tarn_session *session;
    atomic_int done;
    uint64_t alive_opened; /* objects that the device itself has */
};

static struct life *kept[LIVES_MAX];
static uint32_t kept_count;

static struct tarn_plan *make_plan(void)
{
    struct tarn_graph *graph = random_graph(&(struct random_graph_options){
        .seed = 7, .ops = 7, .streams = 3, .parameters = 2, .reach = 5, .workspace_share = 30});
    struct tarn_plan *plan = unshared_plan(graph, 64);
    tarn_graph_destroy(graph);
    return plan;
}

static void count(void *done) { atomic_fetch_add((atomic_int *)done, 1); }

static int kernel(void *user, const struct tarn_call *call)
{
    struct life *life = user;
    const struct tarn_device *device = &life->device;
    return device->table->launch(device->self, call->queue, count, &life->done);
}

/* A byte there and back through memory from which the device copies fastest. */
static enum tarn_status copy_and_trace(struct life *life, struct tarn_error *error)
{
    void *bytes;
    enum tarn_status status = tarn_session_host_memory_create(life->session, 4096, &bytes, error);
    if (status) return status;
    memset(bytes, 1, 4096);
    status = tarn_session_write(life->session, 0, bytes, 1, error);
    if (!status) status = tarn_session_read(life->session, 0, bytes, 1, error);
    tarn_session_host_memory_destroy(life->session, bytes, 4096);
    if (!status) status = tarn_session_save_trace(life->session, "/dev/null", error);
    return status;
}

static enum tarn_status work(struct life *life, struct tarn_error *error)
{
    unsigned char bytes[16] = {1};
    tarn_ticket ticket;
    tarn_session_bind_default(life->session, kernel, life);
    enum tarn_status status = tarn_session_write(life->session, 0, bytes, 1, error);
    if (!status) status = tarn_session_submit(life->session, ITERATIONS, &ticket, error);
    if (!status) status = tarn_session_wait(life->session, ticket, PATIENCE_NS, error);
    if (!status) status = tarn_session_read(life->session, 0, bytes, 1, error);
    if (!status && life->way == TRACED) status = copy_and_trace(life, error);
    return status;
}

static enum tarn_status open_device(struct life *life, struct tarn_error *error)
{
    enum tarn_status status = tarn_device_cuda_open(
        TARN_CUDA_OPTIONS(.library = FAKE_CUDART, .pool = life->way == POOL), &life->device, error);
    life->alive_opened = control.alive();
    return status;
}

static enum tarn_status live(struct life *life, struct tarn_error *error)
{
    bool captured = life->way == CAPTURED || life->way == CHECKED_CAPTURED;
    bool checked = life->way == CHECKED || life->way == CHECKED_CAPTURED;
    enum tarn_status status = open_device(life, error);
    if (status) return status;
    status = tarn_session_create(
        life->plan, life->device,
        TARN_SESSION_OPTIONS(.capture = captured, .unroll = captured ? UNROLL : 0,
                             .flight = life->way == TRACED ? 8 : 0, .stamps = true),
        &life->session, error);
    if (status) return status;
    if (!checked) return work(life, error);
    return tarn_session_check(life->session, TARN_CHECK_OPTIONS(.iterations = ITERATIONS), NULL,
                              error);
}

static bool is_among(const char *entry, const char *const *names, size_t count)
{
    while (count > 0 && strcmp(names[count - 1], entry) != 0) count--;
    return count > 0;
}

static bool is_dispensable(const char *entry)
{
    return is_among(entry, dispensable, sizeof dispensable / sizeof *dispensable);
}

static void assert_documented(const struct life *life, const char *entry, uint64_t calls,
                              unsigned code, enum tarn_status status,
                              const struct tarn_error *error)
{
    bool documented = status == TARN_DEVICE || (status == TARN_SYSTEM && code == 2);
    if (!control.has_failed()) documented = status == TARN_OK;
    if (!documented && !(status == TARN_OK && is_dispensable(entry)))
        fail_msg("way %d, %s, call %llu: status %d: %s", (int)life->way, entry,
                 (unsigned long long)calls, (int)status, error->text);
    if (status && (strlen(error->text) < 10 || error->device_code != (int)code))
        fail_msg("way %d, %s, call %llu: code %d in '%s'", (int)life->way, entry,
                 (unsigned long long)calls, error->device_code, error->text);
}

/* Nothing is left over, unless the device has stopped for good, or the session's own destruction
 * could not find out whether it has ended. */
static void end(struct life *life, const char *entry, uint64_t calls, bool sticky)
{
    char text[256];
    bool failed_before = control.has_failed();
    tarn_session_destroy(life->session);
    tarn_plan_destroy(life->plan);
    bool gave_up = control.alive() > life->alive_opened;
    if (!gave_up) tarn_device_cuda_close(life->device);
    uint64_t left = control.alive();
    bool may_give_up = control.has_failed() && (sticky || !failed_before);
    if (left > 0 && !may_give_up)
        fail_msg("way %d, %s, call %llu: %llu objects are left", (int)life->way, entry,
                 (unsigned long long)calls, (unsigned long long)left);
    uint64_t violations = control.violations(text);
    if (violations)
        fail_msg("way %d, %s, call %llu: %llu violations: %s", (int)life->way, entry,
                 (unsigned long long)calls, (unsigned long long)violations, text);
}

/* Lives once with that call failing; false when there was no such call. */
static bool live_with_failure(enum way way, const char *entry, uint64_t calls, unsigned code,
                              bool sticky)
{
    struct life *life = calloc(1, sizeof *life);
    struct tarn_error error = {0};
    assert_non_null(life);
    kept[kept_count++] = life;
    life->way = way;
    life->plan = make_plan();
    control.reset(&(struct fake_options){.seed = calls, .host_access = FAKE_HOST_ACCESS});
    control.inject(entry, calls, code, sticky);
    enum tarn_status status = live(life, &error);
    assert_documented(life, entry, calls, code, status, &error);
    end(life, entry, calls, sticky);
    return control.has_failed();
}

/* Work that fails on the device is always sticky. */
static void fail_every_call(enum way way, unsigned code, bool sticky)
{
    for (size_t i = 0; i < ENTRIES - !sticky; i++) {
        uint64_t calls = 0;
        bool is_rare = !is_among(entries[i], surrounding, sizeof surrounding / sizeof *surrounding);
        while (live_with_failure(way, entries[i], calls, code, sticky))
            calls += is_rare ? 1 : 1 + calls / 4;
    }
}

static void every_way(unsigned code, bool sticky)
{
    for (enum way way = 0; way < WAYS; way++) fail_every_call(way, code, sticky);
}

static void every_call_may_fail_once(void **state)
{
    (void)state;
    every_way(1, false);
}

static void every_call_may_find_too_little_memory(void **state)
{
    (void)state;
    every_way(2, false);
}

static void every_call_may_find_the_device_poisoned(void **state)
{
    (void)state;
    every_way(700, true);
}

static int load(void **state)
{
    (void)state;
    return fake_control_load(FAKE_CUDART, &control) ? 0 : -1;
}

static int stop(void **state)
{
    (void)state;
    control.reset(NULL);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_call_may_fail_once),
        cmocka_unit_test(every_call_may_find_too_little_memory),
        cmocka_unit_test(every_call_may_find_the_device_poisoned),
    };
    return cmocka_run_group_tests_name("cuda_fault", tests, load, stop);
}
