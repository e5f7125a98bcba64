/* Opening a CUDA device where something is missing, and what the device does beyond the conformance
 * suite. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake_cudart/fake_cudart.h"
#include "runtime/cuda/api.h"
#include "tarn/cuda.h"

static struct fake_control control;
static struct tarn_cuda_api api;

static int load(void **state)
{
    struct tarn_error error = {0};
    (void)state;
    if (!fake_control_load(FAKE_CUDART, &control)) return -1;
    return tarn_cuda_api_load(FAKE_CUDART, &api, &error) == TARN_OK ? 0 : -1;
}

static int reset(void **state)
{
    (void)state;
    control.reset(NULL);
    return 0;
}

static enum tarn_status open_with(struct fake_options *fake, uint32_t ordinal,
                                  struct tarn_device *device, struct tarn_error *error)
{
    control.reset(fake);
    return tarn_device_cuda_open(TARN_CUDA_OPTIONS(.ordinal = ordinal, .library = FAKE_CUDART),
                                 device, error);
}

static struct tarn_device open_device(void)
{
    struct tarn_device device;
    struct tarn_error error;
    if (open_with(NULL, 0, &device, &error)) fail_msg("%s", error.text);
    return device;
}

static void assert_violations(uint64_t expected, const char *part)
{
    char text[256];
    uint64_t found = control.violations(text);
    if (found != expected || (expected && !strstr(text, part)))
        fail_msg("%llu violations: %s", (unsigned long long)found, text);
}

/* ---- Opening ---- */

static void a_missing_runtime_is_named_with_what_was_tried(void **state)
{
    (void)state;
    struct tarn_device device;
    struct tarn_error error;
    const char *nowhere = "/nowhere/libcudart.so.13";
    assert_int_equal(tarn_device_cuda_open(TARN_CUDA_OPTIONS(.library = nowhere), &device, &error),
                     TARN_DEVICE);
    assert_non_null(strstr(error.text, nowhere));
    assert_null(device.table);
}

static void a_library_that_is_no_cuda_runtime_is_refused(void **state)
{
    (void)state;
    struct tarn_device device;
    struct tarn_error error;
    assert_int_equal(
        tarn_device_cuda_open(TARN_CUDA_OPTIONS(.library = "libc.so.6"), &device, &error),
        TARN_DEVICE);
    assert_non_null(strstr(error.text, "has no cuda"));
}

static void options_of_another_size_are_refused(void **state)
{
    (void)state;
    struct tarn_device device;
    struct tarn_error error;
    const struct tarn_cuda_options options = {.struct_size = 4};
    assert_int_equal(tarn_device_cuda_open(&options, &device, &error), TARN_USAGE);
    assert_int_equal(tarn_device_cuda_open(NULL, NULL, &error), TARN_USAGE);
}

static void a_missing_driver_and_one_too_old_are_told_apart(void **state)
{
    (void)state;
    struct tarn_device device;
    struct tarn_error error;
    assert_int_equal(open_with(&(struct fake_options){.driver = -1}, 0, &device, &error),
                     TARN_DEVICE);
    assert_non_null(strstr(error.text, "no NVIDIA driver"));
    assert_int_equal(error.device_code, 35);
    assert_int_equal(open_with(&(struct fake_options){.driver = 11080}, 0, &device, &error),
                     TARN_DEVICE);
    assert_non_null(strstr(error.text, "too old: it serves CUDA 11.8"));
    assert_int_equal(error.device_code, 35);
}

static void a_missing_device_is_told(void **state)
{
    (void)state;
    struct tarn_device device;
    struct tarn_error error;
    assert_int_equal(open_with(&(struct fake_options){.devices = -1}, 0, &device, &error),
                     TARN_DEVICE);
    assert_non_null(strstr(error.text, "shows no device"));
    assert_int_equal(open_with(&(struct fake_options){.devices = 2}, 2, &device, &error),
                     TARN_DEVICE);
    assert_non_null(strstr(error.text, "no device 2; this process sees 2"));
    assert_int_equal(open_with(&(struct fake_options){.devices = 2}, 1, &device, &error), TARN_OK);
    tarn_device_cuda_close(device);
}

/* The real runtime, where it is installed: either a device, or a text that says why not. */
static void the_installed_runtime_gives_a_device_or_a_reason(void **state)
{
    (void)state;
    struct tarn_device device;
    struct tarn_error error;
    if (tarn_device_cuda_open(NULL, &device, &error) == TARN_OK) {
        tarn_device_cuda_close(device);
        return;
    }
    printf("# %s\n", error.text);
    assert_int_equal(error.status, TARN_DEVICE);
    assert_true(strlen(error.text) > 20);
}

static void opening_and_closing_leaves_nothing(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct tarn_device device = open_device();
        tarn_device_cuda_close(device);
        assert_int_equal(control.alive(), 0);
    }
    assert_violations(0, NULL);
}

/* ---- The device ---- */

static void errors_are_classed(void **state)
{
    (void)state;
    static const int poisoned[] = {3,   4,   214, 220, 226, 700, 702, 709, 710,
                                   714, 715, 716, 717, 718, 719, 721, 810, 911};
    struct tarn_device device = open_device();
    for (size_t i = 0; i < sizeof poisoned / sizeof *poisoned; i++)
        assert_int_equal(device.table->error_class(device.self, poisoned[i]), TARN_ERROR_POISONED);
    assert_int_equal(device.table->error_class(device.self, 2), TARN_ERROR_OUT_OF_MEMORY);
    assert_int_equal(device.table->error_class(device.self, 1), TARN_ERROR_RETRYABLE);
    assert_int_equal(device.table->error_class(device.self, 900), TARN_ERROR_RETRYABLE);
    assert_string_equal(device.table->error_text(device.self, 2), "out of memory");
    tarn_device_cuda_close(device);
}

/* A kernel that asks cudaGetLastError after its launch must not find an error of Tarn's. */
static void no_error_is_left_for_kernels_to_find(void **state)
{
    (void)state;
    struct tarn_device device = open_device();
    const struct tarn_device_table *table = device.table;
    void *queue, *event, *memory;
    bool done = true;
    assert_int_equal(
        table->queue_create(device.self, &(struct tarn_queue_info){.name = "q"}, &queue), 0);
    assert_int_equal(table->event_create(device.self, &event), 0);
    control.hold(true);
    assert_int_equal(table->event_record(device.self, event, queue), 0);
    assert_int_equal(table->event_query(device.self, event, &done), 0);
    assert_false(done);
    assert_int_equal(api.GetLastError(), 0);
    assert_int_equal(table->memory_create(device.self, UINT64_MAX / 2, &memory), 2);
    assert_int_equal(api.GetLastError(), 0);
    control.hold(false);
    while (!done) assert_int_equal(table->event_query(device.self, event, &done), 0);
    table->event_destroy(device.self, event);
    table->queue_destroy(device.self, queue);
    tarn_device_cuda_close(device);
    assert_violations(0, NULL);
}

/* CUDA itself would make a graph of what came through; the table's contract says that it fails. */
static void a_capture_in_which_a_call_failed_gives_no_graph(void **state)
{
    (void)state;
    struct tarn_device device = open_device();
    const struct tarn_device_table *table = device.table;
    void *queue, *event, *graph = NULL;
    assert_int_equal(
        table->queue_create(device.self, &(struct tarn_queue_info){.name = "q"}, &queue), 0);
    assert_int_equal(table->event_create(device.self, &event), 0);
    uint64_t alive = control.alive();
    assert_int_equal(table->capture_begin(device.self, queue), 0);
    control.inject("cudaEventRecord", 0, 1, false);
    assert_int_equal(table->event_record(device.self, event, queue), 1);
    assert_int_equal(table->capture_end(device.self, queue, &graph), 1);
    assert_null(graph);
    assert_int_equal(control.alive(), alive);
    assert_int_equal(table->capture_begin(device.self, queue), 0); /* and the next one works */
    assert_int_equal(table->capture_end(device.self, queue, &graph), 0);
    table->graph_destroy(device.self, graph);
    table->event_destroy(device.self, event);
    table->queue_destroy(device.self, queue);
    tarn_device_cuda_close(device);
    assert_int_equal(control.alive(), 0);
}

static void nothing(void *argument) { (void)argument; }

/* A stamp in a capture is a node, so it can be asked after every replay. */
static void stamps_in_a_capture_take_the_time_of_the_replay(void **state)
{
    (void)state;
    struct tarn_device device = open_device();
    const struct tarn_device_table *table = device.table;
    void *queue, *stamps[2], *graph, *end;
    double before = 0, elapsed = 0;
    bool done = false;
    assert_int_equal(
        table->queue_create(device.self, &(struct tarn_queue_info){.name = "q"}, &queue), 0);
    assert_int_equal(table->event_create(device.self, &end), 0);
    for (int i = 0; i < 2; i++) assert_int_equal(table->stamp_create(device.self, &stamps[i]), 0);
    assert_int_equal(table->capture_begin(device.self, queue), 0);
    assert_int_equal(table->stamp_record(device.self, stamps[0], queue), 0);
    assert_int_equal(table->launch(device.self, queue, nothing, NULL), 0);
    assert_int_equal(table->stamp_record(device.self, stamps[1], queue), 0);
    assert_int_equal(table->capture_end(device.self, queue, &graph), 0);
    assert_true(table->stamp_elapsed(device.self, stamps[0], stamps[1], &before) != 0);
    assert_int_equal(table->graph_launch(device.self, graph, queue), 0);
    assert_int_equal(table->event_record(device.self, end, queue), 0);
    while (!done) assert_int_equal(table->event_query(device.self, end, &done), 0);
    assert_int_equal(table->stamp_elapsed(device.self, stamps[0], stamps[1], &elapsed), 0);
    assert_true(elapsed >= 0);
    table->graph_destroy(device.self, graph);
    for (int i = 0; i < 2; i++) table->stamp_destroy(device.self, stamps[i]);
    table->event_destroy(device.self, end);
    table->queue_destroy(device.self, queue);
    tarn_device_cuda_close(device);
    assert_int_equal(control.alive(), 0);
    assert_violations(0, NULL);
}

/* ---- Memory of the caller's ---- */

static int source_create(void *user, uint64_t size, void **memory)
{
    uint64_t *alive = user;
    int device = -1;
    if (api.GetDevice(&device) || device != 1) return 1; /* the device is current */
    int code = (int)api.Malloc(memory, (size_t)size);
    *alive += code == 0;
    return code;
}

static void source_destroy(void *user, void *memory, uint64_t size)
{
    uint64_t *alive = user;
    (void)size;
    --*alive;
    api.Free(memory);
}

static void memory_comes_from_the_callers_source(void **state)
{
    (void)state;
    struct tarn_device device;
    struct tarn_error error;
    struct tarn_memory_limits limits;
    uint64_t alive = 0;
    void *memory;
    struct tarn_memory_source source = {0, source_create, NULL, &alive, 256};
    struct tarn_cuda_options *options =
        TARN_CUDA_OPTIONS(.ordinal = 1, .library = FAKE_CUDART, .memory = &source);
    control.reset(&(struct fake_options){.devices = 2});
    assert_int_equal(tarn_device_cuda_open(options, &device, &error), TARN_USAGE);
    assert_non_null(strstr(error.text, "memory source"));
    source.struct_size = sizeof source;
    assert_int_equal(tarn_device_cuda_open(options, &device, &error), TARN_USAGE);
    assert_non_null(strstr(error.text, "needs both functions"));
    source.destroy = source_destroy;
    source.alignment = 768;
    assert_int_equal(tarn_device_cuda_open(options, &device, &error), TARN_USAGE);
    assert_non_null(strstr(error.text, "is 768, no power of two"));
    source.alignment = 256;
    assert_int_equal(tarn_device_cuda_open(options, &device, &error), TARN_OK);
    assert_int_equal(device.table->memory_limits(device.self, &limits), 0);
    assert_int_equal(limits.alignment, 256);
    assert_int_equal(device.table->memory_create(device.self, 4096, &memory), 0);
    assert_int_equal(alive, 1);
    assert_int_equal(device.table->fill(device.self, memory, 1, 4096), 0);
    device.table->memory_destroy(device.self, memory, 4096);
    assert_int_equal(alive, 0);
    control.inject("cudaMalloc", 0, 2, false);
    assert_int_equal(device.table->memory_create(device.self, 4096, &memory), 2);
    assert_int_equal(device.table->error_class(device.self, 2), TARN_ERROR_OUT_OF_MEMORY);
    tarn_device_cuda_close(device);
    assert_int_equal(control.alive(), 0);
    assert_violations(0, "");
}

/* ---- Memory spaces ---- */

static const struct tarn_memory_space spaces[] = {{0, "device", TARN_SPACE_DEVICE},
                                                  {1, "host", TARN_SPACE_PINNED},
                                                  {2, "chip", TARN_SPACE_SCRATCH}};

static bool host_can_follow(const void *memory)
{
    struct tarn_cuda_pointer_attributes attributes;
    assert_int_equal(api.PointerGetAttributes((struct cudaPointerAttributes *)&attributes, memory),
                     0);
    assert_ptr_equal(attributes.device_pointer, memory);
    return attributes.host_pointer == memory;
}

/* Moves bytes in and out, and has them filled. */
static void use_space(struct tarn_device device, unsigned char *memory, uint64_t size)
{
    unsigned char bytes[300], seen[300];
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (unsigned char)(7 * i);
    assert_int_equal(device.table->fill(device.self, memory, 9, size), 0);
    assert_int_equal(device.table->copy_in(device.self, memory + 100, bytes, sizeof bytes), 0);
    assert_int_equal(device.table->copy_out(device.self, seen, memory + 100, sizeof seen), 0);
    assert_memory_equal(seen, bytes, sizeof bytes);
    assert_int_equal(device.table->copy_out(device.self, seen, memory + 400, sizeof seen), 0);
    for (size_t i = 0; i < sizeof seen; i++) assert_int_equal(seen[i], 9);
}

static void only_a_pinned_space_is_memory_of_the_host(void **state)
{
    (void)state;
    struct tarn_device device = open_device();
    const struct tarn_device_table *table = device.table;
    void *memory[3];
    for (int k = 0; k < 3; k++) {
        struct tarn_memory_limits limits;
        bool is_pinned = spaces[k].kind == TARN_SPACE_PINNED;
        assert_int_equal(table->space_limits(device.self, &spaces[k], &limits), 0);
        assert_int_equal(limits.on_host, is_pinned);
        assert_int_equal(table->space_create(device.self, &spaces[k], 4096, &memory[k]), 0);
        assert_int_equal((uintptr_t)memory[k] % limits.alignment, 0);
        assert_int_equal(host_can_follow(memory[k]), is_pinned);
        use_space(device, memory[k], 4096);
    }
    assert_int_equal(control.calls("cudaHostAlloc"), 1);
    for (int k = 0; k < 3; k++) table->space_destroy(device.self, &spaces[k], memory[k], 4096);
    assert_int_equal(control.calls("cudaFreeHost"), 1);
    control.inject("cudaHostAlloc", 0, TARN_CUDA_OUT_OF_MEMORY, false);
    assert_int_equal(table->space_create(device.self, &spaces[1], 4096, &memory[1]),
                     TARN_CUDA_OUT_OF_MEMORY);
    tarn_device_cuda_close(device);
    assert_int_equal(control.alive(), 0);
    assert_violations(0, NULL);
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup(test, reset)
    const struct CMUnitTest tests[] = {
        TEST(a_missing_runtime_is_named_with_what_was_tried),
        TEST(a_library_that_is_no_cuda_runtime_is_refused),
        TEST(options_of_another_size_are_refused),
        TEST(a_missing_driver_and_one_too_old_are_told_apart),
        TEST(a_missing_device_is_told),
        TEST(the_installed_runtime_gives_a_device_or_a_reason),
        TEST(opening_and_closing_leaves_nothing),
        TEST(memory_comes_from_the_callers_source),
        TEST(only_a_pinned_space_is_memory_of_the_host),
        TEST(errors_are_classed),
        TEST(no_error_is_left_for_kernels_to_find),
        TEST(a_capture_in_which_a_call_failed_gives_no_graph),
        TEST(stamps_in_a_capture_take_the_time_of_the_replay),
    };
    return cmocka_run_group_tests_name("cuda", tests, load, reset);
}
