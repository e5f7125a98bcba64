/* Data-parallel training: Tarn's memory and execution, oneDNN's kernels, MPI's communication.
 * Idea: a session has the plan's arena and nothing else; what lasts is bound to the trainer's own
 * memory. Each step is one iteration, submitted ahead of time, so that one step's copies and
 * updates overlap with the next step where the plan allows it.
 * Cost: nothing is allocated while it runs. */
#include <omp.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "train.h"

/* This machine's cores, wherever the system puts the threads: ranks may share them. */
/* Stands for a link to a second memory: no copy is faster than --offload says. */
static int copy_slowly(void *self, void *queue, void *to, const void *from, uint64_t size)
{
    const double end = omp_get_wtime() + (double)size / (options.offload * 1e6);
    (void)self, (void)queue;
    memcpy(to, from, size);
    while (omp_get_wtime() < end) nanosleep(&(struct timespec){.tv_nsec = 1000}, NULL);
    return 0;
}

static struct tarn_device cores(void)
{
    static const struct tarn_host_options host = {.struct_size = sizeof host,
                                                  .binding = TARN_BIND_NONE};
    static struct tarn_device_table linked;
    struct tarn_device device = tarn_device_host(&host);
    linked = *device.table;
    linked.copy_enqueue = copy_slowly;
    if (options.offload) device.table = &linked;
    return device;
}

void program_open(struct program *p, struct tarn_arena *arena, tarn_kernel run, void *user)
{
    /* A stream that waits for other ranks has a thread of its own. */
    const bool waits = p->tape.training && (ranks > 1 || options.wire);
    const struct tarn_list blocking = {&p->tape.communication, waits};
    TARN(tarn_session_create(p->plan, cores(),
                             TARN_SESSION_OPTIONS(.arena = arena, .binds_persistent = !arena,
                                                  .blocking = blocking,
                                                  .flight = options.trace ? 8192 : 0),
                             &p->session, &error));
    TARN(tarn_session_bind_default(p->session, run, user));
    for (tarn_tensor t = 0; t < TENSORS_MAX; t++)
        if (p->tape.memory[t])
            TARN(tarn_session_bind_memory(p->session, t, p->tape.memory[t], &error));
}

enum { AHEAD = 4 }; /* steps that are submitted and not finished, at most */

void program_run(struct program *p, uint64_t steps)
{
    const uint64_t patience = (uint64_t)options.deadline * 1000000000;
    tarn_ticket tickets[AHEAD];
    for (uint64_t i = 0; i < steps + AHEAD; i++) {
        if (i >= AHEAD) TARN(tarn_session_wait(p->session, tickets[i % AHEAD], patience, &error));
        if (i < steps) TARN(tarn_session_submit(p->session, 1, &tickets[i % AHEAD], &error));
    }
}

/* The losses of all shards, in their order, whatever rank had them. */
static void print_curve(const struct program *p)
{
    const size_t steps = (size_t)options.steps, shards = (size_t)options.shards;
    ranks_gather(curve, steps * shards * 2);
    if (rank > 0) return;
    for (size_t i = 0; i < steps; i++) {
        double loss = 0, right = 0;
        for (size_t s = 0; s < shards; s++)
            loss += (double)curve[i * shards + s][0], right += (double)curve[i * shards + s][1];
        if (i % (steps / 8 + 1) == 0 || i + 1 == steps)
            printf("step %5llu  loss %.4f  right %4.1f %%\n", (unsigned long long)(first_step + i),
                   loss / rows_of_step(), 100 * right / rows_of_step());
    }
    printf("bits: losses %016llx, parameters %016llx\n",
           (unsigned long long)digest(curve, steps * shards * sizeof *curve),
           (unsigned long long)state_digest(&p->tape));
}

/* From options to a plan. */
static void prepare(struct program *p)
{
    const bool weighs_time = options.budget || options.couple || options.reorder;
    p->graph = step_build(&p->tape);
    agree_on_graph(p->graph);
    curve = zeros((size_t)options.steps * (size_t)options.shards, sizeof *curve);
    if (weighs_time || options.graph || options.save_graph) set_costs(p);
    if (options.save_graph && rank == 0)
        TARN(tarn_graph_save(p->graph, options.save_graph, &error));
    if (rank == 0)
        printf("%s: %d steps of %d shards of %d, %d ranks\n", options.network, options.steps,
               options.shards, options.batch, ranks);
    agree_on_plan(p);
    state_reset(&p->tape);
    if (options.resume) checkpoint_read(&p->tape);
}

/* Through all steps, in an arena that is the evaluation's, too. */
static void train(struct program *p, struct program *evaluation)
{
    struct tarn_plan *plans[] = {p->plan, evaluation->plan};
    struct heap *heap = options.has_arena ? NULL : heap_create(p, options.frees);
    struct tarn_arena *arena;
    struct tarn_plan_summary summary;
    TARN(tarn_arena_create(plans, 2, cores(), TARN_ARENA_OPTIONS(.binds_persistent = true), &arena,
                           &error));
    program_open(p, arena, heap ? heap_run : tape_run, heap ? (void *)heap : &p->tape);
    const double begin = omp_get_wtime();
    if (options.check_gradient)
        gradient_check(p);
    else
        program_run(p, (uint64_t)options.steps);
    const double seconds = omp_get_wtime() - begin;
    tarn_plan_summarize(p->plan, &summary);
    const uint64_t bytes = heap ? heap_destroy(heap) : summary.footprint;
    if (options.checkpoint && rank == 0)
        checkpoint_write(&p->tape, first_step + (uint64_t)options.steps);
    print_curve(p);
    if (rank == 0) {
        evaluation_run(evaluation, arena);
        printf("%s: %llu bytes, %.3f ms a step\n", options.memory, (unsigned long long)bytes,
               seconds * 1e3 / options.steps);
        if (options.trace) TARN(tarn_session_save_trace(p->session, options.trace, &error));
    }
    tarn_session_destroy(p->session);
    tarn_arena_destroy(arena);
}

int main(int argc, char **argv)
{
    static struct program training, evaluation;
    ranks_begin(&argc, &argv);
    options_parse(argc, argv);
    data_load();
    primitives_begin();
    prepare(&training);
    evaluation_plan(&evaluation);
    train(&training, &evaluation);
    tarn_plan_destroy(training.plan);
    tarn_plan_destroy(evaluation.plan);
    tarn_graph_destroy(training.graph);
    ranks_end();
    return 0;
}
