/* What the refined iteration boundary costs and gives. Prints Markdown.
 *
 *     boundary_bench [--wall NS]... FILE|KIND:STORAGESxSTREAMS...
 *
 * For every plan: the waits across the boundary by both rules, the processor's time to find the
 * refined ones (best of five), and the modelled time of one iteration among many, a core for every
 * stream and one unit for every op: the longest path through so many iterations, divided by their
 * number.
 * --wall: also the wall time of an iteration with kernels that spin so long, on the host device
 * (medians of runs in turn, and their quartiles). KIND: dnn, chain or uncoupled, see scale_bench.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cut_graph.h"
#include "dnn_graph.h"
#include "streams/order/events/boundary.h"
#include "streams/plan/program.h"
#include "tarn.h"

enum { MODELLED = 16, RUNS = 15, WALLS = 4, RUN_NS = 100000000 };

struct subject {
    const char *name;
    struct tarn_graph *graph;
    struct tarn_plan *plan[2]; /* refined, simple */
};

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static uint64_t now_ns(void) { return clock_ns(CLOCK_MONOTONIC); }

static void need(enum tarn_status status, const struct tarn_error *error)
{
    if (status == TARN_OK) return;
    fprintf(stderr, "boundary_bench: %s\n", error ? error->text : tarn_status_text(status));
    exit(1);
}

/* ---- Subjects ---- */

static struct tarn_graph *open_graph(const char *argument)
{
    char kind[16];
    uint32_t storages, streams;
    struct tarn_graph *graph;
    struct tarn_error error;
    if (sscanf(argument, "%15[a-z]:%ux%u", kind, &storages, &streams) == 3) {
        if (strcmp(kind, "dnn") == 0)
            return dnn_graph(&(struct dnn_graph_options){storages, streams});
        enum cut_kind cut = strcmp(kind, "uncoupled") == 0 ? CUT_UNCOUPLED : CUT_CHAIN;
        return cut_graph(&(struct cut_graph_options){cut, storages, streams});
    }
    need(tarn_graph_load(argument, NULL, &graph, &error), &error);
    return graph;
}

static void subject_init(struct subject *subject, const char *argument)
{
    const char *slash = strrchr(argument, '/');
    struct tarn_error error;
    subject->name = slash ? slash + 1 : argument;
    subject->graph = open_graph(argument);
    for (enum tarn_boundary rule = TARN_BOUNDARY_REFINED; rule <= TARN_BOUNDARY_SIMPLE; rule++) {
        need(tarn_plan_create(
                 subject->graph,
                 TARN_PLAN_OPTIONS(.method = "lowest", .effort = TARN_NO_EFFORT, .boundary = rule),
                 &subject->plan[rule], &error),
             &error);
    }
}

static void subject_finish(struct subject *subject)
{
    tarn_plan_destroy(subject->plan[0]);
    tarn_plan_destroy(subject->plan[1]);
    tarn_graph_destroy(subject->graph);
}

/* ---- Cost ---- */

static double refining_ms(struct tarn_plan *plan)
{
    double best = 0;
    for (int i = 0; i < 5; i++) {
        uint64_t begin = clock_ns(CLOCK_THREAD_CPUTIME_ID);
        need(tarn_plan_refine_boundary(plan), NULL);
        double ms = (double)(clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin) * 1e-6;
        if (i == 0 || ms < best) best = ms;
    }
    return best;
}

/* ---- Model ---- */

/* Longest path to the end of each node, all ops one unit. */
static uint32_t longest_path(const struct tarn_program *program)
{
    uint32_t count = MODELLED * program->steps_count, longest = 0;
    uint32_t *nodes = malloc(((size_t)count + 1) * sizeof *nodes);
    uint32_t *end = calloc((size_t)count + 1, sizeof *end);
    if (!nodes || !end) need(TARN_SYSTEM, NULL);
    need(tarn_program_linearize(program, MODELLED, NULL, 0, nodes), NULL);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t begin = 0;
        for (uint32_t k = 0; k < tarn_program_predecessors_count(program, nodes[i]); k++) {
            uint32_t before = tarn_program_predecessor(program, nodes[i], k);
            if (before != TARN_NONE && end[before] > begin) begin = end[before];
        }
        end[nodes[i]] = begin + 1;
        if (begin + 1 > longest) longest = begin + 1;
    }
    free(nodes);
    free(end);
    return longest;
}

static double modelled_units(const struct tarn_plan *plan)
{
    struct tarn_program program;
    struct tarn_error error;
    need(tarn_program_init(&program, plan, &error), &error);
    double units = longest_path(&program) / (double)MODELLED;
    tarn_program_finish(&program);
    return units;
}

/* ---- Wall ---- */

static int spin(void *user, const struct tarn_call *call)
{
    (void)call;
    uint64_t end = now_ns() + *(const uint64_t *)user;
    while (now_ns() < end) {
    }
    return 0;
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Milliseconds of one iteration. */
static double run_ms(struct tarn_session *session, uint64_t iterations)
{
    struct tarn_error error;
    tarn_ticket ticket;
    uint64_t begin = now_ns();
    need(tarn_session_submit(session, iterations, &ticket, &error), &error);
    need(tarn_session_wait(session, ticket, TARN_FOREVER, &error), &error);
    return (double)(now_ns() - begin) * 1e-6 / (double)iterations;
}

static void print_wall(const struct subject *subject, uint64_t kernel_ns)
{
    struct tarn_session *session[2];
    struct tarn_error error;
    double ms[2][RUNS];
    struct tarn_graph_summary summary;
    need(tarn_graph_summarize(subject->graph, &summary, &error), &error);
    uint64_t iterations = RUN_NS / ((summary.ops - summary.views) * (kernel_ns + 200) + 1) + 4;
    for (int rule = 0; rule < 2; rule++) {
        need(tarn_session_create(subject->plan[rule], tarn_device_host(NULL), NULL, &session[rule],
                                 &error),
             &error);
        tarn_session_bind_default(session[rule], spin, &kernel_ns);
        run_ms(session[rule], 2);
    }
    for (int i = 0; i < 2 * RUNS; i++) ms[i % 2][i / 2] = run_ms(session[i % 2], iterations);
    for (int rule = 0; rule < 2; rule++) {
        tarn_session_destroy(session[rule]);
        qsort(ms[rule], RUNS, sizeof *ms[rule], compare_doubles);
    }
    printf(" %.3f (%.3f..%.3f) | %.3f (%.3f..%.3f) |", ms[1][RUNS / 2], ms[1][RUNS / 4],
           ms[1][3 * RUNS / 4], ms[0][RUNS / 2], ms[0][RUNS / 4], ms[0][3 * RUNS / 4]);
}

/* ---- The table ---- */

static void print_head(const uint64_t *walls, int walls_count)
{
    printf("| graph | streams | ops | storages | waits inside | simple | refined | ms to refine | "
           "model, simple | model, refined |");
    for (int i = 0; i < walls_count; i++)
        printf(" %.0f us, simple: ms | %.0f us, refined: ms |", (double)walls[i] * 1e-3,
               (double)walls[i] * 1e-3);
    printf("\n|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|");
    for (int i = 0; i < walls_count; i++) printf("---:|---:|");
    printf("\n");
}

static void print_row(const struct subject *subject, const uint64_t *walls, int walls_count)
{
    struct tarn_plan_summary refined, simple;
    struct tarn_graph_summary graph;
    struct tarn_error error;
    tarn_plan_summarize(subject->plan[TARN_BOUNDARY_REFINED], &refined);
    tarn_plan_summarize(subject->plan[TARN_BOUNDARY_SIMPLE], &simple);
    need(tarn_graph_summarize(subject->graph, &graph, &error), &error);
    printf("| %s | %u | %u | %u | %u | %u | %u | %.3f | %.1f | %.1f |", subject->name,
           graph.streams, graph.ops - graph.views, graph.storages, refined.waits,
           simple.boundary_waits, refined.boundary_waits,
           refining_ms(subject->plan[TARN_BOUNDARY_REFINED]),
           modelled_units(subject->plan[TARN_BOUNDARY_SIMPLE]),
           modelled_units(subject->plan[TARN_BOUNDARY_REFINED]));
    for (int i = 0; i < walls_count; i++) print_wall(subject, walls[i]);
    printf("\n");
    fflush(stdout);
}

int main(int argc, char **argv)
{
    uint64_t walls[WALLS];
    int walls_count = 0, next = 1;
    for (; next + 1 < argc && strcmp(argv[next], "--wall") == 0 && walls_count < WALLS; next += 2)
        walls[walls_count++] = strtoull(argv[next + 1], NULL, 10);
    if (next >= argc) {
        fprintf(stderr, "boundary_bench [--wall NS]... FILE|KIND:STORAGESxSTREAMS...\n");
        return 2;
    }
    print_head(walls, walls_count);
    for (; next < argc; next++) {
        struct subject subject;
        subject_init(&subject, argv[next]);
        print_row(&subject, walls, walls_count);
        subject_finish(&subject);
    }
    return 0;
}
