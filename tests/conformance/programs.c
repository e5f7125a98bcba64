/* Random programs of calls, and what every legal order of their work has in common. Each work has
 * bytes of its own, which it fills with a pattern of its own. What must come before it follows from
 * a vector clock for each queue and each event:
 *
 *     launch or pattern on q    must find the bytes of works 1 .. clock[q][r] of every queue r
 *     record of e on q          clock[e] := clock[q]
 *     wait for e on q           clock[q] := the larger, for each r
 *     query of e, if done       as a work, for clock[e]
 *     a call that fails         nothing changes
 *
 * Most programs begin behind a closed gate, so that all waits are pending when they are enqueued,
 * and nothing that comes after the gate may have run before it opens.
 * Closures do the work where they can reach the bytes; else checking kernels, or both in turn.
 * Cost: O(programs * calls * queues) short works. */
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "kit.h"

enum { QUEUES = 4, EVENTS = 3, CALLS = 70, WORKS = 60, BYTES = 256, LOG = 1500 };

struct clock {
    uint32_t works[QUEUES]; /* of each queue that are over */
};

struct program;

struct work {
    struct program *program;
    struct clock after;
    uint32_t queue, number; /* the first of its queue is 1 */
    unsigned char *host;    /* its bytes as host code sees them; NULL: it does not */
    void *device;           /* as kernels see them */
    _Atomic uint32_t calls; /* of the closure */
    atomic_bool is_early;   /* the closure did not find what it comes after */
    uint32_t delay_ns;
    bool is_closure, is_behind; /* is_behind: it comes after the gate */
};

/* How works get their bytes. */
enum bytes { OF_HOST, OF_DEVICE, ON_BOTH };

struct program {
    struct tarn_kit *kit;
    enum bytes bytes;
    struct tarn_kit_random random;
    uint32_t queues_count, works_count, wrongs_count;
    struct clock queues[QUEUES], events[EVENTS];
    bool queue_is_behind[QUEUES], event_is_behind[EVENTS]; /* the gate */
    struct work works[WORKS];
    uint32_t index[QUEUES][WORKS + 1]; /* by queue and number: the work */
    void *memory, *regions[WORKS];
    unsigned char *host;
    bool has_gate;
    bool fails; /* the call under way */
    char log[LOG];
    size_t log_used;
};

/* ---- Words for a failure ---- */

__attribute__((format(printf, 2, 3))) static void note(struct program *program, const char *format,
                                                       ...)
{
    va_list arguments;
    va_start(arguments, format);
    int size =
        vsnprintf(program->log + program->log_used, LOG - program->log_used, format, arguments);
    va_end(arguments);
    program->log_used += (size_t)size;
    if (program->log_used >= LOG) program->log_used = LOG - 1;
}

/* ---- Works ---- */

static bool has_pattern(const struct work *work)
{
    uint32_t value = (uint32_t)(work - work->program->works);
    return tarn_kit_pattern_compare(work->host, BYTES, tarn_kit_seed(value)) == BYTES;
}

static void run_closure(void *argument)
{
    struct work *work = argument;
    struct program *program = work->program;
    for (uint32_t r = 0; r < program->queues_count; r++) {
        for (uint32_t n = work->after.works[r]; n > 0 && n + 3 > work->after.works[r]; n--) {
            if (!has_pattern(&program->works[program->index[r][n]])) work->is_early = true;
        }
    }
    for (uint64_t end = tarn_kit_now_ns() + work->delay_ns; tarn_kit_now_ns() < end;) continue;
    uint32_t value = (uint32_t)(work - program->works);
    tarn_kit_pattern_fill(work->host, BYTES, tarn_kit_seed(value));
    work->calls++;
}

/* ---- Calls ---- */

static void begin_call(struct program *program, const char *call)
{
    struct tarn_kit *kit = program->kit;
    program->fails = tarn_kit_below(&program->random, 6) == 0 && tarn_kit_make_fail(kit);
    tarn_kit_step(kit, call);
}

static bool end_call(struct program *program, const char *call, int code)
{
    struct tarn_kit *kit = program->kit;
    bool has_failed = program->fails && tarn_kit_failed(kit, call, code);
    if (has_failed) note(program, "(%.20s: fails) ", strchr(call, '>') + 1);
    REQUIRE(has_failed || code == 0, "%s returned %d (%s)", call, code, tarn_kit_text(kit, code));
    return !has_failed;
}

/* Now and then a call is made to fail, and changes nothing then. True: it was made. */
#define MADE(call) (begin_call(program, #call), end_call(program, #call, (call)))
#define MAKE(call)                    \
    do {                              \
        while (!MADE(call)) continue; \
    } while (0)

static void enqueue_patterns(struct program *program, struct work *work)
{
    struct tarn_kit *kit = program->kit;
    const struct tarn_device_table *table = kit->table;
    void *queue = kit->queues[work->queue];
    uint32_t value = (uint32_t)(work - program->works);
    for (uint32_t r = 0; r < program->queues_count; r++) {
        if (work->after.works[r] == 0) continue;
        uint32_t before = program->index[r][work->after.works[r]];
        MAKE(table->pattern_compare(kit->self, queue, program->works[before].device, BYTES,
                                    kit->seeds, before, kit->wrongs, program->wrongs_count));
        program->wrongs_count++;
    }
    MAKE(table->pattern_fill(kit->self, queue, work->device, BYTES, kit->seeds, value));
}

static void add_work(struct program *program, uint32_t q)
{
    struct tarn_kit *kit = program->kit;
    struct work *work = &program->works[program->works_count];
    work->program = program;
    work->queue = q;
    work->number = program->queues[q].works[q] + 1;
    work->after = program->queues[q];
    work->host = program->host ? program->host + (size_t)program->works_count * BYTES : NULL;
    work->device = program->regions[program->works_count];
    work->is_behind = program->queue_is_behind[q];
    work->calls = 0;
    work->is_early = false;
    work->delay_ns = tarn_kit_below(&program->random, 8) == 0 ? 30000 : 500;
    work->is_closure = program->bytes == OF_HOST ||
                       (program->bytes == ON_BOTH && tarn_kit_below(&program->random, 2));
    program->index[q][work->number] = program->works_count++;
    note(program, "work %u on queue %u; ", program->works_count - 1, q);
    if (work->is_closure)
        MAKE(kit->table->launch(kit->self, kit->queues[q], run_closure, work));
    else
        enqueue_patterns(program, work);
    program->queues[q].works[q]++;
}

/* ---- Events ---- */

static void record(struct program *program, uint32_t e, uint32_t q)
{
    struct tarn_kit *kit = program->kit;
    note(program, "record event %u on queue %u; ", e, q);
    if (!MADE(kit->table->event_record(kit->self, kit->events[e], kit->queues[q]))) return;
    program->events[e] = program->queues[q];
    program->event_is_behind[e] = program->queue_is_behind[q];
}

static void wait(struct program *program, uint32_t e, uint32_t q)
{
    struct tarn_kit *kit = program->kit;
    note(program, "wait for event %u on queue %u; ", e, q);
    if (!MADE(kit->table->event_wait(kit->self, kit->events[e], kit->queues[q]))) return;
    program->queue_is_behind[q] |= program->event_is_behind[e];
    for (uint32_t r = 0; r < QUEUES; r++) {
        uint32_t *works = &program->queues[q].works[r];
        if (*works < program->events[e].works[r]) *works = program->events[e].works[r];
    }
}

/* The bytes as they are on the device; nobody works on them. */
static bool is_over(struct program *program, const struct work *work)
{
    struct tarn_kit *kit = program->kit;
    unsigned char bytes[BYTES];
    uint64_t seed = tarn_kit_seed((uint32_t)(work - program->works));
    if (work->host) return has_pattern(work);
    OK(kit->table->copy_out(kit->self, bytes, work->device, BYTES));
    return tarn_kit_pattern_compare(bytes, BYTES, seed) == BYTES;
}

/* On a device with one unit, a copy would wait for the gate. */
static bool can_look(const struct program *program) { return program->host || !program->has_gate; }

static void query(struct program *program, uint32_t e)
{
    struct tarn_kit *kit = program->kit;
    bool done = false;
    note(program, "query event %u; ", e);
    if (!MADE(kit->table->event_query(kit->self, kit->events[e], &done))) return;
    for (uint32_t r = 0; r < program->queues_count && done && can_look(program); r++) {
        uint32_t last = program->events[e].works[r];
        if (last == 0 || is_over(program, &program->works[program->index[r][last]])) continue;
        tarn_kit_open_gate();
        kit->lost = "every further test would free what the device still uses";
        FAIL("event_query says that event %u is reached, and work %u, which its latest record "
             "comes after, is not over. The calls: %s",
             e, program->index[r][last], program->log);
    }
}

/* ---- Programs ---- */

static void enqueue_calls(struct program *program)
{
    struct tarn_kit_random *random = &program->random;
    for (uint32_t i = 0; i < CALLS && program->works_count < WORKS; i++) {
        uint32_t what = tarn_kit_below(random, 100);
        uint32_t q = tarn_kit_below(random, program->queues_count);
        uint32_t e = tarn_kit_below(random, EVENTS);
        if (what < 40)
            add_work(program, q);
        else if (what < 65)
            record(program, e, q);
        else if (what < 92)
            wait(program, e, q);
        else
            query(program, e);
    }
}

/* While the gate is closed. */
static void look_behind_gate(struct program *program)
{
    struct tarn_kit *kit = program->kit;
    nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
    for (uint32_t i = 0; i < program->works_count; i++) {
        const struct work *work = &program->works[i];
        bool ran = work->is_behind && (work->is_closure ? work->calls > 0 : is_over(program, work));
        REQUIRE(!ran || !tarn_kit_is_closed(),
                "work %u on queue %u ran while a launch that it comes after still lasts. The "
                "calls: %s",
                i, work->queue, program->log);
    }
}

static void look(struct program *program)
{
    struct tarn_kit *kit = program->kit;
    uint64_t wrongs[TARN_KIT_EXPECTATIONS];
    for (uint32_t i = 0; i < program->works_count; i++) {
        const struct work *work = &program->works[i];
        REQUIRE(!work->is_early,
                "the function of launch %u on queue %u was called before works that it comes "
                "after were over. The calls: %s",
                i, work->queue, program->log);
        REQUIRE(!work->is_closure || work->calls == 1,
                "the function of launch %u on queue %u was called %u times. The calls: %s", i,
                work->queue, work->calls, program->log);
        REQUIRE(is_over(program, work), "work %u on queue %u did not run. The calls: %s", i,
                work->queue, program->log);
    }
    if (program->wrongs_count == 0) return;
    OK(kit->table->copy_out(kit->self, wrongs, kit->wrongs, program->wrongs_count * 8));
    for (uint32_t i = 0; i < program->wrongs_count; i++)
        REQUIRE(wrongs[i] == UINT64_MAX,
                "pattern_compare %u found byte %llu wrong: it ran before works that it comes after "
                "were over. The calls: %s",
                i, (unsigned long long)wrongs[i], program->log);
}

static void begin_program(struct program *program)
{
    struct tarn_kit *kit = program->kit;
    const size_t size = (size_t)WORKS * BYTES;
    program->works_count = program->wrongs_count = 0;
    program->log_used = 0;
    program->log[0] = '\0';
    memset(program->queues, 0, sizeof program->queues);
    memset(program->events, 0, sizeof program->events);
    memset(program->queue_is_behind, 0, sizeof program->queue_is_behind);
    memset(program->event_is_behind, 0, sizeof program->event_is_behind);
    if (program->bytes == OF_HOST) memset(program->host, 0, size);
    if (program->bytes == OF_HOST) return;
    OK(kit->table->fill(kit->self, program->memory, 0, size));
    OK(kit->table->fill(kit->self, kit->wrongs, 0xff, TARN_KIT_EXPECTATIONS * 8));
}

static void run_programs(struct program *program)
{
    static const uint32_t programs[] = {150, 40, 1000}; /* by effort */
    struct tarn_kit *kit = program->kit;
    uint32_t first_event = kit->events_count;
    for (uint32_t i = 0; i < programs[kit->suite.effort]; i++) {
        bool has_gate = kit->table->launch && tarn_kit_below(&program->random, 4) > 0;
        program->queues_count = 1 + tarn_kit_below(&program->random, QUEUES);
        program->has_gate = has_gate;
        begin_program(program);
        for (uint32_t e = 0; e < EVENTS; e++) tarn_kit_event(kit);
        uint32_t q = tarn_kit_below(&program->random, program->queues_count);
        if (has_gate) note(program, "a launch that lasts on queue %u; ", q);
        if (has_gate) tarn_kit_close_gate(kit, q);
        program->queue_is_behind[q] = has_gate;
        enqueue_calls(program);
        if (has_gate && can_look(program)) look_behind_gate(program);
        tarn_kit_open_gate();
        tarn_kit_finish(kit);
        REQUIRE(!has_gate || !tarn_kit_gave_up(),
                "a call waited for work of a queue that could not go on yet. The calls: %s",
                program->log);
        look(program);
        while (kit->events_count > first_event)
            kit->table->event_destroy(kit->self, kit->events[--kit->events_count]);
    }
}

static void open_memory(struct program *program)
{
    struct tarn_kit *kit = program->kit;
    const struct tarn_device_table *table = kit->table;
    const size_t size = (size_t)WORKS * BYTES;
    OK(table->memory_create(kit->self, size, &program->memory));
    for (uint32_t i = 0; i < WORKS; i++) {
        program->regions[i] = (unsigned char *)program->memory + (size_t)i * BYTES;
        if (table->region_create)
            OK(table->region_create(kit->self, program->memory, (uint64_t)i * BYTES, BYTES,
                                    &program->regions[i]));
    }
    if (program->bytes == ON_BOTH) program->host = program->memory;
}

static void close_memory(struct program *program)
{
    struct tarn_kit *kit = program->kit;
    const struct tarn_device_table *table = kit->table;
    for (uint32_t i = 0; i < WORKS && table->region_destroy; i++)
        table->region_destroy(kit->self, program->regions[i]);
    table->memory_destroy(kit->self, program->memory, (uint64_t)WORKS * BYTES);
}

/* What a test that fails leaves is used by works that still run: it stays. */
static void run_with(struct tarn_kit *kit, enum bytes bytes, uint64_t seed)
{
    struct program *program = calloc(1, sizeof *program);
    HOLDS(program);
    program->kit = kit;
    program->bytes = bytes;
    program->random.state = seed;
    if (bytes == OF_HOST) program->host = calloc(WORKS, BYTES);
    if (bytes == OF_HOST) HOLDS(program->host);
    if (bytes != OF_HOST) open_memory(program);
    run_programs(program);
    if (bytes == OF_HOST)
        free(program->host);
    else
        close_memory(program);
    free(program);
}

static bool is_on_host(struct tarn_kit *kit)
{
    struct tarn_memory_limits limits = {0};
    OK(kit->table->memory_limits(kit->self, &limits));
    return limits.on_host && !kit->table->region_create;
}

static void every_program_of_calls_keeps_its_order(struct tarn_kit *kit)
{
    bool has_closures = kit->table->launch, has_patterns = kit->table->pattern_fill;
    tarn_kit_create_queues(kit, QUEUES);
    NEEDS(has_closures || has_patterns, "launch and no checking kernels");
    if (has_patterns) tarn_kit_choose(kit, TARN_KIT_BY_PATTERNS);
    if (has_closures) run_with(kit, OF_HOST, 11);
    if (has_patterns) run_with(kit, OF_DEVICE, 12);
    if (has_patterns && has_closures && is_on_host(kit)) run_with(kit, ON_BOTH, 13);
}

/* ---- Queries from another thread ---- */

struct asker {
    struct tarn_kit *kit;
    void *event;
    atomic_bool ends;
    _Atomic int code;
};

static void *ask(void *argument)
{
    struct asker *asker = argument;
    const struct tarn_device_table *table = asker->kit->table;
    while (!asker->ends) {
        bool done;
        int code = table->event_query(asker->kit->self, asker->event, &done);
        if (code) asker->code = code;
        if (code) table->error_text(asker->kit->self, code);
        nanosleep(&(struct timespec){.tv_nsec = 10000}, NULL);
    }
    return NULL;
}

static void an_event_may_be_asked_for_from_any_thread(struct tarn_kit *kit)
{
    static struct asker asker; /* a test that fails leaves the thread */
    pthread_t thread;
    tarn_kit_create_queues(kit, 4);
    NEEDS(tarn_kit_choose(kit, TARN_KIT_BY_CLOSURES) || tarn_kit_choose(kit, TARN_KIT_BY_PATTERNS),
          "launch and no checking kernels");
    asker = (struct asker){.kit = kit, .event = tarn_kit_event(kit)};
    EQUAL(pthread_create(&thread, NULL, ask, &asker), 0);
    for (uint32_t i = 0; i < 10 && asker.code == 0; i++) {
        tarn_kit_record(kit, asker.event, i % 4);
        tarn_kit_pass_round(kit);
        tarn_kit_finish(kit);
    }
    asker.ends = true;
    pthread_join(thread, NULL);
    REQUIRE(asker.code == 0, "event_query, called from another thread, returned %d (%s)",
            asker.code, tarn_kit_text(kit, asker.code));
    tarn_kit_held(kit, 1);
}

const struct tarn_kit_test tarn_kit_programs[] = {
    {"every_program_of_calls_keeps_its_order", every_program_of_calls_keeps_its_order,
     "device.h, \"Queues and events\": a queue runs in order; work enqueued after a wait starts "
     "after everything enqueued before the latest record that was enqueued before the wait; and "
     "device.h, \"Contract\": what failed has no effect"},
    {"an_event_may_be_asked_for_from_any_thread", an_event_may_be_asked_for_from_any_thread,
     "device.h, event_query: from any thread"},
    {0},
};
