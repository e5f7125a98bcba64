/* NVTX marks, as a tool sees them that the process was started under: ops as ranges of the domain
 * "tarn", the arena as a heap, its tensors as named regions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/cuda/nvtx.h"

static const char *log_of_tool(void)
{
    const char *(*log)(void);
    void *library = dlopen(NVTX_TOOL, RTLD_NOW), *found = dlsym(library, "nvtx_tool_log");
    assert_non_null(found);
    memcpy(&log, &found, sizeof found);
    return log();
}

static void a_tool_sees_ops_and_tensors(void **state)
{
    (void)state;
    char arena[1024];
    struct tarn_nvtx *nvtx = tarn_nvtx_create();
    assert_non_null(nvtx);
    tarn_nvtx_heap_create(nvtx, arena, sizeof arena);
    assert_null(strstr(log_of_tool(), "heap")); /* without regions all of it may be used */
    tarn_nvtx_region(nvtx, arena, 0, 100, "weights");
    tarn_nvtx_region(nvtx, arena, 512, 200, "gradient");
    tarn_nvtx_range_begin(nvtx, "conv1");
    tarn_nvtx_range_end(nvtx);
    tarn_nvtx_heap_destroy(nvtx, arena);
    tarn_nvtx_heap_destroy(nvtx, arena); /* a heap that is not there is none */
    tarn_nvtx_destroy(nvtx);
    assert_string_equal(log_of_tool(), "domain tarn 0\n"
                                       "heap arena 1024\n"
                                       "region of the heap 100\nname weights 1\n"
                                       "region of the heap 200\nname gradient 1\n"
                                       "push conv1 1\npop range 1\n"
                                       "end heap 1\nend domain 1\n");
}

static void nothing_is_marked_without_a_tool(void **state)
{
    (void)state;
    tarn_nvtx_heap_create(NULL, NULL, 1);
    tarn_nvtx_region(NULL, NULL, 0, 1, "nobody");
    tarn_nvtx_range_begin(NULL, "nobody");
    tarn_nvtx_range_end(NULL);
    tarn_nvtx_heap_destroy(NULL, NULL);
    tarn_nvtx_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_tool_sees_ops_and_tensors),
        cmocka_unit_test(nothing_is_marked_without_a_tool),
    };
    setenv("NVTX_INJECTION64_PATH", NVTX_TOOL, 1);
    return cmocka_run_group_tests_name("cuda_nvtx", tests, NULL, NULL);
}
