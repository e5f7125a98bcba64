/* Sessions that end early, by a kernel, by anybody, or in the middle; and whether anything grows
 * while one runs on. Cost: some thousand short iterations. */
#include <pthread.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "kit.h"

/* The kernel that fails. */
struct failing {
    tarn_op op;
    uint64_t iteration;
};

/* Enqueues nothing, which any device allows. */
static int fail_if_told(void *user, const struct tarn_call *call)
{
    const struct failing *failing = user;
    return failing && call->op == failing->op && call->iteration == failing->iteration ? 33 : 0;
}

static struct tarn_session *open_idle(struct tarn_kit *kit, const struct tarn_kit_subject *subject,
                                      const struct tarn_session_options *options,
                                      struct failing *failing)
{
    struct tarn_session *session = tarn_kit_session(kit, subject->plan, options);
    EQUAL(tarn_session_bind_default(session, fail_if_told, failing), TARN_OK);
    return session;
}

static void run_iterations(struct tarn_kit *kit, struct tarn_session *session)
{
    struct tarn_error error;
    tarn_ticket ticket;
    MUST(tarn_session_submit(session, 100, &ticket, &error));
    MUST(tarn_session_wait(session, ticket, TARN_FOREVER, &error));
}

static void a_session_can_be_destroyed_in_every_state(struct tarn_kit *kit)
{
    struct tarn_kit_subject subject = tarn_kit_subject(kit, 3, 60);
    struct tarn_error error;
    tarn_ticket ticket;
    for (uint32_t steps = 0; steps < 8; steps++) {
        struct tarn_session *session = open_idle(kit, &subject, NULL, NULL);
        uint64_t finished;
        if (steps & 1) MUST(tarn_session_submit(session, 9, &ticket, &error));
        if (steps & 2) MUST(tarn_session_query(session, &finished, &error));
        if (steps == 7) MUST(tarn_session_wait(session, ticket, TARN_FOREVER, &error));
        if (steps & 4) tarn_session_cancel(session);
        if (steps == 5)
            EQUAL(tarn_session_wait(session, ticket, TARN_FOREVER, &error), TARN_INTERRUPTED);
        tarn_kit_end(kit);
    }
    tarn_kit_subject_destroy(&subject);
}

static void a_failing_kernel_ends_the_session(struct tarn_kit *kit)
{
    struct tarn_kit_subject subject = tarn_kit_subject(kit, 4, 60);
    struct tarn_error error;
    tarn_ticket ticket = 0;
    for (tarn_op op = 0; op < tarn_graph_ops_count(subject.graph); op += 7) {
        struct failing failing = {op, 2};
        if (tarn_kit_is_view(&subject, op)) continue;
        struct tarn_session *session = open_idle(kit, &subject, NULL, &failing);
        enum tarn_status status = tarn_session_submit(session, 20, &ticket, &error);
        if (!status) status = tarn_session_wait(session, ticket, TARN_FOREVER, &error);
        EQUAL(status, TARN_DEVICE);
        EQUAL(error.op, op);
        EQUAL(error.device_code, 33);
        EQUAL(tarn_session_submit(session, 1, &ticket, &error), TARN_USAGE);
        tarn_kit_end(kit);
    }
    tarn_kit_subject_destroy(&subject);
}

static void asking_ends_nothing(struct tarn_kit *kit)
{
    struct tarn_kit_subject subject = tarn_kit_subject(kit, 5, 60);
    struct tarn_session *session = open_idle(kit, &subject, TARN_SESSION_OPTIONS(.depth = 3), NULL);
    struct tarn_error error;
    tarn_ticket ticket;
    for (uint32_t round = 1; round < 30; round++) {
        uint64_t finished = 0;
        enum tarn_status status;
        MUST(tarn_session_submit(session, round % 5 + 1, &ticket, &error));
        MUST(tarn_session_query(session, &finished, &error));
        HOLDS(finished <= ticket && finished + 3 >= ticket);
        while ((status = tarn_session_wait(session, ticket, 0, &error)) == TARN_DEADLINE) continue;
        MUST(status);
    }
    tarn_kit_end(kit);
    tarn_kit_subject_destroy(&subject);
}

static void *cancel_soon(void *session)
{
    nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    tarn_session_cancel(session);
    return NULL;
}

static void anybody_can_cancel(struct tarn_kit *kit)
{
    struct tarn_kit_subject subject = tarn_kit_subject(kit, 6, 60);
    struct tarn_session *session = open_idle(kit, &subject, NULL, NULL);
    struct tarn_error error;
    tarn_ticket ticket = 0;
    pthread_t thread;
    EQUAL(pthread_create(&thread, NULL, cancel_soon, session), 0);
    enum tarn_status status = tarn_session_submit(session, 1000000000, &ticket, &error);
    if (!status) status = tarn_session_wait(session, ticket, TARN_FOREVER, &error);
    pthread_join(thread, NULL);
    EQUAL(status, TARN_INTERRUPTED);
    EQUAL(tarn_session_submit(session, 1, &ticket, &error), TARN_USAGE);
    tarn_kit_end(kit);
    tarn_kit_subject_destroy(&subject);
}

static uint64_t resident_bytes(void)
{
    unsigned long whole, resident;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file || fscanf(file, "%lu %lu", &whole, &resident) != 2) resident = 0;
    if (file) fclose(file);
    return (uint64_t)resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void nothing_grows(struct tarn_kit *kit, const struct tarn_kit_subject *subject,
                          const struct tarn_session_options *options)
{
    const struct tarn_conformance *suite = &kit->suite;
    struct tarn_session *session = open_idle(kit, subject, options, NULL);
    run_iterations(kit, session);
    uint64_t alive = suite->alive ? suite->alive(suite->user) : 0, resident = resident_bytes();
    for (uint32_t i = 0; i < 10; i++) run_iterations(kit, session);
    if (suite->alive) EQUAL(suite->alive(suite->user), alive);
    uint64_t grown = resident_bytes() > resident ? resident_bytes() - resident : 0;
    if (suite->effort != TARN_CONFORMANCE_QUICK && grown > (1 << 20))
        FAIL("the process has %llu bytes more (sanitizers keep what is freed: with them the effort "
             "is TARN_CONFORMANCE_QUICK)",
             (unsigned long long)grown);
    tarn_kit_end(kit);
}

static void a_thousand_iterations_leave_nothing_behind(struct tarn_kit *kit)
{
    struct tarn_kit_subject subject = tarn_kit_subject(kit, 7, 60);
    nothing_grows(kit, &subject, NULL);
    if (kit->table->capture_begin)
        nothing_grows(kit, &subject, TARN_SESSION_OPTIONS(.capture = true, .unroll = 3));
    tarn_kit_subject_destroy(&subject);
}

#define RULE                                                                                \
    "a session ends whenever its caller, a kernel or the device wants it (session.h), and " \
    "leaves nothing behind"

const struct tarn_kit_test tarn_kit_endings[] = {
    {"a_session_can_be_destroyed_in_every_state", a_session_can_be_destroyed_in_every_state, RULE},
    {"a_failing_kernel_ends_the_session", a_failing_kernel_ends_the_session, RULE},
    {"asking_ends_nothing", asking_ends_nothing, RULE},
    {"anybody_can_cancel", anybody_can_cancel, RULE},
    {"a_thousand_iterations_leave_nothing_behind", a_thousand_iterations_leave_nothing_behind,
     RULE},
    {0},
};
