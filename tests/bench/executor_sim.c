/* Event by event: the earliest op to end is taken (ties: the lowest worker), its progress counts at
 * once, its worker goes on with the same stream while that may start and otherwise takes the ready
 * stream with the smallest key, then idle workers do. Everything ends its ops in the same order as
 * in the executor; only hand-over and bookkeeping are free. Cost: O(steps (workers + streams)). */
#include "executor_sim.h"

#include <assert.h>
#include <stdlib.h>

struct sim {
    const struct tarn_program *program;
    const struct tarn_graph *graph;
    uint64_t target;
    int64_t *done; /* steps of each stream since the start */
    bool *claimed;
    uint32_t *stream_of; /* worker -> stream, or TARN_NONE */
    double *end_of;      /* worker -> when its op ends */
    uint32_t workers;
};

static uint32_t length_of(const struct sim *sim, uint32_t s)
{
    return sim->program->begin[s + 1] - sim->program->begin[s];
}

static const struct tarn_program_step *next_step(const struct sim *sim, uint32_t s)
{
    return &sim->program
                ->steps[sim->program->begin[s] + (uint64_t)sim->done[s] % length_of(sim, s)];
}

static int64_t iteration_of(const struct sim *sim, uint32_t s)
{
    return sim->done[s] / length_of(sim, s);
}

static bool may_start(const struct sim *sim, uint32_t s)
{
    if (length_of(sim, s) == 0 || (uint64_t)iteration_of(sim, s) >= sim->target) return false;
    const struct tarn_program_step *step = next_step(sim, s);
    for (uint32_t i = step->waits_begin; i < step->waits_end; i++) {
        const struct tarn_program_wait *wait = &sim->program->waits[i];
        int64_t passes = iteration_of(sim, s) - (int64_t)wait->previous;
        if (sim->done[wait->stream] < passes * length_of(sim, wait->stream) + wait->place + 1)
            return false;
    }
    return true;
}

static uint64_t key_of(const struct sim *sim, uint32_t s)
{
    return (uint64_t)iteration_of(sim, s) * sim->graph->ops_count +
           sim->graph->rank[next_step(sim, s)->op];
}

static uint32_t find_ready(const struct sim *sim)
{
    uint32_t best = TARN_NONE;
    for (uint32_t s = 0; s < sim->program->streams_count; s++) {
        if (sim->claimed[s] || !may_start(sim, s)) continue;
        if (best == TARN_NONE || key_of(sim, s) < key_of(sim, best)) best = s;
    }
    return best;
}

static void take_work(struct sim *sim, uint32_t worker, double now, double op_ns)
{
    uint32_t s = find_ready(sim);
    if (s == TARN_NONE) return;
    sim->claimed[s] = true;
    sim->stream_of[worker] = s;
    sim->end_of[worker] = now + op_ns;
}

static uint32_t find_earliest(const struct sim *sim)
{
    uint32_t earliest = TARN_NONE;
    for (uint32_t w = 0; w < sim->workers; w++) {
        if (sim->stream_of[w] == TARN_NONE) continue;
        if (earliest == TARN_NONE || sim->end_of[w] < sim->end_of[earliest]) earliest = w;
    }
    return earliest;
}

static double simulate(struct sim *sim, double op_ns)
{
    double now = 0;
    for (;;) {
        for (uint32_t w = 0; w < sim->workers; w++) {
            if (sim->stream_of[w] == TARN_NONE) take_work(sim, w, now, op_ns);
        }
        uint32_t w = find_earliest(sim);
        if (w == TARN_NONE) return now;
        now = sim->end_of[w];
        uint32_t s = sim->stream_of[w];
        sim->done[s]++;
        bool is_iteration_end = sim->done[s] % length_of(sim, s) == 0;
        if (!is_iteration_end && may_start(sim, s)) {
            sim->end_of[w] = now + op_ns;
            continue;
        }
        sim->claimed[s] = false;
        sim->stream_of[w] = TARN_NONE;
        take_work(sim, w, now, op_ns);
    }
}

double executor_sim_run(const struct tarn_program *program, const struct tarn_graph *graph,
                        uint32_t workers, uint64_t iterations, double op_ns)
{
    struct sim sim = {program, graph, iterations, NULL, NULL, NULL, NULL, workers};
    sim.done = calloc(program->streams_count, sizeof *sim.done);
    sim.claimed = calloc(program->streams_count, sizeof *sim.claimed);
    sim.stream_of = malloc(workers * sizeof *sim.stream_of);
    sim.end_of = calloc(workers, sizeof *sim.end_of);
    assert(sim.done && sim.claimed && sim.stream_of && sim.end_of);
    for (uint32_t w = 0; w < workers; w++) sim.stream_of[w] = TARN_NONE;
    double wall = simulate(&sim, op_ns);
    free(sim.done);
    free(sim.claimed);
    free(sim.stream_of);
    free(sim.end_of);
    return wall;
}
