/* Generated graphs by names, for benchmarks that take graphs on the command line. */
#ifndef TARN_TESTS_BENCH_NAMED_GRAPH_H
#define TARN_TESTS_BENCH_NAMED_GRAPH_H

#include "tarn/graph.h"

/* SCHEDULE:STAGESxMICROBATCHES, for example 1F1B:4x12 (pipeline_graph.h);
 * KIND:STORAGESxSTREAMS:SEED, for example wide:400x4:1 (rough_graph.h). NULL: the name is neither.
 * The caller destroys it. */
struct tarn_graph *named_graph(const char *name);

#endif
