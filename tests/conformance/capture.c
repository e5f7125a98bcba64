/* Captures and replays, and names for tools. Cost: some hundred short works. */
#include "kit.h"

/* Diamonds: 0 forks to 1 and 2, which note in slots of their own; 0 joins and looks. */
static void enqueue_diamonds(struct tarn_kit *kit, void **event)
{
    for (uint32_t i = 0; i < 5; i++) {
        tarn_kit_note(kit, 0, 0, i);
        tarn_kit_record(kit, event[0], 0);
        for (uint32_t side = 1; side <= 2; side++) {
            tarn_kit_wait(kit, event[0], side);
            tarn_kit_expect(kit, side, 0, i);
            tarn_kit_note(kit, side, side, i + side);
            tarn_kit_record(kit, event[side], side);
        }
        for (uint32_t side = 1; side <= 2; side++) tarn_kit_wait(kit, event[side], 0);
        for (uint32_t side = 1; side <= 2; side++) tarn_kit_expect(kit, 0, side, i + side);
    }
}

static void capture_and_replay(struct tarn_kit *kit, uint32_t times)
{
    const struct tarn_device_table *table = kit->table;
    void *event[3], *graph;
    for (uint32_t i = 0; i < 3; i++) event[i] = tarn_kit_event(kit);
    OK(table->capture_begin(kit->self, kit->queues[0]));
    enqueue_diamonds(kit, event);
    OK(table->capture_end(kit->self, kit->queues[0], &graph));
    tarn_kit_finish(kit);
    for (uint32_t i = 0; i < kit->closures_count; i++)
        REQUIRE(tarn_kit_calls(kit, i) == 0, "a launch ran while it was captured");
    for (uint32_t i = 0; i < times; i++) OK(table->graph_launch(kit->self, graph, kit->queues[0]));
    tarn_kit_held(kit, times);
    table->graph_destroy(kit->self, graph);
}

static void a_capture_runs_nothing_and_its_graph_runs_at_every_launch(struct tarn_kit *kit)
{
    tarn_kit_create_queues(kit, 3);
    const struct tarn_device_table *table = kit->table;
    HOLDS(!table->capture_begin == !table->graph_launch);
    NEEDS(table->capture_begin, "captures");
    for (enum tarn_kit_means means = 0; means < TARN_KIT_MEANS; means++) {
        if (tarn_kit_choose(kit, means)) capture_and_replay(kit, 7);
    }
}

/* Other work before and behind the launches of a graph, on its queue and on another one. */
static void mix_launches(struct tarn_kit *kit)
{
    const struct tarn_device_table *table = kit->table;
    void *graph, *event = tarn_kit_event(kit);
    OK(table->capture_begin(kit->self, kit->queues[0]));
    tarn_kit_expect(kit, 0, 0, 1);
    tarn_kit_note(kit, 0, 0, 2);
    OK(table->capture_end(kit->self, kit->queues[0], &graph));
    if (table->launch) tarn_kit_close_gate(kit, 1);
    tarn_kit_note(kit, 1, 0, 1);
    tarn_kit_record(kit, event, 1);
    tarn_kit_wait(kit, event, 0);
    OK(table->graph_launch(kit->self, graph, kit->queues[0]));
    tarn_kit_expect(kit, 0, 0, 2);
    tarn_kit_record(kit, event, 0);
    tarn_kit_wait(kit, event, 1);
    tarn_kit_expect(kit, 1, 0, 2);
    if (table->launch) tarn_kit_open_gate();
    tarn_kit_held(kit, 1);
    table->graph_destroy(kit->self, graph);
}

static void a_launch_of_a_graph_keeps_the_order_of_its_queue(struct tarn_kit *kit)
{
    tarn_kit_create_queues(kit, 2);
    NEEDS(kit->table->capture_begin, "captures");
    for (enum tarn_kit_means means = 0; means < TARN_KIT_MEANS; means++) {
        if (tarn_kit_choose(kit, means)) mix_launches(kit);
    }
}

static void queues_work_as_before_after_a_capture(struct tarn_kit *kit)
{
    tarn_kit_create_queues(kit, 4);
    NEEDS(kit->table->capture_begin, "captures");
    void *graph, *event = tarn_kit_event(kit);
    OK(kit->table->capture_begin(kit->self, kit->queues[0]));
    tarn_kit_record(kit, event, 0);
    tarn_kit_wait(kit, event, 1);
    tarn_kit_record(kit, event, 1);
    tarn_kit_wait(kit, event, 0);
    OK(kit->table->capture_end(kit->self, kit->queues[0], &graph));
    kit->table->graph_destroy(kit->self, graph); /* never launched */
    tarn_kit_by_all_means(kit, tarn_kit_pass_round);
}

static void
a_capture_whose_fork_is_not_joined_fails_and_leaves_the_queues_usable(struct tarn_kit *kit)
{
    tarn_kit_create_queues(kit, 2);
    NEEDS(kit->table->capture_begin, "captures");
    NEEDS(tarn_kit_choose(kit, TARN_KIT_BY_CLOSURES), "launch");
    void *graph = NULL, *event = tarn_kit_event(kit);
    OK(kit->table->capture_begin(kit->self, kit->queues[0]));
    tarn_kit_record(kit, event, 0);
    tarn_kit_wait(kit, event, 1);
    tarn_kit_note(kit, 1, 0, 1);
    HOLDS(kit->table->capture_end(kit->self, kit->queues[0], &graph) != 0);
    tarn_kit_finish(kit);
    EQUAL(kit->words[0], 0);
    tarn_kit_by_all_means(kit, tarn_kit_count_in_one_queue);
}

static void names_can_be_given(struct tarn_kit *kit)
{
    const struct tarn_device_table *table = kit->table;
    HOLDS(!table->range_begin == !table->range_end);
    NEEDS(table->range_begin || table->memory_name, "names for tools");
    if (table->range_begin) table->range_begin(kit->self, "a range");
    if (table->range_end) table->range_end(kit->self);
    if (!table->memory_name) return;
    void *memory;
    OK(table->memory_create(kit->self, 4096, &memory));
    table->memory_name(kit->self, memory, 512, 100, "a tensor");
    table->memory_destroy(kit->self, memory, 4096);
}

#define CAPTURE "device.h, \"Capture and replay\": "

const struct tarn_kit_test tarn_kit_capture[] = {
    {"a_capture_runs_nothing_and_its_graph_runs_at_every_launch",
     a_capture_runs_nothing_and_its_graph_runs_at_every_launch,
     CAPTURE "between begin and end nothing runs; every launch of the graph runs all of it"},
    {"a_launch_of_a_graph_keeps_the_order_of_its_queue",
     a_launch_of_a_graph_keeps_the_order_of_its_queue,
     CAPTURE "a launch runs after what its queue was given before it, and before what it is given "
             "afterwards"},
    {"queues_work_as_before_after_a_capture", queues_work_as_before_after_a_capture,
     CAPTURE "after the end the queues are as before"},
    {"a_capture_whose_fork_is_not_joined_fails_and_leaves_the_queues_usable",
     a_capture_whose_fork_is_not_joined_fails_and_leaves_the_queues_usable,
     CAPTURE "before the end, the queue has waited for all others; else it fails and leaves no "
             "graph, and the queues are as before"},
    {"names_can_be_given", names_can_be_given,
     "device.h, \"Kernels, and names for profilers and memory checkers\""},
    {0},
};
