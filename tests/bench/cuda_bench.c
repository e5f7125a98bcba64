/* What a session costs on a CUDA device, and what it saves:
 *
 *     cuda_bench [--stand-in LIBRARY | --arena] GRAPH...
 *
 * Per graph: host time to enqueue one iteration, bare (the same kernels without Tarn), direct and
 * captured; wall time of iterations of 1 us and 10 us kernels against the modelled critical path,
 * by both boundary rules; host allocations and device memory taken by steady iterations; the arena
 * beside what a caching allocator reserves for the same tensors (this alone, which needs no device,
 * with --arena). Made for a machine with a GPU; times on the stand-in only show that the program
 * runs. Medians; one op is one kernel of one thread. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "caching_allocator.h"
#include "executor_sim.h"
#include "runtime/cuda/device.h"
#include "runtime/state/event_count.h"
#include "streams/plan/program.h"
#include "tarn.h"

enum { ROUNDS_MAX = 21, STAND_IN_ROUNDS = 1, WALL_ITERATIONS = 20 };

/* ---- Host allocations, counted: the link sends them here ---- */

static atomic_uint_fast64_t allocations;

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *block, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *block, size_t size);

void *__wrap_malloc(size_t size)
{
    atomic_fetch_add(&allocations, 1);
    return __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    atomic_fetch_add(&allocations, 1);
    return __real_calloc(count, size);
}

void *__wrap_realloc(void *block, size_t size)
{
    atomic_fetch_add(&allocations, 1);
    return __real_realloc(block, size);
}

/* ---- What is measured ---- */

struct bench {
    struct tarn_device device;
    struct tarn_graph *graph;
    struct tarn_plan *plan;
    struct tarn_session *session;
    uint64_t spin_ns;
    uint32_t rounds; /* of which the median is told */
};

static void require(enum tarn_status status, const struct tarn_error *error)
{
    if (status == TARN_OK) return;
    fprintf(stderr, "cuda_bench: %s\n", error->text);
    exit((int)status);
}

static void require_code(const struct bench *bench, int code)
{
    if (code == 0) return;
    fprintf(stderr, "cuda_bench: %s\n", bench->device.table->error_text(bench->device.self, code));
    exit(TARN_DEVICE);
}

static int kernel(void *user, const struct tarn_call *call)
{
    const struct bench *bench = user;
    return tarn_device_cuda_spin(bench->device, call->queue, bench->spin_ns);
}

static void open_session(struct bench *bench, uint32_t unroll, uint64_t spin_ns)
{
    struct tarn_error error;
    bench->spin_ns = spin_ns;
    require(tarn_session_create(
                bench->plan, bench->device,
                TARN_SESSION_OPTIONS(.capture = unroll > 0, .unroll = unroll, .depth = 64),
                &bench->session, &error),
            &error);
    tarn_session_bind_default(bench->session, kernel, bench);
}

static void close_session(struct bench *bench)
{
    tarn_session_destroy(bench->session);
    bench->session = NULL;
}

/* Milliseconds of the host to enqueue, and until the device has ended. */
struct span {
    double submit_ms, wall_ms;
};

static struct span run(struct bench *bench, uint64_t iterations)
{
    struct tarn_error error;
    tarn_ticket ticket;
    uint64_t begin = tarn_now_ns();
    require(tarn_session_submit(bench->session, iterations, &ticket, &error), &error);
    uint64_t submitted = tarn_now_ns();
    require(tarn_session_wait(bench->session, ticket, TARN_FOREVER, &error), &error);
    return (struct span){(double)(submitted - begin) * 1e-6,
                         (double)(tarn_now_ns() - begin) * 1e-6};
}

static int by_size(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

static double median(double *values, uint32_t count)
{
    qsort(values, count, sizeof *values, by_size);
    return values[count / 2];
}

static double host_ms(struct bench *bench, uint32_t unroll)
{
    double times[ROUNDS_MAX];
    open_session(bench, unroll, 0);
    run(bench, 3); /* modules are loaded, blocks captured */
    for (uint32_t i = 0; i < bench->rounds; i++) times[i] = run(bench, 1).submit_ms;
    close_session(bench);
    return median(times, bench->rounds);
}

static double wall_ms(struct bench *bench, uint32_t unroll, uint64_t spin_ns)
{
    double times[ROUNDS_MAX];
    open_session(bench, unroll, spin_ns);
    run(bench, WALL_ITERATIONS);
    for (uint32_t i = 0; i < bench->rounds; i++)
        times[i] = run(bench, WALL_ITERATIONS).wall_ms / WALL_ITERATIONS;
    close_session(bench);
    return median(times, bench->rounds);
}

/* ---- The same launches, and nothing of Tarn's around them ---- */

static void drain(const struct bench *bench, void *const *queues, uint32_t count)
{
    const struct tarn_device_table *table = bench->device.table;
    for (uint32_t s = 0; s < count; s++) {
        void *event;
        bool done = false;
        require_code(bench, table->event_create(bench->device.self, &event));
        require_code(bench, table->event_record(bench->device.self, event, queues[s]));
        while (!done) require_code(bench, table->event_query(bench->device.self, event, &done));
        table->event_destroy(bench->device.self, event);
    }
}

static double enqueue_bare(const struct bench *bench, const struct tarn_program *program,
                           void *const *queues)
{
    struct tarn_cuda *cuda = bench->device.self;
    struct tarn_cuda_visit visit = tarn_cuda_enter(cuda);
    uint64_t begin = tarn_now_ns();
    for (uint32_t i = 0; i < program->steps_count && !visit.code; i++)
        visit.code = tarn_cuda_spin(&cuda->check, visit.api,
                                    queues[program->steps[program->order[i]].stream], 0);
    uint64_t end = tarn_now_ns();
    require_code(bench, tarn_cuda_leave(&visit));
    return (double)(end - begin) * 1e-6;
}

static double bare_ms(struct bench *bench, const struct tarn_program *program)
{
    const struct tarn_device_table *table = bench->device.table;
    void **queues = calloc((size_t)program->streams_count + 1, sizeof(void *));
    double times[ROUNDS_MAX];
    if (!queues) exit(TARN_SYSTEM);
    for (uint32_t s = 0; s < program->streams_count; s++)
        require_code(bench,
                     table->queue_create(bench->device.self,
                                         &(struct tarn_queue_info){.name = "bare"}, &queues[s]));
    enqueue_bare(bench, program, queues);
    for (uint32_t i = 0; i < bench->rounds; i++) {
        drain(bench, queues, program->streams_count);
        times[i] = enqueue_bare(bench, program, queues);
    }
    drain(bench, queues, program->streams_count);
    for (uint32_t s = 0; s < program->streams_count; s++)
        table->queue_destroy(bench->device.self, queues[s]);
    free(queues);
    return median(times, bench->rounds);
}

/* ---- Memory ---- */

static uint64_t available(const struct bench *bench)
{
    struct tarn_memory_limits limits;
    require_code(bench, bench->device.table->memory_limits(bench->device.self, &limits));
    return limits.available;
}

static void print_steady(struct bench *bench, uint32_t unroll, const char *name)
{
    open_session(bench, unroll, 0);
    run(bench, 10);
    uint64_t bytes = available(bench), before = atomic_load(&allocations);
    run(bench, 100);
    uint64_t made = atomic_load(&allocations) - before, left = available(bench);
    printf("| steady iterations, %s: host allocations by Tarn, device bytes taken | %llu, %lld |\n",
           name, (unsigned long long)made, (long long)(bytes - left));
    close_session(bench);
}

static void print_arena(const struct bench *bench, const char *format)
{
    struct tarn_plan_summary summary;
    tarn_plan_summarize(bench->plan, &summary);
    double arena = (double)summary.footprint;
    double reserved = (double)caching_allocator_replay(bench->graph, 2);
    printf(format, arena * 1e-6, reserved * 1e-6, arena > 0 ? reserved / arena : 0);
    fflush(stdout);
}

/* ---- Tables ---- */

static void print_walls(struct bench *bench, const struct tarn_program *program,
                        enum tarn_boundary boundary)
{
    const char *rule = boundary == TARN_BOUNDARY_SIMPLE ? "simple" : "refined";
    static const uint64_t spins_ns[] = {1000, 10000};
    for (size_t i = 0; i < 2; i++) {
        double op_ns = (double)spins_ns[i];
        double path_ms = executor_sim_run(program, bench->graph, program->streams_count, 1, op_ns);
        path_ms *= 1e-6;
        double direct = wall_ms(bench, 0, spins_ns[i]), captured = wall_ms(bench, 1, spins_ns[i]);
        double unrolled = wall_ms(bench, 4, spins_ns[i]);
        printf("| %s boundary, kernels of %.0f us: critical path, direct, captured, unrolled 4: ms "
               "| %.3f, %.3f, %.3f, %.3f |\n",
               rule, op_ns * 1e-3, path_ms, direct, captured, unrolled);
        fflush(stdout);
    }
}

static void plan(struct bench *bench, const char *path, enum tarn_boundary boundary)
{
    struct tarn_error error;
    require(tarn_graph_load(path, NULL, &bench->graph, &error), &error);
    require(tarn_plan_create(bench->graph, TARN_PLAN_OPTIONS(.boundary = boundary), &bench->plan,
                             &error),
            &error);
}

static void forget(struct bench *bench)
{
    tarn_plan_destroy(bench->plan);
    tarn_graph_destroy(bench->graph);
}

static void measure(struct bench *bench, const char *path)
{
    struct tarn_program program;
    for (enum tarn_boundary rule = TARN_BOUNDARY_REFINED; rule <= TARN_BOUNDARY_SIMPLE; rule++) {
        plan(bench, path, rule);
        require(tarn_program_init(&program, bench->plan, NULL),
                &(struct tarn_error){.text = "no memory"});
        if (rule == TARN_BOUNDARY_REFINED) {
            printf("\n| %s | %u kernels |\n|---|---:|\n", tarn_graph_name(bench->graph),
                   program.steps_count);
            print_arena(bench,
                        "| arena, caching allocator (simulated): MB, times | %.1f, %.1f, %.2f |\n");
            double bare = bare_ms(bench, &program), direct = host_ms(bench, 0);
            printf("| host ms per iteration: bare, direct, captured | %.3f, %.3f, %.3f |\n"
                   "| direct over bare | %.2f |\n",
                   bare, direct, host_ms(bench, 1), direct / bare);
            print_steady(bench, 0, "direct");
            print_steady(bench, 1, "captured");
        }
        print_walls(bench, &program, rule);
        tarn_program_finish(&program);
        forget(bench);
    }
}

static int compare_arenas(struct bench *bench, char **paths)
{
    printf(
        "| graph | arena MB | caching allocator (simulated) MB | times |\n|---|---:|---:|---:|\n");
    for (; *paths; paths++) {
        plan(bench, *paths, TARN_BOUNDARY_REFINED);
        printf("| %s ", tarn_graph_name(bench->graph));
        print_arena(bench, "| %.1f | %.1f | %.2f |\n");
        forget(bench);
    }
    return 0;
}

int main(int count, char **words)
{
    struct bench bench = {.rounds = ROUNDS_MAX};
    struct tarn_error error;
    if (count > 2 && strcmp(words[1], "--arena") == 0) return compare_arenas(&bench, words + 2);
    bool stands_in = count > 2 && strcmp(words[1], "--stand-in") == 0;
    const char *library = stands_in ? words[2] : NULL;
    if (count < 2 + 2 * stands_in) {
        fprintf(stderr, "usage: cuda_bench [--stand-in LIBRARY | --arena] GRAPH...\n");
        return TARN_USAGE;
    }
    if (stands_in) bench.rounds = STAND_IN_ROUNDS;
    require(tarn_device_cuda_open(TARN_CUDA_OPTIONS(.library = library), &bench.device, &error),
            &error);
    printf(stands_in ? "**Stand-in: not a GPU measurement.**\n" : "CUDA device 0.\n");
    for (int i = stands_in ? 3 : 1; i < count; i++) measure(&bench, words[i]);
    tarn_device_cuda_close(bench.device);
    return 0;
}
