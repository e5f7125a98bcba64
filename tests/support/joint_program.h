/* Order and address together as the integer program of the MODeL paper, for a solver of one's own:
 * an oracle that shares nothing with Tarn but the graph. */
#ifndef TARN_TESTS_SUPPORT_JOINT_PROGRAM_H
#define TARN_TESTS_SUPPORT_JOINT_PROGRAM_H

#include <stdio.h>

#include "streams/graph/graph.h"

/* Writes the program of a graph of one stream without contiguous groups, sizes at alignment 1, in
 * the LP format of CPLEX. Its optimum is the least footprint over all orders and placements. */
void joint_program_write(const struct tarn_graph *graph, FILE *file);

#endif
