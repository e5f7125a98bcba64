/* Every allocation that fails, in turn, ends in TARN_SYSTEM and leaks nothing (a sanitizer sees to
 * the second). The linker sends the library's calls of malloc, calloc and realloc through here, and
 * jansson is told to. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "tarn/graph.h"

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *block, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *block, size_t size);

static uint64_t allowed = UINT64_MAX; /* allocations before they fail */
static bool failed;

static bool is_denied(void)
{
    if (allowed == 0) failed = true;
    if (allowed > 0 && allowed != UINT64_MAX) allowed--;
    return failed;
}

void *__wrap_malloc(size_t size) { return is_denied() ? NULL : __real_malloc(size); }

void *__wrap_calloc(size_t count, size_t size)
{
    return is_denied() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *block, size_t size)
{
    return is_denied() ? NULL : __real_realloc(block, size);
}

/* Runs `act` with the first allocation failing, then the second, until it needs no more. jansson
 * takes a missing byte for wrong syntax, so with its allocations counted both are right. */
static void fail_each_allocation(enum tarn_status (*act)(struct tarn_error *error),
                                 bool with_jansson)
{
    uint64_t runs = 0;
    enum tarn_status status = TARN_SYSTEM;
    while (status != TARN_OK) {
        struct tarn_error error = {0};
        failed = false;
        allowed = runs++;
        status = act(&error);
        bool was_denied = failed;
        allowed = UINT64_MAX;
        failed = false;
        if (with_jansson && was_denied && status == TARN_BAD_INPUT) continue;
        if (status != (was_denied ? TARN_SYSTEM : TARN_OK))
            fail_msg("allocation %u: %s", (unsigned)runs, error.text);
        if (was_denied) assert_string_equal(error.text, "out of memory");
    }
    assert_true(runs > 20);
}

/* The list order is not topological, and with `cyclic` there is none. */
static enum tarn_status build(bool cyclic, struct tarn_error *error)
{
    struct tarn_graph *graph = NULL;
    struct tarn_builder *b = tarn_builder_create("built");
    tarn_builder_stream(b, "a");
    tarn_builder_stream(b, "b");
    for (uint32_t i = 0; i < 40; i++) {
        tarn_builder_tensor(b, &(struct tarn_tensor_info){.name = "t", .size = 8});
        tarn_builder_op(
            b, &(struct tarn_op_info){
                   .name = "o", .stream = i % 2, .outputs = TARN_TENSORS(i), .workspace = i % 3});
    }
    tarn_builder_control(b, 0, 1);
    if (cyclic) tarn_builder_control(b, 1, 2);
    tarn_builder_group(b, TARN_TENSORS(3, 4));
    enum tarn_status status = tarn_builder_finish(b, &graph, error);
    tarn_graph_destroy(graph);
    return status;
}

static enum tarn_status build_acyclic(struct tarn_error *error) { return build(false, error); }

/* Looking for the cycle needs memory as well. */
static enum tarn_status build_cyclic(struct tarn_error *error)
{
    enum tarn_status status = build(true, error);
    if (status != TARN_BAD_INPUT) return status;
    assert_non_null(strstr(error->text, "cycle"));
    return TARN_OK;
}

static enum tarn_status load(const char *path, struct tarn_error *error)
{
    struct tarn_graph *graph = NULL;
    enum tarn_status status = tarn_graph_load(path, &graph, error);
    tarn_graph_destroy(graph);
    return status;
}

static enum tarn_status load_plain(struct tarn_error *error)
{
    return load(TARN_SOURCE_DIR "/tests/data/valid/every_field.json", error);
}

static enum tarn_status load_compressed(struct tarn_error *error)
{
    return load(TARN_SOURCE_DIR "/tests/data/valid/two_members.json.gz", error);
}

static void building_survives_every_failing_allocation(void **state)
{
    (void)state;
    fail_each_allocation(build_acyclic, false);
    fail_each_allocation(build_cyclic, false);
}

static void loading_survives_every_failing_allocation(void **state)
{
    (void)state;
    fail_each_allocation(load_plain, false);
    fail_each_allocation(load_compressed, false);
}

static void loading_survives_every_failing_allocation_of_jansson(void **state)
{
    (void)state;
    json_set_alloc_funcs(__wrap_malloc, free);
    fail_each_allocation(load_plain, true);
    json_set_alloc_funcs(malloc, free);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(building_survives_every_failing_allocation),
        cmocka_unit_test(loading_survives_every_failing_allocation),
        cmocka_unit_test(loading_survives_every_failing_allocation_of_jansson),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
