/* What each stage of placement is good for: all graphs are planned with all stages, and with each
 * of them left out in turn. A row for each: how many graphs come to the stage, the mean and the
 * worst gap to the bound (where the stage raises the bound, to the lower one), how many plans meet
 * it, how many are larger or smaller than with all stages, and processor time. Limits are those of
 * counted work, so footprints do not depend on the machine.
 *
 *     ablation_bench [--effort N] [--stage NAME]... GRAPH ...
 *
 * GRAPH is a file, with :CAPACITY behind it an instance whose gap is one to that capacity; or
 * STORAGESxSTREAMS, a generated training step; or a name of named_graph.h. The stages are called
 * through the linker's --wrap, so the library has no switch for them. Calls from one stage to
 * another stay as they are: closer calls core, and coarse calls exact, core, apart and fold. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "dnn_graph.h"
#include "named_graph.h"
#include "planner/place/compact.h"
#include "planner/place/repair.h"
#include "planner/place/search.h"
#include "planner/place/stages.h"
#include "planner/place/windows/windows.h"
#include "streams/plan/plan.h"
#include "tarn.h"

enum stage {
    CHAINS,
    WINDOWS,
    GAPS,
    EXACT,
    COARSE,
    CORE,
    APART,
    BASELINE,
    COMPACT,
    CLOSER,
    LOCAL,
    REPAIR,
    STAGES
};

static const char *const names[] = {"chains", "windows",  "gaps",    "exact",  "coarse", "core",
                                    "apart",  "baseline", "compact", "closer", "local",  "repair"};
static enum stage left_out = STAGES;
static uint32_t entered; /* stages that the graph at hand has come to: the sum of 1u << stage */

/* A graph comes to a stage; is the stage left out? */
static bool is_out(enum stage stage)
{
    entered |= 1u << stage;
    return stage == left_out;
}

/* ---- The stages ---- */

void __real_tarn_stage_chains(struct tarn_placing *placing);
void __wrap_tarn_stage_chains(struct tarn_placing *placing);
void __wrap_tarn_stage_chains(struct tarn_placing *placing)
{
    if (!is_out(CHAINS)) __real_tarn_stage_chains(placing);
}

/* A stage that returns a status: left out, it does nothing. */
#define STAGE(function, is_left_out, parameters, arguments) \
    enum tarn_status __real_##function parameters;          \
    enum tarn_status __wrap_##function parameters;          \
    enum tarn_status __wrap_##function parameters           \
    {                                                       \
        if (is_left_out) return TARN_OK;                    \
        return __real_##function arguments;                 \
    }

STAGE(tarn_widths_place, is_out(WINDOWS),
      (const struct tarn_problem *problem, const struct tarn_widths_options *options,
       uint64_t *offset, uint64_t *footprint),
      (problem, options, offset, footprint))
STAGE(tarn_stage_exact_briefly, is_out(EXACT), (struct tarn_placing * placing), (placing))
STAGE(tarn_stage_core, is_out(CORE), (struct tarn_placing * placing, uint64_t aim, uint64_t visits),
      (placing, aim, visits))
STAGE(tarn_stage_apart, is_out(APART),
      (struct tarn_placing * placing, uint64_t kept, uint64_t visits), (placing, kept, visits))
STAGE(tarn_stage_coarse, is_out(COARSE), (struct tarn_placing * placing, uint64_t visits),
      (placing, visits))
STAGE(tarn_compact_place, is_out(COMPACT),
      (const struct tarn_problem *problem, const struct tarn_compact_options *options,
       uint64_t *offset, uint64_t *footprint, uint64_t *work),
      (problem, options, offset, footprint, work))
STAGE(tarn_stage_approach, is_out(CLOSER), (struct tarn_placing * placing, uint64_t visits),
      (placing, visits))
STAGE(tarn_local_searches_run, is_out(LOCAL), (struct tarn_search * search, uint64_t footprint),
      (search, footprint))

enum tarn_status __real_tarn_repair_place(const struct tarn_problem *problem,
                                          const struct tarn_repair_options *options,
                                          struct tarn_repair **kept, uint64_t *offset, bool *found,
                                          uint64_t *work);
enum tarn_status __wrap_tarn_repair_place(const struct tarn_problem *problem,
                                          const struct tarn_repair_options *options,
                                          struct tarn_repair **kept, uint64_t *offset, bool *found,
                                          uint64_t *work);
enum tarn_status __wrap_tarn_repair_place(const struct tarn_problem *problem,
                                          const struct tarn_repair_options *options,
                                          struct tarn_repair **kept, uint64_t *offset, bool *found,
                                          uint64_t *work)
{
    *found = false;
    *work = 0;
    return is_out(REPAIR) ? TARN_OK
                          : __real_tarn_repair_place(problem, options, kept, offset, found, work);
}

uint32_t __real_tarn_stage_count_methods(struct tarn_placing *placing);
uint32_t __wrap_tarn_stage_count_methods(struct tarn_placing *placing);
uint32_t __wrap_tarn_stage_count_methods(struct tarn_placing *placing)
{
    return is_out(BASELINE) ? 0 : __real_tarn_stage_count_methods(placing);
}

/* The bound with the gaps of groups, left out after the quick one. */
enum tarn_status __real_tarn_gap_bound_init(struct tarn_gap_bound *bound,
                                            struct tarn_region *region,
                                            const struct tarn_antichain *antichain,
                                            const struct tarn_reserve *reserve, uint32_t effort);
enum tarn_status __wrap_tarn_gap_bound_init(struct tarn_gap_bound *bound,
                                            struct tarn_region *region,
                                            const struct tarn_antichain *antichain,
                                            const struct tarn_reserve *reserve, uint32_t effort);
enum tarn_status __wrap_tarn_gap_bound_init(struct tarn_gap_bound *bound,
                                            struct tarn_region *region,
                                            const struct tarn_antichain *antichain,
                                            const struct tarn_reserve *reserve, uint32_t effort)
{
    if (effort > TARN_GAP_EFFORT_LOW && is_out(GAPS)) effort = TARN_GAP_EFFORT_LOW;
    return __real_tarn_gap_bound_init(bound, region, antichain, reserve, effort);
}

/* ---- The graphs ---- */

struct subject {
    struct tarn_graph *graph;
    uint64_t capacity; /* 0: none */
    /* With all stages: footprint (0: above the capacity), bound, seconds, stages come to. */
    uint64_t footprint, bound;
    double seconds;
    uint32_t entered;
};

static _Noreturn void fail(const char *name, const char *why)
{
    fprintf(stderr, "ablation_bench: %s: %s\n", name, why);
    exit(1);
}

static struct subject take(char *name)
{
    struct subject subject = {.graph = named_graph(name)};
    struct tarn_error error;
    uint32_t storages, streams;
    char end, *colon = strrchr(name, ':');
    if (subject.graph) return subject;
    if (sscanf(name, "%ux%u%c", &storages, &streams, &end) == 2) {
        subject.graph = dnn_graph(&(struct dnn_graph_options){storages, streams});
        return subject;
    }
    if (colon && sscanf(colon + 1, "%" SCNu64 "%c", &subject.capacity, &end) == 1) *colon = 0;
    if (tarn_graph_load(name, NULL, &subject.graph, &error) != TARN_OK) fail(name, error.text);
    return subject;
}

/* ---- The rows ---- */

/* Plans the subject without the stage. A subject that does not come to it is planned as before. */
static struct subject plan(const struct subject *subject, uint32_t effort)
{
    struct subject result = *subject;
    struct tarn_plan *plan;
    struct tarn_error error;
    if (left_out != STAGES && !(subject->entered >> left_out & 1)) return result;
    double begin = clock_ms(CLOCK_PROCESS_CPUTIME_ID);
    entered = 0;
    enum tarn_status status = tarn_plan_create(
        subject->graph,
        TARN_PLAN_OPTIONS(.threads = 1, .effort = effort, .capacity = subject->capacity), &plan,
        &error);
    result.seconds = (clock_ms(CLOCK_PROCESS_CPUTIME_ID) - begin) * 1e-3;
    result.entered = entered;
    result.footprint = 0;
    if (status == TARN_DOES_NOT_FIT) return result;
    if (status != TARN_OK) fail("a plan", error.text);
    result.footprint = tarn_plan_footprint(plan);
    result.bound = plan->claim.bound;
    tarn_plan_destroy(plan);
    return result;
}

static void measure(struct subject *subjects, int count, uint32_t effort)
{
    double mean = 0, worst = 0, seconds = 0;
    int met = 0, larger = 0, smaller = 0, placed = 0, came = 0;
    for (int i = 0; i < count; i++) {
        struct subject *whole = &subjects[i], now = plan(whole, effort);
        if (left_out == STAGES) *whole = now;
        came += left_out == STAGES || (whole->entered >> left_out & 1);
        seconds += now.seconds;
        larger += now.footprint == 0 ? whole->footprint > 0 : now.footprint > whole->footprint;
        smaller += now.footprint > 0 && (whole->footprint == 0 || now.footprint < whole->footprint);
        if (now.footprint == 0) continue;
        uint64_t aim = whole->capacity > now.bound ? whole->capacity : now.bound;
        double gap = 100 * ((double)now.footprint / (double)aim - 1);
        if (gap < 0) gap = 0;
        mean += gap;
        if (gap > worst) worst = gap;
        placed++;
        met += now.footprint <= aim;
    }
    const char *name = left_out == STAGES ? "none" : names[left_out];
    printf("| %s | %d | %.4f | %.3f | %d of %d | %d | %d | %.1f |\n", name, came,
           placed > 0 ? mean / placed : 0, worst, met, count, larger, smaller, seconds);
    fflush(stdout);
}

static enum stage stage_named(const char *name)
{
    for (int stage = 0; stage < STAGES; stage++)
        if (strcmp(names[stage], name) == 0) return (enum stage)stage;
    fail(name, "there is no such stage");
}

int main(int argc, char **argv)
{
    uint32_t effort = 0, asked = 0; /* stages: the sum of 1u << stage */
    int first = 1;
    for (; argc > first + 1 && strncmp(argv[first], "--", 2) == 0; first += 2) {
        if (strcmp(argv[first], "--effort") == 0)
            effort = (uint32_t)strtoul(argv[first + 1], NULL, 10);
        else if (strcmp(argv[first], "--stage") == 0)
            asked |= 1u << stage_named(argv[first + 1]);
        else
            fail(argv[first], "there is no such option");
    }
    int count = argc - first;
    struct subject *subjects = calloc((size_t)count + 1, sizeof *subjects);
    if (!subjects) fail("graphs", "no memory");
    for (int i = 0; i < count; i++) subjects[i] = take(argv[first + i]);
    printf(
        "| left out | graphs that come to it | gap %% | worst %% | met | larger | smaller | s |\n"
        "|---|---:|---:|---:|---:|---:|---:|---:|\n");
    measure(subjects, count, effort);
    for (int stage = 0; stage < STAGES; stage++) {
        if (asked != 0 && !(asked >> stage & 1)) continue;
        left_out = (enum stage)stage;
        measure(subjects, count, effort);
    }
    for (int i = 0; i < count; i++) tarn_graph_destroy(subjects[i].graph);
    free(subjects);
    return 0;
}
