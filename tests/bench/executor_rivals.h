/* The same graph with the same kernel, carried out by others: OpenMP tasks and StarPU tasks, one
 * per op, tied by stream order and the plan's waits. */
#ifndef TARN_TESTS_BENCH_EXECUTOR_RIVALS_H
#define TARN_TESTS_BENCH_EXECUTOR_RIVALS_H

#include "streams/plan/program.h"
#include "tarn/session.h"

/* The launched ops in one legal order, and what each waits for, as indices into that order. */
struct rival_graph {
    uint32_t count;
    const struct tarn_call *calls; /* by op */
    tarn_op *ops;
    uint32_t *begin; /* count + 1; into `arcs` */
    uint32_t *arcs;
};

void rival_graph_init(struct rival_graph *rival, const struct tarn_program *program,
                      const struct tarn_call *calls);
void rival_graph_finish(struct rival_graph *rival);

/* Each runs `iterations` iterations, one after another. */
bool rival_openmp_is_here(void);
void rival_openmp_run(const struct rival_graph *rival, uint64_t iterations, uint32_t workers,
                      tarn_kernel kernel);

/* False when StarPU was not compiled in or does not start. */
bool rival_starpu_start(uint32_t workers);
void rival_starpu_run(const struct rival_graph *rival, uint64_t iterations, tarn_kernel kernel);
void rival_starpu_stop(void);

#endif
