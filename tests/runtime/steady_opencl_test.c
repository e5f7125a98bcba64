/* The steady loop of steady_test.c on a device outside of the library: a framework's queue and
 * another one that it lends, three plans over one arena, other buffers in every iteration. Neither
 * the library nor the device of examples/custom_sdk allocates anything. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "examples/custom_sdk/opencl_memory.h"
#include "support/buckets.h"
#include "support/failing_calls.h"
#include "support/required.h"
#include "support/session_calls.h"

enum { WARM = 6, ROUNDS = 60, BUFFERS = 4, X_MAX = 1024, OUT = 16, COPIED = 8 };

struct framework {
    struct opencl_device opencl;
    struct buckets buckets;
    struct tarn_arena *arena;
    struct tarn_session *sessions[BUCKETS];
    cl_command_queue queue, lent;
    unsigned char *inputs[BUFFERS], *outputs[BUFFERS];
    uint64_t seen[WARM + ROUNDS];
};

/* Every output begins as the first input does: what x has comes out of s. */
static int copy_kernel(void *user, const struct tarn_call *call)
{
    (void)user;
    cl_int code = CL_SUCCESS;
    for (size_t i = 0; i < call->outputs_count && code == CL_SUCCESS; i++) {
        if (call->outputs[i] == call->inputs[0]) continue;
        code = clEnqueueSVMMemcpy(call->queue, CL_FALSE, call->outputs[i], call->inputs[0], COPIED,
                                  0, NULL, NULL);
    }
    return code;
}

static void open_framework(struct framework *f, struct tarn_device device)
{
    struct tarn_error error;
    cl_int code;
    f->queue = clCreateCommandQueue(f->opencl.context, f->opencl.id, 0, &code);
    f->lent = clCreateCommandQueue(f->opencl.context, f->opencl.id, 0, &code);
    void *queues[] = {f->lent, NULL, NULL};
    for (uint32_t i = 0; i < BUFFERS; i++) {
        f->inputs[i] = clSVMAlloc(f->opencl.context, CL_MEM_READ_WRITE, X_MAX, 0);
        f->outputs[i] = clSVMAlloc(f->opencl.context, CL_MEM_READ_WRITE, OUT, 0);
    }
    buckets_init(&f->buckets, NULL);
    require(tarn_arena_create(f->buckets.plans, BUCKETS, device, NULL, &f->arena, &error), &error);
    for (uint32_t k = 0; k < BUCKETS; k++) {
        require(tarn_session_create(f->buckets.plans[k], device,
                                    TARN_SESSION_OPTIONS(.arena = f->arena, .queues = queues),
                                    &f->sessions[k], &error),
                &error);
        assert_int_equal(tarn_session_bind_default(f->sessions[k], copy_kernel, NULL), TARN_OK);
    }
}

static void close_framework(struct framework *f)
{
    for (uint32_t k = 0; k < BUCKETS; k++)
        assert_int_equal(tarn_session_destroy(f->sessions[k]), TARN_OK);
    assert_int_equal(tarn_arena_destroy(f->arena), TARN_OK);
    for (uint32_t i = 0; i < BUFFERS; i++) {
        clSVMFree(f->opencl.context, f->inputs[i]);
        clSVMFree(f->opencl.context, f->outputs[i]);
    }
    clReleaseCommandQueue(f->queue);
    clReleaseCommandQueue(f->lent);
    buckets_finish(&f->buckets);
}

static void step(struct framework *f, uint64_t i)
{
    struct tarn_error error;
    uint32_t k = (uint32_t)(i % BUCKETS), at = (uint32_t)(i % BUFFERS);
    tarn_tensor x = tarn_graph_find_tensor(f->buckets.graphs[k], "x");
    tarn_tensor s = tarn_graph_find_tensor(f->buckets.graphs[k], "s");
    clEnqueueSVMMemFill(f->queue, f->inputs[at], &i, sizeof i, COPIED, 0, NULL, NULL);
    require(tarn_session_bind_memory(f->sessions[k], x, f->inputs[at], &error), &error);
    require(tarn_session_bind_memory(f->sessions[k], s, f->outputs[at], &error), &error);
    require(tarn_session_submit_with(f->sessions[k], 1, TARN_SUBMIT_OPTIONS(.queue = f->queue),
                                     NULL, &error),
            &error);
    clEnqueueSVMMemcpy(f->queue, CL_FALSE, &f->seen[i], f->outputs[at], COPIED, 0, NULL, NULL);
}

static void a_device_outside_the_library_makes_nothing_in_a_steady_loop(void **state)
{
    (void)state;
    static struct framework f;
    int code = opencl_device_open(&f.opencl, 0, false);
    if (code || !f.opencl.is_svm) {
        if (is_required("opencl")) fail_msg("no OpenCL device with shared memory (%d)", code);
        opencl_device_close(&f.opencl);
        skip();
    }
    open_framework(&f, opencl_device_table(&f.opencl));
    for (uint64_t i = 0; i < WARM + ROUNDS; i++) {
        if (i == WARM) fail_calls(FAILING_MEMORY, 0, 0); /* counts anew, none fails */
        step(&f, i);
    }
    assert_int_equal(calls_made(FAILING_MEMORY), 0);
    clFinish(f.queue);
    for (uint64_t i = 0; i < WARM + ROUNDS; i++) assert_int_equal(f.seen[i], i);
    close_framework(&f);
    opencl_device_close(&f.opencl);
}

/* The leak checker crashes when it looks for the thread-local storage of PoCL's threads. */
const char *__lsan_default_options(void);
const char *__lsan_default_options(void) { return "use_tls=0"; }
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void) { return "leak:ld-linux"; }

/* ---- Pinned memory ---- */

/* A buffer says itself whether it is the host's; shared memory is the host's where it can be. */
static void is_the_hosts(struct opencl_device *device, void *memory, enum tarn_space_kind kind)
{
    struct tarn_memory_limits limits;
    const struct tarn_memory_space space = {0, "host", kind};
    bool is_pinned = kind == TARN_SPACE_PINNED;
    assert_int_equal(device->table.space_limits(device, &space, &limits), 0);
    assert_int_equal(limits.on_host, is_pinned && device->is_fine_grained);
    if (device->is_svm) {
        unsigned char seen = 0;
        if (!limits.on_host) return;
        *(volatile unsigned char *)memory = 77;
        assert_int_equal(device->table.copy_out(device, &seen, memory, 1), 0);
        assert_int_equal(seen, 77);
        return;
    }
    cl_mem_flags flags = 0;
    assert_int_equal(clGetMemObjectInfo(((struct opencl_region *)memory)->buffer, CL_MEM_FLAGS,
                                        sizeof flags, &flags, NULL),
                     CL_SUCCESS);
    assert_int_equal((flags & CL_MEM_ALLOC_HOST_PTR) != 0, is_pinned);
}

static void pinned_spaces_and_host_memory_are_the_hosts(void **state)
{
    (void)state;
    for (int with_buffers = 0; with_buffers <= 1; with_buffers++) {
        struct opencl_device device;
        int code = opencl_device_open(&device, 0, with_buffers);
        if (code) {
            opencl_device_close(&device);
            if (is_required("opencl")) fail_msg("OpenCL was asked for, and has no device");
            skip();
        }
        for (enum tarn_space_kind kind = TARN_SPACE_DEVICE; kind <= TARN_SPACE_SCRATCH; kind++) {
            const struct tarn_memory_space space = {0, "any", kind};
            void *memory;
            assert_int_equal(device.table.space_create(&device, &space, 4096, &memory), 0);
            is_the_hosts(&device, memory, kind);
            device.table.space_destroy(&device, &space, memory, 4096);
        }
        void *host[3];
        for (int i = 0; i < 3; i++) {
            assert_int_equal(device.table.host_memory_create(&device, 4096, &host[i]), 0);
            memset(host[i], i, 4096);
        }
        for (int i = 0; i < 3; i++) {
            assert_int_equal(((unsigned char *)host[(i + 1) % 3])[4095], (i + 1) % 3);
            device.table.host_memory_destroy(&device, host[(i + 1) % 3], 4096);
        }
        assert_null(device.mappings);
        opencl_device_close(&device);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_device_outside_the_library_makes_nothing_in_a_steady_loop),
        cmocka_unit_test(pinned_spaces_and_host_memory_are_the_hosts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
