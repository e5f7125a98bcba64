/* Order inside queues and across them. Cost: some thousand short works. */
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "kit.h"

/* ---- What is not over ----
 * A closure that lasts until the test lets it go. Where the device does the work in the call that
 * enqueues it, or in another call of the test's, the closure does not wait. */
static struct gate {
    pthread_t caller;
    atomic_bool enqueued, open, passed;
    bool runs_in_calls;        /* `enqueued` was not to be had */
    bool gave_up;              /* waiting for `open` */
    uint64_t within, patience; /* ns: for `enqueued`, for `open` */
} gate;

static bool waits_in_vain(const atomic_bool *flag, uint64_t patience_ns)
{
    for (uint64_t end = tarn_kit_now_ns() + patience_ns; !atomic_load(flag);) {
        if (tarn_kit_now_ns() > end) return true;
        nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
    }
    return false;
}

static void pass_gate(void *unused)
{
    (void)unused;
    bool is_called = pthread_equal(pthread_self(), gate.caller);
    if (!is_called) gate.runs_in_calls = waits_in_vain(&gate.enqueued, gate.within);
    if (!is_called && !gate.runs_in_calls) gate.gave_up = waits_in_vain(&gate.open, gate.patience);
    atomic_store(&gate.passed, true);
}

static void close_gate(struct tarn_kit *kit, uint32_t queue)
{
    bool quick = kit->suite.effort == TARN_CONFORMANCE_QUICK;
    gate = (struct gate){.caller = pthread_self(),
                         .within = TARN_KIT_PATIENCE_NS / 15,
                         .patience = TARN_KIT_PATIENCE_NS / (quick ? 6 : 1)};
    OK(kit->table->launch(kit->self, kit->queues[queue], pass_gate, NULL));
    atomic_store(&gate.enqueued, true);
}

/* The work behind the gate may be over only when it was passed. */
static void look_behind_gate(struct tarn_kit *kit, void *event)
{
    bool done = false;
    int code = kit->table->event_query(kit->self, event, &done);
    bool early = done && !atomic_load(&gate.passed);
    atomic_store(&gate.open, true);
    OK(code);
    if (early) kit->lost = "every further test would free what the device still uses";
    if (early) FAIL("event_query says of an event that it is reached, and it is not");
}

static void a_query_tells_when_the_end_is_reached(struct tarn_kit *kit)
{
    tarn_kit_create_queues(kit, 1);
    void *event = tarn_kit_event(kit);
    bool has_gate = kit->table->launch;
    for (uint32_t i = 0; i < 20; i++) {
        if (has_gate) close_gate(kit, 0);
        tarn_kit_record(kit, event, 0);
        if (has_gate) look_behind_gate(kit, event);
        tarn_kit_until_done(kit, event);
        HOLDS(!has_gate || atomic_load(&gate.passed));
        has_gate = has_gate && !gate.runs_in_calls; /* each would take its time */
    }
}

/* Whoever enqueues for all queues would wait for what it has still to enqueue, or to let go on. */
static void no_call_waits_for_another_queue(struct tarn_kit *kit)
{
    NEEDS(kit->table->launch, "launch");
    tarn_kit_create_queues(kit, 2);
    void *first = tarn_kit_event(kit), *second = tarn_kit_event(kit);
    tarn_kit_choose(kit, TARN_KIT_BY_CLOSURES);
    close_gate(kit, 0);
    tarn_kit_note(kit, 0, 0, 1);
    tarn_kit_record(kit, first, 0);
    tarn_kit_wait(kit, first, 1);
    tarn_kit_expect(kit, 1, 0, 1);
    tarn_kit_note(kit, 1, 0, 2);
    tarn_kit_record(kit, second, 1);
    look_behind_gate(kit, second);
    tarn_kit_held(kit, 1);
    if (gate.gave_up) FAIL("a call waited for work of a queue that could not go on yet");
    EQUAL(kit->words[0], 2);
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

const struct tarn_kit_test tarn_kit_order[] = {
    {"a_query_tells_when_the_end_is_reached", a_query_tells_when_the_end_is_reached},
    {"no_call_waits_for_another_queue", no_call_waits_for_another_queue},
    {"a_queue_keeps_its_order", a_queue_keeps_its_order},
    {"an_event_orders_two_queues_and_can_be_recorded_again",
     an_event_orders_two_queues_and_can_be_recorded_again},
    {"pending_waits_keep_to_the_record_that_they_were_made_for",
     pending_waits_keep_to_the_record_that_they_were_made_for},
    {"an_event_that_was_never_recorded_holds_up_nobody",
     an_event_that_was_never_recorded_holds_up_nobody},
    {"hundreds_of_queues_work", hundreds_of_queues_work},
    {0},
};
