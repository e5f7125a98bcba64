/* Order inside queues and across them. Cost: some thousand short works. */
#include "kit.h"

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
    HOLDS(done);
    tarn_kit_by_all_means(kit, wait_for_nothing);
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

static void a_query_tells_when_the_end_is_reached(struct tarn_kit *kit)
{
    tarn_kit_create_queues(kit, 1);
    void *event = tarn_kit_event(kit);
    for (uint32_t i = 0; i < 20; i++) {
        tarn_kit_record(kit, event, 0);
        tarn_kit_until_done(kit, event);
    }
}

const struct tarn_kit_test tarn_kit_order[] = {
    {"a_queue_keeps_its_order", a_queue_keeps_its_order},
    {"an_event_orders_two_queues_and_can_be_recorded_again",
     an_event_orders_two_queues_and_can_be_recorded_again},
    {"pending_waits_keep_to_the_record_that_they_were_made_for",
     pending_waits_keep_to_the_record_that_they_were_made_for},
    {"an_event_that_was_never_recorded_holds_up_nobody",
     an_event_that_was_never_recorded_holds_up_nobody},
    {"hundreds_of_queues_work", hundreds_of_queues_work},
    {"a_query_tells_when_the_end_is_reached", a_query_tells_when_the_end_is_reached},
    {0},
};
