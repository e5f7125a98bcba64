/* A loop over draws: a fixed number by default; in a long campaign (TARN_CAMPAIGN: minutes, for the
 * whole program) as many as its share of the time lasts, from draw TARN_CAMPAIGN_FROM (0) on, and
 * TARN_CAMPAIGN_TO, if given, is the last; and a line for docs/trust.md at its end. */
#ifndef TARN_TESTS_SUPPORT_CAMPAIGN_H
#define TARN_TESTS_SUPPORT_CAMPAIGN_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

struct campaign {
    const char *what;
    uint64_t next; /* draw; the caller's loop counts it up */
    uint64_t draws;
    uint64_t last;           /* draw of a long campaign */
    uint64_t runs;           /* what the line reports, counted by the caller */
    double begin_s, seconds; /* seconds: 0, no campaign */
};

static inline double campaign_now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static inline bool campaign_is_long(void) { return getenv("TARN_CAMPAIGN") != NULL; }

/* share: of the program's time. */
static inline struct campaign campaign_begin(const char *what, uint64_t draws, double share)
{
    const char *minutes = getenv("TARN_CAMPAIGN"), *from = getenv("TARN_CAMPAIGN_FROM");
    const char *to = getenv("TARN_CAMPAIGN_TO");
    return (struct campaign){.what = what,
                             .next = minutes && from ? strtoull(from, NULL, 10) : 0,
                             .draws = draws,
                             .last = minutes && to ? strtoull(to, NULL, 10) : UINT64_MAX,
                             .begin_s = campaign_now_s(),
                             .seconds = minutes ? strtod(minutes, NULL) * 60 * share : 0};
}

/* For loops that end by themselves. */
static inline bool campaign_has_time(const struct campaign *campaign)
{
    return campaign_now_s() - campaign->begin_s < campaign->seconds;
}

/* Whatever was found has ended the program. */
static inline void campaign_report(const struct campaign *campaign)
{
    if (campaign->seconds > 0)
        printf("# campaign | %s | %llu | %.0f | 0\n", campaign->what,
               (unsigned long long)campaign->runs, campaign_now_s() - campaign->begin_s);
}

/* Is there another draw? */
static inline bool campaign_goes_on(struct campaign *campaign)
{
    if (campaign->next <= campaign->last &&
        (campaign->next < campaign->draws || campaign_has_time(campaign)))
        return true;
    campaign_report(campaign);
    return false;
}

#endif
