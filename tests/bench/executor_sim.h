/* The host executor's policy on paper: what it would do if claiming, signalling and waking took no
 * time. Measured walls are compared with it. */
#ifndef TARN_TESTS_BENCH_EXECUTOR_SIM_H
#define TARN_TESTS_BENCH_EXECUTOR_SIM_H

#include "streams/plan/program.h"

/* Nanoseconds that `iterations` take on `workers` workers when every op takes op_ns. With as many
 * workers as streams this is the critical path. */
double executor_sim_run(const struct tarn_program *program, const struct tarn_graph *graph,
                        uint32_t workers, uint64_t iterations, double op_ns);

#endif
