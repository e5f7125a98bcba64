/* The table's promises. What happens on queues is made visible in one of two ways, as the device
 * allows, and where both are there in both: closures on the host that write and look at words, or
 * checking kernels that write and compare patterns.
 *
 *     note(queue, slot, value)      slot := value                   when the queue gets there
 *     expect(queue, slot, value)    slot == value, else it is noted
 *
 * So an order that must hold is tested by notes and expectations that only this order satisfies. */
#include "device_suite.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "device_suite_parts.h"
#include "random_graph.h"
#include "runtime/check/pattern.h"
#include "runtime/state/event_count.h"
#include "streams/base/checked.h"

#define PATIENCE_NS UINT64_C(30000000000)

enum { SLOTS = 16, SLOT_BYTES = 40000, VALUES = 64, EXPECTATIONS = 4096, QUEUES = 300 };

enum means { BY_CLOSURES, BY_PATTERNS, MEANS };

/* What is open while a test runs; what is left is taken down with it. */
struct bench {
    const struct device_suite *suite;
    const struct tarn_device_table *table;
    void *self;
    uint64_t alive_before;
    enum means means;
    void *queues[QUEUES];
    uint32_t queues_count;
    void *events[QUEUES];
    uint32_t events_count;
    void *slots, *seeds, *wrongs; /* of patterns */
    void *slot[SLOTS];            /* addresses */
    uint64_t words[SLOTS];        /* of closures */
    struct closure *closures;
    uint32_t closures_count;
    uint32_t expectations;
};

struct closure {
    uint64_t *word, value;
    bool expects, was_wrong;
    uint32_t calls;
};

static struct bench *bench_of(void **state) { return *state; }

static void ok(struct bench *bench, int code)
{
    if (code) fail_msg("code %d: %s", code, bench->table->error_text(bench->self, code));
}

/* ---- Opening and closing ---- */

int device_suite_open(void **state)
{
    struct bench *bench = calloc(1, sizeof *bench);
    struct tarn_device device;
    bench->suite = *state;
    bench->closures = calloc(EXPECTATIONS, sizeof *bench->closures);
    if (bench->suite->open(bench->suite->user, &device)) {
        bench->table = device.table;
        bench->self = device.self;
        if (bench->suite->alive) bench->alive_before = bench->suite->alive(bench->suite->user);
    }
    *state = bench;
    return 0;
}

static void take_down(struct bench *bench)
{
    const struct tarn_device_table *table = bench->table;
    while (bench->events_count > 0)
        table->event_destroy(bench->self, bench->events[--bench->events_count]);
    while (bench->queues_count > 0)
        table->queue_destroy(bench->self, bench->queues[--bench->queues_count]);
    if (!bench->slots) return;
    for (uint32_t i = 0; i < SLOTS && table->region_destroy; i++)
        table->region_destroy(bench->self, bench->slot[i]);
    table->memory_destroy(bench->self, bench->slots, SLOTS * SLOT_BYTES);
    table->memory_destroy(bench->self, bench->seeds, VALUES * 8);
    table->memory_destroy(bench->self, bench->wrongs, EXPECTATIONS * 8);
    bench->slots = NULL;
}

int device_suite_close(void **state)
{
    struct bench *bench = *state;
    const struct device_suite *suite = bench->suite;
    uint64_t left = 0;
    if (bench->table) {
        take_down(bench);
        if (suite->alive) left = suite->alive(suite->user) - bench->alive_before;
        if (suite->close) suite->close(suite->user, device_suite_device(state));
    }
    free(bench->closures);
    free(bench);
    *state = (void *)(uintptr_t)suite;
    if (left) print_message("# %llu objects are left\n", (unsigned long long)left);
    return left ? -1 : 0;
}

struct tarn_device device_suite_device(void **state)
{
    return (struct tarn_device){bench_of(state)->table, bench_of(state)->self};
}

const struct device_suite *device_suite_facts(void **state) { return bench_of(state)->suite; }

void device_suite_need(void **state, bool is_there)
{
    if (!bench_of(state)->table || !is_there) skip();
}

static struct bench *open_bench(void **state)
{
    device_suite_need(state, true);
    return bench_of(state);
}

static struct bench *open_queues(void **state, uint32_t queues)
{
    struct bench *bench = open_bench(state);
    if (!bench->table->queue_create) skip();
    for (uint32_t i = 0; i < queues; i++) {
        char name[32];
        snprintf(name, sizeof name, "queue %u", i);
        struct tarn_queue_info info = {.name = name, .urgent = i % 2};
        ok(bench, bench->table->queue_create(bench->self, &info, &bench->queues[i]));
        bench->queues_count++;
    }
    return bench;
}

static void *new_event(struct bench *bench)
{
    void **event = &bench->events[bench->events_count];
    ok(bench, bench->table->event_create(bench->self, event));
    bench->events_count++;
    return *event;
}

/* ---- Notes and expectations ---- */

static void open_patterns(struct bench *bench)
{
    const struct tarn_device_table *table = bench->table;
    uint64_t seeds[VALUES], none = UINT64_MAX;
    for (uint32_t i = 0; i < VALUES; i++) seeds[i] = tarn_seed_mix(i, 7);
    ok(bench, table->memory_create(bench->self, SLOTS * SLOT_BYTES, &bench->slots));
    ok(bench, table->memory_create(bench->self, VALUES * 8, &bench->seeds));
    ok(bench, table->memory_create(bench->self, EXPECTATIONS * 8, &bench->wrongs));
    ok(bench, table->copy_in(bench->self, bench->seeds, seeds, sizeof seeds));
    ok(bench, table->fill(bench->self, bench->wrongs, (unsigned char)none, EXPECTATIONS * 8));
    for (uint32_t i = 0; i < SLOTS; i++) {
        bench->slot[i] = (unsigned char *)bench->slots + (size_t)i * SLOT_BYTES;
        if (!table->region_create) continue;
        ok(bench, table->region_create(bench->self, bench->slots, (uint64_t)i * SLOT_BYTES,
                                       SLOT_BYTES, &bench->slot[i]));
    }
}

/* False when the device lacks these means. */
static bool choose_means(struct bench *bench, enum means means)
{
    bench->means = means;
    bench->closures_count = bench->expectations = 0;
    memset(bench->words, 0, sizeof bench->words);
    memset(bench->closures, 0, EXPECTATIONS * sizeof *bench->closures);
    if (means == BY_CLOSURES) return bench->table->launch;
    if (bench->table->pattern_fill) open_patterns(bench);
    return bench->table->pattern_fill;
}

/* Takes some time, so that an order that is not kept has a chance to show. */
static void work_closure(void *argument)
{
    struct closure *closure = argument;
    for (uint64_t end = tarn_now_ns() + 2000; tarn_now_ns() < end;) continue;
    closure->calls++;
    if (!closure->expects)
        *closure->word = closure->value;
    else if (*closure->word != closure->value)
        closure->was_wrong = true;
}

static void enqueue(struct bench *bench, uint32_t queue, uint32_t slot, uint32_t value,
                    bool expects)
{
    void *on = bench->queues[queue], *bytes = bench->slot[slot];
    if (bench->means == BY_CLOSURES) {
        struct closure *closure = &bench->closures[bench->closures_count++];
        *closure = (struct closure){&bench->words[slot], value, expects, false, 0};
        ok(bench, bench->table->launch(bench->self, on, work_closure, closure));
    } else if (expects) {
        ok(bench, bench->table->pattern_compare(bench->self, on, bytes, SLOT_BYTES, bench->seeds,
                                                value, bench->wrongs, bench->expectations++));
    } else {
        ok(bench,
           bench->table->pattern_fill(bench->self, on, bytes, SLOT_BYTES, bench->seeds, value));
    }
}

static void note(struct bench *bench, uint32_t queue, uint32_t slot, uint32_t value)
{
    enqueue(bench, queue, slot, value, false);
}

static void expect(struct bench *bench, uint32_t queue, uint32_t slot, uint32_t value)
{
    enqueue(bench, queue, slot, value, true);
}

static void record(struct bench *bench, void *event, uint32_t queue)
{
    ok(bench, bench->table->event_record(bench->self, event, bench->queues[queue]));
}

static void wait_for(struct bench *bench, void *event, uint32_t queue)
{
    ok(bench, bench->table->event_wait(bench->self, event, bench->queues[queue]));
}

static void until_done(struct bench *bench, void *event)
{
    bool done = false;
    for (uint64_t end = tarn_now_ns() + PATIENCE_NS; !done;) {
        ok(bench, bench->table->event_query(bench->self, event, &done));
        if (tarn_now_ns() > end) fail_msg("the event is never reached");
        if (!done) nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
    }
}

/* Until all queues have done everything. */
static void finish(struct bench *bench)
{
    uint32_t kept = bench->events_count;
    for (uint32_t i = 0; i < bench->queues_count; i++) {
        void *end = new_event(bench);
        record(bench, end, i);
        until_done(bench, end);
    }
    while (bench->events_count > kept)
        bench->table->event_destroy(bench->self, bench->events[--bench->events_count]);
}

static void expectations_held(struct bench *bench, uint32_t times)
{
    finish(bench);
    for (uint32_t i = 0; i < bench->closures_count; i++) {
        assert_int_equal(bench->closures[i].calls, times);
        if (bench->closures[i].was_wrong) fail_msg("expectation %u does not hold", i);
    }
    if (bench->means != BY_PATTERNS) return;
    uint64_t wrongs[EXPECTATIONS];
    ok(bench, bench->table->copy_out(bench->self, wrongs, bench->wrongs, sizeof wrongs));
    for (uint32_t i = 0; i < bench->expectations; i++) {
        if (wrongs[i] != UINT64_MAX)
            fail_msg("expectation %u does not hold at byte %llu", i, (unsigned long long)wrongs[i]);
    }
}

/* Runs `act` by every means that the device has; the queues stay. */
static void by_all_means(struct bench *bench, void (*act)(struct bench *bench), uint32_t times)
{
    bool any = false;
    for (enum means means = 0; means < MEANS; means++) {
        if (!choose_means(bench, means)) continue;
        act(bench);
        expectations_held(bench, times);
        any = true;
    }
    if (!any) skip();
}

/* ---- Memory ---- */

static void limits_say_what_is_there(void **state)
{
    struct bench *bench = open_bench(state);
    struct tarn_memory_limits limits = {0};
    assert_true(bench->table->name && bench->table->name[0]);
    ok(bench, bench->table->memory_limits(bench->self, &limits));
    assert_true(tarn_is_power_of_two(limits.alignment));
    assert_true(limits.allocation_max > 0);
}

static void allocations_are_aligned_and_apart(void **state)
{
    struct bench *bench = open_bench(state);
    struct tarn_memory_limits limits;
    void *memory[8];
    ok(bench, bench->table->memory_limits(bench->self, &limits));
    for (uint32_t i = 0; i < 8; i++) {
        uint64_t size = 1 + 1000 * (uint64_t)i;
        ok(bench, bench->table->memory_create(bench->self, size, &memory[i]));
        if (!bench->table->region_create)
            assert_int_equal((uintptr_t)memory[i] % limits.alignment, 0);
        ok(bench, bench->table->fill(bench->self, memory[i], (unsigned char)i, size));
    }
    for (uint32_t i = 0; i < 8; i++) {
        unsigned char bytes[7001];
        uint64_t size = 1 + 1000 * (uint64_t)i;
        ok(bench, bench->table->copy_out(bench->self, bytes, memory[i], size));
        for (uint64_t k = 0; k < size; k++) assert_int_equal(bytes[k], i);
        bench->table->memory_destroy(bench->self, memory[i], size);
    }
}

enum { MODEL_BYTES = 100000 };

static void copies_and_fills_reach_exactly_their_bytes(void **state)
{
    struct bench *bench = open_bench(state);
    const struct tarn_device_table *table = bench->table;
    struct random_source source = {3};
    unsigned char *model = calloc(1, MODEL_BYTES), *seen = calloc(1, MODEL_BYTES);
    void *memory, *part;
    ok(bench, table->memory_create(bench->self, MODEL_BYTES, &memory));
    ok(bench, table->fill(bench->self, memory, 0, MODEL_BYTES));
    for (uint32_t i = 0; i < 400; i++) {
        uint32_t begin = random_below(&source, MODEL_BYTES);
        uint32_t most = i % 2 ? 40 : MODEL_BYTES - begin;
        uint32_t size =
            1 + random_below(&source, most < MODEL_BYTES - begin ? most : MODEL_BYTES - begin);
        part = (unsigned char *)memory + begin;
        if (table->region_create)
            ok(bench, table->region_create(bench->self, memory, begin, size, &part));
        unsigned char byte = (unsigned char)random_next(&source);
        for (uint32_t k = 0; k < size; k++)
            model[begin + k] = i % 3 ? byte : (unsigned char)random_next(&source);
        if (i % 3)
            ok(bench, table->fill(bench->self, part, byte, size));
        else
            ok(bench, table->copy_in(bench->self, part, model + begin, size));
        memset(seen, 0, size);
        ok(bench, table->copy_out(bench->self, seen, part, size));
        assert_memory_equal(seen, model + begin, size);
        if (table->region_destroy) table->region_destroy(bench->self, part);
    }
    ok(bench, table->copy_out(bench->self, seen, memory, MODEL_BYTES));
    assert_memory_equal(seen, model, MODEL_BYTES);
    table->memory_destroy(bench->self, memory, MODEL_BYTES);
    free(model);
    free(seen);
}

static void a_large_allocation_is_usable_to_its_last_byte(void **state)
{
    struct bench *bench = open_bench(state);
    struct tarn_memory_limits limits;
    unsigned char *bytes = malloc(SLOT_BYTES);
    uint64_t size = bench->suite->large_bytes ? bench->suite->large_bytes
                                              : (uint64_t)(SANITIZED ? 16 : 256) << 20;
    void *memory, *end;
    ok(bench, bench->table->memory_limits(bench->self, &limits));
    if (size > limits.allocation_max) size = limits.allocation_max;
    if (size > limits.available / 2) size = limits.available / 2;
    ok(bench, bench->table->memory_create(bench->self, size, &memory));
    ok(bench, bench->table->fill(bench->self, memory, 0x5a, size));
    end = (unsigned char *)memory + size - SLOT_BYTES;
    if (bench->table->region_create)
        ok(bench,
           bench->table->region_create(bench->self, memory, size - SLOT_BYTES, SLOT_BYTES, &end));
    ok(bench, bench->table->copy_out(bench->self, bytes, end, SLOT_BYTES));
    for (uint32_t i = 0; i < SLOT_BYTES; i++) assert_int_equal(bytes[i], 0x5a);
    if (bench->table->region_destroy) bench->table->region_destroy(bench->self, end);
    bench->table->memory_destroy(bench->self, memory, size);
    free(bytes);
}

static void what_is_too_large_is_out_of_memory_and_has_a_text(void **state)
{
    struct bench *bench = open_bench(state);
    struct tarn_memory_limits limits;
    void *memory = NULL;
    ok(bench, bench->table->memory_limits(bench->self, &limits));
    uint64_t size = UINT64_C(1) << 46;
    int code = bench->table->memory_create(bench->self, size, &memory);
    if (!code) bench->table->memory_destroy(bench->self, memory, size);
    if (!code) fail_msg("2^46 bytes were allocated");
    assert_int_equal(bench->table->error_class(bench->self, code), TARN_ERROR_OUT_OF_MEMORY);
    assert_true(bench->table->error_text(bench->self, code)[0]);
    ok(bench, bench->table->memory_create(bench->self, 100, &memory)); /* it can go on */
    bench->table->memory_destroy(bench->self, memory, 100);
}

static void host_memory_serves_copies(void **state)
{
    struct bench *bench = open_bench(state);
    const struct tarn_device_table *table = bench->table;
    void *host, *memory;
    assert_true(!table->host_memory_create == !table->host_memory_destroy);
    if (!table->host_memory_create) skip();
    ok(bench, table->host_memory_create(bench->self, SLOT_BYTES, &host));
    ok(bench, table->memory_create(bench->self, SLOT_BYTES, &memory));
    tarn_pattern_fill(host, SLOT_BYTES, 9);
    ok(bench, table->copy_in(bench->self, memory, host, SLOT_BYTES));
    memset(host, 0, SLOT_BYTES);
    ok(bench, table->copy_out(bench->self, host, memory, SLOT_BYTES));
    assert_int_equal(tarn_pattern_compare(host, SLOT_BYTES, 9), SLOT_BYTES);
    table->memory_destroy(bench->self, memory, SLOT_BYTES);
    table->host_memory_destroy(bench->self, host, SLOT_BYTES);
}

/* ---- Order ---- */

static void count_in_one_queue(struct bench *bench)
{
    for (uint32_t i = 0; i < 200; i++) {
        note(bench, 0, 0, i % VALUES);
        expect(bench, 0, 0, i % VALUES);
    }
}

static void a_queue_keeps_its_order(void **state)
{
    by_all_means(open_queues(state, 1), count_in_one_queue, 1);
}

/* A ball goes round: each queue sees the last one's note, and changes it. */
static void pass_round(struct bench *bench)
{
    void *event[4];
    for (uint32_t i = 0; i < 4; i++) event[i] = new_event(bench);
    for (uint32_t i = 0; i < 120; i++) {
        uint32_t queue = i % 4;
        if (i > 0) wait_for(bench, event[(i - 1) % 4], queue);
        if (i > 0) expect(bench, queue, 0, (i - 1) % VALUES);
        note(bench, queue, 0, i % VALUES);
        record(bench, event[queue], queue);
    }
}

static void an_event_orders_two_queues_and_can_be_recorded_again(void **state)
{
    by_all_means(open_queues(state, 4), pass_round, 1);
}

/* Queue 1 waits for the first record and lets queue 0 go on to the second: whoever takes the second
 * for the one that is waited for never ends. */
static void record_twice(struct bench *bench)
{
    void *event = new_event(bench), *back = new_event(bench);
    for (uint32_t i = 0; i < 20; i++) {
        note(bench, 0, 0, i);
        record(bench, event, 0);
        wait_for(bench, event, 1);
        expect(bench, 1, 0, i);
        record(bench, back, 1);
        wait_for(bench, back, 0);
        note(bench, 0, 0, i + 1);
        record(bench, event, 0); /* nobody waits for this one */
    }
}

static void pending_waits_keep_to_the_record_that_they_were_made_for(void **state)
{
    by_all_means(open_queues(state, 2), record_twice, 1);
}

static void wait_for_nothing(struct bench *bench)
{
    void *event = new_event(bench);
    wait_for(bench, event, 0);
    note(bench, 0, 0, 1);
    expect(bench, 0, 0, 1);
}

static void an_event_that_was_never_recorded_holds_up_nobody(void **state)
{
    struct bench *bench = open_queues(state, 1);
    bool done = false;
    ok(bench, bench->table->event_query(bench->self, new_event(bench), &done));
    assert_true(done);
    by_all_means(bench, wait_for_nothing, 1);
}

/* One ring through all queues, and a common beginning for all. */
static void ring_through_all(struct bench *bench)
{
    uint32_t count = bench->queues_count;
    void *start = new_event(bench), *turn[2] = {new_event(bench), new_event(bench)};
    note(bench, 0, 0, 0);
    record(bench, start, 0);
    for (uint32_t i = 1; i < count; i++) wait_for(bench, start, i);
    for (uint32_t i = 0; i < count; i++) {
        if (i > 0) wait_for(bench, turn[(i - 1) % 2], i);
        expect(bench, i, 0, i % VALUES);
        note(bench, i, 0, (i + 1) % VALUES);
        record(bench, turn[i % 2], i);
    }
}

static void hundreds_of_queues_work(void **state)
{
    by_all_means(open_queues(state, QUEUES - 10), ring_through_all, 1);
}

static void a_query_tells_when_the_end_is_reached(void **state)
{
    struct bench *bench = open_queues(state, 1);
    void *event = new_event(bench);
    for (uint32_t i = 0; i < 20; i++) {
        record(bench, event, 0);
        until_done(bench, event);
    }
}

/* ---- Capture ---- */

/* Diamonds: 0 forks to 1 and 2, which note in slots of their own; 0 joins and looks. */
static void enqueue_diamonds(struct bench *bench, void **event)
{
    for (uint32_t i = 0; i < 5; i++) {
        note(bench, 0, 0, i);
        record(bench, event[0], 0);
        for (uint32_t side = 1; side <= 2; side++) {
            wait_for(bench, event[0], side);
            expect(bench, side, 0, i);
            note(bench, side, side, i + side);
            record(bench, event[side], side);
        }
        for (uint32_t side = 1; side <= 2; side++) wait_for(bench, event[side], 0);
        for (uint32_t side = 1; side <= 2; side++) expect(bench, 0, side, i + side);
    }
}

static void capture_and_replay(struct bench *bench, uint32_t times)
{
    const struct tarn_device_table *table = bench->table;
    void *event[3], *graph;
    for (uint32_t i = 0; i < 3; i++) event[i] = new_event(bench);
    ok(bench, table->capture_begin(bench->self, bench->queues[0]));
    enqueue_diamonds(bench, event);
    ok(bench, table->capture_end(bench->self, bench->queues[0], &graph));
    finish(bench);
    for (uint32_t i = 0; i < bench->closures_count; i++)
        assert_int_equal(bench->closures[i].calls, 0);
    for (uint32_t i = 0; i < times; i++)
        ok(bench, table->graph_launch(bench->self, graph, bench->queues[0]));
    expectations_held(bench, times);
    table->graph_destroy(bench->self, graph);
}

static void a_capture_runs_nothing_and_its_graph_runs_at_every_launch(void **state)
{
    struct bench *bench = open_queues(state, 3);
    const struct tarn_device_table *table = bench->table;
    assert_true(!table->capture_begin == !table->graph_launch);
    if (!table->capture_begin) skip();
    for (enum means means = 0; means < MEANS; means++) {
        if (choose_means(bench, means)) capture_and_replay(bench, 7);
    }
}

static void queues_work_as_before_after_a_capture(void **state)
{
    struct bench *bench = open_queues(state, 4);
    if (!bench->table->capture_begin) skip();
    void *graph, *event = new_event(bench);
    ok(bench, bench->table->capture_begin(bench->self, bench->queues[0]));
    record(bench, event, 0);
    wait_for(bench, event, 1);
    record(bench, event, 1);
    wait_for(bench, event, 0);
    ok(bench, bench->table->capture_end(bench->self, bench->queues[0], &graph));
    bench->table->graph_destroy(bench->self, graph); /* never launched */
    by_all_means(bench, pass_round, 1);
}

static void a_capture_whose_fork_is_not_joined_fails_and_leaves_the_queues_usable(void **state)
{
    struct bench *bench = open_queues(state, 2);
    if (!bench->table->capture_begin || !choose_means(bench, BY_CLOSURES)) skip();
    void *graph = NULL, *event = new_event(bench);
    ok(bench, bench->table->capture_begin(bench->self, bench->queues[0]));
    record(bench, event, 0);
    wait_for(bench, event, 1);
    note(bench, 1, 0, 1);
    assert_int_not_equal(bench->table->capture_end(bench->self, bench->queues[0], &graph), 0);
    finish(bench);
    assert_int_equal(bench->words[0], 0);
    by_all_means(bench, count_in_one_queue, 1);
}

/* ---- Stamps and names ---- */

static void stamps_tell_times_that_grow(void **state)
{
    struct bench *bench = open_queues(state, 1);
    const struct tarn_device_table *table = bench->table;
    void *stamp[3];
    double first, second, both;
    assert_true(!table->stamp_create == !table->stamp_elapsed);
    if (!table->stamp_create) skip();
    choose_means(bench, bench->table->launch ? BY_CLOSURES : BY_PATTERNS);
    for (uint32_t i = 0; i < 3; i++) {
        ok(bench, table->stamp_create(bench->self, &stamp[i]));
        ok(bench, table->stamp_record(bench->self, stamp[i], bench->queues[0]));
        note(bench, 0, 0, i);
    }
    finish(bench);
    ok(bench, table->stamp_elapsed(bench->self, stamp[0], stamp[1], &first));
    ok(bench, table->stamp_elapsed(bench->self, stamp[1], stamp[2], &second));
    ok(bench, table->stamp_elapsed(bench->self, stamp[0], stamp[2], &both));
    assert_true(first >= 0 && second >= 0);
    assert_true(both > 0 && both < (double)PATIENCE_NS);
    assert_true(both >= 0.9 * first && both >= 0.9 * second);
    for (uint32_t i = 0; i < 3; i++) table->stamp_destroy(bench->self, stamp[i]);
}

static void names_can_be_given(void **state)
{
    struct bench *bench = open_bench(state);
    const struct tarn_device_table *table = bench->table;
    assert_true(!table->range_begin == !table->range_end);
    if (!table->range_begin && !table->memory_name) skip();
    if (table->range_begin) table->range_begin(bench->self, "a range");
    if (table->range_end) table->range_end(bench->self);
    if (!table->memory_name) return;
    void *memory;
    ok(bench, table->memory_create(bench->self, 4096, &memory));
    table->memory_name(bench->self, memory, 512, 100, "a tensor");
    table->memory_destroy(bench->self, memory, 4096);
}

/* ---- Checking kernels ---- */

/* Fills [offset, offset + size) of slot memory, compares, then once more with one byte changed. */
static void try_pattern(struct bench *bench, uint64_t offset, uint64_t size, uint64_t wrong)
{
    const struct tarn_device_table *table = bench->table;
    unsigned char before, after, *bytes = malloc(size);
    uint64_t none[2] = {UINT64_MAX, UINT64_MAX}, seed;
    void *queue = bench->queues[0], *region = (unsigned char *)bench->slots + offset, *one;
    if (table->region_create)
        ok(bench, table->region_create(bench->self, bench->slots, offset, size, &region));
    ok(bench, table->copy_in(bench->self, bench->wrongs, none, sizeof none));
    ok(bench, table->pattern_fill(bench->self, queue, region, size, bench->seeds, 5));
    ok(bench,
       table->pattern_compare(bench->self, queue, region, size, bench->seeds, 5, bench->wrongs, 0));
    finish(bench);
    ok(bench, table->copy_out(bench->self, bytes, region, size));
    seed = tarn_seed_mix(5, 7);
    assert_int_equal(tarn_pattern_compare(bytes, size, seed), size);
    one = (unsigned char *)bench->slots + offset + wrong;
    if (table->region_create)
        ok(bench, table->region_create(bench->self, bench->slots, offset + wrong, 1, &one));
    before = bytes[wrong];
    after = (unsigned char)(before ^ 0x10);
    ok(bench, table->copy_in(bench->self, one, &after, 1));
    ok(bench,
       table->pattern_compare(bench->self, queue, region, size, bench->seeds, 5, bench->wrongs, 1));
    finish(bench);
    ok(bench, table->copy_out(bench->self, none, bench->wrongs, sizeof none));
    assert_int_equal(none[0], UINT64_MAX);
    assert_int_equal(none[1], wrong);
    if (table->region_destroy) table->region_destroy(bench->self, one);
    if (table->region_destroy) table->region_destroy(bench->self, region);
    free(bytes);
}

static void patterns_are_exact_at_every_offset_and_size(void **state)
{
    struct bench *bench = open_queues(state, 1);
    assert_true(!bench->table->pattern_fill == !bench->table->pattern_compare);
    if (!choose_means(bench, BY_PATTERNS)) skip();
    struct random_source source = {11};
    for (uint64_t size = 1; size < 40; size++)
        try_pattern(bench, size % 9, size, random_below(&source, (uint32_t)size));
    for (uint32_t i = 0; i < 10; i++) {
        uint32_t size = 1 + random_below(&source, SLOTS * SLOT_BYTES - 100);
        try_pattern(bench, random_below(&source, 100), size, random_below(&source, size));
    }
}

/* Neither a neighbour's byte is touched nor a wrong that is smaller already. */
static void patterns_keep_to_their_bytes_and_the_smallest_wrong(void **state)
{
    struct bench *bench = open_queues(state, 1);
    if (!choose_means(bench, BY_PATTERNS)) skip();
    const struct tarn_device_table *table = bench->table;
    unsigned char bytes[64];
    uint64_t wrong = 1;
    void *queue = bench->queues[0], *region = (unsigned char *)bench->slots + 13;
    if (table->region_create)
        ok(bench, table->region_create(bench->self, bench->slots, 13, 30, &region));
    ok(bench, table->fill(bench->self, bench->slots, 0xee, 64));
    ok(bench, table->copy_in(bench->self, bench->wrongs, &wrong, 8));
    ok(bench,
       table->pattern_compare(bench->self, queue, region, 30, bench->seeds, 3, bench->wrongs, 0));
    ok(bench, table->pattern_fill(bench->self, queue, region, 30, bench->seeds, 3));
    finish(bench);
    ok(bench, table->copy_out(bench->self, &wrong, bench->wrongs, 8));
    assert_true(wrong <= 1);
    ok(bench, table->copy_out(bench->self, bytes, bench->slots, sizeof bytes));
    for (uint32_t i = 0; i < 64; i++) {
        bool inside = i >= 13 && i < 43;
        assert_int_equal(bytes[i], inside ? tarn_pattern_byte(tarn_seed_mix(3, 7), i - 13) : 0xee);
    }
    if (table->region_destroy) table->region_destroy(bench->self, region);
}

/* ---- All of it ---- */

int device_suite_run(const struct device_suite *suite)
{
#define PART(test) \
    cmocka_unit_test_prestate_setup_teardown(test, device_suite_open, device_suite_close, NULL)
    const struct CMUnitTest promises[] = {
        PART(limits_say_what_is_there),
        PART(allocations_are_aligned_and_apart),
        PART(copies_and_fills_reach_exactly_their_bytes),
        PART(a_large_allocation_is_usable_to_its_last_byte),
        PART(what_is_too_large_is_out_of_memory_and_has_a_text),
        PART(host_memory_serves_copies),
        PART(a_queue_keeps_its_order),
        PART(an_event_orders_two_queues_and_can_be_recorded_again),
        PART(pending_waits_keep_to_the_record_that_they_were_made_for),
        PART(an_event_that_was_never_recorded_holds_up_nobody),
        PART(hundreds_of_queues_work),
        PART(a_query_tells_when_the_end_is_reached),
        PART(a_capture_runs_nothing_and_its_graph_runs_at_every_launch),
        PART(queues_work_as_before_after_a_capture),
        PART(a_capture_whose_fork_is_not_joined_fails_and_leaves_the_queues_usable),
        PART(stamps_tell_times_that_grow),
        PART(names_can_be_given),
        PART(patterns_are_exact_at_every_offset_and_size),
        PART(patterns_keep_to_their_bytes_and_the_smallest_wrong),
    };
    enum { PROMISES = sizeof promises / sizeof *promises };
    size_t sessions_count;
    const struct CMUnitTest *sessions = device_suite_sessions(&sessions_count);
    size_t count = PROMISES + sessions_count;
    struct CMUnitTest *tests = calloc(count, sizeof *tests);
    for (size_t i = 0; i < count; i++) {
        tests[i] = i < PROMISES ? promises[i] : sessions[i - PROMISES];
        tests[i].initial_state = (void *)(uintptr_t)suite;
    }
    int failures = _cmocka_run_group_tests(suite->name, tests, count, NULL, NULL);
    free(tests);
    return failures;
}
