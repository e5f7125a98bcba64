/* Raising limits and selecting, for a few places or a million. Places come in runs of 64, runs in
 * spans of 64. A placed storage's conflicts are, in every stream, a prefix of places, of which
 * those count whose row is beyond its position; so with the extremes of a row known
 *
 *     highest <= position   nobody in the run (span) is in conflict: passed over
 *     lowest  >  position   everybody is: one number, pending for the whole run (span)
 *     else                  a loop over the run's places
 *
 * Lifetimes that enclose each other, as in training, mostly meet the first two.
 *
 *   - raise, for a lone storage: what is not placed yet never ends below the current offset, so
 *     every limit in conflict simply becomes at least the end of what was placed.
 *   - raise_or_cap, for a member of a placed group, which may lie above the current offset: what
 *     ends below it stays there and notes a ceiling; who is about to be placed through its ceiling
 *     is looked at exactly (decode.c).
 *
 * A group has the limits that its first member has (heads), which rise with everybody's; what its
 * other members allow is put together when it comes up.
 * Selection is a tournament whose winners stand until somebody of their run or span changes.
 * Source: DESIGN.md, section 3 (Placement). Cost: for each placed storage T/4096 tests for each
 * stream, plus the runs and places that are only partly in conflict. */
#include "limits.h"

#include <string.h>

enum { RUN = TARN_LANE_RUN, SPAN_RUNS = TARN_SPAN_RUNS, PLACED = INT32_MAX, UNKNOWN = -1 };

/* ---- Runs and spans ---- */

static uint32_t run_size(const struct tarn_lowest *lowest, uint32_t run)
{
    uint32_t left = lowest->count - run * RUN;
    return left < RUN ? left : RUN;
}

static uint32_t span_size(const struct tarn_decoder *decoder, uint32_t span)
{
    uint32_t left = decoder->runs_count - span * SPAN_RUNS;
    return left < SPAN_RUNS ? left : SPAN_RUNS;
}

/* Limits only rise: while the least one stays, nobody joins those that have it. */
static void note_least(struct tarn_decoder *decoder, uint32_t run, int32_t least)
{
    if (least != decoder->run_limit[run]) decoder->run_first[run] = UNKNOWN;
    decoder->run_limit[run] = least;
}

static void note_span(struct tarn_decoder *decoder, uint32_t span)
{
    decoder->span_limit[span] = decoder->kernels->least(
        decoder->run_limit + (size_t)span * SPAN_RUNS, span_size(decoder, span));
    decoder->span_winner[span] = UNKNOWN;
}

static void raise_whole_run(struct tarn_decoder *decoder, uint32_t run, int32_t end)
{
    if (decoder->run_limit[run] == PLACED) return;
    if (end > decoder->run_pending[run]) decoder->run_pending[run] = end;
    if (end > decoder->run_limit[run]) note_least(decoder, run, end);
}

static void raise_whole_span(struct tarn_decoder *decoder, uint32_t span, int32_t end)
{
    if (end > decoder->span_pending[span]) decoder->span_pending[span] = end;
    if (end <= decoder->span_limit[span]) return;
    decoder->span_limit[span] = end;
    decoder->span_winner[span] = UNKNOWN;
}

static void flush_span(struct tarn_decoder *decoder, uint32_t span)
{
    int32_t pending = decoder->span_pending[span];
    if (pending == 0) return;
    decoder->span_pending[span] = 0;
    for (uint32_t i = 0; i < span_size(decoder, span); i++)
        raise_whole_run(decoder, span * SPAN_RUNS + i, pending);
}

static void flush_run(struct tarn_decoder *decoder, uint32_t run)
{
    int32_t pending = decoder->run_pending[run], *limit = decoder->limit + (size_t)run * RUN;
    if (pending == 0) return;
    decoder->run_pending[run] = 0;
    for (uint32_t i = 0; i < RUN; i++) limit[i] = limit[i] > pending ? limit[i] : pending;
}

void tarn_limits_flush(struct tarn_decoder *decoder)
{
    for (uint32_t span = 0; span < decoder->spans_count; span++) flush_span(decoder, span);
    for (uint32_t run = 0; run < decoder->runs_count; run++) flush_run(decoder, run);
}

void tarn_limits_measure(struct tarn_decoder *decoder, uint32_t place)
{
    uint32_t run = place / RUN;
    note_least(decoder, run,
               decoder->kernels->least(decoder->limit + (size_t)run * RUN,
                                       run_size(decoder->lowest, run)));
    note_span(decoder, run / SPAN_RUNS);
}

void tarn_limits_forget(struct tarn_decoder *decoder)
{
    for (uint32_t run = 0; run < decoder->runs_count; run++) decoder->run_first[run] = UNKNOWN;
    for (uint32_t span = 0; span < decoder->spans_count; span++)
        decoder->span_winner[span] = UNKNOWN;
}

void tarn_limits_start(struct tarn_decoder *decoder)
{
    const struct tarn_lowest *lowest = decoder->lowest;
    memset(decoder->limit, 0, lowest->count * sizeof *decoder->limit);
    memset(decoder->member_limit, 0, lowest->members.count * sizeof *decoder->member_limit);
    memset(decoder->run_pending, 0, decoder->runs_count * sizeof *decoder->run_pending);
    memset(decoder->span_pending, 0, decoder->spans_count * sizeof *decoder->span_pending);
    memset(decoder->run_limit, 0, decoder->runs_count * sizeof *decoder->run_limit);
    memset(decoder->span_limit, 0, decoder->spans_count * sizeof *decoder->span_limit);
    tarn_limits_forget(decoder);
    if (decoder->narrows)
        tarn_extremes_copy(&decoder->narrowed, &lowest->extremes,
                           lowest->problem->conflicts->reuse->streams_count);
}

/* ---- Raising ---- */

/* One storage that was just placed, as the others see it. */
struct obstacle {
    uint32_t stream;
    int32_t position;
    struct tarn_span span;
    bool floats;
};

/* Is everybody in conflict who has these extremes and at least this limit, and must he rise? */
static bool raises_all(const struct obstacle *obstacle, struct tarn_extreme extreme, int32_t limit)
{
    return extreme.lowest > obstacle->position &&
           (!obstacle->floats || limit >= obstacle->span.begin);
}

/* Raises the limits of places begin..end of a run. */
static void raise_places(struct tarn_decoder *decoder, const struct obstacle *obstacle,
                         uint32_t begin, uint32_t end)
{
    const struct tarn_kernels *kernels = decoder->kernels;
    const struct tarn_lanes *lone = &decoder->lowest->lone;
    const int32_t *row = lone->row + (size_t)obstacle->stream * lone->count + begin;
    uint32_t count = end - begin, run = begin / RUN;
    int32_t *limit = decoder->limit + begin, least = 0;
    if (obstacle->floats)
        kernels->raise_or_cap(limit, decoder->ceiling + begin, row, decoder->lowest->size + begin,
                              count, obstacle->position, obstacle->span);
    else
        least = kernels->raise(limit, row, count, obstacle->position, obstacle->span.end);
    if (obstacle->floats || count != RUN)
        least = kernels->least(decoder->limit + (size_t)run * RUN, run_size(decoder->lowest, run));
    note_least(decoder, run, least);
    if (decoder->narrows)
        tarn_extremes_narrow(&decoder->narrowed, lone, obstacle->stream, run, decoder->limit);
}

static void raise_run(struct tarn_decoder *decoder, const struct obstacle *obstacle, uint32_t begin,
                      uint32_t end)
{
    const struct tarn_extremes *extremes = decoder->extremes;
    uint32_t run = begin / RUN;
    struct tarn_extreme extreme =
        extremes->runs[(size_t)obstacle->stream * extremes->runs_count + run];
    if (decoder->run_limit[run] == PLACED || extreme.highest <= obstacle->position) return;
    if (end - begin == RUN && raises_all(obstacle, extreme, decoder->run_limit[run])) {
        raise_whole_run(decoder, run, obstacle->span.end);
        return;
    }
    flush_run(decoder, run);
    raise_places(decoder, obstacle, begin, end);
}

static void raise_span(struct tarn_decoder *decoder, const struct obstacle *obstacle,
                       uint32_t begin, uint32_t end)
{
    const struct tarn_extremes *extremes = decoder->extremes;
    uint32_t span = begin / TARN_SPAN;
    struct tarn_extreme extreme =
        extremes->spans[(size_t)obstacle->stream * extremes->spans_count + span];
    if (decoder->span_limit[span] == PLACED || extreme.highest <= obstacle->position) return;
    if (end - begin == TARN_SPAN && raises_all(obstacle, extreme, decoder->span_limit[span])) {
        raise_whole_span(decoder, span, obstacle->span.end);
        return;
    }
    flush_span(decoder, span);
    for (uint32_t next; begin < end; begin = next) {
        next = (begin / RUN + 1) * RUN;
        raise_run(decoder, obstacle, begin, next < end ? next : end);
    }
    note_span(decoder, span);
    if (decoder->narrows) tarn_extremes_narrow_span(&decoder->narrowed, obstacle->stream, span);
}

static void raise_lone(struct tarn_decoder *decoder, const struct obstacle *obstacle,
                       uint32_t begin, uint32_t end)
{
    for (uint32_t next; begin < end; begin = next) {
        next = (begin / TARN_SPAN + 1) * TARN_SPAN;
        raise_span(decoder, obstacle, begin, next < end ? next : end);
    }
}

/* The next part of [begin, end) that lies in one run and may have conflicts with the obstacle;
 * false when there is none. Moves begin past it. */
static bool next_part(const struct tarn_lanes *lanes, const struct obstacle *obstacle,
                      uint32_t *begin, uint32_t end, uint32_t part[2])
{
    const int32_t *highest = lanes->highest + (size_t)obstacle->stream * lanes->runs_count;
    while (*begin < end) {
        uint32_t from = *begin, next = (from / RUN + 1) * RUN;
        *begin = next;
        if (highest[from / RUN] <= obstacle->position) continue;
        part[0] = from;
        part[1] = next < end ? next : end;
        return true;
    }
    return false;
}

static void raise_members(struct tarn_decoder *decoder, const struct obstacle *obstacle,
                          uint32_t begin, uint32_t end)
{
    const struct tarn_lanes *members = &decoder->lowest->members;
    const int32_t *row = members->row + (size_t)obstacle->stream * members->count;
    uint32_t part[2];
    while (next_part(members, obstacle, &begin, end, part))
        decoder->kernels->raise_members(decoder->member_limit + part[0], row + part[0],
                                        decoder->lowest->within + part[0], part[1] - part[0],
                                        obstacle->position, obstacle->span.end);
}

/* A group begins with its first member: where that is in conflict, the limit is known at once. */
static void raise_heads(struct tarn_decoder *decoder, const struct obstacle *obstacle,
                        uint32_t begin, uint32_t end)
{
    const struct tarn_lowest *lowest = decoder->lowest;
    const struct tarn_lanes *heads = &lowest->heads;
    const int32_t *row = heads->row + (size_t)obstacle->stream * heads->count;
    uint32_t part[2];
    while (next_part(heads, obstacle, &begin, end, part)) {
        uint32_t place = lowest->lone.count + part[0], count = part[1] - part[0];
        decoder->kernels->raise(decoder->limit + place, row + part[0], count, obstacle->position,
                                obstacle->span.end);
        tarn_limits_measure(decoder, place);
        if (place / RUN != (place + count - 1) / RUN)
            tarn_limits_measure(decoder, place + count - 1);
    }
}

void tarn_limits_raise(struct tarn_decoder *decoder, uint32_t storage, struct tarn_span span,
                       bool floats)
{
    const struct tarn_lowest *lowest = decoder->lowest;
    const struct tarn_reuse *reuse = lowest->problem->conflicts->reuse;
    const struct obstacle obstacle = {reuse->stream[storage], (int32_t)reuse->position[storage],
                                      span, floats};
    for (uint32_t s = 0; s < reuse->streams_count; s++) {
        uint32_t first = reuse->first[(size_t)s * reuse->count + storage];
        raise_lone(decoder, &obstacle, tarn_lanes_begin(&lowest->lone, s),
                   tarn_lanes_end(&lowest->lone, s, first));
        if (floats || lowest->groups_count == 0) continue;
        raise_members(decoder, &obstacle, tarn_lanes_begin(&lowest->members, s),
                      tarn_lanes_end(&lowest->members, s, first));
        raise_heads(decoder, &obstacle, tarn_lanes_begin(&lowest->heads, s),
                    tarn_lanes_end(&lowest->heads, s, first));
    }
}

/* ---- Selection ---- */

static uint32_t place_of(uint32_t run, int32_t first)
{
    return run * RUN + (RUN - 1 - (uint32_t)first % RUN);
}

/* Who of those with the least limit of the run comes first. */
static int32_t first_of(struct tarn_decoder *decoder, const int32_t *key, uint32_t run)
{
    int32_t limit = decoder->run_limit[run], first = decoder->run_first[run];
    flush_run(decoder, run);
    if (first == UNKNOWN || decoder->limit[place_of(run, first)] != limit)
        first =
            decoder->kernels->foremost(decoder->limit + (size_t)run * RUN, key + (size_t)run * RUN,
                                       run_size(decoder->lowest, run), limit);
    return decoder->run_first[run] = first;
}

/* The run of a span whose first comes first. */
static uint32_t winner_of(struct tarn_decoder *decoder, const int32_t *key, uint32_t span)
{
    int32_t foremost = -1;
    if (decoder->span_winner[span] != UNKNOWN) return (uint32_t)decoder->span_winner[span];
    flush_span(decoder, span);
    for (uint32_t i = 0; i < span_size(decoder, span); i++) {
        uint32_t run = span * SPAN_RUNS + i;
        if (decoder->run_limit[run] != decoder->span_limit[span]) continue;
        int32_t first = first_of(decoder, key, run);
        if (foremost >= 0 && first / RUN <= foremost / RUN) continue;
        foremost = first;
        decoder->span_winner[span] = (int32_t)run;
    }
    return (uint32_t)decoder->span_winner[span];
}

uint32_t tarn_limits_select(struct tarn_decoder *decoder, const int32_t *key)
{
    int32_t limit = decoder->kernels->least(decoder->span_limit, decoder->spans_count);
    int32_t foremost = -1;
    uint32_t chosen = 0;
    for (uint32_t span = 0; span < decoder->spans_count; span++) {
        if (decoder->span_limit[span] != limit) continue;
        uint32_t run = winner_of(decoder, key, span);
        if (foremost >= 0 && decoder->run_first[run] / RUN <= foremost / RUN) continue;
        foremost = decoder->run_first[run];
        chosen = run;
    }
    return place_of(chosen, foremost);
}
