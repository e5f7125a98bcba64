/* What the tests of the conformance suite share: one open device for each test, ways to say what
 * must be so, and ways to make visible what happens on queues.
 *
 *     tarn_kit_note(kit, queue, slot, value)      when the queue gets there: slot := value
 *     tarn_kit_expect(kit, queue, slot, value)    then slot == value, else it is noted
 *
 * by closures on the host that write and look at words, or by checking kernels that write and
 * compare patterns; by both where the device has both. So an order that must hold is tested by
 * notes and expectations that only this order satisfies. */
#ifndef TARN_CONFORMANCE_KIT_H
#define TARN_CONFORMANCE_KIT_H

#include <setjmp.h>
#include <stdatomic.h>
#include <string.h>

#include "tarn.h"
#include "tarn/conformance.h"

enum {
    TARN_KIT_SLOTS = 16,
    TARN_KIT_SLOT_BYTES = 40000,
    TARN_KIT_VALUES = 64,
    TARN_KIT_EXPECTATIONS = 4096,
    TARN_KIT_QUEUES = 300
};

struct tarn_kit_watch;

enum tarn_kit_means { TARN_KIT_BY_CLOSURES, TARN_KIT_BY_PATTERNS, TARN_KIT_MEANS };

/* What is open while a test runs; what is left is taken down with it. */
struct tarn_kit {
    struct tarn_conformance suite;
    struct tarn_kit_watch *watch; /* over the test's thread */
    uint64_t patience_ns;         /* for what the device is to do by itself */
    struct tarn_device device;
    const struct tarn_device_table *table; /* of the device */
    void *self;
    uint64_t alive_before;
    enum tarn_kit_means means;
    void *queues[TARN_KIT_QUEUES];
    uint32_t queues_count;
    void *events[TARN_KIT_QUEUES];
    uint32_t events_count;
    void *slots, *seeds, *wrongs;   /* of patterns */
    void *slot[TARN_KIT_SLOTS];     /* addresses */
    uint64_t words[TARN_KIT_SLOTS]; /* of closures */
    struct tarn_kit_closure *closures;
    uint32_t closures_count;
    uint32_t expectations;
    bool is_warm;                  /* each of the device's kernels has run */
    struct tarn_session *session;  /* NULL: none */
    struct tarn_session *turns[2]; /* on the arena */
    struct tarn_arena *arena;
    int result;       /* of the test: 1 failed, 2 skipped */
    const char *file; /* where it failed; NULL: nowhere in particular */
    int line;
    const char *lost; /* NULL, or why no further test can be run; what is open stays open */
    jmp_buf end;
    char text[2000];
};

struct tarn_kit_test {
    const char *name;
    void (*run)(struct tarn_kit *kit);
    const char *rule; /* what the device breaks if the test fails, and where that is written */
};
/* The tests of a file; a NULL name ends the list. */
extern const struct tarn_kit_test tarn_kit_memory[], tarn_kit_order[], tarn_kit_programs[],
    tarn_kit_refusals[], tarn_kit_capture[], tarn_kit_stamps[], tarn_kit_patterns[],
    tarn_kit_sessions[], tarn_kit_turns[], tarn_kit_endings[], tarn_kit_failures[];

/* ---- What must be so: each ends the test otherwise ---- */

_Noreturn void tarn_kit_fail(struct tarn_kit *kit, const char *file, int line, const char *format,
                             ...) __attribute__((format(printf, 4, 5)));
_Noreturn void tarn_kit_skip(struct tarn_kit *kit, const char *why);

#define FAIL(...) tarn_kit_fail(kit, __FILE__, __LINE__, __VA_ARGS__)
/* What follows the condition says what the device did instead. */
#define REQUIRE(condition, ...)              \
    do {                                     \
        if (!(condition)) FAIL(__VA_ARGS__); \
    } while (0)
/* Of what is no property of the device alone: a session's answers, the suite's own memory. */
#define HOLDS(condition) REQUIRE(condition, "not: %s", #condition)
#define EQUAL(a, b)                                                                          \
    do {                                                                                     \
        unsigned long long kit_a = (unsigned long long)(a), kit_b = (unsigned long long)(b); \
        REQUIRE(kit_a == kit_b, "%s is %llu, and %s is %llu", #a, kit_a, #b, kit_b);         \
    } while (0)
/* A call of the table that must succeed. */
#define OK(call)                                                                                  \
    do {                                                                                          \
        tarn_kit_step(kit, #call);                                                                \
        int kit_code = (call);                                                                    \
        if (kit_code) FAIL("%s returned %d (%s)", #call, kit_code, tarn_kit_text(kit, kit_code)); \
    } while (0)
/* A call of Tarn that fills `error`. */
#define MUST(call)                                                               \
    do {                                                                         \
        tarn_kit_step(kit, #call);                                               \
        enum tarn_status must = (call);                                          \
        if (must) FAIL("%s: %s: %s", #call, tarn_status_text(must), error.text); \
    } while (0)
#define NEEDS(condition, what)                                           \
    do {                                                                 \
        if (!(condition)) tarn_kit_skip(kit, "the device has no " what); \
    } while (0)

/* Tells the watch what the test's thread is about to do. */
void tarn_kit_step(const struct tarn_kit *kit, const char *call);
/* The device's text of a code, or words that say that there is none. */
const char *tarn_kit_text(const struct tarn_kit *kit, int code);

/* ---- The open device ---- */

bool tarn_kit_open(struct tarn_kit *kit);
/* How many objects of the device are left. */
uint64_t tarn_kit_close(struct tarn_kit *kit);

/* Has it functions for memory spaces, and would a space of that kind be given memory? */
bool tarn_kit_has_spaces(struct tarn_kit *kit);
bool tarn_kit_gives(struct tarn_kit *kit, enum tarn_space_kind kind);

/* ---- Queues ---- */

/* Kernels that a queue takes; 0: no limit. */
uint32_t tarn_kit_depth(const struct tarn_kit *kit);
/* Creates so many; skips the test where the device has none. */
void tarn_kit_create_queues(struct tarn_kit *kit, uint32_t queues);
void *tarn_kit_event(struct tarn_kit *kit);
void tarn_kit_record(struct tarn_kit *kit, void *event, uint32_t queue);
void tarn_kit_wait(struct tarn_kit *kit, void *event, uint32_t queue);
void tarn_kit_until_done(struct tarn_kit *kit, void *event);
/* Until all queues have done everything. */
void tarn_kit_finish(struct tarn_kit *kit);

/* ---- What is not over ----
 * A closure that lasts until the test opens the gate. If the device does the work in the call that
 * enqueues it, or in another call of the test's, the closure does not wait. One at a time. pre: the
 * device has `launch`. */

void tarn_kit_close_gate(struct tarn_kit *kit, uint32_t queue);
void tarn_kit_open_gate(void);
/* Does the gate still hold its queue? If not, the device works inside its calls. */
bool tarn_kit_is_closed(void);
bool tarn_kit_has_passed(void);
/* A call of the device's waited for the gate, so long that the gate gave up. */
bool tarn_kit_gave_up(void);
/* The gate had to let the queue go on inside a call. */
bool tarn_kit_runs_in_calls(void);

/* ---- Calls that fail ---- */

/* Makes the next call of the table that can fail do so; false: the device cannot be made to. */
bool tarn_kit_make_fail(struct tarn_kit *kit);
/* The call after it was to fail and returned that code: looks at what the device says of it. False:
 * no call failed, and `code` is that of a call that succeeded. */
bool tarn_kit_failed(struct tarn_kit *kit, const char *call, int code);

/* ---- Notes and expectations ---- */

/* False when the device lacks these means. */
bool tarn_kit_choose(struct tarn_kit *kit, enum tarn_kit_means means);
void tarn_kit_note(struct tarn_kit *kit, uint32_t queue, uint32_t slot, uint32_t value);
void tarn_kit_expect(struct tarn_kit *kit, uint32_t queue, uint32_t slot, uint32_t value);
/* One of the two from a session's kernel, on the queue of its call; returns what the kernel does.
 * Where kernels do the work themselves they note and look at once. */
int tarn_kit_in_kernel(struct tarn_kit *kit, void *queue, uint32_t slot, uint32_t value,
                       bool expects);
bool tarn_kit_kernels_work(const struct tarn_kit *kit);
/* Finishes, and looks at all expectations; closures were called so many times. */
void tarn_kit_held(struct tarn_kit *kit, uint32_t times);
uint32_t tarn_kit_calls(const struct tarn_kit *kit, uint32_t closure);
/* Two ways to use queues, for tests of whether queues work. */
void tarn_kit_count_in_one_queue(struct tarn_kit *kit);
void tarn_kit_pass_round(struct tarn_kit *kit);
/* Runs `act` by every means that the device has; the queues stay. */
void tarn_kit_by_all_means(struct tarn_kit *kit, void (*act)(struct tarn_kit *kit));

/* ---- Patterns and random numbers ---- */

uint64_t tarn_kit_seed(uint32_t value); /* of the pattern that stands for a value */
unsigned char tarn_kit_pattern_byte(uint64_t seed, uint64_t i);
void tarn_kit_pattern_fill(unsigned char *bytes, uint64_t size, uint64_t seed);
/* Index of the first byte that is not the pattern's, or `size`. */
uint64_t tarn_kit_pattern_compare(const unsigned char *bytes, uint64_t size, uint64_t seed);

struct tarn_kit_random {
    uint64_t state; /* the seed */
};
uint64_t tarn_kit_next(struct tarn_kit_random *random);
/* Below `limit`, which is above 0. */
uint32_t tarn_kit_below(struct tarn_kit_random *random, uint32_t limit);

uint64_t tarn_kit_now_ns(void);

/* ---- Graphs with plans ---- */

enum { TARN_KIT_ITERATIONS = 5, TARN_KIT_PERSISTENT_MAX = 6 };

struct tarn_kit_subject {
    struct tarn_graph *graph;
    struct tarn_plan *plan;
    struct tarn_check_report expected; /* of the host, of TARN_KIT_ITERATIONS */
    uint32_t persistent_count;         /* of the first tensors: each is a storage of its own */
};

/* A random graph of several streams with at most so many ops; the same for the same seed. */
struct tarn_kit_subject tarn_kit_subject(struct tarn_kit *kit, uint64_t seed, uint32_t ops_max);
void tarn_kit_subject_destroy(struct tarn_kit_subject *subject);
bool tarn_kit_is_view(const struct tarn_kit_subject *subject, tarn_op op);
uint64_t tarn_kit_tensor_size(const struct tarn_kit_subject *subject, tarn_tensor tensor);

/* Checked execution on a device, in a session of its own. */
void tarn_kit_check(struct tarn_kit *kit, struct tarn_plan *plan, struct tarn_device device,
                    const struct tarn_session_options *options, struct tarn_check_options *check,
                    struct tarn_check_report *report);
/* Skips the test where checked execution has no way. */
void tarn_kit_needs_checks(struct tarn_kit *kit);

/* A session on the device. One at a time, and two in `turns` on an arena: a test that fails ends
 * them, too. */
struct tarn_session *tarn_kit_session(struct tarn_kit *kit, struct tarn_plan *plan,
                                      const struct tarn_session_options *options);
void tarn_kit_end(struct tarn_kit *kit);

#endif
