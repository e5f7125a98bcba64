/* The open device, its queues and events; notes and expectations on them; patterns and random
 * numbers of the suite's own. Cost: the device's. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "kit.h"

struct tarn_kit_closure {
    uint64_t *word, value;
    bool expects, was_wrong;
    uint32_t calls;
};

/* ---- Opening and closing ---- */

bool tarn_kit_open(struct tarn_kit *kit)
{
    const struct tarn_conformance suite = kit->suite;
    *kit = (struct tarn_kit){.suite = suite, .watch = kit->watch, .patience_ns = kit->patience_ns};
    if (!suite.open(suite.user, &kit->device)) return false;
    kit->table = kit->device.table;
    kit->self = kit->device.self;
    kit->closures = calloc(TARN_KIT_EXPECTATIONS, sizeof *kit->closures);
    if (suite.alive) kit->alive_before = suite.alive(suite.user);
    return true;
}

static void take_down(struct tarn_kit *kit)
{
    const struct tarn_device_table *table = kit->table;
    while (kit->events_count > 0) table->event_destroy(kit->self, kit->events[--kit->events_count]);
    while (kit->queues_count > 0) table->queue_destroy(kit->self, kit->queues[--kit->queues_count]);
    if (!kit->slots) return;
    for (uint32_t i = 0; i < TARN_KIT_SLOTS && table->region_destroy; i++)
        table->region_destroy(kit->self, kit->slot[i]);
    table->memory_destroy(kit->self, kit->slots, TARN_KIT_SLOTS * TARN_KIT_SLOT_BYTES);
    table->memory_destroy(kit->self, kit->seeds, TARN_KIT_VALUES * 8);
    table->memory_destroy(kit->self, kit->wrongs, TARN_KIT_EXPECTATIONS * 8);
    kit->slots = NULL;
}

uint64_t tarn_kit_close(struct tarn_kit *kit)
{
    const struct tarn_conformance *suite = &kit->suite;
    tarn_kit_open_gate(); /* of a test that has failed */
    if (suite->fail_after) suite->fail_after(suite->user, UINT64_MAX);
    tarn_kit_end(kit);
    take_down(kit);
    uint64_t left = suite->alive ? suite->alive(suite->user) - kit->alive_before : 0;
    if (suite->close) suite->close(suite->user, kit->device);
    free(kit->closures);
    kit->closures = NULL;
    return left;
}

/* ---- Patterns and random numbers ---- */

uint64_t tarn_kit_next(struct tarn_kit_random *random)
{
    uint64_t z = random->state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

uint32_t tarn_kit_below(struct tarn_kit_random *random, uint32_t limit)
{
    return (uint32_t)(((tarn_kit_next(random) >> 32) * limit) >> 32);
}

uint64_t tarn_kit_seed(uint32_t value) { return tarn_kit_next(&(struct tarn_kit_random){value}); }

unsigned char tarn_kit_pattern_byte(uint64_t seed, uint64_t i)
{
    return (unsigned char)((seed + i / 8 * TARN_PATTERN_STEP) >> 8 * (i % 8));
}

void tarn_kit_pattern_fill(unsigned char *bytes, uint64_t size, uint64_t seed)
{
    for (uint64_t i = 0; i < size; i++) bytes[i] = tarn_kit_pattern_byte(seed, i);
}

uint64_t tarn_kit_pattern_compare(const unsigned char *bytes, uint64_t size, uint64_t seed)
{
    uint64_t i = 0;
    while (i < size && bytes[i] == tarn_kit_pattern_byte(seed, i)) i++;
    return i;
}

uint64_t tarn_kit_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* ---- Queues ---- */

uint32_t tarn_kit_depth(const struct tarn_kit *kit)
{
    const size_t end = offsetof(struct tarn_device_table, queue_depth) + sizeof(uint32_t);
    return kit->table->struct_size >= end ? kit->table->queue_depth : 0;
}

void tarn_kit_create_queues(struct tarn_kit *kit, uint32_t queues)
{
    NEEDS(kit->table->queue_create, "queues");
    for (uint32_t i = 0; i < queues; i++) {
        char name[32];
        snprintf(name, sizeof name, "queue %u", i);
        struct tarn_queue_info info = {.name = name, .urgent = i % 2};
        OK(kit->table->queue_create(kit->self, &info, &kit->queues[i]));
        kit->queues_count++;
    }
}

void *tarn_kit_event(struct tarn_kit *kit)
{
    void **event = &kit->events[kit->events_count];
    OK(kit->table->event_create(kit->self, event));
    kit->events_count++;
    return *event;
}

/* ---- What is not over ---- */

static struct gate {
    pthread_t caller;
    atomic_bool enqueued, open, passed;
    atomic_bool runs_in_calls; /* `enqueued` was not to be had */
    atomic_bool gave_up;       /* waiting for `open` */
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
    if (is_called || waits_in_vain(&gate.enqueued, gate.within))
        atomic_store(&gate.runs_in_calls, true);
    else if (waits_in_vain(&gate.open, gate.patience))
        atomic_store(&gate.gave_up, true);
    atomic_store(&gate.passed, true);
}

void tarn_kit_close_gate(struct tarn_kit *kit, uint32_t queue)
{
    bool quick = kit->suite.effort == TARN_CONFORMANCE_QUICK;
    gate.caller = pthread_self();
    gate.within = kit->patience_ns / 15;
    gate.patience = kit->patience_ns / (quick ? 6 : 1);
    atomic_store(&gate.enqueued, false);
    atomic_store(&gate.open, false);
    atomic_store(&gate.passed, false);
    atomic_store(&gate.runs_in_calls, false);
    atomic_store(&gate.gave_up, false);
    OK(kit->table->launch(kit->self, kit->queues[queue], pass_gate, NULL));
    atomic_store(&gate.enqueued, true);
}

void tarn_kit_open_gate(void) { atomic_store(&gate.open, true); }
bool tarn_kit_is_closed(void) { return !atomic_load(&gate.passed); }
bool tarn_kit_has_passed(void) { return atomic_load(&gate.passed); }
bool tarn_kit_gave_up(void) { return atomic_load(&gate.gave_up); }
bool tarn_kit_runs_in_calls(void) { return atomic_load(&gate.runs_in_calls); }

/* ---- Calls that fail ---- */

bool tarn_kit_make_fail(struct tarn_kit *kit)
{
    if (kit->suite.fail_after) kit->suite.fail_after(kit->suite.user, 0);
    return kit->suite.fail_after;
}

bool tarn_kit_failed(struct tarn_kit *kit, const char *call, int code)
{
    bool has_failed = kit->suite.fail_after(kit->suite.user, UINT64_MAX);
    REQUIRE(has_failed || code == 0, "%s returned %d (%s)", call, code, tarn_kit_text(kit, code));
    if (!has_failed) return false;
    REQUIRE(code, "%s was made to fail, says fail_after, and returned 0", call);
    REQUIRE(kit->table->error_text(kit->self, code),
            "error_text of code %d, which %s returned, is NULL", code, call);
    REQUIRE(kit->table->error_class(kit->self, code) != TARN_ERROR_POISONED,
            "%s failed with code %d, whose error_class is TARN_ERROR_POISONED, and the next call "
            "works",
            call, code);
    return true;
}

/* ---- Notes and expectations ---- */

uint32_t tarn_kit_calls(const struct tarn_kit *kit, uint32_t closure)
{
    return kit->closures[closure].calls;
}

static void open_patterns(struct tarn_kit *kit)
{
    const struct tarn_device_table *table = kit->table;
    uint64_t seeds[TARN_KIT_VALUES], none = UINT64_MAX;
    for (uint32_t i = 0; i < TARN_KIT_VALUES; i++) seeds[i] = tarn_kit_seed(i);
    OK(table->memory_create(kit->self, TARN_KIT_SLOTS * TARN_KIT_SLOT_BYTES, &kit->slots));
    OK(table->memory_create(kit->self, TARN_KIT_VALUES * 8, &kit->seeds));
    OK(table->memory_create(kit->self, TARN_KIT_EXPECTATIONS * 8, &kit->wrongs));
    OK(table->copy_in(kit->self, kit->seeds, seeds, sizeof seeds));
    OK(table->fill(kit->self, kit->wrongs, (unsigned char)none, TARN_KIT_EXPECTATIONS * 8));
    for (uint32_t i = 0; i < TARN_KIT_SLOTS; i++) {
        kit->slot[i] = (unsigned char *)kit->slots + (size_t)i * TARN_KIT_SLOT_BYTES;
        if (!table->region_create) continue;
        OK(table->region_create(kit->self, kit->slots, (uint64_t)i * TARN_KIT_SLOT_BYTES,
                                TARN_KIT_SLOT_BYTES, &kit->slot[i]));
    }
}

/* A device may load a kernel at its first use, and wait for that until all queues are empty. */
static void warm_up(struct tarn_kit *kit)
{
    const struct tarn_device_table *table = kit->table;
    if (kit->is_warm || kit->queues_count == 0) return;
    kit->is_warm = true;
    OK(table->pattern_fill(kit->self, kit->queues[0], kit->slot[0], TARN_KIT_SLOT_BYTES, kit->seeds,
                           0));
    OK(table->pattern_compare(kit->self, kit->queues[0], kit->slot[0], TARN_KIT_SLOT_BYTES,
                              kit->seeds, 0, kit->wrongs, 0));
    tarn_kit_finish(kit);
}

bool tarn_kit_choose(struct tarn_kit *kit, enum tarn_kit_means means)
{
    kit->means = means;
    kit->closures_count = kit->expectations = 0;
    memset(kit->words, 0, sizeof kit->words);
    memset(kit->closures, 0, TARN_KIT_EXPECTATIONS * sizeof *kit->closures);
    if (means == TARN_KIT_BY_CLOSURES) return kit->table->launch;
    if (kit->table->pattern_fill) {
        open_patterns(kit);
        warm_up(kit);
    }
    return kit->table->pattern_fill;
}

/* Takes some time, so that an order that is not kept has a chance to show. */
static void work_closure(void *argument)
{
    struct tarn_kit_closure *closure = argument;
    for (uint64_t end = tarn_kit_now_ns() + 2000; tarn_kit_now_ns() < end;) continue;
    closure->calls++;
    if (!closure->expects)
        *closure->word = closure->value;
    else if (*closure->word != closure->value)
        closure->was_wrong = true;
}

bool tarn_kit_kernels_work(const struct tarn_kit *kit)
{
    return kit->table->kernels_are_closures || !kit->table->queue_create;
}

static int enqueue(struct tarn_kit *kit, void *queue, uint32_t slot, uint32_t value, bool expects)
{
    const struct tarn_device_table *table = kit->table;
    if (kit->means == TARN_KIT_BY_CLOSURES) {
        struct tarn_kit_closure *closure = &kit->closures[kit->closures_count++];
        *closure = (struct tarn_kit_closure){&kit->words[slot], value, expects, false, 0};
        tarn_kit_step(kit, "launch");
        return table->launch(kit->self, queue, work_closure, closure);
    }
    tarn_kit_step(kit, expects ? "pattern_compare" : "pattern_fill");
    if (expects)
        return table->pattern_compare(kit->self, queue, kit->slot[slot], TARN_KIT_SLOT_BYTES,
                                      kit->seeds, value, kit->wrongs, kit->expectations++);
    return table->pattern_fill(kit->self, queue, kit->slot[slot], TARN_KIT_SLOT_BYTES, kit->seeds,
                               value);
}

int tarn_kit_in_kernel(struct tarn_kit *kit, void *queue, uint32_t slot, uint32_t value,
                       bool expects)
{
    if (!tarn_kit_kernels_work(kit)) return enqueue(kit, queue, slot, value, expects);
    struct tarn_kit_closure closure = {&kit->words[slot], value, expects, false, 0};
    work_closure(&closure);
    return closure.was_wrong;
}

static void must_enqueue(struct tarn_kit *kit, uint32_t queue, uint32_t slot, uint32_t value,
                         bool expects)
{
    int code = enqueue(kit, kit->queues[queue], slot, value, expects);
    REQUIRE(code == 0, "launch, pattern_fill or pattern_compare returned %d (%s)", code,
            tarn_kit_text(kit, code));
}

void tarn_kit_note(struct tarn_kit *kit, uint32_t queue, uint32_t slot, uint32_t value)
{
    must_enqueue(kit, queue, slot, value, false);
}

void tarn_kit_expect(struct tarn_kit *kit, uint32_t queue, uint32_t slot, uint32_t value)
{
    must_enqueue(kit, queue, slot, value, true);
}

void tarn_kit_record(struct tarn_kit *kit, void *event, uint32_t queue)
{
    OK(kit->table->event_record(kit->self, event, kit->queues[queue]));
}

void tarn_kit_wait(struct tarn_kit *kit, void *event, uint32_t queue)
{
    OK(kit->table->event_wait(kit->self, event, kit->queues[queue]));
}

void tarn_kit_until_done(struct tarn_kit *kit, void *event)
{
    bool done = false;
    for (uint64_t end = tarn_kit_now_ns() + kit->patience_ns; !done;) {
        OK(kit->table->event_query(kit->self, event, &done));
        REQUIRE(tarn_kit_now_ns() <= end,
                "event_query says for %llu ms that an event is not reached, although all that it "
                "comes after can be done",
                (unsigned long long)(kit->patience_ns / 1000000));
        if (!done) nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
    }
}

void tarn_kit_finish(struct tarn_kit *kit)
{
    uint32_t kept = kit->events_count;
    for (uint32_t i = 0; i < kit->queues_count; i++) {
        void *end = tarn_kit_event(kit);
        tarn_kit_record(kit, end, i);
        tarn_kit_until_done(kit, end);
    }
    while (kit->events_count > kept)
        kit->table->event_destroy(kit->self, kit->events[--kit->events_count]);
}

void tarn_kit_held(struct tarn_kit *kit, uint32_t times)
{
    tarn_kit_finish(kit);
    for (uint32_t i = 0; i < kit->closures_count; i++) {
        REQUIRE(kit->closures[i].calls == times,
                "the function of launch %u was called %u times instead of %u", i,
                kit->closures[i].calls, times);
        REQUIRE(!kit->closures[i].was_wrong,
                "launch %u ran before work that it comes after, or after work that comes after it",
                i);
    }
    if (kit->means != TARN_KIT_BY_PATTERNS) return;
    uint64_t wrongs[TARN_KIT_EXPECTATIONS];
    OK(kit->table->copy_out(kit->self, wrongs, kit->wrongs, sizeof wrongs));
    for (uint32_t i = 0; i < kit->expectations; i++) {
        REQUIRE(wrongs[i] == UINT64_MAX,
                "pattern_compare %u found a wrong byte, %llu: it ran before work that it comes "
                "after, or after work that comes after it, or patterns are not exact",
                i, (unsigned long long)wrongs[i]);
    }
}

void tarn_kit_by_all_means(struct tarn_kit *kit, void (*act)(struct tarn_kit *kit))
{
    bool any = false;
    for (enum tarn_kit_means means = 0; means < TARN_KIT_MEANS; means++) {
        if (!tarn_kit_choose(kit, means)) continue;
        act(kit);
        tarn_kit_held(kit, 1);
        any = true;
    }
    NEEDS(any, "launch and no checking kernels");
}
