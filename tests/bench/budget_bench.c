/* Memory against time on the networks and batch sizes of MONeT (Shah et al., "Memory optimization
 * for deep networks", 2021), beside what it reports. `budget_bench TABLE COSTS.csv FOLDER [EFFORT]`
 * adds the costs' implementations and split backward to the graphs of those names in a folder, and
 * plans them under budgets: "least", at the memory of the paper's Table 3; "ten-percent", for the
 * least memory at that overhead, as in its Table 1; "ablation", at 0.53 as in its Figure 4;
 * "curve". Memory is (persistent + footprint) as a share of that of keeping everything in the order
 * that came in, overhead that of the modelled critical path; the paper's are measured on a GPU,
 * ours follow from the costs. Each plan is verified, and its footprint and time are compared with
 * what was promised. Prints Markdown. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "planner/budget/budget.h"
#include "planner/pipeline.h"
#include "planner/transform/budget/budget.h"
#include "tarn.h"

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

/* Gigabytes at 10 % overhead (Table 1); share of PyTorch's memory and overhead (Table 3). */
static const struct network {
    const char *name;
    double pytorch_gb, checkmate_gb, monet_gb;
    double gist_share, gist_percent, monet_share, monet_percent;
} networks[] = {
    {"resnet50_b184_sgd", 15.1, 8.2, 5.7, 0.58, 105.69, 0.33, 11.94},
    {"googlenet_b320_sgd", 14.9, 10.5, 6.9, 0.52, 35.94, 0.33, 15.77},
    {"unet_b11_sgd", 14.3, 9.1, 5.2, 0.73, 38.26, 0.35, 11.51},
    {"vgg16_b176_sgd", 14.1, 9.9, 5.5, 0.76, 44.34, 0.39, 9.11},
    {"mobilenet_v2_b256_sgd", 14.5, 5.8, 4.8, 0.69, 153.98, 0.34, 8.80},
};

static const double shares[] = {0.8, 0.7, 0.6, 0.53, 0.45, 0.4, 0.38, 0.35, 0.33, 0.3, 0.27, 0.24};

/* What may be done to save memory. */
static const struct way {
    const char *name;
    unsigned classes;
} ways[] = {
    {"everything", TARN_BUDGET_ALL},
    {"recomputation alone", TARN_BUDGET_RECOMPUTE},
    {"implementations alone", TARN_BUDGET_ALL - TARN_BUDGET_RECOMPUTE},
    {"recomputation, algorithms", TARN_BUDGET_RECOMPUTE + TARN_BUDGET_ALGORITHMS},
    {"recomputation, other inputs", TARN_BUDGET_RECOMPUTE + TARN_BUDGET_INPUTS},
    {"recomputation, masks", TARN_BUDGET_RECOMPUTE + TARN_BUDGET_MASKS},
    {"recomputation, split backward", TARN_BUDGET_RECOMPUTE + TARN_BUDGET_SPLIT},
};
enum { EVERYTHING, RECOMPUTATION, IMPLEMENTATIONS };

struct subject {
    const struct network *network;
    struct tarn_graph *graph; /* with its implementations; NULL: there is none */
    uint64_t persistent, footprint;
    uint64_t effort;
};

struct outcome {
    bool fits, as_promised;
    double share, percent, ms;
    uint32_t recomputed, implemented;
};

static double percent_over(uint64_t a, uint64_t b) { return 100.0 * ((double)a / (double)b - 1.0); }

static double share_of(const struct subject *subject, uint64_t footprint)
{
    return (double)(subject->persistent + footprint) /
           (double)(subject->persistent + subject->footprint);
}

/* Is the plan what the report said, to the byte and the nanosecond? */
static bool is_as_promised(const struct tarn_plan *plan, const struct tarn_budget_report *report,
                           uint64_t footprint)
{
    struct tarn_simulation *simulation;
    if (tarn_graph_simulate(tarn_plan_graph(plan), 0, TARN_WAIT_NS, &simulation, NULL) != TARN_OK)
        return false;
    bool is_same = simulation->makespan_ns == report->time_ns && footprint == report->footprint;
    tarn_simulation_destroy(simulation);
    return is_same;
}

/* share: of the memory of keeping everything, at most. */
static struct outcome run(const struct subject *subject, enum tarn_budget_method method,
                          unsigned classes, double share)
{
    struct tarn_budget_report report = {0};
    struct tarn_plan_summary summary;
    struct tarn_error error;
    struct outcome outcome = {.fits = false};
    double bytes = share * (double)(subject->persistent + subject->footprint);
    if (bytes <= (double)subject->persistent) return outcome;
    const struct tarn_budget_options *budget =
        TARN_BUDGET_OPTIONS(.budget = (uint64_t)bytes - subject->persistent, .method = method,
                            .effort = subject->effort, .report = &report);
    struct tarn_plan_options planning;
    struct tarn_planned planned = {.graph = NULL};
    if (tarn_plan_options_take(&planning, NULL, &error) != TARN_OK) return outcome;
    double begin = clock_ms(CLOCK_MONOTONIC);
    enum tarn_status status = tarn_budgeting_run(subject->graph, budget, TARN_BUDGET_ALL & ~classes,
                                                 &planning, &planned, NULL, &error);
    outcome.ms = clock_ms(CLOCK_MONOTONIC) - begin;
    outcome.share = share_of(subject, report.footprint);
    if (status != TARN_OK) return outcome;
    tarn_plan_summarize(planned.plan, &summary);
    outcome.fits = true;
    outcome.as_promised = is_as_promised(planned.plan, &report, summary.footprint);
    outcome.share = share_of(subject, summary.footprint);
    outcome.percent = percent_over(report.time_ns, report.time_before_ns);
    outcome.recomputed = report.recomputed;
    outcome.implemented = report.implemented;
    tarn_planned_finish(&planned);
    return outcome;
}

/* ---- Graphs ---- */

static struct tarn_graph *load(const char *folder, const char *name)
{
    static const char *const endings[] = {".json", ".json.gz"};
    struct tarn_graph *graph = NULL;
    for (size_t i = 0; i < COUNT_OF(endings) && !graph; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%s%s", folder, name, endings[i]);
        tarn_graph_load(path, NULL, &graph, NULL);
    }
    return graph;
}

/* False: there is no such graph. */
static bool open_subject(struct subject *subject, const char *folder,
                         const struct tarn_cost_table *costs)
{
    struct tarn_budget_report report;
    struct tarn_graph_summary summary;
    struct tarn_graph *kept, *graph = load(folder, subject->network->name);
    if (!graph) {
        fprintf(stderr, "budget_bench: no %s there\n", subject->network->name);
        return false;
    }
    tarn_graph_implementations(graph,
                               TARN_IMPLEMENTATIONS_OPTIONS(.costs = costs, .split_backward = true),
                               &subject->graph, NULL);
    tarn_graph_destroy(graph);
    if (!subject->graph || tarn_graph_summarize(subject->graph, &summary, NULL) != TARN_OK ||
        tarn_graph_budget(subject->graph,
                          TARN_BUDGET_OPTIONS(.method = TARN_BUDGET_KEEP, .budget = UINT64_MAX >> 8,
                                              .report = &report),
                          &kept, NULL) != TARN_OK)
        exit(1);
    tarn_graph_destroy(kept);
    subject->persistent = summary.persistent;
    subject->footprint = report.footprint_before;
    return true;
}

/* ---- Tables ---- */

static void print_row(const struct subject *subject, const char *way, double paper_share,
                      double paper_percent, struct outcome outcome)
{
    printf("| %s | %s |", subject->network->name, way);
    if (paper_share > 0)
        printf(" %.2f | %.2f |", paper_share, paper_percent);
    else
        printf(" | |");
    if (outcome.fits)
        printf(" %.3f | %.2f | %u | %u | %s | %.0f |\n", outcome.share, outcome.percent,
               outcome.recomputed, outcome.implemented, outcome.as_promised ? "yes" : "**no**",
               outcome.ms);
    else
        printf(" not below %.3f | | | | | %.0f |\n", outcome.share, outcome.ms);
    fflush(stdout);
}

static void print_head(void)
{
    printf(
        "| graph | what may be done | paper's memory | paper's overhead %% | memory | overhead %% "
        "| recomputed ops | other implementations | as promised | ms |\n");
    printf("|---|---|--:|--:|--:|--:|--:|--:|---|--:|\n");
}

/* Table 3: MONeT's least memory, and Gist's. */
static void at_the_papers_budgets(const struct subject *subject)
{
    const struct network *network = subject->network;
    print_row(subject, ways[EVERYTHING].name, network->monet_share, network->monet_percent,
              run(subject, TARN_BUDGET_SEARCH, TARN_BUDGET_ALL, network->monet_share));
    print_row(subject, ways[RECOMPUTATION].name, 0, 0,
              run(subject, TARN_BUDGET_SEARCH, TARN_BUDGET_RECOMPUTE, network->monet_share));
    print_row(subject, ways[IMPLEMENTATIONS].name, network->gist_share, network->gist_percent,
              run(subject, TARN_BUDGET_SEARCH, ways[IMPLEMENTATIONS].classes, network->gist_share));
    print_row(subject, "Chen's segments", 0, 0,
              run(subject, TARN_BUDGET_CHEN, TARN_BUDGET_RECOMPUTE, 1.0));
}

/* The least memory at that overhead, by halving. */
static struct outcome least_memory(const struct subject *subject, unsigned classes,
                                   double percent_max)
{
    struct outcome best = {.fits = false}, outcome;
    double low = 0.1, high = 1.0;
    while (high - low > 0.005) {
        double middle = (low + high) / 2;
        outcome = run(subject, TARN_BUDGET_SEARCH, classes, middle);
        if (outcome.fits && outcome.percent <= percent_max) {
            best = outcome;
            high = middle;
        } else {
            low = middle;
        }
    }
    return best;
}

/* Table 1. */
static void at_ten_percent(const struct subject *subject)
{
    const struct network *network = subject->network;
    print_row(subject, ways[EVERYTHING].name, network->monet_gb / network->pytorch_gb, 10,
              least_memory(subject, TARN_BUDGET_ALL, 10));
    print_row(subject, ways[RECOMPUTATION].name, network->checkmate_gb / network->pytorch_gb, 10,
              least_memory(subject, TARN_BUDGET_RECOMPUTE, 10));
}

static void ablation(const struct subject *subject)
{
    for (size_t i = 0; i < COUNT_OF(ways); i++)
        print_row(subject, ways[i].name, 0, 0,
                  run(subject, TARN_BUDGET_SEARCH, ways[i].classes, 0.53));
}

static void curve(const struct subject *subject)
{
    double ms = 0;
    printf("| %s |", subject->network->name);
    for (size_t i = 0; i < COUNT_OF(shares); i++) {
        struct outcome outcome = run(subject, TARN_BUDGET_SEARCH, TARN_BUDGET_ALL, shares[i]);
        ms += outcome.ms;
        if (outcome.fits)
            printf(" %.2f |", outcome.percent);
        else
            printf(" - |");
        fflush(stdout);
    }
    printf(" %.0f |\n", ms);
}

static void print_curve_head(void)
{
    printf("| graph |");
    for (size_t i = 0; i < COUNT_OF(shares); i++) printf(" %.2f |", shares[i]);
    printf(" ms |\n|---|");
    for (size_t i = 0; i < COUNT_OF(shares); i++) printf("--:|");
    printf("--:|\n");
}

static const struct {
    const char *name;
    void (*print_head)(void);
    void (*print)(const struct subject *subject);
} tables[] = {
    {"least", print_head, at_the_papers_budgets},
    {"ten-percent", print_head, at_ten_percent},
    {"ablation", print_head, ablation},
    {"curve", print_curve_head, curve},
};

static void print_table(size_t t, const char *folder, const struct tarn_cost_table *costs,
                        uint64_t effort)
{
    tables[t].print_head();
    for (size_t i = 0; i < COUNT_OF(networks); i++) {
        struct subject subject = {.network = &networks[i], .effort = effort};
        if (open_subject(&subject, folder, costs)) tables[t].print(&subject);
        tarn_graph_destroy(subject.graph);
    }
}

int main(int count, char **words)
{
    struct tarn_cost_table *costs;
    struct tarn_error error;
    size_t t = 0;
    while (count > 1 && t < COUNT_OF(tables) && strcmp(words[1], tables[t].name) != 0) t++;
    if (count < 4 || t == COUNT_OF(tables)) {
        fprintf(stderr,
                "usage: budget_bench least|ten-percent|ablation|curve COSTS.csv FOLDER [EFFORT]\n");
        return 2;
    }
    if (tarn_cost_table_load(words[2], &costs, &error) != TARN_OK) {
        fprintf(stderr, "budget_bench: %s\n", error.text);
        return 1;
    }
    print_table(t, words[3], costs, count > 4 ? strtoull(words[4], NULL, 10) : 0);
    tarn_cost_table_destroy(costs);
    return 0;
}
