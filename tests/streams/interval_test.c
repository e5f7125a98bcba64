/* Packing instances: what is in conflict is exactly what lives at the same time, by looking at
 * every pair of rows; instances come back from graphs as they were; answers are disjoint by a
 * reader that knows nothing of Tarn. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "planner/papers/pairs.h"
#include "streams/file/interval_read.h"
#include "streams/graph/graph.h"
#include "streams/graph/validate.h"
#include "streams/plan/plan.h"
#include "streams/plan/program.h"
#include "support/random_graph.h"
#include "tarn/plan.h"

#define ROWS_MAX 40
#define TEXT_MAX 8192

struct row {
    char id[32];
    uint64_t lower, upper, size, offset;
};

struct instance {
    struct row rows[ROWS_MAX];
    uint32_t count;
};

/* ---- Rows ---- */

static bool is_alive_together(const struct row *a, const struct row *b)
{
    return a->lower < b->upper && b->lower < a->upper;
}

static struct instance random_instance(uint64_t seed)
{
    struct random_source source = {seed};
    struct instance instance = {.count = random_below(&source, ROWS_MAX + 1)};
    uint32_t horizon = 1 + random_below(&source, 40), longest = 1 + random_below(&source, horizon);
    uint64_t unit = random_percent(&source, 20) ? UINT64_C(1) << 46 : 1;
    for (uint32_t i = 0; i < instance.count; i++) {
        struct row *row = &instance.rows[i];
        snprintf(row->id, sizeof row->id, "%s%u", random_percent(&source, 50) ? "t" : "", i);
        row->lower = unit * random_below(&source, horizon);
        row->upper = row->lower + 1 + random_below(&source, longest) * unit;
        row->size = 1 + random_below(&source, 12);
    }
    return instance;
}

/* As the writer does. */
static void print_rows(const struct instance *instance, char *text)
{
    text += sprintf(text, "id,lower,upper,size\n");
    for (uint32_t i = 0; i < instance->count; i++) {
        const struct row *row = &instance->rows[i];
        text += sprintf(text, "%s,%" PRIu64 ",%" PRIu64 ",%" PRIu64 "\n", row->id, row->lower,
                        row->upper, row->size);
    }
}

static struct instance read_answer(const char *path)
{
    struct instance instance = {.count = 0};
    char head[64] = "";
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_non_null(fgets(head, sizeof head, file));
    assert_string_equal(head, "id,lower,upper,size,offset\n");
    for (struct row *row = instance.rows; instance.count < ROWS_MAX; row++, instance.count++) {
        int values = fscanf(file, "%31[^,],%" SCNu64 ",%" SCNu64 ",%" SCNu64 ",%" SCNu64 "\n",
                            row->id, &row->lower, &row->upper, &row->size, &row->offset);
        if (values != 5) break;
    }
    assert_int_equal(fgetc(file), EOF);
    fclose(file);
    return instance;
}

/* ---- Graphs and texts ---- */

static enum tarn_status decode(const char *text, struct tarn_graph **graph,
                               struct tarn_error *error)
{
    struct tarn_report report = {.path = "folder/name.csv", .error = error};
    size_t size = strlen(text);
    char *copy = malloc(size + 1); /* no byte behind the end is there to be read */
    assert_non_null(copy);
    memcpy(copy, text, size + 1);
    memset(error, 0, sizeof *error);
    *graph = NULL;
    enum tarn_status status = tarn_interval_decode(&report, copy, size, graph);
    free(copy);
    return status;
}

static struct tarn_graph *graph_of(const char *text)
{
    struct tarn_graph *graph;
    struct tarn_error error;
    if (decode(text, &graph, &error) != TARN_OK) fail_msg("%s: %s", error.text, text);
    return graph;
}

struct folder {
    char path[64];
    char name[128]; /* of the file asked for last */
};

static struct folder folder_create(void)
{
    struct folder folder = {.path = "/tmp/tarn-interval-test-XXXXXX"};
    assert_non_null(mkdtemp(folder.path));
    return folder;
}

static const char *in_folder(struct folder *folder, const char *name)
{
    snprintf(folder->name, sizeof folder->name, "%s/%s", folder->path, name);
    return folder->name;
}

static void folder_destroy(struct folder *folder)
{
    static const char *const names[] = {"i.csv", "i.csv.gz", "i.json"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) unlink(in_folder(folder, names[i]));
    assert_int_equal(rmdir(folder->path), 0); /* nothing else was left there */
}

static struct tarn_graph *load(const char *path)
{
    struct tarn_graph *graph = NULL;
    struct tarn_error error;
    if (tarn_graph_load(path, NULL, &graph, &error) != TARN_OK) fail_msg("%s", error.text);
    return graph;
}

static void save(const struct tarn_graph *graph, const char *path)
{
    struct tarn_error error;
    unlink(path); /* replacing a file may be flushed to the disk, which is slow */
    if (tarn_graph_save(graph, path, &error) != TARN_OK) fail_msg("%s", error.text);
}

static void assert_holds(const char *path, const char *text)
{
    char found[TEXT_MAX] = "";
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    found[fread(found, 1, sizeof found - 1, file)] = '\0';
    fclose(file);
    assert_string_equal(found, text);
}

/* ---- What is in conflict ---- */

static void lifetimes_that_meet_are_the_unsafe_pairs(void **state)
{
    (void)state;
    uint64_t unsafe = 0, safe = 0;
    for (uint64_t seed = 0; seed < 5000; seed++) {
        char text[TEXT_MAX];
        struct instance instance = random_instance(seed);
        struct tarn_pair_matrix matrix;
        print_rows(&instance, text);
        struct tarn_graph *graph = graph_of(text);
        assert_int_equal(graph->planned_count, instance.count);
        assert_int_equal(tarn_pairs_clocks(graph, &matrix), TARN_OK);
        for (uint32_t a = 0; a < instance.count; a++) {
            for (uint32_t b = 0; b < a; b++) {
                bool together = is_alive_together(&instance.rows[a], &instance.rows[b]);
                assert_true(tarn_pair_matrix_get(&matrix, a, b) == together);
                *(together ? &unsafe : &safe) += 1;
            }
        }
        tarn_pair_matrix_finish(&matrix);
        tarn_graph_destroy(graph);
    }
    assert_true(unsafe > 100000 && safe > 100000);
}

static uint64_t load_of(const struct instance *instance, uint64_t step)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < instance->count; i++) {
        const struct row *row = &instance->rows[i];
        if (row->lower <= step && step < row->upper) sum += row->size;
    }
    return sum;
}

/* The load changes only where a buffer begins. */
static uint64_t max_load(const struct instance *instance)
{
    uint64_t most = 0;
    for (uint32_t i = 0; i < instance->count; i++) {
        uint64_t sum = load_of(instance, instance->rows[i].lower);
        if (sum > most) most = sum;
    }
    return most;
}

static void the_serial_peak_is_the_maximum_load(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 500; seed++) {
        char text[TEXT_MAX];
        struct instance instance = random_instance(seed);
        struct tarn_graph_summary summary;
        print_rows(&instance, text);
        struct tarn_graph *graph = graph_of(text);
        assert_int_equal(tarn_graph_summarize(graph, &summary, NULL), TARN_OK);
        assert_int_equal(summary.serial_peak, max_load(&instance));
        tarn_graph_destroy(graph);
    }
}

/* ---- There and back ---- */

static void round_trips_through_graph_and_json(void **state)
{
    (void)state;
    struct folder folder = folder_create();
    for (uint64_t seed = 0; seed < 200; seed++) {
        char text[TEXT_MAX];
        struct instance instance = random_instance(seed);
        print_rows(&instance, text);
        struct tarn_graph *graph = graph_of(text);
        save(graph, in_folder(&folder, "i.json"));
        struct tarn_graph *again = load(folder.name);
        save(again, in_folder(&folder, "i.csv"));
        assert_holds(folder.name, text);
        struct tarn_graph *last = load(folder.name);
        assert_true(tarn_hash_equal(graph->hash, last->hash)); /* one plan serves all three */
        assert_string_equal(tarn_graph_name(graph), "name");
        assert_string_equal(tarn_graph_name(last), "i");
        tarn_graph_destroy(graph);
        tarn_graph_destroy(again);
        tarn_graph_destroy(last);
    }
    folder_destroy(&folder);
}

static void reads_and_writes_compressed_instances(void **state)
{
    (void)state;
    struct folder folder = folder_create();
    struct tarn_graph *graph = load(TARN_SOURCE_DIR "/examples/graphs/twelve.csv");
    save(graph, in_folder(&folder, "i.csv.gz"));
    struct tarn_graph *again = load(folder.name);
    assert_true(tarn_hash_equal(graph->hash, again->hash));
    assert_string_equal(tarn_graph_name(again), "i");
    FILE *file = fopen(folder.name, "rb");
    assert_non_null(file);
    assert_int_equal(fgetc(file), 0x1f);
    fclose(file);
    tarn_graph_destroy(graph);
    tarn_graph_destroy(again);
    folder_destroy(&folder);
}

static void columns_have_any_order_and_the_usual_names(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "id,lower,upper,size\na,0,3,5\nb,2,4,6\n",
        "size,upper,id,lower\n5,3,a,0\n6,4,b,2",
        "buffer,start,end,size\na,0,2,5\nb,2,3,6\n",
        "buffer_id,begin,upper,size,gaps\na,0,3,5,\nb,2,4,6,\n",
        "\xef\xbb\xbfid,lower,upper,size\r\n\r\n a , 0,3 ,5\r\nb,\t2,4,6 \r\n\r\n",
        "ID,Lower,UPPER,sIzE\na,0,3,5\nb,2,4,6\n",
        "\"id\",\"lower\",\"upper\",\"size\"\n\"a\",\"0\",\"3\",\"5\"\n\"b\" , \"2\",4,\"6\" \n",
        "id;lower;upper;size;hint\na;0;3;5;-1\n b ;2;4;6;\n",
        ("id\tlower\tupper\tsize\thint\tgaps\na\t0\t3\t5\t-1\t\n\"b\"\t2\t4\t6\t\t\r"
         "\n \t \n"),
        "\xef\xbb\xbf\"Buffer\";\"Start\";\"End\";\"Size\"\r\n\"a\";0;2;5\r\nb;\"2\";3;6\r\n",
    };
    struct tarn_graph *plain = graph_of(texts[0]);
    for (size_t i = 1; i < sizeof texts / sizeof *texts; i++) {
        struct tarn_graph *graph = graph_of(texts[i]);
        if (!tarn_hash_equal(plain->hash, graph->hash)) fail_msg("another graph: %s", texts[i]);
        assert_string_equal(graph->tensors[1].name, "b");
        tarn_graph_destroy(graph);
    }
    tarn_graph_destroy(plain);
}

/* An answer counts before a hint, whatever comes first; neither makes a plan larger. */
static void offsets_and_hints_are_preferred(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "id,lower,upper,size,offset\na,0,3,512,512\nb,2,4,512,0\n",
        "id,lower,upper,size,hint\na,0,3,512,512\nb,2,4,512,-1\n",
        "id,lower,upper,size,hint,offset\na,0,3,512,0,512\nb,2,4,512,512,0\n",
        "id,lower,upper,size,offset,hint\na,0,3,512,512,0\nb,2,4,512,0,512\n",
        "id,lower,upper,size,offset\na,0,3,512,512\nb,2,4,512,4096\n",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct tarn_graph *graph = graph_of(texts[i]);
        struct tarn_plan *plan;
        struct tarn_plan_summary summary;
        assert_int_equal(tarn_plan_create(graph, NULL, &plan, NULL), TARN_OK);
        tarn_plan_summarize(plan, &summary);
        assert_int_equal(summary.footprint, 1024);
        assert_int_equal(tarn_plan_offset(plan, 0), 512);
        assert_int_equal(tarn_plan_offset(plan, 1), 0);
        tarn_plan_destroy(plan);
        tarn_graph_destroy(graph);
    }
}

static void quoted_ids_hold_separators_and_quotes(void **state)
{
    (void)state;
    struct tarn_graph *graph = graph_of(
        "id,lower,upper,size\n\"a, b\",0,3,5\n\"say \"\"c\"\"; \",2,4,6\n\"\"\"\",2,4,6\n");
    assert_string_equal(graph->tensors[0].name, "a, b");
    assert_string_equal(graph->tensors[1].name, "say \"c\"; ");
    assert_string_equal(graph->tensors[2].name, "\"");
    struct folder folder = folder_create(); /* and are written as they were read */
    save(graph, in_folder(&folder, "i.csv"));
    struct tarn_graph *again = load(folder.name);
    assert_true(tarn_hash_equal(graph->hash, again->hash));
    assert_holds(folder.name, "id,lower,upper,size\n\"a, b\",0,3,5\n"
                              "\"say \"\"c\"\"; \",2,4,6\n\"\"\"\",2,4,6\n");
    tarn_graph_destroy(again);
    tarn_graph_destroy(graph);
    folder_destroy(&folder);
}

static void a_name_or_the_first_letter_tells_instances_from_json(void **state)
{
    (void)state;
    assert_true(tarn_interval_is("a.csv", "{"));
    assert_true(tarn_interval_is("folder.json/a.csv.gz", "{"));
    assert_true(tarn_interval_is("-", " \n id,"));
    assert_true(tarn_interval_is("-", "\"id\";"));
    assert_true(tarn_interval_is("/dev/fd/63", "\xef\xbb\xbf"
                                               "buffer,"));
    assert_false(tarn_interval_is("a.json", "id,"));
    assert_false(tarn_interval_is("folder.csv/a.json.gz", "id,"));
    assert_false(tarn_interval_is("-", " \n {"));
    assert_false(tarn_interval_is("csv", "[id"));
    assert_true(tarn_interval_is("A.CSV", "[id"));
    assert_true(tarn_interval_is("a.csv.GZ", "[id"));
    assert_false(tarn_interval_is("A.JSON", "id,"));
    assert_false(tarn_interval_is("bluecsv", "[id"));
    assert_true(tarn_interval_is("bluejson", "id,"));
    assert_false(tarn_interval_is(".gz", ""));
}

static void a_graph_is_named_by_its_file_without_the_extension(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"folder/a.csv", "a"}, {"a.csv.gz", "a"}, {"a.csv.old", "a.csv.old"}, {"a\xff", "a?"},
        {"A.CSV", "A"},        {"b.Csv.GZ", "b"}, {"a.csv.b.csv", "a.csv.b"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[] = "id,lower,upper,size\na,0,3,5\n";
        struct tarn_report report = {.path = cases[i][0]};
        struct tarn_graph *graph;
        assert_int_equal(tarn_interval_decode(&report, text, strlen(text), &graph), TARN_OK);
        assert_string_equal(tarn_graph_name(graph), cases[i][1]);
        tarn_graph_destroy(graph);
    }
}

static void refuses_more_lines_than_tensors_there_may_be(void **state)
{
    (void)state;
    size_t size = (size_t)TARN_TENSORS_MAX + 1;
    char *text = malloc(size + 1);
    struct tarn_error error = {0};
    struct tarn_report report = {.path = "a.csv", .error = &error};
    struct tarn_graph *graph = NULL;
    assert_non_null(text);
    memset(text, '\n', size);
    text[size] = '\0';
    assert_int_equal(tarn_interval_decode(&report, text, size, &graph), TARN_BAD_INPUT);
    assert_null(graph);
    assert_non_null(strstr(error.text, "lines"));
    free(text);
}

static void keeps_alignments_and_plans_respect_them(void **state)
{
    (void)state;
    struct folder folder = folder_create();
    const char *text = "id,lower,upper,size,alignment\na,0,3,5,1\nb,1,4,6,8\nc,2,4,1,64\n";
    struct tarn_graph *graph = graph_of(text);
    struct tarn_plan *plan;
    save(graph, in_folder(&folder, "i.csv"));
    assert_holds(folder.name, text);
    assert_int_equal(tarn_plan_create(graph, TARN_PLAN_OPTIONS(.alignment = 1), &plan, NULL),
                     TARN_OK);
    assert_int_equal(tarn_plan_offset(plan, 1) % 8, 0);
    assert_int_equal(tarn_plan_offset(plan, 2) % 64, 0);
    tarn_plan_destroy(plan);
    tarn_graph_destroy(graph);
    folder_destroy(&folder);
}

/* ---- Other graphs as instances ---- */

/* Views, in-place writes, outputs and persistent tensors included. */
static void keeps_the_unsafe_pairs_of_any_graph_of_one_stream(void **state)
{
    (void)state;
    struct folder folder = folder_create();
    uint32_t pairs = 0;
    for (uint64_t seed = 0; seed < 300; seed++) {
        struct random_graph_options options = random_graph_knobs(seed, 40);
        struct tarn_pair_matrix before, after;
        options.streams = 1;
        options.workspace_share = options.group_share = 0;
        struct tarn_graph *graph = random_graph(&options);
        save(graph, in_folder(&folder, "i.csv"));
        struct tarn_graph *again = load(folder.name);
        assert_int_equal(again->planned_count, graph->planned_count);
        assert_int_equal(tarn_pairs_clocks(graph, &before), TARN_OK);
        assert_int_equal(tarn_pairs_clocks(again, &after), TARN_OK);
        for (uint32_t a = 0; a < graph->planned_count; a++) {
            assert_int_equal(graph->storages[a].size, again->storages[a].size);
            for (uint32_t b = 0; b < a; b++, pairs++)
                assert_true(tarn_pair_matrix_get(&before, a, b) ==
                            tarn_pair_matrix_get(&after, a, b));
        }
        tarn_pair_matrix_finish(&before);
        tarn_pair_matrix_finish(&after);
        tarn_graph_destroy(graph);
        tarn_graph_destroy(again);
    }
    assert_true(pairs > 5000);
    folder_destroy(&folder);
}

static void assert_not_expressible(struct random_graph_options options, const char *why)
{
    struct folder folder = folder_create();
    struct tarn_error error;
    options.ops = 20;
    struct tarn_graph *graph = random_graph(&options);
    const char *path = in_folder(&folder, "i.csv");
    assert_int_equal(tarn_graph_save(graph, path, &error), TARN_USAGE);
    if (!strstr(error.text, why)) fail_msg("'%s' is not in '%s'", why, error.text);
    assert_non_null(strstr(error.text, path));
    tarn_graph_destroy(graph);
    folder_destroy(&folder);
}

static void refuses_to_write_what_intervals_cannot_express(void **state)
{
    (void)state;
    assert_not_expressible((struct random_graph_options){.streams = 2}, "2 streams");
    assert_not_expressible((struct random_graph_options){.streams = 1, .workspace_share = 100},
                           "the workspace of op ");
    assert_not_expressible((struct random_graph_options){.streams = 1, .group_share = 100},
                           "lies in a contiguous group");
}

static struct tarn_builder *build_with_names(const char *const *ops, const char *first,
                                             const char *second)
{
    struct tarn_builder *b = tarn_builder_create("names");
    tarn_builder_stream(b, "s");
    tarn_builder_tensor(b, &(struct tarn_tensor_info){.name = first, .size = 5});
    tarn_builder_tensor(b, &(struct tarn_tensor_info){.name = second, .size = 6});
    tarn_builder_op(b, &(struct tarn_op_info){.name = ops[0], .outputs = TARN_TENSORS(0)});
    tarn_builder_op(b, &(struct tarn_op_info){
                           .name = ops[1], .inputs = TARN_TENSORS(0), .outputs = TARN_TENSORS(1)});
    return b;
}

/* Written as an instance, it has this text. */
static void require_written(struct tarn_builder *builder, const char *text)
{
    struct folder folder = folder_create();
    struct tarn_graph *graph;
    assert_int_equal(tarn_builder_finish(builder, &graph, NULL), TARN_OK);
    save(graph, in_folder(&folder, "i.csv"));
    assert_holds(folder.name, text);
    tarn_graph_destroy(graph);
    folder_destroy(&folder);
}

static void a_group_of_one_is_no_hindrance(void **state)
{
    (void)state;
    static const char *const ops[] = {"op", "op"};
    struct tarn_builder *builder = build_with_names(ops, "x", "y");
    tarn_builder_group(builder, TARN_TENSORS(1));
    require_written(builder, "id,lower,upper,size\nx,0,2,5\ny,1,2,6\n");
}

static void steps_are_ranks_where_ops_are_not_named_by_ascending_numbers(void **state)
{
    (void)state;
    static const struct {
        const char *ops[2], *text;
    } cases[] = {
        {{"3", "7"}, "id,lower,upper,size\nx,3,8,5\ny,7,8,6\n"},
        {{"7", "3"}, "id,lower,upper,size\nx,0,2,5\ny,1,2,6\n"},
        {{"3", "3"}, "id,lower,upper,size\nx,0,2,5\ny,1,2,6\n"},
        {{"3", "7a"}, "id,lower,upper,size\nx,0,2,5\ny,1,2,6\n"},
        {{"3", "/7"}, "id,lower,upper,size\nx,0,2,5\ny,1,2,6\n"},
        {{"3", "00000000000000007"}, "id,lower,upper,size\nx,0,2,5\ny,1,2,6\n"},
        {{"3", "9007199254740990"},
         "id,lower,upper,size\nx,3,9007199254740991,5\n"
         "y,9007199254740990,9007199254740991,6\n"},
        {{"3", "9007199254740991"}, "id,lower,upper,size\nx,0,2,5\ny,1,2,6\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        require_written(build_with_names(cases[i].ops, "x", "y"), cases[i].text);
}

static void ids_are_numbers_where_a_name_is_missing_odd_or_there_twice(void **state)
{
    (void)state;
    static const struct {
        const char *first, *second, *text;
    } cases[] = {
        {"x", "y z", "id,lower,upper,size\nx,0,2,5\ny z,1,2,6\n"},
        {"x", "x", "id,lower,upper,size\n0,0,2,5\n1,1,2,6\n"},
        {"1", "", "id,lower,upper,size\n0,0,2,5\n1,1,2,6\n"},
        {"x,", "y", "id,lower,upper,size\n\"x,\",0,2,5\ny,1,2,6\n"},
        {"x", "\"y\"", "id,lower,upper,size\nx,0,2,5\n\"\"\"y\"\"\",1,2,6\n"},
        {" x", "x", "id,lower,upper,size\n\" x\",0,2,5\nx,1,2,6\n"},
        {"x", "y\n", "id,lower,upper,size\n0,0,2,5\n1,1,2,6\n"},
        {"x", "y\u200e", "id,lower,upper,size\n0,0,2,5\n1,1,2,6\n"},
    };
    static const char *const ops[] = {"op", "op"};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        require_written(build_with_names(ops, cases[i].first, cases[i].second), cases[i].text);
}

/* ---- Gaps ---- */

enum { GAP_ROWS = 7, GAP_STEPS = 10, GAP_BYTES = 5 };

/* A buffer as its bytes in use in each step. */
struct gap_row {
    char text[128];
    uint64_t size;
    bool used[GAP_STEPS][GAP_BYTES];
};

struct gap_table {
    struct gap_row rows[GAP_ROWS];
    uint32_t count;
};

/* Gaps of a row in a random order, its last column. */
static void draw_row(struct random_source *source, struct gap_row *row, uint32_t id, bool has_end)
{
    uint32_t lower = random_below(source, GAP_STEPS - 1);
    uint32_t upper = lower + 1 + random_below(source, GAP_STEPS - lower);
    char gaps[GAP_STEPS][32];
    uint32_t count = 0;
    *row = (struct gap_row){.size = 1 + random_below(source, GAP_BYTES)};
    for (uint32_t t = lower; t < upper; t++)
        for (uint64_t i = 0; i < row->size; i++) row->used[t][i] = true;
    for (uint32_t t = lower; t < upper && count < GAP_STEPS;) {
        uint32_t begin = t + random_below(source, 3), end = begin + 1 + random_below(source, 2);
        uint64_t from = random_below(source, (uint32_t)row->size + 1);
        uint64_t to = from + random_below(source, (uint32_t)(row->size - from) + 1);
        if (end > upper || random_percent(source, 20)) break;
        bool whole = random_percent(source, 60);
        for (t = begin; t < end; t++)
            for (uint64_t i = 0; i < row->size; i++)
                row->used[t][i] = !whole && i >= from && i < to;
        if (whole)
            sprintf(gaps[count++], "%u-%u", begin, end - has_end);
        else
            sprintf(gaps[count++], "%u-%u@%" PRIu64 ":%" PRIu64, begin, end - has_end, from, to);
    }
    char *to = row->text +
               sprintf(row->text, "b%u,%u,%u,%" PRIu64 ",", id, lower, upper - has_end, row->size);
    while (count > 0) {
        uint32_t k = random_below(source, count);
        to += sprintf(to, " %s", gaps[k]);
        memcpy(gaps[k], gaps[--count], sizeof gaps[k]);
    }
}

/* Does the row use its first byte, as it must? */
static bool begins(const struct gap_row *row)
{
    for (uint32_t t = 0; t < GAP_STEPS; t++)
        if (row->used[t][0]) return true;
    return false;
}

static struct gap_table draw_table(struct random_source *source, char *text)
{
    struct gap_table table = {.count = 1 + random_below(source, GAP_ROWS)};
    bool has_end = random_percent(source, 30);
    text += sprintf(text, "id,start,%s,size,gaps\n", has_end ? "end" : "upper");
    for (uint32_t i = 0; i < table.count; i++) {
        do draw_row(source, &table.rows[i], i, has_end);
        while (!begins(&table.rows[i]));
        text += sprintf(text, "%s\n", table.rows[i].text);
    }
    return table;
}

/* May b begin so many bytes behind a? */
static bool may_lie(const struct gap_row *a, const struct gap_row *b, int away)
{
    for (uint32_t t = 0; t < GAP_STEPS; t++)
        for (int i = 0; i < GAP_BYTES; i++) {
            int k = i - away;
            if (k >= 0 && k < GAP_BYTES && a->used[t][i] && b->used[t][k]) return false;
        }
    return true;
}

/* Do all offsets of the first `count` rows fit below a limit? Of the next ones all are tried. */
static bool fits(const struct gap_table *table, uint64_t *offsets, uint32_t count, uint64_t limit)
{
    if (count == table->count) return true;
    const struct gap_row *row = &table->rows[count];
    uint64_t end = 0; /* of what it uses */
    for (uint64_t i = 0; i < row->size; i++)
        for (uint32_t t = 0; t < GAP_STEPS; t++)
            if (row->used[t][i]) end = i + 1;
    for (uint64_t at = 0; at + end <= limit; at++) {
        bool ok = true;
        for (uint32_t k = 0; k < count && ok; k++)
            ok = may_lie(&table->rows[k], row, (int)at - (int)offsets[k]);
        offsets[count] = at;
        if (ok && fits(table, offsets, count + 1, limit)) return true;
    }
    return false;
}

/* The offset of each row in a plan: of the first piece, whose name is the row's. */
static void find_offsets(const struct tarn_plan *plan, const struct gap_table *table,
                         uint64_t *offsets)
{
    const struct tarn_graph *graph = tarn_plan_graph(plan);
    for (uint32_t i = 0; i < table->count; i++) {
        char id[16];
        sprintf(id, "b%u", i);
        tarn_tensor t = tarn_graph_find_tensor(graph, id);
        uint32_t group = graph->storages[graph->tensors[t].storage].group;
        offsets[i] = tarn_plan_offset(plan, t);
        for (uint32_t k = 0; group != TARN_NONE && k < graph->groups[group].storages_count; k++)
            if (graph->groups[group].storages[k] == graph->tensors[t].storage)
                offsets[i] -= graph->groups[group].within[k];
    }
}

static bool is_right(const struct gap_table *table, const uint64_t *offsets)
{
    for (uint32_t i = 0; i < table->count; i++)
        for (uint32_t k = 0; k < i; k++)
            if (!may_lie(&table->rows[k], &table->rows[i], (int)offsets[i] - (int)offsets[k]))
                return false;
    return true;
}

/* Do the pieces of every buffer lie at one place? */
static bool is_whole(const struct tarn_plan *plan)
{
    const struct tarn_graph *graph = tarn_plan_graph(plan);
    for (uint32_t g = 0; g < tarn_graph_groups_count(graph); g++) {
        struct tarn_list list = tarn_graph_group(graph, g);
        const uint64_t *within = tarn_graph_group_offsets(graph, g);
        for (size_t i = 1; i < list.count; i++)
            if (tarn_plan_offset(plan, list.ids[i]) - within[i] !=
                tarn_plan_offset(plan, list.ids[0]) - within[0])
                return false;
    }
    return true;
}

/* The offsets of an answer are the plan's; the answer, read again, is the same problem. */
static void check_gap_answer(const struct tarn_plan *plan, const struct gap_table *table,
                             const uint64_t *offsets, const char *instance)
{
    static char text[TEXT_MAX];
    struct tarn_error error;
    struct tarn_graph *again;
    size_t size;
    assert_int_equal(tarn_plan_write(plan,
                                     TARN_WRITER(.name = "a.csv", .bytes = text,
                                                 .room = sizeof text, .size = &size),
                                     &error),
                     TARN_OK);
    text[size] = 0;
    for (uint32_t i = 0; i < table->count; i++) {
        char id[16];
        sprintf(id, "\nb%u,", i);
        const char *row = strstr(text, id);
        assert_non_null(row);
        row = strchr(row + 1, '\n');
        while (row[-1] != ',') row--;
        assert_int_equal(strtoull(row, NULL, 10), offsets[i]);
    }
    if (decode(text, &again, &error) != TARN_OK) fail_msg("%s: %s", error.text, text);
    struct tarn_plan *second;
    struct tarn_plan_summary before, after;
    assert_int_equal(
        tarn_plan_create(again, TARN_PLAN_OPTIONS(.alignment = 1, .threads = 1), &second, &error),
        TARN_OK);
    tarn_plan_summarize(plan, &before);
    tarn_plan_summarize(second, &after);
    if (before.bound != after.bound || before.footprint != after.footprint)
        fail_msg("%s, written: %s", instance, text);
    tarn_plan_destroy(second);
    tarn_graph_destroy(again);
}

/* Every offset is tried on tables of a few buffers. */
static void buffers_share_bytes_with_what_lives_in_their_gaps(void **state)
{
    uint32_t optimal = 0, gapped = 0, harmful = 0, least = 0;
    (void)state;
    for (uint64_t seed = 0; seed < DRAWS(500); seed++) {
        struct random_source source = {seed};
        char text[TEXT_MAX];
        uint64_t offsets[GAP_ROWS], tried[GAP_ROWS];
        struct tarn_plan *plan;
        struct tarn_plan_summary summary;
        struct tarn_error error;
        struct gap_table table = draw_table(&source, text);
        struct tarn_graph *graph = graph_of(text);
        if (tarn_plan_create(graph, TARN_PLAN_OPTIONS(.alignment = 1, .threads = 1), &plan, &error))
            fail_msg("%s: %s", error.text, text);
        tarn_plan_summarize(plan, &summary);
        find_offsets(plan, &table, offsets);
        if (!is_right(&table, offsets)) fail_msg("%s", text);
        if (fits(&table, tried, 0, summary.bound - 1)) fail_msg("the bound is wrong: %s", text);
        if (summary.optimal) optimal++;
        least += !fits(&table, tried, 0, summary.footprint - 1);
        gapped += graph->groups_count > 0;
        check_gap_answer(plan, &table, offsets, text);
        uint32_t a = random_below(&source, graph->planned_count); /* one piece, or buffer, moved */
        plan->storages[a].offset =
            random_below(&source, (uint32_t)(plan->footprint - plan->storages[a].size) + 1);
        tarn_plan_drop_program(plan);
        find_offsets(plan, &table, offsets);
        bool right = is_right(&table, offsets) && is_whole(plan);
        if ((tarn_plan_verify(plan, graph, NULL, NULL, &error) == TARN_OK) != right)
            fail_msg("%s: %s", right ? error.text : "accepted", text);
        harmful += !right;
        tarn_plan_destroy(plan);
        tarn_graph_destroy(graph);
    }
    print_message("# %u with gaps, %u called optimal, %u the least, %u damaged\n", gapped, optimal,
                  least, harmful);
    assert_true(gapped > DRAWS(300) && optimal > DRAWS(250) && harmful > DRAWS(80));
    assert_true(least >= optimal);
}

/* What is read is written as it was; gaps in another order, or that touch, in the plain form. */
static void gaps_are_written_as_they_were_read(void **state)
{
    (void)state;
    static const char *const texts[][2] = {
        {"id,lower,upper,size,gaps\na,0,9,4,\nb,0,9,4,3-5 7-8\n", NULL},
        {"id,lower,upper,size,gaps\nb,0,9,4,7-8 3-5\n",
         "id,lower,upper,size,gaps\nb,0,9,4,3-5 7-8\n"},
        {"id,start,end,size,gaps\nb,0,8,4,3-4 7-7\n",
         "id,lower,upper,size,gaps\nb,0,9,4,3-5 7-8\n"},
        {"id;lower;upper;size;GAPS\nb;0;9;4;\" 3-4 4-5\t7-8 \"\n",
         "id,lower,upper,size,gaps\nb,0,9,4,3-5 7-8\n"},
        {"id,lower,upper,size,alignment,gaps,hint\nb,0,9,4,8,3-5@2:4 7-8@0:1,16\nc,1,2,3,1,,\n",
         NULL},
        {"id,lower,upper,size,gaps\nb,0,9,4,0-2 5-9\n", "id,lower,upper,size\nb,2,5,4\n"},
        {"id,lower,upper,size,gaps\n\"b,\",0,9,4,0-2@1:3 3-4@1:1\n",
         "id,lower,upper,size,gaps\n\"b,\",0,9,4,0-2@1:3 3-4\n"},
        {"id,lower,upper,size,gaps\nb,0,9,0,3-5\n", "id,lower,upper,size\nb,0,9,0\n"},
    };
    struct folder folder = folder_create();
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct tarn_graph *graph = graph_of(texts[i][0]);
        save(graph, in_folder(&folder, "i.csv"));
        assert_holds(folder.name, texts[i][1] ? texts[i][1] : texts[i][0]);
        save(graph, in_folder(&folder, "i.json")); /* as a graph it is the same */
        struct tarn_graph *again = load(folder.name);
        assert_true(tarn_hash_equal(graph->hash, again->hash));
        tarn_graph_destroy(again);
        tarn_graph_destroy(graph);
    }
    folder_destroy(&folder);
}

/* ---- Answers ---- */

static void check_answer(const struct instance *asked, const struct instance *answer,
                         uint64_t footprint)
{
    uint64_t highest = 0;
    assert_int_equal(answer->count, asked->count);
    for (uint32_t i = 0; i < answer->count; i++) {
        const struct row *a = &answer->rows[i];
        assert_string_equal(a->id, asked->rows[i].id);
        assert_int_equal(a->lower, asked->rows[i].lower);
        assert_int_equal(a->upper, asked->rows[i].upper);
        assert_int_equal(a->size, asked->rows[i].size);
        if (a->offset + a->size > highest) highest = a->offset + a->size;
        for (uint32_t j = 0; j < i; j++) {
            const struct row *b = &answer->rows[j];
            bool apart = a->offset + a->size <= b->offset || b->offset + b->size <= a->offset;
            assert_true(apart || !is_alive_together(a, b));
        }
    }
    assert_int_equal(highest, footprint);
}

static void buffers_of_an_answer_are_disjoint_while_they_live(void **state)
{
    (void)state;
    struct folder folder = folder_create();
    for (uint64_t seed = 0; seed < 200; seed++) {
        char text[TEXT_MAX];
        struct instance asked = random_instance(seed);
        struct tarn_plan_summary summary;
        struct tarn_plan *plan;
        const char *path = in_folder(&folder, "i.csv");
        print_rows(&asked, text);
        struct tarn_graph *graph = graph_of(text);
        const struct tarn_plan_options *options =
            TARN_PLAN_OPTIONS(.alignment = 1, .method = "many-objects:size:first-fit",
                              .threads = 1);
        assert_int_equal(tarn_plan_create(graph, options, &plan, NULL), TARN_OK);
        tarn_plan_summarize(plan, &summary);
        unlink(path);
        /* both ways of asking for it */
        assert_int_equal(seed % 2 ? tarn_plan_save(plan, path, NULL)
                                  : tarn_plan_save_intervals(plan, path, NULL),
                         TARN_OK);
        struct instance answer = read_answer(path);
        check_answer(&asked, &answer, summary.footprint);
        tarn_plan_destroy(plan);
        tarn_graph_destroy(graph);
    }
    folder_destroy(&folder);
}

static void an_answer_is_not_written_under_a_name_for_json(void **state)
{
    (void)state;
    struct folder folder = folder_create();
    struct tarn_graph *graph = load(TARN_SOURCE_DIR "/examples/graphs/twelve.csv");
    struct tarn_plan *plan;
    assert_int_equal(tarn_plan_create(graph, NULL, &plan, NULL), TARN_OK);
    assert_int_equal(tarn_plan_save_intervals(plan, in_folder(&folder, "i.json"), NULL),
                     TARN_USAGE);
    tarn_plan_destroy(plan);
    tarn_graph_destroy(graph);
    folder_destroy(&folder);
}

/* ---- Damaged at random ---- */

static void survives_random_damage(void **state)
{
    (void)state;
    const char *original = "id,lower,upper,size,alignment,gaps,offset\na,0,3,5,1,,0\nb,2,4,6,8,,8\n"
                           "c,4,9,7,2,,0\n";
    const char pieces[] = "0123456789012345678901234567890123456789,\n\"-b \r\t";
    struct random_source source = {7};
    unsigned accepted = 0, refused = 0;
    for (int round = 0; round < 20000; round++) {
        char text[256];
        struct tarn_graph *graph;
        struct tarn_error error;
        snprintf(text, sizeof text, "%s", original);
        for (uint32_t n = 1 + random_below(&source, 2); n > 0; n--) {
            size_t head = random_percent(&source, 90) ? strcspn(original, "\n") : 0;
            size_t at = head + random_below(&source, (uint32_t)(strlen(text) - head));
            if (random_percent(&source, 30))
                memmove(text + at, text + at + 1, strlen(text + at));
            else
                text[at] = pieces[random_below(&source, sizeof pieces - 1)];
        }
        enum tarn_status status = decode(text, &graph, &error);
        assert_true((status == TARN_OK) == (graph != NULL));
        tarn_graph_destroy(graph);
        if (status != TARN_OK && (status != TARN_BAD_INPUT || error.line == 0))
            fail_msg("%s, line %u: %s\n%s", tarn_status_text(status), error.line, error.text, text);
        *(status == TARN_OK ? &accepted : &refused) += 1;
    }
    assert_true(accepted > 1000 && refused > 1000); /* neither void nor total */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lifetimes_that_meet_are_the_unsafe_pairs),
        cmocka_unit_test(the_serial_peak_is_the_maximum_load),
        cmocka_unit_test(round_trips_through_graph_and_json),
        cmocka_unit_test(reads_and_writes_compressed_instances),
        cmocka_unit_test(columns_have_any_order_and_the_usual_names),
        cmocka_unit_test(offsets_and_hints_are_preferred),
        cmocka_unit_test(quoted_ids_hold_separators_and_quotes),
        cmocka_unit_test(a_name_or_the_first_letter_tells_instances_from_json),
        cmocka_unit_test(a_graph_is_named_by_its_file_without_the_extension),
        cmocka_unit_test(refuses_more_lines_than_tensors_there_may_be),
        cmocka_unit_test(keeps_alignments_and_plans_respect_them),
        cmocka_unit_test(keeps_the_unsafe_pairs_of_any_graph_of_one_stream),
        cmocka_unit_test(refuses_to_write_what_intervals_cannot_express),
        cmocka_unit_test(a_group_of_one_is_no_hindrance),
        cmocka_unit_test(steps_are_ranks_where_ops_are_not_named_by_ascending_numbers),
        cmocka_unit_test(ids_are_numbers_where_a_name_is_missing_odd_or_there_twice),
        cmocka_unit_test(buffers_share_bytes_with_what_lives_in_their_gaps),
        cmocka_unit_test(gaps_are_written_as_they_were_read),
        cmocka_unit_test(buffers_of_an_answer_are_disjoint_while_they_live),
        cmocka_unit_test(an_answer_is_not_written_under_a_name_for_json),
        cmocka_unit_test(survives_random_damage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
