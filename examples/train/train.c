/* Data-parallel training: Tarn's memory and execution, oneDNN's kernels, MPI's communication.
 * Idea: a session has the plan's arena and nothing else; what lasts is bound to the trainer's own
 * memory. Each step is one iteration, submitted ahead of time, so that one step's copies and
 * updates overlap with the next step where the plan allows it.
 * Cost: nothing is allocated while it runs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "train.h"

double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void print_line(void *user, const char *line)
{
    (void)user;
    fprintf(stderr, "train: rank %d: %s\n", rank, line);
}

struct tarn_device cores(void)
{
    static const struct tarn_host_options host = {.struct_size = sizeof host, .unpinned = true};
    return tarn_device_host(&host);
}

void bind_kernels(struct tarn_session *session, const struct tape *tape)
{
    struct tarn_error error;
    for (tarn_op op = 0; op < tape->ops_count; op++)
        TARN(tarn_session_bind(session, op, tape->kernels[op].run, tape->kernels[op].user));
}

static void begin(struct training *t, struct tarn_plan *other)
{
    if (strcmp(options.memory, "arena")) return;
    struct tarn_plan *plans[] = {t->plan, other};
    /* A stream that waits for other ranks has a thread of its own. */
    const struct tarn_list waits = {&t->tape.communication, ranks > 1 || options.wire};
    struct tarn_error error;
    TARN(tarn_arena_create(plans, 2, cores(), TARN_ARENA_OPTIONS(.binds_persistent = true),
                           &t->arena, &error));
    TARN(tarn_session_create(t->plan, cores(),
                             TARN_SESSION_OPTIONS(.arena = t->arena, .blocking = waits,
                                                  .flight = options.trace ? 8192 : 16,
                                                  .flight_line = print_line),
                             &t->session, &error));
    bind_kernels(t->session, &t->tape);
    for (tarn_tensor id = 0; id < t->state.count; id++)
        if (t->state.at[id])
            TARN(tarn_session_bind_memory(t->session, id, t->state.at[id], &error));
    struct tarn_plan_summary summary;
    tarn_plan_summarize(t->plan, &summary);
    t->bytes = summary.footprint;
}

enum { AHEAD = 4 }; /* steps that are submitted and not finished, at most */

static void run_session(struct tarn_session *session, uint64_t steps)
{
    const uint64_t patience = (uint64_t)options.deadline * 1000000000;
    tarn_ticket tickets[AHEAD];
    struct tarn_error error;
    for (uint64_t i = 0; i < steps + AHEAD; i++) {
        if (i >= AHEAD) TARN(tarn_session_wait(session, tickets[i % AHEAD], patience, &error));
        if (i < steps) TARN(tarn_session_submit(session, 1, &tickets[i % AHEAD], &error));
    }
}

static void run(struct training *t)
{
    const uint64_t steps = (uint64_t)options.steps;
    const double begin = now();
    if (t->session) {
        run_session(t->session, steps);
    } else {
        struct serial *serial = serial_begin(t, !strcmp(options.memory, "free-at-last-use"));
        serial_run(serial, steps, NULL);
        t->bytes = serial_end(serial);
    }
    t->seconds = now() - begin;
    if (options.checkpoint && rank == 0) checkpoint_write(&t->state, first_step + steps);
}

/* ---- What is printed ---- */

/* The losses of all shards, in their order, whatever rank had them. */
static void print_curve(const struct training *t)
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
           (unsigned long long)digest(0, curve, steps * shards * sizeof *curve),
           (unsigned long long)state_digest(&t->state));
}

/* ---- From options to a plan, and through all steps ---- */

static void prepare(struct training *t)
{
    const bool weighs_time = options.budget || options.couple || options.reorder;
    struct tarn_error error;
    t->graph = step_build(&t->tape);
    agree_on_graph(t->graph);
    state_create(&t->state, t->graph);
    curve = zeros((size_t)options.steps * (size_t)options.shards, sizeof *curve);
    state_reset(&t->state, &t->tape);
    if (weighs_time || options.graph || options.save_graph) set_costs(t);
    if (options.save_graph && rank == 0)
        TARN(tarn_graph_save(t->graph, options.save_graph, &error));
    if (rank == 0)
        printf("%s: %d steps of %d shards of %d, %d ranks, %s\n", options.network, options.steps,
               options.shards, options.batch, ranks, options.optimizer);
    t->plan = agree_on_plan(t->graph);
    state_reset(&t->state, &t->tape);
    if (options.resume) checkpoint_read(&t->state, &t->tape);
}

static void train(struct training *t)
{
    struct tarn_plan *evaluation = evaluation_plan();
    struct tarn_error error;
    begin(t, evaluation);
    if (options.check_gradient) {
        if (!check_gradient(t)) fail(TARN_CHECK_FAILED, "gradients are wrong");
    } else {
        run(t);
        print_curve(t);
        if (rank == 0 && t->session) evaluation_run(t, evaluation);
        if (rank == 0)
            printf("%s: %llu bytes, %.3f ms a step\n", options.memory, (unsigned long long)t->bytes,
                   t->seconds * 1e3 / options.steps);
        if (rank == 0 && t->session && options.trace)
            TARN(tarn_session_save_trace(t->session, options.trace, &error));
    }
    tarn_session_destroy(t->session);
    tarn_arena_destroy(t->arena);
    tarn_plan_destroy(evaluation);
}

int main(int argc, char **argv)
{
    static struct training t;
    ranks_begin(&argc, &argv);
    options_parse(argc, argv);
    data_load();
    primitives_begin();
    prepare(&t);
    train(&t);
    tarn_plan_destroy(t.plan);
    tarn_graph_destroy(t.graph);
    ranks_end();
    return 0;
}
