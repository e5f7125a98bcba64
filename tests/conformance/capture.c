/* Captures and replays, time stamps, and names for tools. Cost: some hundred short works. */
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
    for (uint32_t i = 0; i < kit->closures_count; i++) EQUAL(tarn_kit_calls(kit, i), 0);
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

static void stamps_tell_times_that_grow(struct tarn_kit *kit)
{
    tarn_kit_create_queues(kit, 1);
    const struct tarn_device_table *table = kit->table;
    void *stamp[3];
    double first, second, both;
    HOLDS(!table->stamp_create == !table->stamp_elapsed);
    NEEDS(table->stamp_create, "time stamps");
    tarn_kit_choose(kit, kit->table->launch ? TARN_KIT_BY_CLOSURES : TARN_KIT_BY_PATTERNS);
    for (uint32_t i = 0; i < 3; i++) {
        OK(table->stamp_create(kit->self, &stamp[i]));
        OK(table->stamp_record(kit->self, stamp[i], kit->queues[0]));
        tarn_kit_note(kit, 0, 0, i);
    }
    tarn_kit_finish(kit);
    OK(table->stamp_elapsed(kit->self, stamp[0], stamp[1], &first));
    OK(table->stamp_elapsed(kit->self, stamp[1], stamp[2], &second));
    OK(table->stamp_elapsed(kit->self, stamp[0], stamp[2], &both));
    HOLDS(first >= 0 && second >= 0);
    HOLDS(both > 0 && both < (double)TARN_KIT_PATIENCE_NS);
    HOLDS(both >= 0.9 * first && both >= 0.9 * second);
    for (uint32_t i = 0; i < 3; i++) table->stamp_destroy(kit->self, stamp[i]);
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

const struct tarn_kit_test tarn_kit_capture[] = {
    {"a_capture_runs_nothing_and_its_graph_runs_at_every_launch",
     a_capture_runs_nothing_and_its_graph_runs_at_every_launch},
    {"queues_work_as_before_after_a_capture", queues_work_as_before_after_a_capture},
    {"a_capture_whose_fork_is_not_joined_fails_and_leaves_the_queues_usable",
     a_capture_whose_fork_is_not_joined_fails_and_leaves_the_queues_usable},
    {"stamps_tell_times_that_grow", stamps_tell_times_that_grow},
    {"names_can_be_given", names_can_be_given},
    {0},
};
