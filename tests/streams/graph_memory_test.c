/* Every allocation that fails, in turn, ends in TARN_SYSTEM or is done without, and leaks nothing
 * (a sanitizer sees to the second). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "streams/file/interval_read.h"
#include "support/failing_memory.h"

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
    enum tarn_status status = tarn_graph_load(path, NULL, &graph, error);
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

static enum tarn_status load_intervals(struct tarn_error *error)
{
    return load(TARN_SOURCE_DIR "/examples/graphs/twelve.csv", error);
}

static enum tarn_status save_intervals(struct tarn_error *error)
{
    struct tarn_graph *graph = NULL;
    enum tarn_status status =
        tarn_graph_load(TARN_SOURCE_DIR "/examples/graphs/twelve.csv", NULL, &graph, error);
    if (status == TARN_OK)
        status = tarn_interval_give(graph, NULL, &(struct tarn_writer){.name = "/dev/null"}, error);
    tarn_graph_destroy(graph);
    return status;
}

static void building_survives_every_failing_allocation(void **state)
{
    (void)state;
    fail_each_allocation(build_acyclic, 10);
    fail_each_allocation(build_cyclic, 10);
}

static void loading_survives_every_failing_allocation(void **state)
{
    (void)state;
    fail_each_allocation(load_plain, 10);
    fail_each_allocation(load_compressed, 10);
    fail_each_allocation(load_intervals, 10);
}

static void saving_intervals_survives_every_failing_allocation(void **state)
{
    (void)state;
    fail_each_allocation(save_intervals, 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(building_survives_every_failing_allocation),
        cmocka_unit_test(loading_survives_every_failing_allocation),
        cmocka_unit_test(saving_intervals_survives_every_failing_allocation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
