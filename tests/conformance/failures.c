/* Two sessions at once, and every call of the device failing once in a whole session. Cost: as many
 * sessions as a session makes calls. */
#include <pthread.h>

#include "kit.h"

/* ---- Two sessions at once ---- */

struct half {
    const struct tarn_kit_subject *subject;
    struct tarn_device device;
    struct tarn_check_report report;
    struct tarn_error error;
    enum tarn_status status;
};

static void *check_half(void *argument)
{
    struct half *half = argument;
    for (uint32_t i = 0; i < 5 && !half->status; i++) {
        struct tarn_session *session = NULL;
        half->status =
            tarn_session_create(half->subject->plan, half->device, NULL, &session, &half->error);
        if (!half->status)
            half->status =
                tarn_session_check(session, TARN_CHECK_OPTIONS(.iterations = TARN_KIT_ITERATIONS),
                                   &half->report, &half->error);
        tarn_session_destroy(session);
    }
    return NULL;
}

static void two_sessions_run_at_once(struct tarn_kit *kit)
{
    tarn_kit_needs_checks(kit);
    struct tarn_device device = kit->device;
    struct tarn_kit_subject subjects[2] = {tarn_kit_subject(kit, 8, 60),
                                           tarn_kit_subject(kit, 9, 60)};
    struct half halves[2] = {{.subject = &subjects[0], .device = device},
                             {.subject = &subjects[1], .device = device}};
    pthread_t threads[2];
    for (uint32_t i = 0; i < 2; i++)
        EQUAL(pthread_create(&threads[i], NULL, check_half, &halves[i]), 0);
    for (uint32_t i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    for (uint32_t i = 0; i < 2; i++) {
        if (halves[i].status) FAIL("%s", halves[i].error.text);
        EQUAL(halves[i].report.digest, subjects[i].expected.digest);
        tarn_kit_subject_destroy(&subjects[i]);
    }
}

/* ---- Errors at every call ---- */

/* There and back, the first persistent tensor; then checked, and a picture of it. */
static enum tarn_status copy_check_and_trace(const struct tarn_kit_subject *subject,
                                             struct tarn_session *session, bool has_trace,
                                             void *memory, struct tarn_check_report *report,
                                             struct tarn_error *error)
{
    uint64_t size = tarn_kit_tensor_size(subject, 0);
    memset(memory, 0, size);
    enum tarn_status status = tarn_session_write(session, 0, memory, size, error);
    if (!status) status = tarn_session_read(session, 0, memory, size, error);
    if (!status)
        status = tarn_session_check(session, TARN_CHECK_OPTIONS(.iterations = TARN_KIT_ITERATIONS),
                                    report, error);
    if (!status && has_trace) status = tarn_session_save_trace(session, "/dev/null", error);
    return status;
}

static enum tarn_status whole_life(struct tarn_kit *kit, const struct tarn_kit_subject *subject,
                                   const struct tarn_session_options *options,
                                   struct tarn_error *error)
{
    struct tarn_session *session = NULL;
    struct tarn_check_report report = {0};
    void *memory = NULL;
    uint64_t size = tarn_kit_tensor_size(subject, 0);
    enum tarn_status status =
        tarn_session_create(subject->plan, kit->device, options, &session, error);
    if (!status) status = tarn_session_host_memory_create(session, size, &memory, error);
    if (!status)
        status = copy_check_and_trace(subject, session, options && options->flight > 0, memory,
                                      &report, error);
    tarn_session_host_memory_destroy(session, memory, size);
    tarn_session_destroy(session);
    if (!status) EQUAL(report.digest, subject->expected.digest);
    return status;
}

/* The n-th call fails once, for every n that the stride leads to. Only a failure while destroying
 * may go unnoticed. */
static void fail_each_call(struct tarn_kit *kit, const struct tarn_kit_subject *subject,
                           const struct tarn_session_options *options, uint32_t stride)
{
    const struct tarn_conformance *suite = &kit->suite;
    if (suite->effort == TARN_CONFORMANCE_THOROUGH) stride = 1;
    if (suite->effort == TARN_CONFORMANCE_QUICK && stride < 7) stride = 7;
    uint64_t before = suite->alive ? suite->alive(suite->user) : 0;
    uint32_t unnoticed = 0, runs = 0;
    for (bool failed = true; failed; runs++) {
        struct tarn_error error = {0};
        suite->fail_after(suite->user, runs * stride);
        enum tarn_status status = whole_life(kit, subject, options, &error);
        failed = suite->fail_after(suite->user, UINT64_MAX);
        if (!failed) MUST(status);
        if (failed && status == TARN_OK) unnoticed++;
        if (status && status != TARN_DEVICE && status != TARN_SYSTEM) MUST(status);
        if (status) HOLDS(error.text[0]);
        if (suite->alive) EQUAL(suite->alive(suite->user), before);
    }
    HOLDS(runs > 2 && runs * stride > 20);
    HOLDS(unnoticed < runs / 2);
}

static void every_call_may_fail_once(struct tarn_kit *kit)
{
    tarn_kit_needs_checks(kit);
    NEEDS(kit->suite.fail_after, "fail_after");
    struct tarn_kit_subject subject = tarn_kit_subject(kit, 17, 20);
    fail_each_call(kit, &subject, NULL, 1);
    fail_each_call(kit, &subject, TARN_SESSION_OPTIONS(.flight = 8, .stamps = true), 16);
    if (kit->table->capture_begin)
        fail_each_call(kit, &subject, TARN_SESSION_OPTIONS(.capture = true, .unroll = 2), 1);
    tarn_kit_subject_destroy(&subject);
}

#define RULE                                                                             \
    "two sessions may use one device at the same time; what failed has no effect; what " \
    "was created is destroyed once (device.h, \"Contract\", \"Threads\")"

const struct tarn_kit_test tarn_kit_failures[] = {
    {"two_sessions_run_at_once", two_sessions_run_at_once, RULE},
    {"every_call_may_fail_once", every_call_may_fail_once, RULE},
    {0},
};
