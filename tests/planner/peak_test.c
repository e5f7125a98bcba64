/* The most memory that planning holds at a time is what is written here, within a twentieth: bytes
 * that the library takes from its allocator, the graph's own left out, with one thread. A change
 * that moves a figure on purpose changes its row; a failing test prints it anew.
 * Cost: about six seconds. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "bench/coupled_graph.h"
#include "bench/cut_graph.h"
#include "bench/dnn_graph.h"
#include "bench/rough_graph.h"
#include "tarn.h"

/* ---- Counting ---- */

enum { HEADER = 16 }; /* bytes before each block, which hold its size */

static uint64_t held, most; /* bytes; `most` since it was last set */

static void *note(unsigned char *block, size_t size)
{
    if (!block) return NULL;
    *(size_t *)(void *)block = size;
    held += size;
    if (held > most) most = held;
    return block + HEADER;
}

static void *take(void *user, size_t size)
{
    (void)user;
    return note(malloc(size + HEADER), size);
}

static void release(void *user, void *memory)
{
    unsigned char *block = (unsigned char *)memory - HEADER;
    (void)user;
    held -= *(size_t *)(void *)block;
    free(block);
}

/* As if it always moved the block: then both are there for a moment. */
static void *resize(void *user, void *memory, size_t size)
{
    if (!memory) return take(user, size);
    unsigned char *block = (unsigned char *)memory - HEADER;
    size_t before = *(size_t *)(void *)block;
    block = realloc(block, size + HEADER);
    if (!block) return NULL;
    void *moved = note(block, size);
    held -= before;
    return moved;
}

/* ---- Graphs ---- */

static struct tarn_graph *layered(void)
{
    return coupled_graph(&(struct coupled_graph_options){COUPLED_LAYERS, 4000, 16, 1, 1});
}

static struct tarn_graph *weak(void)
{
    return coupled_graph(&(struct coupled_graph_options){COUPLED_EVERY, 4000, 6, 1000, 1});
}

static struct tarn_graph *uncoupled(void)
{
    return cut_graph(&(struct cut_graph_options){CUT_UNCOUPLED, 10000, 4});
}

static struct tarn_graph *chain(void)
{
    return cut_graph(&(struct cut_graph_options){CUT_CHAIN, 50000, 1});
}

static struct tarn_graph *buckets(void)
{
    return dnn_graph_in_buckets(&(struct dnn_graph_options){10000, 6}, 64);
}

static struct tarn_graph *mesh(void)
{
    return rough_graph(&(struct rough_graph_options){ROUGH_MESH, 1500, 4, 1});
}

/* ---- Rows ---- */

static const struct row {
    const char *name;
    struct tarn_graph *(*make)(void);
    uint64_t bytes;
} rows[] = {
    {"layered", layered, 121600000},   {"weak", weak, 16510000},
    {"uncoupled", uncoupled, 2460000}, {"chain", chain, 10190000},
    {"buckets", buckets, 2820000},     {"mesh", mesh, 12120000},
};

/* Bytes that planning holds besides the graph, at most. */
static uint64_t peak_of(struct tarn_graph *graph)
{
    const uint64_t before = most = held;
    struct tarn_plan *plan;
    struct tarn_error error;
    if (tarn_plan_create(graph, TARN_PLAN_OPTIONS(.threads = 1, .effort = 40), &plan, &error))
        fail_msg("%s", error.text);
    tarn_plan_destroy(plan);
    return most - before;
}

static void the_most_memory_of_planning_is_what_is_written(void **state)
{
    (void)state;
    uint32_t others = 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct tarn_graph *graph = rows[i].make();
        uint64_t bytes = peak_of(graph);
        tarn_graph_destroy(graph);
        assert_int_equal(held, 0);
        bool is_close = bytes <= rows[i].bytes + rows[i].bytes / 20 &&
                        bytes >= rows[i].bytes - rows[i].bytes / 20;
        if (is_close) continue;
        print_error("%s: %" PRIu64 " bytes, %" PRIu64 " are written\n", rows[i].name, bytes,
                    rows[i].bytes);
        others++;
    }
    assert_int_equal(others, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_most_memory_of_planning_is_what_is_written),
    };
    struct tarn_error error;
    if (tarn_set_allocator(TARN_ALLOCATOR(.take = take, .resize = resize, .release = release),
                           &error)) {
        fprintf(stderr, "%s\n", error.text);
        return 1;
    }
    return cmocka_run_group_tests_name("peak", tests, NULL, NULL);
}
