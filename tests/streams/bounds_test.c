/* What a file may cost: texts that ask for as much memory as they can are loaded in a process of
 * their own each, which looks at the most memory that it ever had. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "streams/text/text_file.h"
#include "tarn.h"

enum { TEXT = 1 << 20, MULTIPLE = 32, SPARE = 4 << 20 };

/* ---- Texts ---- */

/* head, then `piece` (with its number in the place of %u) until the text is long, then tail. */
struct shape {
    const char *name, *head, *piece, *tail;
};

static void print_shape(const void *subject, FILE *file)
{
    const struct shape *shape = subject;
    const char *number = strstr(shape->piece, "%u");
    const char *rest = number ? strstr(number + 2, "%u") : NULL;
    fputs(shape->head, file);
    for (unsigned i = 0; ftell(file) < TEXT; i++) {
        int before = number ? (int)(number - shape->piece) : (int)strlen(shape->piece);
        fprintf(file, "%.*s", before, shape->piece);
        if (!number) continue;
        fprintf(file, "%u", i);
        if (rest) fprintf(file, "%.*s%u", (int)(rest - number - 2), number + 2, i);
        fputs(rest ? rest + 2 : number + 2, file);
    }
    fputs(shape->tail, file);
}

#define GRAPH "{\"format\":\"tarn.graph\",\"version\":1,\"name\":\"x\","
#define STREAM "\"streams\":[{\"id\":0,\"name\":\"\"}],"
#define OP "{\"id\":0,\"name\":\"\",\"kind\":\"\",\"stream\":0,\"outputs\":[],"
#define NO_TENSORS "],\"tensors\":[]}"
#define LAST_TENSOR "{\"id\":%u,\"name\":\"\",\"size\":1,\"kind\":\"input\"},"

static const struct shape graphs[] = {
    {"lists", GRAPH STREAM "\"ops\":[", "[],", "[]" NO_TENSORS},
    {"objects", GRAPH STREAM "\"ops\":[", "{},", "{}" NO_TENSORS},
    {"numbers", GRAPH STREAM "\"ops\":[", "1,", "1" NO_TENSORS},
    {"fractions", GRAPH STREAM "\"ops\":[", "1.5,", "1" NO_TENSORS},
    {"strings", GRAPH STREAM "\"ops\":[", "\"\",", "1" NO_TENSORS},
    {"members that are lists", "{\"a\":0", ",\"%u\":[]", "}"},
    {"members that are objects", "{\"a\":0", ",\"%u\":{}", "}"},
    {"members that are numbers", "{\"a\":0", ",\"%u\":1", "}"},
    {"members with lists in them", "{\"a\":0",
     ",\"%u\":[[],[],[],[],[],[],[],[],[],[],[],[],[],[],[],[],[],[],[],[],[],[],[],[],[],[]]",
     "}"},
    {"kept lists", GRAPH STREAM "\"ops\":[],\"tensors\":[],\"meta\":{\"a\":[", "[],", "0]}}"},
    {"kept members", GRAPH STREAM "\"ops\":[],\"tensors\":[],\"meta\":{\"a\":0", ",\"%u\":[]",
     "}}"},
    {"one number", "{\"version\":", "9", "}"},
    {"one string", "{\"name\":\"", "a", "\"}"},
    {"one name", GRAPH STREAM "\"ops\":[],\"tensors\":[],\"meta\":{\"", "a", "\":1}}"},
    {"blanks", "", " ", ""},
    {"nested", "", "[", ""},
    {"keys", GRAPH STREAM "\"ops\":[{", "\"%u\":0,", "\"\":0}" NO_TENSORS},
    {"one key", GRAPH STREAM "\"ops\":[{", "\"id\":0,", "\"id\":0}" NO_TENSORS},
    {"keys of meta", GRAPH STREAM "\"ops\":[],\"tensors\":[],\"meta\":{", "\"%u\":0,", "\"\":0}}"},
    {"lists in meta", GRAPH STREAM "\"ops\":[],\"tensors\":[],\"meta\":{\"a\":[", "[],", "[]]}}"},
    {"escapes in meta", GRAPH STREAM "\"ops\":[],\"tensors\":[],\"meta\":{\"a\":\"", "\\n", "\"}}"},
    {"inputs", GRAPH STREAM "\"ops\":[" OP "\"inputs\":[", "0,", "0]}" NO_TENSORS},
    {"pairs", GRAPH STREAM "\"ops\":[" OP "\"inputs\":[],\"inplace\":[", "[0,0],",
     "[0,0]]}" NO_TENSORS},
    {"implementations", GRAPH STREAM "\"ops\":[" OP "\"inputs\":[],\"implementations\":[",
     "{\"name\":\"\",\"cost\":0},", "{\"name\":\"\",\"cost\":0}]}" NO_TENSORS},
    {"groups", GRAPH STREAM "\"ops\":[],\"tensors\":[],\"contiguous\":[", "[0],", "[0]]}"},
    {"ops", GRAPH STREAM "\"ops\":[" OP "\"inputs\":[]}",
     ",{\"id\":%u,\"name\":\"\",\"kind\":\"\",\"stream\":0,\"inputs\":[],\"outputs\":[]}",
     NO_TENSORS},
    {"workspaces", GRAPH STREAM "\"ops\":[",
     "{\"id\":%u,\"name\":\"\",\"kind\":\"\",\"stream\":0,\"inputs\":[],\"outputs\":[],"
     "\"workspace\":1},",
     "1" NO_TENSORS},
    {"tensors", GRAPH STREAM "\"ops\":[],\"tensors\":[", LAST_TENSOR, "1]}"},
    {"streams", GRAPH "\"streams\":[", "{\"id\":%u,\"name\":\"\"},",
     "1],\"ops\":[],\"tensors\":[]}"},
    {"rows", "id,lower,upper,size\n", "%u,0,1,1\n", ""},
    {"rows and steps", "id,lower,upper,size\n", "%u,%u,9999999,1\n", ""},
    {"lines", "id,lower,upper,size\n", "\n", ""},
    {"cells", "id,", ",", "\n"},
};

static const struct shape plans[] = {
    {"lists", "{\"format\":\"tarn.plan\",\"version\":1,\"waits\":[", "[],", "[]]}"},
    {"graph in graph", "{\"format\":\"tarn.plan\",\"version\":1,\"graph\":", "{\"graph\":", ""},
};

static const struct shape orders[] = {
    {"ops", "[", "0,", "0]"},
    {"steps", "{\"format\":\"tarn.order\",\"version\":1,\"order\":[", "[0,0],", "[0,0]]}"},
};

static const struct shape tables[] = {
    {"rows", "op,implementation,ns,workspace\n", "a,,0,0\n", ""},
    {"lines", "op,implementation,ns,workspace\n", "\n", ""},
    {"cells", "", ",", "\n"},
};

/* ---- Loading ---- */

static enum tarn_status load_graph(const char *path)
{
    struct tarn_graph *graph = NULL;
    enum tarn_status status = tarn_graph_load(path, NULL, &graph, NULL);
    tarn_graph_destroy(graph);
    return status;
}

static enum tarn_status load_plan(const char *path)
{
    struct tarn_graph *graph = NULL;
    struct tarn_plan *plan = NULL;
    tarn_graph_load(TARN_SOURCE_DIR "/examples/graphs/figure7.json", NULL, &graph, NULL);
    enum tarn_status status = tarn_plan_load(path, graph, TARN_TRUST, NULL, &plan, NULL);
    tarn_plan_destroy(plan);
    tarn_graph_destroy(graph);
    return status;
}

static enum tarn_status load_order(const char *path)
{
    struct tarn_step *steps = NULL;
    size_t count;
    enum tarn_status status = tarn_order_load(path, &steps, &count, NULL);
    free(steps);
    return status;
}

static enum tarn_status load_table(const char *path)
{
    struct tarn_cost_table *table = NULL;
    enum tarn_status status = tarn_cost_table_load(path, &table, NULL);
    tarn_cost_table_destroy(table);
    return status;
}

/* A process of its own, begun anew: one that was only forked has had its parent's memory. */
static const char *self;

static size_t most_memory(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (size_t)usage.ru_maxrss * 1024;
}

static enum tarn_status (*const loaders[])(const char *path) = {load_graph, load_plan, load_order,
                                                                load_table};

/* The process: 0 when the file took no more than it may. */
static int load_and_look(const char *kind, const char *path, size_t text)
{
    size_t before = most_memory();
    enum tarn_status status = loaders[atoi(kind)](path);
    if (status != TARN_OK && status != TARN_BAD_INPUT) return 1;
    size_t taken = most_memory() - before;
    if (taken <= MULTIPLE * text + SPARE) return 0;
    fprintf(stderr, "%zu bytes of memory for %zu of text\n", taken, text);
    return 2;
}

static int run_process(int kind, const char *path, size_t text)
{
    char words[2][32];
    int result;
    snprintf(words[0], sizeof words[0], "%d", kind);
    snprintf(words[1], sizeof words[1], "%zu", text);
    pid_t child = fork();
    if (child == 0) {
        unsetenv("MALLOC_PERTURB_"); /* would write to pages that nobody uses */
        execl(self, self, words[0], path, words[1], (char *)NULL);
        _exit(3);
    }
    assert_int_equal(waitpid(child, &result, 0), child);
    return WIFEXITED(result) ? WEXITSTATUS(result) : -1;
}

static void check_text(int kind, const char *name, const char *ending, const char *text,
                       size_t size)
{
    char path[64] = "/tmp/tarn-bounds-test-XXXXXX";
    int file = mkstemp(path);
    assert_true(file >= 0);
    close(file);
    unlink(path);
    strcat(path, ending);
    assert_int_equal(tarn_text_write(path, text, size, NULL), TARN_OK);
    int result = run_process(kind, path, size);
    unlink(path);
    if (result != 0) fail_msg("%s: %d", name, result);
}

static void check_shapes(int kind, const struct shape *shapes, size_t count, const char *ending)
{
    for (size_t i = 0; i < count; i++) {
        size_t size;
        char *text = tarn_text_print(print_shape, &shapes[i], &size);
        assert_non_null(text);
        check_text(kind, shapes[i].name, ending, text, size);
        free(text);
    }
}

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

static void no_graph_file_takes_more_memory_than_its_text_allows(void **state)
{
    (void)state;
    check_shapes(0, graphs, COUNT_OF(graphs), "");
}

static void no_other_file_does(void **state)
{
    (void)state;
    check_shapes(1, plans, COUNT_OF(plans), "");
    check_shapes(2, orders, COUNT_OF(orders), "");
    check_shapes(3, tables, COUNT_OF(tables), "");
}

/* A few kilobytes that decompress to megabytes: the text counts, not the file. */
static void no_compressed_file_does(void **state)
{
    (void)state;
    check_shapes(0, graphs, 2, ".gz");
}

/* ---- Limits ---- */

/* Ops in turn in all streams, each after the one before. */
static char *ring(unsigned streams, unsigned ops)
{
    char *text;
    size_t size;
    FILE *file = open_memstream(&text, &size);
    fputs(GRAPH "\"streams\":[", file);
    for (unsigned s = 0; s < streams; s++)
        fprintf(file, "%s{\"id\":%u,\"name\":\"\"}", s > 0 ? "," : "", s);
    fputs("],\"ops\":[", file);
    for (unsigned v = 0; v < ops; v++)
        fprintf(file,
                "%s{\"id\":%u,\"name\":\"\",\"kind\":\"\",\"stream\":%u,\"inputs\":[],\"outputs\":"
                "[],\"control\":[%u]}",
                v > 0 ? "," : "", v, v % streams, v > 0 ? v - 1 : 0);
    fputs(NO_TENSORS, file);
    fclose(file);
    char *self_arc = strstr(text, ",\"control\":[0]"); /* of the first op, to itself */
    memset(self_arc, ' ', strlen(",\"control\":[0]"));
    return text;
}

static enum tarn_status load_text(const char *text, uint64_t text_max, struct tarn_error *error)
{
    char path[] = "/tmp/tarn-bounds-test-XXXXXX";
    struct tarn_graph *graph = NULL;
    int file = mkstemp(path);
    assert_true(file >= 0);
    close(file);
    assert_int_equal(tarn_text_write(path, text, strlen(text), NULL), TARN_OK);
    enum tarn_status status =
        tarn_graph_load(path, TARN_LOAD_OPTIONS(.text_max = text_max), &graph, error);
    tarn_graph_destroy(graph);
    unlink(path);
    return status;
}

static void streams_times_ops_have_a_limit_that_can_be_raised(void **state)
{
    (void)state;
    struct tarn_error error;
    char *text = ring(128, 20000);
    assert_int_equal(load_text(text, 0, &error), TARN_OK);
    free(text);
    text = ring(1100, 16000);
    assert_int_equal(load_text(text, 0, &error), TARN_BAD_INPUT);
    assert_string_equal(error.pointer, "/streams");
    assert_non_null(strstr(error.text, "1100 streams are too many"));
    assert_non_null(strstr(error.text, "--text-max"));
    assert_int_equal(load_text(text, UINT64_C(4) << 30, &error), TARN_OK);
    free(text);
}

static void text_has_a_limit_that_can_be_raised_and_lowered(void **state)
{
    (void)state;
    struct tarn_error error;
    char *text = ring(1, 10);
    assert_int_equal(load_text(text, strlen(text), &error), TARN_OK);
    assert_int_equal(load_text(text, strlen(text) - 1, &error), TARN_BAD_INPUT);
    assert_non_null(strstr(error.text, "the limit for input"));
    free(text);
}

static void a_plan_has_the_limit_of_its_graph(void **state)
{
    (void)state;
    char path[] = "/tmp/tarn-bounds-test-XXXXXX";
    struct tarn_error error;
    struct tarn_graph *graph = NULL;
    struct tarn_plan *plan = NULL;
    int file = mkstemp(path);
    assert_true(file >= 0);
    close(file);
    const char *source = TARN_SOURCE_DIR "/examples/graphs/figure7.json";
    assert_int_equal(tarn_graph_load(source, NULL, &graph, NULL), TARN_OK);
    assert_int_equal(tarn_plan_create(graph, NULL, &plan, NULL), TARN_OK);
    assert_int_equal(tarn_plan_save(plan, path, NULL), TARN_OK);
    tarn_plan_destroy(plan);
    FILE *longer = fopen(path, "a");
    fprintf(longer, "%8000s", " ");
    fclose(longer);
    assert_int_equal(tarn_plan_load(path, graph, TARN_VERIFY, NULL, &plan, &error), TARN_OK);
    tarn_plan_destroy(plan);
    tarn_graph_destroy(graph);
    assert_int_equal(tarn_graph_load(source, TARN_LOAD_OPTIONS(.text_max = 8000), &graph, NULL),
                     TARN_OK);
    assert_int_equal(tarn_plan_load(path, graph, TARN_VERIFY, NULL, &plan, &error), TARN_BAD_INPUT);
    assert_non_null(strstr(error.text, "more than 8000 bytes"));
    tarn_graph_destroy(graph);
    unlink(path);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_graph_file_takes_more_memory_than_its_text_allows),
        cmocka_unit_test(no_other_file_does),
        cmocka_unit_test(no_compressed_file_does),
        cmocka_unit_test(streams_times_ops_have_a_limit_that_can_be_raised),
        cmocka_unit_test(text_has_a_limit_that_can_be_raised_and_lowered),
        cmocka_unit_test(a_plan_has_the_limit_of_its_graph),
    };
    self = argv[0];
    if (argc == 4) return load_and_look(argv[1], argv[2], (size_t)atoll(argv[3]));
    return cmocka_run_group_tests_name("bounds", tests, NULL, NULL);
}
