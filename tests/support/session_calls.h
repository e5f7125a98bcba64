/* What tests of sessions say again and again: a call that must succeed, words that an error must
 * have, iterations run to their end, a kernel without work. */
#ifndef TARN_TESTS_SUPPORT_SESSION_CALLS_H
#define TARN_TESTS_SUPPORT_SESSION_CALLS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "tarn/session.h"

static inline void require(enum tarn_status status, const struct tarn_error *error)
{
    if (status) fail_msg("%s: %s", tarn_status_text(status), error->text);
}

static inline void assert_says(const struct tarn_error *error, const char *words)
{
    if (!strstr(error->text, words)) fail_msg("\"%s\" is not in: %s", words, error->text);
}

static inline void run_iterations(struct tarn_session *session, uint64_t iterations)
{
    struct tarn_error error;
    tarn_ticket ticket;
    require(tarn_session_submit(session, iterations, &ticket, &error), &error);
    require(tarn_session_wait(session, ticket, TARN_FOREVER, &error), &error);
}

/* A kernel; on devices with queues it enqueues nothing. */
static inline int do_nothing(void *user, const struct tarn_call *call)
{
    (void)user, (void)call;
    return 0;
}

#endif
