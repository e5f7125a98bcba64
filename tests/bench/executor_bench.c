/* What the executor costs, in one program beside what else could run the graph.
 *
 *     executor_bench GRAPH...
 *
 * First table: empty kernels, nanoseconds per op (median of runs), against OpenMP tasks with
 * `depend` and StarPU tasks, and against the machine's own prices: an indirect call, a signal
 * between two cores, waking a sleeper. Second table: kernels of 10 µs, wall against a simulation of
 * the executor's own policy and against max(critical path, work / cores). The sessions' device
 * hands out reserved addresses only: these kernels touch no memory, so any graph can be measured.
 */
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "executor_rivals.h"
#include "executor_sim.h"
#include "runtime/state/event_count.h"
#include "runtime/state/state.h"
#include "runtime/state/topology.h"
#include "support/required.h"
#include "support/unshared_plan.h"
#include "tarn.h"

enum { RUNS = 31, OPS_PER_RUN = 500000, SPIN_NS = 10000 };

/* ---- Medians ---- */

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, size_t count)
{
    qsort(values, count, sizeof *values, compare_doubles);
    return values[count / 2];
}

/* ---- A device of addresses only ---- */

static int describe_addresses(void *self, struct tarn_memory_limits *limits)
{
    (void)self;
    *limits = (struct tarn_memory_limits){
        .alignment = 4096, .allocation_max = UINT64_MAX, .available = UINT64_MAX};
    return 0;
}

static int reserve_addresses(void *self, uint64_t size, void **memory)
{
    (void)self;
    *memory = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return *memory == MAP_FAILED;
}

static void release_addresses(void *self, void *memory, uint64_t size)
{
    (void)self;
    munmap(memory, size);
}

static int copy_nothing_in(void *self, void *device, const void *host, uint64_t size)
{
    (void)self, (void)device, (void)host, (void)size;
    return 0;
}

static int copy_nothing_out(void *self, void *host, const void *device, uint64_t size)
{
    (void)self, (void)host, (void)device, (void)size;
    return 0;
}

static int fill_nothing(void *self, void *device, unsigned char byte, uint64_t size)
{
    (void)self, (void)device, (void)byte, (void)size;
    return 0;
}

static const char *explain_error(void *self, int code)
{
    (void)self, (void)code;
    return "no addresses left";
}

static enum tarn_error_class classify_error(void *self, int code)
{
    (void)self, (void)code;
    return TARN_ERROR_OUT_OF_MEMORY;
}

static const struct tarn_device_table address_table = {
    .struct_size = sizeof(struct tarn_device_table),
    .abi_version = TARN_DEVICE_ABI,
    .name = "addresses",
    .memory_limits = describe_addresses,
    .memory_create = reserve_addresses,
    .memory_destroy = release_addresses,
    .copy_in = copy_nothing_in,
    .copy_out = copy_nothing_out,
    .fill = fill_nothing,
    .error_text = explain_error,
    .error_class = classify_error,
};

/* ---- Kernels ---- */

static int do_nothing(void *user, const struct tarn_call *call)
{
    (void)user, (void)call;
    return 0;
}

static int spin(void *user, const struct tarn_call *call)
{
    (void)user, (void)call;
    uint64_t began = tarn_now_ns();
    while (tarn_now_ns() - began < SPIN_NS) continue;
    return 0;
}

/* ---- The machine's own prices ---- */

static double price_of_call(tarn_kernel kernel, uint32_t calls)
{
    double values[RUNS];
    for (uint32_t r = 0; r < RUNS; r++) {
        tarn_kernel volatile target = kernel;
        uint64_t began = tarn_now_ns();
        for (uint32_t i = 0; i < calls; i++) target(NULL, NULL);
        values[r] = (double)(tarn_now_ns() - began) / calls;
    }
    return median(values, RUNS);
}

struct pair {
    struct tarn_topology *topology;
    _Alignas(64) atomic_uint ping;
    _Alignas(64) atomic_uint pong;
    _Alignas(64) struct tarn_event_count events;
    _Atomic uint64_t woken_at;
};

enum { ROUNDS = 20000, WAKES = 300 };

static void *answer_signals(void *argument)
{
    struct pair *pair = argument;
    tarn_topology_pin(pair->topology, pthread_self(), TARN_BIND_CORE, 1,
                      tarn_topology_cores(pair->topology));
    for (unsigned i = 1; i <= ROUNDS; i++) {
        while (atomic_load(&pair->ping) < i) continue;
        atomic_store(&pair->pong, i);
    }
    return NULL;
}

static double price_of_signal(struct pair *pair)
{
    pthread_t other;
    pthread_create(&other, NULL, answer_signals, pair);
    uint64_t began = 0;
    for (unsigned i = 1; i <= ROUNDS; i++) {
        if (i == ROUNDS / 2) began = tarn_now_ns();
        atomic_store(&pair->ping, i);
        while (atomic_load(&pair->pong) < i) continue;
    }
    double price = (double)(tarn_now_ns() - began) / (2.0 * (ROUNDS / 2 + 1));
    pthread_join(other, NULL);
    return price;
}

static void *sleep_often(void *argument)
{
    struct pair *pair = argument;
    tarn_topology_pin(pair->topology, pthread_self(), TARN_BIND_CORE, 1,
                      tarn_topology_cores(pair->topology));
    for (unsigned i = 0; i < WAKES; i++) {
        while (tarn_event_count_read(&pair->events) == i)
            tarn_event_count_sleep(&pair->events, i, 1, UINT64_MAX);
        atomic_store(&pair->woken_at, tarn_now_ns());
    }
    return NULL;
}

static double price_of_wake(struct pair *pair)
{
    pthread_t other;
    double values[WAKES];
    pthread_create(&other, NULL, sleep_often, pair);
    for (unsigned i = 0; i < WAKES; i++) {
        usleep(300); /* surely asleep */
        uint64_t began = tarn_now_ns();
        atomic_store(&pair->woken_at, 0);
        tarn_event_count_wake(&pair->events, 1, 1);
        while (atomic_load(&pair->woken_at) == 0) continue;
        values[i] = (double)(atomic_load(&pair->woken_at) - began);
    }
    pthread_join(other, NULL);
    return median(values, WAKES);
}

static void print_prices(uint32_t cores)
{
    static struct pair pair;
    pair.topology = tarn_topology_create(NULL);
    printf("indirect call %.1f ns", price_of_call(do_nothing, 1000000));
    if (cores > 1) {
        tarn_topology_pin(pair.topology, pthread_self(), TARN_BIND_CORE, 0, cores);
        printf(", cross-core signal %.0f ns, waking a sleeper %.1f us", price_of_signal(&pair),
               price_of_wake(&pair) / 1000);
    }
    printf("\n\n");
    tarn_topology_destroy(pair.topology);
}

/* ---- One graph ---- */

struct subject {
    const char *name;
    struct tarn_graph *graph;
    struct tarn_plan *plan;
    struct tarn_session *session;
    struct rival_graph rival;
    uint32_t ops, workers;
};

static void check(enum tarn_status status, const struct tarn_error *error)
{
    if (!status) return;
    fprintf(stderr, "executor_bench: %s\n", error->text);
    exit((int)status);
}

static struct subject open_subject(const char *path, uint32_t cores)
{
    struct subject subject = {.name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path};
    struct tarn_error error;
    check(tarn_graph_load(path, NULL, &subject.graph, &error), &error);
    subject.plan = unshared_plan(subject.graph, 512);
    struct tarn_device device = {&address_table, NULL};
    check(tarn_session_create(subject.plan, device, NULL, &subject.session, &error), &error);
    rival_graph_init(&subject.rival, subject.session->program, subject.session->calls);
    subject.ops = subject.session->program->steps_count;
    uint32_t streams = 0;
    for (uint32_t s = 0; s < subject.graph->streams_count; s++)
        streams += subject.plan->list_begin[s] != subject.plan->list_begin[s + 1];
    subject.workers = cores < streams ? cores : streams;
    return subject;
}

static void close_subject(struct subject *subject)
{
    tarn_session_destroy(subject->session);
    rival_graph_finish(&subject->rival);
    tarn_plan_destroy(subject->plan);
    tarn_graph_destroy(subject->graph);
}

static double time_tarn(struct subject *subject, uint64_t iterations)
{
    struct tarn_error error;
    tarn_ticket ticket;
    uint64_t began = tarn_now_ns();
    check(tarn_session_submit(subject->session, iterations, &ticket, &error), &error);
    check(tarn_session_wait(subject->session, ticket, TARN_FOREVER, &error), &error);
    return (double)(tarn_now_ns() - began);
}

static double time_openmp(struct subject *subject, uint64_t iterations)
{
    uint64_t began = tarn_now_ns();
    rival_openmp_run(&subject->rival, iterations, subject->workers, do_nothing);
    return (double)(tarn_now_ns() - began);
}

static double time_starpu(struct subject *subject, uint64_t iterations)
{
    uint64_t began = tarn_now_ns();
    rival_starpu_run(&subject->rival, iterations, do_nothing);
    return (double)(tarn_now_ns() - began);
}

/* Median wall of `runs` runs after a warm-up, in nanoseconds. */
static double measure(struct subject *subject, double (*timed)(struct subject *, uint64_t),
                      uint64_t iterations, size_t runs)
{
    double values[RUNS];
    timed(subject, 1 + iterations / 10);
    for (size_t r = 0; r < runs; r++) values[r] = timed(subject, iterations);
    return median(values, runs);
}

static uint64_t iterations_for(const struct subject *subject, uint32_t ops)
{
    return 1 + ops / subject->ops;
}

static void bind(struct subject *subject, tarn_kernel kernel)
{
    tarn_session_bind_default(subject->session, kernel, NULL);
}

/* ---- Tables ---- */

static void print_empty_row(struct subject *subject, bool starpu)
{
    bind(subject, do_nothing);
    uint64_t many = iterations_for(subject, OPS_PER_RUN), few = iterations_for(subject, 10000);
    double ops = subject->ops;
    double tarn = measure(subject, time_tarn, many, RUNS) / (ops * (double)many);
    double single = measure(subject, time_tarn, 1, RUNS) / ops;
    printf("%-36s %6u %7u %6u %8.1f %8.1f", subject->name, subject->ops, subject->plan->waits_count,
           subject->graph->streams_count, tarn, single);
    if (rival_openmp_is_here()) {
        double task = measure(subject, time_openmp, few, 7) / (ops * (double)few);
        printf(" %8.0f %7.0fx", task, task / tarn);
    }
    if (starpu) {
        double task = measure(subject, time_starpu, few, 5) / (ops * (double)few);
        printf(" %8.0f %7.0fx", task, task / tarn);
    }
    printf("\n");
    fflush(stdout);
}

static void print_spin_row(struct subject *subject)
{
    bind(subject, spin);
    const uint64_t iterations = 3;
    double op_ns = price_of_call(spin, 1000); /* with the interrupts that hit any long run */
    double wall = measure(subject, time_tarn, iterations, 5);
    const struct tarn_program *program = subject->session->program;
    double policy = executor_sim_run(program, subject->graph, subject->workers, iterations, op_ns);
    double critical =
        executor_sim_run(program, subject->graph, program->streams_count, iterations, op_ns);
    double work = op_ns * subject->ops * (double)iterations / subject->workers;
    double bound = critical > work ? critical : work;
    printf("%-36s %9.2f %9.2f %+8.2f%% %9.2f %+8.2f%%\n", subject->name, wall * 1e-6, policy * 1e-6,
           100 * (wall / policy - 1), bound * 1e-6, 100 * (wall / bound - 1));
    fflush(stdout);
}

int main(int count, char **paths)
{
    struct tarn_topology *topology = tarn_topology_create(NULL);
    uint32_t cores = tarn_topology_cores(topology);
    tarn_topology_destroy(topology);
    struct subject *subjects = calloc((size_t)count, sizeof *subjects);
    assert(subjects);
    printf("%u cores; medians\n", cores);
    for (int i = 1; i < count; i++) subjects[i] = open_subject(paths[i], cores);

    bool starpu = rival_starpu_start(cores);
    if (!starpu && is_required("starpu")) {
        fprintf(stderr, "executor_bench: StarPU was asked for, and does not start\n");
        return 1;
    }
    printf("empty kernels, ns per op\n%-36s %6s %7s %6s %8s %8s", "graph", "ops", "waits", "strms",
           "tarn", "1 by 1");
    if (rival_openmp_is_here()) printf(" %8s %8s", "openmp", "ratio");
    if (starpu) printf(" %8s %8s", "starpu", "ratio");
    printf("\n");
    for (int i = 1; i < count; i++) print_empty_row(&subjects[i], starpu);
    if (starpu) rival_starpu_stop();
    print_prices(cores);

    printf("kernels of 10 us, wall of 3 iterations in ms\n%-36s %9s %9s %9s %9s %9s\n", "graph",
           "wall", "policy", "over", "bound", "over");
    for (int i = 1; i < count; i++) print_spin_row(&subjects[i]);
    for (int i = 1; i < count; i++) close_subject(&subjects[i]);
    free(subjects);
    return 0;
}
