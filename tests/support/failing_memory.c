/* The act is done once to count its allocations, then once for each that is to fail. */
#include "failing_memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "failing_calls.h"
#include "random_graph.h"

enum { TRIES_MAX = SANITIZED ? 80 : 300 };

/* ---- The long campaign ---- */

static struct {
    long long runs, found;
    struct timespec begin;
} campaign;

static void report_campaign(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    printf("# campaign | %s: failing allocations | %lld | %lld | %lld\n",
           program_invocation_short_name, campaign.runs,
           (long long)(now.tv_sec - campaign.begin.tv_sec), campaign.found);
}

static bool is_campaign(void)
{
    if (!getenv("TARN_CAMPAIGN")) return false;
    if (campaign.begin.tv_sec == 0 && clock_gettime(CLOCK_MONOTONIC, &campaign.begin) == 0)
        atexit(report_campaign);
    return true;
}

/* ---- The rules ---- */

/* Runs the act without trouble, counts its allocations, and tells how far apart to try. */
static uint64_t measure(act_in_memory act, uint64_t least)
{
    struct tarn_error error = {0};
    allow_calls(FAILING_MEMORY);
    if (act(&error)) fail_msg("%s", error.text);
    uint64_t made = calls_made(FAILING_MEMORY);
    assert_true(made >= least); /* else these allocations are not the ones that are made */
    return is_campaign() ? 1 : made / TRIES_MAX + 1;
}

/* With `count` allocations failing from number `first` on; true when one failed. */
static bool run(act_in_memory act, uint64_t first, uint64_t count, enum tarn_status *status,
                struct tarn_error *error)
{
    *error = (struct tarn_error){0};
    fail_calls(FAILING_MEMORY, first, count);
    *status = act(error);
    bool failed = has_call_failed(FAILING_MEMORY);
    allow_calls(FAILING_MEMORY);
    campaign.runs++;
    return failed;
}

static void complain(uint64_t number, enum tarn_status status, const struct tarn_error *error)
{
    campaign.found++;
    fail_msg("allocation %llu: %s: '%s'", (unsigned long long)number, tarn_status_text(status),
             error->text);
}

void fail_single_allocations(act_in_memory act, uint64_t least)
{
    struct tarn_error error;
    enum tarn_status status;
    uint64_t step = measure(act, least), n = 0;
    for (; run(act, n, 1, &status, &error); n += step)
        if (status && (status != TARN_SYSTEM || error.text[0] == '\0')) complain(n, status, &error);
    if (status) complain(n, status, &error);
}

void fail_each_allocation(act_in_memory act, uint64_t least)
{
    struct tarn_error error;
    enum tarn_status status;
    uint64_t step = measure(act, least), n = 0;
    for (; run(act, n, UINT64_MAX, &status, &error); n += step)
        if (status != TARN_SYSTEM || strcmp(error.text, "out of memory") != 0)
            complain(n, status, &error);
    if (status) complain(n, status, &error);
    fail_single_allocations(act, least);
}
