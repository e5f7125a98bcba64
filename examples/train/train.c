/* Idea: a session has the plan's arena and nothing else; what lasts is bound to the trainer's own
 * memory. Each step is one iteration, submitted ahead of time, so that one step's copies and
 * updates overlap with the next step where the plan allows it. Cost: nothing is allocated while it
 * runs. */
#include "train.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fail.h"
#include "serial.h"

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- A session ---- */

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

void training_begin(struct training *t, struct tarn_plan *other)
{
    const struct options *o = t->step.options;
    if (strcmp(o->memory, "arena")) return;
    struct tarn_plan *plans[] = {t->plan, other};
    /* A stream that waits for other ranks has a thread of its own. */
    const struct tarn_list waits = {&t->tape.communication, ranks > 1 || o->wire};
    struct tarn_error error;
    TARN(tarn_arena_create(plans, 2, cores(), TARN_ARENA_OPTIONS(.binds_persistent = true),
                           &t->arena, &error));
    TARN(tarn_session_create(t->plan, cores(),
                             TARN_SESSION_OPTIONS(.arena = t->arena, .blocking = waits,
                                                  .flight = o->trace ? 8192 : 16,
                                                  .flight_line = print_line),
                             &t->session, &error));
    for (tarn_op op = 0; op < t->tape.ops_count; op++)
        TARN(tarn_session_bind(t->session, op, t->tape.kernels[op].run, t->tape.kernels[op].user));
    for (tarn_tensor id = 0; id < t->state.count; id++)
        if (t->state.at[id])
            TARN(tarn_session_bind_memory(t->session, id, t->state.at[id], &error));
    struct tarn_plan_summary summary;
    tarn_plan_summarize(t->plan, &summary);
    t->bytes = summary.footprint;
}

void training_end(struct training *t)
{
    tarn_session_destroy(t->session);
    tarn_arena_destroy(t->arena);
}

/* ---- The steps ---- */

enum { AHEAD = 4 }; /* steps that are submitted and not finished, at most */

static void run_session(struct training *t, uint64_t steps)
{
    const uint64_t patience = (uint64_t)(t->step.options->deadline * 1e9);
    tarn_ticket tickets[AHEAD];
    struct tarn_error error;
    for (uint64_t i = 0; i < steps + AHEAD; i++) {
        if (i >= AHEAD) TARN(tarn_session_wait(t->session, tickets[i % AHEAD], patience, &error));
        if (i < steps) TARN(tarn_session_submit(t->session, 1, &tickets[i % AHEAD], &error));
    }
}

void training_run(struct training *t)
{
    const struct options *o = t->step.options;
    const uint64_t steps = (uint64_t)o->steps, every = o->every ? (uint64_t)o->every : steps;
    struct serial serial = {.graph = tarn_plan_graph(t->plan),
                            .plan = t->plan,
                            .tape = &t->tape,
                            .state = &t->state,
                            .frees = !strcmp(o->memory, "free-at-last-use")};
    if (!t->session) serial_begin(&serial);
    for (uint64_t done = 0, n; done < steps; done += n) {
        n = every < steps - done ? every : steps - done;
        double begin = now();
        if (t->session)
            run_session(t, n);
        else
            serial_run(&serial, n);
        t->seconds += now() - begin;
        if (o->checkpoint && rank == 0)
            checkpoint_write(o->checkpoint, &t->state, &t->tape, o, t->step.first + done + n);
    }
    if (t->session) return;
    t->bytes = serial.most;
    serial_end(&serial);
}
