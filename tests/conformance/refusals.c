/* Calls that fail, one after another: each must leave everything as it was. And what the device
 * says of codes. Cost: some short works. */
#include <limits.h>

#include "kit.h"

/* Runs the call when it is to fail; true: it did, and the device says what it must of it. */
#define FAILED(call) (tarn_kit_make_fail(kit) && tarn_kit_failed(kit, #call, (call)))

/* Its earlier record is reached, and the one that fails would be behind the gate. */
static void fail_to_record_again(struct tarn_kit *kit)
{
    const struct tarn_device_table *table = kit->table;
    void *event = tarn_kit_event(kit);
    bool done = false;
    tarn_kit_record(kit, event, 1);
    tarn_kit_until_done(kit, event);
    tarn_kit_close_gate(kit, 0);
    bool failed = FAILED(table->event_record(kit->self, event, kit->queues[0]));
    OK(table->event_query(kit->self, event, &done));
    tarn_kit_open_gate();
    tarn_kit_finish(kit);
    REQUIRE(!failed || done, "event_record failed, and then event_query says that the event is not "
                             "reached, although its earlier record was");
}

/* The queue 0 is behind a gate, and event's record, too; then a second record on it fails. */
static void a_record_that_fails_leaves_the_one_before_it(struct tarn_kit *kit)
{
    const struct tarn_device_table *table = kit->table;
    NEEDS(kit->suite.fail_after, "fail_after");
    NEEDS(table->launch, "launch");
    tarn_kit_create_queues(kit, 2);
    tarn_kit_choose(kit, TARN_KIT_BY_CLOSURES);
    for (uint32_t other = 0; other < 2; other++) {
        void *event = tarn_kit_event(kit);
        bool done = false;
        tarn_kit_close_gate(kit, 0);
        tarn_kit_note(kit, 0, 0, 7 + other);
        tarn_kit_record(kit, event, 0);
        bool failed = FAILED(table->event_record(kit->self, event, kit->queues[other]));
        tarn_kit_wait(kit, event, 1);
        tarn_kit_expect(kit, 1, 0, 7 + other);
        OK(table->event_query(kit->self, event, &done));
        bool early = done && tarn_kit_is_closed();
        tarn_kit_open_gate();
        tarn_kit_until_done(kit, event);
        REQUIRE(!failed || !early,
                "event_record failed, and then event_query says that the event is reached, while "
                "work before its earlier record still runs");
        tarn_kit_held(kit, 1);
    }
    fail_to_record_again(kit);
}

static void count_call(void *calls) { ++*(uint32_t *)calls; }

static void a_call_on_a_queue_that_fails_enqueues_nothing(struct tarn_kit *kit)
{
    const struct tarn_device_table *table = kit->table;
    NEEDS(kit->suite.fail_after, "fail_after");
    tarn_kit_create_queues(kit, 2);
    void *event = tarn_kit_event(kit), *queue = kit->queues[0];
    if (tarn_kit_choose(kit, TARN_KIT_BY_CLOSURES)) {
        static uint32_t calls;
        calls = 0;
        bool failed = FAILED(table->launch(kit->self, queue, count_call, &calls));
        tarn_kit_finish(kit);
        REQUIRE(!failed || calls == 0, "launch failed, and its function was called");
        OK(table->event_record(kit->self, event, queue));
        (void)FAILED(table->event_wait(kit->self, event, kit->queues[1]));
        tarn_kit_count_in_one_queue(kit);
        tarn_kit_held(kit, 1);
    }
    if (!tarn_kit_choose(kit, TARN_KIT_BY_PATTERNS)) return;
    unsigned char bytes[64];
    uint64_t wrong = 0;
    OK(table->fill(kit->self, kit->slot[0], 0xee, sizeof bytes));
    bool filled =
        FAILED(table->pattern_fill(kit->self, queue, kit->slot[0], sizeof bytes, kit->seeds, 3));
    bool compared = FAILED(table->pattern_compare(kit->self, queue, kit->slot[0], sizeof bytes,
                                                  kit->seeds, 3, kit->wrongs, 0));
    tarn_kit_finish(kit);
    OK(table->copy_out(kit->self, bytes, kit->slot[0], sizeof bytes));
    OK(table->copy_out(kit->self, &wrong, kit->wrongs, 8));
    for (uint32_t i = 0; i < sizeof bytes && filled; i++)
        REQUIRE(bytes[i] == 0xee, "pattern_fill failed, and wrote byte %u", i);
    REQUIRE(!compared || !filled || wrong == UINT64_MAX,
            "pattern_compare failed, and wrote its word");
    tarn_kit_count_in_one_queue(kit);
    tarn_kit_held(kit, 1);
}

static void a_call_on_memory_that_fails_changes_nothing(struct tarn_kit *kit)
{
    const struct tarn_device_table *table = kit->table;
    unsigned char bytes[64], seen[64];
    void *memory, *none = NULL;
    NEEDS(kit->suite.fail_after, "fail_after");
    OK(table->memory_create(kit->self, sizeof bytes, &memory));
    memset(bytes, 0x11, sizeof bytes);
    OK(table->copy_in(kit->self, memory, bytes, sizeof bytes));
    uint64_t alive = kit->suite.alive ? kit->suite.alive(kit->suite.user) : 0;
    memset(bytes, 0x22, sizeof bytes);
    bool failed = FAILED(table->copy_in(kit->self, memory, bytes, sizeof bytes));
    failed &= FAILED(table->fill(kit->self, memory, 0x33, sizeof bytes));
    (void)FAILED(table->copy_out(kit->self, seen, memory, sizeof bytes));
    OK(table->copy_out(kit->self, seen, memory, sizeof seen));
    for (uint32_t i = 0; i < sizeof seen && failed; i++)
        REQUIRE(seen[i] == 0x11, "copy_in and fill failed, and one of them wrote byte %u", i);
    bool created =
        tarn_kit_make_fail(kit) &&
        !tarn_kit_failed(kit, "memory_create", table->memory_create(kit->self, 100, &none));
    if (created) table->memory_destroy(kit->self, none, 100);
    if (kit->suite.alive)
        REQUIRE(kit->suite.alive(kit->suite.user) == alive,
                "a call failed, and `alive` says that there is one object more or less");
    table->memory_destroy(kit->self, memory, sizeof bytes);
}

static void what_cannot_be_created_leaves_nothing(struct tarn_kit *kit)
{
    const struct tarn_device_table *table = kit->table;
    const struct tarn_queue_info info = {.name = "a queue"};
    void *made = NULL;
    NEEDS(kit->suite.fail_after, "fail_after");
    NEEDS(table->queue_create, "queues");
    uint64_t alive = kit->suite.alive ? kit->suite.alive(kit->suite.user) : 0;
    tarn_kit_make_fail(kit);
    if (!tarn_kit_failed(kit, "queue_create", table->queue_create(kit->self, &info, &made)))
        table->queue_destroy(kit->self, made);
    tarn_kit_make_fail(kit);
    if (!tarn_kit_failed(kit, "event_create", table->event_create(kit->self, &made)))
        table->event_destroy(kit->self, made);
    if (table->stamp_create) tarn_kit_make_fail(kit);
    if (table->stamp_create &&
        !tarn_kit_failed(kit, "stamp_create", table->stamp_create(kit->self, &made)))
        table->stamp_destroy(kit->self, made);
    if (kit->suite.alive)
        REQUIRE(kit->suite.alive(kit->suite.user) == alive,
                "a create function failed, and `alive` says that there is one object more or less");
}

static void every_code_has_a_text_and_a_class(struct tarn_kit *kit)
{
    static const int codes[] = {1, 2, 3, 7, 100, 999, 123456, INT_MAX, -1, -2, -1000, INT_MIN};
    const struct tarn_device_table *table = kit->table;
    for (uint32_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        const char *text = table->error_text(kit->self, codes[i]);
        int class = (int)table->error_class(kit->self, codes[i]);
        REQUIRE(text && text[0], "error_text of code %d is %s", codes[i], text ? "empty" : "NULL");
        REQUIRE(class >= TARN_ERROR_RETRYABLE && class <= TARN_ERROR_POISONED,
                "error_class of code %d is %d, which is no class", codes[i], class);
    }
}

#define NO_EFFECT "device.h, \"Contract\": what failed has no effect"

const struct tarn_kit_test tarn_kit_refusals[] = {
    {"every_code_has_a_text_and_a_class", every_code_has_a_text_and_a_class,
     "device.h, \"Errors\": for any code, a static text that is never NULL, and a class"},
    {"a_record_that_fails_leaves_the_one_before_it", a_record_that_fails_leaves_the_one_before_it,
     NO_EFFECT},
    {"a_call_on_a_queue_that_fails_enqueues_nothing", a_call_on_a_queue_that_fails_enqueues_nothing,
     NO_EFFECT},
    {"a_call_on_memory_that_fails_changes_nothing", a_call_on_memory_that_fails_changes_nothing,
     NO_EFFECT},
    {"what_cannot_be_created_leaves_nothing", what_cannot_be_created_leaves_nothing, NO_EFFECT},
    {0},
};
