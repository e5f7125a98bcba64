/* Graphs, plans, packing instances and tables of costs through memory and functions of the caller:
 * the same texts and the same errors as with files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "support/random_graph.h"
#include "support/session_calls.h"
#include "tarn.h"

enum { ROOM = 1 << 20 };

/* A text in pieces of at most `piece` bytes; after `calls_left` calls it fails. */
struct tape {
    char *bytes;
    size_t size, at, piece;
    int calls_left;
};

static ptrdiff_t read_tape(void *user, void *to, size_t room)
{
    struct tape *tape = user;
    size_t size = tape->size - tape->at;
    if (tape->calls_left-- == 0) return -1;
    if (size > room) size = room;
    if (size > tape->piece) size = tape->piece;
    memcpy(to, tape->bytes + tape->at, size);
    tape->at += size;
    return (ptrdiff_t)size;
}

static int write_tape(void *user, const void *bytes, size_t size)
{
    struct tape *tape = user;
    if (tape->calls_left-- == 0 || size > ROOM - tape->size) return 7;
    memcpy(tape->bytes + tape->size, bytes, size);
    tape->size += size;
    return 0;
}

static struct tape tape_create(void)
{
    return (struct tape){.bytes = malloc(ROOM), .piece = 100, .calls_left = -1};
}

static struct tarn_graph *graph_of(uint32_t streams)
{
    return random_graph(
        &(struct random_graph_options){.seed = 3, .ops = 40, .streams = streams, .parameters = 3});
}

static void graphs_go_through_functions(void **state)
{
    (void)state;
    const char *const names[] = {NULL, "a.json", "a.json.gz"};
    for (size_t i = 0; i < 3; i++) {
        struct tape tape = tape_create();
        struct tarn_graph *graph = graph_of(2), *back;
        struct tarn_error error;
        size_t size = 0;
        require(tarn_graph_write(graph,
                                 TARN_WRITER(.name = names[i], .write = write_tape, .user = &tape,
                                             .size = &size),
                                 &error),
                &error);
        assert_int_equal(size, tape.size);
        assert_int_equal(tape.bytes[0] == '{', i < 2);
        require(tarn_graph_read(TARN_READER(.name = names[i], .read = read_tape, .user = &tape),
                                NULL, &back, &error),
                &error);
        assert_true(tarn_graph_hash(graph).word[0] == tarn_graph_hash(back).word[0]);
        tarn_graph_destroy(back);
        tarn_graph_destroy(graph);
        free(tape.bytes);
    }
}

static void memory_tells_how_much_room_a_text_needs(void **state)
{
    (void)state;
    struct tarn_graph *graph = graph_of(2), *back;
    struct tarn_error error;
    size_t size = 0, again = 0;
    require(tarn_graph_write(graph, TARN_WRITER(.size = &size), &error), &error);
    assert_true(size > 100);
    char *bytes = calloc(size + 1, 1);
    assert_int_equal(tarn_graph_write(graph,
                                      TARN_WRITER(.bytes = bytes, .room = size - 1, .size = &again),
                                      &error),
                     TARN_USAGE);
    assert_int_equal(again, size);
    assert_int_equal(bytes[0], 0);
    require(tarn_graph_write(graph, TARN_WRITER(.bytes = bytes, .room = size), &error), &error);
    assert_int_equal(strlen(bytes), size);
    require(tarn_graph_read(TARN_READER(.bytes = bytes, .size = size), NULL, &back, &error),
            &error);
    assert_true(tarn_graph_hash(graph).word[1] == tarn_graph_hash(back).word[1]);
    tarn_graph_destroy(back);
    tarn_graph_destroy(graph);
    free(bytes);
}

static void plans_and_instances_go_through_memory(void **state)
{
    (void)state;
    static const char instance[] = "id,lower,upper,size\na,0,2,100\nb,1,3,50\nc,2,4,100\n";
    struct tarn_graph *graph;
    struct tarn_plan *plan, *back;
    struct tarn_error error;
    char text[8192];
    size_t size;
    require(tarn_graph_read(TARN_READER(.bytes = instance, .size = sizeof instance - 1), NULL,
                            &graph, &error),
            &error);
    require(tarn_plan_create(graph, TARN_PLAN_OPTIONS(.alignment = 1), &plan, &error), &error);
    struct tarn_writer *writer = TARN_WRITER(.bytes = text, .room = sizeof text, .size = &size);
    require(tarn_plan_write(plan, writer, &error), &error);
    require(tarn_plan_read(TARN_READER(.bytes = text, .size = size), graph, TARN_VERIFY, NULL,
                           &back, &error),
            &error);
    struct tarn_plan_identity identity = tarn_plan_identify(plan);
    require(tarn_plan_expect(back, &identity, &error), &error);
    tarn_plan_destroy(back);
    writer->name = "answer.csv";
    require(tarn_plan_write(plan, writer, &error), &error);
    assert_int_equal(strncmp(text, "id,lower,upper,size,offset\na,0,2,100,", 37), 0);
    require(tarn_graph_write(graph, writer, &error), &error);
    assert_int_equal(size, sizeof instance - 1);
    assert_memory_equal(text, instance, size);
    tarn_plan_destroy(plan);
    tarn_graph_destroy(graph);
}

static void tables_of_costs_are_made_by_a_program(void **state)
{
    (void)state;
    static const char rows[] = "op,implementation,ns,workspace\nmake,,700,0\nmake,fast,300,4096\n";
    struct tarn_builder *b = tarn_builder_create("g");
    struct tarn_cost_table *table;
    struct tarn_graph *graph, *costed;
    struct tarn_op_info op;
    struct tarn_error error;
    tarn_stream s = tarn_builder_stream(b, "s");
    tarn_tensor t = tarn_builder_tensor(b, &(struct tarn_tensor_info){.name = "t", .size = 4});
    tarn_builder_op(
        b, &(struct tarn_op_info){.name = "make", .stream = s, .outputs = TARN_TENSORS(t)});
    require(tarn_builder_finish(b, &graph, &error), &error);
    require(
        tarn_cost_table_read(TARN_READER(.bytes = rows, .size = sizeof rows - 1), &table, &error),
        &error);
    require(tarn_graph_implementations(graph, TARN_IMPLEMENTATIONS_OPTIONS(.costs = table), &costed,
                                       &error),
            &error);
    assert_true(tarn_graph_op(costed, 0, &op));
    assert_int_equal(op.cost, 700);
    assert_int_equal(op.implementations_count, 1);
    assert_int_equal(op.implementations[0].workspace, 4096);
    tarn_cost_table_destroy(table);
    tarn_graph_destroy(costed);
    tarn_graph_destroy(graph);
}

static void what_goes_wrong_is_said_with_the_name(void **state)
{
    (void)state;
    struct tape tape = tape_create();
    struct tarn_graph *graph = graph_of(1), *back;
    struct tarn_error error;
    struct tarn_writer *writer = TARN_WRITER(.name = "wire", .write = write_tape, .user = &tape);
    struct tarn_reader *reader = TARN_READER(.name = "wire", .read = read_tape, .user = &tape);
    tape.calls_left = 0;
    assert_int_equal(tarn_graph_write(graph, writer, &error), TARN_SYSTEM);
    assert_string_equal(error.text, "wire: the function that writes returned 7");
    tape.calls_left = -1;
    require(tarn_graph_write(graph, writer, &error), &error);
    tape.calls_left = 2;
    assert_int_equal(tarn_graph_read(reader, NULL, &back, &error), TARN_SYSTEM);
    assert_string_equal(error.text, "wire: the function that reads returned -1");
    assert_null(back);
    tape.calls_left = -1;
    tape.at = 1;
    assert_int_equal(tarn_graph_read(reader, NULL, &back, &error), TARN_BAD_INPUT);
    assert_int_equal(error.line, 1);
    tape.at = tape.size;
    assert_int_equal(tarn_graph_read(reader, NULL, &back, &error), TARN_BAD_INPUT);
    assert_string_equal(error.text, "wire: the text is empty");
    tape.at = 0;
    assert_int_equal(tarn_graph_read(reader, TARN_LOAD_OPTIONS(.text_max = 150), &back, &error),
                     TARN_BAD_INPUT);
    reader = TARN_READER(.bytes = tape.bytes, .size = tape.size);
    assert_int_equal(tarn_graph_read(reader, TARN_LOAD_OPTIONS(.text_max = 150), &back, &error),
                     TARN_BAD_INPUT);
    assert_int_equal(tarn_graph_read(TARN_READER(.bytes = "", .size = 0), NULL, &back, &error),
                     TARN_BAD_INPUT);
    assert_int_equal(tarn_graph_read(&(struct tarn_reader){.struct_size = 3}, NULL, &back, &error),
                     TARN_USAGE);
    assert_int_equal(tarn_graph_write(graph, &(struct tarn_writer){.struct_size = 3}, &error),
                     TARN_USAGE);
    tarn_graph_destroy(graph);
    free(tape.bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(graphs_go_through_functions),
        cmocka_unit_test(memory_tells_how_much_room_a_text_needs),
        cmocka_unit_test(plans_and_instances_go_through_memory),
        cmocka_unit_test(tables_of_costs_are_made_by_a_program),
        cmocka_unit_test(what_goes_wrong_is_said_with_the_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
