/* Order inside queues and across them. Cost: some thousand short works. */
#include "kit.h"

/* The work behind the gate may be over only when it was passed. */
static void look_behind_gate(struct tarn_kit *kit, void *event)
{
    bool done = false;
    int code = kit->table->event_query(kit->self, event, &done);
    bool early = done && tarn_kit_is_closed();
    tarn_kit_open_gate();
    OK(code);
    if (early) kit->lost = "every further test would free what the device still uses";
    REQUIRE(!early, "event_query says that an event is reached while a launch before its record "
                    "is still running");
}

static void a_query_tells_when_the_end_is_reached(struct tarn_kit *kit)
{
    tarn_kit_create_queues(kit, 1);
    void *event = tarn_kit_event(kit);
    bool has_gate = kit->table->launch;
    for (uint32_t i = 0; i < 20; i++) {
        if (has_gate) tarn_kit_close_gate(kit, 0);
        tarn_kit_record(kit, event, 0);
        if (has_gate) look_behind_gate(kit, event);
        tarn_kit_until_done(kit, event);
        REQUIRE(!has_gate || tarn_kit_has_passed(),
                "event_query says that an event is reached before a launch in front of it ran");
        has_gate = has_gate && !tarn_kit_runs_in_calls(); /* each would take its time */
    }
}

/* Whoever enqueues for all queues would wait for what it has still to enqueue, or to let go on. */
static void no_call_waits_for_another_queue(struct tarn_kit *kit)
{
    NEEDS(kit->table->launch, "launch");
    tarn_kit_create_queues(kit, 2);
    void *first = tarn_kit_event(kit), *second = tarn_kit_event(kit);
    tarn_kit_choose(kit, TARN_KIT_BY_CLOSURES);
    tarn_kit_close_gate(kit, 0);
    tarn_kit_note(kit, 0, 0, 1);
    tarn_kit_record(kit, first, 0);
    tarn_kit_wait(kit, first, 1);
    tarn_kit_expect(kit, 1, 0, 1);
    tarn_kit_note(kit, 1, 0, 2);
    tarn_kit_record(kit, second, 1);
    look_behind_gate(kit, second);
    tarn_kit_held(kit, 1);
    REQUIRE(!tarn_kit_gave_up(), "a call waited for work of a queue that could not go on yet");
    EQUAL(kit->words[0], 2);
}

/* ---- Depth ---- */

static void count_up(void *count) { ++*(uint32_t *)count; }

/* A kernel of the device's, or a closure. */
static int enqueue_kernel(struct tarn_kit *kit, bool is_closure, uint32_t *launched, uint32_t *ran)
{
    const struct tarn_device_table *table = kit->table;
    tarn_kit_step(kit, is_closure ? "launch" : "pattern_fill");
    if (!is_closure)
        return table->pattern_fill(kit->self, kit->queues[0], kit->slot[0], 8, kit->seeds, 1);
    ++*launched;
    return table->launch(kit->self, kit->queues[0], count_up, ran);
}

/* One queue with as many kernels as the table promises that it takes, and as many records and
 * waits, all behind a closed gate. The first kernel comes before the gate: a device may load it
 * then, which may take until all its queues are empty. */
static void fill_behind_gate(struct tarn_kit *kit, void *event, bool by_closures)
{
    static const uint32_t usual[] = {4000, 2000, 20000}; /* by effort */
    static uint32_t ran;                                 /* a test that fails leaves launches */
    uint32_t depth = tarn_kit_depth(kit), launched = ran = 0;
    bool is_told = depth > 0;
    if (!is_told) depth = usual[kit->suite.effort];
    int first = enqueue_kernel(kit, by_closures, &launched, &ran);
    REQUIRE(first == 0, "launch or pattern_fill returned %d (%s)", first,
            tarn_kit_text(kit, first));
    tarn_kit_finish(kit);
    tarn_kit_close_gate(kit, 0);
    for (uint32_t i = 1; i < depth; i++) {
        int code = enqueue_kernel(kit, by_closures, &launched, &ran);
        REQUIRE(code == 0, "launch or pattern_fill %u returned %d (%s)", i, code,
                tarn_kit_text(kit, code));
        if (i % 2) tarn_kit_record(kit, event, 0);
        if (i % 3) tarn_kit_wait(kit, event, 0);
        REQUIRE(!tarn_kit_gave_up(),
                "a call waited for room in a queue of %u kernels, of which the first still runs, "
                "and queue_depth of the table says %s",
                i + 1, is_told ? "that as many fit" : "of no limit");
    }
    tarn_kit_wait(kit, event, 1);
    tarn_kit_open_gate();
    tarn_kit_finish(kit);
    REQUIRE(ran == launched, "a queue that was given %u launches ran %u of them", launched, ran);
}

static void a_queue_takes_its_depth_behind_work_that_is_not_over(struct tarn_kit *kit)
{
    NEEDS(kit->table->launch, "launch");
    tarn_kit_create_queues(kit, 2);
    tarn_kit_choose(kit, TARN_KIT_BY_PATTERNS);
    void *event = tarn_kit_event(kit);
    fill_behind_gate(kit, event, true);
    if (kit->table->pattern_fill) fill_behind_gate(kit, event, false);
}

/* ---- Order ---- */

void tarn_kit_count_in_one_queue(struct tarn_kit *kit)
{
    for (uint32_t i = 0; i < 200; i++) {
        tarn_kit_note(kit, 0, 0, i % TARN_KIT_VALUES);
        tarn_kit_expect(kit, 0, 0, i % TARN_KIT_VALUES);
    }
}

static void a_queue_keeps_its_order(struct tarn_kit *kit)
{
    tarn_kit_create_queues(kit, 1);
    tarn_kit_by_all_means(kit, tarn_kit_count_in_one_queue);
}

/* A ball goes round: each queue sees the last one's note, and changes it. */
void tarn_kit_pass_round(struct tarn_kit *kit)
{
    void *event[4];
    for (uint32_t i = 0; i < 4; i++) event[i] = tarn_kit_event(kit);
    for (uint32_t i = 0; i < 120; i++) {
        uint32_t queue = i % 4;
        if (i > 0) tarn_kit_wait(kit, event[(i - 1) % 4], queue);
        if (i > 0) tarn_kit_expect(kit, queue, 0, (i - 1) % TARN_KIT_VALUES);
        tarn_kit_note(kit, queue, 0, i % TARN_KIT_VALUES);
        tarn_kit_record(kit, event[queue], queue);
    }
}

static void an_event_orders_two_queues_and_can_be_recorded_again(struct tarn_kit *kit)
{
    tarn_kit_create_queues(kit, 4);
    tarn_kit_by_all_means(kit, tarn_kit_pass_round);
}

/* Queue 1 waits for the first record and lets queue 0 go on to the second: whoever takes the second
 * for the one that is waited for never ends. */
static void record_twice(struct tarn_kit *kit)
{
    void *event = tarn_kit_event(kit), *back = tarn_kit_event(kit);
    for (uint32_t i = 0; i < 20; i++) {
        tarn_kit_note(kit, 0, 0, i);
        tarn_kit_record(kit, event, 0);
        tarn_kit_wait(kit, event, 1);
        tarn_kit_expect(kit, 1, 0, i);
        tarn_kit_record(kit, back, 1);
        tarn_kit_wait(kit, back, 0);
        tarn_kit_note(kit, 0, 0, i + 1);
        tarn_kit_record(kit, event, 0); /* nobody waits for this one */
    }
}

static void pending_waits_keep_to_the_record_that_they_were_made_for(struct tarn_kit *kit)
{
    tarn_kit_create_queues(kit, 2);
    tarn_kit_by_all_means(kit, record_twice);
}

static void wait_for_nothing(struct tarn_kit *kit)
{
    void *event = tarn_kit_event(kit);
    tarn_kit_wait(kit, event, 0);
    tarn_kit_note(kit, 0, 0, 1);
    tarn_kit_expect(kit, 0, 0, 1);
}

static void an_event_that_was_never_recorded_holds_up_nobody(struct tarn_kit *kit)
{
    tarn_kit_create_queues(kit, 1);
    bool done = false;
    OK(kit->table->event_query(kit->self, tarn_kit_event(kit), &done));
    REQUIRE(done, "event_query says that an event which was never recorded is not reached");
    tarn_kit_by_all_means(kit, wait_for_nothing);
}

/* The wait is still behind the gate when its event is gone, and another event, perhaps in the same
 * memory, is recorded behind the gate: a wait that looks for its event too late never ends. */
static void destroy_under_a_wait(struct tarn_kit *kit)
{
    const struct tarn_device_table *table = kit->table;
    void *event, *other;
    OK(table->event_create(kit->self, &event));
    tarn_kit_note(kit, 1, 0, 1);
    OK(table->event_record(kit->self, event, kit->queues[1]));
    tarn_kit_until_done(kit, event);
    if (table->launch) tarn_kit_close_gate(kit, 0);
    OK(table->event_wait(kit->self, event, kit->queues[0]));
    table->event_destroy(kit->self, event);
    other = tarn_kit_event(kit);
    tarn_kit_expect(kit, 0, 0, 1);
    tarn_kit_record(kit, other, 0);
    if (table->launch) tarn_kit_open_gate();
    tarn_kit_until_done(kit, other);
}

static void an_event_may_be_destroyed_when_it_is_reached(struct tarn_kit *kit)
{
    tarn_kit_create_queues(kit, 2);
    tarn_kit_by_all_means(kit, destroy_under_a_wait);
}

/* One ring through all queues, and a common beginning for all. */
static void ring_through_all(struct tarn_kit *kit)
{
    uint32_t count = kit->queues_count;
    void *start = tarn_kit_event(kit), *turn[2] = {tarn_kit_event(kit), tarn_kit_event(kit)};
    tarn_kit_note(kit, 0, 0, 0);
    tarn_kit_record(kit, start, 0);
    for (uint32_t i = 1; i < count; i++) tarn_kit_wait(kit, start, i);
    for (uint32_t i = 0; i < count; i++) {
        if (i > 0) tarn_kit_wait(kit, turn[(i - 1) % 2], i);
        tarn_kit_expect(kit, i, 0, i % TARN_KIT_VALUES);
        tarn_kit_note(kit, i, 0, (i + 1) % TARN_KIT_VALUES);
        tarn_kit_record(kit, turn[i % 2], i);
    }
}

static void hundreds_of_queues_work(struct tarn_kit *kit)
{
    tarn_kit_create_queues(kit, TARN_KIT_QUEUES - 10);
    tarn_kit_by_all_means(kit, ring_through_all);
}

#define QUEUES "device.h, \"Queues and events\": "

const struct tarn_kit_test tarn_kit_order[] = {
    {"a_query_tells_when_the_end_is_reached", a_query_tells_when_the_end_is_reached,
     "device.h, event_query: *done says whether the latest record has been reached"},
    {"no_call_waits_for_another_queue", no_call_waits_for_another_queue,
     QUEUES "a call may do work that is ready, and waits for no other"},
    {"a_queue_takes_its_depth_behind_work_that_is_not_over",
     a_queue_takes_its_depth_behind_work_that_is_not_over,
     "device.h, queue_depth: so many kernels a queue takes, whatever it waits for, before a call "
     "waits for room; 0: any number"},
    {"a_queue_keeps_its_order", a_queue_keeps_its_order,
     QUEUES "a queue runs what is enqueued one after another, in order"},
    {"an_event_orders_two_queues_and_can_be_recorded_again",
     an_event_orders_two_queues_and_can_be_recorded_again,
     QUEUES "work enqueued after a wait starts after everything enqueued before the record"},
    {"pending_waits_keep_to_the_record_that_they_were_made_for",
     pending_waits_keep_to_the_record_that_they_were_made_for,
     QUEUES "an event may be recorded again while waits for its earlier record are pending; they "
            "keep waiting for that one"},
    {"an_event_that_was_never_recorded_holds_up_nobody",
     an_event_that_was_never_recorded_holds_up_nobody,
     "device.h, event_query: an event never recorded is done"},
    {"an_event_may_be_destroyed_when_it_is_reached", an_event_may_be_destroyed_when_it_is_reached,
     QUEUES "an event may be destroyed when it was reached, although a wait for it is still behind "
            "other work of a queue"},
    {"hundreds_of_queues_work", hundreds_of_queues_work,
     "device.h, queue_create: as many queues as the plan has streams"},
    {0},
};
