/* Schedules of pipeline-parallel training whose stages share one arena: for benchmarks and tests.
 */
#ifndef TARN_TESTS_PIPELINE_GRAPH_H
#define TARN_TESTS_PIPELINE_GRAPH_H

#include "tarn/graph.h"

enum pipeline_schedule {
    PIPELINE_1F1B,        /* one forward, one backward (PipeDream-flush, Narayanan et al. 2021) */
    PIPELINE_INTERLEAVED, /* the same with two chunks of layers in every stage (Megatron-LM) */
    PIPELINE_ZERO_BUBBLE, /* weight gradients apart and later (ZB-H1, Qi et al. 2023) */
    PIPELINE_SCHEDULES
};

struct pipeline_graph_options {
    enum pipeline_schedule schedule;
    uint32_t stages;       /* one stream each; 1 or more */
    uint32_t microbatches; /* 1 or more */
    uint32_t layers;       /* transformer layers in each chunk of a stage; 1 or more */
};

/* A word for a schedule; static. */
const char *pipeline_schedule_name(enum pipeline_schedule schedule);

/* Nothing is recomputed. The caller destroys it; never NULL. Same options, same graph. */
struct tarn_graph *pipeline_graph(const struct pipeline_graph_options *options);

#endif
