/* OpenMP: one thread makes a task per op with `depend` on one token per op, as a program that uses
 * OpenMP for a graph does. StarPU: a task per op with explicit task dependencies. Neither knows of
 * streams, so stream order is a dependency as well; both get the minimal waits, not the naive arcs.
 */
#include "executor_rivals.h"

#include <assert.h>
#include <stdlib.h>

static void add_arcs(struct rival_graph *rival, const struct tarn_program *program, uint32_t index,
                     const uint32_t *index_of)
{
    uint32_t step = program->order[index], *end = &rival->begin[index + 1];
    const struct tarn_program_step *own = &program->steps[step];
    *end = rival->begin[index];
    if (step > program->begin[own->stream]) rival->arcs[(*end)++] = index_of[step - 1];
    for (uint32_t i = own->waits_begin; i < own->waits_end; i++) {
        const struct tarn_program_wait *wait = &program->waits[i];
        uint32_t on = program->begin[wait->stream] + wait->place;
        if (!wait->previous) rival->arcs[(*end)++] = index_of[on];
    }
}

void rival_graph_init(struct rival_graph *rival, const struct tarn_program *program,
                      const struct tarn_call *calls)
{
    rival->count = program->steps_count;
    rival->calls = calls;
    rival->ops = malloc(rival->count * sizeof *rival->ops);
    rival->begin = calloc((size_t)rival->count + 1, sizeof *rival->begin);
    rival->arcs = malloc(((size_t)rival->count + program->waits_count) * sizeof *rival->arcs);
    uint32_t *index_of = malloc(rival->count * sizeof *index_of); /* by step */
    assert(rival->ops && rival->begin && rival->arcs && index_of);
    for (uint32_t i = 0; i < rival->count; i++) {
        index_of[program->order[i]] = i;
        rival->ops[i] = program->steps[program->order[i]].op;
        add_arcs(rival, program, i, index_of);
    }
    free(index_of);
}

void rival_graph_finish(struct rival_graph *rival)
{
    free(rival->ops);
    free(rival->begin);
    free(rival->arcs);
}

#ifdef _OPENMP
bool rival_openmp_is_here(void) { return true; }

void rival_openmp_run(const struct rival_graph *rival, uint64_t iterations, uint32_t workers,
                      tarn_kernel kernel)
{
    char *tokens = calloc(rival->count, 1);
    assert(tokens);
#pragma omp parallel num_threads((int)workers)
#pragma omp single
    for (uint64_t k = 0; k < iterations; k++) {
        for (uint32_t v = 0; v < rival->count; v++) {
            const uint32_t *arcs = rival->arcs + rival->begin[v];
            int count = (int)(rival->begin[v + 1] - rival->begin[v]);
            const struct tarn_call *call = &rival->calls[rival->ops[v]];
            (void)count; /* gcc does not count its use below */
                         /* clang-format off */
#pragma omp task firstprivate(call) depend(iterator(i = 0 : count), in : tokens[arcs[i]]) depend(out : tokens[v])
            /* clang-format on */
            kernel(NULL, call);
        }
#pragma omp taskwait
    }
    free(tokens);
}
#else
bool rival_openmp_is_here(void) { return false; }

void rival_openmp_run(const struct rival_graph *rival, uint64_t iterations, uint32_t workers,
                      tarn_kernel kernel)
{
    (void)rival, (void)iterations, (void)workers, (void)kernel;
}
#endif

#ifdef HAVE_STARPU
#include <starpu.h>

struct launch {
    tarn_kernel kernel;
    const struct tarn_call *call;
};

static void run_on_cpu(void *buffers[], void *argument)
{
    (void)buffers;
    const struct launch *launch = argument;
    launch->kernel(NULL, launch->call);
}

bool rival_starpu_start(uint32_t workers)
{
    struct starpu_conf conf;
    starpu_conf_init(&conf);
    conf.ncpus = (int)workers;
    conf.ncuda = conf.nopencl = 0;
    return starpu_init(&conf) == 0;
}

void rival_starpu_stop(void) { starpu_shutdown(); }

static void submit_iteration(const struct rival_graph *rival, struct starpu_codelet *codelet,
                             struct launch *launches, struct starpu_task **tasks)
{
    for (uint32_t v = 0; v < rival->count; v++) {
        tasks[v] = starpu_task_create();
        tasks[v]->cl = codelet;
        tasks[v]->cl_arg = &launches[v];
        tasks[v]->destroy = 0;
        struct starpu_task *earlier[64];
        uint32_t count = 0;
        for (uint32_t i = rival->begin[v]; i < rival->begin[v + 1] && count < 64; i++)
            earlier[count++] = tasks[rival->arcs[i]];
        if (count > 0) starpu_task_declare_deps_array(tasks[v], count, earlier);
        int code = starpu_task_submit(tasks[v]);
        assert(code == 0);
        (void)code;
    }
    starpu_task_wait_for_all();
    for (uint32_t v = 0; v < rival->count; v++) starpu_task_destroy(tasks[v]);
}

void rival_starpu_run(const struct rival_graph *rival, uint64_t iterations, tarn_kernel kernel)
{
    struct starpu_codelet codelet = {.cpu_funcs = {run_on_cpu}, .nbuffers = 0};
    struct launch *launches = malloc(rival->count * sizeof *launches);
    struct starpu_task **tasks = malloc(rival->count * sizeof(struct starpu_task *));
    assert(launches && tasks);
    for (uint32_t v = 0; v < rival->count; v++)
        launches[v] = (struct launch){kernel, &rival->calls[rival->ops[v]]};
    for (uint64_t k = 0; k < iterations; k++) submit_iteration(rival, &codelet, launches, tasks);
    free(launches);
    free(tasks);
}
#else
bool rival_starpu_start(uint32_t workers)
{
    (void)workers;
    return false;
}
void rival_starpu_stop(void) {}
void rival_starpu_run(const struct rival_graph *rival, uint64_t iterations, tarn_kernel kernel)
{
    (void)rival, (void)iterations, (void)kernel;
}
#endif
