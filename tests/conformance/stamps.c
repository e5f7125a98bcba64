/* Time stamps, held against the clock of the host. A stamp lies between what the host sees before
 * and after it, so no bound depends on how busy the machine is. Cost: some pauses. */
#include <time.h>

#include "kit.h"

enum { PAUSE_NS = 17000000 }; /* no round number of any unit above it */
/* What clocks of two machines may differ by, and what the device's may be coarse by. */
#define SLACK_NS 1e6
#define DRIFT 0.02

static void pause_a_while(void) { nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL); }

static void *stamp(struct tarn_kit *kit)
{
    void *stamp = NULL;
    OK(kit->table->stamp_create(kit->self, &stamp));
    return stamp;
}

static void record_stamp(struct tarn_kit *kit, void *stamp)
{
    OK(kit->table->stamp_record(kit->self, stamp, kit->queues[0]));
}

static double elapsed(struct tarn_kit *kit, void *from, void *to)
{
    double ns = 0;
    OK(kit->table->stamp_elapsed(kit->self, from, to, &ns));
    return ns;
}

/* Each stamp is reached before the host goes on:
 *
 *     host     t0 ── stamp a ── t1 ── pause ── t2 ── stamp b ── t3
 *     elapsed           └───────────────────────────────┘        between t2 - t1 and t3 - t0 */
static void compare_with_host(struct tarn_kit *kit, uint32_t pauses)
{
    void *a = stamp(kit), *b = stamp(kit);
    uint64_t t[4];
    t[0] = tarn_kit_now_ns();
    record_stamp(kit, a);
    tarn_kit_finish(kit);
    t[1] = tarn_kit_now_ns();
    for (uint32_t i = 0; i < pauses; i++) pause_a_while();
    t[2] = tarn_kit_now_ns();
    record_stamp(kit, b);
    tarn_kit_finish(kit);
    t[3] = tarn_kit_now_ns();
    double ns = elapsed(kit, a, b), least = (double)(t[2] - t[1]), most = (double)(t[3] - t[0]);
    REQUIRE(ns >= least * (1 - DRIFT) - SLACK_NS && ns <= most * (1 + DRIFT) + SLACK_NS,
            "stamp_elapsed says %.0f ns; by the clock of the host it is between %.0f and %.0f ns",
            ns, least, most);
    kit->table->stamp_destroy(kit->self, a);
    kit->table->stamp_destroy(kit->self, b);
}

static void stamps_tell_real_time(struct tarn_kit *kit)
{
    tarn_kit_create_queues(kit, 1);
    NEEDS(kit->table->stamp_create, "time stamps");
    for (uint32_t pauses = 1; pauses < 4; pauses++) compare_with_host(kit, pauses);
}

/* Enqueued while a launch before it still runs, a stamp has the time at which the launch is over.
 */
static void a_stamp_takes_its_time_in_its_queue(struct tarn_kit *kit)
{
    tarn_kit_create_queues(kit, 1);
    NEEDS(kit->table->stamp_create, "time stamps");
    NEEDS(kit->table->launch, "launch");
    void *before = stamp(kit), *behind = stamp(kit);
    record_stamp(kit, before);
    tarn_kit_finish(kit);
    uint64_t from = tarn_kit_now_ns();
    tarn_kit_close_gate(kit, 0);
    record_stamp(kit, behind);
    pause_a_while();
    bool lasted = tarn_kit_is_closed();
    double least = (double)(tarn_kit_now_ns() - from);
    tarn_kit_open_gate();
    tarn_kit_finish(kit);
    double ns = elapsed(kit, before, behind);
    REQUIRE(!lasted || ns >= least * (1 - DRIFT) - SLACK_NS,
            "stamp_elapsed says %.0f ns from a stamp before a launch to one behind it, and the "
            "launch alone lasted %.0f ns",
            ns, least);
    kit->table->stamp_destroy(kit->self, before);
    kit->table->stamp_destroy(kit->self, behind);
}

static void stamps_tell_times_that_grow(struct tarn_kit *kit)
{
    tarn_kit_create_queues(kit, 1);
    const struct tarn_device_table *table = kit->table;
    void *stamps[3];
    NEEDS(table->stamp_create, "time stamps");
    tarn_kit_choose(kit, kit->table->launch ? TARN_KIT_BY_CLOSURES : TARN_KIT_BY_PATTERNS);
    for (uint32_t i = 0; i < 3; i++) {
        stamps[i] = stamp(kit);
        record_stamp(kit, stamps[i]);
        tarn_kit_note(kit, 0, 0, i);
    }
    tarn_kit_finish(kit);
    double first = elapsed(kit, stamps[0], stamps[1]), second = elapsed(kit, stamps[1], stamps[2]);
    double both = elapsed(kit, stamps[0], stamps[2]), back = elapsed(kit, stamps[2], stamps[0]);
    REQUIRE(first >= 0 && second >= 0,
            "stamp_elapsed says %.0f and %.0f ns between stamps that follow each other", first,
            second);
    REQUIRE(both >= 0.9 * first && both >= 0.9 * second && back <= 0,
            "stamp_elapsed says %.0f and %.0f ns for two parts, %.0f ns for both together, and "
            "%.0f ns backwards",
            first, second, both, back);
    for (uint32_t i = 0; i < 3; i++) table->stamp_destroy(kit->self, stamps[i]);
}

#define STAMPS                                                                                    \
    "device.h, \"Time stamps\": a stamp is a record that keeps the time at which it is reached; " \
    "elapsed are the nanoseconds of real time from one to the other"

const struct tarn_kit_test tarn_kit_stamps[] = {
    {"stamps_tell_times_that_grow", stamps_tell_times_that_grow, STAMPS},
    {"stamps_tell_real_time", stamps_tell_real_time, STAMPS},
    {"a_stamp_takes_its_time_in_its_queue", a_stamp_takes_its_time_in_its_queue, STAMPS},
    {0},
};
