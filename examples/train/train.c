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

static void take_arena(struct training *t, const struct tarn_session_options *options,
                       uint64_t room)
{
    struct tarn_session_memory memory;
    struct tarn_error error;
    TARN(tarn_session_memory_size(t->plan, tarn_device_host(NULL), options, &memory, &error));
    t->bytes = memory.arena;
    t->arena_size = memory.size > room ? memory.size : room;
    t->arena_size = (t->arena_size + memory.alignment - 1) / memory.alignment * memory.alignment;
    t->arena = aligned_alloc(memory.alignment, t->arena_size);
    if (!t->arena) fail(TARN_SYSTEM, "no memory for the arena");
}

static void print_line(void *user, const char *line)
{
    (void)user;
    fprintf(stderr, "train: rank %d: %s\n", rank, line);
}

void training_begin(struct training *t, uint64_t room)
{
    const struct options *o = t->step.options;
    if (strcmp(o->memory, "arena")) return;
    static const struct tarn_host_options host = {.struct_size = sizeof host, .unpinned = true};
    struct tarn_session_options options =
        *TARN_SESSION_OPTIONS(.blocking = {&t->tape.communication,
                                           1}, /* its kernels wait for other ranks */
                              .binds_persistent = true, .shares_memory = true,
                              .flight = o->trace ? 8192 : 16, .flight_line = print_line);
    take_arena(t, &options, room);
    options.memory = t->arena, options.memory_size = t->arena_size;
    struct tarn_error error;
    TARN(tarn_session_create(t->plan, tarn_device_host(&host), &options, &t->session, &error));
    for (tarn_op op = 0; op < t->tape.ops_count; op++)
        TARN(tarn_session_bind(t->session, op, t->tape.kernels[op].run, t->tape.kernels[op].user));
    for (tarn_tensor id = 0; id < t->state.count; id++)
        if (t->state.at[id])
            TARN(tarn_session_bind_memory(t->session, id, t->state.at[id], &error));
}

void training_end(struct training *t)
{
    tarn_session_destroy(t->session);
    free(t->arena);
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
