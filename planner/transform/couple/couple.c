/* Memory-aware synchronisation: lowers the bound by extra event waits. Repeats until the bound is
 * low enough:
 *
 *     for the arcs that promise to break the heaviest antichain (see couple/candidates.h):
 *         find the bound of the graph with that arc
 *     keep the best arc: of those that cost no modelled time the one with the lowest bound, else
 *     the one that lowers it most for its time
 *
 * and then take away, oldest first, every arc that is not needed for the bound reached. Several
 * antichains are often equally heavy: an arc that breaks only one of them is kept as well, but at
 * most STALLS_MAX such arcs in a row. Source: docs/how-it-works.md, "Transforms". Cost: a dozen
 * bounds for every arc that is kept. */
#include <assert.h>
#include <string.h>

#include "candidates.h"
#include "couple.h"
#include "planner/transform/heartbeat.h"
#include "planner/transform/steps.h"
#include "streams/base/error.h"
#include "streams/base/memory.h"
#include "streams/base/options.h"
#include "streams/order/peak.h"
#include "streams/order/reserved.h"
#include "tarn/transform.h"

enum { STALLS_MAX = 32 };
/* Visits of a few nanoseconds that all bounds together may take. */
enum { WORK = 1 << 29, CANDIDATES_WORK = 1 << 27 };
/* The growth allowed to the makespan, see growth_at; up to a thousand times the makespan. */
enum { FIRST_GROWTH = 1024, STEPS = 4, LEVELS_MAX = STEPS * 21 };

struct coupling {
    struct tarn_couple_options options;
    struct tarn_graph *graph;
    struct tarn_region region; /* of reserved and arcs */
    const uint64_t *reserved;  /* planned storage -> bytes */
    uint64_t target;           /* bytes that the bound is to come down to */
    uint64_t makespan_max;     /* nanoseconds that the modelled makespan may take */
    struct tarn_recipe_arc *arcs;
    uint32_t arcs_count;
    size_t arcs_room;
    struct tarn_coupled coupled; /* the graph with these arcs */
    struct tarn_pace pace;       /* of that */
    struct tarn_steps steps;
    uint64_t work_left, reserve; /* of WORK, and the part kept for later */
    struct tarn_couple_report report;
};

/* The caller has had enough, or the work is done. */
static bool is_over(const struct coupling *coupling)
{
    return coupling->work_left <= coupling->reserve || tarn_steps_is_over(&coupling->steps);
}

static uint64_t bound_of(const struct coupling *coupling) { return coupling->coupled.bound.bound; }

/* ---- The graph with the arcs ---- */

static enum tarn_status try_arcs(struct tarn_coupled *coupled, struct coupling *coupling)
{
    enum tarn_status status =
        tarn_coupled_init(coupled, coupling->graph, coupling->arcs, coupling->arcs_count,
                          coupling->reserved, coupling->options.alignment);
    coupling->work_left -=
        coupled->work < coupling->work_left ? coupled->work : coupling->work_left;
    return status;
}

static enum tarn_status find_pace(struct coupling *coupling)
{
    tarn_pace_finish(&coupling->pace);
    return tarn_pace_init(&coupling->pace, &coupling->coupled.graph, coupling->options.wait_ns);
}

static void take_coupled(struct coupling *coupling, const struct tarn_coupled *coupled)
{
    tarn_coupled_finish(&coupling->coupled);
    coupling->coupled = *coupled;
}

/* The graph becomes that with the arcs. */
static enum tarn_status take_arcs(struct coupling *coupling)
{
    struct tarn_coupled coupled;
    enum tarn_status status = try_arcs(&coupled, coupling);
    if (status == TARN_OK) take_coupled(coupling, &coupled);
    return status == TARN_OK ? find_pace(coupling) : status;
}

static bool push_arc(struct coupling *coupling, struct tarn_recipe_arc arc)
{
    struct tarn_recipe_arc *arcs =
        tarn_region_grow(&coupling->region, coupling->arcs, &coupling->arcs_room,
                         (size_t)coupling->arcs_count + 1, sizeof *arcs);
    if (!arcs) return false;
    coupling->arcs = arcs;
    arcs[coupling->arcs_count++] = arc;
    return true;
}

/* ---- Choosing an arc ---- */

struct choice {
    struct tarn_couple_candidate candidate;
    struct tarn_coupled coupled; /* with it */
    bool is_there;
};

/* Bytes saved for each nanosecond: more than the other's? */
static bool is_better(const struct coupling *coupling, const struct tarn_couple_candidate *a,
                      uint64_t a_bound, const struct choice *other)
{
    if (!other->is_there) return true;
    uint64_t now = coupling->pace.timeline.makespan_ns, bound = bound_of(coupling);
    uint64_t b_bound = other->coupled.bound.bound;
    uint64_t a_ns = a->makespan_ns - now, b_ns = other->candidate.makespan_ns - now;
    assert(a->makespan_ns >= now && other->candidate.makespan_ns >= now);
    if (a_bound < coupling->target) a_bound = coupling->target;
    if (b_bound < coupling->target) b_bound = coupling->target;
    if ((a_bound < bound) != (b_bound < bound)) return a_bound < bound;
    if ((a_ns == 0) != (b_ns == 0)) return a_ns == 0;
    if (a_ns == 0 || a_bound >= bound) return a_bound < b_bound;
    return (double)(bound - a_bound) / (double)a_ns > (double)(bound - b_bound) / (double)b_ns;
}

static enum tarn_status try_candidate(struct coupling *coupling,
                                      const struct tarn_couple_candidate *candidate,
                                      struct choice *best)
{
    struct tarn_coupled coupled;
    if (!push_arc(coupling, candidate->arc)) return TARN_SYSTEM;
    enum tarn_status status = try_arcs(&coupled, coupling);
    coupling->arcs_count--;
    if (status != TARN_OK) return status;
    if (!is_better(coupling, candidate, coupled.bound.bound, best)) {
        tarn_coupled_finish(&coupled);
        return TARN_OK;
    }
    if (best->is_there) tarn_coupled_finish(&best->coupled);
    *best = (struct choice){*candidate, coupled, true};
    return TARN_OK;
}

/* *found: was there an arc to add? */
static enum tarn_status add_best(struct coupling *coupling, bool *found)
{
    struct tarn_candidates candidates;
    struct choice best = {.is_there = false};
    struct tarn_candidate_limits limits = {bound_of(coupling) - coupling->target,
                                           coupling->makespan_max, CANDIDATES_WORK};
    enum tarn_status status = tarn_candidates_find(&candidates, &coupling->coupled, &coupling->pace,
                                                   coupling->reserved, &limits);
    for (uint32_t i = 0; status == TARN_OK && i < candidates.count && !is_over(coupling); i++)
        status = try_candidate(coupling, &candidates.best[i], &best);
    uint64_t looked = candidates.work;
    coupling->work_left -= looked < coupling->work_left ? looked : coupling->work_left;
    *found = best.is_there;
    if (best.is_there) take_coupled(coupling, &best.coupled);
    if (status != TARN_OK || !best.is_there) return status;
    if (!push_arc(coupling, best.candidate.arc)) return TARN_SYSTEM;
    return find_pace(coupling);
}

/* ---- Adding arcs, and removing those that are not needed ---- */

/* The arcs so far, and how many of them led to the lowest bound. */
struct progress {
    uint64_t lowest;
    uint32_t kept;
};

/* Adds arcs, the best first, while they lower the bound; none that makes the makespan longer than
 * the limit. */
static enum tarn_status lower_within(struct coupling *coupling, struct progress *progress)
{
    bool found = true;
    uint32_t stalls = 0;
    while (found && progress->lowest > coupling->target && stalls < STALLS_MAX &&
           coupling->work_left > coupling->reserve &&
           tarn_steps_next(&coupling->steps, progress->lowest)) {
        enum tarn_status status = add_best(coupling, &found);
        if (status != TARN_OK) return status;
        stalls++;
        if (bound_of(coupling) >= progress->lowest) continue;
        *progress = (struct progress){bound_of(coupling), coupling->arcs_count};
        stalls = 0;
    }
    return TARN_OK;
}

/* The growth allowed to the makespan: nothing, then a thousandth of it, and so on, doubling every
 * four steps. The steps do not depend on the allowed slowdown, so a caller that allows more gets no
 * worse bound. */
static uint64_t growth_at(uint64_t now, uint32_t level)
{
    if (level == 0) return 0;
    uint64_t begin = (now / FIRST_GROWTH + 1) << ((level - 1) / STEPS);
    return begin / STEPS * ((level - 1) % STEPS + STEPS);
}

/* Lowers the bound level by level: from level `first` on, at most `more` levels, and none above
 * `growth`. Each level starts with the arcs of the one before it. Leaves the arcs in place that led
 * to the lowest bound. */
static enum tarn_status lower_bound(struct coupling *coupling, uint64_t growth, uint32_t first,
                                    uint32_t more)
{
    struct progress progress = {bound_of(coupling), 0};
    uint64_t now = coupling->pace.timeline.makespan_ns, most = coupling->makespan_max;
    enum tarn_status status = TARN_OK;
    for (uint32_t level = first; level < first + more && level < LEVELS_MAX; level++) {
        if (growth_at(now, level) > growth || status != TARN_OK || is_over(coupling) ||
            progress.lowest <= coupling->target)
            break;
        coupling->makespan_max = now + growth_at(now, level);
        status = lower_within(coupling, &progress);
    }
    coupling->makespan_max = most;
    coupling->arcs_count = progress.kept;
    return status == TARN_OK ? take_arcs(coupling) : status;
}

/* Can it do without arc i, and stay at `bound`? */
static enum tarn_status try_without(struct coupling *coupling, uint32_t i, uint64_t bound)
{
    struct tarn_coupled coupled;
    struct tarn_recipe_arc arc = coupling->arcs[i];
    uint32_t behind = coupling->arcs_count - i - 1;
    assert(i < coupling->arcs_count);
    memmove(&coupling->arcs[i], &coupling->arcs[i + 1], behind * sizeof arc);
    coupling->arcs_count--;
    enum tarn_status status = try_arcs(&coupled, coupling);
    if (status == TARN_OK && coupled.bound.bound <= bound) {
        take_coupled(coupling, &coupled);
        return TARN_OK;
    }
    if (status == TARN_OK) tarn_coupled_finish(&coupled);
    memmove(&coupling->arcs[i + 1], &coupling->arcs[i], behind * sizeof arc);
    coupling->arcs[i] = arc;
    coupling->arcs_count++;
    return status;
}

static enum tarn_status remove_unneeded(struct coupling *coupling)
{
    enum tarn_status status = take_arcs(coupling);
    if (status != TARN_OK) return status;
    uint64_t bound = bound_of(coupling);
    if (bound < coupling->target) bound = coupling->target;
    for (uint32_t i = 0; status == TARN_OK && i < coupling->arcs_count && !is_over(coupling);) {
        uint32_t before = coupling->arcs_count;
        status = try_without(coupling, i, bound);
        if (coupling->arcs_count == before) i++;
    }
    return status == TARN_OK ? find_pace(coupling) : status;
}

static void reserve_part(struct coupling *coupling, uint64_t percent)
{
    coupling->reserve = WORK / 100 * percent;
}

/* Arcs that were put aside, with the bound and the makespan that they lead to. */
struct arcs {
    struct tarn_recipe_arc *arcs;
    uint32_t count;
    size_t room;
    uint64_t bound, makespan_ns;
};

static struct arcs give_arcs(struct coupling *coupling)
{
    struct arcs arcs = {coupling->arcs, coupling->arcs_count, coupling->arcs_room,
                        bound_of(coupling), coupling->pace.timeline.makespan_ns};
    coupling->arcs = NULL;
    coupling->arcs_count = 0;
    coupling->arcs_room = 0;
    return arcs;
}

static bool are_better(const struct arcs *a, const struct arcs *b)
{
    return a->bound != b->bound ? a->bound < b->bound : a->makespan_ns < b->makespan_ns;
}

/* If the work was over before the arcs were found one by one: takes at once all arcs that cost no
 * time, as the ops run in the model, if these lower the bound further. */
static enum tarn_status take_all_in_time(struct coupling *coupling, const struct arcs *best)
{
    struct tarn_recipe_arc *arcs;
    uint32_t count;
    enum tarn_status status =
        tarn_couple_arcs(coupling->graph, &(struct tarn_leeway){.in_time = true, .ahead = 1},
                         &coupling->region, &arcs, &count, NULL);
    if (status != TARN_OK) return status;
    coupling->arcs = arcs;
    coupling->arcs_count = count;
    status = take_arcs(coupling);
    if (status != TARN_OK || bound_of(coupling) < best->bound) return status;
    coupling->arcs = best->arcs;
    coupling->arcs_count = best->count;
    return take_arcs(coupling);
}

/* Only the strongest arc within the limit of the makespan is looked at for each place. So the limit
 * rises step by step, and cheap arcs are taken if they suffice. If they do not, what they add to
 * the makespan may rule out an arc that would have sufficed by itself: each limit is also tried
 * from the start, without the arcs of lower limits. */
static enum tarn_status choose_arcs(struct coupling *coupling)
{
    uint64_t now = coupling->pace.timeline.makespan_ns, growth = coupling->makespan_max - now;
    coupling->steps =
        (struct tarn_steps){.control = coupling->options.control, .transform = "couple"};
    reserve_part(coupling, 60);
    enum tarn_status status = lower_bound(coupling, growth, 0, LEVELS_MAX);
    struct arcs best = give_arcs(coupling);
    bool cut = coupling->work_left <= coupling->reserve;
    reserve_part(coupling, 30);
    for (uint32_t level = 1;
         status == TARN_OK && level < LEVELS_MAX && best.bound > coupling->target &&
         growth_at(now, level) <= growth && !is_over(coupling);
         level += STEPS) {
        status = take_arcs(coupling); /* none */
        if (status == TARN_OK) status = lower_bound(coupling, growth, level, 1);
        if (status != TARN_OK) return status;
        struct arcs other = give_arcs(coupling);
        if (are_better(&other, &best)) best = other;
    }
    coupling->arcs = best.arcs;
    coupling->arcs_count = best.count;
    coupling->arcs_room = best.room;
    cut = cut || coupling->work_left <= coupling->reserve;
    reserve_part(coupling, 10);
    if (status != TARN_OK || !cut || best.bound <= coupling->target)
        return status == TARN_OK ? remove_unneeded(coupling) : status;
    return take_all_in_time(coupling, &best);
}

/* ---- The report ---- */

/* Each row has more arcs than the row before it and a lower bound; the last row has all arcs. If
 * the search was ended, the first and the last row are reported. */
static enum tarn_status add_row(struct coupling *coupling, struct tarn_couple_report *report,
                                uint32_t arcs_count)
{
    uint32_t kept = coupling->arcs_count;
    struct tarn_coupled coupled;
    struct tarn_pace pace = {0};
    coupling->arcs_count = arcs_count;
    enum tarn_status status = try_arcs(&coupled, coupling);
    coupling->arcs_count = kept;
    if (status != TARN_OK) return status;
    status = tarn_pace_init(&pace, &coupled.graph, coupling->options.wait_ns);
    struct tarn_couple_row row = {arcs_count, pace.waits_count, coupled.bound.bound,
                                  pace.timeline.makespan_ns};
    if (report->rows_count == 0 || row.bound < report->rows[report->rows_count - 1].bound)
        report->rows[report->rows_count++] = row;
    else if (arcs_count == kept)
        report->rows[report->rows_count - 1] = row;
    tarn_pace_finish(&pace);
    tarn_coupled_finish(&coupled);
    return status;
}

static enum tarn_status fill_report(struct coupling *coupling, struct tarn_couple_report *report)
{
    report->bound = bound_of(coupling);
    report->target = coupling->target;
    report->arcs = coupling->arcs_count;
    report->rows = tarn_take(((size_t)coupling->arcs_count + 1) * sizeof *report->rows);
    if (!report->rows) return TARN_SYSTEM;
    enum tarn_status status = TARN_OK;
    coupling->reserve = 0;
    for (uint32_t i = 0; status == TARN_OK && i <= coupling->arcs_count; i++) {
        if (i > 0 && is_over(coupling)) i = coupling->arcs_count; /* the last one */
        status = add_row(coupling, report, i);
    }
    return status;
}

void tarn_couple_report_finish(struct tarn_couple_report *report)
{
    if (!report) return;
    tarn_free(report->rows);
    memset(report, 0, sizeof *report);
}

/* ---- The transform ---- */

static void set_target(struct coupling *coupling, uint64_t serial_peak)
{
    uint64_t bound = bound_of(coupling);
    uint64_t excess = bound > serial_peak ? bound - serial_peak : 0;
    uint64_t now = coupling->pace.timeline.makespan_ns;
    coupling->target = coupling->options.capacity;
    if (coupling->target == 0)
        coupling->target = bound - excess + (uint64_t)((double)excess * coupling->options.keep);
    coupling->makespan_max = now + (uint64_t)((double)now * coupling->options.slowdown_max);
}

static enum tarn_status couple(struct coupling *coupling, struct tarn_couple_report *report)
{
    enum tarn_status status = take_arcs(coupling);
    if (status == TARN_OK)
        status = tarn_peak_of(coupling->graph, coupling->reserved, &report->serial_peak);
    if (status != TARN_OK) return status;
    set_target(coupling, report->serial_peak);
    if (bound_of(coupling) > coupling->target) status = choose_arcs(coupling);
    return status == TARN_OK ? fill_report(coupling, report) : status;
}

static enum tarn_status build(struct coupling *coupling, struct tarn_graph **result,
                              struct tarn_error *error)
{
    struct tarn_recipe recipe = {.graph = coupling->graph,
                                 .order = coupling->coupled.graph.order,
                                 .arcs = coupling->arcs,
                                 .arcs_count = coupling->arcs_count};
    if (coupling->arcs_count == 0) recipe.order = NULL;
    return tarn_recipe_build(&recipe, result, error);
}

static enum tarn_status check_options(struct tarn_couple_options *options, struct tarn_error *error)
{
    if (options->wait_ns == 0) options->wait_ns = TARN_WAIT_NS;
    if (tarn_options_alignment(&options->alignment, error) != TARN_OK) return TARN_USAGE;
    if (!(options->keep >= 0 && options->keep <= 1))
        return tarn_error_set(error, TARN_USAGE, "the share to keep must be from 0 to 1");
    if (!(options->slowdown_max >= 0 && options->slowdown_max <= 1000))
        return tarn_error_set(error, TARN_USAGE, "the slowdown must be from 0 to 1000");
    return TARN_OK;
}

static void coupling_finish(struct coupling *coupling)
{
    tarn_pace_finish(&coupling->pace);
    tarn_coupled_finish(&coupling->coupled);
    tarn_region_finish(&coupling->region);
}

struct call {
    struct coupling coupling;
    struct tarn_graph **result;
    struct tarn_error *error;
};

static enum tarn_status run(const struct tarn_transform_control *control, void *subject)
{
    struct call *call = subject;
    struct coupling *coupling = &call->coupling;
    coupling->options.control = control;
    enum tarn_status status =
        tarn_reserved_sizes(&coupling->reserved, &coupling->region, coupling->graph,
                            coupling->options.alignment, call->error);
    if (status == TARN_OK) {
        status = couple(coupling, &coupling->report);
        if (status != TARN_OK) tarn_error_no_memory(call->error);
    }
    if (status == TARN_OK) status = build(coupling, call->result, call->error);
    coupling_finish(coupling);
    return status;
}

enum tarn_status tarn_graph_couple(struct tarn_graph *graph,
                                   const struct tarn_couple_options *given,
                                   struct tarn_graph **result, struct tarn_error *error)
{
    if (result) *result = NULL;
    if (!graph || !result) return tarn_error_null(error, __func__);
    struct call call = {
        .coupling = {.graph = graph, .work_left = WORK}, .result = result, .error = error};
    struct tarn_couple_options *options = &call.coupling.options;
    struct tarn_couple_report *report = &call.coupling.report;
    struct tarn_transform_control control;
    tarn_error_clear(error);
    enum tarn_status status =
        tarn_options_take(options, sizeof *options, given, "couple options", error);
    if (status == TARN_OK) status = tarn_control_take(&control, &options->control, error);
    if (status == TARN_OK) status = check_options(options, error);
    if (status == TARN_OK)
        status = tarn_transform_with_heartbeat(options->control, "couple", run, &call);
    if (status == TARN_OK && options->report)
        tarn_report_give(options->report, options->report_size, report, sizeof *report);
    else
        tarn_couple_report_finish(report);
    return status;
}
